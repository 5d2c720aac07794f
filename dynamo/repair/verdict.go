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
	Class  string
	Key    model.Keys
	Detail string
	By     remedy
}

// remedy is how a finding is put right.
type remedy int

// The remedies.
const (
	// ByRepair is a repair that restores what is known.
	ByRepair remedy = iota
	// ByStandIn is a repair that writes a record of which nothing but the id is known.
	ByStandIn
	// ByHand is none: nothing tells what is right.
	ByHand
)

// AsFound is what findings are compared by.
func AsFound(f Finding) Finding { return f }

// Verdict is what is wrong with a unit, and the fixes that put it right.
type Verdict struct {
	Table    *table.Table
	Findings []Finding
	Fixes    []Fix
	// Basis is the key of the record that was believed, and believed that record as it was read;
	// nil where there is none. The fixes are made only as long as that is so.
	Basis    model.Keys
	Believed model.Record
	// Relied are other records on which the fixes depend, as they were read.
	Relied []Relied
	// Source is the key of the record whose values the other records of the unit should have.
	Source model.Keys
	// read are the records of the unit without what cannot be read of them, and unread is what
	// cannot, as Store.unreadable has it.
	read   map[model.Keys]model.Record
	Unread map[model.Keys]map[string]string
	// AtOnce requires that the fixes are made in one transaction or not at all: half of them would
	// mislead the next reading.
	AtOnce bool
	// Refused is why the fixes were not made.
	Refused string
}

// Relied is a record on which fixes depend, as it was read; nil where there was none.
type Relied struct {
	Key  model.Keys
	Have model.Record
}

// Fix leads one record from what was read to what it should be.
type Fix struct {
	Key model.Keys
	// Have is the record as it was read, nil where there was none.
	Have model.Record
	// put is the record to write where there is none.
	put model.Record
	// Set and remove are changes of have.
	Set    model.Record
	remove []string
	// deletes reports whether have is deleted.
	deletes bool
	// Event is the event to write where there is no record, as the last one of customer, too; its
	// id is made at that time, behind this one.
	Event    *commerce.Event
	Customer commerce.CustomerID
	// Dated reports whether updatedAt becomes the time of the event that is written with it.
	Dated bool
}

// Attribute makes an attribute that of the record as the fix leaves it.
func (w *Fix) Attribute(name string, v types.AttributeValue) {
	if w.put != nil {
		w.put[name] = v
		return
	}
	w.Set[name] = v
}

// Clean reports whether nothing is wrong.
func (v *Verdict) Clean() bool { return len(v.Findings) == 0 }

// And returns what is wrong in either verdict; either may be nil.
func (v *Verdict) And(other *Verdict) *Verdict {
	if v == nil {
		return other
	}
	both := *v
	if other != nil {
		for _, f := range other.Findings {
			if !v.HasAt(f.Class, f.Key) {
				both.Findings = append(slices.Clip(both.Findings), f)
			}
		}
	}
	return &both
}

// Has reports whether something of a class is wrong.
func (v *Verdict) Has(class string) bool {
	for _, f := range v.Findings {
		if f.Class == class {
			return true
		}
	}
	return false
}

// HasAt reports whether something of a class is wrong with a record.
func (v *Verdict) HasAt(class string, key model.Keys) bool {
	for _, f := range v.Findings {
		if f.Class == class && f.Key == (model.Keys{PK: key.PK, SK: key.SK}) {
			return true
		}
	}
	return false
}

// Find adds a finding.
func (v *Verdict) Find(class string, key model.Keys, detail string, by remedy) {
	v.Findings = append(v.Findings, Finding{Class: class, Key: model.Keys{PK: key.PK, SK: key.SK}, Detail: detail, By: by})
}

// Legible returns a record without the attributes that are there and cannot be read. It finds
// these.
func (v *Verdict) Legible(e *model.Entity, rec model.Record) model.Record {
	if rec == nil {
		return nil
	}
	k := model.KeyOf(rec)
	if read, ok := v.read[k]; ok {
		return read
	}
	if v.read == nil {
		v.read, v.Unread = map[model.Keys]model.Record{}, map[model.Keys]map[string]string{}
	}
	read := rec
	if problems := v.Table.Unreadable(e, rec); problems != nil {
		v.Unread[k] = problems
		read = maps.Clone(rec)
		var details []string
		for _, name := range slices.Sorted(maps.Keys(problems)) {
			delete(read, name)
			details = append(details, fmt.Sprintf("attribute %q %s", name, problems[name]))
		}
		v.Find(DriftUnreadable, k, strings.Join(details, "; "), ByHand)
	}
	v.read[k] = read
	return read
}

// Left reports whether a repair leaves an attribute of a record as it is, because it cannot be
// read, or what it should be cannot. That holds for the keys of the index, too.
func (v *Verdict) Left(e *model.Entity, k model.Keys, name string) bool {
	for _, unread := range []map[string]string{v.Unread[k.Primary()], v.unreadSource()} {
		for attribute := range unread {
			if attribute == name || model.IsIndexKey(name) && model.IndexedBy(e, attribute) {
				return true
			}
		}
	}
	return false
}

