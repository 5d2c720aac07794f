package graph

import (
	"context"
	"errors"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/change"
	"github.com/ordergraph/ordergraph/graph/input"
)

// Payload is the payload of a mutation. It contains the record after the mutation. If business
// rules rejected the mutation, it contains the reasons.
type Payload[T any] struct {
	// Value is the record after the mutation. If the mutation was rejected with a VersionConflict,
	// Value is the current record. If it was rejected for another reason, Value is nil.
	Value *T
	// UserErrors contains the reasons why the mutation was rejected. After a success, it is empty.
	UserErrors []commerce.UserError
}

// executeMutation executes a mutation. command validates the input, and do makes the change. If
// business rules are violated, the payload contains user errors.
func executeMutation[C, T any](ctx context.Context, r *Resolver, do func(context.Context, change.Caller, C) (*T, error), command func(*input.Validator) C, key *string) (*Payload[T], error) {
	c := input.NewValidator(r.store.DefaultCurrency())
	validCommand := command(c)
	caller, err := r.mutationCaller(ctx)
	if err != nil {
		return nil, err
	}
	caller.IdempotencyKey = c.IdempotencyKey(key)
	if err := c.Err(); err != nil {
		return newPayload[T](nil, err)
	}
	value, err := do(ctx, caller, validCommand)
	if errors.Is(err, commerce.ErrMalformed) {
		r.reportOnce(ctx, err)
	}
	p, err := newPayload(value, err)
	if p != nil && p.Value != nil {
		planPayload(ctx, p.Value)
	}
	return p, err
}

// newPayload returns a payload with the value. If err contains user errors, the payload contains
// them, too. If err is any other error, newPayload returns only err.
func newPayload[T any](value *T, err error) (*Payload[T], error) {
	refusals := commerce.UserErrorsOf(err)
	if err != nil && refusals == nil {
		return nil, err
	}
	return &Payload[T]{Value: value, UserErrors: append([]commerce.UserError{}, refusals...)}, nil
}
