package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/ordergraph/ordergraph/dynamo"
)

// defaultSegments is in how many parts a table is read where nobody says.
const defaultSegments = 4

// ExportOptions say how to export.
type ExportOptions struct {
	// Segments is in how many parts the table is read at once, 1 to dynamo.MaxSegments; 0 leaves the choice.
	Segments int
	// Overwrite begins anew where the file, or a part of it, is there.
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
	// Resumed tells that an earlier export wrote a part of it.
	Resumed bool `json:"-"`
}

// exportProgress is the file beside an export that is under way.
type exportProgress struct {
	Table string `json:"table"`
	// Segments are how far the table has been read, and the first Bytes of the file are what was read.
	Segments []dynamo.Segment `json:"segments"`
	Exported
}

func exportProgressFile(name string) string { return name + ".progress" }

// Export writes the table's records to w, a line each.
//
// Errors: w's and those of dynamo.Store.Export.
func Export(ctx context.Context, store *dynamo.Store, w io.Writer, opts ExportOptions) (Exported, error) {
	p := &exportProgress{Segments: make([]dynamo.Segment, segmentsOf(opts))}
	err := export(ctx, store, w, p, newPace(opts.Clock), func() error {
		opts.tell(p.Exported)
		return nil
	})
	return p.Exported, err
}

func segmentsOf(opts ExportOptions) int {
	if opts.Segments == 0 {
		return defaultSegments
	}
	return opts.Segments
}

func (o ExportOptions) tell(e Exported) {
	if o.Progress != nil {
		o.Progress(e)
	}
}

// export writes what p has not read yet, and calls save about once a second.
func export(ctx context.Context, store *dynamo.Store, w io.Writer, p *exportProgress, pace *pace, save func() error) error {
	return store.Export(ctx, p.Segments, func(page dynamo.ExportPage) error {
		if _, err := w.Write(page.Lines); err != nil {
			return err
		}
		p.Segments[page.Segment] = page.Next
		p.Bytes += int64(len(page.Lines))
		p.Records += page.Records
		p.LeftOut += page.LeftOut
		if pace.over() {
			return save()
		}
		return nil
	})
}

// ExportFile writes the table's records to a file, or goes on with an export to it that was interrupted.
//
// Errors: one that says what to do where the file is there already, or was begun from another table or in another number of
// segments; the file's; those of dynamo.Store.Export. After any of the last two the export can go on.
func ExportFile(ctx context.Context, store *dynamo.Store, name string, opts ExportOptions) (Exported, error) {
	table, err := store.TableID(ctx)
	if err != nil {
		return Exported{}, err
	}
	p, err := startExport(name, table, opts)
	if err != nil {
		return Exported{}, err
	}
	side := exportProgressFile(name)
	// The side file comes first: a file without it is a finished one.
	if err := save(side, p); err != nil {
		return p.Exported, err
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return p.Exported, err
	}
	defer f.Close()
	// What is behind was written after the side file, and will be read again.
	if err := f.Truncate(p.Bytes); err != nil {
		return p.Exported, err
	}
	if _, err := f.Seek(p.Bytes, io.SeekStart); err != nil {
		return p.Exported, err
	}
	keep := func() error {
		opts.tell(p.Exported)
		if err := f.Sync(); err != nil {
			return err
		}
		return save(side, p)
	}
	err = export(ctx, store, f, p, newPace(opts.Clock), keep)
	if err = errors.Join(err, keep()); err != nil {
		return p.Exported, err
	}
	if err := f.Close(); err != nil {
		return p.Exported, err
	}
	return p.Exported, os.Remove(side)
}

// startExport tells from where an export begins: the beginning, or where an earlier one ended.
func startExport(name, table string, opts ExportOptions) (*exportProgress, error) {
	fresh := &exportProgress{Table: table, Segments: make([]dynamo.Segment, segmentsOf(opts))}
	if opts.Overwrite {
		return fresh, nil
	}
	side := exportProgressFile(name)
	var p exportProgress
	resumed, err := load(side, &p)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	size := int64(0)
	if err == nil {
		size = info.Size()
	}
	switch {
	case !resumed && err == nil:
		return nil, fmt.Errorf("%s is there already: name another file, or replace it with -overwrite", name)
	case !resumed:
		return fresh, nil
	case p.Table != table:
		return nil, fmt.Errorf("%s is a part of an export of table %s, and this is %s: name another file, or begin anew with -overwrite", name, p.Table, table)
	case opts.Segments != 0 && opts.Segments != len(p.Segments):
		return nil, fmt.Errorf("%s was begun with -segments %d: go on with as many, or begin anew with -overwrite", name, len(p.Segments))
	case size < p.Bytes:
		return nil, fmt.Errorf("%s has %d bytes, and %s speaks of %d: begin anew with -overwrite", name, size, side, p.Bytes)
	}
	p.Resumed = true
	return &p, nil
}
