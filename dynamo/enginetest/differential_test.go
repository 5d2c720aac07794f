package enginetest_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/big"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/ordergraph/ordergraph/embedded"
	"github.com/ordergraph/ordergraph/internal/test/dynamolocal"
)

// The differential test does not compare the following behaviour. DynamoDB Local differs from
// Amazon DynamoDB there, or Amazon does not document the behaviour and the embedded store may keep
// its own. The code refers to the numbers.
//
// DynamoDB Local differs from Amazon DynamoDB:
//
//  1. UPDATED_OLD and UPDATED_NEW return the complete top-level attribute if the update has a
//     nested path. Amazon returns only the nested value. The test requests other return values.
//  2. A transaction with two actions on one item first evaluates the conditions, and does not
//     notice the numbers 1 and 1.0 as one key. Batches do not notice it either. The test has such
//     actions only without conditions, and requests with several keys have the number 1 in one
//     notation.
//  3. A transaction accepts an Update without UpdateExpression, which Amazon's API requires.
//  4. A ConditionCheck accepts a path into a key attribute, such as pk.a.
//  5. The attribute name size needs no placeholder, although it is a reserved word.
//  6. An update (not a put) accepts an index key of another type or above the maximum size, and
//     leaves the item out of the index.
//  7. A Scan of an index evaluates its filter on attributes that the index does not contain.
//  8. The consumed capacity of batches, transactions, deletes, empty queries, and writes to tables
//     with indexes is wrong. The test compares it for the other requests.
//
// Amazon does not document the behaviour:
//
//  9. An invalid transaction fails as a request or is cancelled with the reason ValidationError. If
//     one action is invalid, the reasons of the other actions may be missing. Both results count as
//     equal.
//  10. An update of the table's key, or with a path into a key attribute, is invalid. If its
//     condition also fails, the error can be either one. These updates have no condition.
//  11. If a Query with an inclusive bound ends at this bound and at its Limit, LastEvaluatedKey may
//     be present. The next page is empty.
//  12. ExclusiveStartKey may be rejected if it is at an inclusive bound of a Query. The test
//     continues such a Query only from LastEvaluatedKey.
//  13. The order of a Scan, of segments, and of items with equal keys in an index. The test
//     compares the union of the pages, and the order of the sort keys in an index.
//  14. A token of an earlier transaction with an invalid request: the error is about the token or
//     about the request. The test uses tokens again only in valid requests.
//  15. The number of items on a page that is limited by its size. Pages of tables with large items
//     are compared as their union.
//  16. A value in ExclusiveStartKey that exceeds the maximum size of keys. The embedded store
//     rejects it. LastEvaluatedKey never has such a value.

// differential sends requests to two engines.
type differential struct {
	local, own                 *engine
	operations, tables, tokens atomic.Int64
}

// engine sends requests in DynamoDB's protocol to one engine.
type engine struct {
	url, authorization string
	client             interface {
		Do(*http.Request) (*http.Response, error)
	}
}

// object is a JSON object of the protocol.
type object = map[string]any

func newDifferential(t *testing.T) *differential {
	t.Helper()
	inst := dynamolocal.Shared(t)
	key := ""
	for _, v := range dynamolocal.Environment() {
		if after, ok := strings.CutPrefix(v, "AWS_ACCESS_KEY_ID="); ok {
			key = after
		}
	}
	return &differential{
		local: &engine{
			url: inst.Endpoint(),
			// DynamoDB Local reads the key and the region, and does not verify the signature.
			authorization: "AWS4-HMAC-SHA256 Credential=" + key + "/20250101/local/dynamodb/aws4_request, SignedHeaders=host, Signature=none",
			client:        &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2 * differentialWorkers}},
		},
		own: &engine{url: "http://embedded.invalid", client: embedded.New()},
	}
}

