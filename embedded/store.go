// Package embedded implements DynamoDB on bbolt, an ordered key-value store in one file. It accepts
// requests in DynamoDB's JSON protocol: from the AWS SDK in the same process (Client), or over HTTP
// (ServeHTTP).
//
// The package uses the packages in its directory internal, and no other packages of this module:
//   - wire decodes requests, and encodes responses and errors.
//   - attr implements attribute values.
//   - expr parses and evaluates expressions.
//   - schema contains the definitions of tables.
//   - file stores keys and values in a file. It detects damage, and finds out whether a commit is
//     durable.
//   - storage stores items, and defines the buckets of a table.
//   - read executes reads.
//   - stream implements DynamoDB Streams.
//   - capacity computes the consumed capacity units.
//   - throttle enforces the throughput limits of partitions.
//
// # Layout of the file
//
// Each value begins with a checksum. Every table has a bucket, which contains these buckets:
//   - items contains the items. A key is a hash of the partition key, followed by the sort key. The
//     value is the item's size and JSON. The keys of an item collection are neighbors, and sort
//     like the sort key values. Each segment of a Scan is a range of values for the first byte of a
//     key. Items that were created at about the same time are often neighbors.
//   - Each index has a bucket. A key is the item's key in the index, followed by a hash of the
//     item's key in the table. The value is the item's key in the table.
//   - expiry contains the times to live in ascending order.
//
// Four buckets belong to the complete store:
//   - format contains the version of the file's layout.
//   - tables contains the definitions of the tables.
//   - streams contains the stream records of the last 24 hours.
//   - tokens contains the ClientRequestToken values of the last ten minutes.
//
// # Concurrency
//
// A read sees a snapshot of the file. Reads do not wait for writes, and writes do not wait for
// reads. There are two exceptions: if the file grows beyond its memory mapping, the write waits for
// all running reads, and new reads wait for the write. And a strongly consistent read waits for the
// sync of the commit that it sees. Writes that arrive during a commit wait for its end. They then
// share the next commit.
//
// # Failed commits
//
// If a commit fails, its requests get an InternalServerError, whose message says either that nothing
// was written, or that the outcome is unknown. After an unknown outcome, writes and strongly
// consistent reads fail until the disk confirms the commit. Then its changes are observed, as after
// any other commit. Package file describes how.
//
// # Differences from DynamoDB
//
// The engine differs from DynamoDB in these points:
//   - New tables and indexes are active immediately.
//   - Every read is strongly consistent.
//   - The engine throttles requests only if Options.Throttle is set.
//   - PartiQL, legacy parameters, tags and backups are not supported.
//   - An item collection has no maximum size. Its estimated size is always 0 to 1 GB.
//   - A stream has one shard.
//   - Expired items are deleted every ten minutes, or at the interval in Options.
package embedded

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/uuid"

	"github.com/ordergraph/ordergraph/embedded/internal/file"
	"github.com/ordergraph/ordergraph/embedded/internal/schema"
	"github.com/ordergraph/ordergraph/embedded/internal/storage"
	"github.com/ordergraph/ordergraph/embedded/internal/stream"
	"github.com/ordergraph/ordergraph/embedded/internal/throttle"
	"github.com/ordergraph/ordergraph/embedded/internal/wire"
)

// Store is a DynamoDB engine. It is safe for concurrent use.
type Store struct {
	db             *file.DB
	now            func() time.Time
	expiryInterval time.Duration
	limiter        *throttle.Limiter // limiter is nil if the store does not throttle requests
	commits        commitQueue

	// tables maps the names of all tables to their definitions. A change replaces the map and does
	// not modify it, so that readers need no lock.
	tables atomic.Pointer[map[string]*schema.Table]

	mu        sync.Mutex
	observers map[*observer]struct{}
	// expiring is the timer that deletes expired items. It is nil if no table has a time to live.
	expiring *time.Timer
	closed   bool
}

