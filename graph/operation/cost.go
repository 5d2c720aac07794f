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
// elements, objects and nulls count as values. Reads and writes of DynamoDB cost additional points.
const (
	// ListCost is the number of points for a page of a list. Reading a page can require a Query.
	ListCost = 10
	// MutationCost is the number of points for a mutation, in addition to its write units. It covers
	// the reads before the write.
	MutationCost = 10
	// lineCost is the number of points for each line in the input of a mutation or quote. It covers
	// the read of the line's product.
	lineCost = 1
	// plainListLength is the assumed maximum length of a list of scalars or objects that is not a
	// connection, such as phone numbers. Only phone numbers in external records can exceed it. A list
	// of enum values has at most one element for each value of the enum. User errors have their own
	// limit, MaxUserErrors.
	plainListLength = commerce.MaxPhoneNumbers
)

// EntitiesField is the field of Query that federation gateways use to look up entities.
const EntitiesField = "_entities"

// MaxRepresentations is the maximum number of entities in one _entities field. If the records of a
// page refer to entities, a gateway requests these entities in one _entities field.
const MaxRepresentations = 1000

// MaxBatchKeys is the maximum number of keys for a field that looks up records by a list of keys,
// such as productsBySku. One BatchGetItem can read this many records.
const MaxBatchKeys = 100

// BatchArgument returns the argument with the list of keys, for a field that looks up records by a
// list of keys. It returns nil for other fields.
func BatchArgument(f *ast.FieldDefinition) *ast.ArgumentDefinition {
	if f.Type.Elem == nil || len(f.Arguments) != 1 || f.Arguments[0].Type.Elem == nil {
		return nil
	}
	return f.Arguments[0]
}

// MaxUserErrors is the maximum number of user errors in a payload.
const MaxUserErrors = 50

// Names of types and fields with special list lengths.
const (
	// A Quote has at most one QuotedLine for each item of its input. All other lists of QuotedLine
	// have up to commerce.MaxLines elements.
	quoteType      = "Quote"
	quotedLineType = "QuotedLine"
	// A payload contains this user error at most once. The error contains a list of QuotedLine.
	priceChangedType = "PriceChanged"
	// This input field contains the lines of an order.
	linesField = "items"
)

// CostCalculator computes and limits the costs of operations.
type CostCalculator struct {
	limit int
	// writeUnits returns the maximum write units of a mutation for an order with this many lines.
	writeUnits func(mutation string, lines int) float64
	// enums is the number of values of each enum.
	enums map[string]float64
	// hasLines is true for input types that list the lines of an order.
	hasLines map[string]bool
	// listLengths are the lengths of lists in an introspection.
	listLengths listLengths
}

// NewCostCalculator returns the costs for operations of a schema. writeUnits returns the maximum write units
// of a mutation's transaction, for an order with the given number of lines.
func NewCostCalculator(schema *ast.Schema, limits document.Limits, writeUnits func(mutation string, lines int) float64) CostCalculator {
	enums, lined := map[string]float64{}, map[string]bool{}
	for name, d := range schema.Types {
		if d.Kind == ast.Enum {
			enums[name] = float64(len(d.EnumValues))
		}
		lined[name] = d.Kind == ast.InputObject && d.Fields.ForName(linesField) != nil
	}
	return CostCalculator{limits.Cost, writeUnits, enums, lined, measureListLengths(schema)}
}

// Check returns an error if the cost of an operation exceeds the limit. The limit protects memory:
// the response is built in memory, and each nested list multiplies its size. The number of reads
// grows more slowly, because loaders read each record only once.
func (c CostCalculator) Check(operation *ast.OperationDefinition, cost int) *gqlerror.Error {
	if cost <= c.limit {
		return nil
	}
	return errcode.New(operation.Position, document.LimitCodes.Cost, "the %s costs %d points, but the limit is %d: request smaller pages, fewer fields or fewer nested lists, because nested page sizes multiply", operation.Operation, cost, c.limit)
}

