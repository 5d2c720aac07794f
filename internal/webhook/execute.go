package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/ordergraph/ordergraph/access"
	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/table"
	"github.com/ordergraph/ordergraph/graph"
	"github.com/ordergraph/ordergraph/graph/document"
	"github.com/ordergraph/ordergraph/graph/errcode"
	"github.com/ordergraph/ordergraph/graph/rate"
	"github.com/ordergraph/ordergraph/internal/admission"
)

// orderDocumentID is the ID of OrderDocument.
const orderDocumentID = "ordergraph:webhook"

// NewExecute returns a function for Options.Execute. It executes documents with the permissions of
// a service and the limits in opts, but without rate limits. Its reads are strongly consistent, so
// the answer contains the order after the event or after a later one.
func NewExecute(opts graph.Options) func(context.Context, string, commerce.OrderID) (json.RawMessage, error) {
	opts.Store, opts.Feed, opts.Rates, opts.Authenticated = opts.Store.Consistent(), nil, rate.Options{}, true
	opts.Documents = append(slices.Clip(opts.Documents), document.TrustedDocument{ID: orderDocumentID, Text: OrderDocument})
	opts.OnInvalidDocument, opts.Observer = nil, nil
	executor := graph.NewExecutor(opts)
	return func(ctx context.Context, documentID string, id commerce.OrderID) (json.RawMessage, error) {
		ctx = graph.WithPrincipal(ctx, access.Principal{ID: "webhook", Name: "webhook", Role: access.RoleService})
		ctx = admission.WithCaller(ctx, admission.Caller{Key: "webhook"})
		request := graph.Request{DocumentID: documentID, Variables: map[string]any{"orderId": string(id)}, ReadOnly: true}
		if documentID == "" {
			request.DocumentID = orderDocumentID
		}
		result := executor.Execute(ctx, request)
		if len(result.Errors) > 0 {
			return nil, documentError(result)
		}
		if documentID != "" {
			return json.Marshal(result.Response)
		}
		var data struct{ Order json.RawMessage }
		if err := json.Unmarshal(result.Data, &data); err != nil {
			return nil, fmt.Errorf("the answer is no JSON: %w", err)
		}
		return data.Order, nil
	}
}

// documentError returns the error of a document. If a later attempt may succeed without a change of
// the document, the error wraps table.ErrUnavailable.
func documentError(result graph.Result) error {
	err := result.Errors[0]
	switch code, _ := err.Extensions["code"].(string); {
	case result.Outcome == graph.Overloaded, code == errcode.Unavailable, code == errcode.Overloaded, code == errcode.TimedOut:
		return fmt.Errorf("%w: %s", table.ErrUnavailable, err.Message)
	default:
		return fmt.Errorf("the document of the webhook failed: %s", err.Message)
	}
}
