package paging

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"sync/atomic"
	"unicode/utf8"

	"github.com/ordergraph/ordergraph/commerce"
)

// A cursor is the base64url encoding of a version, a signature and a record's position. It contains
// no complete key and no shard number.

const (
	cursorVersion = 1
	// signatureSize is the size of the signature in a cursor in bytes. The signature is a truncated
	// HMAC-SHA-256.
	signatureSize = 12
	// maxPositionBytes is the maximum size of a position. A DynamoDB sort key has at most 1,024
	// bytes. The remaining bytes are for the key's prefix and for characters that key conditions
	// append.
	maxPositionBytes = 1000
)

// CursorSigner signs and verifies the cursors of all lists. Copies of a CursorSigner share its
// keys.
type CursorSigner struct{ keys *atomic.Pointer[cursorKeys] }

// cursorKeys contains the keys for cursors. The key current signs new cursors. Cursors that the key
// previous has signed are still valid. Until the first change of the key, previous is nil.
type cursorKeys struct{ current, previous []byte }

// NewCursorSigner returns a CursorSigner that signs with the given key. Servers with the same key
// accept each other's cursors.
func NewCursorSigner(key []byte) CursorSigner {
	c := CursorSigner{keys: new(atomic.Pointer[cursorKeys])}
	c.keys.Store(&cursorKeys{current: key})
	return c
}

// ChangeKey replaces the key. Cursors that were signed with the replaced key remain valid until the
// next call of ChangeKey.
func (c CursorSigner) ChangeKey(key []byte) {
	c.keys.Store(&cursorKeys{current: key, previous: c.keys.Load().current})
}

// CursorScope identifies the list to which a cursor belongs. It contains the list's field, the ID
// of the parent record, and all arguments except the page arguments.
type CursorScope struct {
	cursors CursorSigner
	field   string
	// arguments contains the ID of the parent record, if any, and the list's arguments as text. If
	// there are more values than maxListArguments, the last element contains all remaining values.
	arguments     [maxListArguments]string
	argumentCount int
	// eventIDs means that the cursors of the list are the IDs of events, without a signature.
	eventIDs bool
}

// changesField is the field with all changes of all orders. Its cursors are the IDs of events. So a
// client can store them for longer than the key that signs other cursors, and can begin at any
// time.
const changesField = "Query.changes"

// maxListArguments is the length of CursorScope.arguments.
const maxListArguments = 2

// ScopeOfList returns the scope of a list. The parameter field is the field that returns the list.
// The parameter arguments contains the values of the field's arguments as text.
func (c CursorSigner) ScopeOfList(field string, arguments ...string) CursorScope {
	s := CursorScope{cursors: c, field: field, eventIDs: field == changesField}
	for _, a := range arguments {
		s.addArgument(a)
	}
	return s
}

// addArgument adds an argument of the list to the scope.
func (s *CursorScope) addArgument(argument string) {
	if s.argumentCount < maxListArguments {
		s.arguments[s.argumentCount] = argument
		s.argumentCount++
		return
	}
	s.arguments[maxListArguments-1] += "\x00" + argument // the same separator as in sign
}

// sign returns the signature of a position in the list, created with the given key.
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

// Encode returns the cursor for a position in the list.
func (s CursorScope) Encode(position string) string {
	if s.eventIDs {
		return position
	}
	b := make([]byte, 0, 1+signatureSize+len(position))
	b = append(b, cursorVersion)
	b = append(b, s.sign(s.cursors.keys.Load().current, position)...)
	b = append(b, position...)
	return base64.RawURLEncoding.EncodeToString(b)
}

// Decode verifies that a cursor belongs to the list, and returns its position. For any other
// cursor, it returns a commerce.InvalidError.
func (s CursorScope) Decode(cursor string) (string, error) {
	if s.eventIDs {
		if _, ok := commerce.EventID(cursor).Time(); !ok {
			return "", commerce.NewInvalidError("is not the ID of an event: use a cursor that this list returned, or a ULID with the time at which you want to begin")
		}
		return cursor, nil
	}
	if len(cursor) > base64.RawURLEncoding.EncodedLen(1+signatureSize+maxPositionBytes) {
		return "", commerce.NewInvalidError("is not a cursor: it is too long")
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil || len(b) <= 1+signatureSize || !utf8.Valid(b[1+signatureSize:]) {
		return "", commerce.NewInvalidError("is not a cursor: send a cursor that this list returned, unmodified")
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
