package check

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ordergraph/ordergraph/dynamo/model"
)

// recordWithEdges contains a record and its edges, which are copies with other index keys.
type recordWithEdges struct {
	// entity is the record's entity in the data model. primaryKey is the record's primary key.
	entity     *model.Entity
	primaryKey model.Keys
	// records contains the record itself and its edges, by primary key.
	records map[model.Keys]model.Record
}

// newRecordWithEdges returns a recordWithEdges without records. values maps each placeholder in the
// templates of the primary key to its value.
func newRecordWithEdges(e *model.Entity, values map[string]string) recordWithEdges {
	return recordWithEdges{entity: e, primaryKey: e.KeyFromValues(values), records: map[model.Keys]model.Record{}}
}

// record returns the record itself, or nil if it does not exist.
func (r *recordWithEdges) record() model.Record { return r.records[r.primaryKey] }

// edge returns the record's edge whose entity is e, or nil if the edge does not exist.
func (r *recordWithEdges) edge(e *model.Entity) model.Record { return r.records[r.edgeKey(e)] }

// edgeKey returns the primary key of the record's edge whose entity is e. If each element of a list
// has such an edge, it returns an empty key.
func (r *recordWithEdges) edgeKey(e *model.Entity) model.Keys {
	return e.KeyFromValues(r.entity.KeyValues(r.primaryKey))
}

// edgeKeys returns the primary keys of all edges whose entity is e, among the stored ones and those
// in want.
func (r *recordWithEdges) edgeKeys(e *model.Entity, want map[model.Keys]model.Record) []model.Keys {
	if e.Each == "" {
		return []model.Keys{r.edgeKey(e)}
	}
	found := map[model.Keys]bool{}
	for _, records := range []map[model.Keys]model.Record{r.records, want} {
		for k := range records {
			if model.EntityOf(k) == e {
				found[k] = true
			}
		}
	}
	return sortedKeys(found)
}

// sortedKeys returns the primary keys of records in one partition, sorted by sort key.
func sortedKeys[V any](records map[model.Keys]V) []model.Keys {
	return slices.SortedFunc(maps.Keys(records), func(a, b model.Keys) int { return cmp.Compare(a.SK, b.SK) })
}

// put adds rec, which is the record itself or one of its edges.
func (r *recordWithEdges) put(rec model.Record) { r.records[model.KeyOf(rec)] = rec }

// keys returns the key of the record, then of all possible edges that copy it. Callers prefer
// earlier keys.
func (r *recordWithEdges) keys() []model.Keys {
	ks := []model.Keys{r.primaryKey}
	for _, e := range r.entity.Edges() {
		if !e.KeysOnly {
			ks = append(ks, r.edgeKey(e))
		}
	}
	return ks
}

// firstRecord returns the record itself, its first edge if it is missing, or nil without edges.
func (r *recordWithEdges) firstRecord() model.Record {
	for _, k := range r.keys() {
		if rec := r.records[k]; rec != nil {
			return rec
		}
	}
	return nil
}

// recordsWithEdges are records of several entities, by primary key.
type recordsWithEdges map[model.Keys]*recordWithEdges

// add adds rec, which is a record of the entity e.
func (records recordsWithEdges) add(e *model.Entity, rec model.Record) {
	r := newRecordWithEdges(e.BaseEntity(), e.KeyValues(model.KeyOf(rec)))
	if records[r.primaryKey] == nil {
		records[r.primaryKey] = &r
	}
	records[r.primaryKey].put(rec)
}

func (records recordsWithEdges) sorted() []*recordWithEdges {
	return slices.SortedFunc(maps.Values(records), func(a, b *recordWithEdges) int { return cmp.Compare(a.primaryKey.SK, b.primaryKey.SK) })
}

func (records recordsWithEdges) verify(diag *diagnosis) {
	for _, r := range records.sorted() {
		r.verify(diag)
	}
}

// expected returns the record and its edges as they should be.
//
// It returns ErrCorrupt if the record cannot be decoded.
func (r *recordWithEdges) expected(diag *diagnosis) ([]model.Record, error) {
	read := withKeyAttributes(diag.withoutUnreadable(r.entity, r.record()), r.entity.KeyValues(r.primaryKey))
	if diag.erased {
		_, erased, err := diag.table.ReencodeErased(r.entity, read)
		return erased, err
	}
	return diag.table.Reencode(r.entity, read)
}

// verify compares the record and its edges with what the declaration of its entity says, and returns
// the expected record. The parameter want contains further attributes of this record. If the record is
// missing or cannot be decoded, the result is nil.
func (r *recordWithEdges) verify(diag *diagnosis, want ...model.Record) model.Record {
	if r.record() == nil {
		r.verifyEdges(diag, nil)
		return nil
	}
	expected, err := r.expected(diag)
	if err != nil {
		diag.addUnreadable(r.primaryKey, err)
		return nil
	}
	for _, more := range want {
		expected[0].Merge(more)
	}
	diag.compare(r.entity, r.record(), expected[0], kindKeyAttribute)
	diag.removeNumbers(r.entity, r.record())
	r.verifyEdges(diag, expected)
	return expected[0]
}

type decoder[V any] func(model.Reader) (*V, error)

// decode decodes the readable attributes of k, and adds a finding about the unreadable ones.
func decode[V any](diag *diagnosis, r *recordWithEdges, k model.Keys, decodeValue decoder[V]) (*V, error) {
	e := model.EntityOf(k)
	return decodeValue(model.Reader{Record: withKeyAttributes(diag.withoutUnreadable(e, r.records[k]), r.entity.KeyValues(r.primaryKey))})
}

