package check

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/dynamo/derive"
	"github.com/ordergraph/ordergraph/dynamo/model"
)

// number identifies a derived number (see package derive). id is the ID of the product or account
// rep, or the name of the category. If several records store parts of the number, number identifies
// their sum.
type number struct {
	target        *model.Entity
	attribute, id string
}

// numbers compares stored derived numbers with what the scanned records contribute. If a number
// differs, it must be counted again, because it may have changed during the scan. Methods are safe
// for concurrent use.
type numbers struct {
	mu  sync.Mutex
	all map[number]*comparison
}

// comparison compares a stored number with the sum of the scanned contributions.
type comparison struct {
	stored, derived int
	isStored        bool
	changed, left   bool
}

func (n *numbers) update(k number, f func(*comparison)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.all == nil {
		n.all = map[number]*comparison{}
	}
	if n.all[k] == nil {
		n.all[k] = &comparison{}
	}
	f(n.all[k])
}

// add adds what a base value contributes. It ignores the other numbers, because they are verified
// without the scan's sums.
func (n *numbers) add(base any) {
	derive.Contributions(base, func(target derive.Target, a derive.Amount) {
		switch target.Entity.Name {
		case model.EntityProduct.Name, model.EntityRepOrders.Name, model.EntityCategory.Name:
			n.update(number{target.Entity, a.Attribute, target.Value(0)}, func(c *comparison) { c.derived += a.Int() })
		}
	})
}

// missing is passed to setStored instead of a number that must be stored, but is not.
const missing = -1

func (n *numbers) setStored(k number, stored int) {
	n.update(k, func(c *comparison) { c.stored, c.isStored = stored, true })
}

// markChanged is called if a record that contributes to the number k was inconsistent. If left is
// false, a repair has corrected the record, so the number must be counted again. If left is true, an
// inconsistency remains, so the number cannot be counted.
func (n *numbers) markChanged(k number, left bool) {
	n.update(k, func(c *comparison) { c.changed, c.left = true, c.left || left })
}

// candidates returns the IDs of the targets whose number must be counted again. It returns those
// without a stored number only if unstored is true.
func (n *numbers) candidates(target *model.Entity, attribute string, unstored bool) []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	var ids []string
	for k, c := range maps.All(n.all) {
		if k.target.Name == target.Name && k.attribute == attribute && !c.left && (c.isStored || unstored) && (c.changed || !c.isStored || c.stored != c.derived) {
			ids = append(ids, k.id)
		}
	}
	slices.Sort(ids)
	return ids
}

// listLength counts the records of a list in the index. value is the variable part of the list's
// partition key.
//
// It returns an error if value is invalid, and the errors of repair.Client.Query.
func listLength(ctx context.Context, client *client, p *model.AccessPattern, value string) (n int, err error) {
	partition, err := p.PK.Build(value)
	if err != nil {
		return 0, err
	}
	err = client.query(ctx, p, partition, string(p.SK), types.SelectCount, func(out *dynamodb.QueryOutput) error {
		n += int(out.Count)
		return nil
	})
	return n, err
}
