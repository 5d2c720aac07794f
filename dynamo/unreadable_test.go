package dynamo_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/change"
	"github.com/ordergraph/ordergraph/dynamo/check"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/internal/test/longtest"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// tableWithAllAttributes returns a table that contains every attribute that the model writes.
func tableWithAllAttributes(t *testing.T, db *dynamodb.Client) storetest.RawTable {
	r := storetest.NewRawTable(t, db, storetest.SmallDataset(t, 3), dynamo.Options{})
	_, err := r.Store.ChangeOrderStatus(t.Context(), change.Caller{Name: "c"}, commerce.OrderStatusChange{OrderID: commerce.OrderID(storetest.SmallOrderID(2)), To: commerce.Delivered, Note: "by phone"})
	if err != nil {
		t.Fatal(err)
	}
	r.CheckClean()
	return r
}

// recordsWithCopies returns groups of records that repeat one another's attributes.
func recordsWithCopies() [][]string {
	order := storetest.SmallOrderID(0)
	return [][]string{
		{"ORDER#" + order + " #METADATA", "CUSTOMER#c1 ORDER#" + order},
		{"CUSTOMER#c1 #METADATA", "CUSTOMER#c1 REP"},
		{"EMPLOYEE#e1 #METADATA", "EMPLOYEE#e1 NAME", "EMPLOYEE#e1 TITLE", "EMPLOYEE#e1 WAREHOUSE"},
	}
}

// oneKeyPerEntity returns the key of one record of each entity, the record with the most
// attributes.
func oneKeyPerEntity(records map[string]storetest.Item) []string {
	best := map[string]string{}
	for _, k := range slices.Sorted(maps.Keys(records)) {
		kind := records[k]["entity"].(*types.AttributeValueMemberS).Value
		if best[kind] == "" || len(records[k]) > len(records[best[kind]]) {
			best[kind] = k
		}
	}
	return slices.Sorted(maps.Values(best))
}

// unreadableValues returns values that cannot be read as an attribute of v's type.
func unreadableValues(v types.AttributeValue) []types.AttributeValue {
	list := func(e types.AttributeValue) types.AttributeValue {
		return &types.AttributeValueMemberL{Value: []types.AttributeValue{e}}
	}
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return []types.AttributeValue{storetest.Num("17"), list(v)}
	case *types.AttributeValueMemberN:
		return []types.AttributeValue{storetest.Str(v.Value), &types.AttributeValueMemberBOOL{Value: true}}
	case *types.AttributeValueMemberBOOL:
		return []types.AttributeValue{storetest.Str("true"), storetest.Num("1")}
	case *types.AttributeValueMemberL:
		return []types.AttributeValue{storetest.Str("1, 2"), list(storetest.Num("5")), &types.AttributeValueMemberNULL{Value: true}}
	case *types.AttributeValueMemberM:
		values := []types.AttributeValue{storetest.Str("Ann, 1 Road, Town"), list(storetest.Str("Ann"))}
		for _, name := range slices.Sorted(maps.Keys(v.Value)) {
			inside := maps.Clone(v.Value)
			inside[name] = storetest.Num("1")
			values = append(values, &types.AttributeValueMemberM{Value: inside})
		}
		return values
	}
	panic(fmt.Sprintf("the model writes no %T", v))
}

