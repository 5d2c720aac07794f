package server_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stripe/stripe-go/v85/webhook"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/graph"
	"github.com/ordergraph/ordergraph/graph/document"
	"github.com/ordergraph/ordergraph/graph/rate"
	"github.com/ordergraph/ordergraph/internal/provider"
	"github.com/ordergraph/ordergraph/internal/server"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// webhooks sends the events of payment providers to a server of a fixture.
type webhooks struct {
	*fixture
	http.Handler
	log    *journal
	secret string
}

// newWebhooks starts another server of a fixture, with webhooks.
func newWebhooks(t testing.TB, s *fixture, opts server.Options) *webhooks {
	t.Helper()
	w := &webhooks{fixture: s, secret: "whsec_" + base64.StdEncoding.EncodeToString([]byte("MARKER of at least 24 bytes"))}
	for _, p := range provider.All() {
		hook, err := provider.NewWebhook(p, w.secret)
		if err != nil {
			t.Fatal(err)
		}
		opts.Webhooks = append(opts.Webhooks, hook)
	}
	w.Handler, w.log = newHandler(t, s.store, slog.LevelDebug, opts)
	return w
}

// deliver sends a body that Stripe has signed.
func (w *webhooks) deliver(body string) *httptest.ResponseRecorder {
	at := w.clock.Now()
	signature := hex.EncodeToString(webhook.ComputeSignature(at, []byte(body), w.secret))
	return ask(w, http.MethodPost, "/webhooks/stripe", body, "Stripe-Signature", fmt.Sprintf("t=%d,v1=%s", at.Unix(), signature))
}

// event returns the body of an event of Stripe that occurred at the given time.
func event(kind string, at time.Time, object string) string {
	return fmt.Sprintf(`{"id":"evt_1","object":"event","type":%q,"created":%d,"data":{"object":{%s}}}`, kind, at.Unix(), object)
}

// captured returns an event about a captured amount of an order.
func (w *webhooks) captured(order string, cents int) string {
	return event("payment_intent.succeeded", w.clock.Now(), fmt.Sprintf(`"id":"pi_1","amount_received":%d,"currency":"usd","metadata":{"order_id":%q}`, cents, order))
}

// query returns the data of a query.
func (w *webhooks) query(t testing.TB, query string) string {
	t.Helper()
	var got struct {
		Data   json.RawMessage
		Errors []any
	}
	if answer := ask(w, http.MethodPost, server.PathGraphQL, post(query)); json.Unmarshal(answer.Body.Bytes(), &got) != nil || len(got.Errors) > 0 {
		t.Fatalf("%s: %s", query, answer.Body)
	}
	return string(got.Data)
}

// concurrently delivers a body 20 times at the same time, and returns the number of responses with
// each status.
func (w *webhooks) concurrently(body string) map[int]int {
	var all sync.WaitGroup
	var mu sync.Mutex
	statuses := map[int]int{}
	for range 20 {
		all.Go(func() {
			status := w.deliver(body).Code
			mu.Lock()
			defer mu.Unlock()
			statuses[status]++
		})
	}
	all.Wait()
	return statuses
}

const unmatchedPayments = `{ unmatchedPayments { nodes { kind amount { amount currencyCode } provider reference orderId reason firstSeenAt } } }`

