package graph

import (
	"io"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

// answerSize holds the data of one answer within Limits.Answer. The cost bounds how many values there are, but not how long they are, nor
// the names that the client gives them: a hundred thousand names of 200 bytes are an answer of 20 MB, from a request of 20 kB.
type answerSize struct {
	// left is how many bytes there is room for; negative where there was too little.
	left int
}

// bound bounds what is written of a field of the root. Fields of the root are written one after another, by one goroutine.
func (s *answerSize) bound(field graphql.Marshaler) graphql.Marshaler {
	if field == graphql.Null || field == graphql.RequiredNull {
		return field // the generated code compares with these
	}
	return graphql.WriterFunc(func(w io.Writer) { field.MarshalGQL(&boundWriter{to: w, size: s}) })
}

// take takes room for so many bytes, and tells whether there was any; once there was not, there is none for what follows.
func (s *answerSize) take(bytes int) bool {
	if s.left >= 0 {
		s.left -= bytes
	}
	return s.left >= 0
}

func (s *answerSize) refused(operation *ast.OperationDefinition, limit int) *gqlerror.Error {
	if operation.Operation == ast.Mutation {
		return refusedAt(operation.Position, CodeAnswerTooLarge, "what the mutation asks for was done, but its answer is longer than %d bytes, which is the limit: do not send it again, and ask for less of what it has changed", limit)
	}
	return refusedAt(operation.Position, CodeAnswerTooLarge, "the answer is longer than %d bytes, which is the limit: ask for smaller pages, fewer fields or shorter aliases", limit)
}

// boundWriter drops what there is no room for.
type boundWriter struct {
	to   io.Writer
	size *answerSize
}

// Write writes b, or drops it; what drops it is no fault of the writer of fields, who would not hear of it.
func (w *boundWriter) Write(b []byte) (int, error) {
	if !w.size.take(len(b)) {
		return len(b), nil
	}
	return w.to.Write(b)
}

// WriteString is Write for a string. Most of an answer is written so, and without it each string would be copied to be written.
func (w *boundWriter) WriteString(s string) (int, error) {
	if !w.size.take(len(s)) {
		return len(s), nil
	}
	return io.WriteString(w.to, s)
}
