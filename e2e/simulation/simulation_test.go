package simulation_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/internal/test/golden"
	"github.com/ordergraph/ordergraph/internal/test/longtest"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
	"github.com/ordergraph/ordergraph/internal/test/workload"
)

var (
	seed  = flag.Uint64("seed", 0, "the seed of the simulation, or of the first one; 0 means a fixed seed, or a random one with -for")
	hours = flag.Float64("hours", 0.3, "the virtual hours of a simulation")
	runs  = flag.Duration("for", 0, "how long TestSeeds runs simulations with further seeds")
	save  = flag.Bool("save", false, "save the shortest failing simulation as a test")
)

// result is the result of a simulation.
type result struct {
	findings []string
	// trace is the hash of everything that has happened, and lines are its lines if the scenario is compared.
	// steps is the number of interactions.
	trace string
	lines []string
	steps int
	// used contains the decisions that had an effect. story describes them.
	used, story []string
	faults      faultCounts
	requests    int
}

// summary describes a simulation.
func (r result) summary(s scenario) string {
	return fmt.Sprintf("seed %d, %s: %d interactions, %d requests of clients, %d subscriptions, %d webhooks, index lag %v, disk %v, actions %v, faults %v, trace %.16s",
		s.Seed, s.Duration, r.steps, r.requests, s.Subscriptions, s.Webhooks, s.Lag, s.Disk, s.Actions, r.faults, r.trace)
}

// simulate runs a simulation.
func simulate(t *testing.T, s scenario) (got result) {
	// With one thread, simulations are faster. Goroutines that wake at the same time also draw their
	// IDs in the same sequence.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // a simulation needs little memory
	cryptotest.SetGlobalRandom(t, s.Seed)
	defer useMomentaryRandom(s.Seed)()
	var unchecked []func() []string
	if s.Disk {
		_, _ = interceptDisk() // outside of the bubble
	}
	synctest.Test(t, func(t *testing.T) {
		w := begin(t, s)
		scheduling, stop := context.WithCancel(context.Background())
		var scheduler sync.WaitGroup
		scheduler.Go(func() { w.seam.run(scheduling) })
		for i := range servers {
			w.startServer(i)
		}
		subscriptions := w.act()
		w.verify(subscriptions)
		for p := w.server(0); p != nil; p = w.server(0) {
			p.end(false)
		}
		stop()
		scheduler.Wait()
		time.Sleep(time.Hour) // until the timers of connections have ended
		unchecked = w.unchecked
		got = result{w.findings, fmt.Sprintf("%x", w.trace.Sum(nil)), w.lines, w.steps, w.used, w.story, w.scheduledFaults(), len(w.history.operations)}
	})
	// Real time passes only outside of the bubble.
	for _, check := range unchecked {
		got.findings = append(got.findings, check()...)
	}
	return got
}

// act lets the clients act, and waits until everything has caught up.
func (w *world) act() []*subscriber {
	acting, stop := context.WithCancel(context.Background())
	following, end := context.WithCancel(context.Background())
	memory := workload.NewClientState()
	var active, subscribing sync.WaitGroup
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
	w.runReaders(acting, &active, memory, owner)
	// The subscriptions to the orders of an erased customer end.
	first = slices.DeleteFunc(first, func(u update) bool { return owner[u.OrderID] == erasedCustomer })
	for i := range w.Subscriptions {
		s := &subscriber{name: fmt.Sprintf("subscriber %d", i), field: "customerOrders", argument: "customerId", id: owner[first[i].OrderID], began: first[i].ID, after: first[i].ID}
		if i == 0 {
			s.field, s.argument, s.id = "orderUpdated", "id", first[i].OrderID
		}
		subscriptions = append(subscriptions, s)
		subscribing.Go(func() { w.runSubscriber(following, s) })
	}
	if slices.Contains(w.Derivations, model.Changes) {
		s := w.newPuller()
		subscriptions = append(subscriptions, s)
		subscribing.Go(func() { w.pull(following, s) })
	}
	time.Sleep(w.Duration)
	w.mu.Lock()
	w.calm = true
	w.mu.Unlock()
	time.Sleep(2 * time.Minute) // requests end, and the operator completes its last action
	stop()
	active.Wait()
	time.Sleep(3 * time.Minute) // subscribers and webhooks catch up
	for n := 0; n < 30 && w.isBehind(); n++ {
		time.Sleep(5 * time.Minute) // after failures, the pauses of webhooks are long
	}
	end()
	subscribing.Wait()
	return subscriptions
}

