package simulation_test

import (
	"testing"

	"github.com/ordergraph/ordergraph/internal/test/variant"
)

// The planted bugs apply to the code, so a change of the code also changes them. There are at least
// eight in each area.
func TestPlantedBugsApply(t *testing.T) {
	variants, _ := variant.Read(t, "testdata/variants")
	count := map[string]int{}
	for _, v := range variants {
		count[v.Area]++
	}
	for _, area := range []string{"mutations", "derivations", "repair", "feed", "engine"} {
		if count[area] < 8 {
			t.Errorf("the area %s has %d planted bugs, want 8 or more", area, count[area])
		}
	}
}
