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

// Shape describes a generated dataset. The same shape always generates the same dataset.
type Shape struct {
	Customers, Products, Orders int
	// FewestItems and MostItems are the minimum and maximum number of line items per order.
	FewestItems, MostItems int
	// Statuses are the relative frequencies of the order statuses.
	Statuses Weights
	// Seed selects another dataset of the same size.
	Seed uint64
}

// DefaultShape returns a shape with a year of orders, most of them delivered.
func DefaultShape() Shape {
	return Shape{
		Customers: 1000, Products: 500, Orders: 10_000, FewestItems: 1, MostItems: 5, Seed: 1,
		Statuses: Weights{commerce.Pending: 5, commerce.Confirmed: 5, commerce.Shipped: 10, commerce.Delivered: 70, commerce.Cancelled: 10},
	}
}

// Weights are the relative frequencies of the order statuses.
type Weights [commerce.Cancelled + 1]uint

// Maximum sizes. Beyond them, IDs would be longer, counters would overflow, or generating would
// take too long.
const (
	maxGeneratedOrders = 100_000_000
	maxGenerated       = 10_000_000
	maxWeight          = 1_000_000
)

// ParseWeights parses weights such as "pending=1,delivered=9". A status that is not named has the
// weight 0.
//
// It returns a commerce.InvalidError if the text is malformed, names a status twice, or has only
// weights of 0.
func ParseWeights(s string) (Weights, error) {
	var w Weights
	total, named := uint(0), map[commerce.Status]bool{}
	for part := range strings.SplitSeq(s, ",") {
		name, weight, _ := strings.Cut(part, "=")
		status, err := commerce.ParseStatus(strings.ToLower(name)) // GraphQL's names are in upper case
		if err != nil {
			return w, commerce.Invalid("%q is not a status with a weight, such as pending=1: use %s", part, strings.Trim(fmt.Sprint(commerce.Statuses()), "[]"))
		}
		if named[status] {
			return w, commerce.Invalid("%q repeats a status", part)
		}
		named[status] = true
		n, err := strconv.ParseUint(weight, 10, 32)
		if err != nil || n > maxWeight {
			return w, commerce.Invalid("%q has an invalid weight: use a whole number up to %d", part, maxWeight)
		}
		total, w[status] = total+uint(n), uint(n)
	}
	if total == 0 {
		return w, commerce.Invalid("has no weight above 0")
	}
	return w, nil
}

// String returns the weights in the syntax of ParseWeights.
func (w Weights) String() string {
	var parts []string
	for _, status := range commerce.Statuses() {
		if w[status] > 0 {
			parts = append(parts, fmt.Sprintf("%s=%d", status, w[status]))
		}
	}
	return strings.Join(parts, ",")
}

// at returns a status with a probability in proportion to its weight. n is a random number.
func (w Weights) at(n uint64) commerce.Status {
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

// Check validates the shape. Its error names the flag of the seed command that must change.
func (s Shape) Check() error {
	for _, n := range []struct {
		name            string
		value, min, max int
	}{
		{"customers", s.Customers, 1, maxGenerated}, {"products", s.Products, 1, maxGenerated}, {"orders", s.Orders, 0, maxGeneratedOrders},
	} {
		if n.value < n.min || n.value > n.max {
			return fmt.Errorf("%s is %d: use %d to %d", n.name, n.value, n.min, n.max)
		}
	}
	switch {
	case s.FewestItems < 1 || s.MostItems < s.FewestItems || s.MostItems > commerce.MaxLines:
		return fmt.Errorf("items is %d-%d: use a number or an ascending range within 1 to %d", s.FewestItems, s.MostItems, commerce.MaxLines)
	case s.MostItems > s.Products:
		return fmt.Errorf("products is %d, but an order has up to %d different products: raise products, or lower items", s.Products, s.MostItems)
	case s.Statuses == Weights{}:
		return fmt.Errorf("statuses has no weight above 0: add one, such as pending=1")
	}
	return nil
}

// Generator generates a dataset in parts. Each part can be generated repeatedly. The generator
// keeps two numbers per customer and product and no orders, so its memory does not depend on the
// number of orders.
//
// Every ID contains a prefix derived from the shape. So datasets of different shapes share no ID,
// and can be loaded into one table.
type Generator struct {
	shape Shape
	mark  string
	// seed is derived from the shape only.
	seed uint64
	// placed is the number of orders per customer.
	placed []int32
	// reserved is the quantity of each product that pending and confirmed orders reserve.
	reserved []int32
}

// firstOrder is the start of the period in which all orders are placed. The period is in the past,
// so that later changes of the orders have later times.
var firstOrder = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)

