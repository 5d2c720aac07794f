package document

import (
	"slices"
	"strconv"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/ordergraph/ordergraph/graph/errcode"
)

// size is how large a selection set is where every spread is replaced by its fragment. Numbers stop
// at many.
type size struct {
	// depth is how many fields stand inside one another; below is the same without those of the
	// schema.
	depth, below int
	// nesting is the same for selection sets.
	nesting int
	// lists is how many of the schema's lists stand inside one another.
	lists int
	// fields are the fields at the top, aliases all that have one, nodes everything.
	fields, aliases, nodes int
}

const many = 1_000_000

// told is a number for a message.
func told(n int) string {
	if n >= many {
		return "a million or more"
	}
	return strconv.Itoa(n)
}

// and is the size of two selections side by side.
func (s size) and(t size) size {
	return size{
		depth: max(s.depth, t.depth), below: max(s.below, t.below), nesting: max(s.nesting, t.nesting), lists: max(s.lists, t.lists),
		fields: min(s.fields+t.fields, many), aliases: min(s.aliases+t.aliases, many), nodes: min(s.nodes+t.nodes, many),
	}
}

// measuring takes the size of a document: of each fragment once, so that it takes as long as the
// document is, whatever the fragments do.
type measuring struct {
	doc       *ast.QueryDocument
	limits    Limits
	fragments map[string]*ast.FragmentDefinition
	sizes     map[*ast.FragmentDefinition]*size
	// levels is how deep the recursion is: it stops at maxNesting, so that no document can use up
	// the stack.
	levels int
	// nodes is the number of nodes of the syntax tree, and expanded the number with every spread
	// replaced by its fragment. conditions are the variables of @skip and @include.
	nodes, expanded int
	conditions      []string
	// directives are how many there are; overDirectives is the first that is over the limit.
	directives     int
	overDirectives *ast.Position
	errs           gqlerror.List
	told           map[string]bool
}

// measure takes the size of a document, and refuses a document that was parsed and not yet
// validated, so fragments may be unknown, come twice or go in circles. It takes time in proportion
// to the document's length, whatever its fragments do, and its recursion is bounded.
//
// Errors: one for each limit that the document is over, with the limit's code; TOO_DEEP,
// INTROSPECTION_TOO_DEEP and TOO_EXPENSIVE also for the bounds that no setting moves; and
// BAD_USER_INPUT for fragments that go in circles and names that are too long.
func (l Limits) measure(document *ast.QueryDocument) *measuring {
	m := &measuring{doc: document, limits: l, fragments: map[string]*ast.FragmentDefinition{}, sizes: map[*ast.FragmentDefinition]*size{}, told: map[string]bool{}}
	for _, f := range document.Fragments {
		if m.fragments[f.Name] == nil { // validation refuses the second of a name
			m.fragments[f.Name] = f
		}
	}
	m.document()
	return m
}

// refuse tells the first error of each kind.
func (m *measuring) refuse(position *ast.Position, code, format string, args ...any) {
	if !m.told[code+format] {
		m.told[code+format] = true
		m.errs = append(m.errs, errcode.New(position, code, format, args...))
	}
}

func (m *measuring) document() {
	for _, o := range m.doc.Operations {
		s := m.operation(o)
		m.expanded = min(m.expanded+s.nodes, many)
		if s.below > m.limits.Depth {
			m.refuse(o.Position, Codes.Depth, "the %s has fields %d deep inside one another, and the limit is %d: ask for the inner records with a request of their own", o.Operation, s.below, m.limits.Depth)
		}
		if s.fields > m.limits.RootFields {
			m.refuse(o.Position, Codes.RootFields, "the %s has %s fields at its root, and the limit is %d: send some of them as another request", o.Operation, told(s.fields), m.limits.RootFields)
		}
		if s.aliases > m.limits.Aliases {
			m.refuse(o.Position, Codes.Aliases, "the %s has %s aliases, counted wherever a fragment is spread, and the limit is %d: ask for lists instead of one record at a time, or send several requests", o.Operation, told(s.aliases), m.limits.Aliases)
		}
	}
	for _, f := range m.doc.Fragments {
		m.expanded = min(m.expanded+m.fragment(f).nodes, many)
	}
	if m.overDirectives != nil {
		m.refuse(m.overDirectives, Codes.Directives, "the document has %d directives, and the limit is %d: put fields that come and go together into one fragment, or into documents of their own", m.directives, m.limits.Directives)
	}
	if m.expanded > MaxExpanded {
		m.refuse(m.doc.Operations[0].Position, Codes.Cost, "the document's fragments make it longer than %d fields and values: spread them less often inside one another, or send fewer operations", MaxExpanded)
	}
}

func (m *measuring) operation(o *ast.OperationDefinition) size {
	m.nodes++
	m.name(o.Name, o.Position)
	s := m.directiveList(o.Directives)
	for _, v := range o.VariableDefinitions {
		m.nodes += 2
		m.name(v.Variable, v.Position)
		if v.Type != nil {
			m.name(v.Type.Name(), v.Position)
		}
		s = s.and(m.directiveList(v.Directives)).and(size{nodes: 1 + m.value(v.DefaultValue, 0)})
	}
	return s.and(m.selections(o.SelectionSet))
}

