package table

import (
	"sync/atomic"
	"time"

	"github.com/ordergraph/ordergraph/dynamo/model"
)

// Stats counts what has happened in a Table since it was opened, such as requests and conflicts. It
// is safe for concurrent use.
type Stats struct {
	fast, fallbacks, replays atomic.Int64
	// conflicts contains a counter for each write pattern, by the ID of the pattern. The map does not
	// change after its creation.
	conflicts map[string]*atomic.Int64
}

func newStats() *Stats {
	s := &Stats{conflicts: map[string]*atomic.Int64{}}
	for _, p := range model.WritePatterns() {
		s.conflicts[p.ID] = &atomic.Int64{}
	}
	return s
}

// FastPath returns the number of requests that the fast path completed.
func (s *Stats) FastPath() int64 { return s.fast.Load() }

// Fallbacks returns the number of requests that the AWS SDK sent because the fast path could not
// send or complete them.
func (s *Stats) Fallbacks() int64 { return s.fallbacks.Load() }

// CountReplay counts a mutation that repeated an earlier request and returned its stored result,
// because both have the same idempotency key.
func (s *Stats) CountReplay() { s.replays.Add(1) }

// Replays returns the number of CountReplay calls.
func (s *Stats) Replays() int64 { return s.replays.Load() }

// CountConflict counts a transaction that failed because a record has changed. The server builds
// the transaction again.
func (s *Stats) CountConflict(p *model.WritePattern) {
	if n := s.conflicts[p.ID]; n != nil {
		n.Add(1)
	}
}

// Conflicts returns the number of CountConflict calls for the write pattern with the given ID.
func (s *Stats) Conflicts(pattern string) int64 { return s.conflicts[pattern].Load() }

// Stats returns the counters of the table. Copies of the table share them.
func (t *Table) Stats() *Stats { return t.stats }

// ClockDifference returns the last measured difference: the local clock minus DynamoDB's clock. It
// returns 0 if the difference was at most MaxClockDifference.
func (t *Table) ClockDifference() time.Duration { return t.watch.difference() }
