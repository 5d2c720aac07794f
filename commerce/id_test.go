package commerce_test

import (
	"net/mail"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/oklog/ulid/v2"
	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"

	"github.com/ordergraph/ordergraph/commerce"
)

func TestParseID(t *testing.T) {
	for _, s := range []string{"a", "cust_01", "AVON-TORTOISE", "1.5", "_", strings.Repeat("x", commerce.MaxIDLength)} {
		if id, err := commerce.ParseID[commerce.SKU](s); err != nil || id != commerce.SKU(s) {
			t.Errorf("ParseID(%q) = %q, %v", s, id, err)
		}
	}
}

func TestParseIDRefuses(t *testing.T) {
	for s, reason := range map[string]string{
		"": "is empty",
		strings.Repeat("x", commerce.MaxIDLength+1): "65 bytes",
		strings.Repeat("x", 10_000):                 "10000 bytes",
		"a#b":                                       `'#'`,
		"a b":                                       `' '`,
		"a/b":                                       `'/'`,
		"a\x00":                                     `'\x00'`,
		"a\n":                                       `'\n'`,
		"käse":                                      `'ä'`,
		"\xff":                                      "contains",
	} {
		id, err := commerce.ParseID[commerce.CustomerID](s)
		checkInvalidError(t, err, reason)
		if id != "" {
			t.Errorf("ParseID(%.20q) returned %.20q and an error", s, id)
		}
	}
}

func TestParseOrderID(t *testing.T) {
	const canonical = "01HVMK3P2Q0000000000000001"
	for _, s := range []string{canonical, strings.ToLower(canonical), "01hvmk3p2Q0000000000000001"} {
		if id, err := commerce.ParseOrderID(s); err != nil || id != canonical {
			t.Errorf("ParseOrderID(%q) = %q, %v, want %q", s, id, err, canonical)
		}
	}
	id, err := commerce.ParseOrderID("7ZZZZZZZZZZZZZZZZZZZZZZZZZ")
	if err != nil || id != "7ZZZZZZZZZZZZZZZZZZZZZZZZZ" {
		t.Errorf("the last ULID: %q, %v", id, err)
	}
}

func TestParseOrderIDRefuses(t *testing.T) {
	for s, reason := range map[string]string{
		"":                                 "0 characters",
		"01HVMK3P2Q000000000000001":        "25 characters",
		"01HVMK3P2Q00000000000000011":      "27 characters",
		strings.Repeat("0", 10_000):        "10000 characters",
		"01HVMK3P2Q000000000000000I":       "without I L O U",
		"01HVMK3P2Q000000000000000l":       "without I L O U",
		"01HVMK3P2Q000000000000000O":       "without I L O U",
		"01HVMK3P2Q000000000000000U":       "without I L O U",
		"01HVMK3P2Q000000000000000#":       "is not a ULID",
		"01HVMK3P2Q000000000000000é":       "27 characters",
		"01HVMK3P2Q00000000000000\xff\xff": "is not a ULID",
		"8ZZZZZZZZZZZZZZZZZZZZZZZZZ":       "begins with 0 to 7",
	} {
		id, err := commerce.ParseOrderID(s)
		checkInvalidError(t, err, reason)
		if id != "" {
			t.Errorf("ParseOrderID(%.30q) returned %.30q and an error", s, id)
		}
	}
}

func FuzzParseOrderID(f *testing.F) {
	for _, seed := range []string{"01HVMK3P2Q0000000000000001", "01hvmk3p2q0000000000000001", "7ZZZZZZZZZZZZZZZZZZZZZZZZZ", "8ZZZZZZZZZZZZZZZZZZZZZZZZZ", "", "ORDER#01HVMK3P2Q0000000000"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		id, err := commerce.ParseOrderID(s)
		if err != nil {
			checkInvalidError(t, err)
			return
		}
		if !strings.EqualFold(s, string(id)) {
			t.Errorf("%q parses to %q, another id", s, id)
		}
		if again, err := commerce.ParseOrderID(string(id)); err != nil || again != id {
			t.Errorf("%q parses to %q, which parses to %q, %v", s, id, again, err)
		}
		if _, ok := id.Time(); !ok {
			t.Errorf("%q has no time", id)
		}
	})
}

