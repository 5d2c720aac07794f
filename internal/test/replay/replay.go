package replay

import (
	"bytes"
	"context"
	"fmt"
	"hash/crc32"
	"hash/maphash"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// HTTPClient is the interface of the HTTP clients that the AWS SDK accepts.
type HTTPClient interface {
	Do(*http.Request) (*http.Response, error)
}

// Client is an HTTP client that replays the responses to reads. By default, a write deletes all
// stored responses. A Client is safe for concurrent use, but a read during a write may store an
// outdated response.
type Client struct {
	engine       HTTPClient
	mu           sync.RWMutex
	responses    map[uint64]*storedResponse
	requestCount atomic.Int64
	// replayTransactions reports whether the responses to TransactWriteItems are also replayed.
	replayTransactions atomic.Bool
	// recording reports whether Record has been called. transactionIndex is the number of transactions
	// since the last call of Record or Rewind.
	recording        atomic.Bool
	transactionIndex atomic.Uint64
}

// storedResponse is a stored response. All replayed responses share the header, because the SDK
// does not change the headers of responses.
type storedResponse struct {
	status int
	header http.Header
	body   []byte
}

// WrapClient returns a DynamoDB client that uses the returned Client as its HTTP client. If the
// Client has no response to replay, it sends the request through the HTTP client of db.
func WrapClient(db *dynamodb.Client) (*dynamodb.Client, *Client) {
	c := &Client{engine: db.Options().HTTPClient, responses: map[uint64]*storedResponse{}}
	// The DynamoDB client retries requests and caches credentials as in production.
	return dynamodb.NewFromConfig(aws.Config{
		Region:       "us-east-1",
		Credentials:  aws.NewCredentialsCache(credentials.NewStaticCredentialsProvider("replay", "replay", "")),
		HTTPClient:   c,
		Retryer:      func() aws.Retryer { return retry.NewStandard() },
		BaseEndpoint: db.Options().BaseEndpoint,
	}), c
}

// RequestCount returns the number of requests that c has received, including those with a replayed
// response.
func (c *Client) RequestCount() int { return int(c.requestCount.Load()) }

// ReplayTransactions makes c also replay the response to TransactWriteItems. Only the first
// transaction is sent to DynamoDB. Each later transaction gets the same response, even if its body
// differs.
func (c *Client) ReplayTransactions() { c.replayTransactions.Store(true) }

// Record deletes all stored responses and starts storing the response to each transaction. After
// Rewind, c replays the stored responses in the same order.
func (c *Client) Record() {
	c.recording.Store(true)
	c.deleteResponses()
	c.Rewind()
}

// Rewind makes c replay the recorded transactions again, starting with the first one.
func (c *Client) Rewind() { c.transactionIndex.Store(0) }

type requestCounterKey struct{}

// WithRequestCounter returns a copy of ctx that contains the counter n. For each request with the
// returned context, the client increments n.
func WithRequestCounter(ctx context.Context, n *atomic.Int64) context.Context {
	return context.WithValue(ctx, requestCounterKey{}, n)
}

// requestPool contains fingerprinters that are no longer in use, so that they can be reused.
var requestPool = sync.Pool{New: func() any { return new(fingerprinter) }}

// Do returns the stored response to a request, or sends the request to DynamoDB. If the body cannot
// be read, the context has ended, or DynamoDB cannot be reached, Do returns an error.
func (c *Client) Do(r *http.Request) (*http.Response, error) {
	c.requestCount.Add(1)
	if n, ok := r.Context().Value(requestCounterKey{}).(*atomic.Int64); ok {
		n.Add(1)
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	buffered := requestPool.Get().(*fingerprinter)
	defer requestPool.Put(buffered)
	buffered.body.Reset()
	if r.Body != nil {
		_, err := buffered.body.ReadFrom(r.Body)
		r.Body.Close()
		if err != nil {
			return nil, fmt.Errorf("replay: read the request: %w", err)
		}
	}
	target := r.Header.Get("X-Amz-Target")
	key, ok := c.cacheKey(target, buffered)
	if !ok {
		if mayWrite(target) {
			defer c.deleteResponses()
		}
		return c.forward(r, buffered.body.Bytes())
	}
	c.mu.RLock()
	stored := c.responses[key]
	c.mu.RUnlock()
	if stored == nil {
		response, err := c.forward(r, buffered.body.Bytes())
		if err != nil || response.StatusCode != http.StatusOK && !(c.recording.Load() && mayWrite(target)) {
			return response, err
		}
		if stored, err = readResponse(response); err != nil {
			return nil, err
		}
		c.mu.Lock()
		c.responses[key] = stored
		c.mu.Unlock()
	}
	return stored.response(r), nil
}

// cacheKey returns the key under which the response to a request is stored. If the request must be
// sent to DynamoDB, cacheKey returns false.
func (c *Client) cacheKey(target string, buffered *fingerprinter) (uint64, bool) {
	switch target {
	case "DynamoDB_20120810.GetItem", "DynamoDB_20120810.BatchGetItem", "DynamoDB_20120810.Query":
		key, ok := buffered.fingerprint(target)
		return combineHashes(key, c.transactionIndex.Load()), ok // a transaction can change the response to the same read
	case "DynamoDB_20120810.TransactWriteItems":
		if c.recording.Load() {
			return combineHashes(maphash.String(hashSeed, target), c.transactionIndex.Add(1)), true
		}
		return combineHashes(maphash.String(hashSeed, target), 0), c.replayTransactions.Load()
	}
	return 0, false
}

// mayWrite reports whether an operation can change the responses to later reads.
func mayWrite(target string) bool {
	_, operation, _ := strings.Cut(target, ".")
	for _, read := range []string{"Describe", "List", "Scan", "Get", "TransactGet"} {
		if strings.HasPrefix(operation, read) {
			return false
		}
	}
	return true
}

func (c *Client) deleteResponses() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.responses)
}

