package crash_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/internal/server"
	"github.com/ordergraph/ordergraph/internal/test/dynamolocal"
	"github.com/ordergraph/ordergraph/internal/test/longtest"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
	"github.com/ordergraph/ordergraph/internal/test/workload"
)

// tick is the time between two requests of a client, and between two readiness checks.
const tick = 30 * time.Millisecond

// balancer sends each request to a server that is ready. If this server refuses the connection, it
// sends the request to the other server. It repeats no other failed request.
type balancer struct {
	transport http.Transport
	// ready contains the URLs of the servers that are ready.
	ready [2]atomic.Pointer[url.URL]
	next  atomic.Int64
}

// poll checks the readiness of server i until ctx ends. It closes isReady after the first success.
func (b *balancer) poll(ctx context.Context, i int, graphQL string, isReady chan struct{}) {
	client := &http.Client{Timeout: 3 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	once := sync.OnceFunc(func() { close(isReady) })
	for range ticks(ctx) {
		var now *url.URL
		if response, err := client.Get(strings.TrimSuffix(graphQL, server.PathGraphQL) + server.PathReady); err == nil {
			response.Body.Close()
			if response.StatusCode == http.StatusOK {
				now = response.Request.URL
			}
		}
		if b.ready[i].Store(now); now != nil {
			once()
		}
	}
	b.ready[i].Store(nil)
}

// RoundTrip implements http.RoundTripper.
func (b *balancer) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	first := b.next.Add(1)
	err = errors.New("no server is ready")
	for i := range int64(len(b.ready)) {
		base := b.ready[(first+i)%2].Load()
		if base == nil {
			continue
		}
		sent := r.Clone(r.Context())
		sent.URL.Host, sent.Host = base.Host, base.Host
		sent.Body, sent.GetBody = io.NopCloser(bytes.NewReader(body)), nil
		var response *http.Response
		if response, err = b.transport.RoundTrip(sent); !errors.Is(err, syscall.ECONNREFUSED) {
			return response, err
		}
	}
	return nil, err
}

// ticks yields the numbers 0, 1, 2 and so on, one per tick, until ctx ends.
func ticks(ctx context.Context) func(yield func(n int) bool) {
	return func(yield func(n int) bool) {
		ticker := time.NewTicker(tick)
		defer ticker.Stop()
		for n := 0; ctx.Err() == nil && yield(n); n++ {
			select {
			case <-ctx.Done():
			case <-ticker.C:
			}
		}
	}
}

// subscriber receives the events of a customer's orders. When a response ends, it resumes.
type subscriber struct {
	customer string

	mu     sync.Mutex
	events []string // the first was not received
}

func (s *subscriber) received() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.events)
}

// receive receives events until the response ends.
func (s *subscriber) receive(ctx context.Context, client *http.Client, url string) error {
	after := s.received()
	body, err := json.Marshal(map[string]any{
		"query":     "subscription($customer: ID!, $after: ID) { customerOrders(customerId: $customer, after: $after) { id } }",
		"variables": map[string]any{"customer": s.customer, "after": after[len(after)-1]},
	})
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "text/event-stream")
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		text, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		var message struct {
			Data   struct{ CustomerOrders *struct{ ID string } }
			Errors []struct{ Extensions struct{ Code string } }
		}
		if err := json.Unmarshal([]byte(text), &message); err != nil || message.Data.CustomerOrders == nil && (len(message.Errors) != 1 || message.Errors[0].Extensions.Code != "UNAVAILABLE") {
			return fmt.Errorf("the server sent %q: %w", text, err)
		}
		if u := message.Data.CustomerOrders; u != nil {
			s.mu.Lock()
			s.events = append(s.events, u.ID)
			s.mu.Unlock()
		}
	}
	return nil
}

// eventsOf returns the events of a customer's orders in the table.
func eventsOf(a *storetest.AuditResult, customer string) (events []string) {
	for k, r := range a.Records {
		if r.Text("customerId") == customer && k.SK == "#METADATA" && strings.HasPrefix(k.PK, "ORDER#") {
			for event := range a.Records {
				if id, ok := strings.CutPrefix(event.SK, "EVENT#"); ok && event.PK == k.PK {
					events = append(events, id)
				}
			}
		}
	}
	slices.Sort(events)
	return events
}

