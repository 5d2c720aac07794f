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

// If the total of an order cannot be read, the sales of its counter cannot be verified, so they do not become
// readable. They can be dropped.
func TestSalesWithUnreadableTotals(t *testing.T) {
	clock, db := newMovingClock(start), storetest.Engines()[0].Client(t)
	r := storetest.NewRawTable(t, db, storetest.SmallDataset(t, 3), dynamo.Options{Clock: clock.Now})
	d := derivation(t, model.EntityDailySales.Name)
	r.Set("ORDER#"+storetest.SmallOrderID(0), "#METADATA", storetest.Item{"total": storetest.Str("much")})
	if _, err := r.Store.ApplyDerivation(t.Context(), d, applied(clock, model.Written)); err == nil {
		t.Error("sales without an order became readable")
	}
	if _, err := r.Store.DropDerivation(t.Context(), d, applied(clock, model.Dropped)); err != nil {
		t.Error(err)
	}
	for key := range r.All() {
		if strings.HasPrefix(key, "SALES") {
			t.Errorf("after the drop, %s exists", key)
		}
	}
}
