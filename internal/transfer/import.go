package transfer

import (
	"context"
	"errors"
	"fmt"
	"hash/crc64"
	"io"
	"os"
	"time"

	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/bulk"
)

// ImportOptions configure an import.
type ImportOptions struct {
	// Overwrite, DryRun and SkipUnreadable have the same meaning as in bulk.ImportOptions.
	Overwrite, DryRun, SkipUnreadable bool
	// Clock returns the current time. If it is nil, time.Now is used.
	Clock func() time.Time
	// Progress, if set, is called about once a second with the progress so far. size is the size of
	// the file in bytes, or 0 if the size is unknown.
	Progress func(done bulk.ImportResult, size int64)
}

// ImportResult is the result of an import.
type ImportResult struct {
	bulk.ImportResult
	// Saved reports whether the progress of a failed import was saved to a file. If so, the import can
	// be resumed.
	Saved bool
}

// importProgress is the content of the progress file of an import.
type importProgress struct {
	Table     string `json:"table"`
	Overwrite bool   `json:"overwrite"`
	// Done is the progress so far.
	Done bulk.ImportResult `json:"done"`
	// Checksum is the checksum of the lines before Done.Offset. If these lines have changed, the
	// import cannot be resumed.
	Checksum uint64 `json:"checksum"`
}

func importProgressFile(name string) string { return name + ".import-progress" }

// Import writes the records in r to the table. If r contains a dataset or a compressed file, Import
// returns an error. It also returns the errors of dynamo.Store.Import.
func Import(ctx context.Context, store *dynamo.Store, r io.Reader, opts ImportOptions) (ImportResult, error) {
	return importWithoutProgress(ctx, store, &sniffer{Reader: r, name: "standard input"}, 0, opts)
}

// Convert reads an export of another table from a file. If name is empty, it reads standard input, the
// parameter stdin. If the file contains a dataset, is compressed, or is an unfinished export, Convert
// returns an error. It also returns the errors of dynamo.Store.Convert.
func Convert(ctx context.Context, store *dynamo.Store, name string, stdin io.Reader, m *bulk.Mapping) (bulk.Conversion, error) {
	if name == "" {
		return store.Convert(ctx, &sniffer{Reader: stdin, name: "standard input"}, m)
	}
	if err := checkComplete(name); err != nil {
		return bulk.Conversion{}, err
	}
	f, err := os.Open(name)
	if err != nil {
		return bulk.Conversion{}, err
	}
	defer f.Close()
	return store.Convert(ctx, &sniffer{Reader: f, name: name}, m)
}

// importWithoutProgress imports records without saving progress. size is the size of the input in
// bytes, or 0 if it is unknown.
func importWithoutProgress(ctx context.Context, store *dynamo.Store, r io.Reader, size int64, opts ImportOptions) (ImportResult, error) {
	pace := newThrottle(opts.Clock)
	done, err := store.Import(ctx, r, opts.bulkOptions(bulk.ImportResult{}, func(done bulk.ImportResult) error {
		if pace.due() {
			opts.reportProgress(done, size)
		}
		return nil
	}))
	return ImportResult{ImportResult: done}, err
}

// bulkOptions returns options for dynamo.Store.Import. from is the progress of an earlier import
// that the new import continues.
func (o ImportOptions) bulkOptions(from bulk.ImportResult, done func(bulk.ImportResult) error) bulk.ImportOptions {
	return bulk.ImportOptions{Overwrite: o.Overwrite, DryRun: o.DryRun, SkipUnreadable: o.SkipUnreadable, From: from, Done: done}
}

func (o ImportOptions) reportProgress(done bulk.ImportResult, size int64) {
	if o.Progress != nil {
		o.Progress(done, size)
	}
}

