package simulation_test

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/bulk"
	"github.com/ordergraph/ordergraph/dynamo/check"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

func (w *world) raw() storetest.RawTable {
	return storetest.RawTable{T: w.T, DB: w.db, Name: w.table, Store: w.admin}
}

// damage damages some derived records, as a foreign program may do, and lets a check repair them.
func damage(ctx context.Context, w *world, r *rand.Rand) {
	raw := w.raw()
	all := raw.All()
	keys := slices.DeleteFunc(slices.Sorted(maps.Keys(all)), func(key string) bool {
		rec := storetest.Record(all[key])
		e := model.EntityOf(model.Keys{PK: rec.Text("pk"), SK: rec.Text("sk")})
		return e == nil || e.Kind != model.Copy && e.Kind != model.Sum
	})
	r.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	for i, key := range keys[:min(1+r.IntN(4), len(keys))] {
		w.damageRecord(r, raw, key, storetest.Record(all[key]), storetest.Record(all[keys[len(keys)-1-i]]))
	}
	w.sleep(ctx, time.Duration(r.Float64()*float64(time.Minute)))
	w.repair(ctx, r)
}

// damageRecord deletes or changes a record. One of its texts may become the text of another record.
func (w *world) damageRecord(r *rand.Rand, raw storetest.RawTable, key string, rec, other storetest.Record) {
	w.mu.Lock()
	w.damaged, w.damages = true, w.damages+1
	w.mu.Unlock()
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(rec)), func(name string) bool {
		_, number := rec[name].(*types.AttributeValueMemberN)
		_, text := rec[name].(*types.AttributeValueMemberS)
		return !number && (!text || other.Text(name) == "" || other.Text(name) == rec.Text(name)) || slices.Contains([]string{"pk", "sk", "gsi1pk", "gsi1sk", "shard", "part", "version"}, name)
	})
	pk, sk := rec.Text("pk"), rec.Text("sk")
	switch at := rec.Text("gsi1pk"); {
	case r.IntN(3) == 0 || at == "" && len(names) == 0:
		w.tell("a foreign program deletes %s", key)
		raw.Delete(pk, sk)
	case at != "" && (r.IntN(2) == 0 || len(names) == 0):
		w.tell("a foreign program moves %s in the index", key)
		raw.Set(pk, sk, storetest.Item{"gsi1pk": storetest.Str(at + "#9")})
	default:
		name := names[r.IntN(len(names))]
		w.tell("a foreign program changes %s of %s", name, key)
		if n, ok := rec[name].(*types.AttributeValueMemberN); ok {
			raw.Set(pk, sk, storetest.Item{name: storetest.Num("1" + n.Value)})
		} else {
			raw.Set(pk, sk, storetest.Item{name: storetest.Str(other.Text(name))})
		}
	}
}

// repair runs a check with repairs while clients use the table.
func (w *world) repair(ctx context.Context, r *rand.Rand) {
	w.command(ctx, "repair", func(ctx context.Context, store *dynamo.Store) error {
		got, err := store.CheckRecords(ctx, check.Options{Repair: true, IndexLag: w.checkLag(), Segments: 1 + r.IntN(2), Parallel: 1 + r.IntN(4)})
		if err == nil && got.UnrepairedCount() == 0 && got.ByHand == 0 && got.Unverified == 0 {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.damaged = false
			w.tellLocked("the damage is repaired")
		}
		return err
	})
}

// changeDerivation drops a list on request and adds it again.
func changeDerivation(ctx context.Context, w *world, r *rand.Rand) {
	d := w.list(r)
	w.command(ctx, "drop", func(ctx context.Context, store *dynamo.Store) error {
		_, err := store.DropDerivation(ctx, d, dynamo.DerivationOptions{IndexLag: w.checkLag(), Segments: 2})
		return err
	})
	// A round of the clients begins shortly before the servers follow the new state, or before the
	// backfill begins.
	w.sleep(ctx, 2*w.round()-w.elapsed()%w.round()+time.Duration(r.Float64()*float64(300*time.Millisecond))-time.Duration(r.IntN(2))*table.LayoutDelay)
	w.command(ctx, "apply", func(ctx context.Context, store *dynamo.Store) error {
		_, err := store.ApplyDerivation(ctx, d, dynamo.DerivationOptions{IndexLag: w.checkLag(), Segments: 2, Parallel: 2})
		return err
	})
}

// list chooses a list that the scenario has from the start, and that can be dropped.
func (w *world) list(r *rand.Rand) model.Derivation {
	var lists []model.Derivation
	for _, d := range model.Derivations() {
		if !d.Feature && d.Attribute == "" && slices.Contains(w.Derivations, d.Name) {
			lists = append(lists, d)
		}
	}
	return lists[r.IntN(len(lists))]
}

// complete repairs what damage has left, and adds the lists that are missing.
func (w *world) complete() {
	ctx := context.Background()
	for _, d := range model.Derivations() {
		if slices.Contains(w.Actions, "derivation") && slices.Contains(w.Derivations, d.Name) {
			if err := w.settle(ctx, d); err != nil {
				w.found("the derivation %s cannot be completed: %v", d.Name, err)
			}
		}
	}
	if !w.damaged {
		return
	}
	if _, err := w.admin.CheckRecords(ctx, check.Options{Repair: true, IndexLag: check.NoIndexLag}); err != nil {
		w.found("check -repair: %v", err)
	}
}

// settle makes a derivation readable, wherever an earlier command has ended.
func (w *world) settle(ctx context.Context, d model.Derivation) error {
	if err := w.admin.Ping(ctx); err != nil {
		return err
	}
	if w.admin.Derivations()[d.Name].State == model.Dropped {
		if _, err := w.admin.DropDerivation(ctx, d, dynamo.DerivationOptions{IndexLag: check.NoIndexLag}); err != nil {
			return err
		}
	}
	_, err := w.admin.ApplyDerivation(ctx, d, dynamo.DerivationOptions{IndexLag: check.NoIndexLag})
	return err
}

// verifyExport exports the table and imports the records into another table, which must then have
// the same base records. It leaves out idempotency records, which are not exported, and the index
// keys, because the tables have different shards and features.
func (w *world) verifyExport() {
	ctx := context.Background()
	var text strings.Builder
	if err := w.admin.Export(ctx, make([]bulk.SegmentProgress, 3), func(page bulk.ExportPage) error {
		text.Write(page.Lines)
		return nil
	}); err != nil {
		w.found("export: %v", err)
		return
	}
	other := storetest.NewTable(w.T, w.db, dynamo.Options{Table: "imported"})
	if _, err := other.Import(ctx, strings.NewReader(text.String()), bulk.ImportOptions{}); err != nil {
		w.found("import: %v", err)
		return
	}
	before, after := baseRecords(w.raw()), baseRecords(storetest.RawTable{T: w.T, DB: w.db, Name: "imported", Store: other})
	if keys := storetest.DifferingKeys(before, after); len(keys) > 0 {
		w.found("after an export and an import, these records differ: %s", strings.Join(keys, ", "))
	}
}

// baseRecords returns the base records of a table, without their index keys.
func baseRecords(r storetest.RawTable) map[string]storetest.Item {
	all := r.All()
	maps.DeleteFunc(all, func(_ string, rec storetest.Item) bool {
		e := model.EntityOf(model.Keys{PK: storetest.Record(rec).Text("pk"), SK: storetest.Record(rec).Text("sk")})
		delete(rec, "gsi1pk")
		delete(rec, "gsi1sk")
		return e == nil || e.Kind != model.Base || e == &model.EntityIdempotency || e == &model.EntityLayout
	})
	return all
}
