package embedded

import (
	"fmt"
	"testing"
)

func TestTheOldestTokenIsForgotten(t *testing.T) {
	kept := tokens{limit: 3, known: map[string]digest{}}
	for i := range 8 {
		kept.remember(fmt.Sprint(i), digest{byte(i)})
		if len(kept.known) > 3 || len(kept.known) != len(kept.order) {
			t.Fatalf("after %d: %v", i, kept)
		}
	}
	for _, token := range []string{"5", "6", "7"} {
		if _, known := kept.known[token]; !known {
			t.Errorf("token %s was removed", token)
		}
	}
}
