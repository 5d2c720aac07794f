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
	// maxCompressionJitter is the maximum number of bytes that are added to a compressed response to
	// hide its exact size. Equal responses get the same number of bytes. Otherwise, an attacker could
	// compute the exact size from several equal responses.
	maxCompressionJitter = 32
)

// newCompressor returns middleware that compresses GraphQL responses with gzip and sets the Vary
// header. If the compression library rejects the options, newCompressor returns an error.
func newCompressor() (func(http.Handler) http.HandlerFunc, error) {
	// zstd is disabled, because each zstd encoder uses megabytes of memory. The jitter and
	// httpheader.PossibleCSRF prevent BREACH attacks (https://www.breachattack.com).
	return gzhttp.NewWrapper(gzhttp.MinSize(minCompressedSize), gzhttp.CompressionLevel(gzip.BestSpeed), gzhttp.EnableZstd(false), gzhttp.RandomJitter(maxCompressionJitter, 0, false))
}