// The same event, 20 times at the same time, before and after its order exists, is one payment.
// Until the order exists, an admin sees the payment.
func TestWebhookDeliveredManyTimes(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		before := newFixture(t, db, smallDataset(t))
		id := before.place(t, "ann", "mug") // the ID of the first order in each fixture
		w := newWebhooks(t, newFixture(t, db, smallDataset(t)), server.Options{})
		body := w.captured(id, 900)
		if got := w.concurrently(body); got[http.StatusConflict] != 20 {
			t.Fatalf("before the order exists, the statuses are %v", got)
		}
		if got := w.deliver(body); got.Header().Get("Retry-After") != "60" || strings.Contains(got.Body.String(), id) {
			t.Errorf("%v %s", got.Header(), got.Body)
		}
		want := fmt.Sprintf(`{"unmatchedPayments":{"nodes":[{"kind":"CAPTURE","amount":{"amount":"9.00","currencyCode":"USD"},"provider":"stripe","reference":"pi_1","orderId":%q,"reason":"The order %[1]s does not exist: check the ID.","firstSeenAt":"2026-03-01T08:00:00.000Z"}]}}`, id)
		w.clock.pass(time.Minute)
		w.deliver(body)
		if got := w.query(t, unmatchedPayments); got != want {
			t.Errorf("the unmatched payments are %s, want %s", got, want)
		}
		w.clock.pass(-time.Minute)
		if placed := w.place(t, "ann", "mug"); placed != id {
			t.Fatalf("the order is %s, want %s", placed, id)
		}
		if got := w.concurrently(body); got[http.StatusOK] != 20 {
			t.Fatalf("when the order exists, the statuses are %v", got)
		}
		if got, want := w.query(t, fmt.Sprintf(`{ unmatchedPayments { nodes { reference } } order(id: %q) { status captured { amount } payments { nodes { reference actor } } timeline { nodes { type actor note } } } }`, id)),
			`{"unmatchedPayments":{"nodes":[]},"order":{"status":"PENDING","captured":{"amount":"9.00"},"payments":{"nodes":[{"reference":"pi_1","actor":"stripe"}]},"timeline":{"nodes":[{"type":"PLACED","actor":"anonymous","note":null},{"type":"PAYMENT_RECORDED","actor":"stripe","note":"CAPTURE: 9.00 USD"}]}}}`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		w.checkSecretsAreNotLogged(t)
		storetest.RawTable{T: t, DB: w.db, Name: w.table, Store: w.store}.CheckClean()
	})
}

// checkSecretsAreNotLogged checks that the log contains no secret and no body.
func (w *webhooks) checkSecretsAreNotLogged(t testing.TB) {
	t.Helper()
	w.log.mu.Lock()
	defer w.log.mu.Unlock()
	for _, text := range []string{w.secret, "whsec", "MARKER", "amount_received", "v1="} {
		if strings.Contains(w.log.text.String(), text) {
			t.Errorf("the log contains %s: %s", text, w.log.text.String())
		}
	}
}

// If another server places the order and records the payment, while the payment is set aside, it is
// not set aside.
func TestWebhookWhileThePaymentIsRecorded(t *testing.T) {
	t.Parallel()
	db := storetest.Engines()[0].Client(t)
	id := newFixture(t, db, smallDataset(t)).place(t, "ann", "mug")
	w := newWebhooks(t, newFixture(t, db, smallDataset(t)), server.Options{})
	w.wire.beforeNextTransaction(func() {
		w.place(t, "ann", "mug")
		if got := w.deliver(w.captured(id, 900)); got.Code != http.StatusOK {
			t.Errorf("%d %s", got.Code, got.Body)
		}
	})
	if got := w.deliver(w.captured(id, 900)); got.Code != http.StatusConflict {
		t.Errorf("%d %s", got.Code, got.Body)
	}
	if got := w.query(t, `{ unmatchedPayments { nodes { reference } } }`); got != `{"unmatchedPayments":{"nodes":[]}}` {
		t.Error(got)
	}
}

// Two servers receive an event at the same time, while another one places the order. One of them
// sets the payment aside, after the other one has planned to record it. Then the list of unmatched
// payments does not keep the payment.
func TestWebhookWhileThePaymentIsSetAside(t *testing.T) {
	t.Parallel()
	db := storetest.Engines()[0].Client(t)
	id := newFixture(t, db, smallDataset(t)).place(t, "ann", "mug")
	w := newWebhooks(t, newFixture(t, db, smallDataset(t)), server.Options{})
	read, planned, first := make(chan struct{}), make(chan struct{}), make(chan int)
	w.wire.beforeNextTransaction(func() {
		close(read)
		<-planned
	})
	go func() { first <- w.deliver(w.captured(id, 900)).Code }()
	<-read
	w.place(t, "ann", "mug")
	w.wire.beforeNextTransaction(func() {
		close(planned)
		if got := <-first; got != http.StatusOK {
			t.Errorf("the first response is %d", got)
		}
	})
	if got := w.deliver(w.captured(id, 900)); got.Code != http.StatusOK {
		t.Errorf("%d %s", got.Code, got.Body)
	}
	if got := w.query(t, fmt.Sprintf(`{ unmatchedPayments { nodes { reference } } order(id: %q) { captured { amount } } }`, id)); got != `{"unmatchedPayments":{"nodes":[]},"order":{"captured":{"amount":"9.00"}}}` {
		t.Error(got)
	}
}

