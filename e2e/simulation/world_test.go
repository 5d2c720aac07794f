package simulation_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/google/uuid"

	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/feed"
	"github.com/ordergraph/ordergraph/embedded"
	"github.com/ordergraph/ordergraph/graph"
	"github.com/ordergraph/ordergraph/graph/paging"
	"github.com/ordergraph/ordergraph/internal/auth"
	"github.com/ordergraph/ordergraph/internal/server"
	"github.com/ordergraph/ordergraph/internal/test/authtest"
	"github.com/ordergraph/ordergraph/internal/test/faults"
	"github.com/ordergraph/ordergraph/internal/test/receivers"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
	"github.com/ordergraph/ordergraph/internal/test/workload"
	"github.com/ordergraph/ordergraph/internal/webhook"
)

// The processes of a simulation.
const (
	servers     = 3
	clients     = 5
	subscribers = 3
)

// fixture has few products and customers, so that clients often change the same records.
var fixture = workload.Fixture{Customers: 4, Products: 3, Warehouses: 2, Employees: 2, Stock: 12, ReorderPoint: 8}

// world is a shop in virtual time: an engine, servers, clients and receivers of webhooks.
type world struct {
	*testing.T
	scenario
	*seam
	engine   *embedded.Store
	db       *dynamodb.Client
	table    string
	admin    *dynamo.Store
	start    time.Time
	token    authtest.Key
	faults   faultCounts
	injector *injector
	drive    *drive // drive is nil if the engine is in memory
	index    *index // index is nil if the index is up to date
	stream   *sharded

	network *receivers.Network
	hooks   []*hook
	log     *storetest.Log

	mu      sync.Mutex
	servers []*process
	// used contains the decisions of the simulation that had an effect.
	used []string
	// story describes what clients and operators have done, and the faults.
	story []string
	// calm is true when faults have ended, so that all processes can catch up.
	calm bool
	// damaged is true after a record was damaged, until all records are repaired. damages is the number
	// of damaged records.
	damaged  bool
	damages  int
	findings []string
	history  history
	// unchecked are the checks to do after the simulation.
	unchecked []func() []string
	readers   readers
}

// begin begins a simulation at its start.
func begin(t *testing.T, s scenario) *world {
	time.Sleep(time.Until(time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC))) // the clock of a bubble begins in 2000
	w := &world{
		T: t, scenario: s, seam: newSeam(s.Seed), table: "shop", token: authtest.Key{ID: "k", Algorithm: "HS256", Private: []byte("a secret of at least 32 bytes, for tests")},
		faults: faultCounts{}, network: receivers.NewNetwork(t), log: &storetest.Log{},
	}
	w.keepsLines = s.compared
	w.openEngine()
	w.db = w.engine.Client(func(o *dynamodb.Options) { o.HTTPClient = currentEngine{w} })
	w.admin = storetest.NewTable(t, w.db, dynamo.Options{Table: w.table, OrderExpiry: orderExpiry, Shards: s.Shards})
	w.prepare()
	if err := w.admin.EnableStream(t.Context()); err != nil { // now, because the dataset is loaded in parallel
		t.Fatal(err)
	}
	time.Sleep(time.Second)
	w.injector, w.stream = w.newInjector(), newSharded(s.Retention, w.sendToStream)
	w.start = time.Now()
	return w
}

// elapsed returns the time since the start.
func (w *world) elapsed() time.Duration { return time.Since(w.start).Round(time.Microsecond) }

// found reports a broken promise.
func (w *world) found(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.findings = append(w.findings, fmt.Sprintf(format, args...))
}

// decide reports whether a decision of the simulation takes effect. It does unless the scenario
// contains only others.
func (w *world) decide(decision string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.calm || w.Only != nil && !w.Only[decision] {
		return false
	}
	w.used = append(w.used, decision)
	if !strings.HasPrefix(decision, "client") || strings.Contains(decision, ": ") {
		w.tellLocked("%s", decision)
	}
	return true
}

