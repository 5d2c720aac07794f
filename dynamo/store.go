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
	table *table.Table
	change.Mutations
	check.Checks
	bulk.Transfers
}

// over returns the order book in a table.
func over(t *table.Table) *Store {
	return &Store{t, change.NewMutations(t), check.NewChecks(t), bulk.NewTransfers(t)}
}

// New returns the order book in the table that opts name, read through db. It makes no request.
//
// Errors: one that says so where opts are out of their limits.
func New(db *dynamodb.Client, opts Options) (*Store, error) {
	if opts.Table == "" {
		return nil, fmt.Errorf("open order book: no table is named")
	}
	if opts.Shards < 0 || opts.Shards > model.MaxShards {
		return nil, fmt.Errorf("open order book: %d shards: a table has 1 to %d", opts.Shards, model.MaxShards)
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
	return over(table.OpenTable(db, opts.Table, codec, opts.Clock, opts.Entropy, opts.Log)), nil
}

// Consistent returns the same order book, read with strong consistency: what was written a moment
// ago is seen. Reads of the table cost twice as much, and lists that are read through the index lag
// behind as ever, as DynamoDB has no consistent reads of an index.
func (s *Store) Consistent() *Store { return over(s.table.Strong()) }

// Currency is the currency of records that name none.
func (s *Store) Currency() commerce.Currency { return s.table.Currency }

// LongWay names the setting of the client that keeps reads and transactions off the fast path, so
// that the AWS SDK makes them all. It is empty where they are on the fast path.
func (s *Store) LongWay() string { return s.table.Fallback }

// OpenFeed returns a feed of the table's changes. It reads nothing before the first subscription.
func (s *Store) OpenFeed(source feed.Source, opts feed.Options) *feed.Feed {
	return feed.Open(s.table, source, opts)
}

// Ping makes the cheapest read there is, and compares the clocks.
//
// Errors: ClockError where the clocks differ, ErrUnavailable, ErrNoTable, ErrAccessDenied.
func (s *Store) Ping(ctx context.Context) error {
	_, err := s.table.Client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &s.table.Name, Key: model.Keys{PK: model.EntityWarehouse.Name, SK: model.EntityWarehouse.Name}.Attributes()})
	if err != nil {
		return table.Failed("GetItem", "of nothing", err)
	}
	return s.table.ClockErr()
}
