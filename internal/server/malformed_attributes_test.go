package server_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"pgregory.net/rapid"

	checks "github.com/ordergraph/ordergraph/dynamo/check"
	"github.com/ordergraph/ordergraph/embedded"
	"github.com/ordergraph/ordergraph/internal/test/longtest"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// malformedReads select every list, with nested lists.
func malformedReads() []string {
	const product, employee = `sku name unitPrice { amount } available totalInventory`, `id name jobTitle hireDate warehouse { id }`
	const order = `id status total { amount } itemCount customer { id } shippingAddress { line1 } items(first: 9) { nodes { sku quantity subtotal { amount } product { sku available } } } timeline(first: 9) { nodes { id type at } }`
	const customer = `id name email orderCount spending { month total { amount } } accountRep { id } orders(first: 9) { nodes { ` + order + ` } }`
	return []string{
		`{ customers { nodes { ` + customer + ` } } }`,
		`{ customers(namePrefix: "A") { nodes { ` + customer + ` } } }`,
		`{ orders { nodes { ` + order + ` } } }`,
		`{ orders { edges { node { ` + order + ` } } } }`,
		`{ ordersByStatus(status: PENDING) { nodes { ` + order + ` } } }`,
		`{ ordersByStatus(status: CONFIRMED) { nodes { ` + order + ` } } }`,
		`{ products { nodes { ` + product + ` inventory(first: 9) { nodes { quantity warehouse { id } } } orderItems(first: 9) { nodes { quantity subtotal { amount } order { id } } } } } }`,
		`{ categories { nodes { name productCount } } }`,
		`{ products(namePrefix: "w") { nodes { ` + product + ` } } }`,
		`{ products(category: "Electronics") { nodes { ` + product + ` } } }`,
		`{ employees { nodes { ` + employee + ` customers(first: 9) { nodes { id name } } orders(first: 9) { nodes { ` + order + ` } } } } }`,
		`{ warehouses { nodes { id name inventory(first: 9) { nodes { sku quantity product { ` + product + ` } } } employees(first: 9) { nodes { ` + employee + ` } } } } }`,
		`{ orderCounts { status count } }`,
	}
}

// nodeIDs adds the path of each record in a response: the IDs of the record and of its parents.
func nodeIDs(value any, path string, ids map[string]bool) {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range []string{"id", "sku", "month", "name"} {
			if id, ok := v[key].(string); ok {
				path += "/" + id
				ids[path] = true
				break
			}
		}
		for name, member := range v {
			nodeIDs(member, path+"/"+name, ids)
		}
	case []any:
		for _, element := range v {
			nodeIDs(element, path, ids)
		}
	}
}

// malformedValues are values that are wrong for almost every attribute. nil removes the attribute.
func malformedValues() []attribute {
	return []attribute{
		nil, &types.AttributeValueMemberNULL{Value: true}, &types.AttributeValueMemberBOOL{Value: true}, storetest.Str(""), storetest.Str("-7.25"), storetest.Str("XBT"),
		storetest.Num("-5"), storetest.Num("1.23456"), storetest.Num("9999999999"), storetest.Num("12345678901234567890"), storetest.Num("9E+120"),
		&types.AttributeValueMemberL{}, &types.AttributeValueMemberM{Value: map[string]attribute{}},
	}
}

// attributePlace is the name of an attribute, and of a member if the attribute contains a map.
type attributePlace struct{ name, member string }

// placesOf returns the places in a record except for keys.
func placesOf(record storetest.Item) (places []attributePlace) {
	for _, name := range slices.Sorted(maps.Keys(record)) {
		if slices.Contains([]string{"pk", "sk", "gsi1pk", "gsi1sk", "entity"}, name) {
			continue
		}
		places = append(places, attributePlace{name: name})
		for _, member := range slices.Sorted(maps.Keys(membersOf(record[name]))) {
			places = append(places, attributePlace{name, member})
		}
	}
	return places
}

