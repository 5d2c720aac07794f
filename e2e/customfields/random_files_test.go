package customfields_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ordergraph/ordergraph/access"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/embedded"
	"github.com/ordergraph/ordergraph/graph"
	"github.com/ordergraph/ordergraph/graph/extension"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// filesDirectory makes TestRandomFiles only write its files. e2e/schema starts servers with them.
var filesDirectory = flag.String("files", "", "directory to which TestRandomFiles writes random valid files, instead of testing them")

// randomField is a custom field of a random file. Without a query, query is "".
type randomField struct {
	typ, name, valueType, query, description, seenBy string
	unique, list, required                           bool
	// values are possible values in the GraphQL language, and attributes their texts in a record. defaultValue
	// is the index of the default value, or -1.
	values, attributes []string
	defaultValue       int
}

func drawField(t *rapid.T, typ string, n int) randomField {
	f := randomField{typ: typ, name: fmt.Sprintf("f%d", n), query: fmt.Sprintf("find%s%d", typ, n), defaultValue: -1}
	f.valueType = rapid.SampledFrom([]string{"String", "ID", "Int", "Boolean", "Decimal", "Date", "DateTime", "Mood", "Money"}).Draw(t, "type")
	f.description = rapid.SampledFrom([]string{"", `"A \"quoted\" text."`, "\"\"\"\nTwo `lines`\nwith \\\"\"\".\n\"\"\""}).Draw(t, "description")
	f.seenBy = rapid.SampledFrom([]string{"", "seenBy: STAFF", "seenBy: [SERVICE, CUSTOMER]"}).Draw(t, "roles")
	switch f.valueType {
	case "Int":
		f.values, f.attributes = []string{"-3", "0", "12"}, []string{"-3", "0", "12"}
	case "Boolean":
		f.values, f.attributes = []string{"true", "false"}, []string{"true", "false"}
	case "Decimal":
		f.values, f.attributes = []string{`"1.50"`, `"-7"`}, []string{"1.5", "-7"}
	case "Date":
		f.values, f.attributes = []string{`"2026-02-28"`}, []string{"2026-02-28"}
	case "DateTime":
		f.values, f.attributes = []string{`"2026-02-28T10:00:00Z"`}, []string{"2026-02-28T10:00:00.000Z"}
	case "Mood":
		f.values, f.attributes = []string{"GOOD", "BAD"}, []string{"GOOD", "BAD"}
	case "Money":
		f.values = []string{`{amount: "1.5", currencyCode: "USD"}`}
	default:
		f.values, f.attributes = []string{`"a#b"`, `"50%"`, `"x"`, `"X"`}, []string{"a#b", "50%", "x", "X"}
	}
	// Lists of texts could exceed the limit of a line item.
	if f.list = rapid.IntRange(0, 3).Draw(t, "list") == 0 && typ != "OrderItem"; f.list {
		f.values = []string{"[]", "[" + f.values[0] + "]", "[" + strings.Join(f.values, ", ") + "]"}
	}
	switch {
	case f.list || f.valueType == "Money" || typ == "OrderItem":
		f.query = ""
	case rapid.Bool().Draw(t, "unique"):
		f.unique = true
		return f
	}
	if rapid.Bool().Draw(t, "default") {
		f.defaultValue = rapid.IntRange(0, len(f.values)-1).Draw(t, "value")
		f.required = rapid.Bool().Draw(t, "required")
	}
	return f
}

func (f randomField) declaration() string {
	valueType, field, query := f.valueType, "@field(setBy: [CUSTOMER] "+f.seenBy+")", ""
	if f.list {
		valueType = "[" + valueType + "!]"
	}
	if f.required {
		valueType += "!"
	}
	if f.defaultValue >= 0 {
		field = fmt.Sprintf("@field(default: %s %s)", f.values[f.defaultValue], f.seenBy)
	}
	if f.unique {
		query = fmt.Sprintf("@unique(query: %q)", f.query)
	} else if f.query != "" {
		query = fmt.Sprintf("@list(query: %q)", f.query)
	}
	return fmt.Sprintf("extend type %s { %s %s: %s %s %s }\n", f.typ, f.description, f.name, valueType, field, query)
}

