package enginetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
)

// Run runs the suite as parallel subtests of t. open is called once per subtest and returns a
// client of the engine. All clients may belong to the same engine.
func Run(t *testing.T, open func(t *testing.T) *dynamodb.Client) {
	var tables atomic.Int64
	start := time.Now().UnixNano() // distinguishes the tables of several runs
	for _, c := range slices.Concat(itemCases(), queryCases(), indexCases(), localIndexCases(), batchCases(), transactCases(), transactedUpdateCases(), valueCases(), timeToLiveCases(), streamCases()) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			tb := &table{T: t, db: open(t), name: fmt.Sprintf("enginetest-%d-%d", start, tables.Add(1))}
			tb.create()
			c.run(tb)
		})
	}
}

// testCase tests one behaviour.
type testCase struct {
	name string
	run  func(tb *table)
}

// table is the table of one test. Its methods end the test if the engine returns an error, except
// for methods that return the error.
type table struct {
	*testing.T
	db   *dynamodb.Client
	name string
}

// The attributes of the tables in this suite. They are independent of Ordergraph's attributes.
const (
	pk, sk         = "pk", "sk"
	gsi1           = "index-1"
	gsi1pk, gsi1sk = "gsi1pk", "gsi1sk"
)

// create creates the table. options change the request.
func (tb *table) create(options ...func(*dynamodb.CreateTableInput)) {
	tb.Helper()
	var defs []types.AttributeDefinition
	for _, name := range []string{pk, sk, gsi1pk, gsi1sk} {
		defs = append(defs, types.AttributeDefinition{AttributeName: aws.String(name), AttributeType: types.ScalarAttributeTypeS})
	}
	in := &dynamodb.CreateTableInput{
		TableName:            &tb.name,
		BillingMode:          types.BillingModePayPerRequest,
		AttributeDefinitions: defs,
		KeySchema:            schema(pk, sk),
		GlobalSecondaryIndexes: []types.GlobalSecondaryIndex{{
			IndexName:  aws.String(gsi1),
			KeySchema:  schema(gsi1pk, gsi1sk),
			Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll},
		}},
	}
	for _, o := range options {
		o(in)
	}
	out, err := tb.db.CreateTable(tb.Context(), in)
	if err != nil {
		tb.Fatalf("CreateTable: %v", err)
	}
	tb.Cleanup(func() {
		// The test's context has ended at this point.
		_, err := tb.db.DeleteTable(context.WithoutCancel(tb.Context()), &dynamodb.DeleteTableInput{TableName: &tb.name})
		if err != nil {
			tb.Errorf("DeleteTable: %v", err)
		}
	})
	if out.TableDescription.TableStatus != types.TableStatusCreating {
		return
	}
	err = dynamodb.NewTableExistsWaiter(tb.db).Wait(tb.Context(), &dynamodb.DescribeTableInput{TableName: &tb.name}, 2*time.Minute)
	if err != nil {
		tb.Fatalf("wait for the table: %v", err)
	}
}

// schema returns a key of two attributes.
func schema(partition, sort string) []types.KeySchemaElement {
	return []types.KeySchemaElement{
		{AttributeName: &partition, KeyType: types.KeyTypeHash},
		{AttributeName: &sort, KeyType: types.KeyTypeRange},
	}
}

// item is a record or a part of a record.
type item = map[string]types.AttributeValue

func str(v string) types.AttributeValue { return &types.AttributeValueMemberS{Value: v} }
func num(v string) types.AttributeValue { return &types.AttributeValueMemberN{Value: v} }

// key returns the key of a record.
func key(p, s string) item { return item{pk: str(p), sk: str(s)} }

// record returns a record with the key p, s. more contains pairs of name and text for further
// attributes.
func record(p, s string, more ...string) item {
	it := key(p, s)
	for i := 0; i < len(more); i += 2 {
		it[more[i]] = str(more[i+1])
	}
	return it
}

// text returns a string attribute, or "" if it is absent.
func text(it item, name string) string {
	v, _ := it[name].(*types.AttributeValueMemberS)
	if v == nil {
		return ""
	}
	return v.Value
}

