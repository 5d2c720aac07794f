package cli_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const tokenSecret = "a secret of thirty-two letters!!"

// tokenVariables returns the variables of a server that requires tokens. The others take
// precedence.
func tokenVariables(others ...string) []string {
	return append(others, "ORDERGRAPH_AUTH=jwt", "ORDERGRAPH_JWT_ISSUER=development", "ORDERGRAPH_JWT_AUDIENCE=ordergraph", "ORDERGRAPH_CURSOR_KEY=a secret of cursors")
}

const aliceQuery = `{"query":"{ customer(id: \"cust_01\") { name } }"}`

// mintToken runs the token command with the given arguments and returns the token.
func mintToken(t *testing.T, args string, variables []string) string {
	t.Helper()
	c := run(t, "token "+args, variables...)
	c.checkSucceeded(t)
	token := strings.TrimSuffix(c.stdout.String(), "\n")
	if strings.Count(token, ".") != 2 || strings.ContainsAny(token, " \n") {
		t.Fatalf("the token is %q", token)
	}
	return token
}

// A token signed with the server's secret is accepted. A token signed with another secret is
// rejected.
func TestTokensSignedWithSecret(t *testing.T) {
	variables := tokenVariables("ORDERGRAPH_JWT_SECRET=" + tokenSecret)
	c, url := serve(t, "-addr 127.0.0.1:0", variables...)
	if stdout := c.stdout.String(); !strings.Contains(stdout, "requires a token from development") || !strings.Contains(stdout, "token -role ADMIN)") || !strings.Contains(stdout, "Authorization: Bearer $TOKEN") || strings.Contains(stdout, tokenSecret) {
		t.Errorf("the start message of the server is %s", stdout)
	}
	for _, args := range []string{"-role CUSTOMER -customer cust_01", "-role staff", "-role ADMIN -ttl 24h", "-role SERVICE -subject gateway -ttl 1s"} {
		if status, answer := postAs(t, url, mintToken(t, args, variables), aliceQuery); status != http.StatusOK {
			t.Errorf("%s: status %d, %s", args, status, answer)
		}
	}
	for name, token := range map[string]string{
		"another secret":         mintToken(t, "-role ADMIN", tokenVariables("ORDERGRAPH_JWT_SECRET="+strings.ToUpper(tokenSecret))),
		"another issuer":         mintToken(t, "-role ADMIN", append([]string{"ORDERGRAPH_JWT_ISSUER=other"}, variables...)),
		"another audience":       mintToken(t, "-role ADMIN", append([]string{"ORDERGRAPH_JWT_AUDIENCE=other"}, variables...)),
		"a missing customer":     mintToken(t, "-role CUSTOMER -customer nobody", variables),
		"another role claim":     mintToken(t, "-role ADMIN", append([]string{"ORDERGRAPH_JWT_ROLE_CLAIM=roles"}, variables...)),
		"another customer claim": mintToken(t, "-role CUSTOMER -customer cust_01", append([]string{"ORDERGRAPH_JWT_CUSTOMER_CLAIM=cid"}, variables...)),
	} {
		if status, answer := postAs(t, url, token, aliceQuery); status != http.StatusUnauthorized || !strings.Contains(answer, `"UNAUTHENTICATED"`) {
			t.Errorf("%s: status %d, %s", name, status, answer)
		}
	}
}

