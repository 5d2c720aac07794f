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

// Counters compares stored counts with the records that a scan finds. If a count differs, it must
// be verified again, because it may have changed during the scan. Counters is safe for concurrent
// use.
type Counters struct {
	mu       sync.Mutex
	counters map[model.Keys]*counter
}

// counter contains the stored count for a key, and the number of records that the scan has found
// for this key.
type counter struct {
	recorded, counted int
	hasRecorded       bool
	changed, ignored  bool
}

// update calls f with the counter of the key k. The caller must not hold mu.
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

// MissingCount is passed to SetStoredCount instead of a count if a record lacks a count that it
// must contain.
const MissingCount = -1

// SetStoredCount sets the stored count for the key k. The scan has read it from the table.
func (n *Counters) SetStoredCount(k model.Keys, kept int) {
	n.update(k, func(c *counter) { c.recorded, c.hasRecorded = kept, true })
}

// Increment counts one record that the scan has found for the key k.
func (n *Counters) Increment(k model.Keys) { n.update(k, func(c *counter) { c.counted++ }) }

// MarkChanged is called if a record that counts for the key k was inconsistent. If left is false, a
// repair has corrected the record, so the stored count must be verified again. If left is true, an
// inconsistency remains, so Candidates does not return k.
func (n *Counters) MarkChanged(k model.Keys, left bool) {
	n.update(k, func(c *counter) { c.changed, c.ignored = true, c.ignored || left })
}

// Candidates returns the keys whose stored count must be verified again. The count differs from the
// scanned records, or MarkChanged was called with the key. Candidates returns keys without a stored
// count only if missing is true.
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

// ListLength counts the records of a list in the index. value is the variable part of the list's
// partition key.
//
// It returns an error if value is invalid, and the errors of repair.Client.Query.
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
