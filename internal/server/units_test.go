package server_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"golang.org/x/tools/txtar"

	"github.com/ordergraph/ordergraph/dynamo/markdown"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/internal/price"
	"github.com/ordergraph/ordergraph/internal/test/golden"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// meter is an HTTP client that records the consumed capacity of each request.
type meter struct {
	next dynamodb.HTTPClient

	mu       sync.Mutex
	requests []measured
}

// measured is a request to DynamoDB with the consumed capacity that the engine reports.
type measured struct {
	operation  string
	consistent bool
	// keys are the keys of the records in the response to a read. missing is the number of keys
	// without a record.
	keys    []model.Keys
	missing int
	actions []action
	// table and index are the consumed capacity units of the table and of its index.
	table, index float64
}

// metered returns a copy of db whose requests are measured by the returned meter.
func metered(db *dynamodb.Client) (*dynamodb.Client, *meter) {
	m := &meter{next: db.Options().HTTPClient}
	return dynamodb.New(db.Options(), func(o *dynamodb.Options) { o.HTTPClient = m }), m
}

// stringKey is a primary key in DynamoDB's JSON format.
type stringKey struct{ PK, SK struct{ S string } }

func (k stringKey) keys() model.Keys { return model.Keys{PK: k.PK.S, SK: k.SK.S} }