// decodeFirst decodes the record or else its first readable edge, and returns which it decoded.
func decodeFirst[V any](diag *diagnosis, r *recordWithEdges, decodeValue decoder[V]) (*V, model.Record) {
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

// isLost reports whether the record is missing, and cannot be restored from an edge with data.
func (r *recordWithEdges) isLost() bool {
	return r.record() == nil && !slices.ContainsFunc(r.entity.Edges(), func(e *model.Entity) bool {
		edge := r.edge(e)
		return edge != nil && !hasOnlyKeys(e, edge)
	})
}

// reportUndecodable reports a record that cannot be decoded or, if it is missing, its edges.
func reportUndecodable[V any](diag *diagnosis, r *recordWithEdges, decodeValue decoder[V]) {
	if r.record() != nil {
		_, err := decode(diag, r, r.primaryKey, decodeValue)
		diag.addUnreadable(r.primaryKey, err)
		return // do not report the edges, because they may be right
	}
	for _, k := range r.keys() {
		if rec := r.records[k]; rec != nil {
			if _, err := decode(diag, r, k, decodeValue); err != nil && !hasOnlyKeys(model.EntityOf(k), rec) {
				diag.addUnreadable(k, err)
			} else {
				diag.addOrphan(kindOrphanEdge, rec, fmt.Sprintf("the %s does not exist", r.entity.Description))
			}
		}
	}
}

// verifyEdges reports missing, wrong or superfluous edges. expected contains the record and its
// edges as they should be. If the record should not exist, expected is nil.
func (r *recordWithEdges) verifyEdges(diag *diagnosis, expected []model.Record) {
	want, states := byKey(expected), diag.table.Layout.Derivations()
	for _, e := range r.entity.Edges() {
		switch states.Of(e.Name).State {
		case model.Readable:
			r.verifyEdgesOf(diag, e, want, expected == nil)
		case model.Absent:
			r.verifyEdgesOf(diag, e, nil, false)
		}
	}
}

func byKey(records []model.Record) map[model.Keys]model.Record {
	all := map[model.Keys]model.Record{}
	for _, rec := range records {
		all[model.KeyOf(rec)] = rec
	}
	return all
}

// verifyEdgesOf reports missing, wrong or superfluous edges whose entity is e. want contains the
// edges as they should be.
func (r *recordWithEdges) verifyEdgesOf(diag *diagnosis, e *model.Entity, want map[model.Keys]model.Record, noRecord bool) {
	for _, k := range r.edgeKeys(e, want) {
		r.verifyEdge(diag, e, k, want[k], noRecord)
	}
}

// verifyEdge reports an edge that is missing, wrong or superfluous. want is the edge as it should be, or
// nil if it should not exist. noRecord reports whether the record itself should not exist.
func (r *recordWithEdges) verifyEdge(diag *diagnosis, e *model.Entity, k model.Keys, want model.Record, noRecord bool) {
	relation := strings.Join(e.IndexAttributes(), ", ")
	if e.Each != "" {
		relation = fmt.Sprintf("%q in %s", e.Element(k), e.Each)
	}
	left := func(name string) bool { return diag.mustLeaveUnchanged(e, k, name) }
	switch have := r.records[k]; {
	case have != nil && want != nil:
		diag.compare(e, have, want, kindEdgeDiffers)
	case want != nil:
		diag.addMissing(kindEdgeMissing, want, nil, fmt.Sprintf("the %s has %s", r.entity.Description, relation))
	case have != nil && noRecord:
		diag.addOrphan(kindOrphanEdge, have, fmt.Sprintf("the %s does not exist", r.entity.Description))
	case have != nil && diag.table.Layout.Derivations().Of(e.Name).State == model.Absent:
		diag.addOrphan(kindOrphanEdge, have, "the table does not have "+e.Name)
	case have != nil && slices.ContainsFunc(e.IndexAttributes(), left):
		diag.withoutUnreadable(e, have) // keep the edge: the record's attribute is unreadable, so the edge may be right
	case have != nil && !slices.ContainsFunc(e.IndexAttributes(), func(name string) bool { return r.record()[name] == nil }):
		diag.addOrphan(kindOrphanEdge, have, fmt.Sprintf("the %s does not belong to this list", r.entity.Description))
	case have != nil:
		diag.addOrphan(kindOrphanEdge, have, fmt.Sprintf("the %s has no %s", r.entity.Description, relation))
	}
}

// removeNumbers reports the numbers in a record that the table does not have.
func (diag *diagnosis) removeNumbers(e *model.Entity, have model.Record) {
	for _, name := range e.AddedNumbers {
		if have[name] == nil || diag.table.Layout.Derivations().Of(e.Name+"."+name).State != model.Absent {
			continue
		}
		diag.addFinding(kindOrphanEdge, model.KeyOf(have), "the table does not have "+e.Name+"."+name, remedyRepair)
		i := slices.IndexFunc(diag.fixes, func(fix recordFix) bool { return fix.key == model.KeyOf(have) })
		if i < 0 {
			i, diag.fixes = len(diag.fixes), append(diag.fixes, recordFix{key: model.KeyOf(have), asRead: have, set: model.Record{}})
		}
		diag.fixes[i].remove = append(diag.fixes[i].remove, name)
	}
}
