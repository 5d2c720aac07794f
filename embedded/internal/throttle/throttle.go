// Package throttle enforces the throughput limits of DynamoDB's partitions, as an on-demand table has
// them. In a table and in each global secondary index, every partition key begins with a partition
// of its own.
//
// These choices are simpler than DynamoDB:
//   - A partition can save up the unused capacity of one second. DynamoDB saves up to 300 seconds,
//     but does not guarantee any of them, so a program must not depend on them.
//   - A request that begins within the limit is complete, even if it needs more units than the
//     partition has left. Later requests then wait until the capacity is back.
//   - A Query or Scan consumes all its units in the partition of the first item that it reads.
//   - The throughput of complete tables and accounts has no limit.
//
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/burst-adaptive-capacity.html
package throttle

import (
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/ordergraph/ordergraph/embedded/internal/capacity"
	"github.com/ordergraph/ordergraph/embedded/internal/schema"
	"github.com/ordergraph/ordergraph/embedded/internal/storage"
	"github.com/ordergraph/ordergraph/embedded/internal/wire"
)

// The capacity units of a partition in each second.
const (
	readLimit  = 3000
	writeLimit = 1000
)

// burst is the time whose unused capacity a partition saves up.
const burst = time.Second

// maxRecent is the maximum number of item collections in Limiter.recent.
const maxRecent = 1 << 16

// Limiter contains the used capacity of partitions. If a Limiter is nil, it enforces no limits.
type Limiter struct {
	now func() time.Time

	mu sync.Mutex
	// recent contains the item collections that were used last. When it is full, it becomes older,
	// and the collections that were still in older are forgotten.
	recent, older map[string]*collection
	// random selects samples. Its seed is constant, so that a test repeats exactly.
	random *rand.Rand
}

// New returns a Limiter that takes the time from now.
func New(now func() time.Time) *Limiter {
	return &Limiter{now: now, recent: map[string]*collection{}, random: rand.New(rand.NewPCG(0, 0))}
}

// Load is the number of capacity units that a request consumes in one partition.
type Load struct {
	Table *schema.Table
	Index *schema.Index // Index is nil for an item of the table
	Key   []byte        // Key is the encoded key of the item or index entry
	Write bool
	Units float64
}

// LoadsOf returns the loads of a write. factor is 2 if the write belongs to a transaction, and
// otherwise 1.
func (l *Limiter) LoadsOf(w *storage.Change, factor float64) (loads []Load) {
	if l == nil {
		return nil
	}
	capacity.EachWrite(w, func(x *schema.Index, key []byte, units float64) {
		load := Load{w.Table, x, key, true, units}
		if !load.isInIndex() { // DynamoDB writes to global secondary indexes after the transaction
			load.Units *= factor
		}
		loads = append(loads, load)
	})
	return loads
}

// Check returns ThrottlingException if a partition has no capacity left. A write that an index
// cannot accept fails, even if the table has capacity.
//
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/gsi-throttling.html
func (l *Limiter) Check(loads ...Load) *wire.Failure {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	var f *wire.Failure
	for _, load := range loads {
		if _, _, m := l.find(load); m.full.Sub(now) < burst {
			continue
		}
		if f == nil {
			f = &wire.Failure{Code: wire.CodeThrottling, Message: load.message()}
		}
		if reason := load.reason(); !slices.Contains(f.Throttling, reason) {
			f.Throttling = append(f.Throttling, reason)
		}
	}
	return f
}

// Charge consumes capacity.
func (l *Limiter) Charge(loads ...Load) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	for _, load := range loads {
		c, p, m := l.find(load)
		limit := float64(readLimit)
		if load.Write {
			limit = writeLimit
		}
		// Round up, so that a partition never has more than its limit.
		cost := time.Duration(load.Units*float64(time.Second)/limit + 0.999)
		if m.full.Before(now) {
			m.full = now
		}
		m.full = m.full.Add(cost)
		if at := m.addHeat(now, cost, load.sortKey(), l.random); at != "" && load.canSplit() {
			c.split(p, at)
		}
	}
}

// find returns the item collection of a load, the index of its partition and the meter of this
// partition.
func (l *Limiter) find(load Load) (*collection, int, *meter) {
	id := load.collectionID()
	c := l.recent[id]
	if c == nil {
		if c = l.older[id]; c == nil {
			c = newCollection()
		}
		if len(l.recent) == maxRecent {
			l.recent, l.older = map[string]*collection{}, l.recent
		}
		l.recent[id] = c
	}
	p := c.find(load.sortKey())
	if load.Write {
		return c, p, &c.partitions[p].writes
	}
	return c, p, &c.partitions[p].reads
}

// isInIndex reports whether the load concerns a global secondary index. The entries of a local
// secondary index are in the partition of their item.
func (l Load) isInIndex() bool { return l.Index != nil && !l.Index.Local }

// collectionID identifies the item collection of a load.
func (l Load) collectionID() string {
	id := string(l.Table.BucketName) + "/"
	if l.isInIndex() {
		id += l.Index.Name
	}
	partition, _ := schema.SplitKey(l.Key)
	return id + "/" + string(partition)
}

// sortKey returns the encoded sort key.
func (l Load) sortKey() string {
	_, sortKey := schema.SplitKey(l.Key)
	return string(sortKey)
}

// canSplit reports whether DynamoDB can split the item collection of the load. It cannot split the
// collections of a table with a local secondary index.
func (l Load) canSplit() bool { return l.isInIndex() || len(l.Table.LocalSecondaryIndexes) == 0 }

// message returns DynamoDB's error message for an on-demand table.
//
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html#API_TransactWriteItems_Errors
func (l Load) message() string {
	if l.Write && l.isInIndex() {
		return "Throughput exceeds the current capacity for one or more global secondary indexes. DynamoDB is automatically scaling your index so please try again shortly."
	}
	return "Throughput exceeds the current capacity of your table or index. DynamoDB is automatically scaling your table or index so please try again shortly. If exceptions persist, check if you have a hot key: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html"
}

// reason returns the reason that the error contains.
//
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_ThrottlingReason.html
func (l Load) reason() wire.ThrottlingReason {
	resource, operation, arn := "Table", "Read", l.Table.ARN()
	if l.isInIndex() {
		resource, arn = "Index", arn+"/index/"+l.Index.Name
	}
	if l.Write {
		operation = "Write"
	}
	return wire.ThrottlingReason{Reason: resource + operation + "KeyRangeThroughputExceeded", Resource: arn}
}
