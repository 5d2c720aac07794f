package sampledata_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/internal/sampledata"
)

func sample(t testing.TB) commerce.Dataset {
	t.Helper()
	dataset, err := sampledata.Sample()
	if err != nil {
		t.Fatal(err)
	}
	return dataset
}

func TestSampleRecords(t *testing.T) {
	b := sample(t)
	got := []int{len(b.Employees), len(b.Warehouses), len(b.Products), len(b.Levels), len(b.Customers), len(b.Orders)}
	if want := []int{8, 3, 7, 10, 7, 9}; !reflect.DeepEqual(got, want) {
		t.Errorf("employees, warehouses, products, levels, customers, orders: %v, want %v", got, want)
	}
	orders := map[commerce.CustomerID]int{"cust_01": 2, "c1": 2, "cust_001": 2, "cust_002": 1, "cust_003": 1, "cust_004": 1, "cust_005": 0}
	for _, c := range b.Customers {
		if *c.OrderCount != orders[c.ID] || c.Version != 1 || c.CreatedAt.IsZero() || c.UpdatedAt != c.CreatedAt {
			t.Errorf("customer %s: %d orders, version %d, created %v, updated %v; want %d orders", c.ID, *c.OrderCount, c.Version, c.CreatedAt, c.UpdatedAt, orders[c.ID])
		}
	}
}

func TestSampleTotals(t *testing.T) {
	totals := map[commerce.OrderID]string{
		"01HVMK3P2Q0000000000000001": "94.96 USD", "01HVNR4Q3R0000000000000002": "29.99 USD",
		"01KJMDEB800000000000000100": "145.00 GBP", "01KNVV2HR00000000000000101": "310.00 GBP",
		"01KA3P5WG00000000000000001": "125.00 USD", "01KCXT31G00000000000000002": "150.00 USD",
		"01KE70EHG00000000000000003": "75.00 USD", "01K76ZW0G00000000000000004": "250.00 USD",
		"01KE1VN3G00000000000000005": "200.00 USD",
	}
	for _, o := range sample(t).Orders {
		if got := o.Total.Decimal() + " " + string(o.Total.Currency); got != totals[o.ID] {
			t.Errorf("order %s: total %s, want %s", o.ID, got, totals[o.ID])
		}
		if placed, ok := o.ID.Time(); !ok || !placed.Equal(o.PlacedAt) || o.UpdatedAt != o.PlacedAt || *o.ItemCount != len(o.Lines) || o.Version != 1 {
			t.Errorf("order %s: placed %v, updated %v, %d items, version %d", o.ID, o.PlacedAt, o.UpdatedAt, *o.ItemCount, o.Version)
		}
	}
}

// Pending and confirmed orders reserve stock. Every product of the sample data can be ordered.
func TestSampleStock(t *testing.T) {
	stock := map[commerce.SKU][2]int{"prod_100": {500, 477}, "prod_101": {300, 290}}
	for _, p := range sample(t).Products {
		want, listed := stock[p.SKU]
		if got := [2]int{p.TotalInventory, p.Available}; listed && got != want {
			t.Errorf("%s: totalInventory and available are %v, want %v", p.SKU, got, want)
		}
		if p.Available < 1 {
			t.Errorf("%s cannot be ordered: %d available", p.SKU, p.Available)
		}
	}
}

func TestSampleAccountReps(t *testing.T) {
	for _, o := range sample(t).Orders {
		want := map[commerce.CustomerID]commerce.EmployeeID{"cust_001": "rep_001", "cust_002": "rep_001", "cust_003": "rep_002", "cust_004": "rep_002"}[o.CustomerID]
		if o.AccountRepID != want {
			t.Errorf("order %s of %s: account rep %q, want %q", o.ID, o.CustomerID, o.AccountRepID, want)
		}
	}
}

