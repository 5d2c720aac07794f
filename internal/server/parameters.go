package server

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"unicode/utf8"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/ordergraph/ordergraph/graph"
	"github.com/ordergraph/ordergraph/graph/errcode"
)

// maxJSONValues is the maximum number of JSON values in a body. It limits the memory of decoded
// values: the two bytes "0," in an array become a value of about sixty bytes.
const maxJSONValues = 10_000

// tooManyJSONValues reports whether text may contain more than maxJSONValues JSON values. It counts
// the commas and opening brackets outside strings, because a value can follow each of them.
func tooManyJSONValues(text []byte) bool {
	if len(text) < maxJSONValues {
		return false
	}
	n, inString := 1, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			inString = !inString
		case inString && c == '\\':
			i++ // the escaped byte does not end the string
		case !inString && (c == ',' || c == '[' || c == '{'):
			n++
		}
	}
	return n > maxJSONValues
}

// decodeBody decodes a GraphQL request from a JSON body. Its error messages contain no text from
// the body.
func decodeBody(body []byte) (graph.Request, *refusal) {
	p, refused := decodeParameters(body)
	if refused != nil {
		return graph.Request{}, refused
	}
	return p.request()
}

// decodeParameters decodes the parameters of a request from a JSON object. It does not check the
// types of the values. checkTypes checks them later.
func decodeParameters(body []byte) (p parameters, refused *refusal) {
	start := bytes.TrimLeft(body, " \t\r\n")
	switch {
	case !utf8.Valid(body):
		return p, badRequest("the body is not valid UTF-8")
	case tooManyJSONValues(body):
		return p, newRefusal(http.StatusRequestEntityTooLarge, errcode.BodyTooLarge, "the body has more than %d JSON values: send fewer values per request", maxJSONValues)
	case bytes.HasPrefix(start, []byte("[")):
		return p, badRequest("the body is a JSON array: send one JSON object with one operation per request")
	case !bytes.HasPrefix(start, []byte("{")):
		return p, badRequest("the body is not a JSON object: send an object with query and, if needed, variables")
	}
	switch err := unmarshal(body, &p); {
	case err == nil:
		return p, nil
	case p.duplicate != "":
		return p, badRequest("%s occurs more than once", p.duplicate)
	case p.complete:
		return p, badRequest("the body has more text after the JSON object: send only one JSON object")
	default:
		return p, badRequest("the body is not valid JSON: it is incomplete or malformed")
	}
}

