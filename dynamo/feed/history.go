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

// history reads the past events of an order, or of a customer's orders, from the table. Reads are
// strongly consistent. Events without a position are left out.
type history interface {
	// last returns the ID of the last event; an empty ID before the first. Every event that is
	// committed later has a higher ID.
	last(ctx context.Context) (commerce.EventID, error)
	// events returns the first events from one to the last one, both included, and whether there
	// are more; those of more than one order at once. until is how far it read: to last, or to a
	// later event that turned out to be the last.
	//
	// Errors: commerce.InvalidError if there are too many, those of table.Failed.
	events(ctx context.Context, from, last commerce.EventID) (events []*commerce.Event, until commerce.EventID, more bool, err error)
	// unknown returns the error for an event that no subscription can resume after.
	unknown() error
}

// The limits of what a subscription can have missed.
const (
	// eventPage is how many events of an order are read at once.
	eventPage = 100
	// maxMissedEvents and maxMissedOrders are how many events, of how many orders, a subscription to
	// a customer can have missed.
	maxMissedEvents = 10_000
	maxMissedOrders = 1_000
)

// orderHistory is an order's timeline (AP32).
type orderHistory struct {
	feed      *Feed
	partition string
}

// last is the last event of the timeline. One that is dated ahead of the clock counts only up to
// the last event of the order's customer (AP1, AP33). Further ahead it was written by other
// software, and the next event does not come after it.
func (h *orderHistory) last(ctx context.Context) (commerce.EventID, error) {
	t, now := h.feed.table, h.feed.now()
	id, err := h.upTo(ctx, idAt(t.Now().Add(table.MaxClockSkew)))
	if err != nil || id <= now {
		return id, err
	}
	order, err := t.Get(ctx, &model.OrderByID.AccessPattern, model.Keys{PK: h.partition, SK: string(model.EntityOrder.SK)})
	if err != nil && !errors.Is(err, commerce.ErrNotFound) {
		return "", err
	}
	last := commerce.EventID("")
	if partition, unkeyed := model.EntityLastEvent.PK.Key(order.Text(model.AttrCustomerID)); unkeyed == nil {
		if last, err = (&customerHistory{feed: h.feed, partition: partition}).recorded(ctx); err != nil {
			return "", err
		}
	}
	if id <= last {
		return id, nil
	}
	return h.upTo(ctx, max(last, now))
}

// upTo returns the last event of the timeline up to an ID; an empty ID if it is before the first.
func (h *orderHistory) upTo(ctx context.Context, to commerce.EventID) (commerce.EventID, error) {
	p, b := &model.EventsSince.AccessPattern, model.Range{To: model.JustAfter(string(to))}
	for limit := 1; ; limit = eventPage {
		records, more, err := h.feed.table.Query(ctx, p, h.partition, string(p.SK), b, limit, false)
		if err != nil {
			return "", err
		}
		for _, r := range records {
			id := model.EventIDOf(r.Attributes())
			if model.IsOwnEvent(r.Attributes()) {
				return id, nil
			}
			b.To = string(id)
		}
		if !more || b.To == "" {
			return "", nil
		}
	}
}

func (h *orderHistory) events(ctx context.Context, from, last commerce.EventID) ([]*commerce.Event, commerce.EventID, bool, error) {
	var events []*commerce.Event
	for next := from; ; {
		page, after, err := h.feed.timeline(ctx, h.partition, next, last)
		if err != nil {
			return nil, "", false, err
		}
		// The caller may have the first event already, and a page may have no readable event. So
		// return at least two, unless there are no more.
		if events = append(events, page...); after == "" || len(events) > 1 {
			return events, last, after != "", nil
		}
		next = after
	}
}

func (h *orderHistory) unknown() error {
	return commerce.For("after", commerce.Invalid("is not the id of an event of this order that can be resumed after: give the id of the last update that came, or follow the order without `after` and then read it"))
}

// customerHistory is what happened to the orders of a customer: the record of the last event
// (AP33), and the timelines of those of the customer's orders (AP2) that changed (AP32).
type customerHistory struct {
	feed      *Feed
	partition string
	// since is the lowest ID that an event after the beginning can have. It is set if there was no
	// last event at the beginning.
	since commerce.EventID
}

func (h *customerHistory) last(ctx context.Context) (commerce.EventID, error) {
	last, err := h.recorded(ctx)
	if err != nil || last != "" || h.since != "" {
		return last, err
	}
	if h.since, err = h.beginning(ctx); err != nil {
		return "", err
	}
	// The record now has every event that was committed before the orders were read.
	return h.recorded(ctx)
}

// recorded returns the event in the record of the last event; an empty one if the record is absent.
func (h *customerHistory) recorded(ctx context.Context) (commerce.EventID, error) {
	r, err := h.feed.table.Get(ctx, &model.LastEvent.AccessPattern, model.Keys{PK: h.partition, SK: string(model.EntityLastEvent.SK)})
	if errors.Is(err, commerce.ErrNotFound) {
		return "", nil
	}
	return h.feed.table.Position(commerce.EventID(r.Text("eventId"))), err
}

// beginning returns the lowest ID after all changes of the orders so far. It takes the time from
// the orders, because the clock of the server that writes next may be behind this one.
func (h *customerHistory) beginning(ctx context.Context) (commerce.EventID, error) {
	after, now := time.UnixMilli(0), h.feed.table.Now()
	err := h.orders(ctx, func(at model.Reader) error {
		updated := now
		if at.Has("updatedAt") {
			updated = at.MustTime("updatedAt")
		}
		if next := updated.Truncate(time.Millisecond).Add(time.Millisecond); at.Err() == nil && next.After(after) && !updated.After(now.Add(table.MaxClockSkew)) {
			after = next
		}
		return nil
	})
	return idAt(after), err
}

