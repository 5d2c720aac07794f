package commerce

import (
	"errors"
	"fmt"
)

// ErrNotFound is returned if no record has the requested ID.
var ErrNotFound = errors.New("no such record")

// InvalidError describes an invalid value from a caller. Reason completes a sentence that begins
// with the name of the value, such as "is empty: use 1 to 64 characters". The server shows the text
// to clients, so the text must not contain anything secret.
type InvalidError struct {
	// Argument is the name of the value. It is empty until ErrorWithArgument sets it.
	Argument string
	// Reason is the rest of the sentence.
	Reason string
}

// NewInvalidError returns an InvalidError without an argument name. ErrorWithArgument adds the name.
func NewInvalidError(format string, args ...any) *InvalidError {
	return &InvalidError{Reason: fmt.Sprintf(format, args...)}
}

// Error returns the reason. If Argument is set, the name of the argument precedes the reason.
func (e *InvalidError) Error() string {
	if e.Argument == "" {
		return e.Reason
	}
	return fmt.Sprintf("argument %q %s", e.Argument, e.Reason)
}

// ErrorWithArgument sets the argument name of an unnamed InvalidError. It returns all other errors
// unchanged.
func ErrorWithArgument(argument string, err error) error {
	var invalid *InvalidError
	if errors.As(err, &invalid) && invalid.Argument == "" {
		return &InvalidError{Argument: argument, Reason: invalid.Reason}
	}
	return err
}
