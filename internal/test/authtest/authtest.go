// Package authtest creates keys, valid tokens and forged tokens for tests. Its signing code does
// not use go-jose, the library that verifies the tokens. A bug in go-jose therefore cannot affect
// both sides of a test.
package authtest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"testing"
	"time"

	// These imports register the hash functions that Key.sign uses.
	_ "crypto/sha256"
	_ "crypto/sha512"
)

// Issuer and Audience are the values of the iss and aud claims that Claims returns.
const (
	Issuer   = "https://id.example/"
	Audience = "https://shop.example/graphql"
)

// Object is a JSON object.
type Object = map[string]any

// Claims returns the claims of a token that expires one hour after now. The claims in the parameter
// others replace default claims with the same name. If a value in others is nil, Claims omits the
// claim.
func Claims(now time.Time, others Object) Object {
	return override(Object{"iss": Issuer, "aud": Audience, "sub": "user-1", "exp": now.Add(time.Hour).Unix(), "iat": now.Unix(), "role": "ADMIN"}, others)
}

// override copies the members of others to o, and then removes all members with a nil value from o.
func override(o, others Object) Object {
	maps.Copy(o, others)
	maps.DeleteFunc(o, func(_ string, v any) bool { return v == nil })
	return o
}

// Key is a key that signs tokens.
type Key struct {
	ID, Algorithm string
	// Private is a crypto.Signer, or a []byte for a symmetric key.
	Private any
}

// NewKey generates a key for a JWT signature algorithm, such as EdDSA, RS256, PS384 or ES512.
func NewKey(t testing.TB, id, algorithm string) Key {
	t.Helper()
	var private crypto.Signer
	var err error
	switch algorithm[:2] {
	case "RS", "PS":
		private, err = rsa.GenerateKey(rand.Reader, 2048)
	case "ES":
		private, err = ecdsa.GenerateKey(map[string]elliptic.Curve{"ES256": elliptic.P256(), "ES384": elliptic.P384(), "ES512": elliptic.P521()}[algorithm], rand.Reader)
	default:
		_, private, err = ed25519.GenerateKey(rand.Reader)
	}
	if err != nil {
		t.Fatal(err)
	}
	return Key{id, algorithm, private}
}

// JWK returns the public key as a JSON Web Key. The members of the parameter others replace default
// members with the same name. If a value in others is nil, JWK omits the member.
func (k Key) JWK(t testing.TB, others Object) Object {
	t.Helper()
	jwk := Object{"kid": k.ID, "alg": k.Algorithm, "use": "sig"}
	switch public := k.Private.(crypto.Signer).Public().(type) {
	case *rsa.PublicKey:
		jwk["kty"], jwk["n"], jwk["e"] = "RSA", base64URL(public.N.Bytes()), base64URL(big.NewInt(int64(public.E)).Bytes())
	case *ecdsa.PublicKey:
		point, err := public.Bytes() // the byte 4, followed by the coordinates x and y
		if err != nil {
			t.Fatal(err)
		}
		half := len(point) / 2
		jwk["kty"], jwk["crv"], jwk["x"], jwk["y"] = "EC", public.Params().Name, base64URL(point[1:1+half]), base64URL(point[1+half:])
	case ed25519.PublicKey:
		jwk["kty"], jwk["crv"], jwk["x"] = "OKP", "Ed25519", base64URL(public)
	}
	return override(jwk, others)
}

// JWKS returns a JSON Web Key Set that contains the given keys.
func JWKS(t testing.TB, jwks ...Object) []byte {
	t.Helper()
	return encode(t, Object{"keys": jwks})
}

// Token returns a signed token. claims is an Object, or a []byte with the exact payload. The
// members of the parameter header replace default members of the token's header. If a value in
// header is nil, Token omits the member.
func (k Key) Token(t testing.TB, claims any, header Object) string {
	t.Helper()
	payload, raw := claims.([]byte)
	if !raw {
		payload = encode(t, claims)
	}
	return AssembleToken(encode(t, override(Object{"alg": k.Algorithm, "kid": k.ID, "typ": "JWT"}, header)), payload, func(input []byte) []byte { return k.sign(t, input) })
}

// AssembleToken returns a token with the given header and payload, and does not validate them. The
// function sign must return the signature of its input.
func AssembleToken(header, payload []byte, sign func(input []byte) []byte) string {
	input := base64URL(header) + "." + base64URL(payload)
	return input + "." + base64URL(sign([]byte(input)))
}

// sign returns the signature of input as RFC 7518, section 3, specifies.
func (k Key) sign(t testing.TB, input []byte) []byte {
	t.Helper()
	hash := map[string]crypto.Hash{"256": crypto.SHA256, "384": crypto.SHA384, "512": crypto.SHA512}[k.Algorithm[2:]]
	if secret, ok := k.Private.([]byte); ok {
		mac := hmac.New(hash.New, secret)
		mac.Write(input)
		return mac.Sum(nil)
	}
	digest := input
	if hash != 0 {
		h := hash.New()
		h.Write(input)
		digest = h.Sum(nil)
	}
	switch private := k.Private.(type) {
	case *ecdsa.PrivateKey:
		r, s, err := ecdsa.Sign(rand.Reader, private, digest)
		if err != nil {
			t.Fatal(err)
		}
		size := (private.Params().BitSize + 7) / 8
		signature := make([]byte, 2*size)
		r.FillBytes(signature[:size])
		s.FillBytes(signature[size:])
		return signature
	case crypto.Signer:
		var options crypto.SignerOpts = hash
		if k.Algorithm[0] == 'P' {
			options = &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash, Hash: hash}
		}
		signature, err := private.Sign(rand.Reader, digest, options)
		if err != nil {
			t.Fatal(err)
		}
		return signature
	}
	panic(fmt.Sprintf("unsupported key type %T", k.Private))
}

func encode(t testing.TB, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func base64URL(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }
