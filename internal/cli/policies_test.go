package cli_test

import (
	"bufio"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/internal/server"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// permission is an action on the table, its layout, its index or its stream. inTransactions restricts
// it to transactions.
type permission struct {
	action, resource string
	inTransactions   bool
}

// readPolicy returns the permissions of a policy in deploy.
func readPolicy(t *testing.T, file string) map[permission]bool {
	t.Helper()
	text, err := os.ReadFile("../../deploy/" + file)
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Statement []struct {
			Action    []string
			Resource  string
			Condition map[string]map[string][]string
		}
	}
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	allowed := map[permission]bool{}
	for _, s := range document.Statement {
		resource := "table"
		for _, part := range []string{"index", "stream"} {
			if strings.Contains(s.Resource, "/"+part+"/") {
				resource = part
			}
		}
		if slices.Equal(s.Condition["ForAllValues:StringEquals"]["dynamodb:LeadingKeys"], []string{string(model.EntityLayout.PK)}) {
			resource = "layout"
		}
		for _, action := range s.Action {
			allowed[permission{strings.TrimPrefix(action, "dynamodb:"), resource, s.Condition["ForAnyValue:StringEquals"] != nil}] = true
		}
	}
	return allowed
}

// requiredPermissions returns the permissions that a request needs.
func requiredPermissions(operation string, body []byte) (all []permission, err error) {
	var request struct {
		IndexName     string
		Key           map[string]map[string]string
		TransactItems []map[string]any
	}
	if err := json.Unmarshal(body, &request); err != nil {
		return nil, err
	}
	for _, item := range request.TransactItems {
		for action := range item {
			all = append(all, permission{action + "Item", "table", true})
		}
	}
	switch {
	case len(all) > 0:
		return all, nil
	case request.IndexName != "":
		return []permission{{operation, "index", false}}, nil
	case slices.Contains([]string{"DescribeStream", "GetRecords", "GetShardIterator"}, operation):
		return []permission{{operation, "stream", false}}, nil
	case request.Key[model.AttrPK]["S"] == string(model.EntityLayout.PK):
		return []permission{{operation, "layout", false}}, nil
	}
	return []permission{{operation, "table", false}}, nil
}

// checkPolicy runs commands behind a proxy that enforces a policy, as DynamoDB does. It fails the
// test if a permission is missing or unused.
func checkPolicy(t *testing.T, file string, commands func()) {
	t.Helper()
	allowed, used := readPolicy(t, file), map[permission]bool{}
	withProxy(t, func(operation string, body []byte) string {
		all, err := requiredPermissions(operation, body)
		if err != nil {
			t.Error(err)
		}
		for _, p := range all {
			if whole := (permission{p.action, "table", p.inTransactions}); p.resource == "layout" && allowed[whole] {
				p = whole
			}
			used[p] = true
			if !allowed[p] && !allowed[permission{p.action, p.resource, false}] {
				t.Errorf("%s does not allow %+v", file, p)
				return "AccessDeniedException"
			}
		}
		return ""
	})
	commands()
	for p := range allowed {
		if !used[p] {
			t.Errorf("%s allows %+v, which its commands do not need", file, p)
		}
	}
}

