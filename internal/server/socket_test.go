package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/coder/websocket"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/change"
	"github.com/ordergraph/ordergraph/dynamo/feed"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/embedded"
	"github.com/ordergraph/ordergraph/graph"
	"github.com/ordergraph/ordergraph/internal/admission"
	"github.com/ordergraph/ordergraph/internal/server"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// liveServer is a server with a change feed, on the sample data.
type liveServer struct {
	t     testing.TB
	addr  string
	store *dynamo.Store
	feed  *feed.Feed
	log   *journal
}

func newLive(t testing.TB, config server.Options, opts ...func(*server.Options)) *liveServer {
	t.Helper()
	return newLiveWith(t, config, feed.Options{}, opts...)
}

func newLiveWith(t testing.TB, config server.Options, feed feed.Options, opts ...func(*server.Options)) *liveServer {
	t.Helper()
	return newLiveOn(t, embedded.New().Client(), config, feed, opts...)
}

func newLiveOn(t testing.TB, db *dynamodb.Client, config server.Options, feed feed.Options, opts ...func(*server.Options)) *liveServer {
	t.Helper()
	l := &liveServer{t: t, store: storetest.SampleStore(t, db)}
	l.feed = storetest.OpenFeed(t, db, l.store, feed)
	o := config
	o.Graph.Feed = l.feed
	for _, change := range opts {
		change(&o)
	}
	var h http.Handler
	h, l.log = newHandler(t, l.store, slog.LevelInfo, o)
	l.addr = listenTCP(t, h, config)
	return l
}

func (l *liveServer) url() string { return "http://" + l.addr + server.PathGraphQL }

// place places an order of the customer cust_01, and returns its ID.
func (l *liveServer) place() commerce.OrderID {
	l.t.Helper()
	return l.placeFor("cust_01")
}

// placeFor places an order of a customer, and returns its ID.
func (l *liveServer) placeFor(customer commerce.CustomerID) commerce.OrderID {
	l.t.Helper()
	order, err := l.store.PlaceOrder(context.Background(), change.Caller{Name: "tester"}, commerce.OrderRequest{CustomerID: customer, Lines: []commerce.OrderLine{{SKU: "prod_100", Quantity: 1}}})
	if err != nil {
		l.t.Fatal(err)
	}
	return order.ID
}

// set changes the quantity of an order's item.
func (l *liveServer) set(id commerce.OrderID, quantity int) {
	l.t.Helper()
	if _, err := l.store.SetOrderItem(context.Background(), change.Caller{Name: "tester"}, commerce.OrderItemChange{OrderID: id, SKU: "prod_100", Quantity: quantity}); err != nil {
		l.t.Fatal(err)
	}
}

// last returns the ID of an order's last event. A subscription without it starts at a time that the
// test cannot observe.
func (l *liveServer) last(id commerce.OrderID) commerce.EventID {
	l.t.Helper()
	page, err := dynamo.ReadPage(context.Background(), l.store.Consistent(), model.Timeline, dynamo.ListRequest{PartitionValue: string(id), Page: dynamo.PageRequest{Limit: 1000}})
	if err != nil || len(page.Items) == 0 {
		l.t.Fatal(err)
	}
	return page.Items[len(page.Items)-1].ID
}

// waitForNoSubscriptions waits until there is no subscription.
func (l *liveServer) waitForNoSubscriptions() {
	l.t.Helper()
	deadline := time.Now().Add(testTimeout)
	for l.feed.Subscriptions() > 0 {
		if time.Now().After(deadline) {
			l.t.Fatalf("%d subscriptions are left", l.feed.Subscriptions())
		}
		<-time.After(time.Millisecond)
	}
}

// waitForSubscriptions waits until there are n subscriptions.
func (l *liveServer) waitForSubscriptions(n int) {
	l.t.Helper()
	deadline := time.Now().Add(testTimeout)
	for l.feed.Subscriptions() != n {
		if time.Now().After(deadline) {
			l.t.Fatalf("%d subscriptions, want %d", l.feed.Subscriptions(), n)
		}
		<-time.After(time.Millisecond)
	}
}

// peer is a client's end of a socket.
type peer struct {
	t    testing.TB
	conn *websocket.Conn
	ctx  context.Context
}

