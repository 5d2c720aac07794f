package server_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/commerce"
	checks "github.com/ordergraph/ordergraph/dynamo/check"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// walk returns the names in a list, page by page, and checks that paging backwards returns the
// same. list is the field with its arguments except the page's.
func (s *fixture) walk(t testing.TB, list string, size int) []string {
	t.Helper()
	pages := func(first, after, end, more string) []string {
		var found []string
		cursor := ""
		for range 100 {
			var data struct {
				List struct {
					Nodes    []struct{ Name string }
					PageInfo struct {
						StartCursor, EndCursor       string
						HasNextPage, HasPreviousPage bool
					}
				}
			}
			s.read(t, &data, `{ list: `+list+` { nodes { name } pageInfo { startCursor endCursor hasNextPage hasPreviousPage } } }`, fmt.Sprintf(`%s: %d`+cursor, first, size))
			page := []string{}
			for _, n := range data.List.Nodes {
				page = append(page, n.Name)
			}
			info := data.List.PageInfo
			if first == "first" {
				found = append(found, page...)
			} else {
				found = append(page, found...)
			}
			if first == "first" && !info.HasNextPage || first == "last" && !info.HasPreviousPage {
				return found
			}
			cursor = fmt.Sprintf(`, %s: %q`, after, map[string]string{"after": info.EndCursor, "before": info.StartCursor}[after])
		}
		t.Fatalf("%s has no end", list)
		return nil
	}
	forward, backward := pages("first", "after", "endCursor", "hasNextPage"), pages("last", "before", "startCursor", "hasPreviousPage")
	if !slices.Equal(forward, backward) {
		t.Errorf("paging through %s forwards returns %q, and backwards %q", list, forward, backward)
	}
	return forward
}

// expectNames fails t if a list does not contain these names in this order.
func (s *fixture) expectNames(t testing.TB, list string, names ...string) {
	t.Helper()
	if got := s.walk(t, list, 2); !slices.Equal(got, names) {
		t.Errorf("%s: %q, want %q", list, got, names)
	}
}

// Products are listed by name, and found by the beginning of a name. Case does not matter, and
// names can contain any characters.
func TestProductsByName(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		for _, shards := range []int{1, 3} {
			s := newShardedFixture(t, db, commerce.Dataset{}, shards)
			for i, name := range []string{"Trail Runner", "trail", "TRAIL MIX", "Trail#2", "Écharpe", "e\u0301clair", "🎿 Ski", "Trail", "Zebra"} {
				category := []string{"Shoes", "Food"}[i%2]
				s.mutate(t, "createProduct", mutationInput{"sku": fmt.Sprintf("p%d", i), "name": name, "category": category, "unitPrice": mutationInput{"amount": "1.00", "currencyCode": "USD"}})
			}
			s.expectNames(t, `products(%s)`, "trail", "Trail", "Trail#2", "TRAIL MIX", "Trail Runner", "Zebra", "Écharpe", "éclair", "🎿 Ski")
			s.expectNames(t, `products(namePrefix: "", %s)`, "trail", "Trail", "Trail#2", "TRAIL MIX", "Trail Runner", "Zebra", "Écharpe", "éclair", "🎿 Ski")
			s.expectNames(t, `products(namePrefix: "tRAIL", %s)`, "trail", "Trail", "Trail#2", "TRAIL MIX", "Trail Runner")
			s.expectNames(t, `products(namePrefix: "trail#2", %s)`, "Trail#2")
			s.expectNames(t, `products(namePrefix: "Trail ", %s)`, "Trail#2", "TRAIL MIX", "Trail Runner")
			s.expectNames(t, `products(namePrefix: "É", %s)`, "Écharpe", "éclair")
			s.expectNames(t, `products(namePrefix: "🎿", %s)`, "🎿 Ski")
			s.expectNames(t, `products(namePrefix: "traim", %s)`)
			s.expectNames(t, `products(namePrefix: "\u200b", %s)`)
			s.expectNames(t, `products(category: "Shoes", %s)`, "Trail Runner", "TRAIL MIX", "Écharpe", "🎿 Ski", "Zebra")
			s.expectNames(t, `products(category: "Shoes", namePrefix: "", %s)`, "Trail Runner", "TRAIL MIX", "Écharpe", "🎿 Ski", "Zebra")
			s.expectNames(t, `products(category: "Shoes", namePrefix: "trail", %s)`, "TRAIL MIX", "Trail Runner")
			s.expectNames(t, `products(category: "shoes", namePrefix: "trail", %s)`)
			s.expectNames(t, `products(category: "", %s)`)

			s.mutate(t, "updateProduct", mutationInput{"sku": "p0", "name": "Runner"})
			s.mutate(t, "updateProduct", mutationInput{"sku": "p2", "category": "Food"})
			s.expectNames(t, `products(namePrefix: "trail", %s)`, "trail", "Trail", "Trail#2", "TRAIL MIX")
			s.expectNames(t, `products(namePrefix: "r", %s)`, "Runner")
			s.expectNames(t, `products(category: "Shoes", namePrefix: "trail", %s)`)
			s.expectNames(t, `products(category: "Food", namePrefix: "trail", %s)`, "trail", "Trail", "Trail#2", "TRAIL MIX")
		}
	})
}

