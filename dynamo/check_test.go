package dynamo_test

import (
	"context"
	"fmt"
	"maps"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/oklog/ulid/v2"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/check"
	"github.com/ordergraph/ordergraph/internal/storetest"
)

type item = map[string]types.AttributeValue

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func number(s string) types.AttributeValue { return &types.AttributeValueMemberN{Value: s} }

// rawTable is a table as software sees it that knows no model.
type rawTable struct {
	t     testing.TB
	db    *dynamodb.Client
	name  string
	store *dynamo.Store
}

func newRawTable(t testing.TB, db *dynamodb.Client, book commerce.Book, opts dynamo.Options) rawTable {
	t.Helper()
	store := storetest.NewTable(t, db, opts)
	storetest.Load(t, store, book)
	d, err := store.DescribeTable(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	r := rawTable{t: t, db: db, name: d.Name, store: store}
	t.Cleanup(r.cleanUp)
	return r
}

// cleanUp deletes the table, which may be gone.
func (r rawTable) cleanUp() {
	_, _ = r.db.DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: &r.name})
}

func key(pk, sk string) item { return item{"pk": text(pk), "sk": text(sk)} }

func keyText(rec item) string {
	return rec["pk"].(*types.AttributeValueMemberS).Value + " " + rec["sk"].(*types.AttributeValueMemberS).Value
}

func (r rawTable) get(pk, sk string) item {
	r.t.Helper()
	out, err := r.db.GetItem(context.Background(), &dynamodb.GetItemInput{TableName: &r.name, Key: key(pk, sk), ConsistentRead: aws.Bool(true)})
	if err != nil {
		r.t.Fatal(err)
	}
	return out.Item
}

func (r rawTable) put(rec item) {
	r.t.Helper()
	if _, err := r.db.PutItem(context.Background(), &dynamodb.PutItemInput{TableName: &r.name, Item: rec}); err != nil {
		r.t.Fatal(err)
	}
}

func (r rawTable) drop(pk, sk string) {
	r.t.Helper()
	if r.get(pk, sk) == nil {
		r.t.Fatalf("there is no record %s %s to delete", pk, sk)
	}
	if _, err := r.db.DeleteItem(context.Background(), &dynamodb.DeleteItemInput{TableName: &r.name, Key: key(pk, sk)}); err != nil {
		r.t.Fatal(err)
	}
}

// set replaces attributes of a record that is there; nil removes one.
func (r rawTable) set(pk, sk string, changes item) {
	r.t.Helper()
	rec := r.get(pk, sk)
	if rec == nil {
		r.t.Fatalf("there is no record %s %s to change", pk, sk)
	}
	// The embedded engine moves records in its index only when they leave it first.
	r.drop(pk, sk)
	for name, v := range changes {
		if v == nil {
			delete(rec, name)
		} else {
			rec[name] = v
		}
	}
	r.put(rec)
}

