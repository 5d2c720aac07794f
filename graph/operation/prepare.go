// Package operation prepares operations for execution: one tree of selected fields, which
// permissions, cost and execution read. Of the module it imports commerce, graph/document and
// graph/errcode; the generated code is passed in.
package operation

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

// Prepared is an operation ready to execute under one set of conditions. Fragments are
// merged, @skip and @include are decided, and arguments without variables are read. Permissions,
// cost, look-ahead and execution all read this tree.
//
// Requests that decide the conditions alike share the tree. Nothing writes to it but ResponseBytes.
type Prepared struct {
	Definition *ast.OperationDefinition
	Root       *SelectionSet
	// varying are the fields whose arguments contain variables. Each request reads them into a slot
	// of its own.
	varying []*Field
	// permissions are the permissions that the selected fields require, and those that their
	// arguments may require.
	permissions []commerce.Permission
	// fields is the number of fields in the tree. TooLarge reports that there would be more than
	// MaxExpanded: the tree is not complete.
	fields   int
	TooLarge bool
	// visited is the number of selections that were visited to build the tree.
	visited int
	// bytes estimates the memory that the tree takes.
	bytes int
	// ResponseBytes is the size of the latest response, at most MaxResponseHint.
	ResponseBytes atomic.Int64
}

// MaxResponseHint limits the buffer that a response starts with: one long response must not make
// all later ones allocate as much.
const MaxResponseHint = 1 << 20

// SelectionSet is what an operation selects of one object type at one place.
type SelectionSet struct {
	Type   *ast.Definition
	Fields []Field
	// Reads are the fields that may trigger further reads once the record is there.
	Reads []*Field
	// cost is the cost of the fields whose cost does not depend on variables. sized are the others.
	cost  amount
	sized []*Field
}

// Field is one field of a selection set, with everything selected below it.
type Field struct {
	*ast.Field
	// Number identifies the field within its type; see execute_generated.go.
	Number int
	// Key precedes the value in the response: the response name, quoted, with the comma that
	// separates it from the field before.
	Key string
	// Path is the dotted path from the root of the response. Leaf fields have none.
	Path string
	// Selections are the merged selection sets as they stand in the document.
	Selections []ast.SelectionSet
	// Set is what is selected of the field's object. members is the same for each possible type of
	// an interface or union, in alphabetical order of their names.
	Set     *SelectionSet
	Members []*SelectionSet
	// Records are the selections of the records that the field returns: its own, or those of a
	// connection's nodes and edges.
	Records []*SelectionSet
	// reader reads the field's arguments; nil where it has none. arguments is the result where they
	// contain no variables; otherwise each execution has the result in the slot of this number.
	reader    ArgumentsReader
	arguments any
	slot      int
	// Beyond reports what pageInfo asks for outside the page.
	Beyond Beyond
	// WithCount reports whether "itemCount" is selected beside the field.
	WithCount bool
	// Optional reports whether a variable decides if the field is selected. It is set by PrepareAny
	// only.
	Optional bool
	// Permission is the permission that a guarded field requires.
	Permission commerce.Permission
	guarded    bool
	pricing    pricing
}

// TypenameField and IntrospectionField are the numbers of fields that all types share: __typename,
// and those that return parts of the schema.
const (
	TypenameField      = -1
	IntrospectionField = -2
)

// ObjectType is what the generator knows of an object, interface or union.
type ObjectType struct {
	// Satisfies are the names of the types whose fragments apply to an object; nil for an interface
	// or union, which has members.
	Satisfies, Members []string
	// Field returns the number of a field and the function that reads its arguments; 0 for a field
	// that does not exist.
	Field func(name string) (number int, read ArgumentsReader)
}

// ArgumentsReader reads the arguments of a field into the generated struct that its resolver takes.
// generated is the generated code's own state.
type ArgumentsReader func(ctx context.Context, generated any, given map[string]any) (any, error)

// ReadArguments reads the arguments of a field, with these variables.
func (f *Field) ReadArguments(ctx context.Context, generated any, variables map[string]any) (any, error) {
	return f.reader(ctx, generated, f.ArgumentMap(variables))
}

// ArgumentsIn returns the arguments of a field in an execution with these VaryingArguments; nil
// where they cannot be read.
func (f *Field) ArgumentsIn(varying []any) any {
	if f.arguments != nil {
		return f.arguments
	}
	return varying[f.slot]
}

