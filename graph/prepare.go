package graph

import (
	"context"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/graph/document"
)

// preparedOperation is an operation ready to execute under one set of conditions. Fragments are
// merged, @skip and @include are decided, and arguments without variables are read. Permissions,
// cost, look-ahead and execution all read this tree.
//
// Requests that decide the conditions alike share the tree. Nothing writes to it but responseBytes.
type preparedOperation struct {
	definition *ast.OperationDefinition
	root       *selectionSet
	// varying are the fields whose arguments contain variables. Each request reads them into a slot
	// of its own.
	varying []*selectedField
	// permissions are the permissions that the selected fields require, and those that their
	// arguments may require.
	permissions []commerce.Permission
	// fields is the number of fields in the tree. tooLarge reports that there would be more than
	// MaxExpanded: the tree is not complete.
	fields   int
	tooLarge bool
	// bytes estimates the memory that the tree takes.
	bytes int
	// responseBytes is the size of the latest response, at most maxResponseHint.
	responseBytes atomic.Int64
}

// maxResponseHint limits the buffer that a response starts with: one long response must not make
// all later ones allocate as much.
const maxResponseHint = 1 << 20

// selectionSet is what an operation selects of one object type at one place.
type selectionSet struct {
	typ    *ast.Definition
	fields []selectedField
	// reads are the fields that may trigger further reads once the record is there.
	reads []*selectedField
	// cost is the cost of the fields whose cost does not depend on variables. sized are the others.
	cost  amount
	sized []*selectedField
}

// selectedField is one field of a selection set, with everything selected below it.
type selectedField struct {
	*ast.Field
	// number identifies the field within its type; see execute_generated.go.
	number int
	// key precedes the value in the response: the response name, quoted, with the comma that
	// separates it from the field before.
	key string
	// path is the dotted path from the root of the response. Leaf fields have none.
	path string
	// selections are the merged selection sets as they stand in the document.
	selections []ast.SelectionSet
	// set is what is selected of the field's object. members is the same for each possible type of
	// an interface or union, in alphabetical order of their names.
	set     *selectionSet
	members []*selectionSet
	// records are the selections of the records that the field returns: its own, or those of a
	// connection's nodes and edges.
	records []*selectionSet
	// reader reads the field's arguments; nil where it has none. arguments is the result where they
	// contain no variables; otherwise each execution has the result in the slot of this number.
	reader    argumentsReader
	arguments any
	slot      int
	// beyond reports what pageInfo asks for outside the page.
	beyond beyond
	// withCount reports whether "itemCount" is selected beside the field.
	withCount bool
	// optional reports whether a variable decides if the field is selected. It is set by prepareAny
	// only.
	optional bool
	// permission is the permission that a guarded field requires.
	permission commerce.Permission
	guarded    bool
	pricing    pricing
}

// typenameField and introspectionField are the numbers of fields that all types share: __typename,
// and those that return parts of the schema.
const (
	typenameField      = -1
	introspectionField = -2
)

// objectType is what the generator knows of an object, interface or union.
type objectType struct {
	// satisfies are the names of the types whose fragments apply to an object; nil for an interface
	// or union, which has members.
	satisfies, members []string
	// field returns the number of a field and the function that reads its arguments; 0 for a field
	// that does not exist.
	field func(name string) (number int, read argumentsReader)
}

// argumentsReader reads the arguments of a field into the generated struct that its resolver takes.
// generated is the generated code's own state.
type argumentsReader func(ctx context.Context, generated any, given map[string]any) (any, error)

// ReadArguments reads the arguments of a field, with these variables.
func (f *selectedField) ReadArguments(ctx context.Context, generated any, variables map[string]any) (any, error) {
	return f.reader(ctx, generated, f.ArgumentMap(variables))
}

// ArgumentsIn returns the arguments of a field in an execution with these VaryingArguments; nil
// where they cannot be read.
func (f *selectedField) ArgumentsIn(varying []any) any {
	if f.arguments != nil {
		return f.arguments
	}
	return varying[f.slot]
}

