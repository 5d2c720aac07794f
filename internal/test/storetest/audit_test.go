package storetest_test

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/change"
	"github.com/ordergraph/ordergraph/internal/test/dynamolocal"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
	"github.com/ordergraph/ordergraph/internal/test/workload"
)

func TestMain(m *testing.M) { os.Exit(dynamolocal.Main(m)) }

// tableWithHistory returns a table with a pending, a confirmed, a shipped and a cancelled order.
func tableWithHistory(t *testing.T, db *dynamodb.Client, shards int) string {
	t.Helper()
	table := storetest.TableName()
	store := storetest.NewTable(t, db, dynamo.Options{Table: table, Shards: shards})
	storetest.LoadDataset(t, store, workload.Fixture{Customers: 2, Products: 2, Warehouses: 1, Employees: 2, Stock: 20}.Dataset(t))
	caller := change.Caller{Name: "test"}
	var ids []commerce.OrderID
	for _, key := range []string{"a", "b", "c", "d"} {
		o, err := store.PlaceOrder(t.Context(), change.Caller{ID: "test", Name: "test", IdempotencyKey: key}, commerce.OrderRequest{CustomerID: "c1", Lines: []commerce.OrderLine{{SKU: "p0", Quantity: 2}, {SKU: "p1", Quantity: 1}}})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, o.ID)
	}
	slices.Sort(ids) // IDs of the same millisecond are not in the order of creation
	for _, m := range []commerce.OrderStatusChange{
		{OrderID: ids[1], To: commerce.Confirmed}, {OrderID: ids[2], To: commerce.Confirmed},
		{OrderID: ids[2], To: commerce.Shipped, WarehouseID: "w0", WithoutAddress: true}, {OrderID: ids[3], To: commerce.Cancelled},
	} {
		if _, err := store.ChangeOrderStatus(t.Context(), caller, m); err != nil {
			t.Fatal(err)
		}
	}
	return table
}

// damage is a change of one record: the first record by key whose keys have these prefixes.
type damage struct {
	name, pk, sk string
	// change modifies the record. If change is nil, the record is deleted.
	change func(storetest.Record)
	// problem is a part of the problem that the audit must report.
	problem string
}

func setAttribute(name string, v types.AttributeValue) func(storetest.Record) {
	return func(r storetest.Record) { r[name] = v }
}

func damages() []damage {
	return []damage{
		{"order without its copy", "CUSTOMER#c1", "ORDER#", nil, "no customer's copy"},
		{"copy without its order", "ORDER#", "#METADATA", nil, "is missing"},
		{"status of the copy", "CUSTOMER#c1", "ORDER#", setAttribute("status", storetest.Str("delivered")), "the customer's copy"},
		{"attribute of the copy alone", "CUSTOMER#c1", "ORDER#", setAttribute("more", storetest.Str("x")), "has no more"},
		{"status of the order", "ORDER#", "#METADATA", setAttribute("status", storetest.Str("shipped")), "status"},
		{"total", "ORDER#", "#METADATA", setAttribute("total", storetest.Num("1")), "add up to"},
		{"itemCount", "ORDER#", "#METADATA", setAttribute("itemCount", storetest.Num("3")), "itemCount"},
		{"embedded items", "ORDER#", "#METADATA", func(r storetest.Record) {
			r["items"].(*types.AttributeValueMemberL).Value[0].(*types.AttributeValueMemberM).Value["qty"] = storetest.Num("9")
		}, "the item's record"},
		{"items not embedded", "ORDER#", "#METADATA", func(r storetest.Record) { delete(r, "items") }, "whether it embeds"},
		{"missing item", "ORDER#", "ITEM#", nil, "has no record"},
		{"quantity of an item", "ORDER#", "ITEM#", setAttribute("qty", storetest.Num("7")), "available"},
		{"missing event", "ORDER#", "EVENT#", nil, "no events"},
		{"event of another type", "ORDER#", "EVENT#", setAttribute("type", storetest.Str("delivered")), "changes the status"},
		{"event of another time", "ORDER#", "EVENT#", setAttribute("createdAt", storetest.Str("2020-01-01T00:00:00.000Z")), "createdAt"},
		{"order of another version", "ORDER#", "#METADATA", setAttribute("version", storetest.Num("9")), "version"},
		{"index key of the status", "ORDER#", "#METADATA", setAttribute("gsi1pk", storetest.Str("STATUS#other")), "gsi1pk"},
		{"index key of the copy", "CUSTOMER#c1", "ORDER#", setAttribute("gsi1sk", storetest.Str("ORDER#other")), "gsi1sk"},
		{"missing customer", "CUSTOMER#c1", "#METADATA", nil, "which does not exist"},
		{"orderCount", "CUSTOMER#c1", "#METADATA", setAttribute("orderCount", storetest.Num("5")), "orderCount"},
		{"missing edge to the rep", "CUSTOMER#c1", "REP", nil, "which does not exist"},
		{"edge to another rep", "CUSTOMER#c1", "REP", setAttribute("accountRepId", storetest.Str("e0")), "accountRepId"},
		{"name in the edge", "CUSTOMER#c1", "REP", setAttribute("name", storetest.Str("other")), "the customer"},
		{"missing e-mail claim", "EMAIL#c1@example.com", "#METADATA", nil, "which does not exist"},
		{"e-mail claim of another", "EMAIL#c1@example.com", "#METADATA", setAttribute("customerId", storetest.Str("c0")), "the customerId of the record that reserves the email"},
		{"available", "PRODUCT#p0", "#METADATA", setAttribute("available", storetest.Num("1")), "available"},
		{"totalInventory", "PRODUCT#p0", "#METADATA", setAttribute("totalInventory", storetest.Num("1")), "totalInventory"},
		{"level", "PRODUCT#p0", "WAREHOUSE#", setAttribute("quantity", storetest.Num("1")), "totalInventory"},
		{"negative stock", "PRODUCT#p0", "WAREHOUSE#", setAttribute("quantity", storetest.Num("-1")), "negative"},
		{"missing product", "PRODUCT#p0", "#METADATA", nil, "which does not exist"},
		{"orderCount of a product", "PRODUCT#p1", "#METADATA", setAttribute("orderCount", storetest.Num("5")), "orderCount"},
		{"orders of a rep", "EMPLOYEE#e0", "ORDERS#0", setAttribute("orders", storetest.Num("77")), "the number of orders of the account rep"},
		{"spending", "CUSTOMER#c1", "SPENDING#", setAttribute("spent", storetest.Num("1")), "the orders cost"},
		{"missing spending", "CUSTOMER#c1", "SPENDING#", nil, "the orders cost"},
		{"number of shipped orders", "ORDER_COUNTS", "PART#", setAttribute("shipped", storetest.Num("9")), "shipped"},
		{"missing number of orders", "ORDER_COUNTS", "PART#", func(r storetest.Record) { r["complete"] = &types.AttributeValueMemberBOOL{} }, "complete"},
		{"missing warehouse", "WAREHOUSE#w0", "#METADATA", nil, "which does not exist"},
		{"missing employee", "EMPLOYEE#e1", "#METADATA", nil, "which does not exist"},
		{"missing name edge", "EMPLOYEE#e0", "NAME", nil, "which does not exist"},
		{"job in an edge", "EMPLOYEE#e0", "TITLE", setAttribute("jobTitle", storetest.Str("King")), "jobTitle"},
		{"missing warehouse edge", "EMPLOYEE#e0", "WAREHOUSE", nil, "which does not exist"},
		{"idempotency record of a missing order", "IDEMPOTENCY#", "#METADATA", func(r storetest.Record) {
			r["result"] = &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{"orderId": storetest.Str("none")}}
		}, "which does not exist"},
	}
}

