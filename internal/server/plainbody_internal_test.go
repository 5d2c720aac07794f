package server

import (
	"reflect"
	"testing"
)

// What readPlainBody reads, it reads as readAnyBody does.
func FuzzPlainBodies(f *testing.F) {
	for _, body := range []string{
		`{"query":"{ a }"}`, ` {"query" : "query A($a: ID!) {\n a(b: \"\\c\") }" , "operationName":"A","variables":{"a":[1,-2,null,true,false,"\t\/\b\f\r",{"b":{}},[]],"a":0}, "extensions":null} `,
		`{"query":null,"variables":null,"operationName":null,"extensions":{"persistedQuery":{"version":1,"sha256Hash":"a"}}}`,
		`{"query":"a","query":"b"}`, `{"query":"\u0061"}`, `{"query":"a",}`, `{"query":"a"}{}`, `{"query":"a","variables":[]}`, `{"query":"a","variables":{"a":01}}`,
		`{"query":"a","variables":{"a":1.0e2,"b":-}}`, `{"query":"a","variables":{"a":[1 2]}}`, `{"query":"a","id":"b"}`, "{\"query\":\"\x00\"}", `{"query":"a","variables":{"a":[,1]}}`,
		`{"query":"a","variables":{"":tru}}`, `{"query":"a\"}`, `{"query":"a","variables":{"a":1`, `{"query":"","variables":{}}`, `{,"query":"a"}`, `{"query":"\x"}`, "{\"query\":\"a\"}\x00",
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		plain, ok := readPlainBody(body)
		if !ok {
			return
		}
		whole, refused := readAnyBody(body)
		if refused != nil {
			t.Fatalf("%q is read, and refused: %s", body, refused.message)
		}
		if !reflect.DeepEqual(plain, whole) {
			t.Errorf("%q is read as %#v, and as %#v", body, plain, whole)
		}
	})
}

// What clients send is plain.
func TestUsualBodiesArePlain(t *testing.T) {
	for _, body := range []string{
		`{"query":"{ orders(first: 5) { nodes { id } } }"}`,
		`{"operationName":"A","variables":{"id":"cust_01","first":10,"statuses":["PENDING"],"none":null},"query":"query A($id: ID!) {\n  customer(id: $id) {\n    name\n  }\n}"}`,
		`{"operationName":null,"variables":{},"extensions":{"persistedQuery":{"version":1,"sha256Hash":"ab"},"clientLibrary":{"name":"@apollo/client","version":"4.0.0"}}}`,
	} {
		if r, ok := readPlainBody([]byte(body)); !ok {
			t.Errorf("%s is declined: %+v", body, r)
		}
	}
}
