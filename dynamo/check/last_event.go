package check

import (
	"context"
	"slices"
	"time"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// newerOrders are a customer's orders that may have a newer event than the stored last event.
type newerOrders struct {
	ids []commerce.OrderID
	// at is the time of the last change, which is the same for all orders.
	at time.Time
}

const maxNewerOrders = 8

// laterOf returns the later of o and other. For equal times, it joins up to maxNewerOrders orders.
func (o newerOrders) laterOf(other newerOrders) newerOrders {
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

// findNewerCopies returns the customer's most recently updated orders, and whether they are newer
// than the customer's stored last event, which may then be outdated.
func (v *customerVerifier) findNewerCopies(t *table.Table) (newerOrders, bool) {
	last, ok := t.EventPosition(model.LastEventID(v.lastEvent)).Time()
	return v.lastUpdated, ok && v.lastUpdated.at.After(last)
}

// findNewerEvents returns the order with the time of its last event. If the order's own record or
// its copy is older than this event, the second result is true. In this case, an import may have
// overwritten the customer's stored last event.
func (v *orderVerifier) findNewerEvents() (newerOrders, bool) {
	if v.decoded == nil || v.lastEventAt.IsZero() {
		return newerOrders{}, false
	}
	ownTime, copyTime := updatedAt(v.orderRecord), updatedAt(v.copies[v.decoded.CustomerID])
	return newerOrders{[]commerce.OrderID{v.id}, v.lastEventAt}, ownTime.Before(v.lastEventAt) || copyTime.Before(v.lastEventAt)
}

// updatedAt returns the time of a record's last update, or the zero time if none is stored.
func updatedAt(rec model.Record) time.Time {
	at := model.Reader{Record: rec}
	return at.UpdatedAtOr(time.Time{})
}

// readNewestEvent stores the newest last event of the orders in newerCopies and newerEvents.
func (v *customerVerifier) readNewestEvent(ctx context.Context, c *check) error {
	v.newestEvent = nil
	if v.lastEvent == nil {
		return nil
	}
	for _, order := range slices.Concat(v.newerCopies.ids, v.newerEvents.ids) {
		last, found, err := c.client.lastOrderEvent(ctx, order, v.id)
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
	// Read the stored event last, so that a concurrent mutation does not look like an inconsistency.
	k := model.LastEvent.Key(c.table.KeyBuilder(), v.id)
	found, err := c.client.get(ctx, consistent, k)
	v.lastEvent = found[k]
	return err
}

// lastEventOutdated reports whether an order has a newer event than the stored last event.
func (v *customerVerifier) lastEventOutdated(t *table.Table) bool {
	last := t.EventPosition(model.LastEventID(v.lastEvent))
	return v.newestEvent != nil && last != "" && v.newestEvent.ID > last
}
