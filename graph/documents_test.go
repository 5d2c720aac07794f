package graph

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/vektah/gqlparser/v2/ast"
	"pgregory.net/rapid"

	"github.com/ordergraph/ordergraph/graph/document"
	"github.com/ordergraph/ordergraph/graph/errcode"
	"github.com/ordergraph/ordergraph/graph/paging"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// executor returns an executor of the sample dataset.
func executor(t *testing.T, opts Options) *Executor {
	t.Helper()
	opts.Store = storetest.SampleStore(t, storetest.Engines()[0].Client(t))
	opts.Cursors = paging.NewCursorSigner([]byte("a key for tests"))
	opts.Report = func(_ context.Context, err error) { t.Error(err) }
	return NewExecutor(opts)
}

// answer is the response that a client sees: the data, or the code and message of the first error.
type answer struct{ data, code, message string }

func executeRequest(e *Executor, r Request) answer {
	result := e.Execute(context.Background(), r)
	if len(result.Errors) == 0 {
		return answer{data: string(result.Data)}
	}
	code, _ := result.Errors[0].Extensions["code"].(string)
	for _, at := range result.Errors[0].Locations {
		if at.Line < 1 || at.Column < 1 {
			return answer{message: fmt.Sprintf("%s has the location %+v", code, at)}
		}
	}
	return answer{string(result.Data), code, result.Errors[0].Message}
}

// hashOf returns the hash of a text in hexadecimal digits.
func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// persistedQueryRequest returns a request of Apollo's protocol with a hash and an optional text.
func persistedQueryRequest(hash, text string) Request {
	return Request{Query: text, Extensions: map[string]any{"persistedQuery": map[string]any{"version": json.Number("1"), "sha256Hash": hash}}}
}

const aliceQuery = `{ customer(id: "cust_01") { name } }`

var alice = answer{data: `{"customer":{"name":"Alice Chen"}}`}

func (a answer) check(t *testing.T, name string, want answer) {
	t.Helper()
	if a != want {
		t.Errorf("%s: got %+v, want %+v", name, a, want)
	}
}

// refused fails the test unless the response has no data, this code, and a message that contains
// the given text.
func (a answer) refused(t *testing.T, name, code, part string) {
	t.Helper()
	if a.data != "" || a.code != code || !strings.Contains(a.message, part) {
		t.Errorf("%s: got %+v, want %s with %q", name, a, code, part)
	}
}

func TestPersistedQueries(t *testing.T) {
	e := executor(t, Options{})
	hash := hashOf(aliceQuery)
	miss := answer{code: errcode.PersistedQueryNotFound, message: "PersistedQueryNotFound"}

	executeRequest(e, persistedQueryRequest(hash, "")).check(t, "a hash that is not known", miss)
	executeRequest(e, Request{Query: aliceQuery}).check(t, "the text alone", alice)
	executeRequest(e, persistedQueryRequest(hash, "")).check(t, "the hash of a text that was not registered", miss)
	executeRequest(e, persistedQueryRequest(hash, aliceQuery)).check(t, "hash and text", alice)
	executeRequest(e, persistedQueryRequest(hash, "")).check(t, "the hash", alice)
	executeRequest(e, persistedQueryRequest(strings.ToUpper(hash), "")).check(t, "the hash in upper case", alice)
	executeRequest(e, persistedQueryRequest(hash, aliceQuery+" ")).refused(t, "a known hash with another text", errcode.PersistedQueryMismatch, "not the SHA-256 of the text")

	other := `{ customer(id: "cust_02") { name } }`
	executeRequest(e, persistedQueryRequest(hashOf(other), aliceQuery)).refused(t, "an unknown hash with another text", errcode.PersistedQueryMismatch, "not the SHA-256 of the text")
	executeRequest(e, persistedQueryRequest(hashOf(other), "")).check(t, "the hash of that", miss)

	for text, says := range map[string]string{`{ nonsense }`: "Cannot query field", `{ customer(`: "Expected Name", "#": "no operation"} {
		executeRequest(e, persistedQueryRequest(hashOf(text), text)).refused(t, text, errcode.BadUserInput, says)
		executeRequest(e, persistedQueryRequest(hashOf(text), "")).check(t, "the hash of "+text, miss)
	}
	executeRequest(e, Request{}).refused(t, "nothing", errcode.BadUserInput, "no document")
}

