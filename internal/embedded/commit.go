package embedded

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"go.etcd.io/bbolt"

	"github.com/ordergraph/ordergraph/internal/embedded/schema"
	"github.com/ordergraph/ordergraph/internal/embedded/wire"
)

// commitQueue is the queue of writes. Writes that arrive during a commit wait, and then share the next
// commit.
type commitQueue struct {
	mu      sync.Mutex
	running bool
	waiting []*pendingWrite
}

// maxCommitWrites is the maximum number of writes in one commit.
const maxCommitWrites = 256

// pendingWrite is one request that changes the store.
type pendingWrite struct {
	// apply makes the changes. If it returns a *wire.Failure, it must have changed nothing. Any other
	// error undoes the complete commit.
	apply func(*commitState) error
	err   error
	// turn receives a value when the goroutine of this write must continue. If done is true, the write
	// is committed or has failed. Otherwise, this goroutine must commit the waiting writes.
	turn chan struct{}
	done bool
}

// commitState is the state of one commit.
type commitState struct {
	*Store
	tx      *bbolt.Tx
	changed bool
	// tables contains the definitions of all tables, with the changes of this commit. Code replaces
	// the map, but never modifies it.
	tables map[string]*schema.Table
	// after contains the functions to call after the commit, in this order.
	after []func()
}

// errCommitFailed is the error of every write in a failed commit.
var errCommitFailed = errors.New("the commit failed, nothing was written")

// commit applies a write and returns after the write is durable. It returns the error of apply, or
// a file error. After an error, the store is unchanged.
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
	defer func() { // also if an observer panics
		c.mu.Lock()
		if c.running = len(c.waiting) > 0; c.running {
			c.waiting[0].turn <- struct{}{} // this one commits next
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

// commitBatch commits a batch of writes.
func (s *Store) commitBatch(batch []*pendingWrite) {
	c := &commitState{Store: s, tables: *s.tables.Load()}
	err := c.run(batch)
	if err != nil {
		err = fmt.Errorf("%w: %w", errCommitFailed, err)
		for _, w := range batch {
			// Replace the write's own error, too. It may be caused by another write of the batch that is now
			// undone.
			w.err = err
		}
		return
	}
	for _, f := range c.after {
		f()
	}
}

// run applies the writes of a batch and commits them. If it returns an error, none of the writes
// has taken effect.
func (c *commitState) run(batch []*pendingWrite) (err error) {
	if c.tx, err = c.db.Begin(true); err != nil {
		return err
	}
	committed := false
	defer func() {
		if panicked := recover(); panicked != nil {
			err = fmt.Errorf("the engine failed: %v", panicked)
		}
		if !committed {
			err = errors.Join(err, c.tx.Rollback())
		}
	}()
	for _, w := range batch {
		if w.err = w.apply(c); w.err != nil {
			if _, ok := errors.AsType[*wire.Failure](w.err); !ok {
				return w.err
			}
		}
	}
	if !c.changed {
		return nil
	}
	err = c.tx.Commit()
	committed = true // a failed Commit has rolled back
	return err
}
