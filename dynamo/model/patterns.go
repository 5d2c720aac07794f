package model

import (
	"fmt"

	"github.com/ordergraph/ordergraph/access"
	"github.com/ordergraph/ordergraph/commerce"
)

// The directions in which a Query reads sort keys.
const (
	Ascending  = "ascending"
	Descending = "descending"
)

// QueryPerShard is the value of AccessPattern.Operation for a list that is spread over shards. It
// means one Query per shard.
const QueryPerShard = "Query per shard"

// AccessPattern is one way to read the table. In the GraphQL schema, the directive @reads of a
// field names the access pattern that the field uses.
type AccessPattern struct {
	// ID identifies the pattern in the code, the explain output and the docs. An example is AP1.
	ID string
	// Description describes the records that the pattern reads.
	Description string
	// Operation is GetItem, Query or QueryPerShard. BatchGetItem combines several GetItem reads.
	Operation string
	// Index is the name of the index that a Query reads. It is empty if the Query reads the table.
	Index string
	// PK and SK are the templates of the keys to read. For a Query, SK is only a prefix of the sort
	// keys. If SK is empty, the Query reads all sort keys.
	PK, SK KeyTemplate
	// Direction is Ascending or Descending for a Query, and empty for a GetItem.
	Direction string
	// IncludedIn is the ID of another access pattern that already reads the records of this pattern.
	// If this pattern sends its own requests, IncludedIn is empty.
	IncludedIn string
	// EmbeddedInParent reports whether the parent record may embed the result, such as an order's
	// line items. The pattern then sends a request only if the result is not embedded.
	EmbeddedInParent bool
	// MaxLength is the maximum number of records in the list, or 0 if there is no maximum. For
	// QueryPerShard, it is the maximum for each shard.
	MaxLength int
	// Records is the pattern that reads the records of a page by their keys, because the list
	// contains only keys. It is nil for other lists.
	Records *AccessPattern
	// Claim is the name of the claim that the pattern reads. It is empty if the pattern reads other records.
	Claim string
	// Owner is Entity.Owner of the records. It is 0 if PK does not contain the owner.
	Owner access.Permission

	number int
	// recordPK and recordSK are the templates of the records' primary key.
	recordPK, recordSK KeyTemplate
}

// Matches reports whether a record that a Query of a list returns is in the list. Other software may
// have written a record whose sort key only begins like the list's keys, such as ITEM#mug#1. For a
// pattern that reads a whole item collection, use EntityOf instead.
func (p *AccessPattern) Matches(r Reader) bool {
	return p.recordSK.Matches(r.Text(AttrSK)) && (p.Index == "" || p.recordPK.Matches(r.Text(AttrPK)))
}

// Number returns the number in the pattern's ID. For example, the number of AP7 is 7.
func (p *AccessPattern) Number() int { return p.number }

// LookupPattern is an access pattern that reads single records by their keys. K is the Go type of a
// key, and V is the Go type of a decoded record.
type LookupPattern[K comparable, V any] struct {
	AccessPattern
	Key    func(*KeyBuilder, K) Keys
	Decode func(*Codec, Reader) (V, error)
}

// OwnerOf returns the customer in the partition key of a record. If the key is invalid, it returns an
// empty ID.
func (p *LookupPattern[K, V]) OwnerOf(key K) commerce.CustomerID {
	return commerce.CustomerID(FirstPlaceholderValue(p.PK, p.Key(&KeyBuilder{}, key).PK))
}

// ListPattern is an access pattern that reads the pages of a list. V is the Go type of a decoded
// record.
type ListPattern[V any] struct {
	AccessPattern
	Decode func(*Codec, Reader) (V, error)
}

func pattern(number int, what string, e Entity) AccessPattern {
	p := AccessPattern{number: number, ID: fmt.Sprintf("AP%d", number), Description: what, Operation: "GetItem", PK: e.PK, SK: e.SK, Owner: e.Owner, recordPK: e.PK, recordSK: e.SK}
	if e.Kind == Claim {
		p.Claim = e.Name
	}
	return p
}

func lookupPattern[K comparable, V any](number int, what string, e Entity, key func(*KeyBuilder, K) Keys, decode func(*Codec, Reader) (V, error)) *LookupPattern[K, V] {
	return &LookupPattern[K, V]{pattern(number, what, e), key, decode}
}

func keysByID[ID ~string](e *Entity) func(*KeyBuilder, ID) Keys {
	return func(b *KeyBuilder, id ID) Keys { return Keys{PK: b.Build(e.PK, string(id)), SK: b.Build(e.SK)} }
}

