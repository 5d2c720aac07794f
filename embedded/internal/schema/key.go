package schema

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/ordergraph/ordergraph/embedded/internal/attr"
	"github.com/ordergraph/ordergraph/embedded/internal/expr"
)

// EncodePartition returns the prefix that the encoded keys of one partition have in common.
// partition contains the values of the partition key.
func EncodePartition(partition []attr.Value) []byte {
	b := newKey()
	for _, v := range partition {
		b = v.AppendSortableBytes(b)
	}
	return hashPartition(b)
}

// EncodeKey encodes the key of an item for the database file. The parameter key lists the key
// attributes of the table or index, beginning with the partition key.
func EncodeKey(key []expr.KeyAttribute, item attr.Item) []byte {
	b := newKey()
	for len(key) > 0 && !key[0].Sort {
		b = item[key[0].Name].AppendSortableBytes(b)
		key = key[1:]
	}
	b = hashPartition(b)
	for _, k := range key {
		b = item[k.Name].AppendSortableBytes(b)
	}
	return b
}

// EntryKey returns the encoded key of an item's index entry. key is the encoded key of the item in
// the table. EntryKey returns nil if item is nil or is not in the index. An item with an invalid
// index key is not in the index. It was written before the index was added.
func (x *Index) EntryKey(item attr.Item, key []byte) []byte {
	for _, k := range x.Key {
		if v, ok := item[k.Name]; !ok || v.Kind != k.Kind || v.Text == "" || v.Size() > maxIndexKeyBytes(k) {
			return nil
		}
	}
	hash := sha256.Sum256(key)
	return append(EncodeKey(x.Key, item), hash[:entrySuffix]...)
}

// SplitKey splits an encoded key into the hash of the partition key and the rest, which sorts like
// the sort key. If key is shorter than a hash, the rest is empty.
func SplitKey(key []byte) (partition, rest []byte) {
	n := min(partitionBytes, len(key))
	return key[:n], key[n:]
}

// entrySuffix is the length of the hash at the end of an index entry's key. The hash identifies the
// item, so items with equal index keys have different entries. If you change entrySuffix, also
// change formatVersion.
const entrySuffix = 16

// ErrKeySchema means that the attributes of a key do not match the key schema of the table.
var ErrKeySchema = errors.New("The provided key element does not match the schema")

// EncodeRequestKey validates and encodes the key in a request. If the key does not match the
// table's key schema, EncodeRequestKey returns ErrKeySchema. Other errors describe an invalid
// value.
func (t *Table) EncodeRequestKey(key attr.Item) ([]byte, error) {
	if _, err := key.Normalize(); err != nil {
		return nil, err
	}
	return t.KeyBytes(key)
}

// KeyBytes encodes a key whose values are normalized. If the key does not match the table's key
// schema, KeyBytes returns ErrKeySchema. Other errors describe an invalid value.
func (t *Table) KeyBytes(key attr.Item) ([]byte, error) {
	if len(key) != len(t.Key) {
		return nil, ErrKeySchema
	}
	for _, k := range t.Key {
		if v, ok := key[k.Name]; !ok || v.Kind != k.Kind {
			return nil, ErrKeySchema
		}
	}
	if err := t.CheckKeySizes(key); err != nil {
		return nil, err
	}
	return EncodeKey(t.Key, key), nil
}

// CheckKeySizes returns an error if the value of a key attribute is empty or too long.
func (t *Table) CheckKeySizes(item attr.Item) error {
	for i, k := range t.Key {
		v := item[k.Name]
		if v.Text == "" {
			return expr.EmptyKeyError(k)
		}
		if i == 0 && v.Size() > expr.MaxPartitionKeyBytes {
			return expr.ErrLongPartitionKey
		}
		if i == 1 && v.Size() > expr.MaxSortKeyBytes {
			return expr.ErrLongSortKey
		}
	}
	return nil
}

// KeyFault is an error about the key attributes of an item.
type KeyFault struct {
	error
	// Early reports whether DynamoDB detects the error before it executes the request. In a
	// transaction, any other error becomes a cancellation reason.
	Early bool
}

// EncodeItemKey validates the key attributes of a new item, for the table and for the indexes. It
// returns the encoded key of the item in the table.
func (t *Table) EncodeItemKey(item attr.Item) ([]byte, *KeyFault) {
	for _, k := range t.Key {
		v, ok := item[k.Name]
		switch {
		case !ok:
			return nil, &KeyFault{fmt.Errorf("One or more parameter values were invalid: Missing the key %s in the item", k.Name), false}
		case v.Kind != k.Kind:
			return nil, &KeyFault{fmt.Errorf("One or more parameter values were invalid: Type mismatch for key %s expected: %s actual: %s", k.Name, k.Kind, v.Kind), false}
		}
	}
	if err := t.CheckKeySizes(item); err != nil {
		return nil, &KeyFault{err, true}
	}
	if fault := t.CheckIndexKeys(item, ""); fault != nil {
		return nil, fault
	}
	return EncodeKey(t.Key, item), nil
}

