package server_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// externalWriter writes records as other software does. Attributes are strings, or numbers if the
// text is a number.
type externalWriter struct {
	db    *dynamodb.Client
	table string
}

func (f externalWriter) put(t testing.TB, attributes map[string]string, more ...map[string]types.AttributeValue) {
	t.Helper()
	record := map[string]types.AttributeValue{}
	for name, v := range attributes {
		switch name {
		case "total", "price", "qty":
			record[name] = &types.AttributeValueMemberN{Value: v}
		default:
			record[name] = &types.AttributeValueMemberS{Value: v}
		}
	}
	for _, m := range more {
		for name, v := range m {
			record[name] = v
		}
	}
	if _, err := f.db.PutItem(context.Background(), &dynamodb.PutItemInput{TableName: &f.table, Item: record}); err != nil {
		t.Fatal(err)
	}
}

// emptyTable returns an empty table for external records.
func emptyTable(t *testing.T, db *dynamodb.Client) (*dynamo.Store, externalWriter) {
	t.Helper()
	store := storetest.NewTable(t, db, dynamo.Options{})
	description, err := store.DescribeTable(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return store, externalWriter{db: db, table: description.Name}
}

// externalTable returns a table as an ElectroDB service writes it. Its records have no entity, no
// version, no embedded items and the keys of one shard. The order ID of an item is only in the key.
func externalTable(t *testing.T, db *dynamodb.Client) (api, externalWriter) {
	store, f := emptyTable(t, db)
	marks := map[string]types.AttributeValue{
		"__edb_e__": &types.AttributeValueMemberS{Value: "any"}, "__edb_v__": &types.AttributeValueMemberS{Value: "1"},
	}
	f.put(t, map[string]string{
		"pk": "CUSTOMER#cust_01", "sk": "#METADATA", "customerId": "cust_01", "name": "Alice Chen", "email": "alice@example.com",
		"createdAt": "2024-04-01T09:00:00.000Z", "updatedAt": "2024-04-01T09:00:00.000Z",
	}, marks)
	for _, o := range []struct{ id, status, total string }{
		{"01HVMK3P2Q0000000000000001", "delivered", "94.96"}, {"01HVNR4Q3R0000000000000002", "pending", "29.9"},
	} {
		header := map[string]string{"orderId": o.id, "customerId": "cust_01", "status": o.status, "total": o.total, "createdAt": "2024-04-16T23:15:41.783Z"}
		direct := map[string]string{"pk": "ORDER#" + o.id, "sk": "#METADATA", "gsi1pk": "STATUS#" + o.status, "gsi1sk": "ORDER#" + o.id}
		copied := map[string]string{"pk": "CUSTOMER#cust_01", "sk": "ORDER#" + o.id}
		for _, keys := range []map[string]string{direct, copied} {
			for name, v := range header {
				keys[name] = v
			}
			f.put(t, keys, marks)
		}
	}
	for _, i := range []struct{ order, sku, name, qty, price string }{
		{"01HVMK3P2Q0000000000000001", "prod_xyz", "Keyboard", "1", "79.99"},
		{"01HVMK3P2Q0000000000000001", "prod_def", "USB Cable", "3", "4.99"},
		{"01HVNR4Q3R0000000000000002", "prod_abc", "Wireless Mouse", "1", "29.9"},
	} {
		f.put(t, map[string]string{"pk": "ORDER#" + i.order, "sk": "ITEM#" + i.sku, "productId": i.sku, "name": i.name, "qty": i.qty, "price": i.price}, marks)
	}
	return serve(t, store), f
}

func TestRecordsOfOtherSoftwareReadAsTheyAre(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		api, _ := externalTable(t, db)
		for _, c := range []struct {
			name, query, want    string
			requests, roundTrips int
		}{
			{"customer", `{ customer(id: "cust_01") { name email phoneNumbers accountRep { id } orderCount version updatedAt } }`,
				`{"customer":{"name":"Alice Chen","email":"alice@example.com","phoneNumbers":[],"accountRep":null,"orderCount":2,"version":0,"updatedAt":"2024-04-01T09:00:00.000Z"}}`, 2, 2},
			{"order", `{ order(id: "01HVNR4Q3R0000000000000002") { status total { amount currencyCode } version itemCount placedAt updatedAt } }`,
				`{"order":{"status":"PENDING","total":{"amount":"29.90","currencyCode":"USD"},"version":0,"itemCount":1,"placedAt":"2024-04-17T10:02:52.920Z","updatedAt":"2024-04-17T10:02:52.920Z"}}`, 2, 2},
			{"items are read by a Query", `{ order(id: "01HVMK3P2Q0000000000000001") { items { nodes { orderId productId quantity subtotal { amount } order { status } } } item(productId: "prod_xyz") { name } } }`,
				`{"order":{"items":{"nodes":[{"orderId":"01HVMK3P2Q0000000000000001","productId":"prod_def","quantity":3,"subtotal":{"amount":"14.97"},"order":{"status":"DELIVERED"}},{"orderId":"01HVMK3P2Q0000000000000001","productId":"prod_xyz","quantity":1,"subtotal":{"amount":"79.99"},"order":{"status":"DELIVERED"}}]},"item":{"name":"Keyboard"}}}`, 3, 2},
			{"items and their count are one Query", `{ order(id: "01HVMK3P2Q0000000000000001") { itemCount items(first: 1) { nodes { productId product { name } } pageInfo { hasNextPage } } } }`,
				`{"order":{"itemCount":2,"items":{"nodes":[{"productId":"prod_def","product":null}],"pageInfo":{"hasNextPage":true}}}}`, 3, 3},
			{"an order item collection is still one Query", `{ order(id: "01HVMK3P2Q0000000000000001") { itemCount items { nodes { productId } } timeline { nodes { id } } } }`,
				`{"order":{"itemCount":2,"items":{"nodes":[{"productId":"prod_def"},{"productId":"prod_xyz"}]},"timeline":{"nodes":[]}}}`, 1, 1},
			{"pages of items", `{ order(id: "01HVMK3P2Q0000000000000001") { items(last: 1) { nodes { productId } pageInfo { hasPreviousPage } } } }`,
				`{"order":{"items":{"nodes":[{"productId":"prod_xyz"}],"pageInfo":{"hasPreviousPage":true}}}}`, 2, 2},
			{"orders of a customer with items", `{ customer(id: "cust_01") { orders { nodes { id items { nodes { name } } } } } }`,
				`{"customer":{"orders":{"nodes":[{"id":"01HVNR4Q3R0000000000000002","items":{"nodes":[{"name":"Wireless Mouse"}]}},{"id":"01HVMK3P2Q0000000000000001","items":{"nodes":[{"name":"USB Cable"},{"name":"Keyboard"}]}}]}}}`, 4, 2},
			{"unsharded keys", `{ ordersByStatus(status: PENDING) { nodes { id customer { name } } } }`,
				`{"ordersByStatus":{"nodes":[{"id":"01HVNR4Q3R0000000000000002","customer":{"name":"Alice Chen"}}]}}`, 2, 2},
			{"an item of an order, and what it refers to", `{ order(id: "01HVMK3P2Q0000000000000001") { item(productId: "prod_xyz") { name product { name } order { status } } } }`,
				`{"order":{"item":{"name":"Keyboard","product":null,"order":{"status":"DELIVERED"}}}}`, 3, 2},
			{"one item by its key", `{ orderItem(orderId: "01HVMK3P2Q0000000000000001", productId: "prod_def") { orderId name unitPrice { amount currencyCode } } }`,
				`{"orderItem":{"orderId":"01HVMK3P2Q0000000000000001","name":"USB Cable","unitPrice":{"amount":"4.99","currencyCode":"USD"}}}`, 1, 1},
		} {
			t.Run(c.name, func(t *testing.T) {
				got := api.ask(t, c.query, nil)
				if len(got.Errors) > 0 || string(got.Data) != c.want {
					t.Errorf("%s\ngives %s %+v\nwant  %s", c.query, got.Data, got.Errors, c.want)
				}
				got.Extensions.Explain.budget(t, c.requests, c.roundTrips)
			})
		}
	})
}

