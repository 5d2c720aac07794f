package model

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/commerce"
)

// The key attributes and the index. Their names are those of the tables that other software already
// wrote.
const (
	AttrPK      = "pk"
	AttrSK      = "sk"
	AttrIndexPK = "gsi1pk"
	AttrIndexSK = "gsi1sk"
	IndexName   = "GSI1"
)

// Template is how a key is built: literal text, and values in braces. CUSTOMER#{customerId} with
// the value c1 makes CUSTOMER#c1.
type Template string

// Key puts values in the places of the braces, from left to right.
//
// Errors: commerce.InvalidError where a value is empty or holds '#', so that no value can forge
// another key; another error where there are not as many values as braces.
func (t Template) Key(values ...string) (string, error) {
	var b strings.Builder
	b.Grow(len(t) + 32)
	rest := string(t)
	for {
		open := strings.IndexByte(rest, '{')
		if open < 0 {
			break
		}
		end := open + strings.IndexByte(rest[open:], '}')
		if len(values) == 0 {
			return "", fmt.Errorf("build key %s: no value for %s", t, rest[open:end+1])
		}
		if err := checkKeyValue(values[0]); err != nil {
			return "", commerce.For(rest[open+1:end], err)
		}
		b.WriteString(rest[:open])
		b.WriteString(values[0])
		rest, values = rest[end+1:], values[1:]
	}
	if len(values) > 0 {
		return "", fmt.Errorf("build key %s: %d values too many", t, len(values))
	}
	b.WriteString(rest)
	return b.String(), nil
}

// Values is Key's inverse: the values from which key was built, false where it was not built from
// t.
func (t Template) Values(key string) ([]string, bool) {
	var values []string
	rest := string(t)
	for {
		literal, more, found := strings.Cut(rest, "{")
		if !strings.HasPrefix(key, literal) {
			return nil, false
		}
		key = key[len(literal):]
		if !found {
			return values, key == ""
		}
		_, rest, _ = strings.Cut(more, "}")
		end := strings.IndexByte(key, '#')
		if end < 0 || rest == "" {
			end = len(key)
		}
		if checkKeyValue(key[:end]) != nil {
			return nil, false
		}
		values, key = append(values, key[:end]), key[end:]
	}
}

// Names are what stands in the braces, from left to right.
func (t Template) Names() []string { return t.appendNames(nil) }

func (t Template) appendNames(to []string) []string {
	_, rest, found := strings.Cut(string(t), "{")
	for found {
		name, more, _ := strings.Cut(rest, "}")
		to = append(to, name)
		_, rest, found = strings.Cut(more, "{")
	}
	return to
}

// Literal is the template up to its first value.
func (t Template) Literal() string {
	literal, _, _ := strings.Cut(string(t), "{")
	return literal
}

func checkKeyValue(v string) error {
	if v == "" {
		return commerce.Invalid("is empty")
	}
	if strings.Contains(v, "#") {
		return commerce.Invalid("holds '#', which separates the parts of a key")
	}
	return nil
}

// Entity is a kind of record and its keys. A record without GSI keys is not in the index.
type Entity struct {
	// Name stands in the record's "entity" attribute.
	Name string
	// What tells what it is.
	What             string
	PK, SK           Template
	IndexPK, IndexSK Template
	// Sharded reports whether IndexPK gets #k behind it where the table has more than one shard.
	Sharded bool
	// Optional reports whether only some of the records have the GSI keys.
	Optional bool
	// EdgeOf is, of an edge, the entity whose records it lists by other values. An edge stands in
	// the partition of its record and has the attributes of it, so that a list is one Query. A
	// record that lacks an attribute of the edge's index keys has no such edge.
	EdgeOf *Entity
	// Lacks are attributes of the record that an edge does not have, as it would have to be written
	// again whenever one of them changed.
	Lacks []string
}

// stockNumbers are the attributes of a product that change with every order.
var stockNumbers = []string{AttrTotalInventory, AttrAvailable, AttrStockRevision, AttrOrderCount}

