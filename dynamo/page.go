package dynamo

import (
	"slices"

	"github.com/ordergraph/ordergraph/dynamo/model"
)

// PageRequest requests a part of a list. A position is the sort key of a record without its
// constant prefix, as in Slice.Positions. Positions contain no shard, so they stay valid if the
// number of shards changes.
type PageRequest struct {
	// Limit is the maximum number of records, at least 1.
	Limit int
	// FromEnd requests the last records of the list, or the last ones before Before. The result is
	// still in the order of the list.
	FromEnd bool
	// After and Before are exclusive positions that limit the page. Empty means the start or the end
	// of the list.
	After, Before string
	// DetectMore requests HasNext, or HasPrevious if FromEnd is set. It reads one more record.
	DetectMore bool
}

// fetchLimit returns how many records to read: the limit, and one more if Page.DetectMore is set.
func (p PageRequest) fetchLimit() int {
	if p.DetectMore {
		return p.Limit + 1
	}
	return p.Limit
}

// Page is one page of a list.
type Page[T any] struct {
	Items []T
	// Positions are the positions of Items, if reading the list returned them. Use Places to get them
	// in all cases.
	Positions []string
	// HasNext and HasPrevious report whether records follow and precede the page. In reading
	// direction, the answer is known only if Page.DetectMore was set. In the other direction, it is
	// true if the page starts at a given position.
	HasNext, HasPrevious bool
	// position returns an item's position if Positions are not set.
	position func(T) string
}

// ItemPositions returns the positions of Items. For a list in memory, it computes them on demand,
// because few callers need them.
func (s Page[T]) ItemPositions() []string {
	if s.position == nil {
		return s.Positions
	}
	places := make([]string, len(s.Items))
	for i, item := range s.Items {
		places[i] = s.position(item)
	}
	return places
}

// newPage makes a page of items in reading order.
func newPage[T any](page PageRequest, items []T, positions []string) Page[T] {
	more := len(items) > page.Limit
	if more {
		items, positions = items[:page.Limit], positions[:page.Limit]
	}
	s := Page[T]{Items: items, Positions: positions, HasNext: more, HasPrevious: page.After != ""}
	if page.FromEnd {
		slices.Reverse(s.Items)
		slices.Reverse(s.Positions)
		s.HasNext, s.HasPrevious = page.Before != "", more
	}
	return s
}

// PageOf returns a page of a complete list in memory, sorted by position. The result is what a
// Query for that page would return. The page's items are a part of all, not a copy.
func PageOf[T any](all []T, position func(T) string, page PageRequest) Page[T] {
	part, s := cutPage[T](all, func(item *T) string { return position(*item) }, page)
	s.Items, s.position = part, position
	return s
}

// PageOfValues is PageOf for a list of values. The page's items are pointers into all.
func PageOfValues[T any](all []T, position func(*T) string, page PageRequest) Page[*T] {
	part, s := cutPage[*T](all, position, page)
	s.Items, s.position = make([]*T, len(part)), position
	for i := range part {
		s.Items[i] = &part[i]
	}
	return s
}

// cutPage returns the part of a list that belongs to a page. It also sets HasNext and HasPrevious
// in the returned Slice.
func cutPage[I, T any](all []T, position func(*T) string, page PageRequest) ([]T, Page[I]) {
	if page.After != "" {
		for len(all) > 0 && position(&all[0]) <= page.After {
			all = all[1:]
		}
	}
	if page.Before != "" {
		for len(all) > 0 && position(&all[len(all)-1]) >= page.Before {
			all = all[:len(all)-1]
		}
	}
	more := page.DetectMore && len(all) > page.Limit
	size := min(len(all), page.Limit)
	if page.FromEnd {
		return all[len(all)-size:], Page[I]{HasNext: page.Before != "", HasPrevious: more}
	}
	return all[:size:size], Page[I]{HasNext: more, HasPrevious: page.After != ""}
}

// narrow limits b to the positions between After and Before in a list of that direction.
func (p PageRequest) narrow(b model.Range, direction string) model.Range {
	low, high := p.After, p.Before
	if direction == model.Descending {
		low, high = high, low
	}
	if low != "" {
		b.From = max(b.From, model.JustAfter(low))
	}
	if high != "" && (b.To == "" || high < b.To) {
		b.To = high
	}
	return b
}
