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

// An operation costs one point for each value that its response can contain. Scalars, list
// elements, objects and nulls count as values. DynamoDB reads and writes cost additional points.
const (
	// ListCost is the number of points for each page of a list, because reading a page can require
	// a DynamoDB Query.
	ListCost = 10
	// MutationCost is the number of points for each mutation, in addition to the points for its
	// write units. It covers the reads before the write.
	MutationCost = 10
	// lineCost is the number of points for each order line in the input of a mutation or a quote.
	// It covers the read of the line's product.
	lineCost = 1
	// plainListLength is the assumed maximum length of lists such as phone numbers. For connections
	// and some other lists, costRuleOf uses other lengths.
	plainListLength = commerce.MaxPhoneNumbers
)

// EntitiesField is the name of the Query field through which federation gateways look up entities.
const EntitiesField = "_entities"

// MaxRepresentations is the maximum number of entities that one _entities field can look up. If
// each record of a page refers to entities, a gateway looks up the entities of all records through
// one _entities field.
const MaxRepresentations = 1000

// MaxBatchKeys is the maximum number of keys for a field that looks up records by a list of keys,
// such as productsBySku. One BatchGetItem request can read this many records.
const MaxBatchKeys = 100

// BatchArgument returns the argument that contains the list of keys. If the field does not look up
// records by a list of keys, BatchArgument returns nil.
func BatchArgument(f *ast.FieldDefinition) *ast.ArgumentDefinition {
	if f.Type.Elem == nil || len(f.Arguments) != 1 || f.Arguments[0].Type.Elem == nil {
		return nil
	}
	return f.Arguments[0]
}

// MaxUserErrors is the maximum number of user errors in the payload of a mutation.
const MaxUserErrors = 50

// The types to which special costs apply.
const (
	// quoteType has at most one quotedLineType for each order line of its input.
	quoteType      = "Quote"
	quotedLineType = "QuotedLine"
	// priceChangedType is the name of a user error type with a list of QuotedLine. A payload
	// contains at most one such error, so the cost of this list counts only once.
	priceChangedType = "PriceChanged"
	// orderLineType is the type of the lines of an order in an input.
	orderLineType = "OrderLineInput"
)

// maxListLengths maps the type of the elements to the maximum length of lists. Elements of other
// types are in lists of up to plainListLength elements.
func maxListLengths(schema *ast.Schema) map[string]float64 {
	lengths := map[string]float64{"UserError": MaxUserErrors, "Spending": commerce.MaxSpendingEntries, "DailySales": commerce.MaxSalesDays, quotedLineType: commerce.MaxLines, "ReturnLine": commerce.MaxReturnLines}
	for name, d := range schema.Types {
		if d.Kind == ast.Enum {
			lengths[name] = float64(len(d.EnumValues))
		}
	}
	return lengths
}

// CostCalculator computes the cost of operations and rejects operations that exceed the limit.
type CostCalculator struct {
	limit int
	// writeUnits returns the maximum write units of a mutation for an order with the given number
	// of lines.
	writeUnits func(mutation string, lines int) float64
	// maxLengths is the result of maxListLengths.
	maxLengths map[string]float64
	// lineFields maps an input type to its field with the order lines. It omits inputs without lines.
	lineFields map[string]*ast.FieldDefinition
	// listLengths contains the assumed lengths of lists in introspection queries.
	listLengths listLengths
}

// NewCostCalculator returns a CostCalculator for operations on the given schema. writeUnits returns
// the maximum number of write units that the transaction of a mutation consumes. lines is the
// number of lines of the order.
func NewCostCalculator(schema *ast.Schema, limits document.Limits, writeUnits func(mutation string, lines int) float64) CostCalculator {
	lineFields := map[string]*ast.FieldDefinition{}
	for name, d := range schema.Types {
		for _, f := range d.Fields {
			if d.Kind == ast.InputObject && f.Type.Name() == orderLineType {
				lineFields[name] = f
			}
		}
	}
	return CostCalculator{limits.Cost, writeUnits, maxListLengths(schema), lineFields, measureListLengths(schema)}
}

// Check returns an error if the cost of an operation exceeds the limit. The limit protects the
// server's memory, because the server builds the entire response in memory, and nested lists
// multiply its size.
func (c CostCalculator) Check(operation *ast.OperationDefinition, cost int) *gqlerror.Error {
	if cost <= c.limit {
		return nil
	}
	return errcode.New(operation.Position, document.LimitCodes.Cost, "the %s costs %d points, but the limit is %d: request smaller pages, fewer fields or fewer nested lists, because nested page sizes multiply", operation.Operation, cost, c.limit)
}