// The entities. An edge is named for the record and what it is listed by.
var (
	EntityCustomer = Entity{Name: "customer", What: "customer",
		PK: "CUSTOMER#{customerId}", SK: "#METADATA", IndexPK: "CUSTOMER", IndexSK: "{createdAt}#{customerId}", Sharded: true}
	EntityCustomerRep = Entity{Name: "customerRep", What: "customer's account rep (edge)",
		PK: "CUSTOMER#{customerId}", SK: "REP", IndexPK: "REP#{employeeId}", IndexSK: "CUSTOMER#{customerId}", EdgeOf: &EntityCustomer, Lacks: []string{AttrOrderCount, AttrSpendingComplete}}
	EntityCustomerName = Entity{Name: "customerName", What: "customer's name (edge)",
		PK: "CUSTOMER#{customerId}", SK: "NAME", IndexPK: "CUSTOMER_NAMES", IndexSK: "{foldedName}#{customerId}", Sharded: true, EdgeOf: &EntityCustomer, Lacks: []string{AttrOrderCount, AttrSpendingComplete}}
	EntityEmailClaim = Entity{Name: "emailClaim", What: "e-mail claim",
		PK: "EMAIL#{email}", SK: "#METADATA"}
	EntityOrder = Entity{Name: "order", What: "order",
		PK: "ORDER#{orderId}", SK: "#METADATA", IndexPK: "STATUS#{status}", IndexSK: "ORDER#{orderId}", Sharded: true}
	EntityCustomerOrder = Entity{Name: "customerOrder", What: "order, the customer's copy",
		PK: "CUSTOMER#{customerId}", SK: "ORDER#{orderId}", IndexPK: "REP#{employeeId}", IndexSK: "ORDER#{orderId}", Optional: true}
	EntityOrderItem = Entity{Name: "orderItem", What: "order item",
		PK: "ORDER#{orderId}", SK: "ITEM#{sku}", IndexPK: "PRODUCT#{sku}", IndexSK: "ORDER#{orderId}"}
	EntityOrderEvent = Entity{Name: "orderEvent", What: "order event",
		PK: "ORDER#{orderId}", SK: "EVENT#{eventId}"}
	EntityLastEvent = Entity{Name: "lastEvent", What: "a customer's last order event",
		PK: "CUSTOMER#{customerId}", SK: "LAST_EVENT"}
	EntityProduct = Entity{Name: "product", What: "product",
		PK: "PRODUCT#{sku}", SK: "#METADATA", IndexPK: "CATEGORY#{category}", IndexSK: "PRODUCT#{sku}"}
	// A product is read together with its inventory levels: its edges stand behind these.
	EntityProductName = Entity{Name: "productName", What: "product's name (edge)",
		PK: "PRODUCT#{sku}", SK: "WITH_NAME", IndexPK: "PRODUCT_NAMES", IndexSK: "{foldedName}#{sku}", Sharded: true, EdgeOf: &EntityProduct, Lacks: stockNumbers}
	EntityProductCategoryName = Entity{Name: "productCategoryName", What: "product's name in its category (edge)",
		PK: "PRODUCT#{sku}", SK: "WITH_CATEGORY", IndexPK: "CATEGORY_NAMES#{category}", IndexSK: "{foldedName}#{sku}", EdgeOf: &EntityProduct, Lacks: stockNumbers}
	EntityCategory = Entity{Name: "category", What: "category, with the number of its products",
		PK: "CATEGORIES", SK: "CATEGORY#{category}"}
	EntityInventoryLevel = Entity{Name: "inventoryLevel", What: "inventory level",
		PK: "PRODUCT#{sku}", SK: "WAREHOUSE#{warehouseId}", IndexPK: "WAREHOUSE#{warehouseId}", IndexSK: "PRODUCT#{sku}"}
	EntityWarehouse = Entity{Name: "warehouse", What: "warehouse",
		PK: "WAREHOUSE#{warehouseId}", SK: "#METADATA", IndexPK: "WAREHOUSES", IndexSK: "WAREHOUSE#{warehouseId}"}
	EntityEmployee = Entity{Name: "employee", What: "employee",
		PK: "EMPLOYEE#{employeeId}", SK: "#METADATA", IndexPK: "EMPLOYEE", IndexSK: "{hireDate}#{employeeId}", Sharded: true}
	EntityEmployeeName = Entity{Name: "employeeName", What: "employee's name (edge)",
		PK: "EMPLOYEE#{employeeId}", SK: "NAME", IndexPK: "EMPLOYEE_NAME#{name}", IndexSK: "EMPLOYEE#{employeeId}", EdgeOf: &EntityEmployee}
	EntityEmployeeTitle = Entity{Name: "employeeTitle", What: "employee's job title (edge)",
		PK: "EMPLOYEE#{employeeId}", SK: "TITLE", IndexPK: "JOB_TITLE#{jobTitle}", IndexSK: "EMPLOYEE#{employeeId}", EdgeOf: &EntityEmployee}
	EntityEmployeeWarehouse = Entity{Name: "employeeWarehouse", What: "employee's warehouse (edge)",
		PK: "EMPLOYEE#{employeeId}", SK: "WAREHOUSE", IndexPK: "WAREHOUSE#{warehouseId}", IndexSK: "EMPLOYEE#{employeeId}", EdgeOf: &EntityEmployee}
	EntityOrderCounts = Entity{Name: "orderCounts", What: "how many orders are in each status, of one part of all orders",
		PK: "ORDER_COUNTS", SK: "PART#{part}"}
	EntityRepOrders = Entity{Name: "repOrders", What: "how many orders an account rep has, of one part of these orders",
		PK: "EMPLOYEE#{employeeId}", SK: "ORDERS#{part}"}
	EntitySpending = Entity{Name: "spending", What: "what a customer's orders of a month cost",
		PK: "CUSTOMER#{customerId}", SK: "SPENDING#{month}#{currency}"}
	EntityIdempotency = Entity{Name: "idempotency", What: "idempotency key, with the first answer",
		PK: "IDEMPOTENCY#{principal}#{idempotencyKey}", SK: "#METADATA"}
)

