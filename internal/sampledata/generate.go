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

// Shape says what a generated order book is like. The same shape is always the same book.
type Shape struct {
	Customers, Products, Orders int
	// FewestItems and MostItems are how many items an order has.
	FewestItems, MostItems int
	// Statuses weigh how often each status is met.
	Statuses Weights
	// Seed makes another book of the same size.
	Seed uint64
}

// DefaultShape is a shop of a year: some orders each day, most of them delivered.
func DefaultShape() Shape {
	return Shape{
		Customers: 1000, Products: 500, Orders: 10_000, FewestItems: 1, MostItems: 5, Seed: 1,
		Statuses: Weights{commerce.Pending: 5, commerce.Confirmed: 5, commerce.Shipped: 10, commerce.Delivered: 70, commerce.Cancelled: 10},
	}
}

// Weights are how often each status is met, in proportion to each other.
type Weights [commerce.Cancelled + 1]uint

// The most of everything. Behind them ids would be longer, counters would not fit, or nobody would
// see the end.
const (
	maxGeneratedOrders = 100_000_000
	maxGenerated       = 10_000_000
	maxWeight          = 1_000_000
)

// ParseWeights reads weights such as "pending=1,delivered=9". A status that is not named is not
// met.
//
// Errors: commerce.InvalidError for anything else, where a status is named twice, and where all are
// 0.
func ParseWeights(s string) (Weights, error) {
	var w Weights
	total, named := uint(0), map[commerce.Status]bool{}
	for part := range strings.SplitSeq(s, ",") {
		name, weight, _ := strings.Cut(part, "=")
		status, err := commerce.ParseStatus(strings.ToLower(name)) // GraphQL's names are in capitals
		if err != nil {
			return w, commerce.Invalid("%q is no status with its weight, such as pending=1: there are %s", part, strings.Trim(fmt.Sprint(commerce.Statuses()), "[]"))
		}
		if named[status] {
			return w, commerce.Invalid("%q names a status again", part)
		}
		named[status] = true
		n, err := strconv.ParseUint(weight, 10, 32)
		if err != nil || n > maxWeight {
			return w, commerce.Invalid("%q is no status with its weight: give a whole number up to %d", part, maxWeight)
		}
		total, w[status] = total+uint(n), uint(n)
	}
	if total == 0 {
		return w, commerce.Invalid("has no status that is met at all")
	}
	return w, nil
}

// String returns the weights as ParseWeights reads them.
func (w Weights) String() string {
	var parts []string
	for _, status := range commerce.Statuses() {
		if w[status] > 0 {
			parts = append(parts, fmt.Sprintf("%s=%d", status, w[status]))
		}
	}
	return strings.Join(parts, ",")
}

// at is the status whose share of the weights the number n, of any size, falls into.
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

// Check reports whether there can be a book of that shape.
//
// Errors: one that says which field has to change, in the words of the command's flags.
func (s Shape) Check() error {
	for _, n := range []struct {
		name            string
		is, least, most int
	}{
		{"customers", s.Customers, 1, maxGenerated}, {"products", s.Products, 1, maxGenerated}, {"orders", s.Orders, 0, maxGeneratedOrders},
	} {
		if n.is < n.least || n.is > n.most {
			return fmt.Errorf("%s is %d: give %d to %d", n.name, n.is, n.least, n.most)
		}
	}
	switch {
	case s.FewestItems < 1 || s.MostItems < s.FewestItems || s.MostItems > commerce.MaxLines:
		return fmt.Errorf("items is %d-%d: give a number, or a range from the smaller to the larger one, of 1 to %d", s.FewestItems, s.MostItems, commerce.MaxLines)
	case s.MostItems > s.Products:
		return fmt.Errorf("products is %d, and orders have up to %d items: give as many products at least, as an order has each only once", s.Products, s.MostItems)
	case s.Statuses == Weights{}:
		return fmt.Errorf("statuses names no status that is met: give one a weight, such as pending=1")
	}
	return nil
}

