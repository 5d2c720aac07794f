package check_test

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/change"
	"github.com/ordergraph/ordergraph/dynamo/check"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// externalOrder is the ID of the order in externalRecords.
const externalOrder = "01HVMK3NA80000000000000001"

// externalRecords have attributes of other software; no entity, version, counts, embedded items or
// currency; and other notations of numbers, times and lists.
func externalRecords() []storetest.Item {
	mark := func(rec storetest.Item) storetest.Item {
		rec["__edb_e__"], rec["__edb_v__"] = storetest.Str("any"), storetest.Str("1")
		return rec
	}
	order := func(k storetest.Item) storetest.Item {
		k["orderId"], k["customerId"], k["status"], k["total"] = storetest.Str(externalOrder), storetest.Str("c1"), storetest.Str("pending"), storetest.Num("0.30")
		k["createdAt"] = storetest.Str("2024-04-16T23:15:41Z")
		return mark(k)
	}
	own, copied := order(storetest.ItemKey("ORDER#"+externalOrder, "#METADATA")), order(storetest.ItemKey("CUSTOMER#c1", "ORDER#"+externalOrder))
	own["gsi1pk"], own["gsi1sk"] = storetest.Str("STATUS#pending"), storetest.Str("ORDER#"+externalOrder)
	own["total"], copied["createdAt"] = storetest.Num("3E-1"), storetest.Str("2024-04-16T23:15:41.000123Z")
	line := storetest.ItemKey("ORDER#"+externalOrder, "ITEM#p1")
	line["productId"], line["name"], line["qty"], line["price"] = storetest.Str("p1"), storetest.Str("Nut"), storetest.Num("3"), storetest.Num("1E-1")
	line["gsi1pk"], line["gsi1sk"] = storetest.Str("PRODUCT#p1"), storetest.Str("ORDER#"+externalOrder)
	event := storetest.ItemKey("ORDER#"+externalOrder, "EVENT#1")
	event["eventId"], event["orderId"], event["type"], event["to"], event["createdAt"] = storetest.Str("1"), storetest.Str(externalOrder), storetest.Str("placed"), storetest.Str("pending"), storetest.Str("2024-04-16T23:15:41Z")
	customer := storetest.ItemKey("CUSTOMER#c1", "#METADATA")
	customer["customerId"], customer["name"], customer["email"], customer["createdAt"] = storetest.Str("c1"), storetest.Str("Ann"), storetest.Str("Ann@Example.com"), storetest.Str("2024-04-01T09:00:00Z")
	customer["phoneNumbers"], customer["accountRepId"] = &types.AttributeValueMemberSS{Value: []string{"2", "1"}}, storetest.Str("e1")
	customer["gsi1pk"], customer["gsi1sk"] = storetest.Str("CUSTOMER"), storetest.Str("2024-04-01T09:00:00.000Z#c1")
	claim := storetest.ItemKey("EMAIL#ann@example.com", "#METADATA")
	claim["customerId"] = storetest.Str("c1")
	product := storetest.ItemKey("PRODUCT#p1", "#METADATA")
	product["sku"], product["name"], product["unitPrice"] = storetest.Str("p1"), storetest.Str("Nut"), storetest.Num("0.1")
	product["totalInventory"], product["available"] = storetest.Num("5.0"), storetest.Num("2")
	level := storetest.ItemKey("PRODUCT#p1", "WAREHOUSE#w1")
	level["sku"], level["warehouseId"], level["quantity"], level["gsi1pk"], level["gsi1sk"] = storetest.Str("p1"), storetest.Str("w1"), storetest.Num("5"), storetest.Str("WAREHOUSE#w1"), storetest.Str("PRODUCT#p1")
	warehouse := storetest.ItemKey("WAREHOUSE#w1", "#METADATA")
	warehouse["warehouseId"], warehouse["name"], warehouse["gsi1pk"], warehouse["gsi1sk"] = storetest.Str("w1"), storetest.Str("North"), storetest.Str("WAREHOUSES"), storetest.Str("WAREHOUSE#w1")
	records := []storetest.Item{own, copied, mark(line), mark(event), mark(claim)}
	for _, rec := range []storetest.Item{customer, product, level, warehouse} {
		records = append(append(records, mark(rec)), storetest.EdgesOf(rec)...)
	}
	return append(records,
		storetest.ItemKey("CART#1", "#METADATA"), storetest.ItemKey("CUSTOMER#c1", "WISHLIST#1"), storetest.ItemKey("ORDER#"+externalOrder, "NOTE#1"), storetest.ItemKey("IDEMPOTENCY#p#k", "#METADATA"))
}

