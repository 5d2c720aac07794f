package repair

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// Finding is a drift before it is certain.
type Finding struct {
	Kind   string
	Key    model.Keys
	Detail string
	Remedy remedy
}

// remedy is how a finding is put right.
type remedy int

// The remedies.
const (
	// RemedyRepair is a repair that restores what is known.
	RemedyRepair remedy = iota
	// RemedyStandIn is a repair that writes a record of which nothing but the id is known.
	RemedyStandIn
	// RemedyManual is none: nothing tells what is right.
	RemedyManual
)

// FindingKey is what findings are compared by.
func FindingKey(f Finding) Finding { return f }

// Diagnosis is what is wrong with a unit, and the fixes that put it right.
type Diagnosis struct {
	Table    *table.Table
	Findings []Finding
	Fixes    []Fix
	// TrustedKey is the key of the record that was believed, and believed that record as it was read;
	// nil where there is none. The fixes are made only as long as that is so.
	TrustedKey model.Keys
	Trusted    model.Record
	// Dependencies are other records on which the fixes depend, as they were read.
	Dependencies []Dependency
	// Source is the key of the record whose values the other records of the unit should have.
	Source model.Keys
	// readable are the records of the unit without what cannot be read of them, and unread is what
	// cannot, as Store.unreadable has it.
	readable             map[model.Keys]model.Record
	UnreadableAttributes map[model.Keys]map[string]string
	// SingleTransaction requires that the fixes are made in one transaction or not at all: half of them would
	// mislead the next reading.
	SingleTransaction bool
	// RefusalReason is why the fixes were not made.
	RefusalReason string
}

// Dependency is a record on which fixes depend, as it was read; nil where there was none.
type Dependency struct {
	Key    model.Keys
	AsRead model.Record
}

// Fix leads one record from what was read to what it should be.
type Fix struct {
	Key model.Keys
	// AsRead is the record as it was read, nil where there was none.
	AsRead model.Record
	// put is the record to write where there is none.
	put model.Record
	// Set and remove are changes of have.
	Set    model.Record
	remove []string
	// isDelete reports whether have is deleted.
	isDelete bool
	// Event is the event to write where there is no record, as the last one of customer, too; its
	// id is made at that time, behind this one.
	Event    *commerce.Event
	Customer commerce.CustomerID
	// SetsUpdatedAt reports whether updatedAt becomes the time of the event that is written with it.
	SetsUpdatedAt bool
}

// SetAttribute makes an attribute that of the record as the fix leaves it.
func (fix *Fix) SetAttribute(name string, v types.AttributeValue) {
	if fix.put != nil {
		fix.put[name] = v
		return
	}
	fix.Set[name] = v
}

// Clean reports whether nothing is wrong.
func (diag *Diagnosis) Clean() bool { return len(diag.Findings) == 0 }

// Merge returns what is wrong in either verdict; either may be nil.
func (diag *Diagnosis) Merge(other *Diagnosis) *Diagnosis {
	if diag == nil {
		return other
	}
	both := *diag
	if other != nil {
		for _, f := range other.Findings {
			if !diag.HasFinding(f.Kind, f.Key) {
				both.Findings = append(slices.Clip(both.Findings), f)
			}
		}
	}
	return &both
}

// HasKind reports whether something of a class is wrong.
func (diag *Diagnosis) HasKind(kind string) bool {
	for _, f := range diag.Findings {
		if f.Kind == kind {
			return true
		}
	}
	return false
}

// HasFinding reports whether something of a class is wrong with a record.
func (diag *Diagnosis) HasFinding(kind string, key model.Keys) bool {
	for _, f := range diag.Findings {
		if f.Kind == kind && f.Key == (model.Keys{PK: key.PK, SK: key.SK}) {
			return true
		}
	}
	return false
}

// AddFinding adds a finding.
func (diag *Diagnosis) AddFinding(kind string, key model.Keys, detail string, by remedy) {
	diag.Findings = append(diag.Findings, Finding{Kind: kind, Key: model.Keys{PK: key.PK, SK: key.SK}, Detail: detail, Remedy: by})
}

