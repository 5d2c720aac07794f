package rate

import "testing"

func TestLoad(t *testing.T) {
	const smallCost = 2000
	l := NewQuota(10_000, smallCost)
	for _, step := range []struct {
		cost  int
		begin bool
	}{{4000, true}, {6000, true}, {smallCost + 1, false}, {smallCost, true}, {1, true}} {
		if got := l.Take(step.cost); got != step.begin {
			t.Errorf("an operation that costs %d: let in %v", step.cost, got)
		}
	}
	l.Give(1)
	l.Give(smallCost)
	l.Give(6000)
	if l.Take(6001) || !l.Take(6000) {
		t.Errorf("beside one of 4000 there is room for 6000, and no more")
	}
	l.Give(6000)
	l.Give(4000)
	// One that costs more than there is, is executed alone.
	if !l.Take(50_000) || l.Take(smallCost+1) {
		t.Error("an operation that costs more than there is must be let in alone")
	}
	l.Give(50_000)
	if !l.Take(10_000) {
		t.Error("not all is given back")
	}
}

// A share is also taken from the whole quota, and is not exceeded.
func TestShare(t *testing.T) {
	whole := NewQuota(10, 0)
	half := whole.Share(2)
	if !half.Take(5) || half.Take(1) || whole.Take(6) || !whole.Take(5) {
		t.Error("half of a quota of 10 must be 5, which others do not have")
	}
	half.Give(5)
	if !whole.Take(4) || half.Take(2) || !half.Take(1) {
		t.Error("what the others have taken must not be in the share")
	}
	half.Give(1)
	whole.Give(9)
	if !half.Take(50) || half.Take(1) || whole.Take(1) {
		t.Error("what is larger than both must be let in alone")
	}
	half.Give(50)
	if !whole.Take(10) {
		t.Error("not all is given back")
	}
}
