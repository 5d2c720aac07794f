package graph

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/99designs/gqlgen/graphql"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/graph/operation"
)

// Entity is a record that other subgraphs can refer to: a customer, an order, a product, an
// employee or a warehouse.
type Entity any

// entityType is one type of entity: how its key is read, how a record is loaded, and how one is
// planned.
type entityType struct {
	name string
	key  func(representation map[string]any) (any, error)
	load func(ctx context.Context, id any) (Entity, error)
	plan func(to *refs, f *operation.Field, id any)
}

// newEntityType declares a type whose records have keys of type ID. list returns the list of a plan
// that takes a record.
func newEntityType[ID ~string, T any](
	name, key string, pattern *model.Lookup[ID, *T], list func(to *refs, selections []*operation.SelectionSet) *wanted[ID],
) entityType {
	return entityType{
		name: name,
		key:  func(representation map[string]any) (any, error) { return keyed[ID](representation, key) },
		load: func(ctx context.Context, id any) (Entity, error) {
			v, err := reference(ctx, pattern, id.(ID))
			if v == nil { // a nil pointer would be no nil Entity
				return nil, err
			}
			return v, nil
		},
		plan: func(to *refs, f *operation.Field, id any) {
			selections := f.Member(name)
			if id := id.(ID); id != "" {
				list(to, selections).add(id, f.Path, selections)
			}
		},
	}
}

// entityTypes declares the types of entities, in alphabetical order.
func entityTypes() []entityType {
	return []entityType{
		newEntityType("Customer", "id", model.CustomerByID, func(to *refs, _ []*operation.SelectionSet) *wanted[commerce.CustomerID] { return &to.customers }),
		newEntityType("Employee", "id", model.EmployeeByID, func(to *refs, _ []*operation.SelectionSet) *wanted[commerce.EmployeeID] { return &to.employees }),
		newEntityType("Order", "id", model.OrderByID, (*refs).order),
		newEntityType("Product", "sku", model.ProductBySKU, (*refs).product),
		newEntityType("Warehouse", "id", model.WarehouseByID, func(to *refs, _ []*operation.SelectionSet) *wanted[commerce.WarehouseID] { return &to.warehouses }),
	}
}

// entityKey returns the type and the ID of the record that a representation names.
//
// Errors: commerce.InvalidError, where the representation names none.
func (r *Resolver) entityKey(representation any) (entityType, any, error) {
	fields, ok := representation.(map[string]any)
	if !ok {
		return entityType{}, nil, commerce.For("representations", commerce.Invalid("holds something that is no object: give each as {__typename, and the type's key}"))
	}
	for _, t := range r.entityTypes {
		if fields["__typename"] == t.name {
			id, err := t.key(fields)
			return t, id, err
		}
	}
	names := make([]string, len(r.entityTypes))
	for i, t := range r.entityTypes {
		names[i] = t.name
	}
	last := len(names) - 1
	return entityType{}, nil, commerce.For("__typename", commerce.Invalid("is no entity of this subgraph: those are %s and %s", strings.Join(names[:last], ", "), names[last]))
}

// keyed returns the ID in the key field of a representation. It is empty if the text is malformed.
func keyed[ID ~string](fields map[string]any, key string) (any, error) {
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
	id, _ := lookupID[ID](text)
	return id, nil
}

// entities looks up what representations name, each by itself: where one cannot be looked up, its
// error stands at its place.
//
// Errors: commerce.InvalidError where there are too many of them.
func (r *Resolver) entities(ctx context.Context, representations []any) ([]Entity, error) {
	if len(representations) > operation.MaxRepresentations {
		return nil, commerce.For("representations", commerce.Invalid("has %d entries: ask for %d at most at a time", len(representations), operation.MaxRepresentations))
	}
	found := make([]Entity, len(representations))
	for i := range representations {
		found[i] = r.entityAt(graphql.WithPathContext(ctx, graphql.NewPathWithIndex(i)), representations[i])
	}
	return found, nil
}

// entityAt looks up what a representation names. Where that fails, or panics, it records the error
// and returns nil, so that the others are not lost.
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
//
// Errors: those of operation.Refusal where the caller may not use the type, which alone decides.
func (r *Resolver) entityOf(ctx context.Context, representation any) (Entity, error) {
	t, id, err := r.entityKey(representation)
	if err != nil && r.access.Quiet(r.principal(ctx)) {
		// The reason names entities and their keys.
		err = commerce.For("representations", commerce.Invalid("holds something that names no entity: give each as a type and its key"))
	}
	if err != nil {
		return nil, err
	}
	if err := r.mayUseType(ctx, t.name); err != nil {
		return nil, err
	}
	return t.load(ctx, id)
}

// entities adds the records that _entities names to those that the root's level looks up.
func (p plan) entities(ctx context.Context, f *operation.Field, named *refs) {
	representations := argumentsOf[queryEntitiesArguments](p, f).representations
	if len(representations) > operation.MaxRepresentations {
		return
	}
	for _, representation := range representations {
		if t, id, err := p.resolver.entityKey(representation); err == nil && p.resolver.mayUseType(ctx, t.name) == nil {
			t.plan(named, f, id)
		}
	}
}

// Subgraph is the order book as a part of a federated graph.
type Subgraph struct{}

// machinery is the schema file whose definitions composers bring themselves.
const machinery = "federation.graphqls"

// SDL is the schema as it is written, with the directives of federation, for those who compose a
// federated graph.
func (Subgraph) SDL() string {
	var parts []string
	for _, source := range sources {
		if !strings.HasSuffix(source.Name, machinery) {
			parts = append(parts, source.Input)
		}
	}
	return strings.Join(parts, "\n")
}

// gqlgen calls the resolvers of _entities and _service by these names, and without its plugin for
// federation leaves them to us. Why without: docs/adr/0016-federation.md.

// __resolve_entities returns any, so that it can return nil where an error stands for the whole
// list.
func (ec *executionContext) __resolve_entities(ctx context.Context, representations []any) any {
	entities, err := ec.Resolvers.(*Resolver).entities(ctx, representations)
	if err != nil {
		graphql.AddError(ctx, err)
		return nil
	}
	return entities
}

func (ec *executionContext) __resolve__service(context.Context) (Subgraph, error) {
	return Subgraph{}, nil
}
