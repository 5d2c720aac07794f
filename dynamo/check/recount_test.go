package check_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/change"
	"github.com/ordergraph/ordergraph/dynamo/check"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
	"github.com/ordergraph/ordergraph/internal/test/workload"
)

// stockFixture is a table with 20 pieces of product p0 in warehouse w0, and a customer c0.
type stockFixture struct{ storetest.RawTable }

func newStockFixture(t *testing.T, db *dynamodb.Client) stockFixture {
	t.Helper()
	return stockFixture{storetest.NewRawTable(t, db, workload.Fixture{Customers: 1, Products: 1, Warehouses: 1, Stock: 20}.Dataset(t), dynamo.Options{})}
}

func (s stockFixture) place(quantity int) commerce.OrderID {
	s.T.Helper()
	o, err := s.Store.PlaceOrder(context.Background(), change.Caller{Name: "tester"}, commerce.OrderRequest{CustomerID: "c0", Lines: []commerce.OrderLine{{SKU: "p0", Quantity: quantity}}})
	if err != nil {
		s.T.Fatalf("place: %v", err)
	}
	return o.ID
}

func (s stockFixture) move(id commerce.OrderID, to commerce.Status) {
	s.T.Helper()
	if _, err := s.Store.ChangeOrderStatus(context.Background(), change.Caller{Name: "tester"}, commerce.OrderStatusChange{OrderID: id, To: to, WarehouseID: "w0", WithoutAddress: true}); err != nil {
		s.T.Fatalf("move to %s: %v", to, err)
	}
}

func (s stockFixture) setItem(id commerce.OrderID, quantity int) {
	s.T.Helper()
	if _, err := s.Store.SetOrderItem(context.Background(), change.Caller{Name: "tester"}, commerce.OrderItemChange{OrderID: id, SKU: "p0", Quantity: quantity}); err != nil {
		s.T.Fatalf("set item: %v", err)
	}
}

func (s stockFixture) adjust(delta int) {
	s.T.Helper()
	if _, err := s.Store.AdjustInventory(context.Background(), change.Caller{Name: "tester"}, commerce.InventoryAdjustment{SKU: "p0", WarehouseID: "w0", Delta: delta}); err != nil {
		s.T.Fatalf("adjust: %v", err)
	}
}

// damage writes a counter of the product as other software would, without raising the stock
// revision.
func (s stockFixture) damage(counter, value string) {
	s.T.Helper()
	s.Set("PRODUCT#p0", "#METADATA", storetest.Item{counter: storetest.Num(value)})
}

// expect verifies a counter of the product.
func (s stockFixture) expect(counter, want string) {
	s.T.Helper()
	if got := storetest.CanonicalNumber(s.Get("PRODUCT#p0", "#METADATA")[counter]); got != want {
		s.T.Errorf("%s is %v, want %s", counter, got, want)
	}
}

// repairWhile runs a check with repairs. before is called before each of its requests.
func (s stockFixture) repairWhile(before func(operation string, earlier int, body string)) ([]check.Inconsistency, check.Summary) {
	s.T.Helper()
	return s.WithHTTPHook(func(operation string, earlier int, body string) *http.Response {
		before(operation, earlier, body)
		return nil
	}).Check(check.Options{Repair: true})
}

// A recount reads the product, the two lists of open orders, and the product with its levels.
func readsPending(operation, body string) bool {
	return operation == "Query" && strings.Contains(body, "STATUS#pending")
}

func readsProductAgain(operation, body string) bool {
	return operation == "Query" && strings.Contains(body, `"PRODUCT#p0"`)
}

