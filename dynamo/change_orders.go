package dynamo

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/ordergraph/ordergraph/commerce"
)

func (s *Store) orderForm() form[*commerce.Order] {
	return form[*commerce.Order]{
		encode: func(o *commerce.Order) record { return orderAttributes(*o) },
		decode: s.decodeOrder,
	}
}

// PlaceOrder places an order of today's prices and reserves its stock (WP4).
//
// Errors: commerce.Refusals of NotFound, InsufficientStock, InvalidInput, TooManyLines; and those of mutate.
func (s *Store) PlaceOrder(ctx context.Context, caller Caller, cmd commerce.NewOrder) (*commerce.Order, error) {
	lines, err := commerce.Merged(cmd.Lines)
	if err != nil {
		return nil, err
	}
	if err := commerce.CheckLines(len(lines)); err != nil {
		return nil, err
	}
	return mutate(ctx, s, &writePlaceOrder, caller, cmd, s.orderForm(), func(ctx context.Context, c *change) (*commerce.Order, error) {
		ks := []keys{customerKey(&c.keyBuilder, cmd.CustomerID)}
		for _, line := range lines {
			ks = append(ks, productKey(&c.keyBuilder, line.SKU))
		}
		records, err := c.read(ctx, ks...)
		if err != nil {
			return nil, err
		}
		var customer commerce.Customer
		var refusals commerce.Refusals
		if records[0] == nil {
			refusals = append(refusals, commerce.Unknown("customer", cmd.CustomerID, "customerId"))
		} else if decoded, err := s.decodeCustomer(records[0]); err != nil {
			return nil, err
		} else {
			customer = *decoded
		}
		products := map[commerce.SKU]*commerce.Product{}
		for i, line := range lines {
			if records[i+1] != nil {
				if products[line.SKU], err = s.decodeProduct(records[i+1]); err != nil {
					return nil, err
				}
			}
		}
		at := s.now()
		id, err := s.newULID(at)
		if err != nil {
			return nil, err
		}
		order, err := cmd.Place(commerce.OrderID(id), at, customer, products)
		if several := (commerce.Refusals)(nil); errors.As(err, &several) {
			refusals, err = append(refusals, several...), nil
		}
		if err != nil {
			return nil, err
		}
		if len(refusals) > 0 {
			return nil, refusals
		}

		own, theirs := orderHeaders(&c.keyBuilder, order)
		c.create(own)
		c.create(theirs)
		if err := c.happened(order, commerce.Event{Type: commerce.EventPlaced, To: commerce.Pending}, at); err != nil {
			return nil, err
		}
		for i, line := range lines {
			stands := still(records[i+1], "name", "unitPrice", "currency")
			c.adjust(ks[i+1], map[string]int{attrAvailable: -line.Quantity}, all(stands, is(attrAvailable, ">=", num(line.Quantity))))
		}
		for _, item := range order.Items {
			c.create(lineRecord(&c.keyBuilder, order, item))
		}
		if customer.OrderCount != nil {
			c.adjust(ks[0], map[string]int{attrOrderCount: 1}, all(still(records[0], "accountRepId"), has(attrOrderCount)))
		} else {
			// Nobody has counted this customer's orders: one more would make a count of one.
			c.require(ks[0], still(records[0], "accountRepId", attrOrderCount))
		}
		return &order, nil
	})
}

// happened adds an event to the transaction.
func (c *change) happened(o commerce.Order, e commerce.Event, at time.Time) error {
	id, err := c.store.newULID(at)
	if err != nil {
		return err
	}
	e.ID, e.OrderID, e.At, e.Actor = commerce.EventID(id), o.ID, at, c.caller.Name
	c.create(eventRecord(&c.keyBuilder, e))
	return nil
}

// expect refuses a change of a record of another version than the caller expects.
func expect(what string, expected *int, current int) error {
	if expected != nil && *expected != current {
		return commerce.Conflict(what, *expected, current)
	}
	return nil
}

// order reads the order that a command names; the record is as it stands in the table. An order of another version than expected comes
// along with the refusal.
//
// Errors: commerce.NotFound, commerce.VersionConflict, ErrCorrupt, those of failed.
func (c *change) order(ctx context.Context, id commerce.OrderID, expected *int, along ...keys) (*commerce.Order, record, error) {
	records, err := c.read(ctx, append([]keys{orderKey(&c.keyBuilder, id)}, along...)...)
	if err != nil {
		return nil, nil, err
	}
	if records[0] == nil {
		return nil, nil, commerce.Unknown("order", id, "orderId")
	}
	order, err := c.store.decodeOrder(records[0])
	if err != nil {
		return nil, nil, err
	}
	return order, records[0], expect("order", expected, order.Version)
}

