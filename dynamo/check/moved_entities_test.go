package check_test

import (
	"maps"
	"testing"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/check"
	"github.com/ordergraph/ordergraph/dynamo/derive"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// changeModel changes the keys of an entity until the test ends. The new partition key contains the
// value of the attribute id.
func changeModel(t *testing.T, e *model.Entity, id string, pk, sk model.KeyTemplate) {
	before := *e
	t.Cleanup(func() { *e = before })
	e.PK, e.SK, e.Renamed = pk, sk, maps.Clone(e.Renamed)
	if e.Renamed == nil {
		e.Renamed = map[string]string{}
	}
	for _, name := range pk.Placeholders() {
		e.Renamed[name] = id
	}
}

// A check verifies the records of each declared entity and its edges in every item collection, also if no
// code mentions the entity. The test moves entities to other item collections. It is not parallel,
// because it changes the model.
func TestEntitiesInEveryItemCollection(t *testing.T) {
	order := storetest.SmallOrderID(0)
	for name, c := range map[string]struct {
		id   string
		move func(t *testing.T)
	}{
		"order":      {order, moveWarehouses("ORDER#{orderId}", "DEPOT")},
		"customer":   {"c1", moveWarehouses("CUSTOMER#{customerId}", "DEPOT")},
		"employee":   {"e1", moveWarehouses("EMPLOYEE#{employeeId}", "DEPOT")},
		"product":    {"p00", moveWarehouses("PRODUCT#{sku}", "DEPOT")},
		"of its own": {"d1", moveWarehouses("DEPOT#{warehouseId}", "DEPOT#{warehouseId}")},
		"with edges": {order, func(t *testing.T) {
			changeModel(t, &model.EntityEmployee, "employeeId", "ORDER#{orderId}", "PACKER")
			for _, edge := range model.EntityEmployee.Edges() {
				changeModel(t, edge, "employeeId", "ORDER#{orderId}", "PACKER_"+edge.SK)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			dataset := storetest.SmallDataset(t, 30)
			dataset.Levels, dataset.Warehouses = nil, nil // no record refers to a warehouse
			for i := range dataset.Employees {
				dataset.Employees[i].WarehouseID = ""
			}
			if err := derive.Complete(&dataset); err != nil {
				t.Fatal(err)
			}
			r := storetest.NewRawTable(t, storetest.Engines()[0].Client(t), dataset, dynamo.Options{})
			r.Check(check.Options{Repair: true}) // count the open orders
			c.move(t)
			var value any = &commerce.Warehouse{ID: commerce.WarehouseID(c.id), Name: "Depot", Version: 1}
			if name == "with edges" {
				value = &commerce.Employee{ID: commerce.EmployeeID(c.id), Name: "Eve", JobTitle: "Packer", HireDate: "2024-01-01", Version: 1}
			}
			records := model.EncodeWithEdges(&model.KeyBuilder{}, value)
			for _, rec := range records {
				r.Put(rec)
			}
			r.CheckClean()
			sound := r.All()
			for _, rec := range records {
				k := model.KeyOf(rec)
				r.Set(k.PK, k.SK, storetest.Item{"gsi1sk": storetest.Str("wrong")})
			}
			if inconsistencies, summary := r.Check(check.Options{Repair: true}); len(inconsistencies) != len(records) || summary.UnrepairedCount() > 0 {
				t.Errorf("of %d wrong records, the check reports %+v", len(records), inconsistencies)
			}
			if changed := storetest.DifferingKeys(sound, r.All()); len(changed) > 0 {
				t.Errorf("after the repair, %q differ", changed)
			}
			// Edges of a lost record are no longer needed.
			lost := model.KeyOf(records[0])
			r.Delete(lost.PK, lost.SK)
			if inconsistencies, summary := r.Check(check.Options{Repair: true}); len(inconsistencies) != len(records)-1 || summary.UnrepairedCount() > 0 {
				t.Errorf("of %d edges of a lost record, the check reports %+v", len(records)-1, inconsistencies)
			}
			r.CheckClean()
		})
	}
}

func moveWarehouses(pk, sk model.KeyTemplate) func(*testing.T) {
	return func(t *testing.T) { changeModel(t, &model.EntityWarehouse, "warehouseId", pk, sk) }
}
