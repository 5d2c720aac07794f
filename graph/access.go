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

// unauthenticated refuses a request of nobody.
func unauthenticated() *gqlerror.Error {
	return errcode.New(nil, errcode.Unauthenticated, "the request does not say who makes it: send a token")
}

// viewer is whom the records of a request are read for.
func (r *Resolver) viewer(ctx context.Context) loaders.Viewer {
	return loaders.Viewer{Principal: r.principal(ctx), Policy: r.access.Policy}
}

// granted is what whoever makes the request is granted of a permission.
func (r *Resolver) granted(ctx context.Context, permission commerce.Permission) commerce.Grant {
	return r.access.Policy.Granted(r.principal(ctx), permission)
}

// grantedHere is what they are granted of the permission of the field that is being resolved.
func (r *Resolver) grantedHere(ctx context.Context) commerce.Grant {
	return r.granted(ctx, resolving(ctx).Permission)
}

// caller is who asks for a change: who is granted the own records only changes no others.
//
// Errors: those of operation.Refusal where they are granted none, as the gate would have told.
func (r *Resolver) caller(ctx context.Context) (change.Caller, error) {
	who := r.principal(ctx)
	switch r.grantedHere(ctx) {
	case commerce.All:
		return change.Caller{ID: who.ID, Name: who.Name}, nil
	case commerce.Own:
		return change.Caller{ID: who.ID, Name: who.Name, Customer: who.Customer}, nil
	default:
		return change.Caller{}, operation.Refusal(nil, who, "use this mutation")
	}
}

// mayUseType refuses a record of a type that whoever makes the request may not use, whether it
// exists or not.
//
// Errors: those of operation.Refusal.
func (r *Resolver) mayUseType(ctx context.Context, typ string) error {
	if r.granted(ctx, r.access.Types[typ]) == commerce.None {
		return operation.Refusal(nil, r.principal(ctx), fmt.Sprintf("use the type %q", typ))
	}
	return nil
}

// mayFollowOrder checks that the order exists and that the principal may see it. It makes the same
// reads for another customer's order as for an order that does not exist.
//
// Errors: NOT_FOUND, and those of loaders.Loaders.Order.
func (r *Resolver) mayFollowOrder(ctx context.Context, id commerce.OrderID) error {
	_, err := of(ctx).Order(ctx, id)
	return orUnknown(err, "there is no such order")
}

// mayFollowCustomer checks that the customer exists and that the principal may see the customer's
// orders. For a principal who sees only their own orders, it reads nothing for another ID.
//
// Errors: NOT_FOUND, and those of dynamo.ReadRecords.
func (r *Resolver) mayFollowCustomer(ctx context.Context, id commerce.CustomerID) error {
	err := commerce.ErrNotFound
	if r.access.Policy.Sees(r.principal(ctx), commerce.ReadOrder, id) {
		_, err = loaders.Records(of(ctx), model.CustomerByID).Load(ctx, id)
	}
	return orUnknown(err, "there is no such customer")
}

func orUnknown(err error, says string) error {
	if errors.Is(err, commerce.ErrNotFound) {
		return errcode.New(nil, errcode.NotFound, "%s", says)
	}
	return err
}