// Lists by name show the current stock, although their records do not contain it.
func TestStockInListsByName(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newFixture(t, db, smallDataset(t))
		s.place(t, "bob", "mug", "plate")
		before := s.records(t)
		for _, arguments := range []string{``, `(namePrefix: "M")`, `(category: "Kitchen", namePrefix: "mug")`} {
			var data struct {
				Products struct {
					Nodes []struct {
						SKU                       string
						TotalInventory, Available int
						Inventory                 struct{ Nodes []struct{ Quantity int } }
					}
				}
			}
			s.read(t, &data, `{ products%s { nodes { sku totalInventory available inventory { nodes { quantity } } } } }`, arguments)
			if len(data.Products.Nodes) == 0 {
				t.Errorf("products%s is empty", arguments)
			}
			for _, p := range data.Products.Nodes {
				sum := 0
				for _, l := range p.Inventory.Nodes {
					sum += l.Quantity
				}
				if p.TotalInventory != sum || p.SKU == "mug" && p.Available != sum-1 {
					t.Errorf("products%s: %+v, but the inventory levels add up to %d", arguments, p, sum)
				}
			}
		}
		s.mutate(t, "adjustInventory", mutationInput{"sku": "mug", "warehouseId": "north", "delta": 1})
		for k, record := range s.records(t) {
			if record != before[k] && (k == "PRODUCT#mug WITH_NAME" || k == "PRODUCT#mug WITH_CATEGORY") {
				t.Errorf("a change of stock wrote the record %s, which has no stock: %s", k, record)
			}
		}
	})
}

// Customers are found by the beginning of their name, also after a change of the name.
func TestCustomersByName(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		for _, shards := range []int{1, 3} {
			s := newShardedFixture(t, db, smallDataset(t), shards)
			for i, name := range []string{"bobby Ray", "Ann", "Ägidius", "Ann Lee"} {
				s.clock.pass(time.Second)
				s.mutate(t, "createCustomer", mutationInput{"id": fmt.Sprintf("c%d", i), "name": name, "email": fmt.Sprintf("c%d@example.com", i)})
			}
			s.expectNames(t, `customers(%s)`, "Ann", "Bob", "bobby Ray", "Ann", "Ägidius", "Ann Lee")
			s.expectNames(t, `customers(namePrefix: "", %s)`, "Ann", "Bob", "bobby Ray", "Ann", "Ägidius", "Ann Lee")
			s.expectNames(t, `customers(namePrefix: "ANN", %s)`, "Ann", "Ann", "Ann Lee")
			s.expectNames(t, `customers(namePrefix: "ä", %s)`, "Ägidius")
			s.expectNames(t, `customers(namePrefix: "bob", %s)`, "Bob", "bobby Ray")
			s.mutate(t, "updateCustomer", mutationInput{"id": "bob", "name": "Robert"})
			s.place(t, "bob", "mug")
			s.expectNames(t, `customers(namePrefix: "bob", %s)`, "bobby Ray")
			var data struct {
				Customers struct {
					Nodes []struct {
						ID         string
						OrderCount int
						AccountRep *struct{ ID string }
					}
				}
			}
			s.mutate(t, "assignAccountRep", mutationInput{"customerId": "bob", "employeeId": "rita"})
			s.read(t, &data, `{ customers(namePrefix: "rob") { nodes { id orderCount accountRep { id } } } }`)
			if got := fmt.Sprintf("%+v", data.Customers.Nodes); len(data.Customers.Nodes) != 1 || data.Customers.Nodes[0].OrderCount != 1 || data.Customers.Nodes[0].AccountRep == nil {
				t.Errorf("found %s", got)
			}
		}
	})
}

