package model

import (
	"cmp"
	"slices"
	"strings"

	"github.com/ordergraph/ordergraph/commerce"
)

// KeyLoad is the load that an order causes on the partitions with one key.
type KeyLoad struct {
	// Index reports whether this is a partition key of the index.
	Index bool
	// Template is the template of the partition key. Key is the key, without a shard, if it
	// contains a status of the order. Otherwise, Key equals Template.
	Template KeyTemplate
	Key      string
	// Entity is one of the written entities.
	Entity *Entity
	// WriteUnits are the write units of all mutations of the order together.
	WriteUnits float64
}

// PartitionWriteUnits and PartitionReadUnits are the maximum numbers of units that one partition
// provides in a second. Source:
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html
const (
	PartitionWriteUnits = 1000
	PartitionReadUnits  = 3000
)

// orderSteps returns the mutations of an order, from its placement to its delivery. Each has the
// status that the order has afterwards.
func orderSteps() map[string]commerce.Status {
	return map[string]commerce.Status{
		WritePlaceOrder.ID: commerce.Pending, WriteConfirmOrder.ID: commerce.Confirmed, WriteShipOrder.ID: commerce.Shipped, WriteDeliverOrder.ID: commerce.Delivered,
	}
}

// OrderLoad returns the load of one order, from its placement to its delivery, with the highest
// number of write units first. The order has one line item, and its customer has an account rep. It
// has no idempotency key, no expiry and no recorded payment, and all its records have at most 1 KB.
// statuses determines which derivations the mutations write.
func (d Declarations) OrderLoad(statuses DerivationStatuses) (load []KeyLoad) {
	steps, before := orderSteps(), commerce.Status(0)
	for _, p := range d.WritePatterns {
		status, ok := steps[p.ID]
		if !ok {
			continue
		}
		for _, e := range slices.Concat(p.Writes, p.WritesPerLine, p.OptionalWrites) {
			if e.Name == EntityIdempotency.Name || e.Name == EntityOrderExpiry.Name || e.Name == EntityPaymentDue.Name || !statuses.Writes(e.Name) {
				continue
			}
			add := func(index bool, t KeyTemplate, status commerce.Status, units float64) {
				key := strings.NewReplacer("{status}", status.String(), "{to}", status.String()).Replace(string(t))
				at := slices.IndexFunc(load, func(l KeyLoad) bool { return l.Index == index && l.Key == key })
				if at < 0 {
					at, load = len(load), append(load, KeyLoad{index, t, key, &e, 0})
				}
				load[at].WriteUnits += units
			}
			add(false, e.PK, status, 2*writeUnits(0)) // in a transaction
			if names := e.IndexPK.Placeholders(); e.IndexPK != "" && statuses.hasIndexKeys(&e, Record{e.AttributeForPlaceholder(cmp.Or(append(names, "")...)): Str("")}) {
				if slices.Contains(names, "status") && before != 0 {
					add(true, e.IndexPK, before, writeUnits(0)) // the old index entry
				}
				add(true, e.IndexPK, status, writeUnits(0))
			}
		}
		before = status
	}
	slices.SortStableFunc(load, func(a, b KeyLoad) int { return cmp.Compare(b.WriteUnits, a.WriteUnits) })
	return load
}

// IsSharded reports whether the partition keys of the table, or of the index, contain a shard.
func (e *Entity) IsSharded(index bool) bool { return e.Sharded && (index || e.isShardedInTable()) }

// ShardsIn returns the number of partition keys over which the records of an era are spread in the
// table or in the index.
func (e *Entity) ShardsIn(era Era, index bool) int {
	if !e.IsSharded(index) {
		return 1
	}
	return e.shardsIn(era)
}

// IsCustom reports whether e is the edge or claim of a custom field.
func (e *Entity) IsCustom() bool { return e.keyField != nil }

// BackfillUnits returns the write units of the transaction that adds an edge or claim to the table.
// It also checks the record that the edge or claim follows. Both have at most 1 KB.
func BackfillUnits(e *Entity) float64 {
	units := ConditionCheckUnits(nil) + 2*writeUnits(0)
	if e.IndexPK != "" {
		units += writeUnits(0)
	}
	return units
}
