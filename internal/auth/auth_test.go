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

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/internal/auth"
	"github.com/ordergraph/ordergraph/internal/authtest"
)

// now is when tests happen.
var now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

type object = authtest.Object

// options check tokens of authtest at now, with a minute for clocks.
func options() auth.Options {
	return auth.Options{
		Issuer: authtest.Issuer, Audience: authtest.Audience, Leeway: time.Minute, RoleClaim: "role", CustomerClaim: "customer_id",
		Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return now },
	}
}

// file writes a JWKS.
func file(t testing.TB, jwks []byte) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "jwks.json")
	if err := os.WriteFile(name, jwks, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// with is an Authenticator with the keys of JWKs.
func with(t testing.TB, jwks ...object) *auth.Authenticator {
	t.Helper()
	opts := options()
	opts.JWKS = file(t, authtest.JWKS(t, jwks...))
	return opened(t, opts)
}

func opened(t testing.TB, opts auth.Options) *auth.Authenticator {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(stop)
	a, err := auth.New(ctx, opts)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func accepted(t testing.TB, a *auth.Authenticator, token, what string) auth.Identity {
	t.Helper()
	identity, err := a.Authenticate(t.Context(), token)
	if err != nil {
		t.Errorf("%s: %v", what, err)
	}
	return identity
}

// refused checks that a token is refused, for a reason that says so and repeats nothing of the
// token.
func refused(t testing.TB, a *auth.Authenticator, token, what, says string) {
	t.Helper()
	identity, err := a.Authenticate(t.Context(), token)
	if !errors.Is(err, auth.ErrUnauthenticated) || identity != (auth.Identity{}) {
		t.Errorf("%s: %+v, %v", what, identity, err)
		return
	}
	if !strings.Contains(err.Error(), says) {
		t.Errorf("%s: the reason is %q, want one that says %q", what, err, says)
	}
	for part := range strings.SplitSeq(token, ".") {
		if part != "" && strings.Contains(err.Error(), part) {
			t.Errorf("%s: the reason %q repeats the token", what, err)
		}
	}
}

var algorithms = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}

// keys are a key for each algorithm, with the algorithm as its id; RSA's is one with many names.
var keys = sync.OnceValue(func() map[string]authtest.Key {
	all := map[string]authtest.Key{}
	for _, algorithm := range algorithms {
		k := authtest.Key{ID: algorithm, Algorithm: algorithm}
		if one, ok := all["RS256"]; ok && algorithm[1] == 'S' && algorithm[0] != 'E' {
			k.Private = one.Private
		} else {
			k = authtest.NewKey(nobody{}, algorithm, algorithm)
		}
		all[algorithm] = k
	}
	return all
})

// nobody is a test that cannot fail.
type nobody struct{ testing.TB }

func (nobody) Helper()           {}
func (nobody) Fatal(args ...any) { panic(args) }

func TestEveryAlgorithm(t *testing.T) {
	var jwks []object
	for _, k := range keys() {
		jwks = append(jwks, k.JWK(t, nil))
	}
	a := with(t, jwks...)
	for _, algorithm := range algorithms {
		k := keys()[algorithm]
		got := accepted(t, a, k.Token(t, authtest.Claims(now, nil), nil), algorithm)
		want := commerce.Principal{ID: got.Principal.ID, Name: "user-1", Role: commerce.RoleAdmin}
		if !got.Expires.Equal(now.Add(time.Hour+time.Minute)) || got.Principal != want {
			t.Errorf("%s: %+v, want %+v", algorithm, got, want)
		}
		// Each signature is another's with a bit changed.
		token := k.Token(t, authtest.Claims(now, nil), nil)
		signature, err := base64.RawURLEncoding.DecodeString(token[strings.LastIndex(token, ".")+1:])
		if err != nil {
			t.Fatal(err)
		}
		signature[len(signature)/2] ^= 1
		forged := token[:strings.LastIndex(token, ".")+1] + base64.RawURLEncoding.EncodeToString(signature)
		refused(t, a, forged, algorithm+" with a bit changed", "signature")
		// No algorithm is taken with another's key.
		for _, other := range algorithms {
			if other != algorithm {
				refused(t, a, k.Token(t, authtest.Claims(now, nil), object{"kid": other}), algorithm+" with the key of "+other, "no key has its id and its algorithm")
			}
		}
	}
}

// A secret is good for HS only, and public keys never are: whoever knows a public key, as everybody
// does, cannot use it as a secret.
func TestAlgorithmsCannotBeConfused(t *testing.T) {
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
		a := with(t, rs.JWK(t, anyAlgorithm))
		accepted(t, a, rs.Token(t, authtest.Claims(now, nil), nil), "the key itself")
		for name, secret := range map[string][]byte{
			"PEM": block, "PEM without its last line end": bytes.TrimSpace(block), "DER": der, "PKCS #1": pkcs1,
			"PEM of PKCS #1": pem.EncodeToMemory(&pem.Block{Type: "RSA PUBLIC KEY", Bytes: pkcs1}),
			"the modulus":    public.N.Bytes(), "the modulus as text": []byte(public.N.String()), "the JWK": jwk, "the modulus in the JWK": []byte(rs.JWK(t, nil)["n"].(string)), "nothing": {},
		} {
			for _, algorithm := range []string{"HS256", "HS384", "HS512"} {
				forger := authtest.Key{ID: "RS256", Algorithm: algorithm, Private: secret}
				refused(t, a, forger.Token(t, authtest.Claims(now, nil), nil), algorithm+" with "+name, "algorithm")
			}
		}
	}

	opts := options()
	opts.Secret = []byte(strings.Repeat("a good secret of 64 bytes, or so ", 2))
	a := opened(t, opts)
	for _, algorithm := range []string{"HS256", "HS384", "HS512"} {
		accepted(t, a, authtest.Key{Algorithm: algorithm, Private: opts.Secret}.Token(t, authtest.Claims(now, nil), nil), algorithm)
		refused(t, a, authtest.Key{Algorithm: algorithm, Private: opts.Secret[1:]}.Token(t, authtest.Claims(now, nil), nil), algorithm+" of another secret", "signature")
	}
	for _, algorithm := range algorithms {
		refused(t, a, keys()[algorithm].Token(t, authtest.Claims(now, nil), nil), algorithm+" where there is a secret", "algorithm")
	}
}

