package dynamo_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
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
	"github.com/ordergraph/ordergraph/dynamo/change"
	"github.com/ordergraph/ordergraph/dynamo/check"
	"github.com/ordergraph/ordergraph/internal/faults"
	"github.com/ordergraph/ordergraph/internal/longtest"
	"github.com/ordergraph/ordergraph/internal/shoptest"
	"github.com/ordergraph/ordergraph/internal/storetest"
)

// witness lets transactions pass and notes the events of those that are committed, in the order of
// their commits. It does so in one of two ways: one after the other, so that nobody's note comes
// before an earlier one's; or all at once, and then it cancels those that have a record in common
// with another one under way, as DynamoDB does and the test engines do not.
type witness struct {
	next     faults.HTTP
	conflict bool

	mu     sync.Mutex
	turn   sync.Mutex
	busy   map[string]bool
	events map[string][]string // by customer
	tries  int
	// cancelled counts by the reason.
	cancelled map[string]int
}

// watch returns a client of db's engine that a witness watches.
func watch(db *dynamodb.Client, conflict bool) (*dynamodb.Client, *witness) {
	w := &witness{conflict: conflict, busy: map[string]bool{}, events: map[string][]string{}, cancelled: map[string]int{}}
	return dynamodb.New(db.Options(), func(o *dynamodb.Options) {
		w.next, o.HTTPClient, o.Retryer = o.HTTPClient, w, faults.OneAttempt()
	}), w
}

// action is what the witness reads of an action of a transaction.
type action struct{ Item, Key map[string]map[string]any }

func (a action) text(name string) string {
	for _, of := range []map[string]map[string]any{a.Item, a.Key} {
		if s, ok := of[name]["S"].(string); ok {
			return s
		}
	}
	return ""
}

func (w *witness) Do(r *http.Request) (*http.Response, error) {
	if !strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".TransactWriteItems") {
		return w.next.Do(r)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body.Close()
	var asked struct{ TransactItems []map[string]action }
	if err := json.Unmarshal(body, &asked); err != nil {
		return nil, err
	}
	var ks []string
	customer, event := "", ""
	for _, item := range asked.TransactItems {
		for _, a := range item {
			ks = append(ks, a.text("pk")+" "+a.text("sk"))
			if a.text("sk") == "LAST_EVENT" {
				customer = strings.TrimPrefix(a.text("pk"), "CUSTOMER#")
			}
			if id, ok := strings.CutPrefix(a.text("sk"), "EVENT#"); ok {
				event = id
			}
		}
	}
	switch {
	case !w.conflict:
		w.turn.Lock()
		defer w.turn.Unlock()
	case !w.enter(ks):
		return cancelled(r, len(ks))
	default:
		defer w.leave(ks)
	}
	again := r.Clone(r.Context())
	again.Body = io.NopCloser(bytes.NewReader(body))
	response, err := w.next.Do(again)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(response.Body)
	response.Body.Close()
	response.Body = io.NopCloser(bytes.NewReader(text))
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tries++
	switch {
	case err != nil:
		return nil, err
	case response.StatusCode != http.StatusOK:
		w.cancelled["engine"]++
	case customer != "":
		w.events[customer] = append(w.events[customer], event)
	}
	return response, nil
}

// enter takes records for a transaction; false where another one has one of them.
func (w *witness) enter(ks []string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, k := range ks {
		if w.busy[k] {
			w.tries++
			w.cancelled["conflict"]++
			return false
		}
	}
	for _, k := range ks {
		w.busy[k] = true
	}
	return true
}

func (w *witness) leave(ks []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, k := range ks {
		delete(w.busy, k)
	}
}

// cancelled is the answer to a transaction that another one is in the way of.
func cancelled(r *http.Request, actions int) (*http.Response, error) {
	reasons := make([]map[string]string, actions)
	for i := range reasons {
		reasons[i] = map[string]string{"Code": "TransactionConflict"}
	}
	text, err := json.Marshal(map[string]any{
		"__type": "com.amazonaws.dynamodb.v20120810#TransactionCanceledException", "Message": "Transaction cancelled", "CancellationReasons": reasons,
	})
	return &http.Response{
		Status: "400 Bad Request", StatusCode: http.StatusBadRequest, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}}, Body: io.NopCloser(bytes.NewReader(text)), ContentLength: int64(len(text)), Request: r,
	}, err
}

// rising tells whether each event is behind the one before it.
func rising(t storetest.TB, customer string, events []string) {
	t.Helper()
	for i := 1; i < len(events); i++ {
		if events[i] <= events[i-1] {
			t.Errorf("%s: event %d, %s, was committed behind %s", customer, i, events[i], events[i-1])
		}
	}
}

