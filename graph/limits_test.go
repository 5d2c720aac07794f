package graph

import (
	"context"
	"fmt"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2/gqlerror"
	"golang.org/x/tools/txtar"

	"github.com/ordergraph/ordergraph/graph/document"
	"github.com/ordergraph/ordergraph/graph/errcode"
	"github.com/ordergraph/ordergraph/internal/setting"
)

// newExecutorWithoutStore returns an executor with a store that cannot be read. Requests that reach
// the store fail.
func newExecutorWithoutStore(t *testing.T, limits document.Limits) *Executor {
	t.Helper()
	return NewExecutor(Options{Limits: limits, Report: func(_ context.Context, err error) { t.Error(err) }})
}

func refusals(e *Executor, query string) gqlerror.List {
	_, _, errs := e.prepare(context.Background(), Request{Query: query})
	return errs
}

// repeatNumbered repeats a text n times and replaces %d by 0, 1, 2 and so on.
func repeatNumbered(n int, format string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.ReplaceAll(format, "%d", fmt.Sprint(i)))
	}
	return b.String()
}

func nested(n int, before, inner, after string) string {
	return strings.Repeat(before, n) + inner + strings.Repeat(after, n)
}

// Each limit accepts a document at the limit and rejects a document just above it. The error has
// the limit's code, its numbers and a location.
func TestLimits(t *testing.T) {
	standard := setting.OrDefaults(document.Limits{})
	untested := map[string]bool{}
	for i := range reflect.TypeFor[document.Limits]().NumField() {
		untested[reflect.TypeFor[document.Limits]().Field(i).Name] = true
	}
	for _, elsewhere := range []string{"Cost", "Requests", "Answer", "Errors"} { // cost, requests, response and its errors
		delete(untested, elsewhere)
	}
	deep := func(fields int) string {
		path := strings.Split(`order(id:"1") customer accountRep`+strings.Repeat(" warehouse employees nodes", fields), " ")[:fields-1]
		return "{" + strings.Join(path, "{") + "{__typename" + strings.Repeat("}", fields)
	}
	for _, c := range []struct {
		name, code string
		limits     document.Limits
		passes     string
		refused    string
		message    []string
	}{
		{"tokens", document.LimitCodes.Tokens, document.Limits{Tokens: 20}, `{` + strings.Repeat("__typename ", 18) + `}`, `{` + strings.Repeat("__typename ", 19) + `}`, []string{"21", "20"}},
		{"tokens with comments", document.LimitCodes.Tokens, document.Limits{Tokens: 20}, `{__typename}`, strings.Repeat("#\n", 18) + `{__typename}`, []string{"21", "20"}},
		{"depth", document.LimitCodes.Depth, document.Limits{Depth: 4}, `{order(id:"1"){customer{accountRep{id}}}}`, `{order(id:"1"){customer{accountRep{warehouse{id}}}}}`, []string{"5", "4"}},
		{"depth through fragments", document.LimitCodes.Depth, document.Limits{Depth: 4}, `{order(id:"1"){...F}} fragment F on Order{customer{accountRep{id}}}`,
			`{order(id:"1"){...F}} fragment F on Order{customer{...G}} fragment G on Customer{...on Customer{accountRep{warehouse{id}}}}`, []string{"5", "4"}},
		{"depth by default", document.LimitCodes.Depth, document.Limits{}, deep(standard.Depth), deep(standard.Depth + 1), []string{fmt.Sprint(standard.Depth + 1), fmt.Sprint(standard.Depth)}},
		{"brackets", document.LimitCodes.Depth, document.Limits{Tokens: 1 << 20, Depth: 1 << 20}, `{__typename}`, nested(1001, "{a", "", "}"), []string{"1000"}},
		{"lists by the million", document.LimitCodes.Depth, document.Limits{Tokens: 1 << 20}, `{__typename}`, `{a(b:` + strings.Repeat("[", 300_000) + `)}`, []string{"1000"}},
		{"nesting of inline fragments through fragments", document.LimitCodes.Depth, document.Limits{Tokens: 1 << 20}, `{...F} fragment F on Query{` + nested(998, "...{", "__typename", "}") + `}`,
			`{...F} fragment F on Query{` + nested(500, "...{", "...G", "}") + `} fragment G on Query{` + nested(500, "...{", "__typename", "}") + `}`, []string{"1000"}},
		{"nesting through fragments that were seen", document.LimitCodes.Depth, document.Limits{Tokens: 1 << 20}, `{__typename}`,
			`{...G ` + nested(700, "...{", "...G", "}") + `} fragment G on Query{` + nested(500, "...{", "__typename", "}") + `}`, []string{"1000"}},
		{"aliases", document.LimitCodes.Aliases, document.Limits{Aliases: 3}, `{` + repeatNumbered(3, "a%d:__typename ") + `}`, `{` + repeatNumbered(4, "a%d:__typename ") + `}`, []string{"4", "3"}},
		{"aliases in fragments", document.LimitCodes.Aliases, document.Limits{Aliases: 3}, `{...F __typename} fragment F on Query{a:__typename}`, `{...F ...F} fragment F on Query{a:__typename b:__typename}`, []string{"4", "3"}},
		{"an alias that is the name", document.LimitCodes.Aliases, document.Limits{Aliases: 1}, `{a:__typename __typename:__typename}`, `{a:__typename b:__typename}`, []string{"2", "1"}},
		{"root fields", document.LimitCodes.RootFields, document.Limits{RootFields: 3}, `{__typename __typename __typename}`, `{__typename __typename __typename __typename}`, []string{"4", "3"}},
		{"root fields in fragments", document.LimitCodes.RootFields, document.Limits{RootFields: 3}, `{...F __typename} fragment F on Query{__typename __typename}`, `{...F ...{...F}} fragment F on Query{__typename __typename}`, []string{"4", "3"}},
		{"doubling", document.LimitCodes.RootFields, document.Limits{}, `{...A}` + nestedFragments("ABCDE", 2) + `fragment F on Query{__typename}`, `{...A}` + nestedFragments("ABCDEFGHIJKLMNOPQRSTUVWXY", 2) + `fragment Z on Query{__typename}`, []string{fmt.Sprint(standard.RootFields)}},
		{"directives", document.LimitCodes.Directives, document.Limits{Directives: 2}, `query Q($a:Boolean=true){__typename @include(if:$a) ...@skip(if:$a){__typename}}`,
			`{__typename @include(if:true) ...F @skip(if:true)} fragment F on Query{...@include(if:true){__typename}}`, []string{"3", "2"}},
		{"directives of the definitions", document.LimitCodes.Directives, document.Limits{Directives: 1}, `{__typename @include(if:true)}`, `query($a:Boolean @a)@b{...F} fragment F on Query@c{__typename}`, []string{"3", "1"}},
		{"lists", document.LimitCodes.ListDepth, document.Limits{ListDepth: 2}, `{orders(statuses:[PENDING]){nodes{id}}}`, `{orders(statuses:[[[PENDING]]]){nodes{id}}}`, []string{"2"}},
		{"lists in defaults", document.LimitCodes.ListDepth, document.Limits{ListDepth: 2}, `query($s:[OrderStatus!]=[PENDING]){orders(statuses:$s){nodes{id}}}`, `query($s:[OrderStatus!]=[{a:[PENDING]}]){orders(statuses:$s){nodes{id}}}`, []string{"2"}},
		{"lists in directives", document.LimitCodes.ListDepth, document.Limits{ListDepth: 2}, `{__typename @include(if:true)}`, `{__typename @include(if:[[[true]]])}`, []string{"2"}},
		{"introspection", document.LimitCodes.IntrospectionDepth, document.Limits{IntrospectionDepth: 2}, `{__schema{types{fields{type{interfaces{name}}}}}}`, `{__schema{types{fields{type{fields{type{possibleTypes{name}}}}}}}}`, []string{"3", "2"}},
		{"introspection through fragments", document.LimitCodes.IntrospectionDepth, document.Limits{IntrospectionDepth: 1}, `{__type(name:"Order"){...F}} fragment F on __Type{fields{name}}`,
			`{__type(name:"Order"){...F}} fragment F on __Type{interfaces{...G}} fragment G on __Type{inputFields{name}}`, []string{"2", "1"}},
		{"ofType", document.LimitCodes.IntrospectionDepth, document.Limits{Depth: 3}, `{__type(name:"Order"){` + nested(19, "ofType{", "name", "}") + `}}`, `{__type(name:"Order"){` + nested(20, "ofType{", "name", "}") + `}}`, []string{"21", "20"}},
		{"a long document", document.LimitCodes.Cost, document.Limits{RootFields: 1 << 20}, `{...A}` + nestedFragments("ABC", 20) + `fragment D on Query{__typename}`, `{...A}` + nestedFragments("ABC", 40) + `fragment D on Query{__typename}`, []string{"50000"}},
		{"many operations", document.LimitCodes.Cost, document.Limits{}, `query Q{__typename}`, repeatNumbered(100, "query Q%d{...F}") + `fragment F on Query{customer(id:"1"){` + strings.Repeat("id ", 600) + `}}`, []string{"50000"}},
	} {
		for name := range untested {
			if !reflect.ValueOf(c.limits).FieldByName(name).IsZero() {
				delete(untested, name)
			}
		}
		t.Run(c.name, func(t *testing.T) {
			e := newExecutorWithoutStore(t, c.limits)
			if errs := e.documents.Parse(c.passes, false).Errors(false); len(errs) > 0 {
				t.Errorf("%.200s is within the limit, but is refused: %v", c.passes, errs)
			}
			errs := e.documents.Parse(c.refused, false).Errors(false)
			if len(errs) == 0 || errs[0].Extensions["code"] != c.code || len(errs[0].Locations) != 1 {
				t.Fatalf("%.200s has the errors %v, want %s with one location", c.refused, errs, c.code)
			}
			for _, number := range c.message {
				if !strings.Contains(" "+strings.ReplaceAll(strings.ReplaceAll(errs[0].Message, ",", " "), ":", " ")+" ", " "+number+" ") {
					t.Errorf("%q does not say %s", errs[0].Message, number)
				}
			}
		})
	}
	for name := range untested {
		t.Errorf("this test has no case for Limits.%s", name)
	}
}

