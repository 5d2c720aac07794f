package simulation_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/internal/test/storetest"
	"github.com/ordergraph/ordergraph/internal/test/workload"
)

// level is the state of an inventory level.
type level struct{ version, quantity int }

// stockChange is a change of an inventory level: it adds delta, or sets the quantity.
type stockChange struct {
	delta int
	set   bool
	// result is in the response, or in the table at the end. If it has no version, only the change is
	// known. If uncertain is true, the change may not have happened.
	result    level
	uncertain bool
	read      bool
}

// levelModel is the specification of an inventory level: each change has an effect once, and creates
// a version.
var levelModel = (&porcupine.NondeterministicModel{
	Init: func() []any { return []any{level{}} },
	Step: func(state, _, output any) []any {
		s, c := state.(level), output.(stockChange)
		next := level{s.version + 1, s.quantity + c.delta}
		if c.set {
			next.quantity = c.result.quantity
		}
		if c.read || c.set && s.version > 0 && s.quantity == next.quantity {
			next = s
		}
		allowed := next.quantity >= 0 && (c.result.version == 0 || next == c.result)
		switch {
		case c.uncertain && allowed:
			return []any{s, next}
		case c.uncertain:
			return []any{s}
		case allowed:
			return []any{next}
		default:
			return nil
		}
	},
	DescribeOperation: func(_, output any) string { return fmt.Sprintf("%+v", output) },
	DescribeState:     func(state any) string { return fmt.Sprintf("%+v", state) },
}).ToModel()

// period is a period in which something happened, in steps of the seam.
type period struct{ called, returned int }

// verifyLevels verifies that the changes of each inventory level, which are in the responses and in
// the shipments and returns of the table, are linearizable. So no piece is lost or shipped twice.
func (w *world) verifyLevels(a *storetest.AuditResult) {
	all := map[string][]porcupine.Operation{}
	add := func(subject string, p period, c stockChange, name string) {
		o := porcupine.Operation{ClientId: 0, Output: c, Call: int64(p.called), Return: int64(p.returned), Metadata: name}
		if p.returned == 0 {
			o.Return = math.MaxInt64
		}
		all[subject] = append(all[subject], o)
	}
	for i := range fixture.Products {
		for j := range fixture.Warehouses {
			add(fmt.Sprintf("inventoryLevel p%d w%d", i, j), period{-2, -1}, stockChange{set: true, result: level{1, fixture.Stock}}, "the start")
		}
	}
	shipped := map[string]period{} // when orders were shipped, and so on, as far as responses say
	sent := map[string]operation{} // the requests with a key that change levels
	for n, o := range w.history.operations {
		changes := o.Field == "adjustInventory" || o.Field == "setInventoryLevel" || o.Field == "transferInventory"
		switch {
		case o.returned > 0 && !o.response.Succeeded():
		case changes && o.key() == "":
			sent[fmt.Sprint(n)] = o
		case changes:
			name := fmt.Sprint(o.key(), o.Field, o.Input)
			if other, ok := sent[name]; ok { // one of the requests made the change
				if o.returned == 0 || other.returned > 0 && other.returned < o.returned {
					o.returned, o.response = other.returned, other.response
				}
				o.called = min(o.called, other.called)
			}
			sent[name] = o
		case o.returned > 0:
			id := o.response.Record().ID
			p, ok := shipped[o.Field+" "+id]
			if !ok {
				p = period{o.called, o.returned}
			}
			shipped[o.Field+" "+id] = period{min(p.called, o.called), min(p.returned, o.returned)}
		}
	}
	for _, o := range sent {
		c := stockChange{uncertain: o.returned == 0}
		r := o.response.Record()
		if c.result = (level{r.Version, r.Quantity}); o.Field == "setInventoryLevel" {
			c.set, c.result.quantity = true, o.Input["quantity"].(int)
		} else if o.Field == "adjustInventory" {
			c.delta = o.Input["delta"].(int)
		} else {
			c.delta = o.Input["quantity"].(int)
			from := fmt.Sprintf("inventoryLevel %s %s", o.Input["sku"], o.Input["fromWarehouseId"])
			add(from, period{o.called, o.returned}, stockChange{delta: -c.delta, uncertain: c.uncertain}, o.decision)
		}
		add(workload.RecordName(o.Field, o.Input, r), period{o.called, o.returned}, c, o.decision)
	}
	for k, r := range a.Records {
		lines := func(attribute, quantity string, sign int, warehouse, field, id string) {
			list, _ := r[attribute].(*types.AttributeValueMemberL)
			for i := 0; list != nil && i < len(list.Value); i++ {
				line := storetest.Record(list.Value[i].(*types.AttributeValueMemberM).Value)
				if n := line.Int(quantity); n > 0 {
					add(fmt.Sprintf("inventoryLevel %s %s", line.Text("sku")+line.Text("productId"), warehouse), shipped[field+" "+id], stockChange{delta: sign * n}, field+" "+id)
				}
			}
		}
		order, _ := strings.CutPrefix(k.PK, "ORDER#")
		switch {
		case strings.HasPrefix(k.SK, "SHIPMENT#"):
			id := r.Text("fulfillmentId")
			lines("lines", "qty", -1, r.Text("warehouseId"), "createFulfillment", id)
			if r.Text("status") == "cancelled" {
				lines("lines", "qty", 1, r.Text("warehouseId"), "cancelFulfillment", id)
			}
		case strings.HasPrefix(k.SK, "RETURN#"):
			lines("lines", "restocked", 1, r.Text("warehouseId"), "receiveReturn", r.Text("returnId"))
		case strings.HasPrefix(k.SK, "EVENT#") && r.Text("type") == "shipped" && r.Has("warehouseId"):
			for item, line := range a.Records {
				if item.PK == k.PK && strings.HasPrefix(item.SK, "ITEM#") && line.Int("qty") > 0 {
					add(fmt.Sprintf("inventoryLevel %s %s", line.Text("productId"), r.Text("warehouseId")), shipped["shipOrder "+order], stockChange{delta: -line.Int("qty")}, "shipOrder "+order)
				}
			}
		}
	}
	for _, subject := range slices.Sorted(maps.Keys(all)) {
		end := period{w.step() + 10, w.step() + 11}
		r := recordOf(a, subject)
		if r == nil {
			r = storetest.Record{"version": &types.AttributeValueMemberN{Value: "0"}, "quantity": &types.AttributeValueMemberN{Value: "0"}}
		}
		add(subject, end, stockChange{read: true, result: level{r.Int("version"), r.Int("quantity")}}, "the table")
		w.checkLater(subject, levelModel, all[subject])
	}
}