// drawFile returns a valid file and its fields.
func drawFile(t *rapid.T) (text string, fields []randomField) {
	for i, typ := range extension.Types() {
		for n := range rapid.IntRange(0, 3).Draw(t, typ) {
			f := drawField(t, typ, 10*i+n)
			fields, text = append(fields, f), text+f.declaration()
		}
	}
	if slices.ContainsFunc(fields, func(f randomField) bool { return f.valueType == "Mood" }) {
		text = "enum Mood { GOOD BAD }\n" + text
	}
	return text, fields
}

// records maps the types to how the tests change and find their records.
var records = map[string]struct{ key, prefix, nodes, update string }{
	"Customer":  {"id", "CUSTOMER#", "id name email", "updateCustomer(input: {id: %q, %s: %s})"},
	"Employee":  {"id", "EMPLOYEE#", "id jobTitle", "updateEmployee(input: {id: %q, %s: %s})"},
	"Order":     {"id", "ORDER#", "id status customer { name }", "setCustomFields(input: {orderId: %q, %s: %s})"},
	"Product":   {"sku", "PRODUCT#", "sku name available", "updateProduct(input: {sku: %q, %s: %s})"},
	"Warehouse": {"id", "WAREHOUSE#", "id name", "updateWarehouse(input: {id: %q, %s: %s})"},
}

// With random files, each query by a custom field returns the records that a scan finds, in the right
// order, after random mutations. A broken file is refused with a line.
func TestRandomFiles(t *testing.T) {
	written := 0
	rapid.Check(t, func(rt *rapid.T) {
		text, fields := drawFile(rt)
		if *filesDirectory != "" {
			written++
			if err := os.WriteFile(filepath.Join(*filesDirectory, fmt.Sprintf("%d.graphqls", written)), []byte(text), 0o600); err != nil {
				rt.Fatal(err)
			}
			return
		}
		at := rapid.IntRange(0, len(text)).Draw(rt, "broken")
		if e, err := graph.ParseExtension("shop.graphqls", text[:at]+text[min(at+1, len(text)):]); err != nil && !strings.HasPrefix(err.Error(), "shop.graphqls:") {
			rt.Errorf("a broken file has the error %v", err)
		} else if err == nil {
			newExecutor(t, nil, e) // the file is still valid, so the server starts
		}
		e, err := graph.ParseExtension("shop.graphqls", text)
		if err != nil {
			rt.Fatalf("%s\n%v", text, err)
		}
		defer e.Declare()()
		checkRandomFile(t, rt, e, fields)
	})
}

