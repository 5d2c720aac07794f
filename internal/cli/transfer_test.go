package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/internal/cli"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// runWithInput runs a command line with the given standard input.
func runWithInput(t *testing.T, line, stdin string, variables ...string) (status int, stdout, stderr string) {
	t.Helper()
	var stdoutText, stderrText bytes.Buffer
	status = cli.Run(t.Context(), strings.Fields(line), cli.Environment{Stdin: strings.NewReader(stdin), Stdout: &stdoutText, Stderr: &stderrText, Getenv: func(name string) string {
		for _, v := range variables {
			if value, ok := strings.CutPrefix(v, name+"="); ok {
				return value
			}
		}
		return ""
	}})
	return status, stdoutText.String(), stderrText.String()
}

func TestExportAndImport(t *testing.T) {
	_, n := storetest.SampleDataset(t)
	db, table, variables := newTestTable(t)
	run(t, "table create", variables...).checkSucceeded(t)
	run(t, "seed", variables...).checkSucceeded(t)
	file := filepath.Join(t.TempDir(), "shop.jsonl")
	run(t, "export "+file, variables...).checkSucceeded(t, "Exported from table "+table, fmt.Sprint(n+1, " records")) // with the layout of the table
	run(t, "export "+file, variables...).checkFailed(t, 1, file, "already exists", "-overwrite")
	run(t, "export -segments 7 -overwrite "+file, variables...).checkSucceeded(t, fmt.Sprint(n+1, " records"))
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}

	// The second table has another number of shards and the same content. The import does not read the
	// layout and the order counts by status, but counts the imported orders.
	const counts = model.OrderCountParts
	imported := n - counts
	skipped := fmt.Sprint("; ", counts+1, " records skipped.")
	second := []string{useDynamoDB, noAuth, "ORDERGRAPH_TABLE=" + table + ".second", "ORDERGRAPH_SHARDS=4"}
	run(t, "import "+file, second...).checkFailed(t, 1, "does not exist", "table create")
	run(t, "table create", second...).checkSucceeded(t)
	t.Cleanup(func() { deleteTable(t, db, table+".second") })
	run(t, "import -dry-run "+file, second...).checkSucceeded(t, "dry run", "wrote nothing", fmt.Sprint(imported, " records written"), "0 conflicts")
	if records := tableRecords(t, db, table+".second"); len(records) > 0 {
		t.Errorf("a dry run wrote %d records", len(records))
	}
	run(t, "import "+file, second...).checkSucceeded(t, fmt.Sprint("Imported into table ", table, ".second: ", imported, " records written, 0 replaced, 0 unchanged, 0 conflicts", skipped))
	once := tableRecords(t, db, table+".second")
	run(t, "import "+file, second...).checkSucceeded(t, fmt.Sprint("0 records written, 0 replaced, ", imported, " unchanged, 0 conflicts", skipped))
	run(t, "import -overwrite "+file, second...).checkSucceeded(t, fmt.Sprint("0 records written, 0 replaced, ", imported, " unchanged, 0 conflicts", skipped))
	if !reflect.DeepEqual(once, tableRecords(t, db, table+".second")) {
		t.Error("importing a second time changed the table")
	}
	run(t, "table describe", second...).checkSucceeded(t, "fits     yes")
	_, base := serve(t, "-addr 127.0.0.1:0", second...)
	askFirstQuery(t, base)

	// Export and import through pipes.
	status, stdout, stderr := runWithInput(t, "export -", "", second...)
	if status != 0 || strings.Count(stdout, "\n") != imported+4*counts+1 || !strings.Contains(stderr, fmt.Sprint(imported+4*counts+1, " records")) {
		t.Errorf("export -: exit %d, %d lines, stderr %s", status, strings.Count(stdout, "\n"), stderr)
	}
	run(t, "seed", variables...).checkSucceeded(t)
	if status, report, stderr := runWithInput(t, "import -", stdout, variables...); status != 0 || !strings.Contains(report, fmt.Sprint(imported, " unchanged")) || stderr != "" {
		t.Errorf("import -: exit %d, %s%s", status, report, stderr)
	}

	// Conflicts are kept, listed and counted, until -overwrite replaces them.
	var changed strings.Builder
	var keys []string
	for line := range strings.Lines(string(text)) {
		var r struct{ Item map[string]any }
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		if pk := r.Item["pk"].(map[string]any)["S"]; len(keys) < 25 && pk != "ORDER_COUNTS" && pk != "LAYOUT" {
			keys = append(keys, fmt.Sprint("conflict  ", r.Item["pk"].(map[string]any)["S"], " ", r.Item["sk"].(map[string]any)["S"]))
			r.Item["note"] = map[string]string{"S": "changed"}
		}
		again, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		changed.Write(append(again, '\n'))
	}
	if err := os.WriteFile(file, []byte(changed.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	c := run(t, "import "+file, second...)
	if want := strings.Join(keys[:20], "\n") + "\nand 5 more\n"; c.status != 1 || !strings.HasSuffix(c.stdout.String(), fmt.Sprint(imported-25, " unchanged, 25 conflicts", skipped, "\n")+want) || !strings.Contains(c.stderr.String(), "25 records") || !strings.Contains(c.stderr.String(), "-overwrite") {
		t.Errorf("exit %d, stdout %s, stderr %s", c.status, c.stdout.String(), c.stderr.String())
	}
	if !reflect.DeepEqual(once, tableRecords(t, db, table+".second")) {
		t.Error("an import with conflicts changed the table")
	}
	run(t, "import -overwrite "+file, second...).checkSucceeded(t, fmt.Sprintf("0 records written, 25 replaced, %d unchanged, 0 conflicts%s", imported-25, skipped))
	if reflect.DeepEqual(once, tableRecords(t, db, table+".second")) {
		t.Error("-overwrite replaced nothing")
	}
}

func TestImportInvalidFile(t *testing.T) {
	db, table, variables := newTestTable(t)
	run(t, "table create", variables...).checkSucceeded(t)
	file := filepath.Join(t.TempDir(), "shop.jsonl")
	good := `{"Item":{"pk":{"S":"a"},"sk":{"S":"b"}}}` + "\n"
	for _, bad := range []string{good + `{"Item":{"pk":{"S":"c"}`, good + "\n" + good} {
		if err := os.WriteFile(file, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(bad, good+"\n"+good) {
			run(t, "import "+file, variables...).checkSucceeded(t, "1 records written", "1 unchanged")
			continue
		}
		if c := run(t, "import -dry-run "+file, variables...); c.status != 1 || !strings.Contains(c.stdout.String(), "unreadable  line 2: the line is not JSON") || !strings.Contains(c.stderr.String(), "1 lines of "+file) || !strings.Contains(c.stderr.String(), "-skip-unreadable") {
			t.Errorf("exit %d, %s%s", c.status, c.stdout.String(), c.stderr.String())
		}
		if records := tableRecords(t, db, table); len(records) != 0 {
			t.Errorf("the dry run wrote %d records", len(records))
		}
		run(t, "import "+file, variables...).checkFailed(t, 1, file, "line 2", "not JSON", "all lines before this line are imported, and some later lines may be imported, too: fix the line")
		if records := tableRecords(t, db, table); len(records) != 1 {
			t.Errorf("the table has %d records", len(records))
		}
	}
	run(t, "import /nowhere/shop.jsonl", variables...).checkFailed(t, 1, "/nowhere/shop.jsonl", "no such file")
	run(t, "export /nowhere/shop.jsonl", variables...).checkFailed(t, 1, "/nowhere/shop.jsonl", "no such file")
}

// newInterrupter returns a function that runs a command and interrupts it at the given request of
// an operation.
func newInterrupter(t *testing.T, variables []string) func(line, request string, after int64) *command {
	t.Helper()
	engine, err := url.Parse(endpoint(t))
	if err != nil {
		t.Fatal(err)
	}
	// A proxy between commands and DynamoDB interrupts a command at a request.
	type trap struct {
		interrupt func()
		at        string
		left      atomic.Int64
	}
	var set atomic.Pointer[trap]
	engineProxy := httputil.NewSingleHostReverseProxy(engine)
	engineProxy.ErrorLog = log.New(io.Discard, "", 0) // canceled requests log errors
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if trap := set.Load(); trap != nil && strings.HasSuffix(r.Header.Get("X-Amz-Target"), trap.at) && trap.left.Add(-1) == 0 {
			trap.interrupt()
			panic(http.ErrAbortHandler) // no response
		}
		engineProxy.ServeHTTP(w, r)
	}))
	t.Cleanup(proxy.Close)
	setEndpoint(t, proxy.URL)
	return func(line, request string, after int64) *command {
		t.Helper()
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		armed := &trap{interrupt: stop, at: request}
		armed.left.Store(after)
		set.Store(armed)
		c := start(ctx, line, variables...)
		<-c.done
		return c
	}
}

