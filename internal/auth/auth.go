// Package auth tells whose a token is.
//
// A token is a JWT (https://www.rfc-editor.org/rfc/rfc7519) that somebody else has issued and
// signed. Its signature is checked with a key that the operator has named, never with one that the
// token brings; its claims say who speaks (claims.go). Keys are those of a JWKS, at a URL or in a
// file (keys.go, keyring.go, source.go), or a secret that issuer and server share, never both.
// Connections that stay open are checked again while they do (watch.go). Parsing, signatures and
// the rules of JOSE are go-jose's.
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

// ErrUnauthenticated means that a token is not valid; why is for the log. What wraps it holds
// nothing of the token.
var ErrUnauthenticated = errors.New("the token is not valid")

// ErrForged is the ErrUnauthenticated of a token whose signature is not that of a key.
var ErrForged = refused("its signature is not that of the key")

// refused is ErrUnauthenticated with the reason, which never repeats what stands in a token.
func refused(why string) error { return fmt.Errorf("%w: %s", ErrUnauthenticated, why) }

// Identity is who a token speaks for.
type Identity struct {
	Principal commerce.Principal
	// Expires is when the token is over; the difference that clocks may have is in it.
	Expires time.Time
	// signature is what Watch checks again.
	signature *signature
}

// signature names the key that a token was signed with: as the token names it, and the key itself.
type signature struct {
	keyID     string
	algorithm jose.SignatureAlgorithm
	key       any
}

// isOf reports whether the signature was made with a key.
func (s *signature) isOf(key any) bool {
	switch of := s.key.(type) {
	case []byte:
		other, ok := key.([]byte)
		return ok && bytes.Equal(of, other)
	case interface{ Equal(crypto.PublicKey) bool }:
		return of.Equal(key)
	default:
		return false
	}
}

// Bounds of options.
const (
	// MinSecret is how many bytes a secret has at least
	// (https://www.rfc-editor.org/rfc/rfc7518#section-3.2).
	MinSecret = 32
	// MaxLeeway is how much the clocks of issuer and server may differ at most.
	MaxLeeway = 5 * time.Minute
)

// Options are what tokens are checked against.
type Options struct {
	// JWKS is where the public keys are, a URL or a file; empty where there is a Secret.
	JWKS string
	// Secret is shared with the issuer, of MinSecret bytes or more; empty where there is a JWKS.
	Secret []byte
	// Issuer and Audience are what a token's iss has to be, and what has to be in its aud.
	Issuer, Audience string
	// Leeway is how much the clocks of issuer and server may differ, up to MaxLeeway.
	Leeway time.Duration
	// RoleClaim and CustomerClaim are the names of the claims that say the role, and the customer's
	// id of a principal of RoleCustomer.
	RoleClaim, CustomerClaim string
	// CustomerExists reports whether there is a record of a customer, so that tokens of those who
	// were deleted are refused; nil asks nobody. Its errors are Authenticate's.
	CustomerExists func(context.Context, commerce.CustomerID) (bool, error)
	// Log is told when keys change or cannot be read.
	Log *slog.Logger
	// Verifications is the pool of signatures that are verified at the same time; nil for one of the
	// default size.
	Verifications *admission.Pool
	// Now is the clock; nil is the system's.
	Now func() time.Time
	// After calls f in its own goroutine after d, unless stop is called before; nil is
	// time.AfterFunc.
	After func(d time.Duration, f func()) (stop func() bool)
}

// keyFinder finds the keys that a token may be checked with, by the id that it names, empty where
// it names none, and the algorithm.
type keyFinder interface {
	// find may read the keys again to find one.
	find(kid string, algorithm jose.SignatureAlgorithm) []any
	// atHand never waits.
	atHand(kid string, algorithm jose.SignatureAlgorithm) []any
}

// Authenticator checks tokens. It is safe for concurrent use.
type Authenticator struct {
	opts Options
	// algorithms are those of the keys: either all with public keys, or all with a secret.
	algorithms []jose.SignatureAlgorithm
	keys       keyFinder
	customers  *customers
	// verified are the good signatures of tokens, by the SHA-256 of the token. One counts as long
	// as its key does.
	verified *lru.Cache[[sha256.Size]byte, *signature]
}

// maxVerified is how many tokens are remembered, in some two megabytes.
const maxVerified = 10_000

