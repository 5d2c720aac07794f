package change

import (
	"context"
	"strconv"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/derive"
	"github.com/ordergraph/ordergraph/dynamo/model"
)

// RequestReturn adds a return to a shipped order.
//
// Errors: commerce.NotFound, commerce.InvalidTransition, commerce.InvalidInput, commerce.UserErrors
// (InvalidInput), commerce.TooManyLines, model.DerivationUnavailable, and errors from mutate.
func (m Mutations) RequestReturn(ctx context.Context, caller Caller, cmd commerce.ReturnRequest) (*commerce.Return, error) {
	return mutate(ctx, m.table, &model.WriteRequestReturn, caller, cmd, m.table.DecodeReturn, func(ctx context.Context, c *change) (*commerce.Return, error) {
		if err := c.Derivations.CheckReadable(model.OrderReturnsFeature); err != nil {
			return nil, err
		}
		before, current, err := c.readOrder(ctx, cmd.OrderID, nil)
		if err != nil {
			return nil, err
		}
		whole, after := *before, *before
		if whole.Items, err = c.allItems(ctx, before); err != nil {
			return nil, err
		}
		returns, err := c.allReturns(ctx, before.ID)
		if err != nil {
			return nil, err
		}
		r, err := whole.RequestReturn(cmd, returns)
		if err != nil {
			return nil, err
		}
		if err := c.updateOrder(ctx, current, before, &after, commerce.Event{Type: commerce.EventReturnRequested}, nil); err != nil {
			return nil, err
		}
		id, err := c.table.NewULID(after.UpdatedAt)
		if err != nil {
			return nil, err
		}
		r.ID, r.CreatedAt, r.UpdatedAt, r.Actor = commerce.ReturnID(id), after.UpdatedAt, after.UpdatedAt, c.caller.Name
		c.createWithCopies(&r)
		return &r, nil
	})
}

// allReturns returns the returns of an order. Each change of a return also changes the order, so the condition
// that the order stays the same includes its returns.
//
// Errors: model.ErrCorrupt, errors from table.WrapError.
func (c *change) allReturns(ctx context.Context, id commerce.OrderID) (returns []*commerce.Return, err error) {
	p := &model.OrderReturns.AccessPattern
	partition, err := p.PK.Build(string(id))
	if err != nil {
		return nil, err
	}
	records, _, err := c.table.QueryUpTo(ctx, p, partition, string(p.SK), model.Range{}, p.MaxLength, true)
	for _, record := range records {
		r, err := c.table.DecodeReturn(record)
		if err != nil {
			return nil, err
		}
		returns = append(returns, r)
	}
	return returns, err
}

// DecideReturn approves a requested return, or rejects a return that was not received.
//
// Errors: commerce.NotFound, commerce.InvalidTransition, model.DerivationUnavailable, and errors from mutate.
func (m Mutations) DecideReturn(ctx context.Context, caller Caller, cmd commerce.ReturnDecision) (*commerce.Return, error) {
	p, event := &model.WriteApproveReturn, commerce.EventReturnApproved
	if cmd.To == commerce.ReturnRejected {
		p, event = &model.WriteRejectReturn, commerce.EventReturnRejected
	}
	return mutate(ctx, m.table, p, caller, cmd, m.table.DecodeReturn, func(ctx context.Context, c *change) (*commerce.Return, error) {
		return c.changeReturn(ctx, cmd.OrderID, cmd.ReturnID, commerce.Event{Type: event, Note: cmd.Reason}, func(o commerce.Order, r commerce.Return) (commerce.Return, error) {
			return o.DecideReturn(r, cmd)
		})
	})
}

