package webhook_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/embedded"
	"github.com/ordergraph/ordergraph/graph"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
	"github.com/ordergraph/ordergraph/internal/webhook"
)

// One server delivers events to 50 webhooks over loopback connections. The receivers are in the same
// process, so their CPU time is included. An iteration is one event.
func BenchmarkDeliveryTo50Webhooks(b *testing.B) {
	const webhooks = 50
	var received atomic.Int64
	arrived := make(chan struct{}, 1)
	want := int64(webhooks * b.N)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if w.WriteHeader(http.StatusNoContent); received.Add(1) == want {
			arrived <- struct{}{}
		}
	}))
	defer receiver.Close()
	db := embedded.New().Client()
	raw := storetest.NewRawTable(b, db, shop(b), dynamo.Options{})
	for _, feature := range []string{model.StatusChanges, model.Changes} {
		storetest.MakeReadable(b, raw, feature)
	}
	start := time.Now()
	for i := range b.N {
		if _, err := raw.Store.PlaceOrder(b.Context(), staff, commerce.OrderRequest{CustomerID: customer(i % 20), Lines: []commerce.OrderLine{{SKU: "p0", Quantity: 1}}}); err != nil {
			b.Fatal(err)
		}
	}
	for i := range webhooks {
		hook := commerce.Webhook{ID: commerce.WebhookID(storetest.ULIDAt(start, i)), URL: receiver.URL + fmt.Sprint("/", i), From: commerce.EventID(storetest.ULIDAt(start.Add(-time.Second), 0)), Version: 1, CreatedAt: start, UpdatedAt: start, Secrets: []string{"x"}}
		raw.Put(model.EncodeWithEdges(&model.KeyBuilder{}, &hook)[0])
	}
	sender := webhook.NewSender(webhook.SenderOptions{AllowedHosts: []string{strings.TrimPrefix(receiver.URL, "http://")}})
	defer sender.Close()
	d := webhook.NewDispatcher(webhook.Options{
		Store: raw.Store, Sender: sender, Secrets: testSecrets, Execute: webhook.NewExecute(graph.Options{Store: raw.Store}), Source: "urn:ordergraph:test", Log: slog.New(slog.DiscardHandler),
	})
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan struct{})
	b.ResetTimer()
	go func() {
		defer close(done)
		d.Run(ctx)
	}()
	<-arrived
	b.StopTimer()
	b.ReportMetric(float64(want)/b.Elapsed().Seconds(), "deliveries/s")
	b.ReportMetric(float64(b.N)/b.Elapsed().Minutes(), "events/min")
	cancel()
	<-done
}
