package bulk_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"pgregory.net/rapid"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/bulk"
	"github.com/ordergraph/ordergraph/dynamo/change"
	"github.com/ordergraph/ordergraph/dynamo/check"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
	"github.com/ordergraph/ordergraph/internal/sampledata"
	"github.com/ordergraph/ordergraph/internal/test/faults"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// externalRecords returns external records. They have types that the model does not use, numbers
// beyond float64, and index keys of their own.
func externalRecords() []map[string]types.AttributeValue {
	return []map[string]types.AttributeValue{
		{
			"pk": storetest.Str("THEIRS"), "sk": storetest.Str("1"), "gsi1pk": storetest.Str("THEIRS"), "gsi1sk": storetest.Str("x"),
			"ss": &types.AttributeValueMemberSS{Value: []string{"b", "a", "\"<&>\u2028😀"}}, "ns": &types.AttributeValueMemberNS{Value: []string{"2", "1"}},
			"bs": &types.AttributeValueMemberBS{Value: [][]byte{{0}, {255, 254}}}, "b": &types.AttributeValueMemberB{Value: []byte{0, 1, 2}},
			"n": storetest.Num("12345678901234567890123456789012345678"), "tiny": storetest.Num("0.0000000000000000000000000000000000001"), "": storetest.Str("no name"),
			"null": &types.AttributeValueMemberNULL{Value: true}, "yes": &types.AttributeValueMemberBOOL{Value: true}, "no": &types.AttributeValueMemberBOOL{},
			"l":     &types.AttributeValueMemberL{Value: []types.AttributeValue{storetest.Str("x"), &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{"m": storetest.Num("-1.5")}}}},
			"empty": storetest.Str(""),
		},
		{"pk": storetest.Str("PRODUCT"), "sk": storetest.Str("1"), "when": storetest.Num("1770000000")},
	}
}