// WritePattern is one way in which the table is changed: one TransactWriteItems for each mutation.
type WritePattern struct {
	// ID names it everywhere: WP1.
	ID string
	// Mutation is the GraphQL field that it serves.
	Mutation string
	// Writes are the records that it writes or checks, and Maybe those that only some requests
	// need. An entity is listed once for each of its records.
	Writes, Maybe []Entity
	// Each are the entities with one record for every line of the order.
	Each []Entity
	// MaybeEach are the entities with at most one record for every line of the order. These records
	// are written without a condition.
	MaybeEach []Entity
	// Reads are the records that it reads before, in one request, and ReadsEach those it reads one
	// of for every line of the order.
	Reads, ReadsEach []Entity
	// Items reports whether it needs the items of the order, which are read by themselves where the
	// order does not carry them.
	Items bool
	// Late are the records that it reads to tell why it cannot be done.
	Late []Entity
}

// The write patterns.
var (
	WriteCreateCustomer = WritePattern{ID: "WP1", Mutation: "createCustomer",
		Writes: of(EntityCustomer, EntityEmailClaim), Maybe: of(EntityIdempotency, EntityEmployee)}.withEdges(&EntityCustomer)
	WriteUpdateCustomer = WritePattern{ID: "WP2", Mutation: "updateCustomer",
		Writes: of(EntityCustomer), Maybe: of(EntityEmailClaim, EntityEmailClaim), Reads: of(EntityCustomer)}.withEdges(&EntityCustomer)
	WriteAssignAccountRep = WritePattern{ID: "WP3", Mutation: "assignAccountRep",
		Writes: of(EntityCustomer), Maybe: of(EntityEmployee), Reads: of(EntityCustomer, EntityEmployee)}.withEdges(&EntityCustomer)
	WritePlaceOrder = WritePattern{ID: "WP4", Mutation: "placeOrder",
		Writes: of(EntityOrder, EntityCustomerOrder, EntityOrderEvent, EntityLastEvent, EntityCustomer, EntityOrderCounts, EntitySpending), Each: of(EntityOrderItem, EntityProduct), Maybe: of(EntityIdempotency, EntityRepOrders), Reads: of(EntityCustomer), ReadsEach: of(EntityProduct)}.withEdges(&EntityProduct, AttrAvailable, AttrOrderCount).withEdges(&EntityCustomer, AttrOrderCount)
	WriteConfirmOrder = WritePattern{ID: "WP5", Mutation: "confirmOrder",
		Writes: of(EntityOrder, EntityCustomerOrder, EntityOrderEvent, EntityLastEvent, EntityOrderCounts), Maybe: of(EntityIdempotency), Reads: of(EntityOrder)}
	WriteShipOrder = WritePattern{ID: "WP6", Mutation: "shipOrder",
		Writes: of(EntityOrder, EntityCustomerOrder, EntityOrderEvent, EntityLastEvent, EntityOrderCounts), Each: of(EntityInventoryLevel, EntityProduct), Maybe: of(EntityIdempotency), Reads: of(EntityOrder), Items: true, Late: of(EntityWarehouse)}.withEdges(&EntityInventoryLevel, AttrQuantity, AttrVersion).withEdges(&EntityProduct, AttrTotalInventory)
	WriteDeliverOrder = WritePattern{ID: "WP7", Mutation: "deliverOrder",
		Writes: of(EntityOrder, EntityCustomerOrder, EntityOrderEvent, EntityLastEvent, EntityOrderCounts), Maybe: of(EntityIdempotency), Reads: of(EntityOrder)}
	WriteCancelOrder = WritePattern{ID: "WP8", Mutation: "cancelOrder",
		Writes: of(EntityOrder, EntityCustomerOrder, EntityOrderEvent, EntityLastEvent, EntityOrderCounts, EntitySpending), Each: of(EntityProduct), Maybe: of(EntityIdempotency), Reads: of(EntityOrder), Items: true}.withEdges(&EntityProduct, AttrAvailable)
	// The items of an order get records of their own when there are too many to embed.
	WriteSetOrderItem = WritePattern{ID: "WP9", Mutation: "setOrderItem",
		Writes: of(EntityOrder, EntityCustomerOrder, EntityOrderEvent, EntityLastEvent, EntityProduct, EntitySpending), MaybeEach: of(EntityOrderItem), Reads: of(EntityOrder, EntityProduct), Items: true}.withEdges(&EntityProduct, AttrAvailable, AttrOrderCount)
	WriteRemoveOrderItem = WritePattern{ID: "WP10", Mutation: "removeOrderItem",
		Writes: of(EntityOrder, EntityCustomerOrder, EntityOrderEvent, EntityLastEvent, EntityProduct, EntitySpending), MaybeEach: of(EntityOrderItem), Reads: of(EntityOrder, EntityProduct), Items: true}.withEdges(&EntityProduct, AttrAvailable, AttrOrderCount)
	WriteUpdateShippingAddress = WritePattern{ID: "WP11", Mutation: "updateShippingAddress",
		Writes: of(EntityOrder, EntityCustomerOrder, EntityOrderEvent, EntityLastEvent), Reads: of(EntityOrder)}
	WriteCreateProduct = WritePattern{ID: "WP12", Mutation: "createProduct",
		Writes: of(EntityProduct, EntityCategory), Maybe: of(EntityIdempotency)}.withEdges(&EntityProduct)
	WriteUpdateProduct = WritePattern{ID: "WP13", Mutation: "updateProduct",
		Writes: of(EntityProduct), Maybe: of(EntityCategory, EntityCategory), Reads: of(EntityProduct)}.withEdges(&EntityProduct)
	WriteCreateWarehouse = WritePattern{ID: "WP14", Mutation: "createWarehouse",
		Writes: of(EntityWarehouse), Maybe: of(EntityIdempotency)}.withEdges(&EntityWarehouse)
	WriteSetInventoryLevel = WritePattern{ID: "WP15", Mutation: "setInventoryLevel",
		Writes: of(EntityInventoryLevel), Maybe: of(EntityProduct, EntityWarehouse), Reads: of(EntityInventoryLevel, EntityProduct, EntityWarehouse)}.withEdges(&EntityInventoryLevel).withEdges(&EntityProduct, AttrTotalInventory, AttrAvailable)
	WriteAdjustInventory = WritePattern{ID: "WP16", Mutation: "adjustInventory",
		Writes: of(EntityInventoryLevel, EntityProduct), Maybe: of(EntityWarehouse, EntityIdempotency), Reads: of(EntityInventoryLevel, EntityProduct, EntityWarehouse)}.withEdges(&EntityInventoryLevel).withEdges(&EntityProduct, AttrTotalInventory, AttrAvailable)
	WriteHireEmployee = WritePattern{ID: "WP17", Mutation: "hireEmployee",
		Writes: of(EntityEmployee, EntityRepOrders), Maybe: of(EntityWarehouse, EntityIdempotency)}.withEdges(&EntityEmployee)
	WriteUpdateEmployee = WritePattern{ID: "WP18", Mutation: "updateEmployee",
		Writes: of(EntityEmployee), Maybe: of(EntityWarehouse), Reads: of(EntityEmployee)}.withEdges(&EntityEmployee)
)

