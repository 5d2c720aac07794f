package table

import (
	"net/http"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// MaxClockDifference is the maximum difference between the local clock and DynamoDB's clock. Writes
// are rejected while the difference is greater.
const MaxClockDifference = 5 * time.Second

// clockWatch is the HTTP client that sends all requests to DynamoDB. It compares the local clock
// with the Date header of the responses. Responses of the embedded store have no Date header, so
// they are not compared.
type clockWatch struct {
	next  dynamodb.HTTPClient
	clock func() time.Time
	// onChange is called when the clocks start to differ by more than MaxClockDifference, and when
	// they agree again. ahead is the difference, or 0 if the clocks agree again.
	onChange func(ahead time.Duration)
	// compared is the Unix time of the last comparison in seconds. The clocks are compared at most
	// once per second, and after each long request.
	compared atomic.Int64
	// ahead is the time of the local clock minus the time of DynamoDB's clock, in nanoseconds. It is 0
	// if the difference is at most MaxClockDifference.
	ahead atomic.Int64
}

// watchClock returns a copy of the client db that sends its requests through the returned
// clockWatch. changed becomes clockWatch.onChange.
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

// compare compares the local clock with the Date header of a response. DynamoDB wrote the header,
// in whole seconds, at an unknown time between sent and received, so compare tolerates this
// uncertainty.
func (w *clockWatch) compare(sent, received time.Time, date string) {
	// The local clock can change during a request, so a response to a long one does not show that the
	// clocks agree. Another response in the same second can show that they differ.
	took, second := received.Sub(sent), received.Unix()
	long := took < 0 || took > MaxClockDifference
	if last := w.compared.Load(); !long && (last == second || !w.compared.CompareAndSwap(last, second)) {
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
	if long && ahead == 0 {
		return
	}
	if before := w.ahead.Swap(int64(ahead)); (before == 0) != (ahead == 0) {
		w.onChange(ahead)
	}
}

// difference returns the local time minus DynamoDB's time at the last comparison. It returns 0 if
// the difference was at most MaxClockDifference.
func (w *clockWatch) difference() time.Duration { return time.Duration(w.ahead.Load()) }
