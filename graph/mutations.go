package graph

import (
	"context"
	"errors"

	"github.com/vektah/gqlparser/v2/ast"

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
	c.CheckWebhookURL, c.CheckWebhookDocument = r.checkWebhookURL, r.checkWebhookDocument
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

// checkWebhookDocument returns an InvalidError unless a trusted document has the ID, and its result
// can be sent with the event of an order.
func (r *Resolver) checkWebhookDocument(id string) error {
	if !r.documents.HasTrusted() {
		return commerce.NewInvalidError("cannot be used, because the server has no trusted documents: omit it, or let an operator set ORDERGRAPH_DOCUMENTS")
	}
	d := r.documents.TrustedDocument(id)
	if d == nil || len(id) > commerce.MaxName {
		return commerce.NewInvalidError("is not the ID of a trusted document")
	}
	if len(d.Errors(false)) > 0 || len(d.Parsed.Operations) != 1 || d.Parsed.Operations[0].Operation != ast.Query {
		return commerce.NewInvalidError("is the ID of a document that does not contain exactly one valid query")
	}
	for _, v := range d.Parsed.Operations[0].VariableDefinitions {
		if v.Type.NonNull && v.DefaultValue == nil && (v.Variable != "orderId" || v.Type.String() != "ID!") {
			return commerce.NewInvalidError("is the ID of a query with the required variable $%s: the only required variable can be $orderId: ID!", v.Variable)
		}
	}
	return nil
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
