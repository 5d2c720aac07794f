package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/ordergraph/ordergraph/graph/errcode"
	"github.com/ordergraph/ordergraph/internal/setting"
)

// inputSchema has every kind of input, including kinds that the product's schema does not use.
const inputSchema = `
type Query { f(int: Int, float: Float, string: String, bool: Boolean, id: ID, color: Color, in: In, one: One, any: Any, day: Day, days: [Day!], ints: [Int], grid: [[Int!]!], must: Int! = 3): String }
enum Color { RED GREEN }
scalar Any
scalar Day
input In { must: Int!, defaulted: Int! = 5, color: Color = RED, nested: In, list: [In!], any: Any, day: Day, plain: String }
input One @oneOf { a: Int, b: String }
`

// testScalars returns the coercions for inputSchema. A Day is a string of two digits, or a number.
func testScalars() scalars {
	return newScalars(map[string]CoerceScalar{"Day": func(value any) (any, error) {
		if number, ok := value.(json.Number); ok {
			value = number.String()
		}
		if text, ok := value.(string); !ok || len(text) != 2 {
			return nil, errors.New("must be a day")
		}
		return value, nil
	}})
}

func loadInputSchema(t *testing.T) *ast.Schema {
	t.Helper()
	schema, err := gqlparser.LoadSchema(&ast.Source{Input: inputSchema})
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// jsonValue decodes JSON as the server does.
func jsonValue(t testing.TB, text string) map[string]any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.UseNumber()
	var v map[string]any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

func operationOf(t *testing.T, schema *ast.Schema, query string) *ast.OperationDefinition {
	t.Helper()
	document := mustParse(t, query)
	if errs := validate(schema, testScalars(), document, true, false); len(errs) > 0 {
		t.Fatalf("%s: %v", query, errs)
	}
	return document.Operations[0]
}

// Values are coerced according to the specification's tables.
func TestVariables(t *testing.T) {
	schema := loadInputSchema(t)
	type object = map[string]any
	type list = []any
	for _, c := range []struct {
		typ, argument string
		given         string
		want          any
		rejected      string
	}{
		{"Int", "int", `1`, int64(1), ""},
		{"Int", "int", `-2147483648`, int64(-1 << 31), ""},
		{"Int", "int", `1.0`, int64(1), ""},
		{"Int", "int", `1e3`, int64(1000), ""},
		{"Int", "int", `null`, nil, ""},
		{"Int", "int", `"1"`, nil, `variable "v": is a string, expected an Int`},
		{"Int", "int", `1.5`, nil, `variable "v": is a number, expected an Int`},
		{"Int", "int", `2147483648`, nil, "32 bits"},
		{"Int", "int", `-2147483649`, nil, "32 bits"},
		{"Int", "int", `1e400`, nil, "a number, expected an Int"},
		{"Int", "int", `true`, nil, "a Boolean, expected an Int"},
		{"Int", "int", `[1]`, nil, "a list, expected an Int"},
		{"Int", "int", `{}`, nil, "an object, expected an Int"},
		{"Int!", "int", `null`, nil, `variable "v": cannot be null`},
		{"Float", "float", `1`, 1.0, ""},
		{"Float", "float", `-1.5e3`, -1500.0, ""},
		{"Float", "float", `"1.5"`, nil, "a string, expected a Float"},
		{"Float", "float", `1e400`, nil, "a number, expected a Float"},
		{"Float", "float", `false`, nil, "a Boolean, expected a Float"},
		{"String", "string", `"1"`, "1", ""},
		{"String", "string", `1`, nil, "a number, expected a String"},
		{"String", "string", `true`, nil, "a Boolean, expected a String"},
		{"Boolean", "bool", `true`, true, ""},
		{"Boolean", "bool", `"true"`, nil, "a string, expected a Boolean"},
		{"Boolean", "bool", `0`, nil, "a number, expected a Boolean"},
		{"ID", "id", `"x"`, "x", ""},
		{"ID", "id", `12345678901234567890`, "12345678901234567890", ""},
		{"ID", "id", `-1`, "-1", ""},
		{"ID", "id", `1.5`, nil, "a number, expected an ID"},
		{"ID", "id", `1.0`, nil, "a number, expected an ID"},
		{"ID", "id", `1e3`, nil, "a number, expected an ID"},
		{"ID", "id", strings.Repeat("1", 65), nil, "a number, expected an ID"},
		{"ID", "id", `true`, nil, "a Boolean, expected an ID"},
		{"Color", "color", `"RED"`, "RED", ""},
		{"Color", "color", `"red"`, nil, `has the value "red", which is not a value of Color: did you mean "RED"?`},
		{"Color", "color", `"` + strings.Repeat("é", 1000) + `"`, nil, strings.Repeat("é", 25) + "..."},
		{"Color", "color", `0`, nil, "a number, expected a value of Color"},
		{"[Int]", "ints", `[1,null,2]`, list{int64(1), nil, int64(2)}, ""},
		{"[Int]", "ints", `1`, list{int64(1)}, ""},
		{"[Int]", "ints", `[]`, list{}, ""},
		{"[Int]", "ints", `null`, nil, ""},
		{"[Int]", "ints", `[1,"2"]`, nil, `variable "v": 1 is a string`},
		{"[Int!]", "ints", `[null]`, nil, `variable "v": 0 cannot be null`},
		{"[[Int!]!]", "grid", `1`, list{list{int64(1)}}, ""},
		{"[[Int!]!]", "grid", `[[1],2]`, list{list{int64(1)}, list{int64(2)}}, ""},
		{"[[Int!]!]", "grid", `[null]`, nil, `variable "v": 0 cannot be null`},
		{"In", "in", `{"must":1}`, object{"must": int64(1), "defaulted": int64(5), "color": "RED"}, ""},
		{"In", "in", `{"must":1,"color":null,"plain":null,"defaulted":7}`, object{"must": int64(1), "defaulted": int64(7), "color": nil, "plain": nil}, ""},
		{"In", "in", `{"must":1,"any":{"x":[1]}}`, object{"must": int64(1), "defaulted": int64(5), "color": "RED", "any": object{"x": list{json.Number("1")}}}, ""},
		{"In", "in", `{"must":1,"list":{"must":2}}`, object{"must": int64(1), "defaulted": int64(5), "color": "RED", "list": list{object{"must": int64(2), "defaulted": int64(5), "color": "RED"}}}, ""},
		{"In", "in", `{}`, nil, `variable "v": must must be defined`},
		{"In", "in", `{"must":null}`, nil, `variable "v": must cannot be null`},
		{"In", "in", `{"must":1,"defaulted":null}`, nil, `variable "v": defaulted cannot be null`},
		{"In", "in", `{"must":"1"}`, nil, `variable "v": must is a string, expected an Int`},
		{"In", "in", `{"must":1,"mus":1}`, nil, `has a field "mus", which In does not have: did you mean "must"?`},
		{"In", "in", `{"must":1,"more":1}`, nil, `has a field "more", which In does not have`},
		{"In", "in", `{"must":1,"__typename":"In"}`, nil, `has a field "__typename"`},
		{"In", "in", `{"must":1,"nested":{"must":1,"list":[{"must":1},{"must":"x"}]}}`, nil, `variable "v": nested.list.1.must is a string`},
		{"In", "in", `[]`, nil, "a list, expected an object of type In"},
		{"In", "in", `"x"`, nil, "a string, expected an object of type In"},
		{"One", "one", `{"a":1}`, object{"a": int64(1)}, ""},
		{"One", "one", `{"b":"x"}`, object{"b": "x"}, ""},
		{"One", "one", `{}`, nil, "has 0 fields, but exactly one"},
		{"One", "one", `{"a":1,"b":"x"}`, nil, "has 2 fields, but exactly one"},
		{"One", "one", `{"a":1,"b":null}`, nil, "has 2 fields, but exactly one"},
		{"One", "one", `{"a":null}`, nil, `variable "v": a cannot be null`},
		{"One", "one", `{"c":1}`, nil, `has a field "c"`},
		{"Day", "day", `"12"`, "12", ""},
		{"Day", "day", `12`, "12", ""},
		{"Day", "day", `null`, nil, ""},
		{"Day", "day", `"123"`, nil, `variable "v": must be a day`},
		{"Day", "day", `["12"]`, nil, `variable "v": must be a day`},
		{"[Day!]", "days", `["12","x"]`, nil, `variable "v": 1 must be a day`},
		{"In", "in", `{"must":1,"day":true}`, nil, `variable "v": day must be a day`},
		{"Any", "any", `{"x":[1,"2",null]}`, object{"x": list{json.Number("1"), "2", nil}}, ""},
		{"Any", "any", strings.Repeat("[", 8) + strings.Repeat("]", 8), list{list{list{list{list{list{list{list{}}}}}}}}, ""},
		{"Any", "any", strings.Repeat("[", 9) + strings.Repeat("]", 9), nil, "more than 8 levels"},
		{"Any", "any", strings.Repeat(`{"x":`, 9000) + "1" + strings.Repeat("}", 9000), nil, "more than 8 levels"},
		{"Int", "int", strings.Repeat("[", 9000) + strings.Repeat("]", 9000), nil, "more than 8 levels"},
	} {
		operation := operationOf(t, schema, fmt.Sprintf("query($v:%s){f(%s:$v)}", c.typ, c.argument))
		got, errs := coerceVariables(schema, testScalars(), operation, jsonValue(t, `{"v":`+c.given+`}`), setting.OrDefaults(Limits{}), false)
		name := fmt.Sprintf("%s of %.60s", c.typ, c.given)
		if c.rejected != "" {
			if len(errs) == 0 || !strings.Contains(errs[0].Message, c.rejected) || len(errs[0].Locations) != 1 || len(errs[0].Message) > 300 {
				t.Errorf("%s: %v %v, want %q", name, got, errs, c.rejected)
			}
			want := errcode.BadUserInput
			if strings.HasPrefix(c.rejected, "more than") {
				want = LimitCodes.ListDepth
			}
			if len(errs) > 0 && errs[0].Extensions["code"] != want {
				t.Errorf("%s: %v, want %s", name, errs[0].Extensions, want)
			}
			continue
		}
		if len(errs) > 0 || !reflect.DeepEqual(got["v"], c.want) {
			t.Errorf("%s is %#v %v, want %#v", name, got["v"], errs, c.want)
		}
	}
}

// Omitted variables get their defaults or remain omitted. An explicit null does not get the
// default. Undefined variables are ignored.
func TestOmittedVariables(t *testing.T) {
	schema := loadInputSchema(t)
	for _, c := range []struct{ query, given, want, rejected string }{
		{`query($a:Int){f(int:$a)}`, `{}`, `{}`, ""},
		{`query($a:Int){f(int:$a)}`, `{"b":[[[[[[[[[[1]]]]]]]]]],"A":2}`, `{}`, ""},
		{`query($a:Int=4){f(int:$a)}`, `{}`, `{"a":4}`, ""},
		{`query($a:Int=4){f(int:$a)}`, `{"a":null}`, `{"a":null}`, ""},
		{`query($a:Int=4){f(must:$a)}`, `{"a":null}`, ``, `variable "a" is null where Int! is required`},
		{`query($a:Int){f(must:$a)}`, `{}`, `{}`, ""},
		{`query($a:Int){f(must:$a)}`, `{"a":null}`, ``, `variable "a" is null where Int! is required`},
		{`query($a:Int){f(in:{must:1,defaulted:$a})}`, `{}`, `{}`, ""},
		{`query($a:Int){f(in:{must:1,defaulted:$a})}`, `{"a":null}`, ``, `variable "a" is null where Int! is required`},
		{`query($a:Int!){f(int:$a)}`, `{}`, ``, `variable "a": must be defined`},
		{`query($a:Int!=4){f(int:$a)}`, `{}`, `{"a":4}`, ""},
		{`query($a:Int!=4){f(int:$a)}`, `{"a":null}`, ``, `variable "a": cannot be null`},
		{`query($a:[Int]=4){f(ints:$a)}`, `{}`, `{"a":[4]}`, ""},
		{`query($a:ID=4){f(id:$a)}`, `{}`, `{"a":"4"}`, ""},
		{`query($a:Float=4){f(float:$a)}`, `{}`, `{"a":4}`, ""},
		{`query($a:Color=GREEN){f(color:$a)}`, `{}`, `{"a":"GREEN"}`, ""},
		{`query($a:In={must:1}){f(in:$a)}`, `{}`, `{"a":{"color":"RED","defaulted":5,"must":1}}`, ""},
		{`query($a:Boolean=true){f(int:1)@skip(if:$a)}`, `{"a":null}`, ``, `variable "a" is null where Boolean! is required`},
		{`query($a:Int,$b:Int){f(int:$a,must:3) g:f(int:$b)}`, `{"a":"1","b":"2"}`, ``, `variable "a"`},
	} {
		d := Document{Parsed: mustParse(t, c.query)}
		if errs := validate(schema, testScalars(), d.Parsed, true, false, d.nonNullUsesRule()); len(errs) > 0 {
			t.Fatalf("%s: %v", c.query, errs)
		}
		operation := d.Parsed.Operations[0]
		got, errs := coerceVariables(schema, testScalars(), operation, jsonValue(t, c.given), setting.OrDefaults(Limits{}), false, d.nonNullUses[operation]...)
		if c.rejected != "" {
			if len(errs) == 0 || !strings.Contains(errs[0].Message, c.rejected) {
				t.Errorf("%s with %s: %v %v, want %q", c.query, c.given, got, errs, c.rejected)
			}
			continue
		}
		if text, err := json.Marshal(got); err != nil || string(text) != c.want || len(errs) > 0 {
			t.Errorf("%s with %s: %s %v, want %s", c.query, c.given, text, errs, c.want)
		}
	}
}

// All errors are reported, up to MaxErrors, in a stable order.
func TestInvalidVariablesAreReportedTogether(t *testing.T) {
	schema := loadInputSchema(t)
	operation := operationOf(t, schema, `query($a:[Int],$b:In){f(ints:$a,in:$b)}`)
	_, errs := coerceVariables(schema, testScalars(), operation, jsonValue(t, `{"a":["1",2,"3"],"b":{"z":1,"y":1}}`), setting.OrDefaults(Limits{}), false)
	var messages []string
	for _, err := range errs {
		message, _, _ := strings.Cut(err.Message, ",")
		messages = append(messages, message)
	}
	want := []string{
		`variable "a": 0 is a string`, `variable "a": 2 is a string`, `variable "b": has a field "y"`,
		`variable "b": has a field "z"`, `variable "b": must must be defined`,
	}
	if !reflect.DeepEqual(messages, want) {
		t.Errorf("got %q, want %q", messages, want)
	}
	many := `{"a":[` + strings.Repeat(`"x",`, 20_000) + `1]}`
	if _, errs := coerceVariables(schema, testScalars(), operation, jsonValue(t, many), setting.OrDefaults(Limits{}), false); len(errs) != errcode.MaxErrors {
		t.Errorf("%d errors, want %d", len(errs), errcode.MaxErrors)
	}
}

// Validation of literals is as strict as the coercion of variables.
func TestLiteralsAreStrict(t *testing.T) {
	schema := loadInputSchema(t)
	for query, want := range map[string]string{
		`{f(int:"1")}`: "Int cannot represent", `{f(int:1.5)}`: "Int cannot represent", `{f(int:1.0)}`: "Int cannot represent",
		`{f(bool:1)}`: "Boolean cannot", `{f(bool:"true")}`: "Boolean cannot", `{f(string:1)}`: "String cannot", `{f(id:1.5)}`: "ID cannot",
		`{f(color:"RED")}`: "non-enum value", `{f(color:red)}`: "does not exist", `{f(in:{})}`: "was not provided", `{f(in:{must:null})}`: "Expected value",
		`{f(in:{must:1,more:1})}`: "not defined", `{f(one:{})}`: "exactly one key", `{f(one:{a:1,b:"x"})}`: "exactly one key", `{f(one:{a:null})}`: "non-null",
		`query($a:Int){f(one:{a:$a})}`: "must be non-nullable", `query($a:In){f(int:$a)}`: "used in position", `{f(int:99999999999999999999)}`: "32-bit",
		`{f(int:2147483648)}`: "32 bits", `{f(int:-2147483649)}`: "32 bits", `{f(ints:[1,2147483648])}`: "32 bits", `{f(grid:2147483648)}`: "32 bits",
		`{f(in:{must:1,nested:{must:2147483648}})}`: "32 bits", `query($a:Int=3000000000){f(int:$a)}`: "32 bits", `query($a:In={must:3000000000}){f(in:$a)}`: "32 bits",
		`{f(int:1)@skip(if:{})}`: "an object, expected a Boolean", `{f(int:3000000000)@skip(if:true)}`: "32 bits", `{...F} fragment F on Query{f(int:3000000000)}`: "32 bits",
		`{f(int:{})}`: "an object, expected an Int", `{f(id:{})}`: "an object, expected an ID", `{f(string:{})}`: "an object, expected a String", `{f(color:{})}`: "an object", `{f(float:1e400)}`: "Float cannot",
		`{f(day:"123")}`: "must be a day", `{f(day:123)}`: "must be a day", `{f(day:ABC)}`: "must be a day", `{f(string:A)}`: "String cannot", `{f(id:A)}`: "ID cannot", `{f(day:true)}`: "must be a day", `{f(day:["12"])}`: "must be a day", `{f(day:{})}`: "must be a day",
		`{f(day:{a:1})}`: "must be a day", `{f(days:["12","1"])}`: "must be a day", `{f(days:[["12"]])}`: "must be a day", `{f(days:[null])}`: "Expected value", `{f(in:{must:1,list:[{must:2,day:"x"}]})}`: "must be a day",
		`query($a:Day="x"){f(day:$a)}`: "must be a day", `query($a:[Day!]=["12",1]){f(days:$a)}`: "must be a day", `{f(id:` + strings.Repeat("1", 65) + `)}`: "ID cannot",
	} {
		if errs := validate(schema, testScalars(), mustParse(t, query), true, false); len(errs) == 0 || !strings.Contains(errs[0].Message, want) {
			t.Errorf("%s: %v, want %q", query, errs, want)
		}
		if errs := validate(schema, testScalars(), mustParse(t, query), true, true); len(errs) != 1 {
			t.Errorf("%s: %v, want one error", query, errs)
		}
	}
	for _, query := range []string{
		`{f(int:2147483647)}`, `{f(int:-2147483648)}`, `{f(id:99999999999999999999)}`, `{f(id:-1)}`, `{f(id:"")}`, `{f(day:"12")}`, `{f(day:AB)}`, `{f(day:12)}`, `{f(day:null)}`, `{f(days:"12")}`, `{f(days:["12"])}`,
		`{f(any:99999999999999999999)}`, `{f(any:{a:[1e400,A,{b:"x"}]})}`, `query($a:Day){f(day:$a,days:[])}`, `query($a:Day="12"){f(day:$a)}`,
		`{f(float:1)}`, `{f(id:1)}`, `{f(one:{a:1})}`, `{f(ints:1)}`, `{f(in:{must:1})}`, `query($a:Int!){f(one:{a:$a})}`} {
		if errs := validate(schema, testScalars(), mustParse(t, query), true, false); len(errs) > 0 {
			t.Errorf("%s: %v", query, errs)
		}
	}
}
