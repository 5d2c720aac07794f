// Package wire has the JSON of DynamoDB's requests and responses: it decodes requests, validates
// common parameters, and encodes responses and errors.
package wire

import (
	"bytes"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Decode decodes a request. The type In has fields with the names of DynamoDB's parameters. It
// returns SerializationException.
func Decode[In any](request []byte) (*In, error) {
	in := new(In)
	if err := json.UnmarshalRead(bytes.NewBuffer(request), in, jsontext.AllowDuplicateNames(true)); err != nil {
		return nil, &Failure{Code: CodeSerialized, Message: err.Error()}
	}
	return in, nil
}
