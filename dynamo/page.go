package dynamo

import (
	"errors"
	"slices"

	"github.com/ordergraph/ordergraph/dynamo/model"
)

// PageRequest requests one page of a list. A record's position in the list is its sort key without
// the prefix that all sort keys of the list share.
type PageRequest struct {
	// Limit is the maximum number of records on the page. It must be at least 1.
	Limit int
	// If FromEnd is true, the page contains the last records of the list, or the last records before
	// the position Before. The records of the page are still in the order of the list.
	FromEnd bool
	// After and Before are positions. The page contains only records after the position After and
	// before the position Before. If After or Before is empty, the list is not limited at this end.
	After, Before string
	// If DetectMore is true, the Store reads one record more than Limit to find out whether the list
	// continues. This makes Page.HasNext exact. If FromEnd is true, it makes Page.HasPrevious exact
	// instead.
	DetectMore bool
}

// fetchLimit returns the number of records to read. This is the limit, plus 1 if DetectMore is set.
func (p PageRequest) fetchLimit() int {
	if p.DetectMore {
		return p.Limit + 1
	}
	return p.Limit
}

// Page is one page of a list.
type Page[T any] struct {
	Items []T
	// Positions are the positions of Items. If the page was cut from a list in memory, Positions is
	// nil. ItemPositions returns the positions in both cases.
	Positions []string
	// HasNext reports whether records follow the page, and HasPrevious whether records precede the
	// page. HasNext is true if the request had a position Before, and HasPrevious is true if it had a
	// position After. Otherwise, PageRequest.DetectMore can make one of them exact.
	HasNext, HasPrevious bool
	// Malformed contains an error for each record that the page leaves out, because the record cannot
	// be decoded. The errors wrap model.ErrCorrupt. If the page leaves out a record, Start and End are
	// the positions of the first and last record of the complete page, so that paging continues after
	// the records that are left out. Otherwise, they are empty.
	Malformed  []error
	Start, End string
	// position returns the position of an item. It is set only if Positions is nil.
	position func(T) string
}

// ItemPositions returns the positions of Items. If the page was cut from a list in memory, each
// call of ItemPositions computes the positions. They are not stored, because few callers need them.
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

// newPage returns a page with the given items, except an item beyond the limit. If page.FromEnd is
// true, newPage reverses the items, because they were read from the end.
func newPage[T any](page PageRequest, items []T, positions []string) Page[T] {
	more := len(items) > page.Limit
	if more {
		items, positions = items[:page.Limit], positions[:page.Limit]
	}
	s := Page[T]{Items: items, Positions: positions}
	s.HasNext, s.HasPrevious = page.flags(more)
	if page.FromEnd {
		slices.Reverse(s.Items)
		slices.Reverse(s.Positions)
	}
	return s
}

// errNotInList means that other software wrote a record, so it is not in the list that a Query reads.
var errNotInList = errors.New("the record is not in the list")

// without removes records from a page that is not empty. reasons contains the reason for each record,
// or nil for a record that stays.
func (s Page[T]) without(reasons []error) Page[T] {
	kept := Page[T]{Start: s.Positions[0], End: s.Positions[len(s.Positions)-1], HasNext: s.HasNext, HasPrevious: s.HasPrevious, Items: []T{}}
	for i, err := range reasons {
		switch {
		case err == nil:
			kept.Items, kept.Positions = append(kept.Items, s.Items[i]), append(kept.Positions, s.Positions[i])
		case !errors.Is(err, errNotInList):
			kept.Malformed = append(kept.Malformed, err)
		}
	}
	return kept
}

// flags returns the values of Page.HasNext and Page.HasPrevious. more reports whether the range
// between After and Before has more records than the page.
func (p PageRequest) flags(more bool) (hasNext, hasPrevious bool) {
	// After and Before are the positions of records, so each of them means that there is a record
	// outside of the range.
	return p.Before != "" || more && !p.FromEnd, p.After != "" || more && p.FromEnd
}

// PageOfList returns a page of a complete list in memory. It is the page that a Query would return.
// The list must be sorted by position. The slice Items of the page shares memory with the list.
func PageOfList[T any](all []T, position func(T) string, page PageRequest) Page[T] {
	part, s := cutPage[T](all, func(item *T) string { return position(*item) }, page)
	s.Items, s.position = part, position
	return s
}

// PageOfValues is like PageOfList, but the items of the page are pointers to the elements of the
// list.
func PageOfValues[T any](all []T, position func(*T) string, page PageRequest) Page[*T] {
	part, s := cutPage[*T](all, position, page)
	s.Items, s.position = make([]*T, len(part)), position
	for i := range part {
		s.Items[i] = &part[i]
	}
	return s
}

// cutPage returns the elements of a list that belong to a page. It sets only HasNext and
// HasPrevious of the returned Page.
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
	var flags Page[I]
	flags.HasNext, flags.HasPrevious = page.flags(more)
	if page.FromEnd {
		return all[len(all)-size:], flags
	}
	return all[:size:size], flags
}

// narrow returns the part of the range b that is between After and Before. direction is the order
// of the list: model.Ascending or model.Descending.
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
