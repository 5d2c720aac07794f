package expr

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/ordergraph/ordergraph/embedded/internal/attr"
)

// Update is a parsed update expression.
type Update struct {
	sets    []assignment
	removes []Path
	adds    []assignment
	deletes []assignment
}

// assignment is a path and an operand. The action SET, ADD or DELETE applies the operand to the
// value at the path.
type assignment struct {
	path  Path
	value operand
}

type (
	// arithmetic is the sum or the difference of two operands.
	arithmetic struct {
		a, b     operand
		subtract bool
	}
	ifNotExists struct {
		path Path
		b    operand
	}
	listAppend struct{ a, b operand }
	// bracketed is an operand in parentheses. It exists only while the expression is parsed.
	bracketed struct{ operand }
)

func (n arithmetic) walk(visit func(Path))  { n.a.walk(visit); n.b.walk(visit) }
func (n ifNotExists) walk(visit func(Path)) { visit(n.path); n.b.walk(visit) }
func (n listAppend) walk(visit func(Path))  { n.a.walk(visit); n.b.walk(visit) }

// These methods do nothing, but the interface named operand requires them. The function evaluate
// computes the values instead, because it can return an error.
func (n arithmetic) value(attr.Item) (v attr.Value, ok bool)  { return }
func (n ifNotExists) value(attr.Item) (v attr.Value, ok bool) { return }
func (n listAppend) value(attr.Item) (v attr.Value, ok bool)  { return }

// ParseUpdate parses an update expression.
func ParseUpdate(text string, p *Placeholders) (*Update, error) {
	s, err := newParser(updateExpression, text, p)
	if err != nil {
		return nil, err
	}
	u := &Update{}
	seen := map[string]bool{}
	for s.peek().kind != 0 {
		section := strings.ToUpper(s.peek().text)
		if s.peek().kind != 'w' || !slices.Contains([]string{"SET", "REMOVE", "ADD", "DELETE"}, section) {
			return nil, s.unexpected()
		}
		s.next()
		if seen[section] {
			s.deferErrorf("The %q section can only be used once in an update expression;", section)
		}
		seen[section] = true
		for more := true; more; more = s.symbol(",") {
			if err := s.action(u, section); err != nil {
				return nil, err
			}
		}
	}
	if err := s.finish(); err != nil {
		return nil, err
	}
	s.checkOverlap(u.ChangedPaths())
	return u, s.meaning
}

// ChangedPaths returns the document paths that the update changes.
func (u *Update) ChangedPaths() []Path {
	paths := slices.Clone(u.removes)
	for _, as := range [][]assignment{u.sets, u.adds, u.deletes} {
		for _, a := range as {
			paths = append(paths, a.path)
		}
	}
	return paths
}

// ReadPaths returns the document paths that the operands of the update read.
func (u *Update) ReadPaths() (paths []Path) {
	for _, a := range u.sets {
		a.value.walk(func(path Path) { paths = append(paths, path) })
	}
	return paths
}

// action parses one action, such as a = :v in the section SET. section is SET, REMOVE, ADD or
// DELETE.
func (s *parser) action(u *Update, section string) error {
	path, err := s.path()
	if err != nil {
		return err
	}
	switch section {
	case "SET":
		if !s.symbol("=") {
			return s.unexpected()
		}
		value, err := s.assignedValue()
		if err != nil {
			return err
		}
		u.sets = append(u.sets, assignment{path, withoutBrackets(value)})
	case "REMOVE":
		u.removes = append(u.removes, path)
	default:
		if s.peek().kind != ':' {
			return s.unexpected()
		}
		s.countOperator()
		l := s.value()
		switch set := l.Kind >= attr.StringSet; {
		case section == "ADD":
			if l.Kind != 0 && l.Kind != attr.Number && !set {
				s.deferErrorf("Incorrect operand type for operator or function; operator: ADD, operand type: %s, typeSet: ALLOWED_FOR_ADD_OPERAND", longTypeNames[l.Kind])
			}
			u.adds = append(u.adds, assignment{path, l})
		default:
			if l.Kind != 0 && !set {
				s.deferErrorf("Incorrect operand type for operator or function; operator: DELETE, operand type: %s, typeSet: ALLOWED_FOR_DELETE_OPERAND", longTypeNames[l.Kind])
			}
			u.deletes = append(u.deletes, assignment{path, l})
		}
	}
	return nil
}

