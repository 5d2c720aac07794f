package server_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"golang.org/x/tools/txtar"

	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/graph"
	"github.com/ordergraph/ordergraph/graph/paging"
	"github.com/ordergraph/ordergraph/internal/server"
	"github.com/ordergraph/ordergraph/internal/test/dynamolocal"
	"github.com/ordergraph/ordergraph/internal/test/golden"
	"github.com/ordergraph/ordergraph/internal/test/longtest"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

func TestMain(m *testing.M) {
	longtest.SetRapidChecks(20, 100)
	// Parallel tests often wait, for example for DynamoDB Local.
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	code := dynamolocal.Main(m)
	selected := slices.ContainsFunc([]string{"test.run", "test.skip", "test.list", "test.fuzz"}, func(name string) bool {
		return flag.Lookup(name).Value.String() != ""
	})
	if missing := neverReturned(); code == 0 && !selected && len(missing) > 0 {
		fmt.Printf("FAIL: @userErrors declares what no test has seen: %s\n", strings.Join(missing, ", "))
		code = 1
	}
	os.Exit(code)
}

// api is a server under test.
type api struct{ url string }

// serve starts a server of a store. Logged errors fail the test.
func serve(t testing.TB, store *dynamo.Store) api {
	t.Helper()
	return serveLogging(t, store, failOnWrite{t})
}

