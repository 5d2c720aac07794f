package check

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/repair"
)

// gathering makes units of the records of a segment, and suspects those that look wrong. What it
// reads is eventually consistent and of different moments; that is cheap, and a suspicion is no
// more than that.
type gathering struct {
	check *check

	// open is the unit whose item collection goes on, and partition its partition key.
	open      unit
	key       unitKey
	partition string

	// complete are the units of the page whose collections have been read to the end.
	complete map[unitKey]unit
	// copies are customers' copies of orders on the page.
	copies []model.CustomerOrderKey
}

// take takes a page.
func (g *gathering) take(ctx context.Context, page []map[string]types.AttributeValue, last bool) error {
	c := g.check
	g.complete, g.copies = map[unitKey]unit{}, nil
	foreign := 0
	for _, rec := range page {
		k := model.KeyOf(rec)
		e := model.EntityOf(k)
		if e == nil {
			foreign++
			continue
		}
		if e.Name == model.EntityOrderCounts.Name {
			c.orders.See(rec)
		}
		if k.PK != g.partition {
			g.close()
			g.begin(e, k.PK)
		}
		if e.Name == model.EntityCategory.Name {
			c.seeCategory(rec)
		}
		if g.open == nil {
			continue
		}
		g.open.add(e, rec)
		c.lists.Listed(e, rec)
		if e.Name == model.EntityCustomerOrder.Name {
			g.copies = append(g.copies, model.CustomerOrderKey{
				Customer: commerce.CustomerID(model.KeyValue(e.PK, k.PK)), Order: commerce.OrderID(model.KeyValue(e.SK, k.SK)),
			})
		}
	}
	if last {
		g.close()
	}
	if err := g.lookUp(ctx); err != nil {
		return err
	}
	g.judge()
	c.mu.Lock()
	c.summary.Records += len(page)
	c.summary.Foreign += foreign
	c.progressLocked()
	c.mu.Unlock()
	return c.relieve(ctx)
}

func (g *gathering) close() {
	if g.open != nil {
		g.complete[g.key] = g.open
	}
	g.open, g.partition = nil, ""
}

// begin begins the unit of an item collection. Idempotency records belong to none: they follow from
// nothing and expire.
func (g *gathering) begin(e *model.Entity, partition string) {
	g.partition = partition
	id := model.KeyValue(e.PK, partition)
	switch e.PK {
	case model.EntityOrder.PK:
		g.key = unitKey{unitOrder, id}
		g.open = &orderUnit{id: commerce.OrderID(id), copies: map[commerce.CustomerID]model.Record{}}
	case model.EntityCustomer.PK:
		g.key, g.open = unitKey{unitCustomer, id}, newCustomerUnit(g.check.table, id)
	case model.EntityEmailClaim.PK:
		g.key, g.open = unitKey{unitClaim, id}, &claimUnit{email: id}
	case model.EntityEmployee.PK:
		g.key, g.open = unitKey{unitEmployee, id}, newEmployeeUnit(id)
	case model.EntityProduct.PK:
		u := newProductUnit(id)
		u.scanned = true
		g.key, g.open = unitKey{unitProduct, id}, u
	case model.EntityWarehouse.PK:
		g.key, g.open = unitKey{unitWarehouse, id}, newWarehouseUnit(id)
	}
}

// lookUp reads what the units of the page need and other partitions have, a hundred records a
// request: orders' copies, copies' orders, customers' claims and claims' customers.
func (g *gathering) lookUp(ctx context.Context) error {
	c := g.check
	var ks []model.Keys
	for _, u := range g.complete {
		switch u := u.(type) {
		case *orderUnit:
			ks = append(ks, u.copyKey(c.table, u.named()))
		case *customerUnit:
			ks = append(ks, u.claimKey(c.table))
		case *claimUnit:
			u.customer = u.named()
			ks = append(ks, u.customer.primary)
		}
	}
	for _, k := range g.copies {
		ks = append(ks, model.OrderByID.Key(c.table.KeyBuilder(), k.Order))
	}
	// Sorted so that two checks of one table make the same requests.
	slices.SortFunc(ks, func(a, b model.Keys) int { return cmp.Compare(a.PK+" "+a.SK, b.PK+" "+b.SK) })
	found, err := c.client.Get(ctx, repair.Eventual, ks...)
	if err != nil {
		return err
	}
	for _, u := range g.complete {
		switch u := u.(type) {
		case *orderUnit:
			if k := u.copyKey(c.table, u.named()); found[k] != nil {
				u.copies[u.named()] = found[k]
			}
		case *customerUnit:
			u.claim = found[u.claimKey(c.table)]
		case *claimUnit:
			if rec := found[u.customer.primary]; rec != nil {
				u.customer.keep(rec)
			}
		}
	}
	for _, k := range g.copies {
		order := found[model.OrderByID.Key(c.table.KeyBuilder(), k.Order)]
		if model.TextOf(order, "customerId") != string(k.Customer) {
			c.suspect(unitKey{unitOrder, string(k.Order)}, suspicion{customers: []commerce.CustomerID{k.Customer}})
		}
	}
	return nil
}

// judge suspects units of the page, and learns from the others.
func (g *gathering) judge() {
	c := g.check
	for k, u := range maps.All(g.complete) {
		v := u.judge(c)
		c.count(u)
		if order, ok := u.(*orderUnit); ok {
			c.orders.Add(order.id, order.main, v.Clean())
		}
		if v.Clean() {
			u.settled(c, v, v)
			continue
		}
		c.suspect(k, suspicion{findings: v.Findings, recount: v.Has(repair.DriftStockTotal)})
	}
}

// count counts a unit that was gathered, and keeps what is needed of it when the table has been
// read.
func (c *check) count(u unit) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch u := u.(type) {
	case *orderUnit:
		c.summary.Orders++
		if late, ok := u.lateByEvent(); ok {
			c.suspectLocked(unitKey{unitCustomer, string(u.truth.CustomerID)}, suspicion{byEvent: late})
		}
	case *customerUnit:
		c.summary.Customers++
		if late, ok := u.lateByCopy(c.table); ok {
			c.suspectLocked(unitKey{unitCustomer, string(u.id)}, suspicion{byCopy: late})
		}
	case *claimUnit:
		if id := model.TextOf(u.claim, model.AttrCustomerID); u.customer.main() == nil && id != "" {
			c.suspectLocked(unitKey{unitCustomer, id}, suspicion{address: u.email})
		}
	case *employeeUnit:
		c.summary.Employees++
		c.lists.Employee(u.primary, u.records)
	case *warehouseUnit:
		c.summary.Warehouses++
		c.warehouses[u.id] = true
	case *productUnit:
		c.summary.Products++
		c.seeProduct(u)
		if u.truth != nil {
			c.lists.Product(u.primary, u.truth.OrderCount)
		}
		if u.inventory != nil && u.main() != nil {
			at := model.Reader{Record: u.main()}
			if available := at.Number(model.AttrAvailable); at.Err() == nil {
				c.stock[u.sku] = stockSeen{inventory: *u.inventory, available: available}
			}
		}
	}
}
