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

// history reads the past events of one order or of one customer's orders. Its reads are strongly
// consistent. It omits events by other software, because such an event may have a lower ID than an
// earlier event.
type history interface {
	// lastEventID returns the ID of the last event, or an ID between the existing and all later events.
	// An order without events has the empty ID.
	lastEventID(ctx context.Context) (commerce.EventID, error)
	// events returns the first events with from <= ID <= until, at most limit. The limit is at least
	// 2, because the caller may already have the first event. Usually, until is last. If events
	// after last were found, until is a higher ID. If
	// more is true, events were omitted at the end of the range and must be read later.
	//
	// It returns errors of table.WrapError.
	events(ctx context.Context, from, last commerce.EventID, limit int) (events []*commerce.Event, until commerce.EventID, more bool, err error)
	// resumeError returns the error for an event ID after which a subscription cannot resume.
	resumeError() error
}

// Limits on the events that a subscription reads from timelines.
const (
	// eventPageSize is the maximum number of events that one Query reads from a timeline.
	eventPageSize = 100
	// maxCatchUpPage is the maximum number of events that a subscription reads at once, and then
	// delivers, before it reads further events.
	maxCatchUpPage = 10_000
	// orderPageSize is the maximum number of orders that one Query reads from a customer's list.
	orderPageSize = 1_000
)

// orderHistory reads the events in the timeline of one order.
type orderHistory struct {
	feed      *Feed
	partition string
}

