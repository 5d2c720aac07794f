package commerce

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/oklog/ulid/v2"
	"golang.org/x/text/language"
	"golang.org/x/text/unicode/norm"
)

// Each kind of record has its own ID type, so the compiler rejects a customer ID where an order ID
// is required.
type (
	// CustomerID has 1 to 64 characters: A-Z a-z 0-9 _ - and period.
	CustomerID string
	// OrderID is a ULID in canonical form: 26 upper-case characters of Crockford's base 32.
	OrderID string
	// EventID is a ULID, like OrderID.
	EventID string
	// SKU is the ID of a product. It has the form of a CustomerID.
	SKU string
	// WarehouseID has the form of a CustomerID.
	WarehouseID string
	// EmployeeID has the form of a CustomerID.
	EmployeeID string
)

// MaxIDLength is the maximum size in bytes of an ID that clients may choose.
const MaxIDLength = 64

// ULIDLength is the size of a ULID in bytes.
const ULIDLength = ulid.EncodedSize

// ParseID validates s and returns it as an ID of the requested type. The allowed characters have no
// special meaning in the table's keys.
//
// It returns an InvalidError if s is empty, longer than MaxIDLength or contains a character other
// than A-Z a-z 0-9 _ - and period.
func ParseID[ID ~string](s string) (ID, error) {
	if s == "" {
		return "", NewInvalidError("is empty: use 1 to %d characters", MaxIDLength)
	}
	if len(s) > MaxIDLength {
		return "", NewInvalidError("has %d bytes: use at most %d", len(s), MaxIDLength)
	}
	for _, r := range s {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '_', r == '-', r == '.':
		default:
			return "", NewInvalidError("contains %q: use only A-Z a-z 0-9 _ - and period", r)
		}
	}
	return ID(s), nil
}

// ParseOrderID validates s and returns it as an order ID, in upper case.
//
// It returns an InvalidError if s is not a ULID (https://github.com/ulid/spec).
func ParseOrderID(s string) (OrderID, error) {
	if len(s) != ULIDLength {
		return "", NewInvalidError("has %d characters: an order ID is a ULID of %d characters, such as 01HVMK3P2Q0000000000000001", len(s), ULIDLength)
	}
	id, err := ulid.ParseStrict(s)
	if err != nil {
		return "", NewInvalidError("is not a ULID: a ULID consists of 0-9 and A-Z without I L O U, and begins with 0 to 7")
	}
	return OrderID(id.String()), nil
}

// Time returns the time when the order was placed, in UTC with a precision of milliseconds. It
// returns false if the ID is not a ULID, which is possible if other software wrote the order.
func (id OrderID) Time() (time.Time, bool) { return ulidTime(string(id)) }

// Time returns the time of the event. It returns false if the ID is not a ULID.
func (id EventID) Time() (time.Time, bool) { return ulidTime(string(id)) }

func ulidTime(s string) (time.Time, bool) {
	id, err := ulid.ParseStrict(s)
	if err != nil {
		return time.Time{}, false
	}
	return id.Timestamp().UTC(), true
}

// MinULIDAt rounds a time up to a full millisecond, and returns the smallest ULID with this time.
// ULIDs with an earlier time sort before the result. All other ULIDs sort at or after the result.
//
// For a time before 1970, MinULIDAt returns the smallest possible ULID. It returns false for a time
// after the year 10889, because a ULID cannot represent such a time.
func MinULIDAt(at time.Time) (string, bool) {
	ms := at.UnixMilli()
	if at.Nanosecond()%int(time.Millisecond) != 0 {
		ms++
	}
	if at.Unix() < 0 {
		ms = 0
	}
	var id ulid.ULID
	if uint64(ms) > ulid.MaxTime() || id.SetTime(uint64(ms)) != nil {
		return "", false
	}
	return id.String(), true
}

// ParseSearchText validates and returns s as text by which clients search, such as a name or a category.
//
// It returns an InvalidError if s is empty, longer than limit bytes, or contains '#' or control
// characters.
func ParseSearchText(s string, limit int) (string, error) {
	if s == "" {
		return "", NewInvalidError("is empty: use 1 to %d bytes", limit)
	}
	if len(s) > limit {
		return "", NewInvalidError("has %d bytes: use at most %d", len(s), limit)
	}
	if i := strings.IndexFunc(s, func(r rune) bool { return r == '#' || r < ' ' || r == 0x7f }); i >= 0 {
		return "", NewInvalidError("contains %q: remove this character", s[i])
	}
	return s, nil
}

