package graph

import (
	"context"
	"strings"

	"github.com/99designs/gqlgen/graphql"
)

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
