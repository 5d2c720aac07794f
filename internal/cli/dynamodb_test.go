package cli_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/embedded"
	"github.com/ordergraph/ordergraph/internal/test/dynamolocal"
	"github.com/ordergraph/ordergraph/internal/test/longtest"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

const (
	useDynamoDB = "ORDERGRAPH_STORE=dynamodb"
	noAuth      = "ORDERGRAPH_AUTH=none"
)

// setAWSEnvironment sets the given AWS variables, NAME=value, and clears the other AWS variables.
func setAWSEnvironment(t *testing.T, settings ...string) {
	t.Helper()
	nowhere := filepath.Join(t.TempDir(), "nowhere")
	for _, s := range append([]string{
		"AWS_REGION=", "AWS_DEFAULT_REGION=", "AWS_PROFILE=", "AWS_ACCESS_KEY_ID=", "AWS_SECRET_ACCESS_KEY=", "AWS_SESSION_TOKEN=",
		"AWS_ENDPOINT_URL=", "AWS_ENDPOINT_URL_DYNAMODB=", "AWS_ENDPOINT_URL_DYNAMODB_STREAMS=", "AWS_WEB_IDENTITY_TOKEN_FILE=", "AWS_ROLE_ARN=",
		"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI=", "AWS_CONTAINER_CREDENTIALS_FULL_URI=",
		"AWS_EC2_METADATA_DISABLED=true", "AWS_MAX_ATTEMPTS=1", "AWS_CONFIG_FILE=" + nowhere, "AWS_SHARED_CREDENTIALS_FILE=" + nowhere,
	}, settings...) {
		name, value, _ := strings.Cut(s, "=")
		t.Setenv(name, value)
	}
}

// setEndpoint sets AWS credentials and the endpoint of DynamoDB.
func setEndpoint(t *testing.T, url string) {
	t.Helper()
	setAWSEnvironment(t, append(dynamolocal.Environment(), "AWS_ENDPOINT_URL_DYNAMODB="+url)...)
}

// embeddedEndpoint starts the embedded store as a DynamoDB endpoint and returns its URL. It runs
// until the test process ends.
var embeddedEndpoint = sync.OnceValue(func() string { return httptest.NewServer(embedded.New()).URL })

// endpoint returns the URL of DynamoDB: the embedded store, or DynamoDB Local in the long test run.
func endpoint(t *testing.T) string {
	t.Helper()
	if longtest.Enabled() {
		return dynamolocal.Shared(t).Endpoint()
	}
	return embeddedEndpoint()
}

// newTestTable returns a client of the endpoint, a table name for this test, and the variables of
// commands on that table.
func newTestTable(t *testing.T) (db *dynamodb.Client, table string, variables []string) {
	t.Helper()
	url := endpoint(t)
	setEndpoint(t, url)
	db, table = dynamolocal.ClientOf(url), strings.ReplaceAll(t.Name(), "/", ".")
	t.Cleanup(func() { deleteTable(t, db, table) })
	return db, table, []string{useDynamoDB, noAuth, "ORDERGRAPH_TABLE=" + table}
}

// deleteTable deletes a table, if the test has created it.
func deleteTable(t *testing.T, db *dynamodb.Client, table string) {
	t.Helper()
	_, _ = db.DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: &table})
}

