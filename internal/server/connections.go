package server

import (
	"context"
	"net"
	"net/http"
	"sync"
)

// connections counts the connections that are open, those that have become sockets included. The
// listener stops at the most that may be; this sees to it that those that are idle do not take all
// the room, for up to idleTimeout each: beyond three quarters, answers close their connection. What
// is left is taken by clients who are sending, asking or reading, each within a limit of time.
// Sockets and streams of events, which stay, get no more than those three quarters (see lasting).
type connections struct {
	most int

	mu   sync.Mutex
	open int
	// none is closed when no connection is open; nil where nobody waits for that.
	none chan struct{}
}

// lasting is how many of so many connections can be sockets and streams of events.
func lasting(connections int) int { return max(1, connections*3/4) }

// on counts the connections of a listener.
func (c *connections) on(l net.Listener) net.Listener { return countedListener{l, c} }

func (c *connections) changed(by int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open += by
	if c.open == 0 && c.none != nil {
		close(c.none)
		c.none = nil
	}
}

// wait waits until no connection is open, when no more are accepted.
//
// Errors: that of the context.
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

func (c *connections) crowded() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open > c.most*3/4
}

func (c *connections) relieved(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !upgrades(r) && c.crowded() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

// countedListener tells connections what it accepts and what is closed. The states that net/http
// tells end where a connection becomes a socket.
type countedListener struct {
	net.Listener
	counted *connections
}

// Accept waits for the next connection.
func (l countedListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.counted.changed(+1)
	return &countedConn{Conn: conn, counted: l.counted}, nil
}

type countedConn struct {
	net.Conn
	counted *connections
	closed  sync.Once
}

// Close closes the connection.
func (c *countedConn) Close() error {
	err := c.Conn.Close()
	c.closed.Do(func() { c.counted.changed(-1) })
	return err
}
