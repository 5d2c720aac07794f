// Package operation prepares GraphQL operations for execution. A prepared operation is a tree of
// the selected fields. The permission checks, the cost calculation and the execution all use this
// tree. Within the module, the package imports only commerce, graph/document and graph/errcode. It
// cannot import package graph, which imports it. Its functions therefore receive the generated code
// of package graph as arguments.
package operation

import (
	"context"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/ordergraph/ordergraph/access"
	"github.com/ordergraph/ordergraph/graph/document"
	"github.com/ordergraph/ordergraph/graph/errcode"
)

// Prepared is an operation that is ready to execute. It applies to one combination of the values of
// @skip and @include. Requests share a Prepared, so they may change only ResponseBytes.
type Prepared struct {
	Definition *ast.OperationDefinition
	// Root contains the fields of all fragments, but not the fields that @skip or @include excludes.
	Root *SelectionSet
	// variableFields are the fields whose arguments contain variables. For each execution,
	// VariableArguments converts these arguments.
	variableFields []*Field
	// permissions contains the permissions that the selected fields require. It also contains the
	// permissions that input fields in the arguments can require.
	permissions []access.Permission
	// fields is the number of fields in the tree. TooLarge is true if this number exceeds
	// document.MaxExpandedNodes. The tree is then incomplete.
	fields   int
	TooLarge bool
	// visited is the number of selections that Prepare has visited to build the tree.
	visited int
	// bytes is the estimated memory of the tree in bytes.
	bytes int
	// ResponseBytes is the size of the latest response in bytes, but at most
	// MaxInitialResponseCapacity. The buffer for the next response starts with this capacity.
	ResponseBytes atomic.Int64
}

// MaxInitialResponseCapacity limits the initial capacity of a response's buffer in bytes.
// Otherwise, one large response would enlarge the buffers of all later responses.
const MaxInitialResponseCapacity = 1 << 20

// SelectionSet contains the fields that the operation selects on one object type, at one path of
// the response.
type SelectionSet struct {
	Type   *ast.Definition
	Fields []Field
	// Reads are the fields that may require further DynamoDB reads after the record itself has been
	// read.
	Reads []*Field
	// variableCostFields are the fields whose cost depends on variables. cost is the total cost of
	// all other fields.
	cost               costAmount
	variableCostFields []*Field
}

// Field is one field of a selection set, including the field's own selection set.
type Field struct {
	*ast.Field
	// Number identifies the field within its type. The file graph/execute_generated.go contains the
	// numbers.
	Number int
	// Key is the JSON text before the field's value in the response. It consists of the quoted
	// response name and a colon. For all fields except the first one, it starts with a comma.
	Key string
	// Path is the field's path in the response, with dots between the names. A leaf field has a
	// path only if its hand-written resolver may read records.
	Path string
	// Selections are the field's selection sets in the document. If the document selects the field
	// several times, there can be several.
	Selections []ast.SelectionSet
	// Set is the selection set for the field's value, if the field returns an object type.
	Set *SelectionSet
	// Members contains one selection set for each possible type in alphabetical order, if the field
	// returns an interface or a union.
	Members []*SelectionSet
	// Records are the selection sets for the records that the field returns. For a connection,
	// these are the selection sets of nodes and of edges { node }.
	Records []*SelectionSet
	// reader converts the field's arguments. It is nil if the field has no arguments.
	reader ArgumentsReader
	// arguments is the result of reader, if the arguments contain no variables.
	arguments any
	// slot is the index in the result of VariableArguments. It is used only if arguments is nil.
	slot int
	// PageInfo reports which fields of pageInfo the operation selects.
	PageInfo PageInfoSelection
	// Optional is true if the field is selected only for some values of the variables. Only
	// PrepareForAllVariables sets it.
	Optional bool
	// Permission is the permission that the field requires. It applies only if guarded is true.
	Permission access.Permission
	guarded    bool
	costRule   costRule
}

// TypenameField is the Field.Number of __typename in every type. IntrospectionField is the
// Field.Number of __schema and __type.
const (
	TypenameField      = -1
	IntrospectionField = -2
)

