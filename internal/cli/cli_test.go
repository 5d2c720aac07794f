package cli_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ordergraph/ordergraph/dynamo/check"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/internal/cli"
	"github.com/ordergraph/ordergraph/internal/config"
	"github.com/ordergraph/ordergraph/internal/test/dynamolocal"
)

func TestMain(m *testing.M) { os.Exit(dynamolocal.Main(m)) }

// output is a buffer that a command writes and a test reads concurrently.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// command is a running or completed command.
type command struct {
	stdout, stderr output
	listening      chan net.Addr
	done           chan struct{}
	// status is valid after done is closed.
	status int
}

// start starts a command line, such as "table create". The variables have the form NAME=value.
func start(ctx context.Context, line string, variables ...string) *command {
	return startIn(ctx, cli.Environment{}, line, variables...)
}

// startIn is like start, but the command runs in the given environment.
func startIn(ctx context.Context, environment cli.Environment, line string, variables ...string) *command {
	c := &command{listening: make(chan net.Addr, 1), done: make(chan struct{})}
	environment.IndexLag = check.NoIndexLag // neither engine has a lag
	environment.Stdout, environment.Stderr, environment.OnListening = &c.stdout, &c.stderr, func(addr net.Addr) { c.listening <- addr }
	environment.Getenv = func(name string) string {
		for _, v := range variables {
			if value, ok := strings.CutPrefix(v, name+"="); ok {
				return value
			}
		}
		return ""
	}
	go func() {
		defer close(c.done)
		c.status = cli.Run(ctx, strings.Fields(line), environment)
	}()
	return c
}

// run runs a command line and waits for its end. It fails the test if the command starts a server.
func run(t *testing.T, line string, variables ...string) *command {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	c := start(ctx, line, variables...)
	select {
	case addr := <-c.listening:
		t.Errorf("%q listens on %v", line, addr)
		stop()
		<-c.done
	case <-c.done:
	}
	return c
}

// checkFailed checks the exit status, that stdout is empty, and that stderr is one line with all
// parts.
func (c *command) checkFailed(t *testing.T, status int, parts ...string) {
	t.Helper()
	stdout, stderr := c.stdout.String(), c.stderr.String()
	if c.status != status || stdout != "" {
		t.Errorf("exit status %d, stdout %q, want status %d and no output", c.status, stdout, status)
	}
	if !strings.HasPrefix(stderr, "ordergraph: ") || strings.Count(stderr, "\n") != 1 || !strings.HasSuffix(stderr, "\n") {
		t.Errorf("stderr is not a single line: %q", stderr)
	}
	for _, part := range parts {
		if !strings.Contains(stderr, part) {
			t.Errorf("stderr does not contain %q: %q", part, stderr)
		}
	}
}

// checkSucceeded checks that the command succeeded with an empty stderr, and that stdout contains
// all parts.
func (c *command) checkSucceeded(t *testing.T, parts ...string) {
	t.Helper()
	stdout, stderr := c.stdout.String(), c.stderr.String()
	if c.status != 0 || stderr != "" {
		t.Errorf("exit status %d, stderr %q, want status 0 and no output", c.status, stderr)
	}
	for _, part := range parts {
		if !strings.Contains(stdout, part) {
			t.Errorf("stdout does not contain %q: %q", part, stdout)
		}
	}
}

func TestPatterns(t *testing.T) {
	for line, format := range map[string]string{"patterns": "%s ", "patterns -markdown": "| %s |", "patterns --markdown=true": "| %s |"} {
		c := run(t, line)
		c.checkSucceeded(t)
		for _, p := range model.AccessPatterns() {
			if n := strings.Count("\n"+c.stdout.String(), "\n"+fmt.Sprintf(format, p.ID)); n != 1 {
				t.Errorf("%s: %s is on %d lines, want 1", line, p.ID, n)
			}
		}
		if line == "patterns" {
			c.checkSucceeded(t, "Query GSI1 per shard", "WP4 ", "placeOrder", "TransactWriteItems", "orderItem for each line", "perhaps idempotency")
			for _, p := range model.WritePatterns() {
				c.checkSucceeded(t, p.ID+" ", p.Mutation)
			}
		}
		c.checkSucceeded(t, "Query", "per shard", "gsi1pk=STATUS#{status}", "CUSTOMER#{customerId}", "GetItem", "same request as AP10")
	}
}

// The patterns command needs no configuration.
func TestPatternsNeedNoConfiguration(t *testing.T) {
	run(t, "patterns", "ORDERGRAPH_STORE=nonsense").checkSucceeded(t, "AP31")
}

