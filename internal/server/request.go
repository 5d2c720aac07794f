package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ordergraph/ordergraph/graph"
)

// maxURL is how many bytes a URL can have; longer ones do not pass many proxies. It is below maxHeader, so that who exceeds it is
// told in JSON.
const maxURL = 16 << 10

// readQuery reads a GraphQL request from a URL.
func readQuery(r *http.Request) (graph.Request, *refusal) {
	if len(r.RequestURI) > maxURL || len(r.URL.RawQuery) > maxURL {
		return graph.Request{}, refuse(http.StatusRequestURITooLong, graph.CodeBodyTooLarge, "the URL is longer than %d bytes: send the query with POST", maxURL)
	}
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return graph.Request{}, badRequest("the URL's query string cannot be read: percent-encode its values")
	}
	var p parameters
	for name, given := range values {
		to := p.named(name)
		switch {
		case to == nil:
			continue
		case len(given) > 1:
			return graph.Request{}, badRequest("%s is given more than once", name)
		case !utf8.ValidString(given[0]):
			return graph.Request{}, badRequest("%s is not in UTF-8", name)
		case given[0] == "":
			continue
		case name == "variables" || name == "extensions":
			if !json.Valid([]byte(given[0])) {
				return graph.Request{}, badRequest("%s is no JSON", name)
			}
			*to = json.RawMessage(given[0])
		default:
			if *to, err = json.Marshal(given[0]); err != nil {
				return graph.Request{}, badRequest("%s cannot be read", name)
			}
		}
	}
	request, refused := p.request()
	request.ReadOnly = true
	return request, refused
}

// checkContent refuses bodies that are no JSON by what their headers say.
func checkContent(h http.Header) *refusal {
	switch {
	case h.Get("Content-Type") == "":
		return refuse(http.StatusUnsupportedMediaType, graph.CodeUnsupportedMediaType, "the request has no Content-Type: send application/json")
	case !isJSON(h.Get("Content-Type")) || len(h.Values("Content-Type")) > 1:
		return refuse(http.StatusUnsupportedMediaType, graph.CodeUnsupportedMediaType, "the body is of a type that is not understood: send application/json in UTF-8")
	case h.Get("Content-Encoding") != "" && !strings.EqualFold(h.Get("Content-Encoding"), "identity"):
		// A few bytes could grow to gigabytes.
		return refuse(http.StatusUnsupportedMediaType, graph.CodeUnsupportedMediaType, "the body is compressed: send it without Content-Encoding")
	}
	return nil
}

// receive reads a body, within its limits.
func (h overHTTP) receive(w http.ResponseWriter, r *http.Request) ([]byte, *refusal) {
	if r.ContentLength > int64(h.limits.Body) {
		return nil, h.tooLarge()
	}
	expected := int(r.ContentLength)
	if expected < 0 {
		expected = h.limits.Body // chunks do not tell
	}
	// net/http takes the deadline away when the body has been read. Errors: a writer without a connection, as in tests, has no deadlines.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(h.limits.BodyTime))
	var body []byte
	var err error
	if r.ContentLength >= 0 && expected <= free {
		// Most bodies are short and say so.
		body = make([]byte, expected)
		_, err = io.ReadFull(r.Body, body)
	} else {
		var refused *refusal
		if body, refused, err = h.receiveLong(w, r, expected); refused != nil {
			return nil, refused
		}
	}
	switch {
	case errors.As(err, new(*http.MaxBytesError)):
		return nil, h.tooLarge()
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, refuse(http.StatusRequestTimeout, graph.CodeRequestTimeout, "the body did not arrive within %s", h.limits.BodyTime)
	case err != nil:
		return nil, badRequest("the body did not arrive as a whole")
	}
	return body, nil
}

// receiveLong reads a body that is expected to be long, or does not say how long it is. Only for what is long there has to be room.
func (h overHTTP) receiveLong(w http.ResponseWriter, r *http.Request, expected int) ([]byte, *refusal, error) {
	arriving := http.MaxBytesReader(w, r.Body, int64(h.limits.Body))
	body, err := io.ReadAll(io.LimitReader(arriving, free))
	if err != nil || len(body) < free {
		return body, nil, err
	}
	if !h.arriving.take(expected) {
		return nil, refuse(http.StatusServiceUnavailable, graph.CodeOverloaded, "the server has no room for long bodies, until those of slow clients have arrived: try again in a moment, or send a shorter one"), nil
	}
	defer h.arriving.give(expected)
	whole := bytes.NewBuffer(append(make([]byte, 0, max(expected, free)+bytes.MinRead), body...))
	_, err = whole.ReadFrom(arriving)
	return whole.Bytes(), nil, err
}

