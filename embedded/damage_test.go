package embedded_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/embedded"
	"github.com/ordergraph/ordergraph/embedded/internal/file"
	"github.com/ordergraph/ordergraph/internal/test/longtest"
)

// storeContent returns everything that clients can read from the table "items".
func storeContent(t *testing.T, s *embedded.Store) (content []any, err error) {
	t.Helper()
	db := s.Client()
	for n := range 60 {
		out, err := db.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("items"), Key: newItem(fmt.Sprint(n))})
		if err != nil {
			return nil, err
		}
		content = append(content, out.Item)
	}
	for _, index := range []*string{nil, aws.String("byGroup")} {
		out, err := db.Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String("items"), IndexName: index})
		if err != nil {
			return nil, err
		}
		content = append(content, out.Items)
	}
	out, err := db.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String("items")})
	if err != nil {
		return nil, err
	}
	return append(content, *out.Table.ItemCount, *out.Table.TableSizeBytes, out.Table.LatestStreamArn), nil
}

// writeStore writes a file with items of several sizes, so that the file has pages of every kind.
func writeStore(t *testing.T) (path string, content []any) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "store.db")
	s := open(t, path, nil)
	createTable(t, s, "items", withIndex, withStream(types.StreamViewTypeNewAndOldImages))
	for n := range 60 {
		putItem(t, s, newItem(fmt.Sprint(n), "group", strings.Repeat("g", n+1), "rank", n, "v", strings.Repeat("x", n*n*3)))
	}
	for n := range 10 {
		deleteItem(t, s, fmt.Sprint(n*5))
	}
	content, err := storeContent(t, s)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return path, content
}

