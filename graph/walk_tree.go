package graph

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
)

// walkTree is what an operation selects, made ready to be walked: fields collected from their fragments, @skip and @include decided, and the
// arguments read that have no variables. It is kept with its document, and requests share it that decide alike.
type walkTree struct {
	root *walkedSet
	// arguments is how many fields have arguments with variables.
	arguments int
	// bytes is what it takes in memory, about.
	bytes int
	// length is about how long the last answers were.
	length atomic.Int64
}

// walkedSet is what is selected of one type at one place.
type walkedSet struct {
	fields []walkedField
	// again is how many fields stand there twice for gqlgen, which counts them twice and writes them once: __typename of a union and of its
	// member.
	again int
}

// walkedField is a field that is selected.
type walkedField struct {
	// number is the field's in its type; see walk_generated.go.
	number int
	// key is what stands before its value: its name in the answer, quoted, and what separates it from the field before.
	key        string
	field      *ast.Field
	selections ast.SelectionSet
	// set is what is selected of its objects, and members the same for each type of a union.
	set     *walkedSet
	members []*walkedSet
	// read reads its arguments; nil where it has none. given are those that have no variables, argument is the place of others in walk.arguments.
	read     argumentsReader
	given    any
	argument int
	// beyond tells of a page what asksBeyond does.
	beyond beyond
}

// typenameNumber is the number of __typename, which all types have.
const typenameNumber = -1

// walkType is what is known of a type of the schema.
type walkType struct {
	// implementors are the types whose fragments apply; nil for a union, which has members.
	implementors, members []string
	// field is the number of a field, and what reads its arguments; 0 where there is none that is walked.
	field func(name string) (number int, read argumentsReader)
}

// walkTrees are the trees of a document's operations. They are made when they are first needed, and kept while the document has room (document.keep): where fragments
// are spread within each other, or many variables decide, they are made for each request. It is safe for concurrent use.
type walkTrees struct {
	kept sync.Map // of *walkTree, nil where gqlgen's code has to execute it, by walkTreeKey
	// conditions are the variables that decide what is selected.
	conditions []string
	begin      sync.Once
}

// walkTreeKey is an operation, and the values of the variables that decide what it selects: a bit for each.
type walkTreeKey struct {
	operation  *ast.OperationDefinition
	conditions uint64
}

// walkTree is the tree of what an operation selects; nil where gqlgen's code has to execute it.
func (d *document) walkTree(resolvers *walkResolvers, operation *graphql.OperationContext) *walkTree {
	t := &d.walkTrees
	t.begin.Do(func() { t.conditions = conditionsOf(d.parsed) })
	key, told := t.key(operation)
	if !told {
		return newWalkTree(resolvers, operation)
	}
	if kept, ok := t.kept.Load(key); ok {
		return kept.(*walkTree)
	}
	tree := newWalkTree(resolvers, operation)
	bytes := treeBytes
	if tree != nil {
		bytes = tree.bytes
	}
	if !d.keep(bytes) {
		return tree
	}
	kept, other := t.kept.LoadOrStore(key, tree)
	if other { // another request was first
		d.forget(bytes)
	}
	return kept.(*walkTree)
}

// key is what the tree of an operation is kept by; false where there is no telling, as a condition is of another operation, or there are too many.
func (t *walkTrees) key(operation *graphql.OperationContext) (key walkTreeKey, told bool) {
	if len(t.conditions) > 64 {
		return key, false
	}
	key.operation = operation.Operation
	for i, name := range t.conditions {
		value, isBoolean := operation.Variables[name].(bool)
		if !isBoolean {
			return key, false
		}
		if value {
			key.conditions |= 1 << i
		}
	}
	return key, true
}

