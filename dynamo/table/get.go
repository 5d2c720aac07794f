package table

import (
	"context"
	"errors"
	mathrand "math/rand/v2"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/units"
)

// consistency is the ConsistentRead of requests that read the table.
func (t *Table) consistency() *bool {
	if !t.consistent {
		return nil
	}
	return aws.Bool(true)
}

// BatchSize is how many keys one BatchGetItem can have.
const BatchSize = 100

// MaxParallel is how many requests one call makes at once.
const MaxParallel = 32

// Get reads one record by its key.
//
// Errors: commerce.ErrNotFound, and those of failed.
func (t *Table) Get(ctx context.Context, p *model.AccessPattern, k model.Keys) (model.Reader, error) {
	timed := StartTimer(ctx)
	a, err := t.getItem(ctx, k, timed.On())
	if err != nil {
		return model.Reader{}, Failed("GetItem", k.Unnamed(), err)
	}
	if timed.On() {
		r := Request{AccessPattern: p.ID, Operation: "GetItem", Key: k.PK + " " + k.SK, Items: len(a.Records)}
		r.ReadUnits = t.reported(units.Read(model.SizeOfAll(a.Records)), 1, a)
		timed.Stop(r)
	}
	if len(a.Records) == 0 {
		return model.Reader{}, commerce.ErrNotFound
	}
	return a.Records[0], nil
}