// A payment that does not fit its order is set aside. The provider repeats it for an hour, because
// the event that must come first can arrive later. This also applies to old events.
func TestWebhookSetsPaymentsAside(t *testing.T) {
	t.Parallel()
	w := newWebhooks(t, newFixture(t, storetest.Engines()[0].Client(t), smallDataset(t)), server.Options{})
	id := w.place(t, "ann", "mug")
	refund := event("refund.created", w.clock.Now(), fmt.Sprintf(`"id":"re_1","amount":900,"currency":"usd","payment_intent":"pi_1","metadata":{"order_id":%q}`, id))
	other := event("payment_intent.succeeded", w.clock.Now(), fmt.Sprintf(`"id":"pi_2","amount_received":900,"currency":"eur","metadata":{"order_id":%q}`, id))
	checkStatus := func(body string, want int, text string) {
		t.Helper()
		if got := w.deliver(body); got.Code != want || !strings.Contains(got.Body.String(), text) {
			t.Errorf("%s: %d %s, want %d %s", body, got.Code, got.Body, want, text)
		}
	}
	checkUnmatched := func(want string) {
		t.Helper()
		if got := w.query(t, `{ unmatchedPayments { nodes { reference } } }`); got != `{"unmatchedPayments":{"nodes":[`+want+`]}}` {
			t.Errorf("the unmatched payments are %s, want %s", got, want)
		}
	}
	w.clock.pass(2 * time.Hour) // in this time, the provider could not reach the server
	checkStatus(refund, http.StatusConflict, "BAD_USER_INPUT")
	w.clock.pass(time.Minute)
	checkStatus(other, http.StatusConflict, "BAD_USER_INPUT")
	checkUnmatched(`{"reference":"pi_2"},{"reference":"re_1"}`)
	w.clock.pass(time.Hour)
	checkStatus(other, http.StatusOK, "unmatched")
	checkStatus(w.captured(id, 900), http.StatusOK, "ok")
	checkStatus(refund, http.StatusOK, "ok")
	checkUnmatched(`{"reference":"pi_2"}`)
	// An admin records the payment in the currency of the order.
	w.mutate(t, "recordPayment", mutationInput{"orderId": id, "kind": "CAPTURE", "amount": mutationInput{"amount": "8.5"}, "provider": "stripe", "reference": "pi_2"})
	checkUnmatched("")
	// The event still has other values than the payment.
	checkStatus(other, http.StatusConflict, "BAD_USER_INPUT")
	checkUnmatched(`{"reference":"pi_2"}`)
	if got := w.query(t, unmatchedPayments); !strings.Contains(got, "already has a payment pi_2") {
		t.Error(got)
	}
	// A later repetition of the recorded payment does not remove another payment from the list.
	w.mutate(t, "recordPayment", mutationInput{"orderId": id, "kind": "CAPTURE", "amount": mutationInput{"amount": "8.5"}, "provider": "stripe", "reference": "pi_2"})
	checkUnmatched(`{"reference":"pi_2"}`)
	// An admin dismisses it.
	w.mutate(t, "dismissUnmatchedPayment", mutationInput{"provider": "stripe", "reference": "pi_2"})
	checkUnmatched("")
	checkStatus(event("customer.created", w.clock.Now(), `"id":"cus_1"`), http.StatusOK, "ok")
	checkStatus(`{"type":`, http.StatusBadRequest, "BAD_REQUEST")
	w.checkSecretsAreNotLogged(t)
}

