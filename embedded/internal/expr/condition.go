package expr

import (
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/ordergraph/ordergraph/embedded/internal/attr"
)

// Predicate is a parsed condition or filter expression. A nil Predicate matches every item.
type Predicate struct{ root node }

// Matches reports whether the condition is true for the item.
func (p *Predicate) Matches(item attr.Item) bool { return p == nil || p.root.matches(item) }

// Paths returns the document paths that the condition reads. It returns nil for a nil Predicate.
func (p *Predicate) Paths() (paths []Path) {
	if p != nil {
		p.root.walk(func(path Path) { paths = append(paths, path) })
	}
	return paths
}

// ParseCondition parses a condition. kind is ConditionExpression or FilterExpression.
func ParseCondition(kind, text string, p *Placeholders) (*Predicate, error) {
	s, err := newParser(kind, text, p)
	if err != nil {
		return nil, err
	}
	root, err := s.or()
	if err == nil {
		err = s.finish()
	}
	return &Predicate{root}, err
}

type (
	// node is a condition: a comparison, a function, or a combination of conditions.
	node interface {
		matches(attr.Item) bool
		walk(visit func(Path))
	}
	// operand is an expression that has a value, such as a path or a placeholder. Conditions and
	// updates contain operands.
	operand interface {
		value(attr.Item) (attr.Value, bool)
		walk(visit func(Path))
	}

	and     struct{ a, b node }
	or      struct{ a, b node }
	not     struct{ a node }
	compare struct {
		operator string
		a, b     operand
	}
	between  struct{ a, low, high operand }
	in       struct{ operands []operand }
	function struct {
		name string
		args []operand
	}

	literal struct{ attr.Value }
	sizeOf  struct{ a operand }
	// group is a condition in parentheses. It allows the parser to detect redundant parentheses.
	group struct{ node }
)

func (n and) matches(item attr.Item) bool { return n.a.matches(item) && n.b.matches(item) }
func (n or) matches(item attr.Item) bool  { return n.a.matches(item) || n.b.matches(item) }
func (n not) matches(item attr.Item) bool { return !n.a.matches(item) }

func (n and) walk(visit func(Path))      { n.a.walk(visit); n.b.walk(visit) }
func (n or) walk(visit func(Path))       { n.a.walk(visit); n.b.walk(visit) }
func (n not) walk(visit func(Path))      { n.a.walk(visit) }
func (n compare) walk(visit func(Path))  { n.a.walk(visit); n.b.walk(visit) }
func (n between) walk(visit func(Path))  { n.a.walk(visit); n.low.walk(visit); n.high.walk(visit) }
func (n in) walk(visit func(Path))       { walkAll(n.operands, visit) }
func (n function) walk(visit func(Path)) { walkAll(n.args, visit) }
func (n *literal) walk(func(Path))       {}
func (n sizeOf) walk(visit func(Path))   { n.a.walk(visit) }
func (p Path) walk(visit func(Path))     { visit(p) }

func walkAll(operands []operand, visit func(Path)) {
	for _, o := range operands {
		o.walk(visit)
	}
}

func (n *literal) value(attr.Item) (attr.Value, bool)  { return n.Value, true }
func (p Path) value(item attr.Item) (attr.Value, bool) { return p.Find(item) }
func (n sizeOf) value(item attr.Item) (attr.Value, bool) {
	v, ok := n.a.value(item)
	if !ok {
		return v, false
	}
	size := 0
	switch v.Kind {
	case attr.String:
		for _, r := range v.Text { // DynamoDB counts UTF-16 code units
			size += utf16.RuneLen(r)
		}
	case attr.Binary:
		size = len(v.Text)
	case attr.Map:
		size = len(v.Map)
	case attr.List:
		size = len(v.List)
	case attr.StringSet, attr.NumberSet, attr.BinarySet:
		size = len(v.Set)
	default:
		return v, false
	}
	return attr.NewInt(size), true
}

