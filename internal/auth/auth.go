// Package auth tells whose a token is.
package auth

import (
	"context"
	"errors"
	"time"

	"github.com/ordergraph/ordergraph/commerce"
)

// ErrUnauthenticated means that a token is not valid; why is for the log.
var ErrUnauthenticated = errors.New("the token is not valid")

// Identity is who a token speaks for.
type Identity struct {
	Principal commerce.Principal
	// Expires is when the token is over.
	Expires time.Time
}

// Authenticator checks tokens. It is safe for concurrent use.
type Authenticator struct{}

// Authenticate tells whom a token speaks for.
//
// Errors: ErrUnauthenticated; dynamo.ErrUnavailable where it cannot be found out now; those of the context.
func (a *Authenticator) Authenticate(ctx context.Context, token string) (Identity, error) {
	return Identity{}, ErrUnauthenticated
}
