package faults

import (
	"bytes"
	"context"
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
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
)

// Kind is a kind of fault.
type Kind string

// The kinds of faults. The kinds before ConnectionReset occur before the engine executes a request.
// For ConnectionReset and the later kinds, the engine executes the request completely or in part.
const (
	// None is no fault.
	None Kind = ""

	// ThroughputExceeded is DynamoDB's ProvisionedThroughputExceededException.
	ThroughputExceeded Kind = "ProvisionedThroughputExceeded"
	// Throttling is DynamoDB's ThrottlingException.
	Throttling Kind = "Throttling"
	// InternalServerError is DynamoDB's InternalServerError, with HTTPClient status 500.
	InternalServerError Kind = "InternalServerError"
	// TransactionConflict means that a concurrent transaction writes the same record.
	// TransactWriteItems fails with a TransactionCanceledException, and a single write fails with a
	// TransactionConflictException.
	TransactionConflict Kind = "TransactionConflict"
	// TransactionInProgress is the TransactionInProgressException: the same transaction was already
	// sent and has not ended. It applies only to TransactWriteItems.
	TransactionInProgress Kind = "TransactionInProgress"
	// ConnectionRefused means that the connection is refused.
	ConnectionRefused Kind = "connection refused"

	// ExpiredIterator is the ExpiredIteratorException of DynamoDB Streams. It applies only to
	// GetRecords.
	ExpiredIterator Kind = "ExpiredIterator"
	// TrimmedData is the TrimmedDataAccessException of DynamoDB Streams: the requested stream records
	// are older than 24 hours. It applies only to GetRecords.
	TrimmedData Kind = "TrimmedDataAccess"
	// LimitExceeded is the LimitExceededException of DynamoDB Streams: too many clients read the same
	// shard.
	LimitExceeded Kind = "LimitExceeded"

	// Delayed means that the request reaches the engine DelayTime later. It does not fail.
	Delayed Kind = "delayed"

	// ConnectionReset means that the connection breaks before the response arrives, but after the
	// engine has executed the request.
	ConnectionReset Kind = "connection reset after the commit"
	// ResponseTimeout means that the engine has executed the request, but the response does not arrive
	// in time.
	ResponseTimeout Kind = "time-out after the commit"
	// TruncatedResponse means that the response ends in the middle. The SDK does not retry the
	// request.
	TruncatedResponse Kind = "reply cut off"
	// Unprocessed means that the engine executes only the first half of a batch. It applies only to
	// batches with two or more entries.
	Unprocessed Kind = "part of a batch unprocessed"
)

// DelayTime is the delay of a Delayed request.
const DelayTime = 200 * time.Millisecond

// Request contains the data of a request that a Chooser needs to choose a fault.
type Request struct {
	// Operation is the name of the DynamoDB operation, such as GetItem.
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

// Chooser returns the fault of a request, or None. A Client never calls its Chooser concurrently.
type Chooser func(Request) Kind

// Rates are the probabilities of faults.
type Rates map[Kind]float64

// Random returns a Chooser that chooses random faults. The same seed results in the same faults.
// writes contains the probabilities of faults for transactions, and reads for all other requests.
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
	return []Kind{ThroughputExceeded, Throttling, InternalServerError, TransactionConflict, TransactionInProgress, ConnectionRefused, ExpiredIterator, TrimmedData, LimitExceeded, Delayed, ConnectionReset, ResponseTimeout, TruncatedResponse, Unprocessed}
}

// HTTPClient is the SDK's interface for an HTTPClient client.
type HTTPClient interface {
	Do(*http.Request) (*http.Response, error)
}

// Client is an HTTPClient client that makes requests fail. It is safe for concurrent use.
type Client struct {
	next        HTTPClient
	mu          sync.Mutex
	choose      Chooser
	counts      map[Kind]int
	lostCommits int
}

// TransientKinds returns the faults that are transient: the same request may succeed if it is repeated.
func TransientKinds() []Kind {
	return []Kind{ThroughputExceeded, InternalServerError, ConnectionReset, Throttling, ResponseTimeout}
}

