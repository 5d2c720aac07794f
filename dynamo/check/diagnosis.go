package check

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

// finding is a possible inconsistency. A concurrent write can look like an inconsistency, so a
// caller may have to read the records again to confirm a finding.
type finding struct {
	kind   string
	key    model.Keys
	detail string
	remedy remedy
}

// remedy describes how an inconsistency can be repaired.
type remedy int

// The remedies.
const (
	// remedyRepair writes the expected records.
	remedyRepair remedy = iota
	// remedyStandIn writes a substitute, called a stand-in, for a lost record. The stand-in has the ID
	// of the lost record, but most other values are unknown.
	remedyStandIn
	// remedyManual leaves the repair to the operator, because the expected state is unknown.
	remedyManual
)

// findingKey returns f. Use it as the key function of model.EqualSets, to compare findings by all
// their fields.
func findingKey(f finding) finding { return f }

// diagnosis contains the findings about a group of related records, and the fixes (the planned
// writes) for these findings.
type diagnosis struct {
	table    *table.Table
	findings []finding
	fixes    []recordFix
	// trustedKey is the key of Trusted.
	trustedKey model.Keys
	// trusted is the record that determines the expected state of the other records, or nil if it does
	// not exist. If Trusted has changed since it was read, the fixes are not written.
	trusted model.Record
	// dependencies are other records on which the fixes depend. The fixes are written only if these
	// records have not changed since they were read.
	dependencies []unchangedRecord
	// source is the key of the source record. Other records repeat some of its attributes. If a
	// repeated value differs, the value in the source record is right.
	source model.Keys
	// readable maps the key of a record to the record without the attributes that cannot be decoded.
	// unreadableAttributes maps the same key to the names of these attributes, and each name to the
	// reason (see model.Codec.unreadableAttributes).
	readable             map[model.Keys]model.Record
	unreadableAttributes map[model.Keys]map[string]string
	// singleTransaction reports whether all fixes must be written in one transaction. Set it if the
	// next check would misinterpret the result of a partial repair.
	singleTransaction bool
	// erased reports whether the records must not contain personal data, because their customer was erased.
	erased bool
	// refusalReason is the reason why the fixes were not written, if the repair failed with a
	// refusedError.
	refusalReason string
}

// unchangedRecord is a record on which a repair depends. The repair is written only if this record
// has not changed since it was read. asRead is nil if the record did not exist. ignored are attributes
// that may change, because the repair does not depend on them.
type unchangedRecord struct {
	key     model.Keys
	asRead  model.Record
	ignored []string
}

// recordFix creates, updates or deletes one record to repair it.
type recordFix struct {
	key model.Keys
	// asRead is the record as it was read. It is nil if the record did not exist.
	asRead model.Record
	// put is the record to create, or nil if the fix creates no record. It is written only if no
	// record with its key exists.
	put model.Record
	// set contains the attributes to set. remove contains the names of the attributes to remove.
	set    model.Record
	remove []string
	// isDelete reports whether the fix deletes the record.
	isDelete bool
	// event is an event to append to the timeline of its order, or nil. The repair gives the event a
	// new, later ID. It also stores the event as the last event of the customer with the ID Customer.
	event    *commerce.Event
	customer commerce.CustomerID
	// setsUpdatedAt reports whether the fix sets updatedAt to the time of a new event. The same
	// transaction must append this event.
	setsUpdatedAt bool
}

// setAttribute adds an attribute to the attributes that the fix sets.
func (fix *recordFix) setAttribute(name string, v types.AttributeValue) {
	if fix.put != nil {
		fix.put[name] = v
		return
	}
	fix.set[name] = v
}

// isClean reports whether there are no findings.
func (diag *diagnosis) isClean() bool { return len(diag.findings) == 0 }

// merge returns a diagnosis that contains the findings of diag and other. Either of them may be
// nil.
func (diag *diagnosis) merge(other *diagnosis) *diagnosis {
	if diag == nil {
		return other
	}
	both := *diag
	if other != nil {
		for _, f := range other.findings {
			if !diag.hasFinding(f.kind, f.key) {
				both.findings = append(slices.Clip(both.findings), f)
			}
		}
	}
	return &both
}

// hasKind reports whether the diagnosis has a finding of the given kind.
func (diag *diagnosis) hasKind(kind string) bool {
	for _, f := range diag.findings {
		if f.kind == kind {
			return true
		}
	}
	return false
}

// hasFinding reports whether the diagnosis has a finding of the given kind about the record with
// the given key.
func (diag *diagnosis) hasFinding(kind string, key model.Keys) bool {
	for _, f := range diag.findings {
		if f.kind == kind && f.key == (model.Keys{PK: key.PK, SK: key.SK}) {
			return true
		}
	}
	return false
}

// addFinding adds a finding.
func (diag *diagnosis) addFinding(kind string, key model.Keys, detail string, fixedBy remedy) {
	diag.findings = append(diag.findings, finding{kind: kind, key: model.Keys{PK: key.PK, SK: key.SK}, detail: detail, remedy: fixedBy})
}