// membersOf returns the map in an attribute, or the first map in a list.
func membersOf(value attribute) map[string]attribute {
	switch v := value.(type) {
	case *types.AttributeValueMemberM:
		return v.Value
	case *types.AttributeValueMemberL:
		if len(v.Value) > 0 {
			return membersOf(v.Value[0])
		}
	}
	return nil
}

func (p attributePlace) set(record storetest.Item, value attribute) {
	name := p.name
	if p.member != "" {
		record, name = membersOf(record[p.name]), p.member
	}
	if record[name] = value; value == nil {
		delete(record, name)
	}
}

// isAcceptable reports whether a record of an entity is valid if it has the value.
func (p attributePlace) isAcceptable(entity string, value attribute) bool {
	// Older versions and other software omit these attributes.
	optional := map[string]string{
		"category": "version", "customer": "orderCount phoneNumbers spendingComplete updatedAt", "lastEvent": "actor orderVersion to", "customerName": "phoneNumbers updatedAt", "customerEmail": "phoneNumbers updatedAt",
		"customerOrder": "createdAt itemCount items updatedAt", "customerRep": "updatedAt", "repOrders": "complete orders", "order": "createdAt currency itemCount items updatedAt",
		"orderEvent": "actor orderVersion", "orderItem": "currency customerId orderId", "orderCounts": "cancelled confirmed delivered pending shipped", "product": "orderCount",
		"inventoryLevel": "version", "warehouse": "productCount version",
	}
	switch v := value.(type) {
	case nil:
		return p.member == "" && slices.Contains(strings.Fields(optional[entity]), p.name)
	case *types.AttributeValueMemberL:
		return len(v.Value) == 0 && p.name == "phoneNumbers"
	case *types.AttributeValueMemberBOOL:
		return p.name == "complete" || p.name == "spendingComplete"
	case *types.AttributeValueMemberS:
		return p.name == "actor" || v.Value != "" && (entity+p.name == "warehousename" || entity+p.name == "lastEventorderId")
	case *types.AttributeValueMemberN: // a version only detects concurrent changes
		return p.name == "version" || p.name == "orderVersion"
	}
	return false
}

// newEditableFixture returns a fixture with the sample data, its table, and the records in the table.
func newEditableFixture(t *testing.T) (*fixture, storetest.RawTable, map[string]storetest.Item) {
	t.Helper()
	dataset, _ := storetest.SampleDataset(t)
	s := newFixture(t, embedded.New().Client(), dataset).withoutLog(t)
	raw := storetest.RawTable{T: t, DB: s.db, Name: s.table, Store: s.store}
	return s, raw, raw.All()
}

// A check names each record with a malformed attribute.
func TestChecksNameMalformedAttributes(t *testing.T) {
	t.Parallel()
	s, raw, initial := newEditableFixture(t)
	seen := map[string]bool{}
	tried := 0
	for _, key := range slices.Sorted(maps.Keys(initial)) {
		pk, sk := splitKey(key)
		_, id, _ := strings.Cut(pk, "#")
		entity, _ := initial[key]["entity"].(*types.AttributeValueMemberS)
		for _, place := range placesOf(initial[key]) {
			name := fmt.Sprint(entity.Value, place)
			if seen[name] {
				continue
			}
			seen[name] = true
			for _, value := range malformedValues() {
				if tried++; tried%longtest.Size(11, 1) > 0 {
					continue
				}
				record := raw.Get(pk, sk)
				place.set(record, value)
				raw.Put(record)
				named := false
				if _, err := s.store.CheckRecords(t.Context(), checks.Options{IndexLag: checks.NoIndexLag, OnInconsistency: func(d checks.Inconsistency) {
					named = named || d.PK == pk || strings.Contains(d.SK+d.Detail, id) // a copy is named if it differs
				}}); err != nil || !named && !place.isAcceptable(entity.Value, value) {
					t.Errorf("check does not name %s with %v = %v, %v", key, place, value, err)
				}
				restore(raw, initial)
			}
		}
	}
}