// allItems gives all items of an order, also of one that does not carry them.
//
// Errors: commerce.TooManyLines where there are more than a transaction could hold, ErrCorrupt, those of failed.
func (c *change) allItems(ctx context.Context, o *commerce.Order) ([]commerce.LineItem, error) {
	if o.EmbedsItems {
		return o.Items, nil
	}
	page, err := c.store.OrderItems(ctx, o.ID, Page{Limit: maxActions, More: true})
	if err != nil {
		return nil, err
	}
	if page.HasNext {
		return nil, commerce.FarTooLong(commerce.Path("orderId"), maxActions, commerce.MaxLines)
	}
	items := make([]commerce.LineItem, len(page.Items))
	for i, item := range page.Items {
		items[i] = *item
	}
	return items, nil
}

// rewrite adds both records of a changed order, and the event that tells of it. stands is the order's record as it stands in
// the table.
func (c *change) rewrite(stands record, before, after *commerce.Order, e commerce.Event) error {
	after.Version, after.UpdatedAt = before.Version+1, c.after(before.UpdatedAt)
	ownBefore, theirsBefore := orderHeaders(&c.keyBuilder, *before)
	ownAfter, theirsAfter := orderHeaders(&c.keyBuilder, *after)
	c.update(ownBefore, ownAfter, still(stands, attrVersion, "updatedAt", "status"))
	// What does not change goes to the copy as it stands: other software may tell more of an address or an item than we read.
	was := orderAttributes(*before)
	for name, v := range orderAttributes(*after) {
		if raw, ok := stands[name]; ok && sameValue(was[name], v) {
			theirsAfter[name] = raw
		}
	}
	c.mirror(theirsBefore, theirsAfter)
	return c.happened(*after, e, after.UpdatedAt)
}

// moves are the write patterns and events of the statuses that an order can move to.
var moves = map[commerce.Status]struct {
	pattern *WritePattern
	event   commerce.EventType
}{
	commerce.Confirmed: {&writeConfirmOrder, commerce.EventConfirmed},
	commerce.Shipped:   {&writeShipOrder, commerce.EventShipped},
	commerce.Delivered: {&writeDeliverOrder, commerce.EventDelivered},
	commerce.Cancelled: {&writeCancelOrder, commerce.EventCancelled},
}

// MoveOrder moves an order to another status (WP5 to WP8). Shipping takes its items from a warehouse, cancelling returns what it
// reserved.
//
// Errors: commerce.NotFound, VersionConflict (with the order as it is), InvalidTransition, Refusals of InsufficientStock; and
// those of mutate.
func (s *Store) MoveOrder(ctx context.Context, caller Caller, cmd commerce.OrderMove) (*commerce.Order, error) {
	move, ok := moves[cmd.To]
	if !ok {
		return nil, fmt.Errorf("move order %s: nothing moves to %s", cmd.OrderID, cmd.To)
	}
	return mutate(ctx, s, move.pattern, caller, cmd, s.orderForm(), func(ctx context.Context, c *change) (*commerce.Order, error) {
		before, stands, err := c.order(ctx, cmd.OrderID, cmd.ExpectedVersion)
		if err != nil {
			return before, err
		}
		after, err := before.Moved(cmd.To)
		if err != nil {
			return nil, err
		}
		event := commerce.Event{Type: move.event, From: before.Status, To: cmd.To, Note: cmd.Note}
		if err := c.rewrite(stands, before, &after, event); err != nil {
			return nil, err
		}
		if cmd.To != commerce.Shipped && cmd.To != commerce.Cancelled {
			return &after, nil
		}
		items, err := c.allItems(ctx, before)
		if err != nil {
			return nil, err
		}
		if cmd.To == commerce.Shipped {
			err = c.ship(ctx, items, cmd.WarehouseID)
		} else {
			c.release(items)
		}
		// The idempotency record comes on top.
		if len(c.writes) >= maxActions {
			return nil, commerce.TooLong(commerce.Path("orderId"), len(items), commerce.MaxLines)
		}
		return &after, err
	})
}

// ship takes items from a warehouse. What they have reserved goes with them, so that as much stays available as before.
//
// Errors: commerce.NotFound, commerce.Refusals of InsufficientStock, those of failed.
func (c *change) ship(ctx context.Context, items []commerce.LineItem, from commerce.WarehouseID) error {
	var refusals commerce.Refusals
	for _, item := range items {
		level := inventoryLevelKey(&c.keyBuilder, InventoryLevelKey{SKU: item.SKU, Warehouse: from})
		have, told := 0, c.missing(level)
		if r, ok := c.stands(level); ok {
			decoded, err := decodeInventoryLevel(r)
			if err != nil {
				return err
			}
			have, told = decoded.Quantity, true
		}
		if told && have < item.Quantity {
			refusals = append(refusals, commerce.TooFew(commerce.Path("warehouseId"), item.SKU, item.Quantity, have, " in warehouse "+string(from)))
		}
		c.adjust(level, map[string]int{attrQuantity: -item.Quantity, attrVersion: 1}, is(attrQuantity, ">=", num(item.Quantity)))
		c.count(item.SKU, attrTotalInventory, -item.Quantity)
	}
	if len(refusals) == 0 {
		return nil
	}
	warehouses, err := c.read(ctx, warehouseKey(&c.keyBuilder, from))
	if err != nil {
		return err
	}
	if warehouses[0] == nil {
		return commerce.Unknown("warehouse", from, "warehouseId")
	}
	return refusals
}

