package cli_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stripe/stripe-go/v85/webhook"

	"github.com/ordergraph/ordergraph/internal/cli"
	"github.com/ordergraph/ordergraph/internal/config"
	"github.com/ordergraph/ordergraph/internal/test/authtest"
)

// file is a file that a test rewrites.
type file string

func newFile(t *testing.T, text string) file {
	t.Helper()
	f := file(filepath.Join(t.TempDir(), "file"))
	f.write(t, text)
	return f
}

func (f file) write(t *testing.T, text string) {
	t.Helper()
	if err := os.WriteFile(string(f), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// watchingServer starts a server with a fake clock. The server rereads its files when the clock
// advances.
func watchingServer(t *testing.T, line string, variables ...string) (c *command, url string, clock *authtest.Clock) {
	t.Helper()
	clock = authtest.NewClock(time.Unix(1_000_000_000, 0))
	ctx, stop := context.WithCancel(context.Background())
	c = startIn(ctx, cli.Environment{AfterFunc: clock.AfterFunc}, line, variables...)
	t.Cleanup(func() {
		stop()
		<-c.done
	})
	select {
	case addr := <-c.listening:
		return c, "http://" + addr.String(), clock
	case <-c.done:
		t.Fatalf("%s ended with status %d: %s", line, c.status, c.stderr.String())
		return nil, "", nil
	}
}

// firstOrder returns the cursor of the customer's first order behind the cursor after. If the
// server rejects after, firstOrder returns the error code.
func firstOrder(t *testing.T, url, token, after string) string {
	t.Helper()
	query := fmt.Sprintf(`{ customer(id: "cust_01") { orders(first: 1, after: %q) { pageInfo { endCursor } } } }`, after)
	if after == "" {
		query = `{ customer(id: "cust_01") { orders(first: 1) { pageInfo { endCursor } } } }`
	}
	body, err := json.Marshal(map[string]string{"query": query})
	if err != nil {
		t.Fatal(err)
	}
	_, answer := postAs(t, url, token, string(body))
	var got struct {
		Data struct {
			Customer struct {
				Orders struct{ PageInfo struct{ EndCursor string } }
			}
		}
		Errors []struct{ Extensions struct{ Code string } }
	}
	if err := json.Unmarshal([]byte(answer), &got); err != nil {
		t.Fatalf("%s: %v", answer, err)
	}
	if len(got.Errors) > 0 {
		return got.Errors[0].Extensions.Code
	}
	return got.Data.Customer.Orders.PageInfo.EndCursor
}

// When the file of the cursor key changes, the server signs new cursors with the new key, without a
// restart. Clients can continue lists with cursors that are signed with the previous key.
func TestCursorKeyRotation(t *testing.T) {
	key := newFile(t, "the first key of cursors\n")
	_, url, clock := watchingServer(t, "-addr 127.0.0.1:0 -cursor-key-file "+string(key))
	first := firstOrder(t, url, "", "")
	second := firstOrder(t, url, "", first)

	key.write(t, "the second key of cursors\n")
	if got := firstOrder(t, url, "", ""); got != first {
		t.Errorf("before the file is read, the cursor is %s, want %s", got, first)
	}
	clock.Advance(10 * time.Second)
	firstAgain := firstOrder(t, url, "", "")
	if firstAgain == first {
		t.Error("new cursors are signed with the previous key")
	}
	if a, b := firstOrder(t, url, "", first), firstOrder(t, url, "", firstAgain); a != b || a == second || a == "BAD_USER_INPUT" {
		t.Errorf("after a cursor of the previous key, the next is %s, after a new one %s, want the same, signed with the new key", a, b)
	}

	key.write(t, "too short")
	clock.Advance(10 * time.Second)
	if got := firstOrder(t, url, "", ""); got != firstAgain {
		t.Errorf("with an invalid key in the file, the cursor is %s, want %s", got, firstAgain)
	}

	key.write(t, "the third key of cursors")
	clock.Advance(10 * time.Second)
	if got := firstOrder(t, url, "", first); got != "BAD_USER_INPUT" {
		t.Errorf("after a cursor of the key before the previous one: %s", got)
	}
	if got := firstOrder(t, url, "", firstAgain); got == "BAD_USER_INPUT" {
		t.Error("a cursor of the previous key is rejected")
	}
}

// When the file of the JWT secret changes, the new secret replaces the previous secret, without a
// restart. If the file is unusable, the previous secret remains in use, and the problem is logged
// once.
func TestJWTSecretRotation(t *testing.T) {
	secret := newFile(t, tokenSecret+"1\n")
	settings := newFile(t, "# the server\nORDERGRAPH_JWT_SECRET_FILE="+string(secret)+"\n")
	variables := tokenVariables("ORDERGRAPH_CONFIG=" + string(settings))
	c, url, clock := watchingServer(t, "-addr 127.0.0.1:0", variables...)
	first := mintToken(t, "-role ADMIN", variables)
	check := func(when, token string, want int) {
		t.Helper()
		if status, answer := postAs(t, url, token, aliceQuery); status != want {
			t.Errorf("%s: status %d, %s, want %d", when, status, answer, want)
		}
	}
	check("the first secret", first, http.StatusOK)

	secret.write(t, tokenSecret+"2\n")
	second := mintToken(t, "-role ADMIN", variables)
	check("a secret that the server has not read", second, http.StatusUnauthorized)
	clock.Advance(10 * time.Second)
	check("the second secret", second, http.StatusOK)
	check("the replaced secret", first, http.StatusUnauthorized)

	for _, text := range []string{"MARKER", "MARKER\n", ""} {
		secret.write(t, text)
		clock.Advance(20 * time.Second)
		check("the previous secret", second, http.StatusOK)
	}
	if err := os.Remove(string(secret)); err != nil {
		t.Fatal(err)
	}
	clock.Advance(20 * time.Second)
	check("the previous secret", second, http.StatusOK)
	log := c.stderr.String()
	for part, count := range map[string]int{"cannot use the changed file": 3, "ORDERGRAPH_JWT_SECRET": 4, "a secret has changed": 1, "6 characters": 1, "it is empty": 1, "no such file": 1, "MARKER": 0, tokenSecret: 0} {
		if n := strings.Count(log, part); n != count {
			t.Errorf("the log has %q %d times, want %d: %s", part, n, count, log)
		}
	}
}

// When the file with the secrets of a webhook changes, the new secrets replace the previous ones,
// without a restart. Two secrets are valid while the provider changes its own.
func TestWebhookSecretRotation(t *testing.T) {
	first, second := "whsec_"+strings.Repeat("b2xkZXIx", 4), "whsec_"+strings.Repeat("bmV3ZXIx", 4)
	for name, sign := range map[string]func(secret, body string) http.Header{
		"stripe": func(secret, body string) http.Header {
			at := time.Now()
			return http.Header{"Stripe-Signature": {fmt.Sprintf("t=%d,v1=%x", at.Unix(), webhook.ComputeSignature(at, []byte(body), secret))}}
		},
		"payments": func(secret, body string) http.Header {
			at := time.Now()
			w, err := standardwebhooks.NewWebhook(secret)
			if err != nil {
				t.Fatal(err)
			}
			signature, err := w.Sign("msg_1", at, []byte(body))
			if err != nil {
				t.Fatal(err)
			}
			return http.Header{"Webhook-Id": {"msg_1"}, "Webhook-Timestamp": {fmt.Sprint(at.Unix())}, "Webhook-Signature": {signature}}
		},
	} {
		secrets := newFile(t, first+"\n")
		c, url, clock := watchingServer(t, "-addr 127.0.0.1:0", "ORDERGRAPH_WEBHOOK_SECRETS_"+strings.ToUpper(name)+"_FILE="+string(secrets))
		check := func(when, secret string, want int) {
			t.Helper()
			const body = `{"type":"ping"}`
			r, err := http.NewRequest(http.MethodPost, url+"/webhooks/"+name, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			r.Header = sign(secret, body)
			r.Header.Set("Content-Type", "application/json")
			if status, answer := readResponse(t)(http.DefaultClient.Do(r)); status != want {
				t.Errorf("%s: %s: status %d, %s, want %d", name, when, status, answer, want)
			}
		}
		check("the first secret", first, http.StatusOK)
		check("a secret that the server has not read", second, http.StatusBadRequest)
		secrets.write(t, first+"\n"+second+"\n")
		clock.Advance(10 * time.Second)
		check("the first of two secrets", first, http.StatusOK)
		check("the second of two secrets", second, http.StatusOK)
		secrets.write(t, second)
		clock.Advance(10 * time.Second)
		check("the replaced secret", first, http.StatusBadRequest)
		for _, text := range []string{"MARKER", ""} {
			secrets.write(t, text)
			clock.Advance(20 * time.Second)
			check("the previous secret", second, http.StatusOK)
		}
		if log := c.stderr.String(); strings.Count(log, "a secret has changed") != 2 || strings.Count(log, "cannot use the changed file") != 2 || strings.Contains(log, "MARKER") || strings.Contains(log, "whsec") {
			t.Errorf("%s: the log is %s", name, log)
		}
	}
}

// The keys that encrypt the secrets of webhooks can be changed without a restart. They do not appear
// in the log.
func TestKeysOfWebhooksRotate(t *testing.T) {
	const first, second = "YWJjZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXoxMjM0NTY=", "MTIzNDU2YWJjZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXo="
	keys := newFile(t, first+"\n")
	c, _, clock := watchingServer(t, "-addr 127.0.0.1:0", "ORDERGRAPH_WEBHOOK_KEY_FILE="+string(keys))
	for _, text := range []string{second + "\n" + first + "\n", "MARKER", strings.Repeat("A", 43) + "="} {
		keys.write(t, text)
		clock.Advance(10 * time.Second)
	}
	if log := c.stderr.String(); strings.Count(log, "a secret has changed") != 1 || strings.Count(log, "cannot use the changed file") != 2 || strings.Contains(log, "MARKER") || strings.Contains(log, "YWJj") {
		t.Errorf("the log is %s", log)
	}
}

// The commands of docs/webhooks.md record payments. The order is paid by both together, so it is
// confirmed.
func TestCommandsOfWebhookDocs(t *testing.T) {
	for _, program := range []string{"sh", "openssl", "curl", "od"} {
		if _, err := exec.LookPath(program); err != nil {
			if os.Getenv("CI") != "" {
				t.Fatal(err)
			}
			t.Skip(err)
		}
	}
	secret := "whsec_" + strings.Repeat("b2xkZXIx", 4)
	_, url := serve(t, "-addr 127.0.0.1:0", "ORDERGRAPH_WEBHOOK_SECRETS_STRIPE="+secret, "ORDERGRAPH_WEBHOOK_SECRETS_PAYMENTS="+secret, "ORDERGRAPH_CONFIRM_PAID=on")
	for _, path := range []string{"/webhooks/stripe", "/webhooks/payments"} {
		commands := findInFile(t, "docs/webhooks.md", "(?s)```sh\n(at=[^`]*localhost:8080"+path+" [^`]*)```")
		c := exec.CommandContext(t.Context(), "sh", "-c", strings.ReplaceAll(commands, "http://localhost:8080", url))
		c.Env = append(os.Environ(), "secret="+secret)
		if out, err := c.CombinedOutput(); err != nil || string(out) != "ok\n" {
			t.Errorf("%s: %s, %v", path, out, err)
		}
	}
	const query = `{"query":"{ order(id: \"01HVNR4Q3R0000000000000002\") { status payments { nodes { kind amount { amount } provider actor } } } }"}`
	if _, got := post(t, url, query); got != `{"data":{"order":{"status":"CONFIRMED","payments":{"nodes":[{"kind":"CAPTURE","amount":{"amount":"9.99"},"provider":"stripe","actor":"stripe"},{"kind":"CAPTURE","amount":{"amount":"20.00"},"provider":"adyen","actor":"adyen"}]}}}}` {
		t.Error(got)
	}
}

// Every secret can be changed without a restart. The tests above rotate each secret in this list.
func TestAllSecretsRotate(t *testing.T) {
	var secrets []string
	for _, section := range config.Sections() {
		for _, s := range section.Settings {
			if s.Secret {
				secrets = append(secrets, s.Name)
			}
		}
	}
	if want := []string{"ORDERGRAPH_CURSOR_KEY", "ORDERGRAPH_JWT_SECRET", "ORDERGRAPH_WEBHOOK_SECRETS_STRIPE", "ORDERGRAPH_WEBHOOK_SECRETS_PAYMENTS", "ORDERGRAPH_WEBHOOK_KEY"}; !slices.Equal(secrets, want) {
		t.Errorf("the secrets are %q, want %q: rotate the others in watchSecrets, and test it", secrets, want)
	}
}

// A flag of the command serve changes a limit, and takes precedence over the environment.
func TestFlagsOfServe(t *testing.T) {
	_, url := serve(t, "-addr 127.0.0.1:0 -max-aliases 1 -introspection=off", "ORDERGRAPH_MAX_ALIASES=100")
	if _, answer := postAs(t, url, "", `{"query":"{ a: __typename b: __typename }"}`); !strings.Contains(answer, "TOO_MANY_ALIASES") {
		t.Errorf("the answer is %s", answer)
	}
	run(t, "-addr 127.0.0.1:0 -max-aliases none").checkFailed(t, 2, `-max-aliases is "none"`, "1 to 2147483647", "ordergraph help config")
	run(t, "-addr 127.0.0.1:0 -max-alias 1").checkFailed(t, 2, "-max-alias")
	run(t, "-config /nowhere/file").checkFailed(t, 1, "ORDERGRAPH_CONFIG", "/nowhere/file", "no such file")
}

// Commands that open a store also read the configuration file.
func TestFileOfOtherCommands(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data.db")
	settings := string(newFile(t, "ORDERGRAPH_DATA="+data+"\nORDERGRAPH_TABLE=orders\n"))
	run(t, "table create -config "+settings).checkSucceeded(t, "Table orders is ready")
	run(t, "table describe", "ORDERGRAPH_CONFIG="+settings).checkSucceeded(t, "orders")
	run(t, "table describe -data "+data, "ORDERGRAPH_TABLE=orders").checkSucceeded(t, "orders")
}

// If an environment variable is misspelled, the server logs a warning and starts.
func TestMisspelledVariable(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	c := startIn(ctx, cli.Environment{Environ: func() []string { return []string{"ORDERGRAPH_MAX_BODDY=MARKER"} }}, "-addr 127.0.0.1:0")
	<-c.listening
	stop()
	<-c.done
	if log := c.stderr.String(); strings.Count(log, "\n") != 1 || !strings.Contains(log, "did you mean ORDERGRAPH_MAX_BODY?") || !strings.Contains(log, `"WARN"`) || strings.Contains(log, "MARKER") {
		t.Errorf("the log is %s", log)
	}
}

// The command config prints each setting with its value and its source, and masks secrets.
func TestConfigCommand(t *testing.T) {
	const marker = "MARKER of more than thirty-two letters"
	secret := string(newFile(t, marker))
	settings := string(newFile(t, "ORDERGRAPH_TABLE=orders\nORDERGRAPH_CURSOR_KEY="+marker+"\n"))
	variables := []string{"ORDERGRAPH_AUTH=jwt", "ORDERGRAPH_JWT_ISSUER=i", "ORDERGRAPH_JWT_AUDIENCE=a", "ORDERGRAPH_JWT_SECRET_FILE=" + secret, "ORDERGRAPH_CONFIG=" + settings}
	c := run(t, "config -max-body 5", variables...)
	c.checkSucceeded(t)
	lines := map[string]string{}
	for line := range strings.Lines(c.stdout.String()) {
		name, rest, _ := strings.Cut(line, " ")
		lines[name] = strings.Join(strings.Fields(rest), " ")
	}
	for name, want := range map[string]string{
		"ORDERGRAPH_TABLE": "orders file " + settings + ":1", "ORDERGRAPH_CURSOR_KEY": "******** file " + settings + ":2", "ORDERGRAPH_JWT_SECRET": "******** in " + secret + " environment",
		"ORDERGRAPH_MAX_BODY": "5 flag", "ORDERGRAPH_AUTH": "jwt environment", "PORT": "8080 default", "ORDERGRAPH_ADDR": ":8080 default", "ORDERGRAPH_DATA": "- default", "ORDERGRAPH_RATE_BURST": "200000 default",
	} {
		if lines[name] != want {
			t.Errorf("%s is %q, want %q", name, lines[name], want)
		}
	}
	asJSON := run(t, "config -json", variables...)
	asJSON.checkSucceeded(t)
	var got struct {
		Settings           []config.EffectiveSetting
		Problems, Warnings []string
	}
	if err := json.Unmarshal([]byte(asJSON.stdout.String()), &got); err != nil || len(got.Settings) != len(lines) || got.Problems == nil || got.Warnings == nil || len(got.Problems) > 0 {
		t.Errorf("%s: %v", asJSON.stdout.String(), err)
	}
	if i := slices.IndexFunc(got.Settings, func(e config.EffectiveSetting) bool { return e.Name == "ORDERGRAPH_JWT_SECRET" }); i < 0 || got.Settings[i] != (config.EffectiveSetting{Name: "ORDERGRAPH_JWT_SECRET", Value: "********", Source: "environment", SecretFile: secret}) {
		t.Errorf("the JSON of the secret is in %+v", got.Settings)
	}

	// If a setting is invalid, the command config still prints all other settings.
	for line, stdout := range map[string]string{"config -max-cost 0": "(invalid)", "config -max-cost 0 -json": `"problem": "-max-cost is`} {
		invalid := run(t, line, append([]string{"ORDERGRAPH_JWT_LEEWAY=1h"}, variables...)...)
		stderr := invalid.stderr.String()
		if out := invalid.stdout.String(); invalid.status != 1 || strings.Count(out, stdout) == 0 || !strings.Contains(out, "orders") || strings.Contains(out+stderr, "MARKER") {
			t.Errorf("%s: status %d, %s", line, invalid.status, out)
		}
		for _, part := range []string{"the settings have 2 problems", `-max-cost is "0"`, `ORDERGRAPH_JWT_LEEWAY is "1h"`} {
			if !strings.Contains(stderr, part) {
				t.Errorf("%s: stderr does not contain %s: %s", line, part, stderr)
			}
		}
	}
	unset := run(t, "config", useDynamoDB)
	if unset.status != 1 || !strings.Contains(unset.stderr.String(), "ORDERGRAPH_AUTH is not set") {
		t.Errorf("a setting that the server requires is not set: status %d, %s", unset.status, unset.stderr.String())
	}
	run(t, "config all").checkFailed(t, 2, `unexpected argument "all"`)
}
