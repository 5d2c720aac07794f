package model

import (
	"slices"

	"github.com/ordergraph/ordergraph/commerce"
)

// MaxRecordSizes returns the maximum size in bytes of the records that Ordergraph writes. The map
// keys are entity names.
func MaxRecordSizes() map[string]int {
	b := &KeyBuilder{Shards: MaxShards}
	c, e, o := maxValue(customerAttributes), maxValue(employeeAttributes), maxValue(orderAttributes).order
	line, event := maxValue(orderItemAttributes), maxValue(eventAttributes)
	product := maxValue(productAttributes)
	product.Available = -product.Available // the sign takes a byte
	level, warehouse := maxValue(inventoryLevelAttributes), maxValue(warehouseAttributes)
	records := slices.Concat(EncodeWithEdges(b, &e), EncodeWithEdges(b, &o), EncodeWithEdges(b, &c), EncodeWithEdges(b, &product), EncodeWithEdges(b, &level), EncodeWithEdges(b, &warehouse),
		[]Record{OrderItemRecord(b, o, line), EventRecord(b, event), LastEventRecord(b, c.ID, event), EmailClaimRecord(b, c.Email, c.ID),
			OrderCountsRecord(b, maxValue(orderCountsAttributes)), RepOrdersRecord(b, maxValue(repOrdersAttributes)), SpendingRecord(b, maxValue(spendingAttributes)), CategoryRecord(b, maxValue(categoryAttributes))})
	sizes := map[string]int{}
	for _, r := range records {
		sizes[TextOf(r, "entity")] = SizeOf(r) + shardDigits
	}
	for i := range allEntities {
		if e := &allEntities[i]; slices.Contains(e.IndexSK.Placeholders(), foldedName) {
			sizes[e.Name] += commerce.MaxFoldedName - commerce.MaxName
		}
	}
	// Normalization of an address (commerce.ParseEmail) can triple its length.
	sizes[EntityEmailClaim.Name] += 2 * commerce.MaxEmail
	// An idempotency record contains the idempotency key, the caller, a hash of the command and the
	// result of the mutation. The largest possible result is an order.
	sizes[EntityIdempotency.Name] = sizes[EntityOrder.Name] + commerce.MaxIdempotencyKey + 3*commerce.MaxName
	return sizes
}

// shardDigits adds a second digit to the shard number. The measured keys may have only one digit.
const shardDigits = 1