// span is the length of the period in which all orders are placed.
const span = 365 * 24 * time.Hour

// NewGenerator returns a generator for a shape. It generates each order once to count, which takes
// about a second per million orders.
//
// It returns the errors of Shape.Check, or the error of ctx, because the largest shapes take
// minutes.
func NewGenerator(ctx context.Context, s Shape) (*Generator, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	hash := sha256.Sum256(fmt.Appendf(nil, "%d customers, %d products, %d orders of %d to %d items, %s, %d", s.Customers, s.Products, s.Orders, s.FewestItems, s.MostItems, s.Statuses, s.Seed))
	g := &Generator{
		shape: s, seed: binary.BigEndian.Uint64(hash[:]), mark: strings.ToLower(base32.StdEncoding.EncodeToString(hash[8:13]))[:6],
		placed: make([]int32, s.Customers), reserved: make([]int32, s.Products),
	}
	for n := range s.Orders {
		if n%4096 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		d := g.draft(n)
		g.placed[d.customer]++
		if d.status.Reserves() {
			for _, line := range d.lines {
				g.reserved[line.product] += int32(line.quantity)
			}
		}
	}
	return g, nil
}

// draft contains the random choices of an order.
type draft struct {
	customer int
	status   commerce.Status
	at       time.Time
	lines    []draftLine
	random   *rand.Rand
}

type draftLine struct{ product, quantity int }

// maxPieces is the maximum quantity of a generated line item. Even with the maximum number of
// orders, the reserved quantity stays below the maximum of an inventory level.
const maxPieces = 3

func (g *Generator) draft(n int) draft {
	random := rand.New(rand.NewPCG(g.seed, uint64(n)))
	slot := max(span/time.Duration(max(1, g.shape.Orders)), time.Millisecond)
	d := draft{
		customer: random.IntN(g.shape.Customers), status: g.shape.Statuses.at(random.Uint64()), random: random,
		// Each order has its own time slot, so the orders are sorted by time.
		at: firstOrder.Add(time.Duration(n)*slot + time.Duration(random.Int64N(int64(slot)))).Truncate(time.Millisecond),
	}
	d.lines = make([]draftLine, g.shape.FewestItems+random.IntN(g.shape.MostItems-g.shape.FewestItems+1))
	// Consecutive products from a random start cannot repeat within an order.
	first := random.IntN(g.shape.Products)
	for i := range d.lines {
		d.lines[i] = draftLine{(first + i) % g.shape.Products, 1 + random.IntN(maxPieces)}
	}
	return d
}

// Customer returns the ID of the n-th customer, counted from 0.
func (g *Generator) Customer(n int) commerce.CustomerID {
	return commerce.CustomerID(fmt.Sprintf("customer-%s-%07d", g.mark, n))
}

// Order returns the ID of the n-th order, counted from 0, sorted by time.
func (g *Generator) Order(n int) commerce.OrderID {
	return commerce.OrderID(g.ulid(g.draft(n).at, "order", n))
}

// ulid returns a ULID with a hash instead of random bits.
func (g *Generator) ulid(at time.Time, kind string, n int) string {
	var id ulid.ULID
	hash := sha256.Sum256(fmt.Appendf(nil, "%x %s %d", g.seed, kind, n))
	copy(id[6:], hash[:])
	_ = id.SetTime(uint64(at.UnixMilli())) // fails only for years after 10889
	return id.String()
}

