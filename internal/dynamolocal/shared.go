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

// fetchTimeout limits the first start on a machine, download included.
const fetchTimeout = 10 * time.Minute

// shared is the instance that this test process uses. A package variable cannot be avoided: tests
// of one package have nothing else in common in which to keep something that each of them would
// otherwise pay seconds and 200 MB for. It is written once, under its own lock.
var shared sharedInstance

type sharedInstance struct {
	once sync.Once
	mu   sync.Mutex
	inst *Instance
	err  error
}

// get joins the instance when it is first called, and returns the same answer ever after.
func (s *sharedInstance) get() (*Instance, error) {
	s.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), fetchTimeout)
		defer cancel()
		inst, err := join(ctx)
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

// Shared returns the instance that all test processes share, started by the first call. Processes
// see only their own tables. Tests of one process keep apart by their tables' names.
//
// Where DynamoDB Local is not available (see [UnavailableError]) the test is skipped, with the
// reason. That must not happen unnoticed where it counts, so if the environment has CI=true the
// test fails instead. Any other failure fails the test everywhere.
//
// The instance ends some time after the last process that used it, however that ended. TestMain has
// to call [Main].
func Shared(t testing.TB) *Instance {
	t.Helper()
	inst, err := shared.get()
	if err == nil {
		return inst
	}
	if _, ok := errors.AsType[*UnavailableError](err); ok && os.Getenv("CI") != "true" {
		t.Skipf("skipped: this test needs DynamoDB Local: %v", err)
	}
	t.Fatalf("this test needs DynamoDB Local: %v", err)
	return nil
}

// Main is for TestMain: it runs the tests, or keeps the instance of [Shared], and returns what to
// exit with. Unless GOGC is set, the tests run with GOGC=300, as they have memory to spare.
//
//	func TestMain(m *testing.M) { os.Exit(dynamolocal.Main(m)) }
func Main(m *testing.M) int {
	if users := os.Getenv(keeperEnv); users != "" {
		return keep(users)
	}
	defer shared.stop()
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(300)
	}
	return m.Run()
}
