package lifecycle

import (
	"container/list"
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ordergraph/ordergraph/internal/admission"
)

// connectionTracker tracks the open connections, including WebSockets. If the pool of connections
// is exhausted, a new connection replaces an open connection (see connectionToEvict).
type connectionTracker struct {
	pool *admission.Pool
	// authenticated reports whether the server authenticates requests. If it is false, a connection
	// always belongs to the network address of its client.
	authenticated bool
	// trustedProxy is Options.TrustedProxy.
	trustedProxy func(remote string) bool

	mu   sync.Mutex
	open int
	// evicted is the number of connections that were evicted in favor of new connections, but are not
	// closed yet.
	evicted int
	// drained is closed when the last connection has been closed. It is nil while no call of wait is
	// in progress.
	drained chan struct{}
	// byOwner maps each Caller.Key to a list of the caller's connections. When a request ends, its
	// connection moves to the end of the list. So the first idle connection has been idle for the
	// longest time.
	byOwner map[string]*list.List
}

func newConnectionTracker(pool *admission.Pool, authenticated bool, trustedProxy func(remote string) bool) *connectionTracker {
	return &connectionTracker{pool: pool, authenticated: authenticated, trustedProxy: trustedProxy, byOwner: map[string]*list.List{}}
}

// wait waits until all connections are closed. The listener must be closed before the call. If ctx
// ends first, wait returns the error of ctx.
func (c *connectionTracker) wait(ctx context.Context) error {
	c.mu.Lock()
	none := make(chan struct{})
	if c.open == 0 {
		close(none)
	} else {
		c.drained = none
	}
	c.mu.Unlock()
	select {
	case <-none:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// closeAll closes all connections.
func (c *connectionTracker) closeAll() {
	c.mu.Lock()
	var all []*connection
	for _, owned := range c.byOwner {
		for element := owned.Front(); element != nil; element = element.Next() {
			all = append(all, element.Value.(*connection))
		}
	}
	c.mu.Unlock()
	for _, conn := range all {
		_ = conn.Close()
	}
}

// admit adds a new connection to the pool. If the pool is exhausted, admit first evicts another
// connection. If it cannot evict a connection, admit returns nil.
func (c *connectionTracker) admit(conn net.Conn) *connection {
	remote := conn.RemoteAddr().String()
	caller := admission.Caller{Key: "address/" + admission.Network(remote), Anonymous: c.authenticated && (c.trustedProxy == nil || !c.trustedProxy(remote))}
	for c.pool.TryAcquire(caller, 1) != nil {
		other := c.connectionToEvict()
		if other == nil {
			return nil
		}
		other.evict()
	}
	added := &connection{Conn: conn, tracker: c, caller: caller}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open++
	c.moveToBackLocked(added)
	return added
}

// connectionToEvict returns the connection to close when the pool is exhausted. Of the callers
// whose connections can be closed, it chooses the caller with the most connections. If there is no
// such caller, it returns nil.
func (c *connectionTracker) connectionToEvict() *connection {
	c.mu.Lock()
	defer c.mu.Unlock()
	anonymousCount := 0
	for _, owned := range c.byOwner {
		if owned.Front().Value.(*connection).caller.Anonymous {
			anonymousCount += owned.Len()
		}
	}
	// If anonymous callers use at least half of the pool, consider only anonymous callers.
	closeAnonymous := anonymousCount >= c.pool.Size/2
	var most *list.List
	for _, owned := range c.byOwner {
		closable := owned.Front().Value.(*connection).caller.Anonymous || !closeAnonymous && longestIdle(owned) != nil
		if closable && (most == nil || owned.Len() > most.Len()) {
			most = owned
		}
	}
	if most == nil {
		return nil
	}
	// The connection of an anonymous caller may be closed while it serves a request.
	if first := most.Front().Value.(*connection); first.caller.Anonymous {
		return first
	}
	return longestIdle(most)
}

// longestIdle returns the connection in a list that has been idle for the longest time. If all
// connections in the list serve requests, it returns nil.
func longestIdle(owned *list.List) *connection {
	for element := owned.Front(); element != nil; element = element.Next() {
		if conn := element.Value.(*connection); !conn.serving {
			return conn
		}
	}
	return nil
}

// moveToBackLocked moves a connection to the end of its owner's list in byOwner. c.mu must be held.
func (c *connectionTracker) moveToBackLocked(conn *connection) {
	c.removeLocked(conn)
	conn.owner = conn.caller.Key
	owned := c.byOwner[conn.owner]
	if owned == nil {
		owned = list.New()
		c.byOwner[conn.owner] = owned
	}
	conn.element = owned.PushBack(conn)
}

func (c *connectionTracker) removeLocked(conn *connection) {
	if conn.element == nil {
		return
	}
	owned := c.byOwner[conn.owner]
	owned.Remove(conn.element)
	conn.element = nil
	if owned.Len() == 0 {
		delete(c.byOwner, conn.owner)
	}
}

// trackRequests records which connections serve a request. If the caller exceeds its share of
// connections, has sent maxUncharged requests on the connection, or the server is shutting down, the
// connection is closed after the response.
func (c *connectionTracker) trackRequests(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, ok := r.Context().Value(connectionContextKey{}).(*connection)
		if !ok {
			next.ServeHTTP(w, r)
			return
		}
		if conn.beginRequest() || ShuttingDown(r.Context()) {
			w.Header().Set("Connection", "close")
		}
		defer conn.endRequest()
		next.ServeHTTP(w, r)
	})
}