// Readable returns a record without the attributes that are there and cannot be read. It finds
// these.
func (diag *Diagnosis) Readable(e *model.Entity, rec model.Record) model.Record {
	if rec == nil {
		return nil
	}
	k := model.KeyOf(rec)
	if read, ok := diag.readable[k]; ok {
		return read
	}
	if diag.readable == nil {
		diag.readable, diag.UnreadableAttributes = map[model.Keys]model.Record{}, map[model.Keys]map[string]string{}
	}
	read := rec
	if problems := diag.Table.Unreadable(e, rec); problems != nil {
		diag.UnreadableAttributes[k] = problems
		read = maps.Clone(rec)
		var details []string
		for _, name := range slices.Sorted(maps.Keys(problems)) {
			delete(read, name)
			details = append(details, fmt.Sprintf("attribute %q %s", name, problems[name]))
		}
		diag.AddFinding(DriftUnreadable, k, strings.Join(details, "; "), RemedyManual)
	}
	diag.readable[k] = read
	return read
}

// LeavesUnchanged reports whether a repair leaves an attribute of a record as it is, because it cannot be
// read, or what it should be cannot. That holds for the keys of the index, too.
func (diag *Diagnosis) LeavesUnchanged(e *model.Entity, k model.Keys, name string) bool {
	for _, unread := range []map[string]string{diag.UnreadableAttributes[k.Primary()], diag.unreadableInSource()} {
		for attribute := range unread {
			if attribute == name || model.IsIndexKey(name) && model.IndexedBy(e, attribute) {
				return true
			}
		}
	}
	return false
}

// unreadableInSource are the attributes of the source that cannot be read and that other records repeat.
func (diag *Diagnosis) unreadableInSource() map[string]string {
	problems := diag.UnreadableAttributes[diag.Source]
	if problems == nil {
		return nil
	}
	e, repeated := model.EntityOf(diag.Source), maps.Clone(problems)
	maps.DeleteFunc(repeated, func(attribute, _ string) bool { return attribute == "entity" || model.RepeatsKey(e, attribute) })
	return repeated
}

// AddUnreadable finds a record that lacks what it must have and that nothing tells how to restore.
func (diag *Diagnosis) AddUnreadable(key model.Keys, err error) {
	if diag.HasFinding(DriftUnreadable, key) {
		return // its values that cannot be read have been found
	}
	diag.AddFinding(DriftUnreadable, key, strings.TrimPrefix(ReasonOf(err), model.ErrCorrupt.Error()+": "), RemedyManual)
}

// ReasonOf is what an error of decoding says of the record, without the key.
func ReasonOf(err error) string {
	if invalid := (*commerce.InvalidError)(nil); errors.As(err, &invalid) {
		return strings.Replace(invalid.Error(), "argument", "attribute", 1)
	}
	text := err.Error()
	if i := strings.Index(text, "attribute "); i >= 0 {
		return text[i:]
	}
	return text
}

// AddMissing finds a record that should be there. from is the record that it is made of, whose unknown
// attributes it inherits; nil for none.
func (diag *Diagnosis) AddMissing(kind string, want, from model.Record, detail string) {
	diag.AddFinding(kind, model.KeyOf(want), detail, RemedyRepair)
	diag.AddPut(want, from)
}

// AddStandIn finds a record that should be there, and of which nothing but the id is known. standIn is
// written in its place.
func (diag *Diagnosis) AddStandIn(kind string, standIn model.Record, detail string) {
	diag.AddFinding(kind, model.KeyOf(standIn), detail, RemedyStandIn)
	diag.AddPut(standIn, nil)
}

// AddPut writes a record that follows from a finding of another. What cannot be read of the source
// goes along as it stands, where the record is made of it, and is left out elsewhere.
func (diag *Diagnosis) AddPut(want, from model.Record) {
	put := maps.Clone(from)
	if put == nil {
		put = model.Record{}
	}
	for _, name := range []string{model.AttrIndexPK, model.AttrIndexSK} {
		delete(put, name)
	}
	for name, value := range want {
		put[name] = withUnknownMembers(put[name], value)
	}
	for name := range diag.unreadableInSource() {
		if delete(put, name); from[name] != nil {
			put[name] = from[name]
		}
	}
	diag.Fixes = append(diag.Fixes, Fix{Key: model.KeyOf(want), put: put})
}

