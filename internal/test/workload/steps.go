package workload

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Step is a mutation that a client will send. Steps are generated before any order exists. If a
// mutation changes an order, the client therefore chooses the order only when it sends the
// mutation.
type Step struct {
	Mutation
	// OrderChoice selects the order that the mutation changes. 0 is the newest suitable order at the
	// time of sending, 1 is the order before it, and so on. If the mutation does not change an order,
	// OrderChoice is -1.
	OrderChoice int
	// PreferAllowed reports whether the client prefers orders whose status allows the mutation. The
	// client knows the status of an order from the last response that contained the order.
	PreferAllowed bool
	// VersionChoice determines the mutation's argument expectedVersion.
	VersionChoice VersionChoice
	// SendTwice reports whether the client sends the mutation twice with the same idempotency key. It
	// has no effect if the mutation has no key.
	SendTwice bool
}

// VersionChoice determines the argument expectedVersion of a mutation.
type VersionChoice int

// NoVersion omits expectedVersion from the mutation. LatestVersion sends the highest version of the
// record in the responses so far. WrongVersion sends a version that no record has.
const (
	NoVersion VersionChoice = iota
	LatestVersion
	WrongVersion
)

// String formats the step for messages.
func (s Step) String() string {
	return fmt.Sprintf("%s%v, order choice %d, version choice %d, sent twice: %v", s.Field, s.Input, s.OrderChoice, s.VersionChoice, s.SendTwice)
}

// StepGenerator generates random steps for a Fixture.
type StepGenerator struct {
	Fixture Fixture
	// IntN returns a random number in [0, n).
	IntN func(n int) int
}

func (s StepGenerator) oneOf(choices ...string) string { return choices[s.IntN(len(choices))] }

// mostly returns true in n-1 of n cases. It returns false only for the greatest random number. The
// library rapid simplifies a failing test by trying smaller random numbers, so the simplified test
// has few unusual cases.
func (s StepGenerator) mostly(n int) bool { return s.IntN(n) < n-1 }

// existingID usually returns the ID of a record in the Fixture. In one of 8 cases, it returns the
// ID of a record that another step may create.
func (s StepGenerator) existingID(prefix string, n int) string {
	if s.mostly(8) {
		return fmt.Sprintf("%s%d", prefix, s.IntN(n))
	}
	return fmt.Sprintf("%snew%d", prefix, s.IntN(8))
}

// newID usually returns one of 8 IDs for a new record. Several steps may get the same ID. In one of
// 8 cases, newID returns the ID of a record in the Fixture.
func (s StepGenerator) newID(prefix string) string {
	if s.mostly(8) {
		return fmt.Sprintf("%snew%d", prefix, s.IntN(8))
	}
	return prefix + "0"
}

func (s StepGenerator) customerID() string  { return s.existingID("c", s.Fixture.Customers) }
func (s StepGenerator) productSKU() string  { return s.existingID("p", s.Fixture.Products) }
func (s StepGenerator) warehouseID() string { return s.existingID("w", s.Fixture.Warehouses) }
func (s StepGenerator) employeeID() string  { return s.existingID("e", s.Fixture.Employees) }

// email returns one of 8 email addresses. In one of 3 cases, the address begins with a capital
// letter, because the server must ignore the difference between capital and small letters.
func (s StepGenerator) email() string {
	address := fmt.Sprintf("shared%d@example.com", s.IntN(8))
	if s.mostly(3) {
		return address
	}
	return strings.ToUpper(address[:1]) + address[1:]
}

func (s StepGenerator) price() map[string]any {
	return map[string]any{"amount": fmt.Sprintf("%d.%d0", 1+s.IntN(9), s.IntN(10))}
}

func (s StepGenerator) address() map[string]any {
	return map[string]any{"recipient": "R", "line1": fmt.Sprintf("%d Main Street", 1+s.IntN(3)), "city": "Springfield", "countryCode": "US"}
}

