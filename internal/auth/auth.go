// Package auth authenticates callers by their tokens.
//
// A token is a JWT (https://www.rfc-editor.org/rfc/rfc7519) that an identity provider has signed.
// The package verifies the signature with keys that the operator has configured, never with a key
// from the token. The keys come from a JWKS at a URL or in a file (keys.go, keyring.go, source.go),
// or are one secret that issuer and server share. The claims determine the principal (claims.go).
// Tokens of open connections are checked again periodically (watch.go). go-jose parses tokens and
// verifies signatures.
package auth

import (
	"bytes"
	"context"
	"crypto"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/internal/admission"
)

// ErrUnauthenticated reports that a token is not valid. Errors that wrap it have the reason, which
// is for the log. They contain no part of the token.
var ErrUnauthenticated = errors.New("the token is not valid")

// ErrInvalidSignature reports that no key verifies the signature of a token. It wraps
// ErrUnauthenticated.
var ErrInvalidSignature = newUnauthenticated("its signature does not match the key")

// newUnauthenticated returns ErrUnauthenticated with a reason. The reason must not repeat any part
// of a token.
func newUnauthenticated(reason string) error { return fmt.Errorf("%w: %s", ErrUnauthenticated, reason) }

// Identity is the result of authenticating a token.
type Identity struct {
	Principal commerce.Principal
	// Expires is the expiry of the token plus the leeway.
	Expires time.Time
	// signature identifies the key of the token, so that Watch can check it again.
	signature *signature
}

// signature identifies the key that a token was signed with: the token's kid and alg, and the key
// itself.
type signature struct {
	keyID     string
	algorithm jose.SignatureAlgorithm
	key       any
}

// matchesKey reports whether the signature was verified with the given key.
func (s *signature) matchesKey(key any) bool {
	switch own := s.key.(type) {
	case []byte:
		other, ok := key.([]byte)
		return ok && bytes.Equal(own, other)
	case interface{ Equal(crypto.PublicKey) bool }:
		return own.Equal(key)
	default:
		return false
	}
}

// Limits of Options.
const (
	// MinSecretBytes is the minimum length of a secret in bytes
	// (https://www.rfc-editor.org/rfc/rfc7518#section-3.2).
	MinSecretBytes = 32
	// MaxLeeway is the maximum of Options.Leeway.
	MaxLeeway = 5 * time.Minute
)

// Options configure how tokens are verified.
type Options struct {
	// JWKS is the URL or the file name of the JWKS. It is empty if Secret is set.
	JWKS string
	// Secret is the secret that issuer and server share. It has at least MinSecretBytes bytes, or is
	// empty if JWKS is set.
	Secret []byte
	// Issuer must equal the iss claim of a token, and Audience must be in its aud claim.
	Issuer, Audience string
	// Leeway is the tolerated clock difference between issuer and server, at most MaxLeeway.
	Leeway time.Duration
	// RoleClaim is the name of the claim with the role. CustomerClaim is the name of the claim with
	// the customer's ID, which tokens of RoleCustomer need.
	RoleClaim, CustomerClaim string
	// CustomerExists reports whether a customer's record exists, so that tokens of deleted customers
	// are rejected. If it is nil, all customers count as existing. Authenticate returns its errors.
	CustomerExists func(context.Context, commerce.CustomerID) (bool, error)
	// Log logs changes of the keys and failures to read them.
	Log *slog.Logger
	// Verifications limits how many signatures are verified at the same time. If it is nil, New
	// creates a pool of the default size.
	Verifications *admission.Pool
	// Now is the clock. If it is nil, New uses time.Now.
	Now func() time.Time
	// AfterFunc calls f in its own goroutine after d, unless stop is called before. If it is nil, New
	// uses time.AfterFunc.
	AfterFunc func(d time.Duration, f func()) (stop func() bool)
}

// keyFinder finds the keys that can verify a token by the kid and alg of its header. A token
// without a kid has the key ID "".
type keyFinder interface {
	// find reads the JWKS again if it does not know the kid.
	find(kid string, algorithm jose.SignatureAlgorithm) []any
	// cached finds keys only among those already in memory, so it never blocks.
	cached(kid string, algorithm jose.SignatureAlgorithm) []any
}

// Authenticator verifies tokens. It is safe for concurrent use.
type Authenticator struct {
	opts Options
	// algorithms are either all public-key algorithms or all HMAC algorithms, never both.
	algorithms []jose.SignatureAlgorithm
	keys       keyFinder
	customers  *customerCache
	// verifiedTokens contains the signatures that were verified before, by the SHA-256 of the token.
	// An entry is valid only while its key is.
	verifiedTokens *lru.Cache[[sha256.Size]byte, *signature]
}

// maxVerifiedTokens bounds the cache of verified tokens. The cache takes about two megabytes.
const maxVerifiedTokens = 10_000

