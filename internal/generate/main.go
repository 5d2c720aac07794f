// Command generate writes all generated code of the project: the list of the access patterns, the
// connections and payloads of the schema, gqlgen's code, and beside it the code by which the server
// executes operations (graph/execute.go), plans what they read (graph/plan.go), and resolves the
// fields that access patterns read and the mutations. It reads the schema, gqlgen.yml, the
// declarations of the access patterns and the Store's methods. "go generate ./..." runs it.
package main

import (
	"fmt"
	"go/types"
	"os"

	"github.com/99designs/gqlgen/api"
	"github.com/99designs/gqlgen/codegen"
	"github.com/99designs/gqlgen/codegen/config"
)

// The files that are generated beside gqlgen's.
const (
	executionFile = "graph/execute_generated.go"
	readsFile     = "graph/reads_generated.go"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func run() error {
	patterns, err := declaredPatterns()
	if err != nil {
		return err
	}
	if err := writePatterns(patterns); err != nil {
		return err
	}
	commerce, err := load(commerceImport)
	if err != nil {
		return err
	}
	if err := writeApply(commerce); err != nil {
		return err
	}
	store, err := load(storePackage)
	if err != nil {
		return err
	}
	model, err := load(modelPackage)
	if err != nil {
		return err
	}
	cfg, err := config.LoadConfigFromDefaultLocations()
	if err != nil {
		return fmt.Errorf("read gqlgen.yml: %w", err)
	}
	derived, err := derive(cfg, store, commerce)
	if err != nil {
		return err
	}
	// The schema has changed.
	if cfg, err = config.LoadConfigFromDefaultLocations(); err != nil {
		return err
	}
	if err := derived.bind(cfg); err != nil {
		return err
	}
	return api.Generate(cfg, api.AddPlugin(plugin{patterns, model, derived}))
}

// plugin generates the project's own code from what gqlgen knows of the schema and its bindings, so
// that both call the same resolvers and read the same struct fields.
type plugin struct {
	patterns []pattern
	model    *types.Package
	derived  *derived
}

// Name is the name of the plugin in gqlgen's errors.
func (plugin) Name() string { return "ordergraph" }

// GenerateCode writes the files.
func (p plugin) GenerateCode(data *codegen.Data) error {
	execution, err := generate(data)
	if err != nil {
		return err
	}
	if err := os.WriteFile(executionFile, execution, 0o644); err != nil {
		return err
	}
	reads, err := generateReads(data, p)
	if err != nil {
		return err
	}
	return os.WriteFile(readsFile, reads, 0o644)
}