// adjustments returns up to 3 adjustments. Some of the discounts exceed the price of a small order.
func (s StepGenerator) adjustments() []map[string]any {
	all := []map[string]any{}
	for range s.IntN(4) {
		kind, amount := s.oneOf("SHIPPING", "TAX", "DISCOUNT", "FEE"), fmt.Sprintf("%d.%d0", s.IntN(9), s.IntN(10))
		if kind == "DISCOUNT" {
			amount = "-" + amount
		}
		a := map[string]any{"kind": kind, "label": "Adjustment", "amount": amount, "included": kind == "TAX" && s.mostly(2)}
		if s.mostly(3) {
			a["line"] = s.productSKU()
		}
		all = append(all, a)
	}
	return all
}

// Next generates a step for a mutation, such as placeOrder. The parameter name must be different
// for each step, because it is usually the idempotency key. Some steps share another key, or have
// no key.
func (s StepGenerator) Next(field, name string) Step {
	step := Step{Mutation: Mutation{Field: field, Input: map[string]any{}}, OrderChoice: -1}
	in := step.Input
	// maybe adds an argument to the mutation in half of the cases.
	maybe := func(name string, value func() any) {
		if s.IntN(2) == 1 {
			in[name] = value()
		}
	}
	keyed, versioned := false, false
	if allowedStatuses[field] != nil {
		step.OrderChoice, step.PreferAllowed = s.IntN(6), s.mostly(5)
	}
	switch field {
	case "createCustomer":
		keyed = true
		maybe("id", func() any { return s.newID("c") })
		in["name"], in["email"] = "New customer", s.email()
		maybe("accountRepId", func() any { return s.employeeID() })
	case "updateCustomer":
		versioned = true
		in["id"] = s.customerID()
		maybe("name", func() any { return fmt.Sprintf("Renamed %d", s.IntN(3)) })
		maybe("email", func() any { return s.email() })
		maybe("phoneNumbers", func() any { return []string{"+1 555 0100", "+1 555 0101"}[:s.IntN(3)] })
	case "assignAccountRep":
		versioned = true
		in["customerId"], in["employeeId"] = s.customerID(), nil
		maybe("employeeId", func() any { return s.employeeID() })
	case "placeOrder":
		keyed = true
		if s.mostly(4) {
			in["customerId"] = s.customerID()
		} else {
			in["guest"] = map[string]any{"email": s.customerID() + "@example.com"}
		}
		var items []map[string]any
		for range 1 + s.IntN(3) {
			items = append(items, map[string]any{"sku": s.productSKU(), "quantity": 1 + s.IntN(3)})
		}
		in["items"] = items
		maybe("shippingAddress", func() any { return s.address() })
		maybe("adjustments", func() any { return s.adjustments() })
	case "claimOrders":
		in["customerId"] = s.customerID()
	case "confirmOrder", "deliverOrder", "cancelOrder", "shipOrder":
		keyed, versioned = true, true
		maybe("note", func() any { return s.oneOf("soon", "late") })
		if field == "shipOrder" {
			in["warehouseId"], in["withoutAddress"] = s.warehouseID(), s.mostly(4)
			maybe("trackingNumber", func() any { return s.oneOf("1Z999", "1Z998") })
			maybe("carrier", func() any { return s.oneOf("UPS", "DHL") })
		}
	case "setOrderItem", "removeOrderItem":
		versioned = true
		in["sku"] = s.productSKU()
		if field == "setOrderItem" {
			in["quantity"] = 1 + s.IntN(5)
		}
	case "updateShippingAddress":
		versioned = true
		in["shippingAddress"] = s.address()
	case "updateOrder":
		versioned = true
		maybe("billingAddress", func() any { return s.address() })
		maybe("contact", func() any { return map[string]any{"email": s.email()} })
	case "setAdjustments":
		versioned = true
		in["adjustments"] = s.adjustments()
	case "addOrderNote":
		keyed = true
		in["note"] = s.oneOf("soon", "late")
		maybe("visibility", func() any { return s.oneOf("STAFF", "CUSTOMER") })
	case "holdOrder", "releaseOrder":
		versioned = true
		if field == "holdOrder" {
			in["reason"] = s.oneOf("fraud", "address")
		}
	case "tagOrder":
		versioned = true
		in["add"] = []any{s.oneOf("vip", "fraud", "gift"), s.oneOf("vip", "export")}
		maybe("remove", func() any { return []any{s.oneOf("vip", "fraud")} })
	case "recordPayment":
		in["kind"], in["amount"] = s.oneOf("AUTHORIZATION", "CAPTURE", "CAPTURE", "VOID", "REFUND", "CHARGEBACK"), s.price()
		in["provider"], in["reference"] = s.oneOf("stripe", "cash"), name
		if s.IntN(4) == 0 {
			in["reference"] = fmt.Sprintf("shared-%d", s.IntN(3))
		}
	case "requestReturn":
		keyed = true
		in["lines"] = []map[string]any{{"sku": s.productSKU(), "quantity": 1 + s.IntN(2), "reason": s.oneOf("broken", "late")}}
	case "approveReturn", "rejectReturn", "receiveReturn":
		keyed = true
		in["returnId"] = unknownOrderID
		if field == "rejectReturn" {
			in["reason"] = "used"
		}
		if field == "receiveReturn" {
			in["warehouseId"], in["lines"] = s.warehouseID(), []any{}
		}
	case "createFulfillment":
		keyed, versioned = true, s.IntN(4) == 0
		in["warehouseId"], in["withoutAddress"] = s.warehouseID(), true
		maybe("trackingNumber", func() any { return s.oneOf("1Z999", "1Z998") })
		if s.mostly(3) {
			in["lines"] = []map[string]any{{"sku": s.productSKU(), "quantity": 1 + s.IntN(2)}} // the client may choose a product of the order
		}
	case "cancelOrderItems":
		keyed, versioned = true, true
		in["lines"] = []map[string]any{{"sku": s.productSKU(), "quantity": 1}} // the client may choose a product of the order
	case "updateTracking":
		in["trackingNumber"] = s.oneOf("1Z999", "1Z998")
	case "deliverFulfillment", "cancelFulfillment":
		keyed = true
	case "createProduct":
		keyed = true
		in["sku"], in["name"], in["category"], in["unitPrice"] = s.newID("p"), "New product", s.oneOf("Things", "Others"), s.price()
	case "updateProduct":
		versioned = true
		in["sku"] = s.productSKU()
		maybe("name", func() any { return fmt.Sprintf("Renamed %d", s.IntN(3)) })
		maybe("category", func() any { return s.oneOf("Things", "Others") })
		maybe("unitPrice", func() any { return s.price() })
		maybe("stockBuckets", func() any { return 1 + s.IntN(4) })
	case "createWarehouse":
		keyed = true
		maybe("id", func() any { return s.newID("w") })
		in["name"] = "New warehouse"
	case "updateWarehouse":
		versioned = true
		in["id"] = s.warehouseID()
		maybe("name", func() any { return fmt.Sprintf("Renamed %d", s.IntN(3)) })
	case "setInventoryLevel":
		versioned = true
		in["sku"], in["warehouseId"], in["quantity"] = s.productSKU(), s.warehouseID(), s.IntN(9)
	case "adjustInventory":
		keyed = true
		in["sku"], in["warehouseId"] = s.productSKU(), s.warehouseID()
		in["delta"] = 1 + s.IntN(4)
		if s.IntN(2) == 1 {
			in["delta"] = -1 - s.IntN(4)
		}
	case "transferInventory":
		keyed = true
		in["sku"], in["fromWarehouseId"], in["toWarehouseId"], in["quantity"] = s.productSKU(), s.warehouseID(), s.warehouseID(), 1+s.IntN(4)
	case "hireEmployee":
		keyed = true
		maybe("id", func() any { return s.newID("e") })
		in["name"], in["jobTitle"], in["hireDate"] = "New employee", s.oneOf("Clerk", "Driver"), "2025-03-04"
		maybe("warehouseId", func() any { return s.warehouseID() })
	case "updateEmployee":
		versioned = true
		in["id"] = s.employeeID()
		maybe("name", func() any { return fmt.Sprintf("Renamed %d", s.IntN(3)) })
		maybe("jobTitle", func() any { return s.oneOf("Clerk", "Driver") })
		if s.IntN(2) == 1 {
			in["warehouseId"] = nil
			if s.mostly(3) {
				in["warehouseId"] = s.warehouseID()
			}
		}
	}
	if keyed {
		switch s.IntN(5) {
		case 4:
		case 3:
			in["idempotencyKey"] = fmt.Sprintf("shared-%d", s.IntN(3))
		default:
			in["idempotencyKey"] = name
		}
		step.SendTwice = s.IntN(3) == 1
	}
	if versioned {
		step.VersionChoice = VersionChoice(max(0, s.IntN(5)-2))
	}
	return step
}

