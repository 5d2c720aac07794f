package cli_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ordergraph/ordergraph/internal/server"
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

// The README's commands create a key, start a server that requires tokens, and send a request with
// a token.
func TestReadmeTokenCommands(t *testing.T) {
	block := findInFile(t, "README.md", "(?s)```sh\n(export ORDERGRAPH_AUTH=jwt .*?)```")
	key := filepath.Join(t.TempDir(), "dev-key")
	lines := strings.Split(strings.ReplaceAll(strings.ReplaceAll(block, "\\\n", ""), "dev-key", key), "\n")
	settings, ok := strings.CutPrefix(lines[0], "export ")
	if !ok || len(lines) != 6 {
		t.Fatalf("the README has the commands %q, want an export and 5 more lines", lines)
	}
	variables := strings.Fields(settings)
	makeKey, ok := strings.CutPrefix(lines[1], "go run . ")
	if !ok {
		t.Fatalf("the command is %q", lines[1])
	}
	run(t, makeKey, variables...).checkSucceeded(t)
	makeToken := regexp.MustCompile(`^TOKEN=\$\(go run \. (.*)\)$`).FindStringSubmatch(lines[2])
	if makeToken == nil || lines[3] != "go run . &" {
		t.Fatalf("the commands are %q, %q", lines[2], lines[3])
	}
	token := run(t, makeToken[1], variables...)
	token.checkSucceeded(t)
	_, url := serve(t, "-addr 127.0.0.1:0", variables...)
	// The command retries until the server has started.
	parts := regexp.MustCompile(`--retry-connrefused .*"Authorization: Bearer \$TOKEN".* -d '(.*)'`).FindStringSubmatch(lines[4])
	if parts == nil {
		t.Fatalf("the command is %q", lines[4])
	}
	for bearer, want := range map[string]int{token.stdout.String(): http.StatusOK, "": http.StatusUnauthorized} {
		status, answer := postAs(t, url, strings.TrimSpace(bearer), parts[1])
		if status != want || strings.HasPrefix(answer, `{"data":{"customer":{"name":"Alice Chen"}},`) != (want == http.StatusOK) {
			t.Errorf("with the token %q: status %d, %s", bearer, status, answer)
		}
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
