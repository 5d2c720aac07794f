package graph

import (
	"context"
	"errors"

	"github.com/99designs/gqlgen/graphql"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
	"github.com/ordergraph/ordergraph/graph/operation"
	"github.com/ordergraph/ordergraph/graph/paging"
	"github.com/ordergraph/ordergraph/graph/scalar"
	"github.com/ordergraph/ordergraph/loaders"
)

// nullIfNotFound returns v and err. If err is commerce.ErrNotFound, it returns nil and no error,
// because a missing record is null in GraphQL.
func nullIfNotFound[T any](v *T, err error) (*T, error) {
	if errors.Is(err, commerce.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return v, nil
}

// parseID parses the ID of a record. The IDs of orders have a form of their own.
func parseID[ID ~string](text string) (ID, error) {
	parse := commerce.ParseID[ID]
	if _, ok := any(parse).(func(string) (commerce.OrderID, error)); ok {
		parse = func(text string) (ID, error) {
			id, err := commerce.ParseOrderID(text)
			return ID(id), err
		}
	}
	return parse(text)
}

// lookupID parses the ID of a record to look up. If the text is not a valid ID, it returns false.
func lookupID[ID ~string](text string) (ID, bool) {
	id, err := parseID[ID](text)
	return id, err == nil
}

// record returns the record with this key. If the record does not exist, it returns nil.
func record[K comparable, T any](ctx context.Context, p *model.LookupPattern[K, *T], key K) (*T, error) {
	return nullIfNotFound(loaders.RecordLoader(loadersOf(ctx), p).Load(ctx, key))
}

// lookupIDs parses a list of IDs. An invalid ID becomes an empty ID. If there are more than
// operation.MaxBatchKeys IDs, lookupIDs returns a commerce.InvalidError.
func lookupIDs[ID ~string](argument string, texts []string) ([]ID, error) {
	if len(texts) > operation.MaxBatchKeys {
		return nil, commerce.ErrorWithArgument(argument, commerce.NewInvalidError("has %d entries: send at most %d entries in one request", len(texts), operation.MaxBatchKeys))
	}
	ids := make([]ID, len(texts))
	for i, text := range texts {
		ids[i], _ = lookupID[ID](text)
	}
	return ids, nil
}

// batch returns the records with these IDs in the same order. A missing record is nil. A malformed
// record is nil, too, and the response contains an error with its path.
func batch[ID ~string, T any](ctx context.Context, p *model.LookupPattern[ID, *T], ids []ID) ([]*T, error) {
	records := make([]*T, len(ids))
	for i, id := range ids {
		var err error
		switch records[i], err = reference(ctx, p, id); {
		case errors.Is(err, commerce.ErrMalformed):
			graphql.AddError(graphql.WithPathContext(ctx, graphql.NewPathWithIndex(i)), err)
		case err != nil:
			return nil, err
		}
	}
	return records, nil
}

// reference returns the record with this ID. If the ID is empty or unknown, it returns nil.
func reference[ID ~string, T any](ctx context.Context, p *model.LookupPattern[ID, *T], id ID) (*T, error) {
	if id == "" {
		return nil, nil
	}
	return record(ctx, p, id)
}

// webhookStateField returns a value from the state of a webhook. If no server has sent events to the
// webhook yet, its state is empty.
func webhookStateField[T any](ctx context.Context, w *commerce.Webhook, value func(commerce.WebhookState) T) (T, error) {
	s, err := record(ctx, model.WebhookStates, w.ID)
	if s == nil {
		s = &commerce.WebhookState{}
	}
	return value(*s), err
}

// webhookFailuresRequest returns the request for a page of the orders that are set aside for a
// webhook.
func (r *Resolver) webhookFailuresRequest(w *commerce.Webhook, a *webhookFailuresArguments, beyond operation.PageInfoSelection) paging.Request {
	q := r.pageRequest("Webhook.failures", string(w.ID))
	a.list(&q, beyond)
	return q
}

func (r *Resolver) webhookFailures(ctx context.Context, w *commerce.Webhook, a *webhookFailuresArguments) (*paging.Connection[*commerce.WebhookFailure], error) {
	q := r.webhookFailuresRequest(w, a, currentField(ctx).PageInfo)
	return connection(ctx, model.WebhookFailures, &q)
}

// recordByReference returns the record whose ID another record contains, such as the record that
// reserves an email address. If one of them does not exist, recordByReference returns nil.
func recordByReference[K comparable, Reference, ID ~string, T any](ctx context.Context, by *model.LookupPattern[K, Reference], p *model.LookupPattern[ID, *T], key K) (*T, error) {
	id, err := loaders.RecordLoader(loadersOf(ctx), by).Load(ctx, key)
	if err != nil {
		return nullIfNotFound[T](nil, err)
	}
	return record(ctx, p, ID(id))
}

// trackedFulfillment returns the request for the newest fulfillment with a tracking number.
func trackedFulfillment(number string) dynamo.ListRequest {
	return dynamo.ListRequest{PartitionValue: number, Page: dynamo.PageRequest{Limit: 1}}
}

func orderByTrackingNumber(ctx context.Context, number string) (*commerce.Order, error) {
	if _, err := commerce.ParseSearchableName(number, commerce.MaxName); err != nil {
		return nil, nil // no fulfillment can have this number
	}
	page, err := loaders.PageLoader(loadersOf(ctx), model.TrackedFulfillments).Load(ctx, trackedFulfillment(number))
	found, err := itemsOfPage(ctx, page, err)
	if len(found) == 0 {
		return nil, err
	}
	return record(ctx, model.OrderByID, found[0].OrderID)
}

func (r *Resolver) orderItemBySKU(ctx context.Context, order *commerce.Order, productID string) (*commerce.LineItem, error) {
	sku, ok := lookupID[commerce.SKU](productID)
	if !ok {
		return nil, nil
	}
	return nullIfNotFound(loadersOf(ctx).OrderItem(ctx, order, sku))
}

// pageRequest returns a page request for the list that a field returns. field has the form
// Type.field. parent is the ID of the record that contains the field. For a field of Query, parent
// is omitted.
func (r *Resolver) pageRequest(field string, parent ...string) paging.Request {
	return r.cursors.NewRequest(field, parent...)
}

// connection reads a page of a list and returns it as a GraphQL connection.
func connection[T any](ctx context.Context, from *model.ListPattern[T], q *paging.Request) (*paging.Connection[T], error) {
	if q.Err != nil {
		return nil, q.Err
	}
	slice, err := loaders.PageLoader(loadersOf(ctx), from).Load(ctx, q.Key)
	return newConnection(ctx, q, slice, err)
}

func newConnection[T any](ctx context.Context, q *paging.Request, slice dynamo.Page[T], err error) (*paging.Connection[T], error) {
	if _, err := itemsOfPage(ctx, slice, err); err != nil {
		return nil, err
	}
	return paging.NewConnection(slice, q.Scope), nil
}

// itemsOfPage returns the items of a page. If the page leaves out malformed records, itemsOfPage adds
// an error to the response.
func itemsOfPage[T any](ctx context.Context, slice dynamo.Page[T], err error) ([]T, error) {
	if x, ok := ctx.Value(executionKey{}).(*execution); ok && err == nil {
		x.recordError(x.currentField, errors.Join(slice.Malformed...))
	}
	return slice.Items, err
}

// The functions below return lists that may already have been read with their parent record.

func (r *Resolver) orderItemsRequest(id commerce.OrderID, a *orderItemsArguments, beyond operation.PageInfoSelection) paging.Request {
	q := r.pageRequest("Order.items", string(id))
	a.list(&q, beyond)
	return q
}

func (r *Resolver) itemsOf(ctx context.Context, order *commerce.Order, a orderItemsArguments) (*OrderItemConnection, error) {
	q := r.orderItemsRequest(order.ID, &a, currentField(ctx).PageInfo)
	if q.Err != nil {
		return nil, q.Err
	}
	slice, err := loadersOf(ctx).OrderItems(ctx, order, q.Key.Page)
	return newConnection(ctx, &q, slice, err)
}

func available(p *commerce.Product, err error) (int32, error) { return scalar.ToInt(p.Available, err) }

func orderCount(p *commerce.Product, err error) (*int32, error) {
	return storedCount(p.OrderCount, err)
}

// storedCount returns a counter. If a record lacks the counter, storedCount returns
// table.ErrStatusCountsIncomplete.
func storedCount(n *int, err error) (*int32, error) {
	if n == nil && err == nil {
		err = table.ErrStatusCountsIncomplete
	}
	if n == nil {
		return nil, err
	}
	count, err := scalar.ToInt(*n, err)
	return &count, err
}

func spendingOf(ctx context.Context, customer *commerce.Customer, placed *commerce.DateRange) ([]*commerce.Spending, error) {
	page, err := loadersOf(ctx).Spending(ctx, customer, placed)
	return itemsOfPage(ctx, page, err)
}