// longTypeNames maps types to the names that error messages about ADD and DELETE use.
var longTypeNames = map[attr.Kind]string{
	attr.String: "STRING", attr.Number: "NUMBER", attr.Binary: "BINARY", attr.Bool: "BOOLEAN", attr.Null: "NULL",
	attr.Map: "MAP", attr.List: "LIST", attr.StringSet: "STRING_SET", attr.NumberSet: "NUMBER_SET", attr.BinarySet: "BINARY_SET",
}

// assignedValue parses the right side of an assignment in SET.
func (s *parser) assignedValue() (operand, error) {
	first, err := s.term(s.assignedValue)
	if err != nil {
		return nil, err
	}
	a := withoutBrackets(first)
	if _, ok := a.(arithmetic); ok {
		return first, nil // an operator after a sum or difference is a syntax error
	}
	if t := s.peek(); t.kind == 's' && (t.text == "+" || t.text == "-") {
		s.next()
		s.countOperator()
		b, err := s.operandTerm()
		if err != nil {
			return nil, err
		}
		for _, o := range []operand{a, b} {
			s.rejectListAppend(o)
			if l, ok := o.(*literal); ok && l.Kind != 0 && l.Kind != attr.Number {
				s.deferErrorf("Incorrect operand type for operator or function; operator or function: %s, operand type: %s", t.text, l.Kind)
			}
		}
		return arithmetic{a, b, t.text == "-"}, nil
	}
	return first, nil
}

// withoutBrackets returns the operand in parentheses, or o itself if it has no parentheses.
func withoutBrackets(o operand) operand {
	if b, ok := o.(bracketed); ok {
		return b.operand
	}
	return o
}

// operandTerm parses an operand of an operator or a function. It cannot contain an operator.
func (s *parser) operandTerm() (operand, error) {
	o, err := s.term(func() (operand, error) { return s.term(s.operandTerm) })
	return withoutBrackets(o), err
}

// term parses one operand on the right side of an assignment. If the operand is in parentheses, the
// function inner parses what they contain.
func (s *parser) term(inner func() (operand, error)) (operand, error) {
	t := s.peek()
	switch {
	case t.kind == ':':
		return s.value(), nil
	case s.symbol("("):
		o, err := inner()
		if err == nil && !s.symbol(")") {
			err = s.unexpected()
		}
		if _, twice := o.(bracketed); twice {
			s.deferErrorf("The expression has redundant parentheses;")
		}
		return bracketed{o}, err
	case t.kind == 'w' && s.tokens[s.position+1].text == "(":
		return s.updateFunction()
	}
	return s.path()
}

// rejectListAppend records an error if the operand is a call of list_append. DynamoDB allows
// list_append only as the complete value of an assignment.
func (s *parser) rejectListAppend(o operand) {
	if _, ok := o.(listAppend); ok {
		s.deferErrorf(notAllowedHere, "list_append")
	}
}

// updateFunction parses a function call on the right side of an assignment.
func (s *parser) updateFunction() (operand, error) {
	name := s.next().text
	s.countOperator()
	s.next() // skip the opening parenthesis
	var args []operand
	for more := true; more; more = s.symbol(",") {
		o, err := s.operandTerm()
		if err != nil {
			return nil, err
		}
		s.rejectListAppend(o)
		args = append(args, o)
	}
	if !s.symbol(")") {
		return nil, s.unexpected()
	}
	_, conditional := functions[name]
	switch {
	case conditional || name == "size":
		s.deferErrorf("The function is not allowed in an update expression; function: %s", name)
	case !updateFunctions[name]:
		s.deferErrorf("Invalid function name; function: %s", name)
	case len(args) != 2:
		s.deferErrorf("Incorrect number of operands for operator or function; operator or function: %s, number of operands: %d", name, len(args))
	case name == "if_not_exists":
		path, ok := args[0].(Path)
		if !ok {
			s.deferErrorf("Operator or function requires a document path; operator or function: if_not_exists")
		}
		return ifNotExists{path, args[1]}, nil
	default:
		for _, o := range args {
			if l, ok := o.(*literal); ok && l.Kind != 0 && l.Kind != attr.List {
				s.deferErrorf("Incorrect operand type for operator or function; operator or function: list_append, operand type: %s", l.Kind)
			}
		}
		return listAppend{args[0], args[1]}, nil
	}
	return args[0], nil
}