// tableWithExternalRecords returns a table with the sample data, external records, and attributes
// that the model does not know.
func tableWithExternalRecords(t testing.TB, db *dynamodb.Client, opts dynamo.Options) *dynamo.Store {
	t.Helper()
	store := storetest.NewTable(t, db, opts)
	dataset, err := sampledata.Sample()
	if err != nil {
		t.Fatal(err)
	}
	storetest.LoadDataset(t, store, dataset)
	table := storetest.StoreTableName(t, store)
	put := func(r map[string]types.AttributeValue) {
		t.Helper()
		if _, err := db.PutItem(context.Background(), &dynamodb.PutItemInput{TableName: &table, Item: r}); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range externalRecords() {
		delete(r, "")
		put(r)
	}
	// A product record of a service that uses ElectroDB.
	edb := externalRecords()[0]
	delete(edb, "")
	for name, v := range map[string]string{"pk": "PRODUCT#edb", "sk": "#METADATA", "gsi1pk": "CATEGORY#Things", "gsi1sk": "PRODUCT#edb", "sku": "edb", "name": "Thing", "category": "Things", "__edb_e__": "product"} {
		edb[name] = storetest.Str(v)
	}
	edb["unitPrice"] = storetest.Num("5")
	put(edb)
	return store
}

func TestRoundTrip(t *testing.T) {
	storetest.ForEachEngine(t, func(t *testing.T, db *dynamodb.Client) {
		from, to := tableWithExternalRecords(t, db, dynamo.Options{}), storetest.NewTable(t, db, dynamo.Options{})
		lines := storetest.Export(t, storetest.StoreWithClient(t, from, storetest.WithScanLimit(db, 10), dynamo.Options{}), 1)
		if want := len(scanAll(t, db, from)); len(lines) != want {
			t.Errorf("%d lines, want %d", len(lines), want)
		}
		if lines[slices.IndexFunc(lines, func(l string) bool { return strings.Contains(l, `"pk":{"S":"PRODUCT"}`) })] != `{"Item":{"pk":{"S":"PRODUCT"},"sk":{"S":"1"},"when":{"N":"1770000000"}}}`+"\n" {
			t.Error("a line is not in its canonical form")
		}
		text := strings.Join(lines, "")
		first := storetest.Import(t, to, text, bulk.ImportOptions{})
		if want := (bulk.ImportResult{Offset: int64(len(text)), Lines: len(lines), Written: len(lines), HadRecords: aws.Bool(false)}); !reflect.DeepEqual(first, want) {
			t.Errorf("the result of the first import is %+v, want %+v", first, want)
		}
		if got := storetest.Export(t, to, 1); !slices.Equal(got, lines) {
			t.Errorf("export and import changed the table:\n%v\n%v", got, lines)
		}
		if got, want := scanAll(t, db, to), scanAll(t, db, from); !reflect.DeepEqual(got, want) {
			t.Error("the tables hold different records")
		}

		// Importing twice equals importing once, and the second import writes nothing.
		var writes atomic.Int64
		watching := storetest.StoreWithClient(t, to, storetest.WithRequestHook(db, func(_ context.Context, in any) error {
			if put, ok := in.(*dynamodb.PutItemInput); ok && aws.ToString(put.ConditionExpression) == "" {
				writes.Add(1)
			}
			return nil
		}), dynamo.Options{})
		for _, overwrite := range []bool{false, true} {
			again := storetest.Import(t, watching, text, bulk.ImportOptions{Overwrite: overwrite})
			if want := (bulk.ImportResult{Offset: int64(len(text)), Lines: len(lines), Unchanged: len(lines), HadRecords: aws.Bool(true)}); !reflect.DeepEqual(again, want) || writes.Load() > 0 {
				t.Errorf("the result of the second import, with overwrite %t, is %+v with %d replaced, want %+v", overwrite, again, writes.Load(), want)
			}
			if !reflect.DeepEqual(scanAll(t, db, to), scanAll(t, db, from)) {
				t.Error("the second import changed the table")
			}
		}
	})
}

// scanAll returns all records of a table by key.
func scanAll(t testing.TB, db *dynamodb.Client, store *dynamo.Store) map[string]map[string]types.AttributeValue {
	t.Helper()
	records := map[string]map[string]types.AttributeValue{}
	table := storetest.StoreTableName(t, store)
	pages := dynamodb.NewScanPaginator(db, &dynamodb.ScanInput{TableName: &table})
	for pages.HasMorePages() {
		page, err := pages.NextPage(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range page.Items {
			for _, v := range r {
				switch v := v.(type) { // a set has no order
				case *types.AttributeValueMemberSS:
					slices.Sort(v.Value)
				case *types.AttributeValueMemberNS:
					slices.Sort(v.Value)
				case *types.AttributeValueMemberBS:
					slices.SortFunc(v.Value, bytes.Compare)
				}
			}
			records[fmt.Sprint(r["pk"].(*types.AttributeValueMemberS).Value, "\x00", r["sk"].(*types.AttributeValueMemberS).Value)] = r
		}
	}
	delete(records, "LAYOUT\x00#METADATA")
	return records
}

// Transfers a table of one shard to a table of eight shards and back. The lists are the same, and
// the final table equals the first one.
func TestRoundTripThroughAnotherNumberOfShards(t *testing.T) {
	storetest.ForEachEngine(t, func(t *testing.T, db *dynamodb.Client) {
		one := tableWithExternalRecords(t, db, dynamo.Options{})
		eight, back := storetest.NewTable(t, db, dynamo.Options{Shards: 8}), storetest.NewTable(t, db, dynamo.Options{})
		lines := storetest.Export(t, one, 1)
		storetest.Import(t, eight, strings.Join(lines, ""), bulk.ImportOptions{})
		spread := storetest.Export(t, eight, 1)
		if slices.Equal(spread, lines) {
			t.Error("eight shards have the index keys of one")
		}
		storetest.Import(t, back, strings.Join(spread, ""), bulk.ImportOptions{})
		if got := storetest.Export(t, back, 1); !slices.Equal(got, lines) {
			t.Error("export and import changed the table")
		}
		page := dynamo.PageRequest{Limit: 100}
		for name, read := range map[string]func(s *dynamo.Store) (any, error){
			"orders": func(s *dynamo.Store) (any, error) {
				return dynamo.ReadPage(context.Background(), s, model.Orders, dynamo.ListRequest{Statuses: dynamo.NewStatusSet(commerce.Statuses()...), Page: page})
			},
			"customers": func(s *dynamo.Store) (any, error) {
				return dynamo.ReadPage(context.Background(), s, model.Customers, dynamo.ListRequest{Page: page})
			},
			"employees": func(s *dynamo.Store) (any, error) {
				return dynamo.ReadPage(context.Background(), s, model.Employees, dynamo.ListRequest{Page: page})
			},
			"products": func(s *dynamo.Store) (any, error) {
				return dynamo.ReadPage(context.Background(), s, model.Products, dynamo.ListRequest{PartitionValue: "Things", Page: page})
			},
		} {
			want, err := read(one)
			if err != nil {
				t.Fatal(err)
			}
			if n := reflect.ValueOf(want).FieldByName("Items").Len(); n == 0 {
				t.Errorf("%s: none", name)
			}
			for _, s := range []*dynamo.Store{eight, back} {
				if got, err := read(s); err != nil || !reflect.DeepEqual(got, want) {
					t.Errorf("%s: %v, %v, want %v", name, got, err, want)
				}
			}
		}
		if d, err := eight.DescribeTable(context.Background()); err != nil || len(d.Differences) > 0 && !strings.Contains(d.Differences[0], "type of") && !strings.Contains(d.Differences[0], "projection") {
			t.Errorf("eight: %v, %v", d, err)
		}
	})
}

// line returns the line of an external record.
func line(key, value string) string {
	return fmt.Sprintf(`{"Item":{"pk":{"S":"THEIRS"},"sk":{"S":%q},"v":{"S":%q}}}`+"\n", key, value)
}

// An external record with only one index key is in no list. Export and import preserve it.
func TestImportOfOneIndexKey(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		r := storetest.NewRawTable(t, db, commerce.Dataset{}, dynamo.Options{})
		for i, keys := range []storetest.Item{
			{"gsi1pk": storetest.Str("THEIRS")}, {"gsi1sk": storetest.Str("THEIRS")},
			{"gsi1pk": storetest.Str("CUSTOMER")}, {"gsi1pk": storetest.Str("STATUS#pending")}, {"gsi1sk": storetest.Str("ORDER#x")},
		} {
			rec := storetest.ItemKey("OTHER", fmt.Sprint(i))
			maps.Copy(rec, keys)
			r.Put(rec)
		}
		lines := storetest.Export(t, r.Store, 1)
		to := storetest.NewTable(t, db, dynamo.Options{})
		storetest.Import(t, to, strings.Join(lines, ""), bulk.ImportOptions{})
		if got := storetest.Export(t, to, 1); !slices.Equal(got, lines) {
			t.Errorf("after the import, the table is\n%s\nwant\n%s", strings.Join(got, ""), strings.Join(lines, ""))
		}
	})
}