// send executes one request and returns the body of the response. The body has the code of an error
// in the member code, "" for no error.
func (e *engine) send(t *rapid.T, operation string, input object) object {
	t.Helper()
	encoded, err := json.Marshal(input)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, e.url, bytes.NewReader(encoded))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-amz-json-1.0")
	r.Header.Set("X-Amz-Target", "DynamoDB_20120810."+operation)
	r.Header.Set("Authorization", e.authorization)
	response, err := e.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	received, err := io.ReadAll(response.Body)
	body := object{}
	if err = errors.Join(err, response.Body.Close(), json.Unmarshal(received, &body)); err != nil {
		t.Fatalf("%s %s: status %d: %s: %v", operation, abbreviate(encoded), response.StatusCode, received, err)
	}
	name, _ := body["__type"].(string)
	body["code"] = name[strings.LastIndex(name, "#")+1:]
	if (response.StatusCode == http.StatusOK) != (name == "") || response.StatusCode >= http.StatusInternalServerError {
		t.Fatalf("%s %s: status %d: %s", operation, abbreviate(encoded), response.StatusCode, received)
	}
	for _, member := range []string{"__type", "message", "Message"} {
		delete(body, member)
	}
	return body
}

var longText = regexp.MustCompile("x{50,}")

// abbreviate returns JSON for a message.
func abbreviate(encoded []byte) string {
	text := longText.ReplaceAllStringFunc(string(encoded), func(xs string) string { return fmt.Sprintf("<x times %d>", len(xs)) })
	return text[:min(len(text), 20_000)]
}

// differentialWorkers is the number of tests that run in parallel.
const differentialWorkers = 4

// TestDifferential sends random requests to DynamoDB Local and to the embedded store, and compares
// the responses. TestMain sets the number of requests. On a failure, rapid prints the seed and all
// requests of the shortest failing sequence that it found.
func TestDifferential(t *testing.T) {
	t.Parallel()
	d := newDifferential(t)
	t.Cleanup(func() { t.Logf("%d operations on each engine", d.operations.Load()) })
	for worker := range differentialWorkers {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) { d.check(t, worker) })
		})
	}
}

// check executes random requests on a new table. Workers with the same seed send different
// requests.
func (d *differential) check(t *rapid.T, worker int) {
	s := rapid.Custom(drawSchema).Draw(t, "table")
	s.table = fmt.Sprintf("differential-%d", d.tables.Add(1))
	defer func() {
		for _, e := range []*engine{d.local, d.own} {
			e.send(t, "DeleteTable", object{"TableName": s.table})
		}
	}()
	for _, e := range []*engine{d.local, d.own} {
		if created := e.send(t, "CreateTable", s.definition()); created["code"] != "" {
			t.Fatalf("CreateTable: %v", created)
		}
	}
	g := &generator{schema: s, worker: worker, newToken: func() string { return fmt.Sprint("token-", d.tokens.Add(1)) }}
	for range 6 {
		d.compare(t, rapid.Custom(g.drawPut).Draw(t, "first items"))
	}
	requests := rapid.Custom(g.draw)
	t.Repeat(map[string]func(*rapid.T){"request": func(t *rapid.T) {
		r := requests.Draw(t, "request")
		succeeded := d.compare(t, r)
		if succeeded && r.input["ClientRequestToken"] != nil {
			g.committed = r.input
		}
	}})
	d.compare(t, &request{operation: "Scan", input: object{"TableName": s.table}})
	for _, x := range s.indexes {
		d.compare(t, &request{operation: "Scan", input: object{"TableName": s.table, "IndexName": x.name}})
	}
}

// compare sends a request to both engines. It fails the test if the results differ, and reports
// whether the request succeeded.
func (d *differential) compare(t *rapid.T, r *request) bool {
	d.operations.Add(1)
	want, wantSucceeded := r.result(t, d.local)
	got, _ := r.result(t, d.own)
	if got != want {
		t.Fatalf("%#v\nDynamoDB Local: %s\nembedded store: %s", r, abbreviate([]byte(want)), abbreviate([]byte(got)))
	}
	return wantSucceeded
}

// result executes a request. It returns the part of the response that the engines must agree on, as
// canonical JSON, and reports whether the request succeeded.
func (r *request) result(t *rapid.T, e *engine) (result string, succeeded bool) {
	if r.operation == "Query" || r.operation == "Scan" {
		return r.list(t, e)
	}
	body := e.send(t, r.operation, r.input)
	if strings.HasPrefix(r.operation, "Transact") && invalidTransaction(body) {
		return "invalid", false // exclusion 9
	}
	reasons, _ := body["CancellationReasons"].([]any)
	for _, reason := range reasons {
		delete(reason.(object), "Message")
	}
	if responses, ok := body["Responses"].(object); ok {
		for table, items := range responses {
			responses[table] = sorted(items.([]any))
		}
	}
	r.removeCapacity(body)
	return render(body), body["code"] == ""
}

