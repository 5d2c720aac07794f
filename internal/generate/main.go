// Command generate writes all generated code of the project. It reads the schema, gqlgen.yml, the
// access patterns and the methods of dynamo.Store. It also updates the golden files and the tables
// in the docs.
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

// executionFile and readsFile are the files of package graph that the plugin writes. All tests that
// compare golden files import goldenPackage.
const (
	executionFile = "graph/execute_generated.go"
	readsFile     = "graph/reads_generated.go"
	goldenPackage = "github.com/ordergraph/ordergraph/internal/test/golden"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

// failure is a panic value. Functions of this program panic with a failure instead of returning an
// error. The failure stops the generation.
type failure struct{ error }

// check stops the generation if err is not nil.
func check(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// mustValue returns v. If err is not nil, it stops the generation instead.
func mustValue[T any](v T, err error) T {
	check(err)
	return v
}

// fail stops the generation with a formatted error.
func fail(format string, args ...any) { panic(failure{fmt.Errorf(format, args...)}) }

// recoverFailure ends a panic whose value is a failure, and stores the failure's error in err. It
// must be called with defer.
func recoverFailure(err *error) {
	switch panicked := recover().(type) {
	case nil:
	case failure:
		*err = panicked.error
	default:
		panic(panicked)
	}
}

// prefixFailure handles a panic whose value is a failure. It adds a prefix, such as the name of a
// field, to the failure's error, and panics again. It must be called with defer.
func prefixFailure(format string, args ...any) {
	panicked := recover()
	if f, ok := panicked.(failure); ok {
		fail("%s: %w", fmt.Sprintf(format, args...), f.error)
	}
	if panicked != nil {
		panic(panicked)
	}
}

func run() (err error) {
	defer recoverFailure(&err)
	patterns := declaredPatterns()
	writePatterns(patterns)
	commerce := loadPackage(commerceImport)
	writeApply(commerce)
	store, model := loadPackage(storePackage), loadPackage(modelPackage)
	cfg := mustValue(config.LoadConfigFromDefaultLocations())
	derived := deriveSchema(cfg, store, commerce, loadPackage(accessImport))
	derived.bind(cfg)
	log.SetOutput(io.Discard) // discard gqlgen's list of all fields with resolvers
	check(api.Generate(cfg, api.AddPlugin(plugin{patterns, model, derived})))
	moveOracle(cfg.Exec.Filename)
	return updateGolden()
}

// updateGolden updates the golden files and the tables in the docs. It does so by running the
// golden tests of all packages whose tests import internal/test/golden.
func updateGolden() error {
	var goldenPackages []string
	tests := mustValue(packages.Load(&packages.Config{Mode: packages.NeedName | packages.NeedForTest | packages.NeedImports, Tests: true}, "./..."))
	for _, p := range tests {
		if p.ForTest != "" && p.Imports[goldenPackage] != nil && !slices.Contains(goldenPackages, p.ForTest) {
			goldenPackages = append(goldenPackages, p.ForTest)
		}
	}
	test := exec.Command("go", append([]string{"test", "-count=1", "-run", "^TestGolden"}, goldenPackages...)...)
	test.Env = append(os.Environ(), "ORDERGRAPH_TEST_UPDATE=1")
	test.Stdout, test.Stderr = os.Stderr, os.Stderr
	return test.Run()
}

// plugin is a gqlgen plugin that generates the project's own code. It uses the same data as
// gqlgen's generator, so that both generate code for the same resolvers and struct fields.
type plugin struct {
	patterns []accessPattern
	model    *types.Package
	derived  *derivedSchema
}

// Name returns the name that identifies the plugin in gqlgen's errors.
func (plugin) Name() string { return "ordergraph" }

// GenerateCode writes the files executionFile and readsFile.
func (p plugin) GenerateCode(data *codegen.Data) (err error) {
	defer recoverFailure(&err)
	generateExecutor(data)
	generateReads(data, p)
	return nil
}
