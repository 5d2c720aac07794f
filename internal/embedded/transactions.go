package embedded

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/truora/minidyn/server"
)

// maxActions is the maximum number of actions in a transaction.
const maxActions = 100

// transaction is a TransactWriteItems request. Each element of TransactItems has one entry, by the
// name of the action.
type transaction struct {
	TransactItems      []map[string]*request
	ClientRequestToken *string
}

// transactWriteItems executes all actions or none. It does not use the engine's transactions,
// because those copy complete tables and restore copies without empty values.
//
// It returns ValidationException, ResourceNotFoundException, IdempotentParameterMismatchException,
// or TransactionCanceledException with a reason for each action. Several actions may have failed.
func (s *Store) transactWriteItems(ctx context.Context, in *transaction) (*server.TransactWriteItemsOutput, error) {
	if n := len(in.TransactItems); n == 0 || n > maxActions {
		return nil, invalid("Member must have length between 1 and %d: transactItems has %d", maxActions, n)
	}
	content, err := digestOf(in)
	if err != nil {
		return nil, err
	}
	token := aws.ToString(in.ClientRequestToken)
	if done, known := s.tokens.known[token]; known {
		if done != content {
			return nil, &failure{Type: codeMismatch, Message: "the ClientRequestToken was used for another transaction"}
		}
		return &server.TransactWriteItemsOutput{}, nil
	}
	actions, err := s.prepareAll(ctx, in.TransactItems)
	if err != nil {
		return nil, err
	}
	reasons, err := s.commit(ctx, actions)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(reasons, func(r reason) bool { return r.Code != reasonNone }) {
		codes := make([]string, len(reasons))
		for i, r := range reasons {
			codes[i] = r.Code
		}
		return nil, &failure{
			Type:    codeCancelled,
			Message: "Transaction cancelled, please refer cancellation reasons for specific reasons [" + strings.Join(codes, ", ") + "]",
			Reasons: reasons,
		}
	}
	if token != "" {
		s.tokens.remember(token, content)
	}
	return &server.TransactWriteItemsOutput{}, nil
}

// prepareAll prepares the actions of a transaction. It returns the errors of prepare. It also
// returns ValidationException if two actions have the same record or an update is errBeyond.
func (s *Store) prepareAll(ctx context.Context, items []map[string]*request) ([]*action, error) {
	actions, seen := make([]*action, 0, len(items)), map[string]bool{}
	for _, item := range items {
		var a *action
		for verb, r := range item {
			a = &action{request: r, verb: verb}
		}
		if len(item) != 1 || a.request == nil {
			return nil, invalid("TransactItems can only contain one of Check, Put, Update or Delete")
		}
		if err := s.prepare(ctx, a); errors.Is(err, errBeyond) {
			return nil, invalid("Invalid UpdateExpression: %v", err)
		} else if err != nil {
			return nil, err
		}
		key, err := json.Marshal(a.Key)
		if err != nil {
			return nil, fmt.Errorf("encode a key: %w", err)
		}
		id := aws.ToString(a.TableName) + string(key)
		if seen[id] {
			return nil, invalid("Transaction request cannot include multiple operations on one item")
		}
		seen[id] = true
		actions = append(actions, a)
	}
	return actions, nil
}
