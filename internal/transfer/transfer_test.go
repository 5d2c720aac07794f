package transfer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/middleware"
	"pgregory.net/rapid"

	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/bulk"
	"github.com/ordergraph/ordergraph/embedded"
	"github.com/ordergraph/ordergraph/internal/test/dynamolocal"
	"github.com/ordergraph/ordergraph/internal/test/longtest"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
	"github.com/ordergraph/ordergraph/internal/transfer"
)

func TestMain(m *testing.M) {
	longtest.SetRapidChecks(10, 100)
	os.Exit(dynamolocal.Main(m))
}

// fastClock returns a clock that advances by more than an interval with every call, so that
// progress is saved after every page and line.
func fastClock() func() time.Time { return steppingClock(time.Minute) }

// steppingClock returns a clock that advances by step with every call.
func steppingClock(step time.Duration) func() time.Time {
	now := time.Unix(0, 0)
	return func() time.Time {
		now = now.Add(step)
		return now
	}
}

// interceptedStore returns a store of the same table whose Scans are small, and which calls
// intercept before each request.
func interceptedStore(t testing.TB, db *dynamodb.Client, store *dynamo.Store, intercept func() error) *dynamo.Store {
	t.Helper()
	client := dynamodb.New(db.Options(), func(o *dynamodb.Options) {
		o.APIOptions = append(slices.Clone(o.APIOptions), func(stack *middleware.Stack) error {
			return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("intercept", func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
				if scan, ok := in.Parameters.(*dynamodb.ScanInput); ok {
					scan.Limit = aws.Int32(9)
				}
				if _, describes := in.Parameters.(*dynamodb.DescribeTableInput); !describes {
					if err := intercept(); err != nil {
						return middleware.InitializeOutput{}, middleware.Metadata{}, err
					}
				}
				return next.HandleInitialize(ctx, in)
			}), middleware.Before)
		})
	})
	id, err := store.TableID(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	name, _, _ := strings.Cut(id, " ")
	s, err := dynamo.New(client, dynamo.Options{Table: name})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func allowAll() error { return nil }

// repeatedly runs a test that draws numbers from 0 to n-1. On the embedded store it is a property
// test. On DynamoDB Local, which is slow, it runs a few times.
func repeatedly(t *testing.T, test func(draw func(n int) int)) {
	t.Helper()
	if storetest.IsEmbedded(t) {
		rapid.Check(t, func(r *rapid.T) {
			test(func(n int) int { return rapid.IntRange(0, n-1).Draw(r, "n") })
		})
		return
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range longtest.Size(2, 6) {
		test(random.IntN)
	}
}

func readFile(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func writeFile(t testing.TB, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func sorted(text string) []string { return slices.Sorted(strings.Lines(text)) }

// sampleStore returns the store of a table with the sample data and without a layout, so that the
// table contains only the records that an import writes.
func sampleStore(t *testing.T, db *dynamodb.Client) *dynamo.Store {
	t.Helper()
	return withoutLayout(t, db, storetest.SampleStore(t, db))
}

// newTable returns the store of a new table without records.
func newTable(t *testing.T, db *dynamodb.Client) *dynamo.Store {
	t.Helper()
	return withoutLayout(t, db, storetest.NewTable(t, db, dynamo.Options{}))
}

func withoutLayout(t *testing.T, db *dynamodb.Client, s *dynamo.Store) *dynamo.Store {
	t.Helper()
	storetest.DeleteLayout(t, db, storetest.StoreTableName(t, s))
	return s
}

// exportedLines returns the sorted lines of an export of the table.
func exportedLines(t testing.TB, store *dynamo.Store) []string {
	t.Helper()
	var text bytes.Buffer
	if _, err := transfer.Export(context.Background(), store, &text, transfer.ExportOptions{Segments: 1}); err != nil {
		t.Fatal(err)
	}
	return sorted(text.String())
}

// checkOnlyFile checks that the file is the only one in its directory.
func checkOnlyFile(t testing.TB, name string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(name))
	if err != nil || len(entries) != 1 || entries[0].Name() != filepath.Base(name) {
		t.Errorf("the directory contains %v, %v, want only the exported file", entries, err)
	}
}

func TestFileRoundTrip(t *testing.T) {
	t.Parallel()
	_, records := storetest.SampleDataset(t)
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		from, to := sampleStore(t, db), newTable(t, db)
		name := filepath.Join(t.TempDir(), "shop.jsonl")
		var reports []transfer.ExportResult
		out, err := transfer.ExportFile(context.Background(), interceptedStore(t, db, from, allowAll), name, transfer.ExportOptions{Segments: 1, Clock: fastClock(), Progress: func(e transfer.ExportResult) { reports = append(reports, e) }})
		if err != nil || out.Records != records || out.Bytes != int64(len(readFile(t, name))) || out.Resumed {
			t.Errorf("exported %+v, %v", out, err)
		}
		if len(reports) < 10 || reports[len(reports)-1] != out || !slices.IsSortedFunc(reports, func(a, b transfer.ExportResult) int { return a.Records - b.Records }) {
			t.Errorf("reported %+v", reports)
		}
		checkOnlyFile(t, name)
		for _, want := range []bulk.ImportResult{{Written: records}, {Unchanged: records}} {
			want.Lines, want.Offset = records, out.Bytes
			var last bulk.ImportResult
			in, err := transfer.ImportFile(context.Background(), to, name, transfer.ImportOptions{Clock: fastClock(), Progress: func(done bulk.ImportResult, size int64) {
				if size != out.Bytes || done.Lines != last.Lines+1 {
					t.Errorf("progress reported %+v of %d bytes after %+v", done, size, last)
				}
				last = done
			}})
			if err != nil || in.Lines != want.Lines || in.Offset != want.Offset || in.Written != want.Written || in.Unchanged != want.Unchanged || last.Lines != records {
				t.Errorf("imported %+v, %v, want %+v", in, err, want)
			}
			if got := exportedLines(t, to); !slices.Equal(got, sorted(readFile(t, name))) {
				t.Error("the table differs from the file")
			}
			checkOnlyFile(t, name)
		}
	})
}

// An export that is killed at any request, or between saving and writing, can continue, and exports
// every record once.
func TestExportFileContinues(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		store := sampleStore(t, db)
		want := exportedLines(t, store)
		dir := t.TempDir()
		repeatedly(t, func(draw func(n int) int) {
			name := filepath.Join(dir, "shop.jsonl")
			part, side := name+".part", name+".progress"
			segments := 1 + draw(4)
			var records, saved int
			for done := false; !done; {
				ctx, cancel := context.WithCancel(context.Background())
				var left atomic.Int64
				left.Store(int64(1 + draw(8)))
				killing := interceptedStore(t, db, store, func() error {
					// A process that ends at any moment leaves no file that looks complete.
					if _, err := os.Stat(side); err != nil {
						t.Error(err)
					}
					if _, err := os.Stat(name); !errors.Is(err, os.ErrNotExist) {
						t.Errorf("the file exists before the export is complete: %v", err)
					}
					if left.Add(-1) == 0 {
						cancel()
					}
					return nil
				})
				out, err := transfer.ExportFile(ctx, killing, name, transfer.ExportOptions{Segments: segments, Clock: fastClock()})
				cancel()
				if err != nil && !errors.Is(err, context.Canceled) {
					t.Fatal(err)
				}
				if out.Saved != (err != nil) {
					t.Fatalf("%+v after %v", out, err)
				}
				if out.Records < records || out.Resumed != (saved > 0) {
					t.Fatalf("after %d records the result is %+v", records, out)
				}
				records, done, saved = out.Records, err == nil, saved+1
				if !done && draw(2) == 1 /* written and not saved */ {
					f, err := os.OpenFile(part, os.O_WRONLY|os.O_APPEND, 0)
					if err == nil {
						_, err = f.WriteString(want[0] + "{\"Item\"")
						err = errors.Join(err, f.Close())
					}
					if err != nil {
						t.Fatal(err)
					}
				}
				if _, err := os.Stat(side); (err == nil) == done {
					t.Fatalf("the export is complete: %t, but reading the progress file returns %v", done, err)
				}
			}
			if got := sorted(readFile(t, name)); !slices.Equal(got, want) || records != len(want) {
				t.Fatalf("the continued export has %d lines, want %d", len(got), len(want))
			}
			checkOnlyFile(t, name)
			if err := os.Remove(name); err != nil {
				t.Fatal(err)
			}
		})
	})
}

