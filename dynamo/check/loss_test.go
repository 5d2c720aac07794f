package check_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/check"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// scanOrderFirst delays the scan of the customer's segment until the order's segment has been
// read, and returns the number of segments. Pages have few records.
func scanOrderFirst(r *storetest.RawTable, order, customer string) int {
	r.T.Helper()
	for i := range 200 {
		r.Put(storetest.ItemKey(fmt.Sprintf("OTHER#%03d", i), "x"))
	}
	small := storetest.WithScanLimit(r.DB, 2)
	segments, ofOrder, ofCustomer, pages := separatingSegments(r.T, small, r.Name, order, customer)
	var mu sync.Mutex
	read, gate := 0, make(chan struct{})
	r.Store = storetest.StoreWithClient(r.T, r.Store, storetest.WithRequestHook(small, func(ctx context.Context, in any) error {
		scan, ok := in.(*dynamodb.ScanInput)
		switch {
		case !ok:
		case aws.ToInt32(scan.Segment) == ofOrder:
			mu.Lock()
			defer mu.Unlock()
			if read++; read == pages {
				close(gate)
			}
		case aws.ToInt32(scan.Segment) == ofCustomer:
			select {
			case <-gate:
			case <-ctx.Done():
			}
		}
		return nil
	}), dynamo.Options{})
	return int(segments)
}

// Only the embedded list is left of an order's items, and it is longer than a transaction. The
// total does not confirm the list. A partial repair would make the rest of the list look wrong.
func TestLongListIsNotRepairedPartially(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		r := storetest.NewRawTable(t, db, storetest.SmallDataset(t, 30), dynamo.Options{})
		order := "ORDER#" + storetest.SmallOrderID(3)
		list := &types.AttributeValueMemberL{}
		for i := range 150 {
			list.Value = append(list.Value, &types.AttributeValueMemberM{Value: storetest.Item{
				"productId": storetest.Str(fmt.Sprintf("x%03d", i)), "name": storetest.Str("X"), "qty": storetest.Num("1"), "price": storetest.Num("1"),
			}})
		}
		for _, sku := range []string{"p00", "p01", "p02"} {
			r.Delete(order, "ITEM#"+sku)
		}
		for _, pk := range []string{order, "CUSTOMER#c2"} {
			sk := order
			if pk == order {
				sk = "#METADATA"
			}
			r.Set(pk, sk, storetest.Item{"items": list, "total": storetest.Num("155"), "itemCount": nil})
		}
		r.Check(check.Options{Repair: true}) // counts what open orders reserve
		before := r.All()
		inconsistencies, _ := r.Check(check.Options{Repair: true})
		changed := storetest.DifferingKeys(before, r.All())
		// The lists of the three products have one order less.
		if changed = slices.DeleteFunc(changed, func(k string) bool { return strings.HasPrefix(k, "PRODUCT#") }); len(changed) > 0 {
			t.Errorf("the repair changed %d records", len(changed))
		}
		if len(inconsistencies) == 0 || !strings.Contains(inconsistencies[0].Detail, "set the order's total") {
			t.Errorf("found %s", storetest.FormatKindCounts(inconsistencies))
		}
		for _, pk := range []string{order, "CUSTOMER#c2"} {
			sk := order
			if pk == order {
				sk = "#METADATA"
			}
			r.Set(pk, sk, storetest.Item{"total": storetest.Num("150")})
		}
		if _, summary := r.Check(check.Options{Repair: true}); summary.UnrepairedCount() > 0 || r.Get(order, "ITEM#x149") == nil {
			t.Errorf("with a total that matches the items, the repair left %d inconsistencies or lost an item", summary.UnrepairedCount())
		}
		r.CheckClean()
	})
}

