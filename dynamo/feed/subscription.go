package feed

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// Subscription is a subscription to an order, to a customer's orders or to a status. The caller
// must close it. Next must not be called concurrently.
type Subscription struct {
	feed    *Feed
	topic   topic
	history history // nil if the subscription is to a status, and began without an event
	// index is the index of this subscription in the feed's list of subscriptions to the same topic.
	// The feed's mu protects it.
	index int
	// wake receives a value when Next must continue.
	wake chan struct{}

	mu sync.Mutex
	// queue contains changes from the stream. The backlog may contain some of the same changes.
	queue []OrderChange
	// backlog contains changes from the timelines. They are delivered before the changes in the queue.
	backlog []OrderChange
	// lastEventID is the ID of the last delivered event. Before the first delivery, it is the ID of
	// the event after which the subscription begins. Events up to lastEventID are not delivered.
	lastEventID commerce.EventID
	// readUntil is the ID up to which events must still be read from the timelines. If no such read is
	// necessary, it is empty.
	readUntil commerce.EventID
	// behind is true if the subscription has missed changes and has not yet begun to read them from
	// the timelines.
	behind bool
	// catchingUp is true while events from the timelines must be delivered before the queue.
	catchingUp bool
	// delayed is true if the subscription delivers only events that it has read with history. Its queue
	// contains only changes by other software.
	delayed bool
	// nextRead is the time when a delayed subscription must read again. If it is zero, there is nothing to
	// read. lastChange is the last time at which there may have been a change.
	nextRead, lastChange time.Time
	// readTo is the ID up to which the events in the backlog of a delayed subscription are complete.
	readTo commerce.EventID
	closed bool
	err    error
}