// Stock may change and return to the same number while the open orders are read. A recount that
// ignored the change would miss the order that was cancelled and placed again. Then 20 pieces could
// be sold although 19 are free.
func TestRecountDetectsStockThatReturnsToItsValue(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		// Each function changes the stock, and returns the function that reverts the change.
		for name, change := range map[string]func(s stockFixture, held commerce.OrderID) (back func() commerce.OrderID){
			"cancelled and placed": func(s stockFixture, held commerce.OrderID) func() commerce.OrderID {
				s.move(held, commerce.Cancelled)
				return func() commerce.OrderID { return s.place(1) }
			},
			"more and less of an item": func(s stockFixture, held commerce.OrderID) func() commerce.OrderID {
				s.setItem(held, 5)
				return func() commerce.OrderID { s.setItem(held, 1); return held }
			},
			"more and less in the warehouse": func(s stockFixture, held commerce.OrderID) func() commerce.OrderID {
				s.adjust(3)
				return func() commerce.OrderID { s.adjust(-3); return held }
			},
		} {
			t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
				s := newStockFixture(t, db)
				held := s.place(1)
				s.damage("available", "18")
				var back func() commerce.OrderID
				passes := 0
				inconsistencies, summary := s.repairWhile(func(operation string, _ int, body string) {
					switch {
					case readsPending(operation, body):
						back = change(s, held)
						passes++
					case readsProductAgain(operation, body) && back != nil:
						held, back = back(), nil
					}
				})
				if len(inconsistencies) > 0 || summary.Unverified != 1 || passes < 2 {
					t.Errorf("found %+v, %d unverified in %d passes, want no inconsistencies and 1 unverified record", inconsistencies, summary.Unverified, passes)
				}
				s.expect("available", "18")
				// The stock no longer changes, so the repair sets the right number.
				if inconsistencies, summary := s.Check(check.Options{Repair: true}); storetest.FormatKindCounts(inconsistencies) != "stock-available 1" || summary.UnrepairedCount() > 0 {
					t.Errorf("at rest found %+v", inconsistencies)
				}
				s.expect("available", "19")
				s.CheckClean()
			})
		}
	})
}

// A repair that counts a product for the first time detects changes of its stock, although no
// mutation counts it.
func TestRepairDetectsChangesOfUncountedStock(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		for name, c := range map[string]struct {
			revision         types.AttributeValue
			change           func(s stockFixture, held commerce.OrderID)
			available, total string
		}{
			"cancelled":                 {nil, func(s stockFixture, held commerce.OrderID) { s.move(held, commerce.Cancelled) }, "20", "20"},
			"cancelled with a revision": {storetest.Num("7"), func(s stockFixture, held commerce.OrderID) { s.move(held, commerce.Cancelled) }, "20", "20"},
			"shipped":                   {nil, func(s stockFixture, held commerce.OrderID) { s.move(held, commerce.Shipped) }, "19", "19"},
			"adjusted":                  {nil, func(s stockFixture, _ commerce.OrderID) { s.adjust(5) }, "24", "25"},
		} {
			t.Run(name, func(t *testing.T) {
				s := newStockFixture(t, db)
				held := s.place(1)
				s.move(held, commerce.Confirmed)
				s.Set("PRODUCT#p0", "#METADATA", storetest.Item{"available": nil, "totalInventory": nil, "stockRevision": c.revision})
				writes := 0
				inconsistencies, summary := s.repairWhile(func(operation string, _ int, _ string) {
					if operation == "TransactWriteItems" {
						if writes++; writes == 1 {
							c.change(s, held)
						}
					}
				})
				if storetest.FormatKindCounts(inconsistencies) != "stock-available 1, stock-total 1" || summary.UnrepairedCount() > 0 || writes != 2 {
					t.Errorf("found %+v, %d left after %d transactions", inconsistencies, summary.UnrepairedCount(), writes)
				}
				s.expect("available", c.available)
				s.expect("totalInventory", c.total)
				s.CheckClean()
			})
		}
	})
}

