package enginetest

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

func valueCases() []testCase {
	return []testCase{
		{"Numbers", testNumbers},
		{"NumberSpelling", testNumberSpelling},
		{"NumberRefused", testNumberRefused},
		{"EmptyText", testEmptyText},
		{"EmptyLists", testEmptyValues},
		{"ConditionBesideEmptyBytes", testConditionBesideEmptyBytes},
		{"NestedValues", testNestedValues},
		{"NestingLimit", testNestingLimit},
		{"EmptyAttributeNames", testEmptyAttributeNames},
		{"OtherTypes", testOtherTypes},
		{"NullFalse", testNullFalse},
		{"SetUpdates", testSetUpdates},
		{"SetEmptied", testSetEmptied},
		{"SetOrder", testSetOrder},
		{"Text", testText},
		{"TextSize", testTextSize},
	}
}

// testNullFalse tests that NULL has no other value than true, also within a value and in an update.
func testNullFalse(tb *table) {
	no := &types.AttributeValueMemberNULL{}
	for what, v := range map[string]types.AttributeValue{
		"an attribute":      no,
		"a list's element":  &types.AttributeValueMemberL{Value: []types.AttributeValue{no}},
		"an entry of a map": &types.AttributeValueMemberM{Value: item{"n": no}},
	} {
		it := record("p", "n")
		it["v"] = v
		_, err := tb.db.PutItem(tb.Context(), &dynamodb.PutItemInput{TableName: &tb.name, Item: it})
		assertCode(tb, "put of "+what, err, "ValidationException")
		_, err = tb.db.UpdateItem(tb.Context(), &dynamodb.UpdateItemInput{
			TableName: &tb.name, Key: key("p", "n"), UpdateExpression: aws.String("SET v = :v"), ExpressionAttributeValues: item{":v": v},
		})
		assertCode(tb, "update of "+what, err, "ValidationException")
		assertCode(tb, "transaction with "+what, tb.transact(putAction(tb, it, "")), "ValidationException")
	}
	if got := tb.get("p", "n"); got != nil {
		tb.Errorf("got %v", got)
	}
}

// testNumbers stores numbers in normalized notation and reads them back.
func testNumbers(tb *table) {
	for _, n := range []string{
		"0", "1", "-17", "12.5", "0.001", "100", "1000000000000",
		"9007199254740993", // not representable as float64
		"12345678901234567890123456789012345678",
		"-1234567890123456789.0123456789012345678",
		"0.1234567890123456789012345678901234567",
	} {
		it := record("p", "n")
		it["n"] = num(n)
		tb.put(it)
		if got := number(tb.get("p", "n"), "n"); got != n {
			tb.Errorf("%s came back as %s", n, got)
		}
	}
}

// testNumberSpelling tests that numbers are normalized. The right column is the normalized
// notation.
func testNumberSpelling(tb *table) {
	for _, c := range [][2]string{
		{"-0", "0"},
		{"0.10", "0.1"},
		{"1e3", "1000"},
		{"19.990", "19.99"},
	} {
		it := record("p", "n")
		it["n"] = num(c[0])
		tb.put(it)
		if got := number(tb.get("p", "n"), "n"); got != c[1] {
			tb.Errorf("%s came back as %s, want %s", c[0], got, c[1])
		}
	}
}

func testNumberRefused(tb *table) {
	for _, n := range []string{"", "x", "1x", "NaN", "Infinity", "123456789012345678901234567890123456789", "1e126", "1e-131", "--1", "1.2.3"} {
		it := record("p", "n")
		it["n"] = num(n)
		_, err := tb.db.PutItem(tb.Context(), &dynamodb.PutItemInput{TableName: &tb.name, Item: it})
		assertCode(tb, "the number "+n, err, "ValidationException")
	}
}

func testEmptyText(tb *table) {
	tb.put(record("p", "1", "e", ""))
	if v, _ := tb.get("p", "1")["e"].(*types.AttributeValueMemberS); v == nil || v.Value != "" {
		tb.Errorf("got %v", v)
	}
}

func testEmptyValues(tb *table) {
	it := record("p", "1", "text", "")
	it["list"] = &types.AttributeValueMemberL{Value: []types.AttributeValue{}}
	it["map"] = &types.AttributeValueMemberM{Value: item{}}
	it["nested"] = &types.AttributeValueMemberM{Value: item{"list": &types.AttributeValueMemberL{Value: []types.AttributeValue{}}, "text": str("")}}
	it["bytes"] = &types.AttributeValueMemberB{Value: []byte{}}
	tb.put(it)
	for range 2 {
		got := tb.get("p", "1")
		txt, _ := got["text"].(*types.AttributeValueMemberS)
		list, _ := got["list"].(*types.AttributeValueMemberL)
		m, _ := got["map"].(*types.AttributeValueMemberM)
		nested, _ := got["nested"].(*types.AttributeValueMemberM)
		b, _ := got["bytes"].(*types.AttributeValueMemberB)
		if txt == nil || list == nil || m == nil || nested == nil || b == nil || len(list.Value) != 0 || len(m.Value) != 0 || len(b.Value) != 0 {
			tb.Fatalf("got %v", got)
		}
		if l, _ := nested.Value["list"].(*types.AttributeValueMemberL); l == nil || nested.Value["text"] == nil {
			tb.Errorf("nested: %v", nested.Value)
		}
		tb.update("p", "1", "SET v = :v", ":v", "x") // an update of another attribute keeps them
	}
}

func testConditionBesideEmptyBytes(tb *table) {
	it := record("p", "1", "v", "x")
	it["bytes"] = &types.AttributeValueMemberB{Value: []byte{}}
	tb.put(it)
	if err := tb.transact(putAction(tb, record("p", "1", "v", "y"), "attribute_exists(v)")); err != nil {
		tb.Error(err)
	}
}

func testNestedValues(tb *table) {
	line := func(id, qty string) types.AttributeValue {
		return &types.AttributeValueMemberM{Value: item{"id": str(id), "qty": num(qty), "tags": &types.AttributeValueMemberL{Value: []types.AttributeValue{str("t"), num("1")}}}}
	}
	it := record("p", "1")
	it["lines"] = &types.AttributeValueMemberL{Value: []types.AttributeValue{line("b", "1"), line("a", "2.5"), line("c", "3")}}
	tb.put(it)
	lines, _ := tb.get("p", "1")["lines"].(*types.AttributeValueMemberL)
	if lines == nil || len(lines.Value) != 3 {
		tb.Fatalf("got %v", lines)
	}
	var got []string
	for _, v := range lines.Value {
		m := v.(*types.AttributeValueMemberM).Value
		tags := m["tags"].(*types.AttributeValueMemberL).Value
		got = append(got, text(m, "id"), number(m, "qty"), number(item{"": tags[1]}, ""))
	}
	assertEqual(tb, "lines in their order", got, []string{"b", "1", "1", "a", "2.5", "1", "c", "3", "1"})
}

// nested returns a string in maps of a depth.
func nested(depth int) types.AttributeValue {
	v := str("leaf")
	for range depth {
		v = &types.AttributeValueMemberM{Value: item{"n": v}}
	}
	return v
}

// testNestingLimit tests that values have at most 32 levels, in puts and in updates.
func testNestingLimit(tb *table) {
	for depth, want := range map[int]string{31: "", 32: "ValidationException", 40: "ValidationException"} {
		it := record("p", "1")
		it["deep"] = nested(depth)
		_, err := tb.db.PutItem(tb.Context(), &dynamodb.PutItemInput{TableName: &tb.name, Item: it})
		assertOutcome(tb, fmt.Sprintf("a put of %d levels", depth), err, want)
		_, err = tb.db.UpdateItem(tb.Context(), &dynamodb.UpdateItemInput{
			TableName: &tb.name, Key: key("p", "2"), UpdateExpression: aws.String("SET deep = :v"), ExpressionAttributeValues: item{":v": nested(depth)},
		})
		assertOutcome(tb, fmt.Sprintf("an update of %d levels", depth), err, want)
	}
	tb.put(record("p", "3"))
	tb.update("p", "3", "SET deep = :v", ":v", nested(20))
	path := "deep" + strings.Repeat(".n", 20)
	for depth, want := range map[int]string{11: "", 12: "ValidationException"} {
		_, err := tb.db.UpdateItem(tb.Context(), &dynamodb.UpdateItemInput{
			TableName: &tb.name, Key: key("p", "3"), UpdateExpression: aws.String("SET " + path + " = :v"), ExpressionAttributeValues: item{":v": nested(depth)},
		})
		assertOutcome(tb, fmt.Sprintf("%d levels in 20 levels", depth), err, want)
	}
}

func testEmptyAttributeNames(tb *table) {
	top, inner := record("p", "1"), record("p", "1")
	top[""] = str("x")
	inner["m"] = &types.AttributeValueMemberM{Value: item{"": str("x")}}
	for what, it := range map[string]item{"of an attribute": top, "in a map": inner} {
		_, err := tb.db.PutItem(tb.Context(), &dynamodb.PutItemInput{TableName: &tb.name, Item: it})
		assertCode(tb, "an empty name "+what, err, "ValidationException")
	}
}

