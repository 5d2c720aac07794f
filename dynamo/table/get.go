package table

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/attempt"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/trace"
)

// consistentReadParameter returns the ConsistentRead parameter for reads of the table. For
// eventually consistent reads, it returns nil.
func (t *Table) consistentReadParameter() *bool {
	if !t.consistent {
		return nil
	}
	return aws.Bool(true)
}

// MaxBatchKeys is the maximum number of keys in one BatchGetItem request.
const MaxBatchKeys = 100

// MaxParallel is the maximum number of requests that one function sends concurrently.
const MaxParallel = 32

// Get reads one record by its key. If the record does not exist, it returns commerce.ErrNotFound.
// All other errors come from WrapError.
func (t *Table) Get(ctx context.Context, p *model.AccessPattern, k model.Keys) (model.Reader, error) {
	ctx, timer := trace.StartTimer(ctx, t.observer, trace.Target{Pattern: p.ID, Operation: "GetItem"})
	a, err := t.getItem(ctx, k, timer.Enabled())
	if err != nil {
		timer.Stop(ctx, trace.Request{}, err)
		return model.Reader{}, WrapError("GetItem", k.Redacted(), err)
	}
	if timer.Enabled() {
		r := trace.Request{Items: len(a.Records), ReadUnits: t.readUnits(model.ReadUnits(model.SizeOfAll(a.Records)), 1, a)}
		if timer.NeedsKey() {
			r.Key = k.PK + " " + k.SK
		}
		timer.Stop(ctx, r, nil)
	}
	if len(a.Records) == 0 {
		return model.Reader{}, commerce.ErrNotFound
	}
	return a.Records[0], nil
}

// getItem sends one GetItem request. If reportCapacity is true, the result contains the consumed
// capacity. The errors are ErrReadBudgetExceeded, attempt.ErrBreakerOpen and the errors of the AWS
// SDK.
func (t *Table) getItem(ctx context.Context, k model.Keys, reportCapacity bool) (readResult, error) {
	db, options := t.Client, keepClientOptions
	if t.fastPath != nil {
		body, ok := getItemBody(t.readOptions(reportCapacity), k)
		a, fallback, err := t.tryFastPath(ctx, t.fastPath.targets.getItem, body, ok, 1)
		if a != nil || err != nil {
			return *a, err
		}
		db, options = fallback.client, fallback.options
	}
	t.stats.fallbacks.Add(1)
	out, err := db.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &t.Name, Key: k.Attributes(), ConsistentRead: t.consistentReadParameter(), ReturnConsumedCapacity: returnConsumedCapacityParameter(reportCapacity),
	}, options)
	if err != nil {
		return readResult{}, err
	}
	a := readResult{}
	if out.Item != nil {
		a.Records = []model.Reader{{Record: out.Item}}
	}
	a.addConsumedCapacity(out.ConsumedCapacity)
	return a, nil
}

// keepClientOptions is passed to requests of the AWS SDK that use the client's options unchanged.
func keepClientOptions(*dynamodb.Options) {}

// tryFastPath makes the first attempt of a read on the fast path. If the first result is nil, the
// caller must send the request with the client and the options in fallback. The errors are
// ErrReadBudgetExceeded and attempt.ErrBreakerOpen.
func (t *Table) tryFastPath(ctx context.Context, operation []string, body []byte, encoded bool, capacity int) (a *readResult, fallback sdkFallback, err error) {
	if !encoded {
		return nil, sdkFallback{client: t.Client, options: keepClientOptions}, nil
	}
	if err := chargeRead(ctx); err != nil {
		return &readResult{}, sdkFallback{}, err
	}
	return t.fastPath.try(ctx, operation, t.Name, body, capacity)
}

// readOptions returns the options for reading the table on the fast path.
func (t *Table) readOptions(reportCapacity bool) readOptions {
	return readOptions{table: t.Name, consistent: t.consistent, reportCapacity: reportCapacity}
}

