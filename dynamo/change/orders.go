package change

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/derive"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// PlaceOrder creates an order at the current prices and reserves the stock of its products.
//
// Errors: commerce.UserErrors (NotFound, InsufficientStock, InvalidInput, TooManyLines,
// PriceChanged), model.DerivationUnavailable, and errors from mutate.
func (m Mutations) PlaceOrder(ctx context.Context, caller Caller, cmd commerce.OrderRequest) (*commerce.Order, error) {
	lines, err := commerce.MergeLines(cmd.Lines)
	if err != nil {
		return nil, err
	}
	return mutate(ctx, m.table, &model.WritePlaceOrder, caller, cmd, m.table.DecodeOrder, func(ctx context.Context, c *change) (*commerce.Order, error) {
		if len(cmd.Adjustments) > 0 {
			if err := c.Derivations.CheckReadable(model.OrderAdjustments); err != nil {
				return nil, err
			}
		}
		guest := cmd.CustomerID.IsGuest() && caller.scope().All()
		if err := c.Derivations.CheckReadable(model.OrderGuests); guest && err != nil {
			return nil, err
		}
		expires := c.Derivations.CheckReadable(model.EntityOrderExpiry.Name)
		if cmd.ExpiresAt != nil && expires != nil {
			return nil, expires
		}
		ks := []model.Keys{model.CustomerByID.Key(&c.KeyBuilder, cmd.CustomerID)}
		for _, line := range lines {
			ks = append(ks, model.ProductBySKU.Key(&c.KeyBuilder, line.SKU))
		}
		records, err := c.read(ctx, ks...)
		if err != nil {
			return nil, err
		}
		var customer commerce.Customer
		var refusals commerce.UserErrors
		if guest {
			customer = commerce.Customer{ID: cmd.CustomerID, OrderCount: new(int)}
		} else if records[0] == nil {
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
				if products[line.SKU], err = c.productToSell(ctx, records[i+1], line.Quantity); err != nil {
					return nil, err
				}
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
		if err := cmd.CheckExpiry(at); err != nil {
			return nil, err
		}
		if order.ExpiresAt == nil && m.orderExpiry > 0 && expires == nil {
			order.ExpiresAt = new(at.Add(m.orderExpiry))
		}
		deltas, err := derive.Deltas(c.Layout, derive.Change{After: &order})
		if err != nil {
			return nil, err
		}
		c.limits = m.limits
		if err := c.checkReservation(cmd.CustomerID, deltas, "items"); err != nil {
			return nil, err
		}

		c.createWithCopies(&order)
		if err := c.addEvent(order, commerce.Event{Type: commerce.EventPlaced, To: commerce.Pending}, at, customer.OrderCount != nil && *customer.OrderCount == 0, deltas); err != nil {
			return nil, err
		}
		for _, item := range order.Items {
			c.create(model.OrderItemRecord(&c.KeyBuilder, order, item))
		}
		c.require(ks[0], table.AttributesUnchanged(records[0], "accountRepId"))
		for i, line := range lines {
			c.takeStock(products[line.SKU], records[i+1], line.Quantity, id)
		}
		if err := c.addDerived(ctx, deltas); err != nil {
			return nil, err
		}
		// Keep one action of the transaction free for the idempotency record.
		if excess := len(c.writes) + 1 - table.MaxTransactionActions; excess > 0 {
			return nil, commerce.NewTooManyLines(commerce.FieldPath("items"), len(lines), len(lines)-(excess+1)/2)
		}
		return &order, nil
	})
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
	order, current, err := readRecordToChange(ctx, c, c.table.DecodeOrder, "order", id, "orderId", expected, append([]model.Keys{model.OrderByID.Key(&c.KeyBuilder, id)}, more...)...)
	// Other software may have assigned the order to another customer, but kept the copy in the first
	// customer's partition. Then canAccessOrder finds the copy, although the caller may not access the
	// order.
	if (err == nil || isConflict(err)) && !c.caller.scope().Includes(order.CustomerID) {
		return nil, nil, commerce.NewNotFound("order", id, "orderId")
	}
	c.erased = err == nil && order.Erased
	return order, current, err
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
	items := make([]commerce.LineItem, 0, len(records))
	for _, r := range records {
		if !model.OrderItems.Matches(r) {
			continue
		}
		item, err := c.table.DecodeOrderItem(r)
		if err != nil {
			return nil, err
		}
		items = append(items, *item)
	}
	if len(items) > table.MaxTransactionActions {
		return nil, commerce.NewTooManyLinesOver(commerce.FieldPath("orderId"), table.MaxTransactionActions, commerce.MaxLines)
	}
	return items, nil
}

// updateOrder adds the writes for a changed order to the transaction: the order's own record, its
// copy in the customer's partition, and the event. current is the order's own record in the table.
// deltas are the changes of derived numbers. It returns commerce.InvalidInput if the total falls below what is
// paid, or if an erased order would get personal data.
func (c *change) updateOrder(ctx context.Context, current model.Record, before, after *commerce.Order, e commerce.Event, deltas []derive.Delta) error {
	if err := after.CheckPaid(*before); err != nil {
		return err
	}
	if !after.CanExpire() {
		after.ExpiresAt = nil
	}
	if before.Erased {
		if err := keepErased(after, e); err != nil {
			return err
		}
	}
	lastEvent, err := c.lastEventTime(ctx, before.CustomerID)
	if err != nil {
		return err
	}
	after.Version, after.UpdatedAt = before.Version+1, c.table.TimeAfter(before.UpdatedAt, lastEvent)
	switch {
	case after.Status != commerce.Confirmed:
		after.WaitingSince = nil
	case before.Status != commerce.Confirmed && c.Derivations.Writes(model.EntityOrderWaiting.Name):
		after.WaitingSince = new(after.UpdatedAt)
	}
	var when table.Condition
	if rep := current["accountRepId"]; rep == nil || model.EqualsText(rep, "") {
		after.AccountRepID, when = c.accountRepOfCopy(*before)
	}
	oldRecords, newRecords := model.EncodeWithEdges(c.oldKeyBuilder(), before), model.EncodeWithEdges(&c.KeyBuilder, after)
	c.update(oldRecords[0], newRecords[0], table.AttributesUnchanged(current, model.AttrVersion, "updatedAt", "status"))
	copyAfter := newRecords[1].Merge(c.unchangedAttributes(current, oldRecords[0], newRecords[0]))
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
	c.writeCopy(oldRecords[1], copyAfter, when, optional...)
	c.updateEdges(current, slices.Delete(slices.Clone(oldRecords), 1, 2), slices.Delete(slices.Clone(newRecords), 1, 2))
	c.moveClaims(oldRecords, newRecords)
	return c.addEvent(*after, e, after.UpdatedAt, false, deltas)
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
		if cmd.Expired && (before.ExpiresAt == nil || before.ExpiresAt.After(c.table.Now()) || !before.CanExpire()) {
			return nil, commerce.NewInvalidTransition(before.Status, cmd.To)
		}
		after, err := before.WithStatus(cmd, caller.Customer != "")
		if err != nil {
			return nil, err
		}
		e := commerce.Event{Type: event, From: before.Status, To: cmd.To, Note: cmd.Note, WarehouseID: cmd.WarehouseID}
		if e.Note != "" {
			e.NoteCustomerID = caller.Customer
		}
		if cmd.Expired {
			e.Note, e.NoteCustomerID = "expired without a payment", before.CustomerID
		}
		var items []commerce.LineItem
		var pieces []commerce.FulfillmentLine
		was, is := *before, after // with all line items, also those that the order's record does not embed
		if cmd.To == commerce.Shipped || cmd.To == commerce.Cancelled {
			if items, err = c.allItems(ctx, before); err != nil {
				return nil, err
			}
			if pieces, err = quantitiesByProduct(items); err != nil {
				return nil, err
			}
			was.Items, is.Items = items, items
		}
		changes := []derive.Change{{Before: &was, After: &is}}
		if cmd.To == commerce.Shipped {
			if negative := slices.IndexFunc(items, func(i commerce.LineItem) bool { return i.UnitPrice.Amount.IsNeg() }); negative >= 0 {
				return nil, fmt.Errorf("%w: line item %s of order %s has a negative price", model.ErrCorrupt, items[negative].SKU, before.ID)
			}
			for _, piece := range pieces {
				level := commerce.InventoryLevel{SKU: piece.SKU, WarehouseID: cmd.WarehouseID, Quantity: piece.Quantity}
				empty := level
				empty.Quantity = 0
				changes = append(changes, derive.Change{Before: &level, After: &empty})
			}
		}
		deltas, err := derive.Deltas(c.Layout, changes...)
		if err != nil {
			return nil, err
		}
		if err := c.updateOrder(ctx, current, before, &after, e, deltas); err != nil {
			return nil, err
		}
		if cmd.To == commerce.Shipped {
			if err := c.removeShippedStock(ctx, pieces, cmd.WarehouseID); err != nil {
				return nil, err
			}
		}
		if err := c.addDerived(ctx, deltas); err != nil {
			return nil, err
		}
		// Keep one action of the transaction free for the idempotency record.
		switch excess := len(c.writes) + 1 - table.MaxTransactionActions; {
		case excess > 0 && cmd.To == commerce.Shipped:
			return nil, commerce.NewTooManyParcelLines(commerce.FieldPath("orderId"), len(items), len(items)-(excess+1)/2)
		case excess > 0:
			return nil, commerce.NewTooManyLines(commerce.FieldPath("orderId"), len(items), commerce.MaxLines)
		}
		return &after, nil
	})
}

