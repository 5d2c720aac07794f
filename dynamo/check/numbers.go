package check

import (
	"maps"
	"slices"
	"sync"

	"github.com/govalues/decimal"

	"github.com/ordergraph/ordergraph/dynamo/derive"
	"github.com/ordergraph/ordergraph/dynamo/model"
)

// number identifies a derived number (see package derive) in a record.
type number struct {
	derive.Target
	attribute string
}

// totals are sums of contributions to derived numbers. They are decimals, because a number can be an
// amount of money.
type totals map[number]decimal.Decimal

// add adds what a base value contributes to the sums that includes selects.
func (t totals) add(l model.Layout, base any, includes func(*derive.Sum) bool) {
	derive.Contributions(l, base, func(target derive.Target, a derive.Amount) {
		if includes(a.Sum) {
			t.addAmount(number{target, a.Attribute}, a.Value)
		}
	})
}

func (t totals) addAmount(k number, amount decimal.Decimal) { t[k] = sum(t[k], amount) }

// sum returns a + b. If the result would have too many digits, it returns a.
func sum(a, b decimal.Decimal) decimal.Decimal {
	if total, err := a.AddExact(b, max(a.Scale(), b.Scale())); err == nil {
		return total
	}
	return a
}

func integer(n int) decimal.Decimal { return decimal.MustNew(int64(n), 0) }

// int returns a total that is an integer.
func (t totals) int(k number) int { return derive.Amount{Value: t[k]}.Int() }

// readsOrders reports whether the sum is counted again from the orders' own records. The other sums
// are counted from a list or from the target's own item collection.
func (c *check) readsOrders(s *derive.Sum) bool {
	return s.List == nil && !s.Local && s.Target != c.numbers.omitted
}

// numbers compares stored derived numbers with what the scanned records contribute. If a number
// differs, it must be counted again, because it may have changed during the scan. Several records
// store parts of an account rep's order count. It compares their sum, and the target has only the
// first value. Methods are safe for concurrent use.
type numbers struct {
	mu  sync.Mutex
	all map[number]*comparison
	// omitted is an entity whose numbers are not compared, or nil.
	omitted *model.Entity
}

// comparison compares a stored number with the sum of the scanned contributions.
type comparison struct {
	stored, derived decimal.Decimal
	isStored        bool
	changed, left   bool
}

func (n *numbers) update(k number, f func(*comparison)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.all == nil {
		n.all = map[number]*comparison{}
	}
	if k.Entity == &model.EntityRepOrders {
		k.Target = derive.TargetOf(k.Entity, k.Value(0))
	}
	if n.all[k] == nil {
		n.all[k] = &comparison{}
	}
	f(n.all[k])
}

// add adds what a base value contributes. It ignores local sums, because they are verified with
// their targets.
func (n *numbers) add(l model.Layout, base any) {
	derived := totals{}
	derived.add(l, base, func(s *derive.Sum) bool { return !s.Local && s.Target != n.omitted })
	for k, amount := range derived {
		n.update(k, func(c *comparison) { c.derived = sum(c.derived, amount) })
	}
}

// missing is passed to setStored instead of a number that must be stored, but is not.
const missing = -1

func (n *numbers) setStored(k number, stored int) {
	n.setStoredAmount(k, integer(stored))
}

func (n *numbers) setStoredAmount(k number, stored decimal.Decimal) {
	n.update(k, func(c *comparison) { c.stored, c.isStored = stored, true })
}

// addStored adds a share of a stored number. The number counts as stored if complete is true for any
// share.
func (n *numbers) addStored(k number, share int, complete bool) {
	n.update(k, func(c *comparison) {
		c.stored, c.isStored = sum(c.stored, integer(share)), c.isStored || complete
	})
}

// markChanged is called if a record that contributes to the number k was inconsistent. If left is
// false, a repair has corrected the record, so the number must be counted again. If left is true, an
// inconsistency remains, so the number cannot be counted.
func (n *numbers) markChanged(k number, left bool) {
	n.update(k, func(c *comparison) { c.changed, c.left = true, c.left || left })
}

// candidates returns the first values of the targets with a number that must be counted again. It
// returns those without a stored number only if unstored is true.
func (n *numbers) candidates(target *model.Entity, attribute string, unstored bool) (ids []string) {
	for _, t := range n.candidateTargets(target, attribute, unstored) {
		ids = append(ids, t.Value(0))
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// candidateTargets is candidates, but returns the targets, in any order.
func (n *numbers) candidateTargets(target *model.Entity, attribute string, unstored bool) (targets []derive.Target) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for k, c := range maps.All(n.all) {
		if k.Entity == target && (attribute == "" || k.attribute == attribute) && !c.left && (c.isStored || unstored) && (c.changed || !c.stored.Equal(c.derived)) {
			targets = append(targets, k.Target)
		}
	}
	return targets
}
