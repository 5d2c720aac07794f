package commerce_test

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ordergraph/ordergraph/commerce"
)

// userErrorsOf returns the user errors of an error.
func userErrorsOf(t testing.TB, err error) commerce.UserErrors {
	t.Helper()
	if !commerce.IsUserError(err) {
		t.Fatalf("error %v, want a refusal", err)
	}
	if several, ok := errors.AsType[commerce.UserErrors](err); ok {
		return several
	}
	one, _ := errors.AsType[commerce.UserError](err)
	return commerce.UserErrors{one}
}

// fieldOf returns the path in a user error, joined with periods.
func fieldOf(r commerce.UserError) string {
	switch r := r.(type) {
	case commerce.NotFound:
		return strings.Join(r.Field, ".")
	case commerce.InvalidInput:
		return strings.Join(r.Field, ".")
	case commerce.InsufficientStock:
		return strings.Join(r.Field, ".")
	case commerce.InvalidTransition:
		return strings.Join(r.Field, ".")
	case commerce.TooManyLines:
		return strings.Join(r.Field, ".")
	}
	return ""
}

// catalog returns the products that the tests order.
func catalog(t testing.TB) map[commerce.SKU]*commerce.Product {
	return map[commerce.SKU]*commerce.Product{
		"mug":  {SKU: "mug", Name: "Mug", UnitPrice: money(t, "4.50", "USD"), Available: 10},
		"lamp": {SKU: "lamp", Name: "Lamp", UnitPrice: money(t, "20.05", "USD"), Available: 1},
		"vase": {SKU: "vase", Name: "Vase", UnitPrice: money(t, "7", "EUR"), Available: 5},
		"gold": {SKU: "gold", Name: "Gold", UnitPrice: money(t, "9999999999999.99", "USD"), Available: 1000},
	}
}

var placedAt = time.Date(2026, 2, 1, 9, 30, 0, 0, time.UTC)

func TestPlace(t *testing.T) {
	cmd := commerce.OrderRequest{CustomerID: "c1", Lines: []commerce.OrderLine{{SKU: "mug", Quantity: 2}, {SKU: "lamp", Quantity: 1}, {SKU: "mug", Quantity: 3}}}
	o, err := cmd.Place("o1", placedAt, commerce.Customer{ID: "c1", AccountRepID: "rep"}, catalog(t))
	if err != nil {
		t.Fatal(err)
	}
	if o.Status != commerce.Pending || o.Version != 1 || o.AccountRepID != "rep" || o.CustomerID != "c1" || o.PlacedAt != placedAt || o.UpdatedAt != placedAt {
		t.Errorf("order %+v", o)
	}
	if o.Total.Decimal() != "42.55" || *o.ItemCount != 2 || !o.EmbedsItems {
		t.Errorf("total %s, %d items, embedded: %v", o.Total.Decimal(), *o.ItemCount, o.EmbedsItems)
	}
	if len(o.Items) != 2 || o.Items[0].SKU != "lamp" || o.Items[1].SKU != "mug" || o.Items[1].Quantity != 5 || o.Items[1].Name != "Mug" || o.Items[1].OrderID != "o1" {
		t.Errorf("items %+v", o.Items)
	}
}

