package dynamo

import (
	"context"
	"slices"
	"strings"

	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// listing describes how to read one page of a list.
type listing struct {
	pattern *model.AccessPattern
	// levels are groups of partition keys. The partitions of one level are read concurrently, and the
	// levels one after another. If a record moves to another partition, it moves to a later level.
	// Most lists have one level.
	levels [][]string
	// prefix is the constant prefix of the sort keys. bounds limits the part of the sort key after the
	// prefix.
	prefix string
	bounds model.Range
	page   PageRequest
}

// forward reports whether the rows are read in ascending order of their sort keys.
func (l listing) forward() bool { return l.pattern.Direction == model.Ascending != l.page.FromEnd }

// row is a record of a list and its position: its sort key without the constant prefix.
type row struct {
	position string
	record   model.Reader
}

// partitionReader is the state of reading one partition of a list while its partitions are merged.
type partitionReader struct {
	key    string
	bounds model.Range
	// rows are buffered: they have been read and have not been moved to the page.
	rows []row
	// emitted is the number of rows that were moved to the page.
	emitted int
	// done reports whether the partition has no more rows to read.
	done bool
	// need is the number of rows to read in the next round.
	need int
}

// read returns the rows of the page in the order in which they were read. If DetectMore is set and
// the list has more rows, read returns one row more than the limit.
//
// Errors: the errors of table.WrapError.
func (s *Store) read(ctx context.Context, l listing) ([]row, error) {
	return l.read(func(readers []*partitionReader) error { return s.readRound(ctx, l, readers) })
}

// read reads the levels of the list one after another. It calls readRound to read the rows that
// planRound requested.
//
// If the index is up to date, the read does not miss a record that moves to a later level during
// the read. Either the read finds the record in its old level, or it finds the record later in its
// new level. Therefore no level is read twice.
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

// readLevel merges the partitions of one level with the rows of earlier levels. It does not read
// rows beyond the end of a full page.
//
// readLevel reads less than a full page from each partition. The first round reads slightly more
// than an even share of the page from each partition. Rows then move to the page in the order of
// their positions, until a partition has no buffered rows. The next round reads the partitions that
// can still contribute to the page. All rounds together read at most three pages and one row per
// partition. maxMergeCost calculates the maximum number of requests and rounds.
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

// planRound sets the number of rows to read from each partition. left is the number of rows that
// the page still needs. earlier are rows of earlier levels that are not on the page yet. planRound
// returns false if no partition needs to be read.
func planRound(readers []*partitionReader, earlier []row, left, limit int, forward bool) bool {
	if len(readers) == 1 {
		readers[0].need = left
		return !readers[0].done
	}
	toRead, extra := partitionsToRead(readers, earlier, left, forward)
	if len(toRead) == 0 {
		return false
	}
	// All buffered rows of a partition after its first may turn out to be unnecessary.
	spare := max(0, readAheadLimit(limit)-extra) / len(toRead)
	share := firstReadSize(left, len(toRead))
	for _, pr := range toRead {
		pr.need = min(share, spare)
		if len(pr.rows) == 0 {
			// The merge cannot continue without a row of this partition. A partition that has contributed
			// many rows to the page reads more than one row. Otherwise, a partition with all rows of the
			// page could need one round for each row, if other partitions use up readAheadLimit.
			pr.need = max(min(share, spare+1), min(left, minGrowth(pr.emitted)))
		}
	}
	return true
}

// readAheadLimit is the maximum number of rows that partitions buffer in addition to their first
// rows. Partitions do not read ahead when this limit is reached.
func readAheadLimit(limit int) int { return 7 * limit / 4 }

// firstReadSize returns the number of rows to read from each partition. left is the number of rows
// that the page still needs. The result is 1.5 times an even share of these rows.
func firstReadSize(left, readers int) int { return min(left, 3*left/(2*readers)+1) }

// minGrowth returns the minimum number of rows to read from a partition without buffered rows.
// given is the number of rows that the partition has contributed to the page.
func minGrowth(given int) int { return given/4 + 1 }

// partitionsToRead returns the partitions that must be read before the page is complete. It skips a
// partition if a buffered row of the partition is at or beyond the known end of the page.
//
// extra is the number of buffered rows, not counting the first row of each partition. The function
// also sets the field need of all partitions to 0.
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

// readRound reads the rows that planRound requested. It reads all partitions concurrently.
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

// emitRows moves rows from the partitions to the page in the order of their positions. It stops
// when an unfinished partition has no buffered rows, because that partition may contain the next
// row.
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

// appendRow adds a row to the page. A record that moves between partitions can be read from both
// partitions, because the index lags behind the table. In this case, the page keeps the newer
// version of the record.
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
