package embedded

import (
	"context"
	"errors"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/truora/minidyn/server"
)

// The names of actions in transactions.
const (
	put     = "Put"
	updated = "Update"
	deleted = "Delete"
	checked = "ConditionCheck"
)

// request is a write of one record: a DynamoDB request, or an action of a transaction. It has the
// union of their fields.
type request struct {
	TableName                           *string
	Key                                 record // not for a put
	Item                                record // for a put
	UpdateExpression                    *string
	ConditionExpression                 *string
	ExpressionAttributeNames            map[string]string
	ExpressionAttributeValues           record
	ReturnValues                        types.ReturnValue // for single requests
	ReturnValuesOnConditionCheckFailure types.ReturnValuesOnConditionCheckFailure
}

// action is a conditional write of one record. It is an action of a transaction or a single
// request.
//
// Every write becomes a put of the complete record or a delete, because the engine executes only
// those correctly. The engine evaluates conditions and maintains the indexes.
type action struct {
	*request
	verb string

	// prepare sets these fields. old and new are the record before and after, or nil. touched has the
	// attributes that an update names. If the write is invalid for this record, refused is the error,
	// and new is equal to old.
	table    *table
	old, new record
	touched  []string
	refused  *failure
}

// prepare reads the record and computes the new record. It returns ValidationException,
// ResourceNotFoundException, or errBeyond for updates that the engine must execute.
func (s *Store) prepare(ctx context.Context, a *action) (err error) {
	if err := checkPlaceholders(a.ExpressionAttributeNames, a.ExpressionAttributeValues, a.ConditionExpression, a.UpdateExpression); err != nil {
		return err
	}
	if a.table, err = s.table(a.TableName); err != nil {
		return err
	}
	if a.verb == put {
		a.Key = a.table.keyOf(a.Item)
	}
	got, err := s.engine.GetItem(ctx, &server.GetItemInput{TableName: a.TableName, Key: a.Key})
	if err != nil {
		return err
	}
	a.old = got.Item
	switch a.verb {
	case put:
		a.new = a.Item
	case updated:
		if a.UpdateExpression == nil {
			return errBeyond
		}
		u := &update{names: a.ExpressionAttributeNames, values: a.ExpressionAttributeValues, old: a.old}
		err = u.apply(*a.UpdateExpression, a.Key)
		a.new, a.touched = u.next, u.touched
	case checked:
		a.new = a.old
	case deleted:
	default:
		return invalid("TransactItems can only contain one of Check, Put, Update or Delete")
	}
	if err == nil && a.verb != checked {
		err = a.table.checkKeys(a.new)
	}
	if f, ok := errors.AsType[*failure](err); ok && f.Type == reasonValidation {
		a.refused, a.new, err = f, a.old, nil
	}
	return err
}

// commit executes all actions or none. The actions are prepared and have different records. It
// returns a reason for each action. If a reason is not reasonNone, or the engine returns an error,
// nothing is changed.
func (s *Store) commit(ctx context.Context, actions []*action) (reasons []reason, err error) {
	begun, failed := 0, true
	defer func() { // also if the engine panics
		if failed {
			err = errors.Join(err, s.undo(ctx, actions[:begun]))
		}
	}()
	for i, a := range actions {
		begun = i + 1
		why := reason{Code: reasonNone}
		err := s.replace(ctx, a, a.old, a.new, true)
		if _, ok := errors.AsType[*types.ConditionalCheckFailedException](err); ok {
			why = reason{Code: reasonCondition, Message: "The conditional request failed"}
			if a.ReturnValuesOnConditionCheckFailure == types.ReturnValuesOnConditionCheckFailureAllOld {
				why.Item = a.old
			}
		} else if err != nil {
			return nil, err
		} else if a.refused != nil { // DynamoDB evaluates the condition first
			why = reason{Code: reasonValidation, Message: a.refused.Message}
		}
		reasons = append(reasons, why)
	}
	failed = slices.ContainsFunc(reasons, func(r reason) bool { return r.Code != reasonNone })
	if !failed {
		s.tell(actions)
	}
	return reasons, nil
}

// undo restores the records of actions that were executed or may have been.
func (s *Store) undo(ctx context.Context, actions []*action) error {
	var all error
	for _, a := range slices.Backward(actions) {
		all = errors.Join(all, s.replace(ctx, a, a.new, a.old, false))
	}
	return all
}

// replace writes, replaces or deletes one record. If conditional is set, the action's condition
// applies. A record that leaves an index is deleted first: a put would leave it in the engine's
// index, and a later delete would remove another record from the index.
func (s *Store) replace(ctx context.Context, a *action, from, to record, conditional bool) error {
	var condition *string
	var names map[string]string
	var values record
	if conditional && a.ConditionExpression != nil {
		condition, names, values = a.ConditionExpression, usedIn(a.ConditionExpression, a.ExpressionAttributeNames), usedIn(a.ConditionExpression, a.ExpressionAttributeValues)
	}
	if to == nil || from != nil && a.table.leavesIndex(from, to) {
		_, err := s.engine.DeleteItem(ctx, &server.DeleteItemInput{
			TableName: a.TableName, Key: a.Key,
			ConditionExpression: condition, ExpressionAttributeNames: names, ExpressionAttributeValues: values,
		})
		if err != nil || to == nil {
			return err
		}
		condition, names, values = nil, nil, nil
	}
	_, err := s.engine.PutItem(ctx, &server.PutItemInput{
		TableName: a.TableName, Item: to,
		ConditionExpression: condition, ExpressionAttributeNames: names, ExpressionAttributeValues: values,
	})
	return err
}
