package commerce

import (
	"crypto/sha256"
	"encoding/base32"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/oklog/ulid/v2"
	"golang.org/x/text/cases"
	"golang.org/x/text/language"
	"golang.org/x/text/unicode/norm"
)

// Each kind of record has its own ID type, so the compiler rejects a customer ID where an order ID
// is required.
type (
	// CustomerID has 1 to 64 characters: A-Z a-z 0-9 _ - and period. Only the ID of a guest also has a colon (see
	// GuestID).
	CustomerID string
	// OrderID is a ULID in canonical form: 26 upper-case characters of Crockford's base 32.
	OrderID string
	// EventID is a ULID, like OrderID.
	EventID string
	// PaymentID is a ULID, like OrderID.
	PaymentID string
	// ReturnID is a ULID, like OrderID.
	ReturnID string
	// FulfillmentID is a ULID, like OrderID.
	FulfillmentID string
	// SKU is the ID of a product. It has the same form as a CustomerID.
	SKU string
	// WarehouseID has the same form as a CustomerID.
	WarehouseID string
	// EmployeeID has the same form as a CustomerID.
	EmployeeID string
)

// MaxIDLength is the maximum size in bytes of an ID that clients may choose.
const MaxIDLength = 64

// ULIDLength is the size of a ULID in bytes.
const ULIDLength = ulid.EncodedSize

// ParseID validates s and returns it as an ID of the requested type.
//
// ParseID returns an InvalidError unless s consists of 1 to MaxIDLength characters from A-Z a-z 0-9
// _ - and period.
func ParseID[ID ~string](s string) (ID, error) {
	if s == "" {
		return "", NewInvalidError("is empty: use 1 to %d characters", MaxIDLength)
	}
	if len(s) > MaxIDLength {
		return "", NewInvalidError("has %d bytes: use at most %d", len(s), MaxIDLength)
	}
	for _, r := range s {
		switch {
		// These characters have no special meaning in DynamoDB keys.
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '_', r == '-', r == '.':
		default:
			return "", NewInvalidError("contains %q: use only A-Z a-z 0-9 _ - and period", r)
		}
	}
	return ID(s), nil
}

// guestPrefix begins the IDs of guests. ParseID rejects the colon, so no client can use such an ID.
const guestPrefix = "guest:"

// AnyGuest stands for the guest in an event of a guest's order.
const AnyGuest CustomerID = guestPrefix

// GuestID returns the ID in the orders of guests with an email address. It contains a hash of the address.
//
// It returns the errors of EmailKey.
func GuestID(email string) (CustomerID, error) {
	key, err := EmailKey(email)
	hash := sha256.Sum256([]byte(key))
	return CustomerID(guestPrefix + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(hash[:]))), err
}

// IsGuest reports whether the ID stands for guests. They have no customer record.
func (id CustomerID) IsGuest() bool { return strings.HasPrefix(string(id), guestPrefix) }

// ParseOrderID validates s and returns it as an order ID, in upper case.
//
// ParseOrderID returns an InvalidError if s is not a ULID (https://github.com/ulid/spec).
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

// OrderIDFrom returns an order ID with the given time. The rest of the ID is a hash of text, such as
// the ID that other software uses for the order.
//
// OrderIDFrom returns an InvalidError if a ULID cannot represent the time.
func OrderIDFrom(placedAt time.Time, text string) (OrderID, error) {
	var id ulid.ULID
	if err := id.SetTime(ulid.Timestamp(placedAt)); err != nil || placedAt.Unix() < 0 {
		return "", NewInvalidError("was placed at %s: use a time after 1970", placedAt)
	}
	return OrderID(withHash(id, text)), nil
}

// withHash returns a ULID with the same time as id. The rest of the ULID is a hash of text.
func withHash(id ulid.ULID, text string) string {
	hash := sha256.Sum256([]byte(text))
	copy(id[6:], hash[:])
	return id.String()
}

// Time returns the time in UTC when the order was placed. It returns false if the ID is not a ULID.
// Only other software writes such IDs.
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