func TestHelp(t *testing.T) {
	for _, line := range []string{"help", "-h", "-help", "--help", "help help", "help -h"} {
		t.Run(line, func(t *testing.T) {
			c := run(t, line)
			c.checkSucceeded(t, "[serve] [-addr HOST:PORT] [-data FILE] [-sample]", "local [-addr HOST:PORT] [-data FILE]", "table create", "table describe", "seed [FILE]", "seed -generate [-customers N] [-orders N]", "export [-segments N]", "import [-overwrite] [-dry-run] [-skip-unreadable] FILE", "check [-repair [-restore]] [-json]", "documents check [-max-requests N] [-max-units N] [-shards N] [-json] MANIFEST", "price [-dataset FILE] PROFILE", "token -role ROLE [-customer ID] [-subject NAME] [-ttl TIME] [-key FILE]", "token key FILE", "patterns [-markdown]", "config [-json]", "ordergraph help config")
		})
	}
}

// The command `version` also has the names -version and --version.
func TestVersion(t *testing.T) {
	want := run(t, "version")
	want.checkSucceeded(t, "ordergraph ")
	for _, line := range []string{"-version", "--version"} {
		c := run(t, line)
		c.checkSucceeded(t, want.stdout.String())
	}
	run(t, "--version -json").checkSucceeded(t, `{"version":`)
}

// The command "help config" describes all settings as plain text.
func TestHelpOfSettings(t *testing.T) {
	c := run(t, "help config")
	for _, section := range config.Sections() {
		for _, s := range section.Settings {
			c.checkSucceeded(t, "\n  "+strings.Join(s.Variables(), ", "))
			if s.Flag() != "" {
				c.checkSucceeded(t, ", -"+s.Flag())
			}
		}
	}
	c.checkSucceeded(t, "AWS_REGION", "Go runtime's memory limit", "factor for each role")
	for line := range strings.Lines(c.stdout.String()) {
		if strings.ContainsAny(line, "`") || strings.Contains(line, "](") {
			t.Errorf("the line is not plain text: %q", line)
		}
	}
}

// A command's help describes each of its flags.
func TestCommandHelp(t *testing.T) {
	for command, flags := range map[string][]string{
		"serve": {"-schema", "-addr", "-config", "-data", "-sample"}, "local": {"-schema", "-addr", "-config", "-data", "-ttl-interval"}, "table": {"-schema", "-config", "-data", "-parallel", "-units-per-second"}, "seed": {"-schema", "-config", "-data", "-generate", "-customers", "-orders", "-items", "-products", "-statuses", "-seed", "-from"}, "export": {"-schema", "-config", "-data", "-segments", "-overwrite"}, "import": {"-schema", "-config", "-data", "-from", "-overwrite", "-dry-run", "-skip-unreadable"},
		"check": {"-schema", "-config", "-data", "-repair", "-restore", "-json"}, "documents": {"-max-requests", "-max-units", "-shards", "-json"}, "patterns": {"-markdown"}, "price": {"-dataset"},
		"config": {"-schema", "-addr", "-config", "-data", "-json", "-sample"}, "token": {"-role", "-customer", "-subject", "-ttl", "-key"},
	} {
		for _, line := range []string{"help " + command, command + " -h", command + " --help"} {
			t.Run(line, func(t *testing.T) {
				c := run(t, line)
				c.checkSucceeded(t, command)
				var described []string
				for line := range strings.Lines(c.stdout.String()) {
					if words := strings.Fields(line); len(words) > 0 && strings.HasPrefix(line, "  -") {
						if len(words) < 3 {
							t.Errorf("%q has no description", line)
						}
						described = append(described, words[0])
					}
				}
				slices.Sort(described)
				if slices.Sort(flags); !slices.Equal(described, flags) {
					t.Errorf("its flags are %v, want %v", described, flags)
				}
			})
		}
	}
}

// Help works with an invalid environment.
func TestHelpNeedsNoConfiguration(t *testing.T) {
	for _, line := range []string{"help", "-h", "serve -h"} {
		run(t, line, "PORT=nonsense", "ORDERGRAPH_CONFIG=/nowhere").checkSucceeded(t, "serve")
	}
}