// ObjectType describes an object, interface or union of the schema. Generated code contains the
// description of each type.
type ObjectType struct {
	// Satisfies contains the names of an object type and of its interfaces and unions. Members
	// contains the possible object types of an interface or union.
	Satisfies, Members []string
	// Field returns the number of a field (Field.Number) and the function that converts the field's
	// arguments. If the field does not exist, the number is 0.
	Field func(name string) (number int, read ArgumentsReader)
}

// ArgumentsReader converts the arguments of a field to the generated struct that the field's
// resolver receives. generated is the executionContext of gqlgen.
type ArgumentsReader func(ctx context.Context, generated any, arguments map[string]any) (any, error)

// ReadArguments converts the arguments of a field. variables contains the values of the operation's
// variables.
func (f *Field) ReadArguments(ctx context.Context, generated any, variables map[string]any) (any, error) {
	return f.reader(ctx, generated, f.ArgumentMap(variables))
}

// ArgumentsIn returns the converted arguments of a field. varying is the result of VariableArguments
// for the current execution.
func (f *Field) ArgumentsIn(varying []any) any {
	if f.arguments != nil {
		return f.arguments
	}
	return varying[f.slot]
}

// VariableArguments converts the arguments that Prepare did not convert, because they contain
// variables. Pass the result to ArgumentsIn. The document and the variables are valid, so an error
// means that their validation has a gap.
func (p *Prepared) VariableArguments(ctx context.Context, generated any, variables map[string]any) ([]any, *gqlerror.Error) {
	if len(p.variableFields) == 0 {
		return nil, nil
	}
	arguments := make([]any, len(p.variableFields))
	for i, f := range p.variableFields {
		var err error
		if arguments[i], err = f.ReadArguments(ctx, generated, variables); err != nil {
			return nil, errcode.New(f.Position, errcode.BadUserInput, "an argument of the field %q does not have the expected type", f.Name)
		}
	}
	return arguments, nil
}

// Prepare returns the prepared operation for the given variables, and caches it if the document's
// memory limit allows. The result work counts the visited document nodes. For a cached operation,
// it is zero.
func (p *Preparer) Prepare(d *document.Document, operation *ast.OperationDefinition, variables map[string]any) (prepared *Prepared, work document.ProcessedNodes) {
	key, cacheable := d.PreparedKey(operation, variables)
	if cacheable {
		if cached, ok := d.Prepared(key).(*Prepared); ok {
			return cached, work
		}
	}
	prepared = p.build(operation, func(directives ast.DirectiveList) (in, optional bool) {
		return included(directives, variables), false
	})
	work.Visited = prepared.visited
	if cacheable && !prepared.TooLarge {
		prepared = d.CachePrepared(key, prepared).(*Prepared)
	}
	return prepared, work
}

// included reports whether @skip and @include select a field or fragment. The variables are
// coerced, so each condition is a Boolean.
func included(directives ast.DirectiveList, variables map[string]any) bool {
	for _, d := range directives {
		if d.Name != "skip" && d.Name != "include" {
			continue
		}
		value, err := d.Arguments.ForName("if").Value.Value(variables)
		if condition, ok := value.(bool); err == nil && ok && condition == (d.Name == "skip") {
			return false
		}
	}
	return true
}

// possiblyIncluded evaluates @skip and @include for unknown variables. Its first result is false if
// a constant condition excludes the selection. Otherwise, its second result is true if a variable
// decides.
func possiblyIncluded(directives ast.DirectiveList) (in, optional bool) {
	for _, d := range directives {
		if d.Name != "skip" && d.Name != "include" {
			continue
		}
		switch v := d.Arguments.ForName("if").Value; {
		case v.Kind == ast.Variable:
			optional = true
		case (v.Raw == "true") == (d.Name == "skip"):
			return false, false
		}
	}
	return true, optional
}

// Preparer prepares operations. It is safe for concurrent use.
type Preparer struct {
	schema *ast.Schema
	access AccessChecker
	costs  CostCalculator
	// types returns the generated description of a type. For an introspection type, it returns the
	// zero value. generated is the executionContext of gqlgen, which is needed to convert
	// arguments.
	types     func(name string) ObjectType
	generated any
	// readingTypes contains true for each type that has a field with the directive @reads.
	readingTypes map[string]bool
	// slots limits how many trees are built at the same time. The limit is the number of
	// processors, because building a tree is CPU-bound.
	slots chan struct{}
}

