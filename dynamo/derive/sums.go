package derive

import (
	"github.com/govalues/decimal"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
)

// Sum declares numbers in the records of one entity. Each number adds up what base values
// contribute. Base values are orders with their line items, payments, fulfillments, inventory levels and products.
type Sum struct {
	// Target is the entity whose records store the numbers.
	Target *model.Entity
	// Attributes are the names of the numbers.
	Attributes []string
	// Optional reports whether a stored record can lack the numbers. Mutations leave a missing number
	// missing, and `ordergraph check -repair` adds it. Otherwise, a missing number counts as 0, and a
	// mutation adds the record or the number.
	Optional bool
	// Floor reports whether no mutation makes the numbers negative.
	Floor bool
	// Max is the highest value to which mutations increase the numbers. 0 means no maximum.
	Max int
	// Revision is an attribute of the target that increases with every change of the numbers, or empty
	// (model.IsRevision).
	Revision string
	// DeletedAtZero reports whether a mutation deletes the target instead of storing the number 0.
	DeletedAtZero bool
	// Local reports whether the base values are in the target's item collection.
	Local bool
	// List is the list in the index that contains a record for each contribution, or nil. The value in
	// the list's partition key is also the first value of the target. Listed returns a base value which
	// makes that contribution, from this value and the values in the primary key of the record.
	List   *model.AccessPattern
	Listed func(value string, key map[string]string) any
	// from declares what base values contribute.
	from []contribution
}

// contributor receives what a base value contributes. It is a struct instead of a function, so that
// the targets allocate nothing.
type contributor struct {
	layout model.Layout
	sum    *Sum
	yield  func(Target, Amount)
}

// add adds an amount to the named attribute of a target. The target consists of the values for
// the placeholders in its primary key, and its shard if the key contains one.
func (c *contributor) add(attribute string, amount decimal.Decimal, values ...string) {
	target := Target{Entity: c.sum.Target}
	copy(target.values[:], values)
	c.yield(target, Amount{c.sum, attribute, amount})
}

// contribution declares what the base values of one entity contribute. Its function ignores the base
// values of other entities.
type contribution struct {
	entity *model.Entity
	of     func(base any, to *contributor)
}

// from returns the contribution of the base values with type B.
func from[B any](of func(b *B, to *contributor)) contribution {
	return contribution{model.EntityOfValue(new(B)), func(base any, to *contributor) {
		if b, ok := base.(*B); ok && b != nil {
			of(b, to)
		}
	}}
}

// Bases returns the entities whose base values contribute to the numbers.
func (s *Sum) Bases() []*model.Entity {
	var bases []*model.Entity
	for _, c := range s.from {
		bases = append(bases, c.entity)
	}
	return bases
}