func TestPlaceRejects(t *testing.T) {
	for _, c := range []struct {
		name  string
		lines []commerce.OrderLine
		want  []string // code and field of each user error
	}{
		{"several unknown products", []commerce.OrderLine{{SKU: "none", Quantity: 1}, {SKU: "mug", Quantity: 1}, {SKU: "nil", Quantity: 1}}, []string{"NOT_FOUND input.items.0.sku", "NOT_FOUND input.items.2.sku"}},
		{"more than available", []commerce.OrderLine{{SKU: "mug", Quantity: 11}, {SKU: "lamp", Quantity: 2}}, []string{"INSUFFICIENT_STOCK input.items.0.quantity", "INSUFFICIENT_STOCK input.items.1.quantity"}},
		{"more than available in two lines", []commerce.OrderLine{{SKU: "mug", Quantity: 6}, {SKU: "mug", Quantity: 6}}, []string{"INSUFFICIENT_STOCK input.items.0.quantity"}},
		{"two currencies", []commerce.OrderLine{{SKU: "mug", Quantity: 1}, {SKU: "vase", Quantity: 1}}, []string{"INVALID input.items.1.sku"}},
		{"too large a total", []commerce.OrderLine{{SKU: "gold", Quantity: 2}}, []string{"INVALID input.items"}},
		{"too high a quantity in two lines", []commerce.OrderLine{{SKU: "mug", Quantity: commerce.MaxQuantity}, {SKU: "mug", Quantity: 1}}, []string{"INVALID input.items.1.quantity"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := commerce.OrderRequest{Lines: c.lines}.Place("o1", placedAt, commerce.Customer{ID: "c1"}, catalog(t))
			var got []string
			for _, r := range userErrorsOf(t, err) {
				got = append(got, string(r.Code())+" "+fieldOf(r))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("user errors %v, want %v: %v", got, c.want, err)
			}
		})
	}
}

func TestMoved(t *testing.T) {
	for _, from := range commerce.Statuses() {
		for _, to := range commerce.Statuses() {
			moved, err := commerce.Order{Status: from, ShippingAddress: &commerce.Address{Recipient: "Bo", Line1: "2 High St", City: "Leeds", CountryCode: "GB"}}.WithStatus(commerce.OrderStatusChange{To: to}, true)
			if slices.Contains(from.Transitions(), to) {
				if err != nil || moved.Status != to {
					t.Errorf("%s to %s: %v, %v", from, to, moved.Status, err)
				}
				continue
			}
			r, ok := errors.AsType[commerce.InvalidTransition](err)
			if !ok || r.From != from || r.To != to || !slices.Equal(r.Allowed, from.Transitions()) {
				t.Errorf("%s to %s: %#v", from, to, err)
			}
		}
	}
}

// pendingOrder returns an order of 2 mugs and 1 lamp.
func pendingOrder(t testing.TB) commerce.Order {
	t.Helper()
	o, err := commerce.OrderRequest{Lines: []commerce.OrderLine{{SKU: "mug", Quantity: 2}, {SKU: "lamp", Quantity: 1}}}.Place("o1", placedAt, commerce.Customer{ID: "c1"}, catalog(t))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestWithItem(t *testing.T) {
	changedPrices := map[commerce.SKU]*commerce.Product{"mug": {SKU: "mug", UnitPrice: money(t, "5", "USD"), Available: 1}, "hat": {SKU: "hat", UnitPrice: money(t, "1", "USD"), Available: 9}}
	for _, c := range []struct {
		name     string
		sku      commerce.SKU
		quantity int
		reserved int
		expected string
		total    string
		items    int
	}{
		{"increase at the current price", "mug", 3, 1, "35.05", "35.05", 2},
		{"decrease at the original price", "mug", 1, -1, "", "24.55", 2},
		{"same quantity", "mug", 2, 0, "29.05", "29.05", 2},
		{"removal", "mug", 0, -2, "", "20.05", 1},
		{"new product", "hat", 9, 9, "", "38.05", 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := pendingOrder(t)
			change := commerce.OrderItemChange{SKU: c.sku, Quantity: c.quantity}
			if c.expected != "" {
				change.ExpectedTotal = new(money(t, c.expected, "USD"))
			}
			after, reserved, err := before.WithItem(change, changedPrices[c.sku], false)
			if err != nil {
				t.Fatal(err)
			}
			if reserved != c.reserved || after.Total.Decimal() != c.total || *after.ItemCount != c.items || len(after.Items) != c.items {
				t.Errorf("reserved %d, total %s, %d items, want %d, %s, %d", reserved, after.Total.Decimal(), *after.ItemCount, c.reserved, c.total, c.items)
			}
			if again := pendingOrder(t); !reflect.DeepEqual(before.Items, again.Items) {
				t.Errorf("WithItem changed its receiver: %+v", before.Items)
			}
		})
	}
}

