package dynamo_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/bulk"
	"github.com/ordergraph/ordergraph/dynamo/change"
	"github.com/ordergraph/ordergraph/dynamo/check"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// tableWithReferencesInKeys returns a table with external records. They store account reps, an
// employee's warehouse and a product's category only in index keys. Order 0 and customer c1 have
// account rep e1. Employee e1 works in warehouse w1. Product p02 has the category Things.
func tableWithReferencesInKeys(t *testing.T, db *dynamodb.Client) storetest.RawTable {
	r := storetest.NewRawTable(t, db, storetest.SmallDataset(t, 3), dynamo.Options{})
	order := "ORDER#" + storetest.SmallOrderID(0)
	for k, name := range map[string]string{
		order + " #METADATA":    "accountRepId",
		"CUSTOMER#c1 " + order:  "accountRepId",
		"CUSTOMER#c1 #METADATA": "accountRepId",
		"CUSTOMER#c1 REP":       "accountRepId",
		"EMPLOYEE#e1 #METADATA": "warehouseId",
		"EMPLOYEE#e1 NAME":      "warehouseId",
		"EMPLOYEE#e1 TITLE":     "warehouseId",
		"EMPLOYEE#e1 WAREHOUSE": "warehouseId",
		"PRODUCT#p02 #METADATA": "category",
	} {
		pk, sk, _ := strings.Cut(k, " ")
		r.Set(pk, sk, storetest.Item{name: nil, "entity": nil})
	}
	return r
}

// listedReferences returns the records that lists by reference contain, each with its reference.
func listedReferences(t *testing.T, s *dynamo.Store) []string {
	t.Helper()
	ctx, page := t.Context(), dynamo.PageRequest{Limit: 100}
	var lines []string
	add := func(list string, id any, reference any) {
		lines = append(lines, fmt.Sprintf("%s: %v %v", list, id, reference))
	}
	orders, err := dynamo.ReadPage(ctx, s, model.EmployeeOrders, dynamo.ListRequest{PartitionValue: "e1", Page: page})
	customers, err2 := dynamo.ReadPage(ctx, s, model.EmployeeCustomers, dynamo.ListRequest{PartitionValue: "e1", Page: page})
	employees, err3 := dynamo.ReadPage(ctx, s, model.WarehouseEmployees, dynamo.ListRequest{PartitionValue: "w1", Page: page})
	products, err4 := dynamo.ReadPage(ctx, s, model.Products, dynamo.ListRequest{PartitionValue: "Things", Page: page})
	if err := errors.Join(err, err2, err3, err4); err != nil {
		t.Fatal(err)
	}
	for _, o := range orders.Items {
		add("orders of e1", o.ID, o.AccountRepID)
	}
	for _, c := range customers.Items {
		add("customers of e1", c.ID, c.AccountRepID)
	}
	for _, e := range employees.Items {
		add("employees of w1", e.ID, e.WarehouseID)
	}
	for _, p := range products.Items {
		add("Things", p.SKU, p.Category)
	}
	return lines
}

// Some external records name an account rep, a warehouse or a category only in an index key. Reads,
// mutations, exports, imports and repairs preserve the reference.
func TestReferencesOnlyInIndexKeys(t *testing.T) {
	caller := change.Caller{Name: "c"}
	order, name := commerce.OrderID(storetest.SmallOrderID(0)), "New"
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		healthy := storetest.NewRawTable(t, db, storetest.SmallDataset(t, 3), dynamo.Options{})
		want := listedReferences(t, healthy.Store)
		compare := func(what string, s *dynamo.Store) {
			t.Helper()
			if got := listedReferences(t, s); !slices.Equal(got, want) {
				t.Errorf("%s the references in the lists are\n%s\nwant\n%s", what, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		}
		r := tableWithReferencesInKeys(t, db)
		compare("at first", r.Store)

		lines := storetest.Export(t, r.Store, 1)
		for _, shards := range []int{1, 3} {
			to := storetest.NewTable(t, db, dynamo.Options{Shards: shards})
			storetest.Import(t, to, strings.Join(lines, ""), bulk.ImportOptions{})
			compare(fmt.Sprintf("imported into %d shards", shards), to)
			if got := storetest.Export(t, to, 1); shards == 1 && !slices.Equal(got, lines) {
				t.Errorf("imported is\n%s", strings.Join(got, ""))
			}
		}

		for i, mutation := range []func(ctx context.Context) error{
			func(ctx context.Context) error {
				_, err := r.Store.UpdateProduct(ctx, caller, commerce.ProductChange{SKU: "p02", Name: &name})
				return err
			},
			func(ctx context.Context) error {
				_, err := r.Store.UpdateCustomer(ctx, caller, commerce.CustomerChange{ID: "c1", Name: &name})
				return err
			},
			func(ctx context.Context) error {
				_, err := r.Store.UpdateEmployee(ctx, caller, commerce.EmployeeChange{ID: "e1", Name: &name})
				return err
			},
		} {
			if err := mutation(t.Context()); err != nil {
				t.Fatal(err)
			}
			compare(fmt.Sprintf("after mutation %d", i), r.Store)
		}
		transactions := 0
		r.Store = r.WithHTTPHook(func(operation string, _ int, _ string) *http.Response {
			if operation == "TransactWriteItems" {
				transactions++
			}
			return nil
		}).Store
		ordered := []func(ctx context.Context) (*commerce.Order, error){
			func(ctx context.Context) (*commerce.Order, error) {
				return r.Store.SetOrderItem(ctx, caller, commerce.OrderItemChange{OrderID: order, SKU: "p00", Quantity: 2})
			},
			func(ctx context.Context) (*commerce.Order, error) {
				return r.Store.ChangeOrderStatus(ctx, caller, commerce.OrderStatusChange{OrderID: order, To: commerce.Confirmed})
			},
			func(ctx context.Context) (*commerce.Order, error) {
				return r.Store.UpdateShippingAddress(ctx, caller, commerce.ShippingAddressChange{OrderID: order, ShippingAddress: commerce.Address{Recipient: "Bob", Line1: "2 Road", City: "Town", CountryCode: "US"}})
			},
		}
		pk := "ORDER#" + string(order)
		for i, mutation := range ordered {
			if i == 1 {
				r.Set(pk, "#METADATA", storetest.Item{"entity": storetest.Str("order")}) // only the copy is an external record
			}
			transactions = 0
			o, err := mutation(t.Context())
			if err != nil || o.AccountRepID != "e1" {
				t.Fatalf("mutation %d of the order: %+v, %v", i, o, err)
			}
			compare(fmt.Sprintf("after mutation %d of the order", i), r.Store)
			if want := []int{2, 2, 1}[i]; transactions != want {
				t.Errorf("mutation %d took %d transactions, want %d", i, transactions, want)
			}
			for _, k := range [][2]string{{pk, "#METADATA"}, {"CUSTOMER#c1", pk}} {
				if rec := r.Get(k[0], k[1]); !storetest.EqualValues(rec["accountRepId"], storetest.Str("e1")) {
					t.Errorf("after mutation %d, the account rep is missing: %s", i, storetest.FormatItem(rec))
				}
				if i == 0 {
					r.Set(k[0], k[1], storetest.Item{"accountRepId": nil, "entity": nil})
				}
			}
		}
		if inconsistencies, summary := r.Check(check.Options{Repair: true}); summary.UnrepairedCount() > 0 {
			t.Errorf("the repair did not fix all inconsistencies: %+v", inconsistencies)
		}
		compare("after a repair", r.Store)
		r.CheckClean()
	})
}
