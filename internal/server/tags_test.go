package server_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/internal/test/authtest"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// Staff tag orders and list the orders with a tag, in pages and in a time range. A change that
// writes no tag costs the same for an order with tags.
func TestTags(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngine(t, func(t *testing.T, db *dynamodb.Client) {
		s := newFixture(t, db, smallDataset(t))
		var ids []string
		for range 5 {
			ids = append(ids, s.place(t, "ann", "mug"))
		}
		tag := func(id string, add, remove []string) mutationInput {
			return mutationInput{"orderId": id, "add": add, "remove": remove}
		}
		listed := func(arguments string) (found []string) {
			t.Helper()
			var got struct {
				OrdersByTag struct {
					Nodes []struct{ ID string }
				}
			}
			s.read(t, &got, `{ ordersByTag(%s) { nodes { id } } }`, arguments)
			for _, o := range got.OrdersByTag.Nodes {
				found = append(found, o.ID)
			}
			return found
		}
		want := func(arguments string, orders ...int) {
			t.Helper()
			var all []string
			for _, i := range orders {
				all = append(all, ids[i])
			}
			if got := listed(arguments); !slices.Equal(got, all) {
				t.Errorf("%s: the orders are %v, want %v", arguments, got, all)
			}
		}
		tagsOf := func(id string) string {
			t.Helper()
			var got struct {
				Order struct {
					Tags    []string
					Version int
				}
			}
			s.read(t, &got, `{ order(id: %q) { tags version } }`, id)
			return fmt.Sprint(got.Order)
		}
		for _, id := range ids {
			s.mutate(t, "tagOrder", tag(id, []string{"vip", " e\u0301te\u0301 ", "vip", "VIP"}, nil))
		}
		if got := tagsOf(ids[0]); got != "{[VIP vip été] 2}" {
			t.Errorf("the tags are %s", got)
		}
		want(`tag: "vip"`, 4, 3, 2, 1, 0)
		s.wire.reset()
		want(`tag: "été", first: 2`, 4, 3)
		if got := fmt.Sprint(s.wire.operationNames()); got != "[Query BatchGetItem]" {
			t.Errorf("the page took the requests %s", got)
		}
		want(`tag: " e\u0301te\u0301", last: 2`, 1, 0)
		want(`tag: "Vip"`)
		want(`tag: ""`)
		want(`tag: "a#b"`)
		want(`tag: "vip", placed: {from: "2020-01-01T00:00:00Z"}`, 4, 3, 2, 1, 0)
		want(`tag: "vip", placed: {from: "2126-01-01T00:00:00Z"}`)

		s.mutate(t, "tagOrder", tag(ids[0], []string{"vip"}, []string{"absent"})) // no change
		s.mutate(t, "tagOrder", tag(ids[0], nil, []string{"vip", "VIP"}))
		if got := tagsOf(ids[0]); got != "{[été] 3}" {
			t.Errorf("the tags are %s", got)
		}
		want(`tag: "vip"`, 4, 3, 2, 1)
		s.mutate(t, "tagOrder", tag(ids[0], nil, []string{"été"}))
		if got := tagsOf(ids[0]); got != "{[] 4}" {
			t.Errorf("the tags are %s", got)
		}
		s.refuse(t, "tagOrder", tag(ids[1], tags("t")[:18], nil), "INVALID input.add") // it would have 21
		s.mutate(t, "tagOrder", tag(ids[1], tags("t"), []string{"vip", "VIP", "été"}))
		s.mutate(t, "cancelOrder", mutationInput{"orderId": ids[2]})
		s.mutate(t, "tagOrder", tag(ids[2], []string{"cancelled"}, nil))
		want(`tag: "cancelled"`, 2)
		storetest.AssertConsistent(t, db, s.table, 1)

		// With each status change, an order with 20 tags costs as much as one without.
		plain, tagged := ids[0], ids[1]
		for _, mutation := range []string{"confirmOrder", "shipOrder", "deliverOrder"} {
			s.wire.reset()
			s.mutate(t, mutation, moveInput(mutation, plain))
			actions := len(s.wire.committed()[0].actions)
			s.wire.reset()
			s.mutate(t, mutation, moveInput(mutation, tagged))
			if got := len(s.wire.committed()[0].actions); got != actions {
				t.Errorf("%s writes %d records of an order with tags, and %d without", mutation, got, actions)
			}
		}
		storetest.AssertConsistent(t, db, s.table, 1)
	})
}

// Customers cannot read, change or list tags on any path. They see only the event.
func TestCustomersCannotReadTags(t *testing.T) {
	l, g := liveWithAuthentication(t)
	staff := g.token(t, authtest.Object{"role": "STAFF", "sub": "sid"})
	service := g.token(t, authtest.Object{"role": "SERVICE", "sub": "erp"})
	customer := g.token(t, authtest.Object{"role": "CUSTOMER", "customer_id": "cust_01", "sub": "cora"})
	id := l.place()
	w := l.as(customer)
	w.subscribe("a", fmt.Sprintf(`subscription { orderUpdated(id: %q, after: %q) { event { type note } order { version } } }`, id, l.last(id)))
	l.waitForSubscriptions(1)
	if got := g.ask(t, service, fmt.Sprintf(`mutation { tagOrder(input: {orderId: %q, add: ["SECRET"]}) { order { tags } userErrors { code } } }`, id)); !strings.Contains(got, `"tags":["SECRET"]`) {
		t.Fatalf("a service tags the order: %s", got)
	}
	if got := string(w.receive().Payload); !strings.Contains(got, `"event":{"type":"TAGS_CHANGED","note":null}`) || strings.Contains(got, "SECRET") {
		t.Errorf("the subscription receives %s", got)
	}
	for _, query := range []string{
		fmt.Sprintf(`{ order(id: %q) { tags } }`, id),
		`{ customer(id: "cust_01") { orders { nodes { tags } } } }`,
		fmt.Sprintf(`{ _entities(representations: [{__typename: "Order", id: %q}]) { ... on Order { tags } } }`, id),
		`{ ordersByTag(tag: "SECRET") { nodes { id tags } } }`,
		fmt.Sprintf(`mutation { addOrderNote(input: {orderId: %q, note: "n"}) { order { tags } } }`, id),
		fmt.Sprintf(`mutation { tagOrder(input: {orderId: %q, add: "SECRET"}) { order { id tags } } }`, id),
	} {
		if got := g.ask(t, customer, query); strings.Contains(got, `["SECRET"]`) || !strings.Contains(got, `"code":"FORBIDDEN"`) {
			t.Errorf("%s: the customer reads %s", query, got)
		}
		if got := g.ask(t, staff, query); !strings.Contains(got, `"tags":["SECRET"]`) {
			t.Errorf("%s: staff read %s", query, got)
		}
	}
	if got := g.ask(t, customer, fmt.Sprintf(`{ order(id: %q) { timeline { nodes { type note } } } }`, id)); strings.Contains(got, "SECRET") || !strings.Contains(got, `{"type":"TAGS_CHANGED","note":null}`) {
		t.Errorf("the customer reads %s", got)
	}
}
