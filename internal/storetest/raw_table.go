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

// RawTable reads and writes the records of a table without the model, as other software does. A
// request that fails ends the test.
type RawTable struct {
	T     testing.TB
	DB    *dynamodb.Client
	Name  string
	Store *dynamo.Store
}

// NewRawTable returns a new table with a dataset. It is deleted when the test ends.
func NewRawTable(t testing.TB, db *dynamodb.Client, book commerce.Book, opts dynamo.Options) RawTable {
	t.Helper()
	store := NewTable(t, db, opts)
	Load(t, store, book)
	r := RawTable{T: t, DB: db, Name: NameOf(t, store), Store: store}
	t.Cleanup(r.DeleteTable)
	return r
}

// DeleteTable deletes the table, unless it was deleted before.
func (r RawTable) DeleteTable() {
	_, _ = r.DB.DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: &r.Name})
}

// Str returns a string attribute.
func Str(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

// Num returns a number attribute, spelled as n.
func Num(n string) types.AttributeValue { return &types.AttributeValueMemberN{Value: n} }

// ItemKey returns the primary key of a record.
func ItemKey(pk, sk string) Item { return Item{"pk": Str(pk), "sk": Str(sk)} }

// KeyText returns the primary key of a record as "pk sk".
func KeyText(rec Item) string { return Record(rec).Text("pk") + " " + Record(rec).Text("sk") }

// Get returns a record, nil if there is none.
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

// Delete deletes a record, which has to exist, and returns it.
func (r RawTable) Delete(pk, sk string) Item {
	r.T.Helper()
	out, err := r.DB.DeleteItem(context.Background(), &dynamodb.DeleteItemInput{TableName: &r.Name, Key: ItemKey(pk, sk), ReturnValues: types.ReturnValueAllOld})
	if err != nil {
		r.T.Fatal(err)
	}
	if len(out.Attributes) == 0 {
		r.T.Fatalf("there was no record %s %s", pk, sk)
	}
	return out.Attributes
}

// Set replaces attributes of a record, which has to exist. A nil value removes the attribute.
func (r RawTable) Set(pk, sk string, changes Item) {
	r.T.Helper()
	// The embedded engine moves a record within its index only after it has left the index.
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

// SetWithEdges is Set for a record whose edges, as far as it has any, are written anew.
func (r RawTable) SetWithEdges(pk, sk string, changes Item) {
	r.T.Helper()
	r.Set(pk, sk, changes)
	for _, edge := range Edges(r.Get(pk, sk)) {
		if at := (Key{Record(edge).Text("pk"), Record(edge).Text("sk")}); r.Get(at.PK, at.SK) != nil {
			r.Delete(at.PK, at.SK)
		}
		r.Put(edge)
	}
}

// Edges returns the edges of a record in a table of one shard. They have the attributes of the
// record as they are spelled there.
func Edges(rec Item) []Item {
	records, err := (&model.Codec{Currency: "USD", Shards: 1}).EncodedAgain(*model.EntityOf(model.KeyOf(rec)), rec)
	if err != nil {
		panic(err)
	}
	var edges []Item
	for _, r := range records {
		e := model.EntityOf(model.KeyOf(r))
		if e == nil || e.EdgeOf == nil {
			continue
		}
		edge := maps.Clone(e.Without(rec))
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

// All returns all records by KeyText.
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
	return records
}

// Check checks the table, without waiting for the index unless opts say so.
func (r RawTable) Check(opts check.Options) ([]check.Drift, check.Summary) {
	r.T.Helper()
	var drifts []check.Drift
	opts.Found = func(d check.Drift) { drifts = append(drifts, d) }
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
	if n != len(drifts) {
		r.T.Errorf("the summary counts %d drifts, %d were reported", n, len(drifts))
	}
	return drifts, summary
}

// CheckClean fails the test unless a check finds nothing.
func (r RawTable) CheckClean() {
	r.T.Helper()
	if drifts, summary := r.Check(check.Options{}); len(drifts) > 0 || summary.Unsettled > 0 {
		r.T.Errorf("not clean: %+v, %d unsettled", drifts, summary.Unsettled)
	}
}

// Classes counts drifts by class.
func Classes(drifts []check.Drift) map[string]int {
	n := map[string]int{}
	for _, d := range drifts {
		n[d.Class]++
	}
	return n
}

// Found writes the classes of drifts and their numbers in one line: "item-missing 3, timeline 1".
func Found(drifts []check.Drift) string {
	n := Classes(drifts)
	var parts []string
	for _, class := range slices.Sorted(maps.Keys(n)) {
		parts = append(parts, fmt.Sprintf("%s %d", class, n[class]))
	}
	return strings.Join(parts, ", ")
}

// NumberText returns the value of a number attribute in one spelling. DynamoDB chooses its own. For
// another type it is empty.
func NumberText(v types.AttributeValue) string {
	if n := (Record{"v": v}).Number("v"); n != nil {
		return n.RatString()
	}
	return ""
}

// Differing returns the keys of the records that differ between two states of a table, sorted.
func Differing(a, b map[string]Item) []string {
	var keys []string
	for k := range a {
		if !maps.EqualFunc(a[k], b[k], Equal) {
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

// ShowItem writes a record for people.
func ShowItem(rec Item) string { return Record(rec).String() }
