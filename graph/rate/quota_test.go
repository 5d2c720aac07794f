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