// frame is a message in either direction.
type frame struct {
	ID      string          `json:"id,omitempty"`
	Type    string          `json:"type"`
	Payload json.RawMessage `json:"payload,omitempty"`
}

func (l *liveServer) dial(header ...string) *peer {
	l.t.Helper()
	return l.dialAs([]string{"graphql-transport-ws"}, header...)
}

func (l *liveServer) dialAs(protocols []string, header ...string) *peer {
	l.t.Helper()
	w, status, err := l.tryDial(protocols, header...)
	if err != nil {
		l.t.Fatalf("status %d: %v", status, err)
	}
	return w
}

func (l *liveServer) tryDial(protocols []string, header ...string) (*peer, int, error) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	l.t.Cleanup(cancel)
	h := http.Header{}
	for i := 0; i < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	conn, response, err := websocket.Dial(ctx, l.url(), &websocket.DialOptions{Subprotocols: protocols, HTTPHeader: h})
	if err != nil {
		if response == nil {
			return nil, 0, err
		}
		return nil, response.StatusCode, err
	}
	conn.SetReadLimit(-1)
	l.t.Cleanup(func() { _ = conn.CloseNow() })
	return &peer{t: l.t, conn: conn, ctx: ctx}, response.StatusCode, nil
}

// open opens a socket and waits for connection_ack.
func (l *liveServer) open(header ...string) *peer {
	l.t.Helper()
	w := l.dial(header...)
	w.send(frame{Type: "connection_init"})
	w.want("connection_ack", "")
	return w
}

func (w *peer) send(f frame) {
	w.t.Helper()
	text, err := json.Marshal(f)
	if err != nil {
		w.t.Fatal(err)
	}
	w.text(string(text))
}

func (w *peer) text(s string) {
	w.t.Helper()
	if err := w.conn.Write(w.ctx, websocket.MessageText, []byte(s)); err != nil {
		w.t.Fatal(err)
	}
}

func (w *peer) subscribe(id, query string) {
	w.t.Helper()
	w.send(frame{ID: id, Type: "subscribe", Payload: json.RawMessage(post(query))})
}

