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

// defaultSegments is the default of ExportOptions.Segments.
const defaultSegments = 4

// ExportOptions configure an export.
type ExportOptions struct {
	// Segments is the number of table segments that are scanned in parallel. If it is 0, a new export
	// uses defaultSegments. A resumed export then uses the number of the interrupted export.
	Segments int
	// Overwrite reports whether the export may replace an existing file. The file is replaced only
	// when the export is complete.
	Overwrite bool
	// Clock returns the current time. If it is nil, time.Now is used.
	Clock func() time.Time
	// Progress, if set, is called about once a second with the progress so far.
	Progress func(ExportResult)
}

// ExportResult is the result of an export.
type ExportResult struct {
	Records int   `json:"records"`
	Bytes   int64 `json:"bytes"`
	// LeftOut is the number of idempotency records in the table. They are not exported.
	LeftOut int `json:"leftOut"`
	// Started is the time when the export began. For a resumed export, it is the time when the
	// interrupted export began.
	Started time.Time `json:"begun"`
	// Resumed reports whether the export has resumed an interrupted export.
	Resumed bool `json:"-"`
	// Saved reports whether the progress of a failed export was saved to a file. If so, the export can
	// be resumed.
	Saved bool `json:"-"`
}

// exportProgress is the content of the progress file of an export.
type exportProgress struct {
	Table string `json:"table"`
	// Replaces reports whether ExportOptions.Overwrite was set when the export began.
	Replaces bool `json:"replaces"`
	// Segments contains the scan progress of each table segment. FILE.part, the file of an incomplete
	// export, begins with the records that were scanned so far. Bytes is the length of these records.
	Segments []bulk.SegmentProgress `json:"segments"`
	ExportResult
}

// allRead reports whether all segments have been read.
func (p *exportProgress) allRead() bool {
	for _, s := range p.Segments {
		if !s.Done {
			return false
		}
	}
	return true
}

// File name suffixes of an incomplete export and of its progress file.
const (
	partSuffix           = ".part"
	exportProgressSuffix = ".progress"
)

// Export writes the table's records to w, with one record per line. It returns the errors of w and
// of dynamo.Store.Export.
func Export(ctx context.Context, store *dynamo.Store, w io.Writer, opts ExportOptions) (ExportResult, error) {
	p := newExportProgress("", opts)
	err := export(ctx, store, w, p, newThrottle(opts.Clock), func() error {
		opts.reportProgress(p.ExportResult)
		return nil
	})
	return p.ExportResult, err
}

func newExportProgress(table string, opts ExportOptions) *exportProgress {
	segments := opts.Segments
	if segments == 0 {
		segments = defaultSegments
	}
	p := &exportProgress{Table: table, Replaces: opts.Overwrite, Segments: make([]bulk.SegmentProgress, segments)}
	p.Started = clockOrDefault(opts.Clock)().UTC()
	return p
}

func (o ExportOptions) reportProgress(e ExportResult) {
	if o.Progress != nil {
		o.Progress(e)
	}
}

// export writes the records that were not scanned before, and updates p. It calls save about once a
// second.
func export(ctx context.Context, store *dynamo.Store, w io.Writer, p *exportProgress, pace *throttle, save func() error) error {
	return store.Export(ctx, p.Segments, func(page bulk.ExportPage) error {
		if _, err := w.Write(page.Lines); err != nil {
			return err
		}
		p.Segments[page.Index] = page.Next
		p.Bytes += int64(len(page.Lines))
		p.Records += page.Records
		p.LeftOut += page.LeftOut
		if pace.due() {
			return save()
		}
		return nil
	})
}

// ExportFile exports a table to a file, or resumes an interrupted export. If opts.Overwrite is set,
// it replaces an existing file when the export is complete. If the progress cannot be saved,
// ExportFile returns a SaveError.
func ExportFile(ctx context.Context, store *dynamo.Store, name string, opts ExportOptions) (ExportResult, error) {
	table, err := store.TableID(ctx)
	if err != nil {
		return ExportResult{}, err
	}
	// If name is a symbolic link, the export replaces the target of the link, and not the link itself.
	if target, err := filepath.EvalSymlinks(name); err == nil {
		name = target
	}
	p, complete, err := initialExportProgress(name, table, opts)
	if err != nil {
		return ExportResult{}, err
	}
	if !complete {
		if err := writePart(ctx, store, name, p, opts); err != nil {
			return p.ExportResult, err
		}
	}
	p.Saved = false
	return p.ExportResult, os.Remove(name + exportProgressSuffix)
}