func of(entities ...Entity) []Entity { return entities }

// MostActions returns how many actions the transaction has at most for an order of so many lines.
func (p WritePattern) MostActions(lines int) int {
	return len(p.Writes) + len(p.Maybe) + lines*(len(p.Each)+len(p.MaybeEach))
}

// MaxShards is how many shards a table can have.
const MaxShards = 64

// ShardSuffix is what stands behind the partition key of a sharded list: nothing for a table of one
// shard, which is the form that other software writes.
func ShardSuffix(shard, shards int) string {
	if shards <= 1 {
		return ""
	}
	return "#" + strconv.Itoa(shard)
}

// ShardOf spreads ids over shards. The function never changes, or records would be looked for where
// they are not.
func ShardOf(id string, shards int) int {
	if shards <= 1 {
		return 0
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(id))
	return int(h.Sum32() % uint32(shards))
}

// Keys are a record's key attributes; IndexPK and IndexSK are empty for one that is not in the
// index.
type Keys struct{ PK, SK, IndexPK, IndexSK string }

// KeyBuilder makes a record's keys and keeps the first error.
type KeyBuilder struct {
	Shards int
	Err    error
}

// Key builds one key, and keeps the first error.
func (b *KeyBuilder) Key(t Template, values ...string) string {
	key, err := t.Key(values...)
	if b.Err == nil {
		b.Err = err
	}
	return key
}