func (w *peer) receive() frame {
	w.t.Helper()
	_, text, err := w.conn.Read(w.ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	var f frame
	if err := json.Unmarshal(text, &f); err != nil {
		w.t.Fatalf("%v: %s", err, text)
	}
	return f
}

// want receives a message and checks its type and its operation's ID. It skips the server's pings,
// which keep a connection alive, unless it wants one.
func (w *peer) want(kind, id string) frame {
	w.t.Helper()
	f := w.receive()
	for f.Type == "ping" && kind != "ping" {
		f = w.receive()
	}
	if f.Type != kind || f.ID != id {
		w.t.Fatalf("got %s %q %s, want %s %q", f.Type, f.ID, f.Payload, kind, id)
	}
	return f
}

// closed waits until the socket is closed, and checks the code.
func (w *peer) closed(code websocket.StatusCode) {
	w.t.Helper()
	for {
		_, text, err := w.conn.Read(w.ctx)
		if err == nil {
			continue
		}
		if got := websocket.CloseStatus(err); got != code || w.ctx.Err() != nil {
			w.t.Errorf("closed with code %d (%v, after the message %s), want %d", got, err, text, code)
		}
		return
	}
}

// codes returns the error codes in a message of type error.
func codes(t testing.TB, f frame) string {
	t.Helper()
	var errs []struct {
		Message    string
		Extensions struct{ Code string }
	}
	if err := json.Unmarshal(f.Payload, &errs); err != nil || len(errs) == 0 {
		t.Fatalf("%v: %s", err, f.Payload)
	}
	all := make([]string, len(errs))
	for i, e := range errs {
		all[i] = e.Extensions.Code
	}
	return strings.Join(all, " ")
}

// One socket serves several queries, mutations and subscriptions at the same time.
func TestSockets(t *testing.T) {
	l := newLive(t, server.Options{})
	order := l.place()
	w := l.open()
	w.subscribe("q", aliceQuery)
	if got := w.want("next", "q"); string(got.Payload) != aliceAnswer {
		t.Errorf("%s", got.Payload)
	}
	w.want("complete", "q")

	w.subscribe("one", fmt.Sprintf(`subscription { orderUpdated(id: %q, after: %q) { orderId event { type } order { items { nodes { quantity } } } } }`, order, l.last(order)))
	w.subscribe("all", fmt.Sprintf(`subscription { customerOrders(customerId: "cust_01", after: %q) { id orderId } }`, l.last(order)))
	l.waitForSubscriptions(2)
	w.send(frame{ID: "m", Type: "subscribe", Payload: json.RawMessage(post(fmt.Sprintf(`mutation { setOrderItem(input: {orderId: %q, sku: "prod_100", quantity: 3}) { userErrors { message } } }`, order)))})
	got := map[string][]string{}
	for range 4 { // in any order
		f := w.receive()
		got[f.ID] = append(got[f.ID], f.Type+" "+string(f.Payload))
	}
	if len(got["m"]) != 2 || got["m"][0] != `next {"data":{"setOrderItem":{"userErrors":[]}}}` || got["m"][1] != "complete " {
		t.Errorf("the mutation: %v", got["m"])
	}
	if want := fmt.Sprintf(`next {"data":{"orderUpdated":{"orderId":%q,"event":{"type":"ITEM_SET"},"order":{"items":{"nodes":[{"quantity":3}]}}}}}`, order); len(got["one"]) != 1 || got["one"][0] != want {
		t.Errorf("the order: %v, want %s", got["one"], want)
	}
	if len(got["all"]) != 1 || !strings.Contains(got["all"][0], string(order)) {
		t.Errorf("the customer: %v", got["all"])
	}
	// After the client has completed an operation, it gets no more messages. The ID can be used again.
	w.send(frame{ID: "all", Type: "complete"})
	l.waitForSubscriptions(1)
	w.subscribe("all", aliceQuery)
	w.want("next", "all")
	w.want("complete", "all")
	l.set(order, 4)
	w.want("next", "one")
	_ = w.conn.Close(websocket.StatusNormalClosure, "")
	l.waitForNoSubscriptions()
	l.log.checkEmpty(t)
}

// With the argument after, a subscription continues behind an event, without gaps and duplicates.
func TestSocketsResume(t *testing.T) {
	l := newLive(t, server.Options{})
	order := l.place()
	subscription := func(after string) string {
		return fmt.Sprintf(`subscription { customerOrders(customerId: "cust_01"%s) { id order { items { nodes { quantity } } } } }`, after)
	}
	w := l.open()
	w.subscribe("1", subscription(fmt.Sprintf(", after: %q", l.last(order))))
	l.waitForSubscriptions(1)
	l.set(order, 2)
	var last struct {
		Data struct{ CustomerOrders struct{ ID string } }
	}
	if err := json.Unmarshal(w.want("next", "1").Payload, &last); err != nil {
		t.Fatal(err)
	}
	_ = w.conn.CloseNow()
	l.waitForNoSubscriptions()
	for quantity := 3; quantity <= 5; quantity++ {
		l.set(order, quantity)
	}
	w = l.open()
	w.subscribe("2", subscription(fmt.Sprintf(", after: %q", last.Data.CustomerOrders.ID)))
	seen := map[string]bool{last.Data.CustomerOrders.ID: true}
	for range 3 {
		if err := json.Unmarshal(w.want("next", "2").Payload, &last); err != nil {
			t.Fatal(err)
		}
		seen[last.Data.CustomerOrders.ID] = true
	}
	l.set(order, 6)
	if got := w.want("next", "2"); !strings.Contains(string(got.Payload), `"quantity":6`) || len(seen) != 4 {
		t.Errorf("%s, %v", got.Payload, seen)
	}
}

// A subscription that is refused gets an error with a code. The socket stays open.
func TestSubscriptionsThatAreRefused(t *testing.T) {
	l := newLive(t, server.Options{})
	mine, other := l.place(), l.place()
	page, err := dynamo.ReadPage(context.Background(), l.store, model.Timeline, dynamo.ListRequest{PartitionValue: string(other), Page: dynamo.PageRequest{Limit: 1}})
	if err != nil || len(page.Items) != 1 {
		t.Fatal(err)
	}
	w := l.open()
	for query, code := range map[string]string{
		`subscription { orderUpdated(id: "01HVMK3P2QRSV8T4X6Y9ZABCDZ") { id } }`:                             "NOT_FOUND",
		`subscription { customerOrders(customerId: "nobody") { id } }`:                                       "NOT_FOUND",
		`subscription { orderUpdated(id: "x") { id } }`:                                                      "BAD_USER_INPUT",
		`subscription { customerOrders(customerId: "#") { id } }`:                                            "BAD_USER_INPUT",
		fmt.Sprintf(`subscription { orderUpdated(id: %q, after: %q) { id } }`, mine, page.Items[0].ID):       "BAD_USER_INPUT",
		fmt.Sprintf(`subscription { orderUpdated(id: %q, after: "#") { id } }`, mine):                        "BAD_USER_INPUT",
		fmt.Sprintf(`subscription { customerOrders(customerId: "c1", after: %q) { id } }`, page.Items[0].ID): "BAD_USER_INPUT",
		`subscription { nonsense { id } }`:                                                                   "BAD_USER_INPUT",
		`subscription { a: orderStatusChanged { id } b: orderStatusChanged { id } }`:                         "BAD_USER_INPUT",
		`{`: "BAD_USER_INPUT",
	} {
		w.subscribe("x", query)
		if got := codes(t, w.want("error", "x")); got != code {
			t.Errorf("%s: %s, want %s", query, got, code)
		}
	}
	w.subscribe("x", "")
	if got := codes(t, w.want("error", "x")); got != "BAD_REQUEST" {
		t.Errorf("an empty query: %s", got)
	}
	w.send(frame{ID: "x", Type: "subscribe", Payload: json.RawMessage(`{"query": null, "variables": null, "operationName": null, "extensions": {"persistedQuery": {"version": 1, "sha256Hash": "` + strings.Repeat("0", 64) + `"}}}`)})
	if got := codes(t, w.want("error", "x")); got != "PERSISTED_QUERY_NOT_FOUND" {
		t.Errorf("the hash of an unknown query gets %s", got)
	}
	l.waitForNoSubscriptions()
	w.subscribe("x", aliceQuery)
	w.want("next", "x")
	l.log.checkEmpty(t)
}

// subscribeMessage returns a subscribe message with a payload.
func subscribeMessage(payload string) string {
	return `{"id":"a","type":"subscribe","payload":` + payload + `}`
}

// Each protocol violation closes the socket with its code.
func TestSocketsAreClosedWithACode(t *testing.T) {
	l := newLive(t, server.Options{Limits: server.Limits{Body: 2000}})
	open := []string{`{"type":"connection_init"}`}
	following := []string{open[0], `{"id":"a","type":"subscribe","payload":{"query":"subscription { orderStatusChanged { id } }"}}`}
	for name, c := range map[string]struct {
		messages []string
		code     websocket.StatusCode
	}{
		"no JSON":                    {[]string{`nonsense`}, 4400},
		"no type":                    {[]string{`{}`}, 4400},
		"an unknown type":            {[]string{`{"type":"start"}`}, 4400},
		"an answer's type":           {[]string{`{"type":"next","id":"a"}`}, 4400},
		"no text":                    {append(open, "{\"type\":\"ping\",\"payload\":{\"a\":\"\xff\"}}"), 4400},
		"a list":                     {[]string{`[]`}, 4400},
		"init with a text":           {[]string{`{"type":"connection_init","payload":"x"}`}, 4400},
		"an id that is no text":      {append(open, `{"id":1,"type":"subscribe","payload":{"query":"{__typename}"}}`), 4400},
		"no id":                      {append(open, `{"type":"subscribe","payload":{"query":"{__typename}"}}`), 4400},
		"an empty id":                {append(open, `{"id":"","type":"subscribe","payload":{"query":"{__typename}"}}`), 4400},
		"a long id":                  {append(open, `{"id":"`+strings.Repeat("a", 257)+`","type":"subscribe","payload":{"query":"{__typename}"}}`), 4400},
		"no payload":                 {append(open, `{"id":"a","type":"subscribe"}`), 4400},
		"a null payload":             {append(open, `{"id":"a","type":"subscribe","payload":null}`), 4400},
		"a list as payload":          {append(open, `{"id":"a","type":"subscribe","payload":[]}`), 4400},
		"no query":                   {append(open, subscribeMessage(`{}`)), 4400},
		"a null query":               {append(open, subscribeMessage(`{"query":null}`)), 4400},
		"a query in capitals":        {append(open, subscribeMessage(`{"QUERY":"{__typename}"}`)), 4400},
		"extensions without a hash":  {append(open, subscribeMessage(`{"extensions":{"persistedQuery":null}}`)), 4400},
		"a number as query":          {append(open, subscribeMessage(`{"query":1}`)), 4400},
		"an object as query":         {append(open, subscribeMessage(`{"query":{}}`)), 4400},
		"two queries":                {append(open, subscribeMessage(`{"query":"{__typename}","query":"{__typename}"}`)), 4400},
		"a list as operationName":    {append(open, subscribeMessage(`{"query":"{__typename}","operationName":["a"]}`)), 4400},
		"false as operationName":     {append(open, subscribeMessage(`{"query":"{__typename}","operationName":false}`)), 4400},
		"a list as variables":        {append(open, subscribeMessage(`{"query":"{__typename}","variables":[]}`)), 4400},
		"a string as variables":      {append(open, subscribeMessage(`{"query":"{__typename}","variables":"{}"}`)), 4400},
		"a number as extensions":     {append(open, subscribeMessage(`{"query":"{__typename}","extensions":0}`)), 4400},
		"a number as documentId":     {append(open, subscribeMessage(`{"query":"{__typename}","documentId":0}`)), 4400},
		"a list as ping's payload":   {append(open, `{"type":"ping","payload":[]}`), 4400},
		"a string as pong's payload": {append(open, `{"type":"pong","payload":"x"}`), 4400},
		"a list as init's payload":   {[]string{`{"type":"connection_init","payload":[]}`}, 4400},
		"complete with an empty id":  {append(open, `{"type":"complete","id":""}`), 4400},
		"null":                       {[]string{`null`}, 4400},
		"an invalid one before init": {[]string{subscribeMessage(`{"query":1}`)}, 4401},
		"complete without an id":     {append(open, `{"type":"complete"}`), 4400},
		"subscribe first":            {following[1:], 4401},
		"two Authorizations":         {[]string{`{"type":"connection_init","payload":{"Authorization":"Bearer a","authorization":"Bearer b"}}`}, 4403},
		"a number as Authorization":  {[]string{`{"type":"connection_init","payload":{"Authorization":1}}`}, 4403},
		"the same id twice":          {append(following, following[1]), 4409},
		"the same long id twice":     {append(open, strings.Replace(following[1], `"a"`, `"`+strings.Repeat("ä", 128)+`"`, 1), strings.Replace(following[1], `"a"`, `"`+strings.Repeat("ä", 128)+`"`, 1)), 4409},
		"init twice":                 {append(open, open[0]), 4429},
		"a message that is too long": {append(open, `{"type":"ping","payload":{"a":"`+strings.Repeat("a", 3000)+`"}}`), websocket.StatusMessageTooBig},
		"a message with many values": {append(open, `{"type":"ping","payload":{"a":[`+strings.Repeat("1,", 900)+`1]}}`), 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := l.dial()
			for _, m := range c.messages {
				w.text(m)
			}
			if c.code == 0 {
				w.want("connection_ack", "")
				w.want("pong", "")
				return
			}
			w.closed(c.code)
		})
	}
	t.Run("a message with too many values", func(t *testing.T) {
		w := newLive(t, server.Options{}).open()
		w.text(`{"type":"ping","payload":{"a":[` + strings.Repeat("1,", 10_000) + `1]}}`)
		w.closed(4400)
	})
	t.Run("bytes", func(t *testing.T) {
		w := l.dial()
		if err := w.conn.Write(w.ctx, websocket.MessageBinary, []byte(`{"type":"connection_init"}`)); err != nil {
			t.Fatal(err)
		}
		w.closed(4400)
	})
	for _, protocols := range [][]string{nil, {"graphql-ws"}, {"a", "b"}} {
		l.dialAs(protocols).closed(4406)
	}
	if w := l.dialAs([]string{"graphql-ws", "graphql-transport-ws"}); w.conn.Subprotocol() != "graphql-transport-ws" {
		t.Errorf("speaks %q", w.conn.Subprotocol())
	}
	l.waitForNoSubscriptions()
	l.log.checkEmpty(t)
}

