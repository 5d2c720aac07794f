package dynamo

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/middleware"
)

// maxClockDifference is how far the store's clock can be from DynamoDB's. Beyond that nothing is
// written.
const maxClockDifference = 5 * time.Second

// ClockError reports that nothing is written, as the store's clock differs from DynamoDB's. It is
// an ErrUnavailable.
type ClockError struct {
	// Ahead is how far the store's clock is ahead of DynamoDB's. It is negative where the clock is
	// behind.
	Ahead time.Duration
}

func (e *ClockError) Error() string {
	return fmt.Sprintf("the server's clock is %s DynamoDB's: nothing is written until they agree", e.Difference())
}

// Unwrap returns ErrUnavailable.
func (e *ClockError) Unwrap() error { return ErrUnavailable }

// Difference describes the difference, such as "25h0m0s ahead of".
func (e *ClockError) Difference() string {
	by := e.Ahead.Round(time.Second)
	if by < 0 {
		return (-by).String() + " behind"
	}
	return by.String() + " ahead of"
}

// clockWatch is the HTTP client of all requests to DynamoDB. It compares the store's clock with the
// Date header of the responses. The embedded store's responses have none, and are not compared.
type clockWatch struct {
	next  dynamodb.HTTPClient
	clock func() time.Time
	log   *slog.Logger
	// compared is the second in which the clock was compared last. Once a second is enough.
	compared atomic.Int64
	// ahead is how far the clock is ahead of DynamoDB's, in nanoseconds; 0 where they agree.
	ahead atomic.Int64
}

// watchClock returns a client that sends the requests of db through the clockWatch.
func watchClock(db *dynamodb.Client, clock func() time.Time, log *slog.Logger) (*dynamodb.Client, *clockWatch) {
	w := &clockWatch{next: db.Options().HTTPClient, clock: clock, log: log}
	return dynamodb.New(db.Options(), func(o *dynamodb.Options) { o.HTTPClient = w }), w
}

// Do makes one request.
func (w *clockWatch) Do(r *http.Request) (*http.Response, error) {
	sent := w.clock()
	response, err := w.next.Do(r)
	if response != nil {
		if date := response.Header["Date"]; len(date) > 0 {
			w.compare(sent, w.clock(), date[0])
		}
	}
	return response, err
}

// compare notes the Date of a response. DynamoDB wrote the header between sent and received, in the
// second that it names. A difference counts only if it exists at each of these moments.
func (w *clockWatch) compare(sent, received time.Time, date string) {
	second := received.Unix()
	if last := w.compared.Load(); last == second || !w.compared.CompareAndSwap(last, second) {
		return
	}
	at, err := http.ParseTime(date)
	if err != nil {
		return
	}
	var ahead time.Duration
	switch middle := at.Add(time.Second / 2); {
	case sent.Sub(at) > maxClockDifference+time.Second:
		ahead = sent.Sub(middle)
	case received.Sub(at) < -maxClockDifference:
		ahead = received.Sub(middle)
	}
	switch before := w.ahead.Swap(int64(ahead)); {
	case before == 0 && ahead != 0:
		w.log.Error("nothing is written, as the server's clock and DynamoDB's differ", "clock", (&ClockError{ahead}).Difference()+" DynamoDB's")
	case before != 0 && ahead == 0:
		w.log.Info("the server's clock and DynamoDB's agree again")
	}
}

// err returns a ClockError where the clocks differed when they were last compared.
func (w *clockWatch) err() error {
	if ahead := w.ahead.Load(); ahead != 0 {
		return &ClockError{Ahead: time.Duration(ahead)}
	}
	return nil
}

// refuseWrites returns a client whose writes of records fail while the clocks differ. All writes of
// the store pass here, or through transactWrite on the fast path, which makes the same check.
func (w *clockWatch) refuseWrites(db *dynamodb.Client) *dynamodb.Client {
	refuse := middleware.InitializeMiddlewareFunc("Clock", func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
		switch in.Parameters.(type) {
		case *dynamodb.TransactWriteItemsInput, *dynamodb.BatchWriteItemInput, *dynamodb.PutItemInput, *dynamodb.UpdateItemInput, *dynamodb.DeleteItemInput:
			if err := w.err(); err != nil {
				return middleware.InitializeOutput{}, middleware.Metadata{}, err
			}
		}
		return next.HandleInitialize(ctx, in)
	})
	return dynamodb.New(db.Options(), func(o *dynamodb.Options) {
		o.APIOptions = append(o.APIOptions[:len(o.APIOptions):len(o.APIOptions)], func(stack *middleware.Stack) error { return stack.Initialize.Add(refuse, middleware.Before) })
	})
}
