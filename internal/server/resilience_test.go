package server_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/validator/rules"

	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/attempt"
	"github.com/ordergraph/ordergraph/embedded"
	"github.com/ordergraph/ordergraph/graph"
	"github.com/ordergraph/ordergraph/internal/server"
	"github.com/ordergraph/ordergraph/internal/test/faults"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// faultyStore returns a store with the sample data. choose decides which of the store's requests
// fail.
func faultyStore(t *testing.T, choose faults.Chooser, attempts attempt.GuardOptions) *dynamo.Store {
	t.Helper()
	dataset, _ := storetest.SampleDataset(t)
	db := embedded.New().Client()
	loading := storetest.NewTable(t, db, dynamo.Options{Table: "shop"})
	storetest.LoadDataset(t, loading, dataset)
	faulty, _ := faults.WrapClient(db, choose)
	store, err := dynamo.New(faulty, dynamo.Options{Table: "shop", Attempts: attempts})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// errorCodes returns the codes of the errors in a response.
func errorCodes(t *testing.T, body string) (codes []string) {
	t.Helper()
	var response struct {
		Errors []struct{ Extensions struct{ Code string } }
	}
	if err := json.Unmarshal([]byte(body), &response); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	for _, e := range response.Errors {
		codes = append(codes, e.Extensions.Code)
	}
	return codes
}

// If DynamoDB fails, the circuit breaker refuses requests, and the server is not ready. After
// DynamoDB has recovered, the server becomes ready again. The log does not contain a line for each
// refused request.
func TestCircuitBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kind, sent := faults.None, 0
		store := faultyStore(t, func(faults.Request) faults.Kind { sent++; return kind }, attempt.GuardOptions{Breaker: true})
		h, j := newHandler(t, store, slog.LevelInfo, server.Options{})
		query := func() string {
			t.Helper()
			return ask(h, http.MethodPost, server.PathGraphQL, post(aliceQuery)).Body.String()
		}
		for range attempt.BreakerMinAttempts {
			if got := query(); got != aliceAnswer {
				t.Fatal(got)
			}
		}
		kind = faults.InternalServerError
		for range attempt.BreakerMinAttempts {
			if got := errorCodes(t, query()); !slices.Equal(got, []string{"UNAVAILABLE"}) {
				t.Fatalf("while DynamoDB fails, the codes are %q", got)
			}
		}
		before, lines := sent, len(j.entries(t))
		for range 10 {
			if got := errorCodes(t, query()); !slices.Equal(got, []string{"UNAVAILABLE"}) {
				t.Errorf("while the breaker is open, the codes are %q", got)
			}
		}
		if sent != before || len(j.entries(t)) != lines {
			t.Errorf("while the breaker is open, %d requests were sent, and the log has %d more lines", sent-before, len(j.entries(t))-lines)
		}
		if state := store.AttemptGuard().BreakerState(); state != attempt.BreakerOpen || store.AttemptGuard().Stats().Rejections != 10 {
			t.Errorf("the breaker is %s, %+v", state, store.AttemptGuard().Stats())
		}
		w := ask(h, http.MethodGet, server.PathReady, "")
		if w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "circuit breaker is open") {
			t.Errorf("readiness: status %d, %s", w.Code, w.Body)
		}
		if w := ask(h, http.MethodGet, server.PathHealth, ""); w.Code != http.StatusOK {
			t.Errorf("liveness: status %d", w.Code)
		}
		kind = faults.None
		time.Sleep(attempt.BreakerOpenTime + time.Millisecond)
		if w := ask(h, http.MethodGet, server.PathReady, ""); w.Code != http.StatusOK {
			t.Errorf("after the recovery: status %d, %s", w.Code, w.Body)
		}
		for range attempt.HalfOpenProbes {
			if got := query(); got != aliceAnswer {
				t.Error(got)
			}
		}
		if state := store.AttemptGuard().BreakerState(); state != attempt.BreakerClosed {
			t.Errorf("after the recovery, the breaker is %s", state)
		}
	})
}

// Each DynamoDB request has the deadline of the operation that sends it.
func TestRequestsHaveTheOperationsDeadline(t *testing.T) {
	var mu sync.Mutex
	var deadlines []time.Time
	h, _ := newHandler(t, sampleThrough(t, func(r *http.Request, next dynamodb.HTTPClient) (*http.Response, error) {
		deadline, _ := r.Context().Deadline()
		mu.Lock()
		deadlines = append(deadlines, deadline)
		mu.Unlock()
		return next.Do(r)
	}), slog.LevelInfo, server.Options{Limits: server.Limits{RequestTime: time.Hour}})
	for _, operation := range []string{
		`{ customer(id: "cust_01") { orders { nodes { items { nodes { product { name } } } accountRep { name } } } } }`,
		`mutation { placeOrder(input: {customerId: "cust_01", items: [{sku: "prod_100", quantity: 1}], idempotencyKey: "k"}) { order { id customer { orderCount } } } }`,
	} {
		deadlines = nil
		before := time.Now()
		if body := ask(h, http.MethodPost, server.PathGraphQL, post(operation)).Body.String(); strings.Contains(body, "errors") {
			t.Fatal(body)
		}
		if len(deadlines) < 3 {
			t.Errorf("%d requests, want 3 or more", len(deadlines))
		}
		for _, deadline := range deadlines {
			if deadline.Before(before.Add(time.Hour)) || !deadline.Equal(deadlines[0]) {
				t.Errorf("the deadlines of the requests are %v", deadlines)
				break
			}
		}
	}
}

