// Package lambda serves an HTTP handler in AWS Lambda. Clients send HTTP requests to an API Gateway
// or a function URL. For each request, Lambda sends an event to the process. The package imports no
// other package of the module.
//
// The package uses the library aws-lambda-go for Lambda's protocol and event types. It converts
// events to HTTP requests itself, because existing adapters for net/http are unmaintained or
// support only streamed responses.
package lambda

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
)

const (
	// MaxDataBytes is the maximum length in bytes of "data" in a GraphQL response. Base64 encoding
	// makes the data a third longer. The rest of maxResponse is for errors and the explain output.
	MaxDataBytes = 4 << 20
	// maxResponse is the maximum length in bytes of a response that Lambda accepts
	// (https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html).
	maxResponse = 6 << 20
	// maxPlainBody is the maximum length in bytes of a response body that is sent as a JSON string.
	// Longer bodies are sent in base64, because JSON escapes can lengthen a body more than base64
	// does.
	maxPlainBody = 1 << 20
	// responseMargin is the time reserved for returning the response. The context of an HTTP request
	// ends responseMargin before the deadline of the Lambda invocation.
	responseMargin = 250 * time.Millisecond
)

// Serve serves h in AWS Lambda. Before each response, Serve calls flush, because Lambda freezes the
// process afterwards. If Lambda's runtime API fails, Serve ends the process.
func Serve(ctx context.Context, h http.Handler, flush func(context.Context)) {
	lambda.StartWithOptions(invoker{h, flush}, lambda.WithContext(ctx))
}

// invoker implements the interface lambda.Handler of the library aws-lambda-go.
type invoker struct {
	handler http.Handler
	flush   func(context.Context)
}

// Invoke handles one event. If the event is not an HTTP request, Invoke returns an error. It also
// returns an error if the handler aborts the response, or if the response exceeds maxResponse.
// After an error, the client receives the status 502.
func (i invoker) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline.Add(-responseMargin))
		defer cancel()
	}
	defer func() { i.flush(ctx) }()
	r, toEvent, err := newRequest(payload)
	if err != nil {
		return nil, err
	}
	// Lambda does not support WebSockets. Without the header Upgrade, the handler does not try to open
	// one.
	r.Header.Del("Upgrade")
	w := &responseWriter{header: http.Header{}}
	if err := callHandler(i.handler, w, r.WithContext(ctx)); err != nil {
		return nil, err
	}
	// API Gateway sets these headers itself.
	w.header.Del("Content-Length")
	w.header.Del("Connection")
	if r.Method == http.MethodHead {
		w.body.Reset()
	}
	encoded, err := json.Marshal(toEvent(w))
	if err == nil && len(encoded) > maxResponse {
		return nil, fmt.Errorf("the response has %d bytes, but Lambda accepts at most %d: lower ORDERGRAPH_MAX_ANSWER", len(encoded), maxResponse)
	}
	return encoded, err
}

// callHandler calls a handler. If the handler panics with http.ErrAbortHandler to abort the
// response, callHandler returns this error.
func callHandler(h http.Handler, w http.ResponseWriter, r *http.Request) (err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			aborted, ok := panicked.(error)
			if !ok || !errors.Is(aborted, http.ErrAbortHandler) {
				panic(panicked)
			}
			err = aborted
		}
	}()
	h.ServeHTTP(w, r)
	return nil
}

// newRequest converts an event to an HTTP request. toEvent converts the response to an event of the
// same format version
// (https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html).
func newRequest(payload []byte) (r *http.Request, toEvent func(*responseWriter) any, err error) {
	var format struct {
		Version string `json:"version"`
	}
	if err := json.Unmarshal(payload, &format); err != nil {
		return nil, nil, fmt.Errorf("read the event: %w", err)
	}
	// HTTP APIs and function URLs use version 2.0, and REST APIs use version 1.0.
	if format.Version == "2.0" {
		r, err = newRequestV2(payload)
		return r, (*responseWriter).eventV2, err
	}
	r, err = newRequestV1(payload)
	return r, (*responseWriter).eventV1, err
}

func newRequestV2(payload []byte) (*http.Request, error) {
	var e events.APIGatewayV2HTTPRequest
	if err := json.Unmarshal(payload, &e); err != nil {
		return nil, fmt.Errorf("read the event: %w", err)
	}
	header := http.Header{}
	for name, value := range e.Headers {
		header.Set(name, value)
	}
	if len(e.Cookies) > 0 {
		header.Set("Cookie", strings.Join(e.Cookies, "; "))
	}
	// In events of an HTTP API, the path begins with the name of the API's stage. The handler expects
	// the path without this name.
	path := e.RawPath
	if stage := e.RequestContext.Stage; stage != "" && stage != "$default" {
		path = strings.TrimPrefix(path, "/"+stage)
	}
	about := e.RequestContext.HTTP
	return buildRequest(about.Method, path, e.RawQueryString, about.SourceIP, e.RequestContext.DomainName, header, e.Body, e.IsBase64Encoded)
}

