package customfields_test

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/embedded"
	"github.com/ordergraph/ordergraph/graph"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// Lists and look-ups find records by custom fields, from the moment when a mutation has set them.
func TestQueriesByCustomFields(t *testing.T) {
	storetest.ForEachEngine(t, func(t *testing.T, db *dynamodb.Client) {
		s := newShop(t, db)
		first, second := s.place(`channel: APP,`, ""), s.place(`channel: APP,`, "")
		third := s.place("", "") // it has the default
		s.expect(`{ ordersByChannel(channel: APP) { nodes { id channel items(first: 1) { nodes { product { name } } } customer { name } } } }`,
			fmt.Sprintf(`{"ordersByChannel":{"nodes":[{"channel":"APP","customer":{"name":"Acme Corp"},"id":%q,"items":{"nodes":[{"product":{"name":"Widget A"}}]}},{"channel":"APP","customer":{"name":"Acme Corp"},"id":%q,"items":{"nodes":[{"product":{"name":"Widget A"}}]}}]}}`, second, first))
		s.expect(`{ ordersByChannel(channel: WEB, first: 1) { nodes { id } } }`, fmt.Sprintf(`{"ordersByChannel":{"nodes":[{"id":%q}]}}`, third))
		s.expect(fmt.Sprintf(`mutation { setCustomFields(input: {orderId: %q, channel: STORE, erpNumber: "A#7 %%"}) { order { channel } userErrors { message } } }`, first), `{"setCustomFields":{"order":{"channel":"STORE"},"userErrors":[]}}`)
		s.run(fmt.Sprintf(`mutation { confirmOrder(input: {orderId: %q}) { userErrors { message } } }`, first), nil)
		s.expect(`{ a: ordersByChannel(channel: APP) { nodes { id } } b: ordersByChannel(channel: STORE) { nodes { id status } } orderByErpNumber(erpNumber: "A#7 %") { id status timeline { nodes { type } } } none: orderByErpNumber(erpNumber: "A") { id } }`,
			fmt.Sprintf(`{"a":{"nodes":[{"id":%q}]},"b":{"nodes":[{"id":%q,"status":"CONFIRMED"}]},"none":null,"orderByErpNumber":{"id":%[2]q,"status":"CONFIRMED","timeline":{"nodes":[{"type":"PLACED"},{"type":"CUSTOM_FIELDS_CHANGED"},{"type":"CONFIRMED"}]}}}`, second, first))
		for document, want := range map[string]string{
			fmt.Sprintf(`mutation { setCustomFields(input: {orderId: %q, erpNumber: "A#7 %%"}) { userErrors { message } } }`, second):                          "Another order has the erpNumber A#7 %: use a different value.",
			`mutation { placeOrder(input: {customerId: "cust_001", erpNumber: "A#7 %", items: [{sku: "prod_100", quantity: 1}]}) { userErrors { message } } }`: "Another order has the erpNumber A#7 %: use a different value.",
		} {
			if _, problems := s.try(document, nil); !slices.Equal(problems, []string{want}) {
				t.Errorf("%s: %q, want %q", document, problems, want)
			}
		}
		s.run(`mutation { a: updateProduct(input: {sku: "prod_100", brand: "Acme", weightGrams: 5, code: 7}) { userErrors { message } } b: updateProduct(input: {sku: "prod_101", brand: "Acme"}) { userErrors { message } } }`, nil)
		s.run(`mutation { updateWarehouse(input: {id: "wh_pdx", dock: "D4"}) { userErrors { message } } }`, nil)
		s.run(`mutation { updateEmployee(input: {id: "rep_001", desk: "12"}) { userErrors { message } } }`, nil)
		s.run(`mutation { updateCustomer(input: {id: "cust_001", marketingConsent: true}) { userErrors { message } } }`, nil)
		s.expect(`{ productsByBrand(brand: "Acme") { nodes { sku available } } productsByWeight(weightGrams: 5) { nodes { sku } } productByCode(code: 7) { sku } warehousesByDock(dock: "D4") { nodes { id productCount } } employeeByDesk(desk: "12") { id } customersByConsent(marketingConsent: true) { nodes { id orderCount } } nothing: productsByBrand(brand: "") { nodes { sku } } }`,
			`{"customersByConsent":{"nodes":[{"id":"cust_001","orderCount":5}]},"employeeByDesk":{"id":"rep_001"},"nothing":{"nodes":[]},"productByCode":{"sku":"prod_100"},"productsByBrand":{"nodes":[{"available":287,"sku":"prod_101"},{"available":474,"sku":"prod_100"}]},"productsByWeight":{"nodes":[{"sku":"prod_100"}]},"warehousesByDock":{"nodes":[{"id":"wh_pdx","productCount":2}]}}`)
		s.run(`mutation { updateProduct(input: {sku: "prod_100", brand: null, code: null}) { userErrors { message } } }`, nil)
		s.expect(`{ productsByBrand(brand: "Acme") { nodes { sku } } productByCode(code: "7") { sku } }`, `{"productByCode":null,"productsByBrand":{"nodes":[{"sku":"prod_101"}]}}`)
		s.CheckClean()
		storetest.AssertConsistent(t, db, s.Name, 1)
	})
}

