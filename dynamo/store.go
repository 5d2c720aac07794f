package dynamo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/commerce"
)

// Options say how a table was laid out.
type Options struct {
	// Table is the table's name.
	Table string
	// Shards is over how many partition keys each busy list is spread: 1 to MaxShards, 1 where it is 0.
	Shards int
	// Currency is that of records which name none; USD where it is empty.
	Currency commerce.Currency
	// Clock tells the time of what is written; the system's where it is nil.
	Clock func() time.Time
	// Entropy makes new ids unguessable; the system's where it is nil. It must be safe for concurrent use.
	Entropy io.Reader
}

// Store is the order book in a table. It is safe for concurrent use and keeps nothing between calls.
type Store struct {
	db       *dynamodb.Client
	table    string
	shards   int
	currency commerce.Currency
	clock    func() time.Time
	entropy  io.Reader
	// consistent tells that reads of the table see every write that was answered before.
	consistent bool
	// writing are the options of writes: they are tried until they pass or the context ends. bulk are those of requests of checks,
	// exports and imports, which are tried for longer than a server could wait.
	writing, bulk func(*dynamodb.Options)
}

// New returns the order book in the table that opts name, read through db. It makes no request.
//
// Errors: one that says so where opts are out of their limits.
func New(db *dynamodb.Client, opts Options) (*Store, error) {
	s := &Store{db: budgeted(db), table: opts.Table, shards: max(1, opts.Shards), currency: opts.Currency, clock: opts.Clock, entropy: opts.Entropy}
	if s.clock == nil {
		s.clock = time.Now
	}
	if s.entropy == nil {
		s.entropy = rand.Reader
	}
	s.writing, s.bulk = persistently(maxWriteAttempts), persistently(maxBulkAttempts)
	if s.currency == "" {
		s.currency = "USD"
	}
	if s.table == "" {
		return nil, fmt.Errorf("open order book: no table is named")
	}
	if opts.Shards < 0 || opts.Shards > MaxShards {
		return nil, fmt.Errorf("open order book: %d shards: a table has 1 to %d", opts.Shards, MaxShards)
	}
	return s, nil
}

// Consistent returns the same order book, read with strong consistency: what was written a moment ago is seen. Reads of the
// table cost twice as much, and lists that are read through the index lag behind as ever, as DynamoDB has no
// consistent reads of an index.
func (s *Store) Consistent() *Store {
	c := *s
	c.consistent = true
	return &c
}

// Currency is the currency of records that name none.
func (s *Store) Currency() commerce.Currency { return s.currency }

// Ping makes the cheapest read there is.
//
// Errors: ErrUnavailable, ErrNoTable, ErrAccessDenied.
func (s *Store) Ping(ctx context.Context) error {
	_, err := s.db.GetItem(ctx, &dynamodb.GetItemInput{TableName: &s.table, Key: keys{PK: entityWarehouse.Name, SK: entityWarehouse.Name}.attributes()})
	if err != nil {
		return failed("GetItem", "of nothing", err)
	}
	return nil
}

// consistency is the ConsistentRead of requests that read the table.
func (s *Store) consistency() *bool {
	if !s.consistent {
		return nil
	}
	return aws.Bool(true)
}

// batchSize is how many keys one BatchGetItem can have.
const batchSize = 100

// maxParallel is how many requests one call makes at once.
const maxParallel = 32

// get reads one record by its key.
//
// Errors: commerce.ErrNotFound, and those of failed.
func (s *Store) get(ctx context.Context, p *AccessPattern, k keys) (record, error) {
	t := startTimer(ctx)
	in := &dynamodb.GetItemInput{TableName: &s.table, Key: k.attributes(), ConsistentRead: s.consistency()}
	if t.on() {
		in.ReturnConsumedCapacity = types.ReturnConsumedCapacityTotal
	}
	out, err := s.db.GetItem(ctx, in)
	if err != nil {
		return nil, failed("GetItem", k.unnamed(), err)
	}
	if t.on() {
		r := Request{AccessPattern: p.ID, Operation: "GetItem", Key: k.PK + " " + k.SK}
		if out.Item != nil {
			r.Items = 1
		}
		r.ReadUnits = s.reported(readUnits(sizeOf(out.Item)), 1, out.ConsumedCapacity)
		t.stop(r)
	}
	if out.Item == nil {
		return nil, commerce.ErrNotFound
	}
	return out.Item, nil
}

// reported is what the engine says that a request cost, or what we computed where it says nothing. An engine that reports less
// than half a unit for each read that it made is not believed: DynamoDB charges that much for finding nothing, too.
func (s *Store) reported(computed float64, reads int, by ...*types.ConsumedCapacity) float64 {
	least := readUnits(0) * float64(reads)
	if s.consistent {
		computed, least = 2*computed, 2*least
	}
	sum, told := 0.0, false
	for _, c := range by {
		if c != nil {
			sum, told = sum+aws.ToFloat64(c.CapacityUnits), true
		}
	}
	if !told {
		return computed
	}
	return max(sum, least)
}

