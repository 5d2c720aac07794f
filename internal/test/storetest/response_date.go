package storetest

import (
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// WithoutResponseDate returns a client that removes the header Date from responses. A Store
// compares its clock with this header, so a Store with a fake clock would refuse to write.
func WithoutResponseDate(db *dynamodb.Client) *dynamodb.Client {
	return withResponseHeader(db, func(h http.Header) { h.Del("Date") })
}

// WithResponseDate returns a client of the same database as db. In each response, the client sets
// the header Date to the time that clock returns.
func WithResponseDate(db *dynamodb.Client, clock func() time.Time) *dynamodb.Client {
	return withResponseHeader(db, func(h http.Header) { h.Set("Date", clock().UTC().Format(http.TimeFormat)) })
}

func withResponseHeader(db *dynamodb.Client, date func(http.Header)) *dynamodb.Client {
	return dynamodb.New(db.Options(), func(o *dynamodb.Options) { o.HTTPClient = headerRewriter{o.HTTPClient, date} })
}

// headerRewriter is an HTTP client that sends requests with the client next, and changes the
// headers of the responses.
type headerRewriter struct {
	next    dynamodb.HTTPClient
	rewrite func(http.Header)
}

// Do sends the request and changes the headers of the response.
func (d headerRewriter) Do(r *http.Request) (*http.Response, error) {
	response, err := d.next.Do(r)
	if response != nil {
		d.rewrite(response.Header)
	}
	return response, err
}
