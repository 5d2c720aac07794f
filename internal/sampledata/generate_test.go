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
	"github.com/ordergraph/ordergraph/internal/sampledata"
)

// whole collects all parts of a generated book.
func whole(t rapid.TB, s sampledata.Shape) (commerce.Book, *sampledata.Generator) {
	t.Helper()
	g, err := sampledata.NewGenerator(context.Background(), s)
	if err != nil {
		t.Fatal(err)
	}
	var all commerce.Book
	for part := range g.Stock() {
		if len(part.Orders) > 0 {
			t.Error("an order comes before what it refers to")
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

func shapes() *rapid.Generator[sampledata.Shape] {
	return rapid.Custom(func(t *rapid.T) sampledata.Shape {
		s := sampledata.Shape{
			Customers: rapid.IntRange(1, 120).Draw(t, "customers"), Orders: rapid.IntRange(0, 150).Draw(t, "orders"),
			FewestItems: rapid.IntRange(1, 5).Draw(t, "fewest"), Seed: rapid.Uint64().Draw(t, "seed"),
		}
		s.MostItems = s.FewestItems + rapid.IntRange(0, commerce.MaxLines-5).Draw(t, "more")
		s.Products = s.MostItems + rapid.IntRange(0, 60).Draw(t, "products")
		for _, status := range commerce.Statuses() {
			s.Statuses[status] = rapid.UintRange(0, 3).Draw(t, status.String())
		}
		if s.Statuses == (sampledata.Weights{}) {
			s.Statuses[commerce.Shipped] = 1
		}
		return s
	})
}

// What a generated book says of itself is what commerce works out from its parts, and its histories
// lead to where its orders are.
func TestGeneratedBooksAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := shapes().Draw(t, "shape")
		book, g := whole(t, s)
		if len(book.Customers) != s.Customers || len(book.Products) != s.Products || len(book.Orders) != s.Orders {
			t.Fatalf("%d customers, %d products, %d orders", len(book.Customers), len(book.Products), len(book.Orders))
		}
		said, _ := whole(t, s)
		if !reflect.DeepEqual(said, book) {
			t.Fatal("the same shape made two books")
		}
		if err := book.Settle(); err != nil {
			t.Fatal(err)
		}
		for i := range said.Orders {
			// Settle leaves the order of items alone, and so must we.
			if !reflect.DeepEqual(said.Orders[i], book.Orders[i]) {
				t.Fatalf("order %+v settles to %+v", said.Orders[i], book.Orders[i])
			}
		}
		// A generated book is never whole in memory, so it does not say what customers spend.
		book.Spending = nil
		for i := range book.Customers {
			book.Customers[i].SpendingComplete = false
		}
		if !reflect.DeepEqual(said, book) {
			t.Fatalf("the book\n%+v\nsettles to\n%+v", said, book)
		}
		for _, p := range book.Products {
			if p.Available < 0 {
				t.Errorf("product %s was sold %d times too often", p.SKU, -p.Available)
			}
		}
		last := commerce.OrderID("")
		for n, o := range book.Orders {
			if o.ID <= last || o.ID != g.Order(n) || len(o.Lines) < s.FewestItems || len(o.Lines) > s.MostItems || s.Statuses[o.Status] == 0 {
				t.Fatalf("order %d, behind %s, is %+v", n, last, o)
			}
			last = o.ID
			checkHistory(t, o)
		}
		parsed, err := sampledata.ParseWeights(s.Statuses.String())
		if err != nil || parsed != s.Statuses {
			t.Errorf("the weights %s are read as %v, %v", s.Statuses, parsed, err)
		}
	})
}

// checkHistory follows an order's events from its placing to its status, only by moves that orders
// can make.
func checkHistory(t rapid.TB, o commerce.OrderWithItems) {
	t.Helper()
	before := commerce.Event{At: o.PlacedAt}
	for i, e := range o.Events {
		at, _ := e.ID.Time()
		if !at.Equal(e.At) || e.OrderID != o.ID || e.From != before.To || i > 0 && (!e.At.After(before.At) || !slices.Contains(before.To.Transitions(), e.To)) {
			t.Fatalf("event %d of order %s is %+v, behind %+v", i, o.ID, e, before)
		}
		before = e
	}
	placed, _ := o.ID.Time()
	if before.To != o.Status || !before.At.Equal(o.UpdatedAt) || !placed.Equal(o.PlacedAt) || o.Version != len(o.Events) || o.Events[0].Type != commerce.EventPlaced || o.Events[0].To != commerce.Pending {
		t.Fatalf("order %+v does not end as its last event %+v says", o.Order, before)
	}
}