func TestConflicts(t *testing.T) {
	storetest.ForEachEngine(t, func(t *testing.T, db *dynamodb.Client) {
		store := storetest.NewTable(t, db, dynamo.Options{})
		var old, changed string
		var keys []bulk.RecordKey
		for i := range 30 {
			key := fmt.Sprintf("%02d", i)
			old += line(key, "old")
			changed += line(key, "new")
			if len(keys) < 20 {
				keys = append(keys, bulk.RecordKey{PK: "THEIRS", SK: key})
			}
		}
		storetest.Import(t, store, old, bulk.ImportOptions{})
		before := storetest.Export(t, store, 1)
		more := line("more", "new") + line("00", "old")
		for _, dry := range []bool{true, false} {
			got := storetest.Import(t, store, changed+more, bulk.ImportOptions{DryRun: dry})
			if want := (bulk.ImportResult{Offset: int64(len(changed + more)), Lines: 32, Written: 1, Unchanged: 1, Conflicts: 30, ConflictKeys: keys, HadRecords: aws.Bool(true)}); !reflect.DeepEqual(got, want) {
				t.Errorf("dry run %t: the result is %+v, want %+v", dry, got, want)
			}
			if dry && !slices.Equal(storetest.Export(t, store, 1), before) {
				t.Error("the dry run wrote something")
			}
		}
		if got := strings.Join(storetest.Export(t, store, 1), ""); got != old+line("more", "new") {
			t.Errorf("after an import without -overwrite, the table is\n%s", got)
		}
		dry := storetest.Import(t, store, changed, bulk.ImportOptions{Overwrite: true, DryRun: true})
		got := storetest.Import(t, store, changed, bulk.ImportOptions{Overwrite: true})
		if want := (bulk.ImportResult{Offset: int64(len(changed)), Lines: 30, Replaced: 30, HadRecords: aws.Bool(true)}); !reflect.DeepEqual(got, want) || !reflect.DeepEqual(dry, want) {
			t.Errorf("the result of overwriting is %+v, and of the dry run %+v, want %+v", got, dry, want)
		}
		if got := strings.Join(storetest.Export(t, store, 1), ""); got != changed+line("more", "new") {
			t.Errorf("after an import with -overwrite, the table is\n%s", got)
		}
	})
}

// Lines with the same key are written in order, for any number of concurrent writes.
func TestLinesOfOneKey(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		text := ""
		for i := range 200 {
			text += line(fmt.Sprint(i%3), fmt.Sprint(i))
		}
		for overwrite, want := range map[bool]string{false: line("0", "0") + line("1", "1") + line("2", "2"), true: line("0", "198") + line("1", "199") + line("2", "197")} {
			store := storetest.NewTable(t, db, dynamo.Options{})
			done := storetest.Import(t, store, text, bulk.ImportOptions{Overwrite: overwrite})
			if got := strings.Join(storetest.Export(t, store, 1), ""); got != want || done.Written != 3 || done.Replaced+done.Conflicts != 197 {
				t.Errorf("overwrite %t: %+v, the table is\n%s", overwrite, done, got)
			}
		}
	})
}

func TestIdempotencyRecordsAreLeftOut(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		store := storetest.NewTable(t, db, dynamo.Options{})
		moment := `{"Item":{"pk":{"S":"IDEMPOTENCY#p#k"},"sk":{"S":"#METADATA"}}}` + "\n"
		done := storetest.Import(t, store, "\n"+moment+" \r\n"+line("a", "b")+"\n", bulk.ImportOptions{})
		if done.Written != 1 || done.LeftOut != 1 || done.Lines != 5 {
			t.Errorf("did %+v", done)
		}
		table := storetest.StoreTableName(t, store)
		if _, err := db.PutItem(context.Background(), &dynamodb.PutItemInput{TableName: &table, Item: storetest.ItemKey(
			"IDEMPOTENCY#p#k", "#METADATA")}); err != nil {
			t.Fatal(err)
		}
		if got := storetest.Export(t, store, 1); len(got) != 1 || got[0] != line("a", "b") {
			t.Errorf("exported %q", got)
		}
	})
}

