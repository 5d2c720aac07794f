package dynamo

import (
	"slices"
	"strings"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
	"github.com/ordergraph/ordergraph/dynamo/units"
)

// CostBounds calculate the maximum cost in DynamoDB requests and capacity units of reads and mutations.
// The maximums are derived from the access patterns, the write patterns and the maximum size of
// each kind of record.
//
// The maximums hold for records written by this program. The package commerce limits the sizes of
// these records, and commerce.MaxLines limits the number of lines of an order. A record written by
// other software may lack its order count or its embedded items, so they must be read from other
// records. The maximums include these requests. Records of other software may also exceed the size
// limits. Reading such large records can cost more requests and units than the maximums.
//
// The maximums do not include retries after throttling, unprocessed keys or conflicts.
type CostBounds struct {
	shards int
	// sizes maps the name of each entity to the maximum size of its records in bytes.
	sizes map[string]int
}

// NewCostBounds returns the Bounds for a table that spreads each busy list over the given number of
// partition keys (shards).
func NewCostBounds(shards int) CostBounds {
	return CostBounds{shards: max(1, shards), sizes: model.MaxRecordSizes()}
}

// ReadCostBound is the maximum cost of a read. RoundTrips is lower than Requests if requests run
// concurrently.
type ReadCostBound struct {
	Requests, RoundTrips int
	ReadUnits            float64
}

// MutationCostBound is the maximum cost of a mutation.
type MutationCostBound struct {
	ReadCostBound
	// Items is the part of ReadCostBound that is spent on an order's items. ItemsPattern is the ID of the
	// access pattern that reads them.
	Items        ReadCostBound
	ItemsPattern string
	// WriteUnits is the maximum for the transaction and one retry together.
	WriteUnits float64
}

// MaxBatchGetKeys is the maximum number of keys in one BatchGetItem request.
const MaxBatchGetKeys = table.MaxBatchKeys

// MaxLookupUnits returns the maximum read units of looking up one key.
func (b CostBounds) MaxLookupUnits(p model.AccessPattern, consistent bool) float64 {
	return p.ConsistencyFactor(consistent) * units.ForRead(b.maxRecordSize(p.Entities()))
}

// ListBound returns the maximum cost of reading one page of a list. For a list of orders by status,
// statuses are the statuses of the orders to list. For other lists, statuses is empty.
func (b CostBounds) ListBound(p model.AccessPattern, page PageRequest, statuses []commerce.Status, consistent bool) ReadCostBound {
	shards := 1
	if strings.HasSuffix(p.Operation, "per shard") {
		shards = b.shards
	}
	most := maxMergeCost(shards, page)
	if len(statuses) > 0 {
		most = mergeCost{}
		for _, level := range commerce.GroupStatusesByLifecycle(statuses) {
			most = most.plus(maxMergeCost(len(level)*shards, page))
		}
	}
	if p.MaxLength > 0 {
		most.rows = min(most.rows, p.MaxLength)
	}
	return b.queriesBound(p, most, b.maxRecordSize(p.Entities()), consistent)
}

// CollectionBound returns the maximum cost of reading an item collection with one Query.
func (b CostBounds) CollectionBound(p model.AccessPattern, consistent bool) ReadCostBound {
	var rest []model.Entity
	bytes := 0
	for _, e := range model.Entities() {
		switch {
		case e.PK != p.PK || e.EdgeOf != nil: // edges are not read
		case strings.Contains(string(e.SK), "{"):
			rest = append(rest, e)
		default: // one record of this entity
			bytes += b.sizes[e.Name]
		}
	}
	bytes += (collectionLimit - 1) * b.maxRecordSize(rest)
	return ReadCostBound{1, 1, p.ConsistencyFactor(consistent) * units.ForRead(min(bytes, table.MaxQueryBytes))}
}

