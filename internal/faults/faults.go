package faults

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
)

// Kind is a kind of fault.
type Kind string

// The faults. The first group fails requests before they reach the engine. The last group, from
// Reset on, lets the engine execute requests, completely or in part.
const (
	// None is no fault.
	None Kind = ""

	// ThroughputExceeded is DynamoDB's ProvisionedThroughputExceededException.
	ThroughputExceeded Kind = "ProvisionedThroughputExceeded"
	// Throttling is DynamoDB's ThrottlingException.
	Throttling Kind = "Throttling"
	// InternalServerError is DynamoDB's InternalServerError, with HTTP status 500.
	InternalServerError Kind = "InternalServerError"
	// TransactionConflict means that another transaction writes the same record. It is a
	// TransactionCanceledException for TransactWriteItems and a TransactionConflictException for a
	// single write.
	TransactionConflict Kind = "TransactionConflict"
	// TransactionInProgress is a TransactionInProgressException: the same transaction was sent before
	// and has not ended. It is only for TransactWriteItems.
	TransactionInProgress Kind = "TransactionInProgress"
	// ConnectionRefused means that the connection is refused.
	ConnectionRefused Kind = "connection refused"

	// ExpiredIterator is the ExpiredIteratorException of DynamoDB Streams. It is only for GetRecords.
	ExpiredIterator Kind = "ExpiredIterator"
	// TrimmedData is the TrimmedDataAccessException of DynamoDB Streams: the requested records are
	// older than a day. It is only for GetRecords.
	TrimmedData Kind = "TrimmedDataAccess"
	// LimitExceeded is the LimitExceededException of DynamoDB Streams: too many clients read one
	// shard.
	LimitExceeded Kind = "LimitExceeded"

	// ConnectionReset means that the connection breaks after the engine has executed the request,
	// before the response arrives.
	ConnectionReset Kind = "connection reset after the commit"
	// ResponseTimeout means that the response does not arrive in time, but the engine has executed the
	// request.
	ResponseTimeout Kind = "time-out after the commit"
	// TruncatedResponse means that the response ends in the middle. The SDK does not repeat such a
	// request.
	TruncatedResponse Kind = "reply cut off"
	// Unprocessed means that the engine executes only the first half of a batch. It is only for
	// batches of two or more entries.
	Unprocessed Kind = "part of a batch unprocessed"
)

// Request is a request that can be made to fail.
type Request struct {
	// Operation is the name of the operation, such as GetItem.
	Operation string
	// Body is the JSON of the request.
	Body []byte
}

// IsTransaction reports whether the request is a write transaction.
func (r Request) IsTransaction() bool { return r.Operation == "TransactWriteItems" }

// isSingleWrite reports whether the request writes one record outside a transaction.
func (r Request) isSingleWrite() bool {
	return r.Operation == "PutItem" || r.Operation == "UpdateItem" || r.Operation == "DeleteItem"
}

// Chooser returns the fault for a request. Client does not call it concurrently.
type Chooser func(Request) Kind

// Rates are the probabilities of faults.
type Rates map[Kind]float64

// Random returns a Chooser that draws faults with a seed. Transactions have the probabilities
// writes; other requests have the probabilities reads.
func Random(seed uint64, writes, reads Rates) Chooser {
	source := rand.New(rand.NewPCG(seed, 0))
	return func(r Request) Kind {
		rates := reads
		if r.IsTransaction() {
			rates = writes
		}
		at := source.Float64()
		for _, kind := range kinds() {
			if at -= rates[kind]; at < 0 {
				return kind
			}
		}
		return None
	}
}

// kinds returns all faults in a fixed order.
func kinds() []Kind {
	return []Kind{ThroughputExceeded, Throttling, InternalServerError, TransactionConflict, TransactionInProgress, ConnectionRefused, ExpiredIterator, TrimmedData, LimitExceeded, ConnectionReset, ResponseTimeout, TruncatedResponse, Unprocessed}
}

// HTTP is the SDK's interface for an HTTP client.
type HTTP interface {
	Do(*http.Request) (*http.Response, error)
}