// The records of a page exceed the megabyte that one Query returns, but the page is full.
func TestPagesAreFullBeyondTheMegabyte(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		api, f := externalTable(t, db)
		bulk := map[string]types.AttributeValue{"bulk": &types.AttributeValueMemberS{Value: strings.Repeat("x", 100_000)}}
		for n := range 25 {
			id := string(orderID(n))
			f.put(t, map[string]string{
				"pk": "ORDER#" + id, "sk": "#METADATA", "gsi1pk": "STATUS#shipped", "gsi1sk": "ORDER#" + id,
				"orderId": id, "customerId": "cust_01", "status": "shipped", "total": "1", "createdAt": "2026-01-01T00:00:00.000Z",
			}, bulk)
		}
		var data struct {
			OrdersByStatus struct {
				Nodes    []struct{ ID string }
				PageInfo struct{ HasNextPage bool }
			}
		}
		e := api.read(t, &data, `{ ordersByStatus(status: SHIPPED, first: 24) { nodes { id } pageInfo { hasNextPage } } }`)
		if len(data.OrdersByStatus.Nodes) != 24 || !data.OrdersByStatus.PageInfo.HasNextPage {
			t.Fatalf("the page has %d orders and hasNextPage %v, want 24 and true\n%s", len(data.OrdersByStatus.Nodes), data.OrdersByStatus.PageInfo.HasNextPage, e)
		}
		for i, n := range data.OrdersByStatus.Nodes {
			if n.ID != string(orderID(24-i)) {
				t.Errorf("order %d of the page is %s, want %s", i, n.ID, orderID(24-i))
			}
		}
	})
}