// CountBound returns the maximum cost of counting the records of a list. A list with a maximum
// length needs one Query. Other lists need up to table.MaxCountPages queries.
func (b CostBounds) CountBound(p model.AccessPattern, consistent bool) ReadCostBound {
	if p.MaxLength > 0 {
		return ReadCostBound{1, 1, p.ConsistencyFactor(consistent) * units.ForRead(p.MaxLength*b.maxRecordSize(p.Entities()))}
	}
	return ReadCostBound{table.MaxCountPages, table.MaxCountPages, table.MaxCountPages * p.ConsistencyFactor(consistent) * units.ForRead(table.MaxQueryBytes)}
}

// MutationBound returns the maximum cost of a mutation if no other mutation conflicts with it. The cost of
// reading the payload is not included.
//
// The result includes the reads before the transaction, the transaction, and one failed condition.
// The condition can fail because of a record that the mutation has not read. The mutation then
// reads that record and repeats the transaction. If the failed condition shows that the mutation
// was already committed, it reads the idempotency record instead.
func (b CostBounds) MutationBound(p model.WritePattern) MutationCostBound {
	bound := MutationCostBound{ItemsPattern: model.OrderItems.ID, WriteUnits: 2 * b.WriteUnits(p.Mutation, commerce.MaxLines)}
	read := func(each int, entities ...model.Entity) {
		for _, e := range entities {
			bound.ReadUnits += float64(each) * 2 * units.ForRead(b.sizes[e.Name])
		}
	}
	if len(p.Reads)+len(p.ReadsPerLine) > 0 {
		bound.Requests++
		read(1, p.Reads...)
		read(commerce.MaxLines, p.ReadsPerLine...)
	}
	if p.ReadsItems && len(p.ReadsPerLine) > 0 {
		bound.Requests++ // the items determine the keys
	}
	if p.ReadsItems {
		// Each attempt reads the items.
		items := b.ListBound(model.OrderItems.AccessPattern, PageRequest{Limit: table.MaxTransactionActions, DetectMore: true}, nil, true)
		bound.Items = ReadCostBound{2 * items.Requests, 2 * items.RoundTrips, 2 * items.ReadUnits}
		bound.Requests += bound.Items.Requests
		bound.ReadUnits += bound.Items.ReadUnits
	}
	// If a condition fails, DynamoDB returns the current record. If that record does not exist, the
	// mutation reads other records to find out why the condition failed.
	bound.Requests += 2
	read(1, p.Writes...)
	read(commerce.MaxLines, p.WritesPerLine...)
	read(1, p.OptionalWrites...)
	if len(p.ReadsOnFailure) > 0 {
		bound.Requests++
		read(1, p.ReadsOnFailure...)
	}
	// The last request is either the second attempt or a read of the idempotency record. The
	// idempotency record is read in a transaction, which doubles the read units.
	bound.Requests++
	if slices.ContainsFunc(p.OptionalWrites, func(e model.Entity) bool { return e.Name == model.EntityIdempotency.Name }) {
		bound.ReadUnits += 4 * units.ForRead(b.sizes[model.EntityIdempotency.Name])
	}
	bound.RoundTrips = bound.Requests
	return bound
}

// WriteUnits returns the maximum write units of one transaction of a mutation. lines is the number
// of lines of the mutation's order. The result is 0 for a mutation without a write pattern.
func (b CostBounds) WriteUnits(mutation string, lines int) (most float64) {
	write := func(each int, entities ...model.Entity) {
		for _, e := range entities {
			most += float64(each) * units.MaxForTransactWrite(b.sizes[e.Name], e.IndexPK != "")
		}
	}
	for _, p := range model.WritePatterns() {
		if p.Mutation == mutation {
			write(1, p.Writes...)
			write(1, p.OptionalWrites...)
			write(lines, p.WritesPerLine...)
			write(lines, p.OptionalWritesPerLine...)
		}
	}
	return most
}

func (b CostBounds) maxRecordSize(entities []model.Entity) int {
	size := 0
	for _, e := range entities {
		size = max(size, b.sizes[e.Name])
	}
	return size
}

