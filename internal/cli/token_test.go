package cli_test

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const tokenSecret = "a secret of thirty-two letters!!"

// withTokens are the variables of a server that wants tokens, with others in their place or besides.
func withTokens(others ...string) []string {
	return append(others, "ORDERGRAPH_AUTH=jwt", "ORDERGRAPH_JWT_ISSUER=development", "ORDERGRAPH_JWT_AUDIENCE=ordergraph")
}

const aliceQuery = `{"query":"{ customer(id: \"cust_01\") { name } }"}`

// minted is a token, of the words of a command.
func minted(t *testing.T, words string, variables []string) string {
	t.Helper()
	c := run(t, "token "+words, variables...)
	c.checkDone(t)
	token := strings.TrimSuffix(c.stdout.String(), "\n")
	if strings.Count(token, ".") != 2 || strings.ContainsAny(token, " \n") {
		t.Fatalf("the token is %q", token)
	}
	return token
}

// A token that is signed with the server's secret gets in, one that is signed with another does not.
func TestTokensOfASecret(t *testing.T) {
	variables := withTokens("ORDERGRAPH_JWT_SECRET=" + tokenSecret)
	c, url := serve(t, "-addr 127.0.0.1:0", variables...)
	if stdout := c.stdout.String(); !strings.Contains(stdout, "with a token of development") || !strings.Contains(stdout, "token -role ADMIN)") || !strings.Contains(stdout, "Authorization: Bearer $TOKEN") || strings.Contains(stdout, tokenSecret) {
		t.Errorf("the server says %s", stdout)
	}
	for _, words := range []string{"-role CUSTOMER -customer cust_01", "-role staff", "-role ADMIN -ttl 24h", "-role SERVICE -subject gateway -ttl 1s"} {
		if status, answer := postAs(t, url, minted(t, words, variables), aliceQuery); status != http.StatusOK {
			t.Errorf("%s: status %d, %s", words, status, answer)
		}
	}
	for name, token := range map[string]string{
		"of another secret":            minted(t, "-role ADMIN", withTokens("ORDERGRAPH_JWT_SECRET="+strings.ToUpper(tokenSecret))),
		"of another issuer":            minted(t, "-role ADMIN", append([]string{"ORDERGRAPH_JWT_ISSUER=other"}, variables...)),
		"of another audience":          minted(t, "-role ADMIN", append([]string{"ORDERGRAPH_JWT_AUDIENCE=other"}, variables...)),
		"of a customer who is not":     minted(t, "-role CUSTOMER -customer nobody", variables),
		"of another name for roles":    minted(t, "-role ADMIN", append([]string{"ORDERGRAPH_JWT_ROLE_CLAIM=roles"}, variables...)),
		"of another name for one's id": minted(t, "-role CUSTOMER -customer cust_01", append([]string{"ORDERGRAPH_JWT_CUSTOMER_CLAIM=cid"}, variables...)),
	} {
		if status, answer := postAs(t, url, token, aliceQuery); status != http.StatusUnauthorized || !strings.Contains(answer, `"UNAUTHENTICATED"`) {
			t.Errorf("%s: status %d, %s", name, status, answer)
		}
	}
}

