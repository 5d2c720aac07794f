package cli

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/internal/auth"
	"github.com/ordergraph/ordergraph/internal/config"
)

// maxTTL is how long a token of ours lives at most: it is for trying things out, and nobody can
// take it back.
const maxTTL = 24 * time.Hour

// wanted is the token that the words of the command ask for.
type wanted struct {
	role, customer, subject, key string
	ttl                          time.Duration
}

// token mints a token, or a key to mint with.
func token(_ context.Context, args []string, env Environment) error {
	var w wanted
	var words []string
	err := flagsAnywhere("token", args, 2, func(set *flag.FlagSet) {
		set.StringVar(&w.role, "role", "", "CUSTOMER, STAFF, ADMIN or SERVICE")
		set.StringVar(&w.customer, "customer", "", "the id of the customer whose token it is")
		set.StringVar(&w.subject, "subject", "", "whom the token is about; without it the customer's id, or a name made of the role")
		set.DurationVar(&w.ttl, "ttl", 15*time.Minute, fmt.Sprintf("how long it lives, such as 5m, up to %s (15m without it)", maxTTL))
		set.StringVar(&w.key, "key", "", "a private key in PEM (PKCS #8); without it ORDERGRAPH_JWT_SECRET signs")
	}, &words)
	switch {
	case err != nil:
		return err
	case len(words) == 0:
		return mint(w, env)
	case words[0] != "key":
		return usageError{fmt.Sprintf("token takes no %q; say key FILE for a new key", words[0])}
	case len(words) == 1:
		return usageError{"token key: name a file for the new key"}
	case w != wanted{ttl: 15 * time.Minute}:
		return usageError{"token key takes no flags: they are for the tokens"}
	}
	return newKey(words[1], env.Stdout)
}

// mint prints a token.
func mint(w wanted, env Environment) error {
	role, ok := commerce.ParseRole(strings.ToUpper(w.role))
	switch {
	case w.role == "" || !ok:
		return usageError{fmt.Sprintf("token: -role is %q: give CUSTOMER, STAFF, ADMIN or SERVICE", w.role)}
	case role == commerce.RoleCustomer && w.customer == "":
		return usageError{"token: say whose it is with -customer ID"}
	case role != commerce.RoleCustomer && w.customer != "":
		return usageError{"token: -customer is for -role CUSTOMER"}
	case w.ttl < time.Second || w.ttl > maxTTL:
		return usageError{fmt.Sprintf("token: -ttl is %s: give 1s to %s", w.ttl, maxTTL)}
	}
	if w.customer != "" {
		if _, err := commerce.ParseID[commerce.CustomerID](w.customer); err != nil {
			return usageError{fmt.Sprintf("token: -customer %v", err)}
		}
	}
	cfg, err := config.Read(env.Getenv)
	if err != nil {
		return err
	}
	if cfg.Auth != config.AuthJWT {
		return fmt.Errorf("token makes tokens for a server that wants them: set ORDERGRAPH_AUTH=%s, and the ORDERGRAPH_JWT variables as for the server", config.AuthJWT)
	}
	key, err := mintingKey(w.key, cfg)
	if err != nil {
		return err
	}
	subject := cmp.Or(w.subject, w.customer, "development-"+strings.ToLower(role.String()))
	text, err := key.Mint(cfg.JWT, subject, role, commerce.CustomerID(w.customer), time.Now(), w.ttl)
	if err != nil {
		return err
	}
	fmt.Fprintln(env.Stdout, text)
	return nil
}

// mintingKey is the key of a file, or the secret that the server has.
func mintingKey(file string, cfg config.Config) (*auth.MintingKey, error) {
	switch {
	case file != "" && cfg.JWT.Secret != nil:
		return nil, errors.New("-key names a key, and ORDERGRAPH_JWT_SECRET is set: the server takes tokens that are signed with the secret only, so leave -key out")
	case file != "":
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		key, err := auth.ReadMintingKey(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		return key, nil
	case cfg.JWT.Secret != nil:
		return auth.SecretMintingKey(cfg.JWT.Secret), nil
	}
	return nil, errors.New("there is nothing to sign a token with: name a private key with -key FILE (`ordergraph token key FILE` makes one)")
}

// jwksSuffix is the name of a key's public part behind that of its file.
const jwksSuffix = ".jwks.json"

// newKey writes a new private key to a file that only its owner can read, and its public part to a
// file beside it.
func newKey(file string, stdout io.Writer) error {
	key, err := auth.NewMintingKey()
	if err != nil {
		return err
	}
	private, err := key.PEM()
	if err != nil {
		return err
	}
	public, err := key.JWKS()
	if err != nil {
		return err
	}
	if err := writeNew(file, private, 0o600); err != nil {
		return err
	}
	if err := writeNew(file+jwksSuffix, append(public, '\n'), 0o644); err != nil {
		os.Remove(file)
		return err
	}
	fmt.Fprintf(stdout, `%[1]s is a private key, for development; %[1]s%[2]s has its public part, for servers. To use them:

  export ORDERGRAPH_AUTH=jwt ORDERGRAPH_JWT_JWKS=%[1]s%[2]s ORDERGRAPH_JWT_ISSUER=development ORDERGRAPH_JWT_AUDIENCE=ordergraph ORDERGRAPH_CURSOR_KEY=only-for-development
  ordergraph token -key %[1]s -role CUSTOMER -customer cust_01
`, file, jwksSuffix)
	return nil
}

// writeNew writes a file that is not there yet: a key that is overwritten is lost.
func writeNew(name string, text []byte, mode os.FileMode) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if errors.Is(err, os.ErrExist) {
		return fmt.Errorf("%s is there already, and may be in use: name another file, or remove it first", name)
	}
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = cmp.Or(err, f.Close()); err != nil {
		os.Remove(name)
	}
	return err
}
