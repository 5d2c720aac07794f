package config

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/ordergraph/ordergraph/internal/auth"
)

// The ways to find out who makes a request.
const (
	// AuthNone asks nobody who they are: everything is open to all who reach the server.
	AuthNone = "none"
	// AuthJWT wants a token with each request.
	AuthJWT = "jwt"
)

// The names of the variables of authentication.
const (
	nameAuth          = "ORDERGRAPH_AUTH"
	nameAuthPlain     = "AUTH"
	nameJWKS          = "ORDERGRAPH_JWT_JWKS"
	nameSecret        = "ORDERGRAPH_JWT_SECRET"
	nameIssuer        = "ORDERGRAPH_JWT_ISSUER"
	nameAudience      = "ORDERGRAPH_JWT_AUDIENCE"
	nameLeeway        = "ORDERGRAPH_JWT_LEEWAY"
	nameRoleClaim     = "ORDERGRAPH_JWT_ROLE_CLAIM"
	nameCustomerClaim = "ORDERGRAPH_JWT_CUSTOMER_CLAIM"
)

// authVariables are the variables of authentication.
func authVariables() []Variable {
	return []Variable{
		{nameAuth, "", "`jwt` (each request needs a token) or `none` (everything is open); `none` where it is not set, but serving from `dynamodb` needs a choice"},
		{nameAuthPlain, "", "deprecated: another name of `ORDERGRAPH_AUTH`; `none` does not open a DynamoDB table"},
		{nameJWKS, "", "with `jwt`: where the public keys of tokens are, an https URL or a file of a JWKS"},
		{nameSecret, "", "with `jwt`, instead of a JWKS: a secret of 32 characters or more that tokens are signed with (HS256)"},
		{nameIssuer, "", "with `jwt`: who issues tokens, exactly as their `iss`"},
		{nameAudience, "", "with `jwt`: whom tokens are for, as it stands in their `aud`"},
		{nameLeeway, "30s", "with `jwt`: how much the issuer's clock may differ, up to 5m"},
		{nameRoleClaim, "role", "with `jwt`: the claim that says the role"},
		{nameCustomerClaim, "customer_id", "with `jwt`: the claim that says the id of a `CUSTOMER`"},
	}
}

// readAuth reads how to find out who makes a request.
func (c *Config) readAuth(value func(string) string) error {
	mode, plain := value(nameAuth), value(nameAuthPlain)
	if mode != "" && plain != "" && mode != plain {
		return fmt.Errorf("%s is %q and %s is %q: they are two names of one variable, so set one of them", nameAuth, mode, nameAuthPlain, plain)
	}
	name := nameAuth
	if mode == "" && plain != "" {
		name, c.AuthAlias = nameAuthPlain, true
	}
	switch c.Auth = cmp.Or(mode, plain); c.Auth {
	case AuthJWT, AuthNone, "":
	default:
		return fmt.Errorf("%s is %q: set it to %s or %s", name, c.Auth, AuthJWT, AuthNone)
	}
	if c.Auth != AuthJWT {
		for _, v := range authVariables() {
			if v.Name != nameAuth && v.Name != nameAuthPlain && value(v.Name) != v.Default {
				return fmt.Errorf("%s is set and %s is not %s, so tokens would not be asked for: set %s to %s, or take %s away", v.Name, name, AuthJWT, name, AuthJWT, v.Name)
			}
		}
		if c.Auth == "" && c.Store == Embedded {
			c.Auth = AuthNone
		}
		return nil
	}
	return c.readJWT(value)
}

// readJWT reads what tokens are checked against.
func (c *Config) readJWT(value func(string) string) error {
	c.JWT = auth.Options{
		JWKS: value(nameJWKS), Secret: []byte(value(nameSecret)), Issuer: value(nameIssuer), Audience: value(nameAudience),
		RoleClaim: value(nameRoleClaim), CustomerClaim: value(nameCustomerClaim),
	}
	leeway, err := time.ParseDuration(value(nameLeeway))
	switch {
	case c.JWT.JWKS == "" && len(c.JWT.Secret) == 0:
		return fmt.Errorf("with %s, tokens are checked with keys: set %s to their URL or file, or %s", AuthJWT, nameJWKS, nameSecret)
	case c.JWT.JWKS != "" && len(c.JWT.Secret) > 0:
		return fmt.Errorf("%s and %s are both set: tokens are checked with public keys or with a secret, so take one of them away", nameJWKS, nameSecret)
	case c.JWT.JWKS == "" && len(c.JWT.Secret) < auth.MinSecret:
		return fmt.Errorf("%s has %d characters: give it at least %d, such as `openssl rand -hex 32` makes", nameSecret, len(c.JWT.Secret), auth.MinSecret)
	case c.JWT.Issuer == "":
		return errors.New(nameIssuer + " is not set: set it to what stands as iss in tokens")
	case c.JWT.Audience == "":
		return errors.New(nameAudience + " is not set: set it to what stands as aud in tokens for this server")
	case err != nil || leeway < 0 || leeway > auth.MaxLeeway:
		return fmt.Errorf("%s is %q: set it to a span of time from 0s to %s, such as 30s", nameLeeway, value(nameLeeway), auth.MaxLeeway)
	case c.JWT.RoleClaim == c.JWT.CustomerClaim:
		return fmt.Errorf("%s and %s are both %q: a claim says one of them", nameRoleClaim, nameCustomerClaim, c.JWT.RoleClaim)
	}
	c.JWT.Leeway = leeway
	if len(c.JWT.Secret) == 0 {
		c.JWT.Secret = nil
	}
	if err := auth.CheckJWKS(c.JWT.JWKS); err != nil {
		return fmt.Errorf("%s %w", nameJWKS, err) // without the value: a URL can hold a password
	}
	return nil
}
