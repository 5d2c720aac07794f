package server

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/ordergraph/ordergraph/access"
	"github.com/ordergraph/ordergraph/graph"
	"github.com/ordergraph/ordergraph/graph/errcode"
	"github.com/ordergraph/ordergraph/internal/admission"
	"github.com/ordergraph/ordergraph/internal/httpheader"
	"github.com/ordergraph/ordergraph/internal/lifecycle"
	"github.com/ordergraph/ordergraph/internal/telemetry"
)

// httpHandler serves GraphQL over HTTP (https://graphql.github.io/graphql-over-http/draft/).
type httpHandler struct {
	executor *graph.Executor
	limits   Limits
	pools    *admission.Controller
	// weights maps a role to a factor that multiplies the pool shares of callers with this role.
	weights        map[access.Role]int
	shedding       *sheddingLog
	authentication authentication
	// compress is middleware that compresses the response for clients that accept gzip.
	compress func(http.Handler) http.HandlerFunc
}

// allowedMethods are the HTTP methods in the Allow header of responses.
const allowedMethods = "GET, HEAD, POST, OPTIONS"

// ServeHTTP responds to one request.
func (h httpHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header["X-Content-Type-Options"] = nosniff
	// Caches must not store responses, because orders and stock can change at any time. A response
	// also depends on request headers such as Authorization.
	header["Cache-Control"] = noStore
	header.Add("Vary", "Accept")
	if r.Method == http.MethodOptions {
		header.Add("Vary", "Accept-Encoding")
		header.Set("Allow", allowedMethods)
		w.WriteHeader(http.StatusNoContent)
		return
	}
	contentType, acceptable := negotiateMediaType(r.Header.Values("Accept"))
	if contentType == typeEventStream {
		if r.Method != http.MethodHead {
			h.serveEventStream(w, r)
			return
		}
		contentType = typeJSON // HEAD has no body to stream
	}
	ctx, result, refused := h.readAndExecute(w, r, acceptable)
	delayRefusal(ctx, nil, result)
	setWriteDeadline(w, h.limits.AnswerTime)
	if refused != nil {
		h.writeCompressibleRefusal(w, r, refused, contentType)
		return
	}
	code := httpStatus(result, contentType)
	setStatusHeaders(header, result, code)
	body := newResponseBody(result)
	if full := h.acquire(ctx, admission.PoolResponses, body.memoryBytes()); full != nil {
		if !result.Mutation {
			h.writeCompressibleRefusal(w, r, full, contentType)
			return
		}
		body = newResponseBody(mutationResponseDropped()) // too short to count against the pool
	}
	defer h.releaseCapacity(ctx, admission.PoolResponses, body.memoryBytes())
	h.writeCompressed(w, r, contentType, code, body)
}

// setWriteDeadline makes the server close the connection if the client does not read the response
// within the duration d.
func setWriteDeadline(w http.ResponseWriter, d time.Duration) {
	// The error is ignored: the ResponseWriter of a test has no connection, and therefore supports no
	// deadlines.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(d))
}

// nosniff and noStore are header values that all responses share, so they must not be modified.
var nosniff, noStore = []string{"nosniff"}, []string{"no-store"}

// writeCompressed writes a response. If the client accepts gzip, writeCompressed compresses
// responses of at least minCompressedSize bytes.
func (h httpHandler) writeCompressed(w http.ResponseWriter, r *http.Request, t mediaType, status int, body responseBody) {
	if body.size() < minCompressedSize || r.Header["Accept-Encoding"] == nil {
		w.Header().Add("Vary", "Accept-Encoding")
		writeResponse(w, t, status, body)
		return
	}
	if r.Method == http.MethodHead {
		// The Content-Length of a response to HEAD must be the same as for GET. The response to GET would
		// be compressed, and its compressed length is not known here. Content-Length is therefore
		// omitted. See https://www.rfc-editor.org/rfc/rfc9110#section-8.6.
		w.Header().Add("Vary", "Accept-Encoding")
		w.Header()["Content-Type"] = contentTypeHeader(t)
		w.WriteHeader(status)
		return
	}
	h.compress(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { writeResponse(w, t, status, body) }))(w, r) // compress also sets the Vary header
}

