package graph

import (
	"strings"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// documentCache keeps the documents that were used last, by the hash of their text. It is bounded
// in number and in memory, and safe for concurrent use.
type documentCache struct {
	mu sync.Mutex
	// kept holds at most so many as it was made for.
	kept *simplelru.LRU[documentHash, keptDocument]
	// bytes is what the kept documents take, never more than most.
	bytes, most int
}

// keptDocument is a document with what it takes, which is reckoned once.
type keptDocument struct {
	document *document
	bytes    int
}

// newDocumentCache returns a cache of so many documents, in so many bytes.
func newDocumentCache(documents, bytes int) *documentCache {
	c := &documentCache{most: bytes}
	// It fails for a size below one alone.
	c.kept, _ = simplelru.NewLRU(max(documents, 1), func(_ documentHash, gone keptDocument) { c.bytes -= gone.bytes })
	return c
}

// get returns a document, nil where it is not kept.
func (c *documentCache) get(hash documentHash) *document {
	c.mu.Lock()
	defer c.mu.Unlock()
	kept, _ := c.kept.Get(hash)
	return kept.document
}

// add keeps a document. One with errors is not kept, nor one that alone takes more than there is.
func (c *documentCache) add(hash documentHash, d *document) {
	if len(d.errs) > 0 {
		return
	}
	bytes := d.bytes()
	if bytes > c.most {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept.Contains(hash) {
		return // another request was first
	}
	c.kept.Add(hash, keptDocument{d, bytes})
	for c.bytes += bytes; c.bytes > c.most && c.kept.Len() > 0; {
		c.kept.RemoveOldest()
	}
}

// What a document takes beside its text, measured (TestDocumentsTakeWhatTheyAreSaidTo): each node
// has its members, the token that its position stands in, and its place in a list that may have
// grown too large. And there is room for what is kept for requests to come.
const (
	documentBytes = 1<<10 + roomBytes
	nodeBytes     = 256 + nodeRoomBytes
	commentBytes  = 192
	// roomBytes and nodeRoomBytes are the capacity for prepared operations that the estimate
	// includes from the beginning. It is enough for two sets of conditions of a usual document.
	roomBytes, nodeRoomBytes = 1 << 10, 320
)

// bytes is what a document takes in memory, about; rather too much than too little.
func (d *document) bytes() int {
	// Names and values are parts of the text, but a string with escapes is a copy, in a buffer of
	// up to twice its size. What looks like a comment and is in a string counts as one; that errs
	// on the safe side.
	return documentBytes + 3*len(d.text) + d.nodes*nodeBytes + strings.Count(d.text, "#")*commentBytes
}
