package dynamo

import (
	"context"
	"slices"
	"strings"

	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// listQuery describes which partitions and sort keys to read for one page of a list.
type listQuery struct {
	pattern *model.AccessPattern
	// levels are groups of partition keys. The partitions of one level are read concurrently, and the
	// levels one after another. A record that moves to another partition always moves to a later
	// level. Most lists have one level.
	levels [][]string
	// prefix is the constant prefix of the sort keys. bounds is the range of the part after the
	// prefix.
	prefix string
	bounds model.Range
	page   PageRequest
}

// forward reports whether the rows are read in ascending order of their sort keys.
func (l listQuery) forward() bool { return l.pattern.Direction == model.Ascending != l.page.FromEnd }

// row is a record of a list and its position: its sort key without the constant prefix.
type row struct {
	position string
	record   model.Reader
}

// partitionReader is the state of reading one partition of a list while its partitions are merged.
type partitionReader struct {
	key    string
	bounds model.Range
	// rows are the buffered rows, which have been read but not yet moved to the page.
	rows []row
	// emitted is the number of rows that were moved to the page.
	emitted int
	// done reports whether the partition has no more rows to read.
	done bool
	// need is the number of rows to read from the partition in the next round of Queries.
	need int
}

// readRows returns the rows of the page in the order of reading, which is reversed with FromEnd. If
// DetectMore is set and the list has more rows, readRows returns one row more than the limit.
//
// Errors: the errors of table.WrapError.
func (s *Store) readRows(ctx context.Context, l listQuery) ([]row, error) {
	return l.read(func(readers []*partitionReader) error { return s.readRound(ctx, l, readers) })
}

// read reads the levels of the list one after another. It calls readRound to read the rows that
// planRound requested.
//
// A record may move to a later level during the read. If the index is up to date, the read finds
// the record either in its old level or, later, in its new level. Therefore each level is read only
// once.
func (l listQuery) read(readRound func([]*partitionReader) error) ([]row, error) {
	var rows []row
	for _, partitions := range l.levels {
		var err error
		if rows, err = l.readLevel(rows, partitions, readRound); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// readLevel merges the rows in the partitions of one level with found, the rows of earlier levels.
// If found fills the page, readLevel does not read beyond its last row.
//
// It reads in rounds. A round reads several partitions concurrently, and less than a full page from
// each. The first round reads 1.5 times an even share of the page from each partition. Rows then
// move to the page in the order of their positions, until a partition has no buffered rows. The
// next round reads the partitions that can still contribute to the page. All rounds together read
// at most three pages plus one row per partition. maxMergeCost calculates the maximum number of
// requests and rounds.
func (l listQuery) readLevel(found []row, partitions []string, readRound func([]*partitionReader) error) ([]row, error) {
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
		rows = mergeRows(rows, all, want, forward)
	}
	return rows, nil
}

// planRound sets the number of rows to read from each partition in the next round. left is the
// number of rows missing from the page. earlier are rows of earlier levels that are not on the page
// yet. planRound returns false if no partition must be read.
func planRound(readers []*partitionReader, earlier []row, left, limit int, forward bool) bool {
	if len(readers) == 1 {
		readers[0].need = left
		return !readers[0].done
	}
	toRead, extra := partitionsToRead(readers, earlier, left, forward)
	if len(toRead) == 0 {
		return false
	}
	// The page may never use the rows that a partition has buffered after its first row. Therefore
	// readAheadLimit limits their number.
	spare := max(0, readAheadLimit(limit)-extra) / len(toRead)
	share := firstReadSize(left, len(toRead))
	for _, pr := range toRead {
		pr.need = min(share, spare)
		if len(pr.rows) == 0 {
			// The merge waits for a row of this partition. If the partition has already contributed many
			// rows, it reads several more, even if the other partitions have used up readAheadLimit.
			// Otherwise, a partition that contains the whole page could need one round per row.
			pr.need = max(min(share, spare+1), min(left, minRefillSize(pr.emitted)))
		}
	}
	return true
}

// readAheadLimit is the maximum number of rows that all partitions together buffer, not counting
// the first row of each partition. limit is the limit of the page.
func readAheadLimit(limit int) int { return 7 * limit / 4 }

// firstReadSize returns the number of rows to read from each of the given number of partitions.
// left is the number of rows missing from the page. The result is 1.5 times an even share of left.
func firstReadSize(left, readers int) int { return min(left, 3*left/(2*readers)+1) }

// minRefillSize returns the minimum number of rows to read from a partition without buffered rows.
// given is the number of rows that the page already has from this partition.
func minRefillSize(given int) int { return given/4 + 1 }

// partitionsToRead returns the partitions that may still have rows for the page. left is the number
// of rows that are missing from the page. If at least left rows are buffered, the first left of
// them could complete the page, so the page ends at the last of them or earlier. A partition that
// has already returned a row at or after this position is skipped.
//
// extra is the number of buffered rows, not counting the first row of each partition.
// partitionsToRead also sets the field need of all partitions to 0.
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

// readRound reads the rows that planRound requested from the partitions, concurrently.
func (s *Store) readRound(ctx context.Context, l listQuery, readers []*partitionReader) error {
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
func (s *Store) readPartition(ctx context.Context, l listQuery, pr *partitionReader) error {
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

// recordQuery updates the state of a partition after a Query. rows is the number of rows that the
// Query returned, and more reports whether the partition has further rows.
func (pr *partitionReader) recordQuery(rows int, more, forward bool) {
	pr.need -= rows
	pr.done = !more
	if rows == 0 {
		return
	}
	pr.bounds = pr.bounds.Remaining(pr.rows[len(pr.rows)-1].position, forward)
	pr.done = pr.done || pr.bounds.Empty()
}

// mergeRows moves buffered rows to the page in the order of their positions. It stops when a
// partition has no buffered rows but is not completely read, because that partition may contain the
// next row.
func mergeRows(rows []row, readers []*partitionReader, want int, forward bool) []row {
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

// appendRow adds a row to the page. The read can find a record twice if the record moves to another
// partition during the read. In this case, the page keeps the newer version of the record.
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