// verifyResponses verifies that equal requests have equal responses, that each record in a response
// exists, and that line items have prices which their products once had.
func (w *world) verifyResponses(a *storetest.AuditResult) {
	first, had := map[string]operation{}, map[string]bool{}
	for i := range fixture.Products {
		had[fmt.Sprintf("p%d %d.50", i, i+1)] = true
	}
	known, unknown := map[string]bool{}, map[string]int{}
	for _, o := range w.history.operations {
		if price, ok := o.Input["unitPrice"].(map[string]any); ok && (o.returned == 0 || o.response.Succeeded()) {
			had[fmt.Sprintf("%v %v", o.Input["sku"], price["amount"])] = true
		}
		prefix := createdPrefixes[o.Field]
		switch {
		case o.returned == 0:
			unknown[prefix]++
			continue
		case !o.response.Succeeded() || o.read != "":
			continue
		}
		if prefix != "" {
			id := o.response.Record().ID
			known[prefix+id] = true
			if a.Records[storetest.Key{PK: fmt.Sprintf("ORDER#%s", o.Input["orderId"]), SK: prefix + id}] == nil {
				w.found("%s: the response contains %s%s, which does not exist", o.decision, prefix, id)
			}
		}
		if other, ok := first[o.key()]; ok && o.key() != "" && w.withoutPersonal(other.response) != w.withoutPersonal(o.response) {
			w.found("the requests %s and %s have one key, but the responses %s and %s", other.decision, o.decision, other.response, o.response)
		}
		first[o.key()] = o
	}
	for k, r := range a.Records {
		if sku, ok := strings.CutPrefix(k.SK, "ITEM#"); ok && !had[sku+" "+r.Number("price").FloatString(2)] {
			w.found("%s %s costs %s, but the product never had that price", k.PK, k.SK, r.Number("price").FloatString(2))
		}
		for _, prefix := range []string{"PAYMENT#", "RETURN#", "SHIPMENT#"} {
			if strings.HasPrefix(k.PK, "ORDER#") && strings.HasPrefix(k.SK, prefix) && !known[k.SK] {
				if unknown[prefix]--; unknown[prefix] < 0 {
					w.found("%s %s exists, but no request made it", k.PK, k.SK)
				}
			}
		}
	}
}

// personalFields are the fields that a replay reads from the current record, and those that depend on
// them.
var personalFields = []string{"name", "email", "phoneNumbers", "shippingAddress", "billingAddress", "contact", "hold", "availableTransitions", "rejectionReason", "actor", "reason"}

// withoutPersonal returns a response without the data that a replay reads from the current record
// (docs/adr/0061-erasure.md).
func (w *world) withoutPersonal(a workload.Response) string {
	record := map[string]any{}
	if err := json.Unmarshal([]byte(a.RecordJSON), &record); err != nil {
		w.found("a response contains the record %s: %v", a.RecordJSON, err)
	}
	lines, _ := record["lines"].([]any)
	for _, part := range append(lines, record) {
		for _, name := range personalFields {
			delete(part.(map[string]any), name)
		}
	}
	return fmt.Sprint(record)
}