// watchDamage returns a function that reports whether a record has been damaged at any time since now.
// Requests that need it may fail.
func (w *world) watchDamage() func() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	before, damages := w.damaged, w.damages
	return func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return before || w.damages > damages
	}
}

// tell adds a line to the story.
func (w *world) tell(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tellLocked(format, args...)
}

func (w *world) tellLocked(format string, args ...any) {
	w.story = append(w.story, fmt.Sprintf("%14s  ", w.elapsed())+fmt.Sprintf(format, args...))
}

// process is a server.
type process struct {
	w       *world
	name    string
	handler http.Handler
	feed    *feed.Feed
	sender  *webhook.Sender
	// ctx ends when the server is killed.
	ctx  context.Context
	kill context.CancelFunc
	// stopping ends when the server shuts down.
	stopping context.Context
	stop     context.CancelFunc
	running  sync.WaitGroup

	mu sync.Mutex
	// cutOff is true while the server cannot reach the store. skew is the error of its clock, and drift
	// its growth in each second since driftsSince.
	cutOff      bool
	skew        time.Duration
	drift       float64
	driftsSince time.Time
}

// now returns the time of the server's clock.
func (p *process) now() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	return now.Add(p.skew + time.Duration(p.drift*float64(now.Sub(p.driftsSince))))
}

func (p *process) isCutOff() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cutOff
}

// startServer starts a server with the given number.
func (w *world) startServer(number int) *process {
	p := &process{w: w, name: fmt.Sprintf("server %d", number), driftsSince: time.Now()}
	p.ctx, p.kill = context.WithCancel(context.Background())
	p.stopping, p.stop = context.WithCancel(p.ctx)
	client := &storeClient{w: w, from: p.name, process: p}
	db := client.dynamoDB()
	logger := slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	store, err := dynamo.New(db, dynamo.Options{Table: w.table, Clock: p.now, Log: logger, OrderExpiry: orderExpiry})
	if err != nil {
		w.Fatal(err)
	}
	for store.Ping(p.ctx) != nil && p.ctx.Err() == nil { // as a server does before it listens
		time.Sleep(100 * time.Millisecond)
	}
	authenticator, err := auth.New(p.ctx, auth.Options{Secret: w.token.Private.([]byte), Issuer: authtest.Issuer, Audience: authtest.Audience, RoleClaim: "role", CustomerClaim: "customer", Leeway: time.Minute, Log: logger})
	if err != nil {
		w.Fatal(err)
	}
	streams := dynamodbstreams.New(dynamodbstreams.Options{Region: "us-east-1", Credentials: db.Options().Credentials, BaseEndpoint: db.Options().BaseEndpoint, HTTPClient: client, Retryer: faults.OneAttempt()})
	p.feed = store.OpenFeed(feed.StreamSource(streams, feed.StreamOptions{MinPause: time.Second, MaxPause: 20 * time.Second, Retention: w.Retention}), feed.Options{Log: logger})
	options := graph.Options{Store: store, Feed: p.feed, Cursors: paging.NewCursorSigner([]byte("a key for tests"))}
	p.handler, err = server.New(server.Options{Graph: options, Auth: authenticator, Log: logger, NoGraphiQL: true})
	if err != nil {
		w.Fatal(err)
	}
	if len(w.hooks) > 0 {
		p.sender = webhook.NewSender(w.network.SenderOptions())
		dispatcher := webhook.NewDispatcher(webhook.Options{
			Store: store, Sender: p.sender, Secrets: webhookSecrets, Execute: webhook.NewExecute(options), PollInterval: 20 * time.Second, Source: "urn:ordergraph:test", Log: logger,
		})
		p.running.Go(func() { dispatcher.Run(p.stopping) })
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.servers = append(slices.DeleteFunc(w.servers, func(other *process) bool { return other.name == p.name }), p)
	slices.SortFunc(w.servers, func(a, b *process) int { return strings.Compare(a.name, b.name) })
	return p
}

// end ends a server. If it shuts down, it completes the requests in progress.
func (p *process) end(killed bool) {
	w := p.w
	w.mu.Lock()
	w.servers = slices.DeleteFunc(w.servers, func(other *process) bool { return other == p })
	w.mu.Unlock()
	if killed {
		p.kill()
	}
	p.stop()
	p.feed.Close()
	p.running.Wait()
	if p.sender != nil {
		p.sender.Close()
	}
	p.kill()
}

// server returns a running server. If none runs, it returns nil.
func (w *world) server(choice int) *process {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.servers) == 0 {
		return nil
	}
	return w.servers[choice%len(w.servers)]
}

