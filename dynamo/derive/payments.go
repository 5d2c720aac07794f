package derive

import (
	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
)

// PaymentTotals adds up payments of an order with the currency c. before are the sums of other payments, or
// nil.
//
// It returns an error if a sum has too many digits.
func PaymentTotals(before *commerce.PaymentTotals, c commerce.Currency, payments ...commerce.Payment) (*commerce.PaymentTotals, error) {
	totals := Totals{Only: []*model.Entity{&model.EntityOrder}}
	for _, p := range payments {
		totals.Add(&p)
	}
	sums := commerce.PaymentTotals{}
	if before != nil {
		sums = *before
	}
	err := totals.Err()
	for name, sum := range map[string]*commerce.Money{model.AttrAuthorized: &sums.Authorized, model.AttrCaptured: &sums.Captured, model.AttrRefunded: &sums.Refunded} {
		more := commerce.Money{Currency: c}
		for _, d := range totals.Deltas {
			more.Amount = d.value(name)
		}
		if sum.Currency = c; err == nil {
			*sum, err = sum.Plus(more)
		}
	}
	return &sums, err
}