// Every order has one imported event with its status and time.
func TestSampleEvents(t *testing.T) {
	seen := map[commerce.EventID]bool{}
	for _, o := range sample(t).Orders {
		if len(o.Events) != 1 {
			t.Fatalf("order %s has %d events", o.ID, len(o.Events))
		}
		e := o.Events[0]
		want := commerce.Event{ID: e.ID, OrderID: o.ID, Type: commerce.EventImported, To: o.Status, At: o.PlacedAt, Actor: "import", Version: o.Version}
		if e != want {
			t.Errorf("order %s: event %+v, want %+v", o.ID, e, want)
		}
		if at, ok := e.ID.Time(); !ok || !at.Equal(o.PlacedAt) || seen[e.ID] || string(e.ID) == string(o.ID) {
			t.Errorf("order %s: event ID %s is not unique, or its time %v is not the time of the order", o.ID, e.ID, at)
		}
		seen[e.ID] = true
	}
}

// Loading a file twice must equal loading it once, so a dataset must not depend on the time of
// reading.
func TestReadTwice(t *testing.T) {
	if first, second := sample(t), sample(t); !reflect.DeepEqual(first, second) {
		t.Errorf("the datasets differ:\n%+v\n%+v", first, second)
	}
}

// smallDataset is a dataset with one record of each type. Tests replace one value at a time.
const smallDataset = `{
 "employees": [{"id": "e1", "name": "Eve", "phoneNumbers": ["+1"], "warehouseId": "w1", "jobTitle": "Manager", "hireDate": "2024-03-15"}],
 "warehouses": [{"id": "w1", "name": "West"}],
 "products": [{"sku": "mug", "name": "Mug", "category": "Kitchen", "unitPrice": "4.50", "currency": "EUR", "inventory": {"w1": 10}}],
 "customers": [{"id": "c1", "name": "Carl", "email": "carl@example.com", "phoneNumbers": [], "accountRepId": "e1", "createdAt": "2024-04-01T09:00:00Z"}],
 "orders": [{"id": "01HVMK3P2Q0000000000000001", "customerId": "c1", "status": "pending", "currency": "EUR", "placedAt": "2024-04-16T23:15:41.783Z",
  "items": [{"sku": "mug", "name": "Mug", "quantity": 2, "unitPrice": "4.00"}]}]
}`

func TestRead(t *testing.T) {
	b, err := sampledata.Read(strings.NewReader(smallDataset))
	if err != nil {
		t.Fatal(err)
	}
	if e := b.Employees[0]; e.ID != "e1" || e.Name != "Eve" || e.WarehouseID != "w1" || e.JobTitle != "Manager" || e.HireDate != "2024-03-15" || len(e.PhoneNumbers) != 1 || e.Version != 1 {
		t.Errorf("employee %+v", e)
	}
	if p := b.Products[0]; p.UnitPrice.Decimal() != "4.50" || p.UnitPrice.Currency != "EUR" || p.Category != "Kitchen" || p.Available != 8 {
		t.Errorf("product %+v", p)
	}
	if o := b.Orders[0]; o.Total.Decimal() != "8.00" || o.Total.Currency != "EUR" || o.Status != commerce.Pending || o.AccountRepID != "e1" {
		t.Errorf("order %+v", o)
	}
}