// tooLarge refuses a body.
func (h overHTTP) tooLarge() *refusal {
	return refuse(http.StatusRequestEntityTooLarge, graph.CodeBodyTooLarge, "the body is longer than %d bytes", h.limits.Body)
}

// maxValues is how many values the JSON of a body can have. Decoded, a zero and its comma take thirty times their two bytes, so that
// a body within its limit could take megabytes. Inputs of this schema have some hundreds.
const maxValues = 10_000

// values is how many values JSON has at most: one follows each comma, and each bracket that opens.
func values(text []byte) int {
	n, inString := 1, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			inString = !inString
		case inString && c == '\\':
			i++ // what follows ends no string
		case !inString && (c == ',' || c == '[' || c == '{'):
			n++
		}
	}
	return n
}

// readBody reads a GraphQL request from a body. What it says of a bad one does not repeat it.
func readBody(body []byte) (graph.Request, *refusal) {
	if r, ok := readPlainBody(body); ok {
		return r, nil
	}
	return readAnyBody(body)
}

// readAnyBody reads any body, and tells what is wrong with it.
func readAnyBody(body []byte) (graph.Request, *refusal) {
	p, refused := readParameters(body)
	if refused != nil {
		return graph.Request{}, refused
	}
	return p.request()
}

// readParameters reads the parameters of a GraphQL request from a JSON object, whatever their types.
func readParameters(body []byte) (p parameters, refused *refusal) {
	if !utf8.Valid(body) {
		return p, badRequest("the body is not in UTF-8")
	}
	if values(body) > maxValues {
		return p, refuse(http.StatusRequestEntityTooLarge, graph.CodeBodyTooLarge, "the body has more than %d values: send fewer with one request", maxValues)
	}
	d := json.NewDecoder(bytes.NewReader(body))
	switch first, err := d.Token(); {
	case err == nil && first == json.Delim('['):
		return p, badRequest("the body is a list: send one JSON object, with one operation, per request")
	case err != nil || first != json.Delim('{'):
		return p, badRequest("the body is no JSON object: send one with query, and variables where there are any")
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return p, badJSON()
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return p, badJSON()
		}
		to := p.named(name.(string)) // a JSON object's names are strings, the decoder sees to it
		if to == nil {
			continue
		}
		if *to != nil {
			return p, badRequest("%s is given more than once", name)
		}
		*to = value
	}
	if _, err := d.Token(); err != nil {
		return p, badJSON()
	}
	if _, err := d.Token(); err != io.EOF {
		return p, badRequest("something follows the JSON object: send one request only")
	}
	return p, nil
}

// parameters are those of a GraphQL request, as JSON; nil where one is not given.
type parameters struct {
	query, operationName, variables, extensions json.RawMessage
	// documentID names a trusted document; docID and id are what Relay's and other clients call it.
	documentID, docID, id json.RawMessage
}

// named is the parameter of a name, nil where there is none.
func (p *parameters) named(name string) *json.RawMessage {
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

// request makes a request of parameters that are of the right types.
func (p *parameters) request() (graph.Request, *refusal) {
	var r graph.Request
	for _, s := range []struct {
		name string
		from json.RawMessage
		to   *string
	}{{"query", p.query, &r.Query}, {"operationName", p.operationName, &r.OperationName}, {"documentId", p.documentID, &r.DocumentID}} {
		if s.from != nil && json.Unmarshal(s.from, s.to) != nil {
			return r, badRequest("%s is no string", s.name)
		}
	}
	for _, o := range []struct {
		name string
		from json.RawMessage
		to   *map[string]any
	}{{"variables", p.variables, &r.Variables}, {"extensions", p.extensions, &r.Extensions}} {
		if o.from == nil {
			continue
		}
		d := json.NewDecoder(bytes.NewReader(o.from))
		d.UseNumber() // a float would lose digits of large numbers
		if d.Decode(o.to) != nil {
			return r, badRequest("%s is no JSON object", o.name)
		}
	}
	if r.Query != "" || r.DocumentID != "" || r.Extensions["persistedQuery"] != nil {
		return r, nil
	}
	for _, alias := range []json.RawMessage{p.docID, p.id} {
		if alias != nil && json.Unmarshal(alias, &r.DocumentID) == nil && r.DocumentID != "" {
			return r, nil
		}
	}
	return r, badRequest("the request has no query")
}

func badRequest(format string, args ...any) *refusal {
	return refuse(http.StatusBadRequest, graph.CodeBadRequest, format, args...)
}

func badJSON() *refusal {
	return badRequest("the body is no JSON object that can be read: it breaks off, or is not well-formed")
}
