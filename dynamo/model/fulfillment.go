package model

import (
	"github.com/ordergraph/ordergraph/commerce"
)

// Attributes of an order's record, if the order has fulfillments that are not cancelled. Servers that do not know
// them would reserve the shipped pieces again.
const (
	// AttrFulfillments counts the fulfillments, and AttrUndelivered counts those that are under way.
	AttrFulfillments = "fulfillments"
	AttrUndelivered  = "undelivered"
	// AttrShipped contains the shipped pieces of each product.
	AttrShipped = "shippedLines"
)

// AttrTrackingNumber is the tracking number of an order or fulfillment.
const AttrTrackingNumber = "trackingNumber"

// OrderFulfillments is the name of the feature that a table must have before orders get fulfillments.
const OrderFulfillments = "order." + AttrFulfillments

// FulfillmentKey identifies a fulfillment by its order and its own ID.
type FulfillmentKey struct {
	Order commerce.OrderID
	ID    commerce.FulfillmentID
}

// KeysOfFulfillment returns the primary key of a fulfillment.
func KeysOfFulfillment(b *KeyBuilder, k FulfillmentKey) Keys {
	return Keys{PK: b.Build(EntityFulfillment.PK, string(k.Order)), SK: b.Build(EntityFulfillment.SK, string(k.ID))}
}

// fulfillmentAttributes declares the attributes of a fulfillment.
func fulfillmentAttributes(a *attributeVisitor, f *commerce.Fulfillment) {
	textAttribute(a, "fulfillmentId", &f.ID, commerce.ULIDLength)
	textAttribute(a, "orderId", &f.OrderID, commerce.ULIDLength)
	listAttribute(a, "lines", &f.Lines, commerce.MaxLines, presenceOptional, fulfillmentLineAttributes)
	textAttribute(a, "warehouseId", &f.WarehouseID, commerce.MaxIDLength)
	optionalTextAttribute(a, "carrier", &f.Carrier, commerce.MaxName)
	optionalTextAttribute(a, AttrTrackingNumber, &f.TrackingNumber, commerce.MaxName)
	optionalTextAttribute(a, "trackingUrl", &f.TrackingURL, commerce.MaxTrackingURL)
	parsedTextAttribute(a, "status", &f.Status, commerce.ParseFulfillmentStatus, commerce.FulfillmentDelivered)
	a.createdAt(&f.CreatedAt)
	a.updatedAt(&f.UpdatedAt, f.CreatedAt)
	lenientTextAttribute(a, "actor", &f.Actor, commerce.MaxName)
}

func fulfillmentLineAttributes(a *attributeVisitor, l *commerce.FulfillmentLine) {
	textAttribute(a, "sku", &l.SKU, commerce.MaxIDLength)
	if a.requiredNumber("qty", &l.Quantity); a.mode == modeMaximizing {
		l.Quantity = commerce.MaxQuantity - 1 // it has more digits than other quantities
	}
}

// fulfillmentTotals declares the sums of an order's fulfillments. They are omitted without fulfillments.
func (a *attributeVisitor) fulfillmentTotals(o *commerce.Order) {
	if a.mode == modeReading && !a.Has(AttrFulfillments) || (a.mode == modeWriting || a.mode == modeErasing) && o.Fulfilled == nil {
		return
	}
	if o.Fulfilled == nil {
		o.Fulfilled = new(commerce.FulfillmentTotals)
	}
	if t := o.Fulfilled; a.mode == modeReading {
		t.Count, t.Undelivered = a.RequiredNumber(AttrFulfillments), a.Number(AttrUndelivered)
	} else {
		a.putNumber(AttrFulfillments, &t.Count, presenceOptional)
		a.putNumber(AttrUndelivered, &t.Undelivered, presenceOptional)
	}
	most := commerce.MaxLines
	if a.mode == modeMaximizing {
		most = commerce.MaxEmbeddedItems // an order with more lines does not embed them, so it is smaller
	}
	listAttribute(a, AttrShipped, &o.Fulfilled.Shipped, most, presenceOptional, fulfillmentLineAttributes)
}

// DecodeFulfillment decodes a fulfillment.
//
// Errors: ErrCorrupt.
func (codec *Codec) DecodeFulfillment(r Reader) (*commerce.Fulfillment, error) {
	return codecFor[commerce.Fulfillment](fulfillmentAttributes).read(codec, r)
}
