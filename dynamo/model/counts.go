package model

import (
	"strconv"

	"github.com/ordergraph/ordergraph/commerce"
)

// OrderCountParts is the number of records over which the counts of orders by status are spread.
// Every change of an order's status writes to one of these records. So few changes conflict
// (docs/adr/0033-counts.md).
const OrderCountParts = 32

// OrderCountPart returns the part that counts an order.
func OrderCountPart(id commerce.OrderID) string {
	return strconv.Itoa(ShardOf(string(id), OrderCountParts))
}

// OrderCountsRecord returns the record with the counts of one part.
func OrderCountsRecord(b *KeyBuilder, c commerce.OrderCounts) Record {
	return b.record(&EntityOrderCounts, written(orderCountsAttributes, c))
}

func orderCountsAttributes(a *attributes, c *commerce.OrderCounts) {
	text(a, "part", &c.Part, len("31"))
	a.flag(AttrComplete, &c.Complete)
	for _, s := range commerce.Statuses() {
		a.number(s.String(), &c.ByStatus[s])
	}
}

// DecodeOrderCounts reads the counts of one part.
//
// Errors: ErrCorrupt.
func DecodeOrderCounts(r Reader) (*commerce.OrderCounts, error) {
	a, c := attributes{Reader: r}, &commerce.OrderCounts{}
	orderCountsAttributes(&a, c)
	return c, a.Err()
}

// SpendingRecord returns the record of a customer's spending in one month and currency.
func SpendingRecord(b *KeyBuilder, s commerce.Spending) Record {
	return b.record(&EntitySpending, written(spendingAttributes, s))
}

func spendingAttributes(a *attributes, s *commerce.Spending) {
	text(a, AttrCustomerID, &s.CustomerID, commerce.MaxIDLength)
	text(a, "month", &s.Month, len("2026-04"))
	a.currencyOf(&s.Total)
	a.amount(AttrSpent, &s.Total, commerce.MaxTotalDigits)
	a.number(AttrOrders, &s.Orders)
}

// DecodeSpending reads a customer's spending in one month and currency.
//
// Errors: ErrCorrupt.
func (codec *Codec) DecodeSpending(r Reader) (*commerce.Spending, error) {
	a, s := attributes{Reader: r, currency: codec.Currency}, &commerce.Spending{}
	spendingAttributes(&a, s)
	return s, a.Err()
}