// forward sends the request to DynamoDB. It sends a copy of body, because the caller reuses the
// buffer.
func (c *Client) forward(r *http.Request, body []byte) (*http.Response, error) {
	copied := r.Clone(r.Context())
	copied.Body, copied.ContentLength = io.NopCloser(bytes.NewReader(bytes.Clone(body))), int64(len(body))
	return c.engine.Do(copied)
}

// readResponse reads a response and returns its status and body with new headers. The new headers
// are similar to DynamoDB's headers. They do not include Date, because a stored date would soon be
// wrong.
func readResponse(response *http.Response) (*storedResponse, error) {
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("replay: read the response: %w", err)
	}
	return &storedResponse{status: response.StatusCode, body: body, header: http.Header{
		"Server":           {"Server"},
		"Content-Type":     {"application/x-amz-json-1.0"},
		"Content-Length":   {strconv.Itoa(len(body))},
		"Connection":       {"keep-alive"},
		"X-Amzn-Requestid": {"REPLAYEDREPLAYEDREPLAYEDREPLAYEDREPLAYEDREPLAYEDASUA"},
		"X-Amz-Crc32":      {strconv.FormatUint(uint64(crc32.ChecksumIEEE(body)), 10)},
	}}, nil
}

func (a *storedResponse) response(r *http.Request) *http.Response {
	body := &responseBody{}
	body.Reset(a.body)
	return &http.Response{
		Status: strconv.Itoa(a.status) + " " + http.StatusText(a.status), StatusCode: a.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: a.header, Body: body, ContentLength: int64(len(a.body)), Request: r,
	}
}

// responseBody is the body of a replayed response.
type responseBody struct{ bytes.Reader }

// Close does nothing, because a replayed response has no connection.
func (*responseBody) Close() error { return nil }

// ServeHTTP replays responses for an Ordergraph server that runs in another process. The server
// uses c as its DynamoDB endpoint.
func (c *Client) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	response, err := c.Do(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer response.Body.Close()
	for name, values := range response.Header {
		if name != "Connection" { // net/http sets this header itself
			w.Header()[name] = values
		}
	}
	w.WriteHeader(response.StatusCode)
	_, _ = io.Copy(w, response.Body)
}
