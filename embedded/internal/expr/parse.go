// Package expr parses and evaluates DynamoDB's expressions: condition, filter, key condition,
// projection and update expressions.
//
// Every error has the message that DynamoDB returns in a ValidationException.
//
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Expressions.html
package expr

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/ordergraph/ordergraph/embedded/internal/attr"
)

// The names of the expression parameters. Error messages contain these names.
const (
	ConditionExpression    = "ConditionExpression"
	FilterExpression       = "FilterExpression"
	KeyConditionExpression = "KeyConditionExpression"
	projectionExpression   = "ProjectionExpression"
	updateExpression       = "UpdateExpression"
)

// Limits of expressions.
//
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
const (
	maxExpressionBytes  = 4096
	maxOperators        = 300
	maxPlaceholderBytes = 255
)

// Placeholders contains the ExpressionAttributeNames and ExpressionAttributeValues of one request.
type Placeholders struct {
	Names  map[string]string
	Values map[string]attr.Value
	// Older reports whether the request is a Scan or a transaction. For these requests, DynamoDB
	// validates values less strictly and uses older error messages.
	Older bool

	used map[string]bool
}

// Check validates the placeholders and their values. hasExpression reports whether the request
// contains an expression that may use placeholders.
func (p *Placeholders) Check(hasExpression bool) error {
	if p.Names == nil && p.Values == nil {
		return nil
	}
	if err := checkPlaceholderNames("Names", maps.Keys(p.Names), '#'); err != nil {
		return err
	}
	if err := checkPlaceholderNames("Values", maps.Keys(p.Values), ':'); err != nil {
		return err
	}
	if !hasExpression && p.Names != nil {
		return errors.New("ExpressionAttributeNames can only be specified when using expressions")
	}
	if !hasExpression && p.Values != nil {
		return errors.New("ExpressionAttributeValues can only be specified when using expressions")
	}
	switch {
	case p.Names != nil && len(p.Names) == 0:
		return errors.New("ExpressionAttributeNames must not be empty")
	case p.Values != nil && len(p.Values) == 0:
		return errors.New("ExpressionAttributeValues must not be empty")
	}
	for _, placeholder := range slices.Sorted(maps.Keys(p.Names)) {
		if err := attr.CheckName(p.Names[placeholder]); err != nil {
			return fmt.Errorf("ExpressionAttributeNames contains invalid value: %w for key %s", err, placeholder)
		}
	}
	first, failed := "", error(nil)
	for name := range p.Values {
		v, err := p.normalize(name)
		if err != nil && (failed == nil || name < first) {
			first, failed = name, err
		}
		p.Values[name] = v
	}
	return failed
}

// checkPlaceholderNames returns an error if a placeholder is invalid. A valid placeholder consists
// of the byte mark and a name. If several placeholders are invalid, the error is about the
// alphabetically first one.
func checkPlaceholderNames(kind string, names iter.Seq[string], mark byte) error {
	first, found := "", false
	for name := range names {
		valid := len(name) >= 2 && len(name) <= maxPlaceholderBytes && name[0] == mark && skipWhile(name, 1, isNameByte) == len(name)
		if !valid && (!found || name < first) {
			first, found = name, true
		}
	}
	switch {
	case !found:
		return nil
	case len(first) > maxPlaceholderBytes:
		return fmt.Errorf("ExpressionAttribute%s contains invalid key: The expression attribute map contains a key that is too long; size of key: %d", kind, len(first))
	}
	return fmt.Errorf("ExpressionAttribute%s contains invalid key: Syntax error; key: %q", kind, first)
}

// normalize validates and normalizes the value of the placeholder with the given name.
func (p *Placeholders) normalize(name string) (attr.Value, error) {
	if !p.Older {
		return p.Values[name].Normalize()
	}
	v, err := p.Values[name].NormalizeOperand()
	if err != nil {
		err = fmt.Errorf("ExpressionAttributeValues contains invalid value: %w for key %s", attr.OlderMessage(err), name)
	}
	return v, err
}

// CheckAllUsed returns an error if the request contains a placeholder that no expression uses.
func (p *Placeholders) CheckAllUsed() error {
	if len(p.used) == len(p.Names)+len(p.Values) {
		return nil
	}
	unused := func(names []string) string {
		return strings.Join(slices.DeleteFunc(names, func(name string) bool { return p.used[name] }), ", ")
	}
	if names := unused(slices.Sorted(maps.Keys(p.Names))); names != "" {
		return fmt.Errorf("Value provided in ExpressionAttributeNames unused in expressions: keys: {%s}", names)
	}
	if names := unused(slices.Sorted(maps.Keys(p.Values))); names != "" {
		return fmt.Errorf("Value provided in ExpressionAttributeValues unused in expressions: keys: {%s}", names)
	}
	return nil
}

