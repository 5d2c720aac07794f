package repair

import "github.com/ordergraph/ordergraph/dynamo/markdown"

// The kinds of drifts.
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
	// StandInEmailDomain follows a customer's ID in the email address of a stand-in. RFC 2606 reserves
	// the domain, so it has no owner.
	StandInEmailDomain = "@unknown.invalid"
	// CheckActor is the actor of the events that a repair appends to timelines.
	CheckActor = "ordergraph check"
)

// DriftKind is a kind of drift, an inconsistency of records.
type DriftKind struct {
	// Name identifies the kind in findings and in the output of `ordergraph check`.
	Name string
	// Problem describes the inconsistency.
	Problem string
	// Repair describes the repair. With ByHand, it tells the operator how to repair the drift.
	Repair string
	// ByHand reports whether the drift cannot be repaired automatically.
	ByHand bool
}

// DriftKinds returns all kinds of drifts.
func DriftKinds() []DriftKind {
	return []DriftKind{
		{Name: DriftOrderMissing, Problem: "an order's own record is missing; its copy exists", Repair: "writes the record from the copy"},
		{Name: DriftCopyMissing, Problem: "the customer's copy of an order is missing", Repair: "writes the copy from the order"},
		{Name: DriftOrphanCopy, Problem: "a customer has a copy of another customer's order", Repair: "deletes the copy"},
		{Name: DriftOrderDiffers, Problem: "an order and its copy differ", Repair: "copies the higher version, or the order's own on a tie"},
		{Name: driftOrderTotal, Problem: "a total is not the sum of the items", Repair: "sets the total"},
		{Name: driftItemCount, Problem: "an item count is wrong", Repair: "sets the count"},
		{Name: driftEmbeddedItems, Problem: "the item list on an order differs from the item records", Repair: "sets the list, or removes it above 25 items"},
		{Name: DriftItemMissing, Problem: "an item in the order's list and total has no record", Repair: "writes the record from the list"},
		{Name: DriftItemDiffers, Problem: "an item differs from its order", Repair: "sets the attributes"},
		{Name: DriftOrphanItem, Problem: "an item has no order, or its list and total omit it", Repair: "deletes the item"},
		{Name: DriftOrphanEvent, Problem: "an event has no order", Repair: "deletes the event"},
		{Name: DriftTimeline, Problem: "the last event does not match the order's status", Repair: "appends an `imported` event, which raises the order's version"},
		{Name: DriftUpdatedAt, Problem: "an order's update time is before its last event", Repair: "sets the event's time"},
		{Name: DriftLastEvent, Problem: "a customer's last event is outdated, incomplete or has no customer", Repair: "sets the latest event, or deletes it"},
		{Name: DriftCustomerMissing, Problem: "a customer has orders or an edge, but no record", Repair: "writes the record from an edge, or a stand-in"},
		{Name: DriftOrderCount, Problem: "an order count of a customer, product or account rep is wrong or missing; a customer's may be missing below 10 MB of orders", Repair: "sets the count"},
		{Name: DriftOrderCounts, Problem: "orders were miscounted by status, or never counted", Repair: "sets the counts"},
		{Name: DriftSpending, Problem: "a customer's monthly spending is wrong, or was never added up", Repair: "sets the amounts"},
		{Name: DriftEmailClaim, Problem: "an email address has no claim, so lookups by it fail", Repair: "writes the claim"},
		{Name: DriftEmailShared, Problem: "two customers have one email address", Repair: "change one with updateCustomer", ByHand: true},
		{Name: DriftOrphanClaim, Problem: "a claimed email address is not its customer's", Repair: "deletes the claim"},
		{Name: DriftEmployeeMissing, Problem: "an employee has an edge, but no record", Repair: "writes the record from the edge"},
		{Name: DriftEdgeMissing, Problem: "a record lacks an edge, so a list omits it", Repair: "writes the edge"},
		{Name: DriftEdgeDiffers, Problem: "an edge differs from its record", Repair: "sets the attributes"},
		{Name: DriftOrphanEdge, Problem: "an edge has no record, or its record lacks the relation", Repair: "deletes the edge"},
		{Name: DriftStockTotal, Problem: "a total inventory is not the sum of the inventory levels", Repair: "sets the total"},
		{Name: DriftStockAvailable, Problem: "available stock is not the inventory minus pending and confirmed orders", Repair: "sets the number"},
		{Name: DriftOrphanLevel, Problem: "an inventory level has no product", Repair: "deletes the level"},
		{Name: DriftCategoryCount, Problem: "a category is missing, empty or miscounted", Repair: "sets the count; writes or deletes the category"},
		{Name: DriftWarehouseMissing, Problem: "a warehouse has stock or employees, but no record", Repair: "writes a stand-in"},
		{Name: DriftIndexKeys, Problem: "index keys differ from the model, so lists are wrong", Repair: "sets or removes the keys"},
		{Name: DriftKeyAttribute, Problem: "an attribute contradicts the ID in the key", Repair: "sets the attribute"},
		{Name: driftEntity, Problem: "the entity attribute contradicts the key", Repair: "sets the attribute"},
		{Name: DriftUnreadable, Problem: "a required attribute is lost, or a value is unreadable", Repair: "set the named attribute", ByHand: true},
	}
}

// DriftsMarkdown returns the table of the kinds of drifts for the docs.
func DriftsMarkdown() string {
	rows := [][]string{{"kind", "what is wrong", "repair"}}
	for _, c := range DriftKinds() {
		repair := c.Repair
		if c.ByHand {
			repair = "by hand: " + repair
		}
		rows = append(rows, []string{markdown.Cell(c.Name), c.Problem, repair})
	}
	return markdown.Table(rows)
}
