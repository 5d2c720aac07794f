package derive

import (
	"fmt"
	"slices"

	"github.com/govalues/decimal"

	"github.com/ordergraph/ordergraph/dynamo/model"
)

// Change is the change of a base value. Before is nil if the value is new, and After is nil if it is
// deleted. Both are pointers: *commerce.Order with all line items in Items, *commerce.Payment,
// *commerce.Fulfillment, *commerce.InventoryLevel or *commerce.Product.
type Change struct{ Before, After any }

// Target identifies a record that stores derived numbers.
type Target struct {
	Entity *model.Entity
	// values are the values of the placeholders in the primary key, and then its shard.
	values [maxPlaceholders]string
}

// maxPlaceholders is the maximum number of placeholders in the primary key of a target, and its shard.
const maxPlaceholders = 4

// TargetOf returns the record of an entity whose primary key contains the given values, in this order.
// If values are missing, the result stands for all records with the same first values.
func TargetOf(e *model.Entity, values ...string) Target {
	t := Target{Entity: e}
	copy(t.values[:], values)
	return t
}

// Record returns a record with the primary key of the target, and the attributes in this key.
func (t Target) Record(b *model.KeyBuilder) model.Record {
	return b.IdentifyingRecord(t.Entity, t.values[:]...)
}

// Key returns the primary key of the target.
func (t Target) Key(b *model.KeyBuilder) model.Keys {
	return b.IdentifyingKey(t.Entity, t.values[:]...)
}

// Value returns the value of the placeholder number i in the primary key of the target.
func (t Target) Value(i int) string { return t.values[i] }

// Delta is the change of the derived numbers in one record.
type Delta struct {
	Target
	Amounts []Amount
}

// Numbers returns the amounts as attributes.
func (d Delta) Numbers() model.Record {
	r := model.Record{}
	for _, a := range d.Amounts {
		r[a.Attribute] = model.NumberText(a.Value.String())
	}
	return r
}

// Amount is the change of one derived number. It can be 0.
type Amount struct {
	*Sum
	Attribute string
	Value     decimal.Decimal
}

// Int returns the amount as an integer. Only amounts of money have a fraction.
func (a Amount) Int() int {
	n, _, _ := a.Value.Int64(0)
	return int(n)
}

// WithInt returns the change of the same number by n.
func (a Amount) WithInt(n int) Amount {
	a.Value = number(n)
	return a
}

// Increases reports whether d increases any number.
func (d Delta) Increases() bool {
	return slices.ContainsFunc(d.Amounts, func(a Amount) bool { return a.Value.IsPos() })
}

// Int returns the change of the named number in d. If d does not contain it, the change is 0.
func (d Delta) Int(attribute string) int { return Amount{Value: d.value(attribute)}.Int() }

func (d Delta) value(attribute string) decimal.Decimal {
	for _, a := range d.Amounts {
		if a.Attribute == attribute {
			return a.Value
		}
	}
	return decimal.Decimal{}
}

// Totals adds up what base values contribute, by target. The zero value has no contributions.
type Totals struct {
	// Layout is the layout of the table that contains the targets.
	Layout model.Layout
	// Deltas are the totals, in the order in which the first base value contributed to them.
	Deltas []Delta
	// Only are the entities whose records are totalled. If it is nil, these are all targets.
	Only  []*model.Entity
	index map[Target]int
	// room is memory for the amounts of further deltas.
	room []Amount
	err  error
}

// Add adds what a base value contributes.
func (t *Totals) Add(base any) {
	t.contribute(base, func(d decimal.Decimal) decimal.Decimal { return d })
}

// Subtract subtracts what a base value contributes.
func (t *Totals) Subtract(base any) { t.contribute(base, decimal.Decimal.Neg) }

func (t *Totals) contribute(base any, signed func(decimal.Decimal) decimal.Decimal) {
	Contributions(t.Layout, base, func(target Target, a Amount) {
		if t.Only != nil && !slices.Contains(t.Only, target.Entity) {
			return
		}
		a.Value = signed(a.Value)
		t.add(target, a)
	})
}

// Contributions calls yield with each amount that a base value contributes to a derived number in a
// table with the given layout.
func Contributions(l model.Layout, base any, yield func(Target, Amount)) {
	c := contributor{layout: l, yield: yield}
	for i := range sums {
		c.sum = &sums[i]
		for _, from := range c.sum.from {
			from.of(base, &c)
		}
	}
}

func (t *Totals) add(target Target, more Amount) {
	const typicalTargets = 12
	at, ok := t.index[target]
	if !ok {
		if t.index == nil {
			t.index, t.Deltas = make(map[Target]int, typicalTargets), make([]Delta, 0, typicalTargets)
		}
		// Most deltas have one or two amounts. Allocate room for several deltas at once.
		if len(t.room) < 2 {
			t.room = make([]Amount, 2*typicalTargets)
		}
		at = len(t.Deltas)
		t.index[target] = at
		t.Deltas = append(t.Deltas, Delta{target, t.room[:0:2]})
		t.room = t.room[2:]
	}
	d := &t.Deltas[at]
	for i := range d.Amounts {
		a := &d.Amounts[i]
		if a.Attribute != more.Attribute {
			continue
		}
		sum, err := a.Value.AddExact(more.Value, max(a.Value.Scale(), more.Value.Scale()))
		if err != nil && t.err == nil {
			t.err = fmt.Errorf("add %v to %v: %w", more.Value, a.Value, err)
		}
		a.Value = sum
		return
	}
	d.Amounts = append(d.Amounts, more)
}

// Err returns an error if a total would have more than 19 digits.
func (t *Totals) Err() error { return t.err }

// in returns the totals in the record with the given values in its primary key.
func (t *Totals) in(e *model.Entity, values ...string) Delta {
	target := Target{Entity: e}
	copy(target.values[:], values)
	if i, ok := t.index[target]; ok {
		return t.Deltas[i]
	}
	return Delta{Target: target}
}

// Of returns the totals in the records of an entity.
func (t *Totals) Of(e *model.Entity) []Delta {
	return slices.DeleteFunc(slices.Clone(t.Deltas), func(d Delta) bool { return d.Entity != e })
}

// Deltas returns how derived numbers in a table with the given layout change if base values change:
// what the values after the changes
// contribute, minus what the values before them contribute. It omits records that stay the same.
//
// It returns the error of Totals.Err.
func Deltas(l model.Layout, changes ...Change) ([]Delta, error) {
	t := Totals{Layout: l}
	for _, change := range changes {
		t.Add(change.After)
		t.Subtract(change.Before)
	}
	return slices.DeleteFunc(t.Deltas, func(d Delta) bool {
		return !slices.ContainsFunc(d.Amounts, func(a Amount) bool { return !a.Value.IsZero() })
	}), t.err
}
