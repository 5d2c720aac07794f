package cli

import (
	"fmt"
	"io"
	"io/fs"
	"sync"
	"time"

	"github.com/ordergraph/ordergraph/dynamo/check"
)

// progressPause is how long a line of progress stands before the next one.
const progressPause = 250 * time.Millisecond

// progressLine shows how far a command is, on one line that it writes over again, where a person
// may be looking.
type progressLine struct {
	w     io.Writer
	clock func() time.Time

	mu    sync.Mutex
	last  time.Time
	shown bool
	// log, where it is set, is told a line of its own every logPause, as nobody is looking and
	// somebody may read later.
	log io.Writer
}

// logPause is how long a log waits for the next line.
const logPause = 30 * time.Second

// alsoInLogs has progress told in w where that is no terminal: for work that may take hours, and
// that somebody has to go on with who knows no more than its log, as it was killed.
func (p *progressLine) alsoInLogs(w io.Writer) {
	if !isTerminal(w) {
		p.log, p.last = w, p.clock()
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
	switch since := now.Sub(p.last); {
	case p.log != nil && since >= logPause:
		p.last = now
		fmt.Fprintf(p.log, format+"\n", args...)
	case p.log == nil && since >= progressPause:
		p.last, p.shown = now, true
		// The escape sequence clears what a longer line left behind.
		fmt.Fprintf(p.w, "\r"+format+"\x1b[K", args...)
	}
}

func (p *progressLine) showCheck(at check.CheckProgress) {
	settling := ""
	if at.Settling > 0 {
		settling = fmt.Sprintf(", %d to verify", at.Settling)
	}
	p.show("%d records read, %d drifts%s", at.Records, at.Found, settling)
}

// clear makes room for something else on the line.
func (p *progressLine) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shown {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
	p.shown = false
}

// isTerminal reports whether a person may be looking at what is written.
func isTerminal(w io.Writer) bool {
	file, ok := w.(interface{ Stat() (fs.FileInfo, error) })
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&fs.ModeCharDevice != 0
}
