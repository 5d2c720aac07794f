//go:build !race

package server_test

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/ordergraph/ordergraph/graph"
	"github.com/ordergraph/ordergraph/graph/paging"
	"github.com/ordergraph/ordergraph/internal/server"
)

// fewReads is a query with a large selection, as a client's page has, but almost no reads. So the
// benchmark measures the work before and after the execution.
const fewReads = `{"operationName":"Page","query":` + "\"query Page($id: ID!, $first: Int = 10, $all: Boolean = false) {\\n  __typename\\n  customer(id: $id) @include(if: $all) { id name email orders(first: $first) { nodes { id } pageInfo { hasNextPage endCursor } } }\\n}\"" + `,"variables":{"id":"cust_01","first":10}}`

// discardWriter is a ResponseWriter without a connection. It keeps nothing, as net/http's does not.
type discardWriter struct {
	header http.Header
	body   bytes.Buffer
	status int
}

func (w *discardWriter) Header() http.Header              { return w.header }
func (w *discardWriter) WriteHeader(status int)           { w.status = status }
func (w *discardWriter) Write(b []byte) (int, error)      { return w.body.Write(b) }
func (w *discardWriter) SetReadDeadline(time.Time) error  { return nil }
func (w *discardWriter) SetWriteDeadline(time.Time) error { return nil }

// post sends a request with this body, and writes the response to w.
func (w *discardWriter) post(h http.Handler, body []byte, header http.Header) {
	clear(w.header)
	w.body.Reset()
	r := &http.Request{
		Method: http.MethodPost, URL: &url.URL{Path: server.PathGraphQL}, RequestURI: server.PathGraphQL, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Host: "localhost",
	}
	h.ServeHTTP(w, r)
}

// BenchmarkHandlerOverhead measures a small POST from the start to the end of the handler. The
// request reads nothing.
func BenchmarkHandlerOverhead(b *testing.B) {
	h, _ := handler(b, sampleThrough(b, forward), slog.LevelInfo)
	w, header := &discardWriter{header: http.Header{}}, http.Header{"Content-Type": {"application/json"}, "Accept": {"*/*"}}
	body := []byte(fewReads)
	b.ReportAllocs()
	for b.Loop() {
		w.post(h, body, header)
	}
	if want := `{"data":{"__typename":"Query"}}`; w.body.String() != want {
		b.Errorf("%d %s", w.status, w.body.String())
	}
}

// maxHandlerAllocations is the maximum number of allocations of a request outside its execution.
const maxHandlerAllocations = 50

// The allocations of a request outside its execution must not increase unnoticed.
func TestHandlerAllocations(t *testing.T) {
	if testing.CoverMode() != "" {
		t.Skip("coverage allocates")
	}
	store := sampleThrough(t, forward)
	h, _ := handler(t, store, slog.LevelInfo)
	executor := graph.NewExecutor(graph.Options{Store: store, Cursors: paging.NewCursorSigner([]byte("a key for tests"))})
	w, header := &discardWriter{header: http.Header{}}, http.Header{"Content-Type": {"application/json"}, "Accept": {"*/*"}}
	body := []byte(fewReads)
	var request graph.Request
	if err := json.Unmarshal(body, &request); err != nil {
		t.Fatal(err)
	}
	request.Variables["first"] = json.Number("10")
	all := testing.AllocsPerRun(100, func() { w.post(h, body, header) })
	within := testing.AllocsPerRun(100, func() { executor.Execute(t.Context(), request) })
	if n := all - within; n > maxHandlerAllocations || within == 0 {
		t.Errorf("the handler adds %.0f allocations to the %.0f of the executor, want at most %d", n, within, maxHandlerAllocations)
	}
}
