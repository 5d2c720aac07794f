package repair

import (
	"strings"

	"github.com/ordergraph/ordergraph/dynamo/markdown"
)

// The classes of drift.
const (
	DriftOrderMissing     = "order-missing"
	DriftCopyMissing      = "copy-missing"
	DriftOrphanCopy       = "orphan-copy"
	DriftOrderDiffers     = "order-records-differ"
	driftOrderTotal       = "order-total"
	driftItemCount        = "item-count"
	driftEmbeddedItems    = "embedded-items"
	DriftItemMissing      = "item-missing"
	DriftItemDiffers      = "item-differs"
	DriftOrphanItem       = "orphan-item"
	DriftOrphanEvent      = "orphan-event"
	DriftTimeline         = "timeline"
	DriftUpdatedAt        = "updated-at"
	DriftLastEvent        = "last-event"
	DriftCustomerMissing  = "customer-missing"
	DriftOrderCount       = "order-count"
	DriftOrderCounts      = "order-counts"
	DriftSpending         = "spending"
	DriftEmailClaim       = "email-claim"
	DriftEmailShared      = "email-shared"
	DriftOrphanClaim      = "orphan-claim"
	DriftEmployeeMissing  = "employee-missing"
	DriftEdgeMissing      = "edge-missing"
	DriftEdgeDiffers      = "edge-differs"
	DriftOrphanEdge       = "orphan-edge"
	DriftStockTotal       = "stock-total"
	DriftStockAvailable   = "stock-available"
	DriftOrphanLevel      = "orphan-level"
	DriftCategoryCount    = "category-count"
	DriftWarehouseMissing = "warehouse-missing"
	DriftIndexKeys        = "index-keys"
	DriftKeyAttribute     = "key-attribute"
	driftEntity           = "entity"
	DriftUnreadable       = "unreadable"
)

const (
	// StandInEmailDomain is what follows a customer's id in the e-mail address of a stand-in; RFC
	// 2606 keeps it from being anybody's.
	StandInEmailDomain = "@unknown.invalid"
	// CheckActor is who did what a repair did, in the timeline.
	CheckActor = "ordergraph check"
)

// DriftClass is one way in which records can disagree.
type DriftClass struct {
	// Name stands in Drift.Class.
	Name string
	// What tells what is wrong.
	What string
	// Example is how it may look.
	Example string
	// Repair tells what a repair does, or what a person has to.
	Repair string
	// ByHand reports whether no repair is made.
	ByHand bool
}

