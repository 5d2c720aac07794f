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

// DynamoDBLocalVersion is the version of DynamoDB Local that the tests use. A test verifies that
// pom.xml contains the same version.
const DynamoDBLocalVersion = "3.1.0"

//go:embed pom.xml
var pom []byte

// UnavailableError means that this machine lacks something that DynamoDB Local needs. After this
// error, [Shared] skips the test, unless the environment contains CI=true. After any other error,
// [Shared] fails the test.
type UnavailableError struct {
	// Missing names the unmet requirement: "java", "mvn", "cache directory" or "download".
	Missing string
	// Err is the cause.
	Err error
}

// Error implements error.
func (e *UnavailableError) Error() string {
	return fmt.Sprintf("DynamoDB Local is not available (missing: %s): %v", e.Missing, e.Err)
}

// Unwrap returns the cause.
func (e *UnavailableError) Unwrap() error { return e.Err }

// CacheDir returns the directory that contains the jars of DynamoDB Local. You can delete it at any
// time. If the user has no cache directory, CacheDir returns an [*UnavailableError].
func CacheDir() (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		return "", &UnavailableError{Missing: "cache directory", Err: err}
	}
	return filepath.Join(base, "ordergraph", "dynamodb-local-"+DynamoDBLocalVersion), nil
}

// Fetch returns [CacheDir]. If this directory does not exist, Fetch first downloads the jars of
// DynamoDB Local. If Maven is missing or the download fails, Fetch returns an [*UnavailableError].
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
		return "", fmt.Errorf("fetch DynamoDB Local: wait for the lock of another process: %w", err)
	}
	defer unlock()
	return dir, fetchInto(ctx, dir)
}

// fetchInto downloads the jars to dir. If dir already exists, fetchInto does nothing. The caller
// must hold the lock of dir, so that only one process downloads.
func fetchInto(ctx context.Context, dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("fetch DynamoDB Local: %w", err)
	}
	mvn, err := exec.LookPath("mvn")
	if err != nil {
		return &UnavailableError{Missing: "mvn", Err: err}
	}
	// Create the temporary directory next to dir. Both are then in the same file system, so the
	// rename below is atomic.
	work, err := os.MkdirTemp(filepath.Dir(dir), ".fetch-*")
	if err != nil {
		return fmt.Errorf("fetch DynamoDB Local: %w", err)
	}
	defer os.RemoveAll(work)
	if err := os.WriteFile(filepath.Join(work, "pom.xml"), pom, 0o644); err != nil {
		return fmt.Errorf("fetch DynamoDB Local: %w", err)
	}
	lib := filepath.Join(work, "lib")
	// Download the jars to a subdirectory with the usual permissions. MkdirTemp gives its own
	// directory stricter permissions: only this user can read it.
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
		return &UnavailableError{Missing: "download", Err: fmt.Errorf("%w\n%s", err, lastLines(string(out), 20))}
	}
	if err := os.Rename(lib, dir); err != nil {
		// Without file locks (see lock_other.go), another process may have created dir in the
		// meantime. Use that directory.
		if _, statErr := os.Stat(dir); statErr == nil {
			return nil
		}
		return fmt.Errorf("fetch DynamoDB Local: %w", err)
	}
	return nil
}

// lastLines returns the last n lines of text.
func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	return strings.Join(lines, "\n")
}
