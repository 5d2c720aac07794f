package document

import (
	"fmt"

	"github.com/vektah/gqlparser/v2/gqlerror"
)

// Error is something that is wrong with a document. Line and Column count from 1 and are 0
// where it is wrong as a whole.
type Error struct {
	Message string `json:"message"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
}

// Error is the message, behind line and column where there are any.
func (e Error) Error() string {
	if e.Line == 0 {
		return e.Message
	}
	return fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Message)
}

// Errors returns the errors of a document with their places.
func Errors(errs gqlerror.List) []Error {
	all := make([]Error, len(errs))
	for i, err := range errs {
		all[i].Message = err.Message
		if len(err.Locations) > 0 {
			all[i].Line, all[i].Column = err.Locations[0].Line, err.Locations[0].Column
		}
	}
	return all
}
