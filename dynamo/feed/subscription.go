package feed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// Subscription is a subscription to one order, to a customer's orders or to a status. It has to be
// closed. Only one goroutine at a time may call Next.
type Subscription struct {
	feed    *Feed
	topic   topic
	history history // nil for statuses
	// index is its index among the subscriptions to its topic; the feed's lock guards it.
	index int
	// wake tells Next to look again.
	wake chan struct{}

	mu sync.Mutex
	// queue are changes from the stream. Some of them may be in the timelines' backlog, too.
	queue []OrderChange
	// backlog are changes from the timelines. They are delivered before the queue.
	backlog []OrderChange
	// last is the last event that was delivered, or the last one before the subscription began.
	// Events up to it are not delivered.
	last commerce.EventID
	// until is the event up to which the timelines are being read, empty if they are not.
	until commerce.EventID
	// behind is set if changes were missed after the current read of the timelines began.
	behind bool
	// catchingUp is set while behind, until or backlog hold back the queue.
	catchingUp bool
	closed     bool
	err        error
}

// begin finds the event that the subscription begins after.
//
// Errors: commerce.InvalidError for after, those of table.Failed.
func (s *Subscription) begin(ctx context.Context, after commerce.EventID) error {
	done, err := s.feed.reading(ctx)
	if err != nil {
		return table.Failed("read", "the timeline", err)
	}
	defer done()
	until, err := s.history.last(ctx)
	if err != nil {
		return err
	}
	if after == "" || after == until {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.last = until
		return nil
	}
	s.mu.Lock()
	s.catchingUp = true
	s.mu.Unlock()
	events, until, more, err := s.history.events(ctx, after, until)
	if err != nil {
		return err
	}
	if len(events) == 0 || events[0].ID != after {
		return s.history.unknown()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = after
	s.addBacklog(events[1:], until, more)
	return nil
}

// addBacklog takes events from the timelines once the backlog is empty. The caller holds mu.
func (s *Subscription) addBacklog(events []*commerce.Event, until commerce.EventID, more bool) {
	if s.closed {
		return
	}
	// Events beyond the limit for all subscriptions are read again later.
	if capacity := max(minBacklog, maxBacklog-int(s.feed.backlog.Load())); len(events) > capacity {
		events, more = events[:capacity], true
	}
	s.backlog = make([]OrderChange, 0, len(events))
	for _, e := range events {
		s.backlog = append(s.backlog, OrderChange{OrderID: e.OrderID, Event: e, Position: e.ID})
	}
	s.feed.backlog.Add(int64(len(events)))
	if s.until = ""; more {
		s.until = until
	}
}

// Next waits for the next change. A subscription that was ended still delivers the changes in its
// queue before it returns the error.
//
// Errors: ErrTooSlow if the queue was full, ErrUnavailable if the feed failed (a new subscription
// can resume after the last event in both cases), ErrClosed if it was closed, those of the context.
func (s *Subscription) Next(ctx context.Context) (OrderChange, error) {
	for {
		change, found, err := s.next()
		if found || err != nil {
			return change, err
		}
		if s.mustCatchUp() {
			if err := s.catchUp(ctx); err != nil {
				return OrderChange{}, err
			}
			continue
		}
		select {
		case <-s.wake:
		case <-ctx.Done():
			return OrderChange{}, ctx.Err()
		}
	}
}

// next takes the next change that is already here.
func (s *Subscription) next() (OrderChange, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return OrderChange{}, false, ErrClosed
	}
	if len(s.backlog) > 0 {
		change := s.backlog[0]
		s.backlog[0] = OrderChange{} // do not keep it in memory until the last one is delivered
		s.feed.backlog.Add(-1)
		if s.backlog = s.backlog[1:]; len(s.backlog) == 0 {
			s.backlog = nil
		}
		s.last = change.Position
		return change, true, nil
	}
	if s.behind || s.until != "" {
		return OrderChange{}, false, s.err
	}
	s.catchingUp = false
	for len(s.queue) > 0 {
		change := s.queue[0]
		if s.queue = s.queue[1:]; len(s.queue) == 0 {
			s.queue = nil
		}
		if s.knows(change) {
			continue
		}
		if change.Position != "" {
			s.last = change.Position
		}
		return change, true, nil
	}
	return OrderChange{}, false, s.err
}

// knows reports whether a change was delivered, or happened before the subscription began.
func (s *Subscription) knows(change OrderChange) bool {
	return change.Position != "" && s.history != nil && change.Position <= s.last
}

func (s *Subscription) mustCatchUp() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.closed && (s.behind || s.until != "")
}

// catchUp reads the timelines.
//
// Errors: ErrTooSlow if too much was missed, and those of table.Failed; they end the subscription.
// Those of the context do not.
func (s *Subscription) catchUp(ctx context.Context) error {
	done, err := s.feed.reading(ctx)
	if err != nil {
		return err
	}
	defer done()
	s.mu.Lock()
	behind, from, until := s.behind, s.last, s.until
	// A gap from here on sets behind again.
	s.behind = false
	s.mu.Unlock()
	events, until, more, err := s.missing(ctx, behind, from, until)

	s.mu.Lock()
	if err == nil {
		s.addBacklog(events, until, more)
		s.mu.Unlock()
		return nil
	}
	s.behind = s.behind || behind
	s.mu.Unlock()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if invalid := (*commerce.InvalidError)(nil); errors.As(err, &invalid) {
		err = fmt.Errorf("subscribe to %s: %w: too much was missed", s.topic, ErrTooSlow)
	}
	s.feed.mu.Lock()
	defer s.feed.mu.Unlock()
	s.end(err)
	s.feed.detach(s)
	return err
}

// missing returns the next events after from, up to until, and how far it read. If behind is set,
// it reads the last event first and uses it as until.
func (s *Subscription) missing(ctx context.Context, behind bool, from, until commerce.EventID) ([]*commerce.Event, commerce.EventID, bool, error) {
	if behind {
		last, err := s.history.last(ctx)
		if err != nil || last <= from {
			return nil, "", false, err
		}
		until = last
	}
	events, until, more, err := s.history.events(ctx, from, until)
	if len(events) > 0 && events[0].ID == from {
		events = events[1:]
	}
	return events, until, more, err
}

// deliver puts a change into the queue. It reports false if the queue is full, which ends the
// subscription. The caller holds the feed's lock.
func (s *Subscription) deliver(change OrderChange) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	// A subscription that is behind finds the change in the timelines.
	if s.closed || s.err != nil || s.knows(change) || s.behind && change.Position != "" {
		return true
	}
	if len(s.queue) >= s.feed.buffer {
		if s.catchingUp {
			// It is reading the timelines, so it finds the queue's events there, too.
			s.queue = slices.DeleteFunc(s.queue, func(c OrderChange) bool { return c.Position != "" })
			s.behind = true
		}
		if len(s.queue) >= s.feed.buffer {
			s.err = fmt.Errorf("subscribe to %s: %w: its queue of %d changes is full", s.topic, ErrTooSlow, len(s.queue))
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

// missed notes that changes were missed.
func (s *Subscription) missed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.behind, s.catchingUp = true, true
	s.notify()
}

// end makes Next return err after the changes in the queue.
func (s *Subscription) end(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
	}
	s.notify()
}

func (s *Subscription) notify() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Close ends the subscription. It may be called more than once, and while Next waits.
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
