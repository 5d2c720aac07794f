package server_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// ids returns the IDs of a list's records in the response to a query.
func (s *fixture) ids(t testing.TB, query, id string, args ...any) []string {
	t.Helper()
	var data struct{ List map[string]any }
	s.read(t, &data, query, args...)
	list := data.List
	for _, inner := range []string{"customers", "orders", "employees", "inventory"} {
		if l, ok := list[inner].(map[string]any); ok {
			list = l
		}
	}
	found := []string{}
	nodes, _ := list["nodes"].([]any)
	for _, n := range nodes {
		found = append(found, fmt.Sprint(n.(map[string]any)[id]))
	}
	return found
}

// want fails t if a list does not contain these IDs.
func want(t testing.TB, name string, got []string, ids ...string) {
	t.Helper()
	slices.Sort(got)
	slices.Sort(ids)
	if !slices.Equal(got, ids) {
		t.Errorf("%s: %q, want %q", name, got, ids)
	}
}

// A customer gets an account rep, then another one, then no rep. The lists of the reps follow at
// once. Orders keep the rep of the time when they were placed.
func TestAccountReps(t *testing.T) {
	const customers, orders = `{ list: employee(id: %q) { customers { nodes { id } } } }`, `{ list: employee(id: %q) { orders { nodes { id } } } }`
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newFixture(t, db, smallDataset(t))
		var placed []string
		for i, rep := range []any{nil, "rita", "sam", nil} {
			if i > 0 {
				got := s.mutate(t, "assignAccountRep", mutationInput{"customerId": "bob", "employeeId": rep, "expectedVersion": i}, `version accountRep { id }`)
				if wantRep := map[bool]string{true: `"accountRep":null`, false: fmt.Sprintf(`"accountRep":{"id":%q}`, rep)}[rep == nil]; !strings.Contains(string(got.Value), wantRep) {
					t.Errorf("step %d returns %s", i, got.Value)
				}
			}
			s.clock.pass(time.Second)
			placed = append(placed, s.place(t, "bob", "mug"))
			switch rep {
			case "rita":
				want(t, "rita's customers", s.ids(t, customers, "id", "rita"), "ann", "bob")
				want(t, "sam's customers", s.ids(t, customers, "id", "sam"))
			case "sam":
				want(t, "rita's customers", s.ids(t, customers, "id", "rita"), "ann")
				want(t, "sam's customers", s.ids(t, customers, "id", "sam"), "bob")
			default:
				want(t, "rita's customers", s.ids(t, customers, "id", "rita"), "ann")
				want(t, "sam's customers", s.ids(t, customers, "id", "sam"))
			}
		}
		want(t, "rita's orders", s.ids(t, orders, "id", "rita"), placed[1])
		want(t, "sam's orders", s.ids(t, orders, "id", "sam"), placed[2])
		for i, rep := range []string{"", "rita", "sam", ""} {
			// A change of the order's status does not move the order to the customer's current rep.
			s.mutate(t, "confirmOrder", mutationInput{"orderId": placed[i]})
			o := s.order(t, placed[i])
			if (rep == "") != (o.AccountRep == nil) || o.AccountRep != nil && o.AccountRep.ID != rep {
				t.Errorf("order %d has rep %+v, want %q", i, o.AccountRep, rep)
			}
			s.checkCopy(t, placed[i])
		}
		want(t, "rita's orders", s.ids(t, orders, "id", "rita"), placed[1])
		for k := range s.records(t) {
			if k == "CUSTOMER#bob REP" {
				t.Error("the edge record of a customer without an account rep was not deleted")
			}
		}
		s.refuse(t, "assignAccountRep", mutationInput{"customerId": "bob", "employeeId": "nobody"}, "NOT_FOUND input.employeeId")
		s.refuse(t, "assignAccountRep", mutationInput{"customerId": "nobody", "employeeId": "rita"}, "NOT_FOUND input.customerId")
	})
}

