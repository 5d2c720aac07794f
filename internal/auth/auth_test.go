package auth_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ordergraph/ordergraph/access"
	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/internal/auth"
	"github.com/ordergraph/ordergraph/internal/test/authtest"
)

// now is the time of the tests.
var now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

type object = authtest.Object

// options returns options that accept the tokens of authtest at now, with a leeway of a minute.
func options() auth.Options {
	return auth.Options{
		Issuer: authtest.Issuer, Audience: authtest.Audience, Leeway: time.Minute, RoleClaim: "role", CustomerClaim: "customer_id",
		Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return now },
	}
}

// writeJWKS writes a JWKS to a temporary file and returns its name.
func writeJWKS(t testing.TB, jwks []byte) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "jwks.json")
	if err := os.WriteFile(name, jwks, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// newWithKeys returns an Authenticator with the given JWKs.
func newWithKeys(t testing.TB, jwks ...object) *auth.Authenticator {
	t.Helper()
	opts := options()
	opts.JWKS = writeJWKS(t, authtest.JWKS(t, jwks...))
	return newAuthenticator(t, opts)
}

func newAuthenticator(t testing.TB, opts auth.Options) *auth.Authenticator {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(stop)
	a, err := auth.New(ctx, opts)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func checkAccepted(t testing.TB, a *auth.Authenticator, token, name string) auth.Identity {
	t.Helper()
	identity, err := a.Authenticate(t.Context(), token)
	if err != nil {
		t.Errorf("%s: %v", name, err)
	}
	return identity
}

// checkRejected checks that a token is rejected, that the reason contains the given text, and that
// the reason repeats nothing of the token.
func checkRejected(t testing.TB, a *auth.Authenticator, token, name, reason string) {
	t.Helper()
	identity, err := a.Authenticate(t.Context(), token)
	if !errors.Is(err, auth.ErrUnauthenticated) || identity != (auth.Identity{}) {
		t.Errorf("%s: %+v, %v", name, identity, err)
		return
	}
	if !strings.Contains(err.Error(), reason) {
		t.Errorf("%s: the reason is %q, want one with %q", name, err, reason)
	}
	for part := range strings.SplitSeq(token, ".") {
		if part != "" && strings.Contains(err.Error(), part) {
			t.Errorf("%s: the reason %q repeats the token", name, err)
		}
	}
}

var algorithms = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}

// keys returns a key for each algorithm, with the algorithm as its ID. All RSA algorithms share one
// key, because generating RSA keys is slow.
var keys = sync.OnceValue(func() map[string]authtest.Key {
	all := map[string]authtest.Key{}
	for _, algorithm := range algorithms {
		k := authtest.Key{ID: algorithm, Algorithm: algorithm}
		if shared, ok := all["RS256"]; ok && algorithm[1] == 'S' && algorithm[0] != 'E' {
			k.Private = shared.Private
		} else {
			k = authtest.NewKey(panicTB{}, algorithm, algorithm)
		}
		all[algorithm] = k
	}
	return all
})

// panicTB is a testing.TB that panics on failure.
type panicTB struct{ testing.TB }

func (panicTB) Helper()           {}
func (panicTB) Fatal(args ...any) { panic(args) }

func TestAllAlgorithms(t *testing.T) {
	var jwks []object
	for _, k := range keys() {
		jwks = append(jwks, k.JWK(t, nil))
	}
	a := newWithKeys(t, jwks...)
	for _, algorithm := range algorithms {
		k := keys()[algorithm]
		got := checkAccepted(t, a, k.Token(t, authtest.Claims(now, nil), nil), algorithm)
		want := access.Principal{ID: got.Principal.ID, Name: "user-1", Role: access.RoleAdmin}
		if !got.Expires.Equal(now.Add(time.Hour+time.Minute)) || got.Principal != want {
			t.Errorf("%s: %+v, want %+v", algorithm, got, want)
		}
		// Flipping one bit of the signature invalidates it.
		token := k.Token(t, authtest.Claims(now, nil), nil)
		signature, err := base64.RawURLEncoding.DecodeString(token[strings.LastIndex(token, ".")+1:])
		if err != nil {
			t.Fatal(err)
		}
		signature[len(signature)/2] ^= 1
		forged := token[:strings.LastIndex(token, ".")+1] + base64.RawURLEncoding.EncodeToString(signature)
		checkRejected(t, a, forged, algorithm+" with a bit changed", "signature")
		// A key of another algorithm is not used.
		for _, other := range algorithms {
			if other != algorithm {
				checkRejected(t, a, k.Token(t, authtest.Claims(now, nil), object{"kid": other}), algorithm+" with the key of "+other, "no key matches its key ID and algorithm")
			}
		}
	}
}

// A secret verifies only HMAC algorithms, and a public key never does. Otherwise anyone who knows a
// public key could use it as a secret.
func TestAlgorithmConfusion(t *testing.T) {
	rs := keys()["RS256"]
	public := rs.Private.(*rsa.PrivateKey).Public().(*rsa.PublicKey)
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	block := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	pkcs1 := x509.MarshalPKCS1PublicKey(public)
	jwk, err := json.Marshal(rs.JWK(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	for _, anyAlgorithm := range []object{nil, {"alg": nil}} {
		a := newWithKeys(t, rs.JWK(t, anyAlgorithm))
		checkAccepted(t, a, rs.Token(t, authtest.Claims(now, nil), nil), "the key itself")
		for name, secret := range map[string][]byte{
			"PEM": block, "PEM without its last line end": bytes.TrimSpace(block), "DER": der, "PKCS #1": pkcs1,
			"PEM of PKCS #1": pem.EncodeToMemory(&pem.Block{Type: "RSA PUBLIC KEY", Bytes: pkcs1}),
			"the modulus":    public.N.Bytes(), "the modulus as text": []byte(public.N.String()), "the JWK": jwk, "the modulus in the JWK": []byte(rs.JWK(t, nil)["n"].(string)), "nothing": {},
		} {
			for _, algorithm := range []string{"HS256", "HS384", "HS512"} {
				forger := authtest.Key{ID: "RS256", Algorithm: algorithm, Private: secret}
				checkRejected(t, a, forger.Token(t, authtest.Claims(now, nil), nil), algorithm+" with "+name, "algorithm")
			}
		}
	}

	opts := options()
	opts.Secret = []byte(strings.Repeat("a good secret of 64 bytes, or so ", 2))
	a := newAuthenticator(t, opts)
	for _, algorithm := range []string{"HS256", "HS384", "HS512"} {
		checkAccepted(t, a, authtest.Key{Algorithm: algorithm, Private: opts.Secret}.Token(t, authtest.Claims(now, nil), nil), algorithm)
		checkRejected(t, a, authtest.Key{Algorithm: algorithm, Private: opts.Secret[1:]}.Token(t, authtest.Claims(now, nil), nil), algorithm+" of another secret", "signature")
	}
	for _, algorithm := range algorithms {
		checkRejected(t, a, keys()[algorithm].Token(t, authtest.Claims(now, nil), nil), algorithm+" with a secret configured", "algorithm")
	}
}

// A token that is unsigned, or chooses its own key in its header, is rejected.
func TestForgedHeaders(t *testing.T) {
	es, attackerKey := keys()["ES256"], authtest.NewKey(t, "ES256", "ES256")
	a := newWithKeys(t, es.JWK(t, nil))
	payload, err := json.Marshal(authtest.Claims(now, nil))
	if err != nil {
		t.Fatal(err)
	}
	none := func([]byte) []byte { return nil }
	for _, algorithm := range []any{"none", "None", "NONE", "nOnE", "", nil, "HS256", "es256", "ES256 ", "RS256", "ES384", "ES256K", 1, []string{"ES256"}, object{"alg": "ES256"}} {
		header, err := json.Marshal(object{"alg": algorithm, "kid": "ES256"})
		if err != nil {
			t.Fatal(err)
		}
		checkRejected(t, a, authtest.AssembleToken(header, payload, none), "unsigned "+string(header), "")
		checkRejected(t, a, authtest.AssembleToken(header, payload, func([]byte) []byte { return []byte("signature") }), "a made-up signature "+string(header), "")
	}
	claims := authtest.Claims(now, nil)
	valid := es.Token(t, claims, nil)
	parts := strings.Split(valid, ".")
	for name, token := range map[string]string{
		"nothing":                   "",
		"dots":                      "..",
		"three dots":                "...",
		"no signature":              parts[0] + "." + parts[1] + ".",
		"two parts":                 parts[0] + "." + parts[1],
		"no payload":                parts[0] + ".." + parts[2],
		"four parts":                valid + "." + parts[2],
		"five parts":                valid + "." + parts[1] + "." + parts[2],
		"padding":                   valid + "==",
		"the JSON form":             `{"protected":"` + parts[0] + `","payload":"` + parts[1] + `","signature":"` + parts[2] + `"}`,
		"a space":                   parts[0] + ". " + parts[1] + "." + parts[2],
		"a line end":                parts[0] + ".\n" + parts[1] + "." + parts[2],
		"two tokens":                valid + "," + valid,
		"letters beyond ASCII":      valid + "é",
		"a NUL":                     valid + "\x00",
		"8 kB and a byte":           valid + strings.Repeat("A", 8<<10+1-len(valid)),
		"a header that is no JSON":  base64.RawURLEncoding.EncodeToString([]byte("{alg: ES256}")) + "." + parts[1] + "." + parts[2],
		"a header that is null":     base64.RawURLEncoding.EncodeToString([]byte("null")) + "." + parts[1] + "." + parts[2],
		"a header that is a list":   base64.RawURLEncoding.EncodeToString([]byte("[]")) + "." + parts[1] + "." + parts[2],
		"a header with two algs":    authtest.AssembleToken([]byte(`{"alg":"ES256","alg":"none","kid":"ES256"}`), payload, none),
		"a header of deep brackets": base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"ES256","x":`+strings.Repeat("[", 5000))) + "." + parts[1] + "." + parts[2],
		"another's payload":         parts[0] + "." + strings.Split(es.Token(t, authtest.Claims(now, object{"sub": "user-2"}), nil), ".")[1] + "." + parts[2],
		"another's key":             attackerKey.Token(t, claims, nil),
		"another's key inside":      attackerKey.Token(t, claims, object{"jwk": attackerKey.JWK(t, nil)}),
		"another's key, and no id":  attackerKey.Token(t, claims, object{"jwk": attackerKey.JWK(t, nil), "kid": nil}),
		"another's key at a URL":    attackerKey.Token(t, claims, object{"jku": "http://127.0.0.1:1/jwks.json", "x5u": "http://127.0.0.1:1/cert.pem"}),
		"a private key inside":      es.Token(t, claims, object{"jwk": object{"kty": "oct", "k": "AAAA"}}),
		"a broken certificate":      es.Token(t, claims, object{"x5c": []string{"AAAA"}}),
		"crit":                      es.Token(t, claims, object{"crit": []string{"exp"}, "exp": 1}),
		"crit of b64":               es.Token(t, claims, object{"crit": []string{"b64"}, "b64": true}),
		"an empty crit":             es.Token(t, claims, object{"crit": []string{}}),
		"b64":                       es.Token(t, claims, object{"b64": false}),
		"an unknown id":             es.Token(t, claims, object{"kid": "ES257"}),
		"an id that is a path":      es.Token(t, claims, object{"kid": "../../../../dev/null"}),
		"an id that is a URL":       es.Token(t, claims, object{"kid": "http://127.0.0.1:1/"}),
		"an id for a database":      es.Token(t, claims, object{"kid": "ES256' OR '1'='1"}),
		"an id that is a number":    es.Token(t, claims, object{"kid": 256}),
	} {
		checkRejected(t, a, token, name, "")
	}
	checkRejected(t, a, es.Token(t, claims, object{"b64": true}), "b64 that changes nothing", "extensions")
	long := es.Token(t, authtest.Claims(now, object{"x": strings.Repeat("x", 5800)}), nil)
	if longer := es.Token(t, authtest.Claims(now, object{"x": strings.Repeat("x", 6000)}), nil); len(long) > 8<<10 || len(longer) <= 8<<10 {
		t.Errorf("the long tokens have %d and %d bytes", len(long), len(longer))
	} else {
		checkAccepted(t, a, long, "a long token")
		checkRejected(t, a, longer, "a longer token", "exceeds 8192 bytes")
	}
	// Other header members do not matter if the configured key verifies the signature.
	for name, header := range map[string]object{
		"a URL of keys": {"jku": "http://127.0.0.1:1/jwks.json", "x5u": "http://127.0.0.1:1/cert.pem"}, "another's key": {"jwk": attackerKey.JWK(t, nil)},
		"another type": {"typ": "at+jwt"}, "no type": {"typ": nil}, "no id, where there is one key": {"kid": nil}, "words of its own": {"x": object{"y": 1}},
	} {
		checkAccepted(t, a, es.Token(t, claims, header), name)
	}
}

// Tokens are rejected if their claims are malformed, name another issuer or audience, or are not
// valid now.
func TestClaims(t *testing.T) {
	ed := keys()["EdDSA"]
	a := newWithKeys(t, ed.JWK(t, nil))
	seconds := func(d time.Duration) int64 { return now.Add(d).Unix() }
	for _, c := range []struct {
		name   string
		others object
		// rejected is part of the reason for a rejected token, or empty for an accepted one.
		rejected string
	}{
		{"valid", nil, ""},
		{"several audiences", object{"aud": []string{"https://other.example/", authtest.Audience}}, ""},
		{"expired 59 s ago", object{"exp": seconds(-59 * time.Second)}, ""},
		{"expired 61 s ago", object{"exp": seconds(-61 * time.Second)}, "expired"},
		{"expired years ago", object{"exp": 1}, "expired"},
		{"exp of 0", object{"exp": 0}, "expired"},
		{"negative exp", object{"exp": -1}, "expired"},
		{"expires in ten years", object{"exp": seconds(10 * 365 * 24 * time.Hour)}, ""},
		{"fractional exp", object{"exp": float64(seconds(time.Hour)) + 0.5}, ""},
		{"no exp", object{"exp": nil}, "no exp claim"},
		{"null exp", object{"exp": json.RawMessage("null")}, "no exp claim"},
		{"string exp", object{"exp": "1795191627"}, "malformed"},
		{"huge exp", object{"exp": json.RawMessage("1e308")}, "malformed"},
		{"exp out of range", object{"exp": json.RawMessage("1e999")}, "malformed"},
		{"valid in 59 s", object{"nbf": seconds(59 * time.Second)}, ""},
		{"valid in 61 s", object{"nbf": seconds(61 * time.Second)}, "not valid yet"},
		{"string nbf", object{"nbf": "now"}, "malformed"},
		{"issued in 59 s", object{"iat": seconds(59 * time.Second)}, ""},
		{"issued in 61 s", object{"iat": seconds(61 * time.Second)}, "issued in the future"},
		{"no iat", object{"iat": nil}, ""},
		{"another issuer", object{"iss": "https://id.example"}, "issuer"},
		{"an issuer in upper case", object{"iss": "HTTPS://ID.EXAMPLE/"}, "issuer"},
		{"no issuer", object{"iss": nil}, "issuer"},
		{"several issuers", object{"iss": []string{authtest.Issuer}}, "malformed"},
		{"another audience", object{"aud": "https://shop.example/"}, "audience"},
		{"other audiences", object{"aud": []string{"a", "b"}}, "audience"},
		{"no audience", object{"aud": nil}, "audience"},
		{"an empty list of audiences", object{"aud": []string{}}, "audience"},
		{"a number as audience", object{"aud": []any{authtest.Audience, 1}}, "malformed"},
		{"an object as audience", object{"aud": object{"a": authtest.Audience}}, "malformed"},
		{"no subject", object{"sub": nil}, "no sub claim"},
		{"an empty subject", object{"sub": ""}, "no sub claim"},
		{"a number as subject", object{"sub": 1}, "malformed"},
		{"no role", object{"role": nil}, "no role"},
		{"an unknown role", object{"role": "ROOT"}, "no role"},
		{"a role in lower case", object{"role": "admin"}, "no role"},
		{"an empty role", object{"role": ""}, "no role"},
		{"two roles in a string", object{"role": "ADMIN STAFF"}, "no role"},
		{"two roles", object{"role": []string{"CUSTOMER", "STAFF"}}, "more than one"},
		{"a role among groups", object{"role": []string{"offline_access", "STAFF", "europe"}}, ""},
		{"the same role twice", object{"role": []string{"STAFF", "STAFF"}}, ""},
		{"an empty list of roles", object{"role": []string{}}, "no role"},
		{"a number among roles", object{"role": []any{"STAFF", 1}}, "no role"},
		{"an object as role", object{"role": object{"STAFF": true}}, "no role"},
		{"a null role", object{"role": json.RawMessage("null")}, "no role"},
		{"a number as role", object{"role": 3}, "no role"},
		{"a customer", object{"role": "CUSTOMER", "customer_id": "cust_01"}, ""},
		{"a customer without an ID", object{"role": "CUSTOMER"}, "not a string"},
		{"a customer with an empty ID", object{"role": "CUSTOMER", "customer_id": ""}, "not a valid ID"},
		{"a customer with a null ID", object{"role": "CUSTOMER", "customer_id": json.RawMessage("null")}, "not a valid ID"},
		{"a customer with a number as ID", object{"role": "CUSTOMER", "customer_id": 1}, "not a string"},
		{"a customer with several IDs", object{"role": "CUSTOMER", "customer_id": []string{"cust_01"}}, "not a string"},
		{"a customer with a key as ID", object{"role": "CUSTOMER", "customer_id": "cust_01#METADATA"}, "not a valid ID"},
		{"a customer with a long ID", object{"role": "CUSTOMER", "customer_id": strings.Repeat("a", 65)}, "not a valid ID"},
	} {
		token := ed.Token(t, authtest.Claims(now, c.others), nil)
		if c.rejected == "" {
			checkAccepted(t, a, token, c.name)
		} else {
			checkRejected(t, a, token, c.name, c.rejected)
		}
	}
	good, err := json.Marshal(authtest.Claims(now, nil))
	if err != nil {
		t.Fatal(err)
	}
	for name, payload := range map[string]string{
		"null": "null", "a list": "[]", "a text": `"x"`, "nothing": "", "no JSON": "{", "two objects": string(good) + string(good),
		"a role twice":                 `{"role":"STAFF",` + string(good[1:]),
		"an audience twice":            `{"aud":"other",` + string(good[1:]),
		"a role twice, one escaped":    `{"rol\u0065":"STAFF",` + string(good[1:]),
		"names in capitals":            strings.ToUpper(string(good)),
		"an expired EXP in upper case": strings.Replace(string(good), `"exp"`, `"EXP"`, 1),
		"brackets":                     `{"x":` + strings.Repeat("[", 4000),
		"bytes":                        "{\"sub\":\"\xff\xfe\"}",
	} {
		checkRejected(t, a, ed.Token(t, []byte(payload), nil), name, "")
	}
}

// All names can be shown, for any subject. Different subjects have different names and IDs.
func TestNamesOfPrincipals(t *testing.T) {
	ed := keys()["EdDSA"]
	a := newWithKeys(t, ed.JWK(t, nil))
	seen := map[string]string{}
	for subject, unchanged := range map[string]bool{
		"user-1": true, "auth0|5f7c8ec7c33c6c004bbafe82": true, "ann@example.com": true, strings.Repeat("a", 64): true, "~!$%&'()*+,;=:@/?[]": true,
		strings.Repeat("a", 65): false, strings.Repeat("a", 66): false, strings.Repeat("a", 255): false, "a#b": false, "#": false, "a b": false, "a\nb": false, "é": false, "\u202e": false, "a\x00": false, "\x7f": false,
		"anonymous": false, "sha256:": false, "sha256:47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU": false,
	} {
		principal := checkAccepted(t, a, ed.Token(t, authtest.Claims(now, object{"sub": subject}), nil), subject).Principal
		name := principal.Name
		if (name == subject) != unchanged || name == "" || len(name) > commerce.MaxIDLength || strings.ContainsAny(name, "# \n\x00") || name == access.AnonymousAdmin().Name {
			t.Errorf("the subject %q has the actor name %q, want the subject unchanged: %t", subject, name, unchanged)
		}
		for _, unique := range []string{name, principal.ID} {
			if other, ok := seen[unique]; ok {
				t.Errorf("the subjects %q and %q have the same name or ID %q", subject, other, unique)
			}
			seen[unique] = subject
		}
	}
}

// Issuer, subject and customer together determine the ID of a principal. The role and the token do
// not change it.
func TestPrincipalIDs(t *testing.T) {
	ed := keys()["EdDSA"]
	seen := map[string]string{}
	for _, issuer := range []string{"https://a.example/", "https://a.example/1"} {
		opts := options()
		opts.JWKS, opts.Issuer = writeJWKS(t, authtest.JWKS(t, ed.JWK(t, nil))), issuer
		a := newAuthenticator(t, opts)
		id := func(others object) string {
			t.Helper()
			others["iss"] = issuer
			id := checkAccepted(t, a, ed.Token(t, authtest.Claims(now, others), nil), fmt.Sprint(others)).Principal.ID
			if id == "" || len(id) > commerce.MaxIDLength || strings.Contains(id, "#") || id == access.AnonymousAdmin().ID {
				t.Errorf("%v has the ID %q", others, id)
			}
			return id
		}
		// Without separators, some of these would hash the same text.
		for _, holder := range []object{
			{"sub": "u"}, {"sub": "1u"}, {"sub": "uc"}, {"sub": "u", "customer_id": "c"}, {"sub": "u", "customer_id": "c1"},
			{"sub": "uc", "customer_id": "1"}, {"sub": "u#c"}, {"sub": "u:c"}, {"sub": "u1:c"}, {"sub": "u", "customer_id": "c2"},
		} {
			roles := []string{"STAFF", "ADMIN", "SERVICE"}
			if holder["customer_id"] != nil {
				roles = []string{"CUSTOMER"}
			}
			idWith := func(role string, expires time.Duration) string {
				return id(object{"sub": holder["sub"], "customer_id": holder["customer_id"], "role": role, "exp": now.Add(expires).Unix()})
			}
			first := idWith(roles[0], time.Hour)
			if other, ok := seen[first]; ok {
				t.Errorf("the holders %s %v and %s have the same principal ID %q", issuer, holder, other, first)
			}
			seen[first] = fmt.Sprint(issuer, holder)
			for _, role := range roles {
				if again := idWith(role, 2*time.Hour); again != first {
					t.Errorf("the holder %s %v has the principal ID %q with the role %s, want %q as before", issuer, holder, again, role, first)
				}
			}
		}
		// A customer claim is ignored for roles other than CUSTOMER.
		if withClaim, without := id(object{"sub": "s", "role": "STAFF", "customer_id": "c"}), id(object{"sub": "s", "role": "STAFF"}); withClaim != without {
			t.Errorf("a staff member has the principal IDs %q and %q with and without a customer claim", withClaim, without)
		}
	}
}

func TestRolesOfPrincipals(t *testing.T) {
	ed := keys()["EdDSA"]
	opts := options()
	opts.JWKS = writeJWKS(t, authtest.JWKS(t, ed.JWK(t, nil)))
	opts.RoleClaim, opts.CustomerClaim = "https://shop.example/roles", "cognito:customer"
	a := newAuthenticator(t, opts)
	for _, role := range access.RolesAllowedInTokens() {
		want := access.Principal{Name: "user-1", Role: role}
		if role == access.RoleCustomer {
			want.Customer = "cust_01"
		}
		claims := authtest.Claims(now, object{"role": nil, "https://shop.example/roles": []string{role.String()}, "cognito:customer": "cust_01"})
		got := checkAccepted(t, a, ed.Token(t, claims, nil), role.String()).Principal
		if got.ID = ""; got != want {
			t.Errorf("%s is %+v, want %+v", role, got, want)
		}
	}
	checkRejected(t, a, ed.Token(t, authtest.Claims(now, nil), nil), "a role in another claim", "no role")
	anonymous := authtest.Claims(now, object{"role": nil, "https://shop.example/roles": access.RoleAnonymous.String()})
	checkRejected(t, a, ed.Token(t, anonymous, nil), "the role of callers without a token", "no role")
}

// Keys that are unsuitable are skipped. Without any usable key, New fails.
func TestUnusableKeys(t *testing.T) {
	rs, es, ed := keys()["RS256"], keys()["ES256"], keys()["EdDSA"]
	weak, err := rsa.GenerateKey(rand.Reader, 1024) //nolint:gosec // weak on purpose
	if err != nil {
		t.Fatal(err)
	}
	weakKey := authtest.Key{ID: "weak", Algorithm: "RS256", Private: weak}
	secret := authtest.Key{ID: "oct", Algorithm: "HS256", Private: []byte(strings.Repeat("k", 32))}
	oct := object{"kty": "oct", "kid": "oct", "alg": "HS256", "k": base64.RawURLEncoding.EncodeToString(secret.Private.([]byte))}
	for _, c := range []struct {
		name    string
		jwk     object
		key     authtest.Key
		problem string
	}{
		{"for encryption", rs.JWK(t, object{"use": "enc"}), rs, "not for signatures"},
		{"for wrapping", rs.JWK(t, object{"use": nil, "key_ops": []string{"wrapKey"}}), rs, "not for signatures"},
		{"for nothing", es.JWK(t, object{"key_ops": []string{}}), es, "not for signatures"},
		{"for signing only", es.JWK(t, object{"key_ops": []string{"sign"}}), es, "not for signatures"},
		{"of another kind than its algorithm", es.JWK(t, object{"alg": "RS256"}), es, "does not match the key type"},
		{"of another curve than its algorithm", es.JWK(t, object{"alg": "ES384"}), es, "does not match the key type"},
		{"RSA for HMAC", rs.JWK(t, object{"alg": "HS256"}), rs, "does not match the key type"},
		{"for no algorithm", ed.JWK(t, object{"alg": "none"}), ed, "does not match the key type"},
		{"weak", weakKey.JWK(t, nil), weakKey, "2048 bits"},
		{"a secret", oct, secret, "is secret"},
		{"a secret in disguise", rs.JWK(t, object{"k": oct["k"]}), rs, "is secret"},
		{"private", ed.JWK(t, object{"d": "AAAA"}), ed, "is secret"},
		{"off its curve", es.JWK(t, object{"x": ed.JWK(t, nil)["x"]}), es, "malformed"},
		{"of an unknown kind", object{"kty": "AKP2", "kid": "EdDSA"}, ed, "unknown key type"},
		{"of an unknown curve", ed.JWK(t, object{"crv": "X25519"}), ed, "unknown key type"},
		{"of no kind", ed.JWK(t, object{"kty": nil}), ed, "malformed"},
		{"of numbers", object{"kty": "OKP", "key_ops": 1}, ed, "is not a JWK"},
		{"a secret without a value", object{"kty": "oct", "kid": "oct"}, secret, "malformed"},
	} {
		opts := options()
		opts.JWKS = writeJWKS(t, authtest.JWKS(t, c.jwk))
		if _, err := auth.New(t.Context(), opts); err == nil || !strings.Contains(err.Error(), c.problem) || strings.Contains(err.Error(), oct["k"].(string)) {
			t.Errorf("%s alone: %v, want an error with %s", c.name, err, c.problem)
		}
		other := keys()["ES384"]
		a := newWithKeys(t, c.jwk, other.JWK(t, nil))
		checkAccepted(t, a, other.Token(t, authtest.Claims(now, nil), nil), c.name+" beside a good one")
		checkRejected(t, a, c.key.Token(t, authtest.Claims(now, nil), nil), c.name, "")
	}
	for name, jwk := range map[string]object{"key_ops of both": rs.JWK(t, object{"use": nil, "key_ops": []string{"sign", "verify"}}), "no use": rs.JWK(t, object{"use": nil}), "no alg": rs.JWK(t, object{"alg": nil})} {
		checkAccepted(t, newWithKeys(t, jwk), rs.Token(t, authtest.Claims(now, nil), nil), name)
	}
	// A key with an alg is not used for other algorithms of the same type.
	checkRejected(t, newWithKeys(t, rs.JWK(t, nil)), authtest.Key{ID: "RS256", Algorithm: "PS256", Private: rs.Private}.Token(t, authtest.Claims(now, nil), nil), "PS256 with a key for RS256", "no key")
}

// Two keys can share a key ID. A token without a key ID is accepted if only one key has its
// algorithm.
func TestKeyIDs(t *testing.T) {
	first, second := authtest.NewKey(t, "same", "ES256"), authtest.NewKey(t, "same", "ES256")
	a := newWithKeys(t, first.JWK(t, nil), second.JWK(t, nil), keys()["EdDSA"].JWK(t, nil))
	for _, k := range []authtest.Key{first, second} {
		checkAccepted(t, a, k.Token(t, authtest.Claims(now, nil), nil), "one of two keys")
		checkRejected(t, a, k.Token(t, authtest.Claims(now, nil), object{"kid": nil}), "one of two keys without an id", "no key")
	}
	checkAccepted(t, a, keys()["EdDSA"].Token(t, authtest.Claims(now, nil), object{"kid": nil}), "the one key of its algorithm")
}

func TestInvalidJWKS(t *testing.T) {
	ed := keys()["EdDSA"].JWK(t, nil)
	hundred := slices.Repeat([]object{ed}, 101)
	for problem, text := range map[string][]byte{
		"content is not a JWKS": []byte("-----BEGIN PRIVATE KEY-----"),
		"the JWKS has no keys":  []byte(`{"keys":[]}`),
		"expected a JSON obje":  []byte(`{"keys":null}`),
		"the member":            []byte(`{"kty":"OKP"}`),
		"a JWKS: ":              []byte(`[]`),
		"JSON object with":      []byte(`{"keys":[` + strings.Repeat("[", 100_000)),
		`{"keys": [...]}`:       {},
		"key 1 is not a J":      []byte(`{"keys":[1]}`),
		"at most 100":           authtest.JWKS(t, hundred...),
		"JWKS exceeds 262144":   append([]byte(`{"keys":[],"x":"`), bytes.Repeat([]byte("x"), 256<<10)...),
		"no such file":          nil,
		"key 1 has an unknow":   authtest.JWKS(t, object{"kty": "OKP", "x": "secret-looking"}),
		"key: key 1 is secret":  authtest.JWKS(t, object{"kty": "oct", "k": "secret-looking"}),
	} {
		opts := options()
		opts.JWKS = "/nowhere/jwks.json"
		if text != nil {
			opts.JWKS = writeJWKS(t, text)
		}
		if _, err := auth.New(t.Context(), opts); err == nil || !strings.Contains(err.Error(), problem) || strings.Contains(err.Error(), "secret-looking") {
			t.Errorf("%.40s: %v, want an error with %s", text, err, problem)
		}
	}
}

func TestInvalidOptions(t *testing.T) {
	for problem, change := range map[string]func(*auth.Options){
		"an issuer and":      func(o *auth.Options) { o.Issuer = "" },
		"an audience":        func(o *auth.Options) { o.Audience = "" },
		"the role claim":     func(o *auth.Options) { o.RoleClaim = "" },
		"the customer claim": func(o *auth.Options) { o.CustomerClaim = "" },
		"0s to 5m0s":         func(o *auth.Options) { o.Leeway = auth.MaxLeeway + 1 },
		"but is -1ns":        func(o *auth.Options) { o.Leeway = -1 },
		"either a JWKS":      func(o *auth.Options) { o.Secret = nil },
		"a JWKS or a secret": func(o *auth.Options) { o.JWKS = "jwks.json" },
		"at least 32":        func(o *auth.Options) { o.Secret = o.Secret[:31] },
	} {
		opts := options()
		opts.Secret = bytes.Repeat([]byte("k"), 32)
		newAuthenticator(t, opts)
		change(&opts)
		if _, err := auth.New(t.Context(), opts); err == nil || !strings.Contains(err.Error(), problem) {
			t.Errorf("%v, want an error with %s", err, problem)
		}
	}
}

// Minted tokens are accepted, with every type of key.
func TestMintedTokens(t *testing.T) {
	for _, algorithm := range []string{"EdDSA", "ES256", "ES384", "ES512", "RS256"} {
		der, err := x509.MarshalPKCS8PrivateKey(keys()[algorithm].Private)
		if err != nil {
			t.Fatal(err)
		}
		k, err := auth.ParseMintingKey(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
		if err != nil {
			t.Fatal(err)
		}
		jwks, err := k.JWKS()
		if err != nil {
			t.Fatal(err)
		}
		opts := options()
		opts.JWKS = writeJWKS(t, jwks)
		token, err := k.Mint(opts, "me", access.RoleCustomer, "cust_01", now, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		got := checkAccepted(t, newAuthenticator(t, opts), token, algorithm)
		got.Principal.ID = ""
		if want := (access.Principal{Name: "me", Role: access.RoleCustomer, Customer: "cust_01"}); got.Principal != want || !got.Expires.Equal(now.Add(2*time.Minute)) {
			t.Errorf("%s: %+v, want %+v", algorithm, got, want)
		}
	}
	opts := options()
	opts.Secret = bytes.Repeat([]byte("k"), 32)
	token, err := auth.NewSecretMintingKey(opts.Secret).Mint(opts, "me", access.RoleStaff, "", now, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	checkAccepted(t, newAuthenticator(t, opts), token, "with a secret")
}

// The ID of a minting key is its thumbprint. The expected value is from RFC 8037, appendix A.3.
func TestThumbprint(t *testing.T) {
	seed, err := base64.RawURLEncoding.DecodeString("nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A")
	if err != nil {
		t.Fatal(err)
	}
	// A PKCS #8 key of Ed25519 is this prefix and the seed (RFC 8410, section 10.3).
	der := append([]byte{0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20}, seed...)
	k, err := auth.ParseMintingKey(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	if err != nil {
		t.Fatal(err)
	}
	jwks, err := k.JWKS()
	if err != nil || !strings.Contains(string(jwks), `"kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"`) || strings.Contains(string(jwks), `"d"`) {
		t.Errorf("the JWKS is %s, %v", jwks, err)
	}
}

// FuzzAuthenticate checks that only tokens with a valid signature are accepted. A token equals the
// signed one only if its header and payload are the same.
func FuzzAuthenticate(f *testing.F) {
	ed, rs := keys()["EdDSA"], keys()["RS256"]
	a := newWithKeys(f, ed.JWK(f, nil), rs.JWK(f, nil))
	good := ed.Token(f, authtest.Claims(now, nil), nil)
	for _, seed := range []string{"", ".", "..", "...", "a.b.c", good, good[:len(good)-1], good + "A", strings.ToUpper(good), rs.Token(f, authtest.Claims(now, object{"exp": 1}), nil),
		authtest.AssembleToken([]byte(`{"alg":"none"}`), []byte(`{}`), func([]byte) []byte { return nil }), authtest.AssembleToken([]byte(`{"alg":"EdDSA","kid":"EdDSA","jwk":{}}`), []byte(`{}`), func([]byte) []byte { return make([]byte, 64) })} {
		f.Add(seed)
	}
	signed := func(token string) string { return token[:strings.LastIndexByte(token, '.')] }
	f.Fuzz(func(t *testing.T, token string) {
		identity, err := a.Authenticate(t.Context(), token)
		switch {
		case err == nil && strings.Count(token, ".") == 2 && signed(token) == signed(good): // the last base64 character has unused bits
		case !errors.Is(err, auth.ErrUnauthenticated) || identity != (auth.Identity{}):
			t.Errorf("%q: %+v, %v", token, identity, err)
		}
	})
}

// FuzzClaims signs arbitrary payloads. An accepted principal has a role, and an ID that is valid in
// keys.
func FuzzClaims(f *testing.F) {
	ed := keys()["EdDSA"]
	a := newWithKeys(f, ed.JWK(f, nil))
	good, err := json.Marshal(maps.Clone(authtest.Claims(now, object{"role": "CUSTOMER", "customer_id": "cust_01"})))
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{"", "{}", "null", string(good), strings.Replace(string(good), "user-1", "a#b", 1), strings.Replace(string(good), `"CUSTOMER"`, `["STAFF"]`, 1)} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		identity, err := a.Authenticate(t.Context(), ed.Token(t, payload, nil))
		if errors.Is(err, auth.ErrUnauthenticated) {
			return
		}
		p := identity.Principal
		if err != nil || p.ID == "" || len(p.ID) > commerce.MaxIDLength || strings.Contains(p.ID, "#") || p.Name == "" || p.Role == 0 || (p.Role == access.RoleCustomer) != (p.Customer != "") || identity.Expires.Before(now) {
			t.Errorf("%q: %+v, %v", payload, identity, err)
		}
	})
}

// BenchmarkAuthenticate measures authenticating a token whose key is known.
func BenchmarkAuthenticate(b *testing.B) {
	for _, algorithm := range []string{"RS256", "ES256", "ES512", "EdDSA"} {
		b.Run(algorithm, func(b *testing.B) {
			k := keys()[algorithm]
			a, token := newWithKeys(b, k.JWK(b, nil)), k.Token(b, authtest.Claims(now, nil), nil)
			for b.Loop() {
				if _, err := a.Authenticate(b.Context(), token); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
