package variant

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// Binary is the test binary of a package that contains variants.
type Binary struct{ path, dir string }

// Result is the result of a run of a test binary.
type Result struct {
	// Failed reports whether a test failed, or the run did not end within the time limit.
	Failed bool
	// Output is what the run printed.
	Output string
	// CPU is the CPU time of the run.
	CPU time.Duration
}

// Build compiles the test binary of a package, such as "./e2e/races". files are the changed files
// that Read returns.
func Build(t testing.TB, files map[string]string, pkg string) Binary {
	t.Helper()
	root, dir := moduleRoot(t), t.TempDir()
	b := Binary{path: filepath.Join(dir, "variants.test"), dir: filepath.Join(root, pkg)}
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-overlay", writeOverlay(t, root, dir, files), "-o", b.path, pkg)
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build %s with variants: %v\n%s", pkg, err, out)
	}
	return b
}

// Run runs the binary in the directory of its package. name is the active variant. If it is empty,
// the code is correct. After the time limit, Run kills the process, which
// has then not failed.
func Run(t testing.TB, b Binary, name string, limit time.Duration, args ...string) Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	run := exec.CommandContext(ctx, b.path, args...)
	run.Dir, run.Env = b.dir, append(os.Environ(), Environment+"="+name)
	out, err := run.CombinedOutput()
	if run.ProcessState == nil {
		t.Fatalf("run %s: %v", b.path, err)
	}
	return Result{Failed: err != nil && ctx.Err() == nil, Output: string(out), CPU: run.ProcessState.UserTime() + run.ProcessState.SystemTime()}
}

// moduleRoot returns the directory that contains go.mod. The current directory is the directory of
// the test's package.
func moduleRoot(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("no parent directory contains go.mod")
		}
		dir = filepath.Dir(dir)
	}
}
