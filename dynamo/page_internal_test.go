package dynamo

import (
	"context"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
	"github.com/ordergraph/ordergraph/dynamo/trace"
)

// keyText generates key texts from few characters, so that neighbouring keys are common. Some of
// the characters are edge cases.
func keyText() *rapid.Generator[string] {
	return rapid.StringOfN(rapid.SampledFrom([]rune{'\x00', '!', '-', '.', '0', '9', 'A', 'Z', 'a', 'z', '~', 'é', '\uD7FF', '\uE000', '\U0010FFFE'}), 1, 4, -1)
}

func TestJustBeforeAndJustAfter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key, other := keyText().Draw(t, "key"), keyText().Draw(t, "other")
		if before := model.JustBefore(key); !(before < key) || other < key && other > before {
			t.Fatalf("justBefore(%q) = %q, with %q", key, before, other)
		}
		if after := model.JustAfter(key); !(after > key) || other > key && other < after {
			t.Fatalf("justAfter(%q) = %q, with %q", key, after, other)
		}
	})
}

// TestPageRangesAreValid checks that a page with arbitrary positions is read with a range that
// DynamoDB accepts, unless the range is empty.
func TestPageRangesAreValid(t *testing.T) {
	position := rapid.OneOf(rapid.Just(""), keyText(), rapid.StringOfN(rapid.SampledFrom([]rune{'\x00', 'a', '\U0010FFFE', '\U0010FFFF'}), 1, 3, -1))
	rapid.Check(t, func(t *rapid.T) {
		prefix := rapid.SampledFrom([]string{"", "ORDER#"}).Draw(t, "prefix")
		pattern := rapid.SampledFrom([]model.AccessPattern{model.Customers.AccessPattern, model.Orders.AccessPattern}).Draw(t, "pattern")
		page := PageRequest{After: position.Draw(t, "after"), Before: position.Draw(t, "before")}
		b := page.narrow(model.Range{From: position.Draw(t, "from"), To: position.Draw(t, "to")}, pattern.Direction)
		if b.Empty() {
			for range 20 {
				if key := keyText().Draw(t, "key"); key >= b.From && (b.To == "" || key < b.To) {
					t.Fatalf("Empty() is true for %+v, which contains %q", b, key)
				}
			}
			return
		}
		c := model.NewKeyCondition(&pattern, "p", prefix, b)
		between := strings.Contains(c.Text, "BETWEEN")
		if between && c.From > c.To || (c.From != "") != strings.Contains(c.Text, ":from") || (c.To != "") != strings.Contains(c.Text, ":to") {
			t.Fatalf("the range %+v with the prefix %q has the invalid key condition %+v", b, prefix, c)
		}
	})
}

// The function that assigns records to shards must never change, because existing records stay on
// their shards.
func TestShardsNeverChange(t *testing.T) {
	for id, want := range map[string]int{"01HVMK3P2Q0000000000000001": 5, "cust_01": 2, "emp_001": 5, "": 1} {
		if got := model.ShardOf(id, 10); got != want {
			t.Errorf("shardOf(%q, 10) = %d, want %d", id, got, want)
		}
		if got := model.ShardOf(id, 1); got != 0 || model.ShardSuffix(got, 1) != "" {
			t.Errorf("a table of one shard puts %q on shard %d%s", id, got, model.ShardSuffix(got, 1))
		}
	}
	if got := model.ShardSuffix(3, 10); got != "#3" {
		t.Errorf("shard 3 of 10 has the suffix %q, want #3", got)
	}
}

// PageOfList returns the same page as a Query.
func TestPageOfMatchesQuery(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := slices.Compact(slices.Sorted(slices.Values(rapid.SliceOfN(keyText(), 0, 12).Draw(t, "all"))))
		maybe := rapid.OneOf(rapid.Just(""), keyText())
		page := PageRequest{
			Limit:      rapid.IntRange(1, 5).Draw(t, "limit"),
			FromEnd:    rapid.Bool().Draw(t, "fromEnd"),
			DetectMore: rapid.Bool().Draw(t, "more"),
			After:      maybe.Draw(t, "after"),
			Before:     maybe.Draw(t, "before"),
		}
		var within []string
		for _, s := range all {
			if (page.After == "" || s > page.After) && (page.Before == "" || s < page.Before) {
				within = append(within, s)
			}
		}
		want := within[:min(page.Limit, len(within))]
		if page.FromEnd {
			want = within[max(0, len(within)-page.Limit):]
		}
		got := PageOfList(all, func(s string) string { return s }, page)
		if !slices.Equal(got.Items, want) || !slices.Equal(got.ItemPositions(), want) {
			t.Fatalf("PageOf(%q, %+v) = %q at %q, want %q", all, page, got.Items, got.ItemPositions(), want)
		}
		values := PageOfValues(all, func(s *string) string { return *s }, page)
		if !slices.Equal(values.ItemPositions(), want) || values.HasNext != got.HasNext || values.HasPrevious != got.HasPrevious {
			t.Fatalf("PageOfValues(%q, %+v) = %q, want %q", all, page, values.ItemPositions(), want)
		}
		more := len(within) > page.Limit || !page.FromEnd && page.Before != "" || page.FromEnd && page.After != ""
		if page.DetectMore && more != map[bool]bool{false: got.HasNext, true: got.HasPrevious}[page.FromEnd] {
			t.Fatalf("PageOf(%q, %+v) has HasNext %v and HasPrevious %v", all, page, got.HasNext, got.HasPrevious)
		}
	})
}