// unmarshal decodes one JSON value from valid UTF-8. Like encoding/json, it accepts an object that
// repeats a name, and replaces an unpaired surrogate with U+FFFD.
func unmarshal(text []byte, to jsonv2.UnmarshalerFrom) error {
	return jsonv2.Unmarshal(text, to, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// parameters are the parameters of a GraphQL request.
type parameters struct {
	query, operationName, variables, extensions parameter
	// documentID is the parameter documentId, which contains the ID of a trusted document. Relay and
	// other clients send this ID as doc_id or id.
	documentID, docID, id parameter
	// duplicate is the name of a parameter that occurs more than once. It is empty if no parameter
	// does.
	duplicate string
	// complete reports whether the JSON object has been read up to its closing bracket.
	complete bool
}

// byName returns the parameter with the given name, or nil if the name is unknown.
func (p *parameters) byName(name string) *parameter {
	switch name {
	case "query":
		return &p.query
	case "operationName":
		return &p.operationName
	case "variables":
		return &p.variables
	case "extensions":
		return &p.extensions
	case "documentId":
		return &p.documentID
	case "doc_id":
		return &p.docID
	case "id":
		return &p.id
	}
	return nil
}

// UnmarshalJSONFrom reads the parameters from a JSON object. It skips object members with unknown
// names.
func (p *parameters) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	err := readMembers(d, func(name string) error {
		to := p.byName(name)
		if to == nil {
			return d.SkipValue()
		}
		given := to.isSet()
		if err := to.UnmarshalJSONFrom(d); err != nil {
			return err
		}
		if given {
			p.duplicate = d.StackPointer().LastToken()
			return jsontext.ErrDuplicateName
		}
		return nil
	})
	p.complete = err == nil
	return err
}

// request returns the GraphQL request. It returns a refusal if a parameter has the wrong type. It
// also returns a refusal if the request contains neither a query nor the ID of a document.
func (p *parameters) request() (graph.Request, *refusal) {
	r := graph.Request{
		Query: p.query.text, OperationName: p.operationName.text, DocumentID: p.documentID.text,
		Variables: p.variables.object, Extensions: p.extensions.object,
	}
	if refused := p.checkTypes(); refused != nil {
		return r, refused
	}
	if r.Query != "" || r.DocumentID != "" || r.Extensions["persistedQuery"] != nil {
		return r, nil
	}
	if r.DocumentID = cmp.Or(p.docID.text, p.id.text); r.DocumentID == "" {
		return r, badRequest("the request has no query")
	}
	return r, nil
}

// checkTypes returns a refusal if a parameter has the wrong type. Otherwise, it returns nil.
func (p *parameters) checkTypes() *refusal {
	for _, name := range []string{"query", "operationName", "documentId"} {
		if !p.byName(name).isMissingOrKind(jsontext.KindString) {
			return badRequest("%s is not a string", name)
		}
	}
	for _, name := range []string{"variables", "extensions"} {
		if !p.byName(name).isMissingOrKind(jsontext.KindBeginObject) {
			return badRequest("%s is not a JSON object", name)
		}
	}
	return nil
}

// namesDocument reports whether the parameters name a trusted document or a persisted query.
func (p *parameters) namesDocument() bool {
	named := func(q parameter) bool { return q.kind == jsontext.KindString }
	return p.extensions.object["persistedQuery"] != nil || named(p.documentID) || named(p.docID) || named(p.id)
}

// parameter is one parameter of a request.
type parameter struct {
	// kind is the JSON type of the value. It is zero if the parameter is missing.
	kind jsontext.Kind
	// text is set if the value is a string, and object is set if the value is an object.
	text   string
	object map[string]any
}

// isSet reports whether the request has the parameter.
func (p *parameter) isSet() bool { return p.kind != jsontext.KindInvalid }

// isMissingOrKind reports whether the value has the given JSON type. It also returns true if the
// parameter is missing or null.
func (p *parameter) isMissingOrKind(kind jsontext.Kind) bool {
	return p.kind == kind || p.kind == jsontext.KindNull || !p.isSet()
}

// UnmarshalJSONFrom reads a string or an object. It skips a value of any other type.
func (p *parameter) UnmarshalJSONFrom(d *jsontext.Decoder) (err error) {
	switch p.kind = d.PeekKind(); p.kind {
	case jsontext.KindString:
		token, err := d.ReadToken()
		if err != nil {
			return err
		}
		p.text = token.String()
		return nil
	case jsontext.KindBeginObject:
		p.object, err = readObject(d)
		return err
	default:
		return d.SkipValue()
	}
}

func readObject(d *jsontext.Decoder) (map[string]any, error) {
	object := map[string]any{}
	return object, readMembers(d, func(name string) (err error) {
		object[name], err = readValue(d)
		return err
	})
}

// readMembers reads a JSON object from d. For each member, it reads the name and calls the function
// value with this name. The function must read the member's value from d.
func readMembers(d *jsontext.Decoder, value func(name string) error) error {
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	for d.PeekKind() != jsontext.KindEndObject {
		name, err := d.ReadToken()
		if err != nil {
			return err
		}
		if err := value(name.String()); err != nil {
			return err
		}
	}
	_, err := d.ReadToken()
	return err
}

func readArray(d *jsontext.Decoder) ([]any, error) {
	if _, err := d.ReadToken(); err != nil {
		return nil, err
	}
	array := []any{}
	for d.PeekKind() != jsontext.KindEndArray {
		value, err := readValue(d)
		if err != nil {
			return nil, err
		}
		array = append(array, value)
	}
	_, err := d.ReadToken()
	return array, err
}

// readValue reads a JSON value of any type. A number becomes a json.Number, because a float64 would
// lose digits.
func readValue(d *jsontext.Decoder) (any, error) {
	switch d.PeekKind() {
	case jsontext.KindBeginObject:
		return readObject(d)
	case jsontext.KindBeginArray:
		return readArray(d)
	}
	token, err := d.ReadToken()
	if err != nil {
		return nil, err
	}
	switch token.Kind() {
	case jsontext.KindNull:
		return nil, nil
	case jsontext.KindString:
		return token.String(), nil
	case jsontext.KindNumber:
		return json.Number(token.String()), nil
	default:
		return token.Bool(), nil
	}
}