// forEachUnreadableAttribute replaces one attribute with an unreadable value, calls test, and
// restores the table. It does so for attributes of every entity: in one record alone, and in all
// records that repeat the attribute. By default and on DynamoDB Local, it selects a sixth of the
// attributes and one value for each.
func forEachUnreadableAttribute(t *testing.T, db *dynamodb.Client, test func(r storetest.RawTable, keys []string, name string, value types.AttributeValue)) {
	t.Helper()
	r := tableWithAllAttributes(t, db)
	r.Check(check.Options{Repair: true}) // count the open orders
	healthy := r.All()
	attributes := 0
	groups := recordsWithCopies()
	for _, k := range oneKeyPerEntity(healthy) {
		groups = append(groups, []string{k})
	}
	for _, group := range groups {
		for _, name := range slices.Sorted(maps.Keys(healthy[group[0]])) {
			if name == "pk" || name == "sk" || strings.HasPrefix(name, "gsi1") {
				continue
			}
			if attributes++; attributes%longtest.Size(6, 1) > 0 || !storetest.RunsCase(t, 6, attributes) {
				continue
			}
			values := unreadableValues(healthy[group[0]][name])
			if !storetest.IsEmbedded(t) || !longtest.Enabled() {
				values = values[:1]
			}
			for _, value := range values {
				var keys []string
				for _, k := range group {
					if healthy[k][name] != nil {
						rec := maps.Clone(healthy[k])
						rec[name] = value
						r.Put(rec)
						keys = append(keys, k)
					}
				}
				test(r, keys, name, value)
				now := r.All()
				for _, k := range storetest.DifferingKeys(healthy, now) {
					pk, sk, _ := strings.Cut(k, " ")
					if now[k] != nil {
						r.Delete(pk, sk)
					}
					if healthy[k] != nil {
						r.Put(healthy[k])
					}
				}
				if t.Failed() {
					return
				}
			}
		}
	}
}

// A repair leaves every unreadable value in the record and its copies, and reports the attribute.
func TestRepairKeepsUnreadableAttributes(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		forEachUnreadableAttribute(t, db, func(r storetest.RawTable, keys []string, name string, value types.AttributeValue) {
			if slices.Contains([]string{"openOrders", "reservedUnits", "reservationsCounted"}, name) {
				r.Check(check.Options{Repair: true}) // a repair counts the open orders again
				r.CheckClean()
				return
			}
			before := r.All()
			inconsistencies, summary := r.Check(check.Options{Repair: true})
			what := fmt.Sprintf("%s of %q is %#v: found %+v", name, keys, storetest.CanonicalNumber(value), inconsistencies)
			if changed := storetest.DifferingKeys(before, r.All()); len(changed) > 0 {
				t.Errorf("%s, and changed %q", what, changed)
			}
			var named []string
			for _, d := range inconsistencies {
				if d.Kind == "unreadable" && d.ByHand && strings.Contains(d.Detail, fmt.Sprintf("attribute %q ", name)) {
					named = append(named, d.PK+" "+d.SK)
				}
			}
			slices.Sort(named)
			if !slices.Equal(named, slices.Sorted(slices.Values(keys))) || len(inconsistencies) != len(keys) || summary.UnrepairedCount() != len(keys) || summary.ByHand != len(keys) {
				t.Errorf("%s, %d left", what, summary.UnrepairedCount())
			}
		})
	})
}

