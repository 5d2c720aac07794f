package simulation_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ordergraph/ordergraph/internal/server"
	"github.com/ordergraph/ordergraph/internal/test/authtest"
	"github.com/ordergraph/ordergraph/internal/test/workload"
)

// The times of clients. Clients act in rounds, all at the same time, so that they change the same
// records. Most of the day, they do nothing.
const (
	// roundInterval is the time from one round to the next. In a short simulation, it is less.
	roundInterval = 4 * time.Minute
	stepsPerRound = 5
	// maxPause is the maximum time between two steps of a client in a round.
	maxPause = 60 * time.Millisecond
	// clientTimeout is the time after which a client gives a request up.
	clientTimeout = 20 * time.Second
	// maxRetryPause is the maximum time before a client repeats a request.
	maxRetryPause = 3 * time.Second
)

// operation is a request of a client with its response, for the verification.
type operation struct {
	client int
	// decision is the decision of the simulation to send the request.
	decision string
	workload.Mutation
	// called and returned are steps of the seam. If outcome is unknown, returned is 0.
	called, returned int
	at               time.Duration
	response         workload.Response
	err              error
	// read is the ID of the order that a query has read, with its version and its other fields.
	read    string
	version int
	text    string
	// use is how often the idempotency key had expired.
	use int
}

// key returns the idempotency key and its scope: the caller, and the use of a key that has expired in
// the meantime. Without a key, it returns "".
func (o operation) key() string {
	if o.IdempotencyKey() == "" {
		return ""
	}
	return fmt.Sprintf("%s of %d, use %d", o.IdempotencyKey(), o.client%clients, o.use)
}

// history contains the requests of all clients.
type history struct {
	mu         sync.Mutex
	operations []operation
}

func (h *history) add(o operation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.operations = append(h.operations, o)
}

// transport sends the requests of one client, with its token.
type transport struct {
	w           *world
	name, token string
}

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	r.Header.Set("User-Agent", t.name)
	r.Header.Set("Authorization", "Bearer "+t.token)
	return t.w.RoundTrip(r)
}

// newClient returns a client. If customer is empty, it is an administrator.
func (w *world) newClient(name, customer string) *workload.Client {
	claims := authtest.Object{"sub": strings.TrimSuffix(name, " again"), "exp": w.start.Add(1000 * time.Hour).Unix(), "iat": w.start.Add(-time.Hour).Unix()}
	if customer != "" {
		claims["role"], claims["customer"] = "CUSTOMER", customer
	}
	return &workload.Client{HTTP: &http.Client{Transport: transport{w, name, w.token.Token(w.T, authtest.Claims(w.start, claims), nil)}}}
}

// round returns the time from one round to the next.
func (w *world) round() time.Duration {
	return cmp.Or(w.Round, roundInterval) * time.Duration(max(w.Stretch, 1))
}

// url returns the URL of a random server.
func url(r *rand.Rand) string { return fmt.Sprintf("http://%d%s", r.IntN(servers), server.PathGraphQL) }

// sleep waits, and reports whether the simulation continues.
func (w *world) sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// runClient simulates a client of the staff until ctx ends.
func (w *world) runClient(ctx context.Context, number int, memory *workload.ClientState) {
	name := fmt.Sprintf("client %d", number)
	c := w.newClient(name, "")
	for step := 0; ; step++ {
		r := w.random(name, step)
		pause := time.Duration(r.Float64() * float64(maxPause))
		if step%stepsPerRound == 0 {
			next := w.elapsed().Truncate(w.round())
			if step > 0 {
				next += w.round()
			}
			pause += next - w.elapsed()
		}
		if !w.sleep(ctx, pause) {
			return
		}
		decision := fmt.Sprintf("%s step %d", name, step)
		if !w.decide(decision) {
			continue
		}
		if r.IntN(5) == 0 {
			w.readOrder(ctx, c, number, decision, r, memory)
			continue
		}
		s := workload.StepGenerator{Fixture: fixture, IntN: r.IntN}.Next(w.drawMutation(r), strings.ReplaceAll(decision, " ", "-"))
		m := memory.Mutation(s)
		if !s.SendTwice || m.IdempotencyKey() == "" {
			w.send(ctx, c, number, decision, m, r, memory)
			continue
		}
		var both sync.WaitGroup
		again := w.random(name, step, "again")
		both.Go(func() { w.send(ctx, c, number, decision, m, r, memory) })
		both.Go(func() { w.send(ctx, w.newClient(name+" again", ""), clients+number, decision, m, again, memory) })
		both.Wait()
	}
}

