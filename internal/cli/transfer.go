package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/ordergraph/ordergraph/dynamo/bulk"
	"github.com/ordergraph/ordergraph/internal/config"
	"github.com/ordergraph/ordergraph/internal/transfer"
)

// standardStream is the file name that stands for standard input or standard output.
const standardStream = "-"

func exportTable(ctx context.Context, args []string, env Environment) error {
	opts := transfer.ExportOptions{}
	file, err := fileArgument("export", args, func(set *flag.FlagSet) {
		defineStoreFlags(set, &env)
		set.Func("segments", fmt.Sprintf("number of table segments to scan in parallel, 1 to %d (default 4)", bulk.MaxSegments), func(text string) (err error) {
			opts.Segments, err = parseSegments(text)
			return err
		})
		set.BoolVar(&opts.Overwrite, "overwrite", false, "replace FILE if it exists, but only when the new export is complete")
	})
	if err != nil {
		return err
	}
	store, cfg, err := openStore(ctx, "export", useExisting, env)
	if err != nil {
		return err
	}
	progress := newProgressLine(env.Stderr, time.Now)
	opts.Progress = func(e transfer.ExportResult) { progress.show("%d records, %s", e.Records, formatBytes(e.Bytes)) }
	done, messages := transfer.ExportResult{}, env.Stdout
	if file == standardStream {
		messages = env.Stderr // standard output contains the exported records
		done, err = transfer.Export(ctx, store, env.Stdout, opts)
	} else {
		done, err = transfer.ExportFile(ctx, store, file, opts)
	}
	progress.clear()
	if ctx.Err() != nil && err != nil {
		return newInterrupted("export", fmt.Sprintf("%d records", done.Records), done.Saved, err)
	}
	if err != nil {
		return withTableName(cfg, err)
	}
	resumed := ""
	if done.Resumed {
		resumed = fmt.Sprintf(", including the records of the interrupted export that started at %s", done.Started.Format(time.RFC3339))
	}
	fmt.Fprintf(messages, "Exported from table %s: %d records, %s%s.\n", cfg.Table.Table, done.Records, formatBytes(done.Bytes), resumed)
	return nil
}

func importTable(ctx context.Context, args []string, env Environment) error {
	opts, from := transfer.ImportOptions{}, ""
	file, err := fileArgument("import", args, func(set *flag.FlagSet) {
		defineStoreFlags(set, &env)
		set.BoolVar(&opts.Overwrite, "overwrite", false, "replace existing records that differ (default: keep them)")
		set.BoolVar(&opts.DryRun, "dry-run", false, "print what an import would do, but write nothing")
		set.BoolVar(&opts.SkipUnreadable, "skip-unreadable", false, "skip lines that cannot be imported (default: the first such line stops the import)")
		set.StringVar(&from, "from", "", "FILE is an export of another table, whose keys and attributes the mapping in this file describes")
	})
	if err != nil {
		return err
	}
	mapping, err := readMapping(from, opts)
	if err != nil {
		return err
	}
	use := createStoreAndTable
	if opts.DryRun {
		use = useExisting
	} else if file != standardStream {
		if _, err := os.Stat(file); err != nil {
			use = useExisting // the import will fail, so create nothing
		}
	}
	store, cfg, err := openStore(ctx, "import", use, env)
	if err != nil {
		return err
	}
	if err := store.CheckTable(ctx); err != nil {
		if ctx.Err() != nil {
			return newInterrupted("import", "0 lines", false, err)
		}
		return withTableName(cfg, err)
	}
	if mapping != nil {
		return convertAndLoad(ctx, store, cfg, file, mapping, opts, env)
	}
	progress := newProgressLine(env.Stderr, time.Now)
	opts.Progress = func(done bulk.ImportResult, total int64) {
		suffix := ""
		if total > 0 {
			suffix = fmt.Sprintf(" of %s", formatBytes(total))
		}
		progress.show("%d lines, %s%s, %d conflicts", done.Lines, formatBytes(done.Offset), suffix, done.Conflicts)
	}
	var done transfer.ImportResult
	if file == standardStream {
		done, err = transfer.Import(ctx, store, env.Stdin, opts)
	} else {
		done, err = transfer.ImportFile(ctx, store, file, opts)
	}
	progress.clear()
	if ctx.Err() != nil && err != nil {
		return newInterrupted("import", fmt.Sprintf("%d lines", done.Lines), done.Saved, err)
	}
	if line := (*bulk.LineError)(nil); errors.As(err, &line) {
		return withTableName(cfg, fmt.Errorf("%s: %w; %s", file, err, importAdvice(opts)))
	}
	if err != nil {
		return withTableName(cfg, err)
	}
	return printImportReport(env.Stdout, file, cfg, done.ImportResult, opts)
}

