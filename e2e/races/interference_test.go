package races_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/change"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
	"github.com/ordergraph/ordergraph/internal/faults"
	"github.com/ordergraph/ordergraph/internal/longtest"
	"github.com/ordergraph/ordergraph/internal/shoptest"
	"github.com/ordergraph/ordergraph/internal/storetest"
)

// deed is a change of a shop, done with a caller's key.
type deed struct {
	name string
	do   func(ctx context.Context, s *dynamo.Store, caller change.Caller) (any, error)
}

// as makes a deed of a method of the store.
func as[C, V any](name string, method func(*dynamo.Store, context.Context, change.Caller, C) (V, error), command C) deed {
	return deed{name, func(ctx context.Context, s *dynamo.Store, caller change.Caller) (any, error) {
		return method(s, ctx, caller, command)
	}}
}

// prepared are the ids of the orders of a shop before deeds are done: pending, confirmed and
// shipped.
type prepared struct{ pending, confirmed, shipped commerce.OrderID }

// deeds are mutations of every kind, most of which have to do with the same few records.
func deeds(t *testing.T, o prepared) []deed {
	price, err := commerce.ParsePrice("7.77", "USD")
	if err != nil {
		t.Fatal(err)
	}
	customer, employee, order := (*dynamo.Store).UpdateCustomer, (*dynamo.Store).UpdateEmployee, (*dynamo.Store).PlaceOrder
	lines := func(c commerce.CustomerID, lines ...commerce.OrderLine) commerce.NewOrder {
		return commerce.NewOrder{CustomerID: c, Lines: lines}
	}
	move := func(name string, id commerce.OrderID, to commerce.Status, from commerce.WarehouseID) deed {
		return as(name, (*dynamo.Store).MoveOrder, commerce.OrderMove{OrderID: id, To: to, WarehouseID: from, WithoutAddress: true})
	}
	item := func(name string, sku commerce.SKU, n int) deed {
		return as(name, (*dynamo.Store).SetOrderItem, commerce.OrderItemChange{OrderID: o.pending, SKU: sku, Quantity: n})
	}
	address := func(name string, id commerce.OrderID) deed {
		return as(name, (*dynamo.Store).UpdateShippingAddress, commerce.ShippingAddressChange{OrderID: id, ShippingAddress: commerce.Address{Recipient: name, Line1: "1", City: "C", CountryCode: "US"}})
	}
	set := func(name string, sku commerce.SKU, at commerce.WarehouseID, n int) deed {
		return as(name, (*dynamo.Store).SetInventoryLevel, commerce.InventoryCount{SKU: sku, WarehouseID: at, Quantity: n})
	}
	adjust := func(name string, sku commerce.SKU, at commerce.WarehouseID, by int) deed {
		return as(name, (*dynamo.Store).AdjustInventory, commerce.InventoryAdjustment{SKU: sku, WarehouseID: at, Delta: by})
	}
	hire := func(name string, at commerce.WarehouseID) deed {
		return as(name, (*dynamo.Store).HireEmployee, commerce.Employee{ID: "e9", Name: name, JobTitle: "Clerk", HireDate: "2025-01-02", WarehouseID: at})
	}
	product := (*dynamo.Store).UpdateProduct
	nowhere := commerce.WarehouseID("")
	there := commerce.WarehouseID("w1")
	return []deed{
		as("createCustomer c9", (*dynamo.Store).CreateCustomer, commerce.Customer{ID: "c9", Name: "Nine", Email: "wanted@example.com", AccountRepID: "e0"}),
		as("createCustomer", (*dynamo.Store).CreateCustomer, commerce.Customer{Name: "New", Email: "Wanted@example.com"}),
		as("updateCustomer c1 name", customer, commerce.CustomerChange{ID: "c1", Name: new("One")}),
		as("updateCustomer c1 email", customer, commerce.CustomerChange{ID: "c1", Email: new("wanted@example.com")}),
		as("updateCustomer c1 other email", customer, commerce.CustomerChange{ID: "c1", Email: new("other@example.com")}),
		as("updateCustomer c0 email", customer, commerce.CustomerChange{ID: "c0", Email: new("wanted@example.com")}),
		as("updateCustomer c0 phones", customer, commerce.CustomerChange{ID: "c0", PhoneNumbers: &[]string{"1"}}),
		as("assignAccountRep c1", (*dynamo.Store).AssignAccountRep, commerce.AccountRepChange{CustomerID: "c1", EmployeeID: "e0"}),
		as("assignAccountRep c1 nobody", (*dynamo.Store).AssignAccountRep, commerce.AccountRepChange{CustomerID: "c1"}),
		as("assignAccountRep c0", (*dynamo.Store).AssignAccountRep, commerce.AccountRepChange{CustomerID: "c0", EmployeeID: "e0"}),
		as("placeOrder", order, lines("c1", commerce.OrderLine{SKU: "p0", Quantity: 2}, commerce.OrderLine{SKU: "p1", Quantity: 1})),
		as("placeOrder all", order, lines("c0", commerce.OrderLine{SKU: "p0", Quantity: 14})),
		as("placeOrder some", order, lines("c1", commerce.OrderLine{SKU: "p0", Quantity: 9}, commerce.OrderLine{SKU: "p2", Quantity: 1})),
		move("confirmOrder", o.pending, commerce.Confirmed, ""),
		move("cancelOrder pending", o.pending, commerce.Cancelled, ""),
		move("cancelOrder confirmed", o.confirmed, commerce.Cancelled, ""),
		move("shipOrder w0", o.confirmed, commerce.Shipped, "w0"),
		move("shipOrder w1", o.confirmed, commerce.Shipped, "w1"),
		move("deliverOrder", o.shipped, commerce.Delivered, ""),
		item("setOrderItem p0 3", "p0", 3), item("setOrderItem p0 1", "p0", 1), item("setOrderItem p1 17", "p1", 17), item("setOrderItem p2 1", "p2", 1),
		item("removeOrderItem p0", "p0", 0), item("removeOrderItem p1", "p1", 0),
		address("updateShippingAddress pending", o.pending), address("updateShippingAddress confirmed", o.confirmed),
		as("createProduct", (*dynamo.Store).CreateProduct, commerce.Product{SKU: "p9", Name: "Nine", Category: "Things", UnitPrice: price}),
		as("updateProduct p0 price", product, commerce.ProductChange{SKU: "p0", UnitPrice: &commerce.Price{Amount: price.Decimal()}}),
		as("updateProduct p0 name", product, commerce.ProductChange{SKU: "p0", Name: new("Other")}),
		as("updateProduct p2 price", product, commerce.ProductChange{SKU: "p2", UnitPrice: &commerce.Price{Amount: price.Decimal()}}),
		as("createWarehouse", (*dynamo.Store).CreateWarehouse, commerce.Warehouse{ID: "w9", Name: "Nine"}),
		set("setInventoryLevel p0 12", "p0", "w0", 12), set("setInventoryLevel p0 4", "p0", "w0", 4), set("setInventoryLevel p3", "p3", "w1", 3),
		adjust("adjustInventory p0 -3", "p0", "w0", -3), adjust("adjustInventory p0 -8", "p0", "w0", -8), adjust("adjustInventory p0 +5", "p0", "w0", 5), adjust("adjustInventory p3", "p3", "w1", 2),
		hire("hireEmployee w0", "w0"), hire("hireEmployee", ""),
		as("updateEmployee name", employee, commerce.EmployeeChange{ID: "e1", Name: new("One")}),
		as("updateEmployee no warehouse", employee, commerce.EmployeeChange{ID: "e1", WarehouseID: &nowhere}),
		as("updateEmployee title", employee, commerce.EmployeeChange{ID: "e1", JobTitle: new("Driver")}),
		as("updateEmployee w1", employee, commerce.EmployeeChange{ID: "e0", WarehouseID: &there}),
	}
}

