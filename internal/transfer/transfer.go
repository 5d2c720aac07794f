// Package transfer exports the records of a table to a file, and imports them from a file. An
// interrupted export or import can be resumed, because its progress is saved in a progress file
// next to the data file.
//
// The progress file is replaced atomically about once a second. Before each replacement, an export
// syncs the data file to disk, so that the data file contains all records that the progress file
// counts. The progress file is removed when the export or import is complete.
package transfer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// saveInterval is the interval at which progress is saved and reported.
const saveInterval = time.Second

// throttle limits how often progress is saved and reported.
type throttle struct {
	clock func() time.Time
	last  time.Time
}

func clockOrDefault(clock func() time.Time) func() time.Time {
	if clock == nil {
		return time.Now
	}
	return clock
}

func newThrottle(clock func() time.Time) *throttle {
	clock = clockOrDefault(clock)
	return &throttle{clock: clock, last: clock()}
}

func (p *throttle) due() bool {
	now := p.clock()
	if now.Sub(p.last) < saveInterval {
		return false
	}
	p.last = now
	return true
}

// SaveError means that progress could not be saved.
type SaveError struct{ Err error }

func (e *SaveError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *SaveError) Unwrap() error { return e.Err }

// isSaveError reports whether err is a SaveError. After a SaveError, the caller does not save the
// progress again, because saving would probably fail again.
func isSaveError(err error) bool {
	failed := (*SaveError)(nil)
	return errors.As(err, &failed)
}

// saveJSON atomically replaces the named file with the JSON encoding of v. If this fails, it
// returns a SaveError.
func saveJSON(name string, v any) error {
	err := writeAtomically(name, v)
	if err == nil {
		return nil
	}
	// Users do not know the temporary file, so the error names the progress file.
	return &SaveError{withFileName("write", name, err)}
}

// withFileName replaces the operation and the file name in a file system error. It returns other
// errors unchanged.
func withFileName(operation, name string, err error) error {
	if at := (*fs.PathError)(nil); errors.As(err, &at) {
		return &fs.PathError{Op: operation, Path: name, Err: at.Err}
	}
	if at := (*os.LinkError)(nil); errors.As(err, &at) {
		return &fs.PathError{Op: operation, Path: name, Err: at.Err}
	}
	return err
}

func writeAtomically(name string, v any) error {
	text, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return err
	}
	temporary, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*.new")
	if err != nil {
		return err
	}
	_, err = temporary.Write(append(text, '\n'))
	err = errors.Join(err, temporary.Sync(), temporary.Close())
	if err == nil {
		err = renameAndSync(temporary.Name(), name)
	}
	if err != nil {
		os.Remove(temporary.Name())
	}
	return err
}

// renameAndSync renames a file and syncs its directory, so that the new name survives a crash. It
// ignores errors of the sync, because some platforms cannot sync directories.
func renameAndSync(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	if dir, err := os.Open(filepath.Dir(to)); err == nil {
		_ = dir.Sync()
		_ = dir.Close()
	}
	return nil
}

// loadJSON reads a file that saveJSON has written, and decodes it into v. If the file does not
// exist, loadJSON returns false.
func loadJSON(name string, v any) (bool, error) {
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err == nil {
		if err = json.Unmarshal(text, v); err != nil {
			err = fmt.Errorf("%s is damaged: remove this file and start again: %w", name, err)
		}
	}
	return err == nil, err
}
