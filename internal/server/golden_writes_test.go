package server_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"golang.org/x/tools/txtar"

	"github.com/ordergraph/ordergraph/internal/test/golden"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
	"github.com/ordergraph/ordergraph/internal/test/workload"
)

// On both engines, every mutation of testdata/golden-writes has the same response, makes the same
// DynamoDB requests and leaves the same records. The mutations of setup.graphql precede each, one
// per second.
func TestGoldenMutations(t *testing.T) {
	names, err := filepath.Glob("testdata/golden-writes/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		for _, name := range names {
			t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
				checkGoldenWrite(t, newFixture(t, db, smallDataset(t)), name)
			})
		}
	})
	for mutation := range workload.PayloadRecordFields {
		if !slices.ContainsFunc(names, func(name string) bool { return shows(t, name, mutation) }) {
			t.Errorf("no golden file shows %s", mutation)
		}
	}
}

// shows reports whether the query of a golden file contains a mutation.
func shows(t *testing.T, name, mutation string) bool {
	archive, err := txtar.ParseFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(archive.Files, func(f txtar.File) bool {
		return f.Name == "query.graphql" && strings.Contains(string(f.Data), " "+mutation+"(")
	})
}

// write returns the explain output of a mutation. The mutation's own reads and writes are in their
// order. The reads of the payload are sorted, because they run concurrently.
func (e explained) write() string {
	lines := strings.SplitAfter(e.String(), "\n")
	wrote := 1 + slices.IndexFunc(lines, func(line string) bool { return strings.Contains(line, "TransactWriteItems") })
	payload := lines[wrote : len(lines)-2]
	for i, line := range payload {
		_, payload[i], _ = strings.Cut(line, ". ")
	}
	slices.Sort(payload)
	return strings.Join(lines[:wrote], "") + strings.Join(payload, "") +
		fmt.Sprintf("%d requests, %v read units, %v write units, $%v per million\n", e.Totals.Requests, e.Totals.ReadUnits, e.Totals.WriteUnits, e.Totals.DollarsPerMillion)
}

func checkGoldenWrite(t *testing.T, s *fixture, name string) {
	golden.CheckFile(t, name, string(txtar.Format(runGoldenWrite(t, s, name))))
}

// runGoldenWrite runs the mutations of a golden file, and returns the file with the results.
func runGoldenWrite(t *testing.T, s *fixture, name string) *txtar.Archive {
	archive, err := txtar.ParseFile(name)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, f := range archive.Files {
		files[f.Name] = string(f.Data)
	}
	for _, line := range strings.Split(strings.TrimSpace(files["setup.graphql"]), "\n") {
		if line == "" {
			continue
		}
		got := s.ask(t, line, nil)
		if len(got.Errors) > 0 || strings.Contains(string(got.Data), `"code"`) {
			t.Fatalf("%s: %s %+v", line, got.Data, got.Errors)
		}
		s.clock.pass(time.Second)
	}
	before := s.records(t)
	got := s.ask(t, files["query.graphql"], nil)
	response := map[string]any{"data": got.Data}
	if len(got.Errors) > 0 {
		response["errors"] = got.Errors
	}
	pretty, err := json.MarshalIndent(response, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	setFile(archive, "response.json", string(pretty)+"\n")
	setFile(archive, "explain.txt", got.Extensions.Explain.write())
	setFile(archive, "records.txt", changes(before, s.records(t)))
	return archive
}