// writeCompressibleRefusal writes a refusal without compression, because refusals are short. It
// still sets the Vary header, because other responses of the same URL may be compressed.
func (h httpHandler) writeCompressibleRefusal(w http.ResponseWriter, r *http.Request, refused *refusal, contentType mediaType) {
	w.Header().Add("Vary", "Accept-Encoding")
	h.writeRefusal(w, r, refused, contentType)
}

// setStatusHeaders sets the response header that an HTTP status requires, for example Retry-After
// for status 429.
func setStatusHeaders(header http.Header, result graph.Result, status int) {
	switch status {
	case http.StatusMethodNotAllowed:
		header.Set("Allow", http.MethodPost)
	case http.StatusUnauthorized:
		header.Set(challengeHeader, bearerChallenge)
	case http.StatusTooManyRequests:
		header.Set("Retry-After", strconv.FormatFloat(math.Ceil(result.RetryAfter.Seconds()), 'f', -1, 64))
	case http.StatusServiceUnavailable:
		header.Set("Retry-After", retryAfterSeconds)
	}
}

// writeRefusal writes the response to a refused request. If a pool has refused the request,
// writeRefusal logs the refusal. It does not log other refusals, because clients could fill the log
// with invalid requests.
func (h httpHandler) writeRefusal(w http.ResponseWriter, r *http.Request, refused *refusal, contentType mediaType) {
	h.recordRefusal(r.Context(), refused)
	delayRefusal(r.Context(), refused, graph.Result{})
	refused.write(w, contentType)
}

// recordRefusal records a refused request in telemetry. If a pool has refused the request, it also
// logs the refusal.
func (h httpHandler) recordRefusal(ctx context.Context, refused *refusal) {
	h.shedding.record(ctx, refused)
	telemetry.RequestFromContext(ctx).Fail(refused.code, refused.pool)
}

// mutationResponseDropped replaces the response to a mutation if admission.PoolResponses has no
// capacity. The client must not send the mutation again, because the mutation has already been
// executed.
func mutationResponseDropped() graph.Result {
	return graph.Result{Response: &graphql.Response{Errors: gqlerror.List{{Message: "the mutation was executed, but the server has no capacity for its response: query the changed records, and do not send the mutation again", Extensions: map[string]any{"code": errcode.Overloaded}}}}}
}

// readAndExecute reads a request and executes its operation. The returned context contains the
// authenticated caller.
func (h httpHandler) readAndExecute(w http.ResponseWriter, r *http.Request, acceptable bool) (context.Context, graph.Result, *refusal) {
	withPrincipal, arrived, refused := h.readRequest(w, r, acceptable)
	if refused != nil {
		return r.Context(), graph.Result{}, refused
	}
	ctx := withExplain(withPrincipal.Context(), withPrincipal.Header)
	result, refused := h.execute(ctx, arrived, h.executor.Execute)
	return ctx, result, refused
}

// readRequest authenticates a request, reads its body, and charges the caller's rate limit. The
// returned body is not decoded yet. acceptable reports whether the client accepts a supported media
// type.
func (h httpHandler) readRequest(w http.ResponseWriter, r *http.Request, acceptable bool) (*http.Request, receivedRequest, *refusal) {
	r, body, paid, refused := h.receive(w, r, acceptable, checkContentHeaders)
	if refused != nil {
		return nil, receivedRequest{}, refused
	}
	return r, receivedRequest{bodySize: len(body), decode: func() (request graph.Request, refused *refusal) {
		if r.Method == http.MethodPost {
			request, refused = decodeBody(body)
		} else {
			request, refused = decodeURL(r)
		}
		request.ChargedPoints = paid
		return request, refused
	}}, nil
}