// If one bit of a file is wrong, the store either does not open, or has the right content.
func TestFlippedBits(t *testing.T) {
	t.Parallel()
	path, want := writeStore(t)
	original, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	end := 0
	for i, b := range original {
		if b != 0 {
			end = i + 1
		}
	}
	source := rand.New(rand.NewPCG(1, 2))
	refused := 0
	for range longtest.Size(100, 1000) {
		bit := source.IntN(end * 8)
		original[bit/8] ^= 1 << (bit % 8)
		if err := os.WriteFile(path, original, 0o600); err != nil {
			t.Fatal(err)
		}
		original[bit/8] ^= 1 << (bit % 8)
		s, err := embedded.Open(path, embedded.Options{})
		if err != nil {
			if refused++; !strings.Contains(err.Error(), "damaged") && !strings.Contains(err.Error(), "format version") && !errors.Is(err, file.ErrOldFormat) {
				t.Errorf("bit %d of byte %d is wrong: Open returned %v, want an error about the damaged file", bit%8, bit/8, err)
			}
			continue
		}
		content, err := storeContent(t, s)
		if err == nil && !reflect.DeepEqual(content, want) {
			t.Errorf("bit %d of byte %d is wrong: the store returns wrong items", bit%8, bit/8)
		}
		if err != nil && !strings.Contains(err.Error(), "damaged") {
			t.Errorf("bit %d of byte %d is wrong: a read returned %v", bit%8, bit/8, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if t.Logf("%d files were refused", refused); refused == 0 {
		t.Error("no file was refused")
	}
}

// The names of buckets have no checksums, but a store with a wrong name does not open.
func TestFlippedBucketNames(t *testing.T) {
	t.Parallel()
	path, content := writeStore(t)
	streamARN := *content[len(content)-1].(*string)
	original, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	accepted := 0
	for _, name := range []string{"format", "tables", "streams", "tokens", "table-1", "items", "expiry", "index-byGroup", "records", streamARN} {
		// Old pages can contain the names too, so not every flipped bit has an effect.
		refused := 0
		for at, found := 0, 0; found >= 0; at += found + 1 {
			if found = strings.Index(string(original[at:]), name); found < 0 {
				break
			}
			for bit := range longtest.Size(1, 8) {
				i := at + found + (at+bit)%len(name)
				original[i] ^= 1 << bit
				if err := os.WriteFile(path, original, 0o600); err != nil {
					t.Fatal(err)
				}
				original[i] ^= 1 << bit
				s, err := embedded.Open(path, embedded.Options{Verify: true})
				if err == nil {
					accepted++
					if _, err := storeContent(t, s); err != nil {
						t.Errorf("bit %d of byte %d is wrong, which belongs to the name %s: a read returned %v", bit, i, name, err)
					}
					if err := s.Close(); err != nil {
						t.Error(err)
					}
					continue
				}
				if refused++; !strings.Contains(err.Error(), "damaged") {
					t.Errorf("bit %d of byte %d is wrong, which belongs to the name %s: Open returned %v, want an error about the damaged file", bit, i, name, err)
				}
			}
		}
		if refused == 0 {
			t.Errorf("no wrong name instead of %q was refused", name)
		}
	}
	t.Logf("%d flipped bits were in pages that are free", accepted)
}

// The keys in branch pages have no checksums. A store with a wrong key does not open, even if the
// keys remain in order: the next write would damage the file.
func TestFlippedBranchKeys(t *testing.T) {
	t.Parallel()
	path, _ := writeStore(t)
	original, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	size, refused := os.Getpagesize(), 0
	for page := 0; page < len(original); page += size {
		b := original[page : page+size]
		const header, element, branch = 16, 16, 1
		count := int(binary.NativeEndian.Uint16(b[10:]))
		if binary.NativeEndian.Uint64(b) != uint64(page/size) || binary.NativeEndian.Uint16(b[8:]) != branch || count == 0 {
			continue
		}
		last := b[header+(count-1)*element:]
		end := header + (count-1)*element + int(binary.NativeEndian.Uint32(last)+binary.NativeEndian.Uint32(last[4:]))
		for i := header + count*element; i < end; i += longtest.Size(7, 1) {
			b[i] ^= 1
			if err := os.WriteFile(path, original, 0o600); err != nil {
				t.Fatal(err)
			}
			b[i] ^= 1
			s, err := embedded.Open(path, embedded.Options{Verify: true})
			if err != nil {
				if refused++; !strings.Contains(err.Error(), "damaged") {
					t.Errorf("a bit of byte %d is wrong: Open returned %v, want an error about the damaged file", page+i, err)
				}
				continue
			}
			for n := range 60 { // the page is free
				putItem(t, s, newItem(fmt.Sprint(n), "group", "h", "v", strings.Repeat("y", n*n*2)))
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			if s, err = embedded.Open(path, embedded.Options{Verify: true}); err != nil {
				t.Fatalf("a bit of byte %d was wrong: after some writes, Open returned %v", page+i, err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	if refused == 0 {
		t.Error("no file was refused")
	}
}

// If a value changes in a file that is open, reads of this value fail, and other reads succeed.
func TestDamageWhileOpen(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "store.db")
	s := open(t, path, nil)
	createTable(t, s, "items", withIndex)
	putItem(t, s, newItem("good", "group", "g", "rank", 1))
	putItem(t, s, newItem("bad", "group", "g", "rank", 2, "v", "a rare value"))
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for at, found := 0, 0; found >= 0; at += found + 1 {
		if found = strings.Index(string(content[at:]), "a rare value"); found >= 0 {
			if _, err := f.WriteAt([]byte("A"), int64(at+found)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if readItem(t, s, "items", "good") == nil {
		t.Error("the item beside the damaged item is missing")
	}
	_, err = s.Client().GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("items"), Key: newItem("bad")})
	if err == nil || !strings.Contains(err.Error(), "the file is damaged") {
		t.Errorf("GetItem returned %v, want an error about the damaged file", err)
	}
	err = put(s, newItem("bad", "v", "new"))(t.Context())
	if err == nil || !strings.Contains(err.Error(), "the file is damaged") {
		t.Errorf("PutItem returned %v, want an error about the damaged file", err)
	}
	putItem(t, s, newItem("another"))
	if err := s.Verify(); err == nil {
		t.Error("Verify found no damage")
	}
}