// New returns an Authenticator. It reads a JWKS, and again from time to time until ctx ends.
//
// Errors: one that says what is wrong with the options, or why no keys can be read.
func New(ctx context.Context, opts Options) (*Authenticator, error) {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Verifications == nil {
		opts.Verifications = admission.New(admission.Sizes{})[admission.Verifications]
	}
	if opts.After == nil {
		opts.After = func(d time.Duration, f func()) func() bool { return time.AfterFunc(d, f).Stop }
	}
	switch {
	case opts.Issuer == "" || opts.Audience == "":
		return nil, errors.New("tokens need an issuer and an audience")
	case opts.RoleClaim == "" || opts.CustomerClaim == "":
		return nil, errors.New("the claims of the role and of the customer need names")
	case opts.Leeway < 0 || opts.Leeway > MaxLeeway:
		return nil, fmt.Errorf("clocks may differ by 0s to %s, not %s", MaxLeeway, opts.Leeway)
	case (opts.JWKS == "") == (len(opts.Secret) == 0):
		return nil, errors.New("tokens are checked with the keys of a JWKS or with a secret: give one of them")
	}
	verified, err := lru.New[[sha256.Size]byte, *signature](maxVerified)
	if err != nil {
		return nil, err
	}
	a := &Authenticator{
		opts: opts, customers: newCustomers(opts.CustomerExists, opts.Now), verified: verified,
	}
	if opts.JWKS == "" {
		if len(opts.Secret) < MinSecret {
			return nil, fmt.Errorf("the secret has %d bytes: give it at least %d", len(opts.Secret), MinSecret)
		}
		a.algorithms, a.keys = secretAlgorithms(), secret(opts.Secret)
		return a, nil
	}
	from, err := newSource(opts.JWKS)
	if err != nil {
		return nil, err
	}
	ring := &keyring{source: from, log: opts.Log, now: opts.Now, after: opts.After}
	if err := ring.refresh(ctx); err != nil {
		return nil, err
	}
	ring.follow(ctx)
	a.algorithms, a.keys = publicAlgorithms(), ring
	return a, nil
}

// Authenticate tells whom a token speaks for.
//
// Errors: ErrUnauthenticated; those of Options.CustomerExists where it cannot be found out now;
// those of the context.
func (a *Authenticator) Authenticate(ctx context.Context, token string) (Identity, error) {
	payload, signature, err := a.verify(ctx, token)
	if err != nil {
		return Identity{}, err
	}
	identity, err := a.read(payload)
	if err != nil {
		return Identity{}, err
	}
	if err := a.customerExists(ctx, identity); err != nil {
		return Identity{}, err
	}
	identity.signature = signature
	return identity, nil
}

// Busy reports whether signatures wait to be verified.
func (a *Authenticator) Busy() bool { return a.opts.Verifications.Waiting() > 0 }

// customerExists refuses an identity whose customer has no record.
//
// Errors: ErrUnauthenticated; those of Options.CustomerExists.
func (a *Authenticator) customerExists(ctx context.Context, identity Identity) error {
	if identity.Principal.Customer == "" {
		return nil
	}
	switch exists, err := a.customers.exist(ctx, identity.Principal.Customer); {
	case err != nil:
		return fmt.Errorf("look up the customer of a token: %w", err)
	case !exists:
		return refused("its customer does not exist")
	default:
		return nil
	}
}

// maxToken is how many bytes a token can have; those of identity providers have one or two
// thousand.
const maxToken = 8 << 10

// verify returns the payload of a token whose signature is that of a key, and the signature.
func (a *Authenticator) verify(ctx context.Context, token string) ([]byte, *signature, error) {
	if len(token) > maxToken {
		return nil, nil, refused("it is too long")
	}
	// base64's decoder would skip line ends.
	if strings.ContainsFunc(token, func(r rune) bool { return r != '.' && !base64URL(r) }) {
		return nil, nil, refused("it holds other characters than a token does")
	}
	signed, err := jose.ParseSignedCompact(token, a.algorithms)
	if wrong := (*jose.ErrUnexpectedSignatureAlgorithm)(nil); errors.As(err, &wrong) {
		return nil, nil, refused("its algorithm is not one of the keys'")
	}
	if err != nil {
		return nil, nil, refused("it is not well-formed") // the error repeats parts of the token
	}
	header := signed.Signatures[0].Header
	for _, extension := range []jose.HeaderKey{"crit", "b64"} {
		if _, given := header.ExtraHeaders[extension]; given {
			return nil, nil, refused("its header has extensions, which are not known")
		}
	}
	algorithm := jose.SignatureAlgorithm(header.Algorithm)
	keys := a.keys.find(header.KeyID, algorithm)
	if len(keys) == 0 {
		return nil, nil, refused("no key has its id and its algorithm")
	}
	// Who was let in a moment ago does not wait behind forged tokens. What else a token says is
	// looked at each time.
	id := sha256.Sum256([]byte(token))
	if good, seen := a.verified.Get(id); seen && slices.ContainsFunc(keys, good.isOf) {
		return signed.UnsafePayloadWithoutVerification(), good, nil
	}
	// Strangers can make the server verify signatures, which takes up to milliseconds each.
	caller := admission.CallerOf(ctx)
	if err := a.opts.Verifications.Await(ctx, caller, 1); err != nil {
		return nil, nil, err
	}
	defer a.opts.Verifications.Give(caller, 1)
	for _, key := range keys {
		if payload, err := signed.Verify(key); err == nil {
			good := &signature{header.KeyID, algorithm, key}
			a.verified.Add(id, good)
			return payload, good, nil
		}
	}
	return nil, nil, ErrForged
}

// base64URL tells of the characters of base64url
// (https://www.rfc-editor.org/rfc/rfc4648#section-5).
func base64URL(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '-' || r == '_'
}