// Any accepted ID is at most MaxIDLength bytes long and contains no '#'.
func FuzzParseID(f *testing.F) {
	for _, seed := range []string{"cust_01", "", "a#b", "\xff", strings.Repeat("x", 65)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		id, err := commerce.ParseID[commerce.CustomerID](s)
		if err != nil {
			checkInvalidError(t, err)
			return
		}
		if string(id) != s || s == "" || len(s) > commerce.MaxIDLength || strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.") != "" {
			t.Errorf("ParseID(%q) = %q", s, id)
		}
	})
}

func TestTimeOfIDs(t *testing.T) {
	want := time.Date(2024, 4, 16, 23, 15, 41, 783e6, time.UTC)
	if at, ok := commerce.OrderID("01HVMK3P2Q0000000000000001").Time(); !ok || at != want {
		t.Errorf("order id: %v, %v, want %v in UTC", at, ok, want)
	}
	if at, ok := commerce.EventID("01HVMK3P2Q0000000000000001").Time(); !ok || at != want {
		t.Errorf("event id: %v, %v, want %v in UTC", at, ok, want)
	}
	for _, id := range []commerce.OrderID{"", "ord_001", "8ZZZZZZZZZZZZZZZZZZZZZZZZZ"} {
		if at, ok := id.Time(); ok {
			t.Errorf("%q has the time %v", id, at)
		}
	}
}

// ulids draws any ULID. Its random part is often all 0 or all 1, to find errors at the boundaries.
func ulids() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		var id ulid.ULID
		if err := id.SetTime(rapid.Uint64Range(0, ulid.MaxTime()).Draw(t, "ms")); err != nil {
			t.Fatal(err)
		}
		fill := rapid.SampledFrom([]byte{0x00, 0xff, 0x5a}).Draw(t, "fill")
		for i := 6; i < len(id); i++ {
			id[i] = fill
		}
		return id.String()
	})
}

// A ULID is greater than or equal to MinULIDAt(at) if and only if its time is at or after at.
func TestFirstULIDDividesIDs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := commerce.OrderID(ulids().Draw(t, "id"))
		placed, _ := id.Time()
		// at is near the ID's time in half of the runs, and otherwise any time that a ULID can represent.
		at := time.Unix(rapid.Int64Range(0, int64(ulid.MaxTime()/1000)-1).Draw(t, "s"), rapid.Int64Range(0, 999_999_999).Draw(t, "ns"))
		if rapid.Bool().Draw(t, "near") {
			at = placed.Add(time.Duration(rapid.Int64Range(-2_000_001, 2_000_001).Draw(t, "near by")))
		}
		first, ok := commerce.MinULIDAt(at)
		if !ok {
			if !at.After(ulid.Time(ulid.MaxTime())) {
				t.Fatalf("FirstULID(%v) returned false", at)
			}
			return
		}
		if above, after := string(id) >= first, !placed.Before(at); above != after {
			t.Fatalf("ID %s of %v, FirstULID(%v) = %s: the ID is greater or equal: %v, its time is at or after: %v", id, placed, at, first, above, after)
		}
	})
}