// Each policy allows exactly what its commands need.
func TestPolicies(t *testing.T) {
	db, table, variables := newTestTable(t)
	dir := t.TempDir()
	checkPolicy(t, "iam-policy-setup.json", func() {
		run(t, "table create", variables...).checkSucceeded(t)
		off := false
		if _, err := db.UpdateTable(t.Context(), &dynamodb.UpdateTableInput{TableName: &table, StreamSpecification: &types.StreamSpecification{StreamEnabled: &off}}); err != nil {
			t.Fatal(err)
		}
		run(t, "table create", variables...).checkSucceeded(t, "stream is now enabled")
		run(t, "table shards 2", variables...).checkSucceeded(t)
		run(t, "seed", variables...).checkSucceeded(t)
		// A category ends when its last product moves to another.
		for _, category := range []string{"Cups", "Mugs"} {
			dataset := filepath.Join(dir, category)
			if err := os.WriteFile(dataset, []byte(`{"products": [{"sku": "cup", "name": "Cup", "category": "`+category+`", "unitPrice": "5", "currency": "EUR", "inventory": {}}]}`), 0o600); err != nil {
				t.Fatal(err)
			}
			run(t, "seed "+dataset, variables...).checkSucceeded(t)
		}
		other := filepath.Join(dir, "other.jsonl")
		if err := os.WriteFile(other, []byte(exportLine(t, genericRecords()[0])), 0o600); err != nil {
			t.Fatal(err)
		}
		run(t, "import -overwrite -from "+genericMapping+" "+other, variables...).checkSucceeded(t)
	})
	checkPolicy(t, "iam-policy-transfer.json", func() {
		file := filepath.Join(dir, "shop.jsonl")
		run(t, "export "+file, variables...).checkSucceeded(t)
		run(t, "import -dry-run "+file, variables...).checkSucceeded(t)
		// A line item that is imported takes the number of orders off its product.
		if _, err := db.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &table, Key: storetest.ItemKey("ORDER#01KE70EHG00000000000000003", "ITEM#prod_100")}); err != nil {
			t.Fatal(err)
		}
		run(t, "import "+file, variables...).checkSucceeded(t)
	})
	checkPolicy(t, "iam-policy-check.json", func() {
		damageSample(t, db, table)
		if _, err := db.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &table, Key: storetest.ItemKey("EMAIL#alice@example.com", "#METADATA")}); err != nil {
			t.Fatal(err)
		}
		run(t, "check -repair", variables...).checkSucceeded(t)
		run(t, "table plan customerName", variables...).checkSucceeded(t)
		interruptWhileServersFollow(t, db, table, "table drop customerName", "customerName is dropped", variables)
		run(t, "table drop customerName", variables...).checkSucceeded(t)
		run(t, "table plan customerName", variables...).checkSucceeded(t, "to write")
		interruptWhileServersFollow(t, db, table, "table apply customerName", "customerName is written", variables)
		run(t, "table apply customerName", variables...).checkSucceeded(t, "customerName is readable")
	})
	checkPolicy(t, "iam-policy.json", func() {
		_, url := serve(t, "-addr 127.0.0.1:0", variables...)
		askFirstQuery(t, url)
		const placing = `mutation { placeOrder(input: {customerId: \"cust_01\", items: [{sku: \"prod_100\", quantity: 1}, {sku: \"prod_101\", quantity: 1}]}) { order { id } userErrors { message } } }`
		_, answer := post(t, url, `{"query":"`+placing+`"}`)
		var placed struct {
			Data struct {
				PlaceOrder struct{ Order struct{ ID string } }
			}
		}
		if err := json.Unmarshal([]byte(answer), &placed); err != nil || placed.Data.PlaceOrder.Order.ID == "" {
			t.Fatalf("%s, %v", answer, err)
		}
		id := placed.Data.PlaceOrder.Order.ID
		listen, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+server.PathGraphQL+`?query=subscription{orderUpdated(id:"`+id+`"){orderId}}`, nil)
		if err != nil {
			t.Fatal(err)
		}
		listen.Header.Set("Accept", "text/event-stream")
		events, err := http.DefaultClient.Do(listen)
		if err != nil {
			t.Fatal(err)
		}
		defer events.Body.Close()
		post(t, url, `{"query":"mutation { assignAccountRep(input: {customerId: \"cust_01\", employeeId: \"rep_002\"}) { userErrors { message } } }"}`)
		post(t, url, `{"query":"mutation { removeOrderItem(input: {orderId: \"`+id+`\", sku: \"prod_100\"}) { userErrors { message } } }"}`)
		for lines := bufio.NewScanner(events.Body); lines.Scan(); {
			if strings.Contains(lines.Text(), id) {
				return
			}
		}
		t.Error("the subscription ended without an event")
	})
}