// tableRecords returns all records of a table by their keys.
func tableRecords(t *testing.T, db *dynamodb.Client, table string) map[string]map[string]types.AttributeValue {
	t.Helper()
	records := map[string]map[string]types.AttributeValue{}
	pages := dynamodb.NewScanPaginator(db, &dynamodb.ScanInput{TableName: &table})
	for pages.HasMorePages() {
		page, err := pages.NextPage(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range page.Items {
			if item["entity"] != nil && item["entity"].(*types.AttributeValueMemberS).Value == "layout" {
				continue // it belongs to the table, not to its records
			}
			records[fmt.Sprint(item["pk"].(*types.AttributeValueMemberS).Value, " ", item["sk"].(*types.AttributeValueMemberS).Value)] = item
		}
	}
	return records
}

// The steps of a new user, from the first error to the first query.
func TestFirstSteps(t *testing.T) {
	db, table, variables := newTestTable(t)
	for _, line := range []string{"-addr 127.0.0.1:0", "table describe", "seed"} {
		run(t, line, variables...).checkFailed(t, 1, "table", "does not exist", "ordergraph table create", "ORDERGRAPH_TABLE")
	}
	run(t, "table create", variables...).checkSucceeded(t, table, "ordergraph seed")
	run(t, "table describe", variables...).checkSucceeded(t, table, "ACTIVE", "fits     yes")

	dataset, n := storetest.SampleDataset(t)
	run(t, "seed", variables...).checkSucceeded(t, fmt.Sprintf("%d orders, %d customers", len(dataset.Orders), len(dataset.Customers)), table, fmt.Sprint(n, " records"))
	once := tableRecords(t, db, table)
	if len(once) != n {
		t.Errorf("the table has %d records, want %d", len(once), n)
	}
	// Counters that stay the same are not written again.
	run(t, "seed", variables...).checkSucceeded(t, fmt.Sprintf("%d orders, %d customers", len(dataset.Orders), len(dataset.Customers)))
	if twice := tableRecords(t, db, table); !reflect.DeepEqual(once, twice) {
		t.Error("seeding a second time changed the table")
	}

	c, url := serve(t, "-addr 127.0.0.1:0", variables...)
	askFirstQuery(t, url)
	if stdout := c.stdout.String(); !strings.Contains(stdout, "DynamoDB table "+table) || strings.Contains(stdout, "in memory") {
		t.Errorf("stdout does not name the store: %s", stdout)
	}
	if status, body := get(t, url+"/readyz"); status != http.StatusOK {
		t.Errorf("readyz: status %d, body %s", status, body)
	}
}

func TestNewTableCountsOrders(t *testing.T) {
	_, _, variables := newTestTable(t)
	run(t, "table create", variables...).checkSucceeded(t)
	_, url := serve(t, "-addr 127.0.0.1:0", variables...)
	if _, answer := post(t, url, `{"query":"{ orderCounts { count } }"}`); answer != `{"data":{"orderCounts":[{"count":0},{"count":0},{"count":0},{"count":0},{"count":0}]}}` {
		t.Errorf("orderCounts is %s", answer)
	}
}

func TestCreateTableTwice(t *testing.T) {
	_, table, variables := newTestTable(t)
	run(t, "table create", variables...).checkSucceeded(t, table, "ready")
	run(t, "table create", variables...).checkSucceeded(t, table, "already exists", "matches")
}

// A table without a stream is served, the log reports the missing stream, and `table create`
// enables it.
func TestTableWithoutStream(t *testing.T) {
	db, table, variables := newTestTable(t)
	run(t, "table create", variables...).checkSucceeded(t, "ready")
	run(t, "table describe", variables...).checkSucceeded(t, "stream   on")
	set := func(on bool, view types.StreamViewType) {
		t.Helper()
		_, err := db.UpdateTable(context.Background(), &dynamodb.UpdateTableInput{TableName: &table, StreamSpecification: &types.StreamSpecification{StreamEnabled: &on, StreamViewType: view}})
		if err != nil {
			t.Fatal(err)
		}
	}
	set(false, "")
	run(t, "table describe", variables...).checkSucceeded(t, "stream   off", "ordergraph table create")
	ctx, stop := context.WithCancel(context.Background())
	c := start(ctx, "-addr 127.0.0.1:0", variables...)
	addr := <-c.listening
	if status, body := get(t, "http://"+addr.String()+"/readyz"); status != http.StatusOK {
		t.Errorf("readyz: status %d, body %s", status, body)
	}
	stop()
	<-c.done
	if log := c.stderr.String(); !strings.Contains(log, "subscriptions are not served") || !strings.Contains(log, "ordergraph table create") {
		t.Errorf("the log does not name the command: %s", log)
	}
	set(true, types.StreamViewTypeKeysOnly)
	run(t, "table describe", variables...).checkSucceeded(t, "stream   off", "KEYS_ONLY")
	run(t, "table create", variables...).checkFailed(t, 1, "KEYS_ONLY", "StreamEnabled=false", table)
	set(false, "")
	run(t, "table create", variables...).checkSucceeded(t, "already exists", "stream is now enabled")
	run(t, "table describe", variables...).checkSucceeded(t, "stream   on")
}

// Streams are read from the endpoint of the tables, unless they have their own.
func TestInvalidStreamEndpoint(t *testing.T) {
	setEndpoint(t, "http://127.0.0.1:1")
	t.Setenv("AWS_ENDPOINT_URL_DYNAMODB_STREAMS", "nowhere")
	run(t, "table describe", useDynamoDB).checkFailed(t, 1, "AWS_ENDPOINT_URL_DYNAMODB_STREAMS", "nowhere", "http://")
}

func TestMismatchedTables(t *testing.T) {
	key := func(pk, sk string) []types.KeySchemaElement {
		return []types.KeySchemaElement{{AttributeName: &pk, KeyType: types.KeyTypeHash}, {AttributeName: &sk, KeyType: types.KeyTypeRange}}
	}
	index := func(name string, schema []types.KeySchemaElement, projection types.ProjectionType) []types.GlobalSecondaryIndex {
		return []types.GlobalSecondaryIndex{{IndexName: &name, KeySchema: schema, Projection: &types.Projection{ProjectionType: projection}}}
	}
	matching := index("GSI1", key("gsi1pk", "gsi1sk"), types.ProjectionTypeAll)
	for _, c := range []struct {
		name string
		key  []types.KeySchemaElement
		gsi  []types.GlobalSecondaryIndex
		// numbers are the key attributes of type N. The others have type S.
		numbers string
		problem []string
	}{
		{"other.keys", key("id", "range"), matching, "", []string{"pk (HASH), sk (RANGE)", "id (HASH), range (RANGE)"}},
		{"no.sort.key", key("pk", "sk")[:1], matching, "", []string{"pk (HASH), sk (RANGE)", "has pk (HASH)"}},
		{"no.index", key("pk", "sk"), nil, "", []string{"index GSI1", "no such index"}},
		{"index.of.another.name", key("pk", "sk"), index("byStatus", key("gsi1pk", "gsi1sk"), types.ProjectionTypeAll), "", []string{"index GSI1", "no such index"}},
		{"index.of.other.keys", key("pk", "sk"), index("GSI1", key("status", "id"), types.ProjectionTypeAll), "", []string{"index GSI1 key", "gsi1pk (HASH), gsi1sk (RANGE)", "status (HASH), id (RANGE)"}},
		{"index.of.keys.only", key("pk", "sk"), index("GSI1", key("gsi1pk", "gsi1sk"), types.ProjectionTypeKeysOnly), "", []string{"projection", "ALL", "KEYS_ONLY"}},
		{"number.for.a.key", key("pk", "sk"), matching, "sk gsi1pk", []string{"type of sk", "type of gsi1pk", "expected S", "has N"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			db, table, variables := newTestTable(t)
			names := map[string]bool{}
			in := &dynamodb.CreateTableInput{TableName: &table, KeySchema: c.key, GlobalSecondaryIndexes: c.gsi, BillingMode: types.BillingModePayPerRequest}
			schemas := c.key
			for _, g := range c.gsi {
				schemas = append(schemas[:len(schemas):len(schemas)], g.KeySchema...)
			}
			for _, k := range schemas {
				kind := types.ScalarAttributeTypeS
				if strings.Contains(" "+c.numbers+" ", " "+*k.AttributeName+" ") {
					kind = types.ScalarAttributeTypeN
				}
				if !names[*k.AttributeName] {
					in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{AttributeName: k.AttributeName, AttributeType: kind})
				}
				names[*k.AttributeName] = true
			}
			if _, err := db.CreateTable(context.Background(), in); err != nil {
				t.Fatal(err)
			}
			problem := append(slices.Clone(c.problem), "does not match Ordergraph's data model")
			for _, line := range []string{"-addr 127.0.0.1:0", "seed", "table create"} {
				run(t, line, variables...).checkFailed(t, 1, problem...)
			}
			described := run(t, "table describe", variables...)
			if stdout := described.stdout.String(); described.status != 1 || !strings.Contains(stdout, "fits     no") || !strings.Contains(stdout, table) {
				t.Errorf("describe: exit %d, stdout %s", described.status, stdout)
			}
			for _, part := range problem {
				if !strings.Contains(described.stderr.String(), part) {
					t.Errorf("describe does not contain %q: %s", part, described.stderr.String())
				}
			}
			if out, err := db.Scan(context.Background(), &dynamodb.ScanInput{TableName: aws.String(table)}); err != nil || len(out.Items) > 0 {
				t.Errorf("seed wrote %d records to it, %v", len(out.Items), err)
			}
		})
	}
}