// A client that sends no connection_init, or has disconnected, does not use a socket for long.
func TestSocketsThatAreSilent(t *testing.T) {
	l := newLive(t, server.Options{Limits: server.Limits{InitTime: 20 * time.Millisecond, KeepAlive: 20 * time.Millisecond}})
	l.dial().closed(4408)
	w := l.open()
	w.subscribe("a", `subscription { orderStatusChanged { id } }`)
	for range 3 { // a client that responds to pings stays connected
		w.want("ping", "")
		w.send(frame{Type: "pong"})
	}
	w.send(frame{Type: "ping", Payload: json.RawMessage(`{"a":1}`)})
	for {
		f := w.receive()
		if f.Type == "ping" {
			w.send(frame{Type: "pong"})
			continue
		}
		if f.Type != "pong" || string(f.Payload) != `{"a":1}` {
			t.Errorf("%v", f)
		}
		break
	}
	w.closed(-1) // the client responds no more
	l.waitForNoSubscriptions()
	l.log.checkEmpty(t)
}

// A page of another site cannot open a socket, unless its origin is configured.
func TestSocketsOfOtherSites(t *testing.T) {
	l := newLive(t, server.Options{}, func(o *server.Options) { o.Origins = []string{"https://shop.example", "https://*.trusted.example"} })
	for origin, allowed := range map[string]bool{
		"": true, "http://" + l.addr: true, "https://" + l.addr: true, "https://shop.example": true, "https://SHOP.example": true, "https://a.trusted.example": true,
		"https://evil.example": false, "https://shop.example.evil": false, "http://shop.example": false, "null": false, l.addr: false, "https://trusted.example": false,
		"http://" + l.addr + ".evil.example": false, "http://evil.example/" + l.addr: false,
	} {
		var header []string
		if origin != "" {
			header = []string{"Origin", origin}
		}
		_, status, err := l.tryDial([]string{"graphql-transport-ws"}, header...)
		if (err == nil) != allowed || !allowed && status != http.StatusForbidden {
			t.Errorf("%q: status %d, %v", origin, status, err)
		}
	}
	closed := newLive(t, server.Options{})
	if _, status, err := closed.tryDial([]string{"graphql-transport-ws"}, "Origin", "https://shop.example"); err == nil || status != http.StatusForbidden {
		t.Errorf("a server without allowed origins: status %d, %v", status, err)
	}
}