// ReceiveReturn records that a warehouse has received an approved return, and puts pieces back into its stock.
//
// Errors: commerce.NotFound, commerce.InvalidTransition, commerce.UserErrors (InvalidInput),
// commerce.InvalidInput, model.DerivationUnavailable, and errors from mutate.
func (m Mutations) ReceiveReturn(ctx context.Context, caller Caller, cmd commerce.ReturnReceipt) (*commerce.Return, error) {
	return mutate(ctx, m.table, &model.WriteReceiveReturn, caller, cmd, m.table.DecodeReturn, func(ctx context.Context, c *change) (*commerce.Return, error) {
		stock := []model.Keys{model.WarehouseByID.Key(&c.KeyBuilder, cmd.WarehouseID)}
		for _, line := range cmd.Lines {
			stock = append(stock, model.ProductBySKU.Key(&c.KeyBuilder, line.SKU), model.KeysOfInventoryLevel(&c.KeyBuilder, model.InventoryLevelKey{SKU: line.SKU, Warehouse: cmd.WarehouseID}))
		}
		received, err := c.changeReturn(ctx, cmd.OrderID, cmd.ReturnID, commerce.Event{Type: commerce.EventReturnReceived, WarehouseID: cmd.WarehouseID}, func(o commerce.Order, r commerce.Return) (commerce.Return, error) {
			return o.ReceiveReturn(r, cmd)
		}, stock...)
		if err != nil {
			return nil, err
		}
		return received, c.restock(ctx, cmd)
	})
}

// changeReturn adds the writes for a changed return to the transaction: the return, its order and the event e.
// change returns the changed return. more are the keys of further records to read.
//
// Errors: commerce.NotFound, model.DerivationUnavailable, model.ErrCorrupt, errors from table.WrapError, and
// errors from change.
func (c *change) changeReturn(ctx context.Context, order commerce.OrderID, id commerce.ReturnID, e commerce.Event, change func(commerce.Order, commerce.Return) (commerce.Return, error), more ...model.Keys) (*commerce.Return, error) {
	if err := c.Derivations.CheckReadable(model.OrderReturnsFeature); err != nil {
		return nil, err
	}
	k := model.KeysOfReturn(&c.KeyBuilder, model.ReturnKey{Order: order, ID: id})
	before, current, err := c.readOrder(ctx, order, nil, append(more, k)...)
	if err != nil {
		return nil, err
	}
	r, record, err := readRecordToChange(ctx, c, c.table.DecodeReturn, "return", id, "returnId", nil, k)
	if err != nil {
		return nil, err
	}
	changed, err := change(*before, *r)
	if err != nil {
		return nil, err
	}
	after := *before
	if e.Note != "" {
		e.NoteCustomerID = before.CustomerID
	}
	if err := c.updateOrder(ctx, current, before, &after, e, nil); err != nil {
		return nil, err
	}
	changed.UpdatedAt = after.UpdatedAt
	c.updateWithEdges(&c.KeyBuilder, record, r, &changed, "updatedAt")
	return &changed, nil
}

// restock adds the writes that put pieces of a return into the stock of a warehouse. The stock of a product
// with several buckets grows in the product's own record.
//
// Errors: commerce.NotFound, commerce.InvalidInput, model.ErrCorrupt, errors from table.WrapError.
func (c *change) restock(ctx context.Context, cmd commerce.ReturnReceipt) error {
	if !c.exists(model.WarehouseByID.Key(&c.KeyBuilder, cmd.WarehouseID)) {
		return commerce.NewNotFound("warehouse", cmd.WarehouseID, "warehouseId")
	}
	var changes []derive.Change
	for i, line := range cmd.Lines {
		index := strconv.Itoa(i)
		if !c.exists(model.ProductBySKU.Key(&c.KeyBuilder, line.SKU)) {
			return commerce.NewNotFound("product", line.SKU, "lines", index, "sku")
		}
		level, err := c.readInventoryLevel(ctx, line.SKU, cmd.WarehouseID, "warehouseId")
		if err != nil {
			return err
		}
		quantity, product := level.Quantity+line.Restocked, model.Reader{Record: level.productRecord}
		if _, err := commerce.ParseInventoryLevel(quantity); err != nil || level.Quantity < 0 || product.Number(model.AttrTotalInventory) > commerce.MaxTotalInventory-line.Restocked {
			return commerce.NewInvalidInput(commerce.FieldPath("lines", index, "restocked"), "results in an invalid quantity of %d pieces of product %s in warehouse %s", quantity, line.SKU, cmd.WarehouseID)
		}
		changes = append(changes, c.writeInventoryLevel(level, level.WithQuantity(quantity)))
	}
	deltas, err := derive.Deltas(c.Layout, changes...)
	if err != nil {
		return err
	}
	return c.addDerived(ctx, deltas)
}
