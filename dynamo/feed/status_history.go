package feed

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// statusDelay is the time after a change until a delayed subscription reads it. The IDs of different
// customers' events do not rise in commit order, and the index is eventually consistent. After this time, no
// event with an earlier ID appears any more, so the events can be delivered in the order of their IDs
// (docs/adr/0064-status-changes.md).
const statusDelay = table.LayoutDelay

// statusPageSize is the maximum number of events that one Query reads from the list of status changes.
const statusPageSize = 1_000

// statusHistory reads the list of the changes of all orders.
type statusHistory struct {
	feed *Feed
	// status is the status to which the orders change. 0 means all statuses.
	status commerce.Status
	// allEvents means that events are read that change no status, too.
	allEvents bool
}

// checkResumable checks that a subscription to status changes can begin after an event.
//
// Errors: commerce.InvalidError, model.DerivationUnavailable, table.ErrLayoutUnknown.
func (h *statusHistory) checkResumable(ctx context.Context, after commerce.EventID) error {
	if err := h.feed.table.CheckLayout(ctx); err != nil {
		return err
	}
	since, err := h.listedSince()
	if err != nil {
		return err
	}
	if at, ok := after.Time(); !ok || at.Before(since) || h.feed.table.EventPosition(after) == "" {
		return h.resumeError()
	}
	return nil
}

// listedSince returns the time since when the table lists the events that h reads.
//
// Errors: model.DerivationUnavailable.
func (h *statusHistory) listedSince() (time.Time, error) {
	features := h.feed.table.Layout.Derivations()
	name := features.EventList(h.allEvents)
	return features.Of(name).Since, features.CheckReadable(name)
}

// lastEventID returns an ID up to which all events can be read now.
func (h *statusHistory) lastEventID(context.Context) (commerce.EventID, error) {
	return h.feed.lastListedID(), nil
}

// lastListedID returns an ID up to which the table lists all events.
func (f *Feed) lastListedID() commerce.EventID {
	at, _ := f.latestPossibleID().Time()
	return commerce.MinEventIDAt(at.Add(-statusDelay))
}

// events returns the events with from < ID <= last. If more is true, it returns at least one event.
func (h *statusHistory) events(ctx context.Context, from, last commerce.EventID, limit int) ([]*commerce.Event, commerce.EventID, bool, error) {
	events, to, err := h.list(ctx, from, last, limit)
	return events, last, to < last, err
}

// list returns the first events with from < ID <= to, sorted by ID. to is at most last, and less if
// there are more events. Then, it returns at least one event.
func (h *statusHistory) list(ctx context.Context, from, last commerce.EventID, limit int) (events []*commerce.Event, to commerce.EventID, err error) {
	for to = from; to < last && len(events) == 0 && err == nil; {
		events, to, err = h.page(ctx, to, last, limit)
	}
	if len(events) > limit {
		events, to = events[:limit], events[limit-1].ID
	}
	return events, to, err
}

// page returns the events with from < ID <= to, sorted by ID. to is at most last, and less if there are too
// many events. If the server's clock is wrong, it returns a table.ClockError.
func (h *statusHistory) page(ctx context.Context, from, last commerce.EventID, limit int) (events []*commerce.Event, to commerce.EventID, err error) {
	if err := h.feed.table.CheckLayout(ctx); err != nil {
		return nil, "", err
	}
	p, partitions := &model.StatusChangesOfAll.AccessPattern, []string(nil)
	if h.allEvents {
		p = &model.AllChanges.AccessPattern
	}
	for _, to := range model.ChangedStatuses() {
		if h.allEvents || to != model.NoStatus && (h.status == 0 || h.status.String() == to) {
			partitions = append(partitions, h.feed.table.Layout.Get().Partitions(p, p.PK.Prefix()+to)...)
		}
	}
	bounds := model.Range{From: model.JustAfter(string(from)), To: model.JustAfter(string(last))}
	size := max(2, min(statusPageSize, 2*limit/len(partitions)))
	mu := sync.Mutex{}
	to = last
	err = table.Parallel(ctx, len(partitions), maxConcurrentTimelineReads, func(ctx context.Context, i int) error {
		records, more, err := h.feed.table.Query(ctx, p, partitions[i], string(p.SK), bounds, size, true)
		mu.Lock()
		defer mu.Unlock()
		for _, r := range records {
			event, unreadable := model.DecodeTimelineEvent(r.Attributes())
			switch {
			case unreadable != nil:
				h.feed.logUnreadable(unreadable)
			case model.IsOrdergraphEvent(r.Attributes()):
				events = append(events, event)
			}
		}
		if more && len(records) > 0 {
			to = min(to, model.EventIDFromKey(records[len(records)-1].Attributes()))
		}
		return err
	})
	if err == nil {
		// With a clock that is ahead, last is too high, and events can still appear before it. The Queries
		// have compared the clocks.
		err = h.feed.table.ClockErr()
	}
	if err != nil {
		return nil, from, err
	}
	events = slices.DeleteFunc(events, func(e *commerce.Event) bool { return e.ID > to })
	slices.SortFunc(events, func(a, b *commerce.Event) int { return cmp.Compare(a.ID, b.ID) })
	return events, to, nil
}

func (h *statusHistory) resumeError() error {
	features := h.feed.table.Layout.Derivations()
	return commerce.ErrorWithArgument("after", commerce.NewInvalidError("is not the ID of an event after which this subscription can resume: the table lists status changes since %s; use the ID of the last update that you received, or subscribe without `after` and then read the orders", features.Of(features.EventList(h.allEvents)).Since.Format(time.RFC3339)))
}