func (g *Generator) sku(n int) commerce.SKU {
	return commerce.SKU(fmt.Sprintf("product-%s-%07d", g.mark, n))
}

func (g *Generator) warehouse(n int) commerce.WarehouseID {
	return commerce.WarehouseID(fmt.Sprintf("warehouse-%s-%d", g.mark, n))
}

func (g *Generator) employee(n int) commerce.EmployeeID {
	return commerce.EmployeeID(fmt.Sprintf("employee-%s-%04d", g.mark, n))
}

// rep returns the account representative of a customer.
func (g *Generator) rep(customer int) commerce.EmployeeID { return g.employee(customer % g.reps()) }

// reps returns the number of account representatives: one per 500 customers, at most 100.
func (g *Generator) reps() int { return min(1+g.shape.Customers/500, 100) }

// Numbers of records per part, enough for a few requests, and the number of warehouses.
const (
	generatedCustomers = 50
	generatedProducts  = 50
	generatedOrders    = 25
	warehouses         = 3
)

// Stock returns everything except orders in parts: warehouses, employees, products with their
// inventory, and customers. Load these parts before the orders.
func (g *Generator) Stock() iter.Seq[commerce.Book] {
	return func(yield func(commerce.Book) bool) {
		if !yield(g.staff()) {
			return
		}
		for from := 0; from < g.shape.Products; from += generatedProducts {
			var b commerce.Book
			for n := from; n < min(from+generatedProducts, g.shape.Products); n++ {
				g.stockUp(&b, n)
			}
			if !yield(b) {
				return
			}
		}
		for from := 0; from < g.shape.Customers; from += generatedCustomers {
			var b commerce.Book
			for n := from; n < min(from+generatedCustomers, g.shape.Customers); n++ {
				b.Customers = append(b.Customers, g.customer(n))
			}
			if !yield(b) {
				return
			}
		}
	}
}

func (g *Generator) staff() commerce.Book {
	var b commerce.Book
	for n, name := range [warehouses]string{"North", "East", "Harbour"} {
		b.Warehouses = append(b.Warehouses, commerce.Warehouse{ID: g.warehouse(n), Name: name, Version: 1})
	}
	for n := range g.reps() {
		b.Employees = append(b.Employees, commerce.Employee{
			ID: g.employee(n), Name: g.name(1<<32 + uint64(n)), PhoneNumbers: []string{fmt.Sprintf("+1-555-01%02d", n%100)}, JobTitle: "Account Representative",
			HireDate: commerce.Date(fmt.Sprintf("20%02d-%02d-01", 10+n%15, 1+n%12)), WarehouseID: g.warehouse(n % warehouses), Version: 1,
		})
	}
	return b
}

// Parts of generated names.
var (
	firstNames = [...]string{"Ada", "Boris", "Chen", "Dana", "Emeka", "Farah", "Goran", "Hana", "Ines", "Jonas", "Kofi", "Lena", "Marta", "Nils", "Olga", "Pavel"}
	lastNames  = [...]string{"Abara", "Brook", "Costa", "Dunn", "Evans", "Fischer", "Gomez", "Haddad", "Ito", "Jensen", "Kaya", "Larsen", "Moreau", "Novak", "Okoye", "Petrov"}
	materials  = [...]string{"Oak", "Steel", "Linen", "Cork", "Glass", "Wool", "Copper", "Clay"}
	things     = [...]string{"Lamp", "Mug", "Chair", "Basket", "Clock", "Blanket", "Shelf", "Bowl"}
	categories = [...]string{"Kitchen", "Living Room", "Bedroom", "Garden", "Office"}
)

func (g *Generator) name(n uint64) string {
	random := rand.New(rand.NewPCG(g.seed+1, n))
	return firstNames[random.IntN(len(firstNames))] + " " + lastNames[random.IntN(len(lastNames))]
}

func productName(n int) string {
	return fmt.Sprintf("%s %s No. %d", materials[n%len(materials)], things[n/len(materials)%len(things)], n)
}

