//go:build unix

package embedded_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sys/unix"

	"github.com/ordergraph/ordergraph/embedded"
)

const (
	// fullFile is the environment variable with the path of the file that a child process fills.
	fullFile = "ORDERGRAPH_TEST_FULL_FILE"
	// fullBytes is the maximum size of the file. bbolt extends a file by 16 MB.
	fullBytes = 24 << 20
	// bigValue is a size that many free pages are needed for.
	bigValue = 380_000
)

// A write that does not fit in the file fails, and changes nothing. Reads, deletions and writes
// that fit go on. The file can be opened again.
func TestFullFile(t *testing.T) {
	if path := os.Getenv(fullFile); path != "" {
		fillFile(t, path)
		return
	}
	path := filepath.Join(t.TempDir(), "store.db")
	// The limit of a process cannot be raised again, so another process fills the file.
	child := exec.Command(os.Args[0], "-test.run=^TestFullFile$", "-test.v")
	child.Env = append(os.Environ(), fullFile+"="+path)
	output, err := child.CombinedOutput()
	if err != nil {
		t.Fatalf("the child process failed: %v\n%s", err, output)
	}
	_, line, _ := strings.Cut(string(output), "\nitems: ")
	want := map[string]int{}
	if err := json.NewDecoder(strings.NewReader(line)).Decode(&want); err != nil || len(want) == 0 {
		t.Fatalf("the child process reported no items: %v\n%s", err, output)
	}
	s := open(t, path, nil)
	if err := s.Verify(); err != nil {
		t.Errorf("the file is damaged: %v", err)
	}
	checkItems(t, s, want)
	putItem(t, s, newItem("after reopening", "v", strings.Repeat("x", bigValue)))
	for line := range bytes.Lines(output) {
		if bytes.Contains(line, []byte("full_unix_test.go")) {
			t.Logf("child: %s", bytes.TrimSpace(line))
		}
	}
}

// checkItems checks that the table "items" has items with values of a length, and no others.
func checkItems(t *testing.T, s *embedded.Store, want map[string]int) {
	t.Helper()
	keys := sortedKeys(t, s)
	for _, pk := range keys {
		if got, expected := len(text(readItem(t, s, "items", pk)["v"])), want[pk]; got != expected {
			t.Errorf("the item %q has a value of %d bytes, want %d", pk, got, expected)
		}
	}
	if len(keys) != len(want) || s.StoredEntries("items", "byGroup") != len(want) {
		t.Errorf("the table has %d items and %d index entries, want %d", len(keys), s.StoredEntries("items", "byGroup"), len(want))
	}
}

// fillFile fills a file up to the limit, and prints the items that it has written.
func fillFile(t *testing.T, path string) {
	signal.Ignore(syscall.SIGXFSZ)
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: fullBytes, Max: fullBytes}); err != nil {
		t.Fatal(err)
	}
	s := open(t, path, nil)
	createTable(t, s, "items", withIndex, withStream(types.StreamViewTypeKeysOnly))
	written := map[string]int{}
	next := recordChanges(t, s, "items")
	var mu sync.Mutex
	// write writes an item and reports whether it fits.
	write := func(pk string, size int) bool {
		err := put(s, newItem(pk, "v", strings.Repeat("x", size), "group", "g", "rank", size))(t.Context())
		if code := errorCode(err); code != "" && (code != "InternalServerError" || !strings.Contains(err.Error(), "nothing was written")) {
			t.Errorf("a write of %d bytes returned %v, want InternalServerError", size, err)
		}
		mu.Lock()
		defer mu.Unlock()
		if err == nil {
			written[pk] = size
		}
		return err == nil
	}
	// fill writes items of a size concurrently until one does not fit.
	fill := func(name string, size, writers int) {
		t.Helper()
		before := len(written)
		var wg sync.WaitGroup
		for w := range writers {
			wg.Go(func() {
				n := 0
				for write(fmt.Sprintf("%s-%d-%d", name, w, n), size) {
					n++
				}
			})
		}
		wg.Wait()
		t.Logf("%d items of %d bytes were written", len(written)-before, size)
		checkItems(t, s, written)
		if got := len(next()); got != len(written)-before {
			t.Errorf("%d changes were observed, want %d", got, len(written)-before)
		}
	}
	fill("medium", 20_000, 8)
	if len(written) < 300 {
		t.Fatalf("only %d items fit in the file", len(written))
	}
	fill("big", bigValue, 2)
	small := 0
	for n := range 10 {
		if write(fmt.Sprint("small-", n), 10) {
			small++
		}
	}
	if t.Logf("%d of 10 small items were written", small); small == 0 {
		t.Error("no small item fits in the full file")
	}
	// remove deletes items and returns how many deletions fit.
	remove := func(keys []string) (deleted int) {
		for _, pk := range keys {
			_, err := s.Client().DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: aws.String("items"), Key: newItem(pk)})
			if code := errorCode(err); code == "" {
				delete(written, pk)
				deleted++
			} else if code != "InternalServerError" {
				t.Errorf("a deletion returned %v", err)
			}
		}
		return deleted
	}
	deleted := remove(slices.Collect(maps.Keys(written))[:100])
	t.Logf("%d of 100 items were deleted from the full file", deleted)
	if deleted < 50 {
		t.Errorf("only %d of 100 deletions succeeded in the full file", deleted)
	}
	next()
	fill("again", 20_000, 1)
	if written["again-0-10"] == 0 {
		t.Error("items do not fit in the space of deleted items")
	}
	fill("tiny", 500, 8)
	checkItems(t, s, written)
	if err := s.Verify(); err != nil {
		t.Errorf("the file is damaged: %v", err)
	}
	if got, want := s.StoredRecords(newStreams(t, s).arn), len(written)+2*deleted; got != want {
		t.Errorf("the stream has %d records, want %d", got, want)
	}
	report, err := json.Marshal(written)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("\nitems: %s\n", report)
}