// Do sends a request that asks for the consumed capacity. The store does not ask for the capacity
// of transactions, so Do removes the capacity from their responses.
func (m *meter) Do(r *http.Request) (*http.Response, error) {
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	if !slices.Contains([]string{"GetItem", "BatchGetItem", "Query", "TransactGetItems", "TransactWriteItems"}, operation) {
		return m.next.Do(r)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	transaction := strings.HasPrefix(operation, "Transact")
	if transaction {
		body = append([]byte(`{"ReturnConsumedCapacity":"INDEXES",`), bytes.TrimPrefix(bytes.TrimSpace(body), []byte("{"))...)
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	response, err := m.next.Do(r)
	if err != nil || response.StatusCode != http.StatusOK {
		return response, err
	}
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	request := readMeasured(operation, body, text)
	m.mu.Lock()
	m.requests = append(m.requests, request)
	m.mu.Unlock()
	if transaction {
		var members map[string]json.RawMessage
		mustDecode(text, &members)
		delete(members, "ConsumedCapacity")
		if text, err = json.Marshal(members); err != nil {
			return nil, err
		}
		response.Header.Del("X-Amz-Crc32")
	}
	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	response.Header.Del("Content-Length")
	return response, nil
}

// readMeasured reads the keys, the records and the consumed capacity of a request.
func readMeasured(operation string, request, response []byte) measured {
	m := measured{operation: operation}
	var in struct {
		ConsistentRead bool
		RequestItems   map[string]struct {
			ConsistentRead bool
			Keys           []stringKey
		}
		TransactItems []json.RawMessage
	}
	type capacity struct {
		CapacityUnits          float64
		Table                  struct{ CapacityUnits float64 }
		GlobalSecondaryIndexes map[string]struct{ CapacityUnits float64 }
	}
	var out struct {
		Item             *stringKey
		Items            []stringKey
		Responses        json.RawMessage
		ConsumedCapacity json.RawMessage
	}
	mustDecode(request, &in)
	mustDecode(response, &out)
	m.consistent = in.ConsistentRead
	var consumed []capacity
	switch operation {
	case "GetItem":
		m.missing = 1
		if out.Item != nil {
			m.keys, m.missing = []model.Keys{out.Item.keys()}, 0
		}
	case "Query":
		for _, k := range out.Items {
			m.keys = append(m.keys, k.keys())
		}
	case "BatchGetItem":
		var tables map[string][]stringKey
		mustDecode(out.Responses, &tables)
		for name, of := range in.RequestItems {
			m.consistent = of.ConsistentRead
			for _, k := range tables[name] {
				m.keys = append(m.keys, k.keys())
			}
			m.missing += len(of.Keys) - len(tables[name])
		}
	case "TransactGetItems":
		var responses []struct{ Item *stringKey }
		mustDecode(out.Responses, &responses)
		for _, r := range responses {
			if r.Item != nil {
				m.keys = append(m.keys, r.Item.keys())
			}
		}
		m.missing = len(in.TransactItems) - len(m.keys)
	case "TransactWriteItems":
		m.actions = actionsOf(request)
	}
	if len(out.ConsumedCapacity) == 0 {
		return m
	}
	if out.ConsumedCapacity[0] == '{' {
		out.ConsumedCapacity = slices.Concat([]byte("["), out.ConsumedCapacity, []byte("]"))
	}
	mustDecode(out.ConsumedCapacity, &consumed)
	for _, c := range consumed {
		m.table += c.CapacityUnits
		for _, index := range c.GlobalSecondaryIndexes {
			m.table, m.index = m.table-index.CapacityUnits, m.index+index.CapacityUnits
		}
	}
	return m
}

func mustDecode(text []byte, into any) {
	if err := json.Unmarshal(text, into); err != nil {
		panic(fmt.Sprintf("%v: %s", err, text))
	}
}

// reset returns the requests since the previous call of reset.
func (m *meter) reset() []measured {
	m.mu.Lock()
	defer m.mu.Unlock()
	requests := m.requests
	m.requests = nil
	return requests
}

// scanned returns all records of a table, by key.
func scanned(t testing.TB, db *dynamodb.Client, table string) map[model.Keys]model.Record {
	t.Helper()
	records := map[model.Keys]model.Record{}
	pages := dynamodb.NewScanPaginator(db, &dynamodb.ScanInput{TableName: &table, ConsistentRead: aws.Bool(true)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range page.Items {
			records[model.KeyOf(r)] = r
		}
	}
	return records
}

// predictRead computes the read units of a request from the sizes of the records that it reads.
func (m measured) predictRead(records map[model.Keys]model.Record) float64 {
	read := make([]model.Reader, len(m.keys))
	for i, k := range m.keys {
		read[i] = model.Reader{Record: records[k]}
	}
	predicted := model.BatchGetUnits(read, len(m.keys)+m.missing)
	if m.operation == "Query" {
		predicted = model.QueryUnits(read)
	}
	if m.consistent {
		predicted *= 2
	}
	if m.operation == "TransactGetItems" {
		predicted *= 4 // two phases of strongly consistent reads
	}
	return predicted
}

// keyUnits contains write units by partition key, separately for the table and the index.
type keyUnits struct{ table, index map[string]float64 }

// predictWrites computes the write units of a transaction. before and after are the records before
// and after it. Each kilobyte costs 2 units in the table and 1 unit in the index. A changed index
// key costs as much as a deletion and an insertion.
func (m measured) predictWrites(before, after map[model.Keys]model.Record) keyUnits {
	predicted := keyUnits{map[string]float64{}, map[string]float64{}}
	for _, a := range m.actions {
		old, current := before[a.key()], after[a.key()]
		predicted.table[a.pk] += 2 * max(kilobytes(old), kilobytes(current))
		was, is := indexKeyOf(old), indexKeyOf(current)
		switch {
		case a.operation == "ConditionCheck":
		case was == is && is.PK != "":
			predicted.index[is.PK] += max(kilobytes(old), kilobytes(current))
		default:
			if was.PK != "" {
				predicted.index[was.PK] += kilobytes(old)
			}
			if is.PK != "" {
				predicted.index[is.PK] += kilobytes(current)
			}
		}
	}
	return predicted
}

// kilobytes returns the size of a record in kilobytes, rounded up. A missing record counts as one
// kilobyte.
func kilobytes(r model.Record) float64 { return float64(max(1, (model.SizeOf(r)+1023)/1024)) }

func (a action) key() model.Keys { return model.Keys{PK: a.pk, SK: a.sk} }

// indexKeyOf returns the index keys of a record. They are empty if the record is not in the index.
func indexKeyOf(r model.Record) model.Keys {
	at := model.Reader{Record: r}
	return model.Keys{PK: at.Text(model.AttrIndexPK), SK: at.Text(model.AttrIndexSK)}
}

func sumOf(units map[string]float64) (sum float64) {
	for _, n := range units {
		sum += n
	}
	return sum
}

// reportedReads computes the read units that the engine should report for a read of these records.
// DynamoDB Local differs from Amazon DynamoDB: it charges neither for missing records of a batch
// nor for an empty Query.
func (m measured) reportedReads(t testing.TB, records map[model.Keys]model.Record) float64 {
	if !storetest.IsEmbedded(t) && m.operation == "BatchGetItem" {
		m.missing = 0
	}
	if !storetest.IsEmbedded(t) && m.operation == "Query" && len(m.keys) == 0 {
		return 0
	}
	return m.predictRead(records)
}

// checkReportedWrites compares the predicted units of a transaction with the units that the engine
// reports. Both engines report twice the units of the index. Amazon DynamoDB does not, because it
// writes to an index after the transaction. The numbers of DynamoDB Local for the table are not
// compared, because it reports 4 units for 13 actions.
func (m measured) checkReportedWrites(t testing.TB, predicted keyUnits) {
	t.Helper()
	inTable, inIndex := sumOf(predicted.table), 2*sumOf(predicted.index)
	if storetest.IsEmbedded(t) && (m.table != inTable || m.index != inIndex) {
		t.Errorf("%v: %v units were predicted in the table and %v in the index, but the engine reports %v and %v", m.actions, inTable, inIndex, m.table, m.index)
	}
}

// checkUnits compares the predicted units of an operation with the units that the engine reports
// and the units in the explain output.
func checkUnits(t *testing.T, requests []measured, before, after map[model.Keys]model.Record, e explained) {
	t.Helper()
	reads, writes, records := 0.0, 0.0, before
	for _, m := range requests {
		if m.operation != "TransactWriteItems" {
			reads += m.predictRead(records)
			if reported := m.reportedReads(t, records); m.table+m.index != reported {
				t.Errorf("%s %v: %v units were predicted, but the engine reports %v", m.operation, m.keys, reported, m.table+m.index)
			}
			continue
		}
		predicted := m.predictWrites(before, after)
		writes += sumOf(predicted.table) + sumOf(predicted.index)
		m.checkReportedWrites(t, predicted)
		records = after
	}
	if e.Totals.ReadUnits != reads || e.Totals.WriteUnits != writes {
		t.Errorf("%v read units and %v write units were predicted, but explain contains %v and %v\n%s", reads, writes, e.Totals.ReadUnits, e.Totals.WriteUnits, e)
	}
}

// goldenFiles returns the texts in an archive of golden files, by file name.
func goldenFiles(t *testing.T, name string) map[string]string {
	t.Helper()
	archive, err := txtar.ParseFile(name)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, f := range archive.Files {
		files[f.Name] = string(f.Data)
	}
	return files
}

// For every golden query and mutation, units are computed from the sizes of the records. They equal
// the units that the engine reports and the units in the explain output.
func TestPredictedUnitsEqualMeasuredUnits(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		queries, err := filepath.Glob("testdata/golden/*.txtar")
		if err != nil || len(queries) == 0 {
			t.Fatalf("no golden files: %v", err)
		}
		mutations, err := filepath.Glob("testdata/golden-writes/*.txtar")
		if err != nil || len(mutations) == 0 {
			t.Fatalf("no golden files: %v", err)
		}
		watched, m := metered(db)
		store := storetest.SampleStore(t, watched)
		api, records := serve(t, store), scanned(t, db, storetest.StoreTableName(t, store))
		for _, name := range queries {
			t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
				files := goldenFiles(t, name)
				m.reset()
				var variables json.RawMessage
				if v, ok := files["variables.json"]; ok {
					variables = json.RawMessage(v)
				}
				got := api.ask(t, files["query.graphql"], variables)
				checkUnits(t, m.reset(), records, records, got.Extensions.Explain)
			})
		}
		for _, name := range mutations {
			t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
				files := goldenFiles(t, name)
				s := newFixture(t, watched, smallDataset(t))
				for line := range strings.Lines(files["setup.graphql"]) {
					if line = strings.TrimSpace(line); line != "" {
						s.ask(t, line, nil)
						s.clock.pass(time.Second)
					}
				}
				before := scanned(t, db, s.table)
				m.reset()
				got := s.ask(t, files["query.graphql"], nil)
				requests := m.reset()
				checkUnits(t, requests, before, scanned(t, db, s.table), got.Extensions.Explain)
			})
		}
	})
}

