package enginetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

func itemCases() []testCase {
	return slices.Concat(separatorCases(), conditionCases(), rejectionCases(), []testCase{
		{"GetItem", testGet},
		{"GetItemProjection", testGetProjection},
		{"PutReturnsOld", testPutReturnsOld},
		{"PutIfAbsent", testPutIfAbsent},
		{"PutIfAbsentReturnsOld", testPutIfAbsentReturnsOld},
		{"DeleteIf", testDeleteIf},
		{"DeleteIfReturnsOld", testDeleteIfReturnsOld},
		{"UpdateAdd", testUpdateAdd},
		{"UpdateAddsDecimals", testUpdateAddsDecimals},
		{"UpdateSubtractIfEnough", testUpdateSubtract},
		{"UpdateLeavesOtherNumbers", testUpdateLeavesOtherNumbers},
		{"UpdateRemove", testUpdateRemove},
		{"UpdateAppendsByIndex", testUpdateAppendsByIndex},
		{"UpdateIsAllOrNothing", testUpdateAllOrNothing},
		{"UpdateReturnValues", testUpdateReturnValues},
		{"UpdateReadsBeforeItWrites", testUpdateReadsBefore},
		{"UpdateNested", testUpdateNested},
		{"LongNames", testLongNames},
		{"TypeOfValue", testTypeOfValue},
		{"UpdateParentheses", testUpdateParentheses},
		{"NoSuchTable", testNoSuchTable},
		{"DescribeTable", testDescribeTable},
		{"CancelledContext", testCancelled},
	})
}

func testGet(tb *table) {
	if got := tb.get("a", "1"); got != nil {
		tb.Errorf("a missing record: %v", got)
	}
	tb.put(record("a", "1", "v", "x"), record("a", "2", "v", "y"))
	if got := text(tb.get("a", "1"), "v"); got != "x" {
		tb.Errorf("got %q, want x", got)
	}
	tb.put(record("a", "1", "w", "z"))
	if got := tb.get("a", "1"); text(got, "v") != "" || text(got, "w") != "z" {
		tb.Errorf("a put replaces the whole record, got %v", got)
	}
}

func testGetProjection(tb *table) {
	it := record("a", "1", "v", "x", "w", "y")
	it["m"] = &types.AttributeValueMemberM{Value: item{"p": str("1"), "q": str("2")}}
	tb.put(it)
	out, err := tb.db.GetItem(tb.Context(), &dynamodb.GetItemInput{
		TableName: &tb.name, Key: key("a", "1"),
		ProjectionExpression: aws.String("#v, m.p, nothing"), ExpressionAttributeNames: map[string]string{"#v": "v"},
	})
	if err != nil {
		tb.Fatal(err)
	}
	m, _ := out.Item["m"].(*types.AttributeValueMemberM)
	if len(out.Item) != 2 || text(out.Item, "v") != "x" || m == nil || len(m.Value) != 1 || text(m.Value, "p") != "1" {
		tb.Errorf("got %v", out.Item)
	}
}

// separatorCases have pairs of keys that are equal when partition key and sort key are joined with
// a separator.
func separatorCases() []testCase {
	var cases []testCase
	for name, sep := range map[string]string{"dot": ".", "hash": "#", "bar": "|", "slash": "/", "colon": ":", "nul": "\x00", "minus": "-", "underscore": "_"} {
		cases = append(cases, testCase{"KeysWithSeparators/" + name, func(tb *table) {
			tb.put(record("a"+sep+"b", "c", "v", "1"), record("a", "b"+sep+"c", "v", "2"))
			if one, two := text(tb.get("a"+sep+"b", "c"), "v"), text(tb.get("a", "b"+sep+"c"), "v"); one != "1" || two != "2" {
				tb.Errorf("two records became one: %q and %q", one, two)
			}
		}})
	}
	return cases
}

