package dynamo

import (
	"slices"
	"strings"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
	"github.com/ordergraph/ordergraph/dynamo/units"
)

// Bounds calculate the maximum costs of reads and mutations. They derive the costs from the access
// patterns, the write patterns and the maximum size of each kind of record.
//
// The bounds hold for records written by this program. The package commerce limits the sizes of
// these records, and commerce.MaxLines limits the number of lines of an order. Records written by
// other software may lack counts or embedded items that save requests. The bounds include the
// additional requests for such records. Records of other software may also be larger than the
// limits. Larger records can cost more read units and more requests than the bounds.
//
// The bounds do not include retries after throttling, unprocessed keys or conflicts.
type Bounds struct {
	shards int
	// sizes maps the name of each entity to the maximum size of its records in bytes.
	sizes map[string]int
}

// NewBounds returns the bounds for a table with the given number of shards.
func NewBounds(shards int) Bounds {
	return Bounds{shards: max(1, shards), sizes: model.MaxRecordSizes()}
}

// ReadBound is the maximum cost of a read. RoundTrips counts the requests that run one after
// another.
type ReadBound struct {
	Requests, RoundTrips int
	ReadUnits            float64
}

// ChangeBound is the maximum cost of a mutation.
type ChangeBound struct {
	ReadBound
	// Items is the part of ReadBound for reading the items of an order. ItemsPattern is the ID of the
	// access pattern that reads the items.
	Items        ReadBound
	ItemsPattern string
	// WriteUnits are the write units of the transaction and of one retry.
	WriteUnits float64
}

// KeysPerRequest is the maximum number of keys that one request can look up.
const KeysPerRequest = table.BatchSize

// KeyUnits returns the maximum read units of looking up one key.
func (b Bounds) KeyUnits(p model.AccessPattern, consistent bool) float64 {
	return p.ConsistencyFactor(consistent) * units.Read(b.largestRecord(p.Records()))
}

// List returns the maximum cost of reading one page of a list. For a list of orders by status,
// statuses are the statuses that the page contains. For other lists, statuses is empty.
func (b Bounds) List(p model.AccessPattern, page PageRequest, statuses []commerce.Status, consistent bool) ReadBound {
	shards := 1
	if strings.HasSuffix(p.Operation, "per shard") {
		shards = b.shards
	}
	most := maxMergeCost(shards, page)
	if len(statuses) > 0 {
		most = mergeCost{}
		for _, level := range commerce.StatusLevels(statuses) {
			most = most.plus(maxMergeCost(len(level)*shards, page))
		}
	}
	if p.MaxLength > 0 {
		most.rows = min(most.rows, p.MaxLength)
	}
	return b.queriesBound(p, most, b.largestRecord(p.Records()), consistent)
}

// Collection returns the maximum cost of reading an item collection with one Query.
func (b Bounds) Collection(p model.AccessPattern, consistent bool) ReadBound {
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
	bytes += (collectionLimit - 1) * b.largestRecord(rest)
	return ReadBound{1, 1, p.ConsistencyFactor(consistent) * units.Read(min(bytes, table.MaxQueryBytes))}
}

// Count returns the maximum cost of counting the records of a list. A list with a maximum length
// needs one Query. Other lists need up to table.MaxCountPages queries.
func (b Bounds) Count(p model.AccessPattern, consistent bool) ReadBound {
	if p.MaxLength > 0 {
		return ReadBound{1, 1, p.ConsistencyFactor(consistent) * units.Read(p.MaxLength*b.largestRecord(p.Records()))}
	}
	return ReadBound{table.MaxCountPages, table.MaxCountPages, table.MaxCountPages * p.ConsistencyFactor(consistent) * units.Read(table.MaxQueryBytes)}
}

// Change returns the maximum cost of a mutation if no other mutation conflicts with it. The cost of
// reading the payload is not included.
//
// The bound includes the reads before the transaction, the transaction, and one failure of the
// transaction. The transaction can fail because of a record that the mutation did not read before.
// After the failure, the mutation reads that record and tries again, or it reads the idempotency
// record.
func (b Bounds) Change(p model.WritePattern) ChangeBound {
	bound := ChangeBound{ItemsPattern: model.OrderItems.ID, WriteUnits: 2 * b.WriteUnits(p.Mutation, commerce.MaxLines)}
	read := func(each int, entities ...model.Entity) {
		for _, e := range entities {
			bound.ReadUnits += float64(each) * 2 * units.Read(b.sizes[e.Name])
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
		items := b.List(model.OrderItems.AccessPattern, PageRequest{Limit: table.MaxTransactionActions, DetectMore: true}, nil, true)
		bound.Items = ReadBound{2 * items.Requests, 2 * items.RoundTrips, 2 * items.ReadUnits}
		bound.Requests += bound.Items.Requests
		bound.ReadUnits += bound.Items.ReadUnits
	}
	// If a condition fails, DynamoDB returns the current record. If the record does not exist, the
	// mutation reads other records to find the reason of the failure.
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
		bound.ReadUnits += 4 * units.Read(b.sizes[model.EntityIdempotency.Name])
	}
	bound.RoundTrips = bound.Requests
	return bound
}

