package server

import (
	"context"
	"net/http"

	"github.com/ordergraph/ordergraph/graph"
	"github.com/ordergraph/ordergraph/graph/errcode"
	"github.com/ordergraph/ordergraph/internal/admission"
)

// tableHandler serves the description of the table, which the page Table of GraphiQL draws.
type tableHandler struct{ httpHandler }

// ServeHTTP responds to one request. It never changes the table.
func (h tableHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header()["X-Content-Type-Options"] = nosniff
	w.Header()["Cache-Control"] = noStore
	if r.Method == http.MethodOptions {
		w.Header().Set("Allow", allowedMethods)
		w.WriteHeader(http.StatusNoContent)
		return
	}
	authenticated, body, paid, refused := h.receive(w, r, true, checkContentHeaders)
	if refused != nil {
		h.writeCompressibleRefusal(w, r, refused, typeJSON)
		return
	}
	ctx := authenticated.Context()
	arrived := receivedRequest{bodySize: len(body), decode: func() (graph.Request, *refusal) {
		return graph.Request{Query: string(body), ChargedPoints: paid}, nil
	}}
	result, refused := h.execute(ctx, arrived, func(ctx context.Context, _ graph.Request) graph.Result { return h.executor.DescribeTable(ctx) })
	if refused != nil {
		h.writeCompressibleRefusal(w, r, refused, typeJSON)
		return
	}
	response := responseBody{rest: result.Data}
	if len(result.Errors) > 0 {
		response.rest = encodeResult(result)
	}
	if full := h.acquire(ctx, admission.PoolResponses, response.memoryBytes()); full != nil {
		h.writeCompressibleRefusal(w, r, full, typeJSON)
		return
	}
	defer h.releaseCapacity(ctx, admission.PoolResponses, response.memoryBytes())
	status := tableStatus(result)
	setStatusHeaders(w.Header(), result, status)
	h.writeCompressed(w, r, typeJSON, status, response)
}

// tableStatus returns the HTTP status of a response.
func tableStatus(result graph.Result) int {
	if len(result.Errors) == 0 {
		return http.StatusOK
	}
	switch result.Errors[0].Extensions["code"] {
	case errcode.Unauthenticated:
		return http.StatusUnauthorized
	case errcode.Forbidden:
		return http.StatusForbidden
	case errcode.BadUserInput:
		return http.StatusBadRequest
	case errcode.Internal:
		return http.StatusInternalServerError
	}
	return http.StatusServiceUnavailable
}
