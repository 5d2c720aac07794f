package embedded

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/ordergraph/ordergraph/embedded/internal/wire"
)

const (
	// maxRequest is the maximum size of a request body in bytes. It also limits the size of a
	// compressed body after decompression.
	maxRequest = 16 << 20
	// maxIgnoredBody is how many bytes of a body that is too large are read and ignored. Otherwise,
	// a client that is still sending would not receive the response.
	maxIgnoredBody = 64 << 20
	// maxAllocated is the maximum size of a buffer for bytes that have not arrived yet.
	maxAllocated = 64 << 10
)

// readRequest reads the body of a request, and decompresses it if necessary. If the body is too
// large or cannot be decompressed, the error is a *wire.Failure. As in DynamoDB, a body that cannot
// be decompressed is an InternalServerError.
func readRequest(r *http.Request) ([]byte, error) {
	encoding := r.Header.Get("Content-Encoding")
	compressed := strings.EqualFold(encoding, "gzip")
	if !compressed && encoding != "" && !strings.EqualFold(encoding, "identity") {
		return nil, &wire.Failure{Code: wire.CodeInternal, Message: "The Content-Encoding " + strconv.Quote(encoding) + " is not supported: use gzip"}
	}
	if !compressed && r.ContentLength >= 0 && r.ContentLength <= maxAllocated {
		request := make([]byte, r.ContentLength)
		_, err := io.ReadFull(r.Body, request)
		return request, err
	}
	body := io.Reader(r.Body)
	request := bytes.NewBuffer(make([]byte, 0, maxAllocated))
	err := error(nil)
	if compressed {
		body, err = gzip.NewReader(r.Body)
	}
	if err == nil {
		_, err = request.ReadFrom(io.LimitReader(body, maxRequest+1))
	}
	switch {
	case err != nil && compressed:
		return nil, &wire.Failure{Code: wire.CodeInternal, Message: "The body cannot be decompressed: " + err.Error()}
	case err != nil:
		return nil, err
	case request.Len() > maxRequest:
		_, _ = io.CopyN(io.Discard, r.Body, maxIgnoredBody) // an error means that the body has ended
		return nil, &wire.Failure{Code: wire.CodeTooLarge, Message: fmt.Sprintf("The request exceeds %d bytes", maxRequest)}
	}
	return request.Bytes(), nil
}
