package graph

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/ordergraph/ordergraph/commerce"
)

// Entity is a record that other subgraphs can refer to: a customer, an order, a product, an employee or a warehouse.
type Entity any

// entitiesField is the field of Query by which gateways ask for entities.
const entitiesField = "_entities"

// maxRepresentations is how many entities one field can ask for. Gateways ask for as many as the page has that they come from.
const maxRepresentations = 1000

// entityID returns the id that a representation names: a commerce.CustomerID, OrderID, SKU, EmployeeID or WarehouseID.
//
// Errors: commerce.InvalidError, where the representation names none.
func entityID(representation any) (any, error) {
	fields, ok := representation.(map[string]any)
	if !ok {
		return nil, commerce.For("representations", commerce.Invalid("holds something that is no object: give each as {__typename, and the type's key}"))
	}
	switch fields["__typename"] {
	case "Customer":
		return keyed(fields, "id", commerce.ParseID[commerce.CustomerID])
	case "Order":
		return keyed(fields, "id", commerce.ParseOrderID)
	case "Product":
		return keyed(fields, "sku", commerce.ParseID[commerce.SKU])
	case "Employee":
		return keyed(fields, "id", commerce.ParseID[commerce.EmployeeID])
	case "Warehouse":
		return keyed(fields, "id", commerce.ParseID[commerce.WarehouseID])
	default:
		return nil, commerce.For("__typename", commerce.Invalid("is no entity of this subgraph: those are Customer, Employee, Order, Product and Warehouse"))
	}
}

// keyed reads the field of a representation that its type is known by.
func keyed[ID any](fields map[string]any, key string, parse func(string) (ID, error)) (any, error) {
	text := ""
	switch value := fields[key].(type) {
	case nil:
		return nil, commerce.For(key, commerce.Invalid("is missing or null: the type is known by it"))
	case string:
		text = value
	case json.Number:
		text = value.String() // of a variable
	case int64:
		text = strconv.FormatInt(value, 10) // of a literal
	}
	if _, number := fields[key].(json.Number); text == "" || number && strings.ContainsAny(text, ".eE") {
		return nil, commerce.For(key, commerce.Invalid("is no ID: give a text, or a whole number"))
	}
	id, err := parse(text)
	if err != nil {
		return nil, commerce.For(key, err)
	}
	return id, nil
}

// entities looks up what representations name, each by itself: where one cannot be looked up, its error stands at its place.
//
// Errors: commerce.InvalidError where there are too many of them.
func (r *Resolver) entities(ctx context.Context, representations []any) ([]Entity, error) {
	if len(representations) > maxRepresentations {
		return nil, commerce.For("representations", commerce.Invalid("has %d entries: ask for %d at most at a time", len(representations), maxRepresentations))
	}
	found := make([]Entity, len(representations))
	for i := range representations {
		found[i] = r.entityAt(graphql.WithPathContext(ctx, graphql.NewPathWithIndex(i)), representations[i])
	}
	return found, nil
}

// entityAt looks up what a representation names. Where that fails, or panics, it records the error and returns nil, so that the
// others are not lost.
func (r *Resolver) entityAt(ctx context.Context, representation any) (found Entity) {
	defer func() {
		if panicked := recover(); panicked != nil {
			graphql.AddError(ctx, recovered(ctx, panicked))
			found = nil
		}
	}()
	found, err := r.entityOf(ctx, representation)
	if err != nil {
		graphql.AddError(ctx, err)
		return nil
	}
	return found
}

// entityOf looks up what a representation names, nil where it does not exist.
func (r *Resolver) entityOf(ctx context.Context, representation any) (Entity, error) {
	id, err := entityID(representation)
	if err != nil && r.access.quiet(r.principal(ctx)) {
		// The reason names entities and their keys.
		err = commerce.For("representations", commerce.Invalid("holds something that names no entity: give each as a type and its key"))
	}
	if err != nil {
		return nil, err
	}
	if err := r.mayUseEntity(ctx, id); err != nil {
		return nil, err
	}
	switch id := id.(type) {
	case commerce.CustomerID:
		return entity(of(ctx).Customer.Load(ctx, id))
	case commerce.OrderID:
		return entity(of(ctx).Order(ctx, id))
	case commerce.SKU:
		return entity(of(ctx).Product(ctx, id))
	case commerce.EmployeeID:
		return entity(of(ctx).Employee.Load(ctx, id))
	case commerce.WarehouseID:
		return entity(of(ctx).Warehouse.Load(ctx, id))
	default:
		return nil, gqlerror.Errorf("no entity is known by a %T", id)
	}
}

// mayUseEntity refuses a record whose type the caller may not use; the type alone decides.
//
// Errors: FORBIDDEN.
func (r *Resolver) mayUseEntity(ctx context.Context, id any) error {
	switch id.(type) {
	case commerce.CustomerID:
		return r.mayUseType(ctx, "Customer")
	case commerce.OrderID:
		return r.mayUseType(ctx, "Order")
	case commerce.SKU:
		return r.mayUseType(ctx, "Product")
	case commerce.EmployeeID:
		return r.mayUseType(ctx, "Employee")
	case commerce.WarehouseID:
		return r.mayUseType(ctx, "Warehouse")
	default:
		return nil
	}
}

// entity makes an Entity of a record, nil where it does not exist: a pointer that is nil would be no nil Entity.
func entity[T any](v *T, err error) (Entity, error) {
	if v, err = orNull(v, err); v == nil {
		return nil, err
	}
	return v, nil
}

// entities adds the records that _entities names to those that the root's level looks up.
func (p plan) entities(ctx context.Context, f *selectedField, named *refs, wholeOrders *wanted[commerce.OrderID], wholeProducts *wanted[commerce.SKU]) {
	representations := argumentsOf[queryEntitiesArguments](p, f).representations
	if len(representations) > maxRepresentations {
		return
	}
	orders, products := f.member("Order"), f.member("Product")
	timelines, inventories := selects(orders, "timeline"), selects(products, "inventory")
	for _, representation := range representations {
		id, err := entityID(representation)
		if err != nil || p.resolver.mayUseEntity(ctx, id) != nil {
			continue
		}
		switch id := id.(type) {
		case commerce.CustomerID:
			named.customers.add(id, f.path, f.member("Customer"))
		case commerce.OrderID:
			if timelines {
				wholeOrders.add(id, f.path, orders)
			} else {
				named.orders.add(id, f.path, orders)
			}
		case commerce.SKU:
			if inventories {
				wholeProducts.add(id, f.path, products)
			} else {
				named.products.add(id, f.path, products)
			}
		case commerce.EmployeeID:
			named.employees.add(id, f.path, f.member("Employee"))
		case commerce.WarehouseID:
			named.warehouses.add(id, f.path, f.member("Warehouse"))
		}
	}
}
