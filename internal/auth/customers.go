package auth

import (
	"context"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/singleflight"

	"github.com/ordergraph/ordergraph/commerce"
)

// customers remembers which customers exist, so that not each request reads a record.
type customers struct {
	ask  func(context.Context, commerce.CustomerID) (bool, error)
	now  func() time.Time
	seen *lru.Cache[commerce.CustomerID, sighting]
	// asking lets all who ask for one customer wait for one answer.
	asking singleflight.Group
}

// sighting is what was found out about a customer.
type sighting struct {
	exists bool
	until  time.Time
}

const (
	// maxCustomers is how many customers are remembered.
	maxCustomers = 10_000
	// existFor is how long a customer is taken to exist. Requests of a deleted customer are refused
	// after existFor, and open connections end after existFor and watchEvery, which is less than
	// the minute that the docs promise.
	existFor = 30 * time.Second
	// missingFor is how long a customer is taken not to exist. It is short: a shop may make the
	// record after the token.
	missingFor = 5 * time.Second
	// askTimeout is how long finding out can take.
	askTimeout = 5 * time.Second
)

func newCustomers(ask func(context.Context, commerce.CustomerID) (bool, error), now func() time.Time) *customers {
	seen, err := lru.New[commerce.CustomerID, sighting](maxCustomers)
	if err != nil {
		panic(err) // the size is a constant above zero
	}
	return &customers{ask: ask, now: now, seen: seen}
}

// exist reports whether there is a customer.
//
// Errors: those of ask, which are not remembered.
func (c *customers) exist(ctx context.Context, id commerce.CustomerID) (bool, error) {
	if c.ask == nil {
		return true, nil
	}
	if s, ok := c.seen.Get(id); ok && c.now().Before(s.until) {
		return s.exists, nil
	}
	exists, err, _ := c.asking.Do(string(id), func() (any, error) {
		// Others may wait for the answer when this caller has gone.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTimeout)
		defer cancel()
		exists, err := c.ask(ctx, id)
		if err != nil {
			return false, err
		}
		s := sighting{exists, c.now().Add(missingFor)}
		if exists {
			s.until = c.now().Add(existFor)
		}
		c.seen.Add(id, s)
		return exists, nil
	})
	return exists == true, err
}
