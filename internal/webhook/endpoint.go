package webhook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/attempt"
)

// Limits of deliveries.
const (
	// defaultPollInterval is the default of Options.PollInterval.
	defaultPollInterval = time.Second
	// pageSize is the maximum number of changes that one read of the list returns.
	pageSize = 1000
	// catchUpPageSize is the same for a webhook that is behind. The cursor moves after each page, so
	// after a takeover, at most this many events are delivered again.
	catchUpPageSize = 100
	// maxConcurrentOrders is the number of orders whose events are delivered to one webhook at the
	// same time.
	maxConcurrentOrders = 8
	// maxFailures is the number of orders that may fail in succession. After that, the endpoint is
	// considered unavailable.
	maxFailures = 5
	// retention is the time after which a webhook is disabled if nothing could be delivered. If only
	// the events of some orders fail, they are retried once a day then.
	retention = 14 * 24 * time.Hour
	// The pause after a failure doubles from minPause to one of the maximums.
	minPause         = 5 * time.Second
	maxEndpointPause = 5 * time.Minute
	maxOrderPause    = time.Hour
	maxLatePause     = 24 * time.Hour
)

// endpoint delivers the events of one webhook, as long as the server has its lease.
type endpoint struct {
	*Dispatcher
	webhookID commerce.WebhookID
	ctx       context.Context
	cancel    context.CancelFunc
	// lapse cancels ctx before the lease ends.
	lapse *time.Timer
	// wake interrupts a pause. done is closed when no further request is sent.
	wake, done chan struct{}

	mu      sync.Mutex
	webhook *commerce.Webhook
	// state is the state that the next renewal writes. Its Sequence is the one that is stored.
	state commerce.WebhookState
	// delivered contains the events after the cursor that are delivered already. changed reports
	// whether the state differs from the stored one, and renewed is the time of the last renewal.
	delivered map[commerce.EventID]bool
	changed   bool
	renewed   time.Time
	setAside  map[commerce.OrderID]*commerce.WebhookFailure
	// draining reports whether no further request may be started.
	draining bool
	// throttled is the number of responses in succession that asked for a pause.
	throttled int
}

// newEndpoint returns an endpoint whose lease was taken at the given time.
func newEndpoint(d *Dispatcher, w *commerce.Webhook, st commerce.WebhookState, failures []*commerce.WebhookFailure, taken time.Time) *endpoint {
	e := &endpoint{Dispatcher: d, webhookID: w.ID, changed: true, renewed: taken, wake: make(chan struct{}, 1), done: make(chan struct{}), webhook: w, state: st,
		delivered: map[commerce.EventID]bool{}, setAside: map[commerce.OrderID]*commerce.WebhookFailure{}}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	e.lapse = time.AfterFunc(time.Until(taken.Add(leaseTime-leaseMargin)), e.cancel)
	for _, f := range failures {
		e.setAside[f.OrderID] = f
	}
	for _, id := range st.Delivered {
		e.delivered[id] = true
	}
	return e
}

// configure passes the current settings of the webhook to the endpoint.
func (e *endpoint) configure(w *commerce.Webhook) {
	e.mu.Lock()
	changed := e.webhook.Version < w.Version // a read can return an older version again
	if changed {
		e.webhook = w
	}
	e.mu.Unlock()
	if changed {
		e.interrupt()
	}
}

// drain waits until the requests in progress have ended, for at most drainTime.
func (e *endpoint) drain(ctx context.Context) {
	e.mu.Lock()
	e.draining = true
	e.mu.Unlock()
	e.interrupt()
	ctx, cancel := context.WithTimeout(ctx, drainTime)
	defer cancel()
	select {
	case <-e.done:
	case <-ctx.Done():
	}
}

// interrupt ends the pause between two steps.
func (e *endpoint) interrupt() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// stop ends the requests in progress, and waits until no further request is sent.
func (e *endpoint) stop() {
	e.cancel()
	e.lapse.Stop()
	<-e.done
}

// release stops the endpoint and gives its lease to another server.
func (e *endpoint) release(ctx context.Context) {
	e.drain(ctx)
	e.stop()
	e.mu.Lock()
	e.state.Owner = ""
	e.mu.Unlock()
	if err := e.save(ctx); err != nil {
		e.Log.WarnContext(ctx, "the lease of a webhook was not given back, so it ends later", "webhook", e.webhookID, "error", err)
	}
	e.forget(e)
}