const smallDataset = `{
 "products": [{"sku": "mug", "name": "Mug", "category": "Kitchen", "unitPrice": "4.50", "currency": "EUR", "inventory": {}}],
 "customers": [{"id": "c9", "name": "Carl", "email": "carl@example.com", "createdAt": "2024-04-01T09:00:00Z"}],
 "orders": [{"id": "01HVMK3P2Q0000000000000001", "customerId": "c9", "status": "delivered", "currency": "EUR", "placedAt": "2024-04-16T23:15:41.783Z",
  "items": [{"sku": "mug", "name": "Mug", "quantity": 2, "unitPrice": "4.00"}]}]
}`

// The number of shards changes while a server runs. Later commands and servers follow the table, and
// ignore their setting.
func TestTableShards(t *testing.T) {
	db, table, variables := newTestTable(t)
	run(t, "table create", variables...).checkSucceeded(t)
	for line, message := range map[string]string{"table shards": "the number of shards", "table shards 0": `"0" is not`, "table shards 129": "from 1 to 128", "table shards many": `"many" is not`, "table time-zone": "the name of a time zone", "table time-zone Mars": `"Mars" is not the name`} {
		run(t, line, variables...).checkFailed(t, 2, message)
	}
	storetest.DeleteLayout(t, db, table)
	run(t, "seed", variables...).checkSucceeded(t)
	run(t, "table shards 4", append(slices.Clone(variables), "ORDERGRAPH_SHARDS=2")...).checkFailed(t, 1, "ORDERGRAPH_SHARDS=2")
	run(t, "table shards 1", variables...).checkSucceeded(t, "already has this number of shards: 1.")
	run(t, "table shards 4", variables...).checkSucceeded(t, "table "+table, "over this number of shards: 4.")
	run(t, "table time-zone Europe/Berlin", variables...).checkSucceeded(t, "use the time zone Europe/Berlin. All its days")
	run(t, "table describe", variables...).checkSucceeded(t, "1 shard (Europe/Berlin), 4 shards from ", "Z (Europe/Berlin)")
	other := append(slices.Clone(variables), "ORDERGRAPH_SHARDS=2")
	run(t, "table describe", other...).checkSucceeded(t, "shards   1 shard (Europe/Berlin), 4 shards from 20", "fits     yes")
	run(t, "check", other...).checkSucceeded(t, "clean")
	_, url := serve(t, "-addr 127.0.0.1:0", variables...)
	if found := postQuery(t, url, `{ orders(first: 100) { nodes { id } } }`); strings.Count(found, `"id"`) != 9 {
		t.Errorf("the server lists %s", found)
	}
	ctx, stop := context.WithCancel(t.Context())
	server := start(ctx, "-addr 127.0.0.1:0", other...)
	<-server.listening
	stop()
	<-server.done
	if text := server.stderr.String(); !strings.Contains(text, `"ORDERGRAPH_SHARDS":2,"shards":1`) {
		t.Errorf("the server does not report its other setting: %s", text)
	}
	file := filepath.Join(t.TempDir(), "shop.jsonl")
	run(t, "export "+file, variables...).checkSucceeded(t)
	second := []string{useDynamoDB, noAuth, "ORDERGRAPH_TABLE=" + table + ".second", "ORDERGRAPH_SHARDS=3"}
	run(t, "table create", second...).checkSucceeded(t)
	run(t, "import "+file, second...).checkSucceeded(t)
	run(t, "table describe", second...).checkSucceeded(t, "shards   3 shards\n", "fits     yes")
}

