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
	"github.com/ordergraph/ordergraph/dynamo/attempt"
	"github.com/ordergraph/ordergraph/dynamo/bulk"
	"github.com/ordergraph/ordergraph/dynamo/change"
	"github.com/ordergraph/ordergraph/dynamo/check"
	"github.com/ordergraph/ordergraph/dynamo/feed"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
	"github.com/ordergraph/ordergraph/dynamo/trace"
)

// Options name a table and its layout, and provide the dependencies of a Store, such as its clock.
type Options struct {
	// Table is the table's name.
	Table string
	// Shards is the number of partition keys over which each busy list is spread. It must be from 1 to
	// model.MaxShards. 0 means 1.
	Shards int
	// Currency is the currency of records that do not specify a currency. The default is USD.
	Currency commerce.Currency
	// Clock returns the current time, which is written to records. The default is the system clock.
	// The Store refuses to write while Clock and DynamoDB's clock differ by more than
	// table.MaxClockDifference.
	Clock func() time.Time
	// Log receives a message when Clock starts to differ from DynamoDB's clock, and another message
	// when both clocks agree again. By default, the messages are discarded.
	Log *slog.Logger
	// Attempts configures the circuit breaker, the retry budget and the functions that are called
	// after failed attempts. New sets the field Attempts.Log. By default, the circuit breaker is
	// disabled.
	Attempts attempt.GuardOptions
	// Entropy is the source of random bytes for new IDs. The default is crypto/rand. The reader must
	// be safe for concurrent use.
	Entropy io.Reader
	// Observer is notified of each DynamoDB request that the Store or its change feed sends for a
	// GraphQL operation. These requests then ask DynamoDB for the consumed capacity, too. Without an
	// Observer, they do not.
	Observer trace.Observer
}

// Store reads and writes the order book in one table. It is safe for concurrent use. It keeps no
// records in memory between calls.
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

// New returns a Store that accesses the table opts.Table through db. New sends no request.
//
// New returns an error if opts.Table is empty or opts.Shards is invalid.
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
	opts.Attempts.Log = opts.Log
	return newStore(table.OpenTable(db, opts.Table, codec, opts.Clock, opts.Entropy, opts.Log, opts.Observer, attempt.NewGuard(opts.Attempts))), nil
}

// Consistent returns a Store for the same table that uses strongly consistent reads. Strongly
// consistent reads cost twice as much. Lists that are read from the index remain eventually
// consistent, because DynamoDB has no consistent reads of an index.
func (s *Store) Consistent() *Store { return newStore(s.table.Consistent()) }

// DefaultCurrency returns the currency of records that do not specify a currency.
func (s *Store) DefaultCurrency() commerce.Currency { return s.table.Currency }

// FastPathDisabledBy describes the setting of the DynamoDB client that disables the fast path, so
// that the AWS SDK sends all requests. The result is empty if the fast path is enabled.
func (s *Store) FastPathDisabledBy() string { return s.table.FallbackReason }

// Stats returns the counters of the Store. A Store returned by Consistent shares these counters.
func (s *Store) Stats() *table.Stats { return s.table.Stats() }

// ClockDifference returns the time of the local clock minus the time of DynamoDB's clock. It
// returns 0 if the difference is at most table.MaxClockDifference.
func (s *Store) ClockDifference() time.Duration { return s.table.ClockDifference() }

// AttemptGuard returns the Guard that counts attempts to send DynamoDB requests. The Guard also
// reports the state of the circuit breaker.
func (s *Store) AttemptGuard() *attempt.Guard { return s.table.Guard }

// OpenFeed returns the change feed of the table. The feed does not read from DynamoDB before the
// first subscription.
func (s *Store) OpenFeed(source feed.Source, opts feed.Options) *feed.Feed {
	return feed.Open(s.table, source, opts)
}

// Ping checks that DynamoDB responds. It reads a nonexistent record, because this is the cheapest
// request. It also compares the clock of the Store with DynamoDB's clock.
//
// Errors: ClockError if the clocks differ too much, ErrUnavailable, ErrNoTable, ErrAccessDenied.
func (s *Store) Ping(ctx context.Context) error {
	_, err := s.table.Client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &s.table.Name, Key: model.Keys{PK: model.EntityWarehouse.Name, SK: model.EntityWarehouse.Name}.Attributes()})
	if err != nil {
		return table.WrapError("GetItem", "of no record", err)
	}
	return s.table.ClockErr()
}
