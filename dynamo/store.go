package dynamo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	mathrand "math/rand/v2"
	"slices"
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
	// Shards is over how many partition keys each busy list is spread: 1 to MaxShards, 1 where it
	// is 0.
	Shards int
	// Currency is that of records which name none; USD where it is empty.
	Currency commerce.Currency
	// Clock tells the time of what is written; the system's where it is nil. While it differs from
	// DynamoDB's, nothing is written.
	Clock func() time.Time
	// Log gets a line when the clock begins to differ from DynamoDB's, and when it agrees again;
	// nil for none.
	Log *slog.Logger
	// Entropy makes new ids unguessable; the system's where it is nil. It must be safe for
	// concurrent use.
	Entropy io.Reader
}

// Store is the order book in a table. It is safe for concurrent use and keeps nothing between
// calls.
type Store struct {
	db *dynamodb.Client
	// wire is the fast path; nil where the client's settings leave all requests to the SDK.
	wire *wire
	// longWay is why it is nil.
	longWay  string
	table    string
	shards   int
	currency commerce.Currency
	clock    func() time.Time
	// watch compares clock with DynamoDB's.
	watch   *clockWatch
	entropy io.Reader
	// consistent tells that reads of the table see every write that was answered before.
	consistent bool
	// writing are the options of writes: they are tried until they pass or the context ends. bulk
	// are those of requests of checks, exports and imports, which are tried for longer than a
	// server could wait.
	writing, bulk func(*dynamodb.Options)
}

// New returns the order book in the table that opts name, read through db. It makes no request.
//
// Errors: one that says so where opts are out of their limits.
func New(db *dynamodb.Client, opts Options) (*Store, error) {
	s := &Store{table: opts.Table, shards: max(1, opts.Shards), currency: opts.Currency, clock: opts.Clock, entropy: opts.Entropy}
	if s.clock == nil {
		s.clock = time.Now
	}
	log := opts.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	watched, watch := watchClock(db, s.clock, log)
	s.watch = watch
	s.wire, s.longWay = newWire(db, watched)
	s.db = watch.refuseWrites(budgeted(watched))
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

// Consistent returns the same order book, read with strong consistency: what was written a moment
// ago is seen. Reads of the table cost twice as much, and lists that are read through the index lag
// behind as ever, as DynamoDB has no consistent reads of an index.
func (s *Store) Consistent() *Store {
	c := *s
	c.consistent = true
	return &c
}

// Currency is the currency of records that name none.
func (s *Store) Currency() commerce.Currency { return s.currency }

// LongWay names the setting of the client that keeps reads and transactions off the fast path, so
// that the AWS SDK makes them all. It is empty where they are on the fast path.
func (s *Store) LongWay() string { return s.longWay }

// Ping makes the cheapest read there is, and compares the clocks.
//
// Errors: ClockError where the clocks differ, ErrUnavailable, ErrNoTable, ErrAccessDenied.
func (s *Store) Ping(ctx context.Context) error {
	_, err := s.db.GetItem(ctx, &dynamodb.GetItemInput{TableName: &s.table, Key: keys{PK: entityWarehouse.Name, SK: entityWarehouse.Name}.attributes()})
	if err != nil {
		return failed("GetItem", "of nothing", err)
	}
	return s.watch.err()
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
func (s *Store) get(ctx context.Context, p *AccessPattern, k keys) (reader, error) {
	t := startTimer(ctx)
	a, err := s.getItem(ctx, k, t.on())
	if err != nil {
		return reader{}, failed("GetItem", k.unnamed(), err)
	}
	if t.on() {
		r := Request{AccessPattern: p.ID, Operation: "GetItem", Key: k.PK + " " + k.SK, Items: len(a.records)}
		r.ReadUnits = s.reported(readUnits(sizeOfAll(a.records)), 1, a)
		t.stop(r)
	}
	if len(a.records) == 0 {
		return reader{}, commerce.ErrNotFound
	}
	return a.records[0], nil
}

// getItem is one GetItem.
//
// Errors: the SDK's, ErrOverBudget.
func (s *Store) getItem(ctx context.Context, k keys, priced bool) (answer, error) {
	db, along := s.db, leaveAsIs
	if s.wire != nil {
		body, ok := getItemBody(s.asking(priced), k)
		a, rest, err := s.shortly(ctx, s.wire.operations.getItem, body, ok, 1)
		if a != nil || err != nil {
			return *a, err
		}
		db, along = rest.db, rest.along
	}
	out, err := db.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &s.table, Key: k.attributes(), ConsistentRead: s.consistency(), ReturnConsumedCapacity: returning(priced),
	}, along)
	if err != nil {
		return answer{}, err
	}
	a := answer{}
	if out.Item != nil {
		a.records = []reader{{record: out.Item}}
	}
	a.cost(out.ConsumedCapacity)
	return a, nil
}

// leaveAsIs are the options of a request that is made as the client is.
func leaveAsIs(*dynamodb.Options) {}

// shortly makes the first attempt of a read on the fast path, if the read can be written there.
// Where a is nil, the caller makes the request with the fallback.
//
// Errors: ErrOverBudget.
func (s *Store) shortly(ctx context.Context, operation []string, body []byte, writable bool, most int) (a *answer, fallback rest, err error) {
	if !writable {
		return nil, rest{db: s.db, along: leaveAsIs}, nil
	}
	if err := spend(ctx); err != nil {
		return &answer{}, rest{}, err
	}
	a, fallback = s.wire.try(ctx, operation, s.table, body, most)
	if a != nil {
		s.wire.succeeded(ctx)
	}
	return a, fallback, nil
}

// asking is how the store's requests read.
func (s *Store) asking(priced bool) asking {
	return asking{table: s.table, consistent: s.consistent, priced: priced}
}

