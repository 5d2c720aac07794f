package model

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ordergraph/ordergraph/commerce"
)

// sampleKey fills in a template.
func sampleKey(t *testing.T, template KeyTemplate) string {
	t.Helper()
	values := make([]string, strings.Count(string(template), "{"))
	for i := range values {
		values[i] = fmt.Sprintf("value-%d", i)
	}
	key, err := template.Build(values...)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// Every record belongs to one entity, and no key matches two entities.
func TestEntityOf(t *testing.T) {
	for _, e := range Entities() {
		pk, sk := sampleKey(t, e.PK), sampleKey(t, e.SK)
		if got := EntityOf(Keys{PK: pk, SK: sk}); got == nil || got.Name != e.Name {
			t.Errorf("the key %s %s belongs to entity %q, want %q", pk, sk, got.Name, e.Name)
		}
		for _, other := range Entities() {
			_, pkFits := other.PK.Values(pk)
			_, skFits := other.SK.Values(sk)
			if pkFits && skFits && other.Name != e.Name {
				t.Errorf("the key %s %s matches the entities %s and %s", pk, sk, e.Name, other.Name)
			}
		}
		for _, external := range [][2]string{{pk + "x" + ShardSuffix(1, 2), sk}, {pk, sk + ShardSuffix(1, 2)}, {strings.ToLower(pk), sk}, {"", sk}, {pk, ""}} {
			if got := EntityOf(Keys{PK: external[0], SK: external[1]}); got != nil {
				t.Errorf("%q is of entity %s", external, got.Name)
			}
		}
	}
}

// fullDataset has a record of every entity except idempotency records.
func fullDataset() commerce.Dataset {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6e6, time.UTC)
	id := commerce.OrderID("01HVMK3P2Q0000000000000001")
	price := commerce.Money{Currency: "USD"}
	total, _ := commerce.ParseMoney("1", "USD")
	return commerce.Dataset{
		Employees:  []commerce.Employee{{ID: "e1", Name: "Eva", JobTitle: "Rep", HireDate: "2020-02-02", WarehouseID: "w1"}},
		Warehouses: []commerce.Warehouse{{ID: "w1", Name: "North"}},
		Products:   []commerce.Product{{SKU: "mug", Name: "Mug", Category: "Kitchen", UnitPrice: price}},
		Levels:     []commerce.InventoryLevel{{SKU: "mug", WarehouseID: "w1", Quantity: 3, ReorderPoint: 5}},
		Customers:  []commerce.Customer{{ID: "c1", Name: "Carl", Email: "Carl@example.com", AccountRepID: "e1", CreatedAt: at, UpdatedAt: at}},
		Orders: []commerce.OrderWithItems{{
			Order:  commerce.Order{ID: id, CustomerID: "c1", AccountRepID: "e1", Status: commerce.Confirmed, Total: total, UpdatedAt: at, ExpiresAt: &at, WaitingSince: &at, Tags: []string{"gift", "vip"}, PaymentTotals: &commerce.PaymentTotals{Authorized: price, Captured: price, Refunded: price}},
			Lines:  []commerce.LineItem{{OrderID: id, CustomerID: "c1", SKU: "mug", Name: "Mug", Quantity: 1, UnitPrice: price}},
			Events: []commerce.Event{{ID: "01HVMK3P2Q0000000000000002", OrderID: id, Type: commerce.EventPlaced, At: at}},
		}},
	}
}