// getMany reads records by their keys, each key once, a hundred keys a request. The answer has a place for every key,
// nil where there is no record.
//
// Errors: those of failed.
func (s *Store) getMany(ctx context.Context, p *AccessPattern, ks []keys) ([]record, error) {
	places := make(map[keys][]int, len(ks))
	distinct := make([]keys, 0, len(ks))
	for i, k := range ks {
		if _, ok := places[k]; !ok {
			distinct = append(distinct, k)
		}
		places[k] = append(places[k], i)
	}
	out := make([]record, len(ks))
	put := func(k keys, r record) {
		for _, i := range places[k] {
			out[i] = r
		}
	}
	if len(distinct) == 1 {
		r, err := s.get(ctx, p, distinct[0])
		if errors.Is(err, commerce.ErrNotFound) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		put(distinct[0], r)
		return out, nil
	}
	chunks := (len(distinct) + batchSize - 1) / batchSize
	found := make([][]map[string]types.AttributeValue, chunks)
	err := Parallel(ctx, chunks, maxParallel, func(ctx context.Context, i int) (err error) {
		found[i], err = s.getBatch(ctx, p, distinct[i*batchSize:min((i+1)*batchSize, len(distinct))])
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, records := range found {
		for _, r := range records {
			at := reader{record: r}
			put(keys{PK: at.text(attrPK), SK: at.text(attrSK)}, r)
		}
	}
	return out, nil
}

// getBatch is one BatchGetItem, repeated for the keys that DynamoDB leaves unprocessed.
func (s *Store) getBatch(ctx context.Context, p *AccessPattern, ks []keys) ([]map[string]types.AttributeValue, error) {
	var found []map[string]types.AttributeValue
	wanted := make([]map[string]types.AttributeValue, len(ks))
	for i, k := range ks {
		wanted[i] = k.attributes()
	}
	for attempt := 0; len(wanted) > 0; attempt++ {
		if err := backOff(ctx, attempt); err != nil {
			return nil, failed("BatchGetItem", describeUnnamed(ks), err)
		}
		t := startTimer(ctx)
		in := &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{s.table: {Keys: wanted, ConsistentRead: s.consistency()}}}
		if t.on() {
			in.ReturnConsumedCapacity = types.ReturnConsumedCapacityTotal
		}
		out, err := s.db.BatchGetItem(ctx, in)
		if err != nil {
			return nil, failed("BatchGetItem", describeUnnamed(ks), err)
		}
		got := out.Responses[s.table]
		found = append(found, got...)
		left := out.UnprocessedKeys[s.table].Keys
		if t.on() {
			capacity := make([]*types.ConsumedCapacity, len(out.ConsumedCapacity))
			for i := range out.ConsumedCapacity {
				capacity[i] = &out.ConsumedCapacity[i]
			}
			t.stop(Request{AccessPattern: p.ID, Operation: "BatchGetItem", Key: describe(ks), Items: len(got),
				ReadUnits: s.reported(batchUnits(got, len(wanted)-len(left)), len(wanted)-len(left), capacity...)})
		}
		wanted = left
	}
	return found, nil
}

// unnamed is the key for messages that end in a log: without what belongs to persons or is a secret of theirs.
func (k keys) unnamed() string {
	for _, e := range []*Entity{&entityEmailClaim, &entityIdempotency} {
		if literal := e.PK.literal(); strings.HasPrefix(k.PK, literal) {
			return literal + "... " + k.SK
		}
	}
	return k.PK + " " + k.SK
}

func describeUnnamed(ks []keys) string {
	texts := make([]string, len(ks))
	for i, k := range ks {
		texts[i] = k.unnamed()
	}
	return shorten(texts)
}

// describe names the keys of a batch for people: a few of them, and how many more.
func describe(ks []keys) string {
	texts := make([]string, len(ks))
	for i, k := range ks {
		texts[i] = k.PK + " " + k.SK
	}
	return shorten(texts)
}

// shorten is the first few of a list, and how many more there are.
func shorten(texts []string) string {
	const shown = 3
	if more := len(texts) - shown; more > 0 {
		return fmt.Sprintf("%s, and %d more", strings.Join(texts[:shown], ", "), more)
	}
	return strings.Join(texts, ", ")
}

// backOff waits before the attempt of that number, the first is 0: not at all, then up to 25 ms, 50 ms and so on to
// a second, at random so that many servers do not come back at once.
//
// Errors: the context's, where it ends first.
func backOff(ctx context.Context, attempt int) error {
	if attempt == 0 {
		return nil
	}
	ceiling := min(25*time.Millisecond<<min(attempt-1, 6), time.Second)
	wait := time.NewTimer(mathrand.N(ceiling) + time.Millisecond)
	defer wait.Stop()
	select {
	case <-wait.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