// NewPreparer returns a Preparer for operations on the given schema.
func NewPreparer(schema *ast.Schema, access AccessChecker, costs CostCalculator, types func(name string) ObjectType, generated any) *Preparer {
	p := &Preparer{schema: schema, access: access, costs: costs, types: types, generated: generated, readingTypes: map[string]bool{}, slots: make(chan struct{}, runtime.GOMAXPROCS(0))}
	for name, d := range schema.Types {
		p.readingTypes[name] = slices.ContainsFunc(d.Fields, declaresRead)
	}
	return p
}

func (p *Preparer) build(operation *ast.OperationDefinition, conditions func(ast.DirectiveList) (in, optional bool)) *Prepared {
	p.slots <- struct{}{}
	defer func() { <-p.slots }()
	b := treeBuilder{Preparer: p, conditions: conditions, out: &Prepared{Definition: operation, bytes: treeBytes}}
	b.out.Root = b.selectionSet(rootType(p.schema, operation.Operation), []ast.SelectionSet{operation.SelectionSet}, "", outsideIntrospection)
	return b.out
}

// PrepareForAllVariables prepares an operation for all possible values of its variables. The result
// includes fields that are selected only for some values, and marks them as Optional.
func (p *Preparer) PrepareForAllVariables(operation *ast.OperationDefinition) *Prepared {
	return p.build(operation, possiblyIncluded)
}

// rootType returns the root type for queries, mutations or subscriptions.
func rootType(schema *ast.Schema, operation ast.Operation) *ast.Definition {
	switch operation {
	case ast.Mutation:
		return schema.Mutation
	case ast.Subscription:
		return schema.Subscription
	default:
		return schema.Query
	}
}

// treeBuilder builds the tree of one operation.
type treeBuilder struct {
	*Preparer
	conditions func(ast.DirectiveList) (in, optional bool)
	out        *Prepared
}

// mergedField combines the fields that have the same response name. Field is the first of these
// fields. sets contains their nonempty selection sets.
type mergedField struct {
	*ast.Field
	sets     []ast.SelectionSet
	optional bool
}

// fieldMerger merges fields with the same response name
// (https://spec.graphql.org/September2025/#CollectFields()).
type fieldMerger struct {
	fields []mergedField
	// indexes maps a response name to an index in fields. It is nil if there are at most
	// maxLinearSearchFields fields.
	indexes map[string]int
}

// maxLinearSearchFields is the maximum number of fields in a linear search. If there are more
// fields, the method find uses a map, because a map is then faster.
const maxLinearSearchFields = 12

func (m *fieldMerger) find(alias string) int {
	if m.indexes != nil {
		if i, ok := m.indexes[alias]; ok {
			return i
		}
		return -1
	}
	return slices.IndexFunc(m.fields, func(f mergedField) bool { return f.Alias == alias })
}

func (m *fieldMerger) merge(f *ast.Field, optional bool) {
	i := m.find(f.Alias)
	if i < 0 {
		i = len(m.fields)
		m.fields = append(m.fields, mergedField{Field: f, optional: optional})
		switch {
		case m.indexes != nil:
			m.indexes[f.Alias] = i
		case len(m.fields) > maxLinearSearchFields:
			m.indexes = make(map[string]int, 2*len(m.fields))
			for j := range m.fields {
				m.indexes[m.fields[j].Alias] = j
			}
		}
	}
	merged := &m.fields[i]
	merged.optional = merged.optional && optional
	if len(f.SelectionSet) > 0 && !slices.ContainsFunc(merged.sets, func(set ast.SelectionSet) bool { return &set[0] == &f.SelectionSet[0] }) {
		merged.sets = append(merged.sets, f.SelectionSet)
	}
}

// Bytes returns the estimated memory of the prepared operation.
func (p *Prepared) Bytes() int { return p.bytes }

// These constants are estimated sizes in bytes. treeBytes is the size of a Prepared and of its
// entry in the document's map of prepared operations. TestPreparedMemoryEstimates in package graph
// checks the estimates.
const (
	treeBytes         = 640
	selectionSetBytes = 112
	fieldBytes        = 240
	pointerBytes      = 8
)

