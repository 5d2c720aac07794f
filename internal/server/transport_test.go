package server_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/internal/server"
)

const (
	asJSON    = "application/json"
	asGraphQL = "application/graphql-response+json"
)

// get returns the URL path of a query by GET. more has names and values of further parameters.
func get(query string, more ...string) string {
	values := url.Values{"query": {query}}
	for i := 0; i < len(more); i += 2 {
		values.Add(more[i], more[i+1])
	}
	return server.PathGraphQL + "?" + values.Encode()
}

// The media type of a response is the one with the highest weight in Accept.
func TestAnswersAreOfTheTypeThatIsAccepted(t *testing.T) {
	h, j := handler(t, sampleThrough(t, forward), slog.LevelInfo)
	for accept, want := range map[string]string{
		"":                                            asJSON,
		"*/*":                                         asJSON,
		"application/*":                               asJSON,
		"application/json":                            asJSON,
		"APPLICATION/JSON":                            asJSON,
		"application/json; charset=utf-8":             asJSON,
		`application/json; charset="UTF-8"`:           asJSON,
		asGraphQL:                                     asGraphQL,
		asGraphQL + ";charset=utf-8":                  asGraphQL,
		asGraphQL + ", application/json;q=0.9":        asGraphQL,
		asGraphQL + ";q=0.8, application/json":        asJSON,
		"application/json, " + asGraphQL:              asGraphQL,
		asGraphQL + ", */*":                           asGraphQL,
		"application/json, */*":                       asJSON,
		"*/*;q=0.5, " + asGraphQL + ";q=0.4":          asJSON,
		"*/*, " + asGraphQL + ";q=0":                  asJSON,
		"application/json;q=0, */*":                   asGraphQL,
		"application/json;q=0.2, */*;q=0.1":           asJSON,
		"text/html, application/xml;q=0.9, */*;q=0.8": asJSON,
		"multipart/mixed;deferSpec=20220824, " + asGraphQL + ", application/json":                                           asGraphQL,
		"application/graphql-response+json, application/graphql+json, application/json, text/event-stream, multipart/mixed": asGraphQL,
		"application/json; charset=utf-16, */*;q=0.1":                                                                       asJSON,
	} {
		for name, w := range map[string]*httptest.ResponseRecorder{
			"POST": ask(h, http.MethodPost, server.PathGraphQL, post(aliceQuery), "Accept", accept),
			"GET":  ask(h, http.MethodGet, get(aliceQuery), "", "Accept", accept),
		} {
			if w.Code != http.StatusOK || w.Header().Get("Content-Type") != want+"; charset=utf-8" || w.Body.String() != aliceAnswer || w.Header().Get("Cache-Control") != "no-store" {
				t.Errorf("%s, Accept %q: status %d, header %v, body %s, want %s", name, accept, w.Code, w.Header(), w.Body, want)
			}
			if vary := strings.Join(w.Header().Values("Vary"), ", "); !strings.Contains(vary, "Accept,") && !strings.HasSuffix(vary, "Accept") {
				t.Errorf("%s: Vary is %q", name, vary)
			}
		}
	}
	for _, accept := range []string{"text/html", "application/xml, text/*", "application/json;q=0", "*/*;q=0", "application/json; charset=latin1", "application/json;q=no", "application/graphql+json", "?"} {
		checkRefusal(t, ask(h, http.MethodPost, server.PathGraphQL, post(aliceQuery), "Accept", accept), http.StatusNotAcceptable, "NOT_ACCEPTABLE", asJSON)
	}
	j.checkEmpty(t)
}

