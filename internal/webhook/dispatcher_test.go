package webhook_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/change"
	"github.com/ordergraph/ordergraph/dynamo/derive"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/embedded"
	"github.com/ordergraph/ordergraph/graph"
	"github.com/ordergraph/ordergraph/internal/test/longtest"
	"github.com/ordergraph/ordergraph/internal/test/receivers"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
	"github.com/ordergraph/ordergraph/internal/webhook"
)

// world is a shop with several servers and receivers, in the virtual time of a synctest bubble.
type world struct {
	*testing.T
	db      *dynamodb.Client
	table   string
	raw     storetest.RawTable
	admin   *dynamo.Store
	network *receivers.Network
	servers []*server
	hooks   int
	poll    time.Duration
	// If later is true, addWebhook adds only the receiver.
	later bool
	// request, if set, sees each request of a new server to the table. If it returns an error, the
	// request fails.
	request func(r *http.Request, body string) error
	// execute, if set, is called before each Options.Execute of a new server.
	execute func(context.Context, commerce.OrderID) error
}

// inWorld runs a test in a new world.
func inWorld(t *testing.T, test func(w *world)) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC))) // the clock of a bubble begins in 2000
		db := storetest.WithoutResponseDate(embedded.New().Client())
		w := &world{T: t, db: db, raw: storetest.NewRawTable(t, db, shop(t), dynamo.Options{}), network: receivers.NewNetwork(t)}
		w.table = w.raw.Name
		for _, feature := range []string{model.StatusChanges, model.Changes} {
			storetest.MakeReadable(t, w.raw, feature)
		}
		w.admin = w.open(db, 0)
		time.Sleep(time.Second)
		defer func() {
			for _, s := range w.servers {
				s.shutDown()
			}
			time.Sleep(time.Hour) // until the timers of connections have ended
		}()
		test(w)
	})
}

// shop returns customers, and a product with enough stock.
func shop(t testing.TB) commerce.Dataset {
	t.Helper()
	at := storetest.FirstOrderTime()
	d := commerce.Dataset{
		Warehouses: []commerce.Warehouse{{ID: "w1", Name: "North", Version: 1}},
		Products:   []commerce.Product{{SKU: "p0", Name: "Thing", Category: "Things", UnitPrice: storetest.USD("2.50"), Version: 1}},
		Levels:     []commerce.InventoryLevel{{SKU: "p0", WarehouseID: "w1", Quantity: 1_000_000, Version: 1}},
	}
	for i := range 20 {
		d.Customers = append(d.Customers, commerce.Customer{ID: customer(i), Name: "Ann", Email: fmt.Sprintf("ann%d@example.com", i), PhoneNumbers: []string{"2"}, CreatedAt: at, UpdatedAt: at, Version: 1})
	}
	if err := derive.Complete(&d); err != nil {
		t.Fatal(err)
	}
	return d
}

func customer(i int) commerce.CustomerID { return commerce.CustomerID(fmt.Sprintf("c%d", i)) }

// open returns a store for the table of the world. Its clock differs from the virtual time by skew.
func (w *world) open(db *dynamodb.Client, skew time.Duration) *dynamo.Store {
	w.Helper()
	store, err := dynamo.New(db, dynamo.Options{Table: w.table, Clock: func() time.Time { return time.Now().Add(skew) }})
	if err == nil {
		err = store.Ping(w.Context())
	}
	if err != nil {
		w.Fatal(err)
	}
	return store
}

