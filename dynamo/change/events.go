package change

import (
	"time"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// happened adds an event of an order to the transaction: to the order's timeline, and as its
// customer's last one.
//
// The record of the last event is what gives all events of a customer one order. Whoever writes an
// event writes that record too, so two changes of one customer's orders cannot be committed at
// once, and each is committed only behind what it wrote: the ids of a customer's events rise in the
// order of their commits. Nobody reads for that. A change that comes too late, because the clock is
// behind another server's or somebody was faster in the same millisecond, is told of the last event
// and planned again behind it.
func (c *change) happened(o commerce.Order, e commerce.Event, at time.Time) error {
	id, err := c.table.NewULID(at)
	if err != nil {
		return err
	}
	e.ID, e.OrderID, e.At, e.Actor = commerce.EventID(id), o.ID, at, c.caller.Name
	c.create(model.EventRecord(&c.KeyBuilder, e))
	last := model.LastEventRecord(&c.KeyBuilder, o.CustomerID, e)
	c.put(last, c.behind(last))
	return nil
}

// behind is the condition that the last event in the table has a lower ID than last, or that there
// is none. An event without a position must not block the customer's orders for ever. It is
// replaced if it is as it was read, and the IDs rise from there.
func (c *change) behind(last model.Record) table.Condition {
	if have, ok := c.stands(model.KeyOf(last)); ok && c.table.Position(model.LastEventID(have)) == "" {
		return table.Still(have, "eventId")
	}
	return table.Either(table.Absent, table.Is("eventId", "<", last["eventId"]))
}

// lastEventTime is when the last event of a customer's orders happened, as far as a transaction has
// told; the zero time where none has.
func (c *change) lastEventTime(id commerce.CustomerID) time.Time {
	last, _ := c.stands(model.LastEvent.Key(c.former(), id))
	at, _ := model.LastEventID(last).Time()
	return at
}
