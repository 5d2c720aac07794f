package dynamo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// Following is what somebody follows. It is to be closed. One goroutine at a time calls Next.
type Following struct {
	feed    *Feed
	topic   topic
	history history // nil for statuses
	// place is where it stands among the followers of its topic; the feed's lock guards it.
	place int
	// wake has something in it when Next has to look again.
	wake chan struct{}

	mu sync.Mutex
	// queue are changes that the stream has told, some of which the timelines may have told, too.
	queue []OrderChange
	// backlog are changes that were read from the timelines; they come first.
	backlog []OrderChange
	// last is the event that was given last, or the last one there was at the beginning. There is
	// nothing to be told up to it.
	last commerce.EventID
	// until is the event up to which the timelines are being read, empty where they are not.
	until commerce.EventID
	// behind tells that changes were missed which no reading that is under way will find.
	behind bool
	// catching tells that behind, until or backlog have something to come before the queue.
	catching bool
	closed   bool
	err      error
}

// begin finds out where the follower stands.
//
// Errors: commerce.InvalidError for after, those of failed.
func (w *Following) begin(ctx context.Context, after commerce.EventID) error {
	if err := w.feed.waitToRead(ctx); err != nil {
		return err
	}
	defer w.feed.doneReading()
	until, err := w.history.last(ctx)
	if err != nil {
		return err
	}
	if after == "" || after == until {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.last = until
		return nil
	}
	w.mu.Lock()
	w.catching = true
	w.mu.Unlock()
	events, until, more, err := w.history.events(ctx, after, until)
	if err != nil {
		return err
	}
	if len(events) == 0 || events[0].ID != after {
		return w.history.unknown()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = after
	w.toldBy(events[1:], until, more)
	return nil
}

// toldBy takes what the timelines told, when the last of it was given. The follower's lock is held.
func (w *Following) toldBy(events []*commerce.Event, until commerce.EventID, more bool) {
	if w.closed {
		return
	}
	// What all followers together have no room for is read again later.
	if room := max(fewEvents, maxBacklog-int(w.feed.backlog.Load())); len(events) > room {
		events, more = events[:room], true
	}
	w.backlog = make([]OrderChange, 0, len(events))
	for _, e := range events {
		w.backlog = append(w.backlog, OrderChange{OrderID: e.OrderID, Event: e, Position: e.ID})
	}
	w.feed.backlog.Add(int64(len(events)))
	if w.until = ""; more {
		w.until = until
	}
}

// Next waits for the next change. What was told before the follower was cut for being slow still
// comes.
//
// Errors: ErrTooSlow where the follower has fallen so far behind that it was cut, ErrUnavailable
// where the feed broke off (both can be resumed behind the last event), ErrNotFollowing where it
// was closed, those of the context.
func (w *Following) Next(ctx context.Context) (OrderChange, error) {
	for {
		change, found, err := w.next()
		if found || err != nil {
			return change, err
		}
		if w.mustCatchUp() {
			if err := w.catchUp(ctx); err != nil {
				return OrderChange{}, err
			}
			continue
		}
		select {
		case <-w.wake:
		case <-ctx.Done():
			return OrderChange{}, ctx.Err()
		}
	}
}

// next takes the next change that is at hand.
func (w *Following) next() (OrderChange, bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return OrderChange{}, false, ErrNotFollowing
	}
	if len(w.backlog) > 0 {
		change := w.backlog[0]
		w.backlog[0] = OrderChange{} // it must not wait in memory for the last one
		w.feed.backlog.Add(-1)
		if w.backlog = w.backlog[1:]; len(w.backlog) == 0 {
			w.backlog = nil
		}
		w.last = change.Position
		return change, true, nil
	}
	if w.behind || w.until != "" {
		return OrderChange{}, false, w.err
	}
	w.catching = false
	for len(w.queue) > 0 {
		change := w.queue[0]
		if w.queue = w.queue[1:]; len(w.queue) == 0 {
			w.queue = nil
		}
		if w.knows(change) {
			continue
		}
		if change.Position != "" {
			w.last = change.Position
		}
		return change, true, nil
	}
	return OrderChange{}, false, w.err
}