// addWebhook creates a webhook for a new receiver, which behaves as b.
func (w *world) addWebhook(b receivers.Behavior, change func(*commerce.Webhook)) *endpoint {
	w.Helper()
	w.hooks++
	host := fmt.Sprintf("shop%d.example.com", w.hooks)
	e := &endpoint{Receiver: w.network.AddTLS(host, host, b, testSecret), hook: commerce.WebhookID(storetest.ULIDAt(time.Now(), w.hooks))}
	hook := commerce.Webhook{ID: e.hook, URL: e.URL, Version: 1, CreatedAt: time.Now(), UpdatedAt: time.Now(), Secrets: []string{"x"}}
	if change != nil {
		change(&hook)
	}
	e.wants = hook.Wants
	e.create = func() {
		w.Helper()
		hook.From = commerce.EventID(storetest.ULIDAt(time.Now(), 0))
		e.from = hook.From
		w.raw.Put(model.EncodeWithEdges(&model.KeyBuilder{}, &hook)[0])
	}
	if !w.later {
		e.create()
	}
	return e
}

const testSecret = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz"

func testSecrets(*commerce.Webhook) ([]string, error) { return []string{testSecret}, nil }

// endpoint is a webhook with its receiver.
type endpoint struct {
	*receivers.Receiver
	hook  commerce.WebhookID
	wants func(*commerce.Event) bool
	// create stores the webhook, which then wants all events after from.
	create func()
	from   commerce.EventID
}

// server is a server that delivers events.
type server struct {
	*webhook.Dispatcher
	sender *webhook.Sender
	stop   context.CancelFunc
	done   chan struct{}
	dead   atomic.Bool

	mu          sync.Mutex
	connections []net.Conn
}

// startServer starts a server.
func (w *world) startServer() *server {
	w.Helper()
	ctx, cancel := context.WithCancel(w.Context())
	s := &server{stop: cancel, done: make(chan struct{})}
	store := w.open(dynamodb.New(w.db.Options(), func(o *dynamodb.Options) { o.HTTPClient = &mortalClient{o.HTTPClient, &s.dead, w.request} }), 0)
	opts := w.network.SenderOptions()
	dial := opts.Dial
	opts.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		s.mu.Lock()
		defer s.mu.Unlock()
		if err == nil {
			s.connections = append(s.connections, c)
		}
		return c, err
	}
	s.sender = webhook.NewSender(opts)
	execute, before := webhook.NewExecute(graph.Options{Store: store}), w.execute
	s.Dispatcher = webhook.NewDispatcher(webhook.Options{
		Store: store, Sender: s.sender, Secrets: testSecrets, PollInterval: w.poll,
		Execute: func(ctx context.Context, documentID string, id commerce.OrderID) (json.RawMessage, error) {
			if before != nil {
				if err := before(ctx, id); err != nil {
					return nil, err
				}
				ctx = context.WithoutCancel(ctx)
			}
			return execute(ctx, documentID, id)
		},
		Source: "urn:ordergraph:test", Log: slog.New(slog.NewTextHandler(w.Output(), &slog.HandlerOptions{Level: slog.LevelError})),
	})
	go func() {
		defer close(s.done)
		s.Run(ctx)
	}()
	w.servers = append(w.servers, s)
	time.Sleep(300 * time.Millisecond) // so that the test and the server do nothing at the same time
	return s
}

// mortalClient fails after the server is dead.
type mortalClient struct {
	next    dynamodb.HTTPClient
	dead    *atomic.Bool
	request func(r *http.Request, body string) error
}

// Do implements dynamodb.HTTPClient.
func (c *mortalClient) Do(r *http.Request) (*http.Response, error) {
	if c.dead.Load() {
		return nil, errors.New("the server is dead")
	}
	if c.request != nil {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if err := c.request(r, string(body)); err != nil {
			return nil, err
		}
	}
	return c.next.Do(r)
}

// shutDown stops a server, which gives its leases back.
func (s *server) shutDown() {
	s.stop()
	<-s.done
	s.sender.Close()
}

// kill stops a server at once: it can neither write its state nor complete a request.
func (s *server) kill() {
	s.dead.Store(true)
	s.mu.Lock()
	for _, c := range s.connections {
		_ = c.Close()
	}
	s.mu.Unlock()
	s.shutDown()
}

var staff = change.Caller{Name: "ann"}