// costAmount is the cost of a field or a selection set. The amount once counts only once. If the
// field is inside a page or a quote, the amount perRecord counts for each record or line.
type costAmount struct{ once, perRecord float64 }

func (a costAmount) plus(b costAmount) costAmount {
	return costAmount{a.once + b.once, a.perRecord + b.perRecord}
}

// costRule describes how to compute the cost of a field from the cost of its selection set.
type costRule struct {
	kind costRuleKind
	// base is the cost of the field itself. elements is the maximum number of list elements that
	// the field returns, or 1 if it does not return a list.
	base, elements float64
	// line is the cost of each order line in the field's input, or 0 if the input has no order lines.
	// lineField is the field of the input that contains the lines.
	line      float64
	lineField *ast.FieldDefinition
}

type costRuleKind int

const (
	// costPerElement multiplies the cost of the field's selection set by the number of list
	// elements.
	costPerElement costRuleKind = iota
	// costPerPageRecord multiplies the cost of one record by the page size.
	costPerPageRecord
	// costScaledByParent applies to a list inside a page or a quote, such as nodes. The arguments
	// of the parent field determine the list's length. The parent's cost rule multiplies the cost
	// of one element by this length.
	costScaledByParent
	// costPerKey multiplies the cost of the field's selection set by the number of keys that the
	// field looks up.
	costPerKey
	// costPerQuoteLine multiplies the cost of one line by the number of lines of the quote.
	costPerQuoteLine
)

// costRuleOf returns the cost rule of a field. The parameter in is the field's position in an
// introspection query. If the field is not part of such a query, the position is
// outsideIntrospection.
func (c CostCalculator) costRuleOf(f *Field, in introspectionPosition) costRule {
	p := costRule{kind: costPerElement, base: 1, elements: 1}
	if len(f.Definition.Arguments) > 0 {
		if p.lineField = c.lineFields[f.Definition.Arguments[0].Type.Name()]; p.lineField != nil {
			p.line = lineCost
		}
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
	case ReturnsPage(f.Field):
		p.kind, p.base = costPerPageRecord, p.base+ListCost
	case f.Definition.Type.NamedType == quoteType:
		p.kind = costPerQuoteLine
	case f.Definition.Type.Elem == nil:
	case listsRecords(f.Field):
		p.kind = costScaledByParent
	case BatchArgument(f.Definition) != nil:
		p.kind, p.elements = costPerKey, 0
	default:
		switch {
		case in != outsideIntrospection:
			p.elements = c.listLengths.length(f.Name, in)
		case c.maxLengths[f.Definition.Type.Name()] > 0:
			p.elements = c.maxLengths[f.Definition.Type.Name()]
		default:
			p.elements = plainListLength
		}
		p.base += p.elements
	}
	return p
}

// listsRecords reports whether a field lists the records of a page or the lines of a quote.
func listsRecords(f *ast.Field) bool {
	return f.ObjectDefinition.Name == quoteType && f.Definition.Type.Name() == quotedLineType || (f.Name == "nodes" || f.Name == "edges") && f.ObjectDefinition.Fields.ForName("pageInfo") != nil
}

// Cost returns the maximum cost of an operation in points. The cost is at least the number of
// values in the response. The variables must already be coerced.
func (p *Prepared) Cost(variables map[string]any) int {
	const maxCost = 1 << 52                                                // nested page sizes can overflow an integer
	return int(math.Round(min(p.Root.totalCost(variables).once, maxCost))) // average list lengths in introspection queries can be fractions
}

func (s *SelectionSet) totalCost(variables map[string]any) costAmount {
	total := s.cost
	for _, f := range s.variableCostFields {
		total = total.plus(f.cost(variables))
	}
	return total
}