// newInterruptedExport starts an export and kills it after its first page.
func newInterruptedExport(t *testing.T, db *dynamodb.Client, store *dynamo.Store, segments int) (name, side string) {
	t.Helper()
	name = filepath.Join(t.TempDir(), "shop.jsonl")
	requests := 0
	out, err := transfer.ExportFile(context.Background(), interceptedStore(t, db, store, func() error {
		if requests++; requests > 1 {
			return context.Canceled
		}
		return nil
	}), name, transfer.ExportOptions{Segments: segments, Clock: fastClock()})
	if !errors.Is(err, context.Canceled) || out.Records != 9 {
		t.Fatalf("%+v, %v", out, err)
	}
	return name, name + ".progress"
}

func TestExportFileRefuses(t *testing.T) {
	_, records := storetest.SampleDataset(t)
	db := embedded.New().Client()
	store, other := sampleStore(t, db), sampleStore(t, db)
	check := func(t *testing.T, store *dynamo.Store, name string, opts transfer.ExportOptions, parts ...string) {
		t.Helper()
		before, _ := os.ReadFile(name + ".part")
		_, err := transfer.ExportFile(context.Background(), store, name, opts)
		for _, part := range append(parts, "-overwrite") {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("the error is %v, want one with %q", err, part)
			}
		}
		if after, _ := os.ReadFile(name + ".part"); !bytes.Equal(before, after) {
			t.Error("the file was changed")
		}
	}
	t.Run("an existing file", func(t *testing.T) {
		name := filepath.Join(t.TempDir(), "notes")
		writeFile(t, name, "precious")
		check(t, store, name, transfer.ExportOptions{}, "notes already exists")
		if checkOnlyFile(t, name); readFile(t, name) != "precious" {
			t.Error("the file was changed")
		}
		if _, err := transfer.ExportFile(context.Background(), store, name, transfer.ExportOptions{Segments: 1, Overwrite: true}); err != nil || !slices.Equal(sorted(readFile(t, name)), exportedLines(t, store)) {
			t.Errorf("overwritten: %v", err)
		}
		checkOnlyFile(t, name)
	})
	t.Run("another table", func(t *testing.T) {
		name, _ := newInterruptedExport(t, db, store, 1)
		check(t, other, name, transfer.ExportOptions{}, "of table test-")
	})
	t.Run("other segments", func(t *testing.T) {
		name, _ := newInterruptedExport(t, db, store, 1)
		check(t, store, name, transfer.ExportOptions{Segments: 2}, "-segments 1")
		if out, err := transfer.ExportFile(context.Background(), store, name, transfer.ExportOptions{}); err != nil || !out.Resumed || out.Records != records {
			t.Errorf("an export without a number of segments did not continue: %+v, %v", out, err)
		}
	})
	t.Run("a file cut short", func(t *testing.T) {
		name, _ := newInterruptedExport(t, db, store, 1)
		writeFile(t, name+".part", "short")
		check(t, store, name, transfer.ExportOptions{}, "has 5 bytes")
		if err := os.Remove(name + ".part"); err != nil {
			t.Fatal(err)
		}
		check(t, store, name, transfer.ExportOptions{}, "has 0 bytes")
		if out, err := transfer.ExportFile(context.Background(), store, name, transfer.ExportOptions{Segments: 1, Overwrite: true}); err != nil || out.Records != records || out.Resumed {
			t.Errorf("the result of the overwriting export is %+v, %v", out, err)
		}
	})
	t.Run("a damaged progress file", func(t *testing.T) {
		name, side := newInterruptedExport(t, db, store, 1)
		writeFile(t, side, "{")
		if _, err := transfer.ExportFile(context.Background(), store, name, transfer.ExportOptions{}); err == nil || !strings.Contains(err.Error(), "damaged") {
			t.Errorf("%v", err)
		}
	})
	t.Run("no directory", func(t *testing.T) {
		if _, err := transfer.ExportFile(context.Background(), store, "/nowhere/shop.jsonl", transfer.ExportOptions{}); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), " /nowhere/shop.jsonl: ") {
			t.Errorf("%v", err)
		}
	})
	t.Run("a directory", func(t *testing.T) {
		if _, err := transfer.ExportFile(context.Background(), store, t.TempDir(), transfer.ExportOptions{Overwrite: true}); err == nil || !strings.Contains(err.Error(), "not a regular file") {
			t.Errorf("%v", err)
		}
	})
	t.Run("a part file of another program", func(t *testing.T) {
		name := filepath.Join(t.TempDir(), "shop.jsonl")
		writeFile(t, name+".part", "precious")
		check(t, store, name, transfer.ExportOptions{}, "does not belong to an export")
	})
}