// storeClient sends the requests of a process to the engine.
type storeClient struct {
	w       *world
	from    string
	process *process // process is nil for a command
}

var (
	errUnreachable = &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("no route to host")}
	errKilled      = errors.New("the process was killed")
)

// dynamoDB returns an SDK client that retries requests.
func (c *storeClient) dynamoDB() *dynamodb.Client {
	return dynamodb.New(c.w.db.Options(), func(o *dynamodb.Options) {
		o.HTTPClient, o.Retryer, o.IdempotencyTokenProvider = c, retry.NewStandard(), randomTokens{}
	})
}

// randomTokens generates ClientRequestToken values, like the AWS SDK. The tokens of the embedded
// store's client also depend on earlier simulations.
type randomTokens struct{}

// GetIdempotencyToken returns a UUID of version 4.
func (randomTokens) GetIdempotencyToken() (string, error) {
	id, err := uuid.NewRandom()
	return id.String(), err
}

// The maximum latencies of requests to the store, and of clients.
const (
	storeLatency  = 4 * time.Millisecond
	clientLatency = 20 * time.Millisecond
	// longLatency is the latency of a request that arrives late.
	longLatency = 40 * time.Second
)

// Do sends a request.
func (c *storeClient) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	if operation == "Scan" && !bytes.Contains(body, []byte(`"Limit"`)) {
		body = slices.Concat([]byte(`{"Limit":50,`), body[1:]) // the table has several pages, like a large one
	}
	ctx := r.Context()
	if c.process != nil {
		if c.process.ctx.Err() != nil {
			return nil, errKilled // its goroutines end later
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(c.process.ctx, cancel)()
	}
	content := fingerprint(requestToken.ReplaceAll(body, nil))
	request := r.Clone(context.WithoutCancel(ctx))
	request.Body = io.NopCloser(bytes.NewReader(body))
	var response *http.Response
	var failure error
	forRequest, _ := ctx.Value(requestKey{}).(string)
	sent := &interaction{from: c.from, name: operation, content: content, forRequest: forRequest, latency: storeLatency, delay: c.w.delayRequest}
	var reply time.Duration
	sent.run = func() string {
		if failure = errUnreachable; c.process == nil || !c.process.isCutOff() {
			response, reply, failure = c.w.executeOnDisk(sent, request, body)
		}
		return digest(response, failure)
	}
	if err := c.w.do(ctx, sent); err != nil {
		return nil, err
	}
	if failure != nil {
		return nil, failure
	}
	replied := &interaction{from: c.from, name: operation + " reply", content: content, forRequest: forRequest, latency: storeLatency + reply, run: func() string { return "" }}
	if err := c.w.do(ctx, replied); err != nil {
		return nil, err
	}
	if c.process != nil && c.process.isCutOff() {
		return nil, errUnreachable
	}
	return response, nil
}

// requestToken matches the token of a transaction, which has no effect except on repetitions of the request.
// Goroutines that draw tokens at the same time can run in any sequence.
var requestToken = regexp.MustCompile(`"ClientRequestToken":"[^"]*"`)

// fingerprint returns a hash of a JSON text that does not depend on the sequence of its members. The
// SDK encodes maps in a random sequence.
func fingerprint(text []byte) string {
	const offset, prime = 14695981039346656037, 1099511628211 // FNV-1a
	sum, word := uint64(len(text)), uint64(offset)
	for _, c := range text {
		switch c {
		case '{', '}', '[', ']', ',', ':', '"':
			sum += (word ^ word>>29) * prime
			word = offset
		default:
			word = (word ^ uint64(c)) * prime
		}
	}
	return strconv.FormatUint(sum, 16)
}

