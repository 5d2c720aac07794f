package server_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/access"
	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/derive"
	"github.com/ordergraph/ordergraph/graph"
	"github.com/ordergraph/ordergraph/graph/paging"
	"github.com/ordergraph/ordergraph/internal/server"
	"github.com/ordergraph/ordergraph/internal/test/faults"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
	"github.com/ordergraph/ordergraph/internal/test/workload"
)

// fixture is an order book under test. The test sees the requests to DynamoDB and the records of
// the table.
type fixture struct {
	api
	store *dynamo.Store
	table string
	// db accesses the table directly.
	db    *dynamodb.Client
	wire  *wire
	clock *clock
}

// opening is the initial time of a fixture's clock.
var opening = time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)

// newFixture serves a dataset from a new table, with a clock that stands still and IDs that count
// up.
func newFixture(t testing.TB, db *dynamodb.Client, dataset commerce.Dataset) *fixture {
	t.Helper()
	return newShardedFixture(t, db, dataset, 1)
}

// newShardedFixture is newFixture with a table of several shards.
func newShardedFixture(t testing.TB, db *dynamodb.Client, dataset commerce.Dataset, shards int) *fixture {
	t.Helper()
	return newFixtureWithOptions(t, db, dataset, dynamo.Options{Shards: shards})
}

