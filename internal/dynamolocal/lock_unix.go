//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package dynamolocal

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"
)

// lock takes an exclusive lock on the file at path and returns a function that releases it. See
// tryLock.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	return waitForLock(ctx, path, syscall.LOCK_EX)
}

// waitForLock takes a lock of the given kind (see tryLock) when it becomes free. flock(2) can wait,
// too, but not with a context.
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

// tryLock takes a lock, LOCK_EX or LOCK_SH, on the file at path and returns a function that
// releases it. It creates the file if necessary. The operating system releases the lock when the
// process ends for any reason, so there are no stale locks. The file is never removed: otherwise
// two processes could lock two different files. tryLock returns EWOULDBLOCK if another process
// holds a conflicting lock.
func tryLock(path string, kind int) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), kind|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, &os.PathError{Op: "flock", Path: path, Err: err}
	}
	return func() { f.Close() }, nil
}