// importAdvice returns the end of the error message for an import that stopped at an invalid line.
// The text describes what to do next. Without the options DryRun and SkipUnreadable, it also
// describes which lines were imported.
func importAdvice(opts transfer.ImportOptions) string {
	if opts.DryRun || opts.SkipUnreadable {
		return "fix the line and run the command again" // with these options, only a line over the size limit stops the import
	}
	return "all lines before this line are imported, and some later lines may be imported, too: fix the line and run the command again (it skips imported records), " +
		"or skip such lines with -skip-unreadable"
}

// printImportReport prints the result of a completed import. If an invalid line or a conflict
// prevented the import of a record, printImportReport returns an error.
func printImportReport(out io.Writer, file string, cfg config.Config, done bulk.ImportResult, opts transfer.ImportOptions) error {
	if done.RecordCount() == 0 {
		return fmt.Errorf("%s contains no records", file)
	}
	intro := "Imported into table"
	if opts.DryRun {
		intro = "A dry run wrote nothing. An import would have this result in table"
	}
	fmt.Fprintf(out, "%s %s: %d records written, %d replaced, %d unchanged, %d conflicts", intro, cfg.Table.Table, done.Written, done.Replaced, done.Unchanged, done.Conflicts)
	if done.LeftOut > 0 {
		fmt.Fprintf(out, "; %d records skipped", done.LeftOut)
	}
	if done.Unreadable > 0 {
		fmt.Fprintf(out, "; %d unreadable lines skipped", done.Unreadable)
	}
	fmt.Fprint(out, ".\n")
	for _, b := range done.BadLines {
		fmt.Fprintf(out, "unreadable  line %d: %s\n", b.Line, b.Problem)
	}
	printMore(out, done.Unreadable-len(done.BadLines))
	for _, key := range done.ConflictKeys {
		fmt.Fprintf(out, "conflict  %s %s\n", key.PK, key.SK)
	}
	printMore(out, done.Conflicts-len(done.ConflictKeys))

	var problems []string
	switch {
	case done.Unreadable > 0 && opts.SkipUnreadable:
		problems = append(problems, fmt.Sprintf("%d lines of %s cannot be imported and were skipped", done.Unreadable, file))
	case done.Unreadable > 0:
		problems = append(problems, fmt.Sprintf("%d lines of %s cannot be imported, and the first of these lines would stop an import: fix them, or skip them with -skip-unreadable", done.Unreadable, file))
	}
	if done.Conflicts > 0 {
		problems = append(problems, fmt.Sprintf("%d records of %s differ from the existing records in table %s: the existing records were kept; use -overwrite to replace them", done.Conflicts, file, cfg.Table.Table))
	}
	if len(problems) == 0 {
		return nil
	}
	return errors.New(strings.Join(problems, "; "))
}

func printMore(out io.Writer, more int) {
	if more > 0 {
		fmt.Fprintf(out, "and %d more\n", more)
	}
}

// newInterrupted returns the error for a command that was interrupted by a signal. If saved is
// true, the command has saved its progress, and the message explains that the same command
// continues the work.
func newInterrupted(command, done string, saved bool, err error) error {
	unsaved := (*transfer.SaveError)(nil)
	switch {
	case errors.As(err, &unsaved):
		return fmt.Errorf("%s: interrupted after %s, and the progress could not be saved: %w", command, done, unsaved)
	case saved:
		return fmt.Errorf("%s: interrupted after %s: run the same command again to continue", command, done)
	default:
		return fmt.Errorf("%s: interrupted after %s", command, done)
	}
}

// parseSegments parses the value of the flag -segments.
func parseSegments(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > bulk.MaxSegments {
		return 0, fmt.Errorf("use 1 to %d", bulk.MaxSegments)
	}
	return n, nil
}

// fileArgument parses the arguments of a command. It returns the one argument that is not a flag.
// This argument is the name of a file.
func fileArgument(command string, args []string, define func(*flag.FlagSet)) (string, error) {
	var words []string
	if err := parseArgs(command, args, 1, define, &words); err != nil {
		return "", err
	}
	if len(words) == 0 {
		return "", usageError{fmt.Sprintf("%s: the argument FILE is missing: name a file, or use - for standard input or output", command)}
	}
	return words[0], nil
}

// formatBytes formats a number of bytes for a message, such as "1.5 MB".
func formatBytes(bytes int64) string {
	switch {
	case bytes >= 1e9:
		return fmt.Sprintf("%.1f GB", float64(bytes)/1e9)
	case bytes >= 1e6:
		return fmt.Sprintf("%.1f MB", float64(bytes)/1e6)
	default:
		return fmt.Sprintf("%d bytes", bytes)
	}
}