// newFixtureWithOptions is newFixture with options for the Store.
func newFixtureWithOptions(t testing.TB, db *dynamodb.Client, dataset commerce.Dataset, opts dynamo.Options) *fixture {
	t.Helper()
	w := &wire{next: storetest.WithoutResponseDate(db).Options().HTTPClient}
	watched := dynamodb.New(db.Options(), func(o *dynamodb.Options) {
		o.HTTPClient = w
		// The faults of the wire are transient, but the embedded store's client would never retry.
		if _, never := o.Retryer.(aws.NopRetryer); never {
			o.Retryer = faults.OneAttempt()
		}
	})
	s := &fixture{db: db, wire: w, clock: &clock{now: opening}}
	opts.Clock, opts.Entropy, opts.WebhookKeys = s.clock.Now, &countingEntropy{}, webhookKeys(t, "a")
	s.store = storetest.NewTable(t, watched, opts)
	description, err := s.store.DescribeTable(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.table = description.Name
	if err := derive.Complete(&dataset); err != nil {
		t.Fatal(err)
	}
	storetest.LoadDataset(t, s.store, dataset)
	s.restart(t)
	return s
}

// restart starts a new server of the table.
func (s *fixture) restart(t testing.TB) {
	t.Helper()
	handler, err := server.New(server.Options{
		Graph: graph.Options{Store: s.store, Cursors: paging.NewCursorSigner([]byte("a key for tests"))},
		Log:   slog.New(slog.NewTextHandler(failOnWrite{t}, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler.ServeHTTP(w, r.WithContext(as(r.Context(), r.URL.Query().Get("as"))))
	}))
	t.Cleanup(srv.Close)
	s.api = api{srv.URL + server.PathGraphQL}
}

// as returns the context of a request with the caller in the URL, as in ?as=ann.
func as(ctx context.Context, caller string) context.Context {
	if caller == "" {
		return ctx
	}
	return graph.WithPrincipal(ctx, access.Principal{ID: caller, Name: caller, Role: access.RoleAdmin})
}

// as returns the fixture as another caller.
func (s *fixture) as(caller string) *fixture {
	c := *s
	c.api = api{s.url + "?as=" + caller}
	return &c
}

// clock returns the time that a test sets.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

// Now returns the time.
func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// pass advances the time.
func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// countingEntropy is entropy that counts up, so that IDs are the same in every run.
type countingEntropy struct {
	mu sync.Mutex
	n  uint64
}

func (c *countingEntropy) Read(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	clear(b)
	if len(b) >= 8 {
		binary.BigEndian.PutUint64(b[len(b)-8:], c.n)
	}
	return len(b), nil
}

// wire intercepts the requests of the SDK. It counts requests, records transactions, and lets a
// test act before a transaction.
type wire struct {
	next interface {
		Do(*http.Request) (*http.Response, error)
	}

	mu           sync.Mutex
	operations   []string
	lookups      []action
	transactions []transaction
	before       func()
	// losesNextResponse makes the response to the next transaction get lost.
	losesNextResponse bool
}

// transaction is a TransactWriteItems request.
type transaction struct {
	actions []action
	// status is 200 if the transaction was committed.
	status int
}

// action is a Put, Update, Delete or ConditionCheck of a transaction, or a read of the record with
// these keys.
type action struct{ operation, pk, sk string }

// Do forwards a request.
func (w *wire) Do(r *http.Request) (*http.Response, error) {
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	w.mu.Lock()
	w.operations = append(w.operations, operation)
	w.lookups = append(w.lookups, lookupsOf(operation, body)...)
	var before func()
	var loses bool
	if operation == "TransactWriteItems" {
		before, w.before = w.before, nil
		loses, w.losesNextResponse = w.losesNextResponse, false
	}
	w.mu.Unlock()
	if before != nil {
		before()
	}
	response, err := w.next.Do(r)
	if err == nil && operation == "TransactWriteItems" {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.transactions = append(w.transactions, transaction{actions: actionsOf(body), status: response.StatusCode})
	}
	if loses && err == nil {
		_ = response.Body.Close()
		return nil, io.ErrUnexpectedEOF
	}
	return response, err
}

// key is a record, or its keys, in a request.
type key map[string]map[string]any

func (k key) action(operation string) action {
	return action{operation, fmt.Sprint(k["pk"]["S"]), fmt.Sprint(k["sk"]["S"])}
}

// lookupsOf returns the records that a GetItem or BatchGetItem reads. For other operations it
// returns no record.
func lookupsOf(operation string, body []byte) []action {
	var in struct {
		Key          key
		RequestItems map[string]struct{ Keys []key }
	}
	switch operation {
	case "GetItem", "BatchGetItem":
	default:
		return nil
	}
	if err := json.Unmarshal(body, &in); err != nil {
		panic(err)
	}
	if operation == "GetItem" {
		return []action{in.Key.action(operation)}
	}
	var found []action
	for _, request := range in.RequestItems {
		for _, k := range request.Keys {
			found = append(found, k.action(operation))
		}
	}
	return found
}

func actionsOf(body []byte) []action {
	var in struct {
		TransactItems []map[string]struct{ Key, Item key }
	}
	if err := json.Unmarshal(body, &in); err != nil {
		panic(err)
	}
	actions := make([]action, 0, len(in.TransactItems))
	for _, item := range in.TransactItems {
		for operation, a := range item {
			k := a.Key
			if k == nil {
				k = a.Item
			}
			actions = append(actions, k.action(operation))
		}
	}
	return actions
}

// beforeNextTransaction calls do just before the next transaction reaches the engine.
func (w *wire) beforeNextTransaction(do func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.before = do
}

// loseNextResponse makes the response to the next transaction get lost. The transaction is
// executed, and the SDK sees a closed connection.
func (w *wire) loseNextResponse() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.losesNextResponse = true
}

// reset resets the records of requests.
func (w *wire) reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.operations, w.lookups, w.transactions = nil, nil, nil
}

// operationNames returns the operations since forget.
func (w *wire) operationNames() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.operations)
}

// read returns the records that were read since forget.
func (w *wire) read() []action {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.lookups)
}

// committed returns the transactions since forget that were committed.
func (w *wire) committed() []transaction {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(w.transactions), func(t transaction) bool { return t.status != http.StatusOK })
}

// records returns all records of the table as text, by their keys.
func (s *fixture) records(t testing.TB) map[string]string {
	t.Helper()
	records := map[string]string{}
	pages := dynamodb.NewScanPaginator(s.db, &dynamodb.ScanInput{TableName: &s.table})
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range page.Items {
			k := storetest.FormatValue(r["pk"]) + " " + storetest.FormatValue(r["sk"])
			delete(r, "pk")
			delete(r, "sk")
			records[k] = storetest.Record(r).String()
		}
	}
	return records
}

