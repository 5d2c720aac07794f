package dynamo

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/bulk"
	"github.com/ordergraph/ordergraph/dynamo/change"
	"github.com/ordergraph/ordergraph/dynamo/check"
	"github.com/ordergraph/ordergraph/dynamo/feed"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// Options describe the layout of a table and the dependencies of a Store.
type Options struct {
	// Table is the table's name.
	Table string
	// Shards is the number of partition keys that each busy list is spread over, from 1 to MaxShards.
	// 0 means 1.
	Shards int
	// Currency is the currency of records that name none. The default is USD.
	Currency commerce.Currency
	// Clock returns the time that is written to records. The default is the system clock. The Store
	// writes nothing while the clock differs from DynamoDB's.
	Clock func() time.Time
	// Log receives a line when the clock starts to differ from DynamoDB's, and when it agrees again.
	// The default discards these lines.
	Log *slog.Logger
	// Entropy makes new IDs unguessable. The default is crypto/rand. It must be safe for concurrent
	// use.
	Entropy io.Reader
}

// Store is the order book in a table. It is safe for concurrent use and has no state between calls.
type Store struct {
	table *table.Table
	change.Mutations
	check.Checker
	bulk.Transfers
}

// newStore returns the order book in a table.
func newStore(t *table.Table) *Store {
	return &Store{t, change.NewMutations(t), check.NewChecker(t), bulk.NewTransfers(t)}
}

// New returns the order book in the table opts.Table, read through db. It makes no request.
//
// It returns an error if opts name no table or have an invalid number of shards.
func New(db *dynamodb.Client, opts Options) (*Store, error) {
	if opts.Table == "" {
		return nil, fmt.Errorf("open order book: Options.Table is empty")
	}
	if opts.Shards < 0 || opts.Shards > model.MaxShards {
		return nil, fmt.Errorf("open order book: %d shards: the number must be from 1 to %d", opts.Shards, model.MaxShards)
	}
	if opts.Clock == nil {
		opts.Clock = time.Now
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if opts.Entropy == nil {
		opts.Entropy = rand.Reader
	}
	codec := model.Codec{Currency: cmp.Or(opts.Currency, "USD"), Shards: max(1, opts.Shards)}
	return newStore(table.OpenTable(db, opts.Table, codec, opts.Clock, opts.Entropy, opts.Log)), nil
}

// Consistent returns the same order book with strongly consistent reads. Reads of the table cost
// twice as much. Lists that are read from the index remain eventually consistent, because DynamoDB
// has no consistent reads of an index.
func (s *Store) Consistent() *Store { return newStore(s.table.Consistent()) }

// Currency is the currency of records that name none.
func (s *Store) Currency() commerce.Currency { return s.table.Currency }

// FastPathDisabledBy returns the client setting that disables the fast path, so that the AWS SDK
// makes all requests. It returns an empty string if the fast path is used.
func (s *Store) FastPathDisabledBy() string { return s.table.FallbackReason }

// OpenFeed returns the change feed of the table. The feed reads nothing before the first
// subscription.
func (s *Store) OpenFeed(source feed.Source, opts feed.Options) *feed.Feed {
	return feed.Open(s.table, source, opts)
}

// Ping makes the cheapest possible read and compares the clock with DynamoDB's.
//
// Errors: ClockError if the clocks differ, ErrUnavailable, ErrNoTable, ErrAccessDenied.
func (s *Store) Ping(ctx context.Context) error {
	_, err := s.table.Client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &s.table.Name, Key: model.Keys{PK: model.EntityWarehouse.Name, SK: model.EntityWarehouse.Name}.Attributes()})
	if err != nil {
		return table.WrapError("GetItem", "of no record", err)
	}
	return s.table.ClockErr()
}
