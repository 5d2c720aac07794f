package server_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ordergraph/ordergraph/graph"
	"github.com/ordergraph/ordergraph/graph/errcode"
	"github.com/ordergraph/ordergraph/graph/rate"
	"github.com/ordergraph/ordergraph/graph/tablemap"
	"github.com/ordergraph/ordergraph/internal/admission"
	"github.com/ordergraph/ordergraph/internal/server"
	"github.com/ordergraph/ordergraph/internal/test/authtest"
	"github.com/ordergraph/ordergraph/internal/test/golden"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// proposedExtension is a schema extension that no process declares.
const proposedExtension = `enum Channel { WEB STORE }
extend type Order { channel: Channel! @field(default: WEB) @list(query: "ordersByChannel") }
extend type OrderItem { engraving: String @field }
extend type Customer { vatId: String @field(maxLength: 20) @unique(query: "customerByVatId") }
`

func describedTable(t *testing.T, h http.Handler, method, body string) (m tablemap.Map, text string) {
	t.Helper()
	w := ask(h, method, server.PathTable, body, "Content-Type", "application/graphql")
	if w.Code != http.StatusOK || w.Header().Get("Cache-Control") != "no-store" || json.Unmarshal(w.Body.Bytes(), &m) != nil {
		t.Fatalf("%s: status %d, %.300s", method, w.Code, w.Body)
	}
	return m, w.Body.String()
}

// The description of a table with a proposed extension. Each element of a list is one line.
func TestGoldenTable(t *testing.T) {
	t.Parallel()
	h, _ := newHandler(t, sampleThrough(t, forward), slog.LevelInfo, server.Options{})
	m, text := describedTable(t, h, http.MethodPost, proposedExtension)
	text = strings.ReplaceAll(text, strconv.Quote(m.Table), `"TABLE"`)
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &members); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, name := range []string{"table", "index", "entities", "collections", "references", "accessPatterns", "writePatterns", "layout", "derivations", "load", "prices", "proposal"} {
		var elements []json.RawMessage
		if json.Unmarshal(members[name], &elements) != nil {
			elements = []json.RawMessage{members[name]}
		}
		fmt.Fprintf(&b, "%s\n", name)
		for _, e := range elements {
			fmt.Fprintf(&b, "  %s\n", strings.ReplaceAll(string(e), `\n`, " "))
		}
		delete(members, name)
	}
	if len(members) > 0 {
		t.Errorf("the golden file omits %v", members)
	}
	golden.CheckFile(t, "testdata/table.txt", b.String())
}

// GET sends no requests to DynamoDB, and POST only counts the orders. Requests do not change what
// others see.
func TestTablesAreDescribedConcurrently(t *testing.T) {
	t.Parallel()
	watched, m := metered(storetest.Engines()[0].Client(t))
	h, _ := newHandler(t, storetest.SampleStore(t, watched), slog.LevelInfo, server.Options{})
	m.reset()
	_, before := describedTable(t, h, http.MethodGet, "")
	if requests := m.reset(); len(requests) > 0 {
		t.Errorf("GET sends %d requests", len(requests))
	}
	proposed, want := describedTable(t, h, http.MethodPost, proposedExtension)
	if requests := m.reset(); len(requests) != 1 {
		t.Errorf("POST sends %d requests, want a Query of the order counts", len(requests))
	}
	if plan := proposed.Proposal.Plan; len(plan) != 2 || plan[0].Records == nil || *plan[0].Records != 0 || plan[1].Records == nil || *plan[1].Records == 0 {
		t.Errorf("the plan is %+v", plan)
	}
	var waiting sync.WaitGroup
	for range 4 {
		waiting.Go(func() {
			if _, text := describedTable(t, h, http.MethodPost, proposedExtension); text != want {
				t.Error("a concurrent POST has another response")
			}
		})
		waiting.Go(func() {
			if _, text := describedTable(t, h, http.MethodGet, ""); text != before {
				t.Error("a POST changes the response to GET")
			}
			if w := ask(h, http.MethodPost, server.PathGraphQL, post("{ ordersByChannel(channel: WEB) { nodes { id } } }")); !strings.Contains(w.Body.String(), "ordersByChannel") || strings.Contains(w.Body.String(), `"data"`) {
				t.Errorf("a POST adds a query: %s", w.Body)
			}
		})
	}
	waiting.Wait()
}

