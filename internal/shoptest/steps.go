package shoptest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Step is a mutation that a client will send. A Step is generated before the run, so the order that
// it changes is chosen later, when the client sends it.
type Step struct {
	Mutation
	// Order selects one of the orders that exist when the step is sent. It is -1 if the mutation does
	// not change an order.
	Order int
	// Fitting reports whether the step prefers orders whose last known status allows the mutation.
	Fitting bool
	// Expect determines the expectedVersion.
	Expect Expectation
	// Twice reports whether the client sends the mutation twice with the same key. It has no effect
	// without a key.
	Twice bool
}

// Expectation determines the expectedVersion of a mutation.
type Expectation int

// The values of Expectation: no expectedVersion, the last known version, or a version that no
// record has.
const (
	Any Expectation = iota
	Known
	Wrong
)

// String formats the step for messages.
func (s Step) String() string {
	return fmt.Sprintf("%s%v order %d, expected version %d, twice %v", s.Field, s.Input, s.Order, s.Expect, s.Twice)
}

// Steps generates random steps for a World.
type Steps struct {
	World World
	// Int returns a random number in [0, n).
	Int func(n int) int
}

func (s Steps) one(choices ...string) string { return choices[s.Int(len(choices))] }

// likely returns true in n-1 of n cases. Small random numbers stand for the usual cases, because
// generators that shrink prefer small numbers.
func (s Steps) likely(n int) bool { return s.Int(n) < n-1 }

// pick returns an ID of the World, or in one of 8 cases an ID that only steps create.
func (s Steps) pick(prefix string, n int) string {
	if s.likely(8) {
		return fmt.Sprintf("%s%d", prefix, s.Int(n))
	}
	return fmt.Sprintf("%snew%d", prefix, s.Int(8))
}

// fresh returns an ID for a new record. There are few such IDs, so other steps may have created it.
// In one of 8 cases, fresh returns an ID of the World.
func (s Steps) fresh(prefix string) string {
	if s.likely(8) {
		return fmt.Sprintf("%snew%d", prefix, s.Int(8))
	}
	return prefix + "0"
}

func (s Steps) customer() string  { return s.pick("c", s.World.Customers) }
func (s Steps) product() string   { return s.pick("p", s.World.Products) }
func (s Steps) warehouse() string { return s.pick("w", s.World.Warehouses) }
func (s Steps) employee() string  { return s.pick("e", s.World.Employees) }

// email returns one of few email addresses, in one of two spellings.
func (s Steps) email() string {
	address := fmt.Sprintf("shared%d@example.com", s.Int(8))
	if s.likely(3) {
		return address
	}
	return strings.ToUpper(address[:1]) + address[1:]
}

func (s Steps) price() map[string]any {
	return map[string]any{"amount": fmt.Sprintf("%d.%d0", 1+s.Int(9), s.Int(10))}
}

func (s Steps) address() map[string]any {
	return map[string]any{"recipient": "R", "line1": fmt.Sprintf("%d Main Street", 1+s.Int(3)), "city": "Springfield", "countryCode": "US"}
}

// Next generates a step for a mutation. name is an idempotency key that no other step has. The step
// uses name, a key that several steps share, or no key.
func (s Steps) Next(field, name string) Step {
	step := Step{Mutation: Mutation{Field: field, Input: map[string]any{}}, Order: -1}
	in := step.Input
	// maybe adds a value in half of the cases.
	maybe := func(name string, value func() any) {
		if s.Int(2) == 1 {
			in[name] = value()
		}
	}
	keyed, versioned := false, false
	if canDo[field] != nil {
		step.Order, step.Fitting = s.Int(6), s.likely(5)
	}
	switch field {
	case "createCustomer":
		keyed = true
		maybe("id", func() any { return s.fresh("c") })
		in["name"], in["email"] = "New customer", s.email()
		maybe("accountRepId", func() any { return s.employee() })
	case "updateCustomer":
		versioned = true
		in["id"] = s.customer()
		maybe("name", func() any { return fmt.Sprintf("Renamed %d", s.Int(3)) })
		maybe("email", func() any { return s.email() })
		maybe("phoneNumbers", func() any { return []string{"+1 555 0100", "+1 555 0101"}[:s.Int(3)] })
	case "assignAccountRep":
		versioned = true
		in["customerId"], in["employeeId"] = s.customer(), nil
		maybe("employeeId", func() any { return s.employee() })
	case "placeOrder":
		keyed = true
		in["customerId"] = s.customer()
		var items []map[string]any
		for range 1 + s.Int(3) {
			items = append(items, map[string]any{"sku": s.product(), "quantity": 1 + s.Int(3)})
		}
		in["items"] = items
		maybe("shippingAddress", func() any { return s.address() })
	case "confirmOrder", "deliverOrder", "cancelOrder", "shipOrder":
		keyed, versioned = true, true
		maybe("note", func() any { return s.one("soon", "late") })
		if field == "shipOrder" {
			in["warehouseId"], in["withoutAddress"] = s.warehouse(), s.likely(4)
			maybe("trackingNumber", func() any { return s.one("1Z999", "1Z998") })
			maybe("carrier", func() any { return s.one("UPS", "DHL") })
		}
	case "setOrderItem", "removeOrderItem":
		versioned = true
		in["sku"] = s.product()
		if field == "setOrderItem" {
			in["quantity"] = 1 + s.Int(5)
		}
	case "updateShippingAddress":
		versioned = true
		in["shippingAddress"] = s.address()
	case "createProduct":
		keyed = true
		in["sku"], in["name"], in["category"], in["unitPrice"] = s.fresh("p"), "New product", s.one("Things", "Others"), s.price()
	case "updateProduct":
		versioned = true
		in["sku"] = s.product()
		maybe("name", func() any { return fmt.Sprintf("Renamed %d", s.Int(3)) })
		maybe("category", func() any { return s.one("Things", "Others") })
		maybe("unitPrice", func() any { return s.price() })
	case "createWarehouse":
		keyed = true
		maybe("id", func() any { return s.fresh("w") })
		in["name"] = "New warehouse"
	case "setInventoryLevel":
		versioned = true
		in["sku"], in["warehouseId"], in["quantity"] = s.product(), s.warehouse(), s.Int(9)
	case "adjustInventory":
		keyed = true
		in["sku"], in["warehouseId"] = s.product(), s.warehouse()
		in["delta"] = 1 + s.Int(4)
		if s.Int(2) == 1 {
			in["delta"] = -1 - s.Int(4)
		}
	case "hireEmployee":
		keyed = true
		maybe("id", func() any { return s.fresh("e") })
		in["name"], in["jobTitle"], in["hireDate"] = "New employee", s.one("Clerk", "Driver"), "2025-03-04"
		maybe("warehouseId", func() any { return s.warehouse() })
	case "updateEmployee":
		versioned = true
		in["id"] = s.employee()
		maybe("name", func() any { return fmt.Sprintf("Renamed %d", s.Int(3)) })
		maybe("jobTitle", func() any { return s.one("Clerk", "Driver") })
		if s.Int(2) == 1 {
			in["warehouseId"] = nil
			if s.likely(3) {
				in["warehouseId"] = s.warehouse()
			}
		}
	}
	if keyed {
		switch s.Int(5) {
		case 4:
		case 3:
			in["idempotencyKey"] = fmt.Sprintf("shared-%d", s.Int(3))
		default:
			in["idempotencyKey"] = name
		}
		step.Twice = s.Int(3) == 1
	}
	if versioned {
		step.Expect = Expectation(max(0, s.Int(5)-2))
	}
	return step
}

