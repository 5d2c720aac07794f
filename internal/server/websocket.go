package server

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/ordergraph/ordergraph/graph"
	"github.com/ordergraph/ordergraph/graph/errcode"
	"github.com/ordergraph/ordergraph/internal/admission"
)

// subprotocol is the only one that is spoken here
// (https://github.com/enisdenjo/graphql-ws/blob/master/PROTOCOL.md).
const subprotocol = "graphql-transport-ws"

// Codes that sockets are closed with, by the protocol.
const (
	closeBadMessage   websocket.StatusCode = 4400
	closeUnauthorized websocket.StatusCode = 4401
	closeForbidden    websocket.StatusCode = 4403
	closeSubprotocol  websocket.StatusCode = 4406
	closeInitTimeout  websocket.StatusCode = 4408
	closeDuplicate    websocket.StatusCode = 4409
	closeInitTwice    websocket.StatusCode = 4429
)

// Types of messages.
const (
	messageInit      = "connection_init"
	messageAck       = "connection_ack"
	messagePing      = "ping"
	messagePong      = "pong"
	messageSubscribe = "subscribe"
	messageNext      = "next"
	messageError     = "error"
	messageComplete  = "complete"
)

// parameterHeaders are headers that connection_init can have in its payload as well, as browsers
// cannot send any with an upgrade.
var parameterHeaders = [...]string{"Authorization", ExplainHeader}

// closeTime is how long a client has to agree to a close, and to send what it is in the middle of.
const closeTime = 5 * time.Second

// upgrades reports whether a request wants to become a socket. What else is wrong with it,
// websocket.Accept tells.
func upgrades(r *http.Request) bool { return strings.EqualFold(r.Header.Get("Upgrade"), "websocket") }

// overWebSocket serves GraphQL over WebSocket. What it shares with HTTP are the executor, the
// places of what is worked on, and the room for long messages.
type overWebSocket struct {
	overHTTP
	// allowed reports whether a page of another site may open a socket. Nothing else stands against
	// it: a browser lets any page open a socket to any site, without asking that first.
	allowed func(*http.Request) bool
	log     *slog.Logger
}

// ServeHTTP makes a socket of a request, which then lives by itself until it is closed.
func (h overWebSocket) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if r.Header.Get("Origin") != "" && !sameOrigin(r) && !h.allowed(r) {
		h.refuse(w, r, refuse(http.StatusForbidden, errcode.CSRFPrevented, "a page of another site may not open a socket: have its origin added to ORDERGRAPH_CORS_ORIGINS"), typeJSON)
		return
	}
	caller := h.stranger(r.RemoteAddr)
	if full := refused(h.pools[admission.Sockets].Take(caller, 1)); full != nil {
		h.refuse(w, r, full, typeJSON)
		return
	}
	leave := func() { h.pools[admission.Sockets].Give(caller, 1) }
	s := &socket{over: h, header: http.Header{}, operations: map[string]*socketOperation{}}
	for _, name := range parameterHeaders {
		s.header[name] = r.Header.Values(name)
	}
	s.heard.Store(true)
	upgraded := &hijackedWriter{ResponseWriter: w}
	conn, err := websocket.Accept(upgraded, r, &websocket.AcceptOptions{
		// Those that the client offers come last: it is told why with code 4406, which a client
		// whose offer is not taken up never sees.
		Subprotocols:       append([]string{subprotocol}, offered(r.Header)...),
		InsecureSkipVerify: true, // it was looked at above, by the same rules as CORS
		CompressionMode:    websocket.CompressionDisabled,
		OnPingReceived:     func(context.Context, []byte) bool { s.heard.Store(true); return true },
	})
	if err != nil {
		leave()
		h.log.DebugContext(r.Context(), "no socket", "reason", err, "requestId", requestID(r.Context()))
		return // Accept has answered
	}
	staysOpen(r.Context())
	s.conn, s.beneath = conn, upgraded.conn
	conn.SetReadLimit(int64(s.longestMessage()))
	s.ctx, s.cancel = context.WithCancel(context.WithoutCancel(r.Context()))
	s.asking, s.left = admission.WithCaller(s.ctx, caller), leave
	stopping := stopping(r.Context())
	// In a goroutine of its own, so that the stack that net/http has grown, its buffers and the
	// request do not stay as long as the socket.
	go s.serve(stopping)
}