func (h *customerHistory) unknown() error {
	return commerce.For("after", commerce.Invalid("is not the id of an event of this customer's orders that can be resumed after: give the id of the last update that came, or follow the orders without `after` and then read them"))
}

// events reads all events at once. The record of the last event is missing if the orders were
// loaded, and may be outdated after an import. So later events are read, too.
func (h *customerHistory) events(ctx context.Context, from, last commerce.EventID) ([]*commerce.Event, commerce.EventID, bool, error) {
	from = cmp.Or(from, h.since)
	events, err := h.upTo(ctx, from, max(last, h.feed.now()))
	if err != nil || len(events) == 0 || events[len(events)-1].ID <= last {
		return events, last, false, err
	}
	found := events[len(events)-1].ID
	if last, err = h.recorded(ctx); err != nil || last < found {
		return events, found, false, err
	}
	// The event was committed during the read. Read the others that were, up to the last one.
	events, err = h.upTo(ctx, from, last)
	return events, last, false, err
}

// upTo returns the events from one to another, both included.
func (h *customerHistory) upTo(ctx context.Context, from, to commerce.EventID) ([]*commerce.Event, error) {
	since, ok := from.Time()
	if !ok || from > to {
		return nil, h.unknown()
	}
	orders, err := h.changed(ctx, since)
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	var events []*commerce.Event
	err = table.Parallel(ctx, len(orders), maxTimelines, func(ctx context.Context, i int) error {
		for next := from; ; {
			page, after, err := h.feed.timeline(ctx, orders[i], next, to)
			if err != nil {
				return err
			}
			mu.Lock()
			events = append(events, page...)
			n := len(events)
			mu.Unlock()
			if n > maxMissedEvents {
				return tooMuchMissed()
			}
			if next = after; next == "" {
				return nil
			}
		}
	})
	slices.SortFunc(events, func(a, b *commerce.Event) int { return cmp.Compare(a.ID, b.ID) })
	return events, err
}

// changed returns the partitions of the customer's orders that have changed since then.
func (h *customerHistory) changed(ctx context.Context, since time.Time) ([]string, error) {
	var orders []string
	err := h.orders(ctx, func(at model.Reader) error {
		// An order whose time cannot be read may have changed.
		if updated := at.UpdatedOr(since); at.Err() == nil && updated.Before(since) {
			return nil
		}
		partition, err := model.EntityOrderEvent.PK.Key(strings.TrimPrefix(at.Text(model.AttrSK), string(model.CustomerOrders.SK)))
		if err != nil {
			return nil // not an order's ID
		}
		if orders = append(orders, partition); len(orders) > maxMissedOrders {
			return tooMuchMissed()
		}
		return nil
	})
	return orders, err
}

// orders calls see for each of the customer's orders until it returns an error.
//
// Errors: see's, those of table.Failed.
func (h *customerHistory) orders(ctx context.Context, see func(model.Reader) error) error {
	p := &model.CustomerOrders.AccessPattern
	for b := (model.Range{}); ; {
		records, more, err := h.feed.table.Query(ctx, p, h.partition, string(p.SK), b, maxMissedOrders, false)
		if err != nil {
			return err
		}
		for _, r := range records {
			b.To = strings.TrimPrefix(r.Text(model.AttrSK), string(p.SK))
			if err := see(r); err != nil {
				return err
			}
		}
		if !more {
			return nil
		}
	}
}

func tooMuchMissed() error {
	return commerce.For("after", commerce.Invalid("is of too long ago: more than %d events or %d orders lie behind it; read the orders and follow them without `after`", maxMissedEvents, maxMissedOrders))
}

// timeline returns a page of an order's events from one to another, both included, and the ID to
// continue from, empty at the end. It leaves out events that cannot be read, and those by other
// software.
func (f *Feed) timeline(ctx context.Context, partition string, from, to commerce.EventID) (events []*commerce.Event, next commerce.EventID, err error) {
	b := model.Range{From: string(from), To: model.JustAfter(string(to))}
	if b.Empty() {
		return nil, "", nil
	}
	p := &model.EventsSince.AccessPattern
	records, more, err := f.table.Query(ctx, p, partition, string(p.SK), b, eventPage, true)
	if err != nil {
		return nil, "", err
	}
	for _, r := range records {
		if !model.IsOwnEvent(r.Attributes()) {
			continue
		}
		event, err := model.ReadEvent(r.Attributes()) // a copy, because the subscriber keeps it
		if err != nil {
			f.unreadable(err)
			continue
		}
		events = append(events, event)
	}
	if more && len(records) > 0 {
		next = commerce.EventID(model.JustAfter(string(model.EventIDOf(records[len(records)-1].Attributes()))))
	}
	return events, next, nil
}

// now returns an ID that is not below that of any earlier event, whichever server wrote it. That
// server's clock may be ahead of DynamoDB's, and this one's behind it. DynamoDB's responses are
// dated in whole seconds.
func (f *Feed) now() commerce.EventID {
	return idAt(f.table.Now().Add(2 * (table.MaxClockDifference + time.Second)))
}

// idAt returns the lowest ID that an event at a time can have.
func idAt(at time.Time) commerce.EventID {
	id, _ := commerce.FirstULID(at)
	return commerce.EventID(id)
}

// unreadable logs a change whose record cannot be read.
func (f *Feed) unreadable(err error) {
	f.log.Error("a change cannot be delivered", "error", err)
}
