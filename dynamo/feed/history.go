package feed

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// history reads past events of an order, or of all orders of a customer, with strongly consistent
// reads. It omits events without a position.
type history interface {
	// lastEventID returns the ID of the last event. It returns an empty ID if there is no event.
	// Events that are committed later have higher IDs.
	lastEventID(ctx context.Context) (commerce.EventID, error)
	// events returns the events with IDs between from and last (inclusive). If more is true, it
	// returns only the first events of the range. until is the end of the range: last, or a later
	// event that was committed in the meantime.
	//
	// Errors: commerce.InvalidError if there are too many events, and the errors of table.WrapError.
	events(ctx context.Context, from, last commerce.EventID) (events []*commerce.Event, until commerce.EventID, more bool, err error)
	// invalidAfter returns the error for an event ID after which no subscription can resume.
	invalidAfter() error
}

// Limits on the reading of missed events.
const (
	// eventPageSize is the number of events that one request reads from a timeline.
	eventPageSize = 100
	// maxMissedEvents is the maximum number of events that a subscription to a customer may have
	// missed. maxMissedOrders is the maximum number of orders that may have changed in the meantime.
	maxMissedEvents = 10_000
	maxMissedOrders = 1_000
)

// orderHistory reads an order's timeline (AP32).
type orderHistory struct {
	feed      *Feed
	partition string
}

// lastEventID returns the last event of the timeline.
//
// If the event's time is ahead of the local clock, lastEventID also reads the last event of the
// order's customer (AP1, AP33). Events that follow the customer's last event were written by other
// software. They are ignored, because the next event of this program may have a lower ID.
func (h *orderHistory) lastEventID(ctx context.Context) (commerce.EventID, error) {
	t, now := h.feed.table, h.feed.latestPossibleID()
	id, err := h.lastEventUpTo(ctx, lowestIDAt(t.Now().Add(table.MaxClockSkew)))
	if err != nil || id <= now {
		return id, err
	}
	order, err := t.Get(ctx, &model.OrderByID.AccessPattern, model.Keys{PK: h.partition, SK: string(model.EntityOrder.SK)})
	if err != nil && !errors.Is(err, commerce.ErrNotFound) {
		return "", err
	}
	last := commerce.EventID("")
	if partition, unkeyed := model.EntityLastEvent.PK.Build(order.Text(model.AttrCustomerID)); unkeyed == nil {
		if last, err = (&customerHistory{feed: h.feed, partition: partition}).recordedLastEvent(ctx); err != nil {
			return "", err
		}
	}
	if id <= last {
		return id, nil
	}
	return h.lastEventUpTo(ctx, max(last, now))
}

// lastEventUpTo returns the highest event ID in the timeline that is at most the given ID. It
// ignores events by other software. It returns an empty ID if the timeline has no such event.
func (h *orderHistory) lastEventUpTo(ctx context.Context, to commerce.EventID) (commerce.EventID, error) {
	p, bounds := &model.EventsInRange.AccessPattern, model.Range{To: model.JustAfter(string(to))}
	for limit := 1; ; limit = eventPageSize {
		records, more, err := h.feed.table.Query(ctx, p, h.partition, string(p.SK), bounds, limit, false)
		if err != nil {
			return "", err
		}
		for _, r := range records {
			id := model.EventIDFromKey(r.Attributes())
			if model.IsOwnEvent(r.Attributes()) {
				return id, nil
			}
			bounds.To = string(id)
		}
		if !more || bounds.To == "" {
			return "", nil
		}
	}
}

func (h *orderHistory) events(ctx context.Context, from, last commerce.EventID) ([]*commerce.Event, commerce.EventID, bool, error) {
	var events []*commerce.Event
	for next := from; ; {
		page, after, err := h.feed.timelinePage(ctx, h.partition, next, last)
		if err != nil {
			return nil, "", false, err
		}
		// Return at least two events if the timeline has them, because the caller may already have the
		// first event. A page may contain no readable event.
		if events = append(events, page...); after == "" || len(events) > 1 {
			return events, last, after != "", nil
		}
		next = after
	}
}