// Client is an HTTP client that makes requests fail. It is safe for concurrent use.
type Client struct {
	next        HTTP
	mu          sync.Mutex
	choose      Chooser
	counts      map[Kind]int
	lostCommits int
}

// Transient returns transient faults: the same request may succeed later.
func Transient() []Kind {
	return []Kind{ThroughputExceeded, InternalServerError, ConnectionReset, Throttling, ResponseTimeout}
}

// FirstRequests returns a Chooser with fixed faults for the first requests of each operation, in
// order.
func FirstRequests(kinds ...Kind) Chooser {
	counts := map[string]int{}
	return func(r Request) Kind {
		if n := counts[r.Operation]; n < len(kinds) {
			counts[r.Operation]++
			return kinds[n]
		}
		return None
	}
}

// WrapClient returns a client of db's engine whose requests meet the faults of choose.
func WrapClient(db *dynamodb.Client, choose Chooser) (*dynamodb.Client, *Client) {
	c := &Client{choose: choose, counts: map[Kind]int{}}
	return dynamodb.New(db.Options(), func(o *dynamodb.Options) {
		c.next = o.HTTPClient
		o.HTTPClient = c
		// A NopRetryer ignores the retry options of requests, so no request would get past a transient
		// fault.
		if _, never := o.Retryer.(aws.NopRetryer); never {
			o.Retryer = OneAttempt()
		}
	}), c
}

// WrapStreamsClient returns a client of the same streams whose requests meet the faults of choose.
// The SDK makes one attempt per request.
func WrapStreamsClient(streams *dynamodbstreams.Client, choose Chooser) (*dynamodbstreams.Client, *Client) {
	c := &Client{choose: choose, counts: map[Kind]int{}}
	return dynamodbstreams.New(streams.Options(), func(o *dynamodbstreams.Options) {
		c.next = o.HTTPClient
		o.HTTPClient = c
		o.Retryer = OneAttempt()
	}), c
}

// OneAttempt returns a retryer that makes one attempt per request, unless the request has options
// of its own.
func OneAttempt() aws.Retryer {
	return retry.NewStandard(func(o *retry.StandardOptions) { o.MaxAttempts = 1 })
}

// Counts returns the number of faults by kind.
func (c *Client) Counts() map[Kind]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.counts)
}

// LostCommits returns the number of committed transactions whose responses were lost.
func (c *Client) LostCommits() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lostCommits
}

// Stop stops the faults.
func (c *Client) Stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.choose = func(Request) Kind { return None }
}

// Do sends a request or makes it fail. It returns network errors and the errors of the wrapped
// client.
func (c *Client) Do(r *http.Request) (*http.Response, error) {
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body.Close()
	request := Request{Operation: operation, Body: body}
	kind := c.chooseFault(request)
	switch kind {
	case None:
		return c.forward(r, body)
	case ThroughputExceeded:
		return errorResponse(r, http.StatusBadRequest, "com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException",
			"The level of configured provisioned throughput for the table was exceeded. Consider increasing your provisioning level with the UpdateTable API.")
	case Throttling:
		return errorResponse(r, http.StatusBadRequest, "com.amazon.coral.availability#ThrottlingException", "Rate of requests exceeds the allowed throughput.")
	case InternalServerError:
		return errorResponse(r, http.StatusInternalServerError, "com.amazonaws.dynamodb.v20120810#InternalServerError", "Internal server error")
	case TransactionConflict:
		if request.isSingleWrite() {
			return errorResponse(r, http.StatusBadRequest, "com.amazonaws.dynamodb.v20120810#TransactionConflictException", "Transaction is ongoing for the item")
		}
		return conflictResponse(r, body)
	case TransactionInProgress:
		return errorResponse(r, http.StatusBadRequest, "com.amazonaws.dynamodb.v20120810#TransactionInProgressException",
			"The transaction with the given request token is already in progress.")
	case ExpiredIterator:
		return errorResponse(r, http.StatusBadRequest, "com.amazonaws.dynamodb.v20120810#ExpiredIteratorException", "Iterator is older than 15 minutes")
	case TrimmedData:
		return errorResponse(r, http.StatusBadRequest, "com.amazonaws.dynamodb.v20120810#TrimmedDataAccessException", "The operation attempted to read past the oldest stream record in a shard.")
	case LimitExceeded:
		return errorResponse(r, http.StatusBadRequest, "com.amazonaws.dynamodb.v20120810#LimitExceededException", "Too many requests for this shard")
	case ConnectionRefused:
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	case Unprocessed:
		return c.sendHalf(r, request)
	default:
		return c.loseResponse(r, request, kind)
	}
}

