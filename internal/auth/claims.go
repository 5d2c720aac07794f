package auth

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/go-jose/go-jose/v4/json"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/ordergraph/ordergraph/commerce"
)

// read tells whom the claims of a token speak for, if it is for this server and for now. JSON is
// read strictly: names are told apart by case, and none may come twice.
func (a *Authenticator) read(payload []byte) (Identity, error) {
	var standard jwt.Claims
	var all map[string]json.RawMessage
	if json.Unmarshal(payload, &standard) != nil || json.Unmarshal(payload, &all) != nil {
		return Identity{}, refused("its claims cannot be read")
	}
	switch {
	case standard.Expiry == nil:
		return Identity{}, refused("it does not say when it is over")
	case standard.Subject == "":
		return Identity{}, refused("it names nobody")
	}
	expected := jwt.Expected{Issuer: a.opts.Issuer, AnyAudience: jwt.Audience{a.opts.Audience}, Time: a.opts.Now()}
	if err := standard.ValidateWithLeeway(expected, a.opts.Leeway); err != nil {
		return Identity{}, refused(err.Error()) // one of a few sentences, without any claim
	}
	role, ok := roleOf(all[a.opts.RoleClaim])
	if !ok {
		return Identity{}, refused("it has no role, or several")
	}
	identity := Identity{
		Principal: commerce.Principal{Name: actorName(standard.Subject), Role: role},
		Expires:   standard.Expiry.Time().Add(a.opts.Leeway),
	}
	if role == commerce.RoleCustomer {
		var id string
		if json.Unmarshal(all[a.opts.CustomerClaim], &id) != nil {
			return Identity{}, refused("it is a customer's and does not say whose")
		}
		customer, err := commerce.ParseID[commerce.CustomerID](id)
		if err != nil {
			return Identity{}, refused("the id of its customer can be none")
		}
		identity.Principal.Customer = customer
	}
	identity.Principal.ID = principalID(standard.Issuer, standard.Subject, identity.Principal.Customer)
	return identity, nil
}

// roleOf is the one role that a claim names, as a text or in a list of texts; other texts in the
// list do not matter, as issuers put groups of all kinds there. It is false where it names no role
// or several.
func roleOf(claim json.RawMessage) (commerce.Role, bool) {
	var names []string
	if name := ""; json.Unmarshal(claim, &name) == nil {
		names = []string{name}
	} else if json.Unmarshal(claim, &names) != nil {
		return 0, false
	}
	var found commerce.Role
	for _, name := range names {
		role, known := commerce.ParseRole(name)
		if known && found != 0 && role != found {
			return 0, false
		}
		if known {
			found = role
		}
	}
	return found, found != 0
}

// principalID identifies the holder of a token. Subjects are unique within their issuer only, and
// one subject can act for several customers, so all three are hashed together. Each is preceded by
// its length: "ab" and "c" is not "a" and "bc".
func principalID(issuer, subject string, customer commerce.CustomerID) string {
	h := sha256.New()
	for _, part := range []string{issuer, subject, string(customer)} {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

// hashed begins the names of actors whose subject cannot be shown.
const hashed = "sha256:"

// actorName is the name of a subject in the events of orders. Issuers choose subjects of up to 255
// characters of any kind (https://openid.net/specs/openid-connect-core-1_0.html#IDToken). Subjects
// that are long, hold other characters than visible ASCII, or look like another actor's name are
// hashed.
func actorName(subject string) string {
	unfit := func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '#' }
	if len(subject) <= commerce.MaxIDLength && !strings.ContainsFunc(subject, unfit) && !strings.HasPrefix(subject, hashed) && subject != commerce.Everybody().Name {
		return subject
	}
	sum := sha256.Sum256([]byte(subject))
	return hashed + base64.RawURLEncoding.EncodeToString(sum[:])
}
