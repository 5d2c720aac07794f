package server_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/internal/test/longtest"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
	"github.com/ordergraph/ordergraph/internal/test/workload"
)

// versionedMutation is a mutation that takes an expected version: an input without the version, the
// record's keys, and its version in the fixture. One request reads the record.
type versionedMutation struct {
	input   mutationInput
	pk, sk  string
	version int
	// elsewhere changes the record as another mutation would. The payload shows the change.
	elsewhere map[string]types.AttributeValue
	mark      string
}

// versionedNames returns the names of the mutations that take an expected version.
// DynamoDB Local gets every sixth.
func versionedNames(t *testing.T, db *dynamodb.Client) []string {
	t.Helper()
	var names []string
	for i, name := range slices.Sorted(maps.Keys(versions(newFixture(t, db, smallDataset(t)), t))) {
		if storetest.RunsCase(t, 6, i) {
			names = append(names, name)
		}
	}
	return names
}

func versions(s *fixture, t testing.TB) map[string]versionedMutation {
	t.Helper()
	order := func(before ...string) versionedMutation {
		id := s.place(t, "ann", "mug", "plate")
		for _, mutation := range before {
			s.mutate(t, mutation, moveInput(mutation, id))
		}
		return versionedMutation{
			input: mutationInput{"orderId": id}, pk: "ORDER#" + id, sk: "#METADATA", version: 1 + len(before),
			elsewhere: map[string]types.AttributeValue{"shippingAddress": &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{
				"recipient": storetest.Str("Someone else"), "city": storetest.Str("Elsewhere"), "countryCode": storetest.Str("US"),
			}}},
			mark: "Someone else",
		}
	}
	with := func(v versionedMutation, more mutationInput) versionedMutation {
		maps.Copy(v.input, more)
		return v
	}
	level := versionedMutation{input: mutationInput{"sku": "yen", "warehouseId": "north", "quantity": 9}, pk: "PRODUCT#yen", sk: "WAREHOUSE#north", version: 1}
	level.elsewhere, level.mark = map[string]types.AttributeValue{"quantity": number(8)}, `"quantity":8`
	named := map[string]types.AttributeValue{"name": storetest.Str("Another name")}
	address := versionedMutation{input: mutationInput{"shippingAddress": mutationInput{"recipient": "Bo", "line1": "2 High St", "city": "Leeds", "countryCode": "GB"}}}
	webhook := s.addWebhook(t)
	hooked := versionedMutation{input: webhook, pk: fmt.Sprintf("WEBHOOK#%s", webhook["webhookId"]), sk: "#METADATA", version: 1, elsewhere: map[string]types.AttributeValue{"url": storetest.Str("https://another.example.com")}, mark: "https://another.example.com"}
	all := map[string]versionedMutation{
		"pauseWebhook":          hooked,
		"resumeWebhook":         hooked,
		"updateCustomer":        {input: mutationInput{"id": "bob", "phoneNumbers": []string{"+1"}}, pk: "CUSTOMER#bob", sk: "#METADATA", version: 1, elsewhere: named, mark: "Another name"},
		"assignAccountRep":      {input: mutationInput{"customerId": "ann", "employeeId": "sam"}, pk: "CUSTOMER#ann", sk: "#METADATA", version: 1, elsewhere: named, mark: "Another name"},
		"confirmOrder":          order(),
		"shipOrder":             with(order("confirmOrder"), mutationInput{"warehouseId": "north", "withoutAddress": true}),
		"deliverOrder":          order("confirmOrder", "shipOrder"),
		"cancelOrder":           order("confirmOrder"),
		"setAdjustments":        with(order(), mutationInput{"adjustments": []mutationInput{{"kind": "FEE", "label": "Gift wrap", "amount": "2"}}}),
		"updateOrder":           with(order(), mutationInput{"contact": mutationInput{"phone": "+1 555 0100"}}),
		"holdOrder":             with(order(), mutationInput{"reason": "Check the address"}),
		"releaseOrder":          order("holdOrder"),
		"tagOrder":              with(order(), mutationInput{"add": []string{"vip"}}),
		"setOrderItem":          with(order(), mutationInput{"sku": "mug", "quantity": 3}),
		"removeOrderItem":       with(order(), mutationInput{"sku": "mug"}),
		"cancelOrderItems":      with(order("confirmOrder"), mutationInput{"lines": []mutationInput{{"sku": "mug", "quantity": 1}}}),
		"updateShippingAddress": with(order(), address.input),
		"updateProduct":         {input: mutationInput{"sku": "yen", "category": "Kitchen"}, pk: "PRODUCT#yen", sk: "#METADATA", version: 1, elsewhere: named, mark: "Another name"},
		"updateWarehouse":       {input: mutationInput{"id": "north", "name": "North Hall"}, pk: "WAREHOUSE#north", sk: "#METADATA", version: 1, elsewhere: map[string]types.AttributeValue{"productCount": number(8)}, mark: `"productCount":8`},
		"setInventoryLevel":     level,
		"updateEmployee":        {input: mutationInput{"id": "sam", "jobTitle": "Foreman"}, pk: "EMPLOYEE#sam", sk: "#METADATA", version: 1, elsewhere: named, mark: "Another name"},
	}
	s.wire.reset()
	return all
}

