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
	UserErrors []commerce.Refusal
}

// mutate executes a mutation and returns its payload. It validates the input, calls do, and
// converts violations of business rules to user errors. Other errors become errors of the field.
func mutate[C, T any](ctx context.Context, r *Resolver, do func(context.Context, change.Caller, C) (*T, error), command func(*input.Checks) C, key *string) (*Payload[T], error) {
	c := input.NewChecks(r.store.Currency())
	validCommand := command(c)
	caller, err := r.caller(ctx)
	if err != nil {
		return nil, err
	}
	caller.IdempotencyKey = c.IdempotencyKey(key)
	if err := c.Err(); err != nil {
		return payload[T](nil, err)
	}
	p, err := payload(do(ctx, caller, validCommand))
	if p != nil && p.Value != nil {
		planPayload(ctx, p.Value)
	}
	return p, err
}

// payload returns a payload if err is nil or a violation of business rules. It returns any other
// error.
func payload[T any](value *T, err error) (*Payload[T], error) {
	refusals := commerce.RefusalsOf(err)
	if err != nil && refusals == nil {
		return nil, err
	}
	return &Payload[T]{Value: value, UserErrors: append([]commerce.Refusal{}, refusals...)}, nil
}
