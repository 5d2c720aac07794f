package enginetest

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

func transactCases() []testCase {
	return []testCase{
		{"Transact", testTransact},
		{"TransactCancelledByUpdate", testTransactCancelledByUpdate},
		{"TransactCancelledByPut", testTransactCancelledByPut},
		{"TransactCancelledByPutReturnsOld", testTransactCancelledByPutOld},
		{"TransactCancelledTwice", testTransactCancelledTwice},
		{"TransactTooMany", testTransactTooMany},
		{"TransactSize", testTransactSize},
		{"TransactCancelledKeepsEverything", testTransactKeeps},
		{"TransactHundred", testTransactHundred},
		{"TransactSameItemTwice", testTransactTwice},
		{"TransactCancelledReturnsOld", testTransactCancelledReturnsOld},
		{"TransactRefusedWhole", testTransactRefusedWhole},
		{"TransactToken", testTransactToken},
		{"TransactTokenOfCancelled", testTransactTokenOfCancelled},
		{"TransactGet", testTransactGet},
		{"ConcurrentUpdates", testConcurrentUpdates},
	}
}

func (tb *table) transact(actions ...types.TransactWriteItem) error {
	_, err := tb.db.TransactWriteItems(tb.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: actions})
	return err
}

func putAction(tb *table, it item, cond string) types.TransactWriteItem {
	p := &types.Put{TableName: &tb.name, Item: it, ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld}
	if cond != "" {
		p.ConditionExpression = &cond
	}
	return types.TransactWriteItem{Put: p}
}

func takeAction(tb *table, s, n string) types.TransactWriteItem {
	return types.TransactWriteItem{Update: &types.Update{
		TableName: &tb.name, Key: key("stock", s),
		UpdateExpression:                    aws.String("SET n = n - :n"),
		ConditionExpression:                 aws.String("n >= :n"),
		ExpressionAttributeValues:           valueMap(":n", num(n)),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}}
}

func (tb *table) putStock(s, n string) {
	it := record("stock", s)
	it["n"] = num(n)
	tb.put(it)
}

func testTransact(tb *table) {
	tb.putStock("a", "5")
	tb.put(record("p", "old"))
	err := tb.transact(
		putAction(tb, record("p", "new"), "attribute_not_exists(pk)"),
		takeAction(tb, "a", "3"),
		types.TransactWriteItem{Delete: &types.Delete{TableName: &tb.name, Key: key("p", "old")}},
		types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
			TableName: &tb.name, Key: key("p", "nobody"), ConditionExpression: aws.String("attribute_not_exists(pk)"),
		}},
	)
	if err != nil {
		tb.Fatal(err)
	}
	assertEqual(tb, "records", texts(tb.query(tb.queryInput("pk = :p", ":p", "p")), sk), []string{"new"})
	if got := number(tb.get("stock", "a"), "n"); got != "2" {
		tb.Errorf("stock is %s", got)
	}
	if tb.get("p", "nobody") != nil {
		tb.Error("a check wrote something")
	}
}

// assertCancelled runs a transaction that must be cancelled. It checks the codes of the reasons, in
// the order of the actions, and that nothing was written.
func (tb *table) assertCancelled(codes []string, actions ...types.TransactWriteItem) []types.CancellationReason {
	tb.Helper()
	tb.putStock("a", "5")
	tb.putStock("b", "1")
	tb.put(record("p", "there", "v", "x"))
	err := tb.transact(actions...)
	cancelled, ok := errors.AsType[*types.TransactionCanceledException](err)
	if !ok {
		tb.Fatalf("want TransactionCanceledException, got %v", err)
	}
	var got []string
	for _, r := range cancelled.CancellationReasons {
		got = append(got, aws.ToString(r.Code))
		if aws.ToString(r.Code) == "None" && len(r.Item) != 0 {
			tb.Errorf("an action that did not fail has %v", r.Item)
		}
	}
	assertEqual(tb, "reasons", got, codes)
	assertEqual(tb, "records", texts(tb.query(tb.queryInput("pk = :p", ":p", "p")), "v"), []string{"x"})
	if a, b := number(tb.get("stock", "a"), "n"), number(tb.get("stock", "b"), "n"); a != "5" || b != "1" {
		tb.Errorf("stock is %s and %s", a, b)
	}
	if len(got) != len(codes) {
		tb.FailNow() // the difference has been reported
	}
	return cancelled.CancellationReasons
}

