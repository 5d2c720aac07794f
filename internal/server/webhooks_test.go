package server_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/change"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/graph"
	"github.com/ordergraph/ordergraph/graph/document"
	"github.com/ordergraph/ordergraph/internal/server"
	"github.com/ordergraph/ordergraph/internal/test/authtest"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// webhookKey returns a key that encrypts the secrets of webhooks. Each letter gives another key.
func webhookKey(letter string) string {
	return base64.StdEncoding.EncodeToString([]byte(strings.Repeat(letter, 28) + "abcd"))
}

// webhookKeys returns the keys of some letters.
func webhookKeys(t testing.TB, letters ...string) *change.WebhookKeys {
	t.Helper()
	text := ""
	for _, letter := range letters {
		text += webhookKey(letter) + "\n"
	}
	keys, err := change.NewWebhookKeys(text)
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// listChanges adds the list of all changes to the table of a fixture.
func (s *fixture) listChanges(t testing.TB) {
	t.Helper()
	r := storetest.RawTable{T: t, DB: s.db, Name: s.table, Store: s.store}
	layout, err := model.DecodeLayout(model.Reader{Record: model.Record(r.Get("LAYOUT", "#METADATA"))})
	if err != nil {
		t.Fatal(err)
	}
	layout.Derivations[model.Changes] = model.DerivationStatus{State: model.Readable, Since: s.clock.Now()}
	r.Put(storetest.Item(model.LayoutRecord(&model.KeyBuilder{}, *layout)))
	if err := s.store.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// webhookView is a webhook as a mutation returns it.
type webhookView struct {
	ID, State string
	Secret    *string
	Version   int
}

// webhook executes a mutation that returns a webhook.
func (s *fixture) webhook(t testing.TB, mutation string, input mutationInput) (w webhookView) {
	t.Helper()
	if err := json.Unmarshal(s.mutate(t, mutation, input, "id secret state version").Value, &w); err != nil {
		t.Fatal(err)
	}
	return w
}

// hook is the input for a webhook.
func hook() mutationInput { return mutationInput{"url": "https://shop.example.com/hook"} }

// addWebhook creates a webhook and returns its ID as the input of another mutation.
func (s *fixture) addWebhook(t testing.TB) mutationInput {
	t.Helper()
	s.listChanges(t)
	return mutationInput{"webhookId": s.webhook(t, "createWebhook", hook()).ID}
}

// stored returns the webhook in the table.
func (s *fixture) stored(t testing.TB) *commerce.Webhook {
	t.Helper()
	all, err := s.store.Webhooks(t.Context())
	if err != nil || len(all) != 1 {
		t.Fatalf("the webhooks are %v, %v", all, err)
	}
	return all[0]
}

// Admins create, pause, resume, replay and delete a webhook. The list shows how far its events have
// been delivered, with one request for all webhooks of a page.
func TestWebhooks(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newFixture(t, db, smallDataset(t))
		if got := s.send(t, "createWebhook", hook(), "id"); len(got.Errors) != 1 || !strings.Contains(got.Errors[0].Message, "ordergraph table apply orderEvent.changes") {
			t.Errorf("without the list of all changes, the response is %s, %+v", got.Data, got.Errors)
		}
		s.listChanges(t)
		created := s.webhook(t, "createWebhook", hook().with("topics", []string{"SHIPPED", "PLACED", "PLACED"}).with("statuses", []string{"SHIPPED"}))
		if created.State != "ACTIVE" || created.Version != 1 {
			t.Errorf("the new webhook is %+v", created)
		}
		list := func() string {
			t.Helper()
			got := s.ask(t, `{ webhooks { nodes { url topics statuses documentId secret state lag pending lastError lastErrorAt lastSuccessAt failures { nodes { orderId eventId attempts retryAt since error } } createdAt createdBy version } } }`, nil)
			if len(got.Errors) > 0 {
				t.Fatalf("%+v", got.Errors)
			}
			return string(got.Data)
		}
		const fresh = `"lag":0,"pending":0,"lastError":null,"lastErrorAt":null,"lastSuccessAt":null,"failures":{"nodes":[]},"createdAt":"2026-03-01T08:00:`
		if got := list(); !strings.Contains(got, `{"webhooks":{"nodes":[{"url":"https://shop.example.com/hook","topics":["PLACED","SHIPPED"],"statuses":["SHIPPED"],"documentId":null,"secret":null,"state":"ACTIVE",`+fresh) {
			t.Errorf("the list is %s", got)
		}
		w := s.stored(t)
		at, since := s.clock.Now(), s.clock.Now().Add(-90*time.Second)
		state := &commerce.WebhookState{WebhookID: w.ID, Owner: "a", Sequence: 1, WebhookVersion: 1, Failures: 2, LastError: "status 500", LastErrorAt: &at, LastSuccessAt: &since, Pending: 3, PendingSince: &since}
		failure := &commerce.WebhookFailure{WebhookID: w.ID, OrderID: "01HVMK3P2Q0000000000000002", EventID: "01HVMK3P2Q0000000000000003", Attempts: 4, RetryAt: at, Since: since, Error: "status 503"}
		save := func(previous int) {
			t.Helper()
			if err := s.store.SaveWebhookState(t.Context(), state, previous); err != nil {
				t.Fatal(err)
			}
		}
		save(0)
		if err := s.store.SaveWebhookFailure(t.Context(), failure, "a"); err != nil {
			t.Fatal(err)
		}
		got := list()
		for _, want := range []string{
			`"state":"RETRYING","lag":90,"pending":3,"lastError":"status 500","lastErrorAt":"2026-03-01T08:00:`, `"lastSuccessAt":"2026-03-01T07:5`,
			`"failures":{"nodes":[{"orderId":"01HVMK3P2Q0000000000000002","eventId":"01HVMK3P2Q0000000000000003","attempts":4,"retryAt":"2026-03-01T08:00:`, `"error":"status 503"}]}`,
		} {
			if !strings.Contains(got, want) {
				t.Errorf("the list is %s, want %s", got, want)
			}
		}
		state.DisabledReason, state.Sequence = "status 410", 2
		save(1)
		if got := list(); !strings.Contains(got, `"state":"DISABLED"`) || !strings.Contains(got, `"lastError":"status 410"`) {
			t.Errorf("a disabled webhook is %s", got)
		}
		id := mutationInput{"webhookId": created.ID}
		if got := s.webhook(t, "resumeWebhook", id.with("expectedVersion", 1)); got.State != "RETRYING" || got.Version != 2 {
			t.Errorf("a resumed webhook is %+v", got)
		}
		if got := s.webhook(t, "pauseWebhook", id.with("expectedVersion", 2)); got.State != "PAUSED" || got.Version != 3 {
			t.Errorf("a paused webhook is %+v", got)
		}
		s.refuse(t, "replayWebhook", id.with("from", "2026-03-01T07:59:59Z"), "INVALID input.from")
		s.refuse(t, "replayWebhook", id.with("from", "2026-03-02T00:00:00Z"), "INVALID input.from")
		s.clock.pass(time.Hour)
		if got := s.webhook(t, "replayWebhook", id.with("from", "2026-03-01T08:30:00Z")); got.Version != 4 {
			t.Errorf("a replayed webhook is %+v", got)
		}
		from, _ := commerce.MinULIDAt(time.Date(2026, 3, 1, 8, 30, 0, 0, time.UTC))
		if w := s.stored(t); w.Restarts != 1 || string(w.From) != from || !w.Paused {
			t.Errorf("the stored webhook is %+v, want From %s", w, from)
		}
		for i := range commerce.MaxLines + 2 {
			failure.OrderID = commerce.OrderID(fmt.Sprintf("01HVMK3P2Q00000000000001%02d", i))
			if err := s.store.SaveWebhookFailure(t.Context(), failure, "a"); err != nil {
				t.Fatal(err)
			}
		}
		s.mutate(t, "deleteWebhook", id)
		s.refuse(t, "deleteWebhook", id, "NOT_FOUND input.webhookId")
		for k := range s.records(t) {
			if strings.HasPrefix(k, "WEBHOOK#") {
				t.Errorf("after the deletion, the table contains %s", k)
			}
		}
	})
}

