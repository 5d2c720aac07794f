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

// Ids are distinct types, so that a customer's cannot be given where an order's is wanted.
type (
	// CustomerID is 1 to 64 characters of A-Z a-z 0-9 _ - and point.
	CustomerID string
	// OrderID is a ULID in its canonical form: 26 characters of Crockford's base 32, upper case.
	OrderID string
	// EventID is a ULID, as OrderID.
	EventID string
	// SKU is a product's id, spelled as a CustomerID.
	SKU string
	// WarehouseID is spelled as a CustomerID.
	WarehouseID string
	// EmployeeID is spelled as a CustomerID.
	EmployeeID string
)

// MaxIDLength is how long an id that clients may choose can be, in bytes.
const MaxIDLength = 64

// ULIDLength is how long a ULID is, in bytes.
const ULIDLength = ulid.EncodedSize

// ParseID returns s as an id of the type that the caller asks for.
//
// Errors: InvalidError where s is empty, longer than MaxIDLength or holds other characters than
// A-Z a-z 0-9 _ - and point, so that an ID can be part of a key.
func ParseID[ID ~string](s string) (ID, error) {
	if s == "" {
		return "", Invalid("is empty: give an id")
	}
	if len(s) > MaxIDLength {
		return "", Invalid("has %d bytes: an id has at most %d", len(s), MaxIDLength)
	}
	for _, r := range s {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '_', r == '-', r == '.':
		default:
			return "", Invalid("holds %q: an id is made of A-Z a-z 0-9 _ - and point", r)
		}
	}
	return ID(s), nil
}

// ParseOrderID returns s as an order id, in upper case.
//
// Errors: InvalidError where s is no ULID (https://github.com/ulid/spec).
func ParseOrderID(s string) (OrderID, error) {
	if len(s) != ULIDLength {
		return "", Invalid("has %d characters: an order id is a ULID of %d, such as 01HVMK3P2Q0000000000000001", len(s), ULIDLength)
	}
	id, err := ulid.ParseStrict(s)
	if err != nil {
		return "", Invalid("is no ULID: it may hold 0-9 and A-Z without I L O U, and begins with 0 to 7")
	}
	return OrderID(id.String()), nil
}

// Time tells when the order was placed, to the millisecond, in UTC. It is false for an id that is
// no ULID, as other software may have written.
func (id OrderID) Time() (time.Time, bool) { return ulidTime(string(id)) }

// Time tells when the event happened, as OrderID.Time.
func (id EventID) Time() (time.Time, bool) { return ulidTime(string(id)) }

func ulidTime(s string) (time.Time, bool) {
	id, err := ulid.ParseStrict(s)
	if err != nil {
		return time.Time{}, false
	}
	return id.Timestamp().UTC(), true
}

// FirstULID returns the smallest ULID of the first millisecond that is not before at, so that ids
// at or above it belong to moments at or after at. Moments before 1970 give the smallest ULID of
// all; it is false for moments behind the year 10889, which no ULID can tell.
func FirstULID(at time.Time) (string, bool) {
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

// ParseText returns s as text that a client may search for, such as a name or a category.
//
// Errors: InvalidError where s is empty, longer than limit bytes, or holds '#' or control
// characters.
func ParseText(s string, limit int) (string, error) {
	if s == "" {
		return "", Invalid("is empty")
	}
	if len(s) > limit {
		return "", Invalid("has %d bytes: at most %d are allowed", len(s), limit)
	}
	if i := strings.IndexFunc(s, func(r rune) bool { return r == '#' || r < ' ' || r == 0x7f }); i >= 0 {
		return "", Invalid("holds %q, which is not allowed", s[i])
	}
	return s, nil
}

// ParseEmail returns the form of an e-mail address by which customers are found: lower case, and
// composed (Unicode's NFC).
//
// Errors: InvalidError where s is no address of the form local@domain, is longer than MaxEmail
// bytes, or holds spaces or '#'.
func ParseEmail(s string) (string, error) {
	text, err := ParseText(s, MaxEmail)
	if err != nil {
		return "", err
	}
	local, domain, ok := strings.Cut(text, "@")
	if !ok || local == "" || domain == "" || strings.Contains(domain, "@") || strings.ContainsFunc(text, invisible) {
		return "", Invalid("is no e-mail address: it has the form name@example.com")
	}
	return fold(text), nil
}

// fold returns text in lower case and composed (Unicode's NFC).
func fold(text string) string { return norm.NFC.String(strings.ToLower(norm.NFC.String(text))) }

// MaxFoldedName is how many bytes a name has at most as FoldName returns it.
const MaxFoldedName = 256

// FoldName returns the form of a name by which records are found and sorted: in lower case and
// composed, as e-mail addresses are. Characters that show nothing are left out, and the end of a
// name that is longer than MaxFoldedName bytes. A space becomes '-', and so do the characters from
// '!' to '#': then a name that ends with '#' in a key sorts before the longer names that begin with
// it.
func FoldName(name string) string {
	folded := strings.Map(func(r rune) rune {
		switch {
		case r <= '#' && r >= ' ', unicode.IsSpace(r):
			return '-'
		case invisible(r):
			return -1
		}
		return r
	}, fold(name))
	if len(folded) > MaxFoldedName {
		end := MaxFoldedName
		for !utf8.RuneStart(folded[end]) {
			end--
		}
		folded = folded[:end]
	}
	return folded
}

// invisible tells of a character that shows nothing, a space or a mark of direction, say, or is
// none.
func invisible(r rune) bool {
	const emptyBraille = '\u2800'
	// Fillers are letters to Unicode, and selectors of a variant are marks.
	return r == ' ' || r == emptyBraille || r == utf8.RuneError || !unicode.IsPrint(r) ||
		unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// ParseName returns s as a name or a line of text that is shown to people.
//
// Errors: InvalidError where s shows nothing, is longer than limit bytes, or holds control
// characters.
func ParseName(s string, limit int) (string, error) {
	if !strings.ContainsFunc(s, func(r rune) bool { return !invisible(r) }) {
		return "", Invalid("is empty")
	}
	if len(s) > limit {
		return "", Invalid("has %d bytes: at most %d are allowed", len(s), limit)
	}
	if i := strings.IndexFunc(s, func(r rune) bool { return unicode.IsControl(r) || r == utf8.RuneError }); i >= 0 {
		return "", Invalid("holds a control character, or none at all, at byte %d", i)
	}
	return s, nil
}

// ParseListedName returns s as a name that records are listed by, such as an employee's or a
// category's.
//
// Errors: those of ParseName, and InvalidError where s holds '#'.
func ParseListedName(s string, limit int) (string, error) {
	if _, err := ParseName(s, limit); err != nil {
		return "", err
	}
	return ParseText(s, limit)
}

// ParseCountry returns s as a country.
//
// Errors: InvalidError where ISO 3166-1 has no such two letters.
func ParseCountry(s string) (string, error) {
	region, err := language.ParseRegion(s)
	if err != nil || len(s) != 2 || region.Canonicalize().String() != s || !region.IsCountry() {
		return "", Invalid("is no country: give two upper-case letters of ISO 3166-1, such as US")
	}
	return s, nil
}