// Unknown members of the extension are ignored: urql sends miss: true with the text. All other
// members must follow the protocol.
func TestPersistedQueryExtension(t *testing.T) {
	e := executor(t, Options{})
	hash := hashOf(aliceQuery)
	for text, says := range map[string]string{
		`{"version": 1, "sha256Hash": "` + hash + `", "miss": true}`: "",
		`{"version": 1.0, "sha256Hash": "` + hash + `"}`:             "",
		`null`: "",
		`"x"`:  "must be an object",
		`[1]`:  "must be an object",
		`{}`:   "version",
		`{"version": 2, "sha256Hash": "` + hash + `"}`:     "version",
		`{"version": "1", "sha256Hash": "` + hash + `"}`:   "version",
		`{"version": true, "sha256Hash": "` + hash + `"}`:  "version",
		`{"version": 1e999, "sha256Hash": "` + hash + `"}`: "version",
		`{"version": 1}`:                                                  "sha256Hash must be a string",
		`{"version": 1, "sha256Hash": 1}`:                                 "sha256Hash must be a string",
		`{"version": 1, "sha256Hash": ""}`:                                "sha256Hash must be a string",
		`{"version": 1, "sha256Hash": "` + hash[1:] + `"}`:                "64 hexadecimal digits",
		`{"version": 1, "sha256Hash": "` + hash + `0"}`:                   "64 hexadecimal digits",
		`{"version": 1, "sha256Hash": "` + strings.Repeat("g", 64) + `"}`: "64 hexadecimal digits",
		`{"version": 1, "sha256Hash": "sha256:` + hash + `"}`:             "64 hexadecimal digits",
	} {
		d := json.NewDecoder(strings.NewReader(`{"persistedQuery": ` + text + `}`))
		d.UseNumber()
		r := Request{Query: aliceQuery}
		if err := d.Decode(&r.Extensions); err != nil {
			t.Fatal(err)
		}
		if says == "" {
			executeRequest(e, r).check(t, text, alice)
		} else {
			executeRequest(e, r).refused(t, text, errcode.BadUserInput, says)
		}
	}
	// Numbers of callers that decode JSON without UseNumber.
	for _, version := range []any{1, 1.0} {
		r := persistedQueryRequest(hash, aliceQuery)
		r.Extensions["persistedQuery"].(map[string]any)["version"] = version
		executeRequest(e, r).check(t, fmt.Sprintf("%T", version), alice)
	}
}

var manifest = []document.TrustedDocument{
	{ID: "alice", Name: "Alice", Text: `query Alice { customer(id: "cust_01") { name } }`},
	{ID: hashOf(`query Bob($id: ID!) { customer(id: $id) { name } }`), Name: "Bob", Text: `query Bob($id: ID!) { customer(id: $id) { name } }`},
	{ID: "wrong", Text: "query Wrong {\n  nonsense\n}"},
	{ID: "broken", Name: "Broken", Text: "query Broken {"},
	{ID: "confirm", Text: `mutation Confirm { confirmOrder(input: {orderId: "x"}) { order { id } } }`},
	{ID: "large", Text: `query Large($n: Int) { orders(first: $n) { nodes { customer { orders(first: $n) { nodes { items(first: $n) { nodes { product { orderItems(first: $n) { nodes { quantity } } } } } } } } } } }`},
}

func TestTrustedDocuments(t *testing.T) {
	for _, only := range []bool{false, true} {
		t.Run(fmt.Sprintf("only %v", only), func(t *testing.T) {
			unfit := map[string]string{}
			e := executor(t, Options{Documents: manifest, TrustedOnly: only, OnInvalidDocument: func(d document.TrustedDocument, err document.Error) { unfit[d.ID+" "+d.Name] = err.Error() }})
			if want := []string{"broken Broken", "wrong Wrong"}; !slices.Equal(slices.Sorted(maps.Keys(unfit)), want) || !strings.HasPrefix(unfit["wrong Wrong"], "2:3: Cannot query") {
				t.Errorf("unfit are %q", unfit)
			}
			text := manifest[0].Text
			for name, r := range map[string]Request{
				"documentId":                     {DocumentID: "alice"},
				"documentId of its hash":         {DocumentID: "sha256:" + hashOf(text)},
				"documentId and operationName":   {DocumentID: "alice", OperationName: "Alice"},
				"an id as Apollo's hash":         persistedQueryRequest("alice", ""),
				"Apollo's hash":                  persistedQueryRequest(hashOf(text), ""),
				"Apollo's hash with the text":    persistedQueryRequest(hashOf(text), text),
				"an id with the text":            persistedQueryRequest("alice", text),
				"documentId with variables":      {DocumentID: manifest[1].ID, Variables: map[string]any{"id": "cust_01"}},
				"Apollo's id, by a GET":          {Extensions: persistedQueryRequest("alice", "").Extensions, ReadOnly: true},
				"documentId and null extensions": {DocumentID: "alice", Extensions: map[string]any{"persistedQuery": nil}},
			} {
				executeRequest(e, r).check(t, name, alice)
			}
			executeRequest(e, Request{DocumentID: "nothing"}).refused(t, "an unknown id", errcode.UntrustedDocument, "no trusted document")
			executeRequest(e, Request{DocumentID: "alice", Query: text}).refused(t, "id and text", errcode.BadUserInput, "send only one of them")
			executeRequest(e, Request{DocumentID: "alice", Extensions: persistedQueryRequest("alice", "").Extensions}).refused(t, "two names", errcode.BadUserInput, "send only one of them")
			executeRequest(e, persistedQueryRequest("alice", text+" ")).refused(t, "an id with another text", errcode.PersistedQueryMismatch, "not the SHA-256 of the text")
			executeRequest(e, Request{DocumentID: "wrong"}).refused(t, "a document that does not fit", errcode.BadUserInput, "Cannot query field")
			executeRequest(e, Request{DocumentID: "broken"}).refused(t, "a malformed document", errcode.BadUserInput, "")
			executeRequest(e, Request{DocumentID: manifest[1].ID}).refused(t, "no variables", errcode.BadUserInput, "id")
			executeRequest(e, Request{DocumentID: "confirm", ReadOnly: true}).refused(t, "a mutation by a GET", errcode.MethodNotAllowed, "POST")
			few, many := map[string]any{"n": json.Number("1")}, map[string]any{"n": json.Number("100")}
			if got := executeRequest(e, Request{DocumentID: "large", Variables: few}); got.code != "" {
				t.Errorf("small pages: %+v", got)
			}
			executeRequest(e, Request{DocumentID: "large", Variables: many}).refused(t, "large pages", document.LimitCodes.Cost, "")
		})
	}
}