// capacityDocs is the path of the page about capacity planning.
const capacityDocs = "../../docs/capacity.md"

// orderUnits returns the units of one order's mutations, from placeOrder to deliverOrder. total contains
// the write units of each partition key.
func orderUnits(t *testing.T) (total keyUnits, sum price.Units) {
	t.Helper()
	watched, m := metered(storetest.Engines()[0].Client(t))
	s := newFixture(t, watched, smallDataset(t))
	total = keyUnits{map[string]float64{}, map[string]float64{}}
	step := func(mutation string, input mutationInput) outcome {
		s.clock.pass(time.Second)
		before := scanned(t, s.db, s.table)
		m.reset()
		got := s.mutate(t, mutation, input, "id")
		after := scanned(t, s.db, s.table)
		for _, r := range m.reset() {
			predicted := r.predictWrites(before, after)
			for k, n := range predicted.table {
				total.table[k] += n
			}
			for k, n := range predicted.index {
				total.index[k] += n
			}
		}
		sum.Read += got.Extensions.Explain.Totals.ReadUnits
		sum.Write += got.Extensions.Explain.Totals.WriteUnits
		return got
	}
	placed := step("placeOrder", mutationInput{"customerId": "ann", "items": lines("mug"), "shippingAddress": mutationInput{"recipient": "Ann", "line1": "1 Main St", "city": "Portland", "countryCode": "US"}})
	var order struct{ ID string }
	mustDecode(placed.Value, &order)
	for _, mutation := range []string{"confirmOrder", "shipOrder", "deliverOrder"} {
		input := mutationInput{"orderId": order.ID}
		if mutation == "shipOrder" {
			input["warehouseId"] = "north"
		}
		step(mutation, input)
	}
	return total, sum
}

