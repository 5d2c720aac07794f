package server

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"

	"github.com/ordergraph/ordergraph/access"
	"github.com/ordergraph/ordergraph/graph"
	"github.com/ordergraph/ordergraph/graph/errcode"
	"github.com/ordergraph/ordergraph/internal/admission"
	"github.com/ordergraph/ordergraph/internal/auth"
	"github.com/ordergraph/ordergraph/internal/lifecycle"
	"github.com/ordergraph/ordergraph/internal/telemetry"
)

// authentication authenticates requests by the bearer token in their Authorization header. If
// tokens is nil, the server accepts all requests without authentication.
type authentication struct {
	tokens *auth.Authenticator
	// anonymous reports whether requests without a token are accepted. These requests have the role
	// access.RoleAnonymous.
	anonymous bool
	log       *slog.Logger
}

// challengeHeader is the response header that names the authentication scheme. If the request's
// token was invalid, the header also contains an error code. See
// https://www.rfc-editor.org/rfc/rfc6750#section-3.
const challengeHeader = "WWW-Authenticate"

// bearerChallenge is the value of challengeHeader in the response to a request without a token.
const bearerChallenge = "Bearer"

// authenticate verifies the token of a request and adds the principal to the context. The server
// calls authenticate before reading the body, so clients with invalid tokens cannot use up memory.
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
	telemetry.RequestFromContext(r.Context()).SetPrincipal(identity.Principal)
	return r.WithContext(h.withIdentity(r.Context(), identity)), nil
}

type identityKey struct{}

// withIdentity returns a context with the principal and the caller of an authenticated request. It
// also assigns the network connection to this caller, so that the connection counts against the
// caller's share of connections.
func (h httpHandler) withIdentity(ctx context.Context, identity auth.Identity) context.Context {
	caller := h.callerOf(identity)
	lifecycle.SetCaller(ctx, caller)
	ctx = admission.WithCaller(graph.WithPrincipal(ctx, identity.Principal), caller)
	return context.WithValue(ctx, identityKey{}, identity)
}

// watchToken calls the function end when the token of a connection is no longer valid. If the
// connection has no token, watchToken never calls end. To end the watch, call the returned
// function.
func (a authentication) watchToken(ctx context.Context, end func()) (stop func()) {
	identity, ok := ctx.Value(identityKey{}).(auth.Identity)
	if !ok || identity.Principal.Role == access.RoleAnonymous {
		return func() {}
	}
	return a.tokens.Watch(identity, func(reason error) {
		a.log.DebugContext(ctx, "the token of an open connection is no longer valid", "reason", reason, "requestId", requestID(ctx))
		end()
	})
}

// identify authenticates a request. It never reads the token from the URL, because proxies and
// browsers store URLs. remote is the client's network address with a port.
func (a authentication) identify(ctx context.Context, header http.Header, remote string) (auth.Identity, *refusal) {
	// Each caller has a share of the concurrent signature verifications. Before the verification, the
	// token cannot identify the caller, so the network address is used instead.
	ctx = admission.WithCaller(ctx, admission.Caller{Key: admission.Network(remote)})
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
	if errors.Is(err, auth.ErrInvalidSignature) && a.tokens.HasWaitingVerifications() {
		sleep(ctx, forgedTokenDelay)
	}
	switch {
	case errors.Is(err, auth.ErrUnauthenticated):
		return auth.Identity{}, unauthenticated(true)
	case err != nil:
		return auth.Identity{}, newRefusal(http.StatusServiceUnavailable, errcode.Unavailable, "the token cannot be verified right now: try again in a moment")
	}
	return identity, nil
}

// verifyToken verifies a token and returns the identity in its claims. It returns the errors of
// auth.Authenticator.Authenticate. The log never contains a part of the token.
func (a authentication) verifyToken(ctx context.Context, token string) (auth.Identity, error) {
	identity, err := a.tokens.Authenticate(ctx, token)
	if err == nil && identity.Principal.Role == 0 {
		err = auth.ErrUnauthenticated // should not happen, because Authenticate rejects tokens without a role
	}
	switch {
	case errors.Is(err, auth.ErrUnauthenticated):
		// At the level debug, clients with invalid tokens cannot fill the log.
		a.log.DebugContext(ctx, "a token was refused", "reason", err, "requestId", requestID(ctx))
	case errors.Is(err, context.Canceled): // not logged, because the client has disconnected
	case err != nil:
		a.log.ErrorContext(ctx, "a token cannot be verified", "error", err, "requestId", requestID(ctx))
	}
	return identity, err
}

// bearer returns the token in the value of an Authorization header. It returns false if the value
// contains no bearer token. See https://www.rfc-editor.org/rfc/rfc6750#section-2.1.
func bearer(authorization string) (string, bool) {
	scheme, token, _ := strings.Cut(authorization, " ")
	token = strings.Trim(token, " ")
	return token, strings.EqualFold(scheme, "Bearer") && token != ""
}

// unauthenticated returns a refusal with status 401. The parameter given is true if the token was
// invalid, and false if the request had no bearer token. The refusal does not contain the reason why
// a token is invalid, because the reason could help an attacker.
func unauthenticated(given bool) *refusal {
	if given {
		refused := newRefusal(http.StatusUnauthorized, errcode.Unauthenticated, "the token is invalid: get a new token, and send only one Authorization header: Bearer TOKEN")
		refused.challenge = `Bearer error="invalid_token"`
		return refused
	}
	refused := newRefusal(http.StatusUnauthorized, errcode.Unauthenticated, "credentials are missing: send a token as Authorization: Bearer TOKEN")
	refused.challenge = bearerChallenge
	return refused
}
