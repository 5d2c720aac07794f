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

// commits combines the writes that arrive during a commit into the next one.
type commits struct {
	mu      sync.Mutex
	running bool
	waiting []*write
}

// maxCommit is the maximum number of writes in a commit.
const maxCommit = 256

// write is one request that changes the store.
type write struct {
	// apply makes the changes. If it returns an error, it has changed nothing.
	apply func(*change) error
	err   error
	// turn gets a value when the write is done, or when it is its turn to commit the waiting writes.
	// done reports which of the two has happened.
	turn chan struct{}
	done bool
}

// change is the state of one commit.
type change struct {
	*Store
	tx      *bbolt.Tx
	changed bool
	// tables has the definitions of all tables, with the changes of this commit. It is replaced,
	// never modified.
	tables map[string]*schema.Table
	// after has functions to call after the commit, in order.
	after []func()
}

// errBroken is the error of a commit that has failed.
var errBroken = errors.New("the commit failed, nothing was written")

// commit applies a write and returns after it is durable. It returns the error of apply, or an
// error of the file. In both cases nothing has changed.
func (s *Store) commit(apply func(*change) error) error {
	w := &write{apply: apply, turn: make(chan struct{}, 1)}
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
	batch := c.waiting[:min(len(c.waiting), maxCommit)]
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
	s.commitAll(batch)
	return w.err
}

// commitAll commits a batch of writes.
func (s *Store) commitAll(batch []*write) {
	c := &change{Store: s, tables: *s.tables.Load()}
	err := c.run(batch)
	if err != nil {
		err = fmt.Errorf("%w: %w", errBroken, err)
		for _, w := range batch {
			// The write may have failed because of another write of the batch, which was undone.
			w.err = err
		}
		return
	}
	for _, f := range c.after {
		f()
	}
}

// run applies and commits a batch. It returns an error if all of it has to be undone.
func (c *change) run(batch []*write) (err error) {
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
