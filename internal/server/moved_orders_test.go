package server_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/change"
	"github.com/ordergraph/ordergraph/dynamo/feed"
	"github.com/ordergraph/ordergraph/embedded"
	"github.com/ordergraph/ordergraph/graph"
	"github.com/ordergraph/ordergraph/internal/server"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// movedOrders is a live server with tokens. Other software moves orders in its table to other
// customers.
type movedOrders struct {
	*liveServer
	guarded *authenticatedServer
	db      *dynamodb.Client
	table   string
}

func newMovedOrders(t *testing.T) *movedOrders {
	t.Helper()
	db := embedded.New().Client()
	l := &liveServer{t: t, store: storetest.SampleStore(t, db)}
	l.feed = storetest.OpenFeed(t, db, l.store, feed.Options{})
	g := newAuthenticatedServer(t, l.store, server.Options{Graph: graph.Options{Feed: l.feed}})
	l.addr, l.log = listenTCP(t, g, server.Options{}), g.log
	table, err := l.store.DescribeTable(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return &movedOrders{l, g, db, table.Name}
}

// move moves an order to another customer and leaves the order's records consistent. It deletes the
// former customer's copy unless leaveCopy is set.
func (g *movedOrders) move(id commerce.OrderID, from, to string, leaveCopy bool) {
	g.t.Helper()
	var actions []types.TransactWriteItem
	for _, k := range []map[string]types.AttributeValue{storetest.ItemKey("ORDER#"+string(id), "#METADATA"), storetest.ItemKey("CUSTOMER#"+from, "ORDER#"+string(id))} {
		out, err := g.db.GetItem(g.t.Context(), &dynamodb.GetItemInput{TableName: &g.table, Key: k, ConsistentRead: aws.Bool(true)})
		if err != nil {
			g.t.Fatal(err)
		}
		given := out.Item
		given["customerId"] = storetest.Str(to)
		given["shippingAddress"] = &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{
			"recipient": storetest.Str("SECRET"), "line1": storetest.Str("1 Secret St"), "city": storetest.Str("X"), "postalCode": storetest.Str("1"), "countryCode": storetest.Str("US"),
		}}
		if pk := given["pk"].(*types.AttributeValueMemberS); pk.Value == "CUSTOMER#"+from {
			given["pk"] = storetest.Str("CUSTOMER#" + to)
		}
		actions = append(actions, types.TransactWriteItem{Put: &types.Put{TableName: &g.table, Item: given}})
	}
	if !leaveCopy {
		actions = append(actions, types.TransactWriteItem{Delete: &types.Delete{TableName: &g.table, Key: storetest.ItemKey("CUSTOMER#"+from, "ORDER#"+string(id))}})
	}
	if _, err := g.db.TransactWriteItems(g.t.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: actions}); err != nil {
		g.t.Fatal(err)
	}
}

// A customer subscribes to an order, and other software moves the order to another customer. The
// subscription ends.
func TestASubscriptionEndsWhenTheOrderIsGivenAway(t *testing.T) {
	g := newMovedOrders(t)
	id := g.place()
	w := g.as(g.guarded.token(t, customerClaims("cust_01")))
	w.subscribe("a", fmt.Sprintf(`subscription { orderUpdated(id: %q, after: %q) { id order { shippingAddress { recipient } timeline { nodes { note } } } } }`, id, g.last(id)))
	g.waitForSubscriptions(1)
	g.move(id, "cust_01", "cust_001", false)
	if _, err := g.store.ChangeOrderStatus(t.Context(), change.Caller{Name: "x"}, commerce.OrderStatusChange{OrderID: id, To: commerce.Confirmed, Note: "SECRET"}); err != nil {
		t.Fatal(err)
	}
	f := w.receive()
	if f.Type != "error" || !strings.Contains(string(f.Payload), "NOT_FOUND") || strings.Contains(string(f.Payload), "SECRET") {
		t.Errorf("the former customer receives %s %s", f.Type, f.Payload)
	}
}

// The former customer subscribes to all own orders. Events no longer show the order.
func TestAnOrderThatIsGivenAwayIsNotShownToTheFormerCustomer(t *testing.T) {
	g := newMovedOrders(t)
	id := g.place()
	w := g.as(g.guarded.token(t, customerClaims("cust_01")))
	w.subscribe("a", `subscription { customerOrders(customerId: "cust_01") { orderId order { shippingAddress { recipient } } } }`)
	g.waitForSubscriptions(1)
	g.move(id, "cust_01", "cust_001", false)
	f := w.receive()
	if f.Type != "next" || strings.Contains(string(f.Payload), "SECRET") || !strings.Contains(string(f.Payload), `"order":null`) {
		t.Errorf("the former customer receives %s %s", f.Type, f.Payload)
	}
}

// Other software left the former customer's copy in the table. The copy gives no permission to
// change the order.
func TestACopyThatWasLeftBehindIsNoRightToChangeTheOrder(t *testing.T) {
	g := newMovedOrders(t)
	id := g.place()
	g.move(id, "cust_01", "cust_001", true)
	cancel := fmt.Sprintf(`mutation { cancelOrder(input: {orderId: %q}) { order { id shippingAddress { recipient } } userErrors { code } } }`, id)
	answer := g.guarded.ask(t, g.guarded.token(t, customerClaims("cust_01")), cancel)
	if !strings.Contains(answer, "NOT_FOUND") || strings.Contains(answer, "SECRET") {
		t.Errorf("the former customer gets %s, want NOT_FOUND", answer)
	}
	answer = g.guarded.ask(t, g.guarded.token(t, customerClaims("cust_001")), cancel)
	if !strings.Contains(answer, "SECRET") {
		t.Errorf("the order's customer gets %s, want the shipping address", answer)
	}
}

// A customer repeats a mutation with an idempotency key after other software has given the order to
// another customer. The response does not show what the new customer does with the order.
func TestARepeatedMutationDoesNotShowAnOrderThatIsGivenAway(t *testing.T) {
	g := newMovedOrders(t)
	token := g.guarded.token(t, customerClaims("cust_01"))
	place := `mutation { placeOrder(input: {customerId: "cust_01", items: [{sku: "prod_100", quantity: 1}], idempotencyKey: "k"}) { order { id timeline { nodes { note type } } } userErrors { code } } }`
	first := g.guarded.ask(t, token, place)
	if again := g.guarded.ask(t, token, place); !strings.Contains(again, `"PLACED"`) {
		t.Fatalf("the responses are %s and %s", first, again)
	}
	var answer struct {
		Data struct {
			PlaceOrder struct {
				Order struct{ ID commerce.OrderID }
			}
		}
	}
	if err := json.Unmarshal([]byte(first), &answer); err != nil {
		t.Fatal(err)
	}
	g.move(answer.Data.PlaceOrder.Order.ID, "cust_01", "cust_001", false)
	if got := g.guarded.ask(t, token, place); !strings.Contains(got, `"order":null,"userErrors":[{"code":"NOT_FOUND"}]`) {
		t.Errorf("the former customer gets %s, want NOT_FOUND", got)
	}
}
