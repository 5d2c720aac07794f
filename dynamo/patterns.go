package dynamo

import (
	"fmt"

	"github.com/ordergraph/ordergraph/commerce"
)

// Order of a Query's answer.
const (
	Ascending  = "ascending"
	Descending = "descending"
)

// perShard is the operation of a list that is spread over shards.
const perShard = "Query per shard"

// AccessPattern is one way in which the table is read. Which fields of the API it serves stands in
// the schema (@reads).
type AccessPattern struct {
	// ID names the pattern everywhere: AP1.
	ID string
	// What describes what it reads.
	What string
	// Operation is DynamoDB's, GetItem or Query, and how many where it is not one. A GetItem of
	// several keys at once is sent as BatchGetItem.
	Operation string
	// Index is the index that a Query reads, empty for the table.
	Index string
	// PK and SK are the keys that it reads. A Query's SK is the beginning of the sort keys, empty
	// for all of them.
	PK, SK Template
	// Direction is Ascending or Descending for a Query that lists.
	Direction string
	// With is the pattern whose request brings this one's answer, where it needs none of its own.
	With string
	// Fallback reports that the parent record may carry the answer. Then the pattern is read only
	// after it, and only where it does not.
	Fallback bool
	// Most is the maximum length of the list; 0 where there is none.
	Most int

	number int
}

// Number is the number in the ID, from 1.
func (p *AccessPattern) Number() int { return p.number }

// Lookup is an access pattern that reads records of Go type V by keys of type K.
type Lookup[K comparable, V any] struct {
	AccessPattern
	key    func(*keyBuilder, K) keys
	decode func(*Codec, reader) (V, error)
}

// List is an access pattern that reads pages of records of Go type V.
type List[V any] struct {
	AccessPattern
	decode func(*Codec, reader) (V, error)
}

// pattern completes a pattern that reads a record by the keys of an entity.
func pattern(number int, what string, e Entity) AccessPattern {
	return AccessPattern{number: number, ID: fmt.Sprintf("AP%d", number), What: what, Operation: "GetItem", PK: e.PK, SK: e.SK}
}

// lookup declares a pattern that reads records of an entity by their keys.
func lookup[K comparable, V any](number int, what string, e Entity, key func(*keyBuilder, K) keys, decode func(*Codec, reader) (V, error)) *Lookup[K, V] {
	return &Lookup[K, V]{pattern(number, what, e), key, decode}
}

// collection declares a pattern that lists the records of an entity in one item collection.
func collection[V any](number int, what string, e Entity, direction string, decode func(*Codec, reader) (V, error)) *List[V] {
	p := pattern(number, what, e)
	p.Operation, p.SK, p.Direction = "Query", Template(e.SK.literal()), direction
	return &List[V]{p, decode}
}

// index declares a pattern that lists records of an entity by their GSI keys.
func index[V any](number int, what string, e Entity, direction string, decode func(*Codec, reader) (V, error)) *List[V] {
	p := pattern(number, what, e)
	p.Operation, p.Index, p.PK, p.SK, p.Direction = "Query", indexName, e.IndexPK, Template(e.IndexSK.literal()), direction
	if e.Sharded {
		p.Operation = perShard
	}
	return &List[V]{p, decode}
}

// whole declares a pattern that reads an item collection: the record of an entity and all others
// with its partition key.
func whole(number int, what string, e Entity) *AccessPattern {
	p := pattern(number, what, e)
	p.Operation, p.SK, p.Direction = "Query", "", Ascending
	return &p
}

// static is the decoder of records that need nothing of the codec.
func static[V any](decode func(reader) (V, error)) func(*Codec, reader) (V, error) {
	return func(_ *Codec, r reader) (V, error) { return decode(r) }
}

// carried declares that the parent record may carry the answer, of at most so many records.
func (p *List[V]) carried(most int) *List[V] {
	p.Fallback, p.Most = true, most
	return p
}

// carried declares that the parent record may carry the answer.
func (p *Lookup[K, V]) carried() *Lookup[K, V] {
	p.Fallback, p.Most = true, 1
	return p
}

// with declares a pattern whose answer comes with the records of another one.
func with(other *AccessPattern, number int, what string) *AccessPattern {
	p := *other
	p.number, p.ID, p.What, p.With = number, fmt.Sprintf("AP%d", number), what, other.ID
	return &p
}