// VaryingArguments reads the arguments that contain variables, for ArgumentsIn. Those that cannot
// be read are nil.
func (p *preparedOperation) VaryingArguments(ctx context.Context, generated any, variables map[string]any) []any {
	if len(p.varying) == 0 {
		return nil
	}
	arguments := make([]any, len(p.varying))
	for i, f := range p.varying {
		if read, err := f.ReadArguments(ctx, generated, variables); err == nil {
			arguments[i] = read
		}
	}
	return arguments
}

// Prepare returns the prepared form of an operation of a document, decided by the variables. The
// document keeps it while it has room.
func (p *preparer) Prepare(d *document.Document, operation *ast.OperationDefinition, variables map[string]any) *preparedOperation {
	key, cacheable := d.PreparedKey(operation, variables)
	if cacheable {
		if kept, ok := d.Prepared(key).(*preparedOperation); ok {
			return kept
		}
	}
	prepared := p.build(operation, func(directives ast.DirectiveList) (in, optional bool) {
		return included(directives, variables), false
	})
	if cacheable && !prepared.tooLarge {
		return d.KeepPrepared(key, prepared).(*preparedOperation)
	}
	return prepared
}

// included reports whether @skip and @include let a selection in. The variables are coerced, so
// each condition is a Boolean.
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

// undecided is the condition of prepareAny: it lets in whatever some variables would let in.
func undecided(directives ast.DirectiveList) (in, optional bool) {
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

// preparer makes prepared operations. It is safe for concurrent use.
type preparer struct {
	schema *ast.Schema
	access access
	costs  costs
	// types returns what the generator knows of a type; the zero value for a type of the schema's
	// schema. generated is the state of the generated code that reads arguments.
	types     func(name string) objectType
	generated any
	// turns limits how many trees are built at once: building waits for nothing but the processor.
	turns chan struct{}
}

// newPreparer returns a preparer of the operations of a schema.
func newPreparer(schema *ast.Schema, access access, costs costs, types func(name string) objectType, generated any) *preparer {
	return &preparer{schema: schema, access: access, costs: costs, types: types, generated: generated, turns: make(chan struct{}, runtime.GOMAXPROCS(0))}
}

func (p *preparer) build(operation *ast.OperationDefinition, conditions func(ast.DirectiveList) (in, optional bool)) *preparedOperation {
	p.turns <- struct{}{}
	defer func() { <-p.turns }()
	b := treeBuilder{preparer: p, conditions: conditions, out: &preparedOperation{definition: operation, bytes: treeBytes}}
	b.out.root = b.set(rootType(p.schema, operation.Operation), []ast.SelectionSet{operation.SelectionSet}, "", anywhere)
	return b.out
}

// prepareAny prepares an operation for whatever variables: fields that some variables select are
// selected, and marked optional.
func (p *preparer) prepareAny(operation *ast.OperationDefinition) *preparedOperation {
	return p.build(operation, undecided)
}

// rootType is the type of the fields that an operation begins with.
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
	*preparer
	conditions func(ast.DirectiveList) (in, optional bool)
	out        *preparedOperation
}

// mergedField is every selection of one response name.
type mergedField struct {
	*ast.Field
	sets     []ast.SelectionSet
	optional bool
}

// merging merges the fields of selection sets by their response names
// (https://spec.graphql.org/September2025/#CollectFields()).
type merging struct {
	fields []mergedField
	// places has the place of each response name among the fields, where they are many.
	places map[string]int
}

// fewFields is the number of fields up to which a look at each is faster than a map.
const fewFields = 12

func (m *merging) find(alias string) int {
	if m.places != nil {
		if i, ok := m.places[alias]; ok {
			return i
		}
		return -1
	}
	return slices.IndexFunc(m.fields, func(f mergedField) bool { return f.Alias == alias })
}

func (m *merging) field(f *ast.Field, optional bool) {
	i := m.find(f.Alias)
	if i < 0 {
		i = len(m.fields)
		m.fields = append(m.fields, mergedField{Field: f, optional: optional})
		switch {
		case m.places != nil:
			m.places[f.Alias] = i
		case len(m.fields) > fewFields:
			m.places = make(map[string]int, 2*len(m.fields))
			for j := range m.fields {
				m.places[m.fields[j].Alias] = j
			}
		}
	}
	merged := &m.fields[i]
	merged.optional = merged.optional && optional
	if len(f.SelectionSet) > 0 && !slices.ContainsFunc(merged.sets, func(set ast.SelectionSet) bool { return &set[0] == &f.SelectionSet[0] }) {
		merged.sets = append(merged.sets, f.SelectionSet)
	}
}