// An employee's lists show changes of name, job title and warehouse, and contain the same record.
func TestEmployeeEdges(t *testing.T) {
	const byName, byTitle = `{ list: employeesByName(name: %q) { nodes { id version } } }`, `{ list: employeesByJobTitle(jobTitle: %q) { nodes { id version } } }`
	const ofWarehouse = `{ list: warehouse(id: %q) { employees { nodes { id name version } } } }`
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newFixture(t, db, smallDataset(t))
		s.mutate(t, "updateEmployee", mutationInput{"id": "sam", "name": "Samuel"})
		want(t, "named Sam", s.ids(t, byName, "id", "Sam"))
		want(t, "named Samuel", s.ids(t, byName, "version", "Samuel"), "2")
		want(t, "packers", s.ids(t, byTitle, "version", "Packer"), "2")
		want(t, "of north", s.ids(t, ofWarehouse, "name", "north"), "Samuel")

		s.mutate(t, "updateEmployee", mutationInput{"id": "sam", "jobTitle": "Foreman", "warehouseId": "south", "phoneNumbers": []string{}})
		want(t, "packers", s.ids(t, byTitle, "id", "Packer"))
		want(t, "foremen", s.ids(t, byTitle, "version", "Foreman"), "3")
		want(t, "of north", s.ids(t, ofWarehouse, "id", "north"))
		want(t, "of south", s.ids(t, ofWarehouse, "version", "south"), "3")
		want(t, "named Samuel", s.ids(t, byName, "version", "Samuel"), "3")

		got := s.mutate(t, "updateEmployee", mutationInput{"id": "sam", "warehouseId": nil}, `version warehouse { id } phoneNumbers`)
		if string(got.Value) != `{"version":4,"warehouse":null,"phoneNumbers":[]}` {
			t.Errorf("the employee without a warehouse is %s", got.Value)
		}
		want(t, "of south", s.ids(t, ofWarehouse, "id", "south"))
		for k, r := range s.records(t) {
			if strings.HasPrefix(k, "EMPLOYEE#sam") && (strings.Contains(r, "warehouseId") || strings.HasSuffix(k, " WAREHOUSE")) {
				t.Errorf("the record %s %s still has a warehouse", k, r)
			}
		}
		s.mutate(t, "updateEmployee", mutationInput{"id": "sam", "warehouseId": "north"})
		want(t, "of north", s.ids(t, ofWarehouse, "version", "north"), "5")

		// A missing field keeps its value. An update to the same values writes nothing.
		got = s.mutate(t, "updateEmployee", mutationInput{"id": "sam"}, `name jobTitle version warehouse { id }`)
		if string(got.Value) != `{"name":"Samuel","jobTitle":"Foreman","version":5,"warehouse":{"id":"north"}}` {
			t.Errorf("unchanged it is %s", got.Value)
		}
		s.refuse(t, "updateEmployee", mutationInput{"id": "sam", "warehouseId": "nowhere"}, "NOT_FOUND input.warehouseId")
		s.refuse(t, "updateEmployee", mutationInput{"id": "tom", "name": "Tom"}, "NOT_FOUND input.id")
		s.refuse(t, "hireEmployee", mutationInput{"id": "sam", "name": "Sam", "jobTitle": "Packer", "hireDate": "2026-01-01", "warehouseId": "nowhere"},
			"ALREADY_EXISTS input.id", "NOT_FOUND input.warehouseId")
	})
}