func (m *measuring) fragment(f *ast.FragmentDefinition) size {
	if known := m.sizes[f]; known != nil {
		if known.nodes < 0 {
			m.refuse(f.Position, errcode.BadUserInput, "fragment %q is spread inside itself: take it out of the fragments that it spreads", f.Name)
			return size{}
		}
		return *known
	}
	m.nodes++
	s := size{nodes: -1} // under way
	m.sizes[f] = &s
	m.name(f.Name, f.Position)
	m.name(f.TypeCondition, f.Position)
	s = m.directiveList(f.Directives).and(m.selections(f.SelectionSet))
	return s
}

func (m *measuring) selections(set ast.SelectionSet) size {
	if len(set) == 0 {
		return size{}
	}
	if m.levels >= maxNesting {
		m.refuse(set[0].GetPosition(), Codes.Depth, "selections stand more than %d levels inside one another: ask for less at once", maxNesting)
		return size{}
	}
	m.levels++
	defer func() { m.levels-- }()
	var whole size
	for _, s := range set {
		m.nodes++
		var one size
		switch s := s.(type) {
		case *ast.Field:
			one = m.field(s)
		case *ast.InlineFragment:
			m.name(s.TypeCondition, s.Position)
			one = m.directiveList(s.Directives).and(m.selections(s.SelectionSet)).and(size{nodes: 1})
		case *ast.FragmentSpread:
			one = m.directiveList(s.Directives).and(size{nodes: 1})
			if f := m.fragments[s.Name]; f != nil {
				one = one.and(m.fragment(f))
			} else {
				m.name(s.Name, s.Position)
			}
		}
		whole = whole.and(one)
	}
	// A fragment may have been measured at a lower level than it is spread at, so its levels are
	// added up here.
	if whole.nesting++; whole.nesting > maxNesting {
		m.refuse(set[0].GetPosition(), Codes.Depth, "selections stand more than %d levels inside one another: ask for less at once", maxNesting)
	}
	return whole
}

// schemaLists are the lists by which introspection goes round and round in the schema.
var schemaLists = map[string]bool{"fields": true, "inputFields": true, "interfaces": true, "possibleTypes": true}

func (m *measuring) field(f *ast.Field) size {
	m.name(f.Name, f.Position)
	own := m.directiveList(f.Directives).and(size{nodes: 1})
	if f.Alias != f.Name {
		m.name(f.Alias, f.Position)
		own.aliases++
	}
	for _, a := range f.Arguments {
		m.nodes++
		m.name(a.Name, a.Position)
		own.nodes += 1 + m.value(a.Value, 0)
	}
	s := m.selections(f.SelectionSet).and(own)
	s.fields = 1
	s.depth++
	s.below++
	if schemaLists[f.Name] {
		s.lists++
	}
	if f.Name == "__schema" || f.Name == "__type" {
		if s.lists > m.limits.IntrospectionDepth {
			m.refuse(f.Position, Codes.IntrospectionDepth, "%s has %d lists of the schema (fields, inputFields, interfaces, possibleTypes) inside one another, and the limit is %d: ask for the inner types by name, with __type", f.Name, s.lists, m.limits.IntrospectionDepth)
		} else if s.depth-1 > maxSchemaNesting {
			m.refuse(f.Position, Codes.IntrospectionDepth, "%s has fields %d levels deep below it, and the limit is %d: ask for fewer levels of ofType", f.Name, s.depth-1, maxSchemaNesting)
		}
		s.below = 1
	}
	return s
}

func (m *measuring) directiveList(directives ast.DirectiveList) (s size) {
	for _, d := range directives {
		m.name(d.Name, d.Position)
		if m.directives++; m.directives == m.limits.Directives+1 {
			m.overDirectives = d.Position
		}
		s.nodes++
		m.nodes++
		for _, a := range d.Arguments {
			m.nodes++
			m.name(a.Name, a.Position)
			s.nodes += 1 + m.value(a.Value, 0)
			if (d.Name == "skip" || d.Name == "include") && a.Value.Kind == ast.Variable && !slices.Contains(m.conditions, a.Value.Raw) {
				m.conditions = append(m.conditions, a.Value.Raw)
			}
		}
	}
	return s
}

// value counts the values inside a value.
func (m *measuring) value(v *ast.Value, depth int) (nodes int) {
	if v == nil {
		return 0
	}
	m.nodes++
	switch v.Kind {
	case ast.ListValue, ast.ObjectValue:
		if depth >= m.limits.ListDepth {
			m.refuse(v.Position, Codes.ListDepth, "lists and objects stand more than %d inside one another in a value, which is the limit: no field here takes so many", m.limits.ListDepth)
			return 0
		}
	case ast.EnumValue, ast.Variable:
		m.name(v.Raw, v.Position)
	}
	for _, c := range v.Children {
		m.nodes++
		m.name(c.Name, c.Position)
		nodes += 1 + m.value(c.Value, depth+1)
	}
	return nodes
}

func (m *measuring) name(name string, position *ast.Position) {
	if len(name) > maxName {
		m.refuse(position, errcode.BadUserInput, "a name in the document has %d bytes, and can have %d", len(name), maxName)
	}
}
