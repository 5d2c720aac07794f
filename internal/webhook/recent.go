package webhook

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// recentChanges contains the changes of the last minute, so all webhooks of a server that are not
// behind share one read of the list.
type recentChanges struct {
	store *dynamo.Store
	// interval is the time between two reads.
	interval time.Duration

	// reading contains a token while a webhook reads or uses the fields below.
	reading chan struct{}
	// events are the changes with from < ID <= to, sorted by ID. They were read at the time readAt.
	events   []*commerce.Event
	from, to commerce.EventID
	readAt   time.Time
	// Events with IDs of at most settled are complete.
	settled commerce.EventID
}

func newRecentChanges(store *dynamo.Store, interval time.Duration) recentChanges {
	return recentChanges{store: store, interval: interval, reading: make(chan struct{}, 1)}
}

// maxReadsPerSecond is the number of changes that a server reads repeatedly in a second. If the
// last minute has more changes than this, they are read less often.
const maxReadsPerSecond = 1000

// read returns changes with after < ID <= to, sorted by ID. to is at most until, and less if there
// are more changes. After settled, events can still appear.
func (r *recentChanges) read(ctx context.Context, after, until commerce.EventID) (events []*commerce.Event, to, settled commerce.EventID, err error) {
	now := r.store.Now()
	start, settled := commerce.MinEventIDAt(now.Add(-table.LayoutDelay-2*r.interval)), commerce.MinEventIDAt(now.Add(-table.LayoutDelay))
	if after < start {
		events, to, err = r.store.Changes(ctx, after, until, catchUpPageSize)
		return events, to, settled, err
	}
	select {
	case r.reading <- struct{}{}:
		defer func() { <-r.reading }()
	case <-ctx.Done():
		return nil, "", "", ctx.Err()
	}
	interval := max(r.interval, time.Duration(len(r.events))*time.Second/maxReadsPerSecond)
	if now := time.Now(); r.to == "" || after < r.from || now.Sub(r.readAt) >= interval {
		var all []*commerce.Event
		for to := start; to < until; {
			var page []*commerce.Event
			if page, to, err = r.store.Changes(ctx, to, until, pageSize); err != nil {
				return nil, "", "", err
			}
			all = append(all, page...)
		}
		r.events, r.from, r.to, r.readAt, r.settled = all, start, until, now, settled
	}
	i, _ := slices.BinarySearchFunc(r.events, after, func(e *commerce.Event, after commerce.EventID) int {
		if e.ID <= after {
			return -1
		}
		return strings.Compare(string(e.ID), string(after))
	})
	return r.events[i:], r.to, r.settled, nil
}

// memo contains values that several webhooks need at about the same time. It is safe for concurrent
// use.
type memo[V any] struct {
	mu      *sync.Mutex
	entries *simplelru.LRU[string, *memoEntry[V]]
}

type memoEntry[V any] struct {
	// loaded is closed when the value or the error is known.
	loaded chan struct{}
	at     time.Time
	value  V
	err    error
}

// The limits of a memo. Values are kept only for a moment, so that the personal data of an order is
// not delivered long after it was erased.
const (
	maxMemoEntries = 2000
	memoTime       = 5 * time.Second
)

func newMemo[V any]() memo[V] {
	entries, _ := simplelru.NewLRU[string, *memoEntry[V]](maxMemoEntries, nil) // the error is nil for sizes above 0
	return memo[V]{&sync.Mutex{}, entries}
}

// get returns the value of a key. If the memo lacks it, get calls load, once for all callers. If
// load fails, the next call of get calls it again.
func (m memo[V]) get(key string, load func() (V, error)) (V, error) {
	m.mu.Lock()
	now := time.Now()
	entry, ok := m.entries.Get(key)
	if !ok || now.Sub(entry.at) > memoTime {
		entry, ok = &memoEntry[V]{at: now, loaded: make(chan struct{})}, false
		m.entries.Add(key, entry)
	}
	m.mu.Unlock()
	if ok {
		<-entry.loaded
		return entry.value, entry.err
	}
	func() {
		defer close(entry.loaded)
		entry.value, entry.err = load()
	}()
	if entry.err != nil {
		m.mu.Lock()
		if current, ok := m.entries.Peek(key); ok && current == entry {
			m.entries.Remove(key)
		}
		m.mu.Unlock()
	}
	return entry.value, entry.err
}