// hijackedWriter remembers the connection that becomes a socket.
type hijackedWriter struct {
	http.ResponseWriter
	conn net.Conn
}

// Hijack takes the connection over.
func (w *hijackedWriter) Hijack() (conn net.Conn, buffers *bufio.ReadWriter, err error) {
	w.conn, buffers, err = http.NewResponseController(w.ResponseWriter).Hijack()
	return w.conn, buffers, err
}

// offered are the subprotocols that a client offers.
func offered(h http.Header) []string {
	var all []string
	for _, value := range h.Values("Sec-Websocket-Protocol") {
		for name := range strings.SplitSeq(value, ",") {
			if name = strings.TrimSpace(name); name != "" && len(all) < 10 {
				all = append(all, name)
			}
		}
	}
	return all
}

// sameOrigin reports whether a request comes from a page of this site. Behind a proxy that ends TLS
// the scheme is not known here.
func sameOrigin(r *http.Request) bool {
	_, host, ok := strings.Cut(r.Header.Get("Origin"), "://")
	return ok && strings.EqualFold(host, r.Host)
}

// socket is one connection. One goroutine reads, each operation has one, and there is no queue: an
// operation writes its messages itself, so that there is at most one of each in memory, and the
// next event is not waited for before the last one is written. A client that does not read holds up
// its own operations until a write has taken too long, and then it is cut.
type socket struct {
	over overWebSocket
	conn *websocket.Conn
	// beneath is what conn reads from.
	beneath net.Conn
	// header are those of parameterHeaders that came with the upgrade.
	header http.Header
	// ctx ends when the socket does.
	ctx     context.Context
	cancel  context.CancelFunc
	closing sync.Once
	// asking is the context of operations: ctx, with who uses the socket. Only the goroutine that
	// reads has to do with it.
	asking context.Context
	// initialised is set when connection_init has come, acknowledged when it has been answered.
	initialised, acknowledged atomic.Bool
	// heard reports whether something has come since the last ping.
	heard   atomic.Bool
	running sync.WaitGroup
	// left ends the watch over the token and gives back what the socket has of its caller's share.
	// Only the goroutine that reads has to do with it.
	left func()

	mu         sync.Mutex
	operations map[string]*socketOperation
	// What happens later, unless the socket has ended by then.
	initTimer, pulse *time.Timer
	ended            bool
}

// socketOperation is one that is under way.
type socketOperation struct {
	id string
	// payload is what the client has sent, until it is decoded: answers may wait for a client who
	// does not read.
	payload []byte
	// paid is what was taken for the message.
	paid   int
	ctx    context.Context
	cancel context.CancelFunc
}

// serve reads messages until the socket is closed, and leaves nothing behind.
func (s *socket) serve(stopping context.Context) {
	defer func() {
		s.cancel()
		s.mu.Lock()
		s.ended = true
		for _, timer := range []*time.Timer{s.initTimer, s.pulse} {
			if timer != nil {
				timer.Stop()
			}
		}
		s.mu.Unlock()
		_ = s.conn.CloseNow() // where it is being closed, this waits for it
		s.running.Wait()
		s.left()
	}()
	defer s.recovered()
	if s.conn.Subprotocol() != subprotocol {
		s.close(closeSubprotocol, "Subprotocol not acceptable")
		return
	}
	defer context.AfterFunc(stopping, func() { s.close(websocket.StatusGoingAway, "Going away") })()
	s.after(&s.initTimer, s.over.limits.InitTime, func() {
		if !s.acknowledged.Load() {
			s.close(closeInitTimeout, "Connection initialisation timeout")
		}
	})
	for s.read() {
	}
}

// after runs a function after some time, unless the socket has ended. Timers take no goroutine
// while they wait.
func (s *socket) after(timer **time.Timer, d time.Duration, f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		*timer = time.AfterFunc(d, func() {
			defer s.recovered()
			f()
		})
	}
}

// recovered ends the socket where something panics, and only the socket.
func (s *socket) recovered() {
	if panicked := recover(); panicked != nil {
		s.over.log.ErrorContext(s.ctx, "socket failed", "error", fmt.Sprintf("panic: %v\n%s", panicked, debug.Stack()), "requestId", requestID(s.ctx))
		s.close(websocket.StatusInternalError, "Internal server error")
	}
}

