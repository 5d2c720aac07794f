package cli_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ordergraph/ordergraph/internal/cli"
	"github.com/ordergraph/ordergraph/internal/server"
)

// writeTempFile writes a temporary file and returns its name.
func writeTempFile(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "manifest.json")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

const (
	fineManifest = `{"format": "apollo-persisted-query-manifest", "version": 1, "operations": [
		{"id": "orders", "name": "Orders", "type": "query", "body": "query Orders { orders(first: 10) { nodes { id customer { name } } } }"},
		{"id": "alice", "name": "Alice", "type": "query", "body": "query Alice { customer(id: \"cust_01\") { name } }"}]}`
	// A valid and an invalid document, in the format of Relay's compiler.
	halfManifest = `{"a1": "query Alice {\n  customer(id: \"cust_01\") { name }\n}", "b2": "query Wrong {\n  customer(id: 1) { nonsense }\n}"}`
	noneManifest = `{"b2": "query Wrong {\n  nonsense\n}", "c3": "{"}`
)

func TestDocumentsCheck(t *testing.T) {
	name := writeTempFile(t, fineManifest)
	for _, line := range []string{"documents check " + name, "documents check " + name + " --shards 4 -max-requests 100000", "documents -max-units=1e9 check --max-requests 100000 " + name} {
		run(t, line).checkSucceeded(t, "requests  round trips  read units  operation\n", "query Orders (orders)\n", "query Alice (alice)\n", "\n2 operations: fine\n")
	}
	// The command needs no table.
	run(t, "documents check "+name, "ORDERGRAPH_STORE=dynamodb", "AWS_REGION=").checkSucceeded(t, "fine")
	run(t, "documents check "+name, "ORDERGRAPH_SHARDS=0").checkFailed(t, 1, "ORDERGRAPH_SHARDS")
}

func TestDocumentsCheckInvalidDocuments(t *testing.T) {
	c := run(t, "documents check "+writeTempFile(t, halfManifest))
	if c.status != 1 || c.stderr.String() != "" {
		t.Errorf("exit %d, stderr %q", c.status, c.stderr.String())
	}
	for _, part := range []string{"invalid  Wrong (b2): 2:21: Cannot query field \"nonsense\" on type \"Customer\"", "query Alice (a1)\n", "\n2 operations: 1 invalid (the server would reject them)\n"} {
		if !strings.Contains(c.stdout.String(), part) {
			t.Errorf("stdout does not contain %q:\n%s", part, c.stdout.String())
		}
	}
	if c := run(t, "documents check "+writeTempFile(t, noneManifest)); c.status != 1 || strings.Contains(c.stdout.String(), "round trips") || !strings.Contains(c.stdout.String(), "invalid  c3: 1:2: ") {
		t.Errorf("exit %d:\n%s", c.status, c.stdout.String())
	}
	// The server's limits apply.
	c = run(t, "documents check "+writeTempFile(t, fineManifest), "ORDERGRAPH_MAX_TOKENS=5")
	if c.status != 1 || strings.Count(c.stdout.String(), "invalid  ") != 2 {
		t.Errorf("exit %d:\n%s", c.status, c.stdout.String())
	}
}

func TestDocumentsCheckStandardInput(t *testing.T) {
	var out, stderr strings.Builder
	for _, line := range []string{"documents check -", "documents check - -json", "documents check -json -"} {
		out.Reset()
		status := cli.Run(t.Context(), strings.Fields(line), cli.Environment{Stdin: strings.NewReader(fineManifest), Stdout: &out, Stderr: &stderr, Getenv: func(string) string { return "" }})
		if status != 0 || stderr.String() != "" || !strings.Contains(out.String(), "fine") {
			t.Errorf("%s: exit %d, %q, %q", line, status, stderr.String(), out.String())
		}
	}
}

func TestDocumentsCheckInvalidManifest(t *testing.T) {
	run(t, "documents check /nowhere/manifest.json").checkFailed(t, 1, "/nowhere/manifest.json", "no such file")
	name := writeTempFile(t, `{"a": 1}`)
	run(t, "documents check "+name).checkFailed(t, 1, name, "not a manifest", "@apollo/generate-persisted-query-manifest")
}

// checkedLine is a line of `documents check -json`.
type checkedLine struct {
	ID, Name, Type string
	Bound          *struct {
		Requests, RoundTrips int
		ReadUnits            float64
		Patterns             []struct {
			AccessPattern string
			Requests      int
			ReadUnits     float64
		}
	}
	OverBudget []string
	Errors     []struct {
		Message      string
		Line, Column int
	}
	Summary *struct {
		Fine                            bool
		Operations, Invalid, OverBudget int
	}
}

func (c *command) checkedLines(t *testing.T) []checkedLine {
	t.Helper()
	var lines []checkedLine
	for text := range strings.Lines(c.stdout.String()) {
		var l checkedLine
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatalf("%v in %q", err, text)
		}
		lines = append(lines, l)
	}
	return lines
}

func TestDocumentsCheckJSON(t *testing.T) {
	c := run(t, "documents check -json "+writeTempFile(t, halfManifest))
	lines := c.checkedLines(t)
	if c.status != 1 || len(lines) != 3 {
		t.Fatalf("exit %d:\n%s", c.status, c.stdout.String())
	}
	wrong, alice, sum := lines[0], lines[1], lines[2].Summary
	if wrong.ID != "b2" || wrong.Name != "Wrong" || wrong.Bound != nil || len(wrong.Errors) != 1 || wrong.Errors[0].Line != 2 || wrong.Errors[0].Column != 21 {
		t.Errorf("%+v", wrong)
	}
	if alice.ID != "a1" || alice.Name != "Alice" || alice.Type != "query" || alice.Bound == nil || alice.Bound.Patterns == nil || alice.Errors != nil {
		t.Errorf("%+v", alice)
	}
	if sum == nil || sum.Fine || sum.Operations != 2 || sum.Invalid != 1 || sum.OverBudget != 0 {
		t.Errorf("%+v", sum)
	}
}