// decodeClaim returns the function that decodes a claim as the ID of its claimant.
func decodeClaim[ID ~string](claim *Entity) func(*Codec, Reader) (ID, error) {
	return withoutCodec(func(r Reader) (ID, error) { return ID(r.RequiredText(claim.ClaimantAttribute())), r.Err() })
}

// ClaimPattern declares a pattern that reads the ID of a claim's claimant. The number must be higher than
// LastPattern.
func ClaimPattern(number int, what string, claim *Entity) *LookupPattern[string, string] {
	return lookupPattern(number, what, *claim, keysByID[string](claim), decodeClaim[string](claim))
}

// collectionPattern declares a pattern that lists one entity's records in an item collection.
func collectionPattern[V any](number int, what string, e Entity, direction string, decode func(*Codec, Reader) (V, error)) *ListPattern[V] {
	p := pattern(number, what, e)
	p.Operation, p.SK, p.Direction = "Query", KeyTemplate(e.SK.Prefix()), direction
	if e.isShardedInTable() {
		p.Operation = QueryPerShard
	}
	return &ListPattern[V]{p, decode}
}

func indexPattern[V any](number int, what string, e Entity, direction string, decode func(*Codec, Reader) (V, error)) *ListPattern[V] {
	p := pattern(number, what, e)
	p.Operation, p.Index, p.PK, p.SK, p.Direction, p.Owner = "Query", IndexName, e.IndexPK, KeyTemplate(e.IndexSK.Prefix()), direction, 0
	if e.Sharded {
		p.Operation = QueryPerShard
	}
	return &ListPattern[V]{p, decode}
}

// wholeCollection declares an access pattern that reads a whole item collection: the record of the
// entity e, and all other records with the same partition key.
func wholeCollection(number int, what string, e Entity) *AccessPattern {
	p := pattern(number, what, e)
	p.Operation, p.SK, p.Direction = "Query", "", Ascending
	return &p
}

func withoutCodec[V any](decode func(Reader) (V, error)) func(*Codec, Reader) (V, error) {
	return func(_ *Codec, r Reader) (V, error) { return decode(r) }
}

func (p *ListPattern[V]) withMaxLength(most int) *ListPattern[V] {
	p.MaxLength = most
	return p
}

// embeddedInParent declares that the parent record may embed the list, of at most this length.
func (p *ListPattern[V]) embeddedInParent(most int) *ListPattern[V] {
	p.EmbeddedInParent = true
	return p.withMaxLength(most)
}

// thenReading declares the pattern that reads the listed records by their keys, because the list
// contains only keys.
func (p *ListPattern[V]) thenReading(records *AccessPattern) *ListPattern[V] {
	p.Records = records
	return p
}

// withMaxLength declares that a field reads up to this number of records.
func (p *LookupPattern[K, V]) withMaxLength(most int) *LookupPattern[K, V] {
	p.MaxLength = most
	return p
}

func (p *LookupPattern[K, V]) embeddedInParent() *LookupPattern[K, V] {
	p.EmbeddedInParent, p.MaxLength = true, 1
	return p
}

// derivedFrom declares a pattern without own requests, because other already reads its records.
func derivedFrom(other *AccessPattern, number int, what string) *AccessPattern {
	p := *other
	p.number, p.ID, p.Description, p.IncludedIn = number, fmt.Sprintf("AP%d", number), what, other.ID
	return &p
}