// The pages of a list continue at a cursor, which is valid only for the same value.
func TestPagesOfCustomLists(t *testing.T) {
	storetest.ForEachEngine(t, func(t *testing.T, db *dynamodb.Client) {
		s := newShop(t, db)
		var placed []string
		for range 5 {
			placed = append(placed, s.place(`channel: STORE,`, ""))
		}
		slices.Sort(placed) // two IDs can have the same millisecond
		slices.Reverse(placed)
		var seen []string
		after := "null"
		for range 3 {
			data, problems := s.try(fmt.Sprintf(`{ ordersByChannel(channel: STORE, first: 2, after: %s) { nodes { id } pageInfo { hasNextPage endCursor } } }`, after), nil)
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			list := data["ordersByChannel"].(map[string]any)
			for _, node := range list["nodes"].([]any) {
				seen = append(seen, node.(map[string]any)["id"].(string))
			}
			page := list["pageInfo"].(map[string]any)
			if page["hasNextPage"] != (len(seen) < 5) {
				t.Errorf("after %d orders, hasNextPage is %v", len(seen), page["hasNextPage"])
			}
			after = fmt.Sprintf("%q", page["endCursor"])
		}
		if !slices.Equal(seen, placed) {
			t.Errorf("the pages contain %v, want %v", seen, placed)
		}
		if _, problems := s.try(fmt.Sprintf(`{ ordersByChannel(channel: APP, after: %s) { nodes { id } } }`, after), nil); len(problems) != 1 || !strings.HasPrefix(problems[0], "BAD_USER_INPUT") {
			t.Errorf("a cursor of another list: %q", problems)
		}
		if data, problems := s.try(`query ($c: Channel!, $n: Int) { ordersByChannel(channel: $c, last: $n) { nodes { id } } }`, map[string]any{"c": "STORE", "n": 1}); len(problems) > 0 || fmt.Sprint(data) != fmt.Sprintf("map[ordersByChannel:map[nodes:[map[id:%s]]]]", placed[4]) {
			t.Errorf("the last order is %v, %q", data, problems)
		}
	})
}

// A server whose file has other values of an enum, or shorter texts, also updates the records of lists and
// look-ups, because servers with both files run side by side while the file changes.
func TestServersWithAnotherFile(t *testing.T) {
	storetest.ForEachEngine(t, func(t *testing.T, db *dynamodb.Client) {
		s := newShop(t, db)
		id := s.place(`channel: STORE, erpNumber: "long",`, "")
		other, err := graph.ParseExtension("shop.graphqls", strings.NewReplacer("APP STORE }", "APP }", "erpNumber: String @field(", "erpNumber: String @field(maxLength: 3, ").Replace(file))
		if err != nil {
			t.Fatal(err)
		}
		restore := other.Declare()
		s.executor = newExecutor(t, s.Store, other)
		s.run(fmt.Sprintf(`mutation { confirmOrder(input: {orderId: %q}) { userErrors { message } } }`, id), nil)
		s.run(fmt.Sprintf(`mutation { setCustomFields(input: {orderId: %q, erpNumber: "new"}) { userErrors { message } } }`, id), nil)
		restore()
		s.executor = newExecutor(t, s.Store, declared)
		s.expect(`{ ordersByChannel(channel: STORE) { nodes { id status version } } old: orderByErpNumber(erpNumber: "long") { id } new: orderByErpNumber(erpNumber: "new") { id } }`,
			fmt.Sprintf(`{"new":{"id":%q},"old":null,"ordersByChannel":{"nodes":[{"id":%[1]q,"status":"CONFIRMED","version":3}]}}`, id))
		s.CheckClean()
		storetest.AssertConsistent(t, db, s.Name, 1)
	})
}

// A removed list leaves no records, even if an order or a record of the list cannot be read. The quote counts
// each record of the list once.
func TestDropWithUnreadableRecords(t *testing.T) {
	var elapsed atomic.Int64
	dataset, _ := storetest.SampleDataset(t)
	raw := storetest.NewRawTable(t, storetest.WithoutResponseDate(embedded.New().Client()), dataset, dynamo.Options{Clock: func() time.Time { return time.Now().Add(time.Duration(elapsed.Load())) }})
	var edges []storetest.Item
	for key, item := range raw.All() {
		if strings.HasPrefix(key, "ORDER#") && strings.HasSuffix(key, " WITH_FIELD_channel") {
			edges = append(edges, item)
		}
	}
	raw.Set(text(edges[0], "pk"), "#METADATA", storetest.Item{"status": storetest.Str("LOST")})
	raw.Set(text(edges[1], "pk"), text(edges[1], "sk"), storetest.Item{"status": storetest.Str("LOST"), "version": storetest.Str("x")})
	raw.Delete(text(edges[2], "pk"), "#METADATA")
	d, err := model.FindDerivation("orderList.channel")
	if err != nil {
		t.Fatal(err)
	}
	opts := dynamo.DerivationOptions{OnStatus: func(model.DerivationStatus) { elapsed.Add(int64(time.Minute)) }}
	if cost, err := raw.Store.PlanDrop(t.Context(), d, opts); err != nil || cost.Records != len(edges) {
		t.Errorf("the plan removes %d records, %v, want %d", cost.Records, err, len(edges))
	}
	if _, err := raw.Store.DropDerivation(t.Context(), d, opts); err != nil {
		t.Error(err)
	}
	for key := range raw.All() {
		if strings.HasSuffix(key, " WITH_FIELD_channel") {
			t.Errorf("the table still contains %s", key)
		}
	}
}