// ParseEmail returns an email address in the normalized form that lookups use: lower case and
// Unicode NFC.
//
// It returns an InvalidError if s does not have the form local@domain, is longer than MaxEmail
// bytes, or contains spaces or '#'.
func ParseEmail(s string) (string, error) {
	text, err := ParseSearchText(s, MaxEmail)
	if err != nil {
		return "", err
	}
	local, domain, ok := strings.Cut(text, "@")
	if !ok || local == "" || domain == "" || strings.Contains(domain, "@") || strings.ContainsFunc(text, isInvisible) {
		return "", NewInvalidError("is not an email address: use the form name@example.com")
	}
	return foldCase(text), nil
}

// foldCase returns text in lower case and Unicode NFC.
func foldCase(text string) string { return norm.NFC.String(strings.ToLower(norm.NFC.String(text))) }

// MaxFoldedName is the maximum size in bytes of the result of FoldName.
const MaxFoldedName = 256

// FoldName returns the normalized form of a name, for searching and sorting. The result is in lower
// case and Unicode NFC. It contains no invisible characters, and is truncated to MaxFoldedName
// bytes.
//
// In a key, the character '#' follows the folded name. FoldName replaces '#', and the characters
// that sort before '#' (the space, '!' and '"'), with '-'. So all characters of the result sort
// after '#', and in a list, a name precedes longer names that begin with the same characters.
func FoldName(name string) string {
	folded := strings.Map(func(r rune) rune {
		switch {
		case r <= '#' && r >= ' ', unicode.IsSpace(r):
			return '-'
		case isInvisible(r):
			return -1
		}
		return r
	}, foldCase(name))
	if len(folded) > MaxFoldedName {
		end := MaxFoldedName
		for !utf8.RuneStart(folded[end]) {
			end--
		}
		folded = folded[:end]
	}
	return folded
}

// isInvisible reports whether a character is invalid or invisible, such as a space or a direction
// mark.
func isInvisible(r rune) bool {
	const emptyBraille = '\u2800'
	// unicode.IsPrint accepts some invisible characters: fillers, which count as letters, and
	// variation selectors, which count as marks.
	return r == ' ' || r == emptyBraille || r == utf8.RuneError || !unicode.IsPrint(r) ||
		unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// ParseName validates and returns s as a name, or as another line of text for people.
//
// It returns an InvalidError if s has no visible character, is longer than limit bytes, or contains
// control characters or invalid UTF-8.
func ParseName(s string, limit int) (string, error) {
	if !strings.ContainsFunc(s, func(r rune) bool { return !isInvisible(r) }) {
		return "", NewInvalidError("is empty: use 1 to %d bytes", limit)
	}
	if len(s) > limit {
		return "", NewInvalidError("has %d bytes: use at most %d", len(s), limit)
	}
	if i := strings.IndexFunc(s, func(r rune) bool { return unicode.IsControl(r) || r == utf8.RuneError }); i >= 0 {
		return "", NewInvalidError("contains a control character or invalid UTF-8 at byte %d: remove it", i)
	}
	return s, nil
}

// ParseSearchableName validates and returns s as a name by which lists are searched or sorted, such as
// an employee's name or a category.
//
// It returns an InvalidError if ParseName rejects s, or if s contains '#'.
func ParseSearchableName(s string, limit int) (string, error) {
	if _, err := ParseName(s, limit); err != nil {
		return "", err
	}
	return ParseSearchText(s, limit)
}

// ParseCountry validates and returns s as a country code.
//
// It returns an InvalidError if s is not a two-letter code of ISO 3166-1.
func ParseCountry(s string) (string, error) {
	region, err := language.ParseRegion(s)
	if err != nil || len(s) != 2 || region.Canonicalize().String() != s || !region.IsCountry() {
		return "", NewInvalidError("is not a country code: use two upper-case letters of ISO 3166-1, such as US")
	}
	return s, nil
}