// quantitiesByProduct returns the total quantity of each product, because a transaction can write a
// product's record only once. The result does not contain products whose pieces are all cancelled.
//
// Errors: model.ErrCorrupt if a quantity is less than 1.
func quantitiesByProduct(items []commerce.LineItem) ([]commerce.FulfillmentLine, error) {
	at := make(map[commerce.SKU]int, len(items))
	var pieces []commerce.FulfillmentLine
	for _, item := range items {
		if item.Quantity == 0 && item.Cancelled > 0 {
			continue
		}
		if item.Quantity < 1 {
			return nil, fmt.Errorf("%w: line item %s of order %s has the quantity %d, but the minimum is 1", model.ErrCorrupt, item.SKU, item.OrderID, item.Quantity)
		}
		i, ok := at[item.SKU]
		if !ok {
			at[item.SKU] = len(pieces)
			pieces = append(pieces, commerce.FulfillmentLine{SKU: item.SKU, Quantity: item.Quantity})
			continue
		}
		pieces[i].Quantity += item.Quantity
	}
	return pieces, nil
}

// removeShippedStock removes shipped pieces from a warehouse's stock.
//
// Errors: commerce.NotFound, commerce.UserErrors (InsufficientStock), errors from table.WrapError.
func (c *change) removeShippedStock(ctx context.Context, items []commerce.FulfillmentLine, from commerce.WarehouseID) error {
	levels, taken := make([]model.Keys, len(items)), make([]counterAdjustment, 0, len(items))
	for i, item := range items {
		levels[i] = model.KeysOfInventoryLevel(&c.KeyBuilder, model.InventoryLevelKey{SKU: item.SKU, Warehouse: from})
		taken = append(taken, counterAdjustment{levels[i], map[string]int{model.AttrQuantity: -item.Quantity, model.AttrVersion: 1}, table.CompareAttribute(model.AttrQuantity, ">=", model.Num(item.Quantity))})
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
			if product, err = c.productToSell(ctx, record, cmd.Quantity); err != nil { // WithItem rejects a malformed product
				return nil, err
			}
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
		after, delta, err := before.WithItem(cmd, product, caller.Customer != "")
		if err != nil {
			return nil, err
		}
		oldQuantity := cmd.Quantity - delta
		if delta == 0 && cmd.CustomFields.IsZero() {
			return order, nil
		}
		event := commerce.Event{Type: commerce.EventItemSet, Note: fmt.Sprintf("%s: %d, before: %d", cmd.SKU, cmd.Quantity, oldQuantity)}
		if cmd.Quantity == 0 {
			event.Type = commerce.EventItemRemoved
		}
		c.limits = m.limits
		deltas, err := c.updateItems(ctx, current, before, &after, event, cmd.SKU)
		if err != nil {
			return nil, err
		}
		if delta > 0 {
			c.takeStock(product, record, delta, string(order.ID))
		}
		if err := c.addDerived(ctx, deltas); err != nil {
			return nil, err
		}
		if len(c.writes) > table.MaxTransactionActions {
			return nil, commerce.NewTooManyLines(commerce.FieldPath("orderId"), len(items), commerce.MaxLines)
		}
		return &after, nil
	})
}

