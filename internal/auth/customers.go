package auth

import (
	"context"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/singleflight"

	"github.com/ordergraph/ordergraph/commerce"
)

// customerCache caches which customers exist, so that not every request reads a record.
type customerCache struct {
	lookup func(context.Context, commerce.CustomerID) (bool, error)
	now    func() time.Time
	cache  *lru.Cache[commerce.CustomerID, cachedCustomer]
	// lookups merges concurrent lookups of one customer.
	lookups singleflight.Group
}

// cachedCustomer is the cached result of a lookup.
type cachedCustomer struct {
	exists  bool
	expires time.Time
}

const (
	// maxCachedCustomers is the capacity of the cache.
	maxCachedCustomers = 10_000
	// existsTTL is how long the cache keeps that a customer exists. Requests of a deleted customer are
	// rejected after existsTTL at the latest. Open connections end after existsTTL plus
	// recheckInterval, which is less than the minute that the docs promise.
	existsTTL = 30 * time.Second
	// missingTTL is how long the cache keeps that a customer is missing. It is short, because a shop
	// may create the record after the token.
	missingTTL = 5 * time.Second
	// lookupTimeout is the timeout of a lookup.
	lookupTimeout = 5 * time.Second
)

func newCustomerCache(ask func(context.Context, commerce.CustomerID) (bool, error), now func() time.Time) *customerCache {
	seen, err := lru.New[commerce.CustomerID, cachedCustomer](maxCachedCustomers)
	if err != nil {
		panic(err) // the size is a constant above zero
	}
	return &customerCache{lookup: ask, now: now, cache: seen}
}

// exists reports whether a customer exists. Errors of the lookup are returned and not cached.
func (c *customerCache) exists(ctx context.Context, id commerce.CustomerID) (bool, error) {
	if c.lookup == nil {
		return true, nil
	}
	if s, ok := c.cache.Get(id); ok && c.now().Before(s.expires) {
		return s.exists, nil
	}
	exists, err, _ := c.lookups.Do(string(id), func() (any, error) {
		// The lookup continues if this caller goes away, because others may wait for its result.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookupTimeout)
		defer cancel()
		exists, err := c.lookup(ctx, id)
		if err != nil {
			return false, err
		}
		s := cachedCustomer{exists, c.now().Add(missingTTL)}
		if exists {
			s.expires = c.now().Add(existsTTL)
		}
		c.cache.Add(id, s)
		return exists, nil
	})
	return exists == true, err
}
