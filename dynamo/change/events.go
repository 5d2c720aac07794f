package change

import (
	"context"
	"time"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// addEvent adds an order event to the transaction: to the order's timeline, and to the record with
// the customer's last event. first reports whether it is the event of the customer's first order.
func (c *change) addEvent(o commerce.Order, e commerce.Event, at time.Time, first bool) error {
	id, err := c.table.NewULID(at)
	if err != nil {
		return err
	}
	e.ID, e.OrderID, e.At, e.Actor = commerce.EventID(id), o.ID, at, c.caller.Name
	c.create(model.EventRecord(&c.KeyBuilder, e))
	// Each new event of the customer's orders replaces this record, and must have a higher ID. So the
	// IDs of a customer's events follow the order of the commits.
	last := model.LastEventRecord(&c.KeyBuilder, o.CustomerID, e)
	c.put(last, c.lastEventCondition(last, first))
	return nil
}

// lastEventCondition returns the condition that a customer's new last event has a higher ID than all
// earlier events of the customer's orders. If the condition fails, the next attempt uses a higher ID. For
// the customer's first order, the stored event may be missing.
func (c *change) lastEventCondition(last model.Record, first bool) table.Condition {
	current, read := c.known[model.KeyOf(last)]
	higher := table.CompareAttribute("eventId", "<", last["eventId"])
	switch {
	case !read && first:
		return table.AnyOf(table.RecordNotExists, higher)
	case !read:
		// Without the stored event, the condition fails. Then lastEventTime looks at the orders.
		return higher
	case current == nil:
		return table.RecordNotExists
	case c.table.EventPosition(model.LastEventID(current)) == "":
		// The stored event has an invalid ID, which could be higher than every new ID. So only require
		// that it has not changed.
		return table.AttributesUnchanged(current, "eventId")
	default:
		return higher
	}
}

// lastEventTime returns the time of the customer's last event. If c.known does not contain this
// event, lastEventTime returns the zero time, and does not read the event. If the event is known to
// be missing or to have an invalid ID, lastEventTime returns the time of the last update of the
// customer's orders.
//
// It returns errors from table.WrapError.
func (c *change) lastEventTime(ctx context.Context, id commerce.CustomerID) (time.Time, error) {
	k := model.LastEvent.Key(c.oldKeyBuilder(), id)
	last, read := c.known[k]
	if !read {
		return time.Time{}, nil
	}
	if position := c.table.EventPosition(model.LastEventID(last)); position != "" {
		at, _ := position.Time()
		return at, nil
	}
	return c.table.LastOrderUpdate(ctx, k.PK)
}