// renew renews the lease and stores the state. If another server wants the lease, or the webhook is
// no longer active, renew releases it.
func (e *endpoint) renew(ctx context.Context) {
	at := time.Now()
	e.mu.Lock()
	idle := !e.changed && at.Sub(e.renewed) < idleInterval && isActive(e.webhook, &e.state) && e.ctx.Err() == nil
	e.mu.Unlock()
	if idle {
		return
	}
	switch err := e.save(ctx); {
	case errors.Is(err, dynamo.ErrWebhookChanged) || e.ctx.Err() != nil:
		e.stop()
		e.forget(e)
		return
	case err != nil:
		return // lapse ends the delivery if no later attempt succeeds
	}
	e.lapse.Reset(time.Until(at.Add(leaseTime - leaseMargin)))
	e.mu.Lock()
	e.renewed = at
	released := e.state.Wanted != "" || !isActive(e.webhook, &e.state)
	e.mu.Unlock()
	if released {
		e.release(ctx)
	}
}

// save stores the state. If another server has only asked for the lease, save stores that it did.
func (e *endpoint) save(ctx context.Context) error {
	for attempt := 0; ; attempt++ {
		e.mu.Lock()
		st := e.state
		st.Delivered = slices.Sorted(maps.Keys(e.delivered))
		st.Delivered = st.Delivered[max(0, len(st.Delivered)-commerce.MaxWebhookDelivered):]
		e.changed = false
		e.mu.Unlock()
		before := st.Sequence
		st.Sequence++
		err := e.Store.SaveWebhookState(ctx, &st, before)
		if err == nil {
			e.mu.Lock()
			e.state.Sequence = st.Sequence
			e.mu.Unlock()
			return nil
		}
		e.mu.Lock()
		e.changed = true
		e.mu.Unlock()
		if !errors.Is(err, dynamo.ErrWebhookChanged) || attempt > 0 {
			return err
		}
		stored, failed := e.Store.WebhookStates(ctx, []commerce.WebhookID{e.webhookID})
		now := stored[e.webhookID]
		if failed != nil || now == nil || now.Owner != e.Dispatcher.id {
			return err
		}
		e.mu.Lock()
		e.state.Sequence, e.state.Wanted = now.Sequence, now.Wanted
		e.mu.Unlock()
	}
}

// run delivers events until the endpoint is stopped.
func (e *endpoint) run() {
	defer close(e.done)
	for e.ctx.Err() == nil && !e.isDraining() {
		timer := time.NewTimer(e.step())
		select {
		case <-timer.C:
		case <-e.wake:
		case <-e.ctx.Done():
		}
		timer.Stop()
	}
}

// step delivers what can be delivered now, and returns the time until the next step.
func (e *endpoint) step() time.Duration {
	now := e.Store.Now()
	w, err := e.applySettings(now)
	if err != nil {
		e.Log.WarnContext(e.ctx, "the settings of a webhook are not applied yet", "webhook", e.webhookID, "error", err)
		return e.PollInterval
	}
	if pause := e.endPause(now); pause > 0 {
		return min(pause, time.Minute)
	}
	secrets, err := e.Secrets(w)
	if err != nil {
		e.Log.ErrorContext(e.ctx, "the secret of a webhook cannot be decrypted, so no events are delivered to it: add its key to ORDERGRAPH_WEBHOOK_KEY, or rotate the secret", "webhook", e.webhookID, "error", err)
		e.fail("the secret cannot be decrypted: rotate it", now.Add(maxEndpointPause))
		return e.PollInterval
	}
	r := round{endpoint: e, webhook: w, secrets: secrets}
	if err := r.deliver(e.ctx); err != nil && e.ctx.Err() == nil {
		e.Log.WarnContext(e.ctx, "events of a webhook cannot be read at the moment", "webhook", e.webhookID, "error", err)
	}
	return e.PollInterval
}

