package dynamo

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ordergraph/ordergraph/commerce"
)

// entityOf is the entity of the record at a key; nil for a record of other software, whose keys no
// templates made.
func entityOf(k keys) *Entity {
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
		if e.IndexPK == "" || !strings.HasPrefix(indexSK, e.IndexSK.literal()) {
			continue
		}
		if _, ok := e.IndexPK.Values(indexPK); ok {
			return e, true
		}
		for shard := 0; e.Sharded && shard < MaxShards; shard++ {
			bare, ok := strings.CutSuffix(indexPK, shardSuffix(shard, MaxShards))
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

// reindexed returns a record with the index keys that it has in this store's table, which may have
// another number of shards than the one that it comes from. A record with a value that can be in no
// key, a product without a category, say, is in no list and gets none. A record of other software
// keeps its own.
//
// Errors: ErrCorrupt for a record that cannot be read, or whose key says something else than its
// attributes; another error for one of other software in a place where a list would meet it.
func (codec *Codec) reindexed(r record) (record, error) {
	at, key := reader{record: r}, keyOf(r)
	e := entityOf(key)
	if e == nil {
		if e, ok := listed(at.text(attrIndexPK), at.text(attrIndexSK)); ok {
			return nil, fmt.Errorf("record %s is of no kind that the table holds, and its index keys put it into the lists of kind %s", r.primaryKey(), e.Name)
		}
		return r, nil
	}
	candidates, err := codec.encodedAgain(*e, r)
	if err != nil {
		return nil, err
	}
	for _, c := range candidates {
		if keyOf(c) != key {
			continue
		}
		is := reader{record: c}
		delete(r, attrIndexPK)
		delete(r, attrIndexSK)
		// One of them alone is no place in the index.
		if is.has(attrIndexPK) && is.text(attrIndexSK) != "" {
			r[attrIndexPK], r[attrIndexSK] = c[attrIndexPK], c[attrIndexSK]
		}
		return r, nil
	}
	return nil, fmt.Errorf("%w: record %s: its attributes belong under another key than that of this %s", ErrCorrupt, r.primaryKey(), e.Name)
}

// encodedAgain decodes a record and returns all records that the model makes of what it says, the
// record itself among them where its key and its attributes agree. Values that can be in no key are
// no error: another record of those may need them, not this one.
//
// Errors: ErrCorrupt.
func (codec *Codec) encodedAgain(e Entity, r record) ([]record, error) {
	encode, err := codec.decoded(e, reader{record: r})
	if err != nil {
		return nil, err
	}
	return encode(codec.keyBuilder()), nil
}

// decoded decodes a record of an entity. It returns what makes the model's records of what the
// record says.
//
// Errors: ErrCorrupt.
func (codec *Codec) decoded(e Entity, r reader) (encode func(*keyBuilder) []record, err error) {
	switch e.Name {
	case entityCustomer.Name, entityCustomerRep.Name:
		c, err := codec.decodeCustomer(r)
		return func(b *keyBuilder) []record { return customerRecords(b, *c) }, err
	case entityEmailClaim.Name:
		_, err := decodeEmailClaim(r)
		return func(*keyBuilder) []record { return []record{r.record} }, err // its address stands in its key alone, and it is in no list
	case entityOrder.Name, entityCustomerOrder.Name:
		o, err := codec.decodeOrder(r)
		return func(b *keyBuilder) []record { return orderRecords(b, *o, nil, nil) }, err
	case entityOrderItem.Name:
		i, err := codec.decodeOrderItem(r)
		return func(b *keyBuilder) []record {
			return orderRecords(b, commerce.Order{ID: i.OrderID, CustomerID: i.CustomerID, Status: commerce.Pending}, []commerce.LineItem{*i}, nil)
		}, err
	case entityOrderEvent.Name:
		event, err := decodeEvent(r)
		return func(b *keyBuilder) []record { return []record{eventRecord(b, *event)} }, err
	case entityLastEvent.Name:
		customer := commerce.CustomerID(r.mustText("customerId"))
		event, err := decodeEvent(r)
		return func(b *keyBuilder) []record { return []record{lastEventRecord(b, customer, *event)} }, err
	case entityProduct.Name:
		p, err := codec.decodeProduct(r)
		return func(b *keyBuilder) []record { return []record{productRecord(b, *p)} }, err
	case entityInventoryLevel.Name:
		l, err := decodeInventoryLevel(r)
		return func(b *keyBuilder) []record { return []record{inventoryLevelRecord(b, *l)} }, err
	case entityWarehouse.Name:
		w, err := decodeWarehouse(r)
		return func(b *keyBuilder) []record { return []record{warehouseRecord(b, *w)} }, err
	case entityEmployee.Name, entityEmployeeName.Name, entityEmployeeTitle.Name, entityEmployeeWarehouse.Name:
		employee, err := decodeEmployee(r)
		return func(b *keyBuilder) []record { return employeeRecords(b, *employee) }, err
	}
	return nil, fmt.Errorf("record %s: records of kind %s cannot be imported", r.primaryKey(), e.Name)
}

// unreadable returns the attributes of a record that are there and cannot be read, with what is
// wrong with each; nil where there are none. Such a value says something to the software that wrote
// it: it is not the same as none.
func (codec *Codec) unreadable(e *Entity, rec record) map[string]string {
	var problems map[string]string
	r := reader{record: rec, misread: func(attribute, what string) {
		if problems == nil {
			problems = map[string]string{}
		}
		if problems[attribute] == "" {
			problems[attribute] = what
		}
	}}
	r.text("entity")
	if e.Name == entityOrder.Name || e.Name == entityCustomerOrder.Name {
		// Where the order's ID tells the time, decoding does not read it.
		if placed := r.text("createdAt"); placed != "" {
			r.time("createdAt", placed)
		}
	}
	_, _ = codec.decoded(*e, r)
	return problems
}

// indexedByUnreadable reports whether the index keys of a record are made of an attribute that
// cannot be read.
func (codec *Codec) indexedByUnreadable(rec record) bool {
	e := entityOf(keyOf(rec))
	for name := range codec.unreadable(e, rec) {
		if indexedBy(e, name) {
			return true
		}
	}
	return false
}

// repeatsKey tells whether an attribute says again what a value in the record's primary key says.
func repeatsKey(e *Entity, name string) bool {
	brace := "{" + name + "}"
	return strings.Contains(string(e.PK), brace) || strings.Contains(string(e.SK), brace) ||
		e.Name == entityOrderItem.Name && name == "productId"
}

func isIndexKey(name string) bool { return name == attrIndexPK || name == attrIndexSK }

// indexedBy reports whether the index keys of a record are made of an attribute. What its primary
// key repeats is known in any case.
func indexedBy(e *Entity, name string) bool {
	if repeatsKey(e, name) {
		return false
	}
	if name == "accountRepId" {
		name = "employeeId"
	}
	return slices.Contains(e.IndexPK.Names(), name) || slices.Contains(e.IndexSK.Names(), name)
}
