package document

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/parser"
	"github.com/vektah/gqlparser/v2/validator"
	"github.com/vektah/gqlparser/v2/validator/rules"
	"pgregory.net/rapid"

	"github.com/ordergraph/ordergraph/graph/errcode"
	"github.com/ordergraph/ordergraph/internal/setting"
)

func mustParse(t rapid.TB, query string) *ast.QueryDocument {
	t.Helper()
	document, err := parser.ParseQuery(&ast.Source{Input: query})
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return document
}

// conflictSchema has fields that share a name but differ in type, and objects with several
// interfaces.
const conflictSchema = `
type Query { a: A b: B i: I u: U list: [A] one(n: Int, o: In): A }
input In { x: Int y: [Int] }
interface I { same: String i: I }
interface J { same: String }
type A implements I & J { same: String i: I a: A differs: Int must: Int! list: [String] other(n: Int): String thing: A }
type B implements I { same: String i: I a: A differs: String must: Int list: String other(n: Int): String thing: B }
type C implements J { same: String differs: Int must: Int! thing: String }
union U = A | B | C
`

// overlaps finds a conflict exactly if the library's rule, which compares all pairs, finds one.
func TestFieldConflictsMatchSpecification(t *testing.T) {
	schema := gqlparser.MustLoadSchema(&ast.Source{Input: conflictSchema})
	allPairs := rules.NewRules(rules.OverlappingFieldsCanBeMergedRule)
	conflicts, merges := 0, 0
	compare := func(rt *rapid.T) {
		fragments := rapid.IntRange(0, 3).Draw(rt, "fragments")
		query := "query " + conflictingSet(rt, schema, schema.Query, fragments, 4)
		for i := range fragments {
			of := rapid.SampledFrom([]string{"A", "B", "I", "J", "C", "Query"}).Draw(rt, "on")
			query += fmt.Sprintf(" fragment F%d on %s %s", i, of, conflictingSet(rt, schema, schema.Types[of], i, 3))
		}
		document := mustParse(rt, query)
		if errs := setting.OrDefaults(Limits{}).measure(document).errs; len(errs) > 0 {
			return
		}
		if errs := slices.DeleteFunc(applyRules(schema, newScalars(nil), document, true, false), func(err *gqlerror.Error) bool { return err.Rule == "NoUnusedFragments" }); len(errs) > 0 {
			return
		}
		want := validator.ValidateWithRules(schema, document, allPairs)
		// An unused fragment is an error of another rule.
		used := usedFragments(document)
		if len(used) < fragments {
			return
		}
		got := findFieldConflicts(schema, document)
		if (len(got) > 0) != (len(want) > 0) {
			rt.Fatalf("%s: %v, the library returns %v", query, got, want)
		}
		if len(got) > 0 {
			conflicts++
		} else {
			merges++
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		for range 10 { // most documents are invalid in other ways, and not compared
			compare(rt)
		}
	})
	if conflicts < 5 || merges < 5 {
		t.Errorf("only %d documents with and %d without conflicts were compared", conflicts, merges)
	}
}

func usedFragments(document *ast.QueryDocument) map[string]bool {
	used := map[string]bool{}
	var visit func(ast.SelectionSet)
	visit = func(set ast.SelectionSet) {
		for _, s := range set {
			switch s := s.(type) {
			case *ast.Field:
				visit(s.SelectionSet)
			case *ast.InlineFragment:
				visit(s.SelectionSet)
			case *ast.FragmentSpread:
				used[s.Name] = true
				visit(s.Definition.SelectionSet)
			}
		}
	}
	visit(document.Operations[0].SelectionSet)
	return used
}

// conflictingSet draws a selection set that has many fields with few response names.
func conflictingSet(t *rapid.T, schema *ast.Schema, of *ast.Definition, fragments, depth int) string {
	var b strings.Builder
	b.WriteString("{__typename")
	for range rapid.IntRange(1, 4).Draw(t, "selections") {
		kind := rapid.IntRange(0, 5).Draw(t, "kind")
		switch {
		case kind == 0 && fragments > 0:
			fmt.Fprintf(&b, " ...F%d", rapid.IntRange(0, fragments-1).Draw(t, "fragment"))
		case kind <= 2 && depth > 0 && of.Name != "Query":
			on := rapid.SampledFrom(schema.GetPossibleTypes(of)).Draw(t, "type")
			fmt.Fprintf(&b, " ...on %s%s", on.Name, conflictingSet(t, schema, on, fragments, depth-1))
		case len(of.Fields) == 0:
		default:
			f := rapid.SampledFrom(of.Fields).Draw(t, "field")
			to := schema.Types[f.Type.Name()]
			if strings.HasPrefix(f.Name, "__") || to.IsCompositeType() && depth == 0 {
				continue
			}
			b.WriteString(" ")
			if rapid.IntRange(0, 2).Draw(t, "alias") == 0 {
				b.WriteString(rapid.SampledFrom([]string{"x:", "thing:", "same:"}).Draw(t, "name"))
			}
			b.WriteString(f.Name)
			if len(f.Arguments) > 0 {
				b.WriteString(rapid.SampledFrom([]string{"", "(n:1)", "(n:2)"}).Draw(t, "arguments"))
			}
			if to.IsCompositeType() {
				b.WriteString(conflictingSet(t, schema, to, fragments, depth-1))
			}
		}
	}
	b.WriteString("}")
	return b.String()
}

