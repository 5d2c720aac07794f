package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/dynamo/bulk"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// otherRecord is a record of other software. Its numbers have the type N in DynamoDB.
type otherRecord map[string]any

func (r otherRecord) attributes() map[string]types.AttributeValue {
	attributes := map[string]types.AttributeValue{}
	for name, v := range r {
		if text, ok := v.(string); ok {
			attributes[name] = &types.AttributeValueMemberS{Value: text}
		} else {
			attributes[name] = &types.AttributeValueMemberN{Value: fmt.Sprint(v)}
		}
	}
	return attributes
}

// newOtherTable creates a table with the given key attributes and records, and returns an export of it.
func newOtherTable(t *testing.T, db *dynamodb.Client, table, pk, sk string, records []otherRecord) string {
	t.Helper()
	_, err := db.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: &table, BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: &pk, AttributeType: types.ScalarAttributeTypeS}, {AttributeName: &sk, AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: &pk, KeyType: types.KeyTypeHash}, {AttributeName: &sk, KeyType: types.KeyTypeRange}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { deleteTable(t, db, table) })
	for _, r := range records {
		if _, err := db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: r.attributes()}); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(t.TempDir(), "other.jsonl")
	run(t, "export "+file, useDynamoDB, noAuth, "ORDERGRAPH_TABLE="+table).checkSucceeded(t, fmt.Sprint(len(records), " records"))
	return file
}

// genericRecords are records of a table with the keys PK and SK, such as CUST#c1 and METADATA.
func genericRecords() []otherRecord {
	return []otherRecord{
		{"PK": "CUST#c1", "SK": "METADATA", "GSI1PK": "CUSTOMER", "GSI1SK": "2026-01-05T09:00:00Z", "customerId": "c1", "name": "Ann", "email": "ann@example.com", "createdAt": "2026-01-05T09:00:00Z"},
		{"PK": "CUST#c2", "SK": "METADATA", "GSI1PK": "CUSTOMER", "GSI1SK": "2026-01-06T09:00:00Z", "name": "Bob", "email": "bob@example.com", "createdAt": "2026-01-06T09:00:00Z"},
		{"PK": "ORDER#2026/100", "SK": "METADATA", "GSI1PK": "CUST#c1", "GSI1SK": "ORDER#2026-03-01T10:00:00Z#2026/100", "customerId": "c1", "status": "DELIVERED", "total": 145, "createdAt": "2026-03-01T10:00:00Z"},
		{"PK": "ORDER#o101", "SK": "METADATA", "GSI1PK": "CUST#c1", "GSI1SK": "ORDER#2026-04-10T14:00:00Z#o101", "customerId": "c1", "status": "PLACED", "total": 455, "createdAt": "2026-04-10T14:00:00Z", "giftMessage": "Congratulations"},
		{"PK": "ORDER#2026/100", "SK": "ITEM#AVON-TORTOISE", "GSI1PK": "PRODUCT#AVON-TORTOISE", "GSI1SK": "ORDER#2026/100", "sku": "AVON-TORTOISE", "quantity": 1, "price": "145.00"},
		{"PK": "ORDER#o101", "SK": "ITEM#AVON-TORTOISE", "GSI1PK": "PRODUCT#AVON-TORTOISE", "GSI1SK": "ORDER#o101", "quantity": 2, "price": 145},
		{"PK": "ORDER#o101", "SK": "ITEM#GRANBY-CLEAR", "GSI1PK": "PRODUCT#GRANBY-CLEAR", "GSI1SK": "ORDER#o101", "quantity": 1, "price": 165, "name": "Granby, clear"},
		{"PK": "PRODUCT#AVON-TORTOISE", "SK": "METADATA", "name": "Avon", "price": 145},
		{"PK": "PRODUCT#GRANBY-CLEAR", "SK": "METADATA", "name": "Granby", "price": 165, "category": "Frames"},
		{"PK": "CART#c1", "SK": "ITEM#GRANBY-CLEAR"},
		{"PK": "CART#c1", "SK": "ITEM#AVON-TORTOISE"},
	}
}

const genericMapping = "../../deploy/mappings/upper-case.json"

