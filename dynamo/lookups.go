package dynamo

import (
	"context"
	"errors"
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
// Errors: model.DerivationUnavailable, table.ErrUnavailable, table.ErrNoTable and
// table.ErrAccessDenied.
func ReadRecords[K comparable, V any](ctx context.Context, s *Store, p *model.LookupPattern[K, V], ids []K) ([]LookupResult[V], error) {
	if err := s.checkClaimReadable(ctx, &p.AccessPattern); err != nil {
		return nil, err
	}
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
	if err := s.checkClaimReadable(ctx, &p.AccessPattern); err != nil {
		return missing, err
	}
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

// StockBucketsOf identifies the records over which the stock of a product is spread, besides the
// product's own.
type StockBucketsOf struct {
	SKU commerce.SKU
	// Buckets is the product's number of buckets, including its own record.
	Buckets int
}

// SumStockBuckets reads the stock of products in their buckets, besides the products' own records. It
// returns one sum per product, in the order of the products. A missing bucket counts as empty.
//
// Errors: the errors of ReadRecords.
func (s *Store) SumStockBuckets(ctx context.Context, products []StockBucketsOf) ([]LookupResult[commerce.StockBucket], error) {
	var keys []model.StockBucketKey
	for _, p := range products {
		for number := 1; number < p.Buckets; number++ {
			keys = append(keys, model.StockBucketKey{SKU: p.SKU, Number: number})
		}
	}
	found, err := ReadRecords(ctx, s, model.StockBuckets, keys)
	if err != nil {
		return nil, err
	}
	sums := make([]LookupResult[commerce.StockBucket], len(products))
	for i, p := range products {
		for _, bucket := range found[:p.Buckets-1] {
			switch {
			case bucket.Err == nil:
				sums[i].Value.Available += bucket.Value.Available
				sums[i].Value.OrderCount += bucket.Value.OrderCount
			case !errors.Is(bucket.Err, commerce.ErrNotFound):
				sums[i].Err = bucket.Err
			}
		}
		found = found[p.Buckets-1:]
	}
	return sums, nil
}

// checkClaimReadable returns a model.DerivationUnavailable if p reads claims that are not readable.
func (s *Store) checkClaimReadable(ctx context.Context, p *model.AccessPattern) error {
	if p.Claim == "" || p.Claim == model.EntityEmailClaim.Name { // every table has the claims of email addresses
		return nil
	}
	if err := s.table.CheckLayout(ctx); err != nil {
		return err
	}
	return s.table.Layout.Derivations().CheckReadable(p.Claim)
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
