package dynamo

import (
	"strings"

	"github.com/ordergraph/ordergraph/dynamo/model"
)

// The classes of drift.
const (
	driftOrderMissing     = "order-missing"
	driftCopyMissing      = "copy-missing"
	driftOrphanCopy       = "orphan-copy"
	driftOrderDiffers     = "order-records-differ"
	driftOrderTotal       = "order-total"
	driftItemCount        = "item-count"
	driftEmbeddedItems    = "embedded-items"
	driftItemMissing      = "item-missing"
	driftItemDiffers      = "item-differs"
	driftOrphanItem       = "orphan-item"
	driftOrphanEvent      = "orphan-event"
	driftTimeline         = "timeline"
	driftUpdatedAt        = "updated-at"
	driftLastEvent        = "last-event"
	driftCustomerMissing  = "customer-missing"
	driftOrderCount       = "order-count"
	driftEmailClaim       = "email-claim"
	driftEmailShared      = "email-shared"
	driftOrphanClaim      = "orphan-claim"
	driftEmployeeMissing  = "employee-missing"
	driftEdgeMissing      = "edge-missing"
	driftEdgeDiffers      = "edge-differs"
	driftOrphanEdge       = "orphan-edge"
	driftStockTotal       = "stock-total"
	driftStockAvailable   = "stock-available"
	driftOrphanLevel      = "orphan-level"
	driftWarehouseMissing = "warehouse-missing"
	driftIndexKeys        = "index-keys"
	driftKeyAttribute     = "key-attribute"
	driftEntity           = "entity"
	driftUnreadable       = "unreadable"
)

const (
	// standInEmailDomain is what follows a customer's id in the e-mail address of a stand-in; RFC
	// 2606 keeps it from being anybody's.
	standInEmailDomain = "@unknown.invalid"
	// checkActor is who did what a repair did, in the timeline.
	checkActor = "ordergraph check"
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
	// ByHand tells that no repair is made.
	ByHand bool
}

