package graph

import (
	"context"
	"strconv"
	"time"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/loaders"
)

// Page sizes.
const (
	defaultPage = 20
	maxPage     = 100
)

// isPage tells whether a field gives a page of a list: those are the fields with a "first".
func isPage(f *ast.Field) bool { return f.Definition.Arguments.ForName("first") != nil }

// paging are the arguments that choose a page, and whether the query asks if there are more beyond
// it.
type paging struct {
	first  *int32
	after  *string
	last   *int32
	before *string
	beyond beyond
}

// beyond tells, for reading from the start and from the end, whether pageInfo is asked for what
// lies beyond.
type beyond struct{ next, previous bool }

// askedPage is the paging of the field that is being resolved.
func askedPage(ctx context.Context, first *int32, after *string, last *int32, before *string) paging {
	return paging{first: first, after: after, last: last, before: before, beyond: resolving(ctx).beyond}
}

// page reads the arguments. This is the one place where the size of a page is decided.
//
// Errors: commerce.InvalidError that names the argument.
func (p paging) page(list cursorScope) (dynamo.Page, error) {
	page := dynamo.Page{Limit: defaultPage, More: p.beyond.next}
	size, argument := p.first, "first"
	if p.last != nil && p.first != nil {
		return page, commerce.For("last", commerce.Invalid("stands beside \"first\": give one of them"))
	}
	// Whoever gives a cursor to read up to, and no size, means the page before it.
	if p.last != nil || p.first == nil && p.before != nil && p.after == nil {
		page.FromEnd, page.More = true, p.beyond.previous
		size, argument = p.last, "last"
	}
	if size != nil {
		if *size < 1 || *size > maxPage {
			return page, commerce.For(argument, commerce.Invalid("is %d: a page has 1 to %d", *size, maxPage))
		}
		page.Limit = int(*size)
	}
	var err error
	if p.after != nil {
		if page.After, err = list.open(*p.after); err != nil {
			return page, commerce.For("after", err)
		}
	}
	if p.before != nil {
		if page.Before, err = list.open(*p.before); err != nil {
			return page, commerce.For("before", err)
		}
	}
	return page, nil
}

// list is a page of a list that is asked for: the key by which its loader knows it, and the scope
// of its cursors.
type list[K any] struct {
	key   K
	scope cursorScope
	err   error
}

// connection loads a page of a list.
func connection[K comparable, T any](ctx context.Context, from *loaders.Loader[K, dynamo.Slice[T]], l list[K]) (*Connection[T], error) {
	if l.err != nil {
		return nil, l.err
	}
	slice, err := from.Load(ctx, l.key)
	return connected(l.scope, slice, err)
}

// ownList is connection for a list that may have come with its record.
func ownList[ID comparable, T any](l list[loaders.Listed[ID]], load func(dynamo.Page) (dynamo.Slice[T], error)) (*Connection[T], error) {
	if l.err != nil {
		return nil, l.err
	}
	slice, err := load(l.key.Page)
	return connected(l.scope, slice, err)
}

func connected[T any](scope cursorScope, slice dynamo.Slice[T], err error) (*Connection[T], error) {
	if err != nil {
		return nil, err
	}
	return &Connection[T]{slice: slice, list: scope}, nil
}

// belonging is a page of a list that belongs to one thing.
func belonging[ID ~string](r *Resolver, field string, of ID, p paging) list[loaders.Listed[ID]] {
	scope := r.cursors.of(field, string(of))
	page, err := p.page(scope)
	return list[loaders.Listed[ID]]{loaders.Listed[ID]{Of: of, Page: page}, scope, err}
}

// whole is a page of a list of everything.
func (r *Resolver) whole(field string, p paging) list[dynamo.Page] {
	scope := r.cursors.of(field)
	page, err := p.page(scope)
	return list[dynamo.Page]{page, scope, err}
}

// searched is belonging for text that a client searches for.
func (r *Resolver) searched(field, argument, text string, p paging) list[loaders.Listed[string]] {
	text, err := commerce.ParseText(text, maxText)
	if err != nil {
		return list[loaders.Listed[string]]{err: commerce.For(argument, err)}
	}
	return belonging(r, field, text, p)
}

// maxText is how long a text can be that is searched for, in bytes: DynamoDB's limit for keys
// leaves room for it.
const maxText = 256

func placedIn(r *commerce.TimeRange) (commerce.TimeRange, error) {
	if r == nil {
		return commerce.TimeRange{}, nil
	}
	return *r, commerce.For("placed", r.Check())
}

func rangeText(r commerce.TimeRange) string {
	return timeText(r.From) + "/" + timeText(r.To)
}

func timeText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format(time.RFC3339Nano)
}

func (r *Resolver) customerOrders(id commerce.CustomerID, placed *commerce.TimeRange, p paging) list[loaders.PlacedOrders] {
	in, err := placedIn(placed)
	if err != nil {
		return list[loaders.PlacedOrders]{err: err}
	}
	scope := r.cursors.of("Customer.orders", string(id), rangeText(in))
	page, err := p.page(scope)
	return list[loaders.PlacedOrders]{loaders.PlacedOrders{Customer: id, Placed: in, Page: page}, scope, err}
}

func (r *Resolver) ordersByStatus(status commerce.Status, placed *commerce.TimeRange, p paging) list[loaders.StatusOrders] {
	if status == 0 {
		return list[loaders.StatusOrders]{err: commerce.For("status", commerce.Invalid("is missing"))}
	}
	return r.ordersIn("Query.ordersByStatus", loaders.Statuses(status), placed, p)
}

func (r *Resolver) orders(statuses []commerce.Status, placed *commerce.TimeRange, p paging) list[loaders.StatusOrders] {
	if statuses != nil && len(statuses) == 0 {
		return list[loaders.StatusOrders]{err: commerce.For("statuses", commerce.Invalid("is empty: name at least one status, or leave it out for all"))}
	}
	return r.ordersIn("Query.orders", loaders.Statuses(statuses...), placed, p)
}

func (r *Resolver) ordersIn(field string, statuses loaders.StatusSet, placed *commerce.TimeRange, p paging) list[loaders.StatusOrders] {
	in, err := placedIn(placed)
	if err != nil {
		return list[loaders.StatusOrders]{err: err}
	}
	scope := r.cursors.of(field, strconv.Itoa(int(statuses)), rangeText(in))
	page, err := p.page(scope)
	return list[loaders.StatusOrders]{loaders.StatusOrders{Statuses: statuses, Placed: in, Page: page}, scope, err}
}

func (r *Resolver) employees(hired *commerce.DateRange, p paging) list[loaders.HiredEmployees] {
	var days commerce.DateRange
	if hired != nil {
		days = *hired
	}
	if err := days.Check(); err != nil {
		return list[loaders.HiredEmployees]{err: commerce.For("hired", err)}
	}
	scope := r.cursors.of("Query.employees", string(days.From), string(days.To))
	page, err := p.page(scope)
	return list[loaders.HiredEmployees]{loaders.HiredEmployees{Hired: days, Page: page}, scope, err}
}

func (r *Resolver) orderItems(id commerce.OrderID, p paging) list[loaders.Listed[commerce.OrderID]] {
	return belonging(r, "Order.items", id, p)
}

func (r *Resolver) timeline(id commerce.OrderID, p paging) list[loaders.Listed[commerce.OrderID]] {
	return belonging(r, "Order.timeline", id, p)
}

func (r *Resolver) productInventory(sku commerce.SKU, p paging) list[loaders.Listed[commerce.SKU]] {
	return belonging(r, "Product.inventory", sku, p)
}
