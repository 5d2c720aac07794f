package graph

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/ordergraph/ordergraph/graph/document"
	"github.com/ordergraph/ordergraph/graph/errcode"
)

// errorFilter limits the errors of one execution. Without a limit, a short request could cause a
// long response, because the arguments of one field can cause many errors.
type errorFilter struct {
	present func(context.Context, error) *gqlerror.Error
	limit   int

	mu sync.Mutex // gqlgen resolves introspection concurrently
	// kept and omitted are the numbers of errors in the response and of omitted errors.
	kept, omitted int
	// unauthenticated is true if the response contains the error UNAUTHENTICATED. Further ones are
	// dropped, because one token corrects all of them.
	unauthenticated bool
}

// add converts an error for the response. If the response must not contain the error, add returns
// nil. The function present has then logged its cause nevertheless.
func (f *errorFilter) add(ctx context.Context, err error) *gqlerror.Error {
	shown := f.present(ctx, err)
	f.mu.Lock()
	defer f.mu.Unlock()
	if shown.Extensions["code"] == errcode.Unauthenticated {
		if f.unauthenticated {
			return nil
		}
		f.unauthenticated = true
	}
	if f.kept == f.limit {
		f.omitted++
		return nil
	}
	f.kept++
	return shown
}

// full reports whether add omits all further errors.
func (f *errorFilter) full() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.kept == f.limit
}

// closing returns the error that counts the omitted errors of a response. If there are none,
// it returns nil.
func (f *errorFilter) closing() gqlerror.List {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.omitted == 0 {
		return nil
	}
	return gqlerror.List{errcode.New(nil, document.LimitCodes.Errors, "%d further errors are omitted, because a response contains at most %d: correct the errors above first", f.omitted, f.limit)}
}

// encodedLength returns the length of v as JSON.
func encodedLength(v any) int {
	text, _ := json.Marshal(v) // the server encodes the same value later, and reports an error
	return len(text)
}
