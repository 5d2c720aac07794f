package document

import (
	"cmp"
	"crypto/sha256"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
)

// TrustedDocument is a document that the operator of the server allows clients to execute by its
// ID.
type TrustedDocument struct {
	// ID is the ID that clients send instead of the text.
	ID string
	// Name is the name of the operation. If the manifest of trusted documents does not contain the
	// name, Name is empty.
	Name string
	Text string
}

// loadTrusted parses and stores the trusted documents. An invalid document is also stored, so that
// clients who request it receive its errors. For each invalid document, loadTrusted passes the
// first error to onInvalid.
func (d *Store) loadTrusted(documents []TrustedDocument, onInvalid func(TrustedDocument, Error)) {
	for _, trusted := range documents {
		hash := documentHash(sha256.Sum256([]byte(trusted.Text)))
		if d.byHash[hash] == nil {
			d.byHash[hash] = d.Parse(trusted.Text, !d.introspection)
			d.byHash[hash].Trusted = true
			if len(d.byHash[hash].errs) > 0 && d.introspection {
				d.byHash[hash].redactedErrs = d.Parse(trusted.Text, true).errs
			}
		}
		parsed := d.byHash[hash]
		d.byID[trusted.ID] = parsed
		if len(parsed.errs) > 0 && onInvalid != nil {
			trusted.Name = cmp.Or(trusted.Name, OperationName(parsed.Parsed))
			onInvalid(trusted, ConvertErrors(parsed.errs)[0])
		}
	}
}

// HasTrusted reports whether there are trusted documents.
func (d *Store) HasTrusted() bool { return len(d.byID) > 0 }

// TrustedDocument returns the trusted document with an ID or with the hash of a text. If it does not
// exist, TrustedDocument returns nil.
func (d *Store) TrustedDocument(id string) *Document { return d.trusted(id) }

// sha256Prefix begins a document ID that consists of this prefix and the hash of the document's
// text. The appendix on persisted documents in the GraphQL over HTTP specification defines such IDs
// (https://github.com/graphql/graphql-over-http).
const sha256Prefix = "sha256:"

// trusted returns a trusted document by its ID in the manifest or by the hash of its text. It
// returns nil if no trusted document has this ID or hash.
func (d *Store) trusted(id string) *Document {
	if found := d.byID[id]; found != nil {
		return found
	}
	if hash, ok := parseHash(strings.TrimPrefix(id, sha256Prefix)); ok {
		return d.byHash[hash]
	}
	return nil
}

// OperationName returns the name of a document's first operation. If the document has no operation,
// it returns an empty string.
func OperationName(parsed *ast.QueryDocument) string {
	if parsed == nil || len(parsed.Operations) == 0 {
		return ""
	}
	return parsed.Operations[0].Name
}