// withoutCounts returns the inconsistencies except orders and products that were never counted or summed.
func withoutCounts(inconsistencies []check.Inconsistency) []check.Inconsistency {
	return slices.DeleteFunc(slices.Clone(inconsistencies), func(d check.Inconsistency) bool {
		return d.Kind == "order-counts" || d.Kind == "product-count" || d.Kind == "spending" || d.Kind == "order-count" && !strings.HasPrefix(d.PK, "CUSTOMER#")
	})
}

// External records with all required attributes are clean. Other attributes are optional. A repair
// only adds the counts and the spending.
func TestExternalRecordsAreClean(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		r := storetest.NewRawTable(t, db, commerce.Dataset{}, dynamo.Options{})
		unknown := 0
		for _, rec := range externalRecords() {
			if model.EntityOf(model.KeyOf(rec)) == nil {
				unknown++
			}
			r.Put(rec)
		}
		before := r.All()
		inconsistencies, summary := r.Check(check.Options{Repair: true})
		if got := storetest.FormatKindCounts(inconsistencies); got != "order-count 1, order-counts 32, product-count 1, spending 2" || summary.UnrepairedCount() > 0 || summary.Unverified > 0 {
			t.Errorf("found %s, %d left, %d unverified: %+v", got, summary.UnrepairedCount(), summary.Unverified, inconsistencies)
		}
		if records := len(r.All()); summary.Records != records || summary.External != unknown || unknown == 0 {
			t.Errorf("the summary has %d records, %d of them external, want %d and %d", summary.Records, summary.External, records, unknown)
		}
		changed := storetest.DifferingKeys(before, r.All())
		if changed = slices.DeleteFunc(changed, func(k string) bool {
			return strings.HasPrefix(k, "ORDER_COUNTS PART#") || strings.HasPrefix(k, "CUSTOMER#c1 SPENDING#") || k == "CUSTOMER#c1 #METADATA" || k == "PRODUCT#p1 #METADATA" || k == "WAREHOUSE#w1 #METADATA" || strings.Contains(k, " ORDERS#")
		}); len(changed) > 0 {
			t.Errorf("changed %q", changed)
		}
	})
}

// A check reports an omitted attribute that a list needs, a repair adds it, and unknown attributes
// stay.
func TestOmittedAttributesOfExternalRecords(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		r := storetest.NewRawTable(t, db, commerce.Dataset{}, dynamo.Options{})
		edges := 0
		for _, rec := range externalRecords() {
			if e := model.EntityOf(model.KeyOf(rec)); e != nil && e.IsEdge() {
				edges++
				continue
			}
			switch storetest.KeyText(rec) {
			case "EMAIL#ann@example.com #METADATA", "ORDER#" + externalOrder + " EVENT#1", "CUSTOMER#c1 ORDER#" + externalOrder, "WAREHOUSE#w1 #METADATA":
				continue
			case "CUSTOMER#c1 #METADATA", "ORDER#" + externalOrder + " ITEM#p1":
				delete(rec, "gsi1pk")
				delete(rec, "gsi1sk")
			}
			r.Put(rec)
		}
		want := fmt.Sprintf("claim-missing 1, copy-missing 1, edge-missing %d, index-keys 2, timeline 1, warehouse-missing 1", edges)
		for _, repair := range []bool{false, true} {
			inconsistencies, summary := r.Check(check.Options{Repair: repair})
			if got := storetest.FormatKindCounts(withoutCounts(inconsistencies)); got != want || repair && summary.UnrepairedCount() > 0 {
				t.Errorf("found %s, %d left, want %s:\n%+v", got, summary.UnrepairedCount(), want, inconsistencies)
			}
		}
		r.CheckClean()
		if rec := r.Get("CUSTOMER#c1", "#METADATA"); rec["__edb_e__"] == nil || rec["entity"] != nil || rec["version"] != nil {
			t.Errorf("after the repair, the record is %s", storetest.FormatItem(rec))
		}
		// The order has an event now, and a record with an event has a version.
		if rec := r.Get("ORDER#"+externalOrder, "#METADATA"); rec["__edb_e__"] == nil || rec["entity"] != nil || !reflect.DeepEqual(rec["version"], storetest.Num("1")) {
			t.Errorf("after the repair, the record is %s", storetest.FormatItem(rec))
		}
		if rec := r.Get("CUSTOMER#c1", "ORDER#"+externalOrder); rec["__edb_e__"] != nil || rec["items"] == nil {
			t.Errorf("the new copy is %s", storetest.FormatItem(rec))
		}
	})
}

