package dynamo

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

// finding is a drift before it is certain.
type finding struct {
	class  string
	key    model.Keys
	detail string
	by     remedy
}

// remedy is how a finding is put right.
type remedy int

const (
	byRepair remedy = iota
	// byStandIn is a repair that writes a record of which nothing but the id is known.
	byStandIn
	// byHand is none: nothing tells what is right.
	byHand
)

// asFound is what findings are compared by.
func asFound(f finding) finding { return f }

// verdict is what is wrong with a unit, and the fixes that put it right.
type verdict struct {
	table    *table.Table
	findings []finding
	fixes    []fix
	// basis is the key of the record that was believed, and believed that record as it was read;
	// nil where there is none. The fixes are made only as long as that is so.
	basis    model.Keys
	believed model.Record
	// relied are other records on which the fixes depend, as they were read.
	relied []relied
	// source is the key of the record whose values the other records of the unit should have.
	source model.Keys
	// read are the records of the unit without what cannot be read of them, and unread is what
	// cannot, as Store.unreadable has it.
	read   map[model.Keys]model.Record
	unread map[model.Keys]map[string]string
	// atOnce requires that the fixes are made in one transaction or not at all: half of them would
	// mislead the next reading.
	atOnce bool
	// refused is why the fixes were not made.
	refused string
}

// relied is a record on which fixes depend, as it was read; nil where there was none.
type relied struct {
	key  model.Keys
	have model.Record
}

// fix leads one record from what was read to what it should be.
type fix struct {
	key model.Keys
	// have is the record as it was read, nil where there was none.
	have model.Record
	// put is the record to write where there is none.
	put model.Record
	// set and remove are changes of have.
	set    model.Record
	remove []string
	// deletes tells that have is deleted.
	deletes bool
	// event is the event to write where there is no record, as the last one of customer, too; its
	// id is made at that time, behind this one.
	event    *commerce.Event
	customer commerce.CustomerID
	// dated tells that updatedAt becomes the time of the event that is written with it.
	dated bool
}

// attribute makes an attribute that of the record as the fix leaves it.
func (w *fix) attribute(name string, v types.AttributeValue) {
	if w.put != nil {
		w.put[name] = v
		return
	}
	w.set[name] = v
}

// clean tells whether nothing is wrong.
func (v *verdict) clean() bool { return len(v.findings) == 0 }

// and returns what is wrong in either verdict; either may be nil.
func (v *verdict) and(other *verdict) *verdict {
	if v == nil {
		return other
	}
	both := *v
	if other != nil {
		for _, f := range other.findings {
			if !v.hasAt(f.class, f.key) {
				both.findings = append(slices.Clip(both.findings), f)
			}
		}
	}
	return &both
}

// has tells whether something of a class is wrong.
func (v *verdict) has(class string) bool {
	for _, f := range v.findings {
		if f.class == class {
			return true
		}
	}
	return false
}

// hasAt tells whether something of a class is wrong with a record.
func (v *verdict) hasAt(class string, key model.Keys) bool {
	for _, f := range v.findings {
		if f.class == class && f.key == (model.Keys{PK: key.PK, SK: key.SK}) {
			return true
		}
	}
	return false
}

func (v *verdict) find(class string, key model.Keys, detail string, by remedy) {
	v.findings = append(v.findings, finding{class: class, key: model.Keys{PK: key.PK, SK: key.SK}, detail: detail, by: by})
}

// legible returns a record without the attributes that are there and cannot be read. It finds
// these.
func (v *verdict) legible(e *model.Entity, rec model.Record) model.Record {
	if rec == nil {
		return nil
	}
	k := model.KeyOf(rec)
	if read, ok := v.read[k]; ok {
		return read
	}
	if v.read == nil {
		v.read, v.unread = map[model.Keys]model.Record{}, map[model.Keys]map[string]string{}
	}
	read := rec
	if problems := v.table.Unreadable(e, rec); problems != nil {
		v.unread[k] = problems
		read = maps.Clone(rec)
		var details []string
		for _, name := range slices.Sorted(maps.Keys(problems)) {
			delete(read, name)
			details = append(details, fmt.Sprintf("attribute %q %s", name, problems[name]))
		}
		v.find(driftUnreadable, k, strings.Join(details, "; "), byHand)
	}
	v.read[k] = read
	return read
}

// left reports whether a repair leaves an attribute of a record as it is, because it cannot be
// read, or what it should be cannot. That holds for the keys of the index, too.
func (v *verdict) left(e *model.Entity, k model.Keys, name string) bool {
	for _, unread := range []map[string]string{v.unread[k.Primary()], v.unreadSource()} {
		for attribute := range unread {
			if attribute == name || model.IsIndexKey(name) && model.IndexedBy(e, attribute) {
				return true
			}
		}
	}
	return false
}