// WriteUnits returns the maximum write units of a mutation's transaction for an order with the
// given number of lines. It returns 0 for a mutation without a write pattern.
func (b Bounds) WriteUnits(mutation string, lines int) (most float64) {
	write := func(each int, entities ...model.Entity) {
		for _, e := range entities {
			most += float64(each) * units.MaxWrite(b.sizes[e.Name], e.IndexPK != "")
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

func (b Bounds) largestRecord(entities []model.Entity) int {
	size := 0
	for _, e := range entities {
		size = max(size, b.sizes[e.Name])
	}
	return size
}

// queriesBound returns the maximum cost of the Queries that read one page. most is the cost if no
// Query reaches DynamoDB's limit of 1 MB, and size is the maximum size of one row in bytes.
//
// A Query that stops at the limit has read at least 1 MB minus one row. The total size of the rows
// therefore limits the number of Queries that stop at the limit. Pages of records written by this
// program fit into 1 MB, so their Queries never stop at the limit.
func (b Bounds) queriesBound(p model.AccessPattern, most mergeCost, size int, consistent bool) ReadBound {
	bytes := most.rows * size
	ends := 0
	if most.maxQueryRows*size > table.MaxQueryBytes {
		ends = max(0, ceilDiv(bytes, table.MaxQueryBytes-size)-1)
	}
	bound := ReadBound{Requests: most.requests + ends, RoundTrips: most.rounds + ends}
	bound.ReadUnits = units.Read(bytes)
	if bound.Requests > 1 {
		// Each Query rounds up its own units.
		bound.ReadUnits = (float64(bytes)/units.ReadSize + float64(bound.Requests)) / 2
	}
	bound.ReadUnits *= p.ConsistencyFactor(consistent)
	return bound
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }

// mergeCost is the cost of reading one page from several partitions if no Query reaches DynamoDB's
// limit of 1 MB. maxQueryRows is the maximum number of rows that one Query returns.
type mergeCost struct{ rounds, requests, rows, maxQueryRows int }

// plus returns the cost of two merges that run one after the other.
func (m mergeCost) plus(next mergeCost) mergeCost {
	return mergeCost{m.rounds + next.rounds, m.requests + next.requests, m.rows + next.rows, max(m.maxQueryRows, next.maxQueryRows)}
}

// maxMergeCost returns the maximum cost of readLevel, which reads one page from the partitions of
// one level. The cost holds for any distribution of the records over the partitions. Rows of
// earlier levels only reduce the cost.
//
// P is the number of partitions. L is the limit of the page. W is the number of rows to find: L or
// L + 1. k is the number of rows that the first round reads from each partition.
//
// Rows. A buffered row has been read and has not been moved to the page. readAheadLimit permits
// 7L/4 buffered rows in addition to the first buffered row of each partition. A partition without
// buffered rows may exceed this limit because of minGrowth. The excess is at most a quarter of the
// rows that the partition has contributed to the page. If the page has G rows, at most 7L/4 + G/4 +
// P rows are buffered. A round runs only while G is less than W. All rows that were read are on the
// page or buffered. Their number is at most G + 7L/4 + G/4 + P, which does not exceed 3L + P.
//
// Rounds. Rows move to the page until an unfinished partition has no buffered row. This partition
// blocks the merge. Every round after the first reads a blocking partition. A partition contributes
// at least k rows before it first blocks. Between two blocks, it contributes at least the rows that
// minGrowth requested. A partition that returned all missing rows of the page does not block again.
// All partitions together contribute fewer than W rows. So W - 1 rows limit the number of blocks,
// and therefore the number of rounds.
//
// Requests. The first round sends P requests. A later round reads a partition only if all its rows
// precede the known end of the page. Fewer than W rows precede the end, and each such partition has
// at least k of them. Every request also returns a row or reaches the end of its partition.
func maxMergeCost(partitions int, page PageRequest) mergeCost {
	want := page.fetchLimit()
	if partitions == 1 {
		return mergeCost{1, 1, want, want}
	}
	rows := 3*page.Limit + partitions
	first := min(firstReadSize(want, partitions), readAheadLimit(page.Limit)/partitions+1)
	// steps[n] is the maximum number of rounds if the blocking partitions have contributed n rows
	// together.
	steps := make([]int, want)
	for given, rounds := first, 1; given < want; given, rounds = given+minGrowth(given), rounds+1 {
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
