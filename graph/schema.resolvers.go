package graph

import (
	"cmp"
	"context"
	"time"

	"github.com/ordergraph/ordergraph/access"
	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/graph/input"
	"github.com/ordergraph/ordergraph/graph/paging"
	"github.com/ordergraph/ordergraph/graph/scalar"
)

// The resolvers in this file are written by hand. Each of them is one expression.

func (r *addressResolver) Line2(ctx context.Context, obj *commerce.Address) (*string, error) {
	return scalar.OrNull(obj.Line2), nil
}

func (r *addressResolver) Region(ctx context.Context, obj *commerce.Address) (*string, error) {
	return scalar.OrNull(obj.Region), nil
}

func (r *customerResolver) Spending(ctx context.Context, obj *commerce.Customer, placed *commerce.DateRange) ([]*commerce.Spending, error) {
	return spendingOf(ctx, obj, placed)
}

func (r *customerResolver) OrderCount(ctx context.Context, obj *commerce.Customer) (int32, error) {
	return scalar.ToInt(loadersOf(ctx).CustomerOrderCount(ctx, obj))
}

func (r *warehouseResolver) ProductCount(ctx context.Context, obj *commerce.Warehouse) (*int32, error) {
	return storedCount(obj.ProductCount, loadersOf(ctx).CheckReadable(&model.EntityWarehouse, model.AttrProductCount))
}

func (r *orderResolver) ItemCount(ctx context.Context, obj *commerce.Order) (int32, error) {
	return scalar.ToInt(loadersOf(ctx).OrderItemCount(ctx, obj))
}

func (r *orderResolver) Items(ctx context.Context, obj *commerce.Order, first *int32, after *string, last *int32, before *string) (*paging.Connection[*commerce.LineItem], error) {
	return r.itemsOf(ctx, obj, orderItemsArguments{first, after, last, before})
}

func (r *orderResolver) Item(ctx context.Context, obj *commerce.Order, productID string) (*commerce.LineItem, error) {
	return r.orderItemBySKU(ctx, obj, productID)
}

func (r *orderResolver) TrackingNumber(ctx context.Context, obj *commerce.Order) (*string, error) {
	return scalar.OrNull(obj.TrackingNumber), nil
}

func (r *orderResolver) Carrier(ctx context.Context, obj *commerce.Order) (*string, error) {
	return scalar.OrNull(obj.Carrier), nil
}

func (r *orderResolver) CanShipFrom(ctx context.Context, obj *commerce.Order, warehouseID string) (bool, error) {
	return loadersOf(ctx).CanShip(ctx, obj, warehouseID)
}

func (r *orderItemResolver) Returned(ctx context.Context, obj *commerce.LineItem) (int32, error) {
	return scalar.ToInt(loadersOf(ctx).Returned(ctx, obj))
}

func (r *paymentResolver) ReturnID(ctx context.Context, obj *commerce.Payment) (*string, error) {
	return scalar.OrNull(string(obj.ReturnID)), nil
}

func (r *paymentResolver) Reason(ctx context.Context, obj *commerce.Payment) (*string, error) {
	return scalar.OrNull(obj.Reason), nil
}

func (r *quoteResolver) CanShipFrom(ctx context.Context, obj *commerce.Quote, warehouseID string) (bool, error) {
	return loadersOf(ctx).CanShipQuote(ctx, obj, warehouseID)
}

func (r *returnResolver) RejectionReason(ctx context.Context, obj *commerce.Return) (*string, error) {
	return scalar.OrNull(obj.RejectionReason), nil
}

func (r *returnResolver) WarehouseID(ctx context.Context, obj *commerce.Return) (*string, error) {
	return scalar.OrNull(string(obj.WarehouseID)), nil
}

func (r *unmatchedPaymentResolver) OrderID(ctx context.Context, obj *commerce.UnmatchedPayment) (*string, error) {
	return scalar.OrNull(obj.GivenOrderID), nil
}

func (r *webhookResolver) DocumentID(ctx context.Context, obj *commerce.Webhook) (*string, error) {
	return scalar.OrNull(obj.DocumentID), nil
}

func (r *webhookResolver) Secret(ctx context.Context, obj *commerce.Webhook) (*string, error) {
	return scalar.OrNull(obj.Secret), nil
}

func (r *webhookResolver) State(ctx context.Context, obj *commerce.Webhook) (commerce.WebhookStatus, error) {
	return webhookStateField(ctx, obj, obj.Status)
}

func (r *webhookResolver) Lag(ctx context.Context, obj *commerce.Webhook) (int32, error) {
	return webhookStateField(ctx, obj, func(s commerce.WebhookState) int32 { return int32(s.Lag(r.store.Now()).Seconds()) })
}

