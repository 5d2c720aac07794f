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

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/graph"
	"github.com/ordergraph/ordergraph/graph/errcode"
	"github.com/ordergraph/ordergraph/internal/admission"
)

// overHTTP serves GraphQL over HTTP (https://graphql.github.io/graphql-over-http/draft/).
type overHTTP struct {
	executor *graph.Executor
	limits   Limits
	pools    *admission.Controller
	// weights are the weights of callers by their roles.
	weights        map[commerce.Role]int
	shedding       *shedding
	authentication authentication
	// compress makes a handler one whose answer is compressed, for clients that accept that.
	compress func(http.Handler) http.HandlerFunc
}

// methods are those that are answered; OPTIONS tells them. HEAD is a GET whose answer's body nobody
// gets.
const methods = "GET, HEAD, POST, OPTIONS"

// ServeHTTP answers one request.
func (h overHTTP) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header["X-Content-Type-Options"] = nosniff
	// Stock and orders are those of the moment, and the answer depends on headers: there is nothing
	// that a cache should keep.
	header["Cache-Control"] = noStore
	header.Add("Vary", "Accept")
	if r.Method == http.MethodOptions {
		header.Add("Vary", "Accept-Encoding")
		header.Set("Allow", methods)
		w.WriteHeader(http.StatusNoContent)
		return
	}
	contentType, acceptable := answerType(r.Header.Values("Accept"))
	if contentType == typeEventStream {
		if r.Method != http.MethodHead {
			h.streamed(w, r)
			return
		}
		contentType = typeJSON // there is no body, so nothing is streamed
	}
	ctx, result, refused := h.answer(w, r, acceptable)
	delayRefusal(ctx, nil, result)
	// A client that does not read the answer is cut. Errors: a writer without a connection, as in
	// tests, has no deadlines.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(h.limits.AnswerTime))
	if refused != nil {
		h.refuseCompressed(w, r, refused, contentType)
		return
	}
	code := status(result, contentType)
	advise(header, result, code)
	body := encoded(result)
	if full := h.take(ctx, admission.Answers, body.held()); full != nil {
		if !result.Mutation {
			h.refuseCompressed(w, r, full, contentType)
			return
		}
		body = encoded(mutationDropped()) // so short that it is not counted
	}
	defer h.give(ctx, admission.Answers, body.held())
	h.replyCompressed(w, r, contentType, code, body)
}

// nosniff and noStore are values of headers, which nothing writes to.
var nosniff, noStore = []string{"nosniff"}, []string{"no-store"}

// replyCompressed is reply, compressed where that pays and the client accepts it.
func (h overHTTP) replyCompressed(w http.ResponseWriter, r *http.Request, t mediaType, status int, body answerBody) {
	if body.size() < minCompressed || r.Header["Accept-Encoding"] == nil {
		w.Header().Add("Vary", "Accept-Encoding")
		reply(w, t, status, body)
		return
	}
	if r.Method == http.MethodHead {
		// What compresses leaves HEAD alone, and a GET may have another length: none is told
		// (https://www.rfc-editor.org/rfc/rfc9110#section-8.6).
		w.Header().Add("Vary", "Accept-Encoding")
		w.Header()["Content-Type"] = contentTypeOf(t)
		w.WriteHeader(status)
		return
	}
	h.compress(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { reply(w, t, status, body) }))(w, r) // which says so in Vary
}

// refuseCompressed is refuse for those whose answers are compressed; refusals are too short for
// that.
func (h overHTTP) refuseCompressed(w http.ResponseWriter, r *http.Request, refused *refusal, contentType mediaType) {
	w.Header().Add("Vary", "Accept-Encoding")
	h.refuse(w, r, refused, contentType)
}

// advise tells in the header of an answer what clients can do about its status: by which method to
// ask, or when.
func advise(header http.Header, result graph.Result, status int) {
	switch status {
	case http.StatusMethodNotAllowed:
		header.Set("Allow", http.MethodPost)
	case http.StatusUnauthorized:
		header.Set(challengeHeader, challenge)
	case http.StatusTooManyRequests:
		header.Set("Retry-After", strconv.FormatFloat(math.Ceil(result.RetryAfter.Seconds()), 'f', -1, 64))
	case http.StatusServiceUnavailable:
		header.Set("Retry-After", retryAfter)
	}
}

// refuse replies that a request is not executed. Only overload is logged: all else is the client's
// to mend, and anybody could fill the log.
func (h overHTTP) refuse(w http.ResponseWriter, r *http.Request, refused *refusal, contentType mediaType) {
	h.shedding.refused(r.Context(), refused)
	delayRefusal(r.Context(), refused, graph.Result{})
	refused.reply(w, contentType)
}

// mutationDropped is the answer to a mutation whose own there is no room for. It is done, so no
// status may say that it is to be sent again.
func mutationDropped() graph.Result {
	return graph.Result{Response: &graphql.Response{Errors: gqlerror.List{{Message: "what the mutation asks for was done, but there is no room for its answer while other clients read so slowly: do not send it again, and ask for what it has changed", Extensions: map[string]any{"code": errcode.Overloaded}}}}}
}