// An error names the location in the file.
func TestReadInvalid(t *testing.T) {
	for _, c := range []struct{ replace, with, place, reason string }{
		{`"id": "e1", "name": "Eve"`, `"id": "e#1", "name": "Eve"`, "employees[0].id", `'#'`},
		{`"name": "Eve"`, `"name": ""`, "employees[0].name", "is empty"},
		{`"warehouseId": "w1"`, `"warehouseId": "w 1"`, "employees[0].warehouseId", `' '`},
		{`"Manager"`, `"#1"`, "employees[0].jobTitle", `'#'`},
		{`"2024-03-15"`, `"2024-02-30"`, "employees[0].hireDate", "2026-02-01"},
		{`{"id": "w1"`, `{"id": ""`, "warehouses[0].id", "is empty"},
		{`"West"`, `"\u0007"`, "warehouses[0].name", "remove this character"},
		{`"sku": "mug", "name": "Mug", "category"`, `"sku": "", "name": "Mug", "category"`, "products[0].sku", "is empty"},
		{`"name": "Mug", "category"`, `"name": "", "category"`, "products[0].name", "is empty"},
		{`"Kitchen"`, `"` + strings.Repeat("x", 257) + `"`, "products[0].category", "257 bytes"},
		{`"4.50"`, `"4,50"`, "products[0].unitPrice", "decimal number"},
		{`"currency": "EUR", "inventory"`, `"currency": "eur", "inventory"`, "products[0].currency", "ISO 4217"},
		{`"inventory": {"w1"`, `"inventory": {"w#1"`, "products[0].inventory", `'#'`},
		{`{"id": "c1"`, `{"id": "` + strings.Repeat("c", 65) + `"`, "customers[0].id", "65 bytes"},
		{`"Carl"`, `""`, "customers[0].name", "is empty"},
		{`"carl@example.com"`, `"carl"`, "customers[0].email", "email address"},
		{`"accountRepId": "e1"`, `"accountRepId": "e/1"`, "customers[0].accountRepId", `'/'`},
		{`01HVMK3P2Q0000000000000001`, `ord_001`, "orders[0].id", "ULID"},
		{`"pending"`, `"open"`, "orders[0].status", "not a status"},
		{`15:41.783Z`, `15:41.784Z`, "orders[0].placedAt", "2024-04-16T23:15:41.783Z"},
		{`"customerId": "c1"`, `"customerId": ""`, "orders[0].customerId", "is empty"},
		{`"items": [{"sku": "mug"`, `"items": [{"sku": "m#g"`, "orders[0].items[0].sku", `'#'`},
		{`"name": "Mug", "quantity"`, `"name": "", "quantity"`, "orders[0].items[0].name", "is empty"},
		{`"4.00"`, `"NaN"`, "orders[0].items[0].unitPrice", "decimal number"},
		// Errors of Settle name the record's ID.
		{`"customerId": "c1"`, `"customerId": "c2"`, "order 01HVMK3P2Q0000000000000001", "c2"},
		{`"items": [{"sku": "mug"`, `"items": [{"sku": "vase"`, "order 01HVMK3P2Q0000000000000001", "vase"},
		{`"quantity": 2`, `"quantity": 0`, "order 01HVMK3P2Q0000000000000001", "quantity of 0"},
		// Errors of the JSON decoder.
		{`"quantity": 2`, `"quantity": 2.5`, "orders.items.quantity", "2.5"},
		{`"4.50"`, `4.50`, "products.unitPrice", "string"},
		{`"West"`, `"West", "town": "Forks"`, "town", "unknown field"},
		{`2024-04-01T09:00:00Z`, `yesterday`, "yesterday", "parsing time"},
	} {
		t.Run(c.place+" "+c.reason, func(t *testing.T) {
			invalid := strings.Replace(smallDataset, c.replace, c.with, 1)
			if invalid == smallDataset {
				t.Fatalf("the dataset does not contain %s", c.replace)
			}
			_, err := sampledata.Read(strings.NewReader(invalid))
			if err == nil || !strings.HasPrefix(err.Error(), "read dataset: ") || !strings.Contains(err.Error(), c.place) || !strings.Contains(err.Error(), c.reason) {
				t.Errorf("error %v, want one with %s and %s", err, c.place, c.reason)
			}
		})
	}
}

func TestReadOtherFiles(t *testing.T) {
	for _, text := range []string{"", "{", "[]", `"dataset"`, "\x00", "sku,name\n"} {
		if _, err := sampledata.Read(strings.NewReader(text)); err == nil || !strings.HasPrefix(err.Error(), "read dataset: ") {
			t.Errorf("%q: error %v", text, err)
		}
	}
}

// Read returns an error or a dataset whose orders are complete.
func FuzzRead(f *testing.F) {
	f.Add(smallDataset)
	f.Add(`{}`)
	f.Add(`{"orders": [{"items": [{}]}]}`)
	f.Add(`{"products": [{"inventory": null}], "customers": [{"createdAt": "2024-04-01T09:00:00Z"}]}`)
	f.Add(`{"orders": null, "employees": [null]}`)
	f.Fuzz(func(t *testing.T, text string) {
		b, err := sampledata.Read(strings.NewReader(text))
		if err != nil {
			return
		}
		for _, o := range b.Orders {
			if len(o.Lines) == 0 || o.ItemCount == nil || len(o.Events) != 1 {
				t.Errorf("order %+v of %q", o, text)
			}
		}
	})
}