// Options are the options of Open.
type Options struct {
	// Now returns the current time. If Now is nil, the store uses time.Now.
	Now func() time.Time
	// ExpiryInterval is the time between two deletions of expired items. If it is 0, the store uses
	// DefaultExpiryInterval.
	ExpiryInterval time.Duration
	// If Verify is true, Open verifies the complete file before it returns. Otherwise, it continues
	// the verification of a large file in the background.
	Verify bool
	// If Throttle is true, the store throttles requests like an on-demand table of DynamoDB: each
	// partition serves 1,000 write units and 3,000 read units a second, by the clock in Now. At
	// first, each partition key of a table or global secondary index is one partition. If it is
	// busy for five minutes, it splits by ranges of the sort key.
	Throttle bool
}

// The names of the top-level buckets.
var (
	bucketTables  = []byte("tables")
	bucketStreams = []byte("streams")
	bucketTokens  = []byte("tokens")
)

// New returns an empty store in memory. The caller need not close it.
func New() *Store {
	s, err := open("", Options{})
	if err != nil {
		panic(fmt.Sprintf("embedded store: cannot create a store in memory: %v", err))
	}
	// Close the database when the store becomes unreachable, because tests do not close their
	// stores.
	runtime.AddCleanup(s, func(db *file.DB) { _ = db.Close() }, s.db)
	return s
}

// Open opens or creates the store in the file at path. If path is "", the store is in memory. The
// caller must call Close. If another process uses the file, or the file is not a valid store, Open
// returns an error.
func Open(path string, options Options) (*Store, error) {
	return open(path, options)
}

func open(path string, options Options) (*Store, error) {
	var db *file.DB
	var err error
	if path == "" {
		db, err = file.OpenMemory()
	} else {
		db, err = file.Open(path, options.Verify)
	}
	switch {
	case errors.Is(err, file.ErrLocked):
		return nil, fmt.Errorf("open the store %s: %w: stop that process, or use another file", path, err)
	case errors.Is(err, file.ErrOldFormat):
		return nil, fmt.Errorf("open the store %s: %w: stop the server, then run `ordergraph upgrade-data -data %s`", path, err, path)
	case err != nil:
		return nil, fmt.Errorf("open the store %s: %w", path, err)
	}
	s := &Store{db: db, now: time.Now, expiryInterval: cmp.Or(options.ExpiryInterval, DefaultExpiryInterval), observers: map[*observer]struct{}{}}
	if options.Now != nil {
		s.now = options.Now
	}
	if options.Throttle {
		s.limiter = throttle.New(s.now)
	}
	if err := s.loadTables(); err != nil {
		return nil, errors.Join(fmt.Errorf("open the store %s: %w", path, err), db.Close())
	}
	s.updateExpiryTimer()
	return s, nil
}

// loadTables reads the definitions of the tables from the file. If the file is new, loadTables
// creates the top-level buckets.
func (s *Store) loadTables() error {
	tables := map[string]*schema.Table{}
	s.tables.Store(&tables)
	isNew := false
	err := s.db.View(func(tx *file.Tx) error {
		if isNew = tx.IsNew(); isNew {
			return nil
		}
		for _, name := range [][]byte{bucketTables, bucketStreams, bucketTokens} {
			if tx.Bucket(name) == nil {
				return &file.DamagedError{Problem: fmt.Sprintf("the bucket %q is missing", name)}
			}
		}
		if err := stream.CheckBuckets(tx.Bucket(bucketStreams)); err != nil {
			return err
		}
		return tx.Bucket(bucketTables).ForEach(func(name, definition []byte) error {
			t, err := schema.Parse(definition)
			if err != nil {
				return err
			}
			tables[string(name)] = t
			if t.HasStream() && tx.Bucket(bucketStreams).Bucket([]byte(t.StreamARN())) == nil {
				return &file.DamagedError{Problem: fmt.Sprintf("the bucket of the stream %s is missing", t.StreamARN())}
			}
			return storage.CheckBuckets(tx, t)
		})
	})
	if err != nil || !isNew {
		return err
	}
	return s.db.Update(func(tx *file.Tx) (bool, error) {
		for _, name := range [][]byte{bucketTables, bucketStreams, bucketTokens} {
			if _, err := tx.CreateBucket(name); err != nil {
				return false, err
			}
		}
		return true, tx.Create()
	}, func() {})
}

