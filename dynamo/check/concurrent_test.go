package check_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/change"
	"github.com/ordergraph/ordergraph/dynamo/check"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// repairConcurrently repairs the table. Another client makes change between the reads and the
// writes of the repair. A transaction that only adds sums that are not stored yet is no repair.
func repairConcurrently(r storetest.RawTable, change func()) ([]check.Inconsistency, check.Summary) {
	changed := false
	return r.WithHTTPHook(func(operation string, _ int, body string) *http.Response {
		writes := strings.Count(body, `"Update":`) + strings.Count(body, `"Put":`) + strings.Count(body, `"Delete":`)
		onlySums := strings.Contains(body, model.AttrReservationsCounted) && writes == 1
		if operation == "TransactWriteItems" && !changed && !onlySums {
			changed = true
			change()
		}
		return nil
	}).Check(check.Options{Repair: true})
}

// A record may have more attributes than a condition compares. The condition includes the
// attributes that change with every sale.
func TestRepairDuringASaleOfAProductWithManyAttributes(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		r := storetest.NewRawTable(t, db, storetest.SmallDataset(t, 30), dynamo.Options{})
		right := r.Get("PRODUCT#p00", "#METADATA")["available"]
		wrong := storetest.Item{"available": storetest.Num("50"), "stockRevision": storetest.Num("3")}
		for i := range 125 {
			wrong[fmt.Sprintf("a%03d", i)] = storetest.Str("x")
		}
		r.Set("PRODUCT#p00", "#METADATA", wrong)
		_, summary := repairConcurrently(r, func() {
			_, err := r.Store.PlaceOrder(t.Context(), change.Caller{Name: "test"}, commerce.OrderRequest{
				CustomerID: "c1", Lines: []commerce.OrderLine{{SKU: "p00", Quantity: 7}},
			})
			if err != nil {
				t.Error(err)
			}
		})
		if summary.UnrepairedCount() > 0 || summary.Unverified > 0 {
			t.Errorf("%d left, %d unverified", summary.UnrepairedCount(), summary.Unverified)
		}
		before, after := 0, 0
		_, _ = fmt.Sscan(fmt.Sprint(storetest.CanonicalNumber(right)), &before)
		_, _ = fmt.Sscan(fmt.Sprint(storetest.CanonicalNumber(r.Get("PRODUCT#p00", "#METADATA")["available"])), &after)
		if after != before-7 {
			t.Errorf("available is %d, want %d-7", after, before)
		}
		r.CheckClean()
	})
}

// A mutation may only add attributes, so that it changes nothing that a repair has read.
func TestRepairDuringAMutationThatAddsAttributes(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		r := storetest.NewRawTable(t, db, storetest.SmallDataset(t, 30), dynamo.Options{})
		order := commerce.OrderID(storetest.SmallOrderID(0))
		mutate := func() {
			if err := storetest.ChangeAddress(r.Store, order, 1); err != nil {
				t.Error(err)
			}
		}
		mutate()
		r.Check(check.Options{Repair: true}) // count the open orders
		r.Set("ORDER#"+string(order), "#METADATA", storetest.Item{"shippingAddress": nil, "version": nil, "updatedAt": nil})
		r.Set("CUSTOMER#c1", "ORDER#"+string(order), storetest.Item{"version": nil, "updatedAt": nil})
		var mutated map[string]storetest.Item
		repairConcurrently(r, func() {
			mutate()
			mutated = r.All()
		})
		if changed := storetest.DifferingKeys(mutated, r.All()); len(changed) > 0 {
			t.Errorf("the repair changed %q, which a concurrent mutation had written", changed)
		}
		r.CheckClean()
	})
}

// Placing an order does not write the record of a customer without an order count. A repair that
// writes the first count must still detect the order.
func TestOrderPlacedDuringTheFirstCount(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		r := newTableWithoutOrderCount(t, db, 27, 380_000)
		r.Put(storetest.Item{"pk": storetest.Str("PRODUCT#p0"), "sk": storetest.Str("#METADATA"), "sku": storetest.Str("p0"), "name": storetest.Str("P"), "unitPrice": storetest.Num("1"), "available": storetest.Num("5")})
		server := r.Store
		r.DB = storetest.WithCountLimit(db, 2)
		_, summary := repairConcurrently(r, func() { storetest.PlaceOrders(t, server, "c1", 1) })
		if got := storetest.CanonicalNumber(r.Get("CUSTOMER#c1", "#METADATA")["orderCount"]); fmt.Sprint(got) != "28" || summary.UnrepairedCount() > 0 {
			t.Errorf("orderCount is %v of 28 orders, %d left", got, summary.UnrepairedCount())
		}
	})
}

