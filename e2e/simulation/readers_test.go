package simulation_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ordergraph/ordergraph/internal/test/storetest"
	"github.com/ordergraph/ordergraph/internal/test/workload"
)

// readers contains what clients have seen that only read, for the verification.
type readers struct {
	mu     sync.Mutex
	walks  []walk
	sights []sight
	// initial contains the orders at the start.
	initial map[string]string
	// half contains an export in the middle of the simulation.
	half map[storetest.Key]string
	// erasing and erased are true if the erasure of a customer has begun and ended.
	erasing, erased atomic.Bool
}

// walk contains the orders that a list contained while they changed.
type walk struct {
	name string
	// customer and statuses select the list. If both are empty, it has all orders.
	customer string
	statuses []string
	// began is the step of the seam at the begin.
	began int
	found []string
}

// sight is an order that a customer has seen or changed.
type sight struct{ visitor, customer, order, event string }

// runReaders runs the clients of the scenario that read, and the erasure of a customer.
func (w *world) runReaders(ctx context.Context, active *sync.WaitGroup, memory *workload.ClientState, initial map[string]string) {
	w.readers.initial = initial
	active.Go(func() { w.exportHalf(ctx) })
	for i := range w.Walkers {
		active.Go(func() { w.runWalker(ctx, fmt.Sprintf("walker %d", i)) })
	}
	for i := range w.Visitors {
		active.Go(func() { w.runVisitor(ctx, i, memory) })
	}
	if w.Erase {
		active.Go(func() { w.erase(ctx) })
	}
}

// waitForRound waits until a time in one of the next rounds of the clients.
func (w *world) waitForRound(ctx context.Context, r *rand.Rand, rounds int) bool {
	return w.sleep(ctx, time.Duration(1+r.IntN(rounds))*w.round()-w.elapsed()%w.round()+time.Duration(r.Float64()*float64(300*time.Millisecond)))
}

// runWalker reads all pages of lists until ctx ends.
func (w *world) runWalker(ctx context.Context, name string) {
	c := w.newClient(name, "")
	for n := 0; ; n++ {
		r := w.random(name, n)
		if !w.waitForRound(ctx, r, 2) {
			return
		}
		walk := walk{name: fmt.Sprintf("%s walk %d", name, n)}
		if !w.decide(walk.name) {
			continue
		}
		switch r.IntN(3) {
		case 0:
			walk.customer = fmt.Sprintf("c%d", r.IntN(fixture.Customers))
		case 1:
			all := []string{"PENDING", "CONFIRMED", "SHIPPED", "DELIVERED", "CANCELLED"}
			r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
			walk.statuses = all[:1+r.IntN(4)]
		}
		w.readAll(ctx, c, r, walk)
	}
}

// listedPage is a page of orders in a response.
type listedPage struct {
	Nodes    []struct{ ID, Status string }
	PageInfo struct {
		HasNextPage, HasPreviousPage bool
		StartCursor, EndCursor       string
	}
}

// readAll reads all pages of a list. It requests a page again that it did not get.
func (w *world) readAll(ctx context.Context, c *workload.Client, r *rand.Rand, k walk) {
	variables := map[string]any{"n": 1 + r.IntN(6)}
	text := `query($n: Int, $cursor: String) { list: orders(first: $n, after: $cursor) { PAGE } }`
	if k.customer != "" {
		text, variables["id"] = `query($n: Int, $cursor: String, $id: ID!) { customer(id: $id) { list: orders(first: $n, after: $cursor) { PAGE } } }`, k.customer
	} else if k.statuses != nil {
		text, variables["statuses"] = `query($n: Int, $cursor: String, $statuses: [OrderStatus!]) { list: orders(first: $n, after: $cursor, statuses: $statuses) { PAGE } }`, k.statuses
	}
	backward := r.IntN(2) == 0
	if backward {
		text = strings.NewReplacer("first", "last", "after", "before").Replace(text)
	}
	text = strings.Replace(text, "PAGE", "nodes { id status } pageInfo { hasNextPage hasPreviousPage startCursor endCursor }", 1)
	damaged := w.watchDamage()
	if k.began = w.step(); w.Lag && !w.sleep(ctx, w.round()) { // until the index contains what happened before
		return
	}
	for more := true; more; {
		var data struct {
			List     *listedPage
			Customer *struct{ List *listedPage }
		}
		for tries := 0; !w.query(ctx, c, r, text, variables, &data); tries++ {
			if tries == 20 || !w.sleep(ctx, time.Duration(r.Float64()*float64(maxRetryPause))) {
				return
			}
		}
		if data.Customer != nil {
			data.List = data.Customer.List
		}
		page := data.List
		if page == nil { // the customer is erased
			return
		}
		cursor := page.PageInfo.EndCursor
		more = page.PageInfo.HasNextPage
		if backward {
			slices.Reverse(page.Nodes)
			more, cursor = page.PageInfo.HasPreviousPage, page.PageInfo.StartCursor
		}
		variables["cursor"] = cursor
		if damaged() {
			return
		}
		if more && len(page.Nodes) != variables["n"] {
			w.found("%s: a page has %d orders, but it is not the last page", k.name, len(page.Nodes))
		}
		for _, o := range page.Nodes {
			if k.statuses != nil && !slices.Contains(k.statuses, o.Status) {
				w.found("%s: order %s is %s", k.name, o.ID, o.Status)
			}
			if n := len(k.found); n > 0 && (o.ID >= k.found[n-1]) != backward || n > 0 && o.ID == k.found[n-1] {
				w.found("%s: order %s follows order %s", k.name, o.ID, k.found[n-1])
				return
			}
			k.found = append(k.found, o.ID)
		}
	}
	w.readers.mu.Lock()
	defer w.readers.mu.Unlock()
	w.readers.walks = append(w.readers.walks, k)
}