// cost returns the cost of a field, including the cost of its selection set.
func (f *Field) cost(variables map[string]any) costAmount {
	var below costAmount
	if f.Set != nil {
		below = f.Set.totalCost(variables)
	}
	single := 0.0
	for _, member := range f.Members {
		cost := member.totalCost(variables).once
		if member.Type.Name == priceChangedType {
			single = cost
			continue
		}
		below.once = max(below.once, cost) // an object has only one of the possible types
	}
	lines := 0.0
	if f.costRule.line > 0 {
		lines = f.costRule.line * float64(f.maxLineCount(variables))
	}
	switch f.costRule.kind {
	case costPerPageRecord:
		return costAmount{once: f.costRule.base + below.once + float64(f.PageSize(variables))*below.perRecord}
	case costPerQuoteLine:
		return costAmount{once: f.costRule.base + lines + below.once + float64(f.maxLineCount(variables))*below.perRecord}
	case costScaledByParent:
		return costAmount{once: f.costRule.base, perRecord: 1 + below.once}
	case costPerKey:
		return costAmount{once: f.costRule.base + f.batchSize(variables)*(1+below.once)}
	default:
		return costAmount{once: f.costRule.base + lines + f.costRule.elements*below.once + max(0, single-below.once)}
	}
}

// costDependsOnVariables reports whether the cost of a field depends on variables.
func (f *Field) costDependsOnVariables() bool {
	for _, a := range f.Field.Arguments {
		if f.costRule.line > 0 && valueContainsVariable(a.Value) {
			return true
		}
		switch f.costRule.kind {
		case costPerPageRecord:
			if (a.Name == "first" || a.Name == "last") && valueContainsVariable(a.Value) {
				return true
			}
		case costPerKey:
			if valueContainsVariable(a.Value) {
				return true
			}
		}
	}
	return f.Set != nil && len(f.Set.variableCostFields) > 0 || slices.ContainsFunc(f.Members, func(s *SelectionSet) bool { return len(s.variableCostFields) > 0 })
}

// PageSize returns the maximum number of records in the page that a field returns. If variables is
// nil and a variable sets the page size, it returns MaxPageSize.
func (f *Field) PageSize(variables map[string]any) int {
	size := 0
	for _, name := range []string{"first", "last"} {
		a := f.Field.Arguments.ForName(name)
		switch {
		case a == nil:
		case a.Value.Kind == ast.Variable && variables == nil:
			return MaxPageSize
		default:
			value, _ := a.Value.Value(variables)
			if n, ok := value.(int64); ok {
				size = max(size, int(n), 1) // the resolver rejects smaller sizes
			}
		}
	}
	if size == 0 {
		return DefaultPageSize
	}
	return min(size, MaxPageSize)
}

// batchSize returns the number of keys that a field looks up.
func (f *Field) batchSize(variables map[string]any) float64 {
	keys := f.ArgumentMap(variables)[BatchArgument(f.Definition).Name]
	return float64(max(1, len(graphql.CoerceList(keys))))
}

// LinePoints returns the points for all order lines in the inputs of the operation's root fields.
func (p *Prepared) LinePoints(variables map[string]any) (points int) {
	for i := range p.Root.Fields {
		if f := &p.Root.Fields[i]; f.costRule.line > 0 {
			points += lineCost * f.maxLineCount(variables)
		}
	}
	return points
}

// maxLineCount returns the maximum number of order lines in the input of a field. If variables is
// nil and a variable contains the lines, it returns commerce.MaxLines.
func (f *Field) maxLineCount(variables map[string]any) int {
	items := f.Arguments[0].Value
	if items.Kind == ast.ObjectValue {
		items = items.Children.ForName(f.costRule.lineField.Name)
	}
	if items.Kind == ast.Variable && variables == nil {
		return commerce.MaxLines
	}
	value, _ := items.Value(variables)
	if input, ok := value.(map[string]any); ok && input[f.costRule.lineField.Name] != nil {
		value = input[f.costRule.lineField.Name]
	}
	return min(commerce.MaxLines, max(1, len(graphql.CoerceList(value))))
}

// MaxKeys returns the maximum number of keys that a field looks up for any values of the variables.
// For a quote, this is the number of order lines. For a field without a list of keys, it is 0.
func (f *Field) MaxKeys() int {
	if f.costRule.kind == costPerQuoteLine {
		return f.maxLineCount(nil)
	}
	keys := BatchArgument(f.Definition)
	if keys == nil {
		return 0
	}
	if a := f.Arguments.ForName(keys.Name); a != nil && a.Value.Kind != ast.Variable {
		return min(MaxBatchKeys, max(1, len(a.Value.Children))) // a single value is coerced to a list with one element
	}
	return MaxBatchKeys
}