// During a rolling update, two servers behind a load balancer receive SIGTERM one after the other,
// and are started again. Clients notice nothing: each request succeeds, each order is placed once,
// and subscribers receive each event once and in order.
func TestRollingUpdate(t *testing.T) {
	instance := dynamolocal.Private(t)
	binary := workload.BuildServer(t, "../..")
	db, table := instance.Client(), "rolling"
	store := storetest.NewTable(t, db, dynamo.Options{Table: table})
	if err := store.EnableStream(t.Context()); err != nil {
		t.Fatal(err)
	}
	storetest.LoadDataset(t, store, workload.Fixture{Customers: clients, Products: 3, Warehouses: 1, Stock: 1_000_000}.Dataset(t))
	environment := append(workload.ServerEnvironment(t, table, instance.Endpoint()), "ORDERGRAPH_SHUTDOWN_DELAY=1s")
	rounds := longtest.Size(1, 6)
	ctx, stop := context.WithTimeout(t.Context(), time.Duration(rounds+2)*time.Minute)
	defer stop()
	b := &balancer{}
	client := &workload.Client{HTTP: &http.Client{Transport: b}}
	const anyURL = "http://balancer" + server.PathGraphQL
	var servers [2]*workload.Process
	var forget [2]func()
	start := func(i int) {
		servers[i] = workload.StartServer(t, binary, environment)
		polling, cancel := context.WithCancel(ctx)
		isReady := make(chan struct{})
		var poll sync.WaitGroup
		poll.Go(func() { b.poll(polling, i, servers[i].URL, isReady) })
		forget[i] = func() { cancel(); poll.Wait() }
		select {
		case <-isReady:
		case <-ctx.Done():
			t.Fatalf("server %d is not ready", i)
		}
	}
	var following, load sync.WaitGroup
	loading, endLoad := context.WithCancel(ctx)
	defer func() {
		stop()
		following.Wait()
		load.Wait()
		for i, p := range servers {
			if p != nil {
				forget[i]()
				p.Kill(t)
			}
		}
	}()
	start(0)
	start(1)
	var subscribers []*subscriber
	var connections, orders atomic.Int64
	for i := range clients {
		if a, err := client.Send(ctx, anyURL, place(i, -3)); err != nil || !a.Succeeded() {
			t.Fatal(a, err)
		}
		orders.Add(1)
		s := &subscriber{customer: fmt.Sprintf("c%d", i)}
		audit, err := storetest.Audit(ctx, db, table, 1)
		if err != nil {
			t.Fatal(err)
		}
		s.events = eventsOf(audit, s.customer)
		subscribers = append(subscribers, s)
		following.Go(func() {
			for range ticks(ctx) {
				connections.Add(1)
				if err := s.receive(ctx, client.HTTP, anyURL); err != nil && ctx.Err() == nil {
					t.Errorf("customer %s: %v", s.customer, err)
				}
			}
		})
		load.Go(func() {
			for n := range ticks(loading) {
				// No request is cancelled.
				if a, err := client.Send(context.WithoutCancel(ctx), anyURL, place(i, n)); err != nil || !a.Succeeded() {
					t.Errorf("client %d: %v, %v", i, a, err)
				}
				orders.Add(1)
			}
		})
	}
	for round := range rounds {
		i := round % len(servers)
		log, err := servers[i].Terminate(t)
		servers[i] = nil
		if forget[i](); err != nil || strings.Contains(log, `"level":"ERROR"`) {
			t.Fatalf("round %d: the server ended with %v: %s", round, err, log)
		}
		start(i)
	}
	endLoad()
	load.Wait()
	audit := storetest.AssertConsistent(t, db, table, 1)
	if n := int(orders.Load()); len(audit.Orders) != n {
		t.Errorf("%d orders were requested, but the table has %d", n, len(audit.Orders))
	}
	for _, s := range subscribers {
		want := eventsOf(audit, s.customer)
		for range ticks(ctx) {
			if len(s.received()) >= len(want) {
				break
			}
		}
		if got := s.received(); !slices.Equal(got, want) {
			t.Errorf("customer %s received the events %v, want %v", s.customer, got, want)
		}
	}
	t.Logf("%d stops: %d orders, and %d connections of %d subscribers", rounds, orders.Load(), connections.Load(), len(subscribers))
	if int(connections.Load()) <= len(subscribers) {
		t.Errorf("no subscriber connected again: the test covers too little")
	}
}
