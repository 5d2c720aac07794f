package version_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

const (
	module     = "github.com/ordergraph/ordergraph"
	linkerFlag = "-ldflags=-X " + module + "/internal/version.linked=v4.5.6"
)

// workspace is a Git repository with a small program that prints the version. The program has the
// module path of Ordergraph and its package version.
type workspace struct {
	t         *testing.T
	dir       string
	variables []string
}

func newWorkspace(t *testing.T) workspace {
	t.Helper()
	for _, program := range []string{"git", "go"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("the test needs %s", program)
		}
	}
	w := workspace{t: t, dir: t.TempDir()}
	source, err := os.ReadFile("version.go")
	if err != nil {
		t.Fatal(err)
	}
	w.write("go.mod", "module "+module+"\n\ngo 1.26.0\n")
	w.write("internal/version/version.go", string(source))
	w.write("main.go", `package main

import (
	"fmt"

	"github.com/ordergraph/ordergraph/internal/version"
)

func main() { fmt.Println(version.Get().Version, version.Get().Commit, version.Get().Modified) }
`)
	// Git reads the module from the directory instead of GitHub. Its own configuration is ignored.
	w.variables = append(os.Environ(),
		"GOFLAGS=-modcacherw", "GOWORK=off", "GOPRIVATE="+module, "GOMODCACHE="+t.TempDir(), "GOBIN="+filepath.Join(w.dir, "bin"),
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_COUNT=3",
		"GIT_CONFIG_KEY_0=url.file://"+w.dir+".insteadOf", "GIT_CONFIG_VALUE_0=https://"+module,
		"GIT_CONFIG_KEY_1=user.name", "GIT_CONFIG_VALUE_1=test", "GIT_CONFIG_KEY_2=user.email", "GIT_CONFIG_VALUE_2=test@example.com")
	w.run("git", "init", "--quiet")
	w.write(".git/info/exclude", "bin/\n")
	w.commit()
	return w
}

func (w workspace) write(name, text string) {
	w.t.Helper()
	path := filepath.Join(w.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

func (w workspace) run(program string, args ...string) string {
	w.t.Helper()
	command := exec.CommandContext(w.t.Context(), program, args...)
	command.Dir, command.Env = w.dir, w.variables
	out, err := command.CombinedOutput()
	if err != nil {
		w.t.Fatalf("%s %q: %v\n%s", program, args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (w workspace) commit() {
	w.t.Helper()
	w.run("git", "add", "--all")
	w.run("git", "commit", "--quiet", "--message=a commit")
}

// build runs `go build` with the given flags, and returns what the program prints.
func (w workspace) build(flags ...string) string {
	w.t.Helper()
	program := filepath.Join(w.dir, "bin", "built")
	w.run("go", append(append([]string{"build", "-o", program}, flags...), ".")...)
	return w.run(program)
}

// Every kind of build has the right version.
func TestBuilds(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the test needs file URLs without drive letters")
	}
	w := newWorkspace(t)
	check := func(name, got, want string) {
		t.Helper()
		if !regexp.MustCompile("^" + want + "$").MatchString(got) {
			t.Errorf("%s: %q, want %s", name, got, want)
		}
	}
	const pseudo, commit = `v0\.0\.0-\d{14}-[0-9a-f]{12}`, `[0-9a-f]{40}`
	check("a commit without a tag", w.build(), pseudo+" "+commit+" false")
	w.run("git", "tag", "v1.2.3")
	check("a commit with a tag", w.build(), `v1\.2\.3 `+commit+" false")
	check("a build without paths", w.build("-trimpath"), `v1\.2\.3 `+commit+" false")
	check("a commit with a tag and a flag of the linker", w.build(linkerFlag), `v1\.2\.3 `+commit+" false")
	check("a build that ignores Git", w.build("-buildvcs=false"), `\(devel\)  false`)
	check("a build that ignores Git, and a flag of the linker", w.build("-buildvcs=false", linkerFlag), `v4\.5\.6  false`)
	w.write("main_linux.go", "package main\n")
	check("a working tree with changes", w.build(), `v1\.2\.3\+dirty `+commit+" true")
	w.commit()
	check("a commit after the tag", w.build(), `v1\.2\.4-0\.\d{14}-[0-9a-f]{12} `+commit+" false")
	w.run("go", "install", module+"@v1.2.3")
	check("go install", w.run(filepath.Join(w.dir, "bin", "ordergraph")), `v1\.2\.3  false`)
	if err := os.RemoveAll(filepath.Join(w.dir, ".git")); err != nil {
		t.Fatal(err)
	}
	check("files without Git", w.build(), `\(devel\)  false`)
}
