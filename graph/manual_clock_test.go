package graph

import (
	"context"
	"sync"
	"time"

	"github.com/ordergraph/ordergraph/graph/rate"
)

// manualClock is a manual clock. Sleep advances it.
type manualClock struct {
	mu  sync.Mutex
	now time.Time
	// slept is the number of calls of Sleep.
	slept int
}

func (c *manualClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *manualClock) forward(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func (c *manualClock) sleep(_ context.Context, d time.Duration) {
	c.forward(d)
	c.slept++
}

func (c *manualClock) rates(burst, restore int) rate.Options {
	c.now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	return rate.Options{Burst: burst, Restore: restore, Now: c.Now, Sleep: c.sleep}
}
