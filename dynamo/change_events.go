package dynamo

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/commerce"
)

// happened adds an event of an order to the transaction: to the order's timeline, and as its customer's last one.
//
// The record of the last event is what gives all events of a customer one order. Whoever writes an event writes that record too, so
// two changes of one customer's orders cannot be committed at once, and each is committed only behind what it wrote: the ids of
// a customer's events rise in the order of their commits. Nobody reads for that. A change that comes too late, because the clock is
// behind another server's or somebody was faster in the same millisecond, is told of the last event and planned again behind it.
func (c *change) happened(o commerce.Order, e commerce.Event, at time.Time) error {
	id, err := c.store.newULID(at)
	if err != nil {
		return err
	}
	e.ID, e.OrderID, e.At, e.Actor = commerce.EventID(id), o.ID, at, c.caller.Name
	c.create(eventRecord(&c.keyBuilder, e))
	last := lastEventRecord(&c.keyBuilder, o.CustomerID, e)
	c.put(last, c.behind(keyOf(last), last["eventId"]))
	return nil
}

// behind is the condition that the last event at k is before an event of that id, or that there is none. An id that no later time
// can get behind, of a far future or of no time at all, was not made by a clock that tells the time. It must not hold the customer's
// orders for ever: the record has to be as it was told, and the ids rise anew from the one that replaces it.
func (c *change) behind(k keys, id types.AttributeValue) condition {
	at := reader{record: record{"eventId": id}}
	if last, ok := c.stands(k); ok {
		told := reader{record: last}
		if told.text("eventId") == "" || told.text("eventId") >= at.text("eventId") {
			return still(last, "eventId")
		}
	}
	return either(absent, is("eventId", "<", id))
}

// lastEventTime is when the last event of a customer's orders happened, as far as a transaction has told; the zero time where none has.
func (c *change) lastEventTime(id commerce.CustomerID) time.Time {
	last, _ := c.stands(lastEventKey(c.former(), id))
	told := reader{record: last}
	at, _ := commerce.EventID(told.text("eventId")).Time()
	return at
}
