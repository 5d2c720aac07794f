// Package auth authenticates callers by their tokens.
//
// A token is a JWT (https://www.rfc-editor.org/rfc/rfc7519) that an identity provider has signed.
// The package verifies the signature with keys that the operator has configured, never with a key
// from the token. The keys are in a JWKS at a URL or in a file (keys.go, keyring.go, source.go).
// Alternatively, the issuer and the server share a secret. The claims of the token determine the
// principal (claims.go). Tokens of open connections are rechecked periodically (watch.go). Package
// go-jose parses tokens and verifies signatures.
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

// ErrUnauthenticated reports that a token is not valid. Errors that wrap ErrUnauthenticated contain
// the reason, but no part of the token. The reason is for the log only.
var ErrUnauthenticated = errors.New("the token is not valid")

// ErrInvalidSignature reports that the signature of a token does not match any key. It wraps
// ErrUnauthenticated.
var ErrInvalidSignature = newUnauthenticated("its signature does not match the key")

// newUnauthenticated returns an error that wraps ErrUnauthenticated and contains a reason. The
// reason must not contain any part of a token.
func newUnauthenticated(reason string) error { return fmt.Errorf("%w: %s", ErrUnauthenticated, reason) }

// Identity is the result of authenticating a token.
type Identity struct {
	Principal commerce.Principal
	// Expires is the expiry time of the token plus Options.Leeway.
	Expires time.Time
	// signature contains the key that verified the token. Watch uses it to detect that the key has
	// been removed.
	signature *verificationKey
}

// verificationKey identifies the key that verified a token. keyID and algorithm are the kid and alg
// of the token's header.
type verificationKey struct {
	keyID     string
	algorithm jose.SignatureAlgorithm
	key       any
}

// matchesKey reports whether key is the key that verified the signature.
func (s *verificationKey) matchesKey(key any) bool {
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
	// JWKS is the URL or the file name of the JSON Web Key Set (JWKS). It is empty if Secret is set.
	JWKS string
	// Secret is the secret that the issuer and the server share. It must have at least MinSecretBytes
	// bytes. It is empty if JWKS is set.
	Secret []byte
	// Issuer is the required iss claim of a token. Audience is a required value of the aud claim.
	Issuer, Audience string
	// Leeway is the tolerated clock difference between the issuer and the server. The maximum is
	// MaxLeeway.
	Leeway time.Duration
	// RoleClaim is the name of the claim that contains the role. CustomerClaim is the name of the
	// claim that contains the customer's ID. Only tokens with RoleCustomer must have this claim.
	RoleClaim, CustomerClaim string
	// CustomerExists reports whether a customer's record exists. Authenticate rejects the tokens of
	// customers without a record, and returns the errors of CustomerExists. If CustomerExists is nil,
	// Authenticate skips this check.
	CustomerExists func(context.Context, commerce.CustomerID) (bool, error)
	// Log is the logger for changes of the keys and for errors when reading the keys.
	Log *slog.Logger
	// Verifications limits how many signatures are verified concurrently. If it is nil, New creates a
	// pool of the default size.
	Verifications *admission.Pool
	// RefreshOnUse makes the Authenticator refresh the JWKS only when it verifies a token. A process
	// cannot refresh the JWKS in the background if it is frozen between requests, as in AWS Lambda.
	RefreshOnUse bool
	// Now is the clock. If it is nil, New uses time.Now.
	Now func() time.Time
	// AfterFunc calls f in its own goroutine after d. stop cancels the call. If AfterFunc is nil, New
	// uses time.AfterFunc.
	AfterFunc func(d time.Duration, f func()) (stop func() bool)
}

// keyFinder finds the keys that can verify a token. kid and algorithm are the kid and alg of the
// token's header. kid is empty if the header has no kid.
type keyFinder interface {
	// find returns the matching keys. If the kid is unknown, find may read the JWKS again.
	find(kid string, algorithm jose.SignatureAlgorithm) []any
	// cached returns the matching keys that are already in memory, so it never blocks.
	cached(kid string, algorithm jose.SignatureAlgorithm) []any
}

