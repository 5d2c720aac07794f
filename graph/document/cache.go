package document

import (
	"strings"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// cache is an LRU cache of documents by the hash of their text. It limits their number and their
// memory. It is safe for concurrent use.
type cache struct {
	mu sync.Mutex
	// documents is the LRU list. newCache sets the maximum number of documents.
	documents *simplelru.LRU[documentHash, cachedDocument]
	// bytes is the estimated memory of all cached documents. maxBytes is the limit of this memory.
	bytes, maxBytes int
}

// cachedDocument is a document with an estimate of its memory in bytes.
type cachedDocument struct {
	document *Document
	bytes    int
}

// newCache returns an empty cache. documents is the maximum number of cached documents, and bytes
// is their maximum total memory.
func newCache(documents, bytes int) *cache {
	c := &cache{maxBytes: bytes}
	// NewLRU returns an error only if the size is less than 1, so the error can be ignored.
	c.documents, _ = simplelru.NewLRU(max(documents, 1), func(_ documentHash, evicted cachedDocument) { c.bytes -= evicted.bytes })
	return c
}

// get returns the document with the given hash, or nil if the document is not cached.
func (c *cache) get(hash documentHash) *Document {
	c.mu.Lock()
	defer c.mu.Unlock()
	kept, _ := c.documents.Get(hash)
	return kept.document
}

// add caches a document, unless the document has errors or needs more than maxBytes bytes.
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

// These constants estimate the memory of a document, of each node of its syntax tree and of each
// comment, in bytes. TestDocumentMemoryEstimates in package graph checks them.
const (
	documentBytes = 1<<10 + preparedReserveBytes
	nodeBytes     = 256 + nodePreparedReserveBytes
	commentBytes  = 192
	// preparedReserveBytes is the memory that each document reserves for prepared operations. Each
	// node reserves nodePreparedReserveBytes in addition. This is enough to prepare a typical document
	// for two combinations of @skip and @include values.
	preparedReserveBytes, nodePreparedReserveBytes = 1 << 10, 320
)

// Bytes returns the estimated memory of the document in bytes. The estimate is usually too high.
func (d *Document) Bytes() int {
	// If a string has escape sequences, the parser also copies it to a buffer of up to twice its size.
	// The text therefore counts three times. Each "#" counts as a comment, even in a string.
	return documentBytes + 3*len(d.Text) + d.nodes*nodeBytes + strings.Count(d.Text, "#")*commentBytes
}
