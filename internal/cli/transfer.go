package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/internal/transfer"
)

// standardStream is the name of standard input and output in the place of a file's.
const standardStream = "-"

func exportTable(ctx context.Context, args []string, env Environment) error {
	opts := transfer.ExportOptions{}
	file, err := fileArgument("export", args, func(set *flag.FlagSet) {
		set.IntVar(&opts.Segments, "segments", 0, "")
		set.BoolVar(&opts.Overwrite, "overwrite", false, "")
	})
	if err != nil {
		return err
	}
	if opts.Segments < 0 || opts.Segments > dynamo.MaxSegments {
		return usageError{fmt.Sprintf("export: -segments %d: give 1 to %d", opts.Segments, dynamo.MaxSegments)}
	}
	store, cfg, err := open(ctx, "export", env)
	if err != nil {
		return err
	}
	ticker := newTicker(env.Stderr)
	opts.Progress = func(e transfer.Exported) { ticker.show("%d records, %s", e.Records, size(e.Bytes)) }
	done, out := transfer.Exported{}, env.Stdout
	if file == standardStream {
		out = env.Stderr // the records are on standard output
		done, err = transfer.Export(ctx, store, env.Stdout, opts)
	} else {
		done, err = transfer.ExportFile(ctx, store, file, opts)
	}
	ticker.end()
	if ctx.Err() != nil && err != nil {
		return interrupted("export", file, fmt.Sprintf("%d records", done.Records))
	}
	if err != nil {
		return onTable(cfg, err)
	}
	from := ""
	if done.Resumed {
		from = ", those of the export that was interrupted included"
	}
	fmt.Fprintf(out, "Exported from table %s: %d records, %s%s.\n", cfg.Table.Table, done.Records, size(done.Bytes), from)
	return nil
}

func importTable(ctx context.Context, args []string, env Environment) error {
	opts := transfer.ImportOptions{}
	file, err := fileArgument("import", args, func(set *flag.FlagSet) {
		set.BoolVar(&opts.Overwrite, "overwrite", false, "")
		set.BoolVar(&opts.DryRun, "dry-run", false, "")
	})
	if err != nil {
		return err
	}
	store, cfg, err := open(ctx, "import", env)
	if err != nil {
		return err
	}
	if err := store.Check(ctx); err != nil {
		return onTable(cfg, err)
	}
	ticker := newTicker(env.Stderr)
	opts.Progress = func(done dynamo.Imported, of int64) {
		share := ""
		if of > 0 {
			share = fmt.Sprintf(" of %s", size(of))
		}
		ticker.show("%d lines, %s%s, %d conflicts", done.Lines, size(done.Offset), share, done.Conflicts)
	}
	var done dynamo.Imported
	if file == standardStream {
		done, err = transfer.Import(ctx, store, env.Stdin, opts)
	} else {
		done, err = transfer.ImportFile(ctx, store, file, opts)
	}
	ticker.end()
	if ctx.Err() != nil && err != nil {
		return interrupted("import", file, fmt.Sprintf("%d lines", done.Lines))
	}
	before := "all lines before it are imported, none behind it"
	if opts.DryRun {
		before = "nothing was imported, this being a dry run"
	}
	if bad := (*dynamo.LineError)(nil); errors.As(err, &bad) {
		return onTable(cfg, fmt.Errorf("%s: %w; %s: mend it, and start again", file, err, before))
	}
	if err != nil {
		return onTable(cfg, err)
	}
	begins := "Imported into table"
	if opts.DryRun {
		begins = "A dry run wrote nothing. An import would have done this to table"
	}
	fmt.Fprintf(env.Stdout, "%s %s: %d records written, %d replaced, %d there already, %d conflicts", begins, cfg.Table.Table, done.Written, done.Replaced, done.Unchanged, done.Conflicts)
	if done.LeftOut > 0 {
		fmt.Fprintf(env.Stdout, "; %d idempotency records left out", done.LeftOut)
	}
	fmt.Fprint(env.Stdout, ".\n")
	if done.Conflicts == 0 {
		return nil
	}
	for _, key := range done.ConflictKeys {
		fmt.Fprintf(env.Stdout, "conflict  %s %s\n", key.PK, key.SK)
	}
	if more := done.Conflicts - len(done.ConflictKeys); more > 0 {
		fmt.Fprintf(env.Stdout, "and %d more\n", more)
	}
	return fmt.Errorf("%d records of %s are in table %s already and differ; those of the table were kept, -overwrite replaces them", done.Conflicts, file, cfg.Table.Table)
}

// interrupted tells what became of a command that a signal ended.
func interrupted(command, file, done string) error {
	if file == standardStream {
		return fmt.Errorf("%s: interrupted after %s", command, done)
	}
	return fmt.Errorf("%s: interrupted after %s: start the same command again, and it goes on from there", command, done)
}

// fileArgument parses the flags of a command that works on one file, and returns the file's name.
func fileArgument(command string, args []string, define func(*flag.FlagSet)) (string, error) {
	var words []string
	if err := flags(command, args, 1, define, &words); err != nil {
		return "", err
	}
	if len(words) == 0 {
		return "", usageError{fmt.Sprintf("%s: name a file, or - for the standard stream", command)}
	}
	return words[0], nil
}

// ticker shows how far a command is, on one line that it writes over again, if people watch.
type ticker struct {
	w     io.Writer
	shown bool
}

func newTicker(w io.Writer) *ticker {
	t := &ticker{w: io.Discard}
	if f, ok := w.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
			t.w = w
		}
	}
	return t
}

func (t *ticker) show(format string, args ...any) {
	// The escape sequence clears what a longer line left behind.
	fmt.Fprintf(t.w, "\r"+format+"\x1b[K", args...)
	t.shown = true
}

// end begins a new line for what comes next.
func (t *ticker) end() {
	if t.shown {
		fmt.Fprintln(t.w)
	}
}

// size is a number of bytes for people.
func size(bytes int64) string {
	switch {
	case bytes >= 1e9:
		return fmt.Sprintf("%.1f GB", float64(bytes)/1e9)
	case bytes >= 1e6:
		return fmt.Sprintf("%.1f MB", float64(bytes)/1e6)
	default:
		return fmt.Sprintf("%d bytes", bytes)
	}
}