// The commands name records whose keys Ordergraph does not find, and how to correct them.
func TestKeysOfOtherSoftware(t *testing.T) {
	db, table, variables := newTestTable(t)
	run(t, "table create", variables...).checkSucceeded(t)
	put := func(pk, sk string) {
		record := map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: pk}, "sk": &types.AttributeValueMemberS{Value: sk}}
		for name, value := range map[string]string{"customerId": "c1", "name": "Ann", "status": "pending", "createdAt": "2024-04-16T23:15:41.000Z"} {
			record[name] = &types.AttributeValueMemberS{Value: value}
		}
		record["total"] = &types.AttributeValueMemberN{Value: "0"}
		if _, err := db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: record}); err != nil {
			t.Fatal(err)
		}
	}
	put("cart#1", "#metadata")
	run(t, "table describe", variables...).checkSucceeded(t, "fits     yes")
	put("customer#c1", "#metadata")
	put("customer#c2", "#metadata")
	put("ORDER#01HVMK3P2Q0000000000000001", "item#p1")
	put("ORDER#order-1", "#METADATA")
	put("ORDER#01hvmk3p2q0000000000000001", "#METADATA")
	d := run(t, "table describe", variables...)
	for _, part := range []string{
		"keys     customer#c", " #metadata and 1 more: the key is in the wrong case", `the right key is CUSTOMER#{customerId} #METADATA, in ElectroDB with casing: "none"`,
		"item#p1: the key is in the wrong case", "ORDER#order-1 #METADATA: the order's ID has 7 characters: an order ID is a ULID", "01hvmk3p2q0000000000000001 #METADATA: the order's ID contains letters in lower case; write the order again with a ULID", "fits     no\n",
	} {
		if d.status != 1 || !strings.Contains(d.stdout.String(), part) {
			t.Errorf("exit %d, %s%s, want %s", d.status, d.stdout.String(), d.stderr.String(), part)
		}
	}
	c := run(t, "check", variables...)
	for _, part := range []string{"key-case  customer#c1 #metadata: the key is in the wrong case", "key-case  ORDER#01HVMK3P2Q0000000000000001 item#p1: ", "\nkey-case              3  ", `invalid-value  ORDER#order-1 #METADATA: attribute "orderId" has 7 characters`} {
		if c.status != 1 || !strings.Contains(c.stdout.String(), part) {
			t.Errorf("exit %d, %s%s, want %s", c.status, c.stdout.String(), c.stderr.String(), part)
		}
	}
}

