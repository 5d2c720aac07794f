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
	return b.record(&EntityOrderCounts, encode(orderCountsAttributes, c))
}

func orderCountsAttributes(a *attributeVisitor, c *commerce.OrderCounts) {
	text(a, AttrPart, &c.Part, len("31"))
	a.flag(AttrComplete, &c.Complete)
	for _, s := range commerce.Statuses() {
		a.number(s.String(), &c.ByStatus[s])
	}
}

// DecodeOrderCounts reads the counts of one part.
//
// Errors: ErrCorrupt.
func DecodeOrderCounts(r Reader) (*commerce.OrderCounts, error) {
	a, c := attributeVisitor{Reader: r}, &commerce.OrderCounts{}
	orderCountsAttributes(&a, c)
	return c, a.Err()
}

// RepOrderParts is the number of records over which the count of an account rep's orders is spread,
// so that few orders of one rep conflict.
const RepOrderParts = 16

// FirstPart is the part of a rep's orders whose record reports whether the count is complete.
const FirstPart = "0"

// RepOrderPart returns the part of an account rep's orders that counts an order.
func RepOrderPart(id commerce.OrderID) string {
	return strconv.Itoa(ShardOf(string(id), RepOrderParts))
}

// RepPartRecord returns the record of the count of one part of a rep's orders.
func RepPartRecord(b *KeyBuilder, r commerce.RepOrders) Record {
	return b.record(&EntityRepOrders, encode(repOrdersAttributes, r))
}

func repOrdersAttributes(a *attributeVisitor, r *commerce.RepOrders) {
	text(a, AttrEmployeeID, &r.EmployeeID, commerce.MaxIDLength)
	text(a, AttrPart, &r.Part, len("15"))
	a.flag(AttrComplete, &r.Complete)
	a.number(AttrOrders, &r.Orders)
}

// DecodeRepOrders reads the count of one part of a rep's orders.
//
// Errors: ErrCorrupt.
func DecodeRepOrders(r Reader) (*commerce.RepOrders, error) {
	a, orders := attributeVisitor{Reader: r}, &commerce.RepOrders{}
	repOrdersAttributes(&a, orders)
	return orders, a.Err()
}

// SpendingRecord returns the record of a customer's spending in one month and currency.
func SpendingRecord(b *KeyBuilder, s commerce.Spending) Record {
	return b.record(&EntitySpending, encode(spendingAttributes, s))
}

func spendingAttributes(a *attributeVisitor, s *commerce.Spending) {
	text(a, AttrCustomerID, &s.CustomerID, commerce.MaxIDLength)
	text(a, "month", &s.Month, len("2026-04"))
	a.currencyAttribute(&s.Total)
	a.amount(AttrSpent, &s.Total, commerce.MaxTotalDigits)
	a.number(AttrOrders, &s.Orders)
}

// DecodeSpending reads a customer's spending in one month and currency.
//
// Errors: ErrCorrupt.
func (codec *Codec) DecodeSpending(r Reader) (*commerce.Spending, error) {
	a, s := attributeVisitor{Reader: r, currency: codec.Currency}, &commerce.Spending{}
	spendingAttributes(&a, s)
	return s, a.Err()
}
