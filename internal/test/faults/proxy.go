package faults

import (
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
)

// NewProxy returns an HTTP proxy in front of a DynamoDB endpoint. If choose returns None, the proxy
// forwards the request. Otherwise, the proxy simulates the fault.
func NewProxy(endpoint *url.URL, choose Chooser) *Client {
	return &Client{choose: choose, counts: map[Kind]int{}, next: &endpointClient{endpoint, &http.Transport{MaxIdleConnsPerHost: 256, DisableCompression: true}}}
}

// endpointClient sends the requests that a proxy forwards to its DynamoDB endpoint.
type endpointClient struct {
	endpoint  *url.URL
	transport *http.Transport
}

func (c *endpointClient) Do(r *http.Request) (*http.Response, error) {
	r.URL.Scheme, r.URL.Host = c.endpoint.Scheme, c.endpoint.Host
	return c.transport.RoundTrip(r)
}

// ServeHTTP forwards a request to DynamoDB or makes it fail. To simulate a network error, it closes
// the connection to the client.
func (c *Client) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	response, err := c.Do(r)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer response.Body.Close()
	maps.Copy(w.Header(), response.Header)
	w.WriteHeader(response.StatusCode)
	if _, err := io.Copy(w, response.Body); err != nil {
		_ = http.NewResponseController(w).Flush() // send the bytes that were already copied
		panic(http.ErrAbortHandler)
	}
}

// Counts maps a kind of fault to the number of requests that fail with this fault.
type Counts map[Kind]int

// sharesWindow is the number of requests in one window. ExactShares chooses the faults of a window
// in advance. Because a window has 100 requests, a count of 5 in Counts means 5 %.
const sharesWindow = 100

// ExactShares returns a Chooser that makes the given numbers of requests fail, out of every 100.
// The order of the faults depends only on seed. The counts in writes apply to TransactWriteItems
// requests. The counts in reads apply to all other requests.
func ExactShares(seed uint64, writes, reads Counts) Chooser {
	source := rand.New(rand.NewPCG(seed, 0))
	var left [2][]Kind
	return func(r Request) Kind {
		class, counts := 0, reads
		if r.IsTransaction() {
			class, counts = 1, writes
		}
		if len(left[class]) == 0 {
			for _, kind := range kinds() {
				for range counts[kind] {
					left[class] = append(left[class], kind)
				}
			}
			for len(left[class]) < sharesWindow {
				left[class] = append(left[class], None)
			}
			source.Shuffle(len(left[class]), func(i, j int) { left[class][i], left[class][j] = left[class][j], left[class][i] })
		}
		kind := left[class][0]
		left[class] = left[class][1:]
		return kind
	}
}
