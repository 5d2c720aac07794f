package dynamo

import (
	"slices"
	"strings"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// CostBounds calculates the maximum cost of reads and mutations, in DynamoDB requests and capacity
// units. The maximum does not include retries after throttling or a conflict. Records written by
// other software, and records with ElectroDB's names and versions, can cost more.
type CostBounds struct {
	// Declarations are the kinds of records and the ways to read and write them.
	Declarations model.Declarations

	shards int
	// sizes maps the name of each entity to the maximum size in bytes of one of its records.
	sizes map[string]int
}

// NewCostBounds returns the CostBounds for a table with the given number of shards. Shards are the
// partition keys over which the table spreads each busy list.
func NewCostBounds(shards int) CostBounds {
	return NewCostBoundsWith(model.DeclaredInProcess(), shards)
}

// NewCostBoundsWith returns the CostBounds for a table with other declarations than the process
// has.
func NewCostBoundsWith(declared model.Declarations, shards int) CostBounds {
	return CostBounds{Declarations: declared, shards: max(1, shards), sizes: declared.MaxRecordSizes()}
}

// WithRecordSize returns the CostBounds for records with at most this number of bytes.
func (b CostBounds) WithRecordSize(bytes int) CostBounds {
	sizes := make(map[string]int, len(b.sizes))
	for name, most := range b.sizes {
		sizes[name] = min(most, bytes)
	}
	b.sizes = sizes
	return b
}

// ReadCostBound is the maximum cost of a read. RoundTrips is lower than Requests if some requests
// run concurrently.
type ReadCostBound struct {
	Requests, RoundTrips int
	ReadUnits            float64
}

// MutationCostBound is the maximum cost of a mutation.
type MutationCostBound struct {
	ReadCostBound
	// Items is the part of the embedded ReadCostBound for reading the line items of an order.
	// ItemsPattern is the ID of the access pattern that reads the line items.
	Items        ReadCostBound
	ItemsPattern string
	// WriteUnits is the maximum number of write units that the transaction and one retry consume
	// together.
	WriteUnits float64
}

// MaxBatchGetKeys is the maximum number of keys in one BatchGetItem request.
const MaxBatchGetKeys = table.MaxBatchKeys

// MaxLookupUnits returns the maximum number of read units that a lookup of records by their keys
// consumes. Most lookups read one record.
func (b CostBounds) MaxLookupUnits(p model.AccessPattern, consistent bool) float64 {
	return float64(max(1, p.MaxLength)) * p.ConsistencyFactor(consistent) * model.ReadUnits(b.maxRecordSize(b.Declarations.EntitiesOf(p)))
}

// ListBound returns the maximum cost of reading one page of a list. If the list has a partition for
// each order status, the parameter statuses contains the statuses to read. Otherwise, it is empty.
func (b CostBounds) ListBound(p model.AccessPattern, page PageRequest, statuses []commerce.Status, consistent bool) ReadCostBound {
	shards := b.shardsOf(p)
	if p.PK == model.EntityOrderEvent.IndexPK {
		shards *= len(model.ChangedStatuses())
	}
	most := maxMergeCost(shards, page)
	if len(statuses) > 0 {
		most = mergeCost{}
		for _, group := range commerce.GroupStatusesByLifecycle(statuses) {
			most = most.plus(maxMergeCost(len(group)*shards, page))
		}
	}
	if p.MaxLength > 0 {
		most.rows = min(most.rows, p.MaxLength)
	}
	return b.queriesBound(p, most, b.maxRecordSize(b.Declarations.EntitiesOf(p)), consistent)
}

// shardsOf returns the number of partition keys of a list.
func (b CostBounds) shardsOf(p model.AccessPattern) int {
	switch later := b.Declarations.EntitiesOf(p)[0].LaterShards; {
	case p.Operation != model.QueryPerShard || later > 0 && b.shards == 1:
		return 1
	case later > 0:
		return 1 + min(b.shards, later) // the partition of the first era is in all pages
	}
	return b.shards
}

// CollectionBound returns the maximum cost of reading an item collection with one Query.
func (b CostBounds) CollectionBound(p model.AccessPattern, consistent bool) ReadCostBound {
	var rest []*model.Entity
	bytes := 0
	for _, e := range b.Declarations.Entities {
		switch {
		case e.PK != p.PK || e.IsEdge() || e.PK == model.EntityOrder.PK && e.SK >= model.EntityPayment.SK: // edges, and what ReadOrderPartition omits
		case strings.Contains(string(e.SK), "{"):
			rest = append(rest, e)
		default: // one record of this entity
			bytes += b.sizes[e.Name]
		}
	}
	bytes += (collectionLimit - 1) * b.maxRecordSize(rest)
	return ReadCostBound{1, 1, p.ConsistencyFactor(consistent) * model.ReadUnits(min(bytes, table.MaxQueryBytes))}
}

// CountBound returns the maximum cost of counting the records of a list. If the list has a maximum
// length, one Query for each shard counts all records. Otherwise, counting takes up to
// table.MaxCountPages Queries.
func (b CostBounds) CountBound(p model.AccessPattern, consistent bool) ReadCostBound {
	if p.MaxLength > 0 {
		shards := b.shardsOf(p)
		return ReadCostBound{shards, 1, float64(shards) * p.ConsistencyFactor(consistent) * model.ReadUnits(p.MaxLength*b.maxRecordSize(b.Declarations.EntitiesOf(p)))}
	}
	return ReadCostBound{table.MaxCountPages, table.MaxCountPages, table.MaxCountPages * p.ConsistencyFactor(consistent) * model.ReadUnits(table.MaxQueryBytes)}
}

// MutationBound returns the maximum cost of a mutation that has no conflict with other mutations.
// The maximum includes a second transaction, because a condition of the first one can fail. It does
// not include reading the result for the client.
func (b CostBounds) MutationBound(p model.WritePattern) MutationCostBound {
	bound := MutationCostBound{ItemsPattern: model.OrderItems.ID, WriteUnits: 2 * b.WriteUnits(p.Mutation, commerce.MaxLines)}
	read := func(each int, entities ...model.Entity) {
		for _, e := range entities {
			bound.ReadUnits += float64(each) * 2 * model.ReadUnits(b.sizes[e.Name])
		}
	}
	if len(p.Reads)+len(p.ReadsPerLine) > 0 {
		bound.Requests++
		read(1, p.Reads...)
		read(p.Lines(commerce.MaxLines), p.ReadsPerLine...)
	}
	if p.ReadsItems && len(p.ReadsPerLine) > 0 {
		bound.Requests++ // the line items are read first, because they determine the other keys
	}
	if p.ReadsItems {
		// The mutation reads the line items for the first transaction, and again for the second.
		items := b.ListBound(model.OrderItems.AccessPattern, PageRequest{Limit: table.MaxTransactionActions, DetectMore: true}, nil, true)
		bound.Items = ReadCostBound{2 * items.Requests, 2 * items.RoundTrips, 2 * items.ReadUnits}
		bound.Requests += bound.Items.Requests
		bound.ReadUnits += bound.Items.ReadUnits
	}
	for _, list := range p.Lists { // for the first transaction, and again for the second
		read := b.ListBound(*list, PageRequest{Limit: min(list.MaxLength, table.MaxTransactionActions), DetectMore: true}, nil, true)
		bound.Requests += 2 * read.Requests
		bound.ReadUnits += 2 * read.ReadUnits
	}
	// The two requests are the first transaction and a read after a failed condition. The read is
	// necessary only if DynamoDB does not return the record that failed the condition.
	bound.Requests += 2
	read(1, p.Writes...)
	read(p.Lines(commerce.MaxLines), p.WritesPerLine...)
	read(1, p.MaxOptionalWrites()...)
	if len(p.ReadsOnFailure) > 0 {
		bound.Requests++
		read(1, p.ReadsOnFailure...)
	}
	if p.ErasesOrders {
		// The order is read in a further request. The others are the two Queries before each
		// transaction, without those that p.ReadsItems includes.
		bound.Requests += 3
		read(2, model.EntityCustomerOrder)
		read(2*commerce.MaxLines, model.EntityOrderEvent)
	}
	if p.ClaimsOrders {
		// The last events and the order are read in further requests. The others are a Query before
		// each transaction, and one for the latest update of a customer without a last event.
		bound.Requests += 5
		read(4, model.EntityCustomerOrder)
	}
	readsLevel := func(e model.Entity) bool { return e.Name == model.EntityInventoryLevel.Name }
	if p.LowStock && !slices.ContainsFunc(slices.Concat(p.Reads, p.ReadsPerLine), readsLevel) {
		bound.Requests++
		read(p.MaxLevels(commerce.MaxLines), model.EntityInventoryLevel)
	}
	if p.Buckets {
		bound.Requests += 2 // a product is sold out only if two reads agree
		read(2, model.EntityProduct)
		read(2*(commerce.MaxStockBuckets-1), model.EntityStockBucket)
	}
	// The last request is either the second transaction, or a transaction that reads the
	// idempotency record. A read in a transaction costs twice the read units of the other reads.
	bound.Requests++
	if slices.ContainsFunc(p.OptionalWrites, func(e model.Entity) bool { return e.Name == model.EntityIdempotency.Name }) {
		bound.ReadUnits += 4 * model.ReadUnits(b.sizes[model.EntityIdempotency.Name])
	}
	bound.RoundTrips = bound.Requests
	return bound
}

// WriteUnits returns the maximum number of write units that one transaction of a mutation consumes.
// lines is the number of line items of the order.
func (b CostBounds) WriteUnits(mutation string, lines int) (most float64) {
	write := func(each int, entities ...model.Entity) {
		for _, e := range entities {
			most += float64(each) * model.MaxTransactWriteUnits(b.sizes[e.Name], e.IndexPK != "")
		}
	}
	for _, p := range b.Declarations.WritePatterns {
		if p.Mutation == mutation {
			write(1, p.Writes...)
			write(1, p.MaxOptionalWrites()...)
			write(p.Lines(lines), p.WritesPerLine...)
			write(p.Lines(lines), p.OptionalWritesPerLine...)
			if p.LowStock {
				write(min(p.MaxLevels(lines), table.MaxTransactionActions-p.MaxActions(lines)), model.EntityLowStock)
			}
			if p.Buckets {
				write(commerce.MaxStockBuckets-1, model.EntityStockBucket)
			}
		}
	}
	return most
}

func (b CostBounds) maxRecordSize(entities []*model.Entity) int {
	size := 0
	for _, e := range entities {
		size = max(size, b.sizes[e.Name])
	}
	return size
}

// queriesBound returns the maximum cost of the Queries that read one page. The parameter most is
// the maximum cost if no Query stops at 1 MB. The parameter size is the maximum size of a row in
// bytes.
func (b CostBounds) queriesBound(p model.AccessPattern, most mergeCost, size int, consistent bool) ReadCostBound {
	bytes := most.rows * size
	// ends is the maximum number of Queries that stop at the limit of 1 MB. Such a Query has read
	// at least 1 MB minus one row.
	ends := 0
	if most.maxQueryRows*size > table.MaxQueryBytes {
		ends = max(0, ceilDiv(bytes, table.MaxQueryBytes-size)-1)
	}
	bound := ReadCostBound{Requests: most.requests + ends, RoundTrips: most.rounds + ends}
	bound.ReadUnits = model.ReadUnits(bytes)
	if bound.Requests > 1 {
		// Each Query rounds up its own read units.
		bound.ReadUnits = (float64(bytes)/model.BytesPerReadUnit + float64(bound.Requests)) / 2
	}
	bound.ReadUnits *= p.ConsistencyFactor(consistent)
	return bound
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }

// mergeCost is the cost of merging the rows of several partitions into one page, if no Query stops
// at 1 MB. maxQueryRows is the maximum number of rows of one Query.
type mergeCost struct{ rounds, requests, rows, maxQueryRows int }

// plus returns the total cost of two merges that run one after the other. m is the cost of the
// first merge, and next is the cost of the second merge.
func (m mergeCost) plus(next mergeCost) mergeCost {
	return mergeCost{m.rounds + next.rounds, m.requests + next.requests, m.rows + next.rows, max(m.maxQueryRows, next.maxQueryRows)}
}

// maxMergeCost returns the maximum cost of readLevel, which merges the rows of several partitions
// into one page. The rows can be distributed over the partitions in any way. Comments in the
// function prove each maximum.
func maxMergeCost(partitions int, page PageRequest) mergeCost {
	want := page.fetchLimit()
	if partitions == 1 {
		return mergeCost{1, 1, want, want}
	}
	// After the Queries of the last round, every row that was read is either buffered or on the page.
	// The page was not full when the round started. So rows is the sum of these maximums:
	//   - rows on the page: page.Limit
	//   - the first buffered row of each partition: partitions
	//   - other buffered rows that readAheadLimit allows: 7/4 of page.Limit
	//   - rows that minRefillSize requests in spite of readAheadLimit: 1/4 of page.Limit
	rows := 3*page.Limit + partitions
	// first is the number of rows that the first round reads from each partition.
	first := min(firstReadSize(want, partitions), readAheadLimit(page.Limit)/partitions+1)
	// A later round is necessary only if the merge stops because a partition has no buffered rows.
	// At the first stop, at least the rows that the first round read from this partition are on the
	// page. At each further stop at this partition, at least the rows that minRefillSize requested
	// are also on the page.
	//
	// Let n be the number of rows on the page from partitions that stopped the merge. Then steps[n]
	// is the maximum number of stops.
	steps := make([]int, want)
	for given, rounds := first, 1; given < want; given, rounds = given+minRefillSize(given), rounds+1 {
		for n := given; n < want; n++ {
			steps[n] = max(steps[n], rounds+steps[n-given])
		}
	}
	later := steps[want-1]
	// The maximum number of requests is the lower of two numbers:
	//   - The first round reads each partition once. A later round reads a partition only if all its
	//     rows so far precede the end of the page. Together, the partitions in a later round have
	//     returned at most want-1 rows. Each of them returned at least first rows in the first round.
	//     So a later round reads at most (want-1)/first partitions.
	//   - Each request either returns a row or is the last request to its partition. So all rounds
	//     together send at most rows+partitions requests.
	return mergeCost{
		rounds:       1 + later,
		requests:     min(partitions+later*min(partitions, (want-1)/first), rows+partitions),
		rows:         rows,
		maxQueryRows: want,
	}
}
