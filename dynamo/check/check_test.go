package check_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/check"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/internal/test/longtest"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// lastEvent is an event of the table as a customer's last event, with changes; nil removes an
// attribute.
func lastEvent(r storetest.RawTable, customer, orderPK, eventSK string, changes storetest.Item) storetest.Item {
	rec := r.Get(orderPK, eventSK)
	rec["pk"], rec["sk"], rec["entity"], rec["customerId"] = storetest.Str("CUSTOMER#"+customer), storetest.Str("LAST_EVENT"), storetest.Str("lastEvent"), storetest.Str(customer)
	for name, v := range changes {
		if rec[name] = v; v == nil {
			delete(rec, name)
		}
	}
	return rec
}

// withoutStockRevisions returns records without stock revisions, which repairs of stock raise, and
// without the counts of open orders, which every repair adds.
func withoutStockRevisions(records map[string]storetest.Item) map[string]storetest.Item {
	for _, rec := range records {
		for _, name := range []string{"stockRevision", "openOrders", "reservedUnits", "reservationsCounted"} {
			delete(rec, name)
		}
	}
	return records
}

// damage is one way to damage the fixture.
// deletedCustomer returns the record which states that a customer was deleted.
func deletedCustomer(id string) storetest.Item {
	rec := storetest.ItemKey("CUSTOMER#"+id, "DELETED")
	rec["entity"], rec["customerId"], rec["deletedAt"] = storetest.Str("deletedCustomer"), storetest.Str(id), storetest.Str("2026-01-02T03:04:05.000Z")
	return rec
}

type damage struct {
	name string
	do   func(r storetest.RawTable)
	// found has the kinds and their numbers in one line: "order-total 1".
	found string
	// also has the findings that only a repair makes, because it has changed the cost of an order.
	also string
	// repairs is set if a repair finds more than a check. It has the same form as found.
	repairs string
	// changes reports whether the repaired records differ from the original records, because the
	// repair cannot restore a value.
	changes bool
	// byHand is the number of inconsistencies that cannot be repaired.
	byHand int
	// deletes reports whether the repair treats a missing record as deleted, instead of restoring it.
	deletes bool
	// big reports whether the damage needs storetest.BigOrderNumber. Elsewhere that order only takes
	// time.
	big bool
}

