package server

import (
	"container/list"
	"context"
	"net"
	"net/http"
	"sync"

	"github.com/ordergraph/ordergraph/internal/admission"
)

// connections tracks the open connections, including those that have become WebSockets. A new
// connection belongs to a stranger until a request on it has been authenticated. If the pool is
// exhausted, connections closes one connection of the caller that has the most. So neither silent
// clients nor clients with many open connections block other clients.
type connections struct {
	pool *admission.Pool
	// authenticated reports whether requests are authenticated. Otherwise a connection belongs to its
	// network address.
	authenticated bool

	mu   sync.Mutex
	open int
	// none is closed when no connection is open. It is nil unless wait has been called.
	none chan struct{}
	// owned has the connections of each caller, the one that has been idle for longest first.
	owned map[string]*list.List
}

func newConnections(pool *admission.Pool, authenticated bool) *connections {
	return &connections{pool: pool, authenticated: authenticated, owned: map[string]*list.List{}}
}

// wait waits until no connection is open. The listener must be closed before. It returns the
// context's error if the context ends first.
func (c *connections) wait(ctx context.Context) error {
	c.mu.Lock()
	none := make(chan struct{})
	if c.open == 0 {
		close(none)
	} else {
		c.none = none
	}
	c.mu.Unlock()
	select {
	case <-none:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// admit counts a new connection. It returns nil if the pool has no capacity for it.
func (c *connections) admit(conn net.Conn) *connection {
	caller := admission.Caller{Key: "address/" + networkOf(conn.RemoteAddr().String()), Stranger: c.authenticated}
	for c.pool.Take(caller, 1) != nil {
		other := c.replaceable()
		if other == nil {
			return nil
		}
		_ = other.Close()
	}
	added := &connection{Conn: conn, all: c, caller: caller}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open++
	c.moveLocked(added)
	return added
}

// replaceable returns the connection to close for a new one, or nil if none can be closed. The
// connection belongs to the caller that has the most connections. Of a stranger, replaceable
// returns the oldest connection, even if it serves a request. Of another caller, it returns the one
// that has been idle for longest. If strangers have half of the pool, it returns a stranger's
// connection.
func (c *connections) replaceable() *connection {
	c.mu.Lock()
	defer c.mu.Unlock()
	strangerCount := 0
	for _, owned := range c.owned {
		if owned.Front().Value.(*connection).caller.Stranger {
			strangerCount += owned.Len()
		}
	}
	closeStranger := strangerCount >= c.pool.Size/2
	var most *list.List
	for _, owned := range c.owned {
		closable := owned.Front().Value.(*connection).caller.Stranger || !closeStranger && firstSilent(owned) != nil
		if closable && (most == nil || owned.Len() > most.Len()) {
			most = owned
		}
	}
	if most == nil {
		return nil
	}
	if first := most.Front().Value.(*connection); first.caller.Stranger {
		return first
	}
	return firstSilent(most)
}

// firstSilent returns the connection that has been idle for longest, or nil if each connection
// serves a request.
func firstSilent(owned *list.List) *connection {
	for element := owned.Front(); element != nil; element = element.Next() {
		if conn := element.Value.(*connection); !conn.serving {
			return conn
		}
	}
	return nil
}

// moveLocked appends a connection to the connections of its caller.
func (c *connections) moveLocked(conn *connection) {
	c.removeLocked(conn)
	conn.owner = conn.caller.Key
	owned := c.owned[conn.owner]
	if owned == nil {
		owned = list.New()
		c.owned[conn.owner] = owned
	}
	conn.place = owned.PushBack(conn)
}

func (c *connections) removeLocked(conn *connection) {
	if conn.place == nil {
		return
	}
	owned := c.owned[conn.owner]
	owned.Remove(conn.place)
	conn.place = nil
	if owned.Len() == 0 {
		delete(c.owned, conn.owner)
	}
}

// served is middleware that tracks which connections serve a request. If a caller exceeds its
// share, the connection is closed after the response.
func (c *connections) served(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, ok := r.Context().Value(connectionKey{}).(*connection)
		if !ok {
			next.ServeHTTP(w, r)
			return
		}
		if conn.begin() {
			w.Header().Set("Connection", "close")
		}
		defer conn.end()
		next.ServeHTTP(w, r)
	})
}

// connection is a connection that counts against the pool.
type connection struct {
	net.Conn
	all *connections

	// The fields below are guarded by all.mu.

	caller admission.Caller
	// serving reports whether a request is in progress. It remains set for a WebSocket.
	serving, isSocket, closed bool
	owner                     string
	place                     *list.Element
}

type connectionKey struct{}

// ownedBy makes a caller the owner of a context's connection.
func ownedBy(ctx context.Context, caller admission.Caller) {
	conn, ok := ctx.Value(connectionKey{}).(*connection)
	if !ok {
		return
	}
	conn.all.mu.Lock()
	defer conn.all.mu.Unlock()
	if conn.closed || conn.caller == caller {
		return
	}
	conn.all.pool.Move(conn.caller, caller, 1)
	conn.caller = caller
	conn.all.moveLocked(conn)
}

// staysOpen records that the connection of a context has become a WebSocket.
func staysOpen(ctx context.Context) {
	if conn, ok := ctx.Value(connectionKey{}).(*connection); ok {
		conn.all.mu.Lock()
		defer conn.all.mu.Unlock()
		conn.isSocket = true
	}
}

// begin records that a request is in progress. It reports whether the caller exceeds its share.
func (conn *connection) begin() (tooMany bool) {
	conn.all.mu.Lock()
	defer conn.all.mu.Unlock()
	conn.serving = true
	return conn.all.pool.OverShare(conn.caller)
}

// end records that the request has ended.
func (conn *connection) end() {
	conn.all.mu.Lock()
	defer conn.all.mu.Unlock()
	if !conn.closed && !conn.isSocket {
		conn.serving = false
		conn.all.owned[conn.owner].MoveToBack(conn.place)
	}
}

// Close closes the connection and releases its capacity.
func (conn *connection) Close() error {
	conn.all.mu.Lock()
	defer conn.all.mu.Unlock()
	if !conn.closed {
		conn.closed = true
		conn.all.pool.Give(conn.caller, 1)
		conn.all.removeLocked(conn)
		if conn.all.open--; conn.all.open == 0 && conn.all.none != nil {
			close(conn.all.none)
			conn.all.none = nil
		}
	}
	return conn.Conn.Close()
}

// listener accepts connections that the pool admits.
type listener struct {
	net.Listener
	admitted *connections
}

// Accept waits for the next connection that the pool admits, and closes all others.
func (l listener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if admitted := l.admitted.admit(conn); admitted != nil {
			return admitted, nil
		}
		_ = conn.Close()
	}
}
