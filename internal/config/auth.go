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
	// AuthNone means that every caller has all permissions.
	AuthNone = "none"
	// AuthJWT means that each request must contain a token.
	AuthJWT = "jwt"
)

// jwtSettings returns the settings that apply only to AuthJWT.
func (c *Config) jwtSettings() []setting.Setting {
	return []setting.Setting{
		{Name: "ORDERGRAPH_ANONYMOUS", Value: setting.ParsedBy(&c.Anonymous, "off", "catalog or off", parseAnonymousAccess), Meaning: "`catalog` lets requests [without a token](authentication.md#a-storefront-without-a-token) read products; `off` rejects these requests"},
		{Name: "ORDERGRAPH_JWT_JWKS", Value: setting.Text(&c.JWT.JWKS, ""), Meaning: "https URL or file name of the JSON Web Key Set (JWKS) with the issuer's public keys"},
		{Name: "ORDERGRAPH_JWT_SECRET", Value: setting.Secret(&c.JWT.Secret, auth.MinSecretBytes), Meaning: fmt.Sprintf("secret of at least %d characters that signs the tokens; set either this variable or `ORDERGRAPH_JWT_JWKS`", auth.MinSecretBytes)},
		{Name: "ORDERGRAPH_JWT_ISSUER", Value: setting.Text(&c.JWT.Issuer, ""), Meaning: "value that the claim `iss` of each token must have"},
		{Name: "ORDERGRAPH_JWT_AUDIENCE", Value: setting.Text(&c.JWT.Audience, ""), Meaning: "value that the claim `aud` of each token must contain"},
		{Name: "ORDERGRAPH_JWT_LEEWAY", Value: setting.DurationUpTo(&c.JWT.Leeway, 30*time.Second, auth.MaxLeeway), Meaning: fmt.Sprintf("tolerated difference between the clocks of the issuer and the server, up to %s", auth.MaxLeeway)},
		{Name: "ORDERGRAPH_JWT_ROLE_CLAIM", Value: setting.Text(&c.JWT.RoleClaim, "role"), Meaning: "name of the claim that contains the caller's role"},
		{Name: "ORDERGRAPH_JWT_CUSTOMER_CLAIM", Value: setting.Text(&c.JWT.CustomerClaim, "customer_id"), Meaning: "name of the claim that contains the customer's ID"},
	}
}

func parseAnonymousAccess(text string) (on, ok bool) {
	return text == "catalog", text == "catalog" || text == "off"
}

// resolveAuth validates ORDERGRAPH_AUTH and the settings that depend on it. If only the deprecated
// setting AUTH is set, resolveAuth uses its value for ORDERGRAPH_AUTH.
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
			return fmt.Errorf("%[1]s is set, but it has an effect only with %[2]s=%[3]s: set %[2]s=%[3]s, or unset %[1]s", s.Name, name, AuthJWT)
		}
	}
	if r.Auth == "" && r.Store == Embedded {
		r.Auth = AuthNone
		r.setDerived("ORDERGRAPH_AUTH", r.Auth, defaultSourceText)
	}
	return nil
}

// checkJWT checks that the settings for tokens are complete and do not contradict each other.
func checkJWT(jwt auth.Options) error {
	switch {
	case jwt.JWKS == "" && len(jwt.Secret) == 0:
		return errors.New("ORDERGRAPH_AUTH=jwt requires keys that verify tokens: set ORDERGRAPH_JWT_JWKS to a URL or file, or set ORDERGRAPH_JWT_SECRET")
	case jwt.JWKS != "" && len(jwt.Secret) > 0:
		return errors.New("ORDERGRAPH_JWT_JWKS and ORDERGRAPH_JWT_SECRET are both set: unset one of them")
	case jwt.Issuer == "":
		return errors.New("ORDERGRAPH_JWT_ISSUER is not set: set it to the value of the iss claim in the tokens")
	case jwt.Audience == "":
		return errors.New("ORDERGRAPH_JWT_AUDIENCE is not set: set it to the value of the aud claim in the tokens for this server")
	case jwt.RoleClaim == jwt.CustomerClaim:
		return fmt.Errorf("ORDERGRAPH_JWT_ROLE_CLAIM and ORDERGRAPH_JWT_CUSTOMER_CLAIM are both %q: use two different claims", jwt.RoleClaim)
	}
	if err := auth.CheckJWKSLocation(jwt.JWKS); err != nil {
		return fmt.Errorf("ORDERGRAPH_JWT_JWKS %w", err) // the error does not contain the URL, because a URL can contain a password
	}
	return nil
}
