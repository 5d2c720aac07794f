package simulation_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
	"github.com/ordergraph/ordergraph/graph"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
	"github.com/ordergraph/ordergraph/internal/test/workload"
)

// listPage is a page of a list. Nodes have one of the fields.
type listPage struct {
	Nodes    []struct{ ID, OrderID, Sku string }
	PageInfo struct {
		HasNextPage bool
		EndCursor   *string
	}
}

// list is a list with the argument $after, such as orders(first: 3, after: $after). id is the field
// of its nodes that identifies them. If of is set, the list is a field of this field.
type list struct{ of, field, id string }

// readPage reads the page after a cursor. It returns false if no response arrived.
func (w *world) readPage(ctx context.Context, c *workload.Client, l list, page int, after *string) (ids []string, end *string, more, ok bool) {
	text := fmt.Sprintf("list: %s { nodes { %s } pageInfo { hasNextPage endCursor } }", l.field, l.id)
	if l.of != "" {
		text = l.of + " { " + text + " }"
	}
	var data struct {
		List listPage
		Of   struct{ List listPage }
	}
	variables := map[string]any{"after": after}
	if !w.query(ctx, c, w.random("page", w.step(), page), "query($after: String) { "+text+" }", variables, &data) {
		return nil, nil, false, false
	}
	got := data.List
	if l.of != "" {
		got = data.Of.List
	}
	for _, n := range got.Nodes {
		ids = append(ids, n.ID+n.OrderID+n.Sku)
	}
	return ids, got.PageInfo.EndCursor, got.PageInfo.HasNextPage, true
}

// walk reads all pages of a list. It returns false if a response is missing.
func (w *world) walk(ctx context.Context, c *workload.Client, l list) (ids []string, complete bool) {
	for page, after := 0, (*string)(nil); ; page++ {
		next, end, more, ok := w.readPage(ctx, c, l, page, after)
		if !ok {
			return nil, false
		}
		ids, after = append(ids, next...), end
		if !more {
			return ids, true
		}
	}
}

// findTwice sorts the IDs, and reports those that are in a list twice.
func (w *world) findTwice(name string, ids []string) {
	slices.Sort(ids)
	for i := 1; i < len(ids); i++ {
		if ids[i] == ids[i-1] {
			w.found("%s contains %s twice", name, ids[i])
		}
	}
}

// firstDifference describes the first difference between two sequences.
func firstDifference(got, want []string) string {
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			return want[i] + " is missing at the end"
		case i >= len(want):
			return got[i] + " is superfluous at the end"
		case got[i] != want[i]:
			return fmt.Sprintf("number %d is %s, want %s", i, got[i], want[i])
		}
	}
	return ""
}

// verifyLists compares the lists with the records that belong to them.
func (w *world) verifyLists(a *storetest.AuditResult) {
	time.Sleep(table.LayoutDelay) // until all servers follow the layout that is stored now
	c, ctx := w.newClient("reader", ""), context.Background()
	const page = "first: 3, after: $after"
	want := map[list][]string{}
	add := func(l list, id string) {
		if !slices.Contains(want[l], id) {
			want[l] = append(want[l], id)
		}
	}
	// These lists can be empty.
	for _, f := range graph.Schema().Query.Fields {
		if f.Name != "ordersByStatus" && f.Name != "ordersByPaymentState" {
			continue
		}
		argument := f.Arguments[0]
		for _, value := range graph.Schema().Types[argument.Type.Name()].EnumValues {
			want[list{field: fmt.Sprintf("%s(%s: %s, %s)", f.Name, argument.Name, value.Name, page), id: "id"}] = nil
		}
	}
	for _, tag := range []string{"vip", "fraud", "gift", "export"} {
		want[list{field: fmt.Sprintf("ordersByTag(tag: %q, %s)", tag, page), id: "id"}] = nil
	}
	for i := range fixture.Products {
		want[list{of: fmt.Sprintf("of: product(sku: \"p%d\")", i), field: "orderItems(" + page + ")", id: "orderId"}] = nil
	}
	for k, r := range a.Records {
		order, isOrder := strings.CutPrefix(k.PK, "ORDER#")
		sku, isProduct := strings.CutPrefix(k.PK, "PRODUCT#")
		customer, isCustomer := strings.CutPrefix(k.PK, "CUSTOMER#")
		main := k.SK == "#METADATA"
		switch item, isItem := strings.CutPrefix(k.SK, "ITEM#"); {
		case isOrder && isItem:
			add(list{of: fmt.Sprintf("of: product(sku: %q)", item), field: "orderItems(" + page + ")", id: "orderId"}, order)
		case isOrder && main:
			add(list{field: "orders(" + page + ")", id: "id"}, order)
			add(list{field: "ordersByStatus(status: " + strings.ToUpper(r.Text("status")) + ", " + page + ")", id: "id"}, order)
			if owner := r.Text("customerId"); a.Records[storetest.Key{PK: "CUSTOMER#" + owner, SK: "#METADATA"}] != nil {
				add(list{of: fmt.Sprintf("of: customer(id: %q)", owner), field: "orders(" + page + ")", id: "id"}, order)
			}
			if due := r.Text("paymentDue"); due != "" {
				add(list{field: "ordersByPaymentState(paymentState: " + strings.ToUpper(due) + ", " + page + ")", id: "id"}, order)
			}
			if r.Text("status") == "confirmed" && slices.Contains(w.Derivations, model.EntityOrderWaiting.Name) {
				add(list{field: "ordersToShip(" + page + ")", id: "id"}, order)
			}
			if tags, ok := r["tags"].(*types.AttributeValueMemberL); ok {
				for _, tag := range tags.Value {
					add(list{field: fmt.Sprintf("ordersByTag(tag: %q, %s)", tag.(*types.AttributeValueMemberS).Value, page), id: "id"}, order)
				}
			}
		case isProduct && main:
			add(list{field: "products(namePrefix: \"" + r.Text("name")[:1] + "\", " + page + ")", id: "sku"}, sku)
		case isCustomer && main:
			add(list{field: "customers(" + page + ")", id: "id"}, customer)
			add(list{field: "customers(namePrefix: \"" + r.Text("name")[:1] + "\", " + page + ")", id: "id"}, customer)
			add(list{field: "customers(emailPrefix: \"" + strings.ToLower(r.Text("email")[:1]) + "\", " + page + ")", id: "id"}, customer)
		}
	}
	byText := func(a, b list) int { return strings.Compare(a.of+a.field, b.of+b.field) }
	for _, l := range slices.SortedFunc(maps.Keys(want), byText) {
		got, complete := w.walk(ctx, c, l)
		if !complete {
			w.found("the list %s %s cannot be read", l.of, l.field)
			continue
		}
		w.findTwice(l.of+" "+l.field, got)
		slices.Sort(want[l])
		if !slices.Equal(slices.Compact(got), want[l]) {
			w.found("the list %s %s contains %d records, want %d: %s", l.of, l.field, len(got), len(want[l]), firstDifference(got, want[l]))
		}
	}
	for ids := range slices.Chunk(a.Orders, 20) {
		var data struct{ OrdersByID []*struct{ ID string } }
		if !w.query(ctx, c, w.random("orders by ID", ids[0]), "query($ids: [ID!]!) { ordersById(ids: $ids) { id } }", map[string]any{"ids": ids}, &data) {
			w.found("the orders %v cannot be read", ids)
			continue
		}
		for i, o := range data.OrdersByID {
			if o == nil || o.ID != ids[i] {
				w.found("ordersById does not contain order %s", ids[i])
			}
		}
	}
}