// A table with other keys and attribute names is imported with a mapping, and is complete afterwards.
func TestImportFromGenericKeys(t *testing.T) {
	db, table, variables := newTestTable(t)
	variables = append(variables, "ORDERGRAPH_SHARDS=2")
	file := newOtherTable(t, db, table+".other", "PK", "SK", genericRecords())
	run(t, "table create", variables...).checkSucceeded(t)
	line := "import -from " + genericMapping + " "
	const report = "2 customers, 2 orders, 2 products, 0 inventory levels, 0 warehouses, 0 employees.\n" +
		"2 orders have new IDs, because their IDs were not ULIDs. The timelines contain the previous IDs.\n" +
		"unmapped  attribute \"giftMessage\" of order: 1 records, such as ORDER#o101 METADATA\n" +
		"unmapped  records CART#... ITEM#...: 2 records, such as CART#c1 ITEM#"
	run(t, line+"-dry-run "+file, variables...).checkSucceeded(t, "A dry run wrote nothing. An import into table "+table+" would write: "+report)
	if records := tableRecords(t, db, table); len(records) > 0 {
		t.Errorf("a dry run wrote %d records", len(records))
	}
	run(t, line+file, variables...).checkSucceeded(t, "Imported into table "+table+": ", " records: "+report)
	run(t, "check", variables...).checkSucceeded(t, "2 orders", "clean")
	run(t, line+file, variables...).checkFailed(t, 1, "table "+table+" already has records", "-overwrite")
	once := tableRecords(t, db, table)
	run(t, line+"-overwrite "+file, variables...).checkSucceeded(t, report)
	if !reflect.DeepEqual(once, tableRecords(t, db, table)) {
		t.Error("importing a second time changed the table")
	}

	_, url := serve(t, "-addr 127.0.0.1:0", variables...)
	for query, want := range map[string]string{
		`{ customer(id: "c1") { name email orderCount orders { nodes { status total { amount currencyCode } placedAt items { nodes { sku name quantity product { name category } } } } } } }`: `{"data":{"customer":{"name":"Ann","email":"ann@example.com","orderCount":2,"orders":{"nodes":[` +
			`{"status":"PENDING","total":{"amount":"455.00","currencyCode":"GBP"},"placedAt":"2026-04-10T14:00:00.000Z","items":{"nodes":[{"sku":"AVON-TORTOISE","name":"Avon","quantity":2,"product":{"name":"Avon","category":"Other"}},{"sku":"GRANBY-CLEAR","name":"Granby, clear","quantity":1,"product":{"name":"Granby","category":"Frames"}}]}},` +
			`{"status":"DELIVERED","total":{"amount":"145.00","currencyCode":"GBP"},"placedAt":"2026-03-01T10:00:00.000Z","items":{"nodes":[{"sku":"AVON-TORTOISE","name":"Avon","quantity":1,"product":{"name":"Avon","category":"Other"}}]}}]}}}}`,
		`{ ordersByStatus(status: DELIVERED) { nodes { customer { name } timeline { nodes { type note } } } } }`: `{"data":{"ordersByStatus":{"nodes":[{"customer":{"name":"Ann"},"timeline":{"nodes":[{"type":"IMPORTED","note":"The order's ID was 2026/100."}]}}]}}}`,
		`{ customerByEmail(email: "bob@example.com") { id } customers(namePrefix: "a") { nodes { id } } }`:       `{"data":{"customerByEmail":{"id":"c2"},"customers":{"nodes":[{"id":"c1"}]}}}`,
	} {
		if got := postQuery(t, url, query); strings.TrimSpace(got) != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}

	// The table had no stock, but the stock can be set afterwards.
	for _, mutation := range []string{
		`createWarehouse(input: {id: "w", name: "W"}) { userErrors { message } }`,
		`setInventoryLevel(input: {sku: "AVON-TORTOISE", warehouseId: "w", quantity: 9}) { userErrors { message } }`,
		`setInventoryLevel(input: {sku: "GRANBY-CLEAR", warehouseId: "w", quantity: 9}) { userErrors { message } }`,
		`placeOrder(input: {customerId: "c2", items: [{sku: "AVON-TORTOISE", quantity: 7}], idempotencyKey: "k"}) { userErrors { message } }`,
	} {
		if got := postQuery(t, url, "mutation { "+mutation+" }"); !strings.Contains(got, `"userErrors":[]`) {
			t.Errorf("%s: %s", mutation, got)
		}
	}
	storetest.AssertConsistent(t, db, table, 2)
}