// place places an order.
func (w *world) place(customer commerce.CustomerID) commerce.OrderID {
	w.Helper()
	o, err := w.admin.PlaceOrder(w.Context(), staff, commerce.OrderRequest{CustomerID: customer, Lines: []commerce.OrderLine{{SKU: "p0", Quantity: 1}}})
	if err != nil {
		w.Fatal(err)
	}
	return o.ID
}

// move changes the status of an order.
func (w *world) move(id commerce.OrderID, to commerce.Status) {
	w.Helper()
	if _, err := w.admin.ChangeOrderStatus(w.Context(), staff, commerce.OrderStatusChange{OrderID: id, To: to}); err != nil {
		w.Fatal(err)
	}
}

// history returns the events in the records of the table that a webhook wants, in the sequence of
// their orders.
func (w *world) history(e *endpoint) (all []commerce.Event) {
	w.Helper()
	audit, err := storetest.Audit(w.Context(), w.db, w.table, w.admin.Shards())
	if err != nil {
		w.Fatal(err)
	}
	for k, r := range audit.Records {
		if !strings.HasPrefix(k.PK, "ORDER#") || !strings.HasPrefix(k.SK, "EVENT#") {
			continue
		}
		event, err := model.DecodeTimelineEvent(model.Record(r))
		if err != nil {
			w.Fatal(err)
		}
		if event.ID > e.from && e.wants(event) {
			all = append(all, *event)
		}
	}
	slices.SortFunc(all, func(a, b commerce.Event) int { return strings.Compare(string(a.ID), string(b.ID)) })
	return all
}

// verify checks what a receiver has accepted.
func (w *world) verify(name string, e *endpoint) {
	w.Helper()
	for _, finding := range receivers.Verify(w.history(e), e.Accepted()) {
		w.Errorf("%s: %s", name, finding)
	}
	for _, problem := range e.Invalid() {
		w.Errorf("%s: %s", name, problem)
	}
}

// deliveries returns "VERSION after PREVIOUS" for each accepted delivery.
func deliveries(e *endpoint) string {
	var all []string
	for _, d := range e.Accepted() {
		all = append(all, strconv.Itoa(d.Version)+" after "+strconv.Itoa(d.PreviousVersion))
	}
	return strings.Join(all, ", ")
}

// Each webhook gets the events that it wants, within seconds, with the previous version that it
// got.
func TestWebhooksGetTheEventsTheyWant(t *testing.T) {
	inWorld(t, func(w *world) {
		all := w.addWebhook(receivers.Healthy, nil)
		shipped := w.addWebhook(receivers.Healthy, func(h *commerce.Webhook) { h.Statuses = []commerce.Status{commerce.Cancelled} })
		topic := w.addWebhook(receivers.Healthy, func(h *commerce.Webhook) {
			h.Topics = []commerce.EventType{commerce.EventPlaced, commerce.EventNoteAdded}
		})
		paused := w.addWebhook(receivers.Healthy, func(h *commerce.Webhook) { h.Paused = true })
		s := w.startServer()
		time.Sleep(5 * time.Second)
		id := w.place("c1")
		w.move(id, commerce.Confirmed)
		if _, err := w.admin.AddOrderNote(w.Context(), staff, commerce.OrderNote{OrderID: id, Note: "gift"}); err != nil {
			t.Fatal(err)
		}
		w.move(id, commerce.Cancelled)
		time.Sleep(3 * time.Second)
		for name, c := range map[string]struct {
			*endpoint
			want string
		}{"all": {all, "1 after 0, 2 after 1, 3 after 2, 4 after 3"}, "by status": {shipped, "4 after 0"}, "by topic": {topic, "1 after 0, 3 after 1"}, "paused": {paused, ""}} {
			if got := deliveries(c.endpoint); got != c.want {
				t.Errorf("%s: got %q, want %q", name, got, c.want)
			}
		}
		w.verify("all", all)
		time.Sleep(2 * time.Minute)
		if got := deliveries(all); got != "1 after 0, 2 after 1, 3 after 2, 4 after 3" {
			t.Errorf("two minutes later: %q", got)
		}
		if stats := s.Stats(); stats != (webhook.Stats{Webhooks: 3}) {
			t.Errorf("the numbers are %+v", stats)
		}
	})
}

