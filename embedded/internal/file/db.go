// Package file stores keys and values in one file. It adds to bbolt what a store of orders needs
// when a disk fails: checksums, commits whose outcome is known, and consistent copies.
//
// # Checksums
//
// bbolt has no checksums for its data. In this package, every value begins with a CRC-32C of its
// key and itself. A read that finds a wrong checksum returns a DamagedError. Open and Verify check
// the complete file, including the pages that connect the values.
//
// # Failed syncs
//
// A commit writes the changed pages and syncs the file. Then it writes the header that makes these
// pages current, and syncs the file again. If the first sync fails, the change is not written. If
// the second sync fails, readers would see the change, but a power loss may undo it. Another sync
// that succeeds proves nothing, because the operating system may have dropped the header after the
// failure. So the package writes the header again and syncs the file again. If this succeeds, the
// change is durable. If it fails, too, the outcome is unknown: the commit returns ErrUnknown, and
// neither ViewDurable nor a further commit begins before the header is written and synced.
package file

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"
	bbolterrors "go.etcd.io/bbolt/errors"
)

// ErrNotWritten means that a commit has failed and changed nothing.
var ErrNotWritten = errors.New("the commit failed, nothing was written")

// ErrUnknown means that a commit has failed, and that it is unknown whether a power loss would undo
// it.
var ErrUnknown = errors.New("the disk did not confirm the commit: it is unknown whether the change was written")

// ErrLocked means that another process has opened the file.
var ErrLocked = errors.New("another process has opened the file")

// ErrOldFormat means that Upgrade must upgrade the file.
var ErrOldFormat = errors.New("the file has the format of an earlier version of the program")

// DamagedError means that the file does not contain what was written to it.
type DamagedError struct {
	// Problem describes the damage, such as a page whose content contradicts its header.
	Problem string
}

// Error returns the description of the damage.
func (e *DamagedError) Error() string { return "the file is damaged: " + e.Problem }

func damaged(format string, a ...any) *DamagedError {
	return &DamagedError{Problem: fmt.Sprintf(format, a...)}
}

// DB is an open file. It is safe for concurrent use.
type DB struct {
	bolt *bbolt.DB
	path string
	file *os.File

	// readers is held by every read, so that settle can wait for the reads that run.
	readers sync.RWMutex
	// damage is the damage that the verification in the background has found.
	damage    atomic.Pointer[DamagedError]
	closing   atomic.Bool
	verifying sync.WaitGroup

	// writer is held by the commit that runs. It protects unsettled and stuck.
	writer    sync.Mutex
	unsettled *unsettledCommit
	// stuck reports whether a transaction could not be undone.
	stuck bool

	// durable is the ID of the newest transaction that is known to be durable.
	durable atomic.Int64
	// committing is closed when the commit that runs has ended. It is nil if no commit runs.
	committing atomic.Pointer[chan struct{}]
}

// unsettledCommit is a commit with an unknown outcome.
type unsettledCommit struct {
	id    int
	after func()
}

const (
	// lockTimeout is how long Open waits for another process to close the file.
	lockTimeout = 100 * time.Millisecond
	// verifyTimeout is how long Open waits for the verification of the file. The verification of a
	// larger file continues in the background.
	verifyTimeout = 5 * time.Second
	// initialMmapBytes is the size of the address space that Open reserves to map the file into
	// memory. If a write needs a larger mapping, it waits until all running reads have ended.
	initialMmapBytes = 1 << 35
)

// OpenMemory returns an empty store in memory.
func OpenMemory() (*DB, error) {
	return open("", &bbolt.Options{NoSync: true, NoGrowSync: true, NoFreelistSync: true}, 0)
}

// Open opens or creates the file at path. It returns ErrLocked if another process uses the file,
// and a DamagedError if the file is damaged. Open verifies the file. If that takes longer than
// verifyTimeout, it continues in the background, unless complete is true.
func Open(path string, complete bool) (*DB, error) {
	config := &bbolt.Options{Timeout: lockTimeout}
	if strconv.IntSize == 64 && runtime.GOOS != "windows" {
		config.InitialMmapSize = initialMmapBytes
	}
	timeout := verifyTimeout
	if complete {
		timeout = math.MaxInt64
	}
	return open(path, config, timeout)
}

