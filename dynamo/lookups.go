package dynamo

import (
	"context"
	"fmt"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
)

// Result is what came of one of several look-ups that were made together.
type Result[V any] struct {
	Value V
	// Err is commerce.ErrNotFound where there is no such record, ErrCorrupt where it cannot be read
	// or its id can be no key, else nil.
	Err error
}

// ReadRecords reads the records of IDs, in one BatchGetItem for a hundred of them, or a GetItem for
// one, and returns a result for each ID in their order.
//
// Errors: ErrUnavailable, ErrNoTable, ErrAccessDenied.
func ReadRecords[K comparable, V any](ctx context.Context, s *Store, p *model.Lookup[K, V], ids []K) ([]Result[V], error) {
	results := make([]Result[V], len(ids))
	ks := make([]model.Keys, 0, len(ids))
	places := make([]int, 0, len(ids))
	for i, id := range ids {
		b := s.table.KeyBuilder()
		k := p.Key(b, id)
		if b.Err != nil {
			// Clients' ids were checked before: this one stands in a record, so it is no client's
			// InvalidError.
			results[i].Err = fmt.Errorf("%w: it refers to %v, which can be no id: %s", model.ErrCorrupt, id, b.Err.Error())
			continue
		}
		ks, places = append(ks, k), append(places, i)
	}
	if len(ks) == 0 {
		return results, nil
	}
	records, err := s.table.GetMany(ctx, &p.AccessPattern, ks)
	if err != nil {
		return nil, err
	}
	for i, r := range records {
		result := &results[places[i]]
		if r.Absent() {
			result.Err = commerce.ErrNotFound
			continue
		}
		result.Value, result.Err = p.Decode(&s.table.Codec, r)
	}
	return results, nil
}

// ReadRecord reads one record.
//
// Errors: commerce.ErrNotFound, commerce.InvalidError where the ID can be in no key, and those of
// ReadRecords.
func ReadRecord[K comparable, V any](ctx context.Context, s *Store, p *model.Lookup[K, V], id K) (V, error) {
	var missing V
	b := s.table.KeyBuilder()
	k := p.Key(b, id)
	if b.Err != nil {
		return missing, b.Err
	}
	r, err := s.table.Get(ctx, &p.AccessPattern, k)
	if err != nil {
		return missing, err
	}
	return p.Decode(&s.table.Codec, r)
}