// Wrong order counts of a product and an account rep become exact, also if orders are placed
// between the count and the repair.
func TestOrderPlacedDuringCountsOfProductAndRep(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		r := storetest.NewRawTable(t, db, storetest.SmallDataset(t, 3), dynamo.Options{})
		if _, err := r.Store.SetInventoryLevel(t.Context(), change.Caller{}, commerce.InventoryLevelChange{SKU: "p01", WarehouseID: "w1", Quantity: new(500)}); err != nil {
			t.Fatal(err)
		}
		r.Set("PRODUCT#p01", "#METADATA", storetest.Item{"orderCount": storetest.Num("77")})
		for i := range model.RepOrderCountParts {
			r.Put(model.RepOrderCountRecord(&model.KeyBuilder{}, commerce.RepOrderCount{EmployeeID: "e1", Part: fmt.Sprint(i), Complete: i == 0, Orders: 9}))
		}
		placed, repairs := 0, 0
		inconsistencies, summary := r.WithHTTPHook(func(operation string, _ int, _ string) *http.Response {
			// The order of repairs is: the product, the product again after the order, the account rep.
			if operation != "TransactWriteItems" {
				return nil
			}
			if repairs++; repairs%2 == 0 || placed == 2 {
				return nil
			}
			placed++
			if _, err := r.Store.PlaceOrder(t.Context(), change.Caller{Name: "t"}, commerce.OrderRequest{CustomerID: "c1", Lines: []commerce.OrderLine{{SKU: "p01", Quantity: 1}}}); err != nil {
				t.Error(err)
			}
			return nil
		}).Check(check.Options{Repair: true})
		if got := storetest.FormatKindCounts(inconsistencies); got != fmt.Sprintf("order-count %d", 1+model.RepOrderCountParts) || summary.UnrepairedCount() > 0 || placed != 2 {
			t.Errorf("found %s, %d left, %d orders placed", got, summary.UnrepairedCount(), placed)
		}
		r.CheckClean()
	})
}

// A repair assigns a claim to its customer. Meanwhile the customer whom the claim names takes its
// address.
func TestClaimTakenDuringItsRepair(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		r := storetest.NewRawTable(t, db, storetest.SmallDataset(t, 30), dynamo.Options{})
		r.Set("EMAIL#ann@example.com", "#METADATA", storetest.Item{"customerId": storetest.Str("c2")})
		address := "ann@example.com"
		inconsistencies, _ := repairConcurrently(r, func() {
			if _, err := r.Store.UpdateCustomer(t.Context(), change.Caller{Name: "t"}, commerce.CustomerChange{ID: "c2", Email: &address}); err != nil {
				t.Error(err)
			}
		})
		if got := storetest.FormatKindCounts(inconsistencies); !strings.Contains(got, "value-shared 1") {
			t.Errorf("found %s", got)
		}
		if claim := storetest.FormatItem(r.Get("EMAIL#ann@example.com", "#METADATA")); !strings.Contains(claim, "customerId=c2 ") {
			t.Errorf("the email claim is %s, want c2 as its customer", claim)
		}
	})
}

// An order's own record is readable. Another customer's partition has a leftover copy, which is
// older than the record or names the right customer.
func TestLeftoverCopyDoesNotTakeTheOrder(t *testing.T) {
	order := "ORDER#" + storetest.SmallOrderID(0)
	for name, left := range map[string]storetest.Item{
		"older":                {"customerId": storetest.Str("c2"), "version": storetest.Num("0")},
		"earlier":              {"customerId": storetest.Str("c2"), "updatedAt": storetest.Str("2020-01-01T00:00:00.000Z")},
		"of the same customer": {},
	} {
		t.Run(name, func(t *testing.T) {
			storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
				r := storetest.NewRawTable(t, db, storetest.SmallDataset(t, 30), dynamo.Options{})
				for k := range r.All() {
					if pk, sk, _ := strings.Cut(k, " "); pk == order && strings.HasPrefix(sk, "ITEM#") {
						r.Set(pk, sk, storetest.Item{"customerId": nil})
					}
				}
				copied := r.Get("CUSTOMER#c1", order)
				r.Delete("CUSTOMER#c1", order)
				copied["pk"] = storetest.Str("CUSTOMER#c2")
				for attribute, value := range left {
					copied[attribute] = value
				}
				r.Put(copied)
				_, summary := r.Check(check.Options{Repair: true})
				if r.Get("CUSTOMER#c1", order) == nil || r.Get("CUSTOMER#c2", order) != nil || summary.UnrepairedCount() > 0 {
					t.Errorf("the copies are %s and %s, %d left", storetest.FormatItem(r.Get("CUSTOMER#c1", order)), storetest.FormatItem(r.Get("CUSTOMER#c2", order)), summary.UnrepairedCount())
				}
				r.CheckClean()
			})
		})
	}
}

