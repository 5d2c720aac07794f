package check

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/derive"
	"github.com/ordergraph/ordergraph/dynamo/model"
)

func newCustomerSums() derive.Totals {
	return derive.Totals{Only: []*model.Entity{&model.EntitySpending, &model.EntityLastEvent}}
}

// addOrder adds an order to sums. rec is the customer's copy of the order.
func (v *customerVerifier) addOrder(rec model.Record) {
	if v.isErased() && model.TextOf(rec, model.AttrCustomerID) == string(v.id) && !(&model.Reader{Record: rec}).Flag(model.AttrErased) {
		v.unerased = append(v.unerased, rec)
	}
	o, err := v.table.DecodeOrder(model.Reader{Record: rec})
	if err == nil {
		o.CustomerID = v.id
		v.sums.Add(o)
		err = v.sums.Err()
	}
	v.hasUnreadableOrder = v.hasUnreadableOrder || err != nil
	if err == nil && o.Status.ReservesStock() && !o.EmbedsItems {
		v.unlisted = append(v.unlisted, o)
	}
}

// readSpending reads the records that store the customer's monthly spending.
//
// Errors are wrapped by table.WrapError. If the customer's ID is not valid in a key, readSpending
// returns another error.
func (v *customerVerifier) readSpending(ctx context.Context, c *check) error {
	v.spendingRecords = map[model.Keys]model.Record{}
	p := &model.CustomerSpending.AccessPattern
	partition, err := p.PK.Build(string(v.id))
	if err != nil {
		return err
	}
	return c.client.query(ctx, p, partition, string(p.SK), func(out *dynamodb.QueryOutput) error {
		for _, rec := range out.Items {
			v.spendingRecords[model.KeyOf(rec)] = rec
		}
		return nil
	})
}

// verifySpending reports spending records that are unreadable or differ from the sums of the
// customer's orders.
func (v *customerVerifier) verifySpending(c *check, diag *diagnosis, customer *commerce.Customer) {
	readable := map[model.Keys]model.Record{}
	for _, k := range sortedKeys(v.spendingRecords) {
		readable[k] = diag.withoutUnreadable(&model.EntitySpending, v.spendingRecords[k])
	}
	// If the spending was never computed, compare the sums only if opts.Repair is set.
	if v.cannotAddUp(c) || !customer.SpendingComplete && !c.opts.Repair {
		return
	}
	b := c.table.KeyBuilder()
	expected := map[model.Keys]model.Record{}
	for _, d := range v.sums.Of(&model.EntitySpending) {
		rec := d.Record(b).Merge(d.Numbers())
		expected[model.KeyOf(rec)] = rec
	}
	for k, have := range readable {
		if s, err := c.table.DecodeSpending(model.Reader{Record: have}); expected[k] == nil && err == nil {
			expected[k] = model.SpendingRecord(b, commerce.Spending{CustomerID: v.id, Month: s.Month, Total: commerce.Money{Currency: s.Total.Currency}})
		}
	}
	if b.Err != nil {
		return
	}
	found := len(diag.findings)
	for _, k := range sortedKeys(expected) {
		if have := v.spendingRecords[k]; have == nil {
			diag.addMissing(kindSpending, expected[k], nil, "the customer has orders in this month")
		} else {
			diag.compare(&model.EntitySpending, have, expected[k], kindSpending)
		}
	}
	if !customer.SpendingComplete || len(diag.findings) > found {
		// Every mutation of an order replaces the customer's last event. So the repair requires that the
		// last event has not changed since the orders were read.
		diag.dependencies = append(diag.dependencies, unchangedRecord{key: model.LastEvent.Key(b, v.id), asRead: v.lastEventBefore})
	}
	customer.SpendingComplete = true
}

// cannotAddUp reports whether sums of the customer's orders may be wrong, because an order is
// unreadable or still inconsistent.
func (v *customerVerifier) cannotAddUp(c *check) bool {
	return v.hasUnreadableOrder || c.hasUnreadableOrders(v.id) || c.hasInconsistentOrders(v.id)
}

// hasInconsistentOrders reports whether the customer has an order with an inconsistency that was not
// repaired.
func (c *check) hasInconsistentOrders(id commerce.CustomerID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.inconsistentCustomers[id]
}
