package throttle

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ordergraph/ordergraph/embedded/internal/attr"
	"github.com/ordergraph/ordergraph/embedded/internal/expr"
	"github.com/ordergraph/ordergraph/embedded/internal/schema"
)

// A busy item collection splits by ranges of the sort key if the split divides the traffic.
func TestSplitByHeat(t *testing.T) {
	t.Parallel()
	random := func(number *rand.Rand, _ int) string { return strconv.Itoa(int(number.Int32())) }
	one := func(*rand.Rand, int) string { return "a" }
	const minutes5, minutes10, minutes20 = 299, 599, 1199 // each of them in seconds
	for _, c := range []struct {
		name       string
		load       Load
		key        func(number *rand.Rand, i int) string
		demand     int // demand contains the units that clients request each second
		at1, at2   int // at1 and at2 are seconds
		want, then int // units in the second at1, and in the second at2
	}{
		{"writes", Load{Table: table(false), Write: true}, random, 6000, minutes5, minutes5 + 2, 1000, 2000},
		{"writes, later", Load{Table: table(false), Write: true}, random, 6000, minutes10, minutes10 + 2, 2000, 4000},
		{"reads", Load{Table: table(false)}, random, 9000, minutes5, minutes5 + 2, 3000, 6000},
		{"a demand that two partitions serve", Load{Table: table(false), Write: true}, random, 1500, minutes5, minutes20, 1000, 1500},
		{"two sort keys", Load{Table: table(false), Write: true}, func(_ *rand.Rand, i int) string { return strconv.Itoa(i % 2) }, 6000, minutes5, minutes20, 1000, 2000},
		{"one sort key", Load{Table: table(false), Write: true}, one, 6000, minutes5, minutes20, 1000, 1000},
		{"a hot sort key among others", Load{Table: table(false), Write: true}, func(number *rand.Rand, i int) string {
			return map[bool]string{true: "5", false: random(number, i)}[i%2 == 0]
		}, 2200, minutes5, minutes20, 1000, 2100},
		{"increasing sort keys", Load{Table: table(false), Write: true}, func(_ *rand.Rand, i int) string { return fmt.Sprintf("%09d", i) }, 6000, minutes5, minutes20, 1000, 1000},
		{"local secondary index", Load{Table: table(true), Write: true}, random, 6000, minutes5, minutes20, 1000, 1000},
		{"global secondary index", Load{Table: table(true), Index: table(true).Index("global"), Write: true}, random, 6000, minutes5, minutes5 + 2, 1000, 2000},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			now := time.Unix(0, 0)
			l, number, i := New(func() time.Time { return now }), rand.New(rand.NewPCG(1, 2)), 0
			for second := range c.at2 + 1 {
				served := 0
				const units = 100
				for range c.demand / units {
					load := c.load
					load.Key, load.Units, i = key("p", c.key(number, i)), units, i+1
					if l.Check(load) == nil {
						l.Charge(load)
						served += units
					}
				}
				if want := map[int]int{c.at1: c.want, c.at2: c.then}[second]; want != 0 && (served < want-100 || served > want) {
					t.Errorf("second %d: %d units, want %d", second, served, want)
				}
				now = now.Add(time.Second)
			}
		})
	}
}

// Reads and writes split the same partitions.
func TestPartitionsStaySorted(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	l, number := New(func() time.Time { return now }), rand.New(rand.NewPCG(1, 2))
	load := Load{Table: table(false)}
	for range 1800 {
		for i := range 60 {
			load.Key, load.Write, load.Units = key("p", strconv.Itoa(int(number.Int32()))), i%2 == 0, 200+400*float64(i%2)
			if l.Check(load) == nil {
				l.Charge(load)
			}
		}
		now = now.Add(time.Second)
	}
	c, _, _ := l.find(load)
	if !slices.IsSortedFunc(c.partitions, func(a, b partition) int { return strings.Compare(a.from, b.from) }) || len(c.partitions) < 6 {
		t.Errorf("%d partitions, or they are not sorted", len(c.partitions))
	}
}

// A partition that is not busy does not split, so it later has the capacity of one partition.
func TestNoSplitWithoutHeat(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	l := New(func() time.Time { return now })
	load := Load{Table: table(false), Write: true, Units: 100}
	for second := range 1800 {
		demand := 2
		if second%600 < 200 { // busy for 200 of 600 seconds
			demand = 10
		}
		for range demand {
			load.Key = key("p", strconv.Itoa(second%17))
			l.Charge(load)
		}
		now = now.Add(time.Second)
	}
	if c, _, _ := l.find(load); len(c.partitions) != 1 {
		t.Errorf("%d partitions", len(c.partitions))
	}
}

// A Limiter forgets item collections, but not the ones that are in use.
func TestForgetIdleCollections(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	l := New(func() time.Time { return now })
	hot := Load{Table: table(false), Key: key("hot", ""), Write: true, Units: 1000}
	l.Charge(hot)
	for i := range 3*maxRecent + 5 {
		l.Charge(Load{Table: table(false), Key: key(strconv.Itoa(i), ""), Units: 1})
		if i%1000 == 0 && l.Check(hot) == nil {
			t.Fatalf("after %d other collections, the Limiter has forgotten the hot one", i)
		}
	}
	if n := len(l.recent) + len(l.older); n > 2*maxRecent {
		t.Errorf("%d collections", n)
	}
}

// A partition serves exactly its limit, also with units that do not divide a second evenly.
func TestExactLimits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		write bool
		units float64
		want  int
	}{{true, 1, 1000}, {true, 2, 500}, {false, 1, 3000}, {false, 0.5, 6000}, {false, 7, 429}} {
		now := time.Unix(0, 0)
		l := New(func() time.Time { return now })
		load, served := Load{Table: table(false), Key: key("p", ""), Write: c.write, Units: c.units}, 0
		for ; served < 10_000 && l.Check(load) == nil; served++ {
			l.Charge(load)
		}
		if served != c.want {
			t.Errorf("%v: %d requests, want %d", c, served, c.want)
		}
	}
}

// table returns a table with a global secondary index, and optionally a local one.
func table(local bool) *schema.Table {
	d := schema.Definition{TableName: "items", Bucket: 7, GlobalSecondaryIndexes: []schema.IndexDefinition{{IndexName: "global"}}}
	if local {
		d.LocalSecondaryIndexes = []schema.IndexDefinition{{IndexName: "local"}}
	}
	return schema.NewTable(d)
}

// key returns an encoded key.
func key(partition, sortKey string) []byte {
	return schema.EncodeKey([]expr.KeyAttribute{{Name: "pk", Kind: attr.String}, {Name: "sk", Kind: attr.String, Sort: true}},
		attr.Item{"pk": {Kind: attr.String, Text: partition}, "sk": {Kind: attr.String, Text: sortKey}})
}
