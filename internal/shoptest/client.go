// Package shoptest is a client of the GraphQL API as a careful shop writes one: it repeats a
// request with its idempotency key until it has an answer, and waits for a server that is killed
// and comes back. It is for tests that put the server under load.
package shoptest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/ordergraph/ordergraph/graph"
)

// Mutation is one request for a change.
type Mutation struct {
	// Field is the mutation's name, such as placeOrder.
	Field string
	// Input is its input, with the idempotency key where it has one.
	Input map[string]any
}

// Key is the mutation's idempotency key; empty where it has none.
func (m Mutation) Key() string {
	key, _ := m.Input["idempotencyKey"].(string)
	return key
}

var schema = graph.Schema()

// Yields are the mutations, with the field of their payloads that holds the record.
var Yields = func() map[string]string {
	fields := map[string]string{}
	for _, m := range schema.Mutation.Fields {
		fields[m.Name] = schema.Types[m.Type.Name()].Fields[0].Name
	}
	return fields
}()

// UserErrors are the types of the user errors that each mutation declares with @userErrors.
var UserErrors = func() map[string][]string {
	types := map[string][]string{}
	for _, m := range schema.Mutation.Fields {
		for _, t := range m.Directives.ForName("userErrors").Arguments.ForName("types").Value.Children {
			types[m.Name] = append(types[m.Name], t.Value.Raw)
		}
	}
	return types
}()

// Details are all fields of a type that need no other record, as a selection. name is the type's,
// also with a small letter at its beginning.
func Details(name string) string {
	var fields []string
	of := schema.Types[strings.ToUpper(name[:1])+name[1:]]
	for _, f := range of.Fields {
		typ := schema.Types[f.Type.Name()]
		switch {
		case len(f.Arguments) > 0:
		case of.Name == "Employee" && f.Name == "orderCount": // other records have it
		case typ.Kind != ast.Object:
			fields = append(fields, f.Name)
		case f.Directives.ForName("reads") == nil:
			fields = append(fields, f.Name+" { "+Details(typ.Name)+" }")
		}
	}
	return strings.Join(fields, " ")
}

// Fields are the names of all mutations, in alphabetical order.
func Fields() []string {
	var names []string
	for name := range Yields {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// query is the GraphQL document of a mutation.
func (m Mutation) query() string {
	input := strings.ToUpper(m.Field[:1]) + m.Field[1:] + "Input"
	result := Yields[m.Field]
	details := Details(result)
	if result == "order" {
		details += " items(first: 25) { nodes { " + Details("OrderItem") + " } }"
	}
	return fmt.Sprintf("mutation($input: %s!) { %s(input: $input) { result: %s { %s } userErrors { __typename code message field } } }", input, m.Field, result, details)
}

// Answer is what the server says to a mutation: that it was done, or why the rules refuse it.
type Answer struct {
	// Result is the record as JSON; empty where there is none.
	Result string
	// Refusals are the codes of the user errors.
	Refusals []string
	record   Result
}

// Result are the fields of records that tests look at.
type Result struct {
	ID, Sku, WarehouseID, Status             string
	Version, Quantity, Available, OrderCount int
	Items                                    struct{ Nodes []Item }
}

// Item is an item of an order.
type Item struct {
	ProductID string
	Quantity  int
	UnitPrice struct{ Amount string }
}

// Done reports whether the mutation was done.
func (a Answer) Done() bool { return len(a.Refusals) == 0 }

// Record is the record that the answer carries.
func (a Answer) Record() Result { return a.record }

// String is the answer for people, and for comparing.
func (a Answer) String() string { return strings.Join(append(a.Refusals, a.Result), " ") }

// Errors of Send.
var (
	// ErrNoAnswer: it is not known whether the change was made, and the same request can be sent
	// again: the network failed, or the server said UNAVAILABLE.
	ErrNoAnswer = errors.New("no answer")
	// ErrFault: the server said something else than a mutation should be answered.
	ErrFault = errors.New("fault")
)

// Client sends mutations. It is safe for concurrent use.
type Client struct {
	// HTTP sends the requests.
	HTTP *http.Client
}

// NewClient is a client with room for many connections.
func NewClient() *Client {
	transport := &http.Transport{MaxIdleConnsPerHost: 128}
	return &Client{HTTP: &http.Client{Transport: transport}}
}

// Send sends a mutation once.
//
// Errors: ErrNoAnswer, ErrFault.
func (c *Client) Send(ctx context.Context, url string, m Mutation) (Answer, error) {
	body, err := json.Marshal(map[string]any{"query": m.query(), "variables": map[string]any{"input": m.Input}})
	if err != nil {
		return Answer{}, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return Answer{}, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := c.HTTP.Do(request)
	if err != nil {
		return Answer{}, fmt.Errorf("%w: %w", ErrNoAnswer, err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return Answer{}, fmt.Errorf("%w: %w", ErrNoAnswer, err)
	}
	return read(m, response.StatusCode, text)
}

// read makes an Answer of a GraphQL response.
func read(m Mutation, status int, text []byte) (Answer, error) {
	var got struct {
		Data   map[string]*json.RawMessage
		Errors []struct {
			Message    string
			Extensions struct{ Code string }
		}
	}
	if err := json.Unmarshal(text, &got); err != nil || status != http.StatusOK {
		return Answer{}, fmt.Errorf("%w: status %d: %s", ErrFault, status, text)
	}
	data, there := got.Data[m.Field]
	if len(got.Errors) > 0 {
		if data == nil && there && len(got.Errors) == 1 && slices.Contains([]string{"UNAVAILABLE", "TIMED_OUT"}, got.Errors[0].Extensions.Code) {
			return Answer{}, fmt.Errorf("%w: %s", ErrNoAnswer, got.Errors[0].Message)
		}
		return Answer{}, fmt.Errorf("%w: %s", ErrFault, text)
	}
	if data == nil {
		return Answer{}, fmt.Errorf("%w: %s", ErrFault, text)
	}
	var payload struct {
		Result     json.RawMessage
		UserErrors []struct {
			Typename string `json:"__typename"`
			Code     string
		}
	}
	if err := json.Unmarshal(*data, &payload); err != nil {
		return Answer{}, fmt.Errorf("%w: %s", ErrFault, text)
	}
	a := Answer{Result: string(payload.Result)}
	for _, e := range payload.UserErrors {
		if !slices.Contains(UserErrors[m.Field], e.Typename) {
			return Answer{}, fmt.Errorf("%w: %s does not declare the user error %s", ErrFault, m.Field, e.Typename)
		}
		a.Refusals = append(a.Refusals, e.Code)
	}
	if a.Done() && a.Result == "null" {
		return Answer{}, fmt.Errorf("%w: neither a record nor a refusal: %s", ErrFault, text)
	}
	if err := json.Unmarshal(payload.Result, &a.record); err != nil {
		return Answer{}, fmt.Errorf("%w: %s", ErrFault, text)
	}
	return a, nil
}

// Insist sends a mutation until there is an answer, at most attempts times. It tells how many it
// took.
//
// Errors: ErrNoAnswer where there was none in that many attempts, ErrFault.
func (c *Client) Insist(ctx context.Context, url func() string, m Mutation, attempts int) (Answer, int, error) {
	var err error
	for n := 1; n <= attempts; n++ {
		var a Answer
		if a, err = c.Send(ctx, url(), m); err == nil || !errors.Is(err, ErrNoAnswer) {
			return a, n, err
		}
	}
	return Answer{}, attempts, err
}
