package storetest

import (
	"strings"
	"sync"
)

// Log is a writer that keeps the written text in memory, so that a test can read it. It is safe for
// concurrent use.
type Log struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write appends p.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String returns the whole text.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Count returns the number of times that the given text occurs in the log.
func (l *Log) Count(text string) int { return strings.Count(l.String(), text) }