func (n compare) matches(item attr.Item) bool {
	a, aExists := n.a.value(item)
	b, bExists := n.b.value(item)
	switch n.operator {
	case "=":
		return aExists && bExists && a.Equal(b)
	case "<>":
		return !aExists || !bExists || !a.Equal(b)
	}
	if !aExists || !bExists || a.Kind != b.Kind || !a.Kind.Ordered() {
		return false
	}
	switch order := a.Compare(b); n.operator {
	case "<":
		return order < 0
	case "<=":
		return order <= 0
	case ">":
		return order > 0
	default:
		return order >= 0
	}
}

func (n between) matches(item attr.Item) bool {
	return compare{">=", n.a, n.low}.matches(item) && compare{"<=", n.a, n.high}.matches(item)
}

func (n in) matches(item attr.Item) bool {
	return slices.ContainsFunc(n.operands[1:], func(o operand) bool { return compare{"=", n.operands[0], o}.matches(item) })
}

func (n function) matches(item attr.Item) bool {
	v, exists := n.args[0].value(item)
	switch n.name {
	case "attribute_exists":
		return exists
	case "attribute_not_exists":
		return !exists
	}
	arg, ok := n.args[1].value(item)
	if !exists || !ok {
		return false
	}
	switch n.name {
	case "attribute_type":
		return arg.Kind == attr.String && v.Kind == attr.KindOf(arg.Text)
	case "begins_with":
		return v.Kind == arg.Kind && (v.Kind == attr.String || v.Kind == attr.Binary) && strings.HasPrefix(v.Text, arg.Text)
	default: // contains
		switch v.Kind {
		case attr.String, attr.Binary:
			return v.Kind == arg.Kind && strings.Contains(v.Text, arg.Text)
		case attr.List:
			return slices.ContainsFunc(v.List, arg.Equal)
		case attr.StringSet, attr.NumberSet, attr.BinarySet:
			return arg.Kind == v.Kind-attr.StringSet+attr.String && slices.Contains(v.Set, arg.Text)
		}
		return false
	}
}

func (s *parser) or() (node, error) {
	a, err := s.and()
	for err == nil && s.keyword("OR") {
		s.countOperator()
		var b node
		b, err = s.and()
		a = or{a, b}
	}
	return a, err
}

func (s *parser) and() (node, error) {
	a, err := s.not()
	for err == nil && s.keyword("AND") {
		s.countOperator()
		var b node
		b, err = s.not()
		a = and{a, b}
	}
	return a, err
}

func (s *parser) not() (node, error) {
	if s.keyword("NOT") {
		s.countOperator()
		a, err := s.not()
		return not{a}, err
	}
	return s.condition()
}

// condition parses a condition in parentheses, a comparison or a function call.
func (s *parser) condition() (node, error) {
	if t := s.peek(); t.kind == 's' && t.text == "(" {
		start := s.position
		s.next()
		if n, err := s.or(); err == nil && s.symbol(")") {
			if _, twice := n.(group); twice {
				s.deferErrorf("The expression has redundant parentheses;")
			}
			return group{n}, nil
		} else if err != nil && !s.isParenthesizedOperand(start) {
			return nil, err
		}
		s.position = start
	}
	if t := s.peek(); t.kind == 'w' && s.tokens[s.position+1].text == "(" && functions[t.text] > 0 {
		return s.function()
	}
	a, err := s.operand()
	if err != nil {
		return nil, err
	}
	return s.comparison(a)
}

// kindOf returns the type of an operand. If the type depends on the item, kindOf returns 0.
func kindOf(o operand) attr.Kind {
	switch o := o.(type) {
	case *literal:
		return o.Kind
	case sizeOf:
		return attr.Number
	}
	return 0
}

// isParenthesizedOperand reports whether an operand in parentheses begins at the token with the
// index start. An example is (a).
func (s *parser) isParenthesizedOperand(start int) bool {
	position := s.position
	defer func() { s.position = position }()
	s.position = start
	_, err := s.operand()
	return err == nil
}