// price returns the price of a product, which is also the price of its line items.
func (g *Generator) price(n int) commerce.Money {
	cents := 100 + int64(rand.New(rand.NewPCG(g.seed+2, uint64(n))).IntN(20_000))
	return commerce.Money{Amount: decimal.MustNew(cents, 2), Currency: "USD"}
}

func (g *Generator) stockUp(b *commerce.Book, n int) {
	random := rand.New(rand.NewPCG(g.seed+3, uint64(n)))
	p := commerce.Product{SKU: g.sku(n), Name: productName(n), Category: categories[n%len(categories)], UnitPrice: g.price(n), Version: 1}
	for w := range warehouses {
		quantity := 10 + random.IntN(500)
		if w == n%warehouses {
			quantity += int(g.reserved[n]) // stock for all reserved quantities
		}
		p.TotalInventory += quantity
		b.Levels = append(b.Levels, commerce.InventoryLevel{SKU: p.SKU, WarehouseID: g.warehouse(w), Quantity: quantity, Version: 1})
	}
	p.Available = p.TotalInventory - int(g.reserved[n])
	b.Products = append(b.Products, p)
}

func (g *Generator) customer(n int) commerce.Customer {
	name, count := g.name(uint64(n)), int(g.placed[n])
	at := firstOrder.Add(-time.Duration(g.shape.Customers-n) * time.Second)
	return commerce.Customer{
		ID: g.Customer(n), Name: name, Email: fmt.Sprintf("%s.%s.%d@example.com", strings.ToLower(strings.ReplaceAll(name, " ", ".")), g.mark, n),
		PhoneNumbers: []string{fmt.Sprintf("+1-555-01%02d", n%100)}, AccountRepID: g.rep(n), OrderCount: &count, CreatedAt: at, UpdatedAt: at, Version: 1,
	}
}

// Orders returns the orders from the n-th on, sorted by time, in parts of equal size. Only the last
// part may be smaller.
func (g *Generator) Orders(from int) iter.Seq[commerce.Book] {
	return func(yield func(commerce.Book) bool) {
		for ; from < g.shape.Orders; from += generatedOrders {
			var b commerce.Book
			for n := from; n < min(from+generatedOrders, g.shape.Orders); n++ {
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
		ID: commerce.OrderID(g.ulid(d.at, "order", n)), CustomerID: g.Customer(d.customer), Status: d.status, Total: commerce.Money{Currency: "USD"},
		AccountRepID: g.rep(d.customer), PlacedAt: d.at,
		ShippingAddress: &commerce.Address{
			Recipient: g.name(uint64(d.customer)), Line1: fmt.Sprintf("%d Main Street", 1+d.customer%999), City: "Springfield", Region: "OR",
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
	g.happened(&o, n, d)
	return o
}

// happened adds the events that lead to the order's status.
func (g *Generator) happened(o *commerce.OrderWithItems, n int, d draft) {
	path := []commerce.Status{commerce.Pending, commerce.Confirmed, commerce.Shipped, commerce.Delivered}
	if d.status == commerce.Cancelled {
		path = []commerce.Status{commerce.Pending, commerce.Cancelled}
	}
	types := map[commerce.Status]commerce.EventType{
		commerce.Pending: commerce.EventPlaced, commerce.Confirmed: commerce.EventConfirmed, commerce.Shipped: commerce.EventShipped,
		commerce.Delivered: commerce.EventDelivered, commerce.Cancelled: commerce.EventCancelled,
	}
	at, before := d.at, commerce.Status(0)
	for _, status := range path[:slices.Index(path, d.status)+1] {
		o.Events = append(o.Events, commerce.Event{
			ID: commerce.EventID(g.ulid(at, string(types[status]), n)), OrderID: o.ID, Type: types[status], From: before, To: status, At: at, Actor: "generator",
		})
		o.UpdatedAt, before = at, status
		at = at.Add(time.Hour + time.Duration(d.random.Int64N(int64(48*time.Hour)))).Truncate(time.Millisecond)
	}
	o.Version = len(o.Events)
}