// Only callers with the permission EXPLAIN may read the description. Fields that a caller may not
// select are in no query for items.
func TestTablePermissions(t *testing.T) {
	t.Parallel()
	store := sampleThrough(t, forward)
	for _, anonymous := range []bool{false, true} {
		g := newAuthenticatedServer(t, store, server.Options{Anonymous: anonymous})
		for role, want := range map[string]int{"": 401, "CUSTOMER": 403, "SERVICE": 403, "STAFF": 200, "ADMIN": 200} {
			for _, method := range []string{http.MethodGet, http.MethodPost} {
				header := []string{"Content-Type", "text/plain"}
				if role != "" {
					claims := authtest.Object{"role": role}
					if role == "CUSTOMER" {
						claims["customer_id"] = "cust_01"
					}
					header = append(header, "Authorization", "Bearer "+g.token(t, claims))
				}
				w := ask(g, method, server.PathTable, map[string]string{http.MethodPost: proposedExtension}[method], header...)
				if w.Code != want {
					t.Errorf("%s as %q: status %d, want %d: %.300s", method, role, w.Code, want, w.Body)
				}
				if code := map[int]string{401: "UNAUTHENTICATED", 403: "FORBIDDEN"}[want]; code != "" {
					checkRefusal(t, w, want, code, asJSON)
					continue
				}
				var m tablemap.Map
				if err := json.Unmarshal(w.Body.Bytes(), &m); err != nil {
					t.Fatal(err)
				}
				hasWebhooks := slices.ContainsFunc(m.Collections, func(c tablemap.Collection) bool { return c.Key == "WEBHOOKS" && c.Read != nil })
				if hasWebhooks != (role == "ADMIN") {
					t.Errorf("%s: webhooks can be read: %v", role, hasWebhooks)
				}
			}
		}
	}
}

// Invalid requests are refused with the line of each mistake.
func TestInvalidTableRequests(t *testing.T) {
	t.Parallel()
	h, _ := newHandler(t, sampleThrough(t, forward), slog.LevelInfo, server.Options{})
	for name, c := range map[string]struct {
		method, body string
		header       []string
		status       int
		want         string
	}{
		"syntax":          {"POST", "extend type Order {\n  a: ", nil, 400, `"locations":[{"line":2,`},
		"two mistakes":    {"POST", "extend type Order {\n  a: Float @field\n  b: Int }", nil, 400, `"locations":[{"line":3,`},
		"a type enum":     {"POST", "extend type Order { a: enum @field }", nil, 400, "has the type enum"},
		"no text":         {"POST", "", nil, 200, `"proposal":{"entities":[]`},
		"only a comment":  {"POST", "# nothing", nil, 200, `"proposal":{"entities":[]`},
		"not UTF-8":       {"POST", "\xff\xfe", nil, 400, "BAD_USER_INPUT"},
		"too deep":        {"POST", "extend type Order { a: " + strings.Repeat("[", 50000), nil, 400, "BAD_USER_INPUT"},
		"a query":         {"POST", "{ orders { nodes { id } } }", nil, 400, "BAD_USER_INPUT"},
		"the longest":     {"POST", strings.Repeat("#", 64<<10), nil, 200, `"proposal":{"entities":[]`},
		"too long":        {"POST", strings.Repeat("#", 64<<10+1), nil, 413, "BODY_TOO_LARGE"},
		"a type's name":   {"POST", "enum Float { A B } extend type Order { x: Int @field }", nil, 400, "already used"},
		"a control":       {"POST", "\nextend type Order { \"a\\u0000b\" x: Int @field }", nil, 400, `"locations":[{"line":2,`},
		"JSON":            {"POST", "{}", []string{"Content-Type", "application/json"}, 415, "UNSUPPORTED_MEDIA_TYPE"},
		"compressed":      {"POST", "# x", []string{"Content-Encoding", "gzip"}, 415, "UNSUPPORTED_MEDIA_TYPE"},
		"another page":    {"POST", "# x", []string{"Content-Type", "text/plain", "Origin", "https://evil.example"}, 403, "CSRF_PREVENTED"},
		"another page, 2": {"GET", "", []string{"Content-Type", "", "Origin", "https://evil.example"}, 403, "CSRF_PREVENTED"},
		"another method":  {"PUT", "# x", nil, 405, "METHOD_NOT_ALLOWED"},
		"another host":    {"GET", "", []string{"Host", "evil.example"}, 421, "HOST_NOT_ALLOWED"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			target := server.PathTable
			if len(c.header) > 0 && c.header[0] == "Host" {
				target = "http://" + c.header[1] + target
			}
			w := ask(h, c.method, target, c.body, append([]string{"Content-Type", "application/graphql"}, c.header...)...)
			if w.Code != c.status || !strings.Contains(w.Body.String(), c.want) {
				t.Errorf("status %d, %.400s, want %d and %s", w.Code, w.Body, c.status, c.want)
			}
		})
	}
}