func TestFirstULIDAtTheEnds(t *testing.T) {
	const smallest = "00000000000000000000000000"
	last := ulid.Time(ulid.MaxTime())
	for _, c := range []struct {
		at   time.Time
		want string
	}{
		{time.Time{}, smallest},
		{time.Date(1969, 12, 31, 23, 59, 59, 1, time.UTC), smallest},
		{time.Date(1969, 12, 31, 23, 59, 59, 999_999_999, time.UTC), smallest},
		{time.Unix(0, 0), smallest},
		{time.Unix(0, 1), "00000000010000000000000000"},
		{time.Date(2024, 4, 16, 23, 15, 41, 783e6, time.FixedZone("", 0)), "01HVMK3P2Q0000000000000000"},
		{time.Date(2024, 4, 17, 1, 15, 41, 783e6, time.FixedZone("", 2*60*60)), "01HVMK3P2Q0000000000000000"},
		{last, "7ZZZZZZZZZ0000000000000000"},
	} {
		if got, ok := commerce.MinULIDAt(c.at); !ok || got != c.want {
			t.Errorf("FirstULID(%v) = %q, %v, want %q", c.at, got, ok, c.want)
		}
	}
	for _, at := range []time.Time{last.Add(1), last.Add(time.Millisecond), time.Date(10890, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(250_000_000, 1, 1, 0, 0, 0, 0, time.UTC)} {
		if got, ok := commerce.MinULIDAt(at); ok {
			t.Errorf("FirstULID(%v) = %q, want none", at, got)
		}
	}
}

func TestParseText(t *testing.T) {
	for _, s := range []string{"x", "John Smith", "Zoë", "日本", "a/b", strings.Repeat("x", 20)} {
		if got, err := commerce.ParseSearchText(s, 20); err != nil || got != s {
			t.Errorf("ParseText(%q) = %q, %v", s, got, err)
		}
	}
	for s, reason := range map[string]string{
		"":                      "is empty",
		strings.Repeat("x", 21): "21 bytes",
		strings.Repeat("é", 11): "22 bytes",
		"a#b":                   `'#'`,
		"a\tb":                  `'\t'`,
		"a\x00":                 `'\x00'`,
		"a\x7f":                 `'\x7f'`,
	} {
		_, err := commerce.ParseSearchText(s, 20)
		checkInvalidError(t, err, reason)
	}
}

func TestEmailKey(t *testing.T) {
	for s, want := range map[string]string{
		"alice@example.com":             "alice@example.com",
		"Alice.B+x@Example.COM":         "alice.b+x@example.com",
		"a@b":                           "a@b",
		"ÄRGER@example.com":             "ärger@example.com",
		strings.Repeat("a", 252) + "@b": strings.Repeat("a", 252) + "@b",
	} {
		if got, err := commerce.EmailKey(s); err != nil || got != want {
			t.Errorf("EmailKey(%.30q) = %.30q, %v", s, got, err)
		}
		if got, err := commerce.ParseEmail(s); err != nil || got != s {
			t.Errorf("ParseEmail(%.30q) = %.30q, %v", s, got, err)
		}
	}
	for _, s := range []string{"alice", "@example.com", "alice@", "@", "a@b@c", "a b@c", "a@b c", " a@b"} {
		_, err := commerce.EmailKey(s)
		checkInvalidError(t, err, "is not an email address", "name@example.com")
	}
	for s, reason := range map[string]string{
		"":                              "is empty",
		strings.Repeat("a", 253) + "@b": "255 bytes",
		"a#@example.com":                `'#'`,
		"a@exa\tmple.com":               `'\t'`,
	} {
		_, err := commerce.EmailKey(s)
		checkInvalidError(t, err, reason)
		_, err = commerce.ParseEmail(s)
		checkInvalidError(t, err, reason)
	}
}

// An address that is not a single, unquoted address in a mail header is rejected. Older versions
// have stored such addresses, so lookups still find them.
func TestParseEmailRejectsHeaderSyntax(t *testing.T) {
	for _, s := range []string{
		"a,b@example.com", "a@example.com,b", "a<b>@example.com", "<a@example.com>", "A<a@example.com>", `"a"@example.com`, `a\b@example.com`, "a(b)@example.com",
		"a@example.com(b)", "a;b@example.com", "mailto:a@example.com", "g:a@example.com;", "a@[127.0.0.1]", "a..b@example.com", ".a@example.com", "a.@example.com", "a@example..com",
	} {
		_, err := commerce.ParseEmail(s)
		checkInvalidError(t, err, "is not an email address")
		if _, err := commerce.EmailKey(s); err != nil {
			t.Errorf("EmailKey(%q): %v", s, err)
		}
	}
	for _, s := range []string{"a@example.com\r\nBcc: b@example.com", "a\n@example.com", "a\x00@example.com", "a\u0085@example.com", "a\u2028@example.com"} {
		_, err := commerce.ParseEmail(s)
		checkInvalidError(t, err)
	}
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringMatching(`[a,;:<>()\[\]"\\. é]{1,8}@[b,;:<>()\[\]"\\.é]{1,8}`).Draw(t, "address")
		if _, err := commerce.ParseEmail(s); err != nil {
			return
		}
		list, err := mail.ParseAddressList("x@y, " + s + ", z@y")
		if err != nil || len(list) != 3 || list[1].Address != s {
			t.Fatalf("in a list of addresses, %q becomes %v, %v", s, list, err)
		}
	})
}

