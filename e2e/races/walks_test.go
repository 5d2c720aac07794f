package races_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/internal/test/longtest"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
	"github.com/ordergraph/ordergraph/internal/test/workload"
)

// walks is the number of times that the list is read completely. For a thorough run:
//
//	go test ./e2e/races -run Walks -v -walks 1000 -timeout 2h
var walks = flag.Int("walks", longtest.Size(8, 40), "how many times each engine's list of changing orders is read completely")

const (
	// walkedOrders is the number of orders in a table. walksOfTable is the number of times that the
	// list of one table is read. After that, most orders have a final status.
	walkedOrders, walksOfTable = 40, 8
	// changesPerPage is the number of orders that change their status while a page is read.
	changesPerPage = 4
)

// changingOrders has the orders of a table while their statuses change.
type changingOrders struct {
	faultyServer
	client *workload.Client
	// ids are the IDs of the orders, newest first.
	ids []string

	mu sync.Mutex
	// statuses contains the statuses of the orders. If an order is busy, a mutation is changing its
	// status. Then statuses contains the new status, but the table may still contain the old status.
	statuses []string
	busy     []bool
	changes  int
}

// placeOrders creates a table with pending orders. No two orders share a product or a customer.
func placeOrders(t *testing.T, db *dynamodb.Client) *changingOrders {
	t.Helper()
	w := workload.Fixture{Customers: walkedOrders, Products: walkedOrders, Warehouses: 1, Stock: 10}
	m := &changingOrders{faultyServer: newFaultyServer(t, db, w, noFaults), client: workload.NewClient(), statuses: slices.Repeat([]string{"PENDING"}, walkedOrders), busy: make([]bool, walkedOrders)}
	t.Cleanup(m.client.HTTP.CloseIdleConnections)
	placed := placeConcurrently(t, walkedOrders, []string{m.url}, func(i int) map[string]any {
		return map[string]any{"customerId": fmt.Sprintf("c%d", i), "items": []map[string]any{{"sku": fmt.Sprintf("p%d", i), "quantity": 1}}}
	})
	if m.ids = m.readPage(t, listOptions{first: 100}, "").ids(); placed != walkedOrders || len(m.ids) != walkedOrders {
		t.Fatalf("%d orders were placed and %d are listed, want %d", placed, len(m.ids), walkedOrders)
	}
	return m
}