// A line that is invalid before it is sent ends the import. The lines before it are written, and
// the lines after it are not.
func TestImportStopsAtInvalidLine(t *testing.T) {
	long := `{"Item":{"pk":{"S":"THEIRS"},"sk":{"S":"x"},"v":{"S":"` + strings.Repeat("x", 5<<20) + `"}}}` + "\n"
	key := func(pk, sk string) string {
		return fmt.Sprintf(`{"Item":{"pk":{"S":%q},"sk":{"S":%q}}}`, pk, sk) + "\n"
	}
	for says, bad := range map[string]string{
		"JSON":                                  line("x", "x")[:30] + "\n",
		"pk":                                    `{"Item":{"sk":{"S":"x"}}}` + "\n",
		"\"sk\" is missing":                     `{"Item":{"pk":{"S":"x"},"sk":{"N":"1"}}}` + "\n",
		"\"pk\" is empty":                       key("", "x"),
		"2049 bytes":                            key(strings.Repeat("x", 2049), "x"),
		"1025 bytes":                            key("x", strings.Repeat("x", 1025)),
		"409601 bytes":                          line("x", strings.Repeat("x", 400<<10-11)),
		"4194304 bytes":                         long,
		"\"customerId\"":                        key("EMAIL#a@example.com", "#METADATA"),
		"do not match the key":                  `{"Item":{"pk":{"S":"WAREHOUSE#w1"},"sk":{"S":"#METADATA"},"warehouseId":{"S":"w2"},"name":{"S":"x"}}}` + "\n",
		"its index keys match the entity order": `{"Item":{"pk":{"S":"x"},"sk":{"S":"x"},"gsi1pk":{"S":"STATUS#pending"},"gsi1sk":{"S":"ORDER#x"}}}` + "\n",
		"\"gsi1sk\" is missing":                 `{"Item":{"pk":{"S":"x"},"sk":{"S":"x"},"gsi1sk":{"N":"1"}}}` + "\n",
		"\"gsi1pk\" is empty":                   `{"Item":{"pk":{"S":"x"},"sk":{"S":"x"},"gsi1pk":{"S":""},"gsi1sk":{"S":"x"}}}` + "\n",
	} {
		t.Run(says, func(t *testing.T) {
			store := storetest.NewTable(t, storetest.Engines()[0].Client(t), dynamo.Options{})
			good := line("1", "") + "\n" + line("2", "")
			text := good + bad + strings.Repeat(line("behind", ""), 3)
			done, err := store.Import(context.Background(), strings.NewReader(text), bulk.ImportOptions{})
			wrong := (*bulk.LineError)(nil)
			if !errors.As(err, &wrong) || wrong.Line != 4 || !strings.Contains(err.Error(), says) || !strings.HasPrefix(err.Error(), "line 4: ") {
				t.Errorf("the error is %.200v, want an error in line 4 that contains %q", err, says)
			}
			if want := (bulk.ImportResult{Offset: int64(len(good)), Lines: 3, Written: 2, HadRecords: aws.Bool(false)}); !reflect.DeepEqual(done, want) {
				t.Errorf("did %+v, want %+v", done, want)
			}
			if got := strings.Join(storetest.Export(t, store, 1), ""); got != line("1", "")+line("2", "") {
				t.Errorf("after the import, the table is\n%.300s", got)
			}
		})
	}
}

// A record of maximum size is exported and imported, for any length of its line.
func TestTheLargestRecords(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		for name, text := range map[string]string{
			"text":     line("x", strings.Repeat("x", 400<<10-12)),
			"controls": strings.Replace(line("x", "v"), `"v"}`, `"`+strings.Repeat(`\u0001`, 400<<10-12)+`"}`, 1),
			"list":     strings.Replace(line("x", ""), `{"S":""}`, `{"L":[{"S":""}`+strings.Repeat(`,{"S":""}`, 400<<10-16)+`]}`, 1),
			"last":     strings.TrimSuffix(line("x", "no end of line"), "\n"),
		} {
			store := storetest.NewTable(t, db, dynamo.Options{})
			storetest.Import(t, store, text, bulk.ImportOptions{})
			if got := strings.Join(storetest.Export(t, store, 1), ""); got != strings.TrimSuffix(text, "\n")+"\n" {
				t.Errorf("%s: imported %d bytes, exported %d: %.100s", name, len(text), len(got), got)
			}
		}
	})
}

// Errors that only DynamoDB detects also name the line.
func TestImportOfRejectedRecords(t *testing.T) {
	store := storetest.NewTable(t, storetest.Engines()[1].Client(t), dynamo.Options{})
	done, err := store.Import(context.Background(), strings.NewReader(line("1", "")+strings.Replace(line("2", ""), `{"S":""}`, `{"M":{"":{"S":"a"}}}`, 1)), bulk.ImportOptions{})
	if wrong := (*bulk.LineError)(nil); !errors.As(err, &wrong) || wrong.Line != 2 || !strings.Contains(err.Error(), "THEIRS 2") || done.Lines != 1 {
		t.Errorf("did %+v, %v", done, err)
	}
}

// A line that DynamoDB rejects ends the import, while later lines may be written. These lines are
// not counted. The import can resume from the corrected line.
func TestImportResumesAfterRejectedRecord(t *testing.T) {
	storetest.ForEachEngine(t, func(t *testing.T, db *dynamodb.Client) {
		store := storetest.NewTable(t, db, dynamo.Options{})
		var text strings.Builder
		var want []string
		for i := range 8 {
			text.WriteString(line(fmt.Sprint(i), "x"))
			want = append(want, line(fmt.Sprint(i), "x"))
		}
		refuse := make(chan struct{})
		refusing := storetest.StoreWithClient(t, store, storetest.WithRequestHook(db, func(ctx context.Context, in any) error {
			if put, ok := in.(*dynamodb.PutItemInput); ok && storetest.KeyText(put.Item) == "THEIRS 2" {
				select {
				case <-refuse:
				case <-ctx.Done():
				}
				return &smithy.GenericAPIError{Code: "ValidationException", Message: "no"}
			}
			return nil
		}), dynamo.Options{})
		in := &lastLine{Reader: strings.NewReader(text.String()), read: func() {
			for len(storetest.Export(t, store, 1)) < 7 {
				runtime.Gosched()
			}
			close(refuse)
		}}
		done, err := refusing.Import(t.Context(), in, bulk.ImportOptions{})
		if bad := (*bulk.LineError)(nil); !errors.As(err, &bad) || bad.Line != 3 || done.Lines != 2 || done.Written != 2 {
			t.Errorf("did %+v, %v", done, err)
		}
		done = storetest.Import(t, store, text.String()[done.Offset:], bulk.ImportOptions{From: done})
		if done.Lines != 8 || done.Written != 3 || done.Unchanged != 5 || !slices.Equal(storetest.Export(t, store, 1), want) {
			t.Errorf("did %+v", done)
		}
	})
}

// lastLine calls read once Reader has reached its end.
type lastLine struct {
	io.Reader
	read func()
}

