package cli

import (
	"bytes"
	"io/fs"
	"os"
	"testing"
	"time"
)

type fakeTerminal struct{ bytes.Buffer }

func (*fakeTerminal) Stat() (fs.FileInfo, error) { return os.Stat("/dev/null") }

func TestProgressLine(t *testing.T) {
	now := time.Unix(0, 0)
	clock := func() time.Time { return now }
	var s fakeTerminal
	p := newProgressLine(&s, clock)
	p.clear()
	p.show("%d of %d", 1, 3)
	p.show("%d of %d", 2, 3)
	now = now.Add(progressInterval)
	p.show("%d of %d", 3, 3)
	p.clear()
	p.clear()
	if got := s.String(); got != "\r1 of 3\x1b[K\r3 of 3\x1b[K\r\x1b[K" {
		t.Errorf("the terminal shows %q", got)
	}
	var file bytes.Buffer
	p = newProgressLine(&file, clock)
	p.show("1")
	p.clear()
	if file.Len() > 0 {
		t.Errorf("the file contains %q", file.String())
	}
}

// A log receives one complete line per interval, and only if the command calls enableLog.
func TestProgressInALog(t *testing.T) {
	var log bytes.Buffer
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	p := newProgressLine(&log, func() time.Time { return now })
	p.show("%d of 9", 1)
	p.enableLog(&log)
	for n := range 9 {
		now = now.Add(10 * time.Second)
		p.show("%d of 9", n+1)
	}
	p.clear()
	if want := "3 of 9\n6 of 9\n9 of 9\n"; log.String() != want {
		t.Errorf("the log is %q, want %q", log.String(), want)
	}
}