// token is a word, a placeholder, a number or a symbol of an expression.
type token struct {
	// kind is 'w' for a word, '0' for a number and 's' for a symbol. It is '#' or ':' for a
	// placeholder, and 0 for the end of the expression.
	kind       byte
	start, end uint16
	text       string
}

func isLetter(c byte) bool   { return 'a' <= c|0x20 && c|0x20 <= 'z' || c == '_' }
func isDigit(c byte) bool    { return '0' <= c && c <= '9' }
func isNameByte(c byte) bool { return isLetter(c) || isDigit(c) }

// skipWhile skips the bytes of text, beginning with text[from], while the function in returns true.
// It returns the index of the next byte, or len(text) at the end.
func skipWhile(text string, from int, in func(byte) bool) int {
	for from < len(text) && in(text[from]) {
		from++
	}
	return from
}

// parser parses one expression.
type parser struct {
	kind         string // kind is the name of the expression in error messages
	text         string
	tokens       []token
	position     int
	placeholders *Placeholders
	operators    int
	meaning      error // meaning is the first error that deferErrorf has recorded
}

// newParser splits an expression into tokens and returns a parser for it.
func newParser(kind, text string, p *Placeholders) (*parser, error) {
	if p.used == nil {
		p.used = map[string]bool{}
	}
	s := &parser{kind: kind, text: text, placeholders: p}
	if strings.TrimSpace(text) == "" {
		return nil, s.errorf("The expression can not be empty;")
	}
	if len(text) > maxExpressionBytes {
		const tooLong = "Expression size has exceeded the maximum allowed size;"
		if kind == updateExpression {
			return nil, s.errorf(tooLong)
		}
		return nil, s.errorf(tooLong+" expression size: %d", len(text))
	}
	s.tokens = make([]token, 0, 1+len(text)/4)
	for i := 0; ; {
		for i < len(text) && strings.IndexByte(" \t\r\n", text[i]) >= 0 {
			i++
		}
		t := token{start: uint16(i), end: uint16(i)}
		if i == len(text) {
			t.text = "<EOF>"
			s.tokens = append(s.tokens, t)
			return s, nil
		}
		var end int
		switch c := text[i]; {
		case isLetter(c) && c != '_': // an underscore cannot begin a word
			t.kind, end = 'w', skipWhile(text, i, isNameByte)
		case (c == '#' || c == ':') && skipWhile(text, i+1, isNameByte) > i+1:
			t.kind, end = c, skipWhile(text, i+1, isNameByte)
		case isDigit(c):
			t.kind, end = '0', skipWhile(text, i, isDigit)
		default:
			t.kind, end = 's', i+1
			if two := text[i:min(i+2, len(text))]; two == "<=" || two == ">=" || two == "<>" {
				end = i + 2
			}
		}
		t.text, t.end = text[i:end], uint16(end)
		i = end
		s.tokens = append(s.tokens, t)
	}
}

// errorf returns an error about the expression. The message begins with "Invalid" and the name of
// the expression.
func (s *parser) errorf(format string, args ...any) error {
	return fmt.Errorf("Invalid "+s.kind+": "+format, args...)
}

// deferErrorf records an error. The parser returns the first recorded error only if the expression
// has no syntax error.
func (s *parser) deferErrorf(format string, args ...any) {
	if s.meaning == nil {
		s.meaning = s.errorf(format, args...)
	}
}

// unexpected returns a syntax error at the current token.
func (s *parser) unexpected() error {
	t := s.peek()
	from, to := max(s.position-1, 0), min(s.position+1, len(s.tokens)-1)
	return s.errorf("Syntax error; token: %q, near: %q", t.text, s.text[s.tokens[from].start:s.tokens[to].end])
}

func (s *parser) peek() token { return s.tokens[s.position] }

func (s *parser) next() token {
	t := s.tokens[s.position]
	if t.kind != 0 {
		s.position++
	}
	return t
}

// symbol reports whether the next token is the given symbol. If it is, symbol skips the token.
func (s *parser) symbol(text string) bool {
	if t := s.peek(); t.kind != 's' || t.text != text {
		return false
	}
	s.position++
	return true
}