// lastEventID returns the ID of the last event in the timeline. If other software wrote an event
// with an ID in the future, lastEventID ignores this event.
func (h *orderHistory) lastEventID(ctx context.Context) (commerce.EventID, error) {
	t, now := h.feed.table, h.feed.latestPossibleID()
	id, err := h.lastEventUpTo(ctx, commerce.MinEventIDAt(t.Now().Add(model.MaxClockSkew)))
	if err != nil || id <= now {
		return id, err
	}
	// The ID is in the future. If it is also higher than the ID in the customer's last-event record,
	// other software wrote the event. Ignore this event, because the next event may have a lower ID.
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

// lastEventUpTo returns the ID of the last event in the timeline with ID <= to. It ignores events
// by other software. If there is no such event, it returns an empty ID.
func (h *orderHistory) lastEventUpTo(ctx context.Context, to commerce.EventID) (commerce.EventID, error) {
	p, bounds := &model.EventsInRange.AccessPattern, model.Range{To: model.JustAfter(string(to))}
	for limit := 1; ; limit = eventPageSize {
		records, more, err := h.feed.table.Query(ctx, p, h.partition, string(p.SK), bounds, limit, false)
		if err != nil {
			return "", err
		}
		for _, r := range records {
			id := model.EventIDFromKey(r.Attributes())
			if model.IsOrdergraphEvent(r.Attributes()) {
				return id, nil
			}
			bounds.To = string(id)
		}
		if !more || bounds.To == "" {
			return "", nil
		}
	}
}

func (h *orderHistory) events(ctx context.Context, from, last commerce.EventID, _ int) ([]*commerce.Event, commerce.EventID, bool, error) {
	var events []*commerce.Event
	for next := from; ; {
		page, after, err := h.feed.timelinePage(ctx, h.partition, next, last)
		if err != nil {
			return nil, "", false, err
		}
		// The caller may already have the first event, so return at least two events if the timeline has
		// them. This may need several pages, because timelinePage omits events by other software.
		if events = append(events, page...); after == "" || len(events) > 1 {
			return events, last, after != "", nil
		}
		next = after
	}
}

func (h *orderHistory) resumeError() error {
	return commerce.ErrorWithArgument("after", commerce.NewInvalidError("is not the ID of an event after which a subscription to this order can resume; use the ID of the last update that you received, or subscribe without `after` and then read the order"))
}

// customerHistory reads the events of a customer's orders. It reads the record with the customer's
// last event, the list of the customer's orders, and the timelines of changed orders.
type customerHistory struct {
	feed      *Feed
	partition string
}

// lastEventID returns the ID in the record with the customer's last event. If the record is missing
// or unusable, lastEventID returns an ID between the existing and all later events.
func (h *customerHistory) lastEventID(ctx context.Context) (commerce.EventID, error) {
	last, err := h.recordedLastEvent(ctx)
	if err != nil || last != "" {
		return last, err
	}
	next, err := h.lowestNextID(ctx)
	if err != nil {
		return "", err
	}
	// The first read found no last event, but an event may have been committed since then. So read the
	// record again.
	last, err = h.recordedLastEvent(ctx)
	return cmp.Or(last, next), err
}

// recordedLastEvent returns the event ID in the record with the customer's last event. If the
// record does not exist, it returns an empty ID.
func (h *customerHistory) recordedLastEvent(ctx context.Context) (commerce.EventID, error) {
	r, err := h.feed.table.Get(ctx, &model.LastEvent.AccessPattern, model.Keys{PK: h.partition, SK: string(model.EntityLastEvent.SK)})
	if errors.Is(err, commerce.ErrNotFound) {
		return "", nil
	}
	return h.feed.table.EventPosition(commerce.EventID(r.Text("eventId"))), err
}

// lowestNextID returns a lower bound for the ID of the next event of the customer's orders. It
// derives the bound from the latest updatedAt of the orders, like the mutation that will write the
// event. The local clock may be ahead, so the local time is not a lower bound.
func (h *customerHistory) lowestNextID(ctx context.Context) (commerce.EventID, error) {
	last, err := h.feed.table.LastOrderUpdate(ctx, h.partition)
	if last.IsZero() {
		return commerce.MinEventIDAt(time.UnixMilli(0)), err
	}
	return commerce.MinEventIDAt(last.Truncate(time.Millisecond).Add(time.Millisecond)), err
}

func (h *customerHistory) resumeError() error {
	return commerce.ErrorWithArgument("after", commerce.NewInvalidError("is not the ID of an event after which a subscription to this customer's orders can resume; use the ID of the last update that you received, or subscribe without `after` and then read the orders"))
}

// events also reads events after the ID last, because the record with the customer's last event may
// be outdated.
func (h *customerHistory) events(ctx context.Context, from, last commerce.EventID, limit int) ([]*commerce.Event, commerce.EventID, bool, error) {
	events, more, err := h.eventsBetween(ctx, from, max(last, h.feed.latestPossibleID()), limit)
	if err != nil || len(events) == 0 || events[len(events)-1].ID <= last {
		return events, last, more, err
	}
	found := events[len(events)-1].ID
	if last, err = h.recordedLastEvent(ctx); err != nil || last < found {
		return events, found, more, err
	}
	// Events were committed while the timelines were read, so the result may lack some of them. Read
	// all timelines again, up to the new last event.
	events, more, err = h.eventsBetween(ctx, from, last, limit)
	return events, last, more, err
}

// eventsBetween returns the first events with from <= ID <= to, sorted by ID. It returns at most
// limit events, and reports whether there are more.
//
// It reads one page of the customer's orders after the other, and the timelines of the orders that
// have changed since from. So it keeps at most twice the limit of events in memory.
func (h *customerHistory) eventsBetween(ctx context.Context, from, to commerce.EventID, limit int) ([]*commerce.Event, bool, error) {
	since, ok := from.Time()
	if !ok || from > to {
		return nil, false, nil
	}
	first := firstEvents{limit: limit, to: to}
	p := &model.CustomerOrders.AccessPattern
	// The first orders are usually the oldest ones. If their events reach the limit, the timelines of
	// later orders need not be read.
	for bounds := (model.Range{}); ; {
		records, more, err := h.feed.table.Query(ctx, p, h.partition, string(p.SK), bounds, orderPageSize, true)
		if err != nil {
			return nil, false, err
		}
		var changed []changedOrder
		for _, r := range records {
			id := strings.TrimPrefix(r.Text(model.AttrSK), string(p.SK))
			bounds.From = model.JustAfter(id)
			if order, ok := changedSince(r, id, since); ok {
				changed = append(changed, order)
			}
		}
		err = table.Parallel(ctx, len(changed), maxConcurrentTimelineReads, func(ctx context.Context, i int) error {
			if first.precede(changed[i].placed) {
				return nil
			}
			for next := from; next != ""; {
				page, after, err := h.feed.timelinePage(ctx, changed[i].partition, next, first.bound())
				if err != nil {
					return err
				}
				first.add(page)
				next = after
			}
			return nil
		})
		if err != nil {
			return nil, false, err
		}
		if !more {
			events, more := first.sorted()
			return events, more, nil
		}
	}
}

// changedOrder is an order whose timeline may contain missed events.
type changedOrder struct {
	partition string
	// placed is the time of the order's first event. If it is not certain, placed is the zero time.
	placed time.Time
}

// changedSince returns an order from a customer's list of orders. It returns false if the order has
// not changed since the given time.
func changedSince(order model.Reader, id string, since time.Time) (changedOrder, bool) {
	// If updatedAt cannot be decoded, the order may have changed, so include it.
	if updated := order.UpdatedAtOr(since); order.Err() == nil && updated.Before(since) {
		return changedOrder{}, false
	}
	partition, err := model.EntityOrderEvent.PK.Build(id)
	if err != nil {
		return changedOrder{}, false // skip a record by other software whose key contains no valid order ID
	}
	// Ordergraph uses the time in the ID of a new order for its first event, too.
	placed, _ := commerce.EventID(id).Time()
	if created, err := time.Parse(time.RFC3339, order.Text("createdAt")); err != nil || !created.Equal(placed) {
		placed = time.Time{}
	}
	return changedOrder{partition, placed}, true
}

// firstEvents collects the events with the lowest IDs. It is safe for concurrent use.
type firstEvents struct {
	limit int

	mu     sync.Mutex
	events []*commerce.Event
	// to is the highest ID that can still be among the first events.
	to   commerce.EventID
	more bool
}

func (f *firstEvents) add(events []*commerce.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.events = append(f.events, events...); len(f.events) > 2*f.limit {
		f.truncate()
	}
}

// truncate sorts the events and drops those over the limit. The caller holds mu.
func (f *firstEvents) truncate() {
	slices.SortFunc(f.events, func(a, b *commerce.Event) int { return cmp.Compare(a.ID, b.ID) })
	if len(f.events) > f.limit {
		clear(f.events[f.limit:])
		f.events, f.more = f.events[:f.limit], true
		f.to = f.events[f.limit-1].ID
	}
}

func (f *firstEvents) bound() commerce.EventID {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.to
}

// precede reports whether all first events were committed before the given time. Then there are
// more events. If the time is zero, precede returns false.
func (f *firstEvents) precede(at time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if last, _ := f.to.Time(); at.IsZero() || !f.more || !at.After(last) {
		return false
	}
	return true
}

func (f *firstEvents) sorted() (events []*commerce.Event, more bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.truncate()
	return f.events, f.more
}

// timelinePage returns one page of an order's events with from <= ID <= to. It skips events by
// other software. On the last page, next is empty.
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
	if more && len(records) > 0 {
		next = commerce.EventID(model.JustAfter(string(model.EventIDFromKey(records[len(records)-1].Attributes()))))
	}
	return f.decodeTimeline(records), next, nil
}

// decodeTimeline decodes events in the timeline of an order. It omits events by other software, and
// logs events that are unreadable.
func (f *Feed) decodeTimeline(records []model.Reader) (events []*commerce.Event) {
	for _, r := range records {
		if !model.IsOrdergraphEvent(r.Attributes()) {
			continue
		}
		event, err := model.DecodeTimelineEvent(r.Attributes()) // Attributes copies the record, so the event does not keep the whole response in memory
		if err != nil {
			f.logUnreadable(err)
			continue
		}
		events = append(events, event)
	}
	return events
}

// latestPossibleID returns an upper bound for the IDs of all existing events. The writer's clock
// and the local clock may each differ from DynamoDB's clock by MaxClockDifference.
func (f *Feed) latestPossibleID() commerce.EventID {
	// Each measured difference has an error of up to one second, because HTTP Date headers contain
	// whole seconds.
	return commerce.MinEventIDAt(f.table.Now().Add(2 * (table.MaxClockDifference + time.Second)))
}

// logUnreadable logs that a change cannot be delivered, because its record cannot be decoded.
func (f *Feed) logUnreadable(err error) {
	f.log.Error("a change cannot be delivered", "error", err)
}