// CheckIndexKeys validates the index key attributes of an item. If emptyMessage is not "", it
// replaces the error message for an empty value.
func (t *Table) CheckIndexKeys(item attr.Item, emptyMessage string) *KeyFault {
	for _, x := range t.Indexes {
		for _, k := range x.Key {
			v, ok := item[k.Name]
			if !ok {
				continue
			}
			if v.Kind != k.Kind {
				return &KeyFault{fmt.Errorf("One or more parameter values were invalid: Type mismatch for Index Key %s Expected: %s Actual: %s IndexName: %s", k.Name, k.Kind, v.Kind, x.Name), false}
			}
			if v.Text == "" {
				kind := map[attr.Kind]string{attr.String: "string", attr.Binary: "binary"}[v.Kind]
				message := fmt.Sprintf("One or more parameter values are not valid. A value specified for a secondary index key is not supported. The AttributeValue for a key attribute cannot contain an empty %s value. IndexName: %s, IndexKey: %s", kind, x.Name, k.Name)
				if emptyMessage != "" {
					message = fmt.Sprintf(emptyMessage, kind)
				}
				return &KeyFault{errors.New(message), true}
			}
			if limit := maxIndexKeyBytes(k); v.Size() > limit {
				return &KeyFault{fmt.Errorf("One or more parameter values were invalid: Size of the key %s of index %s exceeds %d bytes", k.Name, x.Name, limit), false}
			}
		}
	}
	return nil
}

// maxIndexKeyBytes returns the maximum size of one attribute in an index key.
func maxIndexKeyBytes(k expr.KeyAttribute) int {
	if k.Sort {
		return expr.MaxSortKeyBytes
	}
	return expr.MaxPartitionKeyBytes
}

// CheckKeyPaths returns an error if a document path leads into a key attribute, such as key[0] or
// key.name. Key attributes are never lists or maps.
func (t *Table) CheckKeyPaths(paths []expr.Path) error {
	for _, path := range paths {
		if len(path) == 1 {
			continue
		}
		nested := func(key []expr.KeyAttribute, kind string) error {
			for _, k := range key {
				if k.Name == path[0].Name {
					return fmt.Errorf("Key attributes must be scalars; list random access '[]' and map lookup '.' are not allowed: %s: %s", kind, k.Name)
				}
			}
			return nil
		}
		if err := nested(t.Key, "Key"); err != nil {
			return err
		}
		for _, x := range t.Indexes {
			if err := nested(x.Key, "IndexKey"); err != nil {
				return err
			}
		}
	}
	return nil
}

// ExtractKey returns an item that contains only the attributes of the table's key.
func (t *Table) ExtractKey(item attr.Item) attr.Item {
	key := attr.Item{}
	for _, k := range t.Key {
		key[k.Name] = item[k.Name]
	}
	return key
}

// A stored key begins with a hash of the partition key. The hash is shorter than most partition
// keys, so a page of the file contains more keys.
//
// The keys in the file depend on these numbers. If you change one of the numbers, also change
// formatVersion.
const (
	// partitionBytes is the size of the hash. The first byte distributes the partitions over the
	// file. If the partition key is long, timeBytes bytes of the key follow. The rest is the
	// beginning of the key's SHA-256.
	partitionBytes = 20
	// longKeyBytes is the minimum size of a partition key that probably ends with a ULID.
	longKeyBytes = 28
	// tailBytes is the number of bytes at the end of a long key that do not affect the first byte
	// of the hash. ULIDs of the same 33 seconds differ only in these bytes. Their items are
	// neighbors in the file, so writing them changes few pages.
	tailBytes = 21
	// timeBytes is the number of bytes of a long key that the hash contains. They are the first of
	// the last tailBytes bytes. If the key ends with a ULID, these bytes are the end of its time,
	// so neighbors are sorted by time.
	timeBytes = 3
)

// newKey returns a key with space for the hash. The capacity is sufficient for most keys.
func newKey() []byte { return make([]byte, partitionBytes, 6*partitionBytes) }

// hashPartition hashes an encoded partition key. b contains the space that newKey reserves for the
// hash, and then the encoded partition key. The result contains only the hash.
func hashPartition(b []byte) []byte {
	partition, hash := b[partitionBytes:], b[:1]
	sum, head := sha256.Sum256(partition), partition
	if len(partition) >= longKeyBytes {
		head = partition[:len(partition)-tailBytes]
		hash = append(hash, partition[len(head):][:timeBytes]...)
	}
	h := crc32.ChecksumIEEE(head)
	hash[0] = byte(h ^ h>>8 ^ h>>16 ^ h>>24)
	return append(hash, sum[:partitionBytes-len(hash)]...)
}