// A repair of stock changes the stock, so it raises the stock revision.
func TestARepairRaisesTheStockRevision(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newStockFixture(t, db)
		for i, counter := range []string{"available", "totalInventory"} {
			s.damage(counter, "500")
			if inconsistencies, summary := s.Check(check.Options{Repair: true}); len(inconsistencies) != 1 || summary.UnrepairedCount() > 0 {
				t.Errorf("found %+v", inconsistencies)
			}
			s.expect(counter, "20")
			s.expect("stockRevision", fmt.Sprint(i+1))
		}
		// Other repairs do not raise it.
		s.Set("PRODUCT#p0", "#METADATA", storetest.Item{"gsi1pk": storetest.Str("OTHER")})
		if inconsistencies, summary := s.Check(check.Options{Repair: true}); storetest.FormatKindCounts(inconsistencies) != "index-keys 1" || summary.UnrepairedCount() > 0 {
			t.Errorf("found %+v", inconsistencies)
		}
		s.expect("stockRevision", "2")
	})
}

// An order that is being confirmed is in neither list of the index for a moment. Every pass counts it
// all the same.
func TestARecountCountsTheOrdersOfAllPasses(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newStockFixture(t, db)
		orders := []commerce.OrderID{s.place(1), s.place(1)}
		s.damage("available", "500")
		passes := 0
		inconsistencies, summary := s.repairWhile(func(operation string, _ int, body string) {
			switch {
			case readsPending(operation, body):
				if passes++; passes <= len(orders) {
					s.Set("ORDER#"+string(orders[passes-1]), "#METADATA", storetest.Item{"gsi1pk": nil, "gsi1sk": nil})
				}
			case readsProductAgain(operation, body) && passes > 0 && passes <= len(orders):
				id := string(orders[passes-1])
				s.Set("ORDER#"+id, "#METADATA", storetest.Item{"gsi1pk": storetest.Str("STATUS#pending"), "gsi1sk": storetest.Str("ORDER#" + id)})
			}
		})
		if storetest.FormatKindCounts(inconsistencies) != "stock-available 1" || summary.UnrepairedCount() > 0 || passes != 2 {
			t.Errorf("found %+v, %d left after %d passes", inconsistencies, summary.UnrepairedCount(), passes)
		}
		s.expect("available", "18")
		s.CheckClean()
	})
}

// Passes are counted together only while the stock is the same. Orders that were held before a
// change do not count after it.
func TestRecountRestartsWhenTheStockChanges(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newStockFixture(t, db)
		first, second := s.place(1), s.place(2)
		s.damage("available", "500")
		passes := 0
		inconsistencies, summary := s.repairWhile(func(operation string, _ int, body string) {
			// The product was read again and is unchanged. It changes before the next pass.
			if operation == "BatchGetItem" && strings.Contains(body, `"PRODUCT#p0"`) && passes == 1 {
				s.move(first, commerce.Cancelled)
			}
			if readsPending(operation, body) {
				passes++
			}
		})
		if storetest.FormatKindCounts(inconsistencies) != "stock-available 1" || summary.UnrepairedCount() > 0 || passes != 3 {
			t.Errorf("found %+v, %d left after %d passes", inconsistencies, summary.UnrepairedCount(), passes)
		}
		s.expect("available", "18")
		s.move(second, commerce.Cancelled)
		s.CheckClean()
	})
}

