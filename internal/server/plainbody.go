package server

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/ordergraph/ordergraph/graph"
)

// readPlainBody reads a body of the form that clients send nearly always, in one pass and without copies but those that stay. It declines what
// is wrong or odd in any way, which readAnyBody then looks at; what it does not decline it reads as readAnyBody does
// (FuzzPlainBodies).
func readPlainBody(body []byte) (r graph.Request, ok bool) {
	if !utf8.Valid(body) || len(body) >= maxValues && values(body) > maxValues {
		return r, false
	}
	p := plainJSON{text: body}
	if !p.open('{') {
		return r, false
	}
	const query, operationName, variables, extensions = 1, 2, 4, 8
	seen, named := 0, ""
	for first := true; !p.closed('}', first); first = false {
		if named, ok = p.name(); !ok {
			return r, false
		}
		member := 0
		switch named {
		case "query":
			member = query
			r.Query, ok = p.textOrNull()
		case "operationName":
			member = operationName
			r.OperationName, ok = p.textOrNull()
		case "variables":
			member = variables
			r.Variables, ok = p.objectOrNull()
		case "extensions":
			member = extensions
			r.Extensions, ok = p.objectOrNull()
		default:
			ok = false
		}
		if !ok || seen&member != 0 {
			return r, false
		}
		seen |= member
	}
	return r, !p.failed && p.end() && (r.Query != "" || r.Extensions["persistedQuery"] != nil)
}

// maxPlainDepth is how many objects and lists stand inside one another in plain JSON.
const maxPlainDepth = 32

// plainJSON reads JSON (https://www.rfc-editor.org/rfc/rfc8259) that is in UTF-8. Where it comes upon something else it has failed, and goes on no further.
type plainJSON struct {
	text   []byte
	at     int
	depth  int
	failed bool
}

// next is the next byte that is no white space, 0 at the end.
func (p *plainJSON) next() byte {
	for ; p.at < len(p.text); p.at++ {
		switch c := p.text[p.at]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

// open takes a bracket.
func (p *plainJSON) open(bracket byte) bool {
	if p.failed || p.next() != bracket {
		return false
	}
	p.at++
	return true
}

// closed tells whether what follows is the end of an object or a list. Else it takes the comma before the next member, of which the first
// has none.
func (p *plainJSON) closed(bracket byte, first bool) bool {
	switch c := p.next(); {
	case p.failed:
		return true
	case c == bracket:
		p.at++
		return true
	case first:
	case c == ',':
		p.at++
	default:
		p.failed = true
		return true
	}
	return false
}

// end tells whether nothing follows.
func (p *plainJSON) end() bool { return p.next() == 0 && p.at == len(p.text) }

// literal takes a word.
func (p *plainJSON) literal(word string) bool {
	if len(p.text)-p.at < len(word) || string(p.text[p.at:p.at+len(word)]) != word {
		return false
	}
	p.at += len(word)
	return true
}

// name takes the name of a member, and the colon behind it.
func (p *plainJSON) name() (string, bool) {
	name, ok := p.string()
	if !ok || p.next() != ':' {
		return "", false
	}
	p.at++
	return name, true
}

// textOrNull takes a string, or null for none.
func (p *plainJSON) textOrNull() (string, bool) {
	if p.next() == 'n' {
		return "", p.literal("null")
	}
	return p.string()
}

// objectOrNull takes an object, or null for none.
func (p *plainJSON) objectOrNull() (map[string]any, bool) {
	if p.next() == 'n' {
		return nil, p.literal("null")
	}
	return p.object()
}

// string takes a string.
func (p *plainJSON) string() (string, bool) {
	if !p.open('"') {
		return "", false
	}
	start, escaped := p.at, false
	for ; p.at < len(p.text); p.at++ {
		switch c := p.text[p.at]; {
		case c == '"':
			raw := p.text[start:p.at]
			p.at++
			if escaped {
				return unescaped(raw)
			}
			return string(raw), true
		case c < ' ':
			return "", false
		case c == '\\':
			escaped = true
			p.at++ // what follows ends no string
		}
	}
	return "", false
}

// unescaped is what a string says that has escapes. It declines \u, which can stand for half a character.
func unescaped(raw []byte) (string, bool) {
	var text strings.Builder
	text.Grow(len(raw))
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		if c == '\\' {
			i++ // one follows, or the string would not have ended
			switch c = raw[i]; c {
			case '"', '\\', '/':
			case 'b':
				c = '\b'
			case 'f':
				c = '\f'
			case 'n':
				c = '\n'
			case 'r':
				c = '\r'
			case 't':
				c = '\t'
			default:
				return "", false
			}
		}
		text.WriteByte(c)
	}
	return text.String(), true
}

// object takes an object.
func (p *plainJSON) object() (map[string]any, bool) {
	if !p.open('{') {
		return nil, false
	}
	object := map[string]any{}
	for first := true; !p.closed('}', first); first = false {
		name, ok := p.name()
		if !ok {
			return nil, false
		}
		if object[name], ok = p.value(); !ok {
			return nil, false
		}
	}
	return object, !p.failed
}

// list takes a list.
func (p *plainJSON) list() ([]any, bool) {
	if !p.open('[') {
		return nil, false
	}
	list := []any{}
	for first := true; !p.closed(']', first); first = false {
		value, ok := p.value()
		if !ok {
			return nil, false
		}
		list = append(list, value)
	}
	return list, !p.failed
}

// value takes any value, numbers as they are written.
func (p *plainJSON) value() (any, bool) {
	if p.depth++; p.depth > maxPlainDepth {
		return nil, false
	}
	defer func() { p.depth-- }()
	switch p.next() {
	case '"':
		return p.string()
	case '{':
		return p.object()
	case '[':
		return p.list()
	case 't':
		return true, p.literal("true")
	case 'f':
		return false, p.literal("false")
	case 'n':
		return nil, p.literal("null")
	default:
		return p.number()
	}
}

// number takes a whole number; others are rare.
func (p *plainJSON) number() (any, bool) {
	start := p.at
	if p.at < len(p.text) && p.text[p.at] == '-' {
		p.at++
	}
	digits := p.at
	for p.at < len(p.text) && '0' <= p.text[p.at] && p.text[p.at] <= '9' {
		p.at++
	}
	if p.at == digits || p.text[digits] == '0' && p.at > digits+1 {
		return nil, false
	}
	if p.at < len(p.text) && (p.text[p.at] == '.' || p.text[p.at] == 'e' || p.text[p.at] == 'E') {
		return nil, false
	}
	return json.Number(p.text[start:p.at]), true
}
