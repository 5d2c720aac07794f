package operation

import (
	"math"
	"slices"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/graph/document"
	"github.com/ordergraph/ordergraph/graph/errcode"
)

// An operation costs one point for each value that its response can hold at most: a field's value,
// an element of a list, an object, or null. It costs more for what the order book has to do.
const (
	// ListCost is the cost of each page of a list, which can be a Query of DynamoDB.
	ListCost = 10
	// MutationCost is the cost of each mutation beside its write units: it reads before it writes.
	MutationCost = 10
	// lineCost is the cost of each line in the input of a mutation or a quote: the product is read.
	lineCost = 1
	// plainList is the number of elements of a list that is not a connection: phone numbers, the
	// path of a user error. None has more, except phone numbers that other software wrote. A list
	// of an enum has as many as the enum has values, and user errors have a limit of their own,
	// MaxUserErrors.
	plainList = commerce.MaxPhoneNumbers
)

// EntitiesField is the field of Query by which gateways ask for entities.
const EntitiesField = "_entities"

// MaxRepresentations is how many entities one field can ask for. Gateways ask for as many as the
// page has that they come from.
const MaxRepresentations = 1000

// MaxBatch is the maximum number of keys of a field that looks up records by a list of keys, such
// as productsBySku. One BatchGetItem reads them all.
const MaxBatch = 100

// BatchArgument returns the argument that lists the keys of the records that a field looks up; nil
// for other fields.
func BatchArgument(f *ast.FieldDefinition) *ast.ArgumentDefinition {
	if f.Type.Elem == nil || len(f.Arguments) != 1 || f.Arguments[0].Type.Elem == nil {
		return nil
	}
	return f.Arguments[0]
}

// MaxUserErrors is how many refusals one answer has: a caller who gets so many learns nothing from
// more.
const MaxUserErrors = 50

// quote is the type whose "lines" have at most one element for each item of the field's input.
// Other lists of quotedLine have up to commerce.MaxLines elements. singleMember is the type of user
// error that has such a list: an answer contains it once at most. linesField is the field of an
// input that lists the lines of an order.
const (
	quote        = "Quote"
	quotedLine   = "QuotedLine"
	singleMember = "PriceChanged"
	linesField   = "items"
)

// Costs limits what operations cost.
type Costs struct {
	limit int
	// writeUnits returns the most write units of a mutation for an order of so many lines.
	writeUnits func(mutation string, lines int) float64
	// enums are how many values the enums have.
	enums map[string]float64
	// lined are the inputs that list the lines of an order.
	lined map[string]bool
	// lists are the lengths of the schema's own lists, for introspection.
	lists schemaSizes
}

// NewCosts returns the costs of the operations of a schema. writeUnits returns the most write units
// that the transaction of a mutation takes for an order of so many lines.
func NewCosts(schema *ast.Schema, limits document.Limits, writeUnits func(mutation string, lines int) float64) Costs {
	enums, lined := map[string]float64{}, map[string]bool{}
	for name, d := range schema.Types {
		if d.Kind == ast.Enum {
			enums[name] = float64(len(d.EnumValues))
		}
		lined[name] = d.Kind == ast.InputObject && d.Fields.ForName(linesField) != nil
	}
	return Costs{limits.Cost, writeUnits, enums, lined, sizesOf(schema)}
}

// Check returns the error for an operation that costs more than the limit; nil for others.
// Loaders read each record once, so a query that goes in circles from customers to orders and back
// takes few requests. But each time round its response, which is built in memory, grows by the size
// of a page.
func (c Costs) Check(operation *ast.OperationDefinition, cost int) *gqlerror.Error {
	if cost <= c.limit {
		return nil
	}
	return errcode.New(operation.Position, document.Codes.Cost, "the %s costs %d, as page sizes multiply, and the limit is %d: ask for smaller pages, for fewer lists inside lists, or for fewer fields", operation.Operation, cost, c.limit)
}