// Only the claim of the address and orders are left of a customer.
func TestStandInKeepsTheAddressOfItsClaim(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		r := storetest.NewRawTable(t, db, storetest.SmallDataset(t, 30), dynamo.Options{})
		for _, sk := range []string{"#METADATA", "REP", "NAME", "EMAIL"} {
			r.Delete("CUSTOMER#c1", sk)
		}
		_, summary := r.Check(check.Options{Repair: true, Restore: true})
		if customer := storetest.FormatItem(r.Get("CUSTOMER#c1", "#METADATA")); !strings.Contains(customer, "email=ann@example.com ") || summary.UnrepairedCount() > 0 {
			t.Errorf("the customer is %s, %d left", customer, summary.UnrepairedCount())
		}
		r.CheckClean()
	})
}

// Some candidates of a table are verified during the scan. A record that could be
// deleted then may belong to a record that the scan reads later.
func TestNoDeletionBeforeTheEndOfTheScan(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		r := storetest.NewRawTable(t, db, storetest.SmallDataset(t, 30), dynamo.Options{})
		order := "ORDER#" + storetest.SmallOrderID(storetest.BigOrderNumber)
		healthy := r.All()
		// Only the copy has the order's customer.
		r.Delete(order, "#METADATA")
		for k := range healthy {
			if pk, sk, _ := strings.Cut(k, " "); pk == order && strings.HasPrefix(sk, "ITEM#") {
				r.Set(pk, sk, storetest.Item{"customerId": nil})
			}
		}
		segments := scanOrderFirst(&r, order, "CUSTOMER#c1")
		_, summary := r.Check(check.Options{Repair: true, MaxCandidates: 1, Segments: segments})
		if summary.UnrepairedCount() > 0 || summary.Unverified > 0 {
			t.Errorf("%d left, %d unverified", summary.UnrepairedCount(), summary.Unverified)
		}
		now := r.All()
		for k := range healthy {
			if now[k] == nil {
				t.Errorf("%s is lost", k)
			}
		}
	})
}

// separatingSegments returns a number of segments that separates two partitions, the segments of
// the two, and the number of pages in the segment of the first. At least three of the pages follow
// the partition.
func separatingSegments(t testing.TB, db *dynamodb.Client, table, first, second string) (segments, ofFirst, ofSecond int32, pages int) {
	t.Helper()
	for segments = 2; segments < 32; segments++ {
		ofFirst, ofSecond = -1, -1
		after := 0
		for segment := range segments {
			in := &dynamodb.ScanInput{TableName: &table, Segment: aws.Int32(segment), TotalSegments: aws.Int32(segments)}
			for n := 1; ; n++ {
				out, err := db.Scan(t.Context(), in)
				if err != nil {
					t.Fatal(err)
				}
				for _, rec := range out.Items {
					if strings.HasPrefix(storetest.KeyText(rec), first+" ") {
						ofFirst, after = segment, n
					}
					if strings.HasPrefix(storetest.KeyText(rec), second+" ") {
						ofSecond = segment
					}
				}
				if in.ExclusiveStartKey = out.LastEvaluatedKey; in.ExclusiveStartKey == nil {
					if ofFirst == segment {
						pages = n
					}
					break
				}
			}
		}
		if ofFirst != ofSecond && pages >= after+3 {
			return segments, ofFirst, ofSecond, pages
		}
	}
	t.Fatal("no number of segments separates the two partitions with three pages after the first")
	return 0, 0, 0, 0
}

// The stock of a product is spread over two buckets after the scan has passed them. The check still
// counts both.
func TestStockSpreadAfterTheScan(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		r := storetest.NewRawTable(t, db, storetest.SmallDataset(t, 30), dynamo.Options{})
		var right int
		_, _ = fmt.Sscan(fmt.Sprint(storetest.CanonicalNumber(r.Get("PRODUCT#p00", "#METADATA")["available"])), &right)
		r.Set("PRODUCT#p00", "#METADATA", storetest.Item{"available": storetest.Num("50")})
		spread := false
		found, _ := r.WithHTTPHook(func(operation string, _ int, _ string) *http.Response {
			if operation != "Scan" && operation != "DescribeTable" && !spread {
				spread = true
				if _, err := r.Store.UpdateProduct(t.Context(), change.Caller{}, commerce.ProductChange{SKU: "p00", StockBuckets: new(2)}); err != nil {
					t.Error(err)
				}
			}
			return nil
		}).Check(check.Options{})
		shares := commerce.SpreadStock(right, 2)
		want := []string{fmt.Sprintf("PRODUCT#p00 available is 25, should be %d", shares[0]), fmt.Sprintf("STOCK#p00#1 available is 25, should be %d", shares[1])}
		var got []string
		for _, i := range found {
			got = append(got, i.PK+" "+i.Detail)
		}
		if slices.Sort(got); !spread || !slices.Equal(got, want) {
			t.Errorf("check found %q, want %q", got, want)
		}
	})
}
