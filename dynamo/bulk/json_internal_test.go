package bulk

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"pgregory.net/rapid"

	"github.com/ordergraph/ordergraph/dynamo/model"
)

// anyValue generates a value of any type, nested at most depth levels deep.
func anyValue(depth int) *rapid.Generator[types.AttributeValue] {
	text := rapid.String()
	digits := rapid.StringMatching(`-?[1-9][0-9]{0,20}(\.[0-9]{1,17})?`)
	data := rapid.SliceOf(rapid.Byte())
	kinds := []*rapid.Generator[types.AttributeValue]{
		rapid.Map(text, func(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }),
		rapid.Map(digits, func(s string) types.AttributeValue { return &types.AttributeValueMemberN{Value: s} }),
		rapid.Map(data, func(b []byte) types.AttributeValue { return &types.AttributeValueMemberB{Value: b} }),
		rapid.Map(rapid.Bool(), func(b bool) types.AttributeValue { return &types.AttributeValueMemberBOOL{Value: b} }),
		rapid.Just[types.AttributeValue](&types.AttributeValueMemberNULL{Value: true}),
		rapid.Map(rapid.SliceOfNDistinct(text, 1, 5, rapid.ID[string]), func(s []string) types.AttributeValue { return &types.AttributeValueMemberSS{Value: s} }),
		rapid.Map(rapid.SliceOfNDistinct(digits, 1, 5, model.ParseValidNumber), func(s []string) types.AttributeValue { return &types.AttributeValueMemberNS{Value: s} }),
		rapid.Map(rapid.SliceOfNDistinct(data, 1, 5, func(b []byte) string { return string(b) }), func(b [][]byte) types.AttributeValue { return &types.AttributeValueMemberBS{Value: b} }),
	}
	if depth > 0 {
		inner := anyValue(depth - 1)
		kinds = append(kinds,
			rapid.Map(rapid.SliceOfN(inner, 0, 4), func(l []types.AttributeValue) types.AttributeValue { return &types.AttributeValueMemberL{Value: l} }),
			rapid.Map(rapid.MapOfN(text, inner, 0, 4), func(m map[string]types.AttributeValue) types.AttributeValue {
				return &types.AttributeValueMemberM{Value: m}
			}))
	}
	return rapid.OneOf(kinds...)
}

// A record survives encoding and decoding, and equal records have equal lines.
func TestRecordsSurviveJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := model.Record(rapid.MapOfN(rapid.StringN(1, -1, -1), anyValue(3), 0, 6).Draw(t, "record"))
		line, err := toJSON(want)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Count(line, []byte("\n")) != 1 || line[len(line)-1] != '\n' {
			t.Fatalf("not one line: %q", line)
		}
		got, err := fromJSON(line)
		if err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if !model.EqualRecords(got, want) || !model.EqualRecords(want, got) {
			t.Fatalf("%s is decoded to a different record", line)
		}
		again, err := toJSON(got)
		if err != nil || !bytes.Equal(again, line) {
			t.Fatalf("the line differs after decoding and encoding: %v\n%s%s", err, line, again)
		}
	})
}

// SameRecord finds any difference between two records. Equal records have equal lines, except for
// the notation of numbers.
func TestSameRecordMatchesLines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := model.Record{"a": anyValue(2).Draw(t, "a")}
		b := model.Record{"a": anyValue(2).Draw(t, "b")}
		lineA, errA := toJSON(a)
		lineB, errB := toJSON(b)
		if errA != nil || errB != nil {
			t.Fatal(errA, errB)
		}
		if bytes.Equal(lineA, lineB) && !model.EqualRecords(a, b) {
			t.Fatalf("different records have the same line: %s", lineA)
		}
		if model.EqualRecords(a, b) && !bytes.Equal(lineA, lineB) && !bytes.Contains(lineA, []byte(`"N`)) {
			t.Fatalf("equal records have different lines:\n%s%s", lineA, lineB)
		}
	})
}

