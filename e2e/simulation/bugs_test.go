package simulation_test

import (
	"flag"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ordergraph/ordergraph/internal/test/longtest"
	"github.com/ordergraph/ordergraph/internal/test/variant"
)

var planted = flag.String("planted", "", "a regular expression for the names of the planted bugs to find; by default, all of them")

const (
	plantedDir = "testdata/variants"
	// maxPlantedCPU is the CPU time in which the simulation must find a planted bug, and maxMissed the
	// number of bugs that it may miss on a slow machine.
	maxPlantedCPU = time.Minute
	maxMissed     = 4
)

// notFound contains the planted bugs that the simulation does not find within maxPlantedCPU, each with
// the reason. TestPlantedBugs runs them only if the flag -planted selects them.
var notFound = map[string]string{
	"backfill_without_wait":           "a server rarely changes a record in the seconds before it follows a backfill",
	"check_without_superfluous_edges": "no foreign program adds list records",
	"child_shard_first":               "a shard rarely splits while a server is behind with it",
	"copy_trusted_over_order":         "damage rarely hits an attribute that a repair copies back",
	"delete_without_condition":        "a product rarely gets fewer shares at the moment of an order",
	"findings_not_confirmed":          "a check rarely reads a record at the moment of its change",
	"iterator_expired_without_gap":    "an iterator rarely expires before it has read an event that a subscription waits for",
	"repair_in_one_pass":              "repairs rarely need a second pass in so small a table",
}

// The planted bugs apply to the code, so a change of the code also changes them. There are at least
// eight in each area.
func TestPlantedBugsApply(t *testing.T) {
	variants, _ := variant.Read(t, plantedDir)
	count := map[string]int{}
	for _, v := range variants {
		count[v.Area]++
	}
	for _, area := range []string{"mutations", "derivations", "repair", "feed", "engine"} {
		if count[area] < 8 {
			t.Errorf("the area %s has %d planted bugs, want 8 or more", area, count[area])
		}
	}
}

// The simulation finds the planted bugs with the seeds 1, 2, 3 and so on. With the same seeds, it finds
// nothing in the correct code.
//
// This test is in the first file, so that it runs before tests that intercept the disk. Processes that
// are started later could not intercept their own.
func TestPlantedBugs(t *testing.T) {
	longtest.Skip(t)
	variants, files := variant.Read(t, plantedDir)
	selected := regexp.MustCompile(*planted)
	variants = slices.DeleteFunc(variants, func(v variant.Variant) bool {
		return !selected.MatchString(v.Name) || *planted == "" && notFound[v.Name] != ""
	})
	binary := variant.Build(t, files, "./e2e/simulation")
	run := func(name string, seed int) variant.Result {
		return variant.Run(t, binary, name, 2*time.Minute, "-test.run=^TestSeedForPlantedBug$", "-planted=run", fmt.Sprintf("-seed=%d", seed), fmt.Sprintf("-hours=%g", *hours))
	}
	var mu sync.Mutex
	seeds := map[int]bool{}
	var table, missed []string
	twoAtATime(len(variants), func(i int) {
		v, cpu, found := variants[i], time.Duration(0), ""
		seed := 0
		for cpu < maxPlantedCPU && found == "" {
			seed++
			r := run(v.Name, seed)
			if cpu += r.CPU; r.Failed {
				found = firstFinding(r.Output)
			}
		}
		mu.Lock()
		defer mu.Unlock()
		line := fmt.Sprintf("%-12s %-34s seed %3d %5.1f s  %.200s", v.Area, v.Name, seed, cpu.Seconds(), found)
		t.Log(line)
		table, seeds[seed] = append(table, line), true
		if found == "" {
			missed = append(missed, v.Name)
			delete(seeds, seed)
		}
	})
	correct := slices.Sorted(maps.Keys(seeds))
	twoAtATime(len(correct), func(i int) {
		if r := run("", correct[i]); r.Failed {
			t.Errorf("seed %d finds a bug in the code without planted bugs:\n%s", correct[i], r.Output)
		}
	})
	slices.Sort(table)
	t.Logf("planted bugs: %d, not found: %d %v\n%s", len(table), len(missed), missed, strings.Join(table, "\n"))
	if len(missed) > maxMissed {
		t.Errorf("the simulation does not find %d planted bugs: %v", len(missed), missed)
	}
}

// TestSeedForPlantedBug is TestSeed, but does not shorten a simulation that breaks promises. Only
// TestPlantedBugs runs it.
func TestSeedForPlantedBug(t *testing.T) {
	if *planted != "run" {
		t.Skip("TestPlantedBugs runs this test")
	}
	got := simulate(t, draw(*seed, time.Duration(*hours*float64(time.Hour))))
	for _, finding := range got.findings {
		t.Error(finding)
	}
}

// twoAtATime calls do with the numbers from 0 to n-1, for two of them at the same time.
func twoAtATime(n int, do func(int)) {
	numbers := make(chan int)
	var workers sync.WaitGroup
	for range 2 {
		workers.Go(func() {
			for i := range numbers {
				do(i)
			}
		})
	}
	for i := range n {
		numbers <- i
	}
	close(numbers)
	workers.Wait()
}

// firstFinding returns the first finding in the output of a simulation.
func firstFinding(output string) string {
	if found := regexp.MustCompile(`(?m)^ +\w+_test\.go:\d+: (.*)$|^(panic: .*)$`).FindStringSubmatch(output); found != nil {
		return found[1] + found[2]
	}
	return "the test failed: " + output
}
