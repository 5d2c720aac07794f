// Package embedded is the built-in store: minidyn, an in-memory DynamoDB, behind the AWS SDK's
// client. It opens no port. The code above the HTTP client is the same as in production.
//
// The tests of package dynamo/enginetest list the behaviour that the code relies on, and the known
// differences from DynamoDB.
//
// # Corrections
//
// minidyn stores the records, evaluates conditions and executes reads. This package corrects its
// writes:
//
//   - A write of a single record, and every action of a transaction, becomes a conditional put of
//     the complete record or a conditional delete. This package applies updates, with minidyn's
//     parser and exact numbers.
//   - A record that leaves an index is deleted and put again.
//   - The actions of a transaction are executed one after the other. If an action fails, they are
//     undone with the old records. The response has a reason and the record for every failed
//     action.
//   - ClientRequestTokens of the last 10,000 transactions are kept.
//   - Placeholders, reserved words and the types of keys are verified before a write.
//   - The setting of a table's time to live is kept. Nothing expires.
//   - The segments of a Scan have disjoint records.
//   - The setting of a table's stream is kept. Observe reports the changes within the process.
//
// # Differences
//
// The store is for a first run and for tests, not for measurements: the time of a Query grows with
// the table. The rest of the code avoids these differences from DynamoDB:
//
//   - The store reports no consumed capacity. Package dynamo computes read units by DynamoDB's
//     documented rules.
//   - A Query that continues after a deleted record returns nothing, so lists never use
//     ExclusiveStartKey.
//   - The store joins partition key and sort key with a point. No two keys of the model have the
//     same joined text: values contain no '#', and every sort key begins with, or follows, literal
//     text.
//   - Updates of elements in lists or maps, updates of sets and appends to lists lose data.
//     UpdateItem lets minidyn execute them, and transactions reject them. Batches corrupt the
//     index if they remove a record from it.
//   - Conditions compare numbers as float64.
//   - minidyn creates and describes tables without a lock, so the store serves one request at a
//     time.
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

// Client returns a client of the store. The endpoint, region and credentials of optFns have no
// effect. optFns may wrap the HTTP client.
func (s *Store) Client(optFns ...func(*dynamodb.Options)) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		// No request leaves the process. The top-level domain .invalid never resolves (RFC 2606).
		BaseEndpoint: aws.String("http://embedded.invalid"),
		Region:       "local",
		Credentials:  credentials.NewStaticCredentialsProvider("embedded", "embedded", ""),
		HTTPClient:   s,
		// A request that fails in memory would fail again.
		Retryer: aws.NopRetryer{},
	}, optFns...)
}

// Do executes one request of the SDK. It returns the context's error if the context ended before or
// during the request.
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

// serve executes a request, unless the context ends while other requests are served. A panic of the
// engine becomes an InternalServerError.
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
		return encode(nil, &failure{Type: "UnknownOperationException", Message: "the embedded store does not implement the operation " + strconv.Quote(name)})
	}
	return encode(do(r.Context(), request))
}
