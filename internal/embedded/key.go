package embedded

import (
	"errors"
	"fmt"

	"github.com/ordergraph/ordergraph/internal/embedded/attr"
	"github.com/ordergraph/ordergraph/internal/embedded/expr"
)

// maxItem is the maximum size of an item in bytes.
//
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
const maxItem = 400 << 10

// encodePartition returns the common first bytes of all keys of a partition.
func encodePartition(partition []attr.Value) []byte {
	b := []byte{0}
	for _, v := range partition {
		b = v.AppendKey(b)
	}
	b[0] = hashByte(b[1:])
	return b
}

// encodeKey returns the bytes of a key in the file.
func encodeKey(key []expr.KeyAttribute, item attr.Item) []byte {
	b := []byte{0}
	for i, k := range key {
		b = item[k.Name].AppendKey(b)
		if !k.Sort && (i+1 == len(key) || key[i+1].Sort) { // the end of the partition key
			b[0] = hashByte(b[1:])
		}
	}
	return b
}

// entry returns the key of an item in the index, or nil if the item is not in the index. item may be
// nil.
func (x *index) entry(item attr.Item, key []byte) []byte {
	for _, k := range x.key {
		if v, ok := item[k.Name]; !ok || v.Kind != k.Kind {
			return nil
		}
	}
	return append(encodeKey(x.key, item), key...)
}

// errKeySchema is the error for a key that is not the table's.
var errKeySchema = errors.New("The provided key element does not match the schema")

// lookup validates a request's key and returns its bytes. It returns errKeySchema, or an error about
// a value.
func (t *table) lookup(key attr.Item) ([]byte, error) {
	if _, err := key.Normalize(); err != nil {
		return nil, err
	}
	return t.keyBytes(key)
}

// keyBytes returns the bytes of a request's key, whose values are valid. It returns errKeySchema, or
// an error about an empty or long value.
func (t *table) keyBytes(key attr.Item) ([]byte, error) {
	if len(key) != len(t.key) {
		return nil, errKeySchema
	}
	for _, k := range t.key {
		if v, ok := key[k.Name]; !ok || v.Kind != k.Kind {
			return nil, errKeySchema
		}
	}
	if err := t.checkKeySizes(key); err != nil {
		return nil, err
	}
	return encodeKey(t.key, key), nil
}

// checkKeySizes returns an error if a value of the table's key is empty or too long.
func (t *table) checkKeySizes(item attr.Item) error {
	for i, k := range t.key {
		v := item[k.Name]
		if v.Text == "" {
			return expr.EmptyKey(k)
		}
		if i == 0 && v.Size() > expr.MaxPartitionKey {
			return expr.ErrLongPartitionKey
		}
		if i == 1 && v.Size() > expr.MaxSortKey {
			return expr.ErrLongSortKey
		}
	}
	return nil
}

// keyFault is an error about the keys of an item. early reports whether DynamoDB finds it before it
// executes the request, also in a transaction.
type keyFault struct {
	error
	early bool
}

// keyOf validates the values of a new item's keys, and returns the bytes of the table's key.
func (t *table) keyOf(item attr.Item) ([]byte, *keyFault) {
	for _, k := range t.key {
		v, ok := item[k.Name]
		switch {
		case !ok:
			return nil, &keyFault{fmt.Errorf("One or more parameter values were invalid: Missing the key %s in the item", k.Name), false}
		case v.Kind != k.Kind:
			return nil, &keyFault{fmt.Errorf("One or more parameter values were invalid: Type mismatch for key %s expected: %s actual: %s", k.Name, k.Kind, v.Kind), false}
		}
	}
	if err := t.checkKeySizes(item); err != nil {
		return nil, &keyFault{err, true}
	}
	if fault := t.checkIndexKeys(item, ""); fault != nil {
		return nil, fault
	}
	return encodeKey(t.key, item), nil
}

// checkIndexKeys validates the values of the indexes' keys in an item. emptyMessage replaces the
// message about an empty value.
func (t *table) checkIndexKeys(item attr.Item, emptyMessage string) *keyFault {
	for _, x := range t.indexes {
		for _, k := range x.key {
			v, ok := item[k.Name]
			if !ok {
				continue
			}
			if v.Kind != k.Kind {
				return &keyFault{fmt.Errorf("One or more parameter values were invalid: Type mismatch for Index Key %s Expected: %s Actual: %s IndexName: %s", k.Name, k.Kind, v.Kind, x.name), false}
			}
			if v.Text == "" {
				kind := map[attr.Kind]string{attr.String: "string", attr.Binary: "binary"}[v.Kind]
				message := fmt.Sprintf("One or more parameter values are not valid. A value specified for a secondary index key is not supported. The AttributeValue for a key attribute cannot contain an empty %s value. IndexName: %s, IndexKey: %s", kind, x.name, k.Name)
				if emptyMessage != "" {
					message = fmt.Sprintf(emptyMessage, kind)
				}
				return &keyFault{errors.New(message), true}
			}
			if limit := map[bool]int{false: expr.MaxPartitionKey, true: expr.MaxSortKey}[k.Sort]; v.Size() > limit {
				return &keyFault{fmt.Errorf("One or more parameter values were invalid: Size of the key %s of index %s exceeds %d bytes", k.Name, x.name, limit), false}
			}
		}
	}
	return nil
}

// checkPaths returns an error if a path leads into the value of a key's attribute.
func (t *table) checkPaths(paths []expr.Path) error {
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
		if err := nested(t.key, "Key"); err != nil {
			return err
		}
		for _, x := range t.indexes {
			if err := nested(x.key, "IndexKey"); err != nil {
				return err
			}
		}
	}
	return nil
}

// keyItem returns the attributes of the table's key in an item, and of an index's key if x is not
// nil.
func (t *table) keyItem(item attr.Item, x *index) attr.Item {
	key := attr.Item{}
	for _, k := range t.key {
		key[k.Name] = item[k.Name]
	}
	if x != nil {
		for _, k := range x.key {
			key[k.Name] = item[k.Name]
		}
	}
	return key
}
