package dynamo_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"pgregory.net/rapid"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/change"
	"github.com/ordergraph/ordergraph/dynamo/check"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/internal/test/longtest"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// declareClaims declares claims of an order's optional tracking number, an employee's optional warehouse
// and a product's name until the test ends. The test must not be parallel.
func declareClaims(t *testing.T) (tracking, warehouse, name *model.Entity) {
	tracking = &model.Entity{Name: "trackingClaim", Description: "claim of a tracking number", PK: "TRACKING#{trackingNumber}", SK: "#METADATA", Kind: model.Claim, Of: &model.EntityOrder, Added: true}
	warehouse = &model.Entity{Name: "headClaim", Description: "claim to be a warehouse's only employee", PK: "HEAD_OF#{warehouseId}", SK: "#METADATA", Kind: model.Claim, Of: &model.EntityEmployee, Added: true}
	name = &model.Entity{Name: "productNameClaim", Description: "claim of a product's name", PK: "PRODUCT_NAMED#{name}", SK: "#METADATA", Kind: model.Claim, Of: &model.EntityProduct, Added: true}
	t.Cleanup(model.DeclareEntities(tracking, warehouse, name))
	return tracking, warehouse, name
}

// wantTaken requires that a mutation was refused, because another record has the value of the field.
func wantTaken(t testing.TB, err error, field string) {
	t.Helper()
	refusals := commerce.UserErrorsOf(err)
	if len(refusals) != 1 {
		t.Errorf("the error is %v, want one about %s", err, field)
		return
	}
	if taken, ok := refusals[0].(commerce.AlreadyExists); !ok || !slices.Equal(taken.Field, []string{"input", field}) && !slices.Equal(taken.Field, []string{field}) {
		t.Errorf("the error is %#v, want one about %s", refusals[0], field)
	}
}

// Mutations write, move and delete the claims that are declared, and refuse values of other records.
func TestMutationsKeepDeclaredClaims(t *testing.T) {
	tracking, _, _ := declareClaims(t)
	storetest.ForEachEngine(t, func(t *testing.T, db *dynamodb.Client) {
		dataset := storetest.SmallDataset(t, 3)
		for i := range dataset.Products {
			dataset.Products[i].Name = fmt.Sprint("Thing ", i)
		}
		r := storetest.NewRawTable(t, db, dataset, dynamo.Options{})
		ctx, s, caller := t.Context(), r.Store, change.Caller{Name: "tester"}
		claimant := func(pk, id string) string { return storetest.Record(r.Get(pk, "#METADATA")).Text(id) }
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		hire := func(id commerce.EmployeeID, warehouse commerce.WarehouseID) error {
			_, err := s.HireEmployee(ctx, caller, commerce.Employee{ID: id, Name: "E", JobTitle: "J", HireDate: "2026-01-01", WarehouseID: warehouse})
			return err
		}
		assign := func(id commerce.EmployeeID, warehouse commerce.WarehouseID) error {
			_, err := s.UpdateEmployee(ctx, caller, commerce.EmployeeChange{ID: id, WarehouseID: &warehouse})
			return err
		}
		for _, id := range []commerce.WarehouseID{"x", "y"} {
			_, err := s.CreateWarehouse(ctx, caller, commerce.Warehouse{ID: id, Name: "W"})
			must(err)
		}
		must(hire("a", "x"))
		must(hire("b", ""))
		wantTaken(t, hire("c", "x"), "warehouseId")
		wantTaken(t, assign("b", "x"), "warehouseId")
		must(assign("b", "y"))
		wantTaken(t, assign("a", "y"), "warehouseId")
		must(assign("b", ""))
		must(assign("a", "y"))
		if got := claimant("HEAD_OF#x", "employeeId") + claimant("HEAD_OF#y", "employeeId"); got != "a" {
			t.Errorf("the warehouses are claimed by %q, want y by a", got)
		}

		ship := func(number string) (commerce.OrderID, error) {
			order, err := s.PlaceOrder(ctx, caller, commerce.OrderRequest{CustomerID: "c1", Lines: []commerce.OrderLine{{SKU: "p01", Quantity: 1}}, ShippingAddress: &commerce.Address{Recipient: "R", Line1: "L", City: "C", PostalCode: "1", CountryCode: "US"}})
			must(err)
			_, err = s.ChangeOrderStatus(ctx, caller, commerce.OrderStatusChange{OrderID: order.ID, To: commerce.Confirmed})
			must(err)
			_, err = s.ChangeOrderStatus(ctx, caller, commerce.OrderStatusChange{OrderID: order.ID, To: commerce.Shipped, WarehouseID: "w1", TrackingNumber: number})
			return order.ID, err
		}
		_, err := s.SetInventoryLevel(ctx, caller, commerce.InventoryLevelChange{SKU: "p01", WarehouseID: "w1", Quantity: new(50)})
		must(err)
		first, err := ship("T1")
		must(err)
		_, err = ship("T1")
		wantTaken(t, err, "trackingNumber")
		if found, err := dynamo.ReadRecord(ctx, s, model.ClaimPattern(1000, "order by tracking number", tracking), "T1"); err != nil || found != string(first) {
			t.Errorf("T1 is the tracking number of %q, want %s: %v", found, first, err)
		}
		wrong := "p01"
		renamed, err := s.UpdateProduct(ctx, caller, commerce.ProductChange{SKU: "p00", Name: &wrong})
		must(err)
		_, err = s.CreateProduct(ctx, caller, commerce.Product{SKU: "p99", Name: renamed.Name, Category: "K", UnitPrice: storetest.USD("1")})
		wantTaken(t, err, "name")
		r.CheckClean()
	})
}

