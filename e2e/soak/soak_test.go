//go:build linux

// Package soak_test keeps the built server at full load, with replayed responses of DynamoDB. The
// server's memory must not grow. When the clients have disconnected, none of their goroutines may
// remain.
//
// By default the test takes some seconds. For a thorough run:
//
//	go test ./e2e/soak -v -for 10m -timeout 20m
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
	"github.com/ordergraph/ordergraph/embedded"
	"github.com/ordergraph/ordergraph/internal/sampledata"
	"github.com/ordergraph/ordergraph/internal/server"
	"github.com/ordergraph/ordergraph/internal/test/longtest"
	"github.com/ordergraph/ordergraph/internal/test/replay"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
	"github.com/ordergraph/ordergraph/internal/test/workload"
)

var duration = flag.Duration("for", longtest.Size(2*time.Second, 6*time.Second), "how long the server is under load")

const (
	// clients is the number of concurrent requests: enough to keep the server busy.
	clients = 32
	// distinctRequests is the number of different requests, without the unique documents. The built-in
	// store is slow, so it responds to each of these requests only once. Then its responses are
	// replayed.
	distinctRequests = 40
	// samplePause is the time between two samples.
	samplePause = 200 * time.Millisecond
	// timeLimit is the maximum time of one step. The limit detects a step that hangs.
	timeLimit = time.Minute
)

// replayedTable is a DynamoDB endpoint with a dataset, whose responses are replayed.
type replayedTable struct {
	dataset  *sampledata.Generator
	endpoint *httptest.Server
	replayed *replay.Client
	name     string
}

func newTable(t *testing.T) *replayedTable {
	t.Helper()
	shape := sampledata.DefaultShape()
	shape.Customers, shape.Products, shape.Orders, shape.MinItems, shape.MaxItems = distinctRequests, 40, 400, 3, 3
	dataset, err := sampledata.NewGenerator(t.Context(), shape)
	if err != nil {
		t.Fatal(err)
	}
	db, replayed := replay.WrapClient(embedded.New().Client())
	created := &replayedTable{dataset: dataset, replayed: replayed, name: storetest.TableName()}
	store := storetest.NewTable(t, db, dynamo.Options{Table: created.name})
	for _, parts := range []func() (bulk.LoadProgress, error){
		func() (bulk.LoadProgress, error) { return store.LoadAll(t.Context(), dataset.MasterData(), nil) },
		func() (bulk.LoadProgress, error) { return store.LoadAll(t.Context(), dataset.Orders(0), nil) },
	} {
		if _, err := parts(); err != nil {
			t.Fatal(err)
		}
	}
	created.endpoint = httptest.NewServer(replayed)
	t.Cleanup(created.endpoint.Close)
	return created
}

// start starts a server on the table. The server logs its garbage collections.
func (tb *replayedTable) start(t *testing.T, binary string) *workload.Process {
	t.Helper()
	return workload.StartServer(t, binary, []string{
		"ORDERGRAPH_STORE=dynamodb", "ORDERGRAPH_AUTH=none", "ORDERGRAPH_TABLE=" + tb.name,
		"AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=soak", "AWS_SECRET_ACCESS_KEY=soak", "AWS_EC2_METADATA_DISABLED=true",
		"AWS_ENDPOINT_URL_DYNAMODB=" + tb.endpoint.URL, "HOME=" + t.TempDir(), "GODEBUG=gctrace=1", "GOTRACEBACK=all",
	})
}

// request is a request with the expected start of its response.
type request struct {
	body       []byte
	header     http.Header
	wantPrefix string
	// cancel reports whether the client cancels the request.
	cancel bool
}

// request returns the n-th request. The requests alternate between several kinds: long and short
// responses, new documents, explain output, compression, invalid queries and cancelled requests.
func (tb *replayedTable) request(n int) request {
	const order = `id status total { amount } placedAt items { nodes { productId name quantity unitPrice { amount } } }`
	header := http.Header{"Content-Type": {"application/json"}, "Accept-Encoding": {"identity"}}
	r := request{header: header, wantPrefix: `{"data":{`}
	query, variables := "", map[string]any{}
	switch n % 8 {
	case 0, 1:
		query = `query ($id: ID!) { customer(id: $id) { id name email orders(first: 10) { nodes { ` + order + ` } } } }`
		variables["id"] = tb.dataset.CustomerID(n % distinctRequests)
	case 2, 3:
		query = `query ($id: ID!) { order(id: $id) { ` + order + ` customer { id name email } } }`
		variables["id"] = tb.dataset.OrderID(n % distinctRequests)
	case 4:
		query = `{ ordersByStatus(status: DELIVERED, first: 50) { nodes { ` + order + ` customer { name } } pageInfo { endCursor } } }`
	case 5:
		// Each document is new, so the document cache must remove other documents.
		query = fmt.Sprintf(`{ answer%d: customer(id: %q) { name orders(first: 2) { nodes { id } } } }`, n, tb.dataset.CustomerID(n%distinctRequests))
	case 6:
		query = `{ orders(first: 20) { edges { cursor node { ` + order + ` } } } }`
		header.Set(server.ExplainHeader, "true")
		header.Set("Accept-Encoding", "gzip")
		r.wantPrefix = ""
	default:
		query, r.wantPrefix = fmt.Sprintf(`{ nonsense%d }`, n), `{"errors":[`
	}
	r.cancel = n%97 == 0
	var err error
	if r.body, err = json.Marshal(map[string]any{"query": query, "variables": variables}); err != nil {
		panic(err) // strings always encode
	}
	return r
}

