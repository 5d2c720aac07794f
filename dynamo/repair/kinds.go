package repair

import "github.com/ordergraph/ordergraph/dynamo/markdown"

// The kinds of inconsistencies between records.
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
	DriftCustomerDeleted      = "customer-deleted"
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
	DriftInvalidValue         = "invalid-value"
)

const (
	// StandInEmailDomain follows the customer's ID in an invented email address. A substitute for a
	// lost customer has such an address if the real one is unknown. RFC 2606 reserves the domain, so
	// the address never receives email.
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
		{Name: DriftOrderMissing, Problem: "an order's own record is missing, but its copy exists", Repair: "writes the order's own record from the copy"},
		{Name: DriftOrderCopyMissing, Problem: "an order has no copy in its customer's partition", Repair: "writes the copy"},
		{Name: DriftOrphanOrderCopy, Problem: "a customer has a copy of another customer's order", Repair: "deletes the copy"},
		{Name: DriftOrderCopyDiffers, Problem: "an order's own record and its copy differ", Repair: "overwrites the one with the lower version, or the copy if the versions are equal"},
		{Name: driftOrderTotal, Problem: "an order's total is not the sum of its items", Repair: "sets the total"},
		{Name: driftItemCount, Problem: "an order's item count is wrong", Repair: "sets the count"},
		{Name: driftEmbeddedItems, Problem: "an order's item list differs from the item records", Repair: "sets the list, or removes it if the order has more than 25 items"},
		{Name: DriftItemMissing, Problem: "an order includes an item that has no record", Repair: "writes the record"},
		{Name: DriftItemDiffers, Problem: "an item's record differs from its order", Repair: "sets the attributes"},
		{Name: DriftOrphanItem, Problem: "an item's order is missing or does not include the item", Repair: "deletes the item"},
		{Name: DriftOrphanEvent, Problem: "an event has no order", Repair: "deletes the event"},
		{Name: DriftTimeline, Problem: "an order's last event does not match its status", Repair: "appends an `imported` event"},
		{Name: DriftUpdatedAt, Problem: "an order's update time is earlier than its last event", Repair: "sets the update time"},
		{Name: DriftLastEvent, Problem: "the record of a customer's last event or its count of open orders or reserved units is wrong, or the customer is missing", Repair: "updates or deletes the record"},
		{Name: DriftCustomerMissing, Problem: "a customer has orders or edges, but no record", Repair: "deletes the customer; with `-restore`, writes the record from an edge, or writes a stand-in"},
		{Name: DriftCustomerDeleted, Problem: "a deleted customer has a record", Repair: "deletes the record"},
		{Name: DriftOrderCount, Problem: "the order count of a customer, product or account rep is wrong or missing", Repair: "sets the count"},
		{Name: DriftStatusCounts, Problem: "order counts by status are wrong or missing", Repair: "sets the counts"},
		{Name: DriftSpending, Problem: "a customer's monthly spending is wrong or missing", Repair: "sets the amounts"},
		{Name: DriftEmailClaimMissing, Problem: "a customer has no email claim, so lookups by email fail", Repair: "writes the claim"},
		{Name: DriftEmailShared, Problem: "two customers have the same email address", Repair: "change one of the addresses with `updateCustomer`", ByHand: true},
		{Name: DriftOrphanClaim, Problem: "an email claim names a missing customer, or a customer with another address", Repair: "deletes the claim"},
		{Name: DriftEmployeeMissing, Problem: "an employee has edges, but no record", Repair: "deletes the edges; with `-restore`, writes the record from an edge"},
		{Name: DriftEdgeMissing, Problem: "an edge of a record is missing, so a list omits the record", Repair: "writes the edge"},
		{Name: DriftEdgeDiffers, Problem: "an edge differs from its record", Repair: "sets the attributes"},
		{Name: DriftOrphanEdge, Problem: "an edge's record is missing or does not belong in the edge's list", Repair: "deletes the edge"},
		{Name: DriftStockTotal, Problem: "a product's total inventory is not the sum of its inventory levels", Repair: "sets the total"},
		{Name: DriftStockAvailable, Problem: "a product's available stock is not its inventory minus the quantity in pending and confirmed orders", Repair: "sets the stock"},
		{Name: DriftOrphanInventoryLevel, Problem: "an inventory level has no product", Repair: "deletes the level"},
		{Name: DriftCategoryCount, Problem: "a category's record is missing or unused, or its product count is wrong", Repair: "writes, corrects or deletes the record"},
		{Name: DriftWarehouseMissing, Problem: "inventory levels or employees name a missing warehouse", Repair: "writes a stand-in"},
		{Name: DriftIndexKeys, Problem: "a record's index keys are wrong, so lists are wrong", Repair: "sets or removes the keys"},
		{Name: DriftKeyAttribute, Problem: "an attribute differs from the ID in the key", Repair: "sets the attribute"},
		{Name: driftEntityAttribute, Problem: "the `entity` attribute contradicts the key", Repair: "sets the attribute"},
		{Name: DriftUnreadable, Problem: "a required attribute is missing, or a value is unreadable", Repair: "set the attribute that `check` names", ByHand: true},
		{Name: DriftInvalidValue, Problem: "a value breaks a rule, such as a negative price, an incomplete address, or an order ID that is no ULID", Repair: "set the attribute that `check` names", ByHand: true},
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
