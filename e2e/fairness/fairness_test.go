// Package fairness_test attacks each pool that callers share and measures the effect on another
// caller. The attacker is a separate process on the same machine. It has its own IP address,
// because the server distinguishes callers by their addresses until it has verified their tokens.
package fairness_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/feed"
	"github.com/ordergraph/ordergraph/embedded"
	"github.com/ordergraph/ordergraph/graph"
	"github.com/ordergraph/ordergraph/graph/paging"
	"github.com/ordergraph/ordergraph/graph/rate"
	"github.com/ordergraph/ordergraph/internal/admission"
	"github.com/ordergraph/ordergraph/internal/auth"
	"github.com/ordergraph/ordergraph/internal/server"
	"github.com/ordergraph/ordergraph/internal/test/authtest"
	"github.com/ordergraph/ordergraph/internal/test/longtest"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
	"github.com/ordergraph/ordergraph/internal/test/workload"
)

var (
	requests = flag.Int("requests", longtest.Size(3, 10), "number of requests that the victim sends during each attack")
	interval = flag.Duration("interval", 200*time.Millisecond, "time between the victim's requests")
)

func TestMain(m *testing.M) {
	if name := os.Getenv("ATTACK_FLOOD"); name != "" {
		runFlood(floods[name])
	}
	if pool := os.Getenv("ATTACK_POOL"); pool != "" {
		id, err := strconv.Atoi(pool)
		if err != nil {
			panic(err)
		}
		runAttack(admission.PoolID(id))
	}
	os.Exit(m.Run())
}

// defaultPools has the pools that the default run attacks.
var defaultPools = []admission.PoolID{admission.PoolConnections, admission.PoolRequests}

// While a caller with or without a token attacks a pool, other callers' requests succeed. Their
// subscriptions stay open, and health checks succeed.
func TestAttacksOnPools(t *testing.T) {
	for id, pool := range admission.New(admission.Sizes{}) {
		a, known := attacks[admission.PoolID(id)]
		if !known {
			t.Errorf("the pool %s has no attack", pool.Name)
			continue
		}
		if !longtest.Enabled() && !slices.Contains(defaultPools, admission.PoolID(id)) {
			continue
		}
		t.Run(pool.Name, func(t *testing.T) {
			newVictim(t, a.sizes, dynamoDBLatency).measureAttack(t, admission.PoolID(id), false)
		})
		if a.anonymous {
			t.Run(pool.Name+" by anonymous callers", func(t *testing.T) {
				newVictim(t, a.sizes, dynamoDBLatency).measureAttack(t, admission.PoolID(id), true)
			})
		}
	}
}

// victim is a caller of a server that another caller attacks.
type victim struct {
	pools   *admission.Controller
	address string
	key     authtest.Key
	client  *http.Client
	serial  int
}

