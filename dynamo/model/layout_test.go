package model_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"pgregory.net/rapid"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
)

// drawLayout draws a layout whose eras begin near start.
func drawLayout(rt *rapid.T, start time.Time) model.Layout {
	zone := rapid.SampledFrom([]string{"", "Europe/Berlin", "America/Argentina/ComodRivadavia"})
	l := model.OneEra(rapid.IntRange(1, 5).Draw(rt, "shards"))
	l[0].TimeZone = zone.Draw(rt, "zone")
	from := start
	for range rapid.IntRange(0, 4).Draw(rt, "eras") {
		from = from.Add(time.Duration(rapid.IntRange(1, 5).Draw(rt, "milliseconds")) * time.Millisecond)
		l = append(l, model.Era{From: from, Shards: rapid.IntRange(1, 5).Draw(rt, "shards"), TimeZone: zone.Draw(rt, "zone")})
	}
	return l
}

// A new era moves no record that was created before it. A list reads each record from one of the
// partitions of the segment that contains the record's position.
func TestErasKeepTheKeysOfRecords(t *testing.T) {
	start := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	rapid.Check(t, func(rt *rapid.T) {
		layout := drawLayout(rt, start)
		if err := layout.Check(); err != nil {
			rt.Fatal(err)
		}
		at := start.Add(time.Duration(rapid.IntRange(-5, 30).Draw(rt, "created")) * time.Millisecond)
		id, _ := commerce.MinULIDAt(at)
		id = id[:len(id)-1] + rapid.StringOfN(rapid.SampledFrom([]rune("0123456789ABCDEFGHJKMNPQRSTVWXYZ")), 1, 1, -1).Draw(rt, "random")
		id = rapid.SampledFrom([]string{id, strings.ToLower(id), "1001", "order-7", "8" + id[1:]}).Draw(rt, "id")
		order := commerce.Order{ID: commerce.OrderID(id), CustomerID: "c", Status: commerce.Pending, Total: commerce.Money{Currency: "USD"}, PlacedAt: at, UpdatedAt: at}
		customer := commerce.Customer{ID: "c", Name: "C", Email: "c@example.com", CreatedAt: at}
		keys := func(l model.Layout) []model.Keys {
			b := &model.KeyBuilder{Layout: l}
			records := append(model.EncodeWithEdges(b, &customer), model.EncodeWithEdges(b, &order)[0])
			var keys []model.Keys
			for _, r := range records {
				keys = append(keys, model.Keys{IndexPK: model.TextOf(r, model.AttrIndexPK), IndexSK: model.TextOf(r, model.AttrIndexSK)})
			}
			return keys
		}
		now := keys(layout)
		for eras := 1; eras < len(layout); eras++ {
			if at.Before(layout[eras].From) && !slices.Equal(keys(layout[:eras]), now) {
				rt.Errorf("with %d eras, the keys are %v, and with all eras %v", eras, keys(layout[:eras]), now)
			}
		}
		for _, list := range []struct {
			pattern       *model.AccessPattern
			key, position string
			found         model.Keys
		}{
			{&model.Orders.AccessPattern, "STATUS#pending", id, now[len(now)-1]},
			{&model.Customers.AccessPattern, "CUSTOMER", model.Timestamp(at) + "#c", now[0]},
		} {
			var in []model.Segment
			segments := layout.Segments(list.pattern, list.key)
			for i, s := range segments {
				if i > 0 && s.Range.From != segments[i-1].Range.To {
					rt.Errorf("segment %d begins at %q, and the one before it ends at %q", i, s.Range.From, segments[i-1].Range.To)
				}
				if list.position >= s.Range.From && (s.Range.To == "" || list.position < s.Range.To) {
					in = append(in, s)
				}
			}
			if len(in) != 1 || !slices.Contains(in[0].Partitions, list.found.IndexPK) {
				rt.Errorf("%s is stored in %s, and the list reads this position from %v", list.position, list.found.IndexPK, in)
			}
			if !slices.Contains(layout.Partitions(list.pattern, list.key), list.found.IndexPK) {
				rt.Errorf("%s is in none of the list's partitions", list.found.IndexPK)
			}
		}
		stored, err := model.DecodeLayout(model.Reader{Record: model.LayoutRecord(&model.KeyBuilder{}, model.StoredLayout{Eras: layout, Version: 3})})
		if err != nil || !slices.Equal(stored.Eras, layout) || stored.Version != 3 {
			rt.Errorf("stored %v, read %v: %v", layout, stored, err)
		}
	})
}

