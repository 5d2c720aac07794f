package sampledata

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/govalues/decimal"
	"github.com/oklog/ulid/v2"

	"github.com/ordergraph/ordergraph/commerce"
)

// Shape describes a dataset to generate. The same Shape always produces the same dataset.
type Shape struct {
	Customers, Products, Orders int
	// MinItems and MaxItems are the minimum and maximum number of line items in an order.
	MinItems, MaxItems int
	// Statuses contains the relative frequencies of the order statuses.
	Statuses StatusWeights
	// Seed determines the random values. Shapes that differ only in Seed produce different datasets of
	// the same size.
	Seed uint64
}

// DefaultShape returns a shape with 10,000 orders within one year. Most of the orders are
// delivered.
func DefaultShape() Shape {
	return Shape{
		Customers: 1000, Products: 500, Orders: 10_000, MinItems: 1, MaxItems: 5, Seed: 1,
		Statuses: StatusWeights{commerce.Pending: 5, commerce.Confirmed: 5, commerce.Shipped: 10, commerce.Delivered: 70, commerce.Cancelled: 10},
	}
}

// StatusWeights contains the relative frequencies of the order statuses, indexed by status.
type StatusWeights [commerce.Cancelled + 1]uint

// The maximum values in a Shape. A larger dataset would require longer IDs, overflow counters, or
// take too long to generate.
const (
	maxGeneratedOrders     = 100_000_000
	maxCustomersOrProducts = 10_000_000
	maxStatusWeight        = 1_000_000
)

// ParseStatusWeights parses weights such as "pending=1,delivered=9". A missing status has the
// weight 0. If the text is invalid or has no weight above 0, ParseStatusWeights returns a
// commerce.InvalidError.
func ParseStatusWeights(s string) (StatusWeights, error) {
	var w StatusWeights
	total, named := uint(0), map[commerce.Status]bool{}
	for part := range strings.SplitSeq(s, ",") {
		name, weight, _ := strings.Cut(part, "=")
		status, err := commerce.ParseStatus(strings.ToLower(name)) // GraphQL's names are in upper case
		if err != nil {
			return w, commerce.NewInvalidError("%q is not a status with a weight, such as pending=1: the statuses are %s", part, strings.Trim(fmt.Sprint(commerce.Statuses()), "[]"))
		}
		if named[status] {
			return w, commerce.NewInvalidError("%q repeats a status", part)
		}
		named[status] = true
		n, err := strconv.ParseUint(weight, 10, 32)
		if err != nil || n > maxStatusWeight {
			return w, commerce.NewInvalidError("%q has an invalid weight: use a whole number up to %d", part, maxStatusWeight)
		}
		total, w[status] = total+uint(n), uint(n)
	}
	if total == 0 {
		return w, commerce.NewInvalidError("has no weight above 0: add a status with a weight, such as pending=1")
	}
	return w, nil
}

// String returns the weights in the syntax of ParseStatusWeights.
func (w StatusWeights) String() string {
	var parts []string
	for _, status := range commerce.Statuses() {
		if w[status] > 0 {
			parts = append(parts, fmt.Sprintf("%s=%d", status, w[status]))
		}
	}
	return strings.Join(parts, ",")
}

// choose maps the random number n to a status. The probability of each status is proportional to
// its weight.
func (w StatusWeights) choose(n uint64) commerce.Status {
	total := uint64(0)
	for _, weight := range w {
		total += uint64(weight)
	}
	n %= total
	for _, status := range commerce.Statuses() {
		if n < uint64(w[status]) {
			return status
		}
		n -= uint64(w[status])
	}
	return commerce.Cancelled
}

// Validate returns an error if a value of the shape is invalid. The command seed has a flag for
// each value. The error names this flag.
func (s Shape) Validate() error {
	for _, n := range []struct {
		name            string
		value, min, max int
	}{
		{"customers", s.Customers, 1, maxCustomersOrProducts}, {"products", s.Products, 1, maxCustomersOrProducts}, {"orders", s.Orders, 0, maxGeneratedOrders},
	} {
		if n.value < n.min || n.value > n.max {
			return fmt.Errorf("%s is %d: use %d to %d", n.name, n.value, n.min, n.max)
		}
	}
	switch {
	case s.MinItems < 1 || s.MaxItems < s.MinItems || s.MaxItems > commerce.MaxLines:
		return fmt.Errorf("items is %d-%d: use a number from 1 to %d, or an ascending range of such numbers", s.MinItems, s.MaxItems, commerce.MaxLines)
	case s.MaxItems > s.Products:
		return fmt.Errorf("products is %d, but an order has up to %d different products: raise products, or lower items", s.Products, s.MaxItems)
	case s.Statuses == StatusWeights{}:
		return fmt.Errorf("statuses has no weight above 0: add a status with a weight, such as pending=1")
	}
	return nil
}

