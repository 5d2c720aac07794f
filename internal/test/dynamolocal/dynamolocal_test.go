//go:build !windows

package dynamolocal

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/internal/test/longtest"
)

// victimEnv makes the test binary run as the process that a test kills. Its value selects the
// variant.
const victimEnv = "ORDERGRAPH_DYNAMOLOCAL_VICTIM"

func TestMain(m *testing.M) {
	if how := os.Getenv(victimEnv); how != "" {
		_ = os.Unsetenv(victimEnv) // a keeper must not be a victim
		runVictim(how)
		return
	}
	os.Exit(Main(m))
}

// runVictim starts a child process, prints its process ID and waits to be killed.
func runVictim(variant string) {
	var pid int
	switch variant {
	case "instance":
		inst, err := Start(context.Background())
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		pid = inst.cmd.Process.Pid
	case "user":
		inst, err := shared.get()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		tables, err := inst.Client().ListTables(context.Background(), &dynamodb.ListTablesInput{})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println(inst.Endpoint(), len(tables.TableNames))
		return
	case "shell", "panic":
		cmd := exec.Command("sleep", "600")
		start := startWithShell
		if variant == "panic" {
			start = startKilledOnExit
		}
		if _, err := start(cmd); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		pid = cmd.Process.Pid
	}
	fmt.Println(pid)
	if variant == "panic" {
		// Wait until the parent has read the line. It then closes our standard input.
		_, _ = bufio.NewReader(os.Stdin).ReadByte()
		panic("as a failing test would")
	}
	select {} // the goroutine that waits for the child prevents a deadlock error
}

func TestChildEndsWithThisProcess(t *testing.T) {
	t.Parallel()
	for _, variant := range []string{"instance", "shell", "panic"} {
		t.Run(variant, func(t *testing.T) {
			t.Parallel()
			if variant == "instance" {
				Shared(t) // skips or fails if DynamoDB Local is not available
			}
			cmd := exec.Command(os.Args[0])
			// A killed process leaves its log. Put the log where the test cleans up.
			cmd.Env = append(os.Environ(), victimEnv+"="+variant, "TMPDIR="+t.TempDir())
			stderr := new(strings.Builder)
			cmd.Stderr = stderr
			stdin, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			stdout, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			line, readErr := bufio.NewReader(stdout).ReadString('\n')
			if variant == "panic" {
				stdin.Close()
			} else if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			waitErr := cmd.Wait()
			var pid int
			if _, err := fmt.Sscan(line, &pid); err != nil {
				t.Fatalf("the victim printed %q (%v, %v): %s", line, readErr, waitErr, stderr)
			}
			if waitErr == nil {
				t.Fatal("the victim ended without an error")
			}
			waitUntilGone(t, pid)
		})
	}
}

// waitUntilGone waits for the end of a process that is not our child. It polls, because there is no
// call that waits for such a process.
func waitUntilGone(t *testing.T, pid int) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		if err := syscall.Kill(pid, 0); errors.Is(err, syscall.ESRCH) || isZombie(pid) {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("process %d still runs", pid)
		case <-tick.C:
		}
	}
}

// isZombie reports whether a process has ended but was not reaped. In a container without an init
// process, orphans are never reaped.
func isZombie(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, after, ok := strings.Cut(string(stat), ") ")
	return ok && strings.HasPrefix(after, "Z")
}

func TestSharedIsOneInstance(t *testing.T) {
	t.Parallel()
	a, b := Shared(t), Shared(t)
	if a != b {
		t.Errorf("Shared returned two instances: %s and %s", a.Endpoint(), b.Endpoint())
	}
	createTable(t, a.Client(), "not-shared")
	another := exec.Command(os.Args[0])
	another.Env = append(os.Environ(), victimEnv+"=user")
	out, err := another.CombinedOutput()
	if want := a.Endpoint() + " 0\n"; err != nil || string(out) != want {
		t.Errorf("another process printed %q (%v), want %q: the same instance, with no tables", out, err, want)
	}
}

// An instance runs while it has users, and ends when it has no users.
func TestStopWhenUnused(t *testing.T) {
	t.Parallel()
	Shared(t) // skips or fails if DynamoDB Local is not available
	inst, err := Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	users, unused := filepath.Join(t.TempDir(), "users"), make(chan error)
	leave, err := waitForLock(t.Context(), users, syscall.LOCK_SH)
	if err != nil {
		t.Fatal(err)
	}
	go func() { unused <- inst.stopWhenUnused(users, 30*time.Millisecond) }()
	client := inst.Client(func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} })
	for range 100 {
		if _, err := client.ListTables(t.Context(), &dynamodb.ListTablesInput{}); err != nil {
			t.Fatal(err)
		}
	}
	leave()
	if err := <-unused; err != nil {
		t.Errorf("the JVM ended by itself: %v", err)
	}
	if _, err := client.ListTables(t.Context(), &dynamodb.ListTablesInput{}); err == nil {
		t.Error("the instance still responds without users")
	}
	inst.Stop()
	if _, err := os.Stat(inst.logPath); err == nil {
		t.Error("the log still exists after Stop")
	}
}

