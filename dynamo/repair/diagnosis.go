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

// Finding is a possible inconsistency. A concurrent write can look like an inconsistency, so a
// caller may have to read the records again to confirm a finding.
type Finding struct {
	Kind   string
	Key    model.Keys
	Detail string
	Remedy remedy
}

// remedy describes how an inconsistency can be repaired.
type remedy int

// The remedies.
const (
	// RemedyRepair writes the expected records.
	RemedyRepair remedy = iota
	// RemedyStandIn writes a substitute, called a stand-in, for a lost record. The stand-in has the ID
	// of the lost record, but most other values are unknown.
	RemedyStandIn
	// RemedyManual leaves the repair to the operator, because the expected state is unknown.
	RemedyManual
)

// FindingKey returns f. Use it as the key function of model.EqualSets, to compare findings by all
// their fields.
func FindingKey(f Finding) Finding { return f }

// Diagnosis contains the findings about a group of related records, and the fixes (the planned
// writes) for these findings.
type Diagnosis struct {
	Table    *table.Table
	Findings []Finding
	Fixes    []Fix
	// TrustedKey is the key of Trusted.
	TrustedKey model.Keys
	// Trusted is the record that determines the expected state of the other records, or nil if it does
	// not exist. If Trusted has changed since it was read, the fixes are not written.
	Trusted model.Record
	// Dependencies are other records on which the fixes depend. The fixes are written only if these
	// records have not changed since they were read.
	Dependencies []UnchangedRecord
	// Source is the key of the source record. Other records repeat some of its attributes. If a
	// repeated value differs, the value in the source record is right.
	Source model.Keys
	// readable maps the key of a record to the record without the attributes that cannot be decoded.
	// UnreadableAttributes maps the same key to the names of these attributes, and each name to the
	// reason (see model.Codec.UnreadableAttributes).
	readable             map[model.Keys]model.Record
	UnreadableAttributes map[model.Keys]map[string]string
	// SingleTransaction reports whether all fixes must be written in one transaction. Set it if the
	// next check would misinterpret the result of a partial repair.
	SingleTransaction bool
	// RefusalReason is the reason why the fixes were not written, if the repair failed with a
	// RefusedError.
	RefusalReason string
}

// UnchangedRecord is a record on which a repair depends. The repair is written only if this record
// has not changed since it was read. AsRead is nil if the record did not exist.
type UnchangedRecord struct {
	Key    model.Keys
	AsRead model.Record
}

// Fix creates, updates or deletes one record to repair it.
type Fix struct {
	Key model.Keys
	// AsRead is the record as it was read. It is nil if the record did not exist.
	AsRead model.Record
	// put is the record to create, or nil if the fix creates no record. It is written only if no
	// record with its key exists.
	put model.Record
	// Set contains the attributes to set. remove contains the names of the attributes to remove.
	Set    model.Record
	remove []string
	// isDelete reports whether the fix deletes the record.
	isDelete bool
	// Event is an event to append to the timeline of its order, or nil. The repair gives the event a
	// new, later ID. It also stores the event as the last event of the customer with the ID Customer.
	Event    *commerce.Event
	Customer commerce.CustomerID
	// SetsUpdatedAt reports whether the fix sets updatedAt to the time of a new event. The same
	// transaction must append this event.
	SetsUpdatedAt bool
}

// SetAttribute adds an attribute to the attributes that the fix sets.
func (fix *Fix) SetAttribute(name string, v types.AttributeValue) {
	if fix.put != nil {
		fix.put[name] = v
		return
	}
	fix.Set[name] = v
}

// IsClean reports whether there are no findings.
func (diag *Diagnosis) IsClean() bool { return len(diag.Findings) == 0 }

// Merge returns a diagnosis that contains the findings of diag and other. Either of them may be
// nil.
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

// HasKind reports whether the diagnosis has a finding of the given kind.
func (diag *Diagnosis) HasKind(kind string) bool {
	for _, f := range diag.Findings {
		if f.Kind == kind {
			return true
		}
	}
	return false
}