// begin starts the subscription after the event with the ID after, and reads the later events from
// the timelines. If the parameter after is empty, the subscription starts after the last existing
// event.
//
// Errors: commerce.InvalidError if after is invalid, and the errors of table.WrapError.
func (s *Subscription) begin(ctx context.Context, after commerce.EventID) error {
	done, err := s.feed.acquireRead(ctx)
	if err != nil {
		return table.WrapError("read", "the timeline", err)
	}
	defer done()
	until, err := s.history.lastEventID(ctx)
	if err != nil {
		return err
	}
	if after == "" || after == until {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.lastEventID = until
		return nil
	}
	s.feed.catchUps.Add(1)
	s.mu.Lock()
	s.catchingUp = true
	s.mu.Unlock()
	events, until, more, err := s.history.events(ctx, after, until, s.feed.catchUpLimit())
	if err != nil {
		return err
	}
	if len(events) == 0 || events[0].ID != after {
		return s.history.resumeError()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastEventID = after
	s.setBacklog(events[1:], until, more)
	return nil
}

// setBacklog stores events from the timelines in the backlog, which must be empty. If the parameter
// more is true, later events, up to the ID until, must still be read. The caller holds mu.
func (s *Subscription) setBacklog(events []*commerce.Event, until commerce.EventID, more bool) {
	if s.closed {
		return
	}
	// All subscriptions together may keep maxBacklog events in memory. Drop the events that exceed
	// this limit. They are read again later.
	if capacity := s.feed.backlogCapacity(); len(events) > capacity {
		events, more = events[:capacity], true
	}
	s.backlog = make([]OrderChange, 0, len(events))
	for _, e := range events {
		s.backlog = append(s.backlog, OrderChange{OrderID: e.OrderID, Event: e, Position: e.ID})
	}
	s.feed.backlog.Add(int64(len(events)))
	if s.readUntil = ""; more {
		s.readUntil = until
	} else if s.delayed {
		s.readTo = until
	}
}

// Next waits for the next change. If the feed has ended the subscription, Next first returns the
// remaining changes.
//
// Errors: ErrTooSlow or table.ErrUnavailable if the feed has ended the subscription,
// ErrSubscriptionClosed after Close, the context's error.
func (s *Subscription) Next(ctx context.Context) (OrderChange, error) {
	for {
		change, found, err := s.tryNext()
		if found || err != nil {
			return change, err
		}
		if s.mustCatchUp() {
			if err := s.catchUp(ctx); err != nil {
				return OrderChange{}, err
			}
			continue
		}
		if err := s.wait(ctx); err != nil {
			return OrderChange{}, err // the subscription continues
		}
	}
}

// wait waits until Next must continue. It returns the context's error.
func (s *Subscription) wait(ctx context.Context) error {
	s.mu.Lock()
	nextRead := s.nextRead
	s.mu.Unlock()
	due := (<-chan time.Time)(nil)
	if !nextRead.IsZero() {
		timer := time.NewTimer(nextRead.Sub(s.feed.table.Now()))
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-s.wake:
	case <-due:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// readLater lets a delayed subscription read again when all changes up to now can be read. The caller holds
// mu.
func (s *Subscription) readLater() {
	s.lastChange = s.feed.table.Now()
	if s.nextRead.IsZero() {
		s.nextRead = s.lastChange.Add(statusDelay)
		s.notify()
	}
}

// tryNext removes the next change from the backlog or the queue, and returns it. It does not wait.
// If there is no change, or if the timelines must be read first, it returns false.
func (s *Subscription) tryNext() (OrderChange, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return OrderChange{}, false, ErrSubscriptionClosed
	}
	if len(s.backlog) > 0 {
		change := s.backlog[0]
		s.backlog[0] = OrderChange{} // so that the backlog does not keep the event in memory
		s.feed.backlog.Add(-1)
		if s.backlog = s.backlog[1:]; len(s.backlog) == 0 {
			s.backlog = nil
		}
		s.lastEventID = change.Position
		s.feed.delivered.Add(1)
		return change, true, nil
	}
	s.lastEventID = max(s.lastEventID, s.readTo)
	if s.behind || s.readUntil != "" {
		return OrderChange{}, false, s.err
	}
	s.catchingUp = false
	for len(s.queue) > 0 {
		change := s.queue[0]
		if s.queue = s.queue[1:]; len(s.queue) == 0 {
			s.queue = nil
		}
		if s.isDelivered(change) {
			continue
		}
		if change.Position != "" {
			s.lastEventID = change.Position
		}
		s.feed.delivered.Add(1)
		return change, true, nil
	}
	return OrderChange{}, false, s.err
}

// isDelivered reports whether a change was already delivered, or was committed before the
// subscription began.
func (s *Subscription) isDelivered(change OrderChange) bool {
	return change.Position != "" && s.history != nil && change.Position <= s.lastEventID
}

// mustCatchUp reports whether missed events must be read from the timelines before Next continues
// with the queue.
func (s *Subscription) mustCatchUp() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.feed.table.Now(); !s.nextRead.IsZero() && !now.Before(s.nextRead) {
		s.behind, s.nextRead = true, time.Time{}
	}
	return !s.closed && (s.behind || s.readUntil != "")
}

// catchUp reads missed events from the timelines into the backlog. All errors except the context's
// error end the subscription.
//
// It returns the errors of table.WrapError.
func (s *Subscription) catchUp(ctx context.Context) error {
	done, err := s.feed.acquireRead(ctx)
	if err != nil {
		return err
	}
	defer done()
	s.feed.catchUps.Add(1)
	s.mu.Lock()
	behind, from, until := s.behind, s.lastEventID, s.readUntil
	// If the source reports a gap during the read, markBehind sets behind to true again.
	s.behind = false
	started := s.feed.table.Now()
	s.mu.Unlock()
	events, until, more, err := s.missedEvents(ctx, behind, from, until)

	s.mu.Lock()
	if err == nil {
		s.setBacklog(events, until, more)
		if later := s.lastChange.Add(statusDelay); s.delayed && s.nextRead.IsZero() && later.After(started) {
			s.nextRead = later
		}
		s.mu.Unlock()
		return nil
	}
	s.behind = s.behind || behind
	s.mu.Unlock()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	s.feed.mu.Lock()
	defer s.feed.mu.Unlock()
	s.end(err)
	s.feed.detach(s)
	return err
}

// missedEvents returns the events with from < ID <= until. If behind is true, it ignores the
// parameter until and reads up to the last event. For the results until and more, see
// history.events.
func (s *Subscription) missedEvents(ctx context.Context, behind bool, from, until commerce.EventID) ([]*commerce.Event, commerce.EventID, bool, error) {
	if behind {
		last, err := s.history.lastEventID(ctx)
		// An earlier last event is outdated, so it does not show whether events were missed.
		if err != nil || last == from {
			return nil, "", false, err
		}
		until = last
	}
	events, until, more, err := s.history.events(ctx, from, until, s.feed.catchUpLimit())
	if len(events) > 0 && events[0].ID == from {
		events = events[1:]
	}
	return events, until, more, err
}

// deliver appends a change to the queue. If the queue is full while the subscription reads the
// timelines, deliver first drops the queue's events, because the timelines also contain them. If no
// space becomes free, deliver ends the subscription and returns false. The caller holds the feed's
// mu.
func (s *Subscription) deliver(change OrderChange) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	// If the subscription is behind, ignore the change, because the subscription will read it from the
	// timelines.
	if s.delayed && change.Position != "" {
		s.readLater()
		return true
	}
	if s.closed || s.err != nil || s.isDelivered(change) || s.behind && change.Position != "" {
		return true
	}
	if len(s.queue) >= s.feed.queueCapacity {
		if s.catchingUp {
			// The subscription is reading the timelines, which also contain the events in the queue. So drop
			// these events from the queue, and read them from the timelines later.
			s.queue = slices.DeleteFunc(s.queue, func(c OrderChange) bool { return c.Position != "" })
			s.behind = true
		}
		if len(s.queue) >= s.feed.queueCapacity {
			s.err = fmt.Errorf("subscribe to %s: %w: the subscription's queue is full (%d changes)", s.topic, ErrTooSlow, len(s.queue))
			s.notify()
			return false
		}
		if s.behind && change.Position != "" {
			return true
		}
	}
	s.queue = append(s.queue, change)
	s.notify()
	return true
}

// markBehind records that the subscription has missed changes, so it must read the timelines.
func (s *Subscription) markBehind() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.behind, s.catchingUp = true, true
	if s.delayed {
		s.lastChange = s.feed.table.Now()
	}
	s.notify()
}

// end ends the subscription. Next returns the remaining changes of the queue, and then err.
func (s *Subscription) end(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
	}
	s.notify()
}

// notify wakes up Next if it is waiting. It does not block.
func (s *Subscription) notify() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Close ends the subscription. It can be called several times, and also while Next is waiting.
func (s *Subscription) Close() {
	s.feed.mu.Lock()
	defer s.feed.mu.Unlock()
	s.feed.detach(s)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.feed.backlog.Add(-int64(len(s.backlog)))
	s.closed, s.queue, s.backlog = true, nil, nil
	s.notify()
}
