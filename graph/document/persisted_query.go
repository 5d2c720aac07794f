package document

import (
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/ordergraph/ordergraph/graph/errcode"
)

// persistedQuery reads extensions.persistedQuery, by which Apollo's protocol of automatic persisted
// queries names a document (https://www.apollographql.com/docs/apollo-server/performance/apq):
// {"version": 1, "sha256Hash": "..."}. given reports whether it is there. urql adds a member of its
// own when it sends the text after a miss, so others are let through.
//
// Errors: BAD_USER_INPUT, which names the member that is wrong.
func persistedQuery(extensions map[string]any) (hash string, given bool, err *gqlerror.Error) {
	extension := extensions["persistedQuery"]
	if extension == nil {
		return "", false, nil
	}
	members, ok := extension.(map[string]any)
	if !ok {
		return "", false, errcode.New(nil, errcode.BadUserInput, `extensions.persistedQuery is no object: send {"version": 1, "sha256Hash": "..."}`)
	}
	if version, ok := number(members["version"]); !ok || version != 1 {
		return "", false, errcode.New(nil, errcode.BadUserInput, "extensions.persistedQuery.version is not 1, the only version that there is")
	}
	hash, ok = members["sha256Hash"].(string)
	if !ok || hash == "" {
		return "", false, errcode.New(nil, errcode.BadUserInput, "extensions.persistedQuery.sha256Hash is no text: send the SHA-256 of the document, as 64 hexadecimal digits")
	}
	return hash, true, nil
}
