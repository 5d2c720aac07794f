package embedded

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/truora/minidyn/server"
)

// writtenItem is the response to a write of one record.
type writtenItem struct {
	Attributes record `json:",omitempty"`
}

// write returns the operation for a single-record write. It returns the errors of prepare and
// commit, and ConditionalCheckFailedException.
func (s *Store) write(verb string) func(context.Context, *request) (*writtenItem, error) {
	return func(ctx context.Context, in *request) (*writtenItem, error) {
		a := &action{request: in, verb: verb}
		if err := s.prepare(ctx, a); err != nil {
			return nil, err
		}
		reasons, err := s.commit(ctx, []*action{a})
		if err != nil {
			return nil, err
		}
		switch why := reasons[0]; why.Code {
		case reasonCondition:
			return nil, &failure{Type: codeCondition, Message: why.Message, Item: why.Item}
		case reasonValidation:
			return nil, invalid("%s", why.Message)
		}
		return &writtenItem{Attributes: a.returned()}, nil
	}
}

// updateItem lets the engine execute updates that it does not support itself: updates of elements
// in lists and maps, updates of sets and appends to lists. They may lose data.
func (s *Store) updateItem(ctx context.Context, in *request) (*writtenItem, error) {
	out, err := s.write(updated)(ctx, in)
	if !errors.Is(err, errBeyond) {
		return out, err
	}
	told := s.watching(ctx, in.TableName, in.Key)
	by, err := s.engine.UpdateItem(ctx, &server.UpdateItemInput{
		TableName: in.TableName, Key: in.Key, UpdateExpression: in.UpdateExpression, ConditionExpression: in.ConditionExpression,
		ExpressionAttributeNames: in.ExpressionAttributeNames, ExpressionAttributeValues: in.ExpressionAttributeValues,
		ReturnValues: in.ReturnValues,
	})
	if failed, ok := errors.AsType[*types.ConditionalCheckFailedException](err); ok {
		f := &failure{Type: codeCondition, Message: failed.ErrorMessage()}
		if in.ReturnValuesOnConditionCheckFailure == types.ReturnValuesOnConditionCheckFailureAllOld {
			got, err := s.engine.GetItem(ctx, &server.GetItemInput{TableName: in.TableName, Key: in.Key})
			if err != nil {
				return nil, err
			}
			f.Item = got.Item
		}
		return nil, f
	}
	if err != nil {
		return nil, err
	}
	if err := told(); err != nil {
		return nil, err
	}
	return &writtenItem{Attributes: by.Attributes}, nil
}

// returned returns the attributes that ReturnValues requests.
func (a *action) returned() record {
	switch a.ReturnValues {
	case types.ReturnValueAllOld:
		return a.old
	case types.ReturnValueAllNew:
		return a.new
	case types.ReturnValueUpdatedOld:
		return a.named(a.old)
	case types.ReturnValueUpdatedNew:
		return a.named(a.new)
	}
	return nil
}

// named returns the attributes of a record that an update names.
func (a *action) named(r record) record {
	part := record{}
	for _, name := range a.touched {
		if v := r[name]; v != nil {
			part[name] = v
		}
	}
	return part
}
