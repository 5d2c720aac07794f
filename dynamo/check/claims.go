package check

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// hasClaimed reports whether a record has the value that the claim with the key k reserves. The record can
// be nil.
func hasClaimed(e *model.Entity, record model.Record, k model.Keys) bool {
	return record != nil && e.ClaimedKey(record) == k.Primary()
}

// claimedText describes the claimed attribute of a record for operators.
func claimedText(e *model.Entity) string {
	if e == &model.EntityEmailClaim {
		return "email address"
	}
	return e.ClaimedAttribute()
}

// verifyClaim reports a claim that is missing, or reserves the value of the record with the key of for
// another record. want is the claim as it should be. claimant is the other record, if it exists.
func (diag *diagnosis) verifyClaim(e *model.Entity, of model.Keys, have, want, claimant model.Record) {
	k := model.KeyOf(want)
	if diag.withoutUnreadable(e, have); have != nil && diag.cannotReadClaimant(e, k) {
		return
	}
	value, other := e.ClaimedValue(k), claimantText(e, have)
	owner := claimantText(e, want)
	switch {
	case have == nil:
		diag.addMissing(kindClaimMissing, want, nil, fmt.Sprintf("no record reserves the %s of %s %s", claimedText(e), e.Of.Description, owner))
	case other != owner && hasClaimed(e, claimant, k):
		diag.addFinding(KindValueShared, of, fmt.Sprintf("the %s %s is reserved for %s %s, who also has it", claimedText(e), value, e.Of.Description, other), remedyManual)
	default:
		if k := e.ClaimantKey(have); other != owner && k.PK != "" {
			diag.dependencies = append(diag.dependencies, unchangedRecord{key: k, asRead: claimant})
		}
		diag.compare(e, have, want, kindClaimMissing)
	}
}

// cannotReadClaimant reports whether an attribute of a claim with the ID of the claimant cannot be decoded.
func (diag *diagnosis) cannotReadClaimant(e *model.Entity, claim model.Keys) bool {
	return slices.ContainsFunc(e.ClaimantAttributes(), func(name string) bool { return diag.mustLeaveUnchanged(e, claim, name) })
}

// claimantText describes the record that a claim names for operators.
func claimantText(e *model.Entity, claim model.Record) string {
	var ids []string
	for _, name := range e.ClaimantAttributes() {
		ids = append(ids, model.TextOf(claim, name))
	}
	return strings.Join(ids, " ")
}

// verifiesClaim reports whether the check includes a claim. If claims is true, it is about records that are
// claims, and otherwise about the records with the values.
func (c *check) verifiesClaim(e *model.Entity, claims bool) bool {
	if d := c.opts.Derivation; d != nil {
		return d.Entity == e && (claims || c.table.Layout.Derivations().Writes(e.Name))
	}
	switch c.table.Layout.Derivations().Of(e.Name).State {
	case model.Readable:
		return true
	case model.Absent:
		return claims
	}
	return false
}

// claimTarget returns the target of a claimVerifier or claimedVerifier: a claim or a record with a claimed
// value, by its key.
func claimTarget(kind targetKind, claim *model.Entity, k model.Keys) target {
	return target{kind, claim.Name + " " + k.Text()}
}

// claim is the inverse of claimTarget.
func (t target) claim() (e *model.Entity, k model.Keys) {
	name, text, _ := strings.Cut(t.id, " ")
	at := strings.LastIndex(text, " ") // a claimed value can contain spaces
	all := model.Entities()
	return all[slices.IndexFunc(all, func(e *model.Entity) bool { return e.Name == name })], model.Keys{PK: text[:at], SK: text[at+1:]}
}

// claimedVerifier verifies the claim of one record's value.
type claimedVerifier struct {
	baseVerifier
	claimEntity *model.Entity
	recordWithEdges
	claim, claimant model.Record
}

func newClaimedVerifier(claim *model.Entity, of model.Keys) *claimedVerifier {
	return &claimedVerifier{claimEntity: claim, recordWithEdges: newRecordWithEdges(claim.Of, claim.Of.KeyValues(of))}
}

func (v *claimedVerifier) addRecord(_ *model.Entity, rec model.Record) { v.put(rec) }

func (v *claimedVerifier) key(*table.Table) model.Keys { return v.primaryKey }

func (v *claimedVerifier) read(ctx context.Context, c *check) (err error) {
	v.claim, v.claimant = nil, nil
	if v.records, err = c.client.get(ctx, consistent, v.primaryKey); err != nil || v.record() == nil {
		return err
	}
	k := v.claimEntity.ClaimedKey(v.record())
	if v.claim, err = c.client.getConsistent(ctx, k); err != nil || v.claim == nil {
		return err
	}
	if other := v.claimEntity.ClaimantKey(v.claim); other != v.primaryKey {
		v.claimant, err = c.client.getConsistent(ctx, other)
	}
	return err
}

