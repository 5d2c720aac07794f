package dynamo_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/change"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
	"github.com/ordergraph/ordergraph/internal/test/workload"
)

// statusRead returns the status whose partition a Query reads, or 0 for another partition.
func statusRead(body string) commerce.Status {
	for _, status := range commerce.Statuses() {
		if strings.Contains(body, `"STATUS#`+status.String()) {
			return status
		}
	}
	return 0
}

// Orders change their status while a client pages through the list. The pages contain each order
// once, and all but the last page are full.
func TestPagesContainOrdersThatChangeStatus(t *testing.T) {
	t.Parallel()
	const orders, limit = 12, 5
	all, open := commerce.Statuses(), []commerce.Status{commerce.Pending, commerce.Confirmed, commerce.Shipped}
	for i, c := range []struct {
		name     string
		statuses []commerce.Status
		fromEnd  bool
		// moves reports whether an order changes its status before a Query of the status next. read are
		// the statuses that were read before.
		moves func(from, to, next commerce.Status, read map[commerce.Status]bool) bool
	}{
		{"out of what is read next, forward", all, false, outOfNext},
		{"out of what is read next, backward", all, true, outOfNext},
		{"out of what is read next, open orders", open, false, outOfNext},
		{"into what is read next, forward", all, false, intoNext},
		{"into what is read next, backward", all, true, intoNext},
		{"into what is read next, open orders", open, true, intoNext},
	} {
		t.Run(c.name, func(t *testing.T) {
			storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
				if !storetest.RunsCase(t, 3, i) {
					return
				}
				r := storetest.NewRawTable(t, db, workload.Fixture{Customers: 1, Products: 1, Warehouses: 1, Stock: 100}.Dataset(t), dynamo.Options{})
				ids, now := make([]commerce.OrderID, orders), make([]commerce.Status, orders)
				for i := range ids {
					placed, err := r.Store.PlaceOrder(t.Context(), change.Caller{Name: "tester"}, commerce.OrderRequest{CustomerID: "c0", Lines: []commerce.OrderLine{{SKU: "p0", Quantity: 1}}})
					if err != nil {
						t.Fatal(err)
					}
					ids[i], now[i] = placed.ID, commerce.Pending
				}
				read := map[commerce.Status]bool{}
				moved := 0
				walked := r.WithHTTPHook(func(operation string, _ int, body string) *http.Response {
					next := statusRead(body)
					if operation != "Query" || next == 0 {
						return nil
					}
					for i, id := range ids {
						for _, to := range now[i].Transitions() {
							// Every third order is cancelled after its confirmation.
							cancelled := i%3 == 0 && now[i] == commerce.Confirmed && slices.Contains(c.statuses, commerce.Cancelled)
							if cancelled != (to == commerce.Cancelled) || !slices.Contains(c.statuses, to) || !c.moves(now[i], to, next, read) {
								continue
							}
							if _, err := r.Store.ChangeOrderStatus(t.Context(), change.Caller{Name: "tester"}, commerce.OrderStatusChange{OrderID: id, To: to, WarehouseID: warehouseFor(to), WithoutAddress: true}); err != nil {
								t.Error(err)
							}
							now[i] = to
							moved++
							break
						}
					}
					read[next] = true
					return nil
				}).Store
				chosen := c.statuses
				if len(chosen) == len(all) {
					chosen = nil
				}

				var got []commerce.OrderID
				var sizes []int
				page := dynamo.PageRequest{Limit: limit, FromEnd: c.fromEnd, DetectMore: true}
				for more := true; more; {
					slice, err := dynamo.ReadPage(t.Context(), walked, model.Orders, dynamo.ListRequest{Statuses: dynamo.NewStatusSet(chosen...), Page: page})
					if err != nil {
						t.Fatal(err)
					}
					for _, o := range slice.Items {
						if i := slices.Index(ids, o.ID); o.Status != now[i] {
							t.Errorf("order %d is %v on its page, want %v", i, o.Status, now[i])
						}
					}
					sizes = append(sizes, len(slice.Items))
					if len(slice.Items) == 0 {
						break
					}
					if more = slice.HasNext; c.fromEnd {
						more = slice.HasPrevious
						got, page.Before = append(orderIDs(slice.Items), got...), slice.Positions[0]
					} else {
						got, page.After = append(got, orderIDs(slice.Items)...), slice.Positions[len(slice.Items)-1]
					}
				}
				want := slices.Sorted(slices.Values(ids))
				slices.Reverse(want)
				if !slices.Equal(got, want) || !slices.Equal(sizes, []int{5, 5, 2}) {
					t.Errorf("the pages contain %d orders %v, with page sizes %v; want %v", len(got), got, sizes, want)
				}
				if moved < orders {
					t.Errorf("only %d moves were made", moved)
				}
			})
		})
	}
}

// outOfNext moves orders from the status that is read next to a status that was read before.
func outOfNext(from, to, next commerce.Status, read map[commerce.Status]bool) bool {
	return from == next && read[to]
}

// intoNext moves orders to the status that is read next, where they are read a second time.
func intoNext(_, to, next commerce.Status, _ map[commerce.Status]bool) bool { return to == next }

func warehouseFor(to commerce.Status) commerce.WarehouseID {
	if to == commerce.Shipped {
		return "w0"
	}
	return ""
}