// Each socket and the whole server limit their operations. The server limits its sockets.
func TestLimitsOfSockets(t *testing.T) {
	const follow = `subscription { orderStatusChanged { id } }`
	l := newLive(t, server.Options{Limits: server.Limits{SocketSubscriptions: 2}, Admission: admission.New(admission.Sizes{admission.PoolSubscriptions: 3, admission.PoolConnections: 8})})
	w := l.open()
	for i := range 2 {
		w.subscribe(fmt.Sprint(i), follow)
	}
	w.subscribe("2", follow)
	if got := codes(t, w.want("error", "2")); got != "TOO_MANY_SUBSCRIPTIONS" {
		t.Errorf("on one socket: %s", got)
	}
	l.log.checkEmpty(t) // these errors are the client's
	other := l.open()
	other.subscribe("a", follow)
	l.waitForSubscriptions(3)
	other.subscribe("b", follow)
	if got := codes(t, other.want("error", "b")); got != "TOO_MANY_SUBSCRIPTIONS" {
		t.Errorf("in all: %s", got)
	}
	l.log.checkShedding(t)
	_ = w.conn.Close(websocket.StatusNormalClosure, "")
	l.waitForSubscriptions(1)
	other.subscribe("b", follow)
	l.waitForSubscriptions(2)
	for range 5 { // five of six
		l.open()
	}
	if _, status, err := l.tryDial([]string{"graphql-transport-ws"}); err == nil || status != http.StatusServiceUnavailable {
		t.Errorf("more sockets than three quarters of the connections: status %d, %v", status, err)
	}
	l.request(http.MethodPost, l.url(), post(follow)).refused(t, http.StatusServiceUnavailable, "OVERLOADED")
	l.waitForSubscriptions(2)
	// Requests still have capacity.
	response, err := http.Post(l.url(), "application/json", strings.NewReader(post(aliceQuery)))
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Errorf("status %d", response.StatusCode)
	}
}

