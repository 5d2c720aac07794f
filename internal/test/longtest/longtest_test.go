package longtest_test

import (
	"testing"

	"github.com/ordergraph/ordergraph/internal/test/longtest"
)

func TestSize(t *testing.T) {
	t.Setenv("ORDERGRAPH_TEST_LONG", "")
	if got := longtest.Size(2, 30); got != 2 || longtest.Enabled() {
		t.Errorf("by default the size is %d, want 2", got)
	}
	t.Setenv("ORDERGRAPH_TEST_LONG", "1")
	if got := longtest.Size(2, 30); got != 30 || !longtest.Enabled() {
		t.Errorf("with ORDERGRAPH_TEST_LONG=1 the size is %d, want 30", got)
	}
}