// VaryingArguments reads the arguments that contain variables, for ArgumentsIn. Those that cannot
// be read are nil.
func (p *Prepared) VaryingArguments(ctx context.Context, generated any, variables map[string]any) []any {
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
// document keeps it while it has room. work is what making it took, nothing if it was kept.
func (p *Preparer) Prepare(d *document.Document, operation *ast.OperationDefinition, variables map[string]any) (prepared *Prepared, work document.Work) {
	key, cacheable := d.PreparedKey(operation, variables)
	if cacheable {
		if kept, ok := d.Prepared(key).(*Prepared); ok {
			return kept, work
		}
	}
	prepared = p.build(operation, func(directives ast.DirectiveList) (in, optional bool) {
		return included(directives, variables), false
	})
	work.Visited = prepared.visited
	if cacheable && !prepared.TooLarge {
		prepared = d.KeepPrepared(key, prepared).(*Prepared)
	}
	return prepared, work
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

// undecided is the condition of PrepareAny: it lets in whatever some variables would let in.
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

// Preparer makes prepared operations. It is safe for concurrent use.
type Preparer struct {
	schema *ast.Schema
	access Access
	costs  Costs
	// types returns what the generator knows of a type; the zero value for a type of the schema's
	// schema. generated is the state of the generated code that reads arguments.
	types     func(name string) ObjectType
	generated any
	// turns limits how many trees are built at once: building waits for nothing but the processor.
	turns chan struct{}
}

// NewPreparer returns a preparer of the operations of a schema.
func NewPreparer(schema *ast.Schema, access Access, costs Costs, types func(name string) ObjectType, generated any) *Preparer {
	return &Preparer{schema: schema, access: access, costs: costs, types: types, generated: generated, turns: make(chan struct{}, runtime.GOMAXPROCS(0))}
}

func (p *Preparer) build(operation *ast.OperationDefinition, conditions func(ast.DirectiveList) (in, optional bool)) *Prepared {
	p.turns <- struct{}{}
	defer func() { <-p.turns }()
	b := treeBuilder{Preparer: p, conditions: conditions, out: &Prepared{Definition: operation, bytes: treeBytes}}
	b.out.Root = b.set(rootType(p.schema, operation.Operation), []ast.SelectionSet{operation.SelectionSet}, "", anywhere)
	return b.out
}

// PrepareAny prepares an operation for whatever variables: fields that some variables select are
// selected, and marked optional.
func (p *Preparer) PrepareAny(operation *ast.OperationDefinition) *Prepared {
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
	*Preparer
	conditions func(ast.DirectiveList) (in, optional bool)
	out        *Prepared
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
func (p *Prepared) Bytes() int { return p.bytes }

// Estimates of the memory that trees take (TestDocumentsKeepNoMoreThanTheyAreSaidTo): a tree with
// its place among those of the document, a selection set, a field, and a pointer to one.
const (
	treeBytes    = 640
	setBytes     = 112
	fieldBytes   = 240
	pointerBytes = 8
)

// set prepares what is selected of an object type.
func (b *treeBuilder) set(typ *ast.Definition, sets []ast.SelectionSet, path string, in place) *SelectionSet {
	known := b.types(typ.Name)
	m := merging{}
	visit := document.FieldVisitor{Conditions: b.conditions, Satisfies: known.Satisfies, Field: m.field}
	if visit.Satisfies == nil {
		visit.Satisfies = []string{typ.Name} // a type of the schema's schema
	}
	for _, set := range sets {
		visit.Visit(set, false)
	}
	b.out.visited += visit.Visited
	if b.out.fields += len(m.fields); b.out.fields > document.MaxExpanded {
		b.out.TooLarge = true
		return &SelectionSet{Type: typ}
	}
	s := &SelectionSet{Type: typ, Fields: make([]Field, len(m.fields))}
	counted := m.find("itemCount") >= 0
	for i := range m.fields {
		f := &s.Fields[i]
		f.WithCount = counted
		b.field(f, known, &m.fields[i], path, i > 0, in)
		if mayRead(f) {
			s.Reads = append(s.Reads, f)
		}
		if f.sized() {
			s.sized = append(s.sized, f)
		} else {
			s.cost = s.cost.plus(f.cost(nil))
		}
	}
	b.out.bytes += setBytes + len(s.Fields)*fieldBytes + (cap(s.Reads)+cap(s.sized))*pointerBytes
	return s
}

// field prepares a field.
func (b *treeBuilder) field(f *Field, of ObjectType, merged *mergedField, path string, follows bool, in place) {
	f.Field, f.Selections, f.Optional = merged.Field, merged.sets, merged.optional
	f.Key = strconv.Quote(f.Alias) + ":" // a name has no characters that JSON escapes
	if follows {
		f.Key = "," + f.Key
	}
	b.out.bytes += len(f.Key) + cap(f.Selections)*3*pointerBytes
	switch {
	case f.Name == "__typename":
		f.Number = TypenameField
	case in == anywhere && strings.HasPrefix(f.Name, "__"):
		f.Number = IntrospectionField
	case of.Field != nil:
		f.Number, f.reader = of.Field(f.Name)
	}
	if f.Permission, f.guarded = b.access.fields[f.Definition]; f.guarded {
		b.require(f.Permission)
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
	if len(f.Selections) > 0 {
		f.Path = f.Alias
		if path != "" {
			f.Path = path + "." + f.Alias
		}
		b.out.bytes += len(f.Path)
		b.below(f, in.below(f.Field))
	} else if readsByHand(f.Definition) {
		f.Path = path + "." + f.Alias
		b.out.bytes += len(f.Path)
	}
	f.pricing = b.costs.pricing(f, in)
}

// below prepares what is selected of the values of a field.
func (b *treeBuilder) below(f *Field, in place) {
	typ := b.schema.Types[f.Definition.Type.Name()]
	if typ.IsAbstractType() {
		for _, name := range b.types(typ.Name).Members {
			f.Members = append(f.Members, b.set(b.schema.Types[name], f.Selections, f.Path, in))
		}
		b.out.bytes += cap(f.Members) * pointerBytes
		return
	}
	f.Set = b.set(typ, f.Selections, f.Path, in)
	if !IsPage(f.Field) {
		f.Records = []*SelectionSet{f.Set}
		b.out.bytes += 2 * pointerBytes
		return
	}
	for i := range f.Set.Fields {
		switch part := &f.Set.Fields[i]; part.Name {
		case "nodes":
			f.Records = append(f.Records, part.Set)
		case "edges":
			for j := range part.Set.Fields {
				if edge := &part.Set.Fields[j]; edge.Name == "node" {
					f.Records = append(f.Records, edge.Set)
				}
			}
		case "pageInfo":
			for j := range part.Set.Fields {
				f.Beyond.Next = f.Beyond.Next || part.Set.Fields[j].Name == "hasNextPage"
				f.Beyond.Previous = f.Beyond.Previous || part.Set.Fields[j].Name == "hasPreviousPage"
			}
		}
	}
	b.out.bytes += cap(f.Records) * pointerBytes
}

// require adds a permission to those of the operation.
func (b *treeBuilder) require(permission commerce.Permission) {
	if !slices.Contains(b.out.permissions, permission) {
		b.out.permissions = append(b.out.permissions, permission)
	}
}

// arguments reads a field's arguments where they contain no variables. Arguments that cannot be
// read are read again for each object, which then has an error.
func (b *treeBuilder) arguments(f *Field) {
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

// ReadsDirective is the directive by which the schema names the access patterns of fields.
const ReadsDirective = "reads"

// IsPrefix reports whether an argument of a list limits it to the names that begin with a text. An
// empty text is like none.
func IsPrefix(argument string) bool { return strings.HasSuffix(argument, "Prefix") }

// readsByHand reports whether a leaf field may be read: its @reads says that it is by hand.
func readsByHand(f *ast.FieldDefinition) bool {
	d := f.Directives.ForName(ReadsDirective)
	return d != nil && d.Arguments.ForName("byHand") != nil
}

// mayRead reports whether a field may trigger a further read once the record is there that has the
// field.
func mayRead(f *Field) bool {
	switch {
	case f.Name == EntitiesField || readsByHand(f.Definition):
		return true
	case strings.HasPrefix(f.Name, "_"):
		return false
	default:
		return len(f.Selections) > 0 && f.Definition.Type.Name() != "Money" && f.Definition.Type.Name() != "Address"
	}
}

// Selects reports whether one of the selections has a field that may read.
func Selects(selections []*SelectionSet, name string) bool {
	for _, s := range selections {
		for _, f := range s.Reads {
			if f.Name == name {
				return true
			}
		}
	}
	return false
}

// ReadsMore reports whether the selection has fields that may trigger further reads.
func (s *SelectionSet) ReadsMore() bool { return len(s.Reads) > 0 }

// Member returns the selection of one possible type of a field that returns an interface or union.
func (f *Field) Member(typ string) []*SelectionSet {
	i := slices.IndexFunc(f.Members, func(s *SelectionSet) bool { return s.Type.Name == typ })
	return f.Members[i : i+1]
}

// each calls do for every field of the selection and of what is selected below it, in the order of
// the document.
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
