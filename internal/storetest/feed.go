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

// Source returns the source of change events for the tables of db's engine. db must have the
// engine's own HTTP client.
func Source(t testing.TB, db *dynamodb.Client) feed.Source {
	t.Helper()
	if engine, ok := db.Options().HTTPClient.(feed.Observable); ok {
		return feed.Observed(engine)
	}
	return feed.Streamed(Streams(db), feed.StreamOptions{ShortestPause: time.Millisecond, LongestPause: 20 * time.Millisecond, ShardsEvery: 50 * time.Millisecond})
}

// Streams returns a client of DynamoDB Streams on db's engine. The engine must be DynamoDB Local.
func Streams(db *dynamodb.Client, optFns ...func(*dynamodbstreams.Options)) *dynamodbstreams.Client {
	o := db.Options()
	return dynamodbstreams.New(dynamodbstreams.Options{BaseEndpoint: o.BaseEndpoint, Region: o.Region, Credentials: o.Credentials, HTTPClient: o.HTTPClient}, optFns...)
}

// Feed enables the stream of a store's table and returns its change feed. The feed is closed when
// the test ends.
func Feed(t testing.TB, db *dynamodb.Client, store *dynamo.Store, opts feed.Options) *feed.Feed {
	t.Helper()
	if err := store.EnableStream(context.Background()); err != nil {
		t.Fatal(err)
	}
	feed := store.OpenFeed(Source(t, db), opts)
	t.Cleanup(feed.Close)
	return feed
}
