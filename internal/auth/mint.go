package auth

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/ordergraph/ordergraph/access"
	"github.com/ordergraph/ordergraph/commerce"
)

// MintingKey is a key that signs tokens for development. In production, only the issuer signs
// tokens.
type MintingKey struct {
	private   any
	algorithm jose.SignatureAlgorithm
	// keyID is the key's thumbprint, as defined in https://www.rfc-editor.org/rfc/rfc7638. If the key
	// is a secret, keyID is empty.
	keyID string
}

// NewMintingKey generates a new Ed25519 key pair for signing tokens.
func NewMintingKey() (*MintingKey, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	return newMintingKey(private)
}

// NewSecretMintingKey returns a key that signs tokens with a secret. The secret must have at least
// MinSecretBytes bytes, and the server must be configured with the same secret.
func NewSecretMintingKey(secret []byte) *MintingKey {
	return &MintingKey{private: secret, algorithm: jose.HS256}
}

// pemType is the label of a PEM block with a private key in PKCS #8 format. See
// https://www.rfc-editor.org/rfc/rfc7468#section-10.
const pemType = "PRIVATE KEY"

// ParseMintingKey parses a private key in PKCS #8 PEM format. The key must be an Ed25519,
// elliptic-curve or RSA key.
//
// The errors of ParseMintingKey contain no part of the key.
func ParseMintingKey(text []byte) (*MintingKey, error) {
	block, _ := pem.Decode(text)
	if block == nil || block.Type != pemType {
		return nil, fmt.Errorf("no PEM block %q found: create a key with `ordergraph token key FILE`, or convert your key with `openssl pkcs8 -topk8 -nocrypt`", pemType)
	}
	private, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, errors.New("the private key cannot be parsed")
	}
	return newMintingKey(private)
}

func newMintingKey(private any) (*MintingKey, error) {
	k := &MintingKey{private: private}
	switch private := private.(type) {
	case ed25519.PrivateKey:
		k.algorithm = jose.EdDSA
	case *ecdsa.PrivateKey:
		k.algorithm = map[string]jose.SignatureAlgorithm{"P-256": jose.ES256, "P-384": jose.ES384, "P-521": jose.ES512}[private.Params().Name]
	case *rsa.PrivateKey:
		if private.N.BitLen() >= minRSABits {
			k.algorithm = jose.RS256
		}
	}
	if k.algorithm == "" {
		return nil, fmt.Errorf("unsupported key: use Ed25519, P-256, P-384, P-521, or RSA with at least %d bits", minRSABits)
	}
	thumbprint, err := k.publicJWK().Thumbprint(crypto.SHA256)
	if err != nil {
		return nil, err
	}
	k.keyID = base64.RawURLEncoding.EncodeToString(thumbprint)
	return k, nil
}

// publicJWK returns the public key as a JWK. It must not be called if the key is a secret.
func (k *MintingKey) publicJWK() *jose.JSONWebKey {
	p := (&jose.JSONWebKey{Key: k.private, KeyID: k.keyID, Algorithm: string(k.algorithm), Use: "sig"}).Public()
	return &p
}

// JWKS returns a JSON Web Key Set that contains the public key. It must not be called if the key is
// a secret.
func (k *MintingKey) JWKS() ([]byte, error) {
	return json.MarshalIndent(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{*k.publicJWK()}}, "", "  ")
}

// PEM returns the private key in PKCS #8 PEM format. If the key is a secret, PEM returns an error.
func (k *MintingKey) PEM() ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(k.private)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: pemType, Bytes: der}), nil
}

// Mint returns a signed token for an Authenticator with the given options. The token expires at now
// plus ttl. If customer is empty, the token has no customer claim.
func (k *MintingKey) Mint(opts Options, subject string, role access.Role, customer commerce.CustomerID, now time.Time, ttl time.Duration) (string, error) {
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: k.algorithm, Key: jose.JSONWebKey{Key: k.private, KeyID: k.keyID}}, (&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		return "", fmt.Errorf("sign a token: %w", err)
	}
	custom := map[string]any{opts.RoleClaim: role.String()}
	if customer != "" {
		custom[opts.CustomerClaim] = customer
	}
	return jwt.Signed(signer).Claims(custom).Claims(jwt.Claims{
		Issuer: opts.Issuer, Audience: jwt.Audience{opts.Audience}, Subject: subject,
		IssuedAt: jwt.NewNumericDate(now), Expiry: jwt.NewNumericDate(now.Add(ttl)),
	}).Serialize()
}
