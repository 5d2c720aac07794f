package auth

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/json"
)

// publicKeyAlgorithms returns the algorithms that are accepted if the keys come from a JWKS.
func publicKeyAlgorithms() []jose.SignatureAlgorithm {
	return []jose.SignatureAlgorithm{
		jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512, jose.ES256, jose.ES384, jose.ES512, jose.EdDSA,
	}
}

// secretAlgorithms returns the algorithms that are accepted if the issuer and the server share a
// secret.
func secretAlgorithms() []jose.SignatureAlgorithm {
	return []jose.SignatureAlgorithm{jose.HS256, jose.HS384, jose.HS512}
}

// sharedSecret is a keyFinder with one key, the secret that the issuer and the server share. The
// secret has no key ID, so sharedSecret ignores the kid of a token.
type sharedSecret struct{ key atomic.Pointer[[]byte] }

func (s *sharedSecret) find(string, jose.SignatureAlgorithm) []any { return []any{*s.key.Load()} }

func (s *sharedSecret) cached(kid string, algorithm jose.SignatureAlgorithm) []any {
	return s.find(kid, algorithm)
}

// publicKey is a key of a JWKS that can verify tokens.
type publicKey struct {
	id     string
	public any
	// algorithms are the algorithms that the key may be used with. HMAC is never one of them.
	// Otherwise, an attacker could sign a token with HMAC and use the text of a public key as the
	// secret.
	algorithms []jose.SignatureAlgorithm
}

// keyset contains those keys of a JWKS that can verify tokens.
type keyset []publicKey

// find returns the keys that can verify a token. known reports whether a key has the token's kid.
// If kid is empty, known is true. If several keys then support the algorithm, find returns none of
// them.
func (s keyset) find(kid string, algorithm jose.SignatureAlgorithm) (matching []any, known bool) {
	for _, k := range s {
		if kid != "" && k.id != kid {
			continue
		}
		known = true
		if slices.Contains(k.algorithms, algorithm) {
			matching = append(matching, k.public)
		}
	}
	if kid == "" && len(matching) > 1 {
		return nil, true
	}
	return matching, known
}

// maxKeys is the maximum number of keys in a JWKS. Typical issuers publish two or three keys.
const maxKeys = 100

// minRSABits is the minimum size of an RSA key in bits. See
// https://www.rfc-editor.org/rfc/rfc7518#section-3.3.
const minRSABits = 2048

// parseKeys parses a JWKS and skips the keys that cannot verify signatures. See
// https://www.rfc-editor.org/rfc/rfc7517#section-5.
//
// If no key is usable, parseKeys returns an error. The error contains no part of the text, because
// the text may be a secret.
func parseKeys(text []byte) (keyset, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(text, &set); err != nil || set.Keys == nil {
		return nil, errors.New(`the content is not a JWKS: expected a JSON object with the member "keys", such as {"keys": [...]}`)
	}
	if len(set.Keys) == 0 {
		return nil, errors.New("the JWKS has no keys")
	}
	if len(set.Keys) > maxKeys {
		return nil, fmt.Errorf("the JWKS has %d keys: at most %d are allowed", len(set.Keys), maxKeys)
	}
	var keys keyset
	var unusable []string
	for i, text := range set.Keys {
		k, problem := parseKey(text)
		if problem != "" {
			unusable = append(unusable, fmt.Sprintf("key %d %s", i+1, problem))
			continue
		}
		keys = append(keys, k)
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("the JWKS has no usable key: %s", strings.Join(unusable, "; "))
	}
	return keys, nil
}

// parseKey parses one key of a JWKS. If the key cannot verify signatures, the second result is the
// reason. Otherwise, the second result is empty.
func parseKey(text []byte) (publicKey, string) {
	// The type jose.JSONWebKey has no fields for these members of a key, so decode them separately.
	var members struct {
		Operations []string        `json:"key_ops"`
		Private    json.RawMessage `json:"d"`
		Secret     json.RawMessage `json:"k"`
	}
	if json.Unmarshal(text, &members) != nil {
		return publicKey{}, "is not a JWK"
	}
	if members.Private != nil || members.Secret != nil {
		return publicKey{}, "is secret: publish public keys only, because a secret key can sign tokens"
	}
	var parsed jose.JSONWebKey
	if err := parsed.UnmarshalJSON(text); err != nil {
		return publicKey{}, "has an unknown key type or is malformed"
	}
	if parsed.Use != "" && parsed.Use != "sig" || members.Operations != nil && !slices.Contains(members.Operations, "verify") {
		return publicKey{}, "is not for signatures"
	}
	k := publicKey{id: parsed.KeyID, public: parsed.Key}
	switch public := parsed.Key.(type) {
	case *rsa.PublicKey:
		if public.N.BitLen() < minRSABits {
			return publicKey{}, fmt.Sprintf("is too short: RSA keys need at least %d bits", minRSABits)
		}
		k.algorithms = []jose.SignatureAlgorithm{jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512}
	case *ecdsa.PublicKey:
		// Each elliptic curve has one algorithm. See https://www.rfc-editor.org/rfc/rfc7518#section-3.4.
		k.algorithms = map[string][]jose.SignatureAlgorithm{"P-256": {jose.ES256}, "P-384": {jose.ES384}, "P-521": {jose.ES512}}[public.Params().Name]
	case ed25519.PublicKey:
		k.algorithms = []jose.SignatureAlgorithm{jose.EdDSA}
	}
	if parsed.Algorithm != "" {
		k.algorithms = slices.DeleteFunc(k.algorithms, func(a jose.SignatureAlgorithm) bool { return string(a) != parsed.Algorithm })
	}
	if len(k.algorithms) == 0 {
		return publicKey{}, "has an algorithm that is unknown or does not match the key type"
	}
	return k, ""
}