func testOtherTypes(tb *table) {
	it := record("p", "1")
	it["yes"], it["no"] = &types.AttributeValueMemberBOOL{Value: true}, &types.AttributeValueMemberBOOL{Value: false}
	it["null"] = &types.AttributeValueMemberNULL{Value: true}
	it["bytes"] = &types.AttributeValueMemberB{Value: []byte{0, 255, 10}}
	it["ss"] = &types.AttributeValueMemberSS{Value: []string{"b", "a"}}
	it["ns"] = &types.AttributeValueMemberNS{Value: []string{"2", "10"}}
	tb.put(it)
	got := tb.get("p", "1")
	yes, _ := got["yes"].(*types.AttributeValueMemberBOOL)
	no, _ := got["no"].(*types.AttributeValueMemberBOOL)
	null, _ := got["null"].(*types.AttributeValueMemberNULL)
	b, _ := got["bytes"].(*types.AttributeValueMemberB)
	ss, _ := got["ss"].(*types.AttributeValueMemberSS)
	ns, _ := got["ns"].(*types.AttributeValueMemberNS)
	if yes == nil || !yes.Value || no == nil || no.Value || null == nil || b == nil || !bytes.Equal(b.Value, []byte{0, 255, 10}) || ss == nil || ns == nil {
		tb.Fatalf("got %v", got)
	}
	assertSameElements(tb, "the text set", ss.Value, []string{"a", "b"})
	assertSameElements(tb, "the number set", ns.Value, []string{"10", "2"})
}

func testSetUpdates(tb *table) {
	it := record("p", "1")
	it["ss"], it["ns"] = &types.AttributeValueMemberSS{Value: []string{"b", "a"}}, &types.AttributeValueMemberNS{Value: []string{"2", "10"}}
	tb.put(it)
	tb.update("p", "1", "ADD ss :s DELETE ns :n",
		":s", &types.AttributeValueMemberSS{Value: []string{"c", "a"}}, ":n", &types.AttributeValueMemberNS{Value: []string{"2"}})
	got := tb.get("p", "1")
	ss, _ := got["ss"].(*types.AttributeValueMemberSS)
	ns, _ := got["ns"].(*types.AttributeValueMemberNS)
	if ss == nil || ns == nil {
		tb.Fatalf("got %v", got)
	}
	assertSameElements(tb, "the text set", ss.Value, []string{"a", "b", "c"})
	assertSameElements(tb, "the number set", ns.Value, []string{"10"})
}

func testSetEmptied(tb *table) {
	it := record("p", "1")
	it["ns"] = &types.AttributeValueMemberNS{Value: []string{"10"}}
	tb.put(it)
	tb.update("p", "1", "DELETE ns :n", ":n", &types.AttributeValueMemberNS{Value: []string{"10"}})
	if got := tb.get("p", "1"); got["ns"] != nil {
		tb.Errorf("an emptied set is no attribute, got %v", got["ns"])
	}
}

// testSetOrder tests that sets are sorted: numbers by their value, texts by their bytes.
func testSetOrder(tb *table) {
	it := record("p", "1")
	it["ss"], it["ns"] = &types.AttributeValueMemberSS{Value: []string{"b", "a", "B"}}, &types.AttributeValueMemberNS{Value: []string{"10", "2", "-1.5"}}
	tb.put(it)
	tb.update("p", "1", "ADD ss :s, ns :n", ":s", &types.AttributeValueMemberSS{Value: []string{"aa", ""}}, ":n", &types.AttributeValueMemberNS{Value: []string{"9"}})
	got := tb.get("p", "1")
	ss, _ := got["ss"].(*types.AttributeValueMemberSS)
	ns, _ := got["ns"].(*types.AttributeValueMemberNS)
	if ss == nil || ns == nil {
		tb.Fatalf("got %v", got)
	}
	assertEqual(tb, "the text set", ss.Value, []string{"", "B", "a", "aa", "b"})
	assertEqual(tb, "the number set", ns.Value, []string{"-1.5", "2", "9", "10"})
}

// testTextSize tests that the function size counts UTF-16 code units.
func testTextSize(tb *table) {
	tb.put(record("p", "1", "v", "a\u00fc\u20ac\U0001f600"))
	in := tb.queryInput("pk = :p", ":p", "p", ":n", num("5"))
	in.FilterExpression = aws.String("size(v) = :n")
	if got := tb.query(in); len(got) != 1 {
		tb.Errorf("the size is not 5: %d records", len(got))
	}
}

func testText(tb *table) {
	for _, v := range []string{"<b>&amp;</b>", "\u2028\u2029", "\"quoted\\\"", "tab\tline\nend\x00", "\U0001f600 \U0010ffff", strings.Repeat("ü", 10_000)} {
		tb.put(record("p", "t", "v", v))
		if got := text(tb.get("p", "t"), "v"); got != v {
			tb.Errorf("%.40q came back as %.40q", v, got)
		}
	}
	keys := slices.DeleteFunc(orderedKeys(), func(s string) bool { return s < "\u0080" })
	for _, s := range keys {
		tb.put(record("\u00e4"+s, s, "v", s))
		if got := text(tb.get("\u00e4"+s, s), "v"); got != s {
			tb.Errorf("key %q: got %q", s, got)
		}
	}
}