// writePart writes the remaining records to FILE.part, and then renames FILE.part to FILE. p.Saved
// reports whether the latest progress was saved.
func writePart(ctx context.Context, store *dynamo.Store, name string, p *exportProgress, opts ExportOptions) error {
	part, progressFile := name+partSuffix, name+exportProgressSuffix
	// The progress file is created before FILE.part, so that an interrupted export always has a
	// progress file.
	if err := saveJSON(progressFile, p); err != nil {
		return err
	}
	f, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	// Remove the bytes that were written after the progress was last saved. The records in these bytes
	// are exported again.
	if err := f.Truncate(p.Bytes); err != nil {
		return err
	}
	if _, err := f.Seek(p.Bytes, io.SeekStart); err != nil {
		return err
	}
	saveProgress := func() error {
		p.Saved = false
		opts.reportProgress(p.ExportResult)
		if err := f.Sync(); err != nil {
			return &SaveError{err}
		}
		if err := saveJSON(progressFile, p); err != nil {
			return err
		}
		p.Saved = true
		return nil
	}
	err = export(ctx, store, f, p, newThrottle(opts.Clock), saveProgress)
	if !isSaveError(err) {
		err = errors.Join(err, saveProgress())
	}
	if err == nil {
		err = f.Close()
	}
	if err == nil {
		err = renameAndSync(part, name)
	}
	return err
}

// initialExportProgress returns the saved progress of an interrupted export, or the progress of a
// new export. If the interrupted export has already written the complete file, the result complete
// is true. The caller then only removes the progress file.
func initialExportProgress(name, table string, opts ExportOptions) (p *exportProgress, complete bool, err error) {
	fresh, earlier := newExportProgress(table, opts), &exportProgress{}
	part, progressFile := name+partSuffix, name+exportProgressSuffix
	if _, err := os.Stat(filepath.Dir(name)); err != nil {
		return nil, false, withFileName("export to", name, err)
	}
	exists, size, err := statRegular(name)
	if err != nil {
		return nil, false, err
	}
	partExists, partSize, err := statRegular(part)
	if err != nil {
		return nil, false, err
	}
	resumed, err := loadJSON(progressFile, earlier)
	restart := fmt.Sprintf("or remove %s and %s to start again", part, progressFile)
	switch {
	case err != nil && opts.Overwrite:
		return fresh, false, nil
	case err != nil:
		return nil, false, err
	case resumed && earlier.Table == table && earlier.allRead() && exists && !partExists && size == earlier.Bytes:
		earlier.Resumed = true // the caller only has to remove the progress file
		return earlier, true, nil
	case opts.Overwrite && (!resumed || !earlier.Replaces):
		return fresh, false, nil
	case resumed && earlier.Replaces && exists && !opts.Overwrite:
		return nil, false, fmt.Errorf("%s already exists, and the interrupted export to this file was started with -overwrite: continue with -overwrite, %s", name, restart)
	case exists && !opts.Overwrite:
		return nil, false, fmt.Errorf("%s already exists: name another file, or replace it with -overwrite", name)
	case !resumed && partExists:
		return nil, false, fmt.Errorf("%s already exists and does not belong to an export: name another file, or replace it with -overwrite", part)
	case !resumed:
		return fresh, false, nil
	}
	switch problem := earlier.mismatch(table, partSize, opts); {
	case problem == "":
		earlier.Resumed = true
		return earlier, false, nil
	case opts.Overwrite:
		return fresh, false, nil
	default:
		return nil, false, fmt.Errorf("%s %s, or start again with -overwrite", part, problem)
	}
}

// mismatch returns the reason why the interrupted export in p cannot be resumed. If it can be
// resumed, mismatch returns an empty string.
func (p *exportProgress) mismatch(table string, partSize int64, opts ExportOptions) string {
	switch {
	case p.Table != table:
		return fmt.Sprintf("belongs to an export of table %s, not %s: name another file", p.Table, table)
	case opts.Segments != 0 && opts.Segments != len(p.Segments):
		return fmt.Sprintf("belongs to an export with -segments %d: use the same number", len(p.Segments))
	case partSize < p.Bytes:
		return fmt.Sprintf("has %d bytes, but its progress file expects at least %d bytes: restore the file", partSize, p.Bytes)
	}
	return ""
}

// statRegular reports whether a regular file exists, and returns its size. It returns an error for
// a directory or device, because an export cannot replace them.
func statRegular(name string) (exists bool, size int64, err error) {
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, 0, nil
	case err != nil:
		return false, 0, err
	case !info.Mode().IsRegular():
		return false, 0, fmt.Errorf("%s is not a regular file: name a file, or - for standard output", name)
	}
	return true, info.Size(), nil
}

// checkComplete returns an error if the export to the given file is incomplete. The error message
// describes what to do.
func checkComplete(name string) error {
	exported, isPart := strings.CutSuffix(name, partSuffix)
	progressFile := exported + exportProgressSuffix
	if _, err := os.Stat(progressFile); err != nil {
		return nil //nolint:nilerr // without a progress file, the export is complete
	}
	if _, err := os.Stat(name); isPart || err != nil {
		return fmt.Errorf("the export to %s is unfinished, as its progress file %s shows: run the export command again before the import", exported, progressFile)
	}
	return fmt.Errorf("the new export to %s is unfinished, as its progress file %s shows: run the export command again before the import, or remove %s and %s to import the old content",
		name, progressFile, name+partSuffix, progressFile)
}