// A record with a malformed attribute causes no server error. Lists still show all other records,
// and nothing is sold at a wrong price.
func TestRecordsWithAMalformedAttribute(t *testing.T) {
	t.Parallel()
	s, raw, initial := newEditableFixture(t)
	dataset, _ := storetest.SampleDataset(t)
	keys := slices.Sorted(maps.Keys(initial))
	baseline := map[string]map[string]bool{}
	representations := map[string][]map[string]any{}
	for _, query := range malformedReads() {
		got := s.ask(t, query, nil)
		if len(got.Errors) > 0 {
			t.Fatalf("%s: %+v", query, got.Errors)
		}
		baseline[query] = idsOf(t, got.Data)
	}
	for _, key := range keys {
		if pk, sk, _ := strings.Cut(key, " "); sk == "#METADATA" {
			kind, id, _ := strings.Cut(pk, "#")
			name := kind[:1] + strings.ToLower(kind[1:])
			field := map[bool]string{true: "sku", false: "id"}[kind == "PRODUCT"]
			if kind != "EMAIL" {
				representations["entities"] = append(representations["entities"], map[string]any{"__typename": name, field: id})
			}
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		key := rapid.SampledFrom(keys).Draw(rt, "record")
		record := raw.Get(splitKey(key))
		place, value := rapid.SampledFrom(placesOf(record)).Draw(rt, "place"), rapid.SampledFrom(malformedValues()).Draw(rt, "value")
		place.set(record, value)
		raw.Put(record)
		defer restore(raw, initial)
		what := fmt.Sprintf("%s %v in %s", key, place, storetest.FormatItem(record))

		ask := func(query string, variables any) answer {
			encoded, err := json.Marshal(variables)
			if err != nil {
				rt.Fatal(err)
			}
			got := s.ask(t, query, encoded)
			for _, e := range got.Errors {
				if e.Extensions["code"] == "INTERNAL" || got.Status >= http.StatusInternalServerError {
					rt.Fatalf("%s: %s returns status %d, %+v", what, query, got.Status, e)
				}
			}
			return got
		}
		pk, sk := splitKey(key)
		_, id, _ := strings.Cut(pk, "#")
		parent, child, _ := strings.Cut(sk, "#")
		own := []string{id}
		switch parent {
		case "ITEM", "EVENT", "WAREHOUSE", "SPENDING":
			own = append(own, strings.Split(child, "#")[0])
		case "ORDER", "CATEGORY":
			own = []string{child}
		}
		for _, query := range malformedReads() {
			shown := ask(query, nil)
			got := idsOf(rt, shown.Data)
			for path := range baseline[query] {
				missing := !got[path] && slices.ContainsFunc(own, func(id string) bool { return !strings.Contains(path, id) })
				if missing && !(pk == "ORDER_COUNTS" || strings.HasPrefix(pk, "PRODUCT#") && strings.Contains(path, "/product/")) {
					rt.Fatalf("%s: %s does not show %s, but %.300s, %+v", what, query, path, shown.Data, shown.Errors)
				}
			}
		}
		entities := ask(`query ($entities: [_Any!]!) { _entities(representations: $entities) { __typename ... on Customer { name email } ... on Product { sku name unitPrice { amount } } ... on Order { status items(first: 9) { nodes { sku } } } } }`, representations)
		var found struct {
			Entities []any `json:"_entities"`
		}
		if err := json.Unmarshal(entities.Data, &found); err != nil {
			rt.Fatal(err)
		}
		if missing := len(slices.DeleteFunc(found.Entities, func(e any) bool { return e != nil })); missing > 1 {
			rt.Fatalf("%s: %d of %d entities are null, %+v", what, missing, len(representations["entities"]), entities.Errors)
		}

		sku, order := "prod_100", "" // records for the mutations
		if strings.HasPrefix(pk, "PRODUCT#") {
			sku = id
		}
		for _, o := range dataset.Orders {
			if order == "" || strings.Contains(key, string(o.ID)) {
				order = string(o.ID)
			}
		}
		price := initial["PRODUCT#"+sku+" #METADATA"]["unitPrice"].(*types.AttributeValueMemberN).Value
		var sold struct {
			Payload struct {
				Value struct{ UnitPrice, Total struct{ Amount string } }
			}
			Quote struct {
				Lines []struct{ UnitPrice struct{ Amount string } }
			}
		}
		decode := func(got answer) {
			if err := json.Unmarshal(got.Data, &sold); err != nil {
				rt.Fatal(err)
			}
		}
		decode(ask(fmt.Sprintf(`{ quote(input: {items: [{sku: %q, quantity: 1}]}) { total { amount } lines { unitPrice { amount } } userErrors { code } } }`, sku), nil))
		for _, line := range sold.Quote.Lines {
			if !sameAmount(line.UnitPrice.Amount, price) {
				rt.Fatalf("%s: the quote has the price %s, want %s", what, line.UnitPrice.Amount, price)
			}
		}
		send := func(name, fields string, input mutationInput) answer {
			return ask(mutation(name, fields), map[string]any{"input": input})
		}
		decode(send("placeOrder", "total { amount }", mutationInput{"customerId": dataset.Customers[0].ID, "items": []mutationInput{{"sku": sku, "quantity": 1}}}))
		if total := sold.Payload.Value.Total.Amount; total != "" && !sameAmount(total, price) {
			rt.Fatalf("%s: the product was sold for %s, want %s", what, total, price)
		}
		send("setOrderItem", "id", mutationInput{"orderId": order, "sku": sku, "quantity": 2})
		send("confirmOrder", "id", mutationInput{"orderId": order})
		text, isText := value.(*types.AttributeValueMemberS)
		required := slices.Contains([]string{"recipient", "line1", "city", "countryCode"}, place.member)
		incomplete := required && strings.HasPrefix(key, "ORDER#"+order) && !(isText && text.Value != "")
		shipped := send("shipOrder", "status", mutationInput{"orderId": order, "warehouseId": dataset.Warehouses[0].ID})
		if incomplete && strings.Contains(string(shipped.Data), "SHIPPED") {
			rt.Fatalf("%s: the order was shipped: %s", what, shipped.Data)
		}
	})
}

