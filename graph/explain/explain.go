// Package explain describes the DynamoDB requests of a GraphQL operation and their price. Clients
// receive the description in extensions.explain of the response. Within the module, it imports only
// dynamo/trace and internal/price.
package explain

import (
	"encoding/json"
	"math"

	"github.com/ordergraph/ordergraph/dynamo/trace"
	"github.com/ordergraph/ordergraph/internal/price"
)

// Explanation is the content of extensions.explain in a response.
type Explanation struct {
	// Requests contains the first requests, up to the limit of Describe. Totals includes
	// all requests.
	Requests []Request `json:"requests"`
	Totals   Totals    `json:"totals"`
}

// Request describes one request to DynamoDB.
type Request struct {
	AccessPattern string `json:"accessPattern"`
	Operation     string `json:"operation"`
	Index         string `json:"index"`
	// Key describes the keys. If there are many, it contains only the first ones, but Keys contains
	// all. Keys is omitted unless a request reads or writes several records by their keys.
	Key        string   `json:"key"`
	Keys       []string `json:"keys,omitempty"`
	Path       string   `json:"path"`
	Items      int      `json:"items"`
	ReadUnits  float64  `json:"readUnits"`
	WriteUnits float64  `json:"writeUnits"`
	DurationMs float64  `json:"durationMs"`
	// RoundTrip is the number of the round trip to DynamoDB, starting at 1. Requests with the same
	// number can run at the same time.
	RoundTrip int `json:"roundTrip"`
}

// Totals contains the totals over all DynamoDB requests of an operation.
type Totals struct {
	Requests int `json:"requests"`
	// RoundTrips is the number of round trips to DynamoDB that must take place one after another.
	// It is the highest RoundTrip of all requests.
	RoundTrips int     `json:"roundTrips"`
	ReadUnits  float64 `json:"readUnits"`
	WriteUnits float64 `json:"writeUnits"`
	// DollarsPerMillion is the price in US dollars of one million operations that consume the same
	// read and write units as this operation.
	DollarsPerMillion json.Number `json:"dollarsPerMillion"`
}

// Describe returns an Explanation of the DynamoDB requests in a trace. It uses prices to compute
// Totals.DollarsPerMillion. The described requests have at most limit bytes as JSON.
func Describe(t *trace.Trace, prices price.Prices, limit int) Explanation {
	requests := t.Requests()
	e := Explanation{Requests: make([]Request, 0, len(requests))}
	for _, r := range requests {
		described := Request{
			AccessPattern: r.Pattern, Operation: r.Operation, Index: r.Index, Key: r.Key, Keys: r.Keys, Path: r.Path, Items: r.Items,
			ReadUnits: r.ReadUnits, WriteUnits: r.WriteUnits, RoundTrip: r.RoundTrip,
			DurationMs: math.Round(float64(r.Duration.Microseconds())) / 1000,
		}
		text, _ := json.Marshal(described) // a Request can always be encoded
		if limit -= len(text) + len(","); limit >= 0 {
			e.Requests = append(e.Requests, described)
		}
		e.Totals.RoundTrips = max(e.Totals.RoundTrips, r.RoundTrip)
		e.Totals.ReadUnits += r.ReadUnits
		e.Totals.WriteUnits += r.WriteUnits
	}
	e.Totals.Requests = len(requests)
	e.Totals.DollarsPerMillion = prices.PerMillion(price.Units{Read: e.Totals.ReadUnits, Write: e.Totals.WriteUnits})
	return e
}
