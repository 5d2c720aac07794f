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

// Counters compares the counts in records with the records that a scan counts. A count that differs
// is only a candidate, because it may have changed during the scan. Counters is safe for concurrent
// use.
type Counters struct {
	mu       sync.Mutex
	counters map[model.Keys]*counter
}

// counter is one recorded count and the number of scanned records.
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

// MissingCount is the recorded count of a record that lacks a required count.
const MissingCount = -1

// SetRecorded sets the count in the record with a key.
func (n *Counters) SetRecorded(k model.Keys, kept int) {
	n.update(k, func(c *counter) { c.recorded, c.hasRecorded = kept, true })
}

// Increment counts one record for a key.
func (n *Counters) Increment(k model.Keys) { n.update(k, func(c *counter) { c.counted++ }) }

// MarkChanged marks a key whose count may be wrong because a counted record was repaired. left
// reports whether the counted record still has a drift; then the key is no candidate.
func (n *Counters) MarkChanged(k model.Keys, left bool) {
	n.update(k, func(c *counter) { c.changed, c.ignored = true, c.ignored || left })
}

// Candidates returns the keys whose counts differ or were marked. With missing, it includes keys
// without a recorded count.
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

// ListLength returns the number of records in a list of an index. value is the value in the list's
// partition key.
//
// It returns errors as repair.Client.Query does, or an error if no key can have the value.
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
