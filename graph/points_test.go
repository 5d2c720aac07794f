//go:build unix

package graph

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/lexer"
	"github.com/vektah/gqlparser/v2/parser"
	"pgregory.net/rapid"

	"github.com/ordergraph/ordergraph/access"
	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/graph/document"
	"github.com/ordergraph/ordergraph/graph/errcode"
	"github.com/ordergraph/ordergraph/graph/explain"
	"github.com/ordergraph/ordergraph/graph/operation"
	"github.com/ordergraph/ordergraph/graph/paging"
	"github.com/ordergraph/ordergraph/internal/setting"
	"github.com/ordergraph/ordergraph/internal/test/longtest"
	"github.com/ordergraph/ordergraph/internal/test/raceenabled"
	"github.com/ordergraph/ordergraph/internal/test/replay"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// mostUsed is the maximum ratio of an operation's use of a resource to the amount that its points
// pay for.
const mostUsed = 3

// referenceFields is the number of fields of a document that gqlparser parsed in
// operation.CPUTimePerPoint on the machine that determined the cost of points. The parser is not
// part of this module. A slower machine slows it down, but a slower executor does not.
const referenceFields = 200

// usage is the cost of a request and the resources that it used.
type usage struct {
	points int
	cpu    time.Duration
	// allocated is the number of allocated bytes.
	allocated uint64
	// body and answer are numbers of bytes. parsed and visited are numbers of nodes of the document.
	body, answer, readUnits, writeUnits, parsed, visited float64
}

// timing is the cost of a request and its processor time in points.
type timing struct {
	points int
	used   float64
}

// No operation uses more than three times the bytes, units, document nodes and processor time that
// its points pay for, whether it is executed or refused.
func TestPointsPayForResources(t *testing.T) {
	now := &manualClock{now: hardStart.AddDate(1, 0, 0)}
	// Two executors have a table each. The first one explains the units. On the second one, the same
	// operation is repeated to measure its processor time.
	executor := func(db *dynamodb.Client) *Executor {
		e := NewExecutor(Options{Store: reproducibleOn(t, db, now), Cursors: paging.NewCursorSigner([]byte("a key for tests")), Rates: (&manualClock{}).rates(1<<31-1, 1), Report: func(_ context.Context, err error) { t.Error(err) }})
		stockFull(t, e)
		return e
	}
	e := executor(storetest.Engines()[0].Client(t))
	replaying, table := replay.WrapClient(storetest.Engines()[0].Client(t))
	s := stopwatch{executor: executor(replaying), table: table}
	defer s.begin(t)()
	requests := rapid.Custom(func(rt *rapid.T) Request { return Request{Query: rapid.SampledFrom(requestKinds).Draw(rt, "kind")(rt)} })
	var all []usage
	var timings []timing
	refused, over, worst, kept := 0, 0, 0.0, map[string]bool{}
	for i := range longtest.Size(60, 1000) {
		if i%10 == 0 {
			runtime.GC()
		}
		r := requests.Example(i)
		now.forward(time.Second)
		u, result := used(WithExplain(t.Context()), t, e, r)
		if kept[r.Query] {
			u.parsed, u.visited = 0, 0 // the document is cached
		}
		kept[r.Query] = true
		all = append(all, u)
		if result.Outcome == Refused {
			refused++
		}
		for what, times := range map[string]float64{
			"bytes of its body": u.body / operation.BytesPerPoint, "bytes of its answer": u.answer / operation.BytesPerPoint,
			"read units": u.readUnits / operation.ReadUnitsPerPoint, "write units": u.writeUnits / operation.WriteUnitsPerPoint,
			"parsed nodes": u.parsed / operation.ParsedNodesPerPoint, "visited nodes": u.visited / operation.VisitedNodesPerPoint,
		} {
			if times /= float64(u.points); times > mostUsed {
				t.Errorf("a request uses %.1f times the %s that its charge of %d points covers: %+v\n%.1000s\n%.300s %v", times, what, u.points, u, r.Query, result.Data, result.Errors)
			}
		}
		unknown, remembered := s.measure(t, r)
		timings = append(timings, unknown)
		for _, m := range []timing{unknown, remembered} {
			times := m.used / float64(m.points)
			worst = max(worst, times)
			if times > mostUsed {
				over++
				if !raceenabled.On && testing.CoverMode() == "" { // both slow down this module only
					t.Errorf("a request uses %.1f times the processor time that its charge of %d points covers: %.1000s", times, m.points, r.Query)
				}
			}
		}
	}
	points := func(u usage) float64 { return float64(u.points) }
	bytes := func(u usage) float64 { return u.body + u.answer }
	units := func(u usage) float64 { return u.readUnits + u.writeUnits }
	cpu := spearman(timings, func(m timing) float64 { return float64(m.points) }, func(m timing) float64 { return m.used })
	t.Logf("%d requests, %d refused: rank correlation of points with the processor's time %.2f, bytes %.2f, units %.2f; %d took more than %d times the time that their points pay for, the worst %.1f times; %d were measured again",
		len(all), refused, cpu, spearman(all, points, bytes), spearman(all, points, units), over, mostUsed, worst, s.again)
	if refused < len(all)/20 || refused > len(all)/2 {
		t.Errorf("%d of %d requests are refused", refused, len(all))
	}
}