// Generator generates a large dataset in parts, which are small datasets. Each part can be
// generated any number of times, so a Generator keeps no orders in memory.
type Generator struct {
	shape Shape
	// idTag is a part of the generated IDs. It depends on the Shape, so that datasets of different
	// Shapes can be loaded into the same table.
	idTag string
	// seed is computed only from the values of the shape.
	seed uint64
	// orderCounts contains the number of orders of each customer.
	orderCounts []int32
	// reserved contains the quantity of each product that pending and confirmed orders reserve.
	reserved []int32
}

// ordersStart is the beginning of the period in which all generated orders are placed. The period
// is in the past, so that later changes to the orders have later times.
var ordersStart = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)

// ordersPeriod is the length of the period in which all generated orders are placed.
const ordersPeriod = 365 * 24 * time.Hour

// NewGenerator returns a Generator for the shape s. This takes about one second per million orders.
// If s is invalid or ctx ends, NewGenerator returns an error.
func NewGenerator(ctx context.Context, s Shape) (*Generator, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	hash := sha256.Sum256(fmt.Appendf(nil, "%d customers, %d products, %d orders of %d to %d items, %s, %d", s.Customers, s.Products, s.Orders, s.MinItems, s.MaxItems, s.Statuses, s.Seed))
	g := &Generator{
		shape: s, seed: binary.BigEndian.Uint64(hash[:]), idTag: strings.ToLower(base32.StdEncoding.EncodeToString(hash[8:13]))[:6],
		orderCounts: make([]int32, s.Customers), reserved: make([]int32, s.Products),
	}
	// Generate all orders once, to count the orders per customer and the reserved quantity per
	// product.
	for n := range s.Orders {
		if n%4096 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		d := g.draft(n)
		g.orderCounts[d.customer]++
		if d.status.ReservesStock() {
			for _, line := range d.lines {
				g.reserved[line.product] += int32(line.quantity)
			}
		}
	}
	return g, nil
}

// orderDraft contains the randomly chosen values of an order.
type orderDraft struct {
	customer int
	status   commerce.Status
	placedAt time.Time
	lines    []draftLine
	random   *rand.Rand
}

type draftLine struct{ product, quantity int }

// maxQuantity is the maximum quantity of a generated line item. It is small, because one inventory
// level must cover the quantity of a product that all orders reserve.
const maxQuantity = 3

func (g *Generator) draft(n int) orderDraft {
	random := rand.New(rand.NewPCG(g.seed, uint64(n)))
	slot := max(ordersPeriod/time.Duration(max(1, g.shape.Orders)), time.Millisecond)
	d := orderDraft{
		customer: random.IntN(g.shape.Customers), status: g.shape.Statuses.choose(random.Uint64()), random: random,
		// Each order is placed within its own time slot, so the orders are sorted by time.
		placedAt: ordersStart.Add(time.Duration(n)*slot + time.Duration(random.Int64N(int64(slot)))).Truncate(time.Millisecond),
	}
	d.lines = make([]draftLine, g.shape.MinItems+random.IntN(g.shape.MaxItems-g.shape.MinItems+1))
	// An order contains consecutive products, starting with a random product. An order therefore
	// contains no product twice.
	first := random.IntN(g.shape.Products)
	for i := range d.lines {
		d.lines[i] = draftLine{(first + i) % g.shape.Products, 1 + random.IntN(maxQuantity)}
	}
	return d
}

// CustomerID returns the ID of the customer with the number n. The first customer has the number 0.
func (g *Generator) CustomerID(n int) commerce.CustomerID {
	return commerce.CustomerID(fmt.Sprintf("customer-%s-%07d", g.idTag, n))
}

// OrderID returns the ID of the order with the number n. The first order has the number 0. Orders
// with higher numbers have later times.
func (g *Generator) OrderID(n int) commerce.OrderID {
	return commerce.OrderID(g.ulid(g.draft(n).placedAt, "order", n))
}

// ulid returns a ULID with the given time. Instead of random bits, the ULID contains a hash of the
// seed, kind and n. So the same arguments always produce the same ULID.
func (g *Generator) ulid(at time.Time, kind string, n int) string {
	var id ulid.ULID
	hash := sha256.Sum256(fmt.Appendf(nil, "%x %s %d", g.seed, kind, n))
	copy(id[6:], hash[:])
	_ = id.SetTime(uint64(at.UnixMilli())) // fails only for years after 10889
	return id.String()
}

func (g *Generator) sku(n int) commerce.SKU {
	return commerce.SKU(fmt.Sprintf("product-%s-%07d", g.idTag, n))
}

