package races_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/internal/longtest"
	"github.com/ordergraph/ordergraph/internal/shoptest"
	"github.com/ordergraph/ordergraph/internal/storetest"
)

// mix draws a mutation; those without which an order gets nowhere come more often.
func mix(pick func(n int) int) string {
	all := append([]string{"placeOrder", "placeOrder", "confirmOrder", "placeOrder", "shipOrder", "placeOrder", "confirmOrder", "setOrderItem",
		"adjustInventory", "shipOrder", "deliverOrder", "confirmOrder", "setOrderItem", "placeOrder", "confirmOrder", "shipOrder", "deliverOrder", "shipOrder"},
		shoptest.Fields()...)
	return all[pick(len(all))]
}

// Whatever callers are told of mutations of every kind, with keys and without, the table is
// consistent: a change is made whole or not at all.
func TestFaultsInEveryMutation(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *dynamodb.Client) {
		n := longtest.Size(200, 300)
		if !storetest.Embedded(t) {
			n = longtest.Size(150, 1200)
		}
		w := shoptest.World{Customers: 6, Products: 6, Warehouses: 3, Employees: 3, Stock: 60}
		s := open(t, db, w, randomFaults(11))
		c, network := client(11)
		memory := shoptest.NewMemory()
		done, refused, silent := map[string]*atomic.Int64{}, map[string]*atomic.Int64{}, map[string]*atomic.Int64{}
		for _, field := range shoptest.Fields() {
			done[field], refused[field], silent[field] = &atomic.Int64{}, &atomic.Int64{}, &atomic.Int64{}
		}
		inParallel(n, 8, func(i int) {
			source := rand.New(rand.NewPCG(11, uint64(i)))
			step := shoptest.Steps{World: w, Int: source.IntN}.Next(mix(source.IntN), fmt.Sprintf("step-%d", i))
			m := memory.Now(step)
			tries := 1
			if m.Key() != "" {
				tries = attempts
			}
			a, _, err := c.Insist(t.Context(), func() string { return s.url }, m, tries)
			switch {
			case err == nil && a.Done():
				done[m.Field].Add(1)
				memory.Learn(m, a)
			case err == nil:
				refused[m.Field].Add(1)
			case errors.Is(err, shoptest.ErrNoAnswer) && m.Key() == "":
				silent[m.Field].Add(1)
			default:
				t.Errorf("%s %v: %v", m.Field, m.Input, err)
			}
		})
		for _, field := range shoptest.Fields() {
			t.Logf("%-22s %3d done, %3d refused, %2d without an answer", field, done[field].Load(), refused[field].Load(), silent[field].Load())
			if done[field].Load() == 0 && n > 300 {
				t.Errorf("no %s was done: the test is weaker than it says", field)
			}
		}
		a := storetest.Clean(t, db, s.table, 1)
		t.Logf("%d records, %d orders; %v; %d transactions committed without a reply, %d replies lost on the way to the client",
			len(a.Records), len(a.Orders), s.fault.Counts(), s.fault.LostCommits(), network.lost.Load())
	})
}