// A record whose reference exists in an index key only keeps the reference.
func TestReferencesInIndexKeysOnly(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		r := storetest.NewRawTable(t, db, commerce.Dataset{}, dynamo.Options{})
		for _, rec := range externalRecords() {
			switch storetest.KeyText(rec) {
			case "CUSTOMER#c1 ORDER#" + externalOrder:
				rec["gsi1pk"], rec["gsi1sk"] = storetest.Str("REP#e1"), storetest.Str("ORDER#"+externalOrder)
			case "CUSTOMER#c1 #METADATA", "CUSTOMER#c1 REP", "CUSTOMER#c1 NAME", "CUSTOMER#c1 EMAIL":
				delete(rec, "accountRepId")
			}
			r.Put(rec)
		}
		inconsistencies, summary := r.Check(check.Options{Repair: true})
		if got := storetest.FormatKindCounts(withoutCounts(inconsistencies)); got != "edge-differs 4, order-records-differ 2" || summary.UnrepairedCount() > 0 {
			t.Errorf("found %s, %d left:\n%+v", got, summary.UnrepairedCount(), inconsistencies)
		}
		for k, sk := range map[string]string{"ORDER#" + externalOrder: "#METADATA", "CUSTOMER#c1": "#METADATA"} {
			if rec := r.Get(k, sk); rec["accountRepId"] == nil {
				t.Errorf("after the repair, the record is %s", storetest.FormatItem(rec))
			}
		}
		if rec := r.Get("CUSTOMER#c1", "ORDER#"+externalOrder); rec["gsi1pk"] == nil {
			t.Errorf("after the repair, the record is %s", storetest.FormatItem(rec))
		}
		r.CheckClean()
	})
}

