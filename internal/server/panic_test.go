package server_test

import (
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/internal/server"
)

func panicking(with any) interceptor {
	return func(*http.Request, dynamodb.HTTPClient) (*http.Response, error) { panic(with) }
}

// A panic anywhere results in INTERNAL with the request ID. The log has the details once under that
// ID.
func TestPanics(t *testing.T) {
	const secret = "arn:aws:dynamodb:eu-west-1:123456789012:table/orders"
	for name, c := range map[string]struct {
		method, path, body string
		status             int
	}{
		"in a batch of a loader":  {http.MethodPost, server.PathGraphQL, post(aliceQuery), http.StatusOK},
		"in a handler":            {http.MethodGet, server.PathReady, "", http.StatusInternalServerError},
		"in a handler, with HEAD": {http.MethodHead, server.PathReady, "", http.StatusInternalServerError},
	} {
		t.Run(name, func(t *testing.T) {
			h, j := handler(t, sampleThrough(t, panicking(secret)), slog.LevelInfo, origin)
			w := ask(h, c.method, c.path, c.body, "Origin", origin, "Accept-Encoding", "gzip")
			var got answer
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
				t.Fatal(err)
			}
			id := w.Header().Get("X-Request-Id")
			if w.Code != c.status || len(got.Errors) != 1 || got.Errors[0].Extensions["code"] != "INTERNAL" || got.Errors[0].Extensions["requestId"] != id || id == "" {
				t.Errorf("status %d, header %v, body %s", w.Code, w.Header(), w.Body)
			}
			if strings.Contains(w.Body.String(), "arn") || w.Header().Get("Content-Type") != asJSON+"; charset=utf-8" || w.Header().Get("Cache-Control") != "no-store" {
				t.Errorf("header %v, body %s", w.Header(), w.Body)
			}
			if log := j.entries(t); len(log) != 1 || log[0]["level"] != "ERROR" || log[0]["requestId"] != id || !strings.Contains(log[0]["error"].(string), secret) {
				t.Errorf("the log has %v, want one line with the cause", log)
			}
		})
	}
}

// http.ErrAbortHandler closes a connection and is not logged as an error.
func TestAbortCutsTheConnection(t *testing.T) {
	h, j := handler(t, sampleThrough(t, panicking(http.ErrAbortHandler)), slog.LevelInfo)
	s := httptest.NewServer(h)
	defer s.Close()
	response, err := http.Get(s.URL + server.PathReady)
	if err == nil {
		response.Body.Close()
	}
	if !errors.Is(err, io.EOF) {
		t.Errorf("error %v, want a closed connection", err)
	}
	j.checkEmpty(t)
}