// After a signal, the same command continues.
func TestInterruptedExportAndImport(t *testing.T) {
	_, n := storetest.SampleDataset(t)
	_, table, variables := newTestTable(t)
	run(t, "table create", variables...).checkSucceeded(t)
	run(t, "seed", variables...).checkSucceeded(t)
	interrupted := newInterrupter(t, variables)

	dir := t.TempDir()
	file := filepath.Join(dir, "shop.jsonl")
	files := func() []string {
		t.Helper()
		entries, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil {
			t.Fatal(err)
		}
		return entries
	}
	interrupted("export -segments 2 "+file, ".Scan", 2).checkFailed(t, 1, "export: interrupted after", "same command again")
	if got := files(); !slices.Equal(got, []string{file + ".part", file + ".progress"}) {
		t.Errorf("it left %v", got)
	}
	run(t, "import "+file, variables...).checkFailed(t, 1, "is unfinished", file+".progress")
	run(t, "export "+file, variables...).checkSucceeded(t, fmt.Sprint(n+1, " records"), "including the records of the interrupted export that started at 20")
	if got := files(); !slices.Equal(got, []string{file}) {
		t.Errorf("it left %v", got)
	}

	// An interrupted -overwrite also continues, and the old file remains until the new one is
	// complete.
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	interrupted("export -overwrite -segments 2 "+file, ".Scan", 2).checkFailed(t, 1, "export: interrupted after", "same command again")
	if after, err := os.ReadFile(file); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the interrupted export changed the previous file: %v", err)
	}
	run(t, "import "+file, variables...).checkFailed(t, 1, "is unfinished", "remove "+file+".part")
	run(t, "export -overwrite -segments 2 "+file, variables...).checkSucceeded(t, fmt.Sprint(n+1, " records"), "including the records of the interrupted export")

	// A command without a progress file does not suggest continuing.
	for _, c := range []struct{ line, at string }{{"export -segments 1 -", ".Scan"}, {"import -dry-run " + file, ".GetItem"}, {"import " + file, ".Query"}} {
		if result := interrupted(c.line, c.at, 1); result.status != 1 || !strings.HasSuffix(result.stderr.String(), "interrupted after 0 records\n") && !strings.HasSuffix(result.stderr.String(), " lines\n") {
			t.Errorf("%s: exit %d, %s", c.line, result.status, result.stderr.String())
		}
	}
	if got := files(); !slices.Equal(got, []string{file}) {
		t.Errorf("it left %v", got)
	}

	stopped := interrupted("import "+file, ".PutItem", 60)
	for strings.HasSuffix(stopped.stderr.String(), "after 0 lines\n") {
		stopped = interrupted("import "+file, ".PutItem", 60) // the first line was the last to be imported
	}
	stopped.checkFailed(t, 1, "import: interrupted after", "same command again")
	if got := files(); !slices.Equal(got, []string{file, file + ".import-progress"}) {
		t.Errorf("it left %v", got)
	}
	run(t, "import "+file, variables...).checkSucceeded(t, "table "+table, "0 records written", fmt.Sprint(n, " unchanged"))
	if got := files(); !slices.Equal(got, []string{file}) {
		t.Errorf("it left %v", got)
	}
}