func (h *orderHistory) invalidAfter() error {
	return commerce.WithArgument("after", commerce.NewInvalidError("is not the ID of an event of this order that a subscription can resume after; use the ID of the last update that you received, or subscribe without `after` and then read the order"))
}

// customerHistory reads the events of a customer's orders. It reads the customer's last event
// (AP33), the list of the customer's orders (AP2), and the timelines of changed orders (AP32).
type customerHistory struct {
	feed      *Feed
	partition string
	// lowestID is the lowest possible ID of an event after the start of the subscription. It is set
	// only if the customer had no last event at the start.
	lowestID commerce.EventID
}

func (h *customerHistory) lastEventID(ctx context.Context) (commerce.EventID, error) {
	last, err := h.recordedLastEvent(ctx)
	if err != nil || last != "" || h.lowestID != "" {
		return last, err
	}
	if h.lowestID, err = h.lowestNextID(ctx); err != nil {
		return "", err
	}
	// Read the record again, because an event may have been committed before the orders were read.
	return h.recordedLastEvent(ctx)
}

// recordedLastEvent returns the event ID in the record of the customer's last event. It returns an
// empty ID if the record does not exist.
func (h *customerHistory) recordedLastEvent(ctx context.Context) (commerce.EventID, error) {
	r, err := h.feed.table.Get(ctx, &model.LastEvent.AccessPattern, model.Keys{PK: h.partition, SK: string(model.EntityLastEvent.SK)})
	if errors.Is(err, commerce.ErrNotFound) {
		return "", nil
	}
	return h.feed.table.EventPosition(commerce.EventID(r.Text("eventId"))), err
}

// lowestNextID returns the lowest ID that is higher than the IDs of all earlier changes of the
// orders. It derives the ID from the times of the orders. The local clock cannot be used, because
// the clock of the server that writes the next event may be behind it.
func (h *customerHistory) lowestNextID(ctx context.Context) (commerce.EventID, error) {
	after, now := time.UnixMilli(0), h.feed.table.Now()
	err := h.forEachOrder(ctx, func(order model.Reader) error {
		updated := now
		if order.Has("updatedAt") {
			updated = order.RequiredTime("updatedAt")
		}
		if next := updated.Truncate(time.Millisecond).Add(time.Millisecond); order.Err() == nil && next.After(after) && !updated.After(now.Add(table.MaxClockSkew)) {
			after = next
		}
		return nil
	})
	return lowestIDAt(after), err
}

func (h *customerHistory) invalidAfter() error {
	return commerce.WithArgument("after", commerce.NewInvalidError("is not the ID of an event of this customer's orders that a subscription can resume after; use the ID of the last update that you received, or subscribe without `after` and then read the orders"))
}

// events returns all events of the range, so more is always false. It also reads events with a
// higher ID than last. Such events exist if the record of the last event is missing or outdated,
// for example after an import.
func (h *customerHistory) events(ctx context.Context, from, last commerce.EventID) ([]*commerce.Event, commerce.EventID, bool, error) {
	from = cmp.Or(from, h.lowestID)
	events, err := h.eventsBetween(ctx, from, max(last, h.feed.latestPossibleID()))
	if err != nil || len(events) == 0 || events[len(events)-1].ID <= last {
		return events, last, false, err
	}
	found := events[len(events)-1].ID
	if last, err = h.recordedLastEvent(ctx); err != nil || last < found {
		return events, found, false, err
	}
	// The event was committed during the read. Other events may have been committed, too, so read the
	// events up to the recorded event again.
	events, err = h.eventsBetween(ctx, from, last)
	return events, last, false, err
}

// eventsBetween returns the events from one ID to another, both included, sorted by ID.
func (h *customerHistory) eventsBetween(ctx context.Context, from, to commerce.EventID) ([]*commerce.Event, error) {
	since, ok := from.Time()
	if !ok || from > to {
		return nil, h.invalidAfter()
	}
	orders, err := h.changedPartitions(ctx, since)
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	var events []*commerce.Event
	err = table.Parallel(ctx, len(orders), maxTimelines, func(ctx context.Context, i int) error {
		for next := from; ; {
			page, after, err := h.feed.timelinePage(ctx, orders[i], next, to)
			if err != nil {
				return err
			}
			mu.Lock()
			events = append(events, page...)
			n := len(events)
			mu.Unlock()
			if n > maxMissedEvents {
				return tooManyMissedError()
			}
			if next = after; next == "" {
				return nil
			}
		}
	})
	slices.SortFunc(events, func(a, b *commerce.Event) int { return cmp.Compare(a.ID, b.ID) })
	return events, err
}