func (l *lastLine) Read(b []byte) (int, error) {
	n, err := l.Reader.Read(b)
	if n == 0 && err != nil && l.read != nil {
		l.read()
		l.read = nil
	}
	return n, err
}

func TestImportIntoMissingTable(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		store, err := dynamo.New(db, dynamo.Options{Table: "nowhere"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := store.Import(context.Background(), strings.NewReader(line("1", "")), bulk.ImportOptions{}); !errors.Is(err, table.ErrNoTable) {
			t.Errorf("import: %v", err)
		}
		if err := store.Export(context.Background(), make([]bulk.SegmentProgress, 2), func(bulk.ExportPage) error { return nil }); !errors.Is(err, table.ErrNoTable) {
			t.Errorf("export: %v", err)
		}
	})
}

// Exports and imports survive temporary faults, many more in a row than the SDK retries.
func TestTransfersSurviveFaults(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		store := storetest.NewTable(t, db, dynamo.Options{})
		failing, between := faults.WrapClient(db, faults.FailFirstRequests(faults.TransientKinds()...))
		slow := storetest.StoreWithClient(t, store, failing, dynamo.Options{})
		storetest.Import(t, slow, line("1", ""), bulk.ImportOptions{})
		if got := storetest.Export(t, slow, 1); len(got) != 1 {
			t.Errorf("exported %q", got)
		}
		if got := len(between.Counts()); got != len(faults.TransientKinds()) {
			t.Errorf("met %v", between.Counts())
		}
	})
}

// An import can conflict with the server's transactions. It writes each record after they have
// ended.
func TestImportSurvivesConflicts(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		store := storetest.NewTable(t, db, dynamo.Options{})
		storetest.Import(t, store, line("2", "old"), bulk.ImportOptions{})
		puts := 0
		failing, between := faults.WrapClient(db, func(r faults.Request) faults.Kind {
			if r.Operation != "PutItem" {
				return faults.None
			}
			// More conflicts in a row than the SDK retries, for new records and for a record that is
			// replaced.
			if puts++; puts%5 != 0 {
				return faults.TransactionConflict
			}
			return faults.None
		})
		text := line("1", "new") + line("2", "new") + line("3", "new")
		done := storetest.Import(t, storetest.StoreWithClient(t, store, failing, dynamo.Options{}), text, bulk.ImportOptions{Overwrite: true})
		if done.Written != 2 || done.Replaced != 1 || between.Counts()[faults.TransactionConflict] != 16 {
			t.Errorf("did %+v, met %v", done, between.Counts())
		}
		if got := strings.Join(storetest.Export(t, store, 1), ""); got != text {
			t.Errorf("the table is\n%s", got)
		}
	})
}

// An import ends at a conflict that persists, and at other faults, and reports its progress.
func TestImportEndsAtPersistentConflict(t *testing.T) {
	db := storetest.Engines()[0].Client(t)
	store := storetest.NewTable(t, db, dynamo.Options{})
	failing, _ := faults.WrapClient(db, func(r faults.Request) faults.Kind {
		if strings.Contains(string(r.Body), "meets one") {
			return faults.TransactionConflict
		}
		return faults.None
	})
	once := dynamodb.New(failing.Options(), func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} })
	done, err := storetest.StoreWithClient(t, store, once, dynamo.Options{}).Import(t.Context(), strings.NewReader(line("1", "new")+line("2", "meets one")), bulk.ImportOptions{})
	if !errors.Is(err, table.ErrUnavailable) || done.Lines != 1 || done.Written != 1 {
		t.Errorf("did %+v, %v", done, err)
	}
}

// The pauses between attempts end with their context.
func TestThrottlingEndsWithItsContext(t *testing.T) {
	db := storetest.Engines()[0].Client(t)
	store := storetest.NewTable(t, db, dynamo.Options{})
	ctx, cancel := context.WithCancel(context.Background())
	requests := 0
	failing, _ := faults.WrapClient(db, func(faults.Request) faults.Kind {
		if requests++; requests == 3 {
			cancel()
		}
		return faults.Throttling
	})
	refusing := storetest.StoreWithClient(t, store, failing, dynamo.Options{})
	if done, err := refusing.Import(ctx, strings.NewReader(line("1", "")), bulk.ImportOptions{}); !errors.Is(err, context.Canceled) || done.Lines != 0 || requests != 3 {
		t.Errorf("the result is %+v, %v after %d requests, want no lines and a canceled context after 3", done, err, requests)
	}
}

// If a client does not retry requests, neither do transfers.
func TestClientWithoutRetries(t *testing.T) {
	db := storetest.Engines()[0].Client(t)
	r := storetest.NewRawTable(t, db, storetest.SmallDataset(t, 30), dynamo.Options{})
	requests := 0
	failing, _ := faults.WrapClient(db, func(faults.Request) faults.Kind {
		requests++
		return faults.InternalServerError
	})
	store := storetest.StoreWithClient(t, r.Store, dynamodb.New(failing.Options(), func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} }), dynamo.Options{})
	ctx := t.Context()
	for name, do := range map[string]func() error{
		"check": func() error {
			_, err := store.CheckRecords(ctx, check.Options{})
			return err
		},
		"import": func() error {
			_, err := store.Import(ctx, strings.NewReader(line("1", "")), bulk.ImportOptions{})
			return err
		},
		"export": func() error {
			return store.Export(ctx, make([]bulk.SegmentProgress, 1), func(bulk.ExportPage) error { return nil })
		},
		"mutation": func() error {
			_, err := store.CreateWarehouse(ctx, change.Caller{Name: "c"}, commerce.Warehouse{ID: "w9", Name: "New"})
			return err
		},
	} {
		requests = 0
		if err := do(); !errors.Is(err, table.ErrUnavailable) || requests != 1 {
			t.Errorf("%s: %v, in %d requests, want 1", name, err, requests)
		}
	}
}