// comparison parses the rest of a comparison. a is the first operand, which is already parsed.
func (s *parser) comparison(a operand) (node, error) {
	t := s.peek()
	switch {
	case t.kind == 's' && slices.Contains([]string{"=", "<>", "<", "<=", ">", ">="}, t.text):
		s.next()
		s.countOperator()
		b, err := s.operand()
		if err != nil {
			return nil, err
		}
		if t.text != "=" && t.text != "<>" {
			s.requireOrdered(t.text, a, b)
		}
		s.requireDistinct(t.text, a, b)
		return compare{t.text, a, b}, nil
	case s.keyword("BETWEEN"):
		s.countOperator()
		low, err := s.operand()
		if err != nil {
			return nil, err
		}
		if !s.keyword("AND") {
			return nil, s.unexpected()
		}
		high, err := s.operand()
		if err != nil {
			return nil, err
		}
		s.requireOrdered("BETWEEN", a, low, high)
		s.requireDistinct("BETWEEN", a, low, high)
		s.checkBounds(low, high)
		return between{a, low, high}, nil
	case s.keyword("IN"):
		s.countOperator()
		args, err := s.arguments()
		if err != nil {
			return nil, err
		}
		if len(args) > 100 {
			s.deferErrorf("Incorrect number of operands for operator or function; operator or function: IN, number of operands: %d", len(args)+1)
		}
		s.requireDistinct("IN", append([]operand{a}, args...)...)
		return in{append([]operand{a}, args...)}, nil
	}
	if _, ok := a.(sizeOf); ok && s.endsCondition() {
		s.deferErrorf(notAllowedHere, "size")
		return compare{"=", a, a}, nil
	}
	return nil, s.unexpected()
}

// endsCondition reports whether the next token can follow a complete condition. It ignores closing
// parentheses, because an operand can be in parentheses, too.
func (s *parser) endsCondition() bool {
	return s.peek().kind == 0 || s.peekKeyword("AND") || s.peekKeyword("OR")
}

// notAllowedHere is the error message for a function whose result cannot be used at its position.
const notAllowedHere = "The function is not allowed to be used this way" + " in an expression; function: %s"

// updateFunctions contains the functions of update expressions.
var updateFunctions = map[string]bool{"if_not_exists": true, "list_append": true}

// requireOrdered records an error if an operand is a literal of a type without an order, such as
// BOOL.
func (s *parser) requireOrdered(operator string, operands ...operand) {
	for _, o := range operands {
		if l, ok := o.(*literal); ok && l.Kind != 0 && !l.Kind.Ordered() {
			s.deferErrorf("Incorrect operand type for operator or function; operator or function: %s, operand type: %s", operator, l.Kind)
		}
	}
}

// requireDistinct records an error if the first operand is a path and another operand is the same
// path.
func (s *parser) requireDistinct(operator string, operands ...operand) {
	first, ok := operands[0].(Path)
	if !ok {
		return
	}
	for _, o := range operands[1:] {
		if p, ok := o.(Path); ok && slices.Equal(first, p) {
			s.deferErrorf("The first operand must be distinct from the remaining operands for this operator or function; operator: %s, first operand: %s", operator, first)
		}
	}
}

// checkBounds records an error if the bounds of BETWEEN are literals of different types, or if the
// lower bound exceeds the upper bound.
func (s *parser) checkBounds(low, high operand) {
	l, okLow := low.(*literal)
	h, okHigh := high.(*literal)
	if !okLow || !okHigh || !l.Kind.Ordered() || !h.Kind.Ordered() {
		return
	}
	bounds := func(text string) {
		s.deferErrorf(text+"; lower bound operand: AttributeValue: %s, upper bound operand: AttributeValue: %s", describeValue(l.Value), describeValue(h.Value))
	}
	if l.Kind != h.Kind {
		bounds("The BETWEEN operator requires same data type for lower and upper bounds")
	} else if l.Compare(h.Value) > 0 {
		bounds("The BETWEEN operator requires upper bound to be greater than or equal to lower bound")
	}
}

// describeValue returns a value in the notation of DynamoDB's error messages.
func describeValue(v attr.Value) string { return "{" + v.Kind.String() + ":" + v.Text + "}" }

