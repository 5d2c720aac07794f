package dynamo

import (
	"context"
	"slices"
	"time"

	"github.com/ordergraph/ordergraph/commerce"
)

// lateOrders are orders of a customer that changed at one moment, later than the last event tells,
// as far as they were read.
type lateOrders struct {
	ids []commerce.OrderID
	at  time.Time
}

// maxLateOrders is how many orders of one moment are remembered.
const maxLateOrders = 8

// later returns those that changed later, all of them where they changed at the same moment.
func (o lateOrders) later(other lateOrders) lateOrders {
	switch {
	case other.at.After(o.at):
		return other
	case other.at.Equal(o.at):
		for _, id := range other.ids {
			if len(o.ids) < maxLateOrders && !slices.Contains(o.ids, id) {
				o.ids = append(slices.Clip(o.ids), id)
			}
		}
	}
	return o
}

// lateByCopy is the customer's order that was updated last, where the last event is older than
// that. Every change that writes an event updates the copy of its order.
func (u *customerUnit) lateByCopy(s *Store) (lateOrders, bool) {
	last, ok := s.position(lastEventID(u.lastEvent)).Time()
	return u.updated, ok && u.updated.at.After(last)
}

// lateByEvent is the order, where one of its two records is older than its last event. An import
// that puts an older order over it puts the customer's older last event there, too.
func (u *orderUnit) lateByEvent() (lateOrders, bool) {
	if u.truth == nil || u.lastOwn.IsZero() {
		return lateOrders{}, false
	}
	own, theirs := updatedAt(u.main), updatedAt(u.copies[u.truth.CustomerID])
	return lateOrders{[]commerce.OrderID{u.id}, u.lastOwn}, own.Before(u.lastOwn) || theirs.Before(u.lastOwn)
}

// updatedAt is when a record was updated; the zero time where it does not say.
func updatedAt(rec record) time.Time {
	at := reader{record: rec}
	return at.updatedOr(time.Time{})
}

// readLater reads the last events of the orders to compare with, and then the customer's last event
// again. A sound record includes everything that was committed before it was read.
func (u *customerUnit) readLater(ctx context.Context, c *check) error {
	u.later = nil
	if u.lastEvent == nil {
		return nil
	}
	for _, order := range slices.Concat(u.byCopy.ids, u.byEvent.ids) {
		last, found, err := c.reads.lastOwnEvent(ctx, order, u.id)
		if err != nil {
			return err
		}
		if found && (u.later == nil || last.ID > u.later.ID) {
			u.later = &last
		}
	}
	if u.later == nil {
		return nil
	}
	k := lastEventKey(&keyBuilder{shards: c.s.shards}, u.id)
	found, err := c.reads.get(ctx, consistent, k)
	u.lastEvent = found[k]
	return err
}

// lastOwnEvent returns the last event with a position of a customer's order, and whether there is
// one.
//
// Errors: those of failed.
func (r *checkReader) lastOwnEvent(ctx context.Context, order commerce.OrderID, customer commerce.CustomerID) (last commerce.Event, found bool, err error) {
	b := &keyBuilder{shards: r.s.shards}
	partition := orderKey(b, order).PK
	if b.err != nil {
		return last, false, nil // there can be no such order
	}
	owner := ""
	err = r.collection(ctx, OrderCollection, partition, func(e *Entity, rec record) {
		switch e.Name {
		case entityOrder.Name:
			owner = textOf(rec, attrCustomerID)
		case entityOrderEvent.Name:
			// They come in the order of their IDs.
			if event, err := readEvent(rec); err == nil && isOwnEvent(rec) && r.s.position(event.ID) != "" {
				last, found = *event, true
			}
		}
	})
	return last, found && owner == string(customer), err
}

// isOutdated reports whether one of the orders that were read has an event after the last one.
func (u *customerUnit) isOutdated(s *Store) bool {
	last := s.position(lastEventID(u.lastEvent))
	return u.later != nil && last != "" && u.later.ID > last
}

// replacement is the fix that makes have the record want, which has the same key.
func replacement(have, want record) fix {
	w := fix{key: keyOf(have), have: have, set: record{}}
	for name, v := range want {
		if name != attrPK && name != attrSK && !sameValue(v, have[name]) {
			w.set[name] = v
		}
	}
	for _, name := range attributeNames(have) {
		if want[name] == nil {
			w.remove = append(w.remove, name)
		}
	}
	return w
}