// Generator makes a book of a shape in parts, each as often as it is asked for. It holds two
// numbers for each customer and product, and no orders, so that a million of them take no more
// memory than one.
//
// Every id holds a mark made of the shape: two books of different shapes have no id in common, and
// can stand in one table.
type Generator struct {
	shape Shape
	mark  string
	// seed is of the shape, and of nothing else.
	seed uint64
	// placed is how many orders each customer has, reserved how many pieces of each product pending
	// and confirmed orders hold back.
	placed, reserved []int32
}

// firstOrder is when the first order of every generated book was placed, and span how long it is
// from there to the last one. The past, so that what is done to the orders later happens later.
var firstOrder = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)

const span = 365 * 24 * time.Hour

// NewGenerator returns what makes the book of that shape. It looks at each order once, to count:
// about a second for a million.
//
// Errors: those of Shape.Check; the context's, as the most orders there can be take minutes.
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

// draft is what is decided about an order at random.
type draft struct {
	customer int
	status   commerce.Status
	at       time.Time
	lines    []draftLine
	random   *rand.Rand
}

type draftLine struct{ product, quantity int }

// maxPieces is how many pieces a generated line has at most. With the most orders there can be,
// reserved stays below what a level may be.
const maxPieces = 3

func (g *Generator) draft(n int) draft {
	random := rand.New(rand.NewPCG(g.seed, uint64(n)))
	slot := max(span/time.Duration(max(1, g.shape.Orders)), time.Millisecond)
	d := draft{
		customer: random.IntN(g.shape.Customers), status: g.shape.Statuses.at(random.Uint64()), random: random,
		// Each order is placed in its own part of the year, so that orders come in the order of
		// their numbers.
		at: firstOrder.Add(time.Duration(n)*slot + time.Duration(random.Int64N(int64(slot)))).Truncate(time.Millisecond),
	}
	d.lines = make([]draftLine, g.shape.FewestItems+random.IntN(g.shape.MostItems-g.shape.FewestItems+1))
	// Products next to each other, from any on: no product twice without having to look.
	first := random.IntN(g.shape.Products)
	for i := range d.lines {
		d.lines[i] = draftLine{(first + i) % g.shape.Products, 1 + random.IntN(maxPieces)}
	}
	return d
}

// Customer is the id of the n-th customer, from 0 on.
func (g *Generator) Customer(n int) commerce.CustomerID {
	return commerce.CustomerID(fmt.Sprintf("customer-%s-%07d", g.mark, n))
}

// Order is the id of the n-th order, from 0 on, in the order in which they were placed.
func (g *Generator) Order(n int) commerce.OrderID {
	return commerce.OrderID(g.ulid(g.draft(n).at, "order", n))
}

// ulid is an id of that time, with a hash where others have random bits.
func (g *Generator) ulid(at time.Time, kind string, n int) string {
	var id ulid.ULID
	hash := sha256.Sum256(fmt.Appendf(nil, "%x %s %d", g.seed, kind, n))
	copy(id[6:], hash[:])
	_ = id.SetTime(uint64(at.UnixMilli())) // a year that ULIDs can tell
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

// rep is who looks after a customer.
func (g *Generator) rep(customer int) commerce.EmployeeID { return g.employee(customer % g.reps()) }

// reps is how many employees look after customers: one for each five hundred, up to a hundred.
func (g *Generator) reps() int { return min(1+g.shape.Customers/500, 100) }

// How many records of a kind a part of a book has: a few requests' worth.
const (
	generatedCustomers = 50
	generatedProducts  = 50
	generatedOrders    = 25
	warehouses         = 3
)

// Stock is everything but orders: warehouses, employees, products with their inventory, and
// customers, in parts. It belongs into the table before any order does.
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

// What names are made of.
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

// price is what a product costs: the same for the product as for the items of it.
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
			quantity += int(g.reserved[n]) // what is ordered is there
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

// Orders are the orders from the n-th on, in parts, from the first one placed to the last. Each
// part has the same number of them, but the last one.
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

// happened gives an order the timeline that leads to its status.
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
