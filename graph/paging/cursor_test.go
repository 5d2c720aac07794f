package paging

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/ordergraph/ordergraph/commerce"
)

func position() *rapid.Generator[string] { return rapid.StringN(1, 80, -1) }

// A cursor is valid only for its own list and key.
func TestCursorsAreValidForTheirListOnly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := []byte(rapid.StringN(16, 32, -1).Draw(t, "key"))
		field, argument := rapid.StringN(1, 10, -1).Draw(t, "field"), rapid.StringN(0, 10, -1).Draw(t, "argument")
		at := position().Draw(t, "position")
		list := NewCursorSigner(key).ScopeOfList(field, argument)
		cursor := list.Encode(at)
		if got, err := list.Decode(cursor); err != nil || got != at {
			t.Fatalf("Decode returns %q, %v, want %q", got, err, at)
		}
		for name, other := range map[string]CursorScope{
			"another field":       NewCursorSigner(key).ScopeOfList(field+"x", argument),
			"another argument":    NewCursorSigner(key).ScopeOfList(field, argument+"x"),
			"additional argument": NewCursorSigner(key).ScopeOfList(field, argument, ""),
			"missing argument":    NewCursorSigner(key).ScopeOfList(field),
			"another key":         NewCursorSigner(append([]byte("x"), key...)).ScopeOfList(field, argument),
		} {
			if got, err := other.Decode(cursor); err == nil {
				t.Fatalf("%s: a scope of another list decodes the cursor to %q", name, got)
			}
		}
		// Changing any byte invalidates the cursor.
		changed := []byte(cursor)
		i := rapid.IntRange(0, len(changed)-1).Draw(t, "changed")
		changed[i] = rapid.SampledFrom([]byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")).Draw(t, "to")
		if got, err := list.Decode(string(changed)); string(changed) != cursor && err == nil {
			t.Fatalf("a modified cursor is decoded to %q, want an error", got)
		}
	})
}

// After a change of the key, cursors that are signed with the previous key remain valid until the
// next change.
func TestChangedKey(t *testing.T) {
	key := func(n string) []byte { return []byte("a key for tests, number " + n) }
	cursors := NewCursorSigner(key("1"))
	list := cursors.ScopeOfList("Query.customers")
	valid := func(cursor string) bool { _, err := list.Decode(cursor); return err == nil }
	first := list.Encode("x")
	cursors.ChangeKey(key("2"))
	second := list.Encode("x")
	if second != NewCursorSigner(key("2")).ScopeOfList("Query.customers").Encode("x") || !valid(first) || !valid(second) {
		t.Errorf("after one change, the first cursor is valid: %t, the second: %t", valid(first), valid(second))
	}
	cursors.ChangeKey(key("3"))
	if valid(first) || !valid(second) || !valid(list.Encode("x")) {
		t.Errorf("after two changes, the first cursor is valid: %t, the second: %t", valid(first), valid(second))
	}
	if valid(NewCursorSigner(nil).ScopeOfList("Query.customers").Encode("x")) {
		t.Error("a cursor signed with an empty key is valid")
	}
}

// A list may have more than maxListArguments arguments.
func TestCursorsOfListsWithManyArguments(t *testing.T) {
	c := NewCursorSigner([]byte("a key for tests"))
	list := c.ScopeOfList("Query.list", "a", "b", "c", "d")
	if got, err := list.Decode(list.Encode("x")); err != nil || got != "x" {
		t.Errorf("Decode returns %q, %v, want x", got, err)
	}
	for _, other := range []CursorScope{c.ScopeOfList("Query.list", "a", "b", "c"), c.ScopeOfList("Query.list", "a", "b", "c", "e"), c.ScopeOfList("Query.list", "a", "b", "x", "d")} {
		if _, err := other.Decode(list.Encode("x")); err == nil {
			t.Errorf("a cursor is also valid in the scope of another list, %+v", other)
		}
	}
}

func TestInvalidCursors(t *testing.T) {
	list := NewCursorSigner([]byte("a key for tests")).ScopeOfList("Query.customers")
	for name, cursor := range map[string]string{
		"empty": "", "text": "hello world", "standard base64": "AQ/+", "too short": "AQAA", "padded": list.Encode("x") + "=",
		"too long": strings.Repeat("A", 10_000), "another version": "Ag" + list.Encode("x")[2:],
	} {
		_, err := list.Decode(cursor)
		var invalid *commerce.InvalidError
		if !errors.As(err, &invalid) {
			t.Errorf("%s: error is %v, want an InvalidError", name, err)
		}
	}
}

// FuzzCursorOpen checks that Open never panics, and that it accepts only cursors that Seal creates
// for a position that fits in a key.
func FuzzCursorOpen(f *testing.F) {
	list := NewCursorSigner([]byte("a key for tests")).ScopeOfList("Query.customers")
	for _, position := range []string{"01HVMK3P2Q0000000000000001", "\x00", "\xff", "\xed\xa0\x80", "\U0010FFFF", strings.Repeat("a", maxPositionBytes), strings.Repeat("a", maxPositionBytes+1)} {
		f.Add(list.Encode(position))
	}
	f.Add("")
	f.Add("AQ")
	f.Add("AQ0PD55g_Ii_nyDhbDIwMjUtMDEtMDFUMDk6MDA6MDAuMDAwWiNjdXN0XzAwMQ")
	f.Fuzz(func(t *testing.T, cursor string) {
		position, err := list.Decode(cursor)
		if err != nil {
			if invalid := (*commerce.InvalidError)(nil); !errors.As(err, &invalid) {
				t.Errorf("%q: error is %v, want an InvalidError", cursor, err)
			}
			return
		}
		if list.Encode(position) != cursor {
			t.Errorf("the cursor %q is decoded to %q, but this position has the cursor %q", cursor, position, list.Encode(position))
		}
		if position == "" || len(position) > maxPositionBytes || !utf8.ValidString(position) {
			t.Errorf("%q opens to %q", cursor, position)
		}
	})
}