// record returns a record of an entity. Its keys are made of the attributes. One of an Optional
// entity is in the index only if it has the attribute that its partition key there is made of.
func (b *KeyBuilder) record(e *Entity, attributes Record) Record {
	key := func(t Template) string {
		values := t.appendNames(make([]string, 0, 2)) // no template has more, so they need no memory
		for i, name := range values {
			values[i] = e.valueFor(name, attributes)
		}
		return b.Key(t, values...)
	}
	k := Keys{PK: key(e.PK), SK: key(e.SK)}
	if e.IndexPK != "" && (!e.Optional || attributes[e.AttributeFor(e.IndexPK.Names()[0])] != nil) {
		k.IndexPK, k.IndexSK = key(e.IndexPK), key(e.IndexSK)
		if e.Sharded {
			k.IndexPK += ShardSuffix(ShardOf(strings.TrimPrefix(k.PK, e.PK.Literal()), b.Shards), b.Shards)
		}
	}
	return k.Attributes().With(attributes).With(Record{"entity": Str(e.Name)})
}

// AttributeFor returns the attribute that holds the value of a template's placeholder. Placeholders
// of one name have the same meaning in all templates, but the attributes can have other names.
func (e *Entity) AttributeFor(name string) string {
	switch {
	case e.Name == EntityOrderItem.Name && name == "sku":
		return "productId"
	case (e.Name == EntityCustomerRep.Name || e.Name == EntityCustomerOrder.Name) && name == "employeeId":
		return "accountRepId"
	case name == foldedName:
		return "name"
	}
	return name
}

// foldedName is the placeholder of a name as commerce.FoldName returns it.
const foldedName = "foldedName"

// valueFor returns the value of a template's placeholder in a record with these attributes.
func (e *Entity) valueFor(name string, attributes Record) string {
	switch v := attributes[e.AttributeFor(name)].(type) {
	case *types.AttributeValueMemberS:
		if name == foldedName {
			return commerce.FoldName(v.Value)
		}
		return v.Value
	case *types.AttributeValueMemberN:
		return SortableNumber(v.Value)
	default:
		return ""
	}
}

// Attributes returns the keys as attributes.
func (k Keys) Attributes() Record {
	r := Record{AttrPK: Str(k.PK), AttrSK: Str(k.SK)}
	if k.IndexPK != "" {
		r[AttrIndexPK], r[AttrIndexSK] = Str(k.IndexPK), Str(k.IndexSK)
	}
	return r
}

// KeyAttributes are the names of the key attributes that a Query of this pattern reads by.
func (p *AccessPattern) KeyAttributes() (pk, sk string) {
	if p.Index == IndexName {
		return AttrIndexPK, AttrIndexSK
	}
	return AttrPK, AttrSK
}

// KeyValue is the n-th value in a key that was built from t.
func KeyValue(t Template, key string) string {
	values, _ := t.Values(key)
	if len(values) == 0 {
		return ""
	}
	return values[0]
}

// Consistently is by how much consistent reads cost more; the index has none.
func (p AccessPattern) Consistently(consistent bool) float64 {
	if consistent && p.Index == "" {
		return 2
	}
	return 1
}

// Records are the entities of which a pattern reads records.
func (p AccessPattern) Records() []Entity {
	var entities []Entity
	for _, e := range Entities() {
		pk, sk := e.PK, e.SK
		if p.Index != "" {
			pk, sk = e.IndexPK, e.IndexSK
		}
		if p.PK == pk && (p.SK == sk || p.Direction != "" && string(p.SK) == sk.Literal()) {
			entities = append(entities, e)
		}
	}
	return entities
}