// send sends a mutation. If it has an idempotency key, send repeats it until the outcome is known.
func (w *world) send(ctx context.Context, c *workload.Client, number int, decision string, m workload.Mutation, r *rand.Rand, memory *workload.ClientState) {
	o := operation{client: number, decision: decision, Mutation: m, called: w.step(), at: w.elapsed()}
	damaged := w.watchDamage()
	w.tell("%s: %s %v", decision, m.Field, m.Input)
	for {
		attempt, cancel := context.WithTimeout(ctx, clientTimeout)
		o.response, o.err = c.Send(attempt, url(r), m)
		cancel()
		if o.err == nil || !errors.Is(o.err, workload.ErrUnknownOutcome) || m.IdempotencyKey() == "" || !w.sleep(ctx, time.Duration(r.Float64()*float64(maxRetryPause))) {
			break
		}
	}
	if o.err != nil {
		w.tell("%s: %v", decision, o.err)
	} else {
		w.tell("%s: the response is %.200s", decision, o.response)
	}
	if o.err == nil {
		o.returned = w.step()
		memory.Update(m, o.response)
	} else if !errors.Is(o.err, workload.ErrUnknownOutcome) && !damaged() {
		w.found("%s: %s %v: %v", decision, m.Field, m.Input, o.err)
	}
	w.history.add(o)
}

// drawMutation chooses a mutation. It chooses mutations that advance orders, and the scenario's own,
// more often.
func (w *world) drawMutation(r *rand.Rand) string {
	often := []string{
		"placeOrder", "placeOrder", "placeOrder", "placeOrder", "placeOrder", "confirmOrder", "confirmOrder", "confirmOrder", "shipOrder", "shipOrder", "deliverOrder", "cancelOrder", "cancelOrder",
		"setOrderItem", "setOrderItem", "adjustInventory", "adjustInventory", "setInventoryLevel", "requestReturn", "approveReturn", "receiveReturn", "createFulfillment", "createFulfillment", "cancelFulfillment",
		"recordPayment", "updateCustomer", "updateProduct",
	}
	if len(w.Focus) > 0 && r.IntN(2) == 0 {
		return w.Focus[r.IntN(len(w.Focus))]
	}
	if r.IntN(3) > 0 {
		return often[r.IntN(len(often))]
	}
	all := workload.MutationNames()
	return all[r.IntN(len(all))]
}

// query sends a query and decodes its data. It reports whether the response arrived. If it contains
// an error other than a temporary one, query reports a broken promise.
func (w *world) query(ctx context.Context, c *workload.Client, r *rand.Rand, text string, variables map[string]any, data any) bool {
	damaged := w.watchDamage()
	got, code, ok := w.post(ctx, c, r, text, variables)
	switch {
	case !ok:
		return false
	case code != "":
		if !slices.Contains([]string{"UNAVAILABLE", "TIMED_OUT"}, code) && !damaged() {
			w.found("%s %v: %s", text, variables, code)
		}
		return false
	}
	if err := json.Unmarshal(got, data); err != nil {
		w.found("%s %v: %v in %s", text, variables, err, got)
		return false
	}
	return true
}