func (g *Generator) warehouseID(n int) commerce.WarehouseID {
	return commerce.WarehouseID(fmt.Sprintf("warehouse-%s-%d", g.idTag, n))
}

func (g *Generator) employeeID(n int) commerce.EmployeeID {
	return commerce.EmployeeID(fmt.Sprintf("employee-%s-%04d", g.idTag, n))
}

// accountRep returns the ID of a customer's account representative.
func (g *Generator) accountRep(customer int) commerce.EmployeeID {
	return g.employeeID(customer % g.accountRepCount())
}

// accountRepCount returns the number of account representatives: one, plus one for every 500
// customers, but at most 100.
func (g *Generator) accountRepCount() int { return min(1+g.shape.Customers/500, 100) }

// customersPerPart, productsPerPart and ordersPerPart limit the number of records in one part, so
// that a few DynamoDB requests can load a part.
const (
	customersPerPart = 50
	productsPerPart  = 50
	ordersPerPart    = 25
	warehouseCount   = 3
)

// MasterData returns all records except orders, in parts. Load all these parts before the orders,
// because orders refer to customers and products.
func (g *Generator) MasterData() iter.Seq[commerce.Dataset] {
	return func(yield func(commerce.Dataset) bool) {
		if !yield(g.warehousesAndEmployees()) {
			return
		}
		for from := 0; from < g.shape.Products; from += productsPerPart {
			var b commerce.Dataset
			for n := from; n < min(from+productsPerPart, g.shape.Products); n++ {
				g.addProduct(&b, n)
			}
			if !yield(b) {
				return
			}
		}
		for from := 0; from < g.shape.Customers; from += customersPerPart {
			var b commerce.Dataset
			for n := from; n < min(from+customersPerPart, g.shape.Customers); n++ {
				b.Customers = append(b.Customers, g.customer(n))
			}
			if !yield(b) {
				return
			}
		}
	}
}

func (g *Generator) warehousesAndEmployees() commerce.Dataset {
	var b commerce.Dataset
	for n, name := range [warehouseCount]string{"North", "East", "Harbour"} {
		b.Warehouses = append(b.Warehouses, commerce.Warehouse{ID: g.warehouseID(n), Name: name, ProductCount: new(g.shape.Products), Version: 1})
	}
	for n := range g.accountRepCount() {
		b.Employees = append(b.Employees, commerce.Employee{
			ID: g.employeeID(n), Name: g.personName(1<<32 + uint64(n)), PhoneNumbers: []string{fmt.Sprintf("+1-555-01%02d", n%100)}, JobTitle: "Account Representative",
			HireDate: commerce.Date(fmt.Sprintf("20%02d-%02d-01", 10+n%15, 1+n%12)), WarehouseID: g.warehouseID(n % warehouseCount), Version: 1,
		})
	}
	return b
}

// The words that the generated names consist of.
var (
	firstNames   = [...]string{"Ada", "Boris", "Chen", "Dana", "Emeka", "Farah", "Goran", "Hana", "Ines", "Jonas", "Kofi", "Lena", "Marta", "Nils", "Olga", "Pavel"}
	lastNames    = [...]string{"Abara", "Brook", "Costa", "Dunn", "Evans", "Fischer", "Gomez", "Haddad", "Ito", "Jensen", "Kaya", "Larsen", "Moreau", "Novak", "Okoye", "Petrov"}
	materials    = [...]string{"Oak", "Steel", "Linen", "Cork", "Glass", "Wool", "Copper", "Clay"}
	productNouns = [...]string{"Lamp", "Mug", "Chair", "Basket", "Clock", "Blanket", "Shelf", "Bowl"}
	categories   = [...]string{"Kitchen", "Living Room", "Bedroom", "Garden", "Office"}
)

func (g *Generator) personName(n uint64) string {
	random := rand.New(rand.NewPCG(g.seed+1, n))
	return firstNames[random.IntN(len(firstNames))] + " " + lastNames[random.IntN(len(lastNames))]
}

func productName(n int) string {
	return fmt.Sprintf("%s %s No. %d", materials[n%len(materials)], productNouns[n/len(materials)%len(productNouns)], n)
}

// price returns the price of the product with the number n. It is also the price of all line items
// of this product.
func (g *Generator) price(n int) commerce.Money {
	cents := 100 + int64(rand.New(rand.NewPCG(g.seed+2, uint64(n))).IntN(20_000))
	return commerce.Money{Amount: decimal.MustNew(cents, 2), Currency: "USD"}
}

