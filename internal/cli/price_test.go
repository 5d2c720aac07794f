package cli_test

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/ordergraph/ordergraph/internal/cli"
	"github.com/ordergraph/ordergraph/internal/server"
	"github.com/ordergraph/ordergraph/internal/test/golden"
)

// shopProfile is the path of the example profile in the documentation.
const shopProfile = "../../deploy/shop-profile.json"

// The table of prices in the docs equals the output of the command price for the example profile.
func TestGoldenShopPrices(t *testing.T) {
	c := run(t, "price "+shopProfile)
	c.checkSucceeded(t)
	golden.CheckSection(t, "../../docs/capacity.md", "prices", "```text\n"+c.stdout.String()+"```\n")
}

// profileOf returns the JSON of a profile with one operation. rest contains the members of the
// operation except the name.
func profileOf(rest string) string {
	return fmt.Sprintf(`{"operations": [{"name": "A", "requestsPerMonth": 2000000, %s}]}`, rest)
}

const aliceOperation = `"query": "query Q($id: ID!) { customer(id: $id) { name } }", "variables": {"id": "cust_01"}`

// doubledPrices is a price file with twice the standard prices.
const doubledPrices = `{"region": "eu-west-1", "capacityMode": "on-demand", "since": "2025-01-01", "source": "https://example.com/",
	"dollarsPerMillion": {"readRequestUnits": 0.25, "writeRequestUnits": 1.25}}`

func TestPrice(t *testing.T) {
	prices := writeTempFile(t, doubledPrices)
	dataset := writeTempFile(t, `{"customers": [{"id": "zoe", "name": "Zoe", "email": "zoe@example.com", "createdAt": "2026-01-01T00:00:00Z"}], "orders": [], "products": [], "warehouses": [], "employees": []}`)
	manifest := writeTempFile(t, fineManifest)
	for _, c := range []struct{ profile, flags, variable, row string }{
		{profileOf(aliceOperation), "", "", "2000000 0.5 0 0.0625 0.13 100.0% 0.13 A"},
		{profileOf(aliceOperation), "", "ORDERGRAPH_PRICES=" + prices, "2000000 0.5 0 0.125 0.25 100.0% 0.25 A"},
		{profileOf(strings.Replace(aliceOperation, "cust_01", "zoe", 1)), "-dataset " + dataset + " ", "", "2000000 0.5 0 0.0625 0.13 100.0% 0.13 A"},
		{profileOf(`"document": "Alice"`), "", "ORDERGRAPH_DOCUMENTS=" + manifest, "2000000 0.5 0 0.0625 0.13 100.0% 0.13 A"},
		{profileOf(`"document": "alice"`), "", "ORDERGRAPH_DOCUMENTS=" + manifest, "2000000 0.5 0 0.0625 0.13 100.0% 0.13 A"},
		{profileOf(`"units": {"read": 3, "write": 7.5}`), "", "", "2000000 3 7.5 5.063 10.13 100.0% - A"},
		{profileOf(`"units": {"read": 0, "write": 0}`), "", "", "2000000 0 0 0 0.00 - - A"},
		{profileOf(aliceOperation + `, "units": {"read": 8, "write": 0}`), "", "", "2000000 8 0 1 2.00 100.0% 0.13 A"},
		{profileOf(`"query": "subscription { orderStatusChanged { id } }", "units": {"read": 0.5, "write": 0}`), "", "", "2000000 0.5 0 0.0625 0.13 100.0% 0.00 A"},
		// The mutations in setup confirm the order, so that the measured mutation can ship it.
		{profileOf(`"query": "mutation { shipOrder(input: {orderId: \"01KCXT31G00000000000000002\", warehouseId: \"wh_sea\"}) { userErrors { code } } }", "setup": [
			"mutation { updateShippingAddress(input: {orderId: \"01KCXT31G00000000000000002\", shippingAddress: {recipient: \"A\", line1: \"1\", city: \"P\", countryCode: \"US\"}}) { userErrors { code } } }",
			"mutation { confirmOrder(input: {orderId: \"01KCXT31G00000000000000002\"}) { userErrors { code } } }"]`), "", "", "2000000 1 19 12 24.00 100.0% 1718.50 A"},
	} {
		got := run(t, "price "+c.flags+writeTempFile(t, c.profile), c.variable)
		got.checkSucceeded(t, "\n\nUnits: measured")
		if row := strings.Join(strings.Fields(strings.Split(got.stdout.String()+"\n\n", "\n")[1]), " "); row != c.row {
			t.Errorf("%s %s: the row is %q, want %q", c.profile, c.variable, row, c.row)
		}
	}
	// A list over several shards costs more than a list in one shard.
	list := writeTempFile(t, profileOf(`"query": "{ ordersByStatus(status: PENDING) { nodes { id } } }"`))
	run(t, "price "+list, "ORDERGRAPH_SHARDS=4").checkSucceeded(t, "2000000           2            0")
}