// The errors of an update that is invalid for the item.
var (
	errOperandType      = errors.New("An operand in the update expression has an incorrect data type")
	errMissingAttribute = errors.New("The provided expression refers to an attribute that does not exist in the item")
	errInvalidPath      = errors.New("The document path provided in the update expression is invalid for update")
)

// evaluate returns the value of an operand. item is the item before the update.
func evaluate(o operand, item attr.Item) (attr.Value, error) {
	switch o := o.(type) {
	case arithmetic:
		a, b, err := evaluateTwo(o.a, o.b, item, attr.Number)
		if err != nil {
			return a, err
		}
		return attr.Add(a, b, o.subtract)
	case ifNotExists:
		if v, ok := o.path.Find(item); ok {
			return v, nil
		}
		return evaluate(o.b, item)
	case listAppend:
		a, b, err := evaluateTwo(o.a, o.b, item, attr.List)
		if err != nil {
			return a, err
		}
		return attr.Value{Kind: attr.List, List: slices.Concat(a.List, b.List)}, nil
	}
	v, ok := o.value(item)
	if !ok {
		return v, errMissingAttribute
	}
	return v, nil
}

// evaluateTwo returns the values of the operands x and y. If one of the values does not have the
// given type, it returns errOperandType.
func evaluateTwo(x, y operand, item attr.Item, kind attr.Kind) (a, b attr.Value, err error) {
	if a, err = evaluate(x, item); err != nil {
		return a, b, err
	}
	if b, err = evaluate(y, item); err == nil && (a.Kind != kind || b.Kind != kind) {
		err = errOperandType
	}
	return a, b, err
}

// Apply returns the updated item, and does not modify the original. If the update is invalid for
// the item, Apply returns an error.
func (u *Update) Apply(item attr.Item) (attr.Item, error) {
	next := maps.Clone(item)
	if next == nil {
		next = attr.Item{}
	}
	type result struct {
		path  Path
		value attr.Value
	}
	var results []result
	for _, a := range u.sets {
		v, err := evaluate(a.value, item)
		if err != nil {
			return nil, err
		}
		results = append(results, result{a.path, v})
	}
	for _, a := range u.adds {
		v := a.value.(*literal).Value
		if old, exists := a.path.Find(item); exists {
			var err error
			if v, err = sumOrUnion(old, v); err != nil {
				return nil, err
			}
		}
		results = append(results, result{a.path, v})
	}
	// Sort the results by index, because DynamoDB appends elements beyond the end of a list in the
	// order of their indexes.
	slices.SortStableFunc(results, func(a, b result) int {
		return cmp.Compare(a.path[len(a.path)-1].Index, b.path[len(b.path)-1].Index)
	})
	for _, r := range results {
		if err := setPath(next, r.path, r.value); err != nil {
			return nil, err
		}
	}
	// Remove values after all other actions, because the removal of a list element changes the
	// indexes of the elements behind it.
	removes := slices.Clone(u.removes)
	for _, a := range u.deletes {
		old, exists := a.path.Find(item)
		if !exists {
			if err := checkParentExists(next, a.path); err != nil {
				return nil, err
			}
			continue
		}
		v := a.value.(*literal).Value
		if old.Kind != v.Kind {
			return nil, errOperandType
		}
		left := slices.DeleteFunc(slices.Clone(old.Set), func(e string) bool { return slices.Contains(v.Set, e) })
		if len(left) == 0 {
			removes = append(removes, a.path)
			continue
		}
		if err := setPath(next, a.path, attr.Value{Kind: v.Kind, Set: left}); err != nil {
			return nil, err
		}
	}
	// Remove the deepest values first, and list elements from the end of the list. Otherwise, a
	// removal would change the indexes of values that are removed later.
	slices.SortStableFunc(removes, func(a, b Path) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(b[len(b)-1].Index, a[len(a)-1].Index))
	})
	for _, path := range removes {
		if err := removePath(next, path); err != nil {
			return nil, err
		}
	}
	return next, nil
}

