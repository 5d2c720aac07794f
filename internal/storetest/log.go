package storetest

import (
	"strings"
	"sync"
)

// Log is a writer that keeps its text in memory. It is safe for concurrent use.
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

// String returns the whole text.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// Count returns the number of times that text was written.
func (l *Log) Count(text string) int { return strings.Count(l.String(), text) }
