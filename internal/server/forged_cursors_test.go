package server_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/change"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/graph"
	"github.com/ordergraph/ordergraph/graph/operation"
	"github.com/ordergraph/ordergraph/internal/server"
	"github.com/ordergraph/ordergraph/internal/test/longtest"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// cursorKey is the key of the test servers for signing cursors.
const cursorKey = "a key for tests"

// forge makes a cursor with a valid signature: base64url(version, signature, position).
func forge(position, field string, arguments ...string) string {
	const version = "\x01"
	mac := hmac.New(sha256.New, []byte(cursorKey))
	mac.Write([]byte(version + strings.Join(append([]string{field}, arguments...), "\x00") + "\x00\x00" + position))
	return base64.RawURLEncoding.EncodeToString([]byte(version + string(mac.Sum(nil)[:12]) + position))
}

// positionOf returns the position in a cursor.
func positionOf(t *testing.T, cursor string) string {
	t.Helper()
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || len(b) < 14 {
		t.Fatalf("the cursor is %q: %v", cursor, err)
	}
	return string(b[13:])
}

// forgedList is a list of the schema. Its query has %s in place of the list's fields, and its field
// has %s in place of the cursors.
type forgedList struct {
	name, query, call string
	// The signature of a cursor covers scope, in addition to the field.
	scope      []string
	descending bool
}

// parents returns queries for records that have lists, by type. Each has %s in place of the list,
// and the ID in the scope of the list's cursors.
func parents() map[string][][2]string {
	// The test removes the embedded items of the second order, so a Query lists them.
	const order, without, item = "01HVMK3P2Q0000000000000001", "01KNVV2HR00000000000000101", "01KA3P5WG00000000000000001"
	return map[string][][2]string{
		"Query":     {{`{ %s }`}},
		"Customer":  {{`{ customer(id: "cust_01") { %s } }`, "cust_01"}},
		"Order":     {{`{ order(id: "` + order + `") { %s } }`, order}, {`{ order(id: "` + without + `") { %s } }`, without}, {`{ customer(id: "cust_01") { order(id: "` + order + `") { %s } } }`, order}},
		"Product":   {{`{ product(sku: "prod_100") { %s } }`, "prod_100"}, {`{ orderItem(orderId: "` + item + `", productId: "prod_100") { product { %s } } }`, "prod_100"}},
		"Warehouse": {{`{ warehouse(id: "wh_sea") { %s } }`, "wh_sea"}},
		"Webhook":   {{`{ webhooks(first: 1) { nodes { %s } } }`, storetest.SmallOrderID(0)}},
		"Employee":  {{`{ employee(id: "rep_001") { %s } }`, "rep_001"}},
	}
}

// limit returns a value of an argument of a list. with and without are the scopes of the list's
// cursors with the value and without it.
func limit(a *ast.ArgumentDefinition) (value string, with, without []string) {
	switch {
	case a.Name == "namePrefix":
		return `"G"`, []string{"#g"}, nil
	case a.Name == "emailPrefix":
		return `"A"`, []string{"@a"}, nil
	case a.Type.Name() == "String":
		text := map[string]string{"category": "Electronics", "name": "Jane Doe", "jobTitle": "Associate", "tag": "vip"}[a.Name]
		return strconv.Quote(text), []string{text}, nil
	case a.Type.Name() == "TimeRange":
		return `{from: "2024-01-01T00:00:00Z", to: "2027-01-01T00:00:00Z"}`, []string{"2024-01-01T00:00:00Z/2027-01-01T00:00:00Z"}, []string{"/"}
	case a.Type.Name() == "DateRange":
		return `{from: "2024-01-01", to: "2026-01-01"}`, []string{"2024-01-01", "2026-01-01"}, []string{"", ""}
	case a.Type.String() == "[OrderStatus!]":
		return `[PENDING, DELIVERED]`, []string{"18"}, []string{"0"}
	case a.Type.Name() == "PaymentDue":
		return `AUTHORIZED`, []string{"authorized"}, nil
	case a.Type.Name() == "ReturnStatus":
		return `REQUESTED`, []string{"requested"}, nil
	case a.Type.Name() == "OrderStatus":
		return `PENDING`, []string{"2"}, nil
	default: // a number
		return "1000", []string{"1000"}, nil
	}
}

