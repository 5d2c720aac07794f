// Package growth_test reads long lists from the first page to the last. It verifies that each page
// costs the same number of DynamoDB requests and read units, regardless of its position in the
// list. It reports response times, but does not limit them.
package growth_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/bulk"
	"github.com/ordergraph/ordergraph/graph"
	"github.com/ordergraph/ordergraph/graph/paging"
	"github.com/ordergraph/ordergraph/internal/sampledata"
	"github.com/ordergraph/ordergraph/internal/server"
	"github.com/ordergraph/ordergraph/internal/test/dynamolocal"
	"github.com/ordergraph/ordergraph/internal/test/longtest"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// orders is the number of orders in the larger dataset. The smaller dataset has a hundredth of this
// number. docs/performance.md contains the loading time of a million orders.
var orders = flag.Int("orders", longtest.Size(1000, 3000), "number of orders of the larger dataset; the smaller one has a hundredth")

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(dynamolocal.Main(m))
}

// pageSize is the size of all pages: the maximum.
const pageSize = 100

// list is a list to read.
type list struct {
	name string
	// document is a query for the page after $after. path is the path of the page in the response, and
	// variables contains the other variables. end is a query for the cursor of the first of the last
	// 100 records.
	document, end string
	path          []string
	variables     map[string]any
	// requests is the maximum number of requests to DynamoDB per page.
	requests int
}

func lists(dataset *sampledata.Generator) []list {
	const page = `{ nodes { id status total { amount } items { nodes { productId quantity } } } pageInfo { endCursor hasNextPage } }`
	const end = `(last: 100) { pageInfo { startCursor } }`
	return []list{
		{
			name: "ordersByStatus", path: []string{"ordersByStatus"}, requests: 1,
			document: `query ($n: Int, $after: String) { ordersByStatus(status: PENDING, first: $n, after: $after) ` + page + ` }`,
			end:      `{ ordersByStatus(status: PENDING, last: 100) { pageInfo { startCursor } } }`,
		},
		{
			// The first round reads five statuses. Only two of them have orders, so at most two more rounds
			// read these two statuses.
			name: "orders", path: []string{"orders"}, requests: 5 + 2 + 2,
			document: `query ($n: Int, $after: String) { orders(first: $n, after: $after) ` + page + ` }`,
			end:      `{ orders` + end + ` }`,
		},
		{
			name: "customer.orders", path: []string{"customer", "orders"}, requests: 2, variables: map[string]any{"id": dataset.CustomerID(0)},
			document: `query ($n: Int, $after: String, $id: ID!) { customer(id: $id) { name orders(first: $n, after: $after) ` + page + ` } }`,
			end:      `query ($id: ID!) { customer(id: $id) { orders` + end + ` } }`,
		},
	}
}

// pageCosts has the costs of the full pages of a list.
type pageCosts struct {
	pages, orders int
	// middleCursor is the cursor before the middle page.
	middleCursor string
	requests     []int
	units        []float64
}

func TestPageCostIsIndependentOfDepth(t *testing.T) {
	smaller, larger := newDatasetServer(t, *orders/100), newDatasetServer(t, *orders)
	for i, inLarger := range lists(larger.dataset) {
		inSmaller := lists(smaller.dataset)[i]
		small, large := smaller.readAll(t, inSmaller), larger.readAll(t, inLarger)
		t.Logf("%-15s of %7d orders: %s", inSmaller.name, smaller.orders, small)
		t.Logf("%-15s of %7d orders: %s", inLarger.name, larger.orders, large)
		if inLarger.name == "orders" && (small.orders != smaller.orders || large.orders != larger.orders) {
			t.Errorf("the tables have %d and %d orders, but the lists have %d and %d", smaller.orders, larger.orders, small.orders, large.orders)
		}
		if most := max(slices.Max(small.requests), slices.Max(large.requests)); most > inLarger.requests {
			t.Errorf("%s: a page took %d requests, want at most %d", inLarger.name, most, inLarger.requests)
		}
		// The records of two pages differ slightly in size, so the costs may differ slightly. DynamoDB
		// charges half a read unit for each 4 KB.
		if a, b := median(small.units), median(large.units); small.orders >= pageSize && (a-b > 1 || b-a > 1) {
			t.Errorf("%s: a page takes %v read units in the smaller dataset, but %v in the larger one", inLarger.name, a, b)
		}
		first, last := large.firstAndLastTenth()
		if a, b := median(large.units[:first]), median(large.units[last:]); a-b > 1 || b-a > 1 {
			t.Errorf("%s: a page takes %v read units at the beginning, but %v at the end", inLarger.name, a, b)
		}
		compareTimes(t, inLarger.name, []*timedPage{
			{server: smaller, list: inSmaller, name: fmt.Sprintf("first page of %d orders", smaller.orders)},
			{server: larger, list: inLarger, name: fmt.Sprintf("first page of %d", larger.orders)},
			{server: larger, list: inLarger, name: "middle page", after: large.middleCursor},
			{server: larger, list: inLarger, name: "last page", after: larger.lastPage(t, inLarger)},
		})
	}
}

// timedPage is a page whose response time is measured.
type timedPage struct {
	name   string
	server *datasetServer
	list   list
	after  string
	took   []time.Duration
}

