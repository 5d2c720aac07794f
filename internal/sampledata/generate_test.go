package sampledata_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/derive"
	"github.com/ordergraph/ordergraph/internal/sampledata"
)

// generateAll returns a complete generated dataset.
func generateAll(t rapid.TB, s sampledata.Shape) (commerce.Dataset, *sampledata.Generator) {
	t.Helper()
	g, err := sampledata.NewGenerator(context.Background(), s)
	if err != nil {
		t.Fatal(err)
	}
	var all commerce.Dataset
	for part := range g.MasterData() {
		if len(part.Orders) > 0 {
			t.Error("MasterData returns an order before the records that it refers to")
		}
		all.Warehouses = append(all.Warehouses, part.Warehouses...)
		all.Employees = append(all.Employees, part.Employees...)
		all.Products = append(all.Products, part.Products...)
		all.Levels = append(all.Levels, part.Levels...)
		all.Customers = append(all.Customers, part.Customers...)
	}
	for part := range g.Orders(0) {
		all.Orders = append(all.Orders, part.Orders...)
	}
	return all, g
}

func randomShapes() *rapid.Generator[sampledata.Shape] {
	return rapid.Custom(func(t *rapid.T) sampledata.Shape {
		s := sampledata.Shape{
			Customers: rapid.IntRange(1, 120).Draw(t, "customers"), Orders: rapid.IntRange(0, 150).Draw(t, "orders"),
			MinItems: rapid.IntRange(1, 5).Draw(t, "fewest"), Seed: rapid.Uint64().Draw(t, "seed"),
		}
		s.MaxItems = s.MinItems + rapid.IntRange(0, commerce.MaxLines-5).Draw(t, "more")
		s.Products = s.MaxItems + rapid.IntRange(0, 60).Draw(t, "products")
		for _, status := range commerce.Statuses() {
			s.Statuses[status] = rapid.UintRange(0, 3).Draw(t, status.String())
		}
		if s.Statuses == (sampledata.StatusWeights{}) {
			s.Statuses[commerce.Shipped] = 1
		}
		return s
	})
}

// A generated dataset equals what commerce derives from its records, and the events lead to the
// orders' statuses.
func TestGeneratedDatasetsAreConsistent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := randomShapes().Draw(t, "shape")
		dataset, g := generateAll(t, s)
		if len(dataset.Customers) != s.Customers || len(dataset.Products) != s.Products || len(dataset.Orders) != s.Orders {
			t.Fatalf("the dataset has %d customers, %d products and %d orders, want the numbers of the shape", len(dataset.Customers), len(dataset.Products), len(dataset.Orders))
		}
		generated, _ := generateAll(t, s)
		if !reflect.DeepEqual(generated, dataset) {
			t.Fatal("the same shape generated different datasets")
		}
		if err := derive.Complete(&dataset); err != nil {
			t.Fatal(err)
		}
		for i := range generated.Orders {
			// Settle keeps the order of items.
			if !reflect.DeepEqual(generated.Orders[i], dataset.Orders[i]) {
				t.Fatalf("the generated order is %+v, but Settle derives %+v", generated.Orders[i], dataset.Orders[i])
			}
		}
		// A generator never has all orders in memory, so a generated dataset lacks the customers'
		// spending.
		dataset.Spending = nil
		for i := range dataset.Customers {
			dataset.Customers[i].SpendingComplete = false
		}
		if !reflect.DeepEqual(generated, dataset) {
			t.Fatalf("the generated dataset is\n%+v\nbut Settle derives\n%+v", generated, dataset)
		}
		for _, p := range dataset.Products {
			if p.Available < 0 {
				t.Errorf("product %s is oversold by %d", p.SKU, -p.Available)
			}
		}
		last := commerce.OrderID("")
		for n, o := range dataset.Orders {
			if o.ID <= last || o.ID != g.OrderID(n) || len(o.Lines) < s.MinItems || len(o.Lines) > s.MaxItems || s.Statuses[o.Status] == 0 {
				t.Fatalf("order %d, which follows order %s, is invalid: %+v", n, last, o)
			}
			last = o.ID
			checkEvents(t, o)
		}
		parsed, err := sampledata.ParseStatusWeights(s.Statuses.String())
		if err != nil || parsed != s.Statuses {
			t.Errorf("the weights %s are parsed as %v, %v", s.Statuses, parsed, err)
		}
	})
}

// checkEvents checks that an order's events begin with its placement, follow allowed transitions,
// and end with its status.
func checkEvents(t rapid.TB, o commerce.OrderWithItems) {
	t.Helper()
	before := commerce.Event{At: o.PlacedAt}
	for i, e := range o.Events {
		at, _ := e.ID.Time()
		if !at.Equal(e.At) || e.OrderID != o.ID || e.From != before.To || i > 0 && (!e.At.After(before.At) || !slices.Contains(before.To.Transitions(), e.To)) {
			t.Fatalf("event %d of order %s is %+v, after %+v", i, o.ID, e, before)
		}
		before = e
	}
	placed, _ := o.ID.Time()
	if before.To != o.Status || !before.At.Equal(o.UpdatedAt) || !placed.Equal(o.PlacedAt) || o.Version != len(o.Events) || o.Events[0].Type != commerce.EventPlaced || o.Events[0].To != commerce.Pending {
		t.Fatalf("order %+v does not match its last event %+v", o.Order, before)
	}
}

