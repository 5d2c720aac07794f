package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/bulk"
)

// defaultSegments is in how many parts a table is read where nobody says.
const defaultSegments = 4

// ExportOptions say how to export.
type ExportOptions struct {
	// Segments is in how many parts the table is read at once, 1 to bulk.MaxSegments; 0 leaves
	// the choice.
	Segments int
	// Overwrite replaces the file where it is there, when the export is complete.
	Overwrite bool
	// Clock tells the time; the system's where it is nil.
	Clock func() time.Time
	// Progress, where it is set, is told about once a second how far it is.
	Progress func(Exported)
}

// Exported is what an export has written.
type Exported struct {
	Records int   `json:"records"`
	Bytes   int64 `json:"bytes"`
	// LeftOut are idempotency records, which were read and not written.
	LeftOut int `json:"leftOut"`
	// Begun is when its first part was begun.
	Begun time.Time `json:"begun"`
	// Resumed reports whether an earlier export wrote a part of it.
	Resumed bool `json:"-"`
	// Saved reports whether one that has failed can go on: how far it is, is on the disk.
	Saved bool `json:"-"`
}

// exportProgress is the file beside an export that is under way.
type exportProgress struct {
	Table string `json:"table"`
	// Replaces reports whether it was begun to replace the file.
	Replaces bool `json:"replaces"`
	// Segments are how far the table has been read, and the first Bytes of the part are what was
	// read.
	Segments []bulk.Segment `json:"segments"`
	Exported
}

// read reports whether nothing of the table is left.
func (p *exportProgress) read() bool {
	for _, s := range p.Segments {
		if !s.Done {
			return false
		}
	}
	return true
}

const (
	partSuffix           = ".part"
	exportProgressSuffix = ".progress"
)

// Export writes the table's records to w, a line each.
//
// Errors: w's and those of dynamo.Store.Export.
func Export(ctx context.Context, store *dynamo.Store, w io.Writer, opts ExportOptions) (Exported, error) {
	p := freshExport("", opts)
	err := export(ctx, store, w, p, newPace(opts.Clock), func() error {
		opts.tell(p.Exported)
		return nil
	})
	return p.Exported, err
}

func freshExport(table string, opts ExportOptions) *exportProgress {
	segments := opts.Segments
	if segments == 0 {
		segments = defaultSegments
	}
	p := &exportProgress{Table: table, Replaces: opts.Overwrite, Segments: make([]bulk.Segment, segments)}
	p.Begun = clockOr(opts.Clock)().UTC()
	return p
}

func (o ExportOptions) tell(e Exported) {
	if o.Progress != nil {
		o.Progress(e)
	}
}

// export writes what p has not read yet, and calls save about once a second.
func export(ctx context.Context, store *dynamo.Store, w io.Writer, p *exportProgress, pace *pace, save func() error) error {
	return store.Export(ctx, p.Segments, func(page bulk.ExportPage) error {
		if _, err := w.Write(page.Lines); err != nil {
			return err
		}
		p.Segments[page.Index] = page.Next
		p.Bytes += int64(len(page.Lines))
		p.Records += page.Records
		p.LeftOut += page.LeftOut
		if pace.over() {
			return save()
		}
		return nil
	})
}

// ExportFile writes the table's records to a file, or goes on with an export to it that was
// interrupted. They are written to FILE.part, which takes the file's name when it is complete:
// until then, what the file held before is there.
//
// Errors: one that says what to do where the file is there already, or was begun from another table
// or in another number of segments; SaveError; the file's; those of dynamo.Store.Export.
func ExportFile(ctx context.Context, store *dynamo.Store, name string, opts ExportOptions) (Exported, error) {
	table, err := store.TableID(ctx)
	if err != nil {
		return Exported{}, err
	}
	// Of a link, what it leads to is replaced, not the link.
	if target, err := filepath.EvalSymlinks(name); err == nil {
		name = target
	}
	p, complete, err := startExport(name, table, opts)
	if err != nil {
		return Exported{}, err
	}
	if !complete {
		if err := writePart(ctx, store, name, p, opts); err != nil {
			return p.Exported, err
		}
	}
	p.Saved = false
	return p.Exported, os.Remove(name + exportProgressSuffix)
}

