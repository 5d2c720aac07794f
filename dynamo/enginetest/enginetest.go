// Package enginetest is a conformance suite: the behaviours of DynamoDB that Ordergraph's code
// rests on, as tests any engine can be put through. It exists because Ordergraph runs on three (the
// service, DynamoDB Local, and minidyn as the store that is built in), and code that is right on
// one and wrong on another is found here rather than in production.
//
// It talks to an engine through the SDK's client only, and knows nothing of Ordergraph's records:
// it spells out its own attribute names, makes a table per test, and removes it afterwards. So it
// can be pointed at a real account too, where it costs a few cents and takes minutes.
//
// # Differences
//
// Cases an engine is known to fail are listed, with the reason: see [Differences] and [Minidyn].
// They are run all the same, and have to fail: a list that claims more than is true would hide what
// has been mended.
//
// What engines may do as they like, and the suite therefore does not assert:
//
//   - The order of records with equal index keys. All that can be relied on is that every page continues where
//     the last one ended.
//   - The order of Scan.
//   - Consumed capacity: the service and DynamoDB Local report it when asked, minidyn does not.
//   - Reserved words as attribute names (status, name, count and some 570 more) in expressions of reads: the service and
//     DynamoDB Local refuse them, minidyn does not. Write #status.
//   - How a number is spelled inside a list or a map. DynamoDB Local makes 0.1 of the attribute 0.10, but leaves it
//     in a list, and adds 1.50 to 6 to get 7.50. Whoever needs the trailing zero stores text; whoever compares numbers
//     compares values.
//   - Whether an update in a transaction that makes no sense for its record (a text added to, a key changed) is an error, or a
//     reason of a cancelled transaction: the service's documentation has it so, DynamoDB Local does it for some.
//   - An update (not a put) that sets an index key to another type: DynamoDB Local takes it and leaves the record
//     out of the index.
//   - Whether a Query with Select COUNT sends records as well. The count is right.
//   - The wording of messages. Codes and types of errors are asserted, texts are not.
package enginetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
)

// Differences are the cases an engine is known to fail: the name of the case, as it is after the
// name of the test, and the reason.
type Differences map[string]string

// Run puts an engine through the suite, as parallel subtests of t. open is called once per subtest
// and returns a client of the engine; all of them may be of the same one.
//
// A case that is in known has to fail. It is then reported as skipped, with the reason and with
// what the engine did; when it passes, the test fails, as the list is out of date. So it does when
// the list has a name that no case has.
func Run(t *testing.T, open func(t *testing.T) *dynamodb.Client, known ...Differences) {
	reasons := Differences{}
	for _, k := range known {
		maps.Copy(reasons, k)
	}
	var tables atomic.Int64
	start := time.Now().UnixNano() // apart from other runs against an engine that keeps its tables
	for _, c := range slices.Concat(itemCases(), queryCases(), indexCases(), batchCases(), transactCases(), transactedUpdateCases(), valueCases(), timeToLiveCases(), streamCases()) {
		reason, differs := reasons[c.name]
		delete(reasons, c.name)
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			tb := &table{T: t, db: open(t), name: fmt.Sprintf("enginetest-%d-%d", start, tables.Add(1))}
			tb.create()
			if !differs {
				c.run(tb)
				return
			}
			if failure := tb.expectFailure(c.run); failure == "" {
				t.Errorf("listed as a difference, but it passes now; listed because: %s", reason)
			} else {
				t.Skipf("known difference: %s\n%s", reason, failure)
			}
		})
	}
	for name := range reasons {
		t.Errorf("the list of differences has %q, which is no case", name)
	}
}

// failures is what went wrong in a case that is expected to fail.
type failures struct {
	mu   sync.Mutex
	text string // of the first
}

// expectFailure runs a case and returns what failed first, "" for nothing. The test is not failed
// by it.
func (tb *table) expectFailure(run func(*table)) string {
	quiet := *tb
	quiet.expected = &failures{}
	done := make(chan struct{})
	go func() { // its own goroutine, as Fatal ends the one it is called in
		defer close(done)
		run(&quiet)
	}()
	<-done
	quiet.expected.mu.Lock()
	defer quiet.expected.mu.Unlock()
	return quiet.expected.text
}

// fail notes a failure, where one is expected, and otherwise fails the test.
func (tb *table) fail(text string) {
	tb.Helper()
	if tb.expected == nil {
		tb.T.Error(text)
		return
	}
	tb.expected.mu.Lock()
	defer tb.expected.mu.Unlock()
	if tb.expected.text == "" {
		tb.expected.text = text
	}
}

