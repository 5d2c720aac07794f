package storetest

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/bulk"
)

// Export exports the records of the store's table, except its layout, and returns the lines in sorted
// order.
func Export(t testing.TB, store *dynamo.Store, segments int) []string {
	t.Helper()
	return slices.DeleteFunc(ExportWithLayout(t, store, segments), func(line string) bool { return strings.Contains(line, `"pk":{"S":"LAYOUT"}`) })
}

// ExportWithLayout exports the records of the store's table and returns the lines in sorted order.
func ExportWithLayout(t testing.TB, store *dynamo.Store, segments int) []string {
	t.Helper()
	var text bytes.Buffer
	err := store.Export(t.Context(), make([]bulk.SegmentProgress, segments), func(page bulk.ExportPage) error {
		if n := bytes.Count(page.Lines, []byte("\n")); n != page.Records {
			t.Errorf("a page with %d records has %d lines, want one line per record", page.Records, n)
		}
		text.Write(page.Lines)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return slices.Sorted(strings.Lines(text.String()))
}

// Import imports lines into the store's table and returns the result. If the import ends before the
// last line, Import fails the test.
func Import(t testing.TB, store *dynamo.Store, lines string, opts bulk.ImportOptions) bulk.ImportResult {
	t.Helper()
	imported, err := store.Import(t.Context(), strings.NewReader(lines), opts)
	if err != nil {
		t.Fatal(err)
	}
	if imported.Offset != opts.From.Offset+int64(len(lines)) {
		t.Errorf("the import ended at offset %d, want %d", imported.Offset, opts.From.Offset+int64(len(lines)))
	}
	return imported
}