// workshop makes shops that are all alike, to the last id.
type workshop struct {
	db      *dynamodb.Client
	records []types.WriteRequest
	orders  prepared
	known   map[string]bool
	now     time.Time
}

// newWorkshop makes shops whose pending order has 2 lines and so many more.
func newWorkshop(t *testing.T, db *dynamodb.Client, more int) *workshop {
	t.Helper()
	db = storetest.Undated(db)
	w := &workshop{db: db, known: map[string]bool{}, now: time.Now()}
	table := storetest.TableName()
	entropy := rand.NewChaCha8([32]byte{1})
	store := storetest.NewTable(t, db, dynamo.Options{Table: table, Clock: func() time.Time { return w.now }, Entropy: entropy})
	book := shoptest.World{Customers: 2, Products: 3, Warehouses: 2, Employees: 2, Stock: 10}.Book(t)
	book.Products = append(book.Products, commerce.Product{SKU: "p3", Name: "Product 3", Category: "Things", UnitPrice: book.Products[0].UnitPrice, Version: 1})
	lines := []commerce.OrderLine{{SKU: "p0", Quantity: 2}, {SKU: "p1", Quantity: 1}}
	large := slices.Clone(lines)
	for i := range more {
		p := book.Products[0]
		p.SKU, p.TotalInventory, p.Available = commerce.SKU(fmt.Sprintf("x%02d", i)), 5, 5
		book.Products = append(book.Products, p)
		book.Levels = append(book.Levels, commerce.InventoryLevel{SKU: p.SKU, WarehouseID: "w0", Quantity: 5, Version: 1})
		large = append(large, commerce.OrderLine{SKU: p.SKU, Quantity: 1 + i%2})
	}
	storetest.Load(t, store, book)
	for i, id := range []*commerce.OrderID{&w.orders.pending, &w.orders.confirmed, &w.orders.shipped} {
		o, err := store.PlaceOrder(t.Context(), change.Caller{Name: "before"}, commerce.NewOrder{CustomerID: "c1", Lines: [][]commerce.OrderLine{large, lines, lines}[i]})
		if err != nil {
			t.Fatal(err)
		}
		*id = o.ID
		for _, to := range []commerce.Status{commerce.Confirmed, commerce.Shipped}[:i] {
			if _, err := store.MoveOrder(t.Context(), change.Caller{Name: "before"}, commerce.OrderMove{OrderID: o.ID, To: to, WarehouseID: "w0", WithoutAddress: true}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for k, r := range storetest.Clean(t, db, table, 1).Records {
		w.records = append(w.records, types.WriteRequest{PutRequest: &types.PutRequest{Item: r}})
		for _, id := range ulids.FindAllString(k.PK+k.SK, -1) {
			w.known[id] = true
		}
	}
	return w
}

// shop makes a new one. The requests of its store pass through choose.
func (w *workshop) shop(t *testing.T, choose faults.Chooser) (failing, clean *dynamo.Store, table string) {
	t.Helper()
	table = storetest.TableName()
	clean = storetest.NewTable(t, w.db, w.options(table, 2))
	for batch := range slices.Chunk(w.records, 25) {
		if _, err := w.db.BatchWriteItem(t.Context(), &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{table: batch}}); err != nil {
			t.Fatal(err)
		}
	}
	between, _ := faults.Between(w.db, choose)
	failing, err := dynamo.New(between, w.options(table, 3))
	if err != nil {
		t.Fatal(err)
	}
	return failing, clean, table
}

// options are those of a store whose time stands still, and which makes other ids than those of
// other seeds.
func (w *workshop) options(table string, seed byte) dynamo.Options {
	return dynamo.Options{Table: table, Clock: func() time.Time { return w.now }, Entropy: rand.NewChaCha8([32]byte{seed})}
}

var ulids = regexp.MustCompile(`[0-9A-HJKMNP-TV-Z]{26}`)

// text is what a shop holds and what was answered, without the ids that were made meanwhile. These
// decide where an order is counted, so the counts are left out. The audit has compared them with
// the orders.
func (w *workshop) text(a *storetest.Audited, answers ...string) string {
	lines := slices.Clone(answers)
	for k, r := range a.Records {
		if k.PK == string(model.OrderCounts.PK) || strings.HasPrefix(k.SK, string(model.EmployeeOrderCount.SK)) {
			continue
		}
		lines = append(lines, k.PK+" "+k.SK+": "+r.String())
	}
	for i, line := range lines {
		lines[i] = ulids.ReplaceAllStringFunc(line, func(id string) string {
			if w.known[id] {
				return id
			}
			return "NEW"
		})
	}
	slices.Sort(lines[len(answers):])
	return strings.Join(lines, "\n")
}

// told is what a caller is told.
func told(v any, err error) string {
	if err != nil && !commerce.IsRefusal(err) {
		return "FAULT " + err.Error()
	}
	if err != nil {
		return "refused: " + err.Error()
	}
	text, err := json.Marshal(v)
	if err != nil {
		return "FAULT " + err.Error()
	}
	return string(text)
}

// everyPair lets TestSomebodyIsFaster try all pairs on both engines.
var everyPair = flag.Bool("every-pair", false, "let every mutation come between every other")

// touched are the records that a deed reads or writes when it is done alone.
func (w *workshop) touched(t *testing.T, d deed) map[storetest.Key]bool {
	t.Helper()
	touched := map[storetest.Key]bool{}
	store, _, _ := w.shop(t, func(r faults.Request) faults.Kind {
		var body any
		if err := json.Unmarshal(r.Body, &body); err != nil {
			t.Error(err)
		}
		collect(body, touched)
		return faults.None
	})
	if _, err := d.do(t.Context(), store, change.Caller{Name: d.name}); err != nil {
		t.Errorf("%s: %v", d.name, err)
	}
	return touched
}

// collect finds the keys in a request.
func collect(v any, into map[storetest.Key]bool) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			collect(e, into)
		}
	case map[string]any:
		text := func(name string) string {
			m, _ := v[name].(map[string]any)
			s, _ := m["S"].(string)
			return s
		}
		if k := (storetest.Key{PK: text("pk"), SK: text("sk")}); k.PK != "" {
			into[k] = true
		}
		for _, e := range v {
			collect(e, into)
		}
	}
}