// A table that was deleted and created again is another table.
func TestExportFileOfRecreatedTable(t *testing.T) {
	db := storetest.Engines()[1].Client(t)
	store := sampleStore(t, db)
	name, _ := newInterruptedExport(t, db, store, 1)
	id, err := store.TableID(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	table, _, _ := strings.Cut(id, " ")
	if _, err := db.DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: &table}); err != nil {
		t.Fatal(err)
	}
	if err := store.CreateTable(context.Background()); err != nil {
		t.Fatal(err)
	}
	if _, err := transfer.ExportFile(context.Background(), store, name, transfer.ExportOptions{}); err == nil || !strings.Contains(err.Error(), id) {
		t.Errorf("%v", err)
	}
}

// An incomplete export cannot be imported.
func TestImportIncompleteExport(t *testing.T) {
	db := embedded.New().Client()
	store := sampleStore(t, db)
	name, side := newInterruptedExport(t, db, store, 1)
	if _, err := transfer.ImportFile(context.Background(), store, name, transfer.ImportOptions{}); err == nil || !strings.Contains(err.Error(), side) {
		t.Errorf("%v", err)
	}
}

// An import that is killed at any request can continue.
func TestImportFileContinues(t *testing.T) {
	t.Parallel()
	_, records := storetest.SampleDataset(t)
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		text := strings.Join(exportedLines(t, sampleStore(t, db)), "")
		dir := t.TempDir()
		name := filepath.Join(dir, "shop.jsonl")
		writeFile(t, name, text)
		repeatedly(t, func(draw func(n int) int) {
			store := newTable(t, db)
			var last transfer.ImportResult
			tries := 0
			for done := false; !done; tries++ {
				ctx, cancel := context.WithCancel(context.Background())
				var left atomic.Int64
				left.Store(int64(1 + draw(120)))
				in, err := transfer.ImportFile(ctx, interceptedStore(t, db, store, func() error {
					if left.Add(-1) == 0 {
						cancel()
					}
					return nil
				}), name, transfer.ImportOptions{Clock: steppingClock(90 * time.Millisecond)})
				cancel()
				if err != nil && !errors.Is(err, context.Canceled) {
					t.Fatal(err)
				}
				if in.Lines < last.Lines {
					t.Fatalf("the import continued from %+v has the lower progress %+v", last, in)
				}
				last, done = in, err == nil
			}
			if last.Lines != records || last.Written+last.Unchanged != records || last.Conflicts > 0 || tries == 1 && last.Unchanged > 0 {
				t.Fatalf("result %+v", last)
			}
			if got := strings.Join(exportedLines(t, store), ""); got != text {
				t.Fatal("the table differs from the file")
			}
			checkOnlyFile(t, name)
		})
	})
}

