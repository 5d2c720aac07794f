// Package transfer keeps the exports and imports of a table in files, so that one that was
// interrupted can go on where it was: a file beside FILE says how far it is. That file is replaced
// as a whole about once a second, after what it speaks of is safe, and removed when nothing is left
// to do.
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

// interval is about how often the way so far is saved and told.
const interval = time.Second

// pace tells when an interval is over.
type pace struct {
	clock func() time.Time
	last  time.Time
}

func clockOr(clock func() time.Time) func() time.Time {
	if clock == nil {
		return time.Now
	}
	return clock
}

func newPace(clock func() time.Time) *pace {
	clock = clockOr(clock)
	return &pace{clock: clock, last: clock()}
}

func (p *pace) over() bool {
	now := p.clock()
	if now.Sub(p.last) < interval {
		return false
	}
	p.last = now
	return true
}

// SaveError tells that it could not be saved how far an export or an import is.
type SaveError struct{ Err error }

func (e *SaveError) Error() string { return e.Err.Error() }

// Unwrap is why.
func (e *SaveError) Unwrap() error { return e.Err }

// unsaved reports whether an error is one of saving: to save again would fail again.
func unsaved(err error) bool {
	failed := (*SaveError)(nil)
	return errors.As(err, &failed)
}

// save replaces the file of that name by one that holds v, as a whole: whatever happens, there is
// the old one or the new.
//
// Errors: SaveError.
func save(name string, v any) error {
	err := replace(name, v)
	if err == nil {
		return nil
	}
	// The name that a file has for a moment says nothing to anybody.
	return &SaveError{aboutFile("write", name, err)}
}

// aboutFile is an error of the file system, as one of a file that people know.
func aboutFile(operation, name string, err error) error {
	if at := (*fs.PathError)(nil); errors.As(err, &at) {
		return &fs.PathError{Op: operation, Path: name, Err: at.Err}
	}
	if at := (*os.LinkError)(nil); errors.As(err, &at) {
		return &fs.PathError{Op: operation, Path: name, Err: at.Err}
	}
	return err
}

func replace(name string, v any) error {
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
		err = rename(temporary.Name(), name)
	}
	if err != nil {
		os.Remove(temporary.Name())
	}
	return err
}

// rename is safe when it returns, where the platform can make it so: a directory that cannot be
// synced is as good as the platform has it.
func rename(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	if dir, err := os.Open(filepath.Dir(to)); err == nil {
		_ = dir.Sync()
		_ = dir.Close()
	}
	return nil
}

// load reads what save wrote; it is false where there is no such file.
func load(name string, v any) (bool, error) {
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err == nil {
		if err = json.Unmarshal(text, v); err != nil {
			err = fmt.Errorf("%s is damaged: remove it, and begin again: %w", name, err)
		}
	}
	return err == nil, err
}
