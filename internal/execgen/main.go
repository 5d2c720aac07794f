// Command execgen generates graph/execute_generated.go: the code by which an execution
// (graph/execute.go) writes each type and field of the schema. It reads what gqlgen reads, the
// schema and the bindings of gqlgen.yml, so that both call the same resolvers and read the same
// struct fields. Run it in the module's root, after gqlgen: see "generate" in the Makefile.
package main

import (
	"fmt"
	"os"

	"github.com/99designs/gqlgen/codegen"
	"github.com/99designs/gqlgen/codegen/config"
)

// output is the file that is generated, from the module's root.
const output = "graph/execute_generated.go"

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "execgen:", err)
		os.Exit(1)
	}
}

func run() error {
	data, err := bindings()
	if err != nil {
		return fmt.Errorf("read gqlgen.yml and the schema: %w", err)
	}
	source, err := generate(data)
	if err != nil {
		return err
	}
	return os.WriteFile(output, source, 0o644)
}

// bindings is what gqlgen knows of the schema when it begins to generate. Its own steps are taken
// here, as api.Generate would also write what it generates itself.
func bindings() (*codegen.Data, error) {
	cfg, err := config.LoadConfigFromDefaultLocations()
	if err != nil {
		return nil, err
	}
	// The models that gqlgen generates are there already, and are found by their names.
	cfg.AutoBind = append(cfg.AutoBind, cfg.Model.ImportPath())
	if err := cfg.LoadSchema(); err != nil {
		return nil, err
	}
	codegen.ClearInlineArgsMetadata()
	if err := codegen.ExpandInlineArguments(cfg.Schema); err != nil {
		return nil, err
	}
	if err := cfg.Init(); err != nil {
		return nil, err
	}
	return codegen.BuildData(cfg)
}
