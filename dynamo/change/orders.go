package change

import (
	"context"
	"fmt"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// PlaceOrder places an order of today's prices and reserves its stock (WP4).
//
// Errors: commerce.Refusals of NotFound, InsufficientStock, InvalidInput, TooManyLines,
// PriceChanged; and those of mutate.
func (m Mutations) PlaceOrder(ctx context.Context, caller Caller, cmd commerce.NewOrder) (*commerce.Order, error) {
	lines, err := commerce.Merged(cmd.Lines)
	if err != nil {
		return nil, err
	}
	return mutate(ctx, m.table, &model.WritePlaceOrder, caller, cmd, m.table.DecodeOrder, func(ctx context.Context, c *change) (*commerce.Order, error) {
		ks := []model.Keys{model.CustomerByID.Key(&c.KeyBuilder, cmd.CustomerID)}
		c.conceal(cmd.CustomerID, ks[0])
		for _, line := range lines {
			ks = append(ks, model.ProductBySKU.Key(&c.KeyBuilder, line.SKU))
		}
		records, err := c.read(ctx, ks...)
		if err != nil {
			return nil, err
		}
		var customer commerce.Customer
		var refusals commerce.Refusals
		if records[0] == nil {
			refusals = append(refusals, commerce.Unknown("customer", cmd.CustomerID, "customerId"))
		} else if decoded, err := m.table.DecodeCustomer(model.Reader{Record: records[0]}); err != nil {
			return nil, err
		} else {
			customer = *decoded
		}
		products := map[commerce.SKU]*commerce.Product{}
		for i, line := range lines {
			if records[i+1] != nil {
				if products[line.SKU], err = m.table.DecodeProduct(model.Reader{Record: records[i+1]}); err != nil {
					return nil, err
				}
			}
		}
		at := c.table.After(c.lastEventTime(cmd.CustomerID))
		id, err := m.table.NewULID(at)
		if err != nil {
			return nil, err
		}
		order, err := cmd.Place(commerce.OrderID(id), at, customer, products)
		if refusals = append(refusals, commerce.RefusalsOf(err)...); len(refusals) > 0 {
			return nil, refusals
		}
		if err != nil {
			return nil, err
		}

		own, theirs := headers(&c.KeyBuilder, &order)
		c.create(own)
		c.create(theirs)
		c.countOrder(order.ID, 0, commerce.Pending)
		nothing := order
		nothing.Status = commerce.Cancelled
		if err := c.spend(nothing, order); err != nil {
			return nil, err
		}
		if order.AccountRepID != "" {
			record := model.RepPartRecord(&c.KeyBuilder, commerce.RepOrders{EmployeeID: order.AccountRepID, Part: model.RepOrderPart(order.ID)})
			c.tally(record, model.Record{model.AttrOrders: model.Num(1)}, nil, model.AttrEmployeeID, model.AttrPart)
		}
		if err := c.happened(order, commerce.Event{Type: commerce.EventPlaced, To: commerce.Pending}, at); err != nil {
			return nil, err
		}
		reserved := make([]adjustment, len(lines))
		for i, line := range lines {
			stands := table.Still(records[i+1], "name", "unitPrice", "currency")
			reserved[i] = adjustment{ks[i+1], map[string]int{model.AttrAvailable: -line.Quantity}, table.AllOf(stands, table.Is(model.AttrAvailable, ">=", model.Num(line.Quantity)))}
			reserved[i].countOrder(records[i+1], 1)
		}
		if err := c.adjust(ctx, reserved...); err != nil {
			return nil, err
		}
		for _, item := range order.Items {
			c.create(model.LineRecord(&c.KeyBuilder, order, item))
		}
		if table.IsCounted(records[0], model.AttrOrderCount) {
			one := map[string]int{model.AttrOrderCount: 1}
			return &order, c.adjust(ctx, adjustment{ks[0], one, table.AllOf(table.Still(records[0], "accountRepId"), table.Counted(model.AttrOrderCount))})
		}
		// Nobody has counted this customer's orders: one more would make a count of one.
		c.require(ks[0], table.Still(records[0], "accountRepId", model.AttrOrderCount))
		return &order, nil
	})
}

// countOrder counts an order in the status that it gets, and no longer in the one that it had; from
// is 0 for a new order. A part that nobody has counted gets numbers that count nothing but changes:
// it is not complete.
func (c *change) countOrder(id commerce.OrderID, from, to commerce.Status) {
	deltas := model.Record{to.String(): model.Num(1)}
	if from != 0 {
		deltas[from.String()] = model.Num(-1)
	}
	record := model.OrderCountsRecord(&c.KeyBuilder, commerce.OrderCounts{Part: model.OrderCountPart(id)})
	c.tally(record, deltas, nil, model.AttrPart)
}

// spend adds to the spending of an order's customer what the order costs more than before. Where
// nobody has added up the customer's orders, the numbers count nothing but changes: the customer's
// record does not say that they are complete.
func (c *change) spend(before, after commerce.Order) error {
	more, err := after.Spent().Minus(before.Spent())
	if err != nil {
		return err
	}
	deltas := model.Record{model.AttrSpent: model.Amount(more.Total), model.AttrOrders: model.Num(more.Orders)}
	c.tally(model.SpendingRecord(&c.KeyBuilder, more), deltas, nil, model.AttrCustomerID, "month", "currency")
	return nil
}

// expect refuses a change of a record of another version than the caller expects.
func expect(what string, expected *int, current int) error {
	if expected != nil && *expected != current {
		return commerce.Conflict(what, *expected, current)
	}
	return nil
}

// order reads the order that a command names; the record is as it stands in the table. An order of
// another version than expected comes along with the refusal.
//
// Errors: commerce.NotFound, commerce.VersionConflict, ErrCorrupt, those of failed.
func (c *change) order(ctx context.Context, id commerce.OrderID, expected *int, along ...model.Keys) (*commerce.Order, model.Record, error) {
	own, err := c.ownsOrder(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	if !own {
		return nil, nil, commerce.Unknown("order", id, "orderId")
	}
	order, stands, err := existing(ctx, c, c.table.DecodeOrder, "order", id, "orderId", append([]model.Keys{model.OrderByID.Key(&c.KeyBuilder, id)}, along...)...)
	if err != nil {
		return nil, nil, err
	}
	// The copy that was read first may have been left behind when other software gave the order to
	// another customer.
	if !c.caller.owns(order.CustomerID) {
		return nil, nil, commerce.Unknown("order", id, "orderId")
	}
	return order, stands, expect("order", expected, order.Version)
}

// allItems gives all items of an order, also of one that does not carry them.
//
// Errors: commerce.TooManyLines where there are more than a transaction could hold, ErrCorrupt,
// those of failed.
func (c *change) allItems(ctx context.Context, o *commerce.Order) ([]commerce.LineItem, error) {
	if o.EmbedsItems {
		return o.Items, nil
	}
	p := &model.OrderItems.AccessPattern
	partition, err := p.PK.Key(string(o.ID))
	if err != nil {
		return nil, err
	}
	records, _, err := c.table.QueryUpTo(ctx, p, partition, string(p.SK), model.Range{}, table.MaxActions+1, true)
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
	if len(items) > table.MaxActions {
		return nil, commerce.FarTooLong(commerce.Path("orderId"), table.MaxActions, commerce.MaxLines)
	}
	return items, nil
}

// headers are the two records of an order: its own, and the customer's copy. They differ in nothing
// but their keys.
func headers(b *model.KeyBuilder, o *commerce.Order) (own, theirs model.Record) {
	records := model.Records(b, o)
	return records[0], records[1]
}

// rewrite adds both records of a changed order, and the event that tells of it. stands is the
// order's record as it stands in the table.
func (c *change) rewrite(stands model.Record, before, after *commerce.Order, e commerce.Event) error {
	after.Version, after.UpdatedAt = before.Version+1, c.table.After(before.UpdatedAt, c.lastEventTime(before.CustomerID))
	var when table.Condition
	if rep := stands["accountRepId"]; rep == nil || model.IsText(rep, "") {
		after.AccountRepID, when = c.repOfCopy(*before)
	}
	ownBefore, theirsBefore := headers(c.former(), before)
	ownAfter, theirsAfter := headers(&c.KeyBuilder, after)
	c.update(ownBefore, ownAfter, table.Still(stands, model.AttrVersion, "updatedAt", "status"))
	theirsAfter.With(c.unchanged(stands, model.Attributes(before), model.Attributes(after)))
	var optional []string
	for _, a := range model.AttributesOf(&model.EntityOrder) {
		if a.Optional {
			optional = append(optional, a.Name)
		}
	}
	if theirsAfter["accountRepId"] == nil {
		// Where the account rep cannot be read, nobody knows whose list the copy is in.
		optional = append(optional, model.AttrIndexPK, model.AttrIndexSK)
	}
	c.mirror(theirsBefore, theirsAfter, when, optional...)
	return c.happened(*after, e, after.UpdatedAt)
}

// repOfCopy returns the account rep of an order whose own record names none: the one whom the
// customer's copy names in its index key. It does not read the copy. The condition holds unless the
// copy may name one that is not known yet; when it fails, DynamoDB returns the copy.
func (c *change) repOfCopy(o commerce.Order) (commerce.EmployeeID, table.Condition) {
	copied, found := c.stands(model.CustomerOrderKeys(c.former(), model.CustomerOrderKey{Customer: o.CustomerID, Order: o.ID}))
	if !found {
		return "", table.Either(table.Has("entity"), table.Lacks(model.AttrIndexPK))
	}
	return commerce.EmployeeID(model.IndexValueOf(&model.EntityCustomerOrder, copied)), table.Still(copied, "entity", model.AttrIndexPK)
}

// moveTo is the write pattern and the event of a move to a status; nil where nothing moves there.
func moveTo(to commerce.Status) (*model.WritePattern, commerce.EventType) {
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

// MoveOrder moves an order to another status (WP5 to WP8). Shipping takes its items from a
// warehouse, cancelling returns what it reserved.
//
// Errors: commerce.NotFound, VersionConflict (with the order as it is), InvalidTransition,
// AddressMissing, TooManyLines, Refusals of InsufficientStock; and those of mutate.
func (m Mutations) MoveOrder(ctx context.Context, caller Caller, cmd commerce.OrderMove) (*commerce.Order, error) {
	pattern, event := moveTo(cmd.To)
	if pattern == nil {
		return nil, fmt.Errorf("move order %s: nothing moves to %s", cmd.OrderID, cmd.To)
	}
	return mutate(ctx, m.table, pattern, caller, cmd, m.table.DecodeOrder, func(ctx context.Context, c *change) (*commerce.Order, error) {
		before, stands, err := c.order(ctx, cmd.OrderID, cmd.ExpectedVersion)
		if err != nil {
			return before, err
		}
		after, err := before.Moved(cmd)
		if err != nil {
			return nil, err
		}
		if err := c.rewrite(stands, before, &after, commerce.Event{Type: event, From: before.Status, To: cmd.To, Note: cmd.Note, WarehouseID: cmd.WarehouseID}); err != nil {
			return nil, err
		}
		c.countOrder(before.ID, before.Status, cmd.To)
		if cmd.To == commerce.Cancelled {
			if err := c.spend(*before, after); err != nil {
				return nil, err
			}
		}
		if cmd.To != commerce.Shipped && cmd.To != commerce.Cancelled {
			return &after, nil
		}
		items, err := c.allItems(ctx, before)
		if err != nil {
			return nil, err
		}
		pieces, err := piecesOf(items)
		if err != nil {
			return nil, err
		}
		if cmd.To == commerce.Shipped {
			err = c.ship(ctx, pieces, cmd.WarehouseID)
		} else {
			err = c.release(ctx, pieces)
		}
		if err != nil {
			return nil, err
		}
		// The idempotency record comes on top.
		if len(c.writes) >= table.MaxActions {
			return nil, commerce.TooLong(commerce.Path("orderId"), len(items), commerce.MaxLines)
		}
		return &after, nil
	})
}

// piecesOf is how many pieces of each product items are, in their order. Other software may have
// written a product twice, and a record has one place in a transaction.
//
// Errors: ErrCorrupt where an item is of less than one piece.
func piecesOf(items []commerce.LineItem) ([]commerce.OrderLine, error) {
	at := make(map[commerce.SKU]int, len(items))
	var pieces []commerce.OrderLine
	for _, item := range items {
		if item.Quantity < 1 {
			return nil, fmt.Errorf("%w: item %s of order %s has a quantity of %d", model.ErrCorrupt, item.SKU, item.OrderID, item.Quantity)
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

// ship takes items from a warehouse. What they have reserved goes with them, so that as much stays
// available as before.
//
// Errors: commerce.NotFound, commerce.Refusals of InsufficientStock, those of failed.
func (c *change) ship(ctx context.Context, items []commerce.OrderLine, from commerce.WarehouseID) error {
	levels, taken := make([]model.Keys, len(items)), make([]adjustment, 0, 2*len(items))
	for i, item := range items {
		levels[i] = model.InventoryLevelKeys(&c.KeyBuilder, model.InventoryLevelKey{SKU: item.SKU, Warehouse: from})
		taken = append(taken, adjustment{levels[i], map[string]int{model.AttrQuantity: -item.Quantity, model.AttrVersion: 1}, table.Is(model.AttrQuantity, ">=", model.Num(item.Quantity))})
		taken = c.count(taken, item.SKU, model.AttrTotalInventory, -item.Quantity)
	}
	if err := c.adjust(ctx, taken...); err != nil {
		return err
	}
	var refusals commerce.Refusals
	for i, item := range items {
		have, told := 0, c.missing(levels[i])
		if r, ok := c.stands(levels[i]); ok {
			decoded, err := model.DecodeInventoryLevel(model.Reader{Record: r})
			if err != nil {
				return err
			}
			have, told = decoded.Quantity, true
		}
		if told && have < item.Quantity {
			refusals = append(refusals, commerce.TooFew(commerce.Path("warehouseId"), item.SKU, item.Quantity, have, " in warehouse "+string(from)))
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
		return commerce.Unknown("warehouse", from, "warehouseId")
	}
	return refusals
}

// release makes what items have reserved available again.
//
// Errors: those of adjust.
func (c *change) release(ctx context.Context, items []commerce.OrderLine) error {
	var released []adjustment
	for _, item := range items {
		released = c.count(released, item.SKU, model.AttrAvailable, item.Quantity)
	}
	return c.adjust(ctx, released...)
}

// count appends what adds to a counter of a product. It skips a product that does not exist or
// keeps no such counter, on the condition that this is still so.
func (c *change) count(to []adjustment, sku commerce.SKU, counter string, delta int) []adjustment {
	k := model.ProductBySKU.Key(&c.KeyBuilder, sku)
	switch r, ok := c.stands(k); {
	case c.missing(k):
		c.require(k, table.Absent)
		return to
	case ok && !table.IsCounted(r, counter):
		return append(to, adjustment{k, map[string]int{}, table.Still(r, counter)})
	default:
		return append(to, adjustment{k, map[string]int{counter: delta}, table.Counted(counter)})
	}
}

// countOrder counts one more or one less order of a product, which is as it stands in the table. If
// nobody has counted the product's orders, it requires that this is still so.
func (a *adjustment) countOrder(stands model.Record, by int) {
	counted := table.Still(stands, model.AttrOrderCount)
	if table.IsCounted(stands, model.AttrOrderCount) {
		a.deltas[model.AttrOrderCount] = by
		counted = table.Counted(model.AttrOrderCount)
	}
	a.when = table.AllOf(a.when, counted)
}

// SetOrderItem sets how many pieces of a product a pending order has (WP9), or takes the product
// off it (WP10).
//
// Errors: commerce.NotFound, VersionConflict (with the order as it is), InvalidInput,
// InsufficientStock, TooManyLines; and those of mutate.
func (m Mutations) SetOrderItem(ctx context.Context, caller Caller, cmd commerce.OrderItemChange) (*commerce.Order, error) {
	pattern := &model.WriteSetOrderItem
	if cmd.Quantity == 0 {
		pattern = &model.WriteRemoveOrderItem
	}
	return mutate(ctx, m.table, pattern, caller, cmd, m.table.DecodeOrder, func(ctx context.Context, c *change) (*commerce.Order, error) {
		k := model.ProductBySKU.Key(&c.KeyBuilder, cmd.SKU)
		order, stands, err := c.order(ctx, cmd.OrderID, cmd.ExpectedVersion, k)
		if err != nil {
			return order, err
		}
		var product *commerce.Product
		record, sold := c.stands(k)
		if sold {
			if product, err = m.table.DecodeProduct(model.Reader{Record: record}); err != nil {
				return nil, err
			}
		}
		items, err := c.allItems(ctx, order)
		if err != nil {
			return nil, err
		}
		if pieces, err := piecesOf(items); err != nil {
			return nil, err
		} else if len(pieces) < len(items) {
			return nil, fmt.Errorf("%w: order %s has a product in two items", model.ErrCorrupt, order.ID)
		}
		before := *order
		before.Items = items
		after, by, err := before.WithItem(cmd, product)
		if err != nil {
			return nil, err
		}
		if m.table.Unreadable(&model.EntityOrder, stands)["items"] != "" {
			after.EmbedsItems = false // what stands in the list's place stays
		}
		was := cmd.Quantity - by
		if by == 0 {
			return order, nil
		}
		event := commerce.Event{Type: commerce.EventItemSet, Note: fmt.Sprintf("%s: %d, before: %d", cmd.SKU, cmd.Quantity, was)}
		if cmd.Quantity == 0 {
			event.Type = commerce.EventItemRemoved
		}
		if err := c.rewrite(stands, order, &after, event); err != nil {
			return nil, err
		}
		if err := c.spend(*order, after); err != nil {
			return nil, err
		}
		if order.EmbedsItems && !after.EmbedsItems {
			// From now on the items' own records are all there is, and other software may not have
			// written them.
			for _, item := range after.Items {
				if item.SKU != cmd.SKU {
					c.line(before, after, item.SKU)
				}
			}
		}
		c.line(before, after, cmd.SKU)
		var held []adjustment
		switch enough := table.Is(model.AttrAvailable, ">=", model.Num(by)); {
		case by > 0 && was == 0:
			held = []adjustment{{k, map[string]int{model.AttrAvailable: -by}, table.AllOf(table.Still(record, "name", "unitPrice", "currency"), enough)}}
			held[0].countOrder(record, 1)
		case by > 0:
			held = []adjustment{{k, map[string]int{model.AttrAvailable: -by}, enough}}
		default:
			held = c.count(nil, cmd.SKU, model.AttrAvailable, -by)
			if cmd.Quantity == 0 && len(held) > 0 {
				held[0].countOrder(record, -1)
			}
		}
		if err := c.adjust(ctx, held...); err != nil {
			return nil, err
		}
		if len(c.writes) > table.MaxActions {
			return nil, commerce.TooLong(commerce.Path("orderId"), len(items), commerce.MaxLines)
		}
		return &after, nil
	})
}

// line writes or deletes the record of one item of a changed order.
func (c *change) line(before, after commerce.Order, sku commerce.SKU) {
	var was, is model.Record
	for _, item := range before.Items {
		if item.SKU == sku {
			was = model.LineRecord(c.former(), before, item)
		}
	}
	for _, item := range after.Items {
		if item.SKU == sku {
			is = model.LineRecord(&c.KeyBuilder, after, item)
		}
	}
	if is == nil {
		c.remove(was, nil)
		return
	}
	c.mirror(was, is, nil)
}

// UpdateShippingAddress changes where an order goes that has not been shipped (WP11).
//
// Errors: commerce.NotFound, VersionConflict (with the order as it is), InvalidInput; and those of
// mutate.
func (m Mutations) UpdateShippingAddress(ctx context.Context, caller Caller, cmd commerce.ShippingAddressChange) (*commerce.Order, error) {
	return mutate(ctx, m.table, &model.WriteUpdateShippingAddress, caller, cmd, m.table.DecodeOrder, func(ctx context.Context, c *change) (*commerce.Order, error) {
		before, stands, err := c.order(ctx, cmd.OrderID, cmd.ExpectedVersion)
		if err != nil {
			return before, err
		}
		if err := before.CanGoElsewhere(); err != nil {
			return nil, err
		}
		after := *before
		after.ShippingAddress = &cmd.ShippingAddress
		if model.SameRecord(model.Attributes(before), model.Attributes(&after)) {
			return before, nil
		}
		err = c.rewrite(stands, before, &after, commerce.Event{Type: commerce.EventShippingAddressChanged})
		return &after, err
	})
}
