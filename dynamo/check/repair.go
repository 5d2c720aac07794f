package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/attempt"
	"github.com/ordergraph/ordergraph/dynamo/derive"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// refusedError means that a repair transaction was not written. Either a record has changed since
// it was read, or DynamoDB does not accept the repaired record.
type refusedError struct{ reason string }

func (e *refusedError) Error() string { return e.reason }

// repair writes the fixes of a diagnosis in one or more transactions. Each transaction requires
// that certain records have not changed since they were read: diag.trusted, diag.dependencies and
// the records to write.
//
// Errors: refusedError, or an error from table.WrapError.
func (client *client) repair(ctx context.Context, diag *diagnosis) error {
	fixes := slices.Clone(diag.fixes)
	rank := func(fix recordFix) int {
		switch {
		case fix.event == nil && fix.key == diag.trustedKey:
			// The fix of diag.trusted comes last, because it would make all later transactions fail.
			return 2
		case fix.event != nil || fix.setsUpdatedAt:
			// A new event and all fixes with setsUpdatedAt are in the same transaction.
			return 1
		}
		return 0
	}
	slices.SortStableFunc(fixes, func(a, b recordFix) int { return cmp.Compare(rank(a), rank(b)) })
	// Reserve one action for the check of diag.trusted. Reserve a second one, because one of the fixes
	// may contain an event and then takes two actions.
	maxFixes := table.MaxTransactionActions - 2 - len(diag.dependencies)
	// The fixes from the index last on belong in the last transaction. They write an event, need the
	// time of this event, or change diag.trusted.
	last := slices.IndexFunc(fixes, func(fix recordFix) bool { return rank(fix) > 0 })
	if diag.singleTransaction && len(fixes) > maxFixes { // the total size is not checked, because the fixes are small
		return &refusedError{reason: fmt.Sprintf("the repair needs %d writes in one transaction, but the maximum is %d; set the order's total to the sum of its item list, then run `ordergraph check` again", len(fixes), maxFixes)}
	}
	for len(fixes) > 0 {
		n, bytes := 0, model.SizeOf(diag.trusted)
		for n < min(len(fixes), maxFixes) && (n == 0 || bytes+fixes[n].size() <= maxRepairBytes) {
			bytes += fixes[n].size()
			n++
		}
		if n < len(fixes) && last > 0 && last < n {
			n = last
		}
		if err := client.transact(ctx, diag, fixes[:n]); err != nil {
			return err
		}
		fixes, last = fixes[n:], last-n
	}
	return nil
}

func (client *client) transact(ctx context.Context, diag *diagnosis, fixes []recordFix) error {
	var actions []types.TransactWriteItem
	written := map[model.Keys]bool{}
	var at time.Time
	if i := slices.IndexFunc(fixes, func(fix recordFix) bool { return fix.event != nil }); i >= 0 { // there is at most one event
		defer client.lockLastEvent(fixes[i].customer)()
		both, happened, err := client.eventFixes(ctx, fixes[i])
		if err != nil {
			return err
		}
		for _, fix := range both {
			actions = append(actions, client.transactionItem(fix))
		}
		at = happened
	}
	for _, fix := range fixes {
		if fix.event != nil {
			continue
		}
		written[fix.key] = true
		if fix.setsUpdatedAt {
			fix.setAttribute("updatedAt", model.Str(model.Timestamp(at)))
		}
		actions = append(actions, client.transactionItem(fix))
	}
	for _, r := range append([]unchangedRecord{{key: diag.trustedKey, asRead: diag.trusted}}, diag.dependencies...) {
		if written[r.key] || r.key.PK == "" {
			continue
		}
		written[r.key] = true
		e := &table.Expression{}
		actions = append(actions, types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
			TableName: &client.table.Name, Key: r.key.Attributes(), ConditionExpression: aws.String(unchangedCondition(r.asRead, nil, r.ignored...)(e)),
			ExpressionAttributeNames: e.Names, ExpressionAttributeValues: e.Values,
		}})
	}
	// The units are computed, because DynamoDB also charges for a transaction that it cancels, and local
	// engines report other units for index entries.
	part := *diag
	part.fixes = fixes
	cost := costOf(&part)
	client.addRepair(cost)
	if err := client.pace(ctx, cost.writeUnits); err != nil {
		return err
	}
	_, err := client.table.Client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: actions}, client.table.BulkOptions)
	if err == nil {
		return nil
	}
	if refused := asRefusedError(err); refused != nil {
		return refused
	}
	return table.WrapError("TransactWriteItems", "to repair "+diag.trustedKey.PK, err)
}

