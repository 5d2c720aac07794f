package faults

import (
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
)

// NewProxy returns a Client to use as the HTTPClient handler of a proxy, for servers in other processes.
// The proxy forwards requests to a DynamoDB endpoint, or makes them fail with the faults that
// choose returns.
func NewProxy(endpoint *url.URL, choose Chooser) *Client {
	return &Client{choose: choose, counts: map[Kind]int{}, next: &endpointClient{endpoint, &http.Transport{MaxIdleConnsPerHost: 256, DisableCompression: true}}}
}

// endpointClient sends the requests that a proxy has received.
type endpointClient struct {
	endpoint  *url.URL
	transport *http.Transport
}

func (c *endpointClient) Do(r *http.Request) (*http.Response, error) {
	r.URL.Scheme, r.URL.Host = c.endpoint.Scheme, c.endpoint.Host
	return c.transport.RoundTrip(r)
}

// ServeHTTP forwards a request or makes it fail. For a network error, it closes the connection.
func (c *Client) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	response, err := c.Do(r)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer response.Body.Close()
	maps.Copy(w.Header(), response.Header)
	w.WriteHeader(response.StatusCode)
	if _, err := io.Copy(w, response.Body); err != nil {
		_ = http.NewResponseController(w).Flush() // the client gets the first part
		panic(http.ErrAbortHandler)
	}
}

// Counts maps the kind of a fault to the number of requests that fail with it.
type Counts map[Kind]int

// Shares chooses the faults for this number of requests at a time.
const sharesWindow = 100

// ExactShares returns a Chooser that makes an exact number of requests fail. writes are the faults
// in each 100 transactions. reads are the faults in each 100 other requests. The order of the
// faults is random. The same seed results in the same order.
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