func open(path string, config *bbolt.Options, timeout time.Duration) (*DB, error) {
	db := &DB{path: path}
	config.FreelistType = bbolt.FreelistMapType
	config.OpenFile = func(path string, flag int, mode os.FileMode) (f *os.File, err error) {
		if path == "" {
			f, err = memoryFile()
		} else {
			f, err = os.OpenFile(path, flag, mode)
		}
		db.file = f
		return f, err
	}
	err := guard(func() (err error) {
		db.bolt, err = bbolt.Open(path, 0o600, config)
		return err
	})
	switch {
	case errors.Is(err, bbolterrors.ErrTimeout):
		return nil, ErrLocked
	case errors.Is(err, bbolterrors.ErrInvalid), errors.Is(err, bbolterrors.ErrVersionMismatch), errors.Is(err, bbolterrors.ErrChecksum):
		return nil, damaged("it has no valid header, or it is not a store (%v)", err)
	case err != nil:
		if _, ok := errors.AsType[*DamagedError](err); ok {
			err = db.explainDamage(err)
			unlock(db.file) // bbolt does not close the file after a panic
			_ = db.file.Close()
		}
		return nil, err
	}
	var header *header
	err = guard(func() error {
		return db.bolt.View(func(tx *bbolt.Tx) (err error) {
			db.durable.Store(int64(tx.ID()))
			header, err = db.header(tx.ID())
			return err
		})
	})
	if err == nil {
		err = guard(func() error { return db.bolt.View(checkFormat) })
	}
	if _, ok := errors.AsType[*DamagedError](err); ok && path != "" {
		err = db.explainDamage(err)
	}
	if err == nil && path != "" {
		err = db.verifyOpened(header, timeout)
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// explainDamage verifies the file after bbolt has found damage, because the verification describes
// the damage better.
func (db *DB) explainDamage(err error) error {
	h, headerErr := newestHeader(db.file)
	if headerErr != nil {
		return headerErr
	}
	return cmp.Or(verify(db.file, h, db.closing.Load), err)
}

// verifyOpened syncs the file and verifies it. Without the sync, the content may exist only in the
// memory of the operating system, after a process that used the file has been killed.
func (db *DB) verifyOpened(h *header, timeout time.Duration) error {
	if err := db.rewriteHeader(h); err != nil {
		return fmt.Errorf("sync the file: %w", err)
	}
	result := make(chan error, 1)
	db.verifying.Go(func() {
		err := db.Verify()
		if damage, ok := errors.AsType[*DamagedError](err); ok {
			db.damage.Store(damage)
		}
		result <- err
	})
	select {
	case err := <-result:
		return err
	case <-time.After(timeout):
		return nil
	}
}

// Close waits for running reads and closes the file.
func (db *DB) Close() error {
	db.closing.Store(true)
	db.verifying.Wait()
	db.writer.Lock()
	defer db.writer.Unlock()
	if db.stuck {
		return db.file.Close() // bbolt would wait for the end of the transaction
	}
	return db.bolt.Close()
}

// View calls read with the newest commit. If the commit is not yet durable, a power loss can undo
// what read sees.
func (db *DB) View(read func(*Tx) error) error {
	_, err := db.view(read, false)
	return err
}

// ViewDurable is like View, but read sees only what a power loss cannot undo. If a commit is waiting
// for the disk, ViewDurable waits for its end.
func (db *DB) ViewDurable(read func(*Tx) error) error {
	for {
		done, err := db.view(read, true)
		if done || err != nil {
			return err
		}
		if err := db.settle(); err != nil {
			return err
		}
	}
}

// view calls read. If durable is true and the newest commit is not settled, view does not call read
// and returns false.
func (db *DB) view(read func(*Tx) error, durable bool) (done bool, err error) {
	if d := db.damage.Load(); d != nil {
		return true, d
	}
	db.readers.RLock()
	defer db.readers.RUnlock()
	err = guard(func() error {
		return db.bolt.View(func(tx *bbolt.Tx) error {
			if id := int64(tx.ID()); durable && id > db.durable.Load() {
				if running := db.committing.Load(); running != nil {
					<-*running
				}
				if id > db.durable.Load() {
					return nil
				}
			}
			done = true
			return read(&Tx{tx: tx})
		})
	})
	return done, err
}

// Update calls write, and commits its changes if it returns true. Update returns after the changes
// are durable. Its errors wrap the error of write, ErrNotWritten or ErrUnknown. When the changes are
// known to be durable, Update calls after. After ErrUnknown, a later call of Update or ViewDurable
// may do so instead.
func (db *DB) Update(write func(*Tx) (bool, error), after func()) error {
	db.writer.Lock()
	defer db.writer.Unlock()
	if d := db.damage.Load(); d != nil {
		return fmt.Errorf("%w: %w", ErrNotWritten, d)
	}
	if err := db.settleLocked(); err != nil {
		return fmt.Errorf("%w: an earlier change is not settled: %w", ErrNotWritten, err)
	}
	tx, err := db.bolt.Begin(true)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotWritten, err)
	}
	var changed bool
	err = guard(func() (err error) {
		changed, err = recovering(write, &Tx{tx: tx})
		return err
	})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotWritten, errors.Join(err, db.rollback(tx)))
	}
	if !changed {
		return db.rollback(tx)
	}
	return db.commit(tx, after)
}