// A mutation keeps every unreadable value that it does not replace, in the record and in its
// copies. Otherwise it fails and changes nothing. A copy gets the value of its record, and so does
// a changed item. Lists still contain the record.
func TestMutationsKeepUnreadableAttributes(t *testing.T) {
	t.Parallel()
	caller := change.Caller{Name: "c"}
	order, name, nowhere := commerce.OrderID(storetest.SmallOrderID(0)), "New", commerce.WarehouseID("")
	mutations := []struct {
		of string
		// sets is the attribute that the mutation replaces.
		sets string
		do   func(ctx context.Context, s *dynamo.Store) error
	}{
		{"ORDER#" + string(order), "", func(ctx context.Context, s *dynamo.Store) error {
			_, err := s.ChangeOrderStatus(ctx, caller, commerce.OrderStatusChange{OrderID: order, To: commerce.Confirmed})
			return err
		}},
		{"ORDER#" + string(order), "", func(ctx context.Context, s *dynamo.Store) error {
			_, err := s.ChangeOrderStatus(ctx, caller, commerce.OrderStatusChange{OrderID: order, To: commerce.Cancelled})
			return err
		}},
		{"ORDER#" + string(order), "", func(ctx context.Context, s *dynamo.Store) error {
			_, err := s.SetOrderItem(ctx, caller, commerce.OrderItemChange{OrderID: order, SKU: "p00", Quantity: 2})
			return err
		}},
		{"ORDER#" + string(order), "shippingAddress", func(ctx context.Context, s *dynamo.Store) error {
			_, err := s.UpdateShippingAddress(ctx, caller, commerce.ShippingAddressChange{OrderID: order, ShippingAddress: commerce.Address{Recipient: "Bob"}})
			return err
		}},
		{"CUSTOMER#c1", "", func(ctx context.Context, s *dynamo.Store) error {
			_, err := s.UpdateCustomer(ctx, caller, commerce.CustomerChange{ID: "c1", Name: &name})
			return err
		}},
		{"CUSTOMER#c1", "accountRepId", func(ctx context.Context, s *dynamo.Store) error {
			_, err := s.AssignAccountRep(ctx, caller, commerce.AccountRepChange{CustomerID: "c1", EmployeeID: "e2"})
			return err
		}},
		{"CUSTOMER#c1", "", func(ctx context.Context, s *dynamo.Store) error {
			_, err := s.PlaceOrder(ctx, caller, commerce.OrderRequest{CustomerID: "c1", Lines: []commerce.OrderLine{{SKU: "p00", Quantity: 1}}})
			return err
		}},
		{"EMPLOYEE#e1", "", func(ctx context.Context, s *dynamo.Store) error {
			_, err := s.UpdateEmployee(ctx, caller, commerce.EmployeeChange{ID: "e1", JobTitle: &name})
			return err
		}},
		{"EMPLOYEE#e1", "warehouseId", func(ctx context.Context, s *dynamo.Store) error {
			_, err := s.UpdateEmployee(ctx, caller, commerce.EmployeeChange{ID: "e1", WarehouseID: &nowhere})
			return err
		}},
		{"PRODUCT#p00", "", func(ctx context.Context, s *dynamo.Store) error {
			_, err := s.UpdateProduct(ctx, caller, commerce.ProductChange{SKU: "p00", Name: &name})
			return err
		}},
		{"PRODUCT#p00", "", func(ctx context.Context, s *dynamo.Store) error {
			_, err := s.AdjustInventory(ctx, caller, commerce.InventoryAdjustment{SKU: "p00", WarehouseID: "w1", Delta: 1})
			return err
		}},
	}
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		made, failed := 0, 0
		forEachUnreadableAttribute(t, db, func(r storetest.RawTable, keys []string, name string, value types.AttributeValue) {
			pk, sk, _ := strings.Cut(keys[0], " ")
			e := model.EntityOf(model.Keys{PK: pk, SK: sk})
			copies := []string{model.EntityCustomerOrder.Name, model.EntityOrderItem.Name, model.EntityLastEvent.Name}
			if e.IsEdge() || slices.Contains(copies, e.Name) || name == "entity" && len(keys) > 1 {
				return
			}
			before := r.All()
			for i, m := range mutations {
				if m.of != pk || m.sets == name {
					continue
				}
				err := m.do(t.Context(), r.Store)
				after := r.All()
				changed := storetest.DifferingKeys(before, after)
				what := fmt.Sprintf("%s of %q is %#v, mutation %d of %s, %v", name, keys, storetest.CanonicalNumber(value), i, m.of, err)
				switch {
				case errors.Is(err, model.ErrCorrupt):
					failed++
					if len(changed) > 0 {
						t.Errorf("%s: changed %q", what, changed)
					}
					continue
				case err != nil || len(changed) == 0:
					t.Errorf("%s: changed %q", what, changed)
					continue
				}
				made++
				for _, k := range keys {
					if got := after[k][name]; after[k] != nil && !storetest.EqualValues(got, value) {
						t.Errorf("%s: %s has %#v", what, k, storetest.CanonicalNumber(got))
					}
					if listed := before[k]["gsi1pk"]; listed != nil && after[k] != nil && (name == "accountRepId" || name == "category") && !strings.HasPrefix(k, "ORDER#") && !storetest.EqualValues(after[k]["gsi1pk"], listed) {
						t.Errorf("%s: %s has the index key %#v", what, k, after[k]["gsi1pk"])
					}
				}
				for _, k := range changed {
					pk, sk, _ := strings.Cut(k, " ")
					if after[k] != nil {
						r.Delete(pk, sk)
					}
					if before[k] != nil {
						r.Put(before[k])
					}
				}
			}
		})
		t.Logf("%d mutations were made, %d failed", made, failed)
		if made == 0 || failed == 0 {
			t.Error("want mutations that succeed and mutations that fail")
		}
	})
}

