package faults_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"net/url"
	"os"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/embedded"
	"github.com/ordergraph/ordergraph/internal/test/dynamolocal"
	"github.com/ordergraph/ordergraph/internal/test/faults"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

func TestMain(m *testing.M) { os.Exit(dynamolocal.Main(m)) }

func key(i int) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: "k"}, "sk": &types.AttributeValueMemberS{Value: fmt.Sprint(i)}}
}

// failingClient returns a client of db's engine on which every request meets a fault. It does not
// retry.
func failingClient(db *dynamodb.Client, kind faults.Kind) (*dynamodb.Client, *faults.Client) {
	client, between := faults.WrapClient(db, func(faults.Request) faults.Kind { return kind })
	return dynamodb.New(client.Options(), func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} }), between
}

func countRecords(t *testing.T, db *dynamodb.Client, table string) int {
	t.Helper()
	out, err := db.Scan(t.Context(), &dynamodb.ScanInput{TableName: &table})
	if err != nil {
		t.Fatal(err)
	}
	return len(out.Items) - 1 // the layout of the table was written before the faults
}

// The SDK maps each fault to the right error, and the engine has executed the request or has not.
func TestKinds(t *testing.T) {
	code := func(want string) func(error) bool {
		return func(err error) bool {
			api := smithy.APIError(nil)
			return errors.As(err, &api) && api.ErrorCode() == want
		}
	}
	network := func(err error) bool { failed := (*net.OpError)(nil); return errors.As(err, &failed) }
	for _, c := range []struct {
		kind    faults.Kind
		matches func(error) bool
		saved   int
	}{
		{faults.None, func(err error) bool { return err == nil }, 2},
		{faults.ThroughputExceeded, code("ProvisionedThroughputExceededException"), 0},
		{faults.Throttling, code("ThrottlingException"), 0},
		{faults.InternalServerError, code("InternalServerError"), 0},
		{faults.TransactionConflict, func(err error) bool {
			cancelled := (*types.TransactionCanceledException)(nil)
			return errors.As(err, &cancelled) && len(cancelled.CancellationReasons) == 2 &&
				*cancelled.CancellationReasons[0].Code == "TransactionConflict" && *cancelled.CancellationReasons[1].Code == "None"
		}, 0},
		{faults.TransactionInProgress, func(err error) bool {
			busy := (*types.TransactionInProgressException)(nil)
			return errors.As(err, &busy)
		}, 0},
		{faults.ConnectionRefused, network, 0},
		{faults.ConnectionReset, network, 2},
		{faults.ResponseTimeout, func(err error) bool { timeout := net.Error(nil); return errors.As(err, &timeout) && timeout.Timeout() }, 2},
		{faults.TruncatedResponse, func(err error) bool { return err != nil && !network(err) }, 2},
		{faults.Unprocessed, func(err error) bool { return err == nil }, 2},
	} {
		t.Run(string(c.kind), func(t *testing.T) {
			storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
				table := storetest.TableName()
				storetest.NewTable(t, db, dynamo.Options{Table: table})
				client, faultClient := failingClient(db, c.kind)
				put := func(i int) types.TransactWriteItem {
					return types.TransactWriteItem{Put: &types.Put{TableName: &table, Item: key(i)}}
				}
				_, err := client.TransactWriteItems(context.Background(), &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{put(1), put(2)}})
				if !c.matches(err) {
					t.Errorf("unexpected error: %v", err)
				}
				if n := countRecords(t, db, table); n != c.saved {
					t.Errorf("%d records were written, want %d", n, c.saved)
				}
				lost := 0
				if c.kind == faults.ConnectionReset || c.kind == faults.ResponseTimeout || c.kind == faults.TruncatedResponse {
					lost = 1
				}
				if faultClient.LostCommits() != lost {
					t.Errorf("%d commits were lost, want %d", faultClient.LostCommits(), lost)
				}
			})
		})
	}
}

// A conflict on a single write is a TransactionConflictException. Reads meet no conflicts.
func TestConflictOfASingleWrite(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		table := storetest.TableName()
		storetest.NewTable(t, db, dynamo.Options{Table: table})
		client, _ := failingClient(db, faults.TransactionConflict)
		_, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: key(1)})
		if conflict := (*types.TransactionConflictException)(nil); !errors.As(err, &conflict) || countRecords(t, db, table) != 0 {
			t.Errorf("the error is %v and %d records were written, want a TransactionConflictException and 0", err, countRecords(t, db, table))
		}
		if _, err := client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &table, Key: key(1)}); err != nil {
			t.Errorf("a read failed with a fault for writes: %v", err)
		}
	})
}