// A day begins at midnight in the time zone of the era, also when the clocks change.
func TestDaysInATimeZone(t *testing.T) {
	change := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	layout := model.Layout{{Shards: 1}, {From: change, Shards: 1, TimeZone: "Europe/Berlin"}}
	for at, want := range map[string]commerce.Date{
		"2026-10-31T23:30:00Z": "2026-10-31", // still UTC
		"2026-11-01T00:00:00Z": "2026-11-01",
		"2026-11-01T22:59:59Z": "2026-11-01",
		"2026-11-01T23:00:00Z": "2026-11-02",
		"2027-03-27T22:59:59Z": "2027-03-27",
		"2027-03-27T23:00:00Z": "2027-03-28", // a day of 23 hours begins
		"2027-03-28T21:59:59Z": "2027-03-28",
		"2027-03-28T22:00:00Z": "2027-03-29",
	} {
		instant, err := time.Parse(time.RFC3339, at)
		if err != nil {
			t.Fatal(err)
		}
		if got := layout.DayOf(instant); got != want {
			t.Errorf("%s is on %s, want %s", at, got, want)
		}
	}
}

func TestMalformedLayouts(t *testing.T) {
	for text, want := range map[string]string{
		"0":                              "0 shards",
		"129":                            "129 shards",
		"many":                           `"many" instead of`,
		"1,2":                            `"2" instead of`,
		"1 2 3":                          `"1 2 3" instead of`,
		"1 Mars/Base":                    `"Mars/Base" is not the name of a time zone`,
		"1 Local":                        `"Local" is not the name of a time zone`,
		"1,yesterday 2":                  `"yesterday 2" instead of`,
		"2026-11-28T12:00:00.000Z 2":     "instead of",
		"1,2026-11-28T12:00:00.000Z 200": "200 shards",
		"1,2026-11-28T12:00:00.000Z 2,2026-11-28T12:00:00.000Z 3": "era 3 begins at",
	} {
		record := model.LayoutRecord(&model.KeyBuilder{}, model.StoredLayout{})
		record["eras"] = model.TextListValue(slices.DeleteFunc(strings.Split(text, ","), func(s string) bool { return s == "" }))
		if _, err := model.DecodeLayout(model.Reader{Record: record}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the eras %q have the error %v, want %q", text, err, want)
		}
	}
}

// Each shard uses all its counter records. With one shard, older versions use the same records.
func TestOrderCounter(t *testing.T) {
	for _, shards := range []int{1, 3, 16, model.MaxShards} {
		counted := map[[2]string]int{}
		for n := range 400 * shards {
			id := commerce.OrderID(fmt.Sprintf("01KDVDS8Y%017d", n*n))
			part, shard := model.OneEra(shards).OrderCounter(id)
			if shards == 1 && (shard != "" || part != fmt.Sprint(model.ShardOf(string(id), 32))) {
				t.Fatalf("%s is counted in part %s of shard %q", id, part, shard)
			}
			if shards > 1 && shard != fmt.Sprint(model.ShardOf(string(id), shards)) {
				t.Fatalf("%s is counted in shard %s", id, shard)
			}
			counted[[2]string{shard, part}]++
		}
		if len(counted) != 32*shards {
			t.Errorf("%d shards use %d counter records, want %d", shards, len(counted), 32*shards)
		}
		if first := model.OneEra(shards).FirstCounters(); len(first) != 32*shards || counted[[2]string{first[0].Shard, first[0].Part}] == 0 {
			t.Errorf("%d shards have %d first counters: %v", shards, len(first), first[0])
		}
	}
}

// The list of a product's orders has one shard in the first era, and at most 8 in later ones. Each record
// is in one of the partitions that the list reads at its time.
func TestShardsOfProductOrders(t *testing.T) {
	later := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	layout := model.Layout{{Shards: 16}, {From: later, Shards: 32}, {From: later.Add(time.Hour), Shards: 3}}
	segments := layout.Segments(&model.ProductOrderItems.AccessPattern, "PRODUCT#mug")
	for i, want := range []int{1, 9, 4} { // with the partition of the first era
		if got := segments[i].Partitions; len(got) != want || got[0] != "PRODUCT#mug" {
			t.Errorf("in era %d, the list reads %q, want %d partitions", i, got, want)
		}
		seen := map[string]bool{}
		for n := range 200 {
			id, ok := commerce.MinULIDAt(later.Add(time.Duration(i-1)*time.Hour + time.Duration(n)*time.Second))
			if !ok {
				t.Fatal(id)
			}
			r := model.OrderItemRecord(&model.KeyBuilder{Layout: layout}, commerce.Order{ID: commerce.OrderID(id)}, commerce.LineItem{OrderID: commerce.OrderID(id), SKU: "mug"})
			key := r["gsi1pk"].(*types.AttributeValueMemberS).Value
			if seen[key] = true; !slices.Contains(segments[i].Partitions, key) || i > 0 && key == "PRODUCT#mug" {
				t.Fatalf("in era %d, the index key of an order is %s", i, key)
			}
		}
		if len(seen) != max(1, want-1) {
			t.Errorf("in era %d, the orders are in %d partitions", i, len(seen))
		}
	}
}
