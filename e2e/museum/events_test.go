package museum_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/feed"
	"github.com/ordergraph/ordergraph/embedded"
	"github.com/ordergraph/ordergraph/internal/server"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// aroundTimelineRead returns a client that calls the hook instead of the first read of a timeline. The
// function read makes the read.
func (s *shop) aroundTimelineRead(hook func(read func())) *dynamodb.Client {
	var done atomic.Bool
	return s.engine.Client(func(o *dynamodb.Options) {
		o.HTTPClient = storetest.HTTPFunc(func(r *http.Request) (response *http.Response, err error) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return nil, err
			}
			r.Body = io.NopCloser(strings.NewReader(string(body)))
			read := func() { response, err = s.engine.Do(r) }
			if strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".Query") && strings.Contains(string(body), "EVENT#") && !done.Swap(true) {
				hook(read)
			} else {
				read()
			}
			return response, err
		})
	})
}

// wantNotes compares the notes of the next updates.
func (s *shop) wantNotes(next func() (id, note string), want ...string) {
	s.Helper()
	for _, w := range want {
		if _, note := next(); note != w {
			s.Fatalf("the next update has the note %q, want %q", note, w)
		}
	}
}

var eventRooms = []room{{
	name: "changed-while-starting", sources: []string{"aws/aws-appsync-community#405"},
	there: "The server confirms a subscription, but a change shortly afterwards is not delivered.",
	here:  "All changes from the confirmation on are delivered, even changes that happen while the server starts the subscription.",
	test: func(t *testing.T) {
		s := newShop(t)
		id := s.place("c0", 1)
		url := s.serve(s.aroundTimelineRead(func(read func()) {
			read()
			s.note(id, "first")
		}))
		next := s.subscribe(url, id, "")
		s.note(id, "second")
		s.wantNotes(next, "first", "second")
	},
}, {
	name: "missed-while-offline", sources: []string{"awslabs/aws-mobile-appsync-sdk-android#370", "awslabs/aws-mobile-appsync-sdk-android#58"},
	there: "A client loses its connection. The changes until it subscribes again are never delivered.",
	here:  "A subscription that continues after the last received event delivers the missed changes first.",
	test: func(t *testing.T) {
		s := newShop(t)
		id := s.place("c0", 1)
		next := s.subscribe(s.url, id, "")
		s.note(id, "first")
		last, _ := next()
		s.note(id, "second")
		s.note(id, "third")
		next = s.subscribe(s.interrupted, id, last)
		s.note(id, "fourth")
		s.wantNotes(next, "second", "third", "fourth")
	},
}, {
	name: "delivered-twice", sources: []string{"cdmbase/graphql-rabbitmq-subscriptions#11"},
	there: "After a reconnection, a change is delivered twice.",
	here:  "A change that happens while the server reads the missed changes is delivered once.",
	test: func(t *testing.T) {
		s := newShop(t)
		id := s.place("c0", 1)
		next := s.subscribe(s.url, id, "")
		s.note(id, "first")
		last, _ := next()
		url := s.serve(s.aroundTimelineRead(func(read func()) {
			s.note(id, "second")
			read()
		}))
		next = s.subscribe(url, id, last)
		s.note(id, "third")
		s.wantNotes(next, "second", "third")
	},
}, {
	name: "last-records-of-a-shard", sources: []string{"gravitational/teleport#53795"},
	there: "A shard of a stream ends. The reader ignores the records in the response that ends it.",
	here:  "These records are delivered, too.",
	test:  testShards,
}, {
	name: "first-records-of-a-shard", sources: []string{"gravitational/teleport#7992", "triggermesh/aws-event-sources#219", "opensearch-project/data-prepper#3614"},
	there: "A shard ends, and its child is not read.",
	here:  "The child is read from its beginning, after its parent.",
	test:  testShards,
}}

// testShards lets the shard of a stream end, and changes an order before, during and after the change of
// the shards.
func testShards(t *testing.T) {
	s := newShop(t)
	id := s.place("c0", 1)
	store, err := dynamo.New(s.engine.Client(), s.opts)
	if err == nil {
		err = store.EnableStream(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	shards := &splitShard{engine: s.engine, ended: make(chan struct{}), childRead: make(chan struct{})}
	client := storetest.StreamsClient(s.engine.Client(), func(o *dynamodbstreams.Options) { o.HTTPClient = shards })
	changes := store.OpenFeed(feed.StreamSource(client, feed.StreamOptions{MinPause: time.Millisecond, MaxPause: time.Millisecond, ShardListInterval: time.Millisecond}), feed.Options{})
	t.Cleanup(changes.Close)
	next := s.subscribe(s.serve(s.engine.Client(), func(o *server.Options) { o.Graph.Feed = changes }), id, "")
	s.note(id, "first")
	<-shards.ended
	s.note(id, "second")
	shards.listed.Store(true)
	<-shards.childRead
	s.note(id, "third")
	s.wantNotes(next, "first", "second", "third")
}

// splitShard sends requests to the stream of an engine. The only shard of the stream ends with the first
// records that are read. The later records are in a child, which is listed only if listed is true.
type splitShard struct {
	engine           *embedded.Store
	ended, childRead chan struct{}
	listed           atomic.Bool
	mu               sync.Mutex
	parent           string
	last             any // the sequence number of the last record of the parent
	childReads       int
}

func (x *splitShard) Do(r *http.Request) (*http.Response, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	var in, out map[string]any
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		return nil, err
	}
	if in["ShardId"] == "child" {
		if in["ShardId"] = x.parent; in["ShardIteratorType"] == "TRIM_HORIZON" {
			in["ShardIteratorType"], in["SequenceNumber"] = "AFTER_SEQUENCE_NUMBER", x.last
		}
	}
	body, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	response, err := x.engine.Do(r)
	if err == nil {
		err = json.NewDecoder(response.Body).Decode(&out)
	}
	if err != nil {
		return nil, err
	}
	if description, ok := out["StreamDescription"].(map[string]any); ok {
		parent := description["Shards"].([]any)[0].(map[string]any)
		x.parent = parent["ShardId"].(string)
		if x.last != nil {
			parent["SequenceNumberRange"].(map[string]any)["EndingSequenceNumber"] = x.last
		}
		if x.listed.Load() {
			description["Shards"] = []any{parent, map[string]any{"ShardId": "child", "ParentShardId": x.parent, "SequenceNumberRange": map[string]any{"StartingSequenceNumber": x.last}}}
		}
	}
	if records, ok := out["Records"].([]any); ok && x.last != nil {
		if x.childReads++; x.childReads == 1 {
			close(x.childRead)
		}
	} else if len(records) > 0 {
		x.last = records[len(records)-1].(map[string]any)["dynamodb"].(map[string]any)["SequenceNumber"]
		delete(out, "NextShardIterator")
		close(x.ended)
	}
	body, err = json.Marshal(out)
	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return response, err
}
