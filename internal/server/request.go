package server

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/ordergraph/ordergraph/graph"
	"github.com/ordergraph/ordergraph/graph/errcode"
	"github.com/ordergraph/ordergraph/internal/admission"
)

// maxUncountedBody is a length in bytes. Only longer bodies count against
// admission.PoolRequestBodies, which limits the memory that slow clients use.
const maxUncountedBody = 16 << 10

// maxURL is the maximum length of a URL in bytes. It must be less than net/http's limit for
// headers. If a URL exceeded that limit, net/http would respond without JSON.
const maxURL = 16 << 10

// decodeURL decodes a GraphQL request from a URL.
func decodeURL(r *http.Request) (graph.Request, *refusal) {
	if len(r.RequestURI) > maxURL || len(r.URL.RawQuery) > maxURL {
		return graph.Request{}, newRefusal(http.StatusRequestURITooLong, errcode.BodyTooLarge, "the URL exceeds %d bytes: send the query with POST", maxURL)
	}
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return graph.Request{}, badRequest("the URL's query string cannot be read: percent-encode its values")
	}
	var p parameters
	for name, given := range values {
		to := p.byName(name)
		switch {
		case to == nil:
			continue
		case len(given) > 1:
			return graph.Request{}, badRequest("%s occurs more than once", name)
		case !utf8.ValidString(given[0]):
			return graph.Request{}, badRequest("%s is not valid UTF-8", name)
		case given[0] == "":
			continue
		case name == "variables" || name == "extensions":
			if unmarshal([]byte(given[0]), to) != nil {
				return graph.Request{}, badRequest("%s is not valid JSON", name)
			}
		default:
			*to = parameter{kind: jsontext.KindString, text: given[0]}
		}
	}
	request, refused := p.request()
	request.ReadOnly = true
	return request, refused
}

// checkContentHeaders refuses a request if its headers do not declare an uncompressed JSON body.
func checkContentHeaders(h http.Header) *refusal {
	return checkBodyHeaders(h, string(typeJSON), isJSONContentType)
}

// checkBodyHeaders refuses a request if its headers do not declare an uncompressed body with one of the
// expected content types.
func checkBodyHeaders(h http.Header, expected string, isExpected func(contentType string) bool) *refusal {
	switch {
	case h.Get("Content-Type") == "":
		return newRefusal(http.StatusUnsupportedMediaType, errcode.UnsupportedMediaType, "the request has no Content-Type: send %s", expected)
	case !isExpected(h.Get("Content-Type")) || len(h.Values("Content-Type")) > 1:
		return newRefusal(http.StatusUnsupportedMediaType, errcode.UnsupportedMediaType, "the body's Content-Type is not supported: send %s in UTF-8", expected)
	case slices.ContainsFunc(h.Values("Content-Encoding"), func(coding string) bool { return coding != "" && !strings.EqualFold(coding, "identity") }):
		// Compressed bodies are not supported, because a few compressed bytes could expand to gigabytes.
		return newRefusal(http.StatusUnsupportedMediaType, errcode.UnsupportedMediaType, "the body is compressed: send it without Content-Encoding")
	}
	return nil
}

// readBody reads the body of a request within the limits of size and time. If the body exceeds a
// limit, readBody returns a refusal and the part of the body that has arrived.
func (h httpHandler) readBody(w http.ResponseWriter, r *http.Request) ([]byte, *refusal) {
	if r.ContentLength > int64(h.limits.Body) {
		return nil, h.bodyTooLarge()
	}
	expected := int(r.ContentLength)
	if expected < 0 {
		expected = h.limits.Body // a chunked body does not declare its length
	}
	// The deadline applies only to the body, because net/http clears it after the body has been read.
	// The error is ignored: the ResponseWriter of a test has no connection, and therefore supports no
	// deadlines.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(h.limits.BodyTime))
	var body []byte
	var err error
	if r.ContentLength >= 0 && expected <= maxUncountedBody {
		// Most bodies are short and declare their length, so one buffer of this length is enough.
		body = make([]byte, expected)
		expected, err = io.ReadFull(r.Body, body)
		body = body[:expected]
	} else {
		var refused *refusal
		if body, refused, err = h.readLongBody(w, r, expected); refused != nil {
			return body, refused
		}
	}
	switch {
	case errors.As(err, new(*http.MaxBytesError)):
		return body, h.bodyTooLarge()
	case errors.Is(err, os.ErrDeadlineExceeded):
		return body, newRefusal(http.StatusRequestTimeout, errcode.RequestTimeout, "the body did not arrive within %s", h.limits.BodyTime)
	case err != nil:
		return body, badRequest("the body did not arrive completely")
	}
	return body, nil
}

// readLongBody reads a body. The parameter expected is the body's length, or the maximum length of
// a body if the length is unknown. When maxUncountedBody bytes have arrived, readLongBody acquires
// capacity for the expected length in admission.PoolRequestBodies. It releases the capacity after
// it has read the body.
func (h httpHandler) readLongBody(w http.ResponseWriter, r *http.Request, expected int) ([]byte, *refusal, error) {
	arriving := http.MaxBytesReader(w, r.Body, int64(h.limits.Body))
	body, err := io.ReadAll(io.LimitReader(arriving, maxUncountedBody))
	if err != nil || len(body) < maxUncountedBody {
		return body, nil, err
	}
	if full := h.acquire(r.Context(), admission.PoolRequestBodies, expected); full != nil {
		return body, full, nil
	}
	defer h.releaseCapacity(r.Context(), admission.PoolRequestBodies, expected)
	whole := bytes.NewBuffer(append(make([]byte, 0, max(expected, maxUncountedBody)+bytes.MinRead), body...))
	_, err = whole.ReadFrom(arriving)
	return whole.Bytes(), nil, err
}

// bodyTooLarge returns the refusal of a body that exceeds Limits.Body.
func (h httpHandler) bodyTooLarge() *refusal {
	return newRefusal(http.StatusRequestEntityTooLarge, errcode.BodyTooLarge, "the body exceeds %d bytes", h.limits.Body)
}

func badRequest(format string, args ...any) *refusal {
	return newRefusal(http.StatusBadRequest, errcode.BadRequest, format, args...)
}