// nestedFragments returns fragments that each spread the next one n times.
func nestedFragments(names string, n int) string {
	var b strings.Builder
	for _, name := range names {
		fmt.Fprintf(&b, "fragment %c on Query{%s}", name, strings.Repeat(fmt.Sprintf("...%c ", name+1), n))
	}
	return b.String()
}

// Documents with any kind of fragments are measured and rejected if they are invalid.
func TestFragmentsThatAreWrong(t *testing.T) {
	e := newExecutorWithoutStore(t, document.Limits{})
	long := strings.Repeat("x", 200+1)
	for query, message := range map[string]string{
		`{...F} fragment F on Query{...F}`:                                              `"F" spreads itself`,
		`{...F} fragment F on Query{...G} fragment G on Query{__typename ...F}`:         `"F" spreads itself`,
		`{__typename} fragment F on Query{...G} fragment G on Query{...on Query{...F}}`: `"F" spreads itself`,
		`{...F}`: `Unknown fragment "F"`,
		`{...F} fragment F on Query{__typename} fragment F on Query{...F}`: "only one fragment",
		`{__typename} fragment F on Query{__typename}`:                     "never used",
		`{` + long + `}`:                        "201 bytes",
		`{a:` + long + `}`:                      "201 bytes",
		`{` + long + `:a}`:                      "201 bytes",
		`{...` + long + `}`:                     "201 bytes",
		`{...on ` + long + `{a}}`:               "201 bytes",
		`{a(` + long + `:1)}`:                   "201 bytes",
		`{a(a:` + long + `)}`:                   "201 bytes",
		`{a(a:{` + long + `:1})}`:               "201 bytes",
		`{a(a:$` + long + `)}`:                  "201 bytes",
		`{a @` + long + `}`:                     "201 bytes",
		`{a @a(` + long + `:1)}`:                "201 bytes",
		`query ` + long + `{a}`:                 "201 bytes",
		`query($` + long + `:Int){a}`:           "201 bytes",
		`query($a:` + long + `){a}`:             "201 bytes",
		`query($a:Int=` + long + `){a}`:         "201 bytes",
		`{a} fragment ` + long + ` on Query{a}`: "201 bytes",
		`{a} fragment F on ` + long + `{a}`:     "201 bytes",
	} {
		errs := refusals(e, query)
		if len(errs) == 0 || !strings.Contains(errs[0].Message, message) || len(errs[0].Locations) == 0 {
			t.Errorf("%s: %v, want %q", query, errs, message)
		}
	}
}

