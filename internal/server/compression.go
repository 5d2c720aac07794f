package server

import (
	"compress/gzip"
	"net/http"

	"github.com/klauspost/compress/gzhttp"
)

// Compression of responses.
const (
	// minCompressedSize is the minimum size in bytes of a response that is compressed. Shorter
	// responses fit into one network packet even without compression.
	minCompressedSize = 1024
	// maxCompressionJitter is the maximum number of random bytes that are added to a compressed
	// response. Their number depends on a checksum of the response.
	maxCompressionJitter = 32
)

// newCompressor returns middleware that compresses GraphQL responses for clients that accept gzip,
// and sets the Vary header. The files of GraphiQL do not need the middleware, because they are
// stored compressed. zstd is disabled, because each zstd encoder uses megabytes of memory.
//
// The BREACH attack (https://www.breachattack.com) makes a victim's browser send many requests that
// the attacker chooses. The attacker then guesses secrets from the sizes of the compressed
// responses. crosssite.PossibleCSRF prevents these requests, and maxCompressionJitter obscures the
// sizes.
//
// newCompressor returns an error if the compression library rejects the options.
func newCompressor() (func(http.Handler) http.HandlerFunc, error) {
	return gzhttp.NewWrapper(gzhttp.MinSize(minCompressedSize), gzhttp.CompressionLevel(gzip.BestSpeed), gzhttp.EnableZstd(false), gzhttp.RandomJitter(maxCompressionJitter, 0, false))
}
