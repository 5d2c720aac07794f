// Package growth_test walks long lists from one end to the other, and shows that a page deep in them costs what the first one does: as many
// requests to DynamoDB, as many read units. How long pages take it tells, and does not judge.
package growth_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/graph"
	"github.com/ordergraph/ordergraph/internal/dynamolocal"
	"github.com/ordergraph/ordergraph/internal/sampledata"
	"github.com/ordergraph/ordergraph/internal/server"
	"github.com/ordergraph/ordergraph/internal/storetest"
)

// orders is how many the larger of two books has; the smaller one has a hundredth. How long a million takes, and how much memory,
// docs/performance.md tells.
var orders = flag.Int("orders", 5000, "how many orders the larger book has; the smaller one has a hundredth")

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(dynamolocal.Main(m))
}

// pageSize is that of all pages: the largest there is.
const pageSize = 100

// list is one that is walked.
type list struct {
	name string
	// document asks for a page behind $after, and path leads to it. Variables are the others that it has.
	document  string
	path      []string
	variables map[string]any
	// requests is how many requests a page takes at most.
	requests int
}

func lists(book *sampledata.Generator) []list {
	const page = `{ nodes { id status total { amount } items { nodes { productId quantity } } } pageInfo { endCursor hasNextPage } }`
	return []list{
		{
			name: "ordersByStatus", path: []string{"ordersByStatus"}, requests: 1,
			document: `query ($n: Int, $after: String) { ordersByStatus(status: PENDING, first: $n, after: $after) ` + page + ` }`,
		},
		{
			// Two rounds over five statuses; of these one or two still have orders in the second one, and then maybe in a third.
			name: "orders", path: []string{"orders"}, requests: 5 + 2 + 2,
			document: `query ($n: Int, $after: String) { orders(first: $n, after: $after) ` + page + ` }`,
		},
		{
			name: "customer.orders", path: []string{"customer", "orders"}, requests: 2, variables: map[string]any{"id": book.Customer(0)},
			document: `query ($n: Int, $after: String, $id: ID!) { customer(id: $id) { name orders(first: $n, after: $after) ` + page + ` } }`,
		},
	}
}

// walked is what the full pages of a list cost.
type walked struct {
	pages, found int
	requests     []int
	units        []float64
	times        []time.Duration
}

func TestPagesCostTheSameHoweverDeep(t *testing.T) {
	if testing.Short() {
		t.Skip("fills two tables")
	}
	sizes := []int{*orders / 100, *orders}
	walks := map[string][]walked{}
	var names []string
	for _, n := range sizes {
		shape := sampledata.DefaultShape()
		// One item and few events make few records. Few customers, so that each has long lists.
		shape.Orders, shape.Customers, shape.FewestItems, shape.MostItems = n, 10, 1, 1
		shape.Statuses = sampledata.Weights{commerce.Pending: 1, commerce.Cancelled: 1}
		book, err := sampledata.NewGenerator(shape)
		if err != nil {
			t.Fatal(err)
		}
		api := fill(t, book, n)
		for _, l := range lists(book) {
			w := api.walk(t, l)
			t.Logf("%7d orders, %-16s %s", n, l.name, w)
			if walks[l.name] == nil {
				names = append(names, l.name)
			}
			walks[l.name] = append(walks[l.name], w)
			if l.name == "orders" && w.found != n {
				t.Errorf("the list of %d orders has %d", n, w.found)
			}
			if most := slices.Max(w.requests); most > l.requests {
				t.Errorf("%s: a page took %d requests, at most %d are allowed", l.name, most, l.requests)
			}
		}
	}
	for _, name := range names {
		small, large := walks[name][0], walks[name][1]
		// A page's records are of slightly different sizes, and half a unit is for each 4 KB.
		if a, b := median(small.units), median(large.units); small.found >= pageSize && (a-b > 1 || b-a > 1) {
			t.Errorf("%s: a page takes %v read units in the smaller book, %v in the larger one", name, a, b)
		}
		first, last := large.ends()
		if a, b := median(large.units[:first]), median(large.units[last:]); a-b > 1 || b-a > 1 {
			t.Errorf("%s: a page takes %v read units at the beginning, %v at the end", name, a, b)
		}
	}
}

// ends are where the first tenth of the pages ends, and where the last one begins.
func (w walked) ends() (int, int) {
	tenth := max(1, len(w.times)/10)
	return tenth, len(w.times) - tenth
}

