package check

import "github.com/ordergraph/ordergraph/dynamo/markdown"

// The kinds of inconsistencies between records.
const (
	kindOrderMissing         = "order-missing"
	kindOrderCopyMissing     = "copy-missing"
	kindOrphanOrderCopy      = "orphan-copy"
	kindOrderCopyDiffers     = "order-records-differ"
	kindOrderTotal           = "order-total"
	kindItemCount            = "item-count"
	kindEmbeddedItems        = "embedded-items"
	kindItemMissing          = "item-missing"
	kindItemDiffers          = "item-differs"
	kindOrphanItem           = "orphan-item"
	kindOrphanEvent          = "orphan-event"
	kindOrphanPayment        = "orphan-payment"
	kindOrphanReturn         = "orphan-return"
	kindReturnMissing        = "return-missing"
	kindPayments             = "payments"
	kindReturnAmount         = "return-amount"
	kindOrphanFulfillment    = "orphan-fulfillment"
	kindFulfillments         = "fulfillments"
	kindTimeline             = "timeline"
	kindUpdatedAt            = "updated-at"
	kindLastEvent            = "last-event"
	kindCustomerMissing      = "customer-missing"
	kindCustomerDeleted      = "customer-deleted"
	kindErasure              = "erasure"
	kindOrderCount           = "order-count"
	kindStatusCounts         = "order-counts"
	kindSpending             = "spending"
	kindDailySales           = "daily-sales"
	kindClaimMissing         = "claim-missing"
	kindOrphanClaim          = "orphan-claim"
	kindEmployeeMissing      = "employee-missing"
	kindEdgeMissing          = "edge-missing"
	kindEdgeDiffers          = "edge-differs"
	kindOrphanEdge           = "orphan-edge"
	kindStockTotal           = "stock-total"
	kindStockAvailable       = "stock-available"
	kindStockBucket          = "stock-bucket"
	kindOrphanInventoryLevel = "orphan-level"
	kindCategoryCount        = "category-count"
	kindProductCount         = "product-count"
	kindWarehouseMissing     = "warehouse-missing"
	kindIndexKeys            = "index-keys"
	kindKeyAttribute         = "key-attribute"
	kindEntityAttribute      = "entity"
	kindUnreadable           = "unreadable"
	kindInvalidValue         = "invalid-value"
	kindKeyCase              = "key-case"
)

// KindValueShared is the kind of inconsistency that prevents a claim: two records have the same value.
const KindValueShared = "value-shared"

const (
	// standInEmailDomain follows the customer's ID in an invented email address. A substitute for a
	// lost customer has such an address if the real one is unknown. RFC 2606 reserves the domain, so
	// the address never receives email.
	standInEmailDomain = "@unknown.invalid"
	// repairEventActor is the actor in the events that repairs append to the timelines of orders.
	repairEventActor = "ordergraph check"
)

// Kind describes one kind of inconsistency. An inconsistency is an inconsistency between records.
type Kind struct {
	// Name identifies the kind in findings and in the output of `ordergraph check`.
	Name string
	// Problem describes the inconsistency.
	Problem string
	// Repair describes how a repair removes the inconsistency. If ByHand is true, Repair describes
	// instead how an operator can remove it.
	Repair string
	// ByHand reports whether an operator must repair the inconsistency, because `ordergraph check`
	// cannot repair it.
	ByHand bool
}