// returning is what a request asks to be told of its cost.
func returning(priced bool) types.ReturnConsumedCapacity {
	if priced {
		return types.ReturnConsumedCapacityTotal
	}
	return ""
}

// reported is what the engine says that a request cost, or what we computed where it says nothing.
// An engine that reports less than half a unit for each read that it made is not believed: DynamoDB
// charges that much for finding nothing, too.
func (s *Store) reported(computed float64, reads int, by answer) float64 {
	least := readUnits(0) * float64(reads)
	if s.consistent {
		computed, least = 2*computed, 2*least
	}
	if !by.told {
		return computed
	}
	return max(by.units, least)
}

// getMany reads records by their keys, each key once, a hundred keys a request. The answer has a
// place for every key, with no attributes where there is no record.
//
// Errors: those of failed.
func (s *Store) getMany(ctx context.Context, p *AccessPattern, ks []keys) ([]reader, error) {
	if len(ks) == 1 {
		r, err := s.get(ctx, p, ks[0])
		if err != nil && !errors.Is(err, commerce.ErrNotFound) {
			return nil, err
		}
		return []reader{r}, nil
	}
	places := make(map[primaryKey]int, len(ks))
	distinct := make([]keys, 0, len(ks))
	for _, k := range ks {
		if _, ok := places[k.primary()]; !ok {
			places[k.primary()] = len(distinct)
			distinct = append(distinct, k)
		}
	}
	if len(distinct) == 1 {
		r, err := s.get(ctx, p, distinct[0])
		if err != nil && !errors.Is(err, commerce.ErrNotFound) {
			return nil, err
		}
		return slices.Repeat([]reader{r}, len(ks)), nil
	}
	chunks := (len(distinct) + batchSize - 1) / batchSize
	found := make([][]reader, chunks)
	err := Parallel(ctx, chunks, maxParallel, func(ctx context.Context, i int) (err error) {
		found[i], err = s.getBatch(ctx, p, distinct[i*batchSize:min((i+1)*batchSize, len(distinct))])
		return err
	})
	if err != nil {
		return nil, err
	}
	records := make([]reader, len(distinct))
	for _, chunk := range found {
		for _, r := range chunk {
			if at, ok := places[primaryKey{r.text(attrPK), r.text(attrSK)}]; ok {
				records[at] = r
			}
		}
	}
	if len(distinct) == len(ks) {
		return records, nil
	}
	out := make([]reader, len(ks))
	for i, k := range ks {
		out[i] = records[places[k.primary()]]
	}
	return out, nil
}

// primaryKey is a primary key by which records are found in an answer.
type primaryKey struct{ pk, sk string }

func (k keys) primary() primaryKey { return primaryKey{k.PK, k.SK} }

// getBatch is one BatchGetItem, repeated for the keys that DynamoDB leaves unprocessed.
func (s *Store) getBatch(ctx context.Context, p *AccessPattern, ks []keys) ([]reader, error) {
	var found []reader
	wanted := ks
	for attempt := 0; len(wanted) > 0; attempt++ {
		if err := backOff(ctx, attempt); err != nil {
			return nil, failed("BatchGetItem", describeUnnamed(ks), err)
		}
		t := startTimer(ctx)
		a, err := s.batchGetItem(ctx, wanted, t.on())
		if err != nil {
			return nil, failed("BatchGetItem", describeUnnamed(ks), err)
		}
		if attempt == 0 {
			found = a.records
		} else {
			found = append(found, a.records...)
		}
		if t.on() {
			processed := len(wanted) - len(a.left)
			t.stop(Request{AccessPattern: p.ID, Operation: "BatchGetItem", Key: describe(ks), Items: len(a.records),
				ReadUnits: s.reported(batchUnits(a.records, processed), processed, a)})
		}
		wanted = a.left
	}
	return found, nil
}

// batchGetItem is one BatchGetItem.
//
// Errors: the SDK's, ErrOverBudget.
func (s *Store) batchGetItem(ctx context.Context, ks []keys, priced bool) (answer, error) {
	db, along := s.db, leaveAsIs
	if s.wire != nil {
		body, ok := batchBody(s.asking(priced), ks)
		a, rest, err := s.shortly(ctx, s.wire.operations.batchGetItem, body, ok, len(ks))
		if a != nil || err != nil {
			return *a, err
		}
		db, along = rest.db, rest.along
	}
	wanted := make([]map[string]types.AttributeValue, len(ks))
	for i, k := range ks {
		wanted[i] = k.attributes()
	}
	out, err := db.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{
		RequestItems:           map[string]types.KeysAndAttributes{s.table: {Keys: wanted, ConsistentRead: s.consistency()}},
		ReturnConsumedCapacity: returning(priced),
	}, along)
	if err != nil {
		return answer{}, err
	}
	a := answer{records: readers(out.Responses[s.table])}
	for _, k := range out.UnprocessedKeys[s.table].Keys {
		a.left = append(a.left, keyOf(k))
	}
	for i := range out.ConsumedCapacity {
		a.cost(&out.ConsumedCapacity[i])
	}
	return a, nil
}

// cost adds what the engine says that it cost.
func (a *answer) cost(told *types.ConsumedCapacity) {
	if told != nil {
		a.units, a.told = a.units+aws.ToFloat64(told.CapacityUnits), true
	}
}

// readers are records as the SDK gives them.
func readers(records []map[string]types.AttributeValue) []reader {
	all := make([]reader, len(records))
	for i, r := range records {
		all[i] = reader{record: r}
	}
	return all
}

// unnamed is the key for messages that end in a log: without what belongs to persons or is a secret
// of theirs.
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

// backOff waits before the attempt of that number, the first is 0: not at all, then up to 25 ms, 50
// ms and so on to a second, at random so that many servers do not come back at once.
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
