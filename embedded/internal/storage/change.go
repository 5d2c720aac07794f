package storage

import (
	"bytes"
	"encoding/binary"
	"strconv"
	"strings"

	"github.com/ordergraph/ordergraph/embedded/internal/attr"
	"github.com/ordergraph/ordergraph/embedded/internal/file"
	"github.com/ordergraph/ordergraph/embedded/internal/schema"
)

// Change is a change of one item.
type Change struct {
	Table *schema.Table
	Key   []byte

	// Old and New are the item before and after the change. Old is nil if the change creates the
	// item. New is nil if the change deletes the item.
	Old, New         attr.Item
	OldSize, NewSize int
	// OldStored and Encoded are Old and New, encoded for the database file.
	OldStored, Encoded []byte
}

// LoadOld reads the item before the change. items is the bucket that contains the table's items.
func (c *Change) LoadOld(items *file.Bucket) (err error) {
	c.Old, c.OldSize = nil, 0
	if c.OldStored = items.Get(c.Key); c.OldStored != nil {
		var json []byte
		c.OldSize, json = SplitItem(c.OldStored)
		c.Old, err = attr.ParseItem(json)
	}
	return err
}

// IsNoOp reports whether the change leaves the item as it is.
func (c *Change) IsNoOp() bool {
	if c.Old == nil || c.New == nil {
		return c.Old == nil && c.New == nil
	}
	return bytes.Equal(c.Encoded, c.OldStored)
}

// fillPercent is the fraction of a page that bbolt fills before it continues with the next page.
// Most new keys directly follow other new keys, so the pages before them need little free space.
const fillPercent = 0.9

// Store writes the new item and the data that is derived from the item: index entries, time to live
// and counts. If New is nil, Store deletes the item. b is the table's bucket.
func (c *Change) Store(b *file.Bucket) error {
	items := b.Bucket(bucketItems)
	items.FillPercent = fillPercent
	number := int64(0)
	switch {
	case c.New == nil:
		number = -1
		if err := items.Delete(c.Key); err != nil {
			return err
		}
	default:
		if c.Old == nil {
			number = 1
		}
		if err := items.Put(c.Key, c.Encoded); err != nil {
			return err
		}
	}
	if err := addCounts(b, nil, number, int64(c.NewSize-c.OldSize)); err != nil {
		return err
	}
	for _, x := range c.Table.Indexes {
		if err := c.updateIndex(b, x); err != nil {
			return err
		}
	}
	if c.Table.Expiry != "" {
		return moveEntry(b.Bucket(bucketExpiry), expiryEntry(c.Table, c.Old, c.Key), expiryEntry(c.Table, c.New, c.Key), c.Key)
	}
	return nil
}

// updateIndex updates the item's entry in an index, and the counts of the index.
func (c *Change) updateIndex(b *file.Bucket, x *schema.Index) error {
	from, to := x.EntryKey(c.Old, c.Key), x.EntryKey(c.New, c.Key)
	if err := moveEntry(b.Bucket(x.BucketName), from, to, c.Key); err != nil {
		return err
	}
	var items, size int64
	if from != nil {
		items, size = items-1, size-x.ProjectedSize(c.Old, c.OldSize)
	}
	if to != nil {
		items, size = items+1, size+x.ProjectedSize(c.New, c.NewSize)
	}
	return addCounts(b, x, items, size)
}

// moveEntry deletes the entry with the old key (from), and stores value under the new key (to). If
// a key is nil, moveEntry omits its step. If the keys are equal, moveEntry changes nothing.
func moveEntry(b *file.Bucket, from, to, value []byte) error {
	b.FillPercent = fillPercent
	if bytes.Equal(from, to) {
		return nil
	}
	if from != nil {
		if err := b.Delete(from); err != nil {
			return err
		}
	}
	if to != nil {
		return b.Put(to, value)
	}
	return nil
}

// expiryEntry returns the key of an item's entry in the bucket of times to live. It returns nil if
// the item never expires.
func expiryEntry(t *schema.Table, item attr.Item, key []byte) []byte {
	v, ok := item[t.Expiry]
	if !ok || v.Kind != attr.Number {
		return nil
	}
	whole, _, _ := strings.Cut(v.Text, ".")
	seconds, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || seconds < 0 {
		return nil
	}
	return append(binary.BigEndian.AppendUint64(nil, uint64(seconds)), key...)
}
