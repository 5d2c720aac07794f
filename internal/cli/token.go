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

	"github.com/ordergraph/ordergraph/access"
	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/internal/auth"
	"github.com/ordergraph/ordergraph/internal/config"
)

// maxTokenTTL is the maximum lifetime of a development token. It is short because the token cannot
// be revoked.
const maxTokenTTL = 24 * time.Hour

// tokenOptions contains the values of the flags of the command token.
type tokenOptions struct {
	role, customer, subject, key string
	ttl                          time.Duration
}

// tokenCommand implements the commands `token` and `token key`.
func tokenCommand(_ context.Context, args []string, env Environment) error {
	var r tokenOptions
	var words []string
	err := parseMixedArgs("token", args, 2, func(set *flag.FlagSet) {
		set.StringVar(&r.role, "role", "", "role: CUSTOMER, STAFF, ADMIN or SERVICE")
		set.StringVar(&r.customer, "customer", "", "customer ID, required with -role CUSTOMER")
		set.StringVar(&r.subject, "subject", "", "subject of the token (default: the customer ID, or a name such as development-admin)")
		set.DurationVar(&r.ttl, "ttl", 15*time.Minute, fmt.Sprintf("lifetime, such as 5m, up to %s (default 15m)", maxTokenTTL))
		set.StringVar(&r.key, "key", "", "file with the private key that signs the token, in PEM format (PKCS #8); without -key, ORDERGRAPH_JWT_SECRET signs the token")
	}, &words)
	switch {
	case err != nil:
		return err
	case len(words) == 0:
		return printToken(r, env)
	case words[0] != "key":
		return usageError{fmt.Sprintf("token: unexpected argument %q; `token key FILE` creates a key", words[0])}
	case len(words) == 1:
		return usageError{"token key: the argument FILE is missing: name a file for the new key"}
	case r != tokenOptions{ttl: 15 * time.Minute}:
		return usageError{"token key accepts no flags"}
	}
	return createTokenKeyPair(words[1], env.Stdout)
}

// printToken creates and prints a signed token.
func printToken(r tokenOptions, env Environment) error {
	role, ok := access.ParseRole(strings.ToUpper(r.role))
	switch {
	case r.role == "" || !ok:
		return usageError{fmt.Sprintf("token: -role is %q: use CUSTOMER, STAFF, ADMIN or SERVICE", r.role)}
	case role == access.RoleCustomer && r.customer == "":
		return usageError{"token: -role CUSTOMER requires -customer ID"}
	case role != access.RoleCustomer && r.customer != "":
		return usageError{"token: -customer requires -role CUSTOMER"}
	case r.ttl < time.Second || r.ttl > maxTokenTTL:
		return usageError{fmt.Sprintf("token: -ttl is %s: use 1s to %s", r.ttl, maxTokenTTL)}
	}
	if r.customer != "" {
		if _, err := commerce.ParseID[commerce.CustomerID](r.customer); err != nil {
			return usageError{fmt.Sprintf("token: -customer %v", err)}
		}
	}
	cfg, err := env.readConfig()
	if err != nil {
		return err
	}
	if cfg.Auth != config.AuthJWT {
		return fmt.Errorf("ORDERGRAPH_AUTH is not %[1]s: set ORDERGRAPH_AUTH=%[1]s and the same ORDERGRAPH_JWT variables as the server", config.AuthJWT)
	}
	key, err := mintingKey(r.key, cfg)
	if err != nil {
		return err
	}
	subject := cmp.Or(r.subject, r.customer, "development-"+strings.ToLower(role.String()))
	text, err := key.Mint(cfg.JWT, subject, role, commerce.CustomerID(r.customer), time.Now(), r.ttl)
	if err != nil {
		return err
	}
	fmt.Fprintln(env.Stdout, text)
	return nil
}

// mintingKey returns the key that signs tokens. If file is not empty, mintingKey reads the key from
// this file. Otherwise, it returns the configured secret.
func mintingKey(file string, cfg config.Config) (*auth.MintingKey, error) {
	switch {
	case file != "" && cfg.JWT.Secret != nil:
		return nil, errors.New("-key cannot be used if ORDERGRAPH_JWT_SECRET is set, because the server accepts only tokens signed with the secret: remove -key")
	case file != "":
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		key, err := auth.ParseMintingKey(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		return key, nil
	case cfg.JWT.Secret != nil:
		return auth.NewSecretMintingKey(cfg.JWT.Secret), nil
	}
	return nil, errors.New("no signing key is set: name the file of a private key with -key FILE; `ordergraph token key FILE` creates such a file")
}

// jwksSuffix is appended to the name of the file with the private key. The result is the name of
// the file with the public key (JWKS).
const jwksSuffix = ".jwks.json"

// createTokenKeyPair generates a key pair. It writes the private key to a file that only its owner
// can read, and the public key (JWKS) to a second file.
func createTokenKeyPair(file string, stdout io.Writer) error {
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
	if err := createFile(file, private, 0o600); err != nil {
		return err
	}
	if err := createFile(file+jwksSuffix, append(public, '\n'), 0o644); err != nil {
		os.Remove(file)
		return err
	}
	fmt.Fprintf(stdout, `%[1]s contains a private key for development. %[1]s%[2]s contains the public key for the server. To use them:

  export ORDERGRAPH_AUTH=jwt ORDERGRAPH_JWT_JWKS=%[1]s%[2]s ORDERGRAPH_JWT_ISSUER=development ORDERGRAPH_JWT_AUDIENCE=ordergraph ORDERGRAPH_CURSOR_KEY=only-for-development
  ordergraph token -key %[1]s -role CUSTOMER -customer cust_01
`, file, jwksSuffix)
	return nil
}

// createFile creates a file. If the file already exists, createFile returns an error, because
// overwriting the file would destroy its key.
func createFile(name string, text []byte, mode os.FileMode) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if errors.Is(err, os.ErrExist) {
		return fmt.Errorf("%s already exists and may be in use: name another file, or remove this file first", name)
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