// Error, Errorf, Fatal, Fatalf, FailNow and Failed stand before those of testing.T, for cases that
// are expected to fail.

func (tb *table) Error(args ...any) {
	tb.Helper()
	tb.fail(strings.TrimSuffix(fmt.Sprintln(args...), "\n"))
}

func (tb *table) Errorf(format string, args ...any) {
	tb.Helper()
	tb.fail(fmt.Sprintf(format, args...))
}

func (tb *table) Fatal(args ...any) {
	tb.Helper()
	tb.Error(args...)
	tb.FailNow()
}

func (tb *table) Fatalf(format string, args ...any) {
	tb.Helper()
	tb.Errorf(format, args...)
	tb.FailNow()
}

// FailNow ends the case, which has said why.
func (tb *table) FailNow() {
	if tb.expected == nil {
		tb.T.FailNow()
	}
	runtime.Goexit()
}

func (tb *table) Failed() bool {
	if tb.expected == nil {
		return tb.T.Failed()
	}
	tb.expected.mu.Lock()
	defer tb.expected.mu.Unlock()
	return tb.expected.text != ""
}

// testCase is one behaviour.
type testCase struct {
	name string
	run  func(tb *table)
}

// table is a table of its own for one test, with what the tests do to it. Its methods end the test
// when the engine fails, except those that return the error.
type table struct {
	*testing.T
	db       *dynamodb.Client
	name     string
	expected *failures // nil unless the case is expected to fail
}

// The attributes of the tables of this package. Ordergraph's own are none of its business.
const (
	pk, sk         = "pk", "sk"
	gsi1           = "index-1"
	gsi1pk, gsi1sk = "gsi1pk", "gsi1sk"
)

func (tb *table) create() {
	tb.Helper()
	var defs []types.AttributeDefinition
	for _, name := range []string{pk, sk, gsi1pk, gsi1sk} {
		defs = append(defs, types.AttributeDefinition{AttributeName: aws.String(name), AttributeType: types.ScalarAttributeTypeS})
	}
	schema := func(hash, rng string) []types.KeySchemaElement {
		return []types.KeySchemaElement{
			{AttributeName: aws.String(hash), KeyType: types.KeyTypeHash},
			{AttributeName: aws.String(rng), KeyType: types.KeyTypeRange},
		}
	}
	out, err := tb.db.CreateTable(tb.Context(), &dynamodb.CreateTableInput{
		TableName:            &tb.name,
		BillingMode:          types.BillingModePayPerRequest,
		AttributeDefinitions: defs,
		KeySchema:            schema(pk, sk),
		GlobalSecondaryIndexes: []types.GlobalSecondaryIndex{{
			IndexName:  aws.String(gsi1),
			KeySchema:  schema(gsi1pk, gsi1sk),
			Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll},
		}},
	})
	if err != nil {
		tb.Fatalf("CreateTable: %v", err)
	}
	tb.Cleanup(func() {
		// The test's own context has ended by now.
		_, err := tb.db.DeleteTable(context.WithoutCancel(tb.Context()), &dynamodb.DeleteTableInput{TableName: &tb.name})
		if err != nil {
			tb.Errorf("DeleteTable: %v", err)
		}
	})
	// Only where there is something to wait for: minidyn tells no status, and the waiter would wait
	// for one until the end.
	if out.TableDescription.TableStatus != types.TableStatusCreating {
		return
	}
	err = dynamodb.NewTableExistsWaiter(tb.db).Wait(tb.Context(), &dynamodb.DescribeTableInput{TableName: &tb.name}, 2*time.Minute)
	if err != nil {
		tb.Fatalf("wait for the table: %v", err)
	}
}

// item is a record or a part of one.
type item = map[string]types.AttributeValue

func str(v string) types.AttributeValue { return &types.AttributeValueMemberS{Value: v} }
func num(v string) types.AttributeValue { return &types.AttributeValueMemberN{Value: v} }

// key is the key of one record.
func key(p, s string) item { return item{pk: str(p), sk: str(s)} }

// record is a record with the key p, s and more attributes in pairs of name and text.
func record(p, s string, more ...string) item {
	it := key(p, s)
	for i := 0; i < len(more); i += 2 {
		it[more[i]] = str(more[i+1])
	}
	return it
}

// text is a string attribute, or "" when there is none.
func text(it item, name string) string {
	v, _ := it[name].(*types.AttributeValueMemberS)
	if v == nil {
		return ""
	}
	return v.Value
}

// number is a number attribute, or "" when there is none.
func number(it item, name string) string {
	v, _ := it[name].(*types.AttributeValueMemberN)
	if v == nil {
		return ""
	}
	return v.Value
}