func TestPriceStandardInput(t *testing.T) {
	var out, stderr strings.Builder
	status := cli.Run(t.Context(), []string{"price", "-"}, cli.Environment{Stdin: strings.NewReader(profileOf(aliceOperation)), Stdout: &out, Stderr: &stderr, Getenv: func(string) string { return "" }})
	if status != 0 || stderr.String() != "" || !strings.Contains(out.String(), "total\n") {
		t.Errorf("exit %d, %q, %q", status, stderr.String(), out.String())
	}
}

func TestPriceErrors(t *testing.T) {
	for profile, message := range map[string]string{
		`{}`: `is not a profile: "operations" is empty: list at least one operation`,
		profileOf(strings.Replace(aliceOperation, "cust_01", "nobody", 1)):                                                          "operation A: customer is null: set variables that refer to records in the dataset",
		profileOf(strings.Replace(aliceOperation, `"id": "cust_01"`, "", 1)):                                                        "operation A: it failed on the dataset: variable \"id\": must be defined",
		profileOf(`"query": "{ nonsense }"`):                                                                                        `operation A: the server would reject it: 1:3: Cannot query field "nonsense"`,
		profileOf(`"query": "query B { __typename } query C { __typename }"`):                                                       "operation A: the document contains 2 operations",
		profileOf(`"query": "subscription { orderStatusChanged { id } }"`):                                                          "operation A: a subscription has a price per event",
		profileOf(`"document": "Alice"`):                                                                                            "operation A: it names a trusted document, but ORDERGRAPH_DOCUMENTS is not set",
		profileOf(`"query": "mutation { confirmOrder(input: {orderId: \"01HVMK3P2Q0000000000000001\"}) { userErrors { code } } }"`): "operation A: the mutation was rejected, or changed nothing",
		profileOf(aliceOperation + `, "setup": ["{"]`):                                                                              "operation A: setup: it failed on the dataset",
	} {
		run(t, "price "+writeTempFile(t, profile)).checkFailed(t, 1, message)
	}
	fine := writeTempFile(t, profileOf(aliceOperation))
	run(t, "price "+writeTempFile(t, profileOf(`"document": "Bob"`)), "ORDERGRAPH_DOCUMENTS="+writeTempFile(t, fineManifest)).checkFailed(t, 1, `has no document "Bob"`)
	run(t, "price /nowhere/profile.json").checkFailed(t, 1, "no such file")
	run(t, "price -dataset /nowhere/dataset.json "+fine).checkFailed(t, 1, "/nowhere/dataset.json")
	run(t, "price "+fine, "ORDERGRAPH_PRICES="+fine).checkFailed(t, 1, "ORDERGRAPH_PRICES: "+fine+" is not a price file")
	run(t, "price").checkFailed(t, 2, "price: the argument PROFILE is missing")
	run(t, "price a b").checkFailed(t, 2, `unexpected argument "b"`)
}

// The server rejects an invalid price file when it starts. With a valid file, the explain output
// contains the prices of that file.
func TestServePrices(t *testing.T) {
	run(t, "serve -addr 127.0.0.1:0", "ORDERGRAPH_PRICES="+os.DevNull).checkFailed(t, 1, "ORDERGRAPH_PRICES: "+os.DevNull+" is not a price file")
	prices := writeTempFile(t, doubledPrices)
	for _, c := range []struct{ variable, want string }{{"", "0.0625"}, {"ORDERGRAPH_PRICES=" + prices, "0.125"}} {
		_, url := serve(t, "-addr 127.0.0.1:0", c.variable)
		r, err := http.NewRequest(http.MethodPost, url+server.PathGraphQL, strings.NewReader(`{"query":"{ customer(id: \"cust_01\") { name } }"}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set(server.ExplainHeader, "true")
		if _, answer := readResponse(t)(http.DefaultClient.Do(r)); !strings.Contains(answer, `"readUnits":0.5,"writeUnits":0,"dollarsPerMillion":`+c.want+`}`) {
			t.Errorf("%s: the response is %s", c.variable, answer)
		}
	}
}
