package dynamo

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/commerce"
)

// The key attributes and the index. Their names are those of the tables that other software already
// wrote.
const (
	attrPK      = "pk"
	attrSK      = "sk"
	attrIndexPK = "gsi1pk"
	attrIndexSK = "gsi1sk"
	indexName   = "GSI1"
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
func (t Template) Names() []string {
	var names []string
	for _, part := range strings.Split(string(t), "{")[1:] {
		name, _, _ := strings.Cut(part, "}")
		names = append(names, name)
	}
	return names
}

// literal is the template up to its first value.
func (t Template) literal() string {
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
	// Sharded tells that IndexPK gets #k behind it where the table has more than one shard.
	Sharded bool
	// Optional tells that only some of the records have the GSI keys.
	Optional bool
}

// The entities. An edge is named for the record and what it is listed by.
var (
	entityCustomer = Entity{Name: "customer", What: "customer",
		PK: "CUSTOMER#{customerId}", SK: "#METADATA", IndexPK: "CUSTOMER", IndexSK: "{createdAt}#{customerId}", Sharded: true}
	entityCustomerRep = Entity{Name: "customerRep", What: "customer's account rep (edge)",
		PK: "CUSTOMER#{customerId}", SK: "REP", IndexPK: "REP#{employeeId}", IndexSK: "CUSTOMER#{customerId}"}
	entityEmailClaim = Entity{Name: "emailClaim", What: "e-mail claim",
		PK: "EMAIL#{email}", SK: "#METADATA"}
	entityOrder = Entity{Name: "order", What: "order",
		PK: "ORDER#{orderId}", SK: "#METADATA", IndexPK: "STATUS#{status}", IndexSK: "ORDER#{orderId}", Sharded: true}
	entityCustomerOrder = Entity{Name: "customerOrder", What: "order, the customer's copy",
		PK: "CUSTOMER#{customerId}", SK: "ORDER#{orderId}", IndexPK: "REP#{employeeId}", IndexSK: "ORDER#{orderId}", Optional: true}
	entityOrderItem = Entity{Name: "orderItem", What: "order item",
		PK: "ORDER#{orderId}", SK: "ITEM#{sku}", IndexPK: "PRODUCT#{sku}", IndexSK: "ORDER#{orderId}"}
	entityOrderEvent = Entity{Name: "orderEvent", What: "order event",
		PK: "ORDER#{orderId}", SK: "EVENT#{eventId}"}
	entityLastEvent = Entity{Name: "lastEvent", What: "a customer's last order event",
		PK: "CUSTOMER#{customerId}", SK: "LAST_EVENT"}
	entityProduct = Entity{Name: "product", What: "product",
		PK: "PRODUCT#{sku}", SK: "#METADATA", IndexPK: "CATEGORY#{category}", IndexSK: "PRODUCT#{sku}"}
	entityInventoryLevel = Entity{Name: "inventoryLevel", What: "inventory level",
		PK: "PRODUCT#{sku}", SK: "WAREHOUSE#{warehouseId}", IndexPK: "WAREHOUSE#{warehouseId}", IndexSK: "PRODUCT#{sku}"}
	entityWarehouse = Entity{Name: "warehouse", What: "warehouse",
		PK: "WAREHOUSE#{warehouseId}", SK: "#METADATA", IndexPK: "WAREHOUSES", IndexSK: "WAREHOUSE#{warehouseId}"}
	entityEmployee = Entity{Name: "employee", What: "employee",
		PK: "EMPLOYEE#{employeeId}", SK: "#METADATA", IndexPK: "EMPLOYEE", IndexSK: "{hireDate}#{employeeId}", Sharded: true}
	entityEmployeeName = Entity{Name: "employeeName", What: "employee's name (edge)",
		PK: "EMPLOYEE#{employeeId}", SK: "NAME", IndexPK: "EMPLOYEE_NAME#{name}", IndexSK: "EMPLOYEE#{employeeId}"}
	entityEmployeeTitle = Entity{Name: "employeeTitle", What: "employee's job title (edge)",
		PK: "EMPLOYEE#{employeeId}", SK: "TITLE", IndexPK: "JOB_TITLE#{jobTitle}", IndexSK: "EMPLOYEE#{employeeId}"}
	entityEmployeeWarehouse = Entity{Name: "employeeWarehouse", What: "employee's warehouse (edge)",
		PK: "EMPLOYEE#{employeeId}", SK: "WAREHOUSE", IndexPK: "WAREHOUSE#{warehouseId}", IndexSK: "EMPLOYEE#{employeeId}"}
	entityIdempotency = Entity{Name: "idempotency", What: "idempotency key, with the first answer",
		PK: "IDEMPOTENCY#{principal}#{idempotencyKey}", SK: "#METADATA"}
)

// Entities returns every kind of record of the table.
func Entities() []Entity {
	return []Entity{
		entityCustomer, entityCustomerRep, entityEmailClaim, entityOrder, entityCustomerOrder, entityOrderItem,
		entityOrderEvent, entityLastEvent, entityProduct, entityInventoryLevel, entityWarehouse, entityEmployee, entityEmployeeName,
		entityEmployeeTitle, entityEmployeeWarehouse, entityIdempotency,
	}
}

// WritePattern is one way in which the table is changed: one TransactWriteItems for each mutation.
type WritePattern struct {
	// ID names it everywhere: WP1.
	ID string
	// Mutation is the GraphQL field that it serves.
	Mutation string
	// Writes are the records that it writes or checks; Each those it has one of for every line of
	// the order, and Maybe those that only some requests need.
	Writes, Each, Maybe []Entity
	// Reads are the records that it reads before, in one request, and ReadsEach those it reads one
	// of for every line of the order.
	Reads, ReadsEach []Entity
	// Items tells that it needs the items of the order, which are read by themselves where the
	// order does not carry them.
	Items bool
	// Late are the records that it reads to tell why it cannot be done.
	Late []Entity
}

// The write patterns.
var (
	writeCreateCustomer = WritePattern{ID: "WP1", Mutation: "createCustomer",
		Writes: of(entityCustomer, entityEmailClaim), Maybe: of(entityIdempotency, entityCustomerRep, entityEmployee)}
	writeUpdateCustomer = WritePattern{ID: "WP2", Mutation: "updateCustomer",
		Writes: of(entityCustomer), Maybe: of(entityEmailClaim, entityCustomerRep), Reads: of(entityCustomer)}
	writeAssignAccountRep = WritePattern{ID: "WP3", Mutation: "assignAccountRep",
		Writes: of(entityCustomer, entityCustomerRep), Maybe: of(entityEmployee), Reads: of(entityCustomer, entityEmployee)}
	writePlaceOrder = WritePattern{ID: "WP4", Mutation: "placeOrder",
		Writes: of(entityOrder, entityCustomerOrder, entityOrderEvent, entityLastEvent, entityCustomer), Each: of(entityOrderItem, entityProduct), Maybe: of(entityIdempotency), Reads: of(entityCustomer), ReadsEach: of(entityProduct)}
	writeConfirmOrder = WritePattern{ID: "WP5", Mutation: "confirmOrder",
		Writes: of(entityOrder, entityCustomerOrder, entityOrderEvent, entityLastEvent), Maybe: of(entityIdempotency), Reads: of(entityOrder)}
	writeShipOrder = WritePattern{ID: "WP6", Mutation: "shipOrder",
		Writes: of(entityOrder, entityCustomerOrder, entityOrderEvent, entityLastEvent), Each: of(entityInventoryLevel, entityProduct), Maybe: of(entityIdempotency), Reads: of(entityOrder), Items: true, Late: of(entityWarehouse)}
	writeDeliverOrder = WritePattern{ID: "WP7", Mutation: "deliverOrder",
		Writes: of(entityOrder, entityCustomerOrder, entityOrderEvent, entityLastEvent), Maybe: of(entityIdempotency), Reads: of(entityOrder)}
	writeCancelOrder = WritePattern{ID: "WP8", Mutation: "cancelOrder",
		Writes: of(entityOrder, entityCustomerOrder, entityOrderEvent, entityLastEvent), Each: of(entityProduct), Maybe: of(entityIdempotency), Reads: of(entityOrder), Items: true}
	writeSetOrderItem = WritePattern{ID: "WP9", Mutation: "setOrderItem",
		Writes: of(entityOrder, entityCustomerOrder, entityOrderEvent, entityLastEvent, entityOrderItem, entityProduct), Reads: of(entityOrder, entityProduct), Items: true}
	writeRemoveOrderItem = WritePattern{ID: "WP10", Mutation: "removeOrderItem",
		Writes: of(entityOrder, entityCustomerOrder, entityOrderEvent, entityLastEvent, entityOrderItem, entityProduct), Reads: of(entityOrder, entityProduct), Items: true}
	writeUpdateShippingAddress = WritePattern{ID: "WP11", Mutation: "updateShippingAddress",
		Writes: of(entityOrder, entityCustomerOrder, entityOrderEvent, entityLastEvent), Reads: of(entityOrder)}
	writeCreateProduct = WritePattern{ID: "WP12", Mutation: "createProduct",
		Writes: of(entityProduct), Maybe: of(entityIdempotency)}
	writeUpdateProduct = WritePattern{ID: "WP13", Mutation: "updateProduct",
		Writes: of(entityProduct), Reads: of(entityProduct)}
	writeCreateWarehouse = WritePattern{ID: "WP14", Mutation: "createWarehouse",
		Writes: of(entityWarehouse), Maybe: of(entityIdempotency)}
	writeSetInventoryLevel = WritePattern{ID: "WP15", Mutation: "setInventoryLevel",
		Writes: of(entityInventoryLevel, entityProduct), Maybe: of(entityWarehouse), Reads: of(entityInventoryLevel, entityProduct, entityWarehouse)}
	writeAdjustInventory = WritePattern{ID: "WP16", Mutation: "adjustInventory",
		Writes: of(entityInventoryLevel, entityProduct), Maybe: of(entityWarehouse, entityIdempotency), Reads: of(entityInventoryLevel, entityProduct, entityWarehouse)}
	writeHireEmployee = WritePattern{ID: "WP17", Mutation: "hireEmployee",
		Writes: of(entityEmployee, entityEmployeeName, entityEmployeeTitle), Maybe: of(entityEmployeeWarehouse, entityWarehouse, entityIdempotency)}
	writeUpdateEmployee = WritePattern{ID: "WP18", Mutation: "updateEmployee",
		Writes: of(entityEmployee, entityEmployeeName, entityEmployeeTitle), Maybe: of(entityEmployeeWarehouse, entityWarehouse), Reads: of(entityEmployee)}
)

func of(entities ...Entity) []Entity { return entities }

// WritePatterns returns every write pattern, by id.
func WritePatterns() []WritePattern {
	return []WritePattern{
		writeCreateCustomer, writeUpdateCustomer, writeAssignAccountRep, writePlaceOrder, writeConfirmOrder, writeShipOrder,
		writeDeliverOrder, writeCancelOrder, writeSetOrderItem, writeRemoveOrderItem, writeUpdateShippingAddress,
		writeCreateProduct, writeUpdateProduct, writeCreateWarehouse, writeSetInventoryLevel, writeAdjustInventory,
		writeHireEmployee, writeUpdateEmployee,
	}
}

// MaxShards is how many shards a table can have.
const MaxShards = 64

// shardSuffix is what stands behind the partition key of a sharded list: nothing for a table of one
// shard, which is the form that other software writes.
func shardSuffix(shard, shards int) string {
	if shards <= 1 {
		return ""
	}
	return "#" + strconv.Itoa(shard)
}

// shardOf spreads ids over shards. The function never changes, or records would be looked for where
// they are not.
func shardOf(id string, shards int) int {
	if shards <= 1 {
		return 0
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(id))
	return int(h.Sum32() % uint32(shards))
}

// keys are a record's key attributes; IndexPK and IndexSK are empty for one that is not in the
// index.
type keys struct{ PK, SK, IndexPK, IndexSK string }

// keyBuilder makes a record's keys and keeps the first error.
type keyBuilder struct {
	shards int
	err    error
}

func (b *keyBuilder) key(t Template, values ...string) string {
	key, err := t.Key(values...)
	if b.err == nil {
		b.err = err
	}
	return key
}

// sharded is key with the shard of id behind it.
func (b *keyBuilder) sharded(t Template, id string, values ...string) string {
	return b.key(t, values...) + shardSuffix(shardOf(id, b.shards), b.shards)
}

// attributes returns the keys as attributes.
func (k keys) attributes() record {
	r := record{attrPK: str(k.PK), attrSK: str(k.SK)}
	if k.IndexPK != "" {
		r[attrIndexPK], r[attrIndexSK] = str(k.IndexPK), str(k.IndexSK)
	}
	return r
}

// tableKeySchema and indexKeySchema are the key attributes by which the table and its index are
// built and checked.
func tableKeySchema() []types.KeySchemaElement { return keySchema(attrPK, attrSK) }

func indexKeySchema() []types.KeySchemaElement { return keySchema(attrIndexPK, attrIndexSK) }

func keySchema(pk, sk string) []types.KeySchemaElement {
	return []types.KeySchemaElement{
		{AttributeName: aws.String(pk), KeyType: types.KeyTypeHash},
		{AttributeName: aws.String(sk), KeyType: types.KeyTypeRange},
	}
}

// keyAttributes are the names of the key attributes that a Query of this pattern reads by.
func (p *AccessPattern) keyAttributes() (pk, sk string) {
	if p.Index == indexName {
		return attrIndexPK, attrIndexSK
	}
	return attrPK, attrSK
}

// keyValue is the n-th value in a key that was built from t.
func keyValue(t Template, key string) string {
	values, _ := t.Values(key)
	if len(values) == 0 {
		return ""
	}
	return values[0]
}

// consistently is by how much consistent reads cost more; the index has none.
func (p AccessPattern) consistently(consistent bool) float64 {
	if consistent && p.Index == "" {
		return 2
	}
	return 1
}

// records are the entities of which a pattern reads records.
func (p AccessPattern) records() []Entity {
	var entities []Entity
	for _, e := range Entities() {
		pk, sk := e.PK, e.SK
		if p.Index != "" {
			pk, sk = e.IndexPK, e.IndexSK
		}
		if p.PK == pk && (p.SK == sk || p.Direction != "" && string(p.SK) == sk.literal()) {
			entities = append(entities, e)
		}
	}
	return entities
}
