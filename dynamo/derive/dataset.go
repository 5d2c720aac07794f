package derive

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
)

// Complete computes the fields of a dataset that depend on other records, such as order totals and
// available stock.
//
// If the dataset is inconsistent, it returns an error that wraps a commerce.InvalidError.
func Complete(b *commerce.Dataset) error {
	if err := b.CompleteOrders(); err != nil {
		return err
	}
	var totals Totals
	for i := range b.Levels {
		totals.Add(&b.Levels[i])
	}
	for i := range b.Orders {
		o := b.Orders[i]
		for n := range o.Fulfillments {
			o.Fulfilled = FulfillmentTotals(o.Fulfilled, Change{After: &o.Fulfillments[n]})
		}
		b.Orders[i].Fulfilled, o.Items = o.Fulfilled, o.Lines
		totals.Add(&o.Order)
		err := totals.Err()
		if err == nil && len(o.Payments) > 0 {
			b.Orders[i].PaymentTotals, err = PaymentTotals(nil, o.Total.Currency, o.Payments...)
		}
		for j := range o.Returns {
			if err == nil {
				err = completeReturn(o, &o.Returns[j])
			}
		}
		if err != nil {
			return fmt.Errorf("order %s: %w", o.ID, err)
		}
	}
	spending := map[string][]commerce.Spending{}
	for _, d := range totals.Of(&model.EntitySpending) {
		s := commerce.Spending{CustomerID: commerce.CustomerID(d.Value(0)), Month: d.Value(1), Orders: d.Int(model.AttrOrders)}
		s.Total = commerce.Money{Currency: commerce.Currency(d.Value(2)), Amount: d.value(model.AttrSpent)}
		spending[d.Value(0)] = append(spending[d.Value(0)], s)
	}
	for i := range b.Products {
		p := &b.Products[i]
		stock := totals.in(&model.EntityProduct, string(p.SKU))
		p.TotalInventory, p.Available = stock.Int(model.AttrTotalInventory), stock.Int(model.AttrAvailable)
	}
	for i := range b.Warehouses {
		w := &b.Warehouses[i]
		stored := totals.in(&model.EntityWarehouse, string(w.ID))
		w.ProductCount = new(stored.Int(model.AttrProductCount))
	}
	b.Spending = nil
	for i := range b.Customers {
		c := &b.Customers[i]
		orders := totals.in(&model.EntityCustomer, string(c.ID))
		c.OrderCount, c.SpendingComplete = new(orders.Int(model.AttrOrderCount)), true
		b.Spending = append(b.Spending, slices.SortedFunc(slices.Values(spending[string(c.ID)]), func(a, b commerce.Spending) int {
			return cmp.Or(cmp.Compare(a.Month, b.Month), cmp.Compare(a.Total.Currency, b.Total.Currency))
		})...)
	}
	return nil
}

// completeReturn computes the amounts of a return from the line items and the payments of its order o.
//
// It returns an error if an amount has too many digits.
func completeReturn(o commerce.OrderWithItems, r *commerce.Return) (err error) {
	if r.Amount, err = o.PaidFor(*r); err != nil {
		return err
	}
	refunded := Totals{Only: []*model.Entity{&model.EntityReturn}}
	for _, p := range o.Payments {
		refunded.Add(&p)
	}
	r.Refunded = commerce.Money{Currency: o.Total.Currency, Amount: refunded.in(&model.EntityReturn, string(o.ID), string(r.ID)).value(model.AttrRefunded)}
	return refunded.Err()
}
