package table

import (
	"crypto/rand"
	"log/slog"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/dynamo/attempt"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/trace"
)

// Table reads and writes the records of one DynamoDB table. It is safe for concurrent use. It does
// not cache records.
type Table struct {
	model.Codec
	model.IDSource
	Name string
	// Client is the SDK client. It charges each read to the ReadBudget in the context. If the local
	// clock and DynamoDB's clock differ by more than MaxClockDifference, it rejects writes with a
	// ClockError.
	Client *dynamodb.Client
	// fastPath sends requests without most of the SDK. It is nil if the client has a setting that only
	// the SDK supports. FallbackReason then describes this setting.
	fastPath       *fastPath
	FallbackReason string
	// watch compares the local clock with DynamoDB's clock.
	watch  *clockWatch
	layout *layoutFollower
	// observer is notified of all requests to the table. It may be nil.
	observer trace.Observer
	stats    *Stats
	// If consistent is true, the table's reads are strongly consistent. Reads of the index are always
	// eventually consistent.
	consistent bool
	// Guard limits and counts the attempts of all requests.
	Guard *attempt.Guard
	// writeOptions are the SDK options for transactions. BulkOptions are the SDK options for requests
	// that read or write many records, such as checks, exports and imports.
	writeOptions, BulkOptions func(*dynamodb.Options)
}

// Options are the layout of a table, and the dependencies of a Table. Only Codec has no default.
type Options struct {
	// Codec is the layout of the records.
	Codec model.Codec
	// IDSource has the defaults of the system clock and crypto/rand.
	model.IDSource
	// Log receives a message when Clock and DynamoDB's clock start to differ, when they agree again, and
	// when the state of a derivation changes. By default, the messages are discarded.
	Log *slog.Logger
	// Observer is notified of all requests to the table. It may be nil.
	Observer trace.Observer
	// Attempts configures the limits of attempts. Its field Log is ignored.
	Attempts attempt.GuardOptions
}

// Open returns the table with the given name. It sends its requests through the client db.
func Open(db *dynamodb.Client, name string, opts Options) *Table {
	if opts.Clock == nil {
		opts.Clock = time.Now
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if opts.Entropy == nil {
		opts.Entropy = rand.Reader
	}
	opts.Attempts.Log = opts.Log
	guard := attempt.NewGuard(opts.Attempts)
	t := &Table{Codec: opts.Codec, IDSource: opts.IDSource, Name: name, observer: opts.Observer, stats: newStats(), Guard: guard}
	watched, watch := watchClock(db, opts.Clock, clockLogger(opts.Log))
	t.watch = watch
	guarded := guard.WrapClient(watched)
	if t.fastPath, t.FallbackReason = newFastPath(db, guarded, guard); t.fastPath != nil {
		t.fastPath.stats = t.stats
	}
	t.layout = &layoutFollower{db: guarded, table: name, now: opts.Clock, log: opts.Log, current: opts.Codec.Layout, configured: opts.Codec.Layout.Get(), reading: make(chan struct{}, 1)}
	t.Client = withWriteChecks(withReadBudget(guarded), t.writeErr)
	t.writeOptions, t.BulkOptions = guard.TransactionOptions(), guard.BulkOptions()
	return t
}

// Consistent returns a copy of the table that uses strongly consistent reads.
func (t *Table) Consistent() *Table {
	consistent := *t
	consistent.consistent = true
	return &consistent
}
