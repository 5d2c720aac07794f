package cli_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// serveUntil runs a server while use is called, and waits for its end.
func serveUntil(t *testing.T, line string, use func(c *command, url string)) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	c := start(ctx, line)
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
	run(t, "seed -data "+a).checkFailed(t, 1, "table create")
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

func TestInvalidFiles(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text.db")
	if err := os.WriteFile(text, []byte(strings.Repeat("not a store\n", 2000)), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, "-data "+text).checkFailed(t, 1, text, "damaged or is not a store")
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