// all are the table's records by key.
func (r rawTable) all() map[string]item {
	r.t.Helper()
	records := map[string]item{}
	pages := dynamodb.NewScanPaginator(r.db, &dynamodb.ScanInput{TableName: &r.name, ConsistentRead: aws.Bool(true)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(context.Background())
		if err != nil {
			r.t.Fatal(err)
		}
		for _, rec := range page.Items {
			records[keyText(rec)] = rec
		}
	}
	return records
}

// check runs a check and returns its drifts as "class pk sk".
func (r rawTable) check(opts check.Options) ([]check.Drift, check.Summary) {
	r.t.Helper()
	var drifts []check.Drift
	opts.Found = func(d check.Drift) { drifts = append(drifts, d) }
	opts.Parallel = 4
	if opts.IndexLag == 0 {
		opts.IndexLag = check.NoIndexLag
	}
	summary, err := r.store.CheckRecords(context.Background(), opts)
	if err != nil {
		r.t.Fatalf("check: %v", err)
	}
	n := 0
	for _, found := range summary.Found {
		n += found
	}
	if n != len(drifts) {
		r.t.Errorf("the summary counts %d drifts, %d were told", n, len(drifts))
	}
	return drifts, summary
}

func classes(drifts []check.Drift) map[string]int {
	n := map[string]int{}
	for _, d := range drifts {
		n[d.Class]++
	}
	return n
}

// lastEvent is an event of the table as the last one of a customer, with changes; nil removes an
// attribute.
func lastEvent(r rawTable, customer, orderPK, eventSK string, changes item) item {
	rec := r.get(orderPK, eventSK)
	rec["pk"], rec["sk"], rec["entity"], rec["customerId"] = text("CUSTOMER#"+customer), text("LAST_EVENT"), text("lastEvent"), text(customer)
	for name, v := range changes {
		if rec[name] = v; v == nil {
			delete(rec, name)
		}
	}
	return rec
}

// checkClean fails the test unless a check finds nothing.
func (r rawTable) checkClean() {
	r.t.Helper()
	if drifts, summary := r.check(check.Options{}); len(drifts) > 0 || summary.Unsettled > 0 {
		r.t.Errorf("not clean: %+v, %d unsettled", drifts, summary.Unsettled)
	}
}

// plain is a value with one spelling for each number: DynamoDB gives them back as it likes.
func plain(v types.AttributeValue) any {
	switch v := v.(type) {
	case *types.AttributeValueMemberN:
		f, ok := new(big.Rat).SetString(v.Value)
		if !ok {
			return v.Value
		}
		return f.RatString()
	case *types.AttributeValueMemberL:
		values := make([]any, len(v.Value))
		for i, e := range v.Value {
			values[i] = plain(e)
		}
		return values
	case *types.AttributeValueMemberM:
		return plainRecord(v.Value)
	}
	return v
}

func plainRecord(rec item) map[string]any {
	values := map[string]any{}
	for name, v := range rec {
		values[name] = plain(v)
	}
	return values
}

// differing are the keys of records that are not alike in two states of a table.
func differing(a, b map[string]item) []string {
	var ks []string
	for k := range a {
		if !reflect.DeepEqual(plainRecord(a[k]), plainRecord(b[k])) {
			ks = append(ks, k)
		}
	}
	for k := range b {
		if a[k] == nil {
			ks = append(ks, k)
		}
	}
	slices.Sort(ks)
	return ks
}

// unrevised returns records without stock revisions, which repairs of stock raise.
func unrevised(records map[string]item) map[string]item {
	for _, rec := range records {
		delete(rec, "stockRevision")
	}
	return records
}

// ulidAt is a ULID of a moment, the same for the same n.
func ulidAt(at time.Time, n int) string {
	var id ulid.ULID
	id[14], id[15] = byte(n>>8), byte(n)
	if err := id.SetTime(uint64(at.UnixMilli())); err != nil {
		panic(err)
	}
	return id.String()
}

// The orders of shop.
const (
	ordersOfShop = 5
	bigOrder     = 4
)

func shopOrder(n int) string { return ulidAt(start.Add(time.Duration(n)*time.Hour), n) }

// shop is a book with one or more of everything: c1 has an account rep, c2 has none; order 0 is
// pending, 1 confirmed, 2 shipped, 3 cancelled; bigOrder is delivered, and carries none of its 30
// items.
func shop(t testing.TB) commerce.Book { return shopOf(t, 30) }

// shopOf is a shop of so many products, with all of them in bigOrder.
func shopOf(t testing.TB, products int) commerce.Book {
	book := commerce.Book{
		Warehouses: []commerce.Warehouse{{ID: "w1", Name: "North", Version: 1}, {ID: "w2", Name: "South", Version: 1}},
		Employees: []commerce.Employee{
			{ID: "e1", Name: "Erin", PhoneNumbers: []string{"1"}, JobTitle: "Rep", HireDate: "2020-01-02", WarehouseID: "w1", Version: 1},
			{ID: "e2", Name: "Emil", PhoneNumbers: []string{"4"}, JobTitle: "Packer", HireDate: "2021-01-02", Version: 1},
		},
		Customers: []commerce.Customer{
			{ID: "c1", Name: "Ann", Email: "Ann@example.com", PhoneNumbers: []string{"2", "3"}, AccountRepID: "e1", CreatedAt: start, UpdatedAt: start, Version: 1},
			{ID: "c2", Name: "Bob", Email: "bob@example.com", PhoneNumbers: []string{"5"}, CreatedAt: start, UpdatedAt: start, Version: 1},
		},
	}
	for i := range products {
		sku := commerce.SKU(fmt.Sprintf("p%02d", i))
		book.Products = append(book.Products, commerce.Product{SKU: sku, Name: "Thing", Category: "Things", UnitPrice: money("2.50"), Version: 1})
	}
	for i, id := range []commerce.WarehouseID{"w1", "w2"} {
		book.Levels = append(book.Levels, commerce.InventoryLevel{SKU: "p00", WarehouseID: id, Quantity: 10 + i, Version: 1})
	}
	statuses := []commerce.Status{commerce.Pending, commerce.Confirmed, commerce.Shipped, commerce.Cancelled, commerce.Delivered}
	for n, status := range statuses {
		id := commerce.OrderID(shopOrder(n))
		at, _ := id.Time()
		customer := commerce.CustomerID([]string{"c1", "c2"}[n%2])
		o := commerce.OrderWithItems{Order: commerce.Order{ID: id, CustomerID: customer, Status: status, PlacedAt: at, UpdatedAt: at, Version: 3}}
		items := 3
		if n == bigOrder {
			items = products
		} else {
			o.ShippingAddress = &commerce.Address{Recipient: "Ann", Line1: "1 Road", City: "Town", PostalCode: "1", CountryCode: "US"}
		}
		for i := range items {
			o.Lines = append(o.Lines, commerce.LineItem{SKU: commerce.SKU(fmt.Sprintf("p%02d", i)), Name: "Thing", Quantity: i + 1, UnitPrice: money("2.50")})
		}
		if status == commerce.Shipped {
			o.Lines[2].UnitPrice = money("0") // a gift
		}
		o.Events = append(o.Events, commerce.Event{ID: commerce.EventID(ulidAt(at, 1)), OrderID: id, Type: commerce.EventPlaced, To: commerce.Pending, At: at, Actor: "c"})
		if status != commerce.Pending {
			later := at.Add(time.Minute)
			o.Events = append(o.Events, commerce.Event{ID: commerce.EventID(ulidAt(later, 2)), OrderID: id, Type: commerce.EventType(status.String()), From: commerce.Pending, To: status, At: later, Actor: "c"})
		}
		book.Orders = append(book.Orders, o)
	}
	if err := book.Settle(); err != nil {
		t.Fatal(err)
	}
	return book
}

// damage is one way to damage a shop.
type damage struct {
	name string
	do   func(r rawTable)
	// found are the classes, with how many of each, in one line: "order-total 1".
	found string
	// changes tells whether the repaired shop is another one than before: what was lost is not all
	// restored.
	changes bool
	// ByHand is how many drifts no repair is made for.
	byHand int
	// big tells that bigOrder has to be one. Elsewhere it only takes time.
	big bool
}

func damages() []damage {
	const own = "#METADATA"
	order := func(n int) string { return "ORDER#" + shopOrder(n) }
	return []damage{
		{name: "order's record lost", found: "order-missing 1", do: func(r rawTable) { r.drop(order(0), own) }},
		{name: "order's record and an item lost", found: "item-missing 1, order-missing 1", do: func(r rawTable) {
			r.drop(order(0), own)
			r.drop(order(0), "ITEM#p01")
		}},
		{name: "everything lost but the copy", found: "item-missing 3, order-missing 1, timeline 1", changes: true, do: func(r rawTable) {
			for _, sk := range []string{own, "ITEM#p00", "ITEM#p01", "ITEM#p02", "EVENT#" + ulidAt(start, 1)} {
				r.drop(order(0), sk)
			}
		}},
		{name: "copy lost", found: "copy-missing 1", do: func(r rawTable) { r.drop("CUSTOMER#c1", order(0)) }},
		{name: "copy lost that was not counted", found: "copy-missing 1, order-count 1", do: func(r rawTable) {
			r.drop("CUSTOMER#c1", order(0))
			r.set("CUSTOMER#c1", own, item{"orderCount": number("2")})
		}},
		{name: "copy with another customer", found: "orphan-copy 1", do: func(r rawTable) {
			rec := r.get("CUSTOMER#c1", order(0))
			rec["pk"] = text("CUSTOMER#c2")
			r.put(rec)
		}},
		{name: "copy moved to another customer", found: "copy-missing 1, orphan-copy 1", do: func(r rawTable) {
			rec := r.get("CUSTOMER#c1", order(0))
			r.drop("CUSTOMER#c1", order(0))
			rec["pk"] = text("CUSTOMER#c2")
			r.put(rec)
		}},
		{name: "order names another customer", found: "order-records-differ 1", do: func(r rawTable) {
			r.set(order(0), own, item{"customerId": text("c2")})
		}},
		{name: "order names no customer", found: "order-records-differ 1", do: func(r rawTable) {
			r.set(order(0), own, item{"customerId": nil})
		}},
		{name: "copy left behind", found: "index-keys 1, order-records-differ 1", do: func(r rawTable) {
			r.set("CUSTOMER#c1", order(2), item{"status": text("confirmed"), "version": number("2"), "updatedAt": text("2025-01-01T00:00:00.000Z"), "gsi1pk": nil, "gsi1sk": nil})
		}},
		{name: "order left behind its copy", found: "index-keys 1, order-records-differ 1", do: func(r rawTable) {
			r.set(order(2), own, item{"status": text("pending"), "version": number("2"), "gsi1pk": text("STATUS#pending")})
		}},
		{name: "copy of the same version differs", found: "order-records-differ 1", do: func(r rawTable) {
			r.set("CUSTOMER#c1", order(2), item{"status": text("pending"), "accountRepId": nil, "shippingAddress": nil})
		}},
		{name: "order without a status", found: "order-records-differ 1", do: func(r rawTable) { r.set(order(1), own, item{"status": nil}) }},
		{name: "order without the time that its id tells", do: func(r rawTable) { r.set(order(1), own, item{"createdAt": nil}) }, changes: true},
		{name: "copy without a total", found: "order-total 1", do: func(r rawTable) { r.set("CUSTOMER#c2", order(1), item{"total": nil}) }},
		{name: "total that is a text", found: "unreadable 1", byHand: 1, changes: true, do: func(r rawTable) { r.set(order(1), own, item{"total": text("much")}) }},
		{name: "total wrong", found: "order-total 1", do: func(r rawTable) { r.set(order(1), own, item{"total": number("1.5")}) }},
		{name: "total wrong on both", found: "order-total 2", do: func(r rawTable) {
			r.set(order(1), own, item{"total": number("1.5")})
			r.set("CUSTOMER#c2", order(1), item{"total": number("1.5")})
		}},
		{name: "number of items wrong", found: "item-count 1", do: func(r rawTable) { r.set("CUSTOMER#c2", order(1), item{"itemCount": number("9")}) }},
		{name: "list of items wrong", found: "embedded-items 2", do: func(r rawTable) {
			all := r.get(order(1), own)["items"].(*types.AttributeValueMemberL).Value
			r.set(order(1), own, item{"items": &types.AttributeValueMemberL{Value: all[:2]}})
			r.set("CUSTOMER#c2", order(1), item{"items": &types.AttributeValueMemberL{}})
		}},
		{name: "list of items on a big order", big: true, found: "embedded-items 1", do: func(r rawTable) {
			r.set(order(bigOrder), own, item{"items": r.get(order(0), own)["items"]})
		}},
		{name: "item lost", found: "item-missing 1", do: func(r rawTable) { r.drop(order(0), "ITEM#p01") }},
		{name: "item free of charge lost", found: "item-missing 1", do: func(r rawTable) { r.drop(order(2), "ITEM#p02") }},
		{name: "all items lost", found: "item-missing 3", do: func(r rawTable) {
			for _, sku := range []string{"p00", "p01", "p02"} {
				r.drop(order(0), "ITEM#"+sku)
			}
		}},
		{name: "item of a big order lost", big: true, found: "item-count 2, order-total 2", changes: true, do: func(r rawTable) { r.drop(order(bigOrder), "ITEM#p01") }},
		{name: "item's quantity wrong", found: "item-differs 1", do: func(r rawTable) { r.set(order(0), "ITEM#p01", item{"qty": number("7")}) }},
		{name: "item without a price", found: "item-differs 1", do: func(r rawTable) { r.set(order(0), "ITEM#p01", item{"price": nil}) }},
		{name: "item of a big order without a price", big: true, found: "unreadable 1", byHand: 1, changes: true, do: func(r rawTable) {
			r.set(order(bigOrder), "ITEM#p01", item{"price": nil})
		}},
		{name: "item that nothing knows", found: "orphan-item 1", do: func(r rawTable) {
			rec := r.get(order(0), "ITEM#p01")
			rec["sk"], rec["productId"], rec["gsi1pk"] = text("ITEM#p09"), text("p09"), text("PRODUCT#p09")
			r.put(rec)
		}},
		{name: "items and events of no order", found: "orphan-event 1, orphan-item 2", do: func(r rawTable) {
			for _, sk := range []string{"ITEM#p01", "ITEM#p02", "EVENT#" + ulidAt(start, 1)} {
				rec := r.get(order(0), sk)
				rec["pk"] = text("ORDER#" + ulidAt(start, 77))
				if rec["gsi1sk"] != nil {
					rec["gsi1sk"] = rec["pk"]
				}
				r.put(rec)
			}
		}},
		{name: "last event lost", found: "timeline 1", changes: true, do: func(r rawTable) {
			at, _ := commerce.OrderID(shopOrder(2)).Time()
			r.drop(order(2), "EVENT#"+ulidAt(at.Add(time.Minute), 2))
		}},
		{name: "all events lost", found: "timeline 1", changes: true, do: func(r rawTable) { r.drop(order(0), "EVENT#"+ulidAt(start, 1)) }},
		{name: "order dated before its last event", found: "updated-at 1", do: func(r rawTable) {
			r.set(order(1), own, item{"updatedAt": text("2025-12-31T00:00:00.000Z")})
			r.set("CUSTOMER#c2", order(1), item{"updatedAt": text("2025-12-31T00:00:00.000Z")})
		}},
		{name: "event of a clock ahead", found: "timeline 1, updated-at 1", changes: true, do: func(r rawTable) {
			rec := r.get(order(0), "EVENT#"+ulidAt(start, 1))
			ahead := time.Now().Add(time.Hour)
			id := ulidAt(ahead, 1)
			rec["sk"], rec["eventId"], rec["to"], rec["createdAt"] = text("EVENT#"+id), text(id), text("shipped"), text(ahead.UTC().Format("2006-01-02T15:04:05.000Z"))
			r.put(rec)
		}},
		{name: "customer's last event that cannot be read", found: "last-event 1", do: func(r rawTable) {
			r.put(lastEvent(r, "c1", order(0), "EVENT#"+ulidAt(start, 1), item{"type": nil}))
		}},
		{name: "customer's last event of nobody", found: "last-event 1", do: func(r rawTable) {
			r.put(lastEvent(r, "c9", order(0), "EVENT#"+ulidAt(start, 1), nil))
		}},
		{name: "customer's last event in a list", found: "index-keys 1, key-attribute 1", changes: true, do: func(r rawTable) {
			at := start.Add(4*time.Hour + time.Minute)
			r.put(lastEvent(r, "c1", order(4), "EVENT#"+ulidAt(at, 2), item{"customerId": text("c2"), "gsi1pk": text("CUSTOMER"), "gsi1sk": text("x")}))
		}},
		{name: "event that cannot be read", found: "unreadable 1", byHand: 1, changes: true, do: func(r rawTable) {
			r.set(order(0), "EVENT#"+ulidAt(start, 1), item{"type": text("odd")})
		}},
		{name: "copy lost of an order with an event that cannot be read", found: "copy-missing 1, unreadable 1", byHand: 1, changes: true, do: func(r rawTable) {
			r.drop("CUSTOMER#c1", order(0))
			r.set(order(0), "EVENT#"+ulidAt(start, 1), item{"type": text("odd")})
		}},
		{name: "neither record of an order can be read", found: "unreadable 2", byHand: 2, changes: true, do: func(r rawTable) {
			r.set(order(0), own, item{"status": text("odd")})
			r.set("CUSTOMER#c1", order(0), item{"status": nil})
		}},
		{name: "customer with orders lost", found: "customer-missing 1", changes: true, do: func(r rawTable) { r.drop("CUSTOMER#c2", own) }},
		{name: "customer with an edge lost", found: "customer-missing 1", do: func(r rawTable) { r.drop("CUSTOMER#c1", own) }},
		{name: "edge of no customer", found: "orphan-edge 1", do: func(r rawTable) {
			r.put(item{"pk": text("CUSTOMER#c9"), "sk": text("REP"), "gsi1pk": text("REP#e1"), "gsi1sk": text("CUSTOMER#c9")})
		}},
		{name: "customer without a name, with an edge", found: "edge-differs 1", do: func(r rawTable) { r.set("CUSTOMER#c1", own, item{"name": nil}) }},
		{name: "customer without a name or an edge", found: "unreadable 1", byHand: 1, changes: true, do: func(r rawTable) { r.set("CUSTOMER#c2", own, item{"name": nil}) }},
		{name: "customer without an address", found: "unreadable 1", byHand: 1, changes: true, do: func(r rawTable) { r.set("CUSTOMER#c2", own, item{"email": nil}) }},
		{name: "customer with an address that is none", found: "unreadable 1", byHand: 1, changes: true, do: func(r rawTable) {
			r.set("CUSTOMER#c2", own, item{"email": text("bob")})
			r.drop("EMAIL#bob@example.com", own)
		}},
		{name: "number of orders wrong", found: "order-count 1", do: func(r rawTable) { r.set("CUSTOMER#c1", own, item{"orderCount": number("7")}) }},
		{name: "claim lost", found: "email-claim 1", do: func(r rawTable) { r.drop("EMAIL#ann@example.com", own) }},
		{name: "claim for another customer", found: "email-claim 1", do: func(r rawTable) {
			r.set("EMAIL#ann@example.com", own, item{"customerId": text("c2")})
		}},
		{name: "claim of nobody", found: "orphan-claim 1", do: func(r rawTable) {
			r.put(item{"pk": text("EMAIL#old@example.com"), "sk": text(own), "customerId": text("c1")})
		}},
		{name: "claim of a customer who does not exist", found: "orphan-claim 1", do: func(r rawTable) {
			r.put(item{"pk": text("EMAIL#old@example.com"), "sk": text(own), "customerId": text("c9")})
		}},
		{name: "claim that names nobody", found: "orphan-claim 1", do: func(r rawTable) {
			r.put(item{"pk": text("EMAIL#old@example.com"), "sk": text(own)})
		}},
		{name: "one address of two customers", found: "email-shared 1", byHand: 1, changes: true, do: func(r rawTable) {
			r.set("CUSTOMER#c2", own, item{"email": text("ANN@example.com")})
			r.drop("EMAIL#bob@example.com", own)
		}},
		{name: "edge lost", found: "edge-missing 1", do: func(r rawTable) { r.drop("CUSTOMER#c1", "REP") }},
		{name: "edge differs", found: "edge-differs 1", do: func(r rawTable) { r.set("CUSTOMER#c1", "REP", item{"name": text("Anna"), "phoneNumbers": nil}) }},
		{name: "edge to no rep", found: "orphan-edge 1", do: func(r rawTable) {
			rec := r.get("CUSTOMER#c1", "REP")
			rec["pk"], rec["gsi1sk"] = text("CUSTOMER#c2"), text("CUSTOMER#c2")
			r.put(rec)
		}},
		{name: "employee lost", found: "employee-missing 1", do: func(r rawTable) { r.drop("EMPLOYEE#e1", own) }},
		{name: "employee without a title", found: "edge-differs 1", do: func(r rawTable) { r.set("EMPLOYEE#e1", own, item{"jobTitle": nil}) }},
		{name: "employee's edges lost", found: "edge-missing 3", do: func(r rawTable) {
			for _, sk := range []string{"NAME", "TITLE", "WAREHOUSE"} {
				r.drop("EMPLOYEE#e1", sk)
			}
		}},
		{name: "employee's edge to a warehouse left behind", found: "orphan-edge 1", do: func(r rawTable) {
			rec := r.get("EMPLOYEE#e1", "WAREHOUSE")
			rec["pk"], rec["gsi1sk"] = text("EMPLOYEE#e2"), text("EMPLOYEE#e2")
			r.put(rec)
		}},
		{name: "total inventory wrong", found: "stock-total 1", do: func(r rawTable) { r.set("PRODUCT#p00", own, item{"totalInventory": number("99")}) }},
		{name: "available stock wrong", found: "stock-available 1", do: func(r rawTable) { r.set("PRODUCT#p00", own, item{"available": number("99")}) }},
		{name: "stock lost", found: "stock-available 1, stock-total 1", do: func(r rawTable) {
			r.set("PRODUCT#p00", own, item{"available": nil, "totalInventory": nil})
		}},
		{name: "level without a product", found: "orphan-level 1", do: func(r rawTable) {
			r.put(item{"pk": text("PRODUCT#p99"), "sk": text("WAREHOUSE#w1"), "sku": text("p99"), "warehouseId": text("w1"), "quantity": number("5"), "gsi1pk": text("WAREHOUSE#w1"), "gsi1sk": text("PRODUCT#p99")})
		}},
		{name: "level without a quantity", found: "unreadable 1", byHand: 1, changes: true, do: func(r rawTable) { r.set("PRODUCT#p00", "WAREHOUSE#w1", item{"quantity": nil}) }},
		{name: "product without a category", found: "index-keys 1", do: func(r rawTable) { r.set("PRODUCT#p00", own, item{"category": nil}) }},
		{name: "product without a price", found: "unreadable 1", byHand: 1, changes: true, do: func(r rawTable) { r.set("PRODUCT#p00", own, item{"unitPrice": nil}) }},
		{name: "product with a stock revision that is no number", found: "unreadable 1", byHand: 1, changes: true, do: func(r rawTable) {
			r.set("PRODUCT#p00", own, item{"stockRevision": text("7")})
		}},
		{name: "warehouse lost", found: "warehouse-missing 1", changes: true, do: func(r rawTable) { r.drop("WAREHOUSE#w1", own) }},
		{name: "order in the list of another status", found: "index-keys 1", do: func(r rawTable) {
			r.set(order(2), own, item{"gsi1pk": text("STATUS#pending")})
		}},
		{name: "index keys everywhere wrong", found: "index-keys 8", do: func(r rawTable) {
			for _, k := range [][2]string{{"CUSTOMER#c1", own}, {"CUSTOMER#c1", "REP"}, {"CUSTOMER#c1", order(0)}, {order(0), "ITEM#p00"}, {"PRODUCT#p00", own}, {"PRODUCT#p00", "WAREHOUSE#w2"}, {"WAREHOUSE#w2", own}, {"EMPLOYEE#e1", own}} {
				r.set(k[0], k[1], item{"gsi1pk": text("OTHER"), "gsi1sk": text("OTHER")})
			}
		}},
		{name: "index keys where there should be none", found: "index-keys 3", do: func(r rawTable) {
			for _, k := range [][2]string{{"CUSTOMER#c2", order(1)}, {order(0), "EVENT#" + ulidAt(start, 1)}, {"EMAIL#bob@example.com", own}} {
				r.set(k[0], k[1], item{"gsi1pk": text("STATUS#pending"), "gsi1sk": text(order(1))})
			}
		}},
		{name: "attributes that are not the key's", found: "key-attribute 9", do: func(r rawTable) {
			for k, name := range map[[2]string]string{
				{order(0), own}: "orderId", {"CUSTOMER#c1", order(0)}: "customerId", {order(0), "ITEM#p00"}: "productId",
				{order(0), "EVENT#" + ulidAt(start, 1)}: "eventId", {"CUSTOMER#c1", own}: "customerId", {"PRODUCT#p00", own}: "sku",
				{"PRODUCT#p00", "WAREHOUSE#w1"}: "warehouseId", {"WAREHOUSE#w1", own}: "warehouseId", {"EMPLOYEE#e1", "NAME"}: "employeeId",
			} {
				r.set(k[0], k[1], item{name: text("other")})
			}
		}},
		{name: "record of another kind", found: "entity 2", do: func(r rawTable) {
			r.set(order(0), "ITEM#p00", item{"entity": text("order")})
			r.set("EMAIL#bob@example.com", own, item{"entity": text("customer")})
		}},
	}
}

func foundText(drifts []check.Drift) string {
	n := classes(drifts)
	var parts []string
	for _, class := range slices.Sorted(maps.Keys(n)) {
		parts = append(parts, fmt.Sprintf("%s %d", class, n[class]))
	}
	return strings.Join(parts, ", ")
}

// Every damage is named, by its class and no other; a repair mends it and nothing else, and after
// it the table is clean. By default DynamoDB Local gets every fourth damage.
func TestDamagesAreNamedAndRepaired(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *dynamodb.Client) {
		for i, d := range damages() {
			if !storetest.Every(t, 4, i) {
				continue
			}
			t.Run(strings.ReplaceAll(d.name, " ", "_"), func(t *testing.T) {
				t.Parallel()
				products := 3
				if d.big {
					products = 30
				}
				r := newRawTable(t, db, shopOf(t, products), dynamo.Options{})
				healthy := r.all()
				d.do(r)
				damaged := r.all()
				drifts, summary := r.check(check.Options{})
				if got := foundText(drifts); got != d.found || summary.Left() != len(drifts) {
					t.Errorf("found %s, %d left, want %s:\n%+v", got, summary.Left(), d.found, drifts)
				}
				if changed := differing(damaged, r.all()); len(changed) > 0 {
					t.Errorf("a check without repair changed %q", changed)
				}
				drifts, summary = r.check(check.Options{Repair: true})
				if got := foundText(drifts); got != d.found || summary.Left() != d.byHand {
					t.Errorf("repair found %s, %d left, want %s, %d:\n%+v", got, summary.Left(), d.found, d.byHand, drifts)
				}
				if d.byHand == 0 {
					r.checkClean()
				}
				if changed := differing(healthy, unrevised(r.all())); !d.changes && len(changed) > 0 {
					for _, k := range changed {
						t.Errorf("after the repair %s is\n%s, was\n%s", k, show(r.all()[k]), show(healthy[k]))
					}
				}
			})
		}
	})
}

