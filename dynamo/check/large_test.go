package check_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/check"
	"github.com/ordergraph/ordergraph/dynamo/derive"
	"github.com/ordergraph/ordergraph/internal/test/longtest"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// largeDataset makes a dataset with the given number of orders, five per customer, and stock for
// all of them.
func largeDataset(t testing.TB, random *rand.Rand, orders int) commerce.Dataset {
	dataset := commerce.Dataset{Warehouses: []commerce.Warehouse{{ID: "w1", Name: "North", Version: 1}, {ID: "w2", Name: "South", Version: 1}}}
	for i := range 20 {
		e := commerce.Employee{ID: commerce.EmployeeID(fmt.Sprintf("e%d", i)), Name: fmt.Sprintf("Employee %d", i), PhoneNumbers: []string{"1"}, JobTitle: "Rep", HireDate: "2020-01-02", Version: 1}
		if i%2 == 0 {
			e.WarehouseID = "w1"
		}
		dataset.Employees = append(dataset.Employees, e)
	}
	products := max(3, orders/20)
	for i := range products {
		sku := commerce.SKU(fmt.Sprintf("p%d", i))
		dataset.Products = append(dataset.Products, commerce.Product{SKU: sku, Name: "Thing", Category: "Things", UnitPrice: storetest.USD("2.50"), Version: 1})
		for _, w := range dataset.Warehouses {
			dataset.Levels = append(dataset.Levels, commerce.InventoryLevel{SKU: sku, WarehouseID: w.ID, Quantity: random.IntN(1000), Version: 1})
		}
	}
	for i := range max(1, orders/5) {
		c := commerce.Customer{ID: commerce.CustomerID(fmt.Sprintf("c%d", i)), Name: "Customer", Email: fmt.Sprintf("c%d@example.com", i), PhoneNumbers: []string{"1"}, CreatedAt: storetest.FirstOrderTime(), UpdatedAt: storetest.FirstOrderTime(), Version: 1}
		if i%2 == 0 {
			c.AccountRepID = dataset.Employees[i%20].ID
		}
		dataset.Customers = append(dataset.Customers, c)
	}
	for n := range orders {
		at := storetest.FirstOrderTime().Add(time.Duration(n) * time.Minute)
		id := commerce.OrderID(storetest.ULIDAt(at, n))
		status := commerce.Statuses()[random.IntN(5)]
		o := commerce.OrderWithItems{Order: commerce.Order{ID: id, CustomerID: dataset.Customers[n/5%len(dataset.Customers)].ID, Status: status, PlacedAt: at, UpdatedAt: at, Version: 2}}
		for _, p := range random.Perm(products)[:3] {
			o.Lines = append(o.Lines, commerce.LineItem{SKU: dataset.Products[p].SKU, Name: "Thing", Quantity: 1 + random.IntN(5), UnitPrice: storetest.USD("2.50")})
		}
		o.Events = []commerce.Event{{ID: commerce.EventID(id), OrderID: id, Type: commerce.EventPlaced, To: commerce.Pending, At: at, Actor: "c"}}
		if status != commerce.Pending {
			later := at.Add(time.Second)
			o.Events = append(o.Events, commerce.Event{ID: commerce.EventID(storetest.ULIDAt(later, n)), OrderID: id, Type: commerce.EventType(status.String()), From: commerce.Pending, To: status, At: later, Actor: "c"})
		}
		dataset.Orders = append(dataset.Orders, o)
	}
	if err := derive.Complete(&dataset); err != nil {
		t.Fatal(err)
	}
	return dataset
}