// A request can use one long text for many arguments. Its points still pay for the processor time.
func TestPointsPayForLongTexts(t *testing.T) {
	now := &manualClock{now: hardStart.AddDate(1, 0, 0)}
	replaying, table := replay.WrapClient(storetest.Engines()[0].Client(t))
	s := stopwatch{table: table, executor: NewExecutor(Options{
		Store: reproducibleOn(t, replaying, now), Cursors: paging.NewCursorSigner([]byte("a key for tests")),
		Rates: (&manualClock{}).rates(1<<31-1, 1), Report: func(_ context.Context, err error) { t.Error(err) },
	})}
	defer s.begin(t)()
	const size, repetitions = 120_000, 30
	for _, field := range []string{
		`products(first: 1, namePrefix: $text) { nodes { sku } }`,
		`products(first: 1, category: $text) { nodes { sku } }`,
		`products(first: 1, after: $text) { nodes { sku } }`,
		`product(sku: $id) { name }`,
		`customers(first: 1, namePrefix: $text) { nodes { id } }`,
		`customers(first: 1, emailPrefix: $text) { nodes { id } }`,
		`customerByEmail(email: $text) { id }`,
		`employeesByName(first: 1, name: $text) { nodes { id } }`,
		`employeesByJobTitle(first: 1, jobTitle: $text) { nodes { id } }`,
		`order(id: $id) { status }`,
		`updateCustomer(input: {id: $id, name: $text, email: $text, phoneNumbers: [$text]}) { userErrors { code } }`,
		`cancelOrder(input: {orderId: $id, note: $text, idempotencyKey: $text}) { userErrors { code } }`,
		`updateProduct(input: {sku: $id, name: $text, category: $text}) { userErrors { code } }`,
		`updateShippingAddress(input: {orderId: $id, shippingAddress: {recipient: $text, line1: $text, city: $text, postalCode: $text, countryCode: $text}}) { userErrors { code } }`,
	} {
		kind := "query"
		if strings.Contains(field, "(input:") {
			kind = "mutation"
		}
		var variables []string
		for name, typ := range map[string]string{"$text": "String!", "$id": "ID!"} {
			if strings.Contains(field, name) {
				variables = append(variables, name+": "+typ)
			}
		}
		query := kind + " (" + strings.Join(variables, ", ") + ") {" + repeatNumbered(repetitions, "a%d: "+field+" ") + "}"
		for _, part := range []string{"a", "\u0390", "\u03b9\u0308\u0301", "\uac00", "\u200b", "a\u0301\u0323"} {
			text := strings.Repeat(part, size/len(part))
			_, m := s.measure(t, Request{Query: query, Variables: map[string]any{"text": text, "id": text}})
			if times := m.used / float64(m.points); times > mostUsed && !raceenabled.On && testing.CoverMode() == "" {
				t.Fatalf("with texts of %q, a request uses %.1f times the processor time that its charge of %d points covers: %s", part, times, m.points, field)
			}
		}
	}
}

// stopwatch measures the processor time of operations in points. A point is the time of a reference
// function that runs at the same moment. A slow machine therefore slows down both. The minimum of
// several runs counts, because other work on the machine only adds time.
type stopwatch struct {
	executor *Executor
	table    *replay.Client
	// collection is the processor time of the garbage collector per allocated byte, in points.
	collection float64
	// texts is the number of documents that were sent. again is the number of measurements that were
	// repeated because they exceeded the limit.
	texts, again int
}