// The audit reports every kind of damage, and reports nothing for a consistent table.
// DynamoDB Local runs every fourth damage.
func TestAudit(t *testing.T) {
	storetest.ForEachEngine(t, func(t *testing.T, db *dynamodb.Client) {
		for _, shards := range []int{1, 3} {
			table := tableWithHistory(t, db, shards)
			before := storetest.AssertConsistent(t, db, table, shards)
			if len(before.Orders) != 4 || len(before.IdempotencyRecords) != 4 {
				t.Fatalf("the table has %d orders and %d idempotency records, want 4 of each", len(before.Orders), len(before.IdempotencyRecords))
			}
			put := func(r storetest.Record) {
				if _, err := db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: r}); err != nil {
					t.Fatal(err)
				}
			}
			for i, d := range damages() {
				if !storetest.RunsCase(t, 4, i) {
					continue
				}
				k, before := findRecord(t, before, d)
				if d.change == nil {
					if _, err := db.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &table, Key: storetest.ItemKey(k.PK, k.SK)}); err != nil {
						t.Fatal(err)
					}
				} else {
					after := deepCopy(before)
					d.change(after)
					put(after)
				}
				damaged, err := storetest.Audit(t.Context(), db, table, shards)
				if err != nil {
					t.Fatal(err)
				}
				if !strings.Contains(strings.Join(damaged.Problems, "\n"), d.problem) {
					t.Errorf("%s: the audit reports %q, want %q", d.name, damaged.Problems, d.problem)
				}
				put(before)
			}
			storetest.AssertConsistent(t, db, table, shards)
			orphan := storetest.Record{"pk": storetest.Str("SOMETHING"), "sk": storetest.Str("ELSE")}
			put(orphan)
			if damaged, err := storetest.Audit(t.Context(), db, table, shards); err != nil || len(damaged.Problems) != 1 {
				t.Errorf("a record of no entity: the audit returns %v, %v, want one problem", damaged, err)
			}
		}
	})
}

func findRecord(t *testing.T, a *storetest.AuditResult, d damage) (storetest.Key, storetest.Record) {
	t.Helper()
	var keys []storetest.Key
	for k := range a.Records {
		if strings.HasPrefix(k.PK, d.pk) && strings.HasPrefix(k.SK, d.sk) {
			keys = append(keys, k)
		}
	}
	if len(keys) == 0 {
		t.Fatalf("%s: the table has no such record", d.name)
	}
	first := slices.MinFunc(keys, func(a, b storetest.Key) int { return strings.Compare(a.PK+a.SK, b.PK+b.SK) })
	return first, a.Records[first]
}

// deepCopy copies a record with its lists and maps.
func deepCopy(r storetest.Record) storetest.Record {
	out := maps.Clone(r)
	for name, v := range out {
		switch v := v.(type) {
		case *types.AttributeValueMemberL:
			l := slices.Clone(v.Value)
			for i, e := range l {
				if m, ok := e.(*types.AttributeValueMemberM); ok {
					l[i] = &types.AttributeValueMemberM{Value: deepCopy(m.Value)}
				}
			}
			out[name] = &types.AttributeValueMemberL{Value: l}
		case *types.AttributeValueMemberM:
			out[name] = &types.AttributeValueMemberM{Value: deepCopy(v.Value)}
		}
	}
	return out
}
