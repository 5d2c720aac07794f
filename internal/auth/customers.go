package auth

import (
	"context"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/singleflight"

	"github.com/ordergraph/ordergraph/commerce"
)

// customerCache caches whether customers exist, so that a request does not need to read the
// customer's record.
type customerCache struct {
	lookup func(context.Context, commerce.CustomerID) (bool, error)
	now    func() time.Time
	cache  *lru.Cache[commerce.CustomerID, cachedCustomer]
	// lookups merges concurrent lookups of the same customer.
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
	// existsTTL is how long a customer is cached as existing. After a customer is deleted, the server
	// accepts the customer's tokens for at most existsTTL. It closes open connections within existsTTL
	// plus recheckInterval. The documentation promises one minute.
	existsTTL = 30 * time.Second
	// missingTTL is how long a customer is cached as missing. It is short, because the customer's
	// record may be created after the token.
	missingTTL = 5 * time.Second
	// customerLookupTimeout is the timeout of a lookup.
	customerLookupTimeout = 5 * time.Second
)

func newCustomerCache(ask func(context.Context, commerce.CustomerID) (bool, error), now func() time.Time) *customerCache {
	seen, err := lru.New[commerce.CustomerID, cachedCustomer](maxCachedCustomers)
	if err != nil {
		panic(err) // the size is a constant above zero
	}
	return &customerCache{lookup: ask, now: now, cache: seen}
}

// exists reports whether a customer exists. It returns the errors of the lookup and does not cache
// them.
func (c *customerCache) exists(ctx context.Context, id commerce.CustomerID) (bool, error) {
	if c.lookup == nil {
		return true, nil
	}
	if s, ok := c.cache.Get(id); ok && c.now().Before(s.expires) {
		return s.exists, nil
	}
	exists, err, _ := c.lookups.Do(string(id), func() (any, error) {
		// The lookup does not end with this caller's context, because other callers may wait for its
		// result.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), customerLookupTimeout)
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