// The lookup form of an address is its own lookup form. Any spelling of the address then finds the
// same customer.
func TestEmailKeyIsStable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringMatching(`[A-Za-zÄÖÜİẞ0-9.+-]{1,20}@[A-Za-zÄ.-]{1,20}`).Draw(t, "address")
		once, err := commerce.EmailKey(s)
		if err != nil {
			t.Fatal(err)
		}
		if twice, err := commerce.EmailKey(once); err != nil || twice != once {
			t.Fatalf("%q is normalized to %q, which is normalized to %q, %v", s, once, twice, err)
		}
	})
}

// A folded name does not depend on the form of its characters or on spaces before it.
func TestFoldNameIsStable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.OneOf(rapid.StringMatching(`[ßẞςσΣİIıéÅﬁǅŉA-Za-z ]{1,20}`), rapid.StringN(0, 30, -1)).Draw(t, "name")
		once := commerce.FoldName(name)
		for what, other := range map[string]string{
			"folded again": once, "NFC": norm.NFC.String(name), "NFD": norm.NFD.String(name), "padded": "\u00a0 " + name,
		} {
			if got := commerce.FoldName(other); got != once {
				t.Fatalf("%q is folded to %q, and to %q when %s", name, once, got, what)
			}
		}
	})
}

// A folded name is normalized and at most MaxFoldedName bytes long.
func TestFoldName(t *testing.T) {
	for name, want := range map[string]string{
		"": "", "Mug": "mug", "ÉTÉ": "été", "E\u0301TE\u0301": "été", "a#B \"c\"!": "a-b--c--", "a\u00a0b\tc": "a-b-c",
		"Weiß": "weiss", "WEISS": "weiss", "ẞ": "ss", "Παπάς": "παπάσ", "ΠΑΠΆΣ": "παπάσ", "ﬁsh": "fish", "\u212a": "k", "  Ann": "ann", "Ꭰꭰ": "ᎠᎠ",
		"👩\u200d🚀": "👩🚀", "\u200b": "", "a\x00b": "ab", "a\x00\u0300": "à", "\xff": "", strings.Repeat("x", 255) + "é": strings.Repeat("x", 255),
	} {
		if got := commerce.FoldName(name); got != want {
			t.Errorf("%q is folded to %q, want %q", name, got, want)
		}
	}
}

// A filter accepts every text whose NFC is short enough. For each character, the test uses the
// longest text with the same NFC.
func TestParseFilterAcceptsLongestForms(t *testing.T) {
	longest := map[rune]rune{} // the longest character with this character as its NFD
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if parts := []rune(norm.NFD.String(string(r))); len(parts) == 1 && utf8.RuneLen(r) >= utf8.RuneLen(longest[parts[0]]) {
			longest[parts[0]] = r
		}
	}
	for r := ' '; r <= unicode.MaxRune; r++ {
		if !utf8.ValidRune(r) || r == '#' || r == 0x7f || unicode.IsSpace(r) {
			continue
		}
		text := strings.Map(func(part rune) rune { return longest[part] }, norm.NFD.String(string(r)))
		nfc := norm.NFC.String(string(r))
		if got, err := commerce.ParseFilter(text, len(nfc)); err != nil || norm.NFC.String(got) != nfc {
			t.Errorf("ParseFilter(%+q, %d) = %+q, %v", text, len(nfc), got, err)
		}
	}
}
