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
	// groups contains partition keys and the positions to read from them. The partitions of one group
	// are read concurrently, and the groups one after another. A status change can move an order only
	// to a later group.
	groups []model.Segment
	// prefix is the common beginning of all sort keys of the list. bounds limits the rest of these
	// sort keys, after the prefix.
	prefix string
	bounds model.Range
	page   PageRequest
}

// forward reports whether the rows are read in ascending order of their sort keys.
func (l listQuery) forward() bool { return l.pattern.Direction == model.Ascending != l.page.FromEnd }

// row is a record of a list. The position is the record's sort key without the prefix that all sort
// keys of the list share.
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

// readRows returns the rows of the page, in reverse order if FromEnd is set. If DetectMore is set
// and the list has more rows, readRows returns one row more than the limit.
func (s *Store) readRows(ctx context.Context, l listQuery) ([]row, error) {
	return l.read(func(readers []*partitionReader) error { return s.readRound(ctx, l, readers) })
}

// read reads the groups of the list one after another. It reads each group only once. This misses
// no order, because a status change moves an order only to a later group.
func (l listQuery) read(readRound func([]*partitionReader) error) ([]row, error) {
	var rows []row
	for _, group := range l.groups {
		var err error
		if rows, err = l.readGroup(rows, group, readRound); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// readGroup reads one group of partitions, and merges its rows with found. The parameter found
// contains the rows of earlier groups. readGroup reads in rounds. Each round reads several partitions
// concurrently:
//
//   - The first round reads from each partition about 1.5 times an equal share of the page.
//   - After a round, rows move to the page in the order of their positions. This stops when a
//     partition has no buffered rows, but may have unread rows.
//   - The next round reads only partitions whose unread rows may belong on the page.
//
// maxMergeCost calculates the maximum number of rounds and requests.
func (l listQuery) readGroup(found []row, group model.Segment, readRound func([]*partitionReader) error) ([]row, error) {
	want, page, forward := l.page.fetchLimit(), l.page, l.forward()
	// If the page is already full, read only rows that precede the last row of found.
	if len(found) == want {
		end := found[want-1].position
		if page.FromEnd {
			page.After = end
		} else {
			page.Before = end
		}
	}
	b := page.narrow(l.bounds, l.pattern.Direction).Intersect(group.Range)
	if b.Empty() {
		return found, nil
	}
	earlier := &partitionReader{rows: found, done: true}
	all := append(make([]*partitionReader, 0, 1+len(group.Partitions)), earlier)
	for _, p := range group.Partitions {
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

// planRound sets the field need of each partition to the number of rows to read next. If there is
// nothing to read, planRound returns false. The parameter left is the number of rows that the page
// still needs. The parameter earlier contains the buffered rows of earlier groups.
func planRound(readers []*partitionReader, earlier []row, left, limit int, forward bool) bool {
	if len(readers) == 1 {
		readers[0].need = left
		return !readers[0].done
	}
	toRead, extra := partitionsToRead(readers, earlier, left, forward)
	if len(toRead) == 0 {
		return false
	}
	// The page may need only the first buffered row of a partition. So readAheadLimit limits the
	// number of the other buffered rows.
	spare := max(0, readAheadLimit(limit)-extra) / len(toRead)
	share := firstReadSize(left, len(toRead))
	for _, pr := range toRead {
		pr.need = min(share, spare)
		if len(pr.rows) == 0 {
			// The merge waits for this partition. If many rows on the page come from this partition, read
			// more rows than readAheadLimit allows. Reading one row per round would need too many rounds.
			pr.need = max(min(share, spare+1), min(left, minRefillSize(pr.emitted)))
		}
	}
	return true
}

// readAheadLimit returns the maximum number of buffered rows of all partitions together. The first
// buffered row of each partition is not counted. The parameter limit is the maximum number of rows
// on the page.
func readAheadLimit(limit int) int { return 7 * limit / 4 }

// firstReadSize returns the number of rows to read from each partition. The parameter left is the
// number of rows that the page still needs. The result is about 1.5 times an equal share of left,
// because some partitions have more rows for the page than others.
func firstReadSize(left, readers int) int { return min(left, 3*left/(2*readers)+1) }

// minRefillSize returns the minimum number of rows to read from a partition without buffered rows.
// The parameter given is the number of rows of this partition that are already on the page.
func minRefillSize(given int) int { return given/4 + 1 }

// partitionsToRead returns the partitions whose unread rows may belong on the page. The result
// extra is the number of buffered rows, without the first buffered row of each partition.
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
		// If the buffered rows can fill the page, the page ends at or before the position inHand[left-1].
		// Skip a partition with a buffered row at or after this position, because its unread rows come
		// later.
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

// mergeRows moves buffered rows to the page in the order of their positions. It stops when a
// partition has no buffered rows but may have unread rows.
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
