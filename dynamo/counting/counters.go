package counting

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/repair"
)

// Counters compares counts that are stored in records with the numbers of records that a scan of
// the table reads. If a stored count differs, the record with the count becomes a candidate. A
// candidate must be verified again, because its count may have changed during the scan. Counters is
// safe for concurrent use.
type Counters struct {
	mu       sync.Mutex
	counters map[model.Keys]*counter
}

// counter contains the count that is stored in a record, and the number of records that the scan
// has counted for it.
type counter struct {
	recorded, counted int
	hasRecorded       bool
	changed, ignored  bool
}

// update calls f with the counter of a key.
func (n *Counters) update(k model.Keys, f func(*counter)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.counters == nil {
		n.counters = map[model.Keys]*counter{}
	}
	if n.counters[k] == nil {
		n.counters[k] = &counter{}
	}
	f(n.counters[k])
}

// MissingCount is the argument of SetStoredCount for a record that lacks a required count.
const MissingCount = -1

// SetStoredCount sets the count that is stored in the record with the key k.
func (n *Counters) SetStoredCount(k model.Keys, kept int) {
	n.update(k, func(c *counter) { c.recorded, c.hasRecorded = kept, true })
}

// Increment counts one scanned record for the key k.
func (n *Counters) Increment(k model.Keys) { n.update(k, func(c *counter) { c.counted++ }) }

// MarkChanged records that one of the records counted for the key k was repaired. k becomes a
// candidate (a record to verify again), unless left is true. left means that the repaired record
// still has an inconsistency.
func (n *Counters) MarkChanged(k model.Keys, left bool) {
	n.update(k, func(c *counter) { c.changed, c.ignored = true, c.ignored || left })
}

// Candidates returns the keys of the records to verify again: those with a wrong stored count, and
// those passed to MarkChanged. If missing is true, it also returns the keys without a stored count.
func (n *Counters) Candidates(missing bool) []model.Keys {
	n.mu.Lock()
	defer n.mu.Unlock()
	var ks []model.Keys
	for k, c := range n.counters {
		if !c.ignored && (c.hasRecorded || missing) && (c.changed || !c.hasRecorded || c.recorded != c.counted) {
			ks = append(ks, k)
		}
	}
	slices.SortFunc(ks, func(a, b model.Keys) int { return cmp.Or(cmp.Compare(a.PK, b.PK), cmp.Compare(a.SK, b.SK)) })
	return ks
}

// ListLength counts the records of a list by reading the index. value is the variable part of the
// list's partition key.
//
// It returns the errors of repair.Client.Query, or an error if value is not valid in a key.
func ListLength(ctx context.Context, client *repair.Client, p *model.AccessPattern, value string) (n int, err error) {
	partition, err := p.PK.Build(value)
	if err != nil {
		return 0, err
	}
	err = client.Query(ctx, p, partition, string(p.SK), types.SelectCount, func(out *dynamodb.QueryOutput) error {
		n += int(out.Count)
		return nil
	})
	return n, err
}
