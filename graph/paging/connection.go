package paging

import (
	"github.com/ordergraph/ordergraph/dynamo"
)

// Connection is one page of a list. Cursors are made only where they are asked for.
type Connection[T any] struct {
	Slice dynamo.Slice[T]
	list  Scope
}

// NewConnection returns a page of a list.
func NewConnection[T any](slice dynamo.Slice[T], list Scope) *Connection[T] {
	return &Connection[T]{Slice: slice, list: list}
}

// Edge is one record of a page and its place in the list.
type Edge[T any] struct {
	node     T
	position string
	list     *Scope
}

// PageInfo is where a page stands in its list.
type PageInfo struct {
	HasNextPage, HasPreviousPage bool
	positions                    []string
	list                         *Scope
}

// Nodes are the records of the page.
func (c *Connection[T]) Nodes() []T { return c.Slice.Items }

// Edges are the records of the page with their cursors.
func (c *Connection[T]) Edges() []*Edge[T] {
	edges, of, positions := make([]*Edge[T], len(c.Slice.Items)), make([]Edge[T], len(c.Slice.Items)), c.Slice.Places()
	for i, node := range c.Slice.Items {
		of[i] = Edge[T]{node: node, position: positions[i], list: &c.list}
		edges[i] = &of[i]
	}
	return edges
}

// PageInfo tells where the page stands in the list.
func (c *Connection[T]) PageInfo() *PageInfo {
	return &PageInfo{HasNextPage: c.Slice.HasNext, HasPreviousPage: c.Slice.HasPrevious, positions: c.Slice.Places(), list: &c.list}
}

// Node is the record.
func (e *Edge[T]) Node() T { return e.node }

// Cursor is the record's place in the list.
func (e *Edge[T]) Cursor() string { return e.list.Seal(e.position) }

// StartCursor is the first record's cursor, nil on an empty page.
func (p *PageInfo) StartCursor() *string { return p.cursor(0) }

// EndCursor is the last record's cursor, nil on an empty page.
func (p *PageInfo) EndCursor() *string { return p.cursor(len(p.positions) - 1) }

func (p *PageInfo) cursor(at int) *string {
	if len(p.positions) == 0 {
		return nil
	}
	cursor := p.list.Seal(p.positions[at])
	return &cursor
}
