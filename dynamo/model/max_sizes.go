package model

import (
	"math"
	"slices"

	"github.com/ordergraph/ordergraph/commerce"
)

// MaxRecordSizes returns the maximum sizes, in bytes, of the records that Ordergraph writes. The
// result maps the name of each entity to the maximum size of its records.
func (d Declarations) MaxRecordSizes() map[string]int {
	b, sizes := &KeyBuilder{Layout: OneEra(MaxShards)}, map[string]int{}
	for _, e := range d.Entities {
		if e.codec == nil {
			continue
		}
		for _, r := range b.encodeWithCopiesIn(d.Entities, e, d.largestAttributes(e)) {
			sizes[TextOf(r, "entity")] = SizeOf(r) + extraShardDigits
		}
	}
	for _, e := range d.Entities {
		if slices.Contains(e.IndexSK.Placeholders(), foldedNamePlaceholder) {
			sizes[e.Name] += commerce.MaxFoldedName - commerce.MaxName
		}
		if slices.Contains(slices.Concat(e.PK.Placeholders(), e.IndexSK.Placeholders()), emailKeyPlaceholder) {
			sizes[e.Name] += emailGrowth
		}
	}
	sizes[EntityLastEvent.Name] += SizeOf(Record{AttrOpenOrders: Num(math.MinInt), AttrReservedUnits: Num(math.MinInt), AttrReservationsCounted: Bool(true)})
	// An idempotency record contains the idempotency key, the caller, a hash of the command and the
	// result of the mutation. The largest possible result is an order.
	sizes[EntityIdempotency.Name] = sizes[EntityOrder.Name] + commerce.MaxIdempotencyKey + 3*commerce.MaxName
	return sizes
}

// emailGrowth is the maximum number of bytes that normalization (commerce.EmailKey) adds to an address.
// It can triple the length.
const emailGrowth = 2 * commerce.MaxEmail

// extraShardDigits is the size of two more digits in the shard number. The measured keys may contain a
// shard number with only one digit, but MaxShards allows three.
const extraShardDigits = 2
