package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
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
	"github.com/ordergraph/ordergraph/internal/auth"
	"github.com/ordergraph/ordergraph/internal/httpheader"
	"github.com/ordergraph/ordergraph/internal/lifecycle"
	"github.com/ordergraph/ordergraph/internal/telemetry"
)

// subprotocol is the only WebSocket subprotocol that the server supports
// (https://github.com/enisdenjo/graphql-ws/blob/master/PROTOCOL.md).
const subprotocol = "graphql-transport-ws"

// Close codes of the protocol.
const (
	closeBadMessage         websocket.StatusCode = 4400
	closeUnauthorized       websocket.StatusCode = 4401
	closeForbidden          websocket.StatusCode = 4403
	closeBadSubprotocol     websocket.StatusCode = 4406
	closeInitTimeout        websocket.StatusCode = 4408
	closeDuplicateOperation websocket.StatusCode = 4409
	closeInitTwice          websocket.StatusCode = 4429
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

// initPayloadHeaders are headers that a client can also send in the payload of connection_init.
// This is necessary because web pages cannot set headers when they open a WebSocket.
var initPayloadHeaders = [...]string{"Authorization", ExplainHeader}

// closeTimeout is how long the server waits for the client's close frame. Before connection_ack, it
// waits only unacknowledgedCloseTimeout, because the socket uses capacity until it is closed.
const (
	closeTimeout               = 5 * time.Second
	unacknowledgedCloseTimeout = 250 * time.Millisecond
)

// isWebSocketUpgrade reports whether a request has the header Upgrade: websocket. websocket.Accept
// later checks the other headers of the upgrade.
func isWebSocketUpgrade(r *http.Request) bool {
	return strings.EqualFold(r.Header.Get("Upgrade"), "websocket")
}

// webSocketHandler serves GraphQL over WebSockets. It uses the executor and the pools of
// httpHandler.
type webSocketHandler struct {
	httpHandler
	// originAllowed reports whether CORS allows the origin of a request. It is the only protection
	// against pages of other sites, because browsers send no CORS preflight before they open a
	// WebSocket.
	originAllowed func(*http.Request) bool
	log           *slog.Logger
	observer      *telemetry.Observer
	// initHeaders contains the names of the headers that connection_init can contain:
	// initPayloadHeaders and the headers of the trace context.
	initHeaders []string
}

// ServeHTTP upgrades a request to a WebSocket. It starts a goroutine that serves the socket until
// the socket is closed.
func (h webSocketHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if r.Header.Get("Origin") != "" && !httpheader.SameOrigin(r) && !h.originAllowed(r) {
		h.writeRefusal(w, r, newRefusal(http.StatusForbidden, errcode.CSRFPrevented, "pages of this origin may not open a WebSocket: add the origin to ORDERGRAPH_CORS_ORIGINS"), typeJSON)
		return
	}
	caller, refused := h.upgradingCaller(r)
	if refused == nil {
		refused = poolRefusal(h.pools[admission.PoolSockets].TryAcquire(caller, 1))
	}
	if refused != nil {
		h.writeRefusal(w, r, refused, typeJSON)
		return
	}
	s := &socket{handler: h, header: http.Header{}, remote: r.RemoteAddr, operations: map[string]*socketOperation{}}
	for _, name := range h.initHeaders {
		s.header[name] = r.Header.Values(name)
	}
	s.ctx, s.cancel = context.WithCancel(context.WithoutCancel(r.Context()))
	s.netConn = &meteredConn{closing: s.ctx.Done()}
	s.netConn.received.Store(true)
	conn, err := websocket.Accept(&hijackedWriter{w, s.netConn}, r, &websocket.AcceptOptions{
		// If a client offers only unsupported subprotocols, the server accepts one of them and then
		// closes the socket with code 4406. If the server rejected the upgrade instead, the client would
		// not receive the code.
		Subprotocols:       append([]string{subprotocol}, offeredSubprotocols(r.Header)...),
		InsecureSkipVerify: true, // the origin has been checked above
		CompressionMode:    websocket.CompressionDisabled,
	})
	if err != nil {
		s.cancel()
		h.pools[admission.PoolSockets].Release(caller, 1)
		h.log.DebugContext(r.Context(), "upgrade to WebSocket failed", "reason", err, "requestId", requestID(r.Context()))
		return // Accept has sent the response
	}
	lifecycle.MarkWebSocket(r.Context())
	s.conn = conn
	conn.SetReadLimit(int64(s.maxMessageSize()))
	s.operationContext = admission.WithCaller(s.ctx, caller)
	s.release = func() { h.pools[admission.PoolSockets].Release(caller, 1) }
	stopping := lifecycle.StoppingContext(r.Context())
	// The socket gets its own goroutine, so that the goroutine of net/http can end. Otherwise, the
	// large stack of that goroutine, its buffers and the request would stay in memory while the socket
	// is open.
	go s.serve(stopping)
}

// upgradingCaller returns the caller to which a socket belongs until connection_init. If the
// upgrade request has a valid token, this is the token's caller, which pays for the request.
// Otherwise, it is the client's address, because the token can still arrive in connection_init.
func (h webSocketHandler) upgradingCaller(r *http.Request) (admission.Caller, *refusal) {
	caller := h.anonymousCaller(r.RemoteAddr)
	if h.authentication.tokens == nil {
		return caller, nil
	}
	if r.Header.Get("Authorization") != "" {
		if identified, refused := h.authenticate(r); refused == nil {
			_, limited := h.charge(identified, 0)
			return admission.CallerFromContext(identified.Context()), limited
		}
	}
	lifecycle.SetCaller(r.Context(), caller)
	return caller, nil
}

// offeredSubprotocols returns the subprotocols that a client offers.
func offeredSubprotocols(h http.Header) []string {
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

// socket is one WebSocket. One goroutine reads messages, and each operation has its own goroutine.
// Messages to the client are not queued, so a slow client blocks only its own operations.
type socket struct {
	handler webSocketHandler
	conn    *websocket.Conn
	// netConn is the network connection that conn uses. remote is the client's address.
	netConn *meteredConn
	remote  string
	// header contains the upgrade request's headers that handler.initHeaders lists. traceContext
	// contains the headers with the client's trace context.
	header, traceContext http.Header
	// ctx ends when the socket is closed.
	ctx       context.Context
	cancel    context.CancelFunc
	closeOnce sync.Once
	// operationContext is the parent context of operations. It is derived from ctx, and contains the
	// caller and the principal. Only the goroutine that reads messages uses it.
	operationContext context.Context
	// initialised is set when the client has sent connection_init. acknowledged is set when the server
	// has accepted connection_init.
	initialised, acknowledged atomic.Bool
	goroutines                sync.WaitGroup
	// release stops watching the token and releases the capacity of the socket. Only the goroutine
	// that reads messages calls it.
	release func()

	mu         sync.Mutex
	operations map[string]*socketOperation
	// executing counts the queries and mutations in progress, and the subscriptions that have not
	// started yet.
	executing sync.WaitGroup
	// draining reports whether the server is stopping. A draining socket starts no more operations.
	draining bool
	// schedule starts initTimer and pingTimer. ended is true if the socket has ended. schedule then
	// starts no timer.
	initTimer, pingTimer *time.Timer
	ended                bool
}

// socketOperation is an operation in progress.
type socketOperation struct {
	id string
	// payload is the payload of the subscribe message. It is set to nil after decoding, so that it
	// does not use memory while a slow client reads the responses.
	payload []byte
	ctx     context.Context
	cancel  context.CancelFunc
	// observed records the operation for telemetry. It is nil if telemetry is off.
	observed *telemetry.Request
}

// serve reads messages until the socket is closed. Then it releases the resources of the socket.
func (s *socket) serve(stopping context.Context) {
	defer func() {
		s.cancel()
		s.mu.Lock()
		s.ended = true
		for _, timer := range []*time.Timer{s.initTimer, s.pingTimer} {
			if timer != nil {
				timer.Stop()
			}
		}
		s.mu.Unlock()
		_ = s.conn.CloseNow() // if s.close is in progress, CloseNow waits for it
		s.goroutines.Wait()
		s.release()
	}()
	defer s.recoverPanic()
	if s.conn.Subprotocol() != subprotocol {
		s.close(closeBadSubprotocol, "Subprotocol not acceptable")
		return
	}
	defer context.AfterFunc(stopping, s.drain)()
	s.schedule(&s.initTimer, s.initTime(), func() {
		if !s.acknowledged.Load() {
			s.close(closeInitTimeout, "Connection initialisation timeout")
		}
	})
	for s.handleNext() {
	}
}

// initTime returns how long the server waits for connection_init. It is Limits.InitTime if the pool
// of sockets is empty, and decreases to minInitTime as the pool fills. So sockets without
// connection_init cannot keep other clients out.
func (s *socket) initTime() time.Duration {
	free := s.handler.pools[admission.PoolSockets].FreePart(admission.CallerFromContext(s.operationContext))
	return max(time.Duration(float64(s.handler.limits.InitTime)*free), min(minInitTime, s.handler.limits.InitTime))
}

// minInitTime is the minimum time to wait for connection_init, unless Limits.InitTime is lower.
const minInitTime = 500 * time.Millisecond

// drain closes the socket because the server stops. It first waits until no query or mutation is in
// progress. The client then reconnects to another server.
func (s *socket) drain() {
	s.mu.Lock()
	s.draining = true
	s.mu.Unlock()
	s.executing.Wait()
	s.close(websocket.StatusGoingAway, "Going away")
}

// schedule starts a timer that calls f after the duration d. If the socket has ended, schedule does
// nothing.
func (s *socket) schedule(timer **time.Timer, d time.Duration, f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		*timer = time.AfterFunc(d, func() {
			defer s.recoverPanic()
			f()
		})
	}
}

// recoverPanic recovers from a panic in a goroutine of the socket. It logs the panic and closes the
// socket.
func (s *socket) recoverPanic() {
	if panicked := recover(); panicked != nil {
		s.handler.log.ErrorContext(s.ctx, "socket failed", "error", fmt.Sprintf("panic: %v\n%s", panicked, debug.Stack()), "requestId", requestID(s.ctx))
		s.close(websocket.StatusInternalError, "Internal server error")
	}
}

// close closes the socket. It waits up to closeTimeout or unacknowledgedCloseTimeout for the client's
// close frame. Only the first call of close or abort has an effect. close always returns false, so
// that a message handler can return its result.
func (s *socket) close(code websocket.StatusCode, reason string) bool {
	s.closeOnce.Do(func() {
		s.handler.log.DebugContext(s.ctx, "a socket is closed", "code", int(code), "reason", reason, "requestId", requestID(s.ctx))
		s.cancel()
		// If a message is arriving, conn.Close first reads the rest of the message. The deadline limits
		// how long conn.Close reads.
		timeout := closeTimeout
		if !s.acknowledged.Load() {
			timeout = unacknowledgedCloseTimeout
		}
		_ = s.netConn.SetReadDeadline(time.Now().Add(timeout))
		_ = s.conn.Close(code, reason) // this closes the connection even if the client sends no close frame
	})
	return false
}

// abort closes the connection without a close frame, because the client probably does not read its
// messages. Like close, it always returns false.
func (s *socket) abort(reason string) bool {
	s.closeOnce.Do(func() {
		s.handler.log.DebugContext(s.ctx, "a socket is cut", "reason", reason, "requestId", requestID(s.ctx))
		s.cancel()
		_ = s.conn.CloseNow()
	})
	return false
}

// handleNext reads the client's next message and handles it. It reports whether the socket is still
// open.
func (s *socket) handleNext() bool {
	kind, text, err := s.receive()
	if err != nil || s.ctx.Err() != nil {
		return false
	}
	if kind != websocket.MessageText {
		return s.close(closeBadMessage, "Invalid message: it is not text")
	}
	m, err := parseMessage(text)
	if err != nil {
		return s.close(closeBadMessage, "Invalid message: "+err.Error())
	}
	switch m.Type {
	case messageInit:
		return s.initialise(m)
	case messagePing:
		return s.sendPong(m.Payload)
	case messagePong:
		return true
	case messageSubscribe:
		return s.subscribe(m)
	default: // messageComplete
		s.removeOperation(m.ID, nil)
		return true
	}
}

// receive waits for a message from the client and reads it. Once a message has begun, the rest must
// arrive within Limits.BodyTime. Otherwise, receive closes the connection.
func (s *socket) receive() (websocket.MessageType, []byte, error) {
	// The context has no deadline, because the library would close the connection when the context
	// ends. The server could then not send a close frame with the reason.
	kind, reader, err := s.conn.Reader(context.Background())
	if err != nil {
		return 0, nil, err
	}
	slow := time.AfterFunc(s.handler.limits.BodyTime, func() { s.abort("a message did not arrive in time") })
	defer slow.Stop()
	// Most messages are short. Only messages over maxUncountedBody count against
	// admission.PoolRequestBodies.
	text, err := io.ReadAll(io.LimitReader(reader, maxUncountedBody))
	if err == nil && len(text) == maxUncountedBody {
		longest := s.maxMessageSize()
		if full := s.handler.acquire(s.operationContext, admission.PoolRequestBodies, longest); full != nil {
			s.close(websocket.StatusTryAgainLater, "No capacity for long messages (pool "+full.pool+")")
			return 0, nil, errNoCapacity
		}
		defer s.handler.releaseCapacity(s.operationContext, admission.PoolRequestBodies, longest)
		var rest []byte
		rest, err = io.ReadAll(reader)
		text = append(text, rest...)
	}
	if errors.Is(err, websocket.ErrMessageTooBig) {
		// The library has already sent a close frame. s.close does not cut the connection at once, so
		// that a client that is still sending can read this frame.
		s.close(websocket.StatusMessageTooBig, "Message too long")
	}
	return kind, text, err
}

// maxMessageSize returns the maximum length of a client's message in bytes. The maximum is smaller
// before connection_ack, because the client has not been authenticated, and connection_init is
// short.
func (s *socket) maxMessageSize() int {
	if s.acknowledged.Load() {
		return s.handler.limits.Body
	}
	return min(maxInitMessageBytes, s.handler.limits.Body)
}

var errNoCapacity = errors.New("no capacity for long messages")

// initialise handles connection_init. It authenticates the client by the token in the payload. If
// the payload contains no token, it uses the token of the upgrade request.
func (s *socket) initialise(m clientMessage) bool {
	if s.initialised.Swap(true) {
		return s.close(closeInitTwice, "Too many initialisation requests")
	}
	parameters := map[string]json.RawMessage{}
	if len(m.Payload) > 0 && json.Unmarshal(m.Payload, &parameters) != nil {
		return s.close(closeBadMessage, "Invalid message: the payload of connection_init is not an object")
	}
	header, ok := s.initHeaders(parameters)
	if !ok {
		return s.close(closeForbidden, "Forbidden")
	}
	s.operationContext = withExplain(s.operationContext, header)
	if s.handler.authentication.tokens != nil && !s.authenticate(header) {
		return false
	}
	s.traceContext = s.handler.observer.TraceContext(header)
	s.header = nil // removes the token from memory after its verification
	s.acknowledged.Store(true)
	ctx := s.operationContext
	s.netConn.startCharging(func(points int) error { return s.handler.executor.ChargeMessages(ctx, points) })
	s.conn.SetReadLimit(int64(s.maxMessageSize()))
	if !s.send(messageAck, "", nil) {
		return false
	}
	s.schedule(&s.pingTimer, s.handler.limits.KeepAlive, s.pingPeriodically)
	return true
}

// authenticate verifies the client's token and reports whether the socket remains open. If the
// token is invalid, or becomes invalid later, the socket is closed.
func (s *socket) authenticate(header http.Header) bool {
	ctx, cancel := context.WithTimeout(s.ctx, s.handler.limits.RequestTime)
	defer cancel()
	identity, refused := s.handler.authentication.identify(ctx, header, s.remote)
	switch {
	case refused == nil:
	case refused.status == http.StatusUnauthorized:
		return s.close(closeForbidden, "Forbidden")
	default:
		return s.close(websocket.StatusTryAgainLater, "The token cannot be verified right now")
	}
	asking := s.handler.withIdentity(s.operationContext, identity)
	if admission.CallerFromContext(asking) != admission.CallerFromContext(s.operationContext) {
		if full := s.handler.acquire(asking, admission.PoolSockets, 1); full != nil {
			return s.close(websocket.StatusTryAgainLater, "Too many sockets (pool "+full.pool+")")
		}
		s.release() // releases the capacity of the unauthenticated socket
		s.release = func() { s.handler.releaseCapacity(asking, admission.PoolSockets, 1) }
	}
	s.operationContext = asking
	unwatch, release := s.handler.authentication.watchToken(asking, func() {
		defer s.recoverPanic()
		s.close(closeForbidden, "Forbidden: the token is no longer valid")
	}), s.release
	s.release = func() {
		unwatch()
		release()
	}
	return true
}

// initHeaders returns the headers that s.handler.initHeaders lists. A header in the payload of
// connection_init replaces the same header of the upgrade request. initHeaders returns false if the
// payload contains two spellings of a listed header. It also returns false if the header's value is
// not a string, a boolean or null.
func (s *socket) initHeaders(parameters map[string]json.RawMessage) (http.Header, bool) {
	header := http.Header{}
	for _, name := range s.handler.initHeaders {
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

// pingPeriodically pings the client at the interval Limits.KeepAlive. If the client has sent
// nothing since the last ping, pingPeriodically closes the connection.
func (s *socket) pingPeriodically() {
	if !s.netConn.active() {
		s.abort("the client does not respond")
		return
	}
	if s.send(messagePing, "", nil) {
		s.schedule(&s.pingTimer, s.handler.limits.KeepAlive, s.pingPeriodically)
	}
}

// subscribe handles a subscribe message: it starts the operation in the message. It reports whether
// the socket is still open.
func (s *socket) subscribe(m clientMessage) bool {
	if !s.acknowledged.Load() {
		return s.close(closeUnauthorized, "Unauthorized")
	}
	if err := checkSubscribePayload(m.Payload); err != nil {
		return s.close(closeBadMessage, "Invalid message: "+err.Error())
	}
	o, parent := &socketOperation{id: m.ID, payload: m.Payload}, s.operationContext
	if s.handler.observer != nil {
		parent, o.observed = s.handler.observer.Begin(parent, requestID(parent), telemetry.TransportWebSocket, "", "", s.traceContext)
		if identity, ok := parent.Value(identityKey{}).(auth.Identity); ok {
			o.observed.SetPrincipal(identity.Principal)
		}
	}
	s.mu.Lock()
	_, exists := s.operations[o.id]
	full, draining := len(s.operations) >= s.handler.limits.SocketSubscriptions, s.draining
	if !exists && !full && !draining {
		o.ctx, o.cancel = context.WithCancel(parent)
		s.operations[o.id] = o
		s.executing.Add(1)
	}
	s.mu.Unlock()
	switch {
	case draining:
		return true // the client repeats the operation after it has reconnected
	case exists:
		return s.close(closeDuplicateOperation, "Subscriber for "+errcode.Excerpt(o.id, maxShownOperationID)+" already exists")
	case full:
		full := newRefusal(http.StatusServiceUnavailable, errcode.TooManySubscriptions, "the socket has reached its maximum of %d operations in progress: complete an operation, or open another socket", s.handler.limits.SocketSubscriptions)
		o.observed.Fail(full.code, full.pool)
		defer o.observed.End(0)
		return s.send(messageError, o.id, mustMarshal(full.result().Errors))
	}
	if refused := s.handler.acquire(o.ctx, admission.PoolSubscriptions, 1); refused != nil {
		s.handler.recordRefusal(o.ctx, refused)
		s.goroutines.Go(func() {
			defer s.executing.Done()
			defer s.recoverPanic()
			defer o.observed.End(0)
			delayRefusal(o.ctx, refused, graph.Result{})
			s.complete(o, refused.result().Errors)
		})
		return true
	}
	done := func() {
		s.removeOperation(o.id, o)
		s.handler.releaseCapacity(o.ctx, admission.PoolSubscriptions, 1)
		o.observed.End(0)
	}
	s.goroutines.Go(func() {
		defer s.executing.Done()
		following := false
		defer s.recoverPanic()
		defer func() {
			if !following {
				done()
			}
		}()
		stream := s.execute(o)
		if stream == nil {
			return
		}
		// Starting a subscription has enlarged the stack of this goroutine. The events are sent by a new
		// goroutine with a small stack, because a subscription can stay open for a long time.
		following = true
		s.goroutines.Go(func() {
			defer s.recoverPanic()
			defer done()
			defer stream.Close()
			s.sendEvents(o, stream)
		})
	})
	return true
}

// maxShownOperationID limits how many bytes of an operation ID a close frame shows in its reason.
// WebSockets limit the whole reason to 123 bytes.
const maxShownOperationID = 60

// removeOperation cancels and removes the operation with the given ID. If o is not nil and a newer
// operation uses the ID, removeOperation keeps the newer operation. It reports whether it has
// removed an operation.
func (s *socket) removeOperation(id string, o *socketOperation) bool {
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

// execute executes an operation. It sends the result of a query or mutation. For a subscription, it
// returns the stream of events instead.
func (s *socket) execute(o *socketOperation) (stream *graph.Subscription) {
	charged := s.handler.executor.RequestCost(o.ctx, len(o.payload)) // netConn has taken these points
	decode := func() (graph.Request, *refusal) {
		request, refused := decodeBody(o.payload)
		request.ChargedPoints = charged
		return request, refused
	}
	result, refused := s.handler.execute(o.ctx, receivedRequest{decode, len(o.payload)}, func(ctx context.Context, request graph.Request) (result graph.Result) {
		stream, result = s.handler.executor.Start(ctx, request)
		return result
	})
	o.payload = nil
	delayRefusal(o.ctx, refused, result)
	switch {
	case refused != nil:
		s.handler.recordRefusal(o.ctx, refused)
		s.complete(o, refused.result().Errors)
	case stream != nil:
		return stream
	case result.Outcome != graph.Executed:
		s.complete(o, result.Errors)
	default:
		s.sendNext(o, result)
		s.complete(o, nil)
	}
	return nil
}

// sendEvents sends a subscription's events.
func (s *socket) sendEvents(o *socketOperation, stream *graph.Subscription) {
	for {
		result, more := stream.Next(o.ctx)
		if !more {
			s.complete(o, result.Errors)
			return
		}
		if !s.sendNext(o, result) {
			return
		}
	}
}

// sendNext sends a result of an operation in a message of type next. It reports whether the
// operation continues.
func (s *socket) sendNext(o *socketOperation, result graph.Result) bool {
	if o.ctx.Err() != nil {
		return false
	}
	payload := encodeResult(result)
	if full := s.handler.acquire(o.ctx, admission.PoolResponses, len(payload)); full != nil {
		if !result.Mutation {
			s.complete(o, full.result().Errors)
			return false
		}
		payload = encodeResult(mutationResponseDropped()) // too short to count against the pool
	}
	defer s.handler.releaseCapacity(o.ctx, admission.PoolResponses, len(payload))
	o.observed.AddBytes(len(payload))
	return s.send(messageNext, o.id, payload)
}

// sendPong responds to a ping. The pong repeats the payload of the ping. If admission.PoolResponses
// has no capacity, the pong has no payload.
func (s *socket) sendPong(payload []byte) bool {
	if s.handler.acquire(s.operationContext, admission.PoolResponses, len(payload)) != nil {
		return s.send(messagePong, "", nil)
	}
	defer s.handler.releaseCapacity(s.operationContext, admission.PoolResponses, len(payload))
	return s.send(messagePong, "", payload)
}

// complete ends an operation with a message of type error or complete. While the socket is being
// closed, complete sends nothing, so that the client resumes a subscription on another server.
func (s *socket) complete(o *socketOperation, errs gqlerror.List) {
	if !s.removeOperation(o.id, o) || s.ctx.Err() != nil {
		return
	}
	if len(errs) > 0 {
		payload := mustMarshal(errs)
		o.observed.AddBytes(len(payload))
		s.send(messageError, o.id, payload)
		return
	}
	s.send(messageComplete, o.id, nil)
}

// send writes a message to the client and reports whether the write succeeded. If the write fails
// or takes longer than Limits.AnswerTime, send closes the connection.
func (s *socket) send(kind, id string, payload []byte) bool {
	text := make([]byte, 0, len(payload)+len(id)+64)
	text = append(text, `{"type":"`...)
	text = append(text, kind...)
	text = append(text, '"')
	if id != "" {
		text = append(append(text, `,"id":`...), mustMarshal(id)...)
	}
	if len(payload) > 0 {
		text = append(append(text, `,"payload":`...), payload...)
	}
	text = append(text, '}')
	ctx, cancel := context.WithTimeout(context.Background(), s.handler.limits.AnswerTime)
	defer cancel()
	if err := s.conn.Write(ctx, websocket.MessageText, text); err != nil {
		return s.abort("a message could not be written")
	}
	return true
}
