package dynamo

import (
	"context"
	"fmt"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
)

// Result is the result of one lookup in a batch.
type Result[V any] struct {
	Value V
	// Err is commerce.ErrNotFound if the record does not exist, ErrCorrupt if the record cannot be
	// read or no key can contain its ID, and nil otherwise.
	Err error
}

// ReadRecords reads records by ID and returns one result per ID, in the same order. It sends a
// BatchGetItem for each 100 IDs, or a GetItem for a single ID.
//
// Errors: ErrUnavailable, ErrNoTable, ErrAccessDenied.
func ReadRecords[K comparable, V any](ctx context.Context, s *Store, p *model.Lookup[K, V], ids []K) ([]Result[V], error) {
	results := make([]Result[V], len(ids))
	keys := make([]model.Keys, 0, len(ids))
	indexes := make([]int, 0, len(ids))
	for i, id := range ids {
		b := s.table.KeyBuilder()
		k := p.Key(b, id)
		if b.Err != nil {
			// IDs of clients were validated before. This ID comes from a record, so the client gets no
			// InvalidError.
			results[i].Err = fmt.Errorf("%w: reference to the invalid ID %v: %s", model.ErrCorrupt, id, b.Err.Error())
			continue
		}
		keys, indexes = append(keys, k), append(indexes, i)
	}
	if len(keys) == 0 {
		return results, nil
	}
	records, err := s.table.GetMany(ctx, &p.AccessPattern, keys)
	if err != nil {
		return nil, err
	}
	for i, r := range records {
		result := &results[indexes[i]]
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
// Errors: commerce.ErrNotFound, commerce.InvalidError if no key can contain the ID, ErrCorrupt if
// the record cannot be read, and the errors of ReadRecords.
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
