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

	// Throughput is DynamoDB's ProvisionedThroughputExceededException.
	Throughput Kind = "ProvisionedThroughputExceeded"
	// Throttling is DynamoDB's ThrottlingException.
	Throttling Kind = "Throttling"
	// Internal is DynamoDB's InternalServerError, with HTTP status 500.
	Internal Kind = "InternalServerError"
	// Conflict means that another transaction writes the same record. It is a
	// TransactionCanceledException for TransactWriteItems and a TransactionConflictException for a
	// single write.
	Conflict Kind = "TransactionConflict"
	// InProgress is a TransactionInProgressException: the same transaction was sent before and has not
	// ended. It is only for TransactWriteItems.
	InProgress Kind = "TransactionInProgress"
	// Refused means that the connection is refused.
	Refused Kind = "connection refused"

	// Expired is the ExpiredIteratorException of DynamoDB Streams. It is only for GetRecords.
	Expired Kind = "ExpiredIterator"
	// Trimmed is the TrimmedDataAccessException of DynamoDB Streams: the requested records are older
	// than a day. It is only for GetRecords.
	Trimmed Kind = "TrimmedDataAccess"
	// Limit is the LimitExceededException of DynamoDB Streams: too many clients read one shard.
	Limit Kind = "LimitExceeded"

	// Reset means that the connection breaks after the engine has executed the request, before the
	// response arrives.
	Reset Kind = "connection reset after the commit"
	// Silence means that the response does not arrive in time, but the engine has executed the
	// request.
	Silence Kind = "time-out after the commit"
	// Cut means that the response ends in the middle. The SDK does not repeat such a request.
	Cut Kind = "reply cut off"
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

// Writes reports whether the request is a write transaction.
func (r Request) Writes() bool { return r.Operation == "TransactWriteItems" }

// writesOne reports whether the request writes one record outside a transaction.
func (r Request) writesOne() bool {
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
		if r.Writes() {
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
	return []Kind{Throughput, Throttling, Internal, Conflict, InProgress, Refused, Expired, Trimmed, Limit, Reset, Silence, Cut, Unprocessed}
}

// HTTP is the SDK's interface for an HTTP client.
type HTTP interface {
	Do(*http.Request) (*http.Response, error)
}

// Client is an HTTP client that makes requests fail. It is safe for concurrent use.
type Client struct {
	next   HTTP
	mu     sync.Mutex
	choose Chooser
	counts map[Kind]int
	lost   int
}

// Passing returns transient faults: the same request may succeed later.
func Passing() []Kind { return []Kind{Throughput, Internal, Reset, Throttling, Silence} }

// First returns a Chooser with fixed faults for the first requests of each operation, in order.
func First(kinds ...Kind) Chooser {
	counts := map[string]int{}
	return func(r Request) Kind {
		if n := counts[r.Operation]; n < len(kinds) {
			counts[r.Operation]++
			return kinds[n]
		}
		return None
	}
}

// Between returns a client of db's engine whose requests meet the faults of choose.
func Between(db *dynamodb.Client, choose Chooser) (*dynamodb.Client, *Client) {
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

// BetweenStreams returns a client of the same streams whose requests meet the faults of choose. The
// SDK makes one attempt per request.
func BetweenStreams(streams *dynamodbstreams.Client, choose Chooser) (*dynamodbstreams.Client, *Client) {
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
	return c.lost
}

// Heal stops the faults.
func (c *Client) Heal() {
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
	kind := c.pick(request)
	switch kind {
	case None:
		return c.send(r, body)
	case Throughput:
		return answer(r, http.StatusBadRequest, "com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException",
			"The level of configured provisioned throughput for the table was exceeded. Consider increasing your provisioning level with the UpdateTable API.")
	case Throttling:
		return answer(r, http.StatusBadRequest, "com.amazon.coral.availability#ThrottlingException", "Rate of requests exceeds the allowed throughput.")
	case Internal:
		return answer(r, http.StatusInternalServerError, "com.amazonaws.dynamodb.v20120810#InternalServerError", "Internal server error")
	case Conflict:
		if request.writesOne() {
			return answer(r, http.StatusBadRequest, "com.amazonaws.dynamodb.v20120810#TransactionConflictException", "Transaction is ongoing for the item")
		}
		return conflict(r, body)
	case InProgress:
		return answer(r, http.StatusBadRequest, "com.amazonaws.dynamodb.v20120810#TransactionInProgressException",
			"The transaction with the given request token is already in progress.")
	case Expired:
		return answer(r, http.StatusBadRequest, "com.amazonaws.dynamodb.v20120810#ExpiredIteratorException", "Iterator is older than 15 minutes")
	case Trimmed:
		return answer(r, http.StatusBadRequest, "com.amazonaws.dynamodb.v20120810#TrimmedDataAccessException", "The operation attempted to read past the oldest stream record in a shard.")
	case Limit:
		return answer(r, http.StatusBadRequest, "com.amazonaws.dynamodb.v20120810#LimitExceededException", "Too many requests for this shard")
	case Refused:
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	case Unprocessed:
		return c.half(r, request)
	default:
		return c.lose(r, request, kind)
	}
}

// pick chooses the fault of a request and counts it. If the fault does not apply to the request,
// there is no fault.
func (c *Client) pick(r Request) Kind {
	c.mu.Lock()
	defer c.mu.Unlock()
	kind := c.choose(r)
	if kind == Conflict && !r.Writes() && !r.writesOne() || kind == InProgress && !r.Writes() || kind == Unprocessed && batchSize(r) < 2 ||
		(kind == Expired || kind == Trimmed) && r.Operation != "GetRecords" {
		kind = None
	}
	if kind != None {
		c.counts[kind]++
	}
	return kind
}

// send sends the request to the engine with the given body.
func (c *Client) send(r *http.Request, body []byte) (*http.Response, error) {
	copied := r.Clone(r.Context())
	copied.Body, copied.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	copied.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	return c.next.Do(copied)
}

// lose lets the engine execute the request and loses the response.
func (c *Client) lose(r *http.Request, request Request, kind Kind) (*http.Response, error) {
	response, err := c.send(r, request.Body)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	reply, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if request.Writes() && response.StatusCode == http.StatusOK {
		c.mu.Lock()
		c.lost++
		c.mu.Unlock()
	}
	switch kind {
	case Cut:
		response.Body = io.NopCloser(io.MultiReader(bytes.NewReader(reply[:len(reply)/2]), broken{}))
		return response, nil
	case Silence:
		return nil, &net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}
	default:
		return nil, &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
	}
}

// broken is the end of a truncated response body.
type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// answer returns an error response of DynamoDB.
func answer(r *http.Request, status int, name, message string) (*http.Response, error) {
	return reply(r, status, map[string]any{"__type": name, "message": message})
}

// conflict returns the response to a transaction that conflicts with another transaction about its
// first record.
func conflict(r *http.Request, body []byte) (*http.Response, error) {
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
	return reply(r, http.StatusBadRequest, map[string]any{
		"__type":              "com.amazonaws.dynamodb.v20120810#TransactionCanceledException",
		"Message":             fmt.Sprintf("Transaction cancelled, please refer cancellation reasons for specific reasons [%s]", strings.Join(codes, ", ")),
		"CancellationReasons": reasons,
	})
}

func reply(r *http.Request, status int, body any) (*http.Response, error) {
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