// changedPartitions returns the partition keys of the customer's orders that have changed since the
// given time.
func (h *customerHistory) changedPartitions(ctx context.Context, since time.Time) ([]string, error) {
	var partitions []string
	err := h.forEachOrder(ctx, func(order model.Reader) error {
		// An order with a time that cannot be decoded may have changed.
		if updated := order.UpdatedAtOr(since); order.Err() == nil && updated.Before(since) {
			return nil
		}
		partition, err := model.EntityOrderEvent.PK.Build(strings.TrimPrefix(order.Text(model.AttrSK), string(model.CustomerOrders.SK)))
		if err != nil {
			return nil // the key has no order ID
		}
		if partitions = append(partitions, partition); len(partitions) > maxMissedOrders {
			return tooManyMissedError()
		}
		return nil
	})
	return partitions, err
}

// forEachOrder calls visit for each of the customer's orders. It stops if visit returns an error,
// and returns this error. It also returns the errors of table.WrapError.
func (h *customerHistory) forEachOrder(ctx context.Context, visit func(model.Reader) error) error {
	p := &model.CustomerOrders.AccessPattern
	for bounds := (model.Range{}); ; {
		records, more, err := h.feed.table.Query(ctx, p, h.partition, string(p.SK), bounds, maxMissedOrders, false)
		if err != nil {
			return err
		}
		for _, r := range records {
			bounds.To = strings.TrimPrefix(r.Text(model.AttrSK), string(p.SK))
			if err := visit(r); err != nil {
				return err
			}
		}
		if !more {
			return nil
		}
	}
}

func tooManyMissedError() error {
	return commerce.WithArgument("after", commerce.NewInvalidError("is too old: more than %d events or %d changed orders follow it; read the orders and subscribe without `after`", maxMissedEvents, maxMissedOrders))
}

// timelinePage returns one page of an order's events from one ID to another, both included. next is
// the first ID of the next page. It is empty on the last page. timelinePage skips events by other
// software and events that cannot be decoded.
func (f *Feed) timelinePage(ctx context.Context, partition string, from, to commerce.EventID) (events []*commerce.Event, next commerce.EventID, err error) {
	bounds := model.Range{From: string(from), To: model.JustAfter(string(to))}
	if bounds.Empty() {
		return nil, "", nil
	}
	p := &model.EventsInRange.AccessPattern
	records, more, err := f.table.Query(ctx, p, partition, string(p.SK), bounds, eventPageSize, true)
	if err != nil {
		return nil, "", err
	}
	for _, r := range records {
		if !model.IsOwnEvent(r.Attributes()) {
			continue
		}
		event, err := model.DecodeTimelineEvent(r.Attributes()) // a copy, because the subscriber keeps it
		if err != nil {
			f.logUnreadable(err)
			continue
		}
		events = append(events, event)
	}
	if more && len(records) > 0 {
		next = commerce.EventID(model.JustAfter(string(model.EventIDFromKey(records[len(records)-1].Attributes()))))
	}
	return events, next, nil
}

// latestPossibleID returns an ID that is not lower than the ID of any existing event of any server.
// The other server's clock may be ahead of DynamoDB's clock by MaxClockDifference, and the local
// clock may be behind by the same time. The additional seconds are for Date headers, which contain
// only whole seconds.
func (f *Feed) latestPossibleID() commerce.EventID {
	return lowestIDAt(f.table.Now().Add(2 * (table.MaxClockDifference + time.Second)))
}

// lowestIDAt returns the lowest ID of an event at the given time.
func lowestIDAt(at time.Time) commerce.EventID {
	id, _ := commerce.MinULID(at)
	return commerce.EventID(id)
}

// logUnreadable logs a change that cannot be delivered because its record cannot be decoded.
func (f *Feed) logUnreadable(err error) {
	f.log.Error("a change cannot be delivered", "error", err)
}