// newVictim starts a server with pools of the given sizes. latency is the response time of its
// store.
func newVictim(t *testing.T, sizes admission.Sizes, latency time.Duration) *victim {
	t.Helper()
	v := &victim{pools: admission.New(sizes), key: authtest.NewKey(t, "key", "ES512"), client: &http.Client{Timeout: 20 * time.Second}}
	t.Cleanup(v.client.CloseIdleConnections)
	keys := filepath.Join(t.TempDir(), "jwks.json")
	if err := os.WriteFile(keys, authtest.JWKS(t, v.key.JWK(t, nil)), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	tokens, err := auth.New(ctx, auth.Options{
		JWKS: keys, Issuer: authtest.Issuer, Audience: authtest.Audience, RoleClaim: "role", CustomerClaim: "customer_id",
		Verifications: v.pools[admission.PoolTokenVerifications], Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	db := embedded.New().Client(func(o *dynamodb.Options) { o.HTTPClient = delayed{o.HTTPClient, latency} })
	store := storetest.NewTable(t, db, dynamo.Options{Table: storetest.TableName()})
	storetest.LoadDataset(t, store, workload.Fixture{Customers: 3, Products: 10, Warehouses: 1, Employees: 1, Stock: 1_000_000}.Dataset(t))
	opts := server.Options{
		Graph: graph.Options{
			Store: store, Feed: storetest.OpenFeed(t, db, store, feed.Options{AcquireRead: v.pools.AcquireCatchUp}),
			Cursors: paging.NewCursorSigner([]byte("a key for tests")), Rates: rate.DefaultOptions(),
		},
		Auth: tokens, Anonymous: true, Admission: v.pools, Log: slog.New(slog.DiscardHandler),
	}
	handler, err := server.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	v.address = l.Addr().String()
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, smallBuffers{l}, handler, opts) }()
	t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return v
}

// delayed makes requests take as long as DynamoDB's usual response time. The embedded store alone
// responds so fast that no attack fills the pool of requests.
type delayed struct {
	next    dynamodb.HTTPClient
	latency time.Duration
}

const dynamoDBLatency = 5 * time.Millisecond

func (d delayed) Do(r *http.Request) (*http.Response, error) {
	select {
	case <-time.After(d.latency):
		return d.next.Do(r)
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

// smallBuffers makes the kernel buffer little of a response that a client does not read.
type smallBuffers struct{ net.Listener }

func (l smallBuffers) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err == nil {
		_ = conn.(*net.TCPConn).SetWriteBuffer(16 << 10)
	}
	return conn, err
}

// token returns a new token of a customer.
func (v *victim) token(t *testing.T, customer string) string {
	t.Helper()
	v.serial++
	return v.key.Token(t, authtest.Claims(time.Now(), authtest.Object{"role": "CUSTOMER", "sub": customer, "customer_id": customer, "jti": fmt.Sprint(v.serial)}), nil)
}

// query sends a request, decodes the data into to, and returns the response time.
func (v *victim) query(t *testing.T, token, query string, to any) time.Duration {
	t.Helper()
	body, err := json.Marshal(map[string]string{"query": query})
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+v.address+"/graphql", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+token)
	began := time.Now()
	response, err := v.client.Do(r)
	if err != nil {
		t.Fatalf("a request of the victim: %v", err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	took := time.Since(began)
	var got struct {
		Data   json.RawMessage
		Errors []any
	}
	if err != nil || json.Unmarshal(text, &got) != nil || response.StatusCode != http.StatusOK || len(got.Errors) > 0 {
		t.Errorf("a request of the victim: status %d, %.300s, %v", response.StatusCode, text, err)
	} else if to != nil && json.Unmarshal(got.Data, to) != nil {
		t.Fatalf("unexpected data: %s", text)
	}
	return took
}

// victimQuery is the victim's query.
const victimQuery = `{ customer(id: "c0") { name orders(first: 5) { nodes { id items(first: 5) { nodes { name } } } } } }`

// medianTime sends requests one after the other and returns their median time.
func (v *victim) medianTime(t *testing.T, n int, pause time.Duration, newToken bool) time.Duration {
	t.Helper()
	token := v.token(t, "c0")
	var took []time.Duration
	for i := range n {
		if newToken {
			token = v.token(t, "c0")
		}
		if i%3 == 0 {
			v.client.CloseIdleConnections() // the next request uses a new connection
		}
		took = append(took, v.query(t, token, victimQuery, nil))
		health, err := v.client.Get("http://" + v.address + server.PathHealth)
		if err != nil {
			t.Errorf("a health check: %v", err)
		} else {
			_ = health.Body.Close()
		}
		<-time.After(pause)
	}
	slices.Sort(took)
	return took[len(took)/2]
}

// placeOrder places an order of a customer and returns the order's ID.
func (v *victim) placeOrder(t *testing.T, customer string) string {
	t.Helper()
	var data struct {
		PlaceOrder struct{ Order struct{ ID string } }
	}
	v.query(t, v.token(t, customer), fmt.Sprintf(`mutation { placeOrder(input: {customerId: %q, items: [{sku: "p0", quantity: 1}]}) { order { id } } }`, customer), &data)
	return data.PlaceOrder.Order.ID
}

// firstEvent returns the ID of the first event of an order.
func (v *victim) firstEvent(t *testing.T, customer, order string) string {
	t.Helper()
	var data struct {
		Order struct {
			Timeline struct{ Nodes []struct{ ID string } }
		}
	}
	v.query(t, v.token(t, customer), fmt.Sprintf(`{ order(id: %q) { timeline(first: 1) { nodes { id } } } }`, order), &data)
	return data.Order.Timeline.Nodes[0].ID
}

// subscribe subscribes to the victim's orders over a WebSocket and as an event stream. The server
// does not confirm that a subscription has started, so the victim passes an event ID, and cannot
// miss an order that is placed earlier. subscribe returns a function that waits until both have
// delivered an order.
func (v *victim) subscribe(t *testing.T, after string) (delivered func(order string)) {
	t.Helper()
	query := fmt.Sprintf(`subscription { customerOrders(customerId: "c0", after: %q) { orderId } }`, after)
	ctx := t.Context()
	conn, response, err := websocket.Dial(ctx, "ws://"+v.address+"/graphql", &websocket.DialOptions{Subprotocols: []string{"graphql-transport-ws"}})
	if err != nil {
		t.Fatal(err, response)
	}
	t.Cleanup(func() { _ = conn.CloseNow() })
	for _, message := range []string{
		`{"type":"connection_init","payload":{"Authorization":"Bearer ` + v.token(t, "c0") + `"}}`,
		`{"type":"subscribe","id":"1","payload":{"query":` + strconv.Quote(query) + `}}`,
	} {
		if err := conn.Write(ctx, websocket.MessageText, []byte(message)); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(message, "init") {
			if _, _, err := conn.Read(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	body, err := json.Marshal(map[string]string{"query": query})
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+v.address+"/graphql", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("Authorization", "Bearer "+v.token(t, "c0"))
	stream, err := http.DefaultClient.Do(r)
	if err != nil || stream.StatusCode != http.StatusOK {
		t.Fatal(err, stream)
	}
	t.Cleanup(func() { _ = stream.Body.Close() })
	events := make(chan string, 1000)
	go func() {
		for {
			_, text, err := conn.Read(ctx)
			if err != nil {
				events <- "the socket has ended: " + err.Error()
				return
			}
			if strings.HasPrefix(string(text), `{"type":"ping"`) {
				_ = conn.Write(ctx, websocket.MessageText, []byte(`{"type":"pong"}`))
			}
			events <- "socket " + string(text)
		}
	}()
	go func() {
		for lines := bufio.NewScanner(stream.Body); lines.Scan(); {
			events <- "stream " + lines.Text()
		}
		events <- "the stream has ended"
	}()
	return func(order string) {
		t.Helper()
		missing := []string{"socket", "stream"}
		for guard := time.After(30 * time.Second); len(missing) > 0; {
			select {
			case event := <-events:
				source, _, _ := strings.Cut(event, " ")
				if source == "the" || strings.Contains(event, `"type":"error"`) || strings.Contains(event, `"errors"`) {
					t.Errorf("%s", event)
					return
				}
				if strings.Contains(event, order) {
					missing = slices.DeleteFunc(missing, func(name string) bool { return name == source })
				}
			case <-guard:
				t.Errorf("%v have not delivered the order", missing)
				return
			}
		}
	}
}

// measureAttack measures the victim on an idle server and during an attack on a pool.
func (v *victim) measureAttack(t *testing.T, id admission.PoolID, byStrangers bool) {
	t.Helper()
	for range 4 {
		v.placeOrder(t, "c0")
	}
	delivered := v.subscribe(t, v.firstEvent(t, "c0", v.placeOrder(t, "c0")))
	delivered(v.placeOrder(t, "c0"))
	newTokens := id == admission.PoolTokenVerifications
	idle := v.medianTime(t, 15, 0, newTokens)

	firstEvent := v.firstEvent(t, "c1", v.placeOrder(t, "c1"))
	for range 10 {
		v.placeOrder(t, "c1")
	}
	command := exec.CommandContext(t.Context(), os.Args[0])
	token, forged := v.token(t, "c1"), authtest.NewKey(t, "key", "ES512").Token(t, authtest.Claims(time.Now(), nil), nil)
	if byStrangers {
		token = ""
	}
	command.Env = append(os.Environ(), fmt.Sprint("ATTACK_POOL=", int(id)), "ATTACK_ADDRESS="+v.address, "ATTACK_TOKEN="+token, "ATTACK_FROM=127.0.0.2",
		"ATTACK_FIRST_EVENT="+firstEvent, "ATTACK_FORGED="+forged)
	command.Stderr = os.Stderr
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	}()
	// The attack has begun when the attacker uses half of the capacity that it can use at most.
	pool := v.pools[id]
	most := pool.Size
	switch {
	case byStrangers:
		most = max(1, pool.Size/2)
	case pool.HeldDivisor > 0:
		most = max(1, pool.Size/pool.HeldDivisor)
	}
	for guard := time.After(30 * time.Second); pool.Used() < most/2+most%2; {
		select {
		case <-guard:
			t.Fatalf("the attack uses only %d of %d", pool.Used(), pool.Size)
		case <-time.After(time.Millisecond):
		}
	}
	attacked := v.medianTime(t, *requests, *interval, newTokens)
	delivered(v.placeOrder(t, "c0"))
	connections := v.pools[admission.PoolConnections].Used()
	_ = command.Process.Kill()
	after := v.medianTime(t, 15, 0, newTokens)
	t.Logf("%d connections of %d; median time of %d requests: %v, on an idle server: %v (factor %.1f), after the attack: %v", connections, attackerConnections,
		*requests, attacked.Round(10*time.Microsecond), idle.Round(10*time.Microsecond), float64(attacked)/float64(idle), after.Round(10*time.Microsecond))
}
