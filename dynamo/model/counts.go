package model

import (
	"slices"
	"strconv"

	"github.com/ordergraph/ordergraph/commerce"
)

// OrderCountParts is the number of records with one partition key that count orders by status. The
// orders are divided among these records, so that concurrent changes of different orders rarely
// write the same record (docs/adr/0033-counts.md). Shards raise the orders a second
// (docs/adr/0051-shards-over-time.md).
const OrderCountParts = 32

// OrderCounter returns the values in the key of the record that counts an order by status: the
// record's number, from 0 to OrderCountParts-1, and its shard. If the order belongs to an era with one
// shard, the key contains no shard, and shard is empty. Stored keys depend on the result, so it must
// never change.
func (l Layout) OrderCounter(id commerce.OrderID) (part, shard string) {
	shards := l.shardsAt(&EntityOrder, EntityOrder.IndexSK.Prefix()+string(id))
	part = strconv.Itoa(int(hashOf(string(id)) / uint32(shards) % OrderCountParts))
	if shards > 1 {
		shard = strconv.Itoa(ShardOf(string(id), shards))
	}
	return part, shard
}

// HasFirstCounters reports whether FirstCounters returns records of a shard.
func (l Layout) HasFirstCounters(shard string) bool { return OneEra(l.first()).HasCounters(shard) }

// HasCounters reports whether the records of a shard count orders of any era.
func (l Layout) HasCounters(shard string) bool {
	return slices.Contains(l.Partitions(&OrderCounts.AccessPattern, ""), shardSuffixOf(shard))
}

// FirstCounters returns counts of zero in each record that every table has. These are the records of
// the first era. If their field Complete is true, the table counts all orders. Other counter
// records begin with the first order that they count, and this field is false.
func (l Layout) FirstCounters() (all []commerce.OrderCounts) {
	for _, key := range OneEra(l.first()).Partitions(&OrderCounts.AccessPattern, string(EntityOrderCounts.PK)) {
		for part := range OrderCountParts {
			all = append(all, commerce.OrderCounts{Part: strconv.Itoa(part), Shard: EntityOrderCounts.Shard(key)})
		}
	}
	return all
}

// OrderCountsRecord encodes c, which is one of the records that count orders by status.
func OrderCountsRecord(b *KeyBuilder, c commerce.OrderCounts) Record {
	return b.record(&EntityOrderCounts, encode(orderCountsAttributes, c))
}

func orderCountsAttributes(a *attributeVisitor, c *commerce.OrderCounts) {
	textAttribute(a, AttrPart, &c.Part, len("31"))
	optionalTextAttribute(a, AttrShard, &c.Shard, len("127"))
	a.flag(AttrComplete, &c.Complete)
	for _, s := range commerce.Statuses() {
		a.number(s.String(), &c.ByStatus[s])
	}
}

// DecodeOrderCounts decodes one of the records that count orders by status.
//
// Errors: ErrCorrupt.
func DecodeOrderCounts(r Reader) (*commerce.OrderCounts, error) {
	a, c := attributeVisitor{Reader: r}, &commerce.OrderCounts{}
	orderCountsAttributes(&a, c)
	return c, a.Err()
}

// RepOrderCountParts is the number of records that count the orders of one account rep. The orders
// are divided among these records, so that concurrent orders of the rep's customers rarely write
// the same record.
const RepOrderCountParts = 16

// FirstRepCountPart is the number of the first record that counts the orders of an account rep.
// Only this record stores whether the rep's order count is complete.
const FirstRepCountPart = "0"

// RepOrderCountPart returns the number of the account rep's record that counts the order with this
// ID. The number is from 0 to RepOrderCountParts-1.
func RepOrderCountPart(id commerce.OrderID) string {
	return strconv.Itoa(ShardOf(string(id), RepOrderCountParts))
}

// RepOrderCountRecord encodes one of the records that count the orders of an account rep.
func RepOrderCountRecord(b *KeyBuilder, r commerce.RepOrderCount) Record {
	return b.record(&EntityRepOrders, encode(repOrderCountAttributes, r))
}

func repOrderCountAttributes(a *attributeVisitor, r *commerce.RepOrderCount) {
	textAttribute(a, AttrEmployeeID, &r.EmployeeID, commerce.MaxIDLength)
	textAttribute(a, AttrPart, &r.Part, len("15"))
	a.flag(AttrComplete, &r.Complete)
	a.number(AttrOrders, &r.Orders)
}

// DecodeRepOrderCount decodes one of the records that count the orders of an account rep.
//
// Errors: ErrCorrupt.
func DecodeRepOrderCount(r Reader) (*commerce.RepOrderCount, error) {
	a, orders := attributeVisitor{Reader: r}, &commerce.RepOrderCount{}
	repOrderCountAttributes(&a, orders)
	return orders, a.Err()
}

// SpendingRecord encodes a customer's spending in one month and one currency.
func SpendingRecord(b *KeyBuilder, s commerce.Spending) Record {
	return b.record(&EntitySpending, encode(spendingAttributes, s))
}

func spendingAttributes(a *attributeVisitor, s *commerce.Spending) {
	textAttribute(a, AttrCustomerID, &s.CustomerID, commerce.MaxIDLength)
	textAttribute(a, "month", &s.Month, len("2026-04"))
	a.currencyAttribute(&s.Total)
	a.amount(AttrSpent, &s.Total, commerce.MaxAmountDigits)
	a.number(AttrOrders, &s.Orders)
}

// DecodeSpending decodes a customer's spending in one month and one currency.
//
// Errors: ErrCorrupt.
func (codec *Codec) DecodeSpending(r Reader) (*commerce.Spending, error) {
	a, s := attributeVisitor{Reader: r, currency: codec.Currency}, &commerce.Spending{}
	spendingAttributes(&a, s)
	return s, a.Err()
}

// DailySalesRecord encodes one of the records that add up the sales of a day.
func DailySalesRecord(b *KeyBuilder, s commerce.DailySales) Record {
	return b.record(&EntityDailySales, encode(dailySalesAttributes, s))
}

func dailySalesAttributes(a *attributeVisitor, s *commerce.DailySales) {
	textAttribute(a, "day", &s.Day, len("2026-04-01"))
	textAttribute(a, AttrPart, &s.Part, len("31"))
	optionalTextAttribute(a, AttrShard, &s.Shard, len("127"))
	a.currencyAttribute(&s.Total)
	a.amount(AttrSpent, &s.Total, commerce.MaxAmountDigits)
	a.number(AttrOrders, &s.Orders)
}

// DecodeDailySales decodes one of the records that add up the sales of a day.
//
// Errors: ErrCorrupt.
func (codec *Codec) DecodeDailySales(r Reader) (*commerce.DailySales, error) {
	a, s := attributeVisitor{Reader: r, currency: codec.Currency}, &commerce.DailySales{}
	dailySalesAttributes(&a, s)
	return s, a.Err()
}