// Servers share the webhooks. If a server is killed, others take its webhooks over within 20
// seconds. A new server gets its share, and a server that shuts down gives its webhooks back at
// once.
func TestServersShareWebhooks(t *testing.T) {
	inWorld(t, func(w *world) {
		var all []*endpoint
		for range 6 {
			all = append(all, w.addWebhook(receivers.Healthy, nil))
		}
		shares := func(want ...int) {
			t.Helper()
			var got []int
			for _, s := range w.servers {
				got = append(got, s.Stats().Webhooks)
			}
			if !slices.Equal(got, want) {
				t.Errorf("the servers have %v webhooks, want %v", got, want)
			}
		}
		delivered := func() {
			t.Helper()
			w.place("c1")
			time.Sleep(4 * time.Second)
			for i, e := range all {
				w.verify(fmt.Sprint(i), e)
				if n := len(e.Accepted()); n != len(w.history(e)) {
					t.Errorf("webhook %d got %d deliveries of %d events", i, n, len(w.history(e)))
				}
			}
		}
		first := w.startServer()
		time.Sleep(10 * time.Second)
		shares(6)
		delivered()
		second := w.startServer()
		time.Sleep(time.Minute)
		shares(3, 3)
		delivered()
		third := w.startServer()
		time.Sleep(time.Minute)
		shares(2, 2, 2)
		second.kill()
		w.servers = []*server{first, third}
		time.Sleep(20 * time.Second)
		shares(3, 3)
		delivered()
		first.shutDown()
		w.servers = []*server{third}
		time.Sleep(4 * time.Second)
		shares(6)
		delivered()
	})
}

// The events of an order that the endpoint refuses wait, and all others are delivered. When the
// endpoint accepts the event, the rest follows in sequence.
func TestARefusedEventDelaysOnlyItsOrder(t *testing.T) {
	inWorld(t, func(w *world) {
		w.poll = 10 * time.Second
		refused := &atomic.Pointer[commerce.OrderID]{}
		e := w.addWebhook(func(x *receivers.Exchange) {
			if id := refused.Load(); id != nil && x.OrderID == *id {
				receivers.Status(400)(x)
				return
			}
			receivers.Healthy(x)
		}, nil)
		s := w.startServer()
		time.Sleep(5 * time.Second)
		poison := w.place("c1")
		time.Sleep(20 * time.Second)
		refused.Store(&poison)
		w.move(poison, commerce.Confirmed)
		for i := range 50 {
			id := w.place(customer(i % 20))
			if time.Sleep(time.Minute); i%10 == 0 {
				w.move(id, commerce.Confirmed)
			}
		}
		w.move(poison, commerce.Cancelled)
		time.Sleep(time.Hour)
		if stats := s.Stats(); stats.SetAside != 1 || stats.Retrying != 0 || stats.Lag < time.Hour {
			t.Errorf("the numbers are %+v", stats)
		}
		failures, err := w.admin.WebhookFailures(w.Context(), e.hook)
		if err != nil || len(failures) != 1 || failures[0].OrderID != poison || failures[0].Attempts < 5 || !strings.Contains(failures[0].Error, "400") {
			t.Errorf("the failures are %+v (%v)", failures, err)
		}
		for _, f := range receivers.Verify(w.history(e), e.Accepted()) {
			if f.Kind != receivers.Missing || !strings.Contains(f.Text, string(poison)) {
				t.Error(f)
			}
		}
		s.shutDown() // the next server reads the failure from the table
		w.servers = []*server{w.startServer()}
		refused.Store(nil)
		time.Sleep(2 * time.Hour)
		w.verify("afterwards", e)
		if failures, err := w.admin.WebhookFailures(w.Context(), e.hook); err != nil || len(failures) > 0 {
			t.Errorf("the failures are %+v (%v)", failures, err)
		}
	})
}

