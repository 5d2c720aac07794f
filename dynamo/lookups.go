package dynamo

import (
	"context"
	"fmt"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
)

// LookupResult is the result of looking up one ID with ReadRecords.
type LookupResult[V any] struct {
	Value V
	// Err is nil, commerce.ErrNotFound, or an error that wraps model.ErrCorrupt. ErrCorrupt means that
	// the record cannot be decoded, or that the ID is not valid in a key.
	Err error
}

// ReadRecords reads records by ID, with one request per 100 IDs. It returns one result per ID, in
// the order of the IDs.
//
// Errors: table.ErrUnavailable, table.ErrNoTable and table.ErrAccessDenied.
func ReadRecords[K comparable, V any](ctx context.Context, s *Store, p *model.LookupPattern[K, V], ids []K) ([]LookupResult[V], error) {
	results := make([]LookupResult[V], len(ids))
	keys := make([]model.Keys, 0, len(ids))
	indexes := make([]int, 0, len(ids))
	for i, id := range ids {
		b := s.table.KeyBuilder()
		k := p.Key(b, id)
		if b.Err != nil {
			// IDs from clients were validated before this call, so an invalid ID comes from a stored record.
			// The error is therefore ErrCorrupt, not InvalidError.
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
// Errors: commerce.ErrNotFound, commerce.InvalidError (the ID is not valid in a key),
// model.ErrCorrupt and the errors of ReadRecords.
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

// CustomerExists reports whether the table contains a customer's record, and no record which states
// that the customer was deleted. A record that cannot be decoded counts as existing.
//
// Errors: table.ErrUnavailable, table.ErrNoTable and table.ErrAccessDenied.
func (s *Store) CustomerExists(ctx context.Context, id commerce.CustomerID) (bool, error) {
	b := s.table.KeyBuilder()
	k := model.CustomerByID.Key(b, id)
	if b.Err != nil {
		return false, nil // no record can have a key with this ID
	}
	records, err := s.table.GetMany(ctx, &model.CustomerByID.AccessPattern, []model.Keys{k, model.DeletedCustomerKey(id)})
	if err != nil {
		return false, err
	}
	return !records[0].Absent() && records[1].Absent(), nil
}