// A record without a required attribute fails the field that reads it, but not its neighbours. The
// error contains nothing of the table.
func TestCorruptRecordsFailTheirOwnField(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		store, f := emptyTable(t, db)
		f.put(t, map[string]string{"pk": "CUSTOMER#good", "sk": "#METADATA", "customerId": "good", "name": "Good", "email": "g@example.com", "createdAt": "2024-04-01T09:00:00.000Z"})
		f.put(t, map[string]string{"pk": "CUSTOMER#bad", "sk": "#METADATA", "customerId": "bad", "name": "Bad"})
		var logged strings.Builder
		api := serveLogging(t, store, &logged)
		got := api.ask(t, `{ bad: customer(id: "bad") { name } good: customer(id: "good") { name } }`, nil)
		if want := `{"bad":null,"good":{"name":"Good"}}`; string(got.Data) != want {
			t.Errorf("data is %s, want %s", got.Data, want)
		}
		if len(got.Errors) != 1 || got.Errors[0].Extensions["code"] != "MALFORMED_RECORD" || strings.Contains(fmt.Sprint(got.Errors), "CUSTOMER#") {
			t.Errorf("errors are %+v, want one MALFORMED_RECORD without keys", got.Errors)
		}
		if !strings.Contains(logged.String(), "CUSTOMER#bad") || !strings.Contains(logged.String(), "email") {
			t.Errorf("the log does not name the record and the attribute: %s", logged.String())
		}
	})
}