// connection is an open connection that uses capacity of the pool.
type connection struct {
	net.Conn
	tracker *connectionTracker
	// isEvicted reports whether the connection was evicted in favor of a new connection.
	isEvicted atomic.Bool

	// The fields below are guarded by tracker.mu.

	caller admission.Caller
	// serving reports whether a request is in progress on the connection. It stays true after the
	// connection has become a WebSocket.
	serving, isWebSocket, closed bool
	// uncharged is the number of requests that cost no caller any points.
	uncharged int
	owner     string
	element   *list.Element
}

type connectionContextKey struct{}

// SetCaller makes the given caller the owner of the connection on which the request of ctx arrived.
func SetCaller(ctx context.Context, caller admission.Caller) {
	conn, ok := ctx.Value(connectionContextKey{}).(*connection)
	if !ok {
		return
	}
	conn.tracker.mu.Lock()
	defer conn.tracker.mu.Unlock()
	if conn.closed || conn.caller == caller {
		return
	}
	conn.tracker.pool.Transfer(conn.caller, caller, 1)
	conn.caller = caller
	conn.tracker.moveToBackLocked(conn)
}

// MarkWebSocket records that the connection of ctx has become a WebSocket.
func MarkWebSocket(ctx context.Context) {
	if conn, ok := ctx.Value(connectionContextKey{}).(*connection); ok {
		conn.tracker.mu.Lock()
		defer conn.tracker.mu.Unlock()
		conn.isWebSocket = true
	}
}

// maxUncharged is the maximum number of requests on one connection that cost no points, such as
// requests without a valid token, CORS preflights and health checks. After the last of them, the
// connection is closed. So a client that sends many of them must open many connections.
const maxUncharged = 8

// MarkCharged records that a caller was charged for the request of ctx.
func MarkCharged(ctx context.Context) {
	if conn, ok := ctx.Value(connectionContextKey{}).(*connection); ok {
		conn.tracker.mu.Lock()
		defer conn.tracker.mu.Unlock()
		conn.uncharged--
	}
}

// beginRequest records that a request on the connection is in progress. It reports whether the
// connection must be closed after the response, because its owner exceeds its share of the pool, or
// because of maxUncharged.
func (conn *connection) beginRequest() (last bool) {
	conn.tracker.mu.Lock()
	defer conn.tracker.mu.Unlock()
	conn.serving = true
	conn.uncharged++ // until MarkCharged
	return conn.uncharged >= maxUncharged || conn.tracker.pool.ExceedsShare(conn.caller)
}