// Operations on sockets share the slots of requests.
func TestSocketsShareTheRequestSlots(t *testing.T) {
	b := newBlocked()
	h, _ := newHandler(t, sampleThrough(t, b.pass), slog.LevelInfo, server.Options{Admission: admission.New(admission.Sizes{admission.PoolRequests: 1})})
	l := &liveServer{t: t, addr: listenTCP(t, h, server.Options{})}
	w := l.open()
	w.subscribe("1", aliceQuery)
	<-b.arrived
	w.subscribe("2", aliceQuery)
	if got := codes(t, w.want("error", "2")); got != "OVERLOADED" {
		t.Errorf("%s", got)
	}
	close(b.release)
	w.want("next", "1")
	w.want("complete", "1")
}

// largeSelection returns fields that make an event 20 kB long. Few such events fill the buffers of
// a connection that is not read.
func largeSelection() string {
	var fields strings.Builder
	for i := range 90 {
		fmt.Fprintf(&fields, " %s%d: orderId", strings.Repeat("a", 190), i)
	}
	return fields.String()
}

// A subscription of a slow reader ends with an error if the error can still be sent. It can
// continue with after.
func TestSlowSubscribers(t *testing.T) {
	l := newLiveWith(t, server.Options{Limits: server.Limits{AnswerTime: testTimeout}}, feed.Options{QueueCapacity: 4})
	order := l.place()
	w := l.open()
	w.subscribe("a", fmt.Sprintf(`subscription { orderUpdated(id: %q, after: %q) { id %s } }`, order, l.last(order), largeSelection()))
	l.waitForSubscriptions(1)
	n := 0
	for ; l.feed.Subscriptions() > 0 && n < 20_000; n++ {
		l.set(order, n%90+2)
	}
	if l.feed.Subscriptions() > 0 {
		t.Fatalf("after %d changes, the connection of the slow client is still open", n)
	}
	for {
		f := w.receive()
		if f.Type == "error" {
			if got := codes(t, f); got != "TOO_SLOW" {
				t.Errorf("%s", got)
			}
			break
		}
	}
	w.subscribe("a", aliceQuery)
	w.want("next", "a")
}