// do sends a request. It returns an error if the response is wrong.
func (r request) do(ctx context.Context, client *http.Client, url string) error {
	ctx, cancel := context.WithTimeout(ctx, timeLimit)
	defer cancel()
	if r.cancel {
		// Cancel the request before, during or after its execution.
		go cancel()
	}
	post, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(r.body))
	if err != nil {
		return err
	}
	post.Header = r.header
	response, err := client.Do(post)
	if err != nil {
		if r.cancel {
			return nil
		}
		return err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	switch {
	case r.cancel:
		return nil
	case err != nil:
		return err
	case response.StatusCode != http.StatusOK || len(answer) == 0 || !strings.HasPrefix(string(answer), r.wantPrefix):
		return fmt.Errorf("%s returned status %d, %.300s", r.body, response.StatusCode, answer)
	}
	return nil
}

func TestSoak(t *testing.T) {
	binary := workload.BuildServer(t, "../..")
	tb := newTable(t)
	baseline := goroutines(tb.baselineLog(t, binary))

	p := tb.start(t, binary)
	sockets := openSockets(t, p.PID())
	memory := tb.runLoad(t, p)
	tb.waitForDisconnects(t, p.PID(), sockets)
	log := p.QuitWithStacks(t)

	checkFlat(t, "resident memory", memory)
	checkFlat(t, "live heap", liveHeap(t, log))
	for made, n := range goroutines(log) {
		// leave counts connections by their sockets: the connections of clients and the connections to
		// DynamoDB. The goroutines of a connection end shortly after its socket is closed.
		if n > baseline[made] && !strings.Contains(made, "dialConn") && !strings.HasSuffix(made, "(*Server).Serve") {
			t.Errorf("%d goroutines created by %s remain; after few requests there are %d", n, made, baseline[made])
		}
	}
}

// baselineLog returns the log of a server that responded to each request once, one after the other.
func (tb *replayedTable) baselineLog(t *testing.T, binary string) string {
	t.Helper()
	p := tb.start(t, binary)
	sockets := openSockets(t, p.PID())
	client := newClient()
	for n := range distinctRequests {
		r := tb.request(n)
		r.cancel = false
		if err := r.do(t.Context(), client, p.URL); err != nil {
			t.Error(err)
		}
	}
	client.CloseIdleConnections()
	tb.waitForDisconnects(t, p.PID(), sockets)
	log := p.QuitWithStacks(t)
	if t.Failed() {
		t.FailNow()
	}
	return log
}

func newClient() *http.Client {
	return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients, DisableCompression: true}}
}

// runLoad keeps a server under load for the set duration. It returns samples of its memory in
// bytes.
func (tb *replayedTable) runLoad(t *testing.T, p *workload.Process) []int {
	t.Helper()
	client := newClient()
	defer client.CloseIdleConnections()
	stop := make(chan struct{})
	var answered atomic.Int64
	var running sync.WaitGroup
	for i := range clients {
		running.Go(func() {
			for n := i; ; n += clients {
				select {
				case <-stop:
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
			samples = append(samples, residentMemory(t, p.PID()))
			continue
		case <-end:
		}
		break
	}
	close(stop)
	running.Wait()
	t.Logf("%d responses in %v", answered.Load(), *duration)
	return samples
}

// waitForDisconnects closes all connections to DynamoDB and waits until the server has closed the
// sockets of its clients.
func (tb *replayedTable) waitForDisconnects(t *testing.T, pid, sockets int) {
	t.Helper()
	tb.endpoint.CloseClientConnections() // idle connections of the server to DynamoDB
	deadline := time.Now().Add(timeLimit)
	for left := openSockets(t, pid); left > sockets; left = openSockets(t, pid) {
		if time.Now().After(deadline) {
			t.Errorf("%d sockets are open, want %d as after the start", left, sockets)
			return
		}
		runtime.Gosched()
	}
}
