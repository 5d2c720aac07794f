package simulation_test

import (
	"slices"
	"testing"
	"time"
)

// maxShortenTime is the time for finding a shorter simulation.
const maxShortenTime = time.Minute

// shorten returns a shorter simulation that breaks a promise, too, with its result: it leaves out
// time, activities and decisions. It uses delta debugging (Zeller and Hildebrandt, "Simplifying and
// Isolating Failure-Inducing Input", 2002).
func shorten(t *testing.T, s scenario, last result) (scenario, result) {
	until := time.Now().Add(maxShortenTime)
	try := func(next scenario) bool {
		if time.Now().After(until) {
			return false
		}
		got := simulate(t, next)
		if len(got.findings) == 0 {
			return false
		}
		s, last = next, got
		return true
	}
	for next := s; next.Duration > time.Minute; {
		if next.Duration /= 2; !try(next) {
			break
		}
	}
	for _, change := range []func(*scenario){
		func(s *scenario) { s.Webhooks = 0 }, func(s *scenario) { s.Subscriptions = 0 }, func(s *scenario) { s.Rates = nil }, func(s *scenario) { s.Actions = nil }, func(s *scenario) { s.Lag = false },
		func(s *scenario) { s.Walkers = 0 }, func(s *scenario) { s.Visitors = 0 }, func(s *scenario) { s.Erase = false }, func(s *scenario) { s.Disk = false },
	} {
		next := s
		change(&next)
		try(next)
	}
	decisions := last.used
	for parts := 2; len(decisions) > 0 && time.Now().Before(until); {
		size := (len(decisions) + parts - 1) / parts
		shorter := false
		for from := 0; from < len(decisions); from += size {
			rest := slices.Concat(decisions[:from], decisions[min(from+size, len(decisions)):])
			next := s
			next.Only = map[string]bool{}
			for _, d := range rest {
				next.Only[d] = true
			}
			if shorter = try(next); shorter {
				// Decisions that no longer had an effect are left out, too.
				decisions, parts = last.used, max(parts-1, 2)
				break
			}
		}
		if !shorter {
			if size == 1 {
				break
			}
			parts = min(2*parts, len(decisions))
		}
	}
	return s, last
}