// costAmount is the cost of a selection. once is the cost that counts once. perRecord is the cost
// that counts for each record of the surrounding page.
type costAmount struct{ once, perRecord float64 }

func (a costAmount) plus(b costAmount) costAmount {
	return costAmount{a.once + b.once, a.perRecord + b.perRecord}
}

// costRule determines the cost of a field from the cost of the selection below the field.
type costRule struct {
	kind costRuleKind
	// base is the cost of the field itself. elements is the maximum number of list elements.
	base, elements float64
	// line is the cost of each order line in the field's input, or 0 if the input has no order lines.
	line float64
}

type costRuleKind int

const (
	// costPerElement multiplies the cost of the selection by the number of elements.
	costPerElement costRuleKind = iota
	// costPerPageRecord multiplies the cost of one record's selection by the page size.
	costPerPageRecord
	// costScaledByParent applies to a field that lists the records of a connection, such as nodes, or
	// the lines of a quote. The rule of the parent field multiplies the cost by the number of records.
	costScaledByParent
	// costPerKey multiplies the cost of the selection by the number of keys that the field looks up.
	costPerKey
	// costPerQuoteLine multiplies the cost of one line's selection by the number of lines of the
	// quote.
	costPerQuoteLine
)

// costRuleOf returns the cost rule of a field. in is the position of the field within an introspection
// query, or outsideIntrospection.
func (c CostCalculator) costRuleOf(f *Field, in introspectionPosition) costRule {
	p := costRule{kind: costPerElement, base: 1, elements: 1}
	if len(f.Definition.Arguments) > 0 && c.hasLines[f.Definition.Arguments[0].Type.Name()] {
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
		case f.Name == "spending":
			p.elements = commerce.MaxSpendingEntries
		case f.Name == "userErrors":
			p.elements = MaxUserErrors
		case f.Definition.Type.Name() == quotedLineType:
			p.elements = commerce.MaxLines
		case c.enums[f.Definition.Type.Name()] > 0:
			p.elements = c.enums[f.Definition.Type.Name()]
		default:
			p.elements = plainListLength
		}
		p.base += p.elements
	}
	return p
}

// listsRecords reports whether a field lists the records of a page or the lines of a quote.
func listsRecords(f *ast.Field) bool {
	return f.ObjectDefinition.Name == quoteType && f.Name == "lines" || (f.Name == "nodes" || f.Name == "edges") && f.ObjectDefinition.Fields.ForName("pageInfo") != nil
}

// Cost returns the cost of an operation with these coerced variables. The cost does not depend on
// the contents of the table. It is never lower than the number of values in the response.
func (p *Prepared) Cost(variables map[string]any) int {
	const maxCost = 1 << 52                                                // nested page sizes can overflow an integer
	return int(math.Round(min(p.Root.totalCost(variables).once, maxCost))) // averages in introspections can be fractions
}

func (s *SelectionSet) totalCost(variables map[string]any) costAmount {
	total := s.cost
	for _, f := range s.variableCostFields {
		total = total.plus(f.cost(variables))
	}
	return total
}

// cost returns the cost of a field including the selection below the field.
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
		below.once = max(below.once, cost) // each object has one of the types
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

// PageSize returns the maximum number of records of a page. If variables is nil and a variable sets
// the size, it returns MaxPageSize.
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

// LinePoints returns the points for the order lines in the inputs of all root fields.
func (p *Prepared) LinePoints(variables map[string]any) (points int) {
	for i := range p.Root.Fields {
		if f := &p.Root.Fields[i]; f.costRule.line > 0 {
			points += lineCost * f.maxLineCount(variables)
		}
	}
	return points
}

// maxLineCount returns the maximum number of lines in the input of a field. If variables is nil and a
// variable contains the lines, it returns commerce.MaxLines.
func (f *Field) maxLineCount(variables map[string]any) int {
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

// MaxKeys returns the maximum number of records that a field looks up by a list of keys, for all
// variables. It returns 0 for a field without a list of keys.
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
