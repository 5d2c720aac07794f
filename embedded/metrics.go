package embedded

import (
	"maps"
	"slices"

	"github.com/ordergraph/ordergraph/embedded/internal/attr"
	"github.com/ordergraph/ordergraph/embedded/internal/wire"
)

// collectionMetrics contains the item collections that a request has changed. The response lists
// them in ItemCollectionMetrics. As in DynamoDB, the list omits tables without local secondary
// indexes.
type collectionMetrics struct {
	// reported reports whether the response must contain the metrics.
	reported bool
	// collections maps table names to the partition keys of the changed item collections.
	collections map[string][]attr.Item
}

// newCollectionMetrics returns empty metrics. mode is the request's ReturnItemCollectionMetrics.
func newCollectionMetrics(mode string) *collectionMetrics {
	return &collectionMetrics{reported: mode == "SIZE", collections: map[string][]attr.Item{}}
}

// add adds the item collection that a write has changed. It ignores condition checks, because they
// change nothing.
func (m *collectionMetrics) add(a *action) {
	t := a.Table
	if !m.reported || a.verb == verbCheck || len(t.LocalSecondaryIndexes) == 0 {
		return
	}
	of := a.lookup
	if a.verb == verbPut {
		of = a.item
	}
	name := t.Key[0].Name
	known := m.collections[t.TableName]
	if !slices.ContainsFunc(known, func(key attr.Item) bool { return key[name].Equal(of[name]) }) {
		m.collections[t.TableName] = append(known, attr.Item{name: of[name]})
	}
}

// writeSingle adds the metrics to the response of PutItem, UpdateItem or DeleteItem.
func (m *collectionMetrics) writeSingle(o *wire.ObjectWriter) {
	for _, keys := range m.collections {
		o.BeginMember("ItemCollectionMetrics")
		writeCollectionMetrics(o, keys[0])
	}
}

// writeList adds the metrics to the response of BatchWriteItem or TransactWriteItems.
func (m *collectionMetrics) writeList(o *wire.ObjectWriter) {
	if len(m.collections) == 0 {
		return
	}
	o.Nested("ItemCollectionMetrics", func() {
		for _, name := range slices.Sorted(maps.Keys(m.collections)) {
			keys := m.collections[name]
			o.List(name, len(keys), func(i int) { writeCollectionMetrics(o, keys[i]) })
		}
	})
}

// writeCollectionMetrics adds the metrics of one item collection. The estimated size is always 0 to
// 1 GB, because the engine does not measure item collections.
func writeCollectionMetrics(o *wire.ObjectWriter, key attr.Item) {
	o.Open()
	o.Item("ItemCollectionKey", key)
	o.Raw("SizeEstimateRangeGB", []byte("[0,1]"))
	o.Close()
}