func (v *claimedVerifier) verify(c *check) *diagnosis {
	diag := &diagnosis{table: c.table}
	if v.record() == nil {
		return diag // claimVerifier finds what remains of the record
	}
	b := c.table.KeyBuilder()
	want := b.ClaimRecord(v.claimEntity, withKeyAttributes(v.record(), v.entity.KeyValues(v.primaryKey)))
	if want == nil || b.Err != nil {
		return diag
	}
	// The claim depends only on the claimed value, which other changes of the record keep.
	ignored := append(slices.Collect(maps.Keys(v.record())), append(revisions(), "updatedAt")...)
	ignored = slices.DeleteFunc(ignored, func(name string) bool { return name == v.claimEntity.ClaimedAttribute() })
	diag.dependencies = append(diag.dependencies, unchangedRecord{v.primaryKey, v.record(), ignored})
	diag.verifyClaim(v.claimEntity, v.primaryKey, v.claim, want, v.claimant)
	return diag
}

// claimVerifier compares a claim with its claimant, the record that it names.
type claimVerifier struct {
	baseVerifier
	entity   *model.Entity
	claimKey model.Keys
	claim    model.Record
	claimant recordWithEdges
	// deleted reports whether the claimant is a deleted customer.
	deleted bool
}

func newClaimVerifier(e *model.Entity, k model.Keys) *claimVerifier {
	v := &claimVerifier{entity: e, claimKey: k}
	v.addRecord(e, nil)
	return v
}

func (v *claimVerifier) key(*table.Table) model.Keys { return v.claimKey }

func (v *claimVerifier) addRecord(e *model.Entity, rec model.Record) {
	v.claim, v.claimant = rec, newRecordWithEdges(e.Of, e.Of.KeyValues(e.ClaimantKey(rec)))
}

func (v *claimVerifier) read(ctx context.Context, c *check) error {
	claim, err := c.client.getConsistent(ctx, v.claimKey)
	if v.addRecord(v.entity, claim); err != nil || claim == nil || !c.table.Layout.Derivations().Writes(v.entity.Name) {
		return err
	}
	var deletion model.Keys
	if v.entity.Of == &model.EntityCustomer {
		deletion = model.DeletedCustomerKey(commerce.CustomerID(model.TextOf(v.claim, model.AttrCustomerID)))
	}
	v.claimant.records, err = c.client.get(ctx, consistent, append(v.claimant.keys(), deletion)...)
	v.deleted = v.claimant.records[deletion] != nil
	return err
}

// verify reports a claim that names a missing record, or a record with another value. claimedVerifier and
// customerVerifier report the other inconsistencies of claims.
func (v *claimVerifier) verify(c *check) *diagnosis {
	diag, e := &diagnosis{table: c.table}, v.entity
	if v.claim == nil {
		return diag
	}
	if !c.table.Layout.Derivations().Writes(e.Name) {
		diag.addDeletion(kindOrphanClaim, v.claim, "the table does not have "+e.Name)
		return diag
	}
	if diag.withoutUnreadable(e, v.claim); diag.cannotReadClaimant(e, v.claimKey) {
		return diag
	}
	claimant := v.claimant.record()
	if c.opts.Restore {
		claimant = v.claimant.firstRecord() // a repair restores the record from an edge
	}
	diag.trustedKey, diag.trusted = v.claimant.primaryKey, v.claimant.record()
	id, claimed := claimantText(e, v.claim), claimant[e.ClaimedAttribute()]
	optional := slices.ContainsFunc(model.AttributesOf(e.Of), func(a model.Attribute) bool { return a.Name == e.ClaimedAttribute() && a.Optional })
	switch {
	case v.deleted:
		diag.addOrphan(kindOrphanClaim, v.claim, fmt.Sprintf("customer %s is deleted", id))
	case hasClaimed(e, claimant, v.claimKey), c.hasReported(v.claimKey):
	case claimant == nil && e.Of == &model.EntityCustomer && c.hasUnreadableOrders(commerce.CustomerID(id)):
		// Keep the claim. An unreadable order names the customer, so a later check may restore it.
	case claimant != nil && e.ClaimedKey(claimant).PK == "" && (claimed != nil || !optional):
		// Keep the claim. The record's value is invalid, and the claim may contain the right one.
	case claimant == nil:
		diag.addOrphan(kindOrphanClaim, v.claim, fmt.Sprintf("%s %q does not exist", e.Of.Description, id))
	case claimed == nil:
		diag.addOrphan(kindOrphanClaim, v.claim, fmt.Sprintf("%s %s has no %s", e.Of.Description, id, claimedText(e)))
	default:
		diag.addOrphan(kindOrphanClaim, v.claim, fmt.Sprintf("the %s of %s %s is %s", claimedText(e), e.Of.Description, id, model.TextOf(claimant, e.ClaimedAttribute())))
	}
	return diag
}

func (v *claimVerifier) hasMainRecord() bool { return v.claimant.record() != nil }
