package customfields_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ordergraph/ordergraph/internal/test/longtest"
	"github.com/ordergraph/ordergraph/internal/test/workload"
)

// In a new table, lists and look-ups can be read at once. A server without the file refuses the table, and
// names the command that removes the lists. The commands plan and drop also work without the file.
func TestCommandsWithAndWithoutTheFile(t *testing.T) {
	longtest.Skip(t)
	binary, dir := workload.BuildServer(t, "../.."), t.TempDir()
	schema := filepath.Join(dir, "shop.graphqls")
	if err := os.WriteFile(schema, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(succeeds bool, want string, arguments ...string) {
		t.Helper()
		c := exec.CommandContext(t.Context(), binary, append(arguments, "-data", filepath.Join(dir, "shop.db"))...)
		c.Env = append(os.Environ(), "ORDERGRAPH_STORE=embedded")
		out, err := c.CombinedOutput()
		if (err == nil) != succeeds || !strings.Contains(string(out), want) {
			t.Errorf("%v: %v\n%s\nwant %q", arguments, err, out, want)
		}
	}
	run(true, "is ready", "table", "create", "-schema", schema)
	run(true, "9 orders", "seed", "-schema", schema)
	run(true, "all lists and numbers are readable", "table", "describe", "-schema", schema)
	run(true, "clean", "check", "-schema", schema)
	run(true, "records  9 to remove", "table", "plan", "orderList.channel", "-schema", schema)
	refusal := `contains "customerList.marketingConsent", which the schema extension of this process does not declare: use the earlier file, or remove the records with ` + "`ordergraph table drop customerList.marketingConsent` first"
	run(false, refusal, "serve", "-addr", "127.0.0.1:0")
	run(false, refusal, "check")
	run(false, "no schema extension declares orderList.channel: name the file with -schema", "table", "apply", "orderList.channel")
	run(true, "records  9 to remove", "table", "plan", "orderList.channel")
	run(true, "orderList.channel", "table", "plan")
	run(false, "neither the table nor a schema extension contains orderList.typo", "table", "plan", "orderList.typo")
	run(false, `"orderList" is no derivation`, "table", "drop", "orderList", "-schema", schema)
}
