package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/ordergraph/ordergraph/dynamo/bulk"
	"github.com/ordergraph/ordergraph/internal/config"
	"github.com/ordergraph/ordergraph/internal/transfer"
)

// standardStream is the name of standard input and output in the place of a file's.
const standardStream = "-"

func exportTable(ctx context.Context, args []string, env Environment) error {
	opts := transfer.ExportOptions{}
	file, err := fileArgument("export", args, func(set *flag.FlagSet) {
		set.Func("segments", fmt.Sprintf("in how many parts the table is read at once, 1 to %d (4 without it)", bulk.MaxSegments), func(text string) (err error) {
			opts.Segments, err = segments(text)
			return err
		})
		set.BoolVar(&opts.Overwrite, "overwrite", false, "replace FILE where it is there, as soon as the new export is complete")
	})
	if err != nil {
		return err
	}
	store, cfg, err := open(ctx, "export", env)
	if err != nil {
		return err
	}
	progress := newProgressLine(env.Stderr, time.Now)
	opts.Progress = func(e transfer.Exported) { progress.show("%d records, %s", e.Records, size(e.Bytes)) }
	done, out := transfer.Exported{}, env.Stdout
	if file == standardStream {
		out = env.Stderr // the records are on standard output
		done, err = transfer.Export(ctx, store, env.Stdout, opts)
	} else {
		done, err = transfer.ExportFile(ctx, store, file, opts)
	}
	progress.clear()
	if ctx.Err() != nil && err != nil {
		return interrupted("export", fmt.Sprintf("%d records", done.Records), done.Saved, err)
	}
	if err != nil {
		return onTable(cfg, err)
	}
	from := ""
	if done.Resumed {
		from = fmt.Sprintf(", those of the export that was interrupted included, which was begun at %s", done.Begun.Format(time.RFC3339))
	}
	fmt.Fprintf(out, "Exported from table %s: %d records, %s%s.\n", cfg.Table.Table, done.Records, size(done.Bytes), from)
	return nil
}

func importTable(ctx context.Context, args []string, env Environment) error {
	opts := transfer.ImportOptions{}
	file, err := fileArgument("import", args, func(set *flag.FlagSet) {
		set.BoolVar(&opts.Overwrite, "overwrite", false, "replace records that are there and differ; without it they are kept")
		set.BoolVar(&opts.DryRun, "dry-run", false, "tell what an import would do, and write nothing")
		set.BoolVar(&opts.SkipUnreadable, "skip-unreadable", false, "leave out lines that cannot be imported; without it the first one ends the import")
	})
	if err != nil {
		return err
	}
	store, cfg, err := open(ctx, "import", env)
	if err != nil {
		return err
	}
	if err := store.Check(ctx); err != nil {
		if ctx.Err() != nil {
			return interrupted("import", "0 lines", false, err)
		}
		return onTable(cfg, err)
	}
	progress := newProgressLine(env.Stderr, time.Now)
	opts.Progress = func(done bulk.Imported, of int64) {
		share := ""
		if of > 0 {
			share = fmt.Sprintf(" of %s", size(of))
		}
		progress.show("%d lines, %s%s, %d conflicts", done.Lines, size(done.Offset), share, done.Conflicts)
	}
	var done transfer.Imported
	if file == standardStream {
		done, err = transfer.Import(ctx, store, env.Stdin, opts)
	} else {
		done, err = transfer.ImportFile(ctx, store, file, opts)
	}
	progress.clear()
	if ctx.Err() != nil && err != nil {
		return interrupted("import", fmt.Sprintf("%d lines", done.Lines), done.Saved, err)
	}
	if bad := (*bulk.LineError)(nil); errors.As(err, &bad) {
		return onTable(cfg, fmt.Errorf("%s: %w; %s", file, err, stopped(opts)))
	}
	if err != nil {
		return onTable(cfg, err)
	}
	return report(env.Stdout, file, cfg, done.Imported, opts)
}

// stopped says what an import that ended at a line has imported, and what to do.
func stopped(opts transfer.ImportOptions) string {
	if opts.DryRun || opts.SkipUnreadable {
		return "fix it, and start again" // only a line too long to be held ends these
	}
	return "all lines before it are imported, and some behind it may be: fix it, and start again, which skips what is there; " +
		"or leave such lines out with -skip-unreadable"
}

// report tells what an import has done to its end.
//
// Errors: one where not every record is in the table now.
func report(out io.Writer, file string, cfg config.Config, done bulk.Imported, opts transfer.ImportOptions) error {
	if done.Records() == 0 {
		return fmt.Errorf("%s holds no record", file)
	}
	begins := "Imported into table"
	if opts.DryRun {
		begins = "A dry run wrote nothing. An import would have done this to table"
	}
	fmt.Fprintf(out, "%s %s: %d records written, %d replaced, %d there already, %d conflicts", begins, cfg.Table.Table, done.Written, done.Replaced, done.Unchanged, done.Conflicts)
	if done.LeftOut > 0 {
		fmt.Fprintf(out, "; %d idempotency records left out", done.LeftOut)
	}
	if done.Unreadable > 0 {
		fmt.Fprintf(out, "; %d unreadable lines left out", done.Unreadable)
	}
	fmt.Fprint(out, ".\n")
	for _, b := range done.BadLines {
		fmt.Fprintf(out, "unreadable  line %d: %s\n", b.Line, b.Problem)
	}
	tellMore(out, done.Unreadable-len(done.BadLines))
	for _, key := range done.ConflictKeys {
		fmt.Fprintf(out, "conflict  %s %s\n", key.PK, key.SK)
	}
	tellMore(out, done.Conflicts-len(done.ConflictKeys))

	var problems []string
	switch {
	case done.Unreadable > 0 && opts.SkipUnreadable:
		problems = append(problems, fmt.Sprintf("%d lines of %s cannot be imported, and were left out", done.Unreadable, file))
	case done.Unreadable > 0:
		problems = append(problems, fmt.Sprintf("%d lines of %s cannot be imported, and the first one would end an import: mend them, or leave them out with -skip-unreadable", done.Unreadable, file))
	}
	if done.Conflicts > 0 {
		problems = append(problems, fmt.Sprintf("%d records of %s are in table %s already and differ; those of the table were kept, -overwrite replaces them", done.Conflicts, file, cfg.Table.Table))
	}
	if len(problems) == 0 {
		return nil
	}
	return errors.New(strings.Join(problems, "; "))
}

func tellMore(out io.Writer, more int) {
	if more > 0 {
		fmt.Fprintf(out, "and %d more\n", more)
	}
}

// interrupted tells what became of a command that a signal ended, and that it can go on where it
// can.
func interrupted(command, done string, saved bool, err error) error {
	unsaved := (*transfer.SaveError)(nil)
	switch {
	case errors.As(err, &unsaved):
		return fmt.Errorf("%s: interrupted after %s, and it could not be saved how far it is: %w", command, done, unsaved)
	case saved:
		return fmt.Errorf("%s: interrupted after %s: start the same command again, and it goes on from there", command, done)
	default:
		return fmt.Errorf("%s: interrupted after %s", command, done)
	}
}

// segments reads a number of segments.
func segments(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > bulk.MaxSegments {
		return 0, fmt.Errorf("give 1 to %d", bulk.MaxSegments)
	}
	return n, nil
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