// A file that is not an export is rejected with the command to use, and without a progress file.
func TestImportOtherFiles(t *testing.T) {
	_, _, variables := newTestTable(t)
	run(t, "table create", variables...).checkSucceeded(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "shop.jsonl")
	for text, message := range map[string]string{
		"":                      "contains no records",
		"\n\n":                  "contains no records",
		"\x1f\x8b\x08\x00":      "is compressed: run `gunzip -c FILE | ordergraph import -`",
		smallDataset:            "ordergraph seed FILE",
		"{\"Item\": 1}\n":       "some later lines may be imported, too: fix the line",
		"{\"Other\": [1]}\n":    "line 1",
		"{\"Item\":{\"pk\":1}}": "line 1",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		run(t, "import "+file, variables...).checkFailed(t, 1, file, message)
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
			t.Errorf("%q left %v, %v", text, entries, err)
		}
	}
	for _, size := range []int{1, 10_000} { // the second line is longer than the reader's buffer
		line := `{"Item":{"pk":{"S":"a"},"sk":{"S":"b"},"v":{"S":"` + strings.Repeat("x", size) + `"}}}`
		if err := os.WriteFile(file, []byte(strings.Repeat(line+"\n", 2)), 0o600); err != nil {
			t.Fatal(err)
		}
		run(t, "seed "+file, variables...).checkFailed(t, 1, file, "ordergraph import FILE")
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, "seed "+file, variables...).checkFailed(t, 1, file, "is empty")
	if err := os.WriteFile(file, []byte("\x1f\x8b\x08\x00"), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, "seed "+file, variables...).checkFailed(t, 1, file, "is compressed")
}