func testPutReturnsOld(tb *table) {
	put := func(v string) item {
		out, err := tb.db.PutItem(tb.Context(), &dynamodb.PutItemInput{
			TableName: &tb.name, Item: record("a", "1", "v", v), ReturnValues: types.ReturnValueAllOld,
		})
		if err != nil {
			tb.Fatal(err)
		}
		return out.Attributes
	}
	if old := put("x"); len(old) != 0 {
		tb.Errorf("there was no old record, got %v", old)
	}
	if old := put("y"); text(old, "v") != "x" {
		tb.Errorf("want the old record, got %v", old)
	}
	out, err := tb.db.PutItem(tb.Context(), &dynamodb.PutItemInput{TableName: &tb.name, Item: record("a", "1", "v", "z")})
	if err != nil || len(out.Attributes) != 0 {
		tb.Errorf("no values were requested, got %v, %v", out, err)
	}
}

func testPutIfAbsent(tb *table) {
	put := func(v string, ret types.ReturnValuesOnConditionCheckFailure) error {
		_, err := tb.db.PutItem(tb.Context(), &dynamodb.PutItemInput{
			TableName: &tb.name, Item: record("a", "1", "v", v),
			ConditionExpression: aws.String("attribute_not_exists(pk)"), ReturnValuesOnConditionCheckFailure: ret,
		})
		return err
	}
	if err := put("x", ""); err != nil {
		tb.Fatal(err)
	}
	if failed, ok := errors.AsType[*types.ConditionalCheckFailedException](put("y", "")); !ok || len(failed.Item) != 0 {
		tb.Errorf("want the error without the record, got %v", failed)
	}
	if got := text(tb.get("a", "1"), "v"); got != "x" {
		tb.Errorf("the refused put left %q", got)
	}
}

