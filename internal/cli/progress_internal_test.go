package cli

import (
	"bytes"
	"io/fs"
	"os"
	"testing"
	"time"
)

type screen struct{ bytes.Buffer }

func (*screen) Stat() (fs.FileInfo, error) { return os.Stat("/dev/null") }

func TestProgressLine(t *testing.T) {
	now := time.Unix(0, 0)
	clock := func() time.Time { return now }
	var s screen
	p := newProgressLine(&s, clock)
	p.clear()
	p.show("%d of %d", 1, 3)
	p.show("%d of %d", 2, 3)
	now = now.Add(progressPause)
	p.show("%d of %d", 3, 3)
	p.clear()
	p.clear()
	if got := s.String(); got != "\r1 of 3\x1b[K\r3 of 3\x1b[K\r\x1b[K" {
		t.Errorf("shown is %q", got)
	}
	var file bytes.Buffer
	p = newProgressLine(&file, clock)
	p.show("1")
	p.clear()
	if file.Len() > 0 {
		t.Errorf("a file holds %q", file.String())
	}
}