// recordsOf returns all records that Load writes into a table with this number of shards. It
// includes only one record of order counts, and also a customer's last event, which changes write.
func recordsOf(t *testing.T, dataset commerce.Dataset, shards int) []Record {
	t.Helper()
	b := &KeyBuilder{Layout: OneEra(shards)}
	all := slices.Concat(EncodeWithEdges(b, &dataset.Employees[0]), EncodeWithEdges(b, &dataset.Warehouses[0]), EncodeWithEdges(b, &dataset.Products[0]), EncodeWithEdges(b, &dataset.Levels[0]))
	all = append(all, CustomerRecords(b, dataset.Customers[0])...)
	all = append(all, OrderRecords(b, dataset.Orders[0].Order, dataset.Orders[0].Lines, dataset.Orders[0].Events)...)
	all = append(all, LastEventRecord(b, dataset.Customers[0].ID, dataset.Orders[0].Events[0]), OrderCountsRecord(b, commerce.OrderCounts{Part: "7", Complete: true}),
		RepOrderCountRecord(b, commerce.RepOrderCount{EmployeeID: "e1", Part: "7", Orders: 1}),
		SpendingRecord(b, commerce.Spending{CustomerID: "c1", Month: "2026-04", Total: dataset.Orders[0].Total, Orders: 1}),
		DailySalesRecord(b, commerce.DailySales{Day: "2026-04-12", Part: "7", Total: dataset.Orders[0].Total, Orders: 1}),
		DeletedCustomerRecord(b, commerce.DeletedCustomer{ID: "c9", DeletedAt: dataset.Customers[0].CreatedAt}),
		CategoryRecord(b, commerce.Category{Name: "Kitchen", ProductCount: 1, Version: 1}))
	for _, e := range Entities() { // the records of entities without sample data are the largest ones
		if e.codec != nil && !slices.ContainsFunc(all, func(r Record) bool { return TextOf(r, "entity") == e.Name }) {
			all = append(all, b.encodeWithCopies(e, e.codec.encode(e.codec.largest()))...)
		}
	}
	if b.Err != nil {
		t.Fatal(b.Err)
	}
	return all
}

func codecOf(shards int) *Codec {
	c := &CurrentLayout{}
	c.Set(StoredLayout{Eras: OneEra(shards)}) // all derivations are readable
	return &Codec{Layout: c, Currency: "USD"}
}

// A record of one table gets the index keys of another table. Its other attributes stay the same.
func TestWithIndexKeys(t *testing.T) {
	tested := map[string]bool{EntityIdempotency.Name: true}
	for _, shards := range []int{1, 8} {
		sources, targets := recordsOf(t, fullDataset(), shards), recordsOf(t, fullDataset(), 9-shards)
		for i, source := range sources {
			at := Reader{Record: source}
			tested[at.Text("entity")] = true
			source["unknown"] = Str("kept")
			targets[i]["unknown"] = Str("kept")
			got, err := codecOf(9 - shards).WithIndexKeys(maps.Clone(source))
			if err != nil || !EqualRecords(got, targets[i]) {
				t.Errorf("from %d shards to %d: %v was changed to %v, %v", shards, 9-shards, source, got, err)
			}
			// Wrong, missing and additional index keys are repaired.
			for _, change := range []func(Record){
				func(r Record) { delete(r, AttrIndexPK); delete(r, AttrIndexSK) },
				func(r Record) { r[AttrIndexPK], r[AttrIndexSK] = Str("else"), Num(1) },
			} {
				broken := maps.Clone(source)
				change(broken)
				if got, err := codecOf(9 - shards).WithIndexKeys(broken); err != nil || !EqualRecords(got, targets[i]) {
					t.Errorf("%v became %v, %v", broken, got, err)
				}
			}
		}
	}
	for _, e := range Entities() {
		if !tested[e.Name] {
			t.Errorf("no record of %s was tested", e.Name)
		}
	}
}

