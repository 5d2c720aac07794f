package cli

import (
	"fmt"
	"io"
	"io/fs"
	"sync"
	"time"

	"github.com/ordergraph/ordergraph/dynamo/check"
)

// progressInterval is the minimum time between two updates of the progress line.
const progressInterval = 250 * time.Millisecond

// progressLine shows the progress of a command on one line of the terminal. Each update replaces
// the previous text of the line.
type progressLine struct {
	w     io.Writer
	clock func() time.Time

	mu        sync.Mutex
	lastShown time.Time
	shown     bool
	// If log is not nil, the progress is written to log instead of the terminal, at most one line
	// every logInterval.
	log io.Writer
}

// logInterval is the minimum time between two lines of progress in a log.
const logInterval = 30 * time.Second

// enableLog makes p write lines of progress to w. If w is a terminal, enableLog has no effect. The
// command seed uses enableLog, because after a crash, the last line shows where to continue.
func (p *progressLine) enableLog(w io.Writer) {
	if !isTerminal(w) {
		p.log, p.lastShown = w, p.clock()
	}
}

func newProgressLine(w io.Writer, clock func() time.Time) *progressLine {
	if !isTerminal(w) {
		w = io.Discard
	}
	return &progressLine{w: w, clock: clock}
}

func (p *progressLine) show(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock()
	switch since := now.Sub(p.lastShown); {
	case p.log != nil && since >= logInterval:
		p.lastShown = now
		fmt.Fprintf(p.log, format+"\n", args...)
	case p.log == nil && since >= progressInterval:
		p.lastShown, p.shown = now, true
		// The previous text of the line may be longer, so the escape sequence erases the rest of the
		// line.
		fmt.Fprintf(p.w, "\r"+format+"\x1b[K", args...)
	}
}

func (p *progressLine) showCheck(progress check.Progress) {
	settling := ""
	if progress.ToVerify > 0 {
		settling = fmt.Sprintf(", %d to verify", progress.ToVerify)
	}
	p.show("%d records read, %d inconsistencies%s", progress.Records, progress.Found, settling)
}

// clear erases the progress line.
func (p *progressLine) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shown {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
	p.shown = false
}

// isTerminal reports whether w is a terminal.
func isTerminal(w io.Writer) bool {
	file, ok := w.(interface{ Stat() (fs.FileInfo, error) })
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&fs.ModeCharDevice != 0
}
