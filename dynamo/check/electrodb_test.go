package check_test

import (
	"strings"
	"testing"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/bulk"
	"github.com/ordergraph/ordergraph/dynamo/check"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// A repair adds the entity's name and version in ElectroDB to every record, and replaces the
// values of another entity. An import adds them, too.
func TestElectroDBIdentifiers(t *testing.T) {
	t.Parallel()
	identifiers, ok := model.ParseElectroDB("1,customerOrder=orderOfCustomer:2")
	if !ok {
		t.Fatal("the identifiers are invalid")
	}
	r := storetest.NewRawTable(t, storetest.Engines()[0].Client(t), storetest.SmallDataset(t, 3), dynamo.Options{})
	r.Check(check.Options{Repair: true}) // add the numbers that loading does not add
	before := storetest.Export(t, r.Store, 1)
	r.Set("CUSTOMER#c1", "NAME", storetest.Item{"__edb_e__": storetest.Str("customer"), "__edb_v__": storetest.Str("1")})
	r.Delete("CUSTOMER#c1", "REP")
	var err error
	if r.Store, err = dynamo.New(r.DB, dynamo.Options{Table: r.Name, ElectroDB: identifiers}); err != nil {
		t.Fatal(err)
	}
	identified := func() {
		t.Helper()
		for k, rec := range r.All() {
			name, version := model.EntityOf(model.KeyOf(rec)).Name, "1"
			if name == "customerOrder" {
				name, version = "orderOfCustomer", "2"
			}
			if e, v := storetest.Record(rec).Text("__edb_e__"), storetest.Record(rec).Text("__edb_v__"); e != name || v != version {
				t.Errorf("%s has the name %q and the version %q, want %q and %q", k, e, v, name, version)
			}
		}
	}
	inconsistencies, _ := r.Check(check.Options{})
	found := map[string]bool{}
	for _, d := range inconsistencies {
		found[d.PK+" "+d.SK] = true
	}
	// A check adds up spending and the orders of account reps only if it finds nothing wrong with the orders.
	for k := range r.All() {
		if !found[k] && !strings.Contains(k, " SPENDING#") && !strings.Contains(k, " ORDERS#") {
			t.Errorf("the check does not report %s", k)
		}
	}
	if inconsistencies, summary := r.Check(check.Options{Repair: true}); summary.UnrepairedCount() > 0 || summary.Unverified > 0 {
		t.Errorf("%d left: %+v", summary.UnrepairedCount(), inconsistencies)
	}
	identified()
	r.CheckClean()

	r = storetest.NewRawTable(t, r.DB, commerce.Dataset{}, dynamo.Options{ElectroDB: identifiers})
	storetest.Import(t, r.Store, strings.Join(before, ""), bulk.ImportOptions{})
	identified()
	r.CheckClean()
	if again := storetest.Import(t, r.Store, strings.Join(before, ""), bulk.ImportOptions{}); again.Unchanged != len(before) {
		t.Errorf("the second import changes records: %+v", again)
	}
}