// DriftClasses returns every class of drift.
func DriftClasses() []DriftClass {
	return []DriftClass{
		{Name: driftOrderMissing, What: "a customer's copy of an order, but not the order's own record",
			Example: "the order opens from its customer's list, and by its id it does not exist", Repair: "writes the record, made of the copy"},
		{Name: driftCopyMissing, What: "an order that its customer's partition lacks",
			Example: "the order exists, and its customer's list does not show it", Repair: "writes the copy, made of the order"},
		{Name: driftOrphanCopy, What: "a copy of an order in the partition of a customer whose order it is not",
			Example: "two customers see one order", Repair: "deletes the copy"},
		{Name: driftOrderDiffers, What: "the two records of an order say different things",
			Example: "shipped by its id, confirmed in its customer's list", Repair: "sets the attributes to those of the record with the higher version, of the order's own where they have the same"},
		{Name: driftOrderTotal, What: "a total that is not the sum of the order's items",
			Example: "two items of 5.00, a total of 12.00", Repair: "sets the total"},
		{Name: driftItemCount, What: "a number of items that is not how many there are",
			Example: "itemCount 3, two items", Repair: "sets the number"},
		{Name: driftEmbeddedItems, What: "a list of items on an order that is not what the items' records say",
			Example: "two pieces in the list, three in the item's record", Repair: "sets the list; removes it from orders of more than 25 items"},
		{Name: driftItemMissing, What: "an item that only the list on the order has, and the total counts",
			Example: "the list has a mouse, and there is no record of it", Repair: "writes the item's record, made of the list"},
		{Name: driftItemDiffers, What: "an item's record that says something else than the order",
			Example: "five pieces, where the list and the total say two", Repair: "sets the attributes"},
		{Name: driftOrphanItem, What: "an item of no order, or one that neither the order's list nor its total knows",
			Example: "an item's record below an order id that nothing else has", Repair: "deletes the item's record"},
		{Name: driftOrphanEvent, What: "an event of no order",
			Example: "an event below an order id that nothing else has", Repair: "deletes the event"},
		{Name: driftTimeline, What: "a timeline that does not end in the order's status",
			Example: "the order is shipped, its last event says confirmed", Repair: "appends an event of type imported that leads to the status, by \"" + checkActor + "\"; it raises the order's version, as every change does"},
		{Name: driftUpdatedAt, What: "an order that says it was updated before its last event happened, so that resumed subscriptions of the customer's orders lack the event",
			Example: "an import has put an older export of the order over it", Repair: "sets updatedAt to the time of the event"},
		{Name: driftLastEvent, What: "a customer's last order event that lacks a required attribute, is of a customer who does not exist, or is older than an event of one of the customer's orders",
			Example: "an import has put an older one there", Repair: "sets it to the event that is the last; deletes one that lacks such an attribute or is of nobody, and the next change of an order writes it anew"},
		{Name: driftCustomerMissing, What: "a customer who has orders or an edge, but no record",
			Example: "an order of customer c1, and no c1", Repair: "writes the record, made of the edge to the account rep; where there is none a stand-in: the id for a name, and the claimed address or <id>" + standInEmailDomain},
		{Name: driftOrderCount, What: "a number of orders on a customer that is not how many there are, or none for a customer with too many orders to count on demand",
			Example: "orderCount 7, six orders", Repair: "sets the number"},
		{Name: driftEmailClaim, What: "an e-mail address that is not claimed for its customer",
			Example: "the customer is not found by e-mail", Repair: "writes the claim"},
		{Name: driftEmailShared, What: "an e-mail address of two customers",
			Example: "both have ann@example.com; only one can be found by it", Repair: "give one of them another address (updateCustomer)", ByHand: true},
		{Name: driftOrphanClaim, What: "a claim of an e-mail address that its customer does not have",
			Example: "an address that nobody can take, and nobody has", Repair: "deletes the claim"},
		{Name: driftEmployeeMissing, What: "an edge of an employee who has no record",
			Example: "an employee in the list by name who does not exist", Repair: "writes the record, made of the edge"},
		{Name: driftEdgeMissing, What: "a customer or an employee who lacks an edge, and so a list lacks them",
			Example: "an employee who is not in the list of the warehouse", Repair: "writes the edge"},
		{Name: driftEdgeDiffers, What: "an edge that says something else than the record",
			Example: "the old telephone number in the list of the warehouse", Repair: "sets the attributes"},
		{Name: driftOrphanEdge, What: "an edge to something that the record does not have, or of no record",
			Example: "a customer without an account rep in the list of one", Repair: "deletes the edge"},
		{Name: driftStockTotal, What: "a total inventory that is not the sum of the inventory levels",
			Example: "levels of 40 and 60, totalInventory 90", Repair: "sets the total"},
		{Name: driftStockAvailable, What: "available stock that is not the levels' sum less what pending and confirmed orders hold",
			Example: "100 in stock, 3 ordered, available 100", Repair: "sets the number"},
		{Name: driftOrphanLevel, What: "an inventory level of a product that does not exist",
			Example: "5 pieces of nothing in a warehouse", Repair: "deletes the level"},
		{Name: driftWarehouseMissing, What: "a warehouse with stock or employees, but no record",
			Example: "a level in warehouse w1, and no w1", Repair: "writes a stand-in, with the id for a name"},
		{Name: driftIndexKeys, What: "a record whose keys in the index are not the model's",
			Example: "a shipped order in the list of pending ones", Repair: "sets or removes the keys"},
		{Name: driftKeyAttribute, What: "an attribute that says another id than the record's key",
			Example: "orderId is not the order in the key", Repair: "sets the attribute to what the key says"},
		{Name: driftEntity, What: "a record that calls itself another kind than its key",
			Example: "entity \"order\" on an item", Repair: "sets entity"},
		{Name: driftUnreadable, What: "a required attribute that is missing and cannot be restored, or a value that cannot be read",
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
		rows = append(rows, []string{model.MarkdownCell(c.Name), c.What, c.Example, strings.ReplaceAll(repair, "<id>"+standInEmailDomain, "`<id>"+standInEmailDomain+"`")})
	}
	return model.MarkdownTable(rows)
}
