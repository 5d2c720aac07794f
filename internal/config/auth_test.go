package config_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/ordergraph/ordergraph/internal/auth"
	"github.com/ordergraph/ordergraph/internal/config"
)

const goodSecret = "a-secret-of-thirty-two-letters!!"

// secretVariables returns a complete configuration with a secret, and the given variables.
func secretVariables(more ...string) []string {
	return append([]string{"ORDERGRAPH_AUTH=jwt", "ORDERGRAPH_JWT_SECRET=" + goodSecret, "ORDERGRAPH_JWT_ISSUER=i", "ORDERGRAPH_JWT_AUDIENCE=a"}, more...)
}

// Without an explicit setting, only the embedded store is open.
func TestAuthDefault(t *testing.T) {
	for _, c := range []struct {
		variables []string
		want      string
	}{
		{nil, config.AuthNone},
		{[]string{"ORDERGRAPH_STORE=dynamodb"}, ""},
		{[]string{"ORDERGRAPH_STORE=dynamodb", "ORDERGRAPH_AUTH=none"}, config.AuthNone},
		{[]string{"ORDERGRAPH_STORE=dynamodb", "AUTH=none"}, config.AuthNone},
		{[]string{"AUTH=none", "ORDERGRAPH_AUTH=none"}, config.AuthNone},
		{secretVariables(), config.AuthJWT},
		{append(secretVariables("AUTH=jwt"), "ORDERGRAPH_STORE=dynamodb"), config.AuthJWT},
		{append(secretVariables()[1:], "AUTH=jwt"), config.AuthJWT},
	} {
		if got := read(t, c.variables...).Auth; got != c.want {
			t.Errorf("%v gives %q, want %q", c.variables, got, c.want)
		}
	}
}

func TestJWTDefaults(t *testing.T) {
	want := auth.Options{Secret: []byte(goodSecret), Issuer: "i", Audience: "a", Leeway: 30 * time.Second, RoleClaim: "role", CustomerClaim: "customer_id"}
	if got := read(t, secretVariables()...).JWT; !reflect.DeepEqual(got, want) {
		t.Errorf("the options are %+v, want %+v", got, want)
	}
	if got := read(t, secretVariables("ORDERGRAPH_JWT_LEEWAY=0s")...).JWT; got.Leeway != 0 {
		t.Errorf("the leeway is %s, want 0s", got.Leeway)
	}
}