// runVisitor simulates a customer who tries to see and to change the orders of others, until ctx ends.
func (w *world) runVisitor(ctx context.Context, number int, memory *workload.ClientState) {
	name, customer := fmt.Sprintf("visitor %d", number), fmt.Sprintf("c%d", number)
	c := w.newClient(name, customer)
	for n := 0; ; n++ {
		r := w.random(name, n)
		if n%stepsPerRound > 0 && !w.sleep(ctx, time.Duration(r.Float64()*float64(maxPause))) || n%stepsPerRound == 0 && !w.waitForRound(ctx, r, 2) {
			return
		}
		decision := fmt.Sprintf("%s step %d", name, n)
		if !w.decide(decision) {
			continue
		}
		order := memory.Mutation(workload.Step{Mutation: workload.Mutation{Field: "addOrderNote", Input: map[string]any{}}, OrderChoice: r.IntN(6)}).Input["orderId"].(string)
		other := fmt.Sprintf("c%d", (number+1+r.IntN(fixture.Customers-1))%fixture.Customers)
		see := func(order, event string) {
			w.readers.mu.Lock()
			defer w.readers.mu.Unlock()
			w.readers.sights = append(w.readers.sights, sight{decision, customer, order, event})
		}
		switch r.IntN(4) {
		case 0:
			w.visit(ctx, c, r, customer, other, order, see)
		case 1:
			s := &subscriber{name: name + " subscription", field: "orderUpdated", argument: "id", id: order, connections: n}
			if r.IntN(2) == 0 {
				s.field, s.argument, s.id = "customerOrders", "customerId", other
			}
			damaged := w.watchDamage()
			until, cancel := context.WithTimeout(ctx, time.Duration(r.Float64()*float64(2*w.round())))
			if err := w.subscribe(until, c, s, r); err != nil && !strings.Contains(err.Error(), "NOT_FOUND") && !damaged() {
				w.found("%s: %v", decision, err)
			}
			cancel()
			for _, u := range s.updates {
				see(u.OrderID, u.ID)
			}
		default:
			w.meddle(ctx, c, r, operation{client: 3*clients + number, decision: decision}, order, see)
		}
	}
}

// visit reads an order, a customer and the customer's own orders.
func (w *world) visit(ctx context.Context, c *workload.Client, r *rand.Rand, customer, other, order string, see func(order, event string)) {
	type seen struct {
		ID       string
		Customer *struct{ ID string }
		Timeline struct{ Nodes []struct{ ID string } }
	}
	const fields = `id status total { amount } customer { id name email } items(first: 25) { nodes { quantity product { sku } } } timeline { nodes { id type note } } payments(first: 5) { nodes { id amount { amount } } }`
	var data struct {
		Order    *seen
		Customer *struct{ ID string }
		Own      *struct {
			ID     string
			Orders struct{ Nodes []seen }
			Order  *seen
		}
		Entities []*struct{ ID string } `json:"_entities"`
	}
	text := `query($order: ID!, $other: ID!, $own: ID!, $entities: [_Any!]!) {
		order(id: $order) { ` + fields + ` } customer(id: $other) { id name email } own: customer(id: $own) { id order(id: $order) { ` + fields + ` } orders(first: 5) { nodes { ` + fields + ` } } }
		_entities(representations: $entities) { ... on Order { id } ... on Customer { id } } }`
	damaged := w.watchDamage()
	entities := []any{map[string]any{"__typename": "Order", "id": order}, map[string]any{"__typename": "Customer", "id": other}}
	if !w.query(ctx, c, r, text, map[string]any{"order": order, "other": other, "own": customer, "entities": entities}, &data) {
		return
	}
	if data.Customer != nil || data.Own == nil || data.Own.ID != customer || len(data.Entities) != 2 || data.Entities[1] != nil {
		w.found("customer %s sees %+v of customer %s and %+v of itself", customer, data.Customer, other, data.Own)
		return
	}
	if damaged() {
		return // the customer's copy of an order can have the ID of another order
	}
	all := slices.Clone(data.Own.Orders.Nodes)
	for _, o := range []*seen{data.Order, data.Own.Order} {
		if o != nil {
			all = append(all, *o)
		}
	}
	if data.Entities[0] != nil {
		see(data.Entities[0].ID, "")
	}
	for _, o := range all {
		see(o.ID, "")
		if o.Customer == nil || o.Customer.ID != customer {
			w.found("customer %s sees order %s of %+v", customer, o.ID, o.Customer)
		}
		for _, e := range o.Timeline.Nodes {
			see(o.ID, e.ID)
		}
	}
}

