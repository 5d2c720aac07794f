package repair

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
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// RefusedError tells that nothing was written, because a record is not what it was when it was
// read, or because DynamoDB does not take what it would become.
type RefusedError struct{ Reason string }

func (e *RefusedError) Error() string { return e.Reason }

// Repair writes the fixes of a verdict, each transaction on condition that the record that was
// believed and all records that it writes are as they were read. Where there are more fixes than
// one transaction takes, the believed record is written with the last of them, so that the
// condition holds until then and a repair that ends half way is found again. An event and what it
// dates are written at once.
//
// Errors: RefusedError, and those of failed.
func (client *Client) Repair(ctx context.Context, diag *Diagnosis) error {
	fixes := slices.Clone(diag.Fixes)
	rank := func(fix Fix) int {
		switch {
		case fix.Event == nil && fix.Key == diag.TrustedKey:
			return 2
		case fix.Event != nil || fix.SetsUpdatedAt:
			return 1
		}
		return 0
	}
	slices.SortStableFunc(fixes, func(a, b Fix) int { return cmp.Compare(rank(a), rank(b)) })
	// One action is the condition on the believed record, and one that on each other record that
	// was relied on. A unit has no more than one event, which takes two.
	most := table.MaxActions - 2 - len(diag.Dependencies)
	// With an event: the event and both records of its order, of which one is believed.
	last := slices.IndexFunc(fixes, func(fix Fix) bool { return rank(fix) > 0 })
	if diag.SingleTransaction && len(fixes) > most { // lines of a list are small
		return &RefusedError{Reason: fmt.Sprintf("it takes %d records at once, and a transaction takes %d: set the order's total to the sum of its list, and check again", len(fixes), most)}
	}
	for len(fixes) > 0 {
		n, bytes := 0, model.SizeOf(diag.Trusted)
		for n < min(len(fixes), most) && (n == 0 || bytes+fixes[n].size() <= maxRepairBytes) {
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

func (client *Client) transact(ctx context.Context, diag *Diagnosis, fixes []Fix) error {
	var actions []types.TransactWriteItem
	written := map[model.Keys]bool{}
	var at time.Time
	for _, fix := range fixes {
		if fix.Event == nil {
			continue
		}
		both, happened, err := client.eventFixes(ctx, fix)
		if err != nil {
			return err
		}
		for _, fix := range both {
			actions = append(actions, client.transactionItem(fix))
		}
		at = happened
	}
	for _, fix := range fixes {
		if fix.Event != nil {
			continue
		}
		written[fix.Key] = true
		if fix.SetsUpdatedAt {
			fix.SetAttribute("updatedAt", model.Str(model.Timestamp(at)))
		}
		actions = append(actions, client.transactionItem(fix))
	}
	for _, r := range append([]Dependency{{diag.TrustedKey, diag.Trusted}}, diag.Dependencies...) {
		if written[r.Key] || r.Key.PK == "" {
			continue
		}
		written[r.Key] = true
		e := &table.Expression{}
		actions = append(actions, types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
			TableName: &client.Table.Name, Key: r.Key.Attributes(), ConditionExpression: aws.String(unchangedSince(r.AsRead, nil)(e)),
			ExpressionAttributeNames: e.Names, ExpressionAttributeValues: e.Values,
		}})
	}
	_, err := client.Table.Client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: actions}, client.Table.Bulk)
	if err == nil {
		return nil
	}
	if refused := refusal(err); refused != nil {
		return refused
	}
	return table.Failed("TransactWriteItems", "to repair "+diag.TrustedKey.PK, err)
}

// refusal is why a transaction was turned away for good, nil where it was not.
func refusal(err error) error {
	api := smithy.APIError(nil)
	if !errors.As(err, &api) {
		return nil
	}
	if api.ErrorCode() == "ValidationException" {
		return &RefusedError{Reason: api.ErrorMessage()}
	}
	cancelled := (*types.TransactionCanceledException)(nil)
	if !errors.As(err, &cancelled) {
		return nil
	}
	changed, busy, other := false, false, ""
	for _, r := range cancelled.CancellationReasons {
		switch aws.ToString(r.Code) {
		case "", table.ReasonNone:
		case table.ReasonConditionFailed, "TransactionConflict":
			changed = true
		case "ThrottlingError", "ProvisionedThroughputExceeded", "RequestLimitExceeded":
			busy = true
		default:
			other = aws.ToString(r.Code) + ": " + aws.ToString(r.Message)
		}
	}
	switch {
	case other != "":
		return &RefusedError{Reason: other}
	case busy && !changed:
		return nil
	}
	return &RefusedError{Reason: "the records keep changing"}
}

