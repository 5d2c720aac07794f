package server

import (
	"compress/gzip"
	"net/http"

	"github.com/klauspost/compress/gzhttp"
)

// Compression of responses.
const (
	// minCompressedSize is the minimum size in bytes of a response that is compressed. A shorter
	// response fits into one packet anyway.
	minCompressedSize = 1024
	// maxCompressionJitter is the maximum number of random bytes, derived from the content, that are
	// added to a response.
	maxCompressionJitter = 32
)

// newCompressor returns middleware that compresses GraphQL responses for clients that accept gzip,
// and sets Vary. GraphiQL's pages are stored compressed. zstd is disabled, because each of its
// encoders takes megabytes.
//
// An attack that guesses secrets from sizes (BREACH, https://www.breachattack.com) makes a victim's
// browser send many requests that the attacker chooses. possibleCSRF prevents such requests,
// and maxCompressionJitter obscures the sizes.
//
// It returns an error if the library rejects the options.
func newCompressor() (func(http.Handler) http.HandlerFunc, error) {
	return gzhttp.NewWrapper(gzhttp.MinSize(minCompressedSize), gzhttp.CompressionLevel(gzip.BestSpeed), gzhttp.EnableZstd(false), gzhttp.RandomJitter(maxCompressionJitter, 0, false))
}
