package check_test

import (
	"context"
	"fmt"
	"maps"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/change"
	"github.com/ordergraph/ordergraph/dynamo/check"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/internal/test/longtest"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// unverifiedChanges has the changes that a check does not find, by reason. The test fails if a
// check finds one of them, so the lists stay exact.
func unverifiedChanges() map[string][]string {
	alone := []string{"orderEvent.actor", "warehouse.name", "deletedCustomer.deletedAt", "layout.derivations", "payment.actor", "unmatchedPayment.amount", "unmatchedPayment.reason", "fulfillment.actor", "fulfillment.carrier", "fulfillment.trackingUrl", "fulfillment.warehouseId", "return.actor", "return.warehouseId", "return.createdAt", "return.updatedAt"}
	for _, e := range model.Entities() {
		versioned := slices.ContainsFunc(model.AttributesOf(e), func(a model.Attribute) bool { return a.Name == model.AttrVersion })
		if ordered := e.BaseEntity() == &model.EntityOrder; versioned && !ordered && len(e.BaseEntity().Edges()) == 0 {
			alone = append(alone, e.Name+".version") // it has neither edges nor a copy
		}
	}
	for _, e := range []*model.Entity{&model.EntityWebhook, &model.EntityWebhookState, &model.EntityWebhookFailure} {
		alone = append(alone, e.Name+" lost")
		for _, a := range model.AttributesOf(e) {
			if !model.IsInPrimaryKey(e, a.Name) && !model.IsInIndexKey(e, a.Name) && a.Name != model.AttrVersion {
				alone = append(alone, e.Name+"."+a.Name)
			}
		}
	}
	return map[string][]string{
		"no other record has the value":                         alone,
		"an event's time is in its ID, which orders the events": {"orderEvent.createdAt", "lastEvent.createdAt", "payment.createdAt", "fulfillment.createdAt", "fulfillment.updatedAt"},
		"loaded orders have no last event, and the next change writes it": {
			"lastEvent lost", "lastEvent.orderId", "lastEvent.orderVersion", "lastEvent.actor", "lastEvent.to",
		},
		"a repair has counted the orders":                                 {"lastEvent.reservationsCounted"},
		"no other record repeats what a provider reported":                {"unmatchedPayment lost", "unmatchedPayment.currency", "unmatchedPayment.givenOrderId"},
		"no other record contains the layout":                             {"layout lost"},
		"such a key belongs to no entity":                                 {"layout of nobody"},
		"a deleted customer may have no orders":                           {"deletedCustomer lost"},
		"orders that nobody has counted or added up are no inconsistency": {"customer.spendingComplete", "repOrders lost", "repOrders.complete"},
		"it is needed for a day, and DynamoDB deletes it later": {
			"idempotency lost", "idempotency of nobody", "idempotency.entity", "idempotency.mutation", "idempotency.requestHash", "idempotency.result",
			"idempotency.createdAt", "idempotency.expiresAt",
		},
	}
}

// newTableWithEveryEntity is a table with a record of every entity.
func newTableWithEveryEntity(t *testing.T, db *dynamodb.Client) storetest.RawTable {
	dataset := storetest.SmallDataset(t, 3)
	for i := range dataset.Levels {
		dataset.Levels[i].ReorderPoint = 1000
	}
	r := storetest.NewRawTable(t, db, dataset, dynamo.Options{})
	storetest.MakeReadable(t, r, model.EntityDailySales.Name)
	storetest.MakeReadable(t, r, model.EntityOrderWaiting.Name)
	storetest.MakeReadable(t, r, model.EntityLowStock.Name)
	r.Check(check.Options{Repair: true}) // add up the sales, and list the low stock
	ctx, caller := context.Background(), change.Caller{ID: "me", Name: "me", IdempotencyKey: "k"}
	order := commerce.OrderRequest{CustomerID: "c1", Lines: []commerce.OrderLine{{SKU: "p01", Quantity: 1}}}
	if _, err := r.Store.SetInventoryLevel(ctx, change.Caller{}, commerce.InventoryLevelChange{SKU: "p01", WarehouseID: "w1", Quantity: new(50), ReorderPoint: new(60)}); err != nil {
		t.Fatal(err)
	}
	placed, err := r.Store.PlaceOrder(ctx, caller, order)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Store.TagOrder(ctx, change.Caller{Name: "me"}, commerce.TagsChange{OrderID: placed.ID, Add: []string{"gift", "vip"}}); err != nil {
		t.Fatal(err)
	}
	for _, p := range []commerce.PaymentRecord{
		{Kind: commerce.PaymentAuthorization, Amount: storetest.USD("0.03")}, {Kind: commerce.PaymentCapture, Amount: storetest.USD("0.02")}, {Kind: commerce.PaymentRefund, Amount: storetest.USD("0.01")},
	} {
		p.OrderID, p.Provider, p.Reference = placed.ID, "stripe", string(p.Kind)
		if _, err := r.Store.RecordPayment(ctx, change.Caller{Name: "me"}, p); err != nil {
			t.Fatal(err)
		}
	}
	unknown := commerce.PaymentEvent{Kind: commerce.PaymentCapture, Amount: storetest.USD("0.01"), Provider: "stripe", Reference: "early", OrderID: "unknown"}
	if err := r.Store.ReceivePayment(ctx, change.Caller{Name: "stripe"}, unknown, false); !commerce.IsUserError(err) {
		t.Fatal(err)
	}
	returnedPiece(t, r)
	hook := commerce.WebhookID(storetest.SmallOrderID(0))
	at := placed.PlacedAt
	for _, v := range []any{
		&commerce.Webhook{ID: hook, URL: "https://example.com", Topics: []commerce.EventType{commerce.EventPlaced}, Statuses: []commerce.Status{commerce.Shipped}, DocumentID: "d", Secrets: []string{"s"}, SecretRotatedAt: &at, Paused: true, From: "e", Restarts: 1, Version: 1, CreatedAt: at, UpdatedAt: at, CreatedBy: "me"},
		&commerce.WebhookState{WebhookID: hook, Owner: "a", Sequence: 1, Wanted: "b", Cursor: "e", WebhookVersion: 1, Restarts: 1, Failures: 1, RetryAt: &at, DisabledReason: "410", LastError: "500", LastErrorAt: &at, LastSuccessAt: &at, Pending: 1, PendingSince: &at, Delivered: []commerce.EventID{"01HVMK3P2Q0000000000000003"}},
		&commerce.WebhookFailure{WebhookID: hook, OrderID: placed.ID, EventID: "e", Attempts: 1, RetryAt: at, Since: at, Error: "500"},
	} {
		r.Put(model.EncodeWithEdges(&model.KeyBuilder{}, v)[0])
	}
	if placed, err = r.Store.PlaceOrder(ctx, change.Caller{Name: "me"}, commerce.OrderRequest{CustomerID: "c1", Lines: []commerce.OrderLine{{SKU: "p01", Quantity: 3}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Store.ChangeOrderStatus(ctx, change.Caller{Name: "me"}, commerce.OrderStatusChange{OrderID: placed.ID, To: commerce.Confirmed}); err != nil {
		t.Fatal(err)
	}
	parcel := commerce.FulfillmentRequest{OrderID: placed.ID, WarehouseID: "w1", Lines: []commerce.FulfillmentLine{{SKU: "p01", Quantity: 1}}, WithoutAddress: true, Carrier: "UPS", TrackingNumber: "1Z", TrackingURL: "https://example.com/1Z"}
	if _, err := r.Store.CreateFulfillment(ctx, change.Caller{Name: "me"}, parcel); err != nil {
		t.Fatal(err)
	}
	order.ExpiresAt = new(placed.PlacedAt.Add(time.Hour))
	if _, err := r.Store.PlaceOrder(ctx, change.Caller{Name: "me"}, order); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Store.UpdateProduct(ctx, change.Caller{}, commerce.ProductChange{SKU: "p01", StockBuckets: new(2)}); err != nil {
		t.Fatal(err)
	}
	r.Put(deletedCustomer("c9"))
	putSamples(t, r)
	r.CheckClean()
	return r
}

// returnedPiece adds a shipped order with a return that was received and refunded.
func returnedPiece(t *testing.T, r storetest.RawTable) {
	t.Helper()
	ctx, me := t.Context(), change.Caller{Name: "me"}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	o, err := r.Store.PlaceOrder(ctx, me, commerce.OrderRequest{CustomerID: "c1", Lines: []commerce.OrderLine{{SKU: "p01", Quantity: 2}}})
	must(err)
	for _, to := range []commerce.OrderStatusChange{{To: commerce.Confirmed}, {To: commerce.Shipped, WarehouseID: "w1", WithoutAddress: true}} {
		to.OrderID = o.ID
		_, err = r.Store.ChangeOrderStatus(ctx, me, to)
		must(err)
	}
	back, err := r.Store.RequestReturn(ctx, me, commerce.ReturnRequest{OrderID: o.ID, Lines: []commerce.ReturnLine{{SKU: "p01", Quantity: 1, Reason: "broken"}}})
	must(err)
	_, err = r.Store.DecideReturn(ctx, me, commerce.ReturnDecision{OrderID: o.ID, ReturnID: back.ID, To: commerce.ReturnApproved})
	must(err)
	_, err = r.Store.ReceiveReturn(ctx, me, commerce.ReturnReceipt{OrderID: o.ID, ReturnID: back.ID, WarehouseID: "w1", Lines: []commerce.RestockedLine{{SKU: "p01", Restocked: 1}}})
	must(err)
	for _, p := range []commerce.PaymentRecord{{Kind: commerce.PaymentCapture, Amount: storetest.USD("0.02")}, {Kind: commerce.PaymentRefund, Amount: storetest.USD("0.01"), ReturnID: back.ID, Reason: "sorry"}} {
		p.OrderID, p.Provider, p.Reference = o.ID, "bank", string(p.Kind)
		_, err = r.Store.RecordPayment(ctx, me, p)
		must(err)
	}
}

// putSamples adds a record and its copies of each base entity that has no record yet. The attributes
// come from the declaration of the entity. Those in keys have the values of other records.
func putSamples(t *testing.T, r storetest.RawTable) {
	t.Helper()
	known := storetest.Item{}
	all := r.All()
	for _, k := range slices.Sorted(maps.Keys(all)) {
		maps.Copy(known, all[k])
	}
	codec := &model.Codec{Currency: "USD"}
	for _, e := range model.Entities() {
		if e.Kind != model.Base || model.AttributesOf(e) == nil || len(ofEntity(all, e.Name)) > 0 {
			continue
		}
		sample := map[string]types.AttributeValue{"N": storetest.Num("1"), "S": storetest.Str("sample"), "BOOL": &types.AttributeValueMemberBOOL{}, "L": &types.AttributeValueMemberL{}}
		attributes := model.Record{}
		for _, a := range model.AttributesOf(e) {
			if attributes[a.Name] = sample[a.Type]; model.IsInPrimaryKey(e, a.Name) && known[a.Name] != nil {
				attributes[a.Name] = known[a.Name]
			}
		}
		records, err := codec.Reencode(e, attributes)
		if err != nil {
			t.Fatalf("the test cannot build a record of entity %q from its declaration, so add one to the test's table: %v", e.Name, err)
		}
		for _, rec := range records {
			r.Put(rec)
		}
	}
}

// ofEntity returns the records of an entity, by key.
func ofEntity(records map[string]storetest.Item, name string) []storetest.Item {
	var found []storetest.Item
	for _, k := range slices.Sorted(maps.Keys(records)) {
		if v, ok := records[k]["entity"].(*types.AttributeValueMemberS); ok && v.Value == name {
			found = append(found, records[k])
		}
	}
	return found
}

// another returns a different value of the same type and form.
func another(v types.AttributeValue) types.AttributeValue {
	switch v := v.(type) {
	case *types.AttributeValueMemberN:
		n, _ := new(big.Rat).SetString(v.Value)
		return storetest.Num(strings.TrimSuffix(n.Add(n, big.NewRat(1, 1)).FloatString(2), ".00"))
	case *types.AttributeValueMemberS:
		if at, err := time.Parse(time.RFC3339, v.Value); err == nil {
			return storetest.Str(at.Add(time.Hour).UTC().Format("2006-01-02T15:04:05.000Z"))
		}
		if at, err := time.Parse(time.DateOnly, v.Value); err == nil {
			return storetest.Str(at.AddDate(0, 0, 1).Format(time.DateOnly))
		}
		if status, err := commerce.ParseStatus(v.Value); err == nil {
			return storetest.Str((status%5 + 1).String())
		}
		return storetest.Str(v.Value + "x")
	case *types.AttributeValueMemberBOOL:
		return &types.AttributeValueMemberBOOL{Value: !v.Value}
	case *types.AttributeValueMemberL:
		if len(v.Value) == 0 {
			return &types.AttributeValueMemberL{Value: []types.AttributeValue{storetest.Str("x")}}
		}
		return &types.AttributeValueMemberL{Value: v.Value[1:]}
	case *types.AttributeValueMemberM:
		changed := maps.Clone(v.Value)
		name := slices.Sorted(maps.Keys(changed))[0]
		changed[name] = another(changed[name])
		return &types.AttributeValueMemberM{Value: changed}
	default:
		panic(fmt.Sprintf("another %T", v))
	}
}

// A check finds every record that is lost, has no owner, or has a wrong value in one attribute. A
// new entity or attribute that checks do not verify fails this test unless its list has the reason.
func TestCheckVerifiesEveryEntityAndAttribute(t *testing.T) {
	t.Parallel()
	r := newTableWithEveryEntity(t, storetest.Engines()[0].Client(t))
	sound := r.All()
	sound["LAYOUT #METADATA"] = r.Get("LAYOUT", "#METADATA")
	excused := map[string]string{}
	for reason, changes := range unverifiedChanges() {
		for _, what := range changes {
			excused[what] = reason
		}
	}
	tries := 0
	try := func(what string, do, undo func()) {
		if tries++; tries%longtest.Size(3, 1) > 0 {
			delete(excused, what)
			return
		}
		do()
		inconsistencies, summary := r.Check(check.Options{})
		undo()
		found := len(inconsistencies) > 0 || summary.Unverified > 0
		reason := excused[what]
		delete(excused, what)
		switch {
		case !found && reason == "":
			t.Errorf("a check does not find %q: verify it, or add the reason to the exceptions", what)
		case found && reason != "":
			t.Errorf("a check finds %q (%s), which is an exception in this test: %s", what, storetest.FormatKindCounts(inconsistencies), reason)
		}
	}
	for _, e := range model.Entities() {
		records := ofEntity(sound, e.Name)
		if len(records) == 0 {
			t.Errorf("there is no record of entity %q: add one to this test's table", e.Name)
			continue
		}
		rec := records[0]
		pk, sk, _ := strings.Cut(storetest.KeyText(rec), " ")
		try(e.Name+" lost", func() { r.Delete(pk, sk) }, func() { r.Put(rec) })
		orphan := maps.Clone(rec)
		owner, id, owned := strings.Cut(pk, "#")
		orphanPK, orphanSK := owner+"#"+regexp.MustCompile("[^#]").ReplaceAllString(id, "1"), sk
		if !owned {
			orphanPK, orphanSK = pk, sk+"9"
		}
		orphan["pk"], orphan["sk"] = storetest.Str(orphanPK), storetest.Str(orphanSK)
		try(e.Name+" of nobody", func() { r.Put(orphan) }, func() { r.Delete(orphanPK, orphanSK) })
		for _, name := range slices.Sorted(maps.Keys(rec)) {
			if name == "pk" || name == "sk" {
				continue
			}
			try(e.Name+"."+name, func() { r.Set(pk, sk, storetest.Item{name: another(rec[name])}) }, func() { r.Set(pk, sk, storetest.Item{name: rec[name]}) })
		}
	}
	for what := range excused {
		t.Errorf("the exception %q is unused: remove it", what)
	}
}
