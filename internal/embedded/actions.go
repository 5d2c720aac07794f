package embedded

import (
	"context"
	"errors"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/truora/minidyn/server"
)

// The verbs of actions, as transactions name them.
const (
	put     = "Put"
	updated = "Update"
	deleted = "Delete"
	checked = "ConditionCheck"
)

// request is what asks for an action. DynamoDB's requests for single records and the actions of its
// transactions have these fields or some of them.
type request struct {
	TableName                           *string
	Key                                 record // but not of a put
	Item                                record // of a put
	UpdateExpression                    *string
	ConditionExpression                 *string
	ExpressionAttributeNames            map[string]string
	ExpressionAttributeValues           record
	ReturnValues                        types.ReturnValue // of single requests
	ReturnValuesOnConditionCheckFailure types.ReturnValuesOnConditionCheckFailure
}

// action is something to be done to one record under a condition: an action of a transaction, or a
// request of its own.
//
// Everything that writes a record becomes a put of the whole record or a delete, as those are what
// the engine gets right. Conditions and lists stay the engine's.
type action struct {
	*request
	verb string

	// What prepare finds out: the table, the record as it is and as it will be (nil for none), the
	// attributes that an update names, and why the record cannot be so (nil where it can; it stays
	// as it is then).
	table    *table
	old, new record
	touched  []string
	refused  *failure
}

// prepare reads the record and works out what becomes of it.
//
// Errors: ValidationException, ResourceNotFoundException; errBeyond for updates that are the
// engine's.
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

// commit does all actions, which are prepared and of different records, or none. It returns a
// reason for each.
//
// Errors: the engine's. Everything is as it was then, and also where a reason is another than
// reasonNone.
func (s *Store) commit(ctx context.Context, actions []*action) (reasons []reason, err error) {
	begun, failed := 0, true
	defer func() { // also where the engine panics
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
		} else if a.refused != nil { // DynamoDB asks the condition first
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

// undo puts the records back that actions have changed, or may have.
func (s *Store) undo(ctx context.Context, actions []*action) error {
	var all error
	for _, a := range slices.Backward(actions) {
		all = errors.Join(all, s.replace(ctx, a, a.new, a.old, false))
	}
	return all
}

// replace makes one record of another, or none, or one of none; under the action's condition where
// that is asked for. A record that leaves an index is deleted first: a put would leave it in the
// engine's lists, and a later delete would take another out of them.
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
