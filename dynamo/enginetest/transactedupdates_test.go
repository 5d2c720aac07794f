package enginetest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

func transactedUpdateCases() []testCase {
	cases := []testCase{
		{"TransactUpdateOfNew", testTransactUpdateOfNew},
		{"TransactUpdateKeepsTheRest", testTransactUpdateKeeps},
		{"TransactUpdatePlaceholders", testTransactUpdatePlaceholders},
		{"TransactUpdateConditionFirst", testTransactUpdateConditionFirst},
	}
	// The result of an update of the record v: 'x', w: 'y', n: 10, d: 0.1. Numbers have no quotes.
	for expr, want := range map[string]string{
		"SET n = n + :one, v = :s REMOVE w":                           "d=0.1 n=11 v='s'",
		"SET n = n - :ten, c = if_not_exists(c, :zero) + :one":        "c=1 d=0.1 n=0 v='x' w='y'",
		"SET n = if_not_exists(n, :zero) + :one":                      "d=0.1 n=11 v='x' w='y'",
		"SET n = :one - n":                                            "d=0.1 n=-9 v='x' w='y'",
		"SET n = :one + :ten":                                         "d=0.1 n=11 v='x' w='y'",
		"SET d = d + :fifth":                                          "d=0.3 n=10 v='x' w='y'",
		"SET d = d - :fifth":                                          "d=-0.1 n=10 v='x' w='y'",
		"SET n = n + :big":                                            "d=0.1 n=12345678901234567890123456789012345688 v='x' w='y'",
		"SET v = w, w = v":                                            "d=0.1 n=10 v='y' w='x'",
		"SET a = n, n = n + :one, b = n":                              "a=10 b=10 d=0.1 n=11 v='x' w='y'",
		"SET a = if_not_exists(a, if_not_exists(b, v)) REMOVE v":      "a='x' d=0.1 n=10 w='y'",
		"SET a = v REMOVE v":                                          "a='x' d=0.1 n=10 w='y'",
		"REMOVE v, w, nothing":                                        "d=0.1 n=10",
		"remove v set w = :s":                                         "d=0.1 n=10 w='s'",
		"ADD n :one, c :ten":                                          "c=10 d=0.1 n=11 v='x' w='y'",
		"ADD n :one SET v = n REMOVE w":                               "d=0.1 n=11 v=10",
		"SET gsi1pk = :s, gsi1sk = v":                                 "d=0.1 gsi1pk='s' gsi1sk='x' n=10 v='x' w='y'",
		"SET n=n-:one":                                                "d=0.1 n=9 v='x' w='y'",
		"SET\tv\t=\t:s\n":                                             "d=0.1 n=10 v='s' w='y'",
		"SET v = if_not_exists(nothing, :s), nothing = :zero, w = :s": "d=0.1 n=10 nothing=0 v='s' w='s'",
	} {
		cases = append(cases, testCase{"TransactUpdate/" + caseName(expr), func(tb *table) { testTransactUpdate(tb, expr, want) }})
	}
	for _, expr := range []string{
		"SET n = nothing + :one", "SET n = n + nothing", "SET n = nothing", // missing attributes
		"SET n = v + :one", "SET n = n + :s", "SET n = n - v", "ADD v :one", "ADD n :s", "SET n = if_not_exists(v, :one) + :one", // operands that are not numbers
		"SET n = :big + d", "SET n = :huge + :huge", // results that exceed DynamoDB's limits
		"SET sk = :s", "REMOVE pk", // key attributes
		"SET gsi1pk = :empty",
		"SET v = :s, v = :s", "SET v = :s REMOVE v",
		"SET v = :not", "SET #not = :s", "SET status = :s", "SET v = if_not_exists(name, :s)",
		"", "SET", "REMOVE", "SET v", "SET v =", "SET v = :s,", "SET v = :s REMOVE", "SET v = :s SET w = :s", "SET v = w = :s", "v = :s",
		"SET n = n + n + n", "SET n = if_not_exists(c, n + :one)", "SET n = - n", "SET n = n * :ten", "SET :s = :s", "REMOVE :s",
		"SET v = if_not_exists(:s, :s)", "SET v = if_not_exists(v)", "SET v = If_Not_Exists(v, :s)", "SET v = nofunction(v)", "ADD n v", "ADD n",
	} {
		cases = append(cases, testCase{"TransactUpdateRefused/" + caseName(expr), func(tb *table) { testTransactUpdateRefused(tb, expr) }})
	}
	return cases
}