// An order is confirmed when a webhook reports that it is paid, if the setting is on.
func TestWebhookConfirmsPaidOrders(t *testing.T) {
	t.Parallel()
	w := newWebhooks(t, newFixture(t, storetest.Engines()[0].Client(t), smallDataset(t)), server.Options{ConfirmPaid: true})
	var total struct {
		Order struct {
			Total struct{ Amount string }
		}
	}
	place := func() string { t.Helper(); return w.place(t, "ann", "mug") }
	id, paid := place(), place()
	if err := json.Unmarshal([]byte(w.query(t, fmt.Sprintf(`{ order(id: %q) { total { amount } } }`, id))), &total); err != nil {
		t.Fatal(err)
	}
	m, err := commerce.ParseMoney(total.Order.Total.Amount, "USD")
	if err != nil {
		t.Fatal(err)
	}
	units, hundredths, _ := m.Amount.Int64(2)
	cents := units*100 + hundredths
	pay := func(order, reference string, cents int64) {
		t.Helper()
		body := event("payment_intent.succeeded", w.clock.Now(), fmt.Sprintf(`"id":%q,"amount_received":%d,"currency":"usd","metadata":{"order_id":%q}`, reference, cents, order))
		for range 2 {
			if got := w.deliver(body); got.Code != http.StatusOK {
				t.Errorf("%s: %d %s", body, got.Code, got.Body)
			}
		}
	}
	check := func(order, want string) {
		t.Helper()
		if got := w.query(t, fmt.Sprintf(`{ order(id: %q) { status paymentState } }`, order)); got != `{"order":`+want+`}` {
			t.Errorf("the order is %s, want %s", got, want)
		}
	}
	pay(id, "pi_1", 1)
	check(id, `{"status":"PENDING","paymentState":"PARTLY_PAID"}`)
	pay(id, "pi_2", cents-1)
	check(id, `{"status":"CONFIRMED","paymentState":"PAID"}`)
	if got := w.query(t, fmt.Sprintf(`{ order(id: %q) { timeline(last: 1) { nodes { type actor } } } }`, id)); !strings.Contains(got, `{"type":"CONFIRMED","actor":"stripe"}`) {
		t.Error(got)
	}

	// A repetition of the event completes what a stopped server has begun.
	w.mutate(t, "recordPayment", mutationInput{"orderId": paid, "kind": "CAPTURE", "amount": mutationInput{"amount": total.Order.Total.Amount}, "provider": "stripe", "reference": "pi_3"})
	check(paid, `{"status":"PENDING","paymentState":"PAID"}`)
	pay(paid, "pi_3", cents)
	check(paid, `{"status":"CONFIRMED","paymentState":"PAID"}`)

	// A refund that has failed returns money that was paid before. If this event arrives before the
	// one about the refund, the order is not paid.
	half := place()
	pay(half, "pi_4", cents/2)
	failed := event("refund.failed", w.clock.Now(), fmt.Sprintf(`"id":"re_1","amount":%d,"currency":"usd","payment_intent":"pi_4","status":"failed"`, cents-cents/2))
	if got := w.deliver(failed); got.Code != http.StatusOK {
		t.Errorf("%d %s", got.Code, got.Body)
	}
	check(half, `{"status":"PENDING","paymentState":"PAID"}`)
}

// Forged requests record nothing, learn nothing, and are charged to their address. Requests of the
// provider are not.
func TestWebhookForgeries(t *testing.T) {
	t.Parallel()
	w := newWebhooks(t, newFixture(t, storetest.Engines()[0].Client(t), smallDataset(t)), server.Options{
		Graph:  graph.Options{Limits: document.Limits{Cost: 100}, Rates: rate.Options{Burst: 100, Restore: 1, Now: func() time.Time { return opening }}},
		Limits: server.Limits{Body: 4096},
	})
	id := w.place(t, "ann", "mug")
	body := w.captured(id, 900)
	w.wire.reset()
	limited := 0
	for i := range 150 {
		switch got := ask(w, http.MethodPost, "/webhooks/stripe", body, "Stripe-Signature", fmt.Sprintf("t=%d,v1=%064x", opening.Unix(), i)); {
		case got.Code == http.StatusTooManyRequests:
			limited++
		case got.Code != http.StatusBadRequest || !strings.Contains(got.Body.String(), "the signature is missing, wrong or too old"):
			t.Fatalf("%d %s", got.Code, got.Body)
		}
		if limited == 3 {
			break
		}
	}
	if limited != 3 {
		t.Errorf("%d forged requests were limited", limited)
	}
	if names := w.wire.operationNames(); len(names) > 0 {
		t.Errorf("forged requests made the requests %v", names)
	}
	// The bytes of a body that is refused are charged, too.
	others := newWebhooks(t, w.fixture, server.Options{
		Graph:  graph.Options{Limits: document.Limits{Cost: 100}, Rates: rate.Options{Burst: 100, Restore: 1, Now: func() time.Time { return opening }}},
		Limits: server.Limits{Body: 4096},
	})
	long := func() int {
		r := httptest.NewRequest(http.MethodPost, "/webhooks/stripe", io.MultiReader(strings.NewReader(strings.Repeat(" ", 5000))))
		r.Header.Set("Content-Type", "application/json")
		answer := httptest.NewRecorder()
		others.ServeHTTP(answer, r)
		return answer.Code
	}
	if got := long(); got != http.StatusRequestEntityTooLarge {
		t.Errorf("the status of a body that is too long is %d", got)
	}
	for i := 0; long() != http.StatusTooManyRequests; i++ {
		if i == 150 {
			t.Fatal("bodies that are too long are not limited")
		}
	}
	w.log.checkEmpty(t)
	for range 3 {
		if got := w.deliver(body); got.Code != http.StatusOK {
			t.Errorf("%d %s", got.Code, got.Body)
		}
	}
	for _, c := range []struct {
		name, method, target, body string
		header                     []string
		want                       int
	}{
		{"GET", http.MethodGet, "/webhooks/stripe", "", nil, http.StatusNotFound},
		{"no webhook", http.MethodPost, "/webhooks/adyen", body, nil, http.StatusNotFound},
		{"no JSON", http.MethodPost, "/webhooks/stripe", body, []string{"Content-Type", "text/plain"}, http.StatusUnsupportedMediaType},
		{"compressed", http.MethodPost, "/webhooks/stripe", body, []string{"Content-Encoding", "gzip"}, http.StatusUnsupportedMediaType},
		{"too long", http.MethodPost, "/webhooks/stripe", strings.Repeat(" ", 5000), nil, http.StatusRequestEntityTooLarge},
	} {
		if got := ask(w, c.method, c.target, c.body, c.header...); got.Code != c.want && got.Code != http.StatusTooManyRequests {
			t.Errorf("%s: %d %s, want %d", c.name, got.Code, got.Body, c.want)
		}
	}
	// Without secrets, the webhooks do not exist.
	off, _ := newHandler(t, w.store, slog.LevelInfo, server.Options{})
	if got := ask(off, http.MethodPost, "/webhooks/stripe", body); got.Code != http.StatusNotFound {
		t.Errorf("%d %s", got.Code, got.Body)
	}
}

