package feed

import (
	"context"
	"time"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
)

// Changes returns the first events of all orders with after < ID <= to, sorted by ID. to is at most
// until, and equal to until if there are no more events. Otherwise, it returns at least one event.
// An event can still appear with an ID up to table.LayoutDelay ago. It omits events by other
// software.
//
// Errors: model.DerivationUnavailable, table.ErrLayoutUnknown, errors of table.WrapError.
func (f *Feed) Changes(ctx context.Context, after, until commerce.EventID, limit int) (events []*commerce.Event, to commerce.EventID, err error) {
	if _, err := f.ChangesSince(ctx); err != nil {
		return nil, after, err
	}
	if after >= until {
		return nil, until, nil
	}
	return (&statusHistory{feed: f, allEvents: true}).list(ctx, after, until, limit)
}

// ChangesSince returns the time since when the table lists the changes of all orders.
//
// Errors: model.DerivationUnavailable, table.ErrLayoutUnknown.
func (f *Feed) ChangesSince(ctx context.Context) (time.Time, error) {
	if err := f.table.CheckLayout(ctx); err != nil {
		return time.Time{}, err
	}
	return (&statusHistory{feed: f, allEvents: true}).listedSince()
}

// ChangesRange returns the range of the IDs of all events that the table lists completely. It
// returns commerce.InvalidError if events after the ID after are missing. The ID can be empty.
//
// Errors: commerce.InvalidError, model.DerivationUnavailable.
func (f *Feed) ChangesRange(after commerce.EventID) (model.Range, error) {
	since, err := (&statusHistory{feed: f, allEvents: true}).listedSince()
	if err != nil {
		return model.Range{}, err
	}
	if at, _ := after.Time(); after != "" && (at.Before(since) || f.table.EventPosition(after) == "") {
		return model.Range{}, commerce.ErrorWithArgument("after", commerce.NewInvalidError("is not the ID of an event after which all changes are known: the table lists changes since %s; use the ID of the last event that you received, or omit `after`", since.Format(time.RFC3339)))
	}
	return model.Range{From: string(commerce.MinEventIDAt(since)), To: string(f.lastListedID())}, nil
}

// OrderTimeline reads the last events of an order with ID <= last, at most limit, and returns them
// newest first, without events by other software. If there are earlier events, their IDs are at
// most next. Otherwise, next is empty. The read is strongly consistent.
//
// Errors: errors of table.WrapError.
func (f *Feed) OrderTimeline(ctx context.Context, order commerce.OrderID, last commerce.EventID, limit int) (events []*commerce.Event, next commerce.EventID, err error) {
	partition, err := model.EntityOrderEvent.PK.Build(string(order))
	if err != nil {
		return nil, "", err
	}
	p, bounds := &model.EventsInRange.AccessPattern, model.Range{To: model.JustAfter(string(last))}
	records, more, err := f.table.QueryUpTo(ctx, p, partition, string(p.SK), bounds, limit+1, false)
	if more || len(records) > limit {
		next = model.EventIDFromKey(records[len(records)-1].Attributes())
		records = records[:len(records)-1]
	}
	return f.decodeTimeline(records), next, err
}
