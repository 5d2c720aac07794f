// Package workload simulates concurrent clients of the GraphQL API, for tests. A client repeats a
// request with the same idempotency key until it gets a response, even if the server is killed and
// restarted. The package also contains fixtures for these clients.
package workload

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

// Mutation is a request that calls one mutation.
type Mutation struct {
	// Field is the name of the mutation, such as placeOrder.
	Field string
	// Input is the mutation's input, including the idempotency key if there is one.
	Input map[string]any
}

// IdempotencyKey returns the idempotency key, or "" if the mutation has no key.
func (m Mutation) IdempotencyKey() string {
	key, _ := m.Input["idempotencyKey"].(string)
	return key
}

var schema = graph.Schema()

// PayloadRecordFields maps the name of each mutation to the payload field that contains the changed
// record.
var PayloadRecordFields = func() map[string]string {
	fields := map[string]string{}
	for _, m := range schema.Mutation.Fields {
		fields[m.Name] = schema.Types[m.Type.Name()].Fields[0].Name
	}
	return fields
}()

// DeclaredUserErrors maps the name of each mutation to the user error types in the mutation's
// directive @userErrors.
var DeclaredUserErrors = func() map[string][]string {
	types := map[string][]string{}
	for _, m := range schema.Mutation.Fields {
		for _, t := range m.Directives.ForName("userErrors").Arguments.ForName("types").Value.Children {
			types[m.Name] = append(types[m.Name], t.Value.Raw)
		}
	}
	return types
}()

// RecordSelection returns a GraphQL selection set for a type, without braces. It selects only the
// fields that are stored in the type's own DynamoDB record. The parameter name is the name of the
// type, but may begin with a small letter.
func RecordSelection(name string) string {
	var fields []string
	definition := schema.Types[strings.ToUpper(name[:1])+name[1:]]
	for _, f := range definition.Fields {
		typ := schema.Types[f.Type.Name()]
		switch {
		case len(f.Arguments) > 0:
		case definition.Name == "Employee" && f.Name == "orderCount", (definition.Name == "OrderItem" || definition.Name == "Webhook") && f.Directives.ForName("reads") != nil: // stored in other records
		case typ.Kind != ast.Object:
			fields = append(fields, f.Name)
		case f.Directives.ForName("reads") == nil:
			fields = append(fields, f.Name+" { "+RecordSelection(typ.Name)+" }")
		}
	}
	return strings.Join(fields, " ")
}