// HasFinding reports whether the diagnosis has a finding of the given kind about the record with
// the given key.
func (diag *Diagnosis) HasFinding(kind string, key model.Keys) bool {
	for _, f := range diag.Findings {
		if f.Kind == kind && f.Key == (model.Keys{PK: key.PK, SK: key.SK}) {
			return true
		}
	}
	return false
}

// AddFinding adds a finding.
func (diag *Diagnosis) AddFinding(kind string, key model.Keys, detail string, fixedBy remedy) {
	diag.Findings = append(diag.Findings, Finding{Kind: kind, Key: model.Keys{PK: key.PK, SK: key.SK}, Detail: detail, Remedy: fixedBy})
}

// WithoutUnreadable returns a copy of a record without the attributes that cannot be decoded. If
// there are such attributes, WithoutUnreadable also adds a finding about them.
func (diag *Diagnosis) WithoutUnreadable(e *model.Entity, rec model.Record) model.Record {
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
	read, problems, invalid := rec, diag.Table.UnreadableAttributes(e, rec), diag.Table.InvalidAttributes(e, rec)
	maps.DeleteFunc(invalid, func(name, _ string) bool { return problems[name] != "" })
	if len(invalid) > 0 {
		var details []string
		for _, name := range slices.Sorted(maps.Keys(invalid)) {
			details = append(details, fmt.Sprintf("attribute %q %s", name, invalid[name]))
		}
		diag.AddFinding(DriftInvalidValue, k, strings.Join(details, "; "), RemedyManual)
	}
	if problems != nil {
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

// MustLeaveUnchanged reports whether a repair must not change the named attribute of the record
// with the key k. This is true if the stored or the expected value cannot be decoded.
func (diag *Diagnosis) MustLeaveUnchanged(e *model.Entity, k model.Keys, name string) bool {
	for _, unread := range []map[string]string{diag.UnreadableAttributes[k.Primary()], diag.unreadableInSource()} {
		for attribute := range unread {
			if attribute == name || model.IsIndexKey(name) && model.IsInIndexKey(e, attribute) {
				return true
			}
		}
	}
	return false
}

// unreadableInSource returns the attributes of diag.Source that cannot be decoded and that other
// records repeat, with the reasons.
func (diag *Diagnosis) unreadableInSource() map[string]string {
	problems := diag.UnreadableAttributes[diag.Source]
	if problems == nil {
		return nil
	}
	e, repeated := model.EntityOf(diag.Source), maps.Clone(problems)
	maps.DeleteFunc(repeated, func(attribute, _ string) bool { return attribute == "entity" || model.IsInPrimaryKey(e, attribute) })
	return repeated
}

// AddUnreadable adds a finding that a record cannot be decoded, so an operator must repair it.
func (diag *Diagnosis) AddUnreadable(key model.Keys, err error) {
	if diag.HasFinding(DriftUnreadable, key) {
		return // WithoutUnreadable has already added a finding
	}
	diag.AddFinding(DriftUnreadable, key, strings.TrimPrefix(DecodeErrorReason(err), model.ErrCorrupt.Error()+": "), RemedyManual)
}

// DecodeErrorReason returns the message of a decoding error. It omits the record's key.
func DecodeErrorReason(err error) string {
	if invalid := (*commerce.InvalidError)(nil); errors.As(err, &invalid) {
		return strings.Replace(invalid.Error(), "argument", "attribute", 1)
	}
	text := err.Error()
	if i := strings.Index(text, "attribute "); i >= 0 {
		return text[i:]
	}
	return text
}

// AddMissing adds a finding that a record (want) is missing, and the fix that writes it. The
// parameter from is another copy of the record, or nil. The fix also writes the attributes that
// exist only in this copy, except index keys.
func (diag *Diagnosis) AddMissing(kind string, want, from model.Record, detail string) {
	diag.AddFinding(kind, model.KeyOf(want), detail, RemedyRepair)
	diag.AddPut(want, from)
}

// AddStandIn adds a finding that a record is lost, and the fix that writes standIn as a substitute.
// The substitute must have the ID of the lost record.
func (diag *Diagnosis) AddStandIn(kind string, standIn model.Record, detail string) {
	diag.AddFinding(kind, model.KeyOf(standIn), detail, RemedyStandIn)
	diag.AddPut(standIn, nil)
}

// AddPut adds the same fix as AddMissing, but no finding. If an attribute of the source record
// cannot be decoded, the fix uses the value in the parameter from. If there is no such value, the
// fix omits the attribute.
func (diag *Diagnosis) AddPut(want, from model.Record) {
	put := maps.Clone(from)
	if put == nil {
		put = model.Record{}
	}
	// ElectroDB stores the type of a record in attributes. The new record has another type.
	for _, name := range []string{model.AttrIndexPK, model.AttrIndexSK, "__edb_e__", "__edb_v__"} {
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

// HasOnlyKeys reports whether a record contains only its keys. Deleting such a record loses no
// data.
func HasOnlyKeys(e *model.Entity, rec model.Record) bool {
	for name := range rec {
		if name != model.AttrPK && name != model.AttrSK && !model.IsIndexKey(name) && name != "entity" && !model.IsInPrimaryKey(e, name) {
			return false
		}
	}
	return true
}

// AddOrphan adds a finding that a record should not exist, and the fix that deletes the record. If
// the record has attributes that cannot be decoded, AddOrphan adds only a finding about these
// attributes.
func (diag *Diagnosis) AddOrphan(kind string, have model.Record, detail string) {
	k := model.KeyOf(have)
	if diag.WithoutUnreadable(model.EntityOf(k), have); diag.UnreadableAttributes[k] != nil {
		return
	}
	diag.AddFinding(kind, model.KeyOf(have), detail, RemedyRepair)
	diag.Fixes = append(diag.Fixes, Fix{Key: model.KeyOf(have), AsRead: have, isDelete: true})
}

// Compare compares a stored record (have) with the expected record (want). It adds one fix for all
// differences, and one finding for each kind of difference. If an attribute has no kind of its own
// (see kindOf), its kind is the parameter kind.
func (diag *Diagnosis) Compare(e *model.Entity, have, want model.Record, kind string) {
	diag.WithoutUnreadable(e, have)
	fix := Fix{Key: model.KeyOf(have), AsRead: have, Set: model.Record{}}
	details := map[string][]string{}
	var kinds []string
	for _, d := range differences(diag.Table.Currency, e, have, want) {
		if diag.MustLeaveUnchanged(e, fix.Key, d.name) {
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

// SetUnreported sets attributes of a stored record (have), without a finding.
func (diag *Diagnosis) SetUnreported(have, attributes model.Record) {
	for i := range diag.Fixes {
		if fix := &diag.Fixes[i]; fix.Key == model.KeyOf(have) {
			fix.Set.Merge(attributes)
			return
		}
	}
	diag.Fixes = append(diag.Fixes, Fix{Key: model.KeyOf(have), AsRead: have, Set: attributes})
}

// kindOf returns the kind of inconsistency for a wrong value of the named attribute. If the
// attribute has no kind of its own, kindOf returns its last parameter.
func kindOf(e *model.Entity, name, otherwise string) string {
	switch name {
	case model.AttrIndexPK, model.AttrIndexSK:
		return DriftIndexKeys
	case "entity":
		return driftEntityAttribute
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
	if model.IsInPrimaryKey(e, name) {
		return DriftKeyAttribute
	}
	return otherwise
}

// WithKeyAttributes copies a record, and sets some attributes of the copy. The parameter named maps
// the name of each attribute to its right value, which is usually known from the record's key.
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

// NewReplacement returns the fix that replaces a stored record (have) with a new record (want).
// Both records must have the same key.
func NewReplacement(have, want model.Record) Fix {
	fix := Fix{Key: model.KeyOf(have), AsRead: have, Set: model.Record{}}
	for name, v := range want {
		if name != model.AttrPK && name != model.AttrSK && !model.EqualValues(v, have[name]) {
			fix.Set[name] = v
		}
	}
	for _, name := range table.SortedAttributeNames(have) {
		if want[name] == nil {
			fix.remove = append(fix.remove, name)
		}
	}
	return fix
}