// unreadSource are the attributes of the source that cannot be read and that other records repeat.
func (v *verdict) unreadSource() map[string]string {
	problems := v.unread[v.source]
	if problems == nil {
		return nil
	}
	e, repeated := model.EntityOf(v.source), maps.Clone(problems)
	maps.DeleteFunc(repeated, func(attribute, _ string) bool { return attribute == "entity" || model.RepeatsKey(e, attribute) })
	return repeated
}

// unreadable finds a record that lacks what it must have and that nothing tells how to restore.
func (v *verdict) unreadable(key model.Keys, err error) {
	if v.hasAt(driftUnreadable, key) {
		return // its values that cannot be read have been found
	}
	v.find(driftUnreadable, key, strings.TrimPrefix(reasonOf(err), model.ErrCorrupt.Error()+": "), byHand)
}

// reasonOf is what an error of decoding says of the record, without the key.
func reasonOf(err error) string {
	if invalid := (*commerce.InvalidError)(nil); errors.As(err, &invalid) {
		return strings.Replace(invalid.Error(), "argument", "attribute", 1)
	}
	text := err.Error()
	if i := strings.Index(text, "attribute "); i >= 0 {
		return text[i:]
	}
	return text
}

// absent finds a record that should be there. from is the record that it is made of, whose unknown
// attributes it inherits; nil for none.
func (v *verdict) absent(class string, want, from model.Record, detail string) {
	v.find(class, model.KeyOf(want), detail, byRepair)
	v.create(want, from)
}

// unknown finds a record that should be there, and of which nothing but the id is known. standIn is
// written in its place.
func (v *verdict) unknown(class string, standIn model.Record, detail string) {
	v.find(class, model.KeyOf(standIn), detail, byStandIn)
	v.create(standIn, nil)
}

// create writes a record that follows from a finding of another. What cannot be read of the source
// goes along as it stands, where the record is made of it, and is left out elsewhere.
func (v *verdict) create(want, from model.Record) {
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
	v.fixes = append(v.fixes, fix{key: model.KeyOf(want), put: put})
}

// isBare reports whether a record consists of keys alone, so that nothing is lost with it.
func isBare(e *model.Entity, rec model.Record) bool {
	for name := range rec {
		if name != model.AttrPK && name != model.AttrSK && !model.IsIndexKey(name) && name != "entity" && !model.RepeatsKey(e, name) {
			return false
		}
	}
	return true
}

// orphan finds a record that should not be there. One that holds what cannot be read is not
// deleted, and is found for that.
func (v *verdict) orphan(class string, have model.Record, detail string) {
	k := model.KeyOf(have)
	if v.legible(model.EntityOf(k), have); v.unread[k] != nil {
		return
	}
	v.find(class, model.KeyOf(have), detail, byRepair)
	v.fixes = append(v.fixes, fix{key: model.KeyOf(have), have: have, deletes: true})
}

// compare finds what is wrong with a record that is there, a finding for each class. class is that
// of attributes that are in no class of their own.
func (v *verdict) compare(e *model.Entity, have, want model.Record, class string) {
	v.legible(e, have)
	w := fix{key: model.KeyOf(have), have: have, set: model.Record{}}
	details := map[string][]string{}
	var classes []string
	for _, d := range differences(v.table.Currency, e, have, want) {
		if v.left(e, w.key, d.name) {
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
			w.set[d.name] = overlaid(have[d.name], d.want)
		}
	}
	for _, c := range classes {
		v.find(c, w.key, strings.Join(details[c], "; "), byRepair)
	}
	if len(classes) > 0 {
		v.fixes = append(v.fixes, w)
	}
}

// classOf is the class of drift of an attribute that is not what it should be.
func classOf(e *model.Entity, name, otherwise string) string {
	switch name {
	case model.AttrIndexPK, model.AttrIndexSK:
		return driftIndexKeys
	case "entity":
		return driftEntity
	case "total":
		return driftOrderTotal
	case "itemCount":
		return driftItemCount
	case "items":
		return driftEmbeddedItems
	case "orderCount":
		return driftOrderCount
	case "totalInventory":
		return driftStockTotal
	case "available":
		return driftStockAvailable
	}
	if model.RepeatsKey(e, name) {
		return driftKeyAttribute
	}
	return otherwise
}

// withKey returns a copy of a record that says what its key says. named are the values in the key,
// by attribute.
func withKey(rec model.Record, named map[string]string) model.Record {
	if rec == nil {
		return nil
	}
	out := maps.Clone(rec)
	for name, v := range named {
		out[name] = model.Str(v)
	}
	return out
}

// replacement is the fix that makes have the record want, which has the same key.
func replacement(have, want model.Record) fix {
	w := fix{key: model.KeyOf(have), have: have, set: model.Record{}}
	for name, v := range want {
		if name != model.AttrPK && name != model.AttrSK && !model.SameValue(v, have[name]) {
			w.set[name] = v
		}
	}
	for _, name := range model.AttributeNames(have) {
		if want[name] == nil {
			w.remove = append(w.remove, name)
		}
	}
	return w
}
