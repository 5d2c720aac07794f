package dynamo

import (
	"context"
	"fmt"

	"github.com/ordergraph/ordergraph/commerce"
)

// Result is what came of one of several look-ups that were made together.
type Result[V any] struct {
	Value V
	// Err is commerce.ErrNotFound where there is no such record, ErrCorrupt where it cannot be read
	// or its id can be no key, else nil.
	Err error
}

// lookUp reads the records of ids in one BatchGetItem for a hundred of them, or a GetItem for one,
// and gives a result for each id in their order.
func lookUp[K, V any](ctx context.Context, s *Store, p *AccessPattern, ids []K, key func(*keyBuilder, K) keys, decode func(reader) (V, error)) ([]Result[V], error) {
	results := make([]Result[V], len(ids))
	ks := make([]keys, 0, len(ids))
	places := make([]int, 0, len(ids))
	for i, id := range ids {
		b := s.keyBuilder()
		k := key(b, id)
		if b.err != nil {
			// Clients' ids were checked before: this one stands in a record, so it is no client's
			// InvalidError.
			results[i].Err = fmt.Errorf("%w: it refers to %v, which can be no id: %s", ErrCorrupt, id, b.err.Error())
			continue
		}
		ks, places = append(ks, k), append(places, i)
	}
	if len(ks) == 0 {
		return results, nil
	}
	records, err := s.getMany(ctx, p, ks)
	if err != nil {
		return nil, err
	}
	for i, r := range records {
		result := &results[places[i]]
		if r.absent() {
			result.Err = commerce.ErrNotFound
			continue
		}
		result.Value, result.Err = decode(r)
	}
	return results, nil
}

// CustomersByID reads customers (AP6), with a result for each id.
//
// Errors: ErrUnavailable, ErrNoTable, ErrAccessDenied. The other look-ups of several records have
// the same.
func (s *Store) CustomersByID(ctx context.Context, ids []commerce.CustomerID) ([]Result[*commerce.Customer], error) {
	return lookUp(ctx, s, &patternCustomer, ids, customerKey, s.decodeCustomer)
}

// OrdersByID reads orders (AP1).
func (s *Store) OrdersByID(ctx context.Context, ids []commerce.OrderID) ([]Result[*commerce.Order], error) {
	return lookUp(ctx, s, &patternOrder, ids, orderKey, s.decodeOrder)
}

// CustomerOrdersByID reads orders whose customers are known (AP29).
func (s *Store) CustomerOrdersByID(ctx context.Context, ks []CustomerOrderKey) ([]Result[*commerce.Order], error) {
	return lookUp(ctx, s, &patternCustomerOrder, ks, customerOrderKey, s.decodeOrder)
}

// OrderItemsByID reads single items of orders (AP5).
func (s *Store) OrderItemsByID(ctx context.Context, ks []OrderItemKey) ([]Result[*commerce.LineItem], error) {
	return lookUp(ctx, s, &patternOrderItem, ks, orderItemKey, s.decodeOrderItem)
}

// ProductsBySKU reads products (AP10, AP15).
func (s *Store) ProductsBySKU(ctx context.Context, skus []commerce.SKU) ([]Result[*commerce.Product], error) {
	return lookUp(ctx, s, &patternProduct, skus, productKey, s.decodeProduct)
}

// InventoryLevelsByID reads the stock of products in single warehouses (AP14).
func (s *Store) InventoryLevelsByID(ctx context.Context, ks []InventoryLevelKey) ([]Result[*commerce.InventoryLevel], error) {
	return lookUp(ctx, s, &patternInventoryLevel, ks, inventoryLevelKey, decodeInventoryLevel)
}

// WarehousesByID reads warehouses (AP30).
func (s *Store) WarehousesByID(ctx context.Context, ids []commerce.WarehouseID) ([]Result[*commerce.Warehouse], error) {
	return lookUp(ctx, s, &patternWarehouse, ids, warehouseKey, decodeWarehouse)
}

// EmployeesByID reads employees (AP16).
func (s *Store) EmployeesByID(ctx context.Context, ids []commerce.EmployeeID) ([]Result[*commerce.Employee], error) {
	return lookUp(ctx, s, &patternEmployee, ids, employeeKey, decodeEmployee)
}

// CustomerIDByEmail reads whose an e-mail address is (AP26); email is in the form of
// commerce.ParseEmail.
//
// Errors: commerce.ErrNotFound where it is nobody's, commerce.InvalidError where it can be in no
// key, and those of CustomersByID.
func (s *Store) CustomerIDByEmail(ctx context.Context, email string) (commerce.CustomerID, error) {
	b := s.keyBuilder()
	k := emailClaimKey(b, email)
	if b.err != nil {
		return "", b.err
	}
	r, err := s.get(ctx, &patternEmailClaim, k)
	if err != nil {
		return "", err
	}
	return decodeEmailClaim(r)
}