// sums contains all declared sums. Do not modify it.
var sums = []Sum{
	{Target: &model.EntityOrderCounts, Attributes: statusNames(), from: []contribution{
		from(func(o *commerce.Order, to *contributor) {
			part, shard := to.layout.OrderCounter(o.ID)
			to.add(o.Status.String(), number(1), part, shard)
		}),
	}},
	{Target: &model.EntityRepOrders, Attributes: []string{model.AttrOrders},
		List: &model.EmployeeOrders.AccessPattern,
		Listed: func(rep string, key map[string]string) any {
			return &commerce.Order{ID: commerce.OrderID(key["orderId"]), AccountRepID: commerce.EmployeeID(rep)}
		},
		from: []contribution{
			from(func(o *commerce.Order, to *contributor) {
				if o.AccountRepID != "" {
					to.add(model.AttrOrders, number(1), string(o.AccountRepID), model.RepOrderCountPart(o.ID))
				}
			}),
		}},
	{Target: &model.EntityDailySales, Attributes: []string{model.AttrOrders, model.AttrSpent}, from: []contribution{
		from(func(o *commerce.Order, to *contributor) {
			s := o.DailySales(to.layout.DayOf)
			part, shard := to.layout.OrderCounter(o.ID)
			target := []string{string(s.Total.Currency), string(s.Day), part, shard}
			to.add(model.AttrOrders, number(s.Orders), target...)
			to.add(model.AttrSpent, s.Total.Amount, target...)
		}),
	}},
	{Target: &model.EntitySpending, Local: true, Attributes: []string{model.AttrOrders, model.AttrSpent}, from: []contribution{
		from(func(o *commerce.Order, to *contributor) {
			s := o.Spending()
			if s.CustomerID.IsGuest() {
				return
			}
			target := []string{string(s.CustomerID), s.Month, string(s.Total.Currency)}
			to.add(model.AttrOrders, number(s.Orders), target...)
			to.add(model.AttrSpent, s.Total.Amount, target...)
		}),
	}},
	{Target: &model.EntityLastEvent, Local: true, Attributes: []string{model.AttrOpenOrders, model.AttrReservedUnits}, from: []contribution{
		from(func(o *commerce.Order, to *contributor) {
			if !o.Status.ReservesStock() || o.CustomerID.IsGuest() {
				return
			}
			to.add(model.AttrOpenOrders, number(1), string(o.CustomerID))
			for _, item := range o.Items {
				to.add(model.AttrReservedUnits, number(item.Quantity), string(o.CustomerID))
			}
			for _, line := range o.ShippedLines() {
				to.add(model.AttrReservedUnits, number(-line.Quantity), string(o.CustomerID))
			}
		}),
	}},
	{Target: &model.EntityOrder, Local: true, Optional: true, Floor: true, Attributes: []string{model.AttrAuthorized, model.AttrCaptured, model.AttrRefunded}, from: []contribution{
		from(func(p *commerce.Payment, to *contributor) {
			attribute, amount := model.AttrAuthorized, p.Amount.Amount
			switch p.Kind {
			case commerce.PaymentVoid:
				amount = amount.Neg()
			case commerce.PaymentCapture:
				attribute = model.AttrCaptured
			case commerce.PaymentRefund, commerce.PaymentChargeback:
				attribute = model.AttrRefunded
			case commerce.PaymentAuthorization:
			}
			to.add(attribute, amount, string(p.OrderID))
		}),
	}},
	{Target: &model.EntityReturn, Local: true, Optional: true, Floor: true, Attributes: []string{model.AttrRefunded}, from: []contribution{
		from(func(p *commerce.Payment, to *contributor) {
			if p.ReturnID != "" {
				to.add(model.AttrRefunded, p.Amount.Amount, string(p.OrderID), string(p.ReturnID))
			}
		}),
	}},
	{Target: &model.EntityOrder, Local: true, Optional: true, Attributes: []string{model.AttrFulfillments, model.AttrUndelivered}, from: []contribution{
		from(func(f *commerce.Fulfillment, to *contributor) {
			if f.Status != commerce.FulfillmentCancelled {
				to.add(model.AttrFulfillments, number(1), string(f.OrderID))
			}
			if f.Status == commerce.FulfillmentShipped {
				to.add(model.AttrUndelivered, number(1), string(f.OrderID))
			}
		}),
	}},
	{Target: &model.EntityCustomer, Attributes: []string{model.AttrOrderCount}, Optional: true, Local: true, from: []contribution{
		from(func(o *commerce.Order, to *contributor) {
			if !o.CustomerID.IsGuest() {
				to.add(model.AttrOrderCount, number(1), string(o.CustomerID))
			}
		}),
	}},
	{Target: &model.EntityProduct, Revision: model.AttrStockRevision, Attributes: []string{model.AttrOrderCount}, Optional: true,
		List: &model.ProductOrderItems.AccessPattern,
		Listed: func(sku string, _ map[string]string) any {
			return &commerce.Order{Items: []commerce.LineItem{{SKU: commerce.SKU(sku)}}}
		},
		from: []contribution{
			from(func(o *commerce.Order, to *contributor) {
				counted := map[commerce.SKU]bool{}
				for _, item := range o.Items {
					if !counted[item.SKU] {
						to.add(model.AttrOrderCount, number(1), string(item.SKU))
					}
					counted[item.SKU] = true
				}
			}),
		}},
	{Target: &model.EntityProduct, Revision: model.AttrStockRevision, Attributes: []string{model.AttrTotalInventory}, Optional: true, Local: true, Max: commerce.MaxTotalInventory, from: []contribution{
		from(func(l *commerce.InventoryLevel, to *contributor) {
			to.add(model.AttrTotalInventory, number(l.Quantity), string(l.SKU))
		}),
	}},
	{Target: &model.EntityProduct, Revision: model.AttrStockRevision, Attributes: []string{model.AttrAvailable}, Optional: true, Floor: true, from: []contribution{
		from(func(l *commerce.InventoryLevel, to *contributor) {
			to.add(model.AttrAvailable, number(l.Quantity), string(l.SKU))
		}),
		from(func(o *commerce.Order, to *contributor) {
			if !o.Status.ReservesStock() {
				return
			}
			for _, item := range o.Items {
				to.add(model.AttrAvailable, number(-item.Quantity), string(item.SKU))
			}
			for _, line := range o.ShippedLines() {
				to.add(model.AttrAvailable, number(line.Quantity), string(line.SKU))
			}
		}),
	}},
	{Target: &model.EntityWarehouse, Revision: model.AttrVersion, Attributes: []string{model.AttrProductCount}, Optional: true,
		List: &model.WarehouseInventory.AccessPattern,
		Listed: func(warehouse string, _ map[string]string) any {
			return &commerce.InventoryLevel{WarehouseID: commerce.WarehouseID(warehouse)}
		},
		from: []contribution{
			from(func(l *commerce.InventoryLevel, to *contributor) {
				to.add(model.AttrProductCount, number(1), string(l.WarehouseID))
			}),
		}},
	{Target: &model.EntityCategory, Revision: model.AttrVersion, DeletedAtZero: true, Attributes: []string{model.AttrProductCount},
		List:   &model.Products.AccessPattern,
		Listed: func(category string, _ map[string]string) any { return &commerce.Product{Category: category} },
		from: []contribution{
			from(func(p *commerce.Product, to *contributor) {
				if p.Category != "" {
					to.add(model.AttrProductCount, number(1), p.Category)
				}
			}),
		}},
}

func number(n int) decimal.Decimal { return decimal.MustNew(int64(n), 0) }

func statusNames() []string {
	var names []string
	for _, s := range commerce.Statuses() {
		names = append(names, s.String())
	}
	return names
}

// Sums returns all declared sums.
func Sums() []Sum { return sums }
