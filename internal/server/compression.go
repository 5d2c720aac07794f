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
	// response to obscure its size. The number of bytes depends only on a checksum of the response. An
	// attacker therefore cannot compute the exact size from repeated responses.
	maxCompressionJitter = 32
)

// newCompressor returns middleware that compresses GraphQL responses for clients that accept gzip.
// The middleware also sets the Vary header. zstd is disabled, because each zstd encoder uses
// megabytes of memory. The files of GraphiQL do not need the middleware, because they are stored in
// compressed form.
//
// In a BREACH attack (https://www.breachattack.com), a page of another site makes the victim's
// browser send many requests. From the sizes of the compressed responses, the attacker guesses
// secrets in the responses. crosssite.PossibleCSRF blocks such requests, and maxCompressionJitter
// obscures the sizes.
//
// newCompressor returns an error if the compression library rejects the options.
func newCompressor() (func(http.Handler) http.HandlerFunc, error) {
	return gzhttp.NewWrapper(gzhttp.MinSize(minCompressedSize), gzhttp.CompressionLevel(gzip.BestSpeed), gzhttp.EnableZstd(false), gzhttp.RandomJitter(maxCompressionJitter, 0, false))
}
