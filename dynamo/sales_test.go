package dynamo_test

import (
	"strings"
	"testing"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/bulk"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// Loaded and imported orders do not change the sales by day. So the sales are unreadable until they have
// been applied again.
func TestLoadInterruptsSales(t *testing.T) {
	clock := newMovingClock(start)
	s := storetest.NewTable(t, storetest.Engines()[0].Client(t), dynamo.Options{Clock: clock.Now})
	dataset, d := storetest.SmallDataset(t, 3), derivation(t, model.EntityDailySales.Name)
	apply := func() {
		t.Helper()
		if _, err := s.ApplyDerivation(t.Context(), d, applied(clock, model.Written)); err != nil {
			t.Fatal(err)
		}
	}
	interrupted := func(by string) {
		t.Helper()
		if state := s.Derivations()[d.Name].State; state != model.Written {
			t.Errorf("after %s, the state is %s", by, state)
		}
		assertClean(t, s)
		apply()
		assertClean(t, s)
	}
	apply()
	storetest.LoadDataset(t, s, commerce.Dataset{Products: dataset.Products})
	if state := s.Derivations()[d.Name].State; state != model.Readable {
		t.Errorf("after products have been loaded, the state is %s", state)
	}
	storetest.LoadDataset(t, s, dataset)
	interrupted("a load")
	exported := strings.Join(storetest.Export(t, s, 1), "")
	if _, err := s.Import(t.Context(), strings.NewReader(exported), bulk.ImportOptions{Overwrite: true}); err != nil {
		t.Fatal(err)
	}
	interrupted("an import")
}
