package auth

import (
	"context"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/singleflight"

	"github.com/ordergraph/ordergraph/commerce"
)

// customerCache caches whether customers exist, so that most requests need not read the customer's
// record from the store.
type customerCache struct {
	lookup func(context.Context, commerce.CustomerID) (bool, error)
	now    func() time.Time
	cache  *lru.Cache[commerce.CustomerID, cachedCustomer]
	// lookups merges concurrent lookups of the same customer into one lookup.
	lookups singleflight.Group
}

// cachedCustomer is the cached result of looking up one customer.
type cachedCustomer struct {
	exists  bool
	expires time.Time
}

const (
	// maxCachedCustomers is the maximum number of customers in the cache.
	maxCachedCustomers = 10_000
	// existsTTL is how long the cache reports that a customer exists. The server closes a deleted
	// customer's connections within existsTTL plus recheckInterval. The sum must be less than the
	// minute that docs/authentication.md promises.
	existsTTL = 30 * time.Second
	// missingTTL is how long the cache reports that a customer does not exist. It is short, because a
	// new customer's record may be created shortly after the customer's first token.
	missingTTL = 5 * time.Second
	// customerLookupTimeout is the timeout for looking up a customer in the store.
	customerLookupTimeout = 5 * time.Second
)

func newCustomerCache(ask func(context.Context, commerce.CustomerID) (bool, error), now func() time.Time) *customerCache {
	seen, err := lru.New[commerce.CustomerID, cachedCustomer](maxCachedCustomers)
	if err != nil {
		panic(err) // lru.New fails only if the size is not positive
	}
	return &customerCache{lookup: ask, now: now, cache: seen}
}

// exists reports whether a customer exists. It returns errors of the lookup, but does not cache
// them.
func (c *customerCache) exists(ctx context.Context, id commerce.CustomerID) (bool, error) {
	if c.lookup == nil {
		return true, nil
	}
	if s, ok := c.cache.Get(id); ok && c.now().Before(s.expires) {
		return s.exists, nil
	}
	exists, err, _ := c.lookups.Do(string(id), func() (any, error) {
		// The lookup continues if this caller's context ends, because other callers may wait for the same
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