func (r *webhookResolver) Pending(ctx context.Context, obj *commerce.Webhook) (int32, error) {
	return webhookStateField(ctx, obj, func(s commerce.WebhookState) int32 { return int32(s.Pending) })
}

func (r *webhookResolver) LastError(ctx context.Context, obj *commerce.Webhook) (*string, error) {
	return webhookStateField(ctx, obj, func(s commerce.WebhookState) *string { return scalar.OrNull(cmp.Or(s.DisabledReason, s.LastError)) })
}

func (r *webhookResolver) LastErrorAt(ctx context.Context, obj *commerce.Webhook) (*time.Time, error) {
	return webhookStateField(ctx, obj, func(s commerce.WebhookState) *time.Time { return s.LastErrorAt })
}

func (r *webhookResolver) LastSuccessAt(ctx context.Context, obj *commerce.Webhook) (*time.Time, error) {
	return webhookStateField(ctx, obj, func(s commerce.WebhookState) *time.Time { return s.LastSuccessAt })
}

func (r *webhookResolver) Failures(ctx context.Context, obj *commerce.Webhook, first *int32, after *string, last *int32, before *string) (*paging.Connection[*commerce.WebhookFailure], error) {
	return r.webhookFailures(ctx, obj, &webhookFailuresArguments{first, after, last, before})
}

func (r *fulfillmentResolver) Carrier(ctx context.Context, obj *commerce.Fulfillment) (*string, error) {
	return scalar.OrNull(obj.Carrier), nil
}

func (r *fulfillmentResolver) TrackingNumber(ctx context.Context, obj *commerce.Fulfillment) (*string, error) {
	return scalar.OrNull(obj.TrackingNumber), nil
}

func (r *fulfillmentResolver) TrackingURL(ctx context.Context, obj *commerce.Fulfillment) (*string, error) {
	return scalar.OrNull(obj.TrackingURL), nil
}

func (r *orderAdjustmentResolver) Line(ctx context.Context, obj *commerce.OrderAdjustment) (*string, error) {
	return scalar.OrNull(string(obj.Line)), nil
}

func (r *orderContactResolver) Email(ctx context.Context, obj *commerce.OrderContact) (*string, error) {
	return scalar.OrNull(obj.Email), nil
}

func (r *orderContactResolver) Phone(ctx context.Context, obj *commerce.OrderContact) (*string, error) {
	return scalar.OrNull(obj.Phone), nil
}

func (r *orderContactResolver) Name(ctx context.Context, obj *commerce.OrderContact) (*string, error) {
	return scalar.OrNull(obj.Name), nil
}

func (r *orderEventResolver) From(ctx context.Context, obj *commerce.Event) (*commerce.Status, error) {
	return scalar.OrNull(obj.From), nil
}

func (r *orderEventResolver) To(ctx context.Context, obj *commerce.Event) (*commerce.Status, error) {
	return scalar.OrNull(obj.To), nil
}

func (r *orderEventResolver) Version(ctx context.Context, obj *commerce.Event) (*int32, error) {
	version, err := scalar.ToInt(obj.Version, nil)
	return scalar.OrNull(version), err
}

func (r *orderEventResolver) Note(ctx context.Context, obj *commerce.Event) (*string, error) {
	return scalar.OrNull(r.viewer(ctx).NoteOf(obj)), nil
}

func (r *orderEventResolver) NoteVisibility(ctx context.Context, obj *commerce.Event) (*commerce.NoteVisibility, error) {
	return scalar.OrNull(r.viewer(ctx).NoteVisibilityOf(obj)), nil
}

func (r *queryResolver) Viewer(ctx context.Context) (*access.Principal, error) {
	return new(r.principal(ctx)), nil
}

func (r *viewerResolver) Permissions(_ context.Context, obj *access.Principal) ([]access.Permission, error) {
	return r.access.Policy.Permissions(*obj), nil
}

func (r *productResolver) Available(ctx context.Context, obj *commerce.Product) (int32, error) {
	return available(loadersOf(ctx).WithStock(ctx, obj))
}

func (r *productResolver) OrderCount(ctx context.Context, obj *commerce.Product) (*int32, error) {
	return orderCount(loadersOf(ctx).WithStock(ctx, obj))
}

func (r *queryResolver) Quote(ctx context.Context, in input.QuoteInput) (*commerce.Quote, error) {
	return in.Quote(ctx, loadersOf(ctx).Quote)
}

func (r *queryResolver) OrderByTrackingNumber(ctx context.Context, trackingNumber string) (*commerce.Order, error) {
	return orderByTrackingNumber(ctx, trackingNumber)
}

func (r *queryResolver) Sales(ctx context.Context, placed commerce.DateRange, currency commerce.Currency) ([]*commerce.DailySales, error) {
	return loadersOf(ctx).Sales(ctx, placed, currency)
}
