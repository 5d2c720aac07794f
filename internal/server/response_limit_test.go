package server_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/ordergraph/ordergraph/graph/document"
	"github.com/ordergraph/ordergraph/internal/server"
)

// No request causes a response that is much longer than the limit, whether its length comes from
// data, errors or the explain output, and over any transport.
func TestNoResponseExceedsItsLimit(t *testing.T) {
	t.Parallel()
	const limit, overhead = 20_000, 1_000
	l := newLive(t, server.Options{}, func(o *server.Options) {
		o.Graph.Limits = document.Limits{Answer: limit, Cost: 1 << 30}
	})
	long := strings.Repeat("x", 190)
	numbered := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	type variables = map[string]any
	for name, request := range map[string]variables{
		"entities without a type":    {"query": `query($r:[_Any!]!){` + numbered(45, "a%d:_entities(representations:$r){__typename}") + `}`, "variables": variables{"r": slices.Repeat([]any{0}, 1000)}},
		"aliases in paths of errors": {"query": `query($r:[_Any!]!){` + numbered(45, "a"+long+"%d:_entities(representations:$r){__typename}") + `}`, "variables": variables{"r": slices.Repeat([]any{variables{"__typename": long}}, 30)}},
		"invalid page sizes":         {"query": `{customers(first:100){nodes{` + numbered(40, "a"+long+"%d:orders(first:0){nodes{id}}") + `}}}`},
		"malformed cursors":          {"query": `{orders(first:100){nodes{` + numbered(40, "a%d:timeline(after:\""+long+"\"){nodes{id}}") + `}}}`},
		"long aliases":               {"query": `{orders(first:100){nodes{` + numbered(40, "a"+long+"%d:id ") + `}}}`},
		"many DynamoDB requests":     {"query": `{customers(first:100){nodes{orders(first:100){nodes{a` + long + `:timeline(first:1){nodes{id}}}}}}}`},
		"unknown fields":             {"query": `{` + numbered(45, long+"%d ") + `}`},
		"unknown arguments":          {"query": `{customers(` + numbered(200, long+"%d:1 ") + `){nodes{id}}}`},
		"invalid literals":           {"query": `{productsBySku(skus:[` + strings.Repeat("1.5 ", 1000) + `]){name}}`},
		"a long literal":             {"query": `{orders(placed:{from:"` + strings.Repeat(`\\\"`, 5_000) + `"}){nodes{id}}}`},
		"conflicting fields":         {"query": `{` + numbered(20, "a"+long+":customer(id:\"%d\"){id} ") + `}`},
		"a syntax error":             {"query": `{` + strings.Repeat("x", 90_000) + `!}`},
		"invalid variables":          {"query": `query($o:PlaceOrderInput!){placeOrder(input:$o){__typename}}`, "variables": variables{"o": variables{strings.Repeat("\x01", 10_000): 1, "items": slices.Repeat([]any{variables{long: 1}}, 100)}}},
		"an unknown operation":       {"query": `{__typename}`, "operationName": strings.Repeat("x", 50_000)},
		"a hash":                     {"extensions": variables{"persistedQuery": variables{"version": 1, "sha256Hash": strings.Repeat("x", 50_000)}}},
		"forbidden subscription":     {"query": `subscription{` + long + `}`},
	} {
		body, err := json.Marshal(request)
		if err != nil || len(body) > 100_000 {
			t.Fatalf("%s: %d bytes, %v", name, len(body), err)
		}
		for _, accept := range []string{"application/json", "application/graphql-response+json", "text/event-stream"} {
			r, err := http.NewRequest(http.MethodPost, l.url(), strings.NewReader(string(body)))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Accept", accept)
			r.Header.Set(server.ExplainHeader, "true")
			response, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(response.Body)
			response.Body.Close()
			if err != nil || len(text) > limit+overhead || response.StatusCode >= http.StatusInternalServerError {
				t.Errorf("%s, %s: status %d, %d bytes, %v: %.200s", name, accept, response.StatusCode, len(text), err, text)
			}
		}
		w := l.open(server.ExplainHeader, "true")
		w.send(frame{ID: "1", Type: "subscribe", Payload: body})
		if got := w.receive(); len(got.Payload) > limit+overhead {
			t.Errorf("%s over WebSocket: %d bytes: %.200s", name, len(got.Payload), got.Payload)
		}
	}
}
