package graph

import (
	"context"
	"errors"
	"fmt"

	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/change"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/graph/errcode"
	"github.com/ordergraph/ordergraph/graph/operation"
	"github.com/ordergraph/ordergraph/loaders"
)

// unauthenticated returns the error for a request without a valid token.
func unauthenticated() *gqlerror.Error {
	return errcode.New(nil, errcode.Unauthenticated, "the request has no principal: send a token")
}

// viewer returns the principal and the policy that the loaders check records against.
func (r *Resolver) viewer(ctx context.Context) loaders.Viewer {
	return loaders.Viewer{Principal: r.principal(ctx), Policy: r.access.Policy}
}

// granted returns the caller's grant of a permission.
func (r *Resolver) granted(ctx context.Context, permission commerce.Permission) commerce.Grant {
	return r.access.Policy.Granted(r.principal(ctx), permission)
}

// grantedHere returns the caller's grant of the permission that the current field requires.
func (r *Resolver) grantedHere(ctx context.Context) commerce.Grant {
	return r.granted(ctx, resolving(ctx).Permission)
}

// caller returns the caller of a change. The Customer of a caller with commerce.Own restricts
// changes to the caller's own records. It returns the errors of operation.Refusal if the caller has
// no grant, like the check before the execution.
func (r *Resolver) caller(ctx context.Context) (change.Caller, error) {
	principal := r.principal(ctx)
	switch r.grantedHere(ctx) {
	case commerce.All:
		return change.Caller{ID: principal.ID, Name: principal.Name}, nil
	case commerce.Own:
		return change.Caller{ID: principal.ID, Name: principal.Name, Customer: principal.Customer}, nil
	default:
		return change.Caller{}, operation.Refusal(nil, principal, "use this mutation")
	}
}

// mayUseType returns an error of operation.Refusal if the caller may not use a type of entity. The
// result does not depend on whether the record exists.
func (r *Resolver) mayUseType(ctx context.Context, typ string) error {
	if r.granted(ctx, r.access.Types[typ]) == commerce.None {
		return operation.Refusal(nil, r.principal(ctx), fmt.Sprintf("use the type %q", typ))
	}
	return nil
}

// mayFollowOrder returns an error unless the order exists and the principal may see it. It makes
// the same reads for another customer's order as for an order that does not exist. The errors are
// NOT_FOUND and the errors of loaders.Loaders.Order.
func (r *Resolver) mayFollowOrder(ctx context.Context, id commerce.OrderID) error {
	_, err := of(ctx).Order(ctx, id)
	return orUnknown(err, "there is no such order")
}

// mayFollowCustomer returns an error unless the customer exists and the principal may see the
// customer's orders. If the principal sees only their own orders, it reads nothing for other IDs.
// The errors are NOT_FOUND and the errors of dynamo.ReadRecords.
func (r *Resolver) mayFollowCustomer(ctx context.Context, id commerce.CustomerID) error {
	err := commerce.ErrNotFound
	if r.access.Policy.Sees(r.principal(ctx), commerce.ReadOrder, id) {
		_, err = loaders.Records(of(ctx), model.CustomerByID).Load(ctx, id)
	}
	return orUnknown(err, "there is no such customer")
}

func orUnknown(err error, message string) error {
	if errors.Is(err, commerce.ErrNotFound) {
		return errcode.New(nil, errcode.NotFound, "%s", message)
	}
	return err
}
