package receivers

import (
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/internal/webhook"
)

// Delivery is one request with a valid signature.
type Delivery struct {
	// WebhookID is the header webhook-id.
	WebhookID string
	// OrderID, Version and PreviousVersion come from the body. PreviousVersion is 0 if it is null.
	OrderID                  commerce.OrderID
	Version, PreviousVersion int
	// Event is the JSON of the event in the body, without the order.
	Event string
	// At is the time at which the request arrived. In an accepted delivery, it is the time at which the
	// receiver accepted it.
	At time.Time
}

// Request is one request that a receiver has answered, or left without an answer.
type Request struct {
	Delivery
	// Status is the status of the response, or 0 if the receiver has sent no complete response.
	Status int
	// RetryAfter is the duration in the response's header Retry-After.
	RetryAfter time.Duration
}

// Receiver is a webhook of another program. It accepts only requests that are signed with one of
// its secrets, and whose body is an event.
type Receiver struct {
	// URL is the URL of the receiver.
	URL string

	behavior  Behavior
	mu        sync.Mutex
	verifiers []*standardwebhooks.Webhook
	requests  []Request
	accepted  []Delivery
	invalid   []string
}

// Trust adds a secret that can sign requests.
func (r *Receiver) Trust(t testing.TB, secret string) {
	t.Helper()
	verifier, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.verifiers = append(r.verifiers, verifier)
}

// Accepted returns the deliveries that the receiver has accepted, in this sequence. Deliveries whose
// response was lost are included.
func (r *Receiver) Accepted() []Delivery {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.accepted)
}

// Requests returns all requests with a valid signature, in the sequence of their responses.
func (r *Receiver) Requests() []Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.requests)
}

// Invalid returns a sentence for each request without a valid signature, or with a wrong header or
// body.
func (r *Receiver) Invalid() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.invalid)
}

// ServeHTTP implements http.Handler.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	d, problem := r.read(request)
	if problem != "" {
		r.mu.Lock()
		r.invalid = append(r.invalid, problem)
		r.mu.Unlock()
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	e := &Exchange{Delivery: d, w: w, request: request, receiver: r}
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.requests = append(r.requests, Request{d, e.status, e.retryAfter})
	}()
	r.behavior(e)
}

// read verifies a request, and returns its content or the problem with it.
func (r *Receiver) read(request *http.Request) (d Delivery, problem string) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return d, "the body is incomplete"
	}
	r.mu.Lock()
	valid := slices.ContainsFunc(r.verifiers, func(v *standardwebhooks.Webhook) bool { return v.Verify(body, request.Header) == nil })
	r.mu.Unlock()
	var event struct {
		ID      string           `json:"id"`
		Subject commerce.OrderID `json:"subject"`
		Data    struct {
			Event           jsontext.Value `json:"event"`
			Version         int            `json:"version"`
			PreviousVersion int            `json:"previousVersion"`
		} `json:"data"`
	}
	switch {
	case !valid:
		return d, "the signature is invalid"
	case request.Method != http.MethodPost || request.Header.Get("Content-Type") != webhook.ContentType:
		return d, "the method or the content type is wrong"
	case json.Unmarshal(body, &event) != nil || event.Subject == "" || event.Data.Version == 0:
		return d, "the body is not an event"
	}
	d = Delivery{request.Header.Get(standardwebhooks.HeaderWebhookID), event.Subject, event.Data.Version, event.Data.PreviousVersion, string(event.Data.Event), time.Now()}
	if event.ID != d.WebhookID {
		return d, "the webhook-id differs from the ID of the event"
	}
	return d, ""
}
