package races_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"pgregory.net/rapid"

	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
	"github.com/ordergraph/ordergraph/internal/test/workload"
)

// sentMutation is a mutation with its response.
type sentMutation struct {
	workload.Mutation
	response workload.Response
}

// histories generates the steps of 2 to 4 clients, each with up to 40 mutations. It concatenates
// short lists, because the library rapid rarely generates long lists.
func histories(w workload.Fixture) *rapid.Generator[[][]workload.Step] {
	step := rapid.Custom(func(t *rapid.T) workload.Step {
		pick := func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "") }
		return workload.StepGenerator{Fixture: w, IntN: pick}.Next(drawMutation(pick), "own")
	})
	steps := rapid.Map(rapid.SliceOfN(rapid.SliceOfN(step, 0, 10), 4, 4), func(parts [][]workload.Step) []workload.Step { return slices.Concat(parts...) })
	return rapid.SliceOfN(steps, 2, 4)
}

// Several clients send random mutations concurrently. Then every confirmed change is in the table
// exactly once, and no unconfirmed change is in the table.
func TestHistories(t *testing.T) {
	w := workload.Fixture{Customers: 3, Products: 3, Warehouses: 2, Employees: 2, Stock: 4, ReorderPoint: 4}
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		dataset := w.Dataset(t)
		steps, changes, orders := 0, 0, 0
		storetest.CheckProperty(t, func(rt *rapid.T) {
			clients := histories(w).Draw(rt, "clients")
			table := storetest.TableName()
			store := storetest.NewTable(t, db, dynamo.Options{Table: table, OrderExpiry: time.Hour})
			defer func() {
				_, _ = db.DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: aws.String(table)})
			}()
			storetest.MakeReadable(t, storetest.RawTable{T: t, DB: db, Name: table, Store: store}, model.EntityLowStock.Name)
			storetest.LoadDataset(t, store, dataset)
			storetest.MakeReadable(t, storetest.RawTable{T: t, DB: db, Name: table, Store: store}, model.EntityOrderWaiting.Name)
			url := workload.Serve(t, store, io.Discard)
			erased := ""
			var erasing sync.WaitGroup
			if rapid.Bool().Draw(rt, "erase a customer") {
				erased = "c2"
				erasing.Go(func() { eraseCustomer(rt, url, erased) })
			}
			log := runClients(rt, url, clients)
			erasing.Wait()
			steps += len(log)
			audited := storetest.AssertConsistent(rt, db, table, 1)
			changes += checkVersions(rt, audited, log, erased)
			checkStock(rt, audited, log, w)
			checkPrices(rt, audited, log, w)
			orders += len(audited.Orders)
		})
		t.Logf("%d mutations sent, %d changes made, %d of them new orders", steps, changes, orders)
	})
}

// eraseCustomer sends requests until no order of the customer is left to erase. One request erases
// one order.
func eraseCustomer(t *rapid.T, url, id string) {
	c := workload.NewClient()
	defer c.HTTP.CloseIdleConnections()
	for done := false; !done; {
		a, err := c.Send(context.Background(), url, workload.Mutation{Field: "eraseCustomer", Input: map[string]any{"customerId": id}})
		if err != nil || !a.Succeeded() {
			t.Errorf("eraseCustomer: %v, %v", a, err)
			return
		}
		done = strings.Contains(a.RecordJSON, `"erased":true`)
	}
}

// runClients executes the steps of all clients concurrently and returns the responses.
func runClients(t *rapid.T, url string, clients [][]workload.Step) []sentMutation {
	c, memory := workload.NewClient(), workload.NewClientState()
	defer c.HTTP.CloseIdleConnections()
	logs := make([][]sentMutation, len(clients))
	var wg sync.WaitGroup
	for i, steps := range clients {
		wg.Go(func() {
			for j, step := range steps {
				m := memory.Mutation(step)
				if m.IdempotencyKey() == "own" {
					m.Input["idempotencyKey"] = fmt.Sprintf("client-%d-step-%d", i, j)
				}
				times := 1
				if step.SendTwice && m.IdempotencyKey() != "" {
					times = 2
				}
				// The copies of a repeated mutation are sent concurrently.
				answers := make([]sentMutation, times)
				var copies sync.WaitGroup
				for n := range answers {
					copies.Go(func() {
						a, err := c.Send(context.Background(), url, m)
						if err != nil {
							t.Errorf("%s %v: %v", m.Field, m.Input, err)
							a.UserErrorCodes = []string{"FAULT"}
						}
						memory.Update(m, a)
						answers[n] = sentMutation{m, a}
					})
				}
				copies.Wait()
				if last := answers[times-1].response; answers[0].response.Succeeded() && last.Succeeded() && withoutPersonal(t, answers[0].response) != withoutPersonal(t, last) {
					t.Errorf("%s %v has two different responses: %v, %v", m.Field, m.Input, answers[0].response, last)
				}
				logs[i] = append(logs[i], answers...)
			}
		})
	}
	wg.Wait()
	return slices.Concat(logs...)
}

