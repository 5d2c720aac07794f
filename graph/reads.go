package graph

import (
	"context"
	"errors"
	"math"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
)

// orNull makes GraphQL's null of a record that does not exist.
func orNull[T any](v *T, err error) (*T, error) {
	if errors.Is(err, commerce.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return v, nil
}

// byID looks up what a client named in an argument.
func byID[ID ~string, T any](ctx context.Context, argument, id string, load func(context.Context, ID) (*T, error)) (*T, error) {
	return byKey(ctx, argument, id, commerce.ParseID[ID], load)
}

// byOrderID is byID for orders.
func byOrderID[T any](ctx context.Context, argument, id string, load func(context.Context, commerce.OrderID) (*T, error)) (*T, error) {
	return byKey(ctx, argument, id, commerce.ParseOrderID, load)
}

func byKey[ID, T any](ctx context.Context, argument, id string, parse func(string) (ID, error), load func(context.Context, ID) (*T, error)) (*T, error) {
	parsed, err := parse(id)
	if err != nil {
		return nil, commerce.For(argument, err)
	}
	return orNull(load(ctx, parsed))
}

// reference looks up what a record refers to; an empty id refers to nothing.
func reference[ID ~string, T any](ctx context.Context, id ID, load func(context.Context, ID) (*T, error)) (*T, error) {
	if id == "" {
		return nil, nil
	}
	return orNull(load(ctx, id))
}

func (r *Resolver) customerByEmail(ctx context.Context, email string) (*commerce.Customer, error) {
	address, err := commerce.ParseEmail(email)
	if err != nil {
		return nil, commerce.For("email", err)
	}
	id, err := of(ctx).CustomerIDByEmail.Load(ctx, address)
	if err != nil {
		return orNull[commerce.Customer](nil, err)
	}
	return orNull(of(ctx).Customer.Load(ctx, id))
}

func (r *Resolver) customerOrder(ctx context.Context, customer commerce.CustomerID, id string) (*commerce.Order, error) {
	return byOrderID(ctx, "id", id, func(ctx context.Context, order commerce.OrderID) (*commerce.Order, error) {
		return of(ctx).CustomerOrder.Load(ctx, dynamo.CustomerOrderKey{Customer: customer, Order: order})
	})
}

func (r *Resolver) orderItem(ctx context.Context, orderID, productID string) (*commerce.LineItem, error) {
	return byOrderID(ctx, "orderId", orderID, func(ctx context.Context, order commerce.OrderID) (*commerce.LineItem, error) {
		return byID(ctx, "productId", productID, func(ctx context.Context, sku commerce.SKU) (*commerce.LineItem, error) {
			return of(ctx).ItemByID(ctx, dynamo.OrderItemKey{Order: order, SKU: sku})
		})
	})
}

func (r *Resolver) itemOf(ctx context.Context, order *commerce.Order, productID string) (*commerce.LineItem, error) {
	return byID(ctx, "productId", productID, func(ctx context.Context, sku commerce.SKU) (*commerce.LineItem, error) {
		return of(ctx).Item(ctx, order, sku)
	})
}

func (r *Resolver) inventoryLevel(ctx context.Context, sku, warehouseID string) (*commerce.InventoryLevel, error) {
	return byID(ctx, "sku", sku, func(ctx context.Context, sku commerce.SKU) (*commerce.InventoryLevel, error) {
		return byID(ctx, "warehouseId", warehouseID, func(ctx context.Context, warehouse commerce.WarehouseID) (*commerce.InventoryLevel, error) {
			return of(ctx).InventoryLevel.Load(ctx, dynamo.InventoryLevelKey{SKU: sku, Warehouse: warehouse})
		})
	})
}

func (r *Resolver) itemsOf(ctx context.Context, order *commerce.Order, p paging) (*OrderItemConnection, error) {
	return ownList(r.orderItems(order.ID, p), func(page dynamo.Page) (dynamo.Slice[*commerce.LineItem], error) {
		return of(ctx).OrderItems(ctx, order, page)
	})
}

func (r *Resolver) timelineOf(ctx context.Context, order *commerce.Order, p paging) (*OrderEventConnection, error) {
	return ownList(r.timeline(order.ID, p), func(page dynamo.Page) (dynamo.Slice[*commerce.Event], error) {
		return of(ctx).Timeline(ctx, order.ID, page)
	})
}

func (r *Resolver) inventoryOf(ctx context.Context, product *commerce.Product, p paging) (*InventoryLevelConnection, error) {
	return ownList(r.productInventory(product.SKU, p), func(page dynamo.Page) (dynamo.Slice[*commerce.InventoryLevel], error) {
		return of(ctx).ProductInventory(ctx, product.SKU, page)
	})
}

// counted makes GraphQL's Int of a count.
func counted(n int, err error) (int32, error) { return int32(min(n, math.MaxInt32)), err }

// valueOrNull makes GraphQL's null of no text and no status.
func valueOrNull[T comparable](v T) *T {
	var none T
	if v == none {
		return nil
	}
	return &v
}
