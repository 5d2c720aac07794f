package lifecycle

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ordergraph/ordergraph/internal/admission"
)

// An evicted connection of an anonymous caller is not served, and stays open for evictionDelay. So a
// client that opens a new connection for each closed one is slow.
func TestEvictedConnectionsStayOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := admission.New(admission.Sizes{admission.PoolConnections: 4})[admission.PoolConnections]
		c := newConnectionTracker(pool, true, nil) // anonymous callers have half of the pool
		open := func() (*connection, net.Conn) {
			server, client := net.Pipe()
			return c.admit(server), client
		}
		first, client := open()
		for range 2 {
			open()
		}
		if pool.Used() != 2 || c.evicted != 1 {
			t.Fatalf("%d connections are open and %d evicted, want 2 and 1", pool.Used(), c.evicted)
		}
		_ = first.SetDeadline(time.Time{}) // as net/http before the next request
		if _, err := first.Read(make([]byte, 1)); err == nil {
			t.Error("an evicted connection can be read")
		}
		_ = first.Close()
		began := time.Now()
		if _, err := client.Read(make([]byte, 1)); !errors.Is(err, io.EOF) || time.Since(began) != evictionDelay {
			t.Errorf("the client reads %v after %v, want EOF after %v", err, time.Since(began), evictionDelay)
		}
		synctest.Wait()
		if c.evicted != 0 {
			t.Errorf("%d evicted connections are left", c.evicted)
		}
		// A connection with a known caller is closed at once.
		known, client := open()
		SetCaller(context.WithValue(t.Context(), connectionContextKey{}, known), admission.Caller{Key: "known"})
		known.evict()
		began = time.Now()
		if _, err := client.Read(make([]byte, 1)); !errors.Is(err, io.EOF) || time.Since(began) != 0 {
			t.Errorf("the client of a known caller reads %v after %v, want EOF at once", err, time.Since(began))
		}
		// With too many evicted connections, further ones are closed at once.
		for range maxOpenEvicted + 2 {
			_, client = open()
		}
		if c.evicted != maxOpenEvicted {
			t.Errorf("%d evicted connections are open, want %d", c.evicted, maxOpenEvicted)
		}
		last := client
		for range 2 {
			open()
		}
		began = time.Now()
		if _, err := last.Read(make([]byte, 1)); !errors.Is(err, io.EOF) || time.Since(began) != 0 {
			t.Errorf("the client reads %v after %v, want EOF at once", err, time.Since(began))
		}
		time.Sleep(2 * evictionDelay) // all timers of the bubble end
	})
}

// Connections of a trusted proxy do not count as connections of callers without a token, so they can
// use more than half of the pool.
func TestConnectionsOfTrustedProxies(t *testing.T) {
	pool := admission.New(admission.Sizes{admission.PoolConnections: 16})[admission.PoolConnections]
	for trusted, want := range map[bool]int{false: 7, true: 14} {
		c := newConnectionTracker(pool, true, func(string) bool { return trusted })
		var first *connection
		for range 14 {
			server, _ := net.Pipe()
			if added := c.admit(server); first == nil {
				first = added
			}
		}
		if got := pool.UsedBy(first.caller); got != want {
			t.Errorf("trusted is %v: %d connections are open, want %d", trusted, got, want)
		}
		c.closeAll()
	}
}