// With TrustedOnly, no text is executed, not even the text of a trusted document. A client that
// sends texts would otherwise fail only when its text changes. Nothing is registered, and no error
// makes a client send its text.
func TestTrustedOnly(t *testing.T) {
	e := executor(t, Options{Documents: manifest, TrustedOnly: true})
	for name, r := range map[string]Request{
		"a text":                           {Query: aliceQuery},
		"a text of the manifest":           {Query: manifest[0].Text},
		"introspection":                    {Query: `{ __schema { queryType { name } } }`},
		"a malformed text":                 {Query: `{`},
		"an unknown hash":                  persistedQueryRequest(hashOf(aliceQuery), ""),
		"an unknown hash with its text":    persistedQueryRequest(hashOf(aliceQuery), aliceQuery),
		"an unknown hash with another":     persistedQueryRequest(hashOf(aliceQuery), manifest[0].Text),
		"a malformed hash":                 persistedQueryRequest("x", ""),
		"nothing":                          {},
		"an unknown hash, after its texts": persistedQueryRequest(hashOf(aliceQuery), ""),
	} {
		executeRequest(e, r).refused(t, name, errcode.UntrustedDocument, "only trusted documents")
	}
}

// Without TrustedOnly, texts and registered documents work with and without a manifest.
func TestTrustedBesideOthers(t *testing.T) {
	e := executor(t, Options{Documents: manifest})
	executeRequest(e, Request{Query: aliceQuery}).check(t, "a text", alice)
	executeRequest(e, Request{Query: manifest[0].Text}).check(t, "a text of the manifest", alice)
	executeRequest(e, persistedQueryRequest(hashOf(aliceQuery), aliceQuery)).check(t, "registering", alice)
	executeRequest(e, persistedQueryRequest(hashOf(aliceQuery), "")).check(t, "registered", alice)
	executeRequest(executor(t, Options{}), Request{DocumentID: "alice"}).refused(t, "no manifest", errcode.UntrustedDocument, "no trusted document")
}