// If the table cannot be written, the provider is told to send the event again. Requests of
// webhooks are in the access log and the metrics.
func TestWebhookIsObserved(t *testing.T) {
	t.Parallel()
	m := &receivers{}
	w := newWebhooks(t, newFixture(t, storetest.Engines()[0].Client(t), smallDataset(t)), server.Options{Telemetry: m.open()})
	id := w.place(t, "ann", "mug")
	body := w.captured(id, 900)
	w.deliver(w.captured("unknown", 900))
	w.deliver(body)
	w.deliver(body)
	ask(w, http.MethodPost, "/webhooks/payments", `{}`)
	next, another := w.wire.next, strings.Replace(body, "pi_1", "pi_2", 1)
	w.wire.next = httpClient(func(*http.Request) (*http.Response, error) { return nil, errors.New("MARKER") })
	if got := w.deliver(another); got.Code != http.StatusServiceUnavailable || got.Header().Get("Retry-After") == "" {
		t.Errorf("%d %v %s", got.Code, got.Header(), got.Body)
	}
	w.wire.next = next
	w.deliver(another)
	if got := w.query(t, fmt.Sprintf(`{ order(id: %q) { captured { amount } } }`, id)); got != `{"order":{"captured":{"amount":"18.00"}}}` {
		t.Error(got)
	}
	want := []string{"stripe webhook NOT_FOUND 409 2 5", "stripe webhook OK 200 2 17", "stripe webhook OK 200 2 0", "payments webhook UNAUTHENTICATED 400 0 0", "stripe webhook UNAVAILABLE 503 1 0", "stripe webhook OK 200 2 14", "other query OK 200 1 0"}
	if lines := m.lines(t, len(want), "operation", "type", "code", "status", "requests", "writeUnits"); strings.Join(lines, "\n") != strings.Join(want, "\n") {
		t.Errorf("the access log has\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
	operations, statuses := m.counted()
	if got := strings.Join(operations, ", "); got != "other query OK, payments webhook UNAUTHENTICATED, stripe webhook NOT_FOUND, stripe webhook OK, stripe webhook OK, stripe webhook OK, stripe webhook UNAVAILABLE" {
		t.Errorf("the operations are counted as %s", got)
	}
	if got := fmt.Sprint(statuses); got != "[200 200 200 200 400 409 503]" {
		t.Errorf("the responses are counted as %s", got)
	}
}
