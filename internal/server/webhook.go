package server

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/change"
	"github.com/ordergraph/ordergraph/graph"
	"github.com/ordergraph/ordergraph/graph/errcode"
	"github.com/ordergraph/ordergraph/graph/observe"
	"github.com/ordergraph/ordergraph/internal/admission"
	"github.com/ordergraph/ordergraph/internal/lifecycle"
	"github.com/ordergraph/ordergraph/internal/provider"
)

// webhookHandler serves the webhook of a payment provider. Its requests are signed and carry no
// token, so they cost no points. Instead, the provider has a share of the requests in progress. A
// request with a wrong signature or an incomplete body is charged to the rate limit of its network
// address.
type webhookHandler struct {
	httpHandler
	webhook     *provider.Webhook
	store       *dynamo.Store
	confirmPaid bool
	observer    observe.Observer
	log         *slog.Logger
}

// orderWait is the value of the header Retry-After if the provider should send an event again.
const orderWait = "60"

// maxDisorder is the time in which the provider is asked to repeat an event that does not fit the
// order, because another event must come first. For example, a refund can arrive before the
// capture. Providers repeat an event several times within this time. It begins when the event first
// arrives, because events that occurred while no server was available arrive late, too.
const maxDisorder = time.Hour

// ServeHTTP responds to one request of the provider.
func (h webhookHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header()["X-Content-Type-Options"] = nosniff
	ctx, m := observe.Begin(admission.WithCaller(r.Context(), h.anonymousCaller(r.RemoteAddr)), h.observer, "")
	m.SetWebhook(h.webhook.Name())
	refused := h.receive(w, r.WithContext(ctx))
	var failures gqlerror.List
	if refused != nil {
		failures = gqlerror.List{errcode.New(nil, refused.code, "%s", refused.message)}
	}
	m.End(ctx, failures)
	switch {
	case refused == nil:
		writeText(w, http.StatusOK, "ok")
	case refused.status == http.StatusOK:
		h.recordRefusal(ctx, refused)
		writeText(w, refused.status, refused.message)
	default:
		w.Header()["Cache-Control"] = noStore
		h.writeRefusal(w, r.WithContext(ctx), refused, typeJSON)
	}
}

// receive reads, verifies and records a request. It returns nil if all of its payments are
// recorded. A refusal with the status 200 tells the provider not to send the request again.
func (h webhookHandler) receive(w http.ResponseWriter, r *http.Request) *refusal {
	if refused := checkContentHeaders(r.Header); refused != nil {
		return refused
	}
	body, refused := h.readBody(w, r)
	address := r.WithContext(graph.WithPrincipal(r.Context(), anonymousPrincipal(r.RemoteAddr)))
	if refused != nil {
		if _, limited := h.charge(address, len(body)); limited != nil {
			return limited
		}
		return refused
	}
	events, err := h.webhook.Receive(body, r.Header, h.store.Now())
	switch {
	case errors.Is(err, provider.ErrSignature):
		if _, limited := h.charge(address, len(body)); limited != nil {
			return limited
		}
		return newRefusal(http.StatusBadRequest, errcode.Unauthenticated, "%s", provider.ErrSignature.Error())
	case err != nil:
		h.log.WarnContext(r.Context(), "a webhook has sent a malformed event", "webhook", h.webhook.Name(), "error", err, "requestId", requestID(r.Context()))
		return badRequest("%s", provider.ErrMalformed.Error())
	}
	lifecycle.MarkCharged(r.Context())
	caller := admission.Caller{Key: "webhook/" + h.webhook.Name()}
	lifecycle.SetCaller(r.Context(), caller)
	ctx := admission.WithCaller(r.Context(), caller)
	if full := h.acquire(ctx, admission.PoolRequests, 1); full != nil {
		return full
	}
	defer h.releaseCapacity(ctx, admission.PoolRequests, 1)
	ctx, cancel := context.WithTimeout(ctx, h.limits.RequestTime)
	defer cancel()
	for _, e := range events {
		if refused := h.record(ctx, w.Header(), e); refused != nil {
			return refused
		}
	}
	return nil
}

// record records a payment. If the refusal asks the provider to send the event again, record sets
// the response header Retry-After.
func (h webhookHandler) record(ctx context.Context, header http.Header, e commerce.PaymentEvent) *refusal {
	err := h.store.ReceivePayment(ctx, change.Caller{Name: e.Provider}, e, h.confirmPaid)
	if err == nil {
		return nil
	}
	if !commerce.IsUserError(err) {
		if isLogged(err) {
			h.log.ErrorContext(ctx, "a payment was not recorded", "webhook", h.webhook.Name(), "error", err, "requestId", requestID(ctx))
		}
		return newRefusal(http.StatusServiceUnavailable, errcode.Unavailable, "the payment cannot be recorded right now: send the event again later")
	}
	code := commerce.UserErrorsOf(err)[0].Code()
	unmatched, isUnmatched := errors.AsType[change.UnmatchedError](err)
	h.log.WarnContext(ctx, "a payment is unmatched", "webhook", h.webhook.Name(), "provider", e.Provider, "reference", e.Reference, "reason", code, "requestId", requestID(ctx))
	switch {
	case code == commerce.CodeNotFound:
		header.Set("Retry-After", orderWait)
		return newRefusal(http.StatusConflict, errcode.NotFound, "the order of the payment does not exist: send the event again later")
	case isUnmatched && h.store.Now().Sub(unmatched.FirstSeenAt) < maxDisorder:
		header.Set("Retry-After", orderWait)
		return newRefusal(http.StatusConflict, errcode.BadUserInput, "the payment does not fit the order: send the event again later")
	default:
		return newRefusal(http.StatusOK, errcode.BadUserInput, "the payment does not fit the order, so it is in the list of unmatched payments")
	}
}
