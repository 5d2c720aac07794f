package change

import (
	"time"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// addEvent adds an event of an order to the transaction: to the order's timeline, and as its
// customer's last event.
//
// The record of the last event orders all events of a customer. Each event also writes this record,
// so only one change of a customer's orders can commit at a time. The new event must have a higher
// ID than the last event. So the IDs of a customer's events increase in commit order, without a
// read. A conflict occurs if the clock is behind another server's, or after another event in the
// same millisecond. Then the transaction returns the last event and the change is planned again
// with a higher ID.
func (c *change) addEvent(o commerce.Order, e commerce.Event, at time.Time) error {
	id, err := c.table.NewULID(at)
	if err != nil {
		return err
	}
	e.ID, e.OrderID, e.At, e.Actor = commerce.EventID(id), o.ID, at, c.caller.Name
	c.create(model.EventRecord(&c.KeyBuilder, e))
	last := model.LastEventRecord(&c.KeyBuilder, o.CustomerID, e)
	c.put(last, c.afterLastEvent(last))
	return nil
}

// afterLastEvent returns the condition that the table has no last event, or one with a lower ID
// than last. A last event with an invalid ID must not block the customer's orders forever. It is
// replaced if it has not changed since the read, and IDs increase from there.
func (c *change) afterLastEvent(last model.Record) table.Condition {
	if current, ok := c.knownRecord(model.KeyOf(last)); ok && c.table.EventPosition(model.LastEventID(current)) == "" {
		return table.Unchanged(current, "eventId")
	}
	return table.AnyOf(table.RecordMissing, table.Compare("eventId", "<", last["eventId"]))
}

// lastEventTime returns the time of the last event of a customer's orders, or the zero time if the
// change does not know it. It does not read the event.
func (c *change) lastEventTime(id commerce.CustomerID) time.Time {
	last, _ := c.knownRecord(model.LastEvent.Key(c.oldKeyBuilder(), id))
	at, _ := model.LastEventID(last).Time()
	return at
}