// knows reports whether a change was delivered, or happened before the subscription began.
func (w *Following) knows(change OrderChange) bool {
	return change.Position != "" && w.history != nil && change.Position <= w.last
}

func (w *Following) mustCatchUp() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.closed && (w.behind || w.until != "")
}

// catchUp reads on in the timelines.
//
// Errors: ErrTooSlow where too much was missed, and those of failed, which end it; those of the
// context do not.
func (w *Following) catchUp(ctx context.Context) error {
	if err := w.feed.waitToRead(ctx); err != nil {
		return ctx.Err()
	}
	defer w.feed.doneReading()
	w.mu.Lock()
	behind, from, until := w.behind, w.last, w.until
	// What is missed from here on is missed anew.
	w.behind = false
	w.mu.Unlock()
	events, until, more, err := w.missing(ctx, behind, from, until)

	w.mu.Lock()
	if err == nil {
		w.toldBy(events, until, more)
		w.mu.Unlock()
		return nil
	}
	w.behind = w.behind || behind
	w.mu.Unlock()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if invalid := (*commerce.InvalidError)(nil); errors.As(err, &invalid) {
		err = fmt.Errorf("follow %s: %w: too much was missed", w.topic, ErrTooSlow)
	}
	w.feed.mu.Lock()
	defer w.feed.mu.Unlock()
	w.end(err)
	w.feed.detach(w)
	return err
}

// missing returns the next events after from, up to until, and how far it read. Where behind is
// set, it reads first which event is the last one.
func (w *Following) missing(ctx context.Context, behind bool, from, until commerce.EventID) ([]*commerce.Event, commerce.EventID, bool, error) {
	if behind {
		last, err := w.history.last(ctx)
		if err != nil || last <= from {
			return nil, "", false, err
		}
		until = last
	}
	events, until, more, err := w.history.events(ctx, from, until)
	if len(events) > 0 && events[0].ID == from {
		events = events[1:]
	}
	return events, until, more, err
}

// tell puts a change into the queue; false tells that the follower is cut for being slow. The
// feed's lock is held.
func (w *Following) tell(change OrderChange) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	// What is behind anyway reads the timelines, where the change is.
	if w.closed || w.err != nil || w.knows(change) || w.behind && change.Position != "" {
		return true
	}
	if len(w.queue) >= w.feed.buffer {
		if w.catching {
			// It is not slow, it reads. Then it reads on.
			w.queue = slices.DeleteFunc(w.queue, func(c OrderChange) bool { return c.Position != "" })
			w.behind = true
		}
		if len(w.queue) >= w.feed.buffer {
			w.err = fmt.Errorf("follow %s: %w: %d changes wait for it", w.topic, ErrTooSlow, len(w.queue))
			w.notify()
			return false
		}
		if w.behind && change.Position != "" {
			return true
		}
	}
	w.queue = append(w.queue, change)
	w.notify()
	return true
}

// missed tells that changes were missed.
func (w *Following) missed() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.behind, w.catching = true, true
	w.notify()
}

// end lets Next end with err when it has given what waits.
func (w *Following) end(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = err
	}
	w.notify()
}

func (w *Following) notify() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Close ends it. It may be called more than once, and while Next waits.
func (w *Following) Close() {
	w.feed.mu.Lock()
	defer w.feed.mu.Unlock()
	w.feed.detach(w)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.feed.backlog.Add(-int64(len(w.backlog)))
	w.closed, w.queue, w.backlog = true, nil, nil
	w.notify()
}

// waitToRead waits for a place among those who read timelines.
//
// Errors: the context's, where it ends first.
func (f *Feed) waitToRead(ctx context.Context) error {
	select {
	case f.reading <- struct{}{}:
		return nil
	case <-ctx.Done():
		return table.Failed("read", "the timeline", ctx.Err())
	}
}

func (f *Feed) doneReading() { <-f.reading }
