package commerce

import (
	"errors"
	"fmt"
)

// ErrNotFound says that there is no record of that id.
var ErrNotFound = errors.New("no such record")

// InvalidError says what is wrong with a value that a caller gave. Its text completes a sentence
// that begins with the value's name, and is safe to show: "is empty: give an id".
type InvalidError struct {
	// Argument is the value's name, where it is known.
	Argument string
	// Reason is the rest of the sentence.
	Reason string
}

// Invalid returns an InvalidError without a name; For gives it one.
func Invalid(format string, args ...any) *InvalidError {
	return &InvalidError{Reason: fmt.Sprintf(format, args...)}
}

// Error returns the sentence.
func (e *InvalidError) Error() string {
	if e.Argument == "" {
		return e.Reason
	}
	return fmt.Sprintf("argument %q %s", e.Argument, e.Reason)
}

// For names the argument that an InvalidError is about; other errors it returns as they are.
func For(argument string, err error) error {
	var invalid *InvalidError
	if errors.As(err, &invalid) && invalid.Argument == "" {
		return &InvalidError{Argument: argument, Reason: invalid.Reason}
	}
	return err
}
