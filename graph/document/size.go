package document

import (
	"slices"
	"strconv"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/ordergraph/ordergraph/graph/errcode"
)

// size describes a selection set after each fragment spread is replaced by its fragment.
type size struct {
	// depth is the number of levels of nested fields. dataDepth is the same, but does not count the
	// levels below __schema and __type.
	depth, dataDepth int
	// nesting is the number of levels of nested selection sets.
	nesting int
	// lists is the number of levels of nested introspection lists. Only the fields in
	// cyclicIntrospectionLists count.
	lists int
	// fields is the number of fields at the top level. aliases and nodes are the numbers of aliases
	// and nodes at all levels. Counting stops at maxCount, so the numbers cannot overflow.
	fields, aliases, nodes int
}

const maxCount = 1_000_000

// formatCount formats a number for an error message. It describes maxCount as "a million or more",
// because counting stops at this number.
func formatCount(n int) string {
	if n >= maxCount {
		return "a million or more"
	}
	return strconv.Itoa(n)
}

// plus returns the size of a selection set that contains all selections of s and t.
func (s size) plus(t size) size {
	return size{
		depth: max(s.depth, t.depth), dataDepth: max(s.dataDepth, t.dataDepth), nesting: max(s.nesting, t.nesting), lists: max(s.lists, t.lists),
		fields: min(s.fields+t.fields, maxCount), aliases: min(s.aliases+t.aliases, maxCount), nodes: min(s.nodes+t.nodes, maxCount),
	}
}

// measurer measures the size of a document. It measures each fragment only once, so the time is
// proportional to the length of the document.
type measurer struct {
	doc       *ast.QueryDocument
	limits    Limits
	fragments map[string]*ast.FragmentDefinition
	sizes     map[*ast.FragmentDefinition]*size
	// levels is the current depth of the recursion. The recursion stops at maxNesting, so no
	// document can exhaust the stack.
	levels int
	// nodes is the number of nodes of the syntax tree. expanded is the number after each fragment
	// spread is replaced by its fragment.
	nodes, expanded int
	// conditions contains the names of the variables in @skip and @include.
	conditions []string
	// directives is the number of directives in the document. firstExcessDirective is the position
	// of the first directive beyond the limit, or nil if the document is within the limit.
	directives           int
	firstExcessDirective *ast.Position
	errs                 gqlerror.List
	reported             map[string]bool
}

// measure checks the limits of a document before its validation. Its fragments can therefore be
// unknown, duplicate or cyclic. Each exceeded limit causes one error.
func (l Limits) measure(document *ast.QueryDocument) *measurer {
	m := &measurer{doc: document, limits: l, fragments: map[string]*ast.FragmentDefinition{}, sizes: map[*ast.FragmentDefinition]*size{}, reported: map[string]bool{}}
	for _, f := range document.Fragments {
		if m.fragments[f.Name] == nil { // validation rejects duplicate names
			m.fragments[f.Name] = f
		}
	}
	m.document()
	return m
}

// addError adds an error, unless m already contains an error with the same code and format.
func (m *measurer) addError(position *ast.Position, code, format string, args ...any) {
	if !m.reported[code+format] {
		m.reported[code+format] = true
		m.errs = append(m.errs, errcode.New(position, code, format, args...))
	}
}

func (m *measurer) document() {
	for _, o := range m.doc.Operations {
		s := m.operation(o)
		m.expanded = min(m.expanded+s.nodes, maxCount)
		if s.dataDepth > m.limits.Depth {
			m.addError(o.Position, LimitCodes.Depth, "the %s nests fields %d levels deep, and the limit is %d: request the inner records separately", o.Operation, s.dataDepth, m.limits.Depth)
		}
		if s.fields > m.limits.RootFields {
			m.addError(o.Position, LimitCodes.RootFields, "the %s has %s root fields, and the limit is %d: send the fields in several requests", o.Operation, formatCount(s.fields), m.limits.RootFields)
		}
		if s.aliases > m.limits.Aliases {
			m.addError(o.Position, LimitCodes.Aliases, "the %s has %s aliases with its fragments expanded, and the limit is %d: request lists instead of single records, or send several requests", o.Operation, formatCount(s.aliases), m.limits.Aliases)
		}
	}
	for _, f := range m.doc.Fragments {
		m.expanded = min(m.expanded+m.fragment(f).nodes, maxCount)
	}
	if m.firstExcessDirective != nil {
		m.addError(m.firstExcessDirective, LimitCodes.Directives, "the document has %d directives, and the limit is %d: move fields with the same condition into one fragment, or split the document", m.directives, m.limits.Directives)
	}
	if m.expanded > MaxExpandedNodes {
		m.addError(m.doc.Operations[0].Position, LimitCodes.Cost, "the document has more than %d fields and values with its fragments expanded: nest fewer fragment spreads, or send fewer operations", MaxExpandedNodes)
	}
}

func (m *measurer) operation(o *ast.OperationDefinition) size {
	m.nodes++
	m.checkName(o.Name, o.Position)
	s := m.directiveList(o.Directives)
	for _, v := range o.VariableDefinitions {
		m.nodes += 2
		m.checkName(v.Variable, v.Position)
		if v.Type != nil {
			m.checkName(v.Type.Name(), v.Position)
		}
		s = s.plus(m.directiveList(v.Directives)).plus(size{nodes: 1 + m.value(v.DefaultValue, 0)})
	}
	return s.plus(m.selections(o.SelectionSet))
}

