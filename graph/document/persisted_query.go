package document

import (
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/ordergraph/ordergraph/graph/errcode"
)

// persistedQueryHash reads the hash of a document from extensions.persistedQuery
// (https://www.apollographql.com/docs/apollo-server/performance/apq). If the extension is
// malformed, it returns BAD_USER_INPUT.
func persistedQueryHash(extensions map[string]any) (hash string, present bool, err *gqlerror.Error) {
	extension := extensions["persistedQuery"]
	if extension == nil {
		return "", false, nil
	}
	members, ok := extension.(map[string]any)
	if !ok {
		return "", false, errcode.New(nil, errcode.BadUserInput, `extensions.persistedQuery must be an object: send {"version": 1, "sha256Hash": "..."}`)
	}
	// Unknown members are ignored, because some clients add their own.
	if version, ok := toFloat(members["version"]); !ok || version != 1 {
		return "", false, errcode.New(nil, errcode.BadUserInput, "extensions.persistedQuery.version must be 1, the only supported version")
	}
	hash, ok = members["sha256Hash"].(string)
	if !ok || hash == "" {
		return "", false, errcode.New(nil, errcode.BadUserInput, "extensions.persistedQuery.sha256Hash must be a string: send the SHA-256 of the document, as 64 hexadecimal digits")
	}
	return hash, true, nil
}
