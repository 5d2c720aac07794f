package auth

import (
	"context"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/singleflight"

	"github.com/ordergraph/ordergraph/commerce"
)

// customers caches which customers exist, so that not every request reads a record.
type customers struct {
	ask  func(context.Context, commerce.CustomerID) (bool, error)
	now  func() time.Time
	seen *lru.Cache[commerce.CustomerID, sighting]
	// asking merges concurrent lookups of one customer.
	asking singleflight.Group
}

// sighting is the cached result of a lookup.
type sighting struct {
	exists bool
	until  time.Time
}

const (
	// maxCustomers is the capacity of the cache.
	maxCustomers = 10_000
	// existFor is how long the cache keeps that a customer exists. Requests of a deleted customer are
	// rejected after existFor at the latest. Open connections end after existFor plus watchEvery,
	// which is less than the minute that the docs promise.
	existFor = 30 * time.Second
	// missingFor is how long the cache keeps that a customer is missing. It is short, because a shop
	// may create the record after the token.
	missingFor = 5 * time.Second
	// askTimeout is the timeout of a lookup.
	askTimeout = 5 * time.Second
)

func newCustomers(ask func(context.Context, commerce.CustomerID) (bool, error), now func() time.Time) *customers {
	seen, err := lru.New[commerce.CustomerID, sighting](maxCustomers)
	if err != nil {
		panic(err) // the size is a constant above zero
	}
	return &customers{ask: ask, now: now, seen: seen}
}

// exist reports whether a customer exists. Errors of the lookup are returned and not cached.
func (c *customers) exist(ctx context.Context, id commerce.CustomerID) (bool, error) {
	if c.ask == nil {
		return true, nil
	}
	if s, ok := c.seen.Get(id); ok && c.now().Before(s.until) {
		return s.exists, nil
	}
	exists, err, _ := c.asking.Do(string(id), func() (any, error) {
		// The lookup continues if this caller goes away, because others may wait for its result.
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