// changes returns the difference of records as text: a line with - for each old record, and a line
// with + for each new one.
func changes(before, after map[string]string) string {
	var b strings.Builder
	keys := maps.Clone(before)
	maps.Copy(keys, after)
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		old, hadRecord := before[k]
		current, hasRecord := after[k]
		if old == current && hadRecord == hasRecord {
			continue
		}
		if hadRecord {
			fmt.Fprintf(&b, "- %s %s\n", k, old)
		}
		if hasRecord {
			fmt.Fprintf(&b, "+ %s %s\n", k, current)
		}
	}
	return b.String()
}

// change changes a record directly in the table. set has attributes with their new values, or nil
// to remove an attribute.
func (s *fixture) change(t testing.TB, pk, sk string, set map[string]attribute) {
	t.Helper()
	k := storetest.ItemKey(pk, sk)
	out, err := s.db.GetItem(context.Background(), &dynamodb.GetItemInput{TableName: &s.table, Key: k})
	if err != nil {
		t.Error(err)
		return
	}
	record := out.Item
	if record == nil {
		record = k
	}
	for name, v := range set {
		if v == nil {
			delete(record, name)
		} else {
			record[name] = v
		}
	}
	if _, err := s.db.PutItem(context.Background(), &dynamodb.PutItemInput{TableName: &s.table, Item: record}); err != nil {
		t.Error(err)
	}
}

// returned has the user errors that mutations have returned in any test, as "mutation type".
var returned sync.Map

// neverReturned returns the user errors that mutations declare and no test has seen.
func neverReturned() []string {
	var missing []string
	for mutation, types := range workload.DeclaredUserErrors {
		for _, typ := range types {
			// Only a unique custom field causes this error of these mutations, which e2e/customfields tests.
			unique := typ == "AlreadyExists" && (mutation == "placeOrder" || strings.HasPrefix(mutation, "update"))
			if _, ok := returned.Load(mutation + " " + typ); !ok && !unique {
				missing = append(missing, mutation+" "+typ)
			}
		}
	}
	slices.Sort(missing)
	return missing
}

// attribute is a value of a record.
type attribute = types.AttributeValue

func number(n int) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: fmt.Sprint(n)}
}

// mutationInput is a mutation's input.
type mutationInput map[string]any

// with returns the input with another field.
func (i mutationInput) with(name string, value any) mutationInput {
	out := maps.Clone(i)
	out[name] = value
	return out
}

const userErrors = `userErrors { __typename code message field
	... on VersionConflict { currentVersion }
	... on InvalidTransition { from to allowed }
	... on InsufficientStock { sku available }
	... on PriceChanged { currentTotal { amount currencyCode } lines { sku name quantity unitPrice { amount } subtotal { amount } available inStock } }
	... on TooManyLines { limit } }`

// outcome is the result of a mutation.
type outcome struct {
	answer
	// Value is the payload's record as JSON, or null.
	Value      json.RawMessage
	UserErrors []userError
}

type userError struct {
	Typename         string `json:"__typename"`
	Code, Message    string
	Field            []string
	CurrentVersion   int
	From, To         string
	Allowed          []string
	SKU              string
	Available, Limit int
	CurrentTotal     amount
	Lines            json.RawMessage
}

// String returns the code and the field.
func (e userError) String() string { return e.Code + " " + strings.Join(e.Field, ".") }

// mutation returns a request of one mutation. fields are the selected fields of the payload's
// record.
func mutation(name, fields string) string {
	return fmt.Sprintf(`mutation($input: %s%sInput!) { payload: %s(input: $input) { value: %s { %s } %s } }`,
		strings.ToUpper(name[:1]), name[1:], name, workload.PayloadRecordFields[name], fields, userErrors)
}

