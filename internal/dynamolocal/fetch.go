package dynamolocal

import (
	"context"
	_ "embed" // for pom.xml
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Version is the version of DynamoDB Local that is fetched and run. It has to agree with pom.xml,
// which a test checks.
const Version = "3.1.0"

//go:embed pom.xml
var pom []byte

// UnavailableError says that DynamoDB Local cannot be run on this machine for a reason that lies
// outside Ordergraph: a program that is not installed, or a download that did not work. Tests skip
// on it (see [Shared]); any other error of this package is a fault worth failing for.
type UnavailableError struct {
	// What is missing: "java", "mvn", "cache directory" or "download".
	What string
	// Err is the cause.
	Err error
}

// Error implements error.
func (e *UnavailableError) Error() string {
	return fmt.Sprintf("DynamoDB Local is not available (%s): %v", e.What, e.Err)
}

// Unwrap returns the cause.
func (e *UnavailableError) Unwrap() error { return e.Err }

// CacheDir is the directory the jars are kept in. It is inside the user's cache directory, so it
// may be removed at any time, and is filled again when it is next needed.
//
// The error is an [*UnavailableError] when the system names no cache directory (for instance
// because HOME is not set).
func CacheDir() (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		return "", &UnavailableError{What: "cache directory", Err: err}
	}
	return filepath.Join(base, "ordergraph", "dynamodb-local-"+Version), nil
}

// Fetch makes sure the jars are in [CacheDir] and returns that directory. It does nothing when they
// are there already, and then needs neither Maven nor the network.
//
// Several processes may call it at the same time: one fetches and the others wait for it. The
// directory gets its name only when it is complete, so a fetch that was killed half way leaves
// nothing that looks like a finished one.
//
// The error is an [*UnavailableError] when Maven is missing or the download fails, the context's
// error when that ends first, and otherwise one of the file system.
func Fetch(ctx context.Context) (string, error) {
	dir, err := CacheDir()
	if err != nil {
		return "", err
	}
	parent := filepath.Dir(dir)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return "", fmt.Errorf("fetch DynamoDB Local: %w", err)
	}
	unlock, err := lock(ctx, dir+".lock")
	if err != nil {
		return "", fmt.Errorf("fetch DynamoDB Local: wait for another process: %w", err)
	}
	defer unlock()
	return dir, fetchInto(ctx, dir)
}

// fetchInto fills dir, which the caller has locked, unless it is there already.
func fetchInto(ctx context.Context, dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("fetch DynamoDB Local: %w", err)
	}
	mvn, err := exec.LookPath("mvn")
	if err != nil {
		return &UnavailableError{What: "mvn", Err: err}
	}
	// Next to its final place, so that the rename stays within one file system and is atomic.
	work, err := os.MkdirTemp(filepath.Dir(dir), ".fetch-*")
	if err != nil {
		return fmt.Errorf("fetch DynamoDB Local: %w", err)
	}
	defer os.RemoveAll(work)
	if err := os.WriteFile(filepath.Join(work, "pom.xml"), pom, 0o644); err != nil {
		return fmt.Errorf("fetch DynamoDB Local: %w", err)
	}
	lib := filepath.Join(work, "lib")
	// MkdirTemp makes a private directory, but the jars get a directory of their own with usual
	// rights.
	if err := os.Mkdir(lib, 0o755); err != nil {
		return fmt.Errorf("fetch DynamoDB Local: %w", err)
	}
	cmd := exec.CommandContext(ctx, mvn, "-B", "-q", "-f", filepath.Join(work, "pom.xml"),
		"dependency:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory="+lib)
	cmd.Dir = work
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return fmt.Errorf("fetch DynamoDB Local with Maven: %w", ctx.Err())
	}
	if err != nil {
		return &UnavailableError{What: "download", Err: fmt.Errorf("%w\n%s", err, tail(string(out), 20))}
	}
	if err := os.Rename(lib, dir); err != nil {
		// Where there is no file lock (lock_other.go) another process may have been quicker, which
		// is fine.
		if _, statErr := os.Stat(dir); statErr == nil {
			return nil
		}
		return fmt.Errorf("fetch DynamoDB Local: %w", err)
	}
	return nil
}

// tail returns the last n lines of text.
func tail(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	return strings.Join(lines, "\n")
}
