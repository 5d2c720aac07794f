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

// Counters compares numbers that records keep with what a scan counts. A number that differs is a
// candidate: it may have changed during the scan. It is safe for concurrent use.
type Counters struct {
	mu       sync.Mutex
	counters map[model.Keys]*counter
}

// counter is what the scan has read of one number.
type counter struct {
	recorded, counted int
	hasRecorded       bool
	changed, ignored  bool
}

// update runs f with the number of a record.
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

// MissingCount is the number of a record that keeps none yet, and should.
const MissingCount = -1

// SetRecorded takes a number that the record with a key keeps.
func (n *Counters) SetRecorded(k model.Keys, kept int) {
	n.update(k, func(c *counter) { c.recorded, c.hasRecorded = kept, true })
}

// Increment takes one record that the record with a key should count.
func (n *Counters) Increment(k model.Keys) { n.update(k, func(c *counter) { c.counted++ }) }

// MarkChanged takes a key whose number may be wrong because a record was repaired that it counts. left
// reports that a record that it counts is left with an inconsistency: such a number is no candidate.
func (n *Counters) MarkChanged(k model.Keys, left bool) {
	n.update(k, func(c *counter) { c.changed, c.ignored = true, c.ignored || left })
}

// Candidates returns the keys whose numbers differ, or may be wrong. With missing, these include
// keys for which no record keeps a number.
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

// ListLength returns the number of records in a list of an index. of is the value in the list's
// partition key.
//
// Errors: those of repair.Client, and of a value that can be in no key.
func ListLength(ctx context.Context, client *repair.Client, p *model.AccessPattern, of string) (n int, err error) {
	partition, err := p.PK.Key(of)
	if err != nil {
		return 0, err
	}
	err = client.Query(ctx, p, partition, string(p.SK), types.SelectCount, func(out *dynamodb.QueryOutput) error {
		n += int(out.Count)
		return nil
	})
	return n, err
}