// texts is one string attribute of several records.
func texts(items []item, name string) []string {
	out := []string{}
	for _, it := range items {
		out = append(out, text(it, name))
	}
	return out
}

func (tb *table) put(items ...item) {
	tb.Helper()
	for _, it := range items {
		if _, err := tb.db.PutItem(tb.Context(), &dynamodb.PutItemInput{TableName: &tb.name, Item: it}); err != nil {
			tb.Fatalf("PutItem %s %s: %v", text(it, pk), text(it, sk), err)
		}
	}
}

// get returns the record, nil when there is none.
func (tb *table) get(p, s string) item {
	tb.Helper()
	out, err := tb.db.GetItem(tb.Context(), &dynamodb.GetItemInput{TableName: &tb.name, Key: key(p, s), ConsistentRead: aws.Bool(true)})
	if err != nil {
		tb.Fatalf("GetItem %s %s: %v", p, s, err)
	}
	return out.Item
}

// update runs an update expression on one record; values are its :names in pairs of name and value.
func (tb *table) update(p, s, expr string, values ...any) {
	tb.Helper()
	_, err := tb.db.UpdateItem(tb.Context(), &dynamodb.UpdateItemInput{
		TableName: &tb.name, Key: key(p, s), UpdateExpression: &expr, ExpressionAttributeValues: valueMap(values...),
	})
	if err != nil {
		tb.Fatalf("UpdateItem %s %s %q: %v", p, s, expr, err)
	}
}

// valueMap makes ExpressionAttributeValues of pairs of name and value, where a Go string stands for
// a text.
func valueMap(values ...any) item {
	var m item
	for i := 0; i < len(values); i += 2 {
		if m == nil {
			m = item{}
		}
		switch v := values[i+1].(type) {
		case string:
			m[values[i].(string)] = str(v)
		case types.AttributeValue:
			m[values[i].(string)] = v
		}
	}
	return m
}

// queryInput is a Query of the table with a key condition and its :names in pairs.
func (tb *table) queryInput(cond string, values ...any) *dynamodb.QueryInput {
	return &dynamodb.QueryInput{TableName: &tb.name, KeyConditionExpression: &cond, ExpressionAttributeValues: valueMap(values...)}
}

// query returns all records of a Query, following the pages to the end, and checks what holds for
// every page.
func (tb *table) query(in *dynamodb.QueryInput) []item {
	tb.Helper()
	in2 := *in
	var all []item
	for page := 0; ; page++ {
		if page > 10_000 {
			tb.Fatalf("Query %q does not come to an end", *in.KeyConditionExpression)
		}
		out, err := tb.db.Query(tb.Context(), &in2)
		if err != nil {
			tb.Fatalf("Query %q: %v", *in.KeyConditionExpression, err)
		}
		if int(out.Count) != len(out.Items) {
			tb.Errorf("Query %q: Count is %d with %d records", *in.KeyConditionExpression, out.Count, len(out.Items))
		}
		if in.Limit != nil && len(out.Items) > int(*in.Limit) {
			tb.Errorf("Query %q: %d records with Limit %d", *in.KeyConditionExpression, len(out.Items), *in.Limit)
		}
		all = append(all, out.Items...)
		if len(out.LastEvaluatedKey) == 0 {
			return all
		}
		in2.ExclusiveStartKey = out.LastEvaluatedKey
	}
}

// index returns the sort keys (of the table) of what the index has under p, in the index's order.
func (tb *table) index(p string) []string {
	tb.Helper()
	in := tb.queryInput("gsi1pk = :p", ":p", p)
	in.IndexName = aws.String(gsi1)
	return texts(tb.query(in), sk)
}

// same fails the test unless got and want are equal.
func same[T comparable](tb *table, what string, got, want []T) {
	tb.Helper()
	if !slices.Equal(got, want) {
		tb.Errorf("%s:\n got %v\nwant %v", what, got, want)
	}
}

// SameSet is same regardless of order, for where DynamoDB promises none.
func sameSet(tb *table, what string, got, want []string) {
	tb.Helper()
	same(tb, what, slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want)))
}

// wantCode fails the test unless err is the engine's error of that code.
func wantCode(tb *table, what string, err error, code string) {
	tb.Helper()
	api, ok := errors.AsType[smithy.APIError](err)
	if !ok {
		tb.Errorf("%s: want %s, got %v", what, code, err)
		return
	}
	// Some engines send the type with its namespace.
	if got := api.ErrorCode(); got[strings.LastIndex(got, "#")+1:] != code {
		tb.Errorf("%s: want %s, got %v", what, code, err)
	}
}