// send sends a mutation. It does not check the result. Without fields it selects the details.
func (s *fixture) send(t testing.TB, name string, input mutationInput, fields ...string) answer {
	t.Helper()
	if len(fields) == 0 {
		fields = []string{workload.RecordSelection(workload.PayloadRecordFields[name])}
	}
	variables, err := json.Marshal(mutationInput{"input": input})
	if err != nil {
		t.Fatal(err)
	}
	return s.ask(t, mutation(name, strings.Join(fields, " ")), variables)
}

// try sends a mutation. Top-level errors fail the test.
func (s *fixture) try(t testing.TB, name string, input mutationInput, fields ...string) outcome {
	t.Helper()
	got := outcome{answer: s.send(t, name, input, fields...)}
	if len(got.Errors) > 0 || got.Status != http.StatusOK {
		t.Fatalf("%s %.1000s: status %d, errors %+v", name, fmt.Sprint(input), got.Status, got.Errors)
	}
	var data struct {
		Payload struct {
			Value      json.RawMessage
			UserErrors []userError
		}
	}
	if err := json.Unmarshal(got.Data, &data); err != nil {
		t.Fatal(err)
	}
	got.Value, got.UserErrors = data.Payload.Value, data.Payload.UserErrors
	for _, e := range got.UserErrors {
		if !slices.Contains(workload.DeclaredUserErrors[name], e.Typename) {
			t.Errorf("%s returns %s, which it does not declare: add it to @userErrors", name, e.Typename)
		}
		returned.Store(name+" "+e.Typename, true)
	}
	return got
}

// mutate sends a mutation that must succeed.
func (s *fixture) mutate(t testing.TB, name string, input mutationInput, fields ...string) outcome {
	t.Helper()
	got := s.try(t, name, input, fields...)
	if len(got.UserErrors) > 0 {
		t.Fatalf("%s %v is refused: %+v", name, input, got.UserErrors)
	}
	return got
}

// refuse sends a mutation that must be refused for these reasons, each a code and a field. Nothing
// misspelled matches statuses that are not spelled as in the API, and wrong plurals.
var misspelled = regexp.MustCompile(`\b(is|become) (pending|confirmed|shipped|delivered|cancelled|requested|approved|rejected|received)\b|\b1 (pieces|units|orders)\b`)

// may be written.
func (s *fixture) refuse(t testing.TB, name string, input mutationInput, reasons ...string) outcome {
	t.Helper()
	before := s.records(t)
	got := s.try(t, name, input)
	if !slices.Equal(reasonsOf(got), reasons) {
		t.Fatalf("%s %.300s is refused for %q, want %q", name, fmt.Sprint(input), reasonsOf(got), reasons)
	}
	// The payload contains the current record only if the caller expected another version and the
	// record exists.
	at := slices.IndexFunc(got.UserErrors, func(e userError) bool { return e.Code == "VERSION_CONFLICT" })
	if shown := string(got.Value) != "null"; shown && at < 0 || !shown && at >= 0 && got.UserErrors[at].CurrentVersion > 0 {
		t.Errorf("%s %.300s is refused for %q, and the payload contains %s", name, fmt.Sprint(input), reasons, got.Value)
	}
	for _, e := range got.UserErrors {
		if e.Message == "" || len(e.Message) > 300 {
			t.Errorf("%s has a message of %d bytes: %.300s", e, len(e.Message), e.Message)
		}
		if spelling := misspelled.FindString(e.Message); spelling != "" {
			t.Errorf("the message %q contains %q", e.Message, spelling)
		}
	}
	if diff := changes(before, s.records(t)); diff != "" {
		t.Errorf("%s %.300s is refused, but wrote\n%s", name, fmt.Sprint(input), diff)
	}
	return got
}

// reasonsOf returns the reasons of a refusal, each a code and a field.
func reasonsOf(o outcome) []string {
	reasons := make([]string, len(o.UserErrors))
	for i, e := range o.UserErrors {
		reasons[i] = e.String()
	}
	return reasons
}

