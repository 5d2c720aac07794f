package dynamo

import (
	"context"
	"slices"
	"strings"

	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// listing describes the read of one page of a list.
type listing struct {
	pattern *model.AccessPattern
	// levels are groups of partitions that hold the list. The groups are read one after another. A
	// record that moves to another partition moves to a later level. Most lists have one level.
	levels [][]string
	// prefix is the constant prefix of the sort keys. bounds limit the positions of the list.
	prefix string
	bounds model.Range
	page   PageRequest
}

// forward reports whether rows are read in ascending order of their positions.
func (l listing) forward() bool { return l.pattern.Direction == model.Ascending != l.page.FromEnd }

// row is a record of a list and its position.
type row struct {
	position string
	record   model.Reader
}

// partitionReader is the part of a list in one partition, while the partitions are merged.
type partitionReader struct {
	key    string
	bounds model.Range
	// rows have been read and not yet moved to the page.
	rows []row
	// emitted is the number of rows moved to the page.
	emitted int
	// done reports whether the partition has no more rows to read.
	done bool
	// need is the number of rows to read in the next round.
	need int
}

// read returns the rows of the page in reading order. If Page.DetectMore is set, it returns one row
// more than the limit if that row exists.
//
// It returns the errors of table.WrapError.
func (s *Store) read(ctx context.Context, l listing) ([]row, error) {
	return l.read(func(readers []*partitionReader) error { return s.readRound(ctx, l, readers) })
}

// read reads one level after another. readRound reads the rows that planRound requested.
//
// A record that moves to a later level during the read is not missed, as far as the index is up to
// date. Either its old level finds the record, or the record had moved before that level was read,
// and a later level finds it. Therefore no level is read again after a later level has begun.
func (l listing) read(readRound func([]*partitionReader) error) ([]row, error) {
	var rows []row
	for _, partitions := range l.levels {
		var err error
		if rows, err = l.readLevel(rows, partitions, readRound); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// readLevel adds the rows of one level to the rows of earlier levels. It does not read rows beyond
// the end of a full page.
//
// It merges the partitions without reading a full page of each. The first round reads slightly more
// than an even share of the page from each partition. Then rows move to the page by position, until
// a partition has no rows in memory. The next round reads the partitions whose rows in memory end
// before the page is full. All rounds together read at most three pages and one row per partition.
// The function maxMergeCost bounds the requests and rounds.
func (l listing) readLevel(found []row, partitions []string, readRound func([]*partitionReader) error) ([]row, error) {
	want, page, forward := l.page.fetchLimit(), l.page, l.forward()
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
	earlier := &partitionReader{rows: found, done: true}
	all := append(make([]*partitionReader, 0, 1+len(partitions)), earlier)
	for _, p := range partitions {
		all = append(all, &partitionReader{key: p, bounds: b})
	}
	readers := all[1:]
	rows := make([]row, 0, want)
	for len(rows) < want && planRound(readers, earlier.rows, want-len(rows), page.Limit, forward) {
		if err := readRound(readers); err != nil {
			return nil, err
		}
		rows = emitRows(rows, all, want, forward)
	}
	return rows, nil
}

// planRound sets how many rows to read from each partition, if the page still needs left rows. It
// reports false if nothing is to be read. earlier are rows of earlier levels that have not been
// moved to the page.
func planRound(readers []*partitionReader, earlier []row, left, limit int, forward bool) bool {
	if len(readers) == 1 {
		readers[0].need = left
		return !readers[0].done
	}
	toRead, extra := partitionsToRead(readers, earlier, left, forward)
	if len(toRead) == 0 {
		return false
	}
	// Rows beyond the first row of a partition may turn out not to be needed.
	spare := max(0, readAheadLimit(limit)-extra) / len(toRead)
	share := firstReadSize(left, len(toRead))
	for _, pr := range toRead {
		pr.need = min(share, spare)
		if len(pr.rows) == 0 {
			// The merge cannot continue without a row of this partition. A partition that has given many
			// rows to the page reads more than one. Otherwise a partition that holds the whole page would
			// read each row in a separate round while rows of other partitions use up the readAheadLimit.
			pr.need = max(min(share, spare+1), min(left, minGrowth(pr.emitted)))
		}
	}
	return true
}

// readAheadLimit is the maximum number of rows in memory beyond the first row of each partition. At
// the maximum, nothing more is read ahead.
func readAheadLimit(limit int) int { return 7 * limit / 4 }

// firstReadSize is the number of rows to read from each partition if the page still needs left
// rows. It is half more than an even share.
func firstReadSize(left, readers int) int { return min(left, 3*left/(2*readers)+1) }

// minGrowth is the minimum number of rows to read from a partition without rows in memory that has
// given this many rows to the page.
func minGrowth(given int) int { return given/4 + 1 }

// partitionsToRead returns the partitions that have more to read, and no row in memory that lies
// beyond the known end of the page. It also returns how many rows are in memory beyond the first
// row of each partition. It resets the need of all partitions.
func partitionsToRead(readers []*partitionReader, earlier []row, left int, forward bool) (toRead []*partitionReader, extra int) {
	var inHand []string
	for _, r := range earlier {
		inHand = append(inHand, r.position)
	}
	for _, pr := range readers {
		pr.need = 0
		extra += max(0, len(pr.rows)-1)
		for _, r := range pr.rows {
			inHand = append(inHand, r.position)
		}
	}
	slices.Sort(inHand)
	if !forward {
		slices.Reverse(inHand)
	}
	for _, pr := range readers {
		if pr.done {
			continue
		}
		if len(pr.rows) > 0 && len(inHand) >= left {
			if last, end := pr.rows[len(pr.rows)-1].position, inHand[left-1]; last == end || (last > end) == forward {
				continue
			}
		}
		toRead = append(toRead, pr)
	}
	return toRead, extra
}

// readRound reads the rows that planRound requested, from all partitions concurrently.
func (s *Store) readRound(ctx context.Context, l listing, readers []*partitionReader) error {
	var pending []*partitionReader
	for _, pr := range readers {
		if pr.need > 0 {
			pending = append(pending, pr)
		}
	}
	return table.Parallel(ctx, len(pending), table.MaxParallel, func(ctx context.Context, i int) error {
		return s.readPartition(ctx, l, pending[i])
	})
}

// readPartition reads the rows that a partition needs.
func (s *Store) readPartition(ctx context.Context, l listing, pr *partitionReader) error {
	forward := l.forward()
	records, more, err := s.table.QueryUpTo(ctx, l.pattern, pr.key, l.prefix, pr.bounds, pr.need, forward)
	if err != nil {
		return err
	}
	_, sk := l.pattern.KeyAttributes()
	pr.rows = slices.Grow(pr.rows, len(records))
	for _, r := range records {
		pr.rows = append(pr.rows, row{position: strings.TrimPrefix(r.Text(sk), l.prefix), record: r})
	}
	pr.recordQuery(len(records), more, forward)
	return nil
}

// recordQuery records that a Query added rows, and whether the partition has more.
func (pr *partitionReader) recordQuery(rows int, more, forward bool) {
	pr.need -= rows
	pr.done = !more
	if rows == 0 {
		return
	}
	pr.bounds = pr.bounds.Remaining(pr.rows[len(pr.rows)-1].position, forward)
	pr.done = pr.done || pr.bounds.Empty()
}

// emitRows moves rows from the partitions to the page as long as the next row is certain.
func emitRows(rows []row, readers []*partitionReader, want int, forward bool) []row {
	for len(rows) < want {
		var next *partitionReader
		for _, pr := range readers {
			if len(pr.rows) == 0 {
				if pr.done {
					continue
				}
				return rows
			}
			if next == nil || (pr.rows[0].position < next.rows[0].position) == forward {
				next = pr
			}
		}
		if next == nil {
			return rows
		}
		rows = appendRow(rows, next.rows[0])
		next.rows, next.emitted = next.rows[1:], next.emitted+1
	}
	return rows
}

// appendRow adds a row to the page. The index lags behind the table, so a record that moves between
// partitions can be read from both. Then the newer version replaces the older one.
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