func damages() []damage {
	returnRecord := func(order, amount string) storetest.Item {
		id := storetest.ULIDAt(storetest.FirstOrderTime(), 79)
		return storetest.Item{"pk": storetest.Str("ORDER#" + order), "sk": storetest.Str("RETURN#" + id), "gsi1pk": storetest.Str("RETURNS#requested"), "gsi1sk": storetest.Str("RETURN#" + id), "entity": storetest.Str("return"),
			"orderId": storetest.Str(order), "returnId": storetest.Str(id), "status": storetest.Str("requested"), "lines": &types.AttributeValueMemberL{}, "amount": storetest.Num(amount), "currency": storetest.Str("USD"),
			"createdAt": storetest.Str("2026-01-01T00:00:00.000Z"), "actor": storetest.Str("me")}
	}
	const own = "#METADATA"
	order := func(n int) string { return "ORDER#" + storetest.SmallOrderID(n) }
	adjustment := func(kind, amount string, included bool) types.AttributeValue {
		return &types.AttributeValueMemberM{Value: storetest.Item{"kind": storetest.Str(kind), "label": storetest.Str("L"), "amount": storetest.Num(amount), "included": &types.AttributeValueMemberBOOL{Value: included}}}
	}
	vat := adjustment("tax", "3", true)
	included := &types.AttributeValueMemberL{Value: []types.AttributeValue{vat}}
	adjustments := &types.AttributeValueMemberL{Value: []types.AttributeValue{adjustment("shipping", "4.90", false), adjustment("discount", "-1", false), vat}}
	return []damage{
		{name: "order's record lost", found: "order-missing 1", do: func(r storetest.RawTable) { r.Delete(order(0), own) }},
		{name: "order's record and an item lost", found: "item-missing 1, order-missing 1", do: func(r storetest.RawTable) {
			r.Delete(order(0), own)
			r.Delete(order(0), "ITEM#p01")
		}},
		{name: "everything lost but the copy", found: "item-missing 3, order-missing 1, timeline 1", changes: true, do: func(r storetest.RawTable) {
			for _, sk := range []string{own, "ITEM#p00", "ITEM#p01", "ITEM#p02", "EVENT#" + storetest.ULIDAt(storetest.FirstOrderTime(), 1)} {
				r.Delete(order(0), sk)
			}
		}},
		{name: "copy lost", found: "copy-missing 1", do: func(r storetest.RawTable) { r.Delete("CUSTOMER#c1", order(0)) }},
		{name: "copy lost that was not counted", found: "copy-missing 1, order-count 1", do: func(r storetest.RawTable) {
			r.Delete("CUSTOMER#c1", order(0))
			r.Set("CUSTOMER#c1", own, storetest.Item{"orderCount": storetest.Num("2")})
		}},
		{name: "copy with another customer", found: "orphan-copy 1", do: func(r storetest.RawTable) {
			rec := r.Get("CUSTOMER#c1", order(0))
			rec["pk"] = storetest.Str("CUSTOMER#c2")
			r.Put(rec)
		}},
		{name: "copy moved to another customer", found: "copy-missing 1, orphan-copy 1", do: func(r storetest.RawTable) {
			rec := r.Get("CUSTOMER#c1", order(0))
			r.Delete("CUSTOMER#c1", order(0))
			rec["pk"] = storetest.Str("CUSTOMER#c2")
			r.Put(rec)
		}},
		{name: "order names another customer", found: "order-records-differ 1", do: func(r storetest.RawTable) {
			r.Set(order(0), own, storetest.Item{"customerId": storetest.Str("c2")})
		}},
		{name: "order names no customer", found: "order-records-differ 1", do: func(r storetest.RawTable) {
			r.Set(order(0), own, storetest.Item{"customerId": nil})
		}},
		{name: "copy left behind", found: "index-keys 1, order-records-differ 1", do: func(r storetest.RawTable) {
			r.Set("CUSTOMER#c1", order(2), storetest.Item{"status": storetest.Str("confirmed"), "version": storetest.Num("2"), "updatedAt": storetest.Str("2025-01-01T00:00:00.000Z"), "gsi1pk": nil, "gsi1sk": nil})
		}},
		{name: "order left behind its copy", found: "index-keys 1, order-records-differ 1", do: func(r storetest.RawTable) {
			r.Set(order(2), own, storetest.Item{"status": storetest.Str("pending"), "version": storetest.Num("2"), "gsi1pk": storetest.Str("STATUS#pending")})
		}},
		{name: "copy of the same version differs", found: "order-records-differ 1", do: func(r storetest.RawTable) {
			r.Set("CUSTOMER#c1", order(2), storetest.Item{"status": storetest.Str("pending"), "accountRepId": nil, "shippingAddress": nil})
		}},
		{name: "order without a status", found: "order-records-differ 1", do: func(r storetest.RawTable) { r.Set(order(1), own, storetest.Item{"status": nil}) }},
		{name: "order without the time that its id tells", do: func(r storetest.RawTable) { r.Set(order(1), own, storetest.Item{"createdAt": nil}) }, changes: true},
		{name: "copy without a total", found: "order-total 1", do: func(r storetest.RawTable) { r.Set("CUSTOMER#c2", order(1), storetest.Item{"total": nil}) }},
		{name: "total that is a text", found: "unreadable 1", byHand: 1, changes: true, do: func(r storetest.RawTable) { r.Set(order(1), own, storetest.Item{"total": storetest.Str("much")}) }},
		{name: "address without a street", found: "invalid-value 2", byHand: 2, changes: true, do: func(r storetest.RawTable) {
			address := storetest.Item{"shippingAddress": &types.AttributeValueMemberM{Value: storetest.Item{"recipient": storetest.Str("Ann"), "city": storetest.Str("Town"), "countryCode": storetest.Str("US")}}}
			r.Set(order(1), own, address)
			r.Set("CUSTOMER#c2", order(1), address)
		}},
		{name: "key in lower case", found: "key-case 1", byHand: 1, changes: true, do: func(r storetest.RawTable) {
			rec := r.Get("EMPLOYEE#e1", own)
			rec["pk"], rec["sk"] = storetest.Str("employee#e1"), storetest.Str("#metadata")
			r.Put(rec)
		}},
		{name: "total wrong", found: "order-total 1", do: func(r storetest.RawTable) { r.Set(order(1), own, storetest.Item{"total": storetest.Num("1.5")}) }},
		{name: "total without the adjustments", found: "order-total 2", also: ", spending 1", changes: true, do: func(r storetest.RawTable) {
			r.Set(order(1), own, storetest.Item{"adjustments": adjustments})
			r.Set("CUSTOMER#c2", order(1), storetest.Item{"adjustments": adjustments})
		}},
		{name: "adjustments lost in the copy", found: "order-records-differ 1", changes: true, do: func(r storetest.RawTable) {
			r.Set(order(1), own, storetest.Item{"adjustments": included})
		}},
		{name: "adjustments that cannot be read", found: "unreadable 1", byHand: 1, changes: true, do: func(r storetest.RawTable) {
			r.Set(order(1), own, storetest.Item{"adjustments": &types.AttributeValueMemberL{Value: []types.AttributeValue{storetest.Num("1")}}})
		}},
		{name: "total wrong on both", found: "order-total 2", do: func(r storetest.RawTable) {
			r.Set(order(1), own, storetest.Item{"total": storetest.Num("1.5")})
			r.Set("CUSTOMER#c2", order(1), storetest.Item{"total": storetest.Num("1.5")})
		}},
		{name: "number of items wrong", found: "item-count 1", do: func(r storetest.RawTable) {
			r.Set("CUSTOMER#c2", order(1), storetest.Item{"itemCount": storetest.Num("9")})
		}},
		{name: "list of items wrong", found: "embedded-items 2", do: func(r storetest.RawTable) {
			all := r.Get(order(1), own)["items"].(*types.AttributeValueMemberL).Value
			r.Set(order(1), own, storetest.Item{"items": &types.AttributeValueMemberL{Value: all[:2]}})
			r.Set("CUSTOMER#c2", order(1), storetest.Item{"items": &types.AttributeValueMemberL{}})
		}},
		{name: "list of items on a big order", big: true, found: "embedded-items 1", do: func(r storetest.RawTable) {
			r.Set(order(storetest.BigOrderNumber), own, storetest.Item{"items": r.Get(order(0), own)["items"]})
		}},
		{name: "item lost", found: "item-missing 1", do: func(r storetest.RawTable) { r.Delete(order(0), "ITEM#p01") }},
		{name: "item free of charge lost", found: "item-missing 1", do: func(r storetest.RawTable) { r.Delete(order(2), "ITEM#p02") }},
		{name: "all items lost", found: "item-missing 3", do: func(r storetest.RawTable) {
			for _, sku := range []string{"p00", "p01", "p02"} {
				r.Delete(order(0), "ITEM#"+sku)
			}
		}},
		{name: "item of a big order lost", big: true, found: "item-count 2, order-count 1, order-total 2", also: ", spending 1", changes: true, do: func(r storetest.RawTable) { r.Delete(order(storetest.BigOrderNumber), "ITEM#p01") }},
		{name: "item's quantity wrong", found: "item-differs 1", do: func(r storetest.RawTable) { r.Set(order(0), "ITEM#p01", storetest.Item{"qty": storetest.Num("7")}) }},
		{name: "item without a price", found: "item-differs 1", do: func(r storetest.RawTable) { r.Set(order(0), "ITEM#p01", storetest.Item{"price": nil}) }},
		{name: "item of a big order without a price", big: true, found: "unreadable 1", byHand: 1, changes: true, do: func(r storetest.RawTable) {
			r.Set(order(storetest.BigOrderNumber), "ITEM#p01", storetest.Item{"price": nil})
		}},
		{name: "item that nothing knows", found: "orphan-item 1", do: func(r storetest.RawTable) {
			rec := r.Get(order(0), "ITEM#p01")
			rec["sk"], rec["productId"], rec["gsi1pk"] = storetest.Str("ITEM#p09"), storetest.Str("p09"), storetest.Str("PRODUCT#p09")
			r.Put(rec)
		}},
		{name: "items and events of no order", found: "orphan-event 1, orphan-item 2", do: func(r storetest.RawTable) {
			for _, sk := range []string{"ITEM#p01", "ITEM#p02", "EVENT#" + storetest.ULIDAt(storetest.FirstOrderTime(), 1)} {
				rec := r.Get(order(0), sk)
				rec["pk"] = storetest.Str("ORDER#" + storetest.ULIDAt(storetest.FirstOrderTime(), 77))
				if rec["gsi1sk"] != nil {
					rec["gsi1sk"] = rec["pk"]
				}
				r.Put(rec)
			}
		}},
		{name: "sums of payments without payments", found: "payments 1", do: func(r storetest.RawTable) {
			r.Set(order(0), own, storetest.Item{"authorized": storetest.Num("0"), "captured": storetest.Num("5"), "refunded": storetest.Num("0")})
		}},
		{name: "payment of no order", found: "orphan-payment 1", byHand: 1, changes: true, do: func(r storetest.RawTable) {
			lost, id := storetest.ULIDAt(storetest.FirstOrderTime(), 77), storetest.ULIDAt(storetest.FirstOrderTime(), 78)
			r.Put(storetest.Item{"pk": storetest.Str("ORDER#" + lost), "sk": storetest.Str("PAYMENT#" + id), "entity": storetest.Str("payment"), "orderId": storetest.Str(lost), "paymentId": storetest.Str(id),
				"kind": storetest.Str("capture"), "amount": storetest.Num("1"), "currency": storetest.Str("USD"), "providerReference": storetest.Str("stripe:1"), "createdAt": storetest.Str("2026-01-01T00:00:00.000Z"), "actor": storetest.Str("me")})
			r.Put(storetest.Item{"pk": storetest.Str("PAYMENT#stripe:1"), "sk": storetest.Str(own), "entity": storetest.Str("paymentClaim"), "orderId": storetest.Str(lost), "paymentId": storetest.Str(id)})
		}},
		{name: "return of no order", found: "orphan-return 1", byHand: 1, changes: true, do: func(r storetest.RawTable) {
			r.Put(returnRecord(storetest.ULIDAt(storetest.FirstOrderTime(), 77), "9"))
		}},
		{name: "amount of a return", found: "return-amount 1", changes: true, do: func(r storetest.RawTable) {
			r.Put(returnRecord(storetest.SmallOrderID(0), "9"))
		}},
		{name: "refund for a lost return", found: "edge-missing 1, payments 2, return-missing 1", byHand: 1, changes: true, do: func(r storetest.RawTable) {
			id := storetest.ULIDAt(storetest.FirstOrderTime(), 78)
			r.Put(storetest.Item{"pk": storetest.Str(order(0)), "sk": storetest.Str("PAYMENT#" + id), "entity": storetest.Str("payment"), "orderId": storetest.Str(storetest.SmallOrderID(0)), "paymentId": storetest.Str(id), "returnId": storetest.Str(id),
				"kind": storetest.Str("refund"), "amount": storetest.Num("1"), "currency": storetest.Str("USD"), "providerReference": storetest.Str("stripe:1"), "createdAt": storetest.Str("2026-01-01T00:00:00.000Z"), "actor": storetest.Str("me")})
			r.Put(storetest.Item{"pk": storetest.Str("PAYMENT#stripe:1"), "sk": storetest.Str(own), "entity": storetest.Str("paymentClaim"), "orderId": storetest.Str(storetest.SmallOrderID(0)), "paymentId": storetest.Str(id)})
		}},
		{name: "sums of fulfillments without fulfillments", found: "fulfillments 1", do: func(r storetest.RawTable) {
			r.Set(order(0), own, storetest.Item{"fulfillments": storetest.Num("1"), "undelivered": storetest.Num("1")})
		}},
		{name: "fulfillment of no order", found: "orphan-fulfillment 1", byHand: 1, changes: true, do: func(r storetest.RawTable) {
			lost, id := storetest.ULIDAt(storetest.FirstOrderTime(), 77), storetest.ULIDAt(storetest.FirstOrderTime(), 78)
			r.Put(storetest.Item{"pk": storetest.Str("ORDER#" + lost), "sk": storetest.Str("SHIPMENT#" + id), "entity": storetest.Str("fulfillment"), "orderId": storetest.Str(lost), "fulfillmentId": storetest.Str(id),
				"warehouseId": storetest.Str("w1"), "status": storetest.Str("shipped"), "createdAt": storetest.Str("2026-01-01T00:00:00.000Z"), "updatedAt": storetest.Str("2026-01-01T00:00:00.000Z"), "actor": storetest.Str("me")})
		}},
		{name: "last event lost", found: "timeline 1", changes: true, do: func(r storetest.RawTable) {
			at, _ := commerce.OrderID(storetest.SmallOrderID(2)).Time()
			r.Delete(order(2), "EVENT#"+storetest.ULIDAt(at.Add(time.Minute), 2))
		}},
		{name: "all events lost", found: "timeline 1", changes: true, do: func(r storetest.RawTable) {
			r.Delete(order(0), "EVENT#"+storetest.ULIDAt(storetest.FirstOrderTime(), 1))
		}},
		{name: "order dated before its last event", found: "updated-at 1", do: func(r storetest.RawTable) {
			r.Set(order(1), own, storetest.Item{"updatedAt": storetest.Str("2025-12-31T00:00:00.000Z")})
			r.Set("CUSTOMER#c2", order(1), storetest.Item{"updatedAt": storetest.Str("2025-12-31T00:00:00.000Z")})
		}},
		{name: "order whose record lacks the version", found: "order-records-differ 1", do: func(r storetest.RawTable) {
			r.Set(order(0), "#METADATA", storetest.Item{"version": nil})
		}},
		{name: "event of a clock ahead", found: "timeline 1, updated-at 1", changes: true, do: func(r storetest.RawTable) {
			rec := r.Get(order(0), "EVENT#"+storetest.ULIDAt(storetest.FirstOrderTime(), 1))
			ahead := time.Now().Add(time.Hour)
			id := storetest.ULIDAt(ahead, 1)
			rec["sk"], rec["eventId"], rec["to"], rec["createdAt"] = storetest.Str("EVENT#"+id), storetest.Str(id), storetest.Str("shipped"), storetest.Str(ahead.UTC().Format("2006-01-02T15:04:05.000Z"))
			r.Put(rec)
		}},
		{name: "customer's last event that cannot be read", found: "last-event 1", do: func(r storetest.RawTable) {
			r.Put(lastEvent(r, "c1", order(0), "EVENT#"+storetest.ULIDAt(storetest.FirstOrderTime(), 1), storetest.Item{"type": nil}))
		}},
		{name: "customer's last event of nobody", found: "last-event 1", do: func(r storetest.RawTable) {
			r.Put(lastEvent(r, "c9", order(0), "EVENT#"+storetest.ULIDAt(storetest.FirstOrderTime(), 1), nil))
		}},
		{name: "customer's last event in a list", found: "index-keys 1, key-attribute 1", changes: true, do: func(r storetest.RawTable) {
			at := storetest.FirstOrderTime().Add(4*time.Hour + time.Minute)
			r.Put(lastEvent(r, "c1", order(4), "EVENT#"+storetest.ULIDAt(at, 2), storetest.Item{"customerId": storetest.Str("c2"), "gsi1pk": storetest.Str("CUSTOMER"), "gsi1sk": storetest.Str("x")}))
		}},
		{name: "event that cannot be read", found: "unreadable 1", byHand: 1, changes: true, do: func(r storetest.RawTable) {
			r.Set(order(0), "EVENT#"+storetest.ULIDAt(storetest.FirstOrderTime(), 1), storetest.Item{"type": storetest.Str("odd")})
		}},
		{name: "copy lost of an order with an event that cannot be read", found: "copy-missing 1, unreadable 1", byHand: 1, changes: true, do: func(r storetest.RawTable) {
			r.Delete("CUSTOMER#c1", order(0))
			r.Set(order(0), "EVENT#"+storetest.ULIDAt(storetest.FirstOrderTime(), 1), storetest.Item{"type": storetest.Str("odd")})
		}},
		{name: "neither record of an order can be read", found: "unreadable 2", byHand: 2, changes: true, do: func(r storetest.RawTable) {
			r.Set(order(0), own, storetest.Item{"status": storetest.Str("odd")})
			r.Set("CUSTOMER#c1", order(0), storetest.Item{"status": nil})
		}},
		{name: "customer with orders lost", found: "customer-missing 1", changes: true, do: func(r storetest.RawTable) { r.Delete("CUSTOMER#c2", own) }},
		{name: "customer with an edge lost", found: "customer-missing 1", do: func(r storetest.RawTable) { r.Delete("CUSTOMER#c1", own) }},
		{name: "customer with orders deleted", found: "customer-missing 1, orphan-claim 1, orphan-edge 2", deletes: true, changes: true, do: func(r storetest.RawTable) { r.Delete("CUSTOMER#c2", own) }},
		{name: "customer and edges deleted", found: "customer-missing 1, orphan-claim 1", deletes: true, changes: true, do: func(r storetest.RawTable) {
			r.Delete("CUSTOMER#c2", own)
			r.Delete("CUSTOMER#c2", "NAME")
			r.Delete("CUSTOMER#c2", "EMAIL")
		}},
		{name: "record of a deleted customer", found: "customer-deleted 1, orphan-edge 2", changes: true, do: func(r storetest.RawTable) {
			r.Put(deletedCustomer("c2"))
			r.Delete("EMAIL#bob@example.com", own)
		}},
		{name: "incomplete erasure", found: "erasure 2, last-event 1, orphan-edge 2", repairs: "erasure 10, last-event 1, orphan-edge 2", changes: true, do: func(r storetest.RawTable) {
			rec := deletedCustomer("c2")
			rec["erasure"] = storetest.Str("incomplete")
			r.Put(rec)
			r.Delete("EMAIL#bob@example.com", own)
			r.Delete("CUSTOMER#c2", own)
		}},
		{name: "claim of a deleted customer", found: "key-attribute 1, orphan-claim 1", changes: true, do: func(r storetest.RawTable) {
			rec := deletedCustomer("c2")
			rec["customerId"] = storetest.Str("c1")
			r.Put(rec)
			for _, sk := range []string{own, "NAME", "EMAIL"} {
				r.Delete("CUSTOMER#c2", sk)
			}
		}},
		{name: "edge of no customer", found: "orphan-edge 1", do: func(r storetest.RawTable) {
			r.Put(storetest.Item{"pk": storetest.Str("CUSTOMER#c9"), "sk": storetest.Str("REP"), "gsi1pk": storetest.Str("REP#e1"), "gsi1sk": storetest.Str("CUSTOMER#c9")})
		}},
		{name: "customer without a name, with an edge", found: "edge-differs 1", do: func(r storetest.RawTable) { r.Set("CUSTOMER#c1", own, storetest.Item{"name": nil}) }},
		{name: "customer without a name or an edge", found: "unreadable 1", byHand: 1, changes: true, do: func(r storetest.RawTable) {
			r.Set("CUSTOMER#c2", own, storetest.Item{"name": nil})
			r.Delete("CUSTOMER#c2", "NAME")
			r.Delete("CUSTOMER#c2", "EMAIL")
		}},
		{name: "customer without a name", found: "edge-differs 1", do: func(r storetest.RawTable) { r.Set("CUSTOMER#c2", own, storetest.Item{"name": nil}) }},
		{name: "customer without an address", found: "unreadable 1", byHand: 1, changes: true, do: func(r storetest.RawTable) {
			r.Set("CUSTOMER#c2", own, storetest.Item{"email": nil})
			r.Delete("CUSTOMER#c2", "NAME")
			r.Delete("CUSTOMER#c2", "EMAIL")
		}},
		{name: "customer with an invalid address", found: "unreadable 1", byHand: 1, changes: true, do: func(r storetest.RawTable) {
			r.Set("CUSTOMER#c2", own, storetest.Item{"email": storetest.Str("bob")})
			r.Delete("EMAIL#bob@example.com", own)
		}},
		{name: "spending wrong", found: "spending 2", do: func(r storetest.RawTable) {
			r.Set("CUSTOMER#c1", "SPENDING#2026-01#USD", storetest.Item{"spent": storetest.Num("99")})
			rec := r.Get("CUSTOMER#c1", "SPENDING#2026-01#USD")
			rec["pk"], rec["customerId"] = storetest.Str("CUSTOMER#c9"), storetest.Str("c9")
			r.Put(rec)
		}},
		{name: "number of orders wrong", found: "order-count 1", do: func(r storetest.RawTable) {
			r.Set("CUSTOMER#c1", own, storetest.Item{"orderCount": storetest.Num("7")})
		}},
		{name: "claim lost", found: "claim-missing 1", do: func(r storetest.RawTable) { r.Delete("EMAIL#ann@example.com", own) }},
		{name: "claim for another customer", found: "claim-missing 1", do: func(r storetest.RawTable) {
			r.Set("EMAIL#ann@example.com", own, storetest.Item{"customerId": storetest.Str("c2")})
		}},
		{name: "claim of nobody", found: "orphan-claim 1", do: func(r storetest.RawTable) {
			r.Put(storetest.Item{"pk": storetest.Str("EMAIL#old@example.com"), "sk": storetest.Str(own), "customerId": storetest.Str("c1")})
		}},
		{name: "claim of a customer who does not exist", found: "orphan-claim 1", do: func(r storetest.RawTable) {
			r.Put(storetest.Item{"pk": storetest.Str("EMAIL#old@example.com"), "sk": storetest.Str(own), "customerId": storetest.Str("c9")})
		}},
		{name: "claim that names nobody", found: "orphan-claim 1", do: func(r storetest.RawTable) {
			r.Put(storetest.ItemKey("EMAIL#old@example.com", own))
		}},
		{name: "one address of two customers", found: "value-shared 1", byHand: 1, changes: true, do: func(r storetest.RawTable) {
			for _, sk := range []string{own, "NAME", "EMAIL"} {
				r.Set("CUSTOMER#c2", sk, storetest.Item{"email": storetest.Str("ANN@example.com")})
			}
			r.Set("CUSTOMER#c2", "EMAIL", storetest.Item{"gsi1sk": storetest.Str("ann@example.com#c2")})
			r.Delete("EMAIL#bob@example.com", own)
		}},
		{name: "edge lost", found: "edge-missing 1", do: func(r storetest.RawTable) { r.Delete("CUSTOMER#c1", "REP") }},
		{name: "edge differs", found: "edge-differs 1", do: func(r storetest.RawTable) {
			r.Set("CUSTOMER#c1", "REP", storetest.Item{"name": storetest.Str("Anna"), "phoneNumbers": nil})
		}},
		{name: "edge to no rep", found: "orphan-edge 1", do: func(r storetest.RawTable) {
			rec := r.Get("CUSTOMER#c1", "REP")
			rec["pk"], rec["gsi1sk"] = storetest.Str("CUSTOMER#c2"), storetest.Str("CUSTOMER#c2")
			r.Put(rec)
		}},
		{name: "employee lost", found: "employee-missing 1", do: func(r storetest.RawTable) { r.Delete("EMPLOYEE#e1", own) }},
		{name: "employee deleted", found: "employee-missing 1, orphan-edge 3", deletes: true, changes: true, do: func(r storetest.RawTable) { r.Delete("EMPLOYEE#e1", own) }},
		{name: "employee without a title", found: "edge-differs 1", do: func(r storetest.RawTable) { r.Set("EMPLOYEE#e1", own, storetest.Item{"jobTitle": nil}) }},
		{name: "employee's edges lost", found: "edge-missing 3", do: func(r storetest.RawTable) {
			for _, sk := range []string{"NAME", "TITLE", "WAREHOUSE"} {
				r.Delete("EMPLOYEE#e1", sk)
			}
		}},
		{name: "employee's edge to a warehouse left behind", found: "orphan-edge 1", do: func(r storetest.RawTable) {
			rec := r.Get("EMPLOYEE#e1", "WAREHOUSE")
			rec["pk"], rec["gsi1sk"] = storetest.Str("EMPLOYEE#e2"), storetest.Str("EMPLOYEE#e2")
			r.Put(rec)
		}},
		{name: "total inventory wrong", found: "stock-total 1", do: func(r storetest.RawTable) {
			r.Set("PRODUCT#p00", own, storetest.Item{"totalInventory": storetest.Num("99")})
		}},
		{name: "available stock wrong", found: "stock-available 1", do: func(r storetest.RawTable) {
			r.Set("PRODUCT#p00", own, storetest.Item{"available": storetest.Num("99")})
		}},
		{name: "stock lost", found: "stock-available 1, stock-total 1", do: func(r storetest.RawTable) {
			r.Set("PRODUCT#p00", own, storetest.Item{"available": nil, "totalInventory": nil})
		}},
		{name: "stock bucket of a product with one record", found: "stock-bucket 1", do: func(r storetest.RawTable) {
			r.Put(storetest.Item{"pk": storetest.Str("STOCK#p00#1"), "sk": storetest.Str(own), "sku": storetest.Str("p00"), "bucket": storetest.Str("1"), "available": storetest.Num("5")})
		}},
		{name: "level without a product", found: "orphan-level 1", do: func(r storetest.RawTable) {
			r.Put(storetest.Item{"pk": storetest.Str("PRODUCT#p99"), "sk": storetest.Str("WAREHOUSE#w1"), "sku": storetest.Str("p99"), "warehouseId": storetest.Str("w1"), "quantity": storetest.Num("5"), "gsi1pk": storetest.Str("WAREHOUSE#w1"), "gsi1sk": storetest.Str("PRODUCT#p99")})
		}},
		{name: "level without a quantity", found: "unreadable 1", byHand: 1, changes: true, do: func(r storetest.RawTable) { r.Set("PRODUCT#p00", "WAREHOUSE#w1", storetest.Item{"quantity": nil}) }},
		{name: "category lost", found: "category-count 1", do: func(r storetest.RawTable) { r.Delete("CATEGORIES", "CATEGORY#Things") }},
		{name: "category without products", found: "category-count 1", do: func(r storetest.RawTable) {
			r.Put(storetest.Item{"pk": storetest.Str("CATEGORIES"), "sk": storetest.Str("CATEGORY#Empty"), "category": storetest.Str("Empty"), "productCount": storetest.Num("2")})
		}},
		{name: "products of a category counted wrong", found: "category-count 1", do: func(r storetest.RawTable) {
			r.Set("CATEGORIES", "CATEGORY#Things", storetest.Item{"productCount": storetest.Num("77")})
		}},
		{name: "products of a category that cannot be counted", found: "unreadable 1", byHand: 1, changes: true, do: func(r storetest.RawTable) {
			r.Set("CATEGORIES", "CATEGORY#Things", storetest.Item{"productCount": storetest.Str("many")})
		}},
		{name: "product without a category", found: "index-keys 1", do: func(r storetest.RawTable) { r.Set("PRODUCT#p00", own, storetest.Item{"category": nil}) }},
		{name: "product without a price", found: "unreadable 1", byHand: 1, changes: true, do: func(r storetest.RawTable) { r.Set("PRODUCT#p00", own, storetest.Item{"unitPrice": nil}) }},
		{name: "product with a stock revision that is no number", found: "unreadable 1", byHand: 1, changes: true, do: func(r storetest.RawTable) {
			r.Set("PRODUCT#p00", own, storetest.Item{"stockRevision": storetest.Str("7")})
		}},
		{name: "number of orders wrong", found: "order-counts 2", do: func(r storetest.RawTable) {
			r.Set("ORDER_COUNTS", "PART#3", storetest.Item{"pending": storetest.Num("99")})
			r.Delete("ORDER_COUNTS", "PART#4")
		}},
		{name: "sales of a day without orders", found: "daily-sales 1", changes: true, do: func(r storetest.RawTable) {
			storetest.MakeReadable(r.T, r, model.EntityDailySales.Name)
			r.Check(check.Options{Repair: true})
			r.Put(storetest.Item{"pk": storetest.Str("SALES"), "sk": storetest.Str("DAY#USD#2025-01-01#3"), "entity": storetest.Str("dailySales"), "currency": storetest.Str("USD"),
				"day": storetest.Str("2025-01-01"), "part": storetest.Str("3"), "orders": storetest.Num("1"), "spent": storetest.Num("5")})
		}},
		{name: "products of a warehouse counted wrong", found: "product-count 1", do: func(r storetest.RawTable) {
			r.Set("WAREHOUSE#w1", own, storetest.Item{"productCount": storetest.Num("77")})
		}},
		{name: "warehouse lost", found: "warehouse-missing 1", also: ", product-count 1", changes: true, do: func(r storetest.RawTable) { r.Delete("WAREHOUSE#w1", own) }},
		{name: "order in the list of another status", found: "index-keys 1", do: func(r storetest.RawTable) {
			r.Set(order(2), own, storetest.Item{"gsi1pk": storetest.Str("STATUS#pending")})
		}},
		{name: "index keys everywhere wrong", found: "index-keys 8", do: func(r storetest.RawTable) {
			for _, k := range [][2]string{{"CUSTOMER#c1", own}, {"CUSTOMER#c1", "REP"}, {"CUSTOMER#c1", order(0)}, {order(0), "ITEM#p00"}, {"PRODUCT#p00", own}, {"PRODUCT#p00", "WAREHOUSE#w2"}, {"WAREHOUSE#w2", own}, {"EMPLOYEE#e1", own}} {
				r.Set(k[0], k[1], storetest.Item{"gsi1pk": storetest.Str("OTHER"), "gsi1sk": storetest.Str("OTHER")})
			}
		}},
		{name: "index keys where there should be none", found: "index-keys 3", do: func(r storetest.RawTable) {
			for _, k := range [][2]string{{"CUSTOMER#c2", order(1)}, {order(0), "EVENT#" + storetest.ULIDAt(storetest.FirstOrderTime(), 1)}, {"EMAIL#bob@example.com", own}} {
				r.Set(k[0], k[1], storetest.Item{"gsi1pk": storetest.Str("STATUS#pending"), "gsi1sk": storetest.Str(order(1))})
			}
		}},
		{name: "attributes that are not the key's", found: "key-attribute 9", do: func(r storetest.RawTable) {
			for k, name := range map[[2]string]string{
				{order(0), own}: "orderId", {"CUSTOMER#c1", order(0)}: "customerId", {order(0), "ITEM#p00"}: "productId",
				{order(0), "EVENT#" + storetest.ULIDAt(storetest.FirstOrderTime(), 1)}: "eventId", {"CUSTOMER#c1", own}: "customerId", {"PRODUCT#p00", own}: "sku",
				{"PRODUCT#p00", "WAREHOUSE#w1"}: "warehouseId", {"WAREHOUSE#w1", own}: "warehouseId", {"EMPLOYEE#e1", "NAME"}: "employeeId",
			} {
				r.Set(k[0], k[1], storetest.Item{name: storetest.Str("other")})
			}
		}},
		{name: "record of another kind", found: "entity 2", do: func(r storetest.RawTable) {
			r.Set(order(0), "ITEM#p00", storetest.Item{"entity": storetest.Str("order")})
			r.Set("EMAIL#bob@example.com", own, storetest.Item{"entity": storetest.Str("customer")})
		}},
	}
}

