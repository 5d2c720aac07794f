package embedded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/ordergraph/ordergraph/embedded/internal/file"
)

// backupSocket returns the path of the Unix socket on which the process that has opened a store
// offers copies of it.
func backupSocket(path string) string { return path + ".backup" }

// backupTimeout is how long the store waits for the receiver of a copy to read further bytes. The
// file cannot reuse free pages while it is copied.
const backupTimeout = 30 * time.Second

// ServeBackups lets Backup copy the store from another process, until stop is called. The copies are
// available on a Unix socket beside the file. Only the owner of the file, and root, can use it.
func (s *Store) ServeBackups() (stop func() error, err error) {
	socket := backupSocket(s.db.Path())
	// Create the socket in a directory that other users cannot enter, until it has its permissions.
	dir, err := os.MkdirTemp(filepath.Dir(socket), ".backup-*")
	if err != nil {
		return nil, fmt.Errorf("create the socket for backups: %w", err)
	}
	defer os.RemoveAll(dir)
	private := filepath.Join(dir, "s")
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: private, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("create the socket for backups: %w", err)
	}
	listener.SetUnlinkOnClose(false)
	if err := errors.Join(os.Chmod(private, 0o600), os.Rename(private, socket)); err != nil {
		return nil, errors.Join(fmt.Errorf("create the socket for backups: %w", err), listener.Close())
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for { // one copy at a time
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_ = s.db.Copy(&patientWriter{conn}) // the receiver notices an incomplete copy
			_ = conn.Close()
		}
	})
	return sync.OnceValue(func() error {
		err := errors.Join(os.Remove(socket), listener.Close())
		serving.Wait()
		return err
	}), nil
}

// patientWriter writes to a connection, and fails if the receiver reads nothing for backupTimeout.
type patientWriter struct{ net.Conn }

func (w *patientWriter) Write(p []byte) (int, error) {
	if err := w.SetWriteDeadline(time.Now().Add(backupTimeout)); err != nil {
		return 0, err
	}
	return w.Conn.Write(p)
}

// Backup writes a copy of the store in the file at path to the file at target, and verifies the copy.
// If a process that called ServeBackups has opened the store, the process goes on meanwhile.
func Backup(ctx context.Context, path, target string, overwrite bool) (err error) {
	if _, err := os.Stat(path); err != nil {
		return err
	}
	if _, err := os.Lstat(target); !overwrite && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the file %s exists: use -overwrite to replace it", target)
	}
	f, err := os.CreateTemp(filepath.Dir(target), filepath.Base(target)+".*.partial") // with mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	if err := errors.Join(copyStore(ctx, path, f), f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := file.Check(f.Name()); err != nil {
		return fmt.Errorf("the copy of %s is not valid: %w", path, err)
	}
	if err := os.Rename(f.Name(), target); err != nil {
		return err
	}
	return file.SyncDirectory(target)
}

// copyStore copies a store to w. If no process has opened the store, copyStore opens it.
func copyStore(ctx context.Context, path string, w io.Writer) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", backupSocket(path))
	if err == nil {
		defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
		_, copyErr := io.Copy(w, conn)
		return errors.Join(ctx.Err(), copyErr, conn.Close())
	}
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("ask the server for a copy: %w: run the command as the server's user or as root", err)
	}
	if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ECONNREFUSED) && !errors.Is(err, syscall.EINVAL) {
		return fmt.Errorf("ask the server for a copy: %w", err)
	}
	s, err := Open(path, Options{Verify: true})
	if err != nil {
		return err
	}
	return errors.Join(s.db.Copy(w), s.Close())
}

// Upgrade replaces a file of the previous format by one of this format. It returns false if the file
// already has this format.
func Upgrade(path string) (upgraded bool, err error) {
	upgraded, err = file.Upgrade(path)
	if err != nil {
		return false, fmt.Errorf("upgrade the store %s: %w", path, err)
	}
	return upgraded, nil
}
