package cli_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// serveUntil runs a server while use is called, and waits for its end.
func serveUntil(t *testing.T, line string, use func(c *command, url string), variables ...string) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	c := start(ctx, line, variables...)
	select {
	case addr := <-c.listening:
		use(c, "http://"+addr.String())
		stop()
		<-c.done
	case <-c.done:
	}
	if c.status != 0 || c.stderr.String() != "" {
		t.Errorf("%s ended with status %d and printed %q", line, c.status, c.stderr.String())
	}
}

// postQuery returns the body of the response to a GraphQL query.
func postQuery(t *testing.T, url, query string) string {
	t.Helper()
	_, body := readResponse(t)(http.Post(url+"/graphql", "application/json", strings.NewReader(`{"query":`+strconv.Quote(query)+`}`)))
	return body
}

// The embedded store in a file keeps its records when the server stops.
func TestServeFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "orders.db")
	const orders = `{ customer(id: "cust_01") { orderCount } }`
	serveUntil(t, "-addr 127.0.0.1:0 -sample -data "+file, func(c *command, url string) {
		if !strings.Contains(c.stdout.String(), "file "+file) {
			t.Errorf("the welcome does not name the file: %s", c.stdout.String())
		}
		if got := postQuery(t, url, orders); !strings.Contains(got, `"orderCount":2`) {
			t.Errorf("with the sample data: %s", got)
		}
		got := postQuery(t, url, `mutation { placeOrder(input: {customerId: "cust_01", items: [{sku: "prod_100", quantity: 1}], idempotencyKey: "k"}) { order { id } userErrors { message } } }`)
		if !strings.Contains(got, `"userErrors":[]`) {
			t.Errorf("placeOrder: %s", got)
		}
		run(t, "check -data "+file).checkFailed(t, 3, file, "another process has opened the file")
	})
	serveUntil(t, "serve -addr 127.0.0.1:0 -sample -data "+file, func(_ *command, url string) {
		if got := postQuery(t, url, orders); !strings.Contains(got, `"orderCount":3`) {
			t.Errorf("after a restart: %s", got)
		}
	})
	run(t, "check -data "+file).checkSucceeded(t, "clean\n")
}

func TestServeNewFileWithoutSample(t *testing.T) {
	serveUntil(t, "-addr 127.0.0.1:0 -data "+filepath.Join(t.TempDir(), "empty.db"), func(_ *command, url string) {
		if got := postQuery(t, url, `{ customers { nodes { id } } }`); !strings.Contains(got, `"nodes":[]`) {
			t.Errorf("a new file is not empty: %s", got)
		}
	})
}

// The commands on records work on a file, and an export of one file is the content of another.
func TestCommandsOnFile(t *testing.T) {
	dir := t.TempDir()
	a, b, exported := filepath.Join(dir, "a.db"), filepath.Join(dir, "b.db"), filepath.Join(dir, "records.jsonl")
	run(t, "table create -data "+a).checkSucceeded(t, "is ready")
	run(t, "table describe", "ORDERGRAPH_DATA="+a).checkSucceeded(t, "fits     yes", "stream   on", "expiry   on")
	run(t, "seed", "ORDERGRAPH_DATA="+a).checkSucceeded(t, "Loaded into table")
	run(t, "export -data "+a+" "+exported).checkSucceeded(t, "Exported")
	run(t, "table -data "+b+" create").checkSucceeded(t)
	run(t, "import -data "+b+" "+exported).checkSucceeded(t)
	run(t, "check -data "+b).checkSucceeded(t, "clean\n")
	serveUntil(t, "-addr 127.0.0.1:0 -data "+b, func(_ *command, url string) {
		if got := postQuery(t, url, firstQuery); !strings.Contains(got, "Alice Chen") {
			t.Errorf("the imported file: %s", got)
		}
	})
}

// A command that only reads records never creates a file. It names the missing file, and the command
// that creates it. A command that writes records creates the file and the table.
func TestMissingFile(t *testing.T) {
	dir := t.TempDir()
	missing, source, exported := filepath.Join(dir, "typo.db"), filepath.Join(dir, "a.db"), filepath.Join(dir, "records.jsonl")
	run(t, "seed -data "+source).checkSucceeded(t, "Loaded into table")
	run(t, "export -data "+source+" "+exported).checkSucceeded(t, "Exported")
	for line, status := range map[string]int{
		"check": 3, "check -repair": 3, "export " + filepath.Join(dir, "other.jsonl"): 1, "table describe": 1,
		"import -dry-run " + exported: 1, "import " + filepath.Join(dir, "none.jsonl"): 1,
	} {
		run(t, line, "ORDERGRAPH_DATA="+missing).checkFailed(t, status, missing, "does not exist", "ordergraph table create -data "+missing)
		if _, err := os.Stat(missing); err == nil {
			t.Errorf("%s created the file", line)
		}
	}
	run(t, "import -data "+missing+" "+exported).checkSucceeded(t, "Imported into table")
	run(t, "check -data "+missing).checkSucceeded(t, "clean\n")
	// The file exists, but has no table with this name.
	run(t, "import -data "+missing+" "+exported, "ORDERGRAPH_TABLE=other").checkFailed(t, 1, "table other does not exist", "ordergraph table create -data "+missing)
}

func TestInvalidFiles(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text.db")
	if err := os.WriteFile(text, []byte(strings.Repeat("not a store\n", 2000)), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, "-data "+text).checkFailed(t, 1, text, "the file is damaged")
	run(t, "-data "+filepath.Join(dir, "missing", "a.db")).checkFailed(t, 1, "no such file or directory")
	run(t, "-data "+text, "ORDERGRAPH_STORE=dynamodb", "ORDERGRAPH_AUTH=none").checkFailed(t, 1, "ORDERGRAPH_DATA", "ORDERGRAPH_STORE")
}

