package workload

import "sync"

// ServerAddress holds the URL of a server that a test kills and restarts. While no server is
// running, WaitURL makes the clients wait. A ServerAddress is safe for concurrent use.
type ServerAddress struct {
	mu      sync.Mutex
	changed *sync.Cond
	url     string
}

// NewServerAddress returns a ServerAddress without a server.
func NewServerAddress() *ServerAddress {
	g := &ServerAddress{}
	g.changed = sync.NewCond(&g.mu)
	return g
}

// Set sets the server's URL. An empty URL means that no server is running.
func (g *ServerAddress) Set(url string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.url = url
	g.changed.Broadcast()
}

// WaitURL returns the server's URL. It waits while no server is running.
func (g *ServerAddress) WaitURL() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.url == "" {
		g.changed.Wait()
	}
	return g.url
}