// withoutUnreadable returns a copy of a record without the attributes that cannot be decoded. If
// there are such attributes, withoutUnreadable also adds a finding about them.
func (diag *diagnosis) withoutUnreadable(e *model.Entity, rec model.Record) model.Record {
	if rec == nil {
		return nil
	}
	k := model.KeyOf(rec)
	if read, ok := diag.readable[k]; ok {
		return read
	}
	if diag.readable == nil {
		diag.readable, diag.unreadableAttributes = map[model.Keys]model.Record{}, map[model.Keys]map[string]string{}
	}
	read, problems, invalid := rec, diag.table.UnreadableAttributes(e, rec), diag.table.InvalidAttributes(e, rec)
	maps.DeleteFunc(invalid, func(name, _ string) bool { return problems[name] != "" })
	if len(invalid) > 0 {
		var details []string
		for _, name := range slices.Sorted(maps.Keys(invalid)) {
			details = append(details, fmt.Sprintf("attribute %q %s", name, invalid[name]))
		}
		diag.addFinding(kindInvalidValue, k, strings.Join(details, "; "), remedyManual)
	}
	if problems != nil {
		diag.unreadableAttributes[k] = problems
		read = maps.Clone(rec)
		var details []string
		for _, name := range slices.Sorted(maps.Keys(problems)) {
			delete(read, name)
			details = append(details, fmt.Sprintf("attribute %q %s", name, problems[name]))
		}
		diag.addFinding(kindUnreadable, k, strings.Join(details, "; "), remedyManual)
	}
	diag.readable[k] = read
	return read
}

// mustLeaveUnchanged reports whether a repair must not change the named attribute of the record
// with the key k. This is true if the stored or the expected value cannot be decoded.
func (diag *diagnosis) mustLeaveUnchanged(e *model.Entity, k model.Keys, name string) bool {
	for _, unread := range []map[string]string{diag.unreadableAttributes[k.Primary()], diag.unreadableInSource()} {
		for attribute := range unread {
			if attribute == name || model.IsIndexKey(name) && model.IsInIndexKey(e, attribute) {
				return true
			}
		}
	}
	return false
}

// unreadableInSource returns the attributes of diag.source that cannot be decoded and that other
// records repeat, with the reasons.
func (diag *diagnosis) unreadableInSource() map[string]string {
	problems := diag.unreadableAttributes[diag.source]
	if problems == nil {
		return nil
	}
	e, repeated := model.EntityOf(diag.source), maps.Clone(problems)
	maps.DeleteFunc(repeated, func(attribute, _ string) bool { return attribute == "entity" || model.IsInPrimaryKey(e, attribute) })
	return repeated
}

// addUnreadable adds a finding that a record cannot be decoded, so an operator must repair it.
func (diag *diagnosis) addUnreadable(key model.Keys, err error) {
	if diag.hasFinding(kindUnreadable, key) {
		return // withoutUnreadable has already added a finding
	}
	diag.addFinding(kindUnreadable, key, strings.TrimPrefix(decodeErrorReason(err), model.ErrCorrupt.Error()+": "), remedyManual)
}

// decodeErrorReason returns the message of a decoding error. It omits the record's key.
func decodeErrorReason(err error) string {
	if invalid := (*commerce.InvalidError)(nil); errors.As(err, &invalid) {
		return strings.Replace(invalid.Error(), "argument", "attribute", 1)
	}
	text := err.Error()
	if i := strings.Index(text, "attribute "); i >= 0 {
		return text[i:]
	}
	return text
}

// addMissing adds a finding that a record (want) is missing, and the fix that writes it. The
// parameter from is another copy of the record, or nil. The fix also writes the attributes that
// exist only in this copy, except index keys.
func (diag *diagnosis) addMissing(kind string, want, from model.Record, detail string) {
	diag.addFinding(kind, model.KeyOf(want), detail, remedyRepair)
	diag.addPut(want, from)
}

// addStandIn adds a finding that a record is lost, and the fix that writes standIn as a substitute.
// The substitute must have the ID of the lost record.
func (diag *diagnosis) addStandIn(kind string, standIn model.Record, detail string) {
	diag.addFinding(kind, model.KeyOf(standIn), detail, remedyStandIn)
	diag.addPut(standIn, nil)
}

// addPut adds the same fix as addMissing, but no finding. If an attribute of the source record
// cannot be decoded, the fix uses the value in the parameter from. If there is no such value, the
// fix omits the attribute.
func (diag *diagnosis) addPut(want, from model.Record) {
	put := maps.Clone(from)
	if put == nil {
		put = model.Record{}
	}
	maps.DeleteFunc(put, func(name string, _ types.AttributeValue) bool {
		return model.IsIndexKey(name) || model.IsEntityAttribute(name)
	})
	for name, value := range want {
		put[name] = withUnknownMembers(put[name], value)
	}
	for name := range diag.unreadableInSource() {
		if delete(put, name); from[name] != nil {
			put[name] = from[name]
		}
	}
	diag.fixes = append(diag.fixes, recordFix{key: model.KeyOf(want), put: put})
}

