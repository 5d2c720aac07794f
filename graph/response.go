package graph

import (
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/ordergraph/ordergraph/graph/document"
	"github.com/ordergraph/ordergraph/graph/errcode"
)

// boundedResponse is the data of one response, at most Limits.Answer bytes. The cost limits the
// number of values, but not their length or the length of aliases. A request of 20 kB could
// otherwise produce 20 MB: a hundred thousand aliases of 200 bytes.
//
// A response cannot stop at the limit. A null in an outer field may still remove the excess, and
// later errors must be reported. Data beyond the limit is therefore dropped but counted. Offsets
// refer to the complete response.
type boundedResponse struct {
	out []byte
	// limit is the maximum length of out. dropped is the number of bytes that were dropped.
	limit, dropped int
}

// responseSlack is the number of bytes beyond the limit that are written before the excess is
// dropped. It saves a check after each value.
const responseSlack = 64 << 10

// newBoundedResponse returns an empty response of at most limit bytes. latest is the size of the
// latest response, which determines the initial capacity.
func newBoundedResponse(latest, limit int) boundedResponse {
	return boundedResponse{out: make([]byte, 0, min(latest+latest/8+1<<10, limit)), limit: limit}
}

// offset returns the length of the response so far.
func (r *boundedResponse) offset() int { return r.dropped + len(r.out) }

// dropExcess drops the bytes beyond the limit.
func (r *boundedResponse) dropExcess() {
	if len(r.out) > r.limit+responseSlack {
		r.dropped += len(r.out) - r.limit
		r.out = r.out[:r.limit]
	}
}

// truncate shortens the response to an offset. Dropped bytes after the offset no longer count.
func (r *boundedResponse) truncate(offset int) {
	if r.dropped == 0 {
		r.out = r.out[:offset]
		return
	}
	r.out = r.out[:min(offset, r.limit)]
	r.dropped = offset - len(r.out)
}

// Write appends b. It never fails.
func (r *boundedResponse) Write(b []byte) (int, error) {
	r.out = append(r.out, b...)
	r.dropExcess()
	return len(b), nil
}

// newResponseTooLargeError returns the error for a response that exceeds the limit.
func newResponseTooLargeError(operation *ast.OperationDefinition, limit int) *gqlerror.Error {
	if operation.Operation == ast.Mutation {
		return errcode.New(operation.Position, document.Codes.Answer, "the mutation was executed, but its response exceeds the limit of %d bytes: do not send it again; read its result with a query that selects less", limit)
	}
	return errcode.New(operation.Position, document.Codes.Answer, "the response exceeds the limit of %d bytes: request smaller pages, fewer fields or shorter aliases", limit)
}
