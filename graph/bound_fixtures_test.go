package graph

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/oklog/ulid/v2"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/graph/paging"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// fixture is a fixture for random queries, with the argument values that queries can use.
type fixture struct {
	name   string
	shards int
	store  func(t *testing.T, db *dynamodb.Client) *dynamo.Store
	values map[string][]string
	// full makes a page of one customer's orders larger than one megabyte.
	full bool
}

func fixtures() []*fixture {
	sample := &fixture{name: "the sample", shards: 1, store: func(t *testing.T, db *dynamodb.Client) *dynamo.Store { return storetest.SampleStore(t, db) }, values: map[string][]string{}}
	for name, values := range argumentValues {
		sample.values[name] = values
	}
	return []*fixture{sample, newHardFixture("one shard", 1, 20), newHardFixture("many shards", 16, 3)}
}

// executor returns an executor without limits for the fixture. It ignores reported errors, because
// the bounds must hold for failing queries, too.
func (w *fixture) executor(t *testing.T, db *dynamodb.Client) *Executor {
	t.Helper()
	return NewExecutor(Options{Store: w.store(t, db), Cursors: paging.NewCursorSigner([]byte("a key for tests")), Limits: unlimited, Report: func(context.Context, error) {}})
}

// Numbers of records in the hard fixtures.
const (
	hardCustomers = 12
	hardOrders    = 70
	hardProducts  = 45
	hardLevels    = 210
	hardEvents    = 230
)

var hardStart = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func hardOrder(n int) commerce.OrderID {
	var id ulid.ULID
	hash := sha256.Sum256(fmt.Append(nil, n))
	copy(id[6:], hash[:])
	if err := id.SetTime(uint64(hardStart.UnixMilli()) + uint64(n)); err != nil {
		panic(err)
	}
	return commerce.OrderID(id.String())
}

// padded pads an ID or a name to its maximum length.
func padded(s string, length int) string { return s + strings.Repeat("x", length-len(s)) }