func sameAmount(a, b string) bool {
	return storetest.CanonicalNumber(storetest.Num(a)) == storetest.CanonicalNumber(storetest.Num(b))
}

func splitKey(key string) (pk, sk string) {
	pk, sk, _ = strings.Cut(key, " ")
	return pk, sk
}

// restore gives a table the records that it had at the beginning.
func restore(raw storetest.RawTable, initial map[string]storetest.Item) {
	current := raw.All()
	for _, key := range storetest.DifferingKeys(initial, current) {
		if record, ok := initial[key]; ok {
			raw.Put(record)
		} else {
			raw.Delete(splitKey(key))
		}
	}
}

func idsOf(t rapid.TB, data json.RawMessage) map[string]bool {
	var value any
	if err := json.Unmarshal(data, &value); err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	nodeIDs(value, "", ids)
	return ids
}

// Lists leave out records of other software whose keys only begin like the list's keys.
func TestListsLeaveOutRecordsOfOtherSoftware(t *testing.T) {
	t.Parallel()
	s, raw, initial := newEditableFixture(t)
	want := map[string]string{}
	for _, query := range malformedReads() {
		want[query] = string(s.ask(t, query, nil).Data)
	}
	seen := map[string]bool{}
	for _, key := range slices.Sorted(maps.Keys(initial)) {
		pk, sk := splitKey(key)
		entity, _ := initial[key]["entity"].(*types.AttributeValueMemberS)
		// A further part of the order counts takes the place of a right one, so the counts are incomplete.
		if seen[entity.Value] || entity.Value == "orderCounts" {
			continue
		}
		seen[entity.Value] = true
		foreign := raw.Get(pk, sk)
		foreign["sk"] = storetest.Str(sk + "#1")
		raw.Put(foreign)
		for query, want := range want {
			if got := s.ask(t, query, nil); string(got.Data) != want || len(got.Errors) > 0 {
				t.Errorf("with the record %s #1, %s returns %.600s %+v, want %.600s", key, query, got.Data, got.Errors, want)
			}
		}
		restore(raw, initial)
	}
}