// receive authenticates a request, reads its body, and charges the caller's rate limit. The result paid is
// the number of points. The function checkContent checks the headers of a request with a body.
func (h httpHandler) receive(w http.ResponseWriter, r *http.Request, acceptable bool, checkContent func(http.Header) *refusal) (authenticated *http.Request, body []byte, paid int, _ *refusal) {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost:
	default:
		refused := newRefusal(http.StatusMethodNotAllowed, errcode.MethodNotAllowed, "the method is not supported: use POST, or GET for queries")
		refused.allow = allowedMethods
		return nil, nil, 0, refused
	}
	if !acceptable {
		return nil, nil, 0, newRefusal(http.StatusNotAcceptable, errcode.NotAcceptable, "the Accept header contains no supported media type: accept %s or %s", typeGraphQL, typeJSON)
	}
	r, refused := h.authenticate(r)
	if refused != nil {
		return nil, nil, 0, refused
	}
	body, refused = h.receiveBody(w, r, checkContent)
	paid, limited := h.charge(r, len(body)+len(r.URL.RawQuery))
	if limited != nil {
		refused = limited
	}
	return r, body, paid, refused
}

// charge takes the points for a request of the given size from the caller's balance.
func (h httpHandler) charge(r *http.Request, bytes int) (paid int, refused *refusal) {
	lifecycle.MarkCharged(r.Context())
	paid, limited := h.executor.Charge(r.Context(), bytes)
	if limited != nil {
		return 0, rateLimited(limited)
	}
	return paid, nil
}

// receiveBody reads the body of a POST request, and checks other requests for CSRF. If receiveBody
// refuses a POST request, it also returns the bytes that it has read, because they count against
// the rate limit.
func (h httpHandler) receiveBody(w http.ResponseWriter, r *http.Request, checkContent func(http.Header) *refusal) (body []byte, refused *refusal) {
	// A POST with JSON needs no CSRF check, because a browser sends a CORS preflight first. For other
	// types, checkContent checks this.
	if r.Method == http.MethodPost {
		if refused := checkContent(r.Header); refused != nil {
			return nil, refused
		}
		return h.readBody(w, r)
	}
	if httpheader.PossibleCSRF(r.Header, preflightHeaders) {
		return nil, csrfPrevented("use POST")
	}
	return nil, nil
}

// csrfPrevented refuses a request that a page of another site could have sent. instead is an instruction for the client.
func csrfPrevented(instead string) *refusal {
	return newRefusal(http.StatusForbidden, errcode.CSRFPrevented, "the request could have been sent by a page of another site: %s, or add the header %s with any value", instead, preflightHeaders[0])
}

// execute decodes and executes a request. If admission.PoolRequests has no free slot, execute
// refuses the request immediately. A queue would only increase the response times of a server that
// is already slow.
func (h httpHandler) execute(ctx context.Context, a receivedRequest, execute func(context.Context, graph.Request) graph.Result) (graph.Result, *refusal) {
	if full := h.acquire(ctx, admission.PoolRequests, 1); full != nil {
		return graph.Result{}, full
	}
	defer h.releaseCapacity(ctx, admission.PoolRequests, 1)
	ctx, cancel := context.WithTimeout(ctx, h.limits.RequestTime)
	defer cancel()
	request, refusal := h.decode(ctx, a)
	if refusal != nil {
		return graph.Result{}, refusal
	}
	result := execute(ctx, request)
	if result.Refusal != nil {
		return graph.Result{}, poolRefusal(result.Refusal)
	}
	return result, nil
}

// receivedRequest is a request whose body has been received but not decoded.
type receivedRequest struct {
	decode func() (graph.Request, *refusal)
	// bodySize is the length of the body in bytes.
	bodySize int
}