// Close waits for running requests and closes the file. It must be called exactly once.
func (s *Store) Close() error {
	s.mu.Lock()
	s.closed = true
	if s.expiring != nil {
		s.expiring.Stop()
	}
	s.mu.Unlock()
	return s.db.Close()
}

// Client returns an SDK client that calls the store directly, without a network. optFns can wrap
// the HTTP client. An endpoint, a region or credentials in optFns have no effect.
func (s *Store) Client(optFns ...func(*dynamodb.Options)) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		// The client never connects to this endpoint, because the store is its HTTP client. Hosts
		// in the domain .invalid do not exist (RFC 2606), so a connection by mistake would fail.
		BaseEndpoint:             aws.String("http://embedded.invalid"),
		IdempotencyTokenProvider: timeOrderedTokens{},
		// The store does not read this region. If AWS had no such region, the SDK would compile regular
		// expressions for each request.
		Region:      "us-east-1",
		Credentials: credentials.NewStaticCredentialsProvider("embedded", "embedded", ""),
		HTTPClient:  s,
		// Do not retry: a request that fails within the process would fail again.
		Retryer: aws.NopRetryer{},
	}, optFns...)
}

// timeOrderedTokens generates ClientRequestToken values that sort by time. New tokens are then
// neighbors in the file, so storing them changes few pages.
type timeOrderedTokens struct{}

// GetIdempotencyToken returns a UUID of version 7.
func (timeOrderedTokens) GetIdempotencyToken() (string, error) {
	id, err := uuid.NewV7()
	return id.String(), err
}

// Do executes one HTTP request of the SDK. If the context of the request ends before the response
// is ready, Do returns the error of the context.
func (s *Store) Do(r *http.Request) (*http.Response, error) {
	defer r.Body.Close()
	request, err := readRequest(r)
	invalid, ok := errors.AsType[*wire.Failure](err)
	if err != nil && !ok {
		return nil, fmt.Errorf("embedded store: read the request: %w", err)
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	status, body := s.respond(r, request, invalid)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return &http.Response{
		Status:        strconv.Itoa(status) + " " + http.StatusText(status),
		StatusCode:    status,
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        http.Header{"Content-Type": {contentType}},
		Body:          io.NopCloser(bytes.NewReader(body)),
		ContentLength: int64(len(body)),
		Request:       r,
	}, nil
}

const contentType = "application/x-amz-json-1.0"

// ServeHTTP serves DynamoDB's JSON protocol. It accepts all credentials. Requests other than POST
// are health checks: the response begins with "healthy".
func (s *Store) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		fmt.Fprintf(w, "healthy: %s", r.Host)
		return
	}
	request, err := readRequest(r)
	invalid, ok := errors.AsType[*wire.Failure](err)
	if err != nil && !ok {
		return // the client has disconnected
	}
	status, body := s.respond(r, request, invalid)
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("X-Amzn-Requestid", uuid.NewString())
	h.Set("X-Amz-Crc32", strconv.FormatUint(uint64(crc32.ChecksumIEEE(body)), 10))
	w.WriteHeader(status)
	_, _ = w.Write(body) // ignore the error: the client may have disconnected
}

// respond returns the status and body of the HTTP response. If invalid is not nil, it is the error
// of readRequest.
func (s *Store) respond(r *http.Request, request []byte, invalid *wire.Failure) (status int, body []byte) {
	if invalid != nil {
		return invalid.Response()
	}
	return s.execute(r.Context(), r.Header.Get("X-Amz-Target"), request)
}

