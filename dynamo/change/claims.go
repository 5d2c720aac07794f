package change

import (
	"iter"
	"slices"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

func isClaim(k model.Keys) bool {
	e := model.EntityOf(k)
	return e != nil && e.Kind == model.Claim
}

// claimsIn returns the claims among the records of a value, with their keys.
func claimsIn(records []model.Record) iter.Seq2[model.Record, model.Keys] {
	return func(yield func(model.Record, model.Keys) bool) {
		for _, r := range records {
			if k := model.KeyOf(r); isClaim(k) && !yield(r, k) {
				return
			}
		}
	}
}

// refuseValue adds the user error for a value that the claim with the key k reserves for another record.
func (c *change) refuseValue(k model.Keys) {
	e := model.EntityOf(k)
	if e == &model.EntityEmailClaim {
		c.taken = append(c.taken, commerce.NewEmailTaken())
		return
	}
	c.taken = append(c.taken, commerce.NewValueTaken(e.Of.Description, e.ClaimedAttribute(), e.ClaimedValue(k)))
}

// moveClaims writes the claims of a record's changed values, and deletes the claims of its previous values.
// The parameters contain the record and what follows from it, before and after the change.
func (c *change) moveClaims(oldRecords, newRecords []model.Record) {
	for claim, k := range claimsIn(newRecords) {
		if findByKey(oldRecords, k) == nil {
			c.writeClaim(claim)
		}
	}
	for claim, k := range claimsIn(oldRecords) {
		// During a backfill, or if other software wrote the record, another record can have the claim.
		if findByKey(newRecords, k) == nil && !c.isOthers(claim) {
			c.remove(claim, missingOrEqual(claim))
		}
	}
}

// restoreClaims writes the claims of an entity if a change keeps the claimed values, because the claims can
// be missing if other software wrote the record.
func (c *change) restoreClaims(of *model.Entity, before, after any) {
	kept := model.EncodeWithEdges(c.oldKeyBuilder(), before)
	for claim, k := range claimsIn(model.EncodeWithEdges(&c.KeyBuilder, after)) {
		if findByKey(kept, k) != nil && model.EntityOf(k) == of {
			c.writeClaim(claim)
		}
	}
}

// writeClaim writes a claim, unless it reserves its value for another record.
func (c *change) writeClaim(claim model.Record) {
	if c.isOthers(claim) {
		c.refuseValue(model.KeyOf(claim))
		return
	}
	c.upsert(claim, missingOrEqual(claim))
}

// isOthers reports whether c.known shows that a claim reserves its value for another record.
func (c *change) isOthers(claim model.Record) bool {
	k := model.KeyOf(claim)
	stored, exists := c.knownRecord(k)
	return exists && slices.ContainsFunc(model.EntityOf(k).ClaimantAttributes(), func(name string) bool { return !model.EqualValues(stored[name], claim[name]) })
}

// missingOrEqual returns the condition that a claim does not exist, or reserves its value for the same
// record.
func missingOrEqual(claim model.Record) table.Condition {
	var same []table.Condition
	for _, name := range model.EntityOf(model.KeyOf(claim)).ClaimantAttributes() {
		same = append(same, table.CompareAttribute(name, "=", claim[name]))
	}
	return table.AnyOf(table.RecordNotExists, table.AllOf(same...))
}