// allowedStatuses maps each mutation of an order to the statuses that allow the mutation.
var allowedStatuses = map[string][]string{
	"createFulfillment": {"CONFIRMED"}, "cancelOrderItems": {"CONFIRMED"}, "updateTracking": {"CONFIRMED"}, "deliverFulfillment": {"CONFIRMED"}, "cancelFulfillment": {"CONFIRMED"},
	"confirmOrder": {"PENDING"}, "shipOrder": {"CONFIRMED"}, "deliverOrder": {"SHIPPED"}, "cancelOrder": {"PENDING", "CONFIRMED"},
	"setOrderItem": {"PENDING"}, "removeOrderItem": {"PENDING"}, "updateShippingAddress": {"PENDING", "CONFIRMED"},
	"updateOrder": {"PENDING", "CONFIRMED"}, "setAdjustments": {"PENDING", "CONFIRMED"},
	"holdOrder": {"PENDING", "CONFIRMED"}, "releaseOrder": {"PENDING", "CONFIRMED"}, "tagOrder": {"PENDING", "CONFIRMED", "SHIPPED", "DELIVERED", "CANCELLED"}, "recordPayment": {"PENDING", "CONFIRMED", "SHIPPED", "DELIVERED", "CANCELLED"}, "addOrderNote": {"PENDING", "CONFIRMED", "SHIPPED", "DELIVERED", "CANCELLED"},
	"requestReturn": {"SHIPPED", "DELIVERED"}, "approveReturn": {"SHIPPED", "DELIVERED"}, "rejectReturn": {"SHIPPED", "DELIVERED"}, "receiveReturn": {"SHIPPED", "DELIVERED"},
}