// close closes the socket, once: it tells the client why and waits some seconds for it to agree. It
// returns false: there is nothing to go on with.
func (s *socket) close(code websocket.StatusCode, reason string) bool {
	s.closing.Do(func() {
		s.over.log.DebugContext(s.ctx, "a socket is closed", "code", int(code), "reason", reason, "requestId", requestID(s.ctx))
		s.cancel()
		// The library reads what is left of a message for as long as that takes.
		_ = s.beneath.SetReadDeadline(time.Now().Add(closeTime))
		_ = s.conn.Close(code, reason) // a client that does not agree is cut
	})
	return false
}

// cut closes the socket without a word, where nobody seems to listen. It returns false as close
// does.
func (s *socket) cut(why string) bool {
	s.closing.Do(func() {
		s.over.log.DebugContext(s.ctx, "a socket is cut", "reason", why, "requestId", requestID(s.ctx))
		s.cancel()
		_ = s.conn.CloseNow()
	})
	return false
}

// read reads a message and does what it says, and reports whether to go on.
func (s *socket) read() bool {
	kind, text, err := s.receive()
	if err != nil || s.ctx.Err() != nil {
		return false
	}
	s.heard.Store(true)
	if kind != websocket.MessageText {
		return s.close(closeBadMessage, "Invalid message: it is not text")
	}
	m, err := readMessage(text)
	if err != nil {
		return s.close(closeBadMessage, "Invalid message: "+err.Error())
	}
	switch m.Type {
	case messageInit:
		return s.begin(m)
	case messagePing:
		return s.pong(m.Payload)
	case messagePong:
		return true
	case messageSubscribe:
		return s.subscribe(m)
	default: // complete
		s.finish(m.ID, nil)
		return true
	}
}

// receive waits for a message, and reads it as fast as bodies have to come. Errors: those of the
// connection, os.ErrDeadlineExceeded not among them: a slow sender is cut.
func (s *socket) receive() (websocket.MessageType, []byte, error) {
	// Without an end of their own: where a context ends, the library cuts the connection, and close
	// could not say why.
	kind, from, err := s.conn.Reader(context.Background())
	if err != nil {
		return 0, nil, err
	}
	slow := time.AfterFunc(s.over.limits.BodyTime, func() { s.cut("a message did not arrive in time") })
	defer slow.Stop()
	// Most messages are short; only for what is longer there has to be room.
	text, err := io.ReadAll(io.LimitReader(from, free))
	if err == nil && len(text) == free {
		longest := s.longestMessage()
		if full := s.over.take(s.asking, admission.Bodies, longest); full != nil {
			s.close(websocket.StatusTryAgainLater, "No room for long messages (pool "+full.pool+")")
			return 0, nil, errBusy
		}
		defer s.over.give(s.asking, admission.Bodies, longest)
		var rest []byte
		rest, err = io.ReadAll(from)
		text = append(text, rest...)
	}
	if errors.Is(err, websocket.ErrMessageTooBig) {
		// The library has told the client; but a client that still sends would find the connection
		// cut, and not read why.
		s.close(websocket.StatusMessageTooBig, "Message too long")
	}
	return kind, text, err
}

// longestMessage is the maximum length of a message in bytes. Before connection_ack nobody knows
// whose the socket is, and a token is short.
func (s *socket) longestMessage() int {
	if s.acknowledged.Load() {
		return s.over.limits.Body
	}
	return min(maxHeader, s.over.limits.Body)
}

var errBusy = errors.New("no room for long messages")

// begin answers connection_init: whose token it brings decides who uses the socket.
func (s *socket) begin(m message) bool {
	if s.initialised.Swap(true) {
		return s.close(closeInitTwice, "Too many initialisation requests")
	}
	parameters := map[string]json.RawMessage{}
	if len(m.Payload) > 0 && json.Unmarshal(m.Payload, &parameters) != nil {
		return s.close(closeBadMessage, "Invalid message: the payload of connection_init is no object")
	}
	header, ok := s.headers(parameters)
	if !ok {
		return s.close(closeForbidden, "Forbidden")
	}
	s.asking = explaining(s.asking, header)
	if s.over.authentication.tokens != nil && !s.authenticate(header) {
		return false
	}
	s.header = nil // a token is not kept for longer than it takes to look at it
	s.acknowledged.Store(true)
	s.conn.SetReadLimit(int64(s.longestMessage()))
	if !s.send(messageAck, "", nil) {
		return false
	}
	s.after(&s.pulse, s.over.limits.KeepAlive, s.beat)
	return true
}

