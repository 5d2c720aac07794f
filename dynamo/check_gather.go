package dynamo

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/commerce"
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
	copies []CustomerOrderKey
}

// take takes a page.
func (g *gathering) take(ctx context.Context, page []map[string]types.AttributeValue, last bool) error {
	c := g.check
	g.complete, g.copies = map[unitKey]unit{}, nil
	foreign := 0
	for _, rec := range page {
		k := keyOf(rec)
		e := entityOf(k)
		if e == nil {
			foreign++
			continue
		}
		if k.PK != g.partition {
			g.close()
			g.begin(e, k.PK)
		}
		if g.open == nil {
			continue
		}
		g.open.add(e, rec)
		if e.Name == entityCustomerOrder.Name {
			g.copies = append(g.copies, CustomerOrderKey{
				Customer: commerce.CustomerID(keyValue(e.PK, k.PK)), Order: commerce.OrderID(keyValue(e.SK, k.SK)),
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
func (g *gathering) begin(e *Entity, partition string) {
	g.partition = partition
	id := keyValue(e.PK, partition)
	switch e.PK {
	case entityOrder.PK:
		g.key = unitKey{unitOrder, id}
		g.open = &orderUnit{id: commerce.OrderID(id), copies: map[commerce.CustomerID]record{}}
	case entityCustomer.PK:
		g.key, g.open = unitKey{unitCustomer, id}, &customerUnit{id: commerce.CustomerID(id)}
	case entityEmailClaim.PK:
		g.key, g.open = unitKey{unitClaim, id}, &claimUnit{email: id}
	case entityEmployee.PK:
		g.key, g.open = unitKey{unitEmployee, id}, &employeeUnit{id: commerce.EmployeeID(id), records: map[keys]record{}}
	case entityProduct.PK:
		g.key, g.open = unitKey{unitProduct, id}, &productUnit{sku: commerce.SKU(id), scanned: true}
	case entityWarehouse.PK:
		g.key, g.open = unitKey{unitWarehouse, id}, &warehouseUnit{id: commerce.WarehouseID(id)}
	}
}

// lookUp reads what the units of the page need and other partitions have, a hundred records a
// request: orders' copies, copies' orders, customers' claims and claims' customers.
func (g *gathering) lookUp(ctx context.Context) error {
	c := g.check
	var ks []keys
	for _, u := range g.complete {
		switch u := u.(type) {
		case *orderUnit:
			ks = append(ks, u.copyKey(c.table, u.named()))
		case *customerUnit:
			ks = append(ks, u.claimKey(c.table))
		case *claimUnit:
			main, _ := u.customerKeys(c.table)
			ks = append(ks, main)
		}
	}
	for _, k := range g.copies {
		ks = append(ks, orderKey(c.table.keyBuilder(), k.Order))
	}
	// Sorted so that two checks of one table make the same requests.
	slices.SortFunc(ks, func(a, b keys) int { return cmp.Compare(a.PK+" "+a.SK, b.PK+" "+b.SK) })
	found, err := c.client.get(ctx, eventual, ks...)
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
			main, _ := u.customerKeys(c.table)
			u.customer = found[main]
		}
	}
	for _, k := range g.copies {
		order := found[orderKey(c.table.keyBuilder(), k.Order)]
		if textOf(order, "customerId") != string(k.Customer) {
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
		if v.clean() {
			u.settled(c, v, v)
			continue
		}
		c.suspect(k, suspicion{findings: v.findings, recount: v.has(driftStockTotal)})
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
		if id := textOf(u.claim, attrCustomerID); u.customer == nil && id != "" {
			c.suspectLocked(unitKey{unitCustomer, id}, suspicion{address: u.email})
		}
	case *employeeUnit:
		c.summary.Employees++
	case *warehouseUnit:
		c.summary.Warehouses++
		c.warehouses[u.id] = true
	case *productUnit:
		c.summary.Products++
		if u.inventory != nil && u.main != nil {
			at := reader{record: u.main}
			if available := at.number(attrAvailable); at.err() == nil {
				c.stock[u.sku] = stockSeen{inventory: *u.inventory, available: available}
			}
		}
	}
}