// The connection of a client that reads nothing is closed. Other clients get all events.
func TestClientsThatReadNothing(t *testing.T) {
	l := newLive(t, server.Options{Limits: server.Limits{AnswerTime: time.Second}})
	order := l.place()
	slow, quick := l.open(), l.open()
	slow.subscribe("a", fmt.Sprintf(`subscription { orderUpdated(id: %q, after: %q) { %s } }`, order, l.last(order), largeSelection()))
	l.waitForSubscriptions(1)
	quick.subscribe("a", fmt.Sprintf(`subscription { orderUpdated(id: %q, after: %q) { order { items { nodes { quantity } } } } }`, order, l.last(order)))
	l.waitForSubscriptions(2)
	n := 0
	for ; l.feed.Subscriptions() > 1 && n < 50_000; n++ {
		l.set(order, n%90+2)
		if got := quick.want("next", "a"); !strings.Contains(string(got.Payload), fmt.Sprintf(`"quantity":%d}`, n%90+2)) {
			t.Fatalf("%s", got.Payload)
		}
	}
	if l.feed.Subscriptions() != 1 {
		t.Errorf("after %d changes, there are %d subscriptions, want 1", n, l.feed.Subscriptions())
	}
}

// When the server stops, sockets and streams are closed, and Serve returns.
func TestServeClosesSockets(t *testing.T) {
	db := embedded.New().Client()
	store := storetest.SampleStore(t, db)
	feed := storetest.OpenFeed(t, db, store, feed.Options{})
	h, _ := newHandler(t, store, slog.LevelInfo, server.Options{Graph: graph.Options{Feed: feed}})
	ctx, stop := context.WithCancel(context.Background())
	listener := listenLocal(t)
	served := make(chan error, 1)
	go func() {
		served <- server.Serve(ctx, listener, h, server.Options{Log: slog.New(slog.DiscardHandler)})
	}()
	l := &liveServer{t: t, addr: listener.Addr().String(), store: store, feed: feed}
	w, silent := l.open(), l.dial()
	w.subscribe("a", `subscription { orderStatusChanged { id } }`)
	events := l.stream(`subscription { orderStatusChanged { id } }`)
	l.waitForSubscriptions(2)
	stop()
	w.closed(websocket.StatusGoingAway)
	silent.closed(websocket.StatusGoingAway)
	if name, _, err := events.next(); err == nil {
		t.Errorf("after the shutdown, the stream returned the event %q", name)
	}
	if err := <-served; err != nil {
		t.Errorf("Serve: %v", err)
	}
	l.waitForNoSubscriptions()
}