func TestSame(t *testing.T) {
	value := func(text string) model.Record {
		t.Helper()
		r, err := fromJSON([]byte(`{"Item":{"v":` + text + `}}`))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	for _, pair := range [][2]string{
		{`{"N":"5"}`, `{"N":"5.0"}`}, {`{"N":"0.5E1"}`, `{"N":"+05"}`}, {`{"N":"-0"}`, `{"N":"0e9"}`}, {`{"N":"1e2"}`, `{"N":"100"}`},
		{`{"SS":["a","b"]}`, `{"SS":["b","a"]}`}, {`{"NS":["1","2"]}`, `{"NS":["2.0","1"]}`}, {`{"BS":["YQ==","Yg=="]}`, `{"BS":["Yg==","YQ=="]}`},
		{`{"M":{"a":{"N":"1"},"b":{"S":""}}}`, `{"M":{"b":{"S":""},"a":{"N":"1.00"}}}`},
	} {
		if a, b := value(pair[0]), value(pair[1]); !model.EqualRecords(a, b) || !model.EqualRecords(b, a) {
			t.Errorf("%s and %s are not the same", pair[0], pair[1])
		}
		if strings.Contains(pair[0], "N") {
			continue // lines preserve the notation of numbers
		}
		a, errA := toJSON(value(pair[0]))
		b, errB := toJSON(value(pair[1]))
		if errA != nil || errB != nil || !bytes.Equal(a, b) {
			t.Errorf("%s and %s are different lines: %s%s", pair[0], pair[1], a, b)
		}
	}
	different := []string{
		`{"S":"1"}`, `{"N":"1"}`, `{"N":"-1"}`, `{"N":"10"}`, `{"N":"12345678901234567890123456789012345678"}`, `{"N":"12345678901234567890123456789012345679"}`,
		`{"B":"MQ=="}`, `{"B":"Mg=="}`, `{"S":"MQ=="}`, `{"BOOL":true}`, `{"BOOL":false}`, `{"NULL":true}`, `{"S":""}`, `{"L":[]}`, `{"M":{}}`,
		`{"SS":["1"]}`, `{"NS":["1"]}`, `{"BS":["MQ=="]}`, `{"BS":["Mg=="]}`, `{"SS":["1","2"]}`, `{"SS":["1","3"]}`, `{"NS":["1","2"]}`, `{"NS":["2"]}`,
		`{"L":[{"S":"1"}]}`, `{"L":[{"N":"1"}]}`, `{"L":[{"S":"1"},{"S":"2"}]}`, `{"L":[{"S":"2"},{"S":"1"}]}`,
		`{"M":{"a":{"S":"1"}}}`, `{"M":{"b":{"S":"1"}}}`, `{"M":{"a":{"S":"2"}}}`,
	}
	for i, a := range different {
		for j, b := range different {
			if is := model.EqualRecords(value(a), value(b)); is != (i == j) {
				t.Errorf("%s and %s: EqualRecords returns %t", a, b, is)
			}
		}
	}
	if model.EqualRecords(model.Record{}, value(`{"S":""}`)) || model.EqualRecords(value(`{"S":""}`), model.Record{}) {
		t.Error("an empty attribute is equal to a missing attribute")
	}
}

// Lines of other software can have another order of names, spaces, escapes, and other notations of
// numbers.
func TestRecordFromExternalJSON(t *testing.T) {
	got, err := fromJSON([]byte(" { \"Item\" : {\"sk\":{\"S\":\"\\u0041\\/\\ud83d\\ude00\\\\ud800\"}, \"n\":{\"N\":\"5.00\"},\"pk\":{\"S\":\"\ufffd\"}} } \r\n"))
	want := model.Record{"sk": model.Str(`A/😀\ud800`), "n": &types.AttributeValueMemberN{Value: "5.00"}, "pk": model.Str("\ufffd")}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
}

// invalidLines returns lines that contain no valid record, each with a part of its error message.
func invalidLines() map[string]string {
	lines := map[string]string{
		``:                                    "not JSON",
		`{`:                                   "not JSON",
		`{"Item":{"a":{"S":"b"}}`:             "not JSON",
		`{"Item":{"a":{"S":"b"}}}}`:           "not JSON",
		`{"Item":{"a":{"S":"b"}}} {"Item":1}`: "not JSON",
		`{"Item":{"a":{"S":"b"},}}`:           "not JSON",
		`{"Item":{"a":{"S":'b'}}}`:            "not JSON",
		"{\"Item\":{\"a\":{\"S\":\"b\tc\"}}}": "not JSON",
		"\ufeff{\"Item\":{}}":                 "not JSON",
		"{\"Item\":{\"a\":{\"S\":\"\xff\"}}}": "UTF-8",
		"{\"Item\":{\"a\":{\"S\":\"\xed\xa0\x80\"}}}": "UTF-8",
		`{"Item":{"a":{"S":"\ud800"}}}`:               "surrogate pair",
		`{"Item":{"a":{"S":"\udc00\ud800"}}}`:         "surrogate pair",
		`{"Item":{"a":{"S":"\ud800\u0041"}}}`:         "surrogate pair",
		`{"Item":{"a":{"S":"\\\ud83d"}}}`:             "surrogate pair",
		`{"Item":{"\uDFFF":{"S":""}}}`:                "surrogate pair",
		`null`:                                        "null, expected an object",
		`1`:                                           "a number, expected an object",
		`"a"`:                                         "a string, expected an object",
		`[]`:                                          "an array, expected an object",
		`{}`:                                          "not a record",
		`{"pk":{"S":"a"},"sk":{"S":"b"}}`:             `unexpected name "pk"`,
		`{"item":{}}`:                                 `unexpected name "item"`,
		`{"NewImage":{}}`:                             `unexpected name "NewImage"`,
		`{"Item":{},"Item":{}}`:                       `duplicate name "Item"`,
		`{"Item":{},"Keys":{}}`:                       `unexpected name "Keys"`,
		`{"Item":{"":{"S":"b"}}}`:                     "an empty name",
		`{"Item":{"` + strings.Repeat("a", 1<<16) + `":{"S":"b"}}}`: "65536 bytes",
		`{"Item":null}`:                               "null, expected an object",
		`{"Item":[]}`:                                 "an array, expected an object",
		`{"Item":{"a":{"S":"b"},"a":{"S":"c"}}}`:      `duplicate name "a"`,
		`{"Item":{"a":{"S":"b"},"\u0061":{"S":"c"}}}`: `duplicate name "a"`,
	}
	deep := strings.Repeat(`{"L":[`, model.MaxDepth+1) + strings.Repeat(`]}`, model.MaxDepth+1)
	for value, want := range map[string]string{
		`null`: "null", `1`: "a number", `"a"`: "a string", `true`: "true", `[]`: "an array", `{}`: "no type",
		`{"X":"a"}`: `"X"`, `{"s":"a"}`: `"s"`, `{"":"a"}`: `""`, `{"SN":["1"]}`: `"SN"`,
		`{"S":"a","N":"1"}`: "two types", `{"S":"a","S":"b"}`: "duplicate name", `{"NULL":true,"S":"a"}`: "two types",
		`{"S":null}`: "null", `{"S":1}`: "a number", `{"S":["a"]}`: "an array", `{"S":{"S":"a"}}`: "an object", `{"S":true}`: "true",
		`{"N":1}`: "a number", `{"N":null}`: "null", `{"N":""}`: "not a number", `{"N":"a"}`: "not a number", `{"N":"1,5"}`: "not a number", `{"N":"0x1"}`: "not a number",
		`{"N":"1e"}`: "not a number", `{"N":"e1"}`: "not a number", `{"N":"."}`: "not a number", `{"N":"-"}`: "not a number", `{"N":"--1"}`: "not a number", `{"N":"1 "}`: "not a number",
		`{"N":"NaN"}`: "not a number", `{"N":"Infinity"}`: "not a number", `{"N":"1.2.3"}`: "not a number", `{"N":"1e1.5"}`: "not a number", `{"N":"١"}`: "not a number",
		`{"N":"1e126"}`: "not a number", `{"N":"1e-131"}`: "not a number", `{"N":"1e99999999999"}`: "not a number", `{"N":"123456789012345678901234567890123456789"}`: "not a number",
		`{"B":"a"}`: "base64", `{"B":"YQ"}`: "base64", `{"B":"YR=="}`: "base64", `{"B":"YQ==="}`: "base64", `{"B":"-_-_"}`: "base64", `{"B":1}`: "a number", `{"B":null}`: "null",
		`{"BOOL":"true"}`: "a string", `{"BOOL":1}`: "a number", `{"BOOL":null}`: "null", `{"NULL":false}`: "false", `{"NULL":null}`: "null", `{"NULL":"true"}`: "a string",
		`{"SS":[]}`: "empty set", `{"SS":null}`: "null", `{"SS":"a"}`: "a string", `{"SS":[1]}`: "a number", `{"SS":[null]}`: "null", `{"SS":["a","a"]}`: "duplicate element", `{"SS":[["a"]]}`: "an array",
		`{"SS":{}}`: "an object", `{"NS":[]}`: "empty set", `{"NS":[1]}`: "a number", `{"NS":["a"]}`: "not a number", `{"NS":["1","1"]}`: "duplicate element", `{"NS":["1","1.0"]}`: "duplicate element",
		`{"BS":[]}`: "empty set", `{"BS":["a"]}`: "base64", `{"BS":["YQ==","YQ=="]}`: "duplicate element", `{"BS":[null]}`: "null",
		`{"L":null}`: "null", `{"L":{}}`: "an object", `{"L":["a"]}`: "a string", `{"L":[null]}`: "null", `{"L":[{}]}`: "no type", `{"L":[{"S":1}]}`: "a number",
		`{"M":null}`: "null", `{"M":[]}`: "an array", `{"M":{"b":null}}`: "null", `{"M":{"b":"c"}}`: "a string", `{"M":{"b":{"S":"c"},"b":{"S":"d"}}}`: "duplicate name",
		`{"N":` + strings.Repeat("9", 400) + `}`: "", deep: "deeper", strings.Repeat(`{"M":{"m":`, 5000) + `{"S":""}` + strings.Repeat(`}}`, 5000): "",
	} {
		lines[`{"Item":{"pk":{"S":"P"},"sk":{"S":"S"},"a":`+value+`}}`] = want
	}
	return lines
}

func TestInvalidLines(t *testing.T) {
	lines := invalidLines()
	if len(lines) < 100 {
		t.Errorf("only %d", len(lines))
	}
	for line, want := range lines {
		if r, err := fromJSON([]byte(line)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.100s is decoded to %v, %v; want an error that contains %q", line, r, err, want)
		}
	}
	// One level less is DynamoDB's limit.
	if _, err := fromJSON([]byte(`{"Item":{"a":` + strings.Repeat(`{"L":[`, model.MaxDepth) + strings.Repeat(`]}`, model.MaxDepth) + `}}`)); err != nil {
		t.Error(err)
	}
}

func TestUnknownTypesAreNotExported(t *testing.T) {
	for _, v := range []types.AttributeValue{nil, &types.UnknownUnionMember{Tag: "Z"}} {
		for _, r := range []model.Record{{"a": v}, {"a": model.ListValue(v)}, {"a": &types.AttributeValueMemberM{Value: model.Record{"b": v}}}} {
			if line, err := toJSON(r); err == nil {
				t.Errorf("%v became %s", r, line)
			}
		}
	}
}

// A line that fromJSON accepts survives encoding and decoding.
func FuzzRecordFromJSON(f *testing.F) {
	for line := range invalidLines() {
		f.Add([]byte(line))
	}
	f.Add([]byte(`{"Item":{"pk":{"S":"a"},"n":{"N":"1.50"},"s":{"NS":["2","1"]},"m":{"M":{"l":{"L":[{"NULL":true},{"BOOL":false},{"B":"YQ=="}]}}}}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := fromJSON(text)
		if err != nil {
			return
		}
		line, err := toJSON(r)
		if err != nil {
			t.Fatal(err)
		}
		again, err := fromJSON(line)
		if err != nil || !model.EqualRecords(r, again) || !utf8.Valid(line) {
			t.Fatalf("%q became %q, %v", text, line, err)
		}
	})
}
