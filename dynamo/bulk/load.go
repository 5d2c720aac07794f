package bulk

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// writeBatchSize is how many records one BatchWriteItem can have.
const writeBatchSize = 25

// Load writes a book, replacing records of the same keys and leaving all others as they are. It is
// no transaction: where it fails, a part may have been written, and loading the same book again
// mends that. It returns how many records it wrote.
//
// Errors: commerce.InvalidError for a value that can be in no key, before anything is written;
// ErrUnavailable, ErrNoTable, ErrAccessDenied.
func (t Transfers) Load(ctx context.Context, book commerce.Book) (int, error) {
	records, err := t.recordsOf(book)
	if err != nil {
		return 0, err
	}
	counts, categories, lists := loadedCounts{t: t}, t.newLoadedCategories(), t.newLoadedLists()
	if err := lists.add(ctx, book); err != nil {
		return 0, err
	}
	if err := counts.add(ctx, book); err != nil {
		return 0, err
	}
	if err := categories.add(ctx, book); err != nil {
		return 0, err
	}
	if err := t.putAll(ctx, records); err != nil {
		return len(records), err
	}
	n, err := t.finish(ctx, &counts, categories, lists)
	return len(records) + n, err
}

// finish writes the numbers of orders and of products that follow from what was loaded. It returns
// how many records they take.
func (t Transfers) finish(ctx context.Context, counts *loadedCounts, categories *loadedCategories, lists *loadedLists) (int, error) {
	orders, err := counts.finish(ctx)
	if err != nil {
		return 0, err
	}
	products, err := categories.write(ctx)
	if err != nil {
		return orders, err
	}
	reps, err := lists.write(ctx)
	return orders + products + reps, err
}

// recordsOf are all records of a book.
//
// Errors: commerce.InvalidError for a value that can be in no key.
func (t Transfers) recordsOf(book commerce.Book) ([]model.Record, error) {
	b := t.table.KeyBuilder()
	var records []model.Record
	for _, e := range book.Employees {
		records = append(records, model.Records(b, &e)...)
	}
	for _, w := range book.Warehouses {
		records = append(records, model.Records(b, &w)...)
	}
	for _, p := range book.Products {
		p.OrderCount = nil // see loadedLists
		records = append(records, model.Records(b, &p)...)
	}
	for _, l := range book.Levels {
		records = append(records, model.Records(b, &l)...)
	}
	for _, c := range book.Customers {
		records = append(records, model.CustomerRecords(b, c)...)
	}
	for _, s := range book.Spending {
		records = append(records, model.SpendingRecord(b, s))
	}
	for _, o := range book.Orders {
		records = append(records, model.OrderRecords(b, o.Order, o.Lines, o.Events)...)
	}
	return records, b.Err
}

// Loaded is how far LoadAll is.
type Loaded struct {
	// Orders is how many orders are in the table of those that came first: with all of their
	// records, and with all before them.
	Orders int
	// Records is how many records were written, those of later orders included.
	Records int
}

// LoadAll writes books as they come, several at once, as Load does: it holds a few of them, however
// many there are. It tells progress, where it is set, how far it is; one call at a time. What it
// returns is right where it fails, too. Throttles are waited for, for about a minute each.
//
// Errors: those of Load; the context's.
func (t Transfers) LoadAll(ctx context.Context, books iter.Seq[commerce.Book], progress func(Loaded)) (Loaded, error) {
	counts := loadedCounts{t: t}
	next, stop := iter.Pull(books)
	defer stop()
	l, categories, lists := loading{next: next, waiting: map[int]int{}, progress: progress}, t.newLoadedCategories(), t.newLoadedLists()
	err := table.Parallel(ctx, table.MaxParallel, table.MaxParallel, func(ctx context.Context, _ int) error {
		for ctx.Err() == nil {
			place, book, ok := l.take()
			if !ok {
				return nil
			}
			records, err := t.recordsOf(book)
			if err != nil {
				return err
			}
			if err := lists.add(ctx, book); err != nil {
				return err
			}
			if err := counts.add(ctx, book); err != nil {
				return err
			}
			if err := categories.add(ctx, book); err != nil {
				return err
			}
			for batch := range slices.Chunk(records, writeBatchSize) {
				if err := t.putBatch(ctx, batch); err != nil {
					return err
				}
			}
			l.loaded(place, len(book.Orders), len(records))
		}
		return ctx.Err()
	})
	if err != nil {
		return l.done, err
	}
	n, err := t.finish(ctx, &counts, categories, lists)
	l.done.Records += n
	return l.done, err
}

// loading is what those share who load books.
type loading struct {
	mu   sync.Mutex
	next func() (commerce.Book, bool)
	// taken is how many books were taken, finished how many of the first of these are in the table.
	taken, finished int
	// waiting are the numbers of orders of books that are in the table, by their places, while one
	// before them is not.
	waiting  map[int]int
	done     Loaded
	progress func(Loaded)
}

// take returns the next book and its place.
func (l *loading) take() (int, commerce.Book, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	book, ok := l.next()
	l.taken++
	return l.taken - 1, book, ok
}

// loaded notes that a book is in the table.
func (l *loading) loaded(place, orders, records int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting[place] = orders
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

// putAll writes records, many at once.
func (t Transfers) putAll(ctx context.Context, records []model.Record) error {
	batches := (len(records) + writeBatchSize - 1) / writeBatchSize
	if batches == 0 {
		return nil
	}
	return table.Parallel(ctx, batches, table.MaxParallel, func(ctx context.Context, i int) error {
		return t.putBatch(ctx, records[i*writeBatchSize:min((i+1)*writeBatchSize, len(records))])
	})
}

// putBatch is one BatchWriteItem, repeated for the records that DynamoDB leaves unprocessed.
func (t Transfers) putBatch(ctx context.Context, records []model.Record) error {
	left := make([]types.WriteRequest, len(records))
	for i, r := range records {
		left[i] = types.WriteRequest{PutRequest: &types.PutRequest{Item: r}}
	}
	for attempt := 0; len(left) > 0; attempt++ {
		subject := fmt.Sprintf("of %d records", len(left))
		if err := table.BackOff(ctx, attempt); err != nil {
			return table.Failed("BatchWriteItem", subject, err)
		}
		out, err := t.table.Client.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{t.table.Name: left}}, t.table.Bulk)
		if err != nil {
			return table.Failed("BatchWriteItem", subject, err)
		}
		left = out.UnprocessedItems[t.table.Name]
	}
	return nil
}
