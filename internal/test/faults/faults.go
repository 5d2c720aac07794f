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

// Kind is a kind of fault, such as a refused connection.
type Kind string

// The kinds of faults. ConnectionReset and the faults below it occur after DynamoDB has executed at
// least a part of the request. The faults above it occur before the execution.
const (
	// None means that no fault occurs.
	None Kind = ""

	// ThroughputExceeded is DynamoDB's error ProvisionedThroughputExceededException.
	ThroughputExceeded Kind = "ProvisionedThroughputExceeded"
	// Throttling is DynamoDB's error ThrottlingException.
	Throttling Kind = "Throttling"
	// InternalServerError is DynamoDB's error InternalServerError, with the HTTP status 500.
	InternalServerError Kind = "InternalServerError"
	// TransactionConflict means that another transaction is writing the same record at the same time.
	// A TransactWriteItems request fails with a TransactionCanceledException. A request that writes a
	// single record fails with a TransactionConflictException.
	TransactionConflict Kind = "TransactionConflict"
	// TransactionInProgress is DynamoDB's error TransactionInProgressException. It means that the
	// client has already sent the same transaction, and that DynamoDB is still executing it. The fault
	// applies only to TransactWriteItems.
	TransactionInProgress Kind = "TransactionInProgress"
	// ConnectionRefused means that the server refuses the TCP connection.
	ConnectionRefused Kind = "connection refused"

	// ExpiredIterator is the error ExpiredIteratorException of DynamoDB Streams. The fault applies
	// only to GetRecords.
	ExpiredIterator Kind = "ExpiredIterator"
	// TrimmedData is the error TrimmedDataAccessException of DynamoDB Streams. It means that the
	// requested stream records have been deleted, because they are older than 24 hours. The fault
	// applies only to GetRecords.
	TrimmedData Kind = "TrimmedDataAccess"
	// LimitExceeded is the error LimitExceededException of DynamoDB Streams. It means that too many
	// clients read the same shard.
	LimitExceeded Kind = "LimitExceeded"

	// Delayed means that the request reaches DynamoDB only after DelayTime. The request does not fail.
	Delayed Kind = "delayed"

	// ConnectionReset means that DynamoDB executes the request, but the connection breaks before the
	// response arrives.
	ConnectionReset Kind = "connection reset after the commit"
	// ResponseTimeout means that DynamoDB executes the request, but the client times out before the
	// response arrives.
	ResponseTimeout Kind = "time-out after the commit"
	// TruncatedResponse means that DynamoDB executes the request, but only half of the response body
	// arrives. The SDK does not retry such a request.
	TruncatedResponse Kind = "reply cut off"
	// Unprocessed means that DynamoDB executes only the first half of a batch. The response lists the
	// second half as unprocessed. The fault applies only to batches with two or more entries.
	Unprocessed Kind = "part of a batch unprocessed"
)

// DelayTime is how long a request with the fault Delayed waits before it is sent to DynamoDB.
const DelayTime = 200 * time.Millisecond

// Request describes a DynamoDB request. A Chooser chooses the fault of a request from this
// description.
type Request struct {
	// Operation is the name of the DynamoDB operation, such as GetItem.
	Operation string
	// Body is the request body, in JSON.
	Body []byte
}

// IsTransaction reports whether the request is a write transaction.
func (r Request) IsTransaction() bool { return r.Operation == "TransactWriteItems" }

// isSingleWrite reports whether the request writes a single record without a transaction.
func (r Request) isSingleWrite() bool {
	return r.Operation == "PutItem" || r.Operation == "UpdateItem" || r.Operation == "DeleteItem"
}

// Chooser returns the fault of a request, or None if the request must not fail. A Client never
// calls its Chooser concurrently, so a Chooser needs no lock.
type Chooser func(Request) Kind

// Rates maps a kind of fault to its probability, from 0 to 1.
type Rates map[Kind]float64

// Random returns a Chooser that chooses faults at random. The rates in writes apply to
// TransactWriteItems requests. The rates in reads apply to all other requests. The same seed
// produces the same faults.
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

// kinds returns all kinds of faults except None, always in the same order.
func kinds() []Kind {
	return []Kind{ThroughputExceeded, Throttling, InternalServerError, TransactionConflict, TransactionInProgress, ConnectionRefused, ExpiredIterator, TrimmedData, LimitExceeded, Delayed, ConnectionReset, ResponseTimeout, TruncatedResponse, Unprocessed}
}

