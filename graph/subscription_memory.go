package graph

import (
	"sync"

	"github.com/ordergraph/ordergraph/graph/document"
)

// followedBytes is how much memory the documents and variables of subscriptions can take together.
// Those of queries are gone with their answers; ten thousand subscriptions, each with the longest
// document that there can be, would hold gigabytes for as long as they like.
const followedBytes = 16 << 20

// followedDocuments counts what subscriptions hold. One document that many send is held once. It is
// safe for concurrent use.
type followedDocuments struct {
	mu   sync.Mutex
	left int
	// by is the number of subscriptions of each document.
	by map[*document.Document]int
}

// take counts a subscription, and reports whether there is room for it.
func (f *followedDocuments) take(o *admittedOperation) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	bytes := variableBytes(o.Variables)
	if f.by[o.document] == 0 {
		bytes += o.document.Bytes()
	}
	if bytes > f.left {
		return false
	}
	f.left -= bytes
	f.by[o.document]++
	return true
}

// give takes back what take has counted.
func (f *followedDocuments) give(o *admittedOperation) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left += variableBytes(o.Variables)
	if f.by[o.document]--; f.by[o.document] == 0 {
		f.left += o.document.Bytes()
		delete(f.by, o.document)
	}
}

// variableBytes is what a value of the variables takes, about: each value has a place of some words
// in a list or a map.
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
