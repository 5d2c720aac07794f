package httpheader_test

import (
	"slices"
	"testing"

	"github.com/ordergraph/ordergraph/internal/httpheader"
)

func TestList(t *testing.T) {
	if got, want := httpheader.SplitElements([]string{" a;q=1 ,b", "", ", c,"}), []string{"a;q=1", "b", "c"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := httpheader.SplitElements(nil); len(got) > 0 {
		t.Errorf("%q, want nothing", got)
	}
}

func TestWeight(t *testing.T) {
	for parameters, want := range map[string]float64{"": 1, "charset=utf-8": 1, "q=0.5": 0.5, "level=1 ; Q=0.25": 0.25, "q=0": 0, "q=high": 0, "q": 0} {
		if got := httpheader.Weight(parameters); got != want {
			t.Errorf("%q: %v, want %v", parameters, got, want)
		}
	}
}
