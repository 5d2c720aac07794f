package table

import (
	"io"
	"log/slog"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/dynamo/model"
)

// Table reads and writes the records of one DynamoDB table. It is safe for concurrent use and
// caches no records.
type Table struct {
	model.Codec
	Name string
	// Client is the SDK client. It charges reads to the ReadBudget of their context. Its writes fail
	// with a ClockError while the clocks differ.
	Client *dynamodb.Client
	// fastPath is the fast path. If the client has a setting that only the SDK supports, it is nil and
	// Fallback names the setting.
	fastPath       *fastPath
	FallbackReason string
	clock          func() time.Time
	// watch compares clock with DynamoDB's clock.
	watch   *clockWatch
	entropy io.Reader
	// consistent selects strongly consistent reads. Reads of an index are eventually consistent in
	// any case.
	consistent bool
	// writeOptions are the SDK options of transactions: retry up to maxWriteAttempts times. Bulk are
	// the options for checks, exports and imports, which retry for longer than a server can wait.
	writeOptions, BulkOptions func(*dynamodb.Options)
}

// OpenTable returns a table that uses the client db. It sends no request. The clock dates new
// records. The log gets a line when the clock begins to differ from DynamoDB's, and when they agree
// again. entropy is the random source of new IDs.
func OpenTable(db *dynamodb.Client, name string, codec model.Codec, clock func() time.Time, entropy io.Reader, log *slog.Logger) *Table {
	t := &Table{Codec: codec, Name: name, clock: clock, entropy: entropy}
	watched, watch := watchClock(db, clock, clockLogger(log))
	t.watch = watch
	t.fastPath, t.FallbackReason = newFastPath(db, watched)
	t.Client = withClockCheck(withReadBudget(watched), watch)
	t.writeOptions, t.BulkOptions = withMaxAttempts(maxWriteAttempts), withMaxAttempts(maxBulkAttempts)
	return t
}

// Consistent returns a copy of the table that makes strongly consistent reads.
func (t *Table) Consistent() *Table {
	consistent := *t
	consistent.consistent = true
	return &consistent
}