func testPutIfAbsentReturnsOld(tb *table) {
	tb.put(record("a", "1", "v", "x"))
	_, err := tb.db.PutItem(tb.Context(), &dynamodb.PutItemInput{
		TableName: &tb.name, Item: record("a", "1", "v", "y"), ConditionExpression: aws.String("attribute_not_exists(pk)"),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	if failed, ok := errors.AsType[*types.ConditionalCheckFailedException](err); !ok || text(failed.Item, "v") != "x" {
		tb.Errorf("want ConditionalCheckFailedException with the record that is there, got %v", err)
	}
}

func testDeleteIfReturnsOld(tb *table) {
	tb.put(record("a", "1", "v", "x"))
	_, err := tb.db.DeleteItem(tb.Context(), &dynamodb.DeleteItemInput{
		TableName: &tb.name, Key: key("a", "1"), ConditionExpression: aws.String("attribute_not_exists(pk)"),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	if failed, ok := errors.AsType[*types.ConditionalCheckFailedException](err); !ok || text(failed.Item, "v") != "x" {
		tb.Errorf("want ConditionalCheckFailedException with the record that is there, got %v", err)
	}
}

func testDeleteIf(tb *table) {
	tb.put(record("a", "1", "v", "x"))
	del := func(v string) (item, error) {
		out, err := tb.db.DeleteItem(tb.Context(), &dynamodb.DeleteItemInput{
			TableName: &tb.name, Key: key("a", "1"), ReturnValues: types.ReturnValueAllOld,
			ConditionExpression: aws.String("v = :v"), ExpressionAttributeValues: valueMap(":v", v),
		})
		if err != nil {
			return nil, err
		}
		return out.Attributes, nil
	}
	_, err := del("y")
	if _, ok := errors.AsType[*types.ConditionalCheckFailedException](err); !ok {
		tb.Errorf("want ConditionalCheckFailedException, got %v", err)
	}
	old, err := del("x")
	if err != nil || text(old, "v") != "x" {
		tb.Errorf("got %v, %v", old, err)
	}
	if tb.get("a", "1") != nil {
		tb.Error("the record still exists")
	}
	if _, err := tb.db.DeleteItem(tb.Context(), &dynamodb.DeleteItemInput{TableName: &tb.name, Key: key("a", "1")}); err != nil {
		tb.Errorf("deleting a missing record must not fail, got %v", err)
	}
}

func testUpdateAdd(tb *table) {
	tb.update("a", "1", "ADD n :n", ":n", num("5"))
	tb.update("a", "1", "ADD n :n SET v = :v", ":n", num("-7"), ":v", "x")
	got := tb.get("a", "1")
	if number(got, "n") != "-2" || text(got, "v") != "x" {
		tb.Errorf("got %v", got)
	}
}

// testUpdateAddsDecimals adds numbers whose sum is 0.30000000000000004 in binary floating point.
func testUpdateAddsDecimals(tb *table) {
	tb.update("a", "1", "ADD d :n", ":n", num("0.1"))
	tb.update("a", "1", "ADD d :n", ":n", num("0.2"))
	if got := number(tb.get("a", "1"), "d"); got != "0.3" {
		tb.Errorf("0.1 + 0.2 is %s", got)
	}
}

func testUpdateSubtract(tb *table) {
	it := record("a", "1")
	it["stock"] = num("5")
	tb.put(it)
	take := func(n string) error {
		_, err := tb.db.UpdateItem(tb.Context(), &dynamodb.UpdateItemInput{
			TableName: &tb.name, Key: key("a", "1"),
			UpdateExpression: aws.String("SET stock = stock - :n"), ConditionExpression: aws.String("stock >= :n"),
			ExpressionAttributeValues:           valueMap(":n", num(n)),
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		})
		return err
	}
	if err := take("3"); err != nil {
		tb.Fatal(err)
	}
	if failed, ok := errors.AsType[*types.ConditionalCheckFailedException](take("3")); !ok || number(failed.Item, "stock") != "2" {
		tb.Errorf("want ConditionalCheckFailedException with the record, got %v", failed)
	}
	if err := take("2"); err != nil {
		tb.Fatal(err)
	}
	got := tb.get("a", "1")
	if number(got, "stock") != "0" {
		tb.Errorf("got %v", got)
	}
}

func testUpdateLeavesOtherNumbers(tb *table) {
	it := record("a", "1")
	it["big"] = num("9007199254740993") // not representable as float64
	it["deep"] = &types.AttributeValueMemberL{Value: []types.AttributeValue{num("12345678901234567890.123456789")}}
	tb.put(it)
	tb.update("a", "1", "SET v = :v", ":v", "x")
	got := tb.get("a", "1")
	deep, _ := got["deep"].(*types.AttributeValueMemberL)
	if number(got, "big") != "9007199254740993" || deep == nil || number(item{"d": deep.Value[0]}, "d") != "12345678901234567890.123456789" {
		tb.Errorf("an update changed numbers it does not name: %v", got)
	}
}

func testUpdateRemove(tb *table) {
	it := record("a", "1", "v", "x", "w", "y")
	it["l"] = &types.AttributeValueMemberL{Value: []types.AttributeValue{str("0"), str("1"), str("2"), str("3")}}
	tb.put(it)
	tb.update("a", "1", "REMOVE v, nothing, l[0], l[2]")
	got := tb.get("a", "1")
	if _, there := got["v"]; there || text(got, "w") != "y" {
		tb.Errorf("got %v", got)
	}
	l, _ := got["l"].(*types.AttributeValueMemberL)
	if l == nil || len(l.Value) != 2 || text(item{"": l.Value[0]}, "") != "1" || text(item{"": l.Value[1]}, "") != "3" {
		tb.Errorf("elements 0 and 2 should be gone, got %v", l)
	}
}

func testUpdateAllOrNothing(tb *table) {
	tb.put(record("a", "1", "v", "x"))
	_, err := tb.db.UpdateItem(tb.Context(), &dynamodb.UpdateItemInput{
		TableName: &tb.name, Key: key("a", "1"),
		UpdateExpression:          aws.String("SET w = :w, v = v + :n"), // v is a string
		ExpressionAttributeValues: valueMap(":w", "y", ":n", num("1")),
	})
	assertCode(tb, "adding to a text", err, "ValidationException")
	if got := tb.get("a", "1"); len(got) != 3 || text(got, "v") != "x" {
		tb.Errorf("a refused update left %v", got)
	}
}

func testUpdateReturnValues(tb *table) {
	for _, c := range []struct {
		ret types.ReturnValue
		n   string
		v   string
	}{
		{types.ReturnValueNone, "", ""},
		{types.ReturnValueAllOld, "1", "x"},
		{types.ReturnValueAllNew, "2", "x"},
		{types.ReturnValueUpdatedOld, "1", ""},
		{types.ReturnValueUpdatedNew, "2", ""},
	} {
		it := record("a", string(c.ret), "v", "x")
		it["n"] = num("1")
		tb.put(it)
		out, err := tb.db.UpdateItem(tb.Context(), &dynamodb.UpdateItemInput{
			TableName: &tb.name, Key: key("a", string(c.ret)), ReturnValues: c.ret,
			UpdateExpression: aws.String("ADD n :n"), ExpressionAttributeValues: valueMap(":n", num("1")),
		})
		if err != nil {
			tb.Fatal(err)
		}
		if number(out.Attributes, "n") != c.n || text(out.Attributes, "v") != c.v {
			tb.Errorf("%s: got %v", c.ret, out.Attributes)
		}
	}
}

func testUpdateReadsBefore(tb *table) {
	tb.put(record("a", "1", "v", "x", "w", "y"))
	tb.update("a", "1", "SET v = w, w = v, z = if_not_exists(z, :d), u = if_not_exists(v, :d)", ":d", "default")
	got := tb.get("a", "1")
	if text(got, "v") != "y" || text(got, "w") != "x" || text(got, "z") != "default" || text(got, "u") != "x" {
		tb.Errorf("right-hand sides must use the old record, got %v", got)
	}
}

func testUpdateNested(tb *table) {
	it := record("a", "1")
	it["m"] = &types.AttributeValueMemberM{Value: item{"seq": &types.AttributeValueMemberL{Value: []types.AttributeValue{
		&types.AttributeValueMemberM{Value: item{"n": num("1"), "keep": str("k")}},
	}}}}
	tb.put(it)
	tb.update("a", "1", "SET m.seq[0].n = m.seq[0].n + :one, m.added = :v", ":one", num("1"), ":v", "new")
	tb.update("a", "1", "SET m.seq = list_append(m.seq, :more)", ":more", &types.AttributeValueMemberL{Value: []types.AttributeValue{str("tail")}})
	m := tb.get("a", "1")["m"].(*types.AttributeValueMemberM).Value
	list := m["seq"].(*types.AttributeValueMemberL).Value
	first := list[0].(*types.AttributeValueMemberM).Value
	if len(list) != 2 || number(first, "n") != "2" || text(first, "keep") != "k" || text(m, "added") != "new" || text(item{"": list[1]}, "") != "tail" {
		tb.Errorf("got %v", m)
	}
	_, err := tb.db.UpdateItem(tb.Context(), &dynamodb.UpdateItemInput{
		TableName: &tb.name, Key: key("a", "1"),
		UpdateExpression: aws.String("SET nowhere.n = :v"), ExpressionAttributeValues: valueMap(":v", "x"),
	})
	assertCode(tb, "a path into a missing attribute", err, "ValidationException")
}

// conditionCases test conditions by whether an update with the condition fails. The condition is
// the name of the case.
func conditionCases() []testCase {
	var cases []testCase
	for _, c := range []struct {
		cond   string
		want   bool
		values []any
	}{
		{"attribute_exists(pk)", true, nil},
		{"attribute_exists(m.x) AND attribute_not_exists(m.y)", true, nil},
		{"attribute_exists(m.l[1])", true, nil},
		{"attribute_exists(m.l[2])", false, nil},
		{"n = :v", true, []any{":v", num("10.0")}},
		{"n = :v", false, []any{":v", "10"}},
		{"n < :v", true, []any{":v", num("10.00000000000000000001")}},
		{"n < :v", true, []any{":v", num("100")}},
		{"n > :v", false, []any{":v", num("9e1")}},
		{"t < :v", true, []any{":v", "help"}},
		{"nothing = :v", false, []any{":v", "x"}},
		{"nothing <> :v", true, []any{":v", "x"}},
		{"nothing < :v", false, []any{":v", "x"}},
		{"NOT nothing < :v", true, []any{":v", "x"}},
		{"n BETWEEN :a AND :b AND t = :t", true, []any{":a", num("10"), ":b", num("11"), ":t", "hello"}},
		{"t IN (:a, :b)", true, []any{":a", "x", ":b", "hello"}},
		{"begins_with(t, :v)", true, []any{":v", "he"}},
		{"contains(t, :v)", true, []any{":v", "ell"}},
		{"contains(m.l, :v)", true, []any{":v", "q"}},
		{"contains(#set, :v)", true, []any{":v", "r"}},
		{"size(m.l) = :v", true, []any{":v", num("2")}},
		{"size(t) > :v", false, []any{":v", num("5")}},
		{"attribute_type(flag, :v)", true, []any{":v", "BOOL"}},
		{"flag = :v", true, []any{":v", &types.AttributeValueMemberBOOL{Value: true}}},
		{"e = :v", true, []any{":v", ""}},
		// The precedence is NOT, AND, OR.
		{"n = :no AND n = :no OR n = :yes", true, []any{":no", num("1"), ":yes", num("10")}},
		{"n = :no AND (n = :no OR n = :yes)", false, []any{":no", num("1"), ":yes", num("10")}},
		{"NOT n = :yes OR n = :yes", true, []any{":yes", num("10")}},
		{"NOT (n = :yes OR n = :no)", false, []any{":yes", num("10"), ":no", num("1")}},
	} {
		cases = append(cases, testCase{fmt.Sprintf("Condition/%s_is_%v", conditionName(c.cond, c.values), c.want), func(tb *table) {
			testCondition(tb, c.cond, c.want, c.values)
		}})
	}
	return cases
}

// conditionName returns a condition with its values in place of the placeholders.
func conditionName(cond string, values []any) string {
	for i := 0; i < len(values); i += 2 {
		v := values[i+1]
		switch m := v.(type) {
		case *types.AttributeValueMemberN:
			v = m.Value
		case *types.AttributeValueMemberBOOL:
			v = m.Value
		case string:
			v = "'" + m + "'"
		}
		cond = strings.ReplaceAll(cond, values[i].(string), fmt.Sprint(v))
	}
	return strings.ReplaceAll(cond, " ", "_") // like package testing does
}

func testCondition(tb *table, cond string, want bool, values []any) {
	it := record("a", "1", "t", "hello", "e", "")
	it["n"], it["flag"] = num("10"), &types.AttributeValueMemberBOOL{Value: true}
	it["m"] = &types.AttributeValueMemberM{Value: item{"x": num("1"), "l": &types.AttributeValueMemberL{Value: []types.AttributeValue{str("p"), str("q")}}}}
	it["set"] = &types.AttributeValueMemberSS{Value: []string{"r", "s"}}
	tb.put(it)
	in := &dynamodb.UpdateItemInput{
		TableName: &tb.name, Key: key("a", "1"), UpdateExpression: aws.String("REMOVE nothing"),
		ConditionExpression: &cond, ExpressionAttributeValues: valueMap(values...),
	}
	if strings.Contains(cond, "#set") { // a reserved word
		in.ExpressionAttributeNames = map[string]string{"#set": "set"}
	}
	_, err := tb.db.UpdateItem(tb.Context(), in)
	_, refused := errors.AsType[*types.ConditionalCheckFailedException](err)
	if err != nil && !refused {
		tb.Error(err)
	} else if refused == want {
		tb.Errorf("should be %v", want)
	}
}

// testUpdateAppendsByIndex sets elements behind the end of a list. They are appended in the order
// of their indexes, without gaps.
func testUpdateAppendsByIndex(tb *table) {
	it := record("a", "1")
	it["l"] = &types.AttributeValueMemberL{Value: []types.AttributeValue{str("0"), str("1")}}
	tb.put(it)
	tb.update("a", "1", "SET l[9] = :nine, l[5] = :five, l[0] = :zero", ":nine", "9", ":five", "5", ":zero", "x")
	var got []string
	if l, ok := tb.get("a", "1")["l"].(*types.AttributeValueMemberL); ok {
		for _, v := range l.Value {
			got = append(got, text(item{"": v}, ""))
		}
	}
	assertEqual(tb, "the list", got, []string{"x", "1", "5", "9"})
}

// rejectionCases are requests that Ordergraph must never send. Engines reject them, so Ordergraph's
// tests detect them.
func rejectionCases() []testCase {
	update := func(expr, cond string, names map[string]string, values ...any) func(*table) error {
		return func(tb *table) error {
			in := &dynamodb.UpdateItemInput{
				TableName: &tb.name, Key: key("a", "1"), UpdateExpression: &expr,
				ExpressionAttributeNames: names, ExpressionAttributeValues: valueMap(values...),
			}
			if cond != "" {
				in.ConditionExpression = &cond
			}
			_, err := tb.db.UpdateItem(tb.Context(), in)
			return err
		}
	}
	put := func(it item) func(*table) error {
		return func(tb *table) error {
			_, err := tb.db.PutItem(tb.Context(), &dynamodb.PutItemInput{TableName: &tb.name, Item: it})
			return err
		}
	}
	get := func(k item) func(*table) error {
		return func(tb *table) error {
			_, err := tb.db.GetItem(tb.Context(), &dynamodb.GetItemInput{TableName: &tb.name, Key: k})
			return err
		}
	}
	query := func(cond string, values ...any) func(*table) error {
		return func(tb *table) error {
			_, err := tb.db.Query(tb.Context(), tb.queryInput(cond, values...))
			return err
		}
	}
	big := record("a", "1")
	big["v"] = str(strings.Repeat("x", 401*1024))
	queryAfter := func(start item) func(*table) error {
		return func(tb *table) error {
			in := tb.queryInput("pk = :p", ":p", "a")
			in.ExclusiveStartKey = start
			_, err := tb.db.Query(tb.Context(), in)
			return err
		}
	}
	scanAfter := func(start item) func(*table) error {
		return func(tb *table) error {
			_, err := tb.db.Scan(tb.Context(), &dynamodb.ScanInput{TableName: &tb.name, ExclusiveStartKey: start})
			return err
		}
	}
	longName := strings.Repeat("n", 1<<16)
	deep := record("a", "1")
	deep["v"] = str("x")
	for range 32 {
		deep["v"] = &types.AttributeValueMemberL{Value: []types.AttributeValue{deep["v"]}}
	}
	wrong := record("a", "2")
	wrong[gsi1pk], wrong[gsi1sk] = num("1"), str("x")
	var cases []testCase
	for _, c := range []struct {
		name string
		send func(*table) error
	}{
		{"missing_value", update("SET v = :v", "", nil)},
		{"unused_value", update("SET v = :v", "", nil, ":v", "x", ":w", "y")},
		{"missing_name", update("SET #v = :v", "", nil, ":v", "x")},
		{"unused_name", update("SET v = :v", "", map[string]string{"#v": "v"}, ":v", "x")},
		{"redundant_parentheses", update("SET v = :v", "((v = :v))", nil, ":v", "x")},
		{"redundant_parentheses_in_key_condition", query("((pk = :v))", ":v", "x")},
		{"update_of_one_path_twice", update("SET v = :v, v = :w", "", nil, ":v", "x", ":w", "y")},
		{"update_of_key", update("SET sk = :v", "", nil, ":v", "x")},
		{"malformed_update", update("SET v = ", "", nil)},
		{"malformed_condition", update("REMOVE v", "v = = :v", nil, ":v", "x")},
		{"condition_on_part_of_key", update("REMOVE v", "attribute_exists(pk.a)", nil)},
		{"update_from_part_of_key", update("SET v = sk[0]", "", nil)},
		{"condition_with_range_of_itself", update("REMOVE v", "v BETWEEN v AND :v", nil, ":v", "x")},
		{"condition_with_number_as_prefix", update("REMOVE v", "begins_with(v, size(v))", nil)},
		{"update_of_name_with_underscore", update("SET _v = :v", "", nil, ":v", "x")},
		{"condition_on_name_with_underscore", update("REMOVE v", "attribute_exists(a._v)", nil)},
		{"nested_list_append", update("SET v = list_append(list_append(:v, :v), :v)", "", nil, ":v", &types.AttributeValueMemberL{})},
		{"list_append_as_default", update("SET v = if_not_exists(v, list_append(:v, :v))", "", nil, ":v", &types.AttributeValueMemberL{})},
		{"sum_with_list_append", update("SET v = list_append(:v, :v) + :n", "", nil, ":v", &types.AttributeValueMemberL{}, ":n", num("1"))},
		{"nested_sum", update("SET v = :n + (:n + :n)", "", nil, ":n", num("1"))},
		{"redundant_parentheses_in_update", update("SET v = ((:v))", "", nil, ":v", "x")},
		{"condition_with_size_of_size", update("REMOVE v", "size(size(v)) = :n", nil, ":n", num("1"))},
		{"condition_that_is_a_size", update("REMOVE v", "size(v)", nil)},
		{"condition_with_type_from_attribute", update("REMOVE v", "attribute_type(v, v)", nil)},
		{"condition_with_type_from_size", update("REMOVE v", "attribute_type(v, size(v))", nil)},
		{"condition_on_existence_of_value", update("REMOVE v", "attribute_exists(:v)", nil, ":v", "x")},
		{"name_of_64_KB", update("SET #v = :v", "", map[string]string{"#v": longName}, ":v", "x")},
		{"empty_name", update("SET #v = :v", "", map[string]string{"#v": ""}, ":v", "x")},
		{"name_placeholder_of_256_bytes", update("SET #"+longName[:255]+" = :v", "", map[string]string{"#" + longName[:255]: "v"}, ":v", "x")},
		{"value_placeholder_of_256_bytes", update("SET v = :"+longName[:255], "", nil, ":"+longName[:255], "x")},
		{"put_with_name_of_64_KB", put(record("a", "1", longName, "x"))},
		{"put_with_map_key_of_64_KB", put(item{pk: str("a"), sk: str("1"), "v": &types.AttributeValueMemberM{Value: item{longName: str("x")}}})},
		{"put_without_sort_key", put(item{pk: str("a")})},
		{"put_with_key_of_wrong_type", put(item{pk: str("a"), sk: num("1")})},
		{"put_with_empty_key", put(record("a", ""))},
		{"put_with_index_key_of_wrong_type", put(wrong)},
		{"put_with_empty_index_key", put(record("a", "2", gsi1pk, "", gsi1sk, "x"))},
		{"put_of_more_than_400_KB", put(big)},
		{"put_of_32_nested_lists", put(deep)},
		{"get_without_sort_key", get(item{pk: str("a")})},
		{"get_with_more_than_key", get(record("a", "1", "v", "x"))},
		{"query_without_partition_key", query("sk = :v", ":v", "x")},
		{"query_of_range_of_partitions", query("pk > :v", ":v", "x")},
		{"query_by_other_attribute", query("pk = :p AND v = :v", ":p", "a", ":v", "x")},
		{"query_by_inequality", query("pk = :p AND sk <> :v", ":p", "a", ":v", "x")},
		{"query_of_reversed_range", query("pk = :p AND sk BETWEEN :a AND :b", ":p", "a", ":a", "b", ":b", "a")},
		{"query_of_long_sort_key", query("pk = :p AND sk = :v", ":p", "a", ":v", strings.Repeat("x", 1025))},
		{"query_after_empty_sort_key", queryAfter(key("a", ""))},
		{"query_after_other_partition", queryAfter(key("b", "1"))},
		{"query_after_no_sort_key", queryAfter(item{pk: str("a")})},
		{"query_after_more_than_key", queryAfter(record("a", "1", "v", "x"))},
		{"scan_after_no_sort_key", scanAfter(item{pk: str("a")})},
		{"scan_after_more_than_key", scanAfter(record("a", "1", "v", "x"))},
	} {
		cases = append(cases, testCase{"Refuses/" + c.name, func(tb *table) {
			tb.put(record("a", "1", "v", "x"))
			assertCode(tb, "the request", c.send(tb), "ValidationException")
			if got := tb.get("a", "1"); len(got) != 3 || text(got, "v") != "x" {
				tb.Errorf("the refused request left %v", got)
			}
		}})
	}
	return cases
}

// testLongNames tests attribute names and placeholders of the maximum length.
func testLongNames(tb *table) {
	name := strings.Repeat("n", 1<<16-1)
	tb.put(record("a", "1", name, "x"))
	names := map[string]string{"#" + name[:254]: name}
	out, err := tb.db.GetItem(tb.Context(), &dynamodb.GetItemInput{
		TableName: &tb.name, Key: key("a", "1"), ProjectionExpression: aws.String("#" + name[:254]), ExpressionAttributeNames: names,
	})
	if err != nil || text(out.Item, name) != "x" {
		tb.Errorf("a name of 65,535 bytes: %v", err)
	}
	tb.update("a", "1", "SET "+name[:300]+" = :"+name[:254], ":"+name[:254], "y")
	if got := text(tb.get("a", "1"), name[:300]); got != "y" {
		tb.Errorf("a name of 300 bytes in the expression: got %q", got)
	}
}

// testTypeOfValue tests attribute_type with a value, and with the result of a function.
func testTypeOfValue(tb *table) {
	tb.put(record("a", "1", "v", "x"))
	for condition, code := range map[string]string{
		"attribute_type(:n, :type)": "", "attribute_type(size(v), :type)": "", "attribute_type(v, :type)": "ConditionalCheckFailedException",
	} {
		values := valueMap(":n", num("1"), ":type", "N")
		if !strings.Contains(condition, ":n") {
			delete(values, ":n")
		}
		_, err := tb.db.DeleteItem(tb.Context(), &dynamodb.DeleteItemInput{
			TableName: &tb.name, Key: key("a", "1"), ConditionExpression: &condition, ExpressionAttributeValues: values,
		})
		assertOutcome(tb, condition, err, code)
		tb.put(record("a", "1", "v", "x"))
	}
}

// testUpdateParentheses tests the parentheses that DynamoDB accepts in an update expression.
func testUpdateParentheses(tb *table) {
	for expression, want := range map[string]string{
		"SET n = (:n)": "2", "SET n = (:n + :n)": "4", "SET n = (:n) - (:n)": "0", "SET n = (:n + (:n))": "4", "SET n = if_not_exists(m, (:n))": "2",
	} {
		tb.update("a", "1", expression, ":n", num("2"))
		if got := number(tb.get("a", "1"), "n"); got != want {
			tb.Errorf("%s: got %s, want %s", expression, got, want)
		}
	}
}

func testNoSuchTable(tb *table) {
	no := aws.String(tb.name + "-not")
	_, err := tb.db.GetItem(tb.Context(), &dynamodb.GetItemInput{TableName: no, Key: key("a", "1")})
	if _, ok := errors.AsType[*types.ResourceNotFoundException](err); !ok {
		tb.Errorf("GetItem: want ResourceNotFoundException, got %v", err)
	}
	_, err = tb.db.DescribeTable(tb.Context(), &dynamodb.DescribeTableInput{TableName: no})
	if _, ok := errors.AsType[*types.ResourceNotFoundException](err); !ok {
		tb.Errorf("DescribeTable: want ResourceNotFoundException, got %v", err)
	}
	_, err = tb.db.CreateTable(tb.Context(), &dynamodb.CreateTableInput{
		TableName: &tb.name, BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String(pk), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String(pk), KeyType: types.KeyTypeHash}},
	})
	if _, ok := errors.AsType[*types.ResourceInUseException](err); !ok {
		tb.Errorf("CreateTable of one that exists: want ResourceInUseException, got %v", err)
	}
}

func testDescribeTable(tb *table) {
	out, err := tb.db.DescribeTable(tb.Context(), &dynamodb.DescribeTableInput{TableName: &tb.name})
	if err != nil {
		tb.Fatal(err)
	}
	if out.Table.TableStatus != types.TableStatusActive || len(out.Table.GlobalSecondaryIndexes) != 1 ||
		out.Table.GlobalSecondaryIndexes[0].IndexStatus != types.IndexStatusActive || len(out.Table.KeySchema) != 2 || len(out.Table.AttributeDefinitions) != 4 {
		tb.Errorf("got %+v", out.Table)
	}
}

func testCancelled(tb *table) {
	ctx, cancel := context.WithCancel(tb.Context())
	cancel()
	_, err := tb.db.PutItem(ctx, &dynamodb.PutItemInput{TableName: &tb.name, Item: record("a", "1")})
	if !errors.Is(err, context.Canceled) {
		tb.Errorf("want context.Canceled, got %v", err)
	}
	if tb.get("a", "1") != nil {
		tb.Error("the record was written")
	}
}
