package commerce_test

import (
	"slices"
	"testing"

	"github.com/ordergraph/ordergraph/commerce"
)

func TestStatusNames(t *testing.T) {
	names := []string{"pending", "confirmed", "shipped", "delivered", "cancelled"}
	statuses := commerce.Statuses()
	if len(statuses) != len(names) {
		t.Fatalf("Statuses() = %v, want %v", statuses, names)
	}
	for i, status := range statuses {
		if status.String() != names[i] {
			t.Errorf("the name of status %d is %q, want %q", i, status, names[i])
		}
		if parsed, err := commerce.ParseStatus(names[i]); err != nil || parsed != status {
			t.Errorf("ParseStatus(%q) = %v, %v", names[i], parsed, err)
		}
	}
}

func TestParseStatusRejects(t *testing.T) {
	for _, s := range []string{"", "PENDING", "Pending", "pending ", "canceled", "status(0)"} {
		status, err := commerce.ParseStatus(s)
		checkInvalidError(t, err, "not a status")
		if status != 0 {
			t.Errorf("ParseStatus(%q) = %v and an error", s, status)
		}
	}
}

func TestInvalidStatus(t *testing.T) {
	for status, want := range map[commerce.Status]string{0: "status(0)", -1: "status(-1)", 6: "status(6)"} {
		if got := status.String(); got != want {
			t.Errorf("String() = %q, want %q", got, want)
		}
		if to := status.Transitions(); len(to) > 0 {
			t.Errorf("%v moves to %v", status, to)
		}
	}
}

func TestLifecycle(t *testing.T) {
	for from, want := range map[commerce.Status][]commerce.Status{
		commerce.Pending:   {commerce.Confirmed, commerce.Cancelled},
		commerce.Confirmed: {commerce.Shipped, commerce.Cancelled},
		commerce.Shipped:   {commerce.Delivered},
		commerce.Delivered: nil,
		commerce.Cancelled: nil,
	} {
		if got := from.Transitions(); !slices.Equal(got, want) {
			t.Errorf("%v moves to %v, want %v", from, got, want)
		}
		if got := (commerce.Order{Status: from}).AvailableTransitions(); !slices.Equal(got, want) {
			t.Errorf("an order that is %v moves to %v, want %v", from, got, want)
		}
	}
}

func TestLevels(t *testing.T) {
	const pending, confirmed, shipped, delivered, cancelled = commerce.Pending, commerce.Confirmed, commerce.Shipped, commerce.Delivered, commerce.Cancelled
	for _, c := range []struct {
		statuses []commerce.Status
		want     [][]commerce.Status
	}{
		{commerce.Statuses(), [][]commerce.Status{{pending}, {confirmed}, {shipped, cancelled}, {delivered}}},
		{nil, nil},
		{[]commerce.Status{shipped}, [][]commerce.Status{{shipped}}},
		{[]commerce.Status{confirmed, pending}, [][]commerce.Status{{pending}, {confirmed}}},
		{[]commerce.Status{pending, delivered}, [][]commerce.Status{{pending}, {delivered}}},
		{[]commerce.Status{delivered, cancelled}, [][]commerce.Status{{delivered, cancelled}}},
		{[]commerce.Status{delivered, pending, cancelled}, [][]commerce.Status{{pending}, {delivered, cancelled}}},
	} {
		if got := commerce.GroupStatusesByLifecycle(c.statuses); !slices.EqualFunc(got, c.want, slices.Equal) {
			t.Errorf("Levels(%v) = %v, want %v", c.statuses, got, c.want)
		}
	}
}

func TestReserves(t *testing.T) {
	for _, status := range commerce.Statuses() {
		if got, want := status.ReservesStock(), status == commerce.Pending || status == commerce.Confirmed; got != want {
			t.Errorf("%v reserves stock: %v, want %v", status, got, want)
		}
	}
}