// All records of a damaged table are restored from its export, except the damaged one, which is
// named.
func TestImportDamagedTable(t *testing.T) {
	_, n := storetest.SampleDataset(t)
	db, table, variables := newTestTable(t)
	run(t, "table create", variables...).checkSucceeded(t)
	run(t, "seed", variables...).checkSucceeded(t)
	_, err := db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: storetest.ItemKey("CUSTOMER#cust_01", "#METADATA")})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "shop.jsonl")
	run(t, "export "+file, variables...).checkSucceeded(t, fmt.Sprint(n+1, " records"))
	second := []string{useDynamoDB, noAuth, "ORDERGRAPH_TABLE=" + table + ".second"}
	run(t, "table create", second...).checkSucceeded(t)
	t.Cleanup(func() { deleteTable(t, db, table+".second") })
	run(t, "import "+file, second...).checkFailed(t, 1, "CUSTOMER#cust_01 #METADATA", "-skip-unreadable")
	for _, c := range []struct{ line, intro string }{{"import -dry-run ", "A dry run"}, {"import -skip-unreadable ", "Imported"}} {
		result := run(t, c.line+file, second...)
		if out := result.stdout.String(); result.status != 1 || !strings.HasPrefix(out, c.intro) || !strings.Contains(out, "; 1 unreadable lines skipped.\nunreadable  line ") || !strings.Contains(out, "CUSTOMER#cust_01 #METADATA") {
			t.Errorf("exit %d, %s%s", result.status, out, result.stderr.String())
		}
	}
	if records := tableRecords(t, db, table+".second"); len(records) != n-1 {
		t.Errorf("%d records were restored", len(records))
	}
}

func TestInterruptedSeedAndCreate(t *testing.T) {
	_, n := storetest.SampleDataset(t)
	db, table, variables := newTestTable(t)
	interrupted := newInterrupter(t, variables)
	interrupted("table create", ".DescribeTimeToLive", 1).checkFailed(t, 1, "table create: interrupted; run it again")
	run(t, "table create", variables...).checkSucceeded(t, table)
	interrupted("table describe", ".DescribeTimeToLive", 1).checkFailed(t, 1, "ordergraph: interrupted\n")
	interrupted("seed", ".Query", 1).checkFailed(t, 1, "seed: interrupted before anything was loaded")
	interrupted("seed", ".BatchWriteItem", 2).checkFailed(t, 1, "seed: interrupted: some records are loaded; run the same command again")
	run(t, "seed", variables...).checkSucceeded(t, "9 orders, 7 customers, 7 products")
	// If an order was loaded before, the set of loaded orders is unknown, and the orders are not
	// counted.
	if records := len(tableRecords(t, db, table)); records != n && records != n-model.OrderCountParts {
		t.Errorf("%d records are loaded, want %d", records, n)
	}
}

func TestNumberOfShardsIsCheckedBeforeAnImport(t *testing.T) {
	db, table, variables := newTestTable(t)
	run(t, "table create", variables...).checkSucceeded(t)
	run(t, "seed", variables...).checkSucceeded(t)
	storetest.DeleteLayout(t, db, table)
	file := filepath.Join(t.TempDir(), "shop.jsonl")
	run(t, "export "+file, variables...).checkSucceeded(t)
	run(t, "import "+file, append(slices.Clone(variables), "ORDERGRAPH_SHARDS=8")...).checkFailed(t, 1, "ORDERGRAPH_SHARDS=8")
}