// CancelOrderItems cancels pieces of a confirmed order that are not shipped yet.
//
// Errors: commerce.NotFound, commerce.VersionConflict (with the current order),
// commerce.InvalidTransition, commerce.InvalidInput, commerce.TooManyLines, model.DerivationUnavailable, and
// errors from mutate.
func (m Mutations) CancelOrderItems(ctx context.Context, caller Caller, cmd commerce.ItemsCancellation) (*commerce.Order, error) {
	return mutate(ctx, m.table, &model.WriteCancelOrderItems, caller, cmd, m.table.DecodeOrder, func(ctx context.Context, c *change) (*commerce.Order, error) {
		if err := c.Derivations.CheckReadable(model.OrderFulfillments); err != nil {
			return nil, err
		}
		order, current, err := c.readOrder(ctx, cmd.OrderID, cmd.ExpectedVersion)
		if err != nil {
			return order, err
		}
		before := *order
		if before.Items, err = c.allItems(ctx, order); err != nil {
			return nil, err
		}
		if pieces, err := quantitiesByProduct(before.Items); err != nil {
			return nil, err
		} else if len(pieces) == 0 {
			return nil, fmt.Errorf("%w: order %s has no pieces", model.ErrCorrupt, order.ID)
		}
		after, err := before.WithoutPieces(cmd.Lines)
		if err != nil {
			return nil, err
		}
		event := commerce.Event{Type: commerce.EventItemsCancelled}
		if after.Status != before.Status {
			event.From, event.To = before.Status, after.Status
		}
		var skus []commerce.SKU
		for _, line := range cmd.Lines {
			if note := fmt.Sprintf("%s: %d", line.SKU, line.Quantity); event.Note == "" {
				event.Note = note
			} else if len(event.Note)+len(note) < commerce.MaxNote-len(", …") {
				event.Note += ", " + note
			} else {
				event.Note = strings.TrimSuffix(event.Note, ", …") + ", …"
			}
			if !slices.Contains(skus, line.SKU) {
				skus = append(skus, line.SKU)
			}
		}
		deltas, err := c.updateItems(ctx, current, before, &after, event, skus...)
		if err != nil {
			return nil, err
		}
		if err := c.addDerived(ctx, deltas); err != nil {
			return nil, err
		}
		// Keep one action of the transaction free for the idempotency record.
		if excess := len(c.writes) + 1 - table.MaxTransactionActions; excess > 0 {
			return nil, commerce.NewTooManyLines(commerce.FieldPath("lines"), len(skus), len(skus)-(excess+1)/2)
		}
		return &after, nil
	})
}