const (
	reasonNone      = "None"
	reasonCondition = "ConditionalCheckFailed"
)

func testTransactCancelledByUpdate(tb *table) {
	reasons := tb.assertCancelled([]string{reasonNone, reasonNone, reasonCondition, reasonNone},
		putAction(tb, record("p", "new"), "attribute_not_exists(pk)"),
		takeAction(tb, "a", "3"),
		takeAction(tb, "b", "2"),
		types.TransactWriteItem{Delete: &types.Delete{TableName: &tb.name, Key: key("p", "there")}})
	if got := number(reasons[2].Item, "n"); got != "1" {
		tb.Errorf("the stock that was too low: %q", got)
	}
}

func testTransactCancelledByPut(tb *table) {
	tb.assertCancelled([]string{reasonNone, reasonCondition},
		takeAction(tb, "a", "3"),
		putAction(tb, record("p", "there", "v", "y"), "attribute_not_exists(pk)"))
}

func testTransactCancelledByPutOld(tb *table) {
	reasons := tb.assertCancelled([]string{reasonNone, reasonCondition},
		takeAction(tb, "a", "3"),
		putAction(tb, record("p", "there", "v", "y"), "attribute_not_exists(pk)"))
	if got := text(reasons[1].Item, "v"); got != "x" {
		tb.Errorf("the record that was there: %q", got)
	}
}

func testTransactCancelledTwice(tb *table) {
	tb.assertCancelled([]string{reasonCondition, reasonNone, reasonCondition},
		takeAction(tb, "b", "2"),
		takeAction(tb, "a", "3"),
		types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
			TableName: &tb.name, Key: key("p", "nobody"), ConditionExpression: aws.String("attribute_exists(pk)"),
		}})
}

// testTransactKeeps checks that a rejected transaction changes neither its own records nor other
// records.
func testTransactKeeps(tb *table) {
	for _, s := range []string{"bystander", "changed"} {
		it := record("p", s, "empty", "")
		it["ls"] = &types.AttributeValueMemberL{Value: []types.AttributeValue{}}
		it["mp"] = &types.AttributeValueMemberM{Value: item{}}
		tb.put(it)
	}
	err := tb.transact(
		putAction(tb, record("p", "x"), ""),
		putAction(tb, record("p", "changed", "v", "x"), ""),
		putAction(tb, record("p", "y"), "attribute_exists(pk)"),
	)
	if err == nil {
		tb.Fatal("the transaction should have been refused")
	}
	for _, s := range []string{"bystander", "changed"} {
		tb.assertKeepsEmpty(s)
		if got := tb.get("p", s); len(got) != 5 {
			tb.Errorf("%s: got %v", s, got)
		}
	}
	if tb.get("p", "x") != nil {
		tb.Error("the refused transaction wrote")
	}
}

// assertKeepsEmpty checks that a record has its empty list and map. It uses a condition, because
// some engines omit empty values in responses.
func (tb *table) assertKeepsEmpty(s string) {
	tb.Helper()
	err := tb.transact(types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
		TableName: &tb.name, Key: key("p", s),
		ConditionExpression:       aws.String("size(ls) = :none AND attribute_type(ls, :l) AND size(mp) = :none AND attribute_type(mp, :m)"),
		ExpressionAttributeValues: valueMap(":none", num("0"), ":l", "L", ":m", "M"),
	}})
	if err != nil {
		tb.Errorf("%s has lost its empty list or map: %v", s, err)
	}
}

