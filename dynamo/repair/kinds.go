package repair

import "github.com/ordergraph/ordergraph/dynamo/markdown"

// The kinds of inconsistencies, which the docs call drifts.
const (
	DriftOrderMissing         = "order-missing"
	DriftOrderCopyMissing     = "copy-missing"
	DriftOrphanOrderCopy      = "orphan-copy"
	DriftOrderCopyDiffers     = "order-records-differ"
	driftOrderTotal           = "order-total"
	driftItemCount            = "item-count"
	driftEmbeddedItems        = "embedded-items"
	DriftItemMissing          = "item-missing"
	DriftItemDiffers          = "item-differs"
	DriftOrphanItem           = "orphan-item"
	DriftOrphanEvent          = "orphan-event"
	DriftTimeline             = "timeline"
	DriftUpdatedAt            = "updated-at"
	DriftLastEvent            = "last-event"
	DriftCustomerMissing      = "customer-missing"
	DriftOrderCount           = "order-count"
	DriftStatusCounts         = "order-counts"
	DriftSpending             = "spending"
	DriftEmailClaimMissing    = "email-claim"
	DriftEmailShared          = "email-shared"
	DriftOrphanClaim          = "orphan-claim"
	DriftEmployeeMissing      = "employee-missing"
	DriftEdgeMissing          = "edge-missing"
	DriftEdgeDiffers          = "edge-differs"
	DriftOrphanEdge           = "orphan-edge"
	DriftStockTotal           = "stock-total"
	DriftStockAvailable       = "stock-available"
	DriftOrphanInventoryLevel = "orphan-level"
	DriftCategoryCount        = "category-count"
	DriftWarehouseMissing     = "warehouse-missing"
	DriftIndexKeys            = "index-keys"
	DriftKeyAttribute         = "key-attribute"
	driftEntityAttribute      = "entity"
	DriftUnreadable           = "unreadable"
)

const (
	// StandInEmailDomain follows the customer's ID in the email address of a stand-in, which is a
	// substitute for a lost customer record. RFC 2606 reserves this domain, so no email can reach it.
	StandInEmailDomain = "@unknown.invalid"
	// RepairEventActor is the actor in the events that repairs append to the timelines of orders.
	RepairEventActor = "ordergraph check"
)

// DriftKind describes one kind of drift. A drift is an inconsistency between records.
type DriftKind struct {
	// Name identifies the kind in findings and in the output of `ordergraph check`.
	Name string
	// Problem describes the inconsistency.
	Problem string
	// Repair describes what a repair does. If ByHand is set, Repair describes what the operator must
	// do.
	Repair string
	// ByHand reports whether the drift cannot be repaired automatically.
	ByHand bool
}

// DriftKinds returns all kinds of inconsistencies.
func DriftKinds() []DriftKind {
	return []DriftKind{
		{Name: DriftOrderMissing, Problem: "an order has a copy, but no record", Repair: "writes the record from the copy"},
		{Name: DriftOrderCopyMissing, Problem: "an order has no copy for its customer", Repair: "writes the copy"},
		{Name: DriftOrphanOrderCopy, Problem: "a customer has a copy of another customer's order", Repair: "deletes the copy"},
		{Name: DriftOrderCopyDiffers, Problem: "an order's record and copy differ", Repair: "overwrites the lower version; if equal, the copy"},
		{Name: driftOrderTotal, Problem: "an order's total is not the sum of its items", Repair: "sets the total"},
		{Name: driftItemCount, Problem: "an order's item count is wrong", Repair: "sets the count"},
		{Name: driftEmbeddedItems, Problem: "an order's item list differs from the item records", Repair: "sets the list, or removes it if over 25 items"},
		{Name: DriftItemMissing, Problem: "an order includes an item without a record", Repair: "writes the record"},
		{Name: DriftItemDiffers, Problem: "an item's record differs from its order", Repair: "sets the attributes"},
		{Name: DriftOrphanItem, Problem: "an item's order is missing or does not include the item", Repair: "deletes the item"},
		{Name: DriftOrphanEvent, Problem: "an event has no order", Repair: "deletes the event"},
		{Name: DriftTimeline, Problem: "an order's last event does not match its status", Repair: "appends an `imported` event"},
		{Name: DriftUpdatedAt, Problem: "an order's update time is earlier than its last event", Repair: "sets the update time"},
		{Name: DriftLastEvent, Problem: "the record of a customer's last event is wrong, or the customer is missing", Repair: "updates or deletes the record"},
		{Name: DriftCustomerMissing, Problem: "a customer has orders or edges, but no record", Repair: "writes the record from an edge, or a stand-in"},
		{Name: DriftOrderCount, Problem: "the order count of a customer, product or account rep is wrong or missing", Repair: "sets the count"},
		{Name: DriftStatusCounts, Problem: "order counts by status are wrong or missing", Repair: "sets the counts"},
		{Name: DriftSpending, Problem: "a customer's monthly spending is wrong or missing", Repair: "sets the amounts"},
		{Name: DriftEmailClaimMissing, Problem: "a customer has no email claim, so lookups by email fail", Repair: "writes the claim"},
		{Name: DriftEmailShared, Problem: "two customers have the same email address", Repair: "change one address with updateCustomer", ByHand: true},
		{Name: DriftOrphanClaim, Problem: "an email claim names a customer with another address", Repair: "deletes the claim"},
		{Name: DriftEmployeeMissing, Problem: "an employee has edges, but no record", Repair: "writes the record from an edge"},
		{Name: DriftEdgeMissing, Problem: "a record has no edge, so a list omits it", Repair: "writes the edge"},
		{Name: DriftEdgeDiffers, Problem: "an edge differs from its record", Repair: "sets the attributes"},
		{Name: DriftOrphanEdge, Problem: "an edge has no record, or the record does not belong in the list", Repair: "deletes the edge"},
		{Name: DriftStockTotal, Problem: "a product's total inventory is not the sum of its levels", Repair: "sets the total"},
		{Name: DriftStockAvailable, Problem: "a product's available stock is not its inventory minus the quantity in pending and confirmed orders", Repair: "sets the stock"},
		{Name: DriftOrphanInventoryLevel, Problem: "an inventory level has no product", Repair: "deletes the level"},
		{Name: DriftCategoryCount, Problem: "a category's record is missing, unused or has a wrong product count", Repair: "writes, corrects or deletes the record"},
		{Name: DriftWarehouseMissing, Problem: "inventory levels or employees name a missing warehouse", Repair: "writes a stand-in"},
		{Name: DriftIndexKeys, Problem: "index keys are wrong, so lists are wrong", Repair: "sets or removes the keys"},
		{Name: DriftKeyAttribute, Problem: "an attribute contradicts the ID in the key", Repair: "sets the attribute"},
		{Name: driftEntityAttribute, Problem: "the `entity` attribute contradicts the key", Repair: "sets the attribute"},
		{Name: DriftUnreadable, Problem: "a required attribute is missing, or a value is unreadable", Repair: "set the attribute that the finding names", ByHand: true},
	}
}

// DriftsMarkdown returns a Markdown table of all kinds of inconsistencies, for the docs.
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
