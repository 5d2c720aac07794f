package shoptest

import (
	"bufio"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Build makes the program, without the race detector: it runs in a process of its own. root is the
// way to the module's root.
func Build(t testing.TB, root string) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "ordergraph")
	if out, err := exec.Command("go", "build", "-o", binary, root).CombinedOutput(); err != nil {
		t.Fatalf("build the server: %v: %s", err, out)
	}
	return binary
}

// Process is a running server.
type Process struct {
	cmd *exec.Cmd
	// URL is that of its GraphQL.
	URL string
	// said is closed when there is nothing more to read from it.
	said chan struct{}
	// stderr is its log; read it when the server is gone.
	stderr strings.Builder
}

// Start starts a server and waits until it says where it listens.
func Start(t testing.TB, binary string, environment []string) *Process {
	t.Helper()
	p := &Process{cmd: exec.Command(binary, "-addr", "127.0.0.1:0"), said: make(chan struct{})}
	p.cmd.Env = environment
	p.cmd.Stderr = &p.stderr
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stdout)
	for p.URL == "" && lines.Scan() {
		if words := strings.Fields(lines.Text()); len(words) == 2 && words[0] == "GraphQL" {
			p.URL = words[1]
		}
	}
	if p.URL == "" {
		err := p.cmd.Wait()
		t.Fatalf("the server does not start: %v: %s", err, p.stderr.String())
	}
	go func() {
		defer close(p.said)
		for lines.Scan() { // a full pipe would stop the server
		}
	}()
	return p
}

// PID is the process's number.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Quit ends the server so that it tells what each of its goroutines does (SIGQUIT), waits until it
// is gone, and returns what it logged, that included.
func (p *Process) Quit(t testing.TB) string {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGQUIT); err != nil {
		t.Error(err)
	}
	<-p.said
	_ = p.cmd.Wait() // it says that the server was ended
	return p.stderr.String()
}

// Kill ends the server as a power cut would, waits until it is gone, and returns what it logged.
func (p *Process) Kill(t testing.TB) string {
	t.Helper()
	if err := p.cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	<-p.said
	_ = p.cmd.Wait() // it says that the server was killed
	return p.stderr.String()
}
