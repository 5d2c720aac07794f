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

// DynamoDBLocalVersion is the version of DynamoDB Local that tests use. A test verifies that
// pom.xml has the same version.
const DynamoDBLocalVersion = "3.1.0"

//go:embed pom.xml
var pom []byte

// UnavailableError means that DynamoDB Local cannot run on this machine, because a program is not
// installed or the download failed. [Shared] skips the test if it gets this error. All other errors
// of this package fail the test.
type UnavailableError struct {
	// Missing is the missing part: "java", "mvn", "cache directory" or "download".
	Missing string
	// Err is the cause.
	Err error
}

// Error implements error.
func (e *UnavailableError) Error() string {
	return fmt.Sprintf("DynamoDB Local is not available (%s): %v", e.Missing, e.Err)
}

// Unwrap returns the cause.
func (e *UnavailableError) Unwrap() error { return e.Err }

// CacheDir returns the directory that contains the jars of DynamoDB Local, inside the user's cache
// directory. The directory may be deleted at any time. Fetch then downloads the jars again.
//
// CacheDir returns an [*UnavailableError] if the user has no cache directory, for example because
// HOME is not set.
func CacheDir() (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		return "", &UnavailableError{Missing: "cache directory", Err: err}
	}
	return filepath.Join(base, "ordergraph", "dynamodb-local-"+DynamoDBLocalVersion), nil
}

// Fetch downloads the jars of DynamoDB Local to [CacheDir] and returns this directory. If the jars
// already exist, Fetch needs neither Maven nor the network.
//
// If several processes call Fetch at the same time, one process downloads the jars and the others
// wait. The download directory gets its final name only when it is complete. So an interrupted
// download is never used.
//
// Fetch returns an [*UnavailableError] if Maven is missing or the download fails. It also returns
// the error of ctx if ctx ends, and file system errors.
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

// fetchInto downloads the jars to dir, unless dir exists. The caller must hold the lock of dir.
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
	// The temporary directory has the same parent as dir. Both directories are therefore in one file
	// system, and the rename is atomic.
	work, err := os.MkdirTemp(filepath.Dir(dir), ".fetch-*")
	if err != nil {
		return fmt.Errorf("fetch DynamoDB Local: %w", err)
	}
	defer os.RemoveAll(work)
	if err := os.WriteFile(filepath.Join(work, "pom.xml"), pom, 0o644); err != nil {
		return fmt.Errorf("fetch DynamoDB Local: %w", err)
	}
	lib := filepath.Join(work, "lib")
	// MkdirTemp creates a directory that only this user can read. The directory of the jars gets the
	// usual permissions instead.
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
		// On systems without file locks (lock_other.go), another process may have created dir in the
		// meantime.
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
