package dynamo

import (
	"slices"
	"strings"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
	"github.com/ordergraph/ordergraph/dynamo/units"
)

// Bounds tell the most that reading and changing can ask of DynamoDB, from the patterns and the
// greatest size of each kind of record.
//
// They hold for records that were written through this program: commerce's limits make those no
// larger, and no order of theirs has more than commerce.MaxLines lines. Records of other software
// may lack what saves requests, a count or embedded items, and that is counted; but they may also
// be larger, and then they cost more read units, and more requests where a page is larger than a
// megabyte. What DynamoDB throttles or leaves unprocessed, and what conflicts with others' changes,
// is asked for again; that is not counted.
type Bounds struct {
	shards int
	// sizes are how large a record of each entity can be, in bytes.
	sizes map[string]int
}

// NewBounds returns the bounds of a table of so many shards.
func NewBounds(shards int) Bounds { return Bounds{shards: max(1, shards), sizes: model.LargestSizes()} }

// ReadBound is the most that something can take: requests, round trips one after another, and read
// units.
type ReadBound struct {
	Requests, RoundTrips int
	ReadUnits            float64
}

// ChangeBound is the most that a mutation can take.
type ChangeBound struct {
	ReadBound
	// Items is the part of it that reads items of an order, under the pattern that ItemsPattern
	// names; the rest is the write pattern's.
	Items        ReadBound
	ItemsPattern string
	// WriteUnits are those of the transaction, which may be made twice.
	WriteUnits float64
}

// KeysPerRequest is how many keys one look-up can have.
const KeysPerRequest = table.BatchSize

// KeyUnits are the read units of one key in a look-up.
func (b Bounds) KeyUnits(p model.AccessPattern, consistent bool) float64 {
	return p.Consistently(consistent) * units.Read(b.largest(p.Records()))
}

// Page bounds reading a page of a list. statuses are those that a list of orders by status merges,
// empty for other lists.
func (b Bounds) Page(p model.AccessPattern, page Page, statuses []commerce.Status, consistent bool) ReadBound {
	shards := 1
	if strings.HasSuffix(p.Operation, "per shard") {
		shards = b.shards
	}
	most := merged(shards, page)
	if len(statuses) > 0 {
		most = merge{}
		for _, level := range commerce.Levels(statuses) {
			most = most.then(merged(len(level)*shards, page))
		}
	}
	if p.Most > 0 {
		most.rows = min(most.rows, p.Most)
	}
	return b.queries(p, most, b.largest(p.Records()), consistent)
}

// Collection bounds reading a record with all that stands below it, by one Query.
func (b Bounds) Collection(p model.AccessPattern, consistent bool) ReadBound {
	var rest []model.Entity
	bytes := 0
	for _, e := range model.Entities() {
		switch {
		case e.PK != p.PK || e.EdgeOf != nil: // edges are not read
		case strings.Contains(string(e.SK), "{"):
			rest = append(rest, e)
		default: // one of it
			bytes += b.sizes[e.Name]
		}
	}
	bytes += (collectionLimit - 1) * b.largest(rest)
	return ReadBound{1, 1, p.Consistently(consistent) * units.Read(min(bytes, table.PageBytes))}
}

// Count bounds counting the records of a list: in one Query where the list has a greatest number,
// else in as many as count makes.
func (b Bounds) Count(p model.AccessPattern, consistent bool) ReadBound {
	if p.Most > 0 {
		return ReadBound{1, 1, p.Consistently(consistent) * units.Read(p.Most*b.largest(p.Records()))}
	}
	return ReadBound{table.MaxCountedPages, table.MaxCountedPages, table.MaxCountedPages * p.Consistently(consistent) * units.Read(table.PageBytes)}
}

// Change bounds a mutation without its payload, where nobody else is in the way: what it reads
// before, the transaction, and where that fails because of what was not read, what stands there
// instead and a second attempt, or the memory of the request.
func (b Bounds) Change(p model.WritePattern) ChangeBound {
	bound := ChangeBound{ItemsPattern: model.OrderItems.ID, WriteUnits: 2 * b.WriteUnits(p.Mutation, commerce.MaxLines)}
	read := func(each int, entities ...model.Entity) {
		for _, e := range entities {
			bound.ReadUnits += float64(each) * 2 * units.Read(b.sizes[e.Name])
		}
	}
	if len(p.Reads)+len(p.ReadsEach) > 0 {
		bound.Requests++
		read(1, p.Reads...)
		read(commerce.MaxLines, p.ReadsEach...)
	}
	if p.Items && len(p.ReadsEach) > 0 {
		bound.Requests++ // the items tell which
	}
	if p.Items {
		// Once for each attempt.
		items := b.Page(model.OrderItems.AccessPattern, Page{Limit: table.MaxActions, More: true}, nil, true)
		bound.Items = ReadBound{2 * items.Requests, 2 * items.RoundTrips, 2 * items.ReadUnits}
		bound.Requests += bound.Items.Requests
		bound.ReadUnits += bound.Items.ReadUnits
	}
	// A record whose condition does not hold comes back with the refusal, unless there is none:
	// then it is looked for.
	bound.Requests += 2
	read(1, p.Writes...)
	read(commerce.MaxLines, p.Each...)
	read(1, p.Maybe...)
	if len(p.Late) > 0 {
		bound.Requests++
		read(1, p.Late...)
	}
	// The second attempt, or the memory, which is read in a transaction at twice the price.
	bound.Requests++
	if slices.ContainsFunc(p.Maybe, func(e model.Entity) bool { return e.Name == model.EntityIdempotency.Name }) {
		bound.ReadUnits += 4 * units.Read(b.sizes[model.EntityIdempotency.Name])
	}
	bound.RoundTrips = bound.Requests
	return bound
}

