package commerce

import (
	"errors"
	"fmt"
)

// ErrNotFound is returned if no record has the requested ID.
var ErrNotFound = errors.New("no such record")

// ErrMalformed means that a stored record has an attribute that cannot be read or used. Only other
// software writes such records. `ordergraph check` finds them.
var ErrMalformed = errors.New("record cannot be read")

// InvalidError describes an invalid value from a caller. The server shows its text to clients, so
// the text must not contain secrets.
type InvalidError struct {
	// Argument is the name of the value. It is empty until ErrorWithArgument adds it.
	Argument string
	// Reason follows the name of the value in the error message, such as "is empty: use 1 to 64
	// characters".
	Reason string
}

// NewInvalidError returns an InvalidError without an argument name. ErrorWithArgument can add the
// name later.
func NewInvalidError(format string, args ...any) *InvalidError {
	return &InvalidError{Reason: fmt.Sprintf(format, args...)}
}

// Error returns the reason. If Argument is set, the result begins with the name of the argument.
func (e *InvalidError) Error() string {
	if e.Argument == "" {
		return e.Reason
	}
	return fmt.Sprintf("argument %q %s", e.Argument, e.Reason)
}

// ErrorWithArgument adds the name of an argument to an InvalidError that does not have a name yet.
// It returns all other errors unchanged.
func ErrorWithArgument(argument string, err error) error {
	var invalid *InvalidError
	if errors.As(err, &invalid) && invalid.Argument == "" {
		return &InvalidError{Argument: argument, Reason: invalid.Reason}
	}
	return err
}