// A key file is created once, is private, and is never overwritten.
func TestTokensSignedWithKey(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	made := run(t, "token key "+file)
	made.checkSucceeded(t, "ORDERGRAPH_JWT_JWKS="+file+".jwks.json", "token -key "+file)
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key file has the permissions %v, %v, want only the owner", info.Mode(), err)
	}
	private, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	run(t, "token key "+file).checkFailed(t, 1, file, "already exists")
	if again, err := os.ReadFile(file); err != nil || !bytes.Equal(again, private) {
		t.Error("the command overwrote an existing key file")
	}
	variables := tokenVariables("ORDERGRAPH_JWT_JWKS=" + file + ".jwks.json")
	c, url := serve(t, "-addr 127.0.0.1:0", variables...)
	if stdout := c.stdout.String(); !strings.Contains(stdout, "token -role ADMIN -key FILE)") {
		t.Errorf("the start message of the server is %s", stdout)
	}
	if status, answer := postAs(t, url, mintToken(t, "-role ADMIN -key "+file, variables), aliceQuery); status != http.StatusOK {
		t.Errorf("status %d, %s", status, answer)
	}
	other := filepath.Join(t.TempDir(), "other")
	run(t, "token key "+other).checkSucceeded(t)
	if status, _ := postAs(t, url, mintToken(t, "-role ADMIN -key "+other, variables), aliceQuery); status != http.StatusUnauthorized {
		t.Errorf("a token that another key signed: status %d", status)
	}
	run(t, "token -role ADMIN", variables...).checkFailed(t, 1, "-key FILE", "token key FILE")
	run(t, "token -role ADMIN -key "+file, tokenVariables("ORDERGRAPH_JWT_SECRET="+tokenSecret)...).checkFailed(t, 1, "-key", "ORDERGRAPH_JWT_SECRET")
	run(t, "token -role ADMIN -key "+file).checkFailed(t, 1, "ORDERGRAPH_AUTH=jwt")
	run(t, "token -role ADMIN -key /nowhere/key", variables...).checkFailed(t, 1, "/nowhere/key", "no such file")
}

// An existing JWKS is not overwritten. Then no key is created either.
func TestNoKeyWithoutItsJWKS(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file+".jwks.json", []byte("another's"), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, "token key "+file).checkFailed(t, 1, file+".jwks.json", "already exists")
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("the key's file: %v", err)
	}
	run(t, "token key /nowhere/key").checkFailed(t, 1, "/nowhere/key", "no such file")
}

// An unusable key is rejected with a reason that does not contain the key.
func TestUnusableKeys(t *testing.T) {
	weak, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(weak)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "key")
	for problem, text := range map[string][]byte{
		"at least 2048 bits": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}),
		"openssl pkcs8":      pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(weak)}),
		"no PEM block":       []byte("hidden"),
		"cannot be parsed":   pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("hidden")}),
	} {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		c := run(t, "token -role ADMIN -key "+file, tokenVariables("ORDERGRAPH_JWT_JWKS=x.json")...)
		c.checkFailed(t, 1, file, problem)
		if strings.Contains(c.stderr.String(), "hidden") {
			t.Errorf("the key is shown: %s", c.stderr.String())
		}
	}
}

// The server does not start on DynamoDB without a choice of authentication, nor with an unreadable
// JWKS. Other commands need neither.
func TestServeRequiresAuthenticationChoice(t *testing.T) {
	setAWSEnvironment(t) // so that no DynamoDB is reachable
	run(t, "-addr 127.0.0.1:0", useDynamoDB).checkFailed(t, 1, "ORDERGRAPH_AUTH", "jwt", "none", "docs/authentication.md")
	run(t, "-addr 127.0.0.1:0", useDynamoDB, "ORDERGRAPH_AUTH=none").checkFailed(t, 1, "AWS_REGION")
	run(t, "-addr 127.0.0.1:0", useDynamoDB, "ORDERGRAPH_AUTH=none", "AUTH=none").checkFailed(t, 1, "AWS_REGION")
	// AUTH may be set for other software.
	run(t, "-addr 127.0.0.1:0", useDynamoDB, "AUTH=none").checkFailed(t, 1, "AUTH=none is not accepted", "set ORDERGRAPH_AUTH=none")
	for _, line := range allCommands[1:] {
		run(t, line, useDynamoDB).checkFailed(t, 1, "AWS_REGION")
		run(t, line, useDynamoDB, "AUTH=none").checkFailed(t, 1, "AWS_REGION")
	}
	run(t, "-addr 127.0.0.1:0", tokenVariables("ORDERGRAPH_JWT_JWKS=/nowhere/jwks.json")...).checkFailed(t, 1, "ORDERGRAPH_JWT_JWKS", "/nowhere/jwks.json", "no such file")
	run(t, "-addr 127.0.0.1:0", "ORDERGRAPH_AUTH=jwt").checkFailed(t, 1, "ORDERGRAPH_JWT_JWKS", "ORDERGRAPH_JWT_SECRET")
}