// forgedLists returns the lists of the schema without optional arguments, with each of them, and
// with all of them unless they exclude each other.
func forgedLists(t testing.TB) []forgedList {
	t.Helper()
	patterns := map[string]model.AccessPattern{}
	for _, p := range model.AccessPatterns() {
		patterns[p.ID] = p
	}
	var all []forgedList
	schema := graph.Schema()
	for _, name := range slices.Sorted(maps.Keys(schema.Types)) {
		for _, f := range schema.Types[name].Fields {
			if !operation.ReturnsPage(&ast.Field{Definition: f}) || name == "Subscription" || f.Name == "changes" { // the cursors of changes have no signature
				continue
			}
			if parents()[name] == nil {
				t.Fatalf("%s.%s: this test needs a query for a %s", name, f.Name, name)
			}
			var optional []string
			for _, a := range f.Arguments {
				if !a.Type.NonNull && !slices.Contains([]string{"first", "after", "last", "before"}, a.Name) {
					optional = append(optional, a.Name)
				}
			}
			chosen := [][]string{nil}
			for _, name := range optional {
				chosen = append(chosen, []string{name})
			}
			if len(optional) > 1 && !operation.IsPrefixArgument(optional[0]) { // a list has at most one prefix
				chosen = append(chosen, optional)
			}
			for _, parent := range parents()[name] {
				for _, given := range chosen {
					l := forgedList{name: name + "." + f.Name, query: parent[0], call: f.Name + "("}
					if parent[1] != "" {
						l.scope = []string{parent[1]}
					}
					for _, a := range f.Arguments {
						value, with, without := limit(a)
						switch {
						case a.Type.NonNull || slices.Contains(given, a.Name):
							l.call += a.Name + ": " + value + ", "
							l.scope = append(l.scope, with...)
						case slices.Contains(optional, a.Name):
							l.scope = append(l.scope, without...)
						}
					}
					l.call += "%s)"
					l.descending = patterns[f.Directives.ForName(operation.ReadsDirective).Arguments.ForName("pattern").Value.Raw].Direction == model.Descending
					all = append(all, l)
				}
			}
		}
	}
	if len(all) == 0 {
		t.Fatal("the schema has no lists")
	}
	return all
}

// cursorPage has the fields of a connection that a test reads.
type cursorPage struct {
	Edges []struct{ Cursor string }
}

// pages queries pages of a list, each with its cursors, in one request. It returns the positions on
// each page.
func (l forgedList) pages(t *testing.T, h http.Handler, cursors []string) [][]string {
	t.Helper()
	var fields strings.Builder
	for i, c := range cursors {
		fmt.Fprintf(&fields, "a%d: %s { edges { cursor } } ", i, fmt.Sprintf(l.call, "first: 100"+c))
	}
	w := ask(h, http.MethodPost, server.PathGraphQL, post(fmt.Sprintf(l.query, fields.String())))
	var got answer
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || len(got.Errors) > 0 {
		t.Errorf("%s of %s: status %d, %v, %v, %.100s", l.call, l.query, w.Code, err, got.Errors, w.Body)
		return nil
	}
	var pages map[string]cursorPage
	data := got.Data
	for json.Unmarshal(data, &pages) != nil || pages["a0"].Edges == nil {
		var inner map[string]json.RawMessage
		if err := json.Unmarshal(data, &inner); err != nil || len(inner) != 1 {
			t.Fatalf("%s of %s: %.300s", l.call, l.query, w.Body)
		}
		for _, v := range inner {
			data = bytes.TrimSuffix(bytes.TrimPrefix(v, []byte("[")), []byte("]")) // a list has one element
		}
		pages = nil
	}
	all := make([][]string, len(cursors))
	for i := range cursors {
		for _, edge := range pages[fmt.Sprint("a", i)].Edges {
			all[i] = append(all[i], positionOf(t, edge.Cursor))
		}
	}
	return all
}