// Thirteen kinds of damage occur at once among many records, ten thousand of them in the long run.
// Each is found and repaired, and no other record changes.
func TestDamagesAmongManyRecords(t *testing.T) {
	t.Parallel()
	const own = "#METADATA"
	random := rand.New(rand.NewPCG(7, 13))
	orders, most := longtest.Size(100, 1350), longtest.Size(2, 6)
	dataset := largeDataset(t, random, orders)
	r := storetest.NewRawTable(t, storetest.Engines()[1].Client(t), dataset, dynamo.Options{Shards: 4})
	healthy := r.All()
	if want := 10_000 * orders / 1350; len(healthy) < want {
		t.Fatalf("the table has %d records, want %d", len(healthy), want)
	}
	// Each damage gets customers with all their orders, so that damages do not affect each other.
	deck := random.Perm(len(dataset.Customers))
	employees, products := random.Perm(len(dataset.Employees)), random.Perm(len(dataset.Products))
	deal := func() (commerce.Customer, commerce.OrderWithItems) {
		i := deck[0]
		deck = deck[1:]
		return dataset.Customers[i], dataset.Orders[i*5+random.IntN(5)]
	}
	next := func(from *[]int) int {
		i := (*from)[0]
		*from = (*from)[1:]
		return i
	}
	want := map[string]int{}
	kinds := map[string]func(customer commerce.Customer, order commerce.OrderWithItems, n int){
		"order-missing": func(_ commerce.Customer, o commerce.OrderWithItems, _ int) { r.Delete("ORDER#"+string(o.ID), own) },
		"copy-missing": func(c commerce.Customer, o commerce.OrderWithItems, _ int) {
			r.Delete("CUSTOMER#"+string(c.ID), "ORDER#"+string(o.ID))
		},
		"order-records-differ": func(c commerce.Customer, o commerce.OrderWithItems, _ int) {
			r.Set("CUSTOMER#"+string(c.ID), "ORDER#"+string(o.ID), storetest.Item{"version": storetest.Num("1"), "status": storetest.Str(commerce.Statuses()[int(o.Status)%5].String())})
		},
		"order-total": func(_ commerce.Customer, o commerce.OrderWithItems, _ int) {
			r.Set("ORDER#"+string(o.ID), own, storetest.Item{"total": storetest.Num("0.01")})
		},
		"item-missing": func(_ commerce.Customer, o commerce.OrderWithItems, _ int) {
			r.Delete("ORDER#"+string(o.ID), "ITEM#"+string(o.Lines[0].SKU))
		},
		"index-keys": func(_ commerce.Customer, o commerce.OrderWithItems, n int) {
			if n%2 == 0 {
				r.Set("ORDER#"+string(o.ID), "ITEM#"+string(o.Lines[1].SKU), storetest.Item{"gsi1pk": nil, "gsi1sk": nil})
			} else {
				r.Set("ORDER#"+string(o.ID), own, storetest.Item{"gsi1pk": storetest.Str("STATUS#" + o.Status.String())})
			}
		},
		"orphan-item": func(_ commerce.Customer, o commerce.OrderWithItems, n int) {
			rec := r.Get("ORDER#"+string(o.ID), "ITEM#"+string(o.Lines[0].SKU))
			rec["pk"] = storetest.Str("ORDER#" + storetest.ULIDAt(storetest.FirstOrderTime(), 9000+n))
			r.Put(rec)
		},
		"order-count": func(c commerce.Customer, _ commerce.OrderWithItems, n int) {
			r.Set("CUSTOMER#"+string(c.ID), own, storetest.Item{"orderCount": storetest.Num(fmt.Sprint(6 + n))})
		},
		"claim-missing": func(c commerce.Customer, _ commerce.OrderWithItems, _ int) { r.Delete("EMAIL#"+c.Email, own) },
		"embedded-items": func(_ commerce.Customer, o commerce.OrderWithItems, _ int) {
			r.Set("ORDER#"+string(o.ID), own, storetest.Item{"items": &types.AttributeValueMemberL{}})
		},
		"orphan-claim": func(c commerce.Customer, _ commerce.OrderWithItems, n int) {
			r.Put(storetest.Item{"pk": storetest.Str(fmt.Sprintf("EMAIL#old%d@example.com", n)), "sk": storetest.Str(own), "customerId": storetest.Str(string(c.ID))})
		},
		"edge-missing": func(commerce.Customer, commerce.OrderWithItems, int) {
			r.Delete("EMPLOYEE#"+string(dataset.Employees[next(&employees)].ID), "NAME")
		},
		"stock-available": func(commerce.Customer, commerce.OrderWithItems, int) {
			r.Set("PRODUCT#"+string(dataset.Products[next(&products)].SKU), own, storetest.Item{"available": storetest.Num("-77")})
		},
	}
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		for n := range most/2 + random.IntN(most-most/2+1) {
			customer, order := deal()
			kinds[name](customer, order, n)
			want[name]++
		}
	}
	began := time.Now()
	inconsistencies, summary := r.Check(check.Options{Segments: 4})
	t.Logf("%d records were checked in %v, with %d requests and %.1f read units", summary.Records, time.Since(began), summary.Requests, summary.ReadUnits)
	if got := storetest.CountByKind(inconsistencies); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("found %v, want %v", got, want)
	}
	inconsistencies, summary = r.Check(check.Options{Segments: 4, Repair: true})
	if got := storetest.CountByKind(inconsistencies); fmt.Sprint(got) != fmt.Sprint(want) || summary.UnrepairedCount() > 0 {
		t.Errorf("the repair found %v and left %d, want %v and 0", got, summary.UnrepairedCount(), want)
	}
	began = time.Now()
	inconsistencies, summary = r.Check(check.Options{Segments: 4})
	t.Logf("the check of %d records without inconsistencies took %v, %d requests and %.1f read units", summary.Records, time.Since(began), summary.Requests, summary.ReadUnits)
	if len(inconsistencies) > 0 || summary.Unverified > 0 {
		t.Errorf("after the repair found %v, %d unverified", inconsistencies, summary.Unverified)
	}
	if changed := storetest.DifferingKeys(healthy, withoutStockRevisions(r.All())); len(changed) > 0 {
		t.Errorf("after the repair, %d records differ from before the damage: %q", len(changed), changed[:min(5, len(changed))])
	}
}