func TestFieldConflicts(t *testing.T) {
	schema := gqlparser.MustLoadSchema(&ast.Source{Input: conflictSchema})
	for query, want := range map[string]string{
		`{one(n:1){same} one(n:2){same}}`:                                         `"one" conflict because they have different arguments`,
		`{one(o:{x:1,y:[1,2]}){same} one(o:{y:[1,2],x:1}){same}}`:                 "",
		`{one(o:{x:1,y:[1,2]}){same} one(o:{y:[2,1],x:1}){same}}`:                 `different arguments`,
		`{one(o:{x:1}){same} one(o:{y:1}){same}}`:                                 `different arguments`,
		`{one(n:1){same} one{same}}`:                                              `different arguments`,
		`{a{x:same x:differs}}`:                                                   `incompatible types`,
		`{a{x:same x:other}}`:                                                     `different fields`,
		`{u{...on A{differs} ...on B{differs}}}`:                                  `incompatible types`,
		`{u{...on A{must} ...on B{must}}}`:                                        `incompatible types`,
		`{u{...on A{list} ...on B{list}}}`:                                        `incompatible types`,
		`{u{...on A{x:other(n:1)} ...on B{x:other(n:2)}}}`:                        "",
		`{u{...on A{x:same} ...on B{x:other}}}`:                                   "",
		`{u{...on A{x:same} ...on I{x:same}}}`:                                    "",
		`{u{...on A{thing{x:same}} ...on B{thing{x:other}}}}`:                     "",
		`{u{...on A{thing{x:differs}} ...on B{thing{x:differs}}}}`:                `incompatible types`,
		`{u{...on B{thing{same}} ...on C{thing}}}`:                                `incompatible types`,
		`{i{...on A{x:same} ...on I{x:__typename}}}`:                              `different fields`,
		`{...F ...G} fragment F on Query{a{same}} fragment G on Query{a:b{same}}`: `different fields`,
		`{a{i{...on A{x:same}}} a{i{...on A{x:other}}}}`:                          `different fields`,
	} {
		document := mustParse(t, query)
		errs := applyRules(schema, newScalars(nil), document, true, false)
		if len(errs) == 0 {
			errs = findFieldConflicts(schema, document)
		}
		if want == "" && len(errs) > 0 || want != "" && (len(errs) != 1 || !strings.Contains(errs[0].Message, want) || len(errs[0].Locations) != 2) {
			t.Errorf("%s: %v, want %q", query, errs, want)
		}
	}
}

// numberedFields repeats a text n times and replaces %d by numbers from 0.
func numberedFields(n int, text string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.ReplaceAll(text, "%d", strconv.Itoa(i)))
	}
	return b.String()
}

// Validation stops at MaxErrors errors. An error in a fragment is reported once.
func TestValidationErrorsAreBounded(t *testing.T) {
	schema := gqlparser.MustLoadSchema(&ast.Source{Input: conflictSchema})
	if errs := applyRules(schema, newScalars(nil), mustParse(t, `{`+numberedFields(1000, "unknown%d ")+`}`), true, false); len(errs) != errcode.MaxErrors {
		t.Errorf("%d errors, want %d", len(errs), errcode.MaxErrors)
	}
	if errs := applyRules(schema, newScalars(nil), mustParse(t, `query A{...F} query B{...F} query C{...F} fragment F on Query{unknown}`), true, false); len(errs) != 1 {
		t.Errorf("%v, want one error", errs)
	}
	// Repetitions of the same error also stop the validation.
	if errs := applyRules(schema, newScalars(nil), mustParse(t, numberedFields(10*errcode.MaxErrors, "query Q%d{...F} ")+`query Last{another} fragment F on Query{unknown}`), true, false); len(errs) != 1 {
		t.Errorf("%v, want one error", errs)
	}
	defer func() {
		if recover() == nil {
			t.Error("a panic of a rule was treated as the end of the validation")
		}
	}()
	t.Error(applyRules(nil, nil, mustParse(t, `{a}`), true, false))
}