// testTransactCancelledReturnsOld tests a failed condition of every kind of action.
func testTransactCancelledReturnsOld(tb *table) {
	tb.put(record("p", "1", "v", "a"), record("p", "2", "v", "b"), record("p", "3", "v", "c"), record("p", "4", "v", "d"), record("p", "5", "v", "e"))
	not, old := aws.String("v = :no"), types.ReturnValuesOnConditionCheckFailureAllOld
	no := valueMap(":no", "x")
	err := tb.transact(
		types.TransactWriteItem{Put: &types.Put{
			TableName: &tb.name, Item: record("p", "1"), ConditionExpression: not, ExpressionAttributeValues: no, ReturnValuesOnConditionCheckFailure: old,
		}},
		types.TransactWriteItem{Update: &types.Update{
			TableName: &tb.name, Key: key("p", "2"), UpdateExpression: aws.String("SET w = :no"),
			ConditionExpression: not, ExpressionAttributeValues: no, ReturnValuesOnConditionCheckFailure: old,
		}},
		types.TransactWriteItem{Delete: &types.Delete{
			TableName: &tb.name, Key: key("p", "3"), ConditionExpression: not, ExpressionAttributeValues: no, ReturnValuesOnConditionCheckFailure: old,
		}},
		types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
			TableName: &tb.name, Key: key("p", "4"), ConditionExpression: not, ExpressionAttributeValues: no, ReturnValuesOnConditionCheckFailure: old,
		}},
		types.TransactWriteItem{Delete: &types.Delete{
			TableName: &tb.name, Key: key("p", "5"), ConditionExpression: not, ExpressionAttributeValues: no,
		}},
		types.TransactWriteItem{Delete: &types.Delete{
			TableName: &tb.name, Key: key("p", "nobody"), ConditionExpression: not, ExpressionAttributeValues: no, ReturnValuesOnConditionCheckFailure: old,
		}},
		putAction(tb, record("p", "6"), "attribute_not_exists(pk)"),
	)
	cancelled, ok := errors.AsType[*types.TransactionCanceledException](err)
	if !ok {
		tb.Fatalf("want TransactionCanceledException, got %v", err)
	}
	var got []string
	for _, r := range cancelled.CancellationReasons {
		got = append(got, aws.ToString(r.Code)+" "+text(r.Item, "v"))
	}
	assertEqual(tb, "reasons", got, []string{
		reasonCondition + " a", reasonCondition + " b", reasonCondition + " c", reasonCondition + " d", reasonCondition + " ", reasonCondition + " ", reasonNone + " ",
	})
	assertEqual(tb, "records", texts(tb.query(tb.queryInput("pk = :p", ":p", "p")), "v"), []string{"a", "b", "c", "d", "e"})
}

// testTransactSize tests the maximum size of a transaction. It is the size of the request. The
// existing records do not count.
func testTransactSize(tb *table) {
	const records = 11
	large := strings.Repeat("x", 390_000)
	var puts, updates, checks []types.TransactWriteItem
	for n := range records {
		sort := fmt.Sprint(n)
		puts = append(puts, putAction(tb, record("p", sort, "v", large), ""))
		updates = append(updates, types.TransactWriteItem{Update: &types.Update{
			TableName: &tb.name, Key: key("p", sort), UpdateExpression: aws.String("SET w = :w"), ExpressionAttributeValues: valueMap(":w", "x"),
		}})
		checks = append(checks, types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
			TableName: &tb.name, Key: key("p", sort), ConditionExpression: aws.String("v <> :v"), ExpressionAttributeValues: valueMap(":v", large),
		}})
	}
	assertCode(tb, "puts of 4.3 MB", tb.transact(puts...), "ValidationException")
	assertNothingWritten(tb)
	assertCode(tb, "condition checks of 4.3 MB", tb.transact(checks...), "ValidationException")
	for _, p := range puts {
		tb.put(p.Put.Item)
	}
	if err := tb.transact(updates...); err != nil {
		tb.Errorf("small updates of records with 4.3 MB: %v", err)
	}
	if got := text(tb.get("p", "10"), "w"); got != "x" {
		tb.Errorf("the update of the last record: got %q", got)
	}
}

