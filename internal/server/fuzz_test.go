package server_test

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/ordergraph/ordergraph/internal/server"
)

// FuzzHandler sends arbitrary requests to /graphql. The response must be a GraphQL response in
// UTF-8, arrive in time and never be a server fault.
func FuzzHandler(f *testing.F) {
	h, _ := handler(f, sampleThrough(f, forward), slog.LevelInfo, origin)
	for _, body := range []string{
		post(aliceQuery), post(`{ __schema { types { name fields { name type { name } } } } }`), post(`mutation { placeOrder(input: {}) { order { id } } }`),
		`{"query": "query A($id: ID!) { customer(id: $id) { ...F } } fragment F on Customer { orders(first: 3) { nodes { id } } }", "variables": {"id": "cust_01"}, "operationName": "A", "extensions": {}}`,
		post(`{ a: orders(first: 2147483648) { nodes { id } } b: orders(statuses: [PENDING, null]) @skip(if: true) { edges { cursor } } }`),
		post(`{ customer(id: "\ud800\u0000#") { name } } `), post("{ ...F } fragment F on Query { ...F }"), post(`subscription { orders }`), post(`query($a: [[[Int]]] = [[[1]]]) { __typename @include(if: $a) }`),
		`{"doc_id": "x"}`, `{"extensions": {"persistedQuery": {"version": 1, "sha256Hash": ""}}}`, `{"query": "{ __typename }", "query": ""}`,
		`[]`, `null`, ``, " ", "{\"query\": \"\xff\"}", strings.Repeat("[", 20_000), `{"variables": {"a": ` + strings.Repeat(`{"a":`, 9_000),
	} {
		f.Add(http.MethodPost, "", body, "Content-Type: application/json\nAccept: application/graphql-response+json")
		f.Add(http.MethodGet, "query="+url.QueryEscape(body), "", "")
	}
	f.Add(http.MethodGet, get(aliceQuery)[len(server.PathGraphQL)+1:], "x", "Accept: application/json;q=0.1, */*;q=-1\nSec-Fetch-Site: none\nUser-Agent: Mozilla/5.0")
	f.Add(http.MethodOptions, "", "", "Origin: "+origin+"\nAccess-Control-Request-Method: POST\nAccess-Control-Request-Headers: content-type")
	f.Add("PATCH", "%zz", "{}", "Content-Type: text/plain; charset=\"\nContent-Encoding: gzip\nX-Ordergraph-Explain: true")
	f.Fuzz(func(t *testing.T, method, query, body, header string) {
		r := httptest.NewRequest(http.MethodPost, server.PathGraphQL, struct{ io.Reader }{strings.NewReader(body)})
		if method != "" {
			r.Method = method
		}
		r.URL.RawQuery = query
		for line := range strings.SplitSeq(header, "\n") {
			name, value, _ := strings.Cut(line, ":")
			// net/http drops all other headers.
			if name = textproto.TrimString(name); name != "" && !strings.ContainsAny(value, "\x00\r") {
				r.Header.Add(name, textproto.TrimString(value))
			}
		}
		r.Header.Del("Accept-Encoding")
		w := httptest.NewRecorder()
		done := make(chan struct{})
		go func() {
			defer close(done)
			h.ServeHTTP(w, r)
		}()
		select {
		case <-done:
		case <-time.After(testTimeout):
			t.Fatal("no answer in time")
		}
		if w.Code > 499 || w.Code < 200 || w.Header().Get("X-Request-Id") == "" {
			t.Errorf("status %d, header %v, body %.300s", w.Code, w.Header(), w.Body)
		}
		if w.Code == http.StatusNoContent && r.Method == http.MethodOptions {
			return
		}
		var got map[string]json.RawMessage
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || !utf8.Valid(w.Body.Bytes()) || got["errors"] == nil && got["data"] == nil {
			t.Errorf("status %d, %v, body %.300s", w.Code, err, w.Body)
		}
		if contentType := w.Header().Get("Content-Type"); contentType != asJSON+"; charset=utf-8" && contentType != asGraphQL+"; charset=utf-8" {
			t.Errorf("Content-Type is %q", contentType)
		}
		if strings.Contains(w.Body.String(), `"INTERNAL"`) {
			t.Errorf("a fault: %s", w.Body)
		}
	})
}
