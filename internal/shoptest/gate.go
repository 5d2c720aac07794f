package shoptest

import "sync"

// Gate tells clients where a server is that is killed again and again, and lets them wait while
// there is none. It is safe for concurrent use.
type Gate struct {
	mu      sync.Mutex
	changed *sync.Cond
	url     string
}

// NewGate returns a gate to no server.
func NewGate() *Gate {
	g := &Gate{}
	g.changed = sync.NewCond(&g.mu)
	return g
}

// Set names the server; empty for none.
func (g *Gate) Set(url string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.url = url
	g.changed.Broadcast()
}

// Where is the server, once there is one.
func (g *Gate) Where() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.url == "" {
		g.changed.Wait()
	}
	return g.url
}
