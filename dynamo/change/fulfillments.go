package change

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/derive"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// CreateFulfillment ships pieces of a confirmed order from one warehouse. If no piece is open any more, the
// order is shipped.
//
// Errors: commerce.NotFound, commerce.VersionConflict, commerce.InvalidTransition, commerce.AddressMissing,
// commerce.InvalidInput, commerce.TooManyLines, commerce.UserErrors (InsufficientStock),
// model.DerivationUnavailable, and errors from mutate.
func (m Mutations) CreateFulfillment(ctx context.Context, caller Caller, cmd commerce.FulfillmentRequest) (*commerce.Fulfillment, error) {
	return mutate(ctx, m.table, &model.WriteCreateFulfillment, caller, cmd, m.table.DecodeFulfillment, func(ctx context.Context, c *change) (*commerce.Fulfillment, error) {
		if err := c.Derivations.CheckReadable(model.OrderFulfillments); err != nil {
			return nil, err
		}
		order, current, err := c.readOrder(ctx, cmd.OrderID, cmd.ExpectedVersion)
		if err != nil {
			return nil, err
		}
		items, err := c.allItems(ctx, order)
		if err != nil {
			return nil, err
		}
		ordered, err := quantitiesByProduct(items)
		if err != nil {
			return nil, err
		}
		id, err := c.table.NewULID(c.table.TimeAfter(order.UpdatedAt))
		if err != nil {
			return nil, err
		}
		f := &commerce.Fulfillment{ID: commerce.FulfillmentID(id), OrderID: order.ID, WarehouseID: cmd.WarehouseID, Carrier: cmd.Carrier, TrackingNumber: cmd.TrackingNumber, TrackingURL: cmd.TrackingURL, Status: commerce.FulfillmentShipped, Actor: caller.Name}
		after, lines, err := order.WithFulfillment(cmd, ordered)
		if err != nil {
			return nil, err
		}
		f.Lines = lines
		e := commerce.Event{Type: commerce.EventFulfillmentCreated, WarehouseID: f.WarehouseID}
		if f.CreatedAt, err = c.updateFulfillment(ctx, current, order, &after, items, derive.Change{After: f}, e); err != nil {
			return nil, err
		}
		f.UpdatedAt = f.CreatedAt
		c.createWithCopies(f)
		// Keep one action of the transaction free for the idempotency record.
		if excess := len(c.writes) + 1 - table.MaxTransactionActions; excess > 0 {
			return nil, commerce.NewTooManyParcelLines(commerce.FieldPath("lines"), len(lines), len(lines)-(excess+1)/2)
		}
		return f, nil
	})
}

// UpdateTracking changes how a parcel is tracked. The fulfillment can have any status.
//
// Errors: commerce.NotFound, commerce.VersionConflict, and errors from mutate.
func (m Mutations) UpdateTracking(ctx context.Context, caller Caller, cmd commerce.FulfillmentChange) (*commerce.Fulfillment, error) {
	return changeFulfillment(ctx, m, &model.WriteUpdateTracking, caller, cmd, cmd.OrderID, cmd.FulfillmentID, cmd.ExpectedVersion, commerce.EventTrackingUpdated,
		func(_ *commerce.Order, f commerce.Fulfillment) (commerce.Fulfillment, error) {
			cmd.Apply(&f)
			return f, nil
		})
}

// ChangeFulfillmentStatus records that a parcel has arrived, or cancels it. The pieces of a cancelled parcel
// return to the stock of the warehouse. If no parcel of a shipped order is under way any more, the order is
// delivered.
//
// Errors: commerce.NotFound, commerce.VersionConflict, commerce.InvalidTransition, commerce.InvalidInput, and
// errors from mutate.
func (m Mutations) ChangeFulfillmentStatus(ctx context.Context, caller Caller, cmd commerce.FulfillmentStatusChange) (*commerce.Fulfillment, error) {
	pattern, event := &model.WriteDeliverFulfillment, commerce.EventFulfillmentDelivered
	if cmd.To == commerce.FulfillmentCancelled {
		pattern, event = &model.WriteCancelFulfillment, commerce.EventFulfillmentCancelled
	}
	return changeFulfillment(ctx, m, pattern, caller, cmd, cmd.OrderID, cmd.FulfillmentID, cmd.ExpectedVersion, event,
		func(o *commerce.Order, f commerce.Fulfillment) (commerce.Fulfillment, error) {
			// An order never returns to an earlier status (docs/adr/0029-lifecycle-order.md).
			if cmd.To == commerce.FulfillmentCancelled && o.Status != commerce.Confirmed {
				return f, commerce.NewLateEdit(o.Status, "fulfillments", commerce.Confirmed)
			}
			return f.WithStatus(cmd.To)
		})
}

