package check

import (
	"context"
	"slices"
	"time"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/repair"
	"github.com/ordergraph/ordergraph/dynamo/table"
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
func (u *customerUnit) lateByCopy(t *table.Table) (lateOrders, bool) {
	last, ok := t.Position(model.LastEventID(u.lastEvent)).Time()
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
func updatedAt(rec model.Record) time.Time {
	at := model.Reader{Record: rec}
	return at.UpdatedOr(time.Time{})
}

// readLater reads the last events of the orders to compare with, and then the customer's last event
// again. A sound record includes everything that was committed before it was read.
func (u *customerUnit) readLater(ctx context.Context, c *check) error {
	u.later = nil
	if u.lastEvent == nil {
		return nil
	}
	for _, order := range slices.Concat(u.byCopy.ids, u.byEvent.ids) {
		last, found, err := c.client.LastOwnEvent(ctx, order, u.id)
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
	k := model.LastEvent.Key(c.table.KeyBuilder(), u.id)
	found, err := c.client.Get(ctx, repair.Consistent, k)
	u.lastEvent = found[k]
	return err
}

// isOutdated reports whether one of the orders that were read has an event after the last one.
func (u *customerUnit) isOutdated(t *table.Table) bool {
	last := t.Position(model.LastEventID(u.lastEvent))
	return u.later != nil && last != "" && u.later.ID > last
}