func checkRandomFile(t *testing.T, rt *rapid.T, e extension.Extension, fields []randomField) {
	dataset, _ := storetest.SampleDataset(t)
	raw := storetest.NewRawTable(t, embedded.New().Client(), dataset, dynamo.Options{})
	s := &shop{raw, newExecutor(t, raw.Store, e), access.AnonymousAdmin()}
	ids := map[string][]string{}
	stored := raw.All()
	for key, item := range stored {
		for typ, r := range records {
			if id, ok := strings.CutPrefix(storetest.Record(item).Text("pk"), r.prefix); ok && strings.HasSuffix(key, " #METADATA") {
				ids[typ] = append(ids[typ], id)
			}
		}
	}
	fields = slices.DeleteFunc(fields, func(f randomField) bool { return f.typ == "OrderItem" })
	for range rapid.IntRange(0, 40).Draw(rt, "mutations") {
		if len(fields) == 0 {
			break
		}
		f := rapid.SampledFrom(fields).Draw(rt, "field")
		slices.Sort(ids[f.typ])
		values := slices.Clone(f.values)
		if !f.required {
			values = append(values, "null")
		}
		value := rapid.SampledFrom(values).Draw(rt, "set")
		document := fmt.Sprintf("mutation { "+records[f.typ].update+" { userErrors { message } } }", rapid.SampledFrom(ids[f.typ]).Draw(rt, "id"), f.name, value)
		if _, problems := s.try(document, nil); len(problems) > 0 && !(f.unique && len(problems) == 1 && strings.HasPrefix(problems[0], "Another ")) {
			rt.Fatalf("%s: %v", document, problems)
		}
	}
	stored = raw.All()
	for _, f := range fields {
		if f.query == "" {
			continue
		}
		r := records[f.typ]
		for i, value := range f.values {
			var want []string
			for _, id := range ids[f.typ] {
				record := storetest.Record(stored[r.prefix+id+" #METADATA"])
				if record == nil {
					rt.Fatalf("the table has no record %s", id)
				}
				has := f.defaultValue == i
				if record.Has(f.name) {
					has = storetest.FormatValue(record[f.name]) == f.attributes[i]
				}
				if has {
					want = append(want, sortKey(f.typ, record)+" "+id)
				}
			}
			slices.Sort(want)
			if f.typ == "Order" {
				slices.Reverse(want)
			}
			selection := "nodes { " + r.nodes + " }"
			if f.unique {
				selection = r.nodes
			}
			document := fmt.Sprintf("{ found: %s(%s: %s) { %s } }", f.query, f.name, value, selection)
			data, problems := s.try(document, nil)
			if len(problems) > 0 {
				rt.Fatalf("%s: %v", document, problems)
			}
			var nodes []any
			if found, ok := data["found"].(map[string]any); ok && f.unique {
				nodes = []any{found}
			} else if ok {
				nodes = found["nodes"].([]any)
			}
			var got []string
			for _, node := range nodes {
				id := node.(map[string]any)[r.key].(string)
				got = append(got, sortKey(f.typ, storetest.Record(stored[r.prefix+id+" #METADATA"]))+" "+id)
			}
			if !slices.Equal(got, want) {
				rt.Errorf("%s returns %q, want %q", document, got, want)
			}
		}
	}
	raw.CheckClean()
}

// sortKey returns the text by which lists of a type are sorted, before the ID.
func sortKey(typ string, r storetest.Record) string {
	if typ == "Order" {
		return ""
	}
	return strings.NewReplacer(" ", "-", `"`, "-", "#", "-", "!", "-").Replace(strings.ToLower(r.Text("name")))
}

// The maximum costs of mutations include the edges and claims of custom fields.
func TestBoundsIncludeLists(t *testing.T) {
	bounds := dynamo.NewCostBounds(1)
	count := func(pattern, entity string) (n int) {
		for _, p := range model.WritePatterns() {
			for _, e := range append(slices.Clone(p.Writes), p.OptionalWrites...) {
				if p.Mutation == pattern && e.Name == entity {
					n++
				}
			}
		}
		return n
	}
	for _, want := range []struct {
		mutation, entity string
		n                int
	}{
		{"placeOrder", "orderList.channel", 1}, {"placeOrder", "orderClaim.erpNumber", 2}, {"confirmOrder", "orderList.channel", 1}, {"confirmOrder", "orderClaim.erpNumber", 0},
		{"setCustomFields", "orderClaim.erpNumber", 2}, {"updateProduct", "productList.brand", 1}, {"placeOrder", "productList.brand", 0}, {"updateWarehouse", "warehouseList.dock", 1},
		{"setInventoryLevel", "warehouseList.dock", 1}, {"assignAccountRep", "customerList.marketingConsent", 1}, {"updateEmployee", "employeeClaim.desk", 2},
	} {
		if n := count(want.mutation, want.entity); n != want.n {
			t.Errorf("%s writes %s %d times, want %d", want.mutation, want.entity, n, want.n)
		}
	}
	with := bounds.WriteUnits("confirmOrder", 1)
	defer withoutQueries(t).Declare()()
	if without := dynamo.NewCostBounds(1).WriteUnits("confirmOrder", 1); with <= without {
		t.Errorf("with a list, confirmOrder costs up to %g units, and without %g", with, without)
	}
}
