package server

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Requests wait for the first tools until their contexts end. Later, they receive the previous tools
// while the next ones are built, also if this fails.
func TestToolsAreBuiltInTheBackground(t *testing.T) {
	var mu sync.Mutex
	shards := 1
	built := make(chan *mcp.Server)
	tools := &mcpTools{log: slog.New(slog.DiscardHandler), shards: func() int {
		mu.Lock()
		defer mu.Unlock()
		return shards
	}, build: func(int) *mcp.Server {
		s := <-built
		if s == nil {
			panic("no tools")
		}
		return s
	}}
	setShards := func(n int) {
		mu.Lock()
		defer mu.Unlock()
		shards = n
	}
	check := func(want *mcp.Server) {
		t.Helper()
		if got, err := tools.server(t.Context()); err != nil || got != want {
			t.Errorf("the tools are %p, %v, want %p", got, err, want)
		}
	}
	finished := func() {
		t.Helper()
		tools.mu.Lock()
		next := tools.next
		tools.mu.Unlock()
		if next != nil {
			<-next.done
		}
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if got, err := tools.server(ended); got != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("without tools: %v, %v", got, err)
	}
	one, two := new(mcp.Server), new(mcp.Server)
	go func() { built <- one }()
	check(one)
	finished()
	setShards(2)
	check(one)
	check(one)
	built <- nil
	finished()
	check(one)
	setShards(3)
	check(one)
	built <- two
	finished()
	check(two)
}
