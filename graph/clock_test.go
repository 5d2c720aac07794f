package graph

import (
	"context"
	"sync"
	"time"

	"github.com/ordergraph/ordergraph/graph/rate"
)

// handClock is a manual clock. Sleep advances it.
type handClock struct {
	mu  sync.Mutex
	now time.Time
	// slept is the number of calls of Sleep.
	slept int
}

func (c *handClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *handClock) forward(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func (c *handClock) sleep(_ context.Context, d time.Duration) {
	c.forward(d)
	c.slept++
}

func (c *handClock) rates(burst, restore int) rate.Options {
	c.now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	return rate.Options{Burst: burst, Restore: restore, Now: c.Now, Sleep: c.sleep}
}
