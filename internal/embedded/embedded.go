// Package embedded is the built-in store: minidyn, a DynamoDB in memory, behind the AWS SDK's own client. There is no
// port and no listener; everything above the HTTP client is what production runs.
//
// What the code relies on, and where minidyn is known to differ, is written down as tests in package dynamo/enginetest.
//
// It is good for a first run and for tests, not for measurements: a Query costs as much as the table is large. Where minidyn
// behaves otherwise than DynamoDB, the rest of the code keeps clear of it:
//
//   - It reports no consumed capacity, so package dynamo computes read units by DynamoDB's documented rules.
//   - A Query that continues behind a record that is no longer there gives nothing, so lists never use
//     ExclusiveStartKey.
//   - It joins partition and sort key with a point. No two keys of the model can be joined to the same text, as values hold no '#'
//     and every sort key begins with, or follows, literal text.
//   - Empty lists are lost when they are written, so a list that is not there reads as an empty one.
//   - Updates have faults that lose data: they remove no attributes, make floats of numbers, and break the index where they give a
//     record its first index keys. Whoever writes puts whole records.
//   - Its tables are guarded by no lock when they are made or described, so the store serves one request at a time.
package embedded

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/truora/minidyn/server"
)

// Store is a DynamoDB in memory. It is safe for concurrent use.
type Store struct {
	mu     sync.Mutex
	engine *server.Server
}

// New returns an empty store.
func New() *Store { return &Store{engine: server.NewServer()} }

// Client returns a client of the store. What optFns set of the endpoint, the region and the credentials does not matter;
// an HTTP client in the place of the store's can wrap it.
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
	reply, err := s.serve(r)
	if err == nil {
		err = r.Context().Err()
	}
	if err != nil {
		return nil, err
	}
	return &http.Response{
		Status:        fmt.Sprintf("%d %s", reply.status, http.StatusText(reply.status)),
		StatusCode:    reply.status,
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        reply.header,
		Body:          io.NopCloser(&reply.body),
		ContentLength: int64(reply.body.Len()),
		Request:       r,
	}, nil
}

// serve lets the engine answer, unless the context ends while others are served. A panic of the engine becomes what
// DynamoDB answers when it fails.
func (s *Store) serve(r *http.Request) (to *reply, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	defer func() {
		if panicked := recover(); panicked != nil {
			to = &reply{header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}}, status: http.StatusInternalServerError}
			fmt.Fprintf(&to.body, `{"__type":"InternalServerError","message":%q}`, fmt.Sprint(panicked))
		}
	}()
	to = &reply{header: http.Header{}, status: http.StatusOK}
	s.engine.ServeHTTP(to, r)
	return to, nil
}

// reply is an http.ResponseWriter that keeps what is written.
type reply struct {
	header  http.Header
	status  int
	written bool
	body    bytes.Buffer
}

// Header returns the reply's headers.
func (r *reply) Header() http.Header { return r.header }

// WriteHeader sets the status, once.
func (r *reply) WriteHeader(status int) {
	if !r.written {
		r.status, r.written = status, true
	}
}

// Write adds to the body.
func (r *reply) Write(b []byte) (int, error) {
	r.written = true
	return r.body.Write(b)
}