// assertRejected fails the test unless err reports an invalid request or an invalid change of a
// record. Engines distinguish the two differently: DynamoDB Local returns errors for some cases
// that DynamoDB documents as cancellation reasons.
func assertRejected(tb *table, what string, err error) {
	tb.Helper()
	cancelled, ok := errors.AsType[*types.TransactionCanceledException](err)
	if !ok {
		assertCode(tb, what, err, "ValidationException")
		return
	}
	for _, r := range cancelled.CancellationReasons {
		if code := aws.ToString(r.Code); code != "ValidationError" && code != reasonNone {
			tb.Errorf("%s: the reason is %s", what, code)
		}
	}
}

// testTransactRefusedWhole tests transactions whose last action is invalid.
func testTransactRefusedWhole(tb *table) {
	wrong := record("p", "2")
	wrong[gsi1pk], wrong[gsi1sk] = num("1"), str("x")
	for _, c := range []struct {
		name string
		last types.TransactWriteItem
	}{
		{"no sort key", putAction(tb, item{pk: str("p")}, "")},
		{"an empty sort key", putAction(tb, record("p", ""), "")},
		{"an empty index key", putAction(tb, record("p", "2", gsi1pk, "", gsi1sk, "x"), "")},
		{"an index key of another type", putAction(tb, wrong, "")},
		{"a condition without sense", putAction(tb, record("p", "2"), "v = = v")},
		{"a condition with a reserved word", putAction(tb, record("p", "2"), "attribute_not_exists(status)")},
		{"a condition whose value is not given", putAction(tb, record("p", "2"), "v = :v")},
		{"more than a key", types.TransactWriteItem{Delete: &types.Delete{TableName: &tb.name, Key: record("p", "2", "v", "x")}}},
		{"a value that is not used", types.TransactWriteItem{Delete: &types.Delete{
			TableName: &tb.name, Key: key("p", "2"), ConditionExpression: aws.String("attribute_not_exists(pk)"), ExpressionAttributeValues: valueMap(":v", "x"),
		}}},
		{"nothing to do", types.TransactWriteItem{}},
		{"two things to do", types.TransactWriteItem{
			Put: &types.Put{TableName: &tb.name, Item: record("p", "2")}, Delete: &types.Delete{TableName: &tb.name, Key: key("p", "2")},
		}},
	} {
		assertRejected(tb, c.name, tb.transact(putAction(tb, record("p", "1", gsi1pk, "g", gsi1sk, "1"), ""), c.last))
		assertNothingWritten(tb)
		assertEqual(tb, "the index after "+c.name, tb.index("g"), []string{})
	}
	other := tb.name + "-not"
	err := tb.transact(putAction(tb, record("p", "1"), ""), types.TransactWriteItem{Put: &types.Put{TableName: &other, Item: record("p", "2")}})
	assertCode(tb, "no such table", err, "ResourceNotFoundException")
	assertNothingWritten(tb)
}

// testTransactTokenOfCancelled tests that a cancelled transaction does not use up its token.
func testTransactTokenOfCancelled(tb *table) {
	send := func(n string) error {
		_, err := tb.db.TransactWriteItems(tb.Context(), &dynamodb.TransactWriteItemsInput{
			ClientRequestToken: aws.String(tb.name[max(0, len(tb.name)-36):]), TransactItems: []types.TransactWriteItem{takeAction(tb, "a", n)},
		})
		return err
	}
	tb.putStock("a", "5")
	for range 2 {
		if _, ok := errors.AsType[*types.TransactionCanceledException](send("6")); !ok {
			tb.Error("more was taken than is there")
		}
	}
	if err := send("5"); err != nil {
		tb.Error(err)
	}
	if err := send("5"); err != nil {
		tb.Errorf("the same again, when there is nothing left: %v", err)
	}
}

