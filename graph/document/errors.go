package document

import (
	"fmt"

	"github.com/vektah/gqlparser/v2/gqlerror"
)

// Error is an error in a GraphQL document. Line and Column are the position of the error in the
// text, and start at 1. If the position is unknown, both are 0.
type Error struct {
	Message string `json:"message"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
}

// Error returns the message. If the position is known, the line and the column precede the message.
func (e Error) Error() string {
	if e.Line == 0 {
		return e.Message
	}
	return fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Message)
}

// ConvertErrors converts GraphQL errors to values of type Error. If an error has several locations,
// only the first one is kept.
func ConvertErrors(errs gqlerror.List) []Error {
	converted := make([]Error, len(errs))
	for i, err := range errs {
		converted[i].Message = err.Message
		if len(err.Locations) > 0 {
			converted[i].Line, converted[i].Column = err.Locations[0].Line, err.Locations[0].Column
		}
	}
	return converted
}