// An order names the wrong customer, the maximum of candidates is low, and the copy is read last.
func TestOrderIsNotMovedBeforeItsCopyIsRead(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		r := storetest.NewRawTable(t, db, storetest.SmallDataset(t, 30), dynamo.Options{})
		order := "ORDER#" + storetest.SmallOrderID(0)
		r.Set(order, "#METADATA", storetest.Item{"customerId": storetest.Str("c9")})
		for _, sku := range []string{"p00", "p01", "p02"} {
			r.Set(order, "ITEM#"+sku, storetest.Item{"customerId": nil})
		}
		segments := scanOrderFirst(&r, order, "CUSTOMER#c1")
		r.Check(check.Options{Repair: true, MaxCandidates: 1, Segments: segments})
		if own := storetest.FormatItem(r.Get(order, "#METADATA")); !strings.Contains(own, "customerId=c1 ") || r.Get("CUSTOMER#c1", order) == nil || r.Get("CUSTOMER#c9", "#METADATA") != nil {
			t.Errorf("the order is %s, its copy %s", own, storetest.FormatItem(r.Get("CUSTOMER#c1", order)))
		}
	})
}

// An order that is verified twice does not hide a wrong stock that differs by what the order holds.
func TestOrderWithTwoCopiesHidesNoWrongStock(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		for _, repair := range []bool{false, true} {
			r := storetest.NewRawTable(t, db, storetest.SmallDataset(t, 30), dynamo.Options{})
			order := "ORDER#" + storetest.SmallOrderID(0)
			copied := r.Get("CUSTOMER#c1", order)
			copied["pk"], copied["customerId"] = storetest.Str("CUSTOMER#c2"), storetest.Str("c2")
			r.Put(copied)
			for i, sku := range []string{"p00", "p01", "p02"} {
				available := 0
				_, _ = fmt.Sscan(fmt.Sprint(storetest.CanonicalNumber(r.Get("PRODUCT#"+sku, "#METADATA")["available"])), &available)
				r.Set("PRODUCT#"+sku, "#METADATA", storetest.Item{"available": storetest.Num(fmt.Sprint(available - i - 1))})
			}
			_, summary := r.Check(check.Options{Repair: repair})
			if summary.Found["stock-available"] != 3 || repair && summary.UnrepairedCount() > 0 {
				t.Errorf("found %v, %d left", summary.Found, summary.UnrepairedCount())
			}
			if repair {
				r.CheckClean()
			}
		}
	})
}

// The records are lost, and the remaining edges lack an attribute. They are reported and kept.
func TestIncompleteEdgesAreKept(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		r := storetest.NewRawTable(t, db, storetest.SmallDataset(t, 30), dynamo.Options{})
		r.Check(check.Options{Repair: true}) // counts what open orders reserve
		for _, sk := range []string{"NAME", "TITLE", "WAREHOUSE"} {
			r.Set("EMPLOYEE#e1", sk, storetest.Item{"hireDate": nil})
		}
		for _, sk := range []string{"REP", "NAME", "EMAIL"} {
			r.Set("CUSTOMER#c1", sk, storetest.Item{"name": nil})
		}
		r.Delete("EMPLOYEE#e1", "#METADATA")
		r.Delete("CUSTOMER#c1", "#METADATA")
		before := r.All()
		inconsistencies, summary := r.Check(check.Options{Repair: true, Restore: true})
		if changed := storetest.DifferingKeys(before, r.All()); len(changed) > 0 {
			t.Errorf("the repair changed %q", changed)
		}
		if got := storetest.FormatKindCounts(inconsistencies); got != "unreadable 6" || summary.ByHand != 6 {
			t.Errorf("found %s, %d of them to repair by hand", got, summary.ByHand)
		}
	})
}

// Only unreadable orders name the customer whom the claim names.
func TestTheClaimOfAnUnreadableOrdersCustomerIsKept(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		r := storetest.NewRawTable(t, db, storetest.SmallDataset(t, 30), dynamo.Options{})
		for n := range storetest.SmallOrderCount {
			if order := "ORDER#" + storetest.SmallOrderID(n); r.Get("CUSTOMER#c2", order) != nil {
				r.Delete("CUSTOMER#c2", order)
				r.Set(order, "#METADATA", storetest.Item{"total": storetest.Str("155")})
			}
		}
		r.Delete("CUSTOMER#c2", "#METADATA")
		r.Check(check.Options{Repair: true, Restore: true})
		if r.Get("EMAIL#bob@example.com", "#METADATA") == nil {
			t.Error("the claim is lost")
		}
	})
}

