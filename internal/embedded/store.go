// Package embedded implements DynamoDB on bbolt, an ordered key-value store in one file. It accepts
// requests in DynamoDB's JSON protocol: from the AWS SDK in the same process (Client), or over HTTP
// (ServeHTTP).
//
// The package uses the packages in its subdirectories, and no other packages of this module:
//   - wire decodes requests, and encodes responses and errors.
//   - attr implements attribute values.
//   - expr parses and evaluates expressions.
//   - schema contains the definitions of tables.
//   - storage stores items, and defines the buckets of a table.
//   - read executes reads.
//   - stream implements DynamoDB Streams.
//   - capacity computes the consumed capacity units.
//
// # Layout of the file
//
// Every table has a bucket, which contains these buckets:
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
// reads. There is one exception: if the file grows beyond its memory mapping, the write waits for
// all running reads, and new reads wait for the write. Writes that arrive during a commit wait for
// its end. They then share the next commit.
//
// # Differences from DynamoDB
//
// The engine differs from DynamoDB in these points:
//   - New tables and indexes are active immediately.
//   - Every read is strongly consistent.
//   - The engine never throttles requests.
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
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/uuid"
	"go.etcd.io/bbolt"
	bbolterrors "go.etcd.io/bbolt/errors"

	"github.com/ordergraph/ordergraph/internal/embedded/schema"
	"github.com/ordergraph/ordergraph/internal/embedded/stream"
	"github.com/ordergraph/ordergraph/internal/embedded/wire"
)

// Store is a DynamoDB engine. It is safe for concurrent use.
type Store struct {
	db             *bbolt.DB
	now            func() time.Time
	expiryInterval time.Duration
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
}

// The names of the top-level buckets. bucketFormat contains the format version under the key
// keyVersion.
var (
	bucketFormat  = []byte("format")
	bucketTables  = []byte("tables")
	bucketStreams = []byte("streams")
	bucketTokens  = []byte("tokens")
	keyVersion    = []byte("version")
)

// formatVersion is the version of the file's layout.
const formatVersion = "4"

// initialMmapBytes is the size of the address space that the store reserves to map its file into
// memory. If a write needs a larger mapping, it waits until all running reads have ended.
const initialMmapBytes = 1 << 35

// New returns an empty store in memory. The caller need not close it.
func New() *Store {
	s, err := open("", Options{})
	if err != nil {
		panic(fmt.Sprintf("embedded store: cannot create a store in memory: %v", err))
	}
	// Close the database when the store becomes unreachable, because tests do not close their
	// stores.
	runtime.AddCleanup(s, func(db *bbolt.DB) { _ = db.Close() }, s.db)
	return s
}

// Open opens or creates the store in the file at path. The caller must call Close. If another
// process uses the file, or the file is not a valid store, Open returns an error.
func Open(path string, options Options) (*Store, error) {
	return open(path, options)
}

func open(path string, options Options) (*Store, error) {
	config := &bbolt.Options{Timeout: lockTimeout, FreelistType: bbolt.FreelistMapType}
	if path == "" {
		config.OpenFile = func(string, int, os.FileMode) (*os.File, error) { return memoryFile() }
		config.NoSync, config.NoGrowSync, config.NoFreelistSync = true, true, true
	} else if strconv.IntSize == 64 && runtime.GOOS != "windows" {
		config.InitialMmapSize = initialMmapBytes
	}
	db, err := openDatabase(path, config)
	switch {
	case errors.Is(err, bbolterrors.ErrTimeout):
		return nil, fmt.Errorf("open the store %s: another process has opened the file: stop that process, or use another file", path)
	case errors.Is(err, bbolterrors.ErrInvalid), errors.Is(err, bbolterrors.ErrVersionMismatch), errors.Is(err, bbolterrors.ErrChecksum), errors.Is(err, errDamaged):
		return nil, fmt.Errorf("open the store %s: the file is damaged or is not a store: %w", path, err)
	case err != nil:
		return nil, fmt.Errorf("open the store %s: %w", path, err)
	}
	s := &Store{db: db, now: time.Now, expiryInterval: cmp.Or(options.ExpiryInterval, DefaultExpiryInterval), observers: map[*observer]struct{}{}}
	if options.Now != nil {
		s.now = options.Now
	}
	if err := s.loadTables(); err != nil {
		return nil, errors.Join(fmt.Errorf("open the store %s: %w", path, err), db.Close())
	}
	s.updateExpiryTimer()
	return s, nil
}

// lockTimeout is how long Open waits for another process to close the file.
const lockTimeout = 100 * time.Millisecond

// errDamaged means that the file begins like a bbolt database, but has invalid pages.
var errDamaged = errors.New("invalid pages")

// openDatabase opens the bbolt database at path. If the file already exists, it first checks the
// file's length.
func openDatabase(path string, config *bbolt.Options) (_ *bbolt.DB, err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			err = fmt.Errorf("%w: %v", errDamaged, panicked)
		}
	}()
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Size() > 0 {
		if err := checkLength(path); err != nil {
			return nil, err
		}
	}
	return bbolt.Open(path, 0o600, config)
}

// checkLength returns an error if pages are missing at the end of the file. Without this check, a
// read of a missing page would crash the process.
func checkLength(path string) error {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, Timeout: lockTimeout})
	if err != nil {
		return err
	}
	return errors.Join(db.View(func(tx *bbolt.Tx) error {
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		if info.Size() < tx.Size() {
			return fmt.Errorf("the file is truncated: it has %d of %d bytes", info.Size(), tx.Size())
		}
		return nil
	}), db.Close())
}

// loadTables reads the definitions of the tables from the file. If the file is new, loadTables
// creates the top-level buckets.
func (s *Store) loadTables() error {
	tables := map[string]*schema.Table{}
	s.tables.Store(&tables)
	isNew := false
	err := s.db.View(func(tx *bbolt.Tx) error {
		format := tx.Bucket(bucketFormat)
		if format == nil {
			isNew = true
			if name, _ := tx.Cursor().First(); name != nil {
				return errors.New("the file is a bbolt database of another program, not an embedded store")
			}
			return nil
		}
		if version := string(format.Get(keyVersion)); version != formatVersion {
			return fmt.Errorf("the file has format version %q, but this program supports only version %q: export the records with the program that wrote the file, then import them into a new file", version, formatVersion)
		}
		return tx.Bucket(bucketTables).ForEach(func(name, definition []byte) error {
			t, err := schema.Parse(definition)
			tables[string(name)] = t
			return err
		})
	})
	if err != nil || !isNew {
		return err
	}
	return s.db.Update(func(tx *bbolt.Tx) error {
		for _, name := range [][]byte{bucketTables, bucketStreams, bucketTokens} {
			if _, err := tx.CreateBucket(name); err != nil {
				return err
			}
		}
		format, err := tx.CreateBucket(bucketFormat)
		if err != nil {
			return err
		}
		return format.Put(keyVersion, []byte(formatVersion))
	})
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
		Region:                   schema.Region,
		Credentials:              credentials.NewStaticCredentialsProvider("embedded", "embedded", ""),
		HTTPClient:               s,
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
func streamOperation[In any](read func(streams *bbolt.Bucket, now time.Time, in *In) ([]byte, error)) func(*Store, context.Context, *In) ([]byte, error) {
	return func(s *Store, _ context.Context, in *In) (response []byte, err error) {
		err = s.db.View(func(tx *bbolt.Tx) (err error) {
			response, err = read(tx.Bucket(bucketStreams), s.now(), in)
			return err
		})
		return response, err
	}
}