// An invalid setting is rejected by name, and no message contains a secret.
func TestInvalidAuth(t *testing.T) {
	without := func(name string) []string {
		var rest []string
		for _, v := range secretVariables() {
			if !strings.HasPrefix(v, name+"=") {
				rest = append(rest, v)
			}
		}
		return rest
	}
	keys := func(location string) []string {
		return append(without("ORDERGRAPH_JWT_SECRET"), "ORDERGRAPH_JWT_JWKS="+location)
	}
	for _, c := range []struct {
		variables []string
		parts     []string
	}{
		{[]string{"ORDERGRAPH_AUTH=off"}, []string{"ORDERGRAPH_AUTH", `"off"`, "jwt or none"}},
		{[]string{"AUTH=JWT"}, []string{"AUTH is", `"JWT"`, "jwt or none"}},
		{[]string{"ORDERGRAPH_AUTH=none", "AUTH=jwt"}, []string{"ORDERGRAPH_AUTH", "AUTH", "set only one of them"}},
		{without("ORDERGRAPH_AUTH"), []string{"ORDERGRAPH_JWT_SECRET is set", "set ORDERGRAPH_AUTH=jwt"}},
		{append(without("ORDERGRAPH_AUTH"), "AUTH=none"), []string{"ORDERGRAPH_JWT_SECRET is set", "set AUTH=jwt"}},
		{[]string{"ORDERGRAPH_AUTH=none", "ORDERGRAPH_JWT_LEEWAY=1m"}, []string{"ORDERGRAPH_JWT_LEEWAY is set"}},
		{[]string{"ORDERGRAPH_ANONYMOUS=catalog"}, []string{"ORDERGRAPH_ANONYMOUS is set", "set ORDERGRAPH_AUTH=jwt"}},
		{[]string{"ORDERGRAPH_AUTH=none", "ORDERGRAPH_ANONYMOUS=catalog"}, []string{"ORDERGRAPH_ANONYMOUS is set", "set ORDERGRAPH_AUTH=jwt"}},
		{secretVariables("ORDERGRAPH_ANONYMOUS=on"), []string{"ORDERGRAPH_ANONYMOUS", `"on"`, "catalog or off"}},
		{[]string{"ORDERGRAPH_STORE=dynamodb", "ORDERGRAPH_JWT_ISSUER=i"}, []string{"ORDERGRAPH_JWT_ISSUER is set"}},
		{without("ORDERGRAPH_JWT_SECRET"), []string{"ORDERGRAPH_JWT_JWKS", "ORDERGRAPH_JWT_SECRET"}},
		{secretVariables("ORDERGRAPH_JWT_JWKS=keys.json"), []string{"ORDERGRAPH_JWT_JWKS", "ORDERGRAPH_JWT_SECRET", "unset one of them"}},
		{append(without("ORDERGRAPH_JWT_SECRET"), "ORDERGRAPH_JWT_SECRET=thirty-one letters do not do it"), []string{"ORDERGRAPH_JWT_SECRET", "31 characters", "at least 32"}},
		{without("ORDERGRAPH_JWT_ISSUER"), []string{"ORDERGRAPH_JWT_ISSUER", "iss"}},
		{without("ORDERGRAPH_JWT_AUDIENCE"), []string{"ORDERGRAPH_JWT_AUDIENCE", "aud"}},
		{secretVariables("ORDERGRAPH_JWT_LEEWAY=5m1s"), []string{"ORDERGRAPH_JWT_LEEWAY", `"5m1s"`, "0s to 5m"}},
		{secretVariables("ORDERGRAPH_JWT_LEEWAY=-1s"), []string{"ORDERGRAPH_JWT_LEEWAY", `"-1s"`}},
		{secretVariables("ORDERGRAPH_JWT_LEEWAY=30"), []string{"ORDERGRAPH_JWT_LEEWAY", `"30"`}},
		{secretVariables("ORDERGRAPH_JWT_ROLE_CLAIM=customer_id"), []string{"ORDERGRAPH_JWT_ROLE_CLAIM", "ORDERGRAPH_JWT_CUSTOMER_CLAIM", `"customer_id"`}},
		{keys("http://id.example/keys"), []string{"ORDERGRAPH_JWT_JWKS", "use an https URL"}},
		{keys("http://localhost.example/keys"), []string{"ORDERGRAPH_JWT_JWKS", "use an https URL"}},
		{keys("ftp://127.0.0.1/keys"), []string{"ORDERGRAPH_JWT_JWKS", "use an https URL"}},
		{keys("https://me:" + goodSecret + "@id.example/keys"), []string{"ORDERGRAPH_JWT_JWKS", "user"}},
		{keys("https://"), []string{"ORDERGRAPH_JWT_JWKS", "is not a valid URL"}},
		{keys("https://%zz/" + goodSecret), []string{"ORDERGRAPH_JWT_JWKS", "is not a valid URL"}},
	} {
		_, err := config.Read(environment(c.variables...))
		if err == nil {
			t.Errorf("%v: no error", c.variables)
			continue
		}
		for _, part := range c.parts {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%v: error %q does not contain %s", c.variables, err, part)
			}
		}
		if strings.Contains(err.Error(), goodSecret) || strings.Contains(err.Error(), "thirty-one letters") {
			t.Errorf("error %q contains the secret", err)
		}
	}
	for _, location := range []string{"https://id.example/keys", "http://localhost:8081/keys", "http://127.0.0.1/keys", "http://[::1]:1/keys", "/etc/keys.json", "keys.json"} {
		if got := read(t, keys(location)...).JWT.JWKS; got != location {
			t.Errorf("the keys are read from %q, want %q", got, location)
		}
	}
}
