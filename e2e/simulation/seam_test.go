package simulation_test

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"testing/synctest"
	"time"
)

// seam is the only way from the simulated processes to the outside. It holds each interaction, such
// as a request to the store, until the scheduler releases it. The scheduler releases one interaction
// at a time, while all goroutines wait. So the order of the goroutines has no effect on a simulation.
type seam struct {
	seed uint64

	mu sync.Mutex
	// arrived contains the interactions that the scheduler has not seen yet. wake wakes the scheduler.
	arrived []*interaction
	wake    chan struct{}
	// ordinals counts the interactions of each sender and name.
	ordinals map[string]int

	// held contains the interactions that the scheduler has seen, but not released.
	held []*interaction
	// steps counts the released interactions, and trace is the hash of all of them.
	steps int
	trace hash.Hash
	// lines are the lines of the trace, if keepsLines is true.
	lines      []string
	keepsLines bool
}

// interaction is something that happens outside of a process.
type interaction struct {
	// from is the process or client, such as "server 1". name is the kind, such as the name of a
	// DynamoDB operation. content sorts interactions that arrive at the same time.
	from, name, content string
	// forRequest is the client's request that a server answers with this one. It also sorts interactions.
	forRequest string
	// latency is the maximum time until the scheduler releases the interaction.
	latency time.Duration
	// delay, if set, returns a further delay.
	delay func(*interaction) time.Duration
	// run is called by the scheduler. Its result is part of the trace.
	run func() string

	ordinal  int
	due      time.Time
	released chan struct{}
}

// String returns the sender, the name and the number of the interaction.
func (i *interaction) String() string { return fmt.Sprintf("%s %s %d", i.from, i.name, i.ordinal) }

func newSeam(seed uint64) *seam {
	return &seam{seed: seed, wake: make(chan struct{}, 1), ordinals: map[string]int{}, trace: sha256.New()}
}

// do waits until the scheduler has released the interaction. If ctx ends earlier, do returns its
// error. The interaction still happens, as a request that a client no longer waits for.
func (s *seam) do(ctx context.Context, i *interaction) error {
	i.released = make(chan struct{})
	s.mu.Lock()
	s.arrived = append(s.arrived, i)
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
	select {
	case <-i.released:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// run releases interactions until ctx ends.
func (s *seam) run(ctx context.Context) {
	for {
		synctest.Wait()
		s.receive()
		if len(s.held) == 0 {
			select {
			case <-s.wake:
				continue
			case <-ctx.Done():
				return
			}
		}
		next := s.held[0]
		if pause := time.Until(next.due); pause > 0 {
			timer := time.NewTimer(pause)
			select {
			case <-s.wake:
				timer.Stop()
				continue
			case <-timer.C:
			case <-ctx.Done():
				return
			}
			// Other timers may have ended at the same time.
			continue
		}
		for len(s.held) > 0 && s.held[0].String() == next.String() {
			equal := s.held[0]
			s.held = s.held[1:]
			s.release(equal)
		}
	}
}

// receive draws when the interactions that have arrived will be released.
func (s *seam) receive() {
	s.mu.Lock()
	arrived := s.arrived
	s.arrived = nil
	s.mu.Unlock()
	if len(arrived) == 0 {
		return
	}
	slices.SortFunc(arrived, func(a, b *interaction) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.name, b.name), cmp.Compare(a.content, b.content), cmp.Compare(a.forRequest, b.forRequest))
	})
	for n, i := range arrived {
		key := i.from + " " + i.name
		// Equal interactions that arrive at the same time have one number, and so the same faults, because
		// the sequence of the goroutines that have sent them is random.
		if n == 0 || i.from != arrived[n-1].from || i.name != arrived[n-1].name || i.content != arrived[n-1].content || i.forRequest != arrived[n-1].forRequest {
			s.ordinals[key]++
		}
		i.ordinal = s.ordinals[key]
		i.due = time.Now().Add(time.Duration(float64(i.latency) * s.random("latency", i.String()).Float64()))
		if i.delay != nil {
			i.due = i.due.Add(i.delay(i))
		}
	}
	s.held = append(s.held, arrived...)
	slices.SortStableFunc(s.held, func(a, b *interaction) int { return a.due.Compare(b.due) })
}

func (s *seam) release(i *interaction) {
	result := i.run()
	s.mu.Lock()
	s.steps++
	s.mu.Unlock()
	line := fmt.Sprintf("%d %s %s %s", time.Now().UnixNano(), i, i.content, result)
	_, _ = io.WriteString(s.trace, line+"\n")
	if s.keepsLines {
		s.lines = append(s.lines, line)
	}
	close(i.released)
}

// random returns a source of random numbers that depends only on the seed and the names. So a change
// of one decision does not change the others.
func (s *seam) random(names ...any) *rand.Rand {
	h := fnv.New128a()
	_ = binary.Write(h, binary.LittleEndian, s.seed)
	fmt.Fprint(h, names...)
	sum := h.Sum(nil)
	return rand.New(rand.NewPCG(binary.LittleEndian.Uint64(sum), binary.LittleEndian.Uint64(sum[8:])))
}
