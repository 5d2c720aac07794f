package server

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzBody compares decodeBody with encoding/json. Both must accept the same JSON, and read the
// same values.
func FuzzBody(f *testing.F) {
	for _, body := range []string{
		`{"query":"{ a }"}`, "\t{\"query\" : \"query A($a: ID!) {\\n a(b: \\\"\\\\c\\\") }\" ,\r\n\"operationName\":\"A\",\"extensions\":null} ",
		`{"query":null,"variables":null,"operationName":null,"extensions":{"persistedQuery":{"version":1,"sha256Hash":"a"}}}`,
		`{"query":"a","variables":{"a":[1,-2,null,true,false,"\t\/\b\f\r",{"b":{}},[]],"a":0}}`, `{"query":"a","variables":{"a":1.0e2,"b":-0.10,"c":123456789012345678901234567890}}`,
		`{"query":"a","variables":{"a":"\u00e9\ud83d\ude00","b":"\ud800","c":"\udc00\u0041"}}`, `{"\u0071uery":"a","id":5}`, `{"documentId":"a"}`, `{"doc_id":1,"id":"x"}`,
		`{"x":{"y":[1,"2",{}]},"query":"a"}`, `{"query":1}`, `{"query":"a","variables":[{"b":1}]}`, `{"query":"a","query":"b"}`, `{"query":""}`,
		`{"query":"a",}`, `{"query":"a"}{}`, `{"query":"a"} ,`, `{,"query":"a"}`, `{"query" "a"}`, `{"query":"a" "id":"b"}`, `{1:2}`, `{"a"}`, `{"a":}`, `{"a":]}`, `{]`,
		`{"query":"a","variables":{"a":01}}`, `{"query":"a","variables":{"b":-}}`, `{"query":"a","variables":{"a":[1 2]}}`, `{"query":"a","variables":{"a":[,1]}}`, `{"query":"a","variables":{"":tru}}`,
		`{"query":"a\"}`, `{"query":"a","variables":{"a":1`, `{"query":"\x"}`, "{\"query\":\"\x00\"}", "{\"query\":\"a\"}\x00", "{\"query\":\"\xff\"}", ``, ` `, `[`, `[]`, `null`, `1`, `"`, "\ufeff{}",
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		sent := bytes.Clone(body)
		got, refused := decodeBody(body)
		if !bytes.Equal(body, sent) {
			t.Errorf("%q became %q", sent, body)
		}
		var members map[string]any
		d := json.NewDecoder(bytes.NewReader(body))
		d.UseNumber()
		isObject := utf8.Valid(body) && json.Valid(body) && d.Decode(&members) == nil && members != nil
		if !isObject {
			if refused == nil || refused.status >= 500 {
				t.Errorf("%q is not a JSON object, but is decoded to %#v with refusal %+v", body, got, refused)
			}
			return
		}
		text := func(name string) string { s, _ := members[name].(string); return s }
		object := func(name string) map[string]any { o, _ := members[name].(map[string]any); return o }
		if refused != nil {
			for _, about := range []string{"UTF-8", "well-formed", "follows", "is a list", "no JSON object: send"} {
				if strings.Contains(refused.message, about) {
					t.Errorf("%q is refused: %s", body, refused.message)
				}
			}
			return
		}
		if got.Query != text("query") || got.OperationName != text("operationName") ||
			!reflect.DeepEqual(got.Variables, object("variables")) || !reflect.DeepEqual(got.Extensions, object("extensions")) {
			t.Errorf("%q is decoded to %#v", body, got)
		}
		if id := got.DocumentID; id != "" && id != text("documentId") && id != text("doc_id") && id != text("id") {
			t.Errorf("%q is decoded with the document ID %q", body, id)
		}
	})
}

// The refusal of a malformed body names its first error.
func TestBodyRefusals(t *testing.T) {
	deep := strings.Repeat(`{"a":`, maxJSONValues-2)
	for _, c := range []struct {
		name, body string
		status     int
		message    string
	}{
		{"invalid UTF-8", "{\"query\":\"\xff\"", 400, "the body is not valid UTF-8"},
		{"half of a character in UTF-8", "{\"query\":\"\xed\xa0\x80\"}", 400, "the body is not valid UTF-8"},
		{"too many values", `[` + strings.Repeat("0,", maxJSONValues), 413, "the body has more than 10000 JSON values: send fewer values per request"},
		{"a list", ` [{"query":"a"`, 400, "the body is a JSON array: send one JSON object with one operation per request"},
		{"empty", " \r\n\t", 400, "the body is not a JSON object: send an object with query and, if needed, variables"},
		{"a string", `"query"`, 400, "the body is not a JSON object: send an object with query and, if needed, variables"},
		{"truncated", `{"query":"a"`, 400, "the body is not valid JSON: it is incomplete or malformed"},
		{"truncated behind a wrong type", `{"query":1,"variables":`, 400, "the body is not valid JSON: it is incomplete or malformed"},
		{"malformed member that is skipped", `{"query":"a","x":[1,]}`, 400, "the body is not valid JSON: it is incomplete or malformed"},
		{"malformed second query", `{"query":"a","query":"\x"}`, 400, "the body is not valid JSON: it is incomplete or malformed"},
		{"deep and truncated", deep, 400, "the body is not valid JSON: it is incomplete or malformed"},
		{"two queries", `{"query":null,"qu\u0065ry":1,"id":}`, 400, "query occurs more than once"},
		{"two documents", `{"doc_id":"a","doc_id":"a"}`, 400, "doc_id occurs more than once"},
		{"trailing object", `{"query":1}{}`, 400, "the body has more text after the JSON object: send only one JSON object"},
		{"trailing NUL", "{\"query\":\"a\"}\x00", 400, "the body has more text after the JSON object: send only one JSON object"},
		{"query of another type", `{"variables":1,"query":["a"]}`, 400, "query is not a string"},
		{"operationName of another type", `{"query":"a","operationName":{}}`, 400, "operationName is not a string"},
		{"documentId of another type", `{"query":"a","documentId":1}`, 400, "documentId is not a string"},
		{"variables of another type", `{"extensions":1,"query":"a","variables":"{}"}`, 400, "variables is not a JSON object"},
		{"extensions of another type", `{"query":"a","extensions":[]}`, 400, "extensions is not a JSON object"},
		{"no query", `{"query":"","doc_id":1,"id":null,"extensions":{"persistedQuery":null}}`, 400, "the request has no query"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, refused := decodeBody([]byte(c.body))
			if refused == nil {
				t.Fatalf("got the request %#v, want a refusal", got)
			}
			if refused.status != c.status || refused.message != c.message {
				t.Errorf("the refusal is %d %q, want %d %q", refused.status, refused.message, c.status, c.message)
			}
		})
	}
}
