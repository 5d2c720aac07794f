package change_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/bulk"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// In a table of an earlier version, orders get adjustments only after a command has stopped the servers that
// do not know them. Other orders can be placed and changed.
func TestAdjustmentsNeedServersThatKnowThem(t *testing.T) {
	db := storetest.Engines()[0].Client(t)
	s := newReservationFixture(t, db, commerce.ReservationLimits{})
	r := storetest.RawTable{T: t, DB: db, Name: storetest.StoreTableName(t, s.Store), Store: s.Store}
	if layout := storetest.FormatItem(r.Get("LAYOUT", "#METADATA")); !strings.Contains(layout, "order.adjustments readable") {
		t.Errorf("the layout of a new table is %s", layout)
	}
	adjustments := []commerce.OrderAdjustment{{Kind: commerce.AdjustmentFee, Label: "Fee", Amount: storetest.USD("1")}}
	request := commerce.OrderRequest{CustomerID: "ann", Lines: []commerce.OrderLine{{SKU: "mug", Quantity: 1}}, Adjustments: adjustments}
	exported := storetest.Export(t, s.Store, 1)
	if _, err := s.PlaceOrder(t.Context(), staff, request); err != nil {
		t.Fatal(err)
	}
	adjusted := slices.DeleteFunc(storetest.Export(t, s.Store, 1), func(line string) bool { return slices.Contains(exported, line) })
	r.Set("LAYOUT", "#METADATA", storetest.Item{"derivations": nil})
	old := reservationFixture{storetest.StoreWithClient(t, s.Store, db, dynamo.Options{}), t}
	if err := old.CheckTable(t.Context()); err != nil {
		t.Fatal(err)
	}
	order, err := old.place(ann, 1)
	if err != nil {
		t.Fatal(err)
	}
	_, placed := old.PlaceOrder(t.Context(), staff, request)
	_, set := old.SetAdjustments(t.Context(), staff, commerce.AdjustmentsChange{OrderID: order.ID, Adjustments: adjustments})
	_, updated := old.UpdateOrder(t.Context(), staff, commerce.BillingChange{OrderID: order.ID, Contact: &commerce.OrderContact{Name: "Ann"}})
	_, imported := old.Import(t.Context(), strings.NewReader(strings.Join(adjusted, "")), bulk.ImportOptions{Overwrite: true})
	for what, err := range map[string]error{"placeOrder": placed, "setAdjustments": set, "updateOrder": updated, "an import": imported} {
		if missing, ok := errors.AsType[*model.DerivationUnavailable](err); !ok || !strings.Contains(missing.Error(), "`ordergraph table apply order.adjustments`") {
			t.Errorf("%s returns %v", what, err)
		}
	}
	if _, err := old.SetAdjustments(t.Context(), staff, commerce.AdjustmentsChange{OrderID: order.ID}); err != nil {
		t.Errorf("no change returns %v", err)
	}
}