// If one DynamoDB request fails, the response contains an error for each field that needs the
// request. For each error, only the closest nullable field is null. All other fields have their
// usual values.
func TestPartialAnswers(t *testing.T) {
	var mu sync.Mutex
	var bodies []string
	failing := ""
	store := faultyStore(t, func(r faults.Request) faults.Kind {
		mu.Lock()
		defer mu.Unlock()
		bodies = append(bodies, string(r.Body))
		if string(r.Body) == failing {
			return faults.InternalServerError
		}
		return faults.None
	}, attempt.GuardOptions{})
	h, _ := newHandler(t, store, slog.LevelError, server.Options{})
	partial := 0
	for _, query := range []string{
		`{ a: customer(id: "cust_01") { name accountRep { name warehouse { name } } orders(first: 2) { nodes { id accountRep { name } items { nodes { quantity product { name } } } } } }
		   b: product(sku: "prod_100") { name } c: customer(id: "cust_002") { name } }`,
		`{ warehouse(id: "wh_pdx") { name inventory { nodes { quantity product { name } } } } employee(id: "emp_01") { name warehouse { name } } order(id: "01HVNR4Q3R0000000000000002") { status customer { name } timeline { nodes { type } } } }`,
		`{ customers(first: 2) { nodes { name accountRep { name } } } products: product(sku: "prod_101") { name inventory { nodes { warehouse { name } } } } }`,
	} {
		document, errs := gqlparser.LoadQueryWithRules(graph.Schema(), query, rules.NewDefaultRules())
		if errs != nil {
			t.Fatal(errs)
		}
		failing, bodies = "", nil
		want, _ := answerOf(t, h, query)
		requests := slices.Clone(bodies)
		if len(requests) < 4 {
			t.Fatalf("%s: only %d requests", query, len(requests))
		}
		for _, failing = range requests {
			got, paths := answerOf(t, h, query)
			if len(paths) == 0 {
				t.Errorf("no error although this request failed: %s", failing)
			}
			nulls := map[string]bool{}
			for _, path := range paths {
				nulls[nullPosition(document.Operations[0].SelectionSet, path)] = true
			}
			checkAnswer(t, "", want, got, nulls)
			if got != nil {
				partial++
			}
		}
	}
	if partial < 10 {
		t.Errorf("only %d partial responses", partial)
	}
}

// answerOf returns the data of a response and the paths of its errors.
func answerOf(t *testing.T, h http.Handler, query string) (data any, paths [][]any) {
	t.Helper()
	var response struct {
		Data   any
		Errors []struct{ Path []any }
	}
	body := ask(h, http.MethodPost, server.PathGraphQL, post(query)).Body.String()
	if err := json.Unmarshal([]byte(body), &response); err != nil {
		t.Fatal(err)
	}
	for _, e := range response.Errors {
		paths = append(paths, e.Path)
	}
	return response.Data, paths
}

// nullPosition returns the position that an error makes null: the closest nullable field or list
// element on its path. It returns "" if the whole data is null.
func nullPosition(selections ast.SelectionSet, path []any) string {
	position, null := "", ""
	var at *ast.Type
	for _, step := range path {
		if name, ok := step.(string); ok {
			for _, s := range selections {
				if f := s.(*ast.Field); f.Alias == name {
					at, selections = f.Definition.Type, f.SelectionSet
					break
				}
			}
		} else {
			at = at.Elem
		}
		position += fmt.Sprint("/", step)
		if !at.NonNull {
			null = position
		}
	}
	return null
}

// checkAnswer checks that got equals want, but is null at the positions in nulls.
func checkAnswer(t *testing.T, position string, want, got any, nulls map[string]bool) {
	t.Helper()
	if got == nil && nulls[position] {
		return
	}
	switch want := want.(type) {
	case map[string]any:
		object, _ := got.(map[string]any)
		if len(object) != len(want) {
			t.Errorf("%s is %v, want %v", position, got, want)
			return
		}
		for name, value := range want {
			checkAnswer(t, position+"/"+name, value, object[name], nulls)
		}
	case []any:
		list, _ := got.([]any)
		if len(list) != len(want) {
			t.Errorf("%s is %v, want %v", position, got, want)
			return
		}
		for i, value := range want {
			checkAnswer(t, fmt.Sprint(position, "/", i), value, list[i], nulls)
		}
	default:
		if !reflect.DeepEqual(want, got) {
			t.Errorf("%s is %v, want %v", position, got, want)
		}
	}
}
