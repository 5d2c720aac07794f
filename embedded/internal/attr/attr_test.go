package attr_test

import (
	"bytes"
	"cmp"
	"maps"
	"math/big"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"github.com/ordergraph/ordergraph/embedded/internal/attr"
	"github.com/ordergraph/ordergraph/internal/test/longtest"
)

func TestMain(m *testing.M) {
	longtest.SetRapidChecks(200, 20_000)
	os.Exit(m.Run())
}

// notation draws a number within the limits, in any notation.
func notation(t *rapid.T) string {
	text := rapid.StringMatching(`[+-]?(0|0{0,3}[1-9][0-9]{0,17})(\.[0-9]{0,20})?`).Draw(t, "number")
	if rapid.Bool().Draw(t, "scientific") {
		text += rapid.SampledFrom([]string{"e", "E", "e+"}).Draw(t, "e") + rapid.StringMatching(`0{0,2}(10[0-7]|[1-9]?[0-9])`).Draw(t, "exponent")
	} else if rapid.Bool().Draw(t, "small") {
		text += "E-" + rapid.StringMatching(`10[0-9]|[1-9]?[0-9]`).Draw(t, "exponent")
	}
	return text
}

// number draws a canonical number.
func number(t *rapid.T) attr.Value {
	v, err := attr.Value{Kind: attr.Number, Text: notation(t)}.Normalize()
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// rat returns a number for exact arithmetic.
func rat(t *rapid.T, text string) *big.Rat {
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		t.Fatalf("%q is not a number", text)
	}
	return r
}

// key draws a value of a key's type. Texts have many zero bytes and common prefixes, which are the
// difficult cases of encoded keys.
func key(t *rapid.T, kind attr.Kind) attr.Value {
	if kind == attr.Number {
		return number(t)
	}
	bytes := rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 'a', 'b', 0x7F, 0xFE, 0xFF}), 0, 6).Draw(t, "bytes")
	if kind == attr.String {
		return newString(strings.ToValidUTF8(string(bytes), "\U0001F600"))
	}
	return attr.Value{Kind: kind, Text: string(bytes)}
}

func TestKeysSortLikeValues(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom([]attr.Kind{attr.String, attr.Number, attr.Binary}).Draw(t, "kind")
		a, b := key(t, kind), key(t, kind)
		want := strings.Compare(a.Text, b.Text)
		if kind == attr.Number {
			want = rat(t, a.Text).Cmp(rat(t, b.Text))
		}
		if got := a.Compare(b); cmp.Compare(got, 0) != want {
			t.Errorf("Compare is %d, want %d", got, want)
		}
		if got := bytes.Compare(a.AppendSortableBytes(nil), b.AppendSortableBytes(nil)); got != want {
			t.Errorf("the order of the keys is %d, want %d", got, want)
		}
		// In a composite key, further bytes must not change the order of different values.
		further := rapid.SliceOfN(rapid.Byte(), 0, 4)
		longA, longB := a.AppendSortableBytes(nil), b.AppendSortableBytes(nil)
		longA, longB = append(longA, further.Draw(t, "after a")...), append(longB, further.Draw(t, "after b")...)
		if got := bytes.Compare(longA, longB); want != 0 && got != want {
			t.Errorf("the order of composite keys is %d, want %d", got, want)
		}
	})
}

func TestPrefixOfKeys(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		v, prefix := key(t, attr.Binary), key(t, attr.Binary).Text
		if rapid.Bool().Draw(t, "prefix of the value") {
			prefix = v.Text[:rapid.IntRange(0, len(v.Text)).Draw(t, "length")]
		}
		if got, want := bytes.HasPrefix(v.AppendSortableBytes(nil), attr.AppendSortablePrefix(nil, prefix)), strings.HasPrefix(v.Text, prefix); got != want {
			t.Errorf("%q has the prefix %q: %t, want %t", v.Text, prefix, got, want)
		}
	})
}

func TestCanonicalNumbers(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := notation(t)
		v, err := attr.Value{Kind: attr.Number, Text: text}.Normalize()
		if err != nil {
			t.Fatal(err)
		}
		if rat(t, text).Cmp(rat(t, v.Text)) != 0 {
			t.Errorf("%s became %s", text, v.Text)
		}
		if again, err := v.Normalize(); err != nil || again.Text != v.Text {
			t.Errorf("the canonical number %s became %s, %v", v.Text, again.Text, err)
		}
		if strings.ContainsAny(v.Text, "eE+") || strings.HasPrefix(strings.TrimPrefix(v.Text, "-"), ".") || strings.Contains(v.Text, ".") && strings.HasSuffix(v.Text, "0") {
			t.Errorf("%s is not canonical", v.Text)
		}
		other := number(t)
		if equal := rat(t, v.Text).Cmp(rat(t, other.Text)) == 0; equal != (v.Text == other.Text) || equal != v.Equal(other) {
			t.Errorf("%s and %s: equal is %t", v.Text, other.Text, equal)
		}
	})
}