func TestStartShowsTheLog(t *testing.T) {
	t.Parallel()
	java, err := exec.LookPath("java")
	if err != nil {
		t.Skip("no java")
	}
	_, err = startOnFreePort(t.Context(), java, t.TempDir()) // no jars there
	if !errors.Is(err, errJVMEnded) {
		t.Fatalf("want errEnded, got %v", err)
	}
	if !strings.Contains(err.Error(), "ServerRunner") {
		t.Errorf("the error lacks the JVM's log: %v", err)
	}
}

func TestStartRespectsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	Shared(t)
	if inst, err := Start(ctx); !errors.Is(err, context.Canceled) {
		if err == nil {
			inst.Stop()
		}
		t.Errorf("want context.Canceled, got %v", err)
	}
}

func TestMissingPrograms(t *testing.T) { // not parallel: it changes the environment
	t.Setenv("PATH", t.TempDir())
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir()) // macOS uses HOME
	_, err := Start(t.Context())
	if e, ok := errors.AsType[*UnavailableError](err); !ok || e.Missing != "java" || !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("Start without java: %v", err)
	}
	_, err = Fetch(t.Context())
	if e, ok := errors.AsType[*UnavailableError](err); !ok || e.Missing != "mvn" || !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("Fetch without mvn: %v", err)
	}
}

func TestFailedFetchLeavesNothing(t *testing.T) { // not parallel: it changes the environment
	bin, cache := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "mvn"), []byte("#!/bin/sh\necho no such artifact\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin)
	t.Setenv("XDG_CACHE_HOME", cache)
	t.Setenv("HOME", cache)
	_, err := Fetch(t.Context())
	if e, ok := errors.AsType[*UnavailableError](err); !ok || e.Missing != "download" || !strings.Contains(err.Error(), "no such artifact") {
		t.Errorf("got %v", err)
	}
	dir, err := CacheDir()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("the directory exists after a failed fetch")
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(dir), ".fetch-*")); len(left) != 0 {
		t.Errorf("temporary files exist after a failed fetch: %v", left)
	}
}

func TestVersionMatchesPom(t *testing.T) {
	t.Parallel()
	if !strings.Contains(string(pom), "<artifactId>DynamoDBLocal</artifactId>\n      <version>"+DynamoDBLocalVersion+"</version>") {
		t.Errorf("pom.xml does not name version %s", DynamoDBLocalVersion)
	}
}

// The heap limit is enough for many records. The test writes 60,000 records, the maximum for a
// test, in the long run only. With one writer on two cores this took 14 s, and the JVM's resident
// memory stayed below 256 MB.
func TestHeapHoldsManyRecords(t *testing.T) {
	if !longtest.Enabled() {
		t.Skip("only the long run writes 60,000 records")
	}
	const records = 60_000
	Shared(t) // skips or fails if DynamoDB Local is not available
	inst, err := Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer inst.Stop()
	client := inst.Client()
	createTable(t, client, "many")
	begin := time.Now()
	for n := 0; n < records; n += 25 {
		var reqs []types.WriteRequest
		for m := n; m < n+25; m++ {
			s := func(format string, args ...any) types.AttributeValue {
				return &types.AttributeValueMemberS{Value: fmt.Sprintf(format, args...)}
			}
			reqs = append(reqs, types.WriteRequest{PutRequest: &types.PutRequest{Item: map[string]types.AttributeValue{
				"pk": s("ORDER#%06d", m/3), "sk": s("LINE#%06d", m), "gsi1pk": s("STATUS#%d", m%7), "gsi1sk": s("%06d", m),
				"text": s("%0100d", m),
			}}})
		}
		out, err := client.BatchWriteItem(t.Context(), &dynamodb.BatchWriteItemInput{
			RequestItems: map[string][]types.WriteRequest{"many": reqs},
		})
		if err != nil || len(out.UnprocessedItems) > 0 {
			t.Fatal(err, len(out.UnprocessedItems))
		}
	}
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", inst.cmd.Process.Pid))
	var rss string
	for line := range strings.Lines(string(status)) {
		if strings.HasPrefix(line, "VmHWM") {
			rss = strings.TrimSpace(line)
		}
	}
	report, _ := json.Marshal(map[string]string{"wrote": time.Since(begin).String(), "memory": rss})
	t.Logf("%s", report)
}

func createTable(t *testing.T, client *dynamodb.Client, name string) {
	t.Helper()
	key := func(name string, typ types.KeyType) types.KeySchemaElement {
		return types.KeySchemaElement{AttributeName: aws.String(name), KeyType: typ}
	}
	var defs []types.AttributeDefinition
	for _, attribute := range []string{"pk", "sk", "gsi1pk", "gsi1sk"} {
		defs = append(defs, types.AttributeDefinition{AttributeName: &attribute, AttributeType: types.ScalarAttributeTypeS})
	}
	_, err := client.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName:            &name,
		BillingMode:          types.BillingModePayPerRequest,
		AttributeDefinitions: defs,
		KeySchema:            []types.KeySchemaElement{key("pk", types.KeyTypeHash), key("sk", types.KeyTypeRange)},
		GlobalSecondaryIndexes: []types.GlobalSecondaryIndex{{
			IndexName:  aws.String("GSI1"),
			KeySchema:  []types.KeySchemaElement{key("gsi1pk", types.KeyTypeHash), key("gsi1sk", types.KeyTypeRange)},
			Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
}
