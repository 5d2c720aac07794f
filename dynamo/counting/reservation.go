package counting

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/repair"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// Reservation contains the stock that an order reserves. It maps the SKU of each product to the
// reserved quantity.
type Reservation map[commerce.SKU]int

// EmbeddedItemsReservation returns the stock that an order reserves, according to the list of line
// items in the order's own record. If the order reserves stock but its record has no readable list,
// listed is false.
func EmbeddedItemsReservation(t *table.Table, order model.Record) (held Reservation, listed bool) {
	status, err := commerce.ParseStatus(model.TextOf(order, "status"))
	if err != nil || !status.ReservesStock() {
		return nil, true
	}
	at := model.Reader{Record: order}
	lines, err := repair.DecodeLines(order["items"], at.Currency(t.Currency))
	if err != nil {
		return nil, false
	}
	return LineItemsReservation(lines), true
}

// LineItemsReservation returns the stock that an order with the given line items reserves. The
// order must have a status that reserves stock.
func LineItemsReservation(lines []commerce.LineItem) Reservation {
	held := Reservation{}
	for _, line := range lines {
		held[line.SKU] += line.Quantity
	}
	return held
}

// ItemRecordsReservation returns the stock that an order reserves, according to the records of its
// line items. The order must have a status that reserves stock.
func ItemRecordsReservation(items []model.Record) Reservation {
	held := Reservation{}
	for _, rec := range items {
		at := model.Reader{Record: rec}
		held[commerce.SKU(model.FirstPlaceholderValue(model.EntityOrderItem.SK, at.Text(model.AttrSK)))] += at.Number("qty")
	}
	return held
}

// NamedProducts returns the products in a record of an order: the product of a line item, or all
// products in the record's list of line items.
func NamedProducts(rec model.Record) (skus []commerce.SKU) {
	if e := model.EntityOf(model.KeyOf(rec)); e != nil && e.Name == model.EntityOrderItem.Name {
		return []commerce.SKU{commerce.SKU(model.FirstPlaceholderValue(e.SK, model.TextOf(rec, model.AttrSK)))}
	}
	if l, ok := rec["items"].(*types.AttributeValueMemberL); ok {
		for _, e := range l.Value {
			if m, ok := e.(*types.AttributeValueMemberM); ok {
				skus = append(skus, commerce.SKU(model.TextOf(m.Value, "productId")))
			}
		}
	}
	return skus
}

// LinesTotal returns the total price of the given line items in the currency c.
//
// If the total has more digits than an amount can have, LinesTotal returns an error.
func LinesTotal(lines []commerce.LineItem, c commerce.Currency) (commerce.Money, error) {
	total := commerce.Money{Currency: c}
	for _, line := range lines {
		line.UnitPrice.Currency = c
		subtotal, err := line.Subtotal()
		if err != nil {
			return total, err
		}
		if total, err = total.Plus(subtotal); err != nil {
			return total, err
		}
	}
	return total, nil
}

// ReadProducts reads the records of the products with the given SKUs.
//
// It returns the errors of repair.Client.Get.
func ReadProducts(ctx context.Context, client *repair.Client, skus []commerce.SKU) (map[commerce.SKU]model.Record, error) {
	b := client.Table.KeyBuilder()
	keys := make([]model.Keys, len(skus))
	for i, sku := range skus {
		keys[i] = model.ProductBySKU.Key(b, sku)
	}
	found, err := client.Get(ctx, repair.Consistent, keys...)
	if err != nil {
		return nil, err
	}
	products := make(map[commerce.SKU]model.Record, len(skus))
	for i, sku := range skus {
		products[sku] = found[keys[i]]
	}
	return products, nil
}
