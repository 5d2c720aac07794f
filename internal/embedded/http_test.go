package embedded_test

import (
	"bytes"
	"errors"
	"hash/crc32"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/ordergraph/ordergraph/internal/embedded"
)

// serve serves one request over HTTP.
func serve(s *embedded.Store, method, target string, body io.Reader) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://127.0.0.1:8000/", body)
	r.Header.Set("X-Amz-Target", target)
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

func TestServeHTTP(t *testing.T) {
	t.Parallel()
	s := embedded.New()
	createTable(t, s, "items")
	for name, c := range map[string]struct {
		target, body string
		status       int
		want         string
	}{
		"a success":            {"DynamoDB_20120810.ListTables", `{}`, 200, `{"TableNames":["items"]}`},
		"an error":             {"DynamoDB_20120810.DescribeTable", `{"TableName":"missing"}`, 400, `{"__type":"com.amazonaws.dynamodb.v20120810#ResourceNotFoundException","message":"Requested resource not found: Table: missing not found"}`},
		"an unknown operation": {"DynamoDB_20120810.Backup", `{}`, 400, `{"__type":"com.amazon.coral.service#UnknownOperationException","message":"The store does not have the operation \"DynamoDB_20120810.Backup\""}`},
		"no operation":         {"", `{}`, 400, `UnknownOperationException`},
		"another API":          {"DynamoDBStreams_20120810.ListTables", `{}`, 400, `UnknownOperationException`},
		"malformed JSON":       {"DynamoDB_20120810.ListTables", `{"Limit":`, 400, `SerializationException`},
		"another type":         {"DynamoDB_20120810.ListTables", `{"Limit":"1"}`, 400, `SerializationException`},
		"an empty body":        {"DynamoDB_20120810.ListTables", ``, 400, `SerializationException`},
		"a body of 32 MB":      {"DynamoDB_20120810.ListTables", `{` + strings.Repeat(" ", 32<<20-2) + `}`, 200, `{"TableNames":["items"]}`},
		"a larger body":        {"DynamoDB_20120810.ListTables", `{` + strings.Repeat(" ", 32<<20-1) + `}`, 400, `The request exceeds 33554432 bytes`},
	} {
		w := serve(s, http.MethodPost, c.target, strings.NewReader(c.body))
		body := w.Body.Bytes()
		if w.Code != c.status || !bytes.Contains(body, []byte(c.want)) {
			t.Errorf("%s: the response is %d %.300s, want %d %s", name, w.Code, body, c.status, c.want)
		}
		h := w.Header()
		if h.Get("X-Amz-Crc32") != strconv.FormatUint(uint64(crc32.ChecksumIEEE(body)), 10) || h.Get("Content-Length") != strconv.Itoa(len(body)) ||
			h.Get("Content-Type") != "application/x-amz-json-1.0" || len(h.Get("X-Amzn-Requestid")) != 36 {
			t.Errorf("%s: the headers are %v", name, h)
		}
	}
}

// DynamoDB's health check is a GET of the root.
func TestHealth(t *testing.T) {
	t.Parallel()
	w := serve(embedded.New(), http.MethodGet, "", nil)
	if w.Code != http.StatusOK || w.Body.String() != "healthy: 127.0.0.1:8000" {
		t.Errorf("the response is %d %q", w.Code, w.Body)
	}
}

// failingReader fails after its first bytes.
type failingReader struct{ io.Reader }

func (r failingReader) Read(p []byte) (int, error) {
	if n, err := r.Reader.Read(p); err == nil {
		return n, nil
	}
	return 0, errors.New("the connection was reset")
}

// A request that does not arrive completely is not executed.
func TestInterruptedRequest(t *testing.T) {
	t.Parallel()
	s := embedded.New()
	createTable(t, s, "items")
	body := func() io.Reader {
		return failingReader{strings.NewReader(`{"TableName":"items","Item":{"pk":{"S":"a"}}}`)}
	}
	if w := serve(s, http.MethodPost, "DynamoDB_20120810.PutItem", body()); w.Body.Len() != 0 {
		t.Errorf("the response is %d %q, want none", w.Code, w.Body)
	}
	r := httptest.NewRequest(http.MethodPost, "http://embedded.invalid/", body())
	r.Header.Set("X-Amz-Target", "DynamoDB_20120810.PutItem")
	if response, err := s.Do(r); err == nil {
		t.Errorf("Do returned the status %d, want an error", response.StatusCode)
	}
	if readItem(t, s, "items", "a") != nil {
		t.Error("an interrupted request wrote its item")
	}
}