// caseName returns an expression as the name of a case.
func caseName(expr string) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(expr, "#", "")), "_") + "."
}

// transactedUpdate runs an update expression in a transaction, after a put of another record. The
// expression may use the values declared here.
func (tb *table) transactedUpdate(expr string) error {
	values := item{}
	for name, v := range valueMap(
		":one", num("1"), ":ten", num("10"), ":zero", num("0"), ":fifth", num("0.2"), ":big", num("12345678901234567890123456789012345678"),
		":huge", num("9e125"), ":s", "s", ":empty", "",
	) {
		if strings.Contains(expr, name) {
			values[name] = v
		}
	}
	u := &types.Update{TableName: &tb.name, Key: key("p", "1"), UpdateExpression: &expr}
	if len(values) > 0 {
		u.ExpressionAttributeValues = values
	}
	return tb.transact(putAction(tb, record("other", "1"), ""), types.TransactWriteItem{Update: u})
}

func (tb *table) putToUpdate() {
	it := record("p", "1", "v", "x", "w", "y")
	it["n"], it["d"] = num("10"), num("0.1")
	tb.put(it)
}

// attributes returns the top-level strings and numbers of a record without its key, sorted by name.
func attributes(it item) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(it)) {
		switch v := it[name].(type) {
		case *types.AttributeValueMemberS:
			if name != pk && name != sk {
				all = append(all, fmt.Sprintf("%s='%s'", name, v.Value))
			}
		case *types.AttributeValueMemberN:
			all = append(all, name+"="+v.Value)
		}
	}
	return strings.Join(all, " ")
}

func testTransactUpdate(tb *table, expr, want string) {
	tb.putToUpdate()
	if err := tb.transactedUpdate(expr); err != nil {
		tb.Fatal(err)
	}
	if got := attributes(tb.get("p", "1")); got != want {
		tb.Errorf("got  %s\nwant %s", got, want)
	}
}

func testTransactUpdateRefused(tb *table, expr string) {
	tb.putToUpdate()
	assertRejected(tb, expr, tb.transactedUpdate(expr))
	if got := attributes(tb.get("p", "1")); got != "d=0.1 n=10 v='x' w='y'" {
		tb.Errorf("the refused update left %s", got)
	}
	if tb.get("other", "1") != nil {
		tb.Error("the refused transaction wrote")
	}
}

// testTransactUpdateOfNew updates records that do not exist.
func testTransactUpdateOfNew(tb *table) {
	err := tb.transact(
		updateAction(tb, "1", "SET c = if_not_exists(c, :zero) + :one, v = :v REMOVE w", ":zero", num("0"), ":one", num("1"), ":v", "x"),
		updateAction(tb, "2", "ADD n :n", ":n", num("-3")),
		updateAction(tb, "3", "REMOVE v"),
	)
	if err != nil {
		tb.Fatal(err)
	}
	for s, want := range map[string]string{"1": "c=1 v='x'", "2": "n=-3", "3": ""} {
		if got := tb.get("p", s); got == nil || attributes(got) != want {
			tb.Errorf("%s: got %v, want %s", s, got, want)
		}
	}
	assertRejected(tb, "something from nothing", tb.transact(updateAction(tb, "4", "SET n = n + :n", ":n", num("1"))))
	if tb.get("p", "4") != nil {
		tb.Error("the refused update made a record")
	}
}