// hasOnlyKeys reports whether a record contains only its keys. Deleting such a record loses no
// data.
func hasOnlyKeys(e *model.Entity, rec model.Record) bool {
	for name := range rec {
		if name != model.AttrPK && name != model.AttrSK && !model.IsIndexKey(name) && !model.IsEntityAttribute(name) && !model.IsInPrimaryKey(e, name) {
			return false
		}
	}
	return true
}

// addOrphan adds a finding that a record should not exist, and the fix that deletes the record. If
// the record has attributes that cannot be decoded, addOrphan adds only a finding about these
// attributes.
func (diag *diagnosis) addOrphan(kind string, have model.Record, detail string) {
	k := model.KeyOf(have)
	if diag.withoutUnreadable(model.EntityOf(k), have); diag.unreadableAttributes[k] != nil {
		return
	}
	diag.addDeletion(kind, have, detail)
}

// addDeletion is like addOrphan, but also for a record that cannot be decoded.
func (diag *diagnosis) addDeletion(kind string, have model.Record, detail string) {
	diag.addFinding(kind, model.KeyOf(have), detail, remedyRepair)
	diag.fixes = append(diag.fixes, recordFix{key: model.KeyOf(have), asRead: have, isDelete: true})
}

// compare compares a stored record (have) with the expected record (want). It adds one fix for all
// differences, and one finding for each kind of difference. If an attribute has no kind of its own
// (see kindOf), its kind is the parameter kind.
func (diag *diagnosis) compare(e *model.Entity, have, want model.Record, kind string) {
	diag.withoutUnreadable(e, have)
	fix := recordFix{key: model.KeyOf(have), asRead: have, set: model.Record{}}
	details := map[string][]string{}
	var kinds []string
	for _, d := range differences(diag.table.Currency, e, have, want) {
		if diag.mustLeaveUnchanged(e, fix.key, d.name) {
			continue
		}
		c := kindOf(e, d.name, kind)
		if diag.erased && model.IsPersonal(e, d.name) {
			c = kindErasure
		}
		if details[c] == nil {
			kinds = append(kinds, c)
		}
		details[c] = append(details[c], d.text())
		if d.want == nil {
			fix.remove = append(fix.remove, d.name)
		} else {
			fix.set[d.name] = withUnknownMembers(have[d.name], d.want)
		}
	}
	for _, c := range kinds {
		diag.addFinding(c, fix.key, strings.Join(details[c], "; "), remedyRepair)
	}
	if len(kinds) > 0 {
		diag.fixes = append(diag.fixes, fix)
	}
}

// setUnreported sets attributes of a stored record (have), without a finding.
func (diag *diagnosis) setUnreported(have, attributes model.Record) {
	for i := range diag.fixes {
		if fix := &diag.fixes[i]; fix.key == model.KeyOf(have) {
			fix.set.Merge(attributes)
			return
		}
	}
	diag.fixes = append(diag.fixes, recordFix{key: model.KeyOf(have), asRead: have, set: attributes})
}

// kindOf returns the kind of inconsistency for a wrong value of the named attribute. If the
// attribute has no kind of its own, kindOf returns its last parameter.
func kindOf(e *model.Entity, name, otherwise string) string {
	switch name {
	case model.AttrIndexPK, model.AttrIndexSK:
		return kindIndexKeys
	case "entity", model.AttrElectroDBEntity, model.AttrElectroDBVersion:
		return kindEntityAttribute
	case "total":
		return kindOrderTotal
	case "itemCount":
		return kindItemCount
	case "items":
		return kindEmbeddedItems
	case "orderCount":
		return kindOrderCount
	case model.AttrSpendingComplete:
		return kindSpending
	case model.AttrAuthorized, model.AttrCaptured, model.AttrRefunded, model.AttrPaymentDue:
		return kindPayments
	case "amount":
		return kindReturnAmount
	case model.AttrFulfillments, model.AttrUndelivered, model.AttrShipped:
		return kindFulfillments
	case "totalInventory":
		return kindStockTotal
	case "available":
		return kindStockAvailable
	case model.AttrProductCount:
		if e == &model.EntityWarehouse {
			return kindProductCount
		}
		return kindCategoryCount
	}
	if model.IsInPrimaryKey(e, name) {
		return kindKeyAttribute
	}
	return otherwise
}

// withKeyAttributes copies a record, and sets some attributes of the copy. The parameter named maps
// the name of each attribute to its right value, which is usually known from the record's key.
func withKeyAttributes(rec model.Record, named map[string]string) model.Record {
	if rec == nil {
		return nil
	}
	out := maps.Clone(rec)
	for name, v := range named {
		out[name] = model.Str(v)
	}
	return out
}

// newReplacement returns the fix that replaces a stored record (have) with a new record (want).
// Both records must have the same key.
func newReplacement(have, want model.Record) recordFix {
	fix := recordFix{key: model.KeyOf(have), asRead: have, set: model.Record{}}
	for name, v := range want {
		if name != model.AttrPK && name != model.AttrSK && !model.EqualValues(v, have[name]) {
			fix.set[name] = v
		}
	}
	for _, name := range table.SortedAttributeNames(have) {
		if want[name] == nil {
			fix.remove = append(fix.remove, name)
		}
	}
	return fix
}