// decode decodes a received request. If the body exceeds maxUncountedBody, decode first waits for a
// slot of admission.PoolParsing. The pool limits how many long bodies are parsed concurrently.
func (h httpHandler) decode(ctx context.Context, a receivedRequest) (graph.Request, *refusal) {
	if a.bodySize <= maxUncountedBody {
		return a.decode()
	}
	caller, pool := admission.CallerFromContext(ctx), h.pools[admission.PoolParsing]
	if pool.Acquire(ctx, caller, 1) != nil {
		return graph.Request{}, newRefusal(http.StatusServiceUnavailable, errcode.TimedOut, "the server is busy and has not decoded the request within %s: try again in a moment", h.limits.RequestTime)
	}
	defer pool.Release(caller, 1)
	return a.decode()
}

// withExplain checks the request header ExplainHeader. If its value is true, the returned context
// makes the executor add extensions.explain to the response. Otherwise, withExplain returns ctx
// unchanged.
func withExplain(ctx context.Context, header http.Header) context.Context {
	if on, err := strconv.ParseBool(header.Get(ExplainHeader)); err == nil && on {
		return graph.WithExplain(ctx)
	}
	return ctx
}

// httpStatus returns the HTTP status of a response with the given result and media type.
func httpStatus(result graph.Result, t mediaType) int {
	switch result.Outcome {
	case graph.MutationNotAllowed:
		return http.StatusMethodNotAllowed
	case graph.RateLimited:
		return http.StatusTooManyRequests
	case graph.Refused:
		if len(result.Errors) > 0 {
			switch result.Errors[0].Extensions["code"] {
			case errcode.Internal:
				return http.StatusInternalServerError
			case errcode.Unavailable, errcode.TimedOut, errcode.TooManySubscriptions:
				// Status 503 means that the client can start the subscription again later.
				return http.StatusServiceUnavailable
			}
		}
		switch {
		case t != typeGraphQL:
		case len(result.Errors) > 0 && result.Errors[0].Extensions["code"] == errcode.Unauthenticated:
			return http.StatusUnauthorized
		default:
			return http.StatusBadRequest
		}
	}
	return http.StatusOK
}

// responseBody is the body of a response: head, followed by rest. rest contains the data, which can
// be megabytes long. Because head is separate, newResponseBody can add text before the data without
// copying the data.
type responseBody struct{ head, rest []byte }

func (b responseBody) size() int { return len(b.head) + len(b.rest) }

// memoryBytes returns how many bytes of memory the body uses while the client reads it.
func (b responseBody) memoryBytes() int { return cap(b.rest) }

// maxSpareCapacity, plus a quarter of the response's length, limits the unused bytes of a response
// buffer. Without the limit, a short response to a slow client could keep a large buffer in memory.
const maxSpareCapacity = 4 << 10

// dataPrefix is the start of a response body that has data and no errors.
var dataPrefix = []byte(`{"data":`)

// newResponseBody encodes a result as the body of a response. It may append to result.Data, so the
// caller must not use result.Data afterwards.
func newResponseBody(result graph.Result) responseBody {
	if result.Outcome != graph.Executed || len(result.Errors) > 0 || len(result.Data) == 0 {
		return responseBody{rest: encodeResult(result)}
	}
	rest := []byte(result.Data)
	// The buffer has the size of the operation's previous response, which may have been longer.
	if spare := cap(rest) - len(rest); spare > maxSpareCapacity+len(rest)/4 {
		rest = append(make([]byte, 0, len(rest)+1), rest...)
	}
	if len(result.Extensions) > 0 {
		rest = append(append(rest, `,"extensions":`...), mustMarshal(result.Extensions)...)
	}
	return responseBody{dataPrefix, append(rest, '}')}
}