// local serves the store as a DynamoDB endpoint. The AWS SDK verifies the checksums of the
// responses.
func TestLocal(t *testing.T) {
	file := filepath.Join(t.TempDir(), "orders.db")
	run(t, "table create -data "+file).checkSucceeded(t)
	serveUntil(t, "local -addr 127.0.0.1:0 -data "+file, func(c *command, url string) {
		db := dynamodb.New(dynamodb.Options{
			BaseEndpoint: &url, Region: "local", Credentials: credentials.NewStaticCredentialsProvider("any", "any", ""),
		})
		out, err := db.ListTables(t.Context(), &dynamodb.ListTablesInput{})
		if err != nil || len(out.TableNames) != 1 || out.TableNames[0] != "ordergraph" {
			t.Errorf("ListTables: %v, %v", out, err)
		}
		if _, err := db.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String("missing")}); err == nil || !strings.Contains(err.Error(), "Table: missing not found") {
			t.Errorf("DescribeTable of a missing table: %v", err)
		}
		if !strings.Contains(c.stdout.String(), url) || !strings.Contains(c.stdout.String(), "file "+file) {
			t.Errorf("the command printed %q", c.stdout.String())
		}
		run(t, "local -addr "+strings.TrimPrefix(url, "http://")).checkFailed(t, 1, "in use by another program", "-addr")
	})
	run(t, "local -addr nowhere").checkFailed(t, 2, "-addr", "nowhere")
}

// Programs and containers can use the endpoint of local, but websites cannot.
func TestLocalRefusesWebsites(t *testing.T) {
	serveUntil(t, "local -addr 127.0.0.1:0", func(_ *command, url string) {
		port := url[strings.LastIndex(url, ":"):]
		for name, c := range map[string]struct {
			host    string
			headers []string
			want    int
		}{
			"a program":         {"127.0.0.1" + port, nil, 200},
			"localhost":         {"localhost" + port, nil, 200},
			"a container":       {"dynamodb:8000", nil, 200},
			"the docker host":   {"host.docker.internal" + port, nil, 200},
			"a setting":         {"orders.example.com", nil, 200},
			"NoSQL Workbench":   {"localhost" + port, []string{"Origin", "file://", "Sec-Fetch-Site", "cross-site"}, 200},
			"the same origin":   {"localhost" + port, []string{"Origin", "http://localhost" + port, "Sec-Fetch-Site", "same-origin"}, 200},
			"fetch of Node.js":  {"localhost" + port, []string{"Sec-Fetch-Mode", "cors"}, 200},
			"DNS rebinding":     {"evil.example" + port, []string{"Origin", "http://evil.example" + port, "Sec-Fetch-Site", "same-origin"}, 403},
			"another website":   {"localhost" + port, []string{"Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site"}, 403},
			"another port":      {"localhost" + port, []string{"Origin", "http://localhost:3000", "Sec-Fetch-Site", "same-site"}, 403},
			"a sandboxed frame": {"localhost" + port, []string{"Origin", "null"}, 403},
			"no origin":         {"localhost" + port, []string{"Sec-Fetch-Site", "cross-site"}, 403},
		} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			r.Host = c.host
			r.Header.Set("X-Amz-Target", "DynamoDB_20120810.ListTables")
			for i := 0; i < len(c.headers); i += 2 {
				r.Header.Set(c.headers[i], c.headers[i+1])
			}
			status, body := readResponse(t)(http.DefaultClient.Do(r))
			if status != c.want || strings.Contains(body, "AccessDeniedException") != (status == http.StatusForbidden) {
				t.Errorf("%s: status %d, %s, want %d", name, status, body, c.want)
			}
		}
	}, "ORDERGRAPH_ALLOWED_HOSTS=other.example,orders.example.com")
}

// With -ttl-interval, expired items are soon deleted.
func TestLocalDeletesExpiredItems(t *testing.T) {
	run(t, "local -ttl-interval 0s").checkFailed(t, 2, "-ttl-interval", "positive")
	serveUntil(t, "local -addr 127.0.0.1:0 -ttl-interval 1ms", func(_ *command, url string) {
		db := dynamodb.New(dynamodb.Options{BaseEndpoint: &url, Region: "local", Credentials: credentials.NewStaticCredentialsProvider("any", "any", "")})
		table := aws.String("items")
		if _, err := db.CreateTable(t.Context(), &dynamodb.CreateTableInput{TableName: table, BillingMode: types.BillingModePayPerRequest,
			AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("pk"), AttributeType: types.ScalarAttributeTypeS}},
			KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: types.KeyTypeHash}}}); err != nil {
			t.Fatal(err)
		}
		if _, err := db.UpdateTimeToLive(t.Context(), &dynamodb.UpdateTimeToLiveInput{TableName: table,
			TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String("ends"), Enabled: aws.Bool(true)}}); err != nil {
			t.Fatal(err)
		}
		if _, err := db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: table, Item: map[string]types.AttributeValue{
			"pk": &types.AttributeValueMemberS{Value: "a"}, "ends": &types.AttributeValueMemberN{Value: fmt.Sprint(time.Now().Unix() - 1)}}}); err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(time.Minute); ; {
			out, err := db.Scan(t.Context(), &dynamodb.ScanInput{TableName: table})
			if err != nil {
				t.Fatal(err)
			}
			if len(out.Items) == 0 {
				break
			}
			if time.Now().After(deadline) {
				t.Fatal("after a minute, the expired item is still in the table")
			}
		}
	})
}