// A check finds and repairs wrong claims of every kind.
func TestCheckRepairsDeclaredClaims(t *testing.T) {
	declareClaims(t)
	storetest.ForEachEngine(t, func(t *testing.T, db *dynamodb.Client) {
		for name, c := range map[string]struct {
			want string
			do   func(storetest.RawTable)
		}{
			"lost": {"claim-missing 1", func(r storetest.RawTable) { r.Delete("PRODUCT_NAMED#One", "#METADATA") }},
			"wrong": {"claim-missing 1", func(r storetest.RawTable) {
				r.Set("PRODUCT_NAMED#One", "#METADATA", storetest.Item{"sku": storetest.Str("p9")})
			}},
			"of no value":   {"orphan-claim 1", func(r storetest.RawTable) { r.Put(claimItem("HEAD_OF#w1", "employeeId", "e9")) }},
			"of nobody":     {"orphan-claim 1", func(r storetest.RawTable) { r.Put(claimItem("PRODUCT_NAMED#Three", "sku", "p3")) }},
			"another value": {"orphan-claim 1", func(r storetest.RawTable) { r.Put(claimItem("PRODUCT_NAMED#Three", "sku", "p1")) }},
		} {
			t.Run(name, func(t *testing.T) {
				r := storetest.NewRawTable(t, db, datasetOfProducts(t), dynamo.Options{})
				if _, err := r.Store.HireEmployee(t.Context(), change.Caller{Name: "tester"}, commerce.Employee{ID: "e9", Name: "E", JobTitle: "J", HireDate: "2026-01-01"}); err != nil {
					t.Fatal(err)
				}
				r.CheckClean()
				before := r.All()
				c.do(r)
				found, _ := r.Check(check.Options{Repair: true})
				if got := storetest.FormatKindCounts(found); got != c.want {
					t.Errorf("found %s, want %s: %+v", got, c.want, found)
				}
				if differing := storetest.DifferingKeys(before, r.All()); len(differing) > 0 {
					t.Errorf("after the repair, these records differ: %v", differing)
				}
			})
		}
	})
}

func claimItem(pk, attribute, id string) storetest.Item {
	rec := storetest.ItemKey(pk, "#METADATA")
	rec["entity"], rec[attribute] = storetest.Str(model.EntityOf(model.Keys{PK: pk, SK: "#METADATA"}).Name), storetest.Str(id)
	return rec
}