// placed places so many orders of a customer.
func placed(t storetest.TB, store *dynamo.Store, customer commerce.CustomerID, n int) []commerce.OrderID {
	t.Helper()
	var ids []commerce.OrderID
	for range n {
		o, err := store.PlaceOrder(context.Background(), change.Caller{Name: "test"}, commerce.NewOrder{
			CustomerID: customer, Lines: []commerce.OrderLine{{SKU: "p0", Quantity: 1}},
		})
		if err != nil {
			t.Fatalf("place: %v", err)
		}
		ids = append(ids, o.ID)
	}
	return ids
}

// addressed changes where an order goes, the n-th time.
func addressed(store *dynamo.Store, id commerce.OrderID, n int) error {
	_, err := store.UpdateShippingAddress(context.Background(), change.Caller{Name: "test"}, commerce.ShippingAddressChange{
		OrderID: id, ShippingAddress: commerce.Address{Recipient: "R", Line1: fmt.Sprintf("Street %d", n), City: "C", PostalCode: "1", CountryCode: "US"},
	})
	return err
}

// Servers whose clocks disagree change orders of two customers at once: whatever they do, the
// events of each customer are committed in the order of their ids.
func TestEventsOfACustomerAreCommittedInTheOrderOfTheirIDs(t *testing.T) {
	t.Parallel()
	changes := longtest.Size(1, 4)
	world := shoptest.World{Customers: 2, Products: 1, Warehouses: 1, Stock: 1000}
	storetest.Each(t, func(t *testing.T, db *dynamodb.Client) {
		for i, clocks := range [][]time.Duration{{0, -3 * time.Second}, {0, 0}, {time.Hour, 0, -time.Millisecond, time.Millisecond}} {
			if !storetest.Every(t, 3, i) {
				continue
			}
			watched, w := watch(storetest.Undated(db), false)
			table := storetest.TableName()
			first := storetest.NewTable(t, watched, dynamo.Options{Table: table})
			storetest.Load(t, first, world.Book(t))
			orders := map[commerce.OrderID]commerce.CustomerID{}
			for _, c := range []commerce.CustomerID{"c0", "c1"} {
				for _, id := range placed(t, first, c, 3) {
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
							if err := addressed(store, id, 100*s+n); err != nil {
								t.Errorf("change %s: %v", id, err)
							}
						}
						placed(t, store, customer, 1)
					})
				}
			}
			all.Wait()
			for customer, events := range w.events {
				rising(t, customer, events)
				// 3 orders; of each, every server's changes, and one order more.
				if want := 3 + 3*len(clocks)*(changes+1); len(events) != want {
					t.Errorf("clocks %v: %s has %d events, want %d", clocks, customer, len(events), want)
				}
			}
			storetest.Clean(t, db, table, 1)
		}
	})
}

// Many change one order each, all of one customer, where DynamoDB cancels what is under way at
// once: everybody succeeds.
func TestManyChangesOfOneCustomersOrders(t *testing.T) {
	t.Parallel()
	changers := longtest.Size(8, 16)
	changes := longtest.Size(3, 10)
	world := shoptest.World{Customers: 1, Products: 1, Warehouses: 1, Stock: 1000}
	storetest.Each(t, func(t *testing.T, db *dynamodb.Client) {
		for _, conflict := range []bool{false, true} {
			watched, w := watch(db, conflict)
			table := storetest.TableName()
			store := storetest.NewTable(t, watched, dynamo.Options{Table: table})
			storetest.Load(t, store, world.Book(t))
			orders := placed(t, store, "c0", changers)
			before := w.tries
			began := time.Now()
			var all sync.WaitGroup
			for _, id := range orders {
				all.Go(func() {
					for n := range changes {
						if err := addressed(store, id, n); err != nil {
							t.Errorf("change %s: %v", id, err)
						}
					}
				})
			}
			all.Wait()
			t.Logf("conflicts %v: %d changes, %d transactions, cancelled %v, %v", conflict, changers*changes, w.tries-before, w.cancelled, time.Since(began))
			if !conflict {
				rising(t, "c0", w.events["c0"])
			}
			if got, want := len(w.events["c0"]), changers*(changes+1); got != want {
				t.Errorf("%d events, want %d", got, want)
			}
			storetest.Clean(t, db, table, 1)
		}
	})
}

