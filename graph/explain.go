package graph

import (
	"math"

	"github.com/ordergraph/ordergraph/dynamo/trace"
)

// explanation is the content of extensions.explain.
type explanation struct {
	Requests []explainedRequest `json:"requests"`
	Totals   explainedTotals    `json:"totals"`
}

// explainedRequest is a request to DynamoDB.
type explainedRequest struct {
	AccessPattern string  `json:"accessPattern"`
	Operation     string  `json:"operation"`
	Index         string  `json:"index"`
	Key           string  `json:"key"`
	Path          string  `json:"path"`
	Items         int     `json:"items"`
	ReadUnits     float64 `json:"readUnits"`
	WriteUnits    float64 `json:"writeUnits"`
	DurationMs    float64 `json:"durationMs"`
	// Wave is the number of the round trip in which the request was sent, starting at 1.
	Wave int `json:"wave"`
}

// explainedTotals are the totals of all requests. RoundTrips is the length of the longest chain of
// dependent requests.
type explainedTotals struct {
	Requests   int     `json:"requests"`
	RoundTrips int     `json:"roundTrips"`
	ReadUnits  float64 `json:"readUnits"`
	WriteUnits float64 `json:"writeUnits"`
}

func explain(t *trace.Trace) explanation {
	requests := t.Requests()
	e := explanation{Requests: make([]explainedRequest, len(requests))}
	for i, r := range requests {
		e.Requests[i] = explainedRequest{
			AccessPattern: r.Pattern, Operation: r.Operation, Index: r.Index, Key: r.Key, Path: r.Path, Items: r.Items,
			ReadUnits: r.ReadUnits, WriteUnits: r.WriteUnits, Wave: r.Wave,
			DurationMs: math.Round(float64(r.Duration.Microseconds())) / 1000,
		}
		e.Totals.RoundTrips = max(e.Totals.RoundTrips, r.Wave)
		e.Totals.ReadUnits += r.ReadUnits
		e.Totals.WriteUnits += r.WriteUnits
	}
	e.Totals.Requests = len(requests)
	return e
}
