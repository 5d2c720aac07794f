package authtest

import (
	"slices"
	"sync"
	"time"
)

// Clock is a manual clock. Only Advance changes its time. A Clock is safe for concurrent use.
type Clock struct {
	mu     sync.Mutex
	now    time.Time
	timers []*timer
}

type timer struct {
	due time.Time
	f   func()
}

// NewClock returns a clock that starts at now.
func NewClock(now time.Time) *Clock { return &Clock{now: now} }

// Now returns the time of the clock.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// AfterFunc schedules a call of f. Advance calls f as soon as the duration d has passed on the
// clock. The function stop cancels the call and reports whether f was still scheduled.
func (c *Clock) AfterFunc(d time.Duration, f func()) (stop func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &timer{c.now.Add(d), f}
	c.timers = append(c.timers, t)
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.remove(t)
	}
}

// PendingTimers returns the number of scheduled functions that have not been called or canceled.
func (c *Clock) PendingTimers() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.timers)
}

// remove removes a timer and reports whether the timer was still scheduled. The caller must hold
// c.mu.
func (c *Clock) remove(t *timer) bool {
	before := len(c.timers)
	c.timers = slices.DeleteFunc(c.timers, func(scheduled *timer) bool { return scheduled == t })
	return len(c.timers) < before
}

// Advance advances the clock by d. It calls the functions that become due, in the order of their
// due times. During each call, Now returns the due time of the function.
func (c *Clock) Advance(d time.Duration) {
	until := c.Now().Add(d)
	for {
		t := c.nextTimer(until)
		if t == nil {
			return
		}
		t.f()
	}
}

// nextTimer removes and returns the earliest timer, and advances the clock to the timer's due time.
// If all timers are due later than the parameter until, the clock advances to until, and the result
// is nil.
func (c *Clock) nextTimer(until time.Time) *timer {
	c.mu.Lock()
	defer c.mu.Unlock()
	var first *timer
	for _, t := range c.timers {
		if !t.due.After(until) && (first == nil || t.due.Before(first.due)) {
			first = t
		}
	}
	if first == nil {
		c.now = until
		return nil
	}
	c.remove(first)
	if first.due.After(c.now) {
		c.now = first.due
	}
	return first
}
