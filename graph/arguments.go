package graph

import (
	"context"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/ordergraph/ordergraph/commerce"
)

// pageArguments are the arguments of a page of a list.
type pageArguments struct {
	paging   paging
	placed   *commerce.TimeRange
	hired    *commerce.DateRange
	status   commerce.Status
	statuses []commerce.Status
	// refused tells that one of them cannot be read: the field is not planned then, and its resolver refuses it.
	refused bool
}

// raw is the value of an argument as the parser or the variables give it, nil where there is none.
func (f *selected) raw(variables map[string]any, name string) (any, error) {
	if given := f.Arguments.ForName(name); given != nil {
		if given.Value.Kind != ast.Variable {
			return given.Value.Value(variables)
		}
		if v, ok := variables[given.Value.Raw]; ok {
			return v, nil
		}
	}
	return f.Definition.Arguments.ForName(name).DefaultValue.Value(variables)
}

// read reads the arguments of a page by what the schema's generator made, so that a plan sees the same values as a resolver.
func (f *selected) read(ctx context.Context, variables map[string]any) *pageArguments {
	a := &pageArguments{}
	a.paging.beyond = f.beyond
	var generated executionContext
	for _, argument := range f.Definition.Arguments {
		raw, err := f.raw(variables, argument.Name)
		if err != nil {
			a.refused = true
			continue
		}
		switch argument.Name {
		case "first":
			a.paging.first, err = optional(raw, graphql.UnmarshalInt32)
		case "last":
			a.paging.last, err = optional(raw, graphql.UnmarshalInt32)
		case "after":
			a.paging.after, err = optional(raw, graphql.UnmarshalString)
		case "before":
			a.paging.before, err = optional(raw, graphql.UnmarshalString)
		case "placed":
			a.placed, err = generated.unmarshalOTimeRange2ᚖgithubᚗcomᚋordergraphᚋordergraphᚋcommerceᚐTimeRange(ctx, raw)
		case "hired":
			a.hired, err = generated.unmarshalODateRange2ᚖgithubᚗcomᚋordergraphᚋordergraphᚋcommerceᚐDateRange(ctx, raw)
		case "status":
			a.status, err = generated.unmarshalNOrderStatus2githubᚗcomᚋordergraphᚋordergraphᚋcommerceᚐStatus(ctx, raw)
		case "statuses":
			a.statuses, err = generated.unmarshalOOrderStatus2ᚕgithubᚗcomᚋordergraphᚋordergraphᚋcommerceᚐStatusᚄ(ctx, raw)
		}
		a.refused = a.refused || err != nil
	}
	return a
}

func optional[T any](raw any, read func(any) (T, error)) (*T, error) {
	if raw == nil {
		return nil, nil
	}
	v, err := read(raw)
	return &v, err
}

// arguments are those of a page's field.
func (p plan) arguments(f *selected) *pageArguments {
	if f.arguments != nil {
		return f.arguments
	}
	return p.asked[f.slot]
}

// paging are the arguments that choose a page.
func (p plan) paging(f *selected) paging { return p.arguments(f).paging }

// text is an argument of type ID or String, empty where it is not of that type.
func (p plan) text(f *selected, name string) string {
	raw, err := f.raw(p.variables, name)
	if err != nil {
		return ""
	}
	text, err := graphql.UnmarshalID(raw)
	if err != nil {
		return ""
	}
	return text
}