// ClientState contains the records that the clients have received in responses. It is safe for
// concurrent use.
type ClientState struct {
	mu       sync.Mutex
	orders   []string
	latest   map[string]Record
	versions map[string]int
	// returns contains the latest responses with returns, each with the ID of its order.
	returns []orderReturn
	// fulfillments contains the IDs of fulfillments, each with the ID of its order.
	fulfillments [][2]string
}

type orderReturn struct{ order, id, status string }

// NewClientState returns an empty ClientState.
func NewClientState() *ClientState {
	return &ClientState{latest: map[string]Record{}, versions: map[string]int{}}
}

// chooseOrder returns the order that a step changes. It prefers recently placed orders, because
// most older orders have a final status.
func (m *ClientState) chooseOrder(s Step) Record {
	var fitting []string
	for _, id := range m.orders {
		o := m.latest[id]
		if s.PreferAllowed && slices.Contains(allowedStatuses[s.Field], o.Status) && (s.Field != "removeOrderItem" || len(o.Items.Nodes) > 1) {
			fitting = append(fitting, id)
		}
	}
	if len(fitting) == 0 {
		fitting = m.orders
	}
	if len(fitting) == 0 {
		return Record{ID: unknownOrderID}
	}
	return m.latest[fitting[max(0, len(fitting)-1-s.OrderChoice)]]
}

// unknownOrderID is the ID of an order that does not exist.
const unknownOrderID = "01HVMK3P2Q000000000000000Z"

// RecordName returns the type and ID of the record that a mutation creates or changes, such as
// "customer c1". If r contains no ID, RecordName takes the ID from the mutation's input. If the
// input contains no ID either, the result is empty.
func RecordName(field string, in map[string]any, r Record) string {
	text := func(name string) string { s, _ := in[name].(string); return s }
	kind := PayloadRecordFields[field]
	id := r.ID
	switch {
	case kind == "product":
		id = r.Sku
		if id == "" {
			id = text("sku")
		}
	case kind == "inventoryLevel":
		return kind + " " + text("sku") + " " + cmp.Or(text("warehouseId"), text("toWarehouseId"))
	case id != "":
	case kind == "order":
		id = text("orderId")
	case field == "assignAccountRep":
		id = text("customerId")
	default:
		id = text("id")
	}
	if id == "" {
		return ""
	}
	return kind + " " + id
}

