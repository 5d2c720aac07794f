package document

import (
	"strings"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// cache keeps the documents that were used last, by the hash of their text. It is bounded
// in number and in memory, and safe for concurrent use.
type cache struct {
	mu sync.Mutex
	// kept holds at most so many as it was made for.
	kept *simplelru.LRU[documentHash, cachedDocument]
	// bytes is what the kept documents take, never more than most.
	bytes, most int
}

// cachedDocument is a document with what it takes, which is reckoned once.
type cachedDocument struct {
	document *Document
	bytes    int
}

// newCache returns a cache of so many documents, in so many bytes.
func newCache(documents, bytes int) *cache {
	c := &cache{most: bytes}
	// It fails for a size below one alone.
	c.kept, _ = simplelru.NewLRU(max(documents, 1), func(_ documentHash, gone cachedDocument) { c.bytes -= gone.bytes })
	return c
}

// get returns a document, nil where it is not kept.
func (c *cache) get(hash documentHash) *Document {
	c.mu.Lock()
	defer c.mu.Unlock()
	kept, _ := c.kept.Get(hash)
	return kept.document
}

// add keeps a document. One with errors is not kept, nor one that alone takes more than there is.
func (c *cache) add(hash documentHash, d *Document) {
	if len(d.errs) > 0 {
		return
	}
	bytes := d.Bytes()
	if bytes > c.most {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept.Contains(hash) {
		return // another request was first
	}
	c.kept.Add(hash, cachedDocument{d, bytes})
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

// Bytes is what a document takes in memory, about; rather too much than too little.
func (d *Document) Bytes() int {
	// Names and values are parts of the text, but a string with escapes is a copy, in a buffer of
	// up to twice its size. What looks like a comment and is in a string counts as one; that errs
	// on the safe side.
	return documentBytes + 3*len(d.Text) + d.nodes*nodeBytes + strings.Count(d.Text, "#")*commentBytes
}