// A page of webhooks needs one request for all states.
func TestStatesOfWebhooksAreBatched(t *testing.T) {
	s := newFixture(t, storetest.Engines()[0].Client(t), smallDataset(t))
	s.listChanges(t)
	for range 3 {
		s.mutate(t, "createWebhook", hook())
	}
	got := s.ask(t, `{ webhooks { nodes { state lag pending lastError } } }`, nil)
	if n := got.Extensions.Explain.Totals.Requests; n != 2 {
		t.Errorf("it took %d requests, want 2", n)
	}
}

// The secret is in the results of the mutations that create it, also if they are repeated, and
// nowhere else. After a rotation, the previous secret signs for a day.
func TestSecretsOfWebhooks(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newFixture(t, db, smallDataset(t))
		s.listChanges(t)
		first := s.webhook(t, "createWebhook", hook().with("idempotencyKey", "k"))
		if again := s.webhook(t, "createWebhook", hook().with("idempotencyKey", "k")); again.ID != first.ID || *again.Secret != *first.Secret {
			t.Errorf("the repetition created %+v, want %+v", again, first)
		}
		if random, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(*first.Secret, "whsec_")); err != nil || len(random) != 24 {
			t.Errorf("the secret is %q", *first.Secret)
		}
		rotate := mutationInput{"webhookId": first.ID, "idempotencyKey": "r"}
		s.clock.pass(time.Hour)
		second := s.webhook(t, "rotateWebhookSecret", rotate)
		if again := s.webhook(t, "rotateWebhookSecret", rotate); *again.Secret != *second.Secret || *second.Secret == *first.Secret {
			t.Errorf("the secrets are %s, then %s, and again %s", *first.Secret, *second.Secret, *again.Secret)
		}
		for _, mutation := range []string{"pauseWebhook", "resumeWebhook"} {
			if got := s.webhook(t, mutation, mutationInput{"webhookId": first.ID}); got.Secret != nil {
				t.Errorf("%s returns the secret", mutation)
			}
		}
		valid := func(want ...string) {
			t.Helper()
			if got, err := s.store.WebhookSecrets(s.stored(t)); err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("the valid secrets are %s, %v, want %s", got, err, want)
			}
		}
		valid(*second.Secret, *first.Secret)
		s.clock.pass(24*time.Hour - time.Second)
		valid(*second.Secret, *first.Secret)
		s.clock.pass(time.Second)
		valid(*second.Secret)
		for k, r := range s.records(t) {
			if strings.Contains(r, "whsec_") || strings.Contains(r, strings.TrimPrefix(*second.Secret, "whsec_")) {
				t.Errorf("the record %s contains a secret: %s", k, r)
			}
		}
	})
}