// asRefusedError returns a refusedError if DynamoDB rejected the transaction and would reject it
// again. For other errors, it returns nil.
func asRefusedError(err error) error {
	api := smithy.APIError(nil)
	if !errors.As(err, &api) {
		return nil
	}
	if api.ErrorCode() == "ValidationException" {
		return &refusedError{reason: api.ErrorMessage()}
	}
	cancelled := (*types.TransactionCanceledException)(nil)
	if !errors.As(err, &cancelled) {
		return nil
	}
	changed, busy, other := false, false, ""
	for _, r := range cancelled.CancellationReasons {
		switch aws.ToString(r.Code) {
		case "", attempt.ReasonNone:
		case attempt.ReasonConditionFailed, "TransactionConflict":
			changed = true
		case "ThrottlingError", "ProvisionedThroughputExceeded", "RequestLimitExceeded":
			busy = true
		default:
			other = aws.ToString(r.Code) + ": " + aws.ToString(r.Message)
		}
	}
	switch {
	case other != "":
		return &refusedError{reason: other}
	case busy && !changed:
		return nil
	}
	return &refusedError{reason: "the records keep changing"}
}

// transactionItem returns the action of a transaction that writes a fix. The action includes the
// conditions of the fix.
func (client *client) transactionItem(fix recordFix) types.TransactWriteItem {
	e := &table.Expression{}
	switch {
	case fix.put != nil:
		return types.TransactWriteItem{Put: &types.Put{
			TableName: &client.table.Name, Item: fix.put, ConditionExpression: aws.String(table.RecordNotExists(e)),
			ExpressionAttributeNames: e.Names, ExpressionAttributeValues: e.Values,
		}}
	case fix.isDelete:
		return types.TransactWriteItem{Delete: &types.Delete{
			TableName: &client.table.Name, Key: fix.key.Attributes(), ConditionExpression: aws.String(unchangedCondition(fix.asRead, nil)(e)),
			ExpressionAttributeNames: e.Names, ExpressionAttributeValues: e.Values,
		}}
	}
	condition := unchangedCondition(fix.asRead, append(table.SortedAttributeNames(fix.set), fix.remove...))(e)
	var sets, removes []string
	for _, name := range table.SortedAttributeNames(fix.set) {
		if fix.asRead[name] == nil {
			condition += " AND attribute_not_exists(" + e.ExternalPlaceholder(name) + ")"
		}
		sets = append(sets, e.ExternalPlaceholder(name)+" = "+e.ValuePlaceholder(fix.set[name]))
	}
	for _, name := range fix.remove {
		removes = append(removes, e.ExternalPlaceholder(name))
	}
	return types.TransactWriteItem{Update: &types.Update{
		TableName: &client.table.Name, Key: fix.key.Attributes(), ConditionExpression: &condition, UpdateExpression: aws.String(table.UpdateExpression(sets, removes)),
		ExpressionAttributeNames: e.Names, ExpressionAttributeValues: e.Values,
	}}
}