// Almost every record of the table is wrong, because it was written for another number of shards.
// With a low maximum of candidates, most are verified during the scan.
func TestTableWithAlmostOnlyWrongRecords(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		dataset := largeDataset(t, rand.New(rand.NewPCG(1, 2)), longtest.Size(20, 40))
		r := storetest.NewRawTable(t, db, dataset, dynamo.Options{})
		var err error
		if r.Store, err = dynamo.New(db, dynamo.Options{Table: r.Name, Shards: 3}); err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprint("index-keys ", 3*len(dataset.Customers)+len(dataset.Employees)+len(dataset.Orders)+len(dataset.Products), ", order-counts ", (1+3)*32)
		for _, repair := range []bool{false, true} {
			inconsistencies, summary := r.Check(check.Options{Repair: repair, MaxCandidates: 7})
			if got := storetest.FormatKindCounts(inconsistencies); got != want || repair && summary.UnrepairedCount() > 0 {
				t.Errorf("found %s, %d left, want %s", got, summary.UnrepairedCount(), want)
			}
		}
		r.CheckClean()
	})
}

// The repair of an item collection needs several transactions.
func TestRepairOfMoreThanAHundredRecords(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		r := storetest.NewRawTable(t, db, storetest.SmallDataset(t, 30), dynamo.Options{})
		r.Check(check.Options{Repair: true}) // counts what open orders reserve
		healthy := r.All()
		order := "ORDER#" + storetest.SmallOrderID(0)
		template := r.Get(order, "ITEM#p00")
		for i := range 130 {
			sku := fmt.Sprintf("extra%d", i)
			template["sk"], template["productId"], template["gsi1pk"] = storetest.Str("ITEM#"+sku), storetest.Str(sku), storetest.Str("PRODUCT#"+sku)
			r.Put(template)
		}
		r.Set(order, "#METADATA", storetest.Item{"shippingAddress": &types.AttributeValueMemberM{Value: storetest.Item{"recipient": storetest.Str("Bo"), "line1": storetest.Str("2 Road"), "city": storetest.Str("nowhere"), "countryCode": storetest.Str("GB")}}})
		r.Set("CUSTOMER#c1", order, storetest.Item{"version": storetest.Num("4")})
		transactions := 0
		inconsistencies, summary := r.WithHTTPHook(func(operation string, _ int, _ string) *http.Response {
			if operation == "TransactWriteItems" {
				transactions++
			}
			return nil
		}).Check(check.Options{Repair: true})
		if got := storetest.FormatKindCounts(inconsistencies); got != "order-records-differ 1, orphan-item 130" || summary.UnrepairedCount() > 0 || transactions != 2 {
			t.Errorf("found %s, %d left, in %d transactions", got, summary.UnrepairedCount(), transactions)
		}
		r.CheckClean()
		healthy[order+" #METADATA"]["version"], healthy["CUSTOMER#c1 "+order]["version"] = storetest.Num("4"), storetest.Num("4")
		if changed := storetest.DifferingKeys(healthy, r.All()); len(changed) > 0 {
			t.Errorf("after the repair, these records differ from before the damage: %q", changed)
		}
	})
}
