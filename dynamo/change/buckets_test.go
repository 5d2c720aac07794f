package change_test

import (
	"errors"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/bulk"
	"github.com/ordergraph/ordergraph/dynamo/check"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/internal/test/longtest"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// mug returns the mug with its complete stock.
func (s reservationFixture) mug() *commerce.Product {
	s.t.Helper()
	p, err := dynamo.ReadRecord(s.t.Context(), s.Consistent(), model.ProductBySKU, "mug")
	if err != nil {
		s.t.Fatal(err)
	}
	rest, err := s.Consistent().SumStockBuckets(s.t.Context(), []dynamo.StockBucketsOf{{SKU: "mug", Buckets: p.StockBuckets}})
	if err != nil || rest[0].Err != nil {
		s.t.Fatal(err, rest)
	}
	return p.AddBuckets(rest[0].Value)
}

func (s reservationFixture) setBuckets(n int) {
	s.t.Helper()
	if _, err := s.UpdateProduct(s.t.Context(), staff, commerce.ProductChange{SKU: "mug", StockBuckets: &n}); err != nil {
		s.t.Error(err)
	}
}

func (s reservationFixture) setStock(n int) {
	s.t.Helper()
	if _, err := s.SetInventoryLevel(s.t.Context(), staff, commerce.InventoryLevelChange{SKU: "mug", WarehouseID: "w", Quantity: new(n)}); err != nil {
		s.t.Fatal(err)
	}
}

// soldOut reports whether an order was refused because of the stock. Any other error fails the test.
// available is the number of available units in the error.
func (s reservationFixture) soldOut(err error) (available int, soldOut bool) {
	s.t.Helper()
	for _, refusal := range commerce.UserErrorsOf(err) {
		if stock, ok := refusal.(commerce.InsufficientStock); ok {
			return stock.Available, true
		}
	}
	if err != nil {
		s.t.Error(err)
	}
	return 0, err != nil
}

// Clients buy single units while the number of buckets changes. Each of them gets a unit until all
// units are sold.
func TestOrdersSellEveryUnitOfAllBuckets(t *testing.T) {
	storetest.ForEachEngine(t, func(t *testing.T, db *dynamodb.Client) {
		s := newReservationFixture(t, db, commerce.ReservationLimits{})
		stock := longtest.Size(200, 1000)
		s.setStock(stock)
		s.setBuckets(16)
		var sold atomic.Int64
		var clients sync.WaitGroup
		for range 6 {
			clients.Go(func() {
				for {
					if left, soldOut := s.soldOut(secondOf(s.place(ann, 1))); soldOut {
						if left != 0 {
							t.Errorf("an order of 1 unit was refused, although %d are available", left)
						}
						return
					}
					sold.Add(1)
				}
			})
		}
		clients.Go(func() {
			for _, n := range []int{1, 16, 3, 8} {
				s.setBuckets(n)
			}
		})
		clients.Wait()
		if left := s.mug().Available; int(sold.Load()) != stock || left != 0 {
			t.Errorf("%d of %d units were sold, and %d are left", sold.Load(), stock, left)
		}
		storetest.AssertConsistent(t, db, storetest.StoreTableName(t, s.Store), 1)
	})
}

func secondOf[A, B any](_ A, b B) B { return b }

// Clients place, change and cancel orders of random quantities while the price, the stock and the number
// of buckets change. No unit is lost or sold twice.
func TestStockOfBucketsIsExact(t *testing.T) {
	storetest.ForEachEngine(t, func(t *testing.T, db *dynamodb.Client) {
		s := newReservationFixture(t, db, commerce.ReservationLimits{})
		s.setBuckets(8)
		var clients sync.WaitGroup
		for range 5 {
			clients.Go(func() {
				for range longtest.Size(12, 60) {
					o, err := s.place(ann, 1+rand.IntN(60))
					if _, soldOut := s.soldOut(err); soldOut {
						continue
					}
					switch rand.IntN(4) {
					case 0:
						s.move(staff, o, commerce.Cancelled)
					case 1:
						s.soldOut(s.setUnits(o, 1+rand.IntN(60)))
					case 2:
						s.move(staff, o, commerce.Confirmed)
						s.move(staff, o, commerce.Shipped)
					}
				}
			})
		}
		clients.Go(func() {
			for i := range longtest.Size(8, 40) {
				price := commerce.Price{Amount: "1", Currency: "USD"}
				switch i % 4 {
				case 0:
					s.setBuckets(1 + rand.IntN(16))
				case 1:
					s.setBuckets(1)
				case 2:
					if _, err := s.UpdateProduct(t.Context(), staff, commerce.ProductChange{SKU: "mug", UnitPrice: &price, Category: new("C" + string(rune('a'+i%26)))}); err != nil {
						t.Error(err)
					}
				case 3:
					if _, err := s.AdjustInventory(t.Context(), staff, commerce.InventoryAdjustment{SKU: "mug", WarehouseID: "w", Delta: 1 + rand.IntN(300)}); err != nil {
						t.Error(err)
					}
				}
			}
		})
		clients.Wait()
		// An order for all units takes them from several buckets.
		s.setBuckets(16)
		if left := s.mug().Available; left > 0 {
			if _, err := s.place(staff, left); err != nil {
				t.Errorf("an order for the last %d units: %v", left, err)
			}
		}
		if _, soldOut := s.soldOut(secondOf(s.place(staff, 1))); !soldOut {
			t.Error("an order got a unit that does not exist")
		}
		table := storetest.StoreTableName(t, s.Store)
		before := storetest.AssertConsistent(t, db, table, 1)

		// An import of the records gives the same stock.
		copied := reservationFixture{storetest.NewTable(t, db, dynamo.Options{}), t}
		storetest.Import(t, copied.Store, strings.Join(storetest.Export(t, s.Store, 1), ""), bulk.ImportOptions{})
		after := storetest.AssertConsistent(t, db, storetest.StoreTableName(t, copied.Store), 1)
		if len(before.Records) != len(after.Records) || *copied.mug().OrderCount != *s.mug().OrderCount {
			t.Errorf("the imported table has %d records, want %d", len(after.Records), len(before.Records))
		}
	})
}

// withHook returns a client of the same table. Before or after its first transaction, it calls hook.
func (s reservationFixture) withHook(db *dynamodb.Client, when string, hook func()) reservationFixture {
	var once sync.Once
	client := dynamodb.New(db.Options(), func(o *dynamodb.Options) {
		next := o.HTTPClient
		o.HTTPClient = storetest.HTTPFunc(func(r *http.Request) (*http.Response, error) {
			writes := strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".TransactWriteItems")
			if writes && when == "before" {
				once.Do(hook)
			}
			response, err := next.Do(r)
			if writes && when == "after" {
				once.Do(hook)
			}
			return response, err
		})
	})
	return reservationFixture{storetest.StoreWithClient(s.t, s.Store, client, dynamo.Options{}), s.t}
}

