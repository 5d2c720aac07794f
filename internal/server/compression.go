package server

import (
	"compress/gzip"
	"net/http"

	"github.com/klauspost/compress/gzhttp"
)

// Compression of answers.
const (
	// minCompressed is how many bytes are worth the work: less travels in one packet anyway.
	minCompressed = 1024
	// jitter is up to how many bytes are added, by the content.
	jitter = 32
)

// compression returns what compresses the answers of GraphQL for clients that accept gzip;
// GraphiQL's pages are stored compressed. It says so in Vary. zstd is off: its encoders take
// megabytes each.
//
// To guess a secret from sizes (BREACH, https://www.breachattack.com) somebody has to make a
// victim's browser ask for chosen things many times. forgeable stands against the asking, and
// jitter makes the sizes say less.
//
// Errors: one where the library does not take the options.
func compression() (func(http.Handler) http.HandlerFunc, error) {
	return gzhttp.NewWrapper(gzhttp.MinSize(minCompressed), gzhttp.CompressionLevel(gzip.BestSpeed), gzhttp.EnableZstd(false), gzhttp.RandomJitter(jitter, 0, false))
}
