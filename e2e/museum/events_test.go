package museum_test

import (
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/feed"
	"github.com/ordergraph/ordergraph/internal/server"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// serveWithTimeline starts a server that calls the hook instead of the first read of a timeline. The
// function read makes the read.
func (s *shop) serveWithTimeline(hook func(read func())) (url string) {
	done := false
	return s.serve(s.proxy(func(operation, body string, send func(string) string) (response string) {
		read := func() { response = send(body) }
		if operation == "Query" && strings.Contains(body, "EVENT#") && !done {
			done = true
			hook(read)
		} else {
			read()
		}
		return response
	}))
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
	test: func(s *shop) {
		id := s.place("c0", 1)
		url := s.serveWithTimeline(func(read func()) {
			read()
			s.note(id, "first")
		})
		next := s.subscribe(url, id, "")
		s.note(id, "second")
		s.wantNotes(next, "first", "second")
	},
}, {
	name: "missed-while-offline", sources: []string{"awslabs/aws-mobile-appsync-sdk-android#370", "awslabs/aws-mobile-appsync-sdk-android#58"},
	there: "A client loses its connection. The changes until it subscribes again are never delivered.",
	here:  "A subscription that continues after the last received event delivers the missed changes first.",
	test: func(s *shop) {
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
	test: func(s *shop) {
		id := s.place("c0", 1)
		next := s.subscribe(s.url, id, "")
		s.note(id, "first")
		last, _ := next()
		url := s.serveWithTimeline(func(read func()) {
			s.note(id, "second")
			read()
		})
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
// the shards. The shard ends with the first records that are read. The later records are in a child.
func testShards(s *shop) {
	id := s.place("c0", 1)
	store, err := dynamo.New(s.engine.Client(), s.opts)
	if err == nil {
		err = store.EnableStream(s.Context())
	}
	if err != nil {
		s.Fatal(err)
	}
	var parent, last string // the shard, and the number of its last record
	var listed atomic.Bool
	ended, childRead := make(chan struct{}), make(chan struct{})
	streams := s.proxy(func(operation, body string, send func(string) string) string {
		body = strings.ReplaceAll(body, `"child"`, `"`+parent+`"`)
		body = strings.ReplaceAll(body, `"TRIM_HORIZON"`, `"AFTER_SEQUENCE_NUMBER","SequenceNumber":"`+last+`"`)
		response := send(body)
		numbers := regexp.MustCompile(`"SequenceNumber":"(\d+)"`).FindAllStringSubmatch(response, -1)
		switch {
		case operation == "DescribeStream":
			parent = regexp.MustCompile(`"ShardId":"(.*?)"`).FindStringSubmatch(response)[1]
			if last != "" {
				response = strings.Replace(response, `"StartingSequenceNumber"`, `"EndingSequenceNumber":"`+last+`","StartingSequenceNumber"`, 1)
			}
			if listed.Load() {
				response = strings.Replace(response, `"Shards":[`, `"Shards":[{"ShardId":"child","ParentShardId":"`+parent+`"},`, 1)
			}
		case operation == "GetRecords" && last == "" && numbers != nil:
			last = numbers[len(numbers)-1][1]
			response = strings.Replace(response, `"NextShardIterator"`, `"-"`, 1)
			close(ended)
		case operation == "GetRecords" && last != "" && childRead != nil:
			close(childRead)
			childRead = nil
		}
		return response
	})
	client := storetest.StreamsClient(s.engine.Client(), func(o *dynamodbstreams.Options) { o.HTTPClient = streams.Options().HTTPClient })
	changes := store.OpenFeed(feed.StreamSource(client, feed.StreamOptions{MinPause: time.Millisecond, MaxPause: time.Millisecond, ShardListInterval: time.Millisecond}), feed.Options{})
	s.Cleanup(changes.Close)
	next, isRead := s.subscribe(s.serve(s.engine.Client(), func(o *server.Options) { o.Graph.Feed = changes }), id, ""), childRead
	s.note(id, "first")
	<-ended
	s.note(id, "second")
	listed.Store(true)
	<-isRead
	s.note(id, "third")
	s.wantNotes(next, "first", "second", "third")
}
