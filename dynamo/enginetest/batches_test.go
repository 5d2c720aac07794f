package enginetest

import (
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

func batchCases() []testCase {
	return []testCase{
		{"BatchGet", testBatchGet},
		{"BatchGetDuplicates", testBatchGetDuplicates},
		{"BatchGetTooMany", testBatchGetTooMany},
		{"BatchGetLarge", testBatchGetLarge},
		{"BatchWrite", testBatchWrite},
		{"BatchWriteTooMany", testBatchWriteTooMany},
		{"BatchWriteDuplicates", testBatchWriteDuplicates},
		{"BatchWriteRefusedWhole", testBatchWriteRefusedWhole},
		{"BatchWriteNoSuchTable", testBatchWriteNoSuchTable},
	}
}

// batchGet reads keys in one request.
func (tb *table) batchGet(keys []item) (*dynamodb.BatchGetItemOutput, error) {
	return tb.db.BatchGetItem(tb.Context(), &dynamodb.BatchGetItemInput{
		RequestItems: map[string]types.KeysAndAttributes{tb.name: {Keys: keys}},
	})
}

// batchWrite writes and deletes records in one request.
func (tb *table) batchWrite(reqs ...types.WriteRequest) error {
	out, err := tb.db.BatchWriteItem(tb.Context(), &dynamodb.BatchWriteItemInput{
		RequestItems: map[string][]types.WriteRequest{tb.name: reqs},
	})
	if err == nil && len(out.UnprocessedItems) > 0 {
		return fmt.Errorf("%d unprocessed", len(out.UnprocessedItems[tb.name]))
	}
	return err
}

func putRequest(it item) types.WriteRequest {
	return types.WriteRequest{PutRequest: &types.PutRequest{Item: it}}
}

func deleteRequest(k item) types.WriteRequest {
	return types.WriteRequest{DeleteRequest: &types.DeleteRequest{Key: k}}
}

func testBatchGet(tb *table) {
	var keys []item
	var want []string
	for i := range 100 {
		s := fmt.Sprint(i)
		keys = append(keys, key("p", s))
		if i%3 != 0 {
			tb.put(record("p", s, "v", s))
			want = append(want, s)
		}
	}
	out, err := tb.batchGet(keys)
	if err != nil {
		tb.Fatal(err)
	}
	assertSameElements(tb, "existing records", texts(out.Responses[tb.name], "v"), want)
	if len(out.UnprocessedKeys) != 0 {
		tb.Errorf("unprocessed: %v", out.UnprocessedKeys)
	}
	out, err = tb.batchGet([]item{key("nobody", "1")})
	if err != nil || len(out.Responses[tb.name]) != 0 || len(out.UnprocessedKeys) != 0 {
		tb.Errorf("no such record: %v, %v", out, err)
	}
}

func testBatchGetDuplicates(tb *table) {
	tb.put(record("p", "1"))
	_, err := tb.batchGet([]item{key("p", "1"), key("p", "2"), key("p", "1")})
	assertCode(tb, "the same key twice", err, "ValidationException")
}

func testBatchGetTooMany(tb *table) {
	var keys []item
	for i := range 101 {
		keys = append(keys, key("p", fmt.Sprint(i)))
	}
	_, err := tb.batchGet(keys)
	assertCode(tb, "101 keys", err, "ValidationException")
}

// testBatchGetLarge requests more than the maximum response of 16 MB. The response lists the keys
// that did not fit.
func testBatchGetLarge(tb *table) {
	v := strings.Repeat("x", 390*1024)
	var keys []item
	var want []string
	for i := range 45 {
		s := fmt.Sprint(i)
		tb.put(record("p", s, "v", v))
		keys, want = append(keys, key("p", s)), append(want, s)
	}
	var got []string
	for range 20 {
		out, err := tb.batchGet(keys)
		if err != nil {
			tb.Fatal(err)
		}
		got = append(got, texts(out.Responses[tb.name], sk)...)
		if keys = out.UnprocessedKeys[tb.name].Keys; len(keys) == 0 {
			break
		}
	}
	assertSameElements(tb, "all together", got, want)
}

func testBatchWrite(tb *table) {
	tb.put(record("p", "gone", gsi1pk, "g", gsi1sk, "x"))
	var reqs []types.WriteRequest
	var want []string
	for i := range 24 {
		s := fmt.Sprintf("%02d", i)
		reqs, want = append(reqs, putRequest(record("p", s, gsi1pk, "g", gsi1sk, s))), append(want, s)
	}
	if err := tb.batchWrite(append(reqs, deleteRequest(key("p", "gone")))...); err != nil {
		tb.Fatal(err)
	}
	assertEqual(tb, "the table", texts(tb.query(tb.queryInput("pk = :p", ":p", "p")), sk), want)
	assertEqual(tb, "the index", tb.index("g"), want)
}

// assertNothingWritten fails the test if a rejected batch has written something.
func assertNothingWritten(tb *table) {
	tb.Helper()
	if got := tb.query(tb.queryInput("pk = :p", ":p", "p")); len(got) != 0 {
		tb.Errorf("a refused request wrote %v", texts(got, sk))
	}
}

func testBatchWriteTooMany(tb *table) {
	var many []types.WriteRequest
	for i := range 26 {
		many = append(many, putRequest(record("p", fmt.Sprint(i))))
	}
	assertCode(tb, "26 requests", tb.batchWrite(many...), "ValidationException")
	assertNothingWritten(tb)
}

func testBatchWriteDuplicates(tb *table) {
	assertCode(tb, "the same key twice", tb.batchWrite(putRequest(record("p", "0")), deleteRequest(key("p", "0"))), "ValidationException")
	assertNothingWritten(tb)
}

func testBatchWriteRefusedWhole(tb *table) {
	assertCode(tb, "a bad record", tb.batchWrite(putRequest(record("p", "0")), putRequest(item{pk: str("p")})), "ValidationException")
	assertNothingWritten(tb)
}

func testBatchWriteNoSuchTable(tb *table) {
	_, err := tb.db.BatchWriteItem(tb.Context(), &dynamodb.BatchWriteItemInput{
		RequestItems: map[string][]types.WriteRequest{tb.name + "-not": {putRequest(record("p", "0"))}},
	})
	assertCode(tb, "no such table", err, "ResourceNotFoundException")
}