// updateItems adds the writes for an order whose line items of the products changed: the order, these line
// items and the event. Both orders contain all line items. updateItems returns the changes of derived numbers.
//
// Errors: commerce.ReservationLimit, and the errors of updateOrder.
func (c *change) updateItems(ctx context.Context, current model.Record, before commerce.Order, after *commerce.Order, e commerce.Event, skus ...commerce.SKU) ([]derive.Delta, error) {
	if c.table.UnreadableAttributes(&model.EntityOrder, current)["items"] != "" {
		after.EmbedsItems = false // the embedded list of line items cannot be decoded, so do not replace it
	}
	deltas, err := derive.Deltas(c.Layout, derive.Change{Before: &before, After: after})
	if err != nil {
		return nil, err
	}
	if err := c.checkReservation(before.CustomerID, deltas, "quantity"); err != nil {
		return nil, err
	}
	if err := c.updateOrder(ctx, current, &before, after, e, deltas); err != nil {
		return nil, err
	}
	if before.EmbedsItems && !after.EmbedsItems {
		// The order's record no longer embeds its line items, so each line item needs its own record. If
		// other software wrote the order, these records may be missing, so write them.
		for _, item := range after.Items {
			if !slices.Contains(skus, item.SKU) {
				c.updateItemRecord(before, *after, item.SKU)
			}
		}
	}
	for _, sku := range skus {
		c.updateItemRecord(before, *after, sku)
	}
	return deltas, nil
}

