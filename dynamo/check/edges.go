package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/repair"
)

// recordWithEdges is a record and its edges, as they were read.
type recordWithEdges struct {
	// entity is the entity of the record, primaryKey its primary key.
	entity     *model.Entity
	primaryKey model.Keys
	// records has the record and its edges by primary key.
	records map[model.Keys]model.Record
}

// newRecordWithEdges returns a recordWithEdges without records. values are the values in the
// record's primary key, by name.
func newRecordWithEdges(e *model.Entity, values map[string]string) recordWithEdges {
	return recordWithEdges{entity: e, primaryKey: e.KeyFromValues(values), records: map[model.Keys]model.Record{}}
}

// record returns the record, or nil if it was not found.
func (r *recordWithEdges) record() model.Record { return r.records[r.primaryKey] }

// edge returns the edge of an entity, or nil if it was not found.
func (r *recordWithEdges) edge(e *model.Entity) model.Record { return r.records[r.edgeKey(e)] }

// edgeKey returns the primary key of the edge of an entity.
func (r *recordWithEdges) edgeKey(e *model.Entity) model.Keys {
	return e.KeyFromValues(r.entity.KeyValues(r.primaryKey))
}

// put adds the record itself or one of its edges.
func (r *recordWithEdges) put(rec model.Record) { r.records[model.KeyOf(rec)] = rec }

// keys returns the primary keys of the record and of all its possible edges. The first existing
// record is the most trusted.
func (r *recordWithEdges) keys() []model.Keys {
	ks := []model.Keys{r.primaryKey}
	for _, e := range r.entity.Edges() {
		ks = append(ks, r.edgeKey(e))
	}
	return ks
}

// firstRecord returns the first existing record in the order of keys, or nil.
func (r *recordWithEdges) firstRecord() model.Record {
	for _, k := range r.keys() {
		if rec := r.records[k]; rec != nil {
			return rec
		}
	}
	return nil
}

// decoder decodes a record or one of its edges.
type decoder[V any] func(model.Reader) (*V, error)

// decode decodes the record or an edge without its unreadable attributes.
func decode[V any](diag *repair.Diagnosis, r *recordWithEdges, k model.Keys, decodeValue decoder[V]) (*V, error) {
	e := model.EntityOf(k)
	return decodeValue(model.Reader{Record: repair.WithKeyAttributes(diag.Readable(e, r.records[k]), r.entity.KeyValues(r.primaryKey))})
}

// decodeFirst decodes the record. If the record is missing or cannot be decoded, it decodes the
// first edge that can. It returns the value and the decoded record, or nil.
func decodeFirst[V any](diag *repair.Diagnosis, r *recordWithEdges, decodeValue decoder[V]) (*V, model.Record) {
	for _, k := range r.keys() {
		if r.records[k] == nil {
			continue
		}
		if value, err := decode(diag, r, k, decodeValue); err == nil {
			return value, r.records[k]
		}
	}
	return nil, nil
}

// isLost reports whether the record is missing and its edges have no attributes but keys.
func (r *recordWithEdges) isLost() bool {
	return r.record() == nil && !slices.ContainsFunc(r.entity.Edges(), func(e *model.Entity) bool {
		edge := r.edge(e)
		return edge != nil && !repair.HasOnlyKeys(e, edge)
	})
}

// verifyUndecodable reports a record that cannot be decoded, or the edges of a missing record.
func verifyUndecodable[V any](diag *repair.Diagnosis, r *recordWithEdges, decodeValue decoder[V]) {
	if r.record() != nil {
		_, err := decode(diag, r, r.primaryKey, decodeValue)
		diag.AddUnreadable(r.primaryKey, err)
		return // the edges may be right
	}
	for _, k := range r.keys() {
		if rec := r.records[k]; rec != nil {
			if _, err := decode(diag, r, k, decodeValue); err != nil && !repair.HasOnlyKeys(model.EntityOf(k), rec) {
				diag.AddUnreadable(k, err)
			} else {
				diag.AddOrphan(repair.DriftOrphanEdge, rec, fmt.Sprintf("the %s does not exist", r.entity.Description))
			}
		}
	}
}

// verifyEdges reports edges that are missing, differ from the record, or should not exist. expected
// are the records that should exist. It is nil if the main record should not exist.
func (r *recordWithEdges) verifyEdges(diag *repair.Diagnosis, expected []model.Record) {
	want := map[model.Keys]model.Record{}
	for _, rec := range expected {
		want[model.KeyOf(rec)] = rec
	}
	for _, e := range r.entity.Edges() {
		k, relation := r.edgeKey(e), strings.Join(e.IndexAttributes(), ", ")
		left := func(name string) bool { return diag.LeavesUnchanged(e, k, name) }
		switch have, want := r.records[k], want[k]; {
		case have != nil && want != nil:
			diag.Compare(e, have, want, repair.DriftEdgeDiffers)
		case want != nil:
			diag.AddMissing(repair.DriftEdgeMissing, want, nil, fmt.Sprintf("the %s has %s", r.entity.Description, relation))
		case have != nil && expected == nil:
			diag.AddOrphan(repair.DriftOrphanEdge, have, fmt.Sprintf("the %s does not exist", r.entity.Description))
		case have != nil && slices.ContainsFunc(e.IndexAttributes(), left):
			diag.Readable(e, have) // the record's attribute is unreadable, so the edge may be right
		case have != nil:
			diag.AddOrphan(repair.DriftOrphanEdge, have, fmt.Sprintf("the %s has no %s", r.entity.Description, relation))
		}
	}
}