// Somebody else's change comes between what a change has read and what it writes: the answer and
// every record are as if that other change had been made before.
func TestSomebodyIsFaster(t *testing.T) {
	t.Parallel()
	storetest.EachLong(t, func(t *testing.T, db *dynamodb.Client) {
		w := newWorkshop(t, db, 0)
		all := deeds(t, w.orders)
		touched := make([]map[storetest.Key]bool, len(all))
		for i, d := range all {
			touched[i] = w.touched(t, d)
		}
		source := rand.New(rand.NewPCG(3, 3))
		pairs, oneOf := 0, longtest.Size(40, 20)
		for i, mine := range all {
			for j, other := range all {
				related := false
				for k := range touched[i] {
					related = related || touched[j][k]
				}
				if chosen := related && (storetest.Embedded(t) && longtest.Enabled() || source.IntN(oneOf) == 0); !chosen && !*everyPair {
					continue
				}
				if w.interfere(t, mine, other) {
					pairs++
				}
			}
		}
		t.Logf("%d pairs of changes", pairs)
		if pairs < 400/oneOf {
			t.Errorf("%d pairs of changes: the test is weaker than it says", pairs)
		}
	})
}

// The same with an order that is a line too large to carry its items itself, with which its records
// change their form.
func TestSomebodyIsFasterWithALargeOrder(t *testing.T) {
	t.Parallel()
	storetest.EachLong(t, func(t *testing.T, db *dynamodb.Client) {
		w := newWorkshop(t, db, 24)
		var all []deed
		for _, d := range deeds(t, w.orders) {
			if strings.Contains(d.name, "OrderItem") || strings.Contains(d.name, "pending") || d.name == "confirmOrder" || d.name == "placeOrder" {
				all = append(all, d)
			}
		}
		pairs := 0
		for i, mine := range all {
			for j, other := range all {
				if (!storetest.Embedded(t) || !longtest.Enabled()) && (i+j)%len(all) > 0 {
					continue
				}
				if w.interfere(t, mine, other) {
					pairs++
				}
			}
		}
		t.Logf("%d pairs of changes", pairs)
		if pairs < len(all)/2 {
			t.Errorf("%d pairs of changes: the test is weaker than it says", pairs)
		}
	})
}

