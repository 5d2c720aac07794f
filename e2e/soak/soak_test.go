//go:build linux

// Package soak_test keeps the built server at its limit, with DynamoDB's answers replayed, and
// looks whether it stays as large as it is: its memory has to be flat, and when its clients are
// gone, no goroutine of theirs may be left.
//
// For some seconds it is a test like others; `go test ./e2e/soak -v -for 10m -timeout 20m` is the
// real thing.
package soak_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/bulk"
	"github.com/ordergraph/ordergraph/internal/embedded"
	"github.com/ordergraph/ordergraph/internal/longtest"
	"github.com/ordergraph/ordergraph/internal/replay"
	"github.com/ordergraph/ordergraph/internal/sampledata"
	"github.com/ordergraph/ordergraph/internal/server"
	"github.com/ordergraph/ordergraph/internal/shoptest"
	"github.com/ordergraph/ordergraph/internal/storetest"
)

var duration = flag.Duration("for", longtest.Size(2*time.Second, 6*time.Second), "how long the server is kept busy")

const (
	// clients is how many requests are in flight at any time: enough that the server never waits
	// for one.
	clients = 32
	// distinct is how many requests there are, apart from the documents; the built-in store, which
	// is slow, answers each once.
	distinct = 40
	// samplePause is how far samples are apart.
	samplePause = 200 * time.Millisecond
	// patience catches what hangs.
	patience = time.Minute
)

// table is an endpoint of DynamoDB with a book, whose answers are replayed.
type table struct {
	book     *sampledata.Generator
	endpoint *httptest.Server
	replayed *replay.Client
	name     string
}

func newTable(t *testing.T) *table {
	t.Helper()
	shape := sampledata.DefaultShape()
	shape.Customers, shape.Products, shape.Orders, shape.FewestItems, shape.MostItems = distinct, 40, 400, 3, 3
	book, err := sampledata.NewGenerator(t.Context(), shape)
	if err != nil {
		t.Fatal(err)
	}
	db, replayed := replay.Between(embedded.New().Client())
	made := &table{book: book, replayed: replayed, name: storetest.TableName()}
	store := storetest.NewTable(t, db, dynamo.Options{Table: made.name})
	for _, parts := range []func() (bulk.Loaded, error){
		func() (bulk.Loaded, error) { return store.LoadAll(t.Context(), book.Stock(), nil) },
		func() (bulk.Loaded, error) { return store.LoadAll(t.Context(), book.Orders(0), nil) },
	} {
		if _, err := parts(); err != nil {
			t.Fatal(err)
		}
	}
	made.endpoint = httptest.NewServer(replayed)
	t.Cleanup(made.endpoint.Close)
	return made
}

// start starts a server on the table. The collector says in the log what it does.
func (tb *table) start(t *testing.T, binary string) *shoptest.Process {
	t.Helper()
	return shoptest.Start(t, binary, []string{
		"ORDERGRAPH_STORE=dynamodb", "ORDERGRAPH_AUTH=none", "ORDERGRAPH_TABLE=" + tb.name,
		"AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=soak", "AWS_SECRET_ACCESS_KEY=soak", "AWS_EC2_METADATA_DISABLED=true",
		"AWS_ENDPOINT_URL_DYNAMODB=" + tb.endpoint.URL, "HOME=" + t.TempDir(), "GODEBUG=gctrace=1", "GOTRACEBACK=all",
	})
}

// request is one that is made, and what its answer has to hold.
type request struct {
	body   []byte
	header http.Header
	holds  string
	// leave is whether the client goes away before it is answered.
	leave bool
}

// request makes the n-th request. All kinds come in turn: long and short answers, documents that
// were never seen, explained and compressed ones, mistakes, and clients that go away.
func (tb *table) request(n int) request {
	const order = `id status total { amount } placedAt items { nodes { productId name quantity unitPrice { amount } } }`
	header := http.Header{"Content-Type": {"application/json"}, "Accept-Encoding": {"identity"}}
	r := request{header: header, holds: `{"data":{`}
	query, variables := "", map[string]any{}
	switch n % 8 {
	case 0, 1:
		query = `query ($id: ID!) { customer(id: $id) { id name email orders(first: 10) { nodes { ` + order + ` } } } }`
		variables["id"] = tb.book.Customer(n % distinct)
	case 2, 3:
		query = `query ($id: ID!) { order(id: $id) { ` + order + ` customer { id name email } } }`
		variables["id"] = tb.book.Order(n % distinct)
	case 4:
		query = `{ ordersByStatus(status: DELIVERED, first: 50) { nodes { ` + order + ` customer { name } } pageInfo { endCursor } } }`
	case 5:
		// Each text is another one, so that what is kept of documents is thrown away again.
		query = fmt.Sprintf(`{ answer%d: customer(id: %q) { name orders(first: 2) { nodes { id } } } }`, n, tb.book.Customer(n%distinct))
	case 6:
		query = `{ orders(first: 20) { edges { cursor node { ` + order + ` } } } }`
		header.Set(server.ExplainHeader, "true")
		header.Set("Accept-Encoding", "gzip")
		r.holds = ""
	default:
		query, r.holds = fmt.Sprintf(`{ nonsense%d }`, n), `{"errors":[`
	}
	r.leave = n%97 == 0
	var err error
	if r.body, err = json.Marshal(map[string]any{"query": query, "variables": variables}); err != nil {
		panic(err) // strings and maps of them
	}
	return r
}