// show is a record for people.
func show(rec item) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(rec)) {
		switch v := rec[name].(type) {
		case *types.AttributeValueMemberS:
			parts = append(parts, name+"="+v.Value)
		case *types.AttributeValueMemberN:
			parts = append(parts, name+"="+v.Value)
		default:
			parts = append(parts, fmt.Sprintf("%s=%T", name, v))
		}
	}
	return strings.Join(parts, " ")
}

func TestTheSampleBookIsClean(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *dynamodb.Client) {
		r := rawTable{t: t, db: db, store: storetest.Sample(t, db)}
		drifts, summary := r.check(check.Options{Segments: 2})
		if len(drifts) > 0 || summary.Unsettled > 0 {
			t.Errorf("found %+v, %d unsettled", drifts, summary.Unsettled)
		}
		if summary.Records != 101 || summary.Orders != 9 || summary.Customers != 7 || summary.Foreign != 0 || summary.Products == 0 || summary.Warehouses == 0 || summary.Employees == 0 {
			t.Errorf("counted %+v", summary)
		}
	})
}

// What orders hold is what they should hold, also where their records are damaged and left so: a
// check says of the stock what a repair makes of it.
func TestWhatDamagedOrdersHoldCounts(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *dynamodb.Client) {
		r := newRawTable(t, db, shop(t), dynamo.Options{})
		healthy := r.get("PRODUCT#p00", "#METADATA")["available"]
		r.set("PRODUCT#p00", "#METADATA", item{"available": number("500")})
		// Pending, and an item that the index does not show.
		r.drop("ORDER#"+shopOrder(0), "ITEM#p00")
		// Cancelled, by the newer record; and confirmed, by the newer.
		r.set("ORDER#"+shopOrder(3), "#METADATA", item{"status": text("pending"), "version": number("2")})
		r.set("ORDER#"+shopOrder(1), "#METADATA", item{"status": text("shipped"), "version": number("2")})
		for _, repair := range []bool{false, true} {
			drifts, _ := r.check(check.Options{Repair: repair})
			i := slices.IndexFunc(drifts, func(d check.Drift) bool { return d.Class == "stock-available" })
			want := fmt.Sprintf("available is 500, should be %s", healthy.(*types.AttributeValueMemberN).Value)
			if i < 0 || drifts[i].Detail != want {
				t.Errorf("found %+v, want %s", drifts, want)
			}
		}
		r.checkClean()
		// An order of which nobody knows whether it holds anything leaves the stock unsettled.
		r.set("PRODUCT#p01", "#METADATA", item{"available": number("500")})
		r.set("ORDER#"+shopOrder(0), "#METADATA", item{"status": nil})
		r.set("CUSTOMER#c1", "ORDER#"+shopOrder(0), item{"status": nil})
		drifts, summary := r.check(check.Options{Repair: true})
		if foundText(drifts) != "unreadable 2" || summary.Unsettled == 0 || summary.ByHand != 2 || !drifts[0].ByHand {
			t.Errorf("found %+v, %d unsettled", drifts, summary.Unsettled)
		}
	})
}

// An amount without a currency is in the shop's: an item that says so by saying nothing is right in
// one shop and wrong in another.
func TestACurrencyThatIsLeftOut(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *dynamodb.Client) {
		for currency, want := range map[commerce.Currency]string{"USD": "", "EUR": "item-differs 1"} {
			r := newRawTable(t, db, shop(t), dynamo.Options{Currency: currency})
			healthy := r.all()
			r.set("ORDER#"+shopOrder(0), "ITEM#p00", item{"currency": nil})
			drifts, _ := r.check(check.Options{Repair: true})
			if got := foundText(drifts); got != want {
				t.Errorf("in %s found %s, want %s", currency, got, want)
			}
			if changed := differing(healthy, r.all()); want != "" && len(changed) > 0 {
				t.Errorf("in %s the repaired table differs in %q", currency, changed)
			}
			r.checkClean()
		}
	})
}
