package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/ordergraph/ordergraph/dynamo/feed"
	"github.com/ordergraph/ordergraph/embedded"
	"github.com/ordergraph/ordergraph/internal/admission"
	"github.com/ordergraph/ordergraph/internal/server"
	"github.com/ordergraph/ordergraph/internal/test/authtest"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// liveWithAuthentication starts a live server that requires tokens.
func liveWithAuthentication(t testing.TB, opts ...server.Options) (*liveServer, *authenticatedServer) {
	t.Helper()
	opts = append(opts, server.Options{})
	db := embedded.New().Client()
	l := &liveServer{t: t, store: storetest.SampleStore(t, db)}
	l.feed = storetest.OpenFeed(t, db, l.store, feed.Options{})
	opts[0].Graph.Feed = l.feed
	g := newAuthenticatedServer(t, l.store, opts[0])
	l.addr, l.log = listenTCP(t, g, opts[0]), g.log
	return l, g
}

// as opens a socket with a token.
func (l *liveServer) as(token string) *peer {
	l.t.Helper()
	w := l.dial()
	w.text(fmt.Sprintf(`{"type":"connection_init","payload":{"Authorization":"Bearer %s"}}`, token))
	w.want("connection_ack", "")
	return w
}

func customerClaims(id string) authtest.Object {
	return authtest.Object{"role": "CUSTOMER", "customer_id": id}
}