// If the server stops while a query or mutation of a WebSocket is in progress, the operation
// completes before the server closes the WebSocket.
func TestServeCompletesOperationsOnSockets(t *testing.T) {
	b := newBlocked()
	h, _ := newHandler(t, sampleThrough(t, b.pass), slog.LevelInfo, server.Options{})
	ctx, stop := context.WithCancel(context.Background())
	listener := listenLocal(t)
	served := make(chan error, 1)
	go func() {
		served <- server.Serve(ctx, listener, h, server.Options{Log: slog.New(slog.DiscardHandler)})
	}()
	l := &liveServer{t: t, addr: listener.Addr().String()}
	w, idle := l.open(), l.open()
	w.subscribe("a", aliceQuery)
	<-b.arrived
	stop()
	idle.closed(websocket.StatusGoingAway)
	close(b.release)
	if got := w.want("next", "a"); string(got.Payload) != aliceAnswer {
		t.Errorf("the query in progress got %s", got.Payload)
	}
	w.want("complete", "a")
	w.closed(websocket.StatusGoingAway)
	if err := <-served; err != nil {
		t.Errorf("Serve: %v", err)
	}
}

// A panic ends only its operation, with INTERNAL.
func TestPanicsOnSockets(t *testing.T) {
	h, j := newHandler(t, sampleThrough(t, panicking("a secret")), slog.LevelInfo, server.Options{})
	l := &liveServer{t: t, addr: listenTCP(t, h, server.Options{})}
	w := l.open()
	w.subscribe("a", aliceQuery)
	got := w.want("next", "a")
	if !strings.Contains(string(got.Payload), "INTERNAL") || strings.Contains(string(got.Payload), "secret") {
		t.Errorf("%s", got.Payload)
	}
	w.want("complete", "a")
	if log := j.entries(t); len(log) != 1 || log[0]["requestId"] == "" {
		t.Errorf("%v", log)
	}
}

// A malformed upgrade gets an HTTP error.
func TestMalformedUpgrades(t *testing.T) {
	l := newLive(t, server.Options{})
	for name, header := range map[string][]string{
		"no key":          {"Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Version", "13"},
		"another version": {"Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Version", "8", "Sec-WebSocket-Key", "AAAAAAAAAAAAAAAAAAAAAA=="},
	} {
		r, err := http.NewRequest(http.MethodGet, l.url(), nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode < 400 || response.StatusCode >= 500 {
			t.Errorf("%s: status %d", name, response.StatusCode)
		}
	}
}

// Events are explained if a header or connection_init asks for that.
func TestEventsAreExplained(t *testing.T) {
	l := newLive(t, server.Options{})
	order := l.place()
	byHeader := l.open("X-Ordergraph-Explain", "true")
	byPayload := l.dial()
	byPayload.text(`{"type":"connection_init","payload":{"x-ordergraph-explain":true}}`)
	byPayload.want("connection_ack", "")
	not := l.open()
	for i, w := range []*peer{byHeader, byPayload, not} {
		w.subscribe("a", fmt.Sprintf(`subscription { orderUpdated(id: %q, after: %q) { order { customer { name } } } }`, order, l.last(order)))
		l.waitForSubscriptions(i + 1)
	}
	l.set(order, 2)
	for i, w := range []*peer{byHeader, byPayload, not} {
		if got := w.want("next", "a"); strings.Contains(string(got.Payload), `"explain"`) != (i < 2) {
			t.Errorf("%d: %s", i, got.Payload)
		}
	}
}
