package races_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/internal/test/longtest"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
	"github.com/ordergraph/ordergraph/internal/test/workload"
)

// drawMutation chooses a random mutation. It chooses mutations that advance orders more often.
func drawMutation(pick func(n int) int) string {
	all := append([]string{"placeOrder", "placeOrder", "confirmOrder", "placeOrder", "shipOrder", "placeOrder", "confirmOrder", "setOrderItem",
		"adjustInventory", "shipOrder", "deliverOrder", "confirmOrder", "setOrderItem", "placeOrder", "confirmOrder", "shipOrder", "deliverOrder", "shipOrder",
		"requestReturn", "approveReturn", "receiveReturn", "requestReturn", "approveReturn", "receiveReturn", "receiveReturn", "cancelOrderItems",
		"createFulfillment", "createFulfillment", "createFulfillment", "createFulfillment", "cancelFulfillment", "cancelFulfillment", "confirmOrder"},
		workload.MutationNames()...)
	return all[pick(len(all))]
}

// Clients send all kinds of mutations, with and without idempotency keys, while some DynamoDB
// requests fail. The table stays consistent: each change is made completely or not at all.
func TestFaultsInEveryMutation(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		n := longtest.Size(200, 2400)
		w := workload.Fixture{Customers: 6, Products: 6, Warehouses: 3, Employees: 3, Stock: 60, ReorderPoint: 55}
		s := newFaultyServer(t, db, w, randomFaults(11))
		c, network := newLossyClient(11)
		memory := workload.NewClientState()
		succeeded, refused, unanswered := map[string]*atomic.Int64{}, map[string]*atomic.Int64{}, map[string]*atomic.Int64{}
		const erased = "c5"
		erasure := workload.Mutation{Field: "eraseCustomer", Input: map[string]any{"customerId": erased}}
		names := append(workload.MutationNames(), "eraseCustomer")
		for _, field := range names {
			succeeded[field], refused[field], unanswered[field] = &atomic.Int64{}, &atomic.Int64{}, &atomic.Int64{}
		}
		inParallel(n, 8, func(i int) {
			source := rand.New(rand.NewPCG(11, uint64(i)))
			step := workload.StepGenerator{Fixture: w, IntN: source.IntN}.Next(drawMutation(source.IntN), fmt.Sprintf("step-%d", i))
			m := memory.Mutation(step)
			if i > n*3/4 && i%8 == 0 { // each call erases one order
				m = erasure
			}
			tries := 1
			if m.IdempotencyKey() != "" {
				tries = attempts
			}
			a, _, err := c.SendWithRetries(t.Context(), func() string { return s.url }, m, tries)
			switch {
			case err == nil && a.Succeeded():
				succeeded[m.Field].Add(1)
				memory.Update(m, a)
			case err == nil:
				refused[m.Field].Add(1)
			case errors.Is(err, workload.ErrUnknownOutcome) && m.IdempotencyKey() == "":
				unanswered[m.Field].Add(1)
			default:
				t.Errorf("%s %v: %v", m.Field, m.Input, err)
			}
		})
		for _, field := range names {
			t.Logf("%-22s %3d succeeded, %3d refused, %2d without a response", field, succeeded[field].Load(), refused[field].Load(), unanswered[field].Load())
			if succeeded[field].Load() == 0 && n > 300 {
				t.Errorf("no %s succeeded: the test covers too little", field)
			}
		}
		for done := false; !done; {
			a, _, err := c.SendWithRetries(t.Context(), func() string { return s.url }, erasure, attempts)
			done = strings.Contains(a.RecordJSON, `"erased":true`)
			if err == nil && !a.Succeeded() || t.Context().Err() != nil {
				t.Fatalf("the customer is not erased: %+v, %v", a, err)
			}
		}
		a := storetest.AssertConsistent(t, db, s.table, 1)
		for k, r := range a.Records {
			if hold, ok := r["hold"].(*types.AttributeValueMemberM); ok && r.Text("customerId") == erased && storetest.Record(hold.Value).Text("reason") != "" {
				t.Errorf("%v of the erased customer has the reason of a hold", k)
			}
			for _, name := range []string{"shippingAddress", "billingAddress", "contact", "email", "name"} {
				if r.Text("customerId") == erased && r.Text("entity") != "orderItem" && r.Has(name) {
					t.Errorf("%v of the erased customer has the attribute %s", k, name)
				}
			}
		}
		t.Logf("%d records, %d orders; faults: %v; %d responses to committed transactions lost, %d responses to the client lost",
			len(a.Records), len(a.Orders), s.faults.Counts(), s.faults.LostCommits(), network.lost.Load())
	})
}