// An endpoint that is unavailable gets few requests, and then all events. One that asks for a pause
// gets none until the pause ends.
func TestUnavailableEndpoints(t *testing.T) {
	inWorld(t, func(w *world) {
		w.poll = 10 * time.Second
		start := time.Now()
		down := w.addWebhook(receivers.During(start, start.Add(3*time.Hour), receivers.Status(503), receivers.Healthy), nil)
		limited := w.addWebhook(receivers.Limit(10, 10*time.Minute, receivers.Healthy), nil)
		gone := w.addWebhook(receivers.During(start.Add(time.Minute), start.Add(time.Hour), receivers.Status(410), receivers.Healthy), nil)
		s := w.startServer()
		time.Sleep(5 * time.Second)
		for i := range 40 {
			w.place(customer(i % 20))
			time.Sleep(10 * time.Second)
		}
		time.Sleep(time.Hour)
		w.verify("limited", limited)
		var pause receivers.Request // the last request for a pause
		for _, r := range limited.Requests() {
			// Requests of the same instant were sent before the response.
			if since := r.At.Sub(pause.At); pause.Status != 0 && since > 0 && since < pause.RetryAfter {
				t.Errorf("a request came %s after a request for a pause of %s", since, pause.RetryAfter)
			}
			if r.Status == http.StatusTooManyRequests {
				pause = r
			}
		}
		states, err := w.admin.WebhookStates(w.Context(), []commerce.WebhookID{gone.hook, down.hook})
		if err != nil || !strings.Contains(states[gone.hook].DisabledReason, "410") || states[down.hook].Failures < 5 {
			t.Errorf("the states are %+v and %+v (%v)", states[gone.hook], states[down.hook], err)
		}
		before := len(gone.Requests())
		if stats := s.Stats(); stats.Webhooks != 2 || stats.Retrying != 1 {
			t.Errorf("the numbers are %+v", stats)
		}
		time.Sleep(2 * time.Hour)
		w.verify("down", down)
		if n := len(down.Requests()); n > 150 {
			t.Errorf("an endpoint that was unavailable for 3 hours got %d requests", n)
		}
		if n := len(gone.Requests()); n != before {
			t.Errorf("a disabled webhook got %d requests", n-before)
		}
	})
}

