package simulation_test

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"time"

	"github.com/ordergraph/ordergraph/internal/test/faults"
)

// The kinds of faults that package faults does not have.
const (
	lateRequest  faults.Kind = "request arrives late"
	lateReply    faults.Kind = "reply arrives late"
	sentTwice    faults.Kind = "request arrives twice"
	lostRequest  faults.Kind = "client's request lost"
	lostResponse faults.Kind = "response to the client lost"
	lateResponse faults.Kind = "response to the client late"
)

// storeFaults and streamFaults are the faults of requests to tables and to streams.
var (
	storeFaults = []faults.Kind{
		faults.ThroughputExceeded, faults.Throttling, faults.InternalServerError, faults.TransactionConflict, faults.TransactionInProgress, faults.ConnectionRefused,
		faults.ConnectionReset, faults.ResponseTimeout, faults.TruncatedResponse, faults.Unprocessed, lateReply, sentTwice,
	}
	streamFaults = []faults.Kind{faults.ExpiredIterator, faults.TrimmedData, faults.LimitExceeded, faults.InternalServerError, faults.ConnectionReset}
	toClients    = []faults.Kind{lostRequest, lostResponse, lateResponse}
)

// faultCounts counts the faults by kind.
type faultCounts map[faults.Kind]int

// chooseFault returns the fault of an interaction, according to the rates of the scenario.
func (w *world) chooseFault(i *interaction, kinds ...faults.Kind) faults.Kind {
	if len(kinds) == 0 {
		return faults.None
	}
	at := w.random("fault", i.String(), kinds[0]).Float64()
	for _, kind := range kinds {
		if at -= w.Rates[kind]; at < 0 {
			if w.decide(i.String() + ": " + string(kind)) {
				w.faults[kind]++
				return kind
			}
			return faults.None
		}
	}
	return faults.None
}

// delayRequest returns how late a request to the store arrives.
func (w *world) delayRequest(i *interaction) time.Duration {
	if w.chooseFault(i, lateRequest) == lateRequest {
		return time.Duration(w.random("late", i.String()).Float64() * float64(longLatency))
	}
	return 0
}

// injector sends requests to the engine. It adds the next fault to the next request.
type injector struct {
	next   faults.Kind
	client *faults.Client
}

func (w *world) newInjector() *injector {
	j := &injector{}
	_, j.client = faults.WrapClient(w.indexClient(), func(faults.Request) faults.Kind { return j.next })
	return j
}

// execute executes a request of a process, and returns the additional latency of the reply.
func (w *world) execute(i *interaction, r *http.Request, body []byte) (response *http.Response, reply time.Duration, err error) {
	kinds := storeFaults
	var at place
	switch i.name {
	case "GetRecords", "GetShardIterator", "DescribeStream":
		if kinds = nil; i.name == "GetRecords" {
			kinds = streamFaults
		}
		body, at = w.stream.request(i.name, body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		defer func() {
			if err == nil {
				err = w.stream.response(i, at, w.chooseFault(i, repeatedRecords) == repeatedRecords, response)
			}
		}()
	}
	kind := w.chooseFault(i, kinds...)
	switch kind {
	case lateReply:
		reply, kind = longLatency, faults.None
	case sentTwice:
		r.Body = io.NopCloser(bytes.NewReader(body))
		if first, err := w.engine.Do(r); err == nil {
			first.Body.Close()
		}
		r.Body, kind = io.NopCloser(bytes.NewReader(body)), faults.None
	}
	w.injector.next = kind
	response, err = w.injector.client.Do(r)
	if response != nil {
		response.Header.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	}
	return response, reply, err
}

// clientFaults returns the fault of a client's request. A request that is lost and late is lost on
// the way to the server.
func (w *world) clientFaults(i *interaction) (lost bool, late time.Duration) {
	switch w.chooseFault(i, toClients...) {
	case lostRequest:
		return true, 1
	case lostResponse:
		return true, 0
	case lateResponse:
		return false, longLatency
	default:
		return false, 0
	}
}

// scheduledFaults returns the number of faults of each kind.
func (w *world) scheduledFaults() faultCounts {
	all := maps.Clone(w.faults)
	for _, kind := range storeFaults {
		delete(all, kind)
	}
	maps.Copy(all, w.injector.client.Counts()) // without the faults that do not apply to their requests
	for _, kind := range []faults.Kind{lateReply, sentTwice} {
		if n := w.faults[kind]; n > 0 {
			all[kind] = n
		}
	}
	return all
}