// Customers are found by the beginning of their email address, also after a change of the address.
func TestCustomersByEmail(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		for _, shards := range []int{1, 4} {
			s := newShardedFixture(t, db, smallDataset(t), shards) // with Ann@example.com and bob@example.com
			for i, email := range []string{"Bo.Ray@example.com", "ann!@example.org", "ÄGIDIUS@example.com", "ann@example.co"} {
				s.clock.pass(time.Second)
				s.mutate(t, "createCustomer", mutationInput{"id": fmt.Sprintf("c%d", i), "name": email, "email": email})
			}
			s.mutate(t, "updateCustomer", mutationInput{"id": "ann", "name": "Ann"})
			s.expectNames(t, `customers(emailPrefix: "", %s)`, "Ann", "Bob", "Bo.Ray@example.com", "ann!@example.org", "ÄGIDIUS@example.com", "ann@example.co")
			s.expectNames(t, `customers(emailPrefix: "ANN", %s)`, "ann!@example.org", "ann@example.co", "Ann")
			s.expectNames(t, `customers(emailPrefix: "ann@", %s)`, "ann@example.co", "Ann")
			s.expectNames(t, `customers(emailPrefix: "A\u0308g", %s)`, "ÄGIDIUS@example.com")
			s.expectNames(t, `customers(emailPrefix: "bo", %s)`, "Bo.Ray@example.com", "Bob")
			for _, text := range []string{"ann@example.com#", "ann@example.com#ann", " ann", "\u200b", "ann@example.com.", strings.Repeat("a", 255)} {
				s.expectNames(t, fmt.Sprintf(`customers(emailPrefix: %q, %%s)`, text))
			}
			s.mutate(t, "updateCustomer", mutationInput{"id": "bob", "email": "Robert@example.com"})
			s.place(t, "bob", "mug")
			s.expectNames(t, `customers(emailPrefix: "bo", %s)`, "Bo.Ray@example.com")
			s.expectNames(t, `customers(emailPrefix: "r", %s)`, "Bob")
			var data struct {
				Customers struct{ Nodes []struct{ OrderCount int } }
			}
			s.mutate(t, "assignAccountRep", mutationInput{"customerId": "bob", "employeeId": "rita"})
			s.read(t, &data, `{ customers(emailPrefix: "rob") { nodes { orderCount } } }`)
			if len(data.Customers.Nodes) != 1 || data.Customers.Nodes[0].OrderCount != 1 {
				t.Errorf("found %+v", data.Customers.Nodes)
			}
		}
	})
}

// A list of customers has one prefix, and its cursors are not valid for a list with the other one.
func TestCustomersByNameOrEmail(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newFixture(t, db, smallDataset(t))
		expect := func(arguments, message string) {
			t.Helper()
			got := s.api.ask(t, `{ customers(`+arguments+`) { nodes { id } } }`, nil)
			if len(got.Errors) != 1 || got.Errors[0].Message != message || got.Errors[0].Extensions["code"] != "BAD_USER_INPUT" {
				t.Errorf("customers(%s): %+v", arguments, got.Errors)
			}
		}
		expect(`namePrefix: "a", emailPrefix: "a"`, `argument "emailPrefix" cannot be combined with "namePrefix": use one of them`)
		var data struct {
			Customers struct{ PageInfo struct{ EndCursor string } }
		}
		s.read(t, &data, `{ customers(namePrefix: "a", emailPrefix: "") { pageInfo { endCursor } } }`)
		expect(fmt.Sprintf(`emailPrefix: "a", after: %q`, data.Customers.PageInfo.EndCursor), `argument "after" is a cursor of another list: send the cursor to the same field with the same arguments`)
	})
}

// A customer whose address other software wrote, and which is no address, is in no list of addresses.
func TestCustomersWithoutEmailAddress(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newFixture(t, db, smallDataset(t))
		s.remove(t, "CUSTOMER#ann", "EMAIL")
		s.change(t, "CUSTOMER#ann", "#METADATA", map[string]attribute{"email": storetest.Str("ann at home")})
		s.mutate(t, "updateCustomer", mutationInput{"id": "ann", "name": "Ann Lee"})
		s.expectNames(t, `customers(emailPrefix: "ann", %s)`)
		s.expectNames(t, `customers(namePrefix: "ann", %s)`, "Ann Lee")
		s.mutate(t, "updateCustomer", mutationInput{"id": "ann", "email": "ann.lee@example.com"})
		s.expectNames(t, `customers(emailPrefix: "ann", %s)`, "Ann Lee")
	})
}