// endRequest records that the request on the connection has ended.
func (conn *connection) endRequest() {
	conn.tracker.mu.Lock()
	defer conn.tracker.mu.Unlock()
	if !conn.closed && !conn.isWebSocket {
		conn.serving = false
		conn.tracker.byOwner[conn.owner].MoveToBack(conn.element)
	}
}

// Close closes the connection and releases its capacity in the pool. If the connection was evicted,
// Close does nothing, because evict closes such connections itself.
func (conn *connection) Close() error {
	conn.tracker.mu.Lock()
	defer conn.tracker.mu.Unlock()
	if conn.isEvicted.Load() {
		return nil
	}
	conn.releaseLocked()
	return conn.Conn.Close()
}

// releaseLocked releases the connection's capacity in the pool. tracker.mu must be held.
func (conn *connection) releaseLocked() {
	if conn.closed {
		return
	}
	conn.closed = true
	conn.tracker.pool.Release(conn.caller, 1)
	conn.tracker.removeLocked(conn)
	if conn.tracker.open--; conn.tracker.open == 0 && conn.tracker.drained != nil {
		close(conn.tracker.drained)
		conn.tracker.drained = nil
	}
}

const (
	// evictionDelay is how long an evicted connection of an anonymous caller stays open, but is not
	// served. Without this delay, an attacker could reconnect in a loop and use most of the CPU time.
	evictionDelay = time.Second
	// maxOpenEvicted is the maximum number of evicted connections that stay open. Further connections
	// are closed without delay.
	maxOpenEvicted = 256
)

// evict stops serving the connection and releases its capacity in the pool. Usually, evict closes
// the connection at once. A connection of an anonymous caller is closed only after evictionDelay,
// unless maxOpenEvicted evicted connections are already open.
func (conn *connection) evict() {
	t := conn.tracker
	t.mu.Lock()
	if conn.closed || !conn.caller.Anonymous || t.evicted >= maxOpenEvicted {
		t.mu.Unlock()
		_ = conn.Close()
		return
	}
	conn.isEvicted.Store(true)
	conn.releaseLocked()
	t.evicted++
	t.mu.Unlock()
	// With a deadline in the past, reads and writes fail, so that net/http stops serving the
	// connection.
	_ = conn.Conn.SetDeadline(time.Unix(1, 0))
	time.AfterFunc(evictionDelay, func() {
		t.mu.Lock()
		t.evicted--
		t.mu.Unlock()
		_ = conn.Conn.Close()
	})
}

// SetDeadline sets the deadlines of the connection. If the connection was evicted, SetDeadline does
// nothing, because the deadline that evict has set must stay in the past.
func (conn *connection) SetDeadline(at time.Time) error {
	return conn.unlessEvicted(conn.Conn.SetDeadline, at)
}

// SetReadDeadline is like SetDeadline, but sets only the deadline for reads.
func (conn *connection) SetReadDeadline(at time.Time) error {
	return conn.unlessEvicted(conn.Conn.SetReadDeadline, at)
}

// SetWriteDeadline is like SetDeadline, but sets only the deadline for writes.
func (conn *connection) SetWriteDeadline(at time.Time) error {
	return conn.unlessEvicted(conn.Conn.SetWriteDeadline, at)
}

func (conn *connection) unlessEvicted(set func(time.Time) error, at time.Time) error {
	if conn.isEvicted.Load() {
		return nil
	}
	return set(at)
}

// listener accepts a connection only if the pool has capacity for it.
type listener struct {
	net.Listener
	tracker *connectionTracker
}

// Accept returns the next connection that the pool admits. It closes the connections that the pool
// does not admit.
func (l listener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if admitted := l.tracker.admit(conn); admitted != nil {
			return admitted, nil
		}
		_ = conn.Close()
	}
}