// testTransactUpdateKeeps updates a record with values that an update could damage.
func testTransactUpdateKeeps(tb *table) {
	it := record("p", "1", "empty", "")
	it["big"] = num("9007199254740993") // not representable as float64
	it["ls"], it["mp"] = &types.AttributeValueMemberL{Value: []types.AttributeValue{}}, &types.AttributeValueMemberM{Value: item{}}
	it["deep"] = &types.AttributeValueMemberL{Value: []types.AttributeValue{num("12345678901234567890.123456789"), &types.AttributeValueMemberM{Value: item{"t": str("")}}}}
	it["ss"], it["ns"] = &types.AttributeValueMemberSS{Value: []string{"b", "a"}}, &types.AttributeValueMemberNS{Value: []string{"2", "10"}}
	it["yes"], it["null"] = &types.AttributeValueMemberBOOL{Value: true}, &types.AttributeValueMemberNULL{Value: true}
	it["bytes"] = &types.AttributeValueMemberB{Value: []byte{0, 255}}
	tb.put(it)
	if err := tb.transact(updateAction(tb, "1", "SET v = :v, copied = deep REMOVE gone", ":v", "x")); err != nil {
		tb.Fatal(err)
	}
	tb.assertKeepsEmpty("1")
	got := tb.get("p", "1")
	if len(got) != len(it)+2 || number(got, "big") != "9007199254740993" || text(got, "v") != "x" {
		tb.Errorf("got %v", got)
	}
	for _, name := range []string{"deep", "copied"} {
		l, _ := got[name].(*types.AttributeValueMemberL)
		if l == nil || len(l.Value) != 2 || number(item{"": l.Value[0]}, "") != "12345678901234567890.123456789" {
			tb.Errorf("%s: got %v", name, l)
		}
	}
	ss, _ := got["ss"].(*types.AttributeValueMemberSS)
	ns, _ := got["ns"].(*types.AttributeValueMemberNS)
	yes, _ := got["yes"].(*types.AttributeValueMemberBOOL)
	null, _ := got["null"].(*types.AttributeValueMemberNULL)
	b, _ := got["bytes"].(*types.AttributeValueMemberB)
	if ss == nil || len(ss.Value) != 2 || ns == nil || len(ns.Value) != 2 || yes == nil || !yes.Value || null == nil || b == nil || len(b.Value) != 2 {
		tb.Errorf("got %v", got)
	}
}

// testTransactUpdatePlaceholders has placeholders that only the update, only the condition, or both
// use. Some are prefixes of others.
func testTransactUpdatePlaceholders(tb *table) {
	update := func(names map[string]string, values ...any) error {
		return tb.transact(types.TransactWriteItem{Update: &types.Update{
			TableName: &tb.name, Key: key("p", "1"),
			UpdateExpression:    aws.String("SET #n = #n + :n, #s = :next REMOVE #no"),
			ConditionExpression: aws.String("#s = :ne AND #na = :na AND #n >= :n"), ExpressionAttributeNames: names,
			ExpressionAttributeValues: valueMap(values...),
		}})
	}
	names := map[string]string{"#n": "number", "#na": "name", "#s": "status", "#no": "a.b-c"}
	values := []any{":n", num("1"), ":next", "b", ":ne", "a", ":na", "x"}
	it := record("p", "1", "name", "x", "status", "a", "a.b-c", "y")
	it["number"] = num("5")
	tb.put(it)
	if err := update(names, values...); err != nil {
		tb.Fatal(err)
	}
	if got := attributes(tb.get("p", "1")); got != "name='x' number=6 status='b'" {
		tb.Errorf("got %s", got)
	}
	assertRejected(tb, "a value too many", update(names, append([]any{":nex", "z"}, values...)...))
	names["#nam"] = "z"
	assertRejected(tb, "a name too many", update(names, values...))
}

// testTransactUpdateConditionFirst tests that a failed condition takes precedence over other errors
// of the update.
func testTransactUpdateConditionFirst(tb *table) {
	tb.put(record("p", "1", "v", "x"))
	for _, expr := range []string{"SET n = n + :n", "SET v = v + :n"} {
		err := tb.transact(types.TransactWriteItem{Update: &types.Update{
			TableName: &tb.name, Key: key("p", "1"), UpdateExpression: &expr, ConditionExpression: aws.String("attribute_exists(n)"),
			ExpressionAttributeValues:           valueMap(":n", num("1")),
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		}})
		cancelled, ok := errors.AsType[*types.TransactionCanceledException](err)
		if !ok || len(cancelled.CancellationReasons) != 1 || aws.ToString(cancelled.CancellationReasons[0].Code) != reasonCondition ||
			text(cancelled.CancellationReasons[0].Item, "v") != "x" {
			tb.Errorf("%s: got %v", expr, err)
		}
	}
}