// A server that does not reveal its schema does not describe its table either.
func TestTableOfAHiddenSchema(t *testing.T) {
	t.Parallel()
	watched, m := metered(storetest.Engines()[0].Client(t))
	store := storetest.SampleStore(t, watched)
	for code, opts := range map[string]graph.Options{
		errcode.IntrospectionOff: {NoIntrospection: true}, errcode.UntrustedDocument: {TrustedOnly: true},
	} {
		h, _ := newHandler(t, store, slog.LevelInfo, server.Options{Graph: opts})
		m.reset()
		for method, body := range map[string]string{http.MethodGet: "", http.MethodPost: proposedExtension} {
			checkRefusal(t, ask(h, method, server.PathTable, body, "Content-Type", "application/graphql"), http.StatusForbidden, code, asJSON)
		}
		if requests := m.reset(); len(requests) > 0 {
			t.Errorf("%s: %d requests", code, len(requests))
		}
	}
}

// The orders are counted once for all lists of orders.
func TestOrdersAreCountedOnce(t *testing.T) {
	t.Parallel()
	watched, m := metered(storetest.Engines()[0].Client(t))
	h, _ := newHandler(t, storetest.SampleStore(t, watched), slog.LevelInfo, server.Options{})
	describedTable(t, h, http.MethodGet, "")
	m.reset()
	described, _ := describedTable(t, h, http.MethodPost, `extend type Order {
		a: Int! @field(default: 1) @list(query: "ordersByA")
		b: Int! @field(default: 1) @list(query: "ordersByB")
	}`)
	if requests := m.reset(); len(requests) != 1 || len(described.Proposal.Plan) != 2 || described.Proposal.Plan[1].Records == nil {
		t.Errorf("%d requests, the plan is %+v", len(requests), described.Proposal.Plan)
	}
}

// A proposal waits for a slot of the pool for parsing, as long as a request may take.
func TestProposalsWaitForParsing(t *testing.T) {
	t.Parallel()
	pools := admission.New(admission.Sizes{})
	parsing := pools[admission.PoolParsing]
	h, _ := newHandler(t, sampleThrough(t, forward), slog.LevelInfo, server.Options{Admission: pools, Limits: server.Limits{RequestTime: time.Millisecond}})
	if refused := parsing.Acquire(t.Context(), admission.Caller{}, parsing.Size); refused != nil {
		t.Fatal(refused)
	}
	defer parsing.Release(admission.Caller{}, parsing.Size)
	w := ask(h, http.MethodPost, server.PathTable, proposedExtension, "Content-Type", "application/graphql")
	checkRefusal(t, w, http.StatusServiceUnavailable, errcode.TimedOut, asJSON)
}

// A proposal costs points for the schema that the server builds.
func TestProposalsCostPoints(t *testing.T) {
	t.Parallel()
	h, _ := newHandler(t, sampleThrough(t, forward), slog.LevelInfo, server.Options{Graph: graph.Options{
		Rates: rate.Options{Burst: 500, Restore: 1, Now: func() time.Time { return time.Time{} }},
	}})
	for _, want := range []int{http.StatusOK, http.StatusTooManyRequests} {
		if w := ask(h, http.MethodPost, server.PathTable, "# nothing", "Content-Type", "application/graphql"); w.Code != want {
			t.Errorf("status %d, want %d: %.300s", w.Code, want, w.Body)
		}
	}
}

