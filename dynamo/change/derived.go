package change

import (
	"context"
	"slices"

	"github.com/ordergraph/ordergraph/dynamo/derive"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// require adds a condition for a record whose derived numbers change. addDerived must be called
// later, because a transaction can contain only one action for each record.
func (c *change) require(k model.Keys, when table.Condition) { c.required[k.Primary()] = when }

// addDerivedFrom adds the changes of derived numbers that follow from the change of one base value.
//
// Errors: model.ErrCorrupt, errors from table.WrapError.
func (c *change) addDerivedFrom(ctx context.Context, before, after any) error {
	deltas, err := derive.Deltas(c.Layout, derive.Change{Before: before, After: after})
	if err != nil {
		return err
	}
	return c.addDerived(ctx, deltas)
}

// addDerived adds changes of derived numbers to the transaction. It omits those in the records of
// customers' last events, which addEvent adds.
//
// Errors: model.ErrCorrupt, errors from table.WrapError.
func (c *change) addDerived(ctx context.Context, deltas []derive.Delta) error {
	var adjusted []counterAdjustment
	for _, d := range deltas {
		if !c.Derivations.Writes(d.Entity.Name) {
			continue
		}
		if len(d.Entity.AddedNumbers) > 0 {
			d.Amounts = slices.DeleteFunc(slices.Clone(d.Amounts), func(a derive.Amount) bool { return !c.Derivations.WritesNumber(d.Entity, a.Attribute) })
		}
		b := c.oldKeyBuilder()
		k := d.Key(b)
		switch {
		case len(d.Amounts) == 0:
			if required := c.required[k]; required != nil {
				c.addConditionCheck(k, required)
			}
		case d.Entity.Name == model.EntityLastEvent.Name:
		case b.Err != nil && !d.Increases():
			// Other software has stored a value that is not valid in a key, so no record has this key.
		case b.Err != nil:
			if c.Err == nil {
				c.Err = b.Err
			}
		case d.Amounts[0].Optional:
			for _, share := range c.inShares(k, d) {
				adjusted = c.appendOptional(adjusted, share.key, share.Delta)
			}
		default:
			c.addFromZero(d.Record(b), d)
		}
	}
	return c.adjustCounters(ctx, adjusted...)
}

// appendOptional appends the change of numbers that the record with the key k can lack. If c.known
// shows that the record or a number is missing, the condition is that it is still missing at the
// commit.
func (c *change) appendOptional(to []counterAdjustment, k model.Keys, d derive.Delta) []counterAdjustment {
	if c.knownMissing(k) {
		c.addConditionCheck(k, table.RecordNotExists)
		return to
	}
	current, known := c.knownRecord(k)
	deltas, when := map[string]int{}, make([]table.Condition, 0, 3)
	if required := c.required[k]; required != nil {
		when = append(when, required)
	}
	for _, a := range d.Amounts {
		n, stored := a.Int(), table.AttributeIsNumber(a.Attribute)
		switch {
		case n == 0:
			continue
		case known && !table.RecordHasNumber(current, a.Attribute):
			when = append(when, table.AttributesUnchanged(current, a.Attribute))
			continue
		case a.Floor && n < 0:
			stored = table.CompareAttribute(a.Attribute, ">=", model.Num(-n))
		case a.Max > 0 && n > 0:
			stored = table.CompareAttribute(a.Attribute, "<=", model.Num(a.Max-n))
		}
		deltas[a.Attribute], when = n, append(when, stored)
	}
	if revision := d.Amounts[0].Revision; revision != "" {
		deltas[revision] = 1
	}
	if len(deltas) == 0 {
		c.addConditionCheck(k, table.AllOf(when...))
		return to
	}
	return append(to, counterAdjustment{k, deltas, table.AllOf(when...)})
}

// addFromZero adds the change of numbers that count as 0 if they are missing. record identifies the
// record to change. If it does not exist, the transaction creates it.
func (c *change) addFromZero(record model.Record, d derive.Delta) {
	deltas, when := d.Numbers(), table.Condition(nil)
	for _, a := range d.Amounts {
		if !a.DeletedAtZero || !a.Value.IsNeg() {
			continue
		}
		current, known := c.known[model.KeyOf(record)]
		stored := model.Reader{Record: current}
		switch {
		case known && !table.RecordHasNumber(current, a.Attribute):
			return
		case known && stored.Number(a.Attribute) <= -a.Int():
			c.remove(current, table.AttributesUnchanged(current, a.Attribute))
			return
		}
		// If the condition fails, DynamoDB returns the record, and the next attempt uses it.
		when = table.CompareAttribute(a.Attribute, ">", model.Num(-a.Int()))
	}
	if revision := d.Amounts[0].Revision; revision != "" {
		deltas[revision] = model.Num(1)
	}
	c.addToCounters(record, deltas, when)
}