// check verifies and repairs a record that also has an unreadable value. A recreated copy contains
// that value.
func TestReadableAttributesAreChecked(t *testing.T) {
	t.Parallel()
	const own = "#METADATA"
	order := "ORDER#" + storetest.SmallOrderID(0)
	address := storetest.Str("Ann, 1 Road, Town")
	for i, c := range []struct {
		name   string
		damage func(r storetest.RawTable)
		found  string
		// keeps maps records to an unreadable attribute, which has this value after the repair.
		keeps map[string]string
		value types.AttributeValue
		// lacks maps records to an attribute that they lack after the repair.
		lacks map[string]string
		// restore is whether the repair restores missing customers.
		restore bool
	}{
		{name: "order", found: "index-keys 1, order-total 2, timeline 1, unreadable 2", value: address,
			keeps: map[string]string{order + " " + own: "shippingAddress", "CUSTOMER#c1 " + order: "shippingAddress"},
			damage: func(r storetest.RawTable) {
				r.Set(order, own, storetest.Item{"shippingAddress": address, "total": storetest.Num("1"), "gsi1pk": storetest.Str("STATUS#shipped")})
				r.Set("CUSTOMER#c1", order, storetest.Item{"shippingAddress": address, "total": storetest.Num("1")})
				r.Delete(order, "EVENT#"+storetest.ULIDAt(start, 1))
			}},
		{name: "order whose copy is lost", found: "copy-missing 1, unreadable 1", value: address,
			keeps: map[string]string{order + " " + own: "shippingAddress", "CUSTOMER#c1 " + order: "shippingAddress"},
			damage: func(r storetest.RawTable) {
				r.Set(order, own, storetest.Item{"shippingAddress": address})
				r.Delete("CUSTOMER#c1", order)
			}},
		{name: "order with only its copy left", found: "order-missing 1, unreadable 1", value: address,
			keeps: map[string]string{order + " " + own: "shippingAddress", "CUSTOMER#c1 " + order: "shippingAddress"},
			damage: func(r storetest.RawTable) {
				r.Set("CUSTOMER#c1", order, storetest.Item{"shippingAddress": address})
				r.Delete(order, own)
			}},
		{name: "order whose version and time cannot be read", found: "timeline 1, unreadable 2", value: storetest.Str("new"),
			keeps: map[string]string{order + " " + own: "version", "CUSTOMER#c1 " + order: "updatedAt"},
			damage: func(r storetest.RawTable) {
				r.Set(order, own, storetest.Item{"version": storetest.Str("new"), "updatedAt": storetest.Str("new")})
				r.Set("CUSTOMER#c1", order, storetest.Item{"version": storetest.Str("new"), "updatedAt": storetest.Str("new")})
				r.Delete(order, "EVENT#"+storetest.ULIDAt(start, 1))
			}},
		{name: "customer", found: "claim-missing 1, edge-missing 1, order-count 1, unreadable 1", value: storetest.Str("2, 3"),
			keeps: map[string]string{"CUSTOMER#c1 " + own: "phoneNumbers"}, lacks: map[string]string{"CUSTOMER#c1 REP": "phoneNumbers"},
			damage: func(r storetest.RawTable) {
				r.Set("CUSTOMER#c1", own, storetest.Item{"phoneNumbers": storetest.Str("2, 3"), "orderCount": storetest.Num("9")})
				r.Delete("CUSTOMER#c1", "REP")
				r.Delete("EMAIL#ann@example.com", own)
			}},
		{name: "customer whose account rep cannot be read", found: "order-count 1, unreadable 1", value: storetest.Num("17"),
			keeps: map[string]string{"CUSTOMER#c1 " + own: "accountRepId"},
			damage: func(r storetest.RawTable) {
				r.Set("CUSTOMER#c1", own, storetest.Item{"accountRepId": storetest.Num("17"), "orderCount": storetest.Num("9")})
			}},
		{name: "customer with only an edge left", found: "customer-missing 1, unreadable 1", value: storetest.Str("2, 3"), restore: true,
			keeps: map[string]string{"CUSTOMER#c1 " + own: "phoneNumbers", "CUSTOMER#c1 REP": "phoneNumbers"},
			damage: func(r storetest.RawTable) {
				r.Set("CUSTOMER#c1", "REP", storetest.Item{"phoneNumbers": storetest.Str("2, 3")})
				r.Delete("CUSTOMER#c1", own)
			}},
		{name: "employee", found: "edge-differs 1, edge-missing 1, unreadable 1", value: storetest.Str("1"),
			keeps: map[string]string{"EMPLOYEE#e1 " + own: "phoneNumbers"}, lacks: map[string]string{"EMPLOYEE#e1 NAME": "phoneNumbers"},
			damage: func(r storetest.RawTable) {
				r.Set("EMPLOYEE#e1", own, storetest.Item{"phoneNumbers": storetest.Str("1")})
				r.Set("EMPLOYEE#e1", "TITLE", storetest.Item{"name": storetest.Str("Eric")})
				r.Delete("EMPLOYEE#e1", "NAME")
			}},
		{name: "product", found: "stock-available 1, stock-total 1, unreadable 1", value: storetest.Num("17"),
			keeps: map[string]string{"PRODUCT#p00 " + own: "category"},
			damage: func(r storetest.RawTable) {
				r.Set("PRODUCT#p00", own, storetest.Item{"category": storetest.Num("17"), "totalInventory": storetest.Num("1"), "available": storetest.Num("1")})
			}},
		{name: "records that nothing needs", found: "orphan-item 1, unreadable 2", value: storetest.Num("17"),
			keeps: map[string]string{"ORDER#o-9 ITEM#p00": "name", "EMAIL#nobody@example.com " + own: "customerId"},
			damage: func(r storetest.RawTable) {
				rec := r.Get(order, "ITEM#p00")
				rec["pk"], rec["gsi1sk"] = storetest.Str("ORDER#o-9"), storetest.Str("ORDER#o-9")
				rec["name"] = storetest.Num("17")
				r.Put(rec)
				rec = r.Get(order, "ITEM#p01")
				rec["pk"], rec["gsi1sk"] = storetest.Str("ORDER#o-9"), storetest.Str("ORDER#o-9")
				r.Put(rec)
				claim := storetest.ItemKey("EMAIL#nobody@example.com", own)
				claim["customerId"] = storetest.Num("17")
				r.Put(claim)
			}},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
				if !storetest.RunsCase(t, 4, i) {
					return
				}
				r := storetest.NewRawTable(t, db, storetest.SmallDataset(t, 3), dynamo.Options{})
				c.damage(r)
				if inconsistencies, _ := r.Check(check.Options{Restore: c.restore}); storetest.FormatKindCounts(inconsistencies) != c.found {
					t.Errorf("found %s, want %s\n%+v", storetest.FormatKindCounts(inconsistencies), c.found, inconsistencies)
				}
				if inconsistencies, summary := r.Check(check.Options{Repair: true, Restore: c.restore}); summary.UnrepairedCount() != len(c.keeps) || summary.ByHand != len(c.keeps) {
					t.Errorf("the repair left %d, want %d\n%+v", summary.UnrepairedCount(), len(c.keeps), inconsistencies)
				}
				for k, name := range c.keeps {
					pk, sk, _ := strings.Cut(k, " ")
					if got := r.Get(pk, sk)[name]; !storetest.EqualValues(got, c.value) {
						t.Errorf("%s of %s is %#v", name, k, storetest.CanonicalNumber(got))
					}
				}
				for k, name := range c.lacks {
					pk, sk, _ := strings.Cut(k, " ")
					if rec := r.Get(pk, sk); rec == nil || rec[name] != nil {
						t.Errorf("%s is %s", k, storetest.FormatItem(rec))
					}
				}
				if inconsistencies, _ := r.Check(check.Options{}); storetest.FormatKindCounts(inconsistencies) != fmt.Sprintf("unreadable %d", len(c.keeps)) {
					t.Errorf("after the repair found %+v", inconsistencies)
				}
			})
		})
	}
}
