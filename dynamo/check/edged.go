package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/repair"
)

// edged is a record with its edges, as they were read.
type edged struct {
	// entity is the record's, and primary its primary key.
	entity  *model.Entity
	primary model.Keys
	// records are the record and its edges, by their keys.
	records map[model.Keys]model.Record
}

// newEdged returns a record of which nothing has been read. values are those in its key.
func newEdged(e *model.Entity, values map[string]string) edged {
	return edged{entity: e, primary: e.KeyWith(values), records: map[model.Keys]model.Record{}}
}

// main is the record, nil where there is none.
func (r *edged) main() model.Record { return r.records[r.primary] }

// edge is an edge of the record, nil where there is none.
func (r *edged) edge(e *model.Entity) model.Record { return r.records[r.edgeKey(e)] }

func (r *edged) edgeKey(e *model.Entity) model.Keys {
	return e.KeyWith(r.entity.KeyValues(r.primary))
}

// keep remembers a record that was read: the record itself, or one of its edges.
func (r *edged) keep(rec model.Record) { r.records[model.KeyOf(rec)] = rec }

// keys are the keys of the record and of all edges that it can have, in the order in which they are
// believed.
func (r *edged) keys() []model.Keys {
	ks := []model.Keys{r.primary}
	for _, e := range r.entity.Edges() {
		ks = append(ks, r.edgeKey(e))
	}
	return ks
}

// first is the first record that is there, nil where there is none.
func (r *edged) first() model.Record {
	for _, k := range r.keys() {
		if rec := r.records[k]; rec != nil {
			return rec
		}
	}
	return nil
}

// decoder decodes a record or an edge of it.
type decoder[V any] func(model.Reader) (*V, error)

// decode decodes what can be read of the record or of an edge.
func decode[V any](v *repair.Verdict, r *edged, k model.Keys, with decoder[V]) (*V, error) {
	e := model.EntityOf(k)
	return with(model.Reader{Record: repair.WithKey(v.Legible(e, r.records[k]), r.entity.KeyValues(r.primary))})
}

// believed returns what the record says, and the record that says it: an edge where the record is
// missing or cannot be read. It returns nil where none of them can be read.
func believed[V any](v *repair.Verdict, r *edged, with decoder[V]) (*V, model.Record) {
	for _, k := range r.keys() {
		if r.records[k] == nil {
			continue
		}
		if value, err := decode(v, r, k, with); err == nil {
			return value, r.records[k]
		}
	}
	return nil, nil
}

// isLost reports whether the record is missing, and no edge says more than keys do.
func (r *edged) isLost() bool {
	return r.main() == nil && !slices.ContainsFunc(r.entity.Edges(), func(e *model.Entity) bool {
		edge := r.edge(e)
		return edge != nil && !repair.IsBare(e, edge)
	})
}

// judgeUnread finds a record that cannot be read, or the edges that are left of one.
func judgeUnread[V any](v *repair.Verdict, r *edged, with decoder[V]) {
	if r.main() != nil {
		_, err := decode(v, r, r.primary, with)
		v.Unreadable(r.primary, err)
		return // the edges may be right
	}
	for _, k := range r.keys() {
		if rec := r.records[k]; rec != nil {
			if _, err := decode(v, r, k, with); err != nil && !repair.IsBare(model.EntityOf(k), rec) {
				v.Unreadable(k, err)
			} else {
				v.Orphan(repair.DriftOrphanEdge, rec, fmt.Sprintf("the %s does not exist", r.entity.What))
			}
		}
	}
}

// judgeEdges finds edges that are missing or say something else than the record, and those to
// something that the record does not have. wanted are the records that the model makes, none where
// the record does not exist.
func (r *edged) judgeEdges(v *repair.Verdict, wanted []model.Record) {
	want := map[model.Keys]model.Record{}
	for _, rec := range wanted {
		want[model.KeyOf(rec)] = rec
	}
	for _, e := range r.entity.Edges() {
		k, by := r.edgeKey(e), strings.Join(e.ListedBy(), ", ")
		left := func(name string) bool { return v.Left(e, k, name) }
		switch have, want := r.records[k], want[k]; {
		case have != nil && want != nil:
			v.Compare(e, have, want, repair.DriftEdgeDiffers)
		case want != nil:
			v.Absent(repair.DriftEdgeMissing, want, nil, fmt.Sprintf("the %s has %s", r.entity.What, by))
		case have != nil && wanted == nil:
			v.Orphan(repair.DriftOrphanEdge, have, fmt.Sprintf("the %s does not exist", r.entity.What))
		case have != nil && slices.ContainsFunc(e.ListedBy(), left):
			v.Legible(e, have) // nobody knows whether it should be there
		case have != nil:
			v.Orphan(repair.DriftOrphanEdge, have, fmt.Sprintf("the %s has no %s", r.entity.What, by))
		}
	}
}
