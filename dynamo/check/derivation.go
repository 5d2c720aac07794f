package check

import (
	"context"
	"maps"
	"slices"

	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// edgeVerifier verifies one edge of the records in an item collection, for example an edge that is
// being added to the table.
type edgeVerifier struct {
	baseVerifier
	edge      *model.Entity
	partition string
	records   recordsWithEdges
}

func newEdgeVerifier(edge *model.Entity, partition string) *edgeVerifier {
	return &edgeVerifier{edge: edge, partition: partition, records: recordsWithEdges{}}
}

func (v *edgeVerifier) addRecord(e *model.Entity, rec model.Record) {
	if e == v.edge || e == v.edge.Of {
		v.records.add(e, rec)
	}
}

func (v *edgeVerifier) key(*table.Table) model.Keys { return model.Keys{PK: v.partition} }

// read reads the records again that were found before, and their edges.
func (v *edgeVerifier) read(ctx context.Context, c *check) error {
	var keys []model.Keys
	if v.edge.Each != "" || len(v.records) == 0 && len(v.edge.Of.SK.Placeholders()) > 0 {
		v.records = recordsWithEdges{}
		return c.client.readItemCollection(ctx, model.OrderCollection, v.partition, v.addRecord)
	}
	if len(v.records) == 0 {
		e := v.edge.Of
		r := newRecordWithEdges(e, e.KeyValues(model.Keys{PK: v.partition, SK: string(e.SK)}))
		keys = []model.Keys{r.primaryKey, r.edgeKey(v.edge)}
	}
	for _, r := range v.records {
		keys = append(keys, r.primaryKey, r.edgeKey(v.edge))
	}
	found, err := c.client.get(ctx, consistent, keys...)
	v.records = recordsWithEdges{}
	for k, rec := range found {
		v.addRecord(model.EntityOf(k), rec)
	}
	return err
}

func (v *edgeVerifier) verify(c *check) *diagnosis {
	diag := &diagnosis{table: c.table}
	for _, r := range v.records.sorted() {
		if !c.table.Layout.Derivations().Writes(v.edge.Name) {
			for _, k := range r.edgeKeys(v.edge, nil) {
				if edge := r.records[k]; edge != nil {
					diag.addDeletion(kindOrphanEdge, edge, "the table does not have "+v.edge.Name)
				}
			}
			continue
		}
		if r.record() == nil {
			r.verifyEdgesOf(diag, v.edge, nil, true)
			continue
		}
		expected, err := r.expected(diag)
		if err != nil {
			diag.addUnreadable(r.primaryKey, err)
			continue
		}
		// Orders change the numbers of a popular product all the time, but its edges do not contain them.
		diag.dependencies = append(diag.dependencies, unchangedRecord{r.primaryKey, r.record(), v.edge.Omitted})
		r.verifyEdgesOf(diag, v.edge, byKey(expected), false)
	}
	return diag
}

// ofDerivation returns the part of a diagnosis that concerns the derivation to which the check is
// restricted. Without a derivation, it returns the whole diagnosis.
func (c *check) ofDerivation(diag *diagnosis) *diagnosis {
	d := c.opts.Derivation
	if d == nil {
		return diag
	}
	part := *diag
	part.findings = slices.DeleteFunc(slices.Clone(diag.findings), func(f finding) bool { return !d.IsStoredIn(f.key) && f.kind != KindValueShared })
	part.fixes = slices.DeleteFunc(slices.Clone(diag.fixes), func(fix recordFix) bool { return !d.IsStoredIn(fix.key) })
	return &part
}

// repairCost is what the repair of a diagnosis consumes, and what it adds to the cost of later checks:
// the size of its records, and the reads of the records to which its claims belong.
type repairCost struct {
	writeUnits, addedReads float64
	addedBytes             int
}

func costOf(diag *diagnosis) (cost repairCost) {
	written := map[model.Keys]bool{}
	for _, fix := range diag.fixes {
		written[fix.key] = true
		after := fix.put
		cost.addedBytes += model.SizeOf(after)
		if fix.isDelete {
			cost.addedBytes -= model.SizeOf(fix.asRead)
		}
		if e := model.EntityOf(fix.key); after != nil && e.Kind == model.Claim {
			for _, r := range diag.dependencies {
				cost.addedReads += model.ReadUnits(model.SizeOf(r.asRead))
			}
		}
		if after == nil && !fix.isDelete {
			after = maps.Clone(fix.asRead).Merge(fix.set)
			for _, name := range fix.remove {
				delete(after, name)
			}
		}
		cost.writeUnits += model.TransactWriteUnits(fix.asRead, after)
	}
	if len(diag.fixes) == 0 {
		return cost
	}
	for _, r := range append([]unchangedRecord{{key: diag.trustedKey, asRead: diag.trusted}}, diag.dependencies...) {
		if r.key.PK != "" && !written[r.key] {
			written[r.key] = true
			cost.writeUnits += model.ConditionCheckUnits(r.asRead)
		}
	}
	return cost
}