// TestForgedCursors queries every list with validly signed cursors of positions that no record has.
// Each page must contain the records between its cursors. No position may cause a server fault.
func TestForgedCursors(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		store := storetest.SampleStore(t, db)
		d, err := store.DescribeTable(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		_, err = db.UpdateItem(context.Background(), &dynamodb.UpdateItemInput{
			TableName: &d.Name, Key: storetest.ItemKey("ORDER#01KNVV2HR00000000000000101", "#METADATA"),
			UpdateExpression: aws.String("REMOVE #i"), ExpressionAttributeNames: map[string]string{"#i": "items"},
		})
		if err != nil {
			t.Fatal(err)
		}
		for i, order := range []commerce.OrderID{"01HVMK3P2Q0000000000000001", "01KNVV2HR00000000000000101", "01HVMK3P2Q0000000000000001", "01KNVV2HR00000000000000101"} {
			amount := storetest.USD("1")
			amount.Currency = []commerce.Currency{"USD", "GBP"}[i%2]
			p := commerce.PaymentRecord{OrderID: order, Kind: commerce.PaymentAuthorization, Amount: amount, Provider: "bank", Reference: fmt.Sprint(i)}
			if _, err := store.RecordPayment(t.Context(), change.Caller{Name: "me"}, p); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 4 {
			e := commerce.PaymentEvent{Kind: commerce.PaymentCapture, Amount: storetest.USD("1"), Provider: "bank", Reference: fmt.Sprint("unmatched ", i), OrderID: "unknown"}
			if err := store.ReceivePayment(t.Context(), change.Caller{Name: "me"}, e, false); !commerce.IsUserError(err) {
				t.Fatal(err)
			}
		}
		for i := range 2 {
			order := commerce.OrderRequest{CustomerID: "cust_01", Lines: []commerce.OrderLine{{SKU: "prod_abc", Quantity: 1}}, ExpiresAt: new(time.Now().Add(time.Duration(i+1) * time.Hour))}
			if _, err := store.PlaceOrder(t.Context(), change.Caller{Name: "me"}, order); err != nil {
				t.Fatal(err)
			}
		}
		storetest.MakeReadable(t, storetest.RawTable{T: t, DB: db, Name: d.Name, Store: store}, model.EntityOrderWaiting.Name)
		for range 2 {
			o, err := store.PlaceOrder(t.Context(), change.Caller{Name: "me"}, commerce.OrderRequest{CustomerID: "cust_01", Lines: []commerce.OrderLine{{SKU: "prod_abc", Quantity: 1}}})
			if err == nil {
				_, err = store.ChangeOrderStatus(t.Context(), change.Caller{Name: "me"}, commerce.OrderStatusChange{OrderID: o.ID, To: commerce.Confirmed})
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		for _, order := range []commerce.OrderID{"01HVMK3P2Q0000000000000001", "01KNVV2HR00000000000000101"} {
			if _, err := store.TagOrder(t.Context(), change.Caller{Name: "me"}, commerce.TagsChange{OrderID: order, Add: []string{"vip"}}); err != nil {
				t.Fatal(err)
			}
		}
		for _, sku := range []string{"prod_def 01HVMK3P2Q0000000000000001", "prod_def 01HVMK3P2Q0000000000000001", "AVON-TORTOISE 01KNVV2HR00000000000000101", "GRANBY-CLEAR 01KNVV2HR00000000000000101"} {
			sku, order, _ := strings.Cut(sku, " ")
			r := commerce.ReturnRequest{OrderID: commerce.OrderID(order), Lines: []commerce.ReturnLine{{SKU: commerce.SKU(sku), Quantity: 1, Reason: "broken"}}}
			if _, err := store.RequestReturn(t.Context(), change.Caller{Name: "me"}, r); err != nil {
				t.Fatal(err)
			}
		}
		for i, order := range []string{"01HVMK3P2Q0000000000000001", "01KNVV2HR00000000000000101", "01HVMK3P2Q0000000000000001", "01KNVV2HR00000000000000101"} {
			f := commerce.Fulfillment{ID: commerce.FulfillmentID(storetest.ULIDAt(storetest.FirstOrderTime(), i)), OrderID: commerce.OrderID(order), WarehouseID: "wh_sea", Status: commerce.FulfillmentDelivered}
			if _, err := db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &d.Name, Item: model.EncodeWithEdges(&model.KeyBuilder{}, &f)[0]}); err != nil {
				t.Fatal(err)
			}
		}
		r := storetest.RawTable{T: t, DB: db, Name: d.Name, Store: store}
		for i := range 4 {
			webhook, failure := commerce.WebhookID(storetest.SmallOrderID(i)), commerce.OrderID(storetest.SmallOrderID(i))
			r.Put(model.EncodeWithEdges(&model.KeyBuilder{}, &commerce.Webhook{ID: webhook, CreatedAt: storetest.FirstOrderTime().Add(time.Duration(i/2) * time.Second)})[0])
			r.Put(model.EncodeWithEdges(&model.KeyBuilder{}, &commerce.WebhookFailure{WebhookID: commerce.WebhookID(storetest.SmallOrderID(0)), OrderID: failure})[0])
		}
		storetest.MakeReadable(t, r, model.EntityLowStock.Name)
		for i, sku := range []commerce.SKU{"prod_abc", "prod_def", "AVON-TORTOISE"} {
			level := commerce.InventoryLevelChange{SKU: sku, WarehouseID: "wh_sea", Quantity: new(500 * (i + 1)), ReorderPoint: new(2000)}
			if _, err := store.SetInventoryLevel(t.Context(), change.Caller{}, level); err != nil {
				t.Fatal(err)
			}
		}
		h, j := newHandler(t, store, slog.LevelInfo, server.Options{})
		for i, l := range forgedLists(t) {
			if !storetest.RunsCase(t, 4, i) {
				continue
			}
			checkForged(t, h, l)
		}
		j.checkEmpty(t)
	})
}