// interfere does mine with other in between, and checks that it is as if other had been done first.
// It reports whether there was an in between: a change that is refused at once writes nothing.
func (w *workshop) interfere(t *testing.T, mine, other deed) bool {
	t.Helper()
	me, they := change.Caller{ID: "me", Name: "me", IdempotencyKey: "mine"}, change.Caller{ID: "they", Name: "they", IdempotencyKey: "theirs"}
	var clean *dynamo.Store
	theirs := ""
	failing, clean, shop := w.shop(t, func(r faults.Request) faults.Kind {
		if r.Writes() && theirs == "" {
			theirs = told(other.do(t.Context(), clean, they))
		}
		return faults.None
	})
	got := told(mine.do(t.Context(), failing, me))
	if theirs == "" {
		return false
	}
	raced := w.text(storetest.Clean(t, w.db, shop, 1), "they: "+theirs, "I: "+got)

	_, calm, second := w.shop(t, func(faults.Request) faults.Kind { return faults.None })
	theirs = told(other.do(t.Context(), calm, they))
	got = told(mine.do(t.Context(), calm, me))
	if want := w.text(storetest.Clean(t, w.db, second, 1), "they: "+theirs, "I: "+got); raced != want {
		t.Errorf("%s, with %s in between:\n%s", mine.name, other.name, difference(want, raced))
	}
	for _, name := range []string{shop, second} {
		if _, err := w.db.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: &name}); err != nil {
			t.Error(err)
		}
	}
	return true
}