// A key can be replaced: the old one decrypts while it is on another line. A server without the
// right key reports which setting to change.
func TestKeysOfWebhooks(t *testing.T) {
	db := storetest.Engines()[0].Client(t)
	s := newFixture(t, db, smallDataset(t))
	s.listChanges(t)
	secret := *s.webhook(t, "createWebhook", hook()).Secret
	w := s.stored(t)
	with := func(keys *change.WebhookKeys) *dynamo.Store {
		t.Helper()
		store, err := dynamo.New(storetest.WithoutResponseDate(db), dynamo.Options{Table: s.table, Clock: s.clock.Now, WebhookKeys: keys})
		if err != nil {
			t.Fatal(err)
		}
		if err := store.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
		return store
	}
	for _, c := range []struct {
		keys *change.WebhookKeys
		want string
	}{
		{webhookKeys(t, "b", "a"), ""}, {webhookKeys(t, "b"), "encrypted with another key"}, {nil, "set ORDERGRAPH_WEBHOOK_KEY"},
	} {
		store := with(c.keys)
		got, err := store.WebhookSecrets(w)
		if c.want == "" && (err != nil || fmt.Sprint(got) != "["+secret+"]") || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("the secrets are %s, %v", got, err)
		}
		moved := *w
		moved.ID = "01HVMK3P2Q0000000000000001"
		if _, err := store.WebhookSecrets(&moved); err == nil {
			t.Error("a secret was decrypted for another webhook")
		}
	}
	for _, sealed := range []string{"", "AAAA", w.Secrets[0][:len(w.Secrets[0])-4], "!" + w.Secrets[0]} {
		damaged := *w
		damaged.Secrets = []string{sealed}
		if _, err := s.store.WebhookSecrets(&damaged); err == nil {
			t.Errorf("%q was decrypted", sealed)
		}
	}
	h, log := newHandler(t, with(nil), slog.LevelDebug, server.Options{})
	for _, mutation := range []string{`createWebhook(input: {url: "https://example.com"})`, fmt.Sprintf(`rotateWebhookSecret(input: {webhookId: %q})`, w.ID)} {
		got := ask(h, http.MethodPost, server.PathGraphQL, post(`mutation { `+mutation+` { webhook { id } userErrors { code } } }`)).Body.String()
		if !strings.Contains(got, `"code":"UNAVAILABLE"`) || !strings.Contains(got, "set ORDERGRAPH_WEBHOOK_KEY") {
			t.Errorf("%s: the response is %s", mutation, got)
		}
	}
	if text := fmt.Sprint(log.entries(t)); !strings.Contains(text, "ORDERGRAPH_WEBHOOK_KEY") {
		t.Errorf("the log is %s", text)
	}
	for _, text := range []string{"", " \n", "short", webhookKey("a") + "\n" + webhookKey("b")[:40]} {
		if _, err := change.NewWebhookKeys(text); err == nil || strings.Contains(err.Error(), webhookKey("b")[:8]) {
			t.Errorf("the keys %q give the error %v", text, err)
		}
	}
}