// The way with a key of one's own: it is made once, private, and never overwritten.
func TestTokensOfAKey(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	made := run(t, "token key "+file)
	made.checkDone(t, "ORDERGRAPH_JWT_JWKS="+file+".jwks.json", "token -key "+file)
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key's file is %v, %v", info.Mode(), err)
	}
	private, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	run(t, "token key "+file).checkFailed(t, 1, file, "is there already")
	if again, err := os.ReadFile(file); err != nil || !bytes.Equal(again, private) {
		t.Error("the key is overwritten")
	}
	variables := withTokens("ORDERGRAPH_JWT_JWKS=" + file + ".jwks.json")
	c, url := serve(t, "-addr 127.0.0.1:0", variables...)
	if stdout := c.stdout.String(); !strings.Contains(stdout, "token -role ADMIN -key FILE)") {
		t.Errorf("the server says %s", stdout)
	}
	if status, answer := postAs(t, url, minted(t, "-role ADMIN -key "+file, variables), aliceQuery); status != http.StatusOK {
		t.Errorf("status %d, %s", status, answer)
	}
	other := filepath.Join(t.TempDir(), "other")
	run(t, "token key "+other).checkDone(t)
	if status, _ := postAs(t, url, minted(t, "-role ADMIN -key "+other, variables), aliceQuery); status != http.StatusUnauthorized {
		t.Errorf("of another key: status %d", status)
	}
	run(t, "token -role ADMIN", variables...).checkFailed(t, 1, "-key FILE", "token key FILE")
	run(t, "token -role ADMIN -key "+file, withTokens("ORDERGRAPH_JWT_SECRET="+tokenSecret)...).checkFailed(t, 1, "-key", "ORDERGRAPH_JWT_SECRET")
	run(t, "token -role ADMIN -key "+file).checkFailed(t, 1, "ORDERGRAPH_AUTH=jwt")
	run(t, "token -role ADMIN -key /nowhere/key", variables...).checkFailed(t, 1, "/nowhere/key", "no such file")
}

// A JWKS that is left over from another key is not replaced, and no key is left without one.
func TestNoKeyWithoutItsJWKS(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file+".jwks.json", []byte("another's"), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, "token key "+file).checkFailed(t, 1, file+".jwks.json", "is there already")
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("the key's file: %v", err)
	}
	run(t, "token key /nowhere/key").checkFailed(t, 1, "/nowhere/key", "no such file")
}

// What is no key that can sign is told by what it is, and not shown.
func TestKeysThatCannotSign(t *testing.T) {
	weak, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(weak)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "key")
	for says, text := range map[string][]byte{
		"at least 2048 bits": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}),
		"openssl pkcs8":      pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(weak)}),
		"no PEM block":       []byte("hidden"),
		"can be read":        pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("hidden")}),
	} {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		c := run(t, "token -role ADMIN -key "+file, withTokens("ORDERGRAPH_JWT_JWKS=x.json")...)
		c.checkFailed(t, 1, file, says)
		if strings.Contains(c.stderr.String(), "hidden") {
			t.Errorf("the key is shown: %s", c.stderr.String())
		}
	}
}

// Nothing is served from DynamoDB before somebody has said to whom, nor with keys that cannot be read; other commands need neither.
func TestServingNeedsAChoice(t *testing.T) {
	awsEnvironment(t) // so that nothing is reached
	run(t, "-addr 127.0.0.1:0", useDynamoDB).checkFailed(t, 1, "ORDERGRAPH_AUTH", "jwt", "none", "docs/authentication.md")
	for _, choice := range []string{"ORDERGRAPH_AUTH=none", "AUTH=none"} {
		run(t, "-addr 127.0.0.1:0", useDynamoDB, choice).checkFailed(t, 1, "AWS_REGION")
	}
	for _, line := range allCommands[1:] {
		run(t, line, useDynamoDB).checkFailed(t, 1, "AWS_REGION")
	}
	run(t, "-addr 127.0.0.1:0", withTokens("ORDERGRAPH_JWT_JWKS=/nowhere/jwks.json")...).checkFailed(t, 1, "ORDERGRAPH_JWT_JWKS", "/nowhere/jwks.json", "no such file")
	run(t, "-addr 127.0.0.1:0", "ORDERGRAPH_AUTH=jwt").checkFailed(t, 1, "ORDERGRAPH_JWT_JWKS", "ORDERGRAPH_JWT_SECRET")
}

// Where nobody is asked for a token, the server says so.
func TestServeSaysThatItIsOpen(t *testing.T) {
	c, _ := serve(t, "-addr 127.0.0.1:0")
	if stdout := c.stdout.String(); !strings.Contains(stdout, "open: whoever reaches the server can read and change everything") || strings.Contains(stdout, "Bearer") {
		t.Errorf("the server says %s", stdout)
	}
}