// A list names a product twice, and there are no item records. So the right line is unknown.
func TestProductTwiceInAListIsReported(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		r := storetest.NewRawTable(t, db, storetest.SmallDataset(t, 30), dynamo.Options{})
		order := "ORDER#" + storetest.SmallOrderID(3)
		line := func(quantity string) types.AttributeValue {
			return &types.AttributeValueMemberM{Value: storetest.Item{"productId": storetest.Str("p00"), "name": storetest.Str("Thing"), "qty": storetest.Num(quantity), "price": storetest.Num("2.5")}}
		}
		for _, sku := range []string{"p00", "p01", "p02"} {
			r.Delete(order, "ITEM#"+sku)
		}
		twice := storetest.Item{"items": &types.AttributeValueMemberL{Value: []types.AttributeValue{line("1"), line("2")}}, "total": storetest.Num("7.5"), "itemCount": nil}
		r.Set(order, "#METADATA", twice)
		r.Set("CUSTOMER#c2", order, twice)
		inconsistencies, summary := r.Check(check.Options{Repair: true})
		if summary.UnrepairedCount() == 0 || summary.UnrepairedCount() != summary.ByHand || !strings.Contains(fmt.Sprint(inconsistencies), "contains product p00 twice") {
			t.Errorf("found %+v, %d left, %d of them to repair by hand", inconsistencies, summary.UnrepairedCount(), summary.ByHand)
		}
	})
}

// Other software adds members to the maps in a record. A repair keeps them when it restores the
// record and when it sets another member.
func TestRepairsKeepMembersOfOtherSoftware(t *testing.T) {
	withMember := func(v types.AttributeValue, name string, value types.AttributeValue) types.AttributeValue {
		members := maps.Clone(v.(*types.AttributeValueMemberM).Value)
		members[name] = value
		return &types.AttributeValueMemberM{Value: members}
	}
	order := "ORDER#" + storetest.SmallOrderID(0)
	records := [][2]string{{order, "#METADATA"}, {"CUSTOMER#c1", order}}
	for name, damage := range map[string]func(r storetest.RawTable){
		"own record": func(r storetest.RawTable) { r.Delete(order, "#METADATA") },
		"copy":       func(r storetest.RawTable) { r.Delete("CUSTOMER#c1", order) },
		"list": func(r storetest.RawTable) {
			for _, k := range records {
				lines := slices.Clone(r.Get(k[0], k[1])["items"].(*types.AttributeValueMemberL).Value)
				lines[0] = withMember(lines[0], "qty", storetest.Num("9"))
				r.Set(k[0], k[1], storetest.Item{"items": &types.AttributeValueMemberL{Value: lines}})
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
				r := storetest.NewRawTable(t, db, storetest.SmallDataset(t, 30), dynamo.Options{})
				for _, k := range records {
					rec := r.Get(k[0], k[1])
					lines := slices.Clone(rec["items"].(*types.AttributeValueMemberL).Value)
					for i := range lines {
						lines[i] = withMember(lines[i], "colour", storetest.Str("red"))
					}
					r.Set(k[0], k[1], storetest.Item{"shippingAddress": withMember(rec["shippingAddress"], "phone", storetest.Str("555")), "items": &types.AttributeValueMemberL{Value: lines}})
				}
				healthy := r.All()
				damage(r)
				r.Check(check.Options{Repair: true})
				if changed := storetest.DifferingKeys(healthy, withoutStockRevisions(r.All())); len(changed) > 0 {
					t.Errorf("after the repair, these records differ from before the damage: %q", changed)
				}
			})
		})
	}
}