// Introspection queries of tools and all examples in this repository are within the limits.
func TestHonestDocumentsAreWithinLimits(t *testing.T) {
	e, shallow := newExecutorWithoutStore(t, document.Limits{}), newExecutorWithoutStore(t, document.Limits{Depth: 8, Tokens: 185, IntrospectionDepth: 1})
	standard, err := os.ReadFile("testdata/introspection.graphql")
	if err != nil {
		t.Fatal(err)
	}
	queries := map[string]string{
		"introspection": string(standard),
		"heavy":         `{orders(first:100){nodes{id status total{amount} items(first:50){nodes{name quantity}}}}}`,
		"wide":          `{customers(first:100){nodes{id name email orders(first:20){nodes{id status placedAt total{amount currencyCode}}}}}}`,
		"two lists":     `{customers(first:100){pageInfo{hasNextPage endCursor} edges{cursor node{id name accountRep{id name}}}} products(category:"Eyewear",last:100){nodes{sku name inventory{nodes{quantity warehouse{name}}}}}}`,
	}
	for name, query := range examples(t) {
		queries[name] = query
	}
	for name, query := range queries {
		doc := e.documents.Parse(query, false)
		if name == "introspection" {
			doc = shallow.documents.Parse(query, false) // within the limits in the settings
		}
		if len(doc.Errors(false)) > 0 {
			t.Errorf("%s: %v", name, doc.Errors(false))
			continue
		}
		for _, operation := range doc.Parsed.Operations {
			prepared, _ := e.preparer.Prepare(doc, operation, nil)
			if cost := prepared.Cost(nil); cost > setting.OrDefaults(document.Limits{}).Cost/2 {
				t.Errorf("%s costs %d", name, cost)
			}
		}
	}
}