// amount is the cost of a selection: once, and again for each record of the page that the selection
// is part of.
type amount struct{ once, perRecord float64 }

func (a amount) plus(b amount) amount { return amount{a.once + b.once, a.perRecord + b.perRecord} }

// pricing tells how the cost of a field follows from the cost of what is selected below it.
type pricing struct {
	kind pricingKind
	// base is the cost of the field itself, elements the number of list elements at most.
	base, elements float64
	// line is the cost of each line in the field's input, 0 if the input has no lines.
	line float64
}

type pricingKind int

const (
	// elementPricing: what is selected below costs as much for each element.
	elementPricing pricingKind = iota
	// pagePricing: the same for each record of the page.
	pagePricing
	// recordPricing: the field lists the records of the page around it.
	recordPricing
	// batchPricing: the same for each record that is looked up by a list of keys.
	batchPricing
	// quotePricing: the same for each line of the quote.
	quotePricing
)

// pricing returns the pricing of a field that is selected at a place of the schema, or anywhere.
func (c Costs) pricing(f *Field, in place) pricing {
	p := pricing{kind: elementPricing, base: 1, elements: 1}
	if len(f.Definition.Arguments) > 0 && c.lined[f.Definition.Arguments[0].Type.Name()] {
		p.line = lineCost
	}
	if f.ObjectDefinition.Name == "Mutation" {
		p.base += MutationCost
		if p.line > 0 {
			p.base += WritePoints(c.writeUnits(f.Name, 0))
			p.line += WritePoints(c.writeUnits(f.Name, 1) - c.writeUnits(f.Name, 0))
		} else {
			p.base += WritePoints(c.writeUnits(f.Name, commerce.MaxLines))
		}
	}
	switch {
	case IsPage(f.Field):
		p.kind, p.base = pagePricing, p.base+ListCost
	case f.Definition.Type.NamedType == quote:
		p.kind = quotePricing
	case f.Definition.Type.Elem == nil:
	case isRecords(f.Field):
		p.kind = recordPricing
	case BatchArgument(f.Definition) != nil:
		p.kind, p.elements = batchPricing, 0
	default:
		switch {
		case in != anywhere:
			p.elements = c.lists.of(f.Name, in)
		case f.Name == "spending":
			p.elements = commerce.MaxSpending
		case f.Name == "userErrors":
			p.elements = MaxUserErrors
		case f.Definition.Type.Name() == quotedLine:
			p.elements = commerce.MaxLines
		case c.enums[f.Definition.Type.Name()] > 0:
			p.elements = c.enums[f.Definition.Type.Name()]
		default:
			p.elements = plainList
		}
		p.base += p.elements
	}
	return p
}

// isRecords reports whether a field lists the records of a page, or the lines of a quote.
func isRecords(f *ast.Field) bool {
	return f.ObjectDefinition.Name == quote && f.Name == "lines" || (f.Name == "nodes" || f.Name == "edges") && f.ObjectDefinition.Fields.ForName("pageInfo") != nil
}

// Cost returns the cost of an operation with these variables, which are coerced. It does not depend
// on what the table holds, and is never lower than the number of values in the response.
func (p *Prepared) Cost(variables map[string]any) int {
	const most = 1 << 52                                            // page sizes can multiply beyond every integer
	return int(math.Round(min(p.Root.price(variables).once, most))) // introspection counts with averages
}

func (s *SelectionSet) price(variables map[string]any) amount {
	total := s.cost
	for _, f := range s.sized {
		total = total.plus(f.cost(variables))
	}
	return total
}

