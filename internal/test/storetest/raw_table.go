package storetest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/check"
	"github.com/ordergraph/ordergraph/dynamo/model"
)

// Item is a record of a table.
type Item = map[string]types.AttributeValue

// RawTable reads and writes the records of a table directly, so the rules of a Store do not apply.
// If a request fails, the test fails and ends.
type RawTable struct {
	T     testing.TB
	DB    *dynamodb.Client
	Name  string
	Store *dynamo.Store
}

// NewRawTable creates a table and loads a dataset into it. The table is deleted when the test ends.
func NewRawTable(t testing.TB, db *dynamodb.Client, dataset commerce.Dataset, opts dynamo.Options) RawTable {
	t.Helper()
	store := NewTable(t, db, opts)
	LoadDataset(t, store, dataset)
	r := RawTable{T: t, DB: db, Name: StoreTableName(t, store), Store: store}
	t.Cleanup(r.DeleteTable)
	return r
}

// DeleteTable deletes the table, if it exists.
func (r RawTable) DeleteTable() {
	_, _ = r.DB.DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: &r.Name})
}

// Str returns a string attribute.
func Str(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

// Num returns a number attribute. n is the number as text, such as "1.50".
func Num(n string) types.AttributeValue { return &types.AttributeValueMemberN{Value: n} }

// ItemKey returns the primary key of a record.
func ItemKey(pk, sk string) Item { return Item{"pk": Str(pk), "sk": Str(sk)} }

// KeyText returns the primary key of a record as text: the partition key, a space and the sort key.
func KeyText(rec Item) string { return Record(rec).Text("pk") + " " + Record(rec).Text("sk") }

// Get returns a record, or nil if the record does not exist.
func (r RawTable) Get(pk, sk string) Item {
	r.T.Helper()
	out, err := r.DB.GetItem(context.Background(), &dynamodb.GetItemInput{TableName: &r.Name, Key: ItemKey(pk, sk), ConsistentRead: aws.Bool(true)})
	if err != nil {
		r.T.Fatal(err)
	}
	return out.Item
}

// Put writes a record.
func (r RawTable) Put(rec Item) {
	r.T.Helper()
	if _, err := r.DB.PutItem(context.Background(), &dynamodb.PutItemInput{TableName: &r.Name, Item: rec}); err != nil {
		r.T.Fatal(err)
	}
}

// Delete deletes a record and returns it. If the record does not exist, the test fails.
func (r RawTable) Delete(pk, sk string) Item {
	r.T.Helper()
	out, err := r.DB.DeleteItem(context.Background(), &dynamodb.DeleteItemInput{TableName: &r.Name, Key: ItemKey(pk, sk), ReturnValues: types.ReturnValueAllOld})
	if err != nil {
		r.T.Fatal(err)
	}
	if len(out.Attributes) == 0 {
		r.T.Fatalf("cannot delete the record %s %s: it does not exist", pk, sk)
	}
	return out.Attributes
}

// Set replaces attributes of a record. A nil value removes the attribute. If the record does not
// exist, the test fails.
func (r RawTable) Set(pk, sk string, changes Item) {
	r.T.Helper()
	// Delete also returns the record. If the record does not exist, Delete fails the test.
	rec := r.Delete(pk, sk)
	for name, v := range changes {
		if v == nil {
			delete(rec, name)
		} else {
			rec[name] = v
		}
	}
	r.Put(rec)
}

// SetWithEdges changes a record like Set, and also updates the record's edges. An edge is a copy of
// the record in an additional list.
func (r RawTable) SetWithEdges(pk, sk string, changes Item) {
	r.T.Helper()
	r.Set(pk, sk, changes)
	for _, edge := range EdgesOf(r.Get(pk, sk)) {
		if at := (Key{Record(edge).Text("pk"), Record(edge).Text("sk")}); r.Get(at.PK, at.SK) != nil {
			r.Delete(at.PK, at.SK)
		}
		r.Put(edge)
	}
}

// EdgesOf returns the edges that a record should have in a table with one shard. An edge is a copy
// of the record in an additional list.
func EdgesOf(rec Item) []Item {
	records, err := (&model.Codec{Currency: "USD"}).Reencode(model.EntityOf(model.KeyOf(rec)), rec)
	if err != nil {
		panic(err)
	}
	var edges []Item
	for _, r := range records {
		e := model.EntityOf(model.KeyOf(r))
		if e == nil || !e.IsEdge() {
			continue
		}
		if e.Each != "" {
			edges = append(edges, Item(r))
			continue
		}
		edge := maps.Clone(e.CopiedAttributes(rec))
		for _, name := range []string{"pk", "sk", "gsi1pk", "gsi1sk"} {
			edge[name] = r[name]
		}
		if rec["entity"] != nil {
			edge["entity"] = Str(e.Name)
		}
		edges = append(edges, edge)
	}
	return edges
}

// All returns all records of the table except its layout. The map keys are the records' primary keys
// in the format of KeyText.
func (r RawTable) All() map[string]Item {
	r.T.Helper()
	records := map[string]Item{}
	pages := dynamodb.NewScanPaginator(r.DB, &dynamodb.ScanInput{TableName: &r.Name, ConsistentRead: aws.Bool(true)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(context.Background())
		if err != nil {
			r.T.Fatal(err)
		}
		for _, rec := range page.Items {
			records[KeyText(rec)] = rec
		}
	}
	delete(records, string(model.EntityLayout.PK+" "+model.EntityLayout.SK))
	return records
}

// Check runs Store.CheckRecords on the table and returns the results. If opts.IndexLag is zero, the
// check assumes that the index is always up to date, and does not wait for it.
func (r RawTable) Check(opts check.Options) ([]check.Inconsistency, check.Summary) {
	r.T.Helper()
	var inconsistencies []check.Inconsistency
	opts.OnInconsistency = func(d check.Inconsistency) { inconsistencies = append(inconsistencies, d) }
	opts.Parallel = 4
	if opts.IndexLag == 0 {
		opts.IndexLag = check.NoIndexLag
	}
	summary, err := r.Store.CheckRecords(context.Background(), opts)
	if err != nil {
		r.T.Fatalf("check: %v", err)
	}
	n := 0
	for _, found := range summary.Found {
		n += found
	}
	// The check also reports an inconsistency that another client has removed before the last pass.
	if n > len(inconsistencies) {
		r.T.Errorf("the summary counts %d inconsistencies, but check reported %d", n, len(inconsistencies))
	}
	return inconsistencies, summary
}

// CheckClean fails the test if a check finds an inconsistency, or if the check cannot verify a
// record.
func (r RawTable) CheckClean() {
	r.T.Helper()
	if inconsistencies, summary := r.Check(check.Options{}); len(inconsistencies) > 0 || summary.Unverified > 0 {
		r.T.Errorf("the check reports %+v and %d unverified records, want no findings", inconsistencies, summary.Unverified)
	}
}

// CountByKind returns the number of inconsistencies of each kind.
func CountByKind(inconsistencies []check.Inconsistency) map[string]int {
	n := map[string]int{}
	for _, d := range inconsistencies {
		n[d.Kind]++
	}
	return n
}

// FormatKindCounts formats the number of inconsistencies (inconsistencies) of each kind, such as
// "item-missing 3, timeline 1".
func FormatKindCounts(inconsistencies []check.Inconsistency) string {
	n := CountByKind(inconsistencies)
	var parts []string
	for _, class := range slices.Sorted(maps.Keys(n)) {
		parts = append(parts, fmt.Sprintf("%s %d", class, n[class]))
	}
	return strings.Join(parts, ", ")
}

// CanonicalNumber returns a number attribute in a fixed format, because DynamoDB may change the
// notation of a number. For a value of another type, CanonicalNumber returns "".
func CanonicalNumber(v types.AttributeValue) string {
	if n := (Record{"v": v}).Number("v"); n != nil {
		return n.RatString()
	}
	return ""
}

// DifferingKeys returns the keys of all records that differ between two states of a table, in
// sorted order.
func DifferingKeys(a, b map[string]Item) []string {
	var keys []string
	for k := range a {
		if !maps.EqualFunc(a[k], b[k], EqualValues) {
			keys = append(keys, k)
		}
	}
	for k := range b {
		if a[k] == nil {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return keys
}

// FormatItem formats a record for test failures.
func FormatItem(rec Item) string { return Record(rec).String() }
