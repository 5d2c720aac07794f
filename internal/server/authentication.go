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

// authentication identifies the principal of a request by the token in its header. If tokens is
// nil, requests are not authenticated.
type authentication struct {
	tokens *auth.Authenticator
	// anonymous accepts requests without a token. Their role is commerce.RoleAnonymous.
	anonymous bool
	log       *slog.Logger
}

// challengeHeader names the authentication scheme, and the error in the credentials that were sent
// (https://www.rfc-editor.org/rfc/rfc6750#section-3).
const challengeHeader = "WWW-Authenticate"

// bearerChallenge is the challenge to a request without a token.
const bearerChallenge = "Bearer"

// authenticate verifies the token of a request and returns the request with its principal. This
// comes before the body is read and before the request uses capacity, so an unauthenticated client
// gets neither. The verification of signatures has a limit of its own (auth.Authenticator).
func (h httpHandler) authenticate(r *http.Request) (*http.Request, *refusal) {
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

// withIdentity returns the context of a request that has been authenticated.
func (h httpHandler) withIdentity(ctx context.Context, identity auth.Identity) context.Context {
	caller := h.callerOf(identity)
	setConnectionCaller(ctx, caller)
	ctx = admission.WithCaller(graph.WithPrincipal(ctx, identity.Principal), caller)
	return context.WithValue(ctx, identityKey{}, identity)
}

// watch calls end when a new request with the connection's token would be refused. stop ends the
// watch. A connection without a token is not watched.
func (a authentication) watch(ctx context.Context, end func()) (stop func()) {
	identity, ok := ctx.Value(identityKey{}).(auth.Identity)
	if !ok || identity.Principal.Role == commerce.RoleAnonymous {
		return func() {}
	}
	return a.tokens.Watch(identity, func(reason error) {
		a.log.DebugContext(ctx, "the token of an open connection is no longer valid", "reason", reason, "requestId", requestID(ctx))
		end()
	})
}

// identify returns the identity of a request from its header and its remote address. It reads
// tokens only from Authorization, because proxies log URLs and browsers keep them.
func (a authentication) identify(ctx context.Context, header http.Header, remote string) (auth.Identity, *refusal) {
	// Each address has a share of the verifications, as no signature has been verified yet.
	ctx = admission.WithCaller(ctx, admission.Caller{Key: remoteNetwork(remote)})
	given := header.Values("Authorization")
	switch {
	case len(given) > 1:
		return auth.Identity{}, unauthenticated(true)
	case len(given) == 0 && a.anonymous:
		return auth.Identity{Principal: anonymousPrincipal(remote)}, nil
	}
	token, ok := bearer(header.Get("Authorization"))
	if !ok {
		return auth.Identity{}, unauthenticated(false)
	}
	identity, err := a.verifyToken(ctx, token)
	if errors.Is(err, auth.ErrInvalidSignature) && a.tokens.Busy() {
		delay(ctx, forgedTokenDelay)
	}
	switch {
	case errors.Is(err, auth.ErrUnauthenticated):
		return auth.Identity{}, unauthenticated(true)
	case err != nil:
		return auth.Identity{}, newRefusal(http.StatusServiceUnavailable, errcode.Unavailable, "the token cannot be verified right now: try again in a moment")
	}
	return identity, nil
}

// verifyToken returns the identity of a token, and logs the reason if the token is refused. An
// invalid token is the client's error and any client can send many of them, so it is logged at
// debug level. No part of a token is logged. The errors are those that
// auth.Authenticator.Authenticate returns.
func (a authentication) verifyToken(ctx context.Context, token string) (auth.Identity, error) {
	identity, err := a.tokens.Authenticate(ctx, token)
	if err == nil && identity.Principal.Role == 0 {
		err = auth.ErrUnauthenticated // a second check: an identity without a role has no permission
	}
	switch {
	case errors.Is(err, auth.ErrUnauthenticated):
		a.log.DebugContext(ctx, "a token was refused", "reason", err, "requestId", requestID(ctx))
	case errors.Is(err, context.Canceled): // the client has disconnected
	case err != nil:
		a.log.ErrorContext(ctx, "a token cannot be verified", "error", err, "requestId", requestID(ctx))
	}
	return identity, err
}

// bearer returns the token of an Authorization header, or false if the header has no bearer token
// (https://www.rfc-editor.org/rfc/rfc6750#section-2.1).
func bearer(authorization string) (string, bool) {
	scheme, token, _ := strings.Cut(authorization, " ")
	token = strings.Trim(token, " ")
	return token, strings.EqualFold(scheme, "Bearer") && token != ""
}

// unauthenticated refuses a request; given reports whether it has credentials. The response does
// not contain the reason, which would help an attacker.
func unauthenticated(given bool) *refusal {
	if given {
		refused := newRefusal(http.StatusUnauthorized, errcode.Unauthenticated, "the token is invalid: get a new one, and send it once, as Authorization: Bearer TOKEN")
		refused.challenge = `Bearer error="invalid_token"`
		return refused
	}
	refused := newRefusal(http.StatusUnauthorized, errcode.Unauthenticated, "credentials are missing: send a token as Authorization: Bearer TOKEN")
	refused.challenge = bearerChallenge
	return refused
}