func testTransactHundred(tb *table) {
	var actions []types.TransactWriteItem
	for i := range 100 {
		actions = append(actions, putAction(tb, record("p", fmt.Sprintf("%03d", i), gsi1pk, "g", gsi1sk, fmt.Sprintf("%03d", i)), "attribute_not_exists(pk)"))
	}
	if err := tb.transact(actions...); err != nil {
		tb.Fatal(err)
	}
	if got := len(tb.index("g")); got != 100 {
		tb.Errorf("got %d", got)
	}
	cancelled, ok := errors.AsType[*types.TransactionCanceledException](tb.transact(actions...))
	if !ok || len(cancelled.CancellationReasons) != 100 {
		tb.Errorf("the second time, got %v", cancelled)
	}
}

func testTransactTooMany(tb *table) {
	var actions []types.TransactWriteItem
	for i := range 101 {
		actions = append(actions, putAction(tb, record("p", fmt.Sprint(i)), ""))
	}
	assertCode(tb, "101 actions", tb.transact(actions...), "ValidationException")
}

func testTransactTwice(tb *table) {
	tb.putStock("a", "5")
	assertCode(tb, "two actions on one record", tb.transact(takeAction(tb, "a", "1"), takeAction(tb, "a", "1")), "ValidationException")
	assertCode(tb, "a check and an action on one record", tb.transact(
		types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
			TableName: &tb.name, Key: key("stock", "a"), ConditionExpression: aws.String("attribute_exists(pk)"),
		}},
		takeAction(tb, "a", "1")), "ValidationException")
	if got := number(tb.get("stock", "a"), "n"); got != "5" {
		tb.Errorf("stock is %s", got)
	}
}

// testTransactToken sends a transaction twice with the same token, like a client that has lost the
// response.
func testTransactToken(tb *table) {
	tb.putStock("a", "5")
	send := func(n string) error {
		_, err := tb.db.TransactWriteItems(tb.Context(), &dynamodb.TransactWriteItemsInput{
			ClientRequestToken: aws.String(tb.name[max(0, len(tb.name)-36):]), TransactItems: []types.TransactWriteItem{takeAction(tb, "a", n)},
		})
		return err
	}
	for range 2 {
		if err := send("1"); err != nil {
			tb.Fatal(err)
		}
	}
	if got := number(tb.get("stock", "a"), "n"); got != "4" {
		tb.Errorf("it happened more than once: stock is %s", got)
	}
	if _, ok := errors.AsType[*types.IdempotentParameterMismatchException](send("2")); !ok {
		tb.Error("another transaction under the same token should be refused")
	}
}

func testTransactGet(tb *table) {
	tb.put(record("p", "1", "v", "x"), record("p", "3", "v", "z"))
	var gets []types.TransactGetItem
	for _, s := range []string{"3", "2", "1"} {
		gets = append(gets, types.TransactGetItem{Get: &types.Get{TableName: &tb.name, Key: key("p", s)}})
	}
	out, err := tb.db.TransactGetItems(tb.Context(), &dynamodb.TransactGetItemsInput{TransactItems: gets})
	if err != nil {
		tb.Fatal(err)
	}
	var got []string
	for _, r := range out.Responses {
		got = append(got, text(r.Item, "v"))
	}
	assertEqual(tb, "in the order asked for", got, []string{"z", "", "x"})
}

// testConcurrentUpdates has many clients take from one stock concurrently. The quantity taken
// equals the decrease, and never exceeds the stock.
func testConcurrentUpdates(tb *table) {
	tb.putStock("a", "25")
	var taken, refused atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 5 {
				_, err := tb.db.UpdateItem(tb.Context(), &dynamodb.UpdateItemInput{
					TableName: &tb.name, Key: key("stock", "a"),
					UpdateExpression: aws.String("SET n = n - :n"), ConditionExpression: aws.String("n >= :n"),
					ExpressionAttributeValues: valueMap(":n", num("1")),
				})
				if _, ok := errors.AsType[*types.ConditionalCheckFailedException](err); ok {
					refused.Add(1)
				} else if err != nil {
					tb.Error(err)
				} else {
					taken.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if taken.Load() != 25 || refused.Load() != 15 || number(tb.get("stock", "a"), "n") != "0" {
		tb.Errorf("taken %d, refused %d, left %s", taken.Load(), refused.Load(), number(tb.get("stock", "a"), "n"))
	}
}
