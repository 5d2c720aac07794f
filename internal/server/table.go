package server

import (
	"context"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/ordergraph/ordergraph/graph"
	"github.com/ordergraph/ordergraph/graph/errcode"
	"github.com/ordergraph/ordergraph/internal/admission"
	"github.com/ordergraph/ordergraph/internal/httpheader"
)

// tableHandler serves the description of the table, which the page Table of GraphiQL draws.
type tableHandler struct{ httpHandler }

// maxExtension limits the bytes of a proposed schema extension. It is enough for 300 fields, which are
// 50 for each of the 6 types, with over 200 bytes each.
const maxExtension = 64 << 10

func newTableHandler(h httpHandler) tableHandler {
	h.limits.Body = min(h.limits.Body, maxExtension)
	return tableHandler{h}
}

// ServeHTTP responds to one request. It never changes the table.
func (h tableHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header()["X-Content-Type-Options"] = nosniff
	w.Header()["Cache-Control"] = noStore
	if r.Method == http.MethodOptions {
		w.Header().Set("Allow", allowedMethods)
		w.WriteHeader(http.StatusNoContent)
		return
	}
	authenticated, body, paid, refused := h.receive(w, r, true, checkExtensionHeaders)
	if refused != nil {
		h.writeCompressibleRefusal(w, r, refused, typeJSON)
		return
	}
	ctx := authenticated.Context()
	arrived := receivedRequest{bodySize: len(body), decode: func() (graph.Request, *refusal) {
		return graph.Request{Query: string(body), ChargedPoints: paid}, nil
	}}
	result, refused := h.execute(ctx, arrived, func(ctx context.Context, request graph.Request) graph.Result {
		if r.Method == http.MethodPost {
			return h.executor.DescribeTable(ctx, &request.Query)
		}
		return h.executor.DescribeTable(ctx, nil)
	})
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
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(h.limits.AnswerTime)) // as for /graphql
	status := tableStatus(result)
	setStatusHeaders(w.Header(), result, status)
	h.writeCompressed(w, r, typeJSON, status, response)
}

// checkExtensionHeaders refuses a request if its headers do not declare an uncompressed schema
// extension, or if a page of another site may have sent it.
func checkExtensionHeaders(header http.Header) *refusal {
	if httpheader.PossibleCSRF(header, preflightHeaders) {
		return csrfPrevented("send the Content-Type application/graphql")
	}
	return checkBodyHeaders(header, "text/plain or application/graphql", func(contentType string) bool {
		t, parameters, err := mime.ParseMediaType(contentType)
		charset, given := parameters["charset"]
		return err == nil && (t == "text/plain" || t == "application/graphql") && (!given || strings.EqualFold(charset, "utf-8"))
	})
}

// tableStatus returns the HTTP status of a response.
func tableStatus(result graph.Result) int {
	if len(result.Errors) == 0 {
		return http.StatusOK
	}
	switch result.Errors[0].Extensions["code"] {
	case errcode.Unauthenticated:
		return http.StatusUnauthorized
	case errcode.Forbidden, errcode.IntrospectionOff, errcode.UntrustedDocument:
		return http.StatusForbidden
	case errcode.BadUserInput:
		return http.StatusBadRequest
	case errcode.Internal:
		return http.StatusInternalServerError
	}
	return http.StatusServiceUnavailable
}
