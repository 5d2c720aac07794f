package cli

import (
	"fmt"
	"io"
	"io/fs"
	"sync"
	"time"

	"github.com/ordergraph/ordergraph/dynamo"
)

// progressPause is how long a line of progress stands before the next one.
const progressPause = 250 * time.Millisecond

// progressLine shows how far a command is, on one line that it writes over again, where a person may be looking.
type progressLine struct {
	w     io.Writer
	clock func() time.Time

	mu    sync.Mutex
	last  time.Time
	shown bool
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
	if now := p.clock(); now.Sub(p.last) >= progressPause {
		p.last, p.shown = now, true
		// The escape sequence clears what a longer line left behind.
		fmt.Fprintf(p.w, "\r"+format+"\x1b[K", args...)
	}
}

func (p *progressLine) showCheck(at dynamo.CheckProgress) {
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

// isTerminal tells whether a person may be looking at what is written.
func isTerminal(w io.Writer) bool {
	file, ok := w.(interface{ Stat() (fs.FileInfo, error) })
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&fs.ModeCharDevice != 0
}
