package paging

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"unicode/utf8"

	"github.com/ordergraph/ordergraph/commerce"
)

// A cursor is base64url(version, signature, position): the place of a record in its list, signed
// together with the name and the arguments of the list. It holds no key of the table and no number
// of shards, so it outlives a change of either.

const (
	cursorVersion = 1
	// signatureSize is how many bytes of the HMAC-SHA-256 a cursor carries.
	signatureSize = 12
	// maxPosition is the maximum size of a position in bytes. DynamoDB's limit for a sort key is
	// 1,024. The rest is for the prefix of the keys and for what a key condition adds to a
	// position.
	maxPosition = 1000
)

// Cursors signs and reads the cursors of all lists.
type Cursors struct{ key []byte }

// NewCursors returns cursors signed with key. Servers that share a key read one another's cursors.
func NewCursors(key []byte) Cursors { return Cursors{key: key} }

// Scope is the list that a cursor belongs to: its field and its arguments, but those that
// choose the page.
type Scope struct {
	cursors Cursors
	field   string
	// arguments are as many as given; the last holds all further ones. Most pages are requested
	// without cursors, so nothing is made of them before there is one.
	arguments [maxListArguments]string
	given     int
}

// maxListArguments is the number of arguments that are kept apart.
const maxListArguments = 2

// Scope returns the list of a field with arguments, each of them as text.
func (c Cursors) Scope(field string, arguments ...string) Scope {
	s := Scope{cursors: c, field: field}
	for _, a := range arguments {
		s.add(a)
	}
	return s
}

// add adds an argument, as text.
func (s *Scope) add(argument string) {
	if s.given < maxListArguments {
		s.arguments[s.given] = argument
		s.given++
		return
	}
	s.arguments[maxListArguments-1] += "\x00" + argument // as sign separates them
}

func (s Scope) sign(position string) []byte {
	mac := hmac.New(sha256.New, s.cursors.key)
	mac.Write([]byte{cursorVersion})
	mac.Write([]byte(s.field))
	for _, argument := range s.arguments[:s.given] {
		mac.Write([]byte{0})
		mac.Write([]byte(argument))
	}
	mac.Write([]byte{0, 0})
	mac.Write([]byte(position))
	return mac.Sum(nil)[:signatureSize]
}

// Seal makes the cursor of a position.
func (s Scope) Seal(position string) string {
	b := make([]byte, 0, 1+signatureSize+len(position))
	b = append(b, cursorVersion)
	b = append(b, s.sign(position)...)
	b = append(b, position...)
	return base64.RawURLEncoding.EncodeToString(b)
}

// Open returns the position that a cursor holds.
//
// Errors: commerce.InvalidError for what seal did not make for this list, under this key.
func (s Scope) Open(cursor string) (string, error) {
	if len(cursor) > base64.RawURLEncoding.EncodedLen(1+signatureSize+maxPosition) {
		return "", commerce.Invalid("is no cursor: it is too long")
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil || len(b) <= 1+signatureSize || !utf8.Valid(b[1+signatureSize:]) {
		return "", commerce.Invalid("is no cursor: give one that this list has returned, unchanged")
	}
	if b[0] != cursorVersion {
		return "", commerce.Invalid("is a cursor of another version of this server: begin again without it")
	}
	position := string(b[1+signatureSize:])
	if !hmac.Equal(b[1:1+signatureSize], s.sign(position)) {
		return "", commerce.Invalid("is a cursor of another list: use it with the field and the arguments that it came from")
	}
	return position, nil
}