// The laboratory: for hours, receivers fail in all ways, servers are killed, restarted and started,
// and the number of shards changes. Nothing is lost, nothing is out of sequence, and healthy
// receivers do not notice.
func TestNothingIsLost(t *testing.T) {
	inWorld(t, func(w *world) {
		w.poll = 15 * time.Second
		span := longtest.Size(30*time.Minute, 24*time.Hour)
		random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // must be reproducible
		begin := time.Now()
		healthy := w.addWebhook(receivers.Healthy, nil)
		quarter := begin.Add(span / 4)
		w.later = true
		during := func(from, to int, bad receivers.Behavior) receivers.Behavior {
			part := span / 16
			return receivers.During(quarter.Add(time.Duration(from)*part), quarter.Add(time.Duration(to)*part), bad, receivers.Healthy)
		}
		bad := map[string]*endpoint{
			"fails sometimes":    w.addWebhook(receivers.Sometimes(0.2, 1, receivers.Status(500), receivers.Healthy), nil),
			"loses responses":    w.addWebhook(receivers.Sometimes(0.1, 2, receivers.LoseResponse, receivers.Healthy), nil),
			"is down":            w.addWebhook(during(1, 7, receivers.Status(502)), nil),
			"hangs":              w.addWebhook(during(2, 5, receivers.Hang), nil),
			"hangs sometimes":    w.addWebhook(receivers.Sometimes(0.05, 3, receivers.Hang, receivers.Healthy), nil),
			"is slow":            w.addWebhook(receivers.Slow(8*time.Second, receivers.Healthy), nil),
			"redirects":          w.addWebhook(during(3, 6, receivers.Redirect("https://other.example.com/")), nil),
			"resets connections": w.addWebhook(during(2, 8, receivers.Reset), nil),
			"limits requests":    w.addWebhook(receivers.Limit(50, 10*time.Minute, receivers.Healthy), nil),
			"wants few events":   w.addWebhook(receivers.Sometimes(0.2, 4, receivers.Status(500), receivers.Healthy), func(h *commerce.Webhook) { h.Topics = []commerce.EventType{commerce.EventPlaced} }),
		}
		liar := w.addWebhook(receivers.Healthy, func(h *commerce.Webhook) {
			h.URL = w.network.AddTLS("liar.example.com", "other.example.com", receivers.Healthy, testSecret).URL
		})
		for range 3 {
			w.startServer()
		}
		time.Sleep(time.Minute)
		var open []commerce.OrderID
		// The clocks of the servers that change orders differ, so an event can have a lower ID than an
		// event that was delivered before.
		writers := []*dynamo.Store{w.admin, w.open(w.db, -4*time.Second), w.open(w.db, 4*time.Second)}
		run := func(until time.Time, disturb bool) {
			for n := 0; time.Now().Before(until); n++ {
				w.admin = writers[random.IntN(len(writers))]
				open = append(open, w.place(customer(random.IntN(20))))
				for range random.IntN(6) {
					id := open[random.IntN(len(open))]
					if _, err := writers[random.IntN(len(writers))].AddOrderNote(w.Context(), staff, commerce.OrderNote{OrderID: id, Note: fmt.Sprint(n)}); err != nil {
						t.Fatal(err)
					}
				}
				open = open[max(0, len(open)-50):]
				if disturb && n%10 == 0 {
					w.replaceServer(random)
				}
				time.Sleep(time.Duration(random.IntN(120)) * time.Second)
			}
		}
		run(quarter, false)
		before := receivers.Lags(w.history(healthy), healthy.Accepted())

		for _, e := range bad {
			e.create()
		}
		liar.create()
		run(quarter.Add(span/4), true)
		if _, err := w.admin.SetShards(w.Context(), 3); err != nil {
			t.Fatal(err)
		}
		run(begin.Add(span), true)
		time.Sleep(longtest.Size(time.Hour, 3*time.Hour))

		w.verify("healthy", healthy)
		repeated := 0
		for name, e := range bad {
			w.verify(name, e)
			repeated += len(e.Accepted()) - len(w.history(e))
		}
		if len(liar.Accepted()) > 0 {
			t.Errorf("a receiver with a wrong certificate got %d events", len(liar.Accepted()))
		}
		after := receivers.Lags(w.history(healthy), healthy.Accepted())
		middle := func(lags []time.Duration) time.Duration { return lags[len(lags)/2] }
		t.Logf("%d events, %d webhooks, %d repetitions; the median lag of the healthy receiver is %s alone, and %s beside others", len(w.history(healthy)), len(bad)+2, repeated, middle(before), middle(after))
		if middle(after) > 2*middle(before) || after[len(after)*9/10] > time.Minute {
			t.Errorf("the healthy receiver got events later: the median is %s instead of %s, and 90 %% arrived within %s", middle(after), middle(before), after[len(after)*9/10])
		}
	})
}

// replaceServer kills a server or shuts it down, and starts another one.
func (w *world) replaceServer(random *rand.Rand) {
	w.Helper()
	i := random.IntN(len(w.servers))
	s := w.servers[i]
	w.servers = slices.Delete(w.servers, i, i+1)
	if random.IntN(3) > 0 {
		s.kill()
	} else {
		s.shutDown()
	}
	w.startServer()
}
