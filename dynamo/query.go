package dynamo

import (
	"context"
	"slices"
	"strings"

	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// listQuery describes the partitions and the range of sort keys that must be read for one page of a
// list.
type listQuery struct {
	pattern *model.AccessPattern
	// levels are groups of partition keys. The partitions of one level are read concurrently, and the
	// levels are read one after another. If a record moves to another partition, for example because
	// the status of an order changes, it always moves to a later level. Most lists have only one
	// level.
	levels [][]string
	// prefix is the common beginning of all sort keys of the list. bounds is the range of the rest of
	// the sort key.
	prefix string
	bounds model.Range
	page   PageRequest
}

// forward reports whether the rows are read in ascending order of their sort keys.
func (l listQuery) forward() bool { return l.pattern.Direction == model.Ascending != l.page.FromEnd }

// row is a record of a list with its position: its sort key without the prefix that all sort keys
// of the list share.
type row struct {
	position string
	record   model.Reader
}

// partitionReader is the state of reading one partition, while the rows of several partitions are
// merged into one page.
type partitionReader struct {
	key    string
	bounds model.Range
	// rows are the buffered rows. They have been read, but are not on the page yet.
	rows []row
	// emitted is the number of rows of this partition that are on the page.
	emitted int
	// done is true if the partition has no further rows to read.
	done bool
	// need is the number of rows to read from the partition in the next round of Queries.
	need int
}

// readRows returns the rows of the page in the order in which they were read. If FromEnd is set,
// this is the reverse of the order of the list. If DetectMore is set and the list has more rows,
// readRows returns one row more than the limit.
//
// Errors: the errors of table.WrapError.
func (s *Store) readRows(ctx context.Context, l listQuery) ([]row, error) {
	return l.read(func(readers []*partitionReader) error { return s.readRound(ctx, l, readers) })
}

// read reads the levels of the list one after another. A level is a group of partitions that are
// read concurrently. read calls readRound to read the rows that planRound requested.
//
// If a record moves to a later level during the read, the read finds the record in its old or its
// new level. The only exception is an index that lags behind. Therefore it is enough to read each
// level once.
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

// readLevel merges the rows of one level with found, the rows of earlier levels. A level is a group
// of partitions. If found already fills the page, readLevel reads only rows that precede the last
// row of found.
//
// readLevel reads in rounds. A round sends Queries to several partitions concurrently. Each Query
// reads fewer rows than the page needs, because the page consists of rows from all partitions:
//
//   - The first round reads from each partition 1.5 times its even share of the page.
//   - After a round, rows move to the page in the order of their positions. This stops when a
//     partition has no buffered rows.
//   - The next round reads the partitions that can still have rows for the page.
//
// All rounds together read at most three pages, plus one row per partition. maxMergeCost calculates
// the maximum number of rounds and requests.
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
// number of rows that the page still needs. earlier are the rows of earlier levels that are not on
// the page yet. If no partition must be read, planRound returns false.
func planRound(readers []*partitionReader, earlier []row, left, limit int, forward bool) bool {
	if len(readers) == 1 {
		readers[0].need = left
		return !readers[0].done
	}
	toRead, extra := partitionsToRead(readers, earlier, left, forward)
	if len(toRead) == 0 {
		return false
	}
	// If a partition has several buffered rows, the page may need only the first row. Therefore
	// readAheadLimit limits the number of further buffered rows.
	spare := max(0, readAheadLimit(limit)-extra) / len(toRead)
	share := firstReadSize(left, len(toRead))
	for _, pr := range toRead {
		pr.need = min(share, spare)
		if len(pr.rows) == 0 {
			// The merge waits for a row of this partition. If the page already contains many rows of this
			// partition, read several more rows, even if the buffer then exceeds readAheadLimit. Without
			// this rule, a page with rows from only one partition could need one round per row.
			pr.need = max(min(share, spare+1), min(left, minRefillSize(pr.emitted)))
		}
	}
	return true
}

// readAheadLimit returns the maximum number of rows that all partitions together buffer, not
// counting the first buffered row of each partition. limit is the maximum number of rows on the
// page.
func readAheadLimit(limit int) int { return 7 * limit / 4 }

// firstReadSize returns the number of rows to read from each partition. left is the number of rows
// that the page still needs, and readers is the number of partitions. The result is 1.5 times an
// even share, because the rows are not distributed evenly.
func firstReadSize(left, readers int) int { return min(left, 3*left/(2*readers)+1) }

// minRefillSize returns the minimum number of rows to read from a partition that has no buffered
// rows. given is the number of rows of this partition that are on the page.
func minRefillSize(given int) int { return given/4 + 1 }

// partitionsToRead returns the partitions that may still have rows for the page. left is the number
// of rows that the page still needs.
//
// If enough rows for the page are already buffered, they determine the last position that the page
// can reach. If a partition has returned a row at or after this position, it has no further rows
// for the page, and partitionsToRead skips it.
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

// readRound reads the rows that planRound has requested. It reads the partitions concurrently.
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

// readPartition reads the next rows of one partition and buffers them. pr.need is the number of
// rows.
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
// Query returned. more reports whether the partition has further rows.
func (pr *partitionReader) recordQuery(rows int, more, forward bool) {
	pr.need -= rows
	pr.done = !more
	if rows == 0 {
		return
	}
	pr.bounds = pr.bounds.Remaining(pr.rows[len(pr.rows)-1].position, forward)
	pr.done = pr.done || pr.bounds.Empty()
}

// mergeRows moves buffered rows to the page in the order of their positions. It stops if a
// partition has no buffered rows but may have unread rows, because one of these may be the next row
// of the page.
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

// appendRow adds a row to the page. If a record moves to another partition during the read, it may
// be read twice. In this case, the page keeps only the newer version of the record.
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