// An e-mail address belongs to at most one customer, regardless of case. A change frees the old
// address.
func TestEmailAddresses(t *testing.T) {
	find := func(s *fixture, t testing.TB, email string) string {
		t.Helper()
		var data struct{ CustomerByEmail *struct{ ID string } }
		s.read(t, &data, `{ customerByEmail(email: %q) { id } }`, email)
		if data.CustomerByEmail == nil {
			return ""
		}
		return data.CustomerByEmail.ID
	}
	claims := func(s *fixture, t testing.TB) []string {
		t.Helper()
		var keys []string
		for k := range s.records(t) {
			if strings.HasPrefix(k, "EMAIL#") {
				keys = append(keys, k)
			}
		}
		return keys
	}
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newFixture(t, db, smallDataset(t))
		s.mutate(t, "updateCustomer", mutationInput{"id": "ann", "email": "Ann.New@Example.com"})
		if find(s, t, "ann@example.com") != "" || find(s, t, "ann.new@example.com") != "ann" {
			t.Error("the email claims do not match the changed address")
		}
		want(t, "claims", claims(s, t), "EMAIL#ann.new@example.com #METADATA", "EMAIL#bob@example.com #METADATA")

		// Only the case changes. The claim has the lower-case form.
		got := s.mutate(t, "updateCustomer", mutationInput{"id": "ann", "email": "ANN.NEW@example.com"})
		if !strings.Contains(string(got.Value), `"email":"ANN.NEW@example.com"`) || !strings.Contains(string(got.Value), `"version":3`) {
			t.Errorf("the customer is %s", got.Value)
		}
		want(t, "claims", claims(s, t), "EMAIL#ann.new@example.com #METADATA", "EMAIL#bob@example.com #METADATA")

		s.refuse(t, "updateCustomer", mutationInput{"id": "ann", "email": "BOB@example.com"}, "EMAIL_TAKEN input.email")
		s.refuse(t, "createCustomer", mutationInput{"name": "Cleo", "email": "Bob@Example.com"}, "EMAIL_TAKEN input.email")
		s.refuse(t, "createCustomer", mutationInput{"id": "ann", "name": "Cleo", "email": "bob@example.com"}, "ALREADY_EXISTS input.id", "EMAIL_TAKEN input.email")
		s.refuse(t, "createCustomer", mutationInput{"id": "ann", "name": "Cleo", "email": "cleo@example.com"}, "ALREADY_EXISTS input.id")
		s.refuse(t, "createCustomer", mutationInput{"id": "ann", "name": "Cleo", "email": "bob@example.com", "accountRepId": "nobody"},
			"ALREADY_EXISTS input.id", "EMAIL_TAKEN input.email", "NOT_FOUND input.accountRepId")

		s.mutate(t, "createCustomer", mutationInput{"id": "cleo", "name": "Cleo", "email": "ann@example.com"})
		if find(s, t, "ANN@example.com") != "cleo" {
			t.Error("a released email address does not find its new customer")
		}
		s.refuse(t, "updateCustomer", mutationInput{"id": "ann", "email": "ann@example.com"}, "EMAIL_TAKEN input.email")
	})
}

// If two customers claim one address at the same time, one of them gets it.
func TestRacesForAnAddress(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newFixture(t, db, smallDataset(t))
		answers := make(chan string, 8)
		for i := range 8 {
			go func() {
				a := s.ask(t, fmt.Sprintf(`mutation { createCustomer(input: {id: "c%d", name: "C", email: "same@example.com"}) { userErrors { code } } }`, i), nil)
				answers <- string(a.Data)
			}()
		}
		won := 0
		for range 8 {
			switch a := <-answers; a {
			case `{"createCustomer":{"userErrors":[]}}`:
				won++
			case `{"createCustomer":{"userErrors":[{"code":"EMAIL_TAKEN"}]}}`:
			default:
				t.Errorf("one gets %s", a)
			}
		}
		customers := 0
		for k := range s.records(t) {
			if strings.HasPrefix(k, "CUSTOMER#c") && strings.HasSuffix(k, " #METADATA") {
				customers++
			}
		}
		if won != 1 || customers != 1 {
			t.Errorf("%d requests succeeded, but %d orders exist", won, customers)
		}
	})
}

// A customer's name is also in the rep's list. Both change together.
func TestTheRepsListFollowsTheCustomer(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newFixture(t, db, smallDataset(t))
		s.mutate(t, "updateCustomer", mutationInput{"id": "ann", "name": "Anne", "phoneNumbers": []string{"+1", "+2"}})
		want(t, "names", s.ids(t, `{ list: employee(id: %q) { customers { nodes { name version phoneNumbers } } } }`, "phoneNumbers", "rita"), "[+1 +2]")
		want(t, "names", s.ids(t, `{ list: employee(id: %q) { customers { nodes { name } } } }`, "name", "rita"), "Anne")
	})
}

