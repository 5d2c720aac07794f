package manifest

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/ordergraph/ordergraph/graph/document"
)

// apollo returns a manifest in Apollo's format with the given operations.
func apollo(operations string) string {
	return `{"format": "apollo-persisted-query-manifest", "version": 1, "operations": [` + operations + `]}`
}

func TestManifests(t *testing.T) {
	one := document.TrustedDocument{ID: "1", Name: "A", Text: "query A { __typename }"}
	two := document.TrustedDocument{ID: "2", Name: "B", Text: "query B { __typename }"}
	nameless := func(d document.TrustedDocument) document.TrustedDocument { d.Name = ""; return d }
	a, b := `{"id": "1", "name": "A", "type": "query", "body": "query A { __typename }"}`, `{"id": "2", "name": "B", "type": "query", "body": "query B { __typename }"}`
	for text, want := range map[string][]document.TrustedDocument{
		apollo(a):                     {one},
		apollo(b + "," + a):           {two, one},
		apollo(a + "," + a + "," + b): {one, two},
		"\ufeff" + apollo(a) + "\n":   {one},
		`{"2": "query B { __typename }", "1": "query A { __typename }"}`:                                     {nameless(two), nameless(one)},
		`{"1": "query A { __typename }", "1": "query A { __typename }"}`:                                     {nameless(one)},
		`{"operations": "query A { __typename }"}`:                                                           {{ID: "operations", Text: one.Text}},
		`{"operations": [` + a + `], "version": 1, "more": {}, "format": "apollo-persisted-query-manifest"}`: {one},
	} {
		got, err := Read(strings.NewReader(text))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %v, want %+v", text, got, err, want)
		}
	}
}

// Errors name the operation and what to do.
func TestInvalidManifests(t *testing.T) {
	for text, parts := range map[string][]string{
		"":                                      {"not a manifest", "invalid JSON", "@apollo/generate-persisted-query-manifest", "maps IDs to documents"},
		"query A { __typename }":                {"not a manifest", "invalid JSON"},
		`{"a": "b"} {}`:                         {"not a manifest", "invalid JSON"},
		`{"a": "b"`:                             {"not a manifest", "invalid JSON"},
		`[]`:                                    {"not a manifest"},
		`"x"`:                                   {"not a manifest"},
		`null`:                                  {"not a manifest"},
		`{}`:                                    {"has no documents"},
		apollo(""):                              {"has no documents"},
		`{"a": 1}`:                              {"not a manifest", `value of "a"`},
		`{"a": null}`:                           {"not a manifest", `value of "a"`},
		`{"a": "{ __typename }", "b": {}}`:      {"not a manifest", `value of "b"`},
		`{"": "{ __typename }"}`:                {"document 1", "no ID"},
		`{"a": ""}`:                             {"document 1", `"a"`, "no text"},
		`{"a": "{ a }", "a": "{ b }"}`:          {"two documents", `"a"`},
		`{"operations": []}`:                    {"lacks", `"version": 1`},
		`{"operations": [], "version": 1}`:      {"lacks", `"format"`},
		`{"format": "other", "operations": []}`: {`"other"`, `"apollo-persisted-query-manifest"`},
		`{"format": 1, "operations": []}`:       {"is 1", `"apollo-persisted-query-manifest"`},
		`{"format": "apollo-persisted-query-manifest", "version": 2, "operations": []}`:                {"version is 2", "only version 1"},
		`{"operations": [{}], "operations": []}`:                                                       {"twice"},
		apollo(`1`):                                                                                    {"must be objects", "body"},
		apollo(`{"id": "1", "name": "A", "body": "{ a }"}, {"id": "2", "name": "B"}`):                  {"operation 2", `"B"`, `no "body"`},
		apollo(`{"name": "A", "body": "{ a }"}`):                                                       {"operation 1", `"A"`, `no "id"`},
		apollo(`{"id": "1", "name": "A", "body": "{ a }"}, {"id": "1", "name": "B", "body": "{ b }"}`): {"two documents", `"1"`, `"A"`, `"B"`},
		`{"a": "` + strings.Repeat("x", MaxBytes) + `"}`:                                               {"exceeds 16777216 bytes", "remove"},
	} {
		got, err := Read(strings.NewReader(text))
		if err == nil {
			t.Errorf("%.100s: got %+v", text, got)
			continue
		}
		for _, part := range parts {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%.100s: %q does not contain %q", text, err, part)
			}
		}
	}
	failed := errors.New("the disk is gone")
	if _, err := Read(iotest.ErrReader(failed)); !errors.Is(err, failed) {
		t.Errorf("got %v", err)
	}
}

// Read returns an error for any invalid file. Otherwise each document has a text and a unique ID.
func FuzzRead(f *testing.F) {
	f.Add(apollo(`{"id": "1", "name": "A", "type": "query", "body": "{ __typename }"}`))
	f.Add(`{"1": "{ __typename }", "2": "{ a }", "1": "{ __typename }"}`)
	f.Add(`{"operations": [], "operations": {}, "format": null}`)
	f.Add(`{"a": [[[[[[{"b": "` + "\xff" + `"}]]]]]]}`)
	f.Fuzz(func(t *testing.T, text string) {
		documents, err := Read(strings.NewReader(text))
		if err != nil {
			if err.Error() == "" || documents != nil {
				t.Errorf("%q with %+v", err, documents)
			}
			return
		}
		var ids []string
		for _, d := range documents {
			if d.ID == "" || d.Text == "" || slices.Contains(ids, d.ID) {
				t.Errorf("%+v after %q", d, ids)
			}
			ids = append(ids, d.ID)
		}
		if len(ids) == 0 {
			t.Error("no documents and no error")
		}
	})
}
