package storetest

import (
	"strings"
	"sync"
)

// Log keeps what is written to it. It is safe for concurrent use.
type Log struct {
	mu sync.Mutex
	b  strings.Builder
}

// Write appends p.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// String returns all that was written.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// Count returns how often a text was written.
func (l *Log) Count(text string) int { return strings.Count(l.String(), text) }
