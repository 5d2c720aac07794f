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
	"io"
	"log"
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

// failure is the panic that ends the generation with an error.
type failure struct{ error }

// check ends the generation where there is an error.
func check(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// must returns v, or ends the generation where there is an error.
func must[T any](v T, err error) T {
	check(err)
	return v
}

// fail ends the generation.
func fail(format string, args ...any) { panic(failure{fmt.Errorf(format, args...)}) }

// failed makes an error of a failure. It is to be deferred.
func failed(err *error) {
	switch panicked := recover().(type) {
	case nil:
	case failure:
		*err = panicked.error
	default:
		panic(panicked)
	}
}

// within puts a place before the message of a failure. It is to be deferred.
func within(format string, args ...any) {
	panicked := recover()
	if f, ok := panicked.(failure); ok {
		fail("%s: %w", fmt.Sprintf(format, args...), f.error)
	}
	if panicked != nil {
		panic(panicked)
	}
}

func run() (err error) {
	defer failed(&err)
	patterns := declaredPatterns()
	writePatterns(patterns)
	commerce := load(commerceImport)
	writeApply(commerce)
	store, model := load(storePackage), load(modelPackage)
	cfg, err := config.LoadConfigFromDefaultLocations()
	if err != nil {
		return fmt.Errorf("read gqlgen.yml: %w", err)
	}
	derived := derive(cfg, store, commerce)
	cfg = must(config.LoadConfigFromDefaultLocations()) // the schema has changed
	derived.bind(cfg)
	log.SetOutput(io.Discard) // gqlgen lists the fields that resolvers answer
	check(api.Generate(cfg, api.AddPlugin(plugin{patterns, model, derived})))
	return updateGolden()
}

// updateGolden writes the golden files and the tables in the docs: it runs the tests that compare
// them, in the packages whose tests import internal/golden.
func updateGolden() error {
	var found []string
	tests := must(packages.Load(&packages.Config{Mode: packages.NeedName | packages.NeedForTest | packages.NeedImports, Tests: true}, "./..."))
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
func (p plugin) GenerateCode(data *codegen.Data) (err error) {
	defer failed(&err)
	generate(data)
	generateReads(data, p)
	return nil
}