// applySettings applies the current settings of the webhook. If an admin has changed them, all
// pauses end. After a replay, the endpoint starts again at the given event.
func (e *endpoint) applySettings(now time.Time) (*commerce.Webhook, error) {
	e.mu.Lock()
	w, applied, restarted := e.webhook, e.state.WebhookVersion >= e.webhook.Version, e.state.Cursor == "" || e.state.Restarts != e.webhook.Restarts
	failures := slices.SortedFunc(maps.Values(e.setAside), byEvent)
	e.mu.Unlock()
	if applied {
		return w, nil
	}
	for _, f := range failures {
		if f.RetryAt = now; restarted && f.EventID > w.From {
			if err := e.resumeOrder(f); err != nil {
				return nil, err
			}
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if st := &e.state; restarted {
		if st.Cursor == "" || st.Cursor > w.From { // a replay skips no event that was not delivered yet
			st.Cursor = w.From
		}
		st.Restarts, st.Pending, st.PendingSince = w.Restarts, 0, nil
		clear(e.delivered)
	}
	e.state.WebhookVersion, e.state.Failures, e.state.RetryAt, e.state.DisabledReason, e.throttled = w.Version, 0, nil, "", 0
	return w, nil
}

// endPause returns the time until the endpoint may send requests again. If it may do so now, the
// pause has ended.
func (e *endpoint) endPause(now time.Time) time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch at := e.state.RetryAt; {
	case !isActive(e.webhook, &e.state):
		return time.Minute
	case at != nil && at.After(now):
		return at.Sub(now)
	default:
		e.state.RetryAt = nil
		return 0
	}
}

// fail records an error, and sends no request before retryAt.
func (e *endpoint) fail(text string, retryAt time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.Store.Now()
	e.state.LastError, e.state.LastErrorAt, e.state.RetryAt, e.changed = text, &now, &retryAt, true
}

// backoff returns a random pause after a number of failures, from a half to the whole of a time
// that doubles with each failure.
func backoff(failures int, maximum time.Duration) time.Duration {
	pause := min(minPause<<min(max(failures-1, 0), 20), maximum)
	return pause/2 + attempt.RandomN(pause/2)
}

// record records the outcome of a delivery. repeated reports whether the order was set aside
// before. It returns errPaused if the failure does not concern the event.
func (e *endpoint) record(event *commerce.Event, o Outcome, repeated bool) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	now, st := e.Store.Now(), &e.state
	e.changed = true
	if o.Err == nil {
		// The endpoint is available again, so retry the orders that have failed since the last success.
		for _, f := range e.setAside {
			if st.Failures >= maxFailures || st.Failures > 0 && (st.LastSuccessAt == nil || f.Since.After(*st.LastSuccessAt)) {
				f.RetryAt = now
			}
		}
		st.LastSuccessAt, st.Failures, e.throttled = &now, 0, 0
		if event.ID > st.Cursor {
			e.delivered[event.ID] = true
		}
		return nil
	}
	st.LastError, st.LastErrorAt = truncate(o.Err.Error()), &now
	since := e.webhook.UpdatedAt
	if st.LastSuccessAt != nil && st.LastSuccessAt.After(since) {
		since = *st.LastSuccessAt
	}
	first := now // the first failure since then
	for _, f := range e.setAside {
		if f.Since.After(since) && f.Since.Before(first) {
			first = f.Since
		}
	}
	disabled := ""
	switch {
	case o.Status == http.StatusGone:
		disabled = "the endpoint answered 410 Gone"
	case now.Sub(first) > retention && st.Failures >= maxFailures:
		disabled = fmt.Sprintf("nothing could be delivered for %d days", retention/(24*time.Hour))
	case o.Status == http.StatusTooManyRequests || o.RetryAfter > 0:
		if st.RetryAt == nil { // not counted again for requests that were sent before the pause
			e.throttled++
		}
		e.pauseUntil(now.Add(max(o.RetryAfter, backoff(e.throttled, maxEndpointPause))))
		return errPaused
	case !repeated || st.Failures >= maxFailures:
		if st.Failures++; st.Failures >= maxFailures {
			e.pauseUntil(now.Add(backoff(st.Failures-maxFailures+1, maxEndpointPause)))
		}
		return nil
	default:
		return nil
	}
	st.DisabledReason = disabled
	e.Log.ErrorContext(e.ctx, "a webhook was disabled: correct its endpoint, and then use resumeWebhook", "webhook", e.webhookID, "reason", disabled, "error", o.Err)
	return errPaused
}

// pauseUntil sends no further requests before at, or before the end of a longer pause. The caller
// holds mu.
func (e *endpoint) pauseUntil(at time.Time) {
	if e.state.RetryAt == nil || e.state.RetryAt.Before(at) {
		e.state.RetryAt = &at
	}
}

// errPaused means that the endpoint asked for a pause, or was disabled, so the event is not counted
// as failed.
var errPaused = errors.New("the webhook is paused")

func (e *endpoint) isDraining() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.draining
}

// mustWait reports whether no further request may be sent in this step.
func (e *endpoint) mustWait() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.draining || e.ctx.Err() != nil || e.state.RetryAt != nil || !isActive(e.webhook, &e.state) || e.webhook.Version > e.state.WebhookVersion
}

