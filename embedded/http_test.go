package embedded_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"hash/crc32"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/ordergraph/ordergraph/embedded"
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
		"a body of 16 MB":      {"DynamoDB_20120810.ListTables", `{` + strings.Repeat(" ", 16<<20-2) + `}`, 200, `{"TableNames":["items"]}`},
		"a larger body":        {"DynamoDB_20120810.ListTables", `{` + strings.Repeat(" ", 16<<20-1) + `}`, 413, `The request exceeds 16777216 bytes`},
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

// compressed returns the text, compressed with gzip.
func compressed(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// A body can be compressed with gzip. DynamoDB answers 500 to a body that cannot be decompressed.
func TestCompressedRequests(t *testing.T) {
	t.Parallel()
	s := embedded.New()
	createTable(t, s, "items")
	const request = `{"TableName":"items","Item":{"pk":{"S":"a"}}}`
	long := request[:len(request)-1] + strings.Repeat(" ", 16<<20) + "}"
	for name, c := range map[string]struct {
		encoding, body string
		status         int
	}{
		"gzip":           {"gzip", compressed(t, request), 200},
		"upper case":     {"GZIP", compressed(t, request), 200},
		"two members":    {"gzip", compressed(t, request[:10]) + compressed(t, request[10:]), 200},
		"not compressed": {"gzip", request, 500},
		"empty":          {"gzip", "", 500},
		"truncated":      {"gzip", compressed(t, request)[:30], 500},
		"without sum":    {"gzip", compressed(t, request)[:len(compressed(t, request))-1], 500},
		"more bytes":     {"gzip", compressed(t, request) + "more", 500},
		"too long":       {"gzip", compressed(t, long), 413},
		"identity":       {"identity", request, 200},
		"unknown":        {"br", request, 500},
	} {
		for client, execute := range map[string]func(*http.Request) (int, string){
			"HTTP": func(r *http.Request) (int, string) {
				w := httptest.NewRecorder()
				s.ServeHTTP(w, r)
				return w.Code, w.Body.String()
			},
			"the SDK": func(r *http.Request) (int, string) {
				response, err := s.Do(r)
				if err != nil {
					t.Fatal(err)
				}
				body, err := io.ReadAll(response.Body)
				if err != nil {
					t.Fatal(err)
				}
				return response.StatusCode, string(body)
			},
		} {
			r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1:8000/", strings.NewReader(c.body))
			r.Header.Set("X-Amz-Target", "DynamoDB_20120810.PutItem")
			r.Header.Set("Content-Encoding", c.encoding)
			status, body := execute(r)
			if wrote := readItem(t, s, "items", "a") != nil; status != c.status || wrote != (status == http.StatusOK) {
				t.Errorf("%s, over %s: the response is %d %s, want the status %d; the item was written: %v", name, client, status, body, c.status, wrote)
			}
			deleteItem(t, s, "a")
		}
	}
}

// A client that sends a body above the limit receives the response, although it sends the whole
// body before it reads.
func TestLargeRequestOverNetwork(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(embedded.New())
	defer server.Close()
	for name, body := range map[string]io.Reader{
		"of known length":   bytes.NewReader(make([]byte, 20<<20)),
		"of unknown length": io.LimitReader(zeros{}, 20<<20),
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, body)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Errorf("a body %s: %v", name, err)
			continue
		}
		if response.StatusCode != http.StatusRequestEntityTooLarge {
			t.Errorf("a body %s: status %d", name, response.StatusCode)
		}
		if err := response.Body.Close(); err != nil {
			t.Error(err)
		}
	}
}

// zeros is a reader without an end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
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
