package graph

import (
	"context"
	"errors"
	"fmt"

	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/ordergraph/ordergraph/access"
	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/change"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/graph/errcode"
	"github.com/ordergraph/ordergraph/graph/operation"
	"github.com/ordergraph/ordergraph/loaders"
)

func newUnauthenticatedError() *gqlerror.Error {
	return errcode.New(nil, errcode.Unauthenticated, "the request has no valid credentials: send a token")
}

// viewer returns the caller and the access policy. They determine which records the loaders return.
func (r *Resolver) viewer(ctx context.Context) access.Viewer {
	return access.Viewer{Principal: r.principal(ctx), Policy: r.access.Policy}
}

// callerScope returns the customers whose records a permission allows the caller to access.
func (r *Resolver) callerScope(ctx context.Context, permission access.Permission) access.Scope {
	return r.access.Policy.ScopeOf(r.principal(ctx), permission)
}

// mutationCaller returns the caller of a mutation, or a permission error. If the caller may change
// only its own records, change.Caller.Customer is set.
func (r *Resolver) mutationCaller(ctx context.Context) (change.Caller, error) {
	principal, scope := r.principal(ctx), r.callerScope(ctx, currentField(ctx).Permission)
	if scope.IsEmpty() {
		return change.Caller{}, operation.PermissionError(nil, principal, "use this mutation")
	}
	return change.Caller{ID: principal.ID, Name: principal.Name, Customer: scope.Customer()}, nil
}

// checkTypePermission checks whether the caller may use an entity type. If not, it returns the
// error of operation.PermissionError. The error does not reveal whether a record exists.
func (r *Resolver) checkTypePermission(ctx context.Context, typ string) error {
	if r.callerScope(ctx, r.access.TypePermissions[typ]).IsEmpty() {
		return operation.PermissionError(nil, r.principal(ctx), fmt.Sprintf("use the type %q", typ))
	}
	return nil
}

// checkOrderSubscription returns NOT_FOUND if the order is missing or the principal may not see it.
// Both cases make the same reads.
func (r *Resolver) checkOrderSubscription(ctx context.Context, id commerce.OrderID) error {
	_, err := loadersOf(ctx).Order(ctx, id)
	return withNotFoundCode(err, "there is no such order")
}

// checkCustomerOrdersSubscription returns NOT_FOUND if the customer is missing or the principal may not
// see the customer's orders.
func (r *Resolver) checkCustomerOrdersSubscription(ctx context.Context, id commerce.CustomerID) error {
	err := commerce.ErrNotFound
	if r.viewer(ctx).Records(model.CustomerOrders.Owner).Includes(id) {
		_, err = loaders.RecordLoader(loadersOf(ctx), model.CustomerByID).Load(ctx, id)
	}
	return withNotFoundCode(err, "there is no such customer")
}

func withNotFoundCode(err error, message string) error {
	if errors.Is(err, commerce.ErrNotFound) {
		return errcode.New(nil, errcode.NotFound, "%s", message)
	}
	return err
}
