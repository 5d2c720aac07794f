package workload

import (
	"bufio"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/ordergraph/ordergraph/internal/dynamolocal"
	"github.com/ordergraph/ordergraph/internal/raceenabled"
)

// BuildServer compiles the program and returns the path of the binary. With the race detector, it
// skips the test, because the race detector cannot observe another process. Without debug
// information, the linker takes a third of the time. root is the path of the module.
func BuildServer(t testing.TB, root string) string {
	t.Helper()
	if raceenabled.On {
		t.Skip("the race detector cannot observe another process")
	}
	binary := filepath.Join(t.TempDir(), "ordergraph")
	if out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", binary, root).CombinedOutput(); err != nil {
		t.Fatalf("build the server: %v: %s", err, out)
	}
	return binary
}

// Process is a running server.
type Process struct {
	cmd *exec.Cmd
	// URL is the URL of the GraphQL endpoint. MetricsURL is empty if there is no admin listener.
	URL, MetricsURL string
	// stdoutClosed is closed when the server's standard output has ended.
	stdoutClosed chan struct{}
	// stderr is the server's log. Read it only after the server has ended.
	stderr strings.Builder
}

// ServerEnvironment returns the environment variables of a server that uses a table of DynamoDB Local.
// endpoint is the URL of DynamoDB Local, or of a proxy.
func ServerEnvironment(t testing.TB, table, endpoint string) []string {
	nowhere := filepath.Join(t.TempDir(), "nowhere")
	return append(dynamolocal.Environment(),
		"ORDERGRAPH_STORE=dynamodb", "ORDERGRAPH_TABLE="+table, "ORDERGRAPH_AUTH=none", "AWS_ENDPOINT_URL_DYNAMODB="+endpoint,
		"AWS_EC2_METADATA_DISABLED=true", "AWS_CONFIG_FILE="+nowhere, "AWS_SHARED_CREDENTIALS_FILE="+nowhere,
	)
}

// StartServer starts the server's binary with the given arguments and waits until it prints its
// URLs.
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
		case len(words) > 0 && words[0] == "Store": // follows the URLs
			started = true
		}
	}
	if p.URL == "" {
		err := p.cmd.Wait()
		t.Fatalf("the server did not start: %v: %s", err, p.stderr.String())
	}
	go func() {
		defer close(p.stdoutClosed)
		for lines.Scan() { // a full pipe would stop the server
		}
	}()
	return p
}

// PID returns the process ID.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// QuitWithStacks ends the server with SIGQUIT, so that the server logs the stacks of its
// goroutines. It waits until the server has ended and returns the log.
func (p *Process) QuitWithStacks(t testing.TB) string {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGQUIT); err != nil {
		t.Error(err)
	}
	<-p.stdoutClosed
	_ = p.cmd.Wait() // the error is the signal
	return p.stderr.String()
}

// Terminate sends SIGTERM to the server and waits until the process has ended. It returns the log
// of the server. It returns an error if the exit status is not 0.
func (p *Process) Terminate(t testing.TB) (log string, err error) {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	<-p.stdoutClosed
	err = p.cmd.Wait()
	return p.stderr.String(), err
}

// Kill ends the server with SIGKILL. It waits until the server has ended and returns the log.
func (p *Process) Kill(t testing.TB) string {
	t.Helper()
	if err := p.cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	<-p.stdoutClosed
	_ = p.cmd.Wait() // the error is the signal
	return p.stderr.String()
}