// DriftClasses returns every class of drift.
func DriftClasses() []DriftClass {
	return []DriftClass{
		{Name: DriftOrderMissing, What: "a customer's copy of an order, but not the order's own record",
			Example: "the order opens from its customer's list, and by its id it does not exist", Repair: "writes the record, made of the copy"},
		{Name: DriftCopyMissing, What: "an order that its customer's partition lacks",
			Example: "the order exists, and its customer's list does not show it", Repair: "writes the copy, made of the order"},
		{Name: DriftOrphanCopy, What: "a copy of an order in the partition of a customer whose order it is not",
			Example: "two customers see one order", Repair: "deletes the copy"},
		{Name: DriftOrderDiffers, What: "the two records of an order say different things",
			Example: "shipped by its id, confirmed in its customer's list", Repair: "sets the attributes to those of the record with the higher version, of the order's own where they have the same"},
		{Name: driftOrderTotal, What: "a total that is not the sum of the order's items",
			Example: "two items of 5.00, a total of 12.00", Repair: "sets the total"},
		{Name: driftItemCount, What: "a number of items that is not how many there are",
			Example: "itemCount 3, two items", Repair: "sets the number"},
		{Name: driftEmbeddedItems, What: "a list of items on an order that is not what the items' records say",
			Example: "two pieces in the list, three in the item's record", Repair: "sets the list; removes it from orders of more than 25 items"},
		{Name: DriftItemMissing, What: "an item that only the list on the order has, and the total counts",
			Example: "the list has a mouse, and there is no record of it", Repair: "writes the item's record, made of the list"},
		{Name: DriftItemDiffers, What: "an item's record that says something else than the order",
			Example: "five pieces, where the list and the total say two", Repair: "sets the attributes"},
		{Name: DriftOrphanItem, What: "an item of no order, or one that neither the order's list nor its total knows",
			Example: "an item's record below an order id that nothing else has", Repair: "deletes the item's record"},
		{Name: DriftOrphanEvent, What: "an event of no order",
			Example: "an event below an order id that nothing else has", Repair: "deletes the event"},
		{Name: DriftTimeline, What: "a timeline that does not end in the order's status",
			Example: "the order is shipped, its last event says confirmed", Repair: "appends an event of type imported that leads to the status, by \"" + CheckActor + "\"; it raises the order's version, as every change does"},
		{Name: DriftUpdatedAt, What: "an order that says it was updated before its last event happened, so that resumed subscriptions of the customer's orders lack the event",
			Example: "an import has put an older export of the order over it", Repair: "sets updatedAt to the time of the event"},
		{Name: DriftLastEvent, What: "a customer's last order event that lacks a required attribute, is of a customer who does not exist, or is older than an event of one of the customer's orders",
			Example: "an import has put an older one there", Repair: "sets it to the event that is the last; deletes one that lacks such an attribute or is of nobody, and the next change of an order writes it anew"},
		{Name: DriftCustomerMissing, What: "a customer who has orders or an edge, but no record",
			Example: "an order of customer c1, and no c1", Repair: "writes the record, made of an edge; where there is none a stand-in: the id for a name, and the claimed address or <id>" + StandInEmailDomain},
		{Name: DriftOrderCount, What: "a number of orders of a customer, a product or an account rep that is not how many there are; or no number, of a product, of an employee, or of a customer with too many orders to count on demand",
			Example: "orderCount 7, six orders", Repair: "counts the orders, and sets the number"},
		{Name: DriftOrderCounts, What: "a number of orders in a status that is not how many there are, or orders that nobody has counted",
			Example: "7 pending orders in `orderCounts`, six in the list", Repair: "counts the orders, and sets the numbers"},
		{Name: DriftSpending, What: "what a customer has spent in a month is not what the orders cost, or nobody has added the orders up",
			Example: "orders of 12.00 in April, `spent` 10.00", Repair: "adds the orders up, and sets the amounts"},
		{Name: DriftEmailClaim, What: "an e-mail address that is not claimed for its customer",
			Example: "the customer is not found by e-mail", Repair: "writes the claim"},
		{Name: DriftEmailShared, What: "an e-mail address of two customers",
			Example: "both have ann@example.com; only one can be found by it", Repair: "give one of them another address (updateCustomer)", ByHand: true},
		{Name: DriftOrphanClaim, What: "a claim of an e-mail address that its customer does not have",
			Example: "an address that nobody can take, and nobody has", Repair: "deletes the claim"},
		{Name: DriftEmployeeMissing, What: "an edge of an employee who has no record",
			Example: "an employee in the list by name who does not exist", Repair: "writes the record, made of the edge"},
		{Name: DriftEdgeMissing, What: "a record that lacks an edge, and so is not in a list",
			Example: "an employee who is not in the list of the warehouse", Repair: "writes the edge"},
		{Name: DriftEdgeDiffers, What: "an edge that says something else than the record",
			Example: "the old telephone number in the list of the warehouse", Repair: "sets the attributes"},
		{Name: DriftOrphanEdge, What: "an edge to something that the record does not have, or of no record",
			Example: "a customer without an account rep in the list of one", Repair: "deletes the edge"},
		{Name: DriftStockTotal, What: "a total inventory that is not the sum of the inventory levels",
			Example: "levels of 40 and 60, totalInventory 90", Repair: "sets the total"},
		{Name: DriftStockAvailable, What: "available stock that is not the levels' sum less what pending and confirmed orders hold",
			Example: "100 in stock, 3 ordered, available 100", Repair: "sets the number"},
		{Name: DriftOrphanLevel, What: "an inventory level of a product that does not exist",
			Example: "5 pieces of nothing in a warehouse", Repair: "deletes the level"},
		{Name: DriftCategoryCount, What: "a number of products of a category that is not how many there are, a category without products, or one of products that is not there",
			Example: "productCount 7, six products", Repair: "counts the products, and writes or deletes the category"},
		{Name: DriftWarehouseMissing, What: "a warehouse with stock or employees, but no record",
			Example: "a level in warehouse w1, and no w1", Repair: "writes a stand-in, with the id for a name"},
		{Name: DriftIndexKeys, What: "a record whose keys in the index are not the model's",
			Example: "a shipped order in the list of pending ones", Repair: "sets or removes the keys"},
		{Name: DriftKeyAttribute, What: "an attribute that says another id than the record's key",
			Example: "orderId is not the order in the key", Repair: "sets the attribute to what the key says"},
		{Name: driftEntity, What: "a record that calls itself another kind than its key",
			Example: "entity \"order\" on an item", Repair: "sets entity"},
		{Name: DriftUnreadable, What: "a required attribute that is missing and cannot be restored, or a value that cannot be read",
			Example: "a product without a price; a shippingAddress that is a string", Repair: "set the attribute that the detail names", ByHand: true},
	}
}

// DriftsMarkdown is the table of the classes of drift for the docs.
func DriftsMarkdown() string {
	rows := [][]string{{"class", "what is wrong", "example", "repair"}}
	for _, c := range DriftClasses() {
		repair := c.Repair
		if c.ByHand {
			repair = "by hand: " + repair
		}
		rows = append(rows, []string{markdown.Cell(c.Name), c.What, c.Example, strings.ReplaceAll(repair, "<id>"+StandInEmailDomain, "`<id>"+StandInEmailDomain+"`")})
	}
	return markdown.Table(rows)
}
