package bulk

import (
	"context"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// writeBatchSize is the maximum number of records in one BatchWriteItem request.
const writeBatchSize = 25

// Load writes or replaces the records of a dataset and returns their number. After an error, repeat
// Load, because only some records may have been written.
//
// Errors: commerce.InvalidError for an invalid key; table.ErrUnavailable, table.ErrNoTable,
// table.ErrAccessDenied.
func (t Transfers) Load(ctx context.Context, dataset commerce.Dataset) (int, error) {
	totals := t.newLoadTotals()
	records, err := totals.prepareRecords(ctx, dataset)
	if err != nil {
		return 0, err
	}
	last, err := t.lastEvents(ctx, dataset)
	if err != nil {
		return 0, err
	}
	records = append(records, last...)
	if err := t.putAll(ctx, records); err != nil {
		return len(records), err
	}
	n, err := totals.write(ctx)
	return len(records) + n, err
}

// prepareRecords adds the orders and products of a dataset, and returns all its records without the
// numbers that write adds to them.
//
// Errors: the errors of datasetRecords and add.
func (l *loadTotals) prepareRecords(ctx context.Context, dataset commerce.Dataset) ([]model.Record, error) {
	records, err := l.datasetRecords(dataset)
	if err != nil {
		return nil, err
	}
	return records, l.add(ctx, dataset, records)
}

// lastEvents returns the records with the last events of the dataset's customers. It omits customers
// whose stored last event is at least as new.
//
// Errors: table.ErrUnavailable, table.ErrNoTable, table.ErrAccessDenied.
func (t Transfers) lastEvents(ctx context.Context, dataset commerce.Dataset) ([]model.Record, error) {
	last := map[commerce.CustomerID]commerce.Event{}
	for _, o := range dataset.Orders {
		for _, e := range o.Events {
			if t.table.EventPosition(e.ID) > last[o.CustomerID].ID {
				last[o.CustomerID] = e
			}
		}
	}
	var customers []commerce.CustomerID
	var keys []model.Keys
	b := t.table.KeyBuilder()
	for _, c := range dataset.Customers {
		if _, ok := last[c.ID]; ok {
			customers, keys = append(customers, c.ID), append(keys, model.LastEvent.Key(b, c.ID))
		}
	}
	stored, err := t.table.Consistent().GetMany(ctx, &model.LastEvent.AccessPattern, keys)
	if err != nil {
		return nil, err
	}
	var records []model.Record
	for i, id := range customers {
		if model.LastEventID(stored[i].Record) < last[id].ID {
			records = append(records, model.LastEventRecord(b, id, last[id]))
		}
	}
	return records, b.Err
}

// datasetRecords returns all records of a dataset.
//
// Errors: commerce.InvalidError for a value that is not valid in a key.
func (t Transfers) datasetRecords(dataset commerce.Dataset) ([]model.Record, error) {
	b := t.table.KeyBuilder()
	var records []model.Record
	for _, values := range reflect.ValueOf(dataset).Fields() {
		for i := range values.Len() {
			switch v := values.Index(i).Addr().Interface().(type) {
			case *commerce.Customer:
				records = append(records, model.CustomerRecords(b, *v)...)
			case *commerce.OrderWithItems:
				records = append(records, model.OrderRecords(b, v.Order, v.Lines, v.Events)...)
				for i := range v.Payments {
					records = append(records, model.EncodeWithEdges(b, &v.Payments[i])...)
				}
				for i := range v.Returns {
					records = append(records, model.EncodeWithEdges(b, &v.Returns[i])...)
				}
				for i := range v.Fulfillments {
					records = append(records, model.EncodeWithEdges(b, &v.Fulfillments[i])...)
				}
			default:
				records = append(records, model.EncodeWithEdges(b, v)...)
			}
		}
	}
	return records, b.Err
}

// LoadProgress describes how much LoadAll has loaded so far.
type LoadProgress struct {
	// Orders is the number of loaded orders before the first dataset that is not completely loaded.
	// Orders of later datasets are not counted, even if they are loaded.
	Orders int
	// Records is the number of records in all completely loaded datasets. After the load, it also
	// includes the records with counts.
	Records int
}

// LoadAll loads several datasets at the same time. It calls progress after each dataset, never
// concurrently. The returned LoadProgress is valid even after an error.
//
// Errors: the errors of Load; the context's error.
func (t Transfers) LoadAll(ctx context.Context, datasets iter.Seq[commerce.Dataset], progress func(LoadProgress)) (LoadProgress, error) {
	next, stop := iter.Pull(datasets)
	defer stop()
	l, totals := loadState{next: next, waiting: map[int]int{}, progress: progress}, t.newLoadTotals()
	err := table.Parallel(ctx, table.MaxParallel, table.MaxParallel, func(ctx context.Context, _ int) error {
		for ctx.Err() == nil {
			index, dataset, ok := l.nextDataset()
			if !ok {
				return nil
			}
			records, err := totals.prepareRecords(ctx, dataset)
			if err != nil {
				return err
			}
			for batch := range slices.Chunk(records, writeBatchSize) {
				if err := t.putBatch(ctx, batch); err != nil {
					return err
				}
			}
			l.markLoaded(index, len(dataset.Orders), len(records))
		}
		return ctx.Err()
	})
	if err != nil {
		return l.done, err
	}
	n, err := totals.write(ctx)
	l.done.Records += n
	return l.done, err
}

// loadState is the state that the goroutines of LoadAll share.
type loadState struct {
	mu   sync.Mutex
	next func() (commerce.Dataset, bool)
	// taken is the number of calls of next. finished is the number of loaded datasets before the first
	// dataset that is not loaded yet.
	taken, finished int
	// waiting maps the index of a dataset to its number of orders. It contains the loaded datasets
	// that follow a dataset that is not loaded yet.
	waiting  map[int]int
	done     LoadProgress
	progress func(LoadProgress)
}

// nextDataset returns the next dataset and its index. It returns false if there are no more
// datasets.
func (l *loadState) nextDataset() (int, commerce.Dataset, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	dataset, ok := l.next()
	l.taken++
	return l.taken - 1, dataset, ok
}

// markLoaded records that all records of a dataset have been written, and reports the progress.
func (l *loadState) markLoaded(index, orders, records int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting[index] = orders
	l.done.Records += records
	for {
		orders, ok := l.waiting[l.finished]
		if !ok {
			break
		}
		delete(l.waiting, l.finished)
		l.finished++
		l.done.Orders += orders
	}
	if l.progress != nil {
		l.progress(l.done)
	}
}

// putAll writes records in batches, with concurrent requests.
func (t Transfers) putAll(ctx context.Context, records []model.Record) error {
	batches := slices.Collect(slices.Chunk(records, writeBatchSize))
	return table.Parallel(ctx, len(batches), table.MaxParallel, func(ctx context.Context, i int) error {
		return t.putBatch(ctx, batches[i])
	})
}

// putBatch writes records with a BatchWriteItem request. If DynamoDB leaves some records
// unprocessed, putBatch sends another request for them.
func (t Transfers) putBatch(ctx context.Context, records []model.Record) error {
	left := make([]types.WriteRequest, len(records))
	for i, r := range records {
		left[i] = types.WriteRequest{PutRequest: &types.PutRequest{Item: r}}
	}
	for attempt := 0; len(left) > 0; attempt++ {
		subject := fmt.Sprintf("of %d records", len(left))
		if err := table.BackOff(ctx, attempt); err != nil {
			return table.WrapError("BatchWriteItem", subject, err)
		}
		out, err := t.table.Client.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{t.table.Name: left}}, t.table.BulkOptions)
		if err != nil {
			return table.WrapError("BatchWriteItem", subject, err)
		}
		left = out.UnprocessedItems[t.table.Name]
	}
	return nil
}