// FailFirstRequests returns a Chooser that makes the first requests of each DynamoDB operation fail.
// The first request fails with the first of kinds, and so on. After the last of kinds, no request
// fails.
func FailFirstRequests(kinds ...Kind) Chooser {
	counts := map[string]int{}
	return func(r Request) Kind {
		if n := counts[r.Operation]; n < len(kinds) {
			counts[r.Operation]++
			return kinds[n]
		}
		return None
	}
}

// WrapClient returns a client of db's engine in which requests fail with the faults that choose
// returns.
func WrapClient(db *dynamodb.Client, choose Chooser) (*dynamodb.Client, *Client) {
	c := &Client{choose: choose, counts: map[Kind]int{}}
	return dynamodb.New(db.Options(), func(o *dynamodb.Options) {
		c.next = o.HTTPClient
		o.HTTPClient = c
		// A NopRetryer ignores the retry options of a request. So a request that allows retries would
		// fail after a transient fault.
		if _, never := o.Retryer.(aws.NopRetryer); never {
			o.Retryer = OneAttempt()
		}
	}), c
}

// WrapStreamsClient returns a client of the same streams in which requests fail with the faults
// that choose returns. The returned client does not retry requests.
func WrapStreamsClient(streams *dynamodbstreams.Client, choose Chooser) (*dynamodbstreams.Client, *Client) {
	c := &Client{choose: choose, counts: map[Kind]int{}}
	return dynamodbstreams.New(streams.Options(), func(o *dynamodbstreams.Options) {
		c.next = o.HTTPClient
		o.HTTPClient = c
		o.Retryer = OneAttempt()
	}), c
}

// OneAttempt returns a retryer that does not retry requests. The options of a single request can
// allow retries.
func OneAttempt() aws.Retryer {
	return retry.NewStandard(func(o *retry.StandardOptions) { o.MaxAttempts = 1 })
}

// Counts returns the number of faults by kind.
func (c *Client) Counts() map[Kind]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.counts)
}

// LostCommits returns the number of transactions that were committed, but whose responses were
// lost.
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

// Do sends a request or makes it fail. It returns network errors, and the errors of the HTTPClient client
// that it wraps.
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
		return throughputResponse(r, request)
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
	case Delayed:
		if err := waitDelay(r.Context()); err != nil {
			return nil, err
		}
		return c.forward(r, body)
	case Unprocessed:
		return c.sendHalf(r, request)
	default:
		return c.loseResponse(r, request, kind)
	}
}

// chooseFault returns the fault of a request and counts it. It returns None if the chosen fault
// does not apply to the operation.
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

// forward sends the request with the given body to the engine.
func (c *Client) forward(r *http.Request, body []byte) (*http.Response, error) {
	copied := r.Clone(r.Context())
	copied.Body, copied.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	copied.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	return c.next.Do(copied)
}

// loseResponse sends the request to the engine, which executes it, and then loses the response.
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

// throughputResponse returns DynamoDB's response to a request that exceeds the throughput of the
// table.
func throughputResponse(r *http.Request, request Request) (*http.Response, error) {
	reason := "TableReadProvisionedThroughputExceeded"
	if request.IsTransaction() || request.isSingleWrite() || request.Operation == "BatchWriteItem" {
		reason = "TableWriteProvisionedThroughputExceeded"
	}
	return jsonResponse(r, http.StatusBadRequest, map[string]any{
		"__type":            "com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException",
		"message":           "The level of configured provisioned throughput for the table was exceeded. Consider increasing your provisioning level with the UpdateTable API.",
		"ThrottlingReasons": []map[string]string{{"reason": reason, "resource": "arn:aws:dynamodb:us-east-1:000000000000:table/faults"}},
	})
}

// waitDelay waits for DelayTime. It returns the error of a context that ends before.
func waitDelay(ctx context.Context) error {
	timer := time.NewTimer(DelayTime)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// conflictResponse returns DynamoDB's response to a transaction whose first record conflicts with
// another transaction.
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