// The token of a socket is in connection_init or in the upgrade.
func TestSocketAuthentication(t *testing.T) {
	l, g := liveWithAuthentication(t)
	good := g.token(t, nil)
	for name, init := range map[string]string{
		"Authorization": `{"type":"connection_init","payload":{"Authorization":"Bearer ` + good + `"}}`,
		"lower case":    `{"type":"connection_init","payload":{"authorization":"bearer ` + good + `"}}`,
		"with others":   `{"type":"connection_init","payload":{"AUTHORIZATION":"Bearer ` + good + `","x":{"y":1}}}`,
	} {
		w := l.dial()
		w.text(init)
		if f := w.receive(); f.Type != "connection_ack" {
			t.Errorf("%s: %v", name, f)
		}
	}
	w := l.dial("Authorization", "Bearer "+good)
	w.text(`{"type":"connection_init"}`)
	w.want("connection_ack", "")
	w.subscribe("a", aliceQuery)
	w.want("next", "a")

	for name, init := range map[string]string{
		"nothing":       `{"type":"connection_init"}`,
		"no token":      `{"type":"connection_init","payload":{}}`,
		"null":          `{"type":"connection_init","payload":{"Authorization":null}}`,
		"no Bearer":     `{"type":"connection_init","payload":{"Authorization":"` + good + `"}}`,
		"nonsense":      `{"type":"connection_init","payload":{"Authorization":"Bearer nonsense"}}`,
		"over":          `{"type":"connection_init","payload":{"Authorization":"Bearer ` + g.token(t, authtest.Object{"exp": 1}) + `"}}`,
		"two":           `{"type":"connection_init","payload":{"Authorization":"Bearer ` + good + `","authorization":"Bearer ` + good + `"}}`,
		"an object":     `{"type":"connection_init","payload":{"Authorization":{"a":"Bearer ` + good + `"}}}`,
		"a gone client": `{"type":"connection_init","payload":{"Authorization":"Bearer ` + g.token(t, customerClaims("cust_77")) + `"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			w := l.dial()
			w.text(init)
			w.closed(4403)
		})
	}
	// A valid token in the upgrade does not replace an invalid one in connection_init.
	w = l.dial("Authorization", "Bearer "+good)
	w.text(`{"type":"connection_init","payload":{"Authorization":"Bearer nonsense"}}`)
	w.closed(4403)
	w = l.dial("Authorization", "Bearer "+good)
	w.subscribe("a", aliceQuery)
	w.closed(4401)
	g.checkLog(t, good)
}

// A customer can subscribe to its own orders. Orders of other customers look the same as missing
// ones. Subscriptions for staff are refused.
func TestCustomersSubscribeToTheirOwnOrders(t *testing.T) {
	l, g := liveWithAuthentication(t)
	mine := l.place()
	foreign := `01KNVV2HR00000000000000101`
	w := l.as(g.token(t, customerClaims("cust_01")))
	for query, code := range map[string]string{
		`subscription { orderUpdated(id: "` + foreign + `") { id } }`:                      "NOT_FOUND",
		`subscription { orderUpdated(id: "01HVMK3P2QRSV8T4X6Y9ZABCDZ") { id } }`:           "NOT_FOUND",
		`subscription { customerOrders(customerId: "c1") { id } }`:                         "NOT_FOUND",
		`subscription { customerOrders(customerId: "nobody") { id } }`:                     "NOT_FOUND",
		`subscription { orderStatusChanged { id } }`:                                       "FORBIDDEN",
		`subscription { orderUpdated(id: "` + string(mine) + `") { id event { actor } } }`: "FORBIDDEN",
	} {
		w.subscribe("x", query)
		if got := codes(t, w.want("error", "x")); got != code {
			t.Errorf("%s: %s, want %s", query, got, code)
		}
	}
	staff := l.as(g.token(t, authtest.Object{"role": "STAFF"}))
	staff.subscribe("a", `subscription { orderUpdated(id: "`+foreign+`") { id } }`)
	w.subscribe("a", fmt.Sprintf(`subscription { orderUpdated(id: %q, after: %q) { order { customer { id } } } }`, mine, l.last(mine)))
	w.subscribe("b", fmt.Sprintf(`subscription { customerOrders(customerId: "cust_01", after: %q) { order { customer { id } } } }`, l.last(mine)))
	l.waitForSubscriptions(3)
	l.set(mine, 2)
	for range 2 {
		if got := w.receive(); got.Type != "next" || !strings.HasSuffix(string(got.Payload), `{"order":{"customer":{"id":"cust_01"}}}}}`) {
			t.Errorf("%s %s", got.Type, got.Payload)
		}
	}
}

// A socket and an event stream end when their token expires.
func TestExpiredTokensEndConnections(t *testing.T) {
	l, g := liveWithAuthentication(t)
	short, long := g.token(t, authtest.Object{"exp": g.now().Add(time.Hour).Unix()}), g.token(t, authtest.Object{"exp": g.now().Add(3 * time.Hour).Unix()})
	w, unexpired := l.as(short), l.as(long)
	const follow = `subscription { orderStatusChanged { id } }`
	w.subscribe("a", follow)
	unexpired.subscribe("a", follow)
	e := l.request(http.MethodPost, l.url(), post(follow), "Authorization", "Bearer "+short)
	if e.response.StatusCode != http.StatusOK {
		t.Fatalf("status %d", e.response.StatusCode)
	}
	// The server accepts a clock difference of a minute.
	g.clock.Advance(time.Hour + 50*time.Second)
	w.subscribe("b", aliceQuery)
	w.want("next", "b")
	w.want("complete", "b")
	g.clock.Advance(10 * time.Second)
	w.closed(4403)
	if name, _, err := e.next(); err == nil {
		t.Errorf("the stream returned the event %q, want it closed", name)
	}
	l.waitForSubscriptions(1)
	l.request(http.MethodPost, l.url(), post(follow)).refused(t, http.StatusUnauthorized, "UNAUTHENTICATED")
	unexpired.subscribe("b", aliceQuery)
	unexpired.want("next", "b")
	_ = unexpired.conn.Close(websocket.StatusNormalClosure, "")
	l.waitForNoSubscriptions()
	g.checkLog(t, short, long)
}

// openAll opens sockets with a first message until the server refuses one. It returns the open
// ones.
func (l *liveServer) openAll(init string) (open []*peer) {
	l.t.Helper()
	for {
		w, status, err := l.tryDial([]string{"graphql-transport-ws"})
		if err != nil {
			if status != http.StatusServiceUnavailable {
				l.t.Fatalf("status %d, %v", status, err)
			}
			return open
		}
		w.text(init)
		if _, _, err := w.conn.Read(w.ctx); err != nil {
			if got := websocket.CloseStatus(err); got != websocket.StatusTryAgainLater {
				l.t.Fatalf("closed with %d", got)
			}
			return open
		}
		open = append(open, w)
	}
}

// A customer cannot use the capacity of all others, neither with subscriptions on any number of
// sockets nor with sockets and streams. A customer can use a sixteenth of the capacity.
func TestOneCustomerLeavesCapacityForOthers(t *testing.T) {
	t.Parallel()
	l, g := liveWithAuthentication(t, server.Options{Admission: admission.New(admission.Sizes{admission.PoolSubscriptions: 14 * 16, admission.PoolConnections: 600})})
	ann, bob := g.token(t, customerClaims("cust_01")), g.token(t, customerClaims("cust_001"))
	const follow = `subscription { customerOrders(customerId: "cust_01") { id } }`
	stream := func(token string) *events {
		return l.request(http.MethodPost, l.url(), post(follow), "Authorization", "Bearer "+token)
	}
	open := l.openAll(`{"type":"connection_init","payload":{"Authorization":"Bearer ` + ann + `"}}`)
	if len(open) != 28 {
		t.Errorf("one caller could open %d of 450 sockets, want a sixteenth", len(open))
	}
	stream(ann).refused(t, http.StatusServiceUnavailable, "OVERLOADED")
	for i := range 14 {
		open[i%2].subscribe(fmt.Sprint(i), follow)
	}
	l.waitForSubscriptions(14)
	// The server delays each refusal, so all sockets ask before the first refusal is read.
	for _, w := range open {
		w.subscribe("more", follow)
	}
	for _, w := range open {
		if got := codes(t, w.want("error", "more")); got != "TOO_MANY_SUBSCRIPTIONS" {
			t.Errorf("a subscription over the share gets %s", got)
		}
	}
	w := l.as(bob)
	w.subscribe("a", `subscription { customerOrders(customerId: "cust_001") { id } }`)
	l.waitForSubscriptions(15)
	// Everything that ends releases its capacity, on every path.
	open[0].send(frame{ID: "0", Type: "complete"})
	l.waitForSubscriptions(14)
	for _, w := range open[2:] {
		_ = w.conn.CloseNow()
	}
	open[0].send(frame{ID: "2", Type: "complete"})
	l.waitForSubscriptions(13)
	var e *events
	for deadline := time.Now().Add(testTimeout); e == nil || e.response.StatusCode != http.StatusOK; {
		if time.Now().After(deadline) {
			t.Fatal("the capacity of the ended subscription was not released")
		}
		e = stream(ann)
	}
	l.waitForSubscriptions(14)
	e.leave()
	_ = open[0].conn.CloseNow()
	_ = open[1].conn.CloseNow()
	l.waitForSubscriptions(1)
}

// Several customers that open all sockets of their shares cannot keep others out.
func TestCustomersLeaveSocketsForOthers(t *testing.T) {
	t.Parallel()
	l, g := liveWithAuthentication(t, server.Options{Admission: admission.New(admission.Sizes{admission.PoolConnections: 64})})
	for i := range 5 {
		token := g.token(t, customerClaims(fmt.Sprint("cust_00", i+1)))
		open := 0
		for {
			w, status, err := l.tryDial([]string{"graphql-transport-ws"}, "Authorization", "Bearer "+token)
			if err != nil {
				if status != http.StatusServiceUnavailable {
					t.Fatalf("status %d, %v", status, err)
				}
				break
			}
			w.send(frame{Type: "connection_init"})
			w.want("connection_ack", "")
			open++
		}
		if open != 3 {
			t.Errorf("customer %d can open %d of 48 sockets, want a sixteenth", i, open)
		}
	}
	w := l.as(g.token(t, nil))
	w.subscribe("a", `{ viewer { role } }`)
	w.want("next", "a")
}

// Before a socket is authenticated, it accepts only short messages.
func TestUnauthenticatedSocketsAcceptOnlyShortMessages(t *testing.T) {
	l, g := liveWithAuthentication(t)
	long := `{"type":"ping","payload":{"x":"` + strings.Repeat("x", 40<<10) + `"}}`
	w := l.dial()
	w.text(long)
	w.closed(websocket.StatusMessageTooBig)
	w = l.as(g.token(t, nil))
	w.text(long)
	if got := w.want("pong", ""); len(got.Payload) < 40<<10 {
		t.Errorf("%d bytes come back", len(got.Payload))
	}
}
