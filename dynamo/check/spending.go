package check

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/repair"
)

// sum adds what an order costs, as its copy in the customer's partition says.
func (u *customerUnit) sum(rec model.Record) {
	o, err := u.table.DecodeOrder(model.Reader{Record: rec})
	if err == nil {
		err = u.sums.Add(*o)
	}
	u.unsummed = u.unsummed || err != nil
}

// readSpending reads the records of what the customer has spent.
//
// Errors: those of failed.
func (u *customerUnit) readSpending(ctx context.Context, c *check) error {
	u.spending = map[model.Keys]model.Record{}
	p := &model.CustomerSpending.AccessPattern
	partition, err := p.PK.Key(string(u.id))
	if err != nil {
		return err
	}
	return c.client.Query(ctx, p, partition, string(p.SK), types.SelectAllAttributes, func(out *dynamodb.QueryOutput) error {
		for _, rec := range out.Items {
			u.spending[model.KeyOf(rec)] = rec
		}
		return nil
	})
}

// judgeSpending finds records of spending that are not what the orders cost. Where the orders have
// not been added up before, only a repair does. It leaves a customer alone one of whose orders
// cannot be read, or has an inconsistency that is not repaired.
func (u *customerUnit) judgeSpending(c *check, v *repair.Verdict, customer *commerce.Customer) {
	if u.unsummed || c.isUnread(u.id) || c.hasDriftedOrders(u.id) || !customer.SpendingComplete && !c.opts.Repair {
		return
	}
	b := c.table.KeyBuilder()
	wanted := map[model.Keys]model.Record{}
	for _, s := range u.sums {
		s.CustomerID = u.id
		rec := model.SpendingRecord(b, s)
		wanted[model.KeyOf(rec)] = rec
	}
	for k, have := range u.spending {
		if s, err := c.table.DecodeSpending(model.Reader{Record: v.Legible(&model.EntitySpending, have)}); wanted[k] == nil && err == nil {
			wanted[k] = model.SpendingRecord(b, commerce.Spending{CustomerID: u.id, Month: s.Month, Total: commerce.Money{Currency: s.Total.Currency}})
		}
	}
	if b.Err != nil {
		return
	}
	found := len(v.Findings)
	for _, k := range slices.SortedFunc(maps.Keys(wanted), func(a, b model.Keys) int { return cmp.Compare(a.SK, b.SK) }) {
		if have := u.spending[k]; have == nil {
			v.Absent(repair.DriftSpending, wanted[k], nil, "the customer has orders of the month")
		} else {
			v.Compare(&model.EntitySpending, have, wanted[k], repair.DriftSpending)
		}
	}
	if !customer.SpendingComplete || len(v.Findings) > found {
		// Every change of an order writes the customer's last event.
		v.Relied = append(v.Relied, repair.Relied{Key: model.LastEvent.Key(b, u.id), Have: u.before})
	}
	customer.SpendingComplete = true
}

// hasDriftedOrders reports whether an order of the customer has an inconsistency that is left.
func (c *check) hasDriftedOrders(id commerce.CustomerID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.drifted[id]
}
