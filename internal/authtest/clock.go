package authtest

import (
	"slices"
	"sync"
	"time"
)

// Clock is a clock that only Pass moves. It is safe for concurrent use.
type Clock struct {
	mu     sync.Mutex
	now    time.Time
	timers []*timer
}

type timer struct {
	due time.Time
	f   func()
}

// NewClock returns a clock that shows the time.
func NewClock(now time.Time) *Clock { return &Clock{now: now} }

// Now is the time of the clock.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// After makes Pass call f when d has passed, unless stop is called before.
func (c *Clock) After(d time.Duration, f func()) (stop func() bool) {
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

// Timers is how many functions wait to be called.
func (c *Clock) Timers() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.timers)
}

// remove reports whether a timer was there. The caller holds mu.
func (c *Clock) remove(t *timer) bool {
	before := len(c.timers)
	c.timers = slices.DeleteFunc(c.timers, func(other *timer) bool { return other == t })
	return len(c.timers) < before
}

// Pass moves the clock forward and calls what is due on the way, each function at its time and
// before the next one.
func (c *Clock) Pass(d time.Duration) {
	until := c.Now().Add(d)
	for {
		t := c.next(until)
		if t == nil {
			return
		}
		t.f()
	}
}

// next moves the clock to the next timer that is due until then and returns it, or to the end and
// returns nil.
func (c *Clock) next(until time.Time) *timer {
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
