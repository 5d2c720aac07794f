package document

import (
	"strings"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// cache is an LRU cache of documents. The key is the hash of the document's text. The number of
// documents and their memory are limited. A cache is safe for concurrent use.
type cache struct {
	mu sync.Mutex
	// documents contains at most the number of documents passed to newCache.
	documents *simplelru.LRU[documentHash, cachedDocument]
	// bytes is the estimated memory of the cached documents. It never exceeds maxBytes.
	bytes, maxBytes int
}

// cachedDocument is a document and its estimated memory. The estimate is computed once.
type cachedDocument struct {
	document *Document
	bytes    int
}

// newCache returns a cache that contains at most this number of documents and uses at most this
// number of bytes.
func newCache(documents, bytes int) *cache {
	c := &cache{maxBytes: bytes}
	// NewLRU fails only if the size is less than one.
	c.documents, _ = simplelru.NewLRU(max(documents, 1), func(_ documentHash, evicted cachedDocument) { c.bytes -= evicted.bytes })
	return c
}

// get returns the document with this hash, or nil if the cache does not contain it.
func (c *cache) get(hash documentHash) *Document {
	c.mu.Lock()
	defer c.mu.Unlock()
	kept, _ := c.documents.Get(hash)
	return kept.document
}

// add caches a document. It ignores documents with errors and documents that are larger than
// maxBytes.
func (c *cache) add(hash documentHash, d *Document) {
	if len(d.errs) > 0 {
		return
	}
	bytes := d.Bytes()
	if bytes > c.maxBytes {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.documents.Contains(hash) {
		return // another request added the document first
	}
	c.documents.Add(hash, cachedDocument{d, bytes})
	for c.bytes += bytes; c.bytes > c.maxBytes && c.documents.Len() > 0; {
		c.documents.RemoveOldest()
	}
}

// These constants estimate the memory of a document in bytes, without its text. The numbers come
// from measurements (TestDocumentMemoryEstimates in package graph). A node needs memory for its
// fields, for its position, and for its slot in a list, which may have spare capacity. The
// estimates include memory for prepared operations, which are added to the document later.
const (
	documentBytes = 1<<10 + preparedReserveBytes
	nodeBytes     = 256 + nodePreparedReserveBytes
	commentBytes  = 192
	// preparedReserveBytes (for each document) and nodePreparedReserveBytes (for each node) are memory
	// for prepared operations. It suffices for a typical document that is prepared for two
	// combinations of @skip and @include values.
	preparedReserveBytes, nodePreparedReserveBytes = 1 << 10, 320
)

// Bytes estimates the memory of the document. The estimate is usually too high.
func (d *Document) Bytes() int {
	// Names and values share the memory of the text. A string with escapes is copied to a buffer of up
	// to twice its size. A "#" in a string is counted as a comment, so the estimate can be too high.
	return documentBytes + 3*len(d.Text) + d.nodes*nodeBytes + strings.Count(d.Text, "#")*commentBytes
}