func datasetOfProducts(t *testing.T) (d commerce.Dataset) {
	t.Helper()
	for i, name := range []string{"One", "Two"} {
		d.Products = append(d.Products, commerce.Product{SKU: commerce.SKU(fmt.Sprintf("p%d", i+1)), Name: name, Category: "K", UnitPrice: storetest.USD("1"), Version: 1, OrderCount: new(int)})
	}
	return d
}

// Two records have the same value before the claim is added. `apply` names them, and the claim becomes
// readable only after one of the values has changed.
func TestDuplicatesPreventAClaim(t *testing.T) {
	_, _, name := declareClaims(t)
	storetest.ForEachEngine(t, func(t *testing.T, db *dynamodb.Client) {
		clock := newMovingClock(start)
		db = storetest.WithoutResponseDate(db)
		r := storetest.NewRawTable(t, db, datasetOfProducts(t), dynamo.Options{Clock: clock.Now})
		d := derivation(t, name.Name)
		if _, err := r.Store.DropDerivation(t.Context(), d, applied(clock, model.Dropped)); err != nil {
			t.Fatal(err)
		}
		rename := func(sku commerce.SKU, name string) {
			t.Helper()
			if _, err := r.Store.UpdateProduct(t.Context(), change.Caller{Name: "tester"}, commerce.ProductChange{SKU: sku, Name: &name}); err != nil {
				t.Fatal(err)
			}
		}
		read := func() error {
			_, err := dynamo.ReadRecord(t.Context(), r.Store, model.ClaimPattern(1000, "product by name", name), "One")
			return err
		}
		rename("p2", "One")
		for range 2 { // the second time, it is backfilled
			var reported []check.Inconsistency
			opts := applied(clock, model.Written)
			opts.OnInconsistency = func(i check.Inconsistency) {
				if i.ByHand {
					reported = append(reported, i)
				}
			}
			_, err := r.Store.ApplyDerivation(t.Context(), d, opts)
			if err == nil || !strings.Contains(err.Error(), "another record also has: 1;") || len(reported) != 1 || !strings.Contains(reported[0].Detail, "the name One is reserved for product p") {
				t.Errorf("the error is %v, and reported are %+v", err, reported)
			}
			if unreadable, ok := errors.AsType[*model.DerivationUnavailable](read()); !ok || unreadable.Name != name.Name {
				t.Errorf("reading the claim returns %v", read())
			}
		}
		if storetest.Record(r.Get("PRODUCT_NAMED#One", "#METADATA")).Text("sku") == "p1" {
			rename("p1", "Two") // the claimant releases the value
		} else {
			rename("p2", "Two")
		}
		if _, err := r.Store.ApplyDerivation(t.Context(), d, applied(clock, model.Written)); err != nil {
			t.Fatal(err)
		}
		if err := read(); err != nil {
			t.Error(err)
		}
		r.CheckClean()
	})
}