// A timeline may have event IDs that sort after every ULID. Repairs and mutations can append to it.
func TestExternalTimelineIsContinued(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		for _, id := range []string{"zzz", "f47ac10b-58cc-4372-a567-0e02b2c3d479"} {
			r := storetest.NewRawTable(t, db, commerce.Dataset{}, dynamo.Options{})
			for _, rec := range externalRecords() {
				if storetest.KeyText(rec) == "ORDER#"+externalOrder+" EVENT#1" {
					rec["sk"], rec["eventId"], rec["to"] = storetest.Str("EVENT#"+id), storetest.Str(id), storetest.Str("shipped")
				}
				r.Put(rec)
			}
			r.Delete("EMAIL#ann@example.com", "#METADATA")
			for _, repair := range []bool{false, true} {
				inconsistencies, summary := r.Check(check.Options{Repair: repair})
				if got := storetest.FormatKindCounts(withoutCounts(inconsistencies)); got != "claim-missing 1, timeline 1" || summary.ByHand > 0 || repair && summary.UnrepairedCount() > 0 {
					t.Errorf("found %s, %d left:\n%+v", got, summary.UnrepairedCount(), inconsistencies)
				}
			}
			r.CheckClean()
			move := commerce.OrderStatusChange{OrderID: externalOrder, To: commerce.Confirmed}
			for _, move.To = range []commerce.Status{commerce.Confirmed, commerce.Cancelled} {
				if _, err := r.Store.ChangeOrderStatus(context.Background(), change.Caller{Name: "tester"}, move); err != nil {
					t.Fatal(err)
				}
				r.CheckClean()
			}
			page, err := dynamo.ReadPage(context.Background(), r.Store, model.Timeline, dynamo.ListRequest{PartitionValue: string(externalOrder), Page: dynamo.PageRequest{Limit: 10}})
			if err != nil {
				t.Fatal(err)
			}
			var types []commerce.EventType
			for _, e := range page.Items {
				types = append(types, e.Type)
			}
			if want := []commerce.EventType{commerce.EventImported, commerce.EventConfirmed, commerce.EventCancelled, commerce.EventPlaced}; !slices.Equal(types, want) {
				t.Errorf("the timeline is %q, want %q", types, want)
			}
		}
	})
}

// An external event that sets the order's status suffices, wherever its ID sorts.
func TestExternalEventSetsTheStatus(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		for _, id := range []string{"0", "zzz", storetest.ULIDAt(storetest.FirstOrderTime().AddDate(200, 0, 0), 1)} {
			r := storetest.NewRawTable(t, db, commerce.Dataset{}, dynamo.Options{})
			for _, rec := range externalRecords() {
				if storetest.KeyText(rec) == "ORDER#"+externalOrder+" EVENT#1" {
					rec["sk"], rec["eventId"] = storetest.Str("EVENT#"+id), storetest.Str(id)
				}
				r.Put(rec)
			}
			r.CheckClean()
		}
	})
}

// An external order ID may be no ULID. A check names it. Because it contains no time, both records
// must have the time.
func TestMissingTimeOfAnExternalOrderID(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		for _, k := range []string{"CUSTOMER#c1 ORDER#o-1", "ORDER#o-1 #METADATA"} {
			r := storetest.NewRawTable(t, db, commerce.Dataset{}, dynamo.Options{})
			for _, rec := range externalRecords() {
				for name, v := range rec {
					if text, ok := v.(*types.AttributeValueMemberS); ok {
						rec[name] = storetest.Str(strings.ReplaceAll(text.Value, externalOrder, "o-1"))
					}
				}
				if storetest.KeyText(rec) == k {
					delete(rec, "createdAt")
				}
				r.Put(rec)
			}
			inconsistencies, summary := r.Check(check.Options{Repair: true})
			if got := storetest.FormatKindCounts(withoutCounts(inconsistencies)); got != "invalid-value 2, order-records-differ 1" || summary.UnrepairedCount() != 2 {
				t.Errorf("found %s, %d left:\n%+v", got, summary.UnrepairedCount(), inconsistencies)
			}
			// A check names the ID again, because only an operator can replace it.
			if inconsistencies, _ = r.Check(check.Options{}); storetest.FormatKindCounts(withoutCounts(inconsistencies)) != "invalid-value 2" {
				t.Errorf("after the repair, found %+v", inconsistencies)
			}
		}
	})
}

// Other software deletes a product, and createProduct creates it again without held stock. A repair
// recounts what open orders hold, and the products of the category.
func TestRecreatedProductIsRecounted(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		r := storetest.NewRawTable(t, db, storetest.SmallDataset(t, 3), dynamo.Options{})
		before := r.Get("PRODUCT#p02", "#METADATA")
		r.Delete("PRODUCT#p02", "#METADATA")
		created, err := r.Store.CreateProduct(t.Context(), change.Caller{Name: "c"}, commerce.Product{SKU: "p02", Name: "Thing", Category: "Things", UnitPrice: storetest.USD("2.50")})
		if err != nil || created.Available != 0 {
			t.Fatalf("created %+v, %v", created, err)
		}
		if inconsistencies, summary := r.Check(check.Options{Repair: true}); storetest.FormatKindCounts(withoutCounts(inconsistencies)) != "category-count 1, stock-available 1" || summary.UnrepairedCount() > 0 {
			t.Errorf("found %+v", inconsistencies)
		}
		if got, want := storetest.CanonicalNumber(r.Get("PRODUCT#p02", "#METADATA")["available"]), storetest.CanonicalNumber(before["available"]); got != want || got != "-6" {
			t.Errorf("available is %v, want %v", got, want)
		}
	})
}

