package change

import (
	"context"
	"time"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/derive"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// addEvent adds an order event to the transaction: to the order's timeline, and to the record with
// the customer's last event. first reports whether it is the event of the customer's first order.
// The record with the last event also stores derived numbers, so addEvent writes their deltas.
func (c *change) addEvent(o commerce.Order, e commerce.Event, at time.Time, first bool, deltas []derive.Delta) error {
	id, err := c.table.NewULID(at)
	if err != nil {
		return err
	}
	e.ID, e.OrderID, e.Version, e.At, e.Actor = commerce.EventID(id), o.ID, o.Version, at, c.caller.Name
	if o.Erased {
		model.Erase(&e)
	}
	if e.NoteCustomerID.IsGuest() {
		e.NoteCustomerID = commerce.AnyGuest // not the hash of an address, which would remain after a claim
	}
	c.create(model.EventRecord(&c.KeyBuilder, e))
	// Each new event of the customer's orders replaces this record, and must have a higher ID. So the
	// IDs of a customer's events follow the order of the commits.
	c.writeLastEvent(model.LastEventRecord(&c.KeyBuilder, o.CustomerID, e), first, reservationChange(deltas))
	return nil
}

// reservationChange returns the change of what a customer's open orders reserve.
func reservationChange(deltas []derive.Delta) commerce.Reservation {
	for _, d := range deltas {
		if d.Entity.Name == model.EntityLastEvent.Name {
			return commerce.Reservation{OpenOrders: d.Int(model.AttrOpenOrders), Units: d.Int(model.AttrReservedUnits)}
		}
	}
	return commerce.Reservation{}
}

// writeLastEvent replaces the event in the record with a customer's last event, and adds more to the
// sums in this record. It does not read the record. A missing sum counts as 0. The transaction fails
// if a sum then exceeds its limit. If the customer has no earlier orders, writeLastEvent also stores
// that the sums include all orders.
func (c *change) writeLastEvent(last model.Record, first bool, more commerce.Reservation) {
	k := model.KeyOf(last)
	known := c.known[k]
	if first && known == nil {
		last[model.AttrReservationsCounted] = model.Bool(true)
	}
	when, deltas := c.lastEventCondition(last, first), model.Record{}
	limits := c.reservationLimits()
	for _, sum := range []struct {
		name         string
		delta, limit int
	}{{model.AttrOpenOrders, more.OpenOrders, limits.OpenOrders}, {model.AttrReservedUnits, more.Units, limits.Units}} {
		if _, readable := storedSum(known, sum.name); sum.delta == 0 || !readable {
			continue // if other software has stored a text or a fraction, keep it
		}
		deltas[sum.name] = model.Num(sum.delta)
		countable := table.AttributeIsNumber(sum.name)
		if sum.delta > 0 && sum.limit > 0 {
			countable = table.CompareAttribute(sum.name, "<=", model.Num(sum.limit-sum.delta))
		}
		when = table.AllOf(when, table.AnyOf(table.AttributeNotExists(sum.name), countable))
	}
	var e table.Expression
	text := e.IncrementAndSet(deltas, last)
	var absent []string
	for _, a := range model.AttributesOf(&model.EntityLastEvent) {
		if a.Optional && last[a.Name] == nil {
			absent = append(absent, e.ExternalPlaceholder(a.Name))
		}
	}
	if len(absent) > 0 {
		text += " " + table.UpdateExpression(nil, absent)
	}
	c.addUpdate(k, text, &e, model.TransactWriteUnits(known, last), when)
}

// reservationLimits returns the limits that apply to the caller.
func (c *change) reservationLimits() commerce.ReservationLimits {
	if c.caller.scope().All() {
		return commerce.ReservationLimits{}
	}
	return c.limits
}

// checkReservation checks the deltas of what a customer's open orders reserve. If c.known does not
// contain the customer's sums, checkReservation assumes 0, and the transaction fails if a sum exceeds
// its limit.
//
// It returns commerce.ReservationLimit.
func (c *change) checkReservation(id commerce.CustomerID, deltas []derive.Delta, path ...string) error {
	last, _ := c.knownRecord(model.LastEvent.Key(c.oldKeyBuilder(), id))
	openOrders, _ := storedSum(last, model.AttrOpenOrders)
	units, _ := storedSum(last, model.AttrReservedUnits)
	return c.reservationLimits().Check(commerce.Reservation{OpenOrders: openOrders, Units: units}, reservationChange(deltas), path)
}

// storedSum returns a sum in the record of a customer's last event. If the sum is missing, it returns
// 0. If other software has stored a value that is no whole number, it returns 0 and false. Such a sum
// has no limit, and writeLastEvent keeps it.
func storedSum(last model.Record, name string) (sum int, readable bool) {
	r := model.Reader{Record: last}
	sum = r.Number(name)
	return sum, r.Err() == nil
}

// lastEventCondition returns the condition that a customer's new last event has a higher ID than all
// earlier events of the customer's orders. If the condition fails, the next attempt uses a higher ID. For
// the customer's first order, the stored event may be missing. If it exists, other first orders were
// placed at the same time, and all of them must be counted.
func (c *change) lastEventCondition(last model.Record, first bool) table.Condition {
	current, read := c.known[model.KeyOf(last)]
	higher := table.CompareAttribute("eventId", "<", last["eventId"])
	switch {
	case !read && first:
		return table.AnyOf(table.RecordNotExists, table.AllOf(higher, table.CompareAttribute(model.AttrReservationsCounted, "=", model.Bool(true))))
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