// begin prepares the process for measurements until the returned function is called. It disables
// automatic garbage collections, because a collection would charge one operation for the garbage of
// many. Instead, every operation pays for the bytes that it allocates. The process uses one
// processor, because the time to wake up another one depends on the load of the machine.
func (s *stopwatch) begin(t *testing.T) (end func()) {
	t.Helper()
	processors, percent := runtime.GOMAXPROCS(1), debug.SetGCPercent(-1)
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	// By default, a collection starts when the number of allocated bytes equals the number of live
	// bytes.
	s.collection = least(t, func() time.Duration { return timed(t, runtime.GC) }) / float64(m.HeapAlloc)
	return func() { runtime.GOMAXPROCS(processors); debug.SetGCPercent(percent) }
}

// measure measures a request with a new document and the same request with a cached document.
func (s *stopwatch) measure(t *testing.T, r Request) (unknown, remembered timing) {
	t.Helper()
	s.table.Record()
	execute := func(r Request) usage {
		s.table.Rewind()
		u, _ := charged(t.Context(), t, s.executor, r)
		return u
	}
	renewed := func() Request {
		s.texts++
		// Additional white space makes a new text of the same document.
		return Request{Query: r.Query + strings.NewReplacer("0", " ", "1", "\t").Replace(strconv.FormatInt(int64(s.texts), 2)), Variables: r.Variables}
	}
	known := renewed()
	execute(known) // the table's answers are recorded
	repeated := func(next func() Request) (m timing) {
		m.used = math.Inf(1)
		for attempt := 0; attempt < 20 && m.used > mostUsed*float64(m.points); attempt++ {
			if attempt > 0 {
				s.again++
			}
			var u usage
			cpu := least(t, func() time.Duration { u = execute(next()); return u.cpu })
			m.points, m.used = u.points, min(m.used, cpu+s.collection*float64(u.allocated))
		}
		return m
	}
	return repeated(renewed), repeated(func() Request { return known })
}

// least returns the minimum processor time of several runs, in points.
func least(t *testing.T, run func() time.Duration) float64 {
	t.Helper()
	reference := "{" + strings.Repeat("name ", referenceFields) + "}"
	point, cpu := time.Hour, time.Hour
	for range 3 {
		point = min(point, timed(t, func() {
			if _, err := parser.ParseQuery(&ast.Source{Input: reference}); err != nil {
				t.Fatal(err)
			}
		}))
		cpu = min(cpu, run())
	}
	return float64(cpu) / float64(point)
}

// timed returns the processor time of a function.
func timed(t *testing.T, run func()) time.Duration {
	t.Helper()
	began := processorTime(t)
	run()
	return processorTime(t) - began
}

// stockFull creates products with enough stock for the largest orders.
func stockFull(t *testing.T, e *Executor) {
	t.Helper()
	for i := range commerce.MaxLines {
		for _, mutation := range []string{
			fmt.Sprintf(`createProduct(input: {sku: "p%d", name: "Product", category: "Kitchen", unitPrice: {amount: "1.50"}})`, i),
			fmt.Sprintf(`setInventoryLevel(input: {sku: "p%d", warehouseId: "wh_sea", quantity: 1000000})`, i),
		} {
			if got := e.Execute(t.Context(), Request{Query: `mutation { ` + mutation + ` { userErrors { message } } }`}); !strings.Contains(string(got.Data), `"userErrors":[]`) {
				t.Fatalf("%s: %s %v", mutation, got.Data, got.Errors)
			}
		}
	}
}

