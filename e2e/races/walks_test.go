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

	"github.com/ordergraph/ordergraph/internal/longtest"
	"github.com/ordergraph/ordergraph/internal/shoptest"
	"github.com/ordergraph/ordergraph/internal/storetest"
)

// walks is 1,000 for the real thing: go test ./e2e/races -run Walks -v -walks 1000 -timeout 2h
var walks = flag.Int("walks", longtest.Size(8, 40), "how many walks through moving orders are made on each engine")

const (
	// walkedOrders is how many orders a table has, and walksOfTable how many walks it is good for:
	// then most orders are final.
	walkedOrders, walksOfTable = 40, 8
	// movesBesidePage is how many orders are moved while a page is read.
	movesBesidePage = 4
)

// movingOrders are the orders of a table, which move through their lifecycle.
type movingOrders struct {
	shop
	client *shoptest.Client
	// ids are the orders' IDs, the newest first.
	ids []string

	mu sync.Mutex
	// statuses are the orders' statuses. That of an order that is being moved is the one that it
	// may have already.
	statuses []string
	busy     []bool
	moves    int
}

// placeOrders opens a shop with orders that are all pending. No two of them share a product or a
// customer.
func placeOrders(t *testing.T, db *dynamodb.Client) *movingOrders {
	t.Helper()
	w := shoptest.World{Customers: walkedOrders, Products: walkedOrders, Warehouses: 1, Stock: 10}
	m := &movingOrders{shop: open(t, db, w, faultless), client: shoptest.NewClient(), statuses: slices.Repeat([]string{"PENDING"}, walkedOrders), busy: make([]bool, walkedOrders)}
	t.Cleanup(m.client.HTTP.CloseIdleConnections)
	placed := rush(t, walkedOrders, []string{m.url}, func(i int) map[string]any {
		return map[string]any{"customerId": fmt.Sprintf("c%d", i), "items": []map[string]any{{"sku": fmt.Sprintf("p%d", i), "quantity": 1}}}
	})
	if m.ids = m.page(t, walk{first: 100}, "").ids(); placed != walkedOrders || len(m.ids) != walkedOrders {
		t.Fatalf("%d orders were placed and %d are listed, want %d", placed, len(m.ids), walkedOrders)
	}
	return m
}

// move moves one of the orders from one index to another, if one of them is not final.
func (m *movingOrders) move(t *testing.T, from, to int) {
	order, input, field := m.choose(from, to)
	if field == "" {
		return
	}
	a, _, err := m.client.Insist(t.Context(), func() string { return m.url }, shoptest.Mutation{Field: field, Input: input}, attempts)
	if err != nil || !a.Done() {
		t.Errorf("%s of order %d: %v %v", field, order, a, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.busy[order] = false
	m.moves++
}

// choose draws an order to move, and the mutation; an empty one where there is none.
func (m *movingOrders) choose(from, to int) (order int, input map[string]any, field string) {
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

// walk is a way to read all orders page by page.
type walk struct {
	// first is how many orders a page has, from the end of the list where backward is set.
	first    int
	backward bool
	// statuses are those that are asked for, none for all.
	statuses []string
}

// listedPage is a page of orders as the API gives it.
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

// page reads the page of a walk that begins behind a cursor.
func (m *movingOrders) page(t *testing.T, w walk, cursor string) listedPage {
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

// walk walks once. While it reads a page, orders that can be on it are moved. It returns how many
// pages it read.
func (m *movingOrders) walk(t *testing.T, w walk) int {
	t.Helper()
	var found []string
	pages, cursor := 0, ""
	for more := true; more; pages++ {
		// Orders that have left the list shift the page to orders behind it.
		from := min(len(found), walkedOrders-w.first)
		to := min(from+2*w.first, walkedOrders)
		if w.backward {
			from, to = walkedOrders-to, walkedOrders-from
		}
		var moves sync.WaitGroup
		for range movesBesidePage {
			moves.Go(func() { m.move(t, from, to) })
		}
		p := m.page(t, w, cursor)
		moves.Wait()
		ids := p.ids()
		more, cursor = p.PageInfo.HasNextPage, p.PageInfo.EndCursor
		if w.backward {
			slices.Reverse(ids)
			more, cursor = p.PageInfo.HasPreviousPage, p.PageInfo.StartCursor
		}
		if more && len(ids) != w.first {
			t.Errorf("%+v: a page has %d orders, though there are more", w, len(ids))
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
		t.Errorf("%+v: orders are out of order, or twice: %v", w, found)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, id := range m.ids {
		// No order comes back to a status that it has left, so one that is in the list now was in
		// it all the time.
		if (w.statuses == nil || slices.Contains(w.statuses, m.statuses[i])) && !slices.Contains(found, id) {
			t.Errorf("%+v: order %d, which is %s, was missed", w, i, m.statuses[i])
		}
	}
	return pages
}

// Walks through orders that move through their whole lifecycle find each order once, in both
// directions, of all statuses and of some.
func TestWalksBesideOrdersThatMove(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *dynamodb.Client) {
		ways := []walk{
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
					pages.Add(int64(m.walk(t, ways[i%len(ways)])))
					done.Add(1)
				})
				moves += m.moves
			})
		}
		t.Logf("%d walks through %d orders on %d pages, beside %d moves", done.Load(), walkedOrders, pages.Load(), moves)
	})
}