// encodeResult encodes a result as one slice that contains a JSON object.
func encodeResult(result graph.Result) []byte {
	body := append(make([]byte, 0, len(result.Data)+64), '{')
	if len(result.Errors) > 0 {
		body = append(append(append(body, `"errors":`...), mustMarshal(result.Errors)...), ',')
	}
	if result.Outcome == graph.Executed {
		if len(result.Data) == 0 {
			result.Data = []byte("null")
		}
		body = append(append(append(body, `"data":`...), result.Data...), ',')
	}
	if len(result.Extensions) > 0 {
		body = append(append(append(body, `"extensions":`...), mustMarshal(result.Extensions)...), ',')
	}
	body[len(body)-1] = '}' // replaces the last comma
	return body
}

// mustMarshal encodes v as JSON. If v cannot be encoded, mustMarshal panics, because the cause is a
// bug in this module.
func mustMarshal(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return text
}

// refusal is the response to a request that the server refuses to execute.
type refusal struct {
	status int
	code   string
	// message is the text of the error. It contains no text from the request.
	message string
	// pool is the name of the pool that refused the request. If the request was refused for another
	// reason, pool is empty. shareExceeded reports whether the caller exceeds its share of the pool.
	pool          string
	shareExceeded bool
	// allow is the value of the response header Allow, or empty.
	allow string
	// challenge is the value of the response header WWW-Authenticate, or empty.
	challenge string
	// requestID is the ID of the request. It is set only if the log contains details of the error.
	requestID string
	// rateLimitResult is the response to a caller that exceeds its rate limit. If it is set, it
	// replaces code and message.
	rateLimitResult *graph.Result
}

func newRefusal(status int, code, format string, args ...any) *refusal {
	return &refusal{status: status, code: code, message: fmt.Sprintf(format, args...)}
}

// rateLimited refuses a request because its caller exceeds its rate limit.
func rateLimited(result *graph.Result) *refusal {
	return &refusal{status: http.StatusTooManyRequests, code: errcode.RateLimited, rateLimitResult: result}
}

// retryAfterSeconds is the value of the response header Retry-After if the server is overloaded.
const retryAfterSeconds = "1"

func (e *refusal) write(w http.ResponseWriter, t mediaType) {
	e.setHeaders(w.Header())
	writeResponse(w, t, e.status, responseBody{rest: encodeResult(e.result())})
}

// setHeaders sets the response headers that the refusal requires.
func (e *refusal) setHeaders(header http.Header) {
	if e.allow != "" {
		header.Set("Allow", e.allow)
	}
	if e.challenge != "" {
		header.Set(challengeHeader, e.challenge)
	}
	switch e.status {
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		setStatusHeaders(header, e.result(), e.status)
	case http.StatusRequestTimeout, http.StatusRequestEntityTooLarge:
		// The server closes the connection, because it does not read the rest of the body.
		header.Set("Connection", "close")
	}
}

// result converts the refusal to a GraphQL result.
func (e *refusal) result() graph.Result {
	if e.rateLimitResult != nil {
		return *e.rateLimitResult
	}
	extensions := map[string]any{"code": e.code}
	if e.requestID != "" {
		extensions["requestId"] = e.requestID
	}
	if e.pool != "" {
		extensions["pool"] = e.pool
	}
	return graph.Result{Response: &graphql.Response{Errors: gqlerror.List{{Message: e.message, Extensions: extensions}}}, Outcome: graph.Refused}
}

func contentTypeHeader(t mediaType) []string { return []string{string(t) + "; charset=utf-8"} }

// writeResponse writes a response. It sets Content-Length, so that net/http does not use chunked
// encoding.
func writeResponse(w http.ResponseWriter, t mediaType, status int, body responseBody) {
	header := w.Header()
	header["Content-Type"] = contentTypeHeader(t)
	header["Content-Length"] = []string{strconv.Itoa(body.size())}
	w.WriteHeader(status)
	if len(body.head) > 0 {
		_, _ = w.Write(body.head)
	}
	_, _ = w.Write(body.rest) // an error means that the client has disconnected
}