// Orders that were placed or changed just before or during a check are counted once, in every status
// and in every shard of the index.
func TestRecountOfNewOrders(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		opts := dynamo.Options{Shards: 2}
		s := stockFixture{storetest.NewRawTable(t, db, workload.Fixture{Customers: 1, Products: 1, Warehouses: 1, Stock: 200}.Dataset(t), opts)}
		placeInEveryStatus := func() {
			for i := range 20 {
				id := s.place(1)
				for _, to := range [][]commerce.Status{{}, {commerce.Cancelled}, {commerce.Confirmed}, {commerce.Confirmed, commerce.Shipped}, {commerce.Confirmed, commerce.Shipped, commerce.Delivered}}[i%5] {
					s.move(id, to)
				}
			}
		}
		placeInEveryStatus()
		damages := 1
		s.damage("available", "500")
		for k := range s.All() {
			if pk, sk, _ := strings.Cut(k, " "); strings.HasPrefix(pk, "ORDER_COUNTS#") {
				s.Set(pk, sk, storetest.Item{"pending": storetest.Num("100")})
				damages++
			}
		}
		var once sync.Once
		repairing := s
		repairing.Store = storetest.StoreWithClient(t, s.Store, storetest.WithRequestHook(db, func(_ context.Context, in any) error {
			if _, scan := in.(*dynamodb.ScanInput); !scan { // the scan of this small table is a single request
				once.Do(placeInEveryStatus)
			}
			return nil
		}), opts)
		// A later pass would correct wrong counts, but would also report them.
		if inconsistencies, summary := repairing.Check(check.Options{Repair: true}); len(inconsistencies) != damages || summary.UnrepairedCount() > 0 {
			t.Errorf("after %d damages, the check reports %+v", damages, inconsistencies)
		}
		if problems, err := storetest.AuditCounters(t.Context(), db, s.Name, opts.Shards); err != nil || len(problems) > 0 {
			t.Errorf("after the repair, %q, %v", problems, err)
		}
		s.CheckClean()
	})
}

// Records with order counts lack a count. Orders are placed between the recount and the repair, so
// mutations add the count. The repair does not replace it.
func TestRepairDoesNotReplaceConcurrentlyAddedCounts(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := stockFixture{storetest.NewRawTable(t, db, workload.Fixture{Customers: 1, Products: 1, Warehouses: 1, Stock: 200}.Dataset(t), dynamo.Options{})}
		storetest.PlaceOrders(t, s.Store, "c0", 40)
		damages := 0
		for k, rec := range s.All() {
			if pk, sk, _ := strings.Cut(k, " "); pk == "ORDER_COUNTS" && storetest.Record(rec).Int("pending") > 0 {
				s.Set(pk, sk, storetest.Item{"pending": nil})
				damages++
			}
		}
		// A later pass would correct wrong counts, but would also report them.
		inconsistencies, summary := repairConcurrently(s.RawTable, func() { storetest.PlaceOrders(t, s.Store, "c0", 40) })
		if len(inconsistencies) != damages || summary.UnrepairedCount() > 0 {
			t.Errorf("after %d damages, the check reports %+v", damages, inconsistencies)
		}
		s.CheckClean()
	})
}

// An order that is not repaired may still change. The stock that it held during its verification
// does not count.
func TestARecountReadsDamagedOrdersAgain(t *testing.T) {
	refuse := func(id commerce.OrderID, operation, body string) *http.Response {
		if operation == "TransactWriteItems" && strings.Contains(body, `"ORDER#`+string(id)+`"`) {
			return reply("ValidationException")
		}
		return nil
	}
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		for name, c := range map[string]struct {
			damage func(s stockFixture, order string)
			found  string
		}{
			"an event that cannot be read": {func(s stockFixture, order string) {
				s.Put(storetest.Item{"pk": storetest.Str(order), "sk": storetest.Str("EVENT#" + storetest.ULIDAt(storetest.FirstOrderTime(), 7)), "eventId": storetest.Str(storetest.ULIDAt(storetest.FirstOrderTime(), 7)), "type": storetest.Str("gift_wrapped")})
			}, "stock-available 1, unreadable 1"},
			"not in the list of pending orders": {func(s stockFixture, order string) {
				s.Set(order, "#METADATA", storetest.Item{"gsi1pk": storetest.Str("STATUS#lost")})
			}, "index-keys 1, stock-available 1"},
			"another quantity than its item": {func(s stockFixture, order string) {
				items := s.Get(order, "#METADATA")["items"].(*types.AttributeValueMemberL)
				items.Value[0].(*types.AttributeValueMemberM).Value["qty"] = storetest.Num("9")
				s.Set(order, "#METADATA", storetest.Item{"items": items})
			}, "embedded-items 1, last-event 1, stock-available 1"},
		} {
			t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
				s := newStockFixture(t, db)
				id := s.place(2)
				c.damage(s, "ORDER#"+string(id))
				s.damage("available", "17")
				changed := false
				inconsistencies, summary := s.WithHTTPHook(func(operation string, _ int, body string) *http.Response {
					// The orders have been verified, and the recount begins.
					if operation == "BatchGetItem" && strings.Contains(body, `"PRODUCT#p0"`) && strings.Contains(body, `"ConsistentRead":true`) && !changed {
						changed = true
						s.setItem(id, 7)
					}
					return refuse(id, operation, body)
				}).Check(check.Options{Repair: true})
				if storetest.FormatKindCounts(inconsistencies) != c.found || summary.Unverified > 0 {
					t.Errorf("found %s, %d unverified, want %s:\n%+v", storetest.FormatKindCounts(inconsistencies), summary.Unverified, c.found, inconsistencies)
				}
				// The stock is 20, and the order holds 7.
				s.expect("available", "13")
			})
		}
	})
}

