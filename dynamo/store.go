package dynamo

import (
	"cmp"
	"context"
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

// Options contains the name and the layout of a table, and the dependencies of a Store, such as its
// clock.
type Options struct {
	// Table is the table's name.
	Table string
	// Shards is the number of partition keys over which each busy list is spread. The maximum is
	// model.MaxShards. 0 means 1.
	Shards int
	// ElectroDB contains the names and versions of the entities in ElectroDB. By default, the records
	// do not contain them.
	ElectroDB model.ElectroDB
	// Currency is the currency of records that do not specify a currency. The default is USD.
	Currency commerce.Currency
	// Clock returns the current time, which is written to records. The default is the system clock. If
	// Clock and the clock of DynamoDB differ by more than table.MaxClockDifference, the Store rejects
	// all writes.
	Clock func() time.Time
	// Log receives a message when Clock starts to differ too much from the clock of DynamoDB, when the
	// clocks agree again, and when a list or number becomes readable or unreadable. By default, the
	// messages are discarded.
	Log *slog.Logger
	// Attempts configures the circuit breaker, the retry budget and the functions that are called
	// after failed attempts. By default, the circuit breaker is disabled. New ignores the field
	// Attempts.Log and uses Log instead.
	Attempts attempt.GuardOptions
	// Entropy is the source of random bytes for new IDs. The default is crypto/rand. The reader must
	// be safe for concurrent use.
	Entropy io.Reader
	// Observer is notified of each DynamoDB request that the Store or its change feed sends for a
	// GraphQL operation. If an Observer is set, these requests also ask DynamoDB for the consumed
	// capacity.
	Observer trace.Observer
	// Reservations limits what a customer can reserve with its own requests. By default, there is no
	// limit.
	Reservations commerce.ReservationLimits
	// OrderExpiry is the time after which an order expires if its request contains no other time. By
	// default, orders do not expire.
	OrderExpiry time.Duration
	// WebhookKeys encrypts the secrets of webhooks. Without it, no webhooks can be created.
	WebhookKeys *change.WebhookKeys
}

// Store reads and writes the order book in one table. It is safe for concurrent use. It does not
// cache records.
type Store struct {
	table *table.Table
	opts  Options
	change.Mutations
	check.Checker
	bulk.Transfers
}

// newStore returns a Store for a table.
func newStore(t *table.Table, opts Options) *Store {
	return &Store{t, opts, change.NewMutations(t, opts.Reservations, opts.OrderExpiry, opts.WebhookKeys), check.NewChecker(t), bulk.NewTransfers(t)}
}

// New returns a Store for the table opts.Table, which it accesses through db. New sends no request.
//
// New returns an error if opts.Table is empty or opts.Shards is invalid.
func New(db *dynamodb.Client, opts Options) (*Store, error) {
	if opts.Table == "" {
		return nil, fmt.Errorf("open order book: Options.Table is empty")
	}
	if opts.Shards < 0 || opts.Shards > model.MaxShards {
		return nil, fmt.Errorf("open order book: Options.Shards is %d, but must be from 1 to %d", opts.Shards, model.MaxShards)
	}
	t := table.Open(db, opts.Table, table.Options{
		Codec:    model.Codec{Currency: cmp.Or(opts.Currency, "USD"), Layout: model.NewCurrentLayout(model.OneEra(opts.Shards)), ElectroDB: opts.ElectroDB},
		IDSource: model.IDSource{Clock: opts.Clock, Entropy: opts.Entropy}, Log: opts.Log, Observer: opts.Observer, Attempts: opts.Attempts,
	})
	return newStore(t, opts), nil
}

// Consistent returns a Store for the same table with strongly consistent reads, which cost twice as
// much. Reads of the index remain eventually consistent.
func (s *Store) Consistent() *Store { return newStore(s.table.Consistent(), s.opts) }

// DefaultCurrency returns the currency of records that do not specify a currency.
func (s *Store) DefaultCurrency() commerce.Currency { return s.table.Currency }

// FastPathDisabledBy describes the DynamoDB client setting that disables the fast path. If the fast
// path is enabled, the result is empty. The fast path sends requests without most of the AWS SDK.
func (s *Store) FastPathDisabledBy() string { return s.table.FallbackReason }

// Stats returns the counters of the Store. The Store that Consistent returns has the same counters.
func (s *Store) Stats() *table.Stats { return s.table.Stats() }

// ClockDifference returns the time of the local clock minus the time of the clock of DynamoDB. If
// the clocks differ by at most table.MaxClockDifference, it returns 0.
func (s *Store) ClockDifference() time.Duration { return s.table.ClockDifference() }

// AttemptGuard returns the Guard of the Store. The Guard counts the attempts to send DynamoDB
// requests, and contains the circuit breaker.
func (s *Store) AttemptGuard() *attempt.Guard { return s.table.Guard }

// OpenFeed returns the change feed of the table. The feed does not read from DynamoDB until the
// first subscription starts.
func (s *Store) OpenFeed(source feed.Source, opts feed.Options) *feed.Feed {
	return feed.Open(s.table, source, opts)
}

// Changes is feed.Feed.Changes.
func (s *Store) Changes(ctx context.Context, after, until commerce.EventID, limit int) ([]*commerce.Event, commerce.EventID, error) {
	return s.history().Changes(ctx, after, until, limit)
}

// ChangesSince is feed.Feed.ChangesSince.
func (s *Store) ChangesSince(ctx context.Context) (time.Time, error) {
	return s.history().ChangesSince(ctx)
}

// OrderTimeline is feed.Feed.OrderTimeline.
func (s *Store) OrderTimeline(ctx context.Context, order commerce.OrderID, last commerce.EventID, limit int) ([]*commerce.Event, commerce.EventID, error) {
	return s.history().OrderTimeline(ctx, order, last, limit)
}

// history returns a feed that reads past events, but never subscribes to new ones.
func (s *Store) history() *feed.Feed { return s.OpenFeed(nil, feed.Options{Log: s.opts.Log}) }

// Now returns the time of the clock whose time is written to records.
func (s *Store) Now() time.Time { return s.table.Now() }

// Ping checks that DynamoDB responds. To save cost, it reads a record that does not exist.
//
// Errors: table.ClockError (the local clock and DynamoDB's clock differ too much),
// table.ErrUnavailable, table.ErrNoTable and table.ErrAccessDenied.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.table.FollowLayout(ctx); err != nil {
		return err
	}
	return s.table.ClockErr()
}