// transactionItem is a write with its conditions.
func (client *Client) transactionItem(fix Fix) types.TransactWriteItem {
	e := &table.Expression{}
	switch {
	case fix.put != nil:
		return types.TransactWriteItem{Put: &types.Put{
			TableName: &client.Table.Name, Item: fix.put, ConditionExpression: aws.String(table.Absent(e)),
			ExpressionAttributeNames: e.Names, ExpressionAttributeValues: e.Values,
		}}
	case fix.isDelete:
		return types.TransactWriteItem{Delete: &types.Delete{
			TableName: &client.Table.Name, Key: fix.Key.Attributes(), ConditionExpression: aws.String(unchangedSince(fix.AsRead, nil)(e)),
			ExpressionAttributeNames: e.Names, ExpressionAttributeValues: e.Values,
		}}
	}
	condition := unchangedSince(fix.AsRead, append(table.AttributeNames(fix.Set), fix.remove...))(e)
	var sets, removes []string
	for _, name := range table.AttributeNames(fix.Set) {
		if fix.AsRead[name] == nil {
			condition += " AND attribute_not_exists(" + e.Foreign(name) + ")"
		}
		sets = append(sets, e.Foreign(name)+" = "+e.Value(fix.Set[name]))
	}
	for _, name := range fix.remove {
		removes = append(removes, e.Foreign(name))
	}
	return types.TransactWriteItem{Update: &types.Update{
		TableName: &client.Table.Name, Key: fix.Key.Attributes(), ConditionExpression: &condition, UpdateExpression: aws.String(table.Clauses(sets, removes)),
		ExpressionAttributeNames: e.Names, ExpressionAttributeValues: e.Values,
	}}
}

// eventFixes are the fixes that write an event behind the one whose id and time it bears, and behind
// its customer's last one, whose place it takes, and when it happened.
//
// Errors: RefusedError where the customer's id can be in no key, and those of failed.
func (client *Client) eventFixes(ctx context.Context, fix Fix) ([]Fix, time.Time, error) {
	b := client.Table.KeyBuilder()
	k := model.LastEvent.Key(b, fix.Customer)
	if b.Err != nil {
		return nil, time.Time{}, &RefusedError{Reason: b.Err.Error()}
	}
	found, err := client.Get(ctx, Consistent, k)
	if err != nil {
		return nil, time.Time{}, err
	}
	last := found[k]
	e := *fix.Event
	own, _ := e.ID.Time()
	customers, _ := model.LastEventID(last).Time()
	at := client.Table.After(e.At, own, customers)
	id, err := client.Table.NewULID(at)
	if err != nil {
		return nil, time.Time{}, err
	}
	e.ID, e.At = commerce.EventID(id), at
	rec, next := model.EventRecord(b, e), model.LastEventRecord(b, fix.Customer, e)
	if b.Err != nil {
		return nil, time.Time{}, &RefusedError{Reason: b.Err.Error()}
	}
	fixes := []Fix{{Key: model.KeyOf(rec), put: rec}}
	if last == nil {
		return append(fixes, Fix{Key: k, put: next}), at, nil
	}
	return append(fixes, NewReplacement(last, next)), at, nil
}

// maxRepairBytes is how large a transaction of a repair is. DynamoDB takes 4 MB; the keys of
// conditions and the names of attributes are not counted here.
const maxRepairBytes = 3 << 20

// size is about how many bytes of a transaction a fix takes: what is written, and what is compared.
func (fix *Fix) size() int {
	return model.SizeOf(fix.AsRead) + model.SizeOf(fix.put) + model.SizeOf(fix.Set)
}

// maxConditions is how many attributes of a record a condition compares. DynamoDB takes 300
// operators and 4 KiB of text.
const maxConditions = 120

// unchangedSince is the condition that a record is as it was read; that there is none, where have is nil.
//
// The first attributes to be compared are those that Ordergraph changes with every write, and then
// those that the repair changes. Only a record of more than maxConditions attributes has some that
// are not compared. It has them of other software.
func unchangedSince(have model.Record, changed []string) table.Condition {
	if have == nil {
		return table.Absent
	}
	return func(e *table.Expression) string {
		rank := func(name string) int {
			switch {
			case changesWithEveryWrite(name):
				return 0
			case slices.Contains(changed, name):
				return 1
			}
			return 2
		}
		names := table.AttributeNames(have)
		slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })
		var parts []string
		for _, name := range names[:min(len(names), maxConditions)] {
			parts = append(parts, e.Foreign(name)+" = "+e.Value(have[name]))
		}
		// A write may also add one of the revisions to a record that has none.
		for _, name := range []string{model.AttrVersion, model.AttrStockRevision, "updatedAt"} {
			if have[name] == nil {
				parts = append(parts, "attribute_not_exists("+e.Foreign(name)+")")
			}
		}
		return strings.Join(parts, " AND ")
	}
}

// changesWithEveryWrite reports whether an attribute is one of those of which each write of
// Ordergraph to a record changes at least one, where the record has it.
func changesWithEveryWrite(name string) bool {
	switch name {
	case model.AttrVersion, model.AttrStockRevision, "updatedAt", model.AttrAvailable, model.AttrTotalInventory, model.AttrQuantity, model.AttrOrderCount, "eventId":
		return true
	}
	return false
}