// orderView has the fields of an order.
type orderView struct {
	ID, Status         string
	Version, ItemCount int
	Total              struct{ Amount, CurrencyCode string }
	UpdatedAt          time.Time
	AccountRep         *struct{ ID string }
	ShippingAddress    *struct{ Recipient, City string }
	Items              struct {
		Nodes []struct {
			ProductID, Name string
			Quantity        int
			UnitPrice       struct{ Amount string }
		}
	}
	Timeline struct {
		Nodes []struct {
			ID, Type, Actor string
			From, To, Note  *string
			At              time.Time
		}
	}
}

// order reads an order with all of its fields.
func (s *fixture) order(t testing.TB, id string) orderView {
	t.Helper()
	var data struct{ Order orderView }
	s.read(t, &data, `{ order(id: %q) { id status version itemCount total { amount currencyCode } updatedAt accountRep { id } shippingAddress { recipient city }
		items(first: 100) { nodes { productId name quantity unitPrice { amount } } } timeline(first: 100) { nodes { id type from to at actor note } } } }`, id)
	return data.Order
}

// lines returns the order's items as text.
func (o orderView) lines() string {
	texts := make([]string, len(o.Items.Nodes))
	for i, item := range o.Items.Nodes {
		texts[i] = fmt.Sprintf("%d %s at %s", item.Quantity, item.ProductID, item.UnitPrice.Amount)
	}
	return strings.Join(texts, ", ")
}

// stock returns the stock fields of a product and its levels.
func (s *fixture) stock(t testing.TB, sku string) string {
	t.Helper()
	var data struct {
		Product struct {
			TotalInventory, Available int
			Inventory                 struct {
				Nodes []struct {
					Quantity    int
					WarehouseID string
				}
			}
		}
	}
	s.read(t, &data, `{ product(sku: %q) { totalInventory available inventory { nodes { warehouseId quantity } } } }`, sku)
	words := fmt.Sprintf("%d of %d available", data.Product.Available, data.Product.TotalInventory)
	for _, l := range data.Product.Inventory.Nodes {
		words += fmt.Sprintf(", %d in %s", l.Quantity, l.WarehouseID)
	}
	return words
}

// place places an order of one piece of each product, and returns its ID.
func (s *fixture) place(t testing.TB, customer string, skus ...string) string {
	t.Helper()
	return s.placeWith(t, mutationInput{"customerId": customer, "items": lines(skus...)})
}

// placeWith places an order and returns its ID.
func (s *fixture) placeWith(t testing.TB, input mutationInput) string {
	t.Helper()
	var order struct{ ID string }
	got := s.mutate(t, "placeOrder", input)
	if err := json.Unmarshal(got.Value, &order); err != nil {
		t.Fatal(err)
	}
	return order.ID
}

// lines returns order lines of one piece each.
func lines(skus ...string) []mutationInput {
	items := make([]mutationInput, len(skus))
	for i, sku := range skus {
		items[i] = mutationInput{"sku": sku, "quantity": 1}
	}
	return items
}

// skus returns the first n products of longDataset.
func skus(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("p%02d", i)
	}
	return all
}

// smallDataset returns storetest.MutationDataset with customers that were created a day before
// opening.
func smallDataset(t testing.TB) commerce.Dataset {
	t.Helper()
	return storetest.MutationDataset(t, opening.Add(-24*time.Hour))
}

// longDataset is smallDataset with products p00 to p59, each with a stock of ten in north.
func longDataset(t testing.TB) commerce.Dataset {
	t.Helper()
	dataset := smallDataset(t)
	for _, sku := range skus(60) {
		dataset.Products = append(dataset.Products, commerce.Product{SKU: commerce.SKU(sku), Name: "Part " + sku, Category: "Parts", UnitPrice: dataset.Products[2].UnitPrice, Version: 1})
		dataset.Levels = append(dataset.Levels, commerce.InventoryLevel{SKU: commerce.SKU(sku), WarehouseID: "north", Quantity: 10, Version: 1})
	}
	return dataset
}