func TestInvalidArguments(t *testing.T) {
	for line, message := range map[string]string{
		"nonsense":              `unknown command "nonsense"`,
		"Serve":                 `unknown command "Serve" (did you mean serve?)`,
		"chekc":                 "(did you mean check?)",
		"-dta orders.db":        "-dta (did you mean -data?)",
		"check -repiar":         "-repiar (did you mean -repair?)",
		"version -x":            "-x; see",
		"lambda -x":             "-x; see",
		"serve now":             `"now"`,
		"-portal 80":            "-portal",
		"serve -portal 80":      "-portal",
		"serve -port http":      `-port is "http"`,
		"serve -jwt-secret x":   "-jwt-secret",
		"serve -addr":           "-addr",
		"patterns all":          `"all"`,
		"patterns -json":        "-json",
		"table":                 "expected create, describe",
		"table delete":          "expected create, describe",
		"table create now":      `unexpected argument "now"`,
		"seed a b":              `unexpected argument "b"`,
		"seed -force":           "-force",
		"export":                "name a file",
		"export a b":            `unexpected argument "b"`,
		"export -dry-run":       "-dry-run",
		"export -segments 33 a": "use 1 to 32",
		"export -segments -1 a": "use 1 to 32",
		"export -segments 0 a":  "use 1 to 32",
		"export -segments x a":  "use 1 to 32",
		"export a -overwrite":   "put flags before FILE",
		"import - -dry-run":     "put flags before FILE",
		"help nonsense":         `unknown command "nonsense"`,
		"import":                "name a file",
		"import a b":            `unexpected argument "b"`,
		"import -segments":      "-segments",

		"documents":                           "expected check",
		"documents lint x":                    "expected check",
		"documents -json":                     "expected check",
		"documents check":                     "name a manifest",
		"documents check -json":               "name a manifest",
		"documents check a b":                 `unexpected argument "b"`,
		"documents check a -json b":           `unexpected argument "b"`,
		"documents check a -fast":             "-fast",
		"documents check a -max-requests":     "-max-requests",
		"documents check a -max-requests -1":  "must be 0 or more",
		"documents check a -max-requests 1.5": "-max-requests",
		"documents check a -max-units -0.5":   "must be 0 or more",
		"documents check a -max-units NaN":    "must be 0 or more",
		"documents check a -shards 0":         "use 1 to 128",
		"documents check a -shards 129":       "use 1 to 128",
		"documents check a -shards x":         "use 1 to 128",

		"token":                                  "CUSTOMER, STAFF, ADMIN or SERVICE",
		"token -role ROOT":                       `"ROOT"`,
		"token -role CUSTOMER":                   "-customer",
		"token -role CUSTOMER -customer a#b":     "use only A-Z",
		"token -role STAFF -customer cust_01":    "-role CUSTOMER",
		"token -role STAFF -ttl 24h1s":           "1s to 24h",
		"token -role STAFF -ttl 0s":              "1s to 24h",
		"token -role STAFF -ttl 5":               "-ttl",
		"token -role STAFF now":                  `unexpected argument "now"`,
		"token -secret x":                        "-secret",
		"token key":                              "name a file",
		"seed -orders 3":                         "-orders requires -generate",
		"seed -seed 1 dataset.json":              "-seed requires -generate",
		"seed -generate dataset.json":            `accepts no FILE argument such as "dataset.json"`,
		"seed -generate -items 4-2":              "-items is 4-2",
		"seed -generate -items few":              "such as 3 or 1-5",
		"seed -generate -statuses lost=1":        `"lost=1" is not a status`,
		"seed -generate -customers 0":            "-customers is 0: use 1 to",
		"seed -generate -products 2":             "-products is 2",
		"seed -generate -orders 10 -from 11":     "-from is 11",
		"token key a b":                          `unexpected argument "b"`,
		"token key -role STAFF /nowhere/dev-key": "accepts no flags",
		"token key /nowhere/dev-key -ttl 1h":     "accepts no flags",
	} {
		t.Run(line, func(t *testing.T) { run(t, line).checkFailed(t, 2, message, "ordergraph help") })
	}
}

// An invalid setting is a failure, not a usage error, and is reported before a store is opened.
func TestInvalidSetting(t *testing.T) {
	for _, line := range []string{"serve", "table create", "table describe", "seed", "export x", "import x"} {
		run(t, line, "ORDERGRAPH_STORE=mysql").checkFailed(t, 1, "ORDERGRAPH_STORE", `"mysql"`, "embedded or dynamodb")
	}
}

// Commands for tables fail with the embedded store in memory, whose data does not outlive a
// command.
func TestCommandsThatNeedDynamoDB(t *testing.T) {
	for _, line := range []string{"table create", "table describe", "seed", "export x", "import x"} {
		command, _, _ := strings.Cut(line, " x")
		run(t, line).checkFailed(t, 1, command, "ORDERGRAPH_STORE=dynamodb")
	}
}

func TestSeedMissingFile(t *testing.T) {
	run(t, "seed /nowhere/dataset.json").checkFailed(t, 1, "/nowhere/dataset.json", "no such file")
}
