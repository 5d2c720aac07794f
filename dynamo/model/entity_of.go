package model

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ordergraph/ordergraph/commerce"
)

// EntityOf returns the entity whose key templates match a primary key. If no entity matches, other
// software wrote the record, and EntityOf returns nil.
func EntityOf(k Keys) *Entity {
	for i := range allEntities {
		e := &allEntities[i]
		if _, ok := e.PK.Values(k.PK); !ok {
			continue
		}
		if _, ok := e.SK.Values(k.SK); ok {
			return e
		}
	}
	return nil
}

// allEntities contains all entities. It is built only once, because bulk operations use it for
// every record. Do not modify it.
var allEntities = Entities()

// entityOfIndexKeys returns the entity whose index key templates match the given keys. If no entity
// matches or one of the keys is empty, it returns false.
func entityOfIndexKeys(indexPK, indexSK string) (Entity, bool) {
	if indexPK == "" || indexSK == "" {
		return Entity{}, false
	}
	for _, e := range allEntities {
		if e.IndexPK == "" || !strings.HasPrefix(indexSK, e.IndexSK.Prefix()) {
			continue
		}
		if _, ok := e.IndexPK.Values(indexPK); ok {
			return e, true
		}
		for shard := 0; e.Sharded && shard < MaxShards; shard++ {
			bare, ok := strings.CutSuffix(indexPK, ShardSuffix(shard, MaxShards))
			if !ok {
				continue
			}
			if _, ok := e.IndexPK.Values(bare); ok {
				return e, true
			}
		}
	}
	return Entity{}, false
}

