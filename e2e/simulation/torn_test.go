package simulation_test

import (
	"context"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/bulk"
	"github.com/ordergraph/ordergraph/dynamo/check"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// exportHalf exports the table in the middle of the simulation, in some scenarios.
func (w *world) exportHalf(ctx context.Context) {
	if w.random("torn").IntN(4) != 0 || !w.sleep(ctx, w.Duration/2) || !w.decide("export") {
		return
	}
	if damaged := w.watchDamage(); !damaged() {
		w.readers.half = w.exportedLines()
	}
}

// exportedLines exports the table. It returns the line of each record, by the record's key.
func (w *world) exportedLines() map[storetest.Key]string {
	lines := map[storetest.Key]string{}
	for _, line := range storetest.Export(w.T, w.admin, 1) {
		var rec struct {
			Item struct{ PK, SK struct{ S string } }
		}
		if err := json.Unmarshal([]byte(line), &rec); err != nil {
			w.Fatal(err)
		}
		lines[storetest.Key{PK: rec.Item.PK.S, SK: rec.Item.SK.S}] = line
	}
	return lines
}

// verifyTornExport verifies that one repair makes the records of a torn export consistent, and that
// all counts equal the raw records. An export beside a server is torn: some of its records are older
// than others.
func (w *world) verifyTornExport() {
	before := w.readers.half
	if before == nil {
		return
	}
	ctx := context.Background()
	other := storetest.NewTable(w.T, w.db, dynamo.Options{Table: "torn", Shards: 1})
	storetest.Import(w.T, other, tear(before, w.exportedLines(), w.random("tear")), bulk.ImportOptions{})
	repair := func(o check.Options) check.Summary {
		o.OnInconsistency = func(i check.Inconsistency) {
			if !i.Repaired && !i.ByHand {
				w.found("a torn export is not repaired: %+v", i)
			}
		}
		summary, err := other.CheckRecords(ctx, o)
		if err != nil || summary.Unverified > 0 {
			w.found("the check of a torn export does not verify %d records: %v", summary.Unverified, err)
		}
		return summary
	}
	first, second := repair(check.Options{Repair: true, Segments: 4}), repair(check.Options{})
	if first.UnrepairedCount() != second.UnrepairedCount() {
		w.found("the repair of a torn export left %d inconsistencies, but the next check found %d", first.UnrepairedCount(), second.UnrepairedCount())
	}
	problems, err := storetest.AuditCounters(ctx, w.db, "torn", 1)
	if err != nil {
		w.found("the repaired export cannot be read: %v", err)
	}
	for _, p := range problems {
		w.found("after the repair of a torn export, %s", p)
	}
}

// tear returns a torn export: each record comes from one of two exports of the same table. There
// are several ways to choose the export: by record, by partition, or the later one for most
// records.
func tear(before, after map[storetest.Key]string, random *rand.Rand) string {
	all := maps.Clone(before)
	maps.Copy(all, after)
	keys := slices.SortedFunc(maps.Keys(all), func(a, b storetest.Key) int {
		return strings.Compare(a.PK+" "+a.SK, b.PK+" "+b.SK)
	})
	way, share := random.IntN(3), random.Float64()
	ofPartition := map[string]bool{}
	var torn strings.Builder
	for _, k := range keys {
		later := random.Float64() < share
		switch way {
		case 0:
		case 1:
			later = random.Float64() >= 0.03
		default:
			if _, ok := ofPartition[k.PK]; !ok {
				ofPartition[k.PK] = later
			}
			later = ofPartition[k.PK]
		}
		if later {
			torn.WriteString(after[k])
		} else {
			torn.WriteString(before[k])
		}
	}
	return torn.String()
}
