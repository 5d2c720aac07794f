//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package dynamolocal

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"
)

// lock waits for an exclusive lock on the file at path, and returns a function that releases the
// lock. See tryLock for details.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	return waitForLock(ctx, path, syscall.LOCK_EX)
}

// waitForLock waits for a lock on the file at path. kind is LOCK_EX or LOCK_SH (see tryLock). It
// polls, because a context cannot cancel a blocking call of flock(2).
func waitForLock(ctx context.Context, path string, kind int) (unlock func(), err error) {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		unlock, err := tryLock(path, kind)
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return unlock, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-ticker.C:
		}
	}
}

// tryLock locks the file at path and returns a function that releases the lock. kind is LOCK_EX
// (exclusive) or LOCK_SH (shared). If another process holds a conflicting lock, the error wraps
// EWOULDBLOCK.
func tryLock(path string, kind int) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), kind|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, &os.PathError{Op: "flock", Path: path, Err: err}
	}
	// Never remove the file. Otherwise, two processes could lock two different files with this path.
	return func() { f.Close() }, nil
}
