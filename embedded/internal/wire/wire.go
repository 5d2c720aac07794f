// Package wire implements DynamoDB's JSON protocol. It decodes requests, validates common
// parameters, and encodes responses and errors.
package wire

import (
	"bytes"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Decode decodes the JSON of a request. The fields of the type In must have the names of DynamoDB's
// parameters. If the JSON does not match this type, Decode returns SerializationException.
func Decode[In any](request []byte) (*In, error) {
	in := new(In)
	if err := json.UnmarshalRead(bytes.NewBuffer(request), in, jsontext.AllowDuplicateNames(true)); err != nil {
		return nil, &Failure{Code: CodeSerialization, Message: err.Error()}
	}
	return in, nil
}
