package embedded_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"go.etcd.io/bbolt"

	"github.com/ordergraph/ordergraph/embedded"
)

// A file that is opened again has its tables, items, indexes and settings.
func TestReopen(t *testing.T) {
	t.Parallel()
	path, now := filepath.Join(t.TempDir(), "store.db"), newClock()
	s := open(t, path, now.Now)
	createTable(t, s, "items", withIndex, withStream(types.StreamViewTypeKeysOnly), func(in *dynamodb.CreateTableInput) {
		in.DeletionProtectionEnabled, in.TableClass = aws.Bool(true), types.TableClassStandardInfrequentAccess
	})
	createTable(t, s, "others")
	if err := setExpiry(t, s, "ends", true); err != nil {
		t.Fatal(err)
	}
	want := allTypes("a")
	want["group"], want["rank"] = &types.AttributeValueMemberS{Value: "g"}, &types.AttributeValueMemberN{Value: "1"}
	putItem(t, s, want)
	putItem(t, s, newItem("b", "group", "g", "rank", 2))
	deleteItem(t, s, "b")
	describeTables := func(s *embedded.Store) (all []*types.TableDescription) {
		t.Helper()
		for _, name := range []string{"items", "others"} {
			out, err := s.Client().DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &name})
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, out.Table)
		}
		return all
	}
	before := describeTables(s)
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = open(t, path, now.Now)
	}
	if got := readItem(t, s, "items", "a"); !reflect.DeepEqual(got, want) {
		t.Errorf("the item is %v, want %v", keysOf(got), keysOf(want))
	}
	if got := queryGroup(t, s, "g"); !slices.Equal(got, []string{"a"}) {
		t.Errorf("the index has the items %q", got)
	}
	if got := describeTables(s); !reflect.DeepEqual(got, before) || *got[0].ItemCount != 1 || !*got[0].DeletionProtectionEnabled {
		t.Errorf("the tables are %+v, want %+v", got, before)
	}
	createTable(t, s, "third")
	putItem(t, s, newItem("c"))
	if got := scanKeys(t, s, "third", ""); len(got) != 0 {
		t.Errorf("a table created after reopening has the items %q", got)
	}
	if err := s.Verify(); err != nil {
		t.Error(err)
	}
}

// A file can be opened once. The second Open fails soon and leaves the first store alone.
func TestOpenTwice(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "store.db")
	s := open(t, path, nil)
	createTable(t, s, "items")
	before := time.Now()
	_, err := embedded.Open(path, embedded.Options{})
	if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "another process has opened the file") {
		t.Errorf("the second Open returned %v", err)
	}
	if took := time.Since(before); took > 3*time.Second {
		t.Errorf("the second Open took %v", took)
	}
	putItem(t, s, newItem("a"))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if readItem(t, open(t, path, nil), "items", "a") == nil {
		t.Error("the item is missing")
	}
}

// After Close, requests fail and change nothing.
func TestClosed(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "store.db")
	s := open(t, path, nil)
	createTable(t, s, "items")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if got := errorCode(put(s, newItem("a"))(t.Context())); got != "InternalServerError" {
		t.Errorf("PutItem returned %q, want InternalServerError", got)
	}
	_, err := s.Client().Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String("items")})
	if got := errorCode(err); got != "InternalServerError" {
		t.Errorf("Scan returned %q, want InternalServerError", got)
	}
}

// Open refuses files that are not stores, and does not change them.
func TestOpenOtherFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	// database writes a file with bbolt.
	database := func(name string, fill func(*bbolt.Tx) error) string {
		path := filepath.Join(dir, name)
		db, err := bbolt.Open(path, 0o600, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := db.Update(fill); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		return path
	}
	s := open(t, filepath.Join(dir, "store"), nil)
	createTable(t, s, "items")
	for n := range 5 {
		putItem(t, s, newItem(fmt.Sprint(n), "v", strings.Repeat("x", 20_000)))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	store, err := os.ReadFile(filepath.Join(dir, "store"))
	if err != nil {
		t.Fatal(err)
	}
	damaged := slices.Clone(store)
	for _, page := range []int{0, os.Getpagesize()} {
		copy(damaged[page+16:], make([]byte, 64)) // the two copies of the file's header
	}
	invalid := slices.Clone(store)
	clear(invalid[2*os.Getpagesize():])
	version := func(version string) func(*bbolt.Tx) error {
		return func(tx *bbolt.Tx) error {
			b, err := tx.CreateBucket([]byte("format"))
			if err != nil {
				return err
			}
			return b.Put([]byte("version"), []byte(version))
		}
	}
	for _, c := range []struct{ name, path, want string }{
		{"text", write("text", []byte(strings.Repeat("not a store\n", 2000))), "the file is damaged"},
		{"a short text", write("short", []byte("x")), "the file is damaged"},
		{"zeros", write("zeros", make([]byte, 1<<20)), "the file is damaged"},
		{"a damaged header", write("damaged", damaged), "the file is damaged"},
		{"the first pages of a store", write("first", store[:4*os.Getpagesize()]), "the file is truncated"},
		{"a part of a store", write("part", store[:16*os.Getpagesize()]), "the file is truncated"},
		{"a store with invalid pages", write("invalid", invalid), "the file is damaged"},
		{"a directory", dir, "is a directory"},
		{"a missing directory", filepath.Join(dir, "missing", "store"), "no such file or directory"},
		{"an older format", database("older", version("1")), `format version "1", but this program supports only version "5"`},
		{"the previous format", database("previous", version("4")), "ordergraph upgrade-data"},
		{"a newer format", database("newer", version("6")), `format version "6", but this program supports only version "5"`},
		{"a database of another program", database("other", func(tx *bbolt.Tx) error {
			_, err := tx.CreateBucket([]byte("settings"))
			return err
		}), "not an embedded store"},
	} {
		before, _ := os.ReadFile(c.path)
		s, err := embedded.Open(c.path, embedded.Options{})
		if err == nil {
			t.Errorf("%s: Open succeeded", c.name)
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			continue
		}
		if !strings.Contains(err.Error(), c.path) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: Open returned %q, want %q with the path", c.name, err, c.want)
		}
		if after, _ := os.ReadFile(c.path); !bytes.Equal(before, after) {
			t.Errorf("%s: Open changed the file", c.name)
		}
		// The file is not locked.
		if _, again := embedded.Open(c.path, embedded.Options{}); again == nil || again.Error() != err.Error() {
			t.Errorf("%s: the second Open returned %v, want %v", c.name, again, err)
		}
	}
	if s := open(t, write("empty", nil), nil); s.Verify() != nil {
		t.Error("an empty file is not a valid store")
	}
	if s := open(t, write("copy", store), nil); len(scanKeys(t, s, "items", "")) != 5 {
		t.Error("a copy of a store does not have its items")
	}
}

// A store in memory is lost at its end. Two stores are independent.
func TestMemory(t *testing.T) {
	t.Parallel()
	a, b := embedded.New(), embedded.New()
	createTable(t, a, "items")
	createTable(t, b, "items")
	putItem(t, a, newItem("a"))
	if readItem(t, a, "items", "a") == nil || readItem(t, b, "items", "a") != nil {
		t.Error("two stores in memory share their items")
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
}
