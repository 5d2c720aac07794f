package model

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/access"
	"github.com/ordergraph/ordergraph/commerce"
)

// The names of the key attributes and of the index, as in existing tables of other software.
const (
	AttrPK      = "pk"
	AttrSK      = "sk"
	AttrIndexPK = "gsi1pk"
	AttrIndexSK = "gsi1sk"
	IndexName   = "GSI1"
)

// KeyTemplate is a template for keys, with placeholders in braces. For example, the template
// CUSTOMER#{customerId} with the value c1 produces the key CUSTOMER#c1.
type KeyTemplate string

// Build replaces the placeholders with values, from left to right.
//
// Errors: commerce.InvalidError if a value is empty or contains '#', and another error if the
// number of values is wrong.
func (t KeyTemplate) Build(values ...string) (string, error) {
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
			return "", commerce.ErrorWithArgument(rest[open+1:end], err)
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

// Values is the inverse of Build. It returns the values that the placeholders have in key. If key
// does not match the template, it returns false.
func (t KeyTemplate) Values(key string) ([]string, bool) { return t.appendValues(nil, key) }

// Matches reports whether Build can return key.
func (t KeyTemplate) Matches(key string) bool {
	var buffer [4]string // large enough for every template, so this allocates nothing
	_, ok := t.appendValues(buffer[:0], key)
	return ok
}

func (t KeyTemplate) appendValues(values []string, key string) ([]string, bool) {
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

// Placeholders returns the names of the placeholders, from left to right.
func (t KeyTemplate) Placeholders() []string { return t.appendPlaceholders(nil) }

func (t KeyTemplate) appendPlaceholders(to []string) []string {
	_, rest, found := strings.Cut(string(t), "{")
	for found {
		name, more, _ := strings.Cut(rest, "}")
		to = append(to, name)
		_, rest, found = strings.Cut(more, "{")
	}
	return to
}

// Prefix returns the text before the first placeholder.
func (t KeyTemplate) Prefix() string {
	literal, _, _ := strings.Cut(string(t), "{")
	return literal
}

func checkKeyValue(v string) error {
	if v == "" {
		return commerce.NewInvalidError("is empty")
	}
	if strings.Contains(v, "#") {
		return commerce.NewInvalidError("contains '#', which separates the parts of a key")
	}
	return nil
}

// EntityKind says where the records of an entity come from.
type EntityKind uint8

const (
	// Base is the kind of an entity whose records follow from no other records.
	Base EntityKind = iota
	// Copy is a record of the entity Of under other keys. Mutations that change the record also change
	// its copies.
	Copy
	// Claim reserves a value for one record of the entity Of, so that no other record has the same
	// value. The value is only in the claim's key. The attributes are those in the primary key of
	// the record.
	Claim
	// Sum is a record that exists only for numbers that add up other records. Package dynamo/derive
	// declares these numbers.
	Sum
	// Latest repeats the latest record of the entity Of.
	Latest
	// Share contains a part of the numbers in a record of the entity Of, so that more mutations can
	// change them.
	Share
)

// Entity is a kind of record, with the templates of its keys. If an entity has no templates for
// index keys, its records are not in the index.
type Entity struct {
	// Name is the value of the attribute "entity" in the records. In ElectroDB, the entity has the
	// same name, unless the setting ORDERGRAPH_ELECTRODB contains another one.
	Name string
	// Description is the name of the entity in messages and docs.
	Description      string
	PK, SK           KeyTemplate
	IndexPK, IndexSK KeyTemplate
	// Sharded reports whether the records are spread over several index partition keys. If the table
	// has more than one shard, each of these keys is IndexPK followed by a shard number. If the entity
	// has no index keys, this applies to PK, and the records have the attribute AttrShard.
	Sharded bool
	// LaterShards is the maximum number of shards of a list that has one shard in the first era. For
	// other lists, it is 0.
	LaterShards int
	// Optional reports whether some of the records have no index keys.
	Optional bool
	Kind     EntityKind
	// Of is the entity that a Copy, Claim, Latest or Share follows. For other kinds, it is nil.
	Of *Entity
	// Owner is set if the partition key contains the ID of the customer who owns the record. It is the
	// permission that a caller needs to read the record.
	Owner access.Permission
	// Omitted are the attributes that a Copy omits. If a mutation changes only these attributes, it
	// does not have to update the copy.
	Omitted []string
	// Added reports whether a table that is older than the declaration of the edge or Claim lacks
	// it until `ordergraph table apply` adds it. AddedNumbers are derived numbers that such a table
	// lacks, too.
	Added        bool
	AddedNumbers []string
	// AddedFeatures are attributes that servers with an earlier version would damage. Such a server
	// refuses a table whose layout contains the feature. An older table lacks it until `ordergraph
	// table apply` adds it.
	AddedFeatures []string
	// IndexFeature is the name of the feature that a table must have before records get index keys.
	// If it is empty, records have them in every table.
	IndexFeature string
	// FullIndexFeature is the name of the feature that gives index keys to all records, also to records
	// without the attribute in IndexPK. Their keys contain NoStatus instead.
	FullIndexFeature string
	// OnRequest reports whether a new table also lacks the derivation, because every order would
	// cost more.
	OnRequest bool
	// KeysOnly reports whether an edge contains only what is in its keys. So only changes of these
	// attributes write it.
	KeysOnly bool
	// Each is the name of a list of texts in the record of the entity Of. There is one edge for
	// each text, which the last placeholder of SK represents. Such an edge is KeysOnly. For other
	// entities, Each is empty.
	Each string
	// Renamed maps a placeholder in the keys to its attribute, if their names differ.
	Renamed map[string]string
	// keyField is the custom field whose value is in the keys of an edge or claim. For other
	// entities, it is nil.
	keyField *commerce.CustomField
	// codec encodes and decodes the attributes. It is nil for idempotency records, and for a Copy or
	// Claim, whose attributes follow from the entity Of (see valueCodec).
	codec recordCodec
}

// stockAttributes are a product's attributes that change with orders or inventory levels.
var stockAttributes = []string{AttrTotalInventory, AttrAvailable, AttrStockRevision, AttrOrderCount}

// accountRep is the value of Entity.Renamed for keys with the ID of an account rep.
var accountRep = map[string]string{"employeeId": "accountRepId"}

// Templates that several declarations use.
const (
	metadataSK   KeyTemplate = "#METADATA"
	orderKey     KeyTemplate = "ORDER#{orderId}"
	repKey       KeyTemplate = "REP#{employeeId}"
	warehouseKey KeyTemplate = "WAREHOUSE#{warehouseId}"
	categoryKey  KeyTemplate = "CATEGORY#{category}"
)

// The entities. The name of an edge begins with the name of the copied entity.
var (
	EntityCustomer = Entity{Name: "customer", Description: "customer",
		PK: "CUSTOMER#{customerId}", SK: "#METADATA", IndexPK: "CUSTOMER", IndexSK: "{createdAt}#{customerId}", Sharded: true, Owner: access.PermissionReadCustomer, codec: codecFor[commerce.Customer](customerAttributes)}
	EntityCustomerRep = Entity{Name: "customerRep", Description: "customer's account rep (edge)",
		PK: "CUSTOMER#{customerId}", SK: "REP", IndexPK: "REP#{employeeId}", IndexSK: "CUSTOMER#{customerId}", Kind: Copy, Of: &EntityCustomer, Omitted: []string{AttrOrderCount, AttrSpendingComplete}, Renamed: accountRep}
	EntityCustomerName = Entity{Name: "customerName", Description: "customer's name (edge)",
		PK: "CUSTOMER#{customerId}", SK: "NAME", IndexPK: "CUSTOMER_NAMES", IndexSK: "{foldedName}#{customerId}", Sharded: true, Kind: Copy, Of: &EntityCustomer, Omitted: []string{AttrOrderCount, AttrSpendingComplete}}
	EntityCustomerEmail = Entity{Name: "customerEmail", Description: "customer's e-mail address (edge)",
		PK: "CUSTOMER#{customerId}", SK: "EMAIL", IndexPK: "CUSTOMER_EMAILS", IndexSK: "{emailKey}#{customerId}", Sharded: true, Kind: Copy, Added: true, Of: &EntityCustomer, Omitted: []string{AttrOrderCount, AttrSpendingComplete}}
	EntityDeletedCustomer = Entity{Name: "deletedCustomer", Description: "deletion of a customer",
		PK: "CUSTOMER#{customerId}", SK: "DELETED", codec: codecFor[commerce.DeletedCustomer](deletedCustomerAttributes)}
	EntityEmailClaim = Entity{Name: "emailClaim", Description: "e-mail claim",
		PK: "EMAIL#{emailKey}", SK: "#METADATA", Kind: Claim, Of: &EntityCustomer}
	EntityOrder = Entity{Name: "order", Description: "order",
		PK: "ORDER#{orderId}", SK: "#METADATA", IndexPK: "STATUS#{status}", IndexSK: "ORDER#{orderId}", Sharded: true, AddedFeatures: []string{AttrAdjustments, AttrErased, attrReturns, AttrFulfillments, guestsFeature}, codec: codecFor[commerce.Order](orderValueAttributes)}
	EntityCustomerOrder = Entity{Name: "customerOrder", Description: "order, the customer's copy",
		PK: "CUSTOMER#{customerId}", SK: "ORDER#{orderId}", IndexPK: "REP#{employeeId}", IndexSK: "ORDER#{orderId}", Optional: true, Owner: access.PermissionReadOrder, Kind: Copy, Of: &EntityOrder, Renamed: accountRep}
	EntityOrderItem = Entity{Name: "orderItem", Description: "order item",
		PK: "ORDER#{orderId}", SK: "ITEM#{sku}", IndexPK: "PRODUCT#{sku}", IndexSK: "ORDER#{orderId}", Sharded: true, LaterShards: 8, Renamed: map[string]string{"sku": "productId"}, codec: codecFor[commerce.LineItem](orderItemAttributes)}
	EntityOrderEvent = Entity{Name: "orderEvent", Description: "order event",
		PK: "ORDER#{orderId}", SK: "EVENT#{eventId}", IndexPK: "STATUS_CHANGES#{to}", IndexSK: "EVENT#{eventId}", Sharded: true, Optional: true, OnRequest: true, AddedFeatures: []string{attrStatusChanges, attrChanges}, IndexFeature: StatusChanges, FullIndexFeature: Changes, codec: codecFor[commerce.Event](eventAttributes)}
	EntityLastEvent = Entity{Name: "lastEvent", Description: "a customer's last order event",
		PK: "CUSTOMER#{customerId}", SK: "LAST_EVENT", Owner: access.PermissionReadOrder, Kind: Latest, Of: &EntityOrderEvent, codec: codecFor[lastEvent](lastEventAttributes)}
	// The sort keys of payments, returns and fulfillments, and of the order's edges, come after its
	// line items and events. So one Query reads the order with these, but without the payments,
	// returns and fulfillments.
	EntityPayment = Entity{Name: "payment", Description: "payment of an order",
		PK: "ORDER#{orderId}", SK: "PAYMENT#{paymentId}", codec: codecFor[commerce.Payment](paymentAttributes)}
	EntityPaymentClaim = Entity{Name: "paymentClaim", Description: "claim of a provider's ID of a payment",
		PK: "PAYMENT#{providerReference}", SK: "#METADATA", Kind: Claim, Of: &EntityPayment}
	EntityUnmatchedPayment = Entity{Name: "unmatchedPayment", Description: "payment of a provider that could not be recorded",
		PK: "UNMATCHED_PAYMENT#{providerReference}", SK: "#METADATA", IndexPK: "UNMATCHED_PAYMENTS", IndexSK: "{createdAt}#{providerReference}", codec: codecFor[commerce.UnmatchedPayment](unmatchedPaymentAttributes)}
	EntityFulfillment = Entity{Name: "fulfillment", Description: "fulfillment of an order",
		PK: "ORDER#{orderId}", SK: "SHIPMENT#{fulfillmentId}", IndexPK: "TRACKING#{trackingNumber}", IndexSK: "SHIPMENT#{fulfillmentId}", Optional: true, codec: codecFor[commerce.Fulfillment](fulfillmentAttributes)}
	// EntityPaymentDue also keeps older servers from a table with payments: they reject a layout that
	// contains its name.
	EntityPaymentDue = Entity{Name: "orderPaymentDue", Description: "order with an outstanding payment (edge)",
		PK: "ORDER#{orderId}", SK: "WITH_PAYMENT_DUE", IndexPK: "PAYMENT_DUE#{paymentDue}", IndexSK: "ORDER#{orderId}", Sharded: true, Kind: Copy, Added: true, Of: &EntityOrder}
	// EntityOrderExpiry keeps older servers away, too. They would confirm an order, but leave its
	// expiry.
	EntityOrderExpiry = Entity{Name: "orderExpiry", Description: "order that expires (edge)",
		PK: "ORDER#{orderId}", SK: "WITH_EXPIRY", IndexPK: "EXPIRING", IndexSK: "{expiry}#{orderId}", Sharded: true, Kind: Copy, Added: true, Of: &EntityOrder}
	// EntityOrderTag keeps older servers away, too. They would not know that only staff may read
	// the tags.
	EntityOrderTag = Entity{Name: "orderTag", Description: "order with a tag (edge)",
		PK: "ORDER#{orderId}", SK: "WITH_TAG#{tag}", IndexPK: "TAG#{tag}", IndexSK: "ORDER#{orderId}", Sharded: true, Kind: Copy, Added: true, KeysOnly: true, Of: &EntityOrder, Each: attrTags}
	// Each order that is confirmed would cost more, so new tables lack the edge.
	EntityOrderWaiting = Entity{Name: "orderWaiting", Description: "confirmed order that waits to be shipped (edge)",
		PK: "ORDER#{orderId}", SK: "WITH_WAITING", IndexPK: "WAITING", IndexSK: "{waitingSince}#{orderId}", Sharded: true, Kind: Copy, Added: true, OnRequest: true, KeysOnly: true, Of: &EntityOrder}
	EntityReturn = Entity{Name: "return", Description: "return of pieces of an order",
		PK: "ORDER#{orderId}", SK: "RETURN#{returnId}", IndexPK: "RETURNS#{status}", IndexSK: "RETURN#{returnId}", Sharded: true, codec: codecFor[commerce.Return](returnAttributes)}
	EntityProduct = Entity{Name: "product", Description: "product",
		PK: "PRODUCT#{sku}", SK: "#METADATA", IndexPK: "CATEGORY#{category}", IndexSK: "PRODUCT#{sku}", codec: codecFor[commerce.Product](productAttributes)}
	// The sort keys of a product's edges come after its inventory levels. So one Query reads the
	// product and its levels without the edges.
	EntityProductName = Entity{Name: "productName", Description: "product's name (edge)",
		PK: "PRODUCT#{sku}", SK: "WITH_NAME", IndexPK: "PRODUCT_NAMES", IndexSK: "{foldedName}#{sku}", Sharded: true, Kind: Copy, Of: &EntityProduct, Omitted: stockAttributes}
	EntityProductCategoryName = Entity{Name: "productCategoryName", Description: "product's name in its category (edge)",
		PK: "PRODUCT#{sku}", SK: "WITH_CATEGORY", IndexPK: "CATEGORY_NAMES#{category}", IndexSK: "{foldedName}#{sku}", Kind: Copy, Of: &EntityProduct, Omitted: stockAttributes}
	EntityStockBucket = Entity{Name: "stockBucket", Description: "one of the records over which a product's stock is spread",
		PK: "STOCK#{sku}#{bucket}", SK: "#METADATA", Kind: Share, Of: &EntityProduct, AddedNumbers: []string{AttrAvailable}, codec: codecFor[commerce.StockBucket](stockBucketAttributes)}
	EntityCategory = Entity{Name: "category", Description: "category with its product count",
		PK: "CATEGORIES", SK: "CATEGORY#{category}", Kind: Sum, codec: codecFor[commerce.Category](categoryAttributes)}
	EntityInventoryLevel = Entity{Name: "inventoryLevel", Description: "inventory level",
		PK: "PRODUCT#{sku}", SK: "WAREHOUSE#{warehouseId}", IndexPK: "WAREHOUSE#{warehouseId}", IndexSK: "PRODUCT#{sku}", codec: codecFor[commerce.InventoryLevel](inventoryLevelAttributes)}
	// A level has this edge only while its stock is low. The index sorts the edges by quantity.
	EntityLowStock = Entity{Name: "inventoryLevelLowStock", Description: "inventory level below its reorder point (edge)",
		PK: "PRODUCT#{sku}", SK: "WITH_LOW_STOCK#{warehouseId}", IndexPK: "LOW_STOCK#{warehouseId}", IndexSK: "{lowQuantity}#{sku}", Kind: Copy, Added: true, OnRequest: true, Of: &EntityInventoryLevel}
	EntityWarehouse = Entity{Name: "warehouse", Description: "warehouse",
		PK: "WAREHOUSE#{warehouseId}", SK: "#METADATA", IndexPK: "WAREHOUSES", IndexSK: "WAREHOUSE#{warehouseId}", AddedNumbers: []string{AttrProductCount}, codec: codecFor[commerce.Warehouse](warehouseAttributes)}
	EntityEmployee = Entity{Name: "employee", Description: "employee",
		PK: "EMPLOYEE#{employeeId}", SK: "#METADATA", IndexPK: "EMPLOYEE", IndexSK: "{hireDate}#{employeeId}", Sharded: true, codec: codecFor[commerce.Employee](employeeAttributes)}
	EntityEmployeeName = Entity{Name: "employeeName", Description: "employee's name (edge)",
		PK: "EMPLOYEE#{employeeId}", SK: "NAME", IndexPK: "EMPLOYEE_NAME#{name}", IndexSK: "EMPLOYEE#{employeeId}", Kind: Copy, Of: &EntityEmployee}
	EntityEmployeeTitle = Entity{Name: "employeeTitle", Description: "employee's job title (edge)",
		PK: "EMPLOYEE#{employeeId}", SK: "TITLE", IndexPK: "JOB_TITLE#{jobTitle}", IndexSK: "EMPLOYEE#{employeeId}", Kind: Copy, Of: &EntityEmployee}
	EntityEmployeeWarehouse = Entity{Name: "employeeWarehouse", Description: "employee's warehouse (edge)",
		PK: "EMPLOYEE#{employeeId}", SK: "WAREHOUSE", IndexPK: "WAREHOUSE#{warehouseId}", IndexSK: "EMPLOYEE#{employeeId}", Kind: Copy, Of: &EntityEmployee}
	EntityOrderCounts = Entity{Name: "orderCounts", Description: "one of the records that count orders by status",
		PK: "ORDER_COUNTS", SK: "PART#{part}", Sharded: true, Kind: Sum, codec: codecFor[commerce.OrderCounts](orderCountsAttributes)}
	EntityRepOrders = Entity{Name: "repOrders", Description: "one of the records that count an account rep's orders",
		PK: "EMPLOYEE#{employeeId}", SK: "ORDERS#{part}", Kind: Sum, codec: codecFor[commerce.RepOrderCount](repOrderCountAttributes)}
	EntitySpending = Entity{Name: "spending", Description: "a customer's spending in one month and currency",
		PK: "CUSTOMER#{customerId}", SK: "SPENDING#{month}#{currency}", Owner: access.PermissionReadOrder, Kind: Sum, codec: codecFor[commerce.Spending](spendingAttributes)}
	EntityDailySales = Entity{Name: "dailySales", Description: "one of the records that add up the sales of a day in one currency",
		PK: "SALES", SK: "DAY#{currency}#{day}#{part}", Sharded: true, Kind: Sum, Added: true, OnRequest: true, codec: codecFor[commerce.DailySales](dailySalesAttributes)}
	EntityWebhook = Entity{Name: "webhook", Description: "webhook",
		PK: "WEBHOOK#{webhookId}", SK: "#METADATA", IndexPK: "WEBHOOKS", IndexSK: "{createdAt}#{webhookId}", codec: codecFor[commerce.Webhook](webhookAttributes)}
	EntityWebhookState = Entity{Name: "webhookState", Description: "how far events have been delivered to a webhook",
		PK: "WEBHOOK#{webhookId}", SK: "STATE", codec: codecFor[commerce.WebhookState](webhookStateAttributes)}
	EntityWebhookFailure = Entity{Name: "webhookFailure", Description: "order whose events could not be delivered to a webhook",
		PK: "WEBHOOK#{webhookId}", SK: "ORDER#{orderId}", codec: codecFor[commerce.WebhookFailure](webhookFailureAttributes)}
	EntityIdempotency = Entity{Name: "idempotency", Description: "idempotency key with the result of the mutation",
		PK: "IDEMPOTENCY#{principal}#{idempotencyKey}", SK: "#METADATA"}
	EntityLayout = Entity{Name: "layout", Description: "number of shards over time, and states of derivations",
		PK: "LAYOUT", SK: "#METADATA", codec: codecFor[layoutRecord](layoutAttributes)}
)

// WritePattern declares the records that a mutation writes in one TransactWriteItems request.
type WritePattern struct {
	// ID identifies the write pattern in the code, the explain output and the docs. An example is WP1.
	ID string
	// Mutation is the name of the GraphQL mutation that uses the pattern.
	Mutation string
	// Writes are the entities whose records every transaction writes or checks. OptionalWrites are the
	// entities whose records only some transactions write or check. If a transaction can write two
	// records of an entity, the entity is listed twice.
	Writes, OptionalWrites []Entity
	// WritesPerLine are the entities of the records written for each line item of the order.
	WritesPerLine []Entity
	// MostLines is the maximum number of lines that a transaction writes, or 0 if it is
	// commerce.MaxLines. For tagOrder, the lines are tags.
	MostLines int
	// OptionalWritesPerLine are the entities of the records that some transactions write for each line
	// item of the order. These writes have no condition.
	OptionalWritesPerLine []Entity
	// Reads are the entities of the records that one request reads before the transaction. For each
	// line item of the order, the request also reads one record of each entity in ReadsPerLine.
	Reads, ReadsPerLine []Entity
	// ReadsItems reports whether the mutation reads the order's line items. If the order's record does
	// not embed its line items, the mutation sends a separate request for them.
	ReadsItems bool
	// Lists are the patterns of the lists that the mutation reads, each in a separate request.
	Lists []*AccessPattern
	// ReadsOnFailure are the entities that the mutation reads to find why a transaction failed.
	ReadsOnFailure []Entity
	// Buckets reports whether the mutation also reads and writes the stock buckets of products. The
	// bounds assume that one of the products has several buckets.
	Buckets bool
	// LowStock reports whether the mutation changes inventory levels. If the table has the list of
	// low stock, the mutation also reads these levels and writes their edges.
	LowStock bool
	// ErasesOrders reports whether the mutation also finds the next order of a customer with a
	// Query, and reads up to commerce.MaxLines records in its item collection.
	ErasesOrders bool
	// ClaimsOrders reports whether the mutation also finds the next order of a guest with a Query.
	ClaimsOrders bool
}

// The write patterns, one per mutation. If the mutation setOrderItem (write pattern WP9) makes an
// order too large to embed its line items, the transaction writes one record per line item.
var (
	WriteCreateCustomer = WritePattern{ID: "WP1", Mutation: "createCustomer",
		Writes: entities(EntityCustomer, EntityEmailClaim), OptionalWrites: entities(EntityIdempotency, EntityDeletedCustomer, EntityEmployee)}.withEdges(&EntityCustomer)
	WriteUpdateCustomer = WritePattern{ID: "WP2", Mutation: "updateCustomer",
		Writes: entities(EntityCustomer), OptionalWrites: entities(EntityEmailClaim, EntityEmailClaim), Reads: entities(EntityCustomer)}.withEdges(&EntityCustomer)
	WriteAssignAccountRep = WritePattern{ID: "WP3", Mutation: "assignAccountRep",
		Writes: entities(EntityCustomer), OptionalWrites: entities(EntityEmployee), Reads: entities(EntityCustomer, EntityEmployee)}.withEdges(&EntityCustomer)
	WritePlaceOrder = WritePattern{ID: "WP4", Mutation: "placeOrder", Buckets: true,
		Writes: entities(EntityOrder, EntityCustomerOrder, EntityOrderEvent, EntityLastEvent, EntityOrderCounts), WritesPerLine: entities(EntityOrderItem, EntityProduct), OptionalWrites: entities(EntityCustomer, EntitySpending, EntityIdempotency, EntityRepOrders, EntityDailySales, EntityOrderExpiry), Reads: entities(EntityCustomer), ReadsPerLine: entities(EntityProduct)}.withEdges(&EntityProduct, AttrAvailable, AttrOrderCount).withEdges(&EntityCustomer, AttrOrderCount)
	WriteConfirmOrder = WritePattern{ID: "WP5", Mutation: "confirmOrder",
		Writes: entities(EntityOrder, EntityCustomerOrder, EntityOrderEvent, EntityLastEvent, EntityOrderCounts), OptionalWrites: entities(EntityIdempotency, EntityOrderWaiting), Reads: entities(EntityOrder)}.withEdges(&EntityOrder)
	WriteShipOrder = WritePattern{ID: "WP6", Mutation: "shipOrder",
		Writes: entities(EntityOrder, EntityCustomerOrder, EntityOrderEvent, EntityLastEvent, EntityOrderCounts), WritesPerLine: entities(EntityInventoryLevel, EntityProduct), OptionalWrites: entities(EntityIdempotency, EntityOrderWaiting), Reads: entities(EntityOrder), ReadsItems: true, ReadsOnFailure: entities(EntityWarehouse)}.withEdges(&EntityInventoryLevel, AttrQuantity, AttrVersion).withEdges(&EntityProduct, AttrTotalInventory).withEdges(&EntityOrder).without(&EntityOrderExpiry)
	WriteDeliverOrder = WritePattern{ID: "WP7", Mutation: "deliverOrder",
		Writes: entities(EntityOrder, EntityCustomerOrder, EntityOrderEvent, EntityLastEvent, EntityOrderCounts), OptionalWrites: entities(EntityIdempotency), Reads: entities(EntityOrder)}.withEdges(&EntityOrder).without(&EntityOrderExpiry)
	WriteCancelOrder = WritePattern{ID: "WP8", Mutation: "cancelOrder",
		Writes: entities(EntityOrder, EntityCustomerOrder, EntityOrderEvent, EntityLastEvent, EntityOrderCounts, EntitySpending), WritesPerLine: entities(EntityProduct), OptionalWrites: entities(EntityIdempotency, EntityDailySales, EntityOrderWaiting), Reads: entities(EntityOrder), ReadsItems: true}.withEdges(&EntityProduct, AttrAvailable).withEdges(&EntityOrder)
	WriteSetOrderItem = WritePattern{ID: "WP9", Mutation: "setOrderItem", Buckets: true,
		Writes: entities(EntityOrder, EntityCustomerOrder, EntityOrderEvent, EntityLastEvent, EntityProduct, EntitySpending), OptionalWrites: entities(EntityDailySales), OptionalWritesPerLine: entities(EntityOrderItem), Reads: entities(EntityOrder, EntityProduct), ReadsItems: true}.withEdges(&EntityProduct, AttrAvailable, AttrOrderCount).withEdges(&EntityOrder)
	WriteRemoveOrderItem = WritePattern{ID: "WP10", Mutation: "removeOrderItem",
		Writes: entities(EntityOrder, EntityCustomerOrder, EntityOrderEvent, EntityLastEvent, EntityProduct, EntitySpending), OptionalWrites: entities(EntityDailySales), OptionalWritesPerLine: entities(EntityOrderItem), Reads: entities(EntityOrder, EntityProduct), ReadsItems: true}.withEdges(&EntityProduct, AttrAvailable, AttrOrderCount).withEdges(&EntityOrder)
	WriteUpdateShippingAddress = WritePattern{ID: "WP11", Mutation: "updateShippingAddress",
		Writes: entities(EntityOrder, EntityCustomerOrder, EntityOrderEvent, EntityLastEvent), Reads: entities(EntityOrder)}.withEdges(&EntityOrder)
	WriteCreateProduct = WritePattern{ID: "WP12", Mutation: "createProduct",
		Writes: entities(EntityProduct, EntityCategory), OptionalWrites: entities(EntityIdempotency)}.withEdges(&EntityProduct)
	WriteUpdateProduct = WritePattern{ID: "WP13", Mutation: "updateProduct", Buckets: true,
		Writes: entities(EntityProduct), OptionalWrites: entities(EntityCategory, EntityCategory), Reads: entities(EntityProduct)}.withEdges(&EntityProduct)
	WriteCreateWarehouse = WritePattern{ID: "WP14", Mutation: "createWarehouse",
		Writes: entities(EntityWarehouse), OptionalWrites: entities(EntityIdempotency)}.withEdges(&EntityWarehouse)
	WriteSetInventoryLevel = WritePattern{ID: "WP15", Mutation: "setInventoryLevel", Buckets: true,
		Writes: entities(EntityInventoryLevel), OptionalWrites: entities(EntityProduct, EntityWarehouse), Reads: entities(EntityInventoryLevel, EntityProduct, EntityWarehouse)}.withEdges(&EntityInventoryLevel).withEdges(&EntityProduct, AttrTotalInventory, AttrAvailable)
	WriteAdjustInventory = WritePattern{ID: "WP16", Mutation: "adjustInventory", Buckets: true,
		Writes: entities(EntityInventoryLevel, EntityProduct), OptionalWrites: entities(EntityWarehouse, EntityIdempotency), Reads: entities(EntityInventoryLevel, EntityProduct, EntityWarehouse)}.withEdges(&EntityInventoryLevel).withEdges(&EntityProduct, AttrTotalInventory, AttrAvailable)
	WriteHireEmployee = WritePattern{ID: "WP17", Mutation: "hireEmployee",
		Writes: entities(EntityEmployee, EntityRepOrders), OptionalWrites: entities(EntityWarehouse, EntityIdempotency)}.withEdges(&EntityEmployee)
	WriteUpdateEmployee = WritePattern{ID: "WP18", Mutation: "updateEmployee",
		Writes: entities(EntityEmployee), OptionalWrites: entities(EntityWarehouse), Reads: entities(EntityEmployee)}.withEdges(&EntityEmployee)
	WriteUpdateWarehouse = WritePattern{ID: "WP19", Mutation: "updateWarehouse",
		Writes: entities(EntityWarehouse), Reads: entities(EntityWarehouse)}.withEdges(&EntityWarehouse)
	WriteSetCustomFields = WritePattern{ID: "WP20", Mutation: "setCustomFields",
		Writes: entities(EntityOrder, EntityCustomerOrder, EntityOrderEvent, EntityLastEvent), OptionalWritesPerLine: entities(EntityOrderItem), Reads: entities(EntityOrder), ReadsItems: true}.withEdges(&EntityOrder)
	WriteAddOrderNote = WritePattern{ID: "WP21", Mutation: "addOrderNote",
		Writes: entities(EntityOrder, EntityCustomerOrder, EntityOrderEvent, EntityLastEvent), OptionalWrites: entities(EntityIdempotency), Reads: entities(EntityOrder)}.withEdges(&EntityOrder)
	WriteHoldOrder = WritePattern{ID: "WP22", Mutation: "holdOrder",
		Writes: entities(EntityOrder, EntityCustomerOrder, EntityOrderEvent, EntityLastEvent), Reads: entities(EntityOrder)}.withEdges(&EntityOrder)
	WriteReleaseOrder = WritePattern{ID: "WP23", Mutation: "releaseOrder",
		Writes: entities(EntityOrder, EntityCustomerOrder, EntityOrderEvent, EntityLastEvent), Reads: entities(EntityOrder)}.withEdges(&EntityOrder)
	WriteSetAdjustments = WritePattern{ID: "WP24", Mutation: "setAdjustments",
		Writes: entities(EntityOrder, EntityCustomerOrder, EntityOrderEvent, EntityLastEvent), OptionalWrites: entities(EntitySpending, EntityDailySales), Reads: entities(EntityOrder), ReadsItems: true}.withEdges(&EntityOrder)
	WriteUpdateOrder = WritePattern{ID: "WP25", Mutation: "updateOrder",
		Writes: entities(EntityOrder, EntityCustomerOrder, EntityOrderEvent, EntityLastEvent), Reads: entities(EntityOrder)}.withEdges(&EntityOrder)
	WriteRecordPayment = WritePattern{ID: "WP26", Mutation: "recordPayment",
		Writes: entities(EntityOrder, EntityCustomerOrder, EntityOrderEvent, EntityLastEvent, EntityPayment, EntityPaymentClaim), OptionalWrites: entities(EntityOrderExpiry, EntityReturn, EntityUnmatchedPayment), Reads: entities(EntityOrder, EntityPaymentClaim, EntityUnmatchedPayment, EntityReturn), ReadsOnFailure: entities(EntityPayment)}.withEdges(&EntityOrder)
	WriteTransferInventory = WritePattern{ID: "WP30", Mutation: "transferInventory",
		Writes: entities(EntityInventoryLevel, EntityInventoryLevel, EntityProduct), OptionalWrites: entities(EntityWarehouse, EntityIdempotency), Reads: entities(EntityInventoryLevel, EntityInventoryLevel, EntityProduct, EntityWarehouse, EntityWarehouse)}.withEdges(&EntityInventoryLevel)
	WriteCreateFulfillment = WritePattern{ID: "WP31", Mutation: "createFulfillment",
		Writes: entities(EntityOrder, EntityCustomerOrder, EntityOrderEvent, EntityLastEvent, EntityFulfillment), WritesPerLine: entities(EntityInventoryLevel, EntityProduct), OptionalWrites: entities(EntityOrderCounts, EntityIdempotency, EntityOrderWaiting), Reads: entities(EntityOrder), ReadsItems: true, ReadsOnFailure: entities(EntityWarehouse)}.withEdges(&EntityInventoryLevel, AttrQuantity, AttrVersion).withEdges(&EntityProduct, AttrTotalInventory).withEdges(&EntityOrder).without(&EntityOrderExpiry)
	WriteUpdateTracking = WritePattern{ID: "WP32", Mutation: "updateTracking",
		Writes: entities(EntityOrder, EntityCustomerOrder, EntityOrderEvent, EntityLastEvent, EntityFulfillment), Reads: entities(EntityOrder, EntityFulfillment)}.withEdges(&EntityOrder).without(&EntityOrderExpiry)
	WriteDeliverFulfillment = WritePattern{ID: "WP33", Mutation: "deliverFulfillment",
		Writes: entities(EntityOrder, EntityCustomerOrder, EntityOrderEvent, EntityLastEvent, EntityFulfillment), OptionalWrites: entities(EntityOrderCounts, EntityIdempotency), Reads: entities(EntityOrder, EntityFulfillment)}.withEdges(&EntityOrder).without(&EntityOrderExpiry)
	WriteCancelFulfillment = WritePattern{ID: "WP34", Mutation: "cancelFulfillment",
		Writes: entities(EntityOrder, EntityCustomerOrder, EntityOrderEvent, EntityLastEvent, EntityFulfillment), WritesPerLine: entities(EntityInventoryLevel, EntityProduct), OptionalWrites: entities(EntityIdempotency), Reads: entities(EntityOrder, EntityFulfillment)}.withEdges(&EntityInventoryLevel, AttrQuantity, AttrVersion).withEdges(&EntityProduct, AttrTotalInventory).withEdges(&EntityOrder).without(&EntityOrderExpiry)
	WriteCancelOrderItems = WritePattern{ID: "WP35", Mutation: "cancelOrderItems",
		Writes: entities(EntityOrder, EntityCustomerOrder, EntityOrderEvent, EntityLastEvent, EntitySpending), WritesPerLine: entities(EntityOrderItem, EntityProduct), OptionalWrites: entities(EntityOrderCounts, EntityDailySales, EntityIdempotency, EntityOrderWaiting), Reads: entities(EntityOrder), ReadsItems: true}.withEdges(&EntityProduct, AttrAvailable, AttrOrderCount).withEdges(&EntityOrder).without(&EntityOrderExpiry)
	WriteRequestReturn = WritePattern{ID: "WP36", Mutation: "requestReturn",
		Writes: entities(EntityOrder, EntityCustomerOrder, EntityOrderEvent, EntityLastEvent, EntityReturn), OptionalWrites: entities(EntityIdempotency), Reads: entities(EntityOrder), ReadsItems: true, Lists: []*AccessPattern{&OrderReturns.AccessPattern}}.withEdges(&EntityOrder)
	WriteApproveReturn = WritePattern{ID: "WP37", Mutation: "approveReturn",
		Writes: entities(EntityOrder, EntityCustomerOrder, EntityOrderEvent, EntityLastEvent, EntityReturn), OptionalWrites: entities(EntityIdempotency), Reads: entities(EntityOrder, EntityReturn)}.withEdges(&EntityOrder)
	WriteRejectReturn = WritePattern{ID: "WP38", Mutation: "rejectReturn",
		Writes: entities(EntityOrder, EntityCustomerOrder, EntityOrderEvent, EntityLastEvent, EntityReturn), OptionalWrites: entities(EntityIdempotency), Reads: entities(EntityOrder, EntityReturn)}.withEdges(&EntityOrder)
	WriteReceiveReturn = WritePattern{ID: "WP39", Mutation: "receiveReturn", MostLines: commerce.MaxReturnLines,
		Writes: entities(EntityOrder, EntityCustomerOrder, EntityOrderEvent, EntityLastEvent, EntityReturn), WritesPerLine: entities(EntityInventoryLevel, EntityProduct), OptionalWrites: entities(EntityIdempotency, EntityWarehouse), Reads: entities(EntityOrder, EntityReturn, EntityWarehouse), ReadsPerLine: entities(EntityInventoryLevel, EntityProduct)}.withEdges(&EntityInventoryLevel).withEdges(&EntityProduct, AttrTotalInventory, AttrAvailable).withEdges(&EntityOrder)
	// The first transaction of eraseCustomer deletes the customer. Each further one erases an order
	// with up to 40 of its events and other records.
	WriteEraseCustomer = WritePattern{ID: "WP40", Mutation: "eraseCustomer",
		Writes: entities(EntityDeletedCustomer), OptionalWrites: entities(EntityCustomer, EntityCustomerRep, EntityCustomerName, EntityCustomerEmail, EntityEmailClaim, EntityOrder, EntityCustomerOrder, EntityPaymentDue, EntityOrderExpiry, EntityOrderEvent, EntityLastEvent),
		OptionalWritesPerLine: entities(EntityOrderEvent), Reads: entities(EntityCustomer, EntityDeletedCustomer, EntityOrder), ReadsItems: true, ErasesOrders: true}
	// A transaction of claimOrders moves an order from the guest's partition to the customer's. The
	// last one also deletes the guest's last event.
	WriteClaimOrders = WritePattern{ID: "WP41", Mutation: "claimOrders",
		Writes: entities(EntityOrder, EntityCustomerOrder, EntityCustomerOrder, EntityOrderEvent, EntityLastEvent, EntityCustomer), WritesPerLine: entities(EntityOrderItem), OptionalWrites: entities(EntityLastEvent, EntitySpending, EntityRepOrders), Reads: entities(EntityCustomer, EntityLastEvent, EntityLastEvent, EntityOrder), ReadsItems: true, ClaimsOrders: true}.withEdges(&EntityOrder)
	WriteTagOrder = WritePattern{ID: "WP42", Mutation: "tagOrder", MostLines: 2 * commerce.MaxTags,
		Writes: entities(EntityOrder, EntityCustomerOrder, EntityOrderEvent, EntityLastEvent), OptionalWritesPerLine: entities(EntityOrderTag), Reads: entities(EntityOrder)}.withEdges(&EntityOrder)
	WriteDismissUnmatchedPayment = WritePattern{ID: "WP43", Mutation: "dismissUnmatchedPayment",
		Writes: entities(EntityUnmatchedPayment), Reads: entities(EntityUnmatchedPayment)}
	WriteCreateWebhook = WritePattern{ID: "WP44", Mutation: "createWebhook",
		Writes: entities(EntityWebhook), OptionalWrites: entities(EntityIdempotency), Lists: []*AccessPattern{&Webhooks.AccessPattern}}
	WritePauseWebhook = WritePattern{ID: "WP45", Mutation: "pauseWebhook",
		Writes: entities(EntityWebhook), Reads: entities(EntityWebhook)}
	WriteResumeWebhook = WritePattern{ID: "WP46", Mutation: "resumeWebhook",
		Writes: entities(EntityWebhook), Reads: entities(EntityWebhook)}
	WriteRotateWebhookSecret = WritePattern{ID: "WP47", Mutation: "rotateWebhookSecret",
		Writes: entities(EntityWebhook), OptionalWrites: entities(EntityIdempotency), Reads: entities(EntityWebhook)}
	WriteReplayWebhook = WritePattern{ID: "WP48", Mutation: "replayWebhook",
		Writes: entities(EntityWebhook), OptionalWrites: entities(EntityIdempotency), Reads: entities(EntityWebhook)}
	// If more orders are set aside than one transaction deletes, deleteWebhook first deletes the others
	// in further transactions.
	WriteDeleteWebhook = WritePattern{ID: "WP49", Mutation: "deleteWebhook",
		Writes: entities(EntityWebhook, EntityWebhookState), OptionalWritesPerLine: entities(EntityWebhookFailure), Reads: entities(EntityWebhook), Lists: []*AccessPattern{&WebhookFailures.AccessPattern}}
)

func entities(entities ...Entity) []Entity { return entities }

// Lines returns the number of lines that a transaction for an order of n line items writes at most.
func (p WritePattern) Lines(n int) int { return min(n, cmp.Or(p.MostLines, n)) }

// MaxActions returns the maximum number of actions in a transaction. lines counts the line items.
//
// The edge of an order that expires does not count in placeOrder, and edges of low stock never count.
// Mutations reject a request if the transaction has no room for them.
func (p WritePattern) MaxActions(lines int) int {
	lines = p.Lines(lines)
	n := len(p.Writes) + len(p.MaxOptionalWrites()) + lines*(len(p.WritesPerLine)+len(p.OptionalWritesPerLine))
	if p.ID == WritePlaceOrder.ID {
		n--
	}
	return n
}

// MaxLevels returns the maximum number of inventory levels that a transaction writes. lines counts
// the line items.
func (p WritePattern) MaxLevels(lines int) (n int) {
	for _, e := range p.Writes {
		if e.Name == EntityInventoryLevel.Name {
			n++
		}
	}
	for _, e := range p.WritesPerLine {
		if e.Name == EntityInventoryLevel.Name {
			n += p.Lines(lines)
		}
	}
	return n
}

// MaxOptionalWrites returns the most OptionalWrites that one transaction can have. An order that
// expires has no outstanding payment, so it has only one of the two edges. It has no return either.
func (p WritePattern) MaxOptionalWrites() []Entity {
	most := slices.Clone(p.OptionalWrites)
	at := func(e *Entity) int {
		return slices.IndexFunc(most, func(o Entity) bool { return o.Name == e.Name })
	}
	for _, e := range [][2]*Entity{{&EntityOrderExpiry, &EntityPaymentDue}, {&EntityReturn, &EntityOrderExpiry}} {
		if i := at(e[0]); i >= 0 && at(e[1]) >= 0 {
			most = slices.Delete(most, i, i+1)
		}
	}
	return most
}

// DeletedCustomerKey returns the key of the record which states that a customer was deleted.
func DeletedCustomerKey(id commerce.CustomerID) Keys {
	return EntityDeletedCustomer.KeyFromValues(map[string]string{"customerId": string(id)})
}

// Keys contains the values of a record's key attributes. If the record is not in the index, IndexPK
// and IndexSK are empty.
type Keys struct{ PK, SK, IndexPK, IndexSK string }

// KeyBuilder builds the keys of records. Err is the first error that occurred, so callers can build
// several keys before they check Err.
type KeyBuilder struct {
	Layout Layout
	// Derivations are the states of the copies and numbers that records can lack.
	Derivations DerivationStatuses
	ElectroDB   ElectroDB
	Err         error
}

// Build builds one key. If this fails and b.Err is nil, it stores the error in b.Err.
func (b *KeyBuilder) Build(t KeyTemplate, values ...string) string {
	key, err := t.Build(values...)
	if b.Err == nil {
		b.Err = err
	}
	return key
}

// record returns a record with the given attributes and the keys built from them. If e.Optional is
// true and the attribute in e.IndexPK is absent, the record has no index keys.
func (b *KeyBuilder) record(e *Entity, attributes Record) Record {
	return b.Identify(e, b.keysOf(e, attributes).Attributes().Merge(attributes))
}

// keysOf returns the keys of a record with the given attributes.
func (b *KeyBuilder) keysOf(e *Entity, attributes Record) Keys {
	key := func(t KeyTemplate) string {
		values := t.appendPlaceholders(make([]string, 0, 2)) // the capacity is enough for every template, so values stays on the stack
		for i, name := range values {
			values[i] = e.placeholderValue(name, attributes)
		}
		return b.Build(t, values...)
	}
	k := Keys{PK: key(e.PK), SK: key(e.SK)}
	if e.isShardedInTable() {
		k.PK += shardSuffixOf(e.placeholderValue(AttrShard, attributes))
	}
	if e.IndexPK != "" && b.Derivations.hasIndexKeys(e, attributes) {
		k.IndexPK, k.IndexSK = key(e.IndexPK), key(e.IndexSK)
		if e.Sharded {
			shards := b.Layout.shardsAt(e, k.IndexSK)
			k.IndexPK += ShardSuffix(ShardOf(strings.TrimPrefix(k.PK, e.PK.Prefix()), shards), shards)
		}
	}
	return k
}

// isShardedInTable reports whether the primary keys contain shards, instead of the index keys.
func (e *Entity) isShardedInTable() bool { return e.Sharded && e.IndexPK == "" }

// Identify sets the attributes of a record that name its entity, and returns the record.
func (b *KeyBuilder) Identify(e *Entity, r Record) Record {
	r["entity"] = Str(e.Name)
	return b.ElectroDB.identify(e, r)
}

// IdentifyingRecord returns a record with only a primary key, the attributes in this key and the
// name of the entity. values are the values of the key's placeholders, and then the shard of a record
// whose primary key contains one. More values are ignored.
func (b *KeyBuilder) IdentifyingRecord(e *Entity, values ...string) Record {
	r := b.IdentifyingKey(e, values...).Attributes()
	for i, name := range e.SK.appendPlaceholders(e.PK.appendPlaceholders(make([]string, 0, 4))) {
		r[e.AttributeForPlaceholder(name)] = Str(values[i])
	}
	if shard := e.Shard(TextOf(r, AttrPK)); shard != "" {
		r[AttrShard] = Str(shard)
	}
	return b.Identify(e, r)
}

// IdentifyingKey returns the primary key of the record that IdentifyingRecord returns.
func (b *KeyBuilder) IdentifyingKey(e *Entity, values ...string) Keys {
	ofPK := strings.Count(string(e.PK), "{")
	all := ofPK + strings.Count(string(e.SK), "{")
	k := Keys{PK: b.Build(e.PK, values[:ofPK]...), SK: b.Build(e.SK, values[ofPK:all]...)}
	if e.isShardedInTable() {
		k.PK += shardSuffixOf(values[all])
	}
	return k
}

// AttributeForPlaceholder returns the name of the attribute whose value replaces a placeholder.
func (e *Entity) AttributeForPlaceholder(name string) string {
	switch name {
	case foldedNamePlaceholder:
		return "name"
	case emailKeyPlaceholder:
		return "email"
	case lowQuantityPlaceholder:
		return attrReorderPoint
	}
	return cmp.Or(e.Renamed[name], name)
}

// These placeholders stand for the attributes "name", as normalized by commerce.FoldName, and
// "email", as normalized by commerce.EmailKey, and for the quantity of an inventory level below its
// reorder point.
const (
	foldedNamePlaceholder  = "foldedName"
	emailKeyPlaceholder    = "emailKey"
	lowQuantityPlaceholder = "lowQuantity"
)

// placeholderValue returns the value that replaces a placeholder in the keys of a record with the
// given attributes. If the attribute for this placeholder is absent or cannot be normalized, it
// returns an empty string.
func (e *Entity) placeholderValue(name string, attributes Record) string {
	if e.keyField != nil && e.keyField.Name == name {
		return customKeyValue(e.keyField, attributes)
	}
	if name == AttrWaitingSince {
		return waitingSince(attributes)
	}
	switch v := attributes[e.AttributeForPlaceholder(name)].(type) {
	case *types.AttributeValueMemberS:
		switch name {
		case foldedNamePlaceholder:
			return commerce.FoldName(v.Value)
		case emailKeyPlaceholder:
			key, _ := commerce.EmailKey(v.Value)
			return key
		}
		return v.Value
	case *types.AttributeValueMemberN:
		if name == lowQuantityPlaceholder {
			return lowQuantity(Reader{Record: attributes})
		}
		return SortableNumber(v.Value)
	default:
		if e.FullIndexFeature != "" && name == "to" {
			return NoStatus
		}
		return ""
	}
}

// Attributes returns the keys as attributes of a record, and omits empty index keys.
func (k Keys) Attributes() Record {
	r := Record{AttrPK: Str(k.PK), AttrSK: Str(k.SK)}
	if k.IndexPK != "" {
		r[AttrIndexPK], r[AttrIndexSK] = Str(k.IndexPK), Str(k.IndexSK)
	}
	return r
}

// KeyAttributes returns the names of the key attributes that a Query of the access pattern uses.
func (p *AccessPattern) KeyAttributes() (pk, sk string) {
	if p.Index == IndexName {
		return AttrIndexPK, AttrIndexSK
	}
	return AttrPK, AttrSK
}

// FirstPlaceholderValue returns the value of key's first placeholder, or "" if t does not match.
func FirstPlaceholderValue(t KeyTemplate, key string) string {
	values, _ := t.Values(key)
	if len(values) == 0 {
		return ""
	}
	return values[0]
}

// ConsistencyFactor returns the cost of a read relative to an eventually consistent one: 2 for a
// strongly consistent read. The index does not support such reads, so its factor is always 1.
func (p AccessPattern) ConsistencyFactor(consistent bool) float64 {
	if consistent && p.Index == "" {
		return 2
	}
	return 1
}

// Entities returns the entities whose records the access pattern reads.
func (p AccessPattern) Entities() []*Entity { return p.entitiesIn(allEntities) }

func (p AccessPattern) entitiesIn(all []*Entity) []*Entity {
	var entities []*Entity
	for _, e := range all {
		pk, sk := e.PK, e.SK
		if p.Index != "" {
			pk, sk = e.IndexPK, e.IndexSK
		}
		if p.PK == pk && (p.SK == sk || p.Direction != "" && string(p.SK) == sk.Prefix()) {
			entities = append(entities, e)
		}
	}
	return entities
}