// A product moves from the list of one category to the list of another.
func TestProductsMoveBetweenCategories(t *testing.T) {
	const of = `{ list: products(category: %q) { nodes { sku } } }`
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newFixture(t, db, smallDataset(t))
		s.mutate(t, "updateProduct", mutationInput{"sku": "mug", "category": "Gifts"})
		want(t, "kitchen", s.ids(t, of, "sku", "Kitchen"), "plate", "none")
		want(t, "gifts", s.ids(t, of, "sku", "Gifts"), "mug")
		s.refuse(t, "createProduct", mutationInput{"sku": "mug", "name": "Mug", "category": "Gifts", "unitPrice": mutationInput{"amount": "1"}}, "ALREADY_EXISTS input.sku")
		s.refuse(t, "createWarehouse", mutationInput{"id": "north", "name": "North"}, "ALREADY_EXISTS input.id")
		s.refuse(t, "updateProduct", mutationInput{"sku": "spoon", "name": "Spoon"}, "NOT_FOUND input.sku")
	})
}

// The mutations of one request are executed in order, and each sees the changes of the earlier
// ones. An error in one does not affect the responses of the others.
func TestSeveralMutationsInOneRequest(t *testing.T) {
	const place = `placeOrder(input: {customerId: "ann", items: [{sku: "mug", quantity: 1}]}) { order { id customer { orderCount } items { nodes { product { available } } } } userErrors { code } }`
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newFixture(t, db, smallDataset(t))
		got := s.ask(t, `mutation {
			a: `+place+`
			b: `+place+`
			unknown: placeOrder(input: {customerId: "nobody", items: [{sku: "mug", quantity: 1}]}) { order { id } userErrors { code } }
			c: adjustInventory(input: {sku: "mug", warehouseId: "north", delta: 8}) { inventoryLevel { product { available totalInventory } } }
		}`, nil)
		var data map[string]struct {
			Order *struct {
				ID       string
				Customer struct{ OrderCount int }
				Items    struct {
					Nodes []struct{ Product struct{ Available int } }
				}
			}
			InventoryLevel struct {
				Product struct{ Available, TotalInventory int }
			}
			UserErrors []struct{ Code string }
		}
		if err := json.Unmarshal(got.Data, &data); err != nil || len(got.Errors) > 0 {
			t.Fatalf("%v %+v", err, got.Errors)
		}
		for i, alias := range []string{"a", "b"} {
			o := data[alias].Order
			if o == nil || o.Customer.OrderCount != i+1 || o.Items.Nodes[0].Product.Available != 101-i {
				t.Errorf("%s returns %+v", alias, o)
			}
		}
		if u := data["unknown"]; u.Order != nil || len(u.UserErrors) != 1 || u.UserErrors[0].Code != "NOT_FOUND" {
			t.Errorf("an unknown customer gets %+v", u)
		}
		if p := data["c"].InventoryLevel.Product; p.Available != 108 || p.TotalInventory != 110 {
			t.Errorf("c returns %+v", p)
		}
		var second string
		for _, r := range got.Extensions.Explain.Requests {
			if r.Operation == "TransactWriteItems" {
				second += r.Path + fmt.Sprintf(" %d ", r.RoundTrip)
			}
		}
		if !strings.HasPrefix(second, "a 2 b ") {
			t.Errorf("the requests after the first transaction are %s", second)
		}
	})
}

// The second of three mutations meets a malformed record. It is refused, and the log has the reason.
// The first and third are executed.
func TestAMalformedRecordLeavesTheOtherMutations(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newFixture(t, db, smallDataset(t))
		s.change(t, "CUSTOMER#bob", "#METADATA", map[string]attribute{"email": nil})
		var logged strings.Builder
		got := serveLogging(t, s.store, &logged).ask(t, `mutation {
			a: updateCustomer(input: {id: "ann", name: "Anne"}) { customer { name } userErrors { code } }
			b: updateCustomer(input: {id: "bob", name: "Robert"}) { customer { name } userErrors { code } }
			c: updateEmployee(input: {id: "sam", name: "Samuel"}) { employee { name } userErrors { code } }
		}`, nil)
		if want := `{"a":{"customer":{"name":"Anne"},"userErrors":[]},"b":{"customer":null,"userErrors":[{"code":"INVALID"}]},"c":{"employee":{"name":"Samuel"},"userErrors":[]}}`; string(got.Data) != want {
			t.Errorf("data is %s, want %s", got.Data, want)
		}
		if len(got.Errors) != 0 {
			t.Errorf("errors are %+v, want none", got.Errors)
		}
		if !strings.Contains(logged.String(), "CUSTOMER#bob") {
			t.Errorf("the log is %s", logged.String())
		}
	})
}