// A read costs half a unit for each 4 kB, and at least half a unit.
func TestReadUnits(t *testing.T) {
	for bytes, want := range map[int]float64{0: 0.5, 1: 0.5, 4096: 0.5, 4097: 1, 8192: 1, 1 << 20: 128} {
		if got := model.ReadUnits(bytes); got != want {
			t.Errorf("readUnits(%d) = %v, want %v", bytes, got, want)
		}
	}
	r := model.Record{"id": model.Str("abc"), "n": model.Num(1234), "l": model.ListValue(model.Str("x"), model.Num(7)), "price": model.AmountValue(commerce.Money{})}
	if got, want := model.SizeOf(r), 2+3+1+3+1+3+(1+1)+(1+2)+5+1; got != want {
		t.Errorf("sizeOf = %d, want %d", got, want)
	}
}

// A record that moved between partitions can be read from both. The page contains it once, in its
// newer version.
func TestRecordReadTwiceAppearsOnce(t *testing.T) {
	moving := func(version int, key string) row {
		return row{position: "1", record: model.Reader{Record: model.Record{model.AttrPK: model.Str(key), model.AttrSK: model.Str("s"), model.AttrVersion: model.Num(version)}}}
	}
	for _, c := range []struct {
		rows []row
		want []int
	}{
		{[]row{moving(1, "a"), moving(2, "a")}, []int{2}},
		{[]row{moving(2, "a"), moving(1, "a")}, []int{2}},
		{[]row{moving(1, "a"), moving(1, "b")}, []int{1, 1}},
	} {
		var got []row
		for _, r := range c.rows {
			got = appendRow(got, r)
		}
		var versions []int
		for _, r := range got {
			at := r.record
			versions = append(versions, at.Number(model.AttrVersion))
		}
		if !slices.Equal(versions, c.want) {
			t.Errorf("versions on the page are %v, want %v", versions, c.want)
		}
	}
}

// Parallel returns a panic of a call as an error, for any number of calls.
func TestParallelReturnsPanicAsError(t *testing.T) {
	for _, n := range []int{1, 2, 50} {
		err := table.Parallel(t.Context(), n, 4, func(_ context.Context, i int) error {
			if i == n/2 {
				panic("boom")
			}
			return nil
		})
		if err == nil || !strings.Contains(err.Error(), "boom") {
			t.Errorf("%d calls: error is %v, want the panic", n, err)
		}
	}
}

// Wait never lowers the round trip of a span.
func TestRoundTripsOnlyRise(t *testing.T) {
	ctx := (&trace.Trace{}).NewContext(t.Context())
	span := trace.SpanFromContext(ctx)
	span.WaitForRoundTrip(3)
	span.WaitForRoundTrip(1)
	if got := span.LastRoundTrip(); got != 3 {
		t.Errorf("the round trip is %d, want 3", got)
	}
	if got := trace.SpanFromContext(span.Fork(ctx)).LastRoundTrip(); got != 3 {
		t.Errorf("the round trip of a fork is %d, want 3", got)
	}
}

// The flags of a page are true exactly if the list has records before or after the page, wherever
// its cursors are.
func TestFlagsOfPages(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := strings.Split("abcdefgh"[:rapid.IntRange(1, 8).Draw(t, "length")], "")
		cursor := rapid.SampledFrom(append([]string{""}, all...))
		page := PageRequest{Limit: rapid.IntRange(1, 9).Draw(t, "limit"), FromEnd: rapid.Bool().Draw(t, "from end"), After: cursor.Draw(t, "after"), Before: cursor.Draw(t, "before"), DetectMore: true}
		if page.After != "" && page.Before != "" && page.After >= page.Before {
			return // no record can be in the page
		}
		first, end := 0, len(all)
		if page.After != "" {
			first = slices.Index(all, page.After) + 1
		}
		if page.Before != "" {
			end = slices.Index(all, page.Before)
		}
		inRange := slices.Clone(all[first:end])
		if page.FromEnd {
			first = max(first, end-page.Limit)
		} else {
			end = min(end, first+page.Limit)
		}
		hasNext, hasPrevious := end < len(all), first > 0
		if page.FromEnd && page.Before == "" {
			hasNext = false
		}
		read := slices.Clone(inRange)
		if page.FromEnd {
			slices.Reverse(read)
		}
		read = read[:min(len(read), page.fetchLimit())]
		for what, got := range map[string]Page[string]{
			"cut from a list": PageOfList(all, func(s string) string { return s }, page), "read": newPage(page, read, slices.Clone(read)),
		} {
			if !slices.Equal(got.Items, all[first:end]) || got.HasNext != hasNext || got.HasPrevious != hasPrevious {
				t.Fatalf("%s, the page %+v of %q is %q with %v and %v, want %q with %v and %v", what, page, all, got.Items, got.HasNext, got.HasPrevious, all[first:end], hasNext, hasPrevious)
			}
		}
	})
}