// Bytes estimates the memory that the prepared operation takes.
func (p *preparedOperation) Bytes() int { return p.bytes }

// Estimates of the memory that trees take (TestDocumentsKeepNoMoreThanTheyAreSaidTo): a tree with
// its place among those of the document, a selection set, a field, and a pointer to one.
const (
	treeBytes    = 640
	setBytes     = 112
	fieldBytes   = 240
	pointerBytes = 8
)

// set prepares what is selected of an object type.
func (b *treeBuilder) set(typ *ast.Definition, sets []ast.SelectionSet, path string, in place) *selectionSet {
	known := b.types(typ.Name)
	m := merging{}
	visit := document.FieldVisitor{Conditions: b.conditions, Satisfies: known.satisfies, Field: m.field}
	if visit.Satisfies == nil {
		visit.Satisfies = []string{typ.Name} // a type of the schema's schema
	}
	for _, set := range sets {
		visit.Visit(set, false)
	}
	if b.out.fields += len(m.fields); b.out.fields > document.MaxExpanded {
		b.out.tooLarge = true
		return &selectionSet{typ: typ}
	}
	s := &selectionSet{typ: typ, fields: make([]selectedField, len(m.fields))}
	counted := m.find("itemCount") >= 0
	for i := range m.fields {
		f := &s.fields[i]
		f.withCount = counted
		b.field(f, known, &m.fields[i], path, i > 0, in)
		if mayRead(f) {
			s.reads = append(s.reads, f)
		}
		if f.sized() {
			s.sized = append(s.sized, f)
		} else {
			s.cost = s.cost.plus(f.cost(nil))
		}
	}
	b.out.bytes += setBytes + len(s.fields)*fieldBytes + (cap(s.reads)+cap(s.sized))*pointerBytes
	return s
}

// field prepares a field.
func (b *treeBuilder) field(f *selectedField, of objectType, merged *mergedField, path string, follows bool, in place) {
	f.Field, f.selections, f.optional = merged.Field, merged.sets, merged.optional
	f.key = strconv.Quote(f.Alias) + ":" // a name has no characters that JSON escapes
	if follows {
		f.key = "," + f.key
	}
	b.out.bytes += len(f.key) + cap(f.selections)*3*pointerBytes
	switch {
	case f.Name == "__typename":
		f.number = typenameField
	case in == anywhere && strings.HasPrefix(f.Name, "__"):
		f.number = introspectionField
	case of.field != nil:
		f.number, f.reader = of.field(f.Name)
	}
	if f.permission, f.guarded = b.access.fields[f.Definition]; f.guarded {
		b.require(f.permission)
	}
	if slices.ContainsFunc(f.Arguments, func(a *ast.Argument) bool {
		return b.schema.Types[f.Definition.Arguments.ForName(a.Name).Type.Name()].Kind == ast.InputObject
	}) {
		for _, permission := range b.access.inputs {
			b.require(permission)
		}
	}
	if f.reader != nil {
		b.arguments(f)
	}
	if len(f.selections) > 0 {
		f.path = f.Alias
		if path != "" {
			f.path = path + "." + f.Alias
		}
		b.out.bytes += len(f.path)
		b.below(f, in.below(f.Field))
	} else if readsByHand(f.Definition) {
		f.path = path + "." + f.Alias
		b.out.bytes += len(f.path)
	}
	f.pricing = b.costs.pricing(f, in)
}