// ImportFile imports the records of a file, or resumes an unfinished import. If the export to the
// file is unfinished, ImportFile returns an error. It also returns an error if the table,
// opts.Overwrite or the imported lines have changed since the unfinished import. If the progress
// cannot be saved, it returns a SaveError.
func ImportFile(ctx context.Context, store *dynamo.Store, name string, opts ImportOptions) (ImportResult, error) {
	if err := checkComplete(name); err != nil {
		return ImportResult{}, err
	}
	f, err := os.Open(name)
	if err != nil {
		return ImportResult{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return ImportResult{}, err
	}
	// A dry run always starts at the beginning of the file and does not save its progress.
	if opts.DryRun || !info.Mode().IsRegular() {
		size := int64(0)
		if info.Mode().IsRegular() {
			size = info.Size()
		}
		return importWithoutProgress(ctx, store, &sniffer{Reader: f, name: name}, size, opts)
	}
	table, err := store.TableID(ctx)
	if err != nil {
		return ImportResult{}, err
	}
	progressFile := importProgressFile(name)
	p := importProgress{Table: table, Overwrite: opts.Overwrite}
	resumed, err := loadJSON(progressFile, &p)
	if err == nil && resumed {
		err = p.checkResumable(f, name, table, opts)
	}
	if err != nil {
		return ImportResult{}, err
	}
	if _, err := f.Seek(p.Done.Offset, io.SeekStart); err != nil {
		return ImportResult{ImportResult: p.Done}, err
	}
	saveProgress := func(done bulk.ImportResult) error {
		opts.reportProgress(done, info.Size())
		sum, err := checksum(p.Checksum, f, p.Done.Offset, done.Offset)
		if err != nil {
			return &SaveError{err}
		}
		p.Done, p.Checksum = done, sum
		return saveJSON(progressFile, p)
	}
	pace := newThrottle(opts.Clock)
	in := io.Reader(f)
	if p.Done.Offset == 0 {
		in = &sniffer{Reader: f, name: name}
	}
	done, err := store.Import(ctx, in, opts.bulkOptions(p.Done, func(done bulk.ImportResult) error {
		if pace.due() {
			return saveProgress(done)
		}
		return nil
	}))
	if err != nil && (done.Offset > 0 || done.HadRecords != nil) {
		if !isSaveError(err) {
			err = errors.Join(err, saveProgress(done))
		}
		return ImportResult{ImportResult: done, Saved: !isSaveError(err)}, err
	}
	if removeErr := os.Remove(progressFile); !errors.Is(removeErr, os.ErrNotExist) {
		err = errors.Join(err, removeErr)
	}
	return ImportResult{ImportResult: done}, err
}

// checkResumable returns an error if the import in p cannot be resumed with the given file, table
// and options.
func (p *importProgress) checkResumable(f *os.File, name, table string, opts ImportOptions) error {
	progressFile := importProgressFile(name)
	if p.Table != table {
		return fmt.Errorf("%s belongs to an import into table %s, not %s: remove the file to start again", progressFile, p.Table, table)
	}
	if p.Overwrite != opts.Overwrite {
		return fmt.Errorf("%s belongs to an import with -overwrite=%t: use the same setting, or remove the file to start again", progressFile, p.Overwrite)
	}
	sum, err := checksum(0, f, 0, p.Done.Offset)
	if errors.Is(err, io.ErrUnexpectedEOF) || err == nil && sum != p.Checksum {
		return fmt.Errorf("%s has changed in its first %d bytes, which are already imported: remove %s to start again; the new import skips records that are equal in the file and the table", name, p.Done.Offset, progressFile)
	}
	return err
}

// checksum returns the checksum of the bytes f[:to]. The parameter sum is the checksum of the bytes
// f[:from], so checksum reads only the bytes f[from:to]. If f ends before them, checksum returns
// io.ErrUnexpectedEOF.
func checksum(sum uint64, f io.ReaderAt, from, to int64) (uint64, error) {
	hash := resumableCRC{sum, crc64.MakeTable(crc64.ECMA)}
	n, err := io.Copy(&hash, io.NewSectionReader(f, from, to-from))
	if err == nil && n < to-from {
		err = io.ErrUnexpectedEOF
	}
	return hash.sum, err
}

// resumableCRC is a writer that computes a CRC-64 checksum. sum can initially contain the checksum
// of earlier bytes.
type resumableCRC struct {
	sum   uint64
	table *crc64.Table
}

func (c *resumableCRC) Write(b []byte) (int, error) {
	c.sum = crc64.Update(c.sum, c.table, b)
	return len(b), nil
}
