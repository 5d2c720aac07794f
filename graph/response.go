package graph

import (
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/ordergraph/ordergraph/graph/document"
	"github.com/ordergraph/ordergraph/graph/errcode"
)

// boundedResponse holds the data of one response, within Limits.Answer. The cost limits how many
// values there are, but not how long they are, nor the names that the client gives them: a hundred
// thousand names of 200 bytes are a response of 20 MB, from a request of 20 kB.
//
// A response that is too long cannot simply end: a null further up may still remove what made it
// too long, and the errors behind it have to be reported. So what does not fit is dropped but still
// measured, and offsets are those in the whole response.
type boundedResponse struct {
	out []byte
	// most is the number of bytes of out that are kept; dropped is the length of what followed.
	most, dropped int
}

// responseSlack is how much is written before what does not fit is dropped, so that not every value
// has to be checked.
const responseSlack = 64 << 10

// newBoundedResponse returns an empty response of at most limit bytes, with room for as much as the
// latest one took.
func newBoundedResponse(latest, limit int) boundedResponse {
	return boundedResponse{out: make([]byte, 0, min(latest+latest/8+1<<10, limit)), most: limit}
}

// offset returns the length of the response so far.
func (r *boundedResponse) offset() int { return r.dropped + len(r.out) }

// bound drops what does not fit.
func (r *boundedResponse) bound() {
	if len(r.out) > r.most+responseSlack {
		r.dropped += len(r.out) - r.most
		r.out = r.out[:r.most]
	}
}

// truncate goes back to an offset. What was dropped behind it is not missing.
func (r *boundedResponse) truncate(offset int) {
	if r.dropped == 0 {
		r.out = r.out[:offset]
		return
	}
	r.out = r.out[:min(offset, r.most)]
	r.dropped = offset - len(r.out)
}

// Write appends b. It never fails.
func (r *boundedResponse) Write(b []byte) (int, error) {
	r.out = append(r.out, b...)
	r.bound()
	return len(b), nil
}

// tooLong returns the error of a response that is longer than the limit.
func tooLong(operation *ast.OperationDefinition, limit int) *gqlerror.Error {
	if operation.Operation == ast.Mutation {
		return errcode.New(operation.Position, document.Codes.Answer, "what the mutation asks for was done, but its answer is longer than %d bytes, which is the limit: do not send it again, and ask for less of what it has changed", limit)
	}
	return errcode.New(operation.Position, document.Codes.Answer, "the answer is longer than %d bytes, which is the limit: ask for smaller pages, fewer fields or shorter aliases", limit)
}
