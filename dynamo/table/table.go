package table

import (
	"io"
	"log/slog"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/dynamo/model"
)

// Table is one DynamoDB table, and the requests on its records. It is safe for concurrent use and
// keeps nothing between calls.
type Table struct {
	model.Codec
	// Name is the table's name.
	Name string
	// Client is the SDK's client. Its reads are on the budgets of their contexts, and its writes fail
	// while the clocks differ.
	Client *dynamodb.Client
	// wire is the fast path. It is nil where the client's settings leave all requests to the SDK,
	// and fallback says which setting does.
	wire     *wire
	Fallback string
	clock    func() time.Time
	// watch compares clock with DynamoDB's.
	watch   *clockWatch
	entropy io.Reader
	// consistent requests that reads of the table see every write that was answered before.
	consistent bool
	// writing are the SDK's options of a transaction: it is repeated until it passes or the context
	// ends. bulk are those of checks, exports and imports: their requests are repeated for longer
	// than a server could wait.
	writing, Bulk func(*dynamodb.Options)
}

// OpenTable returns a table, read through db. It makes no request. The clock dates what is written;
// log gets a line when it begins to differ from DynamoDB's, and when it agrees again. entropy makes
// new IDs unguessable.
func OpenTable(db *dynamodb.Client, name string, codec model.Codec, clock func() time.Time, entropy io.Reader, log *slog.Logger) *Table {
	t := &Table{Codec: codec, Name: name, clock: clock, entropy: entropy}
	watched, watch := watchClock(db, clock, logClock(log))
	t.watch = watch
	t.wire, t.Fallback = newWire(db, watched)
	t.Client = refuseWrites(budgeted(watched), watch)
	t.writing, t.Bulk = persistently(maxWriteAttempts), persistently(maxBulkAttempts)
	return t
}

// Strong returns the same table, whose reads see every write that was answered before.
func (t *Table) Strong() *Table {
	c := *t
	c.consistent = true
	return &c
}