// selectionSet merges the given selection sets into one SelectionSet for an object type. path is
// the path of the object in the response.
func (b *treeBuilder) selectionSet(typ *ast.Definition, sets []ast.SelectionSet, path string, in introspectionPosition) *SelectionSet {
	objectType := b.types(typ.Name)
	m := fieldMerger{}
	visit := document.FieldVisitor{EvaluateConditions: b.conditions, Satisfies: objectType.Satisfies, Field: m.merge}
	if visit.Satisfies == nil {
		visit.Satisfies = []string{typ.Name} // introspection types have no generated description
	}
	for _, set := range sets {
		visit.Visit(set, false)
	}
	b.out.visited += visit.Visited
	if b.out.fields += len(m.fields); b.out.fields > document.MaxExpandedNodes {
		b.out.TooLarge = true
		return &SelectionSet{Type: typ}
	}
	s := &SelectionSet{Type: typ, Fields: make([]Field, len(m.fields))}
	for i := range m.fields {
		f := &s.Fields[i]
		b.field(f, objectType, &m.fields[i], path, i > 0, in)
		if b.mayTriggerRead(f) {
			s.Reads = append(s.Reads, f)
		}
		if f.costDependsOnVariables() {
			s.variableCostFields = append(s.variableCostFields, f)
		} else {
			s.cost = s.cost.plus(f.cost(nil))
		}
	}
	b.out.bytes += selectionSetBytes + len(s.Fields)*fieldBytes + (cap(s.Reads)+cap(s.variableCostFields))*pointerBytes
	return s
}

// field fills f with the prepared form of a merged field. parent is the type that has the field.
func (b *treeBuilder) field(f *Field, parent ObjectType, merged *mergedField, path string, needsComma bool, in introspectionPosition) {
	f.Field, f.Selections, f.Optional = merged.Field, merged.sets, merged.optional
	f.Key = strconv.Quote(f.Alias) + ":" // names contain no characters that JSON escapes
	if needsComma {
		f.Key = "," + f.Key
	}
	b.out.bytes += len(f.Key) + cap(f.Selections)*3*pointerBytes
	switch {
	case f.Name == "__typename":
		f.Number = TypenameField
	case in == outsideIntrospection && strings.HasPrefix(f.Name, "__"):
		f.Number = IntrospectionField
	case parent.Field != nil:
		f.Number, f.reader = parent.Field(f.Name)
	}
	if f.Permission, f.guarded = b.access.fields[f.Definition]; f.guarded {
		b.addPermission(f.Permission)
	}
	if slices.ContainsFunc(f.Arguments, func(a *ast.Argument) bool {
		return b.schema.Types[f.Definition.Arguments.ForName(a.Name).Type.Name()].Kind == ast.InputObject
	}) {
		for _, permission := range b.access.inputs {
			b.addPermission(permission)
		}
	}
	if f.reader != nil {
		b.readConstantArguments(f)
	}
	if len(f.Selections) > 0 {
		f.Path = f.Alias
		if path != "" {
			f.Path = path + "." + f.Alias
		}
		b.out.bytes += len(f.Path)
		b.children(f, in.childPosition(f.Field))
	} else if declaresRead(f.Definition) {
		f.Path = path + "." + f.Alias
		b.out.bytes += len(f.Path)
	}
	f.costRule = b.costs.costRuleOf(f, in)
}

// children prepares the selection sets of a field that returns objects.
func (b *treeBuilder) children(f *Field, in introspectionPosition) {
	typ := b.schema.Types[f.Definition.Type.Name()]
	if typ.IsAbstractType() {
		for _, name := range b.types(typ.Name).Members {
			f.Members = append(f.Members, b.selectionSet(b.schema.Types[name], f.Selections, f.Path, in))
		}
		b.out.bytes += cap(f.Members) * pointerBytes
		return
	}
	f.Set = b.selectionSet(typ, f.Selections, f.Path, in)
	if !ReturnsPage(f.Field) {
		f.Records = []*SelectionSet{f.Set}
		b.out.bytes += 2 * pointerBytes
		return
	}
	for i := range f.Set.Fields {
		switch child := &f.Set.Fields[i]; child.Name {
		case "nodes":
			f.Records = append(f.Records, child.Set)
		case "edges":
			for j := range child.Set.Fields {
				if edge := &child.Set.Fields[j]; edge.Name == "node" {
					f.Records = append(f.Records, edge.Set)
				}
			}
		case "pageInfo":
			for j := range child.Set.Fields {
				f.PageInfo.HasNextPage = f.PageInfo.HasNextPage || child.Set.Fields[j].Name == "hasNextPage"
				f.PageInfo.HasPreviousPage = f.PageInfo.HasPreviousPage || child.Set.Fields[j].Name == "hasPreviousPage"
			}
		}
	}
	b.out.bytes += cap(f.Records) * pointerBytes
}

