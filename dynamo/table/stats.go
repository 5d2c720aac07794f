package table

import (
	"sync/atomic"
	"time"

	"github.com/ordergraph/ordergraph/dynamo/model"
)

// Stats counts events in a Table since it was opened, such as requests and conflicts. It is safe
// for concurrent use.
type Stats struct {
	fast, fallbacks, replays atomic.Int64
	// conflicts maps the ID of each write pattern to a counter. After newStats, the map does not
	// change, so it needs no lock.
	conflicts map[string]*atomic.Int64
}

func newStats() *Stats {
	s := &Stats{conflicts: map[string]*atomic.Int64{}}
	for _, p := range model.WritePatterns() {
		s.conflicts[p.ID] = &atomic.Int64{}
	}
	return s
}

// FastPath returns the number of requests that succeeded on the fast path, without the AWS SDK.
func (s *Stats) FastPath() int64 { return s.fast.Load() }

// Fallbacks returns the number of requests that the AWS SDK sent because the fast path could not
// send or complete them.
func (s *Stats) Fallbacks() int64 { return s.fallbacks.Load() }

// CountReplay counts a mutation that was not executed, because an earlier request with the same
// idempotency key had already executed it. The mutation returned the stored result of that request.
func (s *Stats) CountReplay() { s.replays.Add(1) }

// Replays returns the number of CountReplay calls.
func (s *Stats) Replays() int64 { return s.replays.Load() }

// CountConflict counts a transaction that failed because a record had changed since the server read
// it. The server then builds the transaction again.
func (s *Stats) CountConflict(p *model.WritePattern) {
	if n := s.conflicts[p.ID]; n != nil {
		n.Add(1)
	}
}

// Conflicts returns the number of CountConflict calls for the write pattern with the given ID.
func (s *Stats) Conflicts(pattern string) int64 { return s.conflicts[pattern].Load() }

// Stats returns the counters of the table. Copies of the table share them.
func (t *Table) Stats() *Stats { return t.stats }

// ClockDifference returns the local clock minus DynamoDB's clock at the last comparison. If the
// difference was at most MaxClockDifference, it returns 0.
func (t *Table) ClockDifference() time.Duration { return t.watch.difference() }
