package counting

import (
	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/repair"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// Holding is how much an order holds of each product.
type Holding map[commerce.SKU]int

// ListedHolding returns what an order holds according to its own record. listed is false if the
// order holds something and the record does not list it.
func ListedHolding(t *table.Table, order model.Record) (held Holding, listed bool) {
	status, err := commerce.ParseStatus(model.TextOf(order, "status"))
	if err != nil || !status.Reserves() {
		return nil, true
	}
	at := model.Reader{Record: order}
	lines, err := repair.DecodeLines(order["items"], at.Currency(t.Currency))
	if err != nil {
		return nil, false
	}
	return LinesHolding(lines), true
}

// LinesHolding returns what an order that reserves stock holds according to its lines.
func LinesHolding(lines []commerce.LineItem) Holding {
	held := Holding{}
	for _, line := range lines {
		held[line.SKU] += line.Quantity
	}
	return held
}

// ItemsHolding returns what an order that reserves stock holds according to the records of its
// items.
func ItemsHolding(items []model.Record) Holding {
	held := Holding{}
	for _, rec := range items {
		at := model.Reader{Record: rec}
		held[commerce.SKU(model.KeyValue(model.EntityOrderItem.SK, at.Text(model.AttrSK)))] += at.Number("qty")
	}
	return held
}
