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

// The faults. Those of the first group keep a request from the engine, those of the second let it
// answer, in whole or in part.
const (
	// None is no fault.
	None Kind = ""

	// Throughput is DynamoDB's ProvisionedThroughputExceededException.
	Throughput Kind = "ProvisionedThroughputExceeded"
	// Throttling is DynamoDB's ThrottlingException.
	Throttling Kind = "Throttling"
	// Internal is DynamoDB's InternalServerError, with HTTP status 500.
	Internal Kind = "InternalServerError"
	// Conflict is another transaction that writes the same record: a TransactionCanceledException
	// for TransactWriteItems, a TransactionConflictException for a single write.
	Conflict Kind = "TransactionConflict"
	// InProgress is a TransactionInProgressException: the same transaction was sent before, and is
	// not done yet. It is only for TransactWriteItems.
	InProgress Kind = "TransactionInProgress"
	// Refused is a connection that cannot be made.
	Refused Kind = "connection refused"

	// Expired is the streams' ExpiredIteratorException. It is only for GetRecords.
	Expired Kind = "ExpiredIterator"
	// Trimmed is the streams' TrimmedDataAccessException: what was asked for is older than a day.
	// It is only for GetRecords.
	Trimmed Kind = "TrimmedDataAccess"
	// Limit is the streams' LimitExceededException: too many read one shard.
	Limit Kind = "LimitExceeded"

	// Reset is a connection that breaks when the engine has done what was asked, before its reply.
	Reset Kind = "connection reset after the commit"
	// Silence is a reply that does not come in time, though the engine has done what was asked.
	Silence Kind = "time-out after the commit"
	// Cut is a reply that ends in the middle. The SDK does not repeat such a request.
	Cut Kind = "reply cut off"
	// Unprocessed is a batch of which the engine sees the first half. It is only for batches of two
	// or more.
	Unprocessed Kind = "part of a batch unprocessed"
)

// Request is a request that can be made to fail.
type Request struct {
	// Operation is DynamoDB's, such as GetItem.
	Operation string
	// Body is its JSON.
	Body []byte
}

// Writes reports whether the request changes the table in a transaction.
func (r Request) Writes() bool { return r.Operation == "TransactWriteItems" }

// writesOne reports whether the request changes one record, outside a transaction.
func (r Request) writesOne() bool {
	return r.Operation == "PutItem" || r.Operation == "UpdateItem" || r.Operation == "DeleteItem"
}

// Chooser tells which fault a request meets. It is called by one goroutine at a time.
type Chooser func(Request) Kind

// Rates are the probabilities of faults.
type Rates map[Kind]float64

// Random chooses faults with the probabilities writes for transactions and reads for all else, from
// seed.
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

// kinds are all faults, in an order that does not change.
func kinds() []Kind {
	return []Kind{Throughput, Throttling, Internal, Conflict, InProgress, Refused, Expired, Trimmed, Limit, Reset, Silence, Cut, Unprocessed}
}

// HTTP is what the SDK sends its requests through.
type HTTP interface {
	Do(*http.Request) (*http.Response, error)
}

// Client is an HTTP client that lets requests fail. It is safe for concurrent use.
type Client struct {
	next   HTTP
	mu     sync.Mutex
	choose Chooser
	counts map[Kind]int
	lost   int
}

// Passing returns faults after which the same request may succeed.
func Passing() []Kind { return []Kind{Throughput, Internal, Reset, Throttling, Silence} }

// First returns a Chooser that lets the first requests of each operation meet these faults.
func First(kinds ...Kind) Chooser {
	met := map[string]int{}
	return func(r Request) Kind {
		if n := met[r.Operation]; n < len(kinds) {
			met[r.Operation]++
			return kinds[n]
		}
		return None
	}
}

// Between returns a client of db's engine with faults in between.
func Between(db *dynamodb.Client, choose Chooser) (*dynamodb.Client, *Client) {
	c := &Client{choose: choose, counts: map[Kind]int{}}
	return dynamodb.New(db.Options(), func(o *dynamodb.Options) {
		c.next = o.HTTPClient
		o.HTTPClient = c
		// A client that never tries again would not see a fault pass.
		if _, never := o.Retryer.(aws.NopRetryer); never {
			o.Retryer = OneAttempt()
		}
	}), c
}

// BetweenStreams returns a client of the same streams with faults in between, which makes each
// request once.
func BetweenStreams(streams *dynamodbstreams.Client, choose Chooser) (*dynamodbstreams.Client, *Client) {
	c := &Client{choose: choose, counts: map[Kind]int{}}
	return dynamodbstreams.New(streams.Options(), func(o *dynamodbstreams.Options) {
		c.next = o.HTTPClient
		o.HTTPClient = c
		o.Retryer = OneAttempt()
	}), c
}

// OneAttempt is the retryer of a client that makes each request once, except those that are told to
// be persistent.
func OneAttempt() aws.Retryer {
	return retry.NewStandard(func(o *retry.StandardOptions) { o.MaxAttempts = 1 })
}

// Counts tells how many faults of each kind there were.
func (c *Client) Counts() map[Kind]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.counts)
}

// LostCommits tells how many transactions were made and their replies lost.
func (c *Client) LostCommits() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lost
}

// Heal ends the faults.
func (c *Client) Heal() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.choose = func(Request) Kind { return None }
}

// Do sends a request, or lets it fail.
//
// Errors: those of the connection, and of the client beneath.
func (c *Client) Do(r *http.Request) (*http.Response, error) {
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body.Close()
	asked := Request{Operation: operation, Body: body}
	kind := c.pick(asked)
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
		if asked.writesOne() {
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
		return c.half(r, asked)
	default:
		return c.lose(r, asked, kind)
	}
}

// pick chooses a request's fault, and counts it where the request can meet it.
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

// send passes a request on, with this body.
func (c *Client) send(r *http.Request, body []byte) (*http.Response, error) {
	again := r.Clone(r.Context())
	again.Body, again.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	again.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	return c.next.Do(again)
}

// lose lets the engine answer, and loses the reply.
func (c *Client) lose(r *http.Request, asked Request, kind Kind) (*http.Response, error) {
	response, err := c.send(r, asked.Body)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	reply, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if asked.Writes() && response.StatusCode == http.StatusOK {
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

// broken is the end of a reply that was cut off.
type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// answer is an error of DynamoDB's.
func answer(r *http.Request, status int, name, message string) (*http.Response, error) {
	return reply(r, status, map[string]any{"__type": name, "message": message})
}

// conflict cancels a transaction because of another one that has to do with its first record.
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