// execute executes one request and returns the status and body of the HTTP response. target is the
// value of the header X-Amz-Target.
func (s *Store) execute(ctx context.Context, target string, request []byte) (status int, body []byte) {
	defer func() {
		if panicked := recover(); panicked != nil {
			status, body = (&wire.Failure{Code: wire.CodeInternal, Message: fmt.Sprint("The engine failed: ", panicked)}).Response()
		}
	}()
	operation, ok := operations[target]
	if !ok {
		return (&wire.Failure{Code: wire.CodeUnknownOperation, Message: "The store does not have the operation " + strconv.Quote(target)}).Response()
	}
	body, err := operation(s, ctx, request)
	if err != nil {
		return wire.FailureOf(err).Response()
	}
	return http.StatusOK, body
}

// operations maps each value of the header X-Amz-Target to the function that executes the
// operation.
var operations = func() map[string]func(*Store, context.Context, []byte) ([]byte, error) {
	all := map[string]func(*Store, context.Context, []byte) ([]byte, error){}
	for name, operation := range map[string]func(*Store, context.Context, []byte) ([]byte, error){
		"BatchGetItem":       decodingOperation((*Store).batchGetItem),
		"BatchWriteItem":     decodingOperation((*Store).batchWriteItem),
		"CreateTable":        decodingOperation((*Store).createTable),
		"DeleteItem":         decodingOperation((*Store).deleteItem),
		"DeleteTable":        decodingOperation((*Store).deleteTable),
		"DescribeEndpoints":  decodingOperation((*Store).describeEndpoints),
		"DescribeLimits":     decodingOperation((*Store).describeLimits),
		"DescribeTable":      decodingOperation((*Store).describeTable),
		"DescribeTimeToLive": decodingOperation((*Store).describeTimeToLive),
		"GetItem":            decodingOperation((*Store).getItem),
		"ListTables":         decodingOperation((*Store).listTables),
		"PutItem":            decodingOperation((*Store).putItem),
		"Query":              decodingOperation((*Store).query),
		"Scan":               decodingOperation((*Store).scan),
		"TransactGetItems":   decodingOperation((*Store).transactGetItems),
		"TransactWriteItems": decodingOperation((*Store).transactWriteItems),
		"UpdateItem":         decodingOperation((*Store).updateItem),
		"UpdateTable":        decodingOperation((*Store).updateTable),
		"UpdateTimeToLive":   decodingOperation((*Store).updateTimeToLive),
	} {
		all["DynamoDB_20120810."+name] = operation
	}
	for name, operation := range map[string]func(*Store, context.Context, []byte) ([]byte, error){
		"DescribeStream":   decodingOperation(streamOperation(stream.DescribeStream)),
		"GetRecords":       decodingOperation(streamOperation(stream.GetRecords)),
		"GetShardIterator": decodingOperation(streamOperation(stream.GetShardIterator)),
		"ListStreams":      decodingOperation(streamOperation(stream.ListStreams)),
	} {
		all["DynamoDBStreams_20120810."+name] = operation
	}
	return all
}()

// decodingOperation returns a function that decodes a JSON request and then calls operation.
func decodingOperation[In any](operation func(*Store, context.Context, *In) ([]byte, error)) func(*Store, context.Context, []byte) ([]byte, error) {
	return func(s *Store, ctx context.Context, request []byte) ([]byte, error) {
		in, err := wire.Decode[In](request)
		if err != nil {
			return nil, err
		}
		return operation(s, ctx, in)
	}
}

// streamOperation returns a function that begins a read transaction and passes the bucket of all
// streams to read.
func streamOperation[In any](read func(streams *file.Bucket, now time.Time, in *In) ([]byte, error)) func(*Store, context.Context, *In) ([]byte, error) {
	return func(s *Store, _ context.Context, in *In) (response []byte, err error) {
		err = s.db.ViewDurable(func(tx *file.Tx) (err error) {
			response, err = read(tx.Bucket(bucketStreams), s.now(), in)
			return err
		})
		return response, err
	}
}