// addPermission adds a permission to the permissions of the operation.
func (b *treeBuilder) addPermission(permission access.Permission) {
	if !slices.Contains(b.out.permissions, permission) {
		b.out.permissions = append(b.out.permissions, permission)
	}
}

// readConstantArguments converts a field's arguments if they contain no variables.
func (b *treeBuilder) readConstantArguments(f *Field) {
	if !containsVariable(f.Arguments) {
		if read, err := f.ReadArguments(context.Background(), b.generated, nil); err == nil {
			f.arguments = read
			for _, a := range f.Field.Arguments {
				b.out.bytes += argumentBytes(a.Value)
			}
			return
		}
	}
	f.slot = len(b.out.variableFields)
	b.out.variableFields = append(b.out.variableFields, f)
	b.out.bytes += 2 * pointerBytes
}

// argumentBytes returns the estimated memory of a converted argument in bytes. It assumes that
// objects are converted to maps.
func argumentBytes(v *ast.Value) int {
	const value, object, name = 40, 448, 40
	bytes := value
	if v != nil {
		for _, child := range v.Children {
			bytes += argumentBytes(child.Value)
		}
		if v.Kind == ast.ObjectValue {
			bytes += object + len(v.Children)*name
		}
	}
	return bytes
}

// containsVariable reports whether any of the arguments contains a variable.
func containsVariable(arguments ast.ArgumentList) bool {
	return slices.ContainsFunc(arguments, func(a *ast.Argument) bool { return valueContainsVariable(a.Value) })
}

func valueContainsVariable(v *ast.Value) bool {
	return v.Kind == ast.Variable || slices.ContainsFunc(v.Children, func(c *ast.ChildValue) bool { return valueContainsVariable(c.Value) })
}

// ReadsDirective is the name of the directive that declares the access patterns of a field.
const ReadsDirective = "reads"

// IsPrefixArgument reports whether an argument, such as namePrefix, limits a list by a prefix.
// An empty prefix does not limit the list.
func IsPrefixArgument(argument string) bool { return strings.HasSuffix(argument, "Prefix") }

// declaresRead reports whether a field has the directive @reads.
func declaresRead(f *ast.FieldDefinition) bool { return f.Directives.ForName(ReadsDirective) != nil }

// mayTriggerRead reports whether a field may require a further DynamoDB read after its record has
// been read.
func (p *Preparer) mayTriggerRead(f *Field) bool {
	return f.Name == EntitiesField || declaresRead(f.Definition) || p.readingTypes[f.Definition.Type.Name()]
}

// SelectsFieldWithReads reports whether any of the selection sets contains a field with the given
// number (see Field.Number) that may require further DynamoDB reads.
func SelectsFieldWithReads(selections []*SelectionSet, number int) bool {
	for _, s := range selections {
		for _, f := range s.Reads {
			if f.Number == number {
				return true
			}
		}
	}
	return false
}

// HasReads reports whether the selection set contains fields that may require further DynamoDB
// reads.
func (s *SelectionSet) HasReads() bool { return len(s.Reads) > 0 }

// MemberSelections returns the selection set for the object type typ. The field must return an
// interface or a union that includes this type.
func (f *Field) MemberSelections(typ string) []*SelectionSet {
	i := slices.IndexFunc(f.Members, func(s *SelectionSet) bool { return s.Type.Name == typ })
	return f.Members[i : i+1]
}

// each calls the function do for every field of the selection set, including nested fields. A field
// precedes its nested fields.
func (s *SelectionSet) each(do func(*Field)) {
	for i := range s.Fields {
		f := &s.Fields[i]
		do(f)
		if f.Set != nil {
			f.Set.each(do)
		}
		for _, member := range f.Members {
			member.each(do)
		}
	}
}
