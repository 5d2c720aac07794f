package dynamo_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/change"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// Mutations write no record that exceeds its bound, and this test writes a record of every entity.
func TestRecordSizesStayWithinBounds(t *testing.T) {
	ctx, db := context.Background(), storetest.Engines()[0].Client(t)
	table := storetest.TableName()
	keys, err := change.NewWebhookKeys("YWJjZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXoxMjM0NTY=")
	if err != nil {
		t.Fatal(err)
	}
	store := storetest.NewTable(t, db, dynamo.Options{Table: table, Shards: model.MaxShards, WebhookKeys: keys})
	id, name := func(n int) string { return fmt.Sprintf("%02d", n) + strings.Repeat("x", commerce.MaxIDLength-2) }, strings.Repeat("n", commerce.MaxName)
	// Folding can turn one byte of a capital letter into three. Normalization decomposes other
	// characters.
	email := strings.Repeat("\U0001D160", 60) + "@" + strings.Repeat("Ⱥ", 6)
	var phones []string
	for range commerce.MaxPhoneNumbers {
		phones = append(phones, strings.Repeat("5", commerce.MaxPhoneNumberLength))
	}
	keyed := 0
	caller := func() change.Caller {
		keyed++
		return change.Caller{ID: "anonymous", Name: "anonymous", IdempotencyKey: fmt.Sprintf("%0*d", commerce.MaxIdempotencyKey, keyed)}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{model.EntityDailySales.Name, model.EntityLowStock.Name, model.EntityOrderWaiting.Name} {
		storetest.MakeReadable(t, storetest.RawTable{T: t, DB: db, Name: table, Store: store}, name)
	}
	rep, house, customer := commerce.EmployeeID(id(0)), commerce.WarehouseID(id(0)), commerce.CustomerID(id(0))
	_, err = store.CreateWarehouse(ctx, caller(), commerce.Warehouse{ID: house, Name: name})
	must(err)
	_, err = store.HireEmployee(ctx, caller(), commerce.Employee{ID: rep, Name: name, JobTitle: name, HireDate: "2026-01-01", WarehouseID: house, PhoneNumbers: phones})
	must(err)
	_, err = store.CreateCustomer(ctx, caller(), commerce.Customer{ID: customer, Name: name, Email: email, PhoneNumbers: phones, AccountRepID: rep})
	must(err)
	price, err := commerce.ParsePrice("12345.67", "USD")
	must(err)
	address := commerce.Address{Recipient: name, Line1: name, Line2: name, City: name, Region: name, PostalCode: name, CountryCode: "US"}
	order := commerce.OrderRequest{CustomerID: customer, ShippingAddress: &address, BillingAddress: &address, Contact: &commerce.OrderContact{Email: email, Phone: phones[0], Name: name},
		Adjustments: slices.Repeat([]commerce.OrderAdjustment{{Kind: commerce.AdjustmentTax, Label: name[:commerce.MaxAdjustmentLabel], Amount: price, Line: commerce.SKU(id(0))}}, commerce.MaxAdjustments)}
	for n := range commerce.MaxLines {
		sku := commerce.SKU(id(n))
		_, err = store.CreateProduct(ctx, caller(), commerce.Product{SKU: sku, Name: name, Category: name, UnitPrice: price})
		must(err)
		_, err = store.AdjustInventory(ctx, caller(), commerce.InventoryAdjustment{SKU: sku, WarehouseID: house, Delta: 999_999_999})
		must(err)
		_, err = store.SetInventoryLevel(ctx, caller(), commerce.InventoryLevelChange{SKU: sku, WarehouseID: house, ReorderPoint: new(commerce.MaxInventoryLevel * max(0, 1-len(order.Lines)))})
		must(err)
		order.Lines = append(order.Lines, commerce.OrderLine{SKU: sku, Quantity: 999_999})
	}
	parcel, err := store.PlaceOrder(ctx, caller(), order)
	must(err)
	_, err = store.ChangeOrderStatus(ctx, caller(), commerce.OrderStatusChange{OrderID: parcel.ID, To: commerce.Confirmed})
	must(err)
	_, err = store.CreateFulfillment(ctx, change.Caller{ID: "anonymous", Name: name}, commerce.FulfillmentRequest{
		OrderID: parcel.ID, WarehouseID: house, Carrier: name, TrackingNumber: name, TrackingURL: strings.Repeat("u", commerce.MaxTrackingURL),
	})
	must(err)
	order.Lines = order.Lines[:commerce.MaxEmbeddedItems]
	placed, err := store.PlaceOrder(ctx, caller(), order)
	must(err)
	order.ExpiresAt = new(placed.PlacedAt.Add(time.Hour))
	_, err = store.PlaceOrder(ctx, caller(), order)
	must(err)
	order.ExpiresAt = nil
	waiting, err := store.PlaceOrder(ctx, caller(), order)
	must(err)
	_, err = store.ChangeOrderStatus(ctx, caller(), commerce.OrderStatusChange{OrderID: waiting.ID, To: commerce.Confirmed})
	must(err)
	tags := commerce.TagsChange{OrderID: placed.ID}
	for n := range commerce.MaxTags {
		tags.Add = append(tags.Add, id(n))
	}
	_, err = store.TagOrder(ctx, caller(), tags)
	must(err)
	captured, err := commerce.ParseMoney("9999999999999.99", "USD")
	must(err)
	_, err = store.RecordPayment(ctx, change.Caller{ID: "anonymous", Name: name}, commerce.PaymentRecord{
		OrderID: placed.ID, Kind: commerce.PaymentAuthorization, Amount: captured, Provider: id(0), Reference: strings.Repeat("r", commerce.MaxPaymentReference),
	})
	must(err)
	err = store.ReceivePayment(ctx, caller(), commerce.PaymentEvent{
		Kind: commerce.PaymentAuthorization, Amount: captured, Provider: id(1), Reference: strings.Repeat("r", commerce.MaxPaymentReference), OrderID: strings.Repeat("o", commerce.MaxGivenOrderID),
	}, false)
	if !commerce.IsUserError(err) {
		t.Fatal(err)
	}
	requested := commerce.ReturnRequest{OrderID: placed.ID}
	for _, line := range order.Lines {
		requested.Lines = append(requested.Lines, commerce.ReturnLine{SKU: line.SKU, Quantity: line.Quantity, Reason: name})
	}
	for _, move := range []commerce.OrderStatusChange{{To: commerce.Confirmed}, {To: commerce.Shipped, WarehouseID: house}, {To: commerce.Delivered}} {
		move.OrderID, move.Note = placed.ID, strings.Repeat("n", commerce.MaxNote)
		move.TrackingNumber, move.Carrier = strings.Repeat("t", commerce.MaxName), strings.Repeat("c", commerce.MaxName)
		_, err = store.ChangeOrderStatus(ctx, caller(), move)
		must(err)
		if move.To == commerce.Shipped {
			_, err = store.RequestReturn(ctx, caller(), requested)
			must(err)
		}
	}
	_, err = store.UpdateProduct(ctx, caller(), commerce.ProductChange{SKU: commerce.SKU(id(0)), StockBuckets: new(commerce.MaxStockBuckets)})
	must(err)

	storetest.MakeReadable(t, storetest.RawTable{T: t, DB: db, Name: table, Store: store}, model.Changes)
	hook := commerce.WebhookRequest{URL: "https://example.com/" + strings.Repeat("u", commerce.MaxWebhookURL-20), Statuses: commerce.Statuses(), DocumentID: name}
	for range commerce.MaxWebhookTopics {
		hook.Topics = append(hook.Topics, commerce.EventShippingAddressChanged)
	}
	webhook, err := store.CreateWebhook(ctx, change.Caller{ID: "anonymous", Name: name}, hook)
	must(err)
	_, err = store.RotateWebhookSecret(ctx, caller(), commerce.WebhookCommand{WebhookID: webhook.ID})
	must(err)
	at, text := store.Now(), strings.Repeat("e", commerce.MaxWebhookError)
	must(store.SaveWebhookState(ctx, &commerce.WebhookState{
		WebhookID: webhook.ID, Owner: name, Sequence: 1, Wanted: name, Cursor: webhook.From, RetryAt: &at, DisabledReason: text, LastError: text, LastErrorAt: &at, LastSuccessAt: &at, PendingSince: &at, Delivered: slices.Repeat([]commerce.EventID{webhook.From}, commerce.MaxWebhookDelivered),
	}, 0))
	must(store.SaveWebhookFailure(ctx, &commerce.WebhookFailure{WebhookID: webhook.ID, OrderID: placed.ID, EventID: webhook.From, RetryAt: at, Since: at, Error: text}, name))

	// Only check and eraseCustomer write the record of a deletion.
	_, err = db.PutItem(ctx, &dynamodb.PutItemInput{TableName: &table, Item: map[string]types.AttributeValue{
		"pk": &types.AttributeValueMemberS{Value: "CUSTOMER#" + id(1)}, "sk": &types.AttributeValueMemberS{Value: "DELETED"},
		"entity": &types.AttributeValueMemberS{Value: "deletedCustomer"}, "customerId": &types.AttributeValueMemberS{Value: id(1)},
		"deletedAt": &types.AttributeValueMemberS{Value: "2026-01-02T03:04:05.000Z"}, "erasure": &types.AttributeValueMemberS{Value: "incomplete"},
		"erasedTo": &types.AttributeValueMemberS{Value: strings.Repeat("0", 26) + " EVENT#" + strings.Repeat("0", 26)},
	}})
	must(err)

	bounds := dynamo.NewCostBounds(1)
	largest := map[string]int{}
	pages := dynamodb.NewScanPaginator(db, &dynamodb.ScanInput{TableName: &table})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		must(err)
		for _, r := range page.Items {
			if entity, ok := r["entity"].(*types.AttributeValueMemberS); ok {
				largest[entity.Value] = max(largest[entity.Value], dynamo.SizeOf(r))
			}
		}
	}
	written := map[string]bool{}
	for _, p := range model.WritePatterns() {
		for _, e := range slices.Concat(p.Writes, p.OptionalWrites, p.WritesPerLine, p.OptionalWritesPerLine) {
			written[e.Name] = true
		}
		if p.Buckets {
			written[model.EntityStockBucket.Name] = true
		}
		if p.LowStock {
			written[model.EntityLowStock.Name] = true
		}
	}
	for _, e := range model.Entities() {
		if largest[e.Name] == 0 && !written[e.Name] {
			continue // no mutation writes such a record, only a load
		}
		size, most := largest[e.Name], bounds.LargestSize(e.Name)
		if size == 0 || size > most {
			t.Errorf("a record of kind %s has %d bytes, the bounds say %d", e.Name, size, most)
		}
		// These bounds are intentionally generous: the e-mail address of a claim, the caller of an
		// idempotency record, the numbers of order counts and sales, the eras of a layout, and the lines of a
		// return, because the order has fewer.
		if size < most*3/4 && !slices.Contains([]string{"emailClaim", "idempotency", "orderCounts", "dailySales", "layout", "return"}, e.Name) {
			t.Errorf("no record of kind %s has more than %d bytes, the bounds say %d", e.Name, size, most)
		}
	}
}
