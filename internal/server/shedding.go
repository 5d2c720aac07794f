package server

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// sheddingLogInterval is the minimum time between two log lines about refused requests. Clients
// that overload the server must not fill the log as well.
const sheddingLogInterval = time.Minute

// sheddingLog logs refusals by pools: the first at once, then at most once a minute with their
// number.
type sheddingLog struct {
	log *slog.Logger
	now func() time.Time

	mu    sync.Mutex
	last  time.Time
	count int
}

// record counts a refusal by a pool.
func (s *sheddingLog) record(ctx context.Context, refused *refusal) {
	if refused.pool == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count++
	if s.now().Sub(s.last) < sheddingLogInterval {
		return
	}
	s.log.WarnContext(ctx, "requests are shed", "pool", refused.pool, "reason", refused.message, "requests", s.count)
	s.last, s.count = s.now(), 0
}
