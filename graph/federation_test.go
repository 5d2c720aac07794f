package graph

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// Composition tools get the directives that they need, even without introspection. Clients cannot
// use these directives.
func TestService(t *testing.T) {
	for _, off := range []bool{false, true} {
		e := NewExecutor(Options{Store: storetest.SampleStore(t, storetest.Engines()[0].Client(t)), NoIntrospection: off})
		_, got := execute(t, e, Request{Query: `{ _service { sdl } }`})
		var data struct {
			Service struct{ SDL string } `json:"_service"`
		}
		if err := json.Unmarshal(got.Data, &data); err != nil || data.Service.SDL != (Subgraph{}.SDL()) {
			t.Errorf("introspection off %v: %v, %v, %.100s", off, err, got.Errors, data.Service.SDL)
		}
		for _, query := range []string{`{ _service @key(fields: "sdl") { sdl } }`, `query ($f: federation__FieldSet) { _service { sdl } }`, `{ _service @shareable { sdl } }`} {
			if _, got := execute(t, e, Request{Query: query}); string(got.Data) != "null" || len(got.Errors) == 0 || !strings.Contains(got.Errors[0].Message, "nknown") {
				t.Errorf("%s has the response %s, %v", query, got.Data, got.Errors)
			}
		}
	}
}