// unreadSource are the attributes of the source that cannot be read and that other records repeat.
func (v *Verdict) unreadSource() map[string]string {
	problems := v.Unread[v.Source]
	if problems == nil {
		return nil
	}
	e, repeated := model.EntityOf(v.Source), maps.Clone(problems)
	maps.DeleteFunc(repeated, func(attribute, _ string) bool { return attribute == "entity" || model.RepeatsKey(e, attribute) })
	return repeated
}

// Unreadable finds a record that lacks what it must have and that nothing tells how to restore.
func (v *Verdict) Unreadable(key model.Keys, err error) {
	if v.HasAt(DriftUnreadable, key) {
		return // its values that cannot be read have been found
	}
	v.Find(DriftUnreadable, key, strings.TrimPrefix(ReasonOf(err), model.ErrCorrupt.Error()+": "), ByHand)
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

// Absent finds a record that should be there. from is the record that it is made of, whose unknown
// attributes it inherits; nil for none.
func (v *Verdict) Absent(class string, want, from model.Record, detail string) {
	v.Find(class, model.KeyOf(want), detail, ByRepair)
	v.Create(want, from)
}

// Unknown finds a record that should be there, and of which nothing but the id is known. standIn is
// written in its place.
func (v *Verdict) Unknown(class string, standIn model.Record, detail string) {
	v.Find(class, model.KeyOf(standIn), detail, ByStandIn)
	v.Create(standIn, nil)
}

// Create writes a record that follows from a finding of another. What cannot be read of the source
// goes along as it stands, where the record is made of it, and is left out elsewhere.
func (v *Verdict) Create(want, from model.Record) {
	put := maps.Clone(from)
	if put == nil {
		put = model.Record{}
	}
	for _, name := range []string{model.AttrIndexPK, model.AttrIndexSK} {
		delete(put, name)
	}
	for name, value := range want {
		put[name] = overlaid(put[name], value)
	}
	for name := range v.unreadSource() {
		if delete(put, name); from[name] != nil {
			put[name] = from[name]
		}
	}
	v.Fixes = append(v.Fixes, Fix{Key: model.KeyOf(want), put: put})
}

// IsBare reports whether a record consists of keys alone, so that nothing is lost with it.
func IsBare(e *model.Entity, rec model.Record) bool {
	for name := range rec {
		if name != model.AttrPK && name != model.AttrSK && !model.IsIndexKey(name) && name != "entity" && !model.RepeatsKey(e, name) {
			return false
		}
	}
	return true
}

// Orphan finds a record that should not be there. One that holds what cannot be read is not
// deleted, and is found for that.
func (v *Verdict) Orphan(class string, have model.Record, detail string) {
	k := model.KeyOf(have)
	if v.Legible(model.EntityOf(k), have); v.Unread[k] != nil {
		return
	}
	v.Find(class, model.KeyOf(have), detail, ByRepair)
	v.Fixes = append(v.Fixes, Fix{Key: model.KeyOf(have), Have: have, deletes: true})
}

// Compare finds what is wrong with a record that is there, a finding for each class. class is that
// of attributes that are in no class of their own.
func (v *Verdict) Compare(e *model.Entity, have, want model.Record, class string) {
	v.Legible(e, have)
	w := Fix{Key: model.KeyOf(have), Have: have, Set: model.Record{}}
	details := map[string][]string{}
	var classes []string
	for _, d := range differences(v.Table.Currency, e, have, want) {
		if v.Left(e, w.Key, d.name) {
			continue
		}
		c := classOf(e, d.name, class)
		if details[c] == nil {
			classes = append(classes, c)
		}
		details[c] = append(details[c], d.text())
		if d.want == nil {
			w.remove = append(w.remove, d.name)
		} else {
			w.Set[d.name] = overlaid(have[d.name], d.want)
		}
	}
	for _, c := range classes {
		v.Find(c, w.Key, strings.Join(details[c], "; "), ByRepair)
	}
	if len(classes) > 0 {
		v.Fixes = append(v.Fixes, w)
	}
}

// classOf is the class of drift of an attribute that is not what it should be.
func classOf(e *model.Entity, name, otherwise string) string {
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

// WithKey returns a copy of a record that says what its key says. named are the values in the key,
// by attribute.
func WithKey(rec model.Record, named map[string]string) model.Record {
	if rec == nil {
		return nil
	}
	out := maps.Clone(rec)
	for name, v := range named {
		out[name] = model.Str(v)
	}
	return out
}

// Replacement is the fix that makes have the record want, which has the same key.
func Replacement(have, want model.Record) Fix {
	w := Fix{Key: model.KeyOf(have), Have: have, Set: model.Record{}}
	for name, v := range want {
		if name != model.AttrPK && name != model.AttrSK && !model.SameValue(v, have[name]) {
			w.Set[name] = v
		}
	}
	for _, name := range table.AttributeNames(have) {
		if want[name] == nil {
			w.remove = append(w.remove, name)
		}
	}
	return w
}