func (m *measurer) fragment(f *ast.FragmentDefinition) size {
	if known := m.sizes[f]; known != nil {
		if known.nodes < 0 {
			m.addError(f.Position, errcode.BadUserInput, "fragment %q spreads itself, directly or through other fragments: remove the cycle", f.Name)
			return size{}
		}
		return *known
	}
	m.nodes++
	s := size{nodes: -1} // -1 until the fragment has been measured, to detect cycles
	m.sizes[f] = &s
	m.checkName(f.Name, f.Position)
	m.checkName(f.TypeCondition, f.Position)
	s = m.directiveList(f.Directives).plus(m.selections(f.SelectionSet))
	return s
}

func (m *measurer) selections(set ast.SelectionSet) size {
	if len(set) == 0 {
		return size{}
	}
	if m.levels >= maxNesting {
		m.addError(set[0].GetPosition(), LimitCodes.Depth, "selection sets are nested more than %d levels deep: reduce the nesting", maxNesting)
		return size{}
	}
	m.levels++
	defer func() { m.levels-- }()
	var total size
	for _, s := range set {
		m.nodes++
		var part size
		switch s := s.(type) {
		case *ast.Field:
			part = m.field(s)
		case *ast.InlineFragment:
			m.checkName(s.TypeCondition, s.Position)
			part = m.directiveList(s.Directives).plus(m.selections(s.SelectionSet)).plus(size{nodes: 1})
		case *ast.FragmentSpread:
			part = m.directiveList(s.Directives).plus(size{nodes: 1})
			if f := m.fragments[s.Name]; f != nil {
				part = part.plus(m.fragment(f))
			} else {
				m.checkName(s.Name, s.Position)
			}
		}
		total = total.plus(part)
	}
	// A fragment is measured only at its first spread, so m.levels does not limit the nesting of later
	// spreads. They can be nested more deeply, so the total nesting is also checked here.
	if total.nesting++; total.nesting > maxNesting {
		m.addError(set[0].GetPosition(), LimitCodes.Depth, "selection sets are nested more than %d levels deep: reduce the nesting", maxNesting)
	}
	return total
}

// cyclicIntrospectionLists contains the introspection fields that return lists and can be nested
// without end. An example is fields { type { fields { name } } }.
var cyclicIntrospectionLists = map[string]bool{"fields": true, "inputFields": true, "interfaces": true, "possibleTypes": true}

func (m *measurer) field(f *ast.Field) size {
	m.checkName(f.Name, f.Position)
	own := m.directiveList(f.Directives).plus(size{nodes: 1})
	if f.Alias != f.Name {
		m.checkName(f.Alias, f.Position)
		own.aliases++
	}
	for _, a := range f.Arguments {
		m.nodes++
		m.checkName(a.Name, a.Position)
		own.nodes += 1 + m.value(a.Value, 0)
	}
	s := m.selections(f.SelectionSet).plus(own)
	s.fields = 1
	s.depth++
	s.dataDepth++
	if cyclicIntrospectionLists[f.Name] {
		s.lists++
	}
	if f.Name == "__schema" || f.Name == "__type" {
		if s.lists > m.limits.IntrospectionDepth {
			m.addError(f.Position, LimitCodes.IntrospectionDepth, "%s nests lists of the schema (fields, inputFields, interfaces, possibleTypes) %d levels deep, and the limit is %d: request the inner types by name, with __type", f.Name, s.lists, m.limits.IntrospectionDepth)
		} else if s.depth-1 > maxIntrospectionNesting {
			m.addError(f.Position, LimitCodes.IntrospectionDepth, "%s nests fields %d levels deep, and the limit is %d: select fewer levels of ofType", f.Name, s.depth-1, maxIntrospectionNesting)
		}
		s.dataDepth = 1
	}
	return s
}

func (m *measurer) directiveList(directives ast.DirectiveList) (s size) {
	for _, d := range directives {
		m.checkName(d.Name, d.Position)
		if m.directives++; m.directives == m.limits.Directives+1 {
			m.firstExcessDirective = d.Position
		}
		s.nodes++
		m.nodes++
		for _, a := range d.Arguments {
			m.nodes++
			m.checkName(a.Name, a.Position)
			s.nodes += 1 + m.value(a.Value, 0)
			if (d.Name == "skip" || d.Name == "include") && a.Value.Kind == ast.Variable && !slices.Contains(m.conditions, a.Value.Raw) {
				m.conditions = append(m.conditions, a.Value.Raw)
			}
		}
	}
	return s
}

// value checks and counts the values within a list or an object v, at all levels. For any other v,
// the result is 0. depth is the number of lists and objects that contain v.
func (m *measurer) value(v *ast.Value, depth int) (nodes int) {
	if v == nil {
		return 0
	}
	m.nodes++
	switch v.Kind {
	case ast.ListValue, ast.ObjectValue:
		if depth >= m.limits.ListDepth {
			m.addError(v.Position, LimitCodes.ListDepth, "a value nests lists and objects more than %d levels deep: send fewer levels, because no argument of this schema needs more", m.limits.ListDepth)
			return 0
		}
	case ast.EnumValue, ast.Variable:
		m.checkName(v.Raw, v.Position)
	}
	for _, c := range v.Children {
		m.nodes++
		m.checkName(c.Name, c.Position)
		nodes += 1 + m.value(c.Value, depth+1)
	}
	return nodes
}

func (m *measurer) checkName(name string, position *ast.Position) {
	if len(name) > maxName {
		m.addError(position, errcode.BadUserInput, "a name in the document has %d bytes, and the limit is %d: use a shorter name", len(name), maxName)
	}
}