// authenticate finds out who uses the socket, which is closed when their token is no longer valid.
// It reports whether to go on.
func (s *socket) authenticate(header http.Header) bool {
	ctx, cancel := context.WithTimeout(s.ctx, s.over.limits.RequestTime)
	defer cancel()
	identity, refused := s.over.authentication.identify(ctx, header, s.beneath.RemoteAddr().String())
	switch {
	case refused == nil:
	case refused.status == http.StatusUnauthorized:
		return s.close(closeForbidden, "Forbidden")
	default:
		return s.close(websocket.StatusTryAgainLater, "Who uses the socket cannot be found out right now")
	}
	asking := s.over.withIdentity(s.asking, identity)
	if full := s.over.take(asking, admission.Sockets, 1); full != nil {
		return s.close(websocket.StatusTryAgainLater, "Too many sockets (pool "+full.pool+")")
	}
	s.left() // what it had of the share of strangers
	s.asking = asking
	unwatch := s.over.authentication.watch(s.asking, func() {
		defer s.recovered()
		s.close(closeForbidden, "Forbidden: the token is no longer valid")
	})
	s.left = func() {
		unwatch()
		s.over.give(asking, admission.Sockets, 1)
	}
	return true
}

// headers are the headers of the upgrade, with what connection_init says instead. False where it
// says something twice, or in another form than as a text.
func (s *socket) headers(parameters map[string]json.RawMessage) (http.Header, bool) {
	header := http.Header{}
	for _, name := range parameterHeaders {
		var given []string
		for key, value := range parameters {
			if !strings.EqualFold(key, name) || string(value) == "null" {
				continue
			}
			var text string
			if json.Unmarshal(value, &text) != nil {
				if text = string(value); text != "true" && text != "false" {
					return nil, false
				}
			}
			given = append(given, text)
		}
		if len(given) > 1 {
			return nil, false
		}
		if len(given) == 0 {
			given = s.header[name]
		}
		header[name] = given
	}
	return header, true
}

// beat pings the client, and cuts it where nothing has come since the last time.
func (s *socket) beat() {
	if !s.heard.Swap(false) {
		s.cut("the client does not answer")
		return
	}
	if s.send(messagePing, "", nil) {
		s.after(&s.pulse, s.over.limits.KeepAlive, s.beat)
	}
}

// subscribe begins an operation.
func (s *socket) subscribe(m message) bool {
	if !s.acknowledged.Load() {
		return s.close(closeUnauthorized, "Unauthorized")
	}
	paid, limited := s.over.executor.Charge(s.asking, len(m.Payload))
	if limited == nil {
		if err := checkSubscribe(m.Payload); err != nil {
			return s.close(closeBadMessage, "Invalid message: "+err.Error())
		}
	}
	o := &socketOperation{id: m.ID, payload: m.Payload, paid: paid}
	s.mu.Lock()
	_, exists := s.operations[o.id]
	full := len(s.operations) >= s.over.limits.SocketSubscriptions
	if !exists && !full {
		o.ctx, o.cancel = context.WithCancel(s.asking)
		s.operations[o.id] = o
	}
	s.mu.Unlock()
	switch {
	case exists:
		return s.close(closeDuplicate, "Subscriber for "+errcode.Excerpt(o.id, shownID)+" already exists")
	case full:
		full := refuse(http.StatusServiceUnavailable, errcode.TooManySubscriptions, "the socket has as many operations under way as one can, %d: complete others, or open another socket", s.over.limits.SocketSubscriptions)
		return s.send(messageError, o.id, marshal(full.result().Errors))
	}
	var refused *refusal
	if limited != nil {
		refused = rateLimited(limited)
	} else {
		refused = s.over.take(o.ctx, admission.Subscriptions, 1)
	}
	if refused != nil {
		s.over.shedding.refused(o.ctx, refused)
		s.running.Go(func() {
			defer s.recovered()
			delayRefusal(o.ctx, refused, graph.Result{})
			s.end(o, refused.result().Errors)
		})
		return true
	}
	over := func() {
		s.finish(o.id, o)
		s.over.give(o.ctx, admission.Subscriptions, 1)
	}
	s.running.Go(func() {
		following := false
		defer s.recovered()
		defer func() {
			if !following {
				over()
			}
		}()
		stream := s.operate(o)
		if stream == nil {
			return
		}
		// What begins a subscription needs a deep stack, which the wait for events would keep.
		following = true
		s.running.Go(func() {
			defer s.recovered()
			defer over()
			defer stream.Close()
			s.follow(o, stream)
		})
	})
	return true
}