// advance changes the status of an order with an index in [from, to), unless all of them are final.
func (m *changingOrders) advance(t *testing.T, from, to int) {
	order, input, field := m.chooseOrder(from, to)
	if field == "" {
		return
	}
	a, _, err := m.client.SendWithRetries(t.Context(), func() string { return m.url }, workload.Mutation{Field: field, Input: input}, attempts)
	if err != nil || !a.Succeeded() {
		t.Errorf("%s of order %d: %v %v", field, order, a, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.busy[order] = false
	m.changes++
}

// chooseOrder draws an order and a mutation for it. field is empty if no order can change.
func (m *changingOrders) chooseOrder(from, to int) (order int, input map[string]any, field string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, at := range rand.Perm(to - from) {
		order = from + at
		if m.busy[order] {
			continue
		}
		input = map[string]any{"orderId": m.ids[order]}
		switch status := m.statuses[order]; {
		case status == "SHIPPED":
			field, m.statuses[order] = "deliverOrder", "DELIVERED"
		case status != "PENDING" && status != "CONFIRMED":
			continue
		case rand.IntN(4) == 0:
			field, m.statuses[order] = "cancelOrder", "CANCELLED"
		case status == "PENDING":
			field, m.statuses[order] = "confirmOrder", "CONFIRMED"
		default:
			field, m.statuses[order] = "shipOrder", "SHIPPED"
			input["warehouseId"], input["withoutAddress"] = "w0", true
		}
		m.busy[order] = true
		return order, input, field
	}
	return 0, nil, ""
}

// listOptions determines how readAll reads the list.
type listOptions struct {
	// first is the page size. If backward is set, pages begin at the end of the list.
	first    int
	backward bool
	// statuses is the argument of the list. If it is empty, the list has all orders.
	statuses []string
}

// listedPage is a page of orders in a response.
type listedPage struct {
	Nodes    []struct{ ID, Status string }
	PageInfo struct {
		HasNextPage, HasPreviousPage bool
		StartCursor, EndCursor       string
	}
}

func (p listedPage) ids() []string {
	var ids []string
	for _, o := range p.Nodes {
		ids = append(ids, o.ID)
	}
	return ids
}

// readPage reads the page after a cursor, with the options w.
func (m *changingOrders) readPage(t *testing.T, w listOptions, cursor string) listedPage {
	t.Helper()
	query := `query($n: Int, $cursor: String, $statuses: [OrderStatus!]) { orders(first: $n, after: $cursor, statuses: $statuses) {
		nodes { id status } pageInfo { hasNextPage hasPreviousPage startCursor endCursor } } }`
	if w.backward {
		query = strings.NewReplacer("first", "last", "after", "before").Replace(query)
	}
	variables := map[string]any{"n": w.first, "statuses": w.statuses}
	if cursor != "" {
		variables["cursor"] = cursor
	}
	body, err := json.Marshal(map[string]any{"query": query, "variables": variables})
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, m.url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := m.client.HTTP.Do(request)
	if err != nil {
		t.Error(err)
		return listedPage{}
	}
	defer response.Body.Close()
	var got struct {
		Data   struct{ Orders listedPage }
		Errors []any
	}
	if err := json.NewDecoder(response.Body).Decode(&got); err != nil || len(got.Errors) > 0 {
		t.Errorf("%+v: %v %v", w, err, got.Errors)
	}
	return got.Data.Orders
}

// readAll reads all pages once. While it reads a page, it changes orders that may be on the page.
// It returns the number of pages.
func (m *changingOrders) readAll(t *testing.T, w listOptions) int {
	t.Helper()
	var found []string
	pages, cursor := 0, ""
	for more := true; more; pages++ {
		// If orders leave the list, later orders move to this page.
		from := min(len(found), walkedOrders-w.first)
		to := min(from+2*w.first, walkedOrders)
		if w.backward {
			from, to = walkedOrders-to, walkedOrders-from
		}
		var moves sync.WaitGroup
		for range changesPerPage {
			moves.Go(func() { m.advance(t, from, to) })
		}
		p := m.readPage(t, w, cursor)
		moves.Wait()
		ids := p.ids()
		more, cursor = p.PageInfo.HasNextPage, p.PageInfo.EndCursor
		if w.backward {
			slices.Reverse(ids)
			more, cursor = p.PageInfo.HasPreviousPage, p.PageInfo.StartCursor
		}
		if more && len(ids) != w.first {
			t.Errorf("%+v: a page has %d orders, but it is not the last page", w, len(ids))
		}
		for _, o := range p.Nodes {
			if w.statuses != nil && !slices.Contains(w.statuses, o.Status) {
				t.Errorf("%+v: order %s is %s", w, o.ID, o.Status)
			}
		}
		found = append(found, ids...)
	}
	inOrder := slices.Clone(found)
	slices.Sort(inOrder)
	if !w.backward {
		slices.Reverse(inOrder)
	}
	if !slices.Equal(found, inOrder) || len(slices.Compact(inOrder)) != len(found) {
		t.Errorf("%+v: orders are not sorted or occur twice: %v", w, found)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, id := range m.ids {
		// The argument statuses names the first statuses of the lifecycle, and no order returns to an
		// earlier status. So an order that the list contains now was in the list all the time.
		if (w.statuses == nil || slices.Contains(w.statuses, m.statuses[i])) && !slices.Contains(found, id) {
			t.Errorf("%+v: order %d with status %s is missing", w, i, m.statuses[i])
		}
	}
	return pages
}

// While orders change their status, reading all pages finds each order once. The test reads in both
// directions, with all statuses and with some.
func TestWalksThroughChangingOrders(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		ways := []listOptions{
			{first: 7}, {first: 7, backward: true},
			{first: 5, statuses: []string{"PENDING", "CONFIRMED", "SHIPPED"}},
			{first: 5, backward: true, statuses: []string{"PENDING", "CONFIRMED", "SHIPPED", "DELIVERED"}},
		}
		var done, pages atomic.Int64
		moves := 0
		for left := *walks; left > 0; left -= walksOfTable {
			t.Run(fmt.Sprintf("%d left", left), func(t *testing.T) {
				m := placeOrders(t, db)
				inParallel(min(left, walksOfTable), 2, func(i int) {
					pages.Add(int64(m.readAll(t, ways[i%len(ways)])))
					done.Add(1)
				})
				moves += m.changes
			})
		}
		t.Logf("%d walks through %d orders on %d pages, with %d concurrent status changes", done.Load(), walkedOrders, pages.Load(), moves)
	})
}
