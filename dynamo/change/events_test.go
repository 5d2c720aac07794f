package change_test

import (
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/bulk"
	"github.com/ordergraph/ordergraph/dynamo/check"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/internal/test/longtest"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
	"github.com/ordergraph/ordergraph/internal/test/workload"
)

// Servers with different clocks change orders of two customers concurrently. The events of each
// customer are still committed in the order of their IDs.
func TestEventIDsIncreaseInCommitOrder(t *testing.T) {
	t.Parallel()
	changes := longtest.Size(1, 4)
	world := workload.Fixture{Customers: 2, Products: 1, Warehouses: 1, Stock: 1000}
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		for i, clocks := range [][]time.Duration{{0, -3 * time.Second}, {0, 0}, {time.Hour, 0, -time.Millisecond, time.Millisecond}} {
			if !storetest.RunsCase(t, 3, i) {
				continue
			}
			watched, w := storetest.RecordCommits(storetest.WithoutResponseDate(db), false)
			table := storetest.TableName()
			first := storetest.NewTable(t, watched, dynamo.Options{Table: table})
			storetest.LoadDataset(t, first, world.Dataset(t))
			orders := map[commerce.OrderID]commerce.CustomerID{}
			for _, c := range []commerce.CustomerID{"c0", "c1"} {
				for _, id := range storetest.PlaceOrders(t, first, c, 3) {
					orders[id] = c
				}
			}
			var all sync.WaitGroup
			for s, off := range clocks {
				store, err := dynamo.New(watched, dynamo.Options{Table: table, Clock: func() time.Time { return time.Now().Add(off) }})
				if err != nil {
					t.Fatal(err)
				}
				for id, customer := range orders {
					all.Go(func() {
						for n := range changes {
							if err := storetest.ChangeAddress(store, id, 100*s+n); err != nil {
								t.Errorf("change %s: %v", id, err)
							}
						}
						storetest.PlaceOrders(t, store, customer, 1)
					})
				}
			}
			all.Wait()
			for customer, events := range w.Events {
				storetest.CheckEventOrder(t, customer, events)
				// 3 orders, their changes by every server, and one new order per server and order
				if want := 3 + 3*len(clocks)*(changes+1); len(events) != want {
					t.Errorf("clocks %v: %s has %d events, want %d", clocks, customer, len(events), want)
				}
			}
			storetest.AssertConsistent(t, db, table, 1)
		}
	})
}

// Clients change one order each, all of the same customer. All changes succeed, even if DynamoDB
// cancels concurrent transactions.
func TestConcurrentChangesOfOneCustomer(t *testing.T) {
	t.Parallel()
	changers := longtest.Size(8, 16)
	changes := longtest.Size(3, 10)
	world := workload.Fixture{Customers: 1, Products: 1, Warehouses: 1, Stock: 1000}
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		for _, conflict := range []bool{false, true} {
			watched, w := storetest.RecordCommits(db, conflict)
			table := storetest.TableName()
			store := storetest.NewTable(t, watched, dynamo.Options{Table: table})
			storetest.LoadDataset(t, store, world.Dataset(t))
			orders := storetest.PlaceOrders(t, store, "c0", changers)
			before := w.Attempts
			began := time.Now()
			var all sync.WaitGroup
			for _, id := range orders {
				all.Go(func() {
					for n := range changes {
						if err := storetest.ChangeAddress(store, id, n); err != nil {
							t.Errorf("change %s: %v", id, err)
						}
					}
				})
			}
			all.Wait()
			t.Logf("conflicts %v: %d changes, %d transactions, cancelled %v, %v", conflict, changers*changes, w.Attempts-before, w.Cancelled, time.Since(began))
			if !conflict {
				storetest.CheckEventOrder(t, "c0", w.Events["c0"])
			}
			if got, want := len(w.Events["c0"]), changers*(changes+1); got != want {
				t.Errorf("%d events, want %d", got, want)
			}
			storetest.AssertConsistent(t, db, table, 1)
		}
	})
}

// A last event with an invalid ID or an ID of the far future does not block changes. The IDs
// increase again from the next event.
func TestInvalidLastEvent(t *testing.T) {
	world := workload.Fixture{Customers: 1, Products: 1, Warehouses: 1, Stock: 1000}
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		for name, eventID := range map[string]types.AttributeValue{
			"far future": model.Str("7ZZZZZZZZZZZZZZZZZZZZZZZZZ"), "no ULID": model.Str("zzz"), "empty": model.Str(""), "missing": nil,
		} {
			t.Run(name, func(t *testing.T) {
				watched, w := storetest.RecordCommits(db, false)
				r := storetest.NewRawTable(t, watched, world.Dataset(t), dynamo.Options{})
				order := storetest.PlaceOrders(t, r.Store, "c0", 1)[0]
				r.Set("CUSTOMER#c0", "LAST_EVENT", storetest.Item{"eventId": eventID})
				for n := range 3 {
					if err := storetest.ChangeAddress(r.Store, order, n); err != nil {
						t.Fatalf("change %d: %v", n, err)
					}
				}
				storetest.PlaceOrders(t, r.Store, "c0", 1)
				storetest.CheckEventOrder(t, "c0", w.Events["c0"])
				if len(w.Events["c0"]) != 5 {
					t.Errorf("events %v, want 5", w.Events["c0"])
				}
				r.CheckClean()
			})
		}
	})
}