// charged executes a request as the server does. It measures the points, the processor time and the
// memory of the request.
func charged(ctx context.Context, t *testing.T, e *Executor, r Request) (u usage, result Result) {
	t.Helper()
	principal := access.AnonymousAdmin().ID
	body, err := json.Marshal(map[string]any{"query": r.Query, "variables": r.Variables})
	if err != nil {
		t.Fatal(err)
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	allocated, before := m.TotalAlloc, e.rates.Available(principal)
	u.body, u.cpu = float64(len(body)), timed(t, func() {
		if r.ChargedPoints, _ = e.Charge(ctx, len(body)); r.ChargedPoints == 0 {
			t.Fatal("nothing was charged")
		}
		result = e.Execute(ctx, r)
	})
	u.points = before - e.rates.Available(principal)
	runtime.ReadMemStats(&m)
	u.allocated = m.TotalAlloc - allocated
	return u, result
}

// used executes a request, and measures everything that it uses.
func used(ctx context.Context, t *testing.T, e *Executor, r Request) (usage, Result) {
	t.Helper()
	u, result := charged(ctx, t, e, r)
	u.answer = float64(len(result.Data))
	for _, err := range result.Errors {
		text, err := json.Marshal(err)
		if err != nil {
			t.Fatal(err)
		}
		u.answer += float64(len(text))
	}
	if explained, ok := result.Extensions["explain"].(explain.Explanation); ok {
		u.readUnits, u.writeUnits = explained.Totals.ReadUnits, explained.Totals.WriteUnits
	}
	u.parsed, u.visited = documentSize(r.Query)
	if len(result.Errors) > 0 && result.Errors[0].Extensions["code"] != errcode.BadUserInput {
		u.visited = 0 // most limits are checked before validation
	}
	return u, result
}

func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// documentSize returns estimates of a document's parsed and visited nodes. A node has about two
// tokens, and the number of tokens is limited. Visited nodes are counted with every spread replaced
// by its fragment.
func documentSize(text string) (parsed, visited float64) {
	tokens := 0
	for l, most := lexer.New(&ast.Source{Input: text}), setting.OrDefaults(document.Limits{}).Tokens; tokens < most; tokens++ {
		if token, err := l.ReadToken(); err != nil || token.Kind == lexer.EOF {
			break
		}
	}
	read, err := parser.ParseQuery(&ast.Source{Input: text})
	if err != nil {
		return float64(tokens) / 2, 0
	}
	var size func(ast.SelectionSet) float64
	size = func(set ast.SelectionSet) (n float64) {
		for _, s := range set {
			n++
			switch s := s.(type) {
			case *ast.Field:
				n += size(s.SelectionSet)
			case *ast.InlineFragment:
				n += size(s.SelectionSet)
			case *ast.FragmentSpread:
				if f := read.Fragments.ForName(s.Name); f != nil {
					n += size(f.SelectionSet)
				}
			}
		}
		return n
	}
	for _, o := range read.Operations {
		visited += size(o.SelectionSet)
	}
	return float64(tokens) / 2, visited
}

// spearman returns the rank correlation of two series.
func spearman[T any](all []T, of, with func(T) float64) float64 {
	ranks := func(value func(T) float64) []float64 {
		values := make([]float64, len(all))
		for i, u := range all {
			values[i] = value(u)
		}
		sorted := slices.Sorted(slices.Values(values))
		ranks := make([]float64, len(all))
		for i, v := range values {
			first, found := slices.BinarySearch(sorted, v)
			last := first
			for found && last < len(sorted) && sorted[last] == v {
				last++
			}
			ranks[i] = float64(first+last-1) / 2 // equal values have the same rank
		}
		return ranks
	}
	a, b := ranks(of), ranks(with)
	mean := float64(len(all)-1) / 2
	var ab, aa, bb float64
	for i := range a {
		ab, aa, bb = ab+(a[i]-mean)*(b[i]-mean), aa+(a[i]-mean)*(a[i]-mean), bb+(b[i]-mean)*(b[i]-mean)
	}
	return ab / math.Sqrt(aa*bb)
}

// requestKinds draw requests of all kinds, from typical requests to attempts to use many resources
// for few points.
var requestKinds = []func(*rapid.T) string{
	func(t *rapid.T) string { return drawSelections(t, parsedSchema.Query, 4) },
	func(t *rapid.T) string { return drawSelections(t, parsedSchema.Query, 2) },
	func(t *rapid.T) string {
		return "{__schema" + drawSelections(t, parsedSchema.Types["__Schema"], 3) + "}"
	},
	drawMutation,
	drawMutation,
	// Orders of any length, with and without payload. Some orders have already been placed.
	func(t *rapid.T) string {
		input := fmt.Sprintf(`customerId: %s, items: [%s]`, rapid.SampledFrom([]string{`"cust_01"`, `"cust_001"`, `"nobody"`}).Draw(t, "customer"), drawnLines(t))
		if rapid.Bool().Draw(t, "key") {
			input += fmt.Sprintf(`, idempotencyKey: "k%d"`, rapid.IntRange(1, 3).Draw(t, "keys"))
		}
		return `mutation { placeOrder(input: {` + input + `}) { ` + rapid.SampledFrom([]string{`__typename`, `order { id items(first: 50) { nodes { name product { available } } } }`, `userErrors { code }`}).Draw(t, "payload") + ` } }`
	},
	func(t *rapid.T) string {
		return `{ quote(input: {items: [` + drawnLines(t) + `]}) { ` + rapid.SampledFrom([]string{`__typename`, `total { amount }`, `lines { sku name subtotal { amount } }`}).Draw(t, "payload") + ` } }`
	},
	// Large texts with many aliases.
	func(t *rapid.T) string {
		return fmt.Sprintf(`mutation { cancelOrder(input: {orderId: "01HVNR4Q3R0000000000000002", note: %q}) { order { timeline { nodes { %s } } } } }`,
			strings.Repeat(rapid.SampledFrom([]string{"x", "\n", "é"}).Draw(t, "text"), size(t, "long", 0, commerce.MaxNote/2)), repeatNumbered(size(t, "aliases", 1, 97), "a%d: note "))
	},
	func(t *rapid.T) string {
		return `{ order(id: "01HVNR4Q3R0000000000000002") { timeline(last: 1) { nodes { ` + repeatNumbered(size(t, "aliases", 1, 97), "a%d: note ") + ` } } } }`
	},
	func(*rapid.T) string { return `{ _service { sdl } }` },
	// Many lists of a record that may be missing.
	func(t *rapid.T) string {
		return `{ customer(id: ` + rapid.SampledFrom([]string{`"nobody"`, `"cust_01"`}).Draw(t, "id") + `) { ` +
			repeatNumbered(size(t, "lists", 1, 90), "a%d: orders(first: %d) { __typename } ") + ` } }`
	},
	// Pages of every size, including zero.
	func(t *rapid.T) string {
		return fmt.Sprintf(`{ %s(first: %d) { nodes { %s } } }`, rapid.SampledFrom([]string{"orders", "customers", "products", "employees"}).Draw(t, "list"), rapid.IntRange(-1, 101).Draw(t, "first"), "__typename")
	},
	// Documents that are expensive to reject or to accept.
	func(t *rapid.T) string {
		last := size(t, "fragments", 1, 3)
		return fmt.Sprintf(`query Q%d {customers(first: 1) {nodes {...A}}}`, rapid.IntRange(0, 1000).Draw(t, "name")) +
			strings.ReplaceAll(nestedFragments("ABC"[:last], size(t, "spreads", 1, 20)), "Query", "Customer") +
			fmt.Sprintf(" fragment %c on Customer {%s}", 'A'+last, strings.Repeat(rapid.SampledFrom([]string{"nonsense ", "name ", "a: name "}).Draw(t, "field"), size(t, "fields", 1, 700)))
	},
	func(t *rapid.T) string {
		operations := size(t, "operations", 2, 150)
		return repeatNumbered(operations, "query Q%d {...F} ") + `fragment F on Query {customers {nodes {` + strings.Repeat("name ", size(t, "fields", 1, 300)) + `}}}`
	},
	func(t *rapid.T) string {
		return `{` + nested(size(t, "levels", 0, 300), `... on Query {`, strings.Repeat("__typename ", size(t, "fields", 1, 40)), `}`) + `}`
	},
	func(t *rapid.T) string {
		return strings.Repeat(rapid.SampledFrom([]string{"{", "a ", "{ customers ", `"x" `, "# a comment\n", "( "}).Draw(t, "text"), size(t, "times", 1, 3000))
	},
	func(t *rapid.T) string {
		return strings.Repeat("fragment F on Query {"+strings.Repeat("a ", size(t, "fields", 1, 400))+"} ", size(t, "fragments", 1, 2)) // no operation
	},
	func(t *rapid.T) string {
		return `query(` + repeatNumbered(size(t, "variables", 1, 390), "$a%d: Int ") + `) {__typename}`
	},
}

// size draws a size. Half of the sizes are the minimum or the maximum.
func size(t *rapid.T, label string, least, most int) int {
	return rapid.OneOf(rapid.IntRange(least, most), rapid.SampledFrom([]int{least, most})).Draw(t, label)
}

// drawnLines draws the lines of an order.
func drawnLines(t *rapid.T) string {
	lines := repeatNumbered(rapid.SampledFrom([]int{0, 1, 3, 20, commerce.MaxLines, commerce.MaxLines + 1}).Draw(t, "lines"), `{sku: "p%d", quantity: 1} `)
	if rapid.IntRange(0, 3).Draw(t, "wrong") == 0 {
		lines += `{sku: "nothing", quantity: 1}`
	}
	return lines
}