// An order that has become unreadable when the stock is recounted leaves the stock and the order
// counts unverified.
func TestRecountWithAnUnreadableOrder(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newStockFixture(t, db)
		id := string(s.place(2))
		s.Set("ORDER#"+id, "#METADATA", storetest.Item{"gsi1pk": storetest.Str("STATUS#lost")})
		s.damage("available", "17")
		changed := false
		var unverified []check.UnverifiedRecord
		inconsistencies, summary := s.WithHTTPHook(func(operation string, _ int, body string) *http.Response {
			if operation == "TransactWriteItems" {
				return reply("ValidationException")
			}
			// The order was verified, and could not be repaired.
			if operation == "BatchGetItem" && strings.Contains(body, `"PRODUCT#p0"`) && strings.Contains(body, `"ConsistentRead":true`) && !changed {
				changed = true
				s.Set("ORDER#"+id, "#METADATA", storetest.Item{"status": nil})
				s.Set("CUSTOMER#c0", "ORDER#"+id, storetest.Item{"status": nil})
			}
			return nil
		}).Check(check.Options{Repair: true, OnUnverified: func(u check.UnverifiedRecord) { unverified = append(unverified, u) }})
		part, _ := model.OneEra(1).OrderCounter(commerce.OrderID(id))
		want := []check.UnverifiedRecord{
			{PK: "PRODUCT#p0", SK: "#METADATA", Reason: "ORDER#" + id + " cannot be read and may reserve stock of the product"},
			{PK: "ORDER_COUNTS", SK: "PART#" + part, Reason: "the status of ORDER#" + id + " cannot be read"},
		}
		if storetest.FormatKindCounts(inconsistencies) != "index-keys 1" || summary.Unverified != len(want) || !slices.Equal(unverified, want) {
			t.Errorf("found %+v, %d unverified: %+v", inconsistencies, summary.Unverified, unverified)
		}
		s.expect("available", "17")
	})
}

