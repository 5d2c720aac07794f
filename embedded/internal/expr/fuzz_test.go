package expr_test

import (
	"testing"

	"github.com/ordergraph/ordergraph/embedded/internal/attr"
	"github.com/ordergraph/ordergraph/embedded/internal/expr"
)

// placeholders returns the names and values that fuzzed expressions can use.
func placeholders() *expr.Placeholders {
	return &expr.Placeholders{
		Names: map[string]string{"#n": "n", "#m": "m", "#size": "size"},
		Values: map[string]attr.Value{
			":s": newString("a"), ":n": attr.NewInt(2), ":b": {Kind: attr.Binary, Text: "\x00"},
			":l": {Kind: attr.List, List: []attr.Value{attr.NewInt(1)}}, ":ss": {Kind: attr.StringSet, Set: []string{"a", "b"}},
		},
	}
}

// item returns the item that fuzzed expressions are applied to.
func item() attr.Item {
	return attr.Item{
		"pk": newString("p"), "n": attr.NewInt(1), "s": newString("text"),
		"ss": {Kind: attr.StringSet, Set: []string{"a"}},
		"l":  {Kind: attr.List, List: []attr.Value{attr.NewInt(0), newString("e")}},
		"m":  {Kind: attr.Map, Map: attr.Item{"a": attr.NewInt(1), "l": {Kind: attr.List, List: []attr.Value{{Kind: attr.Map, Map: attr.Item{}}}}}},
	}
}

// unchanged fails the test if an expression has changed its item.
func unchanged(t *testing.T, text string, i attr.Item) {
	t.Helper()
	if got, want := string(i.AppendJSON(nil)), string(item().AppendJSON(nil)); got != want {
		t.Errorf("%q changed the item to %s", text, got)
	}
}

// FuzzParseCondition tests that no condition makes the parser or the evaluation panic.
func FuzzParseCondition(f *testing.F) {
	for _, text := range []string{
		"", " ", "a", "n = :n", "#n <> :n AND NOT (s < :s OR l[0] >= m.l[0].x)", "n BETWEEN :n AND :n", "s IN (:s, n, size(l))",
		"attribute_exists(m.a)", "attribute_type(n, :s)", "begins_with(s, :s)", "contains(ss, :s)", "size(#size) > :n", "((n = :n))", "(n) = (:n)",
		"n = :missing", "n[", "n[99999999999]", "NOT NOT n = n", "size(size(n)) = :n", "if_not_exists(n, :n)", "a.b.", "#", ":", "n = :n AND",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, kind := range []string{expr.ConditionExpression, expr.FilterExpression} {
			p, err := expr.ParseCondition(kind, text, placeholders())
			if err != nil {
				continue
			}
			i := item()
			p.Paths()
			p.Matches(nil)
			p.Matches(i)
			unchanged(t, text, i)
		}
	})
}

// FuzzParseUpdate tests that no update makes the parser or the application panic, and that an
// update does not change its item.
func FuzzParseUpdate(f *testing.F) {
	for _, text := range []string{
		"", "SET n = :n", "SET n = n + :n, l[5] = :s, m.x = if_not_exists(m.a, :n)", "REMOVE l[0], l[1], m.l[0].x", "ADD n :n, ss :ss", "DELETE ss :ss",
		"SET l = list_append(l, :l) REMOVE n", "SET n = (n - :n) + :n", "SET n = :n SET s = :s", "SET", "set m.l[0].a.b = :s", "SET m = m.l", "ADD l[0] :n",
		"REMOVE", "DELETE n :n", "SET n = size(s)", "SET n = n + s", "SET n = , s = :s", "SET a = list_append(:l)", "ADD m :n", "SET m.a.b = :n",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		u, err := expr.ParseUpdate(text, placeholders())
		if err != nil {
			return
		}
		u.ChangedPaths()
		u.ReadPaths()
		i := item()
		if next, err := u.Apply(i); err == nil && next == nil {
			t.Errorf("%q returned neither an item nor an error", text)
		}
		unchanged(t, text, i)
		if _, err := u.Apply(attr.Item{}); err == nil {
			_, _ = u.Apply(nil) // an error is a valid result
		}
	})
}

// FuzzParseProjection tests that no projection makes the parser or the application panic, and that
// a projection selects only what the item has.
func FuzzParseProjection(f *testing.F) {
	for _, text := range []string{"", "n", "n, m.a, m.l[0], l[1]", "#n, #missing", "l[0], l[0]", "m, m.a", "m.a, m[0]", "n,", ",", "size", "l[-1]", "l[0", "a..b", "n m"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := expr.ParseProjection(text, placeholders())
		if err != nil {
			return
		}
		i := item()
		selected := p.Apply(i)
		if selected.Size() > i.Size() {
			t.Errorf("%q selected %s", text, selected.AppendJSON(nil))
		}
		unchanged(t, text, i)
		p.ApplyOrNone(nil)
	})
}

// FuzzParseKeyCondition tests that no key condition makes the parser panic, and that a valid one
// has a partition.
func FuzzParseKeyCondition(f *testing.F) {
	for _, text := range []string{
		"", "pk = :s", "pk = :s AND sk > :n", ":s = pk AND :n <= sk", "(pk = :s) AND (sk BETWEEN :n AND :n)", "pk = :s AND begins_with(sk, :s)", "pk = :n",
		"pk = :s OR sk = :n", "NOT pk = :s", "pk IN (:s)", "pk = :s AND pk = :s", "pk = :s AND sk = :n AND n = :n", "sk = :n", "pk.a = :s", "pk = sk",
		"size(pk) = :n", "attribute_exists(pk)", ":s = :s", "pk <> :s", "begins_with(:s, pk)", "contains(pk, :s)", ":s BETWEEN pk AND sk",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		e, err := expr.ParseKeyCondition(text, placeholders())
		if err != nil {
			return
		}
		for _, kind := range []attr.Kind{attr.String, attr.Number, attr.Binary} {
			key := []expr.KeyAttribute{{Name: "pk", Kind: attr.String}, {Name: "sk", Kind: kind, Sort: true}}
			for n := range key {
				r, err := e.KeyRange(key[:n+1])
				if err == nil && (len(r.Partition) != 1 || r.Partition[0].Kind != attr.String) {
					t.Errorf("%q has no partition", text)
				}
			}
		}
	})
}

// newString returns a string value.
func newString(text string) attr.Value { return attr.Value{Kind: attr.String, Text: text} }
