package server

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/99designs/gqlgen/graphql"

	"github.com/ordergraph/ordergraph/graph"
)

// A response that waits for its client holds only the memory that is counted for it, not the larger
// buffer of an earlier response.
func TestAnswersHoldWhatIsCounted(t *testing.T) {
	for _, length := range []int{10, maxUncountedBody - 100, 100 << 10} {
		for _, room := range []int{length, length + 1, length + length/8, 2 * length, 1 << 20} {
			text := `"` + strings.Repeat("a", length-2) + `"`
			data := append(make([]byte, 0, room), text...)
			body := newResponseBody(graph.Result{Response: &graphql.Response{Data: json.RawMessage(data)}})
			if got := string(body.head) + string(body.rest); got != `{"data":`+text+`}` || body.size() != len(got) {
				t.Errorf("data of %d bytes in a buffer of %d: the body has the size %d and begins with %.20s", length, room, body.size(), got)
			}
			if body.memoryBytes() != cap(body.rest) || cap(body.rest) > length+length/3+5<<10 {
				t.Errorf("data of %d bytes in a buffer of %d: the body uses %d bytes of memory, and memoryBytes returns %d", length, room, cap(body.rest), body.memoryBytes())
			}
		}
	}
}
