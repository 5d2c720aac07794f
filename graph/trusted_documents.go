package graph

import (
	"crypto/sha256"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
)

// TrustedDocument is a document that the operator of the server lets clients execute by its id.
type TrustedDocument struct {
	// ID is what clients name it by.
	ID string
	// Name is its operation's, empty where the manifest does not tell.
	Name string
	Text string
}

// trustedDocuments are trusted documents that were parsed and validated. Nothing changes them.
type trustedDocuments struct {
	byID   map[string]*document
	byHash map[documentHash]*document
}

// trust parses and validates trusted documents. One that does not fit the schema, or a limit, is kept with its errors, which are
// the answer when it is asked for; the first is told to unfit.
func (d *documents) trust(given []TrustedDocument, unfit func(TrustedDocument, DocumentError)) trustedDocuments {
	t := trustedDocuments{byID: map[string]*document{}, byHash: map[documentHash]*document{}}
	for _, g := range given {
		hash := documentHash(sha256.Sum256([]byte(g.Text)))
		if t.byHash[hash] == nil {
			t.byHash[hash] = d.trusting(g.Text)
		}
		t.byID[g.ID] = t.byHash[hash]
		if errs := t.byHash[hash].errs; len(errs) > 0 && unfit != nil {
			if g.Name == "" {
				g.Name = operationName(t.byHash[hash].parsed)
			}
			unfit(g, documentErrors(errs)[0])
		}
	}
	return t
}

// trusting parses a document that is kept with its errors, for whoever asks for it.
func (d *documents) trusting(text string) *document {
	parsed := d.parse(text, !d.introspection)
	if len(parsed.errs) > 0 && d.introspection {
		parsed.quietErrs = d.parse(text, true).errs
	}
	return parsed
}

// sha256Prefix begins an id that is the hash of the document's text, as GraphQL over HTTP writes it
// (https://github.com/graphql/graphql-over-http, appendix on persisted documents).
const sha256Prefix = "sha256:"

// find returns a trusted document by its id in the manifest, or by the hash of its text; nil where there is none.
func (t trustedDocuments) find(name string) *document {
	if found := t.byID[name]; found != nil {
		return found
	}
	if hash, ok := parseHash(strings.TrimPrefix(name, sha256Prefix)); ok {
		return t.byHash[hash]
	}
	return nil
}

// operationName is the name of a document's first operation, empty where there is none.
func operationName(parsed *ast.QueryDocument) string {
	if parsed == nil || len(parsed.Operations) == 0 {
		return ""
	}
	return parsed.Operations[0].Name
}
