package server_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/internal/test/authtest"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// A client pulls all changes of all orders in pages, and stores the ID of the last one. It gets
// each change once, in the order of the IDs, after an operator has added the list.
func TestChanges(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngine(t, func(t *testing.T, db *dynamodb.Client) {
		const shards = 3
		s := newShardedFixture(t, db, smallDataset(t), shards)
		s.clock.pass(time.Since(s.clock.Now())) // MakeReadable uses the time of the system
		const list = `{ changes(first: %d, after: %s) { nodes { id type version orderId order { id status version } } pageInfo { endCursor hasNextPage } } }`
		ask := func(after string) answer {
			t.Helper()
			return s.withoutLog(t).api.ask(t, fmt.Sprintf(list, 2, after), nil)
		}
		if got := ask("null"); len(got.Errors) != 1 || got.Errors[0].Extensions["code"] != "UNAVAILABLE" || !strings.Contains(got.Errors[0].Message, "ordergraph table apply orderEvent.changes") {
			t.Fatalf("without the list: %+v", got.Errors)
		}
		old := s.placeWith(t, mutationInput{"customerId": "ann", "items": []mutationInput{{"sku": "mug", "quantity": 1}}})
		s.clock.pass(time.Second)
		storetest.MakeReadable(t, storetest.RawTable{T: t, DB: db, Name: s.table, Store: s.store}, model.Changes)
		s.clock.pass(time.Second)

		type node struct {
			ID, Type, OrderID string
			Version           int
			Order             struct {
				ID, Status string
				Version    int
			}
		}
		type page struct {
			Nodes    []node
			PageInfo struct {
				EndCursor   *string
				HasNextPage bool
			}
		}
		read := func(after *string, first int) page {
			t.Helper()
			var got struct{ Changes page }
			text, err := json.Marshal(after)
			if err != nil {
				t.Fatal(err)
			}
			s.read(t, &got, list, first, text)
			return got.Changes
		}
		// pull reads all pages and continues after the last change that the client has received.
		var received []node
		var position *string
		pull := func(first int) {
			t.Helper()
			for more := true; more; {
				p := read(position, first)
				if len(p.Nodes) > first {
					t.Errorf("a page has %d changes", len(p.Nodes))
				}
				received, more = append(received, p.Nodes...), p.PageInfo.HasNextPage
				if p.PageInfo.EndCursor != nil {
					position = p.PageInfo.EndCursor
				}
				if n := len(p.Nodes); n > 0 && *position != p.Nodes[n-1].ID {
					t.Errorf("the cursor %s is not the ID of the last change %s", *position, p.Nodes[n-1].ID)
				}
			}
		}
		s.mutate(t, "addOrderNote", mutationInput{"orderId": old, "note": "n"})
		pull(2)
		if len(received) > 0 {
			t.Errorf("got %v too early", received)
		}
		s.clock.pass(time.Minute)
		pull(2)
		if len(received) != 1 || received[0].OrderID != old || received[0].Version != 2 {
			t.Errorf("after a note, the changes are %v", received)
		}
		var writers sync.WaitGroup
		for _, customer := range []string{"ann", "bob"} {
			writers.Go(func() {
				for range 3 {
					id := s.placeWith(t, mutationInput{"customerId": customer, "items": []mutationInput{{"sku": "mug", "quantity": 1}}})
					s.mutate(t, "addOrderNote", mutationInput{"orderId": id, "note": "n"})
					for _, mutation := range []string{"confirmOrder", "shipOrder"} {
						s.mutate(t, mutation, moveInput(mutation, id))
					}
				}
			})
		}
		writers.Wait()
		s.clock.pass(time.Minute)
		pull(2)
		s.mutate(t, "addOrderNote", mutationInput{"orderId": old, "note": "n"})
		s.clock.pass(time.Minute)
		pull(100)
		pull(100)
		versions := map[string]int{old: 1}
		for _, c := range received {
			if versions[c.OrderID]++; c.Version != versions[c.OrderID] || c.Order.ID != c.OrderID || c.Order.Version < c.Version {
				t.Errorf("the change %+v has the version %d instead of %d", c, c.Version, versions[c.OrderID])
			}
		}
		if len(received) != 1+6*4+1 || len(versions) != 7 || !slices.IsSortedFunc(received, func(a, b node) int { return strings.Compare(a.ID, b.ID) }) {
			t.Errorf("got %d changes of %d orders: %v", len(received), len(versions), received)
		}
		first := received
		received, position = nil, nil
		if pull(7); !slices.EqualFunc(received, first, func(a, b node) bool { return a.ID == b.ID }) {
			t.Errorf("the second client got %v, want %v", received, first)
		}

		s.wire.reset()
		read(nil, 100)
		if got := s.wire.operationNames(); len(got) != shards*len(model.ChangedStatuses())+1 || got[len(got)-1] != "BatchGetItem" {
			t.Errorf("the page took the requests %s", got)
		}
		future, _ := commerce.MinULIDAt(s.clock.Now().Add(24 * time.Hour))
		for after, reason := range map[string]string{old: "lists changes since", "x": "is not the ID of an event", future: "lists changes since"} {
			got := ask(strconv.Quote(after))
			if len(got.Errors) != 1 || got.Errors[0].Extensions["code"] != "BAD_USER_INPUT" || !strings.Contains(got.Errors[0].Message, reason) {
				t.Errorf("after %s: %+v", after, got.Errors)
			}
		}
		storetest.AssertConsistent(t, db, s.table, shards)
	})
}

// Customers cannot list changes.
func TestCustomersCannotListChanges(t *testing.T) {
	_, g := liveWithAuthentication(t)
	customer := g.token(t, authtest.Object{"role": "CUSTOMER", "customer_id": "cust_01"})
	if got := g.ask(t, customer, `{ changes { nodes { id } } }`); !strings.Contains(got, `"code":"FORBIDDEN"`) {
		t.Errorf("a customer lists changes: %s", got)
	}
}