// A record whose attributes do not match its key is rejected.
func TestWithIndexKeysRejectsMismatchedKeys(t *testing.T) {
	for _, r := range recordsOf(t, fullDataset(), 1) {
		at := Reader{Record: r}
		e := EntityOf(Keys{PK: at.Text(AttrPK), SK: at.Text(AttrSK)})
		if e.Kind == Claim {
			continue // the claimed value is only in the key
		}
		for name, template := range map[string]KeyTemplate{AttrPK: e.PK, AttrSK: e.SK} {
			if !strings.Contains(string(template), "{") {
				continue
			}
			wrong := maps.Clone(r)
			wrong[name] = Str(sampleKey(t, template))
			if e.Name == EntityOrderItem.Name && name == AttrPK {
				delete(wrong, "customerId")
			}
			if got, err := codecOf(1).WithIndexKeys(wrong); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "do not match the key") {
				t.Errorf("%s: a wrong value of %s was accepted: %v, %v", e.Name, name, got, err)
			}
		}
		unreadable := Record{AttrPK: r[AttrPK], AttrSK: r[AttrSK]}
		if got, err := codecOf(1).WithIndexKeys(unreadable); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "is missing") {
			t.Errorf("%s: a record without attributes was accepted: %v, %v", e.Name, got, err)
		}
	}
}

// A value that no key can contain removes its record only from the lists by this value.
func TestWithIndexKeysOfInvalidValues(t *testing.T) {
	for _, shards := range []int{1, 8} {
		for _, r := range recordsOf(t, fullDataset(), shards) {
			at := Reader{Record: r}
			want := maps.Clone(r)
			switch entity := at.Text("entity"); entity {
			case EntityProduct.Name:
				r["category"], want["category"] = Str("a#1"), Str("a#1")
				delete(want, AttrIndexPK)
				delete(want, AttrIndexSK)
			case EntityEmployee.Name:
				r["name"], want["name"] = Str("a"+ShardSuffix(1, 2)), Str("a"+ShardSuffix(1, 2))
			case EntityEmployeeName.Name:
				r["name"], want["name"] = Str("a"+ShardSuffix(1, 2)), Str("a"+ShardSuffix(1, 2))
				delete(want, AttrIndexPK)
				delete(want, AttrIndexSK)
			case EntityCustomer.Name, EntityCustomerRep.Name:
				r["email"], want["email"] = Str("no address"), Str("no address")
			case EntityCustomerOrder.Name:
				delete(r, "accountRepId")
				delete(want, "accountRepId")
				delete(want, AttrIndexPK)
				delete(want, AttrIndexSK)
			default:
				continue
			}
			if got, err := codecOf(shards).WithIndexKeys(maps.Clone(r)); err != nil || !EqualRecords(got, want) {
				t.Errorf("%v became %v, %v", r, got, err)
			}
		}
	}
}

// Other software may store records in the table, but not in the lists of this model.
func TestWithIndexKeysOfExternalRecords(t *testing.T) {
	external := func(indexPK, indexSK string) Record {
		return Record{AttrPK: Str("THEIRS"), AttrSK: Str("1"), AttrIndexPK: Str(indexPK), AttrIndexSK: Str(indexSK)}
	}
	for _, e := range Entities() {
		if e.IndexPK == "" {
			continue
		}
		pk, sk := sampleKey(t, e.IndexPK), sampleKey(t, e.IndexSK)
		if got, err := codecOf(1).WithIndexKeys(external(pk, sk)); err == nil {
			t.Errorf("an external record with the index keys of %s was accepted: %v", e.Name, got)
		}
		if got, err := codecOf(1).WithIndexKeys(external(pk+ShardSuffix(MaxShards-1, MaxShards), sk)); (err != nil) != e.Sharded {
			t.Errorf("%s: an external record with a shard suffix: got %v, error %v", e.Name, got, err)
		}
		r := external("THEIRS"+pk, sk)
		if got, err := codecOf(8).WithIndexKeys(maps.Clone(r)); err != nil || !EqualRecords(got, r) {
			t.Errorf("%v became %v, %v", r, got, err)
		}
	}
	bare := Record{AttrPK: Str("THEIRS"), AttrSK: Str("1")}
	if got, err := codecOf(8).WithIndexKeys(maps.Clone(bare)); err != nil || !EqualRecords(got, bare) {
		t.Errorf("%v became %v, %v", bare, got, err)
	}
}
