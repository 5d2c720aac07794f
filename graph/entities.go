package graph

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/99designs/gqlgen/graphql"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/graph/extension"
	"github.com/ordergraph/ordergraph/graph/operation"
)

// Entity is a record that other subgraphs of a federated graph can refer to. It is a customer, an
// order, a product, an employee or a warehouse.
type Entity any

// entityType contains the functions for one type of entity. key returns the ID in a representation.
// load reads the entity with this ID. plan adds the ID to the records that are read before the
// resolvers run (plan.go).
type entityType struct {
	name string
	key  func(representation map[string]any) (any, error)
	load func(ctx context.Context, id any) (Entity, error)
	plan func(to *pendingRecords, f *operation.Field, id any)
}

// newEntityType returns the entity type with the given name and key field. ID is the Go type of its
// keys. The function list selects the list in pendingRecords to which the ID of an entity is added.
func newEntityType[ID ~string, T any](
	name, key string, pattern *model.LookupPattern[ID, *T], list func(to *pendingRecords, selections []*operation.SelectionSet) *pendingKeys[ID],
) entityType {
	return entityType{
		name: name,
		key:  func(representation map[string]any) (any, error) { return entityID[ID](representation, key) },
		load: func(ctx context.Context, id any) (Entity, error) {
			v, err := reference(ctx, pattern, id.(ID))
			if v == nil { // an Entity that contains a nil *T would not be equal to nil
				return nil, err
			}
			return v, nil
		},
		plan: func(to *pendingRecords, f *operation.Field, id any) {
			selections := f.MemberSelections(name)
			if id := id.(ID); id != "" {
				list(to, selections).add(id, f.Path, selections)
			}
		},
	}
}

// entityKey returns the type and the ID in a representation, which is an object that refers to an
// entity. If the representation is malformed, or its type is not an entity, entityKey returns a
// commerce.InvalidError.
func (r *Resolver) entityKey(representation any) (entityType, any, error) {
	fields, ok := representation.(map[string]any)
	if !ok {
		return entityType{}, nil, commerce.ErrorWithArgument("representations", commerce.NewInvalidError("contains a value that is not an object: for each entity, send an object with __typename and the key field of the type"))
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
	return entityType{}, nil, commerce.ErrorWithArgument("__typename", commerce.NewInvalidError("is not an entity of this subgraph: the entities are %s and %s", strings.Join(names[:last], ", "), names[last]))
}

// entityID returns the ID in a representation. If the text of the ID is malformed, no record can
// have this ID, so entityID returns an empty ID.
func entityID[ID ~string](fields map[string]any, key string) (any, error) {
	text := ""
	switch value := fields[key].(type) {
	case nil:
		return nil, commerce.ErrorWithArgument(key, commerce.NewInvalidError("is missing or null: send the key of the entity"))
	case string:
		text = value
	case json.Number:
		text = value.String() // the ID is a number in a variable
	case int64:
		text = strconv.FormatInt(value, 10) // the ID is a literal number
	}
	if _, number := fields[key].(json.Number); text == "" || number && strings.ContainsAny(text, ".eE") {
		return nil, commerce.ErrorWithArgument(key, commerce.NewInvalidError("is not an ID: send a string or an integer"))
	}
	id, _ := lookupID[ID](text)
	return id, nil
}

// entities looks up the entity of each representation separately. If a lookup fails, the response
// contains an error with the path of this representation. If there are too many representations,
// entities returns a commerce.InvalidError.
func (r *Resolver) entities(ctx context.Context, representations []any) ([]Entity, error) {
	if len(representations) > operation.MaxRepresentations {
		return nil, commerce.ErrorWithArgument("representations", commerce.NewInvalidError("has %d entries: send at most %d in one request", len(representations), operation.MaxRepresentations))
	}
	found := make([]Entity, len(representations))
	for i := range representations {
		found[i] = r.resolveEntity(graphql.WithPathContext(ctx, graphql.NewPathWithIndex(i)), representations[i])
	}
	return found, nil
}

// resolveEntity looks up the entity of one representation. If this fails or panics, it records the
// error and returns nil, so that the response still contains the other entities.
func (r *Resolver) resolveEntity(ctx context.Context, representation any) (found Entity) {
	defer func() {
		if panicked := recover(); panicked != nil {
			graphql.AddError(ctx, panicError(ctx, panicked))
			found = nil
		}
	}()
	found, err := r.loadEntity(ctx, representation)
	if err != nil {
		graphql.AddError(ctx, err)
		return nil
	}
	return found
}

// loadEntity returns the entity of a representation. If the entity does not exist, it returns nil.
// If the caller may not use the entity type, loadEntity reads no record and returns the error of
// operation.PermissionError.
func (r *Resolver) loadEntity(ctx context.Context, representation any) (Entity, error) {
	t, id, err := r.entityKey(representation)
	if err != nil && r.access.HidesSchema(r.principal(ctx)) {
		// The schema is hidden from this caller, but the original message contains names of entities and
		// keys.
		err = commerce.ErrorWithArgument("representations", commerce.NewInvalidError("contains a value that is not an entity: for each entity, send an object with __typename and the key field of the type"))
	}
	if err != nil {
		return nil, err
	}
	if err := r.checkTypePermission(ctx, t.name); err != nil {
		return nil, err
	}
	return t.load(ctx, id)
}

// planEntities adds the keys in the arguments of _entities to the plan's first level.
func (p plan) planEntities(ctx context.Context, f *operation.Field, to *pendingRecords) {
	representations := argumentsOf[queryEntitiesArguments](p, f).representations
	if len(representations) > operation.MaxRepresentations {
		return
	}
	for _, representation := range representations {
		if t, id, err := p.resolver.entityKey(representation); err == nil && p.resolver.checkTypePermission(ctx, t.name) == nil {
			t.plan(to, f, id)
		}
	}
}

// Subgraph is the result of _service. It describes this API as a subgraph of a federated graph.
type Subgraph struct{ extension extension.Extension }

// federationFile is the name of a schema file. SDL omits this file, because the tools that compose
// subgraphs add its definitions themselves.
const federationFile = "federation.graphqls"

// SDL returns the source text of the schema, including the federation directives. Tools that
// compose subgraphs into a federated graph need this text.
func (s Subgraph) SDL() string {
	var parts []string
	for _, source := range servedSources(s.extension) {
		if !strings.HasSuffix(source.Name, federationFile) {
			parts = append(parts, source.Input)
		}
	}
	return strings.Join(parts, "\n")
}

// The code that gqlgen generates calls the functions below to resolve _entities and _service.
// gqlgen's federation plugin could generate these functions, but it is not used.
// docs/adr/0016-federation.md explains the reasons.

// __resolve_entities resolves _entities. It returns any, so that it can return nil if the whole
// list has an error.
func (ec *executionContext) __resolve_entities(ctx context.Context, representations []any) any {
	entities, err := ec.Resolvers.(*Resolver).entities(ctx, representations)
	if err != nil {
		graphql.AddError(ctx, err)
		return nil
	}
	return entities
}

func (ec *executionContext) __resolve__service(context.Context) (Subgraph, error) { //nolint:unparam // gqlgen determines the results
	return Subgraph{ec.Resolvers.(*Resolver).extension}, nil
}