// conditionsOf are the variables that decide what the operations of a document select.
func conditionsOf(d *ast.QueryDocument) []string {
	var names []string
	for _, o := range d.Operations {
		names = appendConditions(names, o.SelectionSet)
	}
	for _, f := range d.Fragments {
		names = appendConditions(names, f.SelectionSet)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func appendConditions(names []string, set ast.SelectionSet) []string {
	for _, s := range set {
		var directives ast.DirectiveList
		var below ast.SelectionSet
		switch s := s.(type) {
		case *ast.Field:
			directives, below = s.Directives, s.SelectionSet
		case *ast.InlineFragment:
			directives, below = s.Directives, s.SelectionSet
		case *ast.FragmentSpread:
			directives = s.Directives
		}
		for _, d := range directives {
			if given := d.Arguments.ForName("if"); given != nil && given.Value.Kind == ast.Variable {
				names = append(names, given.Value.Raw)
			}
		}
		names = appendConditions(names, below)
	}
	return names
}

// anyVariable tells whether the value of an argument has a variable in it.
func anyVariable(arguments ast.ArgumentList) bool {
	for _, a := range arguments {
		if hasVariable(a.Value) {
			return true
		}
	}
	return false
}

func hasVariable(v *ast.Value) bool {
	if v == nil {
		return false
	}
	if v.Kind == ast.Variable {
		return true
	}
	for _, child := range v.Children {
		if hasVariable(child.Value) {
			return true
		}
	}
	return false
}

// What trees take in memory, measured (TestDocumentsKeepNoMoreThanTheyAreSaidTo): one with its place among the document's, the fields of a type, and one of
// them. What else a field takes depends on how it is written: see treeBuilder.field.
const (
	treeBytes      = 512
	setBytes       = 48
	fieldBytes     = 144
	memberBytes    = 16
	selectionBytes = 24
)

// mostTreeBytes is how large a tree can get: a thousand fields or two. Fragments that are spread within each other make fifty thousand of one document, more than it has
// room for, so that each request would make them anew; and where nothing is found, all for nothing, as no value is paid for. gqlgen's code looks at what is
// selected of an object when there is one.
const mostTreeBytes = 256 << 10

// givenBytes is what an argument's value takes as resolvers want it: an object may be a map.
func givenBytes(v *ast.Value) int {
	const value, object, name = 40, 448, 40
	bytes := value
	if v != nil {
		for _, child := range v.Children {
			bytes += givenBytes(child.Value)
		}
		if v.Kind == ast.ObjectValue {
			bytes += object + len(v.Children)*name
		}
	}
	return bytes
}

// newWalkTree makes the tree of what a query or a subscription selects; nil where that has fields that are not walked, or is larger than mostTreeBytes.
func newWalkTree(resolvers *walkResolvers, operation *graphql.OperationContext) *walkTree {
	b := treeBuilder{tree: &walkTree{bytes: treeBytes}, resolvers: resolvers, operation: operation}
	root := walkTypeOf(rootType(operation.Operation.Operation))
	if operation.Operation.Operation == ast.Subscription {
		// Its fields are no values of an object: an event is given to the first, which is the only one, and its arguments are done with.
		root = walkType{implementors: subscriptionImplementors, field: func(string) (int, argumentsReader) { return 1, nil }}
	}
	b.tree.root = b.set(root, operation.Operation.SelectionSet)
	if b.unknown {
		return nil
	}
	return b.tree
}

type treeBuilder struct {
	tree      *walkTree
	resolvers *walkResolvers
	operation *graphql.OperationContext
	// unknown tells that there is a field which is not walked, or that there are too many.
	unknown bool
}

// set makes what is selected of a type.
func (b *treeBuilder) set(t walkType, selections ast.SelectionSet) *walkedSet {
	if b.unknown || t.field == nil || b.tree.bytes > mostTreeBytes {
		b.unknown = true
		return nil
	}
	collected := graphql.CollectFields(b.operation, selections, t.implementors)
	set := &walkedSet{fields: make([]walkedField, 0, len(collected))}
	written := make(map[string]bool, len(collected))
	for _, c := range collected {
		if written[c.Alias] {
			// Other fields of one name are one field, or validation has refused them.
			set.again++
			b.unknown = b.unknown || c.Name != "__typename"
			continue
		}
		written[c.Alias] = true
		set.fields = append(set.fields, b.field(t, c, len(set.fields) == 0))
	}
	b.tree.bytes += setBytes + cap(set.fields)*fieldBytes
	return set
}

// field makes what is walked of a field.
func (b *treeBuilder) field(t walkType, c graphql.CollectedField, first bool) walkedField {
	f := walkedField{field: c.Field, selections: c.Selections}
	// A name has no characters that JSON would escape.
	if f.key = strconv.Quote(c.Alias) + ":"; !first {
		f.key = "," + f.key
	}
	// What is selected below is listed with what does not apply, or is left out.
	b.tree.bytes += len(f.key) + len(c.Selections)*selectionBytes
	if f.number, f.read = t.field(c.Name); f.number == 0 {
		b.unknown = true
		return f
	}
	if f.read != nil {
		b.arguments(&f)
	}
	if isPage(c.Field) {
		f.beyond.next, f.beyond.previous = asksBeyond(b.operation, c)
	}
	if len(c.Selections) == 0 {
		return f
	}
	of := walkTypeOf(c.Definition.Type.Name())
	if of.members == nil {
		f.set = b.set(of, c.Selections)
		return f
	}
	f.members = make([]*walkedSet, len(of.members))
	b.tree.bytes += len(of.members) * memberBytes
	for i, member := range of.members {
		f.members[i] = b.set(walkTypeOf(member), c.Selections)
	}
	return f
}

// arguments reads a field's arguments where they have no variables. Those that cannot be read are read again for each object, which has an
// error then.
func (b *treeBuilder) arguments(f *walkedField) {
	if !anyVariable(f.field.Arguments) {
		if given, err := f.read(context.Background(), b.resolvers.generated, f.field.ArgumentMap(nil)); err == nil {
			f.given = given
			for _, a := range f.field.Arguments {
				b.tree.bytes += givenBytes(a.Value)
			}
			return
		}
	}
	f.argument = b.tree.arguments
	b.tree.arguments++
}

// answer is an empty one with room for as much as the last answers took. What it keeps is more than the limit by what does not count: the names of the root's fields, and
// values of theirs that are null or __typename. So an answer that something was dropped of, and that is not null after all, is too long.
func (t *walkTree) answer(limit int) boundedAnswer {
	uncounted := len(`{}`)
	for i := range t.root.fields {
		uncounted += len(t.root.fields[i].key) + len(`"Subscription"`)
	}
	length := t.length.Load()
	return boundedAnswer{out: make([]byte, 0, min(int(length+length/8)+1<<10, limit)), most: limit + uncounted}
}

// wrote remembers how long an answer was.
func (t *walkTree) wrote(length int) {
	const most = 1 << 20 // one long answer must not make all others take its room
	t.length.Store(int64(min(length, most)))
}
