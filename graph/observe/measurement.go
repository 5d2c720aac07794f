package observe

import (
	"context"
	"time"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/ordergraph/ordergraph/dynamo/trace"
	"github.com/ordergraph/ordergraph/graph/document"
)

// Measurement measures one operation for an Observer. The methods of a nil Measurement do nothing.
type Measurement struct {
	operation Operation
	observer  Observer
	start     time.Time
	usage     trace.Usage
}

// Begin begins a Measurement. The returned context counts the DynamoDB requests of the operation.
// text is the text of the request's document. The Measurement is nil if o is nil or does not
// observe the operation.
func Begin(ctx context.Context, o Observer, text string) (context.Context, *Measurement) {
	if o == nil || !o.Observes(ctx) {
		return ctx, nil
	}
	m := &Measurement{operation: Operation{Name: UntrustedName, Type: UnknownType, document: text}, observer: o, start: time.Now()}
	m.usage.Exact = true
	return m.usage.NewContext(ctx), m
}

// BeginEvent begins the Measurement of one execution of a subscription's operation for one event.
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

// SetOperation records the document of the request and the chosen operation. chosen is nil if the
// document does not contain the requested operation.
func (m *Measurement) SetOperation(d *document.Document, chosen *ast.OperationDefinition) {
	if m == nil {
		return
	}
	m.operation.document = d.Text
	if chosen == nil {
		return
	}
	m.operation.Type = string(chosen.Operation)
	if d.Trusted && chosen.Name != "" {
		m.operation.Name, m.operation.document = chosen.Name, ""
	}
}

// End ends the Measurement. errs are the errors of the operation.
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
