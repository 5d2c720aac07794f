package storetest

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/dynamo"
)

// Source is where changes of the tables of db's engine are told. db's HTTP client is the engine's own.
func Source(t testing.TB, db *dynamodb.Client) dynamo.FeedSource {
	t.Helper()
	if engine, ok := db.Options().HTTPClient.(dynamo.Observable); ok {
		return dynamo.Observed(engine)
	}
	t.Skip("this engine tells no changes")
	return nil
}

// Feed returns the feed of a store's table, which is closed when the test ends.
func Feed(t testing.TB, db *dynamodb.Client, store *dynamo.Store, opts dynamo.FeedOptions) *dynamo.Feed {
	t.Helper()
	feed := store.OpenFeed(Source(t, db), opts)
	t.Cleanup(feed.Close)
	return feed
}