// do makes a request.
//
// Errors: one that says what is wrong with the answer.
func (r request) do(ctx context.Context, client *http.Client, url string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if r.leave {
		// A connection that is cut while the request is executed, before it, or behind it:
		// whichever comes first.
		go cancel()
	}
	post, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(r.body))
	if err != nil {
		return err
	}
	post.Header = r.header
	response, err := client.Do(post)
	if err != nil {
		if r.leave {
			return nil
		}
		return err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	switch {
	case r.leave:
		return nil
	case err != nil:
		return err
	case response.StatusCode != http.StatusOK || len(answer) == 0 || !strings.HasPrefix(string(answer), r.holds):
		return fmt.Errorf("%s is answered %d, %.300s", r.body, response.StatusCode, answer)
	}
	return nil
}

func TestSoak(t *testing.T) {
	binary := shoptest.Build(t, "../..")
	tb := newTable(t)
	calm := goroutines(tb.calm(t, binary))

	p := tb.start(t, binary)
	sockets := socketsOf(t, p.PID())
	memory := tb.load(t, p)
	tb.leave(t, p.PID(), sockets)
	log := p.Quit(t)

	checkFlat(t, "resident memory", memory)
	checkFlat(t, "heap that was in use after a collection", liveHeap(t, log))
	for made, n := range goroutines(log) {
		// Connections of clients and to DynamoDB are counted by their sockets, in leave. Their
		// goroutines end a moment after the sockets.
		if n > calm[made] && !strings.Contains(made, "dialConn") && !strings.HasSuffix(made, "(*Server).Serve") {
			t.Errorf("%d goroutines that %s made are left; a server that had little to do has %d", n, made, calm[made])
		}
	}
}

// calm is the log of a server that answered each request once, one after the other, and then was
// ended.
func (tb *table) calm(t *testing.T, binary string) string {
	t.Helper()
	p := tb.start(t, binary)
	sockets := socketsOf(t, p.PID())
	client := newClient()
	for n := range distinct {
		r := tb.request(n)
		r.leave = false
		if err := r.do(t.Context(), client, p.URL); err != nil {
			t.Error(err)
		}
	}
	client.CloseIdleConnections()
	tb.leave(t, p.PID(), sockets)
	log := p.Quit(t)
	if t.Failed() {
		t.FailNow()
	}
	return log
}

func newClient() *http.Client {
	return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients, DisableCompression: true}}
}

// load keeps a server busy for the time that is set, and returns its memory from sample to sample,
// in bytes.
func (tb *table) load(t *testing.T, p *shoptest.Process) []int {
	t.Helper()
	client := newClient()
	defer client.CloseIdleConnections()
	over := make(chan struct{})
	var answered atomic.Int64
	var running sync.WaitGroup
	for i := range clients {
		running.Go(func() {
			for n := i; ; n += clients {
				select {
				case <-over:
					return
				default:
				}
				if err := tb.request(n).do(t.Context(), client, p.URL); err != nil {
					t.Error(err)
					return
				}
				answered.Add(1)
			}
		})
	}
	var samples []int
	ticks := time.NewTicker(samplePause)
	defer ticks.Stop()
	for end := time.After(*duration); ; {
		select {
		case <-ticks.C:
			samples = append(samples, memoryOf(t, p.PID()))
			continue
		case <-end:
		}
		break
	}
	close(over)
	running.Wait()
	t.Logf("%d requests were answered in %v", answered.Load(), *duration)
	return samples
}

// leave takes all connections from a server whose clients are gone, and waits until it has noticed.
func (tb *table) leave(t *testing.T, pid, sockets int) {
	t.Helper()
	tb.endpoint.CloseClientConnections() // those that wait for the next request to DynamoDB
	deadline := time.Now().Add(patience)
	for left := socketsOf(t, pid); left > sockets; left = socketsOf(t, pid) {
		if time.Now().After(deadline) {
			t.Errorf("%d sockets are open, %d were at the beginning", left, sockets)
			return
		}
		runtime.Gosched()
	}
}
