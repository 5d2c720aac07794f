package server

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/graph"
	"github.com/ordergraph/ordergraph/graph/errcode"
	"github.com/ordergraph/ordergraph/internal/admission"
	"github.com/ordergraph/ordergraph/internal/auth"
)

// authentication finds out who makes requests, by the tokens that they come with. With nil for
// tokens nobody is asked.
type authentication struct {
	tokens *auth.Authenticator
	// anonymous accepts requests without a token, which have commerce.RoleAnonymous.
	anonymous bool
	log       *slog.Logger
}

// challengeHeader tells how to say who one is, and what was wrong with how it was said
// (https://www.rfc-editor.org/rfc/rfc6750#section-3).
const challengeHeader = "WWW-Authenticate"

// challenge is the challenge to a request without a token.
const challenge = "Bearer"

// authenticated is a request in the name of who makes it. It comes before the body is read and
// before a place is taken, so that strangers get neither; what they can make the server do,
// checking signatures, has a bound of its own (auth.Authenticator).
func (h overHTTP) authenticated(r *http.Request) (*http.Request, *refusal) {
	if h.authentication.tokens == nil {
		return r, nil
	}
	ctx, cancel := context.WithTimeout(r.Context(), h.limits.RequestTime)
	defer cancel()
	identity, refused := h.authentication.identify(ctx, r.Header, r.RemoteAddr)
	if refused != nil {
		return nil, refused
	}
	return r.WithContext(h.withIdentity(r.Context(), identity)), nil
}

type identityKey struct{}

// withIdentity returns the context of what a caller asks for.
func (h overHTTP) withIdentity(ctx context.Context, identity auth.Identity) context.Context {
	caller := h.callerOf(identity)
	ownedBy(ctx, caller)
	ctx = admission.WithCaller(graph.WithPrincipal(ctx, identity.Principal), caller)
	return context.WithValue(ctx, identityKey{}, identity)
}

// watch ends a connection that stays open when a new request with its token would be refused. The
// function that it returns ends the watch. A request without a token is not watched.
func (a authentication) watch(ctx context.Context, end func()) (stop func()) {
	identity, ok := ctx.Value(identityKey{}).(auth.Identity)
	if !ok || identity.Principal.Role == commerce.RoleAnonymous {
		return func() {}
	}
	return a.tokens.Watch(identity, func(why error) {
		a.log.DebugContext(ctx, "the token of an open connection is refused", "reason", why, "requestId", requestID(ctx))
		end()
	})
}

// identify tells who makes the request that a header belongs to, which comes from a remote address.
// Tokens are taken from Authorization only: URLs are logged by proxies and kept by browsers.
func (a authentication) identify(ctx context.Context, header http.Header, remote string) (auth.Identity, *refusal) {
	// Each address has a share of the verifications. No signature has been verified yet.
	ctx = admission.WithCaller(ctx, admission.Caller{Key: networkOf(remote)})
	given := header.Values("Authorization")
	switch {
	case len(given) > 1:
		return auth.Identity{}, unauthenticated(true)
	case len(given) == 0 && a.anonymous:
		return auth.Identity{Principal: anonymous(remote)}, nil
	}
	token, ok := bearer(header.Get("Authorization"))
	if !ok {
		return auth.Identity{}, unauthenticated(false)
	}
	identity, err := a.token(ctx, token)
	if errors.Is(err, auth.ErrForged) && a.tokens.Busy() {
		delay(ctx, forgedDelay)
	}
	switch {
	case errors.Is(err, auth.ErrUnauthenticated):
		return auth.Identity{}, unauthenticated(true)
	case err != nil:
		return auth.Identity{}, refuse(http.StatusServiceUnavailable, errcode.Unavailable, "who makes the request cannot be found out right now: try again in a moment")
	}
	return identity, nil
}

// token tells whom a token speaks for, and the log why it speaks for nobody: at debug level where
// that is the client's to mend, as anybody could fill the log. Nothing of a token is logged.
//
// Errors: those of auth.Authenticator.Authenticate.
func (a authentication) token(ctx context.Context, token string) (auth.Identity, error) {
	identity, err := a.tokens.Authenticate(ctx, token)
	if err == nil && identity.Principal.Role == 0 {
		err = auth.ErrUnauthenticated // a second lock: there is nothing that nobody may do
	}
	switch {
	case errors.Is(err, auth.ErrUnauthenticated):
		a.log.DebugContext(ctx, "a token was refused", "reason", err, "requestId", requestID(ctx))
	case errors.Is(err, context.Canceled): // the caller went away
	case err != nil:
		a.log.ErrorContext(ctx, "who makes a request cannot be found out", "error", err, "requestId", requestID(ctx))
	}
	return identity, err
}

// bearer is the token of an Authorization header, false where there is none
// (https://www.rfc-editor.org/rfc/rfc6750#section-2.1).
func bearer(authorization string) (string, bool) {
	scheme, token, _ := strings.Cut(authorization, " ")
	token = strings.Trim(token, " ")
	return token, strings.EqualFold(scheme, "Bearer") && token != ""
}

// unauthenticated refuses a request; given reports whether a token came with it. Why is for the
// log: it would help those who try.
func unauthenticated(given bool) *refusal {
	if given {
		refused := refuse(http.StatusUnauthorized, errcode.Unauthenticated, "the token is not valid: get a new one, and send it as Authorization: Bearer TOKEN, once")
		refused.challenge = `Bearer error="invalid_token"`
		return refused
	}
	refused := refuse(http.StatusUnauthorized, errcode.Unauthenticated, "the request does not say who makes it: send a token as Authorization: Bearer TOKEN")
	refused.challenge = challenge
	return refused
}