// With typeGraphQL the status reports whether a request was executed. With typeJSON it does not.
func TestStatusOfRequestsThatAreNotExecuted(t *testing.T) {
	h, j := handler(t, sampleThrough(t, forward), slog.LevelInfo)
	for name, body := range map[string]string{
		"no document":      post(`{`),
		"a blank document": post(` `),
		"a NUL":            post("{ \x00 }"),
		"an unknown field": post(`{ nonsense }`),
		"a bad variable":   `{"query": "query($id: ID!) { customer(id: $id) { name } }", "variables": {"id": null}}`,
		"a missing name":   post(`query A { orders { nodes { id } } } query B { orders { nodes { id } } }`),
		"a wrong name":     `{"query": "{ orders { nodes { id } } }", "operationName": "B"}`,
		"a document's id":  `{"documentId": "unknown"}`,
		"Relay's id of it": `{"doc_id": "unknown"}`,
		"urql's id of it":  `{"id": "unknown"}`,
		"a persisted one":  `{"extensions": {"persistedQuery": {"version": 1, "sha256Hash": "ecf4edb46db40b5132295c0291d62fb65d6759a9eedfa4d5d612dd5ec54a6b38"}}}`,
	} {
		for accept, status := range map[string]int{asJSON: http.StatusOK, asGraphQL: http.StatusBadRequest} {
			w := ask(h, http.MethodPost, server.PathGraphQL, body, "Accept", accept)
			var got answer
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
				t.Fatal(err)
			}
			if w.Code != status || len(got.Errors) == 0 || got.Errors[0].Extensions["code"] == "BAD_REQUEST" || strings.Contains(w.Body.String(), `"data"`) {
				t.Errorf("%s as %s: status %d, body %s, want %d", name, accept, w.Code, w.Body, status)
			}
		}
	}
	// A response to an executed request has data, which can be null.
	for _, accept := range []string{asJSON, asGraphQL} {
		if w := ask(h, http.MethodPost, server.PathGraphQL, post(`{ orders(first: 0) { nodes { id } } }`), "Accept", accept); w.Code != http.StatusOK || !strings.HasPrefix(w.Body.String(), `{"errors":[`) || !strings.HasSuffix(w.Body.String(), `],"data":null}`) {
			t.Errorf("as %s: status %d, body %s", accept, w.Code, w.Body)
		}
	}
	j.checkEmpty(t)
}