func checkForged(t *testing.T, h http.Handler, l forgedList) {
	t.Helper()
	all := l.pages(t, h, []string{""})[0]
	if len(all) == 0 {
		t.Errorf("%s is empty", l.call)
		return
	}
	// The forged cursors equal the server's.
	if got := l.pages(t, h, []string{fmt.Sprintf(", after: %q", forge(all[0], l.name, l.scope...))}); len(got) == 0 || !slices.Equal(got[0], all[1:]) {
		t.Errorf("%s with the forged cursor of its first record returns %q, want %q", l.call, got, all[1:])
		return
	}
	positions := []string{
		"\x00", "\x00\x00", "\x01", " ", "#", "0", "a", "~", "\x7f", "é\n\"\\", "\uD7FF", "\uE000", "\U0010FFFF", "\U0010FFFF\x00", "\U0010FFFF\U0010FFFF",
		strings.Repeat("\x00", 1000), strings.Repeat("a", 1000), strings.Repeat("\U0010FFFF", 250),
	}
	for _, real := range []string{all[0], all[len(all)-1]} {
		positions = append(positions, real, real[:len(real)-1], real+"\x00", real+"\U0010FFFF", real+"\U0010FFFF\x00")
	}
	// Test each position alone and with its neighbours, in both directions. By default test a quarter
	// of them.
	slices.Sort(positions)
	var between [][2]string
	for i, p := range positions {
		between = append(between, [2]string{p, ""}, [2]string{"", p}, [2]string{p, p})
		if i > 0 {
			between = append(between, [2]string{positions[i-1], p}, [2]string{p, positions[i-1]})
		}
	}
	if !longtest.Enabled() {
		i := 0
		between = slices.DeleteFunc(between, func([2]string) bool { i++; return i%4 > 0 })
	}
	var cursors []string
	for _, b := range between {
		c := fmt.Sprintf(", after: %q, before: %q", forge(b[0], l.name, l.scope...), forge(b[1], l.name, l.scope...))
		if b[0] == "" {
			c = fmt.Sprintf(", before: %q", forge(b[1], l.name, l.scope...))
		} else if b[1] == "" {
			c = fmt.Sprintf(", after: %q", forge(b[0], l.name, l.scope...))
		}
		cursors = append(cursors, c)
	}
	for start := 0; start < len(cursors); {
		end := start
		for size := 0; end < len(cursors) && end-start < 50 && size < 100_000; end++ {
			size += len(cursors[end])
		}
		got := l.pages(t, h, cursors[start:end])
		if got == nil {
			return // already reported
		}
		for i, page := range got {
			var want []string
			after, before := between[start+i][0], between[start+i][1]
			low, high := after, before
			if l.descending {
				low, high = before, after
			}
			for _, p := range all {
				if (low == "" || p > low) && (high == "" || p < high) {
					want = append(want, p)
				}
			}
			if !slices.Equal(page, want) {
				t.Errorf("%s after %.50q before %.50q: %q, want %q", l.call, after, before, page, want)
			}
		}
		start = end
	}
}

