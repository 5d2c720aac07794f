package model

import "github.com/ordergraph/ordergraph/commerce"

// OrderReturnsFeature is the name of the feature that a table must have before orders get returns. Servers that do
// not know it would refund more than was paid for the pieces of a return, and reject the types of its events.
const OrderReturnsFeature = "order." + attrReturns

const attrReturns = "returns"

// returnAttributes declares the attributes of a return. The sum of its refunds is omitted until the first refund.
func returnAttributes(a *attributeVisitor, r *commerce.Return) {
	textAttribute(a, "returnId", &r.ID, commerce.ULIDLength)
	textAttribute(a, "orderId", &r.OrderID, commerce.ULIDLength)
	parsedTextAttribute(a, "status", &r.Status, commerce.ParseReturnStatus, commerce.ReturnRequested)
	listAttribute(a, "lines", &r.Lines, commerce.MaxReturnLines, presenceRequired, returnLineAttributes)
	a.currencyAttribute(&r.Amount)
	a.amount("amount", &r.Amount, commerce.MaxAmountDigits)
	a.optionalAmount(AttrRefunded, &r.Refunded)
	optionalTextAttribute(a, "rejectionReason", &r.RejectionReason, commerce.MaxReturnReason)
	personal(a, &r.RejectionReason)
	optionalTextAttribute(a, "warehouseId", &r.WarehouseID, commerce.MaxIDLength)
	a.createdAt(&r.CreatedAt)
	a.updatedAt(&r.UpdatedAt, r.CreatedAt)
	lenientTextAttribute(a, "actor", &r.Actor, commerce.MaxName)
	personal(a, &r.Actor)
}

// optionalAmount declares an amount that is omitted if it is 0.
func (a *attributeVisitor) optionalAmount(name string, v *commerce.Money) {
	switch a.mode {
	case modeReading:
		if v.Currency = a.currency; a.Has(name) {
			*v = a.requiredMoney(name, a.currency)
		}
	case modeDescribing:
		a.describe(name, "N", 0, presenceOptional)
	case modeWriting, modeMaximizing:
		if a.mode == modeMaximizing || !v.Amount.IsZero() {
			a.amount(name, v, commerce.MaxPriceDigits)
		}
	}
}

func returnLineAttributes(a *attributeVisitor, v *commerce.ReturnLine) {
	textAttribute(a, "productId", &v.SKU, commerce.MaxIDLength)
	a.requiredNumber("qty", &v.Quantity)
	lenientTextAttribute(a, "reason", &v.Reason, commerce.MaxReturnReason)
	personal(a, &v.Reason)
	a.optionalCounter("restocked", &v.Restocked, nil)
}

// ReturnLineAttributes returns the attributes of a line of a return.
func ReturnLineAttributes() []Attribute { return describeAttributes(returnLineAttributes) }

// ReturnKey identifies a return by its order and its ID.
type ReturnKey struct {
	Order commerce.OrderID
	ID    commerce.ReturnID
}

// KeysOfReturn returns the primary key of a return.
func KeysOfReturn(b *KeyBuilder, k ReturnKey) Keys {
	return Keys{PK: b.Build(EntityReturn.PK, string(k.Order)), SK: b.Build(EntityReturn.SK, string(k.ID))}
}

// DecodeReturn decodes a return.
//
// Errors: ErrCorrupt.
func (codec *Codec) DecodeReturn(r Reader) (*commerce.Return, error) {
	return codecFor[commerce.Return](returnAttributes).read(codec, r)
}
