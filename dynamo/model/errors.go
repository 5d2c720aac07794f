package model

import "errors"

// ErrCorrupt means that a record lacks an attribute that its kind must have, or has it in another
// type.
var ErrCorrupt = errors.New("record cannot be read")