// below prepares what is selected of the values of a field.
func (b *treeBuilder) below(f *selectedField, in place) {
	typ := b.schema.Types[f.Definition.Type.Name()]
	if typ.IsAbstractType() {
		for _, name := range b.types(typ.Name).members {
			f.members = append(f.members, b.set(b.schema.Types[name], f.selections, f.path, in))
		}
		b.out.bytes += cap(f.members) * pointerBytes
		return
	}
	f.set = b.set(typ, f.selections, f.path, in)
	if !isPage(f.Field) {
		f.records = []*selectionSet{f.set}
		b.out.bytes += 2 * pointerBytes
		return
	}
	for i := range f.set.fields {
		switch part := &f.set.fields[i]; part.Name {
		case "nodes":
			f.records = append(f.records, part.set)
		case "edges":
			for j := range part.set.fields {
				if edge := &part.set.fields[j]; edge.Name == "node" {
					f.records = append(f.records, edge.set)
				}
			}
		case "pageInfo":
			for j := range part.set.fields {
				f.beyond.next = f.beyond.next || part.set.fields[j].Name == "hasNextPage"
				f.beyond.previous = f.beyond.previous || part.set.fields[j].Name == "hasPreviousPage"
			}
		}
	}
	b.out.bytes += cap(f.records) * pointerBytes
}

// require adds a permission to those of the operation.
func (b *treeBuilder) require(permission commerce.Permission) {
	if !slices.Contains(b.out.permissions, permission) {
		b.out.permissions = append(b.out.permissions, permission)
	}
}

// arguments reads a field's arguments where they contain no variables. Arguments that cannot be
// read are read again for each object, which then has an error.
func (b *treeBuilder) arguments(f *selectedField) {
	if !containsVariable(f.Arguments) {
		if read, err := f.ReadArguments(context.Background(), b.generated, nil); err == nil {
			f.arguments = read
			for _, a := range f.Field.Arguments {
				b.out.bytes += argumentBytes(a.Value)
			}
			return
		}
	}
	f.slot = len(b.out.varying)
	b.out.varying = append(b.out.varying, f)
	b.out.bytes += 2 * pointerBytes
}

// argumentBytes estimates the memory that an argument's value takes after it was read. An object
// may be a map.
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

// containsVariable reports whether arguments contain a variable.
func containsVariable(arguments ast.ArgumentList) bool {
	return slices.ContainsFunc(arguments, func(a *ast.Argument) bool { return isVariable(a.Value) })
}

func isVariable(v *ast.Value) bool {
	return v.Kind == ast.Variable || slices.ContainsFunc(v.Children, func(c *ast.ChildValue) bool { return isVariable(c.Value) })
}

// readsDirective is the directive by which the schema names the access patterns of fields.
const readsDirective = "reads"

// readsByHand reports whether a leaf field may be read: its @reads says that it is by hand.
func readsByHand(f *ast.FieldDefinition) bool {
	d := f.Directives.ForName(readsDirective)
	return d != nil && d.Arguments.ForName("byHand") != nil
}

// mayRead reports whether a field may trigger a further read once the record is there that has the
// field.
func mayRead(f *selectedField) bool {
	switch {
	case f.Name == entitiesField || readsByHand(f.Definition):
		return true
	case strings.HasPrefix(f.Name, "_"):
		return false
	default:
		return len(f.selections) > 0 && f.Definition.Type.Name() != "Money" && f.Definition.Type.Name() != "Address"
	}
}

// selects reports whether one of the selections has a field that may read.
func selects(selections []*selectionSet, name string) bool {
	return slices.ContainsFunc(selections, func(s *selectionSet) bool {
		return slices.ContainsFunc(s.reads, func(f *selectedField) bool { return f.Name == name })
	})
}

// readsMore reports whether the selection has fields that may trigger further reads.
func (s *selectionSet) readsMore() bool { return len(s.reads) > 0 }

// member returns the selection of one possible type of a field that returns an interface or union.
func (f *selectedField) member(typ string) []*selectionSet {
	i := slices.IndexFunc(f.members, func(s *selectionSet) bool { return s.typ.Name == typ })
	return f.members[i : i+1]
}

// each calls do for every field of the selection and of what is selected below it, in the order of
// the document.
func (s *selectionSet) each(do func(*selectedField)) {
	for i := range s.fields {
		f := &s.fields[i]
		do(f)
		if f.set != nil {
			f.set.each(do)
		}
		for _, member := range f.members {
			member.each(do)
		}
	}
}
