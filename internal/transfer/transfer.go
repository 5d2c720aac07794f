// Package transfer keeps the exports and imports of a table in files, so that one that was interrupted can go on where it
// was: a file beside FILE says how far it is. It is replaced as a whole about once a second, after what it speaks of is safe, and
// removed when nothing is left to do.
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

func newPace(clock func() time.Time) *pace {
	if clock == nil {
		clock = time.Now
	}
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

// save replaces the file of that name by one that holds v, as a whole: whatever happens, there is the old one or the new.
func save(name string, v any) error {
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
		err = os.Rename(temporary.Name(), name)
	}
	if err != nil {
		os.Remove(temporary.Name())
	}
	return err
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
