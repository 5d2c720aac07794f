// Package storage stores the items of tables, and defines the buckets of a table. Together with the
// items, it stores data that is derived from them: index entries, times to live, and the number and
// total size of the items.
package storage

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/ordergraph/ordergraph/embedded/internal/attr"
	"github.com/ordergraph/ordergraph/embedded/internal/file"
	"github.com/ordergraph/ordergraph/embedded/internal/schema"
)

// The keys in a table's bucket. The value of keyCounts is the number and the total size of the
// items. The other keys are names of nested buckets.
var (
	bucketItems  = []byte("items")
	bucketExpiry = []byte("expiry")
	keyCounts    = []byte("counts")
)

// CreateBuckets creates the buckets of a new table.
func CreateBuckets(tx *file.Tx, t *schema.Table) error {
	b, err := tx.CreateBucket(t.BucketName)
	if err != nil {
		return err
	}
	for _, name := range [][]byte{bucketItems, bucketExpiry} {
		if _, err := b.CreateBucket(name); err != nil {
			return err
		}
	}
	for _, x := range t.Indexes {
		if _, err := b.CreateBucket(x.BucketName); err != nil {
			return err
		}
	}
	return nil
}

// CheckBuckets returns a DamagedError if a bucket of the table is missing. The names of buckets have
// no checksums.
func CheckBuckets(tx *file.Tx, t *schema.Table) error {
	b := tx.Bucket(t.BucketName)
	if b == nil {
		return &file.DamagedError{Problem: fmt.Sprintf("the bucket %q is missing", t.BucketName)}
	}
	names := [][]byte{bucketItems, bucketExpiry}
	for _, x := range t.Indexes {
		names = append(names, x.BucketName)
	}
	for _, name := range names {
		if b.Bucket(name) == nil {
			return &file.DamagedError{Problem: fmt.Sprintf("the bucket %q in %q is missing", name, t.BucketName)}
		}
	}
	return nil
}

// ItemBucket returns the bucket that contains a table's items. b is the table's bucket.
func ItemBucket(b *file.Bucket) *file.Bucket { return b.Bucket(bucketItems) }

// ExpiryBucket returns the bucket that contains the times to live. b is the table's bucket.
func ExpiryBucket(b *file.Bucket) *file.Bucket { return b.Bucket(bucketExpiry) }

// countsKey returns the key of the stored counts for the index x, in the table's bucket. If x is
// nil, it returns the key of the counts for the complete table.
func countsKey(x *schema.Index) []byte {
	if x == nil {
		return keyCounts
	}
	return append(append([]byte{}, keyCounts...), "-"+x.Name...)
}

// Counts returns the number and the total size of the items in the index x. If x is nil, Counts
// includes all items of the table. b is the table's bucket.
func Counts(b *file.Bucket, x *schema.Index) schema.Counts {
	if v := b.Get(countsKey(x)); len(v) == 16 {
		return schema.Counts{Items: int64(binary.BigEndian.Uint64(v)), Bytes: int64(binary.BigEndian.Uint64(v[8:]))}
	}
	return schema.Counts{}
}

// addCounts changes the stored counts of the index x, or of the table if x is nil. It adds the
// numbers items and size, which may be negative. b is the table's bucket.
func addCounts(b *file.Bucket, x *schema.Index, items, size int64) error {
	if items == 0 && size == 0 {
		return nil
	}
	old := Counts(b, x)
	v := binary.BigEndian.AppendUint64(nil, uint64(old.Items+items))
	return b.Put(countsKey(x), binary.BigEndian.AppendUint64(v, uint64(old.Bytes+size)))
}

// FillIndex creates the bucket of an index, and adds the index entries of all items in the table.
func FillIndex(b *file.Bucket, x *schema.Index) error {
	entries, err := b.CreateBucket(x.BucketName)
	if err != nil {
		return err
	}
	var items, total int64
	err = b.Bucket(bucketItems).ForEach(func(key, stored []byte) error {
		size, encoded := SplitItem(stored)
		item, err := attr.ParseItem(encoded)
		if err != nil {
			return err
		}
		entry := x.EntryKey(item, key)
		if entry == nil {
			return nil
		}
		items, total = items+1, total+x.ProjectedSize(item, size)
		return entries.Put(entry, key)
	})
	if err != nil {
		return err
	}
	return addCounts(b, x, items, total)
}

// DropIndex deletes the bucket and the stored counts of an index.
func DropIndex(b *file.Bucket, x *schema.Index) error {
	return errors.Join(b.DeleteBucket(x.BucketName), b.Delete(countsKey(x)))
}

// FillExpiry deletes the bucket of times to live and creates it again from the items of the table.
func FillExpiry(b *file.Bucket, t *schema.Table) error {
	if err := b.DeleteBucket(bucketExpiry); err != nil {
		return err
	}
	entries, err := b.CreateBucket(bucketExpiry)
	if err != nil || t.Expiry == "" {
		return err
	}
	return b.Bucket(bucketItems).ForEach(func(key, stored []byte) error {
		_, encoded := SplitItem(stored)
		item, err := attr.ParseItem(encoded)
		if err != nil {
			return err
		}
		if entry := expiryEntry(t, item, key); entry != nil {
			return entries.Put(entry, key)
		}
		return nil
	})
}

// sizePrefix is the number of bytes for the item's size. In a stored item, these bytes precede the
// JSON.
const sizePrefix = 4

// Encode encodes an item for the database file: the item's size, followed by its JSON. The function
// json must append the JSON to its argument.
func Encode(size int, json func([]byte) []byte) []byte {
	return json(binary.BigEndian.AppendUint32(make([]byte, 0, sizePrefix+size*2), uint32(size)))
}

// SplitItem splits a stored item into its size and its JSON.
func SplitItem(stored []byte) (size int, json []byte) {
	return int(binary.BigEndian.Uint32(stored)), stored[sizePrefix:]
}
