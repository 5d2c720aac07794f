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

// ImportOptions say how to import.
type ImportOptions struct {
	// Overwrite, DryRun and SkipUnreadable are those of bulk.ImportOptions.
	Overwrite, DryRun, SkipUnreadable bool
	// Clock tells the time; the system's where it is nil.
	Clock func() time.Time
	// Progress, where it is set, is told about once a second what has been done, and of how many
	// bytes, 0 where nobody knows.
	Progress func(done bulk.Imported, size int64)
}

// Imported is what an import has done.
type Imported struct {
	bulk.Imported
	// Saved reports whether one that has failed can go on: how far it is, is on the disk.
	Saved bool
}

// importProgress is the file beside one that is being imported.
type importProgress struct {
	Table     string `json:"table"`
	Overwrite bool   `json:"overwrite"`
	// Done is what has been done, and Checksum that of the file up to there: what comes behind may
	// be mended, what was imported may not.
	Done     bulk.Imported `json:"done"`
	Checksum uint64        `json:"checksum"`
}

func importProgressFile(name string) string { return name + ".import-progress" }

// Import writes the records of r's lines to the table.
//
// Errors: one that names the command for what is no export; those of dynamo.Store.Import.
func Import(ctx context.Context, store *dynamo.Store, r io.Reader, opts ImportOptions) (Imported, error) {
	return importAll(ctx, store, &sniffer{Reader: r, name: "standard input"}, 0, opts)
}

// importAll imports what nobody remembers, of size bytes, 0 where nobody knows.
func importAll(ctx context.Context, store *dynamo.Store, r io.Reader, size int64, opts ImportOptions) (Imported, error) {
	pace := newPace(opts.Clock)
	done, err := store.Import(ctx, r, opts.dynamo(bulk.Imported{}, func(done bulk.Imported) error {
		if pace.over() {
			opts.tell(done, size)
		}
		return nil
	}))
	return Imported{Imported: done}, err
}

func (o ImportOptions) dynamo(from bulk.Imported, done func(bulk.Imported) error) bulk.ImportOptions {
	return bulk.ImportOptions{Overwrite: o.Overwrite, DryRun: o.DryRun, SkipUnreadable: o.SkipUnreadable, From: from, Done: done}
}

func (o ImportOptions) tell(done bulk.Imported, size int64) {
	if o.Progress != nil {
		o.Progress(done, size)
	}
}

// ImportFile writes the records of a file to the table, or goes on with an import of it that was
// interrupted, or that stopped at a line which has been mended. A dry run always begins at the
// beginning, and remembers nothing. What it returns counts the lines that were done before, too.
//
// Errors: one that says what to do where the file is no finished export, or an import of it was
// begun otherwise; SaveError; the file's; those of dynamo.Store.Import.
func ImportFile(ctx context.Context, store *dynamo.Store, name string, opts ImportOptions) (Imported, error) {
	if err := refuseUnfinished(name); err != nil {
		return Imported{}, err
	}
	f, err := os.Open(name)
	if err != nil {
		return Imported{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return Imported{}, err
	}
	if opts.DryRun || !info.Mode().IsRegular() {
		size := int64(0)
		if info.Mode().IsRegular() {
			size = info.Size()
		}
		return importAll(ctx, store, &sniffer{Reader: f, name: name}, size, opts)
	}
	table, err := store.TableID(ctx)
	if err != nil {
		return Imported{}, err
	}
	side := importProgressFile(name)
	p := importProgress{Table: table, Overwrite: opts.Overwrite}
	resumed, err := load(side, &p)
	if err == nil && resumed {
		err = p.check(f, name, table, opts)
	}
	if err != nil {
		return Imported{}, err
	}
	if _, err := f.Seek(p.Done.Offset, io.SeekStart); err != nil {
		return Imported{Imported: p.Done}, err
	}
	keep := func(done bulk.Imported) error {
		opts.tell(done, info.Size())
		sum, err := checksum(p.Checksum, f, p.Done.Offset, done.Offset)
		if err != nil {
			return &SaveError{err}
		}
		p.Done, p.Checksum = done, sum
		return save(side, p)
	}
	pace := newPace(opts.Clock)
	in := io.Reader(f)
	if p.Done.Offset == 0 {
		in = &sniffer{Reader: f, name: name}
	}
	done, err := store.Import(ctx, in, opts.dynamo(p.Done, func(done bulk.Imported) error {
		if pace.over() {
			return keep(done)
		}
		return nil
	}))
	if err != nil && done.Offset > 0 {
		if !unsaved(err) {
			err = errors.Join(err, keep(done))
		}
		return Imported{Imported: done, Saved: !unsaved(err)}, err
	}
	if removed := os.Remove(side); !errors.Is(removed, os.ErrNotExist) {
		err = errors.Join(err, removed)
	}
	return Imported{Imported: done}, err
}

// check reports whether an import can go on from p.
func (p *importProgress) check(f *os.File, name, table string, opts ImportOptions) error {
	side := importProgressFile(name)
	if p.Table != table {
		return fmt.Errorf("%s tells of an import into table %s, and this is %s: remove it to begin anew", side, p.Table, table)
	}
	if p.Overwrite != opts.Overwrite {
		return fmt.Errorf("%s tells of an import with -overwrite=%t: go on so, or remove it to begin anew", side, p.Overwrite)
	}
	sum, err := checksum(0, f, 0, p.Done.Offset)
	if errors.Is(err, io.ErrUnexpectedEOF) || err == nil && sum != p.Checksum {
		return fmt.Errorf("%s is not what was imported up to byte %d: remove %s to begin anew, which skips the records that are there", name, p.Done.Offset, side)
	}
	return err
}

// checksum is sum, that of the file up to from, carried on to to.
//
// Errors: io.ErrUnexpectedEOF where the file is shorter; the file's.
func checksum(sum uint64, f io.ReaderAt, from, to int64) (uint64, error) {
	hash := crc{sum, crc64.MakeTable(crc64.ECMA)}
	n, err := io.Copy(&hash, io.NewSectionReader(f, from, to-from))
	if err == nil && n < to-from {
		err = io.ErrUnexpectedEOF
	}
	return hash.sum, err
}

// crc is a checksum that can begin in the middle.
type crc struct {
	sum   uint64
	table *crc64.Table
}

func (c *crc) Write(b []byte) (int, error) {
	c.sum = crc64.Update(c.sum, c.table, b)
	return len(b), nil
}