// MutationNames returns the names of all mutations for random clients, sorted. It omits
// eraseCustomer, because clients could not use erased customers any more, and
// dismissUnmatchedPayment, because only the webhooks of payment providers add what it removes. It
// also omits the mutations of webhooks, which do not change orders.
func MutationNames() []string {
	var names []string
	for name := range PayloadRecordFields {
		if name != "eraseCustomer" && name != "dismissUnmatchedPayment" && PayloadRecordFields[name] != "webhook" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// query returns the GraphQL document of a mutation.
func (m Mutation) query() string {
	input := strings.ToUpper(m.Field[:1]) + m.Field[1:] + "Input"
	result := PayloadRecordFields[m.Field]
	details := RecordSelection(result)
	if result == "order" {
		details += " items(first: 25) { nodes { " + RecordSelection("OrderItem") + " } }"
	}
	return fmt.Sprintf("mutation($input: %s!) { %s(input: $input) { result: %s { %s } userErrors { __typename code message field } } }", input, m.Field, result, details)
}

// Response is the server's response to a mutation: a record or user errors.
type Response struct {
	// RecordJSON is the record in the payload as JSON. If the payload contains no record, RecordJSON
	// is "null".
	RecordJSON string
	// UserErrorCodes are the codes of the user errors.
	UserErrorCodes []string
	record         Record
}

// Record contains the fields that tests read from a record in a response. A record of one type has
// only some of these fields.
type Record struct {
	ID, Sku, WarehouseID, Status             string
	Version, Quantity, Available, OrderCount int
	Items                                    struct{ Nodes []LineItem }
	// Lines are the lines of a fulfillment.
	Lines []LineItem
}

// LineItem is a line item of an order.
type LineItem struct {
	ProductID, Sku string
	Quantity       int
	UnitPrice      struct{ Amount string }
}

// Succeeded reports whether the mutation succeeded.
func (a Response) Succeeded() bool { return len(a.UserErrorCodes) == 0 }

// Record returns the record in the response.
func (a Response) Record() Record { return a.record }

// String formats the response for messages and comparisons.
func (a Response) String() string { return strings.Join(append(a.UserErrorCodes, a.RecordJSON), " ") }

// The errors of Send.
var (
	// ErrUnknownOutcome means that the mutation may or may not have been executed. The cause is a
	// network error or the error code UNAVAILABLE or TIMED_OUT. The client can repeat the request.
	ErrUnknownOutcome = errors.New("no response")
	// ErrUnexpectedResponse means that the server's response is not a valid response to the mutation.
	ErrUnexpectedResponse = errors.New("unexpected response")
)

// Client sends mutations. It is safe for concurrent use.
type Client struct {
	// HTTP sends the requests.
	HTTP *http.Client
}

// NewClient returns a client that keeps up to 128 idle connections.
func NewClient() *Client {
	transport := &http.Transport{MaxIdleConnsPerHost: 128}
	return &Client{HTTP: &http.Client{Transport: transport}}
}

// Send sends a mutation once. It returns ErrUnknownOutcome if it gets no response, and
// ErrUnexpectedResponse if the response is not valid.
func (c *Client) Send(ctx context.Context, url string, m Mutation) (Response, error) {
	body, err := json.Marshal(map[string]any{"query": m.query(), "variables": map[string]any{"input": m.Input}})
	if err != nil {
		return Response{}, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return Response{}, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := c.HTTP.Do(request)
	if err != nil {
		return Response{}, fmt.Errorf("%w: %w", ErrUnknownOutcome, err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return Response{}, fmt.Errorf("%w: %w", ErrUnknownOutcome, err)
	}
	return parseResponse(m, response.StatusCode, text)
}

// responseError is an error of a GraphQL response.
type responseError struct {
	Message    string
	Extensions struct{ Code string }
}

// isFinal reports whether it makes no sense to repeat a mutation after the error.
func (e responseError) isFinal() bool {
	return !slices.Contains([]string{"UNAVAILABLE", "TIMED_OUT"}, e.Extensions.Code)
}

// parseResponse decodes a GraphQL response.
func parseResponse(m Mutation, status int, text []byte) (Response, error) {
	var response struct {
		Data   map[string]*json.RawMessage
		Errors []responseError
	}
	if err := json.Unmarshal(text, &response); err != nil || status != http.StatusOK {
		return Response{}, fmt.Errorf("%w: status %d: %s", ErrUnexpectedResponse, status, text)
	}
	data, present := response.Data[m.Field]
	if len(response.Errors) > 0 {
		// If the server made the change or found another version, but could not read fields of the payload, the
		// payload has no record.
		unread := data != nil && (strings.HasPrefix(string(*data), `{"result":null,"userErrors":[]`) || strings.HasPrefix(string(*data), `{"result":null,"userErrors":[{"__typename":"VersionConflict"`))
		if (data == nil && present && len(response.Errors) == 1 || unread) && !slices.ContainsFunc(response.Errors, responseError.isFinal) {
			return Response{}, fmt.Errorf("%w: %s", ErrUnknownOutcome, response.Errors[0].Message)
		}
		return Response{}, fmt.Errorf("%w: %s", ErrUnexpectedResponse, text)
	}
	if data == nil {
		return Response{}, fmt.Errorf("%w: %s", ErrUnexpectedResponse, text)
	}
	var payload struct {
		Result     json.RawMessage
		UserErrors []struct {
			Typename string `json:"__typename"`
			Code     string
		}
	}
	if err := json.Unmarshal(*data, &payload); err != nil {
		return Response{}, fmt.Errorf("%w: %s", ErrUnexpectedResponse, text)
	}
	a := Response{RecordJSON: string(payload.Result)}
	for _, e := range payload.UserErrors {
		if !slices.Contains(DeclaredUserErrors[m.Field], e.Typename) {
			return Response{}, fmt.Errorf("%w: %s returned the user error %s, which its payload type does not declare", ErrUnexpectedResponse, m.Field, e.Typename)
		}
		a.UserErrorCodes = append(a.UserErrorCodes, e.Code)
	}
	if a.Succeeded() && a.RecordJSON == "null" {
		return Response{}, fmt.Errorf("%w: the payload has neither a record nor a user error: %s", ErrUnexpectedResponse, text)
	}
	if err := json.Unmarshal(payload.Result, &a.record); err != nil {
		return Response{}, fmt.Errorf("%w: %s", ErrUnexpectedResponse, text)
	}
	return a, nil
}

// SendWithRetries sends a mutation until it gets a response, and returns the number of attempts. If
// all attempts fail, it returns ErrUnknownOutcome. After an invalid response, it returns
// ErrUnexpectedResponse.
func (c *Client) SendWithRetries(ctx context.Context, url func() string, m Mutation, attempts int) (Response, int, error) {
	var err error
	for n := 1; n <= attempts; n++ {
		var a Response
		if a, err = c.Send(ctx, url(), m); err == nil || !errors.Is(err, ErrUnknownOutcome) {
			return a, n, err
		}
	}
	return Response{}, attempts, err
}