// categories returns the categories with their numbers of products.
func (s *fixture) categories(t testing.TB) string {
	t.Helper()
	var data struct {
		Categories struct {
			Nodes []struct {
				Name         string
				ProductCount int
			}
		}
	}
	s.read(t, &data, `{ categories { nodes { name productCount } } }`)
	return fmt.Sprint(data.Categories.Nodes)
}

// Every mutation keeps the product count of a category. The category is deleted with its last
// product.
func TestCategories(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newFixture(t, db, smallDataset(t))
		expect := func(name, categories string) {
			t.Helper()
			if got := s.categories(t); got != categories {
				t.Errorf("%s, the categories are %s, want %s", name, got, categories)
			}
		}
		move := func(sku, category string) {
			s.mutate(t, "updateProduct", mutationInput{"sku": sku, "category": category})
		}
		expect("loaded", "[{Import 1} {Kitchen 3}]")
		s.mutate(t, "createProduct", mutationInput{"sku": "pen", "name": "Pen", "category": "Desk", "unitPrice": mutationInput{"amount": "1.00", "currencyCode": "USD"}, "idempotencyKey": "pen"})
		s.mutate(t, "createProduct", mutationInput{"sku": "pen", "name": "Pen", "category": "Desk", "unitPrice": mutationInput{"amount": "1.00", "currencyCode": "USD"}, "idempotencyKey": "pen"})
		s.refuse(t, "createProduct", mutationInput{"sku": "pen", "name": "Pen", "category": "Else", "unitPrice": mutationInput{"amount": "1.00", "currencyCode": "USD"}}, "ALREADY_EXISTS input.sku")
		expect("a product was created", "[{Desk 1} {Import 1} {Kitchen 3}]")
		move("yen", "Kitchen")
		move("mug", "Desk")
		move("mug", "Desk")
		s.mutate(t, "updateProduct", mutationInput{"sku": "mug", "name": "Large mug"})
		expect("two were moved", "[{Desk 2} {Kitchen 3}]")

		// Both products leave at once, and each mutation sees the other product in the category.
		s.wire.beforeNextTransaction(func() { move("pen", "Import") })
		move("mug", "Kitchen")
		expect("both have left", "[{Import 1} {Kitchen 4}]")

		// The last product leaves, and another one arrives just before the category is deleted.
		s.wire.beforeNextTransaction(func() { s.wire.beforeNextTransaction(func() { move("mug", "Import") }) })
		move("pen", "Desk")
		expect("one came while the last one left", "[{Desk 1} {Import 1} {Kitchen 3}]")

		var all sync.WaitGroup
		for i, sku := range []string{"mug", "plate", "none", "yen", "pen"} {
			all.Go(func() {
				for _, category := range []string{"A", "B", "C"}[i%3:] {
					move(sku, category)
				}
			})
		}
		all.Wait()
		expect("all have met", "[{C 5}]")
		storetest.AssertConsistent(t, db, s.table, 1)
	})
}

// Other software writes no category records. The first new product creates them, and check counts
// their products.
func TestCategoriesOfOtherSoftware(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newFixture(t, db, smallDataset(t))
		for k := range s.records(t) {
			pk, sk, _ := strings.Cut(k, " ")
			if pk != "CATEGORIES" && !strings.HasPrefix(sk, "WITH_") {
				continue
			}
			if _, err := db.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &s.table, Key: storetest.ItemKey(pk, sk)}); err != nil {
				t.Fatal(err)
			}
		}
		s.expectNames(t, `products(%s)`)
		s.mutate(t, "updateProduct", mutationInput{"sku": "mug", "category": "Import"})
		s.expectNames(t, `products(%s)`, "Mug")
		if got := s.categories(t); got != "[{Import 1}]" {
			t.Errorf("the categories are %s", got)
		}
		if _, err := s.store.CheckRecords(t.Context(), checks.Options{Repair: true, IndexLag: checks.NoIndexLag}); err != nil {
			t.Fatal(err)
		}
		if got := s.categories(t); got != "[{Import 2} {Kitchen 2}]" {
			t.Errorf("after the repair, the categories are %s", got)
		}
		s.expectNames(t, `products(%s)`, "Mug", "Nothing", "Plate", "Yen")
		storetest.AssertConsistent(t, db, s.table, 1)
	})
}