// updateItemRecord writes the record of the line item with the given product. If the order after
// the change does not contain this line item, updateItemRecord deletes the record.
func (c *change) updateItemRecord(before, after commerce.Order, sku commerce.SKU) {
	record := func(b *model.KeyBuilder, o commerce.Order) model.Record {
		for _, item := range o.Items {
			if item.SKU == sku {
				return model.OrderItemRecord(b, o, item)
			}
		}
		return nil
	}
	oldRecord, newRecord := record(c.oldKeyBuilder(), before), record(&c.KeyBuilder, after)
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
		if err := before.CheckAddressChange("shipping address"); err != nil {
			return nil, err
		}
		after := *before
		after.ShippingAddress = &cmd.ShippingAddress
		if model.EqualRecords(model.EncodeAttributes(before), model.EncodeAttributes(&after)) {
			return before, nil
		}
		err = c.updateOrder(ctx, current, before, &after, commerce.Event{Type: commerce.EventShippingAddressChanged}, nil)
		return &after, err
	})
}

// UpdateOrder changes the billing address and the contact of an order that has not been shipped.
//
// Errors: commerce.NotFound, commerce.VersionConflict (with the current order),
// commerce.InvalidTransition, model.DerivationUnavailable, and errors from mutate.
func (m Mutations) UpdateOrder(ctx context.Context, caller Caller, cmd commerce.BillingChange) (*commerce.Order, error) {
	return mutate(ctx, m.table, &model.WriteUpdateOrder, caller, cmd, m.table.DecodeOrder, func(ctx context.Context, c *change) (*commerce.Order, error) {
		before, current, err := c.readOrder(ctx, cmd.OrderID, cmd.ExpectedVersion)
		if err != nil {
			return before, err
		}
		if err := before.CheckAddressChange("billing address and contact"); err != nil {
			return nil, err
		}
		after := *before
		after.BillingAddress, after.Contact = cmp.Or(cmd.BillingAddress, before.BillingAddress), cmp.Or(cmd.Contact, before.Contact)
		if model.EqualRecords(model.EncodeAttributes(before), model.EncodeAttributes(&after)) {
			return before, nil
		}
		if err := c.Derivations.CheckReadable(model.OrderAdjustments); err != nil {
			return nil, err
		}
		if err := after.CheckGuest(); err != nil {
			return nil, err
		}
		return &after, c.updateOrder(ctx, current, before, &after, commerce.Event{Type: commerce.EventBillingChanged}, nil)
	})
}

