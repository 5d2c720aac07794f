package embedded

import (
	"errors"
	"slices"
	"sync"

	"github.com/ordergraph/ordergraph/embedded/internal/file"
	"github.com/ordergraph/ordergraph/embedded/internal/schema"
	"github.com/ordergraph/ordergraph/embedded/internal/wire"
)

// commitQueue contains the writes that wait for a commit. Writes that arrive during a commit wait
// for its end, and then share the next commit.
type commitQueue struct {
	mu      sync.Mutex
	running bool
	waiting []*pendingWrite
}

// maxCommitWrites is the maximum number of writes in one commit.
const maxCommitWrites = 256

// pendingWrite is a request that changes the store and waits for its commit.
type pendingWrite struct {
	// apply makes the changes of the request. If apply returns a *wire.Failure, it must not have
	// changed anything. Any other error undoes all writes of the commit.
	apply func(*commitState) error
	err   error
	// turn wakes the goroutine of this write. If done is then true, the write is committed or has
	// failed. If done is false, the goroutine must make the next commit.
	turn chan struct{}
	done bool
}

// commitState is the state of one commit.
type commitState struct {
	*Store
	tx      *file.Tx
	changed bool
	// tables maps the names of all tables to their definitions, including the changes of this
	// commit. A change replaces the map, because concurrent readers use the old map without a lock.
	tables map[string]*schema.Table
	// after contains the functions that run after the commit, in this order.
	after []func()
}

// commit applies a write and returns after the write is durable. It returns the error of apply, or
// a file error. After an error, this write has changed nothing, except after file.ErrUnknown.
func (s *Store) commit(apply func(*commitState) error) error {
	w := &pendingWrite{apply: apply, turn: make(chan struct{}, 1)}
	c := &s.commits
	c.mu.Lock()
	c.waiting = append(c.waiting, w)
	lead := !c.running
	c.running = true
	c.mu.Unlock()
	if !lead {
		<-w.turn
		if w.done {
			return w.err
		}
	}
	c.mu.Lock()
	batch := c.waiting[:min(len(c.waiting), maxCommitWrites)]
	c.waiting = slices.Clone(c.waiting[len(batch):])
	c.mu.Unlock()
	defer func() { // deferred, so that it also runs if an observer panics
		c.mu.Lock()
		if c.running = len(c.waiting) > 0; c.running {
			c.waiting[0].turn <- struct{}{} // the goroutine of this write makes the next commit
		}
		c.mu.Unlock()
		for _, other := range batch {
			other.done = true
			if other != w {
				other.turn <- struct{}{}
			}
		}
	}()
	s.commitBatch(batch)
	return w.err
}

// commitBatch commits a batch of writes. When the commit is durable, the functions in
// commitState.after run. If the commit fails, every write of the batch gets the error.
func (s *Store) commitBatch(batch []*pendingWrite) {
	c := &commitState{Store: s}
	err := s.db.Update(func(tx *file.Tx) (bool, error) {
		c.tx, c.tables = tx, *s.tables.Load()
		err := c.apply(batch)
		return c.changed, err
	}, c.runAfter)
	if err != nil {
		for _, w := range batch {
			// Replace w.err even if apply has returned an error. That error may be the result of an
			// earlier write of the batch, and the earlier write is now undone.
			w.err = err
		}
	}
}

// runAfter runs the functions that had to wait for the end of the commit.
func (c *commitState) runAfter() {
	for _, f := range c.after {
		f()
	}
}

// apply applies the writes of a batch. If apply returns an error, no write of the batch must have an
// effect.
func (c *commitState) apply(batch []*pendingWrite) error {
	for _, w := range batch {
		if w.err = w.apply(c); w.err != nil {
			if _, ok := errors.AsType[*wire.Failure](w.err); !ok {
				return w.err
			}
		}
	}
	return nil
}