// With a wrong number of shards, the lists would seem to be empty. This is possible in a table that
// stores no layout.
func TestWrongNumberOfShards(t *testing.T) {
	for _, c := range []struct{ written, read string }{{"4", "1"}, {"1", "4"}, {"4", "2"}} {
		t.Run(c.written+"_read_as_"+c.read, func(t *testing.T) {
			db, table, variables := newTestTable(t)
			right := append(slices.Clone(variables), "ORDERGRAPH_SHARDS="+c.written)
			wrong := append(slices.Clone(variables), "ORDERGRAPH_SHARDS="+c.read)
			run(t, "table create", right...).checkSucceeded(t)
			run(t, "seed", right...).checkSucceeded(t)
			storetest.DeleteLayout(t, db, table)
			for _, line := range []string{"-addr 127.0.0.1:0", "seed", "table create", "import /nowhere/shop.jsonl"} {
				begin := "table " + table + " was written with another number of shards than ORDERGRAPH_SHARDS=" + c.read + " (its index has the keys CUSTOMER"
				run(t, line, wrong...).checkFailed(t, 1, begin, ": set ORDERGRAPH_SHARDS to the table's number of shards")
			}
			if d := run(t, "table describe", wrong...); d.status != 1 || !strings.Contains(d.stdout.String(), "fits     no") || !strings.Contains(d.stderr.String(), "ORDERGRAPH_SHARDS="+c.read+" (") {
				t.Errorf("exit %d, %s%s", d.status, d.stdout.String(), d.stderr.String())
			}
			run(t, "table describe", right...).checkSucceeded(t, "fits     yes")
		})
	}
}