func TestInvalidNumbers(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "x", " 1", "1 ", "1e", "e1", "--1", "+-1", "1.2.3", "0x1", "1_0", "NaN", "Infinity", ".", "-", "1e1e1", "١",
		"1e126", "-1e126", "1e-131", "10e125", "123456789012345678901234567890123456789", "1e999999999999999999999",
	} {
		if v, err := (attr.Value{Kind: attr.Number, Text: text}).Normalize(); err == nil {
			t.Errorf("%q became %s", text, v.Text)
		}
	}
}

// within reports whether a number is within DynamoDB's limits.
func within(r *big.Rat) bool {
	if r.Sign() == 0 {
		return true
	}
	text := strings.TrimLeft(strings.TrimRight(strings.ReplaceAll(strings.TrimPrefix(r.FloatString(200), "-"), ".", ""), "0"), "0")
	power := func(exponent int64) *big.Rat {
		return new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(exponent), nil))
	}
	size := new(big.Rat).Abs(r)
	return len(text) <= 38 && size.Cmp(power(126)) < 0 && new(big.Rat).Mul(size, power(130)).Cmp(power(0)) >= 0
}

func TestAdd(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := number(t), number(t)
		subtract := rapid.Bool().Draw(t, "subtract")
		want := new(big.Rat)
		if want.Add(rat(t, a.Text), rat(t, b.Text)); subtract {
			want.Sub(rat(t, a.Text), rat(t, b.Text))
		}
		sum, err := attr.Add(a, b, subtract)
		switch {
		case within(want) != (err == nil):
			t.Errorf("want %s, got %s, %v", want.FloatString(140), sum.Text, err)
		case err == nil && rat(t, sum.Text).Cmp(want) != 0:
			t.Errorf("want %s, got %s", want.FloatString(140), sum.Text)
		case err == nil:
			if canonical, err := sum.Normalize(); err != nil || canonical.Text != sum.Text {
				t.Errorf("the sum %s is not canonical: %s, %v", sum.Text, canonical.Text, err)
			}
		}
	})
}

// value draws a valid value with a depth of lists and maps.
func value(t *rapid.T, depth int) attr.Value {
	kinds := []attr.Kind{attr.String, attr.Number, attr.Binary, attr.Bool, attr.Null, attr.StringSet, attr.NumberSet, attr.BinarySet}
	if depth > 0 {
		kinds = append(kinds, attr.List, attr.Map)
	}
	v := attr.Value{Kind: rapid.SampledFrom(kinds).Draw(t, "kind")}
	switch v.Kind {
	case attr.String:
		v.Text = rapid.String().Draw(t, "text")
	case attr.Number, attr.Binary:
		v = key(t, v.Kind)
	case attr.Bool:
		v.Bool = rapid.Bool().Draw(t, "bool")
	case attr.Null:
		v.Bool = true
	case attr.List:
		v.List = []attr.Value{}
		for range rapid.IntRange(0, 3).Draw(t, "length") {
			v.List = append(v.List, value(t, depth-1))
		}
	case attr.Map:
		v.Map = item(t, depth-1)
	default:
		for range rapid.IntRange(1, 3).Draw(t, "length") {
			if e := key(t, v.Kind-attr.StringSet+attr.String).Text; !slices.Contains(v.Set, e) {
				v.Set = append(v.Set, e)
			}
		}
	}
	return v
}

// item draws a valid item.
func item(t *rapid.T, depth int) attr.Item {
	i := attr.Item{}
	for range rapid.IntRange(0, 4).Draw(t, "attributes") {
		i[rapid.StringN(1, -1, -1).Draw(t, "name")] = value(t, depth)
	}
	return i
}

func TestItemsRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := item(t, 3)
		encoded := want.AppendJSON(nil)
		got, err := attr.ParseItem(encoded)
		if err != nil {
			t.Fatalf("%s: %v", encoded, err)
		}
		if !(attr.Value{Kind: attr.Map, Map: got}).Equal(attr.Value{Kind: attr.Map, Map: want}) {
			t.Errorf("%s became %s", encoded, got.AppendJSON(nil))
		}
		if got.Size() != want.Size() {
			t.Errorf("%s: the size %d became %d", encoded, want.Size(), got.Size())
		}
		normalized, err := got.Normalize()
		if err != nil || !(attr.Value{Kind: attr.Map, Map: normalized}).Equal(attr.Value{Kind: attr.Map, Map: want}) {
			t.Errorf("%s was normalized to %s, %v", encoded, normalized.AppendJSON(nil), err)
		}
	})
}

func TestNesting(t *testing.T) {
	t.Parallel()
	for depth, valid := range map[int]bool{31: true, 32: false, 33: false} {
		for _, kind := range []attr.Kind{attr.List, attr.Map} {
			v := newString("leaf")
			for range depth {
				v = attr.Value{Kind: kind, Map: attr.Item{"e": v}, List: []attr.Value{v}}
			}
			if _, err := v.Normalize(); (err == nil) != valid {
				t.Errorf("%d levels of type %s: %v", depth, kind, err)
			}
		}
	}
}

