package document

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"pgregory.net/rapid"
)

const cachedQuery = `{ customer(id: "cust_01") { name } }`

// cachedSchema returns a schema for documents that are parsed but not executed.
func cachedSchema() *ast.Schema {
	return gqlparser.MustLoadSchema(&ast.Source{Input: `type Query { customer(id: ID!): Customer } type Customer { id: ID! name: String }`})
}

// A cache never exceeds its bounds, in any sequence of additions and reads. It returns only
// documents that were added. The document that was added last is cached unless it is larger than
// the cache.
func TestCacheBounds(t *testing.T) {
	d := NewStore(cachedSchema(), Options{})
	var texts []*Document
	for i := range 12 {
		texts = append(texts, d.Parse(fmt.Sprintf("{ customer(id: %d) { %s } }", i, strings.Repeat("id ", 1+i*i)), false))
	}
	invalid := d.Parse("{ nonsense }", false)
	rapid.Check(t, func(t *rapid.T) {
		most, bytes := rapid.IntRange(1, 6).Draw(t, "documents"), rapid.IntRange(1000, 120_000).Draw(t, "bytes")
		c := newCache(most, bytes)
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				i := rapid.IntRange(0, len(texts)-1).Draw(t, "document")
				c.add(documentHash{byte(i)}, texts[i])
				if cached := c.get(documentHash{byte(i)}); cached != texts[i] && texts[i].Bytes() <= bytes {
					t.Fatalf("the cache lost document %d of %d bytes, which was just added", i, texts[i].Bytes())
				}
			},
			"get": func(t *rapid.T) {
				i := rapid.IntRange(0, len(texts)-1).Draw(t, "document")
				if cached := c.get(documentHash{byte(i)}); cached != nil && cached != texts[i] {
					t.Fatalf("the cache returns %q for document %d", cached.Text, i)
				}
			},
			"add an invalid one": func(t *rapid.T) {
				c.add(documentHash{0xff}, invalid)
				if c.get(documentHash{0xff}) != nil {
					t.Fatal("the cache stores a document with errors")
				}
			},
			"": func(t *rapid.T) {
				total := 0
				for _, cached := range c.documents.Values() {
					total += cached.document.Bytes()
				}
				if c.documents.Len() > most || total > bytes || total != c.bytes {
					t.Fatalf("the cache has %d documents, want at most %d, with %d bytes, counted as %d, want at most %d", c.documents.Len(), most, total, c.bytes, bytes)
				}
			},
		})
	})
}

// A cached document does not keep the string alive that its text was sliced from.
func TestDocumentsCopyTheirText(t *testing.T) {
	d := NewStore(cachedSchema(), Options{})
	url := cachedQuery + strings.Repeat("x", 100_000)
	before := heapBytes()
	for i := range 100 {
		text := fmt.Sprint(url, i)[:len(cachedQuery)]
		d.registered.add(documentHash{byte(i)}, d.Parse(text, false))
	}
	if grown := heapBytes() - before; grown > 1<<20 {
		t.Errorf("100 small documents use %d bytes of memory, want at most 1 MiB", grown)
	}
	if d.registered.documents.Len() != 100 {
		t.Errorf("the cache has %d documents, want 100", d.registered.documents.Len())
	}
}

// heapBytes returns the number of heap bytes in use.
func heapBytes() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// A store that executes only trusted documents caches no other documents.
func TestTrustedOnlyCachesNothing(t *testing.T) {
	d := NewStore(cachedSchema(), Options{TrustedOnly: true})
	sum := sha256.Sum256([]byte(cachedQuery))
	hash := hex.EncodeToString(sum[:])
	for _, extensions := range []map[string]any{nil, {"persistedQuery": map[string]any{"version": 1.0, "sha256Hash": hash}}} {
		if found, _, err := d.Find(t.Context(), "", cachedQuery, extensions, false); found != nil || err == nil {
			t.Errorf("%v finds %v", extensions, found)
		}
	}
	if n := d.registered.documents.Len() + d.recent.documents.Len(); n != 0 {
		t.Errorf("the caches store %d rejected documents", n)
	}
}