// For any sequence of requests, a request by hash returns the same response as its text, or "not
// found". A registered document is found until newer documents have evicted it. An invalid document
// is never found.
func TestAnySequenceOfPersistedQueries(t *testing.T) {
	e := executor(t, Options{Documents: manifest[:1]})
	const most = 4
	var texts []string
	want := map[string]answer{}
	for i := range 6 {
		texts = append(texts, fmt.Sprintf(`{ customer(id: "cust_0%d") { name id } }`, i), fmt.Sprintf(`{ nonsense%d }`, i))
	}
	texts = append(texts, manifest[0].Text, `{`, `{ a: __typename } # é`, strings.Repeat("{a:", 3000))
	for _, text := range texts {
		want[text] = executeRequest(e, Request{Query: text})
	}
	invalid := func(text string) bool { return want[text].data == "" }
	miss := answer{code: errcode.PersistedQueryNotFound, message: "PersistedQueryNotFound"}

	rapid.Check(t, func(t *rapid.T) {
		e.documents = document.NewStore(e.schema.Schema(), document.Options{Trusted: manifest[:1], CacheSize: most})
		var registered []string // in the order of their last use
		use := func(text string) {
			if invalid(text) || text == manifest[0].Text {
				return
			}
			if i := slices.Index(registered, text); i >= 0 {
				registered = slices.Delete(registered, i, i+1)
			}
			registered = append(registered, text)
			registered = registered[max(0, len(registered)-most):]
		}
		check := func(t *rapid.T, name string, got, want answer) {
			if got != want {
				t.Fatalf("%s: got %+v, want %+v", name, got, want)
			}
		}
		text := rapid.SampledFrom(texts)
		t.Repeat(map[string]func(*rapid.T){
			"hash": func(t *rapid.T) {
				text := text.Draw(t, "text")
				got := executeRequest(e, persistedQueryRequest(hashOf(text), ""))
				if slices.Contains(registered, text) || text == manifest[0].Text {
					check(t, "a registered hash", got, want[text])
					use(text)
				} else {
					check(t, "an unknown hash", got, miss)
				}
			},
			"hash and text": func(t *rapid.T) {
				text := text.Draw(t, "text")
				check(t, text, executeRequest(e, persistedQueryRequest(hashOf(text), text)), want[text])
				use(text)
			},
			"wrong hash": func(t *rapid.T) {
				one, other := text.Draw(t, "one"), text.Draw(t, "other")
				if one != other {
					if got := executeRequest(e, persistedQueryRequest(hashOf(one), other)); got.code != errcode.PersistedQueryMismatch {
						t.Fatalf("the hash of %s with the query %s returns %+v, want PERSISTED_QUERY_MISMATCH", one, other, got)
					}
				}
			},
			"text": func(t *rapid.T) {
				text := text.Draw(t, "text")
				if slices.Contains(registered, text) {
					use(text)
				}
				check(t, text, executeRequest(e, Request{Query: text}), want[text])
			},
			"flood of texts": func(t *rapid.T) {
				for i := range 3 * most {
					executeRequest(e, Request{Query: fmt.Sprintf("{ a%d: __typename }", i)})
				}
			},
		})
	})
}

// Clients send the same documents concurrently, first as texts and then as hashes, and execute them
// together. The race detector reports writes to shared documents. The test also compares the
// documents before and after.
func TestDocumentsAreSharedByRequests(t *testing.T) {
	e := executor(t, Options{Documents: manifest[:2]})
	variables := map[string]any{"id": "cust_01", "n": json.Number("2"), "on": true}
	texts := []string{
		aliceQuery,
		`query Q($id: ID!, $n: Int = 3, $on: Boolean!) { customer(id: $id) { ...C orders(first: $n) { nodes { id items { nodes { product { name @include(if: $on) } } } } } } } fragment C on Customer { name ... @skip(if: $on) { email } }`,
		`query Q($s: [OrderStatus!] = [PENDING]) { orders(statuses: $s, placed: {from: "2020-01-01T00:00:00Z"}) { edges { cursor node { id status } } pageInfo { hasNextPage } } }`,
		`query Q { a: customer(id: "cust_01") { name } b: customer(id: "cust_01") { name id } __schema { queryType { name } } }`,
		`mutation M($order: ID! = "x") { confirmOrder(input: {orderId: $order}) { order { id } userErrors { message } } }`,
		`{ nonsense }`,
	}
	want := make([]answer, len(texts))
	dumps := make([]string, len(texts))
	for i, text := range texts {
		want[i] = executeRequest(e, Request{Query: text, Variables: variables})
		if d, _, err := e.documents.Find(t.Context(), "", text, nil, false); err == nil && len(d.Errors(false)) == 0 {
			dumps[i] = ast.Dump(d.Parsed)
		}
		if (dumps[i] == "") != (text == `{ nonsense }`) {
			t.Fatalf("%s: %+v", text, want[i])
		}
	}
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			for round := range 6 {
				for i, text := range texts {
					r := persistedQueryRequest(hashOf(text), text)
					if (g+round)%2 == 0 {
						r = Request{Query: text}
					}
					r.Variables = variables
					if got := executeRequest(e, r); got != want[i] {
						t.Errorf("%s: got %+v, want %+v", text, got, want[i])
					}
				}
				executeRequest(e, Request{DocumentID: manifest[1].ID, Variables: variables}).check(t, "a trusted document", alice)
			}
		})
	}
	all.Wait()
	for i, text := range texts {
		if d, _, err := e.documents.Find(t.Context(), "", "", persistedQueryRequest(hashOf(text), "").Extensions, false); err == nil && ast.Dump(d.Parsed) != dumps[i] {
			t.Errorf("%s: executing the operation changed its cached document", text)
		}
	}
}