// SetAdjustments replaces the adjustments of an order that has not been shipped.
//
// Errors: commerce.NotFound, commerce.VersionConflict (with the current order),
// commerce.InvalidTransition, commerce.UserErrors (InvalidInput), commerce.TooManyLines,
// model.DerivationUnavailable, and errors from mutate.
func (m Mutations) SetAdjustments(ctx context.Context, caller Caller, cmd commerce.AdjustmentsChange) (*commerce.Order, error) {
	return mutate(ctx, m.table, &model.WriteSetAdjustments, caller, cmd, m.table.DecodeOrder, func(ctx context.Context, c *change) (*commerce.Order, error) {
		order, current, err := c.readOrder(ctx, cmd.OrderID, cmd.ExpectedVersion)
		if err != nil {
			return order, err
		}
		before := *order
		if slices.ContainsFunc(cmd.Adjustments, func(a commerce.OrderAdjustment) bool { return a.Line != "" }) {
			if before.Items, err = c.allItems(ctx, order); err != nil {
				return nil, err
			}
		}
		after, err := before.WithAdjustments(cmd.Adjustments)
		if err != nil {
			return nil, err
		}
		if model.EqualRecords(model.EncodeAttributes(&before), model.EncodeAttributes(&after)) {
			return order, nil
		}
		if err := c.Derivations.CheckReadable(model.OrderAdjustments); err != nil {
			return nil, err
		}
		deltas, err := derive.Deltas(c.Layout, derive.Change{Before: &before, After: &after})
		if err != nil {
			return nil, err
		}
		if err := c.updateOrder(ctx, current, order, &after, commerce.Event{Type: commerce.EventAdjustmentsChanged}, deltas); err != nil {
			return nil, err
		}
		return &after, c.addDerived(ctx, deltas)
	})
}

// AddOrderNote adds a note to the timeline of an order. A customer's own note is always visible to the
// customer.
//
// Errors: commerce.NotFound, commerce.InvalidInput, and errors from mutate.
func (m Mutations) AddOrderNote(ctx context.Context, caller Caller, cmd commerce.OrderNote) (*commerce.Order, error) {
	if caller.Customer != "" && cmd.Visibility != nil && *cmd.Visibility == commerce.VisibilityStaff {
		return nil, commerce.NewInvalidInput(commerce.FieldPath("visibility"), "is STAFF, but customers can read their own notes: use CUSTOMER")
	}
	return mutate(ctx, m.table, &model.WriteAddOrderNote, caller, cmd, m.table.DecodeOrder, func(ctx context.Context, c *change) (*commerce.Order, error) {
		before, current, err := c.readOrder(ctx, cmd.OrderID, nil)
		if err != nil {
			return nil, err
		}
		after, e := *before, commerce.Event{Type: commerce.EventNoteAdded, Note: cmd.Note, NoteCustomerID: caller.Customer}
		if cmd.Visibility != nil && *cmd.Visibility == commerce.VisibilityCustomer {
			e.NoteCustomerID = before.CustomerID
		}
		return &after, c.updateOrder(ctx, current, before, &after, e, nil)
	})
}

// HoldOrder puts an order on hold.
//
// Errors: commerce.NotFound, commerce.VersionConflict (with the current order),
// commerce.InvalidTransition, and errors from mutate.
func (m Mutations) HoldOrder(ctx context.Context, caller Caller, cmd commerce.HoldRequest) (*commerce.Order, error) {
	return mutate(ctx, m.table, &model.WriteHoldOrder, caller, cmd, m.table.DecodeOrder, func(ctx context.Context, c *change) (*commerce.Order, error) {
		before, current, err := c.readOrder(ctx, cmd.OrderID, cmd.ExpectedVersion)
		if err != nil {
			return before, err
		}
		after, err := before.WithHold(cmd.Reason, c.table.TimeAfter(before.UpdatedAt))
		if err != nil {
			return nil, err
		}
		if before.Hold != nil && *before.Hold == *after.Hold {
			return before, nil
		}
		return &after, c.updateOrder(ctx, current, before, &after, commerce.Event{Type: commerce.EventHeld, Note: cmd.Reason}, nil)
	})
}

