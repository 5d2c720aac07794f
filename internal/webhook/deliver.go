package webhook

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// round delivers the events of a webhook that can be delivered now.
type round struct {
	*endpoint
	webhook *commerce.Webhook
	secrets []string
	// failing reports whether the last delivery before the round failed.
	failing bool
}

// deliver delivers the events of orders whose retry is due, and new events. After failures, it
// begins with the one or the other in turn, because only one request may be possible. When a
// delivery shows that the endpoint is available again, it continues with the oldest events.
//
// Errors: errors from table.WrapError. An error of the endpoint is no error here.
func (r round) deliver(ctx context.Context) error {
	failures := r.failures()
	r.failing = failures > 0
	parts := []func(context.Context) error{r.deliverDue, r.deliverNew}
	if failures%2 == 1 {
		slices.Reverse(parts)
	}
	err := parts[0](ctx)
	if !r.recovered() {
		err = errors.Join(err, parts[1](ctx))
	}
	if r.recovered() {
		r.failing = false
		err = errors.Join(err, r.deliverDue(ctx), r.deliverNew(ctx))
	}
	return err
}

// recovered reports whether the endpoint is available again since the beginning of the round.
func (r round) recovered() bool { return r.failing && r.failures() == 0 }

// deliverDue delivers the events of orders whose retry is due.
func (r round) deliverDue(ctx context.Context) error {
	due := r.dueOrders(r.Store.Now())
	return r.forEachOrder(ctx, len(due), func(ctx context.Context, i int) error { return r.retry(ctx, due[i]) })
}

// deliverNew delivers the events after the cursor.
func (r round) deliverNew(ctx context.Context) error {
	from, end := r.cursor(), commerce.MinEventIDAt(r.Store.Now().Add(maxClockDifference))
	for from < end && !r.mustWait() && !r.recovered() {
		events, to, settled, err := r.recent.read(ctx, from, end)
		if err != nil {
			return err
		}
		complete, err := r.deliverPage(ctx, events)
		if err != nil || !complete || to <= from {
			return err // the last read of the recent changes ended before
		}
		from = to
		r.advance(min(to, settled))
	}
	return nil
}

// forEachOrder calls do for n orders, for several at the same time. After failures, it calls do for
// one order after the other, until one succeeds. If do fails for an order, forEachOrder continues
// with other orders, until too many have failed. Then it returns the errors.
func (r round) forEachOrder(ctx context.Context, n int, do func(context.Context, int) error) error {
	if n == 0 {
		return nil
	}
	var mu sync.Mutex
	var failed []error
	err := table.Parallel(ctx, n, r.concurrency(), func(ctx context.Context, i int) error {
		mu.Lock()
		wait := len(failed) >= maxFailures || r.mustWait() || r.recovered()
		mu.Unlock()
		if wait {
			return nil
		}
		if err := do(ctx, i); err != nil {
			mu.Lock()
			defer mu.Unlock()
			failed = append(failed, err)
		}
		return nil
	})
	return errors.Join(append(failed, err)...)
}

// deliverPage delivers the events that the webhook wants and that are not delivered yet. It
// reports whether all of them are delivered, or their orders are set aside.
func (r round) deliverPage(ctx context.Context, events []*commerce.Event) (complete bool, err error) {
	events = r.undeliveredOf(r.webhook, events)
	var orders []commerce.OrderID
	last := map[commerce.OrderID]commerce.EventID{}
	for _, event := range events {
		if last[event.OrderID] == "" {
			orders = append(orders, event.OrderID)
		}
		last[event.OrderID] = event.ID
	}
	if r.setPending(0, nil); len(events) > 0 {
		r.setPending(len(events), events[0])
	}
	done := make([]bool, len(orders))
	err = r.forEachOrder(ctx, len(orders), func(ctx context.Context, i int) error {
		handled, err := r.deliverOrder(ctx, orders[i], commerce.EventID(model.JustAfter(string(r.cursor()))), last[orders[i]], false)
		done[i] = handled
		return err
	})
	if complete = err == nil && !slices.Contains(done, false); complete {
		r.setPending(0, nil)
	}
	return complete, err
}

