// Package auth authenticates callers by their tokens.
//
// A token is a JSON Web Token (JWT, https://www.rfc-editor.org/rfc/rfc7519). It is signed by an
// identity provider, which is called the issuer. The package verifies the signature only with keys
// that the operator has configured. It never uses a key from the token itself. The operator
// configures either a set of public keys (a JWKS) or a secret that the issuer and the server share.
// The JWKS is read from a URL or a file.
//
// The claims in a token determine the caller's ID, role and customer. While a connection is open,
// its token is checked again periodically. The library go-jose parses tokens and verifies
// signatures.
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

	"github.com/ordergraph/ordergraph/access"
	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/internal/admission"
)

// ErrUnauthenticated means that a token is not valid. An error that wraps ErrUnauthenticated
// contains the reason. Log the reason, but do not send it to the client.
var ErrUnauthenticated = errors.New("the token is not valid")

// ErrInvalidSignature means that no key with a token's key ID and algorithm verifies the token's
// signature. It wraps ErrUnauthenticated.
var ErrInvalidSignature = newUnauthenticated("its signature does not match the key")

// newUnauthenticated returns an error that wraps ErrUnauthenticated and contains a reason. The
// reason must not contain any part of a token.
func newUnauthenticated(reason string) error { return fmt.Errorf("%w: %s", ErrUnauthenticated, reason) }

// Identity describes the caller that a valid token identifies.
type Identity struct {
	Principal access.Principal
	// Expires is the expiry time of the token plus Options.Leeway.
	Expires time.Time
	// signature identifies the key that verified the token. Watch uses it to detect that this key is
	// no longer configured.
	signature *verificationKey
}

// verificationKey identifies the key that verified a token. keyID and algorithm are the values of
// kid and alg in the token's header.
type verificationKey struct {
	keyID     string
	algorithm jose.SignatureAlgorithm
	key       any
}

// matchesKey reports whether key equals the key that verified the token.
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

// Limits for the values in Options.
const (
	// MinSecretBytes is the minimum length of a secret in bytes. See
	// https://www.rfc-editor.org/rfc/rfc7518#section-3.2.
	MinSecretBytes = 32
	// MaxLeeway is the maximum value of Options.Leeway.
	MaxLeeway = 5 * time.Minute
)

// Options configures how an Authenticator verifies tokens.
type Options struct {
	// JWKS is the URL or the file name of the JSON Web Key Set (JWKS) with the issuer's public keys.
	// Set either JWKS or Secret.
	JWKS string
	// Secret is the secret that the issuer and the server share. It must have at least MinSecretBytes
	// bytes. Set either JWKS or Secret.
	Secret []byte
	// Issuer is the value that the iss claim of each token must have. Audience is a value that the aud
	// claim of each token must contain.
	Issuer, Audience string
	// Leeway is the tolerated difference between the clocks of the issuer and the server. The maximum
	// is MaxLeeway.
	Leeway time.Duration
	// RoleClaim is the name of the claim that contains the role. CustomerClaim is the name of the
	// claim that contains the customer's ID. A token needs the customer claim only if its role is
	// access.RoleCustomer.
	RoleClaim, CustomerClaim string
	// CustomerExists reports whether the store contains a customer. If the customer does not exist,
	// Authenticate rejects the token. If CustomerExists is nil, Authenticate skips this check.
	CustomerExists func(context.Context, commerce.CustomerID) (bool, error)
	// Log is the logger for changes of the keys and for errors while reading the keys.
	Log *slog.Logger
	// Verifications limits how many signatures the server verifies concurrently. If it is nil, New
	// creates a pool of the default size.
	Verifications *admission.Pool
	// If RefreshOnUse is true, the JWKS is refreshed only when a token is verified, and not in the
	// background. Set RefreshOnUse in AWS Lambda, which freezes idle processes.
	RefreshOnUse bool
	// Now is the clock. If it is nil, New uses time.Now.
	Now func() time.Time
	// AfterFunc calls f in its own goroutine after the duration d. The function stop cancels the call,
	// and reports whether it was still pending. If AfterFunc is nil, New uses time.AfterFunc.
	AfterFunc func(d time.Duration, f func()) (stop func() bool)
}

