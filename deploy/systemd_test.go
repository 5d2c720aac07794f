//go:build linux

package deploy_test

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ordergraph/ordergraph/internal/cli"
	"github.com/ordergraph/ordergraph/internal/config"
)

// If the name of the test binary is ordergraph, TestMain runs the command ordergraph instead of the
// tests.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "ordergraph" {
		env := cli.Environment{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv}
		os.Exit(cli.Run(context.Background(), os.Args[1:], env))
	}
	os.Exit(m.Run())
}

// The backup script verifies the new copy before it deletes old copies.
func TestBackup(t *testing.T) {
	dir := t.TempDir()
	bin, file, backups := filepath.Join(dir, "bin"), filepath.Join(dir, "orders.db"), filepath.Join(dir, "backups")
	for _, d := range []string{bin, backups} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(program, filepath.Join(bin, "ordergraph")); err != nil {
		t.Fatal(err)
	}
	write := func(name, content string, mode os.FileMode) {
		t.Helper()
		if err := os.WriteFile(name, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
	}
	environment := append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "ORDERGRAPH_DATA="+file)
	for _, args := range [][]string{{"table", "create"}, {"seed"}} {
		command := exec.CommandContext(t.Context(), filepath.Join(bin, "ordergraph"), args...)
		command.Env = environment
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}

	old := filepath.Join(backups, "orders-2020-01-01T033000Z.db")
	for _, c := range []struct {
		name, file string
		fails      bool
	}{
		{name: "no file", file: filepath.Join(dir, "missing.db"), fails: true},
		{name: "damaged file", file: program, fails: true},
		{name: "file", file: file},
	} {
		t.Run(c.name, func(t *testing.T) {
			if copies, err := filepath.Glob(filepath.Join(backups, "*")); err == nil {
				for _, name := range copies {
					if err := os.Remove(name); err != nil {
						t.Fatal(err)
					}
				}
			}
			write(old, "", 0o600)
			if err := os.Chtimes(old, time.Time{}, time.Now().AddDate(0, 0, -16)); err != nil {
				t.Fatal(err)
			}
			backup := exec.CommandContext(t.Context(), "systemd/ordergraph-backup", c.file, backups, "14")
			backup.Env = environment
			out, err := backup.CombinedOutput()
			if (err != nil) != c.fails {
				t.Fatalf("%v: %s", err, out)
			}
			_, err = os.Stat(old)
			if c.fails {
				if err != nil {
					t.Errorf("the failed backup deleted an old copy: %v", err)
				}
				return
			}
			if !os.IsNotExist(err) {
				t.Errorf("the old copy was not deleted: %v", err)
			}
			copies, err := filepath.Glob(filepath.Join(backups, "*"))
			if err != nil || len(copies) != 1 {
				t.Fatalf("the copies are %q, %v", copies, err)
			}
			check := exec.CommandContext(t.Context(), filepath.Join(bin, "ordergraph"), "check", "-data", copies[0])
			check.Env = environment
			if out, err := check.CombinedOutput(); err != nil {
				t.Errorf("the copy is not valid: %v: %s", err, out)
			}
		})
	}
}

// The server listens only on a loopback address, because a proxy on the same machine terminates TLS.
func TestUnitListensOnLoopback(t *testing.T) {
	variables := map[string]string{"ORDERGRAPH_CURSOR_KEY": "a key of this test"}
	for _, name := range []string{"systemd/ordergraph.service", "systemd/ordergraph.env"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			variable, value, ok := strings.Cut(strings.TrimSpace(strings.TrimPrefix(line, "Environment=")), "=")
			if ok && strings.ToUpper(variable) == variable && !strings.HasSuffix(variable, "_FILE") {
				variables[variable] = value
			}
		}
	}
	cfg, err := config.Read(func(name string) string { return variables[name] })
	if err != nil {
		t.Fatal(err)
	}
	for _, addr := range []string{cfg.Addr, cfg.AdminAddr} {
		if host, _, err := net.SplitHostPort(addr); err != nil || !net.ParseIP(host).IsLoopback() {
			t.Errorf("the server listens on %q, %v, want a loopback address", addr, err)
		}
	}
}
