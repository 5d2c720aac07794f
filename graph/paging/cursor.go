package paging

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"sync/atomic"
	"unicode/utf8"

	"github.com/ordergraph/ordergraph/commerce"
)

// A cursor is the base64url encoding of a version, a signature and a position. The signature covers
// the position, and the name and arguments of the list. A cursor contains no key of the table and
// no shard, so it stays valid if keys or shards change.

const (
	cursorVersion = 1
	// signatureSize is the number of bytes of the truncated HMAC-SHA-256 in a cursor.
	signatureSize = 12
	// maxPositionBytes is the maximum size of a position in bytes. It is below DynamoDB's limit of 1,024
	// bytes for a sort key, because key prefixes and key conditions add text to the position.
	maxPositionBytes = 1000
)

// CursorSigner signs and verifies the cursors of all lists. Copies of Cursors share their keys.
type CursorSigner struct{ keys *atomic.Pointer[cursorKeys] }

// cursorKeys are the keys for cursors. New cursors are signed with current. previous is nil if the
// key has never changed.
type cursorKeys struct{ current, previous []byte }

// NewCursorSigner returns Cursors that sign with a key. Servers with the same key accept each other's
// cursors.
func NewCursorSigner(key []byte) CursorSigner {
	c := CursorSigner{keys: new(atomic.Pointer[cursorKeys])}
	c.keys.Store(&cursorKeys{current: key})
	return c
}

// ChangeKey replaces the key. Cursors signed with the previous key remain valid until the next
// change.
func (c CursorSigner) ChangeKey(key []byte) {
	c.keys.Store(&cursorKeys{current: key, previous: c.keys.Load().current})
}

// CursorScope identifies the list that a cursor belongs to. It consists of a field and its arguments,
// except the arguments that choose the page.
type CursorScope struct {
	cursors CursorSigner
	field   string
	// arguments are the arguments of the list as text. If the list has too many arguments, the last
	// element contains all remaining arguments. Most pages require no cursor, so joining all arguments
	// in advance would usually be wasted work.
	arguments     [maxListArguments]string
	argumentCount int
}

// maxListArguments is the length of Scope.arguments.
const maxListArguments = 2

// ScopeOfList identifies the list that a field returns for these arguments. The arguments are in text
// form.
func (c CursorSigner) ScopeOfList(field string, arguments ...string) CursorScope {
	s := CursorScope{cursors: c, field: field}
	for _, a := range arguments {
		s.addArgument(a)
	}
	return s
}

// addArgument adds an argument.
func (s *CursorScope) addArgument(argument string) {
	if s.argumentCount < maxListArguments {
		s.arguments[s.argumentCount] = argument
		s.argumentCount++
		return
	}
	s.arguments[maxListArguments-1] += "\x00" + argument // the separator that sign writes
}

// sign signs a position with a key and returns the signature.
func (s CursorScope) sign(key []byte, position string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte{cursorVersion})
	mac.Write([]byte(s.field))
	for _, argument := range s.arguments[:s.argumentCount] {
		mac.Write([]byte{0})
		mac.Write([]byte(argument))
	}
	mac.Write([]byte{0, 0})
	mac.Write([]byte(position))
	return mac.Sum(nil)[:signatureSize]
}

// Encode returns the cursor of a position.
func (s CursorScope) Encode(position string) string {
	b := make([]byte, 0, 1+signatureSize+len(position))
	b = append(b, cursorVersion)
	b = append(b, s.sign(s.cursors.keys.Load().current, position)...)
	b = append(b, position...)
	return base64.RawURLEncoding.EncodeToString(b)
}

// Decode returns the position in a cursor.
//
// It accepts only cursors that Encode created for the same list with the current or the previous
// key. For other cursors, it returns a commerce.InvalidError.
func (s CursorScope) Decode(cursor string) (string, error) {
	if len(cursor) > base64.RawURLEncoding.EncodedLen(1+signatureSize+maxPositionBytes) {
		return "", commerce.NewInvalidError("is not a cursor: it is too long")
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil || len(b) <= 1+signatureSize || !utf8.Valid(b[1+signatureSize:]) {
		return "", commerce.NewInvalidError("is not a cursor: send a cursor of this list unchanged")
	}
	if b[0] != cursorVersion {
		return "", commerce.NewInvalidError("is a cursor of another server version: request the first page again")
	}
	position, signature := string(b[1+signatureSize:]), b[1:1+signatureSize]
	keys := s.cursors.keys.Load()
	if !hmac.Equal(signature, s.sign(keys.current, position)) && (keys.previous == nil || !hmac.Equal(signature, s.sign(keys.previous, position))) {
		return "", commerce.NewInvalidError("is a cursor of another list: send the cursor to the same field with the same arguments")
	}
	return position, nil
}
