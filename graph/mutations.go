package graph

import (
	"context"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/change"
	"github.com/ordergraph/ordergraph/graph/input"
)

// Payload is the payload of a mutation: the record, or the reasons why the business rules rejected
// the mutation.
type Payload[T any] struct {
	// Value is the record after the mutation. With a VersionConflict, Value is the current record. It
	// is nil if the mutation was rejected for another reason.
	Value *T
	// UserErrors are the reasons for the rejection. It is empty if the mutation succeeded.
	UserErrors []commerce.UserError
}

// executeMutation executes a mutation and returns its payload. It validates the input, calls do,
// and converts violations of business rules to user errors. Other errors become errors of the
// field.
func executeMutation[C, T any](ctx context.Context, r *Resolver, do func(context.Context, change.Caller, C) (*T, error), command func(*input.Validator) C, key *string) (*Payload[T], error) {
	c := input.NewValidator(r.store.Currency())
	validCommand := command(c)
	caller, err := r.caller(ctx)
	if err != nil {
		return nil, err
	}
	caller.IdempotencyKey = c.IdempotencyKey(key)
	if err := c.Err(); err != nil {
		return newPayload[T](nil, err)
	}
	p, err := newPayload(do(ctx, caller, validCommand))
	if p != nil && p.Value != nil {
		planPayload(ctx, p.Value)
	}
	return p, err
}

// newPayload returns a payload if err is nil or a violation of business rules. It returns any other
// error.
func newPayload[T any](value *T, err error) (*Payload[T], error) {
	refusals := commerce.UserErrorsOf(err)
	if err != nil && refusals == nil {
		return nil, err
	}
	return &Payload[T]{Value: value, UserErrors: append([]commerce.UserError{}, refusals...)}, nil
}