// What is not signed, or says of itself how it is to be checked, is nobody's.
func TestForgedHeaders(t *testing.T) {
	es, stranger := keys()["ES256"], authtest.NewKey(t, "ES256", "ES256")
	a := with(t, es.JWK(t, nil))
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
		refused(t, a, authtest.Assemble(header, payload, none), "unsigned "+string(header), "")
		refused(t, a, authtest.Assemble(header, payload, func([]byte) []byte { return []byte("signature") }), "a made-up signature "+string(header), "")
	}
	claims := authtest.Claims(now, nil)
	whole := es.Token(t, claims, nil)
	parts := strings.Split(whole, ".")
	for name, token := range map[string]string{
		"nothing":                   "",
		"dots":                      "..",
		"three dots":                "...",
		"no signature":              parts[0] + "." + parts[1] + ".",
		"two parts":                 parts[0] + "." + parts[1],
		"no payload":                parts[0] + ".." + parts[2],
		"four parts":                whole + "." + parts[2],
		"five parts":                whole + "." + parts[1] + "." + parts[2],
		"padding":                   whole + "==",
		"the JSON form":             `{"protected":"` + parts[0] + `","payload":"` + parts[1] + `","signature":"` + parts[2] + `"}`,
		"a space":                   parts[0] + ". " + parts[1] + "." + parts[2],
		"a line end":                parts[0] + ".\n" + parts[1] + "." + parts[2],
		"two tokens":                whole + "," + whole,
		"letters beyond ASCII":      whole + "é",
		"a NUL":                     whole + "\x00",
		"8 kB and a byte":           whole + strings.Repeat("A", 8<<10+1-len(whole)),
		"a header that is no JSON":  base64.RawURLEncoding.EncodeToString([]byte("{alg: ES256}")) + "." + parts[1] + "." + parts[2],
		"a header that is null":     base64.RawURLEncoding.EncodeToString([]byte("null")) + "." + parts[1] + "." + parts[2],
		"a header that is a list":   base64.RawURLEncoding.EncodeToString([]byte("[]")) + "." + parts[1] + "." + parts[2],
		"a header with two algs":    authtest.Assemble([]byte(`{"alg":"ES256","alg":"none","kid":"ES256"}`), payload, none),
		"a header of deep brackets": base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"ES256","x":`+strings.Repeat("[", 5000))) + "." + parts[1] + "." + parts[2],
		"another's payload":         parts[0] + "." + strings.Split(es.Token(t, authtest.Claims(now, object{"sub": "user-2"}), nil), ".")[1] + "." + parts[2],
		"another's key":             stranger.Token(t, claims, nil),
		"another's key inside":      stranger.Token(t, claims, object{"jwk": stranger.JWK(t, nil)}),
		"another's key, and no id":  stranger.Token(t, claims, object{"jwk": stranger.JWK(t, nil), "kid": nil}),
		"another's key at a URL":    stranger.Token(t, claims, object{"jku": "http://127.0.0.1:1/jwks.json", "x5u": "http://127.0.0.1:1/cert.pem"}),
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
		refused(t, a, token, name, "")
	}
	refused(t, a, es.Token(t, claims, object{"b64": true}), "b64 that changes nothing", "extensions")
	long := es.Token(t, authtest.Claims(now, object{"x": strings.Repeat("x", 5800)}), nil)
	if longer := es.Token(t, authtest.Claims(now, object{"x": strings.Repeat("x", 6000)}), nil); len(long) > 8<<10 || len(longer) <= 8<<10 {
		t.Errorf("the long tokens have %d and %d bytes", len(long), len(longer))
	} else {
		accepted(t, a, long, "a long token")
		refused(t, a, longer, "a longer token", "too long")
	}
	// What a header says besides does not matter, where the signature is the key's.
	for name, header := range map[string]object{
		"a URL of keys": {"jku": "http://127.0.0.1:1/jwks.json", "x5u": "http://127.0.0.1:1/cert.pem"}, "another's key": {"jwk": stranger.JWK(t, nil)},
		"another type": {"typ": "at+jwt"}, "no type": {"typ": nil}, "no id, where there is one key": {"kid": nil}, "words of its own": {"x": object{"y": 1}},
	} {
		accepted(t, a, es.Token(t, claims, header), name)
	}
}

// Claims that are for somebody else or for another time, or cannot be read, let nobody in.
func TestClaims(t *testing.T) {
	ed := keys()["EdDSA"]
	a := with(t, ed.JWK(t, nil))
	seconds := func(d time.Duration) int64 { return now.Add(d).Unix() }
	for _, c := range []struct {
		name   string
		others object
		// refused is what the reason says, empty where the token is good.
		refused string
	}{
		{"all good", nil, ""},
		{"for several", object{"aud": []string{"https://other.example/", authtest.Audience}}, ""},
		{"over for 59 s", object{"exp": seconds(-59 * time.Second)}, ""},
		{"over for 61 s", object{"exp": seconds(-61 * time.Second)}, "expired"},
		{"over for years", object{"exp": 1}, "expired"},
		{"over at zero", object{"exp": 0}, "expired"},
		{"over before 1970", object{"exp": -1}, "expired"},
		{"over in some years", object{"exp": seconds(10 * 365 * 24 * time.Hour)}, ""},
		{"a part of a second", object{"exp": float64(seconds(time.Hour)) + 0.5}, ""},
		{"never over", object{"exp": nil}, "when it is over"},
		{"over at null", object{"exp": json.RawMessage("null")}, "when it is over"},
		{"over at a text", object{"exp": "1795191627"}, "cannot be read"},
		{"over at the end of time", object{"exp": json.RawMessage("1e308")}, "cannot be read"},
		{"over beyond it", object{"exp": json.RawMessage("1e999")}, "cannot be read"},
		{"from 59 s on", object{"nbf": seconds(59 * time.Second)}, ""},
		{"from 61 s on", object{"nbf": seconds(61 * time.Second)}, "not valid yet"},
		{"from a text on", object{"nbf": "now"}, "cannot be read"},
		{"issued in 59 s", object{"iat": seconds(59 * time.Second)}, ""},
		{"issued in 61 s", object{"iat": seconds(61 * time.Second)}, "issued in the future"},
		{"issued nobody knows when", object{"iat": nil}, ""},
		{"of another issuer", object{"iss": "https://id.example"}, "issuer"},
		{"of an issuer in capitals", object{"iss": "HTTPS://ID.EXAMPLE/"}, "issuer"},
		{"of nobody", object{"iss": nil}, "issuer"},
		{"of several issuers", object{"iss": []string{authtest.Issuer}}, "cannot be read"},
		{"for another", object{"aud": "https://shop.example/"}, "audience"},
		{"for others", object{"aud": []string{"a", "b"}}, "audience"},
		{"for nobody", object{"aud": nil}, "audience"},
		{"for no one of a list", object{"aud": []string{}}, "audience"},
		{"for numbers", object{"aud": []any{authtest.Audience, 1}}, "cannot be read"},
		{"for an object", object{"aud": object{"a": authtest.Audience}}, "cannot be read"},
		{"of no subject", object{"sub": nil}, "names nobody"},
		{"of an empty subject", object{"sub": ""}, "names nobody"},
		{"of a number", object{"sub": 1}, "cannot be read"},
		{"without a role", object{"role": nil}, "no role"},
		{"with an unknown role", object{"role": "ROOT"}, "no role"},
		{"with a role in lower case", object{"role": "admin"}, "no role"},
		{"with an empty role", object{"role": ""}, "no role"},
		{"with two roles in a text", object{"role": "ADMIN STAFF"}, "no role"},
		{"with two roles", object{"role": []string{"CUSTOMER", "STAFF"}}, "several"},
		{"with a role among groups", object{"role": []string{"offline_access", "STAFF", "europe"}}, ""},
		{"with a role twice", object{"role": []string{"STAFF", "STAFF"}}, ""},
		{"with no role in a list", object{"role": []string{}}, "no role"},
		{"with a number among roles", object{"role": []any{"STAFF", 1}}, "no role"},
		{"with an object for a role", object{"role": object{"STAFF": true}}, "no role"},
		{"with null for a role", object{"role": json.RawMessage("null")}, "no role"},
		{"with the number of a role", object{"role": 3}, "no role"},
		{"a customer", object{"role": "CUSTOMER", "customer_id": "cust_01"}, ""},
		{"a customer of no id", object{"role": "CUSTOMER"}, "whose"},
		{"a customer of an empty id", object{"role": "CUSTOMER", "customer_id": ""}, "can be none"},
		{"a customer of a null id", object{"role": "CUSTOMER", "customer_id": json.RawMessage("null")}, "can be none"},
		{"a customer of a number", object{"role": "CUSTOMER", "customer_id": 1}, "whose"},
		{"a customer of several ids", object{"role": "CUSTOMER", "customer_id": []string{"cust_01"}}, "whose"},
		{"a customer with a key for an id", object{"role": "CUSTOMER", "customer_id": "cust_01#METADATA"}, "can be none"},
		{"a customer of a long id", object{"role": "CUSTOMER", "customer_id": strings.Repeat("a", 65)}, "can be none"},
	} {
		token := ed.Token(t, authtest.Claims(now, c.others), nil)
		if c.refused == "" {
			accepted(t, a, token, c.name)
		} else {
			refused(t, a, token, c.name, c.refused)
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
		"a role twice, written apart":  `{"rol\u0065":"STAFF",` + string(good[1:]),
		"names in capitals":            strings.ToUpper(string(good)),
		"a time that is over, in caps": strings.Replace(string(good), `"exp"`, `"EXP"`, 1),
		"brackets":                     `{"x":` + strings.Repeat("[", 4000),
		"bytes":                        "{\"sub\":\"\xff\xfe\"}",
	} {
		refused(t, a, ed.Token(t, []byte(payload), nil), name, "")
	}
}

// Whatever issuers call their users, their names can be shown, and different users have different
// names and IDs.
func TestNamesOfPrincipals(t *testing.T) {
	ed := keys()["EdDSA"]
	a := with(t, ed.JWK(t, nil))
	seen := map[string]string{}
	for subject, kept := range map[string]bool{
		"user-1": true, "auth0|5f7c8ec7c33c6c004bbafe82": true, "ann@example.com": true, strings.Repeat("a", 64): true, "~!$%&'()*+,;=:@/?[]": true,
		strings.Repeat("a", 65): false, strings.Repeat("a", 66): false, strings.Repeat("a", 255): false, "a#b": false, "#": false, "a b": false, "a\nb": false, "é": false, "\u202e": false, "a\x00": false, "\x7f": false,
		"anonymous": false, "sha256:": false, "sha256:47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU": false,
	} {
		who := accepted(t, a, ed.Token(t, authtest.Claims(now, object{"sub": subject}), nil), subject).Principal
		name := who.Name
		if (name == subject) != kept || name == "" || len(name) > commerce.MaxIDLength || strings.ContainsAny(name, "# \n\x00") || name == commerce.Everybody().Name {
			t.Errorf("%q gives the name %q, kept: want %t", subject, name, kept)
		}
		for _, unique := range []string{name, who.ID} {
			if other, taken := seen[unique]; taken {
				t.Errorf("%q and %q are both %q", subject, other, unique)
			}
			seen[unique] = subject
		}
	}
}

// A principal is an issuer, a subject and a customer together. Neither the role nor the token
// changes the ID.
func TestPrincipalIDs(t *testing.T) {
	ed := keys()["EdDSA"]
	seen := map[string]string{}
	for _, issuer := range []string{"https://a.example/", "https://a.example/1"} {
		opts := options()
		opts.JWKS, opts.Issuer = file(t, authtest.JWKS(t, ed.JWK(t, nil))), issuer
		a := opened(t, opts)
		id := func(others object) string {
			t.Helper()
			others["iss"] = issuer
			id := accepted(t, a, ed.Token(t, authtest.Claims(now, others), nil), fmt.Sprint(others)).Principal.ID
			if id == "" || len(id) > commerce.MaxIDLength || strings.Contains(id, "#") || id == commerce.Everybody().ID {
				t.Errorf("%v has the ID %q", others, id)
			}
			return id
		}
		// The parts of one run into the parts of another if nothing separates them.
		for _, who := range []object{
			{"sub": "u"}, {"sub": "1u"}, {"sub": "uc"}, {"sub": "u", "customer_id": "c"}, {"sub": "u", "customer_id": "c1"},
			{"sub": "uc", "customer_id": "1"}, {"sub": "u#c"}, {"sub": "u:c"}, {"sub": "u1:c"}, {"sub": "u", "customer_id": "c2"},
		} {
			roles := []string{"STAFF", "ADMIN", "SERVICE"}
			if who["customer_id"] != nil {
				roles = []string{"CUSTOMER"}
			}
			of := func(role string, expires time.Duration) string {
				return id(object{"sub": who["sub"], "customer_id": who["customer_id"], "role": role, "exp": now.Add(expires).Unix()})
			}
			first := of(roles[0], time.Hour)
			if other, taken := seen[first]; taken {
				t.Errorf("%s %v and %s have the ID %q", issuer, who, other, first)
			}
			seen[first] = fmt.Sprint(issuer, who)
			for _, role := range roles {
				if again := of(role, 2*time.Hour); again != first {
					t.Errorf("%s %v is %q as %s, and %q before", issuer, who, again, role, first)
				}
			}
		}
		// Other roles than CUSTOMER speak for no customer, whatever the claim says.
		if with, without := id(object{"sub": "s", "role": "STAFF", "customer_id": "c"}), id(object{"sub": "s", "role": "STAFF"}); with != without {
			t.Errorf("staff have the IDs %q and %q", with, without)
		}
	}
}

func TestRolesOfPrincipals(t *testing.T) {
	ed := keys()["EdDSA"]
	opts := options()
	opts.JWKS = file(t, authtest.JWKS(t, ed.JWK(t, nil)))
	opts.RoleClaim, opts.CustomerClaim = "https://shop.example/roles", "cognito:customer"
	a := opened(t, opts)
	for _, role := range commerce.TokenRoles() {
		want := commerce.Principal{Name: "user-1", Role: role}
		if role == commerce.RoleCustomer {
			want.Customer = "cust_01"
		}
		claims := authtest.Claims(now, object{"role": nil, "https://shop.example/roles": []string{role.String()}, "cognito:customer": "cust_01"})
		got := accepted(t, a, ed.Token(t, claims, nil), role.String()).Principal
		if got.ID = ""; got != want {
			t.Errorf("%s is %+v, want %+v", role, got, want)
		}
	}
	refused(t, a, ed.Token(t, authtest.Claims(now, nil), nil), "a role in another claim", "no role")
	anonymous := authtest.Claims(now, object{"role": nil, "https://shop.example/roles": commerce.RoleAnonymous.String()})
	refused(t, a, ed.Token(t, anonymous, nil), "the role of callers without a token", "no role")
}

// Keys that are not for this, or not good enough, are as if they were not there; if none is left,
// there is nothing to start with.
func TestKeysThatAreNotUsed(t *testing.T) {
	rs, es, ed := keys()["RS256"], keys()["ES256"], keys()["EdDSA"]
	weak, err := rsa.GenerateKey(rand.Reader, 1024) //nolint:gosec // weak on purpose
	if err != nil {
		t.Fatal(err)
	}
	weakKey := authtest.Key{ID: "weak", Algorithm: "RS256", Private: weak}
	secret := authtest.Key{ID: "oct", Algorithm: "HS256", Private: []byte(strings.Repeat("k", 32))}
	oct := object{"kty": "oct", "kid": "oct", "alg": "HS256", "k": base64.RawURLEncoding.EncodeToString(secret.Private.([]byte))}
	for _, c := range []struct {
		name string
		jwk  object
		key  authtest.Key
		says string
	}{
		{"for encryption", rs.JWK(t, object{"use": "enc"}), rs, "not for signatures"},
		{"for wrapping", rs.JWK(t, object{"use": nil, "key_ops": []string{"wrapKey"}}), rs, "not for signatures"},
		{"for nothing", es.JWK(t, object{"key_ops": []string{}}), es, "not for signatures"},
		{"for signing only", es.JWK(t, object{"key_ops": []string{"sign"}}), es, "not for signatures"},
		{"of another kind than its algorithm", es.JWK(t, object{"alg": "RS256"}), es, "not its kind's"},
		{"of another curve than its algorithm", es.JWK(t, object{"alg": "ES384"}), es, "not its kind's"},
		{"RSA for HMAC", rs.JWK(t, object{"alg": "HS256"}), rs, "not its kind's"},
		{"for no algorithm", ed.JWK(t, object{"alg": "none"}), ed, "not its kind's"},
		{"weak", weakKey.JWK(t, nil), weakKey, "2048 bits"},
		{"a secret", oct, secret, "is secret"},
		{"a secret in disguise", rs.JWK(t, object{"k": oct["k"]}), rs, "is secret"},
		{"private", ed.JWK(t, object{"d": "AAAA"}), ed, "is secret"},
		{"off its curve", es.JWK(t, object{"x": ed.JWK(t, nil)["x"]}), es, "malformed"},
		{"of an unknown kind", object{"kty": "AKP2", "kid": "EdDSA"}, ed, "unknown kind"},
		{"of an unknown curve", ed.JWK(t, object{"crv": "X25519"}), ed, "unknown kind"},
		{"of no kind", ed.JWK(t, object{"kty": nil}), ed, "malformed"},
		{"of numbers", object{"kty": "OKP", "key_ops": 1}, ed, "is no JWK"},
		{"a secret without a value", object{"kty": "oct", "kid": "oct"}, secret, "malformed"},
	} {
		opts := options()
		opts.JWKS = file(t, authtest.JWKS(t, c.jwk))
		if _, err := auth.New(t.Context(), opts); err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), oct["k"].(string)) {
			t.Errorf("%s alone: %v, want an error that says %s", c.name, err, c.says)
		}
		other := keys()["ES384"]
		a := with(t, c.jwk, other.JWK(t, nil))
		accepted(t, a, other.Token(t, authtest.Claims(now, nil), nil), c.name+" beside a good one")
		refused(t, a, c.key.Token(t, authtest.Claims(now, nil), nil), c.name, "")
	}
	for name, jwk := range map[string]object{"key_ops of both": rs.JWK(t, object{"use": nil, "key_ops": []string{"sign", "verify"}}), "no use": rs.JWK(t, object{"use": nil}), "no alg": rs.JWK(t, object{"alg": nil})} {
		accepted(t, with(t, jwk), rs.Token(t, authtest.Claims(now, nil), nil), name)
	}
	// A key that names its algorithm is for no other of its kind.
	refused(t, with(t, rs.JWK(t, nil)), authtest.Key{ID: "RS256", Algorithm: "PS256", Private: rs.Private}.Token(t, authtest.Claims(now, nil), nil), "PS256 with a key for RS256", "no key")
}

// Two keys can have one id, and a token can name none where that leaves no doubt.
func TestIdsOfKeys(t *testing.T) {
	first, second := authtest.NewKey(t, "same", "ES256"), authtest.NewKey(t, "same", "ES256")
	a := with(t, first.JWK(t, nil), second.JWK(t, nil), keys()["EdDSA"].JWK(t, nil))
	for _, k := range []authtest.Key{first, second} {
		accepted(t, a, k.Token(t, authtest.Claims(now, nil), nil), "one of two keys")
		refused(t, a, k.Token(t, authtest.Claims(now, nil), object{"kid": nil}), "one of two keys without an id", "no key")
	}
	accepted(t, a, keys()["EdDSA"].Token(t, authtest.Claims(now, nil), object{"kid": nil}), "the one key of its algorithm")
}

func TestBrokenJWKS(t *testing.T) {
	ed := keys()["EdDSA"].JWK(t, nil)
	hundred := slices.Repeat([]object{ed}, 101)
	for says, text := range map[string][]byte{
		"there is no JWKS":      []byte("-----BEGIN PRIVATE KEY-----"),
		"the JWKS has no keys":  []byte(`{"keys":[]}`),
		"it is a JSON object":   []byte(`{"keys":null}`),
		"with keys":             []byte(`{"kty":"OKP"}`),
		"no JWKS: ":             []byte(`[]`),
		"JSON object with":      []byte(`{"keys":[` + strings.Repeat("[", 100_000)),
		`{"keys": [...]}`:       {},
		"key 1 is no JWK":       []byte(`{"keys":[1]}`),
		"at most 100":           authtest.JWKS(t, hundred...),
		"longer than 262144":    append([]byte(`{"keys":[],"x":"`), bytes.Repeat([]byte("x"), 256<<10)...),
		"no such file":          nil,
		"key 1 is of an unkn":   authtest.JWKS(t, object{"kty": "OKP", "x": "secret-looking"}),
		"used: key 1 is secret": authtest.JWKS(t, object{"kty": "oct", "k": "secret-looking"}),
	} {
		opts := options()
		opts.JWKS = "/nowhere/jwks.json"
		if text != nil {
			opts.JWKS = file(t, text)
		}
		if _, err := auth.New(t.Context(), opts); err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "secret-looking") {
			t.Errorf("%.40s: %v, want an error that says %s", text, err, says)
		}
	}
}

func TestOptionsThatAreNotEnough(t *testing.T) {
	for says, spoil := range map[string]func(*auth.Options){
		"an issuer and":    func(o *auth.Options) { o.Issuer = "" },
		"an audience":      func(o *auth.Options) { o.Audience = "" },
		"need names":       func(o *auth.Options) { o.RoleClaim = "" },
		"customer need":    func(o *auth.Options) { o.CustomerClaim = "" },
		"0s to 5m0s":       func(o *auth.Options) { o.Leeway = auth.MaxLeeway + 1 },
		"not -1ns":         func(o *auth.Options) { o.Leeway = -1 },
		"one of them":      func(o *auth.Options) { o.Secret = nil },
		"give one of them": func(o *auth.Options) { o.JWKS = "jwks.json" },
		"at least 32":      func(o *auth.Options) { o.Secret = o.Secret[:31] },
	} {
		opts := options()
		opts.Secret = bytes.Repeat([]byte("k"), 32)
		opened(t, opts)
		spoil(&opts)
		if _, err := auth.New(t.Context(), opts); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want an error that says %s", err, says)
		}
	}
}

// A token that is minted is one that is accepted, with each kind of key.
func TestMintedTokens(t *testing.T) {
	for _, algorithm := range []string{"EdDSA", "ES256", "ES384", "ES512", "RS256"} {
		der, err := x509.MarshalPKCS8PrivateKey(keys()[algorithm].Private)
		if err != nil {
			t.Fatal(err)
		}
		k, err := auth.ReadMintingKey(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
		if err != nil {
			t.Fatal(err)
		}
		jwks, err := k.JWKS()
		if err != nil {
			t.Fatal(err)
		}
		opts := options()
		opts.JWKS = file(t, jwks)
		token, err := k.Mint(opts, "me", commerce.RoleCustomer, "cust_01", now, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		got := accepted(t, opened(t, opts), token, algorithm)
		got.Principal.ID = ""
		if want := (commerce.Principal{Name: "me", Role: commerce.RoleCustomer, Customer: "cust_01"}); got.Principal != want || !got.Expires.Equal(now.Add(2*time.Minute)) {
			t.Errorf("%s: %+v, want %+v", algorithm, got, want)
		}
	}
	opts := options()
	opts.Secret = bytes.Repeat([]byte("k"), 32)
	token, err := auth.SecretMintingKey(opts.Secret).Mint(opts, "me", commerce.RoleStaff, "", now, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	accepted(t, opened(t, opts), token, "with a secret")
}

// The id of a key is its thumbprint: RFC 8037, appendix A.3, has one to compare with.
func TestThumbprint(t *testing.T) {
	seed, err := base64.RawURLEncoding.DecodeString("nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A")
	if err != nil {
		t.Fatal(err)
	}
	// PKCS #8 of Ed25519 is this, and the seed (RFC 8410, section 10.3).
	der := append([]byte{0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20}, seed...)
	k, err := auth.ReadMintingKey(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	if err != nil {
		t.Fatal(err)
	}
	jwks, err := k.JWKS()
	if err != nil || !strings.Contains(string(jwks), `"kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"`) || strings.Contains(string(jwks), `"d"`) {
		t.Errorf("the JWKS is %s, %v", jwks, err)
	}
}

// FuzzAuthenticate sends what nobody thought of: nobody gets in without the signature of a key. A
// token that was signed counts as itself only where its parts say the same.
func FuzzAuthenticate(f *testing.F) {
	ed, rs := keys()["EdDSA"], keys()["RS256"]
	a := with(f, ed.JWK(f, nil), rs.JWK(f, nil))
	good := ed.Token(f, authtest.Claims(now, nil), nil)
	for _, seed := range []string{"", ".", "..", "...", "a.b.c", good, good[:len(good)-1], good + "A", strings.ToUpper(good), rs.Token(f, authtest.Claims(now, object{"exp": 1}), nil),
		authtest.Assemble([]byte(`{"alg":"none"}`), []byte(`{}`), func([]byte) []byte { return nil }), authtest.Assemble([]byte(`{"alg":"EdDSA","kid":"EdDSA","jwk":{}}`), []byte(`{}`), func([]byte) []byte { return make([]byte, 64) })} {
		f.Add(seed)
	}
	signed := func(token string) string { return token[:strings.LastIndexByte(token, '.')] }
	f.Fuzz(func(t *testing.T, token string) {
		identity, err := a.Authenticate(t.Context(), token)
		switch {
		case err == nil && strings.Count(token, ".") == 2 && signed(token) == signed(good): // base64 can end in bits that say nothing
		case !errors.Is(err, auth.ErrUnauthenticated) || identity != (auth.Identity{}):
			t.Errorf("%q: %+v, %v", token, identity, err)
		}
	})
}

// FuzzClaims signs what nobody thought of: whatever the issuer says, a principal has a role and an
// id that can stand in keys.
func FuzzClaims(f *testing.F) {
	ed := keys()["EdDSA"]
	a := with(f, ed.JWK(f, nil))
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
		if err != nil || p.ID == "" || len(p.ID) > commerce.MaxIDLength || strings.Contains(p.ID, "#") || p.Name == "" || p.Role == 0 || (p.Role == commerce.RoleCustomer) != (p.Customer != "") || identity.Expires.Before(now) {
			t.Errorf("%q: %+v, %v", payload, identity, err)
		}
	})
}

// BenchmarkAuthenticate is what a token costs the server that has its key.
func BenchmarkAuthenticate(b *testing.B) {
	for _, algorithm := range []string{"RS256", "ES256", "ES512", "EdDSA"} {
		b.Run(algorithm, func(b *testing.B) {
			k := keys()[algorithm]
			a, token := with(b, k.JWK(b, nil)), k.Token(b, authtest.Claims(now, nil), nil)
			for b.Loop() {
				if _, err := a.Authenticate(b.Context(), token); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