// The access patterns.
var (
	OrderByID            = lookupPattern(1, "order by ID", EntityOrder, keysByID[commerce.OrderID](&EntityOrder), (*Codec).DecodeOrder)
	CustomerOrders       = collectionPattern(2, "a customer's orders, newest first", EntityCustomerOrder, Descending, (*Codec).DecodeOrder)
	OrdersByStatus       = indexPattern(3, "orders by status, newest first", EntityOrder, Descending, (*Codec).DecodeOrder)
	OrderItems           = collectionPattern(4, "items of an order whose record does not embed them", EntityOrderItem, Ascending, (*Codec).DecodeOrderItem).embeddedInParent(commerce.MaxLines)
	OrderItem            = lookupPattern(5, "one item of an order", EntityOrderItem, KeysOfOrderItem, (*Codec).DecodeOrderItem).embeddedInParent()
	CustomerByID         = lookupPattern(6, "customer by ID", EntityCustomer, keysByID[commerce.CustomerID](&EntityCustomer), (*Codec).DecodeCustomer)
	Orders               = indexPattern(7, "orders of all customers, newest first", EntityOrder, Descending, (*Codec).DecodeOrder)
	OrdersPlaced         = indexPattern(8, "orders placed in a time range", EntityOrder, Descending, (*Codec).DecodeOrder)
	Customers            = indexPattern(9, "customers by creation time", EntityCustomer, Ascending, (*Codec).DecodeCustomer)
	ProductBySKU         = lookupPattern(10, "product by SKU", EntityProduct, keysByID[commerce.SKU](&EntityProduct), (*Codec).DecodeProduct)
	ProductOrderItems    = indexPattern(11, "orders that contain a product", EntityOrderItem, Descending, (*Codec).DecodeOrderItem)
	Products             = indexPattern(12, "products of a category", EntityProduct, Ascending, (*Codec).DecodeProduct)
	ProductInventory     = collectionPattern(13, "stock of a product in every warehouse", EntityInventoryLevel, Ascending, withoutCodec(DecodeInventoryLevel))
	InventoryLevel       = lookupPattern(14, "stock of a product in one warehouse", EntityInventoryLevel, KeysOfInventoryLevel, withoutCodec(DecodeInventoryLevel))
	TotalInventory       = derivedFrom(&ProductBySKU.AccessPattern, 15, "total stock of a product")
	EmployeeByID         = lookupPattern(16, "employee by ID, with phone numbers", EntityEmployee, keysByID[commerce.EmployeeID](&EntityEmployee), withoutCodec(DecodeEmployee))
	EmployeesByName      = indexPattern(17, "employees by name", EntityEmployeeName, Ascending, withoutCodec(DecodeEmployee))
	Employees            = indexPattern(18, "employees hired in a date range", EntityEmployee, Ascending, withoutCodec(DecodeEmployee))
	WarehouseEmployees   = indexPattern(19, "employees of a warehouse", EntityEmployeeWarehouse, Ascending, withoutCodec(DecodeEmployee))
	EmployeesByJobTitle  = indexPattern(20, "employees by job title", EntityEmployeeTitle, Ascending, withoutCodec(DecodeEmployee))
	EmployeeCustomers    = indexPattern(21, "customers of an account rep", EntityCustomerRep, Ascending, (*Codec).DecodeCustomer)
	EmployeeOrders       = indexPattern(22, "orders of an account rep", EntityCustomerOrder, Descending, (*Codec).DecodeOrder)
	CustomerOrdersPlaced = collectionPattern(23, "a customer's orders in a time range", EntityCustomerOrder, Descending, (*Codec).DecodeOrder)
	OrdersInStatuses     = indexPattern(24, "orders in selected statuses and a time range", EntityOrder, Descending, (*Codec).DecodeOrder)
	OrderCollection      = wholeCollection(25, "an order with its items and events", EntityOrder)
	EmailClaim           = lookupPattern(26, "customer ID by e-mail address; access pattern AP6 then reads the customer", EntityEmailClaim, keysByID[string](&EntityEmailClaim), decodeClaim[commerce.CustomerID](&EntityEmailClaim))
	Timeline             = collectionPattern(27, "events of an order", EntityOrderEvent, Ascending, withoutCodec(DecodeEvent))
	WarehouseInventory   = indexPattern(28, "products stocked in a warehouse", EntityInventoryLevel, Ascending, withoutCodec(DecodeInventoryLevel))
	CustomerOrder        = lookupPattern(29, "the order with a given customer ID and order ID", EntityCustomerOrder, KeysOfCustomerOrder, (*Codec).DecodeOrder)
	WarehouseByID        = lookupPattern(30, "warehouse by ID", EntityWarehouse, keysByID[commerce.WarehouseID](&EntityWarehouse), withoutCodec(DecodeWarehouse))
	Warehouses           = indexPattern(31, "all warehouses", EntityWarehouse, Ascending, withoutCodec(DecodeWarehouse))
	EventsInRange        = collectionPattern(32, "events of an order in a range of event IDs", EntityOrderEvent, Ascending, withoutCodec(DecodeEvent))
	LastEvent            = lookupPattern(33, "the last event of a customer's orders", EntityLastEvent, keysByID[commerce.CustomerID](&EntityLastEvent), withoutCodec(DecodeEvent))
	OrderCounts          = collectionPattern(34, "order counts by status", EntityOrderCounts, Ascending, withoutCodec(DecodeOrderCounts)).withMaxLength(OrderCountParts)
	CustomerSpending     = collectionPattern(35, "a customer's spending, by month and currency", EntitySpending, Ascending, (*Codec).DecodeSpending).withMaxLength(commerce.MaxSpendingEntries)
	ProductsByName       = indexPattern(36, "products by name or name prefix", EntityProductName, Ascending, (*Codec).DecodeProduct)
	CategoryByName       = indexPattern(37, "products of a category by name prefix", EntityProductCategoryName, Ascending, (*Codec).DecodeProduct)
	CustomersByName      = indexPattern(38, "customers by name prefix", EntityCustomerName, Ascending, (*Codec).DecodeCustomer)
	Categories           = collectionPattern(39, "all categories with product counts", EntityCategory, Ascending, withoutCodec(DecodeCategory))
	EmployeeOrderCount   = collectionPattern(40, "an account rep's order count", EntityRepOrders, Ascending, withoutCodec(DecodeRepOrderCount)).withMaxLength(RepOrderCountParts)
	CustomersByEmail     = indexPattern(41, "customers by e-mail prefix", EntityCustomerEmail, Ascending, (*Codec).DecodeCustomer)
	StockBuckets         = lookupPattern(42, "the further records with the stock of a product", EntityStockBucket, KeysOfStockBucket, withoutCodec(DecodeStockBucket)).withMaxLength(commerce.MaxStockBuckets - 1)
	DailySales           = collectionPattern(43, "sales by day, in one currency", EntityDailySales, Ascending, (*Codec).DecodeDailySales).withMaxLength(commerce.MaxSalesDays * OrderCountParts)
	OrderPayments        = collectionPattern(44, "payments of an order, oldest first", EntityPayment, Ascending, (*Codec).DecodePayment)
	OrdersByExpiry       = indexPattern(46, "orders that expire, soonest first", EntityOrderExpiry, Ascending, (*Codec).DecodeOrder)
	OrdersByPaymentDue   = indexPattern(45, "orders with an outstanding payment, newest first", EntityPaymentDue, Descending, (*Codec).DecodeOrder)
	OrderReturns         = collectionPattern(47, "returns of an order, oldest first", EntityReturn, Ascending, (*Codec).DecodeReturn).withMaxLength(commerce.MaxReturns)
	ReturnsByStatus      = indexPattern(48, "returns in a status, newest first", EntityReturn, Descending, (*Codec).DecodeReturn)
	OrderFulfillmentList = collectionPattern(49, "fulfillments of an order, oldest first", EntityFulfillment, Ascending, (*Codec).DecodeFulfillment)
	OrdersByTag          = indexPattern(53, "orders with a tag, newest first; access pattern AP1 then reads the orders", EntityOrderTag, Descending, (*Codec).DecodeOrder).thenReading(&OrderByID.AccessPattern)
	OrdersToShip         = indexPattern(55, "confirmed orders that wait to be shipped, longest first; access pattern AP1 then reads the orders", EntityOrderWaiting, Ascending, (*Codec).DecodeOrder).thenReading(&OrderByID.AccessPattern)
	StatusChangesOfAll   = indexPattern(52, "status changes of all orders in a range of event IDs", EntityOrderEvent, Ascending, withoutCodec(DecodeEvent))
	WarehouseLowStock    = indexPattern(51, "inventory levels of a warehouse below their reorder point, lowest quantity first", EntityLowStock, Ascending, withoutCodec(DecodeInventoryLevel))
	UnmatchedPayments    = indexPattern(54, "payments of providers that could not be recorded, newest first", EntityUnmatchedPayment, Descending, (*Codec).DecodeUnmatchedPayment)
	LevelsOfLines        = lookupPattern(56, "stock of an order's products in one warehouse", EntityInventoryLevel, KeysOfInventoryLevel, withoutCodec(DecodeInventoryLevel)).withMaxLength(commerce.MaxLines)
	AllChanges           = indexPattern(60, "changes of all orders, oldest first", EntityOrderEvent, Ascending, withoutCodec(DecodeEvent))
	TrackedFulfillments  = indexPattern(50, "the newest fulfillment with a tracking number; access pattern AP1 then reads the order", EntityFulfillment, Descending, (*Codec).DecodeFulfillment).withMaxLength(1)
	Webhooks             = indexPattern(57, "webhooks, oldest first", EntityWebhook, Ascending, withoutCodec(DecodeWebhook)).withMaxLength(commerce.MaxWebhooks)
	WebhookStates        = lookupPattern(58, "how far events have been delivered to a webhook", EntityWebhookState, keysByID[commerce.WebhookID](&EntityWebhookState), withoutCodec(DecodeWebhookState))
	WebhookFailures      = collectionPattern(59, "orders whose events could not be delivered to a webhook, oldest first", EntityWebhookFailure, Ascending, withoutCodec(DecodeWebhookFailure)).withMaxLength(commerce.MaxWebhookFailures)
)