// The access patterns. Each is declared here and nowhere else; @reads in the schema names the
// fields that it serves.
var (
	OrderByID            = lookup(1, "order by id", entityOrder, orderKey, (*Codec).decodeOrder)
	CustomerOrders       = collection(2, "a customer's orders, newest first", entityCustomerOrder, Descending, (*Codec).decodeOrder)
	OrdersByStatus       = index(3, "orders by status, newest first", entityOrder, Descending, (*Codec).decodeOrder)
	OrderItems           = collection(4, "items of an order that does not carry them", entityOrderItem, Ascending, (*Codec).decodeOrderItem).carried(commerce.MaxLines)
	OrderItem            = lookup(5, "one item of an order", entityOrderItem, orderItemKey, (*Codec).decodeOrderItem).carried()
	CustomerByID         = lookup(6, "customer by id", entityCustomer, customerKey, (*Codec).decodeCustomer)
	Orders               = index(7, "recent orders over all customers", entityOrder, Descending, (*Codec).decodeOrder)
	OrdersPlaced         = index(8, "orders placed in a time range", entityOrder, Descending, (*Codec).decodeOrder)
	Customers            = index(9, "customers in the order they joined", entityCustomer, Ascending, (*Codec).decodeCustomer)
	ProductBySKU         = lookup(10, "product by SKU", entityProduct, productKey, (*Codec).decodeProduct)
	ProductOrderItems    = index(11, "orders that contain a product", entityOrderItem, Descending, (*Codec).decodeOrderItem)
	Products             = index(12, "products of a category", entityProduct, Ascending, (*Codec).decodeProduct)
	ProductInventory     = collection(13, "stock of a product in every warehouse", entityInventoryLevel, Ascending, static(decodeInventoryLevel))
	InventoryLevel       = lookup(14, "stock of a product in one warehouse", entityInventoryLevel, inventoryLevelKey, static(decodeInventoryLevel))
	TotalInventory       = with(&ProductBySKU.AccessPattern, 15, "total stock of a product")
	EmployeeByID         = lookup(16, "employee by id, with phone numbers", entityEmployee, employeeKey, static(decodeEmployee))
	EmployeesByName      = index(17, "employees by name", entityEmployeeName, Ascending, static(decodeEmployee))
	Employees            = index(18, "employees hired in a date range", entityEmployee, Ascending, static(decodeEmployee))
	WarehouseEmployees   = index(19, "employees of a warehouse", entityEmployeeWarehouse, Ascending, static(decodeEmployee))
	EmployeesByJobTitle  = index(20, "employees by job title", entityEmployeeTitle, Ascending, static(decodeEmployee))
	EmployeeCustomers    = index(21, "customers of an account rep", entityCustomerRep, Ascending, (*Codec).decodeCustomer)
	EmployeeOrders       = index(22, "orders of an account rep", entityCustomerOrder, Descending, (*Codec).decodeOrder)
	CustomerOrdersPlaced = collection(23, "a customer's orders in a time range", entityCustomerOrder, Descending, (*Codec).decodeOrder)
	OrdersInStatuses     = index(24, "orders in chosen statuses, such as the open ones, in a time range", entityOrder, Descending, (*Codec).decodeOrder)
	OrderCollection      = whole(25, "a whole order: header, items, timeline", entityOrder)
	EmailClaim           = lookup(26, "customer by e-mail: the claim, then AP6's record", entityEmailClaim, emailClaimKey, static(decodeEmailClaim))
	Timeline             = collection(27, "what happened to an order", entityOrderEvent, Ascending, static(decodeEvent))
	WarehouseInventory   = index(28, "products stocked in a warehouse", entityInventoryLevel, Ascending, static(decodeInventoryLevel))
	CustomerOrder        = lookup(29, "an order when the customer is known", entityCustomerOrder, customerOrderKey, (*Codec).decodeOrder)
	WarehouseByID        = lookup(30, "warehouse by id", entityWarehouse, warehouseKey, static(decodeWarehouse))
	Warehouses           = index(31, "all warehouses", entityWarehouse, Ascending, static(decodeWarehouse))
	EventsSince          = collection(32, "the events of an order from one to its last one", entityOrderEvent, Ascending, static(decodeEvent))
	LastEvent            = lookup(33, "the last event of a customer's orders", entityLastEvent, lastEventKey, static(decodeEvent))
)