func (w walked) String() string {
	first, last := w.ends()
	a, b := median(w.times[:first]), median(w.times[last:])
	return fmt.Sprintf("%6d orders on %5d pages; requests %d to %d; read units %v to %v, median %v; time of a page, median: first tenth %v, last tenth %v, ratio %.2f",
		w.found, w.pages, slices.Min(w.requests), slices.Max(w.requests), slices.Min(w.units), slices.Max(w.units), median(w.units),
		a.Round(time.Microsecond), b.Round(time.Microsecond), float64(b)/float64(a))
}

func median[T int | float64 | time.Duration](of []T) T {
	sorted := slices.Sorted(slices.Values(of))
	return sorted[len(sorted)/2]
}

// shop is the handler over a table.
type shop struct{ handler http.Handler }

// fill loads a book into a new table.
func fill(t *testing.T, book *sampledata.Generator, orders int) shop {
	t.Helper()
	store := storetest.NewTable(t, dynamolocal.Shared(t).Client(), dynamo.Options{})
	began, told := time.Now(), time.Now()
	if _, err := store.LoadAll(t.Context(), book.Stock(), nil); err != nil {
		t.Fatal(err)
	}
	done, err := store.LoadAll(t.Context(), book.Orders(0), func(l dynamo.Loaded) {
		if time.Since(told) > 15*time.Second {
			told = time.Now()
			t.Logf("%d of %d orders, %d records", l.Orders, orders, l.Records)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d orders, %d records loaded in %v", done.Orders, done.Records, time.Since(began).Round(time.Second))
	handler, err := server.New(server.Options{
		Graph: graph.Options{Store: store, Cursors: graph.NewCursors([]byte("a key of sixteen bytes or more")), Limits: graph.DefaultLimits()},
		Log:   slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	return shop{handler}
}

// answered is an answer with what it cost.
type answered struct {
	Data       map[string]json.RawMessage
	Errors     []json.RawMessage
	Extensions struct {
		Explain struct {
			Totals struct {
				Requests  int
				ReadUnits float64
			}
		}
	}
}

// page is a page of orders.
type page struct {
	Nodes []struct {
		ID    string
		Items struct{ Nodes []struct{ ProductID string } }
	}
	PageInfo struct {
		EndCursor   string
		HasNextPage bool
	}
}

// walk reads a list from its beginning to its end. The last page, which may be short, does not count for the cost unless it is the only one.
func (s shop) walk(t *testing.T, l list) walked {
	t.Helper()
	var w walked
	variables := map[string]any{"n": pageSize}
	for name, value := range l.variables {
		variables[name] = value
	}
	last := "~" // behind all ids
	for {
		body, err := json.Marshal(map[string]any{"query": l.document, "variables": variables})
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest(http.MethodPost, server.PathGraphQL, bytes.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set(server.ExplainHeader, "true")
		recorder := httptest.NewRecorder()
		began := time.Now()
		s.handler.ServeHTTP(recorder, r)
		took := time.Since(began)
		var a answered
		if err := json.Unmarshal(recorder.Body.Bytes(), &a); err != nil || len(a.Errors) > 0 {
			t.Fatalf("%s: %v, %.300s", l.name, err, recorder.Body)
		}
		p := a.page(t, l.path)
		w.pages, w.found = w.pages+1, w.found+len(p.Nodes)
		for _, node := range p.Nodes {
			if node.ID >= last || len(node.Items.Nodes) != 1 {
				t.Fatalf("%s: order %s with %d items stands behind order %s", l.name, node.ID, len(node.Items.Nodes), last)
			}
			last = node.ID
		}
		if p.PageInfo.HasNextPage || w.pages == 1 {
			w.requests = append(w.requests, a.Extensions.Explain.Totals.Requests)
			w.units = append(w.units, a.Extensions.Explain.Totals.ReadUnits)
			w.times = append(w.times, took)
		}
		if !p.PageInfo.HasNextPage {
			return w
		}
		variables["after"] = p.PageInfo.EndCursor
	}
}

// page is the page that path leads to.
func (a answered) page(t *testing.T, path []string) page {
	t.Helper()
	level := a.Data
	for _, name := range path[:len(path)-1] {
		next := map[string]json.RawMessage{}
		if err := json.Unmarshal(level[name], &next); err != nil {
			t.Fatal(err)
		}
		level = next
	}
	var p page
	if err := json.Unmarshal(level[path[len(path)-1]], &p); err != nil {
		t.Fatalf("%s: %v", strings.Join(path, "."), err)
	}
	return p
}