// The list of mutations with an expected version is explicit, so that a new mutation is not
// forgotten.
func TestEveryMutationThatTakesAVersionIsTried(t *testing.T) {
	s := newFixture(t, storetest.Engines()[0].Client(t), smallDataset(t))
	tried := versions(s, t)
	var schema struct {
		Schema struct {
			Types []struct {
				Name        string
				InputFields []struct{ Name string }
			}
		} `json:"__schema"`
	}
	s.read(t, &schema, `{ __schema { types { name inputFields { name } } } }`)
	for _, typ := range schema.Schema.Types {
		for _, f := range typ.InputFields {
			name := strings.ToLower(typ.Name[:1]) + strings.TrimSuffix(typ.Name[1:], "Input")
			if _, ok := tried[name]; f.Name == "expectedVersion" && !ok && workload.PayloadRecordFields[name] != "fulfillment" { // TestFulfillments tries them
				t.Errorf("%s has an expected version, but no test uses it", name)
			}
		}
	}
}

// A wrong version is refused with the current record, after one request that reads it. The right
// version and a missing one are accepted, and the version increases by one.
func TestExpectedVersions(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		for i, name := range versionedNames(t, db) {
			t.Run(name, func(t *testing.T) {
				all := []any{nil, "right"}
				for _, expected := range longtest.Size(all[i%2:][:1], all) {
					s := newFixture(t, db, smallDataset(t))
					v := versions(s, t)[name]
					for _, wrong := range []int{v.version + 1, v.version - 1, -1, 1<<31 - 1} {
						s.wire.reset()
						got := s.refuse(t, name, v.input.with("expectedVersion", wrong), "VERSION_CONFLICT input.expectedVersion")
						if e := got.UserErrors[0]; e.Typename != "VersionConflict" || e.CurrentVersion != v.version {
							t.Errorf("expectedVersion %d returns the user error %+v, want the current version %d", wrong, e, v.version)
						}
						if versionOf(t, got.Value) != v.version {
							t.Errorf("the payload is %s, want version %d", got.Value, v.version)
						}
						got.Extensions.Explain.budget(t, 1, 1)
					}
					input := v.input
					if expected == "right" {
						input = input.with("expectedVersion", v.version)
					}
					got := s.mutate(t, name, input)
					if versionOf(t, got.Value) != v.version+1 {
						t.Errorf("expectedVersion %v returns %s, want version %d", expected, got.Value, v.version+1)
					}
				}
			})
		}
	})
}

func versionOf(t testing.TB, record json.RawMessage) int {
	t.Helper()
	var v *struct{ Version int }
	if err := json.Unmarshal(record, &v); err != nil {
		t.Fatal(err)
	}
	if v == nil {
		return -1
	}
	return v.Version
}