// TestCursorsWithoutAPosition queries every list with validly signed cursors that contain no
// position.
func TestCursorsWithoutAPosition(t *testing.T) {
	db := storetest.Engines()[0].Client(t)
	store := storetest.SampleStore(t, db)
	d, err := store.DescribeTable(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	webhook := &commerce.Webhook{ID: commerce.WebhookID(storetest.SmallOrderID(0)), CreatedAt: storetest.FirstOrderTime()}
	storetest.RawTable{T: t, DB: db, Name: d.Name, Store: store}.Put(model.EncodeWithEdges(&model.KeyBuilder{}, webhook)[0])
	h, j := handler(t, store, slog.LevelInfo)
	for _, l := range forgedLists(t) {
		for name, position := range map[string]string{
			"empty": "", "not UTF-8": "a\xff", "half a surrogate": "\xed\xa0\x80", "1001 bytes": strings.Repeat("a", 1001), "1025 bytes": strings.Repeat("a", 1025), "2049 bytes": strings.Repeat("\x00", 2049),
		} {
			for _, argument := range []string{"after", "before"} {
				field := fmt.Sprintf(l.call, fmt.Sprintf("%s: %q", argument, forge(position, l.name, l.scope...)))
				w := ask(h, http.MethodPost, server.PathGraphQL, post(fmt.Sprintf(l.query, field+" { edges { cursor } }")))
				var got answer
				if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
					t.Fatal(err)
				}
				if got := got.Errors; len(got) != 1 || got[0].Extensions["code"] != "BAD_USER_INPUT" || !strings.Contains(got[0].Message, argument) {
					t.Errorf("%s, %s, %s: %v", field, name, argument, got)
				}
			}
		}
	}
	j.checkEmpty(t)
}

// TestLongKeysArePaged pages through a list of external records with the longest IDs that a cursor
// can contain.
func TestLongKeysArePaged(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		store, f := emptyTable(t, db)
		var want []string
		for _, first := range []string{"a", "b", "c"} {
			sku := first + strings.Repeat("x", 999)
			f.put(t, map[string]string{"pk": "PRODUCT#" + sku, "sk": "#METADATA", "gsi1pk": "CATEGORY#Long", "gsi1sk": "PRODUCT#" + sku, "sku": sku, "name": "Long", "category": "Long"},
				map[string]attribute{"unitPrice": &types.AttributeValueMemberN{Value: "1"}})
			want = append(want, sku)
		}
		h, j := newHandler(t, store, slog.LevelInfo, server.Options{})
		var got []string
		for cursor := ""; len(got) < 4; {
			w := ask(h, http.MethodPost, server.PathGraphQL, post(fmt.Sprintf(`{ products(category: "Long", first: 1%s) { nodes { sku } pageInfo { endCursor hasNextPage } } }`, cursor)))
			var page struct {
				Data struct {
					Products struct {
						Nodes    []struct{ SKU string }
						PageInfo struct {
							EndCursor   string
							HasNextPage bool
						}
					}
				}
			}
			if err := json.Unmarshal(w.Body.Bytes(), &page); err != nil || len(page.Data.Products.Nodes) != 1 {
				t.Fatalf("%v: %.200s", err, w.Body)
			}
			got = append(got, page.Data.Products.Nodes[0].SKU)
			if !page.Data.Products.PageInfo.HasNextPage {
				break
			}
			cursor = fmt.Sprintf(", after: %q", page.Data.Products.PageInfo.EndCursor)
		}
		if !slices.Equal(got, want) {
			t.Errorf("the pages contain the wrong products: %.20q", got)
		}
		j.checkEmpty(t)
	})
}

// FuzzForgedPositions checks that no two positions with valid signatures make a list fail.
func FuzzForgedPositions(f *testing.F) {
	h, _ := handler(f, sampleThrough(f, forward), slog.LevelInfo)
	f.Add("", "\x00")
	f.Add("\U0010FFFF", "")
	f.Add("01HVMK3P2Q0000000000000001\U0010FFFF", "01HVMK3P2Q0000000000000002")
	f.Add("\xff", strings.Repeat("a", 1001))
	f.Fuzz(func(t *testing.T, after, before string) {
		for _, l := range []forgedList{{"Query.customers", `{ %s }`, `customers(%s)`, nil, false}, {"Customer.orders", `{ customer(id: "cust_01") { %s } }`, `orders(%s)`, []string{"cust_01", "/"}, true}} {
			field := fmt.Sprintf(l.call, fmt.Sprintf("after: %q, before: %q", forge(after, l.name, l.scope...), forge(before, l.name, l.scope...)))
			w := ask(h, http.MethodPost, server.PathGraphQL, post(fmt.Sprintf(l.query, field+" { edges { cursor } }")))
			var got answer
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
				t.Fatal(err)
			}
			for _, e := range got.Errors {
				if e.Extensions["code"] != "BAD_USER_INPUT" {
					t.Errorf("%s after %q before %q: %v", l.call, after, before, e)
				}
			}
		}
	})
}
