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

	"github.com/ordergraph/ordergraph/commerce"
)

// MintingKey makes tokens, for development: elsewhere issuers do.
type MintingKey struct {
	private   any
	algorithm jose.SignatureAlgorithm
	// id is the key's thumbprint (https://www.rfc-editor.org/rfc/rfc7638); a secret has none.
	id string
}

// NewMintingKey makes a key, of Ed25519.
func NewMintingKey() (*MintingKey, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	return newMintingKey(private)
}

// SecretMintingKey is the key of a secret that is shared with the server, of MinSecret bytes or
// more.
func SecretMintingKey(secret []byte) *MintingKey {
	return &MintingKey{private: secret, algorithm: jose.HS256}
}

// blockType is PKCS #8's (https://www.rfc-editor.org/rfc/rfc7468#section-10).
const blockType = "PRIVATE KEY"

// ReadMintingKey reads a key of Ed25519, an elliptic curve or RSA from PEM, in PKCS #8.
//
// Errors: one that says what is wrong with it, and nothing of the key.
func ReadMintingKey(text []byte) (*MintingKey, error) {
	block, _ := pem.Decode(text)
	if block == nil || block.Type != blockType {
		return nil, fmt.Errorf("there is no PEM block %q in it: make one with `ordergraph token key`, or bring yours into this form with `openssl pkcs8 -topk8 -nocrypt`", blockType)
	}
	private, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, errors.New("it holds no private key that can be read")
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
		if private.N.BitLen() >= minModulus {
			k.algorithm = jose.RS256
		}
	}
	if k.algorithm == "" {
		return nil, fmt.Errorf("the key can be of Ed25519, of P-256, P-384 or P-521, or of RSA with at least %d bits", minModulus)
	}
	thumbprint, err := k.public().Thumbprint(crypto.SHA256)
	if err != nil {
		return nil, err
	}
	k.id = base64.RawURLEncoding.EncodeToString(thumbprint)
	return k, nil
}

// public is the public key; a secret has none.
func (k *MintingKey) public() *jose.JSONWebKey {
	p := (&jose.JSONWebKey{Key: k.private, KeyID: k.id, Algorithm: string(k.algorithm), Use: "sig"}).Public()
	return &p
}

// JWKS is what a server checks the key's tokens with, as JSON.
func (k *MintingKey) JWKS() ([]byte, error) {
	return json.MarshalIndent(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{*k.public()}}, "", "  ")
}

// PEM is the private key.
func (k *MintingKey) PEM() ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(k.private)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: blockType, Bytes: der}), nil
}

// Mint makes a token that opts accept, from now on for so long.
func (k *MintingKey) Mint(opts Options, subject string, role commerce.Role, customer commerce.CustomerID, now time.Time, ttl time.Duration) (string, error) {
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: k.algorithm, Key: jose.JSONWebKey{Key: k.private, KeyID: k.id}}, (&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		return "", fmt.Errorf("sign a token: %w", err)
	}
	own := map[string]any{opts.RoleClaim: role.String()}
	if customer != "" {
		own[opts.CustomerClaim] = customer
	}
	return jwt.Signed(signer).Claims(own).Claims(jwt.Claims{
		Issuer: opts.Issuer, Audience: jwt.Audience{opts.Audience}, Subject: subject,
		IssuedAt: jwt.NewNumericDate(now), Expiry: jwt.NewNumericDate(now.Add(ttl)),
	}).Serialize()
}