// answer reads a request and has it executed. The context that it returns has the caller.
func (h overHTTP) answer(w http.ResponseWriter, r *http.Request, acceptable bool) (context.Context, graph.Result, *refusal) {
	asked, arrived, refused := h.asked(w, r, acceptable)
	if refused != nil {
		return r.Context(), graph.Result{}, refused
	}
	ctx := explaining(asked.Context(), asked.Header)
	result, refused := h.placed(ctx, arrived, h.executor.Execute)
	return ctx, result, refused
}

// asked waits until a request has arrived that can be answered. It returns the request, in the name
// of who makes it, and what decodes it.
func (h overHTTP) asked(w http.ResponseWriter, r *http.Request, acceptable bool) (*http.Request, arrived, *refusal) {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost:
	default:
		refused := refuse(http.StatusMethodNotAllowed, errcode.MethodNotAllowed, "the method is not for GraphQL: use POST, or GET for queries")
		refused.allow = methods
		return nil, arrived{}, refused
	}
	if !acceptable {
		return nil, arrived{}, refuse(http.StatusNotAcceptable, errcode.NotAcceptable, "no type that Accept names can be answered with: accept %s or %s", typeGraphQL, typeJSON)
	}
	r, refused := h.authenticated(r)
	if refused != nil {
		return nil, arrived{}, refused
	}
	body, refused := h.arrival(w, r)
	paid, limited := h.executor.Charge(r.Context(), len(body)+len(r.URL.RawQuery))
	switch {
	case limited != nil:
		return nil, arrived{}, rateLimited(limited)
	case refused != nil:
		return nil, arrived{}, refused
	}
	return r, arrived{bytes: len(body), decode: func() (request graph.Request, refused *refusal) {
		if r.Method == http.MethodPost {
			request, refused = readBody(body)
		} else {
			request, refused = readQuery(r)
		}
		request.Paid = paid
		return request, refused
	}}, nil
}

// arrival waits until a request has arrived as a whole, and returns its body: of a request that is
// refused, what has arrived of it.
func (h overHTTP) arrival(w http.ResponseWriter, r *http.Request) (body []byte, refused *refusal) {
	if r.Method == http.MethodPost {
		if refused := checkContent(r.Header); refused != nil {
			return nil, refused
		}
		return h.arrivedBody(w, r)
	}
	if forgeable(r.Header) {
		return nil, refuse(http.StatusForbidden, errcode.CSRFPrevented, "a page of another site could have made a browser send this: send POST, or the header %s with any value", provingHeaders[0])
	}
	return nil, nil
}

// placed has a request that has arrived decoded and executed, if its caller can have one more in
// progress. Nobody waits for that: a queue in front of a server that is too slow only makes all
// wait longer.
func (h overHTTP) placed(ctx context.Context, a arrived, execute func(context.Context, graph.Request) graph.Result) (graph.Result, *refusal) {
	if full := h.take(ctx, admission.Requests, 1); full != nil {
		return graph.Result{}, full
	}
	defer h.give(ctx, admission.Requests, 1)
	ctx, cancel := context.WithTimeout(ctx, h.limits.RequestTime)
	defer cancel()
	request, refusal := h.decoded(ctx, a)
	if refusal != nil {
		return graph.Result{}, refusal
	}
	result := execute(ctx, request)
	if result.Refusal != nil {
		return graph.Result{}, refused(result.Refusal)
	}
	return result, nil
}

// arrived is a request that has arrived and is not yet decoded.
type arrived struct {
	decode func() (graph.Request, *refusal)
	// bytes is the length of its body.
	bytes int
}

// decoded has a request decoded: a long one when it is its caller's turn.
func (h overHTTP) decoded(ctx context.Context, a arrived) (graph.Request, *refusal) {
	if a.bytes <= free {
		return a.decode()
	}
	caller, pool := admission.CallerOf(ctx), h.pools[admission.Preparations]
	if pool.Await(ctx, caller, 1) != nil {
		return graph.Request{}, refuse(http.StatusServiceUnavailable, errcode.TimedOut, "the request was not decoded within %s, as the server is busy: try again in a moment", h.limits.RequestTime)
	}
	defer pool.Give(caller, 1)
	return a.decode()
}

// explaining returns the context of a request that is to be explained if its header says so.
func explaining(ctx context.Context, header http.Header) context.Context {
	if on, err := strconv.ParseBool(header.Get(ExplainHeader)); err == nil && on {
		return graph.WithExplain(ctx)
	}
	return ctx
}

