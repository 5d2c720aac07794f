// Package embedded is the built-in store: minidyn, a DynamoDB in memory, behind the AWS SDK's own
// client. There is no port and no listener; everything above the HTTP client is what production
// runs.
//
// What the code relies on, and where the store is known to differ from DynamoDB, is written down as
// tests in package dynamo/enginetest.
//
// # What is mended
//
// minidyn keeps the records, evaluates conditions and answers reads. What it does wrong where
// records are written is mended here, in front of it, so that nothing above has to know:
//
//   - A write of a single record, and every action of a transaction, becomes a put of the whole record or a delete, under the
//     condition it came with. What an update makes of the record is worked out here, with minidyn's parser and exact numbers.
//   - A record that leaves an index is deleted and put again.
//   - A transaction's actions are done one after the other, and undone from the records that were read before if one fails. That
//     names every action that failed, with its record, and costs nothing for the rest of the table.
//   - ClientRequestTokens of the last 10,000 transactions are remembered.
//   - Placeholders, reserved words and the types of keys are checked before anything is written.
//   - The setting of a table's time to live is kept. Nothing expires.
//   - A scan's segments have different records.
//   - The setting of a table's stream is kept. Its records are told in the process, to those who Observe the table.
//
// # What is not
//
// It is good for a first run and for tests, not for measurements: a Query costs as much as the
// table is large. The rest of the code keeps clear of where it still behaves otherwise than
// DynamoDB:
//
//   - It reports no consumed capacity, so package dynamo computes read units by DynamoDB's documented rules.
//   - A Query that continues behind a record that is no longer there gives nothing, so lists never use
//     ExclusiveStartKey.
//   - It joins partition and sort key with a point. No two keys of the model can be joined to the same text, as values hold no '#'
//     and every sort key begins with, or follows, literal text.
//   - Updates that reach into lists or maps, change sets or append to lists lose data: UpdateItem leaves them to minidyn, and
//     transactions refuse them. Batches leave the index wrong where they take a record out of it.
//   - Conditions compare numbers as float64.
//   - Its tables are guarded by no lock when they are made or described, so the store serves one request at a time.
package embedded

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/truora/minidyn/server"
)

// Store is a DynamoDB in memory. It is safe for concurrent use.
type Store struct {
	mu         sync.Mutex
	engine     *server.Client
	operations map[string]operation
	tables     map[string]*table
	tokens     tokens
	observers  map[*observer]struct{}
}

// New returns an empty store.
func New() *Store {
	s := &Store{engine: server.NewClient(), tables: map[string]*table{}, tokens: tokens{limit: 10_000, known: map[string]digest{}}, observers: map[*observer]struct{}{}}
	s.operations = s.routes()
	return s
}

// Client returns a client of the store. What optFns set of the endpoint, the region and the
// credentials does not matter; an HTTP client in the place of the store's can wrap it.
func (s *Store) Client(optFns ...func(*dynamodb.Options)) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		// No request leaves the process; if one did, .invalid is no name of any host (RFC 2606).
		BaseEndpoint: aws.String("http://embedded.invalid"),
		Region:       "local",
		Credentials:  credentials.NewStaticCredentialsProvider("embedded", "embedded", ""),
		HTTPClient:   s,
		// What fails in memory fails again.
		Retryer: aws.NopRetryer{},
	}, optFns...)
}

// Do answers one request of the SDK.
//
// Errors: the context's, where it ended before the request was served or while it was.
func (s *Store) Do(r *http.Request) (*http.Response, error) {
	status, body, err := s.serve(r)
	if err == nil {
		err = r.Context().Err()
	}
	if err != nil {
		return nil, err
	}
	return &http.Response{
		Status:        fmt.Sprintf("%d %s", status, http.StatusText(status)),
		StatusCode:    status,
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
		Body:          io.NopCloser(bytes.NewReader(body)),
		ContentLength: int64(len(body)),
		Request:       r,
	}, nil
}

// serve answers, unless the context ends while others are served. A panic of the engine becomes
// what DynamoDB answers when it fails.
func (s *Store) serve(r *http.Request) (status int, body []byte, err error) {
	defer r.Body.Close()
	request, err := io.ReadAll(r.Body)
	if err != nil {
		return 0, nil, fmt.Errorf("embedded store: read the request: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := r.Context().Err(); err != nil {
		return 0, nil, err
	}
	defer func() {
		if panicked := recover(); panicked != nil {
			status, body, err = encode(nil, &failure{Type: codeInternal, Message: fmt.Sprint(panicked)})
		}
	}()
	target := r.Header.Get("X-Amz-Target")
	name := target[strings.LastIndex(target, ".")+1:]
	do, known := s.operations[name]
	if !known {
		return encode(nil, &failure{Type: "UnknownOperationException", Message: "the embedded store has no operation " + strconv.Quote(name)})
	}
	return encode(do(r.Context(), request))
}
