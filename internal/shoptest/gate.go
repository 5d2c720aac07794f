package shoptest

import "sync"

// Gate holds the URL of a server that is killed and restarted. Clients wait while no server runs. A
// Gate is safe for concurrent use.
type Gate struct {
	mu      sync.Mutex
	changed *sync.Cond
	url     string
}

// NewGate returns a Gate without a server.
func NewGate() *Gate {
	g := &Gate{}
	g.changed = sync.NewCond(&g.mu)
	return g
}

// Set sets the server's URL. An empty URL means that no server runs.
func (g *Gate) Set(url string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.url = url
	g.changed.Broadcast()
}

// Where returns the server's URL. It waits while no server runs.
func (g *Gate) Where() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.url == "" {
		g.changed.Wait()
	}
	return g.url
}
