package change

import (
	"time"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// addEvent adds an event of an order to the transaction. It writes the event twice: to the timeline
// of the order, and as the last event of the order's customer.
//
// The record of the last event defines the order of all events of a customer. Every event writes
// this record, so the changes of a customer's orders are committed one after another. A condition
// requires that the new event has a higher ID than the last event. Therefore the IDs of a
// customer's events increase in the order of the commits, without a read.
//
// The condition fails if the local clock is behind another server's clock. It also fails if two
// events have the same millisecond. DynamoDB then returns the last event, and the change is planned
// again with a higher ID.
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

// afterLastEvent returns the condition that the customer has no last event, or a last event with a
// lower ID than last.
//
// A last event with an invalid ID must not block the customer's orders forever. It is replaced if
// it has not changed since the read. The IDs of later events increase again.
func (c *change) afterLastEvent(last model.Record) table.Condition {
	if current, ok := c.knownRecord(model.KeyOf(last)); ok && c.table.EventPosition(model.LastEventID(current)) == "" {
		return table.Unchanged(current, "eventId")
	}
	return table.AnyOf(table.RecordMissing, table.Compare("eventId", "<", last["eventId"]))
}

// lastEventTime returns the time of the customer's last event. It does not read the event. It
// returns the zero time if the change has not read the event.
func (c *change) lastEventTime(id commerce.CustomerID) time.Time {
	last, _ := c.knownRecord(model.LastEvent.Key(c.oldKeyBuilder(), id))
	at, _ := model.LastEventID(last).Time()
	return at
}