// A repair erases the orders that an erasure has missed, and does not change their versions, because it adds
// no events.
func TestErasedOrdersKeepTheirVersions(t *testing.T) {
	storetest.ForEachEngine(t, func(t *testing.T, db *dynamodb.Client) {
		r := storetest.NewRawTable(t, db, storetest.SmallDataset(t, 3), dynamo.Options{})
		rec := deletedCustomer("c2")
		rec["erasure"] = storetest.Str("incomplete")
		r.Put(rec)
		r.Delete("CUSTOMER#c2", "#METADATA")
		before := r.All()
		r.Check(check.Options{Repair: true})
		orders := 0
		for key, rec := range r.All() {
			if now := storetest.Record(rec); now.Text("customerId") == "c2" && now.Text("entity") == "order" {
				orders++
				if was := storetest.Record(before[key]).Int("version"); now.Int("version") != was || !now.Has("erased") {
					t.Errorf("%s has version %d, want %d; erased: %t", key, now.Int("version"), was, now.Has("erased"))
				}
			}
		}
		if orders == 0 {
			t.Error("the customer has no orders")
		}
	})
}

// Every damage is found with its kind and no other. A repair fixes only this damage. Then
// the table is clean. By default, DynamoDB Local runs every twelfth damage, otherwise every
// fourth.
func TestDamagesAreFoundAndRepaired(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		for i, d := range damages() {
			if i%longtest.Size(3, 1) > 0 || !storetest.RunsCase(t, longtest.Size(12, 4), i) {
				continue
			}
			t.Run(strings.ReplaceAll(d.name, " ", "_"), func(t *testing.T) {
				t.Parallel()
				products := 3
				if d.big {
					products = 30
				}
				r := storetest.NewRawTable(t, db, storetest.SmallDataset(t, products), dynamo.Options{})
				r.Delete("CUSTOMER#c1", "LAST_EVENT") // as in tables of older versions
				healthy := r.All()
				d.do(r)
				damaged := r.All()
				inconsistencies, summary := r.Check(check.Options{Restore: !d.deletes})
				if got := storetest.FormatKindCounts(inconsistencies); got != d.found || summary.UnrepairedCount() != len(inconsistencies) {
					t.Errorf("found %s, %d left, want %s:\n%+v", got, summary.UnrepairedCount(), d.found, inconsistencies)
				}
				if changed := storetest.DifferingKeys(damaged, r.All()); len(changed) > 0 {
					t.Errorf("a check without repair changed %q", changed)
				}
				inconsistencies, summary = r.Check(check.Options{Repair: true, Restore: !d.deletes})
				want := strings.Join(slices.Sorted(slices.Values(strings.Split(d.found+d.also, ", "))), ", ")
				if d.repairs != "" {
					want = d.repairs
				}
				if got := storetest.FormatKindCounts(inconsistencies); got != want || summary.UnrepairedCount() != d.byHand {
					t.Errorf("repair found %s, %d left, want %s, %d:\n%+v", got, summary.UnrepairedCount(), want, d.byHand, inconsistencies)
				}
				if d.byHand == 0 {
					r.CheckClean()
				}
				if changed := storetest.DifferingKeys(healthy, withoutStockRevisions(r.All())); !d.changes && len(changed) > 0 {
					for _, k := range changed {
						t.Errorf("after the repair %s is\n%s\nbefore the damage it was\n%s", k, storetest.FormatItem(r.All()[k]), storetest.FormatItem(healthy[k]))
					}
				}
			})
		}
	})
}

