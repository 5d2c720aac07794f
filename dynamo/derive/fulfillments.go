package derive

import (
	"cmp"
	"slices"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
)

// FulfillmentTotals adds up fulfillments of an order. before are the sums before the changes, or nil. If no
// fulfillment is left that is not cancelled, it returns nil.
func FulfillmentTotals(before *commerce.FulfillmentTotals, changes ...Change) *commerce.FulfillmentTotals {
	totals, sums, shipped := Totals{Only: []*model.Entity{&model.EntityOrder}}, commerce.FulfillmentTotals{}, map[commerce.SKU]int{}
	addLines := func(f any, sign int) {
		if f, ok := f.(*commerce.Fulfillment); ok && f.Status != commerce.FulfillmentCancelled {
			for _, line := range f.Lines {
				shipped[line.SKU] += sign * line.Quantity
			}
		}
	}
	if before != nil {
		sums = *before
		addLines(&commerce.Fulfillment{Lines: before.Shipped}, 1)
	}
	for _, c := range changes {
		totals.Add(c.After)
		totals.Subtract(c.Before)
		addLines(c.After, 1)
		addLines(c.Before, -1)
	}
	for _, d := range totals.Deltas {
		sums.Count += d.Int(model.AttrFulfillments)
		sums.Undelivered += d.Int(model.AttrUndelivered)
	}
	if sums.Count <= 0 {
		return nil
	}
	sums.Shipped = nil
	for sku, n := range shipped {
		if n > 0 {
			sums.Shipped = append(sums.Shipped, commerce.FulfillmentLine{SKU: sku, Quantity: n})
		}
	}
	slices.SortFunc(sums.Shipped, func(a, b commerce.FulfillmentLine) int { return cmp.Compare(a.SKU, b.SKU) })
	return &sums
}
