// Package durability_test kills a server that keeps its data in a file, and starts it again on the
// same file. No acknowledged change may be lost or made twice, and no change may be made in part.
package durability_test

import (
	"bytes"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ordergraph/ordergraph/internal/test/workload"
)

// server is a server that keeps its data in a file. It is repeatedly killed and started again.
type server struct {
	binary, file string
	address      *workload.ServerAddress
	client       *workload.Client
	process      *workload.Process
	// source has the moments of the kills.
	source *rand.Rand
	// acknowledged gets a value for each response to a mutation.
	acknowledged chan struct{}

	starts, slowest time.Duration
	started         int
}

// newServer builds the program and starts it on a new file with the sample data. The warehouses
// have enough stock for all tests.
func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{
		binary: workload.BuildServer(t, "../.."), file: filepath.Join(t.TempDir(), "orders.db"),
		address: workload.NewServerAddress(), client: workload.NewClient(),
		source: rand.New(rand.NewPCG(7, 1)), acknowledged: make(chan struct{}, 1000),
	}
	s.start(t)
	for _, sku := range products {
		m := workload.Mutation{Field: "adjustInventory", Input: map[string]any{"sku": sku, "warehouseId": "wh_sea", "delta": 10_000_000, "idempotencyKey": "stock of " + sku}}
		if a, err := s.client.Send(t.Context(), s.address.WaitURL(), m); err != nil || !a.Succeeded() {
			t.Fatalf("adjustInventory: %v, %v", a, err)
		}
	}
	return s
}

// Records of the sample data.
var (
	products  = []string{"prod_100", "prod_101", "prod_abc", "prod_def", "prod_xyz"}
	customers = []string{"cust_01", "cust_001", "cust_002", "cust_003", "cust_004", "cust_005", "c1"}
)

// start starts the server and makes its address known to the clients.
func (s *server) start(t *testing.T) {
	t.Helper()
	before := time.Now()
	s.process = workload.StartServer(t, s.binary, []string{}, "-data", s.file, "-sample")
	took := time.Since(before)
	s.started++
	s.starts += took
	s.slowest = max(s.slowest, took)
	s.address.Set(s.process.URL)
}

// kill kills the server.
func (s *server) kill(t *testing.T) {
	t.Helper()
	// Clear the address first, so that clients do not connect to a dead server.
	s.address.Set("")
	s.process.Kill(t)
}

// killSoon kills the server after a random number of responses, and starts it again. It returns
// false if all clients ended first.
func (s *server) killSoon(t *testing.T, ended <-chan struct{}) bool {
	t.Helper()
	for range s.source.IntN(30) {
		select {
		case <-s.acknowledged:
		case <-ended:
			return false
		}
	}
	for range s.source.IntN(2000) { // the kill hits any step of a request
		runtime.Gosched()
	}
	s.kill(t)
	for len(s.acknowledged) > 0 {
		<-s.acknowledged
	}
	s.start(t)
	return true
}

// attempts is the maximum number of attempts per request. After each kill of the server, each
// client needs a few more attempts.
const attempts = 10_000

// send sends a mutation until it gets a response, which must be a success. It returns the number of
// attempts.
func (s *server) send(t *testing.T, field, key string, input map[string]any) (sentMutation, int) {
	input["idempotencyKey"] = key
	m := workload.Mutation{Field: field, Input: input}
	a, n, err := s.client.SendWithRetries(t.Context(), s.address.WaitURL, m, attempts)
	if err != nil || !a.Succeeded() {
		t.Errorf("%s %v: %v, %v", field, input, a, err)
	}
	s.acknowledged <- struct{}{}
	return sentMutation{m, a}, n
}

// sentMutation is a mutation with its first response.
type sentMutation struct {
	workload.Mutation
	response workload.Response
}

// check runs `ordergraph check` on the file, which must be clean. The server must have ended.
func (s *server) check(t *testing.T) {
	t.Helper()
	command := exec.Command(s.binary, "check", "-data", s.file)
	command.Env = []string{}
	out, err := command.CombinedOutput()
	if err != nil || !strings.HasSuffix(string(out), "\nclean\n") {
		t.Errorf("ordergraph check: %v: %s", err, out)
	}
	t.Logf("%d starts took %v on average and %v at most; check: %s", s.started, (s.starts / time.Duration(s.started)).Round(time.Millisecond/10), s.slowest.Round(time.Millisecond/10), bytes.ReplaceAll(bytes.TrimSpace(out), []byte("\n"), []byte(" ")))
}

// order returns the input of placeOrder with random line items.
func order(source *rand.Rand, customer string) map[string]any {
	var items []map[string]any
	for _, n := range source.Perm(len(products))[:1+source.IntN(3)] {
		items = append(items, map[string]any{"sku": products[n], "quantity": 1 + source.IntN(3)})
	}
	return map[string]any{"customerId": customer, "items": items}
}

// runClients runs clients until all have ended, and returns a channel that is closed then.
func runClients(clients int, run func(number int)) (ended <-chan struct{}) {
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() { run(i) })
	}
	done := make(chan struct{})
	go func() {
		wg.Wait()
		close(done)
	}()
	return done
}
