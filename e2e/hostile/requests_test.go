package hostile_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// chunkedBody hides the length of a body, so that it is sent in chunks.
type chunkedBody struct{ io.Reader }

// repeatedByte returns a body of n equal bytes.
func repeatedByte(b byte, n int) io.Reader { return bytes.NewReader(bytes.Repeat([]byte{b}, n)) }

// malformedRequests sends malformed GraphQL requests and unusual HTTP requests.
func malformedRequests(t *testing.T, binary string) {
	v := newVictim(t, binary)
	run := func(name string, a attack) {
		t.Run(name, func(t *testing.T) { v.check(t, a) })
	}
	const large = 10 << 20
	for name, fill := range map[string]byte{"spaces": ' ', "line breaks": '\n', "letters": 'a', "NUL": 0, "open lists": '[', "quotes": '"', "digits": '1'} {
		run("10 MB of "+name, attack{body: repeatedByte(fill, large), wantStatus: http.StatusRequestEntityTooLarge, wantCode: "BODY_TOO_LARGE"})
		run("10 MB of "+name+" in chunks", attack{body: chunkedBody{repeatedByte(fill, large)}, wantStatus: http.StatusRequestEntityTooLarge, wantCode: "BODY_TOO_LARGE"})
		run("100 kB of "+name, attack{body: repeatedByte(fill, 100_000)})
	}
	run("a NUL in an id", attack{body: queryBody("query ($i: ID!) { customer(id: $i) { name } }", map[string]any{"i": "\x00"}), maySucceed: true})
	run("10 MB behind a query", attack{body: io.MultiReader(strings.NewReader(honestQuery), repeatedByte(' ', large)), wantStatus: http.StatusRequestEntityTooLarge})
	run("10 MB of query", attack{body: queryBody(strings.Repeat(" ", large)+"{ __typename }", nil), wantStatus: http.StatusRequestEntityTooLarge})
	for name, body := range map[string]string{
		"nothing":                    "",
		"blanks":                     "  \n ",
		"null":                       "null",
		"a number":                   "1",
		"a text":                     `"{ __typename }"`,
		"a batch":                    "[" + honestQuery + "," + honestQuery + "]",
		"an empty batch":             "[]",
		"two requests":               honestQuery + honestQuery,
		"something behind":           honestQuery + "x",
		"half of it":                 honestQuery[:len(honestQuery)/2],
		"invalid UTF-8":              "{\"query\":\"{ customer(id: \\\"\xff\xfe\\\") { name } }\"}",
		"overlong UTF-8":             "{\"query\":\"{ customer(id: \\\"\xc0\xaf\\\") { name } }\"}",
		"UTF-16":                     "\xff\xfe{\x00\"\x00q\x00",
		"a NUL":                      "{\"query\":\"{ __typename }\x00\"}",
		"a number as query":          `{"query":1}`,
		"a list as query":            `{"query":["{ __typename }"]}`,
		"a text as variables":        `{"query":"{ __typename }","variables":"{}"}`,
		"a list as variables":        `{"query":"{ __typename }","variables":[]}`,
		"a text as extensions":       `{"query":"{ __typename }","extensions":"x"}`,
		"a number as operationName":  `{"query":"{ __typename }","operationName":1}`,
		"a malformed hash":           `{"extensions":{"persistedQuery":{"version":1,"sha256Hash":5}}}`,
		"a hash of another version":  `{"extensions":{"persistedQuery":{"version":9,"sha256Hash":"x"}}}`,
		"a hash of another text":     `{"query":"{ __typename }","extensions":{"persistedQuery":{"version":1,"sha256Hash":"` + strings.Repeat("0", 64) + `"}}}`,
		"a persisted query as text":  `{"extensions":{"persistedQuery":"x"}}`,
		"an unknown document":        `{"documentId":"sha256:` + strings.Repeat("0", 64) + `"}`,
		"no operation of that name":  `{"query":"query A { __typename }","operationName":"B"}`,
		"a subscription":             `{"query":"subscription { orderUpdated { id } }"}`,
		"types":                      `{"query":"type A { b: Int }"}`,
		"an escaped NUL in the text": `{"query":"{ __type` + `\u0000` + `name }"}`,
		"a number in quotes":         `{"query":"query ($n: Int) { orders(first: $n) { nodes { id } } }","variables":{"n":"1"}}`,
		"a fraction":                 `{"query":"query ($n: Int) { orders(first: $n) { nodes { id } } }","variables":{"n":1.5}}`,
		"a number out of range":      `{"query":"query ($n: Int) { orders(first: $n) { nodes { id } } }","variables":{"n":3000000000}}`,
	} {
		run(name, attack{body: strings.NewReader(body)})
	}
	for _, kind := range []string{"", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/graphql", "text/html",
		"application/xml", "application/jsonp", "application/json; charset=utf-16", "application/json; charset=iso-8859-1", "json", ";", strings.Repeat("a/", 1000)} {
		run("the type "+kind, attack{header: http.Header{"Content-Type": {kind}}, body: strings.NewReader(honestQuery), wantStatus: http.StatusUnsupportedMediaType, wantCode: "UNSUPPORTED_MEDIA_TYPE"})
	}
	run("no type", attack{header: http.Header{"Content-Type": nil}, body: strings.NewReader(honestQuery), wantStatus: http.StatusUnsupportedMediaType})
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	if _, err := io.Copy(z, repeatedByte(' ', 50<<20)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	for _, coding := range []string{"gzip", "deflate", "br", "nonsense"} {
		run("a body in "+coding, attack{header: http.Header{"Content-Encoding": {coding}}, body: bytes.NewReader(bomb.Bytes()), wantStatus: http.StatusUnsupportedMediaType})
	}
	run("a type that nobody has", attack{header: http.Header{"Accept": {"text/html"}}, body: strings.NewReader(honestQuery), wantStatus: http.StatusNotAcceptable})
	run("10,000 types", attack{header: http.Header{"Accept": {strings.Repeat("a/b;q=0.1,", 3_000) + "application/json"}}, body: strings.NewReader(honestQuery), maySucceed: true})
	run("1 MB of headers", attack{header: http.Header{"X-Large": {strings.Repeat("a", 1<<20)}}, body: strings.NewReader(honestQuery), wantStatus: http.StatusRequestHeaderFieldsTooLarge})
	run("100,000 headers", attack{header: manyHeaders(100_000), body: strings.NewReader(honestQuery), wantStatus: http.StatusRequestHeaderFieldsTooLarge})
	for _, method := range []string{http.MethodPut, http.MethodDelete, http.MethodPatch, http.MethodTrace, "BREW"} {
		run("the method "+method, attack{method: method, body: strings.NewReader(honestQuery), wantStatus: http.StatusMethodNotAllowed, wantCode: "METHOD_NOT_ALLOWED"})
	}
	for name, target := range map[string]string{
		"nothing":                "",
		"a mutation":             queryParameter(`mutation { createWarehouse(input: {id: "w", name: "n"}) { userErrors { code } } }`),
		"a subscription":         queryParameter("subscription { orderUpdated { id } }"),
		"invalid UTF-8":          "?query=%7B__typename%7D%ff",
		"a NUL":                  "?query=%7B__typename%7D%00",
		"half an escape":         "?query=%7B__typename%7D%",
		"variables that are not": queryParameter("{ __typename }") + "&variables=%5B",
		"variables as a list":    queryParameter("{ __typename }") + "&variables=[]",
		"extensions as a text":   queryParameter("{ __typename }") + "&extensions=%22x%22",
		"20 kB":                  queryParameter("{ __typename } #" + strings.Repeat("x", 20_000) + "\n x"),
		"200 kB":                 queryParameter("{ __typename } #" + strings.Repeat("x", 200_000)),
		"semicolons":             "?query={__typename};x=1",
	} {
		run("GET of "+name, attack{method: http.MethodGet, target: target, header: http.Header{"Content-Type": nil}})
	}
	for name, header := range map[string]http.Header{
		"an origin":           {"Origin": {"https://elsewhere.example"}},
		"a foreign page":      {"Sec-Fetch-Site": {"cross-site"}, "Sec-Fetch-Mode": {"no-cors"}},
		"an image":            {"Sec-Fetch-Dest": {"image"}},
		"a referer":           {"Referer": {"https://elsewhere.example/"}},
		"a browser":           {"User-Agent": {"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 Safari/537.36"}},
		"a cookie":            {"Cookie": {"session=1"}},
		"a simple type":       {"Content-Type": {"text/plain"}, "Origin": {"https://elsewhere.example"}},
		"an origin of a file": {"Origin": {"null"}},
	} {
		if header["Content-Type"] == nil {
			header["Content-Type"] = nil
		}
		run("GET from "+name, attack{method: http.MethodGet, target: queryParameter(`{ customer(id: "cust_01") { name } }`), header: header, wantCode: "CSRF_PREVENTED"})
	}
	for name, header := range map[string]http.Header{
		"a form":          {"Content-Type": {"application/x-www-form-urlencoded"}, "Origin": {"https://elsewhere.example"}},
		"a text":          {"Content-Type": {"text/plain;charset=UTF-8"}, "Origin": {"https://elsewhere.example"}},
		"a type in doubt": {"Content-Type": {"text/plain", "application/json"}, "Origin": {"https://elsewhere.example"}},
		"a beacon":        {"Content-Type": nil, "Origin": {"https://elsewhere.example"}},
	} {
		run("POST from "+name, attack{header: header, body: strings.NewReader(honestQuery), wantStatus: http.StatusUnsupportedMediaType})
	}
}

// manyHeaders returns n headers.
func manyHeaders(n int) http.Header {
	h := http.Header{}
	for i := range n {
		h[fmt.Sprintf("X-%d", i)] = []string{"1"}
	}
	return h
}