// keyFinder finds the keys that can verify a token. kid and algorithm come from the token's header.
// If the header has no kid, kid is empty.
type keyFinder interface {
	// find returns the matching keys. If no key has the kid, find may read the JWKS again.
	find(kid string, algorithm jose.SignatureAlgorithm) []any
	// cached returns the matching keys that are already in memory, so it never blocks.
	cached(kid string, algorithm jose.SignatureAlgorithm) []any
}

// Authenticator verifies tokens. It is safe for concurrent use.
type Authenticator struct {
	opts Options
	// algorithms are the accepted signature algorithms. They are public-key algorithms if Options.JWKS
	// is set, and HMAC algorithms if Options.Secret is set.
	algorithms []jose.SignatureAlgorithm
	keys       keyFinder
	customers  *customerCache
	// verifiedTokens maps the SHA-256 hash of a token to the key that verified the token's signature.
	// An entry is valid only while that key is configured.
	verifiedTokens *lru.Cache[[sha256.Size]byte, *verificationKey]
}

// maxVerifiedTokens is the capacity of the cache of verified tokens. A full cache uses about two
// megabytes of memory.
const maxVerifiedTokens = 10_000

// New returns an Authenticator. When ctx ends, the Authenticator stops refreshing the JWKS in the
// background.
//
// New returns an error if the options are invalid or if it cannot read any keys.
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
		return nil, fmt.Errorf("the leeway must be from 0s to %s, but is %s", MaxLeeway, opts.Leeway)
	case (opts.JWKS == "") == (len(opts.Secret) == 0):
		return nil, errors.New("either a JWKS or a secret is required, but not both")
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

// ChangeSecret replaces the secret that the issuer and the server share. The new secret must have
// at least MinSecretBytes bytes. Tokens that were signed with the previous secret are then no
// longer valid.
func (a *Authenticator) ChangeSecret(key []byte) {
	if s, ok := a.keys.(*sharedSecret); ok {
		s.key.Store(&key)
	}
}

// Authenticate verifies a token and returns the identity in its claims. If the token is not valid,
// the error wraps ErrUnauthenticated. Other errors come from Options.CustomerExists or ctx.
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

// HasWaitingVerifications reports whether a request is waiting until the server can verify its
// token. A request waits if the maximum number of verifications is in progress.
func (a *Authenticator) HasWaitingVerifications() bool { return a.opts.Verifications.Waiting() > 0 }

// customerExists returns nil if the identity's customer exists, or if the identity has no customer.
// If the customer does not exist, the error wraps ErrUnauthenticated. customerExists can also
// return an error of Options.CustomerExists.
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

// maxTokenBytes is the maximum length of a token in bytes. Most tokens have only one or two
// thousand bytes.
const maxTokenBytes = 8 << 10

// verify verifies the signature of a token. It returns the token's payload and the key that
// verified the signature.
func (a *Authenticator) verify(ctx context.Context, token string) ([]byte, *verificationKey, error) {
	if len(token) > maxTokenBytes {
		return nil, nil, newUnauthenticated(fmt.Sprintf("it exceeds %d bytes", maxTokenBytes))
	}
	// Reject line breaks and all other characters outside base64url. The base64 decoder ignores line
	// breaks, so without this check, several strings would decode to the same token.
	if strings.ContainsFunc(token, func(r rune) bool { return r != '.' && !isBase64URLRune(r) }) {
		return nil, nil, newUnauthenticated("it contains a character that is not allowed in tokens")
	}
	signed, err := jose.ParseSignedCompact(token, a.algorithms)
	if unexpected := (*jose.ErrUnexpectedSignatureAlgorithm)(nil); errors.As(err, &unexpected) {
		return nil, nil, newUnauthenticated("its algorithm is not accepted")
	}
	if err != nil {
		return nil, nil, newUnauthenticated("it is malformed") // omit err, because it contains parts of the token
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
	// If the cache contains the token, do not verify its signature again. A token in the cache
	// therefore does not wait while other clients send forged tokens. Authenticate still checks the
	// claims.
	id := sha256.Sum256([]byte(token))
	if known, ok := a.verifiedTokens.Get(id); ok && slices.ContainsFunc(keys, known.matchesKey) {
		return signed.UnsafePayloadWithoutVerification(), known, nil
	}
	// Verifying a signature can take milliseconds, and any client can send tokens. The pool therefore
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

// isBase64URLRune reports whether r is in the base64url alphabet. See
// https://www.rfc-editor.org/rfc/rfc4648#section-5.
func isBase64URLRune(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '-' || r == '_'
}
