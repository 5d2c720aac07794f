package server_test

import (
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/internal/server"
)

// Reads whose keys are known at the same time run concurrently. One field queries an order with its
// timeline, and another field the timeline of the same order by ID. The test blocks one read until
// the others have started.
func TestAnOrderWithItsTimelineIsReadConcurrently(t *testing.T) {
	var others sync.WaitGroup
	others.Add(2) // the customer, and the customer's copy of the order
	h, _ := handler(t, sampleThrough(t, func(r *http.Request, next dynamodb.HTTPClient) (*http.Response, error) {
		if strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".Query") {
			begun := make(chan struct{})
			go func() {
				others.Wait()
				close(begun)
			}()
			select {
			case <-begun:
			case <-r.Context().Done():
				return nil, r.Context().Err()
			}
		} else {
			others.Done()
		}
		return next.Do(r)
	}), slog.LevelInfo)
	w := ask(h, http.MethodPost, server.PathGraphQL, post(`{
		order(id: "01HVMK3P2Q0000000000000001") { status timeline { nodes { id } } }
		customer(id: "cust_01") { name order(id: "01HVMK3P2Q0000000000000001") { timeline(first: 1) { nodes { id } } } }
	}`))
	if body := w.Body.String(); w.Code != http.StatusOK || strings.Contains(body, "errors") || !strings.Contains(body, `"name":"Alice Chen","order":{"timeline":{"nodes":[{"id":`) {
		t.Errorf("status %d, %s", w.Code, body)
	}
}