// An operation may use exactly the budget.
func TestDocumentsCheckBudget(t *testing.T) {
	name := writeTempFile(t, fineManifest)
	worst := run(t, "documents check -json "+name).checkedLines(t)[0]
	exact := fmt.Sprintf("documents check %s -max-requests %d -max-units %g", name, worst.Bound.Requests, worst.Bound.ReadUnits)
	run(t, exact).checkSucceeded(t, "2 operations: fine\n")
	if worst.Bound.Requests == 0 {
		return
	}
	c := run(t, fmt.Sprintf("documents check %s -max-requests %d", name, worst.Bound.Requests-1))
	if c.status != 1 || !strings.Contains(c.stdout.String(), ", 1 more than ") || !strings.Contains(c.stdout.String(), "over the budget:") {
		t.Errorf("exit %d:\n%s", c.status, c.stdout.String())
	}
}

func TestServeTrustedDocuments(t *testing.T) {
	name := writeTempFile(t, fineManifest)
	const alice = `{"data":{"customer":{"name":"Alice Chen"}}}`
	body := func(documentName string) string {
		return `{"extensions":{"persistedQuery":{"version":1,"sha256Hash":"` + documentName + `"}}}`
	}
	_, url := serve(t, "-addr 127.0.0.1:0", "ORDERGRAPH_DOCUMENTS="+name)
	if status, answer := post(t, url, body("alice")); status != http.StatusOK || strings.TrimSpace(answer) != alice {
		t.Errorf("status %d, %s", status, answer)
	}
	askFirstQuery(t, url)

	c, url := serve(t, "-addr 127.0.0.1:0", "ORDERGRAPH_DOCUMENTS="+name, "ORDERGRAPH_TRUSTED_ONLY=on")
	if status, answer := post(t, url, body("alice")); status != http.StatusOK || strings.TrimSpace(answer) != alice {
		t.Errorf("status %d, %s", status, answer)
	}
	for _, refused := range []string{`{"query":"{ __typename }"}`, body("nothing")} {
		if _, answer := post(t, url, refused); !strings.Contains(answer, `"DOCUMENT_NOT_TRUSTED"`) || strings.Contains(answer, `"data"`) {
			t.Errorf("%s: %s", refused, answer)
		}
	}
	if out := c.stdout.String(); !strings.Contains(out, "only trusted documents from "+name) || strings.Contains(out, "curl") {
		t.Errorf("stdout is %s", out)
	}
}

// An invalid document is logged, and the server starts with the others.
func TestServeLogsInvalidTrustedDocuments(t *testing.T) {
	name := writeTempFile(t, halfManifest)
	ctx, stop := context.WithCancel(t.Context())
	c := start(ctx, "-addr 127.0.0.1:0", "ORDERGRAPH_DOCUMENTS="+name)
	addr := <-c.listening
	_, answer := readResponse(t)(http.Post("http://"+addr.String()+server.PathGraphQL, "application/json", strings.NewReader(`{"extensions":{"persistedQuery":{"version":1,"sha256Hash":"b2"}}}`)))
	if !strings.Contains(answer, "Cannot query field") {
		t.Errorf("the response is %s", answer)
	}
	stop()
	<-c.done
	var entry map[string]string
	if err := json.Unmarshal([]byte(c.stderr.String()), &entry); err != nil || entry["id"] != "b2" || entry["name"] != "Wrong" || entry["file"] != name || !strings.HasPrefix(entry["error"], "2:21: Cannot query") || entry["level"] != "ERROR" {
		t.Errorf("stderr %q: %v", c.stderr.String(), err)
	}
}

// The server does not start if its manifest is unreadable or has no valid document.
func TestServeWithoutTrustedDocuments(t *testing.T) {
	run(t, "-addr 127.0.0.1:0", "ORDERGRAPH_DOCUMENTS=/nowhere/manifest.json").checkFailed(t, 1, "ORDERGRAPH_DOCUMENTS", "/nowhere/manifest.json", "no such file")
	name := writeTempFile(t, "{}")
	run(t, "-addr 127.0.0.1:0", "ORDERGRAPH_DOCUMENTS="+name).checkFailed(t, 1, "ORDERGRAPH_DOCUMENTS", name, "has no documents")
	run(t, "-addr 127.0.0.1:0", "ORDERGRAPH_TRUSTED_ONLY=on").checkFailed(t, 1, "ORDERGRAPH_TRUSTED_ONLY", "ORDERGRAPH_DOCUMENTS")
	name = writeTempFile(t, noneManifest)
	c := run(t, "-addr 127.0.0.1:0", "ORDERGRAPH_DOCUMENTS="+name)
	lines := strings.Split(strings.TrimSpace(c.stderr.String()), "\n")
	if last := lines[len(lines)-1]; c.status != 1 || c.stdout.String() != "" || len(lines) != 3 || !strings.Contains(last, "none of its 2 documents matches") || !strings.Contains(last, "Wrong (b2): 2:3: Cannot query") {
		t.Errorf("exit %d, stderr %q", c.status, c.stderr.String())
	}
}