// HasOnlyKeys reports whether a record consists of keys alone, so that nothing is lost with it.
func HasOnlyKeys(e *model.Entity, rec model.Record) bool {
	for name := range rec {
		if name != model.AttrPK && name != model.AttrSK && !model.IsIndexKey(name) && name != "entity" && !model.RepeatsKey(e, name) {
			return false
		}
	}
	return true
}

// AddOrphan finds a record that should not be there. One that holds what cannot be read is not
// deleted, and is found for that.
func (diag *Diagnosis) AddOrphan(kind string, have model.Record, detail string) {
	k := model.KeyOf(have)
	if diag.Readable(model.EntityOf(k), have); diag.UnreadableAttributes[k] != nil {
		return
	}
	diag.AddFinding(kind, model.KeyOf(have), detail, RemedyRepair)
	diag.Fixes = append(diag.Fixes, Fix{Key: model.KeyOf(have), AsRead: have, isDelete: true})
}

// Compare finds what is wrong with a record that is there, a finding for each class. class is that
// of attributes that are in no class of their own.
func (diag *Diagnosis) Compare(e *model.Entity, have, want model.Record, kind string) {
	diag.Readable(e, have)
	fix := Fix{Key: model.KeyOf(have), AsRead: have, Set: model.Record{}}
	details := map[string][]string{}
	var kinds []string
	for _, d := range differences(diag.Table.Currency, e, have, want) {
		if diag.LeavesUnchanged(e, fix.Key, d.name) {
			continue
		}
		c := kindOf(e, d.name, kind)
		if details[c] == nil {
			kinds = append(kinds, c)
		}
		details[c] = append(details[c], d.text())
		if d.want == nil {
			fix.remove = append(fix.remove, d.name)
		} else {
			fix.Set[d.name] = withUnknownMembers(have[d.name], d.want)
		}
	}
	for _, c := range kinds {
		diag.AddFinding(c, fix.Key, strings.Join(details[c], "; "), RemedyRepair)
	}
	if len(kinds) > 0 {
		diag.Fixes = append(diag.Fixes, fix)
	}
}

// kindOf is the class of drift of an attribute that is not what it should be.
func kindOf(e *model.Entity, name, otherwise string) string {
	switch name {
	case model.AttrIndexPK, model.AttrIndexSK:
		return DriftIndexKeys
	case "entity":
		return driftEntity
	case "total":
		return driftOrderTotal
	case "itemCount":
		return driftItemCount
	case "items":
		return driftEmbeddedItems
	case "orderCount":
		return DriftOrderCount
	case model.AttrSpendingComplete:
		return DriftSpending
	case "totalInventory":
		return DriftStockTotal
	case "available":
		return DriftStockAvailable
	case model.AttrProductCount:
		return DriftCategoryCount
	}
	if model.RepeatsKey(e, name) {
		return DriftKeyAttribute
	}
	return otherwise
}

// WithKeyAttributes returns a copy of a record that says what its key says. named are the values in the key,
// by attribute.
func WithKeyAttributes(rec model.Record, named map[string]string) model.Record {
	if rec == nil {
		return nil
	}
	out := maps.Clone(rec)
	for name, v := range named {
		out[name] = model.Str(v)
	}
	return out
}

// NewReplacement is the fix that makes have the record want, which has the same key.
func NewReplacement(have, want model.Record) Fix {
	fix := Fix{Key: model.KeyOf(have), AsRead: have, Set: model.Record{}}
	for name, v := range want {
		if name != model.AttrPK && name != model.AttrSK && !model.SameValue(v, have[name]) {
			fix.Set[name] = v
		}
	}
	for _, name := range table.AttributeNames(have) {
		if want[name] == nil {
			fix.remove = append(fix.remove, name)
		}
	}
	return fix
}
