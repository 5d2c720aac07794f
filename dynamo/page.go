package dynamo

import (
	"slices"

	"github.com/ordergraph/ordergraph/dynamo/model"
)

// PageRequest requests one page of a list. A record's position in the list is its sort key without
// the constant prefix. Positions do not contain shard numbers, so they remain valid if the number
// of shards changes.
type PageRequest struct {
	// Limit is the maximum number of records, at least 1.
	Limit int
	// FromEnd requests the last records of the list, or the last records before the position Before.
	// The records of the page are still in the order of the list.
	FromEnd bool
	// After and Before limit the page to the records between two positions. Both are exclusive. An
	// empty After means the start of the list, and an empty Before means the end.
	After, Before string
	// DetectMore requests an exact value of Page.HasNext, or of Page.HasPrevious if FromEnd is set.
	// The Store then reads one more record than Limit.
	DetectMore bool
}

// fetchLimit returns the number of records to read, which is the limit plus 1 if DetectMore is set.
func (p PageRequest) fetchLimit() int {
	if p.DetectMore {
		return p.Limit + 1
	}
	return p.Limit
}

// Page is one page of a list.
type Page[T any] struct {
	Items []T
	// Positions are the positions of Items. Positions is nil if the page was cut from a list in
	// memory. Use ItemPositions to get the positions in both cases.
	Positions []string
	// HasNext reports whether records follow the page, and HasPrevious whether records precede it.
	// Without FromEnd, HasNext is exact if DetectMore was set and otherwise false, and HasPrevious is
	// true if After was set. With FromEnd, HasPrevious is exact if DetectMore was set and otherwise
	// false, and HasNext is true if Before was set.
	HasNext, HasPrevious bool
	// position computes the position of an item. It is set only if Positions is nil.
	position func(T) string
}

// ItemPositions returns the positions of Items. For a page of a list in memory, it computes the
// positions on demand, because few callers use them.
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

// PageOfList returns a page of a complete list in memory, which must be sorted by position. The page
// equals the page that a Query would return. Its Items slice shares the list's memory.
func PageOfList[T any](all []T, position func(T) string, page PageRequest) Page[T] {
	part, s := cutPage[T](all, func(item *T) string { return position(*item) }, page)
	s.Items, s.position = part, position
	return s
}

// PageOfValues is like PageOfList, but returns pointers to the elements of the list.
func PageOfValues[T any](all []T, position func(*T) string, page PageRequest) Page[*T] {
	part, s := cutPage[*T](all, position, page)
	s.Items, s.position = make([]*T, len(part)), position
	for i := range part {
		s.Items[i] = &part[i]
	}
	return s
}

// cutPage returns the elements of a list that belong to a page. In the returned Page, only HasNext
// and HasPrevious are set.
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

// narrow returns the part of the range b between After and Before. direction is the order of the
// list: ascending or descending.
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