// returnConsumedCapacityParameter returns the ReturnConsumedCapacity parameter of a request.
func returnConsumedCapacityParameter(reportCapacity bool) types.ReturnConsumedCapacity {
	if reportCapacity {
		return types.ReturnConsumedCapacityTotal
	}
	return ""
}

// readUnits returns the read units of a request. reads is the number of requested records, or 1 for
// a Query. The parameter computed is the cost of eventually consistent reads. It is used only if
// DynamoDB did not report the read units, and doubled for strongly consistent reads.
func (t *Table) readUnits(computed float64, reads int, a readResult) float64 {
	minimum := model.ReadUnits(0) * float64(reads)
	if t.consistent {
		computed, minimum = 2*computed, 2*minimum
	}
	if !a.unitsReported {
		return computed
	}
	// Amazon DynamoDB charges for missing records, but some local replacements report no units for
	// them.
	return max(a.units, minimum)
}

// GetMany reads records by their keys. The result contains one record for each element of ks. For a
// record that does not exist, the result contains a Reader without attributes. Errors come from
// WrapError.
func (t *Table) GetMany(ctx context.Context, p *model.AccessPattern, ks []model.Keys) ([]model.Reader, error) {
	if len(ks) == 1 {
		r, err := t.Get(ctx, p, ks[0])
		if err != nil && !errors.Is(err, commerce.ErrNotFound) {
			return nil, err
		}
		return []model.Reader{r}, nil
	}
	indexes := make(map[primaryKey]int, len(ks))
	distinct := make([]model.Keys, 0, len(ks))
	for _, k := range ks {
		if _, ok := indexes[primaryKey{k.PK, k.SK}]; !ok {
			indexes[primaryKey{k.PK, k.SK}] = len(distinct)
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
	chunks := (len(distinct) + MaxBatchKeys - 1) / MaxBatchKeys
	found := make([][]model.Reader, chunks)
	err := Parallel(ctx, chunks, MaxParallel, func(ctx context.Context, i int) (err error) {
		found[i], err = t.getBatch(ctx, p, distinct[i*MaxBatchKeys:min((i+1)*MaxBatchKeys, len(distinct))])
		return err
	})
	if err != nil {
		return nil, err
	}
	records := make([]model.Reader, len(distinct))
	for _, chunk := range found {
		for _, r := range chunk {
			if i, ok := indexes[primaryKey{r.Text(model.AttrPK), r.Text(model.AttrSK)}]; ok {
				records[i] = r
			}
		}
	}
	if len(distinct) == len(ks) {
		return records, nil
	}
	out := make([]model.Reader, len(ks))
	for i, k := range ks {
		out[i] = records[indexes[primaryKey{k.PK, k.SK}]]
	}
	return out, nil
}

// primaryKey is a primary key in a form that can be a map key.
type primaryKey struct{ pk, sk string }

// getBatch sends a BatchGetItem request. If DynamoDB leaves some of the keys unprocessed, getBatch
// sends further requests for these keys, until all keys have been processed.
func (t *Table) getBatch(ctx context.Context, p *model.AccessPattern, ks []model.Keys) ([]model.Reader, error) {
	var found []model.Reader
	pending := ks
	for attempt := 0; len(pending) > 0; attempt++ {
		if err := BackOff(ctx, attempt); err != nil {
			return nil, WrapError("BatchGetItem", describeRedacted(ks), err)
		}
		a, err := t.measuredBatch(ctx, p, pending)
		if err != nil {
			return nil, WrapError("BatchGetItem", describeRedacted(ks), err)
		}
		if attempt == 0 {
			found = a.Records
		} else {
			found = append(found, a.Records...)
		}
		if pending = a.unprocessed; len(pending) > 0 {
			if err := t.Guard.RecordUnprocessed(ctx); err != nil {
				return nil, WrapError("BatchGetItem", describeRedacted(ks), err)
			}
		}
	}
	return found, nil
}

// measuredBatch calls batchGetItem and measures the request for traces and metrics.
func (t *Table) measuredBatch(ctx context.Context, p *model.AccessPattern, ks []model.Keys) (readResult, error) {
	ctx, timer := trace.StartTimer(ctx, t.observer, trace.Target{Pattern: p.ID, Operation: "BatchGetItem"})
	a, err := t.batchGetItem(ctx, ks, timer.Enabled())
	if err != nil {
		timer.Stop(ctx, trace.Request{}, err)
		return a, err
	}
	if timer.Enabled() {
		processed := len(ks) - len(a.unprocessed)
		r := trace.Request{Items: len(a.Records), ReadUnits: t.readUnits(model.BatchGetUnits(a.Records, processed), processed, a)}
		if timer.NeedsKey() {
			describeBatch(&r, ks)
		}
		timer.Stop(ctx, r, nil)
	}
	return a, nil
}

// batchGetItem sends one BatchGetItem request. If reportCapacity is true, the result contains the
// consumed capacity. The errors are ErrReadBudgetExceeded, attempt.ErrBreakerOpen and the errors of
// the AWS SDK.
func (t *Table) batchGetItem(ctx context.Context, ks []model.Keys, reportCapacity bool) (readResult, error) {
	db, options := t.Client, keepClientOptions
	if t.fastPath != nil {
		body, ok := batchGetBody(t.readOptions(reportCapacity), ks)
		a, fallback, err := t.tryFastPath(ctx, t.fastPath.targets.batchGetItem, body, ok, len(ks))
		if a != nil || err != nil {
			return *a, err
		}
		db, options = fallback.client, fallback.options
	}
	t.stats.fallbacks.Add(1)
	keys := make([]map[string]types.AttributeValue, len(ks))
	for i, k := range ks {
		keys[i] = k.Attributes()
	}
	out, err := db.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{
		RequestItems:           map[string]types.KeysAndAttributes{t.Name: {Keys: keys, ConsistentRead: t.consistentReadParameter()}},
		ReturnConsumedCapacity: returnConsumedCapacityParameter(reportCapacity),
	}, options)
	if err != nil {
		return readResult{}, err
	}
	a := readResult{Records: newReaders(out.Responses[t.Name])}
	for _, k := range out.UnprocessedKeys[t.Name].Keys {
		a.unprocessed = append(a.unprocessed, model.KeyOf(k))
	}
	for i := range out.ConsumedCapacity {
		a.addConsumedCapacity(&out.ConsumedCapacity[i])
	}
	return a, nil
}

// addConsumedCapacity adds the consumed capacity to a. If DynamoDB reported no capacity, consumed
// is nil.
func (a *readResult) addConsumedCapacity(consumed *types.ConsumedCapacity) {
	if consumed != nil {
		a.units, a.unitsReported = a.units+aws.ToFloat64(consumed.CapacityUnits), true
		a.transactionReads += aws.ToFloat64(consumed.ReadCapacityUnits)
	}
}

// newReaders converts records in the types of the AWS SDK to Readers.
func newReaders(records []map[string]types.AttributeValue) []model.Reader {
	all := make([]model.Reader, len(records))
	for i, r := range records {
		all[i] = model.Reader{Record: r}
	}
	return all
}

// BackOff waits for a random time before a retry. The maximum time doubles with each retry, from
// about 25 ms to 1 s. Before the first attempt, retry is 0. If the context ends, BackOff returns the
// context's error.
func BackOff(ctx context.Context, retry int) error {
	if retry == 0 {
		return nil
	}
	maximum := min(25*time.Millisecond<<min(retry-1, 6), time.Second)
	return Sleep(ctx, attempt.RandomN(maximum)+time.Millisecond)
}

// Sleep waits for the duration d. If the context ends during this time, it returns the context's
// error.
func Sleep(ctx context.Context, d time.Duration) error {
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