// A repair appends its event to the timeline and makes it the customer's last event. The new
// ID is higher than the ID of an event from a server with a fast clock.
func TestRepairedTimelineFollowsLastEvent(t *testing.T) {
	world := workload.Fixture{Customers: 1, Products: 1, Warehouses: 1, Stock: 1000}
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		watched, w := storetest.RecordCommits(storetest.WithoutResponseDate(db), false)
		table := storetest.TableName()
		r := storetest.NewRawTable(t, watched, world.Dataset(t), dynamo.Options{Table: table})
		ahead, err := dynamo.New(watched, dynamo.Options{Table: table, Clock: func() time.Time { return time.Now().Add(time.Hour) }})
		if err != nil {
			t.Fatal(err)
		}
		repaired, other := storetest.PlaceOrders(t, r.Store, "c0", 1)[0], storetest.PlaceOrders(t, ahead, "c0", 1)[0]
		for round := range 3 {
			order := "ORDER#" + string(repaired)
			status := []string{"shipped", "delivered", "shipped"}[round]
			if round == 0 {
				// Shipped items are no longer reserved.
				r.SetWithEdges("PRODUCT#p0", "WAREHOUSE#w0", storetest.Item{"quantity": storetest.Num("999")})
				r.SetWithEdges("PRODUCT#p0", "#METADATA", storetest.Item{"totalInventory": storetest.Num("999")})
			}
			r.Set(order, "#METADATA", storetest.Item{"status": model.Str(status), "gsi1pk": model.Str("STATUS#" + status)})
			r.Set("CUSTOMER#c0", order, storetest.Item{"status": model.Str(status)})
			found := "order-counts 1, timeline 1"
			if round == 0 {
				found = "last-event 1, order-counts 1, timeline 1" // one open order less
			}
			if inconsistencies, summary := r.Check(check.Options{Repair: true}); storetest.FormatKindCounts(inconsistencies) != found || summary.UnrepairedCount() > 0 {
				t.Errorf("round %d: found %+v", round, inconsistencies)
			}
			if round == 1 {
				if err := storetest.ChangeAddress(r.Store, other, round); err != nil {
					t.Errorf("change: %v", err)
				}
			}
		}
		storetest.CheckEventOrder(t, "c0", w.Events["c0"])
		if len(w.Events["c0"]) != 6 {
			t.Fatalf("events %v, want 6", w.Events["c0"])
		}
		last := r.Get("CUSTOMER#c0", "LAST_EVENT")
		if event := r.Get("ORDER#"+string(repaired), "EVENT#"+w.Events["c0"][5]); event == nil || !reflect.DeepEqual(last["createdAt"], event["createdAt"]) {
			t.Errorf("the last event is %s, in the timeline it is %s", storetest.FormatItem(last), storetest.FormatItem(event))
		}
		r.CheckClean()
	})
}

// An export contains last events. So the event IDs in an imported table continue to increase.
func TestExportContainsLastEvents(t *testing.T) {
	world := workload.Fixture{Customers: 1, Products: 1, Warehouses: 1, Stock: 1000}
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		watched, w := storetest.RecordCommits(storetest.WithoutResponseDate(db), false)
		from := storetest.NewTable(t, watched, dynamo.Options{Clock: func() time.Time { return time.Now().Add(time.Hour) }})
		storetest.LoadDataset(t, from, world.Dataset(t))
		storetest.PlaceOrders(t, from, "c0", 2)
		table := storetest.TableName()
		to := storetest.NewTable(t, watched, dynamo.Options{Table: table, Shards: 3})
		storetest.Import(t, to, strings.Join(storetest.Export(t, from, 1), ""), bulk.ImportOptions{})
		storetest.AssertConsistent(t, db, table, 3)
		storetest.PlaceOrders(t, to, "c0", 2)
		storetest.CheckEventOrder(t, "c0", w.Events["c0"])
		if len(w.Events["c0"]) != 4 {
			t.Errorf("events %v, want 4", w.Events["c0"])
		}
		storetest.AssertConsistent(t, db, table, 3)
	})
}