func TestSampleDatasetIsClean(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		r := storetest.RawTable{T: t, DB: db, Store: storetest.SampleStore(t, db)}
		inconsistencies, summary := r.Check(check.Options{Segments: 2})
		if len(inconsistencies) > 0 || summary.Unverified > 0 {
			t.Errorf("found %+v, %d unverified", inconsistencies, summary.Unverified)
		}
		if summary.Records == 0 || summary.Orders != 9 || summary.Customers != 7 || summary.External != 0 || summary.Products == 0 || summary.Warehouses == 0 || summary.Employees == 0 {
			t.Errorf("counted %+v", summary)
		}
	})
}

// The stock that orders hold is right, also if their records are damaged and not repaired: the
// findings of a check and of a repair agree.
func TestStockHeldByDamagedOrdersCounts(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		r := storetest.NewRawTable(t, db, storetest.SmallDataset(t, 30), dynamo.Options{})
		healthy := r.Get("PRODUCT#p00", "#METADATA")["available"]
		r.Set("PRODUCT#p00", "#METADATA", storetest.Item{"available": storetest.Num("500")})
		// The order is pending, and has an item that the index does not list.
		r.Delete("ORDER#"+storetest.SmallOrderID(0), "ITEM#p00")
		// One order is cancelled, the other confirmed, each according to the newer of its records.
		r.Set("ORDER#"+storetest.SmallOrderID(3), "#METADATA", storetest.Item{"status": storetest.Str("pending"), "version": storetest.Num("2")})
		r.Set("ORDER#"+storetest.SmallOrderID(1), "#METADATA", storetest.Item{"status": storetest.Str("shipped"), "version": storetest.Num("2")})
		for _, repair := range []bool{false, true} {
			inconsistencies, _ := r.Check(check.Options{Repair: repair})
			i := slices.IndexFunc(inconsistencies, func(d check.Inconsistency) bool { return d.Kind == "stock-available" })
			want := fmt.Sprintf("available is 500, should be %s", healthy.(*types.AttributeValueMemberN).Value)
			if i < 0 || inconsistencies[i].Detail != want {
				t.Errorf("found %+v, want %s", inconsistencies, want)
			}
		}
		r.CheckClean()
		// An order that may hold stock and is unreadable leaves the stock unverified.
		r.Set("PRODUCT#p01", "#METADATA", storetest.Item{"available": storetest.Num("500")})
		r.Set("ORDER#"+storetest.SmallOrderID(0), "#METADATA", storetest.Item{"status": nil})
		r.Set("CUSTOMER#c1", "ORDER#"+storetest.SmallOrderID(0), storetest.Item{"status": nil})
		inconsistencies, summary := r.Check(check.Options{Repair: true})
		if storetest.FormatKindCounts(inconsistencies) != "unreadable 2" || summary.Unverified == 0 || summary.ByHand != 2 || !inconsistencies[0].ByHand {
			t.Errorf("found %+v, %d unverified", inconsistencies, summary.Unverified)
		}
	})
}

// An amount without a currency has the table's currency. So an item without one is right in one
// table and wrong in another.
func TestMissingCurrency(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		for currency, want := range map[commerce.Currency]string{"USD": "", "EUR": "item-differs 1"} {
			r := storetest.NewRawTable(t, db, storetest.SmallDataset(t, 30), dynamo.Options{Currency: currency})
			r.Check(check.Options{Repair: true}) // counts what open orders reserve
			healthy := r.All()
			r.Set("ORDER#"+storetest.SmallOrderID(0), "ITEM#p00", storetest.Item{"currency": nil})
			inconsistencies, _ := r.Check(check.Options{Repair: true})
			if got := storetest.FormatKindCounts(inconsistencies); got != want {
				t.Errorf("currency %s: found %s, want %s", currency, got, want)
			}
			if changed := storetest.DifferingKeys(healthy, r.All()); want != "" && len(changed) > 0 {
				t.Errorf("currency %s: after the repair, these records differ from before the damage: %q", currency, changed)
			}
			r.CheckClean()
		}
	})
}