// post sends an operation. It returns the data and the code of the first error, and reports whether
// the response arrived.
func (w *world) post(ctx context.Context, c *workload.Client, r *rand.Rand, text string, variables map[string]any) (data json.RawMessage, code string, ok bool) {
	body, err := json.Marshal(map[string]any{"query": text, "variables": variables})
	if err != nil {
		w.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(ctx, clientTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url(r), bytes.NewReader(body))
	if err != nil {
		w.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := c.HTTP.Do(request)
	if err != nil {
		return nil, "", false
	}
	defer response.Body.Close()
	var got struct {
		Data   json.RawMessage
		Errors []struct {
			Message    string
			Extensions struct{ Code string }
		}
	}
	if err := json.NewDecoder(response.Body).Decode(&got); err != nil {
		w.found("%s %v: %v", text, variables, err)
		return nil, "", false
	}
	if len(got.Errors) > 0 {
		w.tell("%s %v: %s", text, variables, got.Errors[0].Message)
		return got.Data, cmp.Or(got.Errors[0].Extensions.Code, "an error without a code"), true
	}
	return got.Data, "", true
}

// readOrder reads an order that the clients know.
func (w *world) readOrder(ctx context.Context, c *workload.Client, number int, decision string, r *rand.Rand, memory *workload.ClientState) {
	m := memory.Mutation(workload.Step{Mutation: workload.Mutation{Field: "addOrderNote", Input: map[string]any{}}, OrderChoice: r.IntN(6)})
	id, damaged := m.Input["orderId"].(string), w.watchDamage()
	o := operation{client: number, decision: decision, read: id, called: w.step(), at: w.elapsed()}
	var data struct {
		Order *struct {
			ID      string
			Version int
			Status  string
		}
	}
	if !w.query(ctx, c, r, `query($id: ID!) { order(id: $id) { id version status } }`, map[string]any{"id": id}, &data) {
		return
	}
	if data.Order == nil && !damaged() && memory.Knows(id) {
		w.found("%s: order %s does not exist, although a response contained it", decision, id)
	}
	if data.Order != nil {
		o.returned, o.version, o.text = w.step(), data.Order.Version, data.Order.Status
		w.history.add(o)
	}
}

func (w *world) step() int {
	w.seam.mu.Lock()
	defer w.seam.mu.Unlock()
	return w.steps
}

// update is an event that a subscription has delivered.
type update struct{ ID, OrderID string }

// subscriber has a subscription. When the connection ends, it resumes after its last update.
type subscriber struct {
	name, field, argument, id string
	began, after              string
	updates                   []update
	connections               int
}

// runSubscriber receives updates until ctx ends.
func (w *world) runSubscriber(ctx context.Context, s *subscriber) {
	c := w.newClient(s.name, "")
	for ctx.Err() == nil {
		r := w.random(s.name, "connection", s.connections)
		s.connections++
		if err := w.subscribe(ctx, c, s, r); err != nil {
			w.found("%s: %v", s.name, err)
			return
		}
		w.sleep(ctx, time.Duration(r.Float64()*float64(5*time.Second)))
	}
}

// subscribe receives updates until the connection breaks.
func (w *world) subscribe(ctx context.Context, c *workload.Client, s *subscriber, r *rand.Rand) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if decision := fmt.Sprintf("%s connection %d breaks", s.name, s.connections); r.IntN(2) == 0 {
		time.AfterFunc(time.Duration(r.Float64()*float64(20*time.Minute)), func() {
			if w.decide(decision) {
				cancel()
			}
		})
	}
	variables := map[string]any{"id": s.id}
	if s.after != "" {
		variables["after"] = s.after
	}
	body, err := json.Marshal(map[string]any{
		"query":     fmt.Sprintf("subscription($id: ID!, $after: ID) { update: %s(%s: $id, after: $after) { id orderId event { id } } }", s.field, s.argument),
		"variables": variables,
	})
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url(r), bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "text/event-stream")
	response, err := c.HTTP.Do(request)
	if err != nil {
		return nil // the server cannot be reached
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		if ctx.Err() != nil {
			return nil // the rest of the response is lost
		}
		text, isData := strings.CutPrefix(lines.Text(), "data: ")
		if !isData && !strings.HasPrefix(lines.Text(), "{") {
			continue
		}
		if !isData {
			text = lines.Text() // the operation could not be started
		}
		var message struct {
			Data struct {
				Update *struct {
					ID      *string
					OrderID string
				}
			}
			Errors []struct{ Extensions struct{ Code string } }
		}
		if err := json.Unmarshal([]byte(text), &message); err != nil {
			return fmt.Errorf("the event %q is invalid: %w", text, err)
		}
		if len(message.Errors) > 0 {
			if code := message.Errors[0].Extensions.Code; code != "UNAVAILABLE" && code != "TIMED_OUT" {
				return fmt.Errorf("the server sent %s", text)
			}
			return nil
		}
		if u := message.Data.Update; u == nil {
			return fmt.Errorf("the event %q has no update", text)
		} else if u.ID != nil {
			s.updates = append(s.updates, update{*u.ID, u.OrderID})
			s.after = *u.ID
		}
	}
	return nil
}