// A request that is not a GraphQL request is refused with a specific status, a code, and a message
// that does not repeat the request.
func TestRefusals(t *testing.T) {
	h, j := handler(t, sampleThrough(t, func(*http.Request, dynamodb.HTTPClient) (*http.Response, error) {
		t.Error("a refused request read the table")
		return nil, io.ErrUnexpectedEOF
	}), slog.LevelInfo)
	const secretQuery = `{"query": "{ secret }"}`
	long := strings.Repeat("x", 128<<10)
	for _, c := range []struct {
		name, method, target, body string
		header                     []string
		status                     int
		code                       string
	}{
		{"PUT", "PUT", "", secretQuery, nil, 405, "METHOD_NOT_ALLOWED"},
		{"DELETE", "DELETE", "", "", nil, 405, "METHOD_NOT_ALLOWED"},
		{"TRACE", "TRACE", "", "", nil, 405, "METHOD_NOT_ALLOWED"},
		{"a method of its own", "SECRET", "", "", nil, 405, "METHOD_NOT_ALLOWED"},

		{"text", "POST", "", secretQuery, []string{"Content-Type", "text/plain"}, 415, "UNSUPPORTED_MEDIA_TYPE"},
		{"a form", "POST", "", "query=secret", []string{"Content-Type", "application/x-www-form-urlencoded"}, 415, "UNSUPPORTED_MEDIA_TYPE"},
		{"a form with a file", "POST", "", secretQuery, []string{"Content-Type", "multipart/form-data; boundary=secret"}, 415, "UNSUPPORTED_MEDIA_TYPE"},
		{"GraphQL", "POST", "", "{ secret }", []string{"Content-Type", "application/graphql"}, 415, "UNSUPPORTED_MEDIA_TYPE"},
		{"JSON by another name", "POST", "", secretQuery, []string{"Content-Type", "application/secret+json"}, 415, "UNSUPPORTED_MEDIA_TYPE"},
		{"no type", "POST", "", secretQuery, []string{"Content-Type", ""}, 415, "UNSUPPORTED_MEDIA_TYPE"},
		{"a broken type", "POST", "", secretQuery, []string{"Content-Type", "application/json; secret"}, 415, "UNSUPPORTED_MEDIA_TYPE"},
		{"two types", "POST", "", secretQuery, []string{"Content-Type", "application/json, text/plain"}, 415, "UNSUPPORTED_MEDIA_TYPE"},
		{"UTF-16", "POST", "", secretQuery, []string{"Content-Type", "application/json; charset=utf-16"}, 415, "UNSUPPORTED_MEDIA_TYPE"},
		{"Latin 1", "POST", "", secretQuery, []string{"Content-Type", `application/json; charset="iso-8859-1"`}, 415, "UNSUPPORTED_MEDIA_TYPE"},
		{"gzip", "POST", "", secretQuery, []string{"Content-Encoding", "gzip"}, 415, "UNSUPPORTED_MEDIA_TYPE"},

		{"a body over 128 kB", "POST", "", `{"query": "` + long + `"}`, nil, 413, "BODY_TOO_LARGE"},
		{"10 MB", "POST", "", strings.Repeat("secret", 10<<20/6), nil, 413, "BODY_TOO_LARGE"},
		{"10 MB of blanks", "POST", "", strings.Repeat(" ", 10<<20), nil, 413, "BODY_TOO_LARGE"},
		{"60,000 values", "POST", "", `{"query": "{ secret }", "variables": {"a": [` + strings.Repeat("0,", 60_000) + `0]}}`, nil, 413, "BODY_TOO_LARGE"},
		{"10,000 objects", "POST", "", `{"variables": {"\"": "\\", "a": [` + strings.Repeat("{},", 10_000) + `{}]}}`, nil, 413, "BODY_TOO_LARGE"},
		{"a long URL", "GET", get("{ secret #" + long[:16<<10] + "\n}"), "", nil, 414, "BODY_TOO_LARGE"},

		{"nothing", "POST", "", "", []string{"Content-Type", asJSON}, 400, "BAD_REQUEST"},
		{"blanks", "POST", "", "  \n ", nil, 400, "BAD_REQUEST"},
		{"no JSON", "POST", "", "secret", nil, 400, "BAD_REQUEST"},
		{"half of it", "POST", "", `{"query": "{ secret`, nil, 400, "BAD_REQUEST"},
		{"all but the end", "POST", "", `{"query": "{ secret }"`, nil, 400, "BAD_REQUEST"},
		{"a comma too many", "POST", "", `{"query": "{ secret }",}`, nil, 400, "BAD_REQUEST"},
		{"no colon", "POST", "", `{"query" "{ secret }"}`, nil, 400, "BAD_REQUEST"},
		{"a malformed name", "POST", "", `{5: "secret"}`, nil, 400, "BAD_REQUEST"},
		{"a string", "POST", "", `"secret"`, nil, 400, "BAD_REQUEST"},
		{"null", "POST", "", `null`, nil, 400, "BAD_REQUEST"},
		{"a batch", "POST", "", "[" + secretQuery + "," + secretQuery + "]", nil, 400, "BAD_REQUEST"},
		{"two requests", "POST", "", secretQuery + secretQuery, nil, 400, "BAD_REQUEST"},
		{"something behind it", "POST", "", secretQuery + "\x00", nil, 400, "BAD_REQUEST"},
		{"a byte order mark", "POST", "", "\ufeff" + secretQuery, nil, 400, "BAD_REQUEST"},
		{"invalid UTF-8", "POST", "", "{\"query\": \"{ secret(\xff) }\"}", nil, 400, "BAD_REQUEST"},
		{"UTF-8 that is cut", "POST", "", "{\"query\": \"{ secret }\xe2\x82\"}", nil, 400, "BAD_REQUEST"},
		{"nothing in it", "POST", "", `{}`, nil, 400, "BAD_REQUEST"},
		{"no query", "POST", "", `{"qeury": "{ secret }"}`, nil, 400, "BAD_REQUEST"},
		{"QUERY", "POST", "", `{"QUERY": "{ secret }"}`, nil, 400, "BAD_REQUEST"},
		{"a query of null", "POST", "", `{"query": null}`, nil, 400, "BAD_REQUEST"},
		{"an empty query", "POST", "", `{"query": ""}`, nil, 400, "BAD_REQUEST"},
		{"a number as query", "POST", "", `{"query": 5}`, nil, 400, "BAD_REQUEST"},
		{"a list as query", "POST", "", `{"query": ["secret"]}`, nil, 400, "BAD_REQUEST"},
		{"two queries", "POST", "", `{"query": "{ secret }", "query": "{ secret }"}`, nil, 400, "BAD_REQUEST"},
		{"two sets of variables", "POST", "", `{"query": "{ secret }", "variables": null, "variables": {}}`, nil, 400, "BAD_REQUEST"},
		{"a list of variables", "POST", "", `{"query": "{ secret }", "variables": ["secret"]}`, nil, 400, "BAD_REQUEST"},
		{"variables in a string", "POST", "", `{"query": "{ secret }", "variables": "{\"secret\": 1}"}`, nil, 400, "BAD_REQUEST"},
		{"extensions of no use", "POST", "", `{"query": "{ secret }", "extensions": true}`, nil, 400, "BAD_REQUEST"},
		{"a number as name", "POST", "", `{"query": "{ secret }", "operationName": 1}`, nil, 400, "BAD_REQUEST"},
		{"a number as id", "POST", "", `{"documentId": 1}`, nil, 400, "BAD_REQUEST"},
		{"a number as Relay's id", "POST", "", `{"doc_id": 1}`, nil, 400, "BAD_REQUEST"},
		{"128 kB of [", "POST", "", strings.Repeat("[", 128<<10), nil, 413, "BODY_TOO_LARGE"},
		{"128 kB of objects", "POST", "", strings.Repeat(`{"a":`, 128<<10/5), nil, 413, "BODY_TOO_LARGE"},
		{"9,000 [", "POST", "", strings.Repeat("[", 9_000), nil, 400, "BAD_REQUEST"},
		{"9,000 objects", "POST", "", strings.Repeat(`{"a":`, 9_000), nil, 400, "BAD_REQUEST"},

		{"GET without a query", "GET", "", "", nil, 400, "BAD_REQUEST"},
		{"GET with a blank one", "GET", "?query=", "", nil, 400, "BAD_REQUEST"},
		{"GET with two", "GET", get("{ secret }", "query", "{ secret }"), "", nil, 400, "BAD_REQUEST"},
		{"GET with a bad escape", "GET", "?query=secret%zz", "", nil, 400, "BAD_REQUEST"},
		{"GET with a semicolon", "GET", "?query=secret;b", "", nil, 400, "BAD_REQUEST"},
		{"GET in Latin 1", "GET", "?query=%7Bsecret%E9%7D", "", nil, 400, "BAD_REQUEST"},
		{"GET with malformed variables", "GET", get("{ secret }", "variables", "secret"), "", nil, 400, "BAD_REQUEST"},
		{"GET with a list of variables", "GET", get("{ secret }", "variables", "[1]"), "", nil, 400, "BAD_REQUEST"},
		{"GET with two sets of variables", "GET", get("{ secret }", "variables", "{}{}"), "", nil, 400, "BAD_REQUEST"},
		{"GET with malformed extensions", "GET", get("{ secret }", "extensions", "1"), "", nil, 400, "BAD_REQUEST"},
	} {
		t.Run(c.name, func(t *testing.T) {
			target := c.target
			if !strings.HasPrefix(target, "/") {
				target = server.PathGraphQL + target
			}
			for _, accept := range []string{asJSON, asGraphQL} {
				w := ask(h, c.method, target, c.body, append([]string{"Accept", accept}, c.header...)...)
				got := checkRefusal(t, w, c.status, c.code, accept)
				if strings.Contains(strings.ToLower(w.Body.String()), "secret") {
					t.Errorf("the message repeats the request: %s", got.Errors[0].Message)
				}
				if c.status == 405 && w.Header().Get("Allow") != "GET, HEAD, POST, OPTIONS" {
					t.Errorf("Allow is %q", w.Header().Get("Allow"))
				}
			}
		})
	}
	j.checkEmpty(t)
}