// The import continues at a fixed line. An imported line must not change.
func TestImportFixedFile(t *testing.T) {
	db := embedded.New().Client()
	all := exportedLines(t, sampleStore(t, db))
	name := filepath.Join(t.TempDir(), "shop.jsonl")
	side := name + ".import-progress"
	store, other := newTable(t, db), newTable(t, db)
	begin := func() {
		t.Helper()
		writeFile(t, name, strings.Join(all[:50], "")+all[50][:20]+"\n"+strings.Join(all[51:], ""))
		in, err := transfer.ImportFile(context.Background(), store, name, transfer.ImportOptions{Clock: steppingClock(0)})
		if bad := (*bulk.LineError)(nil); !errors.As(err, &bad) || bad.Line != 51 || in.Lines != 50 {
			t.Fatalf("result %+v, %v", in, err)
		}
	}
	refused := func(store *dynamo.Store, opts transfer.ImportOptions, message string) {
		t.Helper()
		if _, err := transfer.ImportFile(context.Background(), store, name, opts); err == nil || !strings.Contains(err.Error(), message) || !strings.Contains(err.Error(), "remove") {
			t.Errorf("the error is %v, want one with %q", err, message)
		}
	}
	begin()
	refused(other, transfer.ImportOptions{}, "table test-")
	refused(store, transfer.ImportOptions{Overwrite: true}, "-overwrite=false")

	writeFile(t, name, strings.ToUpper(all[0])+strings.Join(all[1:], ""))
	refused(store, transfer.ImportOptions{}, "has changed in its first")
	writeFile(t, name, all[0])
	refused(store, transfer.ImportOptions{}, "has changed in its first")
	onDisk := readFile(t, side)

	// A dry run neither uses nor changes the progress file.
	writeFile(t, name, strings.Join(all, ""))
	if in, err := transfer.ImportFile(context.Background(), store, name, transfer.ImportOptions{DryRun: true, Overwrite: true, Clock: fastClock()}); err != nil || in.Written != len(all)-50 || in.Unchanged != 50 || readFile(t, side) != onDisk {
		t.Errorf("the result of the dry run is %+v, %v", in, err)
	}
	if in, err := transfer.ImportFile(context.Background(), store, name, transfer.ImportOptions{Clock: fastClock()}); err != nil || in.Written != len(all) || in.Unchanged != 0 || in.Lines != len(all) {
		t.Errorf("the result of importing the corrected file is %+v, %v", in, err)
	}
	checkOnlyFile(t, name)
	if got := exportedLines(t, store); !slices.Equal(got, all) {
		t.Error("the table differs from the file")
	}
	begin()
	writeFile(t, side, "")
	refused(store, transfer.ImportOptions{}, "damaged")
}