// Every text is refused with a line, or described.
func TestRandomTableRequests(t *testing.T) {
	t.Parallel()
	h, _ := newHandler(t, sampleThrough(t, forward), slog.LevelInfo, server.Options{})
	part := rapid.SampledFrom([]string{
		"enum ", "extend type ", "Order", "Customer", "Float", "String", "Int", " a", " b", "!", ": ", " { ", " } ", "[", "]", " @field", " @list(query: \"x\")",
		" @unique(query: \"y\")", "(default: 1)", "(default: \"\\u0001\")", "\"\\u0000\"", "\"\"\"", "\\", "\r", "\x00", "\xff", "#", "\n",
		"enum E { A B } ", "extend type Order { c: E @field(default: A) } ", "extend type Product { \"\\u000b\" d: Money @field } ",
	})
	rapid.Check(t, func(rt *rapid.T) {
		for range 5 {
			text := strings.Join(rapid.SliceOfN(part, 1, 12).Draw(rt, "parts"), "")
			if rapid.Bool().Draw(rt, "well-formed") {
				text = fmt.Sprintf("enum %s { A } extend type Order { %c%s%c a: Int @field }",
					rapid.SampledFrom([]string{"E", "Float", "Int", "Order", "query", "type"}).Draw(rt, "enum"), '"',
					rapid.SampledFrom([]string{"", "x", `\u0000`, `\u001f`, `\ud800`, `\"\"\"`, `\\`, "\xff", `\r\n`, "\ufeff", `\u007f`}).Draw(rt, "description"), '"')
			}
			if w := ask(h, http.MethodPost, server.PathTable, text, "Content-Type", "application/graphql"); w.Code != http.StatusOK && (w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), `"line":`)) {
				rt.Errorf("%q: status %d, %.300s", text, w.Code, w.Body)
			}
		}
	})
}

// Each query for items is valid and returns no error, unless the table lacks the list. Only a few
// collections have no query.
func TestItemsOfTheTableAreReadable(t *testing.T) {
	t.Parallel()
	h, _ := newHandler(t, sampleThrough(t, forward), slog.LevelInfo, server.Options{})
	m, _ := describedTable(t, h, http.MethodGet, "")
	values := map[string]string{"customerId": "cust_01", "orderId": "01HVMK3P2Q0000000000000001", "sku": "prod_100", "employeeId": "rep_001"}
	var without []string
	for _, c := range m.Collections {
		if c.Read == nil {
			without = append(without, c.In+" "+c.Key)
			continue
		}
		variables := map[string]any{}
		if c.Read.Argument != "" {
			variables[c.Read.Argument] = "x"
			if value := values[c.Read.Variable]; value != "" {
				variables[c.Read.Argument] = value
			} else if len(c.Read.Values) > 0 {
				variables[c.Read.Argument] = c.Read.Values[0]
			}
		}
		body, err := json.Marshal(map[string]any{"query": c.Read.Document, "variables": variables})
		if err != nil {
			t.Fatal(err)
		}
		w := ask(h, http.MethodPost, server.PathGraphQL, string(body))
		var got struct {
			Data   map[string]json.RawMessage
			Errors []struct{ Extensions struct{ Code string } }
		}
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		switch {
		case len(got.Errors) > 0 && got.Errors[0].Extensions.Code == "UNAVAILABLE":
		case w.Code != http.StatusOK || len(got.Errors) > 0:
			t.Errorf("%s: %.500s\n%s", c.Key, w.Body, c.Read.Document)
		case values[c.Read.Variable] != "" && strings.Contains(w.Body.String()[:40], ":null"):
			t.Errorf("%s: no record: %.200s", c.Key, w.Body)
		}
	}
	want := []string{
		"table PAYMENT#{providerReference}", "table UNMATCHED_PAYMENT#{providerReference}", "table STOCK#{sku}#{bucket}", "table SALES", "table WEBHOOK#{webhookId}",
		"table IDEMPOTENCY#{principal}#{idempotencyKey}", "table LAYOUT", "index STATUS_CHANGES#{to}", "index CATEGORY_NAMES#{category}",
	}
	if !slices.Equal(without, want) {
		t.Errorf("collections without a query: %q, want %q", without, want)
	}
}