// Input that never arrives does not delay the end of a cancelled import.
func TestImportEndsWhileItWaits(t *testing.T) {
	store := storetest.NewTable(t, storetest.Engines()[0].Client(t), dynamo.Options{})
	r, w := io.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	var writing sync.WaitGroup
	defer writing.Wait()
	defer func() { _ = w.Close() }()
	writing.Go(func() {
		if _, err := io.WriteString(w, line("1", "")+line("2", "")+`{"Item":`); err != nil {
			t.Error(err)
		}
	})
	done, err := store.Import(ctx, r, bulk.ImportOptions{Done: func(done bulk.ImportResult) error {
		if done.Lines == 2 {
			cancel()
		}
		return nil
	}})
	if !errors.Is(err, context.Canceled) || done.Lines != 2 || done.Written != 2 {
		t.Errorf("did %+v, %v", done, err)
	}
}

func TestImportEndsOnErrorOfDone(t *testing.T) {
	store := storetest.NewTable(t, storetest.Engines()[0].Client(t), dynamo.Options{})
	full := errors.New("disk full")
	done, err := store.Import(context.Background(), strings.NewReader(strings.Repeat(line("1", ""), 5000)), bulk.ImportOptions{Done: func(done bulk.ImportResult) error {
		if done.Lines == 7 {
			return full
		}
		return nil
	}})
	if !errors.Is(err, full) || done.Lines != 7 {
		t.Errorf("did %+v, %v", done, err)
	}
	broken := errors.New("broken disk")
	done, err = store.Import(context.Background(), io.MultiReader(strings.NewReader(line("1", "")), iotestErrReader{broken}), bulk.ImportOptions{})
	if bad := (*bulk.LineError)(nil); !errors.Is(err, broken) || errors.As(err, &bad) || done.Lines != 1 {
		t.Errorf("did %+v, %v", done, err)
	}
}

type iotestErrReader struct{ err error }

func (r iotestErrReader) Read([]byte) (int, error) { return 0, r.err }

// An import that is killed at any request and then resumed gives the same table as an uninterrupted
// import.
func TestImportResumes(t *testing.T) {
	t.Parallel()
	db := storetest.Engines()[0].Client(t)
	whole := tableWithExternalRecords(t, db, dynamo.Options{})
	lines := storetest.Export(t, whole, 1)
	rapid.Check(t, func(r *rapid.T) {
		overwrite := rapid.Bool().Draw(r, "overwrite")
		// Some lines are duplicates, and some differ from the table.
		var text string
		for range rapid.IntRange(1, 60).Draw(r, "lines") {
			text += rapid.SampledFrom(lines).Draw(r, "line")
			if rapid.Bool().Draw(r, "another") {
				text += line(fmt.Sprint(rapid.IntRange(0, 3).Draw(r, "key")), fmt.Sprint(rapid.IntRange(0, 9).Draw(r, "value")))
			}
		}
		calm, killed := storetest.NewTable(t, db, dynamo.Options{}), storetest.NewTable(t, db, dynamo.Options{})
		want := storetest.Import(t, calm, text, bulk.ImportOptions{Overwrite: overwrite})
		var done bulk.ImportResult
		for try := 0; ; try++ {
			if try > 1000 {
				t.Fatal("it does not get on")
			}
			ctx, cancel := context.WithCancel(context.Background())
			left, before := atomic.Int64{}, rapid.Bool().Draw(r, "before")
			left.Store(rapid.Int64Range(1, 40).Draw(r, "requests"))
			store := storetest.StoreWithClient(t, killed, storetest.WithRequestHook(db, func(context.Context, any) error {
				if left.Add(-1) == 0 {
					cancel()
					if before {
						return context.Canceled
					}
				}
				return nil
			}), dynamo.Options{})
			var err error
			last := done
			done, err = store.Import(ctx, strings.NewReader(text[done.Offset:]), bulk.ImportOptions{Overwrite: overwrite, From: done})
			cancel()
			if done.Offset < last.Offset || done.Lines < last.Lines || strings.Count(text[:done.Offset], "\n") != done.Lines {
				t.Fatalf("after %+v, the interrupted import has the invalid progress %+v", last, done)
			}
			if err == nil {
				break
			}
			if !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
		}
		if done.Offset != want.Offset || done.Lines != want.Lines || done.Written+done.Replaced+done.Unchanged+done.Conflicts != want.Lines {
			t.Fatalf("the interrupted import has the result %+v, the uninterrupted import %+v", done, want)
		}
		if got, want := storetest.Export(t, killed, 1), storetest.Export(t, calm, 1); !slices.Equal(got, want) {
			t.Fatalf("the interrupted import created\n%s\nthe uninterrupted import\n%s", got, want)
		}
	})
}

