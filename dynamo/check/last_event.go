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

// newerOrders are orders of a customer that changed at one moment, later than the last event tells,
// as far as they were read.
type newerOrders struct {
	ids []commerce.OrderID
	at  time.Time
}

// maxNewerOrders is how many orders of one moment are remembered.
const maxNewerOrders = 8

// latest returns those that changed later, all of them where they changed at the same moment.
func (o newerOrders) latest(other newerOrders) newerOrders {
	switch {
	case other.at.After(o.at):
		return other
	case other.at.Equal(o.at):
		for _, id := range other.ids {
			if len(o.ids) < maxNewerOrders && !slices.Contains(o.ids, id) {
				o.ids = append(slices.Clip(o.ids), id)
			}
		}
	}
	return o
}

// findNewerCopies is the customer's order that was updated last, where the last event is older than
// that. Every change that writes an event updates the copy of its order.
func (v *customerVerifier) findNewerCopies(t *table.Table) (newerOrders, bool) {
	last, ok := t.Position(model.LastEventID(v.lastEvent)).Time()
	return v.lastUpdated, ok && v.lastUpdated.at.After(last)
}

// findNewerEvents is the order, where one of its two records is older than its last event. An import
// that puts an older order over it puts the customer's older last event there, too.
func (v *orderVerifier) findNewerEvents() (newerOrders, bool) {
	if v.decoded == nil || v.lastEventAt.IsZero() {
		return newerOrders{}, false
	}
	own, theirs := updatedAt(v.orderRecord), updatedAt(v.copies[v.decoded.CustomerID])
	return newerOrders{[]commerce.OrderID{v.id}, v.lastEventAt}, own.Before(v.lastEventAt) || theirs.Before(v.lastEventAt)
}

// updatedAt is when a record was updated; the zero time where it does not say.
func updatedAt(rec model.Record) time.Time {
	at := model.Reader{Record: rec}
	return at.UpdatedOr(time.Time{})
}

// readNewestEvent reads the last events of the orders to compare with, and then the customer's last event
// again. A sound record includes everything that was committed before it was read.
func (v *customerVerifier) readNewestEvent(ctx context.Context, c *check) error {
	v.newestEvent = nil
	if v.lastEvent == nil {
		return nil
	}
	for _, order := range slices.Concat(v.newerCopies.ids, v.newerEvents.ids) {
		last, found, err := c.client.LastOrderEvent(ctx, order, v.id)
		if err != nil {
			return err
		}
		if found && (v.newestEvent == nil || last.ID > v.newestEvent.ID) {
			v.newestEvent = &last
		}
	}
	if v.newestEvent == nil {
		return nil
	}
	k := model.LastEvent.Key(c.table.KeyBuilder(), v.id)
	found, err := c.client.Get(ctx, repair.Consistent, k)
	v.lastEvent = found[k]
	return err
}

// lastEventOutdated reports whether one of the orders that were read has an event after the last one.
func (v *customerVerifier) lastEventOutdated(t *table.Table) bool {
	last := t.Position(model.LastEventID(v.lastEvent))
	return v.newestEvent != nil && last != "" && v.newestEvent.ID > last
}
