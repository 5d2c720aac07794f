package cli_test

import (
	"encoding/json"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/ordergraph/ordergraph/internal/server"
)

func post(t *testing.T, url, body string) (int, string) {
	t.Helper()
	return read(t)(http.Post(url+server.PathGraphQL, "application/json", strings.NewReader(body)))
}

// found is what the first group of a pattern matches in a file of the repository.
func found(t *testing.T, file, pattern string) string {
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

// Who has placed the README's order and runs GraphiQL's example gets that order: both use one key.
func TestReadmeAndGraphiQLPlaceOneOrder(t *testing.T) {
	_, url := serve(t, "-addr 127.0.0.1:0")
	query := found(t, "internal/graphiql/ui/src/examples.ts", "(mutation PlaceOrder [^`]*)`")
	example, err := json.Marshal(map[string]string{"query": query})
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, body := range []string{found(t, "README.md", `-d '(\{"query":"mutation [^']*)'`), string(example)} {
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

// The statuses that the README tells client teams.
func TestReadmeStatuses(t *testing.T) {
	_, url := serve(t, "-addr 127.0.0.1:0")
	for body, want := range map[string]int{
		`{"query":"{ nonsense }"}`: http.StatusUnprocessableEntity,
		`{"query":"query Q($id: ID!) { customer(id: $id) { name } }","variables":{}}`: http.StatusUnprocessableEntity,
		`{"query":"{ orders(first: 0) { nodes { id } } }"}`:                           http.StatusOK,
		`{"query":"{ customer(id: \"nobody\") { name } }"}`:                           http.StatusOK,
		`nonsense`: http.StatusBadRequest,
	} {
		if status, answer := post(t, url, body); status != want || !json.Valid([]byte(answer)) {
			t.Errorf("%s: status %d, %s, want %d", body, status, answer, want)
		}
	}
}