// ReleaseOrder ends the hold of an order.
//
// Errors: commerce.NotFound, commerce.VersionConflict (with the current order), and errors from mutate.
func (m Mutations) ReleaseOrder(ctx context.Context, caller Caller, cmd commerce.ReleaseRequest) (*commerce.Order, error) {
	return mutate(ctx, m.table, &model.WriteReleaseOrder, caller, cmd, m.table.DecodeOrder, func(ctx context.Context, c *change) (*commerce.Order, error) {
		before, current, err := c.readOrder(ctx, cmd.OrderID, cmd.ExpectedVersion)
		if err != nil || before.Hold == nil {
			return before, err
		}
		after := *before
		after.Hold = nil
		return &after, c.updateOrder(ctx, current, before, &after, commerce.Event{Type: commerce.EventReleased, Note: cmd.Note}, nil)
	})
}

// TagOrder removes and adds tags of an order.
//
// Errors: commerce.NotFound, commerce.VersionConflict (with the current order),
// commerce.InvalidInput, model.DerivationUnavailable, and errors from mutate.
func (m Mutations) TagOrder(ctx context.Context, caller Caller, cmd commerce.TagsChange) (*commerce.Order, error) {
	return mutate(ctx, m.table, &model.WriteTagOrder, caller, cmd, m.table.DecodeOrder, func(ctx context.Context, c *change) (*commerce.Order, error) {
		if err := c.Derivations.CheckReadable(model.EntityOrderTag.Name); err != nil {
			return nil, err
		}
		before, current, err := c.readOrder(ctx, cmd.OrderID, cmd.ExpectedVersion)
		if err != nil {
			return before, err
		}
		after, err := before.WithTags(cmd)
		if err != nil || slices.Equal(before.Tags, after.Tags) {
			return before, err
		}
		return &after, c.updateOrder(ctx, current, before, &after, commerce.Event{Type: commerce.EventTagsChanged}, nil)
	})
}

// SetCustomFields changes the custom fields of an order and of its line items.
//
// Errors: commerce.NotFound, commerce.VersionConflict (with the current order),
// commerce.TooManyLines, and errors from mutate.
func (m Mutations) SetCustomFields(ctx context.Context, caller Caller, cmd commerce.CustomFieldsChange) (*commerce.Order, error) {
	return mutate(ctx, m.table, &model.WriteSetCustomFields, caller, cmd, m.table.DecodeOrder, func(ctx context.Context, c *change) (*commerce.Order, error) {
		order, current, err := c.readOrder(ctx, cmd.OrderID, cmd.ExpectedVersion)
		if err != nil {
			return order, err
		}
		before := *order
		if len(cmd.Items) > 0 {
			if before.Items, err = c.allItems(ctx, order); err != nil {
				return nil, err
			}
		}
		after, err := before.WithCustomFields(cmd)
		if err != nil {
			return nil, err
		}
		b, written := &c.KeyBuilder, map[commerce.SKU]bool{}
		for _, item := range after.Items {
			i := slices.IndexFunc(before.Items, func(i commerce.LineItem) bool { return i.SKU == item.SKU })
			if !model.EqualRecords(model.OrderItemRecord(b, before, before.Items[i]), model.OrderItemRecord(b, after, item)) && !written[item.SKU] {
				c.updateItemRecord(before, after, item.SKU)
				written[item.SKU] = true
			}
		}
		if len(written) == 0 && model.EqualRecords(model.EncodeAttributes(&before), model.EncodeAttributes(&after)) {
			return order, nil
		}
		if err := c.updateOrder(ctx, current, order, &after, commerce.Event{Type: commerce.EventCustomFieldsChanged}, nil); err != nil {
			return nil, err
		}
		if len(c.writes) > table.MaxTransactionActions {
			return nil, commerce.NewTooManyLines(commerce.FieldPath("items"), len(cmd.Items), commerce.MaxLines)
		}
		return &after, nil
	})
}