// newHardFixture returns a fixture with the largest records and with long runs of orders with one
// status. Some records lack optional attributes that save requests, like records written by other
// software. Some item collections are too large for one read. One customer has most of the orders.
func newHardFixture(name string, shards, run int) *fixture {
	customer := func(n int) commerce.CustomerID {
		return commerce.CustomerID(padded(fmt.Sprintf("customer-%d-", n), 64))
	}
	sku := func(n int) commerce.SKU { return commerce.SKU(padded(fmt.Sprintf("sku-%02d-", n), 64)) }
	house := func(n int) commerce.WarehouseID {
		return commerce.WarehouseID(padded(fmt.Sprintf("house-%03d-", n), 64))
	}
	rep := func(n int) commerce.EmployeeID { return commerce.EmployeeID(padded(fmt.Sprintf("rep-%d-", n), 64)) }
	quoted := func(values ...string) []string {
		for i, v := range values {
			values[i] = fmt.Sprintf("%q", v)
		}
		return values
	}
	ids := quoted(string(customer(0)), string(customer(1)), string(customer(7)), "gone", string(rep(0)), string(rep(1)), string(house(0)), string(house(1)),
		string(hardOrder(3)), string(hardOrder(50)), string(hardOrder(7)), string(hardOrder(8)), string(hardOrder(69)))
	orders := quoted(string(hardOrder(3)), string(hardOrder(7)), string(hardOrder(8)))
	skus := quoted(string(sku(0)), string(sku(1)), string(sku(20)), "gone")
	w := &fixture{name: name, shards: shards, values: map[string][]string{
		"id": ids, "orderId": orders, "sku": skus, "productId": skus, "warehouseId": quoted(string(house(0)), string(house(1))),
		"email": quoted("customer0@example.com", "nobody@example.com"), "status": {`PENDING`, `DELIVERED`, `CANCELLED`},
		"statuses": {`[PENDING, CONFIRMED]`, `SHIPPED`, `null`, `[PENDING, DELIVERED, CANCELLED, SHIPPED]`},
		"placed":   {`{from: "2025-01-01T00:00:00Z"}`, `{}`, `null`}, "hired": {`{from: "2020-01-01"}`, `{}`},
		"tag": quoted(padded("tag", commerce.MaxTag), "none"), "category": quoted(padded("Things", 200)), "name": quoted(padded("Rep", 200)), "jobTitle": quoted(padded("Rep", 200)),
	}}
	w.store = func(t *testing.T, db *dynamodb.Client) *dynamo.Store {
		t.Helper()
		price, err := commerce.ParseMoney("9999999999999.99", "USD")
		if err != nil {
			t.Fatal(err)
		}
		var phones []string
		for range commerce.MaxPhoneNumbers {
			phones = append(phones, padded("+1-555-", commerce.MaxPhoneNumberLength))
		}
		dataset := commerce.Dataset{}
		for n := range hardLevels {
			dataset.Warehouses = append(dataset.Warehouses, commerce.Warehouse{ID: house(n), Name: padded("House", 200), Version: 1 << 40})
			dataset.Levels = append(dataset.Levels, commerce.InventoryLevel{SKU: sku(0), WarehouseID: house(n), Quantity: 999_999_999, Version: 1 << 40})
		}
		for n := range hardProducts {
			dataset.Products = append(dataset.Products, commerce.Product{SKU: sku(n), Name: padded("Thing", 200), Category: padded("Things", 200), UnitPrice: price, Version: 1 << 40})
			if n > 0 {
				dataset.Levels = append(dataset.Levels, commerce.InventoryLevel{SKU: sku(n), WarehouseID: house(n % 3), Quantity: 999_999_999})
			}
		}
		for n := range 2 {
			dataset.Employees = append(dataset.Employees, commerce.Employee{ID: rep(n), Name: padded("Rep", 200), JobTitle: padded("Rep", 200), PhoneNumbers: phones,
				HireDate: "2022-02-02", WarehouseID: house(n), Version: 1 << 40})
		}
		for n := range hardCustomers {
			c := commerce.Customer{ID: customer(n), Name: padded("Customer", 200), Email: fmt.Sprintf("customer%d@example.com", n), PhoneNumbers: phones,
				AccountRepID: rep(n % 2), CreatedAt: hardStart, UpdatedAt: hardStart, Version: 1 << 40}
			if count := 1; n%3 > 0 {
				c.OrderCount = &count // the other customers have no stored count, like external records
			}
			dataset.Customers = append(dataset.Customers, c)
		}
		placed := hardOrders
		if w.full {
			placed = 110
		}
		for n := range placed {
			owner := customer(0)
			if n%9 == 0 && !w.full {
				owner = customer(n % hardCustomers)
			}
			at := hardStart.Add(time.Duration(n) * time.Millisecond)
			o := commerce.OrderWithItems{Order: commerce.Order{ID: hardOrder(n), CustomerID: owner, Status: commerce.Statuses()[n/run*3%5], PlacedAt: at, UpdatedAt: at,
				Total: price, AccountRepID: rep(n % 2), Version: 1 << 40, ShippingAddress: &commerce.Address{Recipient: padded("a", 200), Line1: padded("a", 200),
					Line2: padded("a", 200), City: padded("a", 200), Region: padded("a", 200), PostalCode: padded("a", 200), CountryCode: "US"}}}
			if n%2 == 0 || w.full {
				for tag := range commerce.MaxTags - 1 {
					o.Tags = append(o.Tags, padded(fmt.Sprintf("t%02d", tag), commerce.MaxTag))
				}
				o.Tags = append(o.Tags, padded("tag", commerce.MaxTag))
			}
			lines := 2
			switch n % 20 {
			case 3, 10:
				lines = commerce.MaxEmbeddedItems
			case 7:
				lines = commerce.MaxLines
			case 8:
				lines = commerce.MaxEmbeddedItems + 1
			}
			if w.full {
				lines, o.BillingAddress = commerce.MaxEmbeddedItems, o.ShippingAddress
				o.Adjustments = slices.Repeat([]commerce.OrderAdjustment{{Kind: commerce.AdjustmentShipping, Label: padded("l", commerce.MaxAdjustmentLabel), Amount: price, Line: sku(0)}}, commerce.MaxAdjustments)
			}
			for l := range lines {
				o.Lines = append(o.Lines, commerce.LineItem{OrderID: o.ID, CustomerID: owner, SKU: sku(l), Name: padded("Thing", 200), Quantity: 9_999, Cancelled: 9_999, UnitPrice: price})
			}
			o.PaymentTotals = &commerce.PaymentTotals{Authorized: price, Captured: price, Refunded: price}
			if n%2 == 0 { // the payment is outstanding
				o.PaymentTotals.Captured, o.PaymentTotals.Refunded = commerce.Money{Currency: "USD"}, commerce.Money{Currency: "USD"}
			}
			for p := range n % 4 {
				o.Payments = append(o.Payments, commerce.Payment{ID: commerce.PaymentID(hardOrder(n*1000 + p)), OrderID: o.ID, Kind: commerce.PaymentAuthorization, Amount: price, At: at,
					ProviderReference: padded("p", commerce.MaxIDLength) + ":" + padded(fmt.Sprint("r", n, "-", p, "-"), commerce.MaxPaymentReference), Actor: padded("a", 100)})
			}
			for r := range n % 3 {
				lines := slices.Repeat([]commerce.ReturnLine{{SKU: sku(0), Quantity: 1, Reason: padded("r", commerce.MaxReturnReason), Restocked: new(1)}}, commerce.MaxReturnLines)
				o.Returns = append(o.Returns, commerce.Return{ID: commerce.ReturnID(hardOrder(n*1000 + r)), OrderID: o.ID, Status: commerce.ReturnRequested, Lines: lines, Amount: price, CreatedAt: at, UpdatedAt: at,
					RejectionReason: padded("r", commerce.MaxReturnReason), Actor: padded("a", 100)})
			}
			if w.full || o.Status == commerce.Shipped || n%4 == 0 { // the status need not follow from the parcels
				o.Fulfillments = append(o.Fulfillments, commerce.Fulfillment{ID: commerce.FulfillmentID(hardOrder(n * 1000)), OrderID: o.ID, WarehouseID: house(0), Status: commerce.FulfillmentDelivered, CreatedAt: at, UpdatedAt: at,
					Carrier: padded("c", 200), TrackingNumber: padded("t", 200), TrackingURL: padded("https://example.com/", commerce.MaxTrackingURL), Actor: padded("a", 200)})
				for l := range lines {
					o.Fulfillments[0].Lines = append(o.Fulfillments[0].Lines, commerce.FulfillmentLine{SKU: sku(l), Quantity: 9_999})
				}
				o.Fulfilled = &commerce.FulfillmentTotals{Count: 1, Shipped: o.Fulfillments[0].Lines}
			}
			events := 1
			if n == 3 {
				events = hardEvents // more than one read can return
			}
			for e := range events {
				o.Events = append(o.Events, commerce.Event{ID: commerce.EventID(hardOrder(n*1000 + e)), OrderID: o.ID, Type: commerce.EventShippingAddressChanged, At: at,
					Actor: padded("a", 100), Note: padded("n", commerce.MaxNote), From: commerce.Cancelled, To: commerce.Cancelled, WarehouseID: house((n + e) % hardLevels)})
			}
			dataset.Orders = append(dataset.Orders, o)
		}
		table := storetest.TableName()
		store := storetest.NewTable(t, db, dynamo.Options{Table: table, Shards: shards})
		storetest.LoadDataset(t, store, dataset)
		// A tenth of the orders are like external records: they contain neither their items nor an item
		// count.
		for n := 5; n < hardOrders && !w.full; n += 10 {
			o := dataset.Orders[n]
			for _, key := range [][2]string{{"ORDER#" + string(o.ID), "#METADATA"}, {"CUSTOMER#" + string(o.CustomerID), "ORDER#" + string(o.ID)}} {
				remove(t, db, table, key[0], key[1], "items, itemCount")
			}
		}
		// One customer's record is missing, but its edge exists.
		if _, err := db.DeleteItem(context.Background(), &dynamodb.DeleteItemInput{TableName: &table, Key: storetest.ItemKey("CUSTOMER#"+string(customer(11)), "#METADATA")}); err != nil {
			t.Fatal(err)
		}
		return store
	}
	return w
}

func remove(t *testing.T, db *dynamodb.Client, table, pk, sk, attributes string) {
	t.Helper()
	names := map[string]string{}
	expression := "REMOVE "
	for i, name := range strings.Split(attributes, ", ") {
		placeholder := fmt.Sprintf("#a%d", i)
		names[placeholder] = name
		if i > 0 {
			expression += ", "
		}
		expression += placeholder
	}
	_, err := db.UpdateItem(context.Background(), &dynamodb.UpdateItemInput{TableName: &table, Key: storetest.ItemKey(pk, sk),
		UpdateExpression: aws.String(expression), ExpressionAttributeNames: names})
	if err != nil {
		t.Fatal(err)
	}
}
