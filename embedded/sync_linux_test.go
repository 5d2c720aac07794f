package embedded_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/embedded"
	"github.com/ordergraph/ordergraph/internal/test/disk"
	"github.com/ordergraph/ordergraph/internal/test/longtest"
)

// failingSyncs is the environment variable of the child process whose syncs fail. Its value is the
// number of runs.
const failingSyncs = "ORDERGRAPH_TEST_FAILING_SYNCS"

// Syncs of the file fail at a random place. Clients repeat each write until they know its outcome. A
// power loss never loses a write whose outcome a client knows, and each write is observed once.
func TestFailedSyncs(t *testing.T) {
	if runs, err := strconv.Atoi(os.Getenv(failingSyncs)); err == nil {
		d, err := disk.Intercept()
		if err != nil {
			t.Fatal(err)
		}
		testUnknownOutcome(t, d)
		for n := range runs {
			failSyncs(t, d, n)
			if t.Failed() {
				return
			}
		}
		return
	}
	t.Parallel()
	// System calls can be intercepted only until the process ends.
	child := exec.Command(os.Args[0], "-test.run=^TestFailedSyncs$", "-test.v")
	child.Env = append(os.Environ(), failingSyncs+"="+strconv.Itoa(longtest.Size(30, 500)))
	output, err := child.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	if testing.Verbose() {
		t.Logf("%s", output)
	}
}

