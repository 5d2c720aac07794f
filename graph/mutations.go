package graph

import (
	"context"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/change"
	"github.com/ordergraph/ordergraph/graph/input"
)

// Payload is what a mutation answers: the record, or why the rules refused.
type Payload[T any] struct {
	// Value is the record as the mutation left it; with a VersionConflict as it is; else nil where
	// the mutation was refused.
	Value *T
	// UserErrors are why it was not done, empty where it was.
	UserErrors []commerce.Refusal
}

// mutate makes a mutation's payload: it checks the input, has the change made, and tells what the
// rules refused. Faults are errors of the field.
func mutate[C, T any](ctx context.Context, r *Resolver, do func(context.Context, change.Caller, C) (*T, error), command func(*input.Checks) C, key *string) (*Payload[T], error) {
	c := input.NewChecks(r.store.Currency())
	asked := command(c)
	caller, err := r.caller(ctx)
	if err != nil {
		return nil, err
	}
	caller.IdempotencyKey = c.IdempotencyKey(key)
	if err := c.Err(); err != nil {
		return payload[T](nil, err)
	}
	p, err := payload(do(ctx, caller, asked))
	if p != nil && p.Value != nil {
		planPayload(ctx, p.Value)
	}
	return p, err
}

// payload tells a refusal from a fault.
func payload[T any](value *T, err error) (*Payload[T], error) {
	refusals := commerce.RefusalsOf(err)
	if err != nil && refusals == nil {
		return nil, err
	}
	return &Payload[T]{Value: value, UserErrors: append([]commerce.Refusal{}, refusals...)}, nil
}
