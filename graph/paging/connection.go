package paging

import (
	"github.com/ordergraph/ordergraph/dynamo"
)

// Connection is one page of a list, as a GraphQL connection. Cursors are created only if the client
// requests them.
type Connection[T any] struct {
	Page  dynamo.Page[T]
	scope CursorScope
}

// NewConnection returns the connection for a page. list identifies the list that contains the page.
func NewConnection[T any](slice dynamo.Page[T], list CursorScope) *Connection[T] {
	return &Connection[T]{Page: slice, scope: list}
}

// Edge is a record with its position in the list.
type Edge[T any] struct {
	node     T
	position string
	scope    *CursorScope
}

// PageInfo reports whether the list has more records before or after the page. It also returns the
// cursors of the first and the last record of the page.
type PageInfo struct {
	HasNextPage, HasPreviousPage bool
	positions                    []string
	scope                        *CursorScope
}

// Nodes returns the records of the page.
func (c *Connection[T]) Nodes() []T { return c.Page.Items }

// Edges returns the records of the page with their cursors.
func (c *Connection[T]) Edges() []*Edge[T] {
	edges, values, positions := make([]*Edge[T], len(c.Page.Items)), make([]Edge[T], len(c.Page.Items)), c.Page.ItemPositions()
	for i, node := range c.Page.Items {
		values[i] = Edge[T]{node: node, position: positions[i], scope: &c.scope}
		edges[i] = &values[i]
	}
	return edges
}

// PageInfo returns the value of the connection's field pageInfo.
func (c *Connection[T]) PageInfo() *PageInfo {
	positions := c.Page.ItemPositions()
	if c.Page.Start != "" {
		positions = []string{c.Page.Start, c.Page.End}
	}
	return &PageInfo{HasNextPage: c.Page.HasNext, HasPreviousPage: c.Page.HasPrevious, positions: positions, scope: &c.scope}
}

// Node returns the record of the edge.
func (e *Edge[T]) Node() T { return e.node }

// Cursor returns the cursor of the record.
func (e *Edge[T]) Cursor() string { return e.scope.Encode(e.position) }

// StartCursor returns the cursor of the page's first record, or nil if the page is empty.
func (p *PageInfo) StartCursor() *string { return p.cursor(0) }

// EndCursor returns the cursor of the page's last record, or nil if the page is empty.
func (p *PageInfo) EndCursor() *string { return p.cursor(len(p.positions) - 1) }

func (p *PageInfo) cursor(index int) *string {
	if len(p.positions) == 0 {
		return nil
	}
	cursor := p.scope.Encode(p.positions[index])
	return &cursor
}
