//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package dynamolocal

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"
)

// lock takes an exclusive lock on the file at path, and returns what gives it back. See tryLock.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	return wait(ctx, path, syscall.LOCK_EX)
}

// wait takes a lock of a kind (see tryLock) as soon as it is free. flock(2) can wait by itself, but
// not for a context.
func wait(ctx context.Context, path string, kind int) (unlock func(), err error) {
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

// tryLock takes a lock, LOCK_EX or LOCK_SH, on the file at path, which it creates, and returns what
// gives it back. The system gives it back too when the process ends, however it ends, so there are
// no stale locks. The file stays: removing it would let two processes hold "the" lock on two
// different files. The error is EWOULDBLOCK if another process holds a lock that excludes this one.
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