// Authenticator verifies tokens. It is safe for concurrent use.
type Authenticator struct {
	opts Options
	// algorithms are the accepted signature algorithms: public-key algorithms if the keys are in a
	// JWKS, and HMAC algorithms if the key is a secret.
	algorithms []jose.SignatureAlgorithm
	keys       keyFinder
	customers  *customerCache
	// verifiedTokens caches verified signatures. The key of an entry is the SHA-256 of the token. An
	// entry is valid only while the key that verified its token is configured.
	verifiedTokens *lru.Cache[[sha256.Size]byte, *verificationKey]
}

// maxVerifiedTokens is the capacity of the cache of verified tokens. A full cache uses about two
// megabytes of memory.
const maxVerifiedTokens = 10_000

// New returns an Authenticator. If JWKS is set, New reads the JWKS and refreshes it periodically
// until ctx ends.
//
// New returns an error if the options are invalid or no keys can be read.
func New(ctx context.Context, opts Options) (*Authenticator, error) {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Verifications == nil {
		opts.Verifications = admission.New(admission.Sizes{})[admission.PoolTokenVerifications]
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
	verified, err := lru.New[[sha256.Size]byte, *verificationKey](maxVerifiedTokens)
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
		a.algorithms, a.keys = secretAlgorithms(), &sharedSecret{}
		a.ChangeSecret(opts.Secret)
		return a, nil
	}
	jwks, err := newJWKSSource(opts.JWKS)
	if err != nil {
		return nil, err
	}
	ring := &keyring{source: jwks, log: opts.Log, now: opts.Now, afterFunc: opts.AfterFunc, refreshOnUse: opts.RefreshOnUse}
	if err := ring.refresh(ctx); err != nil {
		return nil, err
	}
	if !opts.RefreshOnUse {
		ring.refreshPeriodically(ctx)
	}
	a.algorithms, a.keys = publicKeyAlgorithms(), ring
	return a, nil
}

// ChangeSecret replaces the secret, which must have at least MinSecretBytes bytes. Tokens signed
// with the previous secret are no longer valid. ChangeSecret has no effect if the keys are in a
// JWKS.
func (a *Authenticator) ChangeSecret(key []byte) {
	if s, ok := a.keys.(*sharedSecret); ok {
		s.key.Store(&key)
	}
}

// Authenticate verifies a token and returns the identity in its claims.
//
// It returns ErrUnauthenticated if the token is not valid, or an error of Options.CustomerExists or
// of ctx.
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

// HasWaitingVerifications reports whether any request waits for the verification of a signature.
func (a *Authenticator) HasWaitingVerifications() bool { return a.opts.Verifications.Waiting() > 0 }

// customerExists returns ErrUnauthenticated if the identity has a customer that does not exist. It
// returns the errors of Options.CustomerExists.
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

// maxTokenBytes is the maximum length of a token in bytes. Most tokens have one or two thousand
// bytes.
const maxTokenBytes = 8 << 10

// verify verifies the signature of a token. It returns the token's payload, and a signature that
// identifies the key.
func (a *Authenticator) verify(ctx context.Context, token string) ([]byte, *verificationKey, error) {
	if len(token) > maxTokenBytes {
		return nil, nil, newUnauthenticated(fmt.Sprintf("it exceeds %d bytes", maxTokenBytes))
	}
	// The base64 decoder ignores line breaks. Without this check, different strings would decode to
	// the same token.
	if strings.ContainsFunc(token, func(r rune) bool { return r != '.' && !isBase64URLRune(r) }) {
		return nil, nil, newUnauthenticated("it contains a character that is not allowed in tokens")
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
		return nil, nil, newUnauthenticated("no key matches its key ID and algorithm")
	}
	// If the token's signature is in the cache, it is not verified again. So a valid token does not
	// wait while the signatures of forged tokens are verified. The claims are checked in any case.
	id := sha256.Sum256([]byte(token))
	if known, ok := a.verifiedTokens.Get(id); ok && slices.ContainsFunc(keys, known.matchesKey) {
		return signed.UnsafePayloadWithoutVerification(), known, nil
	}
	// Verifying a signature can take milliseconds, and any client can cause a verification. So a pool
	// limits the number of concurrent verifications.
	caller := admission.CallerFromContext(ctx)
	if err := a.opts.Verifications.Acquire(ctx, caller, 1); err != nil {
		return nil, nil, err
	}
	defer a.opts.Verifications.Release(caller, 1)
	for _, key := range keys {
		if payload, err := signed.Verify(key); err == nil {
			verified := &verificationKey{header.KeyID, algorithm, key}
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
