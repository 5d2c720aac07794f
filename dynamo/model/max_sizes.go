package model

import (
	"math"
	"slices"

	"github.com/ordergraph/ordergraph/commerce"
)

// MaxRecordSizes returns the maximum sizes, in bytes, of the records that Ordergraph writes. The
// result maps the name of each entity to the maximum size of its records.
func MaxRecordSizes() map[string]int {
	b := &KeyBuilder{Shards: MaxShards}
	c, e, o := largestValue(customerAttributes), largestValue(employeeAttributes), largestValue(orderAttributes).order
	line, event := largestValue(orderItemAttributes), largestValue(eventAttributes)
	product := largestValue(productAttributes)
	product.Available = -product.Available // a negative number takes one more byte
	level, warehouse := largestValue(inventoryLevelAttributes), largestValue(warehouseAttributes)
	records := slices.Concat(EncodeWithEdges(b, &e), EncodeWithEdges(b, &o), EncodeWithEdges(b, &c), EncodeWithEdges(b, &product), EncodeWithEdges(b, &level), EncodeWithEdges(b, &warehouse),
		[]Record{OrderItemRecord(b, o, line), EventRecord(b, event), LastEventRecord(b, c.ID, event).Merge(Record{AttrOpenOrders: Num(math.MinInt), AttrReservedUnits: Num(math.MinInt), AttrReservationsCounted: Bool(true)}), EmailClaimRecord(b, c.Email, c.ID), DeletedCustomerRecord(b, largestValue(deletedCustomerAttributes)),
			OrderCountsRecord(b, largestValue(orderCountsAttributes)), RepOrderCountRecord(b, largestValue(repOrderCountAttributes)), SpendingRecord(b, largestValue(spendingAttributes)), CategoryRecord(b, largestValue(categoryAttributes))})
	sizes := map[string]int{}
	for _, r := range records {
		sizes[TextOf(r, "entity")] = SizeOf(r) + extraShardDigit
	}
	for i := range allEntities {
		if e := &allEntities[i]; slices.Contains(e.IndexSK.Placeholders(), foldedNamePlaceholder) {
			sizes[e.Name] += commerce.MaxFoldedName - commerce.MaxName
		}
	}
	// Normalization of an address (commerce.EmailKey) can triple its length.
	sizes[EntityEmailClaim.Name] += 2 * commerce.MaxEmail
	// An idempotency record contains the idempotency key, the caller, a hash of the command and the
	// result of the mutation. The largest possible result is an order.
	sizes[EntityIdempotency.Name] = sizes[EntityOrder.Name] + commerce.MaxIdempotencyKey + 3*commerce.MaxName
	return sizes
}

// extraShardDigit is the size of a second digit in the shard number. The measured keys may contain
// a shard number with only one digit, but MaxShards allows two.
const extraShardDigit = 1
