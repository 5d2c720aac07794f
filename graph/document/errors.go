package document

import (
	"fmt"

	"github.com/vektah/gqlparser/v2/gqlerror"
)

// Error is an error in a document. Line and Column start at 1. They are 0 if the error has no
// position.
type Error struct {
	Message string `json:"message"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
}

// Error returns the message. If the error has a position, line and column precede the message.
func (e Error) Error() string {
	if e.Line == 0 {
		return e.Message
	}
	return fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Message)
}

// ConvertErrors converts a list of GraphQL errors. Each result has the first location of its error.
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