// invalidTransaction reports whether an action of the transaction was invalid.
func invalidTransaction(body object) bool {
	if body["code"] != "TransactionCanceledException" {
		return body["code"] == "ValidationException"
	}
	reasons, ok := body["CancellationReasons"].([]any)
	return !ok || slices.ContainsFunc(reasons, func(reason any) bool { return reason.(object)["Code"] == "ValidationError" })
}

// removeCapacity removes the consumed capacity that the engines do not agree on: see exclusion 8.
func (r *request) removeCapacity(body object) {
	switch {
	case r.operation == "GetItem":
	case (r.operation == "PutItem" || r.operation == "UpdateItem") && !r.indexed:
	case r.operation == "Query" && body["ScannedCount"] != 0.0:
	default:
		delete(body, "ConsumedCapacity")
	}
}

// maxPages is the maximum number of pages of a Query or Scan.
const maxPages = 100

// list executes all pages of a Query or Scan, in all segments.
func (r *request) list(t *rapid.T, e *engine) (result string, succeeded bool) {
	var pages []object
	segments := 1
	if n, ok := r.input["TotalSegments"].(int); ok {
		segments = n
	}
	for segment := range segments {
		input := maps.Clone(r.input)
		if r.input["TotalSegments"] != nil {
			input["Segment"] = segment
		}
		for n := 0; ; n++ {
			body := e.send(t, r.operation, input)
			if body["code"] != "" {
				return body["code"].(string), false
			}
			r.removeCapacity(body)
			pages = append(pages, body)
			last := body["LastEvaluatedKey"]
			if last == nil {
				break
			}
			if input["ExclusiveStartKey"] = last; n > maxPages {
				t.Fatalf("%#v does not end", r)
			}
		}
	}
	if end := len(pages) - 1; r.inclusive && end > 0 && pages[end]["ScannedCount"] == 0.0 {
		pages = pages[:end] // exclusion 11
		delete(pages[end-1], "LastEvaluatedKey")
	}
	if r.operation == "Query" && r.input["IndexName"] == nil && !r.large {
		return render(pages), true
	}
	return render(r.union(pages)), true
}

// union returns the result of several pages without their order: see exclusions 13 and 15.
func (r *request) union(pages []object) object {
	items, order, counts := []any{}, []any{}, []any{}
	count, scanned := 0.0, 0.0
	for _, page := range pages {
		more, _ := page["Items"].([]any)
		items = append(items, more...)
		count += page["Count"].(float64)
		scanned += page["ScannedCount"].(float64)
		counts = append(counts, page["ScannedCount"])
	}
	if r.sortKey != "" {
		for _, item := range items {
			order = append(order, item.(object)[r.sortKey])
		}
	}
	if r.operation == "Scan" || r.large {
		counts = nil
	}
	return object{"Items": sorted(items), "Order": order, "Count": count, "ScannedCount": scanned, "ScannedCounts": counts}
}

// sorted returns a list in the order of its canonical JSON.
func sorted(list []any) []any {
	slices.SortFunc(list, func(a, b any) int { return strings.Compare(render(a), render(b)) })
	return list
}

// render returns JSON with canonical numbers and sorted sets.
func render(v any) string {
	encoded, err := json.Marshal(canonical(v))
	if err != nil {
		panic(err) // all values come from JSON
	}
	return string(encoded)
}

// canonical returns a copy of a value of the protocol with canonical numbers and sorted sets. No
// attribute in the test has the name of a type.
func canonical(v any) any {
	switch v := v.(type) {
	case []object:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = canonical(e)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = canonical(e)
		}
		return out
	case object:
		out := object{}
		for name, e := range v {
			set, _ := e.([]any)
			switch name {
			case "N":
				out[name] = canonicalNumber(e.(string))
			case "SS", "BS":
				out[name] = sorted(slices.Clone(set))
			case "NS":
				numbers := make([]any, len(set))
				for i, n := range set {
					numbers[i] = canonicalNumber(n.(string))
				}
				out[name] = sorted(numbers)
			default:
				out[name] = canonical(e)
			}
		}
		return out
	}
	return v
}

// canonicalNumber returns the same text for all notations of a number.
func canonicalNumber(text string) string {
	if n, ok := new(big.Rat).SetString(text); ok {
		return n.RatString()
	}
	return text
}
