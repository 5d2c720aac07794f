package workload

import (
	"bufio"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/ordergraph/ordergraph/internal/test/dynamolocal"
	"github.com/ordergraph/ordergraph/internal/test/raceenabled"
)

// BuildServer compiles the program in the module root and returns the path of the binary. If the
// race detector is enabled, BuildServer skips the test.
func BuildServer(t testing.TB, root string) string {
	t.Helper()
	if raceenabled.On {
		t.Skip("the race detector cannot observe another process")
	}
	binary := filepath.Join(t.TempDir(), "ordergraph")
	// Without debug information, linking is three times as fast.
	if out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", binary, root).CombinedOutput(); err != nil {
		t.Fatalf("build the server: %v: %s", err, out)
	}
	return binary
}

// Process is a running server.
type Process struct {
	cmd *exec.Cmd
	// URL is the URL of the GraphQL endpoint. MetricsURL is the URL of the metrics. It is empty if the
	// server has no admin listener.
	URL, MetricsURL string
	// stdoutClosed is closed when the server's standard output has ended.
	stdoutClosed chan struct{}
	// stderr is the server's log. Read it only after the server has ended.
	stderr strings.Builder
}

// ServerEnvironment returns the environment variables for a server whose table is in DynamoDB
// Local. endpoint is the URL of DynamoDB Local, or of a proxy in front of it.
func ServerEnvironment(t testing.TB, table, endpoint string) []string {
	nowhere := filepath.Join(t.TempDir(), "nowhere")
	return append(dynamolocal.Environment(),
		"ORDERGRAPH_STORE=dynamodb", "ORDERGRAPH_TABLE="+table, "ORDERGRAPH_AUTH=none", "AWS_ENDPOINT_URL_DYNAMODB="+endpoint,
		"AWS_EC2_METADATA_DISABLED=true", "AWS_CONFIG_FILE="+nowhere, "AWS_SHARED_CREDENTIALS_FILE="+nowhere,
	)
}

// StartServer starts the server's binary with the given arguments, and waits until the server has
// printed its URLs.
func StartServer(t testing.TB, binary string, environment []string, arguments ...string) *Process {
	t.Helper()
	p := &Process{cmd: exec.Command(binary, append([]string{"-addr", "127.0.0.1:0"}, arguments...)...), stdoutClosed: make(chan struct{})}
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
	for started := false; !started && lines.Scan(); {
		words := strings.Fields(lines.Text())
		switch {
		case len(words) == 2 && words[0] == "GraphQL":
			p.URL = words[1]
		case len(words) == 2 && words[0] == "Metrics":
			p.MetricsURL = words[1]
		case len(words) > 0 && words[0] == "Store": // the server prints this line after its URLs
			started = true
		}
	}
	if p.URL == "" {
		err := p.cmd.Wait()
		t.Fatalf("the server did not start: %v: %s", err, p.stderr.String())
	}
	go func() {
		defer close(p.stdoutClosed)
		for lines.Scan() { // reads all output, because a full pipe would block the server
		}
	}()
	return p
}

// PID returns the process ID.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// QuitWithStacks ends the server with SIGQUIT, so that the server logs the stacks of its
// goroutines. It waits until the server has ended, and returns the server's log.
func (p *Process) QuitWithStacks(t testing.TB) string {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGQUIT); err != nil {
		t.Error(err)
	}
	<-p.stdoutClosed
	_ = p.cmd.Wait() // always returns an error, because a signal has ended the process
	return p.stderr.String()
}

// Terminate sends SIGTERM to the server, waits until the server has ended, and returns the server's
// log. If the exit status is not 0, it also returns an error.
func (p *Process) Terminate(t testing.TB) (log string, err error) {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	<-p.stdoutClosed
	err = p.cmd.Wait()
	return p.stderr.String(), err
}

// Kill ends the server with SIGKILL. It waits until the server has ended, and returns the server's
// log.
func (p *Process) Kill(t testing.TB) string {
	t.Helper()
	if err := p.cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	<-p.stdoutClosed
	_ = p.cmd.Wait() // always returns an error, because a signal has ended the process
	return p.stderr.String()
}
