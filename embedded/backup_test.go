package embedded_test

import (
	"context"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/embedded"
	"github.com/ordergraph/ordergraph/internal/test/longtest"
)

// A backup during writes contains one state of the store: all items of a transaction have the same
// number, which is at least the number that was confirmed before the backup.
func TestBackupDuringWrites(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "s.db")
	s := open(t, path, nil)
	createTable(t, s, "items", withIndex)
	stop, err := s.ServeBackups()
	if err != nil {
		t.Fatal(err)
	}
	const items = 20
	write := func(number int) error {
		in := &dynamodb.TransactWriteItemsInput{}
		for i := range items {
			in.TransactItems = append(in.TransactItems, types.TransactWriteItem{Put: &types.Put{
				TableName: aws.String("items"), Item: newItem(strconv.Itoa(i), "group", "g", "rank", number),
			}})
		}
		_, err := s.Client().TransactWriteItems(context.Background(), in)
		return err
	}
	if err := write(0); err != nil {
		t.Fatal(err)
	}
	var confirmed atomic.Int64
	var finished atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		for n := 1; !finished.Load(); n++ {
			if err := write(n); err != nil {
				t.Error(err)
				return
			}
			confirmed.Store(int64(n))
		}
	})
	for range longtest.Size(3, 50) {
		before := confirmed.Load()
		copied := filepath.Join(dir, "copy.db")
		if err := embedded.Backup(t.Context(), path, copied, true); err != nil {
			t.Error(err)
			break
		}
		c := open(t, copied, nil)
		numbers := map[string]int{}
		for i := range items {
			numbers[text(readItem(t, c, "items", strconv.Itoa(i))["rank"])]++
		}
		for number := range numbers {
			if n, err := strconv.Atoi(number); err != nil || len(numbers) != 1 || int64(n) < before {
				t.Errorf("the copy has the numbers %v, want one number that is %d at least", numbers, before)
			}
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	finished.Store(true)
	wg.Wait()
	if err := stop(); err != nil {
		t.Error(err)
	}
}
