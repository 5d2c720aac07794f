//go:build linux

package soak_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Between the first and the second half of the run, memory may grow by growthBytes plus the
// fraction growthShare. Some growth is allowed, because memory depends on the time of the last
// garbage collection.
const (
	growthBytes = 24 << 20
	growthShare = 0.1
)

// residentMemory returns the resident memory of a process in bytes (Linux's VmRSS).
func residentMemory(t *testing.T, pid int) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	kilobytes := regexp.MustCompile(`VmRSS:\s+(\d+) kB`).FindSubmatch(status)
	if kilobytes == nil {
		t.Fatalf("the status of process %d has no VmRSS", pid)
	}
	n, _ := strconv.Atoi(string(kilobytes[1]))
	return n << 10
}

// openSockets returns the number of open sockets of a process, including listening sockets.
func openSockets(t *testing.T, pid int) int {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil || len(files) == 0 {
		t.Fatalf("cannot list the files of process %d: %v", pid, err)
	}
	n := 0
	for _, file := range files {
		if to, err := os.Readlink(file); err == nil && strings.HasPrefix(to, "socket:") {
			n++
		}
	}
	return n
}

// liveHeap returns the live heap in bytes after each garbage collection. GODEBUG=gctrace=1 writes
// lines such as "gc 7 @0.1s 2%: ..., 4->5->3 MB, 5 MB goal, ..." to the log
// (https://pkg.go.dev/runtime#hdr-Environment_Variables). Here 3 MB are live.
func liveHeap(t *testing.T, log string) []int {
	t.Helper()
	var bytes []int
	for _, found := range regexp.MustCompile(`(?m)^gc \d+ @.* \d+->\d+->(\d+) MB, `).FindAllStringSubmatch(log, -1) {
		n, _ := strconv.Atoi(found[1])
		bytes = append(bytes, n<<20)
	}
	return bytes
}

// goroutines counts the goroutines in a stack dump by the function that created them.
func goroutines(log string) map[string]int {
	made := map[string]int{}
	for _, found := range regexp.MustCompile(`(?m)^created by (\S+)`).FindAllStringSubmatch(log, -1) {
		made[found[1]]++
	}
	return made
}

// checkFlat fails the test if memory grew. It ignores the first third of the samples, because the
// server still fills its caches. It compares the two halves of the other samples.
func checkFlat(t *testing.T, name string, samples []int) {
	t.Helper()
	warm := samples[len(samples)/3:]
	if len(warm) < 6 {
		t.Errorf("%s: %d samples are too few", name, len(samples))
		return
	}
	early, late := median(warm[:len(warm)/2]), median(warm[len(warm)/2:])
	t.Logf("%s: %d samples, %s in the first half, %s in the second half, maximum %s", name, len(samples), megabytes(early), megabytes(late), megabytes(slices.Max(samples)))
	var parts []string
	for part := range slices.Chunk(samples, (len(samples)+9)/10) {
		parts = append(parts, megabytes(median(part)))
	}
	t.Logf("%s by tenth of the time: %s", name, strings.Join(parts, ", "))
	if grown := late - early; grown > growthBytes+int(growthShare*float64(early)) {
		t.Errorf("%s grew by %s", name, megabytes(grown))
	}
}

func median(values []int) int {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

func megabytes(n int) string { return fmt.Sprintf("%.1f MB", float64(n)/(1<<20)) }