func TestSeedFile(t *testing.T) {
	db, table, variables := newTestTable(t)
	run(t, "table create", variables...).checkSucceeded(t)
	dataset := filepath.Join(t.TempDir(), "dataset.json")
	for name, text := range map[string]string{
		"products[0].sku":                  strings.Replace(smallDataset, `"sku": "mug"`, `"sku": "m#g"`, 1),
		"order 01HVMK3P2Q0000000000000001": strings.Replace(smallDataset, `"customerId": "c9"`, `"customerId": "c8"`, 1),
		"EOF":                              smallDataset[:100],
	} {
		if err := os.WriteFile(dataset, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		run(t, "seed "+dataset, variables...).checkFailed(t, 1, name)
		if records := tableRecords(t, db, table); len(records) > 0 {
			t.Errorf("seeding an invalid file wrote %d records", len(records))
		}
	}
	if err := os.WriteFile(dataset, []byte(smallDataset), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, "seed "+dataset, variables...).checkSucceeded(t, "1 orders, 1 customers", table)
	_, url := serve(t, "-addr 127.0.0.1:0", variables...)
	const query = "?query={order(id:%2201HVMK3P2Q0000000000000001%22){customer{name}total{amount,currencyCode}}}"
	if _, body := get(t, url+"/graphql"+query); body != `{"data":{"order":{"customer":{"name":"Carl"},"total":{"amount":"8.00","currencyCode":"EUR"}}}}` {
		t.Errorf("the order from the seeded file is %s", body)
	}
}

// allCommands are commands whose first step is a request to DynamoDB.
var allCommands = []string{"-addr 127.0.0.1:0", "table create", "table describe", "seed", "seed -generate", "export /nowhere/shop.jsonl", "import /nowhere/shop.jsonl"}

func TestNoRegion(t *testing.T) {
	setAWSEnvironment(t)
	for _, line := range allCommands {
		run(t, line, useDynamoDB, noAuth).checkFailed(t, 1, "AWS_REGION", "us-east-1")
	}
}

func TestNoCredentials(t *testing.T) {
	setAWSEnvironment(t, "AWS_REGION=us-east-1")
	for _, line := range allCommands {
		run(t, line, useDynamoDB, noAuth).checkFailed(t, 1, "credentials", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
	}
}

func TestUnknownProfile(t *testing.T) {
	setAWSEnvironment(t, "AWS_REGION=us-east-1", "AWS_PROFILE=nobodys")
	run(t, "table describe", useDynamoDB).checkFailed(t, 1, "nobodys")
}

func TestUnreachableEndpoint(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close() // the port is now unused
	setEndpoint(t, "http://"+l.Addr().String())
	for _, line := range allCommands {
		run(t, line, useDynamoDB, noAuth).checkFailed(t, 1, "cannot be reached", "AWS_ENDPOINT_URL_DYNAMODB", l.Addr().String())
	}
}

// newRejectingEndpoint starts an endpoint that rejects all credentials, and stores the last
// request's.
func newRejectingEndpoint(t *testing.T) (url string, credentials *atomic.Value) {
	t.Helper()
	credentials = &atomic.Value{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		credentials.Store(r.Header.Get("Authorization"))
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"__type":"com.amazon.coral.service#UnrecognizedClientException","message":"The security token included in the request is invalid."}`)
	}))
	t.Cleanup(s.Close)
	return s.URL, credentials
}

func TestRefusedCredentials(t *testing.T) {
	url, _ := newRejectingEndpoint(t)
	setEndpoint(t, url)
	for _, line := range allCommands {
		run(t, line, useDynamoDB, noAuth).checkFailed(t, 1, "rejects the credentials", "AWS_ACCESS_KEY_ID", "security token")
	}
}

// The shared AWS configuration is read, as in other AWS software.
func TestProfile(t *testing.T) {
	url, credentials := newRejectingEndpoint(t)
	file := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(file, []byte("[profile shop]\nregion = eu-north-1\naws_access_key_id = mine\naws_secret_access_key = b\nendpoint_url = "+url+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	setAWSEnvironment(t, "AWS_PROFILE=shop", "AWS_CONFIG_FILE="+file)
	run(t, "table describe", useDynamoDB).checkFailed(t, 1, "rejects the credentials")
	if used, _ := credentials.Load().(string); !strings.Contains(used, "Credential=mine/") || !strings.Contains(used, "/eu-north-1/dynamodb/") {
		t.Errorf("the request was signed by %q, want the profile's key and region", used)
	}
}

// The SDK writes nothing to standard error besides the command's message.
func TestSDKWritesNothing(t *testing.T) {
	_, _, variables := newTestTable(t)
	capture, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	stderr := os.Stderr
	os.Stderr = capture
	c := run(t, "table describe", variables...)
	os.Stderr = stderr
	c.checkFailed(t, 1, "does not exist")
	if err := capture.Close(); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(capture.Name()); err != nil || len(text) > 0 {
		t.Errorf("the process wrote to its stderr: %s, %v", text, err)
	}
}
