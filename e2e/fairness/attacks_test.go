package fairness_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/ordergraph/ordergraph/internal/admission"
)

// attackerConnections is the number of connections of an attacker.
const attackerConnections = 400

// attack is an attack of a hostile or faulty client on a pool.
type attack struct {
	// sizes makes the pool so small that the attacker can use up its share of the pool.
	sizes admission.Sizes
	// run is called repeatedly by each connection of the attacker.
	run func(ctx context.Context, a *attacker)
	// anonymous reports whether an anonymous caller can attack the pool.
	anonymous bool
}

// attacks has an attack on each pool.
var attacks = map[admission.PoolID]attack{
	admission.PoolConnections:          {sizes: admission.Sizes{admission.PoolConnections: attackerConnections}, run: keepOpen, anonymous: true},
	admission.PoolSockets:              {sizes: admission.Sizes{admission.PoolConnections: attackerConnections}, run: keepSocket, anonymous: true},
	admission.PoolTokenVerifications:   {run: forgeTokens, anonymous: true},
	admission.PoolRequestBodies:        {sizes: admission.Sizes{admission.PoolRequestBodies: 4 << 20}, run: sendSlowly, anonymous: true},
	admission.PoolRequests:             {sizes: admission.Sizes{admission.PoolRequests: 32}, run: sendExpensiveQueries, anonymous: true},
	admission.PoolParsing:              {run: sendExpensiveDocuments, anonymous: true},
	admission.PoolOperationCost:        {sizes: admission.Sizes{admission.PoolOperationCost: 30_000}, run: sendExpensiveQueries, anonymous: true},
	admission.PoolResponses:            {sizes: admission.Sizes{admission.PoolRequestBodies: 1 << 20}, run: readSlowly, anonymous: true},
	admission.PoolSubscriptions:        {sizes: admission.Sizes{admission.PoolSubscriptions: 200}, run: subscribe("")},
	admission.PoolSubscriptionMemory:   {sizes: admission.Sizes{admission.PoolSubscriptionMemory: 2 << 20}, run: subscribe("long")},
	admission.PoolSubscriptionCatchUps: {sizes: admission.Sizes{admission.PoolSubscriptionCatchUps: 4}, run: subscribe("behind")},
	admission.PoolEventCost:            {sizes: admission.Sizes{admission.PoolOperationCost: 40_000}, run: subscribe("busy")},
}

// attacker is one connection of an attacking client.
type attacker struct {
	n                           int
	address, token, first, from string
	client                      *http.Client
}

// runAttack attacks a server until the process is killed. It runs in a separate process.
func runAttack(id admission.PoolID) {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(os.Getenv("ATTACK_FROM"))}}
	var all sync.WaitGroup
	for n := range attackerConnections {
		a := &attacker{n: n, address: os.Getenv("ATTACK_ADDRESS"), token: os.Getenv("ATTACK_TOKEN"), first: os.Getenv("ATTACK_FIRST_EVENT"), from: os.Getenv("ATTACK_FROM")}
		a.client = &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{DialContext: dialer.DialContext}}
		all.Go(func() {
			for {
				attacks[id].run(context.Background(), a)
			}
		})
	}
	all.Wait()
}