// ParseAttributes returns the same values as ParseItem, also for names that JSON escapes.
func TestParseAttributes(t *testing.T) {
	t.Parallel()
	item := attr.Item{
		"pk": newString("p"), "sk": attr.NewInt(1), "\"\\\n": newString("escaped"), "é\u2028": newString("not ASCII"), "": newString("no name"),
		"list": {Kind: attr.List, List: []attr.Value{attr.NewInt(2), {Kind: attr.Map, Map: attr.Item{"pk": newString("nested")}}}},
		"set":  attr.NewSet(attr.StringSet, []string{"b", "a"}),
	}
	stored := item.AppendJSON(nil)
	for _, names := range [][]string{{}, {"pk"}, {"sk", "pk"}, {"absent", "pk"}, {"absent"}, {"\"\\\n"}, {"é\u2028", ""}, {"list", "set"}, {"pk", "sk", "\"\\\n", "é\u2028", "", "list", "set"}} {
		wanted, want := map[string]bool{}, attr.Item{}
		for _, name := range names {
			wanted[name] = true
			if v, ok := item[name]; ok {
				want[name] = v
			}
		}
		got, err := attr.ParseAttributes(stored, wanted)
		if err != nil || !maps.EqualFunc(got, want, attr.Value.Equal) {
			t.Errorf("%q: got %v, %v, want %v", names, got, err, want)
		}
	}
	for end := range len(stored) {
		if got, err := attr.ParseAttributes(stored[:end], map[string]bool{"absent": true}); err == nil {
			t.Fatalf("the first %d bytes: got %v, want an error", end, got)
		}
	}
	if _, err := attr.ParseAttributes([]byte(strings.Replace(string(stored), `"N":"1"`, `"N":1`, 1)), map[string]bool{"sk": true}); err == nil {
		t.Error("a number that is not a string: want an error")
	}
}

// The JSON of a request can contain white space, escaped characters, unknown members and nulls.
func TestDecode(t *testing.T) {
	t.Parallel()
	for encoded, want := range map[string]string{
		"{ \"a\" :\t{ \"S\"\n: \"x\" } ,\r\n\"b\": {\"N\": \"1\"} }":      `{"a":{"S":"x"},"b":{"N":"1"}}`,
		`{"a":{"S":"\u0041\"\\\ud83d\ude00"},"\u0062":{"S":"\\"}}`:        `{"a":{"S":"A\"\\😀"},"b":{"S":"\\"}}`,
		`{"a":{"X":{"y":["}",{"]":-1.5e3}],"z":true},"S":"x","N":null}}`:  `{"a":{"S":"x"}}`,
		`{"a":{"S":"first"},"a":{"S":"second"}}`:                          `{"a":{"S":"second"}}`,
		`{"a":{"L":[{"SS":["x"]},{"M":{}},{"BOOL":false},{"B":"AP8="}]}}`: `{"a":{"L":[{"SS":["x"]},{"M":{}},{"BOOL":false},{"B":"AP8="}]}}`,
		`null`:                         "{}",
		`{}`:                           "{}",
		`[]`:                           "unexpected JSON [, expected {",
		`{"a":"x"}`:                    "unexpected JSON string, expected {",
		`{"a":null}`:                   "unexpected JSON null, expected {",
		`{"a":{"S":1}}`:                "a value of type S must be a JSON string",
		`{"a":{"NS":{}}}`:              "unexpected JSON {, expected [",
		`{"a":{"NS":[1]}}`:             "a value of type N must be a JSON string",
		`{"a":{"NULL":"x"}}`:           "a value of type NULL must be true or false",
		`{"a":{"B":"?"}}`:              "illegal base64 data",
		`{"a":{"S":"x"}`:               "unexpected EOF",
		`{"a":{"S":"` + "\xff" + `"}}`: "invalid UTF-8",
	} {
		var i attr.Item
		err := json.Unmarshal([]byte(encoded), &i, jsontext.AllowDuplicateNames(true))
		got := string(i.AppendJSON(nil))
		if err != nil {
			got = err.Error()
		}
		if got != want && (err == nil || !strings.Contains(got, want)) {
			t.Errorf("%s: got %s, want %s", encoded, got, want)
		}
	}
}

// A damaged item in the database file causes an error instead of a panic.
func TestDamagedItem(t *testing.T) {
	t.Parallel()
	stored := attr.Item{
		"a": newString("x\n"), "b": {Kind: attr.List, List: []attr.Value{attr.NewInt(2), {Kind: attr.Bool}}},
		"c": {Kind: attr.Map, Map: attr.Item{"d": attr.NewSet(attr.StringSet, []string{"y"})}},
	}.AppendJSON(nil)
	for end := range len(stored) {
		if got, err := attr.ParseItem(stored[:end]); err == nil {
			t.Errorf("the first %d bytes: got %v, want an error", end, got)
		}
		for _, c := range []byte("{}[]\":,\\Xt") {
			damaged := slices.Clone(stored)
			damaged[end] = c
			_, _ = attr.ParseItem(damaged)
			_, _ = attr.ParseAttributes(damaged, map[string]bool{"absent": true})
		}
	}
}

// newString returns a string value.
func newString(text string) attr.Value { return attr.Value{Kind: attr.String, Text: text} }
