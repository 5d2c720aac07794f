package dynamo_test

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/change"
	"github.com/ordergraph/ordergraph/dynamo/check"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
	"github.com/ordergraph/ordergraph/internal/test/workload"
)

// derivation returns the derivation with the given name.
func derivation(t *testing.T, name string) model.Derivation {
	t.Helper()
	d, err := model.FindDerivation(name)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// applied returns options for a table whose servers follow a status as soon as the clock has advanced.
func applied(clock *movingClock, state model.DerivationState) dynamo.DerivationOptions {
	return dynamo.DerivationOptions{Parallel: 4, Segments: 3, IndexLag: check.NoIndexLag, OnStatus: func(s model.DerivationStatus) {
		if s.State == state && s.Done == 0 {
			clock.advance(2 * time.Minute)
		}
	}}
}

// A list is dropped from a table, which leaves nothing of it, and added again. It costs what the plan
// says.
func TestDropAndApplyLists(t *testing.T) {
	dataset, _ := storetest.SampleDataset(t)
	for i := range dataset.Orders {
		dataset.Orders[i].TrackingNumber = []string{"", fmt.Sprint("T", i)}[i%2]
	}
	for i := range dataset.Products {
		dataset.Products[i].Name += " " + string(dataset.Products[i].SKU)
	}
	heads := map[commerce.WarehouseID]bool{}
	for i := range dataset.Employees {
		if e := &dataset.Employees[i]; heads[e.WarehouseID] {
			e.WarehouseID = ""
		} else {
			heads[e.WarehouseID] = true
		}
	}
	declareClaims(t)
	storetest.ForEachEngine(t, func(t *testing.T, db *dynamodb.Client) {
		clock := newMovingClock(start)
		name := storetest.TableName()
		s := storetest.NewTable(t, storetest.WithoutResponseDate(db), dynamo.Options{Table: name, Clock: clock.Now, Shards: 2})
		storetest.LoadDataset(t, s, dataset)
		for _, name := range []string{model.EntityDailySales.Name, model.EntityOrderWaiting.Name} { // new tables lack them
			if _, err := s.ApplyDerivation(t.Context(), derivation(t, name), applied(clock, model.Written)); err != nil {
				t.Fatal(err)
			}
		}
		whole := storetest.Export(t, s, 1)
		for _, d := range slices.DeleteFunc(model.Derivations(), func(d model.Derivation) bool { return d.Feature }) {
			t.Run(d.Name, func(t *testing.T) {
				if _, err := s.DropDerivation(t.Context(), d, applied(clock, model.Dropped)); err != nil {
					t.Fatal(err)
				}
				for _, line := range storetest.Export(t, s, 1) {
					if d.Attribute == "" && strings.Contains(line, `"entity":{"S":"`+d.Name+`"}`) {
						t.Errorf("after the drop, the table contains %s", line)
					}
				}
				assertClean(t, s)
				plan, err := s.PlanDerivation(t.Context(), d, applied(clock, model.Written))
				if err != nil {
					t.Fatal(err)
				}
				cost, err := s.ApplyDerivation(t.Context(), d, applied(clock, model.Written))
				if err != nil {
					t.Fatal(err)
				}
				if d.Entity.Kind == model.Claim && !storetest.IsEmbedded(t) {
					plan.ReadUnits += float64(plan.Records) / 2 // DynamoDB Local charges nothing for reading a missing claim
				}
				if cost.Records != plan.Records || math.Abs(plan.WriteUnits/cost.WriteUnits-1) > 0.05 || math.Abs(plan.ReadUnits/cost.ReadUnits-1) > 0.05 {
					t.Errorf("the cost is %+v, planned were %+v", cost, plan)
				}
				if got := storetest.Export(t, s, 1); fmt.Sprint(got) != fmt.Sprint(whole) {
					t.Errorf("afterwards, the table contains\n%v, want\n%v", got, whole)
				}
				assertClean(t, s)
			})
		}
	})
}

func assertClean(t *testing.T, s *dynamo.Store) {
	t.Helper()
	found, err := s.CheckRecords(t.Context(), check.Options{IndexLag: check.NoIndexLag, OnInconsistency: func(i check.Inconsistency) { t.Errorf("%+v", i) }})
	if err != nil || found.Unverified > 0 {
		t.Errorf("%+v: %v", found, err)
	}
}

// Stock buckets can be dropped only if no product uses them.
func TestDropStockBuckets(t *testing.T) {
	clock := newMovingClock(start)
	s := storetest.NewTable(t, storetest.WithoutResponseDate(storetest.Engines()[0].Client(t)), dynamo.Options{Clock: clock.Now})
	storetest.LoadDataset(t, s, datasetOf(t))
	d := derivation(t, model.StockBucketStock)
	for buckets, problem := range map[int]string{3: "records must be corrected before stockBucket.available can be dropped: 2", 1: ""} {
		if _, err := s.ApplyDerivation(t.Context(), d, applied(clock, model.Written)); err != nil {
			t.Fatal(err)
		}
		setBuckets := func(n int) {
			if _, err := s.UpdateProduct(t.Context(), change.Caller{Name: "tester"}, commerce.ProductChange{SKU: "sku", StockBuckets: &n}); err != nil {
				t.Fatal(err)
			}
		}
		setBuckets(buckets)
		if _, err := s.DropDerivation(t.Context(), d, applied(clock, model.Dropped)); (err != nil || problem != "") && (err == nil || err.Error() != problem) {
			t.Errorf("with %d buckets, the drop returns %v", buckets, err)
		}
		setBuckets(1)
		if _, err := s.DropDerivation(t.Context(), d, applied(clock, model.Dropped)); err != nil {
			t.Error(err)
		}
	}
}

// Adjustments can be added to a table without reading its records, one minute after servers that do not know
// them stop writing. They cannot be dropped.
func TestAddAdjustments(t *testing.T) {
	storetest.ForEachEngine(t, func(t *testing.T, db *dynamodb.Client) {
		clock := newMovingClock(start)
		r := storetest.NewRawTable(t, storetest.WithoutResponseDate(db), datasetOf(t), dynamo.Options{Clock: clock.Now})
		r.Set("LAYOUT", "#METADATA", storetest.Item{"derivations": nil})
		d, before := derivation(t, model.OrderAdjustments), r.All()
		if cost, err := r.Store.PlanDerivation(t.Context(), d, dynamo.DerivationOptions{}); err != nil || cost != (dynamo.DerivationCost{}) {
			t.Errorf("the plan is %+v, %v", cost, err)
		}
		var states []model.DerivationState
		opts := dynamo.DerivationOptions{OnStatus: func(s model.DerivationStatus) {
			states = append(states, s.State)
			clock.advance(2 * time.Minute)
		}}
		cost, err := r.Store.ApplyDerivation(t.Context(), d, opts)
		if want := []model.DerivationState{model.Absent, model.Written, model.Readable}; err != nil || cost != (dynamo.DerivationCost{}) || !slices.Equal(states, want) {
			t.Errorf("the states are %q and the cost is %+v, %v; want %q", states, cost, err, want)
		}
		if changed := storetest.DifferingKeys(before, r.All()); len(changed) > 0 {
			t.Errorf("the command has changed %q, besides the layout", changed)
		}
		if _, err := r.Store.DropDerivation(t.Context(), d, opts); err == nil || !strings.Contains(err.Error(), "order.adjustments cannot be dropped") {
			t.Errorf("a drop returns %v", err)
		}
	})
}

// Until a list is readable, reading it returns the reason.
func TestUnreadableDerivation(t *testing.T) {
	clock := newMovingClock(start)
	s := storetest.NewTable(t, storetest.WithoutResponseDate(storetest.Engines()[0].Client(t)), dynamo.Options{Clock: clock.Now})
	d := derivation(t, "customerName")
	reads := map[model.DerivationState]int{}
	opts := dynamo.DerivationOptions{OnStatus: func(status model.DerivationStatus) {
		if _, err := dynamo.ReadPage(t.Context(), s, model.Customers, dynamo.ListRequest{Page: dynamo.PageRequest{Limit: 1}}); err != nil {
			t.Errorf("%s: the other list of customers returns %v", status, err)
		}
		_, err := dynamo.ReadPage(t.Context(), s, model.Customers, dynamo.ListRequest{Pattern: &model.CustomersByName.AccessPattern, Page: dynamo.PageRequest{Limit: 1}})
		missing, unreadable := errors.AsType[*model.DerivationUnavailable](err)
		if unreadable == (status.State == model.Readable) || err != nil && (!unreadable || missing.Name != d.Name) {
			t.Errorf("%s: %v", status, err)
		}
		reads[status.State]++
		clock.advance(2 * time.Minute)
	}}
	if _, err := s.DropDerivation(t.Context(), d, opts); err != nil {
		t.Fatal(err)
	}
	if _, err := s.ApplyDerivation(t.Context(), d, opts); err != nil {
		t.Fatal(err)
	}
	if len(reads) != 5 {
		t.Errorf("the states were %v", reads)
	}
}

// A record changes between the read and the write of a backfill. The edge follows the new record: a
// customer who has lost the account rep gets no edge.
func TestBackfillBesideAChange(t *testing.T) {
	storetest.ForEachEngine(t, func(t *testing.T, db *dynamodb.Client) {
		clock := newMovingClock(start)
		name, db := storetest.TableName(), storetest.WithoutResponseDate(db)
		server := storetest.NewTable(t, db, dynamo.Options{Table: name, Clock: clock.Now})
		storetest.LoadDataset(t, server, workload.Fixture{Customers: 3, Employees: 1}.Dataset(t))
		changed := false
		between := dynamodb.New(db.Options(), func(o *dynamodb.Options) {
			next := o.HTTPClient
			o.HTTPClient = storetest.HTTPFunc(func(r *http.Request) (*http.Response, error) {
				if strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".TransactWriteItems") && !changed {
					changed = true
					for _, id := range []commerce.CustomerID{"c1", "c2"} {
						if _, err := server.AssignAccountRep(t.Context(), change.Caller{Name: "tester"}, commerce.AccountRepChange{CustomerID: id}); err != nil {
							t.Error(err)
						}
					}
				}
				return next.Do(r)
			})
		})
		d := derivation(t, "customerRep")
		if _, err := server.DropDerivation(t.Context(), d, applied(clock, model.Dropped)); err != nil {
			t.Fatal(err)
		}
		command := storetest.StoreWithClient(t, server, between, dynamo.Options{Table: name, Clock: clock.Now})
		backfills, opts := 0, applied(clock, model.Written)
		follow := opts.OnStatus
		opts.OnStatus = func(status model.DerivationStatus) {
			if follow(status); status.State == model.Written && status.Done == 0 {
				backfills++
			}
		}
		if _, err := command.ApplyDerivation(t.Context(), d, opts); err != nil {
			t.Fatal(err)
		}
		if !changed || backfills != 1 {
			t.Errorf("backfills: %d, because the first one wrote something wrong; changed: %t", backfills, changed)
		}
		storetest.AssertConsistent(t, db, name, 1)
	})
}