// checkLater verifies after the simulation that operations are linearizable.
func (w *world) checkLater(subject string, m porcupine.Model, operations []porcupine.Operation) {
	w.unchecked = append(w.unchecked, func() []string {
		switch result, info := porcupine.CheckOperationsVerbose(m, operations, maxCheckTime); result {
		case porcupine.Illegal:
			return []string{fmt.Sprintf("the requests to %s are not linearizable%s%s", subject, w.picture(subject, m, info), describe(m, operations))}
		case porcupine.Unknown:
			w.T.Logf("the %d requests to %s could not be checked within %s", len(operations), subject, maxCheckTime)
		}
		return nil
	})
}

// maxCheckTime is the time for checking the requests to one record.
const maxCheckTime = 10 * time.Second

// picture writes a picture of a failed check, if there is a directory for it.
func (w *world) picture(id string, m porcupine.Model, info porcupine.LinearizationInfo) string {
	directory := os.Getenv("ORDERGRAPH_TEST_PICTURES")
	if directory == "" {
		return ""
	}
	path := filepath.Join(directory, fmt.Sprintf("seed-%d-%s.html", w.Seed, strings.ReplaceAll(id, " ", "-")))
	if err := porcupine.VisualizePath(m, info, path); err != nil {
		return ": " + err.Error()
	}
	return ": see " + path
}

// One seed determines a simulation. The flag -seed selects it.
func TestSeed(t *testing.T) { run(t, max(*seed, 1), false) }

// Simulations with successive seeds break no promise. Every fourth one runs twice, and has the same trace
// both times.
func TestSeeds(t *testing.T) {
	first, until := *seed, time.Now().Add(*runs)
	if first == 0 && *runs > 0 {
		first = rand.Uint64N(1 << 40)
	}
	t.Logf("the first seed is %d", max(first, 1))
	for n := uint64(0); time.Now().Before(until) || *runs == 0 && n < uint64(longtest.Size(4, 20)); n++ {
		t.Run(fmt.Sprint(max(first, 1)+n), func(t *testing.T) { run(t, max(first, 1)+n, n%4 == 0) })
	}
}

// The trace of a seed is the same on every machine.
func TestGoldenTraces(t *testing.T) {
	var text strings.Builder
	for seed := range uint64(3) {
		s := draw(seed+1, 20*time.Minute)
		s.Disk = false // only Linux can simulate a disk
		fmt.Fprintf(&text, "seed %d: %s\n", seed+1, simulate(t, s).trace)
	}
	golden.CheckFile(t, "testdata/traces.txt", text.String())
}

// run runs a simulation, possibly twice. If it breaks a promise, run shortens and describes it.
func run(t *testing.T, seed uint64, twice bool) {
	s := draw(seed, time.Duration(*hours*float64(time.Hour)))
	s.compared = twice
	got := simulate(t, s)
	t.Log(got.summary(s))
	if twice {
		if again := simulate(t, s); again.trace != got.trace {
			t.Errorf("go test ./e2e/simulation -run 'TestSeed$' -seed %d -hours %v gives different traces: %s", seed, *hours, firstDifference(again.lines, got.lines))
		}
		s.compared = false
	}
	if len(got.findings) == 0 {
		return
	}
	t.Errorf("go test ./e2e/simulation -run 'TestSeed$' -seed %d -hours %v breaks promises:\n%s", seed, *hours, strings.Join(got.findings, "\n"))
	short, last := shorten(t, s, got)
	t.Errorf("the same in short:\n%s\n%s", strings.Join(last.story, "\n"), strings.Join(last.findings, "\n"))
	if *save {
		text, err := json.MarshalIndent(short, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Join("testdata", "stories"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join("testdata", "stories", fmt.Sprintf("seed-%d.json", seed)), append(text, '\n'), 0o600); err != nil {
			t.Error(err)
		}
	}
}

// Simulations that once broke a promise do not break it again.
func TestStories(t *testing.T) {
	files, err := filepath.Glob("testdata/stories/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".json"), func(t *testing.T) {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var s scenario
			if err := json.Unmarshal(text, &s); err != nil {
				t.Fatal(err)
			}
			for _, finding := range simulate(t, s).findings {
				t.Error(finding)
			}
		})
	}
}
