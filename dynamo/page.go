package dynamo

import (
	"slices"

	"github.com/ordergraph/ordergraph/dynamo/model"
)

// Page says which part of a list is wanted. Positions are places in a list, as Slice gives them:
// what stands in the sort key behind its constant beginning. They hold no shard, so they outlive a
// change of the number of shards.
type Page struct {
	// Limit is how many records are wanted, at least 1.
	Limit int
	// FromEnd reads the last records of the list (or before Before) instead of the first; they come
	// in the list's order all the same.
	FromEnd bool
	// After and Before are positions between which the page lies, both exclusive, empty for the
	// list's ends.
	After, Before string
	// More asks whether there are records beyond the page, which costs reading one more.
	More bool
}

// want is how many records must be read to fill the page and, if asked, to know whether there are
// more.
func (p Page) want() int {
	if p.More {
		return p.Limit + 1
	}
	return p.Limit
}

// Slice is one page of a list.
type Slice[T any] struct {
	Items []T
	// Positions are the items' places in the list, where reading them told; see Places.
	Positions []string
	// HasNext and HasPrevious tell whether more records stand behind and before the page. Towards
	// the side that was not read it is true where the page was asked for from there; towards the
	// side that was read it is known only where Page.More asked for it.
	HasNext, HasPrevious bool
	// position tells an item's place where Positions are not there.
	position func(T) string
}

// Places are the items' places in the list. For a page of a list that was at hand they are made
// here, as few ask for them.
func (s Slice[T]) Places() []string {
	if s.position == nil {
		return s.Positions
	}
	places := make([]string, len(s.Items))
	for i, item := range s.Items {
		places[i] = s.position(item)
	}
	return places
}

// slice makes a page of what was read for it, in reading order.
func slice[T any](page Page, items []T, positions []string) Slice[T] {
	more := len(items) > page.Limit
	if more {
		items, positions = items[:page.Limit], positions[:page.Limit]
	}
	s := Slice[T]{Items: items, Positions: positions, HasNext: more, HasPrevious: page.After != ""}
	if page.FromEnd {
		slices.Reverse(s.Items)
		slices.Reverse(s.Positions)
		s.HasNext, s.HasPrevious = page.Before != "", more
	}
	return s
}

// PageOf takes a page out of a whole list that is at hand, in ascending order of the positions that
// position tells. It gives what a Query for that page would. The page's items are a part of all,
// not a copy.
func PageOf[T any](all []T, position func(T) string, page Page) Slice[T] {
	part, s := cut[T](all, func(item *T) string { return position(*item) }, page)
	s.Items, s.position = part, position
	return s
}

// PageOfValues is PageOf for a list of values: the page's items point to them.
func PageOfValues[T any](all []T, position func(*T) string, page Page) Slice[*T] {
	part, s := cut[*T](all, position, page)
	s.Items, s.position = make([]*T, len(part)), position
	for i := range part {
		s.Items[i] = &part[i]
	}
	return s
}

// cut finds the part of a list that a page is, and what the page says of what lies beyond it.
func cut[I, T any](all []T, position func(*T) string, page Page) ([]T, Slice[I]) {
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
	more := page.More && len(all) > page.Limit
	size := min(len(all), page.Limit)
	if page.FromEnd {
		return all[len(all)-size:], Slice[I]{HasNext: page.Before != "", HasPrevious: more}
	}
	return all[:size:size], Slice[I]{HasNext: more, HasPrevious: page.After != ""}
}

// narrow returns the bounds that the page leaves of b, in a list that runs up or down.
func (p Page) narrow(b model.Range, direction string) model.Range {
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
