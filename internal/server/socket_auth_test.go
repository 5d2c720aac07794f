package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/ordergraph/ordergraph/dynamo/feed"
	"github.com/ordergraph/ordergraph/graph"
	"github.com/ordergraph/ordergraph/internal/authtest"
	"github.com/ordergraph/ordergraph/internal/embedded"
	"github.com/ordergraph/ordergraph/internal/server"
	"github.com/ordergraph/ordergraph/internal/storetest"
)

// guardedLive is a live server that wants tokens.
func guardedLive(t testing.TB, limits ...server.Limits) (*live, *guarded) {
	t.Helper()
	limits = append(limits, server.Limits{})
	db := embedded.New().Client()
	l := &live{t: t, store: storetest.Sample(t, db)}
	l.feed = storetest.Feed(t, db, l.store, feed.Options{})
	g := guarding(t, l.store, server.Options{Graph: graph.Options{Feed: l.feed}, Limits: limits[0]})
	l.addr, l.log = listenTCP(t, g, limits[0]), g.log
	return l, g
}

// as opens a socket in the name of whom a token speaks for.
func (l *live) as(token string) *peer {
	l.t.Helper()
	w := l.dial()
	w.text(fmt.Sprintf(`{"type":"connection_init","payload":{"Authorization":"Bearer %s"}}`, token))
	w.want("connection_ack", "")
	return w
}

func customerClaims(id string) authtest.Object {
	return authtest.Object{"role": "CUSTOMER", "customer_id": id}
}

// A socket says who uses it with connection_init, or with the upgrade.
func TestSocketsSayWhoUsesThem(t *testing.T) {
	l, g := guardedLive(t)
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
	w.subscribe("a", alice)
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
	// What the upgrade says does not make good what connection_init says wrongly.
	w = l.dial("Authorization", "Bearer "+good)
	w.text(`{"type":"connection_init","payload":{"Authorization":"Bearer nonsense"}}`)
	w.closed(4403)
	w = l.dial("Authorization", "Bearer "+good)
	w.subscribe("a", alice)
	w.closed(4401)
	g.checkLog(t, good)
}

// A customer follows the own orders; others are as unknown as those that do not exist, and what
// only staff may follow is refused.
func TestCustomersFollowTheirOwnOrders(t *testing.T) {
	l, g := guardedLive(t)
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
	l.following(3)
	l.set(mine, 2)
	for range 2 {
		if got := w.receive(); got.Type != "next" || !strings.HasSuffix(string(got.Payload), `{"order":{"customer":{"id":"cust_01"}}}}}`) {
			t.Errorf("%s %s", got.Type, got.Payload)
		}
	}
}

// A socket and a stream of events end when their token does.
func TestTheTokensEndIsTheEnd(t *testing.T) {
	l, g := guardedLive(t)
	short, long := g.token(t, authtest.Object{"exp": g.now().Add(time.Hour).Unix()}), g.token(t, authtest.Object{"exp": g.now().Add(3 * time.Hour).Unix()})
	w, stays := l.as(short), l.as(long)
	const follow = `subscription { orderStatusChanged { id } }`
	w.subscribe("a", follow)
	stays.subscribe("a", follow)
	e := l.request(http.MethodPost, l.url(), post(follow), "Authorization", "Bearer "+short)
	if e.response.StatusCode != http.StatusOK {
		t.Fatalf("status %d", e.response.StatusCode)
	}
	// The server lets clocks differ by a minute.
	g.clock.Pass(time.Hour + 50*time.Second)
	w.subscribe("b", alice)
	w.want("next", "b")
	w.want("complete", "b")
	g.clock.Pass(10 * time.Second)
	w.closed(4403)
	if name, _, err := e.next(); err == nil {
		t.Errorf("the stream has %q instead of its end", name)
	}
	l.following(1)
	l.request(http.MethodPost, l.url(), post(follow)).refused(t, http.StatusUnauthorized, "UNAUTHENTICATED")
	stays.subscribe("b", alice)
	stays.want("next", "b")
	_ = stays.conn.Close(websocket.StatusNormalClosure, "")
	l.settled()
	g.checkLog(t, short, long)
}

// No customer takes the places of all others: neither by subscriptions, however many sockets they
// are on, nor by sockets and streams.
func TestOneCustomerLeavesRoomForOthers(t *testing.T) {
	l, g := guardedLive(t, server.Limits{Subscriptions: 40, Connections: 54})
	ann, bob, staff := g.token(t, customerClaims("cust_01")), g.token(t, customerClaims("cust_001")), g.token(t, authtest.Object{"role": "STAFF"})
	const follow = `subscription { customerOrders(customerId: "cust_01") { id } }`
	first, second := l.as(ann), l.as(ann)
	third := l.dial()
	third.text(`{"type":"connection_init","payload":{"Authorization":"Bearer ` + ann + `"}}`)
	third.closed(websocket.StatusTryAgainLater)
	stream := func(token string) *events {
		return l.request(http.MethodPost, l.url(), post(follow), "Authorization", "Bearer "+token)
	}
	stream(ann).refused(t, http.StatusServiceUnavailable, "OVERLOADED")
	first.subscribe("a", follow)
	first.subscribe("b", follow)
	l.following(2)
	for _, w := range []*peer{first, second} {
		w.subscribe("c", follow)
		if got := codes(t, w.want("error", "c")); got != "TOO_MANY_SUBSCRIPTIONS" {
			t.Errorf("a third subscription: %s", got)
		}
	}
	if _, status, err := l.tryDial([]string{"graphql-transport-ws"}); err != nil {
		t.Errorf("status %d: %v", status, err)
	}
	w := l.as(bob)
	w.subscribe("a", `subscription { customerOrders(customerId: "cust_001") { id } }`)
	l.following(3)
	for range 3 {
		l.as(staff).subscribe("a", follow)
	}
	l.following(6)
	// What is over is given back, wherever it ends.
	first.send(frame{ID: "a", Type: "complete"})
	l.following(5)
	_ = second.conn.CloseNow()
	var e *events
	for deadline := time.Now().Add(guard); e == nil || e.response.StatusCode != http.StatusOK; {
		if time.Now().After(deadline) {
			t.Fatal("nothing is given back")
		}
		e = stream(ann)
	}
	l.following(6)
	stream(ann).refused(t, http.StatusServiceUnavailable, "OVERLOADED")
	e.leave()
	_ = first.conn.CloseNow()
	l.following(4)
}

// Before a socket has said whose it is, its messages are short ones.
func TestStrangersSendNoLongMessages(t *testing.T) {
	l, g := guardedLive(t)
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