// Random mutations with few values run while a claim is added and dropped by commands that are killed at
// random requests. In the end, each value belongs to one record, and a dropped claim leaves nothing.
func TestClaimsUnderRandomChanges(t *testing.T) {
	_, head, _ := declareClaims(t)
	checks := flag.Lookup("rapid.checks").Value
	defer func(before string) { _ = checks.Set(before) }(checks.String())
	_ = checks.Set(strconv.Itoa(longtest.Size(20, 60)))
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		db = storetest.WithoutResponseDate(db)
		storetest.CheckProperty(t, func(rt *rapid.T) {
			clock := newMovingClock(start)
			name := storetest.TableName()
			s := storetest.NewTable(t, db, dynamo.Options{Table: name, Clock: clock.Now})
			defer func() { _, _ = db.DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: &name}) }()
			h := &headcount{T: rt, store: s, ctx: t.Context()}
			for i := range 3 {
				if _, err := s.CreateWarehouse(h.ctx, change.Caller{}, commerce.Warehouse{ID: commerce.WarehouseID(fmt.Sprint(i)), Name: "W"}); err != nil {
					rt.Fatal(err)
				}
			}
			for range rapid.IntRange(1, 6).Draw(rt, "commands") {
				for range rapid.IntRange(0, 6).Draw(rt, "mutations") {
					h.mutate()
				}
				applies := rapid.Bool().Draw(rt, "apply")
				var n atomic.Int64
				at, kill := rapid.Int64Range(0, 40).Draw(rt, "mutation at"), rapid.Int64Range(1, 80).Draw(rt, "killed at")
				ctx, end := context.WithCancel(h.ctx)
				hooked := storetest.StoreWithClient(t, s, storetest.WithRequestHook(db, func(context.Context, any) error {
					switch n.Add(1) {
					case at:
						h.mutate()
					case kill:
						end()
					}
					return nil
				}), dynamo.Options{Table: name, Clock: clock.Now})
				h.command(ctx, hooked, clock, head.Name, applies)
				end()
			}
			for range 20 {
				reported := h.command(h.ctx, s, clock, head.Name, true)
				if len(reported) == 0 {
					break
				}
				for _, i := range reported {
					h.assign(commerce.EmployeeID(strings.TrimPrefix(i.PK, "EMPLOYEE#")), "")
				}
			}
			if status := s.Derivations()[head.Name]; status.State != model.Readable {
				rt.Errorf("the claim is %s", status)
			}
			storetest.AssertConsistent(rt, db, name, 1)
			h.command(h.ctx, s, clock, head.Name, false)
			for _, line := range storetest.Export(t, s, 1) {
				if strings.Contains(line, "HEAD_OF") {
					rt.Errorf("after the drop, the table contains %s", line)
				}
			}
		})
	})
}

// headcount changes employees. Each employee can be assigned to a warehouse.
type headcount struct {
	*rapid.T
	store *dynamo.Store
	ctx   context.Context
	hired int
}

func (h *headcount) mutate() {
	warehouse := rapid.SampledFrom([]commerce.WarehouseID{"", "0", "1", "2"}).Draw(h.T, "warehouse")
	if h.hired == 0 || rapid.Bool().Draw(h.T, "hire") {
		h.hired++
		_, err := h.store.HireEmployee(h.ctx, change.Caller{}, commerce.Employee{ID: commerce.EmployeeID(fmt.Sprint("e", h.hired)), Name: "E", JobTitle: "J", HireDate: "2026-01-01", WarehouseID: warehouse})
		if err != nil && !commerce.IsUserError(err) {
			h.Error(err)
		}
		return
	}
	h.assign(commerce.EmployeeID(fmt.Sprint("e", rapid.IntRange(1, h.hired).Draw(h.T, "employee"))), warehouse)
}

func (h *headcount) assign(id commerce.EmployeeID, warehouse commerce.WarehouseID) {
	if _, err := h.store.UpdateEmployee(h.ctx, change.Caller{}, commerce.EmployeeChange{ID: id, WarehouseID: &warehouse}); err != nil && !commerce.IsUserError(err) {
		h.Error(err)
	}
}

// command adds or drops a claim. It returns the duplicates that an operator must change.
func (h *headcount) command(ctx context.Context, s *dynamo.Store, clock *movingClock, name string, applies bool) (reported []check.Inconsistency) {
	d, err := model.FindDerivation(name)
	if err == nil {
		err = s.CheckTable(ctx)
	}
	seen := map[string]bool{}
	opts := dynamo.DerivationOptions{Parallel: 2, Segments: 2, IndexLag: check.NoIndexLag, OnStatus: func(model.DerivationStatus) {
		clock.advance(2 * time.Minute)
	}, OnInconsistency: func(i check.Inconsistency) {
		if i.ByHand && !seen[i.PK] {
			reported, seen[i.PK] = append(reported, i), true
		}
	}}
	if err == nil && applies && s.Derivations()[name].State == model.Dropped {
		_, err = s.DropDerivation(ctx, d, opts) // an interrupted drop must end first
	}
	switch {
	case err != nil:
	case applies:
		_, err = s.ApplyDerivation(ctx, d, opts)
	default:
		_, err = s.DropDerivation(ctx, d, opts)
	}
	if err != nil && ctx.Err() == nil && len(reported) == 0 {
		h.Error(err)
	}
	return reported
}
