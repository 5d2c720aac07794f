package change

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/derive"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// ClaimOrders makes the oldest order of the guest with the customer's email address an order of the customer.
// Callers repeat it until the result is NotFound, because no such order is left.
//
// Errors: commerce.NotFound, model.DerivationUnavailable, and errors from mutate.
func (m Mutations) ClaimOrders(ctx context.Context, caller Caller, cmd commerce.GuestOrdersClaim) (*commerce.Order, error) {
	return mutate(ctx, m.table, &model.WriteClaimOrders, caller, cmd, m.table.DecodeOrder, func(ctx context.Context, c *change) (*commerce.Order, error) {
		if err := c.Derivations.CheckReadable(model.OrderGuests); err != nil {
			return nil, err
		}
		customer, record, err := c.readCustomer(ctx, cmd.CustomerID, "customerId", nil)
		if err != nil {
			return nil, err
		}
		guest, err := commerce.GuestID(customer.Email)
		if err != nil {
			return nil, fmt.Errorf("%w: customer %s: %w", model.ErrCorrupt, customer.ID, err)
		}
		// An order that the guest places after this read creates or changes the last event, so the
		// transaction fails.
		guestsLast := model.LastEvent.Key(&c.KeyBuilder, guest)
		last, err := c.read(ctx, guestsLast, model.LastEvent.Key(&c.KeyBuilder, customer.ID))
		if err != nil {
			return nil, err
		}
		current, only, err := c.oldestOrder(ctx, guest, guestsLast.PK)
		if err == nil && current == nil {
			err = commerce.NewNoGuestOrder(customer.ID)
		}
		if err != nil {
			return nil, err
		}
		before, err := c.table.DecodeOrder(model.Reader{Record: current})
		if err != nil {
			return nil, err
		}
		c.require(model.KeyOf(record), table.AttributesUnchanged(record, "email", "accountRepId"))
		switch {
		case only && last[0] != nil:
			c.remove(last[0], table.AttributesUnchanged(last[0], "eventId"))
		case only:
			c.addConditionCheck(guestsLast, table.RecordNotExists)
		}
		return c.moveOrder(ctx, current, before, customer)
	})
}

// oldestOrder returns the record of the oldest order in the partition of a guest, and whether it is the only
// one. If there is none, the record is nil.
//
// Errors: model.ErrCorrupt, errors from table.WrapError.
func (c *change) oldestOrder(ctx context.Context, guest commerce.CustomerID, partition string) (order model.Record, only bool, err error) {
	p, claimed := &model.CustomerOrders.AccessPattern, ""
	for {
		copies, _, err := c.table.QueryUpTo(ctx, p, partition, string(p.SK), model.Range{}, 2, true)
		if err != nil || len(copies) == 0 {
			return nil, false, err
		}
		id := strings.TrimPrefix(copies[0].Text(model.AttrSK), string(p.SK))
		records, err := c.read(ctx, model.OrderByID.Key(&c.KeyBuilder, commerce.OrderID(id)))
		switch {
		case err != nil:
			return nil, false, err
		case model.TextOf(records[0], model.AttrCustomerID) == string(guest):
			return records[0], len(copies) == 1, nil
		case id == claimed:
			return nil, false, fmt.Errorf("%w: order %s does not belong to the guest who has a copy of it", model.ErrCorrupt, id)
		}
		claimed = id // by another client, since the Query
	}
}

// moveOrder makes an order of a guest an order of a customer. current is the order's own record in the table.
//
// Errors: model.ErrCorrupt, errors from table.WrapError.
func (c *change) moveOrder(ctx context.Context, current model.Record, before *commerce.Order, to *commerce.Customer) (*commerce.Order, error) {
	lastEvent, err := c.lastEventTime(ctx, to.ID)
	if err != nil {
		return nil, err
	}
	after := *before
	after.CustomerID, after.AccountRepID = to.ID, to.AccountRepID
	after.Version, after.UpdatedAt = before.Version+1, c.table.TimeAfter(before.UpdatedAt, lastEvent)
	was, is := *before, after // with all line items, also those that the order's record does not embed
	if was.Items, err = c.allItems(ctx, before); err != nil {
		return nil, err
	}
	is.Items = was.Items
	deltas, err := derive.Deltas(c.Layout, derive.Change{Before: &was, After: &is})
	if err != nil {
		return nil, err
	}
	oldRecords, newRecords := model.EncodeWithEdges(c.oldKeyBuilder(), before), model.EncodeWithEdges(&c.KeyBuilder, &after)
	c.update(oldRecords[0], newRecords[0], table.AttributesUnchanged(current, model.AttrVersion, "updatedAt", "status"))
	c.remove(oldRecords[1], nil)
	c.put(newRecords[1].Merge(c.unchangedAttributes(current, oldRecords[0], newRecords[0])), table.RecordNotExists)
	c.updateEdges(current, slices.Delete(oldRecords, 1, 2), slices.Delete(newRecords, 1, 2))
	for _, item := range is.Items {
		c.updateItemRecord(was, is, item.SKU)
	}
	first := to.OrderCount != nil && *to.OrderCount == 0
	if err := c.addEvent(after, commerce.Event{Type: commerce.EventClaimed}, after.UpdatedAt, first, deltas); err != nil {
		return nil, err
	}
	return &after, c.addDerived(ctx, deltas)
}
