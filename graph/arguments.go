package graph

import (
	"context"

	"github.com/99designs/gqlgen/graphql"

	"github.com/ordergraph/ordergraph/commerce"
)

// raw is the value of an argument as the parser or the variables give it, nil where there is none.
func (f *selected) raw(name string) any {
	f.argumentsOnce.Do(func() { f.arguments = f.ArgumentMap(f.plan.operation.Variables) })
	return f.arguments[name]
}

// text is an argument of type ID or String, empty where it is not of that type.
func (f *selected) text(name string) string {
	s, err := graphql.UnmarshalID(f.raw(name))
	if err != nil {
		return ""
	}
	return s
}

// paging are the arguments that choose a page.
func (f *selected) paging() paging {
	var p paging
	p.first, p.last = optional(f, "first", graphql.UnmarshalInt32), optional(f, "last", graphql.UnmarshalInt32)
	p.after, p.before = optional(f, "after", graphql.UnmarshalString), optional(f, "before", graphql.UnmarshalString)
	p.beyond.next, p.beyond.previous = asksBeyond(f.plan.operation, f.CollectedField)
	return p
}

func optional[T any](f *selected, name string, read func(any) (T, error)) *T {
	raw := f.raw(name)
	if raw == nil {
		return nil
	}
	v, err := read(raw)
	v = checked(f, v, err)
	return &v
}

// The arguments below are read by what the schema's generator made, so that a plan sees the same values as a resolver.

func (f *selected) placed(ctx context.Context) *commerce.TimeRange {
	v, err := f.plan.generated.unmarshalOTimeRange2ᚖgithubᚗcomᚋordergraphᚋordergraphᚋcommerceᚐTimeRange(ctx, f.raw("placed"))
	return checked(f, v, err)
}

func (f *selected) hired(ctx context.Context) *commerce.DateRange {
	v, err := f.plan.generated.unmarshalODateRange2ᚖgithubᚗcomᚋordergraphᚋordergraphᚋcommerceᚐDateRange(ctx, f.raw("hired"))
	return checked(f, v, err)
}

func (f *selected) status(ctx context.Context) commerce.Status {
	v, err := f.plan.generated.unmarshalNOrderStatus2githubᚗcomᚋordergraphᚋordergraphᚋcommerceᚐStatus(ctx, f.raw("status"))
	return checked(f, v, err)
}

func (f *selected) statuses(ctx context.Context) []commerce.Status {
	v, err := f.plan.generated.unmarshalOOrderStatus2ᚕgithubᚗcomᚋordergraphᚋordergraphᚋcommerceᚐStatusᚄ(ctx, f.raw("statuses"))
	return checked(f, v, err)
}

func (f *selected) representations(ctx context.Context) []any {
	v, err := f.plan.generated.unmarshalN_Any2ᚕinterfaceᚄ(ctx, f.raw("representations"))
	return checked(f, v, err)
}

// checked remembers that an argument cannot be read: the field is not planned then, and its resolver refuses it.
func checked[T any](f *selected, v T, err error) T {
	if err != nil {
		f.refused.Store(true)
	}
	return v
}