// queriesBound returns the maximum cost of the Queries that read one page. most is the cost without
// DynamoDB's limit of 1 MB per Query. size is the maximum size of a row in bytes.
//
// Each Query that stops at this limit has read at least 1 MB minus one row. Therefore the total
// size of all rows determines how many Queries can stop. Pages of records written by this program
// fit into 1 MB, so their Queries never stop at the limit.
func (b CostBounds) queriesBound(p model.AccessPattern, most mergeCost, size int, consistent bool) ReadCostBound {
	bytes := most.rows * size
	ends := 0
	if most.maxQueryRows*size > table.MaxQueryBytes {
		ends = max(0, ceilDiv(bytes, table.MaxQueryBytes-size)-1)
	}
	bound := ReadCostBound{Requests: most.requests + ends, RoundTrips: most.rounds + ends}
	bound.ReadUnits = units.ForRead(bytes)
	if bound.Requests > 1 {
		// Each Query rounds up its own units.
		bound.ReadUnits = (float64(bytes)/units.BytesPerReadUnit + float64(bound.Requests)) / 2
	}
	bound.ReadUnits *= p.ConsistencyFactor(consistent)
	return bound
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }

// mergeCost is the cost of merging several partitions into one page, without DynamoDB's limit of 1
// MB per Query. Requests of the same round are concurrent. maxQueryRows is the maximum number of
// rows that one Query returns.
type mergeCost struct{ rounds, requests, rows, maxQueryRows int }

// plus returns the total cost of the merge m and a later merge.
func (m mergeCost) plus(next mergeCost) mergeCost {
	return mergeCost{m.rounds + next.rounds, m.requests + next.requests, m.rows + next.rows, max(m.maxQueryRows, next.maxQueryRows)}
}

// maxMergeCost returns the maximum cost of readLevel, which merges the partitions of one level into
// one page. The maximum holds for any distribution of the records over the partitions. Rows of
// earlier levels only reduce the cost.
//
// The proof uses these terms. P is the number of partitions, and L is the limit of the page. W is
// the number of rows to find: L, or L + 1 with DetectMore. G is the number of rows on the page so
// far. A buffered row has been read but is not on the page yet. k is the number of rows that the
// first round reads from each partition.
//
// Rows: readAheadLimit allows 7L/4 buffered rows, not counting the first buffered row of each
// partition. Only the rows that minRefillSize requests exceed this limit. They are at most G/4 rows in
// all partitions together. So at most 7L/4 + G/4 + P rows are buffered. A round starts only while G
// < W. Therefore at most G + 7L/4 + G/4 + P rows have been read, which does not exceed 3L + P.
//
// Rounds: Rows move to the page until an unfinished partition has no buffered rows. This partition
// blocks the merge, and the next round reads it. A partition adds at least k rows to the page
// before it blocks for the first time. Before it blocks again, it adds at least the rows that
// minRefillSize requested. A partition that returned all missing rows of the page does not block again.
// Fewer than W rows are on the page before the last round. So the maximum number of rounds is the
// maximum number of blocks with W - 1 rows, plus the first round.
//
// Requests: The first round sends P requests. A later round reads a partition only if all rows read
// from it precede the end of the page. Fewer than W rows precede the end, and each such partition
// has at least k of them. So a later round reads at most (W - 1)/k partitions. In addition, every
// request returns a row or reaches the end of its partition.
func maxMergeCost(partitions int, page PageRequest) mergeCost {
	want := page.fetchLimit()
	if partitions == 1 {
		return mergeCost{1, 1, want, want}
	}
	rows := 3*page.Limit + partitions
	first := min(firstReadSize(want, partitions), readAheadLimit(page.Limit)/partitions+1)
	// steps[n] is the maximum number of rounds after the first, if the partitions that blocked the
	// merge have added n rows to the page.
	steps := make([]int, want)
	for given, rounds := first, 1; given < want; given, rounds = given+minRefillSize(given), rounds+1 {
		for n := given; n < want; n++ {
			steps[n] = max(steps[n], rounds+steps[n-given])
		}
	}
	later := steps[want-1]
	return mergeCost{
		rounds:       1 + later,
		requests:     min(partitions+later*min(partitions, (want-1)/first), rows+partitions),
		rows:         rows,
		maxQueryRows: want,
	}
}
