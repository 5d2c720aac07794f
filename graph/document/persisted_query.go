package document

import (
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/ordergraph/ordergraph/graph/errcode"
)

// persistedQueryHash reads the hash of a document from extensions.persistedQuery. With this
// extension, clients can send the hash of a document instead of its text. The extension has the
// form {"version": 1, "sha256Hash": "..."}, as in Apollo's protocol of automatic persisted queries
// (https://www.apollographql.com/docs/apollo-server/performance/apq).
//
// present reports whether the request has the extension. Unknown members are ignored, because some
// clients add their own. For example, urql adds a member when it sends the text after a cache miss.
//
// If the extension is malformed, persistedQueryHash returns BAD_USER_INPUT with the name of the
// invalid member.
func persistedQueryHash(extensions map[string]any) (hash string, present bool, err *gqlerror.Error) {
	extension := extensions["persistedQuery"]
	if extension == nil {
		return "", false, nil
	}
	members, ok := extension.(map[string]any)
	if !ok {
		return "", false, errcode.New(nil, errcode.BadUserInput, `extensions.persistedQuery must be an object: send {"version": 1, "sha256Hash": "..."}`)
	}
	if version, ok := toFloat(members["version"]); !ok || version != 1 {
		return "", false, errcode.New(nil, errcode.BadUserInput, "extensions.persistedQuery.version must be 1, the only supported version")
	}
	hash, ok = members["sha256Hash"].(string)
	if !ok || hash == "" {
		return "", false, errcode.New(nil, errcode.BadUserInput, "extensions.persistedQuery.sha256Hash must be a string: send the SHA-256 of the document, as 64 hexadecimal digits")
	}
	return hash, true, nil
}
