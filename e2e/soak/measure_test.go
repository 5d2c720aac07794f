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

// slack is by how many bytes, and share by how much of itself, memory may grow from one half of the
// time to the other: the collector comes when it wants.
const (
	slack = 24 << 20
	share = 0.1
)

// memoryOf is how many bytes of memory a process has (Linux's VmRSS).
func memoryOf(t *testing.T, pid int) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	kilobytes := regexp.MustCompile(`VmRSS:\s+(\d+) kB`).FindSubmatch(status)
	if kilobytes == nil {
		t.Fatalf("process %d has no memory", pid)
	}
	n, _ := strconv.Atoi(string(kilobytes[1]))
	return n << 10
}

// socketsOf is how many sockets a process has open, those that it listens on included.
func socketsOf(t *testing.T, pid int) int {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil || len(files) == 0 {
		t.Fatalf("the files of process %d cannot be seen: %v", pid, err)
	}
	n := 0
	for _, file := range files {
		if to, err := os.Readlink(file); err == nil && strings.HasPrefix(to, "socket:") {
			n++
		}
	}
	return n
}

// liveHeap is how many bytes were in use after each collection, as the collector says with
// GODEBUG=gctrace=1 (https://pkg.go.dev/runtime#hdr-Environment_Variables): "gc 7 @0.1s 2%: ...,
// 4->5->3 MB, 5 MB goal, ..." is of 3.
func liveHeap(t *testing.T, log string) []int {
	t.Helper()
	var bytes []int
	for _, found := range regexp.MustCompile(`(?m)^gc \d+ @.* \d+->\d+->(\d+) MB, `).FindAllStringSubmatch(log, -1) {
		n, _ := strconv.Atoi(found[1])
		bytes = append(bytes, n<<20)
	}
	return bytes
}

// goroutines are how many goroutines there are in what a server says when it is ended, by the
// function that made them.
func goroutines(log string) map[string]int {
	made := map[string]int{}
	for _, found := range regexp.MustCompile(`(?m)^created by (\S+)`).FindAllStringSubmatch(log, -1) {
		made[found[1]]++
	}
	return made
}

// checkFlat fails the test where memory grew. The first third of the samples is a server that is
// not warm yet; behind it the later half must not be above the earlier one.
func checkFlat(t *testing.T, what string, samples []int) {
	t.Helper()
	warm := samples[len(samples)/3:]
	if len(warm) < 6 {
		t.Errorf("%s: %d samples tell nothing", what, len(samples))
		return
	}
	early, late := median(warm[:len(warm)/2]), median(warm[len(warm)/2:])
	t.Logf("%s, of %d samples: %s in the earlier half, %s in the later one, %s at most", what, len(samples), megabytes(early), megabytes(late), megabytes(slices.Max(samples)))
	var parts []string
	for part := range slices.Chunk(samples, (len(samples)+9)/10) {
		parts = append(parts, megabytes(median(part)))
	}
	t.Logf("%s, in tenths of the time: %s", what, strings.Join(parts, ", "))
	if grown := late - early; grown > slack+int(share*float64(early)) {
		t.Errorf("%s grew by %s", what, megabytes(grown))
	}
}

func median(of []int) int {
	sorted := slices.Sorted(slices.Values(of))
	return sorted[len(sorted)/2]
}

func megabytes(n int) string { return fmt.Sprintf("%.1f MB", float64(n)/(1<<20)) }
