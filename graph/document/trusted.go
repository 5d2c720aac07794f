package document

import (
	"cmp"
	"crypto/sha256"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
)

// Trusted is a document that the operator of the server lets clients execute by its id.
type Trusted struct {
	// ID is what clients name it by.
	ID string
	// Name is its operation's, empty where the manifest does not tell.
	Name string
	Text string
}

// trust parses and validates trusted documents. One that does not fit the schema, or a limit, is
// kept with its errors, which are the answer when it is asked for; the first is told to unfit.
func (d *Store) trust(given []Trusted, unfit func(Trusted, Error)) {
	for _, g := range given {
		hash := documentHash(sha256.Sum256([]byte(g.Text)))
		if d.byHash[hash] == nil {
			d.byHash[hash] = d.Parse(g.Text, !d.introspection)
			if len(d.byHash[hash].errs) > 0 && d.introspection {
				d.byHash[hash].quietErrs = d.Parse(g.Text, true).errs
			}
		}
		parsed := d.byHash[hash]
		d.byID[g.ID] = parsed
		if len(parsed.errs) > 0 && unfit != nil {
			g.Name = cmp.Or(g.Name, OperationName(parsed.Parsed))
			unfit(g, Errors(parsed.errs)[0])
		}
	}
}

// sha256Prefix begins an id that is the hash of the document's text, as GraphQL over HTTP writes it
// (https://github.com/graphql/graphql-over-http, appendix on persisted documents).
const sha256Prefix = "sha256:"

// trusted returns a trusted document by its ID in the manifest, or by the hash of its text; nil
// where there is none.
func (d *Store) trusted(name string) *Document {
	if found := d.byID[name]; found != nil {
		return found
	}
	if hash, ok := parseHash(strings.TrimPrefix(name, sha256Prefix)); ok {
		return d.byHash[hash]
	}
	return nil
}

// OperationName is the name of a document's first operation, empty where there is none.
func OperationName(parsed *ast.QueryDocument) string {
	if parsed == nil || len(parsed.Operations) == 0 {
		return ""
	}
	return parsed.Operations[0].Name
}