// cost returns the cost of a field and of what is selected below it.
func (f *Field) cost(variables map[string]any) amount {
	var below amount
	if f.Set != nil {
		below = f.Set.price(variables)
	}
	single := 0.0
	for _, member := range f.Members {
		cost := member.price(variables).once
		if member.Type.Name == singleMember {
			single = cost
			continue
		}
		below.once = max(below.once, cost) // an object is of one type
	}
	lines := 0.0
	if f.pricing.line > 0 {
		lines = f.pricing.line * float64(f.lines(variables))
	}
	switch f.pricing.kind {
	case pagePricing:
		return amount{once: f.pricing.base + below.once + float64(f.PageSize(variables))*below.perRecord}
	case quotePricing:
		return amount{once: f.pricing.base + lines + below.once + float64(f.lines(variables))*below.perRecord}
	case recordPricing:
		return amount{once: f.pricing.base, perRecord: 1 + below.once}
	case batchPricing:
		return amount{once: f.pricing.base + f.batchSize(variables)*(1+below.once)}
	default:
		return amount{once: f.pricing.base + lines + f.pricing.elements*below.once + max(0, single-below.once)}
	}
}

// sized reports whether the cost of a field depends on variables.
func (f *Field) sized() bool {
	for _, a := range f.Field.Arguments {
		if f.pricing.line > 0 && isVariable(a.Value) {
			return true
		}
		switch f.pricing.kind {
		case pagePricing:
			if (a.Name == "first" || a.Name == "last") && isVariable(a.Value) {
				return true
			}
		case batchPricing:
			if isVariable(a.Value) {
				return true
			}
		}
	}
	return f.Set != nil && len(f.Set.sized) > 0 || slices.ContainsFunc(f.Members, func(s *SelectionSet) bool { return len(s.sized) > 0 })
}

// PageSize returns the most records that a page can have. A size in a variable that is not known
// can be any.
func (f *Field) PageSize(variables map[string]any) int {
	size := 0
	for _, name := range []string{"first", "last"} {
		a := f.Field.Arguments.ForName(name)
		switch {
		case a == nil:
		case a.Value.Kind == ast.Variable && variables == nil:
			return MaxPage
		default:
			value, _ := a.Value.Value(variables)
			if n, ok := value.(int64); ok {
				size = max(size, int(n), 1) // the resolver refuses others
			}
		}
	}
	if size == 0 {
		return DefaultPage
	}
	return min(size, MaxPage)
}

// batchSize returns the number of records that a field looks up by a list of keys.
func (f *Field) batchSize(variables map[string]any) float64 {
	keys := f.ArgumentMap(variables)[BatchArgument(f.Definition).Name]
	return float64(max(1, len(graphql.CoerceList(keys))))
}

// LinePoints returns the points for the lines in the inputs of the root fields.
func (p *Prepared) LinePoints(variables map[string]any) (points int) {
	for i := range p.Root.Fields {
		if f := &p.Root.Fields[i]; f.pricing.line > 0 {
			points += lineCost * f.lines(variables)
		}
	}
	return points
}

// lines returns the most lines of an order that the input of a field can have. Items in a variable
// that is not known can be any number.
func (f *Field) lines(variables map[string]any) int {
	items := f.Arguments[0].Value
	if items.Kind == ast.ObjectValue {
		items = items.Children.ForName(linesField)
	}
	if items.Kind == ast.Variable && variables == nil {
		return commerce.MaxLines
	}
	value, _ := items.Value(variables)
	if input, ok := value.(map[string]any); ok && input[linesField] != nil {
		value = input[linesField]
	}
	return min(commerce.MaxLines, max(1, len(graphql.CoerceList(value))))
}

// MaxKeys returns the most records that a field looks up by a list of keys, whatever the variables;
// 0 for a field that has no such list.
func (f *Field) MaxKeys() int {
	if f.pricing.kind == quotePricing {
		return f.lines(nil)
	}
	keys := BatchArgument(f.Definition)
	if keys == nil {
		return 0
	}
	if a := f.Arguments.ForName(keys.Name); a != nil && a.Value.Kind != ast.Variable {
		return min(MaxBatch, max(1, len(a.Value.Children))) // one value stands for a list of one
	}
	return MaxBatch
}