// An export that is killed at any request and then resumed contains every record once.
func TestExportResumes(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		store := tableWithExternalRecords(t, db, dynamo.Options{})
		want := storetest.ExportWithLayout(t, store, 1)
		rapid.Check(t, func(r *rapid.T) {
			segments := make([]bulk.SegmentProgress, rapid.IntRange(1, 5).Draw(r, "segments"))
			size := int32(rapid.IntRange(5, 40).Draw(r, "page"))
			var lines []string
			for done := false; !done; {
				ctx, cancel := context.WithCancel(context.Background())
				var left atomic.Int64
				left.Store(rapid.Int64Range(1, 12).Draw(r, "requests"))
				// The page that is being read at the time is lost.
				killing := storetest.StoreWithClient(t, store, storetest.WithRequestHook(storetest.WithScanLimit(db, size), func(context.Context, any) error {
					if left.Add(-1) == 0 {
						cancel()
					}
					return nil
				}), dynamo.Options{})
				err := killing.Export(ctx, slices.Clone(segments), func(page bulk.ExportPage) error {
					lines = slices.AppendSeq(lines, strings.Lines(string(page.Lines)))
					segments[page.Index] = page.Next
					if left.Load() == 1 && rapid.Bool().Draw(r, "after") {
						cancel()
					}
					return nil
				})
				cancel()
				if err != nil && !errors.Is(err, context.Canceled) {
					t.Fatal(err)
				}
				done = err == nil
			}
			if got := slices.Sorted(slices.Values(lines)); !slices.Equal(got, want) {
				t.Fatalf("the interrupted export has %d lines, the uninterrupted export %d", len(got), len(want))
			}
		})
	})
}

func TestExportOfSegments(t *testing.T) {
	db := storetest.Engines()[1].Client(t)
	store := tableWithExternalRecords(t, db, dynamo.Options{})
	want := storetest.Export(t, store, 1)
	for _, segments := range []int{2, 7, bulk.MaxSegments} {
		if got := storetest.Export(t, storetest.StoreWithClient(t, store, storetest.WithScanLimit(db, 3), dynamo.Options{}), segments); !slices.Equal(got, want) {
			t.Errorf("an export with %d segments has %d lines, want %d", segments, len(got), len(want))
		}
	}
	for _, segments := range []int{0, bulk.MaxSegments + 1} {
		if err := store.Export(context.Background(), make([]bulk.SegmentProgress, segments), nil); err == nil {
			t.Errorf("an export with %d segments returns no error", segments)
		}
	}
	full := errors.New("disk full")
	for range 20 {
		pages := 0
		err := store.Export(context.Background(), make([]bulk.SegmentProgress, bulk.MaxSegments), func(bulk.ExportPage) error { pages++; return full })
		if !errors.Is(err, full) || pages != 1 {
			t.Errorf("%v after %d pages", err, pages)
		}
	}
}

// holding is an engine that delays every request until it is released, and then returns an empty
// response. It reports at once that the table has no records.
type holding struct {
	held    atomic.Int64
	release chan struct{}
}

func (h *holding) Do(r *http.Request) (*http.Response, error) {
	_, err := io.Copy(io.Discard, r.Body)
	if !strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".Scan") {
		h.held.Add(1)
		<-h.release
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("{}")), Request: r}, err
}

// lineReader generates lines without storing them.
type lineReader struct {
	left, n int
	rest    string
	pad     string
}

func (l *lineReader) Read(b []byte) (int, error) {
	if l.rest == "" {
		if l.left == 0 {
			return 0, io.EOF
		}
		l.left--
		l.n++
		l.rest = line(fmt.Sprint(l.n), l.pad)
	}
	n := copy(b, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

// An import needs a bounded amount of memory, for any length of the file and the lines.
func TestImportMemoryIsBounded(t *testing.T) {
	for _, c := range []struct {
		pad        int
		held, most int64
	}{{0, 32, 16}, {400_000, 20, 64}} {
		for _, dry := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				engine := &holding{release: make(chan struct{})}
				db := dynamodb.New(dynamodb.Options{Region: "nowhere", BaseEndpoint: aws.String("http://holding.invalid"), HTTPClient: engine, Credentials: aws.AnonymousCredentials{}})
				store, err := dynamo.New(db, dynamo.Options{Table: "held"})
				if err != nil {
					t.Fatal(err)
				}
				heap := func() int64 {
					runtime.GC()
					var m runtime.MemStats
					runtime.ReadMemStats(&m)
					return int64(m.HeapAlloc)
				}
				const lines = 150 // 60 MB of the long lines
				before := heap()
				var importing sync.WaitGroup
				importing.Go(func() {
					done, err := store.Import(context.Background(), &lineReader{left: lines, pad: strings.Repeat("x", c.pad)}, bulk.ImportOptions{DryRun: dry})
					if err != nil || done.Written != lines {
						t.Errorf("did %+v, %v", done, err)
					}
				})
				// All lines that can proceed have proceeded.
				synctest.Wait()
				if got := engine.held.Load(); got != c.held {
					t.Errorf("lines of %d bytes: %d are in progress, want %d", c.pad, got, c.held)
				}
				// 8 MB of lines, as text, as record and as request. The factor 2 is for buffers that grow by
				// copying.
				if most := (heap() - before) >> 20; most > c.most {
					t.Errorf("lines of %d bytes: %d MB are in memory", c.pad, most)
				}
				close(engine.release)
				importing.Wait()
			})
		}
	}
}

// If a line cannot be written, no later line with the same key is written. Otherwise a resumed
// import would find the later line's record.
func TestLinesOfOneKeyFailTogether(t *testing.T) {
	db := storetest.Engines()[0].Client(t)
	store := storetest.NewTable(t, db, dynamo.Options{})
	var puts atomic.Int64
	failing := storetest.StoreWithClient(t, store, storetest.WithRequestHook(db, func(_ context.Context, in any) error {
		if _, ok := in.(*dynamodb.PutItemInput); ok && puts.Add(1) == 1 {
			return errors.New("lost")
		}
		return nil
	}), dynamo.Options{})
	done, err := failing.Import(context.Background(), strings.NewReader(line("1", "first")+line("1", "second")+line("1", "third")), bulk.ImportOptions{})
	if err == nil || done.Lines != 0 || puts.Load() != 1 {
		t.Errorf("the result is %+v, %v after %d puts, want an error after 1", done, err, puts.Load())
	}
}