// Between two reads of an order, all units move to the other bucket. The order finds them.
func TestOrderFindsUnitsThatMove(t *testing.T) {
	storetest.ForEachEngine(t, func(t *testing.T, db *dynamodb.Client) {
		s := newReservationFixture(t, db, commerce.ReservationLimits{})
		for i := range 12 { // a hash of the order's ID chooses the first bucket, and one of them shows the error
			s.setStock(5)
			s.setBuckets(2)
			client := s.withHook(db, "after", func() { s.setBuckets(1) })
			o, err := client.place(ann, 5) // more than one bucket contains
			if err != nil {
				t.Fatalf("order %d: %v", i, err)
			}
			s.move(staff, o, commerce.Cancelled)
		}
		storetest.AssertConsistent(t, db, storetest.StoreTableName(t, s.Store), 1)
	})
}

// Between the read and the transaction of an order, the price changes. The order gets the new price.
func TestOrderFromABucketHasTheCurrentPrice(t *testing.T) {
	storetest.ForEachEngine(t, func(t *testing.T, db *dynamodb.Client) {
		s := newReservationFixture(t, db, commerce.ReservationLimits{})
		s.setBuckets(4)
		for i := range 4 {
			price := commerce.Price{Amount: strconv.Itoa(2 + i), Currency: "USD"}
			client := s.withHook(db, "before", func() {
				if _, err := s.UpdateProduct(t.Context(), staff, commerce.ProductChange{SKU: "mug", UnitPrice: &price}); err != nil {
					t.Error(err)
				}
			})
			if o, err := client.place(ann, 1); err != nil || o.Total.Decimal() != price.Amount+".00" {
				t.Fatalf("the order costs %v, want %s: %v", o, price.Amount, err)
			}
		}
	})
}

// Other software changes the price without the buckets. Orders have the new price. A repair corrects the
// versions of the buckets, and writes a lost bucket again.
func TestOtherSoftwareChangesAProductWithBuckets(t *testing.T) {
	storetest.ForEachEngine(t, func(t *testing.T, db *dynamodb.Client) {
		s := newReservationFixture(t, db, commerce.ReservationLimits{})
		r := storetest.RawTable{T: t, DB: db, Name: storetest.StoreTableName(t, s.Store), Store: s.Store}
		s.setBuckets(4)
		r.SetWithEdges("PRODUCT#mug", "#METADATA", storetest.Item{"unitPrice": storetest.Num("2"), "version": storetest.Num("3")})
		for range 8 {
			o, err := s.place(ann, 10)
			if err != nil || o.Total.Decimal() != "20.00" {
				t.Fatalf("the order costs %v: %v", o, err)
			}
		}
		if n := s.mug().Available; n != 920 {
			t.Errorf("%d units are available, want 920", n)
		}
		r.Delete("STOCK#mug#2", "#METADATA")
		found, summary := r.Check(check.Options{Repair: true})
		if !strings.Contains(storetest.FormatKindCounts(found), "stock-bucket 3") || summary.UnrepairedCount() > 0 {
			t.Errorf("the check finds %s", storetest.FormatKindCounts(found))
		}
		storetest.AssertConsistent(t, db, r.Name, 1)
	})
}

// In a table of an earlier version, products get buckets only after a command has stopped the servers
// that do not know buckets.
func TestBucketsNeedServersThatKnowThem(t *testing.T) {
	db := storetest.Engines()[0].Client(t)
	s := newReservationFixture(t, db, commerce.ReservationLimits{})
	r := storetest.RawTable{T: t, DB: db, Name: storetest.StoreTableName(t, s.Store), Store: s.Store}
	if layout := storetest.FormatItem(r.Get("LAYOUT", "#METADATA")); !strings.Contains(layout, "stockBucket.available readable") {
		t.Errorf("the layout of a new table is %s", layout)
	}
	r.Set("LAYOUT", "#METADATA", storetest.Item{"derivations": nil})
	old := reservationFixture{storetest.StoreWithClient(t, s.Store, db, dynamo.Options{}), t}
	if err := old.CheckTable(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err := old.UpdateProduct(t.Context(), staff, commerce.ProductChange{SKU: "mug", StockBuckets: new(2)})
	if missing, ok := errors.AsType[*model.DerivationUnavailable](err); !ok || !strings.Contains(missing.Error(), "`ordergraph table apply stockBucket.available`") {
		t.Errorf("the change returns %v", err)
	}
	if _, err := old.place(ann, 1); err != nil {
		t.Error(err)
	}
}