// chooseFault chooses the fault of a request and counts it. If the fault does not apply to the
// request, there is no fault.
func (c *Client) chooseFault(r Request) Kind {
	c.mu.Lock()
	defer c.mu.Unlock()
	kind := c.choose(r)
	if kind == TransactionConflict && !r.IsTransaction() && !r.isSingleWrite() || kind == TransactionInProgress && !r.IsTransaction() || kind == Unprocessed && batchSize(r) < 2 ||
		(kind == ExpiredIterator || kind == TrimmedData) && r.Operation != "GetRecords" {
		kind = None
	}
	if kind != None {
		c.counts[kind]++
	}
	return kind
}

// forward sends the request to the engine with the given body.
func (c *Client) forward(r *http.Request, body []byte) (*http.Response, error) {
	copied := r.Clone(r.Context())
	copied.Body, copied.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	copied.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	return c.next.Do(copied)
}

// loseResponse lets the engine execute the request and loses the response.
func (c *Client) loseResponse(r *http.Request, request Request, kind Kind) (*http.Response, error) {
	response, err := c.forward(r, request.Body)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	reply, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if request.IsTransaction() && response.StatusCode == http.StatusOK {
		c.mu.Lock()
		c.lostCommits++
		c.mu.Unlock()
	}
	switch kind {
	case TruncatedResponse:
		response.Body = io.NopCloser(io.MultiReader(bytes.NewReader(reply[:len(reply)/2]), truncatedBody{}))
		return response, nil
	case ResponseTimeout:
		return nil, &net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}
	default:
		return nil, &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
	}
}

// truncatedBody is the end of a truncated response body.
type truncatedBody struct{}

func (truncatedBody) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// errorResponse returns an error response of DynamoDB.
func errorResponse(r *http.Request, status int, name, message string) (*http.Response, error) {
	return jsonResponse(r, status, map[string]any{"__type": name, "message": message})
}

// conflictResponse returns the response to a transaction that conflicts with another transaction
// about its first record.
func conflictResponse(r *http.Request, body []byte) (*http.Response, error) {
	var transaction struct{ TransactItems []json.RawMessage }
	if err := json.Unmarshal(body, &transaction); err != nil {
		return nil, err
	}
	reasons := make([]map[string]string, len(transaction.TransactItems))
	codes := make([]string, len(reasons))
	for i := range reasons {
		reasons[i], codes[i] = map[string]string{"Code": "None"}, "None"
	}
	reasons[0], codes[0] = map[string]string{"Code": "TransactionConflict", "Message": "Transaction is ongoing for the item"}, "TransactionConflict"
	return jsonResponse(r, http.StatusBadRequest, map[string]any{
		"__type":              "com.amazonaws.dynamodb.v20120810#TransactionCanceledException",
		"Message":             fmt.Sprintf("Transaction cancelled, please refer cancellation reasons for specific reasons [%s]", strings.Join(codes, ", ")),
		"CancellationReasons": reasons,
	})
}

func jsonResponse(r *http.Request, status int, body any) (*http.Response, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		Status: fmt.Sprintf("%d %s", status, http.StatusText(status)), StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:        http.Header{"Content-Type": {"application/x-amz-json-1.0"}, "X-Amzn-Requestid": {"FAULT"}},
		Body:          io.NopCloser(bytes.NewReader(text)),
		ContentLength: int64(len(text)),
		Request:       r,
	}, nil
}