// testUnknownOutcome tests what clients see while no sync of the file succeeds after the header of a
// commit has been written.
func testUnknownOutcome(t *testing.T, d *disk.Disk) {
	path := filepath.Join(t.TempDir(), "store.db")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := d.Start(path, rand.New(rand.NewPCG(1, 1))); err != nil {
		t.Fatal(err)
	}
	s, err := embedded.Open(path, embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	createTable(t, s, "items", withIndex)
	next := recordChanges(t, s, "items")
	read := func() (item, error) {
		out, err := s.Client().GetItem(context.Background(), &dynamodb.GetItemInput{TableName: aws.String("items"), Key: newItem("a"), ConsistentRead: aws.Bool(true)})
		if err != nil {
			return nil, err
		}
		return out.Item, nil
	}
	d.Fail(1, 1000)
	const unknown, nothing = "unknown whether the change was written", "nothing was written"
	if err := put(s, newItem("a"))(context.Background()); err == nil || !strings.Contains(err.Error(), unknown) || strings.Contains(err.Error(), nothing) {
		t.Errorf("a write that the disk does not confirm returned %v", err)
	}
	if got, err := read(); err == nil || !strings.Contains(err.Error(), unknown) {
		t.Errorf("a strongly consistent read returned %v, %v, although a power loss may change its result", got, err)
	}
	if err := put(s, newItem("b"))(context.Background()); err == nil || !strings.Contains(err.Error(), nothing) {
		t.Errorf("a later write returned %v", err)
	}
	if err := removeIndex(s)(context.Background()); err == nil || !strings.Contains(err.Error(), nothing) {
		t.Errorf("a later change of the table returned %v", err)
	}
	if got := next(); len(got) != 0 {
		t.Errorf("the changes %v were observed before they were durable", got)
	}
	d.Fail(1000, 0)
	if got, err := read(); err != nil || got == nil {
		t.Errorf("after the disk has recovered, the item is %v, %v", got, err)
	}
	if got := next(); len(got) != 1 {
		t.Errorf("the changes %v were observed, want one", got)
	}
	// The change of a table is the same, and later writes use the changed table.
	d.Fail(1, 3)
	if err := removeIndex(s)(context.Background()); err == nil || !strings.Contains(err.Error(), unknown) {
		t.Errorf("a change of the table that the disk does not confirm returned %v", err)
	}
	d.Fail(1000, 0)
	if err := put(s, newItem("c", "group", "g", "rank", 1))(context.Background()); err != nil {
		t.Error(err)
	}
	if err := removeIndex(s)(context.Background()); errorCode(err) == "" || errorCode(err) == "InternalServerError" {
		t.Errorf("the second removal of the index returned %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// failSyncs executes writes while syncs fail. The number determines which syncs fail.
func failSyncs(t *testing.T, d *disk.Disk, number int) {
	source := rand.New(rand.NewPCG(uint64(number), 3))
	dir := t.TempDir()
	path := filepath.Join(dir, "store.db")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := d.Start(path, rand.New(rand.NewPCG(uint64(number), 4))); err != nil {
		t.Fatal(err)
	}
	s, err := embedded.Open(path, embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	createTable(t, s, "items", withIndex, withStream(types.StreamViewTypeKeysOnly))
	// In most runs, one sync fails. In others, the syncs that repeat it fail, too.
	d.Fail(source.IntN(40), 1+max(0, source.IntN(8)-4))
	var mu sync.Mutex
	known := map[string]bool{}
	observed := map[string]int{}
	s.Observe("items", func(_, after []item) {
		mu.Lock()
		defer mu.Unlock()
		for _, i := range after {
			observed[text(i["pk"])]++
		}
	})
	unknown := 0
	const writers, writes = 4, 12
	powerLoss := [2]int{source.IntN(writers), source.IntN(writes)}
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for n := range writes {
				pk := fmt.Sprintf("%d-%d", w, n)
				errs := writeOnce(t, s, pk)
				isUnknown := slices.ContainsFunc(errs, func(err error) bool { return strings.Contains(err.Error(), "unknown whether") })
				mu.Lock()
				known[pk] = true
				if isUnknown {
					unknown++
				}
				mu.Unlock()
				if isUnknown || powerLoss == [2]int{w, n} {
					checkPowerLoss(t, d, &mu, known, filepath.Join(dir, fmt.Sprintf("lost-%d.db", w)))
				}
				if w == 0 && n == writes/2 {
					changeIndex(t, s)
				}
			}
		})
	}
	wg.Wait()
	checkPowerLoss(t, d, &mu, known, filepath.Join(dir, "end.db"))
	if got := len(scanKeys(t, s, "items", "")); got != writers*writes {
		t.Errorf("run %d: the table has %d items, want %d", number, got, writers*writes)
	}
	for pk := range known {
		if observed[pk] != 1 {
			t.Errorf("run %d: the write of item %s was observed %d times, want 1", number, pk, observed[pk])
		}
	}
	if d.Failed() == 0 {
		t.Errorf("run %d: no sync failed", number)
	}
	t.Logf("run %d: %d syncs failed, %d unknown outcomes", number, d.Failed(), unknown)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// writeOnce writes an item if it does not exist, and repeats this until the outcome is known, like a
// client with an idempotency key. It returns the errors.
func writeOnce(t *testing.T, s *embedded.Store, pk string) (errs []error) {
	for range 50 {
		out, err := s.Client().GetItem(context.Background(), &dynamodb.GetItemInput{TableName: aws.String("items"), Key: newItem(pk), ConsistentRead: aws.Bool(true)})
		if err == nil && out.Item != nil {
			return errs
		}
		if err == nil {
			_, err = s.Client().TransactWriteItems(context.Background(), &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{{Put: &types.Put{
				TableName: aws.String("items"), Item: newItem(pk, "group", "g", "rank", 1, "v", strings.Repeat("x", 3000)), ConditionExpression: aws.String("attribute_not_exists(pk)"),
			}}}})
			if err == nil {
				return errs
			}
		}
		if code := errorCode(err); code != "InternalServerError" && code != "TransactionCanceledException" {
			t.Errorf("the write of item %s returned %v", pk, err)
			return errs
		}
		errs = append(errs, err)
	}
	t.Errorf("the write of item %s did not succeed: %v", pk, errs[len(errs)-1])
	return errs
}

// changeIndex removes the index and adds it again.
func changeIndex(t *testing.T, s *embedded.Store) {
	for _, change := range []func(context.Context) error{removeIndex(s), addIndex(s, "items", all)} {
		for n := range 50 {
			err := change(context.Background())
			if err == nil || n > 0 && errorCode(err) != "InternalServerError" {
				break
			}
			if errorCode(err) != "InternalServerError" {
				t.Errorf("the change of the index returned %v", err)
			}
		}
	}
}

// checkPowerLoss checks that a power loss at this moment loses no write with a known outcome.
func checkPowerLoss(t *testing.T, d *disk.Disk, mu *sync.Mutex, known map[string]bool, path string) {
	mu.Lock()
	var keys []string
	for pk := range known {
		keys = append(keys, pk)
	}
	mu.Unlock()
	if err := d.PowerLoss(path); err != nil {
		t.Error(err)
		return
	}
	s, err := embedded.Open(path, embedded.Options{})
	if err != nil {
		t.Errorf("after a power loss: %v", err)
		return
	}
	for _, pk := range keys {
		if readItem(t, s, "items", pk) == nil {
			t.Errorf("a power loss loses item %s, although its write was confirmed", pk)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
