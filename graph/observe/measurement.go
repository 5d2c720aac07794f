package observe

import (
	"context"
	"time"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/ordergraph/ordergraph/dynamo/trace"
	"github.com/ordergraph/ordergraph/graph/document"
)

// Measurement measures the duration and the DynamoDB requests of one operation for an Observer. The
// methods of a nil Measurement do nothing.
type Measurement struct {
	operation Operation
	observer  Observer
	start     time.Time
	usage     trace.Usage
}

// Begin starts a Measurement. The returned context counts the DynamoDB requests. If o is nil or
// does not observe the operation, the Measurement is nil.
func Begin(ctx context.Context, o Observer, text string) (context.Context, *Measurement) {
	if o == nil || !o.Observes(ctx) {
		return ctx, nil
	}
	m := &Measurement{operation: Operation{Name: UntrustedName, Type: UnknownType, Document: text}, observer: o, start: time.Now()}
	m.usage.Exact = true
	return m.usage.NewContext(ctx), m
}

// BeginEvent starts a Measurement for one event of a subscription, or for an error that ends it. d
// is the document, and chosen is the operation that the server executes for each event.
func BeginEvent(ctx context.Context, o Observer, d *document.Document, chosen *ast.OperationDefinition) (context.Context, *Measurement) {
	if o == nil {
		return ctx, nil
	}
	ctx, m := Begin(o.BeginEvent(ctx), o, "")
	if m != nil {
		m.operation.Event = true
		m.SetOperation(d, chosen)
	}
	return ctx, m
}

// SetOperation records the request's document and the operation to execute. If the document does
// not contain the requested operation, chosen is nil.
func (m *Measurement) SetOperation(d *document.Document, chosen *ast.OperationDefinition) {
	if m == nil {
		return
	}
	m.operation.Document = d.Text
	if chosen == nil {
		return
	}
	m.operation.Type = string(chosen.Operation)
	if d.Trusted && chosen.Name != "" {
		m.operation.Name, m.operation.Document = chosen.Name, ""
	}
}

// SetWebhook records that the operation is not GraphQL, but a request of a webhook with this name.
func (m *Measurement) SetWebhook(name string) {
	if m != nil {
		m.operation.Name, m.operation.Type = name, WebhookType
	}
}

// End ends the Measurement and passes it to the Observer. errs are the errors of the operation.
func (m *Measurement) End(ctx context.Context, errs gqlerror.List) {
	if m == nil {
		return
	}
	o := &m.operation
	for _, err := range errs {
		code, _ := err.Extensions["code"].(string)
		o.Codes = append(o.Codes, code)
	}
	o.Duration = time.Since(m.start)
	o.Requests, o.ReadUnits, o.WriteUnits = m.usage.Requests(), m.usage.ReadUnits(), m.usage.WriteUnits()
	m.observer.EndOperation(ctx, m.operation)
}