// release makes what items have reserved available again.
func (c *change) release(items []commerce.LineItem) {
	for _, item := range items {
		c.count(item.SKU, attrAvailable, item.Quantity)
	}
}

// count adds to a counter of a product, unless the product is gone or keeps no such counter: it is not read for that.
func (c *change) count(sku commerce.SKU, counter string, delta int) {
	k := productKey(&c.keyBuilder, sku)
	if r, ok := c.stands(k); c.missing(k) || ok && r[counter] == nil {
		return
	}
	c.adjust(k, map[string]int{counter: delta}, has(counter))
}

// SetOrderItem sets how many pieces of a product a pending order has (WP9), or takes the product off it (WP10).
//
// Errors: commerce.NotFound, VersionConflict (with the order as it is), InvalidInput, InsufficientStock, TooManyLines; and those
// of mutate.
func (s *Store) SetOrderItem(ctx context.Context, caller Caller, cmd commerce.OrderItemChange) (*commerce.Order, error) {
	pattern := &writeSetOrderItem
	if cmd.Quantity == 0 {
		pattern = &writeRemoveOrderItem
	}
	return mutate(ctx, s, pattern, caller, cmd, s.orderForm(), func(ctx context.Context, c *change) (*commerce.Order, error) {
		k := productKey(&c.keyBuilder, cmd.SKU)
		order, stands, err := c.order(ctx, cmd.OrderID, cmd.ExpectedVersion, k)
		if err != nil {
			return order, err
		}
		var product *commerce.Product
		record, sold := c.stands(k)
		if sold {
			if product, err = s.decodeProduct(record); err != nil {
				return nil, err
			}
		}
		items, err := c.allItems(ctx, order)
		if err != nil {
			return nil, err
		}
		before := *order
		before.Items = items
		after, by, err := before.WithItem(cmd, product)
		if err != nil {
			return nil, err
		}
		was := quantityOf(items, cmd.SKU)
		if was == cmd.Quantity {
			return order, nil
		}
		event := commerce.Event{Type: commerce.EventItemSet, Note: fmt.Sprintf("%s: %d, before: %d", cmd.SKU, cmd.Quantity, was)}
		if cmd.Quantity == 0 {
			event.Type = commerce.EventItemRemoved
		}
		if err := c.rewrite(stands, order, &after, event); err != nil {
			return nil, err
		}
		c.line(before, after, cmd.SKU)
		switch {
		case by > 0 && was == 0:
			c.adjust(k, map[string]int{attrAvailable: -by}, all(still(record, "name", "unitPrice", "currency"), is(attrAvailable, ">=", num(by))))
		case by > 0:
			c.adjust(k, map[string]int{attrAvailable: -by}, is(attrAvailable, ">=", num(by)))
		default:
			c.count(cmd.SKU, attrAvailable, -by)
		}
		return &after, nil
	})
}

func quantityOf(items []commerce.LineItem, sku commerce.SKU) int {
	for _, item := range items {
		if item.SKU == sku {
			return item.Quantity
		}
	}
	return 0
}

// line writes or deletes the record of one item of a changed order.
func (c *change) line(before, after commerce.Order, sku commerce.SKU) {
	var was, is record
	for _, item := range before.Items {
		if item.SKU == sku {
			was = lineRecord(&c.keyBuilder, before, item)
		}
	}
	for _, item := range after.Items {
		if item.SKU == sku {
			is = lineRecord(&c.keyBuilder, after, item)
		}
	}
	if is == nil {
		c.remove(was, nil)
		return
	}
	c.mirror(was, is)
}

// UpdateShippingAddress changes where an order goes that has not been shipped (WP11).
//
// Errors: commerce.NotFound, VersionConflict (with the order as it is), InvalidInput; and those of mutate.
func (s *Store) UpdateShippingAddress(ctx context.Context, caller Caller, cmd commerce.ShippingAddressChange) (*commerce.Order, error) {
	return mutate(ctx, s, &writeUpdateShippingAddress, caller, cmd, s.orderForm(), func(ctx context.Context, c *change) (*commerce.Order, error) {
		before, stands, err := c.order(ctx, cmd.OrderID, cmd.ExpectedVersion)
		if err != nil {
			return before, err
		}
		if err := before.CanGoElsewhere(); err != nil {
			return nil, err
		}
		if reflect.DeepEqual(before.ShippingAddress, &cmd.ShippingAddress) {
			return before, nil
		}
		after := *before
		after.ShippingAddress = &cmd.ShippingAddress
		err = c.rewrite(stands, before, &after, commerce.Event{Type: commerce.EventShippingAddressChanged})
		return &after, err
	})
}
