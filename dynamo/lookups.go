package dynamo

import (
	"context"
	"fmt"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
)

// LookupResult is the result for one of the IDs that ReadRecords looks up.
type LookupResult[V any] struct {
	Value V
	// Err is nil if the record was read. It is commerce.ErrNotFound if the record does not exist. It
	// is ErrCorrupt if the record cannot be decoded, or if the ID is not valid in a key.
	Err error
}

// ReadRecords reads records by ID and returns one result per ID, in the same order. It sends one
// BatchGetItem request per 100 IDs, or a GetItem request for a single ID.
//
// Errors: ErrUnavailable, ErrNoTable, ErrAccessDenied.
func ReadRecords[K comparable, V any](ctx context.Context, s *Store, p *model.LookupPattern[K, V], ids []K) ([]LookupResult[V], error) {
	results := make([]LookupResult[V], len(ids))
	keys := make([]model.Keys, 0, len(ids))
	indexes := make([]int, 0, len(ids))
	for i, id := range ids {
		b := s.table.KeyBuilder()
		k := p.Key(b, id)
		if b.Err != nil {
			// IDs sent by clients were validated before this call. An invalid ID therefore comes from a
			// stored record, and the error is ErrCorrupt instead of InvalidError.
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

// ReadRecord reads one record by ID.
//
// Errors: commerce.ErrNotFound, commerce.InvalidError if the ID is not valid in a key, ErrCorrupt
// if the record cannot be decoded, and the errors of ReadRecords.
func ReadRecord[K comparable, V any](ctx context.Context, s *Store, p *model.LookupPattern[K, V], id K) (V, error) {
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