// If a record changes between the read and the transaction, DynamoDB returns its current state with
// the failed condition. Nothing is read again. A caller that expects a version gets a conflict with
// that state. Other callers' changes are applied to that state.
func TestChangesInBetween(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		for _, name := range versionedNames(t, db) {
			t.Run(name, func(t *testing.T) {
				inBetween := func(s *fixture, v versionedMutation) {
					changed := maps.Clone(v.elsewhere)
					changed["version"] = number(v.version + 1)
					s.wire.beforeNextTransaction(func() { s.change(t, v.pk, v.sk, changed) })
				}

				s := newFixture(t, db, smallDataset(t))
				v := versions(s, t)[name]
				inBetween(s, v)
				conflict := s.try(t, name, v.input.with("expectedVersion", v.version))
				if !slices.Equal(reasonsOf(conflict), []string{"VERSION_CONFLICT input.expectedVersion"}) || conflict.UserErrors[0].CurrentVersion != v.version+1 {
					t.Errorf("expecting the previous version returns %+v, want VERSION_CONFLICT", conflict.UserErrors)
				}
				if versionOf(t, conflict.Value) != v.version+1 || !strings.Contains(string(conflict.Value), v.mark) {
					t.Errorf("the payload of the version conflict is %s, want version %d and %s", conflict.Value, v.version+1, v.mark)
				}
				reads := 1
				if p := patternOf(t, name); p.ReadsItems && len(p.ReadsPerLine) > 0 {
					reads++ // the order contains it
				}
				conflict.Extensions.Explain.budget(t, reads+1, reads+1)

				s = newFixture(t, db, smallDataset(t))
				v = versions(s, t)[name]
				inBetween(s, v)
				done := s.mutate(t, name, v.input)
				if versionOf(t, done.Value) != v.version+2 {
					t.Errorf("without expectedVersion, the payload is %s, want version %d", done.Value, v.version+2)
				}
				// Two of them set the same attributes as the other change.
				if name != "updateShippingAddress" && name != "setInventoryLevel" && !strings.Contains(string(done.Value), v.mark) {
					t.Errorf("the concurrent change was lost: %s", done.Value)
				}
				done.Extensions.Explain.budget(t, reads+2, reads+2)
			})
		}
	})
}

// Of two clients that expect the same version, one succeeds. The other gets the new record.
func TestRacesForAVersion(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		for _, name := range versionedNames(t, db) {
			t.Run(name, func(t *testing.T) {
				s := newFixture(t, db, smallDataset(t))
				v := versions(s, t)[name]
				variables, err := json.Marshal(mutationInput{"input": v.input.with("expectedVersion", v.version)})
				if err != nil {
					t.Fatal(err)
				}
				var answers [2]string
				var group sync.WaitGroup
				for i := range answers {
					group.Go(func() {
						answers[i] = string(s.ask(t, mutation(name, workload.RecordSelection(workload.PayloadRecordFields[name])), variables).Data)
					})
				}
				group.Wait()
				won, lost := answers[0], answers[1]
				if strings.Contains(won, "userErrors\":[{") {
					won, lost = lost, won
				}
				current := fmt.Sprintf(`"currentVersion":%d`, v.version+1)
				if !strings.Contains(won, `"userErrors":[]`) || !strings.Contains(lost, `"VERSION_CONFLICT"`) || !strings.Contains(lost, current) {
					t.Errorf("one mutation returns %s, the other %s, want one success and one VERSION_CONFLICT", won, lost)
				}
			})
		}
	})
}

// Ten concurrent changes of an order without an expected version all succeed, one after the other.
func TestConcurrentChangesWithoutAVersion(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newFixture(t, db, smallDataset(t))
		id := s.place(t, "ann", "mug")
		var group sync.WaitGroup
		for i := range 10 {
			group.Go(func() {
				variables, err := json.Marshal(mutationInput{"input": mutationInput{"orderId": id, "sku": "mug", "quantity": i + 2}})
				if err != nil {
					t.Error(err)
					return
				}
				if got := s.ask(t, mutation("setOrderItem", "version"), variables); !strings.Contains(string(got.Data), `"userErrors":[]`) {
					t.Errorf("%s %+v", got.Data, got.Errors)
				}
			})
		}
		group.Wait()
		o := s.order(t, id)
		if o.Version != 11 || len(o.Timeline.Nodes) != 11 {
			t.Errorf("the order has version %d and %d events, want 11 of both", o.Version, len(o.Timeline.Nodes))
		}
		if want := fmt.Sprintf("%d of 102 available, 100 in north, 2 in south", 102-o.Items.Nodes[0].Quantity); s.stock(t, "mug") != want {
			t.Errorf("the stock of mugs is %s, want %s", s.stock(t, "mug"), want)
		}
		increasing(t, o)
	})
}