// meddle changes an order, or another customer. Only the customer's own orders change.
func (w *world) meddle(ctx context.Context, c *workload.Client, r *rand.Rand, o operation, order string, see func(order, event string)) {
	m := []workload.Mutation{
		{Field: "cancelOrder", Input: map[string]any{}}, {Field: "addOrderNote", Input: map[string]any{"note": "hello"}},
		{Field: "setOrderItem", Input: map[string]any{"sku": "p0", "quantity": 1 + r.IntN(5)}}, {Field: "removeOrderItem", Input: map[string]any{"sku": "p0"}},
		{Field: "updateShippingAddress", Input: map[string]any{"shippingAddress": map[string]any{"recipient": "V", "line1": "1", "city": "V", "countryCode": "US"}}},
		{Field: "updateOrder", Input: map[string]any{"contact": map[string]any{"email": "visitor@example.com"}}},
		{Field: "requestReturn", Input: map[string]any{"lines": []any{map[string]any{"sku": "p0", "quantity": 1, "reason": "broken"}}}},
	}[r.IntN(7)]
	m.Input["orderId"] = order
	o.Mutation, o.called, o.at = m, w.step(), w.elapsed()
	text := fmt.Sprintf(`mutation($input: %s%sInput!) { m: %s(input: $input) { userErrors { code } } }`, strings.ToUpper(m.Field[:1]), m.Field[1:], m.Field)
	damaged := w.watchDamage()
	data, code, ok := w.post(ctx, c, r, text, map[string]any{"input": m.Input})
	if ok && !slices.Contains([]string{"", "UNAVAILABLE", "TIMED_OUT"}, code) && !damaged() {
		w.found("%s: %s", o.decision, code)
	}
	var got struct {
		M *struct{ UserErrors []struct{ Code string } }
	}
	if ok && code == "" {
		if err := json.Unmarshal(data, &got); err != nil || got.M == nil {
			w.found("%s: %v in %s", o.decision, err, data)
			return
		}
		if len(got.M.UserErrors) > 0 {
			return
		}
		see(order, "")
	}
	w.history.add(o) // its outcome is unknown, or the order belongs to the customer
}

// verifyReaders verifies what the readers have seen.
func (w *world) verifyReaders(a *storetest.AuditResult) {
	events, owner := timelines(a)
	exists := map[update]bool{}
	statuses := map[string][]string{} // of each order, in their sequence
	claimed := map[string]bool{}
	for _, e := range events {
		exists[e] = true
		r := a.Records[storetest.Key{PK: "ORDER#" + e.OrderID, SK: "EVENT#" + e.ID}]
		if to := r.Text("to"); to != "" {
			statuses[e.OrderID] = append(statuses[e.OrderID], strings.ToUpper(to))
		}
		claimed[e.OrderID] = claimed[e.OrderID] || r.Text("type") == "claimed"
		if number, ok := strings.CutPrefix(r.Text("actor"), "visitor "); ok && owner[e.OrderID] != "c"+number {
			w.found("visitor %s has changed order %s of customer %s: %s", number, e.OrderID, owner[e.OrderID], r.Text("type"))
		}
	}
	for _, s := range w.readers.sights {
		if owner[s.order] != s.customer {
			w.found("%s sees or changes order %s of customer %s", s.visitor, s.order, owner[s.order])
		}
		if s.event != "" && !exists[update{s.event, s.order}] {
			w.found("%s sees event %s of order %s, which does not exist", s.visitor, s.event, s.order)
		}
	}
	for _, k := range w.readers.walks {
		// known contains the last known status of each order before the walk, as a position.
		known := map[string]int{}
		for id := range w.readers.initial {
			known[id] = 0
		}
		for _, o := range w.history.operations {
			r := o.response.Record()
			id, status := o.read, o.text
			if workload.PayloadRecordFields[o.Field] == "order" {
				id, status = r.ID, r.Status
			}
			if at := slices.Index(statuses[id], status); at >= 0 && o.returned > 0 && o.returned < k.began {
				known[id] = max(known[id], at)
			}
		}
		for _, id := range k.found {
			if owner[id] == "" || k.customer != "" && owner[id] != k.customer {
				w.found("%s contains order %s of customer %s", k.name, id, owner[id])
			}
		}
		for id, at := range known {
			always := k.customer == "" || owner[id] == k.customer && !claimed[id]
			if w.Lag && k.customer == "" { // an order whose status has just changed can be missing
				always = at == len(statuses[id])-1
			}
			for _, status := range statuses[id][at:] {
				always = always && (k.statuses == nil || slices.Contains(k.statuses, status))
			}
			if always && !slices.Contains(k.found, id) {
				w.found("%s, customer %q, statuses %v: order %s is missing: it was %v", k.name, k.customer, k.statuses, id, statuses[id][at:])
			}
		}
	}
}