// status is the status of an answer.
func status(result graph.Result, t mediaType) int {
	switch result.Outcome {
	case graph.NotReadOnly:
		return http.StatusMethodNotAllowed
	case graph.RateLimited:
		return http.StatusTooManyRequests
	case graph.Refused:
		if len(result.Errors) > 0 {
			switch result.Errors[0].Extensions["code"] {
			case errcode.Internal:
				return http.StatusInternalServerError
			case errcode.Unavailable, errcode.TimedOut, errcode.TooManySubscriptions:
				// A subscription that could not be begun now, and can later.
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

// answerBody is the body of an answer, in two parts, so that data, which can be megabytes, are not
// copied to stand inside the body.
type answerBody struct{ head, rest []byte }

func (b answerBody) size() int { return len(b.head) + len(b.rest) }

// held is how much memory the body takes until the client has read it.
func (b answerBody) held() int { return cap(b.rest) }

// mostSpare is how much of the buffer that data were written to can be empty, beside a quarter of
// what they take. An operation gets a buffer for as much as its last answer took: where that was
// long, and this answer is short, a client who does not read it would hold the room of the long
// one.
const mostSpare = 4 << 10

// dataHead begins the body of an answer that has data and no errors.
var dataHead = []byte(`{"data":`)

// encoded makes the body of an answer. Data are put in as they are: encoding/json would read and
// copy them once more. They are the answer's own, and what ends the body is put behind them.
func encoded(result graph.Result) answerBody {
	if result.Outcome != graph.Executed || len(result.Errors) > 0 || len(result.Data) == 0 {
		return answerBody{rest: encode(result)}
	}
	rest := []byte(result.Data)
	if spare := cap(rest) - len(rest); spare > mostSpare+len(rest)/4 {
		rest = append(make([]byte, 0, len(rest)+1), rest...)
	}
	if len(result.Extensions) > 0 {
		rest = append(append(rest, `,"extensions":`...), marshal(result.Extensions)...)
	}
	return answerBody{dataHead, append(rest, '}')}
}

// encode makes the body of an answer, in one part.
func encode(result graph.Result) []byte {
	body := append(make([]byte, 0, len(result.Data)+64), '{')
	if len(result.Errors) > 0 {
		body = append(append(append(body, `"errors":`...), marshal(result.Errors)...), ',')
	}
	if result.Outcome == graph.Executed {
		if len(result.Data) == 0 {
			result.Data = []byte("null")
		}
		body = append(append(append(body, `"data":`...), result.Data...), ',')
	}
	if len(result.Extensions) > 0 {
		body = append(append(append(body, `"extensions":`...), marshal(result.Extensions)...), ',')
	}
	body[len(body)-1] = '}' // it replaces the last comma
	return body
}

// marshal is for values of this module, which always have a form in JSON; else it panics, which
// answers INTERNAL.
func marshal(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return text
}

// refusal is the reply to a request that is not executed.
type refusal struct {
	status int
	code   string
	// message does not repeat what was sent.
	message string
	// pool is the pool of which the caller cannot have more, if it is one. ofCaller reports that the
	// caller has its share.
	pool     string
	ofCaller bool
	// allow are the methods that can be used instead.
	allow string
	// challenge tells how to say who one is.
	challenge string
	// requestID is set where the log has more to tell.
	requestID string
	// limited is the answer to a caller who has no points left, instead of code and message.
	limited *graph.Result
}

func refuse(status int, code, format string, args ...any) *refusal {
	return &refusal{status: status, code: code, message: fmt.Sprintf(format, args...)}
}

// rateLimited refuses a request whose caller has no points left.
func rateLimited(result *graph.Result) *refusal {
	return &refusal{status: http.StatusTooManyRequests, code: errcode.RateLimited, limited: result}
}

// retryAfter is how many seconds clients are told to wait where the server is busy.
const retryAfter = "1"

func (e *refusal) reply(w http.ResponseWriter, t mediaType) {
	header := w.Header()
	if e.allow != "" {
		header.Set("Allow", e.allow)
	}
	if e.challenge != "" {
		header.Set(challengeHeader, e.challenge)
	}
	switch e.status {
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		advise(header, e.result(), e.status)
	case http.StatusRequestTimeout, http.StatusRequestEntityTooLarge:
		// The rest of the body is not waited for.
		header.Set("Connection", "close")
	}
	reply(w, t, e.status, answerBody{rest: encode(e.result())})
}

// result is the refusal as the result of a request.
func (e *refusal) result() graph.Result {
	if e.limited != nil {
		return *e.limited
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

func contentTypeOf(t mediaType) []string { return []string{string(t) + "; charset=utf-8"} }

// reply writes an answer. What is short goes out in one packet, as net/http collects it; its length
// is told, so that net/http makes no chunks of it.
func reply(w http.ResponseWriter, t mediaType, status int, body answerBody) {
	header := w.Header()
	header["Content-Type"] = contentTypeOf(t)
	header["Content-Length"] = []string{strconv.Itoa(body.size())}
	w.WriteHeader(status)
	if len(body.head) > 0 {
		_, _ = w.Write(body.head)
	}
	_, _ = w.Write(body.rest) // whoever does not take it is gone
}
