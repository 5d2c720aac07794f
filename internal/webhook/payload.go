package webhook

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/graph"
	"github.com/ordergraph/ordergraph/graph/scalar"
)

// typePrefix begins the type of each CloudEvent. The rest is the type of the event in lower case.
const typePrefix = "ordergraph.order."

// OrderDocument is the document whose answer the events of a webhook contain, unless the webhook
// has a trusted document.
const OrderDocument = `query WebhookOrder($orderId: ID!) {
  order(id: $orderId) {
    id version status placedAt updatedAt paymentState fulfillmentState
    total { amount currencyCode } subtotal { amount currencyCode }
    adjustments { kind label amount { amount currencyCode } included }
    captured { amount currencyCode } refunded { amount currencyCode } outstanding { amount currencyCode }
    customer { id }
    items(first: 50) { nodes { sku name quantity cancelled unitPrice { amount currencyCode } subtotal { amount currencyCode } } }
    shippingAddress { recipient line1 line2 city region postalCode countryCode }
    tags trackingNumber carrier expiresAt
  }
}`

// cloudEvent is the body of a request.
type cloudEvent struct {
	SpecVersion     string      `json:"specversion"`
	ID              string      `json:"id"`
	Source          string      `json:"source"`
	Type            string      `json:"type"`
	Subject         string      `json:"subject"`
	Time            dateTime    `json:"time"`
	DataContentType string      `json:"datacontenttype"`
	Data            payloadData `json:"data"`
}

type payloadData struct {
	Event payloadEvent `json:"event"`
	// Version is the version of the order after the event. PreviousVersion is the version after the
	// last event of the order that was delivered before.
	Version         int             `json:"version"`
	PreviousVersion *int            `json:"previousVersion"`
	Order           json.RawMessage `json:"order,omitempty"`
	// Result is the answer of the webhook's trusted document.
	Result json.RawMessage `json:"result,omitempty"`
}

// payloadEvent contains the fields of the GraphQL type OrderEvent.
type payloadEvent struct {
	ID          commerce.EventID     `json:"id"`
	Type        string               `json:"type"`
	At          dateTime             `json:"at"`
	Actor       string               `json:"actor"`
	From        *string              `json:"from"`
	To          *string              `json:"to"`
	Note        *string              `json:"note"`
	WarehouseID commerce.WarehouseID `json:"warehouseId,omitempty"`
}

// dateTime is a time whose JSON form is the one of the GraphQL type DateTime.
type dateTime time.Time

// MarshalJSON implements json.Marshaler.
func (t dateTime) MarshalJSON() ([]byte, error) { return scalar.AppendDateTime(nil, time.Time(t)), nil }

// payload returns the body of the request that delivers an event.
//
// Errors: errors of Options.Execute.
func (d *Dispatcher) payload(ctx context.Context, w *commerce.Webhook, event *commerce.Event, previous int) ([]byte, error) {
	answer, err := d.orders.get(w.DocumentID+" "+string(event.ID), func() (json.RawMessage, error) {
		return d.Execute(ctx, w.DocumentID, event.OrderID)
	})
	if err != nil {
		return nil, err
	}
	name := graph.EventTypeName(event.Type)
	data := payloadData{Version: event.Version, Event: payloadEvent{ID: event.ID, Type: name, At: dateTime(event.At), Actor: event.Actor, WarehouseID: event.WarehouseID}}
	if previous > 0 {
		data.PreviousVersion = &previous
	}
	if event.Note != "" {
		data.Event.Note = &event.Note
	}
	for _, s := range []struct {
		to     **string
		status commerce.Status
	}{{&data.Event.From, event.From}, {&data.Event.To, event.To}} {
		if s.status != 0 {
			*s.to = new(graph.StatusName(s.status))
		}
	}
	if data.Order = answer; w.DocumentID != "" {
		data.Order, data.Result = nil, answer
	}
	return json.Marshal(cloudEvent{
		SpecVersion: "1.0", ID: string(event.ID), Source: d.Source, Type: typePrefix + strings.ToLower(name), Subject: string(event.OrderID),
		Time: dateTime(event.At), DataContentType: "application/json", Data: data,
	})
}
