package simulation_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/ordergraph/ordergraph/embedded"
	"github.com/ordergraph/ordergraph/internal/test/disk"
	"github.com/ordergraph/ordergraph/internal/test/faults"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// The kinds of faults of the disk. They last for one request.
const (
	syncFails  faults.Kind = "sync fails"
	syncsFail  faults.Kind = "sync and its repetitions fail"
	headerLost faults.Kind = "sync of the header fails"
	diskFull   faults.Kind = "disk full"
)

var diskFaults = []faults.Kind{syncFails, syncsFail, headerLost, diskFull}

// interceptDisk returns the disk of this process, or an error if system calls cannot be
// intercepted.
var interceptDisk = sync.OnceValues(disk.Intercept)

// idempotencyLife is the minimum life of an idempotency record, even if a server's clock is wrong. By
// a right clock, it is 24 hours.
const idempotencyLife = 12 * time.Hour

// drive is the disk below the file of the engine.
type drive struct {
	*disk.Disk
	w         *world
	directory string
	files     int
	losing    atomic.Int32 // a loss
}

// loss is the moment of a commit at which the power is lost.
type loss int32

const (
	none loss = iota
	// atSync and atHeader are the two syncs of a commit.
	atSync
	atHeader
	// afterRepetition is after a commit that has repeated the sync of the header.
	afterRepetition
)

// currentEngine sends requests to the engine that is open.
type currentEngine struct{ w *world }

// Do executes a request. It waits while the power is off.
func (c currentEngine) Do(r *http.Request) (*http.Response, error) {
	for n := 0; c.w.drive != nil && c.w.drive.Off() && n < 60; n++ {
		time.Sleep(time.Second)
	}
	return c.w.engine.Do(r)
}

// openEngine opens an empty engine, in a file if the scenario has faults of the disk.
func (w *world) openEngine() {
	w.engine = embedded.New()
	if !w.Disk {
		return
	}
	d, err := interceptDisk()
	if errors.Is(err, syscall.EBUSY) {
		w.Fatal("the parent process intercepts the disk, so this process cannot: run TestPlantedBugs before other tests")
	}
	if err != nil {
		return
	}
	// Errors name the file, and responses can be cut off in the middle. So its path always has the same length.
	directory := w.TempDir()
	directory = filepath.Join(directory, strings.Repeat("d", max(1, 200-len(directory))))
	if err := os.Mkdir(directory, 0o700); err != nil {
		w.Fatal(err)
	}
	w.drive = &drive{Disk: d, w: w, directory: directory}
	if err := os.WriteFile(w.drive.path(), nil, 0o600); err != nil {
		w.Fatal(err)
	}
	if err := w.drive.open(); err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() {
		if err := w.engine.Close(); err != nil {
			w.Error(err)
		}
	})
}

func (d *drive) path() string { return filepath.Join(d.directory, fmt.Sprintf("shop-%d.db", d.files)) }

// open opens the engine with the file.
func (d *drive) open() error {
	if err := d.Start(d.path(), d.w.random("disk", d.files)); err != nil {
		return err
	}
	engine, err := embedded.Open(d.path(), embedded.Options{})
	if err == nil {
		d.w.engine = engine
	}
	return err
}

// executeOnDisk executes a request. While the power is off, the engine cannot be reached.
func (w *world) executeOnDisk(i *interaction, r *http.Request, body []byte) (response *http.Response, reply time.Duration, err error) {
	d := w.drive
	if d == nil {
		return w.execute(i, r, body)
	}
	if d.Off() {
		return nil, 0, errUnreachable
	}
	d.choose(i)
	defer d.Choose(nil, nil)
	before := d.Failed()
	if response, reply, err = w.execute(i, r, body); d.Off() {
		return nil, 0, errUnreachable
	}
	if loss(d.losing.Load()) == afterRepetition && d.Failed() > before {
		d.Cut()
	}
	if response != nil && response.StatusCode == http.StatusInternalServerError {
		message, _ := io.ReadAll(response.Body)
		// The directory is not the same in each run.
		message = bytes.ReplaceAll(message, []byte(d.directory), nil)
		response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(message)), int64(len(message))
	}
	return response, reply, err
}