func TestWithItemRejects(t *testing.T) {
	full := pendingOrder(t)
	for len(full.Items) < commerce.MaxLines {
		full.Items = append(full.Items, commerce.LineItem{SKU: commerce.SKU(strings.Repeat("x", len(full.Items))), UnitPrice: full.Items[0].UnitPrice, Quantity: 1})
	}
	shipped := pendingOrder(t)
	shipped.Status = commerce.Shipped
	for _, c := range []struct {
		name     string
		order    commerce.Order
		sku      commerce.SKU
		quantity int
		want     string
	}{
		{"not pending", shipped, "mug", 1, "INVALID_TRANSITION input.orderId"},
		{"removal of a product that is not in the order", pendingOrder(t), "hat", 0, "NOT_FOUND input.sku"},
		{"unknown product", pendingOrder(t), "hat", 1, "NOT_FOUND input.sku"},
		{"other currency", pendingOrder(t), "vase", 1, "INVALID input.sku"},
		{"too many lines", full, "vase", 1, "TOO_MANY_LINES input.sku"},
		{"insufficient stock", pendingOrder(t), "mug", 13, "INSUFFICIENT_STOCK input.quantity"},
		{"too large a total", pendingOrder(t), "gold", 2, "INVALID input.quantity"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, err := c.order.WithItem(commerce.OrderItemChange{SKU: c.sku, Quantity: c.quantity}, catalog(t)[c.sku], false)
			r := userErrorsOf(t, err)
			if got := string(r[0].Code()) + " " + fieldOf(r[0]); got != c.want {
				t.Errorf("user error %s, want %s: %v", got, c.want, err)
			}
		})
	}
	one, _, err := pendingOrder(t).WithItem(commerce.OrderItemChange{SKU: "mug"}, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err = one.WithItem(commerce.OrderItemChange{SKU: "lamp"}, nil, false); userErrorsOf(t, err)[0].Code() != commerce.CodeInvalid {
		t.Errorf("removing the last item: %v", err)
	}
}

// After any changes of line items, the total is the sum of the subtotals, and the reserved quantity
// is the sum of the quantities.
func TestChangesOfItemsAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		products := map[commerce.SKU]*commerce.Product{}
		skus := []commerce.SKU{"a", "b", "c", "d"}
		for i, sku := range skus {
			price, err := commerce.ParsePrice([]string{"0", "0.01", "19.99", "1000000"}[i], "USD")
			if err != nil {
				t.Fatal(err)
			}
			products[sku] = &commerce.Product{SKU: sku, UnitPrice: price, Available: 1_000_000}
		}
		o, err := commerce.OrderRequest{Lines: []commerce.OrderLine{{SKU: "a", Quantity: 1}}}.Place("o", placedAt, commerce.Customer{}, products)
		if err != nil {
			t.Fatal(err)
		}
		reserved := 1
		for range rapid.IntRange(0, 20).Draw(t, "changes") {
			change := commerce.OrderItemChange{SKU: rapid.SampledFrom(skus).Draw(t, "sku"), Quantity: rapid.IntRange(0, 5).Draw(t, "quantity")}
			after, increase, err := o.WithItem(change, products[change.SKU], false)
			if commerce.IsUserError(err) {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			o, reserved = after, reserved+increase
		}
		quantity, cents := 0, int64(0)
		for _, item := range o.Items {
			quantity += item.Quantity
			cents += int64(item.Quantity) * map[commerce.SKU]int64{"a": 0, "b": 1, "c": 1999, "d": 100_000_000}[item.SKU]
		}
		whole, frac, _ := o.Total.Amount.Int64(2)
		if quantity != reserved || whole*100+frac != cents || len(o.Items) != *o.ItemCount || len(o.Items) == 0 {
			t.Fatalf("quantity %d, %d reserved; %d cents, total %s; %d items, count %d", quantity, reserved, cents, o.Total.Decimal(), len(o.Items), *o.ItemCount)
		}
	})
}

func TestCanGoElsewhere(t *testing.T) {
	for _, s := range commerce.Statuses() {
		err := commerce.Order{Status: s}.CheckAddressChange("shipping address")
		if (err == nil) != (s == commerce.Pending || s == commerce.Confirmed) {
			t.Errorf("%s: %v", s, err)
		}
	}
}