// TestServeRequiresCursorKey checks that a server with tokens requires a cursor key with every
// store, and that other commands do not.
func TestServeRequiresCursorKey(t *testing.T) {
	setAWSEnvironment(t) // so that no DynamoDB is reachable
	for _, store := range []string{"ORDERGRAPH_STORE=embedded", useDynamoDB} {
		variables := append([]string{"ORDERGRAPH_CURSOR_KEY=", store}, tokenVariables("ORDERGRAPH_JWT_SECRET="+tokenSecret)...)
		run(t, "-addr 127.0.0.1:0", variables...).checkFailed(t, 1, "ORDERGRAPH_CURSOR_KEY is not set", "openssl rand -hex 32")
		mintToken(t, "-role ADMIN", variables)
	}
	for _, line := range allCommands[1:] {
		run(t, line, append([]string{useDynamoDB, "ORDERGRAPH_CURSOR_KEY="}, tokenVariables("ORDERGRAPH_JWT_SECRET="+tokenSecret)...)...).checkFailed(t, 1, "AWS_REGION")
	}
}

// TestAuthAlias checks that AUTH still works, and that the log names its replacement.
func TestAuthAlias(t *testing.T) {
	for _, c := range []struct {
		variables []string
		warns     bool
	}{
		{[]string{"AUTH=none"}, true},
		{[]string{"AUTH=jwt", "ORDERGRAPH_AUTH=", "ORDERGRAPH_JWT_SECRET=" + tokenSecret}, true},
		{[]string{"AUTH=jwt", "ORDERGRAPH_JWT_SECRET=" + tokenSecret}, false},
		{nil, false},
	} {
		variables := c.variables
		if len(variables) > 1 {
			variables = tokenVariables(variables...)
		}
		ctx, stop := context.WithCancel(t.Context())
		server := start(ctx, "-addr 127.0.0.1:0", variables...)
		select {
		case <-server.listening:
		case <-server.done:
			t.Errorf("%q: status %d, %s", c.variables, server.status, server.stderr.String())
		}
		stop()
		<-server.done
		if log := server.stderr.String(); strings.Contains(log, "AUTH is deprecated: set ORDERGRAPH_AUTH") != c.warns {
			t.Errorf("%q: the log is %q", c.variables, log)
		}
	}
}

// TestServePrintsAccess checks that a server without authentication listens on this machine only,
// unless an address is given, and prints its access.
func TestServePrintsAccess(t *testing.T) {
	const here, everywhere = "open to this machine only: every program on this machine can read and change everything; -addr :", "open: everyone who reaches the server can read and change everything"
	for _, c := range []struct {
		line      string
		variables []string
		loopback  bool
		access    string
	}{
		{"", []string{"PORT=0"}, true, here},
		{"-addr 127.0.0.1:0", nil, true, here},
		{"-addr localhost:0", nil, true, here},
		{"-addr :0", nil, false, everywhere},
		{"-addr 0.0.0.0:0", nil, false, everywhere},
		{"", tokenVariables("PORT=0", "ORDERGRAPH_JWT_SECRET="+tokenSecret), false, "requires a token from development"},
	} {
		server, url := serve(t, c.line, c.variables...)
		host, _, err := net.SplitHostPort(strings.TrimPrefix(url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		if ip := net.ParseIP(host); ip.IsLoopback() != c.loopback || ip.IsUnspecified() == c.loopback {
			t.Errorf("%s %q listens on %s", c.line, c.variables, url)
		}
		if stdout := server.stdout.String(); strings.Count(stdout, "\n  Access    ") != 1 || !strings.Contains(stdout, "\n  Access    "+c.access) {
			t.Errorf("%s %q: the start message of the server is %s", c.line, c.variables, stdout)
		}
	}
}
