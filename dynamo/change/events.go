package change

import (
	"time"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// addEvent adds an order event to the transaction: to the order's timeline, and to the record with
// the customer's last event.
func (c *change) addEvent(o commerce.Order, e commerce.Event, at time.Time) error {
	id, err := c.table.NewULID(at)
	if err != nil {
		return err
	}
	e.ID, e.OrderID, e.At, e.Actor = commerce.EventID(id), o.ID, at, c.caller.Name
	c.create(model.EventRecord(&c.KeyBuilder, e))
	// Each new event of the customer's orders replaces this record, and must have a higher ID. So the
	// IDs of a customer's events follow the order of the commits.
	last := model.LastEventRecord(&c.KeyBuilder, o.CustomerID, e)
	c.put(last, c.lastEventCondition(last))
	return nil
}

// lastEventCondition returns the condition that a customer's new last event has a higher ID than
// the stored event. If the condition fails, the next attempt uses a higher ID.
func (c *change) lastEventCondition(last model.Record) table.Condition {
	if current, ok := c.knownRecord(model.KeyOf(last)); ok && c.table.EventPosition(model.LastEventID(current)) == "" {
		// The stored event has an invalid ID, which could be higher than every new ID. So only require
		// that it has not changed.
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
