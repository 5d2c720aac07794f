package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/feed"
)

// ChangeSource returns the feed.Source of db's engine. It recognizes the engine by the type of db's
// HTTP client, so this client must not be wrapped.
func ChangeSource(t testing.TB, db *dynamodb.Client) feed.Source {
	t.Helper()
	if engine, ok := db.Options().HTTPClient.(feed.Observable); ok {
		return feed.EngineSource(engine)
	}
	return feed.StreamSource(StreamsClient(db), feed.StreamOptions{MinPause: time.Millisecond, MaxPause: 20 * time.Millisecond, ShardListInterval: 50 * time.Millisecond})
}

// StreamsClient returns a DynamoDB Streams client for db's engine, which must be DynamoDB Local.
func StreamsClient(db *dynamodb.Client, optFns ...func(*dynamodbstreams.Options)) *dynamodbstreams.Client {
	o := db.Options()
	return dynamodbstreams.New(dynamodbstreams.Options{BaseEndpoint: o.BaseEndpoint, Region: o.Region, Credentials: o.Credentials, HTTPClient: o.HTTPClient}, optFns...)
}

// OpenFeed enables the DynamoDB stream of a store's table and returns its change feed. The feed is
// closed when the test ends.
func OpenFeed(t testing.TB, db *dynamodb.Client, store *dynamo.Store, opts feed.Options) *feed.Feed {
	t.Helper()
	if err := store.EnableStream(context.Background()); err != nil {
		t.Fatal(err)
	}
	feed := store.OpenFeed(ChangeSource(t, db), opts)
	t.Cleanup(feed.Close)
	return feed
}