// Books of different shapes have no id in common, so that they can stand in one table.
func TestGeneratedBooksShareNothing(t *testing.T) {
	one := sampledata.DefaultShape()
	one.Customers, one.Products, one.Orders = 20, 20, 40
	other, larger := one, one
	other.Seed++
	larger.Customers++
	seen := map[string]int{}
	for i, s := range []sampledata.Shape{one, other, larger} {
		book, _ := whole(t, s)
		note := func(id string) {
			if was, ok := seen[id]; ok {
				t.Errorf("%s is in the books %d and %d", id, was, i)
			}
			seen[id] = i
		}
		for _, c := range book.Customers {
			note(string(c.ID))
			note(c.Email)
		}
		for _, p := range book.Products {
			note(string(p.SKU))
		}
		for _, w := range book.Warehouses {
			note(string(w.ID))
		}
		for _, e := range book.Employees {
			note(string(e.ID))
		}
		for _, o := range book.Orders {
			note(string(o.ID))
			for _, e := range o.Events {
				note(string(e.ID))
			}
		}
	}
}

// Going on behind the first orders gives the rest of them.
func TestGeneratingFromTheMiddle(t *testing.T) {
	s := sampledata.DefaultShape()
	s.Orders = 90
	book, g := whole(t, s)
	for _, from := range []int{0, 1, 25, 50, 89, 90} {
		var rest []commerce.OrderWithItems
		for part := range g.Orders(from) {
			rest = append(rest, part.Orders...)
		}
		if len(rest) != len(book.Orders)-from || len(rest) > 0 && !reflect.DeepEqual(rest, book.Orders[from:]) {
			t.Errorf("behind %d of %d orders there are %d others", from, len(book.Orders), len(rest))
		}
	}
}

func TestShapesThatCannotBe(t *testing.T) {
	for says, change := range map[string]func(*sampledata.Shape){
		"customers is 0":          func(s *sampledata.Shape) { s.Customers = 0 },
		"orders is -1":            func(s *sampledata.Shape) { s.Orders = -1 },
		"orders is 100000001":     func(s *sampledata.Shape) { s.Orders = 100_000_001 },
		"products is 4":           func(s *sampledata.Shape) { s.Products = 4 },
		"items is 0-5":            func(s *sampledata.Shape) { s.FewestItems = 0 },
		"items is 6-5":            func(s *sampledata.Shape) { s.FewestItems = 6 },
		"statuses names no":       func(s *sampledata.Shape) { s.Statuses = sampledata.Weights{} },
		"products is 10000001: g": func(s *sampledata.Shape) { s.Products = 10_000_001 },

		fmt.Sprintf("items is 1-%d", commerce.MaxLines+1): func(s *sampledata.Shape) { s.MostItems = commerce.MaxLines + 1 },
	} {
		s := sampledata.DefaultShape()
		change(&s)
		if _, err := sampledata.NewGenerator(context.Background(), s); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", says, err)
		}
	}
	for _, weights := range []string{"", "pending", "pending=", "pending=-1", "pending=1000001", "lost=1", "pending=0", "pending=1,", "pending=1,PENDING=1"} {
		if w, err := sampledata.ParseWeights(weights); err == nil {
			t.Errorf("%q is read as %v", weights, w)
		}
	}
}

// Statuses are met as often as their weights say, more or less.
func TestStatusesAreWeighed(t *testing.T) {
	s := sampledata.DefaultShape()
	s.Orders = 4000
	var err error
	if s.Statuses, err = sampledata.ParseWeights("pending=1,delivered=3"); err != nil {
		t.Fatal(err)
	}
	book, _ := whole(t, s)
	met := map[commerce.Status]int{}
	for _, o := range book.Orders {
		met[o.Status]++
	}
	if pending := met[commerce.Pending]; len(met) != 2 || pending < 900 || pending > 1100 {
		t.Errorf("of 4000 orders are %s", fmt.Sprint(met))
	}
}

// Who has asked for more than there is time for can end it.
func TestGeneratorThatIsInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := sampledata.DefaultShape()
	s.Orders = 100_000_000
	if _, err := sampledata.NewGenerator(ctx, s); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
}
