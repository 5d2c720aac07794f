package dynamo

import (
	"context"
	"slices"
	"strings"

	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// listing is a list to read.
type listing struct {
	pattern *model.AccessPattern
	// levels are the partitions that hold the list, in the order in which they are read. A record
	// that moves to another partition moves to a later level. Most lists have one level.
	levels [][]string
	// prefix is the constant beginning of the sort keys. bounds are the positions that belong to
	// the list.
	prefix string
	bounds model.Range
	page   Page
}

// forward reports whether rows are read in ascending order of their positions.
func (l listing) forward() bool { return l.pattern.Direction == model.Ascending != l.page.FromEnd }

// row is a record of a list and its place in it.
type row struct {
	position string
	record   model.Reader
}

// stream is a list in one partition while it is merged with others.
type stream struct {
	partition string
	bounds    model.Range
	// rows were read and not yet given out.
	rows []row
	// given is how many rows were given out.
	given int
	// done reports whether nothing is left to read.
	done bool
	// need is how many rows to read in the next round.
	need int
}

// read returns the rows of the page in reading order, and one more where Page.More asks for it and
// there is one.
//
// Errors: those of failed.
func (s *Store) read(ctx context.Context, l listing) ([]row, error) {
	return l.read(func(streams []*stream) error { return s.readRound(ctx, l, streams) })
}

// read reads one level after another. readRound reads what planRound set.
//
// A record that moves to a later level in the meantime is not missed, as far as the index is up to
// date: its old level finds it, or it had left that level before it was read, and then a later
// level finds it. For this no level is read again once a later one has begun.
func (l listing) read(readRound func([]*stream) error) ([]row, error) {
	var rows []row
	for _, partitions := range l.levels {
		var err error
		if rows, err = l.readLevel(rows, partitions, readRound); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// readLevel adds one level to the rows that the levels before it gave. Rows behind the end of a
// full page are not read.
//
// It merges the partitions without reading a full page of each. The first round reads somewhat more
// than each one's share of the page. Then rows are given out by position until a partition runs out
// of them; a further round reads those partitions whose rows in hand end before the page is full.
// At most three pages and one row a partition are read in all; merged tells in how many requests
// and rounds.
func (l listing) readLevel(found []row, partitions []string, readRound func([]*stream) error) ([]row, error) {
	want, page, forward := l.page.want(), l.page, l.forward()
	if len(found) == want {
		end := found[want-1].position
		if page.FromEnd {
			page.After = end
		} else {
			page.Before = end
		}
	}
	b := page.narrow(l.bounds, l.pattern.Direction)
	if b.Empty() {
		return found, nil
	}
	earlier := &stream{rows: found, done: true}
	all := append(make([]*stream, 0, 1+len(partitions)), earlier)
	for _, p := range partitions {
		all = append(all, &stream{partition: p, bounds: b})
	}
	streams := all[1:]
	rows := make([]row, 0, want)
	for len(rows) < want && planRound(streams, earlier.rows, want-len(rows), page.Limit, forward) {
		if err := readRound(streams); err != nil {
			return nil, err
		}
		rows = giveOut(rows, all, want, forward)
	}
	return rows, nil
}

// planRound sets how many rows to read of each stream, when left rows are still to be given out;
// false where there is nothing to read. earlier are rows of earlier levels that were not yet given
// out.
func planRound(streams []*stream, earlier []row, left, limit int, forward bool) bool {
	if len(streams) == 1 {
		streams[0].need = left
		return !streams[0].done
	}
	short, extra := runningOut(streams, earlier, left, forward)
	if len(short) == 0 {
		return false
	}
	// What is read beyond the first row of a stream may turn out not to be wanted.
	spare := max(0, allowance(limit)-extra) / len(short)
	share := firstShare(left, len(short))
	for _, st := range short {
		st.need = min(share, spare)
		if len(st.rows) == 0 {
			// Nothing goes on without a row of this stream. What it has given out is why it is
			// worth more than one: so a stream that has the whole page grows, and is not asked
			// again for every row while what was read of others fills the allowance.
			st.need = max(min(share, spare+1), min(left, regrowth(st.given)))
		}
	}
	return true
}

// allowance is how many rows beyond the first of each stream may be in hand before nothing more is
// read ahead.
func allowance(limit int) int { return 7 * limit / 4 }

// firstShare is how many rows to read of each of so many streams, when left rows are still to be
// given out: half more than the even share.
func firstShare(left, streams int) int { return min(left, 3*left/(2*streams)+1) }

// regrowth is how many rows to read at least of a stream that has given out so many and has none
// left.
func regrowth(given int) int { return given/4 + 1 }

// runningOut gives the streams that have more to read and no row in hand from behind the page's
// end, as far as it can be seen; and how many rows are in hand beyond the first of each stream. It
// lets all streams need nothing.
func runningOut(streams []*stream, earlier []row, left int, forward bool) (short []*stream, extra int) {
	var inHand []string
	for _, r := range earlier {
		inHand = append(inHand, r.position)
	}
	for _, st := range streams {
		st.need = 0
		extra += max(0, len(st.rows)-1)
		for _, r := range st.rows {
			inHand = append(inHand, r.position)
		}
	}
	slices.Sort(inHand)
	if !forward {
		slices.Reverse(inHand)
	}
	for _, st := range streams {
		if st.done {
			continue
		}
		if len(st.rows) > 0 && len(inHand) >= left {
			if last, end := st.rows[len(st.rows)-1].position, inHand[left-1]; last == end || (last > end) == forward {
				continue
			}
		}
		short = append(short, st)
	}
	return short, extra
}

// readRound reads what planRound set, all streams at once.
func (s *Store) readRound(ctx context.Context, l listing, streams []*stream) error {
	var wanted []*stream
	for _, st := range streams {
		if st.need > 0 {
			wanted = append(wanted, st)
		}
	}
	return table.Parallel(ctx, len(wanted), table.MaxParallel, func(ctx context.Context, i int) error {
		return s.readStream(ctx, l, wanted[i])
	})
}

// readStream reads the rows that a stream needs.
func (s *Store) readStream(ctx context.Context, l listing, st *stream) error {
	forward := l.forward()
	records, more, err := s.table.QueryUpTo(ctx, l.pattern, st.partition, l.prefix, st.bounds, st.need, forward)
	if err != nil {
		return err
	}
	_, sk := l.pattern.KeyAttributes()
	st.rows = slices.Grow(st.rows, len(records))
	for _, r := range records {
		st.rows = append(st.rows, row{position: strings.TrimPrefix(r.Text(sk), l.prefix), record: r})
	}
	st.took(len(records), more, forward)
	return nil
}

// took notes that a Query added so many rows, and whether it left more.
func (st *stream) took(rows int, more, forward bool) {
	st.need -= rows
	st.done = !more
	if rows == 0 {
		return
	}
	st.bounds = st.bounds.Behind(st.rows[len(st.rows)-1].position, forward)
	st.done = st.done || st.bounds.Empty()
}

// giveOut moves rows from the streams to the page as long as it is certain which one is next.
func giveOut(rows []row, streams []*stream, want int, forward bool) []row {
	for len(rows) < want {
		var next *stream
		for _, st := range streams {
			if len(st.rows) == 0 {
				if st.done {
					continue
				}
				return rows
			}
			if next == nil || (st.rows[0].position < next.rows[0].position) == forward {
				next = st
			}
		}
		if next == nil {
			return rows
		}
		rows = appendRow(rows, next.rows[0])
		next.rows, next.given = next.rows[1:], next.given+1
	}
	return rows
}

// appendRow adds a row to the page. A record that moves from one partition to another while they
// are read can be seen in both, as an index lags behind its table: the newer version counts.
func appendRow(rows []row, r row) []row {
	if n := len(rows); n > 0 && rows[n-1].position == r.position && rows[n-1].record.KeyText() == r.record.KeyText() {
		seen, now := rows[n-1].record, r.record
		if now.Number(model.AttrVersion) > seen.Number(model.AttrVersion) {
			rows[n-1] = r
		}
		return rows
	}
	return append(rows, r)
}