// writePart writes the part, from where p is, and gives it the file's name. p says whether it was
// saved.
func writePart(ctx context.Context, store *dynamo.Store, name string, p *exportProgress, opts ExportOptions) error {
	part, side := name+partSuffix, name+exportProgressSuffix
	// The side file comes first: a part without it is somebody else's.
	if err := save(side, p); err != nil {
		return err
	}
	f, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	// What is behind was written after the side file, and will be read again.
	if err := f.Truncate(p.Bytes); err != nil {
		return err
	}
	if _, err := f.Seek(p.Bytes, io.SeekStart); err != nil {
		return err
	}
	keep := func() error {
		p.Saved = false
		opts.tell(p.Exported)
		if err := f.Sync(); err != nil {
			return &SaveError{err}
		}
		if err := save(side, p); err != nil {
			return err
		}
		p.Saved = true
		return nil
	}
	err = export(ctx, store, f, p, newPace(opts.Clock), keep)
	if !unsaved(err) {
		err = errors.Join(err, keep())
	}
	if err == nil {
		err = f.Close()
	}
	if err == nil {
		err = rename(part, name)
	}
	return err
}

// startExport tells from where an export begins: the beginning, or where an earlier one ended. Of
// one that is complete only the side file is left.
func startExport(name, table string, opts ExportOptions) (p *exportProgress, complete bool, err error) {
	fresh, earlier := freshExport(table, opts), &exportProgress{}
	part, side := name+partSuffix, name+exportProgressSuffix
	if _, err := os.Stat(filepath.Dir(name)); err != nil {
		return nil, false, aboutFile("export to", name, err)
	}
	there, size, err := regular(name)
	if err != nil {
		return nil, false, err
	}
	partThere, partSize, err := regular(part)
	if err != nil {
		return nil, false, err
	}
	resumed, err := load(side, earlier)
	anew := fmt.Sprintf("or remove %s and %s to begin anew", part, side)
	switch {
	case err != nil && opts.Overwrite:
		return fresh, false, nil
	case err != nil:
		return nil, false, err
	case resumed && earlier.Table == table && earlier.read() && there && !partThere && size == earlier.Bytes:
		earlier.Resumed = true // it ended between the last two steps
		return earlier, true, nil
	case opts.Overwrite && (!resumed || !earlier.Replaces):
		return fresh, false, nil
	case resumed && earlier.Replaces && there && !opts.Overwrite:
		return nil, false, fmt.Errorf("%s is there already, and an export that is to replace it was begun: go on with -overwrite, %s", name, anew)
	case there && !opts.Overwrite:
		return nil, false, fmt.Errorf("%s is there already: name another file, or replace it with -overwrite", name)
	case !resumed && partThere:
		return nil, false, fmt.Errorf("%s is there already, and no part of an export: name another file, or replace it with -overwrite", part)
	case !resumed:
		return fresh, false, nil
	}
	switch problem := earlier.differs(table, partSize, opts); {
	case problem == "":
		earlier.Resumed = true
		return earlier, false, nil
	case opts.Overwrite:
		return fresh, false, nil
	default:
		return nil, false, fmt.Errorf("%s %s, or begin anew with -overwrite", part, problem)
	}
}

// differs tells why an export cannot go on from p, nothing where it can.
func (p *exportProgress) differs(table string, partSize int64, opts ExportOptions) string {
	switch {
	case p.Table != table:
		return fmt.Sprintf("is a part of an export of table %s, and this is %s: name another file", p.Table, table)
	case opts.Segments != 0 && opts.Segments != len(p.Segments):
		return fmt.Sprintf("was begun with -segments %d: go on with as many", len(p.Segments))
	case partSize < p.Bytes:
		return fmt.Sprintf("has %d bytes, and its side file speaks of %d: restore it", partSize, p.Bytes)
	}
	return ""
}

// regular reports whether there is a file of that name, and how long it is.
//
// Errors: one for what is there and no regular file, which cannot be replaced; the file's.
func regular(name string) (there bool, size int64, err error) {
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, 0, nil
	case err != nil:
		return false, 0, err
	case !info.Mode().IsRegular():
		return false, 0, fmt.Errorf("%s is no regular file: name a file, or - for standard output", name)
	}
	return true, info.Size(), nil
}

// refuseUnfinished says what to do with a file to which an export is unfinished.
func refuseUnfinished(name string) error {
	exported, isPart := strings.CutSuffix(name, partSuffix)
	side := exported + exportProgressSuffix
	if _, err := os.Stat(side); err != nil {
		return nil //nolint:nilerr // without a side file it is finished
	}
	if _, err := os.Stat(name); isPart || err != nil {
		return fmt.Errorf("the export to %s is unfinished, as %s tells: finish it first, with the same command as before", exported, side)
	}
	return fmt.Errorf("the export that is to replace %s is unfinished, as %s tells: finish it first, or remove %s and %s to import what %s held before",
		name, side, name+partSuffix, side, name)
}