// WriteUnits returns the most write units that the transaction of a mutation takes for an order of
// so many lines; 0 for a mutation that has no write pattern.
func (b Bounds) WriteUnits(mutation string, lines int) (most float64) {
	write := func(each int, entities ...model.Entity) {
		for _, e := range entities {
			most += float64(each) * units.MostWrite(b.sizes[e.Name], e.IndexPK != "")
		}
	}
	for _, p := range model.WritePatterns() {
		if p.Mutation == mutation {
			write(1, p.Writes...)
			write(1, p.Maybe...)
			write(lines, p.Each...)
			write(lines, p.MaybeEach...)
		}
	}
	return most
}

func (b Bounds) largest(of []model.Entity) int {
	size := 0
	for _, e := range of {
		size = max(size, b.sizes[e.Name])
	}
	return size
}

// queries bounds Queries that read so many rows of so many bytes. One that ends at a megabyte has
// read all but a row of it, so that there are no more of those than such megabytes; and none where
// a page at a time fits, as for all records that this program writes.
func (b Bounds) queries(p model.AccessPattern, most merge, size int, consistent bool) ReadBound {
	bytes := most.rows * size
	ends := 0
	if most.longest*size > table.PageBytes {
		ends = max(0, ceilDiv(bytes, table.PageBytes-size)-1)
	}
	bound := ReadBound{Requests: most.requests + ends, RoundTrips: most.rounds + ends}
	bound.ReadUnits = units.Read(bytes)
	if bound.Requests > 1 {
		// Each Query rounds what it reads by itself.
		bound.ReadUnits = (float64(bytes)/units.ReadSize + float64(bound.Requests)) / 2
	}
	bound.ReadUnits *= p.Consistently(consistent)
	return bound
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }

// merge is what reading a page of several partitions takes, where no Query ends at a megabyte;
// longest is how many rows one Query reads.
type merge struct{ rounds, requests, rows, longest int }

// then is what one merge after another takes.
func (m merge) then(next merge) merge {
	return merge{m.rounds + next.rounds, m.requests + next.requests, m.rows + next.rows, max(m.longest, next.longest)}
}

// merged is the most that one level of Store.read takes for a page of so many partitions, however
// the list is spread over them. Rows of earlier levels only end the level sooner. Let P be the
// partitions, L the page's limit, W how many rows are wanted (L or L + 1), and k what the first
// round reads of each.
//
// Rows. Beyond the first row of each stream, reading ahead never makes more than allowance, 7L/4,
// be in hand. What regrowth reads beyond that is at most a quarter of what the same stream has
// given out before, and it happens only when the stream has nothing in hand. So beside the first
// rows there are never more than 7L/4 + G/4 in hand, G being given out; and G is less than W when
// something is read. All that is read has been given out or is in hand: at most G + 7L/4 + G/4 + P,
// which is no more than 3L + P.
//
// Rounds. Rows are given out until a stream has none left and more to read: that one is blocking.
// Every round but the first so reads a blocking stream. The first time it has given out k rows or
// more, the next time k and its regrowth, and so on, unless it had all that the page still lacked,
// and then it does not block again. All streams together have given out less than W, so there are
// no more rounds than the most such steps that W - 1 rows pay for.
//
// Requests. The first round makes P. The streams that a later round reads have all their rows
// before the page's end as far as it can be seen; there are less than W such rows, and k of each
// stream or more. Besides, every request gives a row, or the end of its stream.
func merged(partitions int, page Page) merge {
	want := page.want()
	if partitions == 1 {
		return merge{1, 1, want, want}
	}
	rows := 3*page.Limit + partitions
	first := min(firstShare(want, partitions), allowance(page.Limit)/partitions+1)
	// steps[n] is how many rounds streams can make that have given out n rows together.
	steps := make([]int, want)
	for given, rounds := first, 1; given < want; given, rounds = given+regrowth(given), rounds+1 {
		for n := given; n < want; n++ {
			steps[n] = max(steps[n], rounds+steps[n-given])
		}
	}
	later := steps[want-1]
	return merge{
		rounds:   1 + later,
		requests: min(partitions+later*min(partitions, (want-1)/first), rows+partitions),
		rows:     rows,
		longest:  want,
	}
}
