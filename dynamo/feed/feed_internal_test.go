package feed

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
	"github.com/ordergraph/ordergraph/embedded"
)

// Idle subscriptions take a bounded amount of memory and no goroutine. Nothing is left after they
// are closed.
func TestIdleSubscriptions(t *testing.T) {
	const subscriptions, maxBytes = 5_000, 1_000 // a subscription takes about 500 bytes
	engine := embedded.New()
	orders := table.Open(engine.Client(), "orders", table.Options{Codec: model.Codec{Currency: "USD"}})
	feed := Open(orders, EngineSource(engine), Options{})
	defer feed.Close()
	first := &Subscription{feed: feed, topic: topic{topicOrder, "first"}}
	if _, err := feed.attach(first); err != nil {
		t.Fatal(err)
	}
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before, goroutines := heap(), runtime.NumGoroutine()
	idle := make([]*Subscription, subscriptions)
	for i := range idle {
		id := fmt.Sprintf("01HVMK3P2Q%016d", i)
		idle[i] = &Subscription{feed: feed, topic: topic{topicOrder, id}, history: &orderHistory{feed: feed, partition: "ORDER#" + id}, wake: make(chan struct{}, 1)}
		if _, err := feed.attach(idle[i]); err != nil {
			t.Fatal(err)
		}
	}
	if bytes := (heap() - before) / subscriptions; bytes > maxBytes {
		t.Errorf("an idle subscription uses %d bytes of memory, want at most %d", bytes, maxBytes)
	} else {
		t.Logf("a subscription takes %d bytes", bytes)
	}
	if n := runtime.NumGoroutine() - goroutines; n > 0 {
		t.Errorf("the subscriptions take %d goroutines", n)
	}
	for _, s := range idle {
		s.Close()
	}
	if first.Close(); feed.Subscriptions() != 0 || len(feed.subscriptions) != 0 {
		t.Errorf("%d subscriptions, %d topics are left", feed.Subscriptions(), len(feed.subscriptions))
	}
}

// The pauses after failures grow up to a maximum, and are never zero.
func TestPausesAfterFailures(t *testing.T) {
	r := &shardReader{streamReader: &streamReader{streamSource: &streamSource{opts: StreamOptions{MinPause: 250 * time.Millisecond}}}}
	for failures := 1; failures < 100; failures++ {
		maximum := 250 * time.Millisecond << min(failures, 6)
		if got := r.retryPause(failures); got < maximum/2 || got > maximum || got > 16*time.Second {
			t.Errorf("the pause is %s after %d failures", got, failures)
		}
	}
}

// A panic while a shard is read becomes an error.
func TestPanicInShardReader(t *testing.T) {
	r := &shardReader{streamReader: &streamReader{streamSource: &streamSource{}}, shard: &shard{}}
	if err := r.read(context.Background()); err == nil {
		t.Error("got no error from a reader without a client")
	}
}