// eventFixes returns two fixes and the event's time. One fix appends fix.event with a new, later
// ID. The other fix updates the customer's stored last event.
func (client *client) eventFixes(ctx context.Context, fix recordFix) ([]recordFix, time.Time, error) {
	b := client.table.KeyBuilder()
	k := model.LastEvent.Key(b, fix.customer)
	if b.Err != nil {
		return nil, time.Time{}, &refusedError{reason: b.Err.Error()}
	}
	found, err := client.get(ctx, consistent, k)
	if err != nil {
		return nil, time.Time{}, err
	}
	last := found[k]
	e := *fix.event
	ownTime, _ := e.ID.Time()
	customerTime, ok := client.table.EventPosition(model.LastEventID(last)).Time()
	if !ok {
		if customerTime, err = client.table.LastOrderUpdate(ctx, k.PK); err != nil {
			return nil, time.Time{}, err
		}
	}
	at := client.table.TimeAfter(e.At, ownTime, customerTime)
	id, err := client.table.NewULID(at)
	if err != nil {
		return nil, time.Time{}, err
	}
	e.ID, e.At = commerce.EventID(id), at
	rec, next := model.EventRecord(b, e), model.LastEventRecord(b, fix.customer, e)
	if b.Err != nil {
		return nil, time.Time{}, &refusedError{reason: b.Err.Error()}
	}
	fixes := []recordFix{{key: model.KeyOf(rec), put: rec}}
	if last == nil {
		return append(fixes, recordFix{key: k, put: next}), at, nil
	}
	return append(fixes, newReplacement(last, model.KeepReservation(next, last))), at, nil
}

// maxRepairBytes is the maximum size of the records in a repair transaction. DynamoDB accepts 4 MB
// per transaction. The remaining 1 MB is for the keys and attribute names in conditions.
const maxRepairBytes = 3 << 20

// size returns the approximate number of bytes that a fix and its conditions add to a transaction.
func (fix *recordFix) size() int {
	return model.SizeOf(fix.asRead) + model.SizeOf(fix.put) + model.SizeOf(fix.set)
}

// maxConditions is the maximum number of attributes that a condition compares. The limit keeps the
// condition within DynamoDB's limits for an expression, which are 300 operators and 4 KB of text.
const maxConditions = 120

// unchangedCondition returns the condition that a record has not changed since it was read. have is
// the record as it was read, or nil if it did not exist. changed contains the attributes that the
// fix changes, and ignored those that may differ.
func unchangedCondition(have model.Record, changed []string, ignored ...string) table.Condition {
	if have == nil {
		return table.RecordNotExists
	}
	return func(e *table.Expression) string {
		// The number of conditions is limited. Therefore, begin with the attributes that reveal a write
		// by Ordergraph.
		rank := func(name string) int {
			switch {
			case changesWithEveryWrite(name):
				return 0
			case slices.Contains(changed, name):
				return 1
			}
			return 2
		}
		isIgnored := func(name string) bool { return slices.Contains(ignored, name) }
		names := slices.DeleteFunc(table.SortedAttributeNames(have), isIgnored)
		slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })
		var parts []string
		for _, name := range names[:min(len(names), maxConditions)] {
			parts = append(parts, e.ExternalPlaceholder(name)+" = "+e.ValuePlaceholder(have[name]))
		}
		// If the record lacked one of these attributes when it was read, a concurrent write may have
		// added it.
		for _, name := range append(revisions(), "updatedAt") {
			if have[name] == nil && !isIgnored(name) {
				parts = append(parts, "attribute_not_exists("+e.ExternalPlaceholder(name)+")")
			}
		}
		return strings.Join(parts, " AND ")
	}
}

// revisions returns the names of all attributes that increase with each change of a record or of its
// derived numbers.
func revisions() []string {
	names := []string{model.AttrVersion}
	for _, s := range derive.Sums() {
		if s.Revision != "" && !slices.Contains(names, s.Revision) {
			names = append(names, s.Revision)
		}
	}
	return names
}

// changesWithEveryWrite reports whether the named attribute is one of the attributes that reveal a
// write. Each write by Ordergraph changes at least one of them.
func changesWithEveryWrite(name string) bool {
	return model.IsRevision(name) || slices.Contains([]string{"updatedAt", model.AttrQuantity, "eventId"}, name) ||
		slices.ContainsFunc(derive.Sums(), func(s derive.Sum) bool { return slices.Contains(s.Attributes, name) })
}