// shownID is how much of an operation's id the reason of a close repeats: it has 123 bytes.
const shownID = 60

// finish takes an operation off the list, and ends it: whichever has the id, where no operation is
// given.
func (s *socket) finish(id string, o *socketOperation) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.operations[id]
	if found == nil || o != nil && found != o {
		return false
	}
	delete(s.operations, id)
	found.cancel()
	return true
}

// operate executes an operation until it is complete, or returns what it is to follow.
func (s *socket) operate(o *socketOperation) (stream *graph.Stream) {
	decode := func() (graph.Request, *refusal) {
		request, refused := readBody(o.payload)
		request.Paid = o.paid
		return request, refused
	}
	result, refused := s.over.placed(o.ctx, arrived{decode, len(o.payload)}, func(ctx context.Context, request graph.Request) (result graph.Result) {
		stream, result = s.over.executor.Start(ctx, request)
		return result
	})
	o.payload = nil
	delayRefusal(o.ctx, refused, result)
	switch {
	case refused != nil:
		s.over.shedding.refused(o.ctx, refused)
		s.end(o, refused.result().Errors)
	case stream != nil:
		return stream
	case result.Outcome != graph.Executed:
		s.end(o, result.Errors)
	default:
		s.next(o, result)
		s.end(o, nil)
	}
	return nil
}

// follow tells a subscription's events.
func (s *socket) follow(o *socketOperation, stream *graph.Stream) {
	for {
		result, more := stream.Next(o.ctx)
		if !more {
			s.end(o, result.Errors)
			return
		}
		if !s.next(o, result) {
			return
		}
	}
}

// next tells a result of an operation, and whether to go on.
func (s *socket) next(o *socketOperation, result graph.Result) bool {
	if o.ctx.Err() != nil {
		return false
	}
	payload := encode(result)
	if full := s.over.take(o.ctx, admission.Answers, len(payload)); full != nil {
		if !result.Mutation {
			s.end(o, full.result().Errors)
			return false
		}
		payload = encode(mutationDropped()) // so short that it is not counted
	}
	defer s.over.give(o.ctx, admission.Answers, len(payload))
	return s.send(messageNext, o.id, payload)
}

// pong answers a ping with what came with it, as far as the caller has points for that, and there
// is room for it until the client has read it.
func (s *socket) pong(payload []byte) bool {
	if len(payload) > 0 && s.acknowledged.Load() {
		if _, limited := s.over.executor.Charge(s.asking, len(payload)); limited != nil {
			return s.send(messagePong, "", nil)
		}
	}
	if s.over.take(s.asking, admission.Answers, len(payload)) != nil {
		return s.send(messagePong, "", nil)
	}
	defer s.over.give(s.asking, admission.Answers, len(payload))
	return s.send(messagePong, "", payload)
}

// end tells that an operation is over, with what it failed with if it did. What has been completed
// by the client is told nothing more.
func (s *socket) end(o *socketOperation, errs gqlerror.List) {
	if !s.finish(o.id, o) {
		return
	}
	if len(errs) > 0 {
		s.send(messageError, o.id, marshal(errs))
		return
	}
	s.send(messageComplete, o.id, nil)
}

// send writes a message, and reports whether that went well. Where it does not within the time for
// answers, the socket is cut.
func (s *socket) send(kind, id string, payload []byte) bool {
	text := make([]byte, 0, len(payload)+len(id)+64)
	text = append(text, `{"type":"`...)
	text = append(text, kind...)
	text = append(text, '"')
	if id != "" {
		text = append(append(text, `,"id":`...), marshal(id)...)
	}
	if len(payload) > 0 {
		text = append(append(text, `,"payload":`...), payload...)
	}
	text = append(text, '}')
	ctx, cancel := context.WithTimeout(context.Background(), s.over.limits.AnswerTime)
	defer cancel()
	if err := s.conn.Write(ctx, websocket.MessageText, text); err != nil {
		return s.cut("a message could not be written")
	}
	return true
}