// HTTPClient is the interface of the HTTP clients that the AWS SDK accepts.
type HTTPClient interface {
	Do(*http.Request) (*http.Response, error)
}

// Client is an HTTP client for the AWS SDK that makes requests fail on purpose. It is safe for
// concurrent use.
type Client struct {
	next        HTTPClient
	mu          sync.Mutex
	choose      Chooser
	counts      map[Kind]int
	lostCommits int
}

// TransientKinds returns the kinds of transient faults. After a transient fault, the same request
// may succeed if it is sent again.
func TransientKinds() []Kind {
	return []Kind{ThroughputExceeded, InternalServerError, ConnectionReset, Throttling, ResponseTimeout}
}

// FailFirstRequests returns a Chooser that makes the first len(kinds) requests of each DynamoDB
// operation fail. The n-th request of an operation fails with the n-th kind.
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

// WrapClient returns a copy of the client db. The function choose determines whether and how a
// request of the copy fails. The returned Client counts the faults.
func WrapClient(db *dynamodb.Client, choose Chooser) (*dynamodb.Client, *Client) {
	c := &Client{choose: choose, counts: map[Kind]int{}}
	return dynamodb.New(db.Options(), func(o *dynamodb.Options) {
		c.next = o.HTTPClient
		o.HTTPClient = c
		// With aws.NopRetryer, a request is never retried, even if the options of the request allow
		// retries. OneAttempt respects these options.
		if _, never := o.Retryer.(aws.NopRetryer); never {
			o.Retryer = OneAttempt()
		}
	}), c
}

// WrapStreamsClient returns a copy of a DynamoDB Streams client. The function choose determines
// whether and how a request of the copy fails. The copy does not retry requests. The returned
// Client counts the faults.
func WrapStreamsClient(streams *dynamodbstreams.Client, choose Chooser) (*dynamodbstreams.Client, *Client) {
	c := &Client{choose: choose, counts: map[Kind]int{}}
	return dynamodbstreams.New(streams.Options(), func(o *dynamodbstreams.Options) {
		c.next = o.HTTPClient
		o.HTTPClient = c
		o.Retryer = OneAttempt()
	}), c
}

// OneAttempt returns a retryer that sends each request only once by default. The options of a
// single request can still allow retries.
func OneAttempt() aws.Retryer {
	return retry.NewStandard(func(o *retry.StandardOptions) { o.MaxAttempts = 1 })
}

// Counts returns the number of faults of each kind that c has simulated.
func (c *Client) Counts() map[Kind]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.counts)
}

// LostCommits returns the number of transactions that DynamoDB committed, but whose responses c
// discarded or truncated.
func (c *Client) LostCommits() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lostCommits
}

// Stop turns off the faults. Afterwards, c forwards all requests unchanged.
func (c *Client) Stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.choose = func(Request) Kind { return None }
}

// Do sends a request to DynamoDB or simulates a fault. To simulate a network fault, Do returns an
// error. Do also returns the errors of the HTTP client that c wraps.
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

// chooseFault chooses the fault of a request and counts the fault. If the chosen fault does not
// apply to the request's operation, chooseFault returns None.
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

// forward sends the request r to DynamoDB, with the given body.
func (c *Client) forward(r *http.Request, body []byte) (*http.Response, error) {
	copied := r.Clone(r.Context())
	copied.Body, copied.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	copied.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	return c.next.Do(copied)
}

// loseResponse sends the request to DynamoDB, which executes it. Then loseResponse discards the
// response, or truncates it if kind is TruncatedResponse.
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

// truncatedBody is a reader that always fails. It follows the first half of a truncated response
// body.
type truncatedBody struct{}

func (truncatedBody) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// errorResponse returns an error response in DynamoDB's format.
func errorResponse(r *http.Request, status int, name, message string) (*http.Response, error) {
	return jsonResponse(r, status, map[string]any{"__type": name, "message": message})
}

// throughputResponse returns DynamoDB's response to a request that exceeds the provisioned
// throughput of the table.
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

// waitDelay waits for DelayTime. If ctx ends first, waitDelay returns the error of ctx.
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

// conflictResponse returns DynamoDB's response to a transaction that conflicts with another
// transaction. The conflict is on the first record that the transaction writes.
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
