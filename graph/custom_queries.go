package graph

import (
	"context"

	"github.com/99designs/gqlgen/graphql"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/trace"
	"github.com/ordergraph/ordergraph/graph/operation"
	"github.com/ordergraph/ordergraph/graph/paging"
	"github.com/ordergraph/ordergraph/loaders"
)

// The fields of Query for lists and look-ups by custom fields have no numbers, because a schema extension
// declares them. Otherwise, they are like the fields with generated code in reads_generated.go.

// customQueryArguments are the arguments of a query by a custom field.
type customQueryArguments struct {
	value any
	page  paging.Arguments
}

// readCustomQueryArguments returns the function that reads the arguments of a query by a custom field.
func readCustomQueryArguments(q model.CustomQuery) operation.ArgumentsReader {
	return func(_ context.Context, _ any, arguments map[string]any) (any, error) {
		a := &customQueryArguments{value: arguments[q.Field.Name]}
		if q.Field.Type == commerce.CustomID {
			id, err := graphql.UnmarshalID(a.value) // the value can be an integer
			if err != nil {
				return nil, err
			}
			a.value = id
		}
		for name, size := range map[string]**int32{"first": &a.page.First, "last": &a.page.Last} {
			if arguments[name] != nil {
				n, err := graphql.UnmarshalInt32(arguments[name])
				if err != nil {
					return nil, err
				}
				*size = &n
			}
		}
		for name, cursor := range map[string]**string{"after": &a.page.After, "before": &a.page.Before} {
			if text, ok := arguments[name].(string); ok {
				*cursor = &text
			}
		}
		return a, nil
	}
}

// key returns the value in the keys of the list or claim. If the field cannot have the value, it returns
// false, and no record can match.
func (a *customQueryArguments) key(f *commerce.CustomField) (key string, ok bool) {
	value, err := f.Parse(a.value)
	if err != nil {
		return "", false
	}
	key = f.KeyText(value)
	return key, key != ""
}

// customListRequest returns the request for a page of a list by a custom field.
func (r *Resolver) customListRequest(q model.CustomQuery, f *operation.Field, a *customQueryArguments) paging.Request {
	key, ok := a.key(q.Field)
	request, page := r.pageRequest("Query."+q.Name, key), a.page
	page.Beyond = f.PageInfo
	if request.SetPage(page); !ok {
		request.Key.Range = dynamo.Range{Empty: true}
	}
	return request
}

// customQuery writes the result of a query by a custom field.
func (x *execution) customQuery(f *operation.Field) bool {
	switch q := x.executor.resolver.queries[f.Name]; q.RecordType {
	case "Customer":
		return writeCustomQuery(x, f, q, model.CustomerByID, (*execution).objectCustomer, (*execution).objectCustomerConnection)
	case "Employee":
		return writeCustomQuery(x, f, q, model.EmployeeByID, (*execution).objectEmployee, (*execution).objectEmployeeConnection)
	case "Order":
		return writeCustomQuery(x, f, q, model.OrderByID, (*execution).objectOrder, (*execution).objectOrderConnection)
	case "Product":
		return writeCustomQuery(x, f, q, model.ProductBySKU, (*execution).objectProduct, (*execution).objectProductConnection)
	default:
		return writeCustomQuery(x, f, q, model.WarehouseByID, (*execution).objectWarehouse, (*execution).objectWarehouseConnection)
	}
}

func writeCustomQuery[ID ~string, T any](x *execution, f *operation.Field, q model.CustomQuery, byID *model.LookupPattern[ID, *T],
	writeObject func(*execution, *operation.SelectionSet, *T) bool, writeConnection func(*execution, *operation.SelectionSet, *paging.Connection[*T]) bool) bool {
	if q.Claim == nil {
		v, ok := resolveCustomList[T](x, f, q)
		if !ok {
			return false
		}
		x.enter(f)
		defer x.leave()
		return writeConnection(x, f.Set, v)
	}
	v, ok := resolveCustomLookup(x, f, q, byID)
	if !ok || v == nil {
		return x.writeNull()
	}
	x.enter(f)
	defer x.leave()
	return writeObject(x, f.Set, v) || x.writeNull()
}

func resolveCustomList[T any](x *execution, f *operation.Field, q model.CustomQuery) (v *paging.Connection[*T], ok bool) {
	defer x.recoverPanic(f, &ok)
	x.currentField = f
	x.pages++
	request := x.executor.resolver.customListRequest(q, f, f.ArgumentsIn(x.operation.arguments).(*customQueryArguments))
	v, err := connection(x.resolverCtx, q.List.(*model.ListPattern[*T]), &request)
	return v, x.recordError(f, err)
}

func resolveCustomLookup[ID ~string, T any](x *execution, f *operation.Field, q model.CustomQuery, byID *model.LookupPattern[ID, *T]) (v *T, ok bool) {
	defer x.recoverPanic(f, &ok)
	x.currentField = f
	key, valid := f.ArgumentsIn(x.operation.arguments).(*customQueryArguments).key(q.Field)
	if !valid {
		return nil, true
	}
	v, err := recordByReference(x.resolverCtx, q.Claim, byID, key)
	return v, x.recordError(f, err)
}

// planCustomQuery plans the reads of a query by a custom field.
func (p plan) planCustomQuery(ctx context.Context, f *operation.Field) {
	switch q := p.resolver.queries[f.Name]; q.RecordType {
	case "Customer":
		planByCustomField(ctx, p, f, q, plan.customers, (*pendingRecords).customer)
	case "Employee":
		planByCustomField(ctx, p, f, q, plan.employees, (*pendingRecords).employee)
	case "Order":
		planByCustomField(ctx, p, f, q, plan.orders, (*pendingRecords).order)
	case "Product":
		planByCustomField(ctx, p, f, q, plan.products, (*pendingRecords).product)
	default:
		planByCustomField(ctx, p, f, q, plan.warehouses, (*pendingRecords).warehouse)
	}
}

func planByCustomField[ID ~string, T any](ctx context.Context, p plan, f *operation.Field, q model.CustomQuery,
	then func(plan, context.Context, []planTarget[*T]), pending func(*pendingRecords, []*operation.SelectionSet) *pendingKeys[ID]) {
	a := argumentsOf[customQueryArguments](p, f)
	if q.Claim == nil {
		var w pendingKeys[dynamo.ListRequest]
		request := p.resolver.customListRequest(q, f, a)
		addList(&w, f, &request)
		planList(ctx, p, &w, q.List.(*model.ListPattern[*T]), then)
		return
	}
	key, ok := a.key(q.Field)
	if !ok {
		return
	}
	loaders.RecordLoader(p.loaders, q.Claim).Plan(trace.SpanFromContext(ctx).WithPath(ctx, f.Path), p.level, []string{key}, func(ctx context.Context, next *loaders.Level, found []loaders.FoundValue[string, string]) {
		var to pendingRecords
		for _, claim := range found {
			pending(&to, f.Records).add(ID(claim.Value), f.Path, f.Records)
		}
		after := plan{p.planState, next}
		after.planCollections(ctx, &to)
		after.planReferences(ctx, &to)
	})
}