// increasing fails t if the events of an order are not in the order of their IDs and times, or if
// two are equal.
func increasing(t testing.TB, o orderView) {
	t.Helper()
	for i, e := range o.Timeline.Nodes[1:] {
		if before := o.Timeline.Nodes[i]; e.ID <= before.ID || !e.At.After(before.At) {
			t.Errorf("event %s at %s follows event %s at %s, want increasing IDs and times", e.ID, e.At, before.ID, before.At)
		}
	}
	if last := o.Timeline.Nodes[len(o.Timeline.Nodes)-1]; !o.UpdatedAt.Equal(last.At) {
		t.Errorf("the order was updated at %s, but its last event is from %s", o.UpdatedAt, last.At)
	}
}

// A missing level has version 0. If the level is created meanwhile, the response is a conflict with
// its record.
func TestTheVersionOfAMissingLevel(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newFixture(t, db, smallDataset(t))
		set := mutationInput{"sku": "plate", "warehouseId": "south", "quantity": 5}
		got := s.refuse(t, "setInventoryLevel", set.with("expectedVersion", 1), "VERSION_CONFLICT input.expectedVersion")
		if string(got.Value) != "null" || got.UserErrors[0].CurrentVersion != 0 {
			t.Errorf("the payload of the version conflict is %s, %+v", got.Value, got.UserErrors)
		}
		s.wire.beforeNextTransaction(func() {
			s.change(t, "PRODUCT#plate", "WAREHOUSE#south", map[string]types.AttributeValue{
				"sku": storetest.Str("plate"), "warehouseId": storetest.Str("south"), "quantity": number(3), "version": number(1),
			})
		})
		got = s.try(t, "setInventoryLevel", set.with("expectedVersion", 0))
		if !slices.Equal(reasonsOf(got), []string{"VERSION_CONFLICT input.expectedVersion"}) || !strings.Contains(string(got.Value), `"quantity":3,"reorderPoint":0,"version":1`) {
			t.Errorf("the payload of the version conflict is %s, %+v", got.Value, got.UserErrors)
		}
		got = s.mutate(t, "setInventoryLevel", set.with("expectedVersion", 1))
		if !strings.Contains(string(got.Value), `"quantity":5,"reorderPoint":0,"version":2`) {
			t.Errorf("the level is %s", got.Value)
		}
	})
}

// If the price of a product changes between the read and the transaction, the new price applies.
func TestCurrentPriceApplies(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newFixture(t, db, smallDataset(t))
		s.wire.beforeNextTransaction(func() {
			s.change(t, "PRODUCT#mug", "#METADATA", map[string]types.AttributeValue{"unitPrice": &types.AttributeValueMemberN{Value: "8.25"}})
		})
		id := s.place(t, "ann", "mug", "plate")
		if o := s.order(t, id); o.lines() != "1 mug at 8.25, 1 plate at 12.00" || o.Total.Amount != "20.25" {
			t.Errorf("the order has %s, total %s", o.lines(), o.Total.Amount)
		}
		// If the customer gets a rep meanwhile, the order is the rep's.
		s.clock.pass(time.Second)
		s.wire.beforeNextTransaction(func() {
			s.change(t, "CUSTOMER#bob", "#METADATA", map[string]types.AttributeValue{"accountRepId": storetest.Str("sam"), "version": number(2)})
		})
		if o := s.order(t, s.place(t, "bob", "mug")); o.AccountRep == nil || o.AccountRep.ID != "sam" {
			t.Errorf("the order's rep is %+v", o.AccountRep)
		}
		// A product that sells out meanwhile is refused.
		s.wire.beforeNextTransaction(func() {
			s.change(t, "PRODUCT#plate", "#METADATA", map[string]types.AttributeValue{"available": number(1)})
		})
		got := s.try(t, "placeOrder", mutationInput{"customerId": "bob", "items": []mutationInput{{"sku": "mug", "quantity": 1}, {"sku": "plate", "quantity": 2}}})
		if !slices.Equal(reasonsOf(got), []string{"INSUFFICIENT_STOCK input.items.1.quantity"}) || got.UserErrors[0].Available != 1 || got.UserErrors[0].SKU != "plate" {
			t.Errorf("ordering two plates with one in stock returns %+v", got.UserErrors)
		}
		got.Extensions.Explain.budget(t, 2, 2)
	})
}
