package graph

import (
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/ordergraph/ordergraph/graph/document"
	"github.com/ordergraph/ordergraph/graph/errcode"
)

// boundedResponse is the data of one response, at most Limits.Answer bytes. This limit is
// necessary, because long values and aliases do not increase the cost of an operation.
type boundedResponse struct {
	out []byte
	// limit is the maximum length of out. dropped counts the bytes that were not stored, and removed
	// those that truncate has removed.
	limit, dropped, removed int
}

// responseSlack is the number of bytes by which a response may exceed its limit before dropExcess
// drops the excess.
const responseSlack = 64 << 10

// newBoundedResponse returns an empty response of at most limit bytes. latest is the size of the
// operation's previous response. The initial capacity is slightly larger than latest.
func newBoundedResponse(latest, limit int) boundedResponse {
	return boundedResponse{out: make([]byte, 0, min(latest+latest/8+1<<10, limit)), limit: limit}
}

// offset returns the number of bytes written so far, including dropped bytes.
func (r *boundedResponse) offset() int { return r.dropped + len(r.out) }

// dropExcess drops the bytes beyond the limit, if there are more than responseSlack of them. The
// execution continues nevertheless, because a later null can make the response shorter again.
func (r *boundedResponse) dropExcess() {
	if len(r.out) > r.limit+responseSlack {
		r.dropped += len(r.out) - r.limit
		r.out = r.out[:r.limit]
	}
}

// truncate shortens the response to an offset and stops counting dropped bytes after it.
func (r *boundedResponse) truncate(offset int) {
	r.removed += r.offset() - offset
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

func newResponseTooLargeError(operation *ast.OperationDefinition, limit int) *gqlerror.Error {
	if operation.Operation == ast.Mutation {
		return errcode.New(operation.Position, document.LimitCodes.Answer, "the mutation was executed, but its response exceeds the limit of %d bytes: do not repeat the mutation, but read its result with a query that selects fewer fields", limit)
	}
	return errcode.New(operation.Position, document.LimitCodes.Answer, "the response, including its errors, exceeds the limit of %d bytes: request smaller pages, fewer fields or shorter aliases", limit)
}
