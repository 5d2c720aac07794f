package model

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ordergraph/ordergraph/commerce"
)

// EntityOf returns the entity whose key templates match a primary key. If no entity matches, other
// software wrote the record, and EntityOf returns nil.
func EntityOf(k Keys) *Entity {
	for _, e := range allEntities {
		if e.SK.Matches(k.SK) && e.PK.Matches(strings.TrimSuffix(k.PK, shardSuffixOf(e.Shard(k.PK)))) {
			return e
		}
	}
	return nil
}

// Shard returns the shard in a primary partition key, such as 3 in ORDER_COUNTS#3. If the key contains
// no shard, it returns "".
func (e *Entity) Shard(pk string) string {
	if !e.isShardedInTable() {
		return ""
	}
	shard, ok := strings.CutPrefix(pk, string(e.PK)+"#")
	if n, err := strconv.Atoi(shard); !ok || err != nil || n < 0 || n >= MaxShards || shard != strconv.Itoa(n) {
		return ""
	}
	return shard
}

// OwnerOf returns the customer who owns the records with a partition key. It returns false if no
// customer owns them.
func OwnerOf(partition string) (commerce.CustomerID, bool) {
	for _, e := range allEntities {
		if e.Owner != 0 && e.PK.Matches(partition) {
			return commerce.CustomerID(FirstPlaceholderValue(e.PK, partition)), true
		}
	}
	return "", false
}

// entityOfIndexKeys returns the entity whose index key templates match the given keys. If no entity
// matches or one of the keys is empty, it returns nil.
func entityOfIndexKeys(indexPK, indexSK string) *Entity {
	for _, e := range allEntities {
		if e.IndexPK == "" || indexSK == "" || !strings.HasPrefix(indexSK, e.IndexSK.Prefix()) {
			continue
		}
		matches := e.IndexPK.Matches(indexPK)
		for shard := 0; e.Sharded && shard < MaxShards; shard++ {
			bare, ok := strings.CutSuffix(indexPK, ShardSuffix(shard, MaxShards))
			matches = matches || ok && e.IndexPK.Matches(bare)
		}
		if matches {
			return e
		}
	}
	return nil
}

// WithIndexKeys replaces the index keys of an imported record. The record may come from a table
// with another number of shards, and its index keys depend on this number. If the record's
// attributes produce no index keys, WithIndexKeys removes the index keys. It also sets the entity's
// name and version in ElectroDB.
//
// Errors: ErrCorrupt, or another error for an idempotency record. It is also an error if the index
// keys match an entity but the primary key does not.
func (codec *Codec) WithIndexKeys(r Record) (Record, error) {
	reader, key := Reader{Record: r}, KeyOf(r)
	e := EntityOf(key)
	if e == nil {
		if e := entityOfIndexKeys(reader.Text(AttrIndexPK), reader.Text(AttrIndexSK)); e != nil {
			return nil, fmt.Errorf("the primary key of record %s matches no entity, but its index keys match the entity %s", r.KeyText(), e.Name)
		}
		return r, nil
	}
	candidates, err := codec.Reencode(e, r)
	if err != nil {
		return nil, err
	}
	codec.ElectroDB.identify(e, r)
	for _, c := range candidates {
		if KeyOf(c) != key {
			continue
		}
		encoded := Reader{Record: c}
		delete(r, AttrIndexPK)
		delete(r, AttrIndexSK)
		// A record is in the index only if it has both index keys, so set both or neither.
		if encoded.Has(AttrIndexPK) && encoded.Text(AttrIndexSK) != "" {
			r[AttrIndexPK], r[AttrIndexSK] = c[AttrIndexPK], c[AttrIndexSK]
		}
		return r, nil
	}
	return nil, fmt.Errorf("%w: record %s: the attributes of the %s do not match the key", ErrCorrupt, r.KeyText(), e.Name)
}

// Reencode decodes a record and encodes it again, with its copies and claims. The keys of the results are built
// from the attributes of r. If the attributes do not match r's key, the new key is different or
// empty.
//
// Errors: ErrCorrupt, or another error for an idempotency record.
func (codec *Codec) Reencode(e *Entity, r Record) ([]Record, error) {
	v, err := codec.decode(e, Reader{Record: r})
	switch {
	case err != nil:
		return nil, err
	case e.Kind == Claim:
		return []Record{r}, nil // the value that it reserves is only in its key
	case e.KeysOnly:
		return []Record{codec.KeyBuilder().record(e, e.valueCodec().encode(v))}, nil
	}
	return codec.KeyBuilder().encodeWithCopies(e.BaseEntity(), e.valueCodec().encode(v)), nil
}