func (g *Generator) addProduct(b *commerce.Dataset, n int) {
	random := rand.New(rand.NewPCG(g.seed+3, uint64(n)))
	p := commerce.Product{SKU: g.sku(n), Name: productName(n), Category: categories[n%len(categories)], UnitPrice: g.price(n), Version: 1}
	for w := range warehouseCount {
		quantity := 10 + random.IntN(500)
		if w == n%warehouseCount {
			quantity += int(g.reserved[n]) // so that the stock covers the reserved quantity
		}
		p.TotalInventory += quantity
		b.Levels = append(b.Levels, commerce.InventoryLevel{SKU: p.SKU, WarehouseID: g.warehouseID(w), Quantity: quantity, Version: 1})
	}
	p.Available = p.TotalInventory - int(g.reserved[n])
	b.Products = append(b.Products, p)
}

func (g *Generator) customer(n int) commerce.Customer {
	name, count := g.personName(uint64(n)), int(g.orderCounts[n])
	at := ordersStart.Add(-time.Duration(g.shape.Customers-n) * time.Second)
	return commerce.Customer{
		ID: g.CustomerID(n), Name: name, Email: fmt.Sprintf("%s.%s.%d@example.com", strings.ToLower(strings.ReplaceAll(name, " ", ".")), g.idTag, n),
		PhoneNumbers: []string{fmt.Sprintf("+1-555-01%02d", n%100)}, AccountRepID: g.accountRep(n), OrderCount: &count, CreatedAt: at, UpdatedAt: at, Version: 1,
	}
}

// Orders returns generated orders in parts, sorted by time. The parameter named from is the number
// of the first order. Each part contains ordersPerPart orders, but the last part may contain fewer.
func (g *Generator) Orders(from int) iter.Seq[commerce.Dataset] {
	return func(yield func(commerce.Dataset) bool) {
		for ; from < g.shape.Orders; from += ordersPerPart {
			var b commerce.Dataset
			for n := from; n < min(from+ordersPerPart, g.shape.Orders); n++ {
				b.Orders = append(b.Orders, g.order(n))
			}
			if !yield(b) {
				return
			}
		}
	}
}

func (g *Generator) order(n int) commerce.OrderWithItems {
	d := g.draft(n)
	o := commerce.OrderWithItems{Order: commerce.Order{
		ID: commerce.OrderID(g.ulid(d.placedAt, "order", n)), CustomerID: g.CustomerID(d.customer), Status: d.status, Total: commerce.Money{Currency: "USD"},
		AccountRepID: g.accountRep(d.customer), PlacedAt: d.placedAt,
		ShippingAddress: &commerce.Address{
			Recipient: g.personName(uint64(d.customer)), Line1: fmt.Sprintf("%d Main Street", 1+d.customer%999), City: "Springfield", Region: "OR",
			PostalCode: fmt.Sprintf("97%03d", d.customer%1000), CountryCode: "US",
		},
	}}
	cents := int64(0)
	for _, line := range d.lines {
		price := g.price(line.product)
		o.Lines = append(o.Lines, commerce.LineItem{
			OrderID: o.ID, CustomerID: o.CustomerID, SKU: g.sku(line.product), Name: productName(line.product), Quantity: line.quantity, UnitPrice: price,
		})
		cents += int64(price.Amount.Coef()) * int64(line.quantity)
	}
	o.Total.Amount = decimal.MustNew(cents, 2)
	count := len(o.Lines)
	o.ItemCount = &count
	g.addEvents(&o, n, d)
	return o
}

// addEvents adds the events that lead to the order's current status.
func (g *Generator) addEvents(o *commerce.OrderWithItems, n int, d orderDraft) {
	path := []commerce.Status{commerce.Pending, commerce.Confirmed, commerce.Shipped, commerce.Delivered}
	if d.status == commerce.Cancelled {
		path = []commerce.Status{commerce.Pending, commerce.Cancelled}
	}
	types := map[commerce.Status]commerce.EventType{
		commerce.Pending: commerce.EventPlaced, commerce.Confirmed: commerce.EventConfirmed, commerce.Shipped: commerce.EventShipped,
		commerce.Delivered: commerce.EventDelivered, commerce.Cancelled: commerce.EventCancelled,
	}
	at, before := d.placedAt, commerce.Status(0)
	for _, status := range path[:slices.Index(path, d.status)+1] {
		o.Events = append(o.Events, commerce.Event{
			ID: commerce.EventID(g.ulid(at, string(types[status]), n)), OrderID: o.ID, Type: types[status], From: before, To: status, At: at, Actor: "generator", Version: len(o.Events) + 1,
		})
		o.UpdatedAt, before = at, status
		at = at.Add(time.Hour + time.Duration(d.random.Int64N(int64(48*time.Hour)))).Truncate(time.Millisecond)
	}
	o.Version = len(o.Events)
}