// send sends a body and drops the response.
func (a *attacker) send(ctx context.Context, body io.Reader, header ...string) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+a.address+"/graphql", body)
	if err != nil {
		panic(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if a.token != "" {
		r.Header.Set("Authorization", "Bearer "+a.token)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	response, err := a.client.Do(r)
	if err != nil {
		waitBeforeRetry() // the server closed or refused the connection
		return
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
}

// waitBeforeRetry waits before the next attempt to connect.
func waitBeforeRetry() { <-time.After(10 * time.Millisecond) }

func queryBody(query string) io.Reader {
	body, err := json.Marshal(map[string]string{"query": query})
	if err != nil {
		panic(err)
	}
	return strings.NewReader(string(body))
}

// keepOpen sends one request and keeps the connection open until the server closes it.
func keepOpen(ctx context.Context, a *attacker) {
	conn, err := a.dial(ctx)
	if err != nil {
		waitBeforeRetry()
		return
	}
	defer func() { _ = conn.Close() }()
	const query = `{"query":"{ viewer { role } }"}`
	authorization := ""
	if a.token != "" {
		authorization = "Authorization: Bearer " + a.token + "\r\n"
	}
	if a.token == "" && a.n%2 == 0 {
		_, _ = io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	} else {
		fmt.Fprintf(conn, "POST /graphql HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n%sContent-Length: %d\r\n\r\n%s", authorization, len(query), query)
	}
	_, _ = io.Copy(io.Discard, conn)
}

func (a *attacker) dial(ctx context.Context) (net.Conn, error) {
	return a.client.Transport.(*http.Transport).DialContext(ctx, "tcp", a.address)
}

// socket opens a WebSocket. It returns nil if that fails.
func (a *attacker) socket(ctx context.Context) *websocket.Conn {
	conn, response, err := websocket.Dial(ctx, "ws://"+a.address+"/graphql", &websocket.DialOptions{Subprotocols: []string{"graphql-transport-ws"}, HTTPClient: &http.Client{Transport: a.client.Transport}})
	if err != nil {
		if response != nil && response.Body != nil {
			_ = response.Body.Close()
		}
		waitBeforeRetry()
		return nil
	}
	if a.token != "" {
		if conn.Write(ctx, websocket.MessageText, fmt.Appendf(nil, `{"type":"connection_init","payload":{"Authorization":"Bearer %s"}}`, a.token)) != nil {
			_ = conn.CloseNow()
			return nil
		}
		if _, _, err := conn.Read(ctx); err != nil {
			_ = conn.CloseNow()
			waitBeforeRetry()
			return nil
		}
	}
	return conn
}

// keepSocket keeps a WebSocket open until the server closes it.
func keepSocket(ctx context.Context, a *attacker) {
	if conn := a.socket(ctx); conn != nil {
		drain(ctx, conn)
	}
}

// drain responds to pings until the WebSocket ends.
func drain(ctx context.Context, conn *websocket.Conn) {
	defer func() { _ = conn.CloseNow() }()
	for {
		_, text, err := conn.Read(ctx)
		if err != nil {
			return
		}
		if strings.HasPrefix(string(text), `{"type":"ping"`) && conn.Write(ctx, websocket.MessageText, []byte(`{"type":"pong"}`)) != nil {
			return
		}
	}
}

// forgeTokens sends tokens with invalid signatures.
func forgeTokens(ctx context.Context, a *attacker) {
	forged := os.Getenv("ATTACK_FORGED")
	end := len(forged) - 20
	a.send(ctx, queryBody(`{ __typename }`), "Authorization", fmt.Sprintf("Bearer %s%020d", forged[:end], rand.Uint64()))
}

// sendSlowly sends a part of a long body and waits until the server closes the connection.
func sendSlowly(ctx context.Context, a *attacker) {
	body, slow := io.Pipe()
	ctx, stop := context.WithTimeout(ctx, 5*time.Second)
	defer stop()
	go func() {
		_, _ = io.WriteString(slow, strings.Repeat(" ", 64<<10))
		<-ctx.Done()
		_ = slow.Close()
	}()
	a.send(ctx, body)
}

// sendExpensiveQueries sends a query that costs some thousand points.
func sendExpensiveQueries(ctx context.Context, a *attacker) {
	var fields strings.Builder
	for i := range 60 {
		fmt.Fprintf(&fields, "a%d: __typename ", i)
	}
	if a.token == "" {
		a.send(ctx, queryBody(`{ products(first: 100) { nodes { `+fields.String()+` } } }`))
		return
	}
	a.send(ctx, queryBody(`{ customer(id: "c1") { orders(first: 100) { nodes { `+fields.String()+` } } } }`))
}

// sendExpensiveDocuments sends new documents that are invalid and expensive to validate, and bodies
// that are not JSON.
func sendExpensiveDocuments(ctx context.Context, a *attacker) {
	if a.n%4 == 0 {
		a.send(ctx, strings.NewReader(`{"query":"`+strings.Repeat("x", 100<<10)))
		return
	}
	var b strings.Builder
	fmt.Fprintf(&b, "query Q%d { ...F0 } ", rand.Uint64())
	const depth = 12
	for i := range depth {
		fmt.Fprintf(&b, "fragment F%d on Query { ...F%d ...F%d } ", i, i+1, i+1)
	}
	fmt.Fprintf(&b, "fragment F%d on Query { a: nothing b: nothing }", depth)
	a.send(ctx, queryBody(b.String()))
}

// readSlowly requests a long response and reads only its first byte.
func readSlowly(ctx context.Context, a *attacker) {
	conn, err := a.dial(ctx)
	if err != nil {
		waitBeforeRetry()
		return
	}
	defer func() { _ = conn.Close() }()
	_ = conn.(*net.TCPConn).SetReadBuffer(4 << 10)
	var fields strings.Builder
	for i := range 90 {
		fmt.Fprintf(&fields, "%s%02d: name ", strings.Repeat("a", 190), i)
	}
	query := `{ products(first: 10) { nodes { ` + fields.String() + ` } } }`
	body, err := io.ReadAll(queryBody(query))
	if err != nil {
		panic(err)
	}
	authorization := ""
	if a.token != "" {
		authorization = "Authorization: Bearer " + a.token + "\r\n"
	}
	fmt.Fprintf(conn, "POST /graphql HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n%sContent-Length: %d\r\n\r\n%s", authorization, len(body), body)
	if _, err := bufio.NewReaderSize(conn, 16).ReadByte(); err != nil {
		waitBeforeRetry()
		return
	}
	<-time.After(3 * time.Second)
}

// subscribe keeps subscriptions of a kind open. The kind "" opens many subscriptions. With the kind
// "long", their documents are long. With "behind", they have to read many missed events. With
// "busy", they receive orders that the attacker places continuously.
func subscribe(kind string) func(context.Context, *attacker) {
	return func(ctx context.Context, a *attacker) {
		if kind == "busy" && a.n%40 == 0 {
			a.send(ctx, queryBody(`mutation { placeOrder(input: {customerId: "c1", items: [{sku: "p1", quantity: 1}]}) { order { id } userErrors { message } } }`))
			return
		}
		conn := a.socket(ctx)
		if conn == nil {
			return
		}
		for i := range 5 {
			selection, after := "id", ""
			switch kind {
			case "long":
				for j := range 90 {
					selection += fmt.Sprintf(" %s%d_%d_%d: orderId", strings.Repeat("a", 180), a.n, i, j)
				}
			case "behind":
				after = fmt.Sprintf(`, after: %q`, a.first)
			}
			message, err := json.Marshal(map[string]any{"type": "subscribe", "id": fmt.Sprint(i), "payload": map[string]string{
				"query": fmt.Sprintf(`subscription { customerOrders(customerId: "c1"%s) { %s } }`, after, selection),
			}})
			if err != nil {
				panic(err)
			}
			if conn.Write(ctx, websocket.MessageText, message) != nil {
				_ = conn.CloseNow()
				return
			}
		}
		if kind == "behind" {
			ended, stop := context.WithTimeout(ctx, time.Second)
			defer stop()
			drain(ended, conn)
			return
		}
		drain(ctx, conn)
	}
}
