package server

import (
	"net"
	"net/http"
	"sync/atomic"
)

// connections counts the connections that are open. The listener stops at the most that may be; this sees to it that those that are idle do
// not take all the room, for up to idleTimeout each: beyond three quarters, answers close their connection. What
// is left is taken by clients who are sending, asking or reading, each within a limit of time.
type connections struct {
	most int
	open atomic.Int64
}

// changed follows the state of a connection.
func (c *connections) changed(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		c.open.Add(1)
	case http.StateClosed, http.StateHijacked:
		c.open.Add(-1)
	case http.StateActive, http.StateIdle:
	}
}

func (c *connections) relieved(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c.open.Load() > int64(c.most)*3/4 {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}
