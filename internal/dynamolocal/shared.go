package dynamolocal

import (
	"context"
	"errors"
	"os"
	"runtime/debug"
	"sync"
	"testing"
	"time"
)

// fetchTimeout is the maximum time to join or start the instance, including the download.
const fetchTimeout = 10 * time.Minute

// shared is the instance that this test process uses. It is a package variable, because the tests
// of a package share no other state. Starting an instance for each test would take seconds, and 200
// MB of memory for each instance. get writes the variable once, under its own lock.
var shared sharedInstance

type sharedInstance struct {
	once sync.Once
	mu   sync.Mutex
	inst *Instance
	err  error
}

// get joins or starts the instance on the first call. Later calls return the same result.
func (s *sharedInstance) get() (*Instance, error) {
	s.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), fetchTimeout)
		defer cancel()
		inst, err := joinShared(ctx)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.inst, s.err = inst, err
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.inst, s.err
}

// stop leaves the instance, if it was joined.
func (s *sharedInstance) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inst != nil {
		s.inst.Stop()
	}
}

// Shared returns the instance that all test processes share. If no instance is running, the first
// call starts it. A process sees only its own tables. The tests of one process must use different
// table names.
//
// If DynamoDB Local is not available (see [UnavailableError]), Shared skips the test and logs the
// reason. If the environment contains CI=true, the test fails instead. Any other error fails the
// test.
//
// The instance ends half a minute after the last process that used it has ended, even if that
// process crashed. TestMain must call [Main].
func Shared(t testing.TB) *Instance {
	t.Helper()
	return requireInstance(t, shared.get)
}

// Private starts an instance for one test, and stops it when the test ends. Other tests do not slow
// it down with their requests and their garbage. Errors are as for [Shared].
func Private(t testing.TB) *Instance {
	t.Helper()
	inst := requireInstance(t, func() (*Instance, error) { return Start(t.Context()) })
	t.Cleanup(inst.Stop)
	return inst
}

// requireInstance calls get, and skips or fails the test if get returns an error.
func requireInstance(t testing.TB, get func() (*Instance, error)) *Instance {
	t.Helper()
	inst, err := get()
	if err == nil {
		return inst
	}
	if _, ok := errors.AsType[*UnavailableError](err); ok && os.Getenv("CI") != "true" {
		t.Skipf("skipped: this test needs DynamoDB Local: %v", err)
	}
	t.Fatalf("this test needs DynamoDB Local: %v", err)
	return nil
}

// Main runs the tests of a package, and returns the exit code. In the keeper process, it runs the
// instance of [Shared] instead. Unless GOGC is set, the tests run with GOGC=300, because enough
// memory is available.
//
//	func TestMain(m *testing.M) { os.Exit(dynamolocal.Main(m)) }
func Main(m *testing.M) int {
	if users := os.Getenv(keeperEnv); users != "" {
		return runKeeper(users)
	}
	defer shared.stop()
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(300)
	}
	return m.Run()
}