// A table to which ElectroDB has written keys in lower case is imported with a mapping.
func TestImportFromElectroDB(t *testing.T) {
	db, table, variables := newTestTable(t)
	const order, orderInKey = "01HVMK3P2Q0000000000000001", "01hvmk3p2q0000000000000001"
	file := newOtherTable(t, db, table+".other", "pk", "sk", []otherRecord{
		{"pk": "customer#ann-1", "sk": "#metadata", "__edb_e__": "customer", "__edb_v__": "1", "customerId": "Ann-1", "name": "Ann", "email": "ann@example.com", "createdAt": "2024-01-05T09:00:00.000Z", "accountRepId": "e1"},
		{"pk": "order#" + orderInKey, "sk": "#metadata", "__edb_e__": "order", "orderId": order, "customerId": "Ann-1", "status": "pending", "total": 3, "createdAt": "2024-04-16T23:15:41.000Z"},
		{"pk": "customer#ann-1", "sk": "order#" + orderInKey, "__edb_e__": "customerOrder"},
		{"pk": "order#" + orderInKey, "sk": "item#p1", "__edb_e__": "orderItem", "orderId": order, "productId": "P1", "name": "Pen", "qty": 2, "price": 1.5},
		{"pk": "product#p1", "sk": "#metadata", "sku": "P1", "name": "Pen", "unitPrice": 1.5, "category": "Office"},
		{"pk": "product#p1", "sk": "warehouse#w1", "sku": "P1", "warehouseId": "w1", "quantity": 10},
		{"pk": "warehouse#w1", "sk": "#metadata", "warehouseId": "w1", "name": "North"},
		{"pk": "employee#e1", "sk": "#metadata", "employeeId": "e1", "name": "Eve", "jobTitle": "Clerk", "hireDate": "2020-01-02", "warehouseId": "w1"},
	})
	run(t, "table create", variables...).checkSucceeded(t)
	run(t, "import -from ../../deploy/mappings/electrodb.json "+file, variables...).checkSucceeded(t,
		"1 customers, 1 orders, 1 products, 1 inventory levels, 1 warehouses, 1 employees.\nunmapped  records customer#... order#...: 1 records, such as customer#ann-1 order#"+orderInKey+"\n")
	run(t, "check", variables...).checkSucceeded(t, "clean")
	storetest.AssertConsistent(t, db, table, 1)
	_, url := serve(t, "-addr 127.0.0.1:0", variables...)
	want := `{"data":{"order":{"customer":{"id":"Ann-1","accountRep":{"name":"Eve"}},"items":{"nodes":[{"product":{"totalInventory":10,"available":8}}]},"timeline":{"nodes":[{"note":null}]}}}}`
	if got := postQuery(t, url, `{ order(id: "`+order+`") { customer { id accountRep { name } } items { nodes { product { totalInventory available } } } timeline { nodes { note } } } }`); strings.TrimSpace(got) != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// If a record cannot be converted, the command names it and writes nothing.
func TestImportFromBadRecords(t *testing.T) {
	db, table, variables := newTestTable(t)
	run(t, "table create", variables...).checkSucceeded(t)
	file := filepath.Join(t.TempDir(), "other.jsonl")
	for _, c := range []struct {
		// change changes the value of an attribute of a record. remove removes the record.
		record, attribute, value, want string
	}{
		{"CUST#c2 METADATA", "email", "", `line 2: record cannot be read: record CUST#c2 METADATA: attribute "email" is missing or not a string`},
		{"CUST#c2 METADATA", "email", "bob", `line 2: record CUST#c2 METADATA: argument "email" is not an email address`},
		{"CUST#c2 METADATA", "customerId", "c 2", `line 2: record CUST#c2 METADATA: argument "customerId" contains ' '`},
		{"ORDER#2026/100 METADATA", "status", "LOST", `line 3: record cannot be read: record ORDER#2026/100 METADATA: attribute "status" is "LOST"`},
		{"ORDER#2026/100 METADATA", "createdAt", "1960-01-01T00:00:00Z", "line 3: record ORDER#2026/100 METADATA: was placed at 1960-01-01"},
		{"ORDER#2026/100 METADATA", "customerId", "c9", "line 3: order 2026/100: customer c9 is not in the dataset"},
		{"ORDER#o101 METADATA", "total", "456.00", "line 4: order o101: the total is 456.00, but the line items add up to 455.00"},
		{"ORDER#2026/100 METADATA", "orderId", "o101", "line 4: record ORDER#o101 METADATA: line 3 contains the same order"},
		{"ORDER#2026/100 METADATA", "", "", "line 4: line item AVON-TORTOISE: its order 2026/100 is missing"},
		{"ORDER#o101 ITEM#GRANBY-CLEAR", "quantity", "0", `line 7: record cannot be read: record ORDER#o101 ITEM#GRANBY-CLEAR: attribute "qty" is 0`},
		{"ORDER#o101 ITEM#GRANBY-CLEAR", "sku", "OTHER", "line 4: order o101: product OTHER is not in the dataset"},
		{"PRODUCT#GRANBY-CLEAR METADATA", "price", "-1", `line 9: record cannot be read: record PRODUCT#GRANBY-CLEAR METADATA: attribute "unitPrice"`},
		{"CART#c1 ITEM#GRANBY-CLEAR", "SK", "", `line 10: the record has no strings "PK" and "SK", which are the keys in the mapping`},
	} {
		var lines strings.Builder
		for _, r := range genericRecords() {
			if r["PK"].(string)+" "+r["SK"].(string) == c.record {
				switch {
				case c.attribute == "":
					continue
				case c.value == "":
					delete(r, c.attribute)
				default:
					r[c.attribute] = c.value
				}
			}
			lines.WriteString(exportLine(t, r))
		}
		if err := os.WriteFile(file, []byte(lines.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		result := run(t, "import -from "+genericMapping+" "+file, variables...)
		if out := result.stdout.String(); result.status != 1 || !strings.Contains(out, "unreadable  "+c.want) {
			t.Errorf("%s, %s=%q: exit %d, %s%s, want %s", c.record, c.attribute, c.value, result.status, out, result.stderr.String(), c.want)
		}
		if err := result.stderr.String(); !strings.Contains(err, "so nothing was written: correct the lines or the mapping") {
			t.Errorf("%s: %s", c.record, err)
		}
	}
	for text, want := range map[string]string{
		"":                 "contains no records with the keys in the mapping",
		"\x1f\x8b\x08\x00": "is compressed",
		exportLine(t, otherRecord{"PK": "CUSTOMER#c1", "SK": "METADATA"}): "contains no records with the keys in the mapping",
		exportLine(t, genericRecords()[0]) + exportLine(t, otherRecord{"PK": "CUST#c3", "SK": "METADATA", "name": "Ann", "email": "Ann@example.com", "createdAt": "2026-01-05T09:00:00Z"}): "customer c1 and c3: have the email address ann@example.com, but it must be unique; nothing was written",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if result := run(t, "import -from "+genericMapping+" "+file, variables...); result.status != 1 || !strings.Contains(result.stderr.String(), want) {
			t.Errorf("%q: exit %d, %s, want %s", text, result.status, result.stderr.String(), want)
		}
	}
	run(t, "import -skip-unreadable -from "+genericMapping+" "+file, variables...).checkFailed(t, 2, "-skip-unreadable cannot be combined with -from")
	if records := tableRecords(t, db, table); len(records) > 0 {
		t.Errorf("%d records were written", len(records))
	}
}

// After an interruption, the same command with -overwrite completes the import.
func TestInterruptedImportFrom(t *testing.T) {
	db, table, variables := newTestTable(t)
	file := newOtherTable(t, db, table+".other", "PK", "SK", genericRecords())
	run(t, "table create", variables...).checkSucceeded(t)
	interrupted := newInterrupter(t, variables)
	line := "import -from " + genericMapping + " "
	interrupted(line+file, ".BatchWriteItem", 3).checkFailed(t, 1, "import: interrupted: some records are written: run the same command again with -overwrite, then check -repair")
	run(t, line+file, variables...).checkFailed(t, 1, "already has records")
	run(t, line+"-overwrite "+file, variables...).checkSucceeded(t, "2 customers, 2 orders")
	run(t, "check -repair", variables...).checkSucceeded(t, "2 orders")
	run(t, "check", variables...).checkSucceeded(t, "clean")
}

// exportLine returns the line of an export with a record.
func exportLine(t *testing.T, r otherRecord) string {
	t.Helper()
	var attributes []string
	for name, v := range r {
		dynamoType := "N"
		if _, ok := v.(string); ok {
			dynamoType = "S"
		}
		attributes = append(attributes, fmt.Sprintf("%q:{%q:%q}", name, dynamoType, fmt.Sprint(v)))
	}
	return `{"Item":{` + strings.Join(attributes, ",") + "}}\n"
}

// The message for each mistake in a mapping describes what to change.
func TestInvalidMapping(t *testing.T) {
	_, _, variables := newTestTable(t)
	file := filepath.Join(t.TempDir(), "mapping.json")
	customer := func(text string) string {
		return "{\"pk\": \"PK\", \"sk\": \"SK\",\n\"entities\": {\"customer\": {" + text + "}}}"
	}
	const keys = `"pk": "CUST#{customerId}", "sk": "METADATA"`
	for text, want := range map[string]string{
		"":                                                         "line 1: the text is not JSON",
		"{\"pk\": \"PK\",\n\"sk\": \"SK\",,}":                      "line 2: the text is not JSON",
		"{\"pk\": \"PK\",\n\"pk\": \"SK\"}":                        "line 2: the text is not JSON: duplicate object member name /pk",
		"{\"pk\": \"PK\",\n\"tables\": []}":                        `line 2: unknown member "tables": use pk, sk, ignore, entities`,
		customer(`"template": "x"`):                                `line 2: unknown member "template": use pk, sk, attributes, defaults, values`,
		customer(keys + `, "defaults": {"name": 1}`):               "line 2: /entities/customer/defaults/name must be a string",
		customer(keys + `, "values": {"name": "x"}`):               "line 2: /entities/customer/values/name must be an object",
		`{"ignore": "GSI1PK"}`:                                     "line 1: /ignore must be an array of strings",
		`{"pk": "PK"}`:                                             `set "pk" and "sk" to the names of the table's partition key and sort key`,
		`{"pk": "PK", "sk": "SK"}`:                                 `"entities" is empty: use customer, employee, inventoryLevel, order, orderItem, product, warehouse`,
		`{"pk": "PK", "sk": "SK", "entities": {"client": {}}}`:     `unknown entity "client": use customer, employee`,
		`{"pk": "PK", "sk": "SK", "entities": {"customer": null}}`: `entity customer: the key template "" is invalid: use a form such as CUST#{customerId}`,
		customer(`"pk": "CUST#{customerId", "sk": "METADATA"`):     `the key template "CUST#{customerId" is invalid`,
		customer(`"pk": "CUST#customerId}", "sk": "METADATA"`):     `the key template "CUST#customerId}" is invalid`,
		customer(`"pk": "CUST#{customerId}-x", "sk": "METADATA"`):  `where each placeholder ends before # or at the end of the key`,
		customer(`"pk": "CUST#{id}", "sk": "METADATA"`):            `entity customer: the entity has no attribute "id": use accountRepId, createdAt, customerId, email, name`,
		customer(`"pk": "CUST", "sk": "METADATA"`):                 `entity customer: no key template contains {customerId}: add it to "pk" or "sk", or add the attribute with this value to "attributes"`,
		customer(keys + `, "attributes": {"fullName": "name"}`):    `the entity has no attribute "fullName": use accountRepId, createdAt, customerId, email, name`,
		customer(keys + `, "defaults": {"orderCount": "0"}`):       `the entity has no attribute "orderCount"`,
		customer(keys + `, "values": {"level": {"GOLD": "x"}}`):    `the entity has no attribute "level"`,
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		run(t, "import -from "+file+" "+file, variables...).checkFailed(t, 1, file+": ", want)
	}
	if _, err := bulk.ParseMapping([]byte(findInFile(t, "docs/operations.md", "(?s)```json\n(\\{\n  \"pk\".*?)```"))); err != nil {
		t.Errorf("the example in the docs: %v", err)
	}
	run(t, "import -from /nowhere/mapping.json "+file, variables...).checkFailed(t, 1, "/nowhere/mapping.json", "no such file")
}