// canDo has the mutations of an order, with the statuses that allow them.
var canDo = map[string][]string{
	"confirmOrder": {"PENDING"}, "shipOrder": {"CONFIRMED"}, "deliverOrder": {"SHIPPED"}, "cancelOrder": {"PENDING", "CONFIRMED"},
	"setOrderItem": {"PENDING"}, "removeOrderItem": {"PENDING"}, "updateShippingAddress": {"PENDING", "CONFIRMED"},
}

// Memory is the state that clients know from responses. It is safe for concurrent use.
type Memory struct {
	mu       sync.Mutex
	orders   []string
	latest   map[string]Result
	versions map[string]int
}

// NewMemory returns an empty Memory.
func NewMemory() *Memory { return &Memory{latest: map[string]Result{}, versions: map[string]int{}} }

// pick returns the order that a step changes. It prefers recently placed orders, because most older
// orders are final.
func (m *Memory) pick(s Step) Result {
	var fitting []string
	for _, id := range m.orders {
		o := m.latest[id]
		if s.Fitting && slices.Contains(canDo[s.Field], o.Status) && (s.Field != "removeOrderItem" || len(o.Items.Nodes) > 1) {
			fitting = append(fitting, id)
		}
	}
	if len(fitting) == 0 {
		fitting = m.orders
	}
	if len(fitting) == 0 {
		return Result{ID: noOrder}
	}
	return m.latest[fitting[max(0, len(fitting)-1-s.Order)]]
}

// noOrder is the ID of an order that does not exist.
const noOrder = "01HVMK3P2Q000000000000000Z"

// Subject returns the type and ID of the record that a mutation changes or returns, such as
// "customer c1". It returns "" if the record does not have an ID yet.
func Subject(field string, in map[string]any, r Result) string {
	text := func(name string) string { s, _ := in[name].(string); return s }
	kind := Yields[field]
	id := r.ID
	switch {
	case kind == "product":
		id = r.Sku
		if id == "" {
			id = text("sku")
		}
	case kind == "inventoryLevel":
		return kind + " " + text("sku") + " " + text("warehouseId")
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

// Now returns the mutation of a step, based on the current state.
func (m *Memory) Now(s Step) Mutation {
	m.mu.Lock()
	defer m.mu.Unlock()
	mutation := Mutation{Field: s.Field, Input: maps.Clone(s.Input)}
	if s.Order >= 0 {
		o := m.pick(s)
		mutation.Input["orderId"] = o.ID
		if s.Fitting && s.Field == "removeOrderItem" && len(o.Items.Nodes) > 0 {
			mutation.Input["sku"] = o.Items.Nodes[0].ProductID
		}
	}
	switch s.Expect {
	case Known:
		if v, ok := m.versions[Subject(s.Field, mutation.Input, Result{})]; ok {
			mutation.Input["expectedVersion"] = v
		}
	case Wrong:
		mutation.Input["expectedVersion"] = 1_000_000
	}
	return mutation
}

// Learn updates the state from a response.
func (m *Memory) Learn(sent Mutation, a Answer) {
	if a.Result == "null" || a.Result == "" {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	r := a.Record()
	if Yields[sent.Field] == "order" {
		before, known := m.latest[r.ID]
		if !known {
			m.orders = append(m.orders, r.ID)
		}
		if r.Version > before.Version {
			m.latest[r.ID] = r
		}
	}
	subject := Subject(sent.Field, sent.Input, r)
	m.versions[subject] = max(m.versions[subject], r.Version)
}