// getItem is one GetItem.
//
// Errors: the SDK's, ErrOverBudget.
func (t *Table) getItem(ctx context.Context, k model.Keys, priced bool) (answer, error) {
	db, along := t.Client, leaveAsIs
	if t.wire != nil {
		body, ok := getItemBody(t.asking(priced), k)
		a, rest, err := t.shortly(ctx, t.wire.operations.getItem, body, ok, 1)
		if a != nil || err != nil {
			return *a, err
		}
		db, along = rest.db, rest.along
	}
	out, err := db.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &t.Name, Key: k.Attributes(), ConsistentRead: t.consistency(), ReturnConsumedCapacity: returning(priced),
	}, along)
	if err != nil {
		return answer{}, err
	}
	a := answer{}
	if out.Item != nil {
		a.Records = []model.Reader{{Record: out.Item}}
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
func (t *Table) shortly(ctx context.Context, operation []string, body []byte, writable bool, most int) (a *answer, fallback rest, err error) {
	if !writable {
		return nil, rest{db: t.Client, along: leaveAsIs}, nil
	}
	if err := spend(ctx); err != nil {
		return &answer{}, rest{}, err
	}
	a, fallback = t.wire.try(ctx, operation, t.Name, body, most)
	if a != nil {
		t.wire.succeeded(ctx)
	}
	return a, fallback, nil
}

// asking is how the store's requests read.
func (t *Table) asking(priced bool) asking {
	return asking{table: t.Name, consistent: t.consistent, priced: priced}
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
func (t *Table) reported(computed float64, reads int, by answer) float64 {
	least := units.Read(0) * float64(reads)
	if t.consistent {
		computed, least = 2*computed, 2*least
	}
	if !by.told {
		return computed
	}
	return max(by.units, least)
}

// GetMany reads records by their keys, each key once, a hundred keys a request. The answer has a
// place for every key, with no attributes where there is no record.
//
// Errors: those of failed.
func (t *Table) GetMany(ctx context.Context, p *model.AccessPattern, ks []model.Keys) ([]model.Reader, error) {
	if len(ks) == 1 {
		r, err := t.Get(ctx, p, ks[0])
		if err != nil && !errors.Is(err, commerce.ErrNotFound) {
			return nil, err
		}
		return []model.Reader{r}, nil
	}
	places := make(map[primaryKey]int, len(ks))
	distinct := make([]model.Keys, 0, len(ks))
	for _, k := range ks {
		if _, ok := places[primaryKey{k.PK, k.SK}]; !ok {
			places[primaryKey{k.PK, k.SK}] = len(distinct)
			distinct = append(distinct, k)
		}
	}
	if len(distinct) == 1 {
		r, err := t.Get(ctx, p, distinct[0])
		if err != nil && !errors.Is(err, commerce.ErrNotFound) {
			return nil, err
		}
		return slices.Repeat([]model.Reader{r}, len(ks)), nil
	}
	chunks := (len(distinct) + BatchSize - 1) / BatchSize
	found := make([][]model.Reader, chunks)
	err := Parallel(ctx, chunks, MaxParallel, func(ctx context.Context, i int) (err error) {
		found[i], err = t.getBatch(ctx, p, distinct[i*BatchSize:min((i+1)*BatchSize, len(distinct))])
		return err
	})
	if err != nil {
		return nil, err
	}
	records := make([]model.Reader, len(distinct))
	for _, chunk := range found {
		for _, r := range chunk {
			if at, ok := places[primaryKey{r.Text(model.AttrPK), r.Text(model.AttrSK)}]; ok {
				records[at] = r
			}
		}
	}
	if len(distinct) == len(ks) {
		return records, nil
	}
	out := make([]model.Reader, len(ks))
	for i, k := range ks {
		out[i] = records[places[primaryKey{k.PK, k.SK}]]
	}
	return out, nil
}

// Text is a primary key by which records are found in an answer.
type primaryKey struct{ pk, sk string }

// getBatch is one BatchGetItem, repeated for the keys that DynamoDB leaves unprocessed.
func (t *Table) getBatch(ctx context.Context, p *model.AccessPattern, ks []model.Keys) ([]model.Reader, error) {
	var found []model.Reader
	wanted := ks
	for attempt := 0; len(wanted) > 0; attempt++ {
		if err := BackOff(ctx, attempt); err != nil {
			return nil, Failed("BatchGetItem", describeUnnamed(ks), err)
		}
		timed := StartTimer(ctx)
		a, err := t.batchGetItem(ctx, wanted, timed.On())
		if err != nil {
			return nil, Failed("BatchGetItem", describeUnnamed(ks), err)
		}
		if attempt == 0 {
			found = a.Records
		} else {
			found = append(found, a.Records...)
		}
		if timed.On() {
			processed := len(wanted) - len(a.left)
			timed.Stop(Request{AccessPattern: p.ID, Operation: "BatchGetItem", Key: Describe(ks), Items: len(a.Records),
				ReadUnits: t.reported(units.Batch(a.Records, processed), processed, a)})
		}
		wanted = a.left
	}
	return found, nil
}

// batchGetItem is one BatchGetItem.
//
// Errors: the SDK's, ErrOverBudget.
func (t *Table) batchGetItem(ctx context.Context, ks []model.Keys, priced bool) (answer, error) {
	db, along := t.Client, leaveAsIs
	if t.wire != nil {
		body, ok := batchBody(t.asking(priced), ks)
		a, rest, err := t.shortly(ctx, t.wire.operations.batchGetItem, body, ok, len(ks))
		if a != nil || err != nil {
			return *a, err
		}
		db, along = rest.db, rest.along
	}
	wanted := make([]map[string]types.AttributeValue, len(ks))
	for i, k := range ks {
		wanted[i] = k.Attributes()
	}
	out, err := db.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{
		RequestItems:           map[string]types.KeysAndAttributes{t.Name: {Keys: wanted, ConsistentRead: t.consistency()}},
		ReturnConsumedCapacity: returning(priced),
	}, along)
	if err != nil {
		return answer{}, err
	}
	a := answer{Records: readers(out.Responses[t.Name])}
	for _, k := range out.UnprocessedKeys[t.Name].Keys {
		a.left = append(a.left, model.KeyOf(k))
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
func readers(records []map[string]types.AttributeValue) []model.Reader {
	all := make([]model.Reader, len(records))
	for i, r := range records {
		all[i] = model.Reader{Record: r}
	}
	return all
}

// BackOff waits before the attempt of that number, the first is 0: not at all, then up to 25 ms, 50
// ms and so on to a second, at random so that many servers do not come back at once.
//
// Errors: the context's, where it ends first.
func BackOff(ctx context.Context, attempt int) error {
	if attempt == 0 {
		return nil
	}
	ceiling := min(25*time.Millisecond<<min(attempt-1, 6), time.Second)
	return Wait(ctx, mathrand.N(ceiling)+time.Millisecond)
}

// Wait waits for d.
//
// Errors: the context's, where it ends first.
func Wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
