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

// fetchTimeout is the maximum time to join or start the shared instance. It includes the download
// of DynamoDB Local.
const fetchTimeout = 10 * time.Minute

// shared is the instance that this test process uses. It is a package variable, because a separate
// instance for each test would start slowly and use much memory.
var shared sharedInstance

type sharedInstance struct {
	once sync.Once
	mu   sync.Mutex
	inst *Instance
	err  error
}

// get joins or starts the shared instance on the first call. Later calls return the same result.
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

// stop ends the use of the shared instance by this process. If get has not joined an instance, stop
// does nothing.
func (s *sharedInstance) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inst != nil {
		s.inst.Stop()
	}
}

// Shared returns the instance that all test processes of this user share. The tests of one process
// share their tables. TestMain must call [Main].
//
// If DynamoDB Local is not available, Shared skips the test, or fails it if CI=true.
func Shared(t testing.TB) *Instance {
	t.Helper()
	return requireInstance(t, shared.get)
}

// Private starts an instance for one test, and stops it when the test ends. If the instance does
// not start, Private skips or fails the test like [Shared].
func Private(t testing.TB) *Instance {
	t.Helper()
	inst := requireInstance(t, func() (*Instance, error) { return Start(t.Context()) })
	t.Cleanup(inst.Stop)
	return inst
}

// requireInstance returns the instance that get returns. If get returns an error, requireInstance
// skips or fails the test as [Shared] describes.
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

// Main runs the tests of a package and returns the exit code. In the keeper process, Main runs the
// instance of [Shared] instead.
//
//	func TestMain(m *testing.M) { os.Exit(dynamolocal.Main(m)) }
func Main(m *testing.M) int {
	if users := os.Getenv(keeperEnv); users != "" {
		return runKeeper(users)
	}
	defer shared.stop()
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(300) // the tests run faster, but use more memory
	}
	return m.Run()
}