// A server that does not know a derivation of the table, because a newer version has added it, stops
// writing, is not ready, and asks for an upgrade.
func TestUnknownDerivationStopsWrites(t *testing.T) {
	clock := newMovingClock(start)
	r := storetest.NewRawTable(t, storetest.WithoutResponseDate(storetest.Engines()[0].Client(t)), datasetOf(t), dynamo.Options{Clock: clock.Now})
	if err := r.Store.CheckTable(t.Context()); err != nil {
		t.Fatal(err)
	}
	write := func() error {
		clock.advance(20 * time.Second)
		_, err := r.Store.CreateWarehouse(t.Context(), change.Caller{Name: "tester"}, commerce.Warehouse{Name: "W"})
		return err
	}
	for text, problem := range map[string]string{
		"ordersByMood written 2026-11-28T12:00:00.000Z":         `contains "ordersByMood", which this version of Ordergraph does not know: upgrade this server`,
		"customerName hidden 2026-11-28T12:00:00.000Z":          `the state "hidden", which this version of Ordergraph does not know: upgrade this server`,
		"customerName written":                                  "instead of a name, a state and a time",
		"customerName written yesterday":                        "with an invalid time",
		"customerName written 2026-11-28T12:00:00.000Z 7/5":     "with an invalid progress",
		"customerName written 2026-11-28T12:00:00.000Z five/10": "with an invalid progress",
	} {
		if err := write(); err != nil {
			t.Fatalf("before %q: %v", text, err)
		}
		stored := r.Get("LAYOUT", "#METADATA")["derivations"]
		r.Set("LAYOUT", "#METADATA", storetest.Item{"derivations": model.TextListValue([]string{text})})
		for what, err := range map[string]error{"a write": write(), "readiness": r.Store.Ping(t.Context())} {
			if err == nil || !strings.Contains(err.Error(), problem) || what == "a write" && !errors.Is(err, table.ErrLayoutUnknown) {
				t.Errorf("%q: %s has the error %v, want %s", text, what, err, problem)
			}
		}
		r.Set("LAYOUT", "#METADATA", storetest.Item{"derivations": stored})
	}
}
