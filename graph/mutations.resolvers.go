package graph

import (
	"context"

	"github.com/ordergraph/ordergraph/commerce"
)

func (r *mutationResolver) CreateCustomer(ctx context.Context, input CreateCustomerInput) (*Payload[commerce.Customer], error) {
	return change(ctx, r.Resolver, r.store.CreateCustomer, input.command, input.IdempotencyKey)
}

func (r *mutationResolver) UpdateCustomer(ctx context.Context, input UpdateCustomerInput) (*Payload[commerce.Customer], error) {
	return change(ctx, r.Resolver, r.store.UpdateCustomer, input.command, nil)
}

func (r *mutationResolver) AssignAccountRep(ctx context.Context, input AssignAccountRepInput) (*Payload[commerce.Customer], error) {
	return change(ctx, r.Resolver, r.store.AssignAccountRep, input.command, nil)
}

func (r *mutationResolver) PlaceOrder(ctx context.Context, input PlaceOrderInput) (*Payload[commerce.Order], error) {
	return change(ctx, r.Resolver, r.store.PlaceOrder, input.command, input.IdempotencyKey)
}

func (r *mutationResolver) ConfirmOrder(ctx context.Context, input ConfirmOrderInput) (*Payload[commerce.Order], error) {
	return change(ctx, r.Resolver, r.store.MoveOrder, input.command, input.IdempotencyKey)
}

func (r *mutationResolver) ShipOrder(ctx context.Context, input ShipOrderInput) (*Payload[commerce.Order], error) {
	return change(ctx, r.Resolver, r.store.MoveOrder, input.command, input.IdempotencyKey)
}

func (r *mutationResolver) DeliverOrder(ctx context.Context, input DeliverOrderInput) (*Payload[commerce.Order], error) {
	return change(ctx, r.Resolver, r.store.MoveOrder, input.command, input.IdempotencyKey)
}

func (r *mutationResolver) CancelOrder(ctx context.Context, input CancelOrderInput) (*Payload[commerce.Order], error) {
	return change(ctx, r.Resolver, r.store.MoveOrder, input.command, input.IdempotencyKey)
}

func (r *mutationResolver) SetOrderItem(ctx context.Context, input SetOrderItemInput) (*Payload[commerce.Order], error) {
	return change(ctx, r.Resolver, r.store.SetOrderItem, input.command, nil)
}

func (r *mutationResolver) RemoveOrderItem(ctx context.Context, input RemoveOrderItemInput) (*Payload[commerce.Order], error) {
	return change(ctx, r.Resolver, r.store.SetOrderItem, input.command, nil)
}

func (r *mutationResolver) UpdateShippingAddress(ctx context.Context, input UpdateShippingAddressInput) (*Payload[commerce.Order], error) {
	return change(ctx, r.Resolver, r.store.UpdateShippingAddress, input.command, nil)
}

func (r *mutationResolver) CreateProduct(ctx context.Context, input CreateProductInput) (*Payload[commerce.Product], error) {
	return change(ctx, r.Resolver, r.store.CreateProduct, input.command, input.IdempotencyKey)
}

func (r *mutationResolver) UpdateProduct(ctx context.Context, input UpdateProductInput) (*Payload[commerce.Product], error) {
	return change(ctx, r.Resolver, r.store.UpdateProduct, input.command, nil)
}

func (r *mutationResolver) CreateWarehouse(ctx context.Context, input CreateWarehouseInput) (*Payload[commerce.Warehouse], error) {
	return change(ctx, r.Resolver, r.store.CreateWarehouse, input.command, input.IdempotencyKey)
}

func (r *mutationResolver) SetInventoryLevel(ctx context.Context, input SetInventoryLevelInput) (*Payload[commerce.InventoryLevel], error) {
	return change(ctx, r.Resolver, r.store.SetInventoryLevel, input.command, nil)
}

func (r *mutationResolver) AdjustInventory(ctx context.Context, input AdjustInventoryInput) (*Payload[commerce.InventoryLevel], error) {
	return change(ctx, r.Resolver, r.store.AdjustInventory, input.command, input.IdempotencyKey)
}

func (r *mutationResolver) HireEmployee(ctx context.Context, input HireEmployeeInput) (*Payload[commerce.Employee], error) {
	return change(ctx, r.Resolver, r.store.HireEmployee, input.command, input.IdempotencyKey)
}

func (r *mutationResolver) UpdateEmployee(ctx context.Context, input UpdateEmployeeInput) (*Payload[commerce.Employee], error) {
	return change(ctx, r.Resolver, r.store.UpdateEmployee, input.command, nil)
}
