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

// Numbers compares numbers that records keep with what a scan counts. A number that differs is a
// candidate: it may have changed during the scan. It is safe for concurrent use.
type Numbers struct {
	mu      sync.Mutex
	numbers map[model.Keys]*number
}

// number is what the scan has read of one number.
type number struct {
	kept, counted  int
	isKept         bool
	changed, isOff bool
}

// with runs f with the number of a record.
func (n *Numbers) with(k model.Keys, f func(*number)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.numbers == nil {
		n.numbers = map[model.Keys]*number{}
	}
	if n.numbers[k] == nil {
		n.numbers[k] = &number{}
	}
	f(n.numbers[k])
}

// Uncounted is the number of a record that keeps none yet, and should.
const Uncounted = -1

// Keep takes a number that the record with a key keeps.
func (n *Numbers) Keep(k model.Keys, kept int) {
	n.with(k, func(of *number) { of.kept, of.isKept = kept, true })
}

// Count takes one record that the record with a key should count.
func (n *Numbers) Count(k model.Keys) { n.with(k, func(of *number) { of.counted++ }) }

// Change takes a key whose number may be wrong because a record was repaired that it counts. left
// reports that a record that it counts is left with an inconsistency: such a number is no candidate.
func (n *Numbers) Change(k model.Keys, left bool) {
	n.with(k, func(of *number) { of.changed, of.isOff = true, of.isOff || left })
}

// Candidates returns the keys whose numbers differ, or may be wrong. With missing, these include
// keys for which no record keeps a number.
func (n *Numbers) Candidates(missing bool) []model.Keys {
	n.mu.Lock()
	defer n.mu.Unlock()
	var ks []model.Keys
	for k, of := range n.numbers {
		if !of.isOff && (of.isKept || missing) && (of.changed || !of.isKept || of.kept != of.counted) {
			ks = append(ks, k)
		}
	}
	slices.SortFunc(ks, func(a, b model.Keys) int { return cmp.Or(cmp.Compare(a.PK, b.PK), cmp.Compare(a.SK, b.SK)) })
	return ks
}

// Length returns the number of records in a list of an index. of is the value in the list's
// partition key.
//
// Errors: those of repair.Client, and of a value that can be in no key.
func Length(ctx context.Context, client *repair.Client, p *model.AccessPattern, of string) (n int, err error) {
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