// Kinds returns all kinds of inconsistencies.
func Kinds() []Kind {
	return []Kind{
		{Name: kindOrderMissing, Problem: "an order's own record is missing, but its copy exists", Repair: "writes the order's own record from the copy"},
		{Name: kindOrderCopyMissing, Problem: "an order has no copy in its customer's partition", Repair: "writes the copy"},
		{Name: kindOrphanOrderCopy, Problem: "a customer has a copy of another customer's order", Repair: "deletes the copy"},
		{Name: kindOrderCopyDiffers, Problem: "an order's own record and its copy differ", Repair: "overwrites the one with the lower version, or the copy if the versions are equal"},
		{Name: kindOrderTotal, Problem: "an order's total is not the sum of its items and adjustments", Repair: "sets the total"},
		{Name: kindItemCount, Problem: "an order's item count is wrong", Repair: "sets the count"},
		{Name: kindEmbeddedItems, Problem: "an order's item list differs from the item records", Repair: "sets the list, or removes it if the order has more than 25 items"},
		{Name: kindItemMissing, Problem: "an order includes an item that has no record", Repair: "writes the record"},
		{Name: kindItemDiffers, Problem: "an item's record differs from its order", Repair: "sets the attributes"},
		{Name: kindOrphanItem, Problem: "an item's order is missing or does not include the item", Repair: "deletes the item"},
		{Name: kindOrphanEvent, Problem: "an event has no order", Repair: "deletes the event"},
		{Name: kindOrphanPayment, Problem: "a payment has no order", Repair: "write the order again, or move the payment to another table", ByHand: true},
		{Name: kindOrphanReturn, Problem: "a return has no order", Repair: "write the order again, or move the return to another table", ByHand: true},
		{Name: kindReturnMissing, Problem: "a refund names a return that does not exist", Repair: "write the return again", ByHand: true},
		{Name: kindPayments, Problem: "the sums of payments in an order or return, or an order's state of an outstanding payment, do not follow from its payments", Repair: "sets the sums and the state"},
		{Name: kindReturnAmount, Problem: "the amount of a return does not follow from its lines and its order", Repair: "sets the amount"},
		{Name: kindOrphanFulfillment, Problem: "a fulfillment has no order", Repair: "write the order again, or move the fulfillment to another table", ByHand: true},
		{Name: kindFulfillments, Problem: "an order's number of fulfillments or its shipped pieces do not follow from its fulfillments", Repair: "sets the numbers"},
		{Name: kindTimeline, Problem: "an order's last event does not match its status", Repair: "appends an `imported` event"},
		{Name: kindUpdatedAt, Problem: "an order's update time is earlier than its last event", Repair: "sets the update time"},
		{Name: kindLastEvent, Problem: "the record of a customer's last event or its count of open orders or reserved units is wrong, or the customer is missing", Repair: "updates or deletes the record"},
		{Name: kindCustomerMissing, Problem: "a customer has orders or edges, but no record", Repair: "deletes the customer; with `-restore`, writes the record from an edge, or writes a stand-in"},
		{Name: kindCustomerDeleted, Problem: "a deleted customer has a record", Repair: "deletes the record"},
		{Name: kindErasure, Problem: "an erased customer's orders have personal data, or the erasure is incomplete", Repair: "erases the data"},
		{Name: kindOrderCount, Problem: "the order count of a customer, product or account rep is wrong or missing", Repair: "sets the count"},
		{Name: kindStatusCounts, Problem: "order counts by status are wrong or missing", Repair: "sets the counts"},
		{Name: kindSpending, Problem: "a customer's monthly spending is wrong or missing", Repair: "sets the amounts"},
		{Name: kindDailySales, Problem: "the sales of a day are wrong or missing, or the table should not have them", Repair: "sets the amounts, or deletes the record"},
		{Name: kindClaimMissing, Problem: "a record's claim is missing, so lookups by the claimed value fail, such as a customer's email address", Repair: "writes the claim"},
		{Name: KindValueShared, Problem: "two records have the same value, although each must have its own, such as an email address", Repair: "change one of the values, such as with `updateCustomer`", ByHand: true},
		{Name: kindOrphanClaim, Problem: "a claim names a missing record, or a record with another value", Repair: "deletes the claim"},
		{Name: kindEmployeeMissing, Problem: "an employee has edges, but no record", Repair: "deletes the edges; with `-restore`, writes the record from an edge"},
		{Name: kindEdgeMissing, Problem: "an edge of a record is missing, so a list omits the record", Repair: "writes the edge"},
		{Name: kindEdgeDiffers, Problem: "an edge differs from its record", Repair: "sets the attributes"},
		{Name: kindOrphanEdge, Problem: "an edge's record is missing or does not belong in the edge's list", Repair: "deletes the edge"},
		{Name: kindStockTotal, Problem: "a product's total inventory is not the sum of its inventory levels", Repair: "sets the total"},
		{Name: kindStockAvailable, Problem: "a product's available stock is not its inventory minus the pieces of pending and confirmed orders that are not shipped", Repair: "sets the stock"},
		{Name: kindStockBucket, Problem: "a bucket of a product's stock is missing or superfluous, or has another version than the product", Repair: "writes, corrects or deletes the bucket"},
		{Name: kindOrphanInventoryLevel, Problem: "an inventory level has no product", Repair: "deletes the level"},
		{Name: kindCategoryCount, Problem: "a category's record is missing or unused, or its product count is wrong", Repair: "writes, corrects or deletes the record"},
		{Name: kindProductCount, Problem: "the product count of a warehouse is wrong or missing", Repair: "sets the count"},
		{Name: kindWarehouseMissing, Problem: "inventory levels or employees name a missing warehouse", Repair: "writes a stand-in"},
		{Name: kindIndexKeys, Problem: "a record's index keys are wrong, so lists are wrong", Repair: "sets or removes the keys"},
		{Name: kindKeyAttribute, Problem: "an attribute differs from the ID in the key", Repair: "sets the attribute"},
		{Name: kindEntityAttribute, Problem: "the `entity` attribute contradicts the key, or the entity's name or version in ElectroDB is wrong or missing", Repair: "sets the attribute"},
		{Name: kindUnreadable, Problem: "a required attribute is missing, or a value is unreadable", Repair: "set the attribute that `check` names", ByHand: true},
		{Name: kindInvalidValue, Problem: "a value breaks a rule, such as a negative price, an incomplete address, or an order ID that is no ULID", Repair: "set the attribute that `check` names, or write the order again with a ULID", ByHand: true},
		{Name: kindKeyCase, Problem: "a key matches the data model except for upper and lower case, so Ordergraph does not find the record", Repair: "write the record again under the right key", ByHand: true},
	}
}

// KindsMarkdown returns a Markdown table of all kinds of inconsistency, for the docs.
func KindsMarkdown() string {
	rows := [][]string{{"kind", "what is wrong", "repair"}}
	for _, c := range Kinds() {
		repair := c.Repair
		if c.ByHand {
			repair = "by hand: " + repair
		}
		rows = append(rows, []string{markdown.CodeCell(c.Name), c.Problem, repair})
	}
	return markdown.Table(rows)
}
