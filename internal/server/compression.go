package server

import (
	"compress/gzip"
	"net/http"

	"github.com/klauspost/compress/gzhttp"
)

// Compression of responses.
const (
	// minCompressed is the minimum size in bytes of a response that is compressed. A shorter response
	// fits into one packet anyway.
	minCompressed = 1024
	// jitter is the maximum number of random bytes, derived from the content, that are added to a
	// response.
	jitter = 32
)

// compression returns middleware that compresses GraphQL responses for clients that accept gzip,
// and sets Vary. GraphiQL's pages are stored compressed. zstd is disabled, because each of its
// encoders takes megabytes.
//
// An attack that guesses secrets from sizes (BREACH, https://www.breachattack.com) makes a victim's
// browser send many requests that the attacker chooses. forgeable prevents such requests, and
// jitter obscures the sizes.
//
// It returns an error if the library rejects the options.
func compression() (func(http.Handler) http.HandlerFunc, error) {
	return gzhttp.NewWrapper(gzhttp.MinSize(minCompressed), gzhttp.CompressionLevel(gzip.BestSpeed), gzhttp.EnableZstd(false), gzhttp.RandomJitter(jitter, 0, false))
}
