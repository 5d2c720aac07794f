package server

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// The first shed request is logged at once, and the number of further ones once a minute.
func TestSheddingIsLoggedOnceAMinute(t *testing.T) {
	var log bytes.Buffer
	now := time.Date(2026, 1, 1, 3, 0, 0, 0, time.UTC)
	s := &sheddingLog{log: slog.New(slog.NewTextHandler(&log, nil)), now: func() time.Time { return now }}
	for range 3 * 60 * 10 { // ten a second, three minutes
		s.record(t.Context(), &refusal{pool: "requests", message: "busy"})
		now = now.Add(time.Second / 10)
	}
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) != 3 {
		t.Fatalf("%d lines: %s", len(lines), log.String())
	}
	for i, requests := range []int{1, 600, 600} {
		if want := fmt.Sprintf("requests=%d", requests); !strings.Contains(lines[i], "level=WARN") || !strings.Contains(lines[i], "pool=requests reason=busy") || !strings.HasSuffix(lines[i], want) {
			t.Errorf("line %d is %s, want %s", i, lines[i], want)
		}
	}
}
