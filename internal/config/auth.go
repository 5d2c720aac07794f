package config

import (
	"errors"
	"fmt"
	"time"

	"github.com/ordergraph/ordergraph/internal/auth"
	"github.com/ordergraph/ordergraph/internal/setting"
)

// Values of Config.Auth.
const (
	// AuthNone grants every caller all permissions.
	AuthNone = "none"
	// AuthJWT requires a token with each request.
	AuthJWT = "jwt"
)

// jwtSettings returns the settings that apply only to AuthJWT.
func (c *Config) jwtSettings() []setting.Setting {
	return []setting.Setting{
		{Name: "ORDERGRAPH_ANONYMOUS", Value: setting.ParsedBy(&c.Anonymous, "off", "catalog or off", parseAnonymousAccess), Meaning: "`catalog` lets requests [without a token](authentication.md#a-storefront-without-a-token) read products"},
		{Name: "ORDERGRAPH_JWT_JWKS", Value: setting.Text(&c.JWT.JWKS, ""), Meaning: "https URL or file of the JWKS with the public keys"},
		{Name: "ORDERGRAPH_JWT_SECRET", Value: setting.Secret(&c.JWT.Secret, auth.MinSecretBytes), Meaning: fmt.Sprintf("secret of at least %d characters that signs tokens, instead of `ORDERGRAPH_JWT_JWKS`", auth.MinSecretBytes)},
		{Name: "ORDERGRAPH_JWT_ISSUER", Value: setting.Text(&c.JWT.Issuer, ""), Meaning: "required claim `iss` of the tokens"},
		{Name: "ORDERGRAPH_JWT_AUDIENCE", Value: setting.Text(&c.JWT.Audience, ""), Meaning: "required value in the claim `aud`"},
		{Name: "ORDERGRAPH_JWT_LEEWAY", Value: setting.DurationUpTo(&c.JWT.Leeway, 30*time.Second, auth.MaxLeeway), Meaning: fmt.Sprintf("tolerated difference from the issuer's clock, up to %s", auth.MaxLeeway)},
		{Name: "ORDERGRAPH_JWT_ROLE_CLAIM", Value: setting.Text(&c.JWT.RoleClaim, "role"), Meaning: "name of the claim with the role"},
		{Name: "ORDERGRAPH_JWT_CUSTOMER_CLAIM", Value: setting.Text(&c.JWT.CustomerClaim, "customer_id"), Meaning: "name of the claim with the customer's ID"},
	}
}

func parseAnonymousAccess(text string) (on, ok bool) {
	return text == "catalog", text == "catalog" || text == "off"
}

// resolveAuth copies the value of the deprecated setting AUTH to ORDERGRAPH_AUTH, and validates the
// settings that depend on ORDERGRAPH_AUTH.
func (r *settingsReader) resolveAuth() error {
	name := "ORDERGRAPH_AUTH"
	switch {
	case r.authAlias == "":
	case r.Auth == "":
		name, r.Auth, r.AuthFromAlias = "AUTH", r.authAlias, true
	case r.Auth != r.authAlias:
		return fmt.Errorf("ORDERGRAPH_AUTH is %q and AUTH is %q: both have the same meaning, so set only one of them", r.Auth, r.authAlias)
	}
	if r.AuthFromAlias {
		r.setDerived("ORDERGRAPH_AUTH", r.Auth, r.found[name].place)
	}
	if r.Auth == AuthJWT {
		return checkJWT(r.JWT)
	}
	for _, s := range r.jwtSettings() {
		if text := r.found[s.Name].text; text != "" && text != s.Default {
			return fmt.Errorf("%[1]s is set, but the server requires tokens only with %[2]s=%[3]s: set %[2]s=%[3]s, or unset %[1]s", s.Name, name, AuthJWT)
		}
	}
	if r.Auth == "" && r.Store == Embedded {
		r.Auth = AuthNone
		r.setDerived("ORDERGRAPH_AUTH", r.Auth, defaultSourceText)
	}
	return nil
}

// checkJWT checks that the settings for tokens are complete and consistent.
func checkJWT(jwt auth.Options) error {
	switch {
	case jwt.JWKS == "" && len(jwt.Secret) == 0:
		return errors.New("ORDERGRAPH_AUTH=jwt requires keys: set ORDERGRAPH_JWT_JWKS to their URL or file, or set ORDERGRAPH_JWT_SECRET")
	case jwt.JWKS != "" && len(jwt.Secret) > 0:
		return errors.New("ORDERGRAPH_JWT_JWKS and ORDERGRAPH_JWT_SECRET are both set: unset one of them")
	case jwt.Issuer == "":
		return errors.New("ORDERGRAPH_JWT_ISSUER is not set: set it to the iss claim of the tokens")
	case jwt.Audience == "":
		return errors.New("ORDERGRAPH_JWT_AUDIENCE is not set: set it to the aud claim of the tokens for this server")
	case jwt.RoleClaim == jwt.CustomerClaim:
		return fmt.Errorf("ORDERGRAPH_JWT_ROLE_CLAIM and ORDERGRAPH_JWT_CUSTOMER_CLAIM are both %q: use two different claims", jwt.RoleClaim)
	}
	if err := auth.CheckJWKSLocation(jwt.JWKS); err != nil {
		return fmt.Errorf("ORDERGRAPH_JWT_JWKS %w", err) // the error omits the URL, which can contain a password
	}
	return nil
}