// recovering calls write. If write panics for another reason than a damaged file, recovering returns
// an error.
func recovering(write func(*Tx) (bool, error), tx *Tx) (changed bool, err error) {
	defer func() {
		switch panicked := recover().(type) {
		case nil:
		case *DamagedError, interface{ Addr() uintptr }, string:
			panic(panicked)
		default:
			err = fmt.Errorf("the engine failed: %v", panicked)
		}
	}()
	return write(tx)
}

// rollback undoes a transaction. If the file is so damaged that this fails, the store does not
// continue.
func (db *DB) rollback(tx *bbolt.Tx) error {
	err := guard(tx.Rollback)
	if damage, ok := errors.AsType[*DamagedError](err); ok {
		db.damage.Store(damage)
		db.stuck = true
	}
	if errors.Is(err, bbolterrors.ErrTxClosed) { // a failed commit has closed the transaction
		return nil
	}
	return err
}

// commit commits a transaction and finds out its outcome.
func (db *DB) commit(tx *bbolt.Tx, after func()) error {
	id := tx.ID()
	ended := make(chan struct{})
	db.committing.Store(&ended)
	err := guard(tx.Commit)
	if err != nil {
		_ = db.rollback(tx) // has an effect only after a panic
		_, readErr := db.header(id)
		_, isDamaged := errors.AsType[*DamagedError](readErr)
		if isDamaged || errors.Is(readErr, errNoHeader) {
			err = fmt.Errorf("%w: %w", ErrNotWritten, err)
		} else {
			db.unsettled = &unsettledCommit{id: id, after: after}
			err = fmt.Errorf("%w: %w", ErrUnknown, err)
		}
	} else {
		db.durable.Store(int64(id))
	}
	db.committing.Store(nil)
	close(ended)
	if db.unsettled != nil {
		if again := db.settleLocked(); again != nil {
			return fmt.Errorf("%w; again: %w", err, again)
		}
		return nil
	}
	if err == nil {
		after()
	}
	return err
}

// settle waits for the commit that runs, and settles a commit with an unknown outcome.
func (db *DB) settle() error {
	db.writer.Lock()
	defer db.writer.Unlock()
	return db.settleLocked()
}

// settleLocked writes and syncs the header of the commit with an unknown outcome. If this fails, the
// outcome remains unknown.
func (db *DB) settleLocked() error {
	u := db.unsettled
	if u == nil {
		return nil
	}
	h, err := db.header(u.id)
	if err != nil {
		return fmt.Errorf("%w: restart the program, so that it reads the file again: %w", ErrUnknown, err)
	}
	if err := db.rewriteHeader(h); err != nil {
		return fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	// After the failure, bbolt considers the pages of the state before the commit as free. Wait for
	// the reads of this state before a commit overwrites these pages.
	db.readers.Lock()
	db.durable.Store(int64(u.id))
	db.readers.Unlock()
	db.unsettled = nil
	u.after()
	return nil
}

// rewriteHeader writes a header to its place and syncs the file.
func (db *DB) rewriteHeader(h *header) error {
	if _, err := db.file.WriteAt(h.page, h.at); err != nil {
		return err
	}
	return db.file.Sync()
}

// Path returns the path of the file. It is empty if the store is in memory.
func (db *DB) Path() string { return db.path }

// Commits returns the number of commits since the file was created.
func (db *DB) Commits() int { return int(db.durable.Load()) }

// Copy writes a copy of the newest durable commit to w. Commits continue meanwhile.
func (db *DB) Copy(w io.Writer) error {
	return db.ViewDurable(func(tx *Tx) error {
		_, err := tx.tx.WriteTo(w)
		return err
	})
}

// guard calls f. If f fails because the file contains a wrong value or an impossible page, guard
// returns a DamagedError. bbolt panics in this case, or reads an invalid address.
func guard(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		switch panicked := recover().(type) {
		case nil:
		case *DamagedError:
			err = panicked
		case interface{ Addr() uintptr }:
			err = damaged("a page points outside of the file")
		case string: // bbolt's assertions
			err = damaged("%s", panicked)
		default:
			panic(panicked)
		}
	}()
	return f()
}

// SyncDirectory makes the creation and renaming of files in the directory of path durable.
func SyncDirectory(path string) error {
	if runtime.GOOS == "windows" {
		return nil // Windows cannot sync directories
	}
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