// choose chooses the fault of the disk during a request.
func (d *drive) choose(i *interaction) {
	source, losing := d.w.random("disk", i.String()), loss(d.losing.Load())
	kind := faults.None
	if strings.Contains(i.name, "Write") || strings.Contains(i.name, "Item") && !strings.Contains(i.name, "Get") {
		kind = d.w.chooseFault(i, diskFaults...)
	}
	if losing != none {
		kind = faults.None
	}
	after := source.IntN(3)
	d.Choose(source, func(c disk.Call) disk.Outcome {
		switch {
		case c.IsSync && losing == atSync, c.IsSync && c.IsHeader && losing == atHeader:
			return disk.PowerLoss
		case c.IsSync && c.IsHeader && losing == afterRepetition:
			losing = none
			return disk.Failure
		case kind == diskFull && !c.IsSync && !c.IsHeader:
			if after--; after < 0 {
				return disk.Full
			}
		case c.IsSync && (kind == syncFails || kind == syncsFail || kind == headerLost && c.IsHeader):
			if kind != syncsFail {
				kind = faults.None
			}
			return disk.Failure
		}
		return disk.Success
	})
}

// diskActions are the actions of the operator in scenarios with faults of the disk.
var diskActions = []action{{"power loss", losePower}}

// drawDisk draws whether the disk has faults, and which.
func (s *scenario) drawDisk(r *rand.Rand) {
	if s.Disk = r.IntN(3) == 0; !s.Disk {
		return
	}
	for _, kind := range diskFaults {
		if r.IntN(2) == 0 {
			s.Rates[kind] = []float64{0.01, 0.04}[r.IntN(2)]
		}
	}
	for range r.IntN(4) { // several times, so that it is chosen more often
		s.Actions = append(s.Actions, diskActions[0].name)
	}
}

// losePower ends the engine in the middle of a commit, or between two. Then it opens the engine
// with what the disk has kept.
func losePower(ctx context.Context, w *world, r *rand.Rand) {
	d := w.drive
	if d == nil {
		return
	}
	losing := []loss{none, atSync, atHeader, afterRepetition}[r.IntN(4)]
	d.losing.Store(int32(losing))
	for n := 0; losing != none && !d.Off() && n < 300; n++ {
		w.sleep(context.WithoutCancel(ctx), 100*time.Millisecond)
	}
	d.losing.Store(int32(none))
	d.Cut()
	_ = w.engine.Close()
	w.tell("the power is lost")
	w.sleep(ctx, time.Duration(r.Float64()*float64(10*time.Second)))
	d.files++
	if err := d.PowerLoss(d.path()); err != nil {
		w.Fatal(err)
	}
	if r.IntN(2) == 0 && d.openDamaged(r) {
		return
	}
	if err := d.open(); err != nil {
		d.Cut()
		w.found("after a power loss: %v", err)
		return
	}
	w.reopened()
}

// openDamaged opens the engine with a wrong bit in its file. Unless the bit has no effect, the
// engine must refuse the file.
func (d *drive) openDamaged(r *rand.Rand) bool {
	content, err := os.ReadFile(d.path())
	if err != nil {
		d.w.Fatal(err)
	}
	bit := r.IntN(8 * len(bytes.TrimRight(content, "\x00")))
	flip := func() {
		content[bit/8] ^= 1 << (bit % 8)
		if err := os.WriteFile(d.path(), content, 0o600); err != nil {
			d.w.Fatal(err)
		}
	}
	flip()
	if err = d.open(); err == nil {
		d.w.reopened()
		return true
	}
	if !strings.Contains(err.Error(), "damaged") && !strings.Contains(err.Error(), "format") {
		d.w.found("bit %d of byte %d is wrong: Open returned %v, want an error about the damaged file", bit%8, bit/8, err)
	}
	d.w.tell("the engine refuses a file with a wrong bit")
	flip()
	return false
}

// reopened prepares the engine after it was opened again.
func (w *world) reopened() {
	w.tell("the engine is opened again")
	if w.index != nil {
		w.index.reset()
	}
}

// verifyAcknowledged verifies that no change is lost after its response. A power loss would lose
// all records of a change, so the others remain consistent.
func (w *world) verifyAcknowledged(a *storetest.AuditResult) {
	keys := map[string]bool{}
	for pk := range a.IdempotencyRecords {
		keys[pk[strings.LastIndexByte(pk, '#')+1:]] = true
	}
	first := map[string]time.Duration{} // the time of the first request with a key
	for _, o := range w.history.operations {
		if _, ok := first[o.key()]; !ok {
			first[o.key()] = o.at
		}
		if key := o.IdempotencyKey(); key != "" && o.returned > 0 && o.response.Succeeded() && !keys[key] && time.Since(w.start)-first[o.key()] < idempotencyLife {
			w.found("%s was acknowledged, but its record with the key %s does not exist", o.decision, key)
		}
	}
}