// A reference to a missing record is null. A malformed reference is an error of its own field.
// Neither affects the other orders of the page.
func TestBadReferencesAffectOnlyTheirField(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		store, f := emptyTable(t, db)
		f.put(t, map[string]string{"pk": "CUSTOMER#good", "sk": "#METADATA", "customerId": "good", "name": "Good", "email": "g@example.com", "createdAt": "2024-04-01T09:00:00.000Z"})
		for n, customer := range []string{"good", "gone", "", "a#b"} {
			id := string(orderID(n))
			f.put(t, map[string]string{
				"pk": "ORDER#" + id, "sk": "#METADATA", "gsi1pk": "STATUS#pending", "gsi1sk": "ORDER#" + id, "orderId": id,
				"customerId": customer, "status": "pending", "total": "1", "createdAt": "2026-01-01T00:00:00.000Z",
			}, map[string]types.AttributeValue{"items": &types.AttributeValueMemberL{}, "itemCount": &types.AttributeValueMemberN{Value: "0.0"}})
		}
		var logged strings.Builder
		got := serveLogging(t, store, &logged).ask(t, `{ ordersByStatus(status: PENDING) { nodes { itemCount customer { name } } } }`, nil)
		want := `{"ordersByStatus":{"nodes":[{"itemCount":0,"customer":null},{"itemCount":0,"customer":null},{"itemCount":0,"customer":null},{"itemCount":0,"customer":{"name":"Good"}}]}}`
		if string(got.Data) != want {
			t.Errorf("data is %s, want %s", got.Data, want)
		}
		if len(got.Errors) != 1 || got.Errors[0].Extensions["code"] != "MALFORMED_RECORD" {
			t.Errorf("errors are %+v, want one MALFORMED_RECORD for the invalid reference", got.Errors)
		}
		if !strings.Contains(logged.String(), "a#b") {
			t.Errorf("the log does not name the reference: %s", logged.String())
		}
	})
}

// Embedded items that are not sorted are listed by SKU, on the order and on pages.
func TestEmbeddedItemsAreListedBySKU(t *testing.T) {
	api, f := externalTable(t, storetest.Engines()[0].Client(t))
	line := func(sku string) types.AttributeValue {
		return &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{
			"productId": &types.AttributeValueMemberS{Value: sku}, "name": &types.AttributeValueMemberS{Value: sku},
			"qty": &types.AttributeValueMemberN{Value: "1E+1"}, "price": &types.AttributeValueMemberN{Value: "2.50E0"},
		}}
	}
	id := string(orderID(1))
	f.put(t, map[string]string{
		"pk": "ORDER#" + id, "sk": "#METADATA", "orderId": id, "customerId": "cust_01", "status": "shipped", "total": "75", "createdAt": "2026-01-01T00:00:00.000Z",
	}, map[string]types.AttributeValue{"items": &types.AttributeValueMemberL{Value: []types.AttributeValue{line("c"), line("a"), line("b")}}})
	got := api.ask(t, `{ order(id: "`+id+`") { itemCount items { nodes { productId quantity subtotal { amount } } } last: items(last: 1) { nodes { productId } } } }`, nil)
	want := `{"order":{"itemCount":3,"items":{"nodes":[{"productId":"a","quantity":10,"subtotal":{"amount":"25.00"}},{"productId":"b","quantity":10,"subtotal":{"amount":"25.00"}},{"productId":"c","quantity":10,"subtotal":{"amount":"25.00"}}]},"last":{"nodes":[{"productId":"c"}]}}}`
	if string(got.Data) != want {
		t.Errorf("data is %s %+v, want %s", got.Data, got.Errors, want)
	}
}

// Fields that fail for the same reason are logged in one line.
func TestOneReasonIsLoggedOnce(t *testing.T) {
	_, f := externalTable(t, storetest.Engines()[0].Client(t))
	f.put(t, map[string]string{"pk": "CUSTOMER#bad", "sk": "#METADATA", "customerId": "bad"})
	store, err := dynamo.New(f.db, dynamo.Options{Table: f.table})
	if err != nil {
		t.Fatal(err)
	}
	var logged strings.Builder
	got := serveLogging(t, store, &logged).ask(t, `{ a: customer(id: "bad") { name } b: customer(id: "bad") { name } c: customer(id: "bad") { name } }`, nil)
	if len(got.Errors) != 3 || strings.Count(logged.String(), "\n") != 1 {
		t.Errorf("%d errors, and the log is %s", len(got.Errors), logged.String())
	}
}
