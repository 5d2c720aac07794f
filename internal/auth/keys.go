package auth

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/json"
)

// publicAlgorithms are those of tokens where the keys are those of a JWKS.
func publicAlgorithms() []jose.SignatureAlgorithm {
	return []jose.SignatureAlgorithm{
		jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512, jose.ES256, jose.ES384, jose.ES512, jose.EdDSA,
	}
}

// secretAlgorithms are those of tokens where the key is a secret.
func secretAlgorithms() []jose.SignatureAlgorithm {
	return []jose.SignatureAlgorithm{jose.HS256, jose.HS384, jose.HS512}
}

// secret is a key that issuer and server share. It has no id, so what id a token names does not
// matter.
type secret []byte

func (s secret) find(string, jose.SignatureAlgorithm) []any { return []any{[]byte(s)} }

func (s secret) atHand(kid string, algorithm jose.SignatureAlgorithm) []any {
	return s.find(kid, algorithm)
}

// key is a public key with the algorithms that it is used with, and no others: a key cannot be
// taken for one of another kind, such as the text of an RSA key for a secret.
type key struct {
	id         string
	public     any
	algorithms []jose.SignatureAlgorithm
}

// keyset is the keys of a JWKS.
type keyset []key

// find returns the keys for a token, and whether the id that it names is one of the set's. A token
// that names none is checked where only one key of the set is for its algorithm.
func (s keyset) find(kid string, algorithm jose.SignatureAlgorithm) (fitting []any, known bool) {
	for _, k := range s {
		if kid != "" && k.id != kid {
			continue
		}
		known = true
		if slices.Contains(k.algorithms, algorithm) {
			fitting = append(fitting, k.public)
		}
	}
	if kid == "" && len(fitting) > 1 {
		return nil, true
	}
	return fitting, known
}

// maxKeys is how many keys a JWKS can have; issuers have two or three.
const maxKeys = 100

// minModulus is how many bits an RSA key has at least
// (https://www.rfc-editor.org/rfc/rfc7518#section-3.3). go-jose bounds the most.
const minModulus = 2048

// parseKeys reads a JWKS (https://www.rfc-editor.org/rfc/rfc7517#section-5). Keys that are not for
// signatures, or that cannot be used, are left out, as the RFC wants: an issuer may publish some
// for others.
//
// Errors: one that says why there is no key that can be used. It repeats nothing but ids of keys,
// as what is no JWKS may be a secret.
func parseKeys(text []byte) (keyset, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(text, &set); err != nil || set.Keys == nil {
		return nil, errors.New(`there is no JWKS: it is a JSON object with keys, {"keys": [...]}`)
	}
	if len(set.Keys) == 0 {
		return nil, errors.New("the JWKS has no keys")
	}
	if len(set.Keys) > maxKeys {
		return nil, fmt.Errorf("the JWKS has %d keys: at most %d are read", len(set.Keys), maxKeys)
	}
	var keys keyset
	var unusable []string
	for i, text := range set.Keys {
		k, why := parseKey(text)
		if why != "" {
			unusable = append(unusable, fmt.Sprintf("key %d %s", i+1, why))
			continue
		}
		keys = append(keys, k)
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("the JWKS has no key that can be used: %s", strings.Join(unusable, "; "))
	}
	return keys, nil
}

// parseKey reads a key, or tells why it cannot be used.
func parseKey(text []byte) (key, string) {
	// What go-jose does not tell of a key.
	var says struct {
		Operations []string        `json:"key_ops"`
		Private    json.RawMessage `json:"d"`
		Secret     json.RawMessage `json:"k"`
	}
	if json.Unmarshal(text, &says) != nil {
		return key{}, "is no JWK"
	}
	if says.Private != nil || says.Secret != nil {
		return key{}, "is secret: whoever can read it can make tokens, so publish public keys only"
	}
	var parsed jose.JSONWebKey
	if err := parsed.UnmarshalJSON(text); err != nil {
		return key{}, "is of an unknown kind, or malformed"
	}
	if parsed.Use != "" && parsed.Use != "sig" || says.Operations != nil && !slices.Contains(says.Operations, "verify") {
		return key{}, "is not for signatures"
	}
	k := key{id: parsed.KeyID, public: parsed.Key}
	switch public := parsed.Key.(type) {
	case *rsa.PublicKey:
		if public.N.BitLen() < minModulus {
			return key{}, fmt.Sprintf("is weak: RSA keys have at least %d bits", minModulus)
		}
		k.algorithms = []jose.SignatureAlgorithm{jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512}
	case *ecdsa.PublicKey:
		// By the curve's name: each is for one algorithm
		// (https://www.rfc-editor.org/rfc/rfc7518#section-3.4).
		k.algorithms = map[string][]jose.SignatureAlgorithm{"P-256": {jose.ES256}, "P-384": {jose.ES384}, "P-521": {jose.ES512}}[public.Params().Name]
	case ed25519.PublicKey:
		k.algorithms = []jose.SignatureAlgorithm{jose.EdDSA}
	}
	if parsed.Algorithm != "" {
		k.algorithms = slices.DeleteFunc(k.algorithms, func(a jose.SignatureAlgorithm) bool { return string(a) != parsed.Algorithm })
	}
	if len(k.algorithms) == 0 {
		return key{}, "is for an algorithm that is not its kind's, or not known"
	}
	return k, ""
}
