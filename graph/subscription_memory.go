package graph

import (
	"sync"

	"github.com/vektah/gqlparser/v2/ast"
)

// followedBytes is how much memory the documents and variables of subscriptions can take together. Those of queries are gone with their
// answers; ten thousand subscriptions, each with the longest document that there can be, would hold gigabytes for as long as they like.
const followedBytes = 16 << 20

// followedDocuments counts what subscriptions hold. One document that many send is held once. It is safe for concurrent use.
type followedDocuments struct {
	mu    sync.Mutex
	left  int
	holds map[*ast.QueryDocument]heldDocument
}

type heldDocument struct{ by, bytes int }

func newFollowedDocuments(bytes int) *followedDocuments {
	return &followedDocuments{left: bytes, holds: map[*ast.QueryDocument]heldDocument{}}
}

// take counts a subscription, and tells whether there is room for it.
func (f *followedDocuments) take(o *operation) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	held, bytes := f.holds[o.Doc], variableBytes(o.Variables)
	if held.by == 0 {
		held.bytes = o.document.bytes()
		bytes += held.bytes
	}
	if bytes > f.left {
		return false
	}
	f.left -= bytes
	held.by++
	f.holds[o.Doc] = held
	return true
}

// give takes back what take has counted.
func (f *followedDocuments) give(o *operation) {
	f.mu.Lock()
	defer f.mu.Unlock()
	held := f.holds[o.Doc]
	f.left += variableBytes(o.Variables)
	if held.by--; held.by > 0 {
		f.holds[o.Doc] = held
		return
	}
	f.left += held.bytes
	delete(f.holds, o.Doc)
}

// variableBytes is what a value of the variables takes, about: each value has a place of some words in a list or a map.
func variableBytes(value any) int {
	const place = 64
	switch value := value.(type) {
	case string:
		return place + len(value)
	case []any:
		bytes := place
		for _, v := range value {
			bytes += variableBytes(v)
		}
		return bytes
	case map[string]any:
		bytes := place
		for name, v := range value {
			bytes += len(name) + variableBytes(v)
		}
		return bytes
	default:
		return place
	}
}
