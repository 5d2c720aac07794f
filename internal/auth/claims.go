package auth

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/go-jose/go-jose/v4/json"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/ordergraph/ordergraph/access"
	"github.com/ordergraph/ordergraph/commerce"
)

// parseClaims validates the claims of a token and returns the identity in the claims. It decodes
// the claims with go-jose's JSON decoder, which rejects duplicate names and distinguishes upper and
// lower case in names.
func (a *Authenticator) parseClaims(payload []byte) (Identity, error) {
	var standard jwt.Claims
	var all map[string]json.RawMessage
	if json.Unmarshal(payload, &standard) != nil || json.Unmarshal(payload, &all) != nil {
		return Identity{}, newUnauthenticated("its claims are malformed")
	}
	switch {
	case standard.Expiry == nil:
		return Identity{}, newUnauthenticated("it has no exp claim")
	case standard.Subject == "":
		return Identity{}, newUnauthenticated("it has no sub claim")
	}
	expected := jwt.Expected{Issuer: a.opts.Issuer, AnyAudience: jwt.Audience{a.opts.Audience}, Time: a.opts.Now()}
	if err := standard.ValidateWithLeeway(expected, a.opts.Leeway); err != nil {
		return Identity{}, newUnauthenticated(err.Error()) // err is a fixed message without any part of the token
	}
	role, ok := roleFromClaim(all[a.opts.RoleClaim])
	if !ok {
		return Identity{}, newUnauthenticated("its role claim contains no role, or more than one")
	}
	identity := Identity{
		Principal: access.Principal{Name: actorName(standard.Subject), Role: role},
		Expires:   standard.Expiry.Time().Add(a.opts.Leeway),
	}
	if role == access.RoleCustomer {
		var id string
		if json.Unmarshal(all[a.opts.CustomerClaim], &id) != nil {
			return Identity{}, newUnauthenticated("its customer claim is missing, or is not a string")
		}
		customer, err := commerce.ParseID[commerce.CustomerID](id)
		if err != nil {
			return Identity{}, newUnauthenticated("its customer claim is not a valid ID")
		}
		identity.Principal.Customer = customer
	}
	identity.Principal.ID = principalID(standard.Issuer, standard.Subject, identity.Principal.Customer)
	return identity, nil
}

// roleFromClaim returns the role in a role claim, and ignores strings that are not roles. If the
// claim contains no role or several different roles, roleFromClaim returns false.
func roleFromClaim(claim json.RawMessage) (access.Role, bool) {
	var names []string
	if name := ""; json.Unmarshal(claim, &name) == nil {
		names = []string{name}
	} else if json.Unmarshal(claim, &names) != nil {
		return 0, false
	}
	var found access.Role
	for _, name := range names {
		role, known := access.ParseRole(name)
		if known && found != 0 && role != found {
			return 0, false
		}
		if known {
			found = role
		}
	}
	return found, found != 0
}

// principalID returns a hash that identifies the holder of a token. The hash includes the issuer,
// because two issuers can use the same subject. It includes the customer, because one subject can
// act for several customers.
func principalID(issuer, subject string, customer commerce.CustomerID) string {
	h := sha256.New()
	// Hash the lengths, too. Otherwise, "ab" and "c" would have the same hash as "a" and "bc".
	for _, part := range []string{issuer, subject, string(customer)} {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

// hashedNamePrefix is the prefix of a name that actorName has derived from the hash of a subject.
const hashedNamePrefix = "sha256:"

// actorName returns the name of a token's holder in the events of orders. If the subject is a valid
// name, this is the subject. Otherwise, it is a hash of the subject.
func actorName(subject string) string {
	// An issuer can choose any subject of up to 255 characters. See
	// https://openid.net/specs/openid-connect-core-1_0.html#IDToken.
	invalid := func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '#' }
	if len(subject) <= commerce.MaxIDLength && !strings.ContainsFunc(subject, invalid) && !strings.HasPrefix(subject, hashedNamePrefix) && subject != access.AnonymousAdmin().Name {
		return subject
	}
	sum := sha256.Sum256([]byte(subject))
	return hashedNamePrefix + base64.RawURLEncoding.EncodeToString(sum[:])
}
