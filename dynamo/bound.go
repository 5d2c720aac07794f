package dynamo

import (
	"slices"
	"strings"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
	"github.com/ordergraph/ordergraph/dynamo/units"
)

// Bounds calculate the maximum costs of reads and mutations. They follow from the patterns and from
// the maximum size of each kind of record.
//
// The bounds hold for records written by this program: commerce limits their sizes and the number
// of lines of an order (commerce.MaxLines). Records written by other software may lack counts or
// embedded items that save requests; the bounds include the additional requests. Such records may
// also be larger. Then they cost more read units, and more requests if a page exceeds a megabyte.
// The bounds do not include retries after throttling, unprocessed keys or conflicts.
type Bounds struct {
	shards int
	// sizes are the maximum sizes of records in bytes, by entity.
	sizes map[string]int
}

// NewBounds returns the bounds for a table with this number of shards.
func NewBounds(shards int) Bounds {
	return Bounds{shards: max(1, shards), sizes: model.MaxRecordSizes()}
}

// ReadBound is the maximum cost of a read: requests, sequential round trips, and read units.
type ReadBound struct {
	Requests, RoundTrips int
	ReadUnits            float64
}

// ChangeBound is the maximum cost of a mutation.
type ChangeBound struct {
	ReadBound
	// Items is the part of the bound for reading the items of an order under the pattern ItemsPattern.
	// The rest belongs to the write pattern.
	Items        ReadBound
	ItemsPattern string
	// WriteUnits are the units of the transaction and one retry.
	WriteUnits float64
}

// KeysPerRequest is the maximum number of keys in one lookup request.
const KeysPerRequest = table.BatchSize

// KeyUnits returns the read units of one key in a lookup.
func (b Bounds) KeyUnits(p model.AccessPattern, consistent bool) float64 {
	return p.ConsistencyFactor(consistent) * units.Read(b.largestRecord(p.Records()))
}

// List bounds the read of a page of a list. statuses are the statuses that a list of orders merges;
// other lists merge no statuses.
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

// Collection bounds the read of an item collection by one Query.
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

// Count bounds counting the records of a list. A list with a maximum length takes one Query. Other
// lists take up to table.MaxCountPages queries.
func (b Bounds) Count(p model.AccessPattern, consistent bool) ReadBound {
	if p.MaxLength > 0 {
		return ReadBound{1, 1, p.ConsistencyFactor(consistent) * units.Read(p.MaxLength*b.largestRecord(p.Records()))}
	}
	return ReadBound{table.MaxCountPages, table.MaxCountPages, table.MaxCountPages * p.ConsistencyFactor(consistent) * units.Read(table.MaxQueryBytes)}
}

// Change bounds a mutation without its payload, if no other mutation conflicts. The bound includes
// the reads before the transaction and the transaction. The transaction can fail because of a
// record that was not read before. Then the bound includes reading that record and a second
// attempt, or reading the idempotency record.
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
	// A failed condition returns the current record. If no record exists, the change looks for the
	// reason.
	bound.Requests += 2
	read(1, p.Writes...)
	read(commerce.MaxLines, p.WritesPerLine...)
	read(1, p.OptionalWrites...)
	if len(p.ReadsOnFailure) > 0 {
		bound.Requests++
		read(1, p.ReadsOnFailure...)
	}
	// The last request is the second attempt, or a read of the idempotency record. That read is a
	// transaction, which costs twice as much.
	bound.Requests++
	if slices.ContainsFunc(p.OptionalWrites, func(e model.Entity) bool { return e.Name == model.EntityIdempotency.Name }) {
		bound.ReadUnits += 4 * units.Read(b.sizes[model.EntityIdempotency.Name])
	}
	bound.RoundTrips = bound.Requests
	return bound
}

// WriteUnits returns the maximum write units of a mutation's transaction for an order with this
// number of lines. It returns 0 for a mutation without a write pattern.
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

// queriesBound bounds the queries that read most.rows rows of size bytes. A Query that ends at the
// limit of a megabyte has read at least a megabyte less one row, which bounds the number of such
// queries. If a page fits into a megabyte, as with all records of this program, no Query ends
// there.
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

// mergeCost is the cost of reading a page from several partitions if no Query reaches the limit of
// a megabyte. longest is the maximum number of rows of one Query.
type mergeCost struct{ rounds, requests, rows, maxQueryRows int }

// plus returns the cost of two merges, one after the other.
func (m mergeCost) plus(next mergeCost) mergeCost {
	return mergeCost{m.rounds + next.rounds, m.requests + next.requests, m.rows + next.rows, max(m.maxQueryRows, next.maxQueryRows)}
}

// maxMergeCost returns the maximum cost of reading one level of a page from this number of
// partitions, for any distribution of the list. Rows of earlier levels only shorten the level. Let
// P be the partitions, L the page's limit, W the rows needed (L or L + 1), and k the rows that the
// first round reads from each partition.
//
// Rows. "In memory" means read and not yet moved to the page. Beyond the first row of each
// partition, reading ahead never leaves more than readAheadLimit, 7L/4 rows, in memory. The rows
// that minGrowth adds are at most a quarter of those that the same partition has given to the page.
// minGrowth applies only to a partition without rows in memory. So beside the first rows, at most
// 7L/4 + G/4 rows are in memory, where G is the number of rows on the page. G is less than W
// whenever something is read. All rows read are on the page or in memory: at most G + 7L/4 + G/4 +
// P, which is no more than 3L + P.
//
// Rounds. Rows move to the page until a partition with more to read has no row in memory: that
// partition blocks the merge. So every round but the first reads a blocking partition. Before a
// partition blocks for the first time, it has given at least k rows. Before it blocks again, it has
// given k rows and the minGrowth, and so on. A partition that had all remaining rows of the page
// does not block again. All partitions together have given less than W rows. So the number of
// rounds is at most the number of such steps that W - 1 rows allow.
//
// Requests. The first round makes P requests. A partition that a later round reads has only rows
// before the known end of the page. There are less than W such rows, and at least k of each such
// partition. In addition, every request returns a row or reaches the end of its partition.
func maxMergeCost(partitions int, page PageRequest) mergeCost {
	want := page.fetchLimit()
	if partitions == 1 {
		return mergeCost{1, 1, want, want}
	}
	rows := 3*page.Limit + partitions
	first := min(firstReadSize(want, partitions), readAheadLimit(page.Limit)/partitions+1)
	// steps[n] is the maximum number of rounds of partitions that have given n rows together.
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