// Datasets of different shapes share no ID, so they can be loaded into one table.
func TestGeneratedDatasetsShareNoIDs(t *testing.T) {
	base := sampledata.DefaultShape()
	base.Customers, base.Products, base.Orders = 20, 20, 40
	reseeded, larger := base, base
	reseeded.Seed++
	larger.Customers++
	seen := map[string]int{}
	for i, s := range []sampledata.Shape{base, reseeded, larger} {
		dataset, _ := generateAll(t, s)
		note := func(id string) {
			if earlier, ok := seen[id]; ok {
				t.Errorf("the ID %s occurs in the datasets %d and %d", id, earlier, i)
			}
			seen[id] = i
		}
		for _, c := range dataset.Customers {
			note(string(c.ID))
			note(c.Email)
		}
		for _, p := range dataset.Products {
			note(string(p.SKU))
		}
		for _, w := range dataset.Warehouses {
			note(string(w.ID))
		}
		for _, e := range dataset.Employees {
			note(string(e.ID))
		}
		for _, o := range dataset.Orders {
			note(string(o.ID))
			for _, e := range o.Events {
				note(string(e.ID))
			}
		}
	}
}

// Orders from the n-th on equal the rest of all orders.
func TestOrdersFromTheMiddle(t *testing.T) {
	s := sampledata.DefaultShape()
	s.Orders = 90
	dataset, g := generateAll(t, s)
	for _, from := range []int{0, 1, 25, 50, 89, 90} {
		var rest []commerce.OrderWithItems
		for part := range g.Orders(from) {
			rest = append(rest, part.Orders...)
		}
		if len(rest) != len(dataset.Orders)-from || len(rest) > 0 && !reflect.DeepEqual(rest, dataset.Orders[from:]) {
			t.Errorf("continuing after %d of %d orders returns %d orders, want the rest", from, len(dataset.Orders), len(rest))
		}
	}
}

func TestInvalidShapes(t *testing.T) {
	for message, change := range map[string]func(*sampledata.Shape){
		"customers is 0":          func(s *sampledata.Shape) { s.Customers = 0 },
		"orders is -1":            func(s *sampledata.Shape) { s.Orders = -1 },
		"orders is 100000001":     func(s *sampledata.Shape) { s.Orders = 100_000_001 },
		"products is 4":           func(s *sampledata.Shape) { s.Products = 4 },
		"items is 0-5":            func(s *sampledata.Shape) { s.MinItems = 0 },
		"items is 6-5":            func(s *sampledata.Shape) { s.MinItems = 6 },
		"statuses has no w":       func(s *sampledata.Shape) { s.Statuses = sampledata.StatusWeights{} },
		"products is 10000001: u": func(s *sampledata.Shape) { s.Products = 10_000_001 },

		fmt.Sprintf("items is 1-%d", commerce.MaxLines+1): func(s *sampledata.Shape) { s.MaxItems = commerce.MaxLines + 1 },
	} {
		s := sampledata.DefaultShape()
		change(&s)
		if _, err := sampledata.NewGenerator(context.Background(), s); err == nil || !strings.Contains(err.Error(), message) {
			t.Errorf("%s: %v", message, err)
		}
	}
	for _, weights := range []string{"", "pending", "pending=", "pending=-1", "pending=1000001", "lost=1", "pending=0", "pending=1,", "pending=1,PENDING=1"} {
		if w, err := sampledata.ParseStatusWeights(weights); err == nil {
			t.Errorf("%q is parsed as %v", weights, w)
		}
	}
}

// The frequency of statuses follows their weights.
func TestStatusWeights(t *testing.T) {
	s := sampledata.DefaultShape()
	s.Orders = 4000
	var err error
	if s.Statuses, err = sampledata.ParseStatusWeights("pending=1,delivered=3"); err != nil {
		t.Fatal(err)
	}
	dataset, _ := generateAll(t, s)
	counts := map[commerce.Status]int{}
	for _, o := range dataset.Orders {
		counts[o.Status]++
	}
	if pending := counts[commerce.Pending]; len(counts) != 2 || pending < 900 || pending > 1100 {
		t.Errorf("4000 orders have the statuses %s, want about 1000 PENDING and one other status", fmt.Sprint(counts))
	}
}

// NewGenerator stops when its context is canceled.
func TestNewGeneratorCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := sampledata.DefaultShape()
	s.Orders = 100_000_000
	if _, err := sampledata.NewGenerator(ctx, s); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
}