// digest returns a short text for the trace.
func digest(r *http.Response, err error) string {
	if err != nil {
		return err.Error()
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err.Error()
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return strconv.Itoa(r.StatusCode) + " " + fingerprint(body)
}

// requestKey is the key of a context's value for the name of a client's request.
type requestKey struct{}

// RoundTrip sends a request of a client to a server. The host of its URL is the number of the
// server, and its user agent the name of the client.
func (w *world) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	from := r.Header.Get("User-Agent")
	ctx := r.Context()
	var p *process
	arrival := &interaction{from: from, name: "request", content: string(body), latency: clientLatency}
	lost, late := false, time.Duration(0)
	arrival.run = func() string {
		p = w.server(int(r.URL.Host[0] - '0'))
		lost, late = w.clientFaults(arrival)
		return fmt.Sprint(p != nil, lost, late)
	}
	if err := w.do(ctx, arrival); err != nil {
		return nil, err
	}
	if p == nil || lost && late > 0 {
		return nil, errUnreachable
	}
	requestContext, cancel := context.WithCancel(context.WithValue(p.ctx, requestKey{}, arrival.String()))
	inner := httptest.NewRequest(r.Method, "http://localhost"+r.URL.Path, bytes.NewReader(body)).WithContext(requestContext)
	inner.Header = r.Header.Clone()
	inner.RemoteAddr = "192.0.2.1:1234"
	writer := newResponseWriter()
	p.running.Go(func() {
		defer cancel()
		defer writer.close()
		p.handler.ServeHTTP(writer, inner)
	})
	stopped := context.AfterFunc(ctx, cancel)
	if strings.Contains(r.Header.Get("Accept"), "event-stream") {
		select {
		case <-writer.started:
			return writer.response(r), nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	defer stopped()
	select {
	case <-writer.closed:
	case <-p.ctx.Done():
		return nil, errKilled
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if err := w.do(ctx, &interaction{from: from, name: "response", latency: clientLatency + late, run: func() string { return fmt.Sprintf("%d %s", writer.status, writer.text()) }}); err != nil {
		return nil, err
	}
	if p.ctx.Err() != nil {
		return nil, errKilled
	}
	if lost {
		return nil, errUnreachable
	}
	return writer.response(r), nil
}

// responseWriter is the response of a server. A client can read it while the server writes it.
type responseWriter struct {
	header          http.Header
	started, closed chan struct{}
	status          int

	mu      sync.Mutex
	body    bytes.Buffer
	ended   bool
	written chan struct{}
}

func newResponseWriter() *responseWriter {
	return &responseWriter{header: http.Header{}, started: make(chan struct{}), closed: make(chan struct{}), written: make(chan struct{}, 1)}
}

// Header implements http.ResponseWriter.
func (w *responseWriter) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *responseWriter) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
		close(w.started)
	}
}

// Write implements http.ResponseWriter.
func (w *responseWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notify()
	return w.body.Write(p)
}

// Flush implements http.Flusher.
func (w *responseWriter) Flush() {}

func (w *responseWriter) notify() {
	select {
	case w.written <- struct{}{}:
	default:
	}
}

func (w *responseWriter) close() {
	w.WriteHeader(http.StatusOK)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	w.notify()
	close(w.closed)
}

func (w *responseWriter) text() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.body.String()
}

// Read reads the body. It waits for the next bytes.
func (w *responseWriter) Read(p []byte) (int, error) {
	for {
		w.mu.Lock()
		if w.body.Len() > 0 || w.ended {
			n, err := w.body.Read(p)
			w.mu.Unlock()
			return n, err
		}
		w.mu.Unlock()
		select {
		case <-w.written:
		case <-w.closed:
		}
	}
}

// Close implements io.Closer.
func (w *responseWriter) Close() error { return nil }

func (w *responseWriter) response(r *http.Request) *http.Response {
	return &http.Response{StatusCode: w.status, Status: http.StatusText(w.status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: w.header, Body: w, ContentLength: -1, Request: r}
}