// setAsideOrder records that the delivery of an event has failed, so the events of this order wait
// and others do not. It reports whether the order is set aside.
func (e *endpoint) setAsideOrder(event *commerce.Event, failure error) (bool, error) {
	now := e.Store.Now()
	e.mu.Lock()
	f := commerce.WebhookFailure{WebhookID: e.webhookID, OrderID: event.OrderID, EventID: event.ID, Since: now}
	if before := e.setAside[event.OrderID]; before != nil && before.EventID == event.ID {
		f = *before
	} else if before == nil && len(e.setAside) >= commerce.MaxWebhookFailures {
		e.mu.Unlock()
		return false, nil
	}
	e.mu.Unlock()
	f.Attempts++
	pause := maxOrderPause
	if now.Sub(f.Since) > retention {
		pause = maxLatePause
	}
	f.Error, f.RetryAt = truncate(failure.Error()), now.Add(backoff(f.Attempts, pause))
	if err := e.Store.SaveWebhookFailure(e.ctx, &f, e.id); err != nil {
		return false, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.setAside[event.OrderID] = &f
	return true, nil
}

// hasFailedAgain reports whether an order that was set aside has failed since then.
func (e *endpoint) hasFailedAgain(f *commerce.WebhookFailure) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.setAside[f.OrderID] != f
}

// cursor returns the ID of the event up to which all are delivered.
func (e *endpoint) cursor() commerce.EventID {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.state.Cursor
}

// concurrency returns the number of orders whose events are delivered at the same time. After a
// failure, it is 1.
func (e *endpoint) concurrency() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.state.Failures > 0 {
		return 1
	}
	return maxConcurrentOrders
}

// failures returns the number of failures since the last success.
func (e *endpoint) failures() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.state.Failures
}

// isDelivered reports whether an event after the cursor is delivered.
func (e *endpoint) isDelivered(id commerce.EventID) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.delivered[id]
}

// undeliveredOf returns the events that a webhook wants, and that are neither delivered nor set
// aside.
func (e *endpoint) undeliveredOf(w *commerce.Webhook, events []*commerce.Event) (rest []*commerce.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, event := range events {
		if w.Wants(event) && !e.delivered[event.ID] && e.setAside[event.OrderID] == nil {
			rest = append(rest, event)
		}
	}
	return rest
}

// setPending records the number of events that are known but not delivered, in addition to the
// orders that are set aside. oldest is the first of them, or nil.
func (e *endpoint) setPending(n int, oldest *commerce.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.state.Pending, e.state.PendingSince = n+len(e.setAside), nil
	if oldest != nil {
		e.state.PendingSince = &oldest.At
	}
	for _, f := range e.setAside {
		if at, ok := f.EventID.Time(); ok && (e.state.PendingSince == nil || at.Before(*e.state.PendingSince)) {
			e.state.PendingSince = &at
		}
	}
}

// resumeOrder removes an order from those that are set aside.
func (e *endpoint) resumeOrder(f *commerce.WebhookFailure) error {
	if err := e.Store.DeleteWebhookFailure(e.ctx, f.WebhookID, f.OrderID, e.id); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.setAside, f.OrderID)
	return nil
}

// dueOrders returns the orders that are set aside, and whose next attempt is due. It first returns
// those that have waited longest, and of those that are due at the same time, the one with the oldest
// event.
func (e *endpoint) dueOrders(now time.Time) (due []*commerce.WebhookFailure) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, f := range e.setAside {
		if !f.RetryAt.After(now) {
			due = append(due, f)
		}
	}
	slices.SortFunc(due, func(a, b *commerce.WebhookFailure) int {
		return cmp.Or(a.RetryAt.Compare(b.RetryAt), byEvent(a, b))
	})
	return due
}

// byEvent sorts failures by the age of their events.
func byEvent(a, b *commerce.WebhookFailure) int { return cmp.Compare(a.EventID, b.EventID) }

// advance moves the cursor, after all events up to it are delivered or set aside.
func (e *endpoint) advance(to commerce.EventID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if to <= e.state.Cursor {
		return
	}
	e.state.Cursor = to
	for id := range e.delivered {
		if id <= to {
			delete(e.delivered, id)
		}
	}
}

func truncate(text string) string {
	if len(text) > commerce.MaxWebhookError {
		return strings.ToValidUTF8(text[:commerce.MaxWebhookError], "")
	}
	return text
}