// examples returns the queries of the golden files, the documentation and GraphiQL's tabs.
func examples(t testing.TB) map[string]string {
	t.Helper()
	queries := map[string]string{}
	for _, dir := range []string{"golden", "golden-writes"} {
		dir = "internal/server/testdata/" + dir
		for _, name := range files(t, dir) {
			archive, err := txtar.ParseFile("../" + dir + "/" + name)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range archive.Files {
				if f.Name == "query.graphql" {
					queries[name] = string(f.Data)
				}
			}
		}
	}
	for file, parts := range map[string][2]string{
		"README.md": {`{"query":"`, `"}'`}, "ARCHITECTURE.md": {"```graphql\n", "```"}, "docs/clients.md": {"```graphql\n", "```"},
		"docs/limits.md": {"```graphql\n", "```"}, "internal/graphiql/ui/src/examples.ts": {"  `", "`"},
	} {
		text, err := os.ReadFile("../" + file)
		if err != nil {
			t.Fatal(err)
		}
		found := strings.Split(string(text), parts[0])[1:]
		if len(found) == 0 {
			t.Errorf("%s no longer contains the example queries that this test checks", file)
		}
		for i, rest := range found {
			query, _, _ := strings.Cut(rest, parts[1])
			queries[fmt.Sprint(file, " ", i)] = strings.ReplaceAll(query, `\"`, `"`)
		}
	}
	return queries
}

func files(t testing.TB, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir("../" + dir)
	if err != nil || len(entries) == 0 {
		t.Fatalf("%s: %v, %d files", dir, err, len(entries))
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// docs/limits.md documents exactly the existing error codes.
func TestDocumentedCodes(t *testing.T) {
	source, err := os.ReadFile("errcode/errcode.go")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../docs/limits.md")
	if err != nil {
		t.Fatal(err)
	}
	codes := map[string]bool{}
	for _, code := range regexp.MustCompile(`\t\w+ += "([A-Z_]+)"`).FindAllStringSubmatch(string(source), -1) {
		codes[code[1]] = true
	}
	if len(codes) < 20 {
		t.Errorf("%d codes", len(codes))
	}
	for _, code := range reflect.ValueOf(document.LimitCodes).Fields() {
		codes[code.String()] = true
	}
	documented := map[string]bool{}
	for _, word := range regexp.MustCompile("`([A-Z]+(?:_[A-Z]+)*)`").FindAllStringSubmatch(string(text), -1) {
		if word := word[1]; word != "GET" && !strings.HasPrefix(word, "ORDERGRAPH_") {
			documented[word] = true
		}
	}
	if !maps.Equal(documented, codes) {
		t.Errorf("docs/limits.md has the codes %v, the code has %v", slices.Sorted(maps.Keys(documented)), slices.Sorted(maps.Keys(codes)))
	}
}

// Messages quote only a small part of the request, and the number of errors is limited.
func TestMessagesStayShort(t *testing.T) {
	e := newExecutorWithoutStore(t, document.Limits{})
	long := strings.Repeat("x", 100_000)
	for _, query := range []string{
		`{customers(first:"` + long + `"){nodes{id}}}`, `{orders(statuses:["` + long + `"]){nodes{id}}}`, `{orders(statuses:[{a:"` + long + `"}]){nodes{id}}}`,
		`{customer(id:"1"){id} "` + long + `"}`, `{customer(id:"1"){id} ` + long + `!}`, long, `{` + repeatNumbered(1900, "unknown%d ") + `}`,
		`query(` + repeatNumbered(390, "$a%d:Int") + `){__typename}`,
	} {
		errs := refusals(e, query)
		if len(errs) == 0 || len(errs) > errcode.MaxErrors {
			t.Errorf("%.50s: %d errors", query, len(errs))
		}
		for _, err := range errs {
			if len(err.Message) > 300+10 {
				t.Errorf("%.50s: an error message has %d bytes", query, len(err.Message))
			}
		}
	}
}
