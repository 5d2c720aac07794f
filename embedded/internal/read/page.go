package read

import (
	"bytes"
	"slices"

	"github.com/ordergraph/ordergraph/embedded/internal/attr"
	"github.com/ordergraph/ordergraph/embedded/internal/capacity"
	"github.com/ordergraph/ordergraph/embedded/internal/file"
	"github.com/ordergraph/ordergraph/embedded/internal/storage"
	"github.com/ordergraph/ordergraph/embedded/internal/throttle"
	"github.com/ordergraph/ordergraph/embedded/internal/wire"
)

// maxPageBytes limits the size of a page in bytes. A page of a Query or Scan ends with the first
// item that makes the page larger than maxPageBytes.
const maxPageBytes = 1 << 20

// ReadPage reads one page of items and returns the response.
func (l *QueryOrScan) ReadPage(tx *file.Tx, limiter *throttle.Limiter) ([]byte, error) {
	if err := l.read(tx, limiter); err != nil {
		return nil, err
	}
	o := wire.NewObjectWriter()
	if l.Select != "COUNT" {
		o.List("Items", len(l.items), func(i int) { o.Element(l.items[i]) })
	}
	o.Int("Count", l.count)
	o.Int("ScannedCount", l.evaluated)
	if l.last != nil {
		o.Item("LastEvaluatedKey", l.last)
	}
	u := capacity.New(l.ReturnConsumedCapacity)
	units := capacity.ReadUnits(l.size, l.ConsistentRead)
	if l.index != nil {
		u.Add(l.table, l.fetchedUnits, map[string]float64{l.index.Name: units})
	} else {
		u.Add(l.table, units, nil)
	}
	l.load.Units = units + l.fetchedUnits
	limiter.Charge(l.load)
	u.AppendSingleTable(o)
	return o.Done(), nil
}

// read reads the items of one page.
func (l *QueryOrScan) read(tx *file.Tx, limiter *throttle.Limiter) error {
	b := tx.Bucket(l.table.BucketName)
	if b == nil {
		return wire.NotFound()
	}
	items := storage.ItemBucket(b)
	c := items.Cursor()
	if l.index != nil {
		entries := b.Bucket(l.index.BucketName)
		if entries == nil {
			return wire.NotFound()
		}
		c = entries.Cursor()
	}
	k, v := l.moveFirst(c)
	l.load = throttle.Load{Table: l.table, Index: l.index, Key: l.start}
	if k != nil && l.within(k) {
		l.load.Key = k
	}
	if f := limiter.Check(l.load); f != nil {
		return f
	}
	for ; k != nil && l.within(k); k, v = l.moveNext(c) {
		stored := v
		if l.index != nil {
			stored = items.Get(v)
		}
		if err := l.add(stored); err != nil {
			return err
		}
		if l.Limit != nil && l.evaluated == *l.Limit || l.size+l.fetchedSize > maxPageBytes {
			// Set LastEvaluatedKey, because DynamoDB does not check whether another item follows.
			return l.endPage(stored)
		}
	}
	return nil
}

// moveFirst moves the cursor to the first key to read. If ScanIndexForward is false, this is the
// last key of the range.
func (l *QueryOrScan) moveFirst(c *file.Cursor) (k, v []byte) {
	if !l.backward {
		return c.Seek(l.start)
	}
	if l.end == nil {
		return c.Last()
	}
	if k, _ := c.Seek(l.end); k == nil {
		return c.Last()
	}
	return c.Prev()
}

// moveNext moves the cursor to the next key to read.
func (l *QueryOrScan) moveNext(c *file.Cursor) (k, v []byte) {
	if l.backward {
		return c.Prev()
	}
	return c.Next()
}

// within reports whether the cursor is still in the range. k is the current key of the cursor.
func (l *QueryOrScan) within(k []byte) bool {
	if l.backward {
		return bytes.Compare(k, l.start) >= 0
	}
	return l.end == nil || bytes.Compare(k, l.end) < 0
}

// add counts a stored item. If the item matches the filter, add also adds it to the page.
func (l *QueryOrScan) add(stored []byte) error {
	size, encoded := storage.SplitItem(stored)
	var item attr.Item
	var err error
	narrow := l.index != nil && l.index.Projected != nil
	switch {
	case narrow && !l.fetches:
		item, err = attr.ParseAttributes(encoded, l.index.Projected)
		size = item.Size()
	case narrow:
		item, err = attr.ParseItem(encoded)
		l.fetchedSize += size
		l.fetchedUnits += capacity.ReadUnits(size, l.ConsistentRead)
		size = l.index.ProjectedItem(item).Size()
	case l.filter != nil || len(l.projection) > 0:
		item, err = attr.ParseItem(encoded)
	}
	if err != nil {
		return err
	}
	l.size += size
	l.evaluated++
	if l.filter != nil && !l.filter.Matches(item) {
		return nil
	}
	l.count++
	switch {
	case l.Select == "COUNT":
	case len(l.projection) > 0 || narrow && !l.fetches:
		l.items = append(l.items, l.projection.Apply(item).AppendJSON(nil))
	default:
		l.items = append(l.items, encoded)
	}
	return nil
}

// endPage ends the page. The parameter last is the last item of the page, encoded for the database
// file. endPage sets l.last to the key of this item.
func (l *QueryOrScan) endPage(last []byte) (err error) {
	names := map[string]bool{}
	for _, k := range slices.Concat(l.table.Key, l.key()) {
		names[k.Name] = true
	}
	_, encoded := storage.SplitItem(last)
	l.last, err = attr.ParseAttributes(encoded, names)
	return err
}
