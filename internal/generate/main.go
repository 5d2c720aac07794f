// Command generate writes all generated code of the project: the list of the access patterns, the
// connections and payloads of the schema, gqlgen's code, and beside it the code by which the server
// executes operations (graph/execute.go), plans what they read (graph/plan.go), and resolves the
// fields that access patterns read and the mutations. It reads the schema, gqlgen.yml, the
// declarations of the access patterns and the Store's methods. Then it updates the golden files and
// the tables in the docs. "go generate ./..." runs it.
package main

import (
	"fmt"
	"go/types"
	"os"
	"os/exec"
	"slices"

	"github.com/99designs/gqlgen/api"
	"github.com/99designs/gqlgen/codegen"
	"github.com/99designs/gqlgen/codegen/config"
	"golang.org/x/tools/go/packages"
)

// The files that are generated beside gqlgen's, and the package by which tests compare golden
// files.
const (
	executionFile = "graph/execute_generated.go"
	readsFile     = "graph/reads_generated.go"
	goldenPackage = "github.com/ordergraph/ordergraph/internal/golden"
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
	if err := api.Generate(cfg, api.AddPlugin(plugin{patterns, model, derived})); err != nil {
		return err
	}
	return updateGolden()
}

// updateGolden writes the golden files and the tables in the docs: it runs the tests that compare
// them, in the packages whose tests import internal/golden.
func updateGolden() error {
	var found []string
	tests, err := packages.Load(&packages.Config{Mode: packages.NeedName | packages.NeedForTest | packages.NeedImports, Tests: true}, "./...")
	if err != nil {
		return err
	}
	for _, p := range tests {
		if p.ForTest != "" && p.Imports[goldenPackage] != nil && !slices.Contains(found, p.ForTest) {
			found = append(found, p.ForTest)
		}
	}
	test := exec.Command("go", append([]string{"test", "-count=1", "-run", "^TestGolden"}, found...)...)
	test.Env = append(os.Environ(), "ORDERGRAPH_TEST_UPDATE=1")
	test.Stdout, test.Stderr = os.Stderr, os.Stderr
	return test.Run()
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
