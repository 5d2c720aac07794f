package feed

import (
	"context"
	"time"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
)

// Changes returns the first events of all orders with after < ID <= to, sorted by ID. to is at most until, and
// equal to until if there are no more events. Otherwise, it returns at least one event. An event can still
// appear with an ID up to table.LayoutDelay ago. It omits events by other software.
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
	return (&statusHistory{feed: f, allEvents: true}).listedSince(ctx)
}

// OrderTimeline reads the last events of an order up to an event, at most limit, and returns them newest first,
// without events by other software. The read is strongly consistent.
//
// Errors: errors of table.WrapError.
func (f *Feed) OrderTimeline(ctx context.Context, order commerce.OrderID, last commerce.EventID, limit int) ([]*commerce.Event, error) {
	partition, err := model.EntityOrderEvent.PK.Build(string(order))
	if err != nil {
		return nil, err
	}
	p, bounds := &model.EventsInRange.AccessPattern, model.Range{To: model.JustAfter(string(last))}
	records, _, err := f.table.QueryUpTo(ctx, p, partition, string(p.SK), bounds, limit, false)
	return f.decodeTimeline(records), err
}