// keyword reports whether the next token is the given keyword. If it is, keyword skips the token.
func (s *parser) keyword(text string) bool {
	if !s.peekKeyword(text) {
		return false
	}
	s.position++
	return true
}

func (s *parser) peekKeyword(text string) bool {
	t := s.peek()
	return t.kind == 'w' && strings.EqualFold(t.text, text)
}

// countOperator counts an operator or a function. If there are too many, it records an error.
func (s *parser) countOperator() {
	if s.operators++; s.operators == maxOperators+1 {
		s.deferErrorf("The expression contains too many operators; operator count: %d", s.operators)
	}
}

// finish must be called after the last token of the expression. If more tokens follow, it returns a
// syntax error. Otherwise, it returns the first error that deferErrorf has recorded.
func (s *parser) finish() error {
	if s.peek().kind != 0 {
		return s.unexpected()
	}
	return s.meaning
}

// Element is one element of a document path: an attribute name, a map key or a list index.
type Element struct {
	Name  string
	Index int // Index is -1 for a name.
}

// Path is a document path, which leads to a value in an item.
type Path []Element

// String returns the path in the notation of DynamoDB's error messages.
func (p Path) String() string {
	parts := make([]string, len(p))
	for i, e := range p {
		if parts[i] = e.Name; e.Index >= 0 {
			parts[i] = fmt.Sprintf("[%d]", e.Index)
		}
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// Find returns the value at the path, and reports whether the value exists.
func (p Path) Find(item attr.Item) (attr.Value, bool) {
	v, ok := item[p[0].Name]
	for _, e := range p[1:] {
		switch {
		case !ok:
			return v, false
		case e.Index < 0:
			v, ok = v.Map[e.Name]
		case e.Index < len(v.List):
			v = v.List[e.Index]
		default:
			return attr.Value{}, false
		}
	}
	return v, ok
}

// path parses a document path.
func (s *parser) path() (Path, error) {
	name, err := s.name()
	if err != nil {
		return nil, err
	}
	path := Path{{Name: name, Index: -1}}
	for {
		switch {
		case s.symbol("."):
			name, err := s.name()
			if err != nil {
				return nil, err
			}
			path = append(path, Element{Name: name, Index: -1})
		case s.symbol("["):
			t := s.peek()
			if t.kind != '0' {
				return nil, s.unexpected()
			}
			s.next()
			index, err := strconv.Atoi(t.text)
			if err != nil || index > 1<<30 {
				s.deferErrorf("List index is not within the allowable range; index: [%s]", t.text)
			}
			if !s.symbol("]") {
				return nil, s.unexpected()
			}
			path = append(path, Element{Index: index})
		default:
			if len(path) > attr.MaxNesting {
				s.deferErrorf("The document path has too many nesting elements; nesting levels: %d", len(path))
			}
			return path, nil
		}
	}
}

// name parses an attribute name or a map key in a path. For a placeholder, it returns the name from
// ExpressionAttributeNames.
func (s *parser) name() (string, error) {
	t := s.peek()
	switch t.kind {
	case 'w':
		s.next()
		if reserved(t.text) {
			s.deferErrorf("Attribute name is a reserved keyword; reserved keyword: %s", t.text)
		}
		return t.text, nil
	case '#':
		s.next()
		name, ok := s.placeholders.Names[t.text]
		if !ok {
			s.deferErrorf("An expression attribute name used in the document path is not defined; attribute name: %s", t.text)
		}
		s.placeholders.used[t.text] = true
		return name, nil
	}
	return "", s.unexpected()
}

// value parses the placeholder of a value, such as :v.
func (s *parser) value() *literal {
	t := s.next()
	v, ok := s.placeholders.Values[t.text]
	if !ok {
		s.deferErrorf("An expression attribute value used in expression is not defined; attribute value: %s", t.text)
	}
	s.placeholders.used[t.text] = true
	return &literal{v}
}

// checkOverlap records an error if one path begins with another path, or if two paths use the same
// value both as a list and as a map.
func (s *parser) checkOverlap(paths []Path) {
	for i, a := range paths {
		for _, b := range paths[:i] {
			k := 0
			for k < len(a) && k < len(b) && a[k] == b[k] {
				k++
			}
			switch {
			case k == len(a) || k == len(b):
				s.deferErrorf("Two document paths overlap with each other; must remove or rewrite one of these paths; path one: %s, path two: %s", b, a)
			case (a[k].Index < 0) != (b[k].Index < 0):
				s.deferErrorf("Two document paths conflict with each other; must remove or rewrite one of these paths; path one: %s, path two: %s", b, a)
			}
		}
	}
}