// decode decodes a record with the codec of its entity.
//
// Errors: ErrCorrupt, or another error for an idempotency record.
func (codec *Codec) decode(e *Entity, r Reader) (any, error) {
	values := e.valueCodec()
	if values == nil {
		return nil, fmt.Errorf("record %s: records of kind %s cannot be imported", r.KeyText(), e.Name)
	}
	return values.decode(codec, r)
}

// UnreadableAttributes describes the problem of each attribute that cannot be decoded. Callers must
// not treat such an attribute as absent, because other software may use its value.
func (codec *Codec) UnreadableAttributes(e *Entity, rec Record) map[string]string {
	var problems map[string]string
	r := Reader{Record: rec, onUnreadable: func(attribute, problem string) {
		if problems == nil {
			problems = map[string]string{}
		}
		if problems[attribute] == "" {
			problems[attribute] = problem
		}
	}}
	r.Text("entity")
	_, _ = codec.decode(e, r)
	return problems
}

// InvalidAttributes describes the problem of each attribute that can be decoded, but whose value
// Ordergraph would not write, such as a negative price. It includes values of embedded line items.
func (codec *Codec) InvalidAttributes(e *Entity, rec Record) map[string]string {
	problems := map[string]string{}
	_, _ = codec.decode(e, Reader{Record: rec, onInvalid: func(attribute, problem string) {
		if problems[attribute] == "" {
			problems[attribute] = problem
		}
	}})
	if e.BaseEntity() == &EntityOrder {
		if problem := orderIDProblem(e.KeyValues(KeyOf(rec))["orderId"]); problem != "" {
			problems["orderId"] = problem
		}
	}
	return problems
}

// orderIDProblem explains why clients cannot read an order by its ID. If they can, it returns "".
func orderIDProblem(s string) string {
	id, err := commerce.ParseOrderID(s)
	if invalid, ok := errors.AsType[*commerce.InvalidError](err); ok {
		return invalid.Reason
	}
	if string(id) != s {
		return "contains letters in lower case"
	}
	return ""
}

// KeyProblem explains why Ordergraph cannot find the record with the primary key k, although the key
// resembles the key of an entity. If there is no such problem, it returns "".
func KeyProblem(k Keys) string {
	e := EntityOf(k)
	if e == nil {
		if e = EntityOf(Keys{PK: strings.ToUpper(k.PK), SK: strings.ToUpper(k.SK)}); e == nil {
			return ""
		}
		return fmt.Sprintf("the key is in the wrong case, so Ordergraph does not find the record; the right key is %s %s, in ElectroDB with casing: \"none\"; `ordergraph import -from` converts an export", e.PK, e.SK)
	}
	if problem := orderIDProblem(e.KeyValues(k)["orderId"]); problem != "" && e.BaseEntity() == &EntityOrder {
		return "the order's ID " + problem + "; write the order again with a ULID as its ID, or convert an export with `ordergraph import -from`"
	}
	return ""
}

// HasUnreadableIndexAttribute reports whether an attribute in the index keys cannot be decoded.
func (codec *Codec) HasUnreadableIndexAttribute(rec Record) bool {
	e := EntityOf(KeyOf(rec))
	for name := range codec.UnreadableAttributes(e, rec) {
		if IsInIndexKey(e, name) {
			return true
		}
	}
	return false
}

// IsInPrimaryKey reports whether the primary key of an entity contains the value of an attribute.
func IsInPrimaryKey(e *Entity, name string) bool {
	repeated := func(value string) bool { return e.AttributeForPlaceholder(value) == name }
	return slices.ContainsFunc(e.PK.Placeholders(), repeated) || slices.ContainsFunc(e.SK.Placeholders(), repeated)
}

// IsIndexKey reports whether name is one of the two key attributes of the index.
func IsIndexKey(name string) bool { return name == AttrIndexPK || name == AttrIndexSK }

// IsInIndexKey reports whether the index keys of an entity contain the value of an attribute, and
// the primary key does not.
func IsInIndexKey(e *Entity, name string) bool {
	return slices.Contains(e.IndexAttributes(), name)
}

// DecodeValid decodes a record of other software as the value of an entity. Unlike other decoding
// functions, it rejects each value that Ordergraph cannot read or would not write. The record may
// have other keys than the entity.
//
// Errors: ErrCorrupt.
func (codec *Codec) DecodeValid(e *Entity, rec Record) (any, error) {
	var first error
	report := func(attribute, problem string) {
		if first == nil {
			first = fmt.Errorf("%w: record %s: attribute %q %s", ErrCorrupt, rec.KeyText(), attribute, problem)
		}
	}
	v, err := codec.decode(e, Reader{Record: rec, onUnreadable: report, onInvalid: report})
	return v, cmp.Or(first, err)
}
