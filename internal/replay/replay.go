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

// HTTP is what the SDK sends its requests through.
type HTTP interface {
	Do(*http.Request) (*http.Response, error)
}

// Client is an HTTP client that replays the answers to reads. All else goes to the engine, and what
// changes something empties what is kept. It is safe for concurrent use, but who reads while
// somebody writes may get for ever what was before.
type Client struct {
	engine   HTTP
	mu       sync.RWMutex
	kept     map[uint64]*answer
	requests atomic.Int64
	// transactions reports whether answers to TransactWriteItems are replayed, too.
	transactions atomic.Bool
	// recording reports whether Record was called. transaction is the number of transactions since
	// Record or Repeat.
	recording   atomic.Bool
	transaction atomic.Uint64
}

// answer is one that is kept. Header is shared by all its replays, as nobody changes the header of
// a response.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// Between returns a client of db's engine that replays, in front of it what production has: the
// SDK's retries, and credentials that are kept.
func Between(db *dynamodb.Client) (*dynamodb.Client, *Client) {
	c := &Client{engine: db.Options().HTTPClient, kept: map[uint64]*answer{}}
	return dynamodb.NewFromConfig(aws.Config{
		Region:       "us-east-1",
		Credentials:  aws.NewCredentialsCache(credentials.NewStaticCredentialsProvider("replay", "replay", "")),
		HTTPClient:   c,
		Retryer:      func() aws.Retryer { return retry.NewStandard() },
		BaseEndpoint: db.Options().BaseEndpoint,
	}), c
}

// Requests tells how many requests were made so far, replayed or not.
func (c *Client) Requests() int { return int(c.requests.Load()) }

// ReplayTransactions makes c replay the answer to TransactWriteItems, too. Each transaction has new
// IDs in it, so c does not compare their bodies: the engine makes the first one, and all later ones
// get the same answer and change nothing. The kept answers to reads stay. A benchmark can so make
// the same change any number of times.
func (c *Client) ReplayTransactions() { c.transactions.Store(true) }

// Record deletes all kept answers. From then on, c also keeps the answers to transactions, accepted
// or refused, in their order. After Repeat, an operation that is executed again gets the same answers
// and changes nothing. A test can so measure the same work any number of times.
func (c *Client) Record() {
	c.recording.Store(true)
	c.forget()
	c.Repeat()
}

// Repeat makes c replay the answers since Record from the first transaction on.
func (c *Client) Repeat() { c.transaction.Store(0) }

type countKey struct{}

// Counting returns a context whose requests are counted in n besides.
func Counting(ctx context.Context, n *atomic.Int64) context.Context {
	return context.WithValue(ctx, countKey{}, n)
}

// requests are reused once they are answered.
var requests = sync.Pool{New: func() any { return new(request) }}

// Do answers one request.
//
// Errors: those of reading the request, the context's, and those of the engine.
func (c *Client) Do(r *http.Request) (*http.Response, error) {
	c.requests.Add(1)
	if n, ok := r.Context().Value(countKey{}).(*atomic.Int64); ok {
		n.Add(1)
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	asked := requests.Get().(*request)
	defer requests.Put(asked)
	asked.body.Reset()
	if r.Body != nil {
		_, err := asked.body.ReadFrom(r.Body)
		r.Body.Close()
		if err != nil {
			return nil, fmt.Errorf("replay: read the request: %w", err)
		}
	}
	target := r.Header.Get("X-Amz-Target")
	key, ok := c.key(target, asked)
	if !ok {
		if changes(target) {
			defer c.forget()
		}
		return c.forward(r, asked.body.Bytes())
	}
	c.mu.RLock()
	kept := c.kept[key]
	c.mu.RUnlock()
	if kept == nil {
		response, err := c.forward(r, asked.body.Bytes())
		if err != nil || response.StatusCode != http.StatusOK && !(c.recording.Load() && changes(target)) {
			return response, err
		}
		if kept, err = keep(response); err != nil {
			return nil, err
		}
		c.mu.Lock()
		c.kept[key] = kept
		c.mu.Unlock()
	}
	return kept.response(r), nil
}

// key is the key under which the answer to a request is kept. It is false for a request that always
// goes to the engine.
func (c *Client) key(target string, asked *request) (uint64, bool) {
	switch target {
	case "DynamoDB_20120810.GetItem", "DynamoDB_20120810.BatchGetItem", "DynamoDB_20120810.Query":
		key, ok := asked.fingerprint(target)
		return mix(key, c.transaction.Load()), ok // a read after a transaction has another answer
	case "DynamoDB_20120810.TransactWriteItems":
		if c.recording.Load() {
			return mix(maphash.String(seed, target), c.transaction.Add(1)), true
		}
		return mix(maphash.String(seed, target), 0), c.transactions.Load()
	}
	return 0, false
}

// changes tells of an operation after which answers may be others.
func changes(target string) bool {
	_, operation, _ := strings.Cut(target, ".")
	for _, looking := range []string{"Describe", "List", "Scan", "Get", "TransactGet"} {
		if strings.HasPrefix(operation, looking) {
			return false
		}
	}
	return true
}

func (c *Client) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.kept)
}

// forward passes a request on, with a copy of this body.
func (c *Client) forward(r *http.Request, body []byte) (*http.Response, error) {
	again := r.Clone(r.Context())
	again.Body, again.ContentLength = io.NopCloser(bytes.NewReader(bytes.Clone(body))), int64(len(body))
	return c.engine.Do(again)
}

// keep reads an answer, and gives it the headers that DynamoDB's have. A Date would soon be wrong.
func keep(response *http.Response) (*answer, error) {
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("replay: read the answer: %w", err)
	}
	return &answer{status: response.StatusCode, body: body, header: http.Header{
		"Server":           {"Server"},
		"Content-Type":     {"application/x-amz-json-1.0"},
		"Content-Length":   {strconv.Itoa(len(body))},
		"Connection":       {"keep-alive"},
		"X-Amzn-Requestid": {"REPLAYEDREPLAYEDREPLAYEDREPLAYEDREPLAYEDREPLAYEDASUA"},
		"X-Amz-Crc32":      {strconv.FormatUint(uint64(crc32.ChecksumIEEE(body)), 10)},
	}}, nil
}

func (a *answer) response(r *http.Request) *http.Response {
	body := &replayed{}
	body.Reset(a.body)
	return &http.Response{
		Status: strconv.Itoa(a.status) + " " + http.StatusText(a.status), StatusCode: a.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: a.header, Body: body, ContentLength: int64(len(a.body)), Request: r,
	}
}

// replayed is the body of a response.
type replayed struct{ bytes.Reader }

// Close does nothing: there is no connection to give back.
func (*replayed) Close() error { return nil }

// ServeHTTP answers the same over HTTP, for servers that run as processes of their own.
func (c *Client) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	response, err := c.Do(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer response.Body.Close()
	for name, values := range response.Header {
		if name != "Connection" { // net/http's own
			w.Header()[name] = values
		}
	}
	w.WriteHeader(response.StatusCode)
	_, _ = io.Copy(w, response.Body)
}