// The limit applies to the bytes that arrive, with any or no declared length.
func TestBodiesOfUnknownLength(t *testing.T) {
	h, _ := handlerWithLimits(t, sampleThrough(t, forward), server.Options{Limits: server.Limits{Body: len(post(aliceQuery))}})
	for body, status := range map[string]int{post(aliceQuery): http.StatusOK, post(aliceQuery) + " ": http.StatusRequestEntityTooLarge, strings.Repeat(" ", 1<<20): http.StatusRequestEntityTooLarge} {
		r := httptest.NewRequest(http.MethodPost, server.PathGraphQL, struct{ io.Reader }{strings.NewReader(body)})
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if r.ContentLength != -1 || w.Code != status {
			t.Errorf("a body of %d bytes with Content-Length %d: status %d, want %d", len(body), r.ContentLength, w.Code, status)
		}
	}
}

// Unknown and null parameters are ignored.
func TestParameters(t *testing.T) {
	h, j := handler(t, sampleThrough(t, forward), slog.LevelInfo)
	const query = `query A($id: ID!) { customer(id: $id) { name } } query B { orders { nodes { id } } }`
	encoded, err := json.Marshal(query)
	if err != nil {
		t.Fatal(err)
	}
	for name, w := range map[string]*httptest.ResponseRecorder{
		"POST":                          ask(h, http.MethodPost, server.PathGraphQL, `{"id": 5, "other": [{}], "extensions": {"a": 1}, "variables": {"id": "cust_01"}, "query": `+string(encoded)+`, "operationName": "A"}`, "Content-Type", "application/json;charset=UTF-8"),
		"GET":                           ask(h, http.MethodGet, get(query, "operationName", "A", "variables", `{"id": "cust_01"}`, "extensions", `{"a": 1}`, "utm", "1", "utm", "2"), ""),
		"nulls":                         ask(h, http.MethodPost, server.PathGraphQL, `{"query": "{ customer(id: \"cust_01\") { name } }", "variables": null, "operationName": null, "extensions": null, "documentId": null}`),
		"GETnull":                       ask(h, http.MethodGet, get(aliceQuery, "operationName", "", "variables", "null", "extensions", ""), ""),
		"escapes":                       ask(h, http.MethodPost, server.PathGraphQL, `{"qu\u0065ry": "{ customer(id: \"cust_01\") { n\u0061me } }"}`),
		"a body that is not compressed": ask(h, http.MethodPost, server.PathGraphQL, post(aliceQuery), "Content-Encoding", "identity"),
	} {
		if w.Code != http.StatusOK || w.Body.String() != aliceAnswer {
			t.Errorf("%s: status %d, body %s", name, w.Code, w.Body)
		}
	}
	j.checkEmpty(t)
}

