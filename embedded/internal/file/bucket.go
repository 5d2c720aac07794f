package file

import (
	"encoding/binary"
	"hash/crc32"

	"go.etcd.io/bbolt"
)

// Tx is a transaction. It must not be used concurrently.
type Tx struct{ tx *bbolt.Tx }

// Bucket is a collection of keys with their values, and of nested buckets. Values are valid until
// the transaction ends, and must not be modified.
type Bucket struct {
	// FillPercent is the fraction of a page that is filled before the next page begins.
	FillPercent float64

	b *bbolt.Bucket
}

// Cursor iterates over the keys of a bucket in ascending order.
type Cursor struct{ c *bbolt.Cursor }

// checksumBytes is the size of the checksum before each value.
const checksumBytes = 4

// checksum returns the checksum of a value and its key.
func checksum(key, value []byte) uint32 {
	castagnoli := crc32.MakeTable(crc32.Castagnoli) // MakeTable returns a shared table
	return crc32.Update(crc32.Update(0, castagnoli, key), castagnoli, value)
}

// seal returns a value with its checksum.
func seal(key, value []byte) []byte {
	b := make([]byte, 0, checksumBytes+len(value))
	return append(binary.BigEndian.AppendUint32(b, checksum(key, value)), value...)
}

// unseal returns a stored value without its checksum. If the checksum is wrong, unseal panics with
// a DamagedError, which guard returns.
func unseal(key, stored []byte) []byte {
	if !isSealed(key, stored) {
		panic(damaged("the value of the key %q has a wrong checksum", key))
	}
	return stored[checksumBytes:]
}

func isSealed(key, stored []byte) bool {
	return len(stored) >= checksumBytes && binary.BigEndian.Uint32(stored) == checksum(key, stored[checksumBytes:])
}

// A stored sequence number has 48 bits, and 16 bits of its checksum before them.
const sequenceBits = 48

func sealSequence(number uint64) uint64 {
	return number | uint64(uint16(checksum(nil, binary.BigEndian.AppendUint64(nil, number))))<<sequenceBits
}

// unsealSequence returns the number in a stored sequence number. The number of a bucket without a
// sequence is 0.
func unsealSequence(stored uint64) (number uint64, ok bool) {
	number = stored & (1<<sequenceBits - 1)
	return number, stored == 0 || stored == sealSequence(number)
}

func wrap(b *bbolt.Bucket) *Bucket {
	if b == nil {
		return nil
	}
	return &Bucket{b: b}
}

// Bucket returns a top-level bucket, or nil if it does not exist.
func (tx *Tx) Bucket(name []byte) *Bucket { return wrap(tx.tx.Bucket(name)) }

// CreateBucket creates a top-level bucket.
func (tx *Tx) CreateBucket(name []byte) (*Bucket, error) {
	b, err := tx.tx.CreateBucket(name)
	return wrap(b), err
}

// DeleteBucket deletes a top-level bucket.
func (tx *Tx) DeleteBucket(name []byte) error { return tx.tx.DeleteBucket(name) }

// ForEachBucket calls f with the names of all top-level buckets.
func (tx *Tx) ForEachBucket(f func(name []byte) error) error {
	return tx.tx.ForEach(func(name []byte, _ *bbolt.Bucket) error { return f(name) })
}

// IsNew reports whether the file has no buckets.
func (tx *Tx) IsNew() bool { return tx.tx.Bucket(bucketFormat) == nil }

// Create writes the format version of a new file.
func (tx *Tx) Create() error { return writeFormat(tx.tx) }

// Bucket returns a nested bucket, or nil if it does not exist.
func (b *Bucket) Bucket(name []byte) *Bucket { return wrap(b.b.Bucket(name)) }

// CreateBucket creates a nested bucket.
func (b *Bucket) CreateBucket(name []byte) (*Bucket, error) {
	n, err := b.b.CreateBucket(name)
	return wrap(n), err
}

// DeleteBucket deletes a nested bucket.
func (b *Bucket) DeleteBucket(name []byte) error { return b.b.DeleteBucket(name) }

// Get returns the value of a key, or nil if the key does not exist.
func (b *Bucket) Get(key []byte) []byte {
	stored := b.b.Get(key)
	if stored == nil {
		return nil
	}
	return unseal(key, stored)
}

// Put stores a value.
func (b *Bucket) Put(key, value []byte) error {
	if b.FillPercent > 0 {
		b.b.FillPercent = b.FillPercent
	}
	return b.b.Put(key, seal(key, value))
}

// Delete deletes a key. If the key does not exist, Delete does nothing.
func (b *Bucket) Delete(key []byte) error {
	if b.FillPercent > 0 {
		b.b.FillPercent = b.FillPercent
	}
	return b.b.Delete(key)
}

// Sequence returns the result of the last call of NextSequence.
func (b *Bucket) Sequence() uint64 {
	number, ok := unsealSequence(b.b.Sequence())
	if !ok {
		panic(damaged("a sequence number has a wrong checksum"))
	}
	return number
}

// NextSequence returns a number that is higher by one with each call.
func (b *Bucket) NextSequence() (uint64, error) {
	number := b.Sequence() + 1
	return number, b.b.SetSequence(sealSequence(number))
}

// ForEach calls f with all keys and values. It omits nested buckets.
func (b *Bucket) ForEach(f func(key, value []byte) error) error {
	return b.b.ForEach(func(k, v []byte) error {
		if v == nil {
			return nil
		}
		return f(k, unseal(k, v))
	})
}

// ForEachBucket calls f with the names of all nested buckets.
func (b *Bucket) ForEachBucket(f func(name []byte) error) error { return b.b.ForEachBucket(f) }

// Len returns the number of keys.
func (b *Bucket) Len() int { return b.b.Stats().KeyN }

// Cursor returns a cursor of the bucket.
func (b *Bucket) Cursor() *Cursor { return &Cursor{c: b.b.Cursor()} }

// at returns the key and the value at the position of the cursor.
func (c *Cursor) at(k, stored []byte) (key, value []byte) {
	if k == nil || stored == nil {
		return k, nil
	}
	return k, unseal(k, stored)
}

// First moves the cursor to the first key. Like the other methods, it returns nil if there is no
// such key.
func (c *Cursor) First() (key, value []byte) { return c.at(c.c.First()) }

// Last moves the cursor to the last key.
func (c *Cursor) Last() (key, value []byte) { return c.at(c.c.Last()) }

// Next moves the cursor to the next key.
func (c *Cursor) Next() (key, value []byte) { return c.at(c.c.Next()) }

// Prev moves the cursor to the previous key.
func (c *Cursor) Prev() (key, value []byte) { return c.at(c.c.Prev()) }

// Seek moves the cursor to the first key that is not less than seek.
func (c *Cursor) Seek(seek []byte) (key, value []byte) { return c.at(c.c.Seek(seek)) }
