package attr

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// UnmarshalJSONFrom decodes an item. If the JSON does not have the structure of an item, it returns
// an error. Normalize reports all other errors.
func (i *Item) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	encoded, err := d.ReadValue()
	if err != nil || encoded.Kind() == 'n' {
		return err
	}
	*i, err = ParseItem(encoded)
	return err
}

// ParseItem decodes the JSON of a stored item.
func ParseItem(stored []byte) (Item, error) {
	p := &itemParser{text: string(stored)}
	return p.item(strings.Count(p.text, `":{`))
}

// ParseAttributes decodes only the attributes with the given names from the JSON of a stored item.
func ParseAttributes(stored []byte, names map[string]bool) (Item, error) {
	p := &itemParser{text: string(stored)}
	i := make(Item, len(names))
	err := p.object(func(name string) (more bool, err error) {
		if !names[name] {
			return true, p.skip()
		}
		i[name], err = p.value()
		return len(i) < len(names), err
	})
	if err != nil {
		return nil, err
	}
	return i, nil
}

// itemParser decodes the JSON of an item. The text of a request is valid JSON, but possibly not an
// item. The text of a stored item is always an item, unless the file is damaged.
type itemParser struct {
	text string
	at   int // at is the index of the next byte in text
}

// peek returns the first byte of the next token, or 0 at the end of the text. It skips white space,
// commas and colons without a check, because the text is already valid JSON.
func (p *itemParser) peek() byte {
	for ; p.at < len(p.text); p.at++ {
		switch c := p.text[p.at]; c {
		case ' ', '\t', '\r', '\n', ',', ':':
		default:
			return c
		}
	}
	return 0
}

// expect reads a token that must be the byte c.
func (p *itemParser) expect(c byte) error {
	if next := p.peek(); next != c {
		return p.unexpected(fmt.Sprintf("unexpected JSON %s, expected %c", kindOfToken(next), c))
	}
	p.at++
	return nil
}

// unexpected returns an error with the message. If the text has ended, it returns
// io.ErrUnexpectedEOF instead.
func (p *itemParser) unexpected(message string) error {
	if p.peek() == 0 {
		return io.ErrUnexpectedEOF
	}
	return errors.New(message)
}

// kindOfToken returns the kind of the token that begins with the byte first.
func kindOfToken(first byte) jsontext.Kind {
	if first == '-' || '0' <= first && first <= '9' {
		return '0'
	}
	return jsontext.Kind(first)
}

// object reads a JSON object. For each member of the object, it calls the function member, which
// must read the value. If the function returns false, object does not read the remaining members.
func (p *itemParser) object(member func(name string) (more bool, err error)) error {
	if err := p.expect('{'); err != nil {
		return err
	}
	for p.peek() != '}' {
		name, err := p.string()
		if err != nil {
			return err
		}
		if more, err := member(name); err != nil || !more {
			return err
		}
	}
	p.at++
	return nil
}

// list reads a JSON array. It calls element for each array element, and element must read the array
// element.
func (p *itemParser) list(element func() error) error {
	if err := p.expect('['); err != nil {
		return err
	}
	for p.peek() != ']' {
		if err := element(); err != nil {
			return err
		}
	}
	p.at++
	return nil
}

// string reads a string. If the string contains no escaped characters, the result shares memory
// with the parser's text.
func (p *itemParser) string() (string, error) {
	if p.peek() != '"' {
		return "", p.unexpected("unexpected JSON " + kindOfToken(p.peek()).String() + ", expected a string")
	}
	start := p.at + 1
	n := strings.IndexByte(p.text[start:], '"')
	if n < 0 {
		return "", io.ErrUnexpectedEOF
	}
	if text := p.text[start : start+n]; strings.IndexByte(text, '\\') < 0 {
		p.at = start + n + 1
		return text, nil
	}
	for i := start; i < len(p.text); i++ {
		switch p.text[i] {
		case '\\':
			i++
		case '"':
			text, err := jsontext.AppendUnquote(nil, p.text[p.at:i+1])
			p.at = i + 1
			return string(text), err
		}
	}
	return "", io.ErrUnexpectedEOF
}

// skip reads a value of any kind and ignores it.
func (p *itemParser) skip() error {
	switch p.peek() {
	case 0:
		return io.ErrUnexpectedEOF
	case '{':
		return p.object(func(string) (bool, error) { return true, p.skip() })
	case '[':
		return p.list(p.skip)
	case '"':
		_, err := p.string()
		return err
	}
	if p.literal() == "" {
		return p.unexpected("unexpected JSON " + kindOfToken(p.peek()).String())
	}
	return nil
}

// literal reads a number, true, false or null, and returns its text.
func (p *itemParser) literal() string {
	start := p.at
	for p.at < len(p.text) && !strings.ContainsRune("{}[]\":, \t\r\n", rune(p.text[p.at])) {
		p.at++
	}
	return p.text[start:p.at]
}

// item reads an item. attributes is an estimate of the number of attributes, for the initial size
// of the map.
func (p *itemParser) item(attributes int) (Item, error) {
	i := make(Item, attributes)
	return i, p.object(func(name string) (_ bool, err error) {
		i[name], err = p.value()
		return true, err
	})
}

// value reads an attribute value, such as {"S":"text"}.
func (p *itemParser) value() (Value, error) {
	v := Value{fault: faultEmpty}
	return v, p.object(func(name string) (bool, error) {
		kind := KindOf(name)
		if kind == 0 || p.peek() == 'n' {
			return true, p.skip()
		}
		if v.Kind != 0 {
			v.fault = faultSeveral
		} else {
			v.fault = 0
		}
		v.Kind = kind
		return true, p.content(&v)
	})
}

// content reads the content of an attribute value into v. v.Kind is the type of the value.
func (p *itemParser) content(v *Value) (err error) {
	switch v.Kind {
	case String, Number, Binary:
		v.Text, err = p.scalar(v.Kind)
	case Bool, Null:
		if c := p.peek(); c != 't' && c != 'f' {
			return p.unexpected(fmt.Sprintf("a value of type %s must be true or false", v.Kind))
		}
		if v.Bool = p.literal() == "true"; v.Kind == Null && !v.Bool {
			v.fault = faultNull
		}
	case Map:
		v.Map, err = p.item(0)
	case List:
		v.List = []Value{}
		err = p.list(func() error {
			e, err := p.value()
			v.List = append(v.List, e)
			return err
		})
	default:
		v.Set = []string{}
		err = p.list(func() error {
			e, err := p.scalar(v.Kind - StringSet + String)
			v.Set = append(v.Set, e)
			return err
		})
	}
	return err
}

// scalar reads a JSON string and returns the content of a String, Number or Binary.
func (p *itemParser) scalar(kind Kind) (string, error) {
	if p.peek() != '"' {
		return "", p.unexpected(fmt.Sprintf("a value of type %s must be a JSON string", kind))
	}
	text, err := p.string()
	if err == nil && kind == Binary {
		decoded, err := base64.StdEncoding.DecodeString(text)
		return string(decoded), err
	}
	return text, err
}