// Knows reports whether a response has contained the order.
func (m *ClientState) Knows(order string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Contains(m.orders, order)
}

// Mutation returns the mutation that a client sends for a step. It chooses the order and the
// expectedVersion from the records in m.
func (m *ClientState) Mutation(s Step) Mutation {
	m.mu.Lock()
	defer m.mu.Unlock()
	mutation := Mutation{Field: s.Field, Input: maps.Clone(s.Input)}
	if s.OrderChoice >= 0 {
		o := m.chooseOrder(s)
		mutation.Input["orderId"] = o.ID
		if s.PreferAllowed && s.Field == "removeOrderItem" && len(o.Items.Nodes) > 0 {
			mutation.Input["sku"] = o.Items.Nodes[0].ProductID
		}
		if s.PreferAllowed && s.Field == "requestReturn" && len(o.Items.Nodes) > 0 {
			mutation.Input["lines"] = []map[string]any{{"sku": o.Items.Nodes[0].ProductID, "quantity": 1, "reason": "broken"}}
		}
		known := m.returns
		if s.PreferAllowed {
			allowed := map[string]string{"approveReturn": "REQUESTED", "rejectReturn": "REQUESTED", "receiveReturn": "APPROVED"}[s.Field]
			known = slices.DeleteFunc(slices.Clone(known), func(r orderReturn) bool { return r.status != allowed })
		}
		if n := len(known); mutation.Input["returnId"] != nil && n > 0 {
			r := known[max(0, n-1-s.OrderChoice)]
			mutation.Input["orderId"], mutation.Input["returnId"] = r.order, r.id
		}
		if n := len(m.fulfillments); slices.Contains([]string{"updateTracking", "deliverFulfillment", "cancelFulfillment"}, s.Field) {
			mutation.Input["fulfillmentId"] = unknownOrderID
			if n > 0 {
				f := m.fulfillments[max(0, n-1-s.OrderChoice)]
				mutation.Input["orderId"], mutation.Input["fulfillmentId"] = f[0], f[1]
			}
		}
		if s.PreferAllowed && (s.Field == "createFulfillment" || s.Field == "cancelOrderItems") && mutation.Input["lines"] != nil && len(o.Items.Nodes) > 0 {
			mutation.Input["lines"] = []map[string]any{{"sku": o.Items.Nodes[0].ProductID, "quantity": 1}}
		}
	}
	switch s.VersionChoice {
	case LatestVersion:
		if v, ok := m.versions[RecordName(s.Field, mutation.Input, Record{})]; ok {
			mutation.Input["expectedVersion"] = v
		}
	case WrongVersion:
		mutation.Input["expectedVersion"] = 1_000_000
	}
	return mutation
}

// Update updates the client's state with the record that a response contains.
func (m *ClientState) Update(sent Mutation, a Response) {
	if a.RecordJSON == "null" || a.RecordJSON == "" {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	r := a.Record()
	if sent.Field == "createFulfillment" {
		m.fulfillments = append(m.fulfillments, [2]string{fmt.Sprint(sent.Input["orderId"]), r.ID})
	}
	if PayloadRecordFields[sent.Field] == "order" {
		before, known := m.latest[r.ID]
		if !known {
			m.orders = append(m.orders, r.ID)
		}
		if r.Version > before.Version {
			m.latest[r.ID] = r
		}
	}
	if order := sent.Input["orderId"]; PayloadRecordFields[sent.Field] == "return" {
		m.returns = slices.DeleteFunc(m.returns, func(known orderReturn) bool { return known.id == r.ID })
		m.returns = append(m.returns, orderReturn{order.(string), r.ID, r.Status})
		return
	}
	subject := RecordName(sent.Field, sent.Input, r)
	m.versions[subject] = max(m.versions[subject], r.Version)
}