// New returns an Authenticator. If JWKS is set, New reads it, and refreshes it periodically until
// ctx ends.
//
// It returns an error if the options are invalid, or if no keys can be read.
func New(ctx context.Context, opts Options) (*Authenticator, error) {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Verifications == nil {
		opts.Verifications = admission.New(admission.Sizes{})[admission.PoolVerifications]
	}
	if opts.AfterFunc == nil {
		opts.AfterFunc = func(d time.Duration, f func()) func() bool { return time.AfterFunc(d, f).Stop }
	}
	switch {
	case opts.Issuer == "" || opts.Audience == "":
		return nil, errors.New("an issuer and an audience are required")
	case opts.RoleClaim == "" || opts.CustomerClaim == "":
		return nil, errors.New("the names of the role claim and of the customer claim are required")
	case opts.Leeway < 0 || opts.Leeway > MaxLeeway:
		return nil, fmt.Errorf("the leeway must be 0s to %s, not %s", MaxLeeway, opts.Leeway)
	case (opts.JWKS == "") == (len(opts.Secret) == 0):
		return nil, errors.New("set either a JWKS or a secret")
	}
	verified, err := lru.New[[sha256.Size]byte, *signature](maxVerifiedTokens)
	if err != nil {
		return nil, err
	}
	a := &Authenticator{
		opts: opts, customers: newCustomerCache(opts.CustomerExists, opts.Now), verifiedTokens: verified,
	}
	if opts.JWKS == "" {
		if len(opts.Secret) < MinSecretBytes {
			return nil, fmt.Errorf("the secret has %d bytes: at least %d are required", len(opts.Secret), MinSecretBytes)
		}
		a.algorithms, a.keys = secretAlgorithms(), secret(opts.Secret)
		return a, nil
	}
	jwks, err := newSource(opts.JWKS)
	if err != nil {
		return nil, err
	}
	ring := &keyring{source: jwks, log: opts.Log, now: opts.Now, afterFunc: opts.AfterFunc}
	if err := ring.refresh(ctx); err != nil {
		return nil, err
	}
	ring.refreshPeriodically(ctx)
	a.algorithms, a.keys = publicAlgorithms(), ring
	return a, nil
}

// Authenticate verifies a token and returns the identity of its holder.
//
// It returns ErrUnauthenticated if the token is not valid, the errors of Options.CustomerExists,
// and the errors of ctx.
func (a *Authenticator) Authenticate(ctx context.Context, token string) (Identity, error) {
	payload, signature, err := a.verify(ctx, token)
	if err != nil {
		return Identity{}, err
	}
	identity, err := a.parseClaims(payload)
	if err != nil {
		return Identity{}, err
	}
	if err := a.customerExists(ctx, identity); err != nil {
		return Identity{}, err
	}
	identity.signature = signature
	return identity, nil
}

// Busy reports whether requests wait for a slot to verify a signature.
func (a *Authenticator) Busy() bool { return a.opts.Verifications.Waiting() > 0 }

// customerExists returns ErrUnauthenticated if the identity's customer does not exist. It returns
// the errors of Options.CustomerExists.
func (a *Authenticator) customerExists(ctx context.Context, identity Identity) error {
	if identity.Principal.Customer == "" {
		return nil
	}
	switch exists, err := a.customers.exists(ctx, identity.Principal.Customer); {
	case err != nil:
		return fmt.Errorf("look up the customer of a token: %w", err)
	case !exists:
		return newUnauthenticated("its customer does not exist")
	default:
		return nil
	}
}

// maxTokenBytes is the maximum length of a token in bytes. Tokens of identity providers have one or
// two thousand.
const maxTokenBytes = 8 << 10

// verify verifies the signature of a token. It returns the payload and the signature.
func (a *Authenticator) verify(ctx context.Context, token string) ([]byte, *signature, error) {
	if len(token) > maxTokenBytes {
		return nil, nil, newUnauthenticated(fmt.Sprintf("it exceeds %d bytes", maxTokenBytes))
	}
	// The base64 decoder ignores line breaks, so one token would have several spellings.
	if strings.ContainsFunc(token, func(r rune) bool { return r != '.' && !isBase64URLRune(r) }) {
		return nil, nil, newUnauthenticated("it contains a character that no token has")
	}
	signed, err := jose.ParseSignedCompact(token, a.algorithms)
	if unexpected := (*jose.ErrUnexpectedSignatureAlgorithm)(nil); errors.As(err, &unexpected) {
		return nil, nil, newUnauthenticated("its algorithm is not accepted")
	}
	if err != nil {
		return nil, nil, newUnauthenticated("it is malformed") // err repeats parts of the token
	}
	header := signed.Signatures[0].Header
	for _, extension := range []jose.HeaderKey{"crit", "b64"} {
		if _, ok := header.ExtraHeaders[extension]; ok {
			return nil, nil, newUnauthenticated("its header has unsupported extensions")
		}
	}
	algorithm := jose.SignatureAlgorithm(header.Algorithm)
	keys := a.keys.find(header.KeyID, algorithm)
	if len(keys) == 0 {
		return nil, nil, newUnauthenticated("no key has its key ID and algorithm")
	}
	// A token that was verified before does not wait behind forged tokens. Its claims are checked
	// every time.
	id := sha256.Sum256([]byte(token))
	if known, ok := a.verifiedTokens.Get(id); ok && slices.ContainsFunc(keys, known.matchesKey) {
		return signed.UnsafePayloadWithoutVerification(), known, nil
	}
	// Verifying a signature takes up to milliseconds, and anonymous callers can cause it. So the pool
	// bounds how many run at once.
	caller := admission.CallerOf(ctx)
	if err := a.opts.Verifications.Acquire(ctx, caller, 1); err != nil {
		return nil, nil, err
	}
	defer a.opts.Verifications.Release(caller, 1)
	for _, key := range keys {
		if payload, err := signed.Verify(key); err == nil {
			verified := &signature{header.KeyID, algorithm, key}
			a.verifiedTokens.Add(id, verified)
			return payload, verified, nil
		}
	}
	return nil, nil, ErrInvalidSignature
}

// isBase64URLRune reports whether r is in the base64url alphabet
// (https://www.rfc-editor.org/rfc/rfc4648#section-5).
func isBase64URLRune(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '-' || r == '_'
}
