package simulation_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/ordergraph/ordergraph/internal/test/storetest"
	"github.com/ordergraph/ordergraph/internal/test/workload"
)

var (
	seedFlag  = flag.Uint64("seed", 0, "the seed of the simulation; 0 means the seeds of the test")
	hoursFlag = flag.Float64("hours", 0.5, "the virtual hours of a simulation")
)

// result is the result of a simulation.
type result struct {
	findings []string
	// trace is the hash of everything that has happened. steps is the number of interactions.
	trace string
	steps int
	used  []string
	story string
}

// simulate runs a simulation.
func simulate(t *testing.T, s scenario) (got result) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	cryptotest.SetGlobalRandom(t, s.Seed)
	synctest.Test(t, func(t *testing.T) {
		w := begin(t, s)
		if path := os.Getenv("ORDERGRAPH_TEST_TRACE"); path != "" {
			file, err := os.Create(path)
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			w.lines = file
		}
		scheduling, stop := context.WithCancel(context.Background())
		var scheduler sync.WaitGroup
		scheduler.Go(func() { w.seam.run(scheduling) })
		for i := range servers {
			w.startServer(i)
		}
		subscriptions := w.act()
		w.judge(subscriptions)
		for p := w.server(0); p != nil; p = w.server(0) {
			p.end(false)
		}
		stop()
		scheduler.Wait()
		time.Sleep(time.Hour) // until the timers of connections have ended
		got = result{findings: w.findings, trace: fmt.Sprintf("%x", w.trace.Sum(nil)), steps: w.steps, used: w.used}
		var report strings.Builder
		fmt.Fprintf(&report, "seed %d, %s: %d interactions, %d requests of clients, trace %.16s\n", s.Seed, s.Duration, w.steps, len(w.history.operations), got.trace)
		fmt.Fprintf(&report, "actions %v, %d subscriptions, %d webhooks, faults %v\n", s.actions, s.subscriptions, s.webhooks, w.scheduledFaults())
		if os.Getenv("ORDERGRAPH_TEST_LOG") != "" {
			report.WriteString(w.log.String())
		}
		got.story = report.String()
	})
	return got
}

// act lets the clients act, and waits until everything has caught up.
func (w *world) act() []*subscriber {
	acting, stop := context.WithCancel(context.Background())
	following, end := context.WithCancel(context.Background())
	memory := workload.NewClientState()
	var active, followers sync.WaitGroup
	for i := range clients {
		active.Go(func() { w.runClient(acting, i, memory) })
	}
	active.Go(func() { w.runOperator(acting) })
	var subscriptions []*subscriber
	audit, err := storetest.Audit(w.Context(), w.db, w.table, w.admin.Shards())
	if err != nil {
		w.Fatal(err)
	}
	first, owner := timelines(audit)
	for i := range w.subscriptions {
		s := &subscriber{name: fmt.Sprintf("subscriber %d", i), field: "customerOrders", argument: "customerId", id: owner[first[i].OrderID], began: first[i].ID, after: first[i].ID}
		if i == 0 {
			s.field, s.argument, s.id = "orderUpdated", "id", first[i].OrderID
		}
		subscriptions = append(subscriptions, s)
		followers.Go(func() { w.runSubscriber(following, s) })
	}
	time.Sleep(w.Duration)
	w.mu.Lock()
	w.calm = true
	w.mu.Unlock()
	time.Sleep(2 * time.Minute) // requests end, and the operator completes its last action
	stop()
	active.Wait()
	time.Sleep(3 * time.Minute) // subscribers and webhooks catch up
	end()
	followers.Wait()
	return subscriptions
}

// picture writes a picture of a failed check, if there is a directory for it.
func (w *world) picture(id string, info porcupine.LinearizationInfo) string {
	directory := os.Getenv("ORDERGRAPH_TEST_PICTURES")
	if directory == "" {
		return ""
	}
	path := filepath.Join(directory, fmt.Sprintf("seed-%d-order-%s.html", w.Seed, id))
	if err := porcupine.VisualizePath(registerModel, info, path); err != nil {
		return ": " + err.Error()
	}
	return ": see " + path
}

// One seed determines a simulation. The flag -seed selects it.
func TestSeed(t *testing.T) {
	seed := *seedFlag
	if seed == 0 {
		seed = 1
	}
	got := simulate(t, draw(seed, time.Duration(*hoursFlag*float64(time.Hour))))
	t.Log(got.story)
	for _, finding := range got.findings {
		t.Error(finding)
	}
}

// The same seed gives the same trace.
func TestSameTrace(t *testing.T) {
	for seed := range uint64(3) {
		s := draw(seed+1, 30*time.Minute)
		if first, second := simulate(t, s), simulate(t, s); first.trace != second.trace {
			t.Errorf("seed %d gives %d interactions with the trace %.16s, and then %d with %.16s", seed+1, first.steps, first.trace, second.steps, second.trace)
		}
	}
}