// A last event that no clock gets behind holds nobody up, and the ids rise anew from the next one.
func TestALastEventOfNoTime(t *testing.T) {
	world := shoptest.World{Customers: 1, Products: 1, Warehouses: 1, Stock: 1000}
	storetest.Each(t, func(t *testing.T, db *dynamodb.Client) {
		for name, eventID := range map[string]types.AttributeValue{
			"far future": text("7ZZZZZZZZZZZZZZZZZZZZZZZZZ"), "no ULID": text("zzz"), "empty": text(""), "missing": nil,
		} {
			t.Run(name, func(t *testing.T) {
				watched, w := watch(db, false)
				r := newRawTable(t, watched, world.Book(t), dynamo.Options{})
				order := placed(t, r.store, "c0", 1)[0]
				r.set("CUSTOMER#c0", "LAST_EVENT", item{"eventId": eventID})
				for n := range 3 {
					if err := addressed(r.store, order, n); err != nil {
						t.Fatalf("change %d: %v", n, err)
					}
				}
				placed(t, r.store, "c0", 1)
				rising(t, "c0", w.events["c0"])
				if len(w.events["c0"]) != 5 {
					t.Errorf("events %v, want 5", w.events["c0"])
				}
				r.checkClean()
			})
		}
	})
}

// What a repair appends to a timeline is the customer's last event, behind what a server with a
// clock ahead has written.
func TestARepairedTimelineGoesOnBehindTheLastEvent(t *testing.T) {
	world := shoptest.World{Customers: 1, Products: 1, Warehouses: 1, Stock: 1000}
	storetest.Each(t, func(t *testing.T, db *dynamodb.Client) {
		watched, w := watch(storetest.Undated(db), false)
		table := storetest.TableName()
		r := newRawTable(t, watched, world.Book(t), dynamo.Options{Table: table})
		ahead, err := dynamo.New(watched, dynamo.Options{Table: table, Clock: func() time.Time { return time.Now().Add(time.Hour) }})
		if err != nil {
			t.Fatal(err)
		}
		repaired, other := placed(t, r.store, "c0", 1)[0], placed(t, ahead, "c0", 1)[0]
		for round := range 3 {
			order := "ORDER#" + string(repaired)
			status := []string{"shipped", "delivered", "shipped"}[round]
			if round == 0 {
				// What was reserved goes with the order.
				r.set("PRODUCT#p0", "WAREHOUSE#w0", item{"quantity": number("999")})
				r.set("PRODUCT#p0", "#METADATA", item{"totalInventory": number("999")})
			}
			r.set(order, "#METADATA", item{"status": text(status), "gsi1pk": text("STATUS#" + status)})
			r.set("CUSTOMER#c0", order, item{"status": text(status)})
			if drifts, summary := r.check(check.Options{Repair: true}); foundText(drifts) != "timeline 1" || summary.Left() > 0 {
				t.Errorf("round %d: found %+v", round, drifts)
			}
			if round == 1 {
				if err := addressed(r.store, other, round); err != nil {
					t.Errorf("change: %v", err)
				}
			}
		}
		rising(t, "c0", w.events["c0"])
		if len(w.events["c0"]) != 6 {
			t.Fatalf("events %v, want 6", w.events["c0"])
		}
		last := r.get("CUSTOMER#c0", "LAST_EVENT")
		if event := r.get("ORDER#"+string(repaired), "EVENT#"+w.events["c0"][5]); event == nil || !reflect.DeepEqual(last["createdAt"], event["createdAt"]) {
			t.Errorf("the last event is %s, in the timeline it is %s", show(last), show(event))
		}
		r.checkClean()
	})
}

// Last events go with an export, so that a table that came in as a file goes on behind them.
func TestAnExportCarriesTheLastEvents(t *testing.T) {
	world := shoptest.World{Customers: 1, Products: 1, Warehouses: 1, Stock: 1000}
	storetest.Each(t, func(t *testing.T, db *dynamodb.Client) {
		watched, w := watch(storetest.Undated(db), false)
		from := storetest.NewTable(t, watched, dynamo.Options{Clock: func() time.Time { return time.Now().Add(time.Hour) }})
		storetest.Load(t, from, world.Book(t))
		placed(t, from, "c0", 2)
		table := storetest.TableName()
		to := storetest.NewTable(t, watched, dynamo.Options{Table: table, Shards: 3})
		imported(t, to, strings.Join(exported(t, from, 1), ""), bulk.ImportOptions{})
		storetest.Clean(t, db, table, 3)
		placed(t, to, "c0", 2)
		rising(t, "c0", w.events["c0"])
		if len(w.events["c0"]) != 4 {
			t.Errorf("events %v, want 4", w.events["c0"])
		}
		storetest.Clean(t, db, table, 3)
	})
}
