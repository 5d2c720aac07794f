package model

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ordergraph/ordergraph/commerce"
)

// EntityOf is the entity of the record at a key; nil for a record of other software, whose keys no
// templates made.
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

// allEntities are the model's, made once: bulk work asks for them with every record. Nobody writes
// to them.
var allEntities = Entities()

// listed is the entity whose list an index key belongs to, false where no list reads it. A record
// that lacks one of the two keys is in no list.
func listed(indexPK, indexSK string) (Entity, bool) {
	if indexPK == "" || indexSK == "" {
		return Entity{}, false
	}
	for _, e := range allEntities {
		if e.IndexPK == "" || !strings.HasPrefix(indexSK, e.IndexSK.Literal()) {
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

// Reindexed returns a record with the index keys that it has in this store's table, which may have
// another number of shards than the one that it comes from. A record with a value that can be in no
// key, a product without a category, say, is in no list and gets none. A record of other software
// keeps its own.
//
// Errors: ErrCorrupt for a record that cannot be read, or whose key says something else than its
// attributes; another error for one of other software in a place where a list would meet it.
func (codec *Codec) Reindexed(r Record) (Record, error) {
	at, key := Reader{Record: r}, KeyOf(r)
	e := EntityOf(key)
	if e == nil {
		if e, ok := listed(at.Text(AttrIndexPK), at.Text(AttrIndexSK)); ok {
			return nil, fmt.Errorf("record %s is of no kind that the table holds, and its index keys put it into the lists of kind %s", r.KeyText(), e.Name)
		}
		return r, nil
	}
	candidates, err := codec.EncodedAgain(*e, r)
	if err != nil {
		return nil, err
	}
	for _, c := range candidates {
		if KeyOf(c) != key {
			continue
		}
		is := Reader{Record: c}
		delete(r, AttrIndexPK)
		delete(r, AttrIndexSK)
		// One of them alone is no place in the index.
		if is.Has(AttrIndexPK) && is.Text(AttrIndexSK) != "" {
			r[AttrIndexPK], r[AttrIndexSK] = c[AttrIndexPK], c[AttrIndexSK]
		}
		return r, nil
	}
	return nil, fmt.Errorf("%w: record %s: its attributes belong under another key than that of this %s", ErrCorrupt, r.KeyText(), e.Name)
}

// EncodedAgain decodes a record and returns all records that the model makes of what it says, the
// record itself among them where its key and its attributes agree. Values that can be in no key are
// no error: another record of those may need them, not this one.
//
// Errors: ErrCorrupt.
func (codec *Codec) EncodedAgain(e Entity, r Record) ([]Record, error) {
	encode, err := codec.decoded(e, Reader{Record: r})
	if err != nil {
		return nil, err
	}
	return encode(codec.KeyBuilder()), nil
}

// decoded decodes a record of an entity. It returns what makes the model's records of what the
// record says.
//
// Errors: ErrCorrupt.
func (codec *Codec) decoded(e Entity, r Reader) (encode func(*KeyBuilder) []Record, err error) {
	switch e.Root().Name {
	case EntityCustomer.Name:
		c, err := codec.DecodeCustomer(r)
		return func(b *KeyBuilder) []Record { return CustomerRecords(b, *c) }, err
	case EntityEmailClaim.Name:
		_, err := decodeEmailClaim(r)
		return func(*KeyBuilder) []Record { return []Record{r.Record} }, err // its address stands in its key alone, and it is in no list
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
		customer := commerce.CustomerID(r.MustText("customerId"))
		event, err := DecodeEvent(r)
		return func(b *KeyBuilder) []Record { return []Record{LastEventRecord(b, customer, *event)} }, err
	case EntityOrderCounts.Name:
		c, err := DecodeOrderCounts(r)
		return func(b *KeyBuilder) []Record { return []Record{OrderCountsRecord(b, *c)} }, err
	case EntityRepOrders.Name:
		o, err := DecodeRepOrders(r)
		return func(b *KeyBuilder) []Record { return []Record{RepPartRecord(b, *o)} }, err
	case EntitySpending.Name:
		s, err := codec.DecodeSpending(r)
		return func(b *KeyBuilder) []Record { return []Record{SpendingRecord(b, *s)} }, err
	case EntityProduct.Name:
		p, err := codec.DecodeProduct(r)
		return func(b *KeyBuilder) []Record { return Records(b, p) }, err
	case EntityCategory.Name:
		c, err := DecodeCategory(r)
		return func(b *KeyBuilder) []Record { return []Record{CategoryRecord(b, *c)} }, err
	case EntityInventoryLevel.Name:
		l, err := DecodeInventoryLevel(r)
		return func(b *KeyBuilder) []Record { return Records(b, l) }, err
	case EntityWarehouse.Name:
		w, err := DecodeWarehouse(r)
		return func(b *KeyBuilder) []Record { return Records(b, w) }, err
	case EntityEmployee.Name:
		employee, err := DecodeEmployee(r)
		return func(b *KeyBuilder) []Record { return Records(b, employee) }, err
	}
	return nil, fmt.Errorf("record %s: records of kind %s cannot be imported", r.KeyText(), e.Name)
}

// Unreadable returns the attributes of a record that are there and cannot be read, with what is
// wrong with each; nil where there are none. Such a value says something to the software that wrote
// it: it is not the same as none.
func (codec *Codec) Unreadable(e *Entity, rec Record) map[string]string {
	var problems map[string]string
	r := Reader{Record: rec, misread: func(attribute, what string) {
		if problems == nil {
			problems = map[string]string{}
		}
		if problems[attribute] == "" {
			problems[attribute] = what
		}
	}}
	r.Text("entity")
	if e.Name == EntityOrder.Name || e.Name == EntityCustomerOrder.Name {
		// Where the order's ID tells the time, decoding does not read it.
		if placed := r.Text("createdAt"); placed != "" {
			r.time("createdAt", placed)
		}
	}
	_, _ = codec.decoded(*e, r)
	return problems
}

// IndexedByUnreadable reports whether the index keys of a record are made of an attribute that
// cannot be read.
func (codec *Codec) IndexedByUnreadable(rec Record) bool {
	e := EntityOf(KeyOf(rec))
	for name := range codec.Unreadable(e, rec) {
		if IndexedBy(e, name) {
			return true
		}
	}
	return false
}

// RepeatsKey reports whether an attribute says again what a value in the record's primary key says.
func RepeatsKey(e *Entity, name string) bool {
	repeated := func(value string) bool { return e.AttributeFor(value) == name }
	return slices.ContainsFunc(e.PK.Names(), repeated) || slices.ContainsFunc(e.SK.Names(), repeated)
}

// IsIndexKey reports whether an attribute is a key of the index.
func IsIndexKey(name string) bool { return name == AttrIndexPK || name == AttrIndexSK }

// IndexedBy reports whether the index keys of a record are made of an attribute. What its primary
// key repeats is known in any case.
func IndexedBy(e *Entity, name string) bool {
	return slices.Contains(e.ListedBy(), name)
}
