package cli_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ordergraph/ordergraph/internal/server"
	"github.com/ordergraph/ordergraph/internal/test/dynamolocal"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

func post(t *testing.T, url, body string) (int, string) {
	t.Helper()
	return readResponse(t)(http.Post(url+server.PathGraphQL, "application/json", strings.NewReader(body)))
}

// findInFile returns the first group of a pattern in a file of the repository.
func findInFile(t *testing.T, file, pattern string) string {
	t.Helper()
	text, err := os.ReadFile("../../" + file)
	if err != nil {
		t.Fatal(err)
	}
	match := regexp.MustCompile(pattern).FindSubmatch(text)
	if match == nil {
		t.Fatalf("%s has no %s", file, pattern)
	}
	return string(match[1])
}

// The README's mutation and GraphiQL's example have the same idempotency key, so both return the
// same order.
func TestReadmeAndGraphiQLPlaceTheSameOrder(t *testing.T) {
	_, url := serve(t, "-addr 127.0.0.1:0")
	query := findInFile(t, "internal/graphiql/ui/src/examples.ts", "(mutation PlaceOrder [^`]*)`")
	example, err := json.Marshal(map[string]string{"query": query})
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, body := range []string{findInFile(t, "README.md", `-d '(\{"query":"mutation [^']*)'`), string(example)} {
		status, answer := post(t, url, body)
		var got struct {
			Data struct {
				PlaceOrder struct {
					Order      struct{ ID string }
					UserErrors []any
				}
			}
		}
		if err := json.Unmarshal([]byte(answer), &got); err != nil || status != http.StatusOK || len(got.Data.PlaceOrder.UserErrors) > 0 {
			t.Fatalf("status %d, %s, %v", status, answer, err)
		}
		ids = append(ids, got.Data.PlaceOrder.Order.ID)
	}
	if ids[0] == "" || ids[0] != ids[1] {
		t.Errorf("the orders are %q", ids)
	}
}

// All products in examples are in the sample data, and each can be ordered.
func TestProductsInExamplesCanBeOrdered(t *testing.T) {
	_, url := serve(t, "-addr 127.0.0.1:0")
	ask := func(query string, data any) {
		t.Helper()
		body, err := json.Marshal(map[string]string{"query": query})
		if err != nil {
			t.Fatal(err)
		}
		status, answer := post(t, url, string(body))
		if err := json.Unmarshal([]byte(answer), &struct{ Data any }{data}); err != nil || status != http.StatusOK {
			t.Fatalf("status %d, %s, %v", status, answer, err)
		}
	}
	var listed struct {
		Products struct{ Nodes []struct{ SKU string } }
	}
	ask("{ products(first: 100) { nodes { sku } } }", &listed)
	orderable := map[string]bool{}
	for _, p := range listed.Products.Nodes {
		var got struct {
			Quote struct{ UserErrors []struct{ Message string } }
		}
		ask(fmt.Sprintf("{ quote(input: {items: [{sku: %q, quantity: 1}]}) { userErrors { message } } }", p.SKU), &got)
		if len(got.Quote.UserErrors) > 0 {
			t.Errorf("%s cannot be ordered: %v", p.SKU, got.Quote.UserErrors)
		}
		orderable[p.SKU] = true
	}
	mentions := 0
	for _, files := range []string{"README.md", "docs/clients.md", "docs/subscriptions.md", "internal/graphiql/ui/src/*.ts", "e2e/*/*.js"} {
		paths, err := filepath.Glob("../../" + files)
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s: %d files, %v", files, len(paths), err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for _, match := range regexp.MustCompile(`\bsku: \\?"([\w.-]+)\\?"`).FindAllSubmatch(text, -1) {
				mentions++
				if sku := string(match[1]); !orderable[sku] {
					t.Errorf("%s names %s, which is not in the sample data", path, sku)
				}
			}
		}
	}
	if mentions == 0 {
		t.Error("no example names a product")
	}
}

// The HTTP statuses match docs/clients.md.
func TestDocumentedStatuses(t *testing.T) {
	_, url := serve(t, "-addr 127.0.0.1:0")
	for body, want := range map[string]struct{ json, graphql int }{
		`{"query":"{ nonsense }"}`: {200, 400},
		`{"query":"query Q($id: ID!) { customer(id: $id) { name } }","variables":{}}`: {200, 400},
		`{"query":"{ orders(first: 0) { nodes { id } } }"}`:                           {200, 200},
		`{"query":"{ customer(id: \"nobody\") { name } }"}`:                           {200, 200},
		`nonsense`: {400, 400},
	} {
		for accept, want := range map[string]int{"application/json": want.json, "application/graphql-response+json": want.graphql} {
			r, err := http.NewRequest(http.MethodPost, url+server.PathGraphQL, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Accept", accept)
			if status, answer := readResponse(t)(http.DefaultClient.Do(r)); status != want || !json.Valid([]byte(answer)) {
				t.Errorf("body %s with Accept %s: status %d, %s, want %d", body, accept, status, answer, want)
			}
		}
	}
}

// The README's commands run in one shell from top to bottom, and leave no server behind. Only the
// commands that need Docker or run the tests are left out. DynamoDB Local takes the place of AWS.
func TestReadmeCommands(t *testing.T) {
	for _, program := range []string{"bash", "curl"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("the README needs %s", program)
		}
	}
	db := dynamolocal.Shared(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(address)
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	var script strings.Builder
	tested := false
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllSubmatch(text, -1) {
		commands := string(block[1])
		switch {
		case strings.HasPrefix(commands, "docker "):
			continue
		case strings.HasPrefix(commands, "go test "):
			tested = true
			findInFile(t, ".ci/run", "(?m)^ORDERGRAPH_TEST_LONG=1 ("+regexp.QuoteMeta(strings.TrimSpace(commands))+")$")
			continue
		}
		script.WriteString(strings.NewReplacer(
			"go build ", "go build -C '"+root+"' ", "-o ordergraph ", `-o "$PWD/ordergraph" `, ":8080", ":"+port,
		).Replace(commands))
	}
	if !tested {
		t.Error("the README does not name the command that runs the tests")
	}
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	shell := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", script.String())
	shell.Dir = t.TempDir()
	shell.Env = append(os.Environ(),
		"ORDERGRAPH_ADDR="+address, "ORDERGRAPH_TABLE="+storetest.TableName(), "AWS_ENDPOINT_URL="+db.Endpoint(),
		"AWS_ACCESS_KEY_ID=local", "AWS_SECRET_ACCESS_KEY=local", "AWS_EC2_METADATA_DISABLED=true", "AWS_CONFIG_FILE=/nowhere", "AWS_SHARED_CREDENTIALS_FILE=/nowhere")
	shell.WaitDelay = time.Second // a server that is left behind keeps the output open
	out, err := shell.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{
		`"customer":{"name":"Alice Chen","orders":{"nodes":[{"id":"01HVNR4Q3R0000000000000002"`, `"availableTransitions":["CONFIRMED","CANCELLED"]`,
		`{"data":{"customer":{"name":"Alice Chen"}}`, `{"data":{"customer":{"name":"Alice Chen","orderCount":2}}`,
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the commands do not print %s:\n%s", want, out)
		}
	}
	if conn, err := net.Dial("tcp", address); err == nil {
		_ = conn.Close()
		t.Error("a server is still running")
	}
}

// postAs sends a request with a token, or without one if token is empty.
func postAs(t *testing.T, url, token, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequest(http.MethodPost, url+server.PathGraphQL, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	return readResponse(t)(http.DefaultClient.Do(r))
}