// arguments parses a list of operands in parentheses.
func (s *parser) arguments() (args []operand, err error) {
	if !s.symbol("(") {
		return nil, s.unexpected()
	}
	for {
		o, err := s.operand()
		if err != nil {
			return nil, err
		}
		args = append(args, o)
		if s.symbol(")") {
			return args, nil
		}
		if !s.symbol(",") {
			return nil, s.unexpected()
		}
	}
}

// functions contains the functions that return true or false. It maps the name of each function to
// the number of operands.
var functions = map[string]int{"attribute_exists": 1, "attribute_not_exists": 1, "attribute_type": 2, "begins_with": 2, "contains": 2}

// function parses a call of a function that returns true or false. The method operand parses the
// calls of all other functions.
func (s *parser) function() (node, error) {
	name := s.next().text
	s.countOperator()
	args, err := s.arguments()
	if err != nil {
		return nil, err
	}
	if len(args) == functions[name] {
		s.checkArguments(name, args)
	} else {
		s.deferErrorf("Incorrect number of operands for operator or function; operator or function: %s, number of operands: %d", name, len(args))
	}
	return function{name, args}, nil
}

// checkArguments validates the operands of a function.
func (s *parser) checkArguments(name string, args []operand) {
	wrong := func(kind attr.Kind) {
		s.deferErrorf("Incorrect operand type for operator or function; operator or function: %s, operand type: %s", name, kind)
	}
	if len(args) == 1 { // attribute_exists or attribute_not_exists
		if _, ok := args[0].(Path); !ok {
			s.deferErrorf("Operator or function requires a document path; operator or function: %s", name)
		}
		return
	}
	l, ok := args[1].(*literal)
	switch {
	case name == "attribute_type" && !ok && kindOf(args[1]) != 0:
		wrong(kindOf(args[1]))
	case name == "attribute_type" && !ok:
		s.deferErrorf("Incorrect operand type for operator or function; operator or function: attribute_type, operand type: {NS,SS,L,BS,N,M,B,BOOL,NULL,S}")
	case name == "attribute_type" && l.Kind != attr.String && l.Kind != 0:
		wrong(l.Kind)
	case name == "attribute_type" && l.Kind != 0 && attr.KindOf(l.Text) == 0:
		s.deferErrorf("Invalid attribute type name found; type: %s, valid types: {B,NULL,SS,BOOL,L,BS,N,NS,S,M}", l.Text)
	case name == "begins_with":
		for _, a := range args {
			if kind := kindOf(a); kind != 0 && kind != attr.String && kind != attr.Binary {
				wrong(kind)
			}
		}
	}
	s.requireDistinct(name, args...)
}

// operand parses a path, a placeholder for a value, or a call of size().
func (s *parser) operand() (operand, error) {
	t := s.peek()
	switch {
	case t.kind == ':':
		return s.value(), nil
	case s.symbol("("):
		o, err := s.operand()
		if err == nil && !s.symbol(")") {
			err = s.unexpected()
		}
		return o, err
	case t.kind == 'w' && s.tokens[s.position+1].text == "(":
		s.next()
		s.countOperator()
		args, err := s.arguments()
		if err != nil {
			return nil, err
		}
		switch {
		case updateFunctions[t.text]:
			s.deferErrorf("The function is not allowed in a condition expression; function: %s", t.text)
		case t.text != "size" && functions[t.text] == 0:
			s.deferErrorf("Invalid function name; function: %s", t.text)
		case t.text != "size":
			s.deferErrorf(notAllowedHere, t.text)
		case len(args) != 1:
			s.deferErrorf("Incorrect number of operands for operator or function; operator or function: size, number of operands: %d", len(args))
		default:
			if kind := kindOf(args[0]); kind == attr.Number || kind == attr.Bool || kind == attr.Null {
				s.deferErrorf("Incorrect operand type for operator or function; operator or function: size, operand type: %s", kind)
			}
		}
		return sizeOf{args[0]}, nil
	}
	return s.path()
}