// A record whose sort key only begins like the key of an order, a line item or an inventory level is
// none, so neither a check nor a mutation counts it. It must not change what a customer has spent, or
// the available stock.
func TestRecordsWithTheKeyPrefixOfAList(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		r := newReservingCustomer(t, db, 30)
		orders, err := dynamo.ReadPage(t.Context(), r.Store, model.CustomerOrders, dynamo.ListRequest{PartitionValue: "c0", Page: dynamo.PageRequest{Limit: 1}})
		if err != nil {
			t.Fatal(err)
		}
		id := orders.Items[0].ID
		for _, k := range [][2]string{{c0Partition, "ORDER#" + string(id)}, {"ORDER#" + string(id), "ITEM#p1"}, {"PRODUCT#p1", "WAREHOUSE#w0"}} {
			rec := r.Get(k[0], k[1])
			rec["sk"] = storetest.Str(k[1] + "#1")
			delete(rec, "gsi1pk")
			delete(rec, "gsi1sk")
			r.Put(rec)
		}
		// The index cannot distinguish these records from the real ones by its keys.
		for _, k := range [][2]string{{"PRODUCT#p1", "#METADATA"}, {"PRODUCT#p1", "WITH_CATEGORY"}, {"ORDER#" + string(id), "ITEM#p2"}} {
			rec := r.Get(k[0], k[1])
			rec["sk"] = storetest.Str(k[1] + "#1")
			r.Put(rec)
		}
		category, product := r.Get("CATEGORIES", "CATEGORY#Things"), r.Get("PRODUCT#p2", "#METADATA")
		r.Set("CATEGORIES", "CATEGORY#Things", storetest.Item{"productCount": storetest.Num("40")})
		r.Set("PRODUCT#p2", "#METADATA", storetest.Item{"orderCount": storetest.Num("41")})
		r.Set(c0Partition, "#METADATA", storetest.Item{"orderCount": storetest.Num("7")})
		inconsistencies, summary := r.Check(check.Options{Repair: true})
		if got := storetest.FormatKindCounts(inconsistencies); got != "category-count 1, order-count 2" || summary.UnrepairedCount() > 0 {
			t.Errorf("a repair finds %q: %+v, want only the three wrong counts", got, summary)
		}
		for _, counted := range []struct {
			before storetest.Item
			name   string
		}{{category, "productCount"}, {product, "orderCount"}} {
			before := storetest.Record(counted.before)
			after := storetest.Record(r.Get(before.Text("pk"), before.Text("sk")))
			if after.Int(counted.name) != before.Int(counted.name) {
				t.Errorf("%s: %s is %d, want %d", storetest.KeyText(before), counted.name, after.Int(counted.name), before.Int(counted.name))
			}
		}
		expectReservation(t, r, 1, 60)
		if n := storetest.Record(r.Get(c0Partition, "#METADATA")).Int("orderCount"); n != 1 {
			t.Errorf("the order count is %d, want 1", n)
		}
		if _, err := r.Store.ChangeOrderStatus(t.Context(), change.Caller{Name: "tester"}, commerce.OrderStatusChange{OrderID: id, To: commerce.Cancelled}); err != nil {
			t.Fatal(err)
		}
		if n := storetest.Record(r.Get("PRODUCT#p1", "#METADATA")).Int("available"); n != 100 {
			t.Errorf("after the cancellation, %d units are available, want 100", n)
		}
		r.CheckClean()
	})
}
