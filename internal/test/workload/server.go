package workload

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/graph"
	"github.com/ordergraph/ordergraph/graph/paging"
	"github.com/ordergraph/ordergraph/internal/server"
)

// Serve starts a server for a Store and returns the URL of its GraphQL endpoint. The server writes
// its log to log.
func Serve(t testing.TB, store *dynamo.Store, log io.Writer) string {
	t.Helper()
	return listen(t, newHandler(t, store, log))
}

func newHandler(t testing.TB, store *dynamo.Store, log io.Writer) http.Handler {
	t.Helper()
	handler, err := server.New(server.Options{
		Graph: graph.Options{Store: store, Cursors: paging.NewCursorSigner([]byte("a key for tests"))},
		Log:   slog.New(slog.NewTextHandler(log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	return handler
}

func listen(t testing.TB, handler http.Handler) string {
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return s.URL + server.PathGraphQL
}