// sumOrUnion returns the sum of two numbers, or the union of two sets.
func sumOrUnion(old, v attr.Value) (attr.Value, error) {
	if old.Kind != v.Kind {
		return v, errOperandType
	}
	if v.Kind == attr.Number {
		return attr.Add(old, v, false)
	}
	elements := slices.Clone(old.Set)
	for _, e := range v.Set {
		if !slices.Contains(elements, e) {
			elements = append(elements, e)
		}
	}
	return attr.NewSet(v.Kind, elements), nil
}

// setPath sets the value at the path in the item. If a list index is beyond the end of the list,
// setPath appends the value to the list.
func setPath(item attr.Item, path Path, v attr.Value) error {
	if len(path) == 1 {
		item[path[0].Name] = v
		return nil
	}
	return editNested(item, path, func(c attr.Value, e Element) attr.Value {
		switch {
		case e.Index < 0:
			c.Map = maps.Clone(c.Map)
			c.Map[e.Name] = v
		case e.Index < len(c.List):
			c.List = slices.Clone(c.List)
			c.List[e.Index] = v
		default:
			c.List = append(slices.Clone(c.List), v)
		}
		return c
	})
}

// removePath deletes the value at the path in the item.
func removePath(item attr.Item, path Path) error {
	if len(path) == 1 {
		delete(item, path[0].Name)
		return nil
	}
	return editNested(item, path, func(c attr.Value, e Element) attr.Value {
		if e.Index < 0 {
			c.Map = maps.Clone(c.Map)
			delete(c.Map, e.Name)
		} else if e.Index < len(c.List) {
			c.List = slices.Delete(slices.Clone(c.List), e.Index, e.Index+1)
		}
		return c
	})
}

// checkParentExists returns an error if the item has no list or map that could contain the last
// element of the path.
func checkParentExists(item attr.Item, path Path) error {
	if len(path) == 1 {
		return nil
	}
	return editNested(item, path, func(c attr.Value, _ Element) attr.Value { return c })
}

// editNested calls the function edit with the list or map that contains the last element of the
// path. It stores the result in copies of the values, because the item before the update contains
// the same values. The path must have at least two elements.
func editNested(item attr.Item, path Path, edit func(attr.Value, Element) attr.Value) error {
	v, ok := item[path[0].Name]
	if !ok {
		return errInvalidPath
	}
	v, err := copyAndEdit(v, path[1:], edit)
	item[path[0].Name] = v
	return err
}

// copyAndEdit calls the function edit with the list or map that contains the last element of the
// path. It returns a copy of container that contains the result.
func copyAndEdit(container attr.Value, path Path, edit func(attr.Value, Element) attr.Value) (attr.Value, error) {
	e := path[0]
	if e.Index < 0 && container.Kind != attr.Map || e.Index >= 0 && container.Kind != attr.List {
		return container, errInvalidPath
	}
	if len(path) == 1 {
		return edit(container, e), nil
	}
	if e.Index < 0 {
		inner, ok := container.Map[e.Name]
		if !ok {
			return container, errInvalidPath
		}
		inner, err := copyAndEdit(inner, path[1:], edit)
		container.Map = maps.Clone(container.Map)
		container.Map[e.Name] = inner
		return container, err
	}
	if e.Index >= len(container.List) {
		return container, errInvalidPath
	}
	inner, err := copyAndEdit(container.List[e.Index], path[1:], edit)
	container.List = slices.Clone(container.List)
	container.List[e.Index] = inner
	return container, err
}