// serveLogging starts a server of a store that logs to w.
func serveLogging(t testing.TB, store *dynamo.Store, w io.Writer) api {
	t.Helper()
	handler, err := server.New(server.Options{
		Graph: graph.Options{Store: store, Cursors: paging.NewCursorSigner([]byte("a key for tests"))},
		Log:   slog.New(slog.NewTextHandler(w, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return api{s.URL + server.PathGraphQL}
}

// failOnWrite is a log writer that fails the test on any output.
type failOnWrite struct{ t testing.TB }

func (f failOnWrite) Write(b []byte) (int, error) {
	f.t.Errorf("the server logged: %s", b)
	return len(b), nil
}

// answer is a GraphQL response.
type answer struct {
	Status int             `json:"-"`
	Data   json.RawMessage `json:"data"`
	Errors []struct {
		Message    string         `json:"message"`
		Path       []any          `json:"path"`
		Extensions map[string]any `json:"extensions"`
	} `json:"errors"`
	Extensions struct {
		Explain explained `json:"explain"`
	} `json:"extensions"`
}

type explained struct {
	Requests []struct {
		AccessPattern, Operation, Index, Key, Path string
		Items, RoundTrip                           int
		ReadUnits, WriteUnits, DurationMs          float64
	}
	Totals struct {
		Requests, RoundTrips  int
		ReadUnits, WriteUnits float64
		DollarsPerMillion     json.Number
	}
}

// send sends a query with explain, and returns the status and the body. accept contains the values
// of the header Accept.
func (a api) send(t testing.TB, query string, variables json.RawMessage, accept ...string) (status int, text []byte) {
	t.Helper()
	body, err := json.Marshal(map[string]any{"query": query, "variables": variables})
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequest(http.MethodPost, a.url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set(server.ExplainHeader, "true")
	request.Header["Accept"] = accept
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err = io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, text
}

// ask sends a query with explain.
func (a api) ask(t testing.TB, query string, variables json.RawMessage) answer {
	t.Helper()
	status, text := a.send(t, query, variables)
	got := answer{Status: status}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatalf("the response to %s is not JSON: %v: %s", query, err, text)
	}
	return got
}

// read sends a query that must succeed, and decodes the data into v.
func (a api) read(t testing.TB, v any, query string, args ...any) explained {
	t.Helper()
	got := a.ask(t, fmt.Sprintf(query, args...), nil)
	if len(got.Errors) > 0 {
		t.Fatalf("%s: %+v", fmt.Sprintf(query, args...), got.Errors)
	}
	if v != nil {
		if err := json.Unmarshal(got.Data, v); err != nil {
			t.Fatal(err)
		}
	}
	return got.Extensions.Explain
}

// budget fails t if a query made another number of requests or round trips, or an unplanned
// request.
func (e explained) budget(t testing.TB, requests, roundTrips int) {
	t.Helper()
	if e.Totals.Requests != requests || e.Totals.RoundTrips != roundTrips {
		t.Errorf("%d requests in %d round trips, want %d in %d:\n%s", e.Totals.Requests, e.Totals.RoundTrips, requests, roundTrips, e)
	}
	for _, r := range e.Requests {
		if r.Path == "" {
			t.Errorf("%s %s was not planned", r.AccessPattern, r.Key)
		}
	}
}

// String returns the explain output without durations, which differ each time.
func (e explained) String() string {
	var b strings.Builder
	for _, r := range e.Requests {
		index := r.Index
		if index == "" {
			index = "table"
		}
		fmt.Fprintf(&b, "%d. %s %s %s [%s] for %s: %d items, %v read units", r.RoundTrip, r.AccessPattern, r.Operation, index, r.Key, r.Path, r.Items, r.ReadUnits)
		if r.WriteUnits > 0 {
			fmt.Fprintf(&b, ", %v write units", r.WriteUnits)
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "%d requests, %d round trips, %v read units, %v write units, $%v per million\n", e.Totals.Requests, e.Totals.RoundTrips, e.Totals.ReadUnits, e.Totals.WriteUnits, e.Totals.DollarsPerMillion)
	return b.String()
}

// On both engines, every query of testdata/golden has the same response and makes the same DynamoDB
// requests.
func TestGoldenQueries(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("testdata/golden/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	storetest.ForEachEngine(t, func(t *testing.T, db *dynamodb.Client) {
		api := serve(t, storetest.SampleStore(t, db))
		for _, name := range names {
			t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
				checkGolden(t, api, name)
			})
		}
	})
}

// Every access pattern occurs in a golden query.
func TestEveryAccessPatternHasAGoldenQuery(t *testing.T) {
	names, err := filepath.Glob("testdata/golden/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	var all []byte
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, text...)
	}
	without := map[string]string{
		"AP4":  "the orders of the sample carry their items",
		"AP15": "it is read with AP10",
		"AP32": "only subscriptions read it",
		"AP33": "only subscriptions read it",
		"AP42": "no product of the sample has several stock buckets",
		"AP43": "the table of the sample does not have the sales by day",
		"AP51": "the table of the sample does not have the list of low stock",
		"AP52": "only subscriptions read it",
		"AP60": "the table of the sample does not list changes",
		"AP58": "the sample has no webhooks",
		"AP59": "the sample has no webhooks",
		"AP55": "the table of the sample does not list orders to ship",
	}
	for _, p := range model.AccessPatterns() {
		found := bytes.Contains(all, fmt.Appendf(nil, ". %s ", p.ID))
		if excuse, excused := without[p.ID]; found == excused {
			t.Errorf("access pattern %s (%s) has a golden query: %t, and the exception %q; want one of them", p.ID, p.Description, found, excuse)
		}
	}
}

func checkGolden(t *testing.T, api api, name string) {
	archive, err := txtar.ParseFile(name)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, f := range archive.Files {
		files[f.Name] = string(f.Data)
	}
	var variables json.RawMessage
	if v, ok := files["variables.json"]; ok {
		variables = json.RawMessage(v)
	}
	got := api.ask(t, files["query.graphql"], variables)
	response := map[string]any{"data": got.Data}
	if len(got.Errors) > 0 {
		response["errors"] = got.Errors
	}
	pretty, err := json.MarshalIndent(response, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	setFile(archive, "response.json", string(pretty)+"\n")
	setFile(archive, "explain.txt", got.Extensions.Explain.String())
	golden.CheckFile(t, name, string(txtar.Format(archive)))
	for _, r := range got.Extensions.Explain.Requests {
		if r.Path == "" {
			t.Errorf("%s %s was not planned", r.AccessPattern, r.Key)
		}
	}
}

func setFile(archive *txtar.Archive, name, data string) {
	for i := range archive.Files {
		if archive.Files[i].Name == name {
			archive.Files[i].Data = []byte(data)
			return
		}
	}
	archive.Files = append(archive.Files, txtar.File{Name: name, Data: []byte(data)})
}
