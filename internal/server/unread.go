package server

import (
	"errors"
	"io"
	"net/http"
	"time"
)

// connectionClose is the value of the response header Connection if the server closes the
// connection after the response. The slice must not be modified.
var connectionClose = []string{"close"}

// unreadBodyTime is how long the rest of a body may still arrive after the response.
const unreadBodyTime = 250 * time.Millisecond

// withUnreadBody is middleware that closes the connection after the response, unless the handler
// reads the complete body of the request. Otherwise, net/http would wait for the rest of the body
// before it sends the response. A client that never completes the body would get no response.
func withUnreadBody(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// In HTTP/2, a body that is not read delays no response. If the header is already set, the
		// connection is closed in any case.
		if r.ContentLength != 0 && r.ProtoMajor == 1 && w.Header()["Connection"] == nil {
			w.Header()["Connection"] = connectionClose
			r.Body = &unreadBody{ReadCloser: r.Body, response: w.Header(), missing: r.ContentLength}
		}
		next.ServeHTTP(w, r)
		if body, ok := r.Body.(*unreadBody); ok && !body.complete {
			// After the response, net/http reads the body until this deadline. The error is ignored: the
			// ResponseWriter of a test has no connection, and therefore supports no deadlines.
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(unreadBodyTime))
		}
	})
}

// unreadBody is the body of a request. When it has been read completely, it removes the response
// header Connection.
type unreadBody struct {
	io.ReadCloser
	response http.Header
	// missing is the number of bytes that have not been read yet. It is negative if the length of the
	// body is unknown.
	missing  int64
	complete bool
}

func (b *unreadBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.missing -= int64(n); b.missing == 0 || errors.Is(err, io.EOF) {
		b.complete = true
		delete(b.response, "Connection")
	}
	return n, err
}