// Only admins manage webhooks.
func TestOnlyAdminsManageWebhooks(t *testing.T) {
	s := newFixture(t, storetest.Engines()[0].Client(t), smallDataset(t))
	s.listChanges(t)
	g := newAuthenticatedServer(t, s.store, server.Options{})
	operations := []string{
		`{ webhooks { nodes { id } } }`,
		`mutation { createWebhook(input: {url: "https://example.com"}) { webhook { id secret } userErrors { code } } }`,
	}
	for _, mutation := range []string{"pauseWebhook", "resumeWebhook", "rotateWebhookSecret", "deleteWebhook"} {
		operations = append(operations, fmt.Sprintf(`mutation { %s(input: {webhookId: "a"}) { userErrors { code } } }`, mutation))
	}
	operations = append(operations, `mutation { replayWebhook(input: {webhookId: "a", from: "2026-03-01T08:00:00Z"}) { userErrors { code } } }`)
	for _, role := range []string{"CUSTOMER", "STAFF", "SERVICE", "ADMIN"} {
		token := g.token(t, authtest.Object{"role": role, "sub": "sam", "customer_id": "ann"})
		for _, operation := range operations {
			if got := g.ask(t, token, operation); strings.Contains(got, "FORBIDDEN") != (role != "ADMIN") {
				t.Errorf("%s as %s: %s", operation, role, got)
			}
		}
	}
}

// A webhook can have one of the documents that an operator has added. The only required variable of
// the document is the ID of an order.
func TestDocumentsOfWebhooks(t *testing.T) {
	s := newFixture(t, storetest.Engines()[0].Client(t), smallDataset(t))
	s.listChanges(t)
	s.refuse(t, "createWebhook", hook().with("documentId", "order"), "INVALID input.documentId")
	documents := []document.TrustedDocument{
		{ID: "order", Text: `query ($orderId: ID!, $first: Int, $last: Int! = 3) { order(id: $orderId) { items(first: $first, last: $last) { nodes { sku: productId } } } }`},
		{ID: "all", Text: `{ orderCounts { status count } }`},
		{ID: "string", Text: `query ($orderId: String!) { orderByTrackingNumber(trackingNumber: $orderId) { id } }`},
		{ID: "customer", Text: `query ($id: ID!) { customer(id: $id) { id } }`},
		{ID: "mutation", Text: `mutation ($orderId: ID!) { confirmOrder(input: {orderId: $orderId}) { userErrors { code } } }`},
		{ID: "two", Text: `query A { orderCounts { count } } query B { orderCounts { count } }`},
		{ID: "invalid", Text: `{ nothing }`},
	}
	h, _ := newHandler(t, s.store, slog.LevelError, server.Options{Graph: graph.Options{Documents: documents}})
	for id, accepted := range map[string]bool{"order": true, "all": true, "string": false, "customer": false, "mutation": false, "two": false, "invalid": false, "unknown": false} {
		got := ask(h, http.MethodPost, server.PathGraphQL, post(fmt.Sprintf(`mutation { createWebhook(input: {url: "https://example.com", documentId: %q}) { webhook { documentId } userErrors { code field message } } }`, id))).Body.String()
		if want := fmt.Sprintf(`"webhook":{"documentId":%q}`, id); strings.Contains(got, want) != accepted || !accepted && !strings.Contains(got, `"field":["input","documentId"]`) {
			t.Errorf("document %s: %s", id, got)
		}
	}
}

// A function of the server can replace the standard check of URLs.
func TestURLsOfWebhooks(t *testing.T) {
	s := newFixture(t, storetest.Engines()[0].Client(t), smallDataset(t))
	s.listChanges(t)
	for _, url := range []string{"", "http://example.com", "https://", "https:example.com", "https://:443/a", "example.com", "https://user@example.com", "https://example.com/#a", "https://example.com/%zz", "https://example.com/" + strings.Repeat("a", 2048)} {
		s.refuse(t, "createWebhook", mutationInput{"url": url}, "INVALID input.url")
	}
	s.mutate(t, "createWebhook", mutationInput{"url": "https://example.com/" + strings.Repeat("a", 2028)})
	check := func(url string) error {
		if url != "http://erp" {
			return commerce.NewInvalidInput(commerce.FieldPath("url"), "is not the ERP")
		}
		return nil
	}
	h, _ := newHandler(t, s.store, slog.LevelError, server.Options{Graph: graph.Options{CheckWebhookURL: check}})
	for url, want := range map[string]string{"http://erp": `"userErrors":[]`, "https://example.com": `"message":"url is not the ERP.","field":["input","url"]`} {
		if got := ask(h, http.MethodPost, server.PathGraphQL, post(fmt.Sprintf(`mutation { createWebhook(input: {url: %q}) { userErrors { message field } } }`, url))).Body.String(); !strings.Contains(got, want) {
			t.Errorf("%s: %s", url, got)
		}
	}
	for range commerce.MaxWebhooks - 2 {
		s.mutate(t, "createWebhook", hook())
	}
	s.refuse(t, "createWebhook", hook(), "INVALID input.url")
}
