package table

import (
	"net/http"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// MaxClockDifference is the maximum difference between the table's clock and DynamoDB's. Beyond it,
// writes are rejected.
const MaxClockDifference = 5 * time.Second

// clockWatch is the HTTP client of all requests to DynamoDB. It compares the table's clock with the
// Date header of the responses. Responses of the embedded store have no Date and are not compared.
type clockWatch struct {
	next  dynamodb.HTTPClient
	clock func() time.Time
	// onChange is called when the clocks begin to differ, and with 0 when they agree again.
	onChange func(ahead time.Duration)
	// compared is the Unix time of the last comparison. The clocks are compared once a second.
	compared atomic.Int64
	// ahead is the table's clock minus DynamoDB's in nanoseconds, or 0 if they agree.
	ahead atomic.Int64
}

// watchClock returns a client that sends the requests of db through the clockWatch. It calls
// changed when the clocks begin to differ, and with 0 when they agree again.
func watchClock(db *dynamodb.Client, clock func() time.Time, changed func(ahead time.Duration)) (*dynamodb.Client, *clockWatch) {
	w := &clockWatch{next: db.Options().HTTPClient, clock: clock, onChange: changed}
	return dynamodb.New(db.Options(), func(o *dynamodb.Options) { o.HTTPClient = w }), w
}

// Do sends a request and compares the clocks.
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

// compare compares the clock with the Date of a response. DynamoDB wrote the header between sent
// and received, and the header has only whole seconds. A difference counts only if it exists at
// every moment of both ranges.
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
	case sent.Sub(at) > MaxClockDifference+time.Second:
		ahead = sent.Sub(middle)
	case received.Sub(at) < -MaxClockDifference:
		ahead = received.Sub(middle)
	}
	if before := w.ahead.Swap(int64(ahead)); (before == 0) != (ahead == 0) {
		w.onChange(ahead)
	}
}

// difference returns how far the clock was ahead of DynamoDB's at the last comparison. It is 0 if
// the clocks agreed.
func (w *clockWatch) difference() time.Duration { return time.Duration(w.ahead.Load()) }