// A repair of few, large records exceeds the size of a transaction.
func TestARepairOfLargeRecords(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		r := storetest.NewRawTable(t, db, storetest.SmallDataset(t, 30), dynamo.Options{})
		for i := range 14 {
			r.Set("ORDER#"+storetest.SmallOrderID(storetest.BigOrderNumber), fmt.Sprintf("ITEM#p%02d", i), storetest.Item{"picture": storetest.Str(strings.Repeat("x", 390_000)), "gsi1pk": storetest.Str("WRONG")})
		}
		if _, summary := r.Check(check.Options{Repair: true}); summary.UnrepairedCount() > 0 || summary.Found["index-keys"] != 14 {
			t.Errorf("found %v, %d left", summary.Found, summary.UnrepairedCount())
		}
		r.CheckClean()
	})
}

// More orders have lost their own records than the check can remember. The stock that they may hold
// is not repaired.
func TestStockOfAbandonedOrdersIsNotRepaired(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		r := storetest.NewRawTable(t, db, storetest.SmallDataset(t, 30), dynamo.Options{})
		order := "ORDER#" + storetest.SmallOrderID(0)
		alone := r.Get(order, "ITEM#p00")
		for n := range 20 {
			alone["pk"] = storetest.Str("ORDER#" + storetest.ULIDAt(storetest.FirstOrderTime(), 9000+n))
			r.Put(alone)
		}
		r.Delete(order, "#METADATA")
		r.Delete("ORDER#"+storetest.SmallOrderID(1), "#METADATA")
		before := map[string]string{}
		for _, sku := range []string{"p00", "p01", "p02"} {
			before[sku] = storetest.FormatItem(r.Get("PRODUCT#"+sku, "#METADATA"))
		}
		few := r
		few.Store = storetest.StoreWithClient(t, r.Store, storetest.WithScanLimit(db, 3), dynamo.Options{})
		if _, summary := few.Check(check.Options{Repair: true, MaxCandidates: 1}); summary.Unverified == 0 {
			t.Error("no record is unverified")
		}
		for sku, product := range before {
			if now := storetest.FormatItem(r.Get("PRODUCT#"+sku, "#METADATA")); now != product {
				t.Errorf("the repair changed the product to\n%s\nfrom\n%s", now, product)
			}
		}
	})
}

// The order's own record is lost, and two customers have a copy. The items name the right customer.
func TestItemsNameTheOwner(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		r := storetest.NewRawTable(t, db, storetest.SmallDataset(t, 30), dynamo.Options{})
		order := "ORDER#" + storetest.SmallOrderID(1)
		copied := r.Get("CUSTOMER#c2", order)
		copied["pk"], copied["customerId"] = storetest.Str("CUSTOMER#c1"), storetest.Str("c1")
		r.Put(copied)
		r.Delete(order, "#METADATA")
		_, summary := r.Check(check.Options{Repair: true})
		if own := storetest.FormatItem(r.Get(order, "#METADATA")); !strings.Contains(own, "customerId=c2 ") || r.Get("CUSTOMER#c2", order) == nil || summary.UnrepairedCount() > 0 {
			t.Errorf("the order is %s, %d left", own, summary.UnrepairedCount())
		}
		r.CheckClean()
	})
}

// The operator corrects an invalid address, and the claim may have the original address.
func TestTheClaimOfAnInvalidAddressIsKept(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		r := storetest.NewRawTable(t, db, storetest.SmallDataset(t, 30), dynamo.Options{})
		r.Set("CUSTOMER#c2", "#METADATA", storetest.Item{"email": storetest.Str("bob at example.com")})
		if _, summary := r.Check(check.Options{Repair: true}); summary.UnrepairedCount() != 1 || summary.ByHand != 1 {
			t.Errorf("found %v, %d left", summary.Found, summary.UnrepairedCount())
		}
		if r.Get("EMAIL#bob@example.com", "#METADATA") == nil {
			t.Error("the claim is lost")
		}
	})
}
