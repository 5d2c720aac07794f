package check

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// reservation contains the stock that an order reserves. It maps the SKU of each product to the
// reserved quantity.
type reservation map[commerce.SKU]int

// embeddedItemsReservation returns the stock that an order reserves, according to the list of line
// items in the order's own record. If the order reserves stock but its record has no readable list,
// listed is false.
func embeddedItemsReservation(t *table.Table, order model.Record) (held reservation, listed bool) {
	status, err := commerce.ParseStatus(model.TextOf(order, "status"))
	if err != nil || !status.ReservesStock() {
		return nil, true
	}
	at := model.Reader{Record: order}
	lines, err := decodeLines(order["items"], at.Currency(t.Currency))
	if err != nil {
		return nil, false
	}
	return lineItemsReservation(lines), true
}

// lineItemsReservation returns the stock that an order with the given line items reserves. The
// order must have a status that reserves stock.
func lineItemsReservation(lines []commerce.LineItem) reservation {
	held := reservation{}
	for _, line := range lines {
		held[line.SKU] += line.Quantity
	}
	return held
}

// itemRecordsReservation returns the stock that an order reserves, according to the records of its
// line items. The order must have a status that reserves stock.
func itemRecordsReservation(items []model.Record) reservation {
	held := reservation{}
	for _, rec := range items {
		at := model.Reader{Record: rec}
		held[commerce.SKU(model.FirstPlaceholderValue(model.EntityOrderItem.SK, at.Text(model.AttrSK)))] += at.Number("qty")
	}
	return held
}

// namedProducts returns the products in a record of an order: the product of a line item, or all
// products in the record's list of line items.
func namedProducts(rec model.Record) (skus []commerce.SKU) {
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

// linesTotal returns the total price of the given line items in the currency c.
//
// If the total has more digits than an amount can have, linesTotal returns an error.
func linesTotal(lines []commerce.LineItem, c commerce.Currency) (commerce.Money, error) {
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

// readProducts reads the records of the products with the given SKUs.
//
// It returns the errors of repair.Client.Get.
func readProducts(ctx context.Context, client *client, skus []commerce.SKU) (map[commerce.SKU]model.Record, error) {
	b := client.table.KeyBuilder()
	keys := make([]model.Keys, len(skus))
	for i, sku := range skus {
		keys[i] = model.ProductBySKU.Key(b, sku)
	}
	found, err := client.get(ctx, consistent, keys...)
	if err != nil {
		return nil, err
	}
	products := make(map[commerce.SKU]model.Record, len(skus))
	for i, sku := range skus {
		products[sku] = found[keys[i]]
	}
	return products, nil
}