// With SkipUnreadable, lines that cannot be imported are skipped and counted, and the first ones
// are reported.
func TestImportSkipsInvalidLines(t *testing.T) {
	db := storetest.Engines()[0].Client(t)
	bad := `{"Item":{"pk":{"S":"WAREHOUSE#w1"},"sk":{"S":"#METADATA"},"warehouseId":{"S":"w1"}}}` + "\n"
	text := line("1", "x") + "no JSON\n" + strings.Repeat(bad, 30) + line("2", "x")
	for _, opts := range []bulk.ImportOptions{{SkipUnreadable: true}, {DryRun: true}, {DryRun: true, SkipUnreadable: true}} {
		store := storetest.NewTable(t, db, dynamo.Options{})
		done := storetest.Import(t, store, text, opts)
		if done.Written != 2 || done.Unreadable != 31 || done.Lines != 33 || done.RecordCount() != 33 || len(done.BadLines) != 20 {
			t.Fatalf("%+v did %+v", opts, done)
		}
		for i, b := range done.BadLines {
			says := `WAREHOUSE#w1 #METADATA: attribute "name"`
			if i == 0 {
				says = "JSON"
			}
			if b.Line != i+2 || !strings.Contains(b.Problem, says) {
				t.Errorf("the reported line is %+v, want line %d with the problem %q", b, i+2, says)
			}
		}
		want := []string{line("1", "x"), line("2", "x")}
		if opts.DryRun {
			want = nil
		}
		if got := storetest.Export(t, store, 1); !slices.Equal(got, want) {
			t.Errorf("%+v left %q", opts, got)
		}
	}
}

// A line that DynamoDB rejects is skipped like an unreadable line. A later line with the same key
// is still written.
func TestImportSkipsRejectedRecords(t *testing.T) {
	db := storetest.Engines()[0].Client(t)
	store := storetest.NewTable(t, db, dynamo.Options{})
	var puts atomic.Int64
	refusing := storetest.StoreWithClient(t, store, storetest.WithRequestHook(db, func(_ context.Context, in any) error {
		if _, ok := in.(*dynamodb.PutItemInput); ok && puts.Add(1) == 1 {
			return &smithy.GenericAPIError{Code: "ValidationException", Message: "no"}
		}
		return nil
	}), dynamo.Options{})
	done := storetest.Import(t, refusing, line("1", "first")+line("1", "second"), bulk.ImportOptions{SkipUnreadable: true})
	if done.Unreadable != 1 || done.Written != 1 || done.BadLines[0].Line != 1 || !slices.Equal(storetest.Export(t, store, 1), []string{line("1", "second")}) {
		t.Errorf("did %+v", done)
	}
}

func TestWrongNumberOfShards(t *testing.T) {
	db := storetest.Engines()[0].Client(t)
	store := tableWithExternalRecords(t, db, dynamo.Options{Shards: 4})
	storetest.DeleteLayout(t, db, storetest.StoreTableName(t, store))
	err := storetest.StoreWithClient(t, store, db, dynamo.Options{}).CheckTable(context.Background())
	wrong := (*table.ShardsError)(nil)
	if !errors.As(err, &wrong) || !errors.Is(err, table.ErrTableMismatch) || wrong.Shards != 1 || len(wrong.Keys) < 4 || wrong.KeyList() != strings.Join(wrong.Keys[:3], ", ")+", ..." {
		t.Errorf("%v", err)
	}
	if err := store.CheckTable(context.Background()); err != nil {
		t.Error(err)
	}
}

// Orders that are imported beside others take the numbers of orders off the products and employees
// that the table has, and no others. What is imported again changes nothing.
func TestImportedOrdersLeaveNoWrongNumbers(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngine(t, func(t *testing.T, db *dynamodb.Client) {
		from := storetest.NewRawTable(t, db, storetest.SmallDataset(t, 3), dynamo.Options{})
		to := storetest.NewRawTable(t, db, storetest.SmallDataset(t, 3), dynamo.Options{})
		to.Delete("PRODUCT#p00", "#METADATA")
		for _, order := range []int{0, 1} {
			to.Delete("ORDER#"+storetest.SmallOrderID(order), "ITEM#p01")
			to.Delete("ORDER#"+storetest.SmallOrderID(order), "ITEM#p00")
		}
		number := func(sku string) string {
			return storetest.FormatValue(to.Get("PRODUCT#"+sku, "#METADATA")["orderCount"])
		}
		all := number("p02")
		text := strings.Join(storetest.Export(t, from.Store, 1), "")
		for range 2 {
			if _, err := to.Store.Import(t.Context(), strings.NewReader(text), bulk.ImportOptions{Overwrite: true}); err != nil {
				t.Fatal(err)
			}
			if to.Get("PRODUCT#p01", "#METADATA")["orderCount"] != nil || number("p02") != all {
				t.Errorf("p01 has %s orders, p02 %s, want none and %s", number("p01"), number("p02"), all)
			}
		}
		if inconsistencies, summary := to.Check(check.Options{Repair: true}); summary.UnrepairedCount() > 0 {
			t.Errorf("found %+v", inconsistencies)
		}
		if number("p00") != all || number("p01") != all {
			t.Errorf("after a repair p00 has %s orders, p01 %s, want %s", number("p00"), number("p01"), all)
		}
	})
}
