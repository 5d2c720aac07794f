package change

import (
	"context"
	"strings"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// maxErasedRecords is the maximum number of an order's records that one transaction erases. The others are
// left to the next call.
const maxErasedRecords = 40

// EraseCustomer executes the next step of the erasure of a customer's personal data. The first step deletes
// the customer. Each further step erases an order, or some records of a large order. Callers repeat it
// until the result is erased.
//
// Errors: commerce.NotFound, model.DerivationUnavailable, and errors from mutate.
func (m Mutations) EraseCustomer(ctx context.Context, caller Caller, cmd commerce.CustomerErasure) (*commerce.DeletedCustomer, error) {
	decode := model.DecodeDeletedCustomer
	return mutate(ctx, m.table, &model.WriteEraseCustomer, caller, cmd, decode, func(ctx context.Context, c *change) (*commerce.DeletedCustomer, error) {
		if err := c.Derivations.CheckReadable(model.OrderErased); err != nil {
			return nil, err
		}
		records, err := c.read(ctx, model.CustomerByID.Key(&c.KeyBuilder, cmd.CustomerID), model.DeletedCustomerKey(cmd.CustomerID))
		if err != nil {
			return nil, err
		}
		customer, stored := records[0], records[1]
		deleted, unchanged := &commerce.DeletedCustomer{ID: cmd.CustomerID, DeletedAt: c.table.Now()}, table.RecordNotExists
		if stored != nil {
			if deleted, err = decode(model.Reader{Record: stored}); err != nil {
				return nil, err
			}
			unchanged = table.AttributesUnchanged(stored, "erasure", "erasedTo")
		}
		switch {
		case customer == nil && stored == nil:
			return nil, commerce.NewNotFound("customer", cmd.CustomerID, "customerId")
		case customer != nil || deleted.Erasure == "":
			deleted.Erasure, deleted.ErasedTo = commerce.ErasureIncomplete, ""
			err = c.removeCustomer(customer)
		case deleted.Erased():
			return deleted, nil
		default:
			if deleted.ErasedTo, err = c.eraseRecords(ctx, deleted.ID, deleted.ErasedTo); deleted.ErasedTo == "" {
				deleted.Erasure = commerce.ErasureComplete
			}
		}
		c.put(model.DeletedCustomerRecord(&c.KeyBuilder, *deleted), unchanged)
		return deleted, err
	})
}

// removeCustomer deletes a customer's record, its edges and its claims. The record can be nil.
//
// Errors: model.ErrCorrupt.
func (c *change) removeCustomer(current model.Record) error {
	if current == nil {
		return nil
	}
	customer, err := c.table.DecodeCustomer(model.Reader{Record: current})
	if err != nil {
		return err
	}
	records := model.EncodeWithEdges(c.oldKeyBuilder(), customer)
	c.remove(records[0], table.AttributesUnchanged(current, model.AttrVersion, "updatedAt"))
	for _, edge := range records[1:] {
		if !isClaim(model.KeyOf(edge)) {
			c.remove(edge, nil)
		}
	}
	c.moveClaims(records, nil)
	return nil
}

// eraseRecords erases the records that follow a position in the customer's orders, and returns the new
// position, or "" if no order is left (see commerce.DeletedCustomer.ErasedTo). The first transaction for
// an order marks it, so later mutations add no personal data to the records that are left.
//
// Errors: model.ErrCorrupt, errors from table.WrapError.
func (c *change) eraseRecords(ctx context.Context, customer commerce.CustomerID, position string) (string, error) {
	id, lastSK, started := strings.Cut(position, " ")
	if !started {
		p := &model.CustomerOrders.AccessPattern
		copies, _, err := c.table.QueryUpTo(ctx, p, c.Build(p.PK, string(customer)), string(p.SK), model.Range{}.Remaining(id, true), 1, true)
		if err != nil || len(copies) == 0 {
			return "", err
		}
		id = strings.TrimPrefix(copies[0].Text(model.AttrSK), string(p.SK))
	}
	b := c.oldKeyBuilder()
	k := model.OrderByID.Key(b, commerce.OrderID(id))
	if b.Err != nil {
		return id, nil // other software wrote a record that is no order
	}
	records, err := c.read(ctx, k)
	if err != nil {
		return "", err
	}
	if records[0] == nil || model.TextOf(records[0], model.AttrCustomerID) != string(customer) {
		return id, nil // check reports the copy
	}
	before, err := c.table.DecodeOrder(model.Reader{Record: records[0]})
	if err != nil {
		return "", err
	}
	after := *before
	if model.Erase(&after); !model.EqualRecords(model.EncodeAttributes(before), model.EncodeAttributes(&after)) {
		if err := c.updateOrder(ctx, records[0], before, &after, commerce.Event{Type: commerce.EventErased}, nil); err != nil {
			return "", err
		}
	}
	rest, more, err := c.table.QueryUpTo(ctx, model.OrderCollection, k.PK, "", model.Range{}.Remaining(lastSK, true), maxErasedRecords, true)
	if err != nil {
		return "", err
	}
	for _, r := range rest {
		if err := c.eraseRecord(r.Attributes()); err != nil {
			return "", err
		}
		lastSK = r.Text(model.AttrSK)
	}
	if more {
		return id + " " + lastSK, nil
	}
	return id, nil
}

// eraseRecord removes personal data from a record in the item collection of an order, such as an event. The
// order and its edges, which updateOrder changes, stay as they are.
//
// Errors: model.ErrCorrupt.
func (c *change) eraseRecord(r model.Record) error {
	e := model.EntityOf(model.KeyOf(r))
	if e == nil || e.BaseEntity() == &model.EntityOrder || e.Kind == model.Copy {
		return nil
	}
	before, after, err := c.table.ReencodeErased(e, r)
	if err == nil && !model.EqualRecords(before[0], after[0]) {
		c.update(before[0], after[0], table.RecordExists)
		c.updateEdges(r, before, after)
		c.moveClaims(before, after)
	}
	return err
}

// keepErased returns commerce.InvalidInput if a change would add personal data to an order whose customer is
// erased.
func keepErased(after *commerce.Order, e commerce.Event) error {
	order, event := *after, e
	model.Erase(&order)
	if model.Erase(&event); event.Note == e.Note && model.EqualRecords(model.EncodeAttributes(&order), model.EncodeAttributes(after)) {
		return nil
	}
	return commerce.NewInvalidInput(commerce.FieldPath("orderId"), "is an order whose customer was erased, so it gets no further addresses, contacts, notes or custom fields")
}