// difference are the lines in which two texts differ.
func difference(want, have string) string {
	a, b := strings.Split(want, "\n"), strings.Split(have, "\n")
	var out []string
	for _, line := range a {
		if !slices.Contains(b, line) {
			out = append(out, "  want "+line)
		}
	}
	for _, line := range b {
		if !slices.Contains(a, line) {
			out = append(out, "  have "+line)
		}
	}
	return strings.Join(out, "\n")
}

// The same request under the same key comes in between: both callers get one answer, and it is done
// once. By default DynamoDB Local gets every fourth mutation.
func TestATwinIsFaster(t *testing.T) {
	t.Parallel()
	storetest.EachLong(t, func(t *testing.T, db *dynamodb.Client) {
		w := newWorkshop(t, db, 0)
		for i, d := range deeds(t, w.orders) {
			if i%longtest.Size(3, 1) > 0 || !storetest.Every(t, 4, i) {
				continue
			}
			caller := change.Caller{ID: "me", Name: "me", IdempotencyKey: "mine"}
			var clean *dynamo.Store
			first := ""
			failing, clean, table := w.shop(t, func(r faults.Request) faults.Kind {
				if r.Writes() && first == "" {
					first = told(d.do(t.Context(), clean, caller))
				}
				return faults.None
			})
			if second := told(d.do(t.Context(), failing, caller)); second != first || first == "" {
				t.Errorf("%s: the answers are\n%s\n%s", d.name, first, second)
			}
			if third := told(d.do(t.Context(), failing, caller)); third != first {
				t.Errorf("%s: the answers are\n%s, and later\n%s", d.name, first, third)
			}
			raced := w.text(storetest.Clean(t, db, table, 1))
			_, calm, once := w.shop(t, func(faults.Request) faults.Kind { return faults.None })
			if _, err := d.do(t.Context(), calm, caller); err != nil {
				t.Errorf("%s: %v", d.name, err)
			}
			if want := w.text(storetest.Clean(t, db, once, 1)); raced != want {
				t.Errorf("%s twice:\n%s", d.name, difference(want, raced))
			}
		}
	})
}

// Somebody else's changes keep coming between: when the request's time is over it is UNAVAILABLE,
// and nothing of it is written.
func TestSomebodyIsAlwaysFaster(t *testing.T) {
	storetest.EachLong(t, func(t *testing.T, db *dynamodb.Client) {
		w := newWorkshop(t, db, 0)
		var clean *dynamo.Store
		n := 0
		ctx := shoptest.NewDeadline(t.Context())
		failing, clean, shop := w.shop(t, func(r faults.Request) faults.Kind {
			if !r.Writes() {
				return faults.None
			}
			if n++; n == 5 {
				ctx.Pass()
			}
			name := fmt.Sprintf("Name %d", n)
			if _, err := clean.UpdateCustomer(t.Context(), change.Caller{Name: "they"}, commerce.CustomerChange{ID: "c0", Name: &name}); err != nil {
				t.Error(err)
			}
			return faults.None
		})
		phones := []string{"1"}
		_, err := failing.UpdateCustomer(ctx, change.Caller{ID: "me", Name: "me", IdempotencyKey: "k"}, commerce.CustomerChange{ID: "c0", PhoneNumbers: &phones})
		if !errors.Is(err, table.ErrUnavailable) {
			t.Errorf("the error is %v, want ErrUnavailable", err)
		}
		a := storetest.Clean(t, db, shop, 1)
		if c := a.Records[storetest.Key{PK: "CUSTOMER#c0", SK: "#METADATA"}]; c.Int("version") != 1+n || c.Text("name") != fmt.Sprintf("Name %d", n) || len(a.Answers) > 0 {
			t.Errorf("the customer has version %d and the name %s after %d changes of others", c.Int("version"), c.Text("name"), n)
		}
	})
}