// withoutPersonal returns a response without the data that a replay reads from the current record
// (docs/adr/0061-erasure.md).
func withoutPersonal(t *rapid.T, a workload.Response) string {
	record := map[string]any{}
	if err := json.Unmarshal([]byte(a.RecordJSON), &record); err != nil {
		t.Errorf("a response contains the record %s: %v", a.RecordJSON, err)
	}
	for _, name := range []string{"name", "email", "phoneNumbers", "shippingAddress", "billingAddress", "contact", "hold"} {
		delete(record, name)
	}
	return fmt.Sprint(record)
}

// recordOf returns the record of a subject: see workload.RecordName.
func recordOf(a *storetest.AuditResult, subject string) storetest.Record {
	words := strings.Fields(subject)
	prefix := map[string]string{"customer": "CUSTOMER#", "order": "ORDER#", "product": "PRODUCT#", "warehouse": "WAREHOUSE#", "employee": "EMPLOYEE#", "inventoryLevel": "PRODUCT#"}[words[0]]
	sk := "#METADATA"
	if words[0] == "inventoryLevel" {
		sk = "WAREHOUSE#" + words[2]
	}
	return a.Records[storetest.Key{PK: prefix + words[1], SK: sk}]
}

// checkVersions verifies that each version of a record was returned in a response. So each
// confirmed change created one version, and no other change was made. checkVersions returns the
// number of changes. It omits inventory levels, because shipments change them, too, and warehouses,
// because new inventory levels change their numbers. checkStock verifies the levels. It also omits
// orders with payments, returns or fulfillments, because their responses do not contain the order's
// version, and the records of the erased customer.
func checkVersions(t *rapid.T, a *storetest.AuditResult, log []sentMutation, erased string) int {
	returned, paid, n := map[string]map[int]bool{}, map[string]bool{}, 0
	for _, e := range log {
		if !e.response.Succeeded() {
			continue
		}
		if field := workload.PayloadRecordFields[e.Field]; field == "payment" || field == "return" || field == "fulfillment" {
			paid["order "+fmt.Sprint(e.Input["orderId"])] = true
			continue
		}
		r := e.response.Record()
		subject := workload.RecordName(e.Field, e.Input, r)
		if returned[subject] == nil {
			returned[subject] = map[int]bool{}
		}
		if !returned[subject][r.Version] {
			n++
		}
		returned[subject][r.Version] = true
	}
	for subject, versions := range returned {
		r := recordOf(a, subject)
		if subject == "customer "+erased {
			continue
		}
		if r == nil {
			t.Errorf("a response returned %s, but it does not exist", subject)
			continue
		}
		last := r.Int("version")
		for v := range versions {
			if v > last {
				t.Errorf("%s: a response returned version %d, but the record has version %d", subject, v, last)
			}
		}
		if strings.HasPrefix(subject, "inventoryLevel") || strings.HasPrefix(subject, "warehouse ") || paid[subject] || erased != "" && r.Text("customerId") == erased {
			continue
		}
		// No response returned version 1 of the records of the fixture.
		for v := 2; v <= last; v++ {
			if !versions[v] {
				t.Errorf("%s has version %d, but no response returned version %d", subject, last, v)
			}
		}
	}
	for _, id := range a.Orders {
		if !returned["order "+id][1] {
			t.Errorf("order %s exists, but no response returned it as placed", id)
		}
	}
	return n
}

// levelChange is the known state of one version of an inventory level.
type levelChange struct {
	quantity, delta int
	adjusted        bool
}

