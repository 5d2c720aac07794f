package change_test

import (
	"reflect"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/change"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// testFields sets each optional field of an update alone, first to its current value and then to
// another value. unchanged returns a command that changes nothing. update executes a command.
func testFields[C, V any](t *testing.T, unchanged func() C, update func(C) (*V, error)) {
	t.Helper()
	executed := func(command C) reflect.Value {
		t.Helper()
		record, err := update(command)
		if err != nil {
			t.Fatalf("%+v: %v", command, err)
		}
		return reflect.ValueOf(record).Elem()
	}
	fields := reflect.TypeFor[C]()
	for i := range fields.NumField() {
		field := fields.Field(i)
		if field.Type.Kind() != reflect.Pointer || field.Name == "ExpectedVersion" {
			continue
		}
		before := executed(unchanged())
		version := before.FieldByName("Version").Int()
		set := func(value any) reflect.Value {
			t.Helper()
			command := unchanged()
			place := reflect.New(field.Type.Elem())
			place.Elem().Set(reflect.ValueOf(value))
			reflect.ValueOf(&command).Elem().Field(i).Set(place)
			return executed(command)
		}
		var same, other any
		switch current := before.FieldByName(field.Name).Interface().(type) {
		case string:
			same, other = current, "other@example.com"
		case bool:
			same, other = current, !current
		case int:
			same, other = current, current+1
		case []string:
			same, other = current, append([]string{"9"}, current...)
		case commerce.WarehouseID:
			same, other = current, commerce.WarehouseID("w2")
		case commerce.Money:
			same, other = commerce.Price{Amount: current.Decimal()}, commerce.Price{Amount: "7.77"}
		default:
			t.Fatalf("%s.%s: this test lacks a second value of type %T", fields, field.Name, current)
		}
		if after := set(same); after.FieldByName("Version").Int() != version {
			t.Errorf("%s.%s: setting the same value changes the version", fields, field.Name)
		}
		after := set(other)
		if after.FieldByName("Version").Int() != version+1 || reflect.DeepEqual(after.FieldByName(field.Name).Interface(), before.FieldByName(field.Name).Interface()) {
			t.Errorf("%s.%s: after setting the value %v, the record is %+v", fields, field.Name, other, after)
		}
		if again := executed(unchanged()); !reflect.DeepEqual(again.Interface(), after.Interface()) {
			t.Errorf("%s.%s: the table holds %+v, the update returned %+v", fields, field.Name, again, after)
		}
	}
}

// Every field of an update is written independently. A value that equals the current value changes
// nothing.
func TestUpdatesWriteEveryField(t *testing.T) {
	r := storetest.NewRawTable(t, storetest.Engines()[0].Client(t), storetest.SmallDataset(t, 30), dynamo.Options{})
	ctx, caller := t.Context(), change.Caller{Name: "c"}
	testFields(t, func() commerce.CustomerChange { return commerce.CustomerChange{ID: "c1"} },
		func(c commerce.CustomerChange) (*commerce.Customer, error) {
			return r.Store.UpdateCustomer(ctx, caller, c)
		})
	testFields(t, func() commerce.EmployeeChange { return commerce.EmployeeChange{ID: "e1"} },
		func(c commerce.EmployeeChange) (*commerce.Employee, error) {
			return r.Store.UpdateEmployee(ctx, caller, c)
		})
	testFields(t, func() commerce.ProductChange { return commerce.ProductChange{SKU: "p00"} },
		func(c commerce.ProductChange) (*commerce.Product, error) {
			return r.Store.UpdateProduct(ctx, caller, c)
		})
	r.CheckClean()
}

// A change of an e-mail address preserves attributes that other software has written to the claim.
func TestUpdateKeepsUnknownAttributes(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		r := storetest.NewRawTable(t, db, storetest.SmallDataset(t, 3), dynamo.Options{})
		r.Set("EMAIL#ann@example.com", "#METADATA", storetest.Item{"verifiedAt": model.Str("2026-01-01")})
		email := "ANN@example.com"
		if _, err := r.Store.UpdateCustomer(t.Context(), change.Caller{Name: "c"}, commerce.CustomerChange{ID: "c1", Email: &email}); err != nil {
			t.Fatal(err)
		}
		if claim := r.Get("EMAIL#ann@example.com", "#METADATA"); !storetest.EqualValues(claim["verifiedAt"], model.Str("2026-01-01")) || !storetest.EqualValues(claim["customerId"], model.Str("c1")) {
			t.Errorf("the claim is %s", storetest.FormatItem(claim))
		}
		r.CheckClean()
	})
}
