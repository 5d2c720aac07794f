package graph

import (
	"errors"
	"strings"
	"testing"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/graph/extension"
)

// A file is refused with a line if the server could not load its schema.
func TestFilesThatBreakTheSchema(t *testing.T) {
	for text, want := range map[string]string{
		"\nenum Float { A B } extend type Order { x: Int @field }": "f:2: the name Float is already used",
		"extend type Order {\n\"a\\u0000b\" x: Int @field }":       "f:2: Order.x has the control character U+0000",
	} {
		if _, err := ParseExtension("f", text); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: the error is %v, want %s", text, err, want)
		}
	}
	broken := extension.Extension{Fields: map[string][]extension.Field{"Order": {{CustomField: commerce.CustomField{Name: "without a type"}}}}}
	var mistakes *extension.MistakesError
	if err := checkServed("f", broken); !errors.As(err, &mistakes) || len(mistakes.Mistakes) != 1 {
		t.Errorf("the error for an invalid schema is %v", err)
	}
}
