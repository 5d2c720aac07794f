package change

import (
	"context"
	"fmt"
	"slices"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// PlaceOrder creates an order at the current prices and reserves the stock of its products.
//
// Errors: commerce.UserErrors (NotFound, InsufficientStock, InvalidInput, TooManyLines,
// PriceChanged), and errors from mutate.
func (m Mutations) PlaceOrder(ctx context.Context, caller Caller, cmd commerce.OrderRequest) (*commerce.Order, error) {
	lines, err := commerce.MergeLines(cmd.Lines)
	if err != nil {
		return nil, err
	}
	return mutate(ctx, m.table, &model.WritePlaceOrder, caller, cmd, m.table.DecodeOrder, func(ctx context.Context, c *change) (*commerce.Order, error) {
		ks := []model.Keys{model.CustomerByID.Key(&c.KeyBuilder, cmd.CustomerID)}
		c.hideIfForbidden(cmd.CustomerID, ks[0])
		for _, line := range lines {
			ks = append(ks, model.ProductBySKU.Key(&c.KeyBuilder, line.SKU))
		}
		records, err := c.read(ctx, ks...)
		if err != nil {
			return nil, err
		}
		var customer commerce.Customer
		var refusals commerce.UserErrors
		if records[0] == nil {
			refusals = append(refusals, commerce.NewNotFound("customer", cmd.CustomerID, "customerId"))
		} else if decoded, err := m.table.DecodeCustomer(model.Reader{Record: records[0]}); err != nil {
			return nil, err
		} else {
			customer = *decoded
		}
		products := map[commerce.SKU]*commerce.Product{}
		for i, line := range lines {
			if records[i+1] != nil {
				// Place rejects a malformed product.
				products[line.SKU], _ = m.table.DecodeProduct(model.Reader{Record: records[i+1]})
			}
		}
		lastEvent, err := c.lastEventTime(ctx, cmd.CustomerID)
		if err != nil {
			return nil, err
		}
		at := c.table.TimeAfter(lastEvent)
		id, err := m.table.NewULID(at)
		if err != nil {
			return nil, err
		}
		order, err := cmd.Place(commerce.OrderID(id), at, customer, products)
		if refusals = append(refusals, commerce.UserErrorsOf(err)...); len(refusals) > 0 {
			return nil, refusals
		}
		if err != nil {
			return nil, err
		}
		c.limits = m.limits
		more := commerce.Reservation{OpenOrders: 1, Units: sumOfQuantities(lines)}
		if err := c.checkReservation(cmd.CustomerID, more, "items"); err != nil {
			return nil, err
		}

		own, theirs := orderAndCopy(&c.KeyBuilder, &order)
		c.create(own)
		c.create(theirs)
		c.updateStatusCounts(order.ID, 0, commerce.Pending)
		nothing := order
		nothing.Status = commerce.Cancelled
		if err := c.addSpending(nothing, order); err != nil {
			return nil, err
		}
		if order.AccountRepID != "" {
			record := model.RepOrderCountRecord(&c.KeyBuilder, commerce.RepOrderCount{EmployeeID: order.AccountRepID, Part: model.RepOrderCountPart(order.ID)})
			c.addToCounters(record, model.Record{model.AttrOrders: model.Num(1)}, nil, model.AttrEmployeeID, model.AttrPart)
		}
		if err := c.addEvent(order, commerce.Event{Type: commerce.EventPlaced, To: commerce.Pending}, at, customer.OrderCount != nil && *customer.OrderCount == 0, more); err != nil {
			return nil, err
		}
		reserved := make([]counterAdjustment, len(lines))
		for i, line := range lines {
			stands := table.AttributesUnchanged(records[i+1], "name", "unitPrice", "currency")
			reserved[i] = counterAdjustment{ks[i+1], map[string]int{model.AttrAvailable: -line.Quantity}, table.AllOf(stands, table.CompareAttribute(model.AttrAvailable, ">=", model.Num(line.Quantity)))}
			reserved[i].adjustOrderCount(records[i+1], 1)
		}
		if err := c.adjustCounters(ctx, reserved...); err != nil {
			return nil, err
		}
		for _, item := range order.Items {
			c.create(model.OrderItemRecord(&c.KeyBuilder, order, item))
		}
		if table.RecordHasNumber(records[0], model.AttrOrderCount) {
			one := map[string]int{model.AttrOrderCount: 1}
			return &order, c.adjustCounters(ctx, counterAdjustment{ks[0], one, table.AllOf(table.AttributesUnchanged(records[0], "accountRepId"), table.AttributeIsNumber(model.AttrOrderCount))})
		}
		// The customer's record has no order count. Do not add one, because it would omit the customer's
		// earlier orders.
		c.addConditionCheck(ks[0], table.AttributesUnchanged(records[0], "accountRepId", model.AttrOrderCount))
		return &order, nil
	})
}

// updateStatusCounts updates the order counts by status when an order changes its status. If the
// order is new, from is 0.
func (c *change) updateStatusCounts(id commerce.OrderID, from, to commerce.Status) {
	deltas := model.Record{to.String(): model.Num(1)}
	if from != 0 {
		deltas[from.String()] = model.Num(-1)
	}
	record := model.OrderCountsRecord(&c.KeyBuilder, commerce.OrderCounts{Part: model.OrderCountPart(id)})
	// A new record lacks earlier orders, so it does not have the attribute "complete".
	c.addToCounters(record, deltas, nil, model.AttrPart)
}

// addSpending adds the difference between an order's totals before and after a change to the
// spending of the order's customer.
func (c *change) addSpending(before, after commerce.Order) error {
	more, err := after.Spending().Minus(before.Spending())
	if err != nil {
		return err
	}
	deltas := model.Record{model.AttrSpent: model.AmountValue(more.Total), model.AttrOrders: model.Num(more.Orders)}
	// The record may lack earlier orders. In this case, the customer's attribute "spendingComplete" is
	// not set.
	c.addToCounters(model.SpendingRecord(&c.KeyBuilder, more), deltas, nil, model.AttrCustomerID, "month", "currency")
	return nil
}

// checkVersion returns a VersionConflict if current differs from expected, the version that the
// client expects. If expected is nil, every version is accepted.
func checkVersion(kind string, expected *int, current int) error {
	if expected != nil && *expected != current {
		return commerce.NewVersionConflict(kind, *expected, current)
	}
	return nil
}

// readOrder reads the order that a mutation changes. If the order does not have the expected
// version, it returns the order and a VersionConflict. It also reads the records with the keys in
// more, and stores them in c.known.
//
// Errors: commerce.NotFound, commerce.VersionConflict, model.ErrCorrupt, errors from
// table.WrapError.
func (c *change) readOrder(ctx context.Context, id commerce.OrderID, expected *int, more ...model.Keys) (*commerce.Order, model.Record, error) {
	own, err := c.canAccessOrder(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	if !own {
		return nil, nil, commerce.NewNotFound("order", id, "orderId")
	}
	order, current, err := readRecordToChange(ctx, c, c.table.DecodeOrder, "order", id, "orderId", append([]model.Keys{model.OrderByID.Key(&c.KeyBuilder, id)}, more...)...)
	if err != nil {
		return nil, nil, err
	}
	// Other software may have assigned the order to another customer, but kept the copy in the first
	// customer's partition. Then canAccessOrder finds the copy, although the caller may not access the
	// order.
	if !c.caller.canAccess(order.CustomerID) {
		return nil, nil, commerce.NewNotFound("order", id, "orderId")
	}
	return order, current, checkVersion("order", expected, order.Version)
}

// allItems returns all line items of an order.
//
// Errors: commerce.TooManyLines if the line items do not fit into a transaction, model.ErrCorrupt,
// errors from table.WrapError.
func (c *change) allItems(ctx context.Context, o *commerce.Order) ([]commerce.LineItem, error) {
	if o.EmbedsItems {
		return o.Items, nil
	}
	p := &model.OrderItems.AccessPattern
	partition, err := p.PK.Build(string(o.ID))
	if err != nil {
		return nil, err
	}
	records, _, err := c.table.QueryUpTo(ctx, p, partition, string(p.SK), model.Range{}, table.MaxTransactionActions+1, true)
	if err != nil {
		return nil, err
	}
	items := make([]commerce.LineItem, len(records))
	for i, r := range records {
		item, err := c.table.DecodeOrderItem(r)
		if err != nil {
			return nil, err
		}
		items[i] = *item
	}
	if len(items) > table.MaxTransactionActions {
		return nil, commerce.NewTooManyLinesOver(commerce.FieldPath("orderId"), table.MaxTransactionActions, commerce.MaxLines)
	}
	return items, nil
}

// orderAndCopy returns an order's own record and its copy in the customer's partition. The two
// records differ only in their keys and in the attribute "entity".
func orderAndCopy(b *model.KeyBuilder, o *commerce.Order) (own, copied model.Record) {
	records := model.EncodeWithEdges(b, o)
	return records[0], records[1]
}

// updateOrder adds the writes for a changed order to the transaction: the order's own record, its
// copy in the customer's partition, and the event. current is the order's own record in the table.
// more is the change of what the customer's open orders reserve.
func (c *change) updateOrder(ctx context.Context, current model.Record, before, after *commerce.Order, e commerce.Event, more commerce.Reservation) error {
	lastEvent, err := c.lastEventTime(ctx, before.CustomerID)
	if err != nil {
		return err
	}
	after.Version, after.UpdatedAt = before.Version+1, c.table.TimeAfter(before.UpdatedAt, lastEvent)
	var when table.Condition
	if rep := current["accountRepId"]; rep == nil || model.EqualsText(rep, "") {
		after.AccountRepID, when = c.accountRepOfCopy(*before)
	}
	ownBefore, copyBefore := orderAndCopy(c.oldKeyBuilder(), before)
	ownAfter, copyAfter := orderAndCopy(&c.KeyBuilder, after)
	c.update(ownBefore, ownAfter, table.AttributesUnchanged(current, model.AttrVersion, "updatedAt", "status"))
	copyAfter.Merge(c.unchangedAttributes(current, model.EncodeAttributes(before), model.EncodeAttributes(after)))
	var optional []string
	for _, a := range model.AttributesOf(&model.EntityOrder) {
		if a.Optional {
			optional = append(optional, a.Name)
		}
	}
	if copyAfter["accountRepId"] == nil {
		// The order has no account rep, so remove the index keys of its copy. If the account rep could
		// not be decoded, copyAfter would contain it, and the index keys would stay.
		optional = append(optional, model.AttrIndexPK, model.AttrIndexSK)
	}
	c.writeCopy(copyBefore, copyAfter, when, optional...)
	return c.addEvent(*after, e, after.UpdatedAt, false, more)
}

// accountRepOfCopy returns the account rep from the index key of an order's copy. If c.known does
// not contain the copy, it returns no account rep. The second result is the condition that the copy
// still has this account rep.
func (c *change) accountRepOfCopy(o commerce.Order) (commerce.EmployeeID, table.Condition) {
	copied, found := c.knownRecord(model.KeysOfCustomerOrder(c.oldKeyBuilder(), model.CustomerOrderKey{Customer: o.CustomerID, Order: o.ID}))
	if !found {
		// Assume that the copy has no account rep. If the condition fails, DynamoDB returns the copy for
		// the next attempt.
		return "", table.AnyOf(table.AttributeExists("entity"), table.AttributeNotExists(model.AttrIndexPK))
	}
	return commerce.EmployeeID(model.IndexValueOf(&model.EntityCustomerOrder, copied)), table.AttributesUnchanged(copied, "entity", model.AttrIndexPK)
}

// writePatternForStatus returns the write pattern and the event type of the mutation that sets the
// given status. If no mutation sets this status, it returns nil.
func writePatternForStatus(to commerce.Status) (*model.WritePattern, commerce.EventType) {
	switch to {
	case commerce.Confirmed:
		return &model.WriteConfirmOrder, commerce.EventConfirmed
	case commerce.Shipped:
		return &model.WriteShipOrder, commerce.EventShipped
	case commerce.Delivered:
		return &model.WriteDeliverOrder, commerce.EventDelivered
	case commerce.Cancelled:
		return &model.WriteCancelOrder, commerce.EventCancelled
	default:
		return nil, ""
	}
}

// ChangeOrderStatus changes the status of an order. Shipping and cancelling also change the stock.
//
// Errors: commerce.NotFound, commerce.VersionConflict (with the current order),
// commerce.InvalidTransition, commerce.AddressMissing, commerce.TooManyLines, commerce.UserErrors
// (InsufficientStock), and errors from mutate.
func (m Mutations) ChangeOrderStatus(ctx context.Context, caller Caller, cmd commerce.OrderStatusChange) (*commerce.Order, error) {
	pattern, event := writePatternForStatus(cmd.To)
	if pattern == nil {
		return nil, fmt.Errorf("change the status of order %s: no mutation sets the status %s", cmd.OrderID, cmd.To)
	}
	return mutate(ctx, m.table, pattern, caller, cmd, m.table.DecodeOrder, func(ctx context.Context, c *change) (*commerce.Order, error) {
		before, current, err := c.readOrder(ctx, cmd.OrderID, cmd.ExpectedVersion)
		if err != nil {
			return before, err
		}
		after, err := before.WithStatus(cmd)
		if err != nil {
			return nil, err
		}
		e := commerce.Event{Type: event, From: before.Status, To: cmd.To, Note: cmd.Note, WarehouseID: cmd.WarehouseID}
		if e.Note != "" {
			e.NoteCustomerID = caller.Customer
		}
		var items []commerce.LineItem
		var pieces []commerce.OrderLine
		var more commerce.Reservation
		if cmd.To == commerce.Shipped || cmd.To == commerce.Cancelled {
			if items, err = c.allItems(ctx, before); err != nil {
				return nil, err
			}
			if pieces, err = quantitiesByProduct(items); err != nil {
				return nil, err
			}
			more = commerce.Reservation{OpenOrders: -1, Units: -sumOfQuantities(pieces)}
		}
		if err := c.updateOrder(ctx, current, before, &after, e, more); err != nil {
			return nil, err
		}
		c.updateStatusCounts(before.ID, before.Status, cmd.To)
		if cmd.To == commerce.Cancelled {
			if err := c.addSpending(*before, after); err != nil {
				return nil, err
			}
		}
		if cmd.To != commerce.Shipped && cmd.To != commerce.Cancelled {
			return &after, nil
		}
		if negative := slices.IndexFunc(items, func(i commerce.LineItem) bool { return i.UnitPrice.Amount.IsNeg() }); negative >= 0 && cmd.To == commerce.Shipped {
			return nil, fmt.Errorf("%w: line item %s of order %s has a negative price", model.ErrCorrupt, items[negative].SKU, before.ID)
		}
		if cmd.To == commerce.Shipped {
			err = c.removeShippedStock(ctx, pieces, cmd.WarehouseID)
		} else {
			err = c.releaseStock(ctx, pieces)
		}
		if err != nil {
			return nil, err
		}
		// Keep one action of the transaction free for the idempotency record.
		if len(c.writes) >= table.MaxTransactionActions {
			return nil, commerce.NewTooManyLines(commerce.FieldPath("orderId"), len(items), commerce.MaxLines)
		}
		return &after, nil
	})
}

// sumOfQuantities returns the number of units in lines.
func sumOfQuantities(lines []commerce.OrderLine) int {
	sum := 0
	for _, line := range lines {
		sum += line.Quantity
	}
	return sum
}

// quantitiesByProduct returns the total quantity of each product, because a transaction can write a
// product's record only once.
//
// Errors: model.ErrCorrupt if a quantity is less than 1.
func quantitiesByProduct(items []commerce.LineItem) ([]commerce.OrderLine, error) {
	at := make(map[commerce.SKU]int, len(items))
	var pieces []commerce.OrderLine
	for _, item := range items {
		if item.Quantity < 1 {
			return nil, fmt.Errorf("%w: line item %s of order %s has the quantity %d, but the minimum is 1", model.ErrCorrupt, item.SKU, item.OrderID, item.Quantity)
		}
		i, ok := at[item.SKU]
		if !ok {
			at[item.SKU] = len(pieces)
			pieces = append(pieces, commerce.OrderLine{SKU: item.SKU, Quantity: item.Quantity})
			continue
		}
		pieces[i].Quantity += item.Quantity
	}
	return pieces, nil
}

// removeShippedStock removes shipped items from a warehouse's stock. The available stock stays
// unchanged, because placing the order already reduced it.
//
// Errors: commerce.NotFound, commerce.UserErrors (InsufficientStock), errors from table.WrapError.
func (c *change) removeShippedStock(ctx context.Context, items []commerce.OrderLine, from commerce.WarehouseID) error {
	levels, taken := make([]model.Keys, len(items)), make([]counterAdjustment, 0, 2*len(items))
	for i, item := range items {
		levels[i] = model.KeysOfInventoryLevel(&c.KeyBuilder, model.InventoryLevelKey{SKU: item.SKU, Warehouse: from})
		taken = append(taken, counterAdjustment{levels[i], map[string]int{model.AttrQuantity: -item.Quantity, model.AttrVersion: 1}, table.CompareAttribute(model.AttrQuantity, ">=", model.Num(item.Quantity))})
		taken = c.appendCounterAdjustment(taken, item.SKU, model.AttrTotalInventory, -item.Quantity)
	}
	if err := c.adjustCounters(ctx, taken...); err != nil {
		return err
	}
	var refusals commerce.UserErrors
	for i, item := range items {
		have, known := 0, c.knownMissing(levels[i])
		if r, ok := c.knownRecord(levels[i]); ok {
			decoded, err := model.DecodeInventoryLevel(model.Reader{Record: r})
			if err != nil {
				return err
			}
			have, known = decoded.Quantity, true
		}
		if known && have < item.Quantity {
			refusals = append(refusals, commerce.NewInsufficientStock(commerce.FieldPath("warehouseId"), item.SKU, item.Quantity, have, " in warehouse "+string(from)))
		}
	}
	if len(refusals) == 0 {
		return nil
	}
	warehouses, err := c.read(ctx, model.WarehouseByID.Key(&c.KeyBuilder, from))
	if err != nil {
		return err
	}
	if warehouses[0] == nil {
		return commerce.NewNotFound("warehouse", from, "warehouseId")
	}
	return refusals
}

// releaseStock makes the reserved stock of items available again.
//
// It returns errors from adjustCounters.
func (c *change) releaseStock(ctx context.Context, items []commerce.OrderLine) error {
	var released []counterAdjustment
	for _, item := range items {
		released = c.appendCounterAdjustment(released, item.SKU, model.AttrAvailable, item.Quantity)
	}
	return c.adjustCounters(ctx, released...)
}

// appendCounterAdjustment appends an update that adds delta to a product's counter. If c.known
// shows that the product or its counter is missing, it adds a condition instead. The condition is
// that the product or counter is still missing at the commit.
func (c *change) appendCounterAdjustment(to []counterAdjustment, sku commerce.SKU, counter string, delta int) []counterAdjustment {
	k := model.ProductBySKU.Key(&c.KeyBuilder, sku)
	switch r, ok := c.knownRecord(k); {
	case c.knownMissing(k):
		c.addConditionCheck(k, table.RecordNotExists)
		return to
	case ok && !table.RecordHasNumber(r, counter):
		return append(to, counterAdjustment{k, map[string]int{}, table.AttributesUnchanged(r, counter)})
	default:
		return append(to, counterAdjustment{k, map[string]int{counter: delta}, table.AttributeIsNumber(counter)})
	}
}

// adjustOrderCount makes the update of a product also add delta to the order count. If current, the
// product's record, has no order count, the update adds none. At the commit, the count must then
// still be missing.
func (a *counterAdjustment) adjustOrderCount(current model.Record, delta int) {
	unchanged := table.AttributesUnchanged(current, model.AttrOrderCount)
	if table.RecordHasNumber(current, model.AttrOrderCount) {
		a.deltas[model.AttrOrderCount] = delta
		unchanged = table.AttributeIsNumber(model.AttrOrderCount)
	}
	a.when = table.AllOf(a.when, unchanged)
}

// SetOrderItem sets the quantity of a product in a pending order. The quantity 0 removes the line
// item.
//
// Errors: commerce.NotFound, commerce.VersionConflict (with the current order),
// commerce.InvalidTransition, commerce.InvalidInput, commerce.InsufficientStock,
// commerce.PriceChanged, commerce.TooManyLines, and errors from mutate.
func (m Mutations) SetOrderItem(ctx context.Context, caller Caller, cmd commerce.OrderItemChange) (*commerce.Order, error) {
	pattern := &model.WriteSetOrderItem
	if cmd.Quantity == 0 {
		pattern = &model.WriteRemoveOrderItem
	}
	return mutate(ctx, m.table, pattern, caller, cmd, m.table.DecodeOrder, func(ctx context.Context, c *change) (*commerce.Order, error) {
		k := model.ProductBySKU.Key(&c.KeyBuilder, cmd.SKU)
		order, current, err := c.readOrder(ctx, cmd.OrderID, cmd.ExpectedVersion, k)
		if err != nil {
			return order, err
		}
		var product *commerce.Product
		record, sold := c.knownRecord(k)
		if sold {
			product, _ = m.table.DecodeProduct(model.Reader{Record: record}) // WithItem rejects a malformed product
		}
		items, err := c.allItems(ctx, order)
		if err != nil {
			return nil, err
		}
		if pieces, err := quantitiesByProduct(items); err != nil {
			return nil, err
		} else if len(pieces) < len(items) {
			return nil, fmt.Errorf("%w: order %s has several line items for the same product", model.ErrCorrupt, order.ID)
		}
		before := *order
		before.Items = items
		after, delta, err := before.WithItem(cmd, product)
		if err != nil {
			return nil, err
		}
		if m.table.UnreadableAttributes(&model.EntityOrder, current)["items"] != "" {
			after.EmbedsItems = false // the embedded list of line items cannot be decoded, so do not replace it
		}
		oldQuantity := cmd.Quantity - delta
		if delta == 0 {
			return order, nil
		}
		event := commerce.Event{Type: commerce.EventItemSet, Note: fmt.Sprintf("%s: %d, before: %d", cmd.SKU, cmd.Quantity, oldQuantity)}
		if cmd.Quantity == 0 {
			event.Type = commerce.EventItemRemoved
		}
		more := commerce.Reservation{Units: delta}
		c.limits = m.limits
		if err := c.checkReservation(order.CustomerID, more, "quantity"); err != nil {
			return nil, err
		}
		if err := c.updateOrder(ctx, current, order, &after, event, more); err != nil {
			return nil, err
		}
		if err := c.addSpending(*order, after); err != nil {
			return nil, err
		}
		if order.EmbedsItems && !after.EmbedsItems {
			// The order's record no longer embeds its line items, so each line item needs its own record. If
			// other software wrote the order, these records may be missing, so write them.
			for _, item := range after.Items {
				if item.SKU != cmd.SKU {
					c.updateItemRecord(before, after, item.SKU)
				}
			}
		}
		c.updateItemRecord(before, after, cmd.SKU)
		var held []counterAdjustment
		switch {
		case delta > 0:
			enough := table.CompareAttribute(model.AttrAvailable, ">=", model.Num(delta))
			held = []counterAdjustment{{k, map[string]int{model.AttrAvailable: -delta}, table.AllOf(table.AttributesUnchanged(record, "name", "unitPrice", "currency"), enough)}}
			if oldQuantity == 0 {
				held[0].adjustOrderCount(record, 1)
			}
		default:
			held = c.appendCounterAdjustment(nil, cmd.SKU, model.AttrAvailable, -delta)
			if cmd.Quantity == 0 && len(held) > 0 {
				held[0].adjustOrderCount(record, -1)
			}
		}
		if err := c.adjustCounters(ctx, held...); err != nil {
			return nil, err
		}
		if len(c.writes) > table.MaxTransactionActions {
			return nil, commerce.NewTooManyLines(commerce.FieldPath("orderId"), len(items), commerce.MaxLines)
		}
		return &after, nil
	})
}

// updateItemRecord writes the record of the line item with the given product. If the order after
// the change does not contain this line item, updateItemRecord deletes the record.
func (c *change) updateItemRecord(before, after commerce.Order, sku commerce.SKU) {
	var oldRecord, newRecord model.Record
	for _, item := range before.Items {
		if item.SKU == sku {
			oldRecord = model.OrderItemRecord(c.oldKeyBuilder(), before, item)
		}
	}
	for _, item := range after.Items {
		if item.SKU == sku {
			newRecord = model.OrderItemRecord(&c.KeyBuilder, after, item)
		}
	}
	if newRecord == nil {
		c.remove(oldRecord, nil)
		return
	}
	c.writeCopy(oldRecord, newRecord, nil)
}

// UpdateShippingAddress changes the shipping address of an order that has not been shipped.
//
// Errors: commerce.NotFound, commerce.VersionConflict (with the current order),
// commerce.InvalidTransition, and errors from mutate.
func (m Mutations) UpdateShippingAddress(ctx context.Context, caller Caller, cmd commerce.ShippingAddressChange) (*commerce.Order, error) {
	return mutate(ctx, m.table, &model.WriteUpdateShippingAddress, caller, cmd, m.table.DecodeOrder, func(ctx context.Context, c *change) (*commerce.Order, error) {
		before, current, err := c.readOrder(ctx, cmd.OrderID, cmd.ExpectedVersion)
		if err != nil {
			return before, err
		}
		if err := before.CheckAddressChange(); err != nil {
			return nil, err
		}
		after := *before
		after.ShippingAddress = &cmd.ShippingAddress
		if model.EqualRecords(model.EncodeAttributes(before), model.EncodeAttributes(&after)) {
			return before, nil
		}
		err = c.updateOrder(ctx, current, before, &after, commerce.Event{Type: commerce.EventShippingAddressChanged}, commerce.Reservation{})
		return &after, err
	})
}