// A mutation skips a product that is missing or has no counter, on condition that this is still so.
func TestSkippingAProductIsConditional(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		without := func(counter string) func(s stockFixture) func() {
			return func(s stockFixture) func() {
				s.Set("PRODUCT#p0", "#METADATA", storetest.Item{counter: nil})
				return func() {
					if inconsistencies, summary := s.Check(check.Options{Repair: true}); len(inconsistencies) != 1 || summary.UnrepairedCount() > 0 {
						s.T.Errorf("the repair found %+v and left %d, want 1 inconsistency and 0 left", inconsistencies, summary.UnrepairedCount())
					}
				}
			}
		}
		lost := func(s stockFixture) func() {
			product := s.Get("PRODUCT#p0", "#METADATA")
			s.Delete("PRODUCT#p0", "#METADATA")
			return func() { s.Put(product) }
		}
		cancel := func(store *dynamo.Store, id commerce.OrderID) error {
			_, err := store.ChangeOrderStatus(context.Background(), change.Caller{Name: "tester"}, commerce.OrderStatusChange{OrderID: id, To: commerce.Cancelled})
			return err
		}
		ship := func(store *dynamo.Store, id commerce.OrderID) error {
			_, err := store.ChangeOrderStatus(context.Background(), change.Caller{Name: "tester"}, commerce.OrderStatusChange{OrderID: id, To: commerce.Shipped, WarehouseID: "w0", WithoutAddress: true})
			return err
		}
		less := func(store *dynamo.Store, id commerce.OrderID) error {
			_, err := store.SetOrderItem(context.Background(), change.Caller{Name: "tester"}, commerce.OrderItemChange{OrderID: id, SKU: "p0", Quantity: 1})
			return err
		}
		for name, c := range map[string]struct {
			status           commerce.Status
			remove           func(s stockFixture) (comeBack func())
			change           func(store *dynamo.Store, id commerce.OrderID) error
			attempt          int
			available, total string
		}{
			// The first attempt finds nothing to count, and the second attempt skips the product.
			"cancel without available":   {commerce.Pending, without("available"), cancel, 2, "20", "20"},
			"cancel without the product": {commerce.Pending, lost, cancel, 2, "20", "20"},
			"ship without total":         {commerce.Confirmed, without("totalInventory"), ship, 2, "15", "15"},
			"ship without the product":   {commerce.Confirmed, lost, ship, 2, "15", "15"},
			// The product is read before the first attempt.
			"less without available":   {commerce.Pending, without("available"), less, 1, "19", "20"},
			"less without the product": {commerce.Pending, lost, less, 1, "19", "20"},
		} {
			t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
				s := newStockFixture(t, db)
				id := s.place(5)
				if c.status == commerce.Confirmed {
					s.move(id, commerce.Confirmed)
				}
				comeBack, attempts := c.remove(s), 0
				err := c.change(s.WithHTTPHook(func(operation string, _ int, _ string) *http.Response {
					if operation == "TransactWriteItems" {
						if attempts++; attempts == c.attempt {
							comeBack()
						}
					}
					return nil
				}).Store, id)
				if err != nil || attempts != c.attempt+1 {
					t.Errorf("%d attempts, error %v, want %d attempts", attempts, err, c.attempt+1)
				}
				s.expect("available", c.available)
				s.expect("totalInventory", c.total)
				s.CheckClean()
			})
		}
	})
}

// A customer's order count only increases, so it never returns to an earlier value. Therefore a
// repair detects an order that is placed during the count.
func TestOrdersPlacedDuringACustomersCount(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newStockFixture(t, db)
		s.place(1)
		s.Set("CUSTOMER#c0", "#METADATA", storetest.Item{"orderCount": storetest.Num("0")})
		inconsistencies, summary := s.repairWhile(func(operation string, _ int, body string) {
			if operation == "Query" && strings.Contains(body, `"CUSTOMER#c0"`) {
				s.place(1)
			}
		})
		if len(inconsistencies) > 0 || summary.Unverified != 1 {
			t.Errorf("found %+v, %d unverified", inconsistencies, summary.Unverified)
		}
		// The last order is placed between the count and the repair.
		writes := 0
		inconsistencies, summary = s.repairWhile(func(operation string, _ int, _ string) {
			if operation == "TransactWriteItems" {
				if writes++; writes == 1 {
					s.place(1)
				}
			}
		})
		if storetest.FormatKindCounts(inconsistencies) != "order-count 1" || summary.UnrepairedCount() > 0 || writes != 2 {
			t.Errorf("found %+v, %d left after %d transactions", inconsistencies, summary.UnrepairedCount(), writes)
		}
		orders := 0
		for k := range s.All() {
			if strings.HasPrefix(k, "CUSTOMER#c0 ORDER#") {
				orders++
			}
		}
		if got := storetest.CanonicalNumber(s.Get("CUSTOMER#c0", "#METADATA")["orderCount"]); got != fmt.Sprint(orders) {
			t.Errorf("orderCount is %v, want %d", got, orders)
		}
		s.CheckClean()
	})
}