// retry delivers the events of an order that was set aside.
func (r round) retry(ctx context.Context, f *commerce.WebhookFailure) error {
	handled, err := r.deliverOrder(ctx, f.OrderID, f.EventID, commerce.MinEventIDAt(r.Store.Now().Add(maxClockDifference)), true)
	if err != nil || !handled || r.hasFailedAgain(f) {
		return err
	}
	return r.resumeOrder(f)
}

// deliverOrder delivers the events of an order with first <= ID <= last, in the sequence of the
// order. If one fails, it sets the order aside. It returns false if the events must be delivered
// later, because the endpoint pauses.
func (r round) deliverOrder(ctx context.Context, id commerce.OrderID, first, last commerce.EventID, repeated bool) (handled bool, err error) {
	events, previous, err := r.undelivered(ctx, id, first, last)
	if err != nil {
		return false, err
	}
	for _, event := range events {
		if r.mustWait() {
			return false, nil
		}
		outcome, err := r.send(ctx, event, previous)
		if err != nil {
			return false, err
		}
		if err := r.record(event, outcome, repeated); err != nil {
			return false, nil
		}
		if outcome.Err != nil {
			return r.setAsideOrder(event, outcome.Err)
		}
		previous = event.Version
	}
	return true, nil
}

// send delivers one event. It returns an error if the request was not sent, or its outcome does not
// matter, because the server stops.
func (r round) send(ctx context.Context, event *commerce.Event, previous int) (Outcome, error) {
	body, err := r.payload(ctx, r.webhook, event, previous)
	switch {
	case ctx.Err() != nil:
		return Outcome{}, ctx.Err()
	case errors.Is(err, table.ErrUnavailable):
		return Outcome{}, err
	case err != nil:
		return Outcome{Err: err}, nil
	}
	start := time.Now()
	outcome := r.Sender.Send(ctx, Message{ID: string(event.ID), URL: r.webhook.URL, Body: body, Secrets: r.secrets, At: r.Store.Now()})
	if ctx.Err() != nil && outcome.Err != nil {
		return outcome, ctx.Err()
	}
	if r.Observe != nil {
		r.Observe(ctx, Delivery{Webhook: r.webhookID, Event: event, Outcome: outcome, Duration: time.Since(start), Lag: r.Store.Now().Sub(event.At), Bytes: len(body)})
	}
	return outcome, nil
}

// undelivered returns the events of an order with first <= ID <= last that the webhook wants and
// that are not delivered yet, oldest first. previous is the version of the order after the last
// event before them that the webhook wants, or 0 if there was no such event.
//
// It reads the timeline of the order, because the index may contain a later event of an order
// earlier.
func (r round) undelivered(ctx context.Context, id commerce.OrderID, first, last commerce.EventID) (events []*commerce.Event, previous int, err error) {
	for to := last; ; {
		page, err := r.timelineUpTo(ctx, id, to)
		if err != nil {
			return nil, 0, err
		}
		for _, event := range page.events {
			switch {
			case event.ID >= min(first, r.webhook.From) && !r.webhook.Wants(event):
				continue
			case event.ID >= first && !r.isDelivered(event.ID):
				events = append(events, event)
				continue
			case event.ID > r.webhook.From:
				previous = event.Version
			}
			slices.Reverse(events)
			return events, previous, nil
		}
		if to = page.next; to == "" {
			slices.Reverse(events)
			return events, 0, nil
		}
	}
}

// timelinePageSize is the number of events that one Query reads from the timeline of an order.
const timelinePageSize = 25

// timelinePage is a page of an order's events, newest first. The next page contains the events with
// IDs of at most next. If there is none, next is empty.
type timelinePage struct {
	events []*commerce.Event
	next   commerce.EventID
}

// timelineUpTo returns the last events of an order with ID <= last.
func (r round) timelineUpTo(ctx context.Context, id commerce.OrderID, last commerce.EventID) (timelinePage, error) {
	return r.timeline.get(string(id)+string(last), func() (page timelinePage, err error) {
		page.events, page.next, err = r.Store.OrderTimeline(ctx, id, last, timelinePageSize)
		return page, err
	})
}

// maxClockDifference is an upper bound for the difference between this server's clock and the time
// in the ID of an event that another server has just written.
const maxClockDifference = 2 * (table.MaxClockDifference + time.Second)
