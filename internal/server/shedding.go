package server

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// sheddingLogInterval is the minimum time between two log entries about refused requests. It
// prevents clients that overload the server from filling the log.
const sheddingLogInterval = time.Minute

// sheddingLog logs requests that pools have refused. It logs the first refusal immediately. After
// that, it logs at most one entry per sheddingLogInterval, with the number of requests refused
// since the previous entry.
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