// changeFulfillment executes a mutation that changes a fulfillment as the function with says.
func changeFulfillment[C any](ctx context.Context, m Mutations, pattern *model.WritePattern, caller Caller, cmd C, id commerce.OrderID, fulfillment commerce.FulfillmentID, version *int, event commerce.EventType, with func(*commerce.Order, commerce.Fulfillment) (commerce.Fulfillment, error)) (*commerce.Fulfillment, error) {
	return mutate(ctx, m.table, pattern, caller, cmd, m.table.DecodeFulfillment, func(ctx context.Context, c *change) (*commerce.Fulfillment, error) {
		k := model.KeysOfFulfillment(&c.KeyBuilder, model.FulfillmentKey{Order: id, ID: fulfillment})
		order, current, conflict := c.readOrder(ctx, id, version, k)
		if conflict != nil && !isConflict(conflict) {
			return nil, conflict
		}
		record, exists := c.knownRecord(k)
		if !exists {
			return nil, cmp.Or(conflict, error(commerce.NewNotFound("fulfillment", fulfillment, "fulfillmentId")))
		}
		before, err := c.table.DecodeFulfillment(model.Reader{Record: record})
		if err != nil || conflict != nil {
			return before, cmp.Or(err, conflict)
		}
		f, err := with(order, *before)
		if err != nil {
			return nil, err
		}
		if model.EqualRecords(model.EncodeAttributes(before), model.EncodeAttributes(&f)) {
			return before, nil
		}
		after := *order
		f.UpdatedAt, err = c.updateFulfillment(ctx, current, order, &after, nil, derive.Change{Before: before, After: &f}, commerce.Event{Type: event})
		c.updateWithEdges(&c.KeyBuilder, record, before, &f, "status")
		return &f, err
	})
}

// updateFulfillment adds the writes that follow from the change of a fulfillment: the stock of its products,
// the order and the event. before and after are the order, and items are all its line items. after.Status can
// differ only if items is complete. updateFulfillment returns the time of the change.
//
// Errors: commerce.NotFound, commerce.UserErrors (InsufficientStock), commerce.InvalidInput, model.ErrCorrupt,
// errors from table.WrapError.
func (c *change) updateFulfillment(ctx context.Context, current model.Record, before, after *commerce.Order, items []commerce.LineItem, fulfillment derive.Change, e commerce.Event) (at time.Time, err error) {
	f := fulfillment.After.(*commerce.Fulfillment)
	was, existed := fulfillment.Before.(*commerce.Fulfillment)
	isCancelled := existed && f.Status == commerce.FulfillmentCancelled && was.Status != f.Status
	after.Fulfilled = derive.FulfillmentTotals(before.Fulfilled, fulfillment)
	if after.Status == commerce.Shipped && f.Status == commerce.FulfillmentDelivered && (after.Fulfilled == nil || after.Fulfilled.Undelivered == 0) {
		after.Status = commerce.Delivered
	}
	if after.Status != before.Status {
		e.From, e.To = before.Status, after.Status
	}
	e.Note, e.NoteCustomerID = fmt.Sprintf("%s: %d", f.ID, f.Pieces()), before.CustomerID
	orderBefore, orderAfter := *before, *after
	orderBefore.Items, orderAfter.Items = items, items
	changes := []derive.Change{{Before: &orderBefore, After: &orderAfter}}
	for _, line := range f.Lines {
		empty := commerce.InventoryLevel{SKU: line.SKU, WarehouseID: f.WarehouseID}
		full := empty
		full.Quantity = line.Quantity
		switch {
		case !existed:
			changes = append(changes, derive.Change{Before: &full, After: &empty})
		case isCancelled:
			changes = append(changes, derive.Change{Before: &empty, After: &full})
		}
	}
	deltas, err := derive.Deltas(c.Layout, changes...)
	if err != nil {
		return at, err
	}
	if err := c.updateOrder(ctx, current, before, after, e, deltas); err != nil {
		return at, err
	}
	switch {
	case !existed:
		err = c.removeShippedStock(ctx, f.Lines, f.WarehouseID)
	case isCancelled:
		err = c.returnStock(ctx, f.Lines, f.WarehouseID)
	}
	if err != nil {
		return at, err
	}
	return after.UpdatedAt, c.addDerived(ctx, deltas)
}

// returnStock returns the pieces of a cancelled parcel to a warehouse's stock.
//
// Errors: commerce.InvalidInput, errors from table.WrapError.
func (c *change) returnStock(ctx context.Context, lines []commerce.FulfillmentLine, to commerce.WarehouseID) error {
	returned := make([]counterAdjustment, len(lines))
	for i, line := range lines {
		most := commerce.MaxInventoryLevel - line.Quantity
		k := model.KeysOfInventoryLevel(&c.KeyBuilder, model.InventoryLevelKey{SKU: line.SKU, Warehouse: to})
		level, _ := c.knownRecord(k)
		if at := (model.Reader{Record: level}); c.knownMissing(k) || at.Number(model.AttrQuantity) > most {
			return commerce.NewInvalidInput(commerce.FieldPath("fulfillmentId"), "names a fulfillment whose warehouse %s cannot take back product %s: set its stock there first", to, line.SKU)
		}
		returned[i] = counterAdjustment{k, map[string]int{model.AttrQuantity: line.Quantity, model.AttrVersion: 1}, table.CompareAttribute(model.AttrQuantity, "<=", model.Num(most))}
	}
	return c.adjustCounters(ctx, returned...)
}
