package change

import (
	"time"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// addEvent adds an order event to the transaction. It writes the event twice: to the order's
// timeline, and to the record that contains the customer's last event.
//
// The write to the last-event record has a condition: the new event must have a higher ID than the
// stored event. All events of a customer's orders write this record, and DynamoDB commits
// transactions that write the same record one after another. So each commit has a higher event ID
// than the commits before it, even though addEvent does not read the last event.
//
// The condition fails if another server's clock is ahead of the local clock, or if two events have
// the same millisecond. DynamoDB then returns the last event, and the next attempt uses a higher
// ID.
func (c *change) addEvent(o commerce.Order, e commerce.Event, at time.Time) error {
	id, err := c.table.NewULID(at)
	if err != nil {
		return err
	}
	e.ID, e.OrderID, e.At, e.Actor = commerce.EventID(id), o.ID, at, c.caller.Name
	c.create(model.EventRecord(&c.KeyBuilder, e))
	last := model.LastEventRecord(&c.KeyBuilder, o.CustomerID, e)
	c.put(last, c.lastEventCondition(last))
	return nil
}

// lastEventCondition returns the condition for writing the record last, which contains a customer's
// new last event. The condition is that the customer has no stored last event, or that the stored
// event has a lower ID.
//
// But if the stored event has an invalid ID, this condition could fail for every event of the
// customer's orders. So if c.known contains such an event, the condition is only that the event has
// not changed.
func (c *change) lastEventCondition(last model.Record) table.Condition {
	if current, ok := c.knownRecord(model.KeyOf(last)); ok && c.table.EventPosition(model.LastEventID(current)) == "" {
		return table.AttributesUnchanged(current, "eventId")
	}
	return table.AnyOf(table.RecordNotExists, table.CompareAttribute("eventId", "<", last["eventId"]))
}

// lastEventTime returns the time of the customer's last event. If c.known does not contain this
// event, lastEventTime returns the zero time. It does not read the event.
func (c *change) lastEventTime(id commerce.CustomerID) time.Time {
	last, _ := c.knownRecord(model.LastEvent.Key(c.oldKeyBuilder(), id))
	at, _ := model.LastEventID(last).Time()
	return at
}
