package check

import "github.com/ordergraph/ordergraph/dynamo/markdown"

// The kinds of inconsistencies between records.
const (
	driftOrderMissing         = "order-missing"
	driftOrderCopyMissing     = "copy-missing"
	driftOrphanOrderCopy      = "orphan-copy"
	driftOrderCopyDiffers     = "order-records-differ"
	driftOrderTotal           = "order-total"
	driftItemCount            = "item-count"
	driftEmbeddedItems        = "embedded-items"
	driftItemMissing          = "item-missing"
	driftItemDiffers          = "item-differs"
	driftOrphanItem           = "orphan-item"
	driftOrphanEvent          = "orphan-event"
	driftTimeline             = "timeline"
	driftUpdatedAt            = "updated-at"
	driftLastEvent            = "last-event"
	driftCustomerMissing      = "customer-missing"
	driftCustomerDeleted      = "customer-deleted"
	driftOrderCount           = "order-count"
	driftStatusCounts         = "order-counts"
	driftSpending             = "spending"
	driftEmailClaimMissing    = "email-claim"
	driftEmailShared          = "email-shared"
	driftOrphanClaim          = "orphan-claim"
	driftEmployeeMissing      = "employee-missing"
	driftEdgeMissing          = "edge-missing"
	driftEdgeDiffers          = "edge-differs"
	driftOrphanEdge           = "orphan-edge"
	driftStockTotal           = "stock-total"
	driftStockAvailable       = "stock-available"
	driftOrphanInventoryLevel = "orphan-level"
	driftCategoryCount        = "category-count"
	driftWarehouseMissing     = "warehouse-missing"
	driftIndexKeys            = "index-keys"
	driftKeyAttribute         = "key-attribute"
	driftEntityAttribute      = "entity"
	driftUnreadable           = "unreadable"
	driftInvalidValue         = "invalid-value"
)

const (
	// standInEmailDomain follows the customer's ID in an invented email address. A substitute for a
	// lost customer has such an address if the real one is unknown. RFC 2606 reserves the domain, so
	// the address never receives email.
	standInEmailDomain = "@unknown.invalid"
	// repairEventActor is the actor in the events that repairs append to the timelines of orders.
	repairEventActor = "ordergraph check"
)

// DriftKind describes one kind of drift. A drift is an inconsistency between records.
type DriftKind struct {
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

// DriftKinds returns all kinds of inconsistencies.
func DriftKinds() []DriftKind {
	return []DriftKind{
		{Name: driftOrderMissing, Problem: "an order's own record is missing, but its copy exists", Repair: "writes the order's own record from the copy"},
		{Name: driftOrderCopyMissing, Problem: "an order has no copy in its customer's partition", Repair: "writes the copy"},
		{Name: driftOrphanOrderCopy, Problem: "a customer has a copy of another customer's order", Repair: "deletes the copy"},
		{Name: driftOrderCopyDiffers, Problem: "an order's own record and its copy differ", Repair: "overwrites the one with the lower version, or the copy if the versions are equal"},
		{Name: driftOrderTotal, Problem: "an order's total is not the sum of its items", Repair: "sets the total"},
		{Name: driftItemCount, Problem: "an order's item count is wrong", Repair: "sets the count"},
		{Name: driftEmbeddedItems, Problem: "an order's item list differs from the item records", Repair: "sets the list, or removes it if the order has more than 25 items"},
		{Name: driftItemMissing, Problem: "an order includes an item that has no record", Repair: "writes the record"},
		{Name: driftItemDiffers, Problem: "an item's record differs from its order", Repair: "sets the attributes"},
		{Name: driftOrphanItem, Problem: "an item's order is missing or does not include the item", Repair: "deletes the item"},
		{Name: driftOrphanEvent, Problem: "an event has no order", Repair: "deletes the event"},
		{Name: driftTimeline, Problem: "an order's last event does not match its status", Repair: "appends an `imported` event"},
		{Name: driftUpdatedAt, Problem: "an order's update time is earlier than its last event", Repair: "sets the update time"},
		{Name: driftLastEvent, Problem: "the record of a customer's last event or its count of open orders or reserved units is wrong, or the customer is missing", Repair: "updates or deletes the record"},
		{Name: driftCustomerMissing, Problem: "a customer has orders or edges, but no record", Repair: "deletes the customer; with `-restore`, writes the record from an edge, or writes a stand-in"},
		{Name: driftCustomerDeleted, Problem: "a deleted customer has a record", Repair: "deletes the record"},
		{Name: driftOrderCount, Problem: "the order count of a customer, product or account rep is wrong or missing", Repair: "sets the count"},
		{Name: driftStatusCounts, Problem: "order counts by status are wrong or missing", Repair: "sets the counts"},
		{Name: driftSpending, Problem: "a customer's monthly spending is wrong or missing", Repair: "sets the amounts"},
		{Name: driftEmailClaimMissing, Problem: "a customer has no email claim, so lookups by email fail", Repair: "writes the claim"},
		{Name: driftEmailShared, Problem: "two customers have the same email address", Repair: "change one of the addresses with `updateCustomer`", ByHand: true},
		{Name: driftOrphanClaim, Problem: "an email claim names a missing customer, or a customer with another address", Repair: "deletes the claim"},
		{Name: driftEmployeeMissing, Problem: "an employee has edges, but no record", Repair: "deletes the edges; with `-restore`, writes the record from an edge"},
		{Name: driftEdgeMissing, Problem: "an edge of a record is missing, so a list omits the record", Repair: "writes the edge"},
		{Name: driftEdgeDiffers, Problem: "an edge differs from its record", Repair: "sets the attributes"},
		{Name: driftOrphanEdge, Problem: "an edge's record is missing or does not belong in the edge's list", Repair: "deletes the edge"},
		{Name: driftStockTotal, Problem: "a product's total inventory is not the sum of its inventory levels", Repair: "sets the total"},
		{Name: driftStockAvailable, Problem: "a product's available stock is not its inventory minus the quantity in pending and confirmed orders", Repair: "sets the stock"},
		{Name: driftOrphanInventoryLevel, Problem: "an inventory level has no product", Repair: "deletes the level"},
		{Name: driftCategoryCount, Problem: "a category's record is missing or unused, or its product count is wrong", Repair: "writes, corrects or deletes the record"},
		{Name: driftWarehouseMissing, Problem: "inventory levels or employees name a missing warehouse", Repair: "writes a stand-in"},
		{Name: driftIndexKeys, Problem: "a record's index keys are wrong, so lists are wrong", Repair: "sets or removes the keys"},
		{Name: driftKeyAttribute, Problem: "an attribute differs from the ID in the key", Repair: "sets the attribute"},
		{Name: driftEntityAttribute, Problem: "the `entity` attribute contradicts the key", Repair: "sets the attribute"},
		{Name: driftUnreadable, Problem: "a required attribute is missing, or a value is unreadable", Repair: "set the attribute that `check` names", ByHand: true},
		{Name: driftInvalidValue, Problem: "a value breaks a rule, such as a negative price, an incomplete address, or an order ID that is no ULID", Repair: "set the attribute that `check` names", ByHand: true},
	}
}

// DriftsMarkdown returns a Markdown table of all kinds of drift, for the docs.
func DriftsMarkdown() string {
	rows := [][]string{{"kind", "what is wrong", "repair"}}
	for _, c := range DriftKinds() {
		repair := c.Repair
		if c.ByHand {
			repair = "by hand: " + repair
		}
		rows = append(rows, []string{markdown.CodeCell(c.Name), c.Problem, repair})
	}
	return markdown.Table(rows)
}