// WithIndexKeys replaces the index keys of an imported record. The record may come from a table
// with another number of shards, and its index keys depend on this number. If the record's
// attributes produce no index keys, WithIndexKeys removes the index keys.
//
// Errors: ErrCorrupt, or another error for an idempotency record. It is also an error if the index
// keys match an entity but the primary key does not.
func (codec *Codec) WithIndexKeys(r Record) (Record, error) {
	reader, key := Reader{Record: r}, KeyOf(r)
	e := EntityOf(key)
	if e == nil {
		if e, ok := entityOfIndexKeys(reader.Text(AttrIndexPK), reader.Text(AttrIndexSK)); ok {
			return nil, fmt.Errorf("the primary key of record %s matches no entity, but its index keys match the entity %s", r.KeyText(), e.Name)
		}
		return r, nil
	}
	candidates, err := codec.Reencode(*e, r)
	if err != nil {
		return nil, err
	}
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

// Reencode decodes a record and encodes it again, with all records derived from it, such as its
// edges (copies with other index keys). The keys of the results are built from the attributes of r.
// If the attributes do not match r's key, the new key is different or empty.
//
// Errors: ErrCorrupt, or another error for an idempotency record.
func (codec *Codec) Reencode(e Entity, r Record) ([]Record, error) {
	encode, err := codec.decodeForReencoding(e, Reader{Record: r})
	if err != nil {
		return nil, err
	}
	return encode(codec.KeyBuilder()), nil
}

// decodeForReencoding decodes a record and returns a function that encodes it as Reencode does.
//
// Errors: ErrCorrupt, or another error for an idempotency record.
func (codec *Codec) decodeForReencoding(e Entity, r Reader) (encode func(*KeyBuilder) []Record, err error) {
	switch e.BaseEntity().Name {
	case EntityCustomer.Name:
		c, err := codec.DecodeCustomer(r)
		return func(b *KeyBuilder) []Record { return CustomerRecords(b, *c) }, err
	case EntityDeletedCustomer.Name:
		c, err := DecodeDeletedCustomer(r)
		return func(b *KeyBuilder) []Record { return []Record{DeletedCustomerRecord(b, *c)} }, err
	case EntityEmailClaim.Name:
		_, err := decodeEmailClaim(r)
		return func(*KeyBuilder) []Record { return []Record{r.Record} }, err // keep the record: the address is only in the key, and claims have no index keys
	case EntityOrder.Name, EntityCustomerOrder.Name:
		o, err := codec.DecodeOrder(r)
		return func(b *KeyBuilder) []Record { return OrderRecords(b, *o, nil, nil) }, err
	case EntityOrderItem.Name:
		i, err := codec.DecodeOrderItem(r)
		return func(b *KeyBuilder) []Record {
			return OrderRecords(b, commerce.Order{ID: i.OrderID, CustomerID: i.CustomerID, Status: commerce.Pending}, []commerce.LineItem{*i}, nil)
		}, err
	case EntityOrderEvent.Name:
		event, err := DecodeEvent(r)
		return func(b *KeyBuilder) []Record { return []Record{EventRecord(b, *event)} }, err
	case EntityLastEvent.Name:
		customer := commerce.CustomerID(r.RequiredText("customerId"))
		event, err := DecodeEvent(r)
		return func(b *KeyBuilder) []Record { return []Record{LastEventRecord(b, customer, *event)} }, err
	case EntityOrderCounts.Name:
		c, err := DecodeOrderCounts(r)
		return func(b *KeyBuilder) []Record { return []Record{OrderCountsRecord(b, *c)} }, err
	case EntityRepOrders.Name:
		o, err := DecodeRepOrderCount(r)
		return func(b *KeyBuilder) []Record { return []Record{RepOrderCountRecord(b, *o)} }, err
	case EntitySpending.Name:
		s, err := codec.DecodeSpending(r)
		return func(b *KeyBuilder) []Record { return []Record{SpendingRecord(b, *s)} }, err
	case EntityProduct.Name:
		p, err := codec.DecodeProduct(r)
		return func(b *KeyBuilder) []Record { return EncodeWithEdges(b, p) }, err
	case EntityCategory.Name:
		c, err := DecodeCategory(r)
		return func(b *KeyBuilder) []Record { return []Record{CategoryRecord(b, *c)} }, err
	case EntityInventoryLevel.Name:
		l, err := DecodeInventoryLevel(r)
		return func(b *KeyBuilder) []Record { return EncodeWithEdges(b, l) }, err
	case EntityWarehouse.Name:
		w, err := DecodeWarehouse(r)
		return func(b *KeyBuilder) []Record { return EncodeWithEdges(b, w) }, err
	case EntityEmployee.Name:
		employee, err := DecodeEmployee(r)
		return func(b *KeyBuilder) []Record { return EncodeWithEdges(b, employee) }, err
	}
	return nil, fmt.Errorf("record %s: records of kind %s cannot be imported", r.KeyText(), e.Name)
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
	if e.Name == EntityOrder.Name || e.Name == EntityCustomerOrder.Name {
		// If the order's ID contains the creation time, decoding skips createdAt. So check it here.
		if placed := r.Text("createdAt"); placed != "" {
			r.time("createdAt", placed)
		}
	}
	_, _ = codec.decodeForReencoding(*e, r)
	return problems
}

// InvalidAttributes describes the problem of each attribute that can be decoded, but whose value
// Ordergraph would not write, such as a negative price. It includes values of embedded line items.
func (codec *Codec) InvalidAttributes(e *Entity, rec Record) map[string]string {
	problems := map[string]string{}
	_, _ = codec.decodeForReencoding(*e, Reader{Record: rec, onInvalid: func(attribute, problem string) {
		if problems[attribute] == "" {
			problems[attribute] = problem
		}
	}})
	if e.Name == EntityOrder.Name || e.Name == EntityCustomerOrder.Name {
		if invalid, ok := errors.AsType[*commerce.InvalidError](parseOrderID(e.KeyValues(KeyOf(rec))["orderId"])); ok {
			problems["orderId"] = invalid.Reason
		}
	}
	return problems
}

func parseOrderID(s string) error {
	_, err := commerce.ParseOrderID(s)
	return err
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
