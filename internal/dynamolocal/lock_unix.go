//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package dynamolocal

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"
)

// lock acquires an exclusive lock on the file at path, and returns a function that releases the
// lock. See tryLock for details.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	return waitForLock(ctx, path, syscall.LOCK_EX)
}

// waitForLock acquires a lock of the given kind (see tryLock) as soon as the lock is free. It
// polls, because waiting in flock(2) could not be cancelled with a context.
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

// tryLock acquires a lock on the file at path, and returns a function that releases the lock. kind
// is LOCK_EX or LOCK_SH. tryLock creates the file if it does not exist, but never removes it.
// Otherwise, two processes could lock two different files with the same path. When the process ends
// for any reason, the operating system releases the lock. tryLock returns EWOULDBLOCK if another
// process holds a conflicting lock.
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