// number returns a number attribute, or "" if it is absent.
func number(it item, name string) string {
	v, _ := it[name].(*types.AttributeValueMemberN)
	if v == nil {
		return ""
	}
	return v.Value
}

// texts returns a string attribute of several records.
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

// get returns the record, or nil if it does not exist.
func (tb *table) get(p, s string) item {
	tb.Helper()
	out, err := tb.db.GetItem(tb.Context(), &dynamodb.GetItemInput{TableName: &tb.name, Key: key(p, s), ConsistentRead: aws.Bool(true)})
	if err != nil {
		tb.Fatalf("GetItem %s %s: %v", p, s, err)
	}
	return out.Item
}

// update runs an update expression on one record. values contains pairs of placeholder and value.
func (tb *table) update(p, s, expr string, values ...any) {
	tb.Helper()
	_, err := tb.db.UpdateItem(tb.Context(), &dynamodb.UpdateItemInput{
		TableName: &tb.name, Key: key(p, s), UpdateExpression: &expr, ExpressionAttributeValues: valueMap(values...),
	})
	if err != nil {
		tb.Fatalf("UpdateItem %s %s %q: %v", p, s, expr, err)
	}
}

// valueMap returns ExpressionAttributeValues from pairs of placeholder and value. A Go string
// becomes a string attribute.
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

// queryInput returns a Query of the table with a key condition. values contains pairs of
// placeholder and value.
func (tb *table) queryInput(cond string, values ...any) *dynamodb.QueryInput {
	return &dynamodb.QueryInput{TableName: &tb.name, KeyConditionExpression: &cond, ExpressionAttributeValues: valueMap(values...)}
}

// query returns the records of all pages of a Query, and checks each page.
func (tb *table) query(in *dynamodb.QueryInput) []item {
	tb.Helper()
	in2 := *in
	var all []item
	for page := 0; ; page++ {
		if page > 10_000 {
			tb.Fatalf("Query %q does not end", *in.KeyConditionExpression)
		}
		out, err := tb.db.Query(tb.Context(), &in2)
		if err != nil {
			tb.Fatalf("Query %q: %v", *in.KeyConditionExpression, err)
		}
		if int(out.Count) != len(out.Items) {
			tb.Errorf("Query %q: Count is %d, but there are %d records", *in.KeyConditionExpression, out.Count, len(out.Items))
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

// index returns the sort keys of the table for all records under p in the index, in the order of
// the index.
func (tb *table) index(p string) []string {
	tb.Helper()
	in := tb.queryInput("gsi1pk = :p", ":p", p)
	in.IndexName = aws.String(gsi1)
	return texts(tb.query(in), sk)
}

// assertEqual fails the test unless got and want are equal.
func assertEqual[T comparable](tb *table, what string, got, want []T) {
	tb.Helper()
	if !slices.Equal(got, want) {
		tb.Errorf("%s:\n got %v\nwant %v", what, got, want)
	}
}

// assertSameElements compares without regard to order, for results whose order DynamoDB does not
// guarantee.
func assertSameElements(tb *table, what string, got, want []string) {
	tb.Helper()
	assertEqual(tb, what, slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want)))
}

// assertCode fails the test unless err is the engine's error with this code.
func assertCode(tb *table, what string, err error, code string) {
	tb.Helper()
	api, ok := errors.AsType[smithy.APIError](err)
	if !ok {
		tb.Errorf("%s: want %s, got %v", what, code, err)
		return
	}
	// Some engines send the error type with its namespace.
	if got := api.ErrorCode(); got[strings.LastIndex(got, "#")+1:] != code {
		tb.Errorf("%s: want %s, got %v", what, code, err)
	}
}

// assertOutcome fails the test unless err is the engine's error with this code, or nil if the code
// is empty.
func assertOutcome(tb *table, what string, err error, code string) {
	tb.Helper()
	if code != "" {
		assertCode(tb, what, err, code)
	} else if err != nil {
		tb.Errorf("%s: %v", what, err)
	}
}