func TestHeadAndOptions(t *testing.T) {
	h, _ := handler(t, sampleThrough(t, forward), slog.LevelInfo)
	s := httptest.NewServer(h)
	defer s.Close()
	response, err := http.Head(s.URL + get(aliceQuery))
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusOK || response.ContentLength != int64(len(aliceAnswer)) {
		t.Errorf("HEAD: status %d, length %d", response.StatusCode, response.ContentLength)
	}
	if w := ask(h, http.MethodHead, get(`mutation { __typename }`), ""); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("HEAD of a mutation: status %d", w.Code)
	}
	if w := ask(h, http.MethodOptions, server.PathGraphQL, ""); w.Code != http.StatusNoContent || w.Header().Get("Allow") != "GET, HEAD, POST, OPTIONS" || w.Body.Len() > 0 || w.Header().Get("X-Request-Id") == "" {
		t.Errorf("OPTIONS: status %d, header %v", w.Code, w.Header())
	}
}

// A GET that a page of another site could have made a browser send is not executed.
func TestForgedRequestsAreNotExecuted(t *testing.T) {
	const firefox = "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0"
	h, j := handler(t, sampleThrough(t, forward), slog.LevelInfo, origin)
	for _, header := range [][]string{
		{"User-Agent", firefox},
		{"User-Agent", "Opera/9.80 (Windows NT 6.1)"},
		{"User-Agent", firefox, "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "image"},
		{"User-Agent", firefox, "Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "cors", "Sec-Fetch-Dest", "empty"},
		{"User-Agent", firefox, "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"},
		{"User-Agent", "somebody's", "Sec-Fetch-Site", "cross-site"},
		{"User-Agent", "somebody's", "Sec-Fetch-Dest", "script"},
		{"User-Agent", "somebody's", "Origin", "https://evil.example"},
		{"User-Agent", "somebody's", "Origin", "null"},
		{"User-Agent", "somebody's", "Origin", origin}, // its page can send a header
		{"User-Agent", "somebody's", "Referer", "https://evil.example/"},
		{"User-Agent", "somebody's", "Cookie", "a=b"},
		{"User-Agent", firefox, "Authorization", "Basic YTpi"}, // browsers send it by themselves
		{"User-Agent", firefox, "Content-Type", "text/plain"},
		{"User-Agent", firefox, "Content-Type", "application/x-www-form-urlencoded; charset=utf-8"},
		{"User-Agent", firefox, "Content-Type", "multipart/form-data; boundary=x"},
		{"User-Agent", firefox, "Content-Type", "; application/json"},
		{"User-Agent", firefox, "Apollo-Require-Preflight", ""},
		{"User-Agent", firefox, "Accept", "application/json", "Accept-Language", "en"},
	} {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			got := checkRefusal(t, ask(h, method, get(aliceQuery), "", header...), http.StatusForbidden, "CSRF_PREVENTED", asJSON)
			if !strings.Contains(got.Errors[0].Message, "Apollo-Require-Preflight") {
				t.Errorf("%v: the message does not name a header that prevents CSRF: %s", header, got.Errors[0].Message)
			}
		}
	}
	for _, header := range [][]string{
		{}, // no header
		{"User-Agent", "curl/8.5.0", "Accept", "*/*"},
		{"User-Agent", "node", "Accept", "*/*", "Accept-Language", "*", "Sec-Fetch-Mode", "cors", "Accept-Encoding", "gzip, deflate"},
		{"User-Agent", "Go-http-client/1.1", "Authorization", "Basic YTpi"},
		{"User-Agent", firefox, "Sec-Fetch-Site", "same-origin", "Referer", "https://here.example/", "Cookie", "a=b"},
		{"User-Agent", firefox, "Sec-Fetch-Site", "none", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"},
		{"User-Agent", firefox, "Sec-Fetch-Site", "cross-site", "Origin", origin, "Apollo-Require-Preflight", "true"},
		{"User-Agent", firefox, "Origin", origin, "GraphQL-Require-Preflight", "1"},
		{"User-Agent", firefox, "Origin", origin, "X-Apollo-Operation-Name", "Q"},
		{"User-Agent", firefox, "Origin", origin, server.ExplainHeader, "false"},
		{"User-Agent", firefox, "Origin", origin, "Authorization", "Bearer abc"},
		{"User-Agent", firefox, "Origin", origin, "Content-Type", "application/json"},
	} {
		if w := ask(h, http.MethodGet, get(aliceQuery), "", header...); w.Code != http.StatusOK || w.Body.String() != aliceAnswer {
			t.Errorf("%v: status %d, body %s", header, w.Code, w.Body)
		}
	}
	// Pages of a configured origin may send the allowed headers. Other origins may not.
	for _, name := range []string{"accept", "authorization", "content-type", "apollo-require-preflight", "graphql-require-preflight", "x-apollo-operation-name", "x-ordergraph-explain", "apollographql-client-name,apollographql-client-version"} {
		for from, want := range map[string]string{origin: origin, "https://evil.example": ""} {
			w := ask(h, http.MethodOptions, server.PathGraphQL, "", "Origin", from, "Access-Control-Request-Method", "GET", "Access-Control-Request-Headers", name)
			if w.Header().Get("Access-Control-Allow-Origin") != want || (w.Header().Get("Access-Control-Allow-Headers") != "") != (want != "") || w.Header().Get("X-Request-Id") == "" {
				t.Errorf("preflight from %s for %s: %v", from, name, w.Header())
			}
		}
	}
	j.checkEmpty(t)
}

// The size of a compressed response reveals less of its content, because random bytes are added.
func TestCompressedSizesAreBlurred(t *testing.T) {
	h, _ := handler(t, sampleThrough(t, forward), slog.LevelInfo)
	padded := map[int]bool{}
	for i := range 30 {
		w := ask(h, http.MethodPost, server.PathGraphQL, post(fmt.Sprintf(`{ customer(id: "cust_01") { a%02d: name %s } }`, i, longSelection("id", 2))), "Accept-Encoding", "gzip")
		z, err := gzip.NewReader(w.Body)
		if err != nil {
			t.Fatal(err)
		}
		padded[len(z.Comment)] = true
	}
	if len(padded) < 10 {
		t.Errorf("the padding of 30 responses has too few different lengths: %v", padded)
	}
}

// HEAD has no Content-Length that differs from GET's.
func TestLengthsOfCompressedAnswers(t *testing.T) {
	h, _ := handler(t, sampleThrough(t, forward), slog.LevelInfo)
	l := httptest.NewServer(h)
	t.Cleanup(l.Close)
	client := &http.Client{Transport: &http.Transport{DisableCompression: true}}
	for _, query := range []string{aliceQuery, `{ customer(id: "cust_01") { ` + longSelection("id", 2) + `} }`, `{ customer(id: "cust_01") { ` + longSelection("id", 12) + `} }`} {
		for _, accepts := range []string{"", "gzip"} {
			responses := map[string]*http.Response{}
			for _, method := range []string{http.MethodGet, http.MethodHead} {
				r, err := http.NewRequestWithContext(t.Context(), method, l.URL+server.PathGraphQL+"?"+url.Values{"query": {query}}.Encode(), nil)
				if err != nil {
					t.Fatal(err)
				}
				r.Header.Set("Apollo-Require-Preflight", "1")
				if accepts != "" {
					r.Header.Set("Accept-Encoding", accepts)
				}
				response, err := client.Do(r)
				if err != nil {
					t.Fatal(err)
				}
				body, err := io.ReadAll(response.Body)
				response.Body.Close()
				if err != nil || method == http.MethodGet && response.ContentLength >= 0 && response.ContentLength != int64(len(body)) {
					t.Errorf("%s: Content-Length is %d, but the body has %d bytes, %v", method, response.ContentLength, len(body), err)
				}
				responses[method] = response
			}
			a, b := responses[http.MethodGet], responses[http.MethodHead]
			if b.ContentLength >= 0 && a.ContentLength != b.ContentLength || a.StatusCode != b.StatusCode || a.Header.Get("Content-Type") != b.Header.Get("Content-Type") || fmt.Sprint(a.Header["Vary"]) != fmt.Sprint(b.Header["Vary"]) {
				t.Errorf("Accept-Encoding %q: GET has the length %d and header %v, HEAD %d and %v", accepts, a.ContentLength, a.Header, b.ContentLength, b.Header)
			}
		}
	}
}

// Large responses are compressed for clients that accept gzip.
func TestCompression(t *testing.T) {
	h, j := handler(t, sampleThrough(t, forward), slog.LevelInfo)
	const large = `{ __schema { types { name description fields { name description } } } }`
	plain := ask(h, http.MethodPost, server.PathGraphQL, post(large))
	if plain.Body.Len() < 10_000 || plain.Header().Get("Content-Encoding") != "" {
		t.Fatalf("%d bytes, header %v", plain.Body.Len(), plain.Header())
	}
	for accept, want := range map[string]string{"gzip": "gzip", "gzip, deflate, br, zstd": "gzip", "br;q=1.0, gzip;q=0.8, *;q=0.1": "gzip", "": "", "identity": "", "gzip;q=0": "", "zstd": ""} {
		for name, w := range map[string]*httptest.ResponseRecorder{
			"POST": ask(h, http.MethodPost, server.PathGraphQL, post(large), "Accept-Encoding", accept),
			"GET":  ask(h, http.MethodGet, get(large), "", "Accept-Encoding", accept),
		} {
			if got := w.Header().Get("Content-Encoding"); got != want || w.Code != http.StatusOK || w.Header().Get("Content-Type") != asJSON+"; charset=utf-8" {
				t.Errorf("%s, Accept-Encoding %q: status %d, header %v, want %q", name, accept, w.Code, w.Header(), want)
			}
			if vary := strings.Join(w.Header().Values("Vary"), ","); !strings.Contains(vary, "Accept-Encoding") {
				t.Errorf("Vary is %q", vary)
			}
			text := w.Body.Bytes()
			if want == "gzip" {
				if len(text) > plain.Body.Len()/3 {
					t.Errorf("the compressed response has %d of %d bytes, want at most a third", len(text), plain.Body.Len())
				}
				text = gunzip(t, text)
			}
			if !bytes.Equal(text, plain.Body.Bytes()) {
				t.Errorf("%s, Accept-Encoding %q: the response differs from the uncompressed response", name, accept)
			}
		}
	}
	if w := ask(h, http.MethodPost, server.PathGraphQL, post(aliceQuery), "Accept-Encoding", "gzip"); w.Header().Get("Content-Encoding") != "" || w.Body.String() != aliceAnswer {
		t.Errorf("a short response: header %v, body %q", w.Header(), w.Body)
	}
	// GraphiQL's pages are stored compressed, so they are not compressed again.
	if w := ask(h, http.MethodGet, "/", "", "Accept-Encoding", "gzip"); w.Header().Get("Content-Encoding") != "gzip" || !bytes.Contains(gunzip(t, w.Body.Bytes()), []byte("<html")) || len(w.Header().Values("Vary")) != 1 {
		t.Errorf("GraphiQL: status %d, header %v", w.Code, w.Header())
	}
	j.checkEmpty(t)
}

func gunzip(t testing.TB, text []byte) []byte {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return plain
}