func newRequestV1(payload []byte) (*http.Request, error) {
	var e events.APIGatewayProxyRequest
	if err := json.Unmarshal(payload, &e); err != nil {
		return nil, fmt.Errorf("read the event: %w", err)
	}
	header := http.Header{}
	for name, value := range e.Headers {
		header.Set(name, value)
	}
	for name, values := range e.MultiValueHeaders {
		header[http.CanonicalHeaderKey(name)] = values
	}
	// Delete this header, so that the handler does not compress the response. A compressed response
	// must be sent in base64. A REST API decodes base64 only for the media types in its settings.
	header.Del("Accept-Encoding")
	// If a REST API has a custom domain, e.Path begins with the base path of the domain. So use the
	// path parameter "proxy" if it exists, because it does not contain the base path.
	path := (&url.URL{Path: e.Path}).EscapedPath()
	if proxy, ok := e.PathParameters["proxy"]; ok && e.Resource == "/{proxy+}" {
		path = "/" + proxy
	}
	query := url.Values(e.MultiValueQueryStringParameters)
	if query == nil {
		query = url.Values{}
		for name, value := range e.QueryStringParameters {
			query.Set(name, value)
		}
	}
	return buildRequest(e.HTTPMethod, path, query.Encode(), e.RequestContext.Identity.SourceIP, e.RequestContext.DomainName, header, e.Body, e.IsBase64Encoded)
}

// buildRequest returns the HTTP request of an event. sourceIP is the client's IP address, as the
// gateway has determined it. Clients cannot forge this address, in contrast to the header
// X-Forwarded-For.
func buildRequest(method, path, query, sourceIP, domain string, header http.Header, body string, isBase64 bool) (*http.Request, error) {
	if method == "" || sourceIP == "" {
		return nil, errors.New("the event is not an HTTP request of an API Gateway or a function URL: invoke the function through one of them")
	}
	content := []byte(body)
	if isBase64 {
		decoded, err := base64.StdEncoding.DecodeString(body)
		if err != nil {
			return nil, fmt.Errorf("decode the body of the event: %w", err)
		}
		content = decoded
	}
	requestURI := path
	if query != "" {
		requestURI += "?" + query
	}
	u, err := url.ParseRequestURI(requestURI)
	if err != nil {
		return nil, fmt.Errorf("read the URL of the event: %w", err)
	}
	host := header.Get("Host")
	if host == "" {
		host = domain
	}
	header.Del("Host")
	return &http.Request{
		Method: method, URL: u, RequestURI: requestURI, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Host: host, RemoteAddr: net.JoinHostPort(sourceIP, "0"),
		Body: io.NopCloser(bytes.NewReader(content)), ContentLength: int64(len(content)),
	}, nil
}

// responseWriter records the response of a handler.
type responseWriter struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header returns the headers of the response.
func (w *responseWriter) Header() http.Header { return w.header }

// WriteHeader records the status of the response. It ignores informational statuses, such as 103.
func (w *responseWriter) WriteHeader(status int) {
	if w.status == 0 && status >= http.StatusOK {
		w.status = status
	}
}

// Write appends b to the recorded response body.
func (w *responseWriter) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(b)
}

// Flush does nothing, because Lambda returns only complete responses.
func (w *responseWriter) Flush() {}

// encodedBody returns the response body, either as text or in base64.
func (w *responseWriter) encodedBody() (body string, isBase64 bool) {
	b := w.body.Bytes()
	if w.header.Get("Content-Encoding") == "" && len(b) <= maxPlainBody && utf8.Valid(b) {
		return string(b), false
	}
	return base64.StdEncoding.EncodeToString(b), true
}

// sentStatus returns the recorded status. If the handler has set no status, it returns 200.
func (w *responseWriter) sentStatus() int {
	if w.status == 0 {
		return http.StatusOK
	}
	return w.status
}

func (w *responseWriter) eventV2() any {
	e := events.APIGatewayV2HTTPResponse{StatusCode: w.sentStatus(), Headers: map[string]string{}}
	for name, values := range w.header {
		e.Headers[name] = strings.Join(values, ", ")
	}
	e.Body, e.IsBase64Encoded = w.encodedBody()
	return e
}

func (w *responseWriter) eventV1() any {
	e := events.APIGatewayProxyResponse{StatusCode: w.sentStatus(), MultiValueHeaders: w.header}
	e.Body, e.IsBase64Encoded = w.encodedBody()
	return e
}
