package table

import (
	"io"
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
	Name string
	// Client is the SDK client. It charges each read to the ReadBudget in the context of the read. Its
	// writes fail with a ClockError while the clocks differ.
	Client *dynamodb.Client
	// fastPath is nil if the client has a setting that only the AWS SDK supports. In that case,
	// FallbackReason describes the setting.
	fastPath       *fastPath
	FallbackReason string
	clock          func() time.Time
	// watch compares the local clock with DynamoDB's clock.
	watch   *clockWatch
	entropy io.Reader
	// observer is notified of all requests. It is nil if the table has no Observer.
	observer trace.Observer
	stats    *Stats
	// consistent selects strongly consistent reads. Reads of the index are always eventually
	// consistent.
	consistent bool
	// Guard limits and counts the attempts of all requests.
	Guard *attempt.Guard
	// writeOptions are the SDK options of transactions. BulkOptions are the SDK options of checks,
	// exports and imports.
	writeOptions, BulkOptions func(*dynamodb.Options)
}

// OpenTable returns a Table that uses the client db. It sends no request. clock provides the times
// of new records, and entropy provides the random bytes of new IDs. A message is logged when clock
// starts to differ from DynamoDB's clock, and when the clocks agree again. If observer is not nil,
// it is notified of all requests, and all requests ask DynamoDB for the consumed capacity. guard
// limits the attempts of all requests.
func OpenTable(db *dynamodb.Client, name string, codec model.Codec, clock func() time.Time, entropy io.Reader, log *slog.Logger, observer trace.Observer, guard *attempt.Guard) *Table {
	t := &Table{Codec: codec, Name: name, clock: clock, entropy: entropy, observer: observer, stats: newStats(), Guard: guard}
	watched, watch := watchClock(db, clock, clockLogger(log))
	t.watch = watch
	guarded := guard.Client(watched)
	if t.fastPath, t.FallbackReason = newFastPath(db, guarded, guard); t.fastPath != nil {
		t.fastPath.stats = t.stats
	}
	t.Client = withClockCheck(withReadBudget(guarded), watch)
	t.writeOptions, t.BulkOptions = guard.Transactions(), guard.Bulk()
	return t
}

// Consistent returns a copy of the table that uses strongly consistent reads.
func (t *Table) Consistent() *Table {
	consistent := *t
	consistent.consistent = true
	return &consistent
}