// A part of a batch is executed, and the response contains the rest.
func TestUnprocessed(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		table := storetest.TableName()
		storetest.NewTable(t, db, dynamo.Options{Table: table})
		client, faultClient := failingClient(db, faults.Unprocessed)
		var puts []types.WriteRequest
		var keys []map[string]types.AttributeValue
		for i := range 5 {
			puts = append(puts, types.WriteRequest{PutRequest: &types.PutRequest{Item: key(i)}})
			keys = append(keys, key(i))
		}
		output, err := client.BatchWriteItem(t.Context(), &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{table: puts}})
		if err != nil || len(output.UnprocessedItems[table]) != 3 || countRecords(t, db, table) != 2 {
			t.Fatalf("%v, %v, %d records", output, err, countRecords(t, db, table))
		}
		if _, err := db.BatchWriteItem(t.Context(), &dynamodb.BatchWriteItemInput{RequestItems: output.UnprocessedItems}); err != nil {
			t.Fatal(err)
		}
		read, err := client.BatchGetItem(t.Context(), &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{table: {Keys: keys, ConsistentRead: aws.Bool(true)}}})
		if err != nil || len(read.Responses[table]) != 2 || len(read.UnprocessedKeys[table].Keys) != 3 || !aws.ToBool(read.UnprocessedKeys[table].ConsistentRead) {
			t.Errorf("%v, %v", read, err)
		}
		if n := faultClient.Counts()[faults.Unprocessed]; n != 2 {
			t.Errorf("%d faults are counted, want 2", n)
		}
		faultClient.Stop()
		if read, err := client.BatchGetItem(t.Context(), &dynamodb.BatchGetItemInput{RequestItems: read.UnprocessedKeys}); err != nil || len(read.Responses[table]) != 3 {
			t.Errorf("after Heal: %v, %v", read, err)
		}
	})
}

// Equal seeds give equal faults.
func TestRandom(t *testing.T) {
	rates := faults.Rates{faults.ThroughputExceeded: 0.2, faults.ConnectionReset: 0.2, faults.TruncatedResponse: 0.1}
	draw := func(seed uint64) (kinds []faults.Kind, n int) {
		choose := faults.Random(seed, rates, nil)
		for range 1000 {
			if choose(faults.Request{Operation: "GetItem"}) != faults.None {
				t.Error("a fault for writes was injected into a read")
			}
			kind := choose(faults.Request{Operation: "TransactWriteItems"})
			kinds = append(kinds, kind)
			if kind != faults.None {
				n++
			}
		}
		return kinds, n
	}
	one, n := draw(1)
	again, _ := draw(1)
	other, _ := draw(2)
	if fmt.Sprint(one) != fmt.Sprint(again) || fmt.Sprint(one) == fmt.Sprint(other) {
		t.Error("the same seed must give the same faults, and another seed other faults")
	}
	if n < 400 || n > 600 {
		t.Errorf("%d of 1000 requests failed, want about half", n)
	}
}

// Of each 100 requests, exactly the given numbers meet faults. Transactions are counted separately.
func TestShares(t *testing.T) {
	draw := func(seed uint64) string {
		choose := faults.ExactShares(seed, faults.Counts{faults.ConnectionReset: 2}, faults.Counts{faults.ThroughputExceeded: 5, faults.InternalServerError: 1})
		var order []faults.Kind
		for range 3 {
			reads, writes := map[faults.Kind]int{}, map[faults.Kind]int{}
			for range 100 {
				kind := choose(faults.Request{Operation: "GetItem"})
				reads[kind]++
				writes[choose(faults.Request{Operation: "TransactWriteItems"})]++
				order = append(order, kind)
			}
			if got, want := fmt.Sprint(reads, writes), fmt.Sprint(map[faults.Kind]int{"": 94, faults.ThroughputExceeded: 5, faults.InternalServerError: 1}, map[faults.Kind]int{"": 98, faults.ConnectionReset: 2}); got != want {
				t.Errorf("of 100 requests of each kind, %s met faults, want %s", got, want)
			}
		}
		return fmt.Sprint(order)
	}
	one, again, other := draw(1), draw(1), draw(2)
	if one != again || one == other {
		t.Error("the same seed must give the same order, and another seed another order")
	}
}

// Through a proxy, the SDK gets the same errors, and the engine has executed the same requests.
func TestProxy(t *testing.T) {
	engine := httptest.NewServer(embedded.New())
	defer engine.Close()
	endpoint, err := url.Parse(engine.URL)
	if err != nil {
		t.Fatal(err)
	}
	kind := faults.None
	between := faults.NewProxy(endpoint, func(faults.Request) faults.Kind { return kind })
	proxy := httptest.NewServer(between)
	defer proxy.Close()
	db := dynamolocal.ClientOf(proxy.URL, func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} })
	store := storetest.NewTable(t, db, dynamo.Options{})
	table := storetest.StoreTableName(t, store)
	for i, c := range []struct {
		kind    faults.Kind
		matches func(error) bool
		saved   bool
	}{
		{faults.None, func(err error) bool { return err == nil }, true},
		{faults.Delayed, func(err error) bool { return err == nil }, true},
		{faults.ThroughputExceeded, func(err error) bool {
			exceeded, ok := errors.AsType[*types.ProvisionedThroughputExceededException](err)
			return ok && len(exceeded.ThrottlingReasons) == 1 && *exceeded.ThrottlingReasons[0].Reason == "TableWriteProvisionedThroughputExceeded"
		}, false},
		{faults.ConnectionReset, func(err error) bool { return errors.Is(err, io.EOF) }, true},
		{faults.TruncatedResponse, func(err error) bool { return errors.Is(err, io.ErrUnexpectedEOF) }, true},
	} {
		kind = c.kind
		_, err := db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: key(i)})
		if !c.matches(err) {
			t.Errorf("%s: %v", c.kind, err)
		}
		kind = faults.None
		out, err := db.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &table, Key: key(i)})
		if err != nil || (out.Item != nil) != c.saved {
			t.Errorf("%s: the record is %v, %v, want saved: %v", c.kind, out.Item, err, c.saved)
		}
		if n := between.Counts()[c.kind]; c.kind != faults.None && n != 1 {
			t.Errorf("%s: the proxy counts %d faults, want 1", c.kind, n)
		}
	}
}