// docs/capacity.md contains the write units that an order consumes per partition key, from
// placement to delivery. It also contains the maximum number of orders a second that follows from
// these units. The numbers are computed from the declarations, and equal the measured ones.
func TestGoldenPartitionKeys(t *testing.T) {
	measured, sum := orderUnits(t)
	type group struct {
		place string
		units float64
	}
	keys, total := map[group][]string{}, 0.0
	for _, l := range model.DeclaredInProcess().OrderLoad(model.NewCurrentLayout(nil).Derivations()) {
		of, place := measured.table, "table"
		if l.Index {
			of, place = measured.index, "index"
		}
		for key, units := range of {
			if model.KeyTemplate(l.Key).Matches(key) {
				if units != l.WriteUnits {
					t.Errorf("%s in the %s: %v units computed, %v measured", key, place, l.WriteUnits, units)
				}
				delete(of, key)
			}
		}
		if l.Entity.IsSharded(l.Index) {
			place += ", sharded"
		}
		keys[group{place, l.WriteUnits}] = append(keys[group{place, l.WriteUnits}], markdown.CodeCell(l.Key))
		total += l.WriteUnits
	}
	if len(measured.table)+len(measured.index) > 0 || total != sum.Write {
		t.Errorf("keys without computed units: %v, %v; %v units in total, want %v", measured.table, measured.index, total, sum.Write)
	}
	groups := slices.SortedFunc(maps.Keys(keys), func(a, b group) int {
		return cmp.Or(cmp.Compare(b.units, a.units), strings.Compare(a.place, b.place))
	})
	cells := [][]string{{"partition key", "in", "units per order", "orders a second"}}
	for _, g := range groups {
		slices.Sort(keys[g])
		cells = append(cells, []string{strings.Join(keys[g], ", "), g.place, fmt.Sprint(g.units), fmt.Sprint(int(model.PartitionWriteUnits / g.units))})
	}
	golden.CheckSection(t, capacityDocs, "keys", markdown.Table(cells))
}