// checkStock computes each inventory level from the responses to the mutations that changed the
// level. Shipments create versions of a level that no response contains. For these versions,
// checkStock uses the quantities of the shipped orders.
func checkStock(t *rapid.T, a *storetest.AuditResult, log []sentMutation, w workload.Fixture) {
	known, shipped := map[string]map[int]levelChange{}, map[string][]int{}
	for i := range w.Products {
		for j := range w.Warehouses {
			known[fmt.Sprintf("inventoryLevel p%d w%d", i, j)] = map[int]levelChange{1: {quantity: w.Stock}}
		}
	}
	shippedOrders, set := map[string]bool{}, map[string]bool{}
	warehouses := map[string]any{} // of fulfillments
	for _, e := range log {
		if e.Field == "createFulfillment" && e.response.Succeeded() {
			warehouses[e.response.Record().ID] = e.Input["warehouseId"]
		}
	}
	for _, e := range log {
		r := e.response.Record()
		switch {
		case !e.response.Succeeded():
		case e.Field == "shipOrder" && !shippedOrders[r.ID]:
			shippedOrders[r.ID] = true
			for _, item := range r.Items.Nodes {
				if item.Quantity == 0 {
					continue // its pieces are cancelled
				}
				level := fmt.Sprintf("inventoryLevel %s %s", item.ProductID, e.Input["warehouseId"])
				shipped[level] = append(shipped[level], item.Quantity)
			}
		case (e.Field == "createFulfillment" || e.Field == "cancelFulfillment") && !shippedOrders[e.Field+r.ID]:
			shippedOrders[e.Field+r.ID] = true
			for _, line := range r.Lines {
				level := fmt.Sprintf("inventoryLevel %s %s", line.Sku, warehouses[r.ID])
				if e.Field == "cancelFulfillment" {
					line.Quantity = -line.Quantity
				}
				shipped[level] = append(shipped[level], line.Quantity)
			}
		case e.Field == "adjustInventory" || e.Field == "setInventoryLevel" || e.Field == "transferInventory":
			level := workload.RecordName(e.Field, e.Input, r)
			if known[level] == nil {
				known[level] = map[int]levelChange{0: {}}
			}
			c := levelChange{quantity: r.Quantity}
			before, twice := known[level][r.Version]
			switch e.Field {
			case "adjustInventory":
				c.delta, c.adjusted = e.Input["delta"].(int), true
			case "transferInventory":
				if c.delta, c.adjusted = e.Input["quantity"].(int), true; !before.adjusted {
					from := fmt.Sprintf("inventoryLevel %s %s", e.Input["sku"], e.Input["fromWarehouseId"])
					shipped[from] = append(shipped[from], c.delta)
				}
			default:
				set[level] = true
			}
			if twice && before.quantity != c.quantity {
				t.Errorf("%s: responses returned version %d with %d and with %d pieces", level, r.Version, before.quantity, c.quantity)
			}
			if !before.adjusted {
				known[level][r.Version] = c
			}
		}
	}
	for level, versions := range known {
		r := recordOf(a, level)
		if r == nil {
			t.Errorf("a response returned %s, but it does not exist", level)
			continue
		}
		var order []int
		for v := range versions {
			order = append(order, v)
		}
		slices.Sort(order)
		sum, changes := 0, 0
		for i, v := range order {
			c := versions[v]
			if i == 0 {
				sum = c.quantity
				continue
			}
			changes++
			sum += c.delta
			before := versions[order[i-1]]
			if c.adjusted && v == order[i-1]+1 && c.quantity != before.quantity+c.delta {
				t.Errorf("%s: %d pieces adjusted by %+d became %d", level, before.quantity, c.delta, c.quantity)
			}
		}
		for _, n := range shipped[level] {
			sum -= n
			changes++
		}
		// If a mutation sets a level to its current quantity, it creates no version. The expected
		// number of versions is then unknown.
		if !set[level] && (r.Int("quantity") != sum || r.Int("version") != order[0]+changes) {
			t.Errorf("%s has %d pieces in version %d, but the responses add up to %d in version %d", level, r.Int("quantity"), r.Int("version"), sum, order[0]+changes)
		}
		if set[level] && r.Int("version") > order[0]+changes {
			t.Errorf("%s has version %d, but the responses allow at most %d", level, r.Int("version"), order[0]+changes)
		}
	}
}

// checkPrices verifies that each line item has a price that its product once had.
func checkPrices(t *rapid.T, a *storetest.AuditResult, log []sentMutation, w workload.Fixture) {
	had := map[string]bool{}
	for i := range w.Products {
		had[fmt.Sprintf("p%d %d.50", i, i+1)] = true
	}
	for _, e := range log {
		if price, ok := e.Input["unitPrice"].(map[string]any); ok && e.response.Succeeded() {
			had[fmt.Sprintf("%v %v", e.Input["sku"], price["amount"])] = true
		}
	}
	for k, r := range a.Records {
		if sku, ok := strings.CutPrefix(k.SK, "ITEM#"); ok && !had[sku+" "+r.Number("price").FloatString(2)] {
			t.Errorf("%s %s costs %s, but the product never had that price", k.PK, k.SK, r.Number("price").FloatString(2))
		}
	}
}