// Conflicts before an interruption are part of the final result.
func TestConflictsAreRemembered(t *testing.T) {
	db := embedded.New().Client()
	store := newTable(t, db)
	line := func(v string) string { return `{"Item":{"pk":{"S":"a"},"sk":{"S":"b"},"v":{"S":"` + v + `"}}}` + "\n" }
	name := filepath.Join(t.TempDir(), "shop.jsonl")
	writeFile(t, name, line("1")+line("2")+"bad\n")
	if in, err := transfer.ImportFile(context.Background(), store, name, transfer.ImportOptions{Clock: fastClock()}); err == nil || in.Conflicts != 1 {
		t.Fatalf("result %+v, %v", in, err)
	}
	writeFile(t, name, line("1")+line("2")+line("3"))
	in, err := transfer.ImportFile(context.Background(), store, name, transfer.ImportOptions{Clock: fastClock()})
	if err != nil || in.Written != 1 || in.Conflicts != 2 || len(in.ConflictKeys) != 2 {
		t.Errorf("result %+v, %v", in, err)
	}
}

// An import stops if its progress cannot be saved.
func TestImportFileWithoutSavedProgress(t *testing.T) {
	db := embedded.New().Client()
	store := newTable(t, db)
	name := filepath.Join(t.TempDir(), "shop.jsonl")
	writeFile(t, name, strings.Join(exportedLines(t, sampleStore(t, db)), ""))
	// A file cannot replace a directory that is not empty.
	if err := os.MkdirAll(filepath.Join(name+".import-progress", "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if in, err := transfer.ImportFile(context.Background(), store, name, transfer.ImportOptions{Clock: fastClock()}); err == nil || in.Lines > 0 {
		t.Errorf("result %+v, %v", in, err)
	}
}

// failingAfter returns a store whose requests fail after the first n, as if it were interrupted.
func failingAfter(t *testing.T, db *dynamodb.Client, store *dynamo.Store, n int64) *dynamo.Store {
	var made atomic.Int64
	return interceptedStore(t, db, store, func() error {
		if made.Add(1) > n {
			return context.Canceled
		}
		return nil
	})
}

// An export with Overwrite keeps the old file until the new one is complete. It continues when it
// is repeated.
func TestExportFileReplaces(t *testing.T) {
	db := embedded.New().Client()
	store := sampleStore(t, db)
	all := exportedLines(t, store)
	replacing := transfer.ExportOptions{Segments: 1, Overwrite: true, Clock: fastClock()}
	interrupted := func() string {
		t.Helper()
		name := filepath.Join(t.TempDir(), "shop.jsonl")
		writeFile(t, name, all[0])
		for i := range 2 {
			out, err := transfer.ExportFile(context.Background(), failingAfter(t, db, store, 1), name, replacing)
			if !errors.Is(err, context.Canceled) || out.Records != 9*(i+1) || !out.Saved || out.Resumed != (i > 0) {
				t.Fatalf("%+v, %v", out, err)
			}
			if readFile(t, name) != all[0] {
				t.Fatal("the previous export was replaced before the new export is complete")
			}
		}
		return name
	}
	complete := func(name string, opts transfer.ExportOptions, resumed bool) {
		t.Helper()
		out, err := transfer.ExportFile(context.Background(), store, name, opts)
		if err != nil || out.Resumed != resumed || out.Records != len(all) || !slices.Equal(sorted(readFile(t, name)), all) {
			t.Errorf("%+v, %v", out, err)
		}
		checkOnlyFile(t, name)
	}
	name := interrupted()
	for _, part := range []string{name, name + ".part"} {
		if _, err := transfer.ImportFile(context.Background(), store, part, transfer.ImportOptions{}); err == nil || !strings.Contains(err.Error(), "unfinished") {
			t.Errorf("import of %s: %v", part, err)
		}
	}
	if _, err := transfer.ExportFile(context.Background(), store, name, transfer.ExportOptions{}); err == nil || !strings.Contains(err.Error(), "continue with -overwrite") {
		t.Errorf("without -overwrite: %v", err)
	}
	complete(name, replacing, true)

	// An export that cannot continue starts again.
	complete(interrupted(), transfer.ExportOptions{Segments: 2, Overwrite: true}, false)
	name = interrupted()
	writeFile(t, name+".progress", "{")
	complete(name, replacing, false)

	// An export that started without Overwrite does not continue with Overwrite.
	name, _ = newInterruptedExport(t, db, store, 1)
	complete(name, replacing, false)
}

// An export that is killed before it removes the progress file is complete.
func TestExportFileKilledBeforeLastStep(t *testing.T) {
	_, records := storetest.SampleDataset(t)
	db := embedded.New().Client()
	store := sampleStore(t, db)
	name, side := newInterruptedExport(t, db, store, 1)
	if _, err := transfer.ExportFile(context.Background(), store, name, transfer.ExportOptions{}); err != nil {
		t.Fatal(err)
	}
	whole := readFile(t, name)
	id, err := store.TableID(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, side, fmt.Sprintf(`{"table": %q, "segments": [{"done": true}], "records": %d, "bytes": %d}`, id, records, len(whole)))
	out, err := transfer.ExportFile(context.Background(), failingAfter(t, db, store, 0), name, transfer.ExportOptions{})
	if err != nil || out.Records != records || readFile(t, name) != whole {
		t.Errorf("%+v, %v", out, err)
	}
	checkOnlyFile(t, name)
}

// A symbolic link remains: its target is replaced.
func TestExportFileThroughSymlink(t *testing.T) {
	_, records := storetest.SampleDataset(t)
	store := sampleStore(t, embedded.New().Client())
	name, link := filepath.Join(t.TempDir(), "shop.jsonl"), filepath.Join(t.TempDir(), "link")
	writeFile(t, name, "old")
	if err := os.Symlink(name, link); err != nil {
		t.Fatal(err)
	}
	if _, err := transfer.ExportFile(context.Background(), store, link, transfer.ExportOptions{Overwrite: true}); err != nil || len(sorted(readFile(t, name))) != records {
		t.Error(err)
	}
	checkOnlyFile(t, name)
	checkOnlyFile(t, link)
}

// If progress cannot be saved, the error names the progress file, and Saved is false.
func TestExportFileWithoutSavedProgress(t *testing.T) {
	db := embedded.New().Client()
	store := sampleStore(t, db)
	name := filepath.Join(t.TempDir(), "shop.jsonl")
	out, err := transfer.ExportFile(context.Background(), interceptedStore(t, db, store, func() error {
		// A file cannot replace a directory that is not empty.
		os.Remove(name + ".progress")
		return os.MkdirAll(filepath.Join(name+".progress", "x"), 0o700)
	}), name, transfer.ExportOptions{Segments: 1, Clock: fastClock()})
	if failed := (*transfer.SaveError)(nil); !errors.As(err, &failed) || out.Saved || !strings.Contains(err.Error(), name+".progress: ") || strings.Contains(err.Error(), ".new") || strings.Contains(err.Error(), "\n") {
		t.Errorf("%+v, %v", out, err)
	}
}

// An import that fails at the first line leaves no progress file.
func TestImportFileFailsAtFirstLine(t *testing.T) {
	db := embedded.New().Client()
	store := newTable(t, db)
	name := filepath.Join(t.TempDir(), "shop.jsonl")
	for text, message := range map[string]string{
		"no JSON\n":              "line 1",
		"\x1f\x8b\x08\x00\x00":   "gunzip -c FILE | ordergraph import -",
		"{\n \"employees\": [\n": "ordergraph seed FILE",
	} {
		writeFile(t, name, text)
		if in, err := transfer.ImportFile(context.Background(), store, name, transfer.ImportOptions{Clock: fastClock()}); err == nil || !strings.Contains(err.Error(), message) || in.Lines > 0 || in.Saved {
			t.Errorf("result %+v, %v", in, err)
		}
		checkOnlyFile(t, name)
		if in, err := transfer.Import(context.Background(), store, strings.NewReader(text), transfer.ImportOptions{SkipUnreadable: true}); message != "line 1" && (err == nil || !strings.Contains(err.Error(), message)) {
			t.Errorf("result %+v, %v", in, err)
		}
	}
}

// A dry run reports the file's size.
func TestDryRunReportsSize(t *testing.T) {
	db := embedded.New().Client()
	text := strings.Join(exportedLines(t, sampleStore(t, db)), "")
	name := filepath.Join(t.TempDir(), "shop.jsonl")
	writeFile(t, name, text)
	reports := 0
	_, err := transfer.ImportFile(context.Background(), newTable(t, db), name, transfer.ImportOptions{DryRun: true, Clock: fastClock(), Progress: func(_ bulk.ImportResult, size int64) {
		if reports++; size != int64(len(text)) {
			t.Fatalf("the reported size is %d, want the size of the file", size)
		}
	}})
	if err != nil || reports == 0 {
		t.Error(reports, err)
	}
}

// An import that stopped at an unreadable line can skip that line, and its result includes the
// line.
func TestImportFileSkipsUnreadableLine(t *testing.T) {
	db := embedded.New().Client()
	all := exportedLines(t, sampleStore(t, db))
	store := newTable(t, db)
	name := filepath.Join(t.TempDir(), "shop.jsonl")
	writeFile(t, name, strings.Join(all[:50], "")+"bad\n"+strings.Join(all[50:], ""))
	if in, err := transfer.ImportFile(context.Background(), store, name, transfer.ImportOptions{}); err == nil || in.Lines != 50 || !in.Saved {
		t.Fatalf("result %+v, %v", in, err)
	}
	skipping := transfer.ImportOptions{SkipUnreadable: true, Clock: fastClock()}
	if in, err := transfer.ImportFile(context.Background(), failingAfter(t, db, store, 20), name, skipping); !errors.Is(err, context.Canceled) || in.Unreadable != 1 {
		t.Fatalf("result %+v, %v", in, err)
	}
	in, err := transfer.ImportFile(context.Background(), store, name, skipping)
	if err != nil || in.Written+in.Unchanged != len(all) || in.Unreadable != 1 || len(in.BadLines) != 1 || in.BadLines[0].Line != 51 {
		t.Errorf("result %+v, %v", in, err)
	}
	checkOnlyFile(t, name)
}