// MinULIDAt returns the smallest ULID with the given time or a later time. A ULID cannot represent
// a time after 2 August 10889. For such a time, MinULIDAt returns false.
func MinULIDAt(at time.Time) (string, bool) {
	ms := at.UnixMilli()
	if at.Nanosecond()%int(time.Millisecond) != 0 {
		ms++ // ULIDs have a precision of milliseconds, so round up
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

// MinEventIDAt returns the lowest ID that an event at the given time or later can have. For a time
// that a ULID cannot represent, it returns an empty ID.
func MinEventIDAt(at time.Time) EventID {
	id, _ := MinULIDAt(at)
	return EventID(id)
}

// ParseSearchText validates s as text that clients can search for.
//
// It returns an InvalidError if s is empty, is longer than limit bytes, or contains '#' or control
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

// ParseEmail validates s as the email address of a customer. It returns the address unchanged.
//
// It returns an InvalidError if EmailKey rejects s, or if a mail header could not contain s
// unquoted as a single address. Such an address could add recipients or headers to an email.
func ParseEmail(s string) (string, error) {
	if _, err := EmailKey(s); err != nil {
		return "", err
	}
	local, domain, _ := strings.Cut(s, "@")
	// The "specials" of RFC 5322 are allowed only within quotes.
	if strings.ContainsAny(s, `()<>[]:;,\"`) || slices.Contains(strings.Split(local, "."), "") || slices.Contains(strings.Split(domain, "."), "") {
		return "", errNotEmail()
	}
	return s, nil
}

// EmailKey returns the form of an email address for lookups: in lower case and Unicode NFC. It
// accepts some addresses that ParseEmail rejects, because older versions have stored them.
//
// It returns an InvalidError if s has no form of an email address, is longer than MaxEmail bytes,
// or contains '#' or invisible characters.
func EmailKey(s string) (string, error) {
	key, err := EmailKeyPrefix(s)
	if err != nil {
		return "", err
	}
	local, domain, ok := strings.Cut(key, "@")
	if !ok || local == "" || domain == "" || strings.Contains(domain, "@") {
		return "", errNotEmail()
	}
	return key, nil
}

// EmailKeyPrefix returns the beginning of an email address in the form that EmailKey returns.
//
// It returns an InvalidError if s is empty, longer than MaxEmail bytes, or contains '#' or invisible
// characters. No email address begins with such a text.
func EmailKeyPrefix(s string) (string, error) {
	text, err := ParseSearchText(s, MaxEmail)
	if err != nil {
		return "", err
	}
	if strings.ContainsFunc(text, isInvisible) {
		return "", errNotEmail()
	}
	return norm.NFC.String(strings.ToLower(norm.NFC.String(text))), nil
}

func errNotEmail() error {
	return NewInvalidError("is not an email address: use the form name@example.com")
}

// NormalizeName returns the form in which names, job titles and categories are compared: in Unicode
// NFC, without leading and trailing spaces. ParseName returns names in this form, but other software
// and older versions have stored other forms.
func NormalizeName(name string) string { return norm.NFC.String(strings.TrimSpace(name)) }

// normalizeShortName is like NormalizeName, but does not change a text that exceeds limit bytes also
// in NFC. A client could otherwise send one long text for many arguments, and normalizing it for
// each of them would take seconds.
func normalizeShortName(name string, limit int) string {
	if name = strings.TrimSpace(name); len(name) > maxShrinkage*limit {
		return name
	}
	return norm.NFC.String(name)
}

// maxShrinkage is an upper bound for the quotient of the sizes of a text and of its NFC. For
// example, the NFC of the 7 bytes "\u1fbe\u0308\u0301" has 2 bytes.
const maxShrinkage = 4

// ParseFilter validates s as the text of a filter, and returns it as NormalizeName does.
//
// It returns the errors of ParseSearchText.
func ParseFilter(s string, limit int) (string, error) {
	return ParseSearchText(normalizeShortName(s, limit), limit)
}

// MaxFoldedName is the maximum size in bytes of the result of FoldName.
const MaxFoldedName = 256

// FoldName returns the form of a name for searching and sorting. The result has Unicode's full case
// folding, so "ß" equals "SS" and a final "ς" equals "Σ". It is in NFC, without leading spaces and
// invisible characters, and has at most MaxFoldedName bytes.
func FoldName(name string) string {
	folded := norm.NFC.String(strings.Map(func(r rune) rune {
		switch {
		// In sort keys, '#' follows a folded name. The characters from space to '#' become '-'.
		// Otherwise, the key "ann lee#" would sort before the key "ann#".
		case r <= '#' && r >= ' ', unicode.IsSpace(r):
			return '-'
		case isInvisible(r):
			return -1
		case unicode.Is(unicode.Cherokee, r):
			return unicode.ToUpper(r) // Unicode folds Cherokee to upper case, but package cases swaps the cases
		}
		return r
	}, cases.Fold().String(norm.NFD.String(strings.TrimLeftFunc(name, unicode.IsSpace)))))
	if len(folded) > MaxFoldedName {
		end := MaxFoldedName
		for !utf8.RuneStart(folded[end]) {
			end--
		}
		folded = folded[:end]
	}
	return folded
}

// isInvisible reports whether a character is invisible or invalid. For example, spaces and
// direction marks are invisible.
func isInvisible(r rune) bool {
	const emptyBraille = '\u2800'
	// unicode.IsPrint returns true for some invisible characters. For example, Unicode classifies
	// fillers as letters, and variation selectors as marks.
	return r == ' ' || r == emptyBraille || r == utf8.RuneError || !unicode.IsPrint(r) ||
		unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// ParseName validates s as a single line of text, such as a name, and returns it as NormalizeName
// does.
//
// It returns an InvalidError if s has no visible character, is longer than limit bytes, or contains
// control characters, zero-width characters, bidirectional formatting or invalid UTF-8. Otherwise,
// two names could look the same, or a name could change how the text around it looks.
func ParseName(s string, limit int) (string, error) {
	s = normalizeShortName(s, limit)
	if len(s) > limit {
		return "", NewInvalidError("has %d bytes: use at most %d", len(s), limit)
	}
	if !strings.ContainsFunc(s, func(r rune) bool { return !isInvisible(r) }) {
		return "", NewInvalidError("is empty: use 1 to %d bytes", limit)
	}
	previous := ' '
	for i, r := range s {
		next, _ := utf8.DecodeRuneInString(s[i+utf8.RuneLen(r):])
		switch {
		case unicode.IsControl(r) || r == utf8.RuneError:
			return "", NewInvalidError("contains a control character or invalid UTF-8 at byte %d: remove it", i)
		case (r == '\u200c' || r == '\u200d') && isJoinable(previous) && isJoinable(next):
		case unicode.Is(unicode.Variation_Selector, r) && !hasVariants(previous):
			return "", NewInvalidError("contains the invisible character %U at byte %d: remove it", r, i)
		case r == '\u2028' || r == '\u2029' || unicode.In(r, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point) && !unicode.Is(unicode.Prepended_Concatenation_Mark, r):
			return "", NewInvalidError("contains the invisible character %U at byte %d: remove it", r, i)
		}
		previous = r
	}
	return s, nil
}

// ParseText is like ParseName, but the text can have several lines. Lines can be empty.
func ParseText(s string, limit int) (string, error) {
	s = strings.TrimSpace(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(s))
	if !strings.Contains(s, "\n") || len(s) > maxShrinkage*limit {
		return ParseName(s, limit)
	}
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		indent := line[:len(line)-len(strings.TrimLeft(line, " "))]
		if lines[i] = strings.TrimSpace(line); lines[i] == "" {
			continue
		}
		text, err := ParseName(lines[i], limit)
		if err != nil {
			return "", err
		}
		lines[i] = indent + text
	}
	s = strings.Join(lines, "\n")
	if len(s) > limit {
		return "", NewInvalidError("has %d bytes: use at most %d", len(s), limit)
	}
	return s, nil
}

// isJoinable reports whether U+200C and U+200D (zero-width joiners) next to a character can be
// visible. This is the case for emoji, and for scripts such as Arabic and Devanagari.
func isJoinable(r rune) bool {
	return unicode.In(r, unicode.So, unicode.Sk, unicode.Variation_Selector) || (unicode.IsLetter(r) || unicode.IsMark(r)) &&
		!unicode.In(r, unicode.Latin, unicode.Greek, unicode.Cyrillic, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul)
}

// hasVariants reports whether a variation selector after a character can be visible. This is the
// case for emoji, for digits (which can become emoji), and for the scripts of Unicode's
// StandardizedVariants.txt and Ideographic Variation Database.
func hasVariants(r rune) bool {
	return unicode.In(r, unicode.So, unicode.Sm, unicode.Po, unicode.Nd, unicode.Han, unicode.Mongolian, unicode.Myanmar, unicode.Phags_Pa)
}

// ParseSearchableName validates s as a name by which lists are searched or sorted.
//
// It returns an InvalidError if ParseName rejects s, or if s contains '#'.
func ParseSearchableName(s string, limit int) (string, error) {
	name, err := ParseName(s, limit)
	if err != nil {
		return "", err
	}
	return ParseSearchText(name, limit)
}

// ParseCountry validates s and returns it as a country code.
//
// ParseCountry returns an InvalidError if s is not a two-letter code of ISO 3166-1.
func ParseCountry(s string) (string, error) {
	region, err := language.ParseRegion(s)
	if err != nil || len(s) != 2 || region.Canonicalize().String() != s || !region.IsCountry() {
		return "", NewInvalidError("is not a country code: use two upper-case letters of ISO 3166-1, such as US")
	}
	return s, nil
}