// compareTimes reads the pages alternately, so that other load on the machine affects all pages
// equally. It logs the ratio of each page's response time to the response time of the first page.
func compareTimes(t *testing.T, list string, pages []*timedPage) {
	t.Helper()
	rounds := longtest.Size(3, 60)
	for range rounds {
		for _, p := range pages {
			_, _, took := p.server.readPage(t, p.list, p.list.document, pageSize-1, p.after)
			p.took = append(p.took, took)
		}
	}
	base := median(pages[0].took)
	summary := fmt.Sprintf("%s %v", pages[0].name, base.Round(10*time.Microsecond))
	for _, p := range pages[1:] {
		summary += fmt.Sprintf(", %s %.2f times that", p.name, float64(median(p.took))/float64(base))
	}
	t.Logf("%-15s median time of %d: %s", list, rounds, summary)
}

// lastPage returns the cursor of the first of the last 100 records.
func (s *datasetServer) lastPage(t *testing.T, l list) string {
	t.Helper()
	_, p, _ := s.readPage(t, l, l.end, 0, "")
	return p.PageInfo.StartCursor
}

// firstAndLastTenth returns the end of the first tenth of the pages and the start of the last
// tenth.
func (w pageCosts) firstAndLastTenth() (int, int) {
	tenth := max(1, len(w.units)/10)
	return tenth, len(w.units) - tenth
}

func (w pageCosts) String() string {
	return fmt.Sprintf("%d orders on %d pages; requests for each %d to %d; read units %v to %v, median %v",
		w.orders, w.pages, slices.Min(w.requests), slices.Max(w.requests), slices.Min(w.units), slices.Max(w.units), median(w.units))
}

func median[T int | float64 | time.Duration](values []T) T {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// datasetServer is a handler with a table of a given number of orders.
type datasetServer struct {
	dataset *sampledata.Generator
	orders  int
	handler http.Handler
}

// newDatasetServer loads a dataset into a new table.
func newDatasetServer(t *testing.T, orders int) *datasetServer {
	t.Helper()
	shape := sampledata.DefaultShape()
	// One item and few events per order keep the number of records low. Few customers have long lists.
	shape.Orders, shape.Customers, shape.MinItems, shape.MaxItems = orders, 10, 1, 1
	shape.Statuses = sampledata.StatusWeights{commerce.Pending: 1, commerce.Cancelled: 1}
	dataset, err := sampledata.NewGenerator(t.Context(), shape)
	if err != nil {
		t.Fatal(err)
	}
	store := storetest.NewTable(t, dynamolocal.Shared(t).Client(), dynamo.Options{})
	began, lastLog := time.Now(), time.Now()
	if _, err := store.LoadAll(t.Context(), dataset.MasterData(), nil); err != nil {
		t.Fatal(err)
	}
	loaded, err := store.LoadAll(t.Context(), dataset.Orders(0), func(l bulk.LoadProgress) {
		if time.Since(lastLog) > 15*time.Second {
			lastLog = time.Now()
			t.Logf("%d of %d orders, %d records", l.Orders, orders, l.Records)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d orders, %d records loaded in %v", loaded.Orders, loaded.Records, time.Since(began).Round(time.Second))
	handler, err := server.New(server.Options{
		Graph: graph.Options{Store: store, Cursors: paging.NewCursorSigner([]byte("a key of sixteen bytes or more"))},
		Log:   slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	return &datasetServer{dataset, orders, handler}
}

// response is a response with its cost.
type response struct {
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
		StartCursor string
		EndCursor   string
		HasNextPage bool
	}
}

// readAll reads a list from start to end. The cost excludes the last page, which may be short,
// unless it is the only page.
func (s *datasetServer) readAll(t *testing.T, l list) pageCosts {
	t.Helper()
	var w pageCosts
	last, after := "~", "" // sorts after all IDs
	var cursors []string
	for {
		a, p, _ := s.readPage(t, l, l.document, pageSize, after)
		w.pages, w.orders = w.pages+1, w.orders+len(p.Nodes)
		for _, node := range p.Nodes {
			if node.ID >= last || len(node.Items.Nodes) != 1 {
				t.Fatalf("%s: order %s with %d items follows order %s", l.name, node.ID, len(node.Items.Nodes), last)
			}
			last = node.ID
		}
		if p.PageInfo.HasNextPage || w.pages == 1 {
			w.requests = append(w.requests, a.Extensions.Explain.Totals.Requests)
			w.units = append(w.units, a.Extensions.Explain.Totals.ReadUnits)
		}
		cursors = append(cursors, after)
		if !p.PageInfo.HasNextPage {
			w.middleCursor = cursors[len(cursors)/2]
			return w
		}
		after = p.PageInfo.EndCursor
	}
}

// readPage reads a page of n records after a cursor and measures the response time.
func (s *datasetServer) readPage(t *testing.T, l list, document string, n int, after string) (response, page, time.Duration) {
	t.Helper()
	variables := maps.Clone(l.variables)
	if variables == nil {
		variables = map[string]any{}
	}
	if n > 0 {
		variables["n"] = n
	}
	if after != "" {
		variables["after"] = after
	}
	body, err := json.Marshal(map[string]any{"query": document, "variables": variables})
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodPost, "http://localhost"+server.PathGraphQL, bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(server.ExplainHeader, "true")
	recorder := httptest.NewRecorder()
	began := time.Now()
	s.handler.ServeHTTP(recorder, r)
	took := time.Since(began)
	var a response
	if err := json.Unmarshal(recorder.Body.Bytes(), &a); err != nil || len(a.Errors) > 0 {
		t.Fatalf("%s: %v, %.300s", l.name, err, recorder.Body)
	}
	return a, a.page(t, l.path), took
}

// page returns the page at path.
func (a response) page(t *testing.T, path []string) page {
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
