package workload

import (
	"io"
	"log/slog"
	"net/http/httptest"
	"testing"

	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/graph"
	"github.com/ordergraph/ordergraph/graph/paging"
	"github.com/ordergraph/ordergraph/internal/server"
)

// Serve starts a server for a Store and returns the URL of its GraphQL endpoint. The server writes
// its log to log. The functions in change set further options.
func Serve(t testing.TB, store *dynamo.Store, log io.Writer, change ...func(*server.Options)) string {
	t.Helper()
	opts := server.Options{
		Graph: graph.Options{Store: store, Cursors: paging.NewCursorSigner([]byte("a key for tests"))},
		Log:   slog.New(slog.NewTextHandler(log, nil)),
	}
	for _, set := range change {
		set(&opts)
	}
	handler, err := server.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return s.URL + server.PathGraphQL
}
