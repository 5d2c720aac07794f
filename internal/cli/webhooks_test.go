package cli_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// A shop creates a webhook, changes an order, and gets the event with a valid signature. The
// metrics and the access log contain the delivery.
func TestServeDeliversEvents(t *testing.T) {
	db, table, variables := newSeededTable(t)
	store, err := dynamo.New(db, dynamo.Options{Table: table})
	if err != nil {
		t.Fatal(err)
	}
	raw := storetest.RawTable{T: t, DB: db, Name: table, Store: store}
	for _, feature := range []string{model.StatusChanges, model.Changes} {
		storetest.MakeReadable(t, raw, feature)
	}
	type request struct {
		header http.Header
		body   string
	}
	requests := make(chan request, 10)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		requests <- request{r.Header, string(body)}
		w.WriteHeader(http.StatusNoContent)
	}))
	defer receiver.Close()
	manifest := filepath.Join(t.TempDir(), "documents.json")
	if err := os.WriteFile(manifest, []byte(`{"mail": "query Mail($orderId: ID!) { order(id: $orderId) { status customer { name } } }"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	c, url := serve(t, "-addr 127.0.0.1:0", append(variables, "ORDERGRAPH_ADMIN_ADDR=0", "ORDERGRAPH_DOCUMENTS="+manifest, "ORDERGRAPH_LOG_LEVEL=error",
		"ORDERGRAPH_WEBHOOK_KEY=MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=", "ORDERGRAPH_WEBHOOK_ALLOWED_HOSTS="+strings.TrimPrefix(receiver.URL, "http://"))...)
	var created struct {
		Data struct {
			CreateWebhook struct{ Webhook struct{ ID, Secret string } }
		}
	}
	answer := postQuery(t, url, fmt.Sprintf(`mutation { createWebhook(input: { url: %q, topics: [NOTE_ADDED] }) { webhook { id secret } userErrors { message } } }`, receiver.URL))
	if err := json.Unmarshal([]byte(answer), &created); err != nil || created.Data.CreateWebhook.Webhook.Secret == "" {
		t.Fatal(answer, err)
	}
	postQuery(t, url, `mutation { addOrderNote(input: { orderId: "01HVNR4Q3R0000000000000002", note: "gift" }) { order { id } } }`)
	select {
	case r := <-requests:
		verifier, err := standardwebhooks.NewWebhook(created.Data.CreateWebhook.Webhook.Secret)
		if err != nil {
			t.Fatal(err)
		}
		if err := verifier.Verify([]byte(r.body), r.header); err != nil {
			t.Error(err)
		}
		var event struct {
			ID, Type, Subject string
			Data              struct {
				Event struct{ Type, Note, Actor string }
				Order struct {
					ID      string
					Version int
				}
				Version int
			}
		}
		if err := json.Unmarshal([]byte(r.body), &event); err != nil || event.Type != "ordergraph.order.note_added" || event.Data.Event.Note != "gift" || event.Data.Event.Actor != "anonymous" ||
			event.Data.Order.ID != event.Subject || event.Data.Version == 0 || event.Data.Order.Version != event.Data.Version || r.header.Get("Webhook-Id") != event.ID {
			t.Errorf("got %s (%v)", r.body, err)
		}
	case <-time.After(time.Minute):
		t.Fatal("no request arrived: ", postQuery(t, url, `{ webhooks { nodes { state lastError failures { nodes { error } } } } }`))
	}
	// The events of another webhook contain the answer of a trusted document.
	postQuery(t, url, fmt.Sprintf(`mutation { createWebhook(input: { url: "%s/mail", topics: [TAGS_CHANGED], documentId: "mail" }) { webhook { id } userErrors { message } } }`, receiver.URL))
	postQuery(t, url, `mutation { tagOrder(input: { orderId: "01HVNR4Q3R0000000000000002", add: ["gift"] }) { order { id } } }`)
	select {
	case r := <-requests:
		if !strings.Contains(r.body, `"result":{"data":{"order":{"status":"PENDING","customer":{"name":"Alice Chen"}}}}`) || strings.Contains(r.body, `"order":{"id"`) {
			t.Errorf("got %s", r.body)
		}
	case <-time.After(time.Minute):
		t.Fatal("no request arrived: ", postQuery(t, url, `{ webhooks { nodes { state lastError failures { nodes { error } } } } }`))
	}
	metrics := metricsURL(t, c)
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if _, text := get(t, metrics+"/metrics"); strings.Contains(text, "ordergraph_webhook_deliveries_total{result=\"delivered\"} 2\n") && strings.Contains(text, "ordergraph_webhooks{state=\"active\"} 2\n") {
			break
		} else if time.Now().After(end) {
			t.Fatal(text)
		}
	}
}
